//! The embedded database: open, load, query.

use std::path::Path;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use arc_swap::ArcSwap;
use jindou_cluster::RemoteReads;
use jindou_exec::{ExecError, Workers};
use jindou_ingest::{LoadOptions, Progress, Source};
use jindou_model::SnapshotNumber;
use jindou_plan::physical::Dataset;
use jindou_plan::{Planner, PlannerConfig, Prepared, Statistics};
use jindou_store::bulk::build;
use jindou_store::{
    Base, Directory, DurableStore, FoldRule, Recovery, SideLog, Snapshot, StoreError,
};
use parking_lot::Mutex;

use crate::EngineError;
use crate::config::{Config, QueryOptions};
use crate::deadline::Deadline;
use crate::graph::StoredGraph;
use crate::health::Failure;
use crate::load::{self, LoadReport};
use crate::load_within;
use crate::merge::{Signal, Trouble, Which};
use crate::merge_underway::MergeUnderway;
use crate::prefixes::{self, Prefixes};
use crate::query::{QueryResults, Running};
use crate::replica::Group;
use crate::request_memory::RequestMemory;
use crate::shards::LastShards;
use crate::statistics::{DatabaseStatistics, GraphSizes, QuadCounts};
use crate::streams::{Pool, Streams};
use crate::turn::Turn;
use crate::writer::Writer;

/// Bytes of text up to which the tree of a query is not counted.
const SHORT_TEXT_BYTES: usize = 4 << 10;

/// A database. Clones share one graph; all methods may be called from many threads.
///
/// A query sees the graph as it was when the query began, whatever is loaded or updated meanwhile.
#[derive(Clone)]
pub struct Database {
    inner: Arc<Inner>,
    /// Behind `inner`: what its thread holds is gone when the last of these is. None for a thread of the database
    /// itself, which ends before.
    _open: Option<Arc<Open>>,
}

/// Ends the threads of a database with its last clone: a merge under way is given up at its next step,
/// and its directory is free when the clone is gone.
struct Open {
    signal: Arc<Signal>,
    pool: Arc<Pool>,
    replica: Arc<OnceLock<Arc<Group>>>,
}

impl Drop for Open {
    fn drop(&mut self) {
        if let Some(group) = self.replica.get() {
            group.stop();
        }
        self.pool.stop();
        self.signal.stop();
    }
}

pub(crate) struct Inner {
    /// What readers see.
    pub(crate) graph: ArcSwap<StoredGraph>,
    /// Held while `graph` is replaced.
    pub(crate) showing: Mutex<()>,
    /// Held while a transaction is executed and appended to the log.
    pub(crate) writer: Mutex<Writer>,
    /// [`Writer::failed`], for those who must not wait for the writer.
    pub(crate) log_failure: Arc<OnceLock<String>>,
    /// Taken during a load, a merge, a checkpoint or a backup.
    pub(crate) turn: Turn,
    /// Updates that search the graph beside others, which a merge would make search again.
    pub(crate) searches: AtomicUsize,
    /// Bytes of the terms that a load has added, whose quads are not in the graph yet.
    pub(crate) load_bytes: AtomicU64,
    /// The files of a stored database, also of one that is only read.
    pub(crate) directory: Option<Arc<Directory>>,
    pub(crate) signal: Arc<Signal>,
    /// The merge that writes its segments.
    pub(crate) underway: Mutex<Option<MergeUnderway>>,
    /// Why the last merge or checkpoint failed, if it did.
    pub(crate) trouble: Trouble,
    pub(crate) builders: OnceLock<rayon::ThreadPool>,
    pub(crate) planner: Planner,
    /// Quads of the graph that plans were last made for.
    pub(crate) planned_quads: AtomicU64,
    pub(crate) workers: Arc<Workers>,
    /// What queries ask.
    pub(crate) shards: LastShards,
    pub(crate) streams: Streams,
    pub(crate) prefixes: Prefixes,
    /// The database's part among copies of its store, once it has one.
    pub(crate) replica: Arc<OnceLock<Arc<Group>>>,
    pub(crate) config: Config,
    recovery: Recovery,
    /// The seed of the next query.
    seed: AtomicU64,
}

