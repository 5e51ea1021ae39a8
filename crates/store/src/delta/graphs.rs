//! Named graphs at one snapshot: which are there, in which is an edge, and what is in one of them?

use std::ops::ControlFlow;

use jindou_model::{Direction, GraphRef, IdRanges, Pattern, PredicateId, TermId, TermKind, Visit};

use super::named::{EdgeChanges, of_graph, of_graph_and_predicate};
use super::segment::SegmentDelta;
use super::snapshot::Snapshot;
use super::view::LayerView;
use crate::layer::LayerKind;
use crate::named::{EdgeGraphs, OfGraph};

/// The named graphs of the edges of one predicate, at one snapshot.
pub struct EdgeGraphsAt<'a> {
    snapshot: &'a Snapshot,
    base: EdgeGraphs<'a>,
    changes: Option<&'a EdgeChanges>,
    /// Of the layer, by subject.
    edges: Option<&'a SegmentDelta>,
    /// The graph that was asked for last, and its number in the base.
    last: (TermId, Option<u32>),
}

impl<'a> EdgeGraphsAt<'a> {
    /// What changed for a subject, and whether the base knows an edge that the layer has.
    fn changes(&self, subject: TermId, object: TermId) -> (Option<&'a EdgeChanges>, bool) {
        let Some(changes) = self.changes.filter(|changes| changes.may_touch(subject)) else {
            return (None, true);
        };
        let edge = (subject.raw(), object.raw());
        let is_new = self.edges.is_some_and(|edges| edges.added.contains(edge));
        (Some(changes), !is_new)
    }

    /// The graph that all edges of the first of some subjects are in, and of how many subjects from
    /// there on, where that is known at once.
    pub(super) fn of_run(&mut self, subjects: &[TermId]) -> Option<(TermId, usize)> {
        if self.changes.is_some() {
            return None;
        }
        let (number, count) = self.base.of_run(subjects)?;
        Some((self.snapshot.base().named().id(number), count))
    }

    /// True if it is known at once that all edges of some subjects are in a graph alone.
    pub(super) fn are_all_in(&mut self, mut subjects: &[TermId], graph: TermId) -> bool {
        while !subjects.is_empty() {
            match self.of_run(subjects) {
                Some((home, count)) if home == graph => subjects = &subjects[count..],
                _ => return false,
            }
        }
        true
    }

    /// True if an edge that the layer has is in a graph.
    pub fn is_in(&mut self, subject: TermId, object: TermId, graph: TermId) -> bool {
        let (changes, in_base) = self.changes(subject, object);
        if let Some(changes) = changes {
            let edge = (subject.raw(), object.raw(), graph.raw());
            if changes.added.contains(edge) {
                return true;
            }
            if !in_base || changes.removed.contains(edge) {
                return false;
            }
        }
        if self.last.0 != graph {
            self.last = (graph, self.snapshot.base().named().number(graph));
        }
        let Some(number) = self.last.1 else {
            return false;
        };
        self.base.of(subject, object).contains(number)
    }

    /// True if an edge that the layer has is in one of some graphs, whose ids are sorted.
    pub fn is_in_any(&mut self, subject: TermId, object: TermId, graphs: &[TermId]) -> bool {
        if let [only] = graphs {
            return self.is_in(subject, object, *only);
        }
        let flow = self.for_each(
            subject,
            object,
            &mut |graph| match graphs.binary_search(&graph) {
                Ok(_) => ControlFlow::Break(()),
                Err(_) => ControlFlow::Continue(()),
            },
        );
        flow.is_break()
    }

    /// True if an edge that the layer has, or had before its last graph lost it, is in any graph.
    pub(super) fn has_any(&mut self, subject: TermId, object: TermId) -> bool {
        self.for_each(subject, object, &mut |_| ControlFlow::Break(()))
            .is_break()
    }

    /// Calls `visit` with each graph of an edge that the layer has, until it breaks.
    pub fn for_each(
        &mut self,
        subject: TermId,
        object: TermId,
        visit: &mut dyn FnMut(TermId) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let (changes, in_base) = self.changes(subject, object);
        let named = self.snapshot.base().named();
        if in_base {
            for number in self.base.of(subject, object).iter() {
                let graph = named.id(number);
                let edge = (subject.raw(), object.raw(), graph.raw());
                if changes.is_none_or(|changes| !changes.removed.contains(edge)) {
                    visit(graph)?;
                }
            }
        }
        let Some(changes) = changes else {
            return ControlFlow::Continue(());
        };
        let added = &changes.added;
        let (s, o) = (subject.raw(), object.raw());
        let range = added.rank_by(|edge| (edge.0, edge.1) < (s, o))
            ..added.rank_by(|e| (e.0, e.1) <= (s, o));
        for (_, _, graph) in added.slices(range).flatten() {
            visit(TermId::from_raw(*graph))?;
        }
        ControlFlow::Continue(())
    }
}

