//! After a merge: what of a snapshot's changes is not in the new base?
//!
//! A merge makes a base that has all that a snapshot F held of some predicates. Of a later snapshot
//! L the changes of these predicates become what led from F to L; those of other predicates stay as
//! they are. Ids stay, so that nothing else that holds some notices.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use jindou_model::{Change, Direction, Edge, Neighbours, PredicateId, SortedSet, TermId};
use rustc_hash::FxHashSet;

use super::graph_sets::GraphSetCache;
use super::named::{EdgeChanges, GraphQuad, NamedDelta, of_graph};
use super::paged::Paged;
use super::segment::SegmentDelta;
use super::snapshot::{Generation, Snapshot};
use super::terms::AppendedTerms;
use super::{Delta, Forgotten, LayerDelta};
use crate::tables::TermTables;
use crate::unused::for_each_new_use;
use crate::{Base, LayerKind, Merged};

/// Brings snapshots of a store whose base was merged over to the new base.
pub struct Rebase {
    /// What was merged.
    from: Snapshot,
    /// Sorted.
    predicates: Vec<PredicateId>,
    generation: Arc<Generation>,
    /// Terms that nothing uses in the latest snapshot.
    unused: Vec<TermId>,
}

impl Rebase {
    /// Brings over `latest`, and any snapshot between the merged one and it.
    ///
    /// Costs the terms that came since the merged snapshot.
    ///
    /// # Panics
    /// If `latest` is not of the base that was merged.
    #[must_use]
    pub fn new(merged: Merged, latest: &Snapshot) -> Self {
        let Merged {
            base,
            from,
            predicates,
            mut unused,
        } = merged;
        assert!(
            from.is_of_generation_of(latest),
            "snapshots are brought over from the base that was merged"
        );
        let before = &latest.generation;
        let terms = AppendedTerms::behind(base.term_counts());
        terms.follow(&before.terms, from.known_terms(), latest.known_terms());
        let generation = Generation {
            base,
            terms: Arc::new(terms),
            versions: AtomicU64::new(before.versions.load(Ordering::Relaxed)),
            sets: Default::default(),
            end_counts: Default::default(),
            graph_sets: GraphSetCache::default(),
            number: before.number,
        };
        let mut used = FxHashSet::default();
        if !unused.is_empty() {
            let mut note = |id: TermId| {
                used.insert(id);
            };
            for_each_new_use(latest, Some(&from), &mut note);
        }
        unused.retain(|id| !used.contains(id));
        Self {
            from,
            predicates,
            generation: Arc::new(generation),
            unused,
        }
    }

    /// Terms that the latest snapshot may forget: nothing in it uses them.
    #[must_use]
    pub fn unused(&self) -> &[TermId] {
        &self.unused
    }

    /// The same graph upon the new base.
    ///
    /// Costs what changed since the merged snapshot, and a pass over the lists by vertex and by graph
    /// of what was not merged.
    ///
    /// # Panics
    /// If the snapshot is of another base, or earlier than the merged one.
    #[must_use]
    pub fn apply(&self, snapshot: &Snapshot) -> Snapshot {
        assert!(
            snapshot.is_of_generation_of(&self.from) && snapshot.number() >= self.from.number(),
            "only later snapshots of the merged base are brought over"
        );
        let layers = [LayerKind::Default, LayerKind::Named].map(|kind| self.layer(snapshot, kind));
        let delta = Delta {
            layers,
            named: self.named(snapshot),
            declared: snapshot.delta.declared.clone(),
            forgotten: self.forgotten(&snapshot.delta.forgotten),
            content: snapshot.delta.content.clone(),
        };
        let merged = self.from.known_terms();
        snapshot.moved_to(Arc::clone(&self.generation), delta, merged)
    }

    /// Those forgotten terms whose strings are still there.
    fn forgotten(&self, now: &Forgotten) -> Forgotten {
        let base = &self.generation.base;
        let kept = |set: &SortedSet<u64>, tables: &TermTables| {
            let is_there = |n: &u64| *n >= tables.len() || tables.contains(*n);
            set_of(set.iter().filter(is_there).collect())
        };
        Forgotten {
            vertices: kept(&now.vertices, &base.vertices),
            literals: kept(&now.literals, &base.literals),
            times: now.times,
        }
    }

    fn is_merged(&self, number: usize) -> bool {
        let predicate = PredicateId(number as u32);
        self.predicates.binary_search(&predicate).is_ok()
    }

    fn version(&self) -> u64 {
        self.generation.versions.fetch_add(1, Ordering::Relaxed)
    }

    fn layer(&self, snapshot: &Snapshot, kind: LayerKind) -> LayerDelta {
        let (now, then) = (
            &snapshot.delta.layers[kind as usize],
            &self.from.delta.layers[kind as usize],
        );
        let mut next = LayerDelta::default();
        for direction in [Direction::Out, Direction::In] {
            let d = direction as usize;
            let (gained, lost) = self.segments(kind, direction, (now, then), &mut next.segments[d]);
            let kept = |set: &SortedSet<(u64, u32)>, more: Vec<(u64, u32)>| {
                let is_kept = |entry: &(u64, u32)| !self.is_merged(entry.1 as usize);
                set_of(set.iter().filter(is_kept).chain(more).collect())
            };
            next.gained[d] = kept(&now.gained[d], gained);
            next.lost[d] = kept(&now.lost[d], lost);
        }
        let base = self.generation.base.layer(kind);
        let out = next.segments[Direction::Out as usize].clone();
        for (number, segment) in out.iter() {
            let (added, removed) = (segment.added.len() as u64, segment.removed.len() as u64);
            next.added += added;
            next.removed += removed;
            next.recent += segment.recent().len() as u64;
            let edges = base.counts(PredicateId(number as u32), Direction::Out).0;
            next.note_crowd(added + removed, edges);
        }
        next
    }

