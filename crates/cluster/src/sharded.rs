//! A graph in shards.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use jindou_exec::{Catalogue, Catalogued, GraphSource};
use jindou_model::{
    Cursor, Direction, GraphRef, IdRanges, Lists, Membership, Pattern, Precision, PredicateId,
    ShardId, TermId, Unavailable, Visit,
};
use jindou_partition::Shards;
use jindou_store::LayerKind;
use rustc_hash::FxHashMap;

use crate::matching::PATIENCE_OF_SCANS;
use crate::one_sided::{OneSided, layer_of};
use crate::rows::{Reading, is_of_graph};

/// A graph whose rows are on several shards.
///
/// A shard has the outgoing edges of the subjects that it owns and the incoming ones of its objects. In
/// which named graphs an edge is, the shard of its subject knows. The edges of `rdf:type`, which follow
/// from the characteristic sets, are known to all, and cost no shard a call.
pub struct Sharded {
    pub(crate) shards: Shards,
    /// What every machine knows of the whole graph.
    pub(crate) catalogue: Arc<dyn Catalogue>,
    /// The characteristic sets: which vertices have which types and predicates, and all edges of
    /// `rdf:type`.
    pub(crate) shared: Arc<dyn GraphSource>,
    /// The rows, by shard; none of one that is lost.
    rows: Vec<Option<Arc<dyn GraphSource>>>,
    /// The first shard of those that one graph answers for, by shard.
    part_of: Vec<u32>,
    /// Reads the lists of those that it has, in place of their `rows`.
    reader: Option<Reader>,
    /// How long a scan that has begun waits for a shard that is not ready.
    pub(crate) patience_of_scans: Duration,
}

/// Reads the lists of shards of others.
struct Reader {
    lists: Arc<OneSided>,
    changes: Arc<dyn ChangedLists>,
}

/// Which lists are not what can be read of them any more? Known everywhere, as the catalogue is.
pub trait ChangedLists: Send + Sync {
    /// False if all lists of a segment are as they were when their shards were published.
    fn may_have_changes(&self, kind: LayerKind, segment: (PredicateId, Direction)) -> bool;

    /// False if the list of a key is as it was when its shard was published.
    fn may_have_changed(
        &self,
        kind: LayerKind,
        segment: (PredicateId, Direction),
        key: TermId,
    ) -> bool;
}

impl Sharded {
    /// The graph of these parts: what is known to all, and the rows of each shard, or none of one that
    /// is lost: what needs it is answered by [`Unavailable::Never`]. Shards that have the same rows, as those of
    /// another node that are asked together, are given one call.
    ///
    /// # Panics
    /// If there are not as many `rows` as `shards`.
    #[must_use]
    pub fn new(
        shards: Shards,
        catalogue: Arc<dyn Catalogue>,
        shared: Arc<dyn GraphSource>,
        rows: Vec<Option<Arc<dyn GraphSource>>>,
    ) -> Self {
        assert_eq!(rows.len(), shards.count(), "each shard has its rows");
        let part_of = parts(&rows);
        Self {
            shards,
            catalogue,
            shared,
            rows,
            part_of,
            reader: None,
            patience_of_scans: PATIENCE_OF_SCANS,
        }
    }

    /// The same graph, where the lists of some shards are read by `reader`: their rows are asked for what
    /// it cannot read, and for what has changed since these were published.
    #[must_use]
    pub fn with_reader(self, lists: Arc<OneSided>, changes: Arc<dyn ChangedLists>) -> Self {
        Self {
            reader: Some(Reader { lists, changes }),
            ..self
        }
    }

