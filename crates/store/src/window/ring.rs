//! The runs of one stream: what is appended, merged and forgotten?

use std::sync::Arc;

use jindou_fabric::Region;

use super::WindowError;
use super::merge::merge;
use super::run::{MOST_ROWS, Run};

/// What a ring takes for a run beside the run itself: what counts its references, the place in the list of
/// runs and in the next one, and the head of its columns. A run of one tuple is hardly more than that.
const RUN_BYTES: usize = 4 * size_of::<usize>() + Region::HEAD_BYTES;

/// How a ring keeps its runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingOptions {
    /// The longest time from first to last tuple that a merge makes of several runs. Expired tuples
    /// stay as long as a run has others, so a part of the longest window is a good choice.
    pub longest_run_ms: u64,
}

/// The store of one stream: runs in the order of time, newest last.
///
/// Runs are merged by size as in a log-structured tree: with all merges done that are due, each run
/// has a smaller power of two of tuples than the one before it, unless the two together would be
/// longer than [`RingOptions::longest_run_ms`]. So n tuples are O(log n) runs, and each of them is
/// merged O(log n) times. Whoever owns the ring says when: [`Ring::merge_due`] and [`Ring::apply`]
/// take microseconds, and [`Merge::execute`] between them needs no ring.
///
/// What a tuple has for its time may be any number that grows with the tuples, as their own numbers do.
#[derive(Debug)]
pub struct Ring {
    options: RingOptions,
    runs: Arc<[Arc<Run>]>,
    /// Tuples before this are forgotten.
    kept_from_ms: i64,
    /// The last time of all that was ever appended.
    last_ms: Option<i64>,
    bytes: usize,
}

/// The runs of a ring at one moment. Clones share them, and they stay until the last is dropped,
/// whatever the ring does.
#[derive(Clone, Debug)]
pub struct RingSnapshot {
    runs: Arc<[Arc<Run>]>,
    kept_from_ms: i64,
}

impl RingSnapshot {
    /// The runs, oldest first.
    #[must_use]
    pub fn runs(&self) -> &[Arc<Run>] {
        &self.runs
    }

    /// Tuples before this time were forgotten, and no window sees them.
    #[must_use]
    pub fn kept_from_ms(&self) -> i64 {
        self.kept_from_ms
    }
}

/// Some adjacent runs of a ring that are to be one.
#[derive(Debug)]
pub struct Merge {
    runs: Vec<Arc<Run>>,
    kept_from_ms: i64,
}

impl Merge {
    /// The runs, oldest first.
    #[must_use]
    pub fn runs(&self) -> &[Arc<Run>] {
        &self.runs
    }

    /// Tuples to be merged.
    #[must_use]
    pub fn len(&self) -> usize {
        self.runs.iter().map(|run| run.len()).sum()
    }

    /// True of no tuples.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Merges them, and leaves out what is forgotten: some tens of nanoseconds a tuple, on any thread.
    #[must_use]
    pub fn execute(self) -> Merged {
        let run = merge(self.runs.iter().map(Arc::as_ref), self.kept_from_ms);
        Merged {
            of: self.runs,
            run: Arc::new(run),
        }
    }
}

/// What [`Ring::apply`] puts in the place of the runs that it was made of.
#[derive(Debug)]
pub struct Merged {
    of: Vec<Arc<Run>>,
    run: Arc<Run>,
}

impl Merged {
    /// The run that was made.
    #[must_use]
    pub fn run(&self) -> &Run {
        &self.run
    }
}

impl Ring {
    /// A ring without runs.
    #[must_use]
    pub fn new(options: RingOptions) -> Self {
        Self {
            options,
            runs: Arc::default(),
            kept_from_ms: i64::MIN,
            last_ms: None,
            bytes: 0,
        }
    }

    /// Appends a run; one without tuples, or that is forgotten already, leaves nothing.
    ///
    /// # Errors
    /// [`WindowError::OutOfOrder`] if it begins before the last time that was appended; the ring is
    /// as it was.
    pub fn append(&mut self, run: Run) -> Result<(), WindowError> {
        let Some((first_ms, last_ms)) = run.times_ms() else {
            return Ok(());
        };
        if let Some(last_ms) = self.last_ms.filter(|last| first_ms < *last) {
            return Err(WindowError::OutOfOrder { first_ms, last_ms });
        }
        self.last_ms = Some(last_ms);
        if last_ms >= self.kept_from_ms {
            let runs = self.runs.iter().cloned();
            self.set_runs(runs.chain([Arc::new(run)]).collect());
        }
        Ok(())
    }

