//! How is an expression evaluated for many rows at a time?

use jindou_model::{TermId, inline};
use jindou_plan::expression::{Comparison, Function};

use super::batch::{Memory, Scratch, of_ends};
use super::compare::{holds, order_of_ids};
use super::compile::{Code, CompiledExpression};
use super::evaluate::names;
use super::id_range::IdRange;
use super::predicate::Predicate;
use super::row::SingleRow;
use super::{ColumnRow, Columns, Context, calendar};

/// An expression with what one thread remembers of its results.
///
/// To be kept from batch to batch: a costly condition on one variable (a pattern, a function of
/// strings) is then evaluated once for each distinct value, as far as memory goes.
#[derive(Debug)]
pub struct Evaluator {
    expression: CompiledExpression,
    state: Box<State>,
}

/// What is remembered, and buffers.
#[derive(Debug, Default)]
struct State {
    answers: Vec<Memory<bool>>,
    ids: Memory<TermId>,
    scratch: Scratch,
}

impl CompiledExpression {
    /// An evaluator for one thread.
    #[must_use]
    pub fn evaluator(self) -> Evaluator {
        let mut state = Box::<State>::default();
        state.answers.resize_with(self.memories, Memory::default);
        Evaluator {
            expression: self,
            state,
        }
    }
}

impl Evaluator {
    /// True if rows need numbers that tell solutions apart: see [`Columns::solution`].
    #[must_use]
    pub fn tells_solutions_apart(&self) -> bool {
        self.expression.tells_solutions_apart
    }

    /// Replaces `keep` by the numbers of those of the first `rows` rows for which the effective
    /// boolean value is true, ascending.
    ///
    /// # Panics
    /// If there are more than `u32::MAX` rows, or a column is shorter than `rows`.
    pub fn filter(
        &mut self,
        columns: &dyn Columns,
        rows: usize,
        cx: &Context,
        keep: &mut Vec<u32>,
    ) {
        let rows = u32::try_from(rows).expect("a batch has less than 2^32 rows");
        keep.clear();
        keep.extend(0..rows);
        self.retain(columns, cx, keep);
    }

    /// As [`Evaluator::filter`], of the rows that `keep` lists.
    pub fn retain(&mut self, columns: &dyn Columns, cx: &Context, keep: &mut Vec<u32>) {
        Pass {
            columns,
            cx,
            answers: &mut self.state.answers,
            scratch: &mut self.state.scratch,
        }
        .retain(&self.expression.predicate, keep);
    }

    /// Appends the ids of the values for the first `rows` rows to `out`; [`TermId::NONE`] on an
    /// error.
    pub fn evaluate_column(
        &mut self,
        columns: &dyn Columns,
        rows: usize,
        cx: &Context,
        out: &mut Vec<TermId>,
    ) {
        out.reserve(rows);
        let expression = &self.expression;
        let State {
            ids: memory,
            scratch,
            ..
        } = &mut *self.state;
        let code = &expression.program.code;
        if let Some((function, var)) = calendar::as_whole_part(code) {
            let part = |id| calendar::whole_part_of_id(function, id).and_then(inline::from_integer);
            let slowly = |id| code.id(&SingleRow { id }, cx);
            match columns.column(var) {
                Some(column) => {
                    let ids = column[..rows].iter();
                    out.extend(ids.map(|id| part(*id).unwrap_or_else(|| slowly(*id))));
                }
                None => out.resize(out.len() + rows, TermId::NONE),
            }
            return;
        }
        if let Some(column) = expression.of_end.and_then(|var| columns.column(var)) {
            let ids = column[..rows].iter().copied();
            out.extend(of_ends(ids, cx, |id| code.id(&SingleRow { id }, cx)));
            return;
        }
        match code {
            Code::Variable(var) => match columns.column(*var) {
                Some(column) => out.extend_from_slice(&column[..rows]),
                None => out.resize(out.len() + rows, TermId::NONE),
            },
            Code::Constant(constant) => out.resize(out.len() + rows, constant.id),
            Code::Error(_) => out.resize(out.len() + rows, TermId::NONE),
            _ => {
                let rows: Vec<u32> = (0..rows as u32).collect();
                let program = &expression.program;
                match expression.remembered {
                    Some(var) => memory.answer(
                        columns.column(var),
                        &rows,
                        &mut |rows, out| scratch.ids(program, columns, rows, cx, out),
                        out,
                    ),
                    None => scratch.ids(program, columns, &rows, cx, out),
                }
            }
        }
    }

