//! The log of streams: what was done is said there before anybody hears of it.

use std::borrow::Cow;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Weak};

use jindou_store::log::Ticket;
use jindou_store::{SideLog, StoreError};

use super::catalogue::Names;
use super::continuous::Continuous;
use super::copied::Copied;
use super::records::{Facts, Record};
use super::state::put_catalogue;
use super::stream::Stream;
use crate::EngineError;
use crate::database::Inner;

/// The log of the streams of a store.
///
/// Whoever appends what a state says, too (all but intents), does that and changes what is in memory
/// accordingly while it holds [`Streams::cut`](super::Streams) to read.
pub(crate) struct Journal {
    pub(super) place: Place,
}

/// Where the log is.
pub(super) enum Place {
    /// Beside that of transactions.
    Own {
        log: Box<SideLog>,
        /// Bytes of the last state that was written.
        state_bytes: AtomicU64,
    },
    /// With the transactions, where this is the copy of a store that leads.
    WithTransactions {
        copied: Arc<Copied>,
        inner: Weak<Inner>,
    },
}

/// A place in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Noted {
    Own(Ticket),
    /// Records until then.
    WithTransactions(u64),
}

impl Journal {
    pub(super) fn new(log: SideLog) -> Self {
        let state_bytes = AtomicU64::new(0);
        let log = Box::new(log);
        Self {
            place: Place::Own { log, state_bytes },
        }
    }

    /// That of the copy of a store that leads.
    pub(super) fn of_leader(copied: &Arc<Copied>, inner: &Arc<Inner>) -> Self {
        Self {
            place: Place::WithTransactions {
                copied: Arc::clone(copied),
                inner: Arc::downgrade(inner),
            },
        }
    }

    /// # Errors
    /// [`EngineError::ReadOnly`] if the log takes nothing more, or there is no space;
    /// [`EngineError::TransactionTooLarge`] for the copies of the store.
    pub(super) fn append(&self, record: &Record<'_>) -> Result<Noted, EngineError> {
        let mut bytes = Vec::new();
        record.encode(&mut bytes);
        match &self.place {
            Place::Own { log, .. } => log.append(&bytes).map(Noted::Own).map_err(refused),
            Place::WithTransactions { copied, .. } => {
                copied.say(&bytes).map(Noted::WithTransactions)
            }
        }
    }

    /// Waits until what was appended is lasting. The caller does not hold the writer's lock.
    ///
    /// # Errors
    /// [`EngineError::ReadOnly`]: nobody may hear of what was appended; those of a transaction that others are to
    /// have.
    pub(super) fn sync(&self, noted: Noted) -> Result<(), EngineError> {
        match (&self.place, noted) {
            (Place::Own { log, .. }, Noted::Own(ticket)) => log.sync(ticket).map_err(refused),
            (Place::WithTransactions { copied, inner }, Noted::WithTransactions(records)) => {
                match inner.upgrade() {
                    Some(inner) => inner.say_until(copied, records),
                    None => Ok(()),
                }
            }
            _ => unreachable!("a log is in one place"),
        }
    }

    /// Waits until an intent is lasting, unless it goes with the transaction that it is about. The caller holds the
    /// writer's lock.
    ///
    /// # Errors
    /// As [`Journal::sync`].
    pub(super) fn sync_intent(&self, noted: Noted) -> Result<(), EngineError> {
        match &self.place {
            Place::Own { .. } => self.sync(noted),
            Place::WithTransactions { .. } => Ok(()),
        }
    }

    /// # Errors
    /// As [`Journal::sync`].
    pub(super) fn sync_all(&self) -> Result<(), EngineError> {
        match &self.place {
            Place::Own { log, .. } => log.sync_all().map_err(refused),
            Place::WithTransactions { copied, .. } => {
                self.sync(Noted::WithTransactions(copied.records()))
            }
        }
    }

    /// As [`Journal::sync_all`], where what was appended is not in a file of its own yet.
    ///
    /// # Errors
    /// As [`Journal::sync`].
    pub(super) fn sync_if_elsewhere(&self) -> Result<(), EngineError> {
        match &self.place {
            Place::Own { .. } => Ok(()),
            Place::WithTransactions { .. } => self.sync_all(),
        }
    }

    /// Bytes of the log since its last state, and those of the state.
    pub(super) fn bytes(&self) -> (u64, u64) {
        match &self.place {
            Place::Own { log, state_bytes } => (log.bytes(), state_bytes.load(Relaxed)),
            Place::WithTransactions { copied, .. } => copied.bytes(),
        }
    }

