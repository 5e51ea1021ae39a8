//! The five streams, a batch of a tenth of a second at a time.

use jindou_datagen::lsbench::{Load, Lsbench, Pace, Rates, Stream, Streams};
use jindou_engine::{Database, TupleFormat};

use super::{BATCH_MS, Options};
use crate::BenchError;

/// Lines of time, tab and statement of each stream, of one batch after the other.
pub(super) struct Feed {
    events: Streams,
    /// What is of the batch under way, in the order of [`Stream::ALL`].
    texts: [String; 5],
    tuples: u64,
    end_ms: u64,
    is_over: bool,
}

/// A batch of all streams.
pub(super) struct Batch {
    texts: [String; 5],
    pub(super) tuples: u64,
    /// Its end.
    end_ms: i64,
}

impl Feed {
    /// The streams at the rates of the paper, for some seconds.
    pub(super) fn new(data: &Lsbench, options: &Options, seconds: u64) -> Result<Self, BenchError> {
        let load = Load {
            rates: Rates::PAPER.times(options.rate),
            pace: Pace::Even,
            duration_ms: seconds * 1_000,
        };
        Ok(Self {
            events: data.streams(&load, &Stream::ALL)?,
            texts: Default::default(),
            tuples: 0,
            end_ms: BATCH_MS,
            is_over: false,
        })
    }

    /// The next batch; none after the end.
    pub(super) fn next_batch(&mut self) -> Option<Batch> {
        while !self.is_over {
            let Some(event) = self.events.next_event() else {
                self.is_over = true;
                return Some(self.take());
            };
            let complete = (event.time_ms >= self.end_ms).then(|| Batch {
                texts: std::mem::take(&mut self.texts),
                tuples: std::mem::take(&mut self.tuples),
                end_ms: self.end_ms as i64,
            });
            event.push_lines(&mut self.texts[event.stream as usize]);
            self.tuples += event.tuples().len() as u64;
            if let Some(batch) = complete {
                self.end_ms += BATCH_MS;
                return Some(batch);
            }
        }
        None
    }

    fn take(&mut self) -> Batch {
        Batch {
            texts: std::mem::take(&mut self.texts),
            tuples: std::mem::take(&mut self.tuples),
            end_ms: self.end_ms as i64,
        }
    }
}

impl Batch {
    /// Pushes its tuples, and gives how many streams had any.
    pub(super) fn push(&mut self, database: &Database) -> Result<u64, BenchError> {
        let mut batches = 0;
        for (stream, text) in Stream::ALL.iter().zip(&mut self.texts) {
            let lines = std::mem::take(text).into_bytes();
            if !lines.is_empty() {
                batches += 1;
                database.push(stream.name(), TupleFormat::Lines, None, lines)?;
            }
        }
        Ok(batches)
    }

    /// Says that it is complete: what is due is evaluated.
    pub(super) fn complete(&self, database: &Database) -> Result<(), BenchError> {
        for stream in Stream::ALL {
            database.heartbeat(stream.name(), self.end_ms)?;
        }
        Ok(())
    }
}
