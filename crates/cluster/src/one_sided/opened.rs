//! The segments of a shard of another node, ready to be read.

use std::collections::BTreeMap;
use std::sync::Arc;

use jindou_fabric::FabricError;
use jindou_fabric::remote::{Fabric, MemoryKey};
use rustc_hash::FxHashMap;

use super::publication::{Publication, SegmentName};
use super::segment::RemoteSegment;

/// A shard of another node whose memory is open.
pub(crate) struct Opened {
    pub(super) segments: FxHashMap<SegmentName, Arc<RemoteSegment>>,
    /// The keys of the memory, by region.
    memories: BTreeMap<u64, MemoryKey>,
}

impl Opened {
    /// Opens what a node has published. What the shard `before` has of the same memory is taken from that, with what was
    /// copied of it.
    ///
    /// # Errors
    /// Those of [`Fabric::open`].
    pub(crate) fn new(
        publication: &Publication,
        fabric: &dyn Fabric,
        before: Option<&Self>,
    ) -> Result<Self, FabricError> {
        let mut segments = FxHashMap::default();
        let mut opened = FxHashMap::default();
        for (name, layout) in &publication.segments {
            let key = publication.memory(layout.region);
            let key = key.ok_or(FabricError::Malformed("publication"))?;
            let known = before.and_then(|before| {
                let is_same = before.memories.get(&layout.region.0) == Some(key);
                let segment = before.segments.get(name).filter(|_| is_same)?;
                let is_alive = segment.layout() == layout && !segment.is_taken_back();
                is_alive.then(|| Arc::clone(segment))
            });
            let segment = match (known, opened.get(&layout.region)) {
                (Some(known), _) => known,
                (None, Some(memory)) => RemoteSegment::shared(layout, memory)?,
                (None, None) => {
                    let memory = fabric.open(key)?;
                    let mapped = fabric.map(&memory)?;
                    let memory = opened.entry(layout.region).or_insert((memory, mapped));
                    RemoteSegment::shared(layout, memory)?
                }
            };
            segments.insert(*name, segment);
        }
        Ok(Self {
            segments,
            memories: publication.memories.clone(),
        })
    }
}
