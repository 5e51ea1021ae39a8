//! Which parts of the graph did a transaction read, and are they still as they were?
//!
//! Everything that a transaction's search asks of the graph is noted while it asks, so that no
//! operator has to say what it reads, and nothing can be read without being noted. The units are
//! coarse: a predicate, a class, a predicate in a named graph. What reads in no such unit is noted
//! as reading all of them.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use jindou_exec::{Catalogue, GraphSource};
use jindou_model::{
    Cursor, Direction, GraphRef, IdRanges, Lists, Membership, Pattern, Precision, PredicateId,
    TermId, TermKind, Unavailable, Visit,
};
use jindou_store::{Changed, Snapshot};
use parking_lot::RwLock;
use rustc_hash::FxHashSet;

/// Classes, named graphs and their predicates noted one by one; more are noted as all.
const MOST_UNITS: usize = 4_096;

/// A part of the graph that was read, beside the predicates of the default graph.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Unit {
    Class(TermId),
    /// Quads of one graph or of all, with one predicate or with any.
    Named(Option<TermId>, Option<PredicateId>),
    Graph(TermId),
}

/// What was read in a changed copy of one snapshot.
///
/// It holds what the copy's own changes are not part of: where two snapshots agree in all that is
/// noted here, the same steps read the same in copies of both.
pub(crate) struct Reads {
    start: Arc<Snapshot>,
    /// A bit for each predicate that `start` knows: its edges in the default graph.
    predicates: Box<[AtomicU64]>,
    units: RwLock<FxHashSet<Unit>>,
    all_of_default: AtomicBool,
    all_types: AtomicBool,
    all_of_named: AtomicBool,
    /// Which named graphs there are.
    all_graphs: AtomicBool,
    /// That a predicate was not there.
    absent_predicates: AtomicBool,
    /// Steps of the transaction itself have changed named graphs.
    changes_named: AtomicBool,
}

impl Reads {
    /// Nothing yet, of a copy of `start`.
    pub(crate) fn of(start: Arc<Snapshot>) -> Self {
        let words = start.predicate_count().div_ceil(64);
        Self {
            start,
            predicates: (0..words).map(|_| AtomicU64::new(0)).collect(),
            units: RwLock::default(),
            all_of_default: AtomicBool::new(false),
            all_types: AtomicBool::new(false),
            all_of_named: AtomicBool::new(false),
            all_graphs: AtomicBool::new(false),
            absent_predicates: AtomicBool::new(false),
            changes_named: AtomicBool::new(false),
        }
    }

    /// True if the id means the same in every later snapshot; the transaction's own new terms and
    /// those that a query computed do not.
    fn is_shared(&self, id: TermId) -> bool {
        id.kind() != TermKind::Computed && self.start.knows(id)
    }

    /// Notes that all of the default graph was read.
    pub(crate) fn note_default(&self) {
        self.all_of_default.store(true, Relaxed);
    }

    /// Notes a predicate of the default graph.
    pub(crate) fn note_predicate(&self, predicate: PredicateId) {
        if predicate == PredicateId::TYPE {
            return self.all_types.store(true, Relaxed);
        }
        if predicate.index() >= self.start.predicate_count() {
            return self.note_absent_predicate();
        }
        let word = &self.predicates[predicate.index() / 64];
        let bit = 1 << (predicate.index() % 64);
        if word.load(Relaxed) & bit == 0 {
            word.fetch_or(bit, Relaxed);
        }
    }

    /// Notes that a predicate was not there.
    pub(crate) fn note_absent_predicate(&self) {
        self.absent_predicates.store(true, Relaxed);
    }

    fn note_edges(&self, predicate: PredicateId, direction: Direction, keys: &[TermId]) {
        match (predicate, direction) {
            (PredicateId::TYPE, Direction::In) => {
                for class in keys {
                    self.note_class(*class);
                }
            }
            _ => self.note_predicate(predicate),
        }
    }

    fn note_class(&self, class: TermId) {
        if self.all_types.load(Relaxed) {
            return;
        }
        match self.is_shared(class) {
            true => self.note_unit(Unit::Class(class)),
            false => self.all_types.store(true, Relaxed),
        }
    }

