//! The store as planner and executor see it.

use std::ops::ControlFlow;

use jindou_exec::{GraphSource, Keys, TermSource};
use jindou_model::{
    Cursor, Direction, Graphs, IdRanges, Membership, Neighbours, Pattern, PredicateId, TermId,
    TermKind, Visit, inline, key,
};
use jindou_plan::{SegmentStatistics, Statistics};
use jindou_store::Base;
use oxrdf::TermRef;

use crate::keys::{lookup_keys, push_keys};

/// One generation of the graph. Readers hold it for as long as they need it.
pub(crate) struct StoredGraph {
    pub(crate) base: Base,
    /// Tells this graph from those that the database had before.
    pub(crate) generation: u64,
}

impl TermSource for StoredGraph {
    fn push_key(&self, id: TermId, key: &mut Vec<u8>) {
        self.base.push_key(id, key);
    }

    fn lookup(&self, key: &[u8], literal: bool) -> Option<TermId> {
        if literal {
            self.base.find_literal(key)
        } else {
            self.base.find_node(key)
        }
    }

    fn push_keys(&self, ids: &[TermId], most_bytes: usize, keys: &mut Keys) -> usize {
        push_keys(&self.base, |_| None, ids, most_bytes, keys)
    }

    fn lookup_keys(&self, keys: &Keys, ids: &mut Vec<Option<TermId>>) {
        let otherwise = |key: &[u8], literal: bool| match literal {
            true => None,
            false => self.base.find_node(key),
        };
        lookup_keys(&self.base, otherwise, keys, ids);
    }
}

impl GraphSource for StoredGraph {
    fn predicate(&self, term: TermId) -> Option<PredicateId> {
        self.base.predicate_of_term(term)
    }

    fn predicate_term(&self, predicate: PredicateId) -> TermId {
        self.base.predicate_term(predicate)
    }

    fn predicate_count(&self) -> u32 {
        self.base.predicate_count() as u32
    }

    fn ids_with(&self, memberships: &[Membership], exact: bool) -> Option<IdRanges> {
        self.base.ids_with(memberships, exact)
    }

    fn neighbours(
        &self,
        predicate: PredicateId,
        direction: Direction,
        key: TermId,
    ) -> Neighbours<'_> {
        self.base.neighbours(predicate, direction, key)
    }

    fn locate<'a>(
        &'a self,
        predicate: PredicateId,
        direction: Direction,
        keys: &[TermId],
        out: &mut Vec<Neighbours<'a>>,
    ) {
        self.base.locate(predicate, direction, keys, out);
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
        self.base.expand(
            predicate, direction, keys, cursor, filter, budget, rows, out,
        );
    }

    fn predicates_of(&self, key: TermId, direction: Direction, out: &mut Vec<PredicateId>) {
        if key.kind() == TermKind::Vertex {
            out.push(PredicateId::TYPE);
            out.extend(self.base.clusters().predicates_of_vertex(key, direction));
        } else {
            out.extend((0..self.base.predicate_count()).map(|number| PredicateId(number as u32)));
        }
    }

    fn for_each_match(
        &self,
        pattern: &Pattern,
        graphs: Graphs,
        visit: &mut Visit<'_>,
    ) -> ControlFlow<()> {
        self.base.for_each_match(pattern, graphs, visit)
    }

    fn has_graph(&self, graph: TermId) -> bool {
        self.base.named().contains(graph)
    }

    fn graphs(&self, out: &mut Vec<TermId>) {
        self.base
            .named()
            .for_each_graph(&mut |graph| out.push(graph));
    }

    fn scan_graph(
        &self,
        graph: TermId,
        predicate: Option<PredicateId>,
        from: usize,
        count: usize,
        visit: &mut Visit<'_>,
    ) -> bool {
        self.base.scan_graph(graph, predicate, from, count, visit)
    }

    fn named_edges(&self, predicate: PredicateId) -> u64 {
        let segment = self.base.named().segment(predicate, Direction::Out);
        segment.map_or(0, |segment| segment.edges().edges() as u64)
    }
}

impl Statistics for StoredGraph {
    fn triples(&self) -> u64 {
        self.base.triples()
    }

    fn named_quads(&self) -> u64 {
        self.base.named().quads()
    }

    fn named_graphs(&self) -> u64 {
        self.base.named().len() as u64
    }

    fn vertices(&self) -> u64 {
        self.base.vertex_count()
    }

    fn predicates(&self) -> u32 {
        self.base.predicate_count() as u32
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
        self.base.find_predicate(iri)
    }

    fn segment(&self, predicate: PredicateId, direction: Direction) -> SegmentStatistics {
        let (edges, keys) = self.base.counts(predicate, direction);
        SegmentStatistics { edges, keys }
    }

    fn vertices_with(&self, memberships: &[Membership]) -> f64 {
        if memberships.is_empty() {
            return self.base.vertex_count() as f64;
        }
        self.base.clusters().count_with(memberships)
    }

    fn edges_from(
        &self,
        predicate: PredicateId,
        direction: Direction,
        memberships: &[Membership],
    ) -> f64 {
        if memberships.is_empty() {
            return self.base.counts(predicate, direction).0 as f64;
        }
        self.base
            .clusters()
            .edges_from(predicate, direction, memberships)
    }

    fn edges_between(
        &self,
        predicate: PredicateId,
        subjects: &[Membership],
        objects: &[Membership],
    ) -> Option<f64> {
        self.base
            .clusters()
            .edges_between(predicate, subjects, objects)
    }

    fn degree(&self, predicate: PredicateId, direction: Direction, key: TermId) -> u64 {
        self.base.neighbours(predicate, direction, key).len() as u64
    }

    fn is_member(&self, vertex: TermId, membership: Membership) -> bool {
        self.base.clusters().is_member(vertex, membership)
    }
}
