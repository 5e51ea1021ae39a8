//! Who may load, merge, write a checkpoint or make a backup now, and who is in the way?
//!
//! These are done one at a time. All wait for their turn until a deadline, and say after it what
//! they waited for. None holds the writer's lock while it waits for the others.

use std::fmt;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

use parking_lot::{Mutex, MutexGuard};

use crate::EngineError;
use crate::database::Inner;
use crate::deadline::{Deadline, wait_for_lock};
use crate::writer::Writer;

/// What keeps a store busy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[repr(u8)]
pub enum Occupation {
    /// Files that were read become part of the base.
    Load,
    /// Changes become part of the base.
    Merge,
    /// Changed lists are written out in memory.
    Fold,
    /// Changes are written to a file of their own.
    Checkpoint,
    /// The store is copied.
    Backup,
    /// A transaction holds the writer's lock.
    Update,
}

impl Occupation {
    const ALL: [Self; 6] = [
        Self::Load,
        Self::Merge,
        Self::Fold,
        Self::Checkpoint,
        Self::Backup,
        Self::Update,
    ];
}

impl fmt::Display for Occupation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Load => "a load",
            Self::Merge => "a merge",
            Self::Fold => "the writing out of changed lists",
            Self::Checkpoint => "a checkpoint",
            Self::Backup => "a backup",
            Self::Update => "an update",
        })
    }
}

/// The turn of all that replaces or copies the store's files.
#[derive(Debug, Default)]
pub(crate) struct Turn {
    lock: Mutex<()>,
    /// The latest [`Occupation`] that had the lock, or an update that it waits for itself. Not
    /// reset: one that waited in vain did so for that one.
    latest: AtomicU8,
}

impl Turn {
    /// Waits until no other work is under way, and keeps others from beginning.
    ///
    /// # Errors
    /// [`EngineError::Busy`] with what was under way at the deadline; [`EngineError::Cancelled`].
    pub(crate) fn take(
        &self,
        work: Occupation,
        deadline: &Deadline,
    ) -> Result<MutexGuard<'_, ()>, EngineError> {
        let guard = wait_for_lock(&self.lock, deadline);
        let guard = guard.map_err(|error| busy(error, self.latest()))?;
        self.note(work);
        Ok(guard)
    }

    fn note(&self, work: Occupation) {
        self.latest.store(work as u8, Relaxed);
    }

    /// True while something is under way.
    pub(crate) fn is_taken(&self) -> bool {
        self.lock.is_locked()
    }

    fn latest(&self) -> Occupation {
        Occupation::ALL[usize::from(self.latest.load(Relaxed))]
    }
}

impl Inner {
    /// The writer's lock, for `work` that has the [`Turn`].
    ///
    /// # Errors
    /// [`EngineError::Busy`], as a transaction had it until the deadline;
    /// [`EngineError::Cancelled`].
    pub(crate) fn take_writer(
        &self,
        work: Occupation,
        deadline: &Deadline,
    ) -> Result<MutexGuard<'_, Writer>, EngineError> {
        // Nothing but what has the turn or a transaction holds it for long. Others who wait for the
        // turn meanwhile wait for the transaction in truth.
        self.turn.note(Occupation::Update);
        let writer = self.take_writer_first(deadline)?;
        self.turn.note(work);
        Ok(writer)
    }

    /// The writer's lock, for work that will have the [`Turn`] later.
    ///
    /// # Errors
    /// As [`Inner::take_writer`].
    pub(crate) fn take_writer_first(
        &self,
        deadline: &Deadline,
    ) -> Result<MutexGuard<'_, Writer>, EngineError> {
        let writer = wait_for_lock(&self.writer, deadline);
        writer.map_err(|error| busy(error, Occupation::Update))
    }
}