    /// The next runs that are to be merged; `None` if all is in order.
    #[must_use]
    pub fn merge_due(&self) -> Option<Merge> {
        // What is left if runs were appended one by one, and each merged with those before it.
        let mut stack: Vec<Group> = Vec::new();
        for (index, run) in self.runs.iter().enumerate() {
            let mut last = Group::of(index, run);
            while let Some(before) = stack.pop_if(|before| self.joins(before, &last)) {
                last = Group {
                    begin: before.begin,
                    rows: before.rows + last.rows,
                    first_ms: before.first_ms,
                    ..last
                };
            }
            stack.push(last);
        }
        // The smallest lets readers have fewer runs soonest.
        let several = stack.iter().filter(|group| group.end - group.begin > 1);
        let group = several.min_by_key(|group| group.rows)?;
        Some(Merge {
            runs: self.runs[group.begin..group.end].to_vec(),
            kept_from_ms: self.kept_from_ms,
        })
    }

    /// True if two adjacent groups of runs are to be one.
    fn joins(&self, older: &Group, newer: &Group) -> bool {
        // Time never runs backwards in a ring, so this does not overflow.
        let span_ms = newer.last_ms.wrapping_sub(older.first_ms) as u64;
        older.rows.ilog2() <= newer.rows.ilog2()
            && older.rows + newer.rows <= MOST_ROWS
            && span_ms <= self.options.longest_run_ms
    }

    /// Puts a merged run in the place of those that it was made of. Of these, the oldest may have
    /// been forgotten since. False, and the ring is as it was, if it has not all the others.
    pub fn apply(&mut self, merged: Merged) -> bool {
        let Some(last) = merged.of.last() else {
            return false;
        };
        let Some(end) = self.runs.iter().position(|run| Arc::ptr_eq(run, last)) else {
            return false;
        };
        let pairs = self.runs[..=end].iter().rev().zip(merged.of.iter().rev());
        let same = pairs.take_while(|(run, of)| Arc::ptr_eq(run, of)).count();
        let begin = end + 1 - same;
        // The others went with all that was before them.
        if same < merged.of.len() && begin > 0 {
            return false;
        }
        let mut runs = self.runs.to_vec();
        let new = Some(merged.run).filter(|run| !run.is_empty());
        runs.splice(begin..=end, new);
        self.set_runs(runs);
        true
    }

    /// Forgets all tuples before a time, and drops the runs that have no others. Snapshots taken from
    /// now on do not see them; a time before that of an earlier call changes nothing. Returns how
    /// many runs went.
    pub fn forget_before(&mut self, time_ms: i64) -> usize {
        self.kept_from_ms = self.kept_from_ms.max(time_ms);
        let gone = self
            .runs
            .partition_point(|run| run.last_ms < self.kept_from_ms);
        if gone > 0 {
            self.set_runs(self.runs[gone..].to_vec());
        }
        gone
    }

    fn set_runs(&mut self, runs: Vec<Arc<Run>>) {
        let footprints = runs.iter().map(|run| run.footprint() + RUN_BYTES);
        self.bytes = footprints.sum();
        self.runs = runs.into();
    }

    /// What the ring has now: two counters.
    #[must_use]
    pub fn snapshot(&self) -> RingSnapshot {
        RingSnapshot {
            runs: Arc::clone(&self.runs),
            kept_from_ms: self.kept_from_ms,
        }
    }

    /// Bytes of its runs, with what each takes beside its columns; what only snapshots hold is not among them.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

/// Adjacent runs, by index.
struct Group {
    begin: usize,
    end: usize,
    rows: usize,
    first_ms: i64,
    last_ms: i64,
}

impl Group {
    fn of(index: usize, run: &Run) -> Self {
        Self {
            begin: index,
            end: index + 1,
            rows: run.len(),
            first_ms: run.first_ms,
            last_ms: run.last_ms,
        }
    }
}
