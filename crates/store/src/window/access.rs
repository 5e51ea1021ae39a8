//! One access to graphs, of a window: which neighbours have these keys?

use std::ops::Range;

use jindou_model::{Cursor, Direction, IdRanges, Lists, PredicateId, TermId};

use super::side::{Side, Span};
use super::view::Window;
use super::walk::Walk;

/// Keys looked up together.
pub(super) const KEYS_AT_ONCE: usize = 256;
/// Places that are gone through in one call: the caller has a time limit.
const PLACES_AT_ONCE: usize = 1 << 16;

/// Where some keys are in each run.
#[derive(Default)]
pub(super) struct Located {
    /// By run and then by key.
    spans: Vec<Span>,
    keys: usize,
}

impl Located {
    pub(super) fn locate(&mut self, sides: &[Side<'_>], keys: &[TermId]) {
        self.spans.clear();
        self.keys = keys.len();
        for side in sides {
            side.locate(keys, &mut self.spans);
        }
    }

    /// The places of a key in each run.
    pub(super) fn of_key(&self, index: usize) -> impl Iterator<Item = Span> {
        self.spans
            .iter()
            .skip(index)
            .step_by(self.keys.max(1))
            .copied()
    }

    fn open(&self, index: usize, sides: &[Side<'_>], walk: &mut Walk) {
        walk.open(sides, self.of_key(index));
    }
}

/// What a call fills, and how far.
struct Target<'t> {
    allowed: Option<&'t IdRanges>,
    budget: usize,
    rows: &'t mut Vec<u32>,
    out: &'t mut Vec<TermId>,
}

impl Target<'_> {
    /// How many ids may be appended.
    fn room(&self) -> usize {
        self.budget.saturating_sub(self.out.len())
    }

    fn is_allowed(&self, id: TermId) -> bool {
        self.allowed.is_none_or(|allowed| allowed.contains(id))
    }

    /// Keeps of what was appended after `begin` what is allowed.
    fn retain_allowed(&mut self, begin: usize) {
        let Some(allowed) = self.allowed else {
            return;
        };
        let mut kept = begin;
        for index in begin..self.out.len() {
            self.out[kept] = self.out[index];
            kept += usize::from(allowed.contains(self.out[kept]));
        }
        self.out.truncate(kept);
    }
}