    /// The segments of one direction; which vertices gained and lost merged predicates.
    #[expect(clippy::type_complexity, reason = "two lists of the same kind")]
    fn segments(
        &self,
        kind: LayerKind,
        direction: Direction,
        (now, then): (&LayerDelta, &LayerDelta),
        next: &mut Paged<Arc<SegmentDelta>>,
    ) -> (Vec<(u64, u32)>, Vec<(u64, u32)>) {
        let (mut gained, mut lost) = (Vec::new(), Vec::new());
        let [now, then] = [now, then].map(|layer| &layer.segments[direction as usize]);
        for (number, segment) in now.iter().filter(|(number, _)| !self.is_merged(*number)) {
            next.set(number, Arc::clone(segment));
        }
        let nothing = SegmentDelta::default();
        for predicate in &self.predicates {
            let base = |key: TermId| -> Neighbours<'_> {
                let layer = self.generation.base.layer(kind);
                layer.neighbours(*predicate, direction, key)
            };
            // What was merged may be undone, and nothing be left of it in a snapshot that was brought upon the base
            // by itself.
            let segment = now.get(predicate.index()).map_or(&nothing, |now| &**now);
            let before = then.get(predicate.index());
            let Some(since) = segment.since(before, || self.version(), base) else {
                continue;
            };
            let entry = |key: u64| (key, predicate.0);
            gained.extend(since.gained.iter().map(entry));
            lost.extend(since.lost.iter().map(entry));
            next.set(predicate.index(), Arc::new(since));
        }
        (gained, lost)
    }

    fn named(&self, snapshot: &Snapshot) -> NamedDelta {
        let (now, then) = (&snapshot.delta.named, &self.from.delta.named);
        let is_kept = |quad: &GraphQuad| !self.is_merged(quad.1 as usize);
        let mut added: Vec<GraphQuad> = now.added.iter().filter(is_kept).collect();
        let mut removed: Vec<GraphQuad> = now.removed.iter().filter(is_kept).collect();
        let mut next = NamedDelta::default();
        let unmerged = |(number, _): &(usize, _)| !self.is_merged(*number);
        for (number, changes) in now.all_edges().filter(unmerged) {
            next.set_edges(number, Arc::clone(changes));
        }
        let nothing = EdgeChanges::default();
        for predicate in &self.predicates {
            // As for segments.
            let changes = now.edges(*predicate).unwrap_or(&nothing);
            let before = then.edges(*predicate);
            let Some(since) = changes.since(before, || self.version()) else {
                continue;
            };
            let quad = |(s, o, g): (u64, u64, u64)| (g, predicate.0, s, o);
            added.extend(since.added.iter().map(quad));
            removed.extend(since.removed.iter().map(quad));
            next.set_edges(predicate.index(), Arc::new(since));
        }
        next.added = set_of(added);
        next.removed = set_of(removed);
        self.graphs(now, &mut next);
        next
    }

    /// Which graphs the new base lacks, and which have no quads any more.
    fn graphs(&self, now: &NamedDelta, next: &mut NamedDelta) {
        let base: &Base = &self.generation.base;
        let of_quads = next
            .added
            .iter()
            .chain(next.removed.iter())
            .map(|quad| quad.0);
        let noted = now.gained.iter().chain(now.lost.iter());
        let candidates: FxHashSet<u64> = of_quads.chain(noted).collect();
        let (mut gained, mut lost) = (Vec::new(), Vec::new());
        for graph in candidates {
            let in_base = base.quads_of_graph(TermId::from_raw(graph)) as usize;
            let has = in_base + of_graph(&next.added, graph).len();
            let has = has - of_graph(&next.removed, graph).len();
            match (in_base, has) {
                (0, 1..) => gained.push(graph),
                (1.., 0) => lost.push(graph),
                _ => {}
            }
        }
        next.gained = set_of(gained);
        next.lost = set_of(lost);
    }
}

/// The set of these elements, which are distinct.
fn set_of<T: Copy + Ord>(mut elements: Vec<T>) -> SortedSet<T> {
    elements.sort_unstable();
    let mut set = SortedSet::new();
    let changes: Vec<(T, Change)> = elements.into_iter().map(|e| (e, Change::Add)).collect();
    set.apply(&changes);
    set
}

/// What came and what went, from net changes in order.
pub(super) fn came_and_went<T: Copy>(changes: Vec<(T, Change)>) -> [Vec<(T, Change)>; 2] {
    let (came, went): (Vec<_>, Vec<_>) = changes
        .into_iter()
        .partition(|(_, change)| *change == Change::Add);
    [
        came,
        went.into_iter().map(|(e, _)| (e, Change::Add)).collect(),
    ]
}

impl SegmentDelta {
    /// What changed since an earlier version, whose edges are now all in the base; `None` if nothing
    /// did.
    fn since<'b>(
        &self,
        before: Option<&Arc<Self>>,
        version: impl FnOnce() -> u64,
        base: impl Fn(TermId) -> Neighbours<'b>,
    ) -> Option<Self> {
        let nothing = Self::default();
        let before = before.map_or(&nothing, |before| &**before);
        if before.version == self.version {
            return None;
        }
        let changes: Vec<(Edge, Change)> = self.edges_since(before);
        if changes.is_empty() {
            return None;
        }
        let [added, removed] = came_and_went(changes);
        Some(nothing.changed(version(), &added, &removed, base))
    }
}
