//! What do arithmetic and the functions on numbers give?

use std::cmp::Ordering;

use jindou_model::{TermId, TermKind, inline};
use jindou_plan::expression::{Arithmetic, Function};
use oxsdatatypes::{Decimal, Double, Float, Integer};

use super::large::{self, Kind, Large};
use super::{Context, ExprError, Value, exact};

/// Half of the 18 digits that a decimal has after the point.
const HALF: i64 = 1_000_000_000;

/// A number of one of the four types that arithmetic knows, in the order of promotion.
#[derive(Clone, Debug)]
pub(super) enum Number {
    Integer(Integer),
    Decimal(Decimal),
    Float(Float),
    Double(Double),
    /// An integer or a decimal that the types above have no room for.
    Large(Box<Large>),
}

/// Two numbers of one type.
enum Pair {
    Integers(Integer, Integer),
    Decimals(Decimal, Decimal),
    Floats(Float, Float),
    Doubles(Double, Double),
    /// Integers or decimals, of which one at least is large.
    Exact(Number, Number),
}

impl Number {
    /// The number of a decoded value; `None` if it is not one.
    pub(super) fn of(value: &Value) -> Option<Self> {
        match value {
            Value::Integer(value) => Some(Self::Integer(*value)),
            Value::Decimal(value) => Some(Self::Decimal(*value)),
            Value::Float(value) => Some(Self::Float(*value)),
            Value::Double(value) => Some(Self::Double(*value)),
            Value::Large(value) => Some(Self::Large(value.clone())),
            _ => None,
        }
    }

