//! What has changed in named graphs since the bulk load?

use std::sync::Arc;

use jindou_model::{Change, PredicateId, SortedSet, TermId};

use super::key_filter::KeyFilter;
use super::paged::Paged;
use super::rebase::came_and_went;
use crate::Base;

/// Subject, object and graph of an edge as raw ids.
pub(crate) type NamedEdge = (u64, u64, u64);

/// Graph, predicate, subject and object of a quad as raw ids.
pub(crate) type GraphQuad = (u64, u32, u64, u64);

/// The graphs that edges of one predicate gained and lost.
#[derive(Clone, Debug)]
pub(crate) struct EdgeChanges {
    pub(crate) added: SortedSet<NamedEdge>,
    pub(crate) removed: SortedSet<NamedEdge>,
    /// No other version has this number.
    version: u64,
    /// The subjects of these, of all versions.
    subjects: Arc<KeyFilter>,
}

impl Default for EdgeChanges {
    fn default() -> Self {
        Self {
            added: SortedSet::new(),
            removed: SortedSet::new(),
            version: 0,
            subjects: Arc::new(KeyFilter::for_keys(0)),
        }
    }
}

impl EdgeChanges {
    /// False if nothing changed for the subject.
    #[inline]
    pub(crate) fn may_touch(&self, subject: TermId) -> bool {
        self.subjects.may_hold(subject.raw())
    }

    /// What changed since an earlier version, whose edges are now all in the base; `None` if nothing
    /// did. `version` gives one that nothing has.
    pub(super) fn since(
        &self,
        before: Option<&Self>,
        version: impl FnOnce() -> u64,
    ) -> Option<Self> {
        let nothing = Self::default();
        let before = before.unwrap_or(&nothing);
        if before.version == self.version {
            return None;
        }
        let mut changes = self.added.changes_since(&before.added);
        let of_removed = self.removed.changes_since(&before.removed).into_iter();
        changes.extend(of_removed.map(|(edge, change)| match change {
            Change::Add => (edge, Change::Remove),
            Change::Remove => (edge, Change::Add),
        }));
        if changes.is_empty() {
            return None;
        }
        changes.sort_unstable_by_key(|(edge, _)| *edge);
        let filter = KeyFilter::for_keys(2 * changes.len());
        changes.iter().for_each(|(edge, _)| filter.note(edge.0));
        let [came, went] = came_and_went(changes);
        let mut since = Self {
            version: version(),
            subjects: Arc::new(filter),
            ..nothing
        };
        since.added.apply(&came);
        since.removed.apply(&went);
        Some(since)
    }

    /// Makes a filter of the subjects of the sets, if there are too many for the one that is there.
    fn renew_filter(&mut self) {
        if self.subjects.is_full() {
            let filter = KeyFilter::for_keys(2 * (self.added.len() + self.removed.len()));
            let edges = self.added.iter().chain(self.removed.iter());
            edges.for_each(|edge| filter.note(edge.0));
            self.subjects = Arc::new(filter);
        }
    }
}

/// The changes of all named graphs.
#[derive(Clone, Debug, Default)]
pub(crate) struct NamedDelta {
    edges: Paged<Arc<EdgeChanges>>,
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

/// The numbers of a graph's quads of one predicate in a set of them.
pub(crate) fn of_graph_and_predicate(
    set: &SortedSet<GraphQuad>,
    graph: TermId,
    predicate: PredicateId,
) -> std::ops::Range<usize> {
    let key = (graph.raw(), predicate.0);
    set.rank_by(|quad| (quad.0, quad.1) < key)..set.rank_by(|quad| (quad.0, quad.1) <= key)
}

impl NamedDelta {
    /// The changes of a predicate's edges.
    #[inline]
    pub(crate) fn edges(&self, predicate: PredicateId) -> Option<&EdgeChanges> {
        self.edges.get(predicate.index()).map(|changes| &**changes)
    }

    /// Calls `visit` with the graph of each quad added since the base, or since an earlier version
    /// of it; a graph may come several times.
    pub(crate) fn for_each_added_graph(&self, since: Option<&Self>, visit: &mut dyn FnMut(u64)) {
        match since {
            None => self.added.iter().for_each(|quad| visit(quad.0)),
            Some(since) => {
                let came = self.added.changes_since(&since.added).into_iter();
                came.for_each(|(quad, _)| visit(quad.0));
                let back = self.removed.changes_since(&since.removed).into_iter();
                back.for_each(|(quad, _)| visit(quad.0));
            }
        }
    }

