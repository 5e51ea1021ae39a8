//! What does it cost a query that the graph is on several nodes, and how do its rows get to their keys
//! best?
//!
//! The nodes are logical ones, which share this process and reach each other's memory by copying it, as
//! processes of one machine do, or over loopback; or they are processes. All share the cores of one machine.
//! What is seen is what dividing the work costs, and how much would travel.

#[cfg(target_os = "linux")]
mod processes;
pub mod switches;

use std::fmt::{self, Display, Formatter};
use std::path::PathBuf;

use jindou_datagen::lubm::{Lubm, QUERIES};
use jindou_engine::ingest::{LoadOptions, Progress, Source};
use jindou_engine::{Config, Database, ForkPolicy, NodeFabric, QueryOptions, Shards};
use jindou_server::{HeavyPriority, MemoryLimits};
use serde::Serialize;

#[cfg(target_os = "linux")]
pub use self::processes::child;
#[cfg(target_os = "linux")]
use self::processes::{ProcessOptions, Processes};
use crate::BenchError;
use crate::child::ChildProgram;
use crate::data;
use crate::emulate::{Load, Waits};
use crate::machine::Machine;
use crate::run;
use crate::table::{Table, millis};

/// What to measure.
#[derive(Debug, Clone)]
pub struct Options {
    /// Universities of the data; its seed is 0.
    pub universities: u32,
    /// Where the data's file is kept.
    pub folder: PathBuf,
    /// Logical nodes.
    pub nodes: u32,
    /// Virtual shards that these hold.
    pub shards: Shards,
    /// How the nodes reach each other's memory.
    pub fabric: NodeFabric,
    /// Nodes are processes, started so; otherwise they share this one.
    pub processes: Option<ChildProgram>,
    /// When threads of heavy queries run, at nodes that are set as servers are; without it, as databases are.
    pub heavy_priority: Option<HeavyPriority>,
    /// Only queries with this in their names.
    pub only: Option<String>,
    /// Timed runs of each query in each way and round.
    pub runs: u32,
}

/// Rounds, in each of which each way has its turn: what disturbs the machine for a while is not to fall on
/// one of them.
const ROUNDS: usize = 5;

/// What was measured.
#[derive(Debug, Clone, Serialize)]
pub struct NodesReport {
    /// Where.
    pub machine: Machine,
    /// Universities of the data.
    pub universities: u32,
    /// Logical nodes.
    pub nodes: u32,
    /// Virtual shards.
    pub shards: usize,
    /// How the nodes reach each other's memory.
    pub fabric: &'static str,
    /// Nodes are processes.
    pub are_processes: bool,
    /// By query.
    pub figures: Vec<NodesFigures>,
}

/// One query in each way.
#[derive(Debug, Clone, Serialize)]
pub struct NodesFigures {
    /// Its name.
    pub name: String,
    /// Rows of its answer.
    pub rows: u64,
    /// Medians in milliseconds: on one node,
    pub one_ms: f64,
    /// on several, as is less work for each table of rows,
    pub dynamic_ms: f64,
    /// all keys read from where they are,
    pub in_place_ms: f64,
    /// all rows sent to where their keys are.
    pub fork_join_ms: f64,
    /// What went to other nodes and was read of them, dynamically,
    pub dynamic: Traffic,
    /// where all keys are read from where they are,
    pub in_place: Traffic,
    /// and where all rows are sent.
    pub fork_join: Traffic,
}

/// What went to other nodes for one query.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Traffic {
    /// Sub-queries.
    pub sub_queries: u64,
    /// Their rows.
    pub rows: u64,
    /// The bytes of these.
    pub bytes: u64,
    /// One-sided reads of other nodes' memory.
    pub reads: u64,
    /// Their bytes.
    pub read_bytes: u64,
    /// Batches in which these flew, for each of which somebody waited.
    pub read_batches: u64,
    /// Calls that other nodes were asked.
    pub calls: u64,
    /// Messages of these, requests and answers.
    pub messages: u64,
    /// Their bytes.
    pub message_bytes: u64,
}

