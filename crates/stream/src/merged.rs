//! A graph that is the merge of windows and stored graphs: which edges do they have together?
//!
//! Mostly a predicate is in one of the two only, which then answers alone. Otherwise a key's places are
//! those of the stored graph and then those of the windows, of which what the stored graph has is left
//! out: so each edge comes once, and a long list is not held in memory.

use std::ops::ControlFlow;
use std::thread;

use jindou_exec::GraphSource;
use jindou_model::{
    Cursor, Direction, GraphRef, IdRanges, Lists, Membership, Pattern, Precision, PredicateId,
    TermId, Unavailable, Visit,
};
use jindou_store::window::Window;

/// Keys of which the windows are asked together.
const KEYS_AT_ONCE: usize = 256;
/// The offset of a cursor from which on it is in the windows of a key, whose stored neighbours it has
/// passed.
const OF_WINDOW: usize = 1 << 60;
/// So few are looked up one by one.
const FEW_FOUND: usize = 64;
/// A list is followed beside what was found unless it is so many times as long.
const LONGER: usize = 4;

/// Rows of keys, and for each what was found.
type Found = (Vec<u32>, Vec<TermId>);

/// Windows and a stored graph.
#[derive(Clone, Copy)]
pub(crate) struct Merged<'a> {
    pub(crate) source: &'a dyn GraphSource,
    pub(crate) stored: GraphRef<'a>,
    pub(crate) window: &'a Window,
}

/// Where a predicate has edges.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Home {
    Stored,
    Window,
    Both,
}

