//! How is the memory of a load divided?
//!
//! While files are read, half is for what the sinks hold, as what they hold doubles where it grows, and
//! is sorted before it is written. After that, what is not taken by a number or two for each vertex
//! is for sorting.

use crate::StoreError;

/// What a process takes that loads nothing.
const PROCESS_BYTES: u64 = 32 << 20;
/// What a thread takes to parse: its chunk of text, and what is read ahead of it.
const THREAD_BYTES: u64 = 8 << 20;
/// The least that a sink may hold before it is written.
const LEAST_SINK_BYTES: u64 = 4 << 20;
/// What sinks may hold together, a share of all, for their data to be built into a base in memory.
const IN_MEMORY_SHARE: u64 = 3;
/// The least that is sorted at once.
const LEAST_SORTED_BYTES: u64 = 1 << 20;
/// The most that small predicates hold together before they are put into a file: each file is mapped.
const MOST_GROUP_BYTES: u64 = 16 << 20;
/// Bytes that are read ahead of each of several files that are merged, at most and at least.
const MOST_AHEAD: u64 = 256 << 10;
const LEAST_AHEAD: u64 = 4 << 10;

/// How many bytes a load may hold, and how many threads read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Without what the process and its threads take.
    bytes: u64,
    threads: u64,
    /// The most that is sorted at once.
    most_sorted_bytes: u64,
}

impl Limits {
    /// # Errors
    /// [`StoreError::LoadMemory`] if a thread could not even fill one sink.
    pub(super) fn new(bytes: u64, threads: usize) -> Result<Self, StoreError> {
        let threads = threads as u64;
        let taken = PROCESS_BYTES + threads * THREAD_BYTES;
        let least = taken + 2 * threads * LEAST_SINK_BYTES;
        if bytes < least {
            return Err(StoreError::LoadMemory {
                what: format!("the first terms that {threads} threads read (--threads)"),
                needed_bytes: least,
                limit_bytes: bytes,
            });
        }
        Ok(Self {
            bytes: bytes - taken,
            threads,
            most_sorted_bytes: u64::MAX,
        })
    }

    /// Those of a load that holds what it must, and sorts so many bytes at once.
    #[cfg(test)]
    pub(super) fn tiny(most_sorted_bytes: u64) -> Self {
        Self {
            bytes: 64 << 20,
            threads: 2,
            most_sorted_bytes,
        }
    }

    /// What one sink may hold.
    pub(super) fn sink_bytes(&self) -> u64 {
        self.bytes / 2 / self.threads
    }

    /// Whether what sinks hold together can be built into a base in memory.
    pub(super) fn fit_in_memory(&self, bytes_of_sinks: u64) -> bool {
        bytes_of_sinks * IN_MEMORY_SHARE <= self.bytes
    }

    /// What is left beside so many bytes that are held.
    ///
    /// # Errors
    /// [`StoreError::LoadMemory`] if these are more than there may be; `what` says what holds them.
    pub(super) fn beside(&self, held: u64, what: &str) -> Result<u64, StoreError> {
        match self.bytes.checked_sub(held) {
            Some(left) => Ok(left.max(LEAST_SORTED_BYTES)),
            None => Err(StoreError::LoadMemory {
                what: what.to_owned(),
                needed_bytes: held,
                limit_bytes: self.bytes,
            }),
        }
    }

    /// What of so many bytes that are there is for what is sorted at once.
    pub(super) fn sorted(&self, bytes: u64) -> u64 {
        (bytes / 2).min(self.most_sorted_bytes)
    }

    /// # Errors
    /// [`StoreError::LoadMemory`] if the segments of one predicate need more than there is for them.
    pub(super) fn check_segment(needed: u64, bytes: u64) -> Result<(), StoreError> {
        match needed <= bytes.max(LEAST_SORTED_BYTES) {
            true => Ok(()),
            false => Err(StoreError::LoadMemory {
                what: "the edges of one predicate".to_owned(),
                needed_bytes: needed,
                limit_bytes: bytes,
            }),
        }
    }

    /// What small predicates may hold together before they are put into a file.
    pub(super) fn group_bytes(&self) -> u64 {
        (self.bytes / 16)
            .min(MOST_GROUP_BYTES)
            .min(self.most_sorted_bytes)
    }

    /// All of it.
    pub(super) fn all(&self) -> u64 {
        self.bytes
    }
}

/// Bytes that are read ahead of each of so many files that share `bytes`.
pub(super) fn share(bytes: u64, files: usize) -> usize {
    (bytes / (files as u64).max(1)).clamp(LEAST_AHEAD, MOST_AHEAD) as usize
}
