//! Whose turn is it: when is a transaction executed, and beside which others?
//!
//! What changes few quads that it names is executed while it holds the writer's lock. A request that
//! searches first, or has a long text or document, may take long: it is executed on a copy of the
//! latest snapshot without the lock, where it is long with the priority of long work, and what it
//! reads is noted. It is committed if all that it read is as it was when its turn
//! comes, whatever else others committed meanwhile. Otherwise it is executed again: with the lock
//! where it is short, for a few times as long as it took before at most, and without it where it
//! is not. What counts as short grows with the races that it lost, up to a bound, so that a search
//! of moderate length is not starved by those that are shorter. So transactions stay serializable,
//! and none waits long for the search of another.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use jindou_store::Snapshot;
use parking_lot::MutexGuard;

use crate::attempt::{Attempt, Done};
use crate::database::Inner;
use crate::deadline::{Deadline, wait_for_lock};
use crate::delta::DeltaMemory;
use crate::graph::read_whole;
use crate::reads::Reads;
use crate::writer::Writer;
use crate::{Database, EngineError, UpdateReport};

/// What took longer is not executed while others wait, when it has lost its first race; four times
/// as much after each further one.
const SHORT: Duration = Duration::from_millis(5);
/// The longest that others wait for a search.
const LONGEST_HOLD: Duration = Duration::from_secs(1);
/// How much longer than before what is short may take while others wait.
const HOLD_FACTOR: u32 = 4;
/// Races after which others wait, as long as they ever do, for a search that may just end in that
/// time.
const MANY_LOST: u64 = 4;
/// How often others wait in vain for the searches of one request that take long.
const MOST_VAIN_HOLDS: u32 = 2;
/// Executions without a time limit before a request gives up.
const MOST_EXECUTIONS: u64 = 64;
/// What changes no more quads and graphs is moved onto the commits of others while all wait.
const QUICK_CHANGES: usize = 20_000;
/// How often more than that is moved onto what others committed during the last move, before all
/// wait for it.
const MOST_MOVES: usize = 4;

/// How a request that may take long is executed.
pub(crate) struct Search<'a> {
    /// Executes it on a copy of the latest snapshot.
    pub(crate) execute: &'a Execute<'a>,
    /// It is known to take long.
    pub(crate) is_long: bool,
    /// How many documents it numbers at most.
    pub(crate) documents: u64,
    /// Quads that it may change, where that is known before.
    pub(crate) brings: u64,
    /// The time: how long an execution took decides whether others wait for the next one.
    pub(crate) clock: &'a dyn Fn() -> Instant,
}

pub(crate) type Execute<'a> =
    dyn Fn(&mut Snapshot, &Deadline, Execution) -> Result<Done, EngineError> + Sync + 'a;

/// What is asked of an execution.
#[derive(Clone, Default)]
pub(crate) struct Execution {
    /// Where what it reads is noted; others may commit beside it.
    pub(crate) reads: Option<Arc<Reads>>,
    /// It is begun again if it proves long, so it calls no endpoint.
    pub(crate) is_trial: bool,
}

/// How a request fared.
#[derive(Clone, Copy, Debug, Default)]
struct Races {
    /// Executions that others overtook, or that had no time to end while others waited.
    lost: u64,
    /// Those among them for which others waited long.
    vain_holds: u32,
    /// Changes that the last execution made, or that are known before.
    brings: u64,
}

impl Races {
    /// For how long others wait for the next execution where the last one took so long; `None`
    /// if they do not.
    fn hold(self, took: Duration) -> Option<Duration> {
        let short = SHORT.saturating_mul(4_u32.saturating_pow(self.lost.min(8) as u32));
        if took <= short.min(LONGEST_HOLD / HOLD_FACTOR) {
            return Some(took.max(SHORT) * HOLD_FACTOR);
        }
        let is_starved = self.lost >= MANY_LOST && self.vain_holds < MOST_VAIN_HOLDS;
        (is_starved && took <= LONGEST_HOLD).then_some(LONGEST_HOLD)
    }
}

