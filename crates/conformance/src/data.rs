//! Where does the test data lie, and what is inside its archives?
//!
//! The data is not part of the repository: it lies in `shared/data` beside the workspace. A test
//! that needs it asks [`require`], which says clearly when it is absent.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Largest archive or file that the harness unpacks, in bytes. Everything in the shared data is
/// far smaller, so reaching it means that the wrong file was opened.
const UNPACKED_LIMIT_BYTES: u64 = 1 << 30;

/// The folder of shared test data, whether or not it exists: `<workspace root>/../shared/data`.
pub fn shared_data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data")
}

/// The path of `relative` inside the shared data, or `None`, after printing
/// `SKIPPED: <what> (…/shared/data is absent)`, when it is not there.
pub fn require(what: &str, relative: &str) -> Option<PathBuf> {
    let path = shared_data().join(relative);
    if path.exists() {
        return Some(path);
    }
    println!("SKIPPED: {what} (…/shared/data is absent, no {relative})");
    None
}

/// The unpacked bytes of a `.zst` file.
///
/// # Errors
/// When the file cannot be read, is not zstd, or is larger than a gibibyte.
pub fn read_zstd(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    zstd::Decoder::new(File::open(path)?)?
        .take(UNPACKED_LIMIT_BYTES)
        .read_to_end(&mut bytes)?;
    if bytes.len() as u64 == UNPACKED_LIMIT_BYTES {
        return Err(io::Error::other(format!(
            "{} unpacks to more than a gibibyte",
            path.display()
        )));
    }
    Ok(bytes)
}

/// The regular files of a `.tar.zst` archive by their path in it.
///
/// # Errors
/// When the file cannot be read, or is not such an archive.
pub fn read_tar_zstd(path: &Path) -> io::Result<BTreeMap<String, Vec<u8>>> {
    let bytes = read_zstd(path)?;
    let mut files = BTreeMap::new();
    for entry in tar::Archive::new(bytes.as_slice()).entries()? {
        let mut entry = entry?;
        if !entry.header().entry_type().is_file() {
            continue;
        }
        let name = entry.path()?.to_string_lossy().into_owned();
        let mut content = Vec::new();
        entry.read_to_end(&mut content)?;
        files.insert(name, content);
    }
    Ok(files)
}
