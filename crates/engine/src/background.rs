//! How is long work of a request kept out of the way of light queries?

use std::panic::resume_unwind;
use std::thread;

use jindou_fabric::pace::LongWork;
use jindou_ingest::ThreadStart;

use crate::EngineError;
use crate::database::Inner;

/// Bytes of text or of documents up to which it does not take long to read them or to apply what
/// they say.
pub(crate) const SHORT_TEXT_BYTES: usize = 256 << 10;
/// Stack of the threads: the main thread's usual size.
const STACK_BYTES: usize = 8 << 20;

impl Inner {
    /// Whether threads of long updates have a priority of their own.
    pub(crate) fn has_background(&self) -> bool {
        self.config.update_start.is_some()
    }

    /// Executes what takes long and holds no lock on a thread with the priority of long updates where
    /// there is one; the caller waits for it.
    ///
    /// # Errors
    /// [`EngineError::Thread`].
    pub(crate) fn execute_apart<T: Send>(
        &self,
        work: impl FnOnce() -> T + Send,
    ) -> Result<T, EngineError> {
        apart(self.config.update_start.as_ref(), work)
    }

    /// Reads so many bytes of text, if they are many on a thread with the priority of that where there is
    /// one; the caller waits for it.
    ///
    /// # Errors
    /// [`EngineError::Thread`].
    pub(crate) fn read_apart<T: Send>(
        &self,
        bytes: usize,
        work: impl FnOnce() -> T + Send,
    ) -> Result<T, EngineError> {
        let start = self.config.reading_start.as_ref();
        apart(start.filter(|_| bytes > SHORT_TEXT_BYTES), work)
    }
}

/// Does `work` on a thread that begins so, if it is said how.
fn apart<T: Send>(
    start: Option<&ThreadStart>,
    work: impl FnOnce() -> T + Send,
) -> Result<T, EngineError> {
    let Some(start) = start else {
        return Ok(work());
    };
    let _long = LongWork::begin();
    thread::scope(|scope| {
        let thread = thread::Builder::new().name("long-work".to_owned());
        let done = thread.stack_size(STACK_BYTES).spawn_scoped(scope, || {
            (start.0)();
            work()
        });
        let done = done.map_err(|source| EngineError::Thread { source })?;
        Ok(done.join().unwrap_or_else(|panic| resume_unwind(panic)))
    })
}
