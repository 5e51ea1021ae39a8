//! What does the planner ask of the data?

pub use jindou_model::Membership;
use jindou_model::{Direction, GraphRef, PredicateId, TermId};
use oxrdf::TermRef;

/// Counts of one segment (predicate, direction) of a graph.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SegmentStatistics {
    /// Edges.
    pub edges: u64,
    /// Distinct keys, that is subjects for `Out` and objects for `In`.
    pub keys: u64,
}

/// What the planner knows of the data, for each graph by itself.
///
/// Every method costs microseconds at most, but for [`Statistics::degree`] at a node of a cluster that has its part of
/// the data alone: what a read of another node costs.
pub trait Statistics {
    /// Triples of a graph.
    fn triples(&self, graph: GraphRef<'_>) -> u64;
    /// Quads outside the default graph.
    fn named_quads(&self) -> u64;
    /// Number of named graphs.
    fn named_graphs(&self) -> u64;
    /// The part of these quads that the graph of one of them has, on average: nearly all where one
    /// graph has most. Where nothing else is known, all graphs are of one size.
    fn graph_share(&self) -> f64 {
        1.0 / self.named_graphs().max(1) as f64
    }
    /// Vertices of all graphs.
    fn vertices(&self) -> u64;
    /// Number of predicates; their ids are `0..predicates()`.
    fn predicates(&self) -> u32;
    /// The id of a term, if the store knows it.
    fn term(&self, term: TermRef<'_>) -> Option<TermId>;
    /// The predicate with this IRI, if any edge has it (`rdf:type` always does).
    fn predicate(&self, iri: &str) -> Option<PredicateId>;
    /// Counts of a segment.
    fn segment(
        &self,
        graph: GraphRef<'_>,
        predicate: PredicateId,
        direction: Direction,
    ) -> SegmentStatistics;
    /// Vertices that have all of `memberships`: exact while the characteristic sets are few
    /// enough to be summed, else an estimate. No membership: all vertices.
    fn vertices_with(&self, graph: GraphRef<'_>, memberships: &[Membership]) -> f64;
    /// Edges of (predicate, direction) whose key vertex has all of `memberships`; exactness as
    /// for [`Statistics::vertices_with`].
    fn edges_from(
        &self,
        graph: GraphRef<'_>,
        predicate: PredicateId,
        direction: Direction,
        memberships: &[Membership],
    ) -> f64;
    /// Edges of the predicate from subjects with all of `subjects` to vertices with all of
    /// `objects`; `None` where that is not known.
    fn edges_between(
        &self,
        graph: GraphRef<'_>,
        predicate: PredicateId,
        subjects: &[Membership],
        objects: &[Membership],
    ) -> Option<f64>;
    /// Exact number of neighbours of one term.
    fn degree(
        &self,
        graph: GraphRef<'_>,
        predicate: PredicateId,
        direction: Direction,
        key: TermId,
    ) -> u64;
    /// True if the vertex has the membership (exact; literals have no types).
    fn is_member(&self, graph: GraphRef<'_>, vertex: TermId, membership: Membership) -> bool;
}
