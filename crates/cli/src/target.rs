//! Where does an output go: to standard output, or to a file that is there whole or not at all?

use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use flate2::write::GzEncoder;
use tempfile::{NamedTempFile, TempPath};

/// What a file's name says about its form.
pub(crate) struct Name {
    /// The last ending but a compression's, in lower case and without the dot.
    pub(crate) ending: Option<String>,
    compression: Option<Compression>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Compression {
    Gzip,
    Zstd,
}

impl Name {
    /// What `path` says; nothing for standard output (`-` or none).
    ///
    /// # Errors
    /// A compression that can be read but not written.
    pub(crate) fn of(path: Option<&Path>) -> anyhow::Result<Self> {
        let ending = |path: &Path| {
            path.extension()
                .map(|ending| ending.to_string_lossy().to_ascii_lowercase())
        };
        let Some(path) = path else {
            return Ok(Self {
                ending: None,
                compression: None,
            });
        };
        let last = ending(path);
        let compression = match last.as_deref() {
            Some("gz") => Some(Compression::Gzip),
            Some("zst") => Some(Compression::Zstd),
            Some("bz2" | "xz" | "7z" | "zip") => {
                bail!(
                    "{}: files are written plain, or compressed to .gz or .zst; choose such a name",
                    path.display()
                )
            }
            _ => None,
        };
        let ending = match compression {
            Some(_) => path.file_stem().and_then(|stem| ending(Path::new(stem))),
            None => last,
        };
        Ok(Self {
            ending,
            compression,
        })
    }

    /// # Errors
    /// If the file would be compressed, which Arrow and Parquet readers do not expect.
    pub(crate) fn refuse_compression(&self, format: &str) -> anyhow::Result<()> {
        if self.compression.is_some() {
            bail!("a file in the format {format} is not compressed as a whole; drop .gz or .zst");
        }
        Ok(())
    }
}

/// # Errors
/// If standard output is a terminal, which bytes that are no text would disturb.
pub(crate) fn refuse_terminal(path: Option<&Path>, format: &str) -> anyhow::Result<()> {
    if path.is_none() && io::stdout().is_terminal() {
        bail!("the format {format} is no text for a terminal; name a file with --output");
    }
    Ok(())
}

/// An output under way. A file is written beside its place and takes it with
/// [`finish`](Self::finish); dropped before, nothing is left of it.
pub(crate) struct Target {
    writer: Writer,
    place: Option<Place>,
    bytes: u64,
}

enum Writer {
    Standard(io::Stdout),
    Plain(BufWriter<File>),
    Gzip(GzEncoder<BufWriter<File>>),
    Zstd(zstd::Encoder<'static, BufWriter<File>>),
}

/// A file's place, and the file beside it.
struct Place {
    path: PathBuf,
    beside: TempPath,
}

impl Target {
    /// An output to `path`, or to standard output.
    ///
    /// # Errors
    /// What the operating system says.
    pub(crate) fn create(path: Option<&Path>, name: &Name) -> anyhow::Result<Self> {
        let Some(path) = path else {
            return Ok(Self {
                writer: Writer::Standard(io::stdout()),
                place: None,
                bytes: 0,
            });
        };
        let cannot = || format!("{}: cannot write", path.display());
        let (file, place) = open(path).with_context(cannot)?;
        let file = BufWriter::with_capacity(256 << 10, file);
        let writer = match name.compression {
            None => Writer::Plain(file),
            Some(Compression::Gzip) => {
                Writer::Gzip(GzEncoder::new(file, flate2::Compression::default()))
            }
            Some(Compression::Zstd) => {
                Writer::Zstd(zstd::Encoder::new(file, 0).with_context(cannot)?)
            }
        };
        Ok(Self {
            writer,
            place,
            bytes: 0,
        })
    }

    /// Bytes taken so far, before compression.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Ends the output; a file is on disk and in its place when this returns.
    ///
    /// # Errors
    /// What the operating system says; nothing is left of a file then.
    pub(crate) fn finish(self) -> anyhow::Result<()> {
        let written = match self.writer {
            Writer::Standard(mut out) => return out.flush().context("writing the result"),
            Writer::Plain(file) => Ok(file),
            Writer::Gzip(encoder) => encoder.finish(),
            Writer::Zstd(encoder) => encoder.finish(),
        };
        let file = written.and_then(|file| file.into_inner().map_err(|error| error.into_error()));
        let Some(Place { path, beside }) = self.place else {
            return file.map(drop).context("writing the result");
        };
        let placed = file
            .and_then(|file| file.sync_all())
            .and_then(|()| beside.persist(&path).map_err(|error| error.error));
        placed.with_context(|| format!("{}: cannot write", path.display()))
    }
}

/// The file to write, and its place if that is to be taken at the end. What is there and no plain
/// file (a pipe, a device) is written as it stands.
fn open(path: &Path) -> io::Result<(File, Option<Place>)> {
    let path = match path.canonicalize() {
        Ok(path) if path.is_file() => path,
        Ok(path) => return Ok((File::options().write(true).open(path)?, None)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => path.to_owned(),
        Err(error) => return Err(about_folder(error, folder_of(path))),
    };
    let folder = folder_of(&path);
    let mut prefix = std::ffi::OsString::from(".");
    prefix.push(path.file_name().ok_or(io::ErrorKind::InvalidInput)?);
    prefix.push(".");
    let file = beside(folder, &prefix).map_err(|error| about_folder(error, folder))?;
    let (file, beside) = file.into_parts();
    Ok((file, Some(Place { path, beside })))
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// Says what is wrong of the folder, not of the name that its file has until it is whole.
fn about_folder(error: io::Error, folder: &Path) -> io::Error {
    let folder = folder.display();
    let reason = match error.kind() {
        io::ErrorKind::NotFound => format!("there is no folder {folder}"),
        io::ErrorKind::NotADirectory => format!("{folder} is no folder"),
        io::ErrorKind::PermissionDenied => format!("no new file may be made in {folder}"),
        _ => return error,
    };
    io::Error::new(error.kind(), reason)
}

#[cfg(unix)]
fn beside(folder: &Path, prefix: &std::ffi::OsStr) -> io::Result<NamedTempFile> {
    use std::os::unix::fs::PermissionsExt;
    // Whoever may read other new files may read this one: the mask of the process decides.
    let permissions = std::fs::Permissions::from_mode(0o666);
    tempfile::Builder::new()
        .prefix(prefix)
        .suffix(".partial")
        .permissions(permissions)
        .tempfile_in(folder)
}

#[cfg(not(unix))]
fn beside(folder: &Path, prefix: &std::ffi::OsStr) -> io::Result<NamedTempFile> {
    tempfile::Builder::new()
        .prefix(prefix)
        .suffix(".partial")
        .tempfile_in(folder)
}

impl Write for Target {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = match &mut self.writer {
            Writer::Standard(out) => out.write(bytes),
            Writer::Plain(out) => out.write(bytes),
            Writer::Gzip(out) => out.write(bytes),
            Writer::Zstd(out) => out.write(bytes),
        }?;
        self.bytes += written as u64;
        Ok(written)
    }

    /// Lets a reader of standard output see what was written. A file has no reader before it is
    /// whole, and compresses better undisturbed.
    fn flush(&mut self) -> io::Result<()> {
        match &mut self.writer {
            Writer::Standard(out) => out.flush(),
            Writer::Plain(_) | Writer::Gzip(_) | Writer::Zstd(_) => Ok(()),
        }
    }
}
