//! How do several threads take the rows that one operator finds?
//!
//! Whoever needs rows asks the operator, while the others wait, and leaves a part of what comes to them.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::ExecError;
use crate::context::Context;
use crate::operator::{Boxed, Operator};
use crate::table::Table;

/// Parts of a table for each thread: the more, the more even the shares.
const PARTS_PER_THREAD: usize = 8;

/// An operator that several threads ask.
pub(crate) struct SharedRows {
    threads: usize,
    state: Mutex<State>,
}

struct State {
    input: Boxed,
    /// A table of which some rows were taken, and how many.
    waiting: Option<(Table, usize)>,
    is_over: bool,
}

impl SharedRows {
    pub(crate) fn new(input: Boxed, threads: usize) -> Self {
        Self {
            threads,
            state: Mutex::new(State {
                input,
                waiting: None,
                is_over: false,
            }),
        }
    }

    /// The next rows for whoever asks.
    fn next(&self, cx: &Context) -> Result<Option<Table>, ExecError> {
        let mut state = self.state.lock();
        let (table, taken) = match state.waiting.take() {
            Some(waiting) => waiting,
            None if state.is_over => return Ok(None),
            None => match state.input.next(cx)? {
                Some(table) => (table, 0),
                None => {
                    state.is_over = true;
                    return Ok(None);
                }
            },
        };
        let part = table
            .rows()
            .div_ceil(self.threads * PARTS_PER_THREAD)
            .max(1);
        if taken == 0 && part >= table.rows() {
            return Ok(Some(table));
        }
        let end = (taken + part).min(table.rows());
        let rows: Vec<u32> = (taken as u32..end as u32).collect();
        let some = table.gather_whole(&rows);
        if end < table.rows() {
            state.waiting = Some((table, end));
        }
        Ok(Some(some))
    }
}

/// Where one of the threads gets its rows.
pub(crate) struct TakeRows(pub(crate) Arc<SharedRows>);

impl Operator for TakeRows {
    fn produce(&mut self, cx: &Context) -> Result<Option<Table>, ExecError> {
        cx.check()?;
        self.0.next(cx)
    }
}
