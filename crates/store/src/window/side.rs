//! The rows of one predicate in one run, seen from one end: where are those of a key?

use std::hint::select_unpredictable;
use std::ops::Range;

use jindou_model::{Direction, Narrow, TermId, with_narrow};

use super::guide::GuideView;
use super::run::{PredicateRows, Run};

/// Rows in the order of (key, other end, time); they are called by their place in it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Side<'a> {
    len: usize,
    /// The number of the row in each place, where they are in another order.
    order: Option<Narrow<'a>>,
    keys: IdColumn<'a>,
    guide: GuideView<'a>,
    others: IdColumn<'a>,
    /// `None` where all rows are inside.
    cut: Option<Cut<'a>>,
    /// No triple is there twice.
    is_distinct: bool,
}

/// Ids by row, less a base.
#[derive(Clone, Copy, Debug)]
struct IdColumn<'a> {
    base: u64,
    items: Narrow<'a>,
}

/// The times by row, and which of them are inside.
#[derive(Clone, Copy, Debug)]
struct Cut<'a> {
    times: Narrow<'a>,
    first: u64,
    last: u64,
}

/// Consecutive places.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) begin: usize,
    pub(super) end: usize,
}

impl Span {
    pub(super) fn len(self) -> usize {
        self.end - self.begin
    }

    pub(super) fn places(self) -> Range<usize> {
        self.begin..self.end
    }
}

impl<'a> Side<'a> {
    /// `None` if no row is inside; `inside` are the first and the last time, in milliseconds since
    /// the run's first.
    #[inline]
    pub(super) fn new(
        run: &'a Run,
        rows: &PredicateRows,
        direction: Direction,
        inside: (u64, u64),
    ) -> Option<Self> {
        let (first, last) = (rows.times.base, rows.last_time);
        if last < inside.0 || first > inside.1 {
            return None;
        }
        let narrow = |slot: super::pack::Slot| slot.narrow(run.region(), rows.len());
        let column = |slot: super::pack::Slot| IdColumn {
            base: slot.base,
            items: narrow(slot),
        };
        let (subjects, objects) = (column(rows.subjects), column(rows.objects));
        let (order, keys, others) = match direction {
            Direction::Out => (None, subjects, objects),
            // Numbers of rows begin with zero.
            Direction::In => (Some(narrow(rows.by_object)), objects, subjects),
        };
        let is_cut = first < inside.0 || last > inside.1;
        Some(Self {
            len: rows.len(),
            order,
            keys,
            guide: rows.guides[direction as usize].view(run.region()),
            others,
            cut: is_cut.then(|| Cut {
                times: narrow(rows.times),
                first: inside.0.saturating_sub(first),
                last: inside.1 - first,
            }),
            is_distinct: rows.is_distinct(),
        })
    }

    /// How many places.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// True if each row is one triple of the window.
    pub(super) fn is_plain(&self) -> bool {
        self.cut.is_none() && self.is_distinct
    }

    #[inline]
    fn row(&self, place: usize) -> usize {
        match self.order {
            None => place,
            Some(order) => order.get(place) as usize,
        }
    }

    #[inline]
    pub(super) fn key(&self, place: usize) -> u64 {
        self.keys.base + self.keys.items.get(self.row(place))
    }

    #[inline]
    pub(super) fn other(&self, place: usize) -> u64 {
        self.others.base + self.others.items.get(self.row(place))
    }

    /// True if the time of the row there is inside.
    #[inline]
    pub(super) fn is_inside(&self, place: usize) -> bool {
        let Some(cut) = &self.cut else {
            return true;
        };
        let time = cut.times.get(self.row(place));
        cut.first <= time && time <= cut.last
    }

    /// True if the time of any of some rows is inside; not of none.
    pub(super) fn any_inside(&self, places: Range<usize>) -> bool {
        match self.cut {
            None => !places.is_empty(),
            Some(_) => places.into_iter().any(|place| self.is_inside(place)),
        }
    }

    /// The first place from `from` on that has this key or a greater one: a gallop.
    pub(super) fn seek_key(&self, from: usize, key: u64) -> usize {
        match key.checked_sub(self.keys.base) {
            Some(narrow) => seek(self.order, self.keys.items, from..self.len, narrow),
            None => from,
        }
    }

    /// The first of some places of one key that has this other end or a greater one: a gallop. The
    /// end of them if there is none.
    #[inline]
    pub(super) fn seek_other(&self, places: Range<usize>, other: u64) -> usize {
        match other.checked_sub(self.others.base) {
            Some(narrow) => seek(self.order, self.others.items, places, narrow),
            None => places.start,
        }
    }

