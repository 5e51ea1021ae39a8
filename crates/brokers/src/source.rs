//! How do messages of a broker become part of a stream?
//!
//! A thread for each source connects, reads and pushes; what fails is tried again, later each time. While
//! the stream takes nothing, the same messages wait, and the broker keeps those that come after them.

use std::sync::Arc;

use jindou_engine::{Database, EngineError, FeedMessage, MemoryPool, Producer, StreamFeed};
use parking_lot::Mutex;

use crate::client;
use crate::error::BrokerError;
use crate::status::{Connection, SourceStatus};
use crate::stop::{Backoff, Stop, retry};

/// What pushed messages take while they are read, as a multiple of their text.
const PUSH_FACTOR: usize = 6;

/// A source that is read.
pub(crate) struct SourceJob {
    pub(crate) database: Database,
    pub(crate) feed: StreamFeed,
    pub(crate) pool: Option<Arc<MemoryPool>>,
    pub(crate) stop: Stop,
    pub(crate) status: Mutex<SourceStatus>,
}

impl SourceJob {
    /// Reads until the stream is dropped or the server stops.
    pub(crate) fn run(&self) {
        let done = || self.status.lock().messages;
        retry(&self.stop, &|| client::read(self), &done, &|error| {
            self.fail(error)
        });
    }

    /// Notes that all is well.
    pub(crate) fn connected(&self) {
        let mut status = self.status.lock();
        status.error = None;
        status.connection = Connection::Connected;
    }

    /// Notes what is wrong, in the log where that is new.
    pub(crate) fn fail(&self, error: String) {
        let mut status = self.status.lock();
        if status.connection != Connection::Failed {
            tracing::warn!(stream = self.feed.name(), error, "a source is not read");
        }
        status.connection = Connection::Failed;
        status.error = Some(error);
    }

    /// Pushes messages once. `place_of` says where the broker has one.
    ///
    /// # Errors
    /// [`BrokerError::Gone`]; [`BrokerError::Engine`]: nothing was kept, and they can be pushed again.
    pub(crate) fn push(
        &self,
        by: &[Producer<'_>],
        messages: &[FeedMessage],
        place_of: &dyn Fn(usize) -> String,
    ) -> Result<(), BrokerError> {
        self.push_with_notes(by, messages, &[], place_of)
    }

    fn push_with_notes(
        &self,
        by: &[Producer<'_>],
        messages: &[FeedMessage],
        notes: &[u8],
        place_of: &dyn Fn(usize) -> String,
    ) -> Result<(), BrokerError> {
        let bytes: usize = messages.iter().map(|message| message.text.len()).sum();
        let reserved = match &self.pool {
            None => None,
            Some(pool) => {
                let memory = pool.reserve((bytes * PUSH_FACTOR) as u64);
                let limit_bytes = pool.limit_bytes();
                Some(memory.ok_or(EngineError::PoolExhausted { limit_bytes })?)
            }
        };
        let report = self.feed.push_with_notes(by, messages, notes);
        drop(reserved);
        let report = report.map_err(|error| match error {
            EngineError::NotFound { .. } => BrokerError::Gone,
            error => error.into(),
        })?;
        let mut status = self.status.lock();
        status.error = None;
        status.connection = Connection::Connected;
        if report.pushed.repeated {
            return Ok(());
        }
        status.messages += messages.len() as u64;
        for (at, error) in report.refused {
            status.refuse(place_of(at), &error.to_string(), &messages[at].text);
        }
        Ok(())
    }

    /// Pushes messages, again and again until the engine takes them.
    ///
    /// # Errors
    /// [`BrokerError::Gone`]; [`BrokerError::Stopped`].
    pub(crate) fn push_until_taken(
        &self,
        by: &[Producer<'_>],
        messages: &[FeedMessage],
        place_of: &dyn Fn(usize) -> String,
    ) -> Result<(), BrokerError> {
        self.until_taken(|| self.push(by, messages, place_of))
    }

    /// Pushes messages and appends to the notes of the source, both or neither, again and again until the
    /// engine takes them.
    ///
    /// # Errors
    /// [`BrokerError::Gone`]; [`BrokerError::Stopped`].
    pub(crate) fn push_noting(
        &self,
        by: &[Producer<'_>],
        messages: &[FeedMessage],
        notes: &[u8],
        place_of: &dyn Fn(usize) -> String,
    ) -> Result<(), BrokerError> {
        self.until_taken(|| self.push_with_notes(by, messages, notes, place_of))
    }

    /// Writes the notes of the source anew, again and again until the engine takes them.
    ///
    /// # Errors
    /// [`BrokerError::Gone`]; [`BrokerError::Stopped`].
    pub(crate) fn replace_notes(&self, notes: &[u8]) -> Result<(), BrokerError> {
        self.until_taken(|| match self.feed.replace_notes(notes.to_vec()) {
            Err(EngineError::NotFound { .. }) => Err(BrokerError::Gone),
            replaced => Ok(replaced?),
        })
    }

    fn until_taken(&self, put: impl Fn() -> Result<(), BrokerError>) -> Result<(), BrokerError> {
        let mut backoff = Backoff::new();
        loop {
            match put() {
                Err(BrokerError::Engine(error)) => self.wait_for(&error),
                ended => return ended,
            }
            self.stop.wait(backoff.next())?;
        }
    }

    /// Notes that the engine takes nothing for now.
    pub(crate) fn wait_for(&self, error: &EngineError) {
        let mut status = self.status.lock();
        if status.connection != Connection::Waiting {
            tracing::warn!(stream = self.feed.name(), %error, "a source waits");
        }
        status.connection = Connection::Waiting;
        status.error = Some(error.to_string());
    }
}
