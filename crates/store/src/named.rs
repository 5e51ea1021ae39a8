//! Named graphs: in which of them is an edge, and what is in one of them?
//!
//! The edges of all named graphs are one [`crate::Layer`], where each is there once. Most are in one
//! graph, the home of their subject (see [`crate::runs`]), and say nothing more. Which graphs the
//! others are in stands in a list by place, or for each place where the list would be long.

use std::ops::ControlFlow;

use jindou_model::{Direction, IdRanges, Neighbours, PredicateId, TermId};

use crate::StoreError;
use crate::base::Base;
use crate::clusters::Lists;
use crate::column::Column;
use crate::graph_index::GraphIndex;
use crate::image::{ImageReader, ImageWriter};
use crate::layer::{Layer, LayerKind};
use crate::runs::{NO_HOME, Runs};

/// The graphs of a predicate's edges, as numbers of sets of graphs.
#[derive(Clone, Debug)]
pub(crate) enum EdgeSets {
    /// The home of the subject alone, but for the edges at these places, sorted; and the runs of
    /// the subjects of these, sorted.
    Home {
        places: Column,
        sets: Column,
        runs: Vec<u32>,
    },
    /// Those of each place.
    Each(Column),
}

impl EdgeSets {
    fn bytes(&self) -> usize {
        match self {
            Self::Home { places, sets, runs } => places.bytes() + sets.bytes() + runs.len() * 4,
            Self::Each(sets) => sets.bytes(),
        }
    }

    /// True if no edge is listed whose subject is in a run.
    #[inline]
    fn is_home_alone(&self, run: usize) -> bool {
        match self {
            Self::Each(_) => false,
            Self::Home { runs, .. } => runs.binary_search(&(run as u32)).is_err(),
        }
    }

    /// The number of the set of a place; `None` is the home of the subject.
    #[inline]
    fn set_of(&self, place: usize) -> Option<u64> {
        match self {
            Self::Each(sets) => Some(sets.get(place)),
            Self::Home { places, sets, .. } => {
                let narrow = (place as u64).checked_sub(places.base())?;
                let items = places.narrow();
                let index = items.seek(0, narrow);
                let found = index < items.len() && items.get(index) == narrow;
                found.then(|| sets.get(index))
            }
        }
    }
}

/// All named graphs.
#[derive(Clone, Debug)]
pub struct NamedGraphs {
    /// The graphs that have quads, sorted by id; their places are their numbers.
    ids: Vec<u64>,
    /// Sets of several graphs, as sorted numbers. A set below the number of graphs is that graph
    /// alone.
    sets: Lists<u32>,
    of_predicate: Vec<EdgeSets>,
    pub(crate) index: GraphIndex,
    quads: u64,
}

/// The named graphs of one edge, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GraphList<'a> {
    One(u32),
    Many(&'a [u32]),
}

impl GraphList<'_> {
    #[inline]
    pub(crate) fn contains(self, graph: u32) -> bool {
        match self {
            Self::One(only) => only == graph,
            Self::Many(all) => all.binary_search(&graph).is_ok(),
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        let list = match self {
            Self::One(only) => std::slice::from_ref(only),
            Self::Many(all) => all,
        };
        list.iter().copied()
    }
}

impl NamedGraphs {
    pub(crate) fn new(
        ids: Vec<u64>,
        sets: Lists<u32>,
        of_predicate: Vec<EdgeSets>,
        index: GraphIndex,
        quads: u64,
    ) -> Self {
        Self {
            ids,
            sets,
            of_predicate,
            index,
            quads,
        }
    }

    /// Number of quads.
    #[must_use]
    pub fn quads(&self) -> u64 {
        self.quads
    }

    /// Number of graphs.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// True of no named graph.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// True if there is a quad in this graph.
    #[must_use]
    pub fn contains(&self, graph: TermId) -> bool {
        self.number(graph).is_some()
    }

    /// Calls `visit` with each graph.
    pub fn for_each_graph(&self, visit: &mut dyn FnMut(TermId)) {
        self.ids
            .iter()
            .for_each(|raw| visit(TermId::from_raw(*raw)));
    }

    /// The number of a graph.
    #[inline]
    pub(crate) fn number(&self, graph: TermId) -> Option<u32> {
        let place = self.ids.binary_search(&graph.raw());
        place.ok().map(|number| number as u32)
    }

    /// The graph of a number.
    #[inline]
    pub(crate) fn id(&self, number: u32) -> TermId {
        TermId::from_raw(self.ids[number as usize])
    }

