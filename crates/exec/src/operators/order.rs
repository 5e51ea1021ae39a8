//! ORDER BY: what are rows sorted by?

use jindou_plan::expression::Expression;
use jindou_plan::physical::{Node, OrderKey, Var};

use super::sorter::{SortBy, Sorter};
use crate::ExecError;
use crate::context::Context;
use crate::expr::Evaluator;
use crate::operator::{Boxed, Builder, Operator};
use crate::steps::compile;
use crate::table::{Table, VarSet};

struct OrderBy {
    input: Boxed,
    /// Keys that are computed, and the columns behind those of the plan where they are put.
    computed: Vec<(Var, Evaluator)>,
    /// Columns of a row with its keys.
    width: usize,
    /// What is wanted of a row, and its keys.
    keep: VarSet,
    /// Columns of a row that is handed over.
    plan_width: usize,
    sorter: Sorter,
    /// All rows are in.
    is_sorted: bool,
}

/// [`jindou_plan::physical::Operator::OrderBy`].
pub(super) fn build(
    builder: &mut Builder<'_>,
    input: &Node,
    keys: &[OrderKey],
    limit: Option<usize>,
    needed: &VarSet,
) -> Result<Boxed, ExecError> {
    let (mut inner, mut keep) = (needed.clone(), needed.clone());
    let (mut computed, mut by) = (Vec::new(), Vec::with_capacity(keys.len()));
    let plan_width = builder.width();
    let mut width = plan_width;
    for key in keys {
        key.expression
            .for_each_variable(&mut |var| inner.insert(var));
        let var = match &key.expression {
            Expression::Variable(var) => *var,
            expression => {
                // Computed once, also for what is not the same twice.
                // The planner refuses what has more.
                let var = Var(u16::try_from(width).expect("a plan has fewer than 2^16 columns"));
                width += 1;
                computed.push((var, compile(expression, builder.cx)?.evaluator()));
                var
            }
        };
        keep.insert(var);
        by.push(SortBy {
            var,
            descending: key.descending,
        });
    }
    let input = builder.node(input, &inner)?;
    Ok(Box::new(OrderBy {
        input,
        computed,
        width,
        keep,
        plan_width,
        sorter: Sorter::new(by, limit, needed.clone(), builder.cx),
        is_sorted: false,
    }))
}

impl OrderBy {
    fn consume(&mut self, cx: &Context) -> Result<(), ExecError> {
        while let Some(mut table) = self.input.next(cx)? {
            cx.check()?;
            table.set_width(self.width);
            for (var, evaluator) in &mut self.computed {
                let mut ids = Vec::new();
                evaluator.evaluate_column(&table, table.rows(), &cx.expressions, &mut ids);
                table.set(*var, ids);
            }
            table.retain_columns(&self.keep);
            self.sorter.push(&table, cx)?;
        }
        Ok(())
    }
}

impl Operator for OrderBy {
    fn produce(&mut self, cx: &Context) -> Result<Option<Table>, ExecError> {
        cx.check()?;
        if !self.is_sorted {
            self.consume(cx)?;
            self.is_sorted = true;
        }
        let mut sorted = self.sorter.next(cx)?;
        if let Some(table) = &mut sorted {
            table.set_width(self.plan_width);
        }
        Ok(sorted)
    }
}
