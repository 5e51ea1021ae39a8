//! What differs between two snapshots of one generation?
//!
//! The units are those in which a transaction's reads are noted: edges of a predicate, members of
//! a class, quads of a predicate in a named graph, and the named graphs themselves.

use std::ops::ControlFlow;

use jindou_model::{Change, Direction, IdQuad, PredicateId, SortedSet, TermId};
use rustc_hash::FxHashSet;

use super::apply::Changes;
use super::named::GraphQuad;
use super::segment::SegmentDelta;
use super::snapshot::Snapshot;
use crate::LayerKind;

/// A part of the graph that differs between two snapshots.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Changed {
    /// Edges of this predicate in the default graph; not said of `rdf:type`.
    Predicate(PredicateId),
    /// Members of this class in the default graph: its `rdf:type` edges.
    Class(TermId),
    /// Quads with this predicate in this named graph.
    Named(TermId, PredicateId),
    /// This named graph came or went.
    Graph(TermId),
}

impl Snapshot {
    /// Calls `visit` with each part that differs from an earlier snapshot of the same generation,
    /// perhaps also with some that changed and changed back, until it breaks.
    ///
    /// Costs the predicates with changes since the last merge, and for types and named graphs the
    /// changes between the two snapshots.
    ///
    /// # Panics
    /// If the other one is of another generation.
    pub fn for_each_changed_since(
        &self,
        before: &Self,
        visit: &mut dyn FnMut(Changed) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        assert!(
            self.is_of_generation_of(before),
            "ids of another generation mean something else"
        );
        for (number, delta) in
            self.delta.layers[LayerKind::Default as usize].segments[Direction::Out as usize].iter()
        {
            let predicate = PredicateId(number as u32);
            let old =
                before.delta.layers[LayerKind::Default as usize].segment(predicate, Direction::Out);
            // Overlays come and go without a new version.
            if old.map_or(0, |old| old.version) == delta.version {
                continue;
            }
            match predicate {
                PredicateId::TYPE => self.for_each_changed_class(before, visit)?,
                other => visit(Changed::Predicate(other))?,
            }
        }
        self.for_each_changed_graph(before, visit)
    }

    /// The quads that were removed and added since an earlier snapshot of the same generation; what
    /// changed and changed back is in neither list. Those of the default graph come first, predicate
    /// by predicate.
    ///
    /// Costs the predicates with changes since the last merge, and the changes between the two
    /// snapshots.
    ///
    /// # Panics
    /// If the other one is of another generation.
    #[must_use]
    pub fn quads_since(&self, before: &Self) -> Changes {
        assert!(
            self.is_of_generation_of(before),
            "ids of another generation mean something else"
        );
        let mut changes = Changes::default();
        let mut note = |change, graph, predicate, (subject, object)| {
            let quad = IdQuad {
                subject: TermId::from_raw(subject),
                predicate,
                object: TermId::from_raw(object),
                graph,
            };
            match change {
                Change::Add => changes.add.push(quad),
                Change::Remove => changes.remove.push(quad),
            }
        };
        let kind = LayerKind::Default as usize;
        let nothing = SegmentDelta::default();
        for (number, now) in self.delta.layers[kind].segments[Direction::Out as usize].iter() {
            let predicate = PredicateId(number as u32);
            let old = before.delta.layers[kind].segment(predicate, Direction::Out);
            // Overlays come and go without a new version.
            if old.map_or(0, |old| old.version) == now.version {
                continue;
            }
            for (edge, change) in now.edges_since(old.unwrap_or(&nothing)) {
                note(change, TermId::NONE, predicate, edge);
            }
        }
        let (now, then) = (&self.delta.named, &before.delta.named);
        let of_graph = |(graph, predicate, ..): &GraphQuad| {
            (TermId::from_raw(*graph), PredicateId(*predicate))
        };
        for (quad, change) in now.added.changes_since(&then.added) {
            let (graph, predicate) = of_graph(&quad);
            note(change, graph, predicate, (quad.2, quad.3));
        }
        for (quad, change) in now.removed.changes_since(&then.removed) {
            let (graph, predicate) = of_graph(&quad);
            let inverse = match change {
                Change::Add => Change::Remove,
                Change::Remove => Change::Add,
            };
            note(inverse, graph, predicate, (quad.2, quad.3));
        }
        changes
    }

    /// A number that is another one once quads of a predicate have changed in a layer, and only then; of
    /// the named graphs, in any of them. No other store of this process has it.
    #[must_use]
    pub fn version_of(&self, layer: LayerKind, predicate: PredicateId) -> u64 {
        self.delta.content.of(layer, predicate)
    }

    /// The graphs that were let exist without quads since an earlier snapshot, or no longer are.
    pub(crate) fn declared_since(&self, before: &Self) -> Vec<(u64, Change)> {
        self.delta.declared.changes_since(&before.delta.declared)
    }

    fn for_each_changed_class(
        &self,
        before: &Self,
        visit: &mut dyn FnMut(Changed) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let nothing = SegmentDelta::default();
        let of = |snapshot: &'_ Self| -> [SortedSet<(u64, u64)>; 2] {
            let delta = snapshot.delta.layers[LayerKind::Default as usize]
                .segment(PredicateId::TYPE, Direction::In);
            let delta = delta.unwrap_or(&nothing);
            [delta.added.clone(), delta.removed.clone()]
        };
        for (now, old) in of(self).iter().zip(&of(before)) {
            let mut last = None;
            for ((class, _), _) in now.changes_since(old) {
                if last.replace(class) != Some(class) {
                    visit(Changed::Class(TermId::from_raw(class)))?;
                }
            }
        }
        ControlFlow::Continue(())
    }

    fn for_each_changed_graph(
        &self,
        before: &Self,
        visit: &mut dyn FnMut(Changed) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let (now, old) = (&self.delta.named, &before.delta.named);
        let mut graphs = FxHashSet::default();
        for quads in [
            now.added.changes_since(&old.added),
            now.removed.changes_since(&old.removed),
        ] {
            let part = |(quad, _): &(GraphQuad, Change)| (quad.0, quad.1);
            for same in quads.chunk_by(|a, b| part(a) == part(b)) {
                let (graph, predicate) = part(&same[0]);
                graphs.insert(graph);
                visit(Changed::Named(
                    TermId::from_raw(graph),
                    PredicateId(predicate),
                ))?;
            }
        }
        let declared = self.declared_since(before);
        graphs.extend(declared.iter().map(|(graph, _)| *graph));
        for graph in graphs.into_iter().map(TermId::from_raw) {
            if self.has_graph(graph) != before.has_graph(graph) {
                visit(Changed::Graph(graph))?;
            }
        }
        ControlFlow::Continue(())
    }
}
