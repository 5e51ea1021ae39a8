//! What is the value of an expression for one row?

use std::borrow::Cow;

use jindou_model::{TermId, TermKind};
use jindou_plan::expression::Comparison;

use super::compare::{self, equals, order_of_ids};
use super::compile::{Code, CompiledExpression, Constant};
use super::strings::Text;
use super::{Context, ExprError, Row, Value, functions, numeric, strings};

impl CompiledExpression {
    /// The value for a row; a term of the row or of the query comes as [`Value::Id`].
    ///
    /// # Errors
    /// [`ExprError`] where SPARQL has it that there is no value.
    pub fn evaluate(&self, row: &impl Row, cx: &Context) -> Result<Value, ExprError> {
        self.code.evaluate(row, cx)
    }

    /// Whether the effective boolean value for a row is true; on an error it is not.
    #[must_use]
    pub fn effective_boolean(&self, row: &impl Row, cx: &Context) -> bool {
        self.code.boolean(row, cx) == Ok(true)
    }

    /// The id of the value for a row; [`TermId::NONE`] on an error.
    #[must_use]
    pub fn evaluate_id(&self, row: &impl Row, cx: &Context) -> TermId {
        self.code.id(row, cx)
    }
}

/// An operand: a constant, which is not copied, or a value of this row.
pub(super) enum Operand<'c> {
    Constant(&'c Constant),
    Value(Value),
}

impl<'c> Operand<'c> {
    fn known_id(&self) -> Option<TermId> {
        match self {
            Self::Constant(constant) => Some(constant.id),
            Self::Value(Value::Id(id)) => Some(*id),
            Self::Value(_) => None,
        }
    }

    fn decode(self, cx: &Context) -> Result<Cow<'c, Value>, ExprError> {
        match self {
            Self::Constant(constant) => Ok(Cow::Borrowed(&constant.value)),
            Self::Value(Value::Id(id)) => Value::decode(id, cx.terms()).map(Cow::Owned),
            Self::Value(value) => Ok(Cow::Owned(value)),
        }
    }

    fn into_id(self, cx: &Context) -> TermId {
        match self {
            Self::Constant(constant) => constant.id,
            Self::Value(value) => value.into_id(cx.terms()),
        }
    }
}

impl Code {
    /// The value; terms that are passed on stay ids.
    pub(super) fn evaluate<R: Row + ?Sized>(
        &self,
        row: &R,
        cx: &Context,
    ) -> Result<Value, ExprError> {
        match self {
            Self::Variable(var) => match row.get(*var) {
                TermId::NONE => Err(ExprError::Unbound),
                id => Ok(Value::Id(id)),
            },
            Self::Constant(constant) => Ok(Value::Id(constant.id)),
            Self::Error(error) => Err(*error),
            Self::Or(_)
            | Self::And(_)
            | Self::Not(_)
            | Self::Compare(..)
            | Self::In(..)
            | Self::Bound(_)
            | Self::Regex(..) => self.boolean(row, cx).map(Value::Boolean),
            Self::Arithmetic(operator, left, right) => numeric::arithmetic(
                *operator,
                &*left.decoded(row, cx)?,
                &*right.decoded(row, cx)?,
            ),
            Self::Plus(part) => numeric::plus(&*part.decoded(row, cx)?),
            Self::Minus(part) => numeric::minus(&*part.decoded(row, cx)?),
            Self::If(condition, then, otherwise) => {
                if condition.boolean(row, cx)? {
                    then.evaluate(row, cx)
                } else {
                    otherwise.evaluate(row, cx)
                }
            }
            Self::Coalesce(parts) => parts
                .iter()
                .find_map(|part| part.evaluate(row, cx).ok())
                .ok_or(ExprError::Unbound),
            Self::Call(function, arguments) => functions::call(*function, arguments, row, cx),
            Self::Replace(text, pattern, replacement) => strings::replace(
                &*text.decoded(row, cx)?,
                pattern,
                &*replacement.decoded(row, cx)?,
                cx,
            ),
        }
    }

