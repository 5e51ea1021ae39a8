//! What does arithmetic give where small integers and decimals have no room for the result?
//!
//! Sums, differences and products are exact; a quotient is cut. Operands and results of more than
//! [`DIGITS`] digits are refused, so that no operation takes more than microseconds.

use jindou_plan::expression::Arithmetic;
use num_bigint::{BigInt, Sign};
use oxsdatatypes::Decimal;

use super::large::{self, Digits, Kind};
use super::numeric::Number;
use super::{Context, ExprError};

/// The most digits that an operand or a result may have, before and behind the point together.
pub(super) const DIGITS: usize = 1024;
/// Small decimals are kept with this many digits behind the point, and their quotients are cut
/// after them.
const QUOTIENT_SCALE: i64 = 18;
/// Any other quotient has at least this many digits beginning with its first one, and
/// [`QUOTIENT_SCALE`] behind the point.
const QUOTIENT_DIGITS: i64 = 38;
/// An operation on a digit takes as long as it takes to handle this many bytes of text.
const BYTES_PER_DIGIT: usize = 16;

/// `units / 10^scale`
#[derive(Clone, Debug, Default)]
pub(super) struct Exact {
    units: BigInt,
    scale: usize,
}

/// `left operator right` of two exact numbers.
///
/// # Errors
/// [`ExprError::Overflow`] if an operand or the result has more than [`DIGITS`] digits,
/// [`ExprError::DivisionByZero`], and as [`Context::poll`].
#[cold]
pub(super) fn arithmetic(
    operator: Arithmetic,
    left: &Number,
    right: &Number,
    cx: &Context,
) -> Result<Number, ExprError> {
    let is_integer = |number: &Number| match number {
        Number::Integer(_) => true,
        Number::Large(large) => large.kind() == Kind::Integer,
        _ => false,
    };
    let kind = match operator {
        Arithmetic::Divide => Kind::Decimal,
        _ if is_integer(left) && is_integer(right) => Kind::Integer,
        _ => Kind::Decimal,
    };
    let (left, right) = (Exact::of(left, cx)?, Exact::of(right, cx)?);
    let result = match operator {
        Arithmetic::Add => left.plus(&right),
        Arithmetic::Subtract => left.plus(&right.negated()),
        Arithmetic::Multiply => Exact {
            units: left.units * right.units,
            scale: left.scale + right.scale,
        },
        Arithmetic::Divide => left.divided_by(&right)?,
    };
    result.into_number(kind)
}

impl Exact {
    /// An exact number.
    ///
    /// # Errors
    /// [`ExprError::Overflow`] if it has more than [`DIGITS`] digits, [`ExprError::Type`] if it is
    /// a float or a double, and as [`Context::poll`].
    pub(super) fn of(number: &Number, cx: &Context) -> Result<Self, ExprError> {
        let digits = match number {
            Number::Integer(value) => return Ok(Self::integer(i64::from(*value).into())),
            Number::Decimal(value) => return Ok(Self::decimal(*value)),
            Number::Large(large) => large.digits(),
            Number::Float(_) | Number::Double(_) => return Err(ExprError::Type),
        };
        if digits.len() > DIGITS {
            return Err(ExprError::Overflow);
        }
        cx.count_text(digits.len() * BYTES_PER_DIGIT)?;
        let all = [digits.whole, digits.fraction].concat();
        let units = BigInt::parse_bytes(all.as_bytes(), 10).unwrap_or_default();
        Ok(Self {
            units: if digits.negative { -units } else { units },
            scale: digits.fraction.len(),
        })
    }

    /// An integer.
    pub(super) fn integer(value: i128) -> Self {
        Self {
            units: value.into(),
            scale: 0,
        }
    }

    /// A small decimal.
    pub(super) fn decimal(value: Decimal) -> Self {
        Self {
            units: i128::from_be_bytes(value.to_be_bytes()).into(),
            scale: QUOTIENT_SCALE as usize,
        }
    }

    /// The sum.
    pub(super) fn plus(&self, other: &Self) -> Self {
        let scale = self.scale.max(other.scale);
        Self {
            units: self.units_of(scale) + other.units_of(scale),
            scale,
        }
    }

    /// The product with a whole number.
    pub(super) fn times(&self, times: u64) -> Self {
        Self {
            units: &self.units * times,
            scale: self.scale,
        }
    }

    fn negated(self) -> Self {
        Self {
            units: -self.units,
            scale: self.scale,
        }
    }

    /// The units at a scale that is no less than its own.
    fn units_of(&self, scale: usize) -> BigInt {
        &self.units * power_of_ten(scale - self.scale)
    }

    /// The quotient, cut towards zero.
    fn divided_by(self, right: &Self) -> Result<Self, ExprError> {
        if right.units.sign() == Sign::NoSign {
            return Err(ExprError::DivisionByZero);
        }
        let scale = if self.is_small() && right.is_small() {
            QUOTIENT_SCALE
        } else {
            let before_point = |number: &Self| number.digits() - number.scale as i64;
            // The quotient has as many before its point, or one more.
            let before = before_point(&self) - before_point(right);
            QUOTIENT_SCALE.max(QUOTIENT_DIGITS - before)
        };
        let power = scale + right.scale as i64 - self.scale as i64;
        let shift = power_of_ten(power.unsigned_abs() as usize);
        let units = if power >= 0 {
            self.units * shift / &right.units
        } else {
            self.units / (&right.units * shift)
        };
        Ok(Self {
            units,
            scale: scale as usize,
        })
    }

    /// True of what a small decimal has room for: such quotients do not depend on how the operands
    /// are typed.
    fn is_small(&self) -> bool {
        self.scale <= QUOTIENT_SCALE as usize
            && i128::try_from(self.units_of(QUOTIENT_SCALE as usize)).is_ok()
    }

    /// Digits of the units.
    fn digits(&self) -> i64 {
        self.units.magnitude().to_string().len() as i64
    }

    /// The number of this value.
    ///
    /// # Errors
    /// [`ExprError::Overflow`] if it has more than [`DIGITS`] digits.
    pub(super) fn into_number(self, kind: Kind) -> Result<Number, ExprError> {
        let mut text = self.units.magnitude().to_string();
        if self.scale > 0 {
            let missing = (self.scale + 1).saturating_sub(text.len());
            text.insert_str(0, &"0".repeat(missing));
            text.insert(text.len() - self.scale, '.');
        }
        if self.units.sign() == Sign::Minus {
            text.insert(0, '-');
        }
        let digits = Digits::of(&text).map_or(0, Digits::len);
        if digits > DIGITS {
            return Err(ExprError::Overflow);
        }
        large::parse(kind, &text).ok_or(ExprError::Overflow)
    }

    /// Bytes that it holds beyond its own size, about.
    pub(super) fn heap_bytes(&self) -> usize {
        self.units.bits() as usize / 8
    }
}

fn power_of_ten(power: usize) -> BigInt {
    BigInt::from(10).pow(power as u32)
}
