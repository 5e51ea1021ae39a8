//! What can be set: for a database, and for one query.

use std::env;
use std::fmt;
use std::io::ErrorKind;
use std::num::NonZeroUsize;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use jindou_cluster::{ThreadStart as ClusterStart, ThreadStarts};
use jindou_exec::{
    ByClass, CancellationToken, ForkPolicy, ForkSettings, GraphSource, MemoryPool, MessageLimits,
    QueryClass, ServiceCaller, Sharing, SpillLimits, TermSource, Transport,
};
use jindou_ingest::{Contexts, ThreadStart};
use jindou_model::ShardId;
use jindou_partition::Shards;
use jindou_store::DurabilityOptions;
use oxrdf::NamedNode;

use crate::AddressPolicy;
use crate::merge::MergePolicy;
use crate::progress::QueryProgress;

/// Bytes that a query may put into temporary files if nothing else was set: 16 GiB.
pub const DEFAULT_SPILL_BYTES: u64 = 16 << 30;

/// The environment variable that has queries share out among threads all that they can: see
/// [`Config::sharing`].
pub const SHARE_ALL: &str = "JINDOU_SHARE_ALL";

/// Settings of a database.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Config {
    /// Threads that one heavy query may use together; light ones use one. Default: all cores.
    pub threads: usize,
    /// From when on a query takes more than one. Default: as is less work; where the environment variable
    /// [`SHARE_ALL`] is set when the settings are made, whenever it can, for tests.
    pub sharing: Sharing,
    /// Bytes that the operators of one query may hold together. Default: 4 GiB.
    pub query_memory_bytes: u64,
    /// Where ORDER BY, GROUP BY, DISTINCT, joins and MINUS put what does not fit into a query's
    /// memory, and how many bytes of it; 0 bytes: the query ends there. Default: the system's
    /// directory for temporary files and [`DEFAULT_SPILL_BYTES`].
    pub spill: SpillLimits,
    /// Bytes that all queries may hold together, beyond the first MiB of each. Default: no limit.
    pub memory_pool: Option<Arc<MemoryPool>>,
    /// The contexts that JSON-LD of updates and of the graph store may name. Default: those that are
    /// known to begin with.
    pub contexts: Contexts,
    /// What each thread that heavy queries share calls when it begins. Default: nothing.
    pub worker_start: Option<ThreadStart>,
    /// What each thread calls when it begins that answers light queries of other nodes of a cluster. Default: nothing.
    pub light_start: Option<ThreadStart>,
    /// What each thread calls when it begins that reads a long text of an update or a document;
    /// without it they are read on threads of their callers. Default: nothing.
    pub reading_start: Option<ThreadStart>,
    /// What each thread calls when it begins that executes a long update; without it these take threads
    /// of their callers. Default: nothing.
    pub update_start: Option<ThreadStart>,
    /// Time that a query may take if it does not say itself. Default: no limit.
    pub query_timeout: Option<Duration>,
    /// Plans kept for queries of the same shape. Default: 1,024.
    pub cached_plans: usize,
    /// When transactions of a stored database are on the device: before they are acknowledged,
    /// unless its `fsync` says otherwise.
    pub durability: DurabilityOptions,
    /// The default graph of queries and of WHERE clauses is the union of all graphs, unless they say
    /// otherwise; updates change the stored default graph. Default: only where the store was made
    /// so.
    pub union_default_graph: bool,
    /// What stands between queries and the graph, as a test puts it there. Default: nothing.
    pub between: Option<Between>,
    /// The virtual shards that queries read. Several are cut from each snapshot when it is first
    /// queried, which takes a copy of it; files are those of one. Default: one, which is the snapshot
    /// itself.
    pub shards: Shards,
    /// Logical nodes, each with its share of the shards: the graph is explored over them as over those of
    /// a cluster. At most as many as shards. Default: one, to which no sub-queries go.
    pub nodes: u32,
    /// How logical nodes reach each other's memory. Default: by copying it within the process.
    pub node_fabric: NodeFabric,
    /// Nodes read each other's lists where they lie. To be switched off in measurements and tests, where the node
    /// that has a list is then asked for it by a message. Default: on.
    pub reads_one_sided: bool,
    /// How rows get to keys that another node has. Default: as is less work.
    pub fork_policy: ForkPolicy,
    /// Bytes of a table's history that go along to another node, though no step there reads them; of one with more
    /// only what is read goes, and what is found is joined with the rest. Default: 64 KiB.
    pub fork_history_bytes: usize,
    /// Each node scans its part of an index vertex where that is less work. To be switched off in measurements and
    /// tests, where the node that a query came to then scans all of it. Default: on.
    pub splits_scans: bool,
    /// So many rows of a heavy query, or more, that go on at the node where they are, go on at another of its threads
    /// if one may help. Default: 256.
    pub fork_lend_rows: usize,
    /// While another node of its cluster is away, a node that has a whole copy of the store answers queries from that
    /// alone. To be switched off in tests, where those that need what the other has then fail. Default: on.
    pub stands_in: bool,
    /// Bytes of a copy of its store that a node which leads sends in a second to one that has none, at most. Default:
    /// 128 MiB.
    pub copy_rate: u64,
    /// Sub-queries of logical nodes, and what they find, go as messages of so many bytes, as between
    /// processes. Default: they are handed over as they are.
    pub fork_messages: Option<MessageLimits>,
    /// What stands before each of several shards, as a test puts it there. Default: nothing.
    pub between_shards: Option<BetweenShards>,
    /// Each logical node, or node of a cluster, reads only its part of the dictionary, and asks the others for the
    /// terms that it lacks: all of a cluster must. Default: no, each has all of it.
    pub deal_terms: bool,
    /// Bytes that each of them remembers of terms that it asked for at one snapshot. Default: 16 MiB.
    pub dealt_terms_bytes: usize,
    /// What stands between queries and the dictionary, as a test puts it there. Default: nothing.
    pub between_terms: Option<BetweenTerms>,
    /// What carries tables from one operator of a query to the next, as a test puts it there.
    /// Default: nothing, they are handed over as they are.
    pub transport: Option<TransportOfTables>,
    /// When changes are merged into the base.
    pub merge: MergePolicy,
    /// The database is to be one of copies that follow each other ([`Database::replicate`]), and merges nothing
    /// before it is: its merges must agree with those of the others. Default: no.
    ///
    /// [`Database::replicate`]: crate::Database::replicate
    pub is_replicated: bool,
    /// Which files LOAD may read. Default: all that the process may.
    pub load: LoadPolicy,
    /// Which addresses of the web LOAD may read. Default: any.
    pub load_addresses: AddressPolicy,
    /// Bytes that a document of the web may have, as it is sent. Default: 4 GiB.
    pub load_response_bytes: u64,
    /// Bytes of memory that the first load of a store in a folder may take, those of the process included: what is
    /// more goes to a folder within the store's meanwhile. Other loads are refused then
    /// ([`EngineError::BoundedLoad`](crate::EngineError::BoundedLoad)). Default: no bound.
    pub load_memory_bytes: Option<u64>,
    /// Which endpoints SERVICE may call. Default: any.
    pub services: AddressPolicy,
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
    /// Threads for continuous queries that take more than a few milliseconds, so that producers do not
    /// wait for them: so many for those that take more than 50 ms, and one more for the others, which
    /// do not wait for these. With none, the thread that completes a window evaluates its queries.
    /// Default: none.
    pub continuous_threads: usize,
    /// The longest evaluation of a continuous query; one that takes longer is a result that says so, and
    /// the query goes on with its next instant.
    pub continuous_timeout: Option<Duration>,
    /// Queries that differ only in constants are evaluated in one execution when at least this many are
    /// due at the same instant. Default: 8.
    pub together_from: usize,
    /// Whether continuous queries keep solutions from one instant to the next. Default: where that is
    /// expected to cost less.
    pub keep_solutions: KeepSolutions,
    /// Has attempts to evaluate continuous queries be given up at places that this seed draws, as if their time
    /// were over, and made again: for tests. Default: none.
    #[doc(hidden)]
    pub interruptions: Option<u64>,
    /// Bytes of the log of streams after which what it says is put together, unless that was longer the
    /// last time. Default: 64 MiB.
    pub stream_log_bytes: u64,
    /// What says when tuples come, to streams whose times are of arrival. Default: the system's clock.
    pub clock: Clock,
}

