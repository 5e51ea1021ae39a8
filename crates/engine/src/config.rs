//! What can be set: for a database, and for one query.

use std::env;
use std::num::NonZeroUsize;
use std::thread;
use std::time::Duration;

use jindou_exec::{CancellationToken, SpillLimits};
use oxrdf::NamedNode;

/// Bytes that a query may put into temporary files if nothing else was set: 16 GiB.
pub const DEFAULT_SPILL_BYTES: u64 = 16 << 30;

/// Settings of a database.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Config {
    /// Threads that one heavy query may use together; light ones use one. Default: all cores.
    pub threads: usize,
    /// Bytes that the operators of one query may hold together. Default: 4 GiB.
    pub query_memory_bytes: u64,
    /// Where ORDER BY, GROUP BY, DISTINCT, joins and MINUS put what does not fit into a query's
    /// memory, and how many bytes of it; 0 bytes: the query ends there. Default: the system's
    /// directory for temporary files and [`DEFAULT_SPILL_BYTES`].
    pub spill: SpillLimits,
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
            spill: SpillLimits::new(&env::temp_dir(), DEFAULT_SPILL_BYTES),
            query_timeout: None,
            cached_plans: 1024,
        }
    }
}

/// Settings of one query.
#[derive(Clone, Debug, Default)]
pub struct QueryOptions {
    /// Time that it may take; else the database's setting.
    pub timeout: Option<Duration>,
    /// Ends it from outside.
    pub cancellation: Option<CancellationToken>,
    /// With `named_graphs`, replaces the query's dataset clause if either is not empty: their
    /// merge is the default graph.
    pub default_graphs: Vec<NamedNode>,
    /// The graphs that `GRAPH` ranges over.
    pub named_graphs: Vec<NamedNode>,
    /// Gather rows and time of each step; the query then runs on one thread.
    pub profile: bool,
    /// Threads that it may use; else the database's setting.
    pub threads: Option<usize>,
    /// What relative IRIs in the query are resolved against.
    pub base: Option<NamedNode>,
}
