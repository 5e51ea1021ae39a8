//! Group commit: up to where is the log synced, who syncs next, and who waits for it?
//!
//! Of all threads that wait, one *leads*: it syncs the file once, for everything appended before
//! it began, and wakes the others. There is never more than one sync at a time, because a system
//! may tell a failed sync to one caller only. The first failure is the last word: after it nothing
//! is acknowledged until the log is opened again, since the system may have dropped the bytes.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::{Condvar, Mutex, MutexGuard};

use super::storage::LogFile;
use crate::StoreError;

/// How often a leader lets others go first, as long as they append.
const GATHER_ROUNDS: u32 = 6;

/// An open file of the log.
#[derive(Debug)]
pub(super) struct Handle {
    pub(super) number: u64,
    pub(super) salt: u64,
    pub(super) path: PathBuf,
    pub(super) file: Arc<dyn LogFile>,
}

/// A place in the log: a file, and a byte and a record in it.
#[derive(Clone, Debug)]
pub(super) struct Position {
    pub(super) handle: Arc<Handle>,
    pub(super) end: u64,
    pub(super) sequence: u64,
}

#[derive(Debug)]
struct Failure {
    path: PathBuf,
    source: Arc<io::Error>,
}

#[derive(Debug)]
struct State {
    appended: Position,
    /// Everything up to here is on the device.
    durable: Position,
    leading: bool,
    /// Threads that wait for a sync that is not theirs.
    waiting: u32,
    /// Some did when the last sync ended.
    crowded: bool,
    failure: Option<Failure>,
    syncs: u64,
}

/// What appending and waiting threads share.
#[derive(Debug)]
pub(super) struct Commits {
    state: Mutex<State>,
    changed: Condvar,
}

impl Commits {
    /// Everything up to `position` is durable.
    pub(super) fn new(position: Position) -> Self {
        Self {
            state: Mutex::new(State {
                appended: position.clone(),
                durable: position,
                leading: false,
                waiting: 0,
                crowded: false,
                failure: None,
                syncs: 0,
            }),
            changed: Condvar::new(),
        }
    }

    /// Refuses if the log has failed.
    pub(super) fn check(&self) -> Result<(), StoreError> {
        self.state.lock().check()
    }

    /// The byte up to which a file is synced, if it is the current one.
    pub(super) fn durable_in(&self, number: u64) -> Option<u64> {
        let state = self.state.lock();
        (state.durable.handle.number == number).then_some(state.durable.end)
    }

    pub(super) fn set_appended(&self, position: Position) {
        self.state.lock().appended = position;
    }

    /// Moves to another file, in which nothing waits to be synced.
    pub(super) fn set_file(&self, position: Position) {
        let mut state = self.state.lock();
        assert!(state.durable.sequence == position.sequence);
        state.appended = position.clone();
        state.durable = position;
    }

    /// How often a sync was asked of the device.
    pub(super) fn syncs(&self) -> u64 {
        self.state.lock().syncs
    }

    /// Lets nothing more be acknowledged. The first failure stays the one that is told.
    pub(super) fn fail(&self, path: PathBuf, source: io::Error) -> StoreError {
        let mut state = self.state.lock();
        let failure = state.failure.get_or_insert(Failure {
            path,
            source: Arc::new(source),
        });
        let error = failure.error();
        self.changed.notify_all();
        error
    }

    /// Waits until nobody syncs, and keeps others from it.
    pub(super) fn lead(&self) -> Result<Lead<'_>, StoreError> {
        let mut state = self.state.lock();
        while state.leading {
            self.changed.wait(&mut state);
        }
        self.take(state)
    }

    /// Waits until a record is durable, or it is on the caller to sync.
    pub(super) fn lead_for(&self, sequence: u64) -> Result<Option<Lead<'_>>, StoreError> {
        let mut state = self.state.lock();
        assert!(
            sequence <= state.appended.sequence,
            "a ticket of another log"
        );
        while state.durable.sequence < sequence {
            state.check()?;
            if !state.leading {
                return self.take(state).map(Some);
            }
            state.waiting += 1;
            self.changed.wait(&mut state);
            state.waiting -= 1;
        }
        Ok(None)
    }

    fn take(&self, mut state: MutexGuard<'_, State>) -> Result<Lead<'_>, StoreError> {
        state.check()?;
        state.leading = true;
        Ok(Lead { commits: self })
    }
}

impl State {
    fn check(&self) -> Result<(), StoreError> {
        self.failure
            .as_ref()
            .map_or(Ok(()), |failure| Err(failure.error()))
    }
}

impl Failure {
    fn error(&self) -> StoreError {
        StoreError::LogFailed {
            path: self.path.clone(),
            source: Arc::clone(&self.source),
        }
    }
}

/// The right to sync, held by one at a time.
#[derive(Debug)]
pub(super) struct Lead<'a> {
    commits: &'a Commits,
}

impl Lead<'_> {
    /// Lets those append who are about to, which all are who waited for the sync before this one:
    /// without it each sync serves one half of the threads while the other half appends. Gives up
    /// the processor, and only if others do append.
    pub(super) fn gather(&self) {
        let mut before = None;
        for _ in 0..GATHER_ROUNDS {
            {
                let state = self.commits.state.lock();
                let appended = Some(state.appended.sequence);
                if !state.crowded || appended == before {
                    return;
                }
                before = appended;
            }
            std::thread::yield_now();
        }
    }

    /// Syncs everything that is appended now.
    pub(super) fn sync(&self) -> Result<(), StoreError> {
        let target = {
            let mut state = self.commits.state.lock();
            state.check()?;
            state.syncs += 1;
            state.appended.clone()
        };
        let result = target.handle.file.sync();
        if let Err(source) = result {
            return Err(self.commits.fail(target.handle.path.clone(), source));
        }
        let mut state = self.commits.state.lock();
        // A write that failed meanwhile says nothing about these bytes, but nothing is acknowledged
        // after any failure.
        state.check()?;
        state.durable = target;
        Ok(())
    }
}

impl Drop for Lead<'_> {
    fn drop(&mut self) {
        let mut state = self.commits.state.lock();
        state.leading = false;
        state.crowded = state.waiting > 0;
        drop(state);
        self.commits.changed.notify_all();
    }
}
