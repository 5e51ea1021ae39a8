//! How is an expression evaluated for many rows at a time?

use jindou_model::{PAYLOAD_BITS, TermId, TermKind};
use jindou_plan::expression::Comparison;
use rustc_hash::FxHashMap;

use super::compare::{holds, order_of_ids};
use super::compile::{Code, CompiledExpression};
use super::evaluate::names;
use super::predicate::Predicate;
use super::row::SingleRow;
use super::{ColumnRow, Columns, Context};

/// How many results are remembered for each costly part of an expression.
const REMEMBERED: usize = 1 << 16;

/// An expression with what one thread remembers of its results.
///
/// To be kept from batch to batch: a costly condition on one variable (a pattern, a function of
/// strings) is then evaluated once for each distinct value, as far as memory goes.
#[derive(Debug)]
pub struct Evaluator {
    expression: CompiledExpression,
    answers: Vec<FxHashMap<TermId, bool>>,
    ids: FxHashMap<TermId, TermId>,
}

impl CompiledExpression {
    /// An evaluator for one thread.
    #[must_use]
    pub fn evaluator(self) -> Evaluator {
        let answers = vec![FxHashMap::default(); self.memories];
        Evaluator {
            expression: self,
            answers,
            ids: FxHashMap::default(),
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
            answers: &mut self.answers,
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
        match (&self.expression.code, self.expression.remembered) {
            (Code::Variable(var), _) => match columns.column(*var) {
                Some(column) => out.extend_from_slice(&column[..rows]),
                None => out.resize(out.len() + rows, TermId::NONE),
            },
            (Code::Constant(constant), _) => out.resize(out.len() + rows, constant.id),
            (Code::Error(_), _) => out.resize(out.len() + rows, TermId::NONE),
            (code, Some(var)) => {
                let column = columns.column(var);
                for row in 0..rows {
                    let id = column.map_or(TermId::NONE, |column| column[row]);
                    let result = remember(&mut self.ids, id, || code.id(&SingleRow { id }, cx));
                    out.push(result);
                }
            }
            (code, None) => {
                out.extend((0..rows).map(|row| code.id(&ColumnRow::new(columns, row), cx)));
            }
        }
    }

    /// Bytes held by what is remembered, about.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let answers: usize = self.answers.iter().map(FxHashMap::capacity).sum();
        // With a byte of the table itself for each entry.
        answers * (size_of::<(TermId, bool)>() + 1)
            + self.ids.capacity() * (size_of::<(TermId, TermId)>() + 1)
    }
}

fn remember<T: Copy>(
    memory: &mut FxHashMap<TermId, T>,
    id: TermId,
    evaluate: impl FnOnce() -> T,
) -> T {
    if let Some(known) = memory.get(&id) {
        return *known;
    }
    let result = evaluate();
    if memory.len() >= REMEMBERED {
        memory.clear();
    }
    memory.insert(id, result);
    result
}

/// One pass over some rows.
struct Pass<'p> {
    columns: &'p dyn Columns,
    cx: &'p Context,
    answers: &'p mut [FxHashMap<TermId, bool>],
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
                match IntegerRange::new(*operator, *constant) {
                    Some(range) => compact(keep, |row| {
                        let id = cell(column, row);
                        range.told(id).unwrap_or_else(|| slowly(id))
                    }),
                    None => compact(keep, |row| slowly(cell(column, row))),
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
                    told(*operator, cell(left, row), cell(right, row))
                        .unwrap_or_else(|| general(code, columns, cx, row))
                });
            }
            Predicate::And(parts) => {
                for part in parts {
                    self.retain(part, keep);
                }
            }
            Predicate::Or(parts) => self.retain_any(parts, keep),
            Predicate::Remembered { var, memory, code } => {
                let column = column(*var);
                let memory = &mut self.answers[*memory];
                keep.retain(|row| {
                    let id = cell(column, *row);
                    remember(memory, id, || {
                        code.boolean(&SingleRow { id }, cx) == Ok(true)
                    })
                });
            }
            Predicate::General(code) => keep.retain(|row| general(code, columns, cx, *row)),
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

/// The ids of the integers for which a comparison with an integer holds, which are consecutive;
/// or, for `!=`, for which it does not.
struct IntegerRange {
    first: u64,
    /// One past the last.
    end: u64,
    inside: bool,
}

impl IntegerRange {
    fn new(operator: Comparison, constant: TermId) -> Option<Self> {
        if constant.kind() != TermKind::Integer {
            return None;
        }
        let least = TermId::new(TermKind::Integer, 0).raw();
        let end = least + (1 << PAYLOAD_BITS);
        let id = constant.raw();
        let (first, end) = match operator {
            Comparison::Equal | Comparison::NotEqual | Comparison::SameTerm => (id, id + 1),
            Comparison::Less => (least, id),
            Comparison::LessOrEqual => (least, id + 1),
            Comparison::Greater => (id + 1, end),
            Comparison::GreaterOrEqual => (id, end),
        };
        Some(Self {
            first,
            end,
            inside: operator != Comparison::NotEqual,
        })
    }

    /// Whether it holds for this integer; `None` for anything else.
    #[inline]
    fn told(&self, id: TermId) -> Option<bool> {
        let raw = id.raw();
        (id.kind() == TermKind::Integer)
            .then_some((self.first <= raw && raw < self.end) == self.inside)
    }
}

fn general(code: &Code, columns: &dyn Columns, cx: &Context, row: u32) -> bool {
    code.boolean(&ColumnRow::new(columns, row as usize), cx) == Ok(true)
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
