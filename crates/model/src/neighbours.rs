//! Neighbours of one vertex: a sorted run of ids, as narrow in memory as its segment keeps them.

use crate::{IdRanges, Patched, TermId};

/// The differences of a column (or of a run of it) in their own width.
#[derive(Clone, Copy, Debug)]
pub enum Narrow<'a> {
    /// One byte each.
    U8(&'a [u8]),
    /// Two bytes each.
    U16(&'a [u16]),
    /// Four bytes each.
    U32(&'a [u32]),
    /// Eight bytes each.
    U64(&'a [u64]),
}

/// Runs `$body` with `$items` as the slice of the narrow numbers, whatever their width.
#[macro_export]
macro_rules! with_narrow {
    ($narrow:expr, $items:ident => $body:expr) => {
        match $narrow {
            $crate::Narrow::U8($items) => $body,
            $crate::Narrow::U16($items) => $body,
            $crate::Narrow::U32($items) => $body,
            $crate::Narrow::U64($items) => $body,
        }
    };
}

impl<'a> Narrow<'a> {
    /// The numbers at `range`.
    ///
    /// # Panics
    /// If it lies outside.
    #[inline]
    #[must_use]
    pub fn slice(self, range: std::ops::Range<usize>) -> Self {
        match self {
            Self::U8(items) => Self::U8(&items[range]),
            Self::U16(items) => Self::U16(&items[range]),
            Self::U32(items) => Self::U32(&items[range]),
            Self::U64(items) => Self::U64(&items[range]),
        }
    }

    /// How many.
    #[inline]
    #[must_use]
    pub fn len(self) -> usize {
        crate::with_narrow!(self, items => items.len())
    }

    /// True of none.
    #[inline]
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// The number at `index`, without the column's base.
    #[inline]
    #[must_use]
    pub fn get(self, index: usize) -> u64 {
        crate::with_narrow!(self, items => items[index].into())
    }

    /// Index of the first of the sorted numbers that is `value` or more, at or after `from`:
    /// gallops, so that a series of rising searches costs little more than one pass.
    #[inline]
    #[must_use]
    pub fn seek(self, from: usize, value: u64) -> usize {
        crate::with_narrow!(self, items => seek(items, from, value))
    }
}

fn seek<T: Copy + Into<u64>>(items: &[T], from: usize, value: u64) -> usize {
    let mut low = from;
    let mut step = 1;
    let mut high = from;
    while high < items.len() && items[high].into() < value {
        low = high + 1;
        high += step;
        step *= 2;
    }
    let high = high.min(items.len());
    low + items[low..high].partition_point(|item| (*item).into() < value)
}

/// The sorted, distinct neighbours of one key.
#[derive(Clone, Copy, Debug)]
pub enum Neighbours<'a> {
    /// A run of a segment's column.
    Run {
        /// What is added to each number.
        base: u64,
        /// The numbers.
        items: Narrow<'a>,
    },
    /// The vertices of a type.
    Ranges(&'a IdRanges),
    /// What has changed since the bulk load.
    Patched(Patched<'a>),
}

impl<'a> Neighbours<'a> {
    /// No neighbour.
    pub const NONE: Neighbours<'static> = Neighbours::Run {
        base: 0,
        items: Narrow::U8(&[]),
    };

    /// How many.
    #[inline]
    #[must_use]
    pub fn len(self) -> usize {
        match self {
            Self::Run { items, .. } => items.len(),
            Self::Ranges(ranges) => ranges.len() as usize,
            Self::Patched(list) => list.len(),
        }
    }

    /// True of none.
    #[inline]
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// Copies neighbours to `out`, from the `from`-th on and `count` at most.
    #[inline]
    pub fn copy(self, from: usize, count: usize, out: &mut Vec<TermId>) {
        match self {
            Self::Run { base, items } => {
                let end = items.len().min(from.saturating_add(count));
                crate::with_narrow!(items, items => out.extend(
                    items[from..end]
                        .iter()
                        .map(|item| TermId::from_raw(base.wrapping_add(u64::from(*item))))
                ));
            }
            Self::Ranges(ranges) => {
                ranges.copy(from as u64, count, out);
            }
            Self::Patched(list) => list.copy(from, count, out),
        }
    }

    /// The neighbour at `index`.
    ///
    /// # Panics
    /// If there is none.
    #[inline]
    #[must_use]
    pub fn get(self, index: usize) -> TermId {
        match self {
            Self::Run { base, items } => TermId::from_raw(base.wrapping_add(items.get(index))),
            Self::Ranges(ranges) => ranges.get(index as u64),
            Self::Patched(list) => list.get(index),
        }
    }

    /// Index of the first neighbour that is `value` or more, at or after `from`.
    #[inline]
    #[must_use]
    pub fn seek(self, from: usize, value: TermId) -> usize {
        match self {
            Self::Run { base, items } => match value.raw().checked_sub(base) {
                Some(value) => items.seek(from, value),
                None => from,
            },
            Self::Ranges(ranges) => (ranges.rank(value) as usize).max(from),
            Self::Patched(list) => list.rank(value).max(from),
        }
    }

    /// True if `value` is a neighbour: a binary search.
    #[inline]
    #[must_use]
    pub fn contains(self, value: TermId) -> bool {
        match self {
            Self::Run { base, items } => {
                let Some(value) = value.raw().checked_sub(base) else {
                    return false;
                };
                crate::with_narrow!(items, items => match items {
                    [] => false,
                    [only] => u64::from(*only) == value,
                    few if few.len() <= 16 => few.iter().any(|item| u64::from(*item) == value),
                    many => many.binary_search_by(|item| u64::from(*item).cmp(&value)).is_ok(),
                })
            }
            Self::Ranges(ranges) => ranges.contains(value),
            Self::Patched(list) => list.contains(value),
        }
    }
}