impl Inner {
    /// True if the database was opened to be read.
    pub(crate) fn is_read_only(&self) -> bool {
        self.prefixes.is_read_only()
    }

    /// Refuses where the graph is the part of a store, and this is not the node that has it.
    pub(crate) fn check_is_whole(&self, graph: &StoredGraph) -> Result<(), EngineError> {
        match graph.snapshot.base().node_part() {
            Some(part) if !self.shards.is_member() => {
                let directory = self.directory.as_ref();
                let path = directory.map_or(Path::new("memory"), |directory| directory.path());
                Err(part.refusal(path).into())
            }
            _ => Ok(()),
        }
    }

    /// Whether the default graph is the union of all graphs for a request that asks so.
    pub(crate) fn is_union(&self, asked: Option<bool>) -> bool {
        asked.unwrap_or_else(|| {
            self.config.union_default_graph || self.graph.load().snapshot.base().is_union()
        })
    }

    /// A seed that no other query has.
    pub(crate) fn next_seed(&self) -> u64 {
        // Odd steps through all 64-bit numbers.
        self.seed
            .fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed)
    }
}

/// What the data takes of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DataMemory {
    /// How often the data was first loaded or numbered anew, and how often merged since: a load onto
    /// data is a merge.
    pub generation: (u64, u64),
    /// Bytes of the data as it was loaded or merged last.
    pub base_bytes: u64,
    /// True if that lies in files, which are no memory of the process.
    pub is_in_files: bool,
    /// Bytes of what changed since.
    pub change_bytes: u64,
    /// Bytes of the windows of streams, and of what waits to enter them.
    pub stream_bytes: u64,
    /// True while a load, a merge or the like is under way, which has memory of its own.
    pub is_in_work: bool,
}

/// The base of a database that is made.
fn empty_base(config: &Config) -> Base {
    let base = build(Vec::new(), 0).expect("an empty graph is not too large");
    base.with_union(config.union_default_graph)
}

impl Database {
    /// An empty database in memory.
    ///
    /// # Panics
    /// If the operating system refuses a thread.
    #[must_use]
    pub fn new() -> Self {
        Self::with_config(Config::default())
    }

    /// An empty database in memory, with settings.
    ///
    /// # Panics
    /// As [`Database::new`].
    #[must_use]
    pub fn with_config(config: Config) -> Self {
        let base = empty_base(&config);
        let snapshot = Snapshot::of_base(base, 0, SnapshotNumber(1));
        Self::from_parts(snapshot, None, config, Recovery::default())
    }

