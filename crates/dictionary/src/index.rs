//! Which ids may a term have, by its hash?
//!
//! Buckets of sixteen slots: sixteen tags of eight bits (0 is an empty slot), then sixteen ids of
//! four or eight bytes. A term lies in the bucket that the upper bits of its hash name or, that
//! being full, in the next one with room; a search ends at a bucket with an empty slot. At least
//! one slot in seven is empty, so most searches end where they begin.

use rayon::prelude::*;

use crate::layout::{read_u32, read_u64};

const SLOTS: usize = 16;
/// Strings for a number of buckets: 68 / 5 of 16 slots, a load of 0.85.
const LOAD: (u64, u64) = (68, 5);
/// Buckets that one thread fills at a time: half a megabyte, so that they stay in its cache.
const PART_BUCKETS_LOG2: u32 = 12;
/// The most parts that a build divides the buckets into.
const PARTS_LOG2: u32 = 8;

/// The buckets for `len` strings; `None` if there are too many to address.
pub(crate) fn buckets_for(len: u64) -> Option<usize> {
    let buckets = len.checked_mul(LOAD.1)?.div_ceil(LOAD.0).max(1);
    usize::try_from(buckets).ok()
}

/// Bytes of one bucket.
pub(crate) const fn bucket_bytes(wide: bool) -> usize {
    SLOTS + SLOTS * if wide { 8 } else { 4 }
}

#[inline]
fn home(hash: u64, buckets: usize) -> usize {
    ((u128::from(hash) * buckets as u128) >> 64) as usize
}

/// The tag of a hash: its lower bits, never 0.
#[inline]
fn tag(hash: u64) -> u8 {
    (hash as u8).max(1)
}

/// One bit for each slot whose tag is `tag`.
#[inline]
fn matches(bucket: &[u8], tag: u8) -> u32 {
    let mut tags = [0; SLOTS];
    tags.copy_from_slice(&bucket[..SLOTS]);
    let mut mask = 0;
    for (slot, found) in tags.iter().enumerate() {
        mask |= u32::from(*found == tag) << slot;
    }
    mask
}

/// A hash index to be searched.
#[derive(Clone, Copy)]
pub(crate) struct Index<'a> {
    bytes: &'a [u8],
    buckets: usize,
    wide: bool,
}

impl<'a> Index<'a> {
    pub(crate) fn new(bytes: &'a [u8], buckets: usize, wide: bool) -> Self {
        debug_assert_eq!(bytes.len(), buckets * bucket_bytes(wide));
        Self {
            bytes,
            buckets,
            wide,
        }
    }

    /// The first id that has this hash's tag and that `is_it` accepts.
    #[inline]
    pub(crate) fn find(&self, hash: u64, mut is_it: impl FnMut(u64) -> bool) -> Option<u64> {
        let tag = tag(hash);
        let mut number = home(hash, self.buckets);
        // A table that is not damaged has an empty slot, so this ends long before.
        for _ in 0..self.buckets {
            let bucket = self.bucket(number);
            let mut mask = matches(bucket, tag);
            while mask != 0 {
                let id = self.id(bucket, mask.trailing_zeros() as usize);
                if is_it(id) {
                    return Some(id);
                }
                mask &= mask - 1;
            }
            if matches(bucket, 0) != 0 {
                return None;
            }
            number = if number + 1 == self.buckets {
                0
            } else {
                number + 1
            };
        }
        None
    }

    /// The id that [`Self::find`] would look at first, if it lies in the bucket of its hash.
    #[inline]
    pub(crate) fn guess(&self, hash: u64) -> Option<u64> {
        // Of a table without an index.
        if self.buckets == 0 {
            return None;
        }
        let bucket = self.bucket(home(hash, self.buckets));
        let mask = matches(bucket, tag(hash));
        (mask != 0).then(|| self.id(bucket, mask.trailing_zeros() as usize))
    }

    #[inline]
    fn bucket(&self, number: usize) -> &'a [u8] {
        let bytes = bucket_bytes(self.wide);
        &self.bytes[number * bytes..][..bytes]
    }

    #[inline]
    fn id(&self, bucket: &[u8], slot: usize) -> u64 {
        if self.wide {
            read_u64(bucket, SLOTS + slot * 8)
        } else {
            u64::from(read_u32(bucket, SLOTS + slot * 4))
        }
    }
}

