//! What do arithmetic and the functions on numbers give?

use std::cmp::Ordering;

use jindou_plan::expression::{Arithmetic, Function};
use oxsdatatypes::{Decimal, Double, Float, Integer};

use super::{ExprError, Value};

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

/// `left operator right`
pub(super) fn arithmetic(
    operator: Arithmetic,
    left: &Value,
    right: &Value,
) -> Result<Value, ExprError> {
    let (Some(left), Some(right)) = (Number::of(left), Number::of(right)) else {
        return Err(ExprError::Type);
    };
    match left.promote(right) {
        Pair::Integers(left, right) => match operator {
            Arithmetic::Add => integer(left.checked_add(right)),
            Arithmetic::Subtract => integer(left.checked_sub(right)),
            Arithmetic::Multiply => integer(left.checked_mul(right)),
            // Integers divide to a decimal.
            Arithmetic::Divide => divide(left.into(), right.into()),
        },
        Pair::Decimals(left, right) => match operator {
            Arithmetic::Add => decimal(left.checked_add(right)),
            Arithmetic::Subtract => decimal(left.checked_sub(right)),
            Arithmetic::Multiply => decimal(left.checked_mul(right)),
            Arithmetic::Divide => divide(left, right),
        },
        Pair::Floats(left, right) => Ok(Value::Float(match operator {
            Arithmetic::Add => left + right,
            Arithmetic::Subtract => left - right,
            Arithmetic::Multiply => left * right,
            Arithmetic::Divide => left / right,
        })),
        Pair::Doubles(left, right) => Ok(Value::Double(match operator {
            Arithmetic::Add => left + right,
            Arithmetic::Subtract => left - right,
            Arithmetic::Multiply => left * right,
            Arithmetic::Divide => left / right,
        })),
    }
}

fn divide(left: Decimal, right: Decimal) -> Result<Value, ExprError> {
    if right == Decimal::default() {
        return Err(ExprError::DivisionByZero);
    }
    decimal(left.checked_div(right))
}

fn integer(value: Option<Integer>) -> Result<Value, ExprError> {
    value.map(Value::Integer).ok_or(ExprError::Overflow)
}

fn decimal(value: Option<Decimal>) -> Result<Value, ExprError> {
    value.map(Value::Decimal).ok_or(ExprError::Overflow)
}

/// `+value`
pub(super) fn plus(value: &Value) -> Result<Value, ExprError> {
    Number::of(value)
        .map(|_| value.clone())
        .ok_or(ExprError::Type)
}

/// `-value`
pub(super) fn minus(value: &Value) -> Result<Value, ExprError> {
    match Number::of(value).ok_or(ExprError::Type)? {
        Number::Integer(value) => integer(value.checked_neg()),
        Number::Decimal(value) => decimal(value.checked_neg()),
        Number::Float(value) => Ok(Value::Float(-value)),
        Number::Double(value) => Ok(Value::Double(-value)),
    }
}

/// ABS, CEIL, FLOOR or ROUND of a number, in its own type.
pub(super) fn round(function: Function, value: &Value) -> Result<Value, ExprError> {
    match (function, Number::of(value).ok_or(ExprError::Type)?) {
        (Function::Abs, Number::Integer(value)) => integer(value.checked_abs()),
        (Function::Abs, Number::Decimal(value)) => decimal(value.checked_abs()),
        (Function::Abs, Number::Float(value)) => Ok(Value::Float(value.abs())),
        (Function::Abs, Number::Double(value)) => Ok(Value::Double(value.abs())),
        (_, Number::Integer(value)) => Ok(Value::Integer(value)),
        (Function::Ceil, Number::Decimal(value)) => decimal(value.checked_ceil()),
        (Function::Ceil, Number::Float(value)) => Ok(Value::Float(value.ceil())),
        (Function::Ceil, Number::Double(value)) => Ok(Value::Double(value.ceil())),
        (Function::Floor, Number::Decimal(value)) => decimal(value.checked_floor()),
        (Function::Floor, Number::Float(value)) => Ok(Value::Float(value.floor())),
        (Function::Floor, Number::Double(value)) => Ok(Value::Double(value.floor())),
        // ROUND: halves go up.
        (_, Number::Decimal(value)) => decimal(value.checked_round()),
        (_, Number::Float(value)) => Ok(Value::Float(value.round())),
        (_, Number::Double(value)) => Ok(Value::Double(value.round())),
    }
}
