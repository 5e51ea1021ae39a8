//! What does the measurement of mixes say, and how is it printed?

use std::fmt::{self, Display, Formatter};

use serde::{Deserialize, Serialize};

use super::mix::Share;
use crate::machine::Machine;
use crate::percentiles::Percentiles;
use crate::table::{Table, thousands};

/// All figures. `Display` is aligned tables, serde gives JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MixReport {
    /// Where it was measured.
    pub machine: Machine,
    /// Version of this program.
    pub version: String,
    /// Whether the program was built with optimization; figures without it say little.
    pub optimized: bool,
    /// Users of the social graph, whose seed is 0.
    pub users: u32,
    /// Stored triples before the streams began.
    pub stored: u64,
    /// Tuples a second of all streams.
    pub rate: u32,
    /// Seconds of the streams in each run.
    pub seconds: u64,
    /// The range of windows, in milliseconds.
    pub range_ms: u64,
    /// How far they slide each time, in milliseconds.
    pub step_ms: u64,
    /// The mixes.
    pub mixes: Vec<Mix>,
}

/// A mix of classes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Mix {
    /// Its name.
    pub name: String,
    /// The classes.
    pub shares: Vec<Share>,
    /// Runs with more and more queries.
    pub runs: Vec<MixRun>,
}

/// One run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MixRun {
    /// Queries that were registered.
    pub queries: u64,
    /// Tuples pushed.
    pub tuples: u64,
    /// Evaluations.
    pub executions: u64,
    /// Those that failed.
    pub failures: u64,
    /// Results that clients read,
    pub results: u64,
    /// and those that they were too slow for.
    pub missed: u64,
    /// Seconds that pushes and evaluations took on one thread,
    pub whole_seconds: f64,
    /// and beside them the making of the streams.
    pub making_seconds: f64,
    /// Those of the former that were evaluations.
    pub evaluating_seconds: f64,
    /// Seconds of the streams.
    pub streams_seconds: f64,
    /// From when windows were complete until a client had read all that came then.
    pub waits: Option<Percentiles>,
}

impl MixRun {
    /// Executions a second of pushing and evaluating.
    #[must_use]
    pub fn executions_per_second(&self) -> f64 {
        self.executions as f64 / self.whole_seconds.max(1e-9)
    }

    /// A second of the streams takes a second or more.
    #[must_use]
    pub fn is_saturated(&self) -> bool {
        self.whole_seconds >= self.streams_seconds
    }
}

impl Mix {
    /// The most executions a second of all runs that keep pace with their streams.
    #[must_use]
    pub fn throughput(&self) -> Option<f64> {
        let kept = self.runs.iter().filter(|run| !run.is_saturated());
        let rates = kept.map(|run| run.executions as f64 / run.streams_seconds);
        rates.reduce(f64::max)
    }
}

impl Display for MixReport {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.machine)?;
        writeln!(
            f,
            "LSBench of {} users, {} stored triples; {} tuples/s for {} s; windows of {} ms by {} ms; one \
             thread, and four that read results",
            thousands(u64::from(self.users)),
            thousands(self.stored),
            thousands(u64::from(self.rate)),
            self.seconds,
            self.range_ms,
            self.step_ms,
        )?;
        for mix in &self.mixes {
            mix.write(f)?;
        }
        Ok(())
    }
}

impl Mix {
    fn write(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let shares = self.shares.iter().map(|share| {
            format!(
                "{:.2} % {} ({:.1} us alone)",
                share.part * 100.0,
                share.name,
                share.latency_us
            )
        });
        let shares: Vec<String> = shares.collect();
        writeln!(f, "\n{}: {}\n", self.name, shares.join(", "))?;
        let mut table = Table::new([
            "queries",
            "executions",
            "busy",
            "executions/s",
            "us each",
            "to clients, median ms",
            "p99 ms",
            "missed",
        ]);
        for run in &self.runs {
            let waits = run.waits.as_ref();
            let ms = |figure: fn(&Percentiles) -> f64| {
                waits.map_or("-".to_owned(), |waits| {
                    format!("{:.1}", figure(waits) / 1e3)
                })
            };
            let each = run.evaluating_seconds * 1e6 / run.executions.max(1) as f64;
            table.row([
                thousands(run.queries),
                thousands(run.executions),
                format!("{:.0} %", 100.0 * run.whole_seconds / run.streams_seconds),
                thousands(run.executions_per_second() as u64),
                format!("{each:.2}"),
                ms(|waits| waits.median_us),
                ms(|waits| waits.p99_us),
                thousands(run.missed),
            ]);
        }
        write!(f, "{table}")?;
        match self.throughput() {
            Some(rate) => writeln!(
                f,
                "{} executions/s are kept up at the pace of the clock",
                thousands(rate as u64)
            ),
            None => writeln!(f, "no run keeps up with the clock"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Options, mix};

    #[test]
    fn rare_classes_are_in_a_mix_by_the_reciprocals_of_their_latencies() {
        let options = Options {
            users: 200,
            seconds: 1,
            rate: 0.05,
            most_queries: 1_000,
            ..Options::new()
        };
        let report = mix::measure(&options, |_| {}).unwrap();
        assert_eq!(report.mixes.len(), 2);
        for mix in &report.mixes {
            let parts: f64 = mix.shares.iter().map(|share| share.part).sum();
            assert!((parts - 1.0).abs() < 1e-9);
            let products = mix.shares.iter().map(|share| share.part * share.latency_us);
            let products: Vec<f64> = products.collect();
            assert!(
                products
                    .iter()
                    .all(|one| (one / products[0] - 1.0).abs() < 1e-9)
            );
            let run = &mix.runs[0];
            assert!(run.queries >= 998 && run.failures == 0, "{run:?}");
            assert_eq!(run.results + run.missed, run.executions, "{run:?}");
        }
        assert!(report.to_string().contains("L1-L6"), "{report}");
    }
}
