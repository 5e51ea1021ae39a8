//! Which set has the vertex of this number?
//!
//! Numbers are permanent and the set of a vertex is not, so the map from numbers to sets is
//! constant over *stretches* of numbers. A bulk load makes one stretch for each set; merges cut
//! them. A stretch costs twelve bytes, one more with the index, whatever its set is like.

use std::ops::{Deref, Range};

use jindou_model::PAYLOAD_BITS;

use crate::array::Array;

/// The stretches of a table, each at the end of the one before: in vectors while they grow, and in
/// a region from then on.
#[derive(Clone, Debug)]
pub(crate) struct Stretches<S = Vec<u64>, N = Vec<u32>> {
    /// First number of each, and one more; nothing where there is no stretch.
    starts: S,
    /// The set of each.
    set_of: N,
    /// The stretch of every 2^`block_bits`-th number, or nothing where a binary search among all
    /// stretches is as good.
    blocks: Vec<u32>,
    block_bits: u32,
}

/// Stretches in a region.
pub(crate) type FixedStretches = Stretches<Array<u64>, Array<u32>>;

/// From so many stretches on, a search looks up first where it can begin: among millions, it
/// would wait for memory at each of its steps.
const LEAST_INDEXED: usize = 256;
/// Stretches for each block, at least.
const PER_BLOCK: usize = 4;

impl Default for Stretches {
    fn default() -> Self {
        Self {
            starts: Vec::new(),
            set_of: Vec::new(),
            blocks: Vec::new(),
            block_bits: 0,
        }
    }
}

impl Stretches {
    /// One stretch for each set, in the order of sets: where each begins, and one more.
    pub(crate) fn one_each(starts: Vec<u64>) -> Self {
        let sets = starts.len().saturating_sub(1) as u32;
        let set_of = (0..sets).collect();
        Self {
            starts,
            set_of,
            ..Self::default()
        }
    }

    /// Adds the numbers from the end up to `end`, if there are any: to the last stretch where
    /// that has the set.
    pub(super) fn push(&mut self, end: u64, set: u32) {
        if end <= self.end() {
            return;
        }
        if self.set_of.last() == Some(&set) {
            self.starts.pop();
        } else {
            if self.set_of.is_empty() {
                self.starts = vec![0];
            }
            self.set_of.push(set);
        }
        self.starts.push(end);
        self.blocks.clear();
    }

    /// Gives each set another number, distinct sets distinct ones.
    pub(super) fn renumber(&mut self, number: impl Fn(u32) -> u32) {
        for set in &mut self.set_of {
            *set = number(*set);
        }
    }

    /// The same in regions of their own, without an index.
    pub(super) fn fixed(&self) -> FixedStretches {
        Stretches {
            starts: Array::copy_from(&self.starts),
            set_of: Array::copy_from(&self.set_of),
            blocks: Vec::new(),
            block_bits: 0,
        }
    }
}

impl<S: Deref<Target = [u64]>, N: Deref<Target = [u32]>> Stretches<S, N> {
    /// The stretches of these parts, from number 0 on; `None` if there can be none such.
    pub(super) fn from_parts(starts: S, set_of: N) -> Option<Self> {
        let same_length = starts.len() == set_of.len() + 1 && !set_of.is_empty();
        let few = u32::try_from(set_of.len()).is_ok();
        let sound = (starts.is_empty() && set_of.is_empty())
            || (same_length
                && few
                && starts[0] == 0
                && starts.is_sorted_by(|a, b| a < b)
                && starts.last().is_some_and(|end| *end < 1 << PAYLOAD_BITS));
        sound.then_some(Self {
            starts,
            set_of,
            blocks: Vec::new(),
            block_bits: 0,
        })
    }

    /// First number of each stretch and one more, and the set of each.
    pub(super) fn parts(&self) -> (&S, &N) {
        (&self.starts, &self.set_of)
    }

    /// Number of stretches.
    pub(crate) fn len(&self) -> usize {
        self.set_of.len()
    }

    /// The number behind the last.
    pub(crate) fn end(&self) -> u64 {
        self.starts.last().copied().unwrap_or(0)
    }

    /// The same with an index of blocks of numbers where there are many: a search costs three
    /// loads then, mostly, and the index no more than a byte a stretch.
    pub(crate) fn indexed(mut self) -> Self {
        self.blocks.clear();
        if self.len() < LEAST_INDEXED {
            return self;
        }
        let most = (self.len() / PER_BLOCK) as u64;
        self.block_bits = 0;
        while (self.end() - 1) >> self.block_bits >= most {
            self.block_bits += 1;
        }
        let blocks = ((self.end() - 1) >> self.block_bits) + 1;
        let mut stretch = 0;
        let first_in = |block: u64| {
            while self.starts[stretch + 1] <= block << self.block_bits {
                stretch += 1;
            }
            stretch as u32
        };
        self.blocks = (0..blocks).map(first_in).collect();
        self
    }

    /// The stretch that holds a number: a binary search, within a block where there is an index.
    #[inline]
    pub(crate) fn at(&self, number: u64) -> Option<usize> {
        if number >= self.end() {
            return None;
        }
        let (mut first, mut last) = (0, self.len() - 1);
        if !self.blocks.is_empty() {
            let block = (number >> self.block_bits) as usize;
            first = self.blocks[block] as usize;
            if let Some(next) = self.blocks.get(block + 1) {
                last = *next as usize;
            }
        }
        let behind = &self.starts[first + 1..=last];
        Some(first + behind.partition_point(|start| *start <= number))
    }

    /// The numbers of a stretch.
    #[inline]
    pub(crate) fn members(&self, stretch: usize) -> Range<u64> {
        self.starts[stretch]..self.starts[stretch + 1]
    }

    /// The set of a stretch.
    #[inline]
    pub(crate) fn set(&self, stretch: usize) -> usize {
        self.set_of[stretch] as usize
    }

    /// The numbers and the set of each stretch, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Range<u64>, usize)> + '_ {
        (0..self.len()).map(|stretch| (self.members(stretch), self.set(stretch)))
    }

    pub(crate) fn bytes(&self) -> usize {
        self.starts.len() * 8 + (self.set_of.len() + self.blocks.len()) * 4
    }
}
