//! On which threads does a node run what queries of other nodes ask of it?
//!
//! On those of the query's class, so that light ones wait for no heavy ones here, as they do not at the node that they
//! came to.

use std::sync::Arc;

use jindou_exec::{ByClass, QueryClass, Workers};
use jindou_fabric::pace::LongWork;

/// What a thread calls first.
pub type ThreadStart = Arc<dyn Fn() + Send + Sync>;

/// What threads call first, by the class of the queries for which they work.
pub type ThreadStarts = ByClass<ThreadStart>;

/// Threads of a node for queries of others.
pub(crate) struct ClassWorkers(ByClass<Workers>);

impl ClassWorkers {
    /// So many threads for each class, at least one.
    ///
    /// # Panics
    /// If the operating system refuses a thread.
    pub(crate) fn new(count: usize, starts: &ThreadStarts) -> Self {
        let start = |class| Arc::clone(starts.of(class));
        Self(ByClass::new(|class| {
            Workers::sleeping(count.max(1), start(class))
        }))
    }

    /// Gives a job to the first idle thread of a class.
    pub(crate) fn spawn(&self, class: QueryClass, job: impl FnOnce() + Send + 'static) {
        self.0.of(class).spawn(move || {
            let _long = long_work(class);
            job();
        });
    }
}

/// What threads do for heavy queries is long work, for which others shall not wait.
pub(crate) fn long_work(class: QueryClass) -> Option<LongWork> {
    match class {
        QueryClass::Light => None,
        QueryClass::Heavy => Some(LongWork::begin()),
    }
}
