//! Which node holds each shard?

use jindou_model::{NodeId, ShardId, TermId};

use crate::Shards;

/// The node that holds each shard of a store. Every node has at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShardMap {
    shards: Shards,
    nodes: u32,
    /// By shard.
    holders: Box<[NodeId]>,
}

/// So many nodes cannot hold so many shards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{nodes} nodes for {shards} shards: each node holds at least one")]
pub struct MapError {
    /// Nodes asked for.
    pub nodes: u32,
    /// Shards that there are.
    pub shards: usize,
}

impl ShardMap {
    /// The shards dealt to nodes one after the other: shard s is on node s mod `nodes`.
    ///
    /// # Errors
    /// [`MapError`] if there are no nodes, or more than shards.
    pub fn dealt(shards: Shards, nodes: u32) -> Result<Self, MapError> {
        if nodes == 0 || nodes as usize > shards.count() {
            let shards = shards.count();
            return Err(MapError { nodes, shards });
        }
        let holders = shards.all().map(|shard| NodeId(shard.0 % nodes));
        Ok(Self {
            shards,
            nodes,
            holders: holders.collect(),
        })
    }

    /// The shards that are dealt.
    #[must_use]
    pub fn shards(&self) -> Shards {
        self.shards
    }

    /// All nodes, by number.
    pub fn nodes(&self) -> impl ExactSizeIterator<Item = NodeId> + Clone + use<> {
        (0..self.nodes).map(NodeId)
    }

    /// The node that holds a shard.
    #[inline]
    #[must_use]
    pub fn holder(&self, shard: ShardId) -> NodeId {
        self.holders[shard.0 as usize]
    }

    /// The node that holds the edges of a term.
    #[inline]
    #[must_use]
    pub fn node_of(&self, id: TermId) -> NodeId {
        self.holder(self.shards.owner(id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jindou_model::TermKind;

    #[test]
    fn shards_are_dealt_evenly_and_terms_are_where_their_shard_is() {
        for (bits, nodes) in [(0, 1), (2, 3), (3, 5), (4, 16), (6, 7)] {
            let shards = Shards::new(1 << bits).unwrap();
            let map = ShardMap::dealt(shards, nodes).unwrap();
            let mut held = vec![0_usize; nodes as usize];
            for shard in shards.all() {
                held[map.holder(shard).0 as usize] += 1;
            }
            let (least, most) = (held.iter().min().unwrap(), held.iter().max().unwrap());
            assert!(most - least <= 1, "{held:?}");
            for number in 0..200 {
                let id = TermId::new(TermKind::Vertex, number);
                assert_eq!(map.node_of(id), map.holder(shards.owner(id)));
            }
            assert_eq!(map.nodes().len(), nodes as usize);
        }
    }

    #[test]
    fn each_node_holds_a_shard() {
        let shards = Shards::new(4).unwrap();
        for nodes in [0, 5] {
            let refused = MapError { nodes, shards: 4 };
            assert_eq!(ShardMap::dealt(shards, nodes), Err(refused));
        }
    }
}
