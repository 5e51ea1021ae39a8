//! What does the measurement of continuous queries say, and how is it printed?

use std::fmt::{self, Display, Formatter};

use jindou_engine::ContinuousStatus;
use serde::{Deserialize, Serialize};

use super::OneShotFigures;
use crate::machine::Machine;
use crate::table::{Table, bytes, thousands};

/// All figures. `Display` is aligned tables, serde gives JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LsbenchReport {
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
    /// Seconds of the streams; where one-shot queries are measured, of the clock.
    pub seconds: u64,
    /// The range of windows, in milliseconds.
    pub range_ms: u64,
    /// How far they slide each time, in milliseconds.
    pub step_ms: u64,
    /// Tuples pushed.
    pub tuples: u64,
    /// Batches of all streams.
    pub batches: u64,
    /// Seconds that all of it took on one thread.
    pub whole_seconds: f64,
    /// Those of them that were executions of queries.
    pub evaluating_seconds: f64,
    /// Milliseconds of the longest completion of batches, with all executions that it began.
    pub longest_completion_ms: f64,
    /// Bytes of windows at the end.
    pub window_bytes: u64,
    /// The queries.
    pub queries: Vec<QueryFigures>,
    /// One-shot queries, where these were measured: the streams then came at the pace of the clock.
    pub one_shot: Vec<OneShotFigures>,
}

/// One query, or all of one pattern that differ in where they start.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct QueryFigures {
    /// Its name.
    pub name: String,
    /// How many of it were registered.
    pub registered: u64,
    /// Evaluations of all of these.
    pub executions: u64,
    /// Those that failed.
    pub failures: u64,
    /// Rows found.
    pub rows: u64,
    /// Time of all evaluations.
    pub seconds: f64,
    /// Microseconds of an evaluation, the median over those registered of their medians,
    pub median_us: f64,
    /// and of their 99th percentiles.
    pub p99_us: f64,
}

impl QueryFigures {
    /// Those of a class, of all queries that are registered; `None` if none is of it.
    pub(super) fn of(name: &str, all: &[ContinuousStatus]) -> Option<Self> {
        let prefix = format!("{name}_");
        let own = all.iter().filter(|one| one.name.starts_with(&prefix));
        let all: Vec<&ContinuousStatus> = own.collect();
        let median = |figure: fn(&ContinuousStatus) -> f64| {
            let mut figures: Vec<f64> = all.iter().map(|query| figure(query)).collect();
            figures.sort_by(f64::total_cmp);
            figures.get(figures.len() / 2).copied()
        };
        Some(Self {
            name: name.to_owned(),
            registered: all.len() as u64,
            executions: all.iter().map(|query| query.executions).sum(),
            failures: all.iter().map(|query| query.failures).sum(),
            rows: all.iter().map(|query| query.rows).sum(),
            seconds: all.iter().map(|query| query.seconds).sum(),
            median_us: median(|query| query.median_us)?,
            p99_us: median(|query| query.p99_us)?,
        })
    }
}

impl LsbenchReport {
    /// Tuples a second that come in on one thread beside nothing else: what is left of the time
    /// without executions.
    #[must_use]
    pub fn tuples_per_second(&self) -> f64 {
        self.tuples as f64 / (self.whole_seconds - self.evaluating_seconds).max(1e-9)
    }
}

impl LsbenchReport {
    fn write_header(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.machine)?;
        write!(
            f,
            "LSBench of {} users, {} stored triples; windows of {} ms by {} ms; ",
            thousands(u64::from(self.users)),
            thousands(self.stored),
            self.range_ms,
            self.step_ms,
        )?;
        if !self.one_shot.is_empty() {
            return writeln!(
                f,
                "{} s at the pace of the clock; two threads\n",
                self.seconds
            );
        }
        writeln!(
            f,
            "{} s of streams, {} tuples in {} batches; one thread\n",
            self.seconds,
            thousands(self.tuples),
            thousands(self.batches),
        )
    }

    fn write_one_shot(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "one-shot queries on another thread, in seconds beside nothing, beside the streams, and beside \
             the streams and the queries above, in turn; medians\n"
        )?;
        let mut table = Table::new([
            "query",
            "runs",
            "rows",
            "alone, us",
            "streams, us",
            "times",
            "queries, us",
            "times",
        ]);
        let mut ratios = [0.0; 2];
        for one in &self.one_shot {
            let medians = [one.alone, one.streams, one.queries].map(|timing| timing.median_ms);
            let times = [medians[1] / medians[0], medians[2] / medians[0]];
            for (sum, times) in ratios.iter_mut().zip(times) {
                *sum += times.ln() / self.one_shot.len() as f64;
            }
            table.row([
                one.name.clone(),
                thousands(u64::from(one.alone.runs)),
                thousands(one.rows),
                format!("{:.1}", medians[0] * 1e3),
                format!("{:.1}", medians[1] * 1e3),
                format!("{:.3}", times[0]),
                format!("{:.1}", medians[2] * 1e3),
                format!("{:.3}", times[1]),
            ]);
        }
        writeln!(f, "{table}")?;
        writeln!(
            f,
            "geometric means: {:.3} times beside the streams, {:.3} times beside streams and queries",
            ratios[0].exp(),
            ratios[1].exp()
        )
    }
}

impl Display for LsbenchReport {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.write_header(f)?;
        let mut table = Table::new([
            "query",
            "registered",
            "executions",
            "rows",
            "median, us",
            "p99, us",
            "executions/s",
        ]);
        for query in &self.queries {
            table.row([
                query.name.clone(),
                thousands(query.registered),
                thousands(query.executions),
                thousands(query.rows),
                format!("{:.1}", query.median_us),
                format!("{:.1}", query.p99_us),
                thousands((query.executions as f64 / query.seconds.max(1e-9)) as u64),
            ]);
        }
        writeln!(f, "{table}")?;
        if !self.one_shot.is_empty() {
            return self.write_one_shot(f);
        }
        writeln!(
            f,
            "tuples come in at {} tuples/s, parsed, in batches, stored and indexed; {:.2} s of {:.2} s \
             were executions, and the longest completion of a batch took {:.1} ms with all executions; \
             windows take {}",
            thousands(self.tuples_per_second() as u64),
            self.evaluating_seconds,
            self.whole_seconds,
            self.longest_completion_ms,
            bytes(self.window_bytes),
        )
    }
}
