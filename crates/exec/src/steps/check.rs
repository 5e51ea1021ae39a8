//! Filters by the graph: does this edge exist, has this vertex this type?

use jindou_model::{IdRanges, Neighbours};
use jindou_plan::physical::{Requirement, Side, Slot};

use super::{ResolvedSide, required_ids};
use crate::ExecError;
use crate::context::Context;
use crate::operator::{Boxed, Operator};
use crate::table::{Table, VarSet};

/// [`jindou_plan::physical::Step::Check`].
pub(crate) struct Check {
    input: Boxed,
    side: ResolvedSide,
    to: Slot,
    keep: VarSet,
}

impl Check {
    pub(crate) fn new(input: Boxed, side: Side, to: Slot, keep: VarSet, cx: &Context) -> Self {
        Self {
            input,
            side: ResolvedSide::new(&side, cx),
            to,
            keep,
        }
    }

    /// The rows whose edge exists.
    fn rows(&self, table: &Table, cx: &Context) -> Vec<u32> {
        let Some(predicate) = self.side.predicate else {
            return Vec::new();
        };
        let count = table.rows();
        let mut lists: Vec<Neighbours<'_>> = Vec::new();
        match self.side.from {
            Slot::Const(id) => {
                let list = cx
                    .source
                    .neighbours(predicate, self.side.direction, cx.constant(id));
                lists.resize(count, list);
            }
            Slot::Var(var) => match table.get(var) {
                Some(column) => {
                    cx.source
                        .locate(predicate, self.side.direction, column, &mut lists);
                }
                None => return Vec::new(),
            },
        }
        (0..count as u32)
            .filter(|row| lists[*row as usize].contains(cx.slot(self.to, table, *row as usize)))
            .collect()
    }
}

impl Operator for Check {
    fn produce(&mut self, cx: &Context) -> Result<Option<Table>, ExecError> {
        cx.check()?;
        let Some(mut table) = self.input.next(cx)? else {
            return Ok(None);
        };
        let rows = self.rows(&table, cx);
        table.retain_columns(&self.keep);
        table.retain_rows(&rows);
        Ok(Some(table))
    }
}

/// [`jindou_plan::physical::Step::Test`].
pub(crate) struct Test {
    input: Boxed,
    slot: Slot,
    allowed: Option<IdRanges>,
    keep: VarSet,
}

impl Test {
    pub(crate) fn new(
        input: Boxed,
        slot: Slot,
        requires: &[Requirement],
        keep: VarSet,
        cx: &Context,
    ) -> Self {
        Self {
            input,
            slot,
            allowed: required_ids(requires, false, None, cx),
            keep,
        }
    }
}

impl Operator for Test {
    fn produce(&mut self, cx: &Context) -> Result<Option<Table>, ExecError> {
        cx.check()?;
        let Some(mut table) = self.input.next(cx)? else {
            return Ok(None);
        };
        if let Some(allowed) = &self.allowed {
            let rows: Vec<u32> = (0..table.rows() as u32)
                .filter(|row| allowed.contains(cx.slot(self.slot, &table, *row as usize)))
                .collect();
            table.retain_rows(&rows);
        }
        table.retain_columns(&self.keep);
        Ok(Some(table))
    }
}
