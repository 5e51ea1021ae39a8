//! Named graphs: in which of them is an edge, and what is in one of them?
//!
//! The edges of all named graphs are one [`crate::Layer`], where each is there once. Most are in one
//! graph, the home of their subject (see [`crate::runs`]), and say nothing more. Which graphs the
//! others are in stands in a list by place, or for each place where the list would be long.

use std::ops::ControlFlow;
use std::sync::Arc;

use jindou_model::{Direction, IdRanges, Neighbours, PredicateId, TermId};

use crate::base::Base;
use crate::graph_index::{ByGraph, Entry, GraphIndex};
use crate::graph_table::{GraphList, GraphTable};
use crate::layer::LayerKind;
use crate::predicate_graphs::{EdgeSets, PredicateGraphs};
use crate::runs::{NO_HOME, Runs};

/// All named graphs: what is shared by all predicates, a part for each of them, and what follows
/// from these. A merge keeps the parts that it does not change.
#[derive(Clone, Debug)]
pub struct NamedGraphs {
    pub(crate) graphs: Arc<GraphTable>,
    of_predicate: Vec<Arc<PredicateGraphs>>,
    // What follows is derived from the above.
    by_graph: ByGraph,
    quads: u64,
}

impl NamedGraphs {
    /// Joins the parts of all predicates, which speak of graphs and sets by the numbers of a table.
    ///
    /// Costs a step for each graph, and for each predicate of each graph.
    pub(crate) fn join(graphs: Arc<GraphTable>, of_predicate: Vec<Arc<PredicateGraphs>>) -> Self {
        let by_graph = ByGraph::new(&of_predicate, graphs.len());
        Self {
            quads: by_graph.all_quads(),
            graphs,
            of_predicate,
            by_graph,
        }
    }

    /// Number of quads.
    #[must_use]
    pub fn quads(&self) -> u64 {
        self.quads
    }

    /// The part of all quads that the graph of one of them has, on average.
    pub(crate) fn share(&self) -> f64 {
        self.by_graph.share()
    }

    /// Number of graphs that have quads.
    #[must_use]
    pub fn len(&self) -> usize {
        self.by_graph.graphs()
    }

    /// True if no named graph has quads.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// True if there is a quad in this graph.
    #[must_use]
    pub fn contains(&self, graph: TermId) -> bool {
        let number = self.graphs.number(graph);
        number.is_some_and(|number| self.by_graph.quads(number) > 0)
    }

    /// Calls `visit` with each graph that has quads, sorted by id.
    pub fn for_each_graph(&self, visit: &mut dyn FnMut(TermId)) {
        let numbers = self.graphs.numbers_by_id();
        let with_quads = numbers.filter(|number| self.by_graph.quads(*number) > 0);
        with_quads.for_each(|number| visit(self.graphs.id(number)));
    }

    /// The number of a graph, which has quads or had some.
    #[inline]
    pub(crate) fn number(&self, graph: TermId) -> Option<u32> {
        self.graphs.number(graph)
    }

    /// The graph of a number.
    #[inline]
    pub(crate) fn id(&self, number: u32) -> TermId {
        self.graphs.id(number)
    }

    /// The predicates of a graph's quads, sorted.
    pub(crate) fn predicates_of(&self, graph: TermId) -> Vec<PredicateId> {
        let number = self.number(graph);
        let predicates = number.map(|number| self.by_graph.predicates(number));
        predicates.into_iter().flatten().collect()
    }

    /// Number of quads of a graph.
    pub(crate) fn quads_of(&self, graph: TermId) -> u64 {
        let number = self.number(graph);
        number.map_or(0, |number| self.by_graph.quads(number))
    }

    /// Number of edges of a predicate that the graph of a number has.
    pub(crate) fn edges_of(&self, graph: u32, predicate: PredicateId) -> u64 {
        let index = self.part(predicate).map(|part| &part.index);
        let edges = index.and_then(|index| Some(index.edges(index.entry(graph)?)));
        edges.unwrap_or(0)
    }

