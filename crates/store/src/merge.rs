//! How does what changed become part of the base, predicate by predicate?
//!
//! A merge writes anew the segments of some predicates, each in one pass over what it was and what
//! changed, seals the terms that came into a table of their own, and follows the changes in the
//! tables of characteristic sets and of graphs. All else of the new base is that of the old one, and
//! every term keeps its id. It costs what changed and the segments in which it did.

use jindou_model::{Change, Direction, Edge, PredicateId, TermId, TermKind};
use rayon::prelude::*;
use rustc_hash::FxHashMap;

use crate::StoreError;
use crate::base::Base;
use crate::bulk::{Parts, assemble};
use crate::clusters::SetChanges;
use crate::delta::Snapshot;
use crate::homes::homes_of_new;
use crate::layer::{Layer, LayerKind};
use crate::named::NamedGraphs;
use crate::named_merge::NamedMerge;
use crate::segment::Segment;
use crate::segment_merge::{self, SegmentChanges};
use crate::tables::{NewStrings, TermTables};
use crate::unused::{unused_of, unused_terms};

/// Segments by direction and predicate.
type Segments = [Vec<Option<Segment>>; 2];

/// A base with what a snapshot changed in some predicates, and all of its terms.
pub struct Merged {
    /// The new base.
    pub(crate) base: Base,
    /// The snapshot that was merged.
    pub(crate) from: Snapshot,
    /// The predicates that were, sorted.
    pub(crate) predicates: Vec<PredicateId>,
    /// Terms that the snapshot has no use for, sorted.
    pub(crate) unused: Vec<TermId>,
}

impl Merged {
    /// Merges what `from` changed in `predicates` into its base, on the threads of the current pool.
    /// Its extents were [closed](Snapshot::close_extents).
    ///
    /// Holds the new segments, and of one eight bytes for each of its keys before it has columns.
    ///
    /// # Errors
    /// [`StoreError::TooLarge`] for terms that fit into no table.
    ///
    /// # Panics
    /// If vertices that come later could get numbers among those of this snapshot.
    pub fn new(from: Snapshot, mut predicates: Vec<PredicateId>) -> Result<Self, StoreError> {
        assert!(
            from.has_closed_extents(),
            "the numbers of a base were all given"
        );
        predicates.sort_unstable();
        predicates.dedup();
        let base = merge(&from, &predicates)?;
        let unused = unused_terms(&from, &predicates);
        Ok(Self {
            base,
            from,
            predicates,
            unused,
        })
    }

    /// The same, which has looked whether these terms are used, too: something else than quads had
    /// them before.
    ///
    /// Costs some lookups for each.
    #[must_use]
    pub fn considering(mut self, candidates: &[TermId]) -> Self {
        self.unused
            .extend(unused_of(&self.from, candidates.iter().copied()));
        self.unused.sort_unstable();
        self.unused.dedup();
        self
    }

    /// The new base.
    #[must_use]
    pub fn base(&self) -> &Base {
        &self.base
    }
}

