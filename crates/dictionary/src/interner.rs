//! How are strings numbered in order of first sight while data is loaded?

use hashbrown::HashTable;
use hashbrown::hash_table::Entry as TableEntry;

use crate::error::DictionaryError;

/// The first chunk of the arena; each next one is twice as large, up to [`LARGEST_CHUNK`].
const FIRST_CHUNK: usize = 64 << 10;
/// From this size on chunks are all alike: large enough to be mapped by themselves.
const LARGEST_CHUNK: usize = 8 << 20;
/// The longest string: offsets in a chunk have 32 bits.
const LONGEST: usize = u32::MAX as usize;
/// The most strings: ids have 32 bits, and the largest is left free for callers' marks.
const MOST: usize = u32::MAX as usize;

/// A string of an interner: its hash and where it begins.
///
/// It ends where the next one begins or, as the last of its chunk, where the chunk does.
#[derive(Clone, Copy)]
struct Entry {
    hash: u64,
    chunk: u32,
    offset: u32,
}

/// Numbers distinct strings 0, 1, 2... in order of first sight, and keeps their bytes.
///
/// One thread fills an interner; merging those of several threads needs no hashing, as
/// [`Self::hash_of`] tells each string's hash. A string costs its bytes and 22 to 45
/// more, as columns that are full double.
#[derive(Default)]
pub struct Interner {
    ids: HashTable<u32>,
    entries: Vec<Entry>,
    chunks: Vec<Vec<u8>>,
}

impl Interner {
    /// An interner without strings, which has allocated nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// An interner with room for the numbers of `strings` strings.
    #[must_use]
    pub fn with_capacity(strings: usize) -> Self {
        Self {
            ids: HashTable::with_capacity(strings),
            entries: Vec::with_capacity(strings),
            chunks: Vec::new(),
        }
    }

    /// The id of `key`, a new one if it is seen for the first time.
    ///
    /// # Errors
    /// [`DictionaryError::Full`] after 2^32 - 1 strings, [`DictionaryError::TooLong`] for a
    /// string of 4 GiB or more.
    #[inline]
    pub fn intern(&mut self, key: &[u8]) -> Result<u32, DictionaryError> {
        self.intern_hashed(crate::hash(key), key)
    }

    /// As [`Self::intern`], given the [`crate::hash`] of `key`.
    ///
    /// # Errors
    /// As [`Self::intern`].
    #[inline]
    pub fn intern_hashed(&mut self, hash: u64, key: &[u8]) -> Result<u32, DictionaryError> {
        let Self {
            ids,
            entries,
            chunks,
        } = self;
        let entry = ids.entry(
            hash,
            |id| entries[*id as usize].hash == hash && string(entries, chunks, *id as usize) == key,
            |id| entries[*id as usize].hash,
        );
        match entry {
            TableEntry::Occupied(entry) => Ok(*entry.get()),
            TableEntry::Vacant(entry) => {
                let id = push(entries, chunks, hash, key)?;
                entry.insert(id);
                Ok(id)
            }
        }
    }

    /// The id of `key`, if it has one.
    #[must_use]
    pub fn find(&self, key: &[u8]) -> Option<u32> {
        self.find_hashed(crate::hash(key), key)
    }

    /// As [`Self::find`], given the [`crate::hash`] of `key`.
    #[must_use]
    pub fn find_hashed(&self, hash: u64, key: &[u8]) -> Option<u32> {
        let is_it = |id: &u32| self.entries[*id as usize].hash == hash && self.get(*id) == key;
        self.ids.find(hash, is_it).copied()
    }

    /// The string of an id.
    ///
    /// # Panics
    /// If this interner gave out no such id.
    #[inline]
    #[must_use]
    pub fn get(&self, id: u32) -> &[u8] {
        string(&self.entries, &self.chunks, id as usize)
    }

    /// The [`crate::hash`] of the string of an id.
    ///
    /// # Panics
    /// If this interner gave out no such id.
    #[inline]
    #[must_use]
    pub fn hash_of(&self, id: u32) -> u64 {
        self.entries[id as usize].hash
    }

    /// The number of strings.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// True of an interner without strings.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The strings in the order of their ids, from 0 on.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        (0..self.entries.len()).map(|id| string(&self.entries, &self.chunks, id))
    }

    /// Bytes of all strings together.
    #[must_use]
    pub fn text_bytes(&self) -> usize {
        self.chunks.iter().map(Vec::len).sum()
    }

    /// Bytes that the interner has allocated.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let arena: usize = self.chunks.iter().map(Vec::capacity).sum();
        arena + self.entries.capacity() * size_of::<Entry>() + self.ids.allocation_size()
    }
}

/// Keeps a new string.
#[cold]
#[inline(never)]
fn push(
    entries: &mut Vec<Entry>,
    chunks: &mut Vec<Vec<u8>>,
    hash: u64,
    key: &[u8],
) -> Result<u32, DictionaryError> {
    if entries.len() >= MOST {
        return Err(DictionaryError::Full { limit: MOST });
    }
    if key.len() > LONGEST {
        let (bytes, limit) = (key.len(), LONGEST);
        return Err(DictionaryError::TooLong { bytes, limit });
    }
    let room = chunks
        .last()
        .map_or(0, |chunk| chunk.capacity() - chunk.len());
    if chunks.is_empty() || room < key.len() {
        let last = chunks.last().map_or(FIRST_CHUNK / 2, Vec::capacity);
        let size = (last * 2).min(LARGEST_CHUNK).max(key.len());
        chunks.push(Vec::with_capacity(size));
    }
    let number = chunks.len() - 1;
    let chunk = &mut chunks[number];
    let entry = Entry {
        hash,
        // There are fewer chunks than strings, and no chunk is longer than the longest string.
        chunk: number as u32,
        offset: chunk.len() as u32,
    };
    chunk.extend_from_slice(key);
    entries.push(entry);
    Ok((entries.len() - 1) as u32)
}

#[inline]
fn string<'a>(entries: &[Entry], chunks: &'a [Vec<u8>], id: usize) -> &'a [u8] {
    let entry = entries[id];
    let chunk = &chunks[entry.chunk as usize];
    let end = match entries.get(id + 1) {
        Some(next) if next.chunk == entry.chunk => next.offset as usize,
        _ => chunk.len(),
    };
    &chunk[entry.offset as usize..end]
}