    /// Whether there is a store at a location, which [`Database::open`] would open. Reads one small file.
    ///
    /// # Errors
    /// Those of a store whose files do not say what it is made of.
    pub fn is_at(location: &Path) -> Result<bool, EngineError> {
        match Directory::open_to_read(location) {
            Ok(_) => Ok(true),
            Err(StoreError::NotAStore { .. }) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Opens a stored database. Its files are mapped, not read in: this takes as long as
    /// comparing their checksums and replaying what was logged since the last merge or
    /// checkpoint. The directory stays locked until the last clone is dropped
    /// and a merge or checkpoint that was under way then has ended.
    ///
    /// # Errors
    /// If the directory is no store or the part of one, is in use, or has a file that is damaged.
    pub fn open(location: &Path, config: Config) -> Result<Self, EngineError> {
        let directory = Directory::open(location)?;
        let (store, snapshot, recovery) = DurableStore::open(directory, config.durability.clone())?;
        Self::from_parts(snapshot, Some(store), config, recovery)
            .restore_prefixes()?
            .restore_streams()
    }

    /// Opens a stored database to read it as it is now, beside others that read it and one that
    /// writes it: what that one commits, merges or removes later alters nothing here. Nothing in the
    /// directory is locked, altered or needs to be writable; what a crash left at the end of the log
    /// is passed over and stays. Updates, loads, merges and checkpoints are refused with
    /// [`EngineError::ReadOnly`]. Takes as long as [`Database::open`], and as long again where
    /// another process replaced files before they were all open.
    ///
    /// # Errors
    /// As [`Database::open`], but that it may be in use.
    pub fn open_to_read(location: &Path, config: Config) -> Result<Self, EngineError> {
        Self::read_whole(Directory::open_to_read(location)?, config)
    }

    /// Opens a stored database as [`Database::open_to_read`] does, to become a node of a cluster: also the part of a
    /// store that a node of one has. Queries of a part are refused until it is that node (by `Database::join`, on
    /// Linux).
    ///
    /// # Errors
    /// As [`Database::open_to_read`], but for parts.
    pub fn open_to_join(location: &Path, config: Config) -> Result<Self, EngineError> {
        Self::read(Directory::open_to_read(location)?, config)
    }

    /// Opens a stored database as [`Database::open_to_read`] does, and keeps those out that would
    /// write it, until the last clone is dropped: a backup of it shares its files.
    ///
    /// # Errors
    /// As [`Database::open`].
    pub fn open_to_copy(location: &Path, config: Config) -> Result<Self, EngineError> {
        Self::read_whole(Directory::open_to_copy(location)?, config)
    }

    fn read_whole(directory: Directory, config: Config) -> Result<Self, EngineError> {
        let database = Self::read(directory, config)?;
        database.inner.check_is_whole(&database.graph())?;
        Ok(database)
    }

    fn read(directory: Directory, config: Config) -> Result<Self, EngineError> {
        let (snapshot, recovery) = DurableStore::read(&directory, &config.durability)?;
        let config = Config {
            merge: config.merge.of_reader(),
            ..config
        };
        let has_streams = SideLog::is_in(&directory);
        let read_from = Some(Arc::new(directory));
        let database =
            Self::from_all(snapshot, None, read_from, config, recovery).restore_prefixes()?;
        let streams = &database.inner().streams;
        streams.are_resting.store(has_streams, Ordering::Relaxed);
        Ok(database)
    }

    /// Opens a stored database, or makes an empty one if the directory is absent or empty.
    ///
    /// # Errors
    /// As [`Database::open`]; if the directory holds other things.
    pub fn open_or_create(location: &Path, config: Config) -> Result<Self, EngineError> {
        let directory = Directory::create(location)?;
        if directory.has_store()? {
            let (store, snapshot, recovery) =
                DurableStore::open(directory, config.durability.clone())?;
            return Self::from_parts(snapshot, Some(store), config, recovery)
                .restore_prefixes()?
                .restore_streams();
        }
        let base = empty_base(&config);
        let (store, snapshot) = DurableStore::create(directory, config.durability.clone(), &base)?;
        let recovery = Recovery::default();
        Self::from_parts(snapshot, Some(store), config, recovery).restore_prefixes()
    }

    /// Loads files into a store, which is made if it is not there; what it holds stays, and keeps its
    /// ids.
    ///
    /// # Errors
    /// As [`Database::open`] and [`Database::load`]; the store is then as it was.
    pub fn create(
        location: &Path,
        sources: Vec<Source>,
        options: &LoadOptions,
        progress: &Progress,
        config: Config,
    ) -> Result<(Self, LoadReport), EngineError> {
        let directory = Directory::create(location)?;
        if directory.has_store()? {
            drop(directory);
            let database = Self::open(location, config)?;
            let report = database.load(sources, options, progress)?;
            return Ok((database, report));
        }
        let (base, report, declared) = match config.load_memory_bytes {
            None => load::base_of(sources, options, progress)?,
            Some(bytes) => {
                let what = (sources, options, progress);
                load_within::base_within(&directory, &config.durability, bytes, what)?
            }
        };
        let base = base.with_union(config.union_default_graph);
        // What is made current after this has them.
        prefixes::write_first(&directory, &declared)?;
        let (store, snapshot) = DurableStore::create(directory, config.durability.clone(), &base)?;
        let recovery = Recovery::default();
        let database = Self::from_parts(snapshot, Some(store), config, recovery);
        Ok((database.restore_prefixes()?, report))
    }

    fn from_parts(
        snapshot: Snapshot,
        store: Option<DurableStore>,
        config: Config,
        recovery: Recovery,
    ) -> Self {
        Self::from_all(snapshot, store, None, config, recovery)
    }

    fn from_all(
        snapshot: Snapshot,
        store: Option<DurableStore>,
        read_from: Option<Arc<Directory>>,
        config: Config,
        recovery: Recovery,
    ) -> Self {
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let quads = snapshot.triples() + snapshot.named_quads();
        let start = config.worker_start.clone();
        let start = start.map_or_else(|| Arc::new(|| ()) as _, |start| start.0);
        let stored = store.as_ref().map(|store| Arc::clone(store.directory()));
        let is_read_only = read_from.is_some();
        let directory = stored.or_else(|| read_from.clone());
        let log_failure: Arc<OnceLock<String>> = Arc::default();
        let streams = Streams::default();
        let inner = Inner {
            graph: ArcSwap::from_pointee(StoredGraph {
                snapshot: snapshot.clone(),
            }),
            showing: Mutex::new(()),
            writer: Mutex::new(Writer {
                latest: snapshot,
                store,
                last: None,
                failed: Arc::clone(&log_failure),
                revocations: Vec::new(),
                read_from,
                published: Arc::clone(&streams.published),
                copied: None,
                told: None,
                group: None,
                leads: None,
                has_run: false,
                follows: false,
            }),
            log_failure,
            turn: Turn::default(),
            searches: AtomicUsize::new(0),
            load_bytes: AtomicU64::new(0),
            directory,
            signal: Arc::default(),
            underway: Mutex::default(),
            trouble: Trouble::default(),
            builders: OnceLock::new(),
            planner: Planner::new(&PlannerConfig {
                cached_plans: config.cached_plans,
            }),
            planned_quads: AtomicU64::new(quads),
            shards: LastShards::new(&config),
            workers: Arc::new(Workers::with_start(config.threads.saturating_sub(1), start)),
            streams,
            prefixes: Prefixes::new(is_read_only),
            replica: Arc::default(),
            config,
            recovery,
            seed: AtomicU64::new(now.as_nanos() as u64),
        };
        let signal = Arc::clone(&inner.signal);
        let pool = Arc::clone(&inner.streams.pool);
        let replica = Arc::clone(&inner.replica);
        let inner = Arc::new(inner);
        inner.note_opening();
        let open = Open {
            signal,
            pool,
            replica,
        };
        Self {
            inner,
            _open: Some(Arc::new(open)),
        }
    }

    /// The same database for one of its own threads, which its last clone waits for.
    pub(crate) fn within(inner: Arc<Inner>) -> Self {
        Self { inner, _open: None }
    }

    pub(crate) fn inner(&self) -> &Arc<Inner> {
        &self.inner
    }

    /// Merges all changes since the last load or merge into the base. Queries and updates go on
    /// meanwhile, and every term keeps its id: see [`Database::renumber_within`]. Returns false if
    /// there were none.
    ///
    /// Waits for its turn as long as a query may take by the database's setting; what it takes
    /// itself is not limited.
    ///
    /// # Errors
    /// As [`Database::compact_within`].
    pub fn compact(&self) -> Result<bool, EngineError> {
        self.compact_within(self.inner.config.query_timeout)
    }

    /// [`Database::compact`] that waits for so long at most until it can begin; without a limit
    /// for ever.
    ///
    /// # Errors
    /// [`EngineError::Busy`] if something else was under way for all that time; what the operating
    /// system says. The database is then as it was.
    pub fn compact_within(&self, wait: Option<Duration>) -> Result<bool, EngineError> {
        let deadline = Deadline::new(Instant::now(), wait, None);
        self.inner.merge(Which::All, &deadline)
    }

    /// Merges the changes of those predicates alone whose IRIs are chosen; `rdf:type` is one of them.
    /// The others stay changes, and new terms become part of the base all the same. Returns false if
    /// there was nothing to do.
    ///
    /// Costs what changed and the size of the chosen predicates; waits as [`Database::compact`].
    ///
    /// # Errors
    /// As [`Database::compact_within`].
    pub fn compact_some(&self, is_chosen: &dyn Fn(&str) -> bool) -> Result<bool, EngineError> {
        let deadline = Deadline::new(Instant::now(), self.inner.config.query_timeout, None);
        self.inner.merge(Which::Chosen(is_chosen), &deadline)
    }

    /// Numbers all terms anew, as a load of the same graph would, which gives up the ids of terms
    /// that nothing uses any more, and makes queries as fast as after a load where what vertices are
    /// and have changed much. Updates wait meanwhile, queries go on.
    ///
    /// Costs what a load costs, but for reading the data.
    ///
    /// # Errors
    /// As [`Database::compact_within`].
    pub fn renumber_within(&self, wait: Option<Duration>) -> Result<(), EngineError> {
        self.inner
            .renumber(&Deadline::new(Instant::now(), wait, None))
    }

    /// Writes out, in memory, the lists of neighbours that changed since the last merge, so that
    /// they are read nearly as fast as those that did not: what the background does after some
    /// thousand changes and whenever there are none for a moment. Returns false if there were none.
    ///
    /// Costs time and memory in proportion to these lists. Queries and updates go on meanwhile.
    /// Waits for its turn as [`Database::compact`] does.
    ///
    /// # Errors
    /// [`EngineError::Busy`]; [`EngineError::ReadOnly`] after the log failed.
    pub fn fold(&self) -> Result<bool, EngineError> {
        let all = FoldRule {
            least: 1,
            ..FoldRule::default()
        };
        let wait = self.inner.config.query_timeout;
        let deadline = Deadline::new(Instant::now(), wait, None);
        self.inner.fold(all, &deadline)
    }

    /// Writes what has changed since the base to a file of its own, so that the log can begin
    /// anew and the next opening has less to replay. Does nothing for a database in memory, nor for the leader of
    /// copies while one of these needs the log ([`ReplicaOptions::held_log_bytes`](crate::ReplicaOptions)).
    /// Waits for its turn as [`Database::compact`] does.
    ///
    /// # Errors
    /// As [`Database::checkpoint_within`].
    pub fn checkpoint(&self) -> Result<(), EngineError> {
        self.checkpoint_within(self.inner.config.query_timeout)
    }

    /// [`Database::checkpoint`] that waits for so long at most until it can begin; without a limit
    /// for ever.
    ///
    /// # Errors
    /// [`EngineError::Busy`] if something else was under way for all that time; what the operating
    /// system says. Nothing is lost then.
    pub fn checkpoint_within(&self, wait: Option<Duration>) -> Result<(), EngineError> {
        let deadline = Deadline::new(Instant::now(), wait, None);
        self.inner.checkpoint(&deadline)
    }

    /// What is wrong with the database, so that it takes no changes or soon will not: empty if all
    /// is well. Waits for no writer.
    #[must_use]
    pub fn health(&self) -> Vec<Failure> {
        let log = self.inner.log_failure.get().cloned();
        let merge = self.inner.trouble.last();
        let log = log.map(|reason| Failure::Log { reason });
        let merge = merge.map(|reason| Failure::Maintenance { reason });
        let data = self.inner.graph.load().snapshot.base().check();
        let data = data.err().map(|error| Failure::Data {
            reason: error.to_string(),
        });
        let followed = self.inner.group().and_then(|group| group.ended().cloned());
        let followed = followed.map(|reason| Failure::Replication { reason });
        let failures = log.into_iter().chain(data).chain(merge);
        failures.chain(followed).collect()
    }

    /// What opening the stored database found in its log.
    #[must_use]
    pub fn recovery(&self) -> Recovery {
        self.inner.recovery
    }

    /// The number of the snapshot that queries see now. It never decreases, whatever is loaded or
    /// merged and however often a stored database is opened again, as long as the log is synced
    /// ([`Fsync::Always`](jindou_store::log::Fsync)) or the machine does not stop.
    #[must_use]
    pub fn snapshot_number(&self) -> SnapshotNumber {
        self.inner.graph.load().snapshot.number()
    }

    /// What logical nodes have read of each other's memory since the database was opened.
    #[must_use]
    pub fn remote_reads(&self) -> RemoteReads {
        self.inner.shards.remote_reads()
    }

    /// What each logical node holds for queries of others, where sub-queries go as messages: how many of
    /// these queries, and of their chains to whose readers tables are on the way. Nothing is left soon
    /// after the queries have ended.
    #[must_use]
    pub fn held_for_others(&self) -> Vec<(usize, usize)> {
        self.inner.shards.held_for_others()
    }

    /// The graph as it is now.
    pub(crate) fn graph(&self) -> Arc<StoredGraph> {
        self.inner.graph.load_full()
    }

    /// Answers a query with the default options.
    ///
    /// # Errors
    /// What is wrong with the query, or the limit that it met.
    pub fn query(&self, text: &str) -> Result<QueryResults, EngineError> {
        self.query_with(text, QueryOptions::default())
    }

    /// Answers a query.
    ///
    /// # Errors
    /// What is wrong with the query, or the limit that it met.
    pub fn query_with(
        &self,
        text: &str,
        options: QueryOptions,
    ) -> Result<QueryResults, EngineError> {
        let begun = Instant::now();
        let graph = self.inner.graph.load_full();
        graph.read(|| {
            let prepared = self.prepare(text, &options, &graph, begun)?;
            if options.must_not_wait && prepared.plan.calls_services {
                return Err(EngineError::WouldWait);
            }
            let inner = &*self.inner;
            let seed = inner.next_seed();
            let results = Running::start(
                (inner.shards).asked(Arc::clone(&graph), &inner.config, &options)?,
                prepared,
                &options,
                &inner.config,
                &inner.workers,
                (begun, seed),
            )?
            .into_results()?;
            Ok(match results {
                QueryResults::Graph(graph) => {
                    let base = options.base.as_ref().map(|base| base.as_str());
                    let prefixes = jindou_syntax::prefixes(text, base);
                    QueryResults::Graph(graph.with_prefixes(prefixes, self.prefixes()))
                }
                results => results,
            })
        })?
    }

    fn prepare<'t>(
        &self,
        text: &'t str,
        options: &QueryOptions,
        graph: &Arc<StoredGraph>,
        begun: Instant,
    ) -> Result<Prepared<'t>, EngineError> {
        self.inner.check_is_whole(graph)?;
        let limit = options.timeout.or(self.inner.config.query_timeout);
        let cancellation = options.cancellation.clone().unwrap_or_default();
        let is_over = move || {
            cancellation.is_cancelled() || limit.is_some_and(|limit| begun.elapsed() > limit)
        };
        let of_part = self.inner.shards.figures_of_part(graph, is_over)?;
        let figures: &dyn Statistics = match &of_part {
            Some(of_part) => of_part,
            None => &**graph,
        };
        let replaced = !options.default_graphs.is_empty() || !options.named_graphs.is_empty();
        let dataset = replaced.then(|| Dataset {
            default: options.default_graphs.clone(),
            named: options.named_graphs.clone(),
        });
        let union = self.inner.is_union(options.union_default_graph);
        let base = options.base.as_ref().map(|base| base.as_str());
        let until = Deadline::new(begun, limit, options.cancellation.as_ref());
        let pool = self.inner.config.memory_pool.as_ref();
        let mut memory = RequestMemory::new(pool.filter(|_| text.len() > SHORT_TEXT_BYTES));
        let planner = &self.inner.planner;
        let planned = memory.plan(&until, |limits| {
            planner.prepare_within(text, base, (dataset.as_ref(), union), figures, limits)
        });
        if let Some(of_part) = &of_part {
            let known = of_part.check();
            known.map_err(|why| {
                self.inner
                    .shards
                    .name(ExecError::of_unavailable(why).into())
            })?;
        }
        planned.map_err(|error| self.inner.with_known_prefix(error))
    }

