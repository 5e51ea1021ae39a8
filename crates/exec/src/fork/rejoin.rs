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
    /// It goes on when something comes.
    Idle(Box<Task>),
    /// It has rows for which there is no room, and goes on when it is called for that, once. Were it to go on
    /// when something comes, it would ask to be called a second time, and need no room by then: room that is given
    /// to who does not take it is lost to those who wait behind.
    WaitsForRoom(Box<Task>),
    /// A thread has it; what came meanwhile.
    Running(Meanwhile),
    Ended,
}

/// What came while a thread had what there is to do.
#[derive(Clone, Copy, Default)]
struct Meanwhile {
    something: bool,
    room: bool,
}

/// Why a thread has nothing to do for now.
#[derive(Clone, Copy)]
enum Waits {
    ForSomething,
    ForRoom,
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

    /// Something came, or nobody reads any more.
    pub(super) fn wake(self: &Arc<Self>) {
        self.go_on(Waits::ForSomething);
    }

    /// What the task may have waited for is there.
    fn go_on(self: &Arc<Self>, came: Waits) {
        let mut work = self.work.lock().expect(WORK);
        let task = match (std::mem::replace(&mut *work, Work::Ended), came) {
            (Work::Idle(task), _) | (Work::WaitsForRoom(task), Waits::ForRoom) => task,
            (Work::Running(mut meanwhile), came) => {
                match came {
                    Waits::ForSomething => meanwhile.something = true,
                    Waits::ForRoom => meanwhile.room = true,
                }
                *work = Work::Running(meanwhile);
                return;
            }
            (waits_or_ended, _) => {
                *work = waits_or_ended;
                return;
            }
        };
        *work = Work::Running(Meanwhile::default());
        drop(work);
        let rejoin = Arc::clone(self);
        let job = Box::new(move || rejoin.run(task));
        self.forks.resume(self.cx.class(), job);
    }

    /// Does what there is to do.
    fn run(self: Arc<Self>, mut task: Box<Task>) {
        loop {
            *self.work.lock().expect(WORK) = Work::Running(Meanwhile::default());
            let waits = loop {
                match task.step(&self.cx) {
                    Ok(Step::More) => (),
                    Ok(Step::Nothing) => break Waits::ForSomething,
                    Ok(Step::NoRoom) if !self.is_there_room(&task) => break Waits::ForRoom,
                    Ok(Step::NoRoom) => (),
                    Ok(Step::Ended) => return self.end(task, Ok(())),
                    Err(error) => return self.end(task, Err(error)),
                }
            };
            let mut work = self.work.lock().expect(WORK);
            let Work::Running(meanwhile) = *work else {
                unreachable!("a thread has it");
            };
            *work = match waits {
                Waits::ForSomething if !meanwhile.something => Work::Idle(task),
                Waits::ForRoom if !meanwhile.room => Work::WaitsForRoom(task),
                _ => continue,
            };
            return;
        }
    }

    /// True if there is room for joined rows; otherwise this goes on once there is.
    fn is_there_room(self: &Arc<Self>, task: &Task) -> bool {
        let rejoin = Arc::clone(self);
        let resume = Box::new(move || rejoin.go_on(Waits::ForRoom));
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

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use jindou_model::TermId;
    use jindou_plan::physical::Var;

    use super::super::history::{History, Parted};
    use super::super::messages::MessageLimits;
    use super::super::outbox::Outbox;
    use super::super::test_nodes::{Alone, TestNodes};
    use super::super::wire::query;
    use super::*;

    fn vertices(numbers: &[u64]) -> Vec<TermId> {
        numbers.iter().copied().map(TermId::vertex).collect()
    }

    /// Two wait for the room of one table: who joins rows, and another.
    #[test]
    fn room_that_comes_goes_to_all_who_wait_though_something_else_comes_meanwhile() {
        let nodes = TestNodes::new(MessageLimits {
            waiting_tables: 1,
            ..MessageLimits::default()
        });
        let (cx, there) = (&nodes.cx, &nodes.there);
        let reader = Arc::new(Inbox::new(nodes.chain(Vec::new(), 2, &[Var(1)]).shape));
        let chain = Arc::clone(&reader).chain(&nodes.here, cx);
        let id = nodes.here.new_sub_query();
        reader.begin();
        reader.leave(id);
        let query = query::part(cx, || nodes.here.new_query()).unwrap().id;
        let window = there.join_window(chain, query);
        let sender: Arc<dyn Replies> =
            Arc::new(Outbox::new(there, window, (chain, id), cx.shared()));
        let mut other = Table::with_rows(2, 1);
        other.set(Var(1), vertices(&[9]));
        assert!(matches!(sender.push(other, cx), Ok(Pushed::Taken)));

        let chain = Arc::new(nodes.chain(Vec::new(), 2, &[Var(1)]));
        let history = History::new(&chain, 0).unwrap();
        let mut table = Table::with_rows(2, 2);
        table.set(Var(1), vertices(&[3, 4]));
        let Ok(Parted { goes, stayed }) = history.part(table, 0) else {
            panic!("nothing that stays is read");
        };
        let found = Arc::new(Inbox::new(history.chain().shape));
        found.begin();
        let forks: Arc<dyn Forks> = Arc::new(Alone);
        Rejoin::begin(&found, stayed, &sender, (cx, &forks));
        assert!(matches!(found.push(goes, cx), Ok(Pushed::Taken)));
        found.end();
        let called = Arc::new(AtomicBool::new(false));
        let is_called = Arc::clone(&called);
        let resume = Box::new(move || is_called.store(true, Ordering::Relaxed));
        assert!(sender.when_room(resume).is_none(), "there is no room yet");

        let mut rows = Vec::new();
        for _ in 0..2 {
            let table = reader.ready(cx).unwrap().expect("it was sent");
            rows.extend(table.get(Var(1)).unwrap().iter().map(|id| id.number()));
        }
        assert_eq!(rows, [9, 3, 4]);
        assert!(called.load(Ordering::Relaxed), "there is room for another");
        sender.end();
    }
}
