//! In how few regions do the edges of a base lie, and in which files?
//!
//! Memory is registered by the region, so the arrays of a base are not allocations of their own. The
//! edges of a predicate that has many are one region, or one file, and those of others share some; a
//! region holds the bytes that the file would hold.

use jindou_fabric::{Region, RegionBuilder, RegionId};
use jindou_model::PredicateId;
use rustc_hash::FxHashMap;

use crate::StoreError;
use crate::base::Base;
use crate::image::{Allocate, ImageReader, ImageWriter};
use crate::layer::LayerKind;
use crate::predicate_edges::PredicateEdges;

/// The edges of a predicate lie apart from so many bytes on,
const OWN_BYTES: usize = 64 << 10;
/// and if they are one in so many of the base's.
const OWN_SHARE: usize = 64;
/// A region is given up once less than one in so many of its bytes is of the base.
const LIVING_SHARE: usize = 2;

/// What a base has in a region that others made.
#[derive(Default)]
struct Left {
    /// Bytes of the region, and those that the base uses.
    whole: usize,
    used: usize,
    predicates: Vec<usize>,
}

impl Left {
    fn is_little(&self) -> bool {
        self.used * LIVING_SHARE < self.whole || self.whole < OWN_BYTES
    }
}

/// Which predicates lie together, of those that are new; `bytes` are those of each predicate's edges.
pub(crate) fn groups(bytes: &[usize], is_new: impl Fn(usize) -> bool) -> Vec<Vec<usize>> {
    let total: usize = bytes.iter().sum();
    let own = OWN_BYTES.max(total / OWN_SHARE);
    let mut groups: Vec<Vec<usize>> = Vec::new();
    let mut shared = (0, usize::MAX);
    let new = bytes.iter().enumerate();
    for (predicate, bytes) in new.filter(|(predicate, bytes)| **bytes > 0 && is_new(*predicate)) {
        if *bytes < own && shared.1 < own {
            shared.1 += bytes;
            groups[shared.0].push(predicate);
            continue;
        }
        if *bytes < own {
            shared = (groups.len(), *bytes);
        }
        groups.push(vec![predicate]);
    }
    groups
}

/// Writes the edges of predicates that lie together.
pub(crate) fn write_group(
    edges: impl ExactSizeIterator<Item = (PredicateId, PredicateEdges)>,
) -> ImageWriter {
    let mut image = ImageWriter::default();
    image.word(edges.len() as u64);
    for (predicate, edges) in edges {
        image.word(predicate.0.into());
        edges.write(&mut image);
    }
    image
}

impl Base {
    /// All predicates.
    pub(crate) fn predicates(&self) -> impl Iterator<Item = PredicateId> + use<> {
        (0..self.predicate_count()).map(|number| PredicateId(number as u32))
    }

    /// Bytes of each predicate's edges.
    pub(crate) fn bytes_of_edges(&self) -> Vec<usize> {
        self.predicates().map(|id| self.edge_bytes(id)).collect()
    }

    /// Lays the edges of predicates that were just made into few regions, and with them those of
    /// small regions and what is left of regions that mostly held what is gone.
    ///
    /// Costs a copy, and no second memory but for the largest array.
    pub(crate) fn pack(&mut self, made: &[PredicateId]) -> Result<(), StoreError> {
        self.pack_in(made, &|bytes| Ok(RegionBuilder::new(bytes)))
    }

    /// As [`Base::pack`], in memory that `allocate` gives.
    pub(crate) fn pack_in(
        &mut self,
        made: &[PredicateId],
        allocate: &Allocate<'_>,
    ) -> Result<(), StoreError> {
        let bytes = self.bytes_of_edges();
        let mut is_new = vec![false; bytes.len()];
        made.iter().for_each(|id| is_new[id.index()] = true);
        self.note_left(&bytes, &mut is_new);
        for group in groups(&bytes, |predicate| is_new[predicate]) {
            let group: Vec<PredicateId> = group.iter().map(|n| PredicateId(*n as u32)).collect();
            let taken = group.iter().map(|id| (*id, self.take_edges(*id)));
            let mut image = write_group(taken).in_memory_of(allocate)?;
            self.put_group(&mut image)?;
        }
        Ok(())
    }

    fn put_group(&mut self, image: &mut ImageReader) -> Result<(), StoreError> {
        for _ in 0..image.length()? {
            let predicate = PredicateId(image.length()? as u32);
            let types = self.named_types(predicate);
            let edges = PredicateEdges::read(image, Some(types), &self.named.graphs)?;
            self.put_edges(predicate, edges);
        }
        Ok(())
    }

    /// Edges of a predicate that are in the clusters of named graphs.
    fn named_types(&self, predicate: PredicateId) -> u64 {
        match predicate {
            PredicateId::TYPE => self.layer(LayerKind::Named).clusters().type_edges(),
            _ => 0,
        }
    }

