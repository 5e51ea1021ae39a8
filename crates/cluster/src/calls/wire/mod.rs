//! How do calls of shards, and their answers, travel as bytes?
//!
//! All numbers are little-endian, and nothing is padded. A message begins with
//!
//! | bytes | what |
//! |---|---|
//! | 4 | `JNDQ`, a request, or `JNDA`, an answer |
//! | 4 | version |
//! | 8 | number of the request, in all versions |
//! | 4 | kind: which call, or which answer |
//!
//! and a request goes on with
//!
//! | bytes | what |
//! |---|---|
//! | 8 | name of the snapshot |
//! | 4 | shards that are read; 0 where each row is looked for in the shard of its key |
//! | 4 each | these shards |
//! | 4 | rows; 0 of a call that has none |
//!
//! What follows depends on the kind, in the order of the fields of [`Call`] and [`Answer`]. An id has
//! eight bytes, a predicate, a row and each count of something four. A graph is its kind, and then its
//! ids: those of each row without their count. Sets of ids are a count of ranges and both ends of each;
//! where there may be none, the count is 2^32 - 1 then. Keys of terms are the length of each in four bytes, and then
//! all of their bytes. An end of a pattern is 0, or 1 and what it is; a
//! column of quads is 0 and a value, or 1 and a value of each.

mod decode;
mod encode;
mod error;
#[cfg(test)]
mod tests;

#[cfg(doc)]
use super::words::{Answer, Call};

pub(super) use self::decode::{number_of_answer, number_of_request};
pub(super) use self::encode::set_number;
pub(super) use self::error::CallError;

const REQUEST: [u8; 4] = *b"JNDQ";
const ANSWER: [u8; 4] = *b"JNDA";
/// The version that is written, and the only one that is read.
const VERSION: u32 = 5;
/// Where the number of a request is, and what follows it.
const NUMBER: std::ops::Range<usize> = 8..16;
/// Stands for a set that is not given.
const NO_RANGES: u32 = u32::MAX;

/// Kinds of requests.
mod call {
    pub(super) const MEMBERS: u32 = 1;
    pub(super) const EXPAND: u32 = 2;
    pub(super) const PLACES: u32 = 3;
    pub(super) const CONTAINS: u32 = 4;
    pub(super) const DEGREES: u32 = 5;
    pub(super) const GRAPHS_OF: u32 = 6;
    pub(super) const MATCHES: u32 = 7;
    pub(super) const QUADS: u32 = 8;
    pub(super) const KEYS: u32 = 9;
    pub(super) const CANDIDATES: u32 = 10;
}

/// Kinds of answers.
mod answer {
    pub(super) const MEMBERS: u32 = 1;
    pub(super) const EXPANDED: u32 = 2;
    pub(super) const PLACES: u32 = 3;
    pub(super) const CONTAINED: u32 = 4;
    pub(super) const DEGREES: u32 = 5;
    pub(super) const GRAPHS_OF: u32 = 6;
    pub(super) const PAGE: u32 = 7;
    pub(super) const NOT_NOW: u32 = 8;
    pub(super) const NEVER: u32 = 9;
    pub(super) const REFUSED: u32 = 10;
    pub(super) const GONE: u32 = 11;
    pub(super) const KEYS: u32 = 12;
    pub(super) const CANDIDATES: u32 = 13;
}

/// Kinds of graphs.
mod graph {
    pub(super) const DEFAULT: u32 = 0;
    pub(super) const ONE: u32 = 1;
    pub(super) const SOME: u32 = 2;
    pub(super) const NAMED: u32 = 3;
    pub(super) const UNION: u32 = 4;
    pub(super) const EACH: u32 = 5;
}

/// Kinds of what is known of a vertex, of precisions and of places.
mod kind {
    pub(super) const TYPE: u32 = 0;
    pub(super) const HAS: u32 = 1;

    pub(super) const EXACT: u32 = 0;
    pub(super) const FILTER: u32 = 1;
    pub(super) const FILTER_OF: u32 = 2;

    pub(super) const START: u32 = 0;
    pub(super) const AFTER: u32 = 1;
    pub(super) const AT: u32 = 2;
    /// Of an answer: there is nothing more.
    pub(super) const END: u32 = 3;

    pub(super) const SAME: u32 = 0;
    pub(super) const EACH: u32 = 1;
}
