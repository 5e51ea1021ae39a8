//! Joins of two independent sides: one is kept in a hash table, the other streams past it.

use jindou_model::TermId;
use jindou_plan::expression::Expression;
use jindou_plan::physical::{PlannedStep, Var};

use crate::ExecError;
use crate::context::{Booked, Context};
use crate::expr::Evaluator;
use crate::operator::{Boxed, Builder, Operator};
use crate::rows::RowSet;
use crate::steps::{Feed, compile};
use crate::table::{BATCH_ROWS, Table, VarSet};

/// No further row.
const END: u32 = u32::MAX;

/// The side that is kept: its rows by key.
struct Kept {
    rows: Table,
    keys: RowSet,
    /// First row of each key, and the next row of the same key for each row.
    first: Vec<u32>,
    next: Vec<u32>,
    booked: Booked,
}

/// Join and left join on certainly bound keys, with compatibility of the loose variables.
pub(super) struct HashJoin {
    kept_input: Boxed,
    input: Boxed,
    keys: Vec<Var>,
    loose: Vec<Var>,
    condition: Option<Condition>,
    /// Rows of the streaming side that find nothing are handed over too.
    left: bool,
    keep: VarSet,
    kept: Option<Kept>,
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
    row: usize,
    /// Candidate of the kept side for that row; `None` before its key was looked up.
    candidate: Option<u32>,
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
            keys: keys.to_vec(),
            loose: loose.to_vec(),
            condition,
            left,
            keep,
            kept: None,
            current: None,
        }
    }

    fn keep_side(&mut self, cx: &Context) -> Result<Kept, ExecError> {
        let mut kept = Kept {
            rows: Table::default(),
            keys: RowSet::new(self.keys.len()),
            first: Vec::new(),
            next: Vec::new(),
            booked: Booked::default(),
        };
        let mut empty = true;
        let mut last: Vec<u32> = Vec::new();
        let mut key = Vec::new();
        while let Some(table) = self.kept_input.next(cx)? {
            cx.check()?;
            if table.rows() == 0 {
                continue;
            }
            for row in 0..table.rows() {
                key.clear();
                key.extend(self.keys.iter().map(|var| table.value(*var, row)));
                let (number, new) = kept.keys.insert(&key);
                let place = kept.next.len() as u32;
                kept.next.push(END);
                if new {
                    kept.first.push(place);
                    last.push(place);
                } else {
                    kept.next[last[number] as usize] = place;
                    last[number] = place;
                }
            }
            if std::mem::replace(&mut empty, false) {
                kept.rows = table;
            } else {
                kept.rows.append(&table);
            }
            let bytes = kept.rows.bytes() + kept.keys.bytes() + kept.next.capacity() * 12;
            cx.book(&mut kept.booked, bytes)?;
        }
        Ok(kept)
    }
}

impl Kept {
    /// The first row with the key of a streaming row.
    fn candidate(&self, keys: &[Var], table: &Table, row: usize, key: &mut Vec<TermId>) -> u32 {
        key.clear();
        key.extend(keys.iter().map(|var| table.value(*var, row)));
        self.keys.find(key).map_or(END, |number| self.first[number])
    }

    fn is_compatible(&self, loose: &[Var], candidate: u32, table: &Table, row: usize) -> bool {
        loose.iter().all(|var| {
            let (a, b) = (
                self.rows.value(*var, candidate as usize),
                table.value(*var, row),
            );
            a == b || a.is_none() || b.is_none()
        })
    }

    /// Pairs of rows as one table.
    fn merge(&self, probe: &Table, pairs: &(Vec<u32>, Vec<u32>), keep: &VarSet) -> Table {
        let (probe_rows, kept_rows) = pairs;
        let mut merged = probe.gather(probe_rows, keep);
        for var in self.rows.bound().filter(|var| keep.contains(*var)) {
            let column: Vec<TermId> = match merged.take(var) {
                // Where the streaming side is unbound, the kept side's value counts.
                Some(column) => column
                    .into_iter()
                    .zip(kept_rows)
                    .map(|(id, kept)| {
                        if id.is_none() {
                            self.rows.value(var, *kept as usize)
                        } else {
                            id
                        }
                    })
                    .collect(),
                None => kept_rows
                    .iter()
                    .map(|row| self.rows.value(var, *row as usize))
                    .collect(),
            };
            merged.set(var, column);
        }
        merged
    }
}

impl Operator for HashJoin {
    fn next(&mut self, cx: &Context) -> Result<Option<Table>, ExecError> {
        if self.kept.is_none() {
            self.kept = Some(self.keep_side(cx)?);
        }
        loop {
            cx.check()?;
            let mut probe = match self.current.take() {
                Some(probe) => probe,
                None => match self.input.next(cx)? {
                    Some(table) => Probe {
                        joined: vec![false; table.rows()],
                        table,
                        row: 0,
                        candidate: None,
                    },
                    None => return Ok(None),
                },
            };
            let kept = self.kept.as_ref().expect("the side was kept above");
            let pairs = find_pairs(kept, &mut probe, &self.keys, &self.loose);
            let joined = join_pairs(
                kept,
                &mut probe,
                pairs,
                self.condition.as_mut(),
                &self.keep,
                cx,
            )?;
            let rest = if probe.row < probe.table.rows() {
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

/// Pairs of streaming and kept rows that fit, about a batch of them.
fn find_pairs(kept: &Kept, probe: &mut Probe, keys: &[Var], loose: &[Var]) -> (Vec<u32>, Vec<u32>) {
    let mut pairs = (Vec::new(), Vec::new());
    let mut key = Vec::new();
    // Candidates that do not fit count too, so that the clock is looked at.
    let mut tried = 0;
    while probe.row < probe.table.rows() && tried < BATCH_ROWS {
        let mut candidate = match probe.candidate {
            Some(candidate) => candidate,
            None => kept.candidate(keys, &probe.table, probe.row, &mut key),
        };
        while candidate != END && tried < BATCH_ROWS {
            if kept.is_compatible(loose, candidate, &probe.table, probe.row) {
                pairs.0.push(probe.row as u32);
                pairs.1.push(candidate);
            }
            tried += 1;
            candidate = kept.next[candidate as usize];
        }
        if candidate == END {
            probe.row += 1;
            probe.candidate = None;
            tried += 1;
        } else {
            probe.candidate = Some(candidate);
        }
    }
    pairs
}

/// The pairs as rows, those that meet the condition.
fn join_pairs(
    kept: &Kept,
    probe: &mut Probe,
    pairs: (Vec<u32>, Vec<u32>),
    condition: Option<&mut Condition>,
    keep: &VarSet,
    cx: &Context,
) -> Result<Option<Table>, ExecError> {
    if pairs.0.is_empty() {
        return Ok(None);
    }
    let Some(condition) = condition else {
        pairs
            .0
            .iter()
            .for_each(|row| probe.joined[*row as usize] = true);
        return Ok(Some(kept.merge(&probe.table, &pairs, keep)));
    };
    let all: VarSet = probe.table.bound().chain(kept.rows.bound()).collect();
    let merged = kept.merge(&probe.table, &pairs, &all);
    let (mut merged, rows) = condition.judge(merged, cx)?;
    rows.iter()
        .for_each(|row| probe.joined[pairs.0[*row as usize] as usize] = true);
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