    /// Notes quads of one named graph or of all, with one predicate or with any.
    pub(crate) fn note_named(&self, graph: Option<TermId>, predicate: Option<PredicateId>) {
        if self.all_of_named.load(Relaxed) {
            return;
        }
        if predicate.is_some_and(|number| number.index() >= self.start.predicate_count()) {
            return self.note_absent_predicate();
        }
        match graph {
            // A graph that is not there has no quads.
            Some(graph) if !self.is_shared(graph) => self.note_all_graphs(),
            graph => self.note_unit(Unit::Named(graph, predicate)),
        }
    }

    /// Notes whether there is a graph of this name.
    pub(crate) fn note_graph(&self, graph: TermId) {
        // What others add to a graph decides whether it is there without the quads that this
        // transaction removes.
        if self.changes_named.load(Relaxed) {
            self.note_named(Some(graph), None);
        }
        if self.all_graphs.load(Relaxed) {
            return;
        }
        match self.is_shared(graph) {
            true => self.note_unit(Unit::Graph(graph)),
            false => self.note_all_graphs(),
        }
    }

    /// Notes which named graphs there are.
    pub(crate) fn note_all_graphs(&self) {
        if self.changes_named.load(Relaxed) {
            self.all_of_named.store(true, Relaxed);
        }
        self.all_graphs.store(true, Relaxed);
    }

    /// Notes that the transaction itself has changed named graphs.
    pub(crate) fn note_own_change_of_named(&self) {
        self.changes_named.store(true, Relaxed);
    }

    fn note_unit(&self, unit: Unit) {
        if self.units.read().contains(&unit) {
            return;
        }
        let mut units = self.units.write();
        if units.len() < MOST_UNITS {
            units.insert(unit);
            return;
        }
        drop(units);
        match unit {
            Unit::Class(_) => self.all_types.store(true, Relaxed),
            Unit::Named(..) => self.all_of_named.store(true, Relaxed),
            Unit::Graph(_) => self.all_graphs.store(true, Relaxed),
        }
    }

    fn note_pattern(&self, pattern: &Pattern, graph: GraphRef<'_>) {
        match (pattern.predicate, pattern.object) {
            (Some(predicate), Some(object)) => {
                self.note_in(graph, predicate, Direction::In, &[object]);
            }
            (Some(predicate), None) => self.note_in(graph, predicate, Direction::Out, &[]),
            (None, _) => self.note_all_in(graph),
        }
    }

    /// Notes edges of a predicate around some keys in a graph.
    fn note_in(
        &self,
        graph: GraphRef<'_>,
        predicate: PredicateId,
        direction: Direction,
        keys: &[TermId],
    ) {
        match graph {
            GraphRef::Default => self.note_edges(predicate, direction, keys),
            GraphRef::One(graph) => self.note_named(Some(graph), Some(predicate)),
            GraphRef::Some(graphs) => {
                for graph in graphs {
                    self.note_named(Some(*graph), Some(predicate));
                }
            }
            GraphRef::Each(graphs) => {
                for run in graphs.chunk_by(TermId::eq) {
                    self.note_named(Some(run[0]), Some(predicate));
                }
            }
            GraphRef::Named => self.note_named(None, Some(predicate)),
            GraphRef::Union => {
                self.note_edges(predicate, direction, keys);
                self.note_named(None, Some(predicate));
            }
        }
    }

    /// Notes all that a graph has.
    fn note_all_in(&self, graph: GraphRef<'_>) {
        match graph {
            GraphRef::Default => self.note_default(),
            GraphRef::One(graph) => self.note_named(Some(graph), None),
            GraphRef::Some(graphs) => {
                for graph in graphs {
                    self.note_named(Some(*graph), None);
                }
            }
            GraphRef::Named | GraphRef::Each(_) => self.note_named(None, None),
            GraphRef::Union => {
                self.note_default();
                self.note_named(None, None);
            }
        }
    }

