//! What do arithmetic and the functions on numbers give?

use std::cmp::Ordering;

use jindou_model::{TermId, TermKind, inline};
use jindou_plan::expression::{Arithmetic, Function};
use oxsdatatypes::{Decimal, Double, Float, Integer};

use super::{ExprError, Value};

/// Half of the 18 digits that a decimal has after the point.
const HALF: i64 = 1_000_000_000;

/// A number of one of the four types that arithmetic knows, in the order of promotion.
#[derive(Clone, Copy, Debug)]
pub(super) enum Number {
    Integer(Integer),
    Decimal(Decimal),
    Float(Float),
    Double(Double),
}

/// Two numbers of one type.
pub(super) enum Pair {
    Integers(Integer, Integer),
    Decimals(Decimal, Decimal),
    Floats(Float, Float),
    Doubles(Double, Double),
}

impl Number {
    /// The number of a decoded value; `None` if it is not one.
    pub(super) fn of(value: &Value) -> Option<Self> {
        match value {
            Value::Integer(value) => Some(Self::Integer(*value)),
            Value::Decimal(value) => Some(Self::Decimal(*value)),
            Value::Float(value) => Some(Self::Float(*value)),
            Value::Double(value) => Some(Self::Double(*value)),
            _ => None,
        }
    }

    /// The number of an id that holds one.
    #[inline]
    pub(super) fn of_id(id: TermId) -> Option<Self> {
        match id.kind() {
            TermKind::Integer => inline::as_integer(id).map(|value| Self::Integer(value.into())),
            TermKind::Decimal => {
                let (mantissa, scale) = inline::as_decimal(id)?;
                let value = Decimal::new(i128::from(mantissa), scale.into()).ok()?;
                Some(Self::Decimal(value))
            }
            TermKind::Double => inline::as_f64(id).map(|value| Self::Double(value.into())),
            TermKind::Float => inline::as_f32(id).map(|value| Self::Float(value.into())),
            _ => None,
        }
    }

    fn to_decimal(self) -> Option<Decimal> {
        match self {
            Self::Integer(value) => Some(value.into()),
            Self::Decimal(value) => Some(value),
            Self::Float(_) | Self::Double(_) => None,
        }
    }

    fn to_float(self) -> Option<Float> {
        match self {
            Self::Integer(value) => Some(value.into()),
            Self::Decimal(value) => Some(value.into()),
            Self::Float(value) => Some(value),
            Self::Double(_) => None,
        }
    }

    pub(super) fn to_double(self) -> Double {
        match self {
            Self::Integer(value) => value.into(),
            Self::Decimal(value) => value.into(),
            Self::Float(value) => value.into(),
            Self::Double(value) => value,
        }
    }

    /// Both numbers in the type to which the lesser is promoted.
    pub(super) fn promote(self, other: Self) -> Pair {
        if let (Self::Integer(left), Self::Integer(right)) = (self, other) {
            return Pair::Integers(left, right);
        }
        if let (Some(left), Some(right)) = (self.to_decimal(), other.to_decimal()) {
            return Pair::Decimals(left, right);
        }
        if let (Some(left), Some(right)) = (self.to_float(), other.to_float()) {
            return Pair::Floats(left, right);
        }
        Pair::Doubles(self.to_double(), other.to_double())
    }

    /// The order of two numbers; `None` where one is not a number (NaN).
    pub(super) fn compare(self, other: Self) -> Option<Ordering> {
        match self.promote(other) {
            Pair::Integers(left, right) => left.partial_cmp(&right),
            Pair::Decimals(left, right) => left.partial_cmp(&right),
            Pair::Floats(left, right) => left.partial_cmp(&right),
            Pair::Doubles(left, right) => left.partial_cmp(&right),
        }
    }
}

impl From<Number> for Value {
    fn from(number: Number) -> Self {
        match number {
            Number::Integer(value) => Self::Integer(value),
            Number::Decimal(value) => Self::Decimal(value),
            Number::Float(value) => Self::Float(value),
            Number::Double(value) => Self::Double(value),
        }
    }
}

/// `left operator right`
pub(super) fn arithmetic(
    operator: Arithmetic,
    left: Number,
    right: Number,
) -> Result<Number, ExprError> {
    match left.promote(right) {
        Pair::Integers(left, right) => match operator {
            Arithmetic::Add => integer(left.checked_add(right)),
            Arithmetic::Subtract => integer(left.checked_sub(right)),
            Arithmetic::Multiply => integer(left.checked_mul(right)),
            // Integers divide to a decimal.
            Arithmetic::Divide => divide_integers(left.into(), right.into()),
        },
        Pair::Decimals(left, right) => match operator {
            Arithmetic::Add => decimal(left.checked_add(right)),
            Arithmetic::Subtract => decimal(left.checked_sub(right)),
            Arithmetic::Multiply => decimal(left.checked_mul(right)),
            Arithmetic::Divide => divide(left, right),
        },
        Pair::Floats(left, right) => Ok(Number::Float(match operator {
            Arithmetic::Add => left + right,
            Arithmetic::Subtract => left - right,
            Arithmetic::Multiply => left * right,
            Arithmetic::Divide => left / right,
        })),
        Pair::Doubles(left, right) => Ok(Number::Double(match operator {
            Arithmetic::Add => left + right,
            Arithmetic::Subtract => left - right,
            Arithmetic::Multiply => left * right,
            Arithmetic::Divide => left / right,
        })),
    }
}

