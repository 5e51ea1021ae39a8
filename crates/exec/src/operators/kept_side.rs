//! The side of a join that is kept: read once, and met by the rows of one thread or of several.
//!
//! It is in memory, where it fits, and any number of threads let their rows stream past it. Otherwise its rows are
//! in parts on disk, and one thread takes these and all streaming rows.

use std::any::Any;
use std::sync::Arc;

use jindou_plan::physical::Var;
use parking_lot::{Mutex, RwLock, RwLockReadGuard, RwLockWriteGuard};

use super::two_sided::{KeptRows, put_into_parts};
use crate::ExecError;
use crate::context::{Booked, Context};
use crate::exchange::{Readiness, Shared};
use crate::operator::Boxed;
use crate::spill::{Partitions, Run, RunReader, batch_rows};
use crate::table::Table;

/// The kept side, and where its rows come from.
pub(super) struct KeptSide<K> {
    pub(super) keys: Vec<Var>,
    /// Rows of the streaming side that meet nothing are handed over too.
    pub(super) left: bool,
    state: Mutex<State>,
    rows: RwLock<InMemory<K>>,
}

/// Rows, and what is booked for them.
pub(super) struct InMemory<K> {
    pub(super) rows: K,
    pub(super) booked: Booked,
}

enum State {
    Unread(Boxed),
    /// All rows are in memory, or whoever has the parts takes some at a time.
    Read,
    OnDisk(Vec<Run>),
}

impl<K: KeptRows> KeptSide<K> {
    pub(super) fn new(input: Boxed, rows: K, (keys, left): (&[Var], bool), cx: &Context) -> Self {
        Self {
            keys: keys.to_vec(),
            left,
            state: Mutex::new(State::Unread(input)),
            rows: RwLock::new(InMemory {
                rows,
                booked: cx.spilling(),
            }),
        }
    }

    pub(super) fn get(&self) -> RwLockReadGuard<'_, InMemory<K>> {
        self.rows.read()
    }

    pub(super) fn get_mut(&self) -> RwLockWriteGuard<'_, InMemory<K>> {
        self.rows.write()
    }

    /// Reads all of it, if nobody has yet.
    pub(super) fn read(&self, cx: &Context) -> Result<(), ExecError> {
        let mut state = self.state.lock();
        if let State::Unread(input) = &mut *state {
            let parts = self.read_from(input, cx)?;
            *state = parts.map_or(State::Read, State::OnDisk);
        }
        Ok(())
    }

    /// The parts that its rows are in, for the one who takes them; `None` if they are in memory.
    pub(super) fn take_parts(&self) -> Option<Vec<Run>> {
        let mut state = self.state.lock();
        match std::mem::replace(&mut *state, State::Read) {
            State::OnDisk(parts) => Some(parts),
            other => {
                *state = other;
                None
            }
        }
    }

    /// True if no streaming row can find anything, or is handed over.
    pub(super) fn meets_nothing(&self) -> bool {
        !self.left && self.get().rows.is_empty()
    }

    /// The rows, in memory if they fit there, and otherwise in parts.
    fn read_from(&self, input: &mut Boxed, cx: &Context) -> Result<Option<Vec<Run>>, ExecError> {
        let mut kept = self.rows.write();
        while let Some(table) = input.next(cx)? {
            cx.check()?;
            if !kept.takes(&table, cx)? {
                return kept.put_on_disk(&self.keys, (table, input), cx).map(Some);
            }
        }
        Ok(None)
    }

    /// Lets go of all rows in memory.
    pub(super) fn clear(&self, cx: &Context) -> Result<(), ExecError> {
        self.rows.write().clear(cx)
    }

    /// Takes as many kept rows as fit, one table at least; gives the first table that does not.
    pub(super) fn take_rows(
        &self,
        first: Option<Table>,
        rest: &mut RunReader,
        cx: &Context,
    ) -> Result<Option<Table>, ExecError> {
        let mut kept = self.rows.write();
        let mut next = match first {
            Some(table) => Some(table),
            None => rest.next(cx)?,
        };
        while let Some(table) = next {
            if !kept.takes(&table, cx)? {
                if !kept.rows.is_empty() {
                    return Ok(Some(table));
                }
                kept.rows.add(&table);
            }
            next = rest.next(cx)?;
        }
        Ok(None)
    }
}

impl<K: KeptRows> InMemory<K> {
    /// Takes more rows, if there is room for them.
    fn takes(&mut self, table: &Table, cx: &Context) -> Result<bool, ExecError> {
        let fits =
            !self.rows.is_full(table) && cx.room(&mut self.booked, self.rows.bytes_with(table))?;
        if fits {
            self.rows.add(table);
        }
        Ok(fits)
    }

    fn clear(&mut self, cx: &Context) -> Result<(), ExecError> {
        self.rows.clear();
        cx.room(&mut self.booked, 0).map(drop)
    }

    /// Puts what there is and what comes into parts.
    fn put_on_disk(
        &mut self,
        keys: &[Var],
        (first, rest): (Table, &mut Boxed),
        cx: &Context,
    ) -> Result<Vec<Run>, ExecError> {
        let mut parts = Partitions::new(cx, 0, batch_rows(cx, first.width()))?;
        let mut put = |table: &Table| {
            cx.check()?;
            put_into_parts(&mut parts, keys, table)
        };
        while let Some(table) = self.rows.pop() {
            put(&table)?;
        }
        put(&first)?;
        drop(first);
        while let Some(table) = rest.next(cx)? {
            put(&table)?;
        }
        self.clear(cx)?;
        parts.finish()
    }
}

impl<K: KeptRows> Shared for KeptSide<K> {
    fn make_ready(&self, cx: &Context) -> Result<Readiness, ExecError> {
        self.read(cx)?;
        Ok(match &*self.state.lock() {
            State::OnDisk(_) => Readiness::One,
            _ if self.meets_nothing() => Readiness::Nobody,
            _ => Readiness::All,
        })
    }

    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync> {
        self
    }
}
