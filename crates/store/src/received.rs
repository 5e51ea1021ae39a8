//! How do the files of a store that come from another machine get into a directory? Each by the name that it has
//! there, which is one that files of stores can have: whoever sends them chooses no other places.

use std::fs::{self, File};
use std::io;
use std::path::PathBuf;

use crate::StoreError;
use crate::directory::Directory;

/// The folder of a store that has files of its own.
const STREAMS: &str = "streams";
/// The most bytes of a name.
const MOST_NAME_BYTES: usize = 200;
/// Names that a store has for itself, wherever it is.
const OF_A_PLACE: [&str; 2] = ["LOCK", "PARTIAL"];

/// The files of a store on their way into a directory, which holds none.
#[derive(Debug)]
pub struct Received<'d> {
    directory: &'d Directory,
    has_folder: bool,
}

impl<'d> Received<'d> {
    /// None so far.
    #[must_use]
    pub fn into(directory: &'d Directory) -> Self {
        Self {
            directory,
            has_folder: false,
        }
    }

    /// Makes an empty file of a name that [`Directory::files`] said of the other store. Its bytes are lasting once it is
    /// synced and [`Received::finish`] has returned.
    ///
    /// # Errors
    /// [`StoreError::Io`] for what is no such name, for one that came before, and for what the operating system says.
    pub fn file(&mut self, name: &str) -> Result<File, StoreError> {
        let path = self.directory.path().join(name);
        let failed = |source| StoreError::Io {
            path: path.clone(),
            source,
        };
        if !is_name(name) {
            let text = "no file of a store has such a name";
            return Err(failed(io::Error::new(io::ErrorKind::InvalidInput, text)));
        }
        if name.contains('/') && !self.has_folder {
            fs::create_dir(self.folder()).map_err(failed)?;
            self.has_folder = true;
        }
        File::create_new(&path).map_err(failed)
    }

    /// All have come: their names are lasting when this returns, and the directory holds a store.
    ///
    /// # Errors
    /// [`StoreError::NotAStore`] where they are none; what the operating system says.
    pub fn finish(self) -> Result<(), StoreError> {
        let folders = [self.directory.path().to_owned(), self.folder()];
        for path in &folders[..1 + usize::from(self.has_folder)] {
            let synced = File::open(path).and_then(|folder| folder.sync_all());
            synced.map_err(|source| StoreError::Io {
                path: path.clone(),
                source,
            })?;
        }
        match self.directory.has_store()? {
            true => Ok(()),
            false => Err(StoreError::NotAStore {
                path: self.directory.path().to_owned(),
            }),
        }
    }

    fn folder(&self) -> PathBuf {
        self.directory.path().join(STREAMS)
    }
}

/// True of names of files, and of those of `streams/`.
fn is_name(name: &str) -> bool {
    let inner = match name.split_once('/') {
        Some((STREAMS, inner)) => inner,
        Some(_) => return false,
        None => name,
    };
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    (1..=MOST_NAME_BYTES).contains(&inner.len())
        && inner.bytes().all(is_allowed)
        && !inner.starts_with('.')
        && !OF_A_PLACE.contains(&name)
        && name != STREAMS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_nowhere_else() {
        for name in ["CURRENT", "base-1-2.jnd", "streams/log-1.jnd", "HISTORY"] {
            assert!(is_name(name), "{name}");
        }
        let others = [
            "",
            ".",
            "..",
            ".hidden",
            "/etc/passwd",
            "../CURRENT",
            "streams",
            "streams/",
            "streams/..",
            "streams/a/b",
            "other/a",
            "LOCK",
            "PARTIAL",
            "a b",
            "a\0",
            "ä",
        ];
        for name in others {
            assert!(!is_name(name), "{name:?}");
        }
        assert!(!is_name(&"a".repeat(MOST_NAME_BYTES + 1)));
    }

    #[test]
    fn a_directory_without_current_holds_no_store() {
        let folder = tempfile::tempdir().expect("there is room");
        let directory = Directory::create(&folder.path().join("store")).expect("it is new");
        let mut received = Received::into(&directory);
        received.file("streams/a").expect("there is room");
        assert!(received.file("streams/a").is_err(), "it came before");
        assert!(received.file("../a").is_err());
        assert!(matches!(
            received.finish(),
            Err(StoreError::NotAStore { .. })
        ));
    }
}
