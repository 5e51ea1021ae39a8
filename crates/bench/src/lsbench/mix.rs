//! How many executions a second does a mix of queries give, and what do its clients wait for?
//!
//! As in the Wukong+S paper: classes are in a mix by the reciprocals of their latencies, each query starts at
//! a user of its own, and four clients read the results of all. [`measure`] registers more and more queries,
//! and pushes the streams as fast as they are taken: the mix is saturated where a second of the streams takes
//! a second. One thread pushes and evaluates; the clients have threads of their own.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use jindou_datagen::lsbench::Lsbench;
use jindou_engine::{Config, ContinuousResults, Database, NextResult};
use serde::{Deserialize, Serialize};

use super::feed::{Batch, Feed};
use super::queries::Query;
use super::{Options, setup, sweep};
use crate::BenchError;
use crate::machine::Machine;
use crate::percentiles::Percentiles;

pub use super::mix_report::{Mix, MixReport, MixRun};

/// Clients that read results.
const CLIENTS: usize = 4;
/// Batches by which a client may be behind; then whoever pushes waits for it.
const BEHIND: usize = 64;
/// Queries of the first run; each next one has twice as many.
const FIRST_QUERIES: u32 = 1_000;
/// Seconds of the streams by which latencies of classes are known.
const LATENCY_SECONDS: u64 = 3;

/// The classes of a mix.
const MIXES: [(&str, &[&str]); 2] = [
    ("L1-L3", &["L1", "L2", "L3"]),
    ("L1-L6", &["L1", "L2", "L3", "L4", "L5", "L6"]),
];

/// A class, and how many queries of it there are.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Share {
    /// The class.
    pub name: String,
    /// Its median latency alone, in microseconds.
    pub latency_us: f64,
    /// Its part of all queries.
    pub part: f64,
}

