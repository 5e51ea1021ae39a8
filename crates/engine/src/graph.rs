//! The store as planner and executor see it.

use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use jindou_exec::{GraphSource, Keys, TermSource};
use jindou_model::{
    Cursor, Direction, Graphs, IdRanges, Membership, Neighbours, Pattern, PredicateId, TermId,
    TermKind, TextRun, Visit, inline, key,
};
use jindou_plan::{SegmentStatistics, Statistics};
use jindou_store::Snapshot;
use oxrdf::TermRef;

use crate::EngineError;
use crate::keys::{lookup_keys, push_keys};

/// The graph at one snapshot. Readers hold it for as long as they need it.
pub(crate) struct StoredGraph {
    pub(crate) snapshot: Snapshot,
}

/// What `read` makes of a snapshot, if the files that it lies in were whole until it ended.
///
/// Where bytes of them were lost it reads zeros in their place, of which it may make anything, a
/// panic included: none of that is given out.
///
/// # Errors
/// [`EngineError::Corrupt`] with the name of the file.
pub(crate) fn read_whole<T>(
    snapshot: &Snapshot,
    read: impl FnOnce() -> T,
) -> Result<T, EngineError> {
    let made = catch_unwind(AssertUnwindSafe(read));
    snapshot.base().check()?;
    Ok(made.unwrap_or_else(|panic| resume_unwind(panic)))
}

impl StoredGraph {
    /// As [`read_whole`].
    pub(crate) fn read<T>(&self, read: impl FnOnce() -> T) -> Result<T, EngineError> {
        read_whole(&self.snapshot, read)
    }
}

impl TermSource for StoredGraph {
    fn push_key(&self, id: TermId, key: &mut Vec<u8>) {
        self.snapshot.push_key(id, key);
    }

    fn lookup(&self, key: &[u8], literal: bool) -> Option<TermId> {
        if literal {
            self.snapshot.find_literal(key)
        } else {
            self.snapshot.find_node(key)
        }
    }

    fn text_run(&self, id: TermId) -> Option<TextRun> {
        self.snapshot.base().text_run(id)
    }

    fn end_number(&self, id: TermId) -> Option<u8> {
        match self.snapshot.appended_key(id) {
            Some(_) => None,
            None => self.snapshot.base().literal_end_number(id.local()),
        }
    }

    fn push_keys(&self, ids: &[TermId], most_bytes: usize, keys: &mut Keys) -> usize {
        push_keys(&self.snapshot, ids, most_bytes, keys)
    }

    fn lookup_keys(&self, keys: &Keys, ids: &mut Vec<Option<TermId>>) {
        lookup_keys(&self.snapshot, keys, ids);
    }
}

impl GraphSource for StoredGraph {
    fn predicate(&self, term: TermId) -> Option<PredicateId> {
        self.snapshot.predicate_of_term(term)
    }

    fn predicate_term(&self, predicate: PredicateId) -> TermId {
        self.snapshot.predicate_term(predicate)
    }

    fn predicate_count(&self) -> u32 {
        self.snapshot.predicate_count() as u32
    }

    fn ids_with(
        &self,
        memberships: &[Membership],
        exact: bool,
        within: Option<&IdRanges>,
    ) -> Option<IdRanges> {
        self.snapshot.ids_with(memberships, exact, within)
    }

    fn neighbours(
        &self,
        predicate: PredicateId,
        direction: Direction,
        key: TermId,
    ) -> Neighbours<'_> {
        self.snapshot.neighbours(predicate, direction, key)
    }

    fn locate<'a>(
        &'a self,
        predicate: PredicateId,
        direction: Direction,
        keys: &[TermId],
        out: &mut Vec<Neighbours<'a>>,
    ) {
        self.snapshot.locate(predicate, direction, keys, out);
    }

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
    ) {
        self.snapshot.expand(
            predicate, direction, keys, cursor, filter, budget, rows, out,
        );
    }

    fn predicates_of(&self, key: TermId, direction: Direction, out: &mut Vec<PredicateId>) {
        if key.kind() == TermKind::Vertex {
            self.snapshot.predicates_of_vertex(key, direction, out);
        } else {
            out.extend(
                (0..self.snapshot.predicate_count()).map(|number| PredicateId(number as u32)),
            );
        }
    }

    fn for_each_match(
        &self,
        pattern: &Pattern,
        graphs: Graphs,
        visit: &mut Visit<'_>,
    ) -> ControlFlow<()> {
        self.snapshot.for_each_match(pattern, graphs, visit)
    }

    fn has_graph(&self, graph: TermId) -> bool {
        self.snapshot.has_graph(graph)
    }

    fn graphs(&self, out: &mut Vec<TermId>) {
        self.snapshot.for_each_graph(&mut |graph| out.push(graph));
    }

    fn scan_graph(
        &self,
        graph: TermId,
        predicate: Option<PredicateId>,
        from: usize,
        count: usize,
        visit: &mut Visit<'_>,
    ) -> bool {
        self.snapshot
            .scan_graph(graph, predicate, from, count, visit)
    }

    fn edges(&self, predicate: PredicateId) -> u64 {
        self.snapshot.counts(predicate, Direction::Out).0
    }

    fn named_edges(&self, predicate: PredicateId) -> u64 {
        self.snapshot.named_edges(predicate)
    }
}

impl Statistics for StoredGraph {
    fn triples(&self) -> u64 {
        self.snapshot.triples()
    }

    fn named_quads(&self) -> u64 {
        self.snapshot.named_quads()
    }

    fn named_graphs(&self) -> u64 {
        self.snapshot.named_graphs()
    }

    fn vertices(&self) -> u64 {
        self.snapshot.vertex_count()
    }

    fn predicates(&self) -> u32 {
        self.snapshot.predicate_count() as u32
    }

    fn term(&self, term: TermRef<'_>) -> Option<TermId> {
        if let TermRef::Literal(literal) = term
            && literal.language().is_none()
            && let Some(id) = inline::encode(literal.value(), literal.datatype().as_str())
        {
            return Some(id);
        }
        let mut bytes = Vec::new();
        let literal = key::push_term(&mut bytes, term);
        self.lookup(&bytes, literal)
    }

    fn predicate(&self, iri: &str) -> Option<PredicateId> {
        self.snapshot.find_predicate(iri)
    }

    fn segment(&self, predicate: PredicateId, direction: Direction) -> SegmentStatistics {
        let (edges, keys) = self.snapshot.counts(predicate, direction);
        SegmentStatistics { edges, keys }
    }

    fn vertices_with(&self, memberships: &[Membership]) -> f64 {
        self.snapshot.count_with(memberships)
    }

    fn edges_from(
        &self,
        predicate: PredicateId,
        direction: Direction,
        memberships: &[Membership],
    ) -> f64 {
        self.snapshot.edges_from(predicate, direction, memberships)
    }

    fn edges_between(
        &self,
        predicate: PredicateId,
        subjects: &[Membership],
        objects: &[Membership],
    ) -> Option<f64> {
        self.snapshot.edges_between(predicate, subjects, objects)
    }

    fn degree(&self, predicate: PredicateId, direction: Direction, key: TermId) -> u64 {
        self.snapshot.neighbours(predicate, direction, key).len() as u64
    }

    fn is_member(&self, vertex: TermId, membership: Membership) -> bool {
        self.snapshot.is_member(vertex, membership)
    }
}
