//! The store as planner and executor see it.

use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

use jindou_exec::{Catalogue, GraphSource, Keys, TermSource, TextOrder};
use jindou_model::{
    Cursor, Direction, EndsAsked, GraphRef, IdEpoch, IdRanges, KindCount, Lists, Membership,
    Pattern, Precision, PredicateId, TermId, TermKind, TextPlace, Unavailable, Visit, inline, key,
};
use jindou_plan::{SegmentStatistics, Statistics};
use jindou_store::{LayerView, Snapshot};
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
    fn epoch(&self) -> IdEpoch {
        self.snapshot.epoch()
    }

    fn has(&self, id: TermId) -> bool {
        self.snapshot.knows(id)
    }

    fn push_key(&self, id: TermId, key: &mut Vec<u8>) -> Result<(), Unavailable> {
        self.snapshot.push_key(id, key);
        Ok(())
    }

    fn lookup(&self, key: &[u8], literal: bool) -> Result<Option<TermId>, Unavailable> {
        Ok(self.find(key, literal))
    }

    fn text_order(&self) -> Option<Arc<dyn TextOrder>> {
        Some(Arc::new(StoredOrder(self.snapshot.text_order())))
    }

    fn end_number(&self, id: TermId) -> Option<u8> {
        match self.snapshot.appended_key(id) {
            Some(_) => None,
            None => self.snapshot.base().literal_end_number(id.number()),
        }
    }

    fn push_keys(
        &self,
        ids: &[TermId],
        most_bytes: usize,
        keys: &mut Keys,
    ) -> Result<usize, Unavailable> {
        Ok(push_keys(&self.snapshot, ids, most_bytes, keys))
    }

    fn lookup_keys(&self, keys: &Keys, ids: &mut Vec<Option<TermId>>) -> Result<(), Unavailable> {
        lookup_keys(&self.snapshot, keys, ids);
        Ok(())
    }
}

/// The order of a snapshot's texts.
struct StoredOrder(jindou_store::TextOrder);

impl TextOrder for StoredOrder {
    #[inline]
    fn place(&self, id: TermId) -> Option<TextPlace> {
        self.0.place(id)
    }

    fn note_texts_read(&self, texts: usize) {
        self.0.note_texts_read(texts);
    }

    fn is_wanting(&self) -> bool {
        self.0.is_wanting()
    }

    fn extended(&self, poll: &mut dyn FnMut(usize) -> bool) -> Option<Arc<dyn TextOrder>> {
        Some(Arc::new(Self(self.0.extended(poll)?)))
    }
}

impl Catalogue for StoredGraph {
    fn predicate(&self, term: TermId) -> Option<PredicateId> {
        self.snapshot.predicate_of_term(term)
    }

    fn predicate_term(&self, predicate: PredicateId) -> TermId {
        self.snapshot.predicate_term(predicate)
    }

    fn predicates(&self, graph: GraphRef<'_>, out: &mut Vec<PredicateId>) {
        match graph {
            GraphRef::One(graph) => out.extend(self.snapshot.predicates_of_graph(graph)),
            _ => out.extend(self.all_predicates()),
        }
    }

    fn predicates_of(
        &self,
        graph: GraphRef<'_>,
        key: TermId,
        direction: Direction,
        out: &mut Vec<PredicateId>,
    ) {
        match (key.kind(), direction) {
            (TermKind::Vertex, _) => self.snapshot.predicates_of(graph, key, direction, out),
            // Literals are no subjects: elsewhere each predicate would be asked for nothing.
            (TermKind::Literal, Direction::Out) => {}
            (_, Direction::Out) if inline::is_valid(key) => {}
            _ => out.extend(self.all_predicates()),
        }
    }

    fn has_graph(&self, graph: TermId) -> bool {
        self.snapshot.has_graph(graph)
    }

    fn graph_count(&self) -> u64 {
        self.snapshot.named_graphs()
    }

    fn graphs(&self, out: &mut Vec<TermId>) {
        self.snapshot.for_each_graph(&mut |graph| out.push(graph));
    }

    fn named_quads(&self, predicate: PredicateId) -> Option<u64> {
        Some(self.snapshot.named_quads_of(predicate))
    }

    fn edges(&self, graph: GraphRef<'_>, predicate: PredicateId) -> Option<u64> {
        self.snapshot.edges(graph, predicate)
    }

    fn count_ends(
        &self,
        asked: &EndsAsked<'_>,
        poll: &mut dyn FnMut(usize) -> bool,
    ) -> Option<Vec<KindCount>> {
        self.snapshot.count_ends(asked, poll)
    }
}

impl StoredGraph {
    /// The id of the node or literal with this key.
    pub(crate) fn find(&self, key: &[u8], literal: bool) -> Option<TermId> {
        match literal {
            true => self.snapshot.find_literal(key),
            false => self.snapshot.find_node(key),
        }
    }

    fn all_predicates(&self) -> impl Iterator<Item = PredicateId> + use<> {
        (0..self.snapshot.predicate_count()).map(|number| PredicateId(number as u32))
    }
}

