//! Where do the arrays of a segment lie, for readers that see nothing but bytes?
//!
//! Another machine reads a list by one-sided reads, and a device copies whole arrays: neither can
//! follow our structures. All that they need beside the bytes of the region is in a
//! [`SegmentLayout`]: a key's row is computed from the domain, and the row's list is two reads
//! away, offsets and then neighbours, or one where each key has one neighbour. Bitmaps and sorted
//! keys of a domain are to be copied once by whoever asks often.

use std::ops::Range;

use jindou_fabric::{Region, RegionId};
use jindou_model::TermId;
use serde::{Deserialize, Serialize};

use crate::column::Column;
use crate::domain::{WORD_IDS, rank_in, strides_to};

/// Fills a buffer with bytes of a region, from this place after its start on.
pub type ReadBytes<'a, E> = dyn FnMut(u64, &mut [u8]) -> Result<(), E> + 'a;

/// An array of little-endian numbers in a region.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArrayLayout {
    /// Bytes from the start of the region to the first number.
    pub offset: u64,
    /// Bytes of each number: 1, 2, 4 or 8.
    pub width: u8,
    /// How many numbers.
    pub len: u64,
    /// What is added to each number, wrapping around.
    pub base: u64,
}

impl ArrayLayout {
    /// Where some of its numbers lie: bytes from the start of the region.
    ///
    /// # Panics
    /// If it has fewer numbers.
    #[must_use]
    pub fn bytes_of(&self, numbers: Range<u64>) -> Range<u64> {
        assert!(
            numbers.start <= numbers.end && numbers.end <= self.len,
            "numbers outside their array"
        );
        let place = |number: u64| self.offset + number * u64::from(self.width);
        place(numbers.start)..place(numbers.end)
    }

    /// Its bytes; `None` if they are not in this region, or not aligned there.
    pub(crate) fn region(&self, of: &Region) -> Option<Region> {
        let begin = usize::try_from(self.offset).ok()?;
        let bytes = self.len.checked_mul(u64::from(self.width))?;
        let end = begin.checked_add(usize::try_from(bytes).ok()?)?;
        (end <= of.len() && begin.is_multiple_of(8)).then(|| of.slice(begin..end))
    }

    /// The numbers of these bytes, which are some whole ones of the array.
    pub fn numbers<'a>(&self, bytes: &'a [u8]) -> impl ExactSizeIterator<Item = u64> + 'a {
        let base = self.base;
        bytes
            .chunks_exact(usize::from(self.width))
            .map(move |number| {
                let mut word = [0; 8];
                word[..number.len()].copy_from_slice(number);
                base.wrapping_add(u64::from_le_bytes(word))
            })
    }
}

/// Which ids of a part of a domain are keys.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum KeysLayout {
    /// Every id from the first to the last, a stride apart.
    Dense,
    /// A word of eight bytes for 32 strides: a bit for each in the lower half, and in the upper one
    /// the number of keys of the part before the word.
    Bitmap(ArrayLayout),
    /// The ids, sorted.
    Sorted(ArrayLayout),
}

/// Keys of a segment whose rows follow each other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartLayout {
    /// First and last key, as raw ids.
    pub first: u64,
    /// See `first`.
    pub last: u64,
    /// Row of the first key.
    pub row: u64,
    /// Number of keys.
    pub len: u64,
    /// Each key is the first and a multiple of two to this power.
    pub stride_bits: u32,
    /// Which ids they are.
    pub keys: KeysLayout,
}

/// Where the arrays of a segment lie. All numbers are little-endian, and all arrays in one region.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SegmentLayout {
    /// The region: what is to be registered, whole.
    pub region: RegionId,
    /// Where the region begins in the memory of the process that has it; 0 of a layout that came from
    /// another one.
    #[serde(skip)]
    pub address: u64,
    /// Bytes of the region.
    pub region_bytes: u64,
    /// The keys, by id.
    pub domain: Vec<PartLayout>,
    /// Where the list of each row begins among the neighbours, and one more; absent where each row
    /// has one neighbour.
    pub offsets: Option<ArrayLayout>,
    /// The neighbours of all rows, as raw ids, sorted within each row.
    pub neighbours: ArrayLayout,
    /// A number among the neighbours that stands for none, where there is such a one.
    pub hole: Option<u64>,
}

impl ArrayLayout {
    /// True if numbers can lie so in a region of so many bytes.
    fn lies_in(&self, region_bytes: u64) -> bool {
        let bytes = self.len.checked_mul(self.width.into());
        let end = bytes.and_then(|bytes| self.offset.checked_add(bytes));
        matches!(self.width, 1 | 2 | 4 | 8) && end.is_some_and(|end| end <= region_bytes)
    }
}

impl PartLayout {
    fn is_sound(&self, region_bytes: u64) -> bool {
        if self.first > self.last || self.stride_bits >= u64::BITS {
            return false;
        }
        let span = (self.last - self.first) >> self.stride_bits;
        match &self.keys {
            KeysLayout::Dense => span.checked_add(1) == Some(self.len),
            KeysLayout::Bitmap(words) => {
                let is_whole = words.len > span / WORD_IDS && words.width == 8;
                is_whole && words.lies_in(region_bytes)
            }
            KeysLayout::Sorted(keys) => keys.len == self.len && keys.lies_in(region_bytes),
        }
    }
}

