//! Where is a document kept that is too large for memory until it is read?
//!
//! In a temporary file without a name, in the folder and within the bounds that queries have for what
//! their memory does not suffice for.

use std::fs::File;
use std::io::{self, ErrorKind, Seek, Write};

use hyper::StatusCode;
use jindou_engine::SpillLimits;

use crate::error::Refusal;

/// A temporary file that is written.
pub(crate) struct Spool {
    file: File,
    written: u64,
    limits: SpillLimits,
}

impl Spool {
    pub(crate) fn new(limits: &SpillLimits) -> Result<Self, Refusal> {
        let file = tempfile::tempfile_in(&limits.directory).map_err(|error| failed(&error))?;
        Ok(Self {
            file,
            written: 0,
            limits: limits.clone(),
        })
    }

    /// Writes to the page cache, as a rule; the thread is one of long bodies.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), Refusal> {
        let length = self.written + bytes.len() as u64;
        if length > self.limits.bytes {
            return Err(too_large(self.limits.bytes));
        }
        self.file.write_all(bytes).map_err(|error| failed(&error))?;
        self.written = length;
        Ok(())
    }

    pub(crate) fn written_bytes(&self) -> u64 {
        self.written
    }

    /// The file, to be read from its beginning.
    pub(crate) fn into_file(mut self) -> Result<File, Refusal> {
        self.file.rewind().map_err(|error| failed(&error))?;
        Ok(self.file)
    }
}

/// A document of more bytes than a temporary file may have.
pub(crate) fn too_large(limit_bytes: u64) -> Refusal {
    let message = format!(
        "the document is larger than the {limit_bytes} bytes that --spill-limit sets for temporary \
         files; LOAD reads larger files, where --allow-load names them"
    );
    Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, message)
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