    fn note_list(&self, graph: GraphRef<'_>, list: &Lists<'_>) {
        self.note_in(graph, list.predicate, list.direction, list.keys);
    }

    /// True if nothing that was read differs between two later snapshots of the generation, of
    /// which the first one was known to agree with the start.
    ///
    /// The threads that read have handed over what they found.
    pub(crate) fn agree(&self, before: &Snapshot, now: &Snapshot) -> bool {
        let is_flagged = |flag: &AtomicBool| flag.load(Relaxed);
        if is_flagged(&self.absent_predicates) && before.predicate_count() != now.predicate_count()
        {
            return false;
        }
        let units = self.units.read();
        let named = |graph: Option<TermId>, predicate: Option<PredicateId>| {
            units.contains(&Unit::Named(graph, predicate))
        };
        let was_read = |changed: Changed| match changed {
            Changed::Predicate(predicate) => {
                let word = self.predicates.get(predicate.index() / 64);
                let word = word.map_or(0, |word| word.load(Relaxed));
                is_flagged(&self.all_of_default) || word >> (predicate.index() % 64) & 1 != 0
            }
            Changed::Class(class) => {
                is_flagged(&self.all_of_default)
                    || is_flagged(&self.all_types)
                    || units.contains(&Unit::Class(class))
            }
            Changed::Named(graph, predicate) => {
                is_flagged(&self.all_of_named)
                    || named(Some(graph), Some(predicate))
                    || named(Some(graph), None)
                    || named(None, Some(predicate))
                    || named(None, None)
            }
            Changed::Graph(graph) => {
                is_flagged(&self.all_graphs) || units.contains(&Unit::Graph(graph))
            }
        };
        let flow = now.for_each_changed_since(before, &mut |changed| match was_read(changed) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        });
        flow.is_continue()
    }
}

/// A graph that notes what is asked of it.
pub(crate) struct WatchedGraph {
    pub(crate) graph: Arc<dyn GraphSource>,
    pub(crate) reads: Arc<Reads>,
}

/// Terms are no part of what is read: one that nobody knew is in no quad, and that is noted where
/// quads are asked for.
impl Catalogue for WatchedGraph {
    fn predicate(&self, term: TermId) -> Option<PredicateId> {
        let predicate = Catalogue::predicate(&*self.graph, term);
        if predicate.is_none() {
            self.reads.note_absent_predicate();
        }
        predicate
    }

    fn predicate_term(&self, predicate: PredicateId) -> TermId {
        self.graph.predicate_term(predicate)
    }

    fn predicates(&self, graph: GraphRef<'_>, out: &mut Vec<PredicateId>) {
        self.reads.note_absent_predicate();
        if let GraphRef::One(_) = graph {
            self.reads.note_all_in(graph);
        }
        self.graph.predicates(graph, out);
    }

    fn predicates_of(
        &self,
        graph: GraphRef<'_>,
        key: TermId,
        direction: Direction,
        out: &mut Vec<PredicateId>,
    ) {
        self.reads.note_all_in(graph);
        self.graph.predicates_of(graph, key, direction, out);
    }

    fn has_graph(&self, graph: TermId) -> bool {
        self.reads.note_graph(graph);
        self.graph.has_graph(graph)
    }

    fn graph_count(&self) -> u64 {
        self.reads.note_all_graphs();
        self.graph.graph_count()
    }

    fn graphs(&self, out: &mut Vec<TermId>) {
        self.reads.note_all_graphs();
        self.graph.graphs(out);
    }

    fn named_quads(&self, predicate: PredicateId) -> Option<u64> {
        self.reads
            .note_in(GraphRef::Named, predicate, Direction::Out, &[]);
        self.graph.named_quads(predicate)
    }

    fn edges(&self, graph: GraphRef<'_>, predicate: PredicateId) -> Option<u64> {
        self.reads.note_in(graph, predicate, Direction::Out, &[]);
        self.graph.edges(graph, predicate)
    }
}

