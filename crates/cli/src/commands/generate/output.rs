//! How are files written, plain or compressed?

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use anyhow::{Context, bail};
use flate2::write::GzEncoder;

/// Writes N-Triples to a file, compressed as its name says, or to standard output for `-`.
///
/// # Errors
/// A name of another format; what keeps the text from being written, a part of which may be there.
pub(super) fn write_ntriples<T>(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> io::Result<T>,
) -> anyhow::Result<T> {
    if path.as_os_str() == "-" {
        let mut out = BufWriter::new(io::stdout().lock());
        let written = write(&mut out).and_then(|written| out.flush().map(|()| written));
        return written.context("writing to standard output");
    }
    let to_file = || -> anyhow::Result<T> {
        let mut file = OutputFile::create(path, compression_of(path)?)?;
        let written = write(&mut file)?;
        file.finish()?;
        Ok(written)
    };
    to_file().with_context(|| format!("{}: cannot write", path.display()))
}

fn compression_of(path: &Path) -> anyhow::Result<Compression> {
    let ending = path.extension();
    let ending = ending.map(|ending| ending.to_string_lossy().to_ascii_lowercase());
    Ok(match ending.as_deref() {
        Some("bz2" | "xz" | "7z" | "zip" | "ttl" | "rdf" | "nq") => {
            bail!("N-Triples are written plain, or compressed to .gz or .zst; choose such a name")
        }
        Some("gz") => Compression::Gzip,
        Some("zst") => Compression::Zstandard,
        _ => Compression::None,
    })
}

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
