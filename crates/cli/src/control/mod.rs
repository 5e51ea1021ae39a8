//! How is a server asked by those who own its store?
//!
//! A server listens on a socket in the store's folder, `control.sock`, which only the user who runs
//! it may open, and answers what is in `message`. The socket is made and removed while the store is
//! locked, so that one which is found by whoever locks the store is that of a process which was
//! killed.

#[cfg(not(unix))]
mod absent;
#[cfg(unix)]
mod address;
#[cfg(unix)]
mod client;
#[cfg(unix)]
mod message;
#[cfg(unix)]
mod server;

use std::time::Duration;

use jindou_engine::{BackupReport, Database, EngineError};
use serde::{Deserialize, Serialize};

#[cfg(not(unix))]
pub(crate) use absent::{backup, compact, listen};
#[cfg(unix)]
pub(crate) use client::{backup, compact};
#[cfg(unix)]
pub(crate) use server::listen;

/// What is told of a backup that was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Made {
    pub(crate) quads: u64,
    pub(crate) bytes: u64,
    /// The large files are those of the store.
    pub(crate) is_linked: bool,
}

/// The result of a merge, as the server reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Merged {
    /// There were changes to merge.
    pub(crate) had_changes: bool,
    /// Quads added or removed since the last merge, all of which were merged.
    pub(crate) changes: u64,
    /// What the store holds.
    pub(crate) quads: u64,
}

impl Merged {
    /// Merges the changes of a database, or numbers all of it anew; it may wait for so long until it begins.
    ///
    /// # Errors
    /// What keeps the store busy for that time, or the base from being written; the store is then
    /// as it was.
    pub(crate) fn of(
        database: &Database,
        renumber: bool,
        wait: Option<Duration>,
    ) -> Result<Self, EngineError> {
        let changes = database.statistics().changes;
        let had_changes = match renumber {
            true => database.renumber_within(wait).map(|()| true)?,
            false => database.compact_within(wait)?,
        };
        Ok(Self {
            had_changes,
            changes,
            quads: database.quad_counts().total(),
        })
    }
}

impl From<BackupReport> for Made {
    fn from(report: BackupReport) -> Self {
        Self {
            quads: report.triples + report.named_quads,
            bytes: report.bytes,
            is_linked: report.is_linked,
        }
    }
}
