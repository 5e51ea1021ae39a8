//! How is a source or a sink?

use std::collections::{BTreeMap, VecDeque};

use serde::Serialize;

/// Messages that could not be read and are kept, at most.
const MOST_REFUSED: usize = 16;
/// What is kept of one's text and of why it was refused, in bytes each.
const SHOWN_BYTES: usize = 200;

/// Whether messages can go through.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Connection {
    /// It is being made.
    #[default]
    Connecting,
    /// They can.
    Connected,
    /// The engine takes nothing for now, as while a stream is full.
    Waiting,
    /// It failed, and is tried again.
    Failed,
    /// It is not tried: the error says why.
    Refused,
}

/// How far a partition was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Position {
    /// The offset of the next message.
    pub next_offset: i64,
    /// The offset after the last message that the broker has, when it was last asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end_offset: Option<i64>,
}

/// The pages of an event stream that are known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Pages {
    /// Those of which all was taken and that will never change.
    pub done: u64,
    /// Those that were read, and are asked for again.
    pub open: u64,
    /// Those that are yet to be read.
    pub waiting: u64,
}

/// A message that could not be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RefusedMessage {
    /// Where the broker has it: a topic, and of Kafka the partition and the offset.
    pub place: String,
    /// Why.
    pub error: String,
    /// The beginning of its text.
    pub text: String,
}

/// How a source is, since it was connected first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SourceStatus {
    /// Whether messages come.
    pub connection: Connection,
    /// What went wrong last, unless all is well again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Messages that were read.
    pub messages: u64,
    /// Of these, those that were no events.
    pub refused: u64,
    /// Messages that the broker had deleted before they were read.
    pub lost: u64,
    /// Messages that the broker has and that were not read, when it was last asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lag: Option<u64>,
    /// By the numbers of partitions.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub partitions: BTreeMap<i32, Position>,
    /// Of an event stream, how many of its pages are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pages: Option<Pages>,
    /// The last that were no events.
    pub last_refused: VecDeque<RefusedMessage>,
}

/// How a sink is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SinkStatus {
    /// Whether results go.
    pub connection: Connection,
    /// What went wrong last, unless all is well again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Results that the broker took, since the sink was connected first.
    pub results: u64,
    /// Of these, those in whose place an error went, as they were too long.
    pub unsent: u64,
}

impl SourceStatus {
    pub(crate) fn note_lag(&mut self) {
        let behind =
            |at: &Position| Some(u64::try_from(at.end_offset? - at.next_offset).unwrap_or(0));
        self.lag = self.partitions.values().map(behind).sum();
    }

    pub(crate) fn refuse(&mut self, place: String, error: &str, text: &[u8]) {
        self.refused += 1;
        if self.last_refused.len() >= MOST_REFUSED {
            self.last_refused.pop_front();
        }
        self.last_refused.push_back(RefusedMessage {
            place,
            error: error[..error.floor_char_boundary(SHOWN_BYTES)].to_owned(),
            text: String::from_utf8_lossy(&text[..text.len().min(SHOWN_BYTES)]).into_owned(),
        });
    }
}
