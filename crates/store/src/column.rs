//! A column of ids or offsets: what is the i-th number, in as few bytes as the column allows?

use jindou_fabric::{Region, RegionBuilder};
use jindou_model::{Narrow, with_narrow};

use crate::StoreError;
use crate::image::{ImageReader, ImageWriter};
use crate::layout::ArrayLayout;

/// A column that is filled in any order, or from its beginning on.
pub(crate) struct ColumnBuilder {
    region: RegionBuilder,
    base: u64,
    width: u8,
    len: usize,
    /// Numbers that were appended.
    filled: usize,
}

impl ColumnBuilder {
    /// A column of so many numbers, all in `base..=most`; it takes no more than it will.
    pub(crate) fn new(len: usize, base: u64, most: u64) -> Self {
        let width: u8 = match most - base {
            0..=0xff => 1,
            0x100..=0xffff => 2,
            0x1_0000..=0xffff_ffff => 4,
            _ => 8,
        };
        Self {
            region: RegionBuilder::new(len * usize::from(width)),
            base,
            width,
            len,
            filled: 0,
        }
    }

    /// Appends a number to those appended before.
    pub(crate) fn push(&mut self, value: u64) {
        self.extend(0, Narrow::U64(&[value]));
    }

    /// Appends the sum of `base` and each of some numbers; sums wrap around.
    ///
    /// # Panics
    /// If there are more numbers than it is for.
    pub(crate) fn extend(&mut self, base: u64, items: Narrow<'_>) {
        let shift = base.wrapping_sub(self.base);
        let range = self.filled..self.filled + items.len();
        self.filled = range.end;
        macro_rules! fill {
            ($t:ty) => {{
                let slots = &mut self.region.as_mut_slice::<$t>()[range];
                with_narrow!(items, items => {
                    for (slot, item) in slots.iter_mut().zip(items) {
                        *slot = shift.wrapping_add(u64::from(*item)) as $t;
                    }
                });
            }};
        }
        match self.width {
            1 => fill!(u8),
            2 => fill!(u16),
            4 => fill!(u32),
            _ => fill!(u64),
        }
    }

    /// Sets the number at `index`.
    #[inline]
    pub(crate) fn set(&mut self, index: usize, value: u64) {
        let narrow = value - self.base;
        match self.width {
            1 => self.region.as_mut_slice::<u8>()[index] = narrow as u8,
            2 => self.region.as_mut_slice::<u16>()[index] = narrow as u16,
            4 => self.region.as_mut_slice::<u32>()[index] = narrow as u32,
            _ => self.region.as_mut_slice::<u64>()[index] = narrow,
        }
    }

    /// The column; what was not set is `base`.
    pub(crate) fn finish(self) -> Column {
        Column {
            region: self.region.finish(),
            base: self.base,
            width: self.width,
            len: self.len,
        }
    }
}

/// Numbers held as differences from a base, all in one width of 1, 2, 4 or 8 bytes.
#[derive(Clone, Debug)]
pub struct Column {
    region: Region,
    base: u64,
    width: u8,
    len: usize,
}

impl Column {
    /// An array that lies in a region; `None` where it does not, as of a layout that another one told of.
    pub(crate) fn placed(array: &ArrayLayout, region: &Region) -> Option<Self> {
        let len = usize::try_from(array.len).ok()?;
        matches!(array.width, 1 | 2 | 4 | 8).then_some(())?;
        Some(Self {
            region: array.region(region)?,
            base: array.base,
            width: array.width,
            len,
        })
    }

    /// A column of these numbers, in the narrowest width that holds them.
    #[must_use]
    pub fn from_values(values: &[u64]) -> Self {
        let base = values.iter().copied().min().unwrap_or(0);
        let most = values.iter().copied().max().unwrap_or(0);
        let mut builder = ColumnBuilder::new(values.len(), base, most);
        builder.extend(0, Narrow::U64(values));
        builder.finish()
    }

    /// A column of so many numbers, all in `base..=most`.
    pub(crate) fn collect(
        len: usize,
        base: u64,
        most: u64,
        values: impl Iterator<Item = u64>,
    ) -> Self {
        let mut column = ColumnBuilder::new(len, base, most);
        macro_rules! fill {
            ($t:ty) => {
                for (slot, value) in column.region.as_mut_slice::<$t>().iter_mut().zip(values) {
                    *slot = (value - base) as $t;
                }
            };
        }
        match column.width {
            1 => fill!(u8),
            2 => fill!(u16),
            4 => fill!(u32),
            _ => fill!(u64),
        }
        column.finish()
    }

    /// The greatest number; 0 of none. Reads them all.
    #[must_use]
    pub(crate) fn greatest(&self) -> u64 {
        let narrow = with_narrow!(self.narrow(), items => {
            items.iter().copied().max().map_or(0, u64::from)
        });
        match self.is_empty() {
            true => 0,
            false => self.base.wrapping_add(narrow),
        }
    }

    /// Number of entries.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// True of a column without entries.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes of each narrow number.
    pub(crate) fn width(&self) -> u8 {
        self.width
    }

    /// Where the narrow numbers lie.
    pub(crate) fn region(&self) -> &Region {
        &self.region
    }

    /// What is added to each narrow number.
    #[inline]
    #[must_use]
    pub fn base(&self) -> u64 {
        self.base
    }

    /// Bytes of the numbers.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.region.len()
    }

    /// The narrow numbers.
    #[inline]
    #[must_use]
    pub fn narrow(&self) -> Narrow<'_> {
        match self.width {
            1 => Narrow::U8(&self.region),
            2 => Narrow::U16(self.region.as_slice()),
            4 => Narrow::U32(self.region.as_slice()),
            _ => Narrow::U64(self.region.as_slice()),
        }
    }

    /// The number at `index`.
    ///
    /// # Panics
    /// If there is none.
    #[inline]
    #[must_use]
    pub fn get(&self, index: usize) -> u64 {
        self.base
            .wrapping_add(with_narrow!(self.narrow(), items => items[index].into()))
    }

    pub(crate) fn write(&self, image: &mut ImageWriter) {
        image.word(u64::from(self.width));
        image.word(self.base);
        image.word(self.len as u64);
        image.region(&self.region);
    }

    pub(crate) fn read(image: &mut ImageReader) -> Result<Self, StoreError> {
        let width = image.word()?;
        let base = image.word()?;
        let len = image.length()?;
        let region = image.region()?;
        if !matches!(width, 1 | 2 | 4 | 8) || len.checked_mul(width as usize) != Some(region.len())
        {
            return Err(image.corrupt("a column's width and length do not match its bytes"));
        }
        Ok(Self {
            region,
            base,
            width: width as u8,
            len,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back_in_every_width() {
        for spread in [0, 200, 60_000, 4_000_000_000, u64::MAX / 2] {
            let values: Vec<u64> = (0..100).map(|i| 7 + (spread / 99) * i).collect();
            let column = Column::from_values(&values);
            let back: Vec<u64> = (0..column.len()).map(|i| column.get(i)).collect();
            assert_eq!(back, values);
        }
    }

    #[test]
    fn seek_finds_the_first_number_not_below() {
        let values: Vec<u64> = (0..1000).map(|i| i * 3).collect();
        let column = Column::from_values(&values);
        for from in [0, 1, 5, 999, 1000] {
            for value in 0..3100 {
                let expected = (from..1000)
                    .find(|i| column.narrow().get(*i) >= value)
                    .unwrap_or(1000);
                assert_eq!(column.narrow().seek(from, value), expected);
            }
        }
    }
}
