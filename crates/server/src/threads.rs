//! How are threads of heavy queries kept out of the way of light ones, and how long has a thread
//! really run?

use std::io;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use jindou_fabric::pace::LongWork;

/// How nice threads of heavy queries are where they are no more than that.
const HEAVY_NICENESS: i32 = 10;
/// How nice threads are that read long texts of updates and documents, where those of heavy queries run
/// only when idle: more would keep these from cores for seconds, also from seeing that they are
/// cancelled.
const READING_NICENESS: i32 = 19;
/// How nice threads are that execute long updates there: beside other programs that keep all cores busy
/// they get a tenth.
const LONG_UPDATE_NICENESS: i32 = 10;
/// How nice threads are that execute long updates: others may wait for the lock that they hold.
const WRITE_NICENESS: i32 = 5;

/// How threads of heavy queries are kept out of the way of light ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HeavyPriority {
    /// They run only while a core has nothing else to do, of this process or of others beside it:
    /// light queries never wait for them.
    #[default]
    Idle,
    /// They have a lower priority than others. Where other programs of this machine keep all cores
    /// busy they still get a share; a light query may wait some milliseconds for a core.
    Low,
    /// They have the priority of all others.
    Same,
}

/// What a thread is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// A query that proved heavy, or whose text is long: nothing tells before whether it is light.
    Heavy(HeavyPriority),
    /// An update with a long text.
    Write,
    /// An update with a short one.
    LightWrite,
}

/// Stack of a thread that runs any query: plans are run by recursion over their steps, of which
/// there may be thousands. Only what is used of it takes memory.
pub(crate) const LARGE_STACK_BYTES: usize = 64 << 20;
/// Stack of a thread that runs updates with short texts: as those of the runtime have.
const PLAIN_STACK_BYTES: usize = 2 << 20;
/// The longest text that is planned and run on the thread that read it, in bytes: longer ones may
/// take long to plan, and more stack than it has.
pub(crate) const PLAIN_TEXT_BYTES: usize = 2 << 10;

/// The runtime that a server is best run on: its threads get a core soon when they wake, however
/// busy those are that execute updates.
///
/// # Errors
/// What the operating system says.
pub fn runtime() -> io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .on_thread_start(take_short_turns)
        .build()
}

/// Has this thread get a core soon when it wakes, as those that answer light queries do.
pub(crate) fn take_short_turns() {
    // Older systems know no short turns.
    if let Err(error) = jindou_fabric::schedule::take_short_turns() {
        tracing::debug!(%error, "a thread takes turns as long as those of others");
    }
}

/// Threads that are kept for the next work of their kind when they have none: of those for long
/// work, and of those for short updates, as many as may be under way.
const MOST_IDLE: usize = 8;
const MOST_IDLE_LIGHT: usize = 64;
/// How long they are.
const IDLE_TIME: Duration = Duration::from_secs(5);

type Work = Box<dyn FnOnce() + Send>;

/// Threads that run any query, by what they are for. They are kept for a while: to start one takes
/// the memory map of the process, for which the thread that reads requests might wait.
#[derive(Default)]
pub(crate) struct Threads {
    idle: Mutex<Vec<Idle>>,
    next: AtomicU64,
}

/// A thread without work.
struct Idle {
    number: u64,
    name: &'static str,
    purpose: Purpose,
    work: Sender<Work>,
}

impl Threads {
    /// Runs `work` on a thread for such work, which is started if there is none.
    ///
    /// # Errors
    /// What the operating system says.
    pub(crate) fn spawn(
        self: &Arc<Self>,
        name: &'static str,
        purpose: Purpose,
        work: impl FnOnce() + Send + 'static,
    ) -> io::Result<()> {
        let mut work: Work = match purpose {
            Purpose::Heavy(_) => Box::new(move || {
                let _long = LongWork::begin();
                work();
            }),
            Purpose::Write | Purpose::LightWrite => Box::new(work),
        };
        while let Some(idle) = self.take(name, purpose) {
            // One that panicked has ended.
            match idle.work.send(work) {
                Ok(()) => return Ok(()),
                Err(refused) => work = refused.0,
            }
        }
        let threads = Arc::downgrade(self);
        let begin = move || {
            purpose.take();
            work();
            go_on(&threads, name, purpose);
        };
        let thread = std::thread::Builder::new().name(name.to_owned());
        let thread = thread.stack_size(purpose.stack_bytes());
        thread.spawn(begin).map(|_detached| ())
    }

