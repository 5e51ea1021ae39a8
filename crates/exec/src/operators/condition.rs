//! The condition of a left join: which joined rows pass?

use jindou_plan::expression::Expression;
use jindou_plan::physical::PlannedStep;

use crate::ExecError;
use crate::context::Context;
use crate::expr::Evaluator;
use crate::operator::{Boxed, Builder};
use crate::steps::{Feed, compile};
use crate::table::{Table, VarSet};

/// An expression, and the steps that mark joined rows for it.
pub(super) struct Condition {
    /// The steps, and where they take rows from.
    marks: Option<(Feed, Boxed)>,
    expression: Evaluator,
}

impl Condition {
    /// `judged` are the variables that the expression looks at, and those wanted behind the join.
    pub(super) fn new(
        builder: &mut Builder<'_>,
        marks: &[PlannedStep],
        expression: &Expression,
        judged: &VarSet,
    ) -> Result<Self, ExecError> {
        let marks = if marks.is_empty() {
            None
        } else {
            let feed = Feed::default();
            let chain = builder.steps(Box::new(feed.clone()), marks, judged)?;
            Some((feed, chain))
        };
        Ok(Self {
            marks,
            expression: compile(expression, builder.cx)?.evaluator(),
        })
    }

    /// The table with what was found for its rows, and those that pass.
    pub(super) fn judge(
        &mut self,
        table: Table,
        cx: &Context,
    ) -> Result<(Table, Vec<u32>), ExecError> {
        let table = match &mut self.marks {
            None => table,
            Some((feed, chain)) => {
                let rows = table.rows();
                feed.put(table);
                let marked = chain.next(cx)?.expect("a table comes out for each put in");
                assert_eq!(marked.rows(), rows, "marking keeps all rows");
                let end = chain.next(cx)?;
                assert!(end.is_none(), "one table comes out for each put in");
                marked
            }
        };
        let mut rows = Vec::new();
        self.expression
            .filter(&table, table.rows(), &cx.expressions, &mut rows);
        Ok((table, rows))
    }
}
