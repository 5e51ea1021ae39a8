//! Bulk load by several nodes: each has some of the quads at first and its part of the store at the end.
//!
//! What comes out is what [`build`](super::build) makes of all quads and [`Split`](crate::Split) of that, with the
//! same ids, but no node ever holds the whole.

mod exchange;

use jindou_partition::ShardMap;

pub use exchange::{Exchange, ExchangeError};

use super::BulkSink;
use crate::{Base, StoreError};

/// Bytes that a node sends in one call of its [`Exchange`], and gets, about; unless said otherwise.
pub const ROUND_BYTES: usize = 64 << 20;

/// Which part of a store a node loads.
#[derive(Clone, Copy, Debug)]
pub struct DealtPart<'a> {
    /// Which node holds which shard: the same at all nodes, of as many nodes as exchange.
    pub map: &'a ShardMap,
    /// The node's name, which the part says.
    pub name: &'a str,
    /// Bytes that the node sends in one call of its [`Exchange`], and gets, about: what it holds of edges on their way.
    pub round_bytes: usize,
}

impl<'a> DealtPart<'a> {
    /// The part of a node of this name, in rounds of [`ROUND_BYTES`].
    #[must_use]
    pub fn new(map: &'a ShardMap, name: &'a str) -> Self {
        Self {
            map,
            name,
            round_bytes: ROUND_BYTES,
        }
    }
}

/// Makes the node's part of the store of what the sinks of all nodes collected: all call it together. What
/// one of them fails at, all fail at.
///
/// `documents` is the number of documents that the store has seen with this load; the largest that a node says counts.
///
/// # Errors
/// [`StoreError::TooLarge`] beyond 2^32 - 1 distinct vertices or literals in all; [`StoreError::Exchange`] where the
/// nodes lose each other; [`StoreError::OtherNode`] where another one fails.
///
/// # Panics
/// If the map has another number of nodes than the exchange.
pub fn build_part(
    sinks: Vec<BulkSink>,
    documents: u64,
    part: DealtPart<'_>,
    exchange: &dyn Exchange,
) -> Result<Base, StoreError> {
    let _all = (sinks, documents, part, exchange);
    todo!()
}
