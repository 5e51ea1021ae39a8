//! How is long work of a request kept out of the way of light queries?

use std::panic::resume_unwind;
use std::thread;

use crate::EngineError;
use crate::database::Inner;

/// Bytes of text or of a document up to which reading it is not long.
pub(crate) const SHORT_TEXT_BYTES: usize = 256 << 10;
/// Stack of the thread that reads a long text: the main thread's usual size.
const STACK_BYTES: usize = 8 << 20;

impl Inner {
    /// Runs `work`, which reads this many bytes and holds no lock: where they are many and
    /// threads of long work have a priority of their own, on such a thread, which the caller
    /// waits for.
    ///
    /// # Errors
    /// [`EngineError::Thread`].
    pub(crate) fn read_apart<T: Send>(
        &self,
        bytes: usize,
        work: impl FnOnce() -> T + Send,
    ) -> Result<T, EngineError> {
        let start = self.config.worker_start.as_ref();
        let Some(start) = start.filter(|_| bytes > SHORT_TEXT_BYTES) else {
            return Ok(work());
        };
        thread::scope(|scope| {
            let thread = thread::Builder::new().name("read-text".to_owned());
            let read = thread.stack_size(STACK_BYTES).spawn_scoped(scope, || {
                (start.0)();
                work()
            });
            let read = read.map_err(|source| EngineError::Thread { source })?;
            Ok(read.join().unwrap_or_else(|panic| resume_unwind(panic)))
        })
    }
}
