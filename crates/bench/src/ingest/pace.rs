//! How far may one thread be ahead of the others?

use parking_lot::{Condvar, Mutex};

/// Milliseconds of the streams that a thread may be ahead of the slowest one: streams that a query joins are
/// then about as far, and each has its part of all tuples.
const LEAD_MS: u64 = 1_000;

/// The pushes that each thread has made.
pub(super) struct Pace {
    done: Mutex<Vec<usize>>,
    changed: Condvar,
    /// Pushes that one may be ahead.
    lead: usize,
}

impl Pace {
    /// Of threads whose pushes have so much time of a stream each.
    pub(super) fn new(threads: usize, push_ms: u64) -> Self {
        Self {
            done: Mutex::new(vec![0; threads]),
            changed: Condvar::new(),
            lead: (LEAD_MS / push_ms).max(1) as usize,
        }
    }

    /// One thread's place among them.
    pub(super) fn runner(&self, number: usize) -> Runner<'_> {
        Runner { pace: self, number }
    }
}

/// A thread that pushes. Once it is dropped, nobody waits for it.
pub(super) struct Runner<'p> {
    pace: &'p Pace,
    number: usize,
}

impl Runner<'_> {
    /// Waits until a push is not too far ahead.
    pub(super) fn wait(&self, push: usize) {
        let mut done = self.pace.done.lock();
        let is_ahead =
            |done: &mut Vec<usize>| done.iter().any(|other| other + self.pace.lead < push);
        self.pace.changed.wait_while(&mut done, is_ahead);
    }

    /// So many pushes were made.
    pub(super) fn passed(&self, pushes: usize) {
        self.pace.done.lock()[self.number] = pushes;
        self.pace.changed.notify_all();
    }
}

impl Drop for Runner<'_> {
    fn drop(&mut self) {
        self.passed(usize::MAX - self.pace.lead);
    }
}
