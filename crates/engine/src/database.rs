//! The embedded database: open, load, query.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{SystemTime, UNIX_EPOCH};

use arc_swap::ArcSwap;
use jindou_exec::Workers;
use jindou_ingest::{LoadOptions, Progress, Source};
use jindou_plan::physical::Dataset;
use jindou_plan::{Planner, PlannerConfig, Prepared};
use jindou_store::bulk::build;
use jindou_store::{Base, Directory};

use crate::EngineError;
use crate::config::{Config, QueryOptions};
use crate::graph::StoredGraph;
use crate::load::{self, LoadReport};
use crate::query::{QueryResults, Running};
use crate::statistics::DatabaseStatistics;

/// A database. Clones share one graph; all methods may be called from many threads.
///
/// A query sees the graph as it was when the query began, whatever is loaded meanwhile.
#[derive(Clone)]
pub struct Database {
    inner: Arc<Inner>,
}

struct Inner {
    graph: ArcSwap<StoredGraph>,
    planner: Planner,
    workers: Arc<Workers>,
    config: Config,
    /// Held while a load replaces the graph; the directory of a stored database.
    writer: Mutex<Option<Directory>>,
    /// The seed of the next query.
    seed: AtomicU64,
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
        let base = build(Vec::new(), 0).expect("an empty graph is not too large");
        Self::from_parts(base, None, config)
    }

    /// Opens a stored database. Its files are mapped, not read in: this takes as long as
    /// comparing their checksums. The directory stays locked until the last clone is dropped.
    ///
    /// # Errors
    /// If the directory is no store, is in use, or has a file that is damaged.
    pub fn open(location: &Path, config: Config) -> Result<Self, EngineError> {
        let directory = Directory::open(location)?;
        let base = directory.read()?;
        Ok(Self::from_parts(base, Some(directory), config))
    }

    /// Loads files into a store, which is made if it is not there; what it holds stays.
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
        let existing = if directory.has_store() {
            Some(directory.read()?)
        } else {
            None
        };
        let (base, report) = load::load(existing.as_ref(), sources, options, progress)?;
        drop(existing);
        directory.write(&base)?;
        drop(base);
        let base = directory.read()?;
        Ok((Self::from_parts(base, Some(directory), config), report))
    }

    fn from_parts(base: Base, directory: Option<Directory>, config: Config) -> Self {
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let start = config.worker_start.clone();
        let start = start.map_or_else(|| Arc::new(|| ()) as _, |start| start.0);
        let inner = Inner {
            graph: ArcSwap::from_pointee(StoredGraph {
                base,
                generation: 0,
            }),
            planner: Planner::new(&PlannerConfig {
                cached_plans: config.cached_plans,
            }),
            workers: Arc::new(Workers::with_start(config.threads.saturating_sub(1), start)),
            config,
            writer: Mutex::new(directory),
            seed: AtomicU64::new(now.as_nanos() as u64),
        };
        Self {
            inner: Arc::new(inner),
        }
    }

    /// Loads files, beside what is there. For a stored database the new generation is on disk
    /// when this returns.
    ///
    /// # Errors
    /// The first bad statement with its file, line and column, or what the operating system says;
    /// the graph is then as it was. With [`LoadOptions::lenient`] bad statements are skipped and
    /// counted.
    pub fn load(
        &self,
        sources: Vec<Source>,
        options: &LoadOptions,
        progress: &Progress,
    ) -> Result<LoadReport, EngineError> {
        let writer = self.writer();
        let existing = self.inner.graph.load_full();
        let (base, report) = load::load(Some(&existing.base), sources, options, progress)?;
        let base = match &*writer {
            None => base,
            Some(directory) => {
                directory.write(&base)?;
                drop(base);
                directory.read()?
            }
        };
        let generation = existing.generation + 1;
        self.inner
            .graph
            .store(Arc::new(StoredGraph { base, generation }));
        self.inner.planner.clear();
        Ok(report)
    }

    fn writer(&self) -> MutexGuard<'_, Option<Directory>> {
        // A load that panicked changed nothing: the graph is swapped at its very end.
        self.inner
            .writer
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
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
        let graph = self.inner.graph.load_full();
        let prepared = self.prepare(text, &options, &graph)?;
        let inner = &*self.inner;
        // Odd steps through all 64-bit numbers, so that no two queries share a seed.
        let seed = inner
            .seed
            .fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed);
        Running::start(
            graph,
            prepared,
            &options,
            &inner.config,
            &inner.workers,
            seed,
        )?
        .into_results()
    }

    fn prepare<'t>(
        &self,
        text: &'t str,
        options: &QueryOptions,
        graph: &StoredGraph,
    ) -> Result<Prepared<'t>, EngineError> {
        let replaced = !options.default_graphs.is_empty() || !options.named_graphs.is_empty();
        let dataset = replaced.then(|| Dataset {
            default: options.default_graphs.clone(),
            named: options.named_graphs.clone(),
        });
        let base = options.base.as_ref().map(|base| base.as_str());
        Ok(self
            .inner
            .planner
            .prepare(text, base, dataset.as_ref(), graph)?)
    }

    /// The plan of a query with the rows expected of each step.
    ///
    /// # Errors
    /// What is wrong with the query.
    pub fn explain(&self, text: &str) -> Result<String, EngineError> {
        let graph = self.inner.graph.load_full();
        let prepared = self.prepare(text, &QueryOptions::default(), &graph)?;
        Ok(prepared.explain())
    }

    /// Figures of the graph.
    #[must_use]
    pub fn statistics(&self) -> DatabaseStatistics {
        DatabaseStatistics::of(&self.inner.graph.load().base)
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
        let triples = self.inner.graph.load().base.triples();
        f.debug_struct("Database")
            .field("triples", &triples)
            .finish_non_exhaustive()
    }
}
