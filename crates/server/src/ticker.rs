//! Who has streams go on that go with the clock, or that a full disk has stopped?
//!
//! A thread, which sleeps while there is no such stream.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{Builder, JoinHandle, Thread, park, park_timeout};
use std::time::Duration;

use jindou_engine::Database;

/// Between two looks after one that failed.
const AFTER_FAILURE: Duration = Duration::from_secs(1);

/// Has streams go on until it is dropped.
pub(crate) struct Ticker {
    stops: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Ticker {
    /// Begins; streams that are made from now on are to be [told about](Self::thread). Calls `begun` when those of a
    /// cluster begin to go on here.
    pub(crate) fn start(database: Database, begun: impl Fn() + Send + 'static) -> Self {
        let stops = Arc::new(AtomicBool::new(false));
        let stopping = Arc::clone(&stops);
        let tick = move || {
            let mut has_failed = false;
            let mut are_here = database.check_streams_here().is_ok();
            while !stopping.load(Relaxed) {
                if !std::mem::replace(&mut are_here, database.check_streams_here().is_ok())
                    && are_here
                {
                    begun();
                }
                match database.tick() {
                    Ok(Some(pause)) => {
                        has_failed = false;
                        park_timeout(pause);
                    }
                    Ok(None) => park(),
                    Err(error) => {
                        if !std::mem::replace(&mut has_failed, true) {
                            tracing::error!(%error, "streams do not go on by themselves");
                        }
                        park_timeout(AFTER_FAILURE);
                    }
                }
            }
        };
        let thread = Builder::new().name("stream-clock".to_owned()).spawn(tick);
        let thread = thread.inspect_err(|error| {
            tracing::error!(%error, "no thread has streams go on with the clock");
        });
        Self {
            stops,
            thread: thread.ok(),
        }
    }

    /// Who is to be unparked when a stream was made.
    pub(crate) fn thread(&self) -> Option<Thread> {
        self.thread.as_ref().map(|thread| thread.thread().clone())
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.stops.store(true, Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // It ends as soon as an evaluation under way does.
            let _ = thread.join();
        }
    }
}
