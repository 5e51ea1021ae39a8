//! How do rows that went without their history get it back?
//!
//! A sub-query that goes without it replies to the node that forked, to an [`Inbox`] of its own. What comes there is
//! joined with what stayed, and goes on to whoever reads the chain. No thread waits for that: sub-queries would
//! wait for each other in a circle. A job is given to the node's threads when something comes, and ends when
//! nothing is left to do for now.

use std::sync::{Arc, Mutex, Weak};

use super::Forks;
use super::history::{Joining, Stayed};
use super::inbox::Inbox;
use super::replies::{Pushed, Replies};
use crate::ExecError;
use crate::context::Context;
use crate::table::Table;

/// Joins what one sub-query finds, and those that it has set out, with what stayed.
pub(super) struct Rejoin {
    forks: Arc<dyn Forks>,
    cx: Arc<Context>,
    work: Mutex<Work>,
}

/// Whether a thread has what there is to do.
enum Work {
    Idle(Box<Task>),
    /// A thread has it; `again` if something came meanwhile.
    Running {
        again: bool,
    },
    Ended,
}

/// What there is to do.
struct Task {
    inbox: Arc<Inbox>,
    stayed: Stayed,
    /// Where joined rows go.
    replies: Arc<dyn Replies>,
    /// What was found and is not all joined yet.
    joining: Option<Joining>,
    /// Joined rows for which there was no room.
    joined: Option<Table>,
    /// The reader has heard of its end.
    settled: bool,
}

/// What came of one step.
enum Step {
    More,
    /// There is nothing to do before something comes.
    Nothing,
    NoRoom,
    Ended,
}

impl Rejoin {
    /// Has what comes to `inbox` be joined with what stayed, and go to `replies`, by threads of the node
    /// that sees the others as `forks`.
    pub(super) fn begin(
        inbox: &Arc<Inbox>,
        stayed: Stayed,
        replies: &Arc<dyn Replies>,
        (cx, forks): (&Arc<Context>, &Arc<dyn Forks>),
    ) {
        let task = Box::new(Task {
            inbox: Arc::clone(inbox),
            stayed,
            replies: Arc::clone(replies),
            joining: None,
            joined: None,
            settled: false,
        });
        let rejoin = Arc::new(Self {
            forks: Arc::clone(forks),
            cx: Arc::clone(cx),
            work: Mutex::new(Work::Idle(task)),
        });
        inbox.set_reader(Arc::clone(&rejoin));
        replies.attend(&rejoin);
    }

    /// Something came, there is room again, or nobody reads any more.
    pub(super) fn wake(self: &Arc<Self>) {
        let mut work = self.work.lock().expect(WORK);
        let running = Work::Running { again: true };
        let task = match std::mem::replace(&mut *work, running) {
            Work::Idle(task) => task,
            Work::Running { .. } => return,
            Work::Ended => {
                *work = Work::Ended;
                return;
            }
        };
        drop(work);
        let rejoin = Arc::clone(self);
        let job = Box::new(move || rejoin.run(task));
        self.forks.resume(self.cx.class(), job);
    }

    /// Does what there is to do.
    fn run(self: Arc<Self>, mut task: Box<Task>) {
        loop {
            *self.work.lock().expect(WORK) = Work::Running { again: false };
            loop {
                match task.step(&self.cx) {
                    Ok(Step::More) => (),
                    Ok(Step::Nothing) => break,
                    Ok(Step::NoRoom) if !self.is_there_room(&task) => break,
                    Ok(Step::NoRoom) => (),
                    Ok(Step::Ended) => return self.end(task, Ok(())),
                    Err(error) => return self.end(task, Err(error)),
                }
            }
            let mut work = self.work.lock().expect(WORK);
            if !matches!(*work, Work::Running { again: true }) {
                *work = Work::Idle(task);
                return;
            }
        }
    }

    /// True if there is room for joined rows; otherwise this is woken once there is.
    fn is_there_room(self: &Arc<Self>, task: &Task) -> bool {
        let rejoin = Arc::clone(self);
        let resume = Box::new(move || rejoin.wake());
        task.replies.when_room(resume).is_some()
    }

    fn end(&self, mut task: Box<Task>, result: Result<(), ExecError>) {
        *self.work.lock().expect(WORK) = Work::Ended;
        if let Err(error) = result {
            task.replies.fail(error);
        }
        task.settled = true;
    }
}

const WORK: &str = "no thread panics while it holds what there is to do";

impl Task {
    /// Joins some rows, and hands them over.
    fn step(&mut self, cx: &Context) -> Result<Step, ExecError> {
        cx.check()?;
        if !self.replies.is_read() {
            return Ok(Step::Ended);
        }
        let joined = match self.joined.take() {
            Some(joined) => Some(joined),
            None => self.next(cx)?,
        };
        let Some(joined) = joined else {
            return Ok(match self.inbox.has_ended() {
                true => Step::Ended,
                false => Step::Nothing,
            });
        };
        Ok(match self.replies.push(joined, cx)? {
            Pushed::Taken => Step::More,
            Pushed::Unread => Step::Ended,
            Pushed::Full(joined) => {
                self.joined = Some(joined);
                Step::NoRoom
            }
        })
    }

    /// The next joined rows, if there are any for now.
    fn next(&mut self, cx: &Context) -> Result<Option<Table>, ExecError> {
        loop {
            let joined = self.joining.as_mut();
            let joined = joined.and_then(|joining| self.stayed.joined(joining));
            if let Some(mut joined) = joined {
                cx.book_table(&mut joined)?;
                return Ok(Some(joined));
            }
            self.joining = None;
            let Some(mut found) = self.inbox.ready(cx)? else {
                return Ok(None);
            };
            cx.book_table(&mut found)?;
            self.joining = Some(self.stayed.join(found)?);
        }
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        if !self.settled {
            self.replies.fail(ExecError::Panicked);
        }
        self.inbox.close();
        self.replies.end();
    }
}

/// Notes one that is to be woken, and forgets those that have ended.
pub(super) fn note(rejoins: &mut Vec<Weak<Rejoin>>, rejoin: &Arc<Rejoin>) {
    rejoins.retain(|other| other.strong_count() > 0);
    rejoins.push(Arc::downgrade(rejoin));
}

/// How many have not ended.
pub(super) fn alive(rejoins: &[Weak<Rejoin>]) -> usize {
    let alive = rejoins.iter().filter(|rejoin| rejoin.strong_count() > 0);
    alive.count()
}

/// Wakes those that have not ended.
pub(super) fn wake_all(rejoins: Vec<Weak<Rejoin>>) {
    let alive = rejoins.iter().filter_map(Weak::upgrade);
    alive.for_each(|rejoin| rejoin.wake());
}
