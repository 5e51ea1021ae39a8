//! How are the streams pushed to a server at the pace of the clock?

use std::net::SocketAddr;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use jindou_datagen::lsbench::{Load, Lsbench, Pace, Rates, Stream};

use super::super::{BATCH_MS, Options};
use crate::BenchError;
use crate::http::{Connection, HttpError};
use crate::made::{MadeStreams, Piece, Schedule};

/// Milliseconds of a push: several make a batch, as from a source that does not wait for a whole one.
const PIECE_MS: u64 = 20;
const _: () = assert!(BATCH_MS.is_multiple_of(PIECE_MS));

/// A request that says that a batch of a stream is complete.
pub(super) struct Mark {
    pub(super) stream: Stream,
    pub(super) end_ms: u64,
    pub(super) sent: Instant,
}

/// What was pushed.
pub(super) struct Fed {
    pub(super) schedule: Schedule,
    pub(super) tuples: u64,
    pub(super) marks: Vec<Mark>,
    /// From when each push was due to its acknowledgement.
    pub(super) pushing: Vec<Duration>,
    /// From when a request was sent that completes a batch to its answer, which evaluations precede.
    pub(super) completing: Vec<Duration>,
}

/// Pushes all streams to the end, each over a connection of its own.
pub(super) fn push(
    server: SocketAddr,
    data: &Lsbench,
    options: &Options,
) -> Result<Fed, BenchError> {
    let load = Load {
        rates: Rates::PAPER.times(options.rate),
        pace: Pace::Even,
        duration_ms: options.seconds * 1_000,
    };
    let mut made = MadeStreams::begin(data, &load, PIECE_MS)?;
    let pieces = std::mem::take(&mut made.pieces);
    let mut connections = Vec::new();
    for _ in &pieces {
        connections.push(Connection::open(server)?);
    }
    let schedule = Schedule::begin();
    let parts = std::thread::scope(|scope| {
        let threads: Vec<_> = pieces
            .into_iter()
            .zip(connections)
            .map(|((stream, queue), connection)| {
                let source = SourceOf {
                    stream,
                    connection,
                    server,
                    schedule,
                };
                scope.spawn(move || source.push_all(&queue))
            })
            .collect();
        let joined = threads.into_iter();
        let joined = joined.map(|thread| thread.join().map_err(|_| BenchError::Thread)?);
        joined.collect::<Result<Vec<Fed>, BenchError>>()
    })?;
    made.end()?;
    let mut all = Fed::new(schedule);
    for part in parts {
        all.tuples += part.tuples;
        all.marks.extend(part.marks);
        all.pushing.extend(part.pushing);
        all.completing.extend(part.completing);
    }
    Ok(all)
}

impl Fed {
    fn new(schedule: Schedule) -> Self {
        Self {
            schedule,
            tuples: 0,
            marks: Vec::new(),
            pushing: Vec::new(),
            completing: Vec::new(),
        }
    }
}

/// What pushes one stream.
struct SourceOf {
    stream: Stream,
    connection: Connection,
    server: SocketAddr,
    schedule: Schedule,
}

impl SourceOf {
    fn push_all(mut self, queue: &Receiver<Piece>) -> Result<Fed, BenchError> {
        let mut fed = Fed::new(self.schedule);
        while let Ok(piece) = queue.recv() {
            self.schedule.wait(piece.end_ms);
            if piece.tuples > 0 {
                self.send(&format!("/streams/{}", self.stream.name()), &piece.lines)?;
                fed.tuples += piece.tuples;
            }
            fed.pushing.push(self.schedule.since(piece.end_ms));
            if piece.end_ms.is_multiple_of(BATCH_MS) {
                let sent = Instant::now();
                let (stream, end_ms) = (self.stream, piece.end_ms);
                let path = format!("/streams/{}/heartbeat?time={end_ms}", stream.name());
                self.send(&path, "")?;
                fed.completing.push(sent.elapsed());
                fed.marks.push(Mark {
                    stream,
                    end_ms,
                    sent,
                });
            }
        }
        Ok(fed)
    }

    fn send(&mut self, path: &str, lines: &str) -> Result<(), BenchError> {
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: {}\r\nContent-Type: text/tab-separated-values\r\n\
             Content-Length: {}\r\n\r\n",
            self.server,
            lines.len()
        );
        let mut request = head.into_bytes();
        request.extend_from_slice(lines.as_bytes());
        self.connection.send(&request)?;
        let mut said = Vec::new();
        let answer = self
            .connection
            .receive(|piece| said.extend_from_slice(piece))?;
        match answer.status {
            200..300 => Ok(()),
            status => Err(HttpError::refused(status, &said).into()),
        }
    }
}