fn merge(from: &Snapshot, merged: &[PredicateId]) -> Result<Base, StoreError> {
    let base = from.base();
    let (tables, segments) = rayon::join(
        || tables(from),
        || LayerKind::ALL.map(|kind| segments(from, kind, merged)),
    );
    let [vertices, literals] = tables?;
    let predicates = (0..from.predicate_count()).map(|number| PredicateId(number as u32));
    let predicate_terms: Vec<TermId> = predicates.map(|id| from.predicate_term(id)).collect();
    let count = predicate_terms.len();
    let mut kinds = LayerKind::ALL.into_iter();
    let layers = segments.map(|segments| {
        let kind = kinds.next().expect("a layer for each kind");
        layer(from, kind, segments, merged)
    });
    let changes = |predicate| {
        let edges = from.delta.named.edges(predicate)?;
        Some((&edges.added, &edges.removed))
    };
    let added = &from.delta.named.added;
    let graphs = base.named.graphs.with(from.delta.named.gained.iter());
    let first = base.vertex_count();
    let homes = homes_of_new(added, first..vertices.len(), &graphs);
    let mut home_of = |vertex: u64| homes[(vertex - first) as usize];
    let runs = (base.runs).extended(vertices.len(), &mut home_of, graphs.len());
    drop(homes);
    let named = NamedGraphs::merged(&NamedMerge {
        before: base,
        graphs: &graphs,
        layer: &layers[LayerKind::Named as usize],
        runs: &runs,
        predicates: count,
        merged,
        changes: &changes,
    });
    let files = base.files.after_merge(
        [&base.vertices, &base.literals],
        [&vertices, &literals],
        merged,
        count,
    );
    let mut declared: Vec<u64> = from.declared_graphs().map(TermId::raw).collect();
    declared.sort_unstable();
    let parts = Parts {
        vertices,
        literals,
        predicate_terms,
        layers,
        named,
        runs,
        documents: from.documents(),
    };
    let mut next = assemble(parts);
    next.declared = declared;
    next.is_union = base.is_union;
    next.identity = base.identity;
    next.files = files;
    // What goes to files next lies in these then.
    if !base.is_in_files() {
        next.pack(merged)?;
    }
    Ok(next)
}

/// The dictionary with all terms of a snapshot.
fn tables(from: &Snapshot) -> Result<[TermTables; 2], StoreError> {
    let base = from.base();
    let known = from.known_terms();
    let (vertices, literals) = rayon::join(
        || {
            let new = NewStrings {
                places: base.vertex_count()..known.vertices,
                end: known.numbers,
                number: &|place| from.vertex_at(place).0,
                key: &|place| from.vertex_at(place).1,
            };
            let gone = &from.delta.forgotten.vertices;
            base.vertices.sealed(&new, gone)
        },
        || {
            let key = |number| from.appended_key(TermId::literal(number));
            let new = NewStrings {
                places: base.literal_count()..known.literals,
                end: known.literals,
                number: &|number| number,
                key: &|number| key(number).expect("the term came since the base"),
            };
            let gone = &from.delta.forgotten.literals;
            base.literals.sealed(&new, gone)
        },
    );
    Ok([vertices?, literals?])
}

/// The segments of a layer after the merge.
fn segments(from: &Snapshot, kind: LayerKind, merged: &[PredicateId]) -> Segments {
    let before = from.base().layer(kind);
    let mut segments = before.segments.clone();
    let changed: Vec<(PredicateId, Direction)> = merged
        .iter()
        .filter(|predicate| **predicate != PredicateId::TYPE)
        .flat_map(|predicate| [(*predicate, Direction::Out), (*predicate, Direction::In)])
        .collect();
    let after: Vec<Option<Option<Segment>>> = changed
        .par_iter()
        .map(|(predicate, direction)| {
            let changes = from.segment_changes(kind, *predicate, *direction)?;
            let before = before.segment(*predicate, *direction);
            Some(segment_merge::merged(before, &changes))
        })
        .collect();
    for side in &mut segments {
        side.resize_with(from.predicate_count(), || None);
    }
    for ((predicate, direction), after) in changed.into_iter().zip(after) {
        if let Some(after) = after {
            segments[direction as usize][predicate.index()] = after;
        }
    }
    segments
}

/// The layer of these segments, with its characteristic sets.
fn layer(from: &Snapshot, kind: LayerKind, segments: Segments, merged: &[PredicateId]) -> Layer {
    let before = from.base().layer(kind);
    let touched =
        [Direction::Out, Direction::In].map(|direction| touched(from, kind, direction, merged));
    let is_type = |id: &PredicateId| *id == PredicateId::TYPE;
    let types = match merged.iter().any(is_type) {
        true => types(from, kind),
        false => Vec::new(),
    };
    let is_empty = segments[0].iter().all(Option::is_none);
    let clusters = if is_empty && types.is_empty() && before.edges() == 0 {
        crate::clusters::Clusters::none(from.predicate_count())
    } else {
        before.clusters().merged(&SetChanges {
            vertices: from.known_terms().numbers,
            predicates: from.predicate_count(),
            merged,
            touched: [&touched[0], &touched[1]],
            types: &types,
            before: &|predicate, direction| before.segment(predicate, direction),
            after: &|predicate, direction| segments[direction as usize][predicate.index()].as_ref(),
        })
    };
    Layer::new(clusters, segments)
}

