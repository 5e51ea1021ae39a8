//! The threads that heavy queries share.
//!
//! A light query never comes here: it runs to its end on the thread that got it. A heavy one lends
//! its work to idle workers; what nobody takes, it does itself.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

type Job = Box<dyn FnOnce() + Send>;

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
        let (sender, receiver) = channel::<Job>();
        let receiver = Arc::new(Mutex::new(receiver));
        let threads = (0..count)
            .map(|number| {
                let receiver = Arc::clone(&receiver);
                thread::Builder::new()
                    .name(format!("jindou-worker-{number}"))
                    .spawn(move || work(&receiver))
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

    /// Gives a job to the first worker that is idle.
    pub(crate) fn spawn(&self, job: Job) {
        if let Some(sender) = &self.sender {
            sender.send(job).expect("workers run until this is dropped");
        }
    }
}

fn work(receiver: &Mutex<Receiver<Job>>) {
    loop {
        let job = receiver
            .lock()
            .expect("a worker only receives under the lock")
            .recv();
        match job {
            Ok(job) => job(),
            Err(_) => return,
        }
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        drop(self.sender.take());
        for thread in self.threads.drain(..) {
            // A worker that panicked has told so already; the others still end.
            let _ = thread.join();
        }
    }
}