impl Merged<'_> {
    fn home(&self, predicate: PredicateId) -> Home {
        if self.window.edges(predicate) == Some(0) {
            return Home::Stored;
        }
        match self.source.edges(self.stored, predicate) {
            Some(0) => Home::Window,
            _ => Home::Both,
        }
    }

    /// Where all of some predicates have edges.
    fn home_of(&self, lists: &[Lists<'_>]) -> Home {
        let mut homes = lists.iter().map(|list| self.home(list.predicate));
        let first = homes.next().unwrap_or(Home::Stored);
        match homes.all(|home| home == first) {
            true => first,
            false => Home::Both,
        }
    }

    pub(crate) fn predicates(&self, out: &mut Vec<PredicateId>) {
        let begin = out.len();
        self.source.predicates(self.stored, out);
        self.window.predicates(out);
        dedup_from(begin, out);
    }

    pub(crate) fn predicates_of(
        &self,
        key: TermId,
        direction: Direction,
        out: &mut Vec<PredicateId>,
    ) {
        let begin = out.len();
        self.source.predicates_of(self.stored, key, direction, out);
        self.window.predicates_of(key, direction, out);
        dedup_from(begin, out);
    }

    pub(crate) fn edges(&self, predicate: PredicateId) -> Option<u64> {
        match self.home(predicate) {
            Home::Stored => self.source.edges(self.stored, predicate),
            Home::Window => self.window.edges(predicate),
            Home::Both => None,
        }
    }

    pub(crate) fn members(
        &self,
        memberships: &[Membership],
        precision: Precision,
        within: Option<&IdRanges>,
    ) -> Result<Option<IdRanges>, Unavailable> {
        let is_asked =
            |one: &&Membership| precision.is_exact() || matches!(one, Membership::Type(_));
        let mut all: Option<IdRanges> = None;
        for membership in memberships.iter().filter(is_asked) {
            let found = self.members_of(*membership, within)?;
            all = Some(match all {
                None => found,
                Some(all) => all.intersect(&found),
            });
        }
        if all.is_none() && precision.is_exact() {
            let every = IdRanges::all();
            return Ok(Some(within.map_or(every, Clone::clone)));
        }
        Ok(all)
    }

    /// The ids that have one trait in either.
    fn members_of(
        &self,
        membership: Membership,
        within: Option<&IdRanges>,
    ) -> Result<IdRanges, Unavailable> {
        let asked = [membership];
        let predicate = match membership {
            Membership::Type(_) => PredicateId::TYPE,
            Membership::Has(predicate, _) => predicate,
        };
        let of_window = || self.window.members(&asked, Precision::Exact, within);
        let home = self.home(predicate);
        if home == Home::Window {
            return Ok(of_window().unwrap_or_default());
        }
        let source = self.source;
        let stored = source.members(self.stored, &asked, Precision::Exact, within)?;
        let stored = stored.unwrap_or_default();
        Ok(match home {
            Home::Stored => stored,
            _ => stored.union(&of_window().unwrap_or_default()),
        })
    }

    pub(crate) fn expand(
        &self,
        lists: &[Lists<'_>],
        cursor: &mut Cursor,
        allowed: Option<&IdRanges>,
        budget: usize,
        rows: &mut Vec<u32>,
        out: &mut Vec<TermId>,
    ) -> Result<(), Unavailable> {
        match (self.home_of(lists), lists) {
            (Home::Stored, _) => {
                (self.source).expand(self.stored, lists, cursor, allowed, budget, rows, out)
            }
            (Home::Window, _) => {
                self.window
                    .expand(lists, cursor, allowed, budget, rows, out);
                Ok(())
            }
            (Home::Both, [list]) => self.follow(list, cursor, allowed, budget, rows, out),
            (Home::Both, [first, others @ ..]) => {
                let (mut found_rows, mut found) = (Vec::new(), Vec::new());
                let room = budget.saturating_sub(out.len()).max(1);
                let done = self.expand(
                    &[*first],
                    cursor,
                    allowed,
                    room,
                    &mut found_rows,
                    &mut found,
                );
                // What was found before is not found again.
                for other in others {
                    self.keep_contained(other, &mut found_rows, &mut found)?;
                }
                rows.append(&mut found_rows);
                out.append(&mut found);
                done
            }
            (Home::Both, []) => Ok(()),
        }
    }

    /// What a list of the row has, too, by following the list beside what was found: some nanoseconds each
    /// instead of a search. `None` where the list is much longer, or not sorted.
    fn intersected(
        &self,
        list: &Lists<'_>,
        rows: &[u32],
        found: &[TermId],
    ) -> Result<Option<Found>, Unavailable> {
        let (Some(first), Some(last)) = (rows.first(), rows.last()) else {
            return Ok(None);
        };
        let is_sorted = |rows: &[u32], ids: &[TermId]| rows.iter().zip(ids).is_sorted();
        if found.len() < FEW_FOUND || !is_sorted(rows, found) {
            return Ok(None);
        }
        let keys = &list.keys[*first as usize..=*last as usize];
        let part = Lists { keys, ..*list };
        let (mut other_rows, mut others) = (Vec::new(), Vec::new());
        let mut cursor = Cursor::default();
        let budget = LONGER * found.len();
        self.expand(
            &[part],
            &mut cursor,
            None,
            budget,
            &mut other_rows,
            &mut others,
        )?;
        if cursor.key < keys.len() || !is_sorted(&other_rows, &others) {
            return Ok(None);
        }
        let (mut kept_rows, mut kept) = (Vec::new(), Vec::new());
        let mut others = other_rows.iter().zip(&others).peekable();
        for (row, id) in rows.iter().zip(found) {
            let place = (row - first, *id);
            while others.next_if(|(row, id)| (**row, **id) < place).is_some() {}
            if others
                .peek()
                .is_some_and(|(row, id)| (**row, **id) == place)
            {
                kept_rows.push(*row);
                kept.push(*id);
            }
        }
        Ok(Some((kept_rows, kept)))
    }

    /// Keeps what a list of the row has, too.
    fn keep_contained(
        &self,
        list: &Lists<'_>,
        rows: &mut Vec<u32>,
        found: &mut Vec<TermId>,
    ) -> Result<(), Unavailable> {
        let is_sorted = || rows.iter().zip(found.iter()).is_sorted();
        if self.home(list.predicate) == Home::Window && is_sorted() {
            self.window.retain(list, rows, found);
            return Ok(());
        }
        if let Some(kept) = self.intersected(list, rows, found)? {
            (*rows, *found) = kept;
            return Ok(());
        }
        let keys: Vec<TermId> = rows.iter().map(|row| list.keys[*row as usize]).collect();
        let of_rows = Lists {
            keys: &keys,
            ..*list
        };
        let mut kept = Vec::with_capacity(found.len());
        self.contains(&of_rows, found, &mut kept)?;
        *rows = kept.iter().map(|at| rows[*at as usize]).collect();
        *found = kept.iter().map(|at| found[*at as usize]).collect();
        Ok(())
    }

    fn follow(
        &self,
        list: &Lists<'_>,
        cursor: &mut Cursor,
        allowed: Option<&IdRanges>,
        budget: usize,
        rows: &mut Vec<u32>,
        out: &mut Vec<TermId>,
    ) -> Result<(), Unavailable> {
        let mut degrees = Vec::new();
        while cursor.key < list.keys.len() && out.len() < budget {
            let begin = cursor.key;
            let end = list.keys.len().min(begin + KEYS_AT_ONCE);
            if self.follow_whole(list, cursor, end, allowed, budget, rows, out)? {
                continue;
            }
            degrees.clear();
            let batch = part(list, begin, end);
            self.window.degrees(&batch, None, &mut degrees);
            while cursor.key < end && out.len() < budget {
                let key = cursor.key;
                let has_none = degrees[key - begin..]
                    .iter()
                    .take_while(|count| **count == 0);
                let stored_end = key + has_none.count();
                if stored_end == key {
                    self.follow_key(list, cursor, allowed, budget, rows, out)?;
                    continue;
                }
                let lists = [part(list, 0, stored_end)];
                (self.source).expand(self.stored, &lists, cursor, allowed, budget, rows, out)?;
            }
        }
        Ok(())
    }

    /// Follows all of the keys up to `end` in both graphs and merges what they have; false, and nothing is
    /// done, where there is no room for that, or a key has been begun.
    #[expect(clippy::too_many_arguments, reason = "as the call that it is part of")]
    fn follow_whole(
        &self,
        list: &Lists<'_>,
        cursor: &mut Cursor,
        end: usize,
        allowed: Option<&IdRanges>,
        budget: usize,
        rows: &mut Vec<u32>,
        out: &mut Vec<TermId>,
    ) -> Result<bool, Unavailable> {
        let (begin, room) = (cursor.key, budget - out.len());
        // Places of one key alone are shared out by their numbers.
        if cursor.offset > 0 || list.keys.len() == 1 || room < end - begin {
            return Ok(false);
        }
        let keys = [part(list, begin, end)];
        let (mut of_window, mut of_stored) = (Found::default(), Found::default());
        let mut at = Cursor::default();
        let (found_rows, found) = (&mut of_window.0, &mut of_window.1);
        (self.window).expand(&keys, &mut at, allowed, room, found_rows, found);
        if at.key < end - begin || found.len() == room {
            return Ok(false);
        }
        let mut at = Cursor::default();
        let room = room - found.len();
        let (found_rows, found) = (&mut of_stored.0, &mut of_stored.1);
        (self.source).expand(
            self.stored,
            &keys,
            &mut at,
            allowed,
            room,
            found_rows,
            found,
        )?;
        if at.key < end - begin || !found_rows.iter().zip(found).is_sorted() {
            return Ok(false);
        }
        merge_found(&of_stored, &of_window, |row, id| {
            rows.push(begin as u32 + row);
            out.push(id);
        });
        *cursor = Cursor {
            key: end,
            offset: 0,
        };
        Ok(true)
    }

    /// Goes on with the cursor's key, first in the stored graph.
    fn follow_key(
        &self,
        list: &Lists<'_>,
        cursor: &mut Cursor,
        allowed: Option<&IdRanges>,
        budget: usize,
        rows: &mut Vec<u32>,
        out: &mut Vec<TermId>,
    ) -> Result<(), Unavailable> {
        let key = cursor.key;
        let one = part(list, key, key + 1);
        // Places of one key alone are shared out by their numbers. Otherwise a cursor that is in the
        // stored list is the source's own affair.
        let (is_stored, of_window) = match list.keys.len() {
            1 => {
                let stored_places = self.source.places(self.stored, &one)? as usize;
                (cursor.offset < stored_places, stored_places)
            }
            _ => (cursor.offset & OF_WINDOW == 0, OF_WINDOW),
        };
        if is_stored {
            let lists = [part(list, 0, key + 1)];
            (self.source).expand(self.stored, &lists, cursor, allowed, budget, rows, out)?;
            if cursor.key == key {
                return Ok(());
            }
            *cursor = Cursor {
                key,
                offset: of_window,
            };
        }
        let first_of_window = of_window;
        let mut of_window = Cursor {
            key: 0,
            offset: cursor.offset - first_of_window,
        };
        let (mut own_rows, mut found) = (Vec::new(), Vec::new());
        let room = budget.saturating_sub(out.len());
        (self.window).expand(
            &[one],
            &mut of_window,
            allowed,
            room,
            &mut own_rows,
            &mut found,
        );
        self.drop_stored(&one, &mut found)?;
        *cursor = match of_window.key {
            0 => Cursor {
                key,
                offset: first_of_window + of_window.offset,
            },
            _ => Cursor {
                key: key + 1,
                offset: 0,
            },
        };
        rows.resize(rows.len() + found.len(), key as u32);
        out.append(&mut found);
        Ok(())
    }

    /// Drops neighbours of a key that it has in the stored graph.
    fn drop_stored(&self, one: &Lists<'_>, found: &mut Vec<TermId>) -> Result<(), Unavailable> {
        let keys = vec![one.keys[0]; found.len()];
        let list = Lists {
            keys: &keys,
            ..*one
        };
        let mut stored = Vec::new();
        self.source
            .contains(self.stored, &list, found, &mut stored)?;
        let mut stored = stored.into_iter().peekable();
        let mut row = 0;
        found.retain(|_| {
            let is_stored = stored.next_if_eq(&row).is_some();
            row += 1;
            !is_stored
        });
        Ok(())
    }

    pub(crate) fn places(&self, list: &Lists<'_>) -> Result<u64, Unavailable> {
        Ok(match self.home(list.predicate) {
            Home::Stored => self.source.places(self.stored, list)?,
            Home::Window => self.window.places(list),
            Home::Both => self.source.places(self.stored, list)? + self.window.places(list),
        })
    }

    pub(crate) fn contains(
        &self,
        list: &Lists<'_>,
        to: &[TermId],
        rows: &mut Vec<u32>,
    ) -> Result<(), Unavailable> {
        let begin = rows.len();
        let home = self.home(list.predicate);
        if home != Home::Window {
            self.source.contains(self.stored, list, to, rows)?;
        }
        if home != Home::Stored {
            self.window.contains(list, to, rows);
        }
        if home == Home::Both {
            dedup_from(begin, rows);
        }
        Ok(())
    }

    pub(crate) fn degrees(
        &self,
        list: &Lists<'_>,
        allowed: Option<&IdRanges>,
        out: &mut Vec<u64>,
    ) -> Result<(), Unavailable> {
        let home = self.home(list.predicate);
        if home == Home::Window {
            self.window.degrees(list, allowed, out);
            return Ok(());
        }
        let begin = out.len();
        self.source.degrees(self.stored, list, allowed, out)?;
        if home == Home::Stored {
            return Ok(());
        }
        let mut of_window = Vec::new();
        self.window.degrees(list, allowed, &mut of_window);
        let some = (0..list.keys.len()).filter(|key| of_window[*key] > 0);
        for key in some {
            let one = part(list, key, key + 1);
            let (mut rows, mut found) = (Vec::new(), Vec::new());
            let mut cursor = Cursor::default();
            while cursor.key == 0 {
                let budget = found.len() + KEYS_AT_ONCE;
                (self.window).expand(&[one], &mut cursor, allowed, budget, &mut rows, &mut found);
            }
            self.drop_stored(&one, &mut found)?;
            out[begin + key] += found.len() as u64;
        }
        Ok(())
    }

    pub(crate) fn for_each_match(
        &self,
        pattern: &Pattern,
        visit: &mut Visit<'_>,
    ) -> Result<ControlFlow<()>, Unavailable> {
        let mut once = |s, p, o, _| visit(s, p, o, TermId::NONE);
        let flow = (self.source).for_each_match(pattern, self.stored, &mut once)?;
        if flow.is_break() {
            return Ok(flow);
        }
        let mut lost = None;
        let flow = self
            .window
            .for_each_match(pattern, &mut |s, p, o, _| match self.is_stored(s, p, o) {
                Ok(true) => ControlFlow::Continue(()),
                Ok(false) => visit(s, p, o, TermId::NONE),
                Err(error) => {
                    lost = Some(error);
                    ControlFlow::Break(())
                }
            });
        match lost {
            None => Ok(flow),
            Some(error) => Err(error),
        }
    }

    /// Waits for a graph that is not ready: some triples were visited already.
    fn is_stored(
        &self,
        subject: TermId,
        predicate: PredicateId,
        object: TermId,
    ) -> Result<bool, Unavailable> {
        let list = Lists {
            predicate,
            direction: Direction::Out,
            keys: &[subject],
        };
        let mut rows = Vec::new();
        loop {
            match self
                .source
                .contains(self.stored, &list, &[object], &mut rows)
            {
                Ok(()) => return Ok(!rows.is_empty()),
                Err(Unavailable::NotNow) => thread::yield_now(),
                Err(lost @ (Unavailable::Never(_) | Unavailable::Gone)) => return Err(lost),
            }
        }
    }
}

/// The list of some rows; numbers of rows are counted from `begin`.
fn part<'a>(list: &Lists<'a>, begin: usize, end: usize) -> Lists<'a> {
    Lists {
        keys: &list.keys[begin..end],
        ..*list
    }
}

