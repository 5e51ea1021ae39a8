//! VALUES: a join with the few rows that the query itself holds.

use jindou_model::TermId;
use jindou_plan::physical::{ConstId, Var};

use crate::ExecError;
use crate::context::Context;
use crate::operator::{Boxed, Operator};
use crate::table::{Table, VarSet, batch_rows};

/// [`jindou_plan::physical::Step::Values`].
pub(crate) struct JoinValues {
    input: Boxed,
    vars: Vec<Var>,
    /// Cells by row; `NONE` is compatible with anything.
    rows: Vec<Vec<TermId>>,
    keep: VarSet,
    /// The input table, the next of its rows, and the next row of the data for that.
    current: Option<(Table, usize, usize)>,
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

/// Pairs of rows that are compared between two checks of the time limit.
const PAIRS_AT_ONCE: usize = 1 << 18;

impl Operator for JoinValues {
    fn produce(&mut self, cx: &Context) -> Result<Option<Table>, ExecError> {
        cx.check()?;
        let (table, mut row, mut next) = match self.current.take() {
            Some(current) => current,
            None => match self.input.next(cx)? {
                Some(table) => (table, 0, 0),
                None => return Ok(None),
            },
        };
        let most = batch_rows(table.width());
        let mut rows = Vec::new();
        let mut columns: Vec<Vec<TermId>> = vec![Vec::new(); self.vars.len()];
        let mut compared = 0;
        while row < table.rows() && rows.len() < most && compared < PAIRS_AT_ONCE {
            let Some(data) = self.rows.get(next) else {
                (row, next) = (row + 1, 0);
                continue;
            };
            self.join_row(&table, row, data, &mut rows, &mut columns);
            next += 1;
            compared += 1;
        }
        let mut joined = table.gather(&rows, &self.keep);
        for (var, column) in self.vars.iter().zip(columns) {
            if self.keep.contains(*var) {
                joined.set(*var, column);
            }
        }
        if row < table.rows() {
            self.current = Some((table, row, next));
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
