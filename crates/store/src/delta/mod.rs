//! What has changed since the bulk load: the mutable part of a store, as versions that are not.
//!
//! The base is immutable; a *delta* holds the edges added and removed since, in sorted sets whose
//! versions share what they have in common. A commit makes the next version and leaves the
//! ones before to their readers, so that nobody waits for anybody.

mod access;
mod apply;
mod arrange;
mod changed;
mod content;
mod each;
mod ends;
mod extents;
mod graph_sets;
mod graphs;
mod ids;
mod intersect;
mod key_filter;
mod lookup;
mod named;
mod overlay;
mod paged;
mod part;
mod pending;
mod published;
mod rebase;
mod segment;
mod snapshot;
mod statistics;
mod terms;
mod texts;
mod transaction;
mod view;

use std::sync::Arc;

use jindou_model::{Change, Direction, Edge, PredicateId, SortedSet};

pub use apply::{Changes, Effect};
pub use changed::Changed;
pub use graphs::EdgeGraphsAt;
pub use lookup::TermKey;
pub use overlay::{Fold, FoldRule};
pub use published::Published;
pub use rebase::Rebase;
pub use snapshot::Snapshot;
pub use terms::{GivenNumbers, TermCounts};
pub use texts::TextOrder;
pub use transaction::{
    NewIds, NewTerms, NumberedKey, Replay, ReplayError, Stage, Transaction, TransactionError,
};
pub use view::LayerView;

use crate::LayerKind;
use content::ContentVersions;
pub(crate) use ends::EndCounts;
use named::NamedDelta;
use paged::Paged;
pub(crate) use part::Difference;
use segment::SegmentDelta;

/// One version of all changes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Delta {
    /// By layer.
    pub(crate) layers: [LayerDelta; 2],
    pub(crate) named: NamedDelta,
    /// Graphs that exist without quads, too.
    declared: SortedSet<u64>,
    pub(crate) forgotten: Forgotten,
    pub(crate) content: ContentVersions,
}

/// Terms that no quad has and that nobody will find: whoever names one again gets another id.
#[derive(Clone, Debug, Default)]
pub(crate) struct Forgotten {
    /// Numbers.
    pub(crate) vertices: SortedSet<u64>,
    pub(crate) literals: SortedSet<u64>,
    /// How often some were.
    times: u64,
}

/// The changes of one layer.
#[derive(Clone, Debug, Default)]
pub(crate) struct LayerDelta {
    /// By direction and predicate.
    pub(crate) segments: [Paged<Arc<SegmentDelta>>; 2],
    /// (vertex, predicate) for each predicate that a vertex gained in a direction, and lost.
    gained: [SortedSet<(u64, u32)>; 2],
    lost: [SortedSet<(u64, u32)>; 2],
    /// Edges added, and removed.
    added: u64,
    removed: u64,
    /// Edges changed since lists were last written out.
    recent: u64,
    /// The segment with the most changes for its size: how many these are, and its edges.
    crowded: (u64, u64),
}

impl Delta {
    /// Quads added or removed.
    pub(crate) fn changes(&self) -> u64 {
        let default = &self.layers[LayerKind::Default as usize];
        let named = self.named.added.len() + self.named.removed.len();
        default.added + default.removed + named as u64
    }

    pub(crate) fn bytes(&self) -> usize {
        let layers: usize = self.layers.iter().map(LayerDelta::bytes).sum();
        layers + self.named.bytes()
    }
}

impl LayerDelta {
    /// The changes of the segment with the most for its size, if these are one in `share` edges.
    pub(crate) fn crowded(&self, share: u64) -> u64 {
        let (changes, edges) = self.crowded;
        if changes.saturating_mul(share) >= edges {
            changes
        } else {
            0
        }
    }

    /// Notes that a segment of so many edges has so many changes.
    fn note_crowd(&mut self, changes: u64, edges: u64) {
        let weight =
            |(changes, edges): (u64, u64)| changes as f64 * changes as f64 / (edges + 1) as f64;
        if weight((changes, edges)) >= weight(self.crowded) {
            self.crowded = (changes, edges);
        }
    }

    #[inline]
    pub(crate) fn segment(
        &self,
        predicate: PredicateId,
        direction: Direction,
    ) -> Option<&SegmentDelta> {
        self.segments[direction as usize]
            .get(predicate.index())
            .map(|segment| &**segment)
    }

    /// Calls `visit` with each edge added since the base, or since an earlier version of it.
    pub(crate) fn for_each_added(&self, since: Option<&Self>, visit: &mut dyn FnMut(Edge)) {
        let out = Direction::Out as usize;
        for (number, segment) in self.segments[out].iter() {
            let before = since.and_then(|since| since.segments[out].get(number));
            match (since, before) {
                (Some(_), Some(before)) => {
                    let changes = segment.edges_since(before).into_iter();
                    let came = changes.filter(|(_, change)| *change == Change::Add);
                    came.for_each(|(edge, _)| visit(edge));
                }
                _ => segment.added.iter().for_each(&mut *visit),
            }
        }
    }

    fn bytes(&self) -> usize {
        let segments: usize = self
            .segments
            .iter()
            .flat_map(Paged::iter)
            .map(|(_, segment)| segment.bytes())
            .sum();
        let lists: usize = self
            .gained
            .iter()
            .chain(&self.lost)
            .map(SortedSet::bytes)
            .sum();
        segments + lists
    }
}
