//! ORDER BY: all rows in order, or the first few of them.

use std::cmp::Ordering;

use jindou_plan::physical::{Node, OrderKey};

use crate::ExecError;
use crate::context::{Booked, Context};
use crate::expr::{Evaluator, SortColumn};
use crate::operator::{Boxed, Builder, Operator};
use crate::steps::compile;
use crate::table::{BATCH_ROWS, Table, VarSet};

/// Rows that are decoded or sorted between two looks at the clock.
const ROWS_AT_ONCE: usize = 1 << 14;

struct Key {
    evaluator: Evaluator,
    vars: VarSet,
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
        let mut vars = VarSet::default();
        key.expression.for_each_variable(&mut |var| {
            inner.insert(var);
            vars.insert(var);
        });
        compiled.push(Key {
            evaluator: compile(&key.expression, builder.cx)?.evaluator(),
            vars,
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
            let column = key.column(table, cx, &mut bytes)?;
            columns.push((column, key.descending));
        }
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
            && (1..=ROWS_AT_ONCE).contains(&limit)
            && limit < rows.len()
        {
            rows.select_nth_unstable_by(limit - 1, compare);
            rows.truncate(limit);
        }
        sort_rows(&mut rows, &compare, &|| cx.check())?;
        rows.truncate(self.limit.unwrap_or(usize::MAX));
        cx.release(bytes);
        let all: VarSet = table.bound().collect();
        Ok(table.gather(&rows, &all))
    }
}

impl Key {
    /// The sort keys of all rows; books what they take.
    fn column(
        &mut self,
        table: &Table,
        cx: &Context,
        booked: &mut usize,
    ) -> Result<SortColumn, ExecError> {
        let mut column = SortColumn::new(&[], cx.terms());
        let mut held = 0;
        for begin in (0..table.rows()).step_by(ROWS_AT_ONCE) {
            let end = table.rows().min(begin + ROWS_AT_ONCE);
            let rows: Vec<u32> = (begin as u32..end as u32).collect();
            let piece = table.gather(&rows, &self.vars);
            let mut ids = Vec::new();
            self.evaluator
                .evaluate_column(&piece, piece.rows(), &cx.expressions, &mut ids);
            let more = SortColumn::new(&ids, cx.terms());
            cx.check()?;
            cx.charge(more.bytes())?;
            held += more.bytes();
            column.append(more);
        }
        *booked += held;
        Ok(column)
    }
}

/// Sorts rows, and calls `check` now and then: a merge sort over short runs.
fn sort_rows<E>(
    rows: &mut Vec<u32>,
    compare: &impl Fn(&u32, &u32) -> Ordering,
    check: &dyn Fn() -> Result<(), E>,
) -> Result<(), E> {
    for run in rows.chunks_mut(ROWS_AT_ONCE) {
        run.sort_unstable_by(compare);
        check()?;
    }
    let mut merged: Vec<u32> = Vec::new();
    let mut width = ROWS_AT_ONCE;
    while width < rows.len() {
        merged.clear();
        merged.reserve_exact(rows.len());
        for pair in rows.chunks(2 * width) {
            let (mut left, mut right) = pair.split_at(width.min(pair.len()));
            while let (Some(a), Some(b)) = (left.first(), right.first()) {
                if compare(a, b) == Ordering::Greater {
                    merged.push(*b);
                    right = &right[1..];
                } else {
                    merged.push(*a);
                    left = &left[1..];
                }
                if merged.len().is_multiple_of(ROWS_AT_ONCE) {
                    check()?;
                }
            }
            merged.extend_from_slice(left);
            merged.extend_from_slice(right);
        }
        std::mem::swap(rows, &mut merged);
        width *= 2;
    }
    Ok(())
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

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn a_long_sort_looks_at_the_clock_and_agrees_with_the_standard_one() {
        for count in [0, 1, ROWS_AT_ONCE, ROWS_AT_ONCE + 1, 5 * ROWS_AT_ONCE + 7] {
            let value = |row: &u32| (u64::from(*row) * 2_654_435_761) % 1009;
            let compare = |a: &u32, b: &u32| value(a).cmp(&value(b)).then_with(|| a.cmp(b));
            let mut rows: Vec<u32> = (0..count as u32).collect();
            let mut expected = rows.clone();
            expected.sort_by(compare);
            let checks = Cell::new(0);
            sort_rows(&mut rows, &compare, &|| {
                checks.set(checks.get() + 1);
                Ok::<(), ()>(())
            })
            .unwrap();
            assert_eq!(rows, expected);
            assert!(
                checks.get() >= count / ROWS_AT_ONCE,
                "{} checks",
                checks.get()
            );
        }
    }

    #[test]
    fn a_sort_ends_where_its_check_fails() {
        let mut rows: Vec<u32> = (0..10 * ROWS_AT_ONCE as u32).rev().collect();
        let calls = Cell::new(0);
        let compare = |a: &u32, b: &u32| {
            calls.set(calls.get() + 1);
            a.cmp(b)
        };
        assert_eq!(sort_rows(&mut rows, &compare, &|| Err(())), Err(()));
        assert!(
            calls.get() <= 20 * ROWS_AT_ONCE,
            "one run was sorted at most"
        );
    }
}
