//! The immutable dictionary: strings with dense ids, both ways.

use std::fmt;

use jindou_fabric::Region;
use xxhash_rust::xxh3::xxh3_64;

use crate::block::{BLOCK, BLOCK_SHIFT, Block};
use crate::decoder::Decoder;
use crate::error::DictionaryError;
use crate::index::Index;
use crate::layout::{HEADER, Layout, read_u32, read_u64};

/// Keys of a batch that are looked up together.
pub(crate) const BATCH: usize = 32;

/// Distinct byte strings with the ids 0 to n - 1, in one region of memory.
///
/// Clones share the region. Strings that are neighbours by id and begin alike take few bytes; the
/// order is the builder's choice, and nothing depends on it but size.
#[derive(Clone)]
pub struct StringTable {
    region: Region,
    layout: Layout,
}

impl StringTable {
    /// A table of the strings `key(0)` to `key(len - 1)`, on all threads of the current pool.
    ///
    /// The strings must be distinct: of two equal ones [`Self::lookup`] finds one. `key` is called
    /// once for each id. Besides the result this needs its front-coded strings once more and 16
    /// bytes a string.
    ///
    /// # Errors
    /// [`DictionaryError::TooLong`] if a string has 256 MiB or more and, with the fifteen strings
    /// around it, does not fit into 4 GiB.
    ///
    /// ```
    /// use jindou_dictionary::StringTable;
    ///
    /// let terms = ["http://example.org/a", "http://example.org/b"];
    /// let table = StringTable::build(terms.len(), |id| terms[id].as_bytes())?;
    /// assert_eq!(table.lookup(b"http://example.org/b"), Some(1));
    /// assert_eq!(table.decoder().get(0)?, b"http://example.org/a");
    /// # Ok::<(), jindou_dictionary::DictionaryError>(())
    /// ```
    pub fn build<'a, F>(len: usize, key: F) -> Result<Self, DictionaryError>
    where
        F: Fn(usize) -> &'a [u8] + Sync,
    {
        Self::open(crate::build::build(len, &key, true)?)
    }

    /// As [`Self::build`], without what finds strings: [`Self::lookup`] knows none of them.
    ///
    /// # Errors
    /// As there.
    pub fn build_without_index<'a, F>(len: usize, key: F) -> Result<Self, DictionaryError>
    where
        F: Fn(usize) -> &'a [u8] + Sync,
    {
        Self::open(crate::build::build(len, &key, false)?)
    }

    /// The table whose [`Self::region`] was `region`.
    ///
    /// This reads the header and the offsets, a quarter of a byte a string, and tests that they
    /// lie within the region, so that nothing that is read later can lie outside. Damage to the
    /// strings or the index is found by [`Self::verify`]; undetected, it may give wrong strings
    /// and ids, but no panic.
    ///
    /// # Errors
    /// If the region is no string table, or one of another version, or damaged.
    pub fn open(region: Region) -> Result<Self, DictionaryError> {
        let (layout, _) = Layout::read(&region)?;
        let table = Self { region, layout };
        let parts = table.parts();
        let mut last = 0;
        for block in 0..=table.layout.blocks {
            let offset = parts.offset(block);
            if offset < last || offset > parts.data.len() || (block == 0 && offset > 0) {
                let what = "the offsets of blocks are out of order";
                return Err(DictionaryError::Damaged { what });
            }
            last = offset;
        }
        if last != parts.data.len() {
            let what = "the last block does not end where the data does";
            return Err(DictionaryError::Damaged { what });
        }
        Ok(table)
    }

    /// Reads the whole table and tests it against its checksum.
    ///
    /// # Errors
    /// [`DictionaryError::Damaged`] if they differ.
    pub fn verify(&self) -> Result<(), DictionaryError> {
        if xxh3_64(&self.region[HEADER..]) != self.checksum()? {
            let what = "the table does not match its checksum";
            return Err(DictionaryError::Damaged { what });
        }
        Ok(())
    }

    /// The checksum of all that follows the header: it tells this table from any other one.
    pub(crate) fn checksum(&self) -> Result<u64, DictionaryError> {
        Layout::read(&self.region).map(|(_, checksum)| checksum)
    }

    /// The table's bytes, to be written to a file and opened again.
    #[must_use]
    pub fn region(&self) -> &Region {
        &self.region
    }

    /// The number of strings.
    #[inline]
    #[must_use]
    pub fn len(&self) -> u64 {
        self.layout.len
    }

