//! What can go wrong with a store?

use std::io;
use std::path::PathBuf;

/// An error of the store.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The operating system refused to read or write.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file is not what was written.
    #[error("{}: the file is damaged: {reason}; restore the store from its source data or a copy", path.display())]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A file was written by another version.
    #[error("{}: format version {found} is not supported (this build reads version {supported}); load the data again", path.display())]
    Version {
        /// The file.
        path: PathBuf,
        /// The version it names.
        found: u64,
        /// The version that this build reads.
        supported: u64,
    },
    /// The directory holds no store.
    #[error("{}: not a Jindou store; create one with: jindou load --location {} FILE...", path.display(), path.display())]
    NotAStore {
        /// The directory.
        path: PathBuf,
    },
    /// The directory holds other things.
    #[error("{}: the directory is not empty and holds no Jindou store; name a new directory", path.display())]
    NotEmpty {
        /// The directory.
        path: PathBuf,
    },
    /// Another process has the store open for writing.
    #[error("{}: another process is using this store", path.display())]
    Locked {
        /// The directory.
        path: PathBuf,
    },
    /// More terms than ids.
    #[error("too many distinct terms: {reason}")]
    TooLarge {
        /// Which limit.
        reason: String,
    },
}
