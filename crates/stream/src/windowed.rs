//! Which graph answers a call: the stored one, a window, or both together?

use std::ops::ControlFlow;
use std::sync::Arc;

use jindou_exec::{Catalogue, GraphSource};
use jindou_model::{
    Cursor, Direction, EndsAsked, GraphRef, IdRanges, KindCount, Lists, Membership, Pattern,
    Precision, PredicateId, TermId, TermKind, Unavailable, Visit,
};
use jindou_store::window::{Bounds, RingSnapshot, Window};

use crate::merged::Merged;

/// A stored graph with the windows of one execution of a continuous query.
pub struct WindowedGraph {
    stored: Arc<dyn GraphSource>,
    /// By number.
    windows: Box<[Window]>,
    /// Those of the default graph as one.
    default: Window,
    /// By number, the times of the tuples of a window that has numbers in their place.
    times: Box<[Option<Arc<dyn TupleTimes>>]>,
}

/// When tuples of a stream came, by their numbers.
pub trait TupleTimes: Send + Sync {
    /// The time of a tuple, in milliseconds; `None` if it was forgotten.
    fn time_of(&self, number: u64) -> Option<i64>;
}

/// What answers for a graph.
pub(crate) enum Target<'a> {
    Stored(GraphRef<'a>),
    Window(&'a Window),
    Both(Merged<'a>),
}

impl WindowedGraph {
    /// The graph with these windows, by their numbers, of which some are in the default graph. `stored`
    /// knows all terms that are in the windows.
    ///
    /// # Panics
    /// If a number of `default` is not that of a window.
    #[must_use]
    pub fn new(
        stored: Arc<dyn GraphSource>,
        windows: &[(RingSnapshot, Bounds)],
        default: &[u16],
    ) -> Self {
        let one = |stretch: &(RingSnapshot, Bounds)| Window::new([stretch.clone()]);
        let of_default = default.iter().map(|number| &windows[usize::from(*number)]);
        Self {
            stored,
            windows: windows.iter().map(one).collect(),
            default: Window::new(of_default.cloned()),
            times: Box::default(),
        }
    }

    /// The same graph, of which some windows, by their numbers, are stretches of numbers and not of time.
    #[must_use]
    pub fn with_times(self, times: Vec<Option<Arc<dyn TupleTimes>>>) -> Self {
        Self {
            times: times.into(),
            ..self
        }
    }

    /// A window of the query.
    ///
    /// # Panics
    /// If there is none of this number.
    #[must_use]
    pub fn window(&self, number: u16) -> &Window {
        &self.windows[usize::from(number)]
    }

    /// What answers for a graph: lists of graphs have all windows of the default graph, or none.
    pub(crate) fn target<'a>(&'a self, graph: GraphRef<'a>) -> Target<'a> {
        let is_window = |id: TermId| id.kind() == TermKind::Window;
        match graph {
            GraphRef::One(id) if is_window(id) => Target::Window(self.window(id.number() as u16)),
            GraphRef::Some(graphs) if graphs.iter().any(|id| is_window(*id)) => {
                // Windows come after vertices, and what comes after windows names no stored graph.
                let stored = &graphs[..graphs.partition_point(|id| *id < TermId::window(0))];
                match stored {
                    [] => Target::Window(&self.default),
                    [only] => self.both(GraphRef::One(*only)),
                    several => self.both(GraphRef::Some(several)),
                }
            }
            graph => Target::Stored(graph),
        }
    }

    fn both<'a>(&'a self, stored: GraphRef<'a>) -> Target<'a> {
        Target::Both(Merged {
            source: &*self.stored,
            stored,
            window: &self.default,
        })
    }
}

impl Catalogue for WindowedGraph {
    fn predicate(&self, term: TermId) -> Option<PredicateId> {
        self.stored.predicate(term)
    }

    fn predicate_term(&self, predicate: PredicateId) -> TermId {
        self.stored.predicate_term(predicate)
    }

    fn predicates(&self, graph: GraphRef<'_>, out: &mut Vec<PredicateId>) {
        match self.target(graph) {
            Target::Stored(graph) => self.stored.predicates(graph, out),
            Target::Window(window) => window.predicates(out),
            Target::Both(merged) => merged.predicates(out),
        }
    }

    fn predicates_of(
        &self,
        graph: GraphRef<'_>,
        key: TermId,
        direction: Direction,
        out: &mut Vec<PredicateId>,
    ) {
        match self.target(graph) {
            Target::Stored(graph) => self.stored.predicates_of(graph, key, direction, out),
            Target::Window(window) => window.predicates_of(key, direction, out),
            Target::Both(merged) => merged.predicates_of(key, direction, out),
        }
    }

    fn has_graph(&self, graph: TermId) -> bool {
        // A window is there, be it empty.
        graph.kind() == TermKind::Window || self.stored.has_graph(graph)
    }

    fn graph_count(&self) -> u64 {
        self.stored.graph_count()
    }

    fn graphs(&self, out: &mut Vec<TermId>) {
        self.stored.graphs(out);
    }

    fn named_quads(&self, predicate: PredicateId) -> Option<u64> {
        self.stored.named_quads(predicate)
    }

    fn count_ends(
        &self,
        asked: &EndsAsked<'_>,
        poll: &mut dyn FnMut(usize) -> bool,
    ) -> Option<Vec<KindCount>> {
        match self.target(asked.graph) {
            Target::Stored(graph) => self.stored.count_ends(&EndsAsked { graph, ..*asked }, poll),
            Target::Window(_) | Target::Both(_) => None,
        }
    }

    fn edges(&self, graph: GraphRef<'_>, predicate: PredicateId) -> Option<u64> {
        match self.target(graph) {
            Target::Stored(graph) => self.stored.edges(graph, predicate),
            Target::Window(window) => window.edges(predicate),
            Target::Both(merged) => merged.edges(predicate),
        }
    }

    fn time_of(&self, [subject, predicate, object]: [TermId; 3]) -> Option<i64> {
        let predicate = self.stored.predicate(predicate)?;
        let windows = self.windows.iter().enumerate();
        let times = windows.filter_map(|(number, window)| {
            let time = window.time_of(subject, predicate, object)?;
            match self.times.get(number) {
                Some(Some(times)) => times.time_of(time as u64),
                _ => Some(time),
            }
        });
        times.max()
    }
}

impl GraphSource for WindowedGraph {
    fn members(
        &self,
        graph: GraphRef<'_>,
        memberships: &[Membership],
        precision: Precision,
        within: Option<&IdRanges>,
    ) -> Result<Option<IdRanges>, Unavailable> {
        match self.target(graph) {
            Target::Stored(graph) => self.stored.members(graph, memberships, precision, within),
            Target::Window(window) => Ok(window.members(memberships, precision, within)),
            Target::Both(merged) => merged.members(memberships, precision, within),
        }
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
        match self.target(graph) {
            Target::Stored(graph) => {
                (self.stored).expand(graph, lists, cursor, allowed, budget, rows, out)
            }
            Target::Window(window) => {
                window.expand(lists, cursor, allowed, budget, rows, out);
                Ok(())
            }
            Target::Both(merged) => merged.expand(lists, cursor, allowed, budget, rows, out),
        }
    }

    fn places(&self, graph: GraphRef<'_>, list: &Lists<'_>) -> Result<u64, Unavailable> {
        match self.target(graph) {
            Target::Stored(graph) => self.stored.places(graph, list),
            Target::Window(window) => Ok(window.places(list)),
            Target::Both(merged) => merged.places(list),
        }
    }

    fn contains(
        &self,
        graph: GraphRef<'_>,
        list: &Lists<'_>,
        to: &[TermId],
        rows: &mut Vec<u32>,
    ) -> Result<(), Unavailable> {
        match self.target(graph) {
            Target::Stored(graph) => self.stored.contains(graph, list, to, rows),
            Target::Window(window) => {
                window.contains(list, to, rows);
                Ok(())
            }
            Target::Both(merged) => merged.contains(list, to, rows),
        }
    }

    fn degrees(
        &self,
        graph: GraphRef<'_>,
        list: &Lists<'_>,
        allowed: Option<&IdRanges>,
        out: &mut Vec<u64>,
    ) -> Result<(), Unavailable> {
        match self.target(graph) {
            Target::Stored(graph) => self.stored.degrees(graph, list, allowed, out),
            Target::Window(window) => {
                window.degrees(list, allowed, out);
                Ok(())
            }
            Target::Both(merged) => merged.degrees(list, allowed, out),
        }
    }

    fn graphs_of(
        &self,
        list: &Lists<'_>,
        to: &[TermId],
        rows: &mut Vec<u32>,
        graphs: &mut Vec<TermId>,
    ) -> Result<(), Unavailable> {
        self.stored.graphs_of(list, to, rows, graphs)
    }

    fn predicates_at(
        &self,
        graph: GraphRef<'_>,
        key: TermId,
        direction: Direction,
        out: &mut Vec<PredicateId>,
    ) -> Result<(), Unavailable> {
        match self.target(graph) {
            Target::Stored(graph) => self.stored.predicates_at(graph, key, direction, out),
            Target::Window(_) | Target::Both(_) => {
                self.predicates_of(graph, key, direction, out);
                Ok(())
            }
        }
    }

    fn for_each_match(
        &self,
        pattern: &Pattern,
        graph: GraphRef<'_>,
        visit: &mut Visit<'_>,
    ) -> Result<ControlFlow<()>, Unavailable> {
        match self.target(graph) {
            Target::Stored(graph) => self.stored.for_each_match(pattern, graph, visit),
            Target::Window(window) => {
                let name = match graph {
                    GraphRef::One(graph) => graph,
                    _ => TermId::NONE,
                };
                Ok(window.for_each_match(pattern, &mut |s, p, o, _| visit(s, p, o, name)))
            }
            Target::Both(merged) => merged.for_each_match(pattern, visit),
        }
    }

    fn for_each_quad(
        &self,
        pattern: &Pattern,
        visit: &mut Visit<'_>,
    ) -> Result<ControlFlow<()>, Unavailable> {
        self.stored.for_each_quad(pattern, visit)
    }
}
