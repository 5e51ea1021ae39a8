//! Who keeps which node leads, and which nodes are in sync?
//!
//! One configuration for all nodes, which one of them at a time can replace: that only one can is what all else rests
//! on. With a fixed list of nodes the first one always leads, and keeps it for itself.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use jindou_model::NodeId;
use jindou_replication::{Configuration, Versioned};
use jindou_store::{CopiesFile, Directory, StoreError};

use super::names::NodeNames;

/// Hears what is kept.
pub type Told = Arc<dyn Fn(Versioned) + Send + Sync>;

/// Keeps the configuration of the copies of a store. What it loses, as one that is restored from an old copy does, the stores
/// that were told of it have noted, and do not lead by what is older. Its methods may take as long as a network does, and are called
/// by threads that nobody waits for.
pub trait Keeper: std::fmt::Debug + Send + Sync {
    /// Replaces what has this version, 0 for nothing, and says what is kept then, whether that was done or not.
    ///
    /// # Errors
    /// [`KeeperError`].
    fn replace(&self, expected: u64, by: &Configuration) -> Result<Versioned, KeeperError>;

    /// Has `told` hear what is kept, also that nothing is, and each change of it from now on, in any order, until what is
    /// returned is dropped. It need not hear those that this node makes.
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

/// What a store notes of what is kept: it is there before anybody was heard, and tells what a keeper has lost.
#[derive(Debug)]
pub(super) struct Noted {
    directory: Arc<Directory>,
    names: NodeNames,
}

impl Noted {
    pub(super) fn new(directory: &Arc<Directory>, names: &NodeNames) -> Self {
        let directory = Arc::clone(directory);
        let names = names.clone();
        Self { directory, names }
    }

    /// What was noted last; nothing of other nodes than there are.
    pub(super) fn read(&self) -> Versioned {
        match CopiesFile::read(&self.directory) {
            Ok(None) => Versioned::default(),
            Ok(Some(noted)) => self.known(&noted).unwrap_or_else(|| {
                tracing::warn!(
                    "{} was written for other nodes: which copies are in sync is found out anew",
                    self.path()
                );
                Versioned::default()
            }),
            Err(error) => {
                // It is what it would be if the store had been copied.
                tracing::warn!(%error, "which copies are in sync is found out anew");
                Versioned::default()
            }
        }
    }

    fn known(&self, noted: &CopiesFile) -> Option<Versioned> {
        let in_sync = noted.in_sync.iter().map(|name| self.names.node(name));
        Some(Versioned {
            version: noted.version,
            configuration: Configuration {
                term: noted.term,
                leader: self.names.node(&noted.leader)?,
                in_sync: in_sync.collect::<Option<_>>()?,
            },
        })
    }

    /// Notes what is kept. It is lasting when this returns.
    ///
    /// # Errors
    /// What the operating system says; what was noted before stays.
    pub(super) fn write(&self, known: &Versioned) -> Result<(), StoreError> {
        let Configuration {
            term,
            leader,
            in_sync,
        } = &known.configuration;
        let noted = CopiesFile {
            version: known.version,
            term: *term,
            leader: self.names.name(*leader),
            in_sync: in_sync.iter().map(|node| self.names.name(*node)).collect(),
        };
        noted.write(&self.directory)
    }

    /// Where it is.
    pub(super) fn path(&self) -> String {
        let path = self.directory.path().join(CopiesFile::NAME);
        path.display().to_string()
    }
}

/// What the first of a fixed list of nodes keeps, in its store: that it leads, and which others are in sync.
#[derive(Debug)]
pub(crate) struct FirstLeads {
    here: NodeId,
    noted: Noted,
}

/// The node that leads where nobody else can.
const FIRST: NodeId = NodeId(0);

impl FirstLeads {
    pub(super) fn new(here: NodeId, noted: Noted) -> Self {
        Self { here, noted }
    }

    fn kept(&self) -> Versioned {
        let kept = self.noted.read();
        match kept.configuration.leader == FIRST {
            true => kept,
            false => Versioned::default(),
        }
    }
}

/// The version of what replaces another one: greater than what others have heard of a keeper, or of a store, that this one
/// takes the place of.
#[must_use]
pub fn next_version(before: u64) -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = since.map_or(1, |since| since.as_micros() as u64);
    now.max(before + 1)
}

impl Keeper for FirstLeads {
    fn replace(&self, expected: u64, by: &Configuration) -> Result<Versioned, KeeperError> {
        if self.here != FIRST {
            let reason = "the first node of the list leads".to_owned();
            return Err(KeeperError::Refused(reason));
        }
        let kept = Versioned {
            version: next_version(expected),
            configuration: by.clone(),
        };
        let written = self.noted.write(&kept);
        written.map_err(|error| KeeperError::Unknown(error.to_string()))?;
        Ok(kept)
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
