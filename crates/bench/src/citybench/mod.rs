//! How fast are the published queries of CityBench over the observations of a city?
//!
//! [`measure`] reads a folder of CityBench (Ali, Gao, Mileo: "CityBench: A Configurable Benchmark to
//! Evaluate RSP Engines Using Smart City Datasets", ISWC 2015), registers its queries by their texts as
//! they are, and pushes the observations as fast as they are taken, one batch of a tenth of a second after
//! the other. Everything happens on one thread.

mod feed;
mod folder;
mod report;

use std::time::Instant;

use jindou_engine::ingest::{Progress, Source};
use jindou_engine::{Config, Database, LoadOptions, StreamDefinition, TupleFormat};
use oxrdf::NamedNode;

pub use folder::Options;
pub use report::{CityQuery, CitybenchReport};

use crate::BenchError;
use crate::machine::Machine;
use feed::Feed;
use folder::{City, local_name};

/// Milliseconds of a batch.
const BATCH_MS: i64 = 100;

/// Measures; `note` is given what is being done, a few words at a time.
///
/// # Errors
/// [`BenchError::NoData`] for what the folder lacks, [`BenchError::NoQuery`], [`BenchError::BadLine`]; a
/// query that is refused.
pub fn measure(
    options: &Options,
    mut note: impl FnMut(&str),
) -> Result<CitybenchReport, BenchError> {
    let city = City::read(options)?;
    let mut config = Config::default();
    config.threads = 1;
    let database = Database::with_config(config);
    note("loading the stored data");
    for (graph, file) in &city.graphs {
        let source = Source::path(file);
        let options = LoadOptions {
            graph: Some(NamedNode::new_unchecked(graph)),
            ..LoadOptions::default()
        };
        database.load(vec![source], &options, &Progress::default())?;
    }
    note("reading the streams");
    let mut feeds = Vec::new();
    for (iri, file) in &city.streams {
        let name = local_name(iri);
        database.create_stream(name, StreamDefinition::new(iri.clone()))?;
        feeds.push(Feed::read(name, file, options.seconds)?);
    }
    for query in &city.queries {
        database.register(&query.name, &query.text)?;
    }
    note(&format!("{} s of streams", options.seconds));
    let stored = database.quad_counts().total();
    let run = replay(&database, &mut feeds, options.seconds)?;
    let queries = database.continuous_queries();
    let of = |query: &folder::Query| {
        let status = queries.iter().find(|status| status.name == query.name);
        CityQuery::of(status.expect("it was registered"))
    };
    Ok(CitybenchReport {
        machine: Machine::here(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        optimized: !cfg!(debug_assertions),
        stored,
        streams: feeds.len() as u64,
        seconds: options.seconds,
        tuples: run.tuples,
        whole_seconds: run.whole_seconds,
        queries: city.queries.iter().map(of).collect(),
    })
}

/// What was pushed, and how long that took.
struct Run {
    tuples: u64,
    whole_seconds: f64,
}

fn replay(database: &Database, feeds: &mut [Feed], seconds: u64) -> Result<Run, BenchError> {
    let begin_ms = feeds.iter().map(Feed::first_ms).min().unwrap_or(0);
    // Batches begin at multiples of their length.
    let begin_ms = begin_ms - begin_ms.rem_euclid(BATCH_MS);
    let until_ms = begin_ms + seconds as i64 * 1000;
    let (mut tuples, mut end_ms) = (0, begin_ms);
    let mut text = String::new();
    let begun = Instant::now();
    while end_ms < until_ms {
        end_ms += BATCH_MS;
        for feed in &mut *feeds {
            text.clear();
            tuples += feed.push_before(end_ms, begin_ms, &mut text);
            if !text.is_empty() {
                let lines = text.as_bytes().to_vec();
                database.push(feed.name(), TupleFormat::Lines, None, lines)?;
            }
        }
        for feed in &*feeds {
            database.heartbeat(feed.name(), end_ms)?;
        }
    }
    Ok(Run {
        tuples,
        whole_seconds: begun.elapsed().as_secs_f64(),
    })
}