    /// Bytes held by what is remembered, about, and by buffers.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let answers: usize = self.state.answers.iter().map(Memory::bytes).sum();
        answers + self.state.ids.bytes() + self.state.scratch.bytes()
    }
}

/// One pass over some rows.
struct Pass<'p> {
    columns: &'p dyn Columns,
    cx: &'p Context,
    answers: &'p mut [Memory<bool>],
    scratch: &'p mut Scratch,
}

impl Pass<'_> {
    fn retain(&mut self, predicate: &Predicate, keep: &mut Vec<u32>) {
        let (columns, cx) = (self.columns, self.cx);
        let column = |var| columns.column(var);
        match predicate {
            Predicate::Constant(true) => {}
            Predicate::Constant(false) => keep.clear(),
            Predicate::Bound(var, wanted) => {
                let column = column(*var);
                keep.retain(|row| cell(column, *row).is_none() != *wanted);
            }
            Predicate::Among { var, ids, wanted } => {
                let column = column(*var);
                keep.retain(|row| {
                    let id = cell(column, *row);
                    !id.is_none() && among(ids, id) == *wanted
                });
            }
            Predicate::Same {
                left,
                right,
                wanted,
            } => {
                let (left, right) = (column(*left), column(*right));
                keep.retain(|row| {
                    let (left, right) = (cell(left, *row), cell(right, *row));
                    !left.is_none() && !right.is_none() && (left == right) == *wanted
                });
            }
            Predicate::CompareConstant {
                operator,
                var,
                constant,
                code,
            } => {
                let column = column(*var);
                let slowly = |id| {
                    told(*operator, id, *constant)
                        .unwrap_or_else(|| code.boolean(&SingleRow { id }, cx) == Ok(true))
                };
                match IdRange::of_constant(*operator, *constant) {
                    Some(range) => compact(keep, |row| {
                        let id = cell(column, row);
                        range.told(id).unwrap_or_else(|| slowly(id))
                    }),
                    None => compact(keep, |row| slowly(cell(column, row))),
                }
            }
            Predicate::ComparePart {
                operator,
                function,
                var,
                number,
                code,
            } => {
                let column = column(*var);
                let slowly = |id| code.boolean(&SingleRow { id }, cx) == Ok(true);
                if *function == Function::Year {
                    let ranges = IdRange::of_years(*operator, *number);
                    compact(keep, |row| {
                        let id = cell(column, row);
                        let told = ranges.iter().find_map(|range| range.told(id));
                        told.unwrap_or_else(|| slowly(id))
                    });
                } else {
                    compact(keep, |row| {
                        let id = cell(column, row);
                        match calendar::whole_part_of_id(*function, id) {
                            Some(part) => holds(*operator, part.cmp(number)),
                            None => slowly(id),
                        }
                    });
                }
            }
            Predicate::CompareVariables {
                operator,
                left,
                right,
                code,
            } => {
                let (left, right) = (column(*left), column(*right));
                compact(keep, |row| {
                    told(*operator, cell(left, row), cell(right, row)).unwrap_or_else(|| {
                        let row = ColumnRow::new(columns, row as usize);
                        code.boolean(&row, cx) == Ok(true)
                    })
                });
            }
            Predicate::And(parts) => {
                for part in parts {
                    self.retain(part, keep);
                }
            }
            Predicate::Or(parts) => self.retain_any(parts, keep),
            Predicate::Text {
                test,
                wanted,
                memory,
                code,
            } => {
                let scratch = &mut *self.scratch;
                let slowly = |id| code.boolean(&SingleRow { id }, cx) == Ok(true);
                let mut evaluate = |rows: &[u32], out: &mut Vec<bool>| {
                    scratch.tested((test, *wanted), columns, rows, cx, &slowly, out);
                };
                let mut answers = Vec::with_capacity(keep.len());
                match memory {
                    None => evaluate(keep, &mut answers),
                    Some(memory) => {
                        let column = column(test.var);
                        self.answers[*memory].answer(column, keep, &mut evaluate, &mut answers);
                    }
                }
                retain_answered(keep, &answers);
            }
            Predicate::OfEnd { var, code } => {
                let column = column(*var);
                let holds = |id| code.boolean(&SingleRow { id }, cx) == Ok(true);
                let ids = keep.iter().map(|row| cell(column, *row));
                let answers: Vec<bool> = of_ends(ids, cx, holds).collect();
                retain_answered(keep, &answers);
            }
            Predicate::Remembered {
                var,
                memory,
                program,
            } => {
                let scratch = &mut *self.scratch;
                let mut answers = Vec::with_capacity(keep.len());
                self.answers[*memory].answer(
                    column(*var),
                    keep,
                    &mut |rows, out| scratch.booleans(program, columns, rows, cx, out),
                    &mut answers,
                );
                retain_answered(keep, &answers);
            }
            Predicate::General(program) => {
                let mut answers = Vec::with_capacity(keep.len());
                self.scratch
                    .booleans(program, columns, keep, cx, &mut answers);
                retain_answered(keep, &answers);
            }
        }
    }

    /// Each part is tested on the rows that no part before it kept.
    fn retain_any(&mut self, parts: &[Predicate], keep: &mut Vec<u32>) {
        let mut pending = std::mem::take(keep);
        for part in parts {
            if pending.is_empty() {
                break;
            }
            let mut passed = pending.clone();
            self.retain(part, &mut passed);
            let mut passing = passed.iter().peekable();
            pending.retain(|row| passing.next_if_eq(&row).is_none());
            keep.append(&mut passed);
        }
        keep.sort_unstable();
    }
}

