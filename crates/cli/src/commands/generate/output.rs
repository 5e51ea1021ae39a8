//! How are files written, plain or compressed?

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use flate2::write::GzEncoder;

/// How a file is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Compression {
    None,
    Gzip,
    Zstandard,
}

/// A file that is being written.
pub(super) enum OutputFile {
    Plain(BufWriter<File>),
    Gzip(GzEncoder<BufWriter<File>>),
    Zstandard(zstd::Encoder<'static, BufWriter<File>>),
}

impl OutputFile {
    /// # Errors
    /// What keeps the file from being made.
    pub(super) fn create(path: &Path, compression: Compression) -> io::Result<Self> {
        let file = BufWriter::new(File::create(path)?);
        Ok(match compression {
            Compression::None => Self::Plain(file),
            Compression::Gzip => Self::Gzip(GzEncoder::new(file, flate2::Compression::default())),
            Compression::Zstandard => Self::Zstandard(zstd::Encoder::new(file, 0)?),
        })
    }

    /// Writes what is left. Without this the file is not whole.
    ///
    /// # Errors
    /// What keeps it from being written.
    pub(super) fn finish(self) -> io::Result<()> {
        match self {
            Self::Plain(file) => file,
            Self::Gzip(file) => file.finish()?,
            Self::Zstandard(file) => file.finish()?,
        }
        .flush()
    }
}

impl Write for OutputFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(file) => file.write(bytes),
            Self::Gzip(file) => file.write(bytes),
            Self::Zstandard(file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(file) => file.flush(),
            Self::Gzip(file) => file.flush(),
            Self::Zstandard(file) => file.flush(),
        }
    }
}
