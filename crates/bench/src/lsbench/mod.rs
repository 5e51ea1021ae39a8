//! How fast are continuous queries over streams joined with stored data?
//!
//! [`measure`] generates the social graph of LSBench and its five streams at the rates of the Wukong+S
//! paper, registers its queries, the selective ones many times with other users, and pushes the tuples as
//! fast as they are taken, one batch of a tenth of a second after the other. Everything happens in one
//! process and on one thread, so what an execution takes is what a consumer waits for after the window is
//! complete, and what is left of the whole time is what tuples cost to come in.

pub mod costs;
mod feed;
pub mod mix;
mod mix_report;
mod one_shot;
mod queries;
mod report;
pub mod served;
mod setup;
mod steps;
pub mod sweep;
mod sweep_plots;
mod sweep_report;

use std::time::{Duration, Instant};

use jindou_datagen::lsbench::{Lsbench, Rates};
use jindou_engine::{Config, Database, KeepSolutions};

pub use one_shot::OneShotFigures;
pub use report::{LsbenchReport, QueryFigures};

use crate::BenchError;
use crate::machine::Machine;
use feed::Feed;
use queries::{QUERIES, Query};

/// Milliseconds of a batch.
const BATCH_MS: u64 = 100;

/// What to measure.
#[derive(Debug, Clone)]
pub struct Options {
    /// Users of the social graph, whose seed is 0: each has about a hundred stored triples.
    pub users: u32,
    /// Seconds of the streams.
    pub seconds: u64,
    /// How many times the paper's 133,500 tuples a second.
    pub rate: f64,
    /// How many of each selective query, which start at users of their own.
    pub selective: u32,
    /// The range of windows, in milliseconds.
    pub range_ms: u64,
    /// How far they slide each time, in milliseconds.
    pub step_ms: u64,
    /// When solutions are kept from one instant to the next.
    pub keep: KeepSolutions,
    /// Measure one-shot queries beside the streams at their own pace, instead of continuous ones.
    pub one_shot: bool,
    /// Queries of a mix, at most.
    pub most_queries: u32,
    /// The query of this name only, or none.
    pub only: Option<String>,
}

impl Options {
    /// The usual measurement.
    #[must_use]
    pub fn new() -> Self {
        Self {
            users: 1_000,
            seconds: 20,
            rate: 1.0,
            selective: 100,
            range_ms: 1_000,
            step_ms: 100,
            keep: KeepSolutions::ByCost,
            one_shot: false,
            most_queries: 256_000,
            only: None,
        }
    }

    /// Tuples a second of all streams.
    fn tuples_per_second(&self) -> f64 {
        Rates::PAPER.total() * self.rate
    }

    fn wants(&self, query: &Query) -> bool {
        self.only.as_deref().is_none_or(|only| only == query.name)
    }
}

impl Default for Options {
    fn default() -> Self {
        Self::new()
    }
}

/// Measures; `note` is given what is being done, a few words at a time.
///
/// # Errors
/// Data that cannot be generated or loaded, a query that is refused.
pub fn measure(options: &Options, mut note: impl FnMut(&str)) -> Result<LsbenchReport, BenchError> {
    let data = Lsbench::new(options.users, 0);
    note("loading the social graph");
    let mut config = Config::default();
    config.keep_solutions = options.keep;
    let database = Database::with_config(config);
    setup::load(&database, &data)?;
    let stored = database.quad_counts().total();
    setup::create_streams(&database)?;
    for query in QUERIES.iter().filter(|query| options.wants(query)) {
        let many = if query.is_selective {
            options.selective
        } else {
            1
        };
        setup::register(&database, query, many, options)?;
    }
    note(&format!("{} s of streams", options.seconds));
    if options.one_shot {
        let one_shot = one_shot::measure(&database, &data, options)?;
        let report = report(&database, options, stored, &Run::default());
        return Ok(LsbenchReport {
            seconds: one_shot::seconds(options),
            one_shot,
            ..report
        });
    }
    let run = replay(&database, &data, options)?;
    Ok(report(&database, options, stored, &run))
}

/// What was pushed, and how long that took.
#[derive(Default)]
struct Run {
    tuples: u64,
    batches: u64,
    /// Of calls that parse tuples,
    parsing: Duration,
    /// and of those that complete batches and evaluate queries.
    completing: Duration,
    /// The longest of these.
    longest: Duration,
}

fn replay(database: &Database, data: &Lsbench, options: &Options) -> Result<Run, BenchError> {
    let mut feed = Feed::new(data, options, options.seconds)?;
    let mut run = Run::default();
    while let Some(mut batch) = feed.next_batch() {
        run.tuples += batch.tuples();
        let begun = Instant::now();
        run.batches += batch.push(database)?;
        run.parsing += begun.elapsed();
        let begun = Instant::now();
        batch.complete(database)?;
        let took = begun.elapsed();
        run.completing += took;
        run.longest = run.longest.max(took);
    }
    Ok(run)
}

fn report(database: &Database, options: &Options, stored: u64, run: &Run) -> LsbenchReport {
    let all = database.continuous_queries();
    let seconds: f64 = all.iter().map(|query| query.seconds).sum();
    let whole = (run.parsing + run.completing).as_secs_f64();
    let figures = QUERIES.iter();
    let figures = figures.filter_map(|query| QueryFigures::of(query.name, &all));
    LsbenchReport {
        machine: Machine::here(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        optimized: !cfg!(debug_assertions),
        users: options.users,
        stored,
        seconds: options.seconds,
        range_ms: options.range_ms,
        step_ms: options.step_ms,
        tuples: run.tuples,
        batches: run.batches,
        whole_seconds: whole,
        longest_completion_ms: run.longest.as_secs_f64() * 1e3,
        evaluating_seconds: seconds,
        window_bytes: database
            .streams()
            .iter()
            .map(|stream| stream.window_bytes)
            .sum(),
        queries: figures.collect(),
        one_shot: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_shot_queries_are_asked_beside_everything() {
        let options = Options {
            users: 200,
            seconds: 3,
            rate: 0.2,
            selective: 2,
            one_shot: true,
            ..Options::new()
        };
        let report = measure(&options, |_| {}).unwrap();
        let names: Vec<&str> = report
            .one_shot
            .iter()
            .map(|one| one.name.as_str())
            .collect();
        assert_eq!(names, ["S1", "S2", "S3", "group", "S5", "near"]);
        let rows = report.one_shot.iter().map(|one| one.rows);
        assert!(rows.min() > Some(0), "{report}");
        let text = report.to_string();
        assert!(text.contains("3 s at the pace of the clock"), "{text}");
        assert!(!text.contains("one thread"), "{text}");
    }

    #[test]
    fn every_query_finds_something() {
        let options = Options {
            users: 200,
            seconds: 2,
            rate: 0.2,
            selective: 20,
            ..Options::new()
        };
        let report = measure(&options, |_| {}).unwrap();
        assert_eq!(report.queries.len(), QUERIES.len());
        for query in &report.queries {
            assert!(query.executions > 0 && query.rows > 0, "{query:?}");
            assert_eq!(query.failures, 0, "{query:?}");
        }
        let text = report.to_string();
        assert!(text.contains("L6") && text.contains("tuples/s"), "{text}");
    }
}
