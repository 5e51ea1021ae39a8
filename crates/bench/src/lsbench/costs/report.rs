//! What does the measurement of costs say, and how is it printed?

use std::fmt::{self, Display, Formatter};

use serde::{Deserialize, Serialize};

use super::{HeldSnapshots, OnThreads, Setting, Staleness, StreamAlone};
use crate::machine::Machine;
use crate::percentiles::Percentiles;
use crate::table::{Table, bytes, thousands};

/// All figures; those of parts that were not asked for are empty. `Display` is aligned tables, serde gives
/// JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CostsReport {
    /// Where it was measured.
    pub machine: Machine,
    /// Version of this program.
    pub version: String,
    /// Whether the program was built with optimization; figures without it say little.
    pub optimized: bool,
    /// Users of the social graph, whose seed is 0.
    pub users: u32,
    /// Tuples a second of all streams.
    pub rate: f64,
    /// Seconds of the streams in each run; at most ten of those at the pace of the clock.
    pub seconds: u64,
    /// The range of windows, in milliseconds.
    pub range_ms: u64,
    /// How far they slide each time, in milliseconds.
    pub step_ms: u64,
    /// With and without what makes queries fast, or durable.
    pub settings: Vec<Setting>,
    /// Each stream alone.
    pub streams: Vec<StreamAlone>,
    /// Until one-shot queries see a tuple, by the interval of batches.
    pub staleness: Vec<Staleness>,
    /// Memory by snapshots held.
    pub snapshots: Vec<HeldSnapshots>,
    /// Evaluations by threads.
    pub threads: Vec<OnThreads>,
}

impl Display for CostsReport {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.machine)?;
        writeln!(
            f,
            "LSBench of {} users; {} tuples/s for {} s; windows of {} ms by {} ms",
            thousands(u64::from(self.users)),
            thousands(self.rate as u64),
            self.seconds,
            self.range_ms,
            self.step_ms,
        )?;
        self.write_settings(f)?;
        self.write_streams(f)?;
        self.write_staleness(f)?;
        self.write_snapshots(f)?;
        self.write_threads(f)
    }
}

fn ms(us: f64) -> String {
    format!("{:.2}", us / 1e3)
}

impl CostsReport {
    fn write_settings(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Some(first) = self.settings.first() else {
            return Ok(());
        };
        let names = first
            .queries
            .iter()
            .map(|query| format!("{}, us", query.name));
        let headings = ["setting".to_owned()]
            .into_iter()
            .chain(names)
            .chain(["push, ms", "p99", "complete, ms", "p99", "all, s"].map(str::to_owned));
        let mut table = Table::new(headings);
        for setting in &self.settings {
            // Those that are evaluated together share their time, which medians of each do not show.
            let each = setting.queries.iter().map(|query| {
                format!(
                    "{:.1}",
                    query.seconds * 1e6 / query.executions.max(1) as f64
                )
            });
            let batches = [
                ms(setting.pushing.median_us),
                ms(setting.pushing.p99_us),
                ms(setting.completing.median_us),
                ms(setting.completing.p99_us),
                format!("{:.2}", setting.whole_seconds),
            ];
            table.row(
                [setting.name.clone()]
                    .into_iter()
                    .chain(each)
                    .chain(batches),
            );
        }
        writeln!(
            f,
            "\nan evaluation in the mean; a batch of 100 ms of all streams: pushed, and completed with its \
             evaluations, in the median\n"
        )?;
        write!(f, "{table}")
    }

    fn write_streams(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if self.streams.is_empty() {
            return Ok(());
        }
        let mut table = Table::new([
            "stream alone",
            "tuples",
            "push, ms",
            "p99",
            "complete, ms",
            "p99",
            "text, bytes",
            "stored",
            "in a window",
        ]);
        for stream in &self.streams {
            let stored = stream.stored_bytes_a_tuple;
            table.row([
                stream.name.clone(),
                thousands(stream.tuples),
                ms(stream.pushing.median_us),
                ms(stream.pushing.p99_us),
                ms(stream.completing.median_us),
                ms(stream.completing.p99_us),
                format!("{:.1}", stream.text_bytes_a_tuple),
                stored.map_or("-".to_owned(), |bytes| format!("{bytes:.1}")),
                format!("{:.1}", stream.window_bytes_a_tuple),
            ]);
        }
        writeln!(
            f,
            "\na batch of 100 ms of one stream, and bytes a tuple: of its line, in the stored graph with the \
             dictionary, and in a window beside that\n"
        )?;
        write!(f, "{table}")
    }

    fn write_staleness(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if self.staleness.is_empty() {
            return Ok(());
        }
        let mut table = Table::new([
            "interval, ms",
            "after the push, median ms",
            "p99",
            "max",
            "after the batch is complete, median ms",
            "p99",
            "max",
        ]);
        for one in &self.staleness {
            let three = |times: &Percentiles| [times.median_us, times.p99_us, times.max_us].map(ms);
            let interval = [one.interval_ms.to_string()].into_iter();
            let figures = three(&one.from_push)
                .into_iter()
                .chain(three(&one.from_completion));
            table.row(interval.chain(figures));
        }
        writeln!(
            f,
            "\nuntil a one-shot query finds a tuple, by the interval of batches\n"
        )?;
        write!(f, "{table}")
    }

    fn write_snapshots(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if self.snapshots.is_empty() {
            return Ok(());
        }
        let mut table = Table::new(["snapshots held", "memory", "the latest of it"]);
        for one in &self.snapshots {
            table.row([
                one.held.to_string(),
                bytes(one.grown_bytes),
                bytes(one.data_bytes),
            ]);
        }
        writeln!(
            f,
            "\nmemory by old snapshots that readers hold, all merged between them\n"
        )?;
        write!(f, "{table}")
    }

    fn write_threads(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if self.threads.is_empty() {
            return Ok(());
        }
        let mut table = Table::new(["query", "threads", "median, ms", "p99, ms"]);
        for one in &self.threads {
            for (name, times) in &one.queries {
                table.row([
                    name.clone(),
                    one.threads.to_string(),
                    ms(times.median_us),
                    ms(times.p99_us),
                ]);
            }
        }
        writeln!(f, "\nevaluations by threads that one may use\n")?;
        write!(f, "{table}")
    }
}
