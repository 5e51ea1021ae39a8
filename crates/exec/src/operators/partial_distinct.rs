//! DISTINCT on one thread: which of its rows has it not met before?

use jindou_plan::physical::Var;

use super::dedup::Values;
use crate::ExecError;
use crate::context::Context;
use crate::discard::discard;
use crate::exchange::{Mode, Partial, Reduction};
use crate::rows::RowSet;
use crate::table::Table;

/// [`Partial`] of DISTINCT.
pub(super) struct PartialDistinct {
    vars: Vec<Var>,
    seen: RowSet,
    reduction: Reduction,
    /// No other thread has rows that are equal to its own.
    is_own: bool,
}

/// Rows for the reader.
pub(super) struct Sent {
    pub(super) table: Table,
    /// They are distinct, and none like them comes again.
    pub(super) is_distinct: bool,
}

impl PartialDistinct {
    /// Tells rows apart by these variables.
    pub(super) fn new(vars: &[Var], is_own: bool, cx: &Context) -> Self {
        Self {
            vars: vars.to_vec(),
            seen: RowSet::new(vars.len()),
            reduction: Reduction::new(Mode::Grow, Mode::Keep, is_own, cx),
            is_own,
        }
    }

    /// What becomes of so many more rows.
    fn decide(&mut self, rows: usize, cx: &Context) -> Mode {
        let bytes_with = || match self.seen.is_full(rows) {
            true => usize::MAX,
            false => self.seen.bytes_with(rows),
        };
        self.reduction.decide(rows, self.seen.len(), bytes_with, cx)
    }

    /// The rows that were not met before.
    fn fresh(&mut self, table: &Table, mode: Mode) -> Vec<u32> {
        let columns = Values::of(&self.vars, table);
        let mut values = Vec::with_capacity(self.vars.len());
        let is_fresh = |row: &u32| {
            columns.read(*row as usize, &mut values);
            match mode {
                Mode::Grow => self.seen.insert(&values).1,
                Mode::Keep | Mode::PassOn => self.seen.find(&values).is_none(),
            }
        };
        (0..table.rows() as u32).filter(is_fresh).collect()
    }
}

impl Partial for PartialDistinct {
    type Sent = Sent;

    fn take(&mut self, mut table: Table, cx: &Context) -> Result<Option<Sent>, ExecError> {
        cx.check()?;
        table.take_counts();
        let mode = self.decide(table.rows(), cx);
        if mode == Mode::PassOn {
            let bytes = self.seen.bytes();
            let seen = std::mem::replace(&mut self.seen, RowSet::new(self.vars.len()));
            discard(seen, bytes);
            self.reduction.book(0, cx);
        } else {
            let fresh = self.fresh(&table, mode);
            table.retain_rows(&fresh);
        }
        Ok((table.rows() > 0).then_some(Sent {
            table,
            is_distinct: self.is_own && mode == Mode::Grow,
        }))
    }

    fn finish(self, _: &Context) -> Result<Option<Sent>, ExecError> {
        Ok(None)
    }
}
