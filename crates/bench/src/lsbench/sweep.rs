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
use super::steps::Watch;
use super::{BATCH_MS, Options, setup, sweep_plots};
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
    let mut times: Vec<Times> = classes(options).map(|_| Times::default()).collect();
    let mut pushing: [Vec<Duration>; 5] = Default::default();
    let mut indexing: [Vec<Duration>; 5] = Default::default();
    let mut feed = Feed::new(data, options, options.seconds)?;
    let mut tuples = 0;
    while let Some(batch) = feed.next_batch() {
        // Windows are full from here on.
        let is_full = batch.end_ms >= options.range_ms as i64 + BATCH_MS as i64;
        tuples += batch.tuples();
        let step = watch.step(database, batch)?;
        if !is_full {
            continue;
        }
        for stream in 0..Stream::ALL.len() {
            pushing[stream].push(step.pushing[stream]);
            indexing[stream].push(step.indexing[stream]);
        }
        for &(number, took) in &step.evaluated {
            let query = watch.class(number);
            let class = classes(options).position(|one| one.name == query.name);
            let times = &mut times[class.expect("it is one of them")];
            times.evaluations.push(took);
            times.results.push(step.until_result(query, took));
        }
    }
    let queries = classes(options).zip(times);
    let queries = queries.filter_map(|(query, times)| of_query(database, query, times));
    let streams = Stream::ALL.iter().zip(pushing.into_iter().zip(indexing));
    let streams = streams.filter_map(|(stream, (pushing, indexing))| {
        Some(StreamCost {
            name: stream.name().to_owned(),
            pushing: Percentiles::of(pushing)?,
            indexing: Percentiles::of(indexing)?,
        })
    });
    Ok(SweepPoint {
        rate,
        tuples,
        queries: queries.collect(),
        streams: streams.collect(),
    })
}

/// `None` of one that was never evaluated.
fn of_query(database: &Database, query: &Query, times: Times) -> Option<SweepQuery> {
    let prefix = format!("{}_", query.name);
    let all = database.continuous_queries();
    let own = || all.iter().filter(|one| one.name.starts_with(&prefix));
    let executions: u64 = own().map(|one| one.executions).sum();
    let rows: u64 = own().map(|one| one.rows).sum();
    Some(SweepQuery {
        name: query.name.to_owned(),
        failures: own().map(|one| one.failures).sum(),
        rows_each: rows as f64 / executions.max(1) as f64,
        evaluation: Percentiles::of(times.evaluations)?,
        result: Percentiles::of(times.results)?,
    })
}
