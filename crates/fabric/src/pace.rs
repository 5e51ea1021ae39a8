//! How soon does a thread that wakes get the core of one that gives way?
//!
//! Linux chooses between the threads of a core when one of them wakes or sleeps, and at the tick of
//! the core, every 4 ms with usual settings. A thread that wakes just after it had its share of the
//! core waits for the next of these moments, though a microsecond later it would go before those
//! that compute; and since 6.13 one that goes before them at once may have to wait as well, as they
//! run on until the core is interrupted. So while long work is under way each core has a thread
//! that sleeps and wakes twice a millisecond and does nothing else. That takes some microseconds
//! each time; while there is no long work these threads sleep.

use std::io;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::Thread;

/// Long work under way in this process.
static UNDERWAY: AtomicUsize = AtomicUsize::new(0);
/// The threads that interrupt it; the first one wakes the others.
static PACERS: OnceLock<Vec<Thread>> = OnceLock::new();

/// Long work under way, until this is dropped: threads that others shall not wait for compute.
#[derive(Debug)]
#[must_use = "the work is under way until this is dropped"]
pub struct LongWork(());

impl LongWork {
    /// Begins some.
    pub fn begin() -> Self {
        if UNDERWAY.fetch_add(1, Ordering::SeqCst) == 0
            && let Some(first) = PACERS.get().and_then(|all| all.first())
        {
            first.unpark();
        }
        Self(())
    }
}

impl Drop for LongWork {
    fn drop(&mut self) {
        UNDERWAY.fetch_sub(1, Ordering::SeqCst);
    }
}

/// From here on long work of this process is interrupted twice a millisecond, on all cores that the
/// calling thread may run on.
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
    use std::thread::Thread;
    use std::time::Duration;

    use super::{PACERS, UNDERWAY};

    /// From one interruption to the next.
    const INTERVAL: Duration = Duration::from_micros(500);
    /// They call little.
    const STACK_BYTES: usize = 64 << 10;

    /// How often cores were interrupted.
    pub(super) static INTERRUPTIONS: AtomicU64 = AtomicU64::new(0);

    pub(super) fn start() -> io::Result<()> {
        static STARTING: Mutex<()> = Mutex::new(());
        let _one = STARTING.lock().expect("nobody panics while starting");
        if PACERS.get().is_some() {
            return Ok(());
        }
        let pacers = crate::schedule::cores()?.into_iter().map(|core| {
            let thread = std::thread::Builder::new().name("pacer".to_owned());
            let pacer = thread.stack_size(STACK_BYTES).spawn(move || pace(core))?;
            Ok(pacer.thread().clone())
        });
        let pacers = pacers.collect::<io::Result<Vec<_>>>()?;
        // Work may have begun before the threads were known.
        for pacer in PACERS.get_or_init(|| pacers) {
            pacer.unpark();
        }
        Ok(())
    }

    fn pace(core: usize) {
        // Where that is not known it comes a little later; on a core that was taken away it comes
        // on another.
        let _ = crate::schedule::take_short_turns();
        let _ = crate::schedule::stay_on(core);
        loop {
            while UNDERWAY.load(SeqCst) == 0 {
                std::thread::park();
            }
            wake_others();
            while UNDERWAY.load(SeqCst) > 0 {
                std::thread::sleep(INTERVAL);
                INTERRUPTIONS.fetch_add(1, Relaxed);
            }
        }
    }

    /// Wakes the others, if this is the first of them.
    fn wake_others() {
        let Some((first, others)) = PACERS.get().and_then(|all| all.split_first()) else {
            return;
        };
        if std::thread::current().id() == first.id() {
            others.iter().for_each(Thread::unpark);
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