    /// What reads the lists of a predicate in a graph, if these can be read.
    pub(crate) fn reading(
        &self,
        graph: GraphRef<'_>,
        segment: (PredicateId, Direction),
    ) -> Option<Reading<'_>> {
        let reader = self.reader.as_ref()?;
        let kind = layer_of(graph, segment.0)?;
        let changes = &*reader.changes;
        Some(Reading {
            reader: &reader.lists,
            segments: reader.lists.segments(kind, segment),
            changes: (changes.may_have_changes(kind, segment)).then_some(changes),
            kind,
            sharded: self,
        })
    }

    /// The part that a shard is of: the first shard of those that are asked together.
    pub(crate) fn part_of(&self, shard: ShardId) -> u32 {
        self.part_of[shard.0 as usize]
    }

    /// The first shard of each part.
    pub(crate) fn parts(&self) -> impl Iterator<Item = ShardId> + '_ {
        let is_first = |shard: &ShardId| self.part_of(*shard) == shard.0;
        self.shards.all().filter(is_first)
    }

    /// The rows of a shard.
    pub(crate) fn of_shard(&self, shard: ShardId) -> Result<&dyn GraphSource, Unavailable> {
        let rows = self.rows[shard.0 as usize].as_deref();
        rows.ok_or(Unavailable::Never(shard))
    }

    /// What has the edges of a predicate from a key.
    pub(crate) fn of_key(
        &self,
        predicate: PredicateId,
        key: TermId,
    ) -> Result<&dyn GraphSource, Unavailable> {
        match predicate {
            PredicateId::TYPE => Ok(&*self.shared),
            _ if !is_of_graph(key) => Ok(&*self.shared),
            _ => self.of_shard(self.shards.owner(key)),
        }
    }

    /// The graph in which lists are read where one is asked for: the same, or the merge of all that are
    /// named, where these have the same edges of the predicate or where the shards of the keys cannot
    /// tell; then `true`, and whoever reads asks the shards of the subjects.
    pub(crate) fn read_in<'g>(
        &self,
        graph: GraphRef<'g>,
        predicate: PredicateId,
        direction: Direction,
    ) -> (GraphRef<'g>, bool) {
        if predicate == PredicateId::TYPE {
            return (graph, false);
        }
        match graph {
            GraphRef::One(_) => {
                let edges = |graph| self.catalogue.edges(graph, predicate);
                if edges(graph).is_some() && edges(graph) == edges(GraphRef::Named) {
                    return (GraphRef::Named, false);
                }
            }
            GraphRef::Some(_) | GraphRef::Each(_) => {}
            GraphRef::Default | GraphRef::Named | GraphRef::Union => return (graph, false),
        }
        match direction {
            Direction::Out => (graph, false),
            Direction::In => (GraphRef::Named, true),
        }
    }
}

/// The first shard of those that have the same rows, by shard.
fn parts(rows: &[Option<Arc<dyn GraphSource>>]) -> Vec<u32> {
    let mut first_of = FxHashMap::default();
    let parts = (0..).zip(rows).map(|(shard, rows)| match rows {
        Some(rows) => *first_of
            .entry(Arc::as_ptr(rows).cast::<()>())
            .or_insert(shard),
        None => shard,
    });
    parts.collect()
}

impl Catalogued for Sharded {
    fn catalogue(&self) -> &dyn Catalogue {
        &*self.catalogue
    }
}

impl GraphSource for Sharded {
    fn members(
        &self,
        graph: GraphRef<'_>,
        memberships: &[Membership],
        precision: Precision,
        within: Option<&IdRanges>,
    ) -> Result<Option<IdRanges>, Unavailable> {
        self.members_of(graph, memberships, precision, within)
    }

    fn expand(
        &self,
        graph: GraphRef<'_>,
        lists: &[Lists<'_>],
        cursor: &mut Cursor,
        allowed: Option<&IdRanges>,
        budget: usize,
        rows: &mut Vec<u32>,
        out: &mut Vec<TermId>,
    ) -> Result<(), Unavailable> {
        self.follow(graph, lists, cursor, allowed, budget, (rows, out))
    }

    fn places(&self, graph: GraphRef<'_>, list: &Lists<'_>) -> Result<u64, Unavailable> {
        let [key] = list.keys else {
            panic!("places are those of one key");
        };
        let (read, _) = self.read_in(graph, list.predicate, list.direction);
        let holder = self.holder_of_key(read, (list.predicate, list.direction), *key)?;
        holder.places(read, list)
    }

    fn contains(
        &self,
        graph: GraphRef<'_>,
        list: &Lists<'_>,
        to: &[TermId],
        rows: &mut Vec<u32>,
    ) -> Result<(), Unavailable> {
        self.contains_of(graph, list, to, rows)
    }

    fn degrees(
        &self,
        graph: GraphRef<'_>,
        list: &Lists<'_>,
        allowed: Option<&IdRanges>,
        out: &mut Vec<u64>,
    ) -> Result<(), Unavailable> {
        self.degrees_of(graph, list, allowed, out)
    }

    fn graphs_of(
        &self,
        list: &Lists<'_>,
        to: &[TermId],
        rows: &mut Vec<u32>,
        graphs: &mut Vec<TermId>,
    ) -> Result<(), Unavailable> {
        self.graphs_of_edges(list, to, rows, graphs)
    }

    fn predicates_at(
        &self,
        graph: GraphRef<'_>,
        key: TermId,
        direction: Direction,
        out: &mut Vec<PredicateId>,
    ) -> Result<(), Unavailable> {
        self.predicates_that_are_there(graph, (key, direction), out)
    }

    fn for_each_match(
        &self,
        pattern: &Pattern,
        graph: GraphRef<'_>,
        visit: &mut Visit<'_>,
    ) -> Result<ControlFlow<()>, Unavailable> {
        self.visit_matches(pattern, graph, visit)
    }

    fn for_each_quad(
        &self,
        pattern: &Pattern,
        visit: &mut Visit<'_>,
    ) -> Result<ControlFlow<()>, Unavailable> {
        self.visit_quads(pattern, visit)
    }
}
