//! What does a node tell the others of the base of its shards, and how does that travel?
//!
//! As bytes: `JNDSHARD`, a version, and the rest in the format of `postcard`. Who reads them takes nothing for
//! granted: arrays lie in the memory that they are said to lie in, and agree with each other.

use std::collections::BTreeMap;
use std::sync::Arc;

use jindou_fabric::remote::MemoryKey;
use jindou_model::{Direction, NodeId, PredicateId, ShardId};
use jindou_partition::Shards;
use jindou_store::{LayerKind, SegmentLayout};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::one_sided::{Publication, segment_name};

/// What an advert begins with.
const MAGIC: [u8; 8] = *b"JNDSHARD";
/// The version that is written, and the only one that is read.
const VERSION: u32 = 3;
/// Bytes before what `postcard` writes.
const HEADER_BYTES: usize = 12;

/// Says what the base of a graph holds: by predicate, a digest that is equal for two nodes where their bases have the
/// same edges of it.
pub type BaseTags = Arc<[u64]>;

/// The base of a node's shards, as other nodes need to know it: where their lists lie.
#[derive(Clone, Debug)]
pub struct Advert {
    /// Greater than those of all before of this process.
    pub number: u64,
    /// What the base holds.
    pub tags: BaseTags,
    /// Where the lists of each lie.
    pub shards: Vec<(ShardId, Publication)>,
}

/// Bytes are no advert that can be trusted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AdvertError {
    /// They are something else, or cut.
    #[error("what a node tells of its shards is damaged: {0}")]
    Malformed(&'static str),
    /// Another version of the program wrote them.
    #[error(
        "a node tells of its shards in version {found}, and this build reads version {VERSION}"
    )]
    Version {
        /// Which one.
        found: u32,
    },
}

#[derive(Serialize, Deserialize)]
struct WireAdvert {
    number: u64,
    tags: Vec<u64>,
    shards: Vec<WireShard>,
}

#[derive(Serialize, Deserialize)]
struct WireShard {
    shard: u32,
    /// Layer, predicate, direction, and where the arrays lie.
    segments: Vec<(u8, u32, u8, SegmentLayout)>,
    /// By region.
    memories: Vec<(u64, Vec<u8>)>,
}

impl Advert {
    /// The advert as bytes.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let shards = self.shards.iter();
        let shards = shards.map(|(shard, publication)| WireShard {
            shard: shard.0,
            segments: wire_segments(publication),
            memories: publication
                .memories
                .iter()
                .map(|(region, key)| (*region, key.to_bytes()))
                .collect(),
        });
        let advert = WireAdvert {
            number: self.number,
            tags: self.tags.to_vec(),
            shards: shards.collect(),
        };
        let mut bytes = MAGIC.to_vec();
        bytes.extend(VERSION.to_le_bytes());
        postcard::to_extend(&advert, bytes).expect("memory takes all that is written")
    }

    /// The advert of these bytes, which a node sent that has some of `shards`.
    ///
    /// # Errors
    /// [`AdvertError`].
    pub fn from_bytes(bytes: &[u8], from: NodeId, shards: Shards) -> Result<Self, AdvertError> {
        let malformed = AdvertError::Malformed;
        let (header, rest) = bytes
            .split_at_checked(HEADER_BYTES)
            .ok_or(malformed("it ends early"))?;
        let (magic, version) = header.split_at(MAGIC.len());
        if magic != MAGIC {
            return Err(malformed("it begins otherwise"));
        }
        let found = u32::from_le_bytes(version.try_into().expect("four bytes are left"));
        if found != VERSION {
            return Err(AdvertError::Version { found });
        }
        let (advert, left): (WireAdvert, _) =
            postcard::take_from_bytes(rest).map_err(|_| malformed("it cannot be read"))?;
        if !left.is_empty() {
            return Err(malformed("something follows it"));
        }
        let read = |shard: WireShard| {
            if shard.shard as usize >= shards.count() {
                return Err(malformed("there is no such shard"));
            }
            Ok((ShardId(shard.shard), publication(shard, from)?))
        };
        Ok(Self {
            number: advert.number,
            tags: advert.tags.into(),
            shards: advert
                .shards
                .into_iter()
                .map(read)
                .collect::<Result<_, _>>()?,
        })
    }
}

/// In one order, whatever that of a map is.
fn wire_segments(publication: &Publication) -> Vec<(u8, u32, u8, SegmentLayout)> {
    let segments = publication.segments.iter();
    let mut segments: Vec<_> = segments
        .map(|((kind, predicate, direction), layout)| {
            (*kind, predicate.0, *direction as u8, layout.clone())
        })
        .collect();
    segments
        .sort_unstable_by_key(|(kind, predicate, direction, _)| (*kind, *predicate, *direction));
    segments
}

/// What is said of one shard, if its parts agree with each other.
fn publication(shard: WireShard, from: NodeId) -> Result<Publication, AdvertError> {
    let malformed = AdvertError::Malformed;
    let mut memories = BTreeMap::new();
    for (region, key) in shard.memories {
        let key = MemoryKey::from_bytes(&key).map_err(|_| malformed("a key of a memory"))?;
        if key.node() != from {
            return Err(malformed("memory of another node"));
        }
        memories.insert(region, key);
    }
    let mut segments = FxHashMap::default();
    for (kind, predicate, direction, layout) in shard.segments {
        let kind = LayerKind::ALL.into_iter().find(|one| *one as u8 == kind);
        let directions = [Direction::Out, Direction::In];
        let direction = directions.into_iter().find(|one| *one as u8 == direction);
        let (Some(kind), Some(direction)) = (kind, direction) else {
            return Err(malformed("there is no such segment"));
        };
        let memory: Option<&MemoryKey> = memories.get(&layout.region.0);
        let is_whole = memory.is_some_and(|memory| memory.length() == layout.region_bytes);
        if !is_whole || !layout.is_sound() {
            return Err(malformed("arrays outside of their memory"));
        }
        segments.insert(
            segment_name(kind, PredicateId(predicate), direction),
            layout,
        );
    }
    Ok(Publication { segments, memories })
}

#[cfg(test)]
mod tests;
