//! Where a store's files lie: what does it need of a folder and of a file?
//!
//! The log, and whoever writes the other files, ask for little, so that a test can put a simulated
//! disk in the folder's place: one that tears writes, runs full, fails to sync, and forgets what
//! was not synced.

use std::fmt::Debug;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::StoreError;

/// One file of a store. Offsets and lengths are bytes.
pub trait LogFile: Debug + Send + Sync {
    /// Writes some of `bytes` at `offset`, and says how many.
    ///
    /// # Errors
    /// What the operating system says; nothing of this call was then written.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize>;

    /// Reads into some of `bytes` from `offset`, and says how many; 0 is the end of the file.
    ///
    /// # Errors
    /// What the operating system says.
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize>;

    /// The file's length.
    ///
    /// # Errors
    /// What the operating system says.
    fn length(&self) -> io::Result<u64>;

    /// Cuts the file, or extends it by zeros that need not take space.
    ///
    /// # Errors
    /// What the operating system says.
    fn set_length(&self, length: u64) -> io::Result<()>;

    /// Returns when what was written, and the length, are on the device.
    ///
    /// # Errors
    /// What the operating system says; what was written since the last success may then be lost,
    /// even if a later call succeeds.
    fn sync(&self) -> io::Result<()>;
}

/// A folder of files. Names have no path in them.
pub trait Storage: Debug + Send + Sync {
    /// The names of all files.
    ///
    /// # Errors
    /// What the operating system says.
    fn list(&self) -> io::Result<Vec<String>>;

    /// Makes an empty file; one of this name is replaced.
    ///
    /// # Errors
    /// What the operating system says.
    fn create(&self, name: &str) -> io::Result<Arc<dyn LogFile>>;

    /// Opens a file for reading and writing.
    ///
    /// # Errors
    /// What the operating system says.
    fn open(&self, name: &str) -> io::Result<Arc<dyn LogFile>>;

    /// Opens a file for reading only, which needs no right to write it.
    ///
    /// # Errors
    /// What the operating system says.
    fn open_to_read(&self, name: &str) -> io::Result<Arc<dyn LogFile>>;

    /// Gives a file another name.
    ///
    /// # Errors
    /// What the operating system says.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Removes a file.
    ///
    /// # Errors
    /// What the operating system says.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// Returns when the names are as lasting as the device.
    ///
    /// # Errors
    /// What the operating system says.
    fn sync(&self) -> io::Result<()>;

    /// The path of a file, for messages.
    fn path(&self, name: &str) -> PathBuf;
}

/// A folder of the file system.
#[derive(Clone, Debug)]
pub struct Folder {
    path: PathBuf,
}

impl Folder {
    /// Names a folder, which must exist.
    #[must_use]
    pub fn new(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
        }
    }
}

impl Storage for Folder {
    fn list(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.path)? {
            // A name that is not text is none of ours.
            names.extend(entry?.file_name().into_string().ok());
        }
        Ok(names)
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn LogFile>> {
        let file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .open(self.path(name))?;
        Ok(Arc::new(file))
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn LogFile>> {
        let file = File::options()
            .read(true)
            .write(true)
            .open(self.path(name))?;
        Ok(Arc::new(file))
    }

    fn open_to_read(&self, name: &str) -> io::Result<Arc<dyn LogFile>> {
        Ok(Arc::new(File::open(self.path(name))?))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.path(from), self.path(to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.path(name))
    }

    fn sync(&self) -> io::Result<()> {
        File::open(&self.path)?.sync_all()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }
}

impl LogFile for File {
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        std::os::unix::fs::FileExt::write_at(self, bytes, offset)
    }

    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        std::os::unix::fs::FileExt::read_at(self, bytes, offset)
    }

    fn length(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn set_length(&self, length: u64) -> io::Result<()> {
        self.set_len(length)
    }

    fn sync(&self) -> io::Result<()> {
        // fdatasync: it takes a changed length along, not the times.
        self.sync_data()
    }
}

/// Bytes gathered before a file that is written once is written to.
const GATHERED_BYTES: usize = 1 << 20;

/// Writes a file from its beginning to its end.
struct Sequential {
    file: Arc<dyn LogFile>,
    place: u64,
}

impl Write for Sequential {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.file.write_at(bytes, self.place)?;
        self.place += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Writes a file that is there whole or not at all: under a temporary name, synced, and then given
/// its own name, which is lasting once the folder is synced. Nothing is left of one that failed.
pub(crate) fn write_file<T>(
    storage: &dyn Storage,
    name: &str,
    write: impl FnOnce(&mut dyn Write) -> io::Result<T>,
) -> Result<T, StoreError> {
    let temporary = format!("{}.new", name.strip_suffix(".jnd").unwrap_or(name));
    let attempt = || {
        let file = storage.create(&temporary)?;
        let place = 0;
        let mut writer = BufWriter::with_capacity(GATHERED_BYTES, Sequential { file, place });
        let written = write(&mut writer)?;
        let sequential = writer
            .into_inner()
            .map_err(io::IntoInnerError::into_error)?;
        sequential.file.sync()?;
        storage.rename(&temporary, name)?;
        Ok(written)
    };
    attempt().map_err(|source| {
        // A file that cannot even be removed goes when the store is opened next.
        let _ = storage.remove(&temporary);
        StoreError::Io {
            path: storage.path(name),
            source,
        }
    })
}

/// Writes all of `bytes`; on failure, says how many were written before it.
pub(crate) fn write_all(
    file: &dyn LogFile,
    bytes: &[u8],
    offset: u64,
) -> Result<(), (u64, io::Error)> {
    let mut done = 0;
    while done < bytes.len() {
        match file.write_at(&bytes[done..], offset + done as u64) {
            Ok(0) => return Err((done as u64, io::ErrorKind::WriteZero.into())),
            Ok(count) => done += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err((done as u64, error)),
        }
    }
    Ok(())
}

/// Writes zeros over a range.
pub(super) fn write_zeros(file: &dyn LogFile, mut begin: u64, end: u64) -> io::Result<()> {
    let zeros = [0; 16 << 10];
    while begin < end {
        let count = (end - begin).min(zeros.len() as u64);
        write_all(file, &zeros[..count as usize], begin).map_err(|(_, error)| error)?;
        begin += count;
    }
    Ok(())
}

/// Reads until `bytes` is full; false if the file ends before.
pub(crate) fn read_exact(file: &dyn LogFile, bytes: &mut [u8], offset: u64) -> io::Result<bool> {
    let mut done = 0;
    while done < bytes.len() {
        match file.read_at(&mut bytes[done..], offset + done as u64) {
            Ok(0) => return Ok(false),
            Ok(count) => done += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(true)
}

/// True for an error that says that there is no space, which may pass.
pub(super) fn is_full(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge
    )
}
