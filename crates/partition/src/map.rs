//! Which node holds each shard?

use jindou_model::{NodeId, ShardId, TermId};

use crate::Shards;

/// The node that holds each shard of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShardMap {
    shards: Shards,
    nodes: u32,
    /// How many of these hold any.
    holding: u32,
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
        // More than there may be are refused, and not counted up.
        let most = nodes.min(shards.count() as u32 + 1);
        let all: Vec<NodeId> = (0..most).map(NodeId).collect();
        let map = Self::dealt_to(shards, nodes, &all);
        map.map_err(|error| MapError { nodes, ..error })
    }

    /// The shards dealt to some of so many nodes, as [`ShardMap::dealt`]; others hold none.
    ///
    /// # Errors
    /// [`MapError`] if there are none to hold any, or more than shards.
    ///
    /// # Panics
    /// If there are not so many nodes.
    pub fn dealt_to(shards: Shards, nodes: u32, holders: &[NodeId]) -> Result<Self, MapError> {
        if holders.is_empty() || holders.len() > shards.count() {
            return Err(MapError {
                nodes: holders.len() as u32,
                shards: shards.count(),
            });
        }
        assert!(
            holders.iter().all(|node| node.0 < nodes),
            "one of the nodes"
        );
        let dealt = shards.all().zip(holders.iter().cycle());
        Ok(Self {
            shards,
            nodes,
            holding: holders.len() as u32,
            holders: dealt.map(|(_, holder)| *holder).collect(),
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

    /// How many nodes hold shards.
    #[must_use]
    pub fn holding(&self) -> u32 {
        self.holding
    }

    /// Whether a node holds shards.
    #[must_use]
    pub fn holds(&self, node: NodeId) -> bool {
        self.holding_nodes().contains(&node)
    }

    /// The nodes that hold shards, each once.
    #[must_use]
    pub fn holding_nodes(&self) -> &[NodeId] {
        // They are dealt in turn.
        &self.holders[..self.holding as usize]
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
    fn nodes_that_hold_none_are_passed_over() {
        let shards = Shards::new(8).unwrap();
        let holders = [NodeId(0), NodeId(3)];
        let map = ShardMap::dealt_to(shards, 5, &holders).unwrap();
        let held: Vec<u32> = shards.all().map(|shard| map.holder(shard).0).collect();
        assert_eq!(held, [0, 3, 0, 3, 0, 3, 0, 3]);
        let holds: Vec<bool> = map.nodes().map(|node| map.holds(node)).collect();
        assert_eq!(holds, [true, false, false, true, false]);
        assert_eq!(map.holding(), 2);
        let none = MapError {
            nodes: 0,
            shards: 8,
        };
        assert_eq!(ShardMap::dealt_to(shards, 5, &[]), Err(none));
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