/// Measures both mixes.
///
/// # Errors
/// As [`super::measure`].
pub fn measure(options: &Options, mut note: impl FnMut(&str)) -> Result<MixReport, BenchError> {
    let data = Lsbench::new(options.users, 0);
    note("latencies of the classes");
    let alone = Options {
        seconds: LATENCY_SECONDS,
        ..options.clone()
    };
    let rate = options.tuples_per_second().round() as u32;
    let alone = sweep::measure(&alone, &[rate], |_| {})?;
    let mut mixes = Vec::new();
    for (name, classes) in MIXES {
        let shares = shares(&alone, classes);
        let mut runs: Vec<MixRun> = Vec::new();
        let mut queries = FIRST_QUERIES;
        while queries <= options.most_queries && !runs.last().is_some_and(MixRun::is_saturated) {
            note(&format!("{name}: {queries} queries"));
            runs.push(run(&data, options, &shares, queries)?);
            jindou_fabric::allocator::release_free_memory();
            queries *= 2;
        }
        mixes.push(Mix {
            name: name.to_owned(),
            shares,
            runs,
        });
    }
    Ok(MixReport {
        machine: Machine::here(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        optimized: !cfg!(debug_assertions),
        users: options.users,
        stored: alone.stored,
        rate,
        seconds: options.seconds,
        range_ms: options.range_ms,
        step_ms: options.step_ms,
        mixes,
    })
}

/// By the reciprocals of latencies.
fn shares(alone: &sweep::SweepReport, classes: &[&str]) -> Vec<Share> {
    let queries = alone.points.iter().flat_map(|point| &point.queries);
    let wanted = queries.filter(|query| classes.contains(&query.name.as_str()));
    let latencies: Vec<(String, f64)> = wanted
        .map(|query| (query.name.clone(), query.evaluation.median_us.max(0.1)))
        .collect();
    let sum: f64 = latencies.iter().map(|(_, latency)| 1.0 / latency).sum();
    let share = |(name, latency_us): (String, f64)| Share {
        name,
        latency_us,
        part: 1.0 / latency_us / sum,
    };
    latencies.into_iter().map(share).collect()
}

/// What was pushed in a run, and how long that took.
#[derive(Default)]
struct Pushed {
    tuples: u64,
    /// Pushes and completions,
    whole: Duration,
    /// and the making of the streams.
    making: Duration,
}

/// One run with so many queries in all.
fn run(
    data: &Lsbench,
    options: &Options,
    shares: &[Share],
    queries: u32,
) -> Result<MixRun, BenchError> {
    let mut config = Config::default();
    config.keep_solutions = options.keep;
    let database = Database::with_config(config);
    setup::load(&database, data)?;
    setup::create_streams(&database)?;
    let mut registered = 0;
    for share in shares {
        let class = Query::named(&share.name).expect("it is one of the benchmark");
        let many = (f64::from(queries) * share.part).round().max(1.0) as u32;
        setup::register(&database, class, many, options)?;
        registered += u64::from(many);
    }
    let clients = clients(&database)?;
    let mut feed = Feed::new(data, options, options.seconds)?;
    let (pushed, taken) = std::thread::scope(|scope| {
        let (wakers, threads): (Vec<_>, Vec<_>) = clients
            .into_iter()
            .map(|own| {
                let (waker, woken) = sync_channel(BEHIND);
                (waker, scope.spawn(move || read(own, &woken)))
            })
            .unzip();
        let pushed = push_all(&database, &mut feed, &wakers);
        drop(wakers);
        let threads = threads.into_iter();
        let taken = threads.map(|thread| thread.join().map_err(|_| BenchError::Thread));
        let taken = taken.collect::<Result<Vec<Taken>, BenchError>>()?;
        Ok::<_, BenchError>((pushed?, taken))
    })?;
    Ok(figures(&database, options, registered, &pushed, taken))
}

/// Pushes the streams, and tells the clients of each batch when it was complete.
fn push_all(
    database: &Database,
    feed: &mut Feed,
    wakers: &[SyncSender<Instant>],
) -> Result<Pushed, BenchError> {
    let (all, mut pushed) = (Instant::now(), Pushed::default());
    while let Some(mut batch) = feed.next_batch() {
        let begun = Instant::now();
        pushed.tuples += batch.tuples();
        step(database, &mut batch, wakers)?;
        pushed.whole += begun.elapsed();
    }
    pushed.making = all.elapsed().saturating_sub(pushed.whole);
    Ok(pushed)
}

/// Pushes and completes a batch, and tells the clients when that began.
fn step(
    database: &Database,
    batch: &mut Batch,
    wakers: &[SyncSender<Instant>],
) -> Result<(), BenchError> {
    batch.push(database)?;
    let begun = Instant::now();
    batch.complete(database)?;
    for waker in wakers {
        // A client that has ended says why itself.
        let _ = waker.send(begun);
    }
    Ok(())
}

/// The results of all queries, shared out among the clients.
fn clients(database: &Database) -> Result<Vec<Vec<ContinuousResults>>, BenchError> {
    let mut clients: Vec<Vec<ContinuousResults>> = Vec::new();
    clients.resize_with(CLIENTS, Vec::new);
    for (number, query) in database.continuous_queries().into_iter().enumerate() {
        let results = database.results_of(&query.name, None)?;
        clients[number % CLIENTS].push(results);
    }
    Ok(clients)
}

/// What a client has read.
#[derive(Default)]
struct Taken {
    results: u64,
    missed: u64,
    /// From when a batch was complete until all results that came with it were read.
    waits: Vec<Duration>,
}

/// Reads whatever is there each time that a batch is complete.
fn read(mut own: Vec<ContinuousResults>, woken: &Receiver<Instant>) -> Taken {
    let mut taken = Taken::default();
    while let Ok(begun) = woken.recv() {
        let before = taken.results;
        for results in &mut own {
            while let NextResult::Result(_, missed) = results.next_within(Duration::ZERO) {
                taken.results += 1;
                taken.missed += missed;
            }
        }
        if taken.results > before {
            taken.waits.push(begun.elapsed());
        }
    }
    taken
}

fn figures(
    database: &Database,
    options: &Options,
    queries: u64,
    pushed: &Pushed,
    taken: Vec<Taken>,
) -> MixRun {
    let all = database.continuous_queries();
    let streams_seconds = options.seconds as f64;
    let evaluating: f64 = all.iter().map(|query| query.seconds).sum();
    let mut waits = Vec::new();
    let (mut results, mut missed) = (0, 0);
    for client in taken {
        results += client.results;
        missed += client.missed;
        waits.extend(client.waits);
    }
    MixRun {
        queries,
        tuples: pushed.tuples,
        executions: all.iter().map(|query| query.executions).sum(),
        failures: all.iter().map(|query| query.failures).sum(),
        results,
        missed,
        whole_seconds: pushed.whole.as_secs_f64(),
        making_seconds: pushed.making.as_secs_f64(),
        evaluating_seconds: evaluating,
        streams_seconds,
        waits: Percentiles::of(waits),
    }
}
