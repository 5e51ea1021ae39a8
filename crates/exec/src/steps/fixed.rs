//! The lists of an intersection that are the same for all rows: what do they have in common?
//!
//! Where rows are many and their own lists short, that is read once into a set, and the lists of the rows are
//! followed alone: a look at a bit takes less than a search in a long list for each row.

use jindou_model::{Cursor, GraphRef, Lists, TermId};
use jindou_plan::physical::Slot;

use super::ResolvedSide;
use crate::ExecError;
use crate::context::{Booked, Context};
use crate::rows::RowSet;
use crate::table::BATCH_ROWS;

/// The lists of constants are not looked at before so many rows came: to do so takes longer than a light query.
const LEAST_ROWS: u64 = 256;
/// The set is made once there were so many rows for each of its ids.
const ROWS_PER_ID: f64 = 0.25;
/// And if a row's own list has no more than so many neighbours, on average.
const MOST_NEIGHBOURS: u64 = 16;
/// Bits of a bitmap for each id: with more, ids are hashed.
const BITS_PER_ID: u64 = 512;

/// The sides of one step that begin at constants.
#[derive(Default)]
pub(super) struct Fixed {
    /// Rows that came so far.
    rows: u64,
    /// Neighbours of the constants, once there was a row.
    ids: Option<u64>,
    state: State,
}

#[derive(Default)]
enum State {
    #[default]
    Waiting,
    Made(
        IdSet,
        #[expect(dead_code, reason = "held as long as the set")] Booked,
    ),
    /// There are none, or no room for it.
    Never,
}

/// A set of ids.
enum IdSet {
    /// A bit for each id from the first one on.
    Bits {
        first: u64,
        words: Vec<u64>,
    },
    Hashed(RowSet),
}

impl IdSet {
    /// Of some ids, sorted.
    fn of(ids: &[TermId]) -> Self {
        let (Some(first), Some(last)) = (ids.first(), ids.last()) else {
            return Self::Hashed(RowSet::new(1));
        };
        let first = first.raw();
        let bits = last.raw() - first + 1;
        if bits > (ids.len() as u64).saturating_mul(BITS_PER_ID) {
            let mut set = RowSet::new(1);
            ids.iter().for_each(|id| {
                set.insert(&[*id]);
            });
            return Self::Hashed(set);
        }
        let mut words = vec![0_u64; bits.div_ceil(64) as usize];
        for id in ids {
            let bit = id.raw() - first;
            words[(bit / 64) as usize] |= 1 << (bit % 64);
        }
        Self::Bits { first, words }
    }

    /// Bytes of a set of so many ids, at most.
    fn most_bytes(ids: u64) -> u64 {
        // A hashed one takes less.
        ids * (BITS_PER_ID / 8) + 64
    }

    #[inline]
    fn contains(&self, id: TermId) -> bool {
        match self {
            Self::Bits { first, words } => {
                let bit = id.raw().wrapping_sub(*first);
                let word = words.get((bit / 64) as usize);
                word.is_some_and(|word| word & (1 << (bit % 64)) != 0)
            }
            Self::Hashed(set) => set.find(&[id]).is_some(),
        }
    }
}

impl Fixed {
    /// Counts rows of a table that is about to be extended; true if they are so many by now that the set may be worth it.
    pub(super) fn count(&mut self, rows: usize) -> bool {
        self.rows += rows as u64;
        self.rows >= LEAST_ROWS && matches!(self.state, State::Waiting)
    }

