//! What can be set: for a database, and for one query.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use jindou_exec::{CancellationToken, ServiceCaller};
use oxrdf::NamedNode;

use crate::ServicePolicy;

/// Settings of a database.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Config {
    /// Threads that one heavy query may use together; light ones use one. Default: all cores.
    pub threads: usize,
    /// Bytes that the operators of one query may hold together. Default: 4 GiB.
    pub query_memory_bytes: u64,
    /// Time that a query may take if it does not say itself. Default: no limit.
    pub query_timeout: Option<Duration>,
    /// Plans kept for queries of the same shape. Default: 1,024.
    pub cached_plans: usize,
    /// Which endpoints SERVICE may call. Default: any.
    pub services: ServicePolicy,
    /// Time that one call of an endpoint may take, and never more than its query has left.
    /// Default: 30 s.
    pub service_timeout: Duration,
    /// Time that connecting to an endpoint may take. Default: 10 s.
    pub service_connect_timeout: Duration,
    /// Bytes that the answer of one call may have; its query's memory budget pays for them, too.
    /// Default: 256 MiB.
    pub service_response_bytes: u64,
    /// What calls endpoints, instead of the network. Default: none.
    pub service_caller: Option<Arc<dyn ServiceCaller>>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            threads: thread::available_parallelism().map_or(1, NonZeroUsize::get),
            query_memory_bytes: 4 << 30,
            query_timeout: None,
            cached_plans: 1024,
            services: ServicePolicy::Any,
            service_timeout: Duration::from_secs(30),
            service_connect_timeout: Duration::from_secs(10),
            service_response_bytes: 256 << 20,
            service_caller: None,
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
    /// Which endpoints SERVICE may call; the database's setting must allow them, too.
    pub services: Option<ServicePolicy>,
    /// Refuse a query that would wait for others, as one with SERVICE does, with
    /// [`EngineError::WouldWait`](crate::EngineError::WouldWait): for threads that must not block.
    pub must_not_wait: bool,
}
