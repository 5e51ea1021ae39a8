//! Which numbers may the terms of a hash have, whose strings are elsewhere?
//!
//! A dictionary that is dealt to nodes has the string of a term where its number says, and what finds the number
//! where the hash of the string says. The index is that of a string table, with numbers in its slots, in a region of
//! its own:
//!
//! ```text
//! header     HEADER bytes: magic, version, flags, entries, checksum of the buckets, checksum of the header
//! buckets    as those of a string table
//! ```

use std::fmt;

use jindou_fabric::{Region, RegionBuilder};
use rayon::prelude::*;
use xxhash_rust::xxh3::xxh3_64;

use crate::error::DictionaryError;
use crate::index::{self, Index, Parts, Sorted};
use crate::layout::{read_u32, read_u64};

const MAGIC: [u8; 8] = *b"JINDHIDX";
const VERSION: u32 = 1;
const WIDE: u32 = 1;
const HEADER: usize = 64;
/// Where the header's own checksum lies: at its end.
const CHECKSUM: usize = HEADER - 8;
/// Entries that one task sorts.
const RUN: usize = 1 << 16;

/// The numbers of some strings by the [hashes](crate::hash) of these. Clones share the region.
#[derive(Clone)]
pub struct HashIndex {
    region: Region,
    len: u64,
    buckets: usize,
    wide: bool,
}

/// What the buckets go by: the hashes of one node share their lowest bits, which a tag would be made of.
#[inline]
fn spread(hash: u64) -> u64 {
    const TAG: u64 = 0xff;
    const OTHER_BITS: u32 = 24;
    (hash & !TAG) | (hash >> OTHER_BITS & TAG)
}

impl HashIndex {
    /// The index of these hashes and numbers, on all threads of the current pool. Needs 16 bytes an entry beside
    /// the result.
    ///
    /// # Errors
    /// [`DictionaryError::TooMany`] of more entries than memory can hold.
    pub fn build(entries: &[(u64, u64)]) -> Result<Self, DictionaryError> {
        let len = entries.len() as u64;
        let too_many = DictionaryError::TooMany {
            strings: len,
            limit: u32::MAX.into(),
        };
        let buckets = index::buckets_for(len).ok_or(too_many)?;
        let wide = entries.iter().any(|(_, number)| *number > u32::MAX.into());
        let parts = Parts::new(buckets);
        let sorted = |run: &[(u64, u64)]| {
            let run = run.iter().map(|(hash, number)| (spread(*hash), *number));
            Sorted::of(run, parts)
        };
        let runs: Vec<Sorted> = entries.par_chunks(RUN).map(sorted).collect();
        let mut builder =
            RegionBuilder::new(HEADER + (buckets * index::bucket_bytes(wide)).next_multiple_of(8));
        let bytes = builder.as_mut_slice::<u8>();
        let end = HEADER + buckets * index::bucket_bytes(wide);
        index::fill(&mut bytes[HEADER..end], parts, wide, &runs);
        let checksum = xxh3_64(&bytes[HEADER..]);
        let header = header(len, wide, checksum);
        bytes[..HEADER].copy_from_slice(&header);
        Self::open(builder.finish())
    }

    /// The index whose [`Self::region`] was this one. Reads the header; damage of what follows is found by
    /// [`Self::verify`], and undetected gives numbers of other strings, or none.
    ///
    /// # Errors
    /// If it is no such index, or one of another version, or damaged.
    pub fn open(region: Region) -> Result<Self, DictionaryError> {
        let damaged = |what| DictionaryError::Damaged { what };
        if region.get(..8) != Some(&MAGIC[..]) {
            return Err(damaged("it is no index of hashes"));
        }
        let found = region
            .get(..HEADER)
            .ok_or(damaged("the header of the index of hashes is cut short"))?;
        let version = read_u32(found, 8);
        if version != VERSION {
            let supported = VERSION;
            let found = version;
            return Err(DictionaryError::Version { found, supported });
        }
        let (len, wide) = (read_u64(found, 16), read_u32(found, 12) & WIDE != 0);
        if header(len, wide, read_u64(found, 24)) != found {
            return Err(damaged("the header of the index of hashes is altered"));
        }
        let expected = index::buckets_for(len).and_then(|buckets| {
            let bytes = buckets.checked_mul(index::bucket_bytes(wide))?;
            let end = bytes.checked_next_multiple_of(8)?.checked_add(HEADER)?;
            Some((buckets, end))
        });
        match expected {
            Some((buckets, end)) if end == region.len() => Ok(Self {
                region,
                len,
                buckets,
                wide,
            }),
            _ => Err(damaged("the index of hashes has another length")),
        }
    }

