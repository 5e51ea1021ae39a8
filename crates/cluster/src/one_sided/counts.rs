//! How much was read from other nodes, and what was asked of them?

use std::sync::atomic::{AtomicU64, Ordering};

use jindou_store::Segment;

/// What a node has read of others, and asked them, since it began.
#[derive(Debug, Default)]
pub struct ReadCounts {
    reads: AtomicU64,
    bytes: AtomicU64,
    batches: AtomicU64,
    calls: AtomicU64,
    messages: AtomicU64,
    message_bytes: AtomicU64,
}

/// The numbers of [`ReadCounts`] at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RemoteReads {
    /// One-sided reads.
    pub reads: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Batches in which these flew: each waits for its answers once.
    pub batches: u64,
    /// Calls that a node was asked to answer, as nothing that it publishes does, and pieces of large ones.
    pub calls: u64,
    /// Messages that these took: requests, and answers that came.
    pub messages: u64,
    /// Their bytes.
    pub message_bytes: u64,
}

/// Reads of one call that were done by loads of this process.
#[derive(Default)]
pub(super) struct NearReads {
    pub(super) reads: u64,
    pub(super) bytes: u64,
    pub(super) has_bounds: bool,
    pub(super) has_lists: bool,
}

impl NearReads {
    /// The bounds of a list, and so many of its neighbours.
    #[inline]
    pub(super) fn count(&mut self, segment: &Segment, neighbours: usize) {
        let (bounds, each) = segment.read_bytes();
        self.bounds(bounds);
        if neighbours > 0 {
            self.reads += 1;
            self.bytes += (neighbours * each) as u64;
            self.has_lists = true;
        }
    }

    fn bounds(&mut self, bytes: usize) {
        if bytes > 0 {
            self.reads += 1;
            self.bytes += bytes as u64;
            self.has_bounds = true;
        }
    }
}

impl ReadCounts {
    pub(super) fn count_read(&self, bytes: usize) {
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Counts reads that were done by loads of this process, as if they had flown in as many batches.
    pub(super) fn count_near(&self, near: &NearReads) {
        if near.reads > 0 {
            self.reads.fetch_add(near.reads, Ordering::Relaxed);
            self.bytes.fetch_add(near.bytes, Ordering::Relaxed);
            let batches = u64::from(near.has_bounds) + u64::from(near.has_lists);
            self.batches.fetch_add(batches, Ordering::Relaxed);
        }
    }

    pub(super) fn count_batch(&self) {
        self.batches.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn count_call(&self) {
        self.calls.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn count_message(&self, bytes: usize) {
        self.messages.fetch_add(1, Ordering::Relaxed);
        self.message_bytes
            .fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// The numbers now.
    #[must_use]
    pub fn sum(&self) -> RemoteReads {
        RemoteReads {
            reads: self.reads.load(Ordering::Relaxed),
            bytes: self.bytes.load(Ordering::Relaxed),
            batches: self.batches.load(Ordering::Relaxed),
            calls: self.calls.load(Ordering::Relaxed),
            messages: self.messages.load(Ordering::Relaxed),
            message_bytes: self.message_bytes.load(Ordering::Relaxed),
        }
    }
}

impl RemoteReads {
    /// Both together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            reads: self.reads + other.reads,
            bytes: self.bytes + other.bytes,
            batches: self.batches + other.batches,
            calls: self.calls + other.calls,
            messages: self.messages + other.messages,
            message_bytes: self.message_bytes + other.message_bytes,
        }
    }

    /// What came since an earlier moment.
    #[must_use]
    pub fn since(self, before: Self) -> Self {
        Self {
            reads: self.reads - before.reads,
            bytes: self.bytes - before.bytes,
            batches: self.batches - before.batches,
            calls: self.calls - before.calls,
            messages: self.messages - before.messages,
            message_bytes: self.message_bytes - before.message_bytes,
        }
    }
}
