//! How soon does a thread that wakes get the core of one that gives way?
//!
//! Linux, since 6.13, may let a thread that computes run on until the next tick of its core, up to
//! 4 ms with usual settings, though another has woken that goes before it: it looks for such a
//! thread when the core is interrupted, and interrupts no other core for this. So while long work
//! is under way a thread of its own interrupts the cores that this process runs on, twice a
//! millisecond, with `membarrier`, which is made to do that. Each time takes some microseconds of
//! these cores, 20 on a virtual machine; while there is no long work the thread sleeps.

use std::io;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::Thread;

/// Long work under way in this process.
static UNDERWAY: AtomicUsize = AtomicUsize::new(0);
/// The thread that interrupts it.
static PACER: OnceLock<Thread> = OnceLock::new();

/// Long work under way, until this is dropped: threads that others shall not wait for compute.
#[derive(Debug)]
#[must_use = "the work is under way until this is dropped"]
pub struct LongWork(());

impl LongWork {
    /// Begins some.
    pub fn begin() -> Self {
        if UNDERWAY.fetch_add(1, Ordering::SeqCst) == 0
            && let Some(pacer) = PACER.get()
        {
            pacer.unpark();
        }
        Self(())
    }
}

impl Drop for LongWork {
    fn drop(&mut self) {
        UNDERWAY.fetch_sub(1, Ordering::SeqCst);
    }
}

/// From here on long work is interrupted twice a millisecond, in all of this process.
///
/// # Errors
/// What the operating system says; [`io::ErrorKind::Unsupported`] where it is not Linux.
pub fn interrupt_long_work() -> io::Result<()> {
    #[cfg(target_os = "linux")]
    return linux::start();
    #[cfg(not(target_os = "linux"))]
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(target_os = "linux")]
mod linux {
    use std::io;
    use std::sync::Mutex;
    use std::sync::atomic::Ordering::SeqCst;
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
    use std::time::Duration;

    use super::{PACER, UNDERWAY};

    /// From one interruption to the next.
    const INTERVAL: Duration = Duration::from_micros(500);

    /// How often the cores were interrupted.
    pub(super) static INTERRUPTIONS: AtomicU64 = AtomicU64::new(0);

    pub(super) fn start() -> io::Result<()> {
        static STARTING: Mutex<()> = Mutex::new(());
        let _one = STARTING.lock().expect("nobody panics while starting");
        if PACER.get().is_some() {
            return Ok(());
        }
        membarrier(libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED)?;
        let thread = std::thread::Builder::new().name("pacer".to_owned());
        let pacer = thread.spawn(pace)?;
        let pacer = PACER.get_or_init(|| pacer.thread().clone());
        // Work may have begun before the thread was known.
        pacer.unpark();
        Ok(())
    }

    fn pace() {
        // Where that is not known it comes a little later.
        let _ = crate::schedule::take_short_turns();
        loop {
            while UNDERWAY.load(SeqCst) == 0 {
                std::thread::park();
            }
            std::thread::sleep(INTERVAL);
            // Registered, it does not fail.
            let _ = membarrier(libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED);
            INTERRUPTIONS.fetch_add(1, Relaxed);
        }
    }

    fn membarrier(command: libc::c_int) -> io::Result<()> {
        // SAFETY: the call takes no pointers.
        match unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::sync::atomic::Ordering::Relaxed;

    use super::*;

    #[test]
    fn long_work_is_interrupted_until_it_ends() {
        interrupt_long_work().expect("Linux can");
        interrupt_long_work().expect("once more changes nothing");
        let count = || linux::INTERRUPTIONS.load(Relaxed);
        let until_more = |than: u64| {
            while count() <= than {
                std::thread::yield_now();
            }
        };
        let (one, other) = (LongWork::begin(), LongWork::begin());
        until_more(count() + 2);
        drop(one);
        until_more(count() + 2);
        drop(other);
        let ended = count();
        let again = LongWork::begin();
        until_more(ended);
        drop(again);
        // One may have been under way at each end.
        assert_eq!(UNDERWAY.load(Ordering::SeqCst), 0);
    }
}
