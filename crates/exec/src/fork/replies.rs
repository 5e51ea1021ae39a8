//! What sub-queries found, on its way to whoever reads the query.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard};

use crate::ExecError;
use crate::context::Context;
use crate::table::Table;

/// Tables that may wait for the reader.
const WAITING_TABLES: usize = 64;

/// Where the sub-queries of one chain leave what they find.
#[derive(Default)]
pub(super) struct Replies {
    state: Mutex<State>,
    /// Something came, or a sub-query ended.
    arrived: Condvar,
    /// There is room again, or nobody reads any more.
    room: Condvar,
}

#[derive(Default)]
struct State {
    tables: VecDeque<Table>,
    /// The first error; the reader gets it in place of rows.
    failure: Option<ExecError>,
    /// Sub-queries that have not ended.
    under_way: usize,
    /// Nobody reads any more.
    closed: bool,
}

impl Replies {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state
            .lock()
            .expect("no thread panics while it holds replies")
    }

    /// Sub-queries that have not ended.
    pub(super) fn under_way(&self) -> usize {
        self.lock().under_way
    }

    /// A sub-query sets out.
    pub(super) fn begin(&self) {
        self.lock().under_way += 1;
    }

    /// A sub-query has ended.
    pub(super) fn end(&self) {
        let mut state = self.lock();
        state.under_way -= 1;
        if state.under_way == 0 {
            self.arrived.notify_all();
        }
    }

    /// Ends the query.
    pub(super) fn fail(&self, error: ExecError) {
        self.lock().failure.get_or_insert(error);
        self.arrived.notify_all();
    }

    /// Hands rows over once there is room; false if nobody reads any more.
    pub(super) fn push(&self, table: Table, cx: &Context) -> bool {
        let mut state = self.lock();
        while state.tables.len() >= WAITING_TABLES && !state.closed {
            drop(state);
            // Other work may be done while the reader has rows enough.
            let worked = cx.work_meanwhile();
            state = self.lock();
            if !worked && state.tables.len() >= WAITING_TABLES && !state.closed {
                state = self
                    .room
                    .wait(state)
                    .expect("no thread panics while it holds replies");
            }
        }
        if state.closed {
            return false;
        }
        state.tables.push_back(table);
        self.arrived.notify_one();
        true
    }

    /// Rows that are there already.
    pub(super) fn ready(&self) -> Result<Option<Table>, ExecError> {
        self.take(&mut self.lock())
    }

    /// The next rows; `None` once all sub-queries have ended.
    pub(super) fn wait(&self) -> Result<Option<Table>, ExecError> {
        let mut state = self.lock();
        loop {
            let table = self.take(&mut state)?;
            if table.is_some() || state.under_way == 0 {
                return Ok(table);
            }
            state = self
                .arrived
                .wait(state)
                .expect("no thread panics while it holds replies");
        }
    }

    fn take(&self, state: &mut State) -> Result<Option<Table>, ExecError> {
        if let Some(error) = state.failure.take() {
            return Err(error);
        }
        let table = state.tables.pop_front();
        if state.tables.len() + 1 == WAITING_TABLES {
            self.room.notify_all();
        }
        Ok(table)
    }

    /// Nobody reads any more.
    pub(super) fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        state.tables.clear();
        self.room.notify_all();
    }
}