/// The error of what waited in vain for `by`.
fn busy(error: EngineError, by: Occupation) -> EngineError {
    match error {
        EngineError::Timeout { limit } => EngineError::Busy { limit, by },
        error => error,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::ingest::{Format, Progress, Source};
    use crate::{Config, Database, LoadOptions, MergePolicy};

    const SHORT: Duration = Duration::from_millis(1);

    /// Nothing is done in the background, which would be in the way as well.
    fn never() -> MergePolicy {
        MergePolicy {
            fold_idle: Duration::from_secs(1 << 20),
            ..MergePolicy::never()
        }
    }

    fn database() -> Database {
        let database = Database::with_config(Config {
            merge: never(),
            ..Config::default()
        });
        let update = "INSERT DATA { <http://e/a> <http://e/p> 1 }";
        database.update(update).expect("the update is sound");
        database
    }

    const LOADED: u64 = 100;

    /// A load that is much beside the graph.
    fn load(database: &Database) -> Result<(), EngineError> {
        let line = |number| format!("<http://e/a> <http://e/p> <http://e/{number}> .\n");
        let text: String = (0..LOADED).map(line).collect();
        let document = Source::bytes("document.nt", text).with_format(Format::NTriples);
        let (options, progress) = (LoadOptions::default(), Progress::default());
        database.load(vec![document], &options, &progress).map(drop)
    }

    /// All that waits for the turn, by its own limit or the setting's, says what is in the way.
    fn all_are_busy(database: &Database, by: Occupation) {
        let folder = tempfile::tempdir().expect("there is room");
        let place = |name: &str| folder.path().join(name);
        let wait = Some(SHORT);
        for done in [
            database.compact().map(drop),
            database.compact_within(wait).map(drop),
            database.checkpoint(),
            database.checkpoint_within(wait),
            database.fold().map(drop),
            load(database),
        ] {
            let error = done.expect_err("something is in the way");
            assert_eq!(
                error.to_string(),
                format!("{by} kept the store busy for 0.001 s; try again later")
            );
            let EngineError::Busy { limit, by: found } = error else {
                panic!("{error}");
            };
            assert_eq!((limit, found), (SHORT, by));
        }
        if by == Occupation::Update {
            return;
        }
        for done in [
            database.backup(&place("by-setting")),
            database.backup_within(&place("by-limit"), wait),
        ] {
            assert!(
                matches!(done, Err(EngineError::Busy { by: found, .. }) if found == by),
                "{done:?}"
            );
        }
        let mut left = std::fs::read_dir(folder.path()).expect("it is there");
        assert!(left.next().is_none(), "a backup that was not made is left");
    }

    #[test]
    fn whatever_waits_for_the_store_does_so_no_longer_than_it_may_and_says_for_what() {
        let folder = tempfile::tempdir().expect("there is room");
        let location = folder.path().join("store");
        let open = |query_timeout| {
            let config = Config {
                merge: never(),
                query_timeout,
                ..Config::default()
            };
            Database::open_or_create(&location, config).expect("there is room")
        };
        let update = "INSERT DATA { <http://e/a> <http://e/p> 1 }";
        open(None).update(update).expect("the update is sound");
        let stored = open(Some(SHORT));
        for work in [
            Occupation::Load,
            Occupation::Merge,
            Occupation::Fold,
            Occupation::Checkpoint,
            Occupation::Backup,
        ] {
            let never = Deadline::never();
            let held = stored.inner().turn.take(work, &never);
            all_are_busy(&stored, work);
            drop(held);
        }
        let transaction = stored.inner().writer.lock();
        all_are_busy(&stored, Occupation::Update);
        let copy = folder.path().join("copy");
        let copied = stored.backup_within(&copy, None);
        copied.expect("a backup waits for no update");
        drop(transaction);
        assert!(stored.health().is_empty(), "to wait is no failure");
        drop(stored);
        let stored = open(None);
        assert!(stored.compact().expect("nothing is in the way"));
        stored.checkpoint().expect("nothing is in the way");
        load(&stored).expect("nothing is in the way");
    }

    #[test]
    fn the_update_is_named_to_those_who_wait_for_work_that_waits_for_it() {
        let database = database();
        let (inner, never) = (database.inner(), Deadline::never());
        let _turn = inner.turn.take(Occupation::Merge, &never);
        let merge = Deadline::new(std::time::Instant::now(), Some(Duration::ZERO), None);
        let update = inner.writer.lock();
        let in_vain = inner.take_writer(Occupation::Merge, &merge).map(drop);
        assert!(matches!(
            in_vain,
            Err(EngineError::Busy {
                by: Occupation::Update,
                ..
            })
        ));
        let by = || match inner.turn.take(Occupation::Backup, &merge).map(drop) {
            Err(EngineError::Busy { by, .. }) => by,
            other => panic!("{other:?}"),
        };
        assert_eq!(by(), Occupation::Update);
        drop(update);
        let writer = inner.take_writer(Occupation::Merge, &never);
        assert!(writer.is_ok());
        assert_eq!(by(), Occupation::Merge);
    }

    #[test]
    fn a_load_that_waits_for_a_merge_keeps_no_update_waiting() {
        let database = database();
        let never = Deadline::never();
        let merge = database.inner().turn.take(Occupation::Merge, &never);
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| load(&database));
            for number in 0..100 {
                let update = format!("INSERT DATA {{ <http://e/a> <http://e/p> {number} }}");
                database.update(&update).expect("nothing is in the way");
                std::thread::yield_now();
            }
            assert!(!waiting.is_finished(), "it waits for the merge");
            drop(merge);
            waiting.join().expect("it ends").expect("the file is sound");
        });
        assert_eq!(database.quad_counts().triples, 100 + LOADED);
    }
}