impl GraphSource for WatchedGraph {
    fn members(
        &self,
        graph: GraphRef<'_>,
        memberships: &[Membership],
        precision: Precision,
        within: Option<&IdRanges>,
    ) -> Result<Option<IdRanges>, Unavailable> {
        for membership in memberships {
            match *membership {
                Membership::Type(class) => {
                    let predicate = PredicateId::TYPE;
                    self.reads
                        .note_in(graph, predicate, Direction::In, &[class]);
                }
                Membership::Has(predicate, _) => {
                    self.reads.note_in(graph, predicate, Direction::Out, &[]);
                }
            }
        }
        self.graph.members(graph, memberships, precision, within)
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
        for list in lists {
            self.reads.note_list(graph, list);
        }
        self.graph
            .expand(graph, lists, cursor, allowed, budget, rows, out)
    }

    fn places(&self, graph: GraphRef<'_>, list: &Lists<'_>) -> Result<u64, Unavailable> {
        self.reads.note_list(graph, list);
        self.graph.places(graph, list)
    }

    fn contains(
        &self,
        graph: GraphRef<'_>,
        list: &Lists<'_>,
        to: &[TermId],
        rows: &mut Vec<u32>,
    ) -> Result<(), Unavailable> {
        self.reads.note_list(graph, list);
        self.graph.contains(graph, list, to, rows)
    }

    fn degrees(
        &self,
        graph: GraphRef<'_>,
        list: &Lists<'_>,
        allowed: Option<&IdRanges>,
        out: &mut Vec<u64>,
    ) -> Result<(), Unavailable> {
        self.reads.note_list(graph, list);
        self.graph.degrees(graph, list, allowed, out)
    }

    fn graphs_of(
        &self,
        list: &Lists<'_>,
        to: &[TermId],
        rows: &mut Vec<u32>,
        graphs: &mut Vec<TermId>,
    ) -> Result<(), Unavailable> {
        self.reads.note_list(GraphRef::Named, list);
        self.graph.graphs_of(list, to, rows, graphs)
    }

    fn predicates_at(
        &self,
        graph: GraphRef<'_>,
        key: TermId,
        direction: Direction,
        out: &mut Vec<PredicateId>,
    ) -> Result<(), Unavailable> {
        self.reads.note_all_in(graph);
        self.graph.predicates_at(graph, key, direction, out)
    }

    fn for_each_match(
        &self,
        pattern: &Pattern,
        graph: GraphRef<'_>,
        visit: &mut Visit<'_>,
    ) -> Result<ControlFlow<()>, Unavailable> {
        self.reads.note_pattern(pattern, graph);
        self.graph.for_each_match(pattern, graph, visit)
    }

    fn for_each_quad(
        &self,
        pattern: &Pattern,
        visit: &mut Visit<'_>,
    ) -> Result<ControlFlow<()>, Unavailable> {
        self.reads.note_pattern(pattern, GraphRef::Named);
        self.graph.for_each_quad(pattern, visit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jindou_model::{IdQuad, SnapshotNumber};
    use jindou_store::Changes;
    use jindou_store::bulk::build;

    #[test]
    fn more_units_than_are_noted_count_as_all() {
        let base = build(Vec::new(), 0).expect("it is small");
        let mut start = Snapshot::of_base(base, 0, SnapshotNumber(1));
        let mut node = |number: usize| {
            let key = format!("http://e/{number}");
            start.intern_node(key.as_bytes()).expect("there is room")
        };
        let classes: Vec<TermId> = (0..=MOST_UNITS).map(&mut node).collect();
        let (subject, other) = (node(MOST_UNITS + 1), node(MOST_UNITS + 2));
        start.keep_terms();
        let reads = Reads::of(Arc::new(start.clone()));
        let mut now = start.clone();
        now.apply(&Changes {
            add: vec![IdQuad {
                subject,
                predicate: PredicateId::TYPE,
                object: other,
                graph: TermId::NONE,
            }],
            ..Changes::default()
        });
        for (noted, class) in classes.iter().enumerate() {
            assert!(reads.agree(&start, &now), "{noted} classes are noted");
            reads.note_class(*class);
        }
        assert!(!reads.agree(&start, &now));
        assert!(reads.agree(&start, &start));
    }
}
