//! What is the value of this expression for these rows, and in which order do values come?
//!
//! An expression of the plan is compiled once for a query ([`CompiledExpression`]): constants are
//! looked up, constant parts are evaluated, constant patterns are compiled. It is then evaluated
//! row by row or columns at a time; ids are decoded only where an operator needs more than the id
//! tells. Aggregates ([`GroupedAccumulator`]) and the order of terms ([`SortKey`]) work
//! on ids that such expressions gave.
//!
//! Semantics are those of SPARQL 1.1, section 17; what a function of XPath does is taken from
//! XQuery and XPath Functions 3.1 where SPARQL refers to it.

mod aggregate;
mod backtrack;
mod batch;
mod calendar;
mod cast;
mod compare;
mod compile;
mod concat;
mod context;
mod evaluate;
mod exact;
mod extreme;
mod filter;
mod functions;
mod id_range;
mod large;
mod numeric;
mod order;
mod order_later;
mod order_numbers;
mod order_run;
mod pattern;
mod predicate;
mod row;
mod strings;
mod text_test;
mod value;

#[cfg(test)]
mod tests;

use jindou_model::Unavailable;

pub use aggregate::GroupedAccumulator;
pub use compile::{CompileError, CompiledExpression};
pub use context::Context;
pub(crate) use context::sequence_place;
pub use filter::Evaluator;
pub use large::Large;
pub use order::SortKey;
pub(crate) use order_numbers::{NUMBER_BYTES, Numbered, order_numbers};
pub(crate) use order_run::{OrderedTerms, Place, order_of_places, place_of};
pub use row::{ColumnRow, Columns, Row};
pub use value::Value;

/// Why an expression has no value for a row.
///
/// Such errors are part of SPARQL: a filter takes them for false, BIND leaves its variable
/// unbound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum ExprError {
    /// A variable without a value.
    #[error("a variable is unbound")]
    Unbound,
    /// An operand of a type for which the operator is not defined.
    #[error("the operator is not defined for operands of these types")]
    Type,
    /// An operand outside what the operator accepts: a malformed lexical form, IRI or pattern.
    #[error("an operand has no meaning for the operator")]
    Value,
    /// A result outside the range of its type.
    #[error("the result overflows its type")]
    Overflow,
    /// Division of integers or decimals by zero.
    #[error("division by zero")]
    DivisionByZero,
    /// The query was refused: see [`Context::refusal`].
    #[error("the operation is beyond what this engine does")]
    Refused,
    /// A term cannot be read or looked up: see [`Terms::lost`](crate::Terms::lost).
    #[error("a part of the dictionary does not answer")]
    Lost,
}

impl From<Unavailable> for ExprError {
    fn from(_: Unavailable) -> Self {
        Self::Lost
    }
}