/// The vertices whose lists of merged predicates changed, with these.
fn touched(
    from: &Snapshot,
    kind: LayerKind,
    direction: Direction,
    merged: &[PredicateId],
) -> Vec<(u64, PredicateId)> {
    let mut touched = Vec::new();
    for predicate in merged.iter().filter(|id| **id != PredicateId::TYPE) {
        let Some(changes) = from.segment_changes(kind, *predicate, direction) else {
            continue;
        };
        for set in [changes.added, changes.removed] {
            let mut last = None;
            for (key, _) in set.iter() {
                let is_vertex = TermId::from_raw(key).kind() == TermKind::Vertex;
                if is_vertex && last.replace(key) != Some(key) {
                    touched.push((key, *predicate));
                }
            }
        }
    }
    touched.sort_unstable();
    touched.dedup();
    touched
}

/// The types that came and went, by vertex.
fn types(from: &Snapshot, kind: LayerKind) -> Vec<(Edge, Change)> {
    let Some(changes) = from.segment_changes(kind, PredicateId::TYPE, Direction::Out) else {
        return Vec::new();
    };
    let came = changes.added.iter().map(|edge| (edge, Change::Add));
    let went = changes.removed.iter().map(|edge| (edge, Change::Remove));
    let mut types: Vec<(Edge, Change)> = came.chain(went).collect();
    types.sort_unstable_by_key(|(edge, _)| *edge);
    types
}

/// How much of a predicate changed since the last merge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PredicateChanges {
    /// The predicate.
    pub predicate: PredicateId,
    /// Its edges that came and went, and the named graphs that edges came to and went from.
    pub changes: u64,
    /// Its edges in the base.
    pub edges: u64,
}

impl Snapshot {
    /// The predicates that have changed since the last merge, in no order.
    ///
    /// Costs a few loads for each of them.
    #[must_use]
    pub fn changed_predicates(&self) -> Vec<PredicateChanges> {
        let mut changes: FxHashMap<PredicateId, u64> = FxHashMap::default();
        for layer in &self.delta.layers {
            for (number, delta) in layer.segments[Direction::Out as usize].iter() {
                let count = (delta.added.len() + delta.removed.len()) as u64;
                *changes.entry(PredicateId(number as u32)).or_default() += count;
            }
        }
        for (number, edges) in self.delta.named.all_edges() {
            let count = (edges.added.len() + edges.removed.len()) as u64;
            *changes.entry(PredicateId(number as u32)).or_default() += count;
        }
        let base = self.base();
        let changed = changes.into_iter().filter(|(_, count)| *count > 0);
        changed
            .map(|(predicate, changes)| PredicateChanges {
                predicate,
                changes,
                edges: LayerKind::ALL
                    .map(|kind| base.layer(kind).counts(predicate, Direction::Out).0)
                    .iter()
                    .sum(),
            })
            .collect()
    }

    /// The most changes of a predicate of which more than one in `share` edges changed; 0 if there
    /// is none. Costs nothing: commits ask for it.
    #[must_use]
    pub fn crowded_changes(&self, share: u64) -> u64 {
        let crowded = self.delta.layers.iter().map(|layer| layer.crowded(share));
        crowded.max().unwrap_or(0)
    }

    /// What changed in a segment since the base, if something did.
    pub(crate) fn segment_changes(
        &self,
        kind: LayerKind,
        predicate: PredicateId,
        direction: Direction,
    ) -> Option<SegmentChanges<'_>> {
        let delta = self.delta.layers[kind as usize].segment(predicate, direction)?;
        Some(SegmentChanges {
            added: &delta.added,
            removed: &delta.removed,
            gained: &delta.gained,
            lost: &delta.lost,
        })
    }
}