    /// The place behind all of the key that is in `place`.
    pub(super) fn end_of_key(&self, place: usize) -> usize {
        // No id is the greatest number.
        self.seek_key(place + 1, self.key(place) + 1)
    }

    /// The places of one key: a binary search, of a few rows where keys are evenly spread.
    #[inline]
    pub(super) fn find(&self, key: TermId) -> Span {
        let Some(narrow) = key.raw().checked_sub(self.keys.base) else {
            return Span::default();
        };
        let places = self.guide.places(narrow, self.len);
        let begin = lower_bound(self.order, self.keys.items, places, narrow);
        self.span_at(begin, key.raw())
    }

    /// The places of each of some keys, appended to `out`. Gallops where keys are sorted.
    pub(super) fn locate(&self, keys: &[TermId], out: &mut Vec<Span>) {
        if keys.len() < 2 || !keys.is_sorted() {
            out.extend(keys.iter().map(|key| self.find(*key)));
            return;
        }
        let mut from = 0;
        out.extend(keys.iter().map(|key| {
            from = self.seek_key(from, key.raw());
            self.span_at(from, key.raw())
        }));
    }

    /// The places of a key, of which `begin` is the first if there are any.
    fn span_at(&self, begin: usize, key: u64) -> Span {
        if begin >= self.len || self.key(begin) != key {
            return Span::default();
        }
        Span {
            begin,
            end: self.end_of_key(begin),
        }
    }

    /// Visits some places and the other ends in them.
    #[inline]
    pub(super) fn each_other(&self, places: Range<usize>, mut visit: impl FnMut(usize, u64)) {
        let base = self.others.base;
        let first = places.start;
        match self.order {
            None => with_narrow!(self.others.items, items => {
                for (index, item) in items[places].iter().enumerate() {
                    visit(first + index, base + u64::from(*item));
                }
            }),
            Some(order) => with_narrow!(order.slice(places), order => {
                with_narrow!(self.others.items, items => {
                    for (index, row) in order.iter().enumerate() {
                        visit(first + index, base + u64::from(items[*row as usize]));
                    }
                });
            }),
        }
    }

    /// Appends the other ends in some places to `out`.
    pub(super) fn copy_others(&self, places: Range<usize>, out: &mut Vec<TermId>) {
        let base = self.others.base;
        let id = |narrow: u64| TermId::from_raw(base + narrow);
        match self.order {
            None => with_narrow!(self.others.items, items => {
                out.extend(items[places].iter().map(|item| id(u64::from(*item))));
            }),
            Some(order) => with_narrow!(order.slice(places), order => {
                with_narrow!(self.others.items, items => {
                    out.extend(order.iter().map(|row| id(u64::from(items[*row as usize]))));
                });
            }),
        }
    }
}

/// The first of some places whose number is `value` or more.
#[inline]
fn seek(order: Option<Narrow<'_>>, items: Narrow<'_>, places: Range<usize>, value: u64) -> usize {
    match order {
        None => with_narrow!(items, items => {
            gallop(places, |place| u64::from(items[place]) < value)
        }),
        Some(order) => with_narrow!(order, order => with_narrow!(items, items => {
            gallop(places, |place| u64::from(items[order[place] as usize]) < value)
        })),
    }
}

#[inline]
fn gallop(places: Range<usize>, is_below: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high, mut step) = (places.start, places.start, 1);
    while high < places.end && is_below(high) {
        low = high + 1;
        high += step;
        step *= 2;
    }
    let mut high = high.min(places.end);
    while low < high {
        let middle = low.midpoint(high);
        match is_below(middle) {
            true => low = middle + 1,
            false => high = middle,
        }
    }
    low
}

/// As [`seek`], by halves from the start. It has no branch that could be foreseen wrongly, so that
/// searches for several values overlap.
#[inline]
fn lower_bound(
    order: Option<Narrow<'_>>,
    items: Narrow<'_>,
    places: Range<usize>,
    value: u64,
) -> usize {
    match order {
        None => with_narrow!(items, items => {
            halve(places, |place| u64::from(items[place]) < value)
        }),
        Some(order) => with_narrow!(order, order => with_narrow!(items, items => {
            halve(places, |place| u64::from(items[order[place] as usize]) < value)
        })),
    }
}

#[inline]
fn halve(places: Range<usize>, is_below: impl Fn(usize) -> bool) -> usize {
    let (mut begin, mut left) = (places.start, places.len());
    while left > 0 {
        let half = left.div_ceil(2);
        let is_right = is_below(begin + half - 1);
        begin = select_unpredictable(is_right, begin + half, begin);
        left -= half;
    }
    begin
}
