//! How much was read from other nodes, and what was asked of them?

use std::sync::atomic::{AtomicU64, Ordering};

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

impl ReadCounts {
    pub(super) fn count_read(&self, bytes: usize) {
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
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