    /// Says how far a stream is, which is lasting with whatever follows from it.
    ///
    /// # Errors
    /// As [`Journal::append`].
    pub(super) fn beat(&self, stream: &Stream, time_ms: i64) -> Result<(), EngineError> {
        let stream = stream.number;
        self.append(&Record::Heartbeat { stream, time_ms })?;
        Ok(())
    }

    /// Says that the next transaction stores facts, which is known after a crash when it is.
    ///
    /// # Errors
    /// As [`Journal::append`]: nothing was said.
    pub(super) fn intend(
        &self,
        stream: &Stream,
        facts: Facts,
        snapshot: u64,
    ) -> Result<Noted, EngineError> {
        self.append(&Record::Intent {
            stream: stream.number,
            facts,
            snapshot,
        })
    }
}

/// An intent to store facts that is to be taken back, as the store has not taken its transaction.
pub(crate) struct Revocation {
    journal: Arc<Journal>,
    stream: u64,
    facts: Facts,
}

impl Revocation {
    /// Of a stream's number.
    pub(super) fn new(journal: &Arc<Journal>, stream: u64, facts: Facts) -> Self {
        Self {
            journal: Arc::clone(journal),
            stream,
            facts,
        }
    }

    /// Takes it back, which is lasting when this returns, or goes with the next transaction.
    ///
    /// # Errors
    /// [`StoreError::DiskFull`], after which it can be tried again; those of a log that has failed.
    pub(crate) fn write(&self) -> Result<(), StoreError> {
        let mut bytes = Vec::new();
        let record = Record::Intent {
            stream: self.stream,
            facts: self.facts,
            snapshot: NEVER,
        };
        record.encode(&mut bytes);
        match &self.journal.place {
            Place::Own { log, .. } => {
                let ticket = log.append(&bytes)?;
                log.sync(ticket)
            }
            Place::WithTransactions { copied, .. } => {
                copied.say_short(&bytes);
                Ok(())
            }
        }
    }
}

/// The number of no snapshot.
pub(super) const NEVER: u64 = u64::MAX;

fn refused(error: StoreError) -> EngineError {
    match error {
        StoreError::DiskFull { .. }
        | StoreError::LogFailed { .. }
        | StoreError::Uncertain { .. } => EngineError::ReadOnly {
            reason: error.to_string(),
        },
        other => other.into(),
    }
}

impl Inner {
    /// The log that a stream's tuples are in, if it is durable.
    pub(super) fn journal_of(&self, stream: &Stream) -> Option<&Arc<Journal>> {
        let journal = self.streams.journal.get();
        journal.filter(|_| stream.definition.durable)
    }

    /// The log that a query's results are in, if it reads a durable stream.
    pub(super) fn journal_of_query(&self, query: &Continuous) -> Option<&Arc<Journal>> {
        let journal = self.streams.journal.get();
        journal.filter(|_| query.is_durable)
    }

    /// Notes a change of the catalogue, which is `names` after it; `None` for a database in memory. The
    /// first one makes the log.
    ///
    /// # Errors
    /// As [`Journal::append`]; what the operating system says.
    pub(super) fn note_change(
        self: &Arc<Self>,
        names: &Names,
        change: &Record<'_>,
    ) -> Result<Option<Noted>, EngineError> {
        if let Some(journal) = self.streams.journal.get() {
            return journal.append(change).map(Some);
        }
        if let Some(copied) = self.streams.copied.get() {
            let journal = Arc::new(Journal::of_leader(copied, self));
            let noted = journal.append(change)?;
            self.set_journal(journal);
            return Ok(Some(noted));
        }
        if self.directory.is_some() {
            self.make_journal(names)?;
        }
        Ok(None)
    }

    /// Begins the log with what is in the catalogue.
    ///
    /// # Errors
    /// What the operating system says.
    pub(super) fn make_journal(&self, names: &Names) -> Result<(), EngineError> {
        let Some(directory) = &self.directory else {
            return Ok(());
        };
        let mut state = |put: &mut dyn FnMut(&[u8]) -> io::Result<()>| put_catalogue(names, put);
        let log = SideLog::create(directory, &self.config.durability, &mut state)?;
        self.set_journal(Arc::new(Journal::new(log)));
        Ok(())
    }

    /// Makes the log; the caller holds the names, or nobody else knows the database.
    pub(super) fn set_journal(&self, journal: Arc<Journal>) {
        let is_first = self.streams.journal.set(journal).is_ok();
        assert!(is_first, "one makes it");
    }