    /// The one that has been without work for the shortest time.
    fn take(&self, name: &str, purpose: Purpose) -> Option<Idle> {
        let mut idle = self.idle.lock().expect("nobody panics while it holds it");
        let at = idle
            .iter()
            .rposition(|idle| idle.name == name && idle.purpose == purpose)?;
        Some(idle.remove(at))
    }

    /// Notes that a thread has no work: its number, and where work will come from; `None` if
    /// enough wait.
    fn wait(&self, name: &'static str, purpose: Purpose) -> Option<(u64, Receiver<Work>)> {
        let mut idle = self.idle.lock().expect("nobody panics while it holds it");
        let is_alike = |idle: &&Idle| idle.name == name && idle.purpose == purpose;
        if idle.iter().filter(is_alike).count() >= purpose.most_idle() {
            return None;
        }
        let (work, receiver) = channel();
        let number = self.next.fetch_add(1, Relaxed);
        idle.push(Idle {
            number,
            name,
            purpose,
            work,
        });
        Some((number, receiver))
    }

    /// Takes back that a thread waits; false if somebody has work for it.
    fn leave(&self, number: u64) -> bool {
        let mut idle = self.idle.lock().expect("nobody panics while it holds it");
        let at = idle.iter().position(|idle| idle.number == number);
        at.map(|at| idle.remove(at)).is_some()
    }
}

/// What a thread does after its first work.
fn go_on(threads: &Weak<Threads>, name: &'static str, purpose: Purpose) {
    loop {
        let waiting = threads.upgrade().and_then(|all| all.wait(name, purpose));
        let Some((number, work)) = waiting else {
            return;
        };
        let next = match work.recv_timeout(IDLE_TIME) {
            Err(RecvTimeoutError::Timeout) => {
                if threads.upgrade().is_none_or(|all| all.leave(number)) {
                    return;
                }
                work.recv().ok()
            }
            next => next.ok(),
        };
        match next {
            Some(work) => work(),
            None => return,
        }
    }
}

impl Purpose {
    fn most_idle(self) -> usize {
        match self {
            Self::Heavy(_) | Self::Write => MOST_IDLE,
            Self::LightWrite => MOST_IDLE_LIGHT,
        }
    }

    fn stack_bytes(self) -> usize {
        match self {
            Self::Heavy(_) | Self::Write => LARGE_STACK_BYTES,
            Self::LightWrite => PLAIN_STACK_BYTES,
        }
    }

    /// Gives the calling thread its priority, for good.
    fn take(self) {
        match self {
            Self::Heavy(priority) => priority.take(),
            // That of the runtime's threads, which start these.
            Self::LightWrite => {}
            Self::Write => {
                // Short turns are for those who started it.
                let _ = jindou_fabric::schedule::take_usual_turns();
                be_nice(WRITE_NICENESS);
            }
        }
    }
}

impl HeavyPriority {
    /// Gives the calling thread, for good, the priority of those that read long texts of updates and
    /// documents. These, and those that execute long updates, get a share also where other programs
    /// keep all cores busy: who has waited in vain for a query can ask again, but data that does not
    /// come in is missing.
    pub(crate) fn take_to_read(self) {
        match self {
            Self::Idle => be_nice(READING_NICENESS),
            other => other.take(),
        }
    }

    /// Gives the calling thread, for good, the priority of those that execute long updates.
    pub(crate) fn take_to_update(self) {
        match self {
            Self::Idle => be_nice(LONG_UPDATE_NICENESS),
            other => other.take(),
        }
    }

