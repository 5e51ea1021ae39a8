//! The threads that heavy queries share.
//!
//! A light query never comes here: it runs to its end on the thread that got it. A heavy one lends
//! its work to idle workers; what nobody takes, it does itself.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread;

use crossbeam::channel::{Receiver, Sender, TryRecvError, unbounded};

type Job = Box<dyn FnOnce() + Send>;

/// How often an idle worker looks for a job before it sleeps, some tens of microseconds: queries
/// of a millisecond that follow each other would else wait for its waking.
const LOOKS: u32 = 10_000;

/// Stack of each thread: plans are run by recursion over their steps, of which there may be
/// thousands. Only what is used of it takes memory.
const STACK_BYTES: usize = 64 << 20;

/// A fixed set of threads that run jobs in the order in which they were given.
pub struct Workers {
    sender: Option<Sender<Job>>,
    threads: Vec<thread::JoinHandle<()>>,
}

impl Workers {
    /// So many threads; none is allowed, then every query stays on its own thread.
    ///
    /// # Panics
    /// If the operating system refuses a thread.
    #[must_use]
    pub fn new(count: usize) -> Self {
        Self::with_start(count, Arc::new(|| ()))
    }

    /// [`Workers::new`], each thread of which calls `start` before anything else.
    ///
    /// # Panics
    /// As there.
    #[must_use]
    pub fn with_start(count: usize, start: Arc<dyn Fn() + Send + Sync>) -> Self {
        Self::looking(LOOKS, count, start)
    }

    /// [`Workers::with_start`], whose idle threads sleep at once: for those of several nodes, which are
    /// more than the cores and would look for jobs on each other's.
    ///
    /// # Panics
    /// As there.
    #[must_use]
    pub fn sleeping(count: usize, start: Arc<dyn Fn() + Send + Sync>) -> Self {
        Self::looking(0, count, start)
    }

    fn looking(looks: u32, count: usize, start: Arc<dyn Fn() + Send + Sync>) -> Self {
        // Each query gives a job to each thread at most, and queries are bounded by the caller, as are
        // sub-queries of other nodes: by the bytes of those that wait.
        let (sender, receiver) = unbounded::<Job>();
        let threads = (0..count)
            .map(|number| {
                let receiver = receiver.clone();
                let start = Arc::clone(&start);
                thread::Builder::new()
                    .name(format!("jindou-worker-{number}"))
                    .stack_size(STACK_BYTES)
                    .spawn(move || {
                        start();
                        while let Some(job) = next_job(&receiver, looks) {
                            run(job);
                        }
                    })
                    .expect("the operating system starts a thread")
            })
            .collect();
        Self {
            sender: Some(sender),
            threads,
        }
    }

    /// Number of threads.
    #[must_use]
    pub fn count(&self) -> usize {
        self.threads.len()
    }

    /// Gives a job to the first worker that is idle; jobs wait in the order in which they are
    /// given. Callers bound how many.
    ///
    /// # Panics
    /// Never: the threads run until this is dropped.
    pub fn spawn(&self, job: impl FnOnce() + Send + 'static) {
        if let Some(sender) = &self.sender {
            sender
                .send(Box::new(job))
                .expect("workers run until this is dropped");
        }
    }
}

/// A panic ends its query, not the thread: the panic's own message is printed where it happens.
fn run(job: Job) {
    // Whoever waits for the job sees that its end of the channel is gone.
    let _ = catch_unwind(AssertUnwindSafe(job));
}

/// The next job; `None` once there will be none.
fn next_job(receiver: &Receiver<Job>, looks: u32) -> Option<Job> {
    for _ in 0..looks {
        match receiver.try_recv() {
            Ok(job) => return Some(job),
            Err(TryRecvError::Disconnected) => return None,
            Err(TryRecvError::Empty) => std::hint::spin_loop(),
        }
    }
    receiver.recv().ok()
}

impl Drop for Workers {
    fn drop(&mut self) {
        drop(self.sender.take());
        for thread in self.threads.drain(..) {
            // A job may have been the last to have this: its thread ends without being waited for.
            if thread.thread().id() != thread::current().id() {
                // A worker that panicked has told so already; the others still end.
                let _ = thread.join();
            }
        }
    }
}
