//! Have files changed since they were last read?

use std::fs::Metadata;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::SystemTime;

/// Files that are read again when they change.
pub(crate) struct Watched {
    paths: Vec<PathBuf>,
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

impl Watched {
    /// Files that are about to be read: what changes from here on is noticed.
    pub(crate) fn new(paths: impl Into<Vec<PathBuf>>) -> Self {
        let paths = paths.into();
        let seen = Mutex::new(look(&paths));
        Self { paths, seen }
    }

    /// Whether any is another than when this was last asked.
    pub(crate) fn have_changed(&self) -> bool {
        let now = look(&self.paths);
        let mut seen = self.seen.lock().expect("nobody panics while it has it");
        let changed = *seen != now;
        *seen = now;
        changed
    }
}

fn look(paths: &[PathBuf]) -> Vec<Option<Seen>> {
    let seen = |path: &PathBuf| std::fs::metadata(path).ok().map(|m| Seen::of(&m));
    paths.iter().map(seen).collect()
}