    /// The graphs that have edges of a predicate, by their numbers, each with how many.
    pub(crate) fn entries(&self, predicate: PredicateId) -> impl Iterator<Item = (u32, u64)> + '_ {
        let index = self.part(predicate).map(|part| &part.index);
        let entries = |index: &'_ GraphIndex| 0..index.len();
        let entries = index.map_or(0..0, entries);
        entries.filter_map(move |entry| Some((index?.graph(entry), index?.edges(entry))))
    }

    /// How many quads there are, by graph and predicate, and nothing of which ones these are.
    ///
    /// Costs as [`NamedGraphs::join`].
    pub(crate) fn without_places(&self) -> Self {
        let part = |number: usize| {
            let entry = |(graph, edges)| Entry {
                graph,
                edges,
                listed: 0,
            };
            let entries: Vec<Entry> = self
                .entries(PredicateId(number as u32))
                .map(entry)
                .collect();
            Arc::new(PredicateGraphs::without_places(&entries))
        };
        let parts = (0..self.of_predicate.len()).map(part).collect();
        Self::join(Arc::clone(&self.graphs), parts)
    }

    /// Bytes of all of it.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let parts = self.of_predicate.iter().map(|part| part.bytes());
        self.graphs.bytes() + parts.sum::<usize>() + self.by_graph.bytes()
    }

    /// True if the runs of which it speaks are there, and know its graphs.
    pub(crate) fn fits(&self, runs: &Runs) -> bool {
        runs.graphs() >= self.graphs.len() && self.of_predicate.iter().all(|part| part.fits(runs))
    }

    /// What there is of a predicate.
    #[inline]
    pub(crate) fn part(&self, predicate: PredicateId) -> Option<&Arc<PredicateGraphs>> {
        self.of_predicate.get(predicate.index())
    }

    /// Puts the same part of a predicate, lying elsewhere, in place of the one that it has.
    pub(crate) fn replace_part(&mut self, predicate: PredicateId, part: Arc<PredicateGraphs>) {
        self.of_predicate[predicate.index()] = part;
    }

    fn edge_sets(&self, predicate: PredicateId) -> Option<&EdgeSets> {
        self.part(predicate).map(|part| &part.sets)
    }
}

/// The named graphs of the edges of one predicate in a base.
pub(crate) struct EdgeGraphs<'a> {
    base: &'a Base,
    predicate: PredicateId,
    sets: Option<&'a EdgeSets>,
    /// The run of the last subject: subjects mostly come by run.
    last: Run,
}

/// What is known of the subjects of a run.
struct Run {
    members: std::ops::Range<u64>,
    home: u32,
    /// Their edges of the predicate are in their home alone.
    is_home_alone: bool,
}

impl<'a> EdgeGraphs<'a> {
    pub(crate) fn new(base: &'a Base, predicate: PredicateId) -> Self {
        Self {
            base,
            predicate,
            sets: base.named.edge_sets(predicate),
            last: Run {
                members: 0..0,
                home: NO_HOME,
                is_home_alone: false,
            },
        }
    }

    /// The graphs of an edge that the base's named layer has.
    ///
    /// # Panics
    /// It may, if the edge is not there.
    #[inline]
    pub(crate) fn of(&mut self, subject: TermId, object: TermId) -> GraphList<'a> {
        let run = self.run(subject);
        if run.is_home_alone {
            return GraphList::One(run.home);
        }
        let layer = self.base.layer(LayerKind::Named);
        let place = layer.place(self.predicate, subject, object);
        self.at(place.expect("the layer has the edge"), subject)
    }

    /// The graph that all edges of the first of some subjects are in, if it has some, and of how many
    /// subjects from there on: of those of one run whose edges are in their home alone.
    pub(crate) fn of_run(&mut self, subjects: &[TermId]) -> Option<(u32, usize)> {
        let run = self.run(*subjects.first()?);
        // Without a home they have no edges.
        if !run.is_home_alone || run.home == NO_HOME {
            return None;
        }
        let (home, members) = (run.home, run.members.clone());
        let in_run = |subject: &&TermId| members.contains(&subject.number());
        Some((home, subjects.iter().take_while(in_run).count()))
    }

    /// The graphs of the edge at a place, whose subject is given.
    pub(crate) fn at(&mut self, place: usize, subject: TermId) -> GraphList<'a> {
        match self.sets.and_then(|sets| sets.set_of(place)) {
            Some(code) => self.base.named.graphs.list(code),
            None => GraphList::One(self.home(subject)),
        }
    }

    /// The home of a subject, or [`NO_HOME`].
    #[inline]
    pub(crate) fn home(&mut self, subject: TermId) -> u32 {
        self.run(subject).home
    }

    #[inline]
    fn run(&mut self, subject: TermId) -> &Run {
        if !self.last.members.contains(&subject.number()) {
            self.find_run(subject);
        }
        &self.last
    }

    fn find_run(&mut self, subject: TermId) {
        let runs = &self.base.runs;
        self.last = match runs.run_of(subject) {
            Some(run) => Run {
                members: runs.members(run),
                home: runs.home_of(run),
                is_home_alone: self.sets.is_none_or(|sets| sets.is_home_alone(run)),
            },
            // It came later, or is no vertex.
            None => Run {
                members: 0..0,
                home: NO_HOME,
                is_home_alone: false,
            },
        };
    }
}

/// What one graph has of a predicate's edges: those of the subjects at home in it, unless they are
/// listed otherwise, and those that are listed.
pub(crate) struct OfGraph<'a> {
    base: &'a Base,
    predicate: PredicateId,
    graph: u32,
    index: &'a GraphIndex,
    entry: usize,
}

impl<'a> OfGraph<'a> {
    /// `None` if it has none.
    pub(crate) fn new(base: &'a Base, graph: TermId, predicate: PredicateId) -> Option<Self> {
        let number = base.named.number(graph)?;
        let index = &base.named.part(predicate)?.index;
        Some(Self {
            base,
            predicate,
            graph: number,
            index,
            entry: index.entry(number)?,
        })
    }