/// What comes of an execution when its turn has come.
enum Turn<'a> {
    /// It stands, on top of all others.
    Stands(MutexGuard<'a, Writer>),
    /// Others changed what it read.
    Lost(MutexGuard<'a, Writer>),
}

impl Database {
    /// Executes one transaction on a copy of the latest snapshot while all others wait.
    pub(crate) fn transact(
        &self,
        deadline: &Deadline,
        execute: impl FnOnce(&mut Snapshot) -> Result<Done, EngineError>,
    ) -> Result<UpdateReport, EngineError> {
        let inner = self.inner();
        // It names its quads, and is short.
        inner.wait_for_merge(deadline, 0)?;
        let writer = inner.take_turn(deadline)?;
        let mut working = writer.begin_transaction()?;
        let done = read_whole(&writer.latest, || execute(&mut working))??;
        // From here on it happens, whatever its client wants.
        deadline.left()?;
        self.commit(writer, working, done)
    }

    /// Executes one transaction that may take long, and holds up no other meanwhile.
    ///
    /// # Errors
    /// [`EngineError::Contended`] if others changed what it read each time, until its time was
    /// over.
    pub(crate) fn search_and_transact(
        &self,
        deadline: &Deadline,
        search: &Search<'_>,
    ) -> Result<UpdateReport, EngineError> {
        let mut races = Races {
            brings: search.brings,
            ..Races::default()
        };
        loop {
            match self.try_search(deadline, search, &mut races) {
                Ok(Some(report)) => return Ok(report),
                Ok(None) => {}
                Err(EngineError::Timeout { .. }) if races.lost > 0 => {
                    return Err(contended(races));
                }
                Err(error) => return Err(error),
            }
            match deadline.left() {
                Ok(None) if races.lost < MOST_EXECUTIONS => {}
                Ok(Some(_)) => {}
                Ok(None) | Err(EngineError::Timeout { .. }) => return Err(contended(races)),
                Err(error) => return Err(error),
            }
        }
    }

    /// One attempt; `None` if others changed first what it read, or it brings too much for the merge that is under way.
    fn try_search(
        &self,
        deadline: &Deadline,
        search: &Search<'_>,
        races: &mut Races,
    ) -> Result<Option<UpdateReport>, EngineError> {
        let inner = self.inner();
        inner.wait_for_merge(deadline, races.brings)?;
        let _searching = Searching::begin(&inner.searches);
        let (start, working) = {
            let mut writer = inner.take_turn(deadline)?;
            let working = writer.begin_beside(search.documents)?;
            (Arc::new(writer.latest.clone()), working)
        };
        let (mut attempt, took) = self.execute_beside(search, &start, &working, deadline)?;
        races.brings = attempt.changes() as u64;
        if inner.check_may_merge().is_ok() && inner.must_wait_for_merge(races.brings) {
            // It is executed once more when the merge has ended, on whose base it would not stand; its memory is free until then.
            return Ok(None);
        }
        let writer = match self.catch_up(&mut attempt, deadline, search.clock)? {
            Turn::Stands(writer) => {
                deadline.left()?;
                let (working, done) = attempt.into_parts();
                return self.commit(writer, working, done).map(Some);
            }
            Turn::Lost(writer) => writer,
        };
        let calls_services = attempt.done().calls_services;
        drop(attempt);
        let done = match races.hold(took).filter(|_| !calls_services) {
            Some(hold) => self.execute_holding(writer, deadline, search, (hold, &mut *races))?,
            None => {
                drop(writer);
                None
            }
        };
        races.lost += u64::from(done.is_none());
        Ok(done)
    }

    /// Executes a request on a copy of `working`, which is one of `start`, while others may commit;
    /// and how long that took.
    ///
    /// What is not known to be long is first tried on this thread.
    fn execute_beside(
        &self,
        search: &Search<'_>,
        start: &Arc<Snapshot>,
        working: &Snapshot,
        deadline: &Deadline,
    ) -> Result<(Attempt, Duration), EngineError> {
        let execute = |deadline: &Deadline, is_trial| {
            let reads = Arc::new(Reads::of(Arc::clone(start)));
            let mut working = working.clone();
            let execution = Execution {
                reads: Some(Arc::clone(&reads)),
                is_trial,
            };
            let done = read_whole(start, || {
                (search.execute)(&mut working, deadline, execution)
            })??;
            Ok(Attempt::new(Arc::clone(start), working, done, reads))
        };
        let mut begun = (search.clock)();
        let inner = self.inner();
        if !search.is_long && inner.has_background() {
            match execute(&deadline.within(SHORT), true) {
                Err(EngineError::Timeout { .. } | EngineError::WouldWait) => deadline.left()?,
                Err(error) => return Err(error),
                Ok(attempt) => {
                    return Ok((attempt, (search.clock)().saturating_duration_since(begun)));
                }
            };
            begun = (search.clock)();
        }
        let attempt = inner.execute_apart(|| execute(deadline, false))??;
        Ok((attempt, (search.clock)().saturating_duration_since(begun)))
    }

    /// Brings an execution onto the latest snapshot, if it stands there.
    fn catch_up(
        &self,
        attempt: &mut Attempt,
        deadline: &Deadline,
        clock: &dyn Fn() -> Instant,
    ) -> Result<Turn<'_>, EngineError> {
        let inner = self.inner();
        let mut took = None;
        for moves in 0.. {
            let writer = inner.take_turn(deadline)?;
            // One that changed nothing is as if it had come before all others.
            if attempt.is_on(&writer.latest) || !attempt.done().changes_anything() {
                return Ok(Turn::Stands(writer));
            }
            if !attempt.stands_beside(&writer.latest) {
                return Ok(Turn::Lost(writer));
            }
            let latest = writer.latest.clone();
            let is_short = |took: Duration| took <= LONGEST_HOLD / HOLD_FACTOR;
            let is_quick = attempt.changes() <= QUICK_CHANGES || took.is_some_and(is_short);
            if is_quick || moves == MOST_MOVES {
                attempt.move_onto(latest, deadline)?;
                return Ok(Turn::Stands(writer));
            }
            drop(writer);
            let begun = clock();
            inner.execute_apart(|| attempt.move_onto(latest, deadline))??;
            took = Some(clock().saturating_duration_since(begun));
        }
        unreachable!("the last move ends it")
    }

    /// Executes a request once more while all others wait, for so long at most; `None` if that was
    /// not enough.
    fn execute_holding(
        &self,
        writer: MutexGuard<'_, Writer>,
        deadline: &Deadline,
        search: &Search<'_>,
        (hold, races): (Duration, &mut Races),
    ) -> Result<Option<UpdateReport>, EngineError> {
        let mut working = writer.begin_transaction()?;
        let until = deadline.within(hold);
        let execute = || (search.execute)(&mut working, &until, Execution::default());
        let done = match read_whole(&writer.latest, execute)? {
            Ok(done) => done,
            // It has become long.
            Err(EngineError::Timeout { .. }) if deadline.left().is_ok() => {
                races.vain_holds += u32::from(hold >= LONGEST_HOLD);
                return Ok(None);
            }
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
        mut done: Done,
    ) -> Result<UpdateReport, EngineError> {
        let (effect, memory) = (done.effect, std::mem::take(&mut done.memory));
        let inner = self.inner();
        let delta = match done.returns_delta {
            true => {
                let memory = DeltaMemory::reserve(effect, &inner.config)?;
                Some((memory, writer.latest.clone()))
            }
            false => None,
        };
        let appended = writer.append(working, done.into_stages())?;
        let snapshot = writer.latest.number();
        let delta = delta.map(|(memory, before)| (memory, before, writer.latest.clone()));
        drop(writer);
        // What was changed is the database's now.
        drop(memory);
        inner.publish(appended)?;
        inner.note_transaction();
        inner.tell_subscriptions();
        let delta = delta.map(|(memory, before, after)| memory.delta(&before, after));
        Ok(UpdateReport {
            inserted: effect.added,
            deleted: effect.removed,
            snapshot,
            delta,
        })
    }
}

/// A search that is under way.
struct Searching<'a>(&'a AtomicUsize);

impl<'a> Searching<'a> {
    fn begin(searches: &'a AtomicUsize) -> Self {
        searches.fetch_add(1, Relaxed);
        Self(searches)
    }
}

impl Drop for Searching<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

fn contended(races: Races) -> EngineError {
    EngineError::Contended {
        executions: races.lost,
    }
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

    /// Waits while the changes have outgrown what a merge is meant for ([`MergePolicy::is_overdue`]), and none is under way that
    /// takes them away and beside which there is a place for `brings` changes more ([`MergeUnderway::takes`]): a large transaction
    /// keeps small ones waiting until its merge begins, and large ones until that has ended.
    ///
    /// # Errors
    /// As [`Deadline::left`]; [`EngineError::ReadOnly`] while merges fail.
    ///
    /// [`MergePolicy::is_overdue`]: crate::MergePolicy::is_overdue
    /// [`MergeUnderway::takes`]: crate::merge_underway::MergeUnderway::takes
    pub(crate) fn wait_for_merge(
        self: &Arc<Self>,
        deadline: &Deadline,
        brings: u64,
    ) -> Result<(), EngineError> {
        // Where none may begin yet, nobody waits for one.
        while self.check_may_merge().is_ok() && self.must_wait_for_merge(brings) {
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
