//! What can go wrong with a store?

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jindou_model::NodeId;

use crate::bulk::dealt::ExchangeError;

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
    #[error("{}: format version {found} is not supported (this build reads version {supported}); write the data with `jindou dump` of the build that made the store, and `jindou load` it into a new one", path.display())]
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
    /// The directory holds the part of a store that one node of a cluster serves.
    #[error("{}: it is the part of a store that was split: that of {part}; it answers beside the other parts alone: serve it with `jindou serve --location {} --read-only --peers FILE --node {node}`, or use the store that was split", path.display(), path.display())]
    NodePart {
        /// The directory.
        path: PathBuf,
        /// Of which node, among how many, with how many shards.
        part: String,
        /// The node's name.
        node: String,
    },
    /// What is asked for is made of a base, and there are changes since.
    #[error("{}: it has changes since the last merge; merge them with `jindou compact --location {}` first", path.display(), path.display())]
    NotMerged {
        /// The directory.
        path: PathBuf,
    },
    /// Another process has the store open, and one of the two would write it.
    #[error("{}: another process is using this store", path.display())]
    Locked {
        /// The directory.
        path: PathBuf,
    },
    /// There is no memory for a graph that other nodes are to read.
    #[error("no memory for the graph: {0}")]
    Memory(#[from] jindou_fabric::FabricError),
    /// The nodes that load together have lost each other.
    #[error(transparent)]
    Exchange(#[from] ExchangeError),
    /// Another of the nodes that load together failed.
    #[error("node {} of those that load together failed: {reason}", node.0)]
    OtherNode {
        /// Which one.
        node: NodeId,
        /// What it says.
        reason: String,
    },
    /// A load that keeps within a given memory would need more.
    #[error(
        "{what} take {needed_bytes} bytes of memory, and the load may take {limit_bytes}; give it more"
    )]
    LoadMemory {
        /// What takes it.
        what: String,
        /// What that takes.
        needed_bytes: u64,
        /// What there is.
        limit_bytes: u64,
    },
    /// More terms than ids.
    #[error("too many distinct terms: {reason}")]
    TooLarge {
        /// Which limit.
        reason: String,
    },
    /// The log found no space; what was to be written is not there, everything else is.
    #[error("{}: {source}; nothing can be written until there is space", path.display())]
    DiskFull {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A write or a sync of the log failed, and nothing is acknowledged until it is opened again.
    #[error("{}: the log failed and takes no more until the store is opened again: {source}", path.display())]
    LogFailed {
        /// The file.
        path: PathBuf,
        /// The first failure.
        source: Arc<io::Error>,
    },
    /// Which files are the store is not known to be lasting: nothing more is written until it is
    /// opened again, which finds out.
    #[error("{}: nobody knows whether this is on the device, and nothing more is written until the store is opened again: {source}", path.display())]
    Uncertain {
        /// The file that says which files are the store.
        path: PathBuf,
        /// Why it is not known.
        source: Arc<io::Error>,
    },
    /// A record is too large for the log.
    #[error("a record of {bytes} bytes is too large for the log (at most {limit})")]
    RecordTooLarge {
        /// Its size.
        bytes: u64,
        /// The most that is possible.
        limit: u64,
    },
}

impl StoreError {
    /// The error of a mapped file that can no longer be read whole.
    pub(crate) fn lost_bytes(path: &Path) -> Self {
        Self::Corrupt {
            path: path.to_owned(),
            reason: "it was shortened, or its device failed, while it was in use".to_owned(),
        }
    }
}