/// As `Vec::retain`, without a branch on the result, which may go either way at each row.
#[inline]
fn compact(keep: &mut Vec<u32>, mut passes: impl FnMut(u32) -> bool) {
    let mut kept = 0;
    for at in 0..keep.len() {
        let row = keep[at];
        keep[kept] = row;
        kept += usize::from(passes(row));
    }
    keep.truncate(kept);
}

/// Keeps the rows whose answer is true.
fn retain_answered(keep: &mut Vec<u32>, answers: &[bool]) {
    let mut answers = answers.iter();
    compact(keep, |_| answers.next().is_some_and(|answer| *answer));
}

#[inline]
fn cell(column: Option<&[TermId]>, row: u32) -> TermId {
    column.map_or(TermId::NONE, |column| column[row as usize])
}

#[inline]
fn among(ids: &[TermId], id: TermId) -> bool {
    match ids {
        [single] => *single == id,
        ids => ids.binary_search(&id).is_ok(),
    }
}

/// Whether a comparison is true, where the ids tell.
#[inline]
fn told(operator: Comparison, left: TermId, right: TermId) -> Option<bool> {
    if let Some(order) = order_of_ids(left, right) {
        return Some(holds(operator, order));
    }
    if left.is_none() || right.is_none() {
        return Some(false);
    }
    if names(left) || names(right) {
        return Some(match operator {
            Comparison::Equal => left == right,
            Comparison::NotEqual => left != right,
            // An error.
            _ => false,
        });
    }
    None
}
