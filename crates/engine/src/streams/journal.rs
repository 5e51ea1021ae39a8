//! The log of streams: what was done is said there before anybody hears of it.

use std::borrow::Cow;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use jindou_store::log::Ticket;
use jindou_store::{SideLog, StoreError};

use super::catalogue::Names;
use super::continuous::Continuous;
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
    pub(super) log: SideLog,
    /// Bytes of the last state that was written.
    pub(super) state_bytes: AtomicU64,
}

impl Journal {
    pub(super) fn new(log: SideLog) -> Self {
        Self {
            log,
            state_bytes: AtomicU64::new(0),
        }
    }

    /// # Errors
    /// [`EngineError::ReadOnly`] if the log takes nothing more, or there is no space.
    pub(super) fn append(&self, record: &Record<'_>) -> Result<Ticket, EngineError> {
        let mut bytes = Vec::new();
        record.encode(&mut bytes);
        self.log.append(&bytes).map_err(refused)
    }

    /// # Errors
    /// [`EngineError::ReadOnly`]: nobody may hear of what was appended.
    pub(super) fn sync(&self, ticket: Ticket) -> Result<(), EngineError> {
        self.log.sync(ticket).map_err(refused)
    }

    /// # Errors
    /// As [`Journal::sync`].
    pub(super) fn sync_all(&self) -> Result<(), EngineError> {
        self.log.sync_all().map_err(refused)
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
    ) -> Result<Ticket, EngineError> {
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

    /// Takes it back, which is lasting when this returns.
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
        let ticket = self.journal.log.append(&bytes)?;
        self.journal.log.sync(ticket)
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
        &self,
        names: &Names,
        change: &Record<'_>,
    ) -> Result<Option<Ticket>, EngineError> {
        if let Some(journal) = self.streams.journal.get() {
            return journal.append(change).map(Some);
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
        let is_first = self.streams.journal.set(Journal::new(log).into()).is_ok();
        assert!(is_first, "the names are locked, so nobody else makes it");
        Ok(())
    }

    /// Waits until a change is lasting.
    ///
    /// # Errors
    /// As [`Journal::sync`].
    pub(super) fn settle_change(&self, ticket: Option<Ticket>) -> Result<(), EngineError> {
        match (self.streams.journal.get(), ticket) {
            (Some(journal), Some(ticket)) => journal.sync(ticket)?,
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
        let journal = self.streams.journal.get()?;
        let state = journal.state_bytes.load(Relaxed);
        Some((journal.log.bytes() + state, journal.log.syncs()))
    }
}
