//! How long after it was acknowledged is a tuple seen by one-shot queries?
//!
//! The streams come at the pace of the clock, in pushes of 10 ms. A batch is seen as a whole once it is
//! complete, so what decides is the interval of batches; there is no delay beyond it.

use std::time::Instant;

use jindou_datagen::lsbench::{Load, Lsbench, Pace, Rates, Stream};
use jindou_engine::{Database, QueryResults, TupleFormat};
use serde::{Deserialize, Serialize};

use super::super::{Options, setup};
use crate::BenchError;
use crate::made::{MadeStreams, Schedule};
use crate::percentiles::Percentiles;

/// Milliseconds of a push.
const PIECE_MS: u64 = 10;
/// Intervals of batches, in milliseconds.
const INTERVALS: [u32; 3] = [10, 100, 1_000];
/// Seconds of the streams for each.
const MOST_SECONDS: u64 = 10;

/// Figures of one interval.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Staleness {
    /// Milliseconds of a batch.
    pub interval_ms: u32,
    /// From when a push was acknowledged to when a query has found a tuple of its batch.
    pub from_push: Percentiles,
    /// From when the request was sent that completes the batch.
    pub from_completion: Percentiles,
}

pub(super) fn measure(data: &Lsbench, options: &Options) -> Result<Vec<Staleness>, BenchError> {
    let mut figures = Vec::new();
    for interval_ms in INTERVALS {
        figures.extend(of_interval(data, options, interval_ms)?);
        jindou_fabric::allocator::release_free_memory();
    }
    Ok(figures)
}

/// `None` where the streams are shorter than a batch.
fn of_interval(
    data: &Lsbench,
    options: &Options,
    interval_ms: u32,
) -> Result<Option<Staleness>, BenchError> {
    let database = Database::new();
    for stream in Stream::ALL {
        let mut definition = setup::definition(stream);
        definition.interval_ms = interval_ms;
        database.create_stream(stream.name(), definition)?;
    }
    let load = Load {
        rates: Rates::PAPER.times(options.rate),
        pace: Pace::Even,
        duration_ms: options.seconds.min(MOST_SECONDS) * 1_000,
    };
    let made = MadeStreams::begin(data, &load, PIECE_MS)?;
    let schedule = Schedule::begin();
    let (mut from_push, mut from_completion) = (Vec::new(), Vec::new());
    let (mut acknowledged, mut marker) = (Vec::new(), None);
    let mut end_ms = 0;
    while end_ms < load.duration_ms {
        for (stream, queue) in &made.pieces {
            let piece = queue.recv().map_err(|_| BenchError::Thread)?;
            end_ms = piece.end_ms;
            schedule.wait(end_ms);
            if piece.tuples == 0 {
                continue;
            }
            if !stream.is_timing() {
                marker = last_statement(&piece.lines).or(marker);
            }
            let text = piece.lines.into_bytes();
            database.push(stream.name(), TupleFormat::Lines, None, text)?;
            acknowledged.push(Instant::now());
        }
        if end_ms.is_multiple_of(u64::from(interval_ms)) {
            let sent = Instant::now();
            for stream in Stream::ALL {
                database.heartbeat(stream.name(), end_ms as i64)?;
            }
            if let Some(statement) = marker.take() {
                see(&database, statement)?;
                from_completion.push(sent.elapsed());
                let all = acknowledged.drain(..);
                from_push.extend(all.map(|at: Instant| at.elapsed()));
            }
        }
    }
    made.end()?;
    let figures = Percentiles::of(from_push).zip(Percentiles::of(from_completion));
    Ok(figures.map(|(from_push, from_completion)| Staleness {
        interval_ms,
        from_push,
        from_completion,
    }))
}

/// The last statement of some lines, without its end.
fn last_statement(lines: &str) -> Option<String> {
    let (_, statement) = lines.lines().next_back()?.split_once('\t')?;
    Some(statement.trim_end_matches([' ', '.']).to_owned())
}

/// # Errors
/// [`BenchError::NotSeen`].
fn see(database: &Database, statement: String) -> Result<(), BenchError> {
    match database.query(&format!("ASK {{ {statement} }}"))? {
        QueryResults::Boolean(true) => Ok(()),
        _ => Err(BenchError::NotSeen { statement }),
    }
}
