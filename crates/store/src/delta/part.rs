//! What has changed of a shard: how do the parts of a cut follow the snapshot that was cut?
//!
//! A part of a snapshot is a snapshot of its own: a part of the base, and of the changes those of the
//! keys that its shard owns. When the whole changes, a part is brought on by what changed of its keys,
//! whether that came before or after, so that nothing is cut anew until the base is another one.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use jindou_model::{Change, Direction, Edge, Neighbours, PredicateId, ShardId, TermId};
use jindou_partition::Shards;
use rustc_hash::FxHashMap;

use super::named::GraphQuad;
use super::segment::SegmentDelta;
use super::snapshot::{Generation, Snapshot};
use super::{Delta, FoldRule, LayerDelta};
use crate::LayerKind;

/// Lists of changed keys of a part are written out once so many edges changed since the last time, and a
/// quarter of all: as those of a whole graph.
const FOLDED_FROM: u64 = 4_096;

/// What leads from one snapshot to another of the same generation, by shard.
pub(crate) struct Difference<'a> {
    to: &'a Snapshot,
    own: FxHashMap<ShardId, OwnDifference>,
}

/// What changes of the keys of one shard.
#[derive(Default)]
struct OwnDifference {
    segments: Vec<SegmentDifference>,
    /// What comes to the sets of quads that were added and removed, in their order.
    named: [Vec<(GraphQuad, Change)>; 2],
}

/// What changes in one segment.
struct SegmentDifference {
    place: (LayerKind, Direction, PredicateId),
    /// What comes to the sets of edges that were added and removed, in their order.
    sets: EdgeSets,
}

type EdgeSets = [Vec<(Edge, Change)>; 2];

impl<'a> Difference<'a> {
    /// What leads from `before` to `to`, of the same generation, either of which may be the earlier one.
    ///
    /// Costs a look at each segment that changed since the base, and what differs.
    pub(crate) fn between(before: &Snapshot, to: &'a Snapshot, shards: Shards) -> Self {
        assert!(
            before.is_of_generation_of(to),
            "both have the changes of one base"
        );
        let mut own: FxHashMap<ShardId, OwnDifference> = FxHashMap::default();
        for kind in LayerKind::ALL {
            let layers = [before, to].map(|of| &of.delta.layers[kind as usize]);
            for direction in [Direction::Out, Direction::In] {
                for_each_difference(layers, direction, &mut |predicate, sets| {
                    let place = (kind, direction, predicate);
                    for (shard, sets) in by_shard(sets, shards, |edge| edge.0) {
                        let own = own.entry(shard).or_default();
                        own.segments.push(SegmentDifference { place, sets });
                    }
                });
            }
        }
        let (was, is) = (&before.delta.named, &to.delta.named);
        let mut named = [
            is.added.changes_since(&was.added),
            is.removed.changes_since(&was.removed),
        ];
        for set in &mut named {
            set.retain(|(quad, _)| quad.1 != PredicateId::TYPE.0);
        }
        for (shard, sets) in by_shard(named, shards, |quad| quad.2) {
            own.entry(shard).or_default().named = sets;
        }
        Self { to, own }
    }
}

/// The changes of two sets, by the shard that owns the key of each.
fn by_shard<T: Copy>(
    sets: [Vec<(T, Change)>; 2],
    shards: Shards,
    key: impl Fn(&T) -> u64,
) -> FxHashMap<ShardId, [Vec<(T, Change)>; 2]> {
    let mut own: FxHashMap<ShardId, [Vec<(T, Change)>; 2]> = FxHashMap::default();
    for (place, set) in sets.into_iter().enumerate() {
        for (element, change) in set {
            let shard = shards.owner(TermId::from_raw(key(&element)));
            own.entry(shard).or_default()[place].push((element, change));
        }
    }
    own
}

/// Calls `visit` with each segment other than that of `rdf:type` that differs between two layers.
fn for_each_difference(
    [before, to]: [&LayerDelta; 2],
    direction: Direction,
    visit: &mut dyn FnMut(PredicateId, EdgeSets),
) {
    let nothing = SegmentDelta::default();
    let [was, is] = [before, to].map(|layer| &layer.segments[direction as usize]);
    let mut compare = |number: usize, was: &SegmentDelta, is: &SegmentDelta| {
        let predicate = PredicateId(number as u32);
        if predicate == PredicateId::TYPE || was.version == is.version {
            return;
        }
        let added = is.added.changes_since(&was.added);
        let removed = is.removed.changes_since(&was.removed);
        if !added.is_empty() || !removed.is_empty() {
            visit(predicate, [added, removed]);
        }
    };
    for (number, segment) in is.iter() {
        let was = was.get(number).map_or(&nothing, |segment| &**segment);
        compare(number, was, segment);
    }
    for (number, segment) in was.iter() {
        if is.get(number).is_none() {
            compare(number, segment, &nothing);
        }
    }
}

