//! What a sub-query found, on its way to the reader of the query at another node.
//!
//! A [`Window`] bounds what is on the way: the sub-queries of one chain at one node share it, and a table
//! that the reader took makes room for another. Where there is none, sub-queries are put aside.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, Weak};

use jindou_model::NodeId;

use super::messages::{ChainId, ForkNode, QueryId, SubQueryId};
use super::rejoin::{self, Rejoin};
use super::replies::{Pushed, Replies, Resume};
use super::wire::{self, Failure, Message, Work};
use crate::ExecError;
use crate::context::{Context, SharedContext};
use crate::table::Table;

/// What is on the way from one node to the reader of a chain.
pub(super) struct Window {
    query: QueryId,
    /// Tables that may be on the way.
    most: usize,
    state: Mutex<WindowState>,
}

#[derive(Default)]
struct WindowState {
    /// Sub-queries of the chain here that have not ended.
    users: usize,
    /// Tables that the reader has not taken yet.
    on_the_way: usize,
    /// Sub-queries that set out here and have not ended.
    under_way: usize,
    /// Sub-queries that have no room for what they found.
    aside: VecDeque<Resume>,
    /// Those who join rows here for the reader.
    rejoins: Vec<Weak<Rejoin>>,
    /// Nobody reads any more.
    closed: bool,
    /// The query has ended here.
    is_of_ended_query: bool,
}

impl Window {
    pub(super) fn new(query: QueryId, most: usize) -> Self {
        Self {
            query,
            most,
            state: Mutex::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, WindowState> {
        self.state
            .lock()
            .expect("no thread panics while it holds a window")
    }

    pub(super) fn query(&self) -> QueryId {
        self.query
    }

    /// One more sub-query has it, until it says that it has ended.
    pub(super) fn join(&self) {
        self.lock().users += 1;
    }

    fn leave(&self) {
        self.lock().users -= 1;
        // It may have been called for room that it did not need.
        self.call(1);
    }

    /// Has so many go on that wait for room, as far as there is some.
    fn call(&self, count: usize) {
        let mut state = self.lock();
        let room = self.most.saturating_sub(state.on_the_way);
        let count = match state.closed {
            true => state.aside.len(),
            false => count.min(room).min(state.aside.len()),
        };
        let called: Vec<Resume> = state.aside.drain(..count).collect();
        drop(state);
        called.into_iter().for_each(|resume| resume());
    }

    /// True if nothing that comes would change what happens.
    pub(super) fn is_idle(&self) -> bool {
        let state = self.lock();
        state.users == 0 && (state.closed || (state.on_the_way == 0 && state.under_way == 0))
    }

    /// True if a sub-query that set out here has not ended, as far as it is known, and somebody reads.
    pub(super) fn has_under_way(&self) -> bool {
        let state = self.lock();
        !state.closed && state.under_way > 0
    }

    /// The reader took so many tables, and so many sub-queries have ended.
    pub(super) fn credit(&self, tables: usize, ended: usize) {
        let mut state = self.lock();
        state.on_the_way = state.on_the_way.saturating_sub(tables);
        state.under_way = state.under_way.saturating_sub(ended);
        drop(state);
        self.call(tables);
    }

    /// Nobody reads any more.
    pub(super) fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        let rejoins = std::mem::take(&mut state.rejoins);
        drop(state);
        self.call(0);
        rejoin::wake_all(rejoins);
    }

    /// Its query has ended here.
    pub(super) fn close_with_query(&self) {
        self.lock().is_of_ended_query = true;
        self.close();
    }

    /// True if its query ended here, and its reader, who joins rows for the query at another node, may not know of
    /// that: what ends there looks as if it were whole.
    fn has_lost_its_query(&self, reader: NodeId) -> bool {
        reader != self.query.node() && self.lock().is_of_ended_query
    }

    /// Takes the room of a table.
    fn take_room(&self) -> Room {
        let mut state = self.lock();
        if state.closed {
            return Room::Unread;
        }
        if state.on_the_way >= self.most {
            return Room::Full;
        }
        state.on_the_way += 1;
        Room::Taken
    }

    fn when_room(&self, resume: Resume) -> Option<Resume> {
        let mut state = self.lock();
        if state.closed || state.on_the_way < self.most {
            return Some(resume);
        }
        state.aside.push_back(resume);
        None
    }
}

enum Room {
    Taken,
    Full,
    Unread,
}

/// Where a sub-query of another node's query leaves what it finds.
pub(super) struct Outbox {
    node: Arc<ForkNode>,
    window: Arc<Window>,
    chain: ChainId,
    id: SubQueryId,
    /// What of the query is here.
    query: Arc<SharedContext>,
    state: Mutex<OutboxState>,
}

#[derive(Default)]
struct OutboxState {
    /// It, and sub-queries of it that are in this process: those that have not ended.
    here: usize,
    /// Sub-queries of it that went as messages.
    had: Vec<SubQueryId>,
}

impl Outbox {
    /// For a sub-query that begins, which has joined the window.
    pub(super) fn new(
        node: &Arc<ForkNode>,
        window: Arc<Window>,
        (chain, id): (ChainId, SubQueryId),
        query: &Arc<SharedContext>,
    ) -> Self {
        let state = OutboxState {
            here: 1,
            had: Vec::new(),
        };
        Self {
            node: Arc::clone(node),
            window,
            chain,
            id,
            query: Arc::clone(query),
            state: Mutex::new(state),
        }
    }