/// How the buckets are divided into parts that are filled apart.
#[derive(Clone, Copy)]
pub(crate) struct Parts {
    buckets: usize,
    shift: u32,
}

impl Parts {
    pub(crate) fn new(buckets: usize) -> Self {
        let most = usize::BITS - (buckets - 1).leading_zeros();
        let shift = PART_BUCKETS_LOG2.max(most.saturating_sub(PARTS_LOG2));
        Self { buckets, shift }
    }

    fn count(self) -> usize {
        ((self.buckets - 1) >> self.shift) + 1
    }

    fn of(self, hash: u64) -> usize {
        home(hash, self.buckets) >> self.shift
    }
}

/// The hashes of a run of strings, ordered by the part of the index that each belongs to.
pub(crate) struct Sorted {
    /// Hash and id.
    entries: Vec<(u64, u64)>,
    /// Where the entries of each part begin, and where the last end.
    starts: Vec<u32>,
}

impl Sorted {
    /// Orders the hashes of the strings with the ids from `first_id` on.
    pub(crate) fn new(first_id: u64, hashes: &[u64], parts: Parts) -> Self {
        Self::of(hashes.iter().copied().zip(first_id..), parts)
    }

    /// Orders hashes with their ids, which are fewer than 2^32.
    pub(crate) fn of(run: impl Iterator<Item = (u64, u64)> + Clone, parts: Parts) -> Self {
        let mut starts = vec![0_u32; parts.count() + 1];
        for (hash, _) in run.clone() {
            starts[parts.of(hash) + 1] += 1;
        }
        for part in 1..starts.len() {
            starts[part] += starts[part - 1];
        }
        let mut next = starts.clone();
        let mut entries = vec![(0, 0); starts[parts.count()] as usize];
        for (hash, id) in run {
            let next = &mut next[parts.of(hash)];
            entries[*next as usize] = (hash, id);
            *next += 1;
        }
        Self { entries, starts }
    }

    fn part(&self, part: usize) -> impl Iterator<Item = (u64, u64)> {
        let entries = &self.entries[self.starts[part] as usize..self.starts[part + 1] as usize];
        entries.iter().copied()
    }
}

/// Fills zeroed buckets with the runs' strings, in an order that no number of threads changes.
pub(crate) fn fill(bytes: &mut [u8], parts: Parts, wide: bool, runs: &[Sorted]) {
    let part_bytes = bucket_bytes(wide) << parts.shift;
    // What finds no room up to the end of its part waits until all parts are filled.
    let homeless: Vec<Vec<(u64, u64)>> = bytes
        .par_chunks_mut(part_bytes)
        .enumerate()
        .map(|(part, bytes)| {
            let mut homeless = Vec::new();
            for (hash, id) in runs.iter().flat_map(|run| run.part(part)) {
                let first = home(hash, parts.buckets) - (part << parts.shift);
                if !insert(bytes, wide, first, tag(hash), id) {
                    homeless.push((hash, id));
                }
            }
            homeless
        })
        .collect();
    place_homeless(bytes, parts, wide, homeless.into_iter().flatten());
}

/// An index whose strings come one by one, in the order of their ids: the same bytes as [`fill`] makes.
pub(crate) struct Filling {
    bytes: Vec<u8>,
    parts: Parts,
    wide: bool,
    /// By part, what found no room up to its end.
    homeless: Vec<Vec<(u64, u64)>>,
}

impl Filling {
    pub(crate) fn new(parts: Parts, wide: bool) -> Self {
        Self {
            bytes: vec![0; parts.buckets * bucket_bytes(wide)],
            parts,
            wide,
            homeless: vec![Vec::new(); parts.count()],
        }
    }

    pub(crate) fn put(&mut self, hash: u64, id: u64) {
        let part = self.parts.of(hash);
        let part_bytes = bucket_bytes(self.wide) << self.parts.shift;
        let begin = part * part_bytes;
        let end = self.bytes.len().min(begin + part_bytes);
        let first = home(hash, self.parts.buckets) - (part << self.parts.shift);
        let buckets = &mut self.bytes[begin..end];
        if !insert(buckets, self.wide, first, tag(hash), id) {
            self.homeless[part].push((hash, id));
        }
    }