    /// Bytes of all of it.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let sets: usize = self.of_predicate.iter().map(EdgeSets::bytes).sum();
        self.ids.len() * 8 + self.sets.bytes() + sets + self.index.bytes()
    }

    /// True if the runs of which it speaks are there.
    pub(crate) fn fits(&self, runs: &Runs) -> bool {
        self.of_predicate.iter().all(|sets| match sets {
            EdgeSets::Home { runs: listed, .. } => {
                listed.last().is_none_or(|run| (*run as usize) < runs.len())
            }
            EdgeSets::Each(_) => true,
        })
    }

    pub(crate) fn edge_sets(&self, predicate: PredicateId) -> Option<&EdgeSets> {
        self.of_predicate.get(predicate.index())
    }

    fn list(&self, set: u64) -> GraphList<'_> {
        match (set as usize).checked_sub(self.ids.len()) {
            None => GraphList::One(set as u32),
            Some(number) => GraphList::Many(self.sets.get(number)),
        }
    }

    pub(crate) fn write(&self, image: &mut ImageWriter) {
        image.words(&self.ids);
        let (offsets, items) = self.sets.parts();
        image.words(&offsets.iter().map(|word| *word as u64).collect::<Vec<_>>());
        image.words(
            &items
                .iter()
                .map(|item| u64::from(*item))
                .collect::<Vec<_>>(),
        );
        for sets in &self.of_predicate {
            match sets {
                EdgeSets::Home { places, sets, runs } => {
                    image.word(0);
                    places.write(image);
                    sets.write(image);
                    image.words(&runs.iter().map(|run| u64::from(*run)).collect::<Vec<_>>());
                }
                EdgeSets::Each(sets) => {
                    image.word(1);
                    sets.write(image);
                }
            }
        }
        self.index.write(image);
        image.word(self.quads);
    }

    pub(crate) fn read(image: &mut ImageReader, layer: &Layer) -> Result<Self, StoreError> {
        let ids = image.words()?;
        let offsets = image.words()?;
        let items = image.words()?;
        let graphs = ids.len() as u64;
        if !ids.is_sorted_by(|a, b| a < b) || items.iter().any(|number| *number >= graphs) {
            return Err(image.corrupt("the list of named graphs is broken"));
        }
        let items = items.into_iter().map(|number| number as u32).collect();
        let sets = Lists::from_parts(offsets, items)
            .ok_or_else(|| image.corrupt("the sets of named graphs are broken"))?;
        let most = graphs + sets.len() as u64;
        let of_predicate = (0..layer.segments[0].len())
            .map(|number| {
                let edges = layer.counts(PredicateId(number as u32), Direction::Out).0;
                read_edge_sets(image, edges, most)
            })
            .collect::<Result<Vec<_>, _>>()?;
        let index = GraphIndex::read(image, ids.len())?;
        Ok(Self {
            ids,
            sets,
            of_predicate,
            index,
            quads: image.word()?,
        })
    }
}

fn read_edge_sets(image: &mut ImageReader, edges: u64, most: u64) -> Result<EdgeSets, StoreError> {
    let below = |column: &Column, limit: u64| (0..column.len()).all(|i| column.get(i) < limit);
    let read = match image.word()? {
        0 => EdgeSets::Home {
            places: Column::read(image)?,
            sets: Column::read(image)?,
            runs: image.words()?.into_iter().map(|run| run as u32).collect(),
        },
        _ => EdgeSets::Each(Column::read(image)?),
    };
    let is_sound = match &read {
        EdgeSets::Home { places, sets, runs } => {
            places.len() == sets.len()
                && below(places, edges)
                && below(sets, most)
                && runs.is_sorted_by(|a, b| a < b)
        }
        EdgeSets::Each(sets) => sets.len() as u64 == edges && below(sets, most),
    };
    match is_sound {
        true => Ok(read),
        false => Err(image.corrupt("the graphs of edges are broken")),
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
            Some(set) => self.base.named.list(set),
            None => GraphList::One(self.run(subject).home),
        }
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
    entry: usize,
}

impl<'a> OfGraph<'a> {
    /// `None` if it has none.
    pub(crate) fn new(base: &'a Base, graph: TermId, predicate: PredicateId) -> Option<Self> {
        let number = base.named.number(graph)?;
        let entry = base.named.index.entry(number, predicate)?;
        Some(Self {
            base,
            predicate,
            graph: number,
            entry,
        })
    }

    /// Number of edges.
    pub(crate) fn edges(&self) -> u64 {
        self.base.named.index.edges(self.entry)
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
            let of_run = members.map(|local| TermId::vertex(local));
            let typed = of_run.filter(|id| all.contains(*id));
            let elsewhere = typed.filter(|id| !graphs.of(*id, class).contains(self.graph));
            others.extend(elsewhere.map(|id| id.raw()));
        }
        let listed = self.base.named.index.listed(self.entry);
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
        let listed = self.base.named.index.listed(self.entry);
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
        let listed = self.base.named.index.listed(self.entry);
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
        for place in self.base.named.index.listed(self.entry) {
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
    /// The predicates of a named graph's quads, sorted.
    pub(crate) fn predicates_of_graph(&self, graph: TermId) -> Vec<PredicateId> {
        let index = &self.named.index;
        let entries = self.named.number(graph).map(|number| index.entries(number));
        entries
            .into_iter()
            .flatten()
            .map(|entry| index.predicate(entry))
            .collect()
    }

    /// Number of quads of a named graph.
    #[must_use]
    pub fn quads_of_graph(&self, graph: TermId) -> u64 {
        let number = self.named.number(graph);
        number.map_or(0, |number| self.named.index.quads(number))
    }

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
