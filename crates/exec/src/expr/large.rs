//! What is the value of an integer or a decimal of any length?
//!
//! Integers beyond 64 bits and decimals beyond 128 bits with 18 digits after the point are kept as
//! their digits: they are rarely met, and mostly compared, which digits in canonical form do at the
//! cost of reading them. Arithmetic is that of [`super::exact`].

use std::cmp::Ordering;

use jindou_plan::expression::Function;
use oxsdatatypes::{Double, Float};

use super::numeric::Number;
use super::{Context, ExprError};
use crate::terms::HeldBytes;

/// An integer or a decimal that has no room in the types for small ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Large {
    kind: Kind,
    /// Its canonical lexical form: no sign but `-`, no zero before the whole part but a single one
    /// before the point, and neither a zero at the end of a fraction nor a point without one.
    text: Box<str>,
}

/// The two exact types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Integer,
    Decimal,
}

/// The value of the lexical form of an integer or a decimal, of any length and with any number of
/// zeros; `None` where it is none.
pub(super) fn parse(kind: Kind, lexical: &str) -> Option<Number> {
    let small = match kind {
        Kind::Integer => lexical.parse().ok().map(|v: i64| Number::Integer(v.into())),
        Kind::Decimal => lexical.parse().ok().map(Number::Decimal),
    };
    match small {
        Some(small) => Some(small),
        None => parse_large(kind, lexical),
    }
}

#[cold]
fn parse_large(kind: Kind, lexical: &str) -> Option<Number> {
    let digits = Digits::of(lexical)?;
    if kind == Kind::Integer && lexical.contains('.') {
        return None;
    }
    let text = digits.to_text().into();
    Some(Number::Large(Box::new(Large { kind, text })))
}

impl Large {
    pub(super) fn kind(&self) -> Kind {
        self.kind
    }

    /// The canonical lexical form.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Counts it while something else is evaluated, and the time to read it.
    ///
    /// # Errors
    /// As [`Context::hold`].
    #[cold]
    pub(super) fn hold(&self, cx: &Context) -> Result<Option<HeldBytes>, ExprError> {
        cx.count_text(self.text.len())?;
        cx.hold_text(self.text.len())
    }

    pub(super) fn digits(&self) -> Digits<'_> {
        Digits::of(&self.text).expect("the text is a number")
    }

    /// The nearest double, which is infinite beyond the range of doubles.
    pub(super) fn to_double(&self) -> Double {
        Double::from(nearest::<f64>(&self.text))
    }

    /// The nearest float, rounded once.
    pub(super) fn to_float(&self) -> Float {
        Float::from(nearest::<f32>(&self.text))
    }
}

/// The nearest real number of a type: what parsing gives.
pub(super) fn nearest<T: std::str::FromStr>(text: &str) -> T {
    match text.parse() {
        Ok(number) => number,
        Err(_) => unreachable!("a decimal reads as a real number"),
    }
}

/// The order of two numbers by their lexical forms.
///
/// # Panics
/// If one of them is no decimal.
pub(super) fn order_of_texts(left: &str, right: &str) -> Ordering {
    let digits = |text| Digits::of(text).expect("the text is a number");
    digits(left).cmp(&digits(right))
}

/// ABS, CEIL, FLOOR or ROUND of a number in canonical form, and its negation, in its own type.
#[cold]
pub(super) fn rounded(function: Function, kind: Kind, text: &str) -> Number {
    let digits = Digits::of(text).expect("the text is a number");
    let negative = digits.negative;
    let is_whole = digits.fraction.is_empty();
    let away_from_zero = match function {
        Function::Abs => return number(kind, &digits.with_sign(false).to_text()),
        Function::Ceil => !negative && !is_whole,
        Function::Floor => negative && !is_whole,
        // ROUND: halves go up, and no zero ends a fraction.
        _ if negative => digits.fraction > "5",
        _ => digits.fraction >= "5",
    };
    let whole = if away_from_zero {
        successor(digits.whole)
    } else {
        digits.whole.to_owned()
    };
    let whole = Digits {
        negative,
        whole: &whole,
        fraction: "",
    };
    number(kind, &whole.to_text())
}