    /// As [`Number::of`], without a copy of what is large.
    pub(super) fn take(value: Value) -> Option<Self> {
        match value {
            Value::Large(value) => Some(Self::Large(value)),
            value => Self::of(&value),
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

    fn to_decimal(&self) -> Option<Decimal> {
        match self {
            Self::Integer(value) => Some((*value).into()),
            Self::Decimal(value) => Some(*value),
            Self::Float(_) | Self::Double(_) | Self::Large(_) => None,
        }
    }

    fn to_float(&self) -> Option<Float> {
        match self {
            Self::Integer(value) => Some((*value).into()),
            Self::Decimal(value) => Some(nearest_float(*value)),
            Self::Float(value) => Some(*value),
            Self::Double(_) => None,
            Self::Large(value) => Some(value.to_float()),
        }
    }

    pub(super) fn to_double(&self) -> Double {
        match self {
            Self::Integer(value) => (*value).into(),
            Self::Decimal(value) => nearest_double(*value),
            Self::Float(value) => (*value).into(),
            Self::Double(value) => *value,
            Self::Large(value) => value.to_double(),
        }
    }

    /// Both numbers in the type to which the lesser is promoted.
    #[inline]
    fn promote(self, other: Self) -> Pair {
        if let (Self::Integer(left), Self::Integer(right)) = (&self, &other) {
            return Pair::Integers(*left, *right);
        }
        if let (Some(left), Some(right)) = (self.to_decimal(), other.to_decimal()) {
            return Pair::Decimals(left, right);
        }
        let is_real = |number: &Self| matches!(number, Self::Float(_) | Self::Double(_));
        if !is_real(&self) && !is_real(&other) {
            return Pair::Exact(self, other);
        }
        if let (Some(left), Some(right)) = (self.to_float(), other.to_float()) {
            return Pair::Floats(left, right);
        }
        Pair::Doubles(self.to_double(), other.to_double())
    }

    /// The order of two numbers; `None` where one is not a number (NaN).
    #[inline]
    pub(super) fn compare(self, other: Self) -> Option<Ordering> {
        if let (Self::Integer(left), Self::Integer(right)) = (&self, &other) {
            return left.partial_cmp(right);
        }
        self.compare_promoted(other)
    }

    fn compare_promoted(self, other: Self) -> Option<Ordering> {
        match self.promote(other) {
            Pair::Integers(left, right) => left.partial_cmp(&right),
            Pair::Decimals(left, right) => left.partial_cmp(&right),
            Pair::Floats(left, right) => left.partial_cmp(&right),
            Pair::Doubles(left, right) => left.partial_cmp(&right),
            Pair::Exact(Self::Large(left), right) => {
                right.order_of_large(&left).map(Ordering::reverse)
            }
            Pair::Exact(left, Self::Large(right)) => left.order_of_large(&right),
            Pair::Exact(..) => unreachable!("small exact numbers are a pair of decimals"),
        }
    }

    /// How this number compares with a large one; `None` where it is NaN.
    #[cold]
    fn order_of_large(&self, large: &Large) -> Option<Ordering> {
        let text = match self {
            Self::Float(value) => return value.partial_cmp(&large.to_float()),
            Self::Double(value) => return value.partial_cmp(&large.to_double()),
            Self::Large(value) => return Some(large::order_of_texts(value.text(), large.text())),
            Self::Integer(value) => value.to_string(),
            Self::Decimal(value) => value.to_string(),
        };
        Some(large::order_of_texts(&text, large.text()))
    }
}

/// The nearest double: by one division of exact doubles where that will do, rounded once.
pub(super) fn nearest_double(value: Decimal) -> Double {
    /// Integers up to this are exact doubles, and so are powers of ten up to 22.
    const EXACT: u128 = 1 << 53;
    let units = i128::from_be_bytes(value.to_be_bytes());
    let half = i128::from(HALF);
    let (units, unit) = match units % half {
        0 => (units / half, HALF as f64),
        _ => (units, HALF as f64 * HALF as f64),
    };
    Double::from(match units.unsigned_abs() <= EXACT {
        true => units as f64 / unit,
        false => large::nearest(&value.to_string()),
    })
}

/// The nearest float, rounded once.
pub(super) fn nearest_float(value: Decimal) -> Float {
    Float::from(large::nearest::<f32>(&value.to_string()))
}

/// The order of two values that are numbers, `None` within where one is NaN; `None` if one is no
/// number.
#[inline]
pub(super) fn order_of_values(left: &Value, right: &Value) -> Option<Option<Ordering>> {
    match (left, right) {
        (Value::Large(large), other) => {
            let order = Number::of(other)?.order_of_large(large);
            Some(order.map(Ordering::reverse))
        }
        (other, Value::Large(large)) => Some(Number::of(other)?.order_of_large(large)),
        _ => Some(Number::of(left)?.compare(Number::of(right)?)),
    }
}

impl From<Number> for Value {
    fn from(number: Number) -> Self {
        match number {
            Number::Integer(value) => Self::Integer(value),
            Number::Decimal(value) => Self::Decimal(value),
            Number::Float(value) => Self::Float(value),
            Number::Double(value) => Self::Double(value),
            Number::Large(value) => Self::Large(value),
        }
    }
}

/// `left operator right`, exact but for quotients, floats and doubles.
///
/// # Errors
/// [`ExprError::DivisionByZero`], and as [`exact::arithmetic`] where one is large or the result is.
#[inline]
pub(super) fn arithmetic(
    operator: Arithmetic,
    left: Number,
    right: Number,
    cx: &Context,
) -> Result<Number, ExprError> {
    if let (Number::Integer(left), Number::Integer(right)) = (&left, &right) {
        let result = match operator {
            Arithmetic::Add => left.checked_add(*right),
            Arithmetic::Subtract => left.checked_sub(*right),
            Arithmetic::Multiply => left.checked_mul(*right),
            // Integers divide to a decimal.
            Arithmetic::Divide => return divide_integers((*left).into(), (*right).into(), cx),
        };
        if let Some(result) = result {
            return Ok(Number::Integer(result));
        }
    }
    promoted(operator, left, right, cx)
}

/// [`arithmetic`] but of small integers.
fn promoted(
    operator: Arithmetic,
    left: Number,
    right: Number,
    cx: &Context,
) -> Result<Number, ExprError> {
    match left.promote(right) {
        Pair::Integers(left, right) => {
            let (left, right) = (Number::Integer(left), Number::Integer(right));
            exact::arithmetic(operator, &left, &right, cx)
        }
        Pair::Decimals(left, right) => {
            let small = match operator {
                Arithmetic::Add => left.checked_add(right),
                Arithmetic::Subtract => left.checked_sub(right),
                Arithmetic::Multiply => left.checked_mul(right),
                Arithmetic::Divide => return divide(left, right, cx),
            };
            match small {
                Some(result) => Ok(Number::Decimal(result)),
                None => {
                    let (left, right) = (Number::Decimal(left), Number::Decimal(right));
                    exact::arithmetic(operator, &left, &right, cx)
                }
            }
        }
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
        Pair::Exact(left, right) => exact::arithmetic(operator, &left, &right, cx),
    }
}

/// The quotient of two integers, cut after 18 digits as [`Decimal::checked_div`] does.
///
/// Long division in steps of nine digits: a remainder is less than the divisor, so that nine
/// digits more fit into 64 bits where the divisor has less than 33.
fn divide_integers(left: i64, right: i64, cx: &Context) -> Result<Number, ExprError> {
    if right == 0 {
        return Err(ExprError::DivisionByZero);
    }
    if right.unsigned_abs() >> 33 != 0 || left == i64::MIN {
        return divide(left.into(), right.into(), cx);
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

fn divide(left: Decimal, right: Decimal, cx: &Context) -> Result<Number, ExprError> {
    if right == Decimal::default() {
        return Err(ExprError::DivisionByZero);
    }
    match left.checked_div(right) {
        Some(quotient) => Ok(Number::Decimal(quotient)),
        None => {
            let (left, right) = (Number::Decimal(left), Number::Decimal(right));
            exact::arithmetic(Arithmetic::Divide, &left, &right, cx)
        }
    }
}

/// `-number`
pub(super) fn minus(number: Number) -> Number {
    match number {
        Number::Integer(value) => match value.checked_neg() {
            Some(value) => Number::Integer(value),
            None => large::negated(Kind::Integer, &value.to_string()),
        },
        Number::Decimal(value) => match value.checked_neg() {
            Some(value) => Number::Decimal(value),
            None => large::negated(Kind::Decimal, &value.to_string()),
        },
        Number::Float(value) => Number::Float(-value),
        Number::Double(value) => Number::Double(-value),
        Number::Large(value) => large::negated(value.kind(), value.text()),
    }
}

/// ABS, CEIL, FLOOR or ROUND of a number, in its own type.
pub(super) fn round(function: Function, number: Number) -> Number {
    match number {
        Number::Integer(value) => match function {
            Function::Abs => match value.checked_abs() {
                Some(value) => Number::Integer(value),
                None => large::rounded(function, Kind::Integer, &value.to_string()),
            },
            _ => Number::Integer(value),
        },
        Number::Decimal(value) => {
            let rounded = match function {
                Function::Abs => value.checked_abs(),
                Function::Ceil => value.checked_ceil(),
                Function::Floor => value.checked_floor(),
                // ROUND: halves go up.
                _ => value.checked_round(),
            };
            match rounded {
                Some(value) => Number::Decimal(value),
                None => large::rounded(function, Kind::Decimal, &value.to_string()),
            }
        }
        Number::Float(value) => Number::Float(match function {
            Function::Abs => value.abs(),
            Function::Ceil => value.ceil(),
            Function::Floor => value.floor(),
            _ => value.round(),
        }),
        Number::Double(value) => Number::Double(match function {
            Function::Abs => value.abs(),
            Function::Ceil => value.ceil(),
            Function::Floor => value.floor(),
            _ => value.round(),
        }),
        Number::Large(value) => large::rounded(function, value.kind(), value.text()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expr::tests::support::World;

    #[test]
    fn quotients_of_integers_are_those_of_decimals() {
        let world = World::default();
        let cx = world.context();
        let mut numbers = vec![i64::MAX, i64::MIN, i64::MIN + 1, 0];
        for shift in 0..63 {
            for near in [-1, 0, 1, 7] {
                numbers.push((1_i64 << shift).wrapping_add(near));
                numbers.push((1_i64 << shift).wrapping_add(near).wrapping_neg());
            }
        }
        for left in &numbers {
            for right in numbers.iter().filter(|right| **right != 0) {
                let expected = divide((*left).into(), (*right).into(), &cx);
                let value = divide_integers(*left, *right, &cx);
                assert_eq!(
                    value.map(Value::from),
                    expected.map(Value::from),
                    "{left} / {right}"
                );
            }
        }
        assert_eq!(
            divide_integers(1, 0, &cx).map(Value::from),
            Err(ExprError::DivisionByZero)
        );
    }
}