/// How logical nodes, which share a process, reach each other's memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NodeFabric {
    /// By copying it within the process.
    #[default]
    Local,
    /// As processes of one machine do: each has segments of shared memory that the others map.
    SharedMemory,
    /// As machines without RDMA do: by messages over TCP to the node that has it.
    Tcp,
}

/// Which files an update's LOAD may read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum LoadPolicy {
    /// All that the process may.
    #[default]
    Any,
    /// Those in these folders.
    Folders(Vec<PathBuf>),
    /// None.
    None,
}

/// What a [`LoadPolicy`] says of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LoadAdmission {
    /// LOAD may read it.
    Allowed,
    /// LOAD might read it, but it is not there.
    Absent,
    /// LOAD may not read it, whether it is there or not.
    Refused,
}

impl LoadPolicy {
    /// Whether LOAD may read the file; symbolic links are followed first.
    pub(crate) fn admits(&self, path: &Path) -> LoadAdmission {
        match self {
            Self::Any => LoadAdmission::Allowed,
            Self::None => LoadAdmission::Refused,
            Self::Folders(folders) => match path.canonicalize() {
                Ok(real) if is_within(folders, &real) => LoadAdmission::Allowed,
                Err(error) if is_absence(error.kind()) && is_absent_within(folders, path) => {
                    LoadAdmission::Absent
                }
                _ => LoadAdmission::Refused,
            },
        }
    }
}

