//! Joins of two independent sides: one is kept in a hash table, the other streams past it.

use jindou_plan::expression::Expression;
use jindou_plan::physical::{PlannedStep, Var};

use super::kept::{Kept, Pairs, Wanted};
use super::kept_side::{InMemory, KeptSide};
use super::two_sided::{KeptRows, Probe, Side};
use crate::ExecError;
use crate::context::Context;
use crate::discard::discard;
use crate::expr::Evaluator;
use crate::operator::{Boxed, Builder};
use crate::steps::{Feed, compile};
use crate::table::{Table, VarSet, batch_rows};

/// A join or left join by SPARQL's compatibility.
pub(super) struct JoinSide {
    keys: Vec<Var>,
    loose: Vec<Var>,
    condition: Option<Condition>,
    keep: VarSet,
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

impl JoinSide {
    pub(super) fn new(
        keys: &[Var],
        loose: &[Var],
        condition: Option<Condition>,
        keep: VarSet,
    ) -> Self {
        Self {
            keys: keys.to_vec(),
            loose: loose.to_vec(),
            condition,
            keep,
        }
    }
}

impl KeptRows for Kept {
    fn add(&mut self, table: &Table) {
        Self::add(self, table);
    }

    fn bytes_with(&self, table: &Table) -> usize {
        Self::bytes_with(self, table)
    }

    fn is_full(&self, table: &Table) -> bool {
        self.len() + table.rows() >= u32::MAX as usize
    }

    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn pop(&mut self) -> Option<Table> {
        Self::pop(self)
    }

    fn clear(&mut self) {
        let empty = self.emptied();
        let kept = std::mem::replace(self, empty);
        let bytes = kept.bytes();
        discard(kept, bytes);
    }
}

impl Side for JoinSide {
    type Kept = Kept;

    fn empty(&self) -> Kept {
        Kept::new(&self.keys, &self.loose)
    }

    fn probe(
        &mut self,
        kept: &KeptSide<Kept>,
        probe: &mut Probe,
        cx: &Context,
    ) -> Result<Option<Table>, ExecError> {
        let most = batch_rows(probe.table.width());
        loop {
            let in_memory = kept.get();
            let rows = &in_memory.rows;
            match rows.find(&probe.table, &mut probe.place, most) {
                Ok(pairs) => {
                    let condition = self.condition.as_mut();
                    return join_pairs(rows, probe, &pairs, condition, &self.keep, cx);
                }
                Err(wanted) => {
                    drop(in_memory);
                    make_index(kept, wanted, cx)?;
                }
            }
        }
    }
}

fn make_index(kept: &KeptSide<Kept>, wanted: Wanted, cx: &Context) -> Result<(), ExecError> {
    let mut in_memory = kept.get_mut();
    let InMemory { rows, booked } = &mut *in_memory;
    // Another thread may have made it.
    if rows.has(wanted) {
        return Ok(());
    }
    let mut room = |bytes| {
        cx.check()?;
        cx.room(booked, bytes)
    };
    rows.make(wanted, &mut room)
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
            .for_each(|row| probe.met[*row as usize] = true);
        return Ok(Some(kept.merge(&probe.table, pairs, keep)));
    };
    let mut all = kept.bound();
    all.extend(probe.table.bound());
    let merged = kept.merge(&probe.table, pairs, &all);
    let (mut merged, rows) = condition.judge(merged, cx)?;
    rows.iter()
        .for_each(|row| probe.met[pairs.streaming[*row as usize] as usize] = true);
    merged.retain_columns(keep);
    merged.retain_rows(&rows);
    Ok(Some(merged))
}