    /// That something more may be said of streams: where the last transaction for that could not be made, another is.
    ///
    /// # Errors
    /// [`EngineError::ReadOnly`]: nothing is to be done.
    pub(super) fn check_says(self: &Arc<Self>) -> Result<(), EngineError> {
        let Some(copied) = self.streams.copied.get().filter(|copied| copied.is_stuck()) else {
            return Ok(());
        };
        let records = copied.records();
        let mut writer = self.writer.lock();
        let appended = writer.append_said(|| copied.are_said(records))?;
        drop(writer);
        copied.note_stuck(false);
        self.publish(appended)
    }

    fn write_unknown(&self) -> EngineError {
        let node = self.group().map(|group| group.leader_name());
        EngineError::WriteUnknown {
            node: node.unwrap_or_default(),
        }
    }

    /// Waits until so many records of streams are at all copies in sync, by a transaction of their own where they
    /// went with none.
    ///
    /// # Errors
    /// Those of a transaction.
    fn say_until(self: &Arc<Self>, copied: &Copied, records: u64) -> Result<(), EngineError> {
        let appended = {
            let mut writer = self.writer.lock();
            writer.append_said(|| copied.are_said(records))
        };
        copied.note_stuck(matches!(appended, Err(EngineError::ReadOnly { .. })));
        let appended = match appended {
            // It is in memory, and will be said when there is room: nobody can tell that it was not done.
            Err(EngineError::ReadOnly { reason }) => {
                tracing::warn!("what was said of streams waits: {reason}");
                return Err(self.write_unknown());
            }
            appended => appended?,
        };
        self.publish(appended)?;
        self.note_transaction();
        Ok(())
    }

    /// Waits until a change is lasting.
    ///
    /// # Errors
    /// As [`Journal::sync`].
    pub(super) fn settle_change(&self, noted: Option<Noted>) -> Result<(), EngineError> {
        match (self.streams.journal.get(), noted) {
            (Some(journal), Some(noted)) => journal.sync(noted)?,
            _ => return Ok(()),
        }
        self.limit_journal();
        Ok(())
    }

    /// Has a query begin; where there is no room for the word that it does, as soon as there is.
    ///
    /// # Errors
    /// Those of a subscription that begins.
    pub(super) fn begin_query(
        self: &Arc<Self>,
        query: &Arc<Continuous>,
    ) -> Result<(), EngineError> {
        match self.try_to_begin(query) {
            Err(error @ EngineError::ReadOnly { .. }) if query.begins.get().is_none() => {
                tracing::warn!(query = query.name, %error, "a query is yet to begin");
                self.streams.unbegun.lock().push(Arc::clone(query));
                Ok(())
            }
            begun => begun,
        }
    }

    /// Has queries begin that could not so far, as far as they can now.
    pub(super) fn begin_late(self: &Arc<Self>) {
        let waiting = std::mem::take(&mut *self.streams.unbegun.lock());
        let is_waiting = |query: &Arc<Continuous>| {
            !query.is_gone.load(Relaxed) && self.try_to_begin(query).is_err()
        };
        let left: Vec<Arc<Continuous>> = waiting.into_iter().filter(is_waiting).collect();
        if !left.is_empty() {
            self.streams.unbegun.lock().extend(left);
        }
    }

    /// Notes from when on the windows of a query are whole, and has it begin.
    ///
    /// # Errors
    /// As [`Journal::append`]: it has not begun then.
    fn try_to_begin(self: &Arc<Self>, query: &Arc<Continuous>) -> Result<(), EngineError> {
        let (last_ms, begins) = query.beginning();
        let cut = self.streams.cut.read();
        if let Some(journal) = self.journal_of_query(query) {
            journal.append(&Record::Begin {
                query: query.number,
                last_ms,
                begins: Cow::Borrowed(&begins),
            })?;
        }
        query.begin(last_ms, begins);
        drop(cut);
        self.begin_subscription(query)
    }

    /// Bytes of the log of streams, and how often it was synced; `None` if there is none.
    pub(crate) fn journal_figures(&self) -> Option<(u64, u64)> {
        let (bytes, state_bytes) = self.streams.journal.get()?.bytes();
        let syncs = match &self.streams.journal.get()?.place {
            Place::Own { log, .. } => log.syncs(),
            // Those of the log of transactions.
            Place::WithTransactions { .. } => 0,
        };
        Some((bytes + state_bytes, syncs))
    }
}