    /// True of a table without strings.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.layout.len == 0
    }

    /// Bytes of memory, or of a mapped file, that the table takes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.region.len()
    }

    /// Bytes of these that the hash index takes.
    #[must_use]
    pub fn index_bytes(&self) -> usize {
        self.layout.index.len()
    }

    /// The id of a string. Four dependent loads from memory at the most, if none is cached.
    #[inline]
    #[must_use]
    pub fn lookup(&self, key: &[u8]) -> Option<u64> {
        self.lookup_hashed(crate::hash(key), key)
    }

    /// The id of a string whose [`crate::hash`] is known.
    #[inline]
    #[must_use]
    pub fn lookup_hashed(&self, hash: u64, key: &[u8]) -> Option<u64> {
        let parts = self.parts();
        parts.index.find(hash, |id| parts.is_string(id, key))
    }

    /// Gives `take` the ids that the string of a [`crate::hash`] may have, among which is its own if it has one: one
    /// in some ten is another string's. No string is read.
    pub fn candidates(&self, hash: u64, mut take: impl FnMut(u64)) {
        self.parts().index.find(hash, |id| {
            take(id);
            false
        });
    }

    /// The ids of many strings, one for each key, appended to `ids`.
    ///
    /// The loads of a few dozen keys overlap, so that a key costs a fraction of what
    /// [`Self::lookup`] costs in a table much larger than the caches.
    pub fn lookup_batch(&self, keys: &[&[u8]], ids: &mut Vec<Option<u64>>) {
        ids.reserve(keys.len());
        for keys in keys.chunks(BATCH) {
            let mut hashes = [0; BATCH];
            for (hash, key) in hashes.iter_mut().zip(keys) {
                *hash = crate::hash(key);
            }
            self.lookup_few(keys, &hashes, |_, id| ids.push(id));
        }
    }

    /// Gives `put` the place and the id of each key; of [`BATCH`] keys at the most.
    #[inline]
    pub(crate) fn lookup_few(
        &self,
        keys: &[&[u8]],
        hashes: &[u64; BATCH],
        mut put: impl FnMut(usize, Option<u64>),
    ) {
        let parts = self.parts();
        let mut guesses = [None; BATCH];
        let mut blocks: [&[u8]; BATCH] = [&[]; BATCH];
        for (guess, hash) in guesses[..keys.len()].iter_mut().zip(hashes) {
            *guess = parts.index.guess(*hash).filter(|id| *id < parts.len);
        }
        for (block, guess) in blocks.iter_mut().zip(guesses) {
            *block = guess.map_or(&[], |id| parts.block_bytes(id >> BLOCK_SHIFT));
        }
        // The first byte of each block is asked for here, in loads that wait for nothing.
        let touched: u32 = blocks
            .iter()
            .map(|block| block.first().map_or(0, |b| u32::from(*b)))
            .sum();
        std::hint::black_box(touched);
        for (at, (key, hash)) in keys.iter().zip(hashes).enumerate() {
            put(at, parts.index.find(*hash, |id| parts.is_string(id, key)));
        }
    }

    /// Appends the string of an id.
    ///
    /// # Errors
    /// [`DictionaryError::UnknownId`] if the id is not less than the number of strings, and
    /// [`DictionaryError::Damaged`] if its block is; nothing is appended then.
    pub fn extract(&self, id: u64, out: &mut Vec<u8>) -> Result<(), DictionaryError> {
        self.parts().block(id)?.pieces(place(id))?.append_to(out);
        Ok(())
    }

    /// A reader of many strings. Making one allocates nothing.
    #[inline]
    #[must_use]
    pub fn decoder(&self) -> Decoder<'_> {
        Decoder::new(self.parts())
    }

    #[inline]
    fn parts(&self) -> Parts<'_> {
        let bytes: &[u8] = &self.region;
        let layout = &self.layout;
        Parts {
            len: layout.len,
            offsets: &bytes[layout.offsets.clone()],
            wide_offsets: layout.wide_offsets,
            data: &bytes[layout.data.clone()],
            index: Index::new(
                &bytes[layout.index.clone()],
                layout.buckets,
                layout.wide_ids,
            ),
        }
    }
}

impl fmt::Debug for StringTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "StringTable({} strings, {} bytes)",
            self.len(),
            self.bytes()
        )
    }
}

/// The sections of a table as slices.
#[derive(Clone, Copy)]
pub(crate) struct Parts<'a> {
    len: u64,
    offsets: &'a [u8],
    wide_offsets: bool,
    data: &'a [u8],
    index: Index<'a>,
}

impl<'a> Parts<'a> {
    /// Where block `block` begins; one past the last block is where that ends.
    #[inline]
    fn offset(&self, block: usize) -> usize {
        if self.wide_offsets {
            read_u64(self.offsets, block * 8) as usize
        } else {
            read_u32(self.offsets, block * 4) as usize
        }
    }

    /// The bytes of a block that is in the table.
    #[inline]
    fn block_bytes(&self, block: u64) -> &'a [u8] {
        let block = block as usize;
        self.data
            .get(self.offset(block)..self.offset(block + 1))
            .unwrap_or(&[])
    }

    /// The block of an id and the id's place in it.
    #[inline]
    pub(crate) fn block(&self, id: u64) -> Result<Block<'a>, DictionaryError> {
        if id >= self.len {
            return Err(self.unknown(id));
        }
        let block = id >> BLOCK_SHIFT;
        let count = (self.len - (block << BLOCK_SHIFT)).min(BLOCK as u64);
        let (begin, end) = (self.offset(block as usize), self.offset(block as usize + 1));
        let bytes = self.data.get(begin..).unwrap_or(&[]);
        Block::open(bytes, end.saturating_sub(begin), count as usize)
    }

    /// True if the string of `id` is `key`; a damaged string equals none.
    #[inline]
    fn is_string(&self, id: u64, key: &[u8]) -> bool {
        let pieces = self.block(id).and_then(|block| block.pieces(place(id)));
        pieces.is_ok_and(|pieces| pieces.equal(key))
    }

    /// The error of an id that is not less than the number of strings.
    #[cold]
    pub(crate) fn unknown(&self, id: u64) -> DictionaryError {
        let len = self.len;
        DictionaryError::UnknownId { id, len }
    }
}

/// The place of an id in its block.
#[inline]
pub(crate) fn place(id: u64) -> usize {
    (id % BLOCK as u64) as usize
}