impl Window {
    /// Follows lists from `cursor` on: for each row, appends its number to `rows` and each id that
    /// all of its lists hold, and `allowed` where that is given, to `out`, until `out` has about
    /// `budget` entries or the rows are done (`cursor.key` is the number of rows). Rows come in
    /// order, and the ids of each are sorted and distinct. It may append nothing and not be done. Of
    /// one list of one key it goes through as many [places](Window::places) as there is room for at
    /// most.
    ///
    /// Costs a search for each key in each run, and for each neighbour a comparison with those of
    /// the other runs. Sorted keys are searched by galloping, others one by one.
    /// Several lists are intersected: the shortest is walked, the others are searched.
    pub fn expand(
        &self,
        lists: &[Lists<'_>],
        cursor: &mut Cursor,
        allowed: Option<&IdRanges>,
        budget: usize,
        rows: &mut Vec<u32>,
        out: &mut Vec<TermId>,
    ) {
        let mut target = Target {
            allowed,
            budget,
            rows,
            out,
        };
        match lists {
            [] => {}
            [list] if list.keys.len() == 1 => self.follow_one(list, cursor, &mut target),
            [list] => self.follow(list, cursor, &mut target),
            several => self.intersect(several, cursor, &mut target),
        }
    }

    /// Follows the list of one key, without an allocation where no run has it. Goes through no more
    /// places than there is room for, whatever these give.
    fn follow_one(&self, list: &Lists<'_>, cursor: &mut Cursor, target: &mut Target<'_>) {
        if cursor.key > 0 || target.room() == 0 {
            return;
        }
        let mut walk = Walk::default();
        let mut sides = Vec::new();
        for side in self.sides_of(list.predicate, list.direction) {
            let span = side.find(list.keys[0]);
            if span.len() > 0 {
                walk.add(sides.len(), &side, span);
                sides.push(side);
            }
        }
        if sides.is_empty() {
            *cursor = at_key(1);
        } else {
            follow_key(&mut walk, &sides, cursor, target);
        }
    }

    fn follow(&self, list: &Lists<'_>, cursor: &mut Cursor, target: &mut Target<'_>) {
        let sides = self.sides(list.predicate, list.direction);
        let keys = list.keys;
        if sides.is_empty() {
            *cursor = at_key(keys.len());
            return;
        }
        let (mut located, mut walk) = (Located::default(), Walk::default());
        let mut looked_at = 0;
        while cursor.key < keys.len() && target.room() > 0 && looked_at < PLACES_AT_ONCE {
            let begin = cursor.key;
            let end = batch_end(begin, keys.len(), target.room());
            located.locate(&sides, &keys[begin..end]);
            while cursor.key < end && target.room() > 0 && looked_at < PLACES_AT_ONCE {
                located.open(cursor.key - begin, &sides, &mut walk);
                looked_at += 1 + follow_key(&mut walk, &sides, cursor, target);
            }
        }
    }

    fn intersect(&self, lists: &[Lists<'_>], cursor: &mut Cursor, target: &mut Target<'_>) {
        let count = lists.iter().map(|list| list.keys.len()).min().unwrap_or(0);
        let sides = lists
            .iter()
            .map(|list| self.sides(list.predicate, list.direction));
        let sides: Vec<Vec<Side<'_>>> = sides.collect();
        if sides.iter().any(Vec::is_empty) {
            *cursor = at_key(count);
            return;
        }
        let mut located: Vec<Located> = lists.iter().map(|_| Located::default()).collect();
        let mut walks: Vec<Walk> = lists.iter().map(|_| Walk::default()).collect();
        let mut looked_at = 0;
        while cursor.key < count && target.room() > 0 && looked_at < PLACES_AT_ONCE {
            let begin = cursor.key;
            let end = batch_end(begin, count, target.room());
            for ((list, sides), located) in lists.iter().zip(&sides).zip(&mut located) {
                located.locate(sides, &list.keys[begin..end]);
            }
            while cursor.key < end && target.room() > 0 && looked_at < PLACES_AT_ONCE {
                for ((located, sides), walk) in located.iter().zip(&sides).zip(&mut walks) {
                    located.open(cursor.key - begin, sides, walk);
                }
                let most = PLACES_AT_ONCE - looked_at;
                looked_at += 1 + intersect_row(&mut walks, &sides, most, cursor, target);
            }
        }
    }

    /// How many places [`Window::expand`] of the first key of a list goes through: cursors with
    /// offsets below that share them out. There are as many as rows of the key in all runs.
    #[must_use]
    pub fn places(&self, list: &Lists<'_>) -> u64 {
        let sides = self.sides(list.predicate, list.direction);
        let mut located = Located::default();
        located.locate(&sides, &list.keys[..list.keys.len().min(1)]);
        located.spans.iter().map(|span| span.len() as u64).sum()
    }

    /// Appends the number of each row whose edge from its key to its entry of `to` is there.
    ///
    /// Costs two searches for each row in each run.
    pub fn contains(&self, list: &Lists<'_>, to: &[TermId], rows: &mut Vec<u32>) {
        let sides = self.sides(list.predicate, list.direction);
        let mut located = Located::default();
        let batches = list.keys.chunks(KEYS_AT_ONCE).zip(to.chunks(KEYS_AT_ONCE));
        for (batch, (keys, to)) in batches.enumerate() {
            located.locate(&sides, keys);
            let first = batch * KEYS_AT_ONCE;
            let found = to
                .iter()
                .enumerate()
                .take(keys.len())
                .filter(|(index, to)| {
                    let mut spans = sides.iter().zip(located.of_key(*index));
                    spans.any(|(side, span)| has_inside(side, span, **to))
                });
            rows.extend(found.map(|(index, _)| (first + index) as u32));
        }
    }

    /// Appends the number of neighbours of each key, of those in `allowed` where that is given.
    ///
    /// Costs as [`Window::expand`], or only the searches where one run has the key, it lies inside,
    /// and no triple of the predicate comes twice in it.
    pub fn degrees(&self, list: &Lists<'_>, allowed: Option<&IdRanges>, out: &mut Vec<u64>) {
        let sides = self.sides(list.predicate, list.direction);
        let (mut located, mut walk) = (Located::default(), Walk::default());
        for keys in list.keys.chunks(KEYS_AT_ONCE) {
            located.locate(&sides, keys);
            for index in 0..keys.len() {
                located.open(index, &sides, &mut walk);
                out.push(degree(&mut walk, &sides, allowed));
            }
        }
    }

    /// The predicates that a vertex has in a direction, in order, appended to `out`.
    ///
    /// Costs a search for each predicate in each run.
    pub fn predicates_of(&self, key: TermId, direction: Direction, out: &mut Vec<PredicateId>) {
        let mut predicates = Vec::new();
        self.predicates(&mut predicates);
        let mut sides = Vec::new();
        let mut located = Located::default();
        out.extend(predicates.into_iter().filter(|predicate| {
            sides.clear();
            sides.extend(self.sides_of(*predicate, direction));
            located.locate(&sides, &[key]);
            let mut spans = sides.iter().zip(&located.spans);
            spans.any(|(side, span)| side.any_inside(span.places()))
        }));
    }
}

fn at_key(key: usize) -> Cursor {
    Cursor { key, offset: 0 }
}

/// The end of the keys to be looked up together from `begin` on: no more than there is room for, if
/// each has a neighbour.
fn batch_end(begin: usize, count: usize, room: usize) -> usize {
    count.min(begin.saturating_add(room.min(KEYS_AT_ONCE)))
}

/// True if a place of the key with this neighbour is inside.
pub(super) fn has_inside(side: &Side<'_>, span: Span, other: TermId) -> bool {
    let from = side.seek_other(span.places(), other.raw());
    let mut same = (from..span.end).take_while(|place| side.other(*place) == other.raw());
    same.any(|place| side.is_inside(place))
}

/// Appends neighbours of the cursor's key, of which the walk has all places, from the cursor's place
/// on, and moves it. Goes through as many places as there is room for; returns how many these were.
#[inline]
fn follow_key(
    walk: &mut Walk,
    sides: &[Side<'_>],
    cursor: &mut Cursor,
    target: &mut Target<'_>,
) -> usize {
    let stop = cursor.offset.saturating_add(target.room());
    let from = walk.skip_to(sides, cursor.offset);
    if let Some((side, span)) = walk.only().filter(|(side, _)| sides[*side].is_plain()) {
        return copy_places(&sides[side], span, from..stop, cursor, target);
    }
    let row = cursor.key as u32;
    let begin = target.out.len();
    let mut place = from;
    while place < stop
        && let Some(step) = walk.next(sides)
    {
        place += step.places;
        let id = TermId::from_raw(step.other);
        if step.is_inside && target.is_allowed(id) {
            target.out.push(id);
        }
    }
    finish_key(cursor, place, walk.is_done());
    let found = target.out.len() - begin;
    target.rows.resize(target.rows.len() + found, row);
    place - from
}

/// As [`follow_key`], of a key in one run, all rows of which are distinct and inside; `span` is what
/// is left of its places. Of all places, those before `range` were passed, and it stops at its end.
#[inline]
fn copy_places(
    side: &Side<'_>,
    span: Span,
    range: Range<usize>,
    cursor: &mut Cursor,
    target: &mut Target<'_>,
) -> usize {
    let row = cursor.key as u32;
    let begin = target.out.len();
    // None where a neighbour of several places was passed beyond the end.
    let taken = span.len().min(range.len());
    side.copy_others(span.begin..span.begin + taken, target.out);
    target.retain_allowed(begin);
    finish_key(cursor, range.start + taken, taken == span.len());
    let found = target.out.len() - begin;
    target.rows.resize(target.rows.len() + found, row);
    taken
}

/// Leaves the cursor's key at a place, or for the next one.
fn finish_key(cursor: &mut Cursor, place: usize, is_done: bool) {
    *cursor = match is_done {
        true => at_key(cursor.key + 1),
        false => Cursor {
            key: cursor.key,
            offset: place,
        },
    };
}

/// Appends what all lists of the cursor's row hold, from the cursor's place in the shortest on, and
/// moves it. Stops when there is no room or `most` places were gone through; returns how many were.
fn intersect_row(
    walks: &mut [Walk],
    sides: &[Vec<Side<'_>>],
    most: usize,
    cursor: &mut Cursor,
    target: &mut Target<'_>,
) -> usize {
    let row = cursor.key as u32;
    let begin = target.out.len();
    let driver = (0..walks.len()).min_by_key(|list| walks[*list].places());
    let driver = driver.unwrap_or_default();
    let from = walks[driver].skip_to(&sides[driver], cursor.offset);
    let mut place = from;
    let mut is_done = walks[driver].is_done();
    while !is_done && target.room() > 0 && place - from < most {
        let Some(step) = walks[driver].next(&sides[driver]) else {
            break;
        };
        place += step.places;
        is_done = walks[driver].is_done();
        let id = TermId::from_raw(step.other);
        if !step.is_inside || !target.is_allowed(id) {
            continue;
        }
        let mut is_in_all = true;
        for list in (0..walks.len()).filter(|list| *list != driver) {
            is_in_all = is_in_all && walks[list].find(&sides[list], step.other);
            // Nor has it any greater one.
            is_done |= walks[list].is_done();
        }
        if is_in_all {
            target.out.push(id);
        }
    }
    finish_key(cursor, place, is_done);
    let found = target.out.len() - begin;
    target.rows.resize(target.rows.len() + found, row);
    place - from
}

fn degree(walk: &mut Walk, sides: &[Side<'_>], allowed: Option<&IdRanges>) -> u64 {
    let plain = walk.only().filter(|(side, _)| sides[*side].is_plain());
    if let (Some((_, span)), None) = (plain, allowed) {
        return span.len() as u64;
    }
    let mut count = 0;
    while let Some(step) = walk.next(sides) {
        let id = TermId::from_raw(step.other);
        let is_allowed = allowed.is_none_or(|allowed| allowed.contains(id));
        count += u64::from(step.is_inside && is_allowed);
    }
    count
}
