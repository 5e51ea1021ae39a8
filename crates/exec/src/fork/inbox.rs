//! What sub-queries found, where the reader of the query takes it.
//!
//! Sub-queries of this process leave tables here. Those of others are heard of by messages, whose tables
//! are read by whoever takes them. A sub-query that went as a message may have had others set out where it
//! ran, and the message that tells of the end of one of these may be here before that of the first: each
//! has an id, and all have ended when none is missing.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, Weak};
use std::time::Duration;

use jindou_model::NodeId;
use rustc_hash::{FxHashMap, FxHashSet};

use super::chain::Shape;
use super::messages::{ChainId, ForkNode, SubQueryId};
use super::rejoin::{self, Rejoin};
use super::replies::{Pushed, Replies, Resume};
use super::wire::{self, SubQueryWireError, Work};
use crate::ExecError;
use crate::context::{Booked, Context, SharedContext};
use crate::table::Table;

/// Tables of sub-queries of this process that may wait for the reader.
const WAITING_TABLES: usize = 64;
/// Sub-queries at other nodes, those of sub-queries included, that are known of at a time.
const MOST_KNOWN: usize = 1 << 16;
/// How often a reader that waits for other nodes looks whether its query must end.
const LOOK: Duration = Duration::from_millis(10);

/// Where the sub-queries of one chain leave what they find.
pub(super) struct Inbox {
    /// Of the chain's tables.
    shape: Shape,
    state: Mutex<State>,
    /// Something came, or a sub-query ended.
    arrived: Condvar,
    /// How messages of other nodes come here, once one was asked.
    by_messages: OnceLock<ByMessages>,
}

/// How messages come to a chain.
struct ByMessages {
    node: Arc<ForkNode>,
    chain: ChainId,
    /// The query, whose counts get those of other nodes.
    query: Arc<SharedContext>,
}

/// Rows that wait.
enum Waiting {
    Table(Table),
    /// As they came.
    Message {
        from: NodeId,
        bytes: Vec<u8>,
        _held: Booked,
    },
}

#[derive(Default)]
struct State {
    tables: VecDeque<Waiting>,
    /// The first error; the reader gets it in place of rows.
    failure: Option<ExecError>,
    /// Sub-queries that have not ended, of those that are known of.
    under_way: usize,
    /// Those of them that went as messages.
    elsewhere: FxHashSet<SubQueryId>,
    /// Sub-queries of sub-queries that have ended, though these have not yet.
    ended_early: FxHashSet<SubQueryId>,
    /// Tables by node that wait.
    waiting: FxHashMap<u32, usize>,
    /// Sub-queries of this process that have no room for what they found.
    aside: VecDeque<Resume>,
    /// The reader, where it is no thread that waits.
    reader: Option<Arc<Rejoin>>,
    /// Those who join rows for this reader.
    rejoins: Vec<Weak<Rejoin>>,
    /// Nobody reads any more.
    closed: bool,
}

impl State {
    fn has_room(&self) -> bool {
        self.tables.len() < WAITING_TABLES
    }

    fn take(&mut self) -> Result<Option<Waiting>, ExecError> {
        if let Some(error) = self.failure.take() {
            return Err(error);
        }
        let next = self.tables.pop_front();
        if let Some(Waiting::Message { from, .. }) = &next
            && let Some(waiting) = self.waiting.get_mut(&from.0)
        {
            *waiting -= 1;
        }
        Ok(next)
    }

    /// One that went as a message has ended, after it had these set out.
    fn ended(&mut self, id: SubQueryId, had: &[SubQueryId]) {
        for other in had {
            if !self.ended_early.remove(other) && self.elsewhere.insert(*other) {
                self.under_way += 1;
            }
        }
        match self.elsewhere.remove(&id) {
            true => self.under_way -= 1,
            false => {
                self.ended_early.insert(id);
            }
        }
    }
}

