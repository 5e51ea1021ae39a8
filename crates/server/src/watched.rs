//! What do files say that may change while they are in use?

use std::fs::Metadata;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use arc_swap::ArcSwap;

/// A value that is read from files, and read again when they change.
pub(crate) struct Watched<T, E> {
    paths: Vec<PathBuf>,
    read: fn(&[PathBuf]) -> Result<T, E>,
    /// As the files were when they were last read.
    value: ArcSwap<T>,
    /// What they looked like when they were last tried; nothing of one that could not be looked at.
    seen: Mutex<Vec<Option<Seen>>>,
}

/// What tells that a file has changed.
#[derive(Clone, PartialEq, Eq)]
struct Seen {
    modified: Option<SystemTime>,
    bytes: u64,
    #[cfg(unix)]
    inode: (u64, u64),
}

impl Seen {
    fn of(metadata: &Metadata) -> Self {
        Self {
            modified: metadata.modified().ok(),
            bytes: metadata.len(),
            #[cfg(unix)]
            inode: {
                use std::os::unix::fs::MetadataExt;
                (metadata.dev(), metadata.ino())
            },
        }
    }
}

impl<T, E> Watched<T, E> {
    /// Reads the files: what changes from here on is noticed.
    ///
    /// # Errors
    /// Those of `read`.
    pub(crate) fn new(
        paths: impl Into<Vec<PathBuf>>,
        read: fn(&[PathBuf]) -> Result<T, E>,
    ) -> Result<Self, E> {
        let paths = paths.into();
        let seen = Mutex::new(look(&paths));
        let value = ArcSwap::from_pointee(read(&paths)?);
        Ok(Self {
            paths,
            read,
            value,
            seen,
        })
    }

    pub(crate) fn paths(&self) -> &[PathBuf] {
        &self.paths
    }

    /// What the files say now; another value once they were read again.
    pub(crate) fn value(&self) -> Arc<T> {
        self.value.load_full()
    }

    /// Reads the files again. Those that cannot be used change nothing, and neither does what is no
    /// regular file any more: a pipe was read when it was opened, and whoever opens another one may wait
    /// for ever.
    ///
    /// # Errors
    /// Those of reading.
    pub(crate) fn reread(&self) -> Result<(), E> {
        let is_other = |path: &&PathBuf| std::fs::metadata(path).is_ok_and(|file| !file.is_file());
        if let Some(path) = self.paths.iter().find(is_other) {
            tracing::warn!(path = %path.display(), "no regular file, and not read again");
            return Ok(());
        }
        let value = (self.read)(&self.paths)?;
        self.value.store(Arc::new(value));
        Ok(())
    }

    /// Reads the files again if one has changed since they were last tried; `None` if none has.
    pub(crate) fn reread_if_changed(&self) -> Option<Result<(), E>> {
        self.have_changed().then(|| self.reread())
    }

    fn have_changed(&self) -> bool {
        let now = look(&self.paths);
        let mut seen = self.seen.lock().expect("nobody panics while it has it");
        let changed = *seen != now;
        *seen = now;
        changed
    }
}

fn look(paths: &[PathBuf]) -> Vec<Option<Seen>> {
    let seen = |path: &PathBuf| {
        let metadata = std::fs::metadata(path);
        metadata.ok().map(|metadata| Seen::of(&metadata))
    };
    paths.iter().map(seen).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_change_are_read_again_and_those_that_are_wrong_change_nothing() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("number");
        let write = |text: &str| std::fs::write(&path, text).expect("written");
        write("1");
        let watched = Watched::new([path.clone()], |paths| {
            let text = std::fs::read_to_string(&paths[0]).map_err(|error| error.to_string())?;
            text.parse::<u32>().map_err(|error| error.to_string())
        });
        let watched = watched.expect("it is right");
        assert_eq!(watched.reread_if_changed(), None);
        write("12");
        assert_eq!(watched.reread_if_changed(), Some(Ok(())));
        assert_eq!((*watched.value(), watched.reread_if_changed()), (12, None));
        write("wrong");
        assert!(
            watched
                .reread_if_changed()
                .is_some_and(|read| read.is_err())
        );
        // It is tried once.
        assert_eq!((*watched.value(), watched.reread_if_changed()), (12, None));
        assert!(watched.reread().is_err());
    }

    #[cfg(unix)]
    #[test]
    fn what_is_no_file_any_more_is_not_waited_for() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("number");
        std::fs::write(&path, "1").expect("written");
        let read = |paths: &[PathBuf]| std::fs::read_to_string(&paths[0]);
        let watched = Watched::new([path.clone()], read).expect("it is right");
        std::fs::remove_file(&path).expect("removed");
        let made = std::process::Command::new("mkfifo").arg(&path).status();
        assert!(made.expect("mkfifo runs").success());
        assert!(watched.reread_if_changed().is_some_and(|read| read.is_ok()));
        assert!(watched.reread().is_ok());
        assert_eq!(*watched.value(), "1");
        std::fs::remove_file(&path).expect("removed");
        std::fs::write(&path, "2").expect("written");
        assert!(watched.reread_if_changed().is_some_and(|read| read.is_ok()));
        assert_eq!(*watched.value(), "2");
    }
}
