//! A segment at one snapshot as plain arrays, for readers that cannot follow trees.
//!
//! Another machine that reads one-sidedly, or a device, sees arrays by their [`SegmentLayout`]. What
//! changed since the base lies in sets whose versions share chunks, so the two are written out together,
//! as a merge would, and kept with that version of the changes.

use std::sync::Arc;

use jindou_fabric::Region;
use jindou_model::{Direction, PredicateId};

use super::overlay::Overlay;
use super::segment::SegmentDelta;
use super::snapshot::Snapshot;
use crate::layer::LayerKind;
use crate::layout::SegmentLayout;
use crate::segment::Segment;
use crate::segment_merge::merged;

/// All edges of a segment at one snapshot, in one region. It may have keys without neighbours.
#[derive(Debug)]
pub struct Published {
    segment: Segment,
    layout: SegmentLayout,
}

impl Published {
    /// A segment whose arrays lie in one region; shares them.
    fn of(segment: &Segment) -> Arc<Self> {
        let layout = segment.layout();
        let segment = segment.clone();
        Arc::new(Self { segment, layout })
    }

    /// Where its arrays lie.
    #[must_use]
    pub fn layout(&self) -> &SegmentLayout {
        &self.layout
    }

    /// The region of the layout, whole: the memory stays as it is while somebody has it.
    #[must_use]
    pub fn region(&self) -> Region {
        self.segment.neighbour_column().region().memory()
    }

    /// The same for readers of this process.
    #[must_use]
    pub fn segment(&self) -> &Segment {
        &self.segment
    }
}

impl Snapshot {
    /// The edges of a predicate in one direction of a layer as plain arrays: those of the base where
    /// nothing changed since, and base and changes together otherwise. `None` without edges, and for
    /// `rdf:type`, whose edges are those of the characteristic sets.
    ///
    /// The first call for a version of the changes costs a pass over the segment and as much memory
    /// as that, which is kept for as long as somebody has that version; others cost a few loads for
    /// each part of the domain at most. Two threads that ask at once wait for one pass.
    #[must_use]
    pub fn published(
        &self,
        kind: LayerKind,
        predicate: PredicateId,
        direction: Direction,
    ) -> Option<Arc<Published>> {
        if predicate == PredicateId::TYPE {
            return None;
        }
        let base = self.base().layer(kind).segment(predicate, direction);
        let delta = self.delta.layers[kind as usize].segment(predicate, direction);
        let Some(delta) = delta.filter(|delta| delta.has_changes()) else {
            return base.map(Published::of);
        };
        if let Some(lists) = delta.written_out() {
            return Some(Published::of(lists));
        }
        let write = || {
            let changes = self.segment_changes(kind, predicate, direction)?;
            let segment = merged(base, &changes)?;
            Some(Published::of(&segment.packed()))
        };
        delta.published().get_or_init(write).clone()
    }
}

impl SegmentDelta {
    /// True if the edges are others than those of the base.
    fn has_changes(&self) -> bool {
        !self.added.is_empty() || !self.removed.is_empty()
    }

    /// All lists, where an overlay has them and nothing changed since it was written.
    fn written_out(&self) -> Option<&Segment> {
        let overlay = self.overlay().filter(|_| self.recent().len() == 0);
        overlay.and_then(Overlay::whole)
    }
}

#[cfg(test)]
mod tests;