/// Whether a path without links lies in one of the folders.
fn is_within(folders: &[PathBuf], real: &Path) -> bool {
    let mut folders = folders
        .iter()
        .filter_map(|folder| folder.canonicalize().ok());
    folders.any(|folder| real.starts_with(folder))
}

fn is_absence(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::NotFound | ErrorKind::NotADirectory)
}

/// Whether a path that names nothing leads into one of the folders as far as it is there: of what lies
/// elsewhere, by a link or by `..`, must not be known whether it is there.
fn is_absent_within(folders: &[PathBuf], path: &Path) -> bool {
    for there in path.ancestors().skip(1) {
        match there.canonicalize() {
            Ok(real) => {
                let rest = path.strip_prefix(there).unwrap_or(path);
                let mut names = rest.components();
                let is_plain = names.all(|name| matches!(name, Component::Normal(_)));
                let first = rest.components().next().map(|name| real.join(name));
                // A link whose target is missing is there itself.
                let is_missing = |first: PathBuf| first.symlink_metadata().is_err();
                return is_plain && is_within(folders, &real) && first.is_some_and(is_missing);
            }
            Err(error) if is_absence(error.kind()) => {}
            Err(_) => return false,
        }
    }
    false
}

/// Makes a graph that stands before another one: slower, in smaller pieces, or with parts lost, as a
/// remote one may be.
#[derive(Clone)]
pub struct Between(pub Arc<MakeBetween>);

/// Makes the graph that stands before one.
pub type MakeBetween = dyn Fn(Arc<dyn GraphSource>) -> Arc<dyn GraphSource> + Send + Sync;

impl fmt::Debug for Between {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Between")
    }
}

/// Makes what stands before each shard, as [`Between`] before the whole; nothing of a shard that is
/// lost.
#[derive(Clone)]
pub struct BetweenShards(pub Arc<MakeBetweenShards>);