impl NodesFigures {
    /// How many times as long it takes dynamically as in the better of both fixed ways.
    #[must_use]
    pub fn against_better(&self) -> f64 {
        self.dynamic_ms / self.in_place_ms.min(self.fork_join_ms)
    }
}

/// The data on nodes.
pub(crate) enum Asked {
    Logical(Database),
    #[cfg(target_os = "linux")]
    Processes(Processes),
}

impl Asked {
    /// Where this process asks.
    pub(crate) fn database(&self) -> &Database {
        match self {
            Self::Logical(database) => database,
            #[cfg(target_os = "linux")]
            Self::Processes(processes) => &processes.database,
        }
    }

    /// What clients wait for, at each process that has some; those of heavy queries ask here.
    pub(crate) fn ask(&mut self, load: &Load) -> Result<Vec<Waits>, BenchError> {
        match self {
            Self::Logical(database) => Ok(vec![load.clone().draw(database)?.ask(database)?]),
            #[cfg(target_os = "linux")]
            Self::Processes(processes) => processes.ask(load),
        }
    }
}

/// Where the data is.
pub(crate) struct Places {
    file: PathBuf,
    folder: tempfile::TempDir,
}

impl Places {
    /// A file of data, and a folder for stores of it.
    pub(crate) fn of(file: PathBuf) -> Result<Self, BenchError> {
        let folder = tempfile::tempdir().map_err(BenchError::io("a folder"))?;
        Ok(Self { file, folder })
    }

    /// The data on as many nodes as the options say, which may be one.
    pub(crate) fn start_or_load(&self, options: &Options) -> Result<Asked, BenchError> {
        let policy = (options.nodes > 1).then_some(ForkPolicy::Dynamic);
        self.load(options, policy)
    }

    /// The data on one node, or on several that have rows get to their keys so.
    fn load(&self, options: &Options, policy: Option<ForkPolicy>) -> Result<Asked, BenchError> {
        let config = match (policy, &options.processes) {
            (None, _) => settings(options.heavy_priority),
            (Some(policy), Some(child)) => return self.start(options, policy, child),
            (Some(policy), None) => on_logical_nodes(options, policy),
        };
        self.load_with(config).map(Asked::Logical)
    }

    /// The data in a database of these settings.
    fn load_with(&self, config: Config) -> Result<Database, BenchError> {
        let database = Database::with_config(config);
        let source = vec![Source::path(&self.file)];
        database.load(source, &LoadOptions::default(), &Progress::default())?;
        Ok(database)
    }

    #[cfg(target_os = "linux")]
    fn start(
        &self,
        options: &Options,
        policy: ForkPolicy,
        child: &ChildProgram,
    ) -> Result<Asked, BenchError> {
        let store = self.folder.path().join("store");
        if !store.exists() {
            let source = vec![Source::path(&self.file)];
            let (load, progress) = (LoadOptions::default(), Progress::default());
            Database::create(&store, source, &load, &progress, Config::default())?;
        }
        let processes = Processes::start(&ProcessOptions {
            store: &store,
            folder: self.folder.path(),
            nodes: options.nodes,
            shards: options.shards.count(),
            policy,
            heavy_priority: options.heavy_priority,
            maps_memory: options.fabric != NodeFabric::Tcp,
            child,
        })?;
        Ok(Asked::Processes(processes))
    }

    #[cfg(not(target_os = "linux"))]
    fn start(&self, _: &Options, _: ForkPolicy, _: &ChildProgram) -> Result<Asked, BenchError> {
        Err(BenchError::Child {
            command: "a node".to_owned(),
            reason: "processes are nodes on Linux only".to_owned(),
        })
    }
}

/// The settings of a database whose heavy queries run so, as a server has them.
fn settings(heavy_priority: Option<HeavyPriority>) -> Config {
    heavy_priority.map_or_else(Config::default, |priority| {
        MemoryLimits::default().engine_config(priority)
    })
}

