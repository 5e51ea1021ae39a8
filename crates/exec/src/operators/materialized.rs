//! Rows that whoever asked for the execution has: a table at a time.

use std::sync::Arc;

use jindou_model::TermId;
use jindou_plan::physical::Var;

use crate::ExecError;
use crate::context::Context;
use crate::operator::Operator;
use crate::table::{Table, VarSet, batch_rows};

/// Solutions that are kept from one execution to the next: columns of one length.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MaterializedRows {
    /// A column for each variable of the plan's operator, in its order.
    pub columns: Vec<Vec<TermId>>,
    /// Their length.
    pub rows: usize,
}

/// Hands over the rows of the execution.
pub(super) struct Materialized {
    rows: Arc<MaterializedRows>,
    /// The columns that are wanted, each with its variable.
    columns: Vec<(usize, Var)>,
    next: usize,
    width: usize,
}

impl Materialized {
    pub(super) fn new(
        rows: Arc<MaterializedRows>,
        vars: &[Var],
        needed: &VarSet,
        width: usize,
    ) -> Self {
        assert_eq!(rows.columns.len(), vars.len(), "a column for each variable");
        let columns = vars.iter().copied().enumerate();
        Self {
            rows,
            columns: columns.filter(|(_, var)| needed.contains(*var)).collect(),
            next: 0,
            width,
        }
    }
}

impl Operator for Materialized {
    fn produce(&mut self, _: &Context) -> Result<Option<Table>, ExecError> {
        let end = self.rows.rows.min(self.next + batch_rows(self.width));
        if self.next == end {
            return Ok(None);
        }
        let mut table = Table::with_rows(self.width, end - self.next);
        for (column, var) in &self.columns {
            let ids = &self.rows.columns[*column][self.next..end];
            table.set(*var, ids.to_vec());
        }
        self.next = end;
        Ok(Some(table))
    }
}
