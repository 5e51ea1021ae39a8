//! When does a thread get a core?

use std::io;

/// From here on the calling thread, and threads that it starts, run only while a core has nothing
/// else to do, and leave it at once when it has. For good: an unprivileged thread cannot go back.
///
/// A lower priority is not as much: the scheduler lets a thread of low priority run on for some
/// milliseconds, whoever wakes meanwhile. Where other threads keep all cores busy, the thread gets
/// less than a hundredth of one.
///
/// # Errors
/// What the operating system says; [`io::ErrorKind::Unsupported`] where it is not Linux.
pub fn run_when_idle() -> io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        let parameters = libc::sched_param { sched_priority: 0 };
        // SAFETY: the pointer is to a live value of the type that the call reads; 0 is this thread.
        match unsafe { libc::sched_setscheduler(0, libc::SCHED_IDLE, &raw const parameters) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
    #[cfg(not(target_os = "linux"))]
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    fn policy() -> libc::c_int {
        // SAFETY: the call takes no pointers; 0 is this thread.
        unsafe { libc::sched_getscheduler(0) }
    }

    #[test]
    fn a_thread_and_those_that_it_starts_run_when_idle() {
        let before = policy();
        let policies = std::thread::spawn(|| {
            run_when_idle().expect("any thread may");
            let started = std::thread::spawn(policy).join();
            (policy(), started.expect("no panic"))
        });
        let policies = policies.join().expect("no panic");
        assert_eq!(policies, (libc::SCHED_IDLE, libc::SCHED_IDLE));
        assert_eq!(policy(), before);
    }
}
