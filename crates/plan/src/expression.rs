//! Expressions of FILTER, BIND, ORDER BY and HAVING, and aggregates.

use serde::{Deserialize, Serialize};

use crate::physical::{ConstId, Var};
use crate::varset::VarSet;

/// An expression over the columns of a binding table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Expression {
    /// The value of a variable; an error where it is unbound.
    Variable(Var),
    /// A constant of the plan.
    Constant(ConstId),
    /// `a || b || ...`, two operands at least.
    Or(Vec<Self>),
    /// `a && b && ...`, two operands at least.
    And(Vec<Self>),
    /// `!a`
    Not(Box<Self>),
    /// A comparison of two values.
    Compare(Comparison, Box<Self>, Box<Self>),
    /// `a IN (b, ...)`; the list may be empty.
    In(Box<Self>, Vec<Self>),
    /// Arithmetic on numbers, from left to right: operators of one precedence side by side.
    Arithmetic(Box<Self>, Vec<(Arithmetic, Self)>),
    /// `+a`
    UnaryPlus(Box<Self>),
    /// `-a`
    UnaryMinus(Box<Self>),
    /// `BOUND(?v)`
    Bound(Var),
    /// `IF(a, b, c)`
    If(Box<Self>, Box<Self>, Box<Self>),
    /// `COALESCE(a, ...)`
    Coalesce(Vec<Self>),
    /// A function of SPARQL 1.1 or a cast.
    Call(Function, Vec<Self>),
}

/// Comparison operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Comparison {
    /// `=`
    Equal,
    /// `!=`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
    /// `sameTerm(a, b)`
    SameTerm,
}

/// Arithmetic operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Arithmetic {
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `*`
    Multiply,
    /// `/`
    Divide,
}

/// Functions, by their names in SPARQL 1.1, and one of C-SPARQL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[expect(
    missing_docs,
    reason = "each variant is the SPARQL function of that name"
)]
pub enum Function {
    Str,
    Lang,
    LangMatches,
    Datatype,
    Iri,
    BNode,
    Rand,
    Abs,
    Ceil,
    Floor,
    Round,
    Concat,
    SubStr,
    StrLen,
    Replace,
    UCase,
    LCase,
    EncodeForUri,
    Contains,
    StrStarts,
    StrEnds,
    StrBefore,
    StrAfter,
    Year,
    Month,
    Day,
    Hours,
    Minutes,
    Seconds,
    Timezone,
    Tz,
    Now,
    Uuid,
    StrUuid,
    Md5,
    Sha1,
    Sha256,
    Sha384,
    Sha512,
    StrLang,
    StrDt,
    IsIri,
    IsBlank,
    IsLiteral,
    IsNumeric,
    Regex,
    /// When the triple of these three parts came last of those in the query's windows, in milliseconds.
    Timestamp,
    CastString,
    CastBoolean,
    CastInteger,
    CastDecimal,
    CastFloat,
    CastDouble,
    CastDateTime,
    CastDate,
    CastTime,
    CastDuration,
    CastDayTimeDuration,
    CastYearMonthDuration,
}

/// An aggregate of GROUP BY.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Aggregate {
    /// Which.
    pub function: AggregateFunction,
    /// What it is computed over; `None` for `COUNT(*)`.
    pub operand: Option<Expression>,
    /// Over distinct values (for `COUNT(DISTINCT *)`: distinct solutions).
    pub distinct: bool,
}

impl Aggregate {
    /// True if equal rows may come once each, with their numbers: they are counted, added as often,
    /// or repeats do not matter.
    #[must_use]
    pub fn takes_counted_rows(&self) -> bool {
        let repeats = matches!(self.function, AggregateFunction::GroupConcat(_)) && !self.distinct;
        let is_volatile = self.operand.as_ref().is_some_and(Expression::is_volatile);
        !repeats && !is_volatile
    }
}

/// Aggregate functions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum AggregateFunction {
    /// `COUNT`
    Count,
    /// `SUM`
    Sum,
    /// `AVG`
    Avg,
    /// `MIN`
    Min,
    /// `MAX`
    Max,
    /// `SAMPLE`
    Sample,
    /// `GROUP_CONCAT` with its separator.
    GroupConcat(String),
}

impl Expression {
    /// Calls `visit` with each variable used, repeats included.
    pub fn for_each_variable(&self, visit: &mut dyn FnMut(Var)) {
        match self {
            Self::Variable(var) | Self::Bound(var) => visit(*var),
            other => other.for_each_part(&mut |part| part.for_each_variable(visit)),
        }
    }

    /// Calls `visit` with each operand and argument, in order.
    pub(crate) fn for_each_part(&self, visit: &mut dyn FnMut(&Self)) {
        match self {
            Self::Variable(_) | Self::Bound(_) | Self::Constant(_) => (),
            Self::Or(list) | Self::And(list) | Self::Coalesce(list) | Self::Call(_, list) => {
                list.iter().for_each(visit);
            }
            Self::Not(part) | Self::UnaryPlus(part) | Self::UnaryMinus(part) => visit(part),
            Self::Compare(_, left, right) => {
                visit(left);
                visit(right);
            }
            Self::Arithmetic(first, rest) => {
                visit(first);
                rest.iter().for_each(|(_, part)| visit(part));
            }
            Self::In(part, list) => {
                visit(part);
                list.iter().for_each(visit);
            }
            Self::If(condition, then, otherwise) => {
                visit(condition);
                visit(then);
                visit(otherwise);
            }
        }
    }
}

impl Expression {
    /// The variables used.
    pub(crate) fn variables(&self) -> VarSet {
        let mut set = VarSet::default();
        self.for_each_variable(&mut |var| set.insert(var));
        set
    }

    /// True if two evaluations over the same values may differ.
    pub fn is_volatile(&self) -> bool {
        use Function::{BNode, Rand, StrUuid, Uuid};
        [BNode, Rand, StrUuid, Uuid]
            .iter()
            .any(|function| self.calls(*function))
    }

    /// True if this expression or a part of it calls `function`.
    #[must_use]
    pub fn calls(&self, function: Function) -> bool {
        match self {
            Self::Variable(_) | Self::Bound(_) | Self::Constant(_) => false,
            Self::Call(called, list) => {
                *called == function || list.iter().any(|part| part.calls(function))
            }
            Self::Or(list) | Self::And(list) | Self::Coalesce(list) => {
                list.iter().any(|part| part.calls(function))
            }
            Self::Not(part) | Self::UnaryPlus(part) | Self::UnaryMinus(part) => {
                part.calls(function)
            }
            Self::Compare(_, left, right) => left.calls(function) || right.calls(function),
            Self::Arithmetic(first, rest) => {
                first.calls(function) || rest.iter().any(|(_, part)| part.calls(function))
            }
            Self::In(part, list) => {
                part.calls(function) || list.iter().any(|part| part.calls(function))
            }
            Self::If(condition, then, otherwise) => [condition, then, otherwise]
                .iter()
                .any(|part| part.calls(function)),
        }
    }
}
