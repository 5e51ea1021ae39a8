//! How much memory do results of continuous queries take together, of which some are kept for readers
//! that may never come?

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::answer::Answer;
use super::continuous::Continuous;
use super::rows::Rows;
use crate::database::Inner;

/// Results take at most this share of the memory that all queries share,
const SHARE_OF_POOL: u64 = 8;
/// or so many bytes where none is set.
const WITHOUT_POOL_BYTES: u64 = 256 << 20;
/// A small result is always kept: there are as many of them as queries.
const SMALL_BYTES: u64 = 64 << 10;

/// Bytes of all results that anybody still has.
#[derive(Debug, Default)]
pub(super) struct HeldResults(AtomicU64);

/// Bytes of a result, until the last who has it drops it.
#[derive(Debug)]
pub(super) struct Held {
    all: Arc<HeldResults>,
    bytes: u64,
}

/// Results are equal wherever their bytes are counted.
impl PartialEq for Held {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Held {}

impl Drop for Held {
    fn drop(&mut self) {
        self.all.0.fetch_sub(self.bytes, Relaxed);
    }
}

impl HeldResults {
    /// Counts bytes, however many others there are.
    pub(super) fn hold(self: &Arc<Self>, bytes: u64) -> Arc<Held> {
        self.0.fetch_add(bytes, Relaxed);
        let all = Arc::clone(self);
        Arc::new(Held { all, bytes })
    }

    fn try_hold(self: &Arc<Self>, bytes: u64, limit: u64) -> Option<Arc<Held>> {
        let held = self.hold(bytes);
        (bytes <= SMALL_BYTES || self.0.load(Relaxed) <= limit).then_some(held)
    }
}

/// Bytes of what is given of an answer, and of what is remembered for the next one.
pub(super) fn bytes_of<'a>(rows: impl IntoIterator<Item = &'a Rows>) -> u64 {
    rows.into_iter().map(|rows| rows.bytes() as u64).sum()
}

impl Inner {
    /// Counts the bytes of a result that comes back, of which no more were kept than may be.
    pub(super) fn hold_restored(&self, answer: &Answer) -> Arc<Held> {
        self.streams.held_results.hold(bytes_of(answer.rows()))
    }

    fn most_result_bytes(&self) -> u64 {
        let pool = self.config.memory_pool.as_ref();
        pool.map_or(WITHOUT_POOL_BYTES, |pool| {
            pool.limit_bytes() / SHARE_OF_POOL
        })
    }

    /// Counts the bytes of a result and of what is remembered for the next one; the oldest results of
    /// the query give way.
    ///
    /// # Errors
    /// What to tell readers instead, if all results would take too much.
    pub(super) fn hold_result(&self, query: &Continuous, bytes: u64) -> Result<Arc<Held>, String> {
        let (all, limit) = (&self.streams.held_results, self.most_result_bytes());
        loop {
            if let Some(held) = all.try_hold(bytes, limit) {
                return Ok(held);
            }
            // What others hold is not given back: it is of no use to drop what would not be enough.
            let own = query.log.bytes() as u64;
            let is_enough = all.0.load(Relaxed).saturating_sub(own) + bytes <= limit;
            if !is_enough || !query.log.drop_oldest() {
                return Err(format!(
                    "the result has {bytes} bytes, and all that are kept for readers may have {limit} \
                     together"
                ));
            }
        }
    }
}