impl Inbox {
    pub(super) fn new(shape: Shape) -> Self {
        Self {
            shape,
            state: Mutex::default(),
            arrived: Condvar::new(),
            by_messages: OnceLock::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state
            .lock()
            .expect("no thread panics while it holds replies")
    }

    /// Wakes the reader.
    fn wake(&self, state: MutexGuard<'_, State>) {
        let reader = state.reader.clone();
        drop(state);
        self.arrived.notify_all();
        if let Some(reader) = reader {
            reader.wake();
        }
    }

    /// Has a reader be woken that does not wait, until this is closed.
    pub(super) fn set_reader(&self, reader: Arc<Rejoin>) {
        self.lock().reader = Some(reader);
    }

    /// True once all sub-queries have ended and nothing of theirs is left to be read.
    pub(super) fn has_ended(&self) -> bool {
        let state = self.lock();
        state.under_way == 0 && state.tables.is_empty() && state.failure.is_none()
    }

    /// Tables that wait.
    #[cfg(test)]
    pub(super) fn waiting(&self) -> usize {
        self.lock().tables.len()
    }

    /// Rows that are there already.
    pub(super) fn ready(&self, cx: &Context) -> Result<Option<Table>, ExecError> {
        let next = self.lock().take()?;
        next.map(|waiting| self.open(waiting, cx)).transpose()
    }

    /// The next rows; `None` once all sub-queries have ended.
    pub(super) fn wait(&self, cx: &Context) -> Result<Option<Table>, ExecError> {
        let mut state = self.lock();
        loop {
            if let Some(waiting) = state.take()? {
                drop(state);
                return self.open(waiting, cx).map(Some);
            }
            if state.under_way == 0 {
                return Ok(None);
            }
            let expectation = "no thread panics while it holds replies";
            let waited = self.arrived.wait_timeout(state, LOOK);
            state = waited.expect(expectation).0;
            // Sub-queries of other processes do not see what ends the query here, and those of this one
            // may wait for a thread.
            cx.check()?;
        }
    }

    /// The table that waited; its sender may send another.
    fn open(&self, waiting: Waiting, cx: &Context) -> Result<Table, ExecError> {
        // Whatever it was, it may have been where a table of this process finds room.
        self.call_if_room(self.lock());
        let (from, bytes) = match waiting {
            Waiting::Table(table) => return Ok(table),
            Waiting::Message {
                from, ref bytes, ..
            } => (from, bytes),
        };
        let table = wire::rows_of_reply(bytes, self.shape, cx);
        if let Some(by) = self.by_messages.get() {
            by.node.credit(from, by.chain, 1, 0);
        }
        table
    }

    /// Has a sub-query of this process go on that waits for room, if there is some.
    fn call_if_room(&self, mut state: MutexGuard<'_, State>) {
        let next = state.has_room().then(|| state.aside.pop_front()).flatten();
        drop(state);
        next.into_iter().for_each(|resume| resume());
    }

    /// Nobody reads any more: the sub-queries of other nodes are to end.
    pub(super) fn close(&self) {
        let mut state = self.lock();
        let was_closed = std::mem::replace(&mut state.closed, true);
        let is_whole =
            state.elsewhere.is_empty() && state.waiting.values().all(|count| *count == 0);
        state.tables.clear();
        let aside = std::mem::take(&mut state.aside);
        let rejoins = std::mem::take(&mut state.rejoins);
        let _reader = state.reader.take();
        drop(state);
        aside.into_iter().for_each(|resume| resume());
        rejoin::wake_all(rejoins);
        if let Some(by) = self.by_messages.get()
            && !was_closed
        {
            let ended = by.query.is_finished().then(|| by.query.messages.id());
            by.node.close(by.chain, ended.flatten(), is_whole);
        }
    }

    /// Rows came from another node: the message, and where the table in it begins; false if nobody reads
    /// any more.
    pub(super) fn arrive(&self, from: NodeId, bytes: Vec<u8>) -> bool {
        let Some(by) = self.by_messages.get() else {
            return false;
        };
        let held = by.query.reserve(bytes.len());
        let mut state = self.lock();
        if state.closed {
            return false;
        }
        let waiting = state.waiting.entry(from.0).or_default();
        *waiting += 1;
        let most = by.node.limits().waiting_tables;
        let is_too_many = *waiting > 2 * most;
        match held {
            Ok(_held) if !is_too_many => {
                let message = Waiting::Message { from, bytes, _held };
                state.tables.push_back(message);
                self.wake(state);
            }
            Ok(_) => {
                drop(state);
                self.fail(SubQueryWireError::Flooded { node: from, most }.into());
            }
            Err(error) => {
                drop(state);
                self.fail(error);
            }
        }
        true
    }

    /// A sub-query has ended at another node, after it had others set out.
    pub(super) fn ended_elsewhere(&self, id: SubQueryId, had: &[SubQueryId], work: &Work) {
        let Some(by) = self.by_messages.get() else {
            return;
        };
        work.add_to(&by.query);
        let mut state = self.lock();
        state.ended(id, had);
        let known = state.elsewhere.len() + state.ended_early.len();
        match state.under_way {
            0 => self.wake(state),
            _ => drop(state),
        }
        if known > MOST_KNOWN {
            self.fail(SubQueryWireError::TooManySubQueries { most: MOST_KNOWN }.into());
        }
        // Whoever had it set out may have another.
        if id.node() != by.node.here() {
            by.node.credit(id.node(), by.chain, 0, 1);
        }
    }

    /// The query, once others have messages of it.
    pub(super) fn query(&self) -> Option<&Arc<SharedContext>> {
        self.by_messages.get().map(|by| &by.query)
    }

    /// Ends the query if sub-queries of it are at other nodes.
    pub(super) fn lost(&self, error: impl FnOnce() -> ExecError) {
        let is_elsewhere = !self.lock().elsewhere.is_empty();
        if is_elsewhere {
            self.fail(error());
        }
    }
}

impl Replies for Inbox {
    fn under_way(&self) -> usize {
        self.lock().under_way
    }

