//! How is a string table made, with all processors?
//!
//! Runs of strings are front-coded and hashed in parallel; then the sizes are known, the region
//! is allocated, and the runs are copied and the parts of the index filled in parallel. The bytes
//! depend on the strings alone, not on the number of threads.

use jindou_fabric::{Region, RegionBuilder};
use rayon::prelude::*;
use xxhash_rust::xxh3::xxh3_64;

use crate::block::{BLOCK, push_block};
use crate::error::DictionaryError;
use crate::index::{self, Parts, Sorted};
use crate::layout::{HEADER, Layout};

/// Strings that one task encodes.
const RUN: usize = 1 << 16;

/// What is said of a table that is larger than an address space.
const TOO_LARGE: DictionaryError = DictionaryError::TooLong {
    bytes: usize::MAX,
    limit: isize::MAX as usize,
};

/// A run of strings, encoded.
pub(crate) struct Run {
    data: Vec<u8>,
    /// Where each block begins in the data of this run.
    starts: Vec<usize>,
    /// None of a table without an index.
    sorted: Option<Sorted>,
}

/// A run that is being encoded, block by block.
pub(crate) struct RunBuilder {
    first_id: u64,
    data: Vec<u8>,
    starts: Vec<usize>,
    hashes: Vec<u64>,
}

impl RunBuilder {
    /// A run of about `len` strings, whose first has the id `first_id`: a multiple of [`BLOCK`].
    pub(crate) fn new(first_id: u64, len: usize) -> Self {
        Self {
            first_id,
            data: Vec::new(),
            starts: Vec::with_capacity(len.div_ceil(BLOCK)),
            hashes: Vec::with_capacity(len),
        }
    }

    /// Appends one block: [`BLOCK`] strings, or fewer as the last of the table.
    pub(crate) fn push(&mut self, strings: &[&[u8]]) -> Result<(), DictionaryError> {
        self.hashes.extend(strings.iter().map(|s| crate::hash(s)));
        self.starts.push(self.data.len());
        push_block(&mut self.data, strings)
    }

    pub(crate) fn finish(self, parts: Option<Parts>) -> Run {
        Run {
            data: self.data,
            starts: self.starts,
            sorted: parts.map(|parts| Sorted::new(self.first_id, &self.hashes, parts)),
        }
    }
}

/// How the index of `len` strings is divided.
pub(crate) fn parts_for(len: u64) -> Result<Parts, DictionaryError> {
    index::buckets_for(len).map(Parts::new).ok_or(TOO_LARGE)
}

/// The bytes of the table of `len` strings, with an index or without.
///
/// Besides the result, this holds the strings' encoded bytes once more and 16 bytes a string.
pub(crate) fn build<'a, F>(len: usize, key: &F, has_index: bool) -> Result<Region, DictionaryError>
where
    F: Fn(usize) -> &'a [u8] + Sync,
{
    let parts = has_index.then(|| parts_for(len as u64)).transpose()?;
    let runs: Vec<Run> = (0..len.div_ceil(RUN))
        .into_par_iter()
        .map(|run| encode(run * RUN..len.min((run + 1) * RUN), key, parts))
        .collect::<Result<_, _>>()?;
    assemble(len as u64, parts, runs)
}

/// The bytes of the table of `len` strings that lie in these runs, one after the other.
pub(crate) fn assemble(
    len: u64,
    parts: Option<Parts>,
    runs: Vec<Run>,
) -> Result<Region, DictionaryError> {
    let data_bytes = runs.iter().map(|run| run.data.len()).sum();
    let layout = Layout::new(len, data_bytes, parts.is_some()).ok_or(TOO_LARGE)?;
    Ok(join(&layout, parts, runs))
}

/// Puts the runs together as `layout` has it.
fn join(layout: &Layout, parts: Option<Parts>, runs: Vec<Run>) -> Region {
    let mut builder = RegionBuilder::new(layout.bytes());
    let bytes = builder.as_mut_slice::<u8>();
    fill_offsets(&mut bytes[layout.offsets.clone()], layout, &runs);
    fill_data(&mut bytes[layout.data.clone()], &runs);
    if let Some(parts) = parts {
        let sorted: Vec<Sorted> = runs.into_iter().filter_map(|run| run.sorted).collect();
        let buckets = &mut bytes[layout.index.clone()];
        index::fill(buckets, parts, layout.wide_ids, &sorted);
    }
    let checksum = xxh3_64(&bytes[HEADER..]);
    bytes[..HEADER].copy_from_slice(&layout.header(checksum));
    builder.finish()
}

fn encode<'a, F>(
    ids: std::ops::Range<usize>,
    key: &F,
    parts: Option<Parts>,
) -> Result<Run, DictionaryError>
where
    F: Fn(usize) -> &'a [u8] + Sync,
{
    let mut run = RunBuilder::new(ids.start as u64, ids.len());
    for first in ids.clone().step_by(BLOCK) {
        let count = BLOCK.min(ids.end - first);
        let mut strings: [&[u8]; BLOCK] = [&[]; BLOCK];
        for (place, string) in strings[..count].iter_mut().enumerate() {
            *string = key(first + place);
        }
        run.push(&strings[..count])?;
    }
    Ok(run.finish(parts))
}

fn fill_offsets(bytes: &mut [u8], layout: &Layout, runs: &[Run]) {
    let mut bytes = bytes.chunks_exact_mut(layout.offset_bytes());
    let mut put = |offset: usize| {
        let slot = bytes.next().expect("an offset for each block and one more");
        slot.copy_from_slice(&(offset as u64).to_le_bytes()[..slot.len()]);
    };
    let mut base = 0;
    for run in runs {
        run.starts.iter().for_each(|start| put(base + start));
        base += run.data.len();
    }
    put(base);
}

fn fill_data(mut bytes: &mut [u8], runs: &[Run]) {
    let mut copies = Vec::with_capacity(runs.len());
    for run in runs {
        let (target, rest) = bytes.split_at_mut(run.data.len());
        bytes = rest;
        copies.push((target, &run.data));
    }
    copies
        .into_par_iter()
        .for_each(|(target, data)| target.copy_from_slice(data));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::StringTable;

    #[test]
    fn tables_with_wide_offsets_and_ids_answer_as_narrow_ones_do() {
        let strings: Vec<String> = (0..1_000)
            .map(|i| format!("http://example.org/{i}"))
            .collect();
        let key = |id: usize| strings[id].as_bytes();
        let parts = Some(Parts::new(index::buckets_for(1_000).unwrap()));
        for widths in [(false, false), (false, true), (true, false), (true, true)] {
            let run = encode(0..1_000, &key, parts).unwrap();
            let data = run.data.len();
            let layout = Layout::with_widths(1_000, data, true, widths).unwrap();
            let table = StringTable::open(join(&layout, parts, vec![run])).unwrap();
            let mut decoder = table.decoder();
            for (id, string) in strings.iter().enumerate() {
                assert_eq!(decoder.get(id as u64), Ok(string.as_bytes()));
                assert_eq!(table.lookup(string.as_bytes()), Some(id as u64));
            }
            assert_eq!(table.lookup(b"http://example.org/1000"), None);
        }
    }
}
