//! Between which places of a sorted column may a key be?

use std::ops::Range;

use jindou_fabric::Region;
use jindou_model::Narrow;

use super::pack::{Packer, Slot};

/// Rows for each place that a guide has, at least: so it takes an eighth of a byte a row at most.
const ROWS_A_PLACE: usize = 32;

/// The first place of the keys of some top bits, for each number that these can be, and the end.
///
/// Where keys are evenly spread, it leaves a search some [`ROWS_A_PLACE`] rows, which share one or
/// two cache lines; elsewhere perhaps all of them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Guide {
    places: Slot,
    /// How many places it has: none where rows are few.
    len: u32,
    /// Bits of a key, less the least one, below those.
    shift: u32,
}

impl Guide {
    /// The guide to some sorted keys, at least one.
    pub(super) fn new(rows: usize, key: impl Fn(usize) -> u64, packer: &mut Packer) -> Self {
        let (least, most) = (key(0), key(rows - 1));
        let stretches = rows / ROWS_A_PLACE;
        let mut places = Vec::new();
        let mut shift = 0;
        if stretches > 1 {
            let bits = u64::BITS - (most - least).leading_zeros();
            shift = bits.saturating_sub(stretches.ilog2());
            let stretch_of = |key: u64| ((key - least) >> shift) as usize;
            places.reserve(stretch_of(most) + 2);
            for row in 0..rows {
                let missing = (stretch_of(key(row)) + 1).saturating_sub(places.len());
                places.extend(std::iter::repeat_n(row as u64, missing));
            }
            places.push(rows as u64);
        }
        Self {
            len: places.len() as u32,
            places: packer.push_or_none(&places),
            shift,
        }
    }

    pub(super) fn view(self, region: &Region) -> GuideView<'_> {
        GuideView {
            places: self.places.narrow(region, self.len as usize),
            shift: self.shift,
        }
    }
}

/// A guide in its run.
#[derive(Clone, Copy, Debug)]
pub(super) struct GuideView<'a> {
    places: Narrow<'a>,
    shift: u32,
}

impl GuideView<'_> {
    /// Where a key, less the least one, is in a column of so many rows, if it is there; before the
    /// first place of these are smaller keys only.
    #[inline]
    pub(super) fn places(&self, key: u64, rows: usize) -> Range<usize> {
        if self.places.is_empty() {
            return 0..rows;
        }
        let stretch = key >> self.shift;
        if stretch + 1 >= self.places.len() as u64 {
            return rows..rows;
        }
        let place = |stretch: u64| self.places.get(stretch as usize) as usize;
        place(stretch)..place(stretch + 1)
    }
}
