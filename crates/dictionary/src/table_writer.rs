//! How is a string table made of strings that come one by one, when all of them do not fit into
//! memory?
//!
//! Blocks leave as soon as they are full, for a file. What is held are the offsets of blocks and
//! the index, 6.5 bytes a string. The bytes are those that [`StringTable::build`] makes.
//!
//! [`StringTable::build`]: crate::StringTable::build

use crate::block::{BLOCK, push_block};
use crate::build::parts_for;
use crate::error::DictionaryError;
use crate::index::{self, Filling};
use crate::layout::{HEADER, Layout};

/// Makes the table of a known number of strings.
///
/// ```
/// use jindou_dictionary::{StringTable, TableWriter};
///
/// let terms = ["http://example.org/a", "http://example.org/b"];
/// let mut writer = TableWriter::new(terms.len() as u64)?;
/// let mut data = Vec::new();
/// for term in terms {
///     data.extend_from_slice(writer.push(term.as_bytes())?);
/// }
/// let frame = writer.finish()?;
/// let body = [frame.before(), &data, frame.after()].concat();
/// let table = [&frame.header(xxhash_rust::xxh3::xxh3_64(&body))[..], &body].concat();
/// let same = StringTable::build(terms.len(), |id| terms[id].as_bytes())?;
/// assert_eq!(table, same.region()[..]);
/// # Ok::<(), jindou_dictionary::DictionaryError>(())
/// ```
pub struct TableWriter {
    len: u64,
    given: u64,
    /// The strings of the block that is not full, one after the other, and where each ends.
    strings: Vec<u8>,
    ends: Vec<usize>,
    block: Vec<u8>,
    /// Where each block begins.
    starts: Vec<u64>,
    data_bytes: u64,
    index: Filling,
}

/// What surrounds the blocks of a table.
pub struct TableFrame {
    layout: Layout,
    before: Vec<u8>,
    after: Vec<u8>,
}

impl TableWriter {
    /// A table of `len` strings.
    ///
    /// # Errors
    /// [`DictionaryError::TooLong`] if no address space has room for their index.
    pub fn new(len: u64) -> Result<Self, DictionaryError> {
        Ok(Self {
            len,
            given: 0,
            strings: Vec::new(),
            ends: Vec::with_capacity(BLOCK),
            block: Vec::new(),
            starts: Vec::with_capacity(len.div_ceil(BLOCK as u64) as usize),
            data_bytes: 0,
            index: Filling::new(parts_for(len)?, len > 1 << 32),
        })
    }

    /// Bytes held in memory while a table of `len` strings is made.
    #[must_use]
    pub fn bytes_for(len: u64) -> u64 {
        let wide = len > 1 << 32;
        let buckets = index::buckets_for(len).unwrap_or(usize::MAX) as u64;
        buckets.saturating_mul(index::bucket_bytes(wide) as u64) + len.div_ceil(BLOCK as u64) * 12
    }

    /// Takes the next string, in the order of ids; gives the bytes that come next in the table's
    /// data, which are mostly none.
    ///
    /// # Errors
    /// As [`StringTable::build`](crate::StringTable::build).
    ///
    /// # Panics
    /// If there are more strings than were announced.
    pub fn push(&mut self, string: &[u8]) -> Result<&[u8], DictionaryError> {
        assert!(self.given < self.len, "the table has all of its strings");
        self.index.put(crate::hash(string), self.given);
        self.given += 1;
        self.strings.extend_from_slice(string);
        self.ends.push(self.strings.len());
        self.block.clear();
        if self.ends.len() == BLOCK || self.given == self.len {
            self.close_block()?;
        }
        Ok(&self.block)
    }

    fn close_block(&mut self) -> Result<(), DictionaryError> {
        let mut strings: [&[u8]; BLOCK] = [&[]; BLOCK];
        let mut begin = 0;
        for (string, end) in strings.iter_mut().zip(&self.ends) {
            *string = &self.strings[begin..*end];
            begin = *end;
        }
        push_block(&mut self.block, &strings[..self.ends.len()])?;
        self.starts.push(self.data_bytes);
        self.data_bytes += self.block.len() as u64;
        self.strings.clear();
        self.ends.clear();
        Ok(())
    }

    /// What surrounds the data of all strings.
    ///
    /// # Errors
    /// [`DictionaryError::TooLong`] if the table is larger than an address space.
    ///
    /// # Panics
    /// If there are fewer strings than were announced.
    pub fn finish(self) -> Result<TableFrame, DictionaryError> {
        assert!(self.given == self.len, "the table has all of its strings");
        let too_large = DictionaryError::TooLong {
            bytes: usize::MAX,
            limit: isize::MAX as usize,
        };
        let data_bytes = usize::try_from(self.data_bytes).ok();
        let layout = data_bytes.and_then(|bytes| Layout::new(self.len, bytes, true));
        let layout = layout.ok_or(too_large)?;
        let mut before = Vec::with_capacity(layout.data.start - HEADER);
        for offset in self.starts.iter().chain([&self.data_bytes]) {
            before.extend_from_slice(&offset.to_le_bytes()[..layout.offset_bytes()]);
        }
        before.resize(layout.data.start - HEADER, 0);
        let mut after = self.index.finish();
        let padding = layout.index.start - layout.data.end;
        after.splice(0..0, std::iter::repeat_n(0, padding));
        after.resize(layout.bytes() - layout.data.end, 0);
        Ok(TableFrame {
            layout,
            before,
            after,
        })
    }
}

impl TableFrame {
    /// The bytes before the data, but for the header.
    #[must_use]
    pub fn before(&self) -> &[u8] {
        &self.before
    }

    /// The bytes after the data.
    #[must_use]
    pub fn after(&self) -> &[u8] {
        &self.after
    }

    /// The first bytes of the table, given the XXH3 of all that follows them.
    #[must_use]
    pub fn header(&self, checksum: u64) -> [u8; HEADER] {
        self.layout.header(checksum)
    }

    /// Bytes before the data of a table of `len` strings at the most: where the data may begin while
    /// it is not known how long it will be. Those of the table are fewer by a multiple of eight.
    #[must_use]
    pub fn most_before(len: u64) -> u64 {
        HEADER as u64 + (len.div_ceil(BLOCK as u64) + 1) * 8
    }
}

#[cfg(test)]
mod tests {
    use xxhash_rust::xxh3::xxh3_64;

    use super::*;
    use crate::StringTable;

    #[test]
    fn a_table_written_string_by_string_is_the_one_built_at_once() {
        for len in [0_usize, 1, 15, 16, 17, 1_000, 70_000] {
            let strings: Vec<String> = (0..len).map(|i| format!("http://e/{}", i * 7)).collect();
            let built = StringTable::build(len, |id| strings[id].as_bytes()).unwrap();
            let mut writer = TableWriter::new(len as u64).unwrap();
            let mut data = Vec::new();
            for string in &strings {
                data.extend_from_slice(writer.push(string.as_bytes()).unwrap());
            }
            let frame = writer.finish().unwrap();
            let body = [frame.before(), &data, frame.after()].concat();
            let table = [&frame.header(xxh3_64(&body))[..], &body].concat();
            assert!(table == built.region()[..], "{len} strings");
            let before = (HEADER + frame.before().len()) as u64;
            let most = TableFrame::most_before(len as u64);
            assert!(before <= most && (most - before).is_multiple_of(8));
        }
    }
}
