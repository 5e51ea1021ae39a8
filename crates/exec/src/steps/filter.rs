//! FILTER and BIND: expressions over the rows of a table.

use jindou_model::TermId;
use jindou_plan::physical::Var;

use crate::ExecError;
use crate::context::Context;
use crate::expr::{ColumnRow, CompiledExpression, Memo};
use crate::operator::{Boxed, Operator};
use crate::table::{Table, VarSet};

/// Keeps the rows whose expression is true.
pub(crate) struct FilterRows {
    input: Boxed,
    expression: CompiledExpression,
    memo: Memo,
    keep: VarSet,
}

impl FilterRows {
    pub(crate) fn new(input: Boxed, expression: CompiledExpression, keep: VarSet) -> Self {
        let memo = expression.memo();
        Self { input, expression, memo, keep }
    }
}

impl Operator for FilterRows {
    fn next(&mut self, cx: &Context) -> Result<Option<Table>, ExecError> {
        cx.check()?;
        let Some(mut table) = self.input.next(cx)? else { return Ok(None) };
        let mut rows = Vec::with_capacity(table.rows());
        self.expression.filter(&table, table.rows(), &cx.expressions, &mut self.memo, &mut rows);
        cx.check()?;
        table.retain_columns(&self.keep);
        table.retain_rows(&rows);
        Ok(Some(table))
    }
}

/// Gives a variable the value of an expression.
pub(crate) struct ExtendRows {
    input: Boxed,
    var: Var,
    expression: CompiledExpression,
    memo: Memo,
    keep: VarSet,
}

impl ExtendRows {
    pub(crate) fn new(
        input: Boxed,
        var: Var,
        expression: CompiledExpression,
        keep: VarSet,
    ) -> Self {
        let memo = expression.memo();
        Self { input, var, expression, memo, keep }
    }
}

impl Operator for ExtendRows {
    fn next(&mut self, cx: &Context) -> Result<Option<Table>, ExecError> {
        cx.check()?;
        let Some(mut table) = self.input.next(cx)? else { return Ok(None) };
        cx.number_solutions(&mut table);
        let column = evaluate(&self.expression, &table, &mut self.memo, cx);
        cx.check()?;
        table.retain_columns(&self.keep);
        if self.keep.contains(self.var) {
            table.set(self.var, column);
        }
        Ok(Some(table))
    }
}

/// The values of an expression for all rows of a table.
pub(crate) fn evaluate(
    expression: &CompiledExpression,
    table: &Table,
    memo: &mut Memo,
    cx: &Context,
) -> Vec<TermId> {
    let _ = memo;
    match expression.as_variable() {
        Some(var) => match table.get(var) {
            Some(column) => column.to_vec(),
            None => vec![TermId::NONE; table.rows()],
        },
        None => (0..table.rows())
            .map(|row| expression.evaluate_id(&ColumnRow::new(table, row), &cx.expressions))
            .collect(),
    }
}
