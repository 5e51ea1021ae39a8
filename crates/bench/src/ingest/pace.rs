//! How far may one thread be ahead of the others?

use parking_lot::{Condvar, Mutex};

/// Batches that a thread may be ahead of the slowest one: streams that a query joins are then about as far,
/// and each has its part of all tuples.
const LEAD: usize = 10;

/// The batches that each thread has pushed.
pub(super) struct Pace {
    done: Mutex<Vec<usize>>,
    changed: Condvar,
}

impl Pace {
    pub(super) fn new(threads: usize) -> Self {
        Self {
            done: Mutex::new(vec![0; threads]),
            changed: Condvar::new(),
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
    /// Waits until a batch is not too far ahead.
    pub(super) fn wait(&self, batch: usize) {
        let mut done = self.pace.done.lock();
        let is_ahead = |done: &mut Vec<usize>| done.iter().any(|other| other + LEAD < batch);
        self.pace.changed.wait_while(&mut done, is_ahead);
    }

    /// So many batches were pushed.
    pub(super) fn passed(&self, batches: usize) {
        self.pace.done.lock()[self.number] = batches;
        self.pace.changed.notify_all();
    }
}

impl Drop for Runner<'_> {
    fn drop(&mut self) {
        self.passed(usize::MAX - LEAD);
    }
}
