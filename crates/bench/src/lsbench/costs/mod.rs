//! What does each part of continuous queries cost: what changes with it, and without it?
//!
//! [`measure`] has figures of five kinds. *Settings*: the usual queries without executions for many, without
//! solutions that are kept, with a store in a folder and with durable streams. *Streams*: what a batch of each
//! stream costs alone, and the bytes of a tuple in the stored graph and in windows. *Staleness*: how long after
//! its acknowledgement a tuple is seen by one-shot queries, by the interval of batches. *Snapshots*: the memory
//! of old ones that readers hold. *Threads*: L4 to L6 on one and on two.

mod report;
mod settings;
mod snapshots;
mod staleness;
mod streams;
mod threads;

use std::path::Path;

use jindou_datagen::lsbench::Lsbench;
use serde::{Deserialize, Serialize};

pub use report::CostsReport;
pub use settings::Setting;
pub use snapshots::HeldSnapshots;
pub use staleness::Staleness;
pub use streams::StreamAlone;
pub use threads::OnThreads;

use super::Options;
use crate::BenchError;
use crate::machine::Machine;

/// What is measured beside each other: all of it, or some.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Part {
    /// With and without what makes queries fast or durable.
    Settings,
    /// Each stream alone.
    Streams,
    /// Until one-shot queries see a tuple.
    Staleness,
    /// Old snapshots that readers hold.
    Snapshots,
    /// L4 to L6 on one and two threads.
    Threads,
}

/// Measures some parts, in turn; stores are made in a folder and removed afterwards.
///
/// # Errors
/// As [`super::measure`]; [`BenchError::NotSeen`].
pub fn measure(
    options: &Options,
    wanted: impl Fn(Part) -> bool,
    location: &Path,
    mut note: impl FnMut(&str),
) -> Result<CostsReport, BenchError> {
    let data = Lsbench::new(options.users, 0);
    let mut report = CostsReport {
        machine: Machine::here(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        optimized: !cfg!(debug_assertions),
        users: options.users,
        rate: options.tuples_per_second(),
        seconds: options.seconds,
        range_ms: options.range_ms,
        step_ms: options.step_ms,
        settings: Vec::new(),
        streams: Vec::new(),
        staleness: Vec::new(),
        snapshots: Vec::new(),
        threads: Vec::new(),
    };
    if wanted(Part::Settings) {
        report.settings = settings::measure(&data, options, location, &mut note)?;
    }
    if wanted(Part::Streams) {
        note("streams alone");
        report.streams = streams::measure(&data, options)?;
    }
    if wanted(Part::Staleness) {
        note("staleness");
        report.staleness = staleness::measure(&data, options)?;
    }
    if wanted(Part::Snapshots) {
        note("snapshots");
        report.snapshots = snapshots::measure(&data, options)?;
    }
    if wanted(Part::Threads) {
        note("threads");
        report.threads = threads::measure(&data, options)?;
    }
    Ok(report)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_part_has_its_figures() {
        let folder = tempfile::tempdir().unwrap();
        let options = Options {
            users: 200,
            seconds: 2,
            rate: 0.1,
            selective: 10,
            ..Options::new()
        };
        let report = measure(&options, |_| true, folder.path(), |_| {}).unwrap();
        let left = std::fs::read_dir(folder.path()).unwrap().count();
        assert_eq!(left, 0, "the folders of stores are removed");
        assert_eq!(report.settings.len(), 6);
        let rows = |setting: &Setting| setting.queries.iter().map(|one| one.rows).sum::<u64>();
        let first = &report.settings[0];
        for setting in &report.settings {
            assert_eq!(rows(setting), rows(first), "{setting:?}");
            assert_eq!(setting.failures(), 0, "{setting:?}");
        }
        assert_eq!(report.streams.len(), 5);
        for stream in &report.streams {
            let is_stored = stream.stored_bytes_a_tuple.is_some();
            assert_eq!(is_stored, stream.name != "gps");
            assert!(stream.window_bytes_a_tuple > 0.0, "{stream:?}");
        }
        let intervals: Vec<u32> = report.staleness.iter().map(|one| one.interval_ms).collect();
        assert_eq!(intervals, [10, 100, 1_000]);
        let held: Vec<u32> = report.snapshots.iter().map(|one| one.held).collect();
        assert_eq!(held, [0, 1, 2, 3]);
        let threads: Vec<usize> = report.threads.iter().map(|one| one.threads).collect();
        assert_eq!(threads, [1, 2]);
        assert!(report.to_string().contains("durable streams"), "{report}");
    }
}
