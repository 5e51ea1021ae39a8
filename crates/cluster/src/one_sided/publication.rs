//! What does a node tell others of a shard, so that they can read its lists themselves?

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use jindou_fabric::remote::{Fabric, MemoryKey, Registration};
use jindou_fabric::{FabricError, RegionId};
use jindou_model::{Direction, PredicateId};
use jindou_store::{LayerKind, SegmentLayout, Snapshot};
use rustc_hash::FxHashMap;

/// Names a segment of a shard.
pub(super) type SegmentName = (u8, PredicateId, Direction);

pub(crate) fn segment_name(
    kind: LayerKind,
    predicate: PredicateId,
    direction: Direction,
) -> SegmentName {
    (kind as u8, predicate, direction)
}

/// Where the arrays of a shard's segments lie, in memory that peers may read.
#[derive(Clone, Debug, Default)]
pub struct Publication {
    pub(crate) segments: FxHashMap<SegmentName, SegmentLayout>,
    pub(crate) memories: BTreeMap<u64, MemoryKey>,
}

impl Publication {
    /// The memory that a segment lies in.
    pub(super) fn memory(&self, region: RegionId) -> Option<&MemoryKey> {
        self.memories.get(&region.0)
    }
}

/// A shard at one snapshot that peers may read, until this is dropped.
pub struct Offered {
    publication: Publication,
    /// By region.
    registrations: BTreeMap<u64, Arc<Registration>>,
}

impl Offered {
    /// Offers all segments of a shard. Costs what [`Snapshot::published`] does for each that changed
    /// since it was merged, and a registration for each region.
    ///
    /// # Errors
    /// Those of [`Fabric::register`].
    pub fn of(shard: &Snapshot, fabric: &dyn Fabric) -> Result<Self, FabricError> {
        Self::beside(shard, fabric, None)
    }

    /// As [`Offered::of`]; regions that `before` has registered with the fabric stay registered as they are, for as
    /// long as one of both is there.
    ///
    /// # Errors
    /// Those of [`Fabric::register`].
    pub fn beside(
        shard: &Snapshot,
        fabric: &dyn Fabric,
        before: Option<&Self>,
    ) -> Result<Self, FabricError> {
        let mut publication = Publication::default();
        let mut registrations = BTreeMap::new();
        let predicates = (0..shard.predicate_count()).map(|number| PredicateId(number as u32));
        for predicate in predicates.filter(|predicate| *predicate != PredicateId::TYPE) {
            for direction in [Direction::Out, Direction::In] {
                for kind in LayerKind::ALL {
                    let Some(published) = shard.published(kind, predicate, direction) else {
                        continue;
                    };
                    let layout = published.layout().clone();
                    if let Entry::Vacant(entry) = registrations.entry(layout.region.0) {
                        let known = before.and_then(|it| it.registrations.get(&layout.region.0));
                        let registration = match known {
                            Some(known) => Arc::clone(known),
                            None => Arc::new(fabric.register(&published.region())?),
                        };
                        let key = registration.key().clone();
                        publication.memories.insert(layout.region.0, key);
                        entry.insert(registration);
                    }
                    let name = segment_name(kind, predicate, direction);
                    publication.segments.insert(name, layout);
                }
            }
        }
        Ok(Self {
            publication,
            registrations,
        })
    }

    /// How many regions are registered.
    #[must_use]
    pub fn regions(&self) -> usize {
        self.registrations.len()
    }

    /// Of these parts, for tests.
    #[cfg(test)]
    pub(crate) fn of_parts(publication: Publication, registrations: Vec<Registration>) -> Self {
        let registrations = (0..).zip(registrations.into_iter().map(Arc::new));
        Self {
            publication,
            registrations: registrations.collect(),
        }
    }

    /// What peers need.
    #[must_use]
    pub fn publication(&self) -> &Publication {
        &self.publication
    }
}
