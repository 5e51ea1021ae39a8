//! Which numbers of a chunk of 65,536 are there, and how many smaller ones?
//!
//! Few numbers lie as their lower sixteen bits, in ascending order. From [`FEW`] on a bitmap takes
//! less: for each 512 bits, how many bits are set before them in the bitmap (u16), then 65,536 bits.
//! Which of the two a set is follows from the count of its numbers, which its owner keeps.

use crate::layout::{read_u16, read_u64};

/// Numbers whose bits from here on are equal belong to one chunk.
pub(crate) const CHUNK_SHIFT: u32 = 16;
/// The numbers of a chunk.
pub(crate) const CHUNK: usize = 1 << CHUNK_SHIFT;
/// Sets are so many bytes long, times a whole number.
pub(crate) const UNIT: usize = 8;
/// The most numbers that are not a bitmap: as many as take its bytes.
const FEW: usize = CHUNK / 16;
/// Bits that are counted together.
const COUNTED: usize = 512;
const COUNTS_BYTES: usize = CHUNK / COUNTED * 2;
const WORDS: usize = CHUNK / 64;

/// The length of a set of `count` numbers, in units: never more than `count`.
pub(crate) fn units_for(count: usize) -> usize {
    if count > FEW {
        COUNTS_BYTES / UNIT + WORDS
    } else {
        (count * 2).div_ceil(UNIT)
    }
}

/// Fills the zeroed bytes of a set of `count` numbers, which ascend.
pub(crate) fn fill(set: &mut [u8], count: usize, numbers: impl Iterator<Item = u16>) {
    if count <= FEW {
        for (slot, number) in set.chunks_exact_mut(2).zip(numbers) {
            slot.copy_from_slice(&number.to_le_bytes());
        }
        return;
    }
    let (counts, bits) = set.split_at_mut(COUNTS_BYTES);
    for number in numbers {
        bits[usize::from(number) / 8] |= 1 << (number % 8);
    }
    let mut before = 0_u16;
    for (slot, bits) in counts.chunks_exact_mut(2).zip(bits.chunks(COUNTED / 8)) {
        slot.copy_from_slice(&before.to_le_bytes());
        // Only the last sum can be too large, and it is not written.
        before = before.wrapping_add(bits.iter().map(|byte| byte.count_ones() as u16).sum());
    }
}

/// The numbers that a chunk has, by their lower sixteen bits.
///
/// A damaged set gives wrong answers, but no panic, and no place beyond its count.
#[derive(Clone, Copy)]
pub(crate) struct Set<'a> {
    bytes: &'a [u8],
    count: usize,
}

impl<'a> Set<'a> {
    /// The set of `count` numbers in `bytes`, which are as long as [`units_for`] says.
    #[inline]
    pub(crate) fn new(bytes: &'a [u8], count: usize) -> Self {
        debug_assert_eq!(bytes.len(), units_for(count) * UNIT);
        Self { bytes, count }
    }

    /// How many smaller numbers there are, if this one is there.
    #[inline]
    pub(crate) fn place(&self, number: u16) -> Option<usize> {
        if self.count > FEW {
            self.place_in_bitmap(usize::from(number))
        } else {
            self.place_among_few(number)
        }
    }

    #[inline]
    fn place_in_bitmap(&self, number: usize) -> Option<usize> {
        let (word, bit) = (number / 64, number % 64);
        let last = self.word(word);
        if last >> bit & 1 == 0 {
            return None;
        }
        let counted = usize::from(read_u16(self.bytes, number / COUNTED * 2));
        let whole: u32 = (number / COUNTED * (COUNTED / 64)..word)
            .map(|word| self.word(word).count_ones())
            .sum();
        let part = (last & ((1 << bit) - 1)).count_ones();
        let place = counted + whole as usize + part as usize;
        (place < self.count).then_some(place)
    }

    #[inline]
    fn place_among_few(&self, number: u16) -> Option<usize> {
        let (mut start, mut end) = (0, self.count);
        while start < end {
            let middle = start.midpoint(end);
            let found = read_u16(self.bytes, middle * 2);
            if found == number {
                return Some(middle);
            }
            if found < number {
                start = middle + 1;
            } else {
                end = middle;
            }
        }
        None
    }

    /// All numbers, ascending.
    pub(crate) fn numbers(self) -> impl Iterator<Item = u16> + 'a {
        let (few, words) = if self.count > FEW {
            (0, WORDS)
        } else {
            (self.count, 0)
        };
        let few = (0..few).map(move |at| read_u16(self.bytes, at * 2));
        let set = (0..words).flat_map(move |word| {
            let mut rest = self.word(word);
            std::iter::from_fn(move || {
                let bit = rest.trailing_zeros() as usize;
                rest &= rest.checked_sub(1)?;
                Some((word * 64 + bit) as u16)
            })
        });
        few.chain(set)
    }

    /// Whether there are as many numbers as there should be, ascending, each found at its place.
    pub(crate) fn is_sound(&self) -> bool {
        let ascending = self.numbers().zip(self.numbers().skip(1));
        self.numbers().count() == self.count
            && ascending.into_iter().all(|(a, b)| a < b)
            && (0..)
                .zip(self.numbers())
                .all(|(place, number)| self.place(number) == Some(place))
    }

    #[inline]
    fn word(&self, word: usize) -> u64 {
        read_u64(self.bytes, COUNTS_BYTES + word * 8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(numbers: &[u16]) {
        let mut bytes = vec![0; units_for(numbers.len()) * UNIT];
        fill(&mut bytes, numbers.len(), numbers.iter().copied());
        let set = Set::new(&bytes, numbers.len());
        assert!(set.is_sound());
        assert!(set.numbers().eq(numbers.iter().copied()));
        for number in 0..=u16::MAX {
            assert_eq!(set.place(number), numbers.binary_search(&number).ok());
        }
    }

    #[test]
    fn sets_of_any_density_agree_with_a_sorted_vector() {
        for step in [1, 2, 3, 7, 15, 16, 17, 500, 65_535] {
            for start in [0, 1, 511, 40_000] {
                check(&(start..=u16::MAX).step_by(step).collect::<Vec<u16>>());
            }
        }
        check(&[]);
        check(&(0..FEW as u16).collect::<Vec<u16>>());
        check(&(0..=FEW as u16).collect::<Vec<u16>>());
    }

    #[test]
    fn a_set_has_no_more_units_than_numbers() {
        assert!((0..=CHUNK).all(|count| units_for(count) <= count));
    }
}
