//! How much memory do results of continuous queries take together, of which some are kept for readers
//! that may never come?

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::answer::{Answer, Reading};
use super::continuous::Continuous;
use super::rows::Rows;
use crate::database::Inner;

/// Results take at most this share of the memory that all queries share,
const SHARE_OF_POOL: u64 = 8;
/// or so many bytes where none is set.
const WITHOUT_POOL_BYTES: u64 = 256 << 20;
/// The last result of a query is always kept if it is small: there are as many of these as queries. What
/// is small is no more than the share of one query, but
const SMALL_BYTES: u64 = 64 << 10;
/// at least so much.
pub(super) const LEAST_BYTES: u64 = 4 << 10;
/// What a result takes beside its rows: itself, and what its windows held.
const RESULT_BYTES: u64 = 256;

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
        (self.0.load(Relaxed) <= limit).then_some(held)
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

    /// How an answer is read: one that is larger than all results may be is kept for no reader.
    pub(super) fn reading(&self) -> Reading {
        Reading::within(self.most_result_bytes())
    }

    fn most_result_bytes(&self) -> u64 {
        let pool = self.config.memory_pool.as_ref();
        pool.map_or(WITHOUT_POOL_BYTES, |pool| {
            pool.limit_bytes() / SHARE_OF_POOL
        })
    }

    /// Counts the bytes of a result, or of what is remembered for the next one. Where all take too much, the
    /// oldest results of the query give way, down to its share: so the results of many queries are bounded
    /// as those of one are, and one that has few keeps them whatever others have.
    ///
    /// # Errors
    /// What to tell readers instead, if all results would take too much.
    pub(super) fn hold_result(&self, query: &Continuous, bytes: u64) -> Result<Arc<Held>, String> {
        let (all, limit) = (&self.streams.held_results, self.most_result_bytes());
        let share = limit / self.streams.registrations.sharers();
        let small = share.clamp(LEAST_BYTES, SMALL_BYTES);
        let taken = bytes + RESULT_BYTES;
        loop {
            if let Some(held) = all.try_hold(taken, limit) {
                return Ok(held);
            }
            let own = query.log.bytes() as u64;
            if own + taken <= share {
                return Ok(all.hold(taken));
            }
            // What others hold is not given back: it is of no use to drop what would not be enough.
            let is_enough = all.0.load(Relaxed).saturating_sub(own) + taken <= limit;
            let is_small = bytes <= small;
            if (is_enough || is_small) && query.log.drop_oldest() {
                continue;
            }
            return match is_small {
                true => Ok(all.hold(taken)),
                false => Err(format!(
                    "the result has {bytes} bytes, and all that are kept for readers may have {limit} \
                     together"
                )),
            };
        }
    }
}
