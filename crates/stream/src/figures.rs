//! How much is in windows, and in windows and stored graphs together?

use jindou_model::{Direction, GraphRef, Lists, PredicateId, TermId};
use jindou_plan::{Membership, SegmentStatistics, Statistics};
use jindou_store::window::Window;
use oxrdf::TermRef;

use crate::windowed::{Target, WindowedGraph};

/// What the planner is told of a [`WindowedGraph`]: the figures of the stored graph, and those of
/// windows, which are estimates where a bound cuts a run.
pub struct WindowedFigures<'a> {
    stored: &'a dyn Statistics,
    graph: &'a WindowedGraph,
}

/// The part of a merge that is stored.
struct StoredPart<'a> {
    statistics: &'a dyn Statistics,
    graph: GraphRef<'a>,
}

impl StoredPart<'_> {
    /// The part of all named graphs that these are, taken for ones that have much.
    fn share(&self) -> f64 {
        let graphs = match self.graph {
            GraphRef::One(_) => 1.0,
            GraphRef::Some(graphs) => graphs.len() as f64,
            _ => return 1.0,
        };
        (graphs * self.statistics.graph_share()).min(1.0)
    }

    fn part(&self, of_all: u64) -> u64 {
        (of_all as f64 * self.share()).ceil() as u64
    }

    fn vertices_with(&self, memberships: &[Membership]) -> f64 {
        self.statistics.vertices_with(self.graph, memberships) * self.share()
    }

    fn edges_from(
        &self,
        predicate: PredicateId,
        direction: Direction,
        memberships: &[Membership],
    ) -> f64 {
        let statistics = self.statistics;
        statistics.edges_from(self.graph, predicate, direction, memberships) * self.share()
    }
}

/// Windows and stored graphs whose merge a graph is.
struct Both<'a> {
    window: &'a Window,
    stored: StoredPart<'a>,
}

impl Both<'_> {
    /// Vertices of each part that have one trait.
    fn each(&self, membership: Membership) -> (f64, f64) {
        let stored = self.stored.vertices_with(&[membership]);
        (vertices(self.window, membership), stored)
    }

    /// True if each part lacks a trait that the other has: then vertices have all of them only with
    /// edges of both.
    fn are_split(&self, memberships: impl Iterator<Item = Membership>) -> bool {
        let (mut window_lacks, mut stored_lacks) = (false, false);
        for membership in memberships {
            let (window, stored) = self.each(membership);
            window_lacks |= window == 0.0 && stored > 0.0;
            stored_lacks |= stored == 0.0 && window > 0.0;
        }
        window_lacks && stored_lacks
    }

    /// Vertices that have all of some traits.
    fn vertices_with(&self, memberships: &[Membership]) -> f64 {
        match self.are_split(memberships.iter().copied()) {
            true => self.rarest(memberships).unwrap_or(0.0),
            false => {
                vertices_with(self.window, memberships) + self.stored.vertices_with(memberships)
            }
        }
    }

    /// No more vertices have all of some traits than have the rarest; `None` without any.
    fn rarest(&self, memberships: &[Membership]) -> Option<f64> {
        let each = memberships.iter().map(|one| {
            let (window, stored) = self.each(*one);
            window + stored
        });
        each.reduce(f64::min)
    }

    /// Edges from vertices that have all of some traits, of `all` of the predicate.
    fn edges_from(
        &self,
        (predicate, direction): (PredicateId, Direction),
        all: SegmentStatistics,
        memberships: &[Membership],
    ) -> f64 {
        let own = Membership::Has(predicate, direction);
        if !self.are_split(memberships.iter().copied().chain([own])) {
            return edges_from(self.window, predicate, direction, memberships)
                + self.stored.edges_from(predicate, direction, memberships);
        }
        let (edges, keys) = (all.edges as f64, all.keys.max(1) as f64);
        let asked = self.rarest(memberships).unwrap_or(keys);
        edges * asked.min(keys) / keys
    }
}

impl<'a> WindowedFigures<'a> {
    /// The figures of a graph whose stored part has these.
    #[must_use]
    pub fn new(stored: &'a dyn Statistics, graph: &'a WindowedGraph) -> Self {
        Self { stored, graph }
    }

    /// The windows of a graph and what it has beside them.
    fn parts<'s>(&'s self, graph: GraphRef<'s>) -> (Option<&'s Window>, Option<StoredPart<'s>>) {
        let stored = |graph| {
            Some(StoredPart {
                statistics: self.stored,
                graph,
            })
        };
        match self.graph.target(graph) {
            Target::Stored(graph) => (None, stored(graph)),
            Target::Window(window) => (Some(window), None),
            Target::Both(merged) => (Some(merged.window), stored(merged.stored)),
        }
    }
}

/// Triples and keys of a segment of a window.
fn segment(window: &Window, predicate: PredicateId, direction: Direction) -> SegmentStatistics {
    let counts = window.counts(predicate, direction);
    SegmentStatistics {
        edges: counts.triples,
        keys: counts.keys,
    }
}

fn degree(window: &Window, predicate: PredicateId, direction: Direction, key: TermId) -> u64 {
    window.places(&Lists {
        predicate,
        direction,
        keys: &[key],
    })
}

