//! On which stack is work done that recurses as deep as a plan is nested?
//!
//! Plans are shown, run and dropped by recursion over what is nested in them. That must not overflow the stack of the thread that happens to do it: what is shallow is
//! done at once, and all else on a thread of its own, whose stack fits.

use std::mem;
use std::thread;

/// Levels of a plan that are handled on the caller's stack: with [`LEVEL_BYTES`] each they take
/// half of what a thread has that asks for nothing else.
const PLAIN_LEVELS: usize = 128;
/// Stack for a level of a plan; builds without optimizations take a quarter of it.
const LEVEL_BYTES: usize = 8 << 10;

/// There is no memory for a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no memory for a thread with a stack of {bytes} bytes")]
pub struct NoStack {
    /// Bytes of the stack.
    pub bytes: usize,
}

/// The stack that something nested needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stack {
    /// Bytes of a stack of its own, if the caller's will not do.
    large: Option<usize>,
}

impl Stack {
    /// The caller's, for what is not nested.
    #[must_use]
    pub fn plain() -> Self {
        Self { large: None }
    }

    /// The stack for a plan of this many levels.
    pub(crate) fn of_levels(levels: usize) -> Self {
        let is_plain = levels <= PLAIN_LEVELS;
        Self {
            large: (!is_plain).then(|| levels.saturating_mul(LEVEL_BYTES)),
        }
    }

    /// Runs `work` with this stack: by a call, or on a thread that is waited for, which costs less than
    /// a hundred microseconds.
    ///
    /// # Errors
    /// [`NoStack`]; then `work` was not done.
    ///
    /// # Panics
    /// If `work` does.
    pub fn run<T: Send>(self, work: impl FnOnce() -> T + Send) -> Result<T, NoStack> {
        let Some(bytes) = self.large else {
            return Ok(work());
        };
        thread::scope(|scope| {
            let large = thread::Builder::new().name("jindou-deep".to_owned());
            let handle = large.stack_size(bytes).spawn_scoped(scope, work);
            match handle.map_err(|_| NoStack { bytes })?.join() {
                Ok(result) => Ok(result),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        })
    }

    /// Drops `value` with this stack. Where there is no memory for one, it is never freed: a stack
    /// that overflows would end the process.
    pub fn drop<T: Send>(self, value: T) {
        let mut value = Some(value);
        if self.run(|| drop(value.take())).is_err() {
            mem::forget(value);
        }
    }

    /// True if the caller's stack will do.
    #[must_use]
    pub fn is_plain(self) -> bool {
        self.large.is_none()
    }
}

#[cfg(test)]
mod tests {
    use std::thread::current;

    use super::*;

    #[test]
    fn what_is_shallow_is_done_on_the_callers_thread() {
        let here = current().id();
        let thread_of = |levels| Stack::of_levels(levels).run(|| current().id());
        assert_eq!(thread_of(PLAIN_LEVELS), Ok(here));
        assert!(thread_of(PLAIN_LEVELS + 1).is_ok_and(|thread| thread != here));
    }

    #[test]
    fn what_has_no_stack_is_neither_done_nor_dropped() {
        let none = Stack {
            large: Some(1 << 62),
        };
        assert!(none.run(|| ()).is_err());
        let value = std::sync::Arc::new(());
        none.drop(value.clone());
        assert_eq!(std::sync::Arc::strong_count(&value), 2);
        Stack::of_levels(PLAIN_LEVELS + 1).drop(value.clone());
        assert_eq!(std::sync::Arc::strong_count(&value), 2);
    }
}
