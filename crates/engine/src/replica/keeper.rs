//! Who keeps which node leads, and which nodes are in sync?
//!
//! One configuration for all nodes, which one of them at a time can replace: that only one can is what all else rests
//! on. With a fixed list of nodes the first one always leads, and keeps it for itself.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use jindou_model::NodeId;
use jindou_replication::{Configuration, Versioned};
use jindou_store::{CopiesFile, Directory};

/// Hears what is kept.
pub type Told = Arc<dyn Fn(Versioned) + Send + Sync>;

/// Keeps the configuration of the copies of a store. Its methods may take as long as a network does, and are called
/// by threads that nobody waits for.
pub trait Keeper: std::fmt::Debug + Send + Sync {
    /// Replaces what has this version, 0 for nothing, and says what is kept then, whether that was done or not.
    ///
    /// # Errors
    /// [`KeeperError`].
    fn replace(&self, expected: u64, by: &Configuration) -> Result<Versioned, KeeperError>;

    /// Has `told` hear what is kept, and each change of it from now on, in any order, until what is returned is
    /// dropped. It need not hear those that this node makes.
    fn watch(&self, told: Told) -> Box<dyn Send>;

    /// Whether this node may be the first to lead, where nothing is kept yet.
    fn lets_form(&self) -> bool;

    /// Whether a node may take the place of a leader that is silent.
    fn lets_take_over(&self) -> bool;
}

/// Why a configuration was not replaced.
#[derive(Debug, thiserror::Error)]
pub enum KeeperError {
    /// It was not, and will not be.
    #[error("{0}")]
    Refused(String),
    /// It may have been, or may still be.
    #[error("{0}")]
    Unknown(String),
}

/// What the first of a fixed list of nodes keeps, in its store: that it leads, and which others are in sync.
#[derive(Debug)]
pub(crate) struct FirstLeads {
    here: NodeId,
    directory: Arc<Directory>,
}

/// The node that leads where nobody else can.
const FIRST: NodeId = NodeId(0);

impl FirstLeads {
    pub(crate) fn new(here: NodeId, directory: &Arc<Directory>) -> Self {
        let directory = Arc::clone(directory);
        Self { here, directory }
    }

    fn kept(&self) -> Versioned {
        let kept = match CopiesFile::read(&self.directory) {
            Ok(kept) => kept,
            Err(error) => {
                // It is what it would be if the store had been copied.
                tracing::warn!(%error, "which copies are in sync is found out anew");
                None
            }
        };
        let kept = kept.filter(|kept| kept.leader == FIRST.0);
        kept.map_or_else(Versioned::default, |kept| Versioned {
            version: kept.version,
            configuration: Configuration {
                term: kept.term,
                leader: FIRST,
                in_sync: kept.in_sync.into_iter().map(NodeId).collect(),
            },
        })
    }
}

impl Keeper for FirstLeads {
    fn replace(&self, expected: u64, by: &Configuration) -> Result<Versioned, KeeperError> {
        if self.here != FIRST {
            let reason = "the first node of the list leads".to_owned();
            return Err(KeeperError::Refused(reason));
        }
        // Greater than what others have heard of a store that this one replaces.
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = since.map_or(1, |since| since.as_micros() as u64);
        let version = now.max(expected + 1);
        let kept = CopiesFile {
            version,
            term: by.term,
            leader: by.leader.0,
            in_sync: by.in_sync.iter().map(|node| node.0).collect(),
        };
        let written = kept.write(&self.directory);
        written.map_err(|error| KeeperError::Unknown(error.to_string()))?;
        Ok(Versioned {
            version,
            configuration: by.clone(),
        })
    }

    fn watch(&self, told: Told) -> Box<dyn Send> {
        if self.here == FIRST {
            told(self.kept());
        }
        Box::new(())
    }

    fn lets_form(&self) -> bool {
        self.here == FIRST
    }

    fn lets_take_over(&self) -> bool {
        false
    }
}
