//! ORDER BY: what are rows sorted by?
//!
//! Where the rows are found by several threads, each computes the keys of its own, and where few first
//! ones are wanted keeps only those ([`PartialOrder`]).

use jindou_plan::expression::Expression;
use jindou_plan::physical::{Node, OrderKey, Var};

use super::partial_order::{Computed, PartialOrder, Sent, Sorted};
use super::sorter::{SortBy, Sorter};
use crate::ExecError;
use crate::context::Context;
use crate::exchange::Exchange;
use crate::operator::{Boxed, Builder, Operator};
use crate::steps::compile;
use crate::table::{Table, VarSet};

/// Where rows come from.
enum Input {
    /// One thread.
    Rows(Boxed, Computed),
    /// Several threads, in no order.
    Exchange(Box<Exchange<PartialOrder>>),
}

struct OrderBy {
    input: Input,
    sorted: Sorted,
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
                computed.push((var, expression));
                var
            }
        };
        keep.insert(var);
        by.push(SortBy {
            var,
            descending: key.descending,
        });
    }
    let compiled = |cx: &Context| {
        let keys = computed.iter();
        keys.map(|(var, expression)| Ok((*var, compile(expression, cx)?.evaluator())))
            .collect::<Result<Computed, ExecError>>()
    };
    let sorted = Sorted {
        by: by.clone(),
        limit,
        keep,
        width,
    };
    let partial = |_, cx: &Context| Ok(PartialOrder::new(&sorted, compiled(cx)?));
    let exchange = match limit.is_some() || !computed.is_empty() {
        true => builder.exchange(input, &inner, false, partial)?,
        false => None,
    };
    let input = match exchange {
        Some(exchange) => Input::Exchange(exchange),
        None => Input::Rows(builder.node(input, &inner)?, compiled(builder.cx)?),
    };
    Ok(Box::new(OrderBy {
        input,
        plan_width,
        sorter: Sorter::new(by, limit, needed.clone(), builder.cx),
        sorted,
        is_sorted: false,
    }))
}

impl OrderBy {
    fn consume(&mut self, cx: &Context) -> Result<(), ExecError> {
        match &mut self.input {
            Input::Rows(input, computed) => {
                while let Some(mut table) = input.next(cx)? {
                    cx.check()?;
                    self.sorted.with_keys(computed, &mut table, cx);
                    self.sorter.push(&table, cx)?;
                }
            }
            Input::Exchange(exchange) => {
                while let Some(sent) = exchange.receive(cx)? {
                    cx.check()?;
                    match sent {
                        Sent::Rows(table) => self.sorter.push(&table, cx)?,
                        Sent::First(mut first) => {
                            while let Some(table) = first.next(cx)? {
                                self.sorter.push(&table, cx)?;
                            }
                        }
                    }
                }
            }
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
