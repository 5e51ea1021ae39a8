//! What has changed since the bulk load: the mutable part of a store, as versions that are not.
//!
//! The base is immutable; a *delta* holds the edges added and removed since, in sorted sets whose
//! versions share what they have in common. A commit makes the next version and leaves the
//! ones before to their readers, so that nobody waits for anybody.

mod access;
mod apply;
mod changed;
mod graph_sets;
mod graphs;
mod ids;
mod intersect;
mod key_filter;
mod named;
mod overlay;
mod paged;
mod segment;
mod snapshot;
mod statistics;
mod terms;
mod transaction;
mod view;

use std::sync::Arc;

use jindou_model::{Direction, PredicateId, SortedSet};

pub use apply::{Changes, Effect};
pub use changed::Changed;
pub use graphs::EdgeGraphsAt;
pub use overlay::{Fold, FoldRule};
pub use snapshot::Snapshot;
pub use terms::TermCounts;
pub use transaction::{
    NewTerms, Replay, ReplayError, Stage, Transaction, TransactionError, Translator,
};
pub use view::LayerView;

use crate::LayerKind;
use named::NamedDelta;
use paged::Paged;
use segment::SegmentDelta;

/// One version of all changes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Delta {
    /// By layer.
    layers: [LayerDelta; 2],
    named: NamedDelta,
    /// Graphs that exist without quads, too.
    declared: SortedSet<u64>,
}

/// The changes of one layer.
#[derive(Clone, Debug, Default)]
pub(crate) struct LayerDelta {
    /// By direction and predicate.
    segments: [Paged<Arc<SegmentDelta>>; 2],
    /// (vertex, predicate) for each predicate that a vertex gained in a direction, and lost.
    gained: [SortedSet<(u64, u32)>; 2],
    lost: [SortedSet<(u64, u32)>; 2],
    /// Edges added, and removed.
    added: u64,
    removed: u64,
    /// Edges changed since lists were last written out.
    recent: u64,
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
