//! Which shard owns this?
//!
//! A store has V virtual shards, a power of two that is fixed when it is created. Vertices and
//! dictionary literals are dealt by their numbers: number n is on shard n mod V, so that those of a
//! characteristic set, whose numbers follow one another, are spread evenly, and a row within a shard
//! is a subtraction and a shift. Inline values have no numbers and go by a hash of the id. A [`ShardMap`] says which node holds each shard.

#![forbid(unsafe_code)]

mod map;
mod shards;
mod split;

pub use map::{MapError, ShardMap};
pub use shards::{MOST_SHARDS, Shards, ShardsError};
pub use split::{Part, Split};