    fn begin(&self) {
        self.lock().under_way += 1;
    }

    fn end(&self) {
        let mut state = self.lock();
        state.under_way -= 1;
        match state.under_way {
            0 => self.wake(state),
            // It may have been called for room that it did not need.
            _ => self.call_if_room(state),
        }
    }

    fn fail(&self, error: ExecError) {
        let mut state = self.lock();
        state.failure.get_or_insert(error);
        self.wake(state);
    }

    fn push(&self, table: Table, _: &Context) -> Result<Pushed, ExecError> {
        let mut state = self.lock();
        if state.closed {
            return Ok(Pushed::Unread);
        }
        if !state.has_room() {
            return Ok(Pushed::Full(table));
        }
        state.tables.push_back(Waiting::Table(table));
        self.wake(state);
        Ok(Pushed::Taken)
    }

    fn when_room(&self, resume: Resume) -> Option<Resume> {
        let mut state = self.lock();
        if state.closed || state.has_room() {
            return Some(resume);
        }
        state.aside.push_back(resume);
        None
    }

    fn chain(self: Arc<Self>, node: &Arc<ForkNode>, cx: &Context) -> ChainId {
        let by = self.by_messages.get_or_init(|| ByMessages {
            chain: node.await_replies(&self),
            node: Arc::clone(node),
            query: Arc::clone(cx.shared()),
        });
        by.chain
    }

    fn leave(&self, id: SubQueryId) {
        self.lock().elsewhere.insert(id);
    }

    fn attend(&self, rejoin: &Arc<Rejoin>) {
        let mut state = self.lock();
        state.under_way += 1;
        rejoin::note(&mut state.rejoins, rejoin);
        if state.closed {
            drop(state);
            rejoin.wake();
        }
    }

    fn is_read(&self) -> bool {
        !self.lock().closed
    }
}

impl Drop for Inbox {
    fn drop(&mut self) {
        self.close();
    }
}
