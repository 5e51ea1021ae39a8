//! What does a batch of one stream cost, and what does a tuple take in the stored graph and in windows?

use std::time::{Duration, Instant};

use jindou_datagen::lsbench::{Lsbench, Stream};
use jindou_engine::Database;
use serde::{Deserialize, Serialize};

use super::super::Options;
use super::super::feed::Feed;
use super::super::setup;
use crate::BenchError;
use crate::percentiles::Percentiles;

/// Figures of one stream, alone in an empty database with one query that has a window of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StreamAlone {
    /// Its name.
    pub name: String,
    /// Tuples pushed.
    pub tuples: u64,
    /// Bytes of a tuple's line.
    pub text_bytes_a_tuple: f64,
    /// Bytes of a tuple in the stored graph, dictionary included, once all is merged; none of timing data.
    pub stored_bytes_a_tuple: Option<f64>,
    /// Bytes of windows for a tuple that the window has: what is beside the stored copy, or, of timing data,
    /// all there is.
    pub window_bytes_a_tuple: f64,
    /// Parsing a batch of 100 ms.
    pub pushing: Percentiles,
    /// Making it part of the stored graph and of windows.
    pub completing: Percentiles,
}

pub(super) fn measure(data: &Lsbench, options: &Options) -> Result<Vec<StreamAlone>, BenchError> {
    let mut figures = Vec::new();
    for stream in Stream::ALL {
        figures.extend(alone(data, options, stream)?);
        jindou_fabric::allocator::release_free_memory();
    }
    Ok(figures)
}

/// `None` of a stream without tuples.
fn alone(
    data: &Lsbench,
    options: &Options,
    stream: Stream,
) -> Result<Option<StreamAlone>, BenchError> {
    let database = Database::new();
    database.create_stream(stream.name(), setup::definition(stream))?;
    let text = format!(
        "SELECT ?p ?o FROM STREAM <{}> [RANGE {}ms STEP {}ms] WHERE {{ <http://www.ins.cwi.nl/sib/none> ?p ?o }}",
        stream.iri(),
        options.range_ms,
        options.step_ms
    );
    database.register("reader", &text)?;
    let mut feed = Feed::of(data, options, options.seconds, &[stream])?;
    let (mut pushing, mut completing) = (Vec::new(), Vec::new());
    let (mut tuples, mut text_bytes) = (0, 0);
    let mut of_batches: Vec<u64> = Vec::new();
    while let Some(mut batch) = feed.next_batch() {
        tuples += batch.tuples();
        of_batches.push(batch.tuples());
        text_bytes += batch.text_bytes();
        pushing.push(timed(|| batch.push_of(stream, &database).map(drop))?);
        completing.push(timed(|| batch.complete_of(stream, &database))?);
    }
    let window_bytes = database
        .stream(stream.name())
        .map_or(0, |one| one.window_bytes);
    let batches = (options.range_ms / super::super::BATCH_MS) as usize;
    let in_window: u64 = of_batches.iter().rev().take(batches).sum();
    database.compact()?;
    let statistics = database.statistics();
    let stored_bytes = statistics.total_bytes() + statistics.change_bytes;
    let each = |bytes: u64, count: u64| bytes as f64 / count.max(1) as f64;
    Ok(Percentiles::of(pushing)
        .zip(Percentiles::of(completing))
        .map(|(pushing, completing)| StreamAlone {
            name: stream.name().to_owned(),
            tuples,
            text_bytes_a_tuple: each(text_bytes, tuples),
            stored_bytes_a_tuple: (!stream.is_timing()).then(|| each(stored_bytes, tuples)),
            window_bytes_a_tuple: each(window_bytes, in_window),
            pushing,
            completing,
        }))
}

fn timed(what: impl FnOnce() -> Result<(), BenchError>) -> Result<Duration, BenchError> {
    let begun = Instant::now();
    what()?;
    Ok(begun.elapsed())
}
