//! Is this id one of a set that is many ranges? Two loads tell, and no comparison.

/// Ids of a block: their bits are one line of the cache.
const BLOCK_BITS: u32 = 9;
const WORDS: usize = 1 << (BLOCK_BITS - 6);
/// Patterns of blocks of which no id, or each, is in the set.
const NONE: u32 = 0;
const ALL: u32 = 1;
/// Bytes that the blocks may take, for each range or in all.
const BYTES_PER_RANGE: usize = 1 << 10;
const LEAST_BYTES: usize = 1 << 16;

/// A bitmap in blocks: those that are empty or full share their bits.
#[derive(Clone, Debug, Default)]
pub(crate) struct Blocks {
    /// By block, the number of its pattern.
    of: Vec<u32>,
    patterns: Vec<[u64; WORDS]>,
}

impl Blocks {
    /// Of sorted, disjoint ranges, of which the first begins at `low` and the last ends at `high`;
    /// `None` where it would be much larger than they are.
    ///
    /// Costs the blocks between these.
    pub(crate) fn new(ranges: &[(u64, u64)], low: u64, high: u64) -> Option<Self> {
        let most = LEAST_BYTES.max(ranges.len() * BYTES_PER_RANGE);
        let count = usize::try_from((high - low) >> BLOCK_BITS).ok()? + 1;
        let mixed = 2 * ranges.len().min(count);
        if count * size_of::<u32>() + mixed * size_of::<[u64; WORDS]>() > most {
            return None;
        }
        let mut blocks = Self {
            of: vec![NONE; count],
            patterns: vec![[0; WORDS], [u64::MAX; WORDS]],
        };
        for (first, end) in ranges {
            blocks.add(first - low, end - low);
        }
        Some(blocks)
    }

    /// Adds the ids of a range, counted from the first of the set.
    fn add(&mut self, mut first: u64, end: u64) {
        while first < end {
            let block = first >> BLOCK_BITS;
            let block_end = (block + 1) << BLOCK_BITS;
            let to = end.min(block_end);
            if to - first == 1 << BLOCK_BITS {
                self.of[block as usize] = ALL;
            } else {
                let pattern = self.own_pattern(block as usize);
                for id in first..to {
                    let bit = id % (1 << BLOCK_BITS);
                    pattern[(bit / 64) as usize] |= 1 << (bit % 64);
                }
            }
            first = to;
        }
    }

    fn own_pattern(&mut self, block: usize) -> &mut [u64; WORDS] {
        if self.of[block] == NONE {
            self.of[block] = self.patterns.len() as u32;
            self.patterns.push([0; WORDS]);
        }
        &mut self.patterns[self.of[block] as usize]
    }

    /// Is this id, counted from the first of the set, in it? None behind the last is.
    #[inline]
    pub(crate) fn has(&self, id: u64) -> bool {
        let block = self.of.get((id >> BLOCK_BITS) as usize);
        let pattern = &self.patterns[block.copied().unwrap_or(NONE) as usize];
        pattern[(id / 64) as usize % WORDS] >> (id % 64) & 1 == 1
    }
}
