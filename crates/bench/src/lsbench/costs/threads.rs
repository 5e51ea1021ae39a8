//! How much shorter are evaluations of L4 to L6 on two threads than on one?

use std::time::Duration;

use jindou_datagen::lsbench::Lsbench;
use jindou_engine::{Config, Database};
use serde::{Deserialize, Serialize};

use super::super::feed::Feed;
use super::super::queries::Query;
use super::super::steps::Watch;
use super::super::{Options, setup};
use crate::BenchError;
use crate::percentiles::Percentiles;

/// The queries that do not start at one user.
const QUERIES: [&str; 3] = ["L4", "L5", "L6"];
/// Numbers of threads.
const THREADS: [usize; 2] = [1, 2];

/// Figures of so many threads.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OnThreads {
    /// Threads that one evaluation may use.
    pub threads: usize,
    /// Evaluations of each query, by its name.
    pub queries: Vec<(String, Percentiles)>,
}

pub(super) fn measure(data: &Lsbench, options: &Options) -> Result<Vec<OnThreads>, BenchError> {
    let mut figures = Vec::new();
    for threads in THREADS {
        figures.push(on(data, options, threads)?);
        jindou_fabric::allocator::release_free_memory();
    }
    Ok(figures)
}

fn on(data: &Lsbench, options: &Options, threads: usize) -> Result<OnThreads, BenchError> {
    let mut config = Config::default();
    config.keep_solutions = options.keep;
    config.threads = threads;
    let database = Database::with_config(config);
    setup::load(&database, data)?;
    setup::create_streams(&database)?;
    let mut watch = Watch::default();
    let classes = QUERIES.map(|name| Query::named(name).expect("it is one of the benchmark"));
    for class in classes {
        setup::register(&database, class, 1, options)?;
        watch.add(class, 1);
    }
    let mut times: [Vec<Duration>; QUERIES.len()] = Default::default();
    let mut feed = Feed::new(data, options, options.seconds)?;
    while let Some(batch) = feed.next_batch() {
        for (number, took) in watch.step(&database, batch)?.evaluated {
            times[number].push(took);
        }
    }
    let queries = QUERIES.iter().zip(times);
    let queries =
        queries.filter_map(|(name, times)| Some(((*name).to_owned(), Percentiles::of(times)?)));
    Ok(OnThreads {
        threads,
        queries: queries.collect(),
    })
}
