//! When may a heavy query begin?
//!
//! So many compute at once, so many more wait for their turn, and no longer than so long. One
//! whose client does not read gives its place away until it does: those are bounded, too.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use hyper::StatusCode;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::error::Refusal;
use crate::metrics::{Metrics, Rejected};
use crate::queries::{Queries, Reason, Running, State};
use crate::threads::left;

/// When to come again to a server that has too much to do, in seconds.
const COME_AGAIN_SECONDS: u32 = 5;

/// The gate of heavy queries.
pub(crate) struct Admission {
    /// What passes it, in the plural.
    what: &'static str,
    places: Arc<Semaphore>,
    computing: usize,
    waiting: AtomicUsize,
    max_waiting: usize,
    max_wait: Duration,
    stalled: AtomicUsize,
    max_stalled: usize,
}

/// A place among the heavy queries that compute.
pub(crate) type Place = OwnedSemaphorePermit;

/// One of a number counted, for as long as it lives.
struct Counted<'a>(&'a AtomicUsize);

impl<'a> Counted<'a> {
    /// Counts one more, if there are fewer than `limit`.
    fn below(counter: &'a AtomicUsize, limit: usize) -> Option<Self> {
        let counted = Self(counter);
        (counter.fetch_add(1, Relaxed) < limit).then_some(counted)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

impl Admission {
    pub(crate) fn new(
        what: &'static str,
        computing: usize,
        max_waiting: usize,
        max_wait: Duration,
        max_stalled: usize,
    ) -> Self {
        Self {
            what,
            places: Arc::new(Semaphore::new(computing)),
            computing,
            waiting: AtomicUsize::new(0),
            max_waiting,
            max_wait,
            stalled: AtomicUsize::new(0),
            max_stalled,
        }
    }

    /// Whether a heavy query would have to wait.
    pub(crate) fn is_full(&self) -> bool {
        self.places.available_permits() == 0
    }

    /// Heavy queries that compute, and those that wait for it.
    pub(crate) fn figures(&self) -> Figures {
        Figures {
            computing: self.computing - self.places.available_permits(),
            queued: self.waiting.load(Relaxed),
            stalled: self.stalled.load(Relaxed),
        }
    }

    /// Waits for a place, within the query's own time.
    pub(crate) async fn enter(&self, query: &Running, metrics: &Metrics) -> Result<Place, Refusal> {
        if let Ok(place) = Arc::clone(&self.places).try_acquire_owned() {
            return Ok(place);
        }
        let Some(_waiting) = Counted::below(&self.waiting, self.max_waiting) else {
            metrics.rejected(Rejected::QueueFull);
            return Err(self.refusal("as many wait already as this server lets wait"));
        };
        query.set_state(State::Queued);
        let own = left(query.started, query.limit);
        let place = Arc::clone(&self.places).acquire_owned();
        tokio::select! {
            place = place => {
                query.set_state(State::Running);
                Ok(place.expect("the gate is never closed"))
            }
            reason = query.until_cancelled() => Err(Refusal::cancelled(reason)),
            () = tokio::time::sleep(self.max_wait.min(own)) => {
                metrics.rejected(Rejected::QueueWait);
                Err(self.refusal("none of them ended in time"))
            }
        }
    }

    fn refusal(&self, why: &str) -> Refusal {
        let message = format!(
            "this server computes {} {} at once, and {why}; try again later",
            self.computing, self.what
        );
        Refusal::new(StatusCode::SERVICE_UNAVAILABLE, message).come_again(COME_AGAIN_SECONDS)
    }

    /// Counts a query whose client does not read, until what this returns is dropped. If there
    /// are too many, the one that has waited for longest is ended.
    pub(crate) fn stalled<'a>(&'a self, query: &'a Running, queries: &Queries) -> Stalled<'a> {
        query.set_stalled(true);
        let before = self.stalled.fetch_add(1, Relaxed);
        if before >= self.max_stalled
            && let Some(longest) = queries.longest_stalled()
        {
            longest.cancel(Reason::Stalled);
        }
        Stalled {
            _counted: Counted(&self.stalled),
            query,
        }
    }

    /// Waits for a place again, after the client did not read. `None` when the query is ended
    /// from outside or its time is over.
    pub(crate) async fn enter_again(&self, query: &Running) -> Option<Place> {
        let place = Arc::clone(&self.places).acquire_owned();
        tokio::select! {
            place = place => Some(place.expect("the gate is never closed")),
            _ = query.until_cancelled() => None,
            () = tokio::time::sleep(left(query.started, query.limit)) => None,
        }
    }
}

/// A query whose client does not read.
pub(crate) struct Stalled<'a> {
    _counted: Counted<'a>,
    query: &'a Running,
}

impl Drop for Stalled<'_> {
    fn drop(&mut self) {
        self.query.set_stalled(false);
    }
}

/// How many heavy queries are where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Figures {
    pub(crate) computing: usize,
    pub(crate) queued: usize,
    pub(crate) stalled: usize,
}
