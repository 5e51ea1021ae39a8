//! How does each query grow with data, threads and nodes, and what would bound it on many machines?
//!
//! The seven queries of LUBM on one node over more and more data, on more and more threads, and on several nodes, which
//! share the cores of one machine. What they read of other nodes and send to them is counted there, and [`model`] says
//! from these counts what 8 and 64 machines would take.

pub mod model;
mod report;

use std::path::PathBuf;

use jindou_datagen::lubm::{Lubm, QUERIES};
use jindou_engine::{NodeFabric, Shards};

use self::model::{Counted, Link, Model};
pub use self::report::{DataPoint, ScaleReport, ThreadPoint};
use crate::machine::Machine;
use crate::nodes::{self, NodesFigures};
use crate::{BenchError, child, data, run};

/// What to measure.
#[derive(Debug, Clone)]
pub struct Options {
    /// Universities of the data; its seed is 0. Threads are measured over the largest, nodes over the smallest.
    pub universities: Vec<u32>,
    /// Where the data's files are kept.
    pub folder: PathBuf,
    /// Numbers of threads.
    pub threads: Vec<usize>,
    /// Numbers of logical nodes.
    pub nodes: Vec<u32>,
    /// Virtual shards that these hold.
    pub shards: Shards,
    /// Timed runs of each query.
    pub runs: u32,
    /// What the machines are to be connected by.
    pub link: Link,
    /// Numbers of machines for which times are predicted.
    pub machines: Vec<u32>,
}

/// Measures.
///
/// # Errors
/// Any [`BenchError`].
pub fn measure(options: &Options, mut note: impl FnMut(&str)) -> Result<ScaleReport, BenchError> {
    let mut by_data = Vec::new();
    let mut by_threads = Vec::new();
    let largest = options.universities.iter().max();
    for universities in &options.universities {
        note(&format!("LUBM({universities})"));
        let file = data::lubm_file(&options.folder, Lubm::new(*universities, 0))?;
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let database = child::load(&file.path, cores)?;
        let triples = database.statistics().triples;
        for (name, text) in QUERIES {
            let rows = run::as_ids(&database, text, 1)?.rows;
            let mut medians = Vec::new();
            for threads in &options.threads {
                if *threads > 1 && Some(universities) != largest {
                    continue;
                }
                let what = (name, "as ids", rows);
                let timing = run::timed(what, options.runs, || {
                    run::as_ids(&database, text, *threads)
                })?;
                medians.push((*threads, timing.median_ms));
            }
            by_data.push(DataPoint {
                universities: *universities,
                triples,
                query: name.to_owned(),
                rows,
                median_ms: medians.first().map_or(f64::NAN, |(_, ms)| *ms),
            });
            if Some(universities) == largest {
                by_threads.extend(medians.iter().map(|(threads, median_ms)| ThreadPoint {
                    query: name.to_owned(),
                    threads: *threads,
                    median_ms: *median_ms,
                }));
            }
        }
    }
    let by_nodes = on_nodes(options, &mut note)?;
    let counted = by_nodes.last().map_or(&[][..], |(_, figures)| figures);
    let nodes = by_nodes.last().map_or(1, |(nodes, _)| *nodes);
    let counted: Vec<Counted> = counted
        .iter()
        .map(|figures| Counted::of(figures, nodes))
        .collect();
    let model = Model::fitted(&counted, options.link);
    Ok(ScaleReport {
        machine: Machine::here(),
        predictions: model.predict(&counted, &options.machines),
        model,
        by_data,
        by_threads,
        nodes_universities: options.universities.iter().min().copied().unwrap_or(0),
        by_nodes,
    })
}

/// The figures of each number of nodes.
fn on_nodes(
    options: &Options,
    note: &mut impl FnMut(&str),
) -> Result<Vec<(u32, Vec<NodesFigures>)>, BenchError> {
    let universities = options.universities.iter().min().copied().unwrap_or(1);
    let each = options.nodes.iter().filter(|nodes| **nodes > 1);
    each.map(|nodes| {
        note(&format!("{nodes} nodes"));
        let report = nodes::measure(
            &nodes::Options {
                universities,
                folder: options.folder.clone(),
                nodes: *nodes,
                shards: options.shards,
                fabric: NodeFabric::Local,
                processes: None,
                heavy_priority: None,
                only: None,
                runs: options.runs,
            },
            |_| {},
        )?;
        Ok((*nodes, report.figures))
    })
    .collect()
}
