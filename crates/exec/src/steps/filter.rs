//! FILTER and BIND: expressions over the rows of a table.

use jindou_plan::physical::Var;

use crate::ExecError;
use crate::context::Context;
use crate::expr::{CompiledExpression, Evaluator};
use crate::operator::{Boxed, Operator};
use crate::table::{Table, VarSet};

/// Keeps the rows whose expression is true.
pub(crate) struct FilterRows {
    input: Boxed,
    expression: Evaluator,
    keep: VarSet,
}

impl FilterRows {
    pub(crate) fn new(input: Boxed, expression: CompiledExpression, keep: VarSet) -> Self {
        Self {
            input,
            expression: expression.evaluator(),
            keep,
        }
    }
}

impl Operator for FilterRows {
    fn produce(&mut self, cx: &Context) -> Result<Option<Table>, ExecError> {
        cx.check()?;
        let Some(mut table) = self.input.next(cx)? else {
            return Ok(None);
        };
        let mut rows = Vec::with_capacity(table.rows());
        self.expression
            .filter(&table, table.rows(), &cx.expressions, &mut rows);
        cx.check()?;
        table.retain_columns(&self.keep);
        table.retain_counted_rows(&rows);
        Ok(Some(table))
    }
}

/// Gives variables the values of expressions, one after the other.
///
/// Side by side in one operator: each of its own would look at all columns once more.
pub(crate) struct ExtendRows {
    input: Boxed,
    values: Vec<(Var, Evaluator)>,
    keep: VarSet,
}

impl ExtendRows {
    pub(crate) fn new(
        input: Boxed,
        values: impl IntoIterator<Item = (Var, CompiledExpression)>,
        keep: VarSet,
    ) -> Self {
        let values = values.into_iter();
        Self {
            input,
            values: values
                .map(|(var, expression)| (var, expression.evaluator()))
                .collect(),
            keep,
        }
    }
}

impl Operator for ExtendRows {
    fn produce(&mut self, cx: &Context) -> Result<Option<Table>, ExecError> {
        cx.check()?;
        let Some(mut table) = self.input.next(cx)? else {
            return Ok(None);
        };
        for (var, expression) in &mut self.values {
            if expression.tells_solutions_apart() {
                cx.number_solutions(&mut table);
            }
            let mut column = Vec::new();
            expression.evaluate_column(&table, table.rows(), &cx.expressions, &mut column);
            cx.check()?;
            table.set(*var, column);
        }
        table.retain_columns(&self.keep);
        Ok(Some(table))
    }
}
