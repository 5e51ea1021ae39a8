//! What has changed since the bulk load: the mutable part of a store, as versions that are not.
//!
//! The base is immutable; a *delta* holds the edges added and removed since, in sorted sets whose
//! versions share what they have in common. A commit makes the next version and leaves the
//! ones before to their readers, so that nobody waits for anybody.

mod apply;
mod changed;
mod ids;
mod key_filter;
mod named;
mod overlay;
mod paged;
mod segment;
mod snapshot;
mod statistics;
mod terms;
mod transaction;

use std::sync::Arc;

use jindou_model::{Direction, PredicateId, SortedSet};

pub use apply::{Changes, Effect};
pub use changed::Changed;
pub use overlay::{Fold, FoldRule};
pub use snapshot::Snapshot;
pub use terms::TermCounts;
pub use transaction::{Replay, ReplayError, Stage, Transaction, TransactionError, Translator};

use named::NamedDelta;
use paged::Paged;
use segment::SegmentDelta;

/// One version of all changes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Delta {
    /// Changes in the default graph, by direction and predicate.
    segments: [Paged<Arc<SegmentDelta>>; 2],
    /// (vertex, predicate) for each predicate that a vertex gained in a direction, and lost.
    gained: [SortedSet<(u64, u32)>; 2],
    lost: [SortedSet<(u64, u32)>; 2],
    named: NamedDelta,
    /// Graphs that exist without quads, too.
    declared: SortedSet<u64>,
    /// Edges of the default graph added, and removed.
    added: u64,
    removed: u64,
    /// Edges changed since lists were last written out.
    recent: u64,
}

impl Delta {
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

    /// Quads added or removed.
    pub(crate) fn changes(&self) -> u64 {
        self.added + self.removed + (self.named.added.len() + self.named.removed.len()) as u64
    }

    pub(crate) fn bytes(&self) -> usize {
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
        segments + lists + self.named.bytes()
    }
}
