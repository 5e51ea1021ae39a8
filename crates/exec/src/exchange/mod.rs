//! How do the operators between a source and a blocking operator run on several threads?
//!
//! Each thread has a chain of the same operators, all of which take their rows from one source that is
//! cut into [`Morsels`], and a [`Partial`]: the blocking operator's part on that thread. What partials
//! send goes to the reader, which is one of the threads and puts it together. Threads that are busy
//! with other queries are not waited for: the others take their morsels. What all chains read, as the kept
//! sides of joins, the reader makes ready before the others begin.

mod morsels;
mod reduction;
mod rows;

use std::any::Any;
use std::ops::RangeInclusive;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex};

use jindou_plan::Stack;

pub(crate) use morsels::{Ids, Morsels, Rows};
pub(crate) use reduction::{Mode, Reduction};
pub(crate) use rows::{SharedRows, TakeRows};

use crate::ExecError;
use crate::context::Context;
use crate::execution::Root;
use crate::operator::{Boxed, Operator};
use crate::table::{BATCH_BYTES, Table};
use crate::workers::Workers;

/// Messages that may wait between the threads and the reader.
const WAITING_MESSAGES: RangeInclusive<u64> = 2..=64;
/// If each is as large as a table can be, they take this part of the query's memory.
const WAITING_PART: u64 = 16;

/// The part of a blocking operator on one thread.
pub(crate) trait Partial: Send + 'static {
    /// What the reader gets of it.
    type Sent: Send + 'static;

    /// It does more than to hand rows over.
    const IS_WORK: bool = true;

    /// Takes rows that its thread found; gives what the reader is to have at once, if anything.
    fn take(&mut self, table: Table, cx: &Context) -> Result<Option<Self::Sent>, ExecError>;

    /// What it has for the reader once all rows of its thread are in.
    fn finish(self, cx: &Context) -> Result<Option<Self::Sent>, ExecError>;
}

/// What the chains of all threads read.
pub(crate) trait Shared: Send + Sync {
    /// Makes it ready; says who may go on with it.
    fn make_ready(&self, cx: &Context) -> Result<Readiness, ExecError>;

    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync>;
}

/// Who may go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Readiness {
    /// All threads.
    All,
    /// One thread, which has all rows then.
    One,
    /// Nobody: no row comes out of it.
    Nobody,
}

/// Hands all rows to the reader as they are found.
pub(crate) struct PassOn;

impl Partial for PassOn {
    type Sent = Table;

    const IS_WORK: bool = false;

    fn take(&mut self, table: Table, _: &Context) -> Result<Option<Table>, ExecError> {
        Ok(Some(table))
    }

    fn finish(self, _: &Context) -> Result<Option<Table>, ExecError> {
        Ok(None)
    }
}

/// What one thread does: its chain, and what takes the rows of that.
struct Share<P> {
    chain: Root,
    /// `None` once all rows are in.
    partial: Option<P>,
}

/// What came of a step of a share.
enum Progress<S> {
    Sent(S),
    /// Some rows were taken.
    Taken,
    End,
}

impl<P: Partial> Share<P> {
    /// Goes on by one table.
    fn step(&mut self, cx: &Context) -> Result<Progress<P::Sent>, ExecError> {
        let Some(partial) = &mut self.partial else {
            return Ok(Progress::End);
        };
        let sent = match self.chain.next(cx)? {
            Some(table) if table.rows() == 0 => None,
            Some(table) => partial.take(table, cx)?,
            None => match self.partial.take().map(|partial| partial.finish(cx)) {
                Some(last) => return Ok(last?.map_or(Progress::End, Progress::Sent)),
                None => return Ok(Progress::End),
            },
        };
        Ok(sent.map_or(Progress::Taken, Progress::Sent))
    }
}

type Message<S> = Result<S, ExecError>;

