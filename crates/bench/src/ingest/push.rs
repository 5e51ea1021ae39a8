//! How are tuples pushed, and how fast is that?

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use jindou_engine::{Database, EngineError, TupleFormat};

use super::Options;
use super::feed::{Feed, shared_out};
use super::pace::{Pace, Runner};
use crate::BenchError;
use crate::http::{Connection, HttpError};
use crate::machine::process_cpu;
use crate::percentiles::Percentiles;

/// How long a thread waits where a stream is full.
const FULL: Duration = Duration::from_millis(1);

/// What was pushed.
#[derive(Debug, Clone, Default)]
pub(super) struct Pushed {
    pub(super) tuples: u64,
    pub(super) seconds: f64,
    /// Of all threads of the process.
    pub(super) cpu_seconds: f64,
    /// How often a stream was full.
    pub(super) full: u64,
    /// The data ended before the time was over.
    pub(super) is_short: bool,
    /// From the end of each batch by the clock to its acknowledgement, where a rate was given.
    pub(super) delays: Option<Percentiles>,
}

/// Pushes from some threads until the time is over or the data end.
///
/// # Errors
/// [`BenchError::Engine`], [`BenchError::Http`].
pub(super) fn push(
    database: &Database,
    server: Option<SocketAddr>,
    feeds: &[Feed],
    options: &Options,
) -> Result<Pushed, BenchError> {
    let parts = shared_out(feeds, options.threads);
    let pace = Pace::new(parts.len(), options.push_ms);
    let mut reaches = Vec::new();
    for _ in &parts {
        reaches.push(Reach::new(database, server)?);
    }
    let (cpu, begin) = (process_cpu(), Instant::now());
    let all = std::thread::scope(|scope| {
        let threads: Vec<_> = parts
            .iter()
            .zip(reaches)
            .enumerate()
            .map(|(number, (own, reach))| {
                let runner = pace.runner(number);
                scope.spawn(move || push_own(own, reach, &runner, (begin, options)))
            })
            .collect();
        let joined = threads.into_iter();
        let joined = joined.map(|thread| thread.join().map_err(|_| BenchError::Thread)?);
        joined.collect::<Vec<Result<Pushed, BenchError>>>()
    });
    let mut pushed = Pushed::default();
    for part in all {
        let part = part?;
        pushed.tuples += part.tuples;
        pushed.full += part.full;
        pushed.is_short |= part.is_short;
    }
    pushed.seconds = begin.elapsed().as_secs_f64();
    pushed.cpu_seconds = (process_cpu() - cpu).as_secs_f64();
    Ok(pushed)
}

/// What one thread does: a push of each of its streams, then the next one.
fn push_own(
    own: &[&Feed],
    mut reach: Reach<'_>,
    runner: &Runner<'_>,
    (begin, options): (Instant, &Options),
) -> Result<Pushed, BenchError> {
    let duration = options.duration;
    let batches = own.first().map_or(0, |feed| feed.batches.len());
    let mut pushed = Pushed::default();
    let mut next = 0;
    while next < batches && begin.elapsed() < duration {
        runner.wait(next);
        for feed in own {
            let batch = &feed.batches[next];
            if batch.tuples > 0 {
                pushed.full += reach.push(feed.stream.name(), &batch.lines)?;
                pushed.tuples += batch.tuples;
            }
        }
        next += 1;
        runner.passed(next);
    }
    for feed in own {
        let end_ms = next as u64 * options.push_ms;
        reach.complete(feed.stream.name(), end_ms)?;
    }
    pushed.is_short = next == batches && begin.elapsed() < duration;
    Ok(pushed)
}

/// How a thread reaches streams: by calls, or over a connection of its own.
pub(super) struct Reach<'d> {
    database: &'d Database,
    served: Option<(Connection, SocketAddr)>,
}

impl<'d> Reach<'d> {
    pub(super) fn new(
        database: &'d Database,
        server: Option<SocketAddr>,
    ) -> Result<Self, BenchError> {
        let open = |address| Ok::<_, HttpError>((Connection::open(address)?, address));
        Ok(Self {
            database,
            served: server.map(open).transpose()?,
        })
    }

    /// Pushes lines, again and again while the stream is full; returns how often it was.
    pub(super) fn push(&mut self, stream: &str, lines: &str) -> Result<u64, BenchError> {
        let mut full = 0;
        while !self.push_once(stream, lines)? {
            full += 1;
            std::thread::sleep(FULL);
        }
        Ok(full)
    }

    /// Says that a stream has no more before a time, without a request.
    pub(super) fn complete(&self, stream: &str, end_ms: u64) -> Result<(), BenchError> {
        Ok(self.database.heartbeat(stream, end_ms as i64)?)
    }

    /// False if the stream is full.
    fn push_once(&mut self, stream: &str, lines: &str) -> Result<bool, BenchError> {
        let Some((connection, host)) = &mut self.served else {
            let text = lines.as_bytes().to_vec();
            return match self.database.push(stream, TupleFormat::Lines, None, text) {
                Ok(_) => Ok(true),
                Err(EngineError::StreamFull { .. }) => Ok(false),
                Err(error) => Err(error.into()),
            };
        };
        let head = format!(
            "POST /streams/{stream} HTTP/1.1\r\nHost: {host}\r\n\
             Content-Type: text/tab-separated-values\r\nContent-Length: {}\r\n\r\n",
            lines.len()
        );
        connection.send(head.as_bytes())?;
        connection.send(lines.as_bytes())?;
        let mut said = Vec::new();
        match connection
            .receive(|piece| said.extend_from_slice(piece))?
            .status
        {
            200..300 => Ok(true),
            503 => Ok(false),
            status => Err(HttpError::refused(status, &said).into()),
        }
    }
}
