//! Do streams take a given rate for long?
//!
//! Each thread owns some of the streams and pushes each tenth of a second when the clock says that it is over.
//! How long after that it was acknowledged tells whether the rate is kept: a database that is too slow is ever
//! farther behind.

use std::net::SocketAddr;
use std::sync::mpsc::Receiver;
use std::time::Duration;

use jindou_datagen::lsbench::{Load, Lsbench, Pace, Rates, Stream};
use jindou_engine::Database;

use super::Options;
use super::feed::BATCH_MS;
use super::push::{Pushed, Reach};
use crate::BenchError;
use crate::machine::process_cpu;
use crate::made::{MadeStreams, Piece, Schedule};
use crate::percentiles::Percentiles;

/// Pushes so many tuples a second for the time of the measurement.
///
/// # Errors
/// [`BenchError::Datagen`], [`BenchError::Engine`], [`BenchError::Http`].
pub(super) fn push(
    database: &Database,
    server: Option<SocketAddr>,
    options: &Options,
    rate: f64,
) -> Result<Pushed, BenchError> {
    let load = Load {
        rates: Rates::PAPER.times(rate / Rates::PAPER.total()),
        pace: Pace::Even,
        duration_ms: options.duration.as_millis() as u64,
    };
    let mut made = MadeStreams::begin(&Lsbench::new(options.users, 0), &load, BATCH_MS)?;
    let parts = shared_out(std::mem::take(&mut made.pieces), options.threads);
    let mut reaches = Vec::new();
    for _ in &parts {
        reaches.push(Reach::new(database, server)?);
    }
    let (cpu, schedule) = (process_cpu(), Schedule::begin());
    let all = std::thread::scope(|scope| {
        let threads: Vec<_> = parts
            .into_iter()
            .zip(reaches)
            .map(|(own, reach)| scope.spawn(move || push_own(own, reach, schedule)))
            .collect();
        let joined = threads.into_iter();
        let joined = joined.map(|thread| thread.join().map_err(|_| BenchError::Thread)?);
        joined.collect::<Result<Vec<Part>, BenchError>>()
    })?;
    let seconds = schedule.since(0).as_secs_f64();
    let making = made.end()?;
    let mut pushed = Pushed {
        seconds,
        cpu_seconds: (process_cpu() - cpu).saturating_sub(making).as_secs_f64(),
        ..Pushed::default()
    };
    let mut delays = Vec::new();
    for part in all {
        pushed.tuples += part.tuples;
        pushed.full += part.full;
        delays.extend(part.delays);
    }
    pushed.delays = Percentiles::of(delays);
    Ok(pushed)
}

/// What one thread has pushed.
struct Part {
    tuples: u64,
    full: u64,
    /// From the end of each batch to its acknowledgement.
    delays: Vec<Duration>,
}

/// A stream, and where its batches come from.
type Queue = (Stream, Receiver<Piece>);

/// Which streams each thread owns: likes of posts are two thirds of all tuples.
fn shared_out(pieces: Vec<Queue>, threads: usize) -> Vec<Vec<Queue>> {
    let count = threads.clamp(1, pieces.len());
    let mut parts: Vec<Vec<Queue>> = std::iter::repeat_with(Vec::new).take(count).collect();
    let mut others = 0;
    for queue in pieces {
        let part = match queue.0 {
            Stream::PostLike => 0,
            _ => {
                others += 1;
                if count > 1 {
                    1 + others % (count - 1)
                } else {
                    0
                }
            }
        };
        parts[part].push(queue);
    }
    parts
}

fn push_own(own: Vec<Queue>, mut reach: Reach<'_>, schedule: Schedule) -> Result<Part, BenchError> {
    let mut part = Part {
        tuples: 0,
        full: 0,
        delays: Vec::new(),
    };
    loop {
        for (stream, queue) in &own {
            let Ok(piece) = queue.recv() else {
                return Ok(part);
            };
            schedule.wait(piece.end_ms);
            if piece.tuples > 0 {
                part.full += reach.push(stream.name(), &piece.lines)?;
                part.tuples += piece.tuples;
            }
            reach.complete(stream.name(), piece.end_ms)?;
            part.delays.push(schedule.since(piece.end_ms));
        }
    }
}
