//! What does the measurement of CityBench's queries say, and how is it printed?

use std::fmt::{self, Display, Formatter};

use jindou_engine::ContinuousStatus;
use serde::{Deserialize, Serialize};

use crate::machine::Machine;
use crate::table::{Table, thousands};

/// All figures. `Display` is aligned tables, serde gives JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CitybenchReport {
    /// Where it was measured.
    pub machine: Machine,
    /// Version of this program.
    pub version: String,
    /// Whether the program was built with optimization; figures without it say little.
    pub optimized: bool,
    /// Stored triples, graph by graph.
    pub stored: u64,
    /// Streams that the queries read.
    pub streams: u64,
    /// Seconds of the streams.
    pub seconds: u64,
    /// Tuples pushed.
    pub tuples: u64,
    /// Time that all of it took.
    pub whole_seconds: f64,
    /// The queries.
    pub queries: Vec<CityQuery>,
}

/// One query.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CityQuery {
    /// Its name.
    pub name: String,
    /// Instants at which it was evaluated.
    pub instants: u64,
    /// Evaluations that failed.
    pub failures: u64,
    /// Rows of all instants.
    pub rows: u64,
    /// Time of all evaluations.
    pub seconds: f64,
    /// Microseconds of an evaluation, the median,
    pub median_us: f64,
    /// and the 99th percentile.
    pub p99_us: f64,
}

impl CityQuery {
    pub(super) fn of(status: &ContinuousStatus) -> Self {
        Self {
            name: status.name.clone(),
            instants: status.executions,
            failures: status.failures,
            rows: status.rows,
            seconds: status.seconds,
            median_us: status.median_us,
            p99_us: status.p99_us,
        }
    }
}

impl CitybenchReport {
    /// The geometric mean of the queries' medians, in microseconds; none if one was never evaluated.
    #[must_use]
    pub fn geometric_mean_us(&self) -> Option<f64> {
        let logarithms = self.queries.iter().map(|query| query.median_us.ln());
        let mean = logarithms.sum::<f64>() / self.queries.len() as f64;
        mean.is_finite().then(|| mean.exp())
    }
}

impl Display for CitybenchReport {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.machine)?;
        writeln!(
            f,
            "CityBench with {} stored triples; {} s of {} streams, {} tuples, in {:.2} s; one thread\n",
            thousands(self.stored),
            thousands(self.seconds),
            self.streams,
            thousands(self.tuples),
            self.whole_seconds,
        )?;
        let mut table = Table::new(["query", "instants", "rows", "median, us", "p99, us"]);
        for query in &self.queries {
            table.row([
                query.name.clone(),
                thousands(query.instants),
                thousands(query.rows),
                format!("{:.1}", query.median_us),
                format!("{:.1}", query.p99_us),
            ]);
        }
        writeln!(f, "{table}")?;
        match self.geometric_mean_us() {
            Some(mean) => writeln!(f, "geometric mean of the medians: {mean:.1} us"),
            None => writeln!(
                f,
                "geometric mean of the medians: none, as not all were evaluated"
            ),
        }
    }
}