/// The settings of a database on logical nodes.
fn on_logical_nodes(options: &Options, policy: ForkPolicy) -> Config {
    let mut config = settings(options.heavy_priority);
    config.shards = options.shards;
    config.nodes = options.nodes;
    config.node_fabric = options.fabric;
    config.fork_policy = policy;
    config
}

/// The queries that are to be asked, with their names.
fn wanted(only: Option<&str>) -> impl Iterator<Item = (&'static str, &'static str)> {
    let is_wanted = move |name: &str| only.is_none_or(|only| name.contains(only));
    QUERIES.into_iter().filter(move |(name, _)| is_wanted(name))
}

/// The median of each way's medians in milliseconds, of a query with its name and the rows that are right.
fn medians<const WAYS: usize>(
    (name, text, rows): (&str, &str, u64),
    ways: [(&Database, &'static str); WAYS],
    runs: u32,
) -> Result<[f64; WAYS], BenchError> {
    let mut medians = ways.map(|_| Vec::with_capacity(ROUNDS));
    for _ in 0..ROUNDS {
        for ((database, way), medians) in ways.iter().zip(&mut medians) {
            let what = (name, *way, rows);
            let timing = run::timed(what, runs, || run::as_ids(database, text, 1))?;
            medians.push(timing.median_ms);
        }
    }
    Ok(medians.map(|mut medians| {
        medians.sort_unstable_by(f64::total_cmp);
        medians[ROUNDS / 2]
    }))
}

/// Measures the ways in which rows get to their keys.
///
/// # Errors
/// Any [`BenchError`]; [`BenchError::RowsDiffer`] means a wrong answer.
pub fn measure(options: &Options, mut note: impl FnMut(&str)) -> Result<NodesReport, BenchError> {
    note("generating the data");
    let file = data::lubm_file(&options.folder, Lubm::new(options.universities, 0))?;
    let places = Places::of(file.path.clone())?;
    let mut load = |policy: Option<ForkPolicy>| {
        note(&format!("loading, {}", way(policy)));
        places.load(options, policy)
    };
    let one = load(None)?;
    let dynamic = load(Some(ForkPolicy::Dynamic))?;
    let in_place = load(Some(ForkPolicy::InPlace))?;
    let fork_join = load(Some(ForkPolicy::ForkJoin))?;
    let [one, dynamic, in_place, fork_join] =
        [&one, &dynamic, &in_place, &fork_join].map(Asked::database);
    let mut figures = Vec::with_capacity(QUERIES.len());
    for (name, text) in wanted(options.only.as_deref()) {
        note(name);
        let rows = run::as_ids(one, text, 1)?.rows;
        let ways = [
            (one, way(None)),
            (dynamic, way(Some(ForkPolicy::Dynamic))),
            (in_place, way(Some(ForkPolicy::InPlace))),
            (fork_join, way(Some(ForkPolicy::ForkJoin))),
        ];
        let [one_ms, dynamic_ms, in_place_ms, fork_join_ms] =
            medians((name, text, rows), ways, options.runs)?;
        figures.push(NodesFigures {
            name: name.to_owned(),
            rows,
            one_ms,
            dynamic_ms,
            in_place_ms,
            fork_join_ms,
            dynamic: traffic(dynamic, text)?,
            in_place: traffic(in_place, text)?,
            fork_join: traffic(fork_join, text)?,
        });
    }
    Ok(NodesReport {
        machine: Machine::here(),
        universities: options.universities,
        nodes: options.nodes,
        shards: options.shards.count(),
        fabric: reached(options.fabric),
        are_processes: options.processes.is_some(),
        figures,
    })
}

fn way(policy: Option<ForkPolicy>) -> &'static str {
    match policy {
        None => "on one node",
        Some(ForkPolicy::Dynamic) => "on several nodes",
        Some(ForkPolicy::InPlace) => "in place on several nodes",
        Some(ForkPolicy::ForkJoin) => "by fork-join on several nodes",
    }
}

/// How nodes reach each other's memory, in words.
pub(crate) fn reached(by: NodeFabric) -> &'static str {
    match by {
        NodeFabric::Local => "read by copying",
        NodeFabric::SharedMemory => "read as shared memory of processes",
        NodeFabric::Tcp => "read over TCP",
    }
}

