//! What can be set: for a database, and for one query.

use std::fmt;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use jindou_exec::{CancellationToken, MemoryPool};
use oxrdf::NamedNode;

use crate::progress::QueryProgress;

/// Settings of a database.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Config {
    /// Threads that one heavy query may use together; light ones use one. Default: all cores.
    pub threads: usize,
    /// Bytes that the operators of one query may hold together. Default: 4 GiB.
    pub query_memory_bytes: u64,
    /// Bytes that all queries may hold together, beyond the first MiB of each. Default: no limit.
    pub memory_pool: Option<Arc<MemoryPool>>,
    /// What each thread that heavy queries share calls when it begins. Default: nothing.
    pub worker_start: Option<WorkerStart>,
    /// Time that a query may take if it does not say itself. Default: no limit.
    pub query_timeout: Option<Duration>,
    /// Plans kept for queries of the same shape. Default: 1,024.
    pub cached_plans: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            threads: thread::available_parallelism().map_or(1, NonZeroUsize::get),
            query_memory_bytes: 4 << 30,
            memory_pool: None,
            worker_start: None,
            query_timeout: None,
            cached_plans: 1024,
        }
    }
}

/// A function that threads call when they begin, to set their priority for instance.
#[derive(Clone)]
pub struct WorkerStart(pub(crate) Arc<dyn Fn() + Send + Sync>);

impl WorkerStart {
    /// This function.
    #[must_use]
    pub fn new(start: impl Fn() + Send + Sync + 'static) -> Self {
        Self(Arc::new(start))
    }
}

impl fmt::Debug for WorkerStart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WorkerStart")
    }
}

/// Settings of one query.
#[derive(Clone, Debug, Default)]
pub struct QueryOptions {
    /// Time that it may take; else the database's setting.
    pub timeout: Option<Duration>,
    /// Ends it from outside.
    pub cancellation: Option<CancellationToken>,
    /// Tells others how far it is.
    pub progress: Option<QueryProgress>,
    /// With `named_graphs`, replaces the query's dataset clause if either is not empty: their
    /// merge is the default graph.
    pub default_graphs: Vec<NamedNode>,
    /// The graphs that `GRAPH` ranges over.
    pub named_graphs: Vec<NamedNode>,
    /// Gather rows and time of each step; the query then runs on one thread.
    pub profile: bool,
    /// Refuse it before it begins if it is planned to cost more than this, in rows handled.
    /// Queries that may end early (ASK, or with LIMIT) are not judged by what they are planned
    /// to cost.
    pub max_cost: Option<f64>,
    /// Threads that it may use; else the database's setting.
    pub threads: Option<usize>,
    /// What relative IRIs in the query are resolved against.
    pub base: Option<NamedNode>,
}
