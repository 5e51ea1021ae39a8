//! The five streams, a batch of a tenth of a second at a time.

use jindou_datagen::lsbench::{Load, Lsbench, Pace, Rates, Stream, Streams};
use jindou_engine::{Database, TupleFormat};

use super::{BATCH_MS, Options};
use crate::BenchError;

/// Lines of time, tab and statement of each stream, of one batch after the other.
pub(super) struct Feed {
    events: Streams,
    under_way: Batch,
    is_over: bool,
}

/// A batch of all streams.
#[derive(Default)]
pub(super) struct Batch {
    /// In the order of [`Stream::ALL`].
    texts: [String; 5],
    tuples: [u64; 5],
    /// Its end.
    pub(super) end_ms: i64,
}

impl Feed {
    /// The streams at the rates of the paper, for some seconds.
    pub(super) fn new(data: &Lsbench, options: &Options, seconds: u64) -> Result<Self, BenchError> {
        Self::of(data, options, seconds, &Stream::ALL)
    }

    /// The same of some streams.
    pub(super) fn of(
        data: &Lsbench,
        options: &Options,
        seconds: u64,
        streams: &[Stream],
    ) -> Result<Self, BenchError> {
        let load = Load {
            rates: Rates::PAPER.times(options.rate),
            pace: Pace::Even,
            duration_ms: seconds * 1_000,
        };
        Ok(Self {
            events: data.streams(&load, streams)?,
            under_way: Batch::until(BATCH_MS as i64),
            is_over: false,
        })
    }

    /// The next batch; none after the end.
    pub(super) fn next_batch(&mut self) -> Option<Batch> {
        while !self.is_over {
            let Some(event) = self.events.next_event() else {
                self.is_over = true;
                return Some(std::mem::take(&mut self.under_way));
            };
            let end_ms = self.under_way.end_ms;
            let next = Batch::until(end_ms + BATCH_MS as i64);
            let is_complete = event.time_ms as i64 >= end_ms;
            let complete = is_complete.then(|| std::mem::replace(&mut self.under_way, next));
            let stream = event.stream as usize;
            event.push_lines(&mut self.under_way.texts[stream]);
            self.under_way.tuples[stream] += event.tuples().len() as u64;
            if complete.is_some() {
                return complete;
            }
        }
        None
    }
}

impl Batch {
    fn until(end_ms: i64) -> Self {
        Self {
            end_ms,
            ..Self::default()
        }
    }

    /// Tuples of all streams.
    pub(super) fn tuples(&self) -> u64 {
        self.tuples.iter().sum()
    }

    /// Bytes of all lines that are not pushed yet.
    pub(super) fn text_bytes(&self) -> u64 {
        self.texts.iter().map(|text| text.len() as u64).sum()
    }

    /// Pushes the tuples of a stream; false if there are none.
    pub(super) fn push_of(
        &mut self,
        stream: Stream,
        database: &Database,
    ) -> Result<bool, BenchError> {
        let lines = std::mem::take(&mut self.texts[stream as usize]).into_bytes();
        if lines.is_empty() {
            return Ok(false);
        }
        database.push(stream.name(), TupleFormat::Lines, None, lines)?;
        Ok(true)
    }

    /// Says that a stream's batch is complete: what is due is evaluated.
    pub(super) fn complete_of(
        &self,
        stream: Stream,
        database: &Database,
    ) -> Result<(), BenchError> {
        Ok(database.heartbeat(stream.name(), self.end_ms)?)
    }

    /// Pushes its tuples, and gives how many streams had any.
    pub(super) fn push(&mut self, database: &Database) -> Result<u64, BenchError> {
        let mut batches = 0;
        for stream in Stream::ALL {
            batches += u64::from(self.push_of(stream, database)?);
        }
        Ok(batches)
    }

    /// Says that it is complete: what is due is evaluated.
    pub(super) fn complete(&self, database: &Database) -> Result<(), BenchError> {
        let mut streams = Stream::ALL.into_iter();
        streams.try_for_each(|stream| self.complete_of(stream, database))
    }
}