/// What goes to other nodes in one run.
fn traffic(database: &Database, text: &str) -> Result<Traffic, BenchError> {
    let before = database.remote_reads();
    let (_, forked) = run::forked(database, text, QueryOptions::default())?;
    let reads = database.remote_reads().since(before);
    Ok(Traffic {
        sub_queries: forked.sub_queries,
        rows: forked.rows,
        bytes: forked.bytes,
        reads: reads.reads,
        read_bytes: reads.bytes,
        read_batches: reads.batches,
        calls: reads.calls,
        messages: reads.messages,
        message_bytes: reads.message_bytes,
    })
}

impl Display for NodesReport {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self {
            universities,
            nodes,
            shards,
            fabric,
            are_processes,
            ..
        } = self;
        let kind = match are_processes {
            true => "nodes, each a process, ",
            false => "logical nodes of this process, ",
        };
        writeln!(f, "{}", self.machine)?;
        writeln!(
            f,
            "LUBM({universities}), {shards} shards on {nodes} {kind}whose memory \
             is {fabric}; one thread reads, medians in ms\n"
        )?;
        let mut times = Table::new([
            "query",
            "rows",
            "1 node",
            "dynamic",
            "in place",
            "fork-join",
            "dynamic/better",
        ]);
        for figures in &self.figures {
            times.row([
                figures.name.clone(),
                figures.rows.to_string(),
                millis(figures.one_ms),
                millis(figures.dynamic_ms),
                millis(figures.in_place_ms),
                millis(figures.fork_join_ms),
                format!("{:.2}", figures.against_better()),
            ]);
        }
        writeln!(f, "{times}")?;
        let ways = self.figures.iter().flat_map(|figures| {
            [
                (&figures.name, "dynamic", figures.dynamic),
                (&figures.name, "in place", figures.in_place),
                (&figures.name, "fork-join", figures.fork_join),
            ]
        });
        write!(f, "{}", traffic_table(ways))
    }
}

/// What went for queries, by their names, in each of several ways.
fn traffic_table<'a>(sent: impl Iterator<Item = (&'a String, &'a str, Traffic)>) -> Table {
    let mut table = Table::new([
        "query",
        "",
        "sub-queries",
        "rows sent",
        "kB sent",
        "reads",
        "kB read",
        "batches",
        "calls",
        "messages",
        "kB in them",
    ]);
    for (name, way, sent) in sent {
        table.row([
            name.clone(),
            way.to_owned(),
            sent.sub_queries.to_string(),
            sent.rows.to_string(),
            (sent.bytes / 1000).to_string(),
            sent.reads.to_string(),
            (sent.read_bytes / 1000).to_string(),
            sent.read_batches.to_string(),
            sent.calls.to_string(),
            sent.messages.to_string(),
            (sent.message_bytes / 1000).to_string(),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_ways_give_the_same_rows_and_only_forks_send_some() {
        let folder = tempfile::tempdir().unwrap();
        let options = Options {
            universities: 1,
            folder: folder.path().to_owned(),
            nodes: 3,
            shards: Shards::new(8).unwrap(),
            fabric: NodeFabric::SharedMemory,
            processes: None,
            heavy_priority: None,
            only: None,
            runs: 1,
        };
        let report = measure(&options, |_| ()).unwrap();
        assert_eq!(report.figures.len(), QUERIES.len());
        let sent = report.figures.iter().map(|query| query.fork_join.rows);
        assert!(sent.sum::<u64>() > 0);
        let read = report.figures.iter().map(|query| query.in_place.reads);
        assert!(read.sum::<u64>() > 0);
        let text = report.to_string();
        assert!(text.contains("8 shards on 3 logical nodes"), "{text}");
    }
}
