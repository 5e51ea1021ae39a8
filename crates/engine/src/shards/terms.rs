//! Which part of the dictionary does a node have?
//!
//! The strings of the ids whose shards it holds, those that every node knows, for the hashes of its shards which ids
//! they may have, and in which order the strings of all are: that is what the part of a store has. A whole dictionary answers for any; tests have nodes with a
//! whole one keep from reading the strings of others.

use std::sync::Arc;

use jindou_exec::{Keys, TermPart, TermSource, TextOrder};
use jindou_model::{IdEpoch, NodeId, TermId, Unavailable};
use jindou_partition::ShardMap;

use crate::graph::StoredGraph;
use crate::keys::push_keys;

impl TermPart for StoredGraph {
    fn epoch(&self) -> IdEpoch {
        self.snapshot.epoch()
    }

    fn has(&self, id: TermId) -> bool {
        self.snapshot.knows(id)
    }

    fn has_key(&self, id: TermId) -> bool {
        self.snapshot.base().has_key(id)
    }

    fn push_keys(
        &self,
        ids: &[TermId],
        most_bytes: usize,
        keys: &mut Keys,
    ) -> Result<usize, Unavailable> {
        Ok(push_keys(&self.snapshot, ids, most_bytes, keys))
    }

    fn push_candidates(
        &self,
        hash: u64,
        literal: bool,
        ids: &mut Vec<TermId>,
    ) -> Result<(), Unavailable> {
        self.snapshot.push_candidates(hash, literal, ids);
        Ok(())
    }

    fn find_name(&self, key: &[u8]) -> Option<TermId> {
        // In a whole dictionary any vertex would be found: tests are to ask for them.
        self.snapshot.base().node_part()?;
        self.snapshot.find_name(key)
    }

    fn text_order(&self) -> Option<Arc<dyn TextOrder>> {
        TermSource::text_order(self)
    }
}

/// The part that one node would have of a whole dictionary.
pub(super) struct PartOfWhole {
    graph: Arc<StoredGraph>,
    map: ShardMap,
    node: NodeId,
}

impl PartOfWhole {
    pub(super) fn new(graph: &Arc<StoredGraph>, map: &ShardMap, node: NodeId) -> Self {
        Self {
            graph: Arc::clone(graph),
            map: map.clone(),
            node,
        }
    }
}

impl TermPart for PartOfWhole {
    fn epoch(&self) -> IdEpoch {
        TermSource::epoch(&*self.graph)
    }

    fn has(&self, id: TermId) -> bool {
        TermSource::has(&*self.graph, id)
    }

    fn has_key(&self, id: TermId) -> bool {
        self.map.node_of(id) == self.node
    }

    fn push_keys(
        &self,
        ids: &[TermId],
        most_bytes: usize,
        keys: &mut Keys,
    ) -> Result<usize, Unavailable> {
        let other = ids.iter().find(|id| !self.has_key(**id));
        assert_eq!(other, None, "another node has the string");
        TermPart::push_keys(&*self.graph, ids, most_bytes, keys)
    }

    fn push_candidates(
        &self,
        hash: u64,
        literal: bool,
        ids: &mut Vec<TermId>,
    ) -> Result<(), Unavailable> {
        let holder = self.map.holder(self.map.shards().of_hash(hash));
        assert_eq!(holder, self.node, "another node knows the ids of a hash");
        self.graph.push_candidates(hash, literal, ids)
    }

    fn find_name(&self, _: &[u8]) -> Option<TermId> {
        None
    }

    /// As a part knows that of all.
    fn text_order(&self) -> Option<Arc<dyn TextOrder>> {
        TermSource::text_order(&*self.graph)
    }
}
