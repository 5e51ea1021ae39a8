//! How does a stored database become parts, one for each node of a cluster that is only read?
//!
//! All of them are built in one folder, which takes its name when the last is whole: see [`Partial`].

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use jindou_cluster::PeerList;
use jindou_store::{Directory, DurabilityOptions, DurableStore, Partial, Split, StoreFile};

use crate::{Database, EngineError};

/// How far a split is.
#[derive(Clone, Debug, Default)]
pub struct SplitProgress {
    read: Arc<AtomicU64>,
    all: Arc<AtomicU64>,
}

impl SplitProgress {
    /// Edges that were read so far, and all that are to be; 0 while that is not known.
    #[must_use]
    pub fn edges(&self) -> (u64, u64) {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        (of(&self.read), of(&self.all))
    }
}

/// What a store was split into.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SplitReport {
    /// By node.
    pub parts: Vec<SplitPart>,
    /// The files of the store.
    pub whole: FileBytes,
}

/// One of the parts.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SplitPart {
    /// The node's name, and that of the part's folder.
    pub name: String,
    /// How many shards it has.
    pub shards: usize,
    /// Its files.
    pub bytes: FileBytes,
}

/// Bytes of the files of a store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileBytes {
    /// Edges, but for those of `rdf:type`.
    pub edges: u64,
    /// The dictionary.
    pub dictionary: u64,
    /// Characteristic sets, tables of graphs and all else.
    pub tables: u64,
}

impl FileBytes {
    pub(crate) fn of(files: &[StoreFile]) -> Self {
        let mut bytes = Self::default();
        for file in files {
            let kind = match file.name.split('-').next() {
                Some("edges") => &mut bytes.edges,
                Some("terms") => &mut bytes.dictionary,
                _ => &mut bytes.tables,
            };
            *kind += file.bytes;
        }
        bytes
    }

    /// All of them.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.edges + self.dictionary + self.tables
    }
}

impl Database {
    /// Splits the store of a folder into parts, one for each node of a list, in a folder that must be absent or
    /// empty: each in a folder of the node's name. They are on the device when this returns, and not in their place
    /// before all are whole. Nobody may write the store meanwhile. A part is opened by [`Database::open_to_join`].
    ///
    /// Reads all edges once, and once more for each part with all terms; a part is held in memory.
    ///
    /// # Errors
    /// [`StoreError::NotMerged`](jindou_store::StoreError::NotMerged) where something has changed since the last
    /// merge; as [`Database::open_to_copy`], and what the operating system says.
    pub fn split(
        location: &Path,
        peers: &PeerList,
        to: &Path,
        progress: &SplitProgress,
    ) -> Result<SplitReport, EngineError> {
        let from = Directory::open_to_copy(location)?;
        let (snapshot, _) = DurableStore::read(&from, &DurabilityOptions::default())?;
        let place = Partial::begin(to)?;
        let map = peers.map();
        let passes = map.nodes().len() as u64 + 1;
        let all = Split::edges_of(&snapshot) * passes;
        progress.all.store(all, Ordering::Relaxed);
        let done = |edges| {
            progress.read.fetch_add(edges, Ordering::Relaxed);
        };
        let split = Split::new(&from, &snapshot, map, &done)?;
        let mut report = SplitReport {
            parts: Vec::new(),
            whole: FileBytes::of(&from.files()?),
        };
        for (node, peer) in map.nodes().zip(peers.peers()) {
            let part = Directory::create(&place.directory().path().join(&peer.name))?;
            split.write((node, &peer.name), &part, &done)?;
            let shards = map.shards().all();
            report.parts.push(SplitPart {
                name: peer.name.clone(),
                shards: shards.filter(|shard| map.holder(*shard) == node).count(),
                bytes: FileBytes::of(&part.files()?),
            });
        }
        place.finish()?;
        Ok(report)
    }
}
