//! What are a term, an id, a triple, a shard, a snapshot number?
//!
//! A [`TermId`] is 64 bits with the kind of the term in its four top bits: a vertex (an IRI or a
//! blank node), a literal of the dictionary, a predicate that is not also a vertex, or a value
//! held inline because its lexical form can be given back exactly.
#![forbid(unsafe_code)]

mod access;
mod blocks;
mod id;
pub mod inline;
pub mod key;
mod neighbours;
mod patched;
mod printable;
mod ranges;
mod sorted_set;
mod text_place;

pub use access::{
    Counted, Cursor, EndsAsked, GraphRef, KindCount, Lists, Membership, Pattern, Precision,
    Unavailable, Visit,
};
pub use id::{
    Direction, IdEpoch, IdQuad, NodeId, PAYLOAD_BITS, PredicateId, ShardId, SnapshotNumber, TermId,
    TermKind,
};
pub use neighbours::{Narrow, Neighbours};
pub use patched::{Edge, EdgeRun, Patched, Unchanged};
pub use printable::{is_printable, printable};
pub use ranges::IdRanges;
pub use sorted_set::{Change, SortedSet};
pub use text_place::{TextKind, TextPlace};
