//! How do sorted keys of terms lie in a file?
//!
//! Each as the number of bytes that it shares with the one before, and the others.

use std::sync::Arc;

use super::scratch::{Appender, ScratchFile, Section, SectionReader, push_number};
use crate::StoreError;

/// Writes keys one after the other.
pub(super) struct KeyWriter {
    out: Appender,
    begin: u64,
    count: u64,
    key_bytes: u64,
    before: Vec<u8>,
    scratch: Vec<u8>,
}

impl KeyWriter {
    pub(super) fn new(out: Appender) -> Self {
        Self {
            begin: out.end(),
            out,
            count: 0,
            key_bytes: 0,
            before: Vec::new(),
            scratch: Vec::new(),
        }
    }

    #[inline]
    pub(super) fn push(&mut self, key: &[u8]) -> Result<(), StoreError> {
        self.scratch.clear();
        self.push_key(key)
    }

    /// The next key, with a number that comes back with it.
    pub(super) fn push_numbered(&mut self, number: u32, key: &[u8]) -> Result<(), StoreError> {
        self.scratch.clear();
        push_number(&mut self.scratch, number.into());
        self.push_key(key)
    }

    fn push_key(&mut self, key: &[u8]) -> Result<(), StoreError> {
        let both = self.before.iter().zip(key);
        let shared = both.take_while(|(a, b)| a == b).count();
        push_number(&mut self.scratch, shared as u64);
        push_number(&mut self.scratch, (key.len() - shared) as u64);
        self.scratch.extend_from_slice(&key[shared..]);
        self.before.truncate(shared);
        self.before.extend_from_slice(&key[shared..]);
        self.count += 1;
        self.key_bytes += key.len() as u64;
        self.out.push(&self.scratch)
    }

    /// The keys, and where what follows them goes.
    pub(super) fn finish(mut self) -> Result<(Keys, Appender), StoreError> {
        self.out.flush()?;
        let section = Section {
            offset: self.begin,
            bytes: self.out.end() - self.begin,
        };
        let keys = Keys {
            file: Arc::clone(self.out.file()),
            section,
            count: self.count,
            key_bytes: self.key_bytes,
        };
        Ok((keys, self.out))
    }
}

/// Keys in a file.
#[derive(Clone, Debug)]
pub(super) struct Keys {
    file: Arc<ScratchFile>,
    section: Section,
    /// How many.
    pub(super) count: u64,
    /// Their bytes, had none anything in common with another.
    pub(super) key_bytes: u64,
}

impl Keys {
    /// Reads them, holding so many bytes.
    pub(super) fn read(&self, held: usize) -> KeyReader {
        KeyReader {
            input: SectionReader::new(Arc::clone(&self.file), self.section, held),
            key: Vec::new(),
        }
    }
}

/// Reads keys one after the other.
pub(super) struct KeyReader {
    input: SectionReader,
    key: Vec<u8>,
}

impl KeyReader {
    /// Goes on to the next key; false if there is none.
    pub(super) fn advance(&mut self) -> Result<bool, StoreError> {
        if self.input.is_at_end() {
            return Ok(false);
        }
        let shared = self.input.number()? as usize;
        let own = self.input.number()? as usize;
        self.key.truncate(shared);
        self.key.extend_from_slice(self.input.take(own)?);
        Ok(true)
    }

    /// As [`KeyReader::advance`], of keys with numbers.
    pub(super) fn advance_numbered(&mut self) -> Result<Option<u32>, StoreError> {
        if self.input.is_at_end() {
            return Ok(None);
        }
        let number = self.input.number()? as u32;
        self.advance()?;
        Ok(Some(number))
    }

    /// The key that it is at.
    pub(super) fn key(&self) -> &[u8] {
        &self.key
    }
}