/// Visits what either has, in order, each once.
fn merge_found(one: &Found, other: &Found, mut visit: impl FnMut(u32, TermId)) {
    let mut ones = one.0.iter().zip(&one.1).peekable();
    for (row, id) in other.0.iter().zip(&other.1) {
        while let Some((row, id)) = ones.next_if(|next| *next < (row, id)) {
            visit(*row, *id);
        }
        ones.next_if_eq(&(row, id));
        visit(*row, *id);
    }
    ones.for_each(|(row, id)| visit(*row, *id));
}

fn dedup_from<T: Copy + Ord>(begin: usize, items: &mut Vec<T>) {
    let mut new = items.split_off(begin);
    new.sort_unstable();
    new.dedup();
    items.append(&mut new);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_both_have_comes_once_and_in_order() {
        let found = |pairs: &[(u32, u64)]| -> Found {
            let pairs = pairs.iter();
            pairs.map(|(row, id)| (*row, TermId::vertex(*id))).unzip()
        };
        for (one, other, expected) in [
            (&[][..], &[][..], &[][..]),
            (&[(0, 7)], &[], &[(0, 7)]),
            (&[], &[(0, 7)], &[(0, 7)]),
            (
                &[(0, 1), (0, 3), (2, 1)],
                &[(0, 2), (0, 3), (1, 9), (2, 0)],
                &[(0, 1), (0, 2), (0, 3), (1, 9), (2, 0), (2, 1)],
            ),
        ] {
            let mut merged = Found::default();
            merge_found(&found(one), &found(other), |row, id| {
                merged.0.push(row);
                merged.1.push(id);
            });
            assert_eq!(merged, found(expected));
        }
    }
}
