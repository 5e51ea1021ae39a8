//! Where does a load put what does not fit into its memory?
//!
//! In files of a folder within the store's, which no other file of the store knows. It goes when
//! the load ends; what a process that was killed left there goes when the store is opened next, or
//! made.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use jindou_fabric::Region;

use crate::directory::{Directory, SCRATCH};
use crate::log::{LogFile, Storage, read_exact, write_all};
use crate::{DurabilityOptions, StoreError};

/// The folder.
#[derive(Debug)]
pub(super) struct Scratch {
    path: PathBuf,
    storage: Box<dyn Storage>,
    next: AtomicU64,
}

impl Scratch {
    /// Makes the folder, within that of a store that is locked or not yet there; fails if it is there, as
    /// another load has it then.
    pub(super) fn begin(
        directory: &Directory,
        options: &DurabilityOptions,
    ) -> Result<Arc<Self>, StoreError> {
        let path = directory.path().join(SCRATCH);
        fs::create_dir(&path).map_err(|source| failed(&path, source))?;
        Ok(Arc::new(Self {
            storage: (options.storage)(&path),
            path,
            next: AtomicU64::new(0),
        }))
    }

    /// A new file, which goes when nobody holds it any more.
    pub(super) fn create(self: &Arc<Self>) -> Result<Arc<ScratchFile>, StoreError> {
        let name = self.next.fetch_add(1, Ordering::Relaxed).to_string();
        let file = self.storage.create(&name);
        let file = file.map_err(|source| failed(&self.path.join(&name), source))?;
        Ok(Arc::new(ScratchFile {
            name,
            file,
            scratch: Arc::clone(self),
        }))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What stays costs space until the store is opened next.
        let _ = fs::remove_dir_all(&self.path);
    }
}

fn failed(path: &Path, source: io::Error) -> StoreError {
    StoreError::Io {
        path: path.to_owned(),
        source,
    }
}

/// A file of the folder.
#[derive(Debug)]
pub(super) struct ScratchFile {
    name: String,
    file: Arc<dyn LogFile>,
    scratch: Arc<Scratch>,
}

impl ScratchFile {
    pub(super) fn path(&self) -> PathBuf {
        self.scratch.path.join(&self.name)
    }

    pub(super) fn failed(&self, source: io::Error) -> StoreError {
        failed(&self.path(), source)
    }

    pub(super) fn write(&self, bytes: &[u8], offset: u64) -> Result<(), StoreError> {
        write_all(&*self.file, bytes, offset).map_err(|(_, source)| self.failed(source))
    }

    /// Fills `bytes`; a file that ends before is an error, as all of it was written.
    pub(super) fn read(&self, bytes: &mut [u8], offset: u64) -> Result<(), StoreError> {
        match read_exact(&*self.file, bytes, offset) {
            Ok(true) => Ok(()),
            Ok(false) => Err(self.failed(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                "the file of a load is shorter than what was written to it",
            ))),
            Err(source) => Err(self.failed(source)),
        }
    }

    /// The file in memory; its bytes stay for those who hold the region.
    pub(super) fn map(&self) -> Result<Region, StoreError> {
        let map = File::open(self.path()).and_then(|file| Region::map_file(&file));
        map.map_err(|source| self.failed(source))
    }
}

impl Drop for ScratchFile {
    fn drop(&mut self) {
        let _ = self.scratch.storage.remove(&self.name);
    }
}

/// A part of a file.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Section {
    pub(super) offset: u64,
    pub(super) bytes: u64,
}

/// Appends to a file.
#[derive(Debug)]
pub(super) struct Appender {
    file: Arc<ScratchFile>,
    /// Where the next bytes of the buffer go.
    offset: u64,
    buffer: Vec<u8>,
    most: usize,
}

impl Appender {
    /// One that begins at a place and gathers so many bytes.
    pub(super) fn at(file: Arc<ScratchFile>, offset: u64, gathered: usize) -> Self {
        Self {
            file,
            offset,
            buffer: Vec::new(),
            most: gathered,
        }
    }

    pub(super) fn file(&self) -> &Arc<ScratchFile> {
        &self.file
    }

    /// Where the next bytes will be.
    pub(super) fn end(&self) -> u64 {
        self.offset + self.buffer.len() as u64
    }

    #[inline]
    pub(super) fn push(&mut self, bytes: &[u8]) -> Result<(), StoreError> {
        self.buffer.extend_from_slice(bytes);
        match self.buffer.len() >= self.most {
            true => self.flush(),
            false => Ok(()),
        }
    }

    pub(super) fn flush(&mut self) -> Result<(), StoreError> {
        self.file.write(&self.buffer, self.offset)?;
        self.offset += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    /// Writes what is left, and lets go of the buffer.
    pub(super) fn rest(&mut self) -> Result<(), StoreError> {
        self.flush()?;
        self.buffer = Vec::new();
        Ok(())
    }
}

impl Write for Appender {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.push(bytes).map_err(source_of)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Appender::flush(self).map_err(source_of)
    }
}

/// What the operating system said.
fn source_of(error: StoreError) -> io::Error {
    match error {
        StoreError::Io { source, .. } => source,
        other => io::Error::other(other),
    }
}

/// Reads a section from its beginning to its end.
#[derive(Debug)]
pub(super) struct SectionReader {
    file: Arc<ScratchFile>,
    /// What is not in the buffer yet.
    rest: Section,
    buffer: Vec<u8>,
    at: usize,
    most: usize,
}

impl SectionReader {
    /// Holds about so many bytes.
    pub(super) fn new(file: Arc<ScratchFile>, section: Section, held: usize) -> Self {
        Self {
            file,
            rest: section,
            buffer: Vec::new(),
            at: 0,
            most: held,
        }
    }

    /// True at the end.
    pub(super) fn is_at_end(&self) -> bool {
        self.at == self.buffer.len() && self.rest.bytes == 0
    }

    /// The next bytes, `count` of them.
    ///
    /// # Panics
    /// If there are not so many in the section.
    #[inline]
    pub(super) fn take(&mut self, count: usize) -> Result<&[u8], StoreError> {
        if self.buffer.len() - self.at < count {
            self.fill(count)?;
        }
        self.at += count;
        Ok(&self.buffer[self.at - count..self.at])
    }

    #[cold]
    fn fill(&mut self, count: usize) -> Result<(), StoreError> {
        self.buffer.drain(..self.at);
        self.at = 0;
        let held = self.buffer.len();
        let wanted = self.most.max(count) - held;
        let more = self.rest.bytes.min(wanted as u64);
        self.buffer.resize(held + more as usize, 0);
        self.file.read(&mut self.buffer[held..], self.rest.offset)?;
        self.rest.offset += more;
        self.rest.bytes -= more;
        assert!(self.buffer.len() >= count, "a section ends with an entry");
        Ok(())
    }

    /// The next number that [`push_number`] wrote.
    pub(super) fn number(&mut self) -> Result<u64, StoreError> {
        let mut number = 0;
        for shift in (0..u64::BITS).step_by(7) {
            let byte = self.take(1)?[0];
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                break;
            }
        }
        Ok(number)
    }
}

/// Appends a number, seven bits a byte.
pub(super) fn push_number(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}
