//! Streams that are made while they are pushed: how, without holding them?
//!
//! A thread makes the lines of all streams in pieces of equal time and hands each to the queue of its stream.
//! Queues are bounded, so that it is never far ahead; it ends when nobody takes pieces any more.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use jindou_datagen::lsbench::{Load, Lsbench, Stream, Streams};

use crate::BenchError;
use crate::machine::thread_cpu;

/// Pieces of each stream that are made ahead, at most.
const AHEAD: usize = 32;

/// Lines of time, tab and statement of one stream and some time.
#[derive(Debug, Default)]
pub(crate) struct Piece {
    pub(crate) lines: String,
    pub(crate) tuples: u64,
    /// Its tuples are before this time.
    pub(crate) end_ms: u64,
}

/// Streams under way.
pub(crate) struct MadeStreams {
    /// The pieces of each stream, in the order of [`Stream::ALL`].
    pub(crate) pieces: Vec<(Stream, Receiver<Piece>)>,
    thread: JoinHandle<Duration>,
}

impl MadeStreams {
    /// Begins to make all streams, in pieces of so many milliseconds.
    ///
    /// # Errors
    /// [`BenchError::Datagen`].
    pub(crate) fn begin(data: &Lsbench, load: &Load, piece_ms: u64) -> Result<Self, BenchError> {
        let events = data.streams(load, &Stream::ALL)?;
        let queues = Stream::ALL.map(|stream| (stream, sync_channel(AHEAD)));
        let (mut senders, mut pieces) = (Vec::new(), Vec::new());
        for (stream, (sender, receiver)) in queues {
            senders.push(sender);
            pieces.push((stream, receiver));
        }
        let thread = std::thread::spawn(move || {
            make(events, &senders, piece_ms);
            thread_cpu()
        });
        Ok(Self { pieces, thread })
    }

    /// Waits for the end, and says how long the thread had a core. Pieces must have been taken, or their
    /// queues dropped.
    ///
    /// # Errors
    /// [`BenchError::Thread`].
    pub(crate) fn end(self) -> Result<Duration, BenchError> {
        drop(self.pieces);
        self.thread.join().map_err(|_| BenchError::Thread)
    }
}

fn make(mut events: Streams, queues: &[SyncSender<Piece>], piece_ms: u64) {
    let begin = |end_ms| {
        queues.iter().map(move |_| Piece {
            end_ms,
            ..Piece::default()
        })
    };
    let mut end_ms = piece_ms;
    let mut pieces: Vec<Piece> = begin(end_ms).collect();
    while let Some(event) = events.next_event() {
        while event.time_ms >= end_ms {
            end_ms += piece_ms;
            let complete = std::mem::replace(&mut pieces, begin(end_ms).collect());
            if !hand_over(complete, queues) {
                return;
            }
        }
        let piece = &mut pieces[event.stream as usize];
        event.push_lines(&mut piece.lines);
        piece.tuples += event.tuples().len() as u64;
    }
    hand_over(pieces, queues);
}

/// False if nobody takes them any more.
fn hand_over(pieces: Vec<Piece>, queues: &[SyncSender<Piece>]) -> bool {
    let mut all = pieces.into_iter().zip(queues);
    all.all(|(piece, queue)| queue.send(piece).is_ok())
}

/// A clock to which pieces are due: each at its end.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Schedule {
    begun: Instant,
}

impl Schedule {
    /// The streams begin now.
    pub(crate) fn begin() -> Self {
        Self {
            begun: Instant::now(),
        }
    }

    /// When a time of the streams is.
    pub(crate) fn at(&self, time_ms: u64) -> Instant {
        self.begun + Duration::from_millis(time_ms)
    }

    /// Waits until a time of the streams, if it is not over.
    pub(crate) fn wait(&self, time_ms: u64) {
        std::thread::sleep(self.at(time_ms).saturating_duration_since(Instant::now()));
    }

    /// For how long a time of the streams has been over.
    pub(crate) fn since(&self, time_ms: u64) -> Duration {
        self.at(time_ms).elapsed()
    }
}

#[cfg(test)]
mod tests {
    use jindou_datagen::lsbench::{Pace, Rates};

    use super::*;

    const LOAD: Load = Load {
        rates: Rates::PAPER,
        pace: Pace::Even,
        duration_ms: 1_000,
    };

    #[test]
    fn pieces_are_the_streams_in_equal_parts_of_time() {
        let data = Lsbench::new(100, 5);
        let made = MadeStreams::begin(&data, &LOAD, 50).unwrap();
        let (mut found, mut tuples) = (vec![String::new(); 5], 0);
        for round in 1..=20 {
            for (stream, queue) in &made.pieces {
                let piece = queue.recv().unwrap();
                assert_eq!(piece.end_ms, 50 * round);
                assert_eq!(piece.tuples, piece.lines.lines().count() as u64);
                tuples += piece.tuples;
                found[*stream as usize] += &piece.lines;
            }
        }
        assert!(made.pieces.iter().all(|(_, queue)| queue.recv().is_err()));
        made.end().unwrap();
        let mut events = data.streams(&LOAD, &Stream::ALL).unwrap();
        let (mut expected, mut count) = (vec![String::new(); 5], 0);
        while let Some(event) = events.next_event() {
            event.push_lines(&mut expected[event.stream as usize]);
            count += event.tuples().len() as u64;
        }
        assert!(found == expected && tuples == count);
    }

    #[test]
    fn nothing_more_is_made_once_nobody_takes_it() {
        let endless = Load {
            duration_ms: u64::MAX,
            ..LOAD
        };
        let made = MadeStreams::begin(&Lsbench::new(100, 5), &endless, 10).unwrap();
        assert!(made.pieces[0].1.recv().is_ok());
        made.end().unwrap();
    }
}