    /// What somebody should know who finds nothing with a query: that it looks into the default
    /// graph, which is empty, while all that there is is in named graphs.
    ///
    /// # Errors
    /// What is wrong with the query.
    pub fn hint(&self, text: &str, options: &QueryOptions) -> Result<Option<String>, EngineError> {
        let graph = self.graph();
        let (triples, quads) = (graph.snapshot.triples(), graph.snapshot.named_quads());
        if triples > 0 || quads == 0 {
            return Ok(None);
        }
        let prepared = self.prepare(text, options, &graph, Instant::now())?;
        let plan = &prepared.plan;
        let is_stored = plan.dataset.is_none() && !plan.union_default_graph;
        Ok((plan.reads_default_graph && is_stored).then(|| {
            let graphs = graph.snapshot.named_graphs();
            format!(
                "the default graph is empty: all {quads} quads are in {graphs} named graphs, which \
                 GRAPH or FROM looks into, or the union of all graphs as default graph"
            )
        }))
    }

    /// The plan of a query with the rows expected of each step.
    ///
    /// # Errors
    /// What is wrong with the query.
    pub fn explain(&self, text: &str) -> Result<String, EngineError> {
        self.explain_with(text, &QueryOptions::default())
    }

    /// [`Database::explain`] of a query with these options, of which the time limit and the
    /// cancellation are the planning's own. Nothing is run.
    ///
    /// # Errors
    /// What is wrong with the query, or the limit that it met.
    pub fn explain_with(&self, text: &str, options: &QueryOptions) -> Result<String, EngineError> {
        let begun = Instant::now();
        let graph = self.inner.graph.load_full();
        graph.read(|| {
            let prepared = self.prepare(text, options, &graph, begun)?;
            let inner = &*self.inner;
            if prepared.plan.cost < inner.config.sharing.least_cost {
                return Ok(prepared.explain()?);
            }
            // What several threads do is known once it is made ready to run.
            let running = Running::start(
                (inner.shards).asked(Arc::clone(&graph), &inner.config, options)?,
                prepared,
                options,
                &inner.config,
                &inner.workers,
                (begun, inner.next_seed()),
            )?;
            running.explain()
        })?
    }

