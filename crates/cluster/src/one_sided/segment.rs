//! The lists of one remote segment: where they lie, and what they hold.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use jindou_fabric::remote::{Batch, Completed, Fabric, Interrupt, OperationId, RemoteMemory};
use jindou_fabric::{FabricError, Region};
use jindou_model::TermId;
use jindou_store::{KeysLayout, Segment, SegmentLayout};

use super::counts::ReadCounts;

/// How long remote memory is waited for before whoever asked looks at its own limits.
const PATIENCE: Duration = Duration::from_millis(500);
/// Bytes that one read fetches of a domain.
const DOMAIN_PIECE_BYTES: u64 = 1 << 20;

/// Reads that are done together, and counted: those that this thread can do by itself at once, the others
/// in one batch.
pub(super) struct Reads<'a> {
    fabric: &'a dyn Fabric,
    counts: &'a ReadCounts,
    /// What was read at once.
    bytes: Vec<u8>,
    batch: Option<Batch>,
    places: Vec<ReadPlace>,
}

/// Names a read.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReadId(usize);

/// Where the bytes of a read are.
enum ReadPlace {
    Here(Range<usize>),
    InBatch(OperationId),
}

/// Reads that are done.
pub(super) struct Done {
    bytes: Vec<u8>,
    completed: Option<Completed>,
    places: Vec<ReadPlace>,
}

impl<'a> Reads<'a> {
    pub(super) fn new(fabric: &'a dyn Fabric, counts: &'a ReadCounts) -> Self {
        Self {
            fabric,
            counts,
            bytes: Vec::new(),
            batch: None,
            places: Vec::new(),
        }
    }

    pub(super) fn add(
        &mut self,
        memory: &RemoteMemory,
        bytes: Range<u64>,
    ) -> Result<ReadId, FabricError> {
        let length = (bytes.end - bytes.start) as usize;
        self.counts.count_read(length);
        let here = self.bytes.len();
        self.bytes.resize(here + length, 0);
        let into = &mut self.bytes[here..];
        let place = match self.fabric.try_read(memory, bytes.start, into)? {
            true => ReadPlace::Here(here..here + length),
            false => {
                self.bytes.truncate(here);
                let batch = self.batch.get_or_insert_default();
                ReadPlace::InBatch(batch.read(memory, bytes.start, length)?)
            }
        };
        self.places.push(place);
        Ok(ReadId(self.places.len() - 1))
    }

    /// Waits for all of them.
    pub(super) fn complete(self) -> Result<Done, FabricError> {
        if !self.places.is_empty() {
            self.counts.count_batch();
        }
        let fly = |batch| {
            let until = self.fabric.now() + PATIENCE;
            self.fabric.complete(batch, &Interrupt::at(until))
        };
        Ok(Done {
            bytes: self.bytes,
            completed: self.batch.map(fly).transpose()?,
            places: self.places,
        })
    }
}

impl Done {
    /// What a read found.
    pub(super) fn bytes(&self, read: ReadId) -> &[u8] {
        match (&self.places[read.0], &self.completed) {
            (ReadPlace::Here(range), _) => &self.bytes[range.clone()],
            (ReadPlace::InBatch(operation), Some(completed)) => completed.bytes(*operation),
            (ReadPlace::InBatch(_), None) => panic!("a batch was flown for it"),
        }
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
    /// Its node does not offer the memory any more.
    is_taken_back: AtomicBool,
    /// Where loads of this process reach it: no reads are needed then.
    near: Option<Segment>,
}

impl RemoteSegment {
    /// A segment in memory that is open, and that is this region if it is mapped.
    ///
    /// # Errors
    /// [`FabricError::Malformed`] if it does not lie there.
    pub(super) fn shared(
        layout: &SegmentLayout,
        (memory, mapped): &(RemoteMemory, Option<Region>),
    ) -> Result<Arc<Self>, FabricError> {
        let place = |region| {
            let near = Segment::placed(layout, region);
            near.ok_or(FabricError::Malformed("layout of a segment"))
        };
        Ok(Arc::new(Self {
            layout: layout.clone(),
            memory: memory.clone(),
            domain: OnceLock::new(),
            is_taken_back: AtomicBool::new(false),
            near: mapped.as_ref().map(place).transpose()?,
        }))
    }

    /// The segment, where it needs no reads.
    #[inline]
    pub(super) fn near(&self) -> Option<&Segment> {
        self.near.as_ref()
    }

    pub(super) fn layout(&self) -> &SegmentLayout {
        &self.layout
    }

    pub(super) fn is_taken_back(&self) -> bool {
        self.is_taken_back.load(Ordering::Relaxed)
    }

    /// Is not to be read any more.
    pub(super) fn take_back(&self) {
        self.is_taken_back.store(true, Ordering::Relaxed);
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
        let mut read = |from, into: &mut [u8]| copied(domain, from, into);
        match self.layout.row(key, &mut read)? {
            // What a peer says is not taken for granted.
            Some(row) if row >= self.layout.rows() => Err(FabricError::Malformed("row of a key")),
            row => Ok(row),
        }
    }

    /// Adds the read of the bounds of a row's list to others; none where each row has one neighbour.
    pub(super) fn read_bounds(
        &self,
        row: u64,
        reads: &mut Reads<'_>,
    ) -> Result<Option<ReadId>, FabricError> {
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
    ) -> Result<ReadId, FabricError> {
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

/// Fills a buffer with bytes of the arrays that were copied.
fn copied(arrays: &[CopiedArray], from: u64, into: &mut [u8]) -> Result<(), FabricError> {
    for (start, array) in arrays {
        if let Some(skipped) = from.checked_sub(*start)
            && let Some(rest) = array.get(skipped as usize..)
            && let Some(found) = rest.get(..into.len())
        {
            into.copy_from_slice(found);
            return Ok(());
        }
    }
    Err(FabricError::Malformed("place in a domain"))
}