/// The negation of a number in canonical form.
#[cold]
pub(super) fn negated(kind: Kind, text: &str) -> Number {
    let digits = Digits::of(text).expect("the text is a number");
    number(kind, &digits.with_sign(!digits.negative).to_text())
}

/// A number in canonical form without its fraction, as an integer.
#[cold]
pub(super) fn truncated(text: &str) -> Number {
    let digits = Digits::of(text).expect("the text is a number");
    let whole = Digits {
        fraction: "",
        ..digits
    };
    number(Kind::Integer, &whole.to_text())
}

/// The number with this canonical form.
fn number(kind: Kind, text: &str) -> Number {
    parse(kind, text).expect("the text is a number")
}

/// The digits of the next natural number.
fn successor(digits: &str) -> String {
    let kept = digits.trim_end_matches('9');
    let nines = digits.len() - kept.len();
    let mut next = String::with_capacity(digits.len() + 1);
    match kept.as_bytes() {
        [] => next.push('1'),
        [rest @ .., last] => {
            next.push_str(&kept[..rest.len()]);
            next.push(char::from(last + 1));
        }
    }
    next.extend(std::iter::repeat_n('0', nines));
    next
}

/// A number by its digits: those before the point without zeros at the front, those behind it
/// without zeros at the end, so that equal numbers have equal digits. Zero has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Digits<'a> {
    /// Also of `-0`: zero is known by its digits.
    pub(super) negative: bool,
    pub(super) whole: &'a str,
    pub(super) fraction: &'a str,
}

impl<'a> Digits<'a> {
    /// Those of the lexical form of a decimal (XML Schema 1.1, section 3.3.3.1).
    pub(super) fn of(lexical: &'a str) -> Option<Self> {
        let unsigned = lexical.strip_prefix(['+', '-']).unwrap_or(lexical);
        let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
        let mut bytes = whole.bytes().chain(fraction.bytes());
        let is_number = !(whole.is_empty() && fraction.is_empty());
        (is_number && bytes.all(|byte| byte.is_ascii_digit())).then(|| Self {
            negative: lexical.starts_with('-'),
            whole: whole.trim_start_matches('0'),
            fraction: fraction.trim_end_matches('0'),
        })
    }

    fn is_zero(self) -> bool {
        self.whole.is_empty() && self.fraction.is_empty()
    }

    /// How many digits the number takes with the zeros behind the point.
    pub(super) fn len(self) -> usize {
        self.whole.len() + self.fraction.len()
    }

    fn with_sign(self, negative: bool) -> Self {
        Self { negative, ..self }
    }

    /// The canonical form.
    fn to_text(self) -> String {
        let mut text = String::with_capacity(self.len() + 3);
        if self.negative && !self.is_zero() {
            text.push('-');
        }
        text.push_str(if self.whole.is_empty() {
            "0"
        } else {
            self.whole
        });
        if !self.fraction.is_empty() {
            text.push('.');
            text.push_str(self.fraction);
        }
        text
    }
}

impl Ord for Digits<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        let negative = |digits: &Self| digits.negative && !digits.is_zero();
        let magnitude = || {
            // Of two wholes the longer is the greater; fractions are in the order of texts.
            let wholes = self.whole.len().cmp(&other.whole.len());
            wholes
                .then_with(|| self.whole.cmp(other.whole))
                .then_with(|| self.fraction.cmp(other.fraction))
        };
        match (negative(self), negative(other)) {
            (false, false) => magnitude(),
            (true, true) => magnitude().reverse(),
            (left, right) => right.cmp(&left),
        }
    }
}

impl PartialOrd for Digits<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
