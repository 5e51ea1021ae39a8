//! What does it cost that several processes load the same file together, each its part of the store, instead of one?
//!
//! All share the cores and the device of one machine: what is seen is the work that is done beside the load of one
//! process, what travels, and how much memory and how many bytes of files the parts take together.

mod child;

use std::fmt::{self, Display, Formatter};
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Instant;

use jindou_datagen::lubm::Lubm;
use jindou_engine::Shards;
use serde::Serialize;

pub use self::child::child;
use self::child::{Made, TASK};
use crate::child::{ChildProgram, list_of_nodes};
use crate::data::{self, DataFile};
use crate::machine::Machine;
use crate::store_folder::StoreFolder;
use crate::table::{Table, bytes, thousands};
use crate::{BenchError, run};

/// What to measure.
#[derive(Debug, Clone)]
pub struct Options {
    /// Universities of the data; its seed is 0.
    pub universities: u32,
    /// Where the data's file is kept, and stores for the time of the measurement.
    pub folder: PathBuf,
    /// Processes that load together.
    pub nodes: u32,
    /// Virtual shards of the store.
    pub shards: Shards,
    /// How often each way is measured, by turns; the median counts.
    pub rounds: usize,
    /// What is started for each process.
    pub child: ChildProgram,
}

/// What was measured.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct LoadReport {
    /// Where.
    pub machine: Machine,
    /// Universities of the data.
    pub universities: u32,
    /// Statements of the file, repeats included.
    pub statements: u64,
    /// Different ones.
    pub triples: u64,
    /// One process, and then nodes.
    pub ways: Vec<Way>,
}

/// A way to load, by the median of its rounds.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Way {
    /// Processes.
    pub processes: u32,
    /// From the first start to the last end.
    pub seconds: f64,
    /// Processor time of all.
    pub processor_seconds: f64,
    /// The most memory that one was resident with.
    pub most_peak_bytes: u64,
    /// Of all together, as if all had it at the same time.
    pub peak_bytes: u64,
    /// Files of the store, or of all parts.
    pub file_bytes: u64,
    /// What went from one process to another.
    pub sent_bytes: u64,
}

/// Loads LUBM in both ways and compares.
///
/// # Errors
/// What keeps a process from loading, and [`BenchError::RowsDiffer`] where they come to different numbers of triples.
pub fn measure(options: &Options, note: impl Fn(&str)) -> Result<LoadReport, BenchError> {
    note("generating the data, unless it is there");
    let file = data::lubm_file(&options.folder, Lubm::new(options.universities, 0))?;
    let mut ways: [Vec<Way>; 2] = Default::default();
    for round in 0..options.rounds {
        for (way, processes) in ways.iter_mut().zip([1, options.nodes]) {
            note(&format!("round {}: {processes} processes", round + 1));
            way.push(load(options, &file, processes)?);
        }
    }
    let median = |mut rounds: Vec<Way>| {
        rounds.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
        rounds.swap_remove(rounds.len() / 2)
    };
    Ok(LoadReport {
        machine: Machine::here(),
        universities: options.universities,
        statements: file.counts.statements(),
        triples: file.counts.distinct(),
        ways: ways.into_iter().map(median).collect(),
    })
}

