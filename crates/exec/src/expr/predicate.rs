//! Which rows does a filter keep, and how cheaply can that be told?
//!
//! A filter keeps a row if its condition is true; false and errors drop it alike. So conjunctions
//! may be tested part by part, each on the rows that the parts before left, cheap parts first.

use jindou_model::{IdRanges, TermId, inline};
use jindou_plan::expression::{Comparison, Function};
use jindou_plan::physical::Var;

use super::calendar;
use super::compile::{Code, Constant, Program};
use super::id_range::IdRange;
use super::text_test::TextTest;
use super::value::Value;

/// A condition, by the cheapest test that tells whether it is true.
#[derive(Clone, Debug)]
pub(super) enum Predicate {
    /// The same for all rows.
    Constant(bool),
    /// Whether a variable is bound, or whether it is not.
    Bound(Var, bool),
    /// Whether a variable has one of these ids (sorted), or whether it has another.
    Among {
        var: Var,
        ids: Box<[TermId]>,
        wanted: bool,
    },
    /// Whether two variables have the same id, or whether they have two.
    Same { left: Var, right: Var, wanted: bool },
    /// A variable against an inline constant; `code` where the ids do not tell.
    CompareConstant {
        operator: Comparison,
        var: Var,
        constant: TermId,
        code: Code,
    },
    /// Two variables; `code` where the ids do not tell.
    CompareVariables {
        operator: Comparison,
        left: Var,
        right: Var,
        code: Code,
    },
    /// All of these, in this order.
    And(Vec<Self>),
    /// One of these, in this order.
    Or(Vec<Self>),
    /// A part of a variable's date or time, as [`calendar::whole_part_of_id`] tells it, against an
    /// integer; `code` where it does not.
    ComparePart {
        operator: Comparison,
        function: Function,
        var: Var,
        number: i64,
        code: Code,
    },
    /// A test of a variable's text, or of its negation; `code` where the term's key does not tell,
    /// and a memory where results are remembered.
    Text {
        test: TextTest,
        wanted: bool,
        memory: Option<usize>,
        code: Code,
    },
    /// A condition on the LANG and DATATYPE of a variable.
    OfEnd { var: Var, code: Code },
    /// A costly condition on one variable: remembered by its value, in memory number `memory`.
    Remembered {
        var: Var,
        memory: usize,
        program: Program,
    },
    /// Anything else.
    General(Program),
}

impl Predicate {
    /// The tests for a condition; `memories` counts the [`Predicate::Remembered`] ones.
    pub(super) fn compile(code: &Code, memories: &mut usize) -> Self {
        let mut all = |parts: &[Code]| -> Vec<Self> {
            let mut parts: Vec<Self> = parts
                .iter()
                .map(|part| Self::compile(part, memories))
                .collect();
            parts.sort_by_key(Self::cost);
            parts
        };
        match code {
            Code::Error(_) => Self::Constant(false),
            Code::Constant(constant) => match constant.value {
                Value::Boolean(value) => Self::Constant(value),
                _ => Self::General(Program::new(code.clone())),
            },
            Code::Bound(var) => Self::Bound(*var, true),
            Code::And(parts) => Self::And(all(parts)),
            Code::Or(parts) => Self::Or(all(parts)),
            Code::Not(part) => Self::negation(code, part, memories),
            Code::In(part, list) => match (&**part, ids_of(list, true)) {
                (Code::Variable(var), Some(ids)) => Self::Among {
                    var: *var,
                    ids,
                    wanted: true,
                },
                _ => Self::other(code, memories),
            },
            Code::Compare(operator, left, right) => match (&**left, &**right) {
                (Code::Variable(var), Code::Constant(constant)) => {
                    Self::compare_constant(*operator, *var, constant, code, memories)
                }
                (Code::Constant(constant), Code::Variable(var)) => {
                    Self::compare_constant(flip(*operator), *var, constant, code, memories)
                }
                (Code::Variable(left), Code::Variable(right)) => match operator {
                    Comparison::SameTerm => Self::Same {
                        left: *left,
                        right: *right,
                        wanted: true,
                    },
                    _ => Self::CompareVariables {
                        operator: *operator,
                        left: *left,
                        right: *right,
                        code: code.clone(),
                    },
                },
                (part, Code::Constant(constant)) => {
                    Self::compare_part(*operator, part, constant, code, memories)
                }
                (Code::Constant(constant), part) => {
                    Self::compare_part(flip(*operator), part, constant, code, memories)
                }
                _ => Self::other(code, memories),
            },
            _ => Self::other(code, memories),
        }
    }

    fn compare_part(
        operator: Comparison,
        part: &Code,
        constant: &Constant,
        code: &Code,
        memories: &mut usize,
    ) -> Self {
        let is_told = operator != Comparison::SameTerm;
        match (
            calendar::as_whole_part(part),
            inline::as_integer(constant.id),
        ) {
            (Some((function, var)), Some(number)) if is_told => Self::ComparePart {
                operator,
                function,
                var,
                number,
                code: code.clone(),
            },
            _ => Self::other(code, memories),
        }
    }

