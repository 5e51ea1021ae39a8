//! What has changed in named graphs since the bulk load?

use std::sync::Arc;

use jindou_model::{Change, Direction, PredicateId, SortedSet, TermId};

use super::paged::Paged;
use crate::NamedGraphs;

/// Key, neighbour and graph of an edge as raw ids.
pub(crate) type NamedEdge = (u64, u64, u64);

/// Graph, predicate, subject and object of a quad as raw ids.
pub(crate) type GraphQuad = (u64, u32, u64, u64);

/// The changes of one (predicate, direction) in all named graphs.
#[derive(Clone, Debug, Default)]
pub(crate) struct NamedSegmentDelta {
    pub(crate) added: SortedSet<NamedEdge>,
    pub(crate) removed: SortedSet<NamedEdge>,
}

/// The changes of all named graphs.
#[derive(Clone, Debug, Default)]
pub(crate) struct NamedDelta {
    segments: [Paged<Arc<NamedSegmentDelta>>; 2],
    /// Quads that the base does not have, and those of the base that are gone, by graph.
    pub(crate) added: SortedSet<GraphQuad>,
    pub(crate) removed: SortedSet<GraphQuad>,
    /// Graphs that have quads and had none in the base.
    pub(crate) gained: SortedSet<u64>,
    /// Graphs that had quads in the base and have none.
    pub(crate) lost: SortedSet<u64>,
}

/// The numbers of a graph's quads in a set of them.
pub(crate) fn of_graph(set: &SortedSet<GraphQuad>, graph: u64) -> std::ops::Range<usize> {
    set.rank_by(|quad| quad.0 < graph)..set.rank_by(|quad| quad.0 <= graph)
}

impl NamedDelta {
    pub(crate) fn is_empty(&self) -> bool {
        self.added.is_empty() && self.removed.is_empty()
    }

    pub(crate) fn segment(
        &self,
        predicate: PredicateId,
        direction: Direction,
    ) -> Option<&NamedSegmentDelta> {
        self.segments[direction as usize]
            .get(predicate.index())
            .map(|segment| &**segment)
    }

    /// The predicates that have changes.
    pub(crate) fn predicates(&self) -> impl Iterator<Item = PredicateId> + '_ {
        self.segments[0]
            .iter()
            .map(|(number, _)| PredicateId(number as u32))
    }

    pub(crate) fn is_removed(&self, graph: TermId, edge: (TermId, PredicateId, TermId)) -> bool {
        let (subject, predicate, object) = edge;
        !self.removed.is_empty()
            && self
                .removed
                .contains((graph.raw(), predicate.0, subject.raw(), object.raw()))
    }

    /// Applies effective changes: `quads`, sorted, are in no set of changes yet when they are
    /// `changed`, or are taken back out of the other set.
    pub(crate) fn change(
        &mut self,
        base: &NamedGraphs,
        added: &[(GraphQuad, Change)],
        removed: &[(GraphQuad, Change)],
    ) {
        self.added.apply(added);
        self.removed.apply(removed);
        let mut graphs: Vec<u64> = added.iter().chain(removed).map(|(q, _)| q.0).collect();
        graphs.dedup();
        graphs.sort_unstable();
        graphs.dedup();
        let (mut gained, mut lost) = (Vec::new(), Vec::new());
        for graph in graphs {
            let in_base = base.index().quads(TermId::from_raw(graph)).len();
            let now =
                in_base + of_graph(&self.added, graph).len() - of_graph(&self.removed, graph).len();
            let change = |is: bool| if is { Change::Add } else { Change::Remove };
            gained.push((graph, change(in_base == 0 && now > 0)));
            lost.push((graph, change(in_base > 0 && now == 0)));
        }
        self.gained.apply(&gained);
        self.lost.apply(&lost);
        for direction in [Direction::Out, Direction::In] {
            let added = by_predicate(added, direction);
            let removed = by_predicate(removed, direction);
            self.change_segments(direction, &added, &removed);
        }
    }

    fn change_segments(
        &mut self,
        direction: Direction,
        added: &[(u32, NamedEdge, Change)],
        removed: &[(u32, NamedEdge, Change)],
    ) {
        let segments = &mut self.segments[direction as usize];
        let mut apply = |changes: &[(u32, NamedEdge, Change)], to_added: bool| {
            for part in changes.chunk_by(|a, b| a.0 == b.0) {
                let number = part[0].0 as usize;
                let mut next = segments
                    .get(number)
                    .map_or_else(NamedSegmentDelta::default, |segment| (**segment).clone());
                let list: Vec<(NamedEdge, Change)> = part
                    .iter()
                    .map(|(_, edge, change)| (*edge, *change))
                    .collect();
                let set = if to_added {
                    &mut next.added
                } else {
                    &mut next.removed
                };
                set.apply(&list);
                segments.set(number, Arc::new(next));
            }
        };
        apply(added, true);
        apply(removed, false);
    }

    pub(crate) fn bytes(&self) -> usize {
        let segments: usize = self
            .segments
            .iter()
            .flat_map(Paged::iter)
            .map(|(_, segment)| segment.added.bytes() + segment.removed.bytes())
            .sum();
        segments + self.added.bytes() + self.removed.bytes()
    }
}

fn by_predicate(
    quads: &[(GraphQuad, Change)],
    direction: Direction,
) -> Vec<(u32, NamedEdge, Change)> {
    let mut list: Vec<(u32, NamedEdge, Change)> = quads
        .iter()
        .map(
            |((graph, predicate, subject, object), change)| match direction {
                Direction::Out => (*predicate, (*subject, *object, *graph), *change),
                Direction::In => (*predicate, (*object, *subject, *graph), *change),
            },
        )
        .collect();
    list.sort_unstable_by_key(|(predicate, edge, _)| (*predicate, *edge));
    list
}
