//! Where is the generated data kept between measurements?

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use jindou_datagen::lubm::{Counts, Lubm};

use crate::BenchError;

/// Where files are kept unless told otherwise, relative to the current folder.
pub const DEFAULT_FOLDER: &str = "target/bench-data";

/// A file of generated N-Triples.
#[derive(Debug, Clone)]
pub struct DataFile {
    /// Where it is.
    pub path: PathBuf,
    /// Its size.
    pub bytes: u64,
    /// What it holds, as the generator counts it.
    pub counts: Counts,
}

/// The file of this data in `folder`: as it was left by an earlier call, or generated now, at
/// some hundred MB a second. About 17 MB a university.
///
/// # Errors
/// [`BenchError::Datagen`], [`BenchError::Io`].
pub fn lubm_file(folder: &Path, data: Lubm) -> Result<DataFile, BenchError> {
    let counts = data.count()?;
    let name = format!(
        "lubm-{}-from{}-seed{}.nt",
        data.universities, data.first, data.seed
    );
    let path = folder.join(name);
    written_once(&path, |file| data.write(file).map(drop))?;
    let bytes = fs::metadata(&path).map_err(BenchError::io(&path))?.len();
    Ok(DataFile {
        path,
        bytes,
        counts,
    })
}

/// Writes a file, unless an earlier call left it there.
pub(crate) fn written_once(
    path: &Path,
    write: impl FnOnce(&mut File) -> io::Result<()>,
) -> Result<(), BenchError> {
    if path.is_file() {
        return Ok(());
    }
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(BenchError::io(folder))?;
    }
    // Written under another name first, so that an interrupted run leaves no short file.
    let partial = path.with_extension(format!("{}.part", std::process::id()));
    let written = File::create(&partial).and_then(|mut file| write(&mut file));
    if let Err(source) = written {
        // The write's own error is the one to report, whether or not its rest can be removed.
        let _ = fs::remove_file(&partial);
        return Err(BenchError::Io {
            path: partial,
            source,
        });
    }
    fs::rename(&partial, path).map_err(BenchError::io(path))
}

/// Bytes of the files in a folder and those in it; what goes meanwhile has none.
pub(crate) fn folder_bytes(folder: &Path) -> Result<u64, BenchError> {
    let mut bytes = 0;
    for entry in fs::read_dir(folder).map_err(BenchError::io(folder))? {
        let entry = entry.map_err(BenchError::io(folder))?;
        let metadata = match entry.metadata() {
            Ok(metadata) => metadata,
            Err(gone) if gone.kind() == io::ErrorKind::NotFound => continue,
            Err(source) => {
                return Err(BenchError::Io {
                    path: entry.path(),
                    source,
                });
            }
        };
        bytes += match metadata.is_dir() {
            true => bytes_if_there(&entry.path())?,
            false => metadata.len(),
        };
    }
    Ok(bytes)
}

/// As [`folder_bytes`]; 0 of a folder that is not there.
pub(crate) fn bytes_if_there(folder: &Path) -> Result<u64, BenchError> {
    match folder_bytes(folder) {
        Err(BenchError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => Ok(0),
        counted => counted,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_folders_within_count_and_a_folder_that_is_not_there_has_none() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("within")).unwrap();
        fs::write(folder.path().join("a"), "12").unwrap();
        fs::write(folder.path().join("within/b"), "345").unwrap();
        assert_eq!(folder_bytes(folder.path()).unwrap(), 5);
        let absent = folder.path().join("absent");
        assert!(folder_bytes(&absent).is_err());
        assert_eq!(bytes_if_there(&absent).unwrap(), 0);
    }

    #[test]
    fn a_file_is_generated_once_and_leaves_no_partial_one() {
        let folder = tempfile::tempdir().unwrap();
        let data = Lubm::new(1, 0);
        let first = lubm_file(folder.path(), data).unwrap();
        let lines = fs::read_to_string(&first.path).unwrap().lines().count() as u64;
        assert_eq!(lines, first.counts.statements());
        fs::write(&first.path, "kept").unwrap();
        let second = lubm_file(folder.path(), data).unwrap();
        assert_eq!(second.bytes, 4);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
