//! A stream's tuples in memory: which triples lie in this stretch of time?
//!
//! A batch of a stream becomes a [`Run`]: an immutable set of timestamped triples, sorted from both
//! ends. A [`Ring`] keeps the runs of one stream in the order of time, merges them by size and
//! forgets the oldest. A [`Window`] is a stretch of one ring, or of several, asked as one graph: the
//! runs inside it as they are, those that its bounds cut by the times of their rows. So a window
//! costs nothing to make or to move, and any number of windows of any length share the same runs.
//!
//! This serves the transient slices and the stream index of Wukong+S (sections 4.1 and 4.2).

mod access;
mod build;
mod frame;
mod guide;
mod matches;
mod members;
mod merge;
mod pack;
mod retain;
mod ring;
mod run;
mod side;
mod terms;
#[cfg(test)]
mod tests;
mod times;
mod view;
mod walk;

use jindou_model::{PredicateId, TermId};

pub use ring::{Merge, Merged, Ring, RingOptions, RingSnapshot};
pub use run::Run;
pub use view::{Window, WindowCounts};

/// A triple of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StreamTuple {
    /// When it holds, in milliseconds since a moment that all streams share.
    pub time_ms: i64,
    /// The subject.
    pub subject: TermId,
    /// The predicate.
    pub predicate: PredicateId,
    /// The object.
    pub object: TermId,
}

/// A stretch of time: `from_ms` is inside, `until_ms` is not. Empty unless the first is smaller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// The first millisecond inside.
    pub from_ms: i64,
    /// The first one after it that is outside.
    pub until_ms: i64,
}

/// What a run or a ring does not take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WindowError {
    /// The id stands for no term, or for one that only a query knows.
    #[error("{0:?} is no term that a stream can hold")]
    NotATerm(TermId),
    /// A run numbers its rows in 32 bits.
    #[error("a batch of {tuples} tuples is too large (at most {limit})")]
    TooManyTuples {
        /// How many it has.
        tuples: usize,
        /// The most that is possible.
        limit: usize,
    },
    /// A run begins before the last one that was appended ends.
    #[error("a run begins at {first_ms} ms, before the end of the last one at {last_ms} ms")]
    OutOfOrder {
        /// The first time of the run.
        first_ms: i64,
        /// The last time that was appended before.
        last_ms: i64,
    },
}
