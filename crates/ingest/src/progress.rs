//! How far is the load?

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

const UNKNOWN: u64 = u64::MAX;

/// Counters that [`load`](crate::load) keeps up to date and any thread may read. Nothing is
/// printed here. They move a chunk (about a MiB) or some thousand quads at a time. A clone shows
/// the same counters.
#[derive(Debug, Clone, Default)]
pub struct Progress(Arc<Counters>);

#[derive(Debug)]
struct Counters {
    bytes_read: AtomicU64,
    bytes_total: AtomicU64,
    quads: AtomicU64,
    sources_done: AtomicU64,
    current: Mutex<Option<Arc<str>>>,
    step: Mutex<Option<Arc<str>>>,
    listener: Option<Listener>,
}

/// Hears of each step.
struct Listener(Box<dyn Fn(&str) + Send + Sync>);

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Listener")
    }
}

impl Default for Counters {
    fn default() -> Self {
        Self {
            bytes_read: AtomicU64::new(0),
            bytes_total: AtomicU64::new(UNKNOWN),
            quads: AtomicU64::new(0),
            sources_done: AtomicU64::new(0),
            current: Mutex::new(None),
            step: Mutex::new(None),
            listener: None,
        }
    }
}

impl Progress {
    /// Counters at their beginning, and a function that hears of each [step](Self::step), on the thread that is about
    /// to begin it.
    pub fn with_listener(listener: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self(Arc::new(Counters {
            listener: Some(Listener(Box::new(listener))),
            ..Counters::default()
        }))
    }

    /// Bytes taken from the sources so far, before decompression.
    pub fn bytes_read(&self) -> u64 {
        self.0.bytes_read.load(Relaxed)
    }

    /// The size of all sources together, in bytes before decompression; `None` when one of them
    /// is a pipe.
    pub fn bytes_total(&self) -> Option<u64> {
        Some(self.0.bytes_total.load(Relaxed)).filter(|&total| total != UNKNOWN)
    }

    /// Quads handed to sinks so far.
    pub fn quads(&self) -> u64 {
        self.0.quads.load(Relaxed)
    }

    /// Sources read to their end so far.
    pub fn sources_done(&self) -> u64 {
        self.0.sources_done.load(Relaxed)
    }

    /// The source opened last.
    pub fn current_source(&self) -> Option<Arc<str>> {
        self.0
            .current
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// What whoever asked for the load makes of the quads, once all sources are read; `None` before
    /// that, or where it does not say.
    pub fn step(&self) -> Option<Arc<str>> {
        let step = self.0.step.lock().unwrap_or_else(PoisonError::into_inner);
        step.clone()
    }

    /// Says what is made of the quads, which have all come.
    pub fn set_step(&self, step: String) {
        let step: Arc<str> = step.into();
        {
            let mut current = self.0.step.lock().unwrap_or_else(PoisonError::into_inner);
            *current = Some(Arc::clone(&step));
        }
        if let Some(Listener(hear)) = &self.0.listener {
            hear(&step);
        }
    }

    pub(crate) fn set_total(&self, total: Option<u64>) {
        self.0.bytes_total.store(total.unwrap_or(UNKNOWN), Relaxed);
    }

    pub(crate) fn add_bytes(&self, bytes: u64) {
        self.0.bytes_read.fetch_add(bytes, Relaxed);
    }

    pub(crate) fn add_quads(&self, quads: u64) {
        self.0.quads.fetch_add(quads, Relaxed);
    }

    pub(crate) fn finish_source(&self) {
        self.0.sources_done.fetch_add(1, Relaxed);
    }

    pub(crate) fn set_current(&self, name: Arc<str>) {
        *self
            .0
            .current
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = Some(name);
    }
}
