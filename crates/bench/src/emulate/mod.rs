//! How many queries a second do clients get from one node and from several, and what does one heavy query
//! that always runs do to them?
//!
//! The mixed workload of the Wukong paper (section 7.5): six classes of light queries, each about a constant
//! that is drawn among all entities of its kind, as frequent as the reciprocals of their latencies. The same
//! clients ask one node, and each number of nodes: alone, beside one client of heavy queries that each node runs when a
//! core is idle, and beside one whose parts have the priority of all. Logical
//! nodes share this process, and a query enters at one after the other; of processes each has its own
//! clients. All share the cores of one machine.

mod clients;
mod report;

use std::path::PathBuf;
use std::time::Duration;

use jindou_datagen::lubm::{LightClass, LightLoad, Lubm};
use jindou_engine::{Database, NodeFabric, Shards};
use jindou_server::HeavyPriority;
use serde::{Deserialize, Serialize};

use self::clients::CLASSES;
pub(crate) use self::clients::{Load, Waits};
pub use self::report::{ClassLatency, EmulateReport, EmulateRun};
use crate::child::ChildProgram;
use crate::machine::Machine;
use crate::nodes::Places;
use crate::percentiles::Percentiles;
use crate::timing::Timing;
use crate::{BenchError, data, nodes, run};

/// What to measure.
#[derive(Debug, Clone)]
pub struct Options {
    /// Universities of the data; its seed is 0.
    pub universities: u32,
    /// Where the data's file is kept.
    pub folder: PathBuf,
    /// Numbers of nodes.
    pub nodes: Vec<u32>,
    /// Virtual shards that several nodes hold.
    pub shards: Shards,
    /// How the nodes reach each other's memory.
    pub fabric: NodeFabric,
    /// Nodes are processes, started so; otherwise they share this one.
    pub processes: Option<ChildProgram>,
    /// Clients of light queries, all together.
    pub clients: u32,
    /// How long they ask, each time.
    pub length: Duration,
}

/// What light queries have beside them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Beside {
    /// Nothing.
    Nothing,
    /// A heavy query, which all nodes run as one: when a core is idle.
    Classes,
    /// A heavy query that is run as any other.
    Same,
}

impl Beside {
    const ALL: [Self; 3] = [Self::Nothing, Self::Classes, Self::Same];

    /// When the threads of the heavy query run.
    fn priority(self) -> Option<HeavyPriority> {
        match self {
            Self::Nothing => None,
            Self::Classes => Some(HeavyPriority::Idle),
            Self::Same => Some(HeavyPriority::Same),
        }
    }
}

/// Queries by which the latency of a class is known.
const ALONE: usize = 2_000;
/// The sum of all weights, nearly.
const WEIGHTS: f64 = 1e6;

/// Measures.
///
/// # Errors
/// Any [`BenchError`].
pub fn measure(options: &Options, mut note: impl FnMut(&str)) -> Result<EmulateReport, BenchError> {
    note("generating the data");
    let data = Lubm::new(options.universities, 0);
    let file = data::lubm_file(&options.folder, data)?;
    let places = Places::of(file.path)?;
    let mut classes = None;
    let mut runs = Vec::new();
    for &nodes in &options.nodes {
        for heavy in Beside::ALL {
            note(&format!("loading, {nodes} nodes"));
            let mut asked = places.start_or_load(&nodes_options(options, nodes, heavy))?;
            let alone = match classes {
                Some(alone) => alone,
                None => *classes.insert(alone(asked.database(), data)?),
            };
            note(&format!("{nodes} nodes{}", heavy.text()));
            let load = Load {
                universities: options.universities,
                weights: weights(&alone),
                clients: options.clients,
                first: 0,
                heavy,
                millis: u64::try_from(options.length.as_millis()).unwrap_or(u64::MAX),
            };
            runs.push(run_of(nodes, heavy, asked.ask(&load)?));
        }
    }
    let alone = classes.unwrap_or_default();
    let shares = weights(&alone).map(f64::from);
    let sum: f64 = shares.iter().sum();
    let named = LightClass::ALL.iter().zip(alone.iter().zip(shares));
    Ok(EmulateReport {
        machine: Machine::here(),
        universities: options.universities,
        shards: options.shards.count(),
        fabric: nodes::reached(options.fabric).to_owned(),
        are_processes: options.processes.is_some(),
        clients: options.clients,
        seconds: options.length.as_secs_f64(),
        classes: named
            .map(|(class, (ms, share))| ClassLatency {
                name: class.name().to_owned(),
                alone_us: ms * 1e3,
                share: share / sum,
            })
            .collect(),
        runs,
    })
}

/// The median of each class in milliseconds, one query at a time.
fn alone(database: &Database, data: Lubm) -> Result<[f64; CLASSES], BenchError> {
    let mut medians = [0.0; CLASSES];
    for (class, median) in LightClass::ALL.into_iter().zip(&mut medians) {
        let mut load = LightLoad::over(data, 0)?;
        let drawn: Vec<String> = (0..ALONE).map(|_| load.draw_of(class).text).collect();
        let mut times = Vec::with_capacity(ALONE);
        // Once more than is timed: plans are made, and memory is met.
        for text in drawn.iter().take(ALONE / 10).chain(&drawn) {
            times.push(run::once(|| run::as_ids(database, text, 1))?.1);
        }
        *median = Timing::of(times.split_off(ALONE / 10)).median_ms;
    }
    Ok(medians)
}

/// By the reciprocals of latencies.
fn weights(alone: &[f64; CLASSES]) -> [u32; CLASSES] {
    let reciprocals = alone.map(|ms| 1.0 / ms.max(1e-6));
    let sum: f64 = reciprocals.iter().sum();
    reciprocals.map(|one| (one / sum * WEIGHTS).round().max(1.0) as u32)
}

fn nodes_options(options: &Options, nodes: u32, heavy: Beside) -> nodes::Options {
    nodes::Options {
        universities: options.universities,
        folder: options.folder.clone(),
        nodes,
        shards: options.shards,
        fabric: options.fabric,
        processes: options.processes.clone().filter(|_| nodes > 1),
        heavy_priority: Some(heavy.priority().unwrap_or_default()),
        only: None,
        runs: 1,
    }
}

/// What one run gave, at all nodes.
fn run_of(nodes: u32, beside: Beside, waits: Vec<Waits>) -> EmulateRun {
    let mut classes: [Vec<Duration>; CLASSES] = Default::default();
    let (mut queries, mut queries_per_second) = (0, 0.0);
    let mut heavy = Vec::new();
    for node in waits {
        let count: usize = node.classes.iter().map(Vec::len).sum();
        queries += count as u64;
        queries_per_second += count as f64 / node.seconds;
        for (all, more) in classes.iter_mut().zip(&node.classes) {
            all.extend(
                more.iter()
                    .map(|nanos| Duration::from_nanos(u64::from(*nanos))),
            );
        }
        heavy.extend(node.heavy.into_iter().map(Duration::from_nanos));
    }
    EmulateRun {
        nodes,
        beside,
        queries,
        queries_per_second,
        classes: classes.into_iter().map(Percentiles::of).collect(),
        heavy: Percentiles::of(heavy),
    }
}
