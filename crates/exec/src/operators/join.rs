//! Joins of two independent sides: one is kept in a hash table, the other streams past it.

use std::cell::RefCell;

use jindou_plan::expression::Expression;
use jindou_plan::physical::{PlannedStep, Var};

use super::kept::{Kept, Pairs, Place};
use crate::ExecError;
use crate::context::{Booked, Context};
use crate::expr::Evaluator;
use crate::operator::{Boxed, Builder, Operator};
use crate::steps::{Feed, compile};
use crate::table::{BATCH_ROWS, Table, VarSet};

/// Join and left join by SPARQL's compatibility.
pub(super) struct HashJoin {
    kept_input: Boxed,
    input: Boxed,
    kept: Kept,
    /// True once the kept side is all there.
    is_kept: bool,
    /// What the kept side takes.
    booked: RefCell<Booked>,
    condition: Option<Condition>,
    /// Rows of the streaming side that find nothing are handed over too.
    left: bool,
    keep: VarSet,
    /// The batch in work.
    current: Option<Probe>,
}

/// The condition of a left join.
pub(super) struct Condition {
    /// The steps that mark joined rows for it, and where they take them from.
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

    /// The rows that pass, and the table with what was found for them.
    fn judge(&mut self, table: Table, cx: &Context) -> Result<(Table, Vec<u32>), ExecError> {
        let table = match &mut self.marks {
            None => table,
            Some((feed, chain)) => {
                let rows = table.rows();
                feed.put(table);
                let marked = chain
                    .next(cx)?
                    .expect("a table comes out for each that is put");
                assert_eq!(marked.rows(), rows, "marking keeps all rows");
                let end = chain.next(cx)?;
                assert!(end.is_none(), "one table comes out for each that is put");
                marked
            }
        };
        let mut rows = Vec::new();
        self.expression
            .filter(&table, table.rows(), &cx.expressions, &mut rows);
        Ok((table, rows))
    }
}

/// A batch of the streaming side and how far it has come.
struct Probe {
    table: Table,
    place: Place,
    joined: Vec<bool>,
}

impl HashJoin {
    pub(super) fn new(
        kept_input: Boxed,
        input: Boxed,
        keys: &[Var],
        loose: &[Var],
        condition: Option<Condition>,
        left: bool,
        keep: VarSet,
    ) -> Self {
        Self {
            kept_input,
            input,
            kept: Kept::new(keys, loose),
            is_kept: false,
            booked: RefCell::default(),
            condition,
            left,
            keep,
            current: None,
        }
    }

    /// The next batch of the streaming side; `None` at the end.
    fn next_probe(&mut self, cx: &Context) -> Result<Option<Probe>, ExecError> {
        if let Some(probe) = self.current.take() {
            return Ok(Some(probe));
        }
        if !self.is_kept {
            while let Some(table) = self.kept_input.next(cx)? {
                self.kept
                    .add(table, &|bytes| account(cx, &self.booked, bytes))?;
            }
            self.is_kept = true;
        }
        if self.kept.len() == 0 && !self.left {
            // Nothing streaming can find anything.
            return Ok(None);
        }
        Ok(self.input.next(cx)?.map(|table| Probe {
            joined: vec![false; table.rows()],
            table,
            place: Place::default(),
        }))
    }
}

fn account(cx: &Context, booked: &RefCell<Booked>, bytes: usize) -> Result<(), ExecError> {
    cx.check()?;
    cx.book_more(&mut booked.borrow_mut(), bytes)
}

impl Operator for HashJoin {
    fn next(&mut self, cx: &Context) -> Result<Option<Table>, ExecError> {
        loop {
            cx.check()?;
            let Some(mut probe) = self.next_probe(cx)? else {
                return Ok(None);
            };
            let pairs = self
                .kept
                .find(&probe.table, &mut probe.place, BATCH_ROWS, &|bytes| {
                    account(cx, &self.booked, bytes)
                })?;
            let joined = join_pairs(
                &self.kept,
                &mut probe,
                &pairs,
                self.condition.as_mut(),
                &self.keep,
                cx,
            )?;
            let rest = if probe.place.row < probe.table.rows() {
                self.current = Some(probe);
                None
            } else if self.left {
                unjoined(probe, &self.keep)
            } else {
                None
            };
            match (joined, rest) {
                (None, None) => (),
                (Some(mut joined), Some(rest)) => {
                    joined.append(&rest);
                    return Ok(Some(joined));
                }
                (Some(table), None) | (None, Some(table)) => return Ok(Some(table)),
            }
        }
    }
}

/// The pairs as rows, those that meet the condition.
fn join_pairs(
    kept: &Kept,
    probe: &mut Probe,
    pairs: &Pairs,
    condition: Option<&mut Condition>,
    keep: &VarSet,
    cx: &Context,
) -> Result<Option<Table>, ExecError> {
    if pairs.kept.is_empty() {
        return Ok(None);
    }
    let Some(condition) = condition else {
        pairs
            .streaming
            .iter()
            .for_each(|row| probe.joined[*row as usize] = true);
        return Ok(Some(kept.merge(&probe.table, pairs, keep)));
    };
    let all: VarSet = probe.table.bound().chain(kept.bound()).collect();
    let merged = kept.merge(&probe.table, pairs, &all);
    let (mut merged, rows) = condition.judge(merged, cx)?;
    rows.iter()
        .for_each(|row| probe.joined[pairs.streaming[*row as usize] as usize] = true);
    merged.retain_columns(keep);
    merged.retain_rows(&rows);
    Ok(Some(merged))
}

/// The streaming rows that found nothing.
fn unjoined(probe: Probe, keep: &VarSet) -> Option<Table> {
    let mut table = probe.table;
    let rows: Vec<u32> = (0..table.rows() as u32)
        .filter(|row| !probe.joined[*row as usize])
        .collect();
    table.retain_columns(keep);
    table.retain_rows(&rows);
    (!rows.is_empty()).then_some(table)
}