    /// The value as an id; [`TermId::NONE`] on an error.
    pub(super) fn id<R: Row + ?Sized>(&self, row: &R, cx: &Context) -> TermId {
        self.evaluate(row, cx)
            .map_or(TermId::NONE, |value| value.into_id(cx.terms()))
    }

    fn operand<R: Row + ?Sized>(&self, row: &R, cx: &Context) -> Result<Operand<'_>, ExprError> {
        match self {
            Self::Constant(constant) => Ok(Operand::Constant(constant)),
            code => code.evaluate(row, cx).map(Operand::Value),
        }
    }

    /// The value, never an id.
    pub(super) fn decoded<R: Row + ?Sized>(
        &self,
        row: &R,
        cx: &Context,
    ) -> Result<Cow<'_, Value>, ExprError> {
        self.operand(row, cx)?.decode(cx)
    }

    /// The effective boolean value.
    pub(super) fn boolean<R: Row + ?Sized>(
        &self,
        row: &R,
        cx: &Context,
    ) -> Result<bool, ExprError> {
        match self {
            Self::Or(parts) => any(parts.iter().map(|part| part.boolean(row, cx))),
            Self::And(parts) => {
                let none = any(parts
                    .iter()
                    .map(|part| part.boolean(row, cx).map(|value| !value)));
                none.map(|value| !value)
            }
            Self::Not(part) => part.boolean(row, cx).map(|value| !value),
            Self::Compare(operator, left, right) => compare_operands(
                *operator,
                left.operand(row, cx)?,
                right.operand(row, cx)?,
                cx,
            ),
            Self::In(part, list) => {
                // An empty list is an empty disjunction.
                if list.is_empty() {
                    return Ok(false);
                }
                let value = part.decoded(row, cx)?;
                any(list
                    .iter()
                    .map(|part| equals(&value, &*part.decoded(row, cx)?)))
            }
            Self::Bound(var) => Ok(!row.get(*var).is_none()),
            Self::Regex(text, pattern) => {
                let text = text.decoded(row, cx)?;
                Ok(pattern.is_match(Text::of(&text)?.value))
            }
            code => match code.operand(row, cx)? {
                Operand::Constant(constant) => constant.value.effective_boolean(cx.terms()),
                Operand::Value(value) => value.effective_boolean(cx.terms()),
            },
        }
    }
}

/// Disjunction with errors: true if one is true, else an error if one is, else false.
fn any(parts: impl Iterator<Item = Result<bool, ExprError>>) -> Result<bool, ExprError> {
    let mut result = Ok(false);
    for part in parts {
        match part {
            Ok(true) => return Ok(true),
            Ok(false) => {}
            error => result = error,
        }
    }
    result
}

fn compare_operands(
    operator: Comparison,
    left: Operand<'_>,
    right: Operand<'_>,
    cx: &Context,
) -> Result<bool, ExprError> {
    if operator == Comparison::SameTerm {
        return Ok(left.into_id(cx) == right.into_id(cx));
    }
    if let (Some(left), Some(right)) = (left.known_id(), right.known_id()) {
        if let Some(order) = order_of_ids(left, right) {
            return Ok(compare::holds(operator, order));
        }
        if names(left) || names(right) {
            match operator {
                Comparison::Equal => return Ok(left == right),
                Comparison::NotEqual => return Ok(left != right),
                _ => return Err(ExprError::Type),
            }
        }
    }
    compare::compare(operator, &*left.decode(cx)?, &*right.decode(cx)?)
}

/// True of the ids of IRIs and blank nodes that the store has: those are equal to themselves
/// only.
pub(super) fn names(id: TermId) -> bool {
    matches!(id.kind(), TermKind::Vertex | TermKind::Predicate)
}
