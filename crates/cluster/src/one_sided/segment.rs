//! The lists of one remote segment: where they lie, and what they hold.

use std::ops::Range;
use std::sync::OnceLock;
use std::time::Duration;

use jindou_fabric::FabricError;
use jindou_fabric::remote::{Batch, Completed, Fabric, Interrupt, OperationId, RemoteMemory};
use jindou_model::TermId;
use jindou_store::{KeysLayout, SegmentLayout};

use super::counts::ReadCounts;

/// How long remote memory is waited for before whoever asked looks at its own limits.
const PATIENCE: Duration = Duration::from_millis(500);
/// Bytes that one read fetches of a domain.
const DOMAIN_PIECE_BYTES: u64 = 1 << 20;

/// Reads that fly together, and are counted.
pub(super) struct Reads<'a> {
    fabric: &'a dyn Fabric,
    counts: &'a ReadCounts,
    batch: Batch,
}

impl<'a> Reads<'a> {
    pub(super) fn new(fabric: &'a dyn Fabric, counts: &'a ReadCounts) -> Self {
        Self {
            fabric,
            counts,
            batch: Batch::new(),
        }
    }

    pub(super) fn add(
        &mut self,
        memory: &RemoteMemory,
        bytes: Range<u64>,
    ) -> Result<OperationId, FabricError> {
        let length = (bytes.end - bytes.start) as usize;
        self.counts.count_read(length);
        self.batch.read(memory, bytes.start, length)
    }

    /// Waits for all of them.
    pub(super) fn complete(self) -> Result<Completed, FabricError> {
        if !self.batch.is_empty() {
            self.counts.count_batch();
        }
        let until = self.fabric.now() + PATIENCE;
        self.fabric.complete(self.batch, &Interrupt::at(until))
    }
}

/// Where an array begins in the memory, and its bytes.
type CopiedArray = (u64, Box<[u8]>);

/// A segment of another node.
pub(super) struct RemoteSegment {
    layout: SegmentLayout,
    memory: RemoteMemory,
    /// The bitmaps and sorted keys of its domain, copied when first needed.
    domain: OnceLock<Box<[CopiedArray]>>,
}

impl RemoteSegment {
    pub(super) fn new(layout: SegmentLayout, memory: RemoteMemory) -> Self {
        Self {
            layout,
            memory,
            domain: OnceLock::new(),
        }
    }

    /// Some of its neighbours may stand for none.
    pub(super) fn has_holes(&self) -> bool {
        self.layout.hole.is_some()
    }

    /// The row of a key, computed from the domain, which is copied first where that was not done yet;
    /// none for a key without one.
    pub(super) fn row(
        &self,
        key: TermId,
        fabric: &dyn Fabric,
        counts: &ReadCounts,
    ) -> Result<Option<u64>, FabricError> {
        let domain = self.domain(fabric, counts)?;
        self.layout
            .row(key, &mut |bytes, out| copied(domain, bytes, out))
    }

    /// Adds the read of the bounds of a row's list to others; none where each row has one neighbour.
    pub(super) fn read_bounds(
        &self,
        row: u64,
        reads: &mut Reads<'_>,
    ) -> Result<Option<OperationId>, FabricError> {
        let bytes = self.layout.bounds_bytes(row);
        bytes
            .map(|bytes| reads.add(&self.memory, bytes))
            .transpose()
    }

    /// The neighbours of a row, by their numbers, that a read found.
    pub(super) fn bounds(&self, bytes: &[u8]) -> Result<Range<u64>, FabricError> {
        let found = self.layout.bounds(bytes);
        // What a peer says is not taken for granted.
        if found.start > found.end || found.end > self.layout.neighbours.len {
            return Err(FabricError::Malformed("bounds of a list"));
        }
        Ok(found)
    }

    /// Adds the read of some neighbours to others.
    pub(super) fn read_list(
        &self,
        neighbours: Range<u64>,
        reads: &mut Reads<'_>,
    ) -> Result<OperationId, FabricError> {
        reads.add(&self.memory, self.layout.list_bytes(neighbours))
    }

    /// Appends the neighbours that a read found.
    pub(super) fn push_list(&self, bytes: &[u8], out: &mut Vec<TermId>) {
        self.layout.push_list(bytes, out);
    }

    fn domain(
        &self,
        fabric: &dyn Fabric,
        counts: &ReadCounts,
    ) -> Result<&[CopiedArray], FabricError> {
        if let Some(domain) = self.domain.get() {
            return Ok(domain);
        }
        let mut arrays = Vec::new();
        for part in &self.layout.domain {
            let array = match &part.keys {
                KeysLayout::Dense => continue,
                KeysLayout::Bitmap(array) | KeysLayout::Sorted(array) => array,
            };
            let range = array.bytes_of(0..array.len);
            let mut bytes = Vec::with_capacity((range.end - range.start) as usize);
            let mut from = range.start;
            while from < range.end {
                let to = range.end.min(from + DOMAIN_PIECE_BYTES);
                let mut reads = Reads::new(fabric, counts);
                let read = reads.add(&self.memory, from..to)?;
                bytes.extend_from_slice(reads.complete()?.bytes(read));
                from = to;
            }
            arrays.push((range.start, bytes.into()));
        }
        Ok(self.domain.get_or_init(|| arrays.into()))
    }
}

/// Appends bytes of the arrays that were copied.
fn copied(arrays: &[CopiedArray], bytes: Range<u64>, out: &mut Vec<u8>) -> Result<(), FabricError> {
    for (start, array) in arrays {
        if let Some(from) = bytes.start.checked_sub(*start)
            && let Some(found) = array.get(from as usize..(bytes.end - start) as usize)
        {
            out.extend_from_slice(found);
            return Ok(());
        }
    }
    Err(FabricError::Malformed("place in a domain"))
}