/// The quotient of two integers, cut after 18 digits as [`Decimal::checked_div`] does.
///
/// Long division in steps of nine digits: a remainder is less than the divisor, so that nine
/// digits more fit into 64 bits where the divisor has less than 33.
fn divide_integers(left: i64, right: i64) -> Result<Number, ExprError> {
    if right == 0 {
        return Err(ExprError::DivisionByZero);
    }
    if right.unsigned_abs() >> 33 != 0 || left == i64::MIN {
        return divide(left.into(), right.into());
    }
    let mut rest = left % right;
    let mut next = || {
        let digits = rest * HALF / right;
        rest = rest * HALF % right;
        i128::from(digits)
    };
    let half = i128::from(HALF);
    let units = (i128::from(left / right) * half + next()) * half + next();
    Ok(Number::Decimal(of_units(units)))
}

/// A decimal of so many units of its 18th digit after the point.
fn of_units(units: i128) -> Decimal {
    Decimal::from_be_bytes(units.to_be_bytes())
}

fn divide(left: Decimal, right: Decimal) -> Result<Number, ExprError> {
    if right == Decimal::default() {
        return Err(ExprError::DivisionByZero);
    }
    decimal(left.checked_div(right))
}

fn integer(value: Option<Integer>) -> Result<Number, ExprError> {
    value.map(Number::Integer).ok_or(ExprError::Overflow)
}

fn decimal(value: Option<Decimal>) -> Result<Number, ExprError> {
    value.map(Number::Decimal).ok_or(ExprError::Overflow)
}

/// `-number`
pub(super) fn minus(number: Number) -> Result<Number, ExprError> {
    match number {
        Number::Integer(value) => integer(value.checked_neg()),
        Number::Decimal(value) => decimal(value.checked_neg()),
        Number::Float(value) => Ok(Number::Float(-value)),
        Number::Double(value) => Ok(Number::Double(-value)),
    }
}

/// ABS, CEIL, FLOOR or ROUND of a number, in its own type.
pub(super) fn round(function: Function, number: Number) -> Result<Number, ExprError> {
    match (function, number) {
        (Function::Abs, Number::Integer(value)) => integer(value.checked_abs()),
        (Function::Abs, Number::Decimal(value)) => decimal(value.checked_abs()),
        (Function::Abs, Number::Float(value)) => Ok(Number::Float(value.abs())),
        (Function::Abs, Number::Double(value)) => Ok(Number::Double(value.abs())),
        (_, Number::Integer(value)) => Ok(Number::Integer(value)),
        (Function::Ceil, Number::Decimal(value)) => decimal(value.checked_ceil()),
        (Function::Floor, Number::Decimal(value)) => decimal(value.checked_floor()),
        (Function::Ceil, Number::Float(value)) => Ok(Number::Float(value.ceil())),
        (Function::Ceil, Number::Double(value)) => Ok(Number::Double(value.ceil())),
        (Function::Floor, Number::Float(value)) => Ok(Number::Float(value.floor())),
        (Function::Floor, Number::Double(value)) => Ok(Number::Double(value.floor())),
        // ROUND: halves go up.
        (_, Number::Decimal(value)) => decimal(value.checked_round()),
        (_, Number::Float(value)) => Ok(Number::Float(value.round())),
        (_, Number::Double(value)) => Ok(Number::Double(value.round())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotients_of_integers_are_those_of_decimals() {
        let mut numbers = vec![i64::MAX, i64::MIN, i64::MIN + 1, 0];
        for shift in 0..63 {
            for near in [-1, 0, 1, 7] {
                numbers.push((1_i64 << shift).wrapping_add(near));
                numbers.push((1_i64 << shift).wrapping_add(near).wrapping_neg());
            }
        }
        for left in &numbers {
            for right in numbers.iter().filter(|right| **right != 0) {
                let expected = divide((*left).into(), (*right).into());
                let value = divide_integers(*left, *right);
                assert_eq!(
                    value.map(Value::from),
                    expected.map(Value::from),
                    "{left} / {right}"
                );
            }
        }
        assert_eq!(
            divide_integers(1, 0).map(Value::from),
            Err(ExprError::DivisionByZero)
        );
    }
}