    fn lock(&self) -> MutexGuard<'_, OutboxState> {
        self.state
            .lock()
            .expect("no thread panics while it holds an outbox")
    }
}

impl Outbox {
    /// Rows as a message.
    fn written(&self, table: Table, cx: &Context) -> Result<Vec<u8>, ExecError> {
        let encoded = table.encode(cx.terms(), cx)?;
        drop(table);
        let rows = Message::Rows { chain: self.chain };
        Ok(wire::write(&rows, &[encoded.bytes()], self.node.limits())?)
    }
}

impl Replies for Outbox {
    fn under_way(&self) -> usize {
        let state = self.window.lock();
        state.under_way + rejoin::alive(&state.rejoins)
    }

    fn begin(&self) {
        self.lock().here += 1;
    }

    fn end(&self) {
        let mut state = self.lock();
        state.here -= 1;
        if state.here > 0 {
            return;
        }
        let had = std::mem::take(&mut state.had);
        drop(state);
        if self.window.has_lost_its_query(self.chain.node()) {
            let node = self.node.here();
            self.fail(ExecError::NodeLost { node });
        }
        let ended = Message::Ended {
            chain: self.chain,
            id: self.id,
            had,
            work: Work::take_from(&self.query),
        };
        self.node.send(self.chain.node(), &ended, &[]);
        self.window.leave();
        self.node.forget_window(self.chain);
    }

    fn fail(&self, error: ExecError) {
        let failed = Message::Failed {
            chain: self.chain,
            failure: Failure::of(error),
        };
        self.node.send(self.chain.node(), &failed, &[]);
    }

    fn push(&self, table: Table, cx: &Context) -> Result<Pushed, ExecError> {
        match self.window.take_room() {
            Room::Taken => (),
            Room::Full => return Ok(Pushed::Full(table)),
            Room::Unread => return Ok(Pushed::Unread),
        }
        match self.written(table, cx) {
            Ok(message) => {
                self.node.send_written(self.chain.node(), message);
                Ok(Pushed::Taken)
            }
            Err(error) => {
                self.window.credit(1, 0);
                Err(error)
            }
        }
    }

    fn when_room(&self, resume: Resume) -> Option<Resume> {
        self.window.when_room(resume)
    }

    fn chain(self: Arc<Self>, _: &Arc<ForkNode>, _: &Context) -> ChainId {
        self.chain
    }

    fn leave(&self, id: SubQueryId) {
        self.window.lock().under_way += 1;
        let mut state = self.lock();
        state.had.push(id);
        state.here -= 1;
        debug_assert!(state.here > 0, "the one that had it set out has not ended");
    }

    fn attend(&self, rejoin: &Arc<Rejoin>) {
        self.begin();
        let mut state = self.window.lock();
        rejoin::note(&mut state.rejoins, rejoin);
        if state.closed {
            drop(state);
            rejoin.wake();
        }
    }

    fn is_read(&self) -> bool {
        !self.window.lock().closed
    }
}
