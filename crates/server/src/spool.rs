//! Where is a document kept that is too large for memory until it is read?
//!
//! In a temporary file without a name, in the folder that queries have for what their memory does not suffice
//! for. One may be as large as a query's may, and all that are there at once no larger together: documents
//! wait there for their bytes, and then for their turn, so that a few slow clients could otherwise fill the
//! disk.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek, Write};
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use hyper::StatusCode;
use jindou_engine::SpillLimits;

use crate::error::Refusal;

/// When a client may come again for whose document there was no room.
const FULL_SECONDS: u32 = 10;

/// All documents in temporary files.
pub(crate) struct Spools {
    limits: SpillLimits,
    held: Arc<AtomicU64>,
}

impl Spools {
    pub(crate) fn new(limits: &SpillLimits) -> Self {
        Self {
            limits: limits.clone(),
            held: Arc::default(),
        }
    }

    /// Bytes of all of them.
    pub(crate) fn held_bytes(&self) -> u64 {
        self.held.load(Relaxed)
    }

    /// A file for a document.
    pub(crate) fn open(&self) -> Result<Spool, Refusal> {
        let file = tempfile::tempfile_in(&self.limits.directory).map_err(|error| failed(&error))?;
        Ok(Spool {
            file,
            most_bytes: self.limits.bytes,
            share: Share {
                held: Arc::clone(&self.held),
                bytes: 0,
            },
        })
    }
}

/// The bytes of one document among those of all.
struct Share {
    held: Arc<AtomicU64>,
    bytes: u64,
}

impl Share {
    /// Whether there is room for more bytes, which are then counted.
    fn try_grow(&mut self, bytes: u64, most_bytes: u64) -> bool {
        let fits = |held: u64| held.checked_add(bytes).filter(|sum| *sum <= most_bytes);
        let grown = self.held.fetch_update(Relaxed, Relaxed, fits).is_ok();
        self.bytes += if grown { bytes } else { 0 };
        grown
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let before = self.held.fetch_sub(self.bytes, Relaxed);
        assert!(before >= self.bytes, "all of it was counted");
    }
}

/// A temporary file that is written.
pub(crate) struct Spool {
    // Before its share: what is counted no more is there no more.
    file: File,
    most_bytes: u64,
    share: Share,
}

impl Spool {
    /// Writes to the page cache, as a rule; the thread is one of long bodies.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), Refusal> {
        let more = bytes.len() as u64;
        if self.share.bytes + more > self.most_bytes {
            return Err(too_large(self.most_bytes));
        }
        if !self.share.try_grow(more, self.most_bytes) {
            return Err(full(self.most_bytes));
        }
        self.file.write_all(bytes).map_err(|error| failed(&error))
    }

    pub(crate) fn written_bytes(&self) -> u64 {
        self.share.bytes
    }

    /// The document, to be read from its beginning.
    pub(crate) fn finish(mut self) -> Result<Spooled, Refusal> {
        self.file.rewind().map_err(|error| failed(&error))?;
        Ok(Spooled {
            file: self.file,
            share: self.share,
        })
    }
}

/// A document in a temporary file, which counts until this is dropped.
pub(crate) struct Spooled {
    file: File,
    share: Share,
}

impl Spooled {
    pub(crate) fn bytes(&self) -> u64 {
        self.share.bytes
    }

    /// Its first bytes, as many as there are and `head` takes, which are read again later.
    pub(crate) fn peek<'a>(&self, head: &'a mut [u8]) -> io::Result<&'a [u8]> {
        let read = self.file.read_at(head, 0)?;
        Ok(&head[..read])
    }
}

impl Read for Spooled {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.file.read(buffer)
    }
}

/// A document of more bytes than a temporary file may have.
pub(crate) fn too_large(limit_bytes: u64) -> Refusal {
    let message = format!(
        "the document is larger than the {limit_bytes} bytes that --spill-limit sets for temporary \
         files; `jindou load` reads files of any size"
    );
    Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, message)
}

/// No room beside the documents of others.
fn full(limit_bytes: u64) -> Refusal {
    let message = format!(
        "documents that other requests brought have used up the {limit_bytes} bytes that --spill-limit \
         sets for temporary files; try again when they are stored"
    );
    Refusal::new(StatusCode::SERVICE_UNAVAILABLE, message).come_again(FULL_SECONDS)
}

fn failed(error: &io::Error) -> Refusal {
    tracing::error!(%error, "a document cannot be written to a temporary file");
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => Refusal::new(
            StatusCode::INSUFFICIENT_STORAGE,
            "the document needs a temporary file, for which the disk of --spill-dir has no room",
        ),
        _ => Refusal::internal(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_share_the_bytes_of_temporary_files() {
        let folder = tempfile::tempdir().expect("a folder");
        let spools = Spools::new(&SpillLimits::new(folder.path(), 10));
        let mut first = spools.open().expect("a file");
        let mut second = spools.open().expect("a file");
        first.write(b"123456").expect("there is room");
        second.write(b"1234").expect("there is room");
        let status = |refused: Result<(), Refusal>| refused.expect_err("there is none").status;
        assert_eq!(status(first.write(b"7")), StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(status(first.write(b"78901")), StatusCode::PAYLOAD_TOO_LARGE);
        drop(second);
        first.write(b"7890").expect("the other one is gone");
        let document = first.finish().expect("it is whole");
        let mut third = spools.open().expect("a file");
        assert_eq!(status(third.write(b"1")), StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(document.peek(&mut [0; 4]).expect("it is there"), b"1234");
        let read = io::read_to_string(document).expect("it is there");
        assert_eq!(read, "1234567890");
        assert_eq!(spools.held_bytes(), 0);
        third.write(b"1").expect("it was read");
    }
}
