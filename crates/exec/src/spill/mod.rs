//! What may a query put on disk when its memory is used up, and where?
//!
//! Rows go to temporary files that have no name: whatever ends the process, nothing stays behind.
//! Terms that the query computed stay in memory, only their ids are written.

mod file;
mod partitions;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use jindou_plan::physical::{Node, Operator as Planned, PlannedStep, Step};

pub(crate) use file::{Chunk, Run, RunReader, SpillFile};
pub(crate) use partitions::{MOST_LEVELS, Partitions, push_values};

use crate::ExecError;
use crate::context::Context;

/// Where a query's operators put rows that do not fit into its memory, and how many bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpillLimits {
    /// The directory of the files; it must be there. In a file system that is held in memory
    /// they take memory.
    pub directory: Arc<Path>,
    /// Bytes that one query may have on disk at any time; 0: none, a query then ends where its
    /// memory does.
    pub bytes: u64,
}

impl SpillLimits {
    /// So many bytes for each query, in files without names in this directory.
    #[must_use]
    pub fn new(directory: &Path, bytes: u64) -> Self {
        Self {
            directory: directory.into(),
            bytes,
        }
    }

    /// Nothing goes to disk.
    #[must_use]
    pub fn off() -> Self {
        Self::new(Path::new(""), 0)
    }
}

/// The part of its memory that a query sets aside for operators that can spill, shared out among
/// them: what each of them goes on with, whatever the others hold.
const SET_ASIDE: u64 = 4;

/// What one query has on disk.
pub(crate) struct Space {
    limits: SpillLimits,
    used: AtomicU64,
    spilled: AtomicU64,
    /// Bytes of memory that each operator has for itself.
    own_bytes: usize,
}

impl Space {
    /// The space of a query that has so many operators that can spill.
    pub(crate) fn new(limits: SpillLimits, memory_bytes: u64, operators: u64) -> Self {
        let own_bytes = match limits.bytes {
            0 => 0,
            _ => memory_bytes / SET_ASIDE / operators.max(1),
        };
        Self {
            limits,
            used: AtomicU64::new(0),
            spilled: AtomicU64::new(0),
            own_bytes: usize::try_from(own_bytes).unwrap_or(usize::MAX),
        }
    }

    pub(crate) fn is_allowed(&self) -> bool {
        self.limits.bytes > 0
    }

    pub(crate) fn own_bytes(&self) -> usize {
        self.own_bytes
    }

    /// Bytes written so far, those of files that are gone included.
    pub(crate) fn spilled_bytes(&self) -> u64 {
        self.spilled.load(Ordering::Relaxed)
    }

    /// Takes away what was written so far.
    pub(crate) fn take_spilled(&self) -> u64 {
        self.spilled.swap(0, Ordering::Relaxed)
    }

    /// Counts bytes that were written elsewhere.
    pub(crate) fn note_spilled(&self, bytes: u64) {
        self.spilled.fetch_add(bytes, Ordering::Relaxed);
    }

    fn directory_error(&self, source: std::io::Error) -> ExecError {
        ExecError::Spill {
            directory: self.limits.directory.to_path_buf(),
            source,
        }
    }

    /// Books bytes before they are written.
    fn take(&self, bytes: u64) -> Result<(), ExecError> {
        let used = self.used.fetch_add(bytes, Ordering::Relaxed) + bytes;
        if used > self.limits.bytes {
            self.give_back(bytes);
            return Err(ExecError::SpillExceeded {
                limit_bytes: self.limits.bytes,
            });
        }
        self.spilled.fetch_add(bytes, Ordering::Relaxed);
        Ok(())
    }

    fn give_back(&self, bytes: u64) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }

    #[cfg(test)]
    pub(crate) fn used_bytes(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }
}

/// Rows of one batch in a file: few enough that the buffers of all parts fit into the memory that
/// an operator has for itself.
pub(crate) fn batch_rows(cx: &Context, width: usize) -> usize {
    /// Batches in memory at once when rows are put into parts; as many again for what reads them.
    const BATCHES: usize = 2 * partitions::PARTS;
    const ROWS: std::ops::RangeInclusive<usize> = 64..=8192;
    let row_bytes = size_of::<u64>() * width.max(1);
    (cx.space().own_bytes() / BATCHES / row_bytes).clamp(*ROWS.start(), *ROWS.end())
}

/// How many operators at work at the same time can spill, in a plan on so many threads.
pub(crate) fn count_operators(root: &Node, threads: u64) -> u64 {
    count(root, threads, 1)
}

/// `copies` of the node may run at the same time.
fn count(node: &Node, threads: u64, copies: u64) -> u64 {
    let below = |node: &Node| count(node, threads, copies);
    match &node.operator {
        Planned::Explore { input, steps } => {
            input.as_deref().map_or(0, below) + count_in_steps(steps, threads)
        }
        Planned::Join { build, probe, .. } => copies + below(build) + below(probe),
        Planned::LeftJoin {
            left, right, marks, ..
        } => copies + below(left) + below(right) + count_in_steps(marks, threads),
        Planned::Minus { left, right, .. } => copies + below(left) + below(right),
        Planned::Service { input, marks, .. } => {
            copies + input.as_deref().map_or(0, below) + count_in_steps(marks, threads)
        }
        Planned::Union(inputs) => inputs.iter().map(below).sum(),
        Planned::Materialized { .. } => 0,
        Planned::EndCounts(planned) => below(&planned.general),
        // Rows that are found again must be put in order again, where they had one.
        Planned::Distinct { input } => 2 * copies + below(input),
        Planned::Group {
            input, aggregates, ..
        } => {
            // Distinct values are told apart after the groups, with a part of their own.
            let distinct = aggregates.iter().filter(|(_, a)| a.distinct).count() as u64;
            copies * (1 + distinct) + below(input)
        }
        Planned::OrderBy { input, .. } => copies + below(input),
        Planned::EachGraph { input, .. }
        | Planned::Project { input, .. }
        | Planned::Reduced { input }
        | Planned::Slice { input, .. } => below(input),
    }
}

fn count_in_steps(steps: &[PlannedStep], threads: u64) -> u64 {
    let in_step = |planned: &PlannedStep| match &planned.step {
        Step::Optional { steps, .. } | Step::Exists { steps, .. } => count_in_steps(steps, threads),
        // Each thread evaluates it on its own.
        Step::ExistsGiven {
            node, all_bound, ..
        } => {
            let nested = |node: &Node| count(node, threads, threads);
            nested(node) + all_bound.as_deref().map_or(0, nested)
        }
        Step::Union(branches) => branches
            .iter()
            .map(|branch| count_in_steps(branch, threads))
            .sum(),
        _ => 0,
    };
    steps.iter().map(in_step).sum()
}
