//! How does the latency of continuous queries depend on the rate of the streams?
//!
//! [`measure`] pushes the streams at each of some rates, as fast as they are taken and on one thread, to a
//! database with the six queries of the benchmark, and notes every evaluation by itself. Two times are
//! noted: the evaluation, and the time from the end of a window to its result, which has the batches of the
//! query's streams in it as well: their terms, the stored graph, the windows. Selective queries are several,
//! each evaluated by itself.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jindou_datagen::lsbench::{Lsbench, Rates, Stream};
use jindou_engine::{Config, Database};

use super::feed::Feed;
use super::queries::{QUERIES, Query};
use super::steps::{Step, Watch};
use super::{BATCH_MS, Options, QueryFigures, setup, sweep_plots};
use crate::BenchError;
use crate::machine::Machine;
use crate::percentiles::Percentiles;

pub use super::sweep_report::{StreamCost, SweepPoint, SweepQuery, SweepReport};

/// The rates of the Wukong+S paper's figure 13, in tuples a second.
pub const RATES: [u32; 5] = [33_375, 66_750, 133_500, 267_000, 534_000];

/// How many of each selective query there are.
const STARTS: u32 = 8;

/// Measures at each rate what [`Options`] says but for its own.
///
/// # Errors
/// As [`super::measure`].
pub fn measure(
    options: &Options,
    rates: &[u32],
    mut note: impl FnMut(&str),
) -> Result<SweepReport, BenchError> {
    let data = Lsbench::new(options.users, 0);
    let (mut points, mut stored) = (Vec::new(), 0);
    for &rate in rates {
        note(&format!("{rate} tuples/s"));
        let options = Options {
            rate: f64::from(rate) / Rates::PAPER.total(),
            ..options.clone()
        };
        let mut config = Config::default();
        config.keep_solutions = options.keep;
        config.together_from = usize::MAX;
        let database = Database::with_config(config);
        setup::load(&database, &data)?;
        stored = database.quad_counts().total();
        points.push(at_rate(&database, &data, &options, rate)?);
        drop(database);
        jindou_fabric::allocator::release_free_memory();
    }
    Ok(SweepReport {
        machine: Machine::here(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        optimized: !cfg!(debug_assertions),
        users: options.users,
        stored,
        seconds: options.seconds,
        range_ms: options.range_ms,
        step_ms: options.step_ms,
        points,
    })
}

/// Writes the plots of a report into a folder, which is made, and returns their paths.
///
/// # Errors
/// [`BenchError::Io`].
pub fn write_plots(report: &SweepReport, folder: &Path) -> Result<Vec<PathBuf>, BenchError> {
    fs::create_dir_all(folder).map_err(BenchError::io(folder))?;
    let mut paths = Vec::new();
    for (name, chart) in sweep_plots::of(report) {
        let path = folder.join(format!("{name}.svg"));
        fs::write(&path, chart.to_string()).map_err(BenchError::io(&path))?;
        paths.push(path);
    }
    Ok(paths)
}

/// The classes that a sweep has: those of the paper.
fn classes(options: &Options) -> impl Iterator<Item = &'static Query> {
    let wanted = move |query: &&Query| query.name.starts_with('L') && options.wants(query);
    QUERIES.iter().filter(wanted)
}

/// Times of one class.
#[derive(Default)]
struct Times {
    evaluations: Vec<Duration>,
    results: Vec<Duration>,
}

/// What was noted at one rate.
struct Notes {
    tuples: u64,
    /// Of each class.
    times: Vec<Times>,
    /// Of each stream.
    pushing: [Vec<Duration>; 5],
    indexing: [Vec<Duration>; 5],
}

fn at_rate(
    database: &Database,
    data: &Lsbench,
    options: &Options,
    rate: u32,
) -> Result<SweepPoint, BenchError> {
    setup::create_streams(database)?;
    let mut watch = Watch::default();
    for query in classes(options) {
        let many = if query.is_selective { STARTS } else { 1 };
        setup::register(database, query, many, options)?;
        watch.add(query, many);
    }
    let notes = replay(database, data, options, &mut watch)?;
    let queries = classes(options).zip(notes.times);
    let queries = queries.filter_map(|(query, times)| of_query(database, query, times));
    let streams = Stream::ALL
        .iter()
        .zip(notes.pushing.into_iter().zip(notes.indexing));
    let streams = streams.filter_map(|(stream, (pushing, indexing))| {
        Some(StreamCost {
            name: stream.name().to_owned(),
            pushing: Percentiles::of(pushing)?,
            indexing: Percentiles::of(indexing)?,
        })
    });
    Ok(SweepPoint {
        rate,
        tuples: notes.tuples,
        queries: queries.collect(),
        streams: streams.collect(),
    })
}

/// Pushes the streams, and notes what each batch costs once windows are full.
fn replay(
    database: &Database,
    data: &Lsbench,
    options: &Options,
    watch: &mut Watch,
) -> Result<Notes, BenchError> {
    let mut notes = Notes {
        tuples: 0,
        times: classes(options).map(|_| Times::default()).collect(),
        pushing: Default::default(),
        indexing: Default::default(),
    };
    let mut feed = Feed::new(data, options, options.seconds)?;
    while let Some(batch) = feed.next_batch() {
        let is_full = batch.end_ms >= options.range_ms as i64 + BATCH_MS as i64;
        notes.tuples += batch.tuples();
        let step = watch.step(database, batch)?;
        if is_full {
            notes.add(&step, watch, options);
        }
    }
    Ok(notes)
}

impl Notes {
    fn add(&mut self, step: &Step, watch: &Watch, options: &Options) {
        for stream in 0..Stream::ALL.len() {
            self.pushing[stream].push(step.pushing[stream]);
            self.indexing[stream].push(step.indexing[stream]);
        }
        for &(number, took) in &step.evaluated {
            let query = watch.class(number);
            let class = classes(options).position(|one| one.name == query.name);
            let times = &mut self.times[class.expect("it is one of them")];
            times.evaluations.push(took);
            times.results.push(step.until_result(query, took));
        }
    }
}

/// `None` of one that was never evaluated.
fn of_query(database: &Database, query: &Query, times: Times) -> Option<SweepQuery> {
    let figures = QueryFigures::of(query.name, &database.continuous_queries())?;
    Some(SweepQuery {
        name: query.name.to_owned(),
        failures: figures.failures,
        rows_each: figures.rows as f64 / figures.executions.max(1) as f64,
        evaluation: Percentiles::of(times.evaluations)?,
        result: Percentiles::of(times.results)?,
    })
}