    /// `!part`, where an error stays an error: by De Morgan's laws, which hold for three truth
    /// values too.
    fn negation(code: &Code, part: &Code, memories: &mut usize) -> Self {
        let negated = |parts: &[Code]| -> Vec<Code> {
            parts
                .iter()
                .map(|part| Code::Not(Box::new(part.clone())))
                .collect()
        };
        match part {
            Code::Bound(var) => Self::Bound(*var, false),
            Code::Not(part) => Self::compile(part, memories),
            Code::And(parts) => Self::compile(&Code::Or(negated(parts)), memories),
            Code::Or(parts) => Self::compile(&Code::And(negated(parts)), memories),
            // Only of these two is one the other's negation: with NaN, `!(a < b)` is true and
            // `a >= b` is false.
            Code::Compare(Comparison::Equal, left, right) => Self::compile(
                &Code::Compare(Comparison::NotEqual, left.clone(), right.clone()),
                memories,
            ),
            Code::Compare(Comparison::NotEqual, left, right) => Self::compile(
                &Code::Compare(Comparison::Equal, left.clone(), right.clone()),
                memories,
            ),
            Code::Compare(Comparison::SameTerm, left, right) => match (&**left, &**right) {
                (Code::Variable(left), Code::Variable(right)) => Self::Same {
                    left: *left,
                    right: *right,
                    wanted: false,
                },
                (Code::Variable(var), Code::Constant(constant))
                | (Code::Constant(constant), Code::Variable(var)) => Self::Among {
                    var: *var,
                    ids: [constant.id].into(),
                    wanted: false,
                },
                _ => Self::other(code, memories),
            },
            Code::In(part, list) => match (&**part, ids_of(list, false)) {
                (Code::Variable(var), Some(ids)) => Self::Among {
                    var: *var,
                    ids,
                    wanted: false,
                },
                _ => Self::other(code, memories),
            },
            _ => Self::other(code, memories),
        }
    }

    fn compare_constant(
        operator: Comparison,
        var: Var,
        constant: &Constant,
        code: &Code,
        memories: &mut usize,
    ) -> Self {
        let wanted = match operator {
            Comparison::SameTerm => Some(true),
            Comparison::Equal if told_by_id(&constant.value, true) => Some(true),
            Comparison::NotEqual if told_by_id(&constant.value, false) => Some(false),
            _ => None,
        };
        match wanted {
            Some(wanted) => Self::Among {
                var,
                ids: [constant.id].into(),
                wanted,
            },
            None if constant.id.is_inline() => Self::CompareConstant {
                operator,
                var,
                constant: constant.id,
                code: code.clone(),
            },
            None if TextTest::of_code(code).is_some() => Self::other(code, memories),
            None => Self::remembered(code, var, memories),
        }
    }

    fn other(code: &Code, memories: &mut usize) -> Self {
        if let Some(var) = code.of_end() {
            let code = code.clone();
            return Self::OfEnd { var, code };
        }
        let (positive, wanted) = match code {
            Code::Not(part) => (&**part, false),
            code => (code, true),
        };
        if let Some(test) = TextTest::of_code(positive) {
            let memory = test.is_costly().then(|| new_memory(memories));
            return Self::Text {
                test,
                wanted,
                memory,
                code: code.clone(),
            };
        }
        match code.worth_remembering() {
            Some(var) => Self::remembered(code, var, memories),
            None => Self::General(Program::new(code.clone())),
        }
    }

    fn remembered(code: &Code, var: Var, memories: &mut usize) -> Self {
        Self::Remembered {
            var,
            memory: new_memory(memories),
            program: Program::new(code.clone()),
        }
    }

    /// The ids of a set without some of those that are not kept as values of this variable.
    pub(super) fn cut(&self, of: Var, ids: IdRanges) -> IdRanges {
        match self {
            Self::And(parts) => parts.iter().fold(ids, |ids, part| part.cut(of, ids)),
            Self::CompareConstant {
                operator,
                var,
                constant,
                ..
            } if *var == of => match IdRange::of_constant(*operator, *constant) {
                Some(range) => range.cut(&ids),
                None => ids,
            },
            Self::ComparePart {
                operator,
                function: Function::Year,
                var,
                number,
                ..
            } if *var == of => {
                let ranges = IdRange::of_years(*operator, *number);
                ranges.iter().fold(ids, |ids, range| range.cut(&ids))
            }
            _ => ids,
        }
    }

    /// What a test costs, roughly: reading ids, decoding terms, more.
    fn cost(&self) -> u32 {
        match self {
            Self::Constant(_) => 0,
            Self::Bound(..) | Self::Among { .. } | Self::Same { .. } => 1,
            Self::CompareConstant { .. }
            | Self::CompareVariables { .. }
            | Self::ComparePart { .. } => 2,
            Self::OfEnd { .. } => 3,
            Self::Text { memory: None, .. } => 10,
            Self::Text { .. } | Self::Remembered { .. } => 20,
            Self::General(_) => 40,
            Self::And(parts) | Self::Or(parts) => parts.iter().map(Self::cost).sum(),
        }
    }
}

fn new_memory(memories: &mut usize) -> usize {
    *memories += 1;
    *memories - 1
}

/// Whether ids alone tell that a term is this value (`equal`), or that it is another.
///
/// Only the term itself equals an IRI or a string; but whether something differs from a string
/// can be an error.
fn told_by_id(value: &Value, equal: bool) -> bool {
    match value {
        Value::Iri(_) | Value::Blank(_) => true,
        Value::String(_) => equal,
        _ => false,
    }
}

/// The ids of a list of constants that ids alone tell, sorted.
fn ids_of(list: &[Code], equal: bool) -> Option<Box<[TermId]>> {
    let mut ids = Vec::with_capacity(list.len());
    for part in list {
        match part {
            Code::Constant(constant) if told_by_id(&constant.value, equal) => ids.push(constant.id),
            _ => return None,
        }
    }
    ids.sort_unstable();
    Some(ids.into())
}

/// The operator for swapped operands.
pub(super) fn flip(operator: Comparison) -> Comparison {
    match operator {
        Comparison::Less => Comparison::Greater,
        Comparison::LessOrEqual => Comparison::GreaterOrEqual,
        Comparison::Greater => Comparison::Less,
        Comparison::GreaterOrEqual => Comparison::LessOrEqual,
        same @ (Comparison::Equal | Comparison::NotEqual | Comparison::SameTerm) => same,
    }
}