    /// All predicates with changes.
    pub(crate) fn all_edges(&self) -> impl Iterator<Item = (usize, &Arc<EdgeChanges>)> {
        self.edges.iter()
    }

    pub(super) fn set_edges(&mut self, number: usize, changes: Arc<EdgeChanges>) {
        self.edges.set(number, changes);
    }

    pub(crate) fn is_removed(&self, graph: TermId, edge: (TermId, PredicateId, TermId)) -> bool {
        let (subject, predicate, object) = edge;
        !self.removed.is_empty()
            && self
                .removed
                .contains((graph.raw(), predicate.0, subject.raw(), object.raw()))
    }

    /// The version of the changes of a predicate's edges; 0 without any.
    pub(crate) fn version(&self, predicate: PredicateId) -> u64 {
        self.edges(predicate).map_or(0, |changes| changes.version)
    }

    /// Applies effective changes: `quads`, sorted, are in no set of changes yet when they are
    /// `changed`, or are taken back out of the other set. `version` is one that nothing has.
    pub(crate) fn change(
        &mut self,
        version: u64,
        base: &Base,
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
            let in_base = base.quads_of_graph(TermId::from_raw(graph)) as usize;
            let now =
                in_base + of_graph(&self.added, graph).len() - of_graph(&self.removed, graph).len();
            let change = |is: bool| if is { Change::Add } else { Change::Remove };
            gained.push((graph, change(in_base == 0 && now > 0)));
            lost.push((graph, change(in_base > 0 && now == 0)));
        }
        self.gained.apply_effective(gained);
        self.lost.apply_effective(lost);
        let (added, removed) = (by_predicate(added), by_predicate(removed));
        self.change_edges(version, &added, |c| &mut c.added);
        self.change_edges(version, &removed, |c| &mut c.removed);
        // Once both sets are as they will be: a filter that is made anew knows what they hold, and
        // then all that came or went.
        for edges in [&added, &removed] {
            for part in edges.chunk_by(|a, b| a.0 == b.0) {
                self.note(part[0].0 as usize, [&added, &removed]);
            }
        }
    }

    /// Lets the filter of a predicate know of its part of some changes.
    fn note(&mut self, number: usize, changes: [&[(u32, NamedEdge, Change)]; 2]) {
        let Some(before) = self.edges.get(number) else {
            return;
        };
        let mut next = (**before).clone();
        next.renew_filter();
        for changes in changes {
            let begin = changes.partition_point(|change| (change.0 as usize) < number);
            let of_predicate = changes[begin..].iter();
            let of_predicate = of_predicate.take_while(|change| change.0 as usize == number);
            of_predicate.for_each(|(_, edge, _)| next.subjects.note(edge.0));
        }
        self.edges.set(number, Arc::new(next));
    }

    fn change_edges(
        &mut self,
        version: u64,
        changes: &[(u32, NamedEdge, Change)],
        set: fn(&mut EdgeChanges) -> &mut SortedSet<NamedEdge>,
    ) {
        for part in changes.chunk_by(|a, b| a.0 == b.0) {
            let number = part[0].0 as usize;
            let before = self.edges.get(number);
            let mut next = before.map_or_else(EdgeChanges::default, |c| (**c).clone());
            let edges = part.iter().map(|(_, edge, change)| (*edge, *change));
            let edges: Vec<(NamedEdge, Change)> = edges.collect();
            set(&mut next).apply(&edges);
            next.version = version;
            self.edges.set(number, Arc::new(next));
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        let edges: usize = self
            .edges
            .iter()
            .map(|(_, c)| c.added.bytes() + c.removed.bytes() + c.subjects.bytes())
            .sum();
        edges + self.added.bytes() + self.removed.bytes()
    }
}

fn by_predicate(quads: &[(GraphQuad, Change)]) -> Vec<(u32, NamedEdge, Change)> {
    let mut list: Vec<(u32, NamedEdge, Change)> = quads
        .iter()
        .map(|((graph, predicate, subject, object), change)| {
            (*predicate, (*subject, *object, *graph), *change)
        })
        .collect();
    list.sort_unstable_by_key(|(predicate, edge, _)| (*predicate, *edge));
    list
}
