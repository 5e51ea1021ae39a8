//! When does a thread get a core?

use std::cell::Cell;
use std::io;

thread_local! {
    /// Once it is known.
    static RUNS_WHEN_IDLE: Cell<Option<bool>> = const { Cell::new(None) };
}

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
            0 => {
                RUNS_WHEN_IDLE.set(Some(true));
                Ok(())
            }
            _ => Err(io::Error::last_os_error()),
        }
    }
    #[cfg(not(target_os = "linux"))]
    Err(io::ErrorKind::Unsupported.into())
}

/// True on a thread that was begun to [run when a core is idle](run_when_idle): what others may wait for, it
/// leaves to threads that always get on.
#[must_use]
pub fn runs_when_idle() -> bool {
    #[cfg(target_os = "linux")]
    // SAFETY: the call takes a number, of which 0 is this thread, and fails for no living one.
    let is_so = || unsafe { libc::sched_getscheduler(0) } == libc::SCHED_IDLE;
    #[cfg(not(target_os = "linux"))]
    let is_so = || false;
    let known = RUNS_WHEN_IDLE.get().unwrap_or_else(is_so);
    RUNS_WHEN_IDLE.set(Some(known));
    known
}

/// A thread of this process, for others that are to change when it gets a core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadId(#[cfg(target_os = "linux")] libc::pid_t);

impl ThreadId {
    /// The calling thread.
    #[must_use]
    pub fn own() -> Self {
        // SAFETY: the call takes nothing and never fails.
        Self(
            #[cfg(target_os = "linux")]
            unsafe {
                libc::gettid()
            },
        )
    }