/// Collects what the partials of several threads send, that of this one among them.
pub(crate) struct Exchange<P: Partial> {
    own: Option<Share<P>>,
    others: Option<Vec<Share<P>>>,
    /// In the order in which it is made ready.
    shared: Vec<Arc<dyn Shared>>,
    cx: Arc<Context>,
    workers: Arc<Workers>,
    started: Option<Started<P>>,
}

/// The threads that were asked to help.
struct Started<P: Partial> {
    receiver: Receiver<Message<P::Sent>>,
    door: Arc<Door<P>>,
}

/// Where a thread that begins finds its share, and its way to the reader.
struct Door<P: Partial> {
    /// Empty once help comes too late, so that nobody waits for threads that are busy with other
    /// queries, and what waits for them holds nothing of a query that has ended.
    inside: Mutex<Option<Inside<P>>>,
    /// Nobody reads any more.
    is_left: AtomicBool,
}

/// What the threads that have not begun will need.
struct Inside<P: Partial> {
    shares: Vec<Share<P>>,
    sender: SyncSender<Message<P::Sent>>,
    cx: Arc<Context>,
}

impl<P: Partial> Door<P> {
    /// Does the share of a thread that begins now, if help is still wanted.
    fn help(&self) {
        let mut inside = self.inside.lock().expect("nobody panics at the door");
        let Some(Inside { shares, sender, cx }) = inside.as_mut() else {
            return;
        };
        let Some(share) = shares.pop() else {
            return;
        };
        let (sender, cx) = (sender.clone(), Arc::clone(cx));
        drop(inside);
        help(share, &cx, &sender, &self.is_left);
    }

    fn close(&self) {
        let inside = self
            .inside
            .lock()
            .expect("nobody panics at the door")
            .take();
        // Chains may be long in being dropped.
        drop(inside);
    }
}

impl<P: Partial> Exchange<P> {
    /// What finds rows on several threads: a chain and a partial for each, and what all chains read.
    ///
    /// # Panics
    /// If there is none.
    pub(crate) fn new(
        shares: Vec<(Boxed, P)>,
        shared: Vec<Arc<dyn Shared>>,
        stack: Stack,
        (cx, workers): (&Arc<Context>, &Arc<Workers>),
    ) -> Self {
        let mut shares = shares.into_iter();
        let share = |(chain, partial), stack| Share {
            chain: Root::new(chain, stack),
            partial: Some(partial),
        };
        // The reader is on the stack of the whole plan already.
        let own = shares.next().map(|own| share(own, Stack::plain()));
        assert!(own.is_some(), "the reader has a share");
        Self {
            own,
            others: Some(shares.map(|other| share(other, stack)).collect()),
            shared,
            cx: Arc::clone(cx),
            workers: Arc::clone(workers),
            started: None,
        }
    }

    fn start(&mut self, cx: &Context) -> Result<(), ExecError> {
        let Some(mut others) = self.others.take() else {
            return Ok(());
        };
        for shared in std::mem::take(&mut self.shared) {
            if shared.make_ready(cx)? != Readiness::All {
                others.clear();
                break;
            }
        }
        let waiting = self.cx.memory_bytes() / WAITING_PART / BATCH_BYTES as u64;
        let waiting = waiting.clamp(*WAITING_MESSAGES.start(), *WAITING_MESSAGES.end());
        let (sender, receiver) = sync_channel(waiting as usize);
        let helpers = others.len();
        let door = Arc::new(Door {
            inside: Mutex::new(Some(Inside {
                shares: others,
                sender,
                cx: Arc::clone(&self.cx),
            })),
            is_left: AtomicBool::new(false),
        });
        for _ in 0..helpers {
            let door = Arc::clone(&door);
            self.workers.spawn(move || door.help());
        }
        self.started = Some(Started { receiver, door });
        Ok(())
    }