    /// The buckets.
    pub(crate) fn finish(mut self) -> Vec<u8> {
        let homeless = self.homeless.into_iter().flatten();
        place_homeless(&mut self.bytes, self.parts, self.wide, homeless);
        self.bytes
    }
}

/// Puts strings that found no room up to the end of their part wherever there is some.
fn place_homeless(
    bytes: &mut [u8],
    parts: Parts,
    wide: bool,
    homeless: impl Iterator<Item = (u64, u64)>,
) {
    for (hash, id) in homeless {
        let first = home(hash, parts.buckets);
        let placed =
            insert(bytes, wide, first, tag(hash), id) || insert(bytes, wide, 0, tag(hash), id);
        assert!(placed, "an index has more slots than strings");
    }
}

/// Puts an id into the first bucket with room from `first` on; false if there is none.
fn insert(bytes: &mut [u8], wide: bool, first: usize, tag: u8, id: u64) -> bool {
    let bucket_bytes = bucket_bytes(wide);
    for bucket in bytes[first * bucket_bytes..].chunks_exact_mut(bucket_bytes) {
        let empty = matches(bucket, 0);
        if empty == 0 {
            continue;
        }
        let slot = empty.trailing_zeros() as usize;
        bucket[slot] = tag;
        if wide {
            bucket[SLOTS + slot * 8..][..8].copy_from_slice(&id.to_le_bytes());
        } else {
            bucket[SLOTS + slot * 4..][..4].copy_from_slice(&(id as u32).to_le_bytes());
        }
        return true;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(hashes: &[u64], wide: bool) -> Vec<u8> {
        let buckets = buckets_for(hashes.len() as u64).unwrap();
        let parts = Parts::new(buckets);
        let mut bytes = vec![0; buckets * bucket_bytes(wide)];
        let middle = hashes.len() / 2;
        let runs = [
            Sorted::new(0, &hashes[..middle], parts),
            Sorted::new(middle as u64, &hashes[middle..], parts),
        ];
        fill(&mut bytes, parts, wide, &runs);
        bytes
    }

    #[test]
    fn every_id_is_found_even_where_all_hashes_collide() {
        let spread = |id: u64| id.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let cases: [&dyn Fn(u64) -> u64; 4] = [&spread, &|_| 0, &|_| u64::MAX, &|id| id << 56];
        for hash_of in cases {
            for len in [0, 1, 13, 14, 15, 100, 3000] {
                let hashes: Vec<u64> = (0..len).map(hash_of).collect();
                for wide in [false, true] {
                    let bytes = filled(&hashes, wide);
                    let index = Index::new(&bytes, buckets_for(len).unwrap(), wide);
                    for (id, hash) in hashes.iter().enumerate() {
                        let id = id as u64;
                        assert_eq!(index.find(*hash, |found| found == id), Some(id));
                    }
                    assert_eq!(index.find(77 << 30, |_| false), None);
                }
            }
        }
    }

    #[test]
    fn strings_overflow_from_one_part_into_the_next() {
        let buckets = 3 << PART_BUCKETS_LOG2;
        let parts = Parts::new(buckets);
        // All belong to the last bucket of a part: of the first one, then of the last one.
        for end in [1_u128, 3] {
            let number = (end << PART_BUCKETS_LOG2) - 1;
            let hash = (number << 64).div_ceil(buckets as u128) as u64;
            assert_eq!(home(hash, buckets), number as usize);
            let mut bytes = vec![0; buckets * bucket_bytes(false)];
            fill(
                &mut bytes,
                parts,
                false,
                &[Sorted::new(0, &[hash; 40], parts)],
            );
            let index = Index::new(&bytes, buckets, false);
            for id in 0..40 {
                assert_eq!(index.find(hash, |found| found == id), Some(id));
            }
        }
    }

    #[test]
    fn a_large_index_has_a_bounded_number_of_parts() {
        for buckets in [1, 2, 4096, 4097, 1 << 20, (1 << 20) + 1, 1 << 40] {
            let count = Parts::new(buckets).count();
            assert!(
                (1..=1 << PARTS_LOG2).contains(&count),
                "{count} parts of {buckets}"
            );
        }
    }
}
