//! Where is a store while it is measured?

use std::fs;
use std::path::{Path, PathBuf};

/// A folder for one store, removed with all that is in it when this is dropped.
pub(crate) struct StoreFolder(PathBuf);

impl StoreFolder {
    /// In this folder, under a name that no other process uses. Nothing is made yet.
    pub(crate) fn new(folder: &Path, name: &str) -> Self {
        Self(folder.join(format!("{name}-{}", std::process::id())))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for StoreFolder {
    fn drop(&mut self) {
        // A folder that cannot be removed costs space only; its name has the process that made it.
        let _ = fs::remove_dir_all(&self.0);
    }
}
