//! How do results of a query become messages of a broker?
//!
//! A thread for each sink takes results from the log of its query, some at a time, and waits until the
//! broker has them. The log waits for nobody: what it dropped meanwhile is counted.

use std::time::{Duration, Instant};

use jindou_engine::results::{result_id, result_json, unsent_json};
use jindou_engine::{ContinuousResult, ContinuousResults, Delivered, NextResult, ResultSink};
use parking_lot::Mutex;

use crate::client;
use crate::error::BrokerError;
use crate::status::{Connection, SinkStatus};
use crate::stop::{Stop, retry};

/// Results that are sent together, and bytes of these.
const MOST_RESULTS: usize = 64;
const MOST_BYTES: usize = 4 << 20;
/// The largest message: what a broker of Kafka takes, less its key and headers.
const MOST_MESSAGE_BYTES: usize = 900 << 10;
/// How long to wait for a result before looking whether to go on.
pub(crate) const LOOK: Duration = Duration::from_millis(100);

/// Between two syncs of how far a sink is.
const SETTLE: Duration = Duration::from_millis(100);

/// A sink that gets results.
pub(crate) struct SinkJob {
    pub(crate) sink: ResultSink,
    pub(crate) stop: Stop,
    pub(crate) status: Mutex<SinkStatus>,
    pub(crate) settled: Mutex<Settled>,
}

/// A result as a message.
pub(crate) struct SinkMessage {
    /// `INSTANT:SEQUENCE`.
    pub(crate) id: String,
    pub(crate) instant_ms: i64,
    /// The object that server-sent events have as data.
    pub(crate) text: Vec<u8>,
}

/// Results that are sent together.
#[derive(Default)]
pub(crate) struct Results {
    pub(crate) messages: Vec<SinkMessage>,
    bytes: usize,
    last: u64,
    missed: u64,
    unsent: u64,
}

impl SinkJob {
    /// Delivers until the sink or its query is dropped or the server stops.
    pub(crate) fn run(&self) {
        let done = || self.status.lock().results;
        retry(&self.stop, &|| client::write(self), &done, &|error| {
            self.fail(error)
        });
    }

    /// Notes that all is well.
    pub(crate) fn connected(&self) {
        let mut status = self.status.lock();
        status.error = None;
        status.connection = Connection::Connected;
    }

    fn fail(&self, error: String) {
        let mut status = self.status.lock();
        if status.connection != Connection::Failed {
            let (query, sink) = (self.sink.query(), self.sink.name());
            tracing::warn!(query, sink, error, "results are not delivered");
        }
        status.connection = Connection::Failed;
        status.error = Some(error);
    }

    /// Some results that come next; none where none come soon.
    ///
    /// # Errors
    /// [`BrokerError::Gone`]; [`BrokerError::Stopped`].
    pub(crate) fn next_results(
        &self,
        results: &mut ContinuousResults,
    ) -> Result<Results, BrokerError> {
        let mut next = Results::default();
        let mut wait = LOOK;
        while next.messages.len() < MOST_RESULTS && next.bytes < MOST_BYTES {
            self.stop.check()?;
            match results.next_within(wait) {
                NextResult::Result(result, missed) => {
                    next.push(self.sink.query(), &result, missed);
                }
                NextResult::Over if next.messages.is_empty() => return Err(BrokerError::Gone),
                _ => break,
            }
            wait = Duration::ZERO;
        }
        if next.messages.is_empty() {
            self.settle_after(Duration::ZERO);
        }
        Ok(next)
    }

    /// Notes that the broker has some results.
    pub(crate) fn delivered(&self, results: &Results) {
        if results.messages.is_empty() {
            return;
        }
        let missed = self.sink.delivered().missed + results.missed;
        let sequence = results.last;
        if let Err(error) = self.sink.deliver(Delivered { sequence, missed }) {
            // They are delivered again after a restart, with the same ids.
            tracing::debug!(%error, "how far a sink is could not be noted");
        }
        self.settled.lock().is_behind = true;
        // At once after a start, so that one that is killed again and again goes on all the same.
        self.settle_after(SETTLE);
        let mut status = self.status.lock();
        status.error = None;
        status.connection = Connection::Connected;
        status.results += results.messages.len() as u64;
        status.unsent += results.unsent;
    }
}

/// Whether it is on the device how far a sink is.
#[derive(Default)]
pub(crate) struct Settled {
    /// When it was last seen to that.
    at: Option<Instant>,
    /// More was delivered since.
    is_behind: bool,
}

impl SinkJob {
    /// Has it be on the device how far the sink is, unless that was so a moment ago.
    fn settle_after(&self, time: Duration) {
        let mut settled = self.settled.lock();
        if !settled.is_behind || settled.at.is_some_and(|at| at.elapsed() < time) {
            return;
        }
        *settled = Settled {
            at: Some(Instant::now()),
            is_behind: false,
        };
        if let Err(error) = self.sink.settle() {
            tracing::debug!(%error, "how far a sink is could not be synced");
        }
    }
}

impl Results {
    fn push(&mut self, query: &str, result: &ContinuousResult, missed: u64) {
        let text = result_json(query, result, MOST_MESSAGE_BYTES).unwrap_or_else(|error| {
            self.unsent += 1;
            unsent_json(query, result, &error)
        });
        self.bytes += text.len();
        self.last = result.sequence;
        self.missed += missed;
        self.messages.push(SinkMessage {
            id: result_id(result),
            instant_ms: result.instant_ms,
            text,
        });
    }
}
