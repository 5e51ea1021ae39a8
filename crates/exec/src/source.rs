//! The graph, as the executor sees it: what is next to these vertices?

use std::ops::ControlFlow;

use jindou_model::{
    Cursor, Direction, Graphs, IdRanges, Membership, Neighbours, Pattern, PredicateId, TermId,
    Visit,
};

use crate::TermSource;

/// A graph at one snapshot.
///
/// Calls are made for batches of keys, so that an implementation may overlap its loads or its
/// reads over a network.
pub trait GraphSource: TermSource {
    /// The predicate that a term is, if any edge has it.
    fn predicate(&self, term: TermId) -> Option<PredicateId>;

    /// The term of a predicate.
    fn predicate_term(&self, predicate: PredicateId) -> TermId;

    /// Number of predicates; their ids are below it.
    fn predicate_count(&self) -> u32;

    /// The ids that have all of `memberships` in the default graph, literals included where
    /// these allow them, and lie in `within`, a set of few ranges, where that is given. `None` if
    /// that is not a short list and `exact` is false.
    fn ids_with(
        &self,
        memberships: &[Membership],
        exact: bool,
        within: Option<&IdRanges>,
    ) -> Option<IdRanges>;

    /// Neighbours of one key in the default graph.
    fn neighbours(
        &self,
        predicate: PredicateId,
        direction: Direction,
        key: TermId,
    ) -> Neighbours<'_>;

    /// Neighbours of each of `keys` in the default graph, appended to `out`.
    fn locate<'a>(
        &'a self,
        predicate: PredicateId,
        direction: Direction,
        keys: &[TermId],
        out: &mut Vec<Neighbours<'a>>,
    );

    /// Follows edges of the default graph from `cursor` on: for each neighbour in `filter`,
    /// appends the index of its key to `rows` and itself to `out`, until `out` holds about
    /// `budget` or the keys are done (`cursor.key == keys.len()`).
    #[expect(
        clippy::too_many_arguments,
        reason = "one call for a batch; each is used every time"
    )]
    fn expand(
        &self,
        predicate: PredicateId,
        direction: Direction,
        keys: &[TermId],
        cursor: &mut Cursor,
        filter: Option<&IdRanges>,
        budget: usize,
        rows: &mut Vec<u32>,
        out: &mut Vec<TermId>,
    );

    /// The predicates that a vertex has in a direction in the default graph, `rdf:type` perhaps
    /// without an edge, appended to `out`; for a literal, those that it might have.
    fn predicates_of(&self, key: TermId, direction: Direction, out: &mut Vec<PredicateId>);

    /// Calls `visit` with each quad that matches, until it breaks.
    fn for_each_match(
        &self,
        pattern: &Pattern,
        graphs: Graphs,
        visit: &mut Visit<'_>,
    ) -> ControlFlow<()>;

    /// True if a named graph has a quad.
    fn has_graph(&self, graph: TermId) -> bool;

    /// The named graphs, appended to `out`.
    fn graphs(&self, out: &mut Vec<TermId>);

    /// Calls `visit` with quads of a named graph, of one predicate where that is given, from the
    /// `from`-th on and `count` at most, until it breaks; returns false where these are the last.
    fn scan_graph(
        &self,
        graph: TermId,
        predicate: Option<PredicateId>,
        from: usize,
        count: usize,
        visit: &mut Visit<'_>,
    ) -> bool;

    /// Number of edges with this predicate in the default graph.
    fn edges(&self, predicate: PredicateId) -> u64;

    /// Number of quads with this predicate in all named graphs.
    fn named_edges(&self, predicate: PredicateId) -> u64;
}
