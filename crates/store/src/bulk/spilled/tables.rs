//! The keys of terms, which lie in the order of texts -> the tables of the dictionary, by number.
//!
//! Literals are numbered in the order of their texts. Vertices are dealt into buckets of consecutive
//! numbers first, each of which fits into memory.

use std::sync::Arc;

use jindou_dictionary::{DictionaryError, StringTable, TableFrame, TableWriter};
use xxhash_rust::xxh3::Xxh3;

use super::keys::{KeyReader, KeyWriter, Keys};
use super::scratch::{Appender, Scratch, ScratchFile};
use crate::StoreError;
use crate::tables::TermTables;

/// Bytes that are gathered for a file, and read at once.
const GATHERED: usize = 1 << 20;
/// The same of a bucket, of which several are open.
const BUCKET_GATHERED: usize = 64 << 10;
/// The most buckets: each is a file that is open.
const MOST_BUCKETS: u64 = 256;
/// Bytes that a key takes in a bucket beside its own.
const PLACE_BYTES: u64 = 16;

fn too_large(error: DictionaryError) -> StoreError {
    StoreError::TooLarge {
        reason: error.to_string(),
    }
}

/// The table of keys that are numbered in their order.
pub(super) fn literal_tables(
    keys: &Keys,
    scratch: &Arc<Scratch>,
) -> Result<TermTables, StoreError> {
    let mut table = TableOut::new(keys.count, scratch)?;
    let mut reader = keys.read(GATHERED);
    while reader.advance()? {
        table.push(reader.key())?;
    }
    table.finish()
}

/// The table of keys whose numbers are given in their order; holds about so many bytes beside the
/// table's index.
pub(super) fn vertex_tables(
    keys: &Keys,
    numbers: &[u32],
    scratch: &Arc<Scratch>,
    bytes: u64,
) -> Result<TermTables, StoreError> {
    let needed = keys.key_bytes + PLACE_BYTES * keys.count;
    // Keys are not of one length, so that some buckets are larger than others.
    let wanted = (2 * needed).div_ceil(bytes.max(1));
    let buckets = wanted.clamp(1, MOST_BUCKETS.min(keys.count.max(1)));
    let size = keys.count.div_ceil(buckets).max(1);
    let mut table = TableOut::new(keys.count, scratch)?;
    let mut reader = keys.read(GATHERED);
    if buckets == 1 {
        let mut bucket = Bucket::new(0, keys.count);
        for number in numbers {
            reader.advance()?;
            bucket.put(*number, reader.key());
        }
        bucket.give(&mut table)?;
        return table.finish();
    }
    let dealt = deal(&mut reader, numbers, size as u32, scratch)?;
    for (keys, place) in dealt.into_iter().zip(0..) {
        let first = place * size;
        let mut bucket = Bucket::new(first, size.min(table.count - first));
        let mut reader = keys.read(GATHERED);
        while let Some(number) = reader.advance_numbered()? {
            bucket.put(number, reader.key());
        }
        bucket.give(&mut table)?;
    }
    table.finish()
}

/// Deals keys into buckets of so many numbers each.
fn deal(
    reader: &mut KeyReader,
    numbers: &[u32],
    size: u32,
    scratch: &Arc<Scratch>,
) -> Result<Vec<Keys>, StoreError> {
    let buckets = (numbers.len() as u64).div_ceil(size.into());
    let bucket = |_| {
        let file = scratch.create()?;
        Ok(KeyWriter::new(Appender::at(file, 0, BUCKET_GATHERED)))
    };
    let buckets: Result<Vec<KeyWriter>, StoreError> = (0..buckets).map(bucket).collect();
    let mut buckets = buckets?;
    for number in numbers {
        reader.advance()?;
        buckets[(number / size) as usize].push_numbered(*number, reader.key())?;
    }
    let finished = buckets.into_iter().map(|bucket| Ok(bucket.finish()?.0));
    finished.collect()
}

/// Keys of consecutive numbers, which come in any order.
struct Bucket {
    first: u64,
    /// Where each key begins among the texts, and its length.
    places: Vec<(u64, u32)>,
    texts: Vec<u8>,
}

impl Bucket {
    fn new(first: u64, count: u64) -> Self {
        Self {
            first,
            places: vec![(0, 0); count as usize],
            texts: Vec::new(),
        }
    }

    fn put(&mut self, number: u32, key: &[u8]) {
        let place = (u64::from(number) - self.first) as usize;
        // The dictionary has no key of 4 GiB: the interner refused it.
        self.places[place] = (self.texts.len() as u64, key.len() as u32);
        self.texts.extend_from_slice(key);
    }

    fn give(self, table: &mut TableOut) -> Result<(), StoreError> {
        for (begin, length) in &self.places {
            let begin = *begin as usize;
            table.push(&self.texts[begin..begin + *length as usize])?;
        }
        Ok(())
    }
}

/// A table on its way into a file.
struct TableOut {
    count: u64,
    writer: TableWriter,
    data: Appender,
    file: Arc<ScratchFile>,
}

impl TableOut {
    fn new(count: u64, scratch: &Arc<Scratch>) -> Result<Self, StoreError> {
        let file = scratch.create()?;
        let begin = TableFrame::most_before(count);
        Ok(Self {
            count,
            writer: TableWriter::new(count).map_err(too_large)?,
            data: Appender::at(Arc::clone(&file), begin, GATHERED),
            file,
        })
    }

    fn push(&mut self, key: &[u8]) -> Result<(), StoreError> {
        self.data.push(self.writer.push(key).map_err(too_large)?)
    }

    /// Writes what surrounds the data, and maps all.
    fn finish(mut self) -> Result<TermTables, StoreError> {
        let frame = self.writer.finish().map_err(too_large)?;
        self.data.flush()?;
        let (begin, end) = (TableFrame::most_before(self.count), self.data.end());
        let mut hasher = Xxh3::new();
        hasher.update(frame.before());
        let mut read = vec![0; GATHERED];
        let mut at = begin;
        while at < end {
            let count = read.len().min((end - at) as usize);
            self.file.read(&mut read[..count], at)?;
            hasher.update(&read[..count]);
            at += count as u64;
        }
        hasher.update(frame.after());
        let header = frame.header(hasher.digest());
        let before = frame.before().len() as u64;
        let first = begin - before - header.len() as u64;
        self.file.write(&header, first)?;
        self.file.write(frame.before(), begin - before)?;
        self.file.write(frame.after(), end)?;
        let length = end - first + frame.after().len() as u64;
        drop(frame);
        let map = self.file.map()?;
        let region = map.slice(first as usize..(first + length) as usize);
        let table = StringTable::open(region).map_err(too_large)?;
        map.let_go();
        TermTables::new(table).map_err(too_large)
    }
}
