//! How does a store come to its place whole or not at all? It is built in a directory beside the
//! place, `.NAME.partial-RANDOM`, which takes the place's name when it is whole and on the device. Where another store
//! is to give way to it, both change names in one step.
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

/// Says that the directory it lies in, beside a place, is not whole, or has given its place to another one.
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
        match fs::read_dir(place).map(|mut entries| entries.next().is_none()) {
            Ok(true) => {}
            Ok(false) => {
                let text = "it is there and not empty; name a new directory";
                let taken = io::Error::new(io::ErrorKind::DirectoryNotEmpty, text);
                return Err(failed(place, taken));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(failed(place, error)),
        }
        Self::begin_beside(place)
    }

    /// A new directory on its way to `place`, where a store may be, which [gives way](Self::replace) to it. Where the place is
    /// a symbolic link, what it leads to is the place.
    ///
    /// # Errors
    /// [`StoreError::NotEmpty`] for a directory of other things; a place that has no name or is a mount point, and what the
    /// operating system says.
    #[cfg(target_os = "linux")]
    pub fn begin_in_place_of(place: &Path) -> Result<Self, StoreError> {
        let place = match fs::symlink_metadata(place) {
            Ok(_) => fs::canonicalize(place).map_err(|source| failed(place, source))?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => place.to_owned(),
            Err(source) => return Err(failed(place, source)),
        };
        check_gives_way(&place)?;
        Self::begin_beside(&place)
    }

    /// A new directory on its way to `place`.
    ///
    /// # Errors
    /// A place that has no name, and what the operating system says.
    pub fn begin_beside(place: &Path) -> Result<Self, StoreError> {
        let Some(name) = place.file_name() else {
            let text = "name the directory itself";
            let unnamed = io::Error::new(io::ErrorKind::InvalidInput, text);
            return Err(failed(place, unnamed));
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

    /// Removes what processes that are gone have left on the way to a place, as the next [`Partial::begin`] would. What
    /// cannot be removed costs space only.
    pub fn remove_leftovers(place: &Path) {
        if let Some((parent, name)) = place.parent().zip(place.file_name()) {
            remove_leftovers(parent, &prefix(name));
        }
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
        self.complete()?;
        // An empty directory gives way, and nothing else does.
        let path = self.directory.path();
        fs::rename(path, &self.place).map_err(|source| failed(&self.place, source))?;
        self.is_in_place = true;
        sync(&self.parent)
    }

    /// As [`Partial::finish`], but a store that is in the place gives way: which of both is there changes in one step, and
    /// then the other one is removed. Nobody may have that open.
    ///
    /// # Errors
    /// [`StoreError::Locked`] if a process has the store in the place open; what the operating system says, also where it, or
    /// the file system, lets no two directories change their names. The store in the place stays then.
    #[cfg(target_os = "linux")]
    pub fn replace(mut self) -> Result<(), StoreError> {
        use rustix::fs::{CWD, RenameFlags, renameat_with};

        if !check_gives_way(&self.place)? {
            return self.finish();
        }
        let before = Directory::lock(&self.place)?;
        self.complete()?;
        // What has this, and is not locked, is a leftover beside the place, and a store like any other in it.
        let marker = self.place.join(MARKER);
        File::create(&marker).map_err(|source| failed(&marker, source))?;
        sync(&self.place)?;
        let path = self.directory.path();
        let changed = renameat_with(CWD, path, CWD, &self.place, RenameFlags::EXCHANGE);
        if let Err(error) = changed {
            // The store is what it was, which the file does not change.
            let _ = fs::remove_file(&marker);
            return Err(failed(&self.place, error.into()));
        }
        self.is_in_place = true;
        sync(&self.parent)?;
        drop(before);
        // What stays has the marker.
        let _ = fs::remove_dir_all(path);
        Ok(())
    }

    /// Says that all is there, and has that on the device.
    fn complete(&self) -> Result<(), StoreError> {
        let path = self.directory.path();
        fs::remove_file(path.join(MARKER)).map_err(|source| failed(path, source))?;
        if !self.directory.has_store()? {
            self.directory.remove_lock_file()?;
        }
        sync(path)
    }
}

/// Whether a store is in a place, which may give it to another one; nothing else does, but an empty directory.
#[cfg(target_os = "linux")]
fn check_gives_way(place: &Path) -> Result<bool, StoreError> {
    use std::os::unix::fs::MetadataExt as _;

    let is_free = match fs::read_dir(place) {
        Ok(mut entries) => entries.next().is_none(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(source) => return Err(failed(place, source)),
    };
    let device = |path: &Path| {
        let metadata = fs::metadata(path).map_err(|source| failed(path, source))?;
        Ok::<_, StoreError>(metadata.dev())
    };
    if device(place)? != device(&place.join(".."))? {
        let text = "it is a mount point, which can give its name to no other directory: name a directory in it";
        return Err(failed(
            place,
            io::Error::new(io::ErrorKind::ResourceBusy, text),
        ));
    }
    if is_free {
        return Ok(false);
    }
    drop(Directory::open(place).map_err(|error| match error {
        StoreError::NotAStore { path } => StoreError::NotEmpty { path },
        error => error,
    })?);
    Ok(true)
}

fn sync(path: &Path) -> Result<(), StoreError> {
    let synced = File::open(path).and_then(|folder| folder.sync_all());
    synced.map_err(|source| failed(path, source))
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

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    /// A directory on its way to a place, with a store in it that has nothing, and a file that says which it is.
    fn begun(place: &Path, name: &str) -> Result<Partial, StoreError> {
        let partial = Partial::begin_in_place_of(place)?;
        let base = crate::bulk::build(Vec::new(), 0).expect("it is small");
        let number = jindou_model::SnapshotNumber(1);
        crate::DurableStore::write_new(partial.directory(), &base, number)?;
        fs::write(partial.directory().path().join("name"), name).expect("there is room");
        Ok(partial)
    }

    fn name(place: &Path) -> String {
        fs::read_to_string(place.join("name")).expect("a store is there")
    }

    fn entries(folder: &Path) -> usize {
        fs::read_dir(folder).expect("it is a folder").count()
    }

    #[test]
    fn a_store_gives_its_place_to_another_one() {
        let folder = tempfile::tempdir().expect("there is room");
        let place = folder.path().join("store");
        for round in ["absent", "taken", "taken again"] {
            let partial = begun(&place, round).expect("there is room");
            partial.replace().expect("nobody has it open");
            assert_eq!(name(&place), round);
            assert_eq!(entries(folder.path()), 1, "what was there is gone");
            assert!(!place.join(MARKER).exists());
        }
        assert!(Partial::begin(&place).is_err(), "it is taken");
        fs::remove_dir_all(&place).expect("it is a folder");
        fs::create_dir(&place).expect("there is room");
        let partial = begun(&place, "empty").expect("there is room");
        partial.replace().expect("it is empty");
        assert_eq!(name(&place), "empty");
        // The link stays.
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&place, &link).expect("there is room");
        let partial = begun(&link, "by a link").expect("there is room");
        partial.replace().expect("nobody has it open");
        assert!(link.is_symlink());
        assert_eq!(
            (name(&link).as_str(), entries(folder.path())),
            ("by a link", 2)
        );
    }

    #[test]
    fn nothing_but_a_store_gives_way() {
        let folder = tempfile::tempdir().expect("there is room");
        let place = folder.path().join("home");
        fs::create_dir(&place).expect("there is room");
        fs::write(place.join("thesis.txt"), "precious").expect("there is room");
        let refused = begun(&place, "a store");
        assert!(matches!(refused, Err(StoreError::NotEmpty { .. })));
        // It came while the store was on its way.
        let later = folder.path().join("later");
        let partial = begun(&later, "a store").expect("there is room");
        fs::create_dir(&later).expect("there is room");
        fs::write(later.join("thesis.txt"), "precious").expect("there is room");
        assert!(matches!(
            partial.replace(),
            Err(StoreError::NotEmpty { .. })
        ));
        for folder in [&place, &later] {
            assert_eq!(entries(folder), 1);
            assert!(folder.join("thesis.txt").exists());
        }
        assert!(begun(&place.join("thesis.txt"), "a store").is_err());
        assert!(
            begun(Path::new("/proc"), "a store").is_err(),
            "a mount point"
        );
        let dangling = folder.path().join("dangling");
        std::os::unix::fs::symlink(folder.path().join("nowhere"), &dangling)
            .expect("there is room");
        assert!(begun(&dangling, "a store").is_err());
        assert_eq!(entries(folder.path()), 3, "nothing is left beside");
    }

    #[test]
    fn a_store_that_is_open_stays() {
        let folder = tempfile::tempdir().expect("there is room");
        let place = folder.path().join("store");
        let partial = begun(&place, "first").expect("there is room");
        partial.replace().expect("the place is free");
        let second = begun(&place, "second").expect("nobody has it open");
        let open = Directory::open(&place).expect("nobody has it open");
        assert!(matches!(second.replace(), Err(StoreError::Locked { .. })));
        assert_eq!(
            (name(&place).as_str(), entries(folder.path())),
            ("first", 1)
        );
        drop(open);
        // One that was left as its process ended between both names is removed by the next.
        let left = folder.path().join(".store.partial-0123456789abcdef");
        fs::create_dir(&left).expect("there is room");
        fs::write(left.join(MARKER), "").expect("there is room");
        let third = begun(&place, "third").expect("there is room");
        third.replace().expect("nobody has it open");
        assert_eq!(
            (name(&place).as_str(), entries(folder.path())),
            ("third", 1)
        );
    }
}
