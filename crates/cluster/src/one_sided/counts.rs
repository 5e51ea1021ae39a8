//! How much was read from other nodes, and what was asked of them?

use std::sync::atomic::{AtomicU64, Ordering};

/// What a node has read of others, and asked them, since it began.
#[derive(Debug, Default)]
pub struct ReadCounts {
    reads: AtomicU64,
    bytes: AtomicU64,
    batches: AtomicU64,
    calls: AtomicU64,
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
    /// Calls that were asked of a node, as nothing that it publishes answers them.
    pub calls: u64,
}

impl ReadCounts {
    pub(super) fn count_read(&self, bytes: usize) {
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(super) fn count_batch(&self) {
        self.batches.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn count_call(&self) {
        self.calls.fetch_add(1, Ordering::Relaxed);
    }

    /// The numbers now.
    #[must_use]
    pub fn sum(&self) -> RemoteReads {
        RemoteReads {
            reads: self.reads.load(Ordering::Relaxed),
            bytes: self.bytes.load(Ordering::Relaxed),
            batches: self.batches.load(Ordering::Relaxed),
            calls: self.calls.load(Ordering::Relaxed),
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
        }
    }
}