    /// What a partial sends; `None` at the end.
    ///
    /// # Errors
    /// What ends the query on any of the threads.
    pub(crate) fn receive(&mut self, cx: &Context) -> Result<Option<P::Sent>, ExecError> {
        self.start(cx)?;
        let Some(started) = &self.started else {
            return Ok(None);
        };
        while let Some(own) = &mut self.own {
            // What others have ready is taken first, so that they need not wait.
            if let Ok(message) = started.receiver.try_recv() {
                return message.map(Some);
            }
            match own.step(cx)? {
                Progress::Sent(sent) => return Ok(Some(sent)),
                Progress::Taken => {}
                Progress::End => {
                    self.own = None;
                    started.door.close();
                }
            }
        }
        // The others look at the limits, and an error of theirs is a message.
        cx.check()?;
        started.receiver.recv().ok().transpose()
    }
}

impl<P: Partial> Drop for Exchange<P> {
    fn drop(&mut self) {
        if let Some(started) = &self.started {
            started.door.close();
            started.door.is_left.store(true, Ordering::Relaxed);
        }
    }
}

impl Operator for Exchange<PassOn> {
    fn produce(&mut self, cx: &Context) -> Result<Option<Table>, ExecError> {
        self.receive(cx)
    }
}

/// Runs a share to its end and sends what comes of it, as long as somebody reads.
fn help<P: Partial>(
    mut share: Share<P>,
    cx: &Context,
    sender: &SyncSender<Message<P::Sent>>,
    is_left: &AtomicBool,
) {
    while !is_left.load(Ordering::Relaxed) {
        // A panic must reach the reader: rows that are silently missing are a wrong answer.
        let message = match catch_unwind(AssertUnwindSafe(|| share.step(cx))) {
            Ok(Ok(Progress::End)) => return,
            Ok(Ok(Progress::Taken)) => continue,
            Ok(Ok(Progress::Sent(sent))) => Ok(sent),
            Ok(Err(error)) => Err(error),
            Err(_) => Err(ExecError::Panicked),
        };
        let failed = message.is_err();
        // Without a reader the query has ended.
        if send(message, cx, sender).is_err() || failed {
            return;
        }
    }
}

/// Sends a message; as long as there is no room for it, there may be other work.
fn send<S>(message: Message<S>, cx: &Context, sender: &SyncSender<Message<S>>) -> Result<(), Gone> {
    let mut message = message;
    loop {
        match sender.try_send(message) {
            Ok(()) => return Ok(()),
            Err(TrySendError::Disconnected(_)) => return Err(Gone),
            Err(TrySendError::Full(back)) if cx.work_meanwhile() => message = back,
            Err(TrySendError::Full(back)) => return sender.send(back).map_err(|_| Gone),
        }
    }
}

/// Nobody reads the rows any more.
struct Gone;

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;
    use std::sync::mpsc::channel;

    use super::*;
    use crate::test_world::World;

    /// Has no rows, and counts itself when it is dropped.
    struct Counted(Arc<AtomicUsize>);

    impl Operator for Counted {
        fn produce(&mut self, _: &Context) -> Result<Option<Table>, ExecError> {
            Ok(None)
        }
    }

    impl Drop for Counted {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    #[test]
    fn what_waits_for_busy_threads_holds_nothing_of_a_query_that_has_ended() {
        let world = World::new(1 << 20);
        let workers = Arc::new(Workers::new(1));
        let (end, busy) = channel::<()>();
        workers.spawn(move || {
            let _ended = busy.recv();
        });
        for is_read in [true, false] {
            let dropped = Arc::new(AtomicUsize::new(0));
            let share = || (Box::new(Counted(Arc::clone(&dropped))) as Boxed, PassOn);
            let shares = vec![share(), share()];
            let around = (&world.cx, &workers);
            let mut exchange = Exchange::new(shares, Vec::new(), Stack::plain(), around);
            exchange.start(&world.cx).expect("nothing is shared");
            if is_read {
                assert!(
                    exchange
                        .receive(&world.cx)
                        .expect("no limit is met")
                        .is_none()
                );
            }
            drop(exchange);
            assert_eq!(dropped.load(Ordering::SeqCst), 2);
        }
        drop(end);
    }
}
