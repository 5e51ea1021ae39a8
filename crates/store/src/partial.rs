//! How does a store come to its place whole or not at all? It is built in a directory beside the
//! place, `.NAME.partial-RANDOM`, which takes the place's name when it is whole and on the device.
//!
//! The directory is made, never found: nothing that somebody else has made is built in or removed.
//! A file in it, `PARTIAL`, says that it is not whole, and its lock is held for as long as the
//! process builds it; what has the file and is not locked was left by a process that is gone, and
//! is removed by the next one that goes to the same place.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use crate::StoreError;
use crate::directory::Directory;
use crate::identity::random;

/// Says that the directory it lies in is not whole.
const MARKER: &str = "PARTIAL";

/// A directory under way to its place. Dropped before it is there, it leaves nothing.
#[derive(Debug)]
pub struct Partial {
    place: PathBuf,
    parent: PathBuf,
    directory: Directory,
    is_in_place: bool,
}

fn failed(path: &Path, source: io::Error) -> StoreError {
    StoreError::Io {
        path: path.to_owned(),
        source,
    }
}

impl Partial {
    /// A new directory on its way to `place`, which must be absent or an empty directory.
    ///
    /// # Errors
    /// A place that is taken or has no name, and what the operating system says.
    pub fn begin(place: &Path) -> Result<Self, StoreError> {
        let refused = |kind, text| failed(place, io::Error::new(kind, text));
        match fs::read_dir(place).map(|mut entries| entries.next().is_none()) {
            Ok(true) => {}
            Ok(false) => {
                return Err(refused(
                    io::ErrorKind::DirectoryNotEmpty,
                    "it is there and not empty; name a new directory",
                ));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(failed(place, error)),
        }
        let Some(name) = place.file_name() else {
            return Err(refused(
                io::ErrorKind::InvalidInput,
                "name the directory itself",
            ));
        };
        let parent = match place.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
            _ => PathBuf::from("."),
        };
        fs::create_dir_all(&parent).map_err(|source| failed(&parent, source))?;
        let prefix = prefix(name);
        remove_leftovers(&parent, &prefix);
        let mut beside = prefix;
        beside.push(format!("{:016x}", random()));
        let path = parent.join(beside);
        // Refused where anything has that name.
        fs::create_dir(&path).map_err(|source| failed(&path, source))?;
        // Locked before it is marked: what is marked and not locked is a leftover.
        let directory = Directory::lock(&path).inspect_err(|_| {
            let _ = fs::remove_dir_all(&path);
        })?;
        let partial = Self {
            place: place.to_owned(),
            parent,
            directory,
            is_in_place: false,
        };
        let marker = path.join(MARKER);
        File::create_new(&marker).map_err(|source| failed(&marker, source))?;
        Ok(partial)
    }

    /// The directory to build the store in.
    #[must_use]
    pub fn directory(&self) -> &Directory {
        &self.directory
    }

    /// Takes the place; that is lasting when this returns. A directory of several stores, which is none itself, takes
    /// it as well.
    ///
    /// # Errors
    /// A place that was taken meanwhile, and what the operating system says.
    pub fn finish(mut self) -> Result<(), StoreError> {
        let path = self.directory.path();
        fs::remove_file(path.join(MARKER)).map_err(|source| failed(path, source))?;
        if !self.directory.has_store()? {
            self.directory.remove_lock_file()?;
        }
        let sync = |path: &Path| {
            let synced = File::open(path).and_then(|folder| folder.sync_all());
            synced.map_err(|source| failed(path, source))
        };
        sync(path)?;
        // An empty directory gives way, and nothing else does.
        fs::rename(path, &self.place).map_err(|source| failed(&self.place, source))?;
        self.is_in_place = true;
        sync(&self.parent)
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        if !self.is_in_place {
            // What stays has the marker, and is removed by the next attempt; without the marker it
            // is a whole copy that found its place taken.
            let _ = fs::remove_dir_all(self.directory.path());
        }
    }
}

/// How the names of the directories on their way to a place begin.
fn prefix(name: &OsStr) -> OsString {
    let mut prefix = OsString::from(".");
    prefix.push(name);
    prefix.push(".partial-");
    prefix
}

/// Removes what processes that are gone left on the way to a place. One that cannot be removed
/// costs space only.
fn remove_leftovers(parent: &Path, prefix: &OsStr) {
    let Ok(entries) = fs::read_dir(parent) else {
        return;
    };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let random = name
            .as_encoded_bytes()
            .strip_prefix(prefix.as_encoded_bytes());
        let is_ours = random
            .is_some_and(|random| random.len() == 16 && random.iter().all(u8::is_ascii_hexdigit));
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        let path = entry.path();
        let is_marked = || path.join(MARKER).is_file();
        if !(is_ours && is_folder && is_marked()) {
            continue;
        }
        // The marker is looked for again: the directory may have become whole before it was locked.
        if let Ok(_lock) = Directory::lock(&path)
            && is_marked()
        {
            let _ = fs::remove_dir_all(&path);
        }
    }
}
