//! How fast are loads of more data than memory, do they keep to their limit, and what do they leave when they are
//! killed?
//!
//! Each load is of a process of its own, which generates the graph and loads it meanwhile by a pipe, into a store that
//! is not there yet: by turns *in memory*, by the ordinary loader, and *within* a given memory. Loads within are then
//! killed at moments spread over the time that one takes, all at the same place; what each leaves is looked at, and
//! at the end one is let be.

mod kills;
mod report;

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::BenchError;
use crate::child::{ChildProgram, ChildReport, Piped, Task};
use crate::data;
use crate::generated::Generated;
use crate::machine::Machine;
use crate::store_folder::StoreFolder;

pub use kills::{AfterKills, Found, Kill};
pub use report::{BulkReport, GraphFigures, Load, Outcome, Verdict};

/// Time between two looks at a child and its folder.
const LOOK: Duration = Duration::from_millis(20);

/// A way to load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Way {
    /// All of it is held until the store is written.
    InMemory,
    /// What is beyond the limit waits in files.
    Within,
}

/// What to measure.
#[derive(Debug, Clone)]
pub struct Options {
    /// What is loaded, one after the other.
    pub graphs: Vec<Generated>,
    /// In which ways, by turns.
    pub ways: Vec<Way>,
    /// What a load within may take, in bytes.
    pub memory_bytes: u64,
    /// Threads of a load; the generator has one beside them.
    pub threads: usize,
    /// How often each way is measured.
    pub turns: u32,
    /// How many loads within are killed.
    pub kills: u32,
    /// Where stores are made for the time of the measurement.
    pub folder: PathBuf,
    /// How to start a process that hands its arguments to [`child::main`](crate::child::main).
    pub child: ChildProgram,
}

/// Measures; `note` hears what is being done, a few words at a time. Holds nothing of the graphs.
///
/// # Errors
/// What keeps a load from its end. Another number of triples than was generated, and what a kill has left, are figures:
/// see [`BulkReport::verdicts`].
pub fn measure(options: &Options, note: impl Fn(&str)) -> Result<BulkReport, BenchError> {
    fs::create_dir_all(&options.folder).map_err(BenchError::io(&options.folder))?;
    let graphs = options.graphs.iter();
    let graphs = graphs.map(|graph| measure_graph(options, *graph, &note));
    Ok(BulkReport {
        machine: Machine::here(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        optimized: !cfg!(debug_assertions),
        memory_bytes: options.memory_bytes,
        threads: options.threads,
        graphs: graphs.collect::<Result<_, _>>()?,
    })
}

fn measure_graph(
    options: &Options,
    graph: Generated,
    note: &impl Fn(&str),
) -> Result<GraphFigures, BenchError> {
    let triples = graph.triples()?;
    let mut loads = Vec::new();
    for turn in 1..=options.turns {
        for way in &options.ways {
            note(&format!("{graph}, turn {turn}: {way}"));
            loads.push(load(options, graph, *way)?);
        }
    }
    let mut figures = GraphFigures {
        name: graph.to_string(),
        triples,
        loads,
        kills: Vec::new(),
        after_kills: None,
    };
    let within = figures.median(Way::Within).map(|load| load.seconds);
    if let (Some(seconds), 1..) = (within, options.kills) {
        let series = kills::Series {
            options,
            graph,
            triples,
            seconds,
        };
        let (kills, after) = series.run(note)?;
        figures.kills = kills;
        figures.after_kills = Some(after);
    }
    Ok(figures)
}

fn task(options: &Options, graph: Generated, way: Way, location: &Path) -> Task {
    Task::Pipe(Piped {
        graph,
        location: location.to_owned(),
        threads: options.threads,
        memory: match way {
            Way::InMemory => None,
            Way::Within => Some(options.memory_bytes),
        },
    })
}

/// One load, from its start to its end.
fn load(options: &Options, graph: Generated, way: Way) -> Result<Load, BenchError> {
    let folder = StoreFolder::new(&options.folder, "bulk");
    let mut child = options
        .child
        .start(&task(options, graph, way, folder.path()))?;
    let mut most_disk_bytes = 0;
    while child.is_at_work()? {
        most_disk_bytes = data::bytes_if_there(folder.path())?.max(most_disk_bytes);
        thread::sleep(LOOK);
    }
    let (report, steps): (ChildReport, _) = child.finish()?;
    let store_bytes = data::folder_bytes(folder.path())?;
    Ok(Load {
        way,
        seconds: report.seconds,
        triples: report.triples,
        text_bytes: report.text_bytes,
        peak_bytes: report.memory.peak_bytes,
        most_disk_bytes: most_disk_bytes.max(store_bytes),
        store_bytes,
        steps,
    })
}
