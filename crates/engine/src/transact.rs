//! Whose turn is it: when is a transaction executed, and beside which others?
//!
//! What changes quads that it names is executed while it holds the writer's lock. A request that
//! searches first may take long: it is executed on a copy of the latest snapshot without the lock,
//! and committed if nobody else committed meanwhile. Otherwise it is executed again: with the lock
//! where it is short, for a few times as long as it took before at most, and without it where it
//! is not. What counts as short grows with the races that it lost, up to a bound, so that a search
//! of moderate length is not starved by those that are shorter. So transactions stay serializable,
//! and none waits long for the search of another.

use std::sync::Arc;
use std::time::{Duration, Instant};

use jindou_exec::Reservation;
use jindou_store::{Effect, Snapshot, Stage};
use parking_lot::MutexGuard;

use crate::database::Inner;
use crate::deadline::{Deadline, wait_for_lock};
use crate::graph::read_whole;
use crate::writer::Writer;
use crate::{Database, EngineError, UpdateReport};

/// What took longer is not executed while others wait, when it has lost its first race; four times
/// as much after each further one.
const SHORT: Duration = Duration::from_millis(5);
/// The longest that others wait for a search.
const LONGEST_HOLD: Duration = Duration::from_secs(1);
/// How much longer than before what is short may take while others wait.
const HOLD_FACTOR: u32 = 4;
/// Executions without a time limit before a request gives up.
const MOST_EXECUTIONS: u64 = 64;

/// What a request did to its copy of the latest snapshot.
pub(crate) struct Done {
    pub(crate) stages: Vec<Stage>,
    pub(crate) effect: Effect,
    /// Of the new terms, until they are the database's.
    pub(crate) memory: Vec<Reservation>,
    /// It called other endpoints, for which nobody shall wait with the writer's lock.
    pub(crate) calls_services: bool,
}

impl Database {
    /// Executes one transaction on a copy of the latest snapshot while all others wait.
    pub(crate) fn transact(
        &self,
        deadline: &Deadline,
        execute: impl FnOnce(&mut Snapshot) -> Result<Done, EngineError>,
    ) -> Result<UpdateReport, EngineError> {
        let inner = self.inner();
        inner.wait_for_merge(deadline)?;
        let writer = inner.take_turn(deadline)?;
        let mut working = begin(&writer)?;
        let done = read_whole(&writer.latest, || execute(&mut working))??;
        // From here on it happens, whatever its client wants.
        deadline.left()?;
        self.commit(writer, working, done)
    }

    /// Executes one transaction that may take long, and holds up no other meanwhile.
    ///
    /// # Errors
    /// [`EngineError::Contended`] if others committed before it each time, until its time was
    /// over.
    pub(crate) fn search_and_transact(
        &self,
        deadline: &Deadline,
        execute: &dyn Fn(&mut Snapshot, &Deadline) -> Result<Done, EngineError>,
    ) -> Result<UpdateReport, EngineError> {
        let mut executions = 0;
        loop {
            match self.try_search(deadline, execute, executions) {
                Ok(Some(report)) => return Ok(report),
                Ok(None) => executions += 1,
                Err(EngineError::Timeout { .. }) if executions > 0 => {
                    return Err(EngineError::Contended { executions });
                }
                Err(error) => return Err(error),
            }
            match deadline.left() {
                Ok(None) if executions < MOST_EXECUTIONS => {}
                Ok(Some(_)) => {}
                Ok(None) | Err(EngineError::Timeout { .. }) => {
                    return Err(EngineError::Contended { executions });
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// One attempt; `None` if others committed first.
    fn try_search(
        &self,
        deadline: &Deadline,
        execute: &dyn Fn(&mut Snapshot, &Deadline) -> Result<Done, EngineError>,
        lost: u64,
    ) -> Result<Option<UpdateReport>, EngineError> {
        let inner = self.inner();
        inner.wait_for_merge(deadline)?;
        let (start, mut working) = {
            let writer = inner.take_turn(deadline)?;
            (writer.latest.clone(), begin(&writer)?)
        };
        let begun = Instant::now();
        let done = read_whole(&start, || execute(&mut working, deadline))??;
        let took = begun.elapsed();
        let writer = inner.take_turn(deadline)?;
        let is_latest =
            writer.latest.is_of_generation_of(&start) && writer.latest.number() == start.number();
        if is_latest {
            return self.commit(writer, working, done).map(Some);
        }
        let calls_services = done.calls_services;
        drop((start, working, done));
        let short = SHORT.saturating_mul(4_u32.saturating_pow(lost.min(8) as u32));
        if calls_services || took > short.min(LONGEST_HOLD / HOLD_FACTOR) {
            return Ok(None);
        }
        let mut working = begin(&writer)?;
        let hold = deadline.within(took.max(SHORT) * HOLD_FACTOR);
        let done = match read_whole(&writer.latest, || execute(&mut working, &hold))? {
            Ok(done) => done,
            // It has become long.
            Err(EngineError::Timeout { .. }) if deadline.left().is_ok() => return Ok(None),
            Err(error) => return Err(error),
        };
        deadline.left()?;
        self.commit(writer, working, done).map(Some)
    }

    /// Makes a changed copy of the latest snapshot the latest, and waits until it is lasting.
    fn commit(
        &self,
        mut writer: MutexGuard<'_, Writer>,
        working: Snapshot,
        done: Done,
    ) -> Result<UpdateReport, EngineError> {
        let Done {
            stages,
            effect,
            memory,
            calls_services: _,
        } = done;
        let appended = writer.append(working, stages)?;
        let snapshot = writer.latest.number();
        drop(writer);
        // The terms are the database's now.
        drop(memory);
        let inner = self.inner();
        inner.publish(appended)?;
        inner.note_transaction();
        Ok(UpdateReport {
            inserted: effect.added,
            deleted: effect.removed,
            snapshot,
        })
    }
}

/// A copy of the latest snapshot for one transaction.
fn begin(writer: &Writer) -> Result<Snapshot, EngineError> {
    let mut working = writer.begin()?;
    let documents = working.documents();
    working.set_documents(documents + 1);
    Ok(working)
}

impl Inner {
    /// The writer's lock.
    ///
    /// # Errors
    /// As [`Deadline::left`].
    pub(crate) fn take_turn(
        &self,
        deadline: &Deadline,
    ) -> Result<MutexGuard<'_, Writer>, EngineError> {
        wait_for_lock(&self.writer, deadline)
    }

    /// Waits while the changes have outgrown what a merge is meant for.
    fn wait_for_merge(self: &Arc<Self>, deadline: &Deadline) -> Result<(), EngineError> {
        while self.config.merge.is_overdue(&self.graph.load().snapshot) {
            // What failed a moment ago is not tried by each update that comes.
            if let Some(failed) = self.trouble.reason() {
                return Err(EngineError::ReadOnly {
                    reason: format!("its changes cannot be merged: {failed}"),
                });
            }
            self.ask_for_merge(deadline)?;
        }
        Ok(())
    }
}
