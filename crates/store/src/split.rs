//! How is a store split into parts, one for each node of a cluster?
//!
//! Of each segment a part has the rows of the keys whose shards its node holds, and of the dictionary the strings of
//! the ids whose shards it holds, which ids may have the hashes of its shards, and in which order all texts are. Ids and
//! the number of the snapshot stay: nodes with parts and nodes with whole copies of the store have the same snapshot.

use jindou_model::{Direction, NodeId, SortedSet, TermId};
use jindou_partition::{ShardMap, Shards};

use crate::StoreError;
use crate::delta::{Snapshot, Transaction};
use crate::directory::Directory;
use crate::durable::DurableStore;
use crate::layer::{Layer, LayerKind};
use crate::node_part::{NodePart, WholeFigures, residues_of};
use crate::segment::Segment;
use crate::tables::TermTables;

/// A store that is being split.
pub struct Split<'a> {
    from: &'a Directory,
    snapshot: &'a Snapshot,
    map: ShardMap,
    whole: WholeFigures,
}

impl<'a> Split<'a> {
    /// Begins to split the store of a directory, whose snapshot this is: nobody may write it meanwhile.
    ///
    /// Costs a pass over all edges and all terms. `done` gets the edges of each predicate once these are read.
    ///
    /// # Errors
    /// [`StoreError::NotMerged`] where something has changed since the base; [`StoreError::NodePart`] of a part.
    pub fn new(
        from: &'a Directory,
        snapshot: &'a Snapshot,
        map: &ShardMap,
        done: &dyn Fn(u64),
    ) -> Result<Self, StoreError> {
        if let Some(part) = snapshot.base().node_part() {
            return Err(part.refusal(from.path()));
        }
        // The strings of terms that nothing uses any more stay in tables until these are merged, too.
        let since = Transaction::from_base(snapshot).without_forgotten();
        if !snapshot.is_merged() || !since.is_empty() {
            return Err(StoreError::NotMerged {
                path: from.path().to_owned(),
            });
        }
        Ok(Self {
            from,
            snapshot,
            map: map.clone(),
            whole: WholeFigures::of(snapshot, done)?,
        })
    }

    /// Edges that are read for each part, and before the first.
    #[must_use]
    pub fn edges_of(snapshot: &Snapshot) -> u64 {
        let base = snapshot.base();
        base.predicates().map(|id| base.edges_by_subject(id)).sum()
    }

    /// Writes the part of a node of this name into a directory that has no store.
    ///
    /// Costs a pass over all terms and all edges, as `done` is told, and holds the part in memory.
    ///
    /// # Errors
    /// What the operating system says; part of the files may then be in the directory.
    pub fn write(
        &self,
        (node, name): (NodeId, &str),
        to: &Directory,
        done: &dyn Fn(u64),
    ) -> Result<(), StoreError> {
        let base = self.snapshot.base();
        let part = NodePart::new(self.map.clone(), node, name, self.whole.clone());
        let gone = self.snapshot.forgotten();
        let vertices = terms_of((&base.vertices, &gone.vertices), &part)?;
        let literals = terms_of((&base.literals, &gone.literals), &part)?;
        let segments = LayerKind::ALL.map(|kind| rows_of(base.layer(kind), &part));
        let mut own = base.part(segments, true, &|_| None);
        base.predicates()
            .for_each(|id| done(base.edges_by_subject(id)));
        (own.vertices, own.literals) = (vertices, literals);
        own.files = base.files.of_part();
        DurableStore::write_part(self.from, self.snapshot, &own.of_node(part), to)
    }
}

/// A node's part of the terms of one kind.
fn terms_of(
    (tables, forgotten): (&TermTables, &SortedSet<u64>),
    part: &NodePart,
) -> Result<TermTables, StoreError> {
    let shards = part.map().shards();
    let residues = residues_of(part.map(), part.node());
    let is_asked = |hash| part.holds(shards.of_hash(hash));
    let of_node = tables.of_node(&residues, is_asked, forgotten);
    of_node.map_err(|error| StoreError::TooLarge {
        reason: error.to_string(),
    })
}

/// The rows of a node's keys, by direction and predicate.
fn rows_of(layer: &Layer, part: &NodePart) -> [Vec<Option<Segment>>; 2] {
    // Of two to a power of nodes, the keys of one are a stride apart, too.
    let nodes = part.map().nodes().len() as u32;
    let strides = Shards::new(nodes).unwrap_or(Shards::ONE);
    let own = |segment: &Option<Segment>| {
        let is_own = |key: TermId| part.has_rows_of(key).then_some(0);
        segment
            .as_ref()
            .and_then(|segment| segment.cut_by(1, is_own, strides).pop())
    };
    [Direction::Out, Direction::In].map(|direction| {
        let segments = layer.segments[direction as usize].iter();
        segments.map(own).collect()
    })
}