    /// Makes the set of the `constant` sides if that is worth it by now, for a table of so many rows, whose own lists
    /// are `varying`.
    pub(super) fn meet(
        &mut self,
        rows: usize,
        varying: &[Lists<'_>],
        constant: &[(&ResolvedSide, [TermId; 1])],
        graph: GraphRef<'_>,
        cx: &Context,
    ) -> Result<(), ExecError> {
        let ids = match self.ids {
            Some(ids) => ids,
            None => {
                let mut ids = 0;
                for (side, key) in constant {
                    let Some(list) = side.list_of(key) else {
                        self.state = State::Never;
                        return Ok(());
                    };
                    ids += neighbours(&list, graph, cx)?;
                }
                *self.ids.insert(ids)
            }
        };
        if ids as f64 * ROWS_PER_ID > self.rows as f64 {
            return Ok(());
        }
        let mut shortest = u64::MAX;
        for list in varying {
            shortest = shortest.min(neighbours(list, graph, cx)?);
        }
        let mut booked = Booked::default();
        let bytes = IdSet::most_bytes(ids) + ids * size_of::<TermId>() as u64;
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        let is_short = shortest <= MOST_NEIGHBOURS.saturating_mul(rows as u64);
        self.state = match is_short && cx.has_room(&mut booked, bytes) {
            true => State::Made(IdSet::of(&common(constant, graph, cx)?), booked),
            false => State::Never,
        };
        Ok(())
    }

    /// True if the lists of the rows are to be followed alone.
    pub(super) fn is_made(&self) -> bool {
        matches!(self.state, State::Made(..))
    }

    /// Leaves of what was found what the constants have, too.
    pub(super) fn retain(&self, rows: &mut Vec<u32>, values: &mut Vec<TermId>) {
        let State::Made(set, _) = &self.state else {
            return;
        };
        let mut kept = 0;
        for place in 0..values.len() {
            // Written always, so that nothing is to be foreseen.
            (rows[kept], values[kept]) = (rows[place], values[place]);
            kept += usize::from(set.contains(values[place]));
        }
        rows.truncate(kept);
        values.truncate(kept);
    }
}

/// How many neighbours the keys of a list have together.
fn neighbours(list: &Lists<'_>, graph: GraphRef<'_>, cx: &Context) -> Result<u64, ExecError> {
    let mut degrees = Vec::new();
    cx.degrees(graph, list, None, &mut degrees)?;
    Ok(degrees.iter().sum())
}

/// The neighbours that all constants have, sorted.
fn common(
    sides: &[(&ResolvedSide, [TermId; 1])],
    graph: GraphRef<'_>,
    cx: &Context,
) -> Result<Vec<TermId>, ExecError> {
    let mut found: Option<Vec<TermId>> = None;
    for (side, key) in sides {
        let Some(list) = side.list_of(key) else {
            return Ok(Vec::new());
        };
        let (mut rows, mut ids) = (Vec::new(), Vec::new());
        let mut cursor = Cursor::default();
        while cursor.key == 0 {
            cx.check()?;
            let most = ids.len() + BATCH_ROWS;
            let lists = [list];
            cx.expand(graph, &lists, &mut cursor, None, most, &mut rows, &mut ids)?;
        }
        ids.sort_unstable();
        ids.dedup();
        found = Some(match found {
            None => ids,
            Some(mut before) => {
                before.retain(|id| ids.binary_search(id).is_ok());
                before
            }
        });
    }
    Ok(found.unwrap_or_default())
}

impl ResolvedSide {
    /// Where a side begins that begins at a constant.
    pub(super) fn constant_key(&self, cx: &Context) -> Option<[TermId; 1]> {
        match self.from {
            Slot::Const(id) => Some([cx.constant(id)]),
            Slot::Var(_) => None,
        }
    }

    /// The list of that constant; `None` if nobody has the predicate.
    fn list_of<'k>(&self, key: &'k [TermId; 1]) -> Option<Lists<'k>> {
        Some(Lists {
            predicate: self.predicate?,
            direction: self.direction,
            keys: key,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_rows_are_not_worth_a_look() {
        let mut fixed = Fixed::default();
        for _ in 1..LEAST_ROWS {
            assert!(!fixed.count(1));
        }
        assert!(fixed.count(1));
        fixed.state = State::Never;
        assert!(!fixed.count(1));
    }

    #[test]
    fn sets_have_what_they_are_made_of_and_nothing_else() {
        let near: Vec<u64> = (0..1_000).map(|number| 5_000 + 3 * number).collect();
        let far: Vec<u64> = (0..1_000).map(|number| number * 1_000_003).collect();
        for numbers in [near, far, vec![7], Vec::new()] {
            let ids: Vec<TermId> = numbers.iter().map(|n| TermId::vertex(*n)).collect();
            let set = IdSet::of(&ids);
            assert!(ids.iter().all(|id| set.contains(*id)));
            let others = numbers.iter().flat_map(|n| [n + 1, n.wrapping_sub(1)]);
            let others = others.filter(|n| *n < 1 << 40 && numbers.binary_search(n).is_err());
            for other in others.chain([1 << 39]) {
                assert!(!set.contains(TermId::vertex(other)), "{other}");
                assert!(!set.contains(TermId::literal(other)), "{other}");
            }
        }
    }

    #[test]
    fn sets_of_ids_that_lie_together_are_bitmaps() {
        let dense: Vec<TermId> = (0..100).map(|n| TermId::vertex(n * 7)).collect();
        assert!(matches!(IdSet::of(&dense), IdSet::Bits { .. }));
        let sparse: Vec<TermId> = (0..100).map(|n| TermId::vertex(n << 20)).collect();
        assert!(matches!(IdSet::of(&sparse), IdSet::Hashed(_)));
    }
}