    /// Reads all of it and tests it against its checksum.
    ///
    /// # Errors
    /// [`DictionaryError::Damaged`] if they differ.
    pub fn verify(&self) -> Result<(), DictionaryError> {
        if xxh3_64(&self.region[HEADER..]) != read_u64(&self.region, 24) {
            let what = "the index of hashes does not match its checksum";
            return Err(DictionaryError::Damaged { what });
        }
        Ok(())
    }

    /// Its bytes, to be written to a file and opened again.
    #[must_use]
    pub fn region(&self) -> &Region {
        &self.region
    }

    /// How many strings it has the numbers of.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// True if it has none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Gives `take` the numbers that the string of a hash may have, among which is its own if it has one here: one
    /// in some ten is another string's. One or two loads from memory.
    #[inline]
    pub fn candidates(&self, hash: u64, mut take: impl FnMut(u64)) {
        let end = HEADER + self.buckets * index::bucket_bytes(self.wide);
        let index = Index::new(&self.region[HEADER..end], self.buckets, self.wide);
        index.find(spread(hash), |number| {
            take(number);
            false
        });
    }
}

impl fmt::Debug for HashIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "HashIndex({} strings, {} bytes)",
            self.len,
            self.region.len()
        )
    }
}

fn header(len: u64, wide: bool, checksum: u64) -> [u8; HEADER] {
    let mut header = [0; HEADER];
    header[..8].copy_from_slice(&MAGIC);
    header[8..12].copy_from_slice(&VERSION.to_le_bytes());
    header[12..16].copy_from_slice(&(u32::from(wide) * WIDE).to_le_bytes());
    header[16..24].copy_from_slice(&len.to_le_bytes());
    header[24..32].copy_from_slice(&checksum.to_le_bytes());
    let own = xxh3_64(&header[..CHECKSUM]);
    header[CHECKSUM..].copy_from_slice(&own.to_le_bytes());
    header
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(count: u64, stride: u64) -> Vec<(u64, u64)> {
        let string = |number: u64| format!("http://example.org/{number}");
        let entry = |number| (crate::hash(string(number).as_bytes()), number * stride);
        (0..count).map(entry).collect()
    }

    fn found(index: &HashIndex, hash: u64) -> Vec<u64> {
        let mut found = Vec::new();
        index.candidates(hash, |number| found.push(number));
        found
    }

    #[test]
    fn each_number_is_among_few_candidates_of_its_hash() {
        for (count, stride) in [(0, 1), (1, 1), (70_000, 3), (3_000, 1 << 33)] {
            // As of a node that has one of 64 shards.
            let mut of_node = entries(count, stride);
            of_node
                .iter_mut()
                .for_each(|(hash, _)| *hash = *hash & !63 | 5);
            let index = HashIndex::build(&of_node).unwrap();
            assert_eq!(index.len(), count);
            let mut all = 0;
            for (hash, number) in &of_node {
                let found = found(&index, *hash);
                assert!(found.contains(number), "{number}");
                all += found.len() as u64;
            }
            assert!(all <= count + count / 6, "{all} of {count}");
            index.verify().unwrap();
        }
    }

    #[test]
    fn an_index_is_read_as_it_was_written_and_an_altered_one_is_refused() {
        let of_node = entries(1_000, 7);
        let index = HashIndex::build(&of_node).unwrap();
        let again = HashIndex::open(index.region().clone()).unwrap();
        for (hash, _) in &of_node {
            assert_eq!(found(&again, *hash), found(&index, *hash));
        }
        for place in 0..HEADER {
            let mut bytes = index.region().to_vec();
            bytes[place] ^= 1;
            assert!(
                HashIndex::open(Region::copy_from(&bytes)).is_err(),
                "{place}"
            );
        }
        for length in [0, 7, HEADER - 1, HEADER, index.region().len() - 8] {
            let cut = Region::copy_from(&index.region()[..length]);
            assert!(HashIndex::open(cut).is_err(), "{length}");
        }
        let mut bytes = index.region().to_vec();
        bytes[HEADER + 3] ^= 1;
        let altered = HashIndex::open(Region::copy_from(&bytes)).unwrap();
        assert!(altered.verify().is_err());
    }
}