impl Snapshot {
    /// A part that has no edge but those of `rdf:type`, with all changes of the whole.
    pub(crate) fn shared_part(&self, generation: Arc<Generation>) -> Self {
        self.part_upon(generation, self.delta.clone())
    }

    /// A part upon a part of this snapshot's base, as if nothing had changed since.
    pub(crate) fn part_of_base(&self, generation: Arc<Generation>) -> Self {
        self.part_upon(generation, Delta::default())
    }

    /// This part, that of a shard, brought on by what changed of the keys that it owns.
    ///
    /// Costs what changed of these keys, and from time to time the lists of all of them that changed.
    pub(crate) fn part_brought_on(&self, shard: ShardId, by: &Difference<'_>) -> Self {
        let generation = Arc::clone(&self.generation);
        let whole = &by.to.delta;
        let mut delta = Delta {
            named: self.delta.named.clone(),
            declared: whole.declared.clone(),
            forgotten: whole.forgotten.clone(),
            content: whole.content.clone(),
            layers: LayerKind::ALL.map(|kind| {
                let own = &self.delta.layers[kind as usize];
                own.with_figures_of(&whole.layers[kind as usize])
            }),
        };
        let Some(own) = by.own.get(&shard) else {
            return by.to.part_upon(generation, delta);
        };
        let version = || generation.versions.fetch_add(1, Ordering::Relaxed);
        for changed in &own.segments {
            let (kind, direction, predicate) = changed.place;
            let base = generation.base.layer(kind);
            let layer = &mut delta.layers[kind as usize];
            layer.change_part((predicate, direction), version(), &changed.sets, &|key| {
                base.neighbours(predicate, direction, key)
            });
        }
        let [added, removed] = &own.named;
        if !added.is_empty() || !removed.is_empty() {
            (delta.named).change(version(), &generation.base, added, removed);
        }
        by.to.part_upon(generation, delta).folded_if_due()
    }

    /// The same, with the lists of keys that changed written out where that is worth it.
    fn folded_if_due(mut self) -> Self {
        let recent = self.delta.layers.iter().map(|layer| layer.recent);
        let recent: u64 = recent.sum();
        if recent >= FOLDED_FROM.max(self.changes() / 4) {
            let fold = self.fold(FoldRule::default());
            self.read_through(fold);
        }
        self
    }

    /// True unless nothing changed since the base in a segment: the base has all its lists as they are.
    #[must_use]
    pub fn may_have_changes(
        &self,
        kind: LayerKind,
        (predicate, direction): (PredicateId, Direction),
    ) -> bool {
        let delta = &self.delta.layers[kind as usize];
        delta.segment(predicate, direction).is_some()
    }

    /// True unless nothing changed since the base in the list of a key: the base has it as it is.
    #[must_use]
    pub fn may_have_changed(
        &self,
        kind: LayerKind,
        (predicate, direction): (PredicateId, Direction),
        key: TermId,
    ) -> bool {
        let delta = self.delta.layers[kind as usize].segment(predicate, direction);
        delta.is_some_and(|delta| delta.may_have_changed(key))
    }
}

impl LayerDelta {
    /// These segments, with the figures of the whole layer, and its predicates of each vertex.
    fn with_figures_of(&self, whole: &Self) -> Self {
        Self {
            segments: self.segments.clone(),
            recent: self.recent,
            gained: whole.gained.clone(),
            lost: whole.lost.clone(),
            ..*whole
        }
    }

    /// Makes changes in one direction of a predicate.
    fn change_part<'b>(
        &mut self,
        (predicate, direction): (PredicateId, Direction),
        version: u64,
        [added, removed]: &EdgeSets,
        base: &dyn Fn(TermId) -> Neighbours<'b>,
    ) {
        let segments = &mut self.segments[direction as usize];
        let before = segments.get(predicate.index()).cloned().unwrap_or_default();
        let changed = before.changed(version, added, removed, base);
        segments.set(predicate.index(), Arc::new(changed));
        self.recent += (added.len() + removed.len()) as u64;
    }
}
