//! ORDER BY: all rows in order, or the first few of them.

use std::cmp::Ordering;

use jindou_plan::physical::{Node, OrderKey};

use crate::ExecError;
use crate::context::{Booked, Context};
use crate::expr::{Evaluator, SortColumn};
use crate::operator::{Boxed, Builder, Operator};
use crate::steps::compile;
use crate::table::{BATCH_ROWS, Table, VarSet};

struct Key {
    evaluator: Evaluator,
    descending: bool,
}

struct OrderBy {
    input: Boxed,
    keys: Vec<Key>,
    limit: Option<usize>,
    keep: VarSet,
    /// The rows in order, once all are in, and how many were handed over.
    sorted: Option<(Table, usize)>,
    booked: Booked,
}

/// [`jindou_plan::physical::Operator::OrderBy`].
pub(super) fn build(
    builder: &mut Builder<'_>,
    input: &Node,
    keys: &[OrderKey],
    limit: Option<usize>,
    needed: &VarSet,
) -> Result<Boxed, ExecError> {
    let mut inner = needed.clone();
    let mut compiled = Vec::with_capacity(keys.len());
    for key in keys {
        key.expression
            .for_each_variable(&mut |var| inner.insert(var));
        compiled.push(Key {
            evaluator: compile(&key.expression, builder.cx)?.evaluator(),
            descending: key.descending,
        });
    }
    let input = builder.node(input, &inner)?;
    Ok(Box::new(OrderBy {
        input,
        keys: compiled,
        limit,
        keep: needed.clone(),
        sorted: None,
        booked: Booked::default(),
    }))
}

impl OrderBy {
    /// Reads all rows; with a limit only the first so many are kept.
    fn consume(&mut self, cx: &Context) -> Result<Table, ExecError> {
        let mut held: Option<Table> = None;
        while let Some(table) = self.input.next(cx)? {
            cx.check()?;
            match &mut held {
                None => held = Some(table),
                Some(held) => held.append(&table),
            }
            let Some(held) = &mut held else { continue };
            if let Some(limit) = self.limit
                && held.rows() >= 2 * limit.max(BATCH_ROWS)
            {
                *held = self.sort(held, cx)?;
            }
            cx.book(&mut self.booked, held.bytes())?;
        }
        match held {
            Some(held) => self.sort(&held, cx),
            None => Ok(Table::with_rows(0, 0)),
        }
    }

    /// The rows in order, the first `limit` of them.
    fn sort(&mut self, table: &Table, cx: &Context) -> Result<Table, ExecError> {
        let mut columns = Vec::with_capacity(self.keys.len());
        let mut bytes = 0;
        for key in &mut self.keys {
            let mut ids = Vec::new();
            key.evaluator
                .evaluate_column(table, table.rows(), &cx.expressions, &mut ids);
            let column = SortColumn::new(&ids, cx.terms());
            bytes += column.bytes();
            columns.push((column, key.descending));
            cx.check()?;
        }
        cx.charge(bytes)?;
        let compare = |left: &u32, right: &u32| {
            columns
                .iter()
                .map(|(column, descending)| {
                    let order = column.compare(*left as usize, *right as usize);
                    if *descending { order.reverse() } else { order }
                })
                .find(|order| *order != Ordering::Equal)
                // Equal rows stay in their order, so that the result is the same each time.
                .unwrap_or_else(|| left.cmp(right))
        };
        let mut rows: Vec<u32> = (0..table.rows() as u32).collect();
        if let Some(limit) = self.limit
            && limit < rows.len()
        {
            if limit > 0 {
                rows.select_nth_unstable_by(limit - 1, compare);
            }
            rows.truncate(limit);
        }
        rows.sort_unstable_by(compare);
        cx.release(bytes);
        let all: VarSet = table.bound().collect();
        Ok(table.gather(&rows, &all))
    }
}

impl Operator for OrderBy {
    fn next(&mut self, cx: &Context) -> Result<Option<Table>, ExecError> {
        cx.check()?;
        if self.sorted.is_none() {
            let mut table = self.consume(cx)?;
            table.retain_columns(&self.keep);
            self.sorted = Some((table, 0));
        }
        let Some((table, from)) = &mut self.sorted else {
            return Ok(None);
        };
        let to = table.rows().min(*from + BATCH_ROWS);
        if *from == to {
            return Ok(None);
        }
        let rows: Vec<u32> = (*from as u32..to as u32).collect();
        *from = to;
        Ok(Some(table.gather(&rows, &self.keep)))
    }
}