impl GraphSource for StoredGraph {
    fn members(
        &self,
        graph: GraphRef<'_>,
        memberships: &[Membership],
        precision: Precision,
        within: Option<&IdRanges>,
    ) -> Result<Option<IdRanges>, Unavailable> {
        Ok(self.snapshot.members(graph, memberships, precision, within))
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
        self.snapshot
            .expand(graph, lists, cursor, allowed, budget, rows, out);
        Ok(())
    }

    fn places(&self, graph: GraphRef<'_>, list: &Lists<'_>) -> Result<u64, Unavailable> {
        Ok(self.snapshot.places(graph, list))
    }

    fn contains(
        &self,
        graph: GraphRef<'_>,
        list: &Lists<'_>,
        to: &[TermId],
        rows: &mut Vec<u32>,
    ) -> Result<(), Unavailable> {
        self.snapshot.contains(graph, list, to, rows);
        Ok(())
    }

    fn degrees(
        &self,
        graph: GraphRef<'_>,
        list: &Lists<'_>,
        allowed: Option<&IdRanges>,
        out: &mut Vec<u64>,
    ) -> Result<(), Unavailable> {
        self.snapshot.degrees(graph, list, allowed, out);
        Ok(())
    }

    fn graphs_of(
        &self,
        list: &Lists<'_>,
        to: &[TermId],
        rows: &mut Vec<u32>,
        graphs: &mut Vec<TermId>,
    ) -> Result<(), Unavailable> {
        self.snapshot.graphs_of(list, to, rows, graphs);
        Ok(())
    }

    fn for_each_match(
        &self,
        pattern: &Pattern,
        graph: GraphRef<'_>,
        visit: &mut Visit<'_>,
    ) -> Result<ControlFlow<()>, Unavailable> {
        Ok(self.snapshot.for_each_match(pattern, graph, visit))
    }

    fn for_each_quad(
        &self,
        pattern: &Pattern,
        visit: &mut Visit<'_>,
    ) -> Result<ControlFlow<()>, Unavailable> {
        Ok(self.snapshot.for_each_quad(pattern, visit))
    }
}

impl StoredGraph {
    /// The layers whose figures are those of a graph.
    fn layers(&self, graph: GraphRef<'_>) -> impl Iterator<Item = LayerView<'_>> {
        let (default, named) = match graph {
            GraphRef::Default => (true, false),
            GraphRef::Union => (true, true),
            GraphRef::Named | GraphRef::One(_) | GraphRef::Some(_) | GraphRef::Each(_) => {
                (false, true)
            }
        };
        let default = default.then(|| self.snapshot.default_graph());
        let named = named.then(|| self.snapshot.named_layer());
        // What has no edges has no figures either.
        let all = [default, named].into_iter().flatten();
        all.filter(|layer| layer.edges() > 0)
    }
}

impl Statistics for StoredGraph {
    fn triples(&self, graph: GraphRef<'_>) -> u64 {
        self.layers(graph).map(LayerView::edges).sum()
    }

    fn named_quads(&self) -> u64 {
        self.snapshot.named_quads()
    }

    fn named_graphs(&self) -> u64 {
        self.snapshot.named_graphs()
    }

    fn graph_share(&self) -> f64 {
        self.snapshot.graph_share()
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
        self.find(&bytes, literal)
    }

    fn predicate(&self, iri: &str) -> Option<PredicateId> {
        self.snapshot.find_predicate(iri)
    }

    fn segment(
        &self,
        graph: GraphRef<'_>,
        predicate: PredicateId,
        direction: Direction,
    ) -> SegmentStatistics {
        let mut sum = SegmentStatistics::default();
        for layer in self.layers(graph) {
            let (edges, keys) = layer.counts(predicate, direction);
            sum.edges += edges;
            sum.keys += keys;
        }
        sum
    }

    fn vertices_with(&self, graph: GraphRef<'_>, memberships: &[Membership]) -> f64 {
        let layers = self.layers(graph);
        layers.map(|layer| layer.count_with(memberships)).sum()
    }

    fn edges_from(
        &self,
        graph: GraphRef<'_>,
        predicate: PredicateId,
        direction: Direction,
        memberships: &[Membership],
    ) -> f64 {
        let layers = self.layers(graph);
        layers
            .map(|layer| layer.edges_from(predicate, direction, memberships))
            .sum()
    }

    fn edges_between(
        &self,
        graph: GraphRef<'_>,
        predicate: PredicateId,
        subjects: &[Membership],
        objects: &[Membership],
    ) -> Option<f64> {
        let mut layers = self.layers(graph);
        let only = layers.next()?;
        match layers.next() {
            None => only.edges_between(predicate, subjects, objects),
            // Edges between the layers are counted nowhere.
            Some(_) => None,
        }
    }

    fn degree(
        &self,
        graph: GraphRef<'_>,
        predicate: PredicateId,
        direction: Direction,
        key: TermId,
    ) -> u64 {
        let layers = self.layers(graph);
        let degrees = layers.map(|layer| layer.neighbours(predicate, direction, key).len() as u64);
        degrees.sum()
    }

    fn is_member(&self, graph: GraphRef<'_>, vertex: TermId, membership: Membership) -> bool {
        let mut layers = self.layers(graph);
        layers.any(|layer| layer.is_member(vertex, membership))
    }
}
