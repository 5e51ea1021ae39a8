//! How is long work of a request kept out of the way of light queries?

use std::panic::resume_unwind;
use std::thread;

use jindou_fabric::pace::LongWork;

use crate::EngineError;
use crate::database::Inner;

/// Bytes of text or of documents up to which it does not take long to read them or to apply what
/// they say.
pub(crate) const SHORT_TEXT_BYTES: usize = 256 << 10;
/// Stack of the threads: the main thread's usual size.
const STACK_BYTES: usize = 8 << 20;

impl Inner {
    /// Whether threads of long work have a priority of their own.
    pub(crate) fn has_background(&self) -> bool {
        self.config.write_start.is_some()
    }

    /// Runs `work`, which takes long and holds no lock, on a thread with the priority of long work
    /// where there is one; the caller waits for it.
    ///
    /// # Errors
    /// [`EngineError::Thread`].
    pub(crate) fn apart<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T, EngineError> {
        let Some(start) = &self.config.write_start else {
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

    /// [`Inner::apart`] for work on this many bytes, if they are many.
    ///
    /// # Errors
    /// [`EngineError::Thread`].
    pub(crate) fn apart_if_long<T: Send>(
        &self,
        bytes: usize,
        work: impl FnOnce() -> T + Send,
    ) -> Result<T, EngineError> {
        match bytes > SHORT_TEXT_BYTES {
            true => self.apart(work),
            false => Ok(work()),
        }
    }
}
