//! What does a load leave that is killed?

use std::fs;
use std::path::Path;
use std::thread;
use std::time::Duration;

use jindou_engine::{Database, EngineError};
use serde::{Deserialize, Serialize};

use super::{LOOK, Options, Way, task};
use crate::BenchError;
use crate::child::ChildReport;
use crate::data;
use crate::generated::Generated;
use crate::store_folder::StoreFolder;

/// A load that was killed, and what was found then.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Kill {
    /// When it was, in seconds after the start of the load.
    pub after_seconds: f64,
    /// The step that it was in, none while it read.
    pub step: Option<String>,
    /// What the folder is.
    pub found: Found,
    /// Bytes of files that the folder had, which no store has and the next load removes.
    pub left_bytes: u64,
}

/// What a folder is after a kill.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "what")]
pub enum Found {
    /// No store, as before.
    NoStore,
    /// The whole store: the kill came after it was made.
    Whole,
    /// A store with another number of triples.
    Other {
        /// Its triples.
        triples: u64,
    },
    /// What cannot be read.
    Unreadable {
        /// Why not.
        reason: String,
    },
}

impl Found {
    /// Whether the load is there whole, or nothing of it.
    #[must_use]
    pub fn is_right(&self) -> bool {
        matches!(self, Self::NoStore | Self::Whole)
    }
}

/// The load that comes after all kills, at the same place.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct AfterKills {
    /// How long it took.
    pub seconds: f64,
    /// Its triples, once all of it was read and compared with what it says twice.
    pub triples: u64,
    /// Bytes of files in the folder that are not the store's.
    pub other_bytes: u64,
}

/// Loads within the limit that are killed, one after the other.
pub(super) struct Series<'a> {
    pub(super) options: &'a Options,
    pub(super) graph: Generated,
    /// Its triples.
    pub(super) triples: u64,
    /// The time that a whole load takes.
    pub(super) seconds: f64,
}

impl Series<'_> {
    pub(super) fn run(&self, note: &impl Fn(&str)) -> Result<(Vec<Kill>, AfterKills), BenchError> {
        let folder = StoreFolder::new(&self.options.folder, "bulk-killed");
        let count = self.options.kills;
        let mut kills = Vec::new();
        for number in 1..=count {
            note(&format!("{}, kill {number} of {count}", self.graph));
            let share = f64::from(number) / f64::from(count + 1);
            let after = Duration::from_secs_f64(self.seconds * share);
            let kill = self.kill(folder.path(), after)?;
            if kill.found != Found::NoStore {
                fs::remove_dir_all(folder.path()).map_err(BenchError::io(folder.path()))?;
            }
            kills.push(kill);
        }
        note(&format!("{}, the load after the kills", self.graph));
        Ok((kills, self.load_after(folder.path())?))
    }

    /// Kills a load after so much time, if it has not ended before.
    fn kill(&self, location: &Path, after: Duration) -> Result<Kill, BenchError> {
        let task = task(self.options, self.graph, Way::Within, location);
        let mut child = self.options.child.start(&task)?;
        while child.elapsed() < after && child.is_at_work()? {
            thread::sleep(LOOK.min(after.saturating_sub(child.elapsed())));
        }
        let after_seconds = child.elapsed().as_secs_f64();
        let step = match child.is_at_work()? {
            true => child.kill()?,
            false => {
                // It was not killed; one that failed is an error.
                let (_, steps) = child.finish::<ChildReport>()?;
                steps.last().map(|step| step.name.clone())
            }
        };
        let found = found(location, self.triples);
        let left_bytes = match found {
            Found::NoStore => data::bytes_if_there(location)?,
            _ => 0,
        };
        Ok(Kill {
            after_seconds,
            step,
            found,
            left_bytes,
        })
    }

    fn load_after(&self, location: &Path) -> Result<AfterKills, BenchError> {
        let task = task(self.options, self.graph, Way::Within, location);
        let report: ChildReport = self.options.child.run(&task)?;
        let whole = Database::verify(location)?;
        let of_store: u64 = whole.files.iter().map(|file| file.bytes).sum();
        Ok(AfterKills {
            seconds: report.seconds,
            triples: whole.triples,
            other_bytes: data::folder_bytes(location)?.saturating_sub(of_store),
        })
    }
}

/// What a folder holds after a load of so many triples was killed there.
fn found(location: &Path, triples: u64) -> Found {
    let look = || -> Result<Found, EngineError> {
        if !Database::is_at(location)? {
            return Ok(Found::NoStore);
        }
        let whole = Database::verify(location)?;
        Ok(match whole.triples == triples {
            true => Found::Whole,
            false => Found::Other {
                triples: whole.triples,
            },
        })
    };
    look().unwrap_or_else(|error| Found::Unreadable {
        reason: error.to_string(),
    })
}