/// Makes the graph that stands before that of a shard.
pub type MakeBetweenShards =
    dyn Fn(ShardId, Arc<dyn GraphSource>) -> Option<Arc<dyn GraphSource>> + Send + Sync;

impl fmt::Debug for BetweenShards {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BetweenShards")
    }
}

/// Makes what stands before a dictionary, as [`Between`] before the graph.
#[derive(Clone)]
pub struct BetweenTerms(pub Arc<MakeBetweenTerms>);

/// Makes the dictionary that stands before another one.
pub type MakeBetweenTerms = dyn Fn(Arc<dyn TermSource>) -> Arc<dyn TermSource> + Send + Sync;

impl fmt::Debug for BetweenTerms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BetweenTerms")
    }
}

/// What carries tables between the operators of queries: by way of bytes, as between machines.
#[derive(Clone)]
pub struct TransportOfTables(pub Arc<dyn Transport>);

impl fmt::Debug for TransportOfTables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TransportOfTables")
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            threads: thread::available_parallelism().map_or(1, NonZeroUsize::get),
            sharing: match env::var_os(SHARE_ALL) {
                Some(_) => Sharing::all(),
                None => Sharing::default(),
            },
            query_memory_bytes: 4 << 30,
            spill: SpillLimits::new(&env::temp_dir(), DEFAULT_SPILL_BYTES),
            memory_pool: None,
            contexts: Contexts::default(),
            worker_start: None,
            light_start: None,
            reading_start: None,
            update_start: None,
            query_timeout: None,
            cached_plans: 1024,
            durability: DurabilityOptions::default(),
            union_default_graph: false,
            between: None,
            shards: Shards::ONE,
            nodes: 1,
            node_fabric: NodeFabric::default(),
            reads_one_sided: true,
            fork_policy: ForkPolicy::default(),
            fork_history_bytes: ForkSettings::default().history_bytes,
            fork_lend_rows: ForkSettings::default().lend_rows,
            splits_scans: true,
            stands_in: true,
            copy_rate: 128 << 20,
            fork_messages: None,
            between_shards: None,
            deal_terms: false,
            dealt_terms_bytes: 16 << 20,
            between_terms: None,
            transport: None,
            merge: MergePolicy::default(),
            is_replicated: false,
            load: LoadPolicy::default(),
            load_addresses: AddressPolicy::Any,
            load_response_bytes: 4 << 30,
            load_memory_bytes: None,
            services: AddressPolicy::Any,
            service_timeout: Duration::from_secs(30),
            service_connect_timeout: Duration::from_secs(10),
            service_response_bytes: 256 << 20,
            service_caller: None,
            continuous_threads: 0,
            continuous_timeout: None,
            together_from: 8,
            keep_solutions: KeepSolutions::default(),
            interruptions: None,
            stream_log_bytes: 64 << 20,
            clock: Clock::default(),
        }
    }
}

/// Whether a continuous query whose windows overlap keeps its solutions until the first of their tuples
/// expires, and looks for new ones only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum KeepSolutions {
    /// Where it is expected to cost less than to find all of them again.
    #[default]
    ByCost,
    /// Wherever it can be done.
    Always,
    /// All are found again at each instant.
    Never,
}

/// Tells the time, in milliseconds since 1970.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> i64 + Send + Sync>);

impl Clock {
    /// A clock that says what this function does.
    #[must_use]
    pub fn new(now_ms: impl Fn() -> i64 + Send + Sync + 'static) -> Self {
        Self(Arc::new(now_ms))
    }

    pub(crate) fn now_ms(&self) -> i64 {
        (self.0)()
    }
}