    /// Number of edges.
    pub(crate) fn edges(&self) -> u64 {
        self.index.edges(self.entry)
    }

    /// The vertices that have a type; of `rdf:type` alone.
    pub(crate) fn of_type(&self, class: TermId) -> IdRanges {
        let layer = self.base.layer(LayerKind::Named);
        let Some(EdgeSets::Home { runs, .. }) = self.base.named.edge_sets(self.predicate) else {
            return self.of_type_listed(class);
        };
        let Neighbours::Ranges(all) = layer.neighbours(self.predicate, Direction::In, class) else {
            return IdRanges::new();
        };
        let mut graphs = EdgeGraphs::new(self.base, self.predicate);
        let mut others = Vec::new();
        for run in runs.iter().map(|run| *run as usize) {
            if self.base.runs.home_of(run) != self.graph {
                continue;
            }
            let members = self.base.runs.members(run);
            let of_run = members.map(TermId::vertex);
            let typed = of_run.filter(|id| all.contains(*id));
            let elsewhere = typed.filter(|id| !graphs.of(*id, class).contains(self.graph));
            others.extend(elsewhere.map(|id| id.raw()));
        }
        let listed = self.index.listed(self.entry);
        let listed = listed.map(|place| layer.edge_at(self.predicate, place));
        let listed: Vec<u64> = listed
            .filter(|(_, object)| *object == class)
            .map(|(subject, _)| subject.raw())
            .collect();
        let at_home = all.within(self.base.runs.at_home(self.graph));
        at_home.without(&others).with(&listed)
    }

    /// The same where every edge says in which graphs it is.
    fn of_type_listed(&self, class: TermId) -> IdRanges {
        let layer = self.base.layer(LayerKind::Named);
        let listed = self.index.listed(self.entry);
        let listed = listed.map(|place| layer.edge_at(self.predicate, place));
        let of_class = listed.filter(|(_, object)| *object == class);
        let mut ids = IdRanges::new();
        ids.extend_sorted(of_class.map(|(subject, _)| subject.raw()));
        ids
    }

    /// The subjects that have such edges, and perhaps some at home in the graph that have edges of
    /// the predicate in other graphs only.
    pub(crate) fn subjects(&self) -> IdRanges {
        let layer = self.base.layer(LayerKind::Named);
        let home = self.base.runs.at_home(self.graph);
        let mut subjects = IdRanges::new();
        if !home.is_empty() && !self.is_each() {
            subjects = layer.subjects_within(self.predicate, home);
        }
        let listed = self.index.listed(self.entry);
        if listed.len() == 0 {
            return subjects;
        }
        let ids = listed.map(|place| layer.edge_at(self.predicate, place).0.raw());
        let mut ids: Vec<u64> = ids.collect();
        ids.dedup();
        subjects.with(&ids)
    }

    /// Calls `visit` with each edge: those of the subjects at home in the graph, then others.
    pub(crate) fn for_each(
        &self,
        visit: &mut dyn FnMut(TermId, TermId) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let layer = self.base.layer(LayerKind::Named);
        let home = self.base.runs.at_home(self.graph);
        let is_each = self.is_each();
        if !home.is_empty() && !is_each {
            let mut graphs = EdgeGraphs::new(self.base, self.predicate);
            let mut objects = Vec::new();
            let subjects = layer.subjects_within(self.predicate, home);
            let ranges = subjects.ranges().iter();
            for subject in ranges.flat_map(|(first, end)| *first..*end) {
                let subject = TermId::from_raw(subject);
                objects.clear();
                let list = layer.neighbours(self.predicate, Direction::Out, subject);
                list.copy(0, usize::MAX, &mut objects);
                for object in &objects {
                    if graphs.of(subject, *object).contains(self.graph) {
                        visit(subject, *object)?;
                    }
                }
            }
        }
        // By their places: of their subjects other graphs may say much more.
        for place in self.index.listed(self.entry) {
            let (subject, object) = layer.edge_at(self.predicate, place);
            if is_each || !home.contains(subject) {
                visit(subject, object)?;
            }
        }
        ControlFlow::Continue(())
    }

    /// True if each edge of the predicate says in which graphs it is.
    fn is_each(&self) -> bool {
        let sets = self.base.named.edge_sets(self.predicate);
        matches!(sets, Some(EdgeSets::Each(_)))
    }
}

impl Base {
    /// True if a named graph has an edge (subject, object) of a predicate.
    pub(crate) fn has_quad(
        &self,
        graph: TermId,
        predicate: PredicateId,
        (subject, object): (TermId, TermId),
    ) -> bool {
        let Some(number) = self.named.number(graph) else {
            return false;
        };
        let layer = self.layer(LayerKind::Named);
        let place = layer.place(predicate, subject, object);
        place.is_some_and(|place| {
            let graphs = EdgeGraphs::new(self, predicate).at(place, subject);
            graphs.contains(number)
        })
    }
}