/// Loads in one process, or in several, each of which makes its part.
fn load(options: &Options, file: &DataFile, processes: u32) -> Result<Way, BenchError> {
    let folder = StoreFolder::new(&options.folder, "together");
    fs::create_dir_all(folder.path()).map_err(BenchError::io(folder.path()))?;
    let list = folder.path().join("nodes.toml");
    fs::write(
        &list,
        list_of_nodes(processes, options.shards.count(), name)?,
    )
    .map_err(BenchError::io(&list))?;
    let begun = Instant::now();
    let made: Vec<Result<Made, BenchError>> = thread::scope(|scope| {
        let nodes: Vec<_> = (0..processes)
            .map(|number| {
                let place = folder.path().join(name(number));
                let arguments = [
                    TASK.into(),
                    file.path.clone().into(),
                    place.into(),
                    list.clone().into(),
                    name(number).into(),
                    (processes > 1).to_string().into(),
                ];
                scope.spawn(move || options.child.run_with(&arguments))
            })
            .collect();
        let joined = nodes.into_iter().map(|node| node.join());
        joined.map(|made| made.expect("no thread panics")).collect()
    });
    let seconds = begun.elapsed().as_secs_f64();
    let made: Vec<Made> = made.into_iter().collect::<Result<_, _>>()?;
    for one in &made {
        run::check_rows("triples", "loaded", file.counts.distinct(), one.triples)?;
    }
    Ok(Way {
        processes,
        seconds,
        processor_seconds: made.iter().map(|one| one.processor_seconds).sum(),
        most_peak_bytes: made.iter().map(|one| one.peak_bytes).max().unwrap_or(0),
        peak_bytes: made.iter().map(|one| one.peak_bytes).sum(),
        file_bytes: made.iter().map(|one| one.file_bytes).sum(),
        sent_bytes: made.iter().map(|one| one.sent_bytes).sum(),
    })
}

fn name(number: u32) -> String {
    format!("n{number}")
}

impl LoadReport {
    /// Statements a second of nodes together to those of one process, and bytes of their files.
    #[must_use]
    pub fn ratios(&self) -> Option<(f64, f64)> {
        let [one, nodes] = self.ways.as_slice() else {
            return None;
        };
        let bytes = nodes.file_bytes as f64 / one.file_bytes as f64;
        Some((one.seconds / nodes.seconds, bytes))
    }
}

impl Display for LoadReport {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.machine)?;
        writeln!(
            f,
            "LUBM({}): {} statements, {} different\n",
            self.universities,
            thousands(self.statements),
            thousands(self.triples)
        )?;
        let columns = [
            "processes",
            "seconds",
            "statements/s",
            "CPU seconds",
            "peak of one",
            "peaks together",
            "files",
            "sent",
        ];
        let mut table = Table::new(columns);
        for way in &self.ways {
            table.row([
                way.processes.to_string(),
                format!("{:.2}", way.seconds),
                thousands((self.statements as f64 / way.seconds) as u64),
                format!("{:.2}", way.processor_seconds),
                bytes(way.most_peak_bytes),
                bytes(way.peak_bytes),
                bytes(way.file_bytes),
                bytes(way.sent_bytes),
            ]);
        }
        write!(f, "{table}")?;
        if let Some((rate, files)) = self.ratios() {
            writeln!(
                f,
                "together at {rate:.2} of the rate of one, with {files:.2} times its files"
            )?;
        }
        Ok(())
    }
}

/// The bytes of all files in a folder.
fn bytes_of(folder: &Path) -> Result<u64, BenchError> {
    let mut sum = 0;
    for entry in fs::read_dir(folder).map_err(BenchError::io(folder))? {
        let entry = entry.and_then(|entry| entry.metadata());
        sum += entry.map_err(BenchError::io(folder))?.len();
    }
    Ok(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_compares_both_ways() {
        let way = |processes, seconds, file_bytes| Way {
            processes,
            seconds,
            processor_seconds: 2.0 * seconds,
            most_peak_bytes: 1 << 20,
            peak_bytes: 3 << 20,
            file_bytes,
            sent_bytes: 0,
        };
        let report = LoadReport {
            machine: Machine::here(),
            universities: 1,
            statements: 1_000_000,
            triples: 900_000,
            ways: vec![way(1, 4.0, 100), way(3, 5.0, 115)],
        };
        assert_eq!(report.ratios(), Some((0.8, 1.15)));
        let text = report.to_string();
        assert!(
            text.contains("together at 0.80 of the rate of one, with 1.15 times"),
            "{text}"
        );
        assert!(
            text.contains("250,000") && text.contains("200,000"),
            "{text}"
        );
    }
}
