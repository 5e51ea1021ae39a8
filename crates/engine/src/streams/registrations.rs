//! How many continuous queries are registered, and how much memory may they take together?
//!
//! A query stays until it is dropped, so what it takes is bounded where it comes: whoever registers ever
//! more of them is refused, and all other queries have their memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::EngineError;
use crate::database::Inner;

/// Registered queries take at most this share of the memory that all queries share,
const SHARE_OF_POOL: u64 = 4;
/// or so many bytes where none is set.
const WITHOUT_POOL_BYTES: u64 = 4 << 30;
/// What a query takes, with its plans, however short it is.
pub(super) const LEAST_BYTES: u64 = 12 << 10;
/// What it takes for each byte of its text: the text, its tree, and plans.
pub(super) const BYTES_OF_TEXT: u64 = 40;

/// All queries that are registered.
#[derive(Debug, Default)]
pub(super) struct Registrations {
    queries: AtomicU64,
    bytes: AtomicU64,
}

/// A query's share of them, until it is dropped.
#[derive(Debug)]
pub(super) struct Registered {
    all: Arc<Registrations>,
    bytes: u64,
}

impl Drop for Registered {
    fn drop(&mut self) {
        self.all.queries.fetch_sub(1, Relaxed);
        self.all.bytes.fetch_sub(self.bytes, Relaxed);
    }
}

impl Registrations {
    /// How many there are; one at least, to share something by.
    pub(super) fn sharers(&self) -> u64 {
        self.queries.load(Relaxed).max(1)
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes.load(Relaxed)
    }

    /// Counts a query of this text.
    pub(super) fn add(self: &Arc<Self>, text: &str) -> Registered {
        let bytes = LEAST_BYTES + BYTES_OF_TEXT * text.len() as u64;
        self.queries.fetch_add(1, Relaxed);
        self.bytes.fetch_add(bytes, Relaxed);
        Registered {
            all: Arc::clone(self),
            bytes,
        }
    }
}

impl Inner {
    /// Counts a query of this text, if it may be registered beside those that are.
    ///
    /// # Errors
    /// [`EngineError::TooManyRegistered`].
    pub(super) fn admit_query(&self, text: &str) -> Result<Registered, EngineError> {
        let all = &self.streams.registrations;
        let registered = all.add(text);
        let pool = self.config.memory_pool.as_ref();
        let limit_bytes = pool.map_or(WITHOUT_POOL_BYTES, |pool| {
            pool.limit_bytes() / SHARE_OF_POOL
        });
        match all.bytes() <= limit_bytes {
            true => Ok(registered),
            false => Err(EngineError::TooManyRegistered {
                queries: all.queries.load(Relaxed) - 1,
                limit_bytes,
            }),
        }
    }
}
