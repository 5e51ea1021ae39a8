//! The columns of a run: where in its region are they, and how wide?
//!
//! A batch has four short columns for each predicate, so they share one region: a [`Column`] of its
//! own each would cost some hundred bytes, which is more than the numbers in it where predicates are
//! many.
//!
//! [`Column`]: crate::Column

use jindou_fabric::Region;
use jindou_model::Narrow;

/// A column of a run; how many numbers it has is the number of rows of its predicate.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot {
    /// What is added to each narrow number: the smallest.
    pub(super) base: u64,
    /// Bytes before it in the region, a multiple of eight.
    at: usize,
    /// Bytes of each number: 1, 2, 4 or 8, or 0 where all are `base`.
    width: u8,
}

impl Slot {
    /// The narrow numbers of a column of so many rows; none where all are `base`.
    pub(super) fn narrow(self, region: &Region, rows: usize) -> Narrow<'_> {
        let bytes = &region[self.at..self.at + rows * usize::from(self.width)];
        match self.width {
            0 | 1 => Narrow::U8(bytes),
            2 => Narrow::U16(bytemuck::cast_slice(bytes)),
            4 => Narrow::U32(bytemuck::cast_slice(bytes)),
            _ => Narrow::U64(bytemuck::cast_slice(bytes)),
        }
    }
}

/// A region while columns are appended to it.
#[derive(Default)]
pub(super) struct Packer {
    words: Vec<u64>,
}

impl Packer {
    /// Appends a column of ids or row numbers.
    pub(super) fn push(&mut self, values: &[u64]) -> Slot {
        self.push_in(values, 1)
    }

    /// Appends a column that takes no byte where all numbers are equal.
    pub(super) fn push_or_none(&mut self, values: &[u64]) -> Slot {
        self.push_in(values, 0)
    }

    fn push_in(&mut self, values: &[u64], least_width: u8) -> Slot {
        let base = values.iter().copied().min().unwrap_or(0);
        let most = values.iter().copied().max().unwrap_or(0);
        let width = width_of(most - base).max(least_width);
        let begin = self.words.len();
        let bytes = values.len() * usize::from(width);
        self.words
            .resize(begin + bytes.div_ceil(size_of::<u64>()), 0);
        let words = &mut self.words[begin..];
        match width {
            0 => {}
            1 => fill(words, values, |value| (value - base) as u8),
            2 => fill(words, values, |value| (value - base) as u16),
            4 => fill(words, values, |value| (value - base) as u32),
            _ => fill(words, values, |value| value - base),
        }
        Slot {
            base,
            at: begin * size_of::<u64>(),
            width,
        }
    }

    /// The region with all columns; costs a copy of them.
    pub(super) fn finish(self) -> Region {
        Region::copy_from(bytemuck::cast_slice(&self.words))
    }
}

/// Bytes that hold all numbers up to `most`.
fn width_of(most: u64) -> u8 {
    match most {
        0 => 0,
        1..=0xff => 1,
        0x100..=0xffff => 2,
        0x1_0000..=0xffff_ffff => 4,
        _ => 8,
    }
}

fn fill<T: bytemuck::Pod>(words: &mut [u64], values: &[u64], narrow: impl Fn(u64) -> T) {
    let slots: &mut [T] = bytemuck::cast_slice_mut(words);
    for (slot, value) in slots.iter_mut().zip(values) {
        *slot = narrow(*value);
    }
}