impl Snapshot {
    /// All named graphs laid over each other: each edge once.
    #[inline]
    #[must_use]
    pub fn named_layer(&self) -> LayerView<'_> {
        self.layer(LayerKind::Named)
    }

    /// Number of quads outside the default graph.
    #[must_use]
    pub fn named_quads(&self) -> u64 {
        let named = &self.delta.named;
        self.base().named_figures().quads() + named.added.len() as u64 - named.removed.len() as u64
    }

    /// The part of the quads outside the default graph that the graph of one of them has, on average: as of
    /// the last merge, if most came before it, else as if all graphs were of one size.
    #[must_use]
    pub fn graph_share(&self) -> f64 {
        let in_base = self.base().named_figures();
        match in_base.quads() >= self.named_quads() / 2 && in_base.quads() > 0 {
            true => in_base.share(),
            false => 1.0 / self.named_graphs().max(1) as f64,
        }
    }

    /// Number of quads of a predicate outside the default graph.
    #[must_use]
    pub fn named_quads_of(&self, predicate: PredicateId) -> u64 {
        let part = self.base().named_figures().part(predicate);
        let in_base = part.map_or(0, |part| part.index.quads());
        let changes = self.delta.named.edges(predicate);
        changes.map_or(in_base, |changes| {
            in_base + changes.added.len() as u64 - changes.removed.len() as u64
        })
    }

    /// Number of named graphs: those that have quads or were declared.
    #[must_use]
    pub fn named_graphs(&self) -> u64 {
        let named = &self.delta.named;
        let with_quads = self.base().named_figures().len() + named.gained.len() - named.lost.len();
        let empty = self.delta.declared.iter();
        let empty = empty.filter(|graph| !self.has_quads(TermId::from_raw(*graph)));
        (with_quads + empty.count()) as u64
    }

    fn has_quads(&self, graph: TermId) -> bool {
        let named = &self.delta.named;
        if self.base().named_figures().contains(graph) {
            !named.lost.contains(graph.raw())
        } else {
            named.gained.contains(graph.raw())
        }
    }

    /// True if a named graph has quads or was declared.
    #[must_use]
    pub fn has_graph(&self, graph: TermId) -> bool {
        self.has_quads(graph) || self.delta.declared.contains(graph.raw())
    }

    /// Calls `visit` with each named graph.
    pub fn for_each_graph(&self, visit: &mut dyn FnMut(TermId)) {
        let named = &self.delta.named;
        self.base().named_figures().for_each_graph(&mut |graph| {
            if !named.lost.contains(graph.raw()) {
                visit(graph);
            }
        });
        named
            .gained
            .iter()
            .map(TermId::from_raw)
            .for_each(&mut *visit);
        let declared = self.delta.declared.iter().map(TermId::from_raw);
        declared
            .filter(|graph| !self.has_quads(*graph))
            .for_each(visit);
    }

    /// Graphs that exist without quads, too.
    pub fn declared_graphs(&self) -> impl Iterator<Item = TermId> + '_ {
        self.delta.declared.iter().map(TermId::from_raw)
    }

    /// The graphs of the edges of one predicate.
    #[must_use]
    pub fn graphs_of_edges(&self, predicate: PredicateId) -> EdgeGraphsAt<'_> {
        let layer = &self.delta.layers[LayerKind::Named as usize];
        EdgeGraphsAt {
            snapshot: self,
            base: EdgeGraphs::new(self.base(), predicate),
            changes: self.delta.named.edges(predicate),
            edges: layer.segment(predicate, Direction::Out),
            last: (TermId::NONE, None),
        }
    }

    /// Number of quads of a named graph, of one predicate where that is given.
    #[must_use]
    pub fn graph_quads(&self, graph: TermId, predicate: Option<PredicateId>) -> u64 {
        let delta = &self.delta.named;
        let (in_base, [added, removed]) = match predicate {
            None => (
                self.base().quads_of_graph(graph),
                [&delta.added, &delta.removed].map(|set| of_graph(set, graph.raw())),
            ),
            Some(predicate) => (
                self.quads_in_base(graph, predicate),
                [&delta.added, &delta.removed]
                    .map(|set| of_graph_and_predicate(set, graph, predicate)),
            ),
        };
        in_base + added.len() as u64 - removed.len() as u64
    }

    fn quads_in_base(&self, graph: TermId, predicate: PredicateId) -> u64 {
        let figures = self.base().named_figures();
        let number = figures.number(graph);
        number.map_or(0, |number| figures.edges_of(number, predicate))
    }

    /// The predicates of a named graph's quads, sorted, and perhaps some that it has no more.
    #[must_use]
    pub fn predicates_of_graph(&self, graph: TermId) -> Vec<PredicateId> {
        let mut predicates = self.base().named_figures().predicates_of(graph);
        let added = &self.delta.named.added;
        let mut range = of_graph(added, graph.raw());
        if range.is_empty() {
            return predicates;
        }
        while !range.is_empty() {
            let first = added.slices(range.start..range.start + 1).flatten().next();
            let predicate = PredicateId(first.expect("the range has one").1);
            predicates.push(predicate);
            range.start = of_graph_and_predicate(added, graph, predicate).end;
        }
        predicates.sort_unstable();
        predicates.dedup();
        predicates
    }

    /// Calls `visit` with each edge that a named graph has of a predicate, until it breaks; costs
    /// what that is.
    pub(super) fn for_each_edge_of_graph(
        &self,
        graph: TermId,
        predicate: PredicateId,
        visit: &mut dyn FnMut(TermId, TermId) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let delta = &self.delta.named;
        if let Some(of_graph) = OfGraph::new(self.base(), graph, predicate) {
            of_graph.for_each(
                &mut |s, o| match delta.is_removed(graph, (s, predicate, o)) {
                    true => ControlFlow::Continue(()),
                    false => visit(s, o),
                },
            )?;
        }
        let added = of_graph_and_predicate(&delta.added, graph, predicate);
        for (_, _, s, o) in delta.added.slices(added).flatten() {
            visit(TermId::from_raw(*s), TermId::from_raw(*o))?;
        }
        ControlFlow::Continue(())
    }

    /// The subjects of a predicate in a named graph, and perhaps some that have it in others only.
    pub(super) fn subjects_in_graph(&self, graph: TermId, predicate: PredicateId) -> IdRanges {
        let of_graph = OfGraph::new(self.base(), graph, predicate);
        let in_base = of_graph.map_or_else(IdRanges::new, |of| of.subjects());
        let added = &self.delta.named.added;
        let range = of_graph_and_predicate(added, graph, predicate);
        let subjects = added.slices(range).flatten().map(|quad| quad.2);
        let mut subjects: Vec<u64> = subjects.collect();
        subjects.dedup();
        in_base.with(&subjects)
    }

    /// Calls `visit` with each quad of the named graphs that matches, until it breaks.
    pub fn for_each_quad(&self, pattern: &Pattern, visit: &mut Visit<'_>) -> ControlFlow<()> {
        let mut graphs: Option<(PredicateId, EdgeGraphsAt<'_>)> = None;
        self.named_layer()
            .for_each_match(pattern, &mut |s, p, o, _| {
                let of_predicate = match &mut graphs {
                    Some((predicate, graphs)) if *predicate == p => graphs,
                    _ => &mut graphs.insert((p, self.graphs_of_edges(p))).1,
                };
                of_predicate.for_each(s, o, &mut |graph| visit(s, p, o, graph))
            })
    }

    /// Calls `visit` with each triple of a graph that matches, until it breaks; the graph of each
    /// is that of [`GraphRef::One`], or `NONE`.
    ///
    /// Costs the matches in the layer where an end is known, or what one graph has of a predicate
    /// where that is less.
    pub fn for_each_match(
        &self,
        pattern: &Pattern,
        graph: GraphRef<'_>,
        visit: &mut Visit<'_>,
    ) -> ControlFlow<()> {
        match graph {
            GraphRef::Default => self.default_graph().for_each_match(pattern, visit),
            GraphRef::Named | GraphRef::Each(_) => {
                self.named_layer().for_each_match(pattern, visit)
            }
            GraphRef::Union => self.match_union(pattern, visit),
            GraphRef::One(graph) => self.match_graphs(pattern, &[graph], graph, visit),
            GraphRef::Some(graphs) => self.match_graphs(pattern, graphs, TermId::NONE, visit),
        }
    }

    fn match_union(&self, pattern: &Pattern, visit: &mut Visit<'_>) -> ControlFlow<()> {
        let default = self.default_graph();
        default.for_each_match(pattern, visit)?;
        self.named_layer()
            .for_each_match(pattern, &mut |s, p, o, g| {
                let list = default.neighbours(p, Direction::Out, s);
                match list.contains(o) {
                    true => ControlFlow::Continue(()),
                    false => visit(s, p, o, g),
                }
            })
    }

    /// The triples of some named graphs, which are said to be of the graph `name`.
    fn match_graphs(
        &self,
        pattern: &Pattern,
        graphs: &[TermId],
        name: TermId,
        visit: &mut Visit<'_>,
    ) -> ControlFlow<()> {
        let mut predicates = Vec::new();
        let layer = self.named_layer();
        match (pattern.predicate, pattern.subject, pattern.object) {
            (Some(predicate), _, _) => predicates.push(predicate),
            (None, Some(subject), _) => {
                layer.predicates_of_vertex(subject, Direction::Out, &mut predicates);
            }
            (None, None, Some(object)) if object.kind() == TermKind::Vertex => {
                layer.predicates_of_vertex(object, Direction::In, &mut predicates);
            }
            _ => {
                let of_graphs = graphs
                    .iter()
                    .flat_map(|graph| self.predicates_of_graph(*graph));
                predicates.extend(of_graphs);
                predicates.sort_unstable();
                predicates.dedup();
            }
        }
        for predicate in predicates {
            self.match_predicate_of_graphs(pattern, (graphs, predicate), &mut |s, o| {
                visit(s, predicate, o, name)
            })?;
        }
        ControlFlow::Continue(())
    }

    fn match_predicate_of_graphs(
        &self,
        pattern: &Pattern,
        (graphs, predicate): (&[TermId], PredicateId),
        visit: &mut dyn FnMut(TermId, TermId) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let fits = |s: TermId, o: TermId| {
            pattern.subject.is_none_or(|known| known == s)
                && pattern.object.is_none_or(|known| known == o)
        };
        let layer = self.named_layer();
        let own = graphs
            .iter()
            .map(|graph| self.graph_quads(*graph, Some(predicate)));
        let own: u64 = own.sum();
        let end = match (pattern.subject, pattern.object) {
            (Some(subject), _) => Some((subject, Direction::Out)),
            (None, Some(object)) => Some((object, Direction::In)),
            (None, None) => None,
        };
        let list = end.map(|(key, direction)| layer.neighbours(predicate, direction, key));
        if let (Some((key, direction)), Some(list)) = (end, list)
            && list.len() as u64 <= own
        {
            let mut of_edges = self.graphs_of_edges(predicate);
            return super::view::for_each_neighbour(list, &mut |other| {
                let (s, o) = match direction {
                    Direction::Out => (key, other),
                    Direction::In => (other, key),
                };
                match fits(s, o) && of_edges.is_in_any(s, o, graphs) {
                    true => visit(s, o),
                    false => ControlFlow::Continue(()),
                }
            });
        }
        if let [only] = graphs {
            return self.for_each_edge_of_graph(*only, predicate, &mut |s, o| match fits(s, o) {
                true => visit(s, o),
                false => ControlFlow::Continue(()),
            });
        }
        // All of the layer, where that is less than what the graphs have one by one.
        let all = Pattern {
            predicate: Some(predicate),
            ..*pattern
        };
        let mut of_edges = self.graphs_of_edges(predicate);
        if end.is_none() && layer.counts(predicate, Direction::Out).0 <= own {
            return layer.for_each_match(&all, &mut |s, _, o, _| match of_edges
                .is_in_any(s, o, graphs)
            {
                true => visit(s, o),
                false => ControlFlow::Continue(()),
            });
        }
        for (place, graph) in graphs.iter().enumerate() {
            self.for_each_edge_of_graph(*graph, predicate, &mut |s, o| {
                // Each once: with the first of its graphs.
                match fits(s, o) && !of_edges.is_in_any(s, o, &graphs[..place]) {
                    true => visit(s, o),
                    false => ControlFlow::Continue(()),
                }
            })?;
        }
        ControlFlow::Continue(())
    }
}