impl SegmentLayout {
    /// Rows, each of one key.
    #[must_use]
    pub fn rows(&self) -> u64 {
        match &self.offsets {
            Some(offsets) => offsets.len.saturating_sub(1),
            None => self.neighbours.len,
        }
    }

    /// True if its arrays lie in the region and agree with each other, as is to be asked of a layout that
    /// came from another process: of others calls may panic. What the arrays hold may be anything.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        let bytes = self.region_bytes;
        let mut arrays = self.offsets.iter().chain([&self.neighbours]);
        let mut parts = self.domain.iter();
        let is_within = |part: &PartLayout| {
            let end = part.row.checked_add(part.len);
            end.is_some_and(|end| end <= self.rows()) && part.is_sound(bytes)
        };
        arrays.all(|array| array.lies_in(bytes))
            && parts.all(is_within)
            && self.domain.is_sorted_by(|a, b| a.last < b.first)
    }

    /// The row of a key; `read` reads the region.
    ///
    /// Reads nothing in a dense part of the domain, one word in a bitmap, and as many numbers as a
    /// binary search takes among sorted keys.
    ///
    /// # Errors
    /// Those of `read`.
    pub fn row<E>(&self, key: TermId, read: &mut ReadBytes<'_, E>) -> Result<Option<u64>, E> {
        let raw = key.raw();
        let after = self.domain.partition_point(|part| part.first <= raw);
        let part = after.checked_sub(1).map(|index| &self.domain[index]);
        let Some(part) = part.filter(|part| raw <= part.last) else {
            return Ok(None);
        };
        let mut number = |array: &ArrayLayout, index: u64| {
            let mut word = [0; 8];
            let bytes = &mut word[..usize::from(array.width)];
            read(array.bytes_of(index..index + 1).start, bytes)?;
            Ok(array.numbers(bytes).next().unwrap_or(0))
        };
        let strides = strides_to(part.first, part.stride_bits, raw);
        let span = strides_to(part.first, part.stride_bits, part.last);
        let place = match &part.keys {
            _ if strides > span => None,
            KeysLayout::Dense => Some(strides),
            KeysLayout::Bitmap(words) => {
                let (rank, is_there) = rank_in(number(words, strides / WORD_IDS)?, strides);
                is_there.then_some(rank as u64)
            }
            KeysLayout::Sorted(keys) => {
                let (mut low, mut high) = (0, keys.len);
                while low < high {
                    let middle = low.midpoint(high);
                    match number(keys, middle)? < raw {
                        true => low = middle + 1,
                        false => high = middle,
                    }
                }
                (low < keys.len && number(keys, low)? == raw).then_some(low)
            }
        };
        Ok(place.map(|place| part.row + place))
    }

    /// The bytes of the region that say where the list of a row lies: see [`SegmentLayout::bounds`].
    /// `None` where each row has one neighbour, whose number is that of the row.
    ///
    /// # Panics
    /// If there is no such row.
    #[must_use]
    pub fn bounds_bytes(&self, row: u64) -> Option<Range<u64>> {
        let offsets = self.offsets.as_ref();
        offsets.map(|offsets| offsets.bytes_of(row..row + 2))
    }

    /// The neighbours of a row by their numbers, from the bytes at [`SegmentLayout::bounds_bytes`].
    ///
    /// # Panics
    /// If these are others, or each row has one neighbour.
    #[must_use]
    pub fn bounds(&self, bytes: &[u8]) -> Range<u64> {
        let offsets = self.offsets.as_ref().expect("rows have bounds");
        let mut bounds = offsets.numbers(bytes);
        match (bounds.next(), bounds.next(), bounds.next()) {
            (Some(begin), Some(end), None) => begin..end,
            _ => panic!("the bounds of a row are two numbers"),
        }
    }

    /// The bytes of the region that some neighbours lie in, by their numbers.
    ///
    /// # Panics
    /// If there are no such neighbours.
    #[must_use]
    pub fn list_bytes(&self, neighbours: Range<u64>) -> Range<u64> {
        self.neighbours.bytes_of(neighbours)
    }

    /// Appends the neighbours of these bytes, which are some of those at
    /// [`SegmentLayout::list_bytes`].
    pub fn push_list(&self, bytes: &[u8], out: &mut Vec<TermId>) {
        let ids = self.neighbours.numbers(bytes).map(TermId::from_raw);
        match self.hole {
            None => out.extend(ids),
            Some(hole) => out.extend(ids.filter(|id| id.raw() != hole)),
        }
    }
}

/// Finds the places of arrays, all of which are in one region.
pub(crate) struct Places<'a> {
    region: &'a Region,
}

impl<'a> Places<'a> {
    /// Those in the region of an array.
    pub(crate) fn beside(region: &'a Region) -> Self {
        Self { region }
    }

    /// An array of words.
    pub(crate) fn words(&self, words: &Region) -> ArrayLayout {
        assert_eq!(
            words.id(),
            self.region.id(),
            "the arrays of a segment lie in one region"
        );
        ArrayLayout {
            offset: words.offset() as u64,
            width: 8,
            len: words.len() as u64 / 8,
            base: 0,
        }
    }

    /// A column.
    pub(crate) fn column(&self, column: &Column) -> ArrayLayout {
        ArrayLayout {
            width: column.width(),
            len: column.len() as u64,
            base: column.base(),
            ..self.words(column.region())
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
