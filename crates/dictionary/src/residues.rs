//! Which numbers leave some residues modulo a power of two, and which of them is the how-manieth?
//!
//! Shards are told by the lowest bits of numbers: the terms of a node that holds some shards have the numbers that
//! leave the residues of these. To find a row costs a load from a table of all residues.

use std::sync::Arc;

/// The most bits that a residue has.
const MOST_BITS: u32 = 24;

/// The numbers that leave one of some residues modulo two to a power. Clones share them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Residues {
    bits: u32,
    /// Ascending.
    residues: Arc<[u32]>,
    /// By residue, how many less ones there are; [`NONE`] where it is none of them.
    ranks: Arc<[u32]>,
}

/// The rank of what is no residue.
const NONE: u32 = u32::MAX;

impl Residues {
    /// The numbers that leave one of these residues modulo two to the power of `bits`; `None` if there are no
    /// residues, if they do not ascend, or are larger than that power, or this is than 2^24.
    ///
    /// ```
    /// use jindou_dictionary::Residues;
    ///
    /// let odd = Residues::new(1, &[1]).expect("one is below two");
    /// assert_eq!((odd.row(7), odd.row(8), odd.number_at(3)), (Some(3), None, 7));
    /// ```
    #[must_use]
    pub fn new(bits: u32, residues: &[u32]) -> Option<Self> {
        let rises = residues.windows(2).all(|pair| pair[0] < pair[1]);
        let last = residues.last()?;
        if bits > MOST_BITS || u64::from(*last) >= 1 << bits || !rises {
            return None;
        }
        let mut ranks = vec![NONE; 1 << bits];
        for (rank, residue) in residues.iter().enumerate() {
            ranks[*residue as usize] = rank as u32;
        }
        Some(Self {
            bits,
            residues: residues.into(),
            ranks: ranks.into(),
        })
    }

    /// The logarithm of the power of two.
    #[must_use]
    pub fn bits(&self) -> u32 {
        self.bits
    }

    /// The residues, ascending.
    #[must_use]
    pub fn residues(&self) -> &[u32] {
        &self.residues
    }

    #[inline]
    fn rank(&self, number: u64) -> Option<u64> {
        let residue = number & ((1 << self.bits) - 1);
        let rank = self.ranks[residue as usize];
        (rank != NONE).then_some(rank.into())
    }

    /// True if a number leaves one of them.
    #[inline]
    #[must_use]
    pub fn contains(&self, number: u64) -> bool {
        self.rank(number).is_some()
    }

    /// How many such numbers are less than one of them; `None` of other numbers.
    #[inline]
    #[must_use]
    pub fn row(&self, number: u64) -> Option<u64> {
        let rank = self.rank(number)?;
        Some((number >> self.bits) * self.residues.len() as u64 + rank)
    }

    /// The number that so many are less than.
    #[inline]
    #[must_use]
    pub fn number_at(&self, row: u64) -> u64 {
        let count = self.residues.len() as u64;
        let residue = self.residues[(row % count) as usize];
        (row / count) << self.bits | u64::from(residue)
    }

    /// How many of them are below `end`.
    #[must_use]
    pub fn count_below(&self, end: u64) -> u64 {
        let behind = end & ((1 << self.bits) - 1);
        let less = self.residues.partition_point(|r| u64::from(*r) < behind);
        (end >> self.bits) * self.residues.len() as u64 + less as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_no_set_of_residues_is_refused() {
        for (bits, residues) in [
            (2, &[][..]),
            (2, &[4]),
            (2, &[1, 1]),
            (2, &[2, 1]),
            (25, &[0]),
            (0, &[1]),
        ] {
            assert_eq!(Residues::new(bits, residues), None, "{bits} {residues:?}");
        }
        assert!(Residues::new(0, &[0]).is_some());
    }

    proptest! {
        #[test]
        fn rows_count_the_numbers_that_are_in(
            bits in 0..7_u32,
            chosen: u64,
            from in 0..1_u64 << 40,
        ) {
            let residues: Vec<u32> = (0..1_u32 << bits)
                .filter(|r| chosen >> (r % 64) & 1 == 1)
                .collect();
            let Some(set) = Residues::new(bits, &residues) else {
                prop_assert!(residues.is_empty());
                return Ok(());
            };
            let mut row = set.count_below(from);
            for number in from..from + 200 {
                prop_assert_eq!(set.count_below(number), row);
                let is_in = residues.contains(&((number % (1 << bits)) as u32));
                prop_assert_eq!(set.contains(number), is_in);
                prop_assert_eq!(set.row(number), is_in.then_some(row));
                if is_in {
                    prop_assert_eq!(set.number_at(row), number);
                    row += 1;
                }
            }
        }
    }
}
