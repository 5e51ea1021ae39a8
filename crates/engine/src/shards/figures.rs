//! What does the planner of a node ask that has its part of the store alone?
//!
//! The part knows nearly all of it: what is counted over all nodes, and the characteristic sets. Which id a term has
//! and how many neighbours, the nodes know that hold its shards.

use std::sync::Arc;

use jindou_cluster::SeenGraph;
use jindou_exec::{GraphSource, Terms};
use jindou_model::{
    Direction, GraphRef, Lists, Membership, PredicateId, TermId, TermKind, Unavailable,
};
use jindou_plan::{SegmentStatistics, Statistics};
use jindou_store::NodePart;
use oxrdf::TermRef;

use crate::graph::StoredGraph;

/// The figures of a part, in a cluster that has the other ones.
pub(crate) struct FiguresOfPart<'a> {
    graph: &'a StoredGraph,
    part: &'a NodePart,
    cluster: Arc<dyn GraphSource>,
    terms: Terms,
}

impl<'a> FiguresOfPart<'a> {
    /// Those of a part as its node sees the cluster. Terms are waited for until a query `is_over`.
    pub(super) fn new(
        graph: &'a StoredGraph,
        part: &'a NodePart,
        seen: SeenGraph,
        is_over: impl Fn() -> bool + Send + Sync + 'static,
    ) -> Self {
        let terms = Terms::new(seen.terms);
        terms.wait_until(move |_| is_over());
        Self {
            graph,
            part,
            cluster: seen.source,
            terms,
        }
    }

    /// # Errors
    /// That a node is lost that knows a term which was asked for: nothing is known of the term then.
    pub(crate) fn check(&self) -> Result<(), Unavailable> {
        self.terms.lost().map_or(Ok(()), Err)
    }

    /// The neighbours of a key in a layer; the average where its node does not say how many there are.
    fn degree_in(
        &self,
        layer: GraphRef<'_>,
        (predicate, direction): (PredicateId, Direction),
        key: TermId,
    ) -> u64 {
        let SegmentStatistics { edges, keys } = self.graph.segment(layer, predicate, direction);
        if edges == 0 {
            return 0;
        }
        let list = Lists {
            predicate,
            direction,
            keys: &[key],
        };
        let mut degrees = Vec::with_capacity(1);
        match self.cluster.degrees(layer, &list, None, &mut degrees) {
            Ok(()) => degrees[0],
            Err(_) => edges / keys.max(1),
        }
    }
}

impl Statistics for FiguresOfPart<'_> {
    fn triples(&self, graph: GraphRef<'_>) -> u64 {
        self.graph.triples(graph)
    }

    fn named_quads(&self) -> u64 {
        Statistics::named_quads(self.graph)
    }

    fn named_graphs(&self) -> u64 {
        self.graph.named_graphs()
    }

    fn graph_share(&self) -> f64 {
        self.graph.graph_share()
    }

    fn vertices(&self) -> u64 {
        self.graph.vertices()
    }

    fn predicates(&self) -> u32 {
        Statistics::predicates(self.graph)
    }

    fn term(&self, term: TermRef<'_>) -> Option<TermId> {
        let id = self.terms.intern(term).ok()?;
        (id.kind() != TermKind::Computed).then_some(id)
    }

    fn predicate(&self, iri: &str) -> Option<PredicateId> {
        Statistics::predicate(self.graph, iri)
    }

    fn segment(
        &self,
        graph: GraphRef<'_>,
        predicate: PredicateId,
        direction: Direction,
    ) -> SegmentStatistics {
        self.graph.segment(graph, predicate, direction)
    }

    fn vertices_with(&self, graph: GraphRef<'_>, memberships: &[Membership]) -> f64 {
        self.graph.vertices_with(graph, memberships)
    }

    fn edges_from(
        &self,
        graph: GraphRef<'_>,
        predicate: PredicateId,
        direction: Direction,
        memberships: &[Membership],
    ) -> f64 {
        self.graph
            .edges_from(graph, predicate, direction, memberships)
    }

    fn edges_between(
        &self,
        graph: GraphRef<'_>,
        predicate: PredicateId,
        subjects: &[Membership],
        objects: &[Membership],
    ) -> Option<f64> {
        self.graph
            .edges_between(graph, predicate, subjects, objects)
    }

    fn degree(
        &self,
        graph: GraphRef<'_>,
        predicate: PredicateId,
        direction: Direction,
        key: TermId,
    ) -> u64 {
        if predicate == PredicateId::TYPE || self.part.has_rows_of(key) {
            return self.graph.degree(graph, predicate, direction, key);
        }
        let layers: &[GraphRef<'_>] = match graph {
            GraphRef::Default => &[GraphRef::Default],
            GraphRef::Union => &[GraphRef::Default, GraphRef::Named],
            GraphRef::Named | GraphRef::One(_) | GraphRef::Some(_) | GraphRef::Each(_) => {
                &[GraphRef::Named]
            }
        };
        let segment = (predicate, direction);
        let degrees = layers
            .iter()
            .map(|layer| self.degree_in(*layer, segment, key));
        degrees.sum()
    }

    fn is_member(&self, graph: GraphRef<'_>, vertex: TermId, membership: Membership) -> bool {
        match membership {
            // Of literals no table is whole.
            Membership::Has(predicate, direction) if vertex.kind() != TermKind::Vertex => {
                self.degree(graph, predicate, direction, vertex) > 0
            }
            _ => self.graph.is_member(graph, vertex, membership),
        }
    }
}
