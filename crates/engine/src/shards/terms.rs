//! Which part of the dictionary does a logical node have?
//!
//! The strings of the ids whose shards it holds, and the ids of the terms whose hashes are those of its
//! shards. The strings of all nodes lie in one store; each is kept from reading those of others.

use std::sync::Arc;

use jindou_dictionary::hash;
use jindou_exec::{KeyKind, Keys, TermSource};
use jindou_model::{IdEpoch, NodeId, TermId, Unavailable};
use jindou_partition::ShardMap;

use crate::graph::StoredGraph;

/// The part that one node has.
pub(super) struct TermPart {
    graph: Arc<StoredGraph>,
    map: ShardMap,
    node: NodeId,
}

impl TermPart {
    pub(super) fn new(graph: &Arc<StoredGraph>, map: &ShardMap, node: NodeId) -> Self {
        Self {
            graph: Arc::clone(graph),
            map: map.clone(),
            node,
        }
    }

    /// # Panics
    /// If another node has the string: nobody asks this one then.
    fn check_id(&self, id: TermId) {
        let holder = self.map.node_of(id);
        assert_eq!(holder, self.node, "another node has the string of {id:?}");
    }

    /// # Panics
    /// If another node knows which id it has.
    fn check_key(&self, key: &[u8]) {
        let holder = self.map.holder(self.map.shards().of_hash(hash(key)));
        assert_eq!(holder, self.node, "another node knows the id of {key:?}");
    }
}

impl TermSource for TermPart {
    fn epoch(&self) -> IdEpoch {
        self.graph.epoch()
    }

    fn has(&self, id: TermId) -> bool {
        self.graph.has(id)
    }

    fn push_key(&self, id: TermId, key: &mut Vec<u8>) -> Result<(), Unavailable> {
        self.check_id(id);
        self.graph.push_key(id, key)
    }

    fn lookup(&self, key: &[u8], literal: bool) -> Result<Option<TermId>, Unavailable> {
        self.check_key(key);
        self.graph.lookup(key, literal)
    }

    fn push_keys(
        &self,
        ids: &[TermId],
        most_bytes: usize,
        keys: &mut Keys,
    ) -> Result<usize, Unavailable> {
        ids.iter().for_each(|id| self.check_id(*id));
        self.graph.push_keys(ids, most_bytes, keys)
    }

    fn lookup_keys(&self, keys: &Keys, ids: &mut Vec<Option<TermId>>) -> Result<(), Unavailable> {
        let some = keys.iter().filter(|(_, kind)| *kind != KeyKind::None);
        some.for_each(|(key, _)| self.check_key(key));
        self.graph.lookup_keys(keys, ids)
    }
}
