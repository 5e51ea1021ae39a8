//! VALUES: a join with the few rows that the query itself holds.

use jindou_model::TermId;
use jindou_plan::physical::{ConstId, Var};

use crate::ExecError;
use crate::context::Context;
use crate::operator::{Boxed, Operator};
use crate::table::{Table, VarSet};

/// [`jindou_plan::physical::Step::Values`].
pub(crate) struct JoinValues {
    input: Boxed,
    vars: Vec<Var>,
    /// Cells by row; `NONE` is compatible with anything.
    rows: Vec<Vec<TermId>>,
    keep: VarSet,
    /// The input table and the next of its rows.
    current: Option<(Table, usize)>,
}

impl JoinValues {
    pub(crate) fn new(
        input: Boxed,
        vars: &[Var],
        rows: &[Vec<Option<ConstId>>],
        keep: VarSet,
        cx: &Context,
    ) -> Self {
        let cell = |cell: &Option<ConstId>| cell.map_or(TermId::NONE, |id| cx.constant(id));
        let rows = rows
            .iter()
            .map(|row| row.iter().map(cell).collect())
            .collect();
        Self {
            input,
            vars: vars.to_vec(),
            rows,
            keep,
            current: None,
        }
    }
}

/// Input rows joined at once, each with all rows of the data.
const ROWS_AT_ONCE: usize = 256;

impl Operator for JoinValues {
    fn next(&mut self, cx: &Context) -> Result<Option<Table>, ExecError> {
        cx.check()?;
        let (table, from) = match self.current.take() {
            Some(current) => current,
            None => match self.input.next(cx)? {
                Some(table) => (table, 0),
                None => return Ok(None),
            },
        };
        let to = table.rows().min(from + ROWS_AT_ONCE);
        let mut rows = Vec::new();
        let mut columns: Vec<Vec<TermId>> = vec![Vec::new(); self.vars.len()];
        for row in from..to {
            for data in &self.rows {
                self.join_row(&table, row, data, &mut rows, &mut columns);
            }
        }
        let mut joined = table.gather(&rows, &self.keep);
        for (var, column) in self.vars.iter().zip(columns) {
            if self.keep.contains(*var) {
                joined.set(*var, column);
            }
        }
        if to < table.rows() {
            self.current = Some((table, to));
        }
        Ok(Some(joined))
    }
}

impl JoinValues {
    fn join_row(
        &self,
        table: &Table,
        row: usize,
        data: &[TermId],
        rows: &mut Vec<u32>,
        columns: &mut [Vec<TermId>],
    ) {
        let compatible = self.vars.iter().zip(data).all(|(var, cell)| {
            let value = table.value(*var, row);
            value == *cell || value.is_none() || cell.is_none()
        });
        if compatible {
            rows.push(row as u32);
            for ((var, cell), column) in self.vars.iter().zip(data).zip(columns) {
                let value = table.value(*var, row);
                column.push(if value.is_none() { *cell } else { value });
            }
        }
    }
}
