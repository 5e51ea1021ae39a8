//! How does a thread that waits for etcd, or for its time, end at once when it is to?

use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use ureq::Agent;

use crate::Error;

/// A thread that ends, and was waited for, when this is dropped.
pub(crate) struct Worker {
    ending: Arc<Ending>,
    thread: Option<JoinHandle<()>>,
}

/// Whether a thread is to end.
pub(crate) struct Ending {
    is_over: Mutex<bool>,
    changed: Condvar,
    /// What the thread waits for etcd with.
    agent: Agent,
}

impl Worker {
    /// Starts a thread that asks etcd by this agent alone.
    ///
    /// # Errors
    /// [`Error::Thread`].
    pub(crate) fn start(
        name: &str,
        agent: Agent,
        run: impl FnOnce(&Ending) + Send + 'static,
    ) -> Result<Self, Error> {
        let ending = Arc::new(Ending {
            is_over: Mutex::new(false),
            changed: Condvar::new(),
            agent,
        });
        let thread = {
            let ending = Arc::clone(&ending);
            let builder = thread::Builder::new().name(name.to_owned());
            builder.spawn(move || run(&ending)).map_err(Error::Thread)?
        };
        Ok(Self {
            ending,
            thread: Some(thread),
        })
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.ending.end();
        let Some(thread) = self.thread.take() else {
            return;
        };
        // Whoever drops it in what the thread calls is the thread itself, which ends once that returns.
        if thread.thread().id() != thread::current().id() && thread.join().is_err() {
            tracing::error!("what a thread of the client of etcd calls has panicked");
        }
    }
}

impl Ending {
    pub(crate) fn is_over(&self) -> bool {
        *self.is_over.lock()
    }

    /// Waits until a moment, or until the thread is to end; true if it is.
    pub(crate) fn wait_until(&self, until: Instant) -> bool {
        let mut is_over = self.is_over.lock();
        while !*is_over && !self.changed.wait_until(&mut is_over, until).timed_out() {}
        *is_over
    }

    /// As [`Ending::wait_until`], for so long.
    pub(crate) fn wait(&self, time: Duration) -> bool {
        self.wait_until(Instant::now() + time)
    }

    fn end(&self) {
        *self.is_over.lock() = true;
        self.changed.notify_all();
        self.agent.clone().shutdown();
    }
}
