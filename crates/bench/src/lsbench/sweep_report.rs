//! What does the measurement by rate say, and how is it printed?

use std::fmt::{self, Display, Formatter};

use serde::{Deserialize, Serialize};

use crate::machine::Machine;
use crate::percentiles::Percentiles;
use crate::table::{Table, thousands};

/// All figures. `Display` is aligned tables, serde gives JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SweepReport {
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
    /// Seconds of the streams at each rate.
    pub seconds: u64,
    /// The range of windows, in milliseconds.
    pub range_ms: u64,
    /// How far they slide each time, in milliseconds.
    pub step_ms: u64,
    /// The rates.
    pub points: Vec<SweepPoint>,
}

/// One rate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SweepPoint {
    /// Tuples a second of all streams.
    pub rate: u32,
    /// Tuples pushed.
    pub tuples: u64,
    /// The queries.
    pub queries: Vec<SweepQuery>,
    /// The streams.
    pub streams: Vec<StreamCost>,
}

/// A query at one rate; those that differ in where they start are one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SweepQuery {
    /// Its name.
    pub name: String,
    /// Evaluations that failed.
    pub failures: u64,
    /// Rows of an evaluation, in the mean.
    pub rows_each: f64,
    /// Evaluations by themselves.
    pub evaluation: Percentiles,
    /// From the end of a window to its result: the batches of the query's streams, and the evaluation.
    pub result: Percentiles,
}

/// What a batch of a tenth of a second of one stream costs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StreamCost {
    /// The stream.
    pub name: String,
    /// Tuples are parsed and wait.
    pub pushing: Percentiles,
    /// The batch is complete: terms, stored graph, windows.
    pub indexing: Percentiles,
}

impl Display for SweepReport {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.machine)?;
        writeln!(
            f,
            "LSBench of {} users, {} stored triples; windows of {} ms by {} ms; {} s of streams at each rate; \
             one thread\n",
            thousands(u64::from(self.users)),
            thousands(self.stored),
            self.range_ms,
            self.step_ms,
            self.seconds,
        )?;
        write!(f, "{}", self.query_table())?;
        writeln!(
            f,
            "\nresult: from the end of a window, batches of the query's streams included; all in us\n"
        )?;
        write!(f, "{}", self.stream_table())?;
        writeln!(
            f,
            "\na batch of 100 ms of each stream in us: parsed; and, once it is complete, made part of the \
             stored graph and of windows"
        )
    }
}

impl SweepReport {
    fn query_table(&self) -> Table {
        let mut table = Table::new([
            "query",
            "tuples/s",
            "evaluations",
            "rows",
            "median",
            "p99",
            "max",
            "result, median",
            "result, p99",
        ]);
        let names = self
            .points
            .first()
            .into_iter()
            .flat_map(|point| &point.queries);
        for name in names.map(|query| &query.name) {
            for point in &self.points {
                let own = point.queries.iter().filter(|query| query.name == *name);
                for query in own {
                    table.row([
                        query.name.clone(),
                        thousands(u64::from(point.rate)),
                        thousands(query.evaluation.count),
                        format!("{:.1}", query.rows_each),
                        format!("{:.1}", query.evaluation.median_us),
                        format!("{:.1}", query.evaluation.p99_us),
                        format!("{:.1}", query.evaluation.max_us),
                        format!("{:.0}", query.result.median_us),
                        format!("{:.0}", query.result.p99_us),
                    ]);
                }
            }
        }
        table
    }

    fn stream_table(&self) -> Table {
        let mut table = Table::new([
            "stream",
            "tuples/s",
            "parsed, median",
            "p99",
            "indexed, median",
            "p99",
        ]);
        for point in &self.points {
            for stream in &point.streams {
                table.row([
                    stream.name.clone(),
                    thousands(u64::from(point.rate)),
                    format!("{:.0}", stream.pushing.median_us),
                    format!("{:.0}", stream.pushing.p99_us),
                    format!("{:.0}", stream.indexing.median_us),
                    format!("{:.0}", stream.indexing.p99_us),
                ]);
            }
        }
        table
    }
}