    /// Ends [`run_when_idle`] for this thread, which must not have ended: its id may be another's then.
    ///
    /// # Errors
    /// What the operating system says: it asks for a privilege, or for a limit of niceness (`RLIMIT_NICE`) of 20 or
    /// more; [`io::ErrorKind::Unsupported`] where it is not Linux.
    pub fn run_as_usual(self) -> io::Result<()> {
        #[cfg(target_os = "linux")]
        {
            let parameters = libc::sched_param { sched_priority: 0 };
            // SAFETY: the pointer is to a live value of the type that the call reads.
            match unsafe {
                libc::sched_setscheduler(self.0, libc::SCHED_OTHER, &raw const parameters)
            } {
                0 => Ok(()),
                _ => Err(io::Error::last_os_error()),
            }
        }
        #[cfg(not(target_os = "linux"))]
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// Ends [`run_when_idle`] for all threads of the process that it may end it for. For a process that is to end: it is
/// there, with its memory, until each of its threads has had a core to end on, which one that runs when a core is
/// idle may not get for minutes.
pub fn all_run_as_usual() {
    #[cfg(target_os = "linux")]
    {
        // Without a list of threads, or the right to change one, the process ends when it can.
        let threads = std::fs::read_dir("/proc/self/task").into_iter().flatten();
        let numbers = threads.filter_map(|thread| thread.ok()?.file_name().to_str()?.parse().ok());
        for number in numbers {
            // SAFETY: the call takes a number, and fails for one of no thread.
            if unsafe { libc::sched_getscheduler(number) } == libc::SCHED_IDLE {
                let _refused = ThreadId(number).run_as_usual();
            }
        }
    }
}

/// How long a thread that answers light queries runs before others may have their turn.
#[cfg(target_os = "linux")]
const SHORT_TURN_NANOSECONDS: u64 = 100_000;

/// From here on the calling thread takes short turns, and gets a core soon when it wakes though
/// threads of the same priority have all of them: Linux, since 6.12, lets who asks for a shorter
/// turn go before those who take longer ones. Its share stays the same. For threads that sleep,
/// and work for microseconds when they wake.
///
/// # Errors
/// What the operating system says; [`io::ErrorKind::Unsupported`] where it is not Linux.
pub fn take_short_turns() -> io::Result<()> {
    #[cfg(target_os = "linux")]
    return set_turn(SHORT_TURN_NANOSECONDS);
    #[cfg(not(target_os = "linux"))]
    Err(io::ErrorKind::Unsupported.into())
}

/// Ends [`take_short_turns`], which threads inherit, for the calling thread.
///
/// # Errors
/// As there.
pub fn take_usual_turns() -> io::Result<()> {
    #[cfg(target_os = "linux")]
    return set_turn(0);
    #[cfg(not(target_os = "linux"))]
    Err(io::ErrorKind::Unsupported.into())
}

/// The cores that the calling thread may run on, by their numbers.
///
/// # Errors
/// What the operating system says: a machine may have more cores than are asked about.
#[cfg(target_os = "linux")]
pub(crate) fn cores() -> io::Result<Vec<usize>> {
    let mut cores = CoreSet::default();
    let words = size_of_val(&cores.0);
    // SAFETY: the pointer is to live memory of the size that is named; 0 is this thread.
    let written =
        unsafe { libc::syscall(libc::SYS_sched_getaffinity, 0, words, cores.0.as_mut_ptr()) };
    if written < 0 {
        return Err(io::Error::last_os_error());
    }
    let is_in = |core: &usize| cores.0[core / 64] & (1 << (core % 64)) != 0;
    Ok((0..64 * cores.0.len()).filter(is_in).collect())
}

/// From here on the calling thread runs on this core only.
///
/// # Errors
/// What the operating system says.
#[cfg(target_os = "linux")]
pub(crate) fn stay_on(core: usize) -> io::Result<()> {
    let mut cores = CoreSet::default();
    let word = cores.0.get_mut(core / 64).ok_or(io::ErrorKind::NotFound)?;
    *word = 1 << (core % 64);
    let words = size_of_val(&cores.0);
    // SAFETY: the pointer is to live memory of the size that is named; 0 is this thread.
    match unsafe { libc::syscall(libc::SYS_sched_setaffinity, 0, words, cores.0.as_ptr()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// A bit for each core of the largest machines that the kernel can be built for.
#[cfg(target_os = "linux")]
struct CoreSet([u64; 8_192 / 64]);

#[cfg(target_os = "linux")]
impl Default for CoreSet {
    fn default() -> Self {
        Self([0; 8_192 / 64])
    }
}

/// `struct sched_attr` of the kernel, as it was first.
#[cfg(target_os = "linux")]
#[derive(Default)]
#[repr(C)]
struct Attributes {
    size: u32,
    policy: u32,
    flags: u64,
    niceness: i32,
    priority: u32,
    runtime: u64,
    deadline: u64,
    period: u64,
}

/// Sets how long this thread's turns are; 0 for as long as those of others.
#[cfg(target_os = "linux")]
fn set_turn(nanoseconds: u64) -> io::Result<()> {
    const SIZE: u32 = size_of::<Attributes>() as u32;
    let mut attributes = Attributes::default();
    // SAFETY: the pointer is to a live value of the size that is named, which the call fills;
    // 0 is this thread.
    let read = unsafe { libc::syscall(libc::SYS_sched_getattr, 0, &raw mut attributes, SIZE, 0) };
    if read != 0 {
        return Err(io::Error::last_os_error());
    }
    attributes.runtime = nanoseconds;
    // SAFETY: the pointer is to a live value of the size that it names; 0 is this thread.
    match unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    fn policy() -> libc::c_int {
        // SAFETY: the call takes no pointers; 0 is this thread.
        unsafe { libc::sched_getscheduler(0) }
    }

    #[test]
    fn a_thread_stays_on_one_of_its_cores() {
        let before = cores().expect("they are known");
        let first = *before.first().expect("this runs on one");
        let stays = std::thread::spawn(move || {
            stay_on(first).expect("it is one of them");
            cores().expect("they are known")
        });
        assert_eq!(stays.join().expect("no panic"), [first]);
        assert_eq!(cores().expect("they are known"), before);
        assert!(stay_on(1 << 20).is_err());
    }

    #[test]
    fn short_turns_change_no_priority() {
        let before = policy();
        take_short_turns().expect("any thread may");
        assert_eq!(policy(), before);
        take_usual_turns().expect("any thread may");
        assert_eq!(policy(), before);
    }

    #[test]
    fn a_thread_and_those_that_it_starts_run_when_idle() {
        let before = policy();
        let policies = std::thread::spawn(|| {
            run_when_idle().expect("any thread may");
            let seen = || (policy(), runs_when_idle());
            let started = std::thread::spawn(seen).join();
            [seen(), started.expect("no panic")]
        });
        let policies = policies.join().expect("no panic");
        assert_eq!(policies, [(libc::SCHED_IDLE, true); 2]);
        assert_eq!((policy(), runs_when_idle()), (before, false));
    }

    #[test]
    fn a_thread_that_ran_when_idle_runs_as_usual_again_where_that_is_allowed() {
        let (sender, told) = std::sync::mpsc::channel();
        let (go_on, goes_on) = std::sync::mpsc::channel();
        let runs = std::thread::spawn(move || {
            run_when_idle().expect("any thread may");
            sender.send(ThreadId::own()).expect("it is awaited");
            goes_on.recv().expect("it is sent");
            policy()
        });
        let thread = told.recv().expect("it is sent");
        assert_ne!(thread, ThreadId::own());
        let expected = match thread.run_as_usual() {
            Ok(()) => libc::SCHED_OTHER,
            Err(error) => {
                assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
                libc::SCHED_IDLE
            }
        };
        go_on.send(()).expect("it waits");
        assert_eq!(runs.join().expect("no panic"), expected);
    }
}