    /// Marks as new what is left in regions of which little is left, and what is in small ones: else
    /// there would be one for each merge in the end.
    fn note_left(&self, bytes: &[usize], is_new: &mut [bool]) {
        let mut left: FxHashMap<RegionId, Left> = FxHashMap::default();
        for (predicate, bytes) in bytes.iter().enumerate() {
            let id = PredicateId(predicate as u32);
            if is_new[predicate] || self.edges_file(id).is_some() {
                continue;
            }
            let region: Region = self.edges_of(id).region().memory();
            let of_region = left.entry(region.id()).or_default();
            of_region.whole = region.len();
            of_region.used += bytes;
            of_region.predicates.push(predicate);
        }
        for little in left.values().filter(|left| left.is_little()) {
            little.predicates.iter().for_each(|id| is_new[*id] = true);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use jindou_model::{Direction, IdQuad, SnapshotNumber, TermId};
    use oxrdf::{GraphName, NamedNode, Quad};

    use super::*;
    use crate::bulk::{BulkSink, build};
    use crate::directory::{Current, Directory};
    use crate::identity::Identity;
    use crate::{Changes, Merged, Rebase, SegmentLayout, Snapshot};

    const PREDICATES: usize = 30;

    fn node(name: &str, number: usize) -> NamedNode {
        NamedNode::new(format!("http://e/{name}{number}")).unwrap()
    }

    /// A base with two predicates of many edges, and others of few, in both layers.
    fn base() -> Base {
        let mut sink = BulkSink::new();
        for predicate in 0..PREDICATES {
            let edges = if predicate < 2 { 40_000 } else { 30 };
            for edge in 0..edges {
                let graph = match edge % 5 {
                    0 => node("g", edge % 3).into(),
                    _ => GraphName::DefaultGraph,
                };
                let subject = node("s", edge * 7 % 20_001);
                let object = node("o", edge * (predicate + 1) % 9_001);
                let quad = Quad::new(subject, node("p", predicate), object, graph);
                sink.quad(quad.as_ref()).unwrap();
            }
        }
        build(vec![sink], 0).unwrap()
    }

    /// The layouts of all segments, with their regions.
    fn layouts(base: &Base) -> Vec<(SegmentLayout, Region)> {
        let mut layouts = Vec::new();
        for kind in LayerKind::ALL {
            for predicate in base.predicates() {
                for direction in [Direction::Out, Direction::In] {
                    let layer = base.layer(kind);
                    if let Some(layout) = layer.layout(predicate, direction) {
                        let segment = layer.segment(predicate, direction).unwrap();
                        let region = segment.neighbour_column().region().memory();
                        layouts.push((layout, region));
                    }
                }
            }
        }
        layouts
    }

    /// All regions that edges lie in.
    fn regions(base: &Base) -> BTreeMap<RegionId, Region> {
        let layouts = layouts(base).into_iter();
        layouts
            .map(|(layout, region)| (layout.region, region))
            .collect()
    }

    #[test]
    fn many_edges_lie_apart_and_few_together() {
        let own = OWN_BYTES;
        let bytes = [1, own, own - 2, 0, 1, 1, 2 * own];
        let all = |_| true;
        assert_eq!(
            groups(&bytes, all),
            [vec![0, 2, 4], vec![1], vec![5], vec![6]]
        );
        let odd = |predicate: usize| predicate % 2 == 1;
        assert_eq!(groups(&bytes, odd), [vec![1], vec![5]]);
        assert!(groups(&[], all).is_empty());
    }

    #[test]
    fn a_base_in_memory_is_the_bytes_of_its_files() {
        let base = base();
        // Each of the two with many edges has one, and the others share one.
        assert_eq!(regions(&base).len(), 3);
        let folder = tempfile::tempdir().unwrap();
        let directory = Directory::create(&folder.path().join("store")).unwrap();
        directory.write_base(&base, 1, Identity::default()).unwrap();
        let current = Current {
            generation: 1,
            ..Current::default()
        };
        let mapped = directory.read_base(current).unwrap();
        let (in_memory, in_files) = (layouts(&base), layouts(&mapped));
        assert_eq!(in_memory.len(), in_files.len());
        for ((layout, region), (of_file, file)) in in_memory.iter().zip(&in_files) {
            let header = file.len() - region.len();
            assert!(file[header..] == region[..], "the bytes behind the header");
            assert_eq!(
                layout.neighbours.offset + header as u64,
                of_file.neighbours.offset
            );
            assert_eq!(layout.domain.len(), of_file.domain.len());
            assert_eq!(layout.offsets.is_some(), of_file.offsets.is_some());
        }
    }

    #[test]
    fn merges_in_memory_leave_no_region_of_which_little_is_used() {
        let mut snapshot = Snapshot::of_base(base(), 1, SnapshotNumber(1));
        for round in 2..PREDICATES as u64 {
            let quad = |predicate: u64| IdQuad {
                subject: TermId::vertex(round),
                predicate: PredicateId(predicate as u32),
                object: TermId::vertex(7 * round),
                graph: TermId::NONE,
            };
            // One of few edges, with one that was merged before and one of many.
            let predicates = [round, round - 1, 1 + round % 2];
            snapshot.apply(&Changes {
                add: predicates.map(quad).to_vec(),
                ..Changes::default()
            });
            let merged = predicates.map(|number| PredicateId(number as u32)).to_vec();
            snapshot.close_extents();
            let merged = Merged::new(snapshot.clone(), merged).unwrap();
            crate::verify::base(merged.base(), std::path::Path::new("memory")).unwrap();
            let regions = regions(merged.base());
            let held: usize = regions.values().map(|region| region.len()).sum();
            let used: usize = merged.base().bytes_of_edges().iter().sum();
            // Arrays begin at cache lines, and words say where: a few hundred bytes a predicate.
            let most = LIVING_SHARE * used + PREDICATES * 2048;
            assert!(held <= most, "{held} bytes for {used}");
            let ids: BTreeSet<RegionId> = regions.keys().copied().collect();
            assert!(ids.len() <= 5, "{} regions", ids.len());
            snapshot = Rebase::new(merged, &snapshot).apply(&snapshot);
        }
    }
}