impl Default for Clock {
    /// That of the system.
    fn default() -> Self {
        Self::new(|| {
            let since = SystemTime::now().duration_since(UNIX_EPOCH);
            since.map_or(0, |since| {
                i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
            })
        })
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Clock")
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
    /// Whether a query without a dataset clause finds all graphs in the default graph; else the
    /// database's setting.
    pub union_default_graph: Option<bool>,
    /// Gather rows and time of each step; the query then runs on one thread.
    pub profile: bool,
    /// Refuse it before it begins if it is planned to cost more than this, in rows handled.
    /// Queries that may end early (ASK, or with LIMIT) are not judged by what they are planned
    /// to cost.
    pub max_cost: Option<f64>,
    /// Threads that it may use, as many at most as the database's setting says; else that many.
    pub threads: Option<usize>,
    /// How other nodes of a cluster take what they get of it: a light query that sends them many rows turns heavy.
    pub class: QueryClass,
    /// Asks no other node of a cluster, where this one has a whole copy of the store.
    pub alone: bool,
    /// What relative IRIs in the query are resolved against.
    pub base: Option<NamedNode>,
    /// Which endpoints SERVICE may call; the database's setting must allow them, too.
    pub services: Option<AddressPolicy>,
    /// Refuse a query that would wait for others, as one with SERVICE does, with
    /// [`EngineError::WouldWait`](crate::EngineError::WouldWait): for threads that must not block.
    pub must_not_wait: bool,
}

impl Config {
    /// How rows get to other nodes.
    pub(crate) fn fork_settings(&self) -> ForkSettings {
        ForkSettings {
            policy: self.fork_policy,
            history_bytes: self.fork_history_bytes,
            splits_scans: self.splits_scans,
            lend_rows: self.fork_lend_rows,
        }
    }

    /// What threads call first that work for queries of other nodes.
    pub(crate) fn thread_starts(&self) -> ThreadStarts {
        let starts = ByClass {
            light: &self.light_start,
            heavy: &self.worker_start,
        };
        let nothing = || Arc::new(|| ()) as ClusterStart;
        starts.map(|_, start| {
            let start = start.as_ref();
            start.map_or_else(nothing, |start| Arc::clone(&start.0))
        })
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use LoadAdmission::{Absent, Allowed, Refused};
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn files_of_other_folders_are_refused_whether_they_are_there_or_not() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        fs::create_dir_all(at("allowed/sub")).expect("it is made");
        fs::create_dir(at("other")).expect("it is made");
        fs::write(at("allowed/a.ttl"), "").expect("it is written");
        fs::write(at("other/there.ttl"), "").expect("it is written");
        for (name, target) in [
            ("allowed/out", "other"),
            ("allowed/to-there", "other/there.ttl"),
            ("allowed/to-absent", "other/absent.ttl"),
            ("allowed/in", "allowed/sub"),
        ] {
            symlink(at(target), at(name)).expect("it is made");
        }
        let policy = LoadPolicy::Folders(vec![at("allowed"), at("gone")]);
        for (name, expected) in [
            ("allowed/a.ttl", Allowed),
            ("allowed/sub/../a.ttl", Allowed),
            ("allowed/absent.ttl", Absent),
            ("allowed/absent/absent.ttl", Absent),
            ("allowed/a.ttl/absent", Absent),
            ("allowed/in/absent.ttl", Absent),
            ("allowed/sub/../absent.ttl", Absent),
            ("other/there.ttl", Refused),
            ("other/absent.ttl", Refused),
            ("other/absent/absent.ttl", Refused),
            ("allowed/out/there.ttl", Refused),
            ("allowed/out/absent.ttl", Refused),
            ("allowed/to-there", Refused),
            ("allowed/to-absent", Refused),
            ("allowed/to-there/absent", Refused),
            ("allowed/to-absent/absent", Refused),
            ("allowed/../other/absent.ttl", Refused),
            ("allowed/absent/../../other/there.ttl", Refused),
            ("gone/absent.ttl", Refused),
            ("allowed-too/absent.ttl", Refused),
        ] {
            assert_eq!(policy.admits(&at(name)), expected, "{name}");
            assert_eq!(LoadPolicy::None.admits(&at(name)), Refused, "{name}");
        }
        assert_eq!(policy.admits(Path::new("")), Refused);
    }
}