    /// Gives the calling thread this priority, for good. For the threads that heavy queries share:
    /// see `Config::worker_start` of the engine.
    ///
    /// Does nothing where the operating system sets priorities for whole processes only.
    pub fn take(self) {
        match self {
            Self::Idle => {
                if let Err(error) = jindou_fabric::schedule::run_when_idle() {
                    tracing::debug!(%error, "a thread has a low priority only");
                    be_nice(HEAVY_NICENESS);
                }
            }
            Self::Low => be_nice(HEAVY_NICENESS),
            Self::Same => {}
        }
    }
}

/// Makes this thread so much nicer than the process.
fn be_nice(niceness: i32) {
    #[cfg(target_os = "linux")]
    {
        // Linux keeps the niceness by thread, and takes a thread's id here.
        let thread = Some(rustix::thread::gettid());
        let before = rustix::process::getpriority_process(None).unwrap_or(0);
        let niceness = (before + niceness).min(19);
        if let Err(error) = rustix::process::setpriority_process(thread, niceness) {
            tracing::debug!(%error, "a thread keeps its priority");
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = niceness;
}

/// Measures the time for which this thread runs, without the time in which others had its core.
pub(crate) struct Stopwatch {
    #[cfg(unix)]
    begun: Duration,
    #[cfg(not(unix))]
    begun: Instant,
}

impl Stopwatch {
    pub(crate) fn start() -> Self {
        Self {
            #[cfg(unix)]
            begun: thread_time(),
            #[cfg(not(unix))]
            begun: Instant::now(),
        }
    }

    pub(crate) fn elapsed(&self) -> Duration {
        #[cfg(unix)]
        return thread_time().saturating_sub(self.begun);
        #[cfg(not(unix))]
        return self.begun.elapsed();
    }
}

#[cfg(unix)]
fn thread_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// What is left of a time limit.
pub(crate) fn left(since: Instant, limit: Duration) -> Duration {
    limit.saturating_sub(since.elapsed())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_done_by_a_thread_that_had_some_before() {
        let threads = Arc::new(Threads::default());
        let (sender, receiver) = channel();
        let run = |name| {
            let sender = sender.clone();
            let work = move || sender.send(std::thread::current().id()).expect("awaited");
            threads.spawn(name, Purpose::Write, work).expect("a thread");
            let id = receiver.recv().expect("it is sent");
            let waits = || {
                let idle = threads.idle.lock().expect("no panic");
                idle.iter().any(|idle| idle.name == name)
            };
            while !waits() {
                std::thread::yield_now();
            }
            id
        };
        let first = run("one");
        assert_eq!(run("one"), first);
        assert_ne!(run("another"), first);
        let idle = std::mem::take(&mut *threads.idle.lock().expect("no panic"));
        assert_eq!(idle.len(), 2);
        drop(idle);
        assert_ne!(run("one"), first, "those are gone");
    }

    #[test]
    fn a_thread_whose_work_panicked_takes_no_more() {
        let threads = Arc::new(Threads::default());
        threads
            .spawn("one", Purpose::Write, || panic!("as it is meant to"))
            .expect("a thread");
        let (sender, receiver) = channel();
        let work = move || sender.send(()).expect("awaited");
        threads.spawn("one", Purpose::Write, work).expect("another");
        receiver.recv().expect("it is sent");
    }

    #[cfg(unix)]
    #[test]
    fn a_thread_that_sleeps_does_not_run() {
        let (watch, begun) = (Stopwatch::start(), Instant::now());
        // Waiting is what is measured here.
        let (_sender, receiver) = std::sync::mpsc::channel::<()>();
        assert!(receiver.recv_timeout(Duration::from_millis(50)).is_err());
        assert!(watch.elapsed() < begun.elapsed());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_lower_priority_is_this_threads_own() {
        let niceness = || {
            let thread = Some(rustix::thread::gettid());
            rustix::process::getpriority_process(thread).expect("of this thread")
        };
        let before = niceness();
        let lowered = std::thread::spawn(move || {
            HeavyPriority::Low.take();
            niceness()
        });
        let expected = (before + HEAVY_NICENESS).min(19);
        assert_eq!(lowered.join().expect("no panic"), expected);
        assert_eq!(niceness(), before);
    }
}
