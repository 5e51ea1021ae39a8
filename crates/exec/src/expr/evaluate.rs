//! What is the value of an expression for one row?

use std::borrow::Cow;

use jindou_model::{TermId, TermKind};
use jindou_plan::expression::Comparison;

use super::compare::{self, equals, order_of_ids};
use super::compile::{Code, CompiledExpression, Constant};
use super::numeric::{self, Number};
use super::strings::{self, Text};
use super::{Context, ExprError, Row, Value, functions};
use crate::KeyKind;
use crate::terms::HeldBytes;

impl CompiledExpression {
    /// The value for a row; a term of the row or of the query comes as [`Value::Id`].
    ///
    /// # Errors
    /// [`ExprError`] where SPARQL has it that there is no value.
    pub fn evaluate(&self, row: &impl Row, cx: &Context) -> Result<Value, ExprError> {
        self.program.code.evaluate(row, cx)
    }

    /// Whether the effective boolean value for a row is true; on an error it is not.
    #[must_use]
    pub fn effective_boolean(&self, row: &impl Row, cx: &Context) -> bool {
        self.program.code.boolean(row, cx) == Ok(true)
    }

    /// The id of the value for a row; [`TermId::NONE`] on an error.
    #[must_use]
    pub fn evaluate_id(&self, row: &impl Row, cx: &Context) -> TermId {
        self.program.code.id(row, cx)
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

    /// Counts a long value while the other operand is evaluated.
    fn hold(&self, cx: &Context) -> Result<Option<HeldBytes>, ExprError> {
        match self {
            Self::Constant(_) => Ok(None),
            Self::Value(value) => value.hold(cx),
        }
    }

    fn decode(self, cx: &Context) -> Result<Cow<'c, Value>, ExprError> {
        let value = match self {
            Self::Constant(constant) => return Ok(Cow::Borrowed(&constant.value)),
            Self::Value(Value::Id(id)) => Value::decode(id, cx.terms())?,
            Self::Value(value) => value,
        };
        if let Value::Large(number) = &value {
            cx.count_text(number.text().len())?;
        }
        Ok(Cow::Owned(value))
    }

    fn into_id(self, cx: &Context) -> Result<TermId, ExprError> {
        match self {
            Self::Constant(constant) => Ok(constant.id),
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
            | Self::Contains(..)
            | Self::Regex(..) => self.boolean(row, cx).map(Value::Boolean),
            Self::Arithmetic(..) | Self::Plus(_) | Self::Minus(_) => {
                self.number(row, cx).map(Value::from)
            }
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
            Self::Replace(..) => self.text(row, cx).map(Text::into_value),
        }
    }

    /// The value as a number.
    ///
    /// # Errors
    /// [`ExprError::Type`] where it is none, and as [`Code::evaluate`].
    pub(super) fn number<R: Row + ?Sized>(
        &self,
        row: &R,
        cx: &Context,
    ) -> Result<Number, ExprError> {
        match self {
            Self::Variable(var) => {
                let id = row.get(*var);
                match Number::of_id(id) {
                    Some(number) => Ok(number),
                    None => Number::take(Value::decode(id, cx.terms())?).ok_or(ExprError::Type),
                }
            }
            Self::Constant(constant) => Number::of(&constant.value).ok_or(ExprError::Type),
            Self::Arithmetic(first, rest) => {
                // An operation takes about as long as handling a byte of text does.
                if rest.len() > 1 {
                    cx.count_text(rest.len())?;
                }
                let mut result = first.number(row, cx)?;
                for (operator, right) in rest {
                    let _held = match &result {
                        Number::Large(large) => Some(large.hold(cx)?),
                        _ => None,
                    };
                    result = numeric::arithmetic(*operator, result, right.number(row, cx)?, cx)?;
                }
                Ok(result)
            }
            Self::Plus(part) => part.number(row, cx),
            Self::Minus(part) => part.number(row, cx).map(numeric::minus),
            Self::Call(function, arguments) if functions::gives_number(*function) => {
                functions::number(*function, arguments, row, cx)
            }
            code => number_of(code.decoded(row, cx)?).map_err(|_| ExprError::Type),
        }
    }