    /// How many statements there are. Costs the same whatever there is.
    #[must_use]
    pub fn quad_counts(&self) -> QuadCounts {
        QuadCounts::of(&self.inner.graph.load().snapshot)
    }

    /// How many statements the default graph has, each of the `most` largest named graphs, and all others
    /// together. Costs a search for each graph; where there are more than 100,000, none is told from the others.
    #[must_use]
    pub fn graph_sizes(&self, most: usize) -> GraphSizes {
        GraphSizes::of(&self.inner.graph.load().snapshot, most)
    }

    /// Figures of the graph. Costs a table of all predicates.
    #[must_use]
    pub fn statistics(&self) -> DatabaseStatistics {
        DatabaseStatistics::of(&self.inner.graph.load().snapshot)
    }

    /// What the data takes of memory. Costs microseconds, one for each stream, and as much for each predicate as a small
    /// query where `base` is another generation's.
    #[must_use]
    pub fn data_memory(&self, base: Option<DataMemory>) -> DataMemory {
        let graph = self.inner.graph.load();
        let (generation, _, merge) = graph.snapshot.place();
        let generation = (generation, merge);
        let base_bytes = match base.filter(|base| base.generation == generation) {
            Some(base) => base.base_bytes,
            None => graph.snapshot.base().footprint().total() as u64,
        };
        DataMemory {
            generation,
            base_bytes,
            is_in_files: graph.snapshot.base().is_in_files(),
            change_bytes: graph.snapshot.delta_bytes() as u64,
            stream_bytes: self.inner.streams.bytes(),
            is_in_work: self.inner.turn.is_taken(),
        }
    }

    /// The settings.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.inner.config
    }
}

impl Default for Database {
    fn default() -> Self {
        Self::new()
    }
}

impl std::fmt::Debug for Database {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let triples = self.inner.graph.load().snapshot.triples();
        f.debug_struct("Database")
            .field("triples", &triples)
            .finish_non_exhaustive()
    }
}