/// Vertices of a window that have one trait.
fn vertices(window: &Window, membership: Membership) -> f64 {
    let count = match membership {
        Membership::Type(class) => degree(window, PredicateId::TYPE, Direction::In, class),
        Membership::Has(predicate, direction) => window.counts(predicate, direction).keys,
    };
    count as f64
}

/// Vertices that have all of some traits: no more than have the rarest of them.
fn vertices_with(window: &Window, memberships: &[Membership]) -> f64 {
    let each = memberships.iter().map(|one| vertices(window, *one));
    each.reduce(f64::min).unwrap_or(window.tuples() as f64)
}

/// Edges from vertices that have all of some traits, if these have as many as any.
fn edges_from(
    window: &Window,
    predicate: PredicateId,
    direction: Direction,
    memberships: &[Membership],
) -> f64 {
    let all = segment(window, predicate, direction);
    if all.keys == 0 {
        return 0.0;
    }
    let keys = all.keys as f64;
    let asked = match memberships {
        [] => keys,
        some => vertices_with(window, some).min(keys),
    };
    all.edges as f64 * asked / keys
}

impl Statistics for WindowedFigures<'_> {
    fn triples(&self, graph: GraphRef<'_>) -> u64 {
        let (window, stored) = self.parts(graph);
        let of_stored = |part: &StoredPart<'_>| part.part(part.statistics.triples(part.graph));
        window.map_or(0, Window::tuples) + stored.as_ref().map_or(0, of_stored)
    }

    fn named_quads(&self) -> u64 {
        self.stored.named_quads()
    }

    fn named_graphs(&self) -> u64 {
        self.stored.named_graphs()
    }

    fn graph_share(&self) -> f64 {
        self.stored.graph_share()
    }

    fn vertices(&self) -> u64 {
        self.stored.vertices()
    }

    fn predicates(&self) -> u32 {
        self.stored.predicates()
    }

    fn term(&self, term: TermRef<'_>) -> Option<TermId> {
        self.stored.term(term)
    }

    fn predicate(&self, iri: &str) -> Option<PredicateId> {
        self.stored.predicate(iri)
    }

    fn segment(
        &self,
        graph: GraphRef<'_>,
        predicate: PredicateId,
        direction: Direction,
    ) -> SegmentStatistics {
        let (window, stored) = self.parts(graph);
        let mut sum = window.map_or_else(SegmentStatistics::default, |window| {
            segment(window, predicate, direction)
        });
        if let Some(part) = stored {
            let of_part = part.statistics.segment(part.graph, predicate, direction);
            sum.edges += part.part(of_part.edges);
            sum.keys += part.part(of_part.keys);
        }
        sum
    }

    fn vertices_with(&self, graph: GraphRef<'_>, memberships: &[Membership]) -> f64 {
        let (window, stored) = self.parts(graph);
        match (window, stored) {
            (None, None) => 0.0,
            (Some(window), None) => vertices_with(window, memberships),
            (None, Some(stored)) => stored.vertices_with(memberships),
            (Some(window), Some(stored)) => Both { window, stored }.vertices_with(memberships),
        }
    }

    fn edges_from(
        &self,
        graph: GraphRef<'_>,
        predicate: PredicateId,
        direction: Direction,
        memberships: &[Membership],
    ) -> f64 {
        let (window, stored) = self.parts(graph);
        match (window, stored) {
            (None, None) => 0.0,
            (Some(window), None) => edges_from(window, predicate, direction, memberships),
            (None, Some(stored)) => stored.edges_from(predicate, direction, memberships),
            (Some(window), Some(stored)) => {
                let both = Both { window, stored };
                let all = self.segment(graph, predicate, direction);
                both.edges_from((predicate, direction), all, memberships)
            }
        }
    }

    fn edges_between(
        &self,
        graph: GraphRef<'_>,
        predicate: PredicateId,
        subjects: &[Membership],
        objects: &[Membership],
    ) -> Option<f64> {
        match self.parts(graph) {
            (None, Some(part)) => {
                (part.statistics).edges_between(part.graph, predicate, subjects, objects)
            }
            _ => None,
        }
    }

    fn degree(
        &self,
        graph: GraphRef<'_>,
        predicate: PredicateId,
        direction: Direction,
        key: TermId,
    ) -> u64 {
        let (window, stored) = self.parts(graph);
        let of_stored =
            |part: &StoredPart<'_>| (part.statistics).degree(part.graph, predicate, direction, key);
        window.map_or(0, |window| degree(window, predicate, direction, key))
            + stored.as_ref().map_or(0, of_stored)
    }

    fn is_member(&self, graph: GraphRef<'_>, vertex: TermId, membership: Membership) -> bool {
        let (window, stored) = self.parts(graph);
        let is_in = |window: &Window| match membership {
            Membership::Type(class) => {
                let list = Lists {
                    predicate: PredicateId::TYPE,
                    direction: Direction::Out,
                    keys: &[vertex],
                };
                let mut rows = Vec::new();
                window.contains(&list, &[class], &mut rows);
                !rows.is_empty()
            }
            Membership::Has(predicate, direction) => {
                degree(window, predicate, direction, vertex) > 0
            }
        };
        window.is_some_and(is_in)
            || stored
                .is_some_and(|part| (part.statistics).is_member(part.graph, vertex, membership))
    }
}
