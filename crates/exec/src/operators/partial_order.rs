//! ORDER BY on one thread: its keys, and of its rows only those that may be among the first ones wanted.

use jindou_plan::physical::Var;

use super::sorter::{SortBy, Sorter};
use crate::ExecError;
use crate::context::Context;
use crate::exchange::Partial;
use crate::expr::Evaluator;
use crate::table::{Table, VarSet};

/// Of more first rows each thread would keep as many as there may be in all.
const MOST_FIRST: usize = 1 << 16;

/// What rows are sorted by, and what of them is handed over.
#[derive(Clone)]
pub(super) struct Sorted {
    pub(super) by: Vec<SortBy>,
    pub(super) limit: Option<usize>,
    /// What is wanted of a row, and its keys.
    pub(super) keep: VarSet,
    /// Columns of a row with its keys.
    pub(super) width: usize,
}

/// Keys that are computed, and the columns after those of the plan where they are put.
pub(super) type Computed = Vec<(Var, Evaluator)>;

impl Sorted {
    /// Rows with their keys, and nothing that is not wanted.
    pub(super) fn with_keys(&self, computed: &mut Computed, table: &mut Table, cx: &Context) {
        table.set_width(self.width);
        for (var, evaluator) in computed {
            let mut ids = Vec::new();
            evaluator.evaluate_column(table, table.rows(), &cx.expressions, &mut ids);
            table.set(*var, ids);
        }
        table.retain_columns(&self.keep);
    }
}

/// [`Partial`] of ORDER BY.
pub(super) struct PartialOrder {
    sorted: Sorted,
    computed: Computed,
    /// Where few first rows are wanted.
    first: Option<Sorter>,
}

/// What a thread has for the reader.
pub(super) enum Sent {
    /// Rows with their keys.
    Rows(Table),
    /// The first ones of its rows.
    First(Box<Sorter>),
}

impl PartialOrder {
    pub(super) fn new(sorted: &Sorted, computed: Computed) -> Self {
        let limit = sorted.limit.filter(|limit| *limit <= MOST_FIRST);
        Self {
            first: limit.map(|_| Sorter::of_part(&sorted.by, limit, &sorted.keep)),
            sorted: sorted.clone(),
            computed,
        }
    }
}

impl Partial for PartialOrder {
    type Sent = Sent;

    fn take(&mut self, mut table: Table, cx: &Context) -> Result<Option<Sent>, ExecError> {
        cx.check()?;
        self.sorted.with_keys(&mut self.computed, &mut table, cx);
        let Some(first) = &mut self.first else {
            cx.book_table(&mut table)?;
            return Ok(Some(Sent::Rows(table)));
        };
        first.push(&table, cx)?;
        Ok(None)
    }

    fn finish(self, cx: &Context) -> Result<Option<Sent>, ExecError> {
        let Some(mut first) = self.first else {
            return Ok(None);
        };
        first.finish(cx)?;
        Ok(Some(Sent::First(Box::new(first))))
    }
}
