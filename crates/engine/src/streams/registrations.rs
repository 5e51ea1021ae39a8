//! How many streams and continuous queries are there, and how much memory may they take together?
//!
//! Each stays until it is dropped, so what it takes is bounded where it comes: whoever makes ever more of
//! them is refused, and all others have their memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use jindou_stream::{StreamDefinition, json_bytes};

use crate::EngineError;
use crate::database::Inner;

/// Streams and queries take at most this share of the memory that all queries share,
const SHARE_OF_POOL: u64 = 4;
/// or so many bytes where none is set.
const WITHOUT_POOL_BYTES: u64 = 4 << 30;
/// What one takes, a query with its plans, however short it is.
pub(super) const LEAST_BYTES: u64 = 12 << 10;
/// What it takes for each byte of its text: the text, its tree, and plans.
pub(super) const BYTES_OF_TEXT: u64 = 40;

/// What a stream takes for each byte of its definition.
pub(super) const BYTES_OF_DEFINITION: u64 = 6;
/// What is said of one beside its text.
const BYTES_OF_STATUS: u64 = 2 << 10;

/// All streams and queries that are there.
#[derive(Debug, Default)]
pub(super) struct Registrations {
    streams: AtomicU64,
    queries: AtomicU64,
    /// Of texts and definitions.
    text_bytes: AtomicU64,
    bytes: AtomicU64,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Stream,
    Query,
}

/// A share of them, until what has it is dropped.
#[derive(Debug)]
pub(super) struct Registered {
    all: Arc<Registrations>,
    kind: Kind,
    text_bytes: u64,
    bytes: u64,
}

impl Drop for Registered {
    fn drop(&mut self) {
        self.all.of(self.kind).fetch_sub(1, Relaxed);
        self.all.text_bytes.fetch_sub(self.text_bytes, Relaxed);
        self.all.bytes.fetch_sub(self.bytes, Relaxed);
    }
}

impl Registrations {
    fn of(&self, kind: Kind) -> &AtomicU64 {
        match kind {
            Kind::Stream => &self.streams,
            Kind::Query => &self.queries,
        }
    }

    /// How many queries there are; one at least, to share something by.
    pub(super) fn sharers(&self) -> u64 {
        self.queries.load(Relaxed).max(1)
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes.load(Relaxed)
    }

    /// About what it takes to say what all of them are.
    pub(super) fn status_bytes(&self) -> u64 {
        let count = self.streams.load(Relaxed) + self.queries.load(Relaxed);
        // The text, and the answer that has it.
        2 * self.text_bytes.load(Relaxed) + BYTES_OF_STATUS * count
    }

    /// Counts a query of this text.
    pub(super) fn add_query(self: &Arc<Self>, text: &str) -> Registered {
        self.add(Kind::Query, text.len() as u64, BYTES_OF_TEXT)
    }

    /// Counts a stream of this definition.
    pub(super) fn add_stream(self: &Arc<Self>, definition: &StreamDefinition) -> Registered {
        self.add(Kind::Stream, json_bytes(definition), BYTES_OF_DEFINITION)
    }

    fn add(self: &Arc<Self>, kind: Kind, text_bytes: u64, each: u64) -> Registered {
        let bytes = LEAST_BYTES + each * text_bytes;
        self.of(kind).fetch_add(1, Relaxed);
        self.text_bytes.fetch_add(text_bytes, Relaxed);
        self.bytes.fetch_add(bytes, Relaxed);
        Registered {
            all: Arc::clone(self),
            kind,
            text_bytes,
            bytes,
        }
    }
}

impl Inner {
    /// Counts a query of this text, if it may be registered beside what is there.
    ///
    /// # Errors
    /// [`EngineError::TooManyRegistered`].
    pub(super) fn admit_query(&self, text: &str) -> Result<Registered, EngineError> {
        self.admitted(self.streams.registrations.add_query(text))
    }

    /// Counts a stream of this definition, if it may be made beside what is there.
    ///
    /// # Errors
    /// As [`Inner::admit_query`].
    pub(super) fn admit_stream(
        &self,
        definition: &StreamDefinition,
    ) -> Result<Registered, EngineError> {
        self.admitted(self.streams.registrations.add_stream(definition))
    }

    fn admitted(&self, registered: Registered) -> Result<Registered, EngineError> {
        let all = &self.streams.registrations;
        let pool = self.config.memory_pool.as_ref();
        let limit_bytes = pool.map_or(WITHOUT_POOL_BYTES, |pool| {
            pool.limit_bytes() / SHARE_OF_POOL
        });
        if all.bytes() <= limit_bytes {
            return Ok(registered);
        }
        // It is none of them.
        drop(registered);
        Err(EngineError::TooManyRegistered {
            streams: all.streams.load(Relaxed),
            queries: all.queries.load(Relaxed),
            limit_bytes,
        })
    }
}
