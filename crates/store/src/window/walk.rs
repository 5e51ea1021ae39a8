//! The neighbours of one key in several runs: sorted, each once.
//!
//! A *place* is a row of the key, whether it is inside the window or not; the places of all runs are
//! in the order of their neighbours. The one that has a neighbour first stands for it: so a long
//! list can be left and entered again at any place, at the cost of a search.

use super::side::{Side, Span};

/// What is left of a key's places in the runs that have any.
#[derive(Default)]
pub(super) struct Walk {
    heads: Vec<Head>,
}

#[derive(Clone, Copy)]
struct Head {
    side: usize,
    /// Not empty.
    places: Span,
    /// The neighbour in the first of them.
    other: u64,
}

/// One neighbour.
pub(super) struct Step {
    pub(super) other: u64,
    /// Places that have it.
    pub(super) places: usize,
    /// One of these is inside the window.
    pub(super) is_inside: bool,
}

impl Walk {
    /// Begins with the places of a key in each of some runs.
    #[inline]
    pub(super) fn open(&mut self, sides: &[Side<'_>], spans: impl Iterator<Item = Span>) {
        self.heads.clear();
        for (side, places) in spans.enumerate() {
            self.add(side, &sides[side], places);
        }
    }

    /// Adds the places of the key in one more run, by its index; none leaves nothing.
    #[inline]
    pub(super) fn add(&mut self, index: usize, side: &Side<'_>, places: Span) {
        if places.len() > 0 {
            self.heads.push(Head {
                side: index,
                places,
                other: side.other(places.begin),
            });
        }
    }

    /// True if nothing is left.
    pub(super) fn is_done(&self) -> bool {
        self.heads.is_empty()
    }

    /// Places that are left.
    pub(super) fn places(&self) -> usize {
        self.heads.iter().map(|head| head.places.len()).sum()
    }

    /// The run and the places that are left in it, where it is the only one.
    pub(super) fn only(&self) -> Option<(usize, Span)> {
        match self.heads.as_slice() {
            [head] => Some((head.side, head.places)),
            _ => None,
        }
    }

    /// The next neighbour, inside the window or not.
    #[inline]
    pub(super) fn next(&mut self, sides: &[Side<'_>]) -> Option<Step> {
        let other = self.heads.iter().map(|head| head.other).min()?;
        let mut step = Step {
            other,
            places: 0,
            is_inside: false,
        };
        let mut index = 0;
        while index < self.heads.len() {
            if self.heads[index].other != other {
                index += 1;
                continue;
            }
            let head = self.heads[index];
            let side = &sides[head.side];
            step.is_inside |= side.is_inside(head.places.begin);
            step.places += 1;
            // The same one may follow, at another time: the index stays.
            self.move_head(index, side, head.places.begin + 1);
        }
        Some(step)
    }

    /// Goes on to the places of a neighbour, which is none that was passed. True if it is there, and
    /// inside the window.
    #[inline]
    pub(super) fn find(&mut self, sides: &[Side<'_>], other: u64) -> bool {
        let mut is_inside = false;
        let mut index = 0;
        while index < self.heads.len() {
            let head = self.heads[index];
            let side = &sides[head.side];
            let at = side.seek_other(head.places.places(), other);
            if !self.move_head(index, side, at) {
                continue;
            }
            index += 1;
            let mut same = (at..head.places.end).take_while(|place| side.other(*place) == other);
            is_inside = is_inside || same.any(|place| side.is_inside(place));
        }
        is_inside
    }

    /// Moves a head to a place; false, and it is gone, if that is its end.
    #[inline]
    fn move_head(&mut self, index: usize, side: &Side<'_>, place: usize) -> bool {
        let head = &mut self.heads[index];
        if place == head.places.end {
            self.heads.swap_remove(index);
            return false;
        }
        head.places.begin = place;
        head.other = side.other(place);
        true
    }

    /// Goes on, from the beginning, to the first neighbour whose first place is `place` or a later
    /// one; returns the place at which it is then.
    ///
    /// Costs a search by value, with a search in each run for each step of it.
    pub(super) fn skip_to(&mut self, sides: &[Side<'_>], place: usize) -> usize {
        if place == 0 {
            return 0;
        }
        let total = self.places();
        let first = self.heads.iter().map(|head| head.other).min();
        let last = self
            .heads
            .iter()
            .map(|head| sides[head.side].other(head.places.end - 1));
        let (Some(mut low), Some(mut high)) = (first, last.max()) else {
            return 0;
        };
        if place >= total {
            self.heads.clear();
            return total;
        }
        if let Some((side, span)) = self.only().filter(|(side, _)| sides[*side].is_plain()) {
            self.move_head(0, &sides[side], span.begin + place);
            return place;
        }
        // The greatest neighbour that has no more than so many places before it.
        while low < high {
            let middle = low + (high - low).div_ceil(2);
            match self.places_below(sides, middle) <= place {
                true => low = middle,
                false => high = middle - 1,
            }
        }
        if self.places_below(sides, low) < place {
            // Its first place was passed. No id is the greatest number.
            low += 1;
        }
        let before = self.places_below(sides, low);
        let mut index = 0;
        while index < self.heads.len() {
            let head = self.heads[index];
            let side = &sides[head.side];
            let at = side.seek_other(head.places.places(), low);
            index += usize::from(self.move_head(index, side, at));
        }
        before
    }

    /// Places of neighbours smaller than this one.
    fn places_below(&self, sides: &[Side<'_>], other: u64) -> usize {
        let below = |head: &Head| {
            let end = sides[head.side].seek_other(head.places.places(), other);
            end - head.places.begin
        };
        self.heads.iter().map(below).sum()
    }
}