    /// The value as a string, borrowed from the row where that has its key.
    ///
    /// # Errors
    /// [`ExprError::Type`] where it is none, and as [`Code::evaluate`].
    pub(super) fn text<'r, R: Row + ?Sized>(
        &'r self,
        row: &'r R,
        cx: &Context,
    ) -> Result<Text<'r>, ExprError> {
        match self {
            Self::Variable(var) => match row.key(*var) {
                Some((key, KeyKind::Literal)) => Text::of_key(key).ok_or(ExprError::Type),
                Some(_) => Err(ExprError::Type),
                None => Text::take(Value::decode(row.get(*var), cx.terms())?),
            },
            Self::Constant(constant) => Text::of(&constant.value),
            Self::Call(function, arguments) if functions::gives_text(*function) => {
                functions::text(*function, arguments, row, cx)
            }
            Self::Replace(text, pattern, replacement) => {
                let text = text.text(row, cx)?;
                cx.count_text(text.value.len())?;
                let _held = text.hold(cx)?;
                strings::replace(text, pattern, &replacement.text(row, cx)?, cx)
            }
            code => Text::take(code.decoded(row, cx)?.into_owned()),
        }
    }

    /// The text for a comparison, where it is known to be a string without decoding a term.
    fn known_text<'r, R: Row + ?Sized>(
        &'r self,
        row: &'r R,
        cx: &Context,
    ) -> Result<Option<Text<'r>>, ExprError> {
        match self {
            Self::Variable(var) => Ok(match row.key(*var) {
                Some((key, KeyKind::Literal)) => Text::of_key(key),
                _ => None,
            }),
            code if code.gives_text() => code.text(row, cx).map(Some),
            _ => Ok(None),
        }
    }

    /// The value as an id; [`TermId::NONE`] on an error.
    pub(super) fn id<R: Row + ?Sized>(&self, row: &R, cx: &Context) -> TermId {
        let value = self.evaluate(row, cx);
        let id = value.and_then(|value| value.into_id(cx.terms()));
        id.unwrap_or(TermId::NONE)
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
            Self::Compare(operator, left, right) => {
                if *operator != Comparison::SameTerm {
                    if left.gives_number() || right.gives_number() {
                        return compare_numbers(*operator, left, right, row, cx);
                    }
                    if (left.gives_text() || right.gives_text())
                        && let Some(left) = left.known_text(row, cx)?
                    {
                        let _held = left.hold(cx)?;
                        if let Some(right) = right.known_text(row, cx)? {
                            return compare_texts(*operator, &left, &right);
                        }
                    }
                }
                let left = left.operand(row, cx)?;
                let _held = left.hold(cx)?;
                compare_operands(*operator, left, right.operand(row, cx)?, cx)
            }
            Self::In(part, list) => {
                // What has no value is in no list, and not outside of one either, be it empty.
                let value = part.decoded(row, cx)?;
                let _held = value.hold(cx)?;
                any(list
                    .iter()
                    .map(|part| equals(&value, &*part.decoded(row, cx)?)))
            }
            Self::Bound(var) => Ok(!row.get(*var).is_none()),
            Self::Contains(text, part) => {
                let text = text.text(row, cx)?;
                cx.count_text(text.value.len())?;
                Ok(part.find(&text.value).is_some())
            }
            Self::Regex(text, pattern) => {
                let text = text.text(row, cx)?;
                cx.count_text(text.value.len())?;
                pattern.is_match(text.str(), cx)
            }
            Self::Call(function, arguments) if functions::tests_text(*function) => {
                functions::test(*function, arguments, row, cx)
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

/// The number of a value; the value itself where it is none.
fn number_of(value: Cow<'_, Value>) -> Result<Number, Value> {
    match value {
        Cow::Owned(Value::Large(number)) => Ok(Number::Large(number)),
        value => Number::of(&value).ok_or_else(|| value.into_owned()),
    }
}

/// Compares two values of which one at least is a number that is computed.
fn compare_numbers<R: Row + ?Sized>(
    operator: Comparison,
    left: &Code,
    right: &Code,
    row: &R,
    cx: &Context,
) -> Result<bool, ExprError> {
    let side = |code: &Code| -> Result<Result<Number, Value>, ExprError> {
        if code.gives_number() {
            return code.number(row, cx).map(Ok);
        }
        if let Code::Variable(var) = code
            && let Some(number) = Number::of_id(row.get(*var))
        {
            return Ok(Ok(number));
        }
        code.decoded(row, cx).map(number_of)
    };
    let left = side(left)?;
    let _held = match &left {
        Ok(Number::Large(large)) => large.hold(cx)?,
        Ok(_) => None,
        Err(value) => value.hold(cx)?,
    };
    match (left, side(right)?) {
        (Ok(left), Ok(right)) => Ok(match left.compare(right) {
            Some(order) => compare::holds(operator, order),
            // NaN differs from all, and is in no order.
            None => operator == Comparison::NotEqual,
        }),
        (left, right) => {
            let value = |side: Result<Number, Value>| side.map_or_else(|value| value, Value::from);
            compare::compare(operator, &value(left), &value(right))
        }
    }
}

fn compare_texts(
    operator: Comparison,
    left: &Text<'_>,
    right: &Text<'_>,
) -> Result<bool, ExprError> {
    match operator {
        Comparison::Equal => Ok(left.equals(right)),
        Comparison::NotEqual => Ok(!left.equals(right)),
        operator => Ok(compare::holds(operator, left.order(right)?)),
    }
}

fn compare_operands(
    operator: Comparison,
    left: Operand<'_>,
    right: Operand<'_>,
    cx: &Context,
) -> Result<bool, ExprError> {
    if operator == Comparison::SameTerm {
        return Ok(left.into_id(cx)? == right.into_id(cx)?);
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
    id.kind() == TermKind::Vertex
}
