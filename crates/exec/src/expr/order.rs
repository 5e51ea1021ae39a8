//! In which order do ORDER BY, MIN and MAX put terms?
//!
//! Unbound, then blank nodes, IRIs and literals (SPARQL 1.1, section 15.1). SPARQL orders
//! literals only where `<` does; here they are ordered all: booleans, numbers (NaN first),
//! strings, strings with language tags, dateTimes, dates, times, durations, then whatever else by
//! datatype and lexical form. Times without a time zone count as UTC.

use std::cmp::Ordering;

use jindou_model::{TermId, inline};
use oxsdatatypes::{Decimal, Double};

use super::Value;
use super::cast::{months_of, seconds_of};
use super::large::{self, Large};
use super::value::EPOCH_MS;
use crate::Terms;

/// The order of the kinds of terms.
pub(super) mod rank {
    pub(in crate::expr) const UNBOUND: u8 = 0;
    pub(in crate::expr) const BLANK: u8 = 1;
    pub(in crate::expr) const IRI: u8 = 2;
    pub(in crate::expr) const BOOLEAN: u8 = 3;
    pub(in crate::expr) const NUMBER: u8 = 4;
    pub(in crate::expr) const STRING: u8 = 5;
    pub(in crate::expr) const LANG_STRING: u8 = 6;
    pub(in crate::expr) const DATE_TIME: u8 = 7;
    pub(in crate::expr) const DATE: u8 = 8;
    pub(in crate::expr) const TIME: u8 = 9;
    pub(in crate::expr) const DURATION: u8 = 10;
    pub(in crate::expr) const OTHER: u8 = 11;
    /// How many there are.
    pub(in crate::expr) const COUNT: usize = OTHER as usize + 1;
}

/// What a term is sorted by: comparable without the dictionary.
///
/// Equal keys belong to terms that `<` does not order, `1` and `01` or `1.0`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SortKey(Key);

/// The order of the variants is that of the kinds of terms.
#[derive(Clone, Debug)]
enum Key {
    Unbound,
    Blank(Box<str>),
    Iri(Box<str>),
    Boolean(bool),
    Integer(i64),
    Number(Number),
    /// An integer or a decimal beyond the others, and the nearest double.
    Large(Box<(f64, Large)>),
    String(Box<str>),
    LangString(Box<str>, Box<str>),
    DateTime(Decimal),
    Date(Decimal),
    Time(Decimal),
    /// Seconds, with months of their mean length, and months.
    Duration(Decimal, i64),
    /// Datatype and lexical form.
    Other(Box<str>, Box<str>),
}

/// A number as the nearest double and what that lacks, so that exact numbers and doubles have one
/// order without rounding the exact ones.
#[derive(Clone, Copy, Debug)]
struct Number {
    nearest: f64,
    rest: Decimal,
}

impl Number {
    fn exact(nearest: f64, value: Decimal) -> Self {
        let rest = Decimal::try_from(Double::from(nearest))
            .ok()
            .and_then(|nearest| value.checked_sub(nearest))
            // Only near the end of the range of decimals.
            .unwrap_or_default();
        Self { nearest, rest }
    }

    fn integer(value: i64) -> Self {
        Self::exact(value as f64, value.into())
    }

    /// How it compares with a large number, in the order of [`Number`]s: by the nearest doubles,
    /// then exactly.
    #[cold]
    fn order_of_large(&self, (nearest, large): &(f64, Large)) -> Ordering {
        self.nearest.total_cmp(nearest).then_with(|| {
            if nearest.is_infinite() {
                // No exact number is: an infinite one is beyond all that round to it.
                return nearest.total_cmp(&0.0);
            }
            let exact = Decimal::try_from(Double::from(*nearest))
                .ok()
                .and_then(|nearest| nearest.checked_add(self.rest));
            let text = match exact {
                Some(exact) => exact.to_string(),
                // Beyond the range of decimals only doubles have this, which are integers there.
                None => format!("{nearest:.0}"),
            };
            large::order_of_texts(&text, large.text())
        })
    }

    fn real(value: f64) -> Self {
        let nearest = if value.is_nan() {
            // The least in the total order of doubles.
            -f64::NAN.abs()
        } else {
            // No negative zero.
            value + 0.0
        };
        Self {
            nearest,
            rest: Decimal::default(),
        }
    }
}

impl Ord for Number {
    fn cmp(&self, other: &Self) -> Ordering {
        self.nearest
            .total_cmp(&other.nearest)
            .then_with(|| self.rest.cmp(&other.rest))
    }
}

impl PartialOrd for Number {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Number {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Number {}

impl Key {
    fn rank(&self) -> u8 {
        match self {
            Self::Unbound => rank::UNBOUND,
            Self::Blank(_) => rank::BLANK,
            Self::Iri(_) => rank::IRI,
            Self::Boolean(_) => rank::BOOLEAN,
            Self::Integer(_) | Self::Number(_) | Self::Large(_) => rank::NUMBER,
            Self::String(_) => rank::STRING,
            Self::LangString(..) => rank::LANG_STRING,
            Self::DateTime(_) => rank::DATE_TIME,
            Self::Date(_) => rank::DATE,
            Self::Time(_) => rank::TIME,
            Self::Duration(..) => rank::DURATION,
            Self::Other(..) => rank::OTHER,
        }
    }
}

impl Ord for Key {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Integer(left), Self::Integer(right)) => left.cmp(right),
            (Self::Integer(left), Self::Number(right)) => Number::integer(*left).cmp(right),
            (Self::Number(left), Self::Integer(right)) => left.cmp(&Number::integer(*right)),
            (Self::Number(left), Self::Number(right)) => left.cmp(right),
            (Self::Large(left), Self::Large(right)) => {
                large::order_of_texts(left.1.text(), right.1.text())
            }
            (Self::Integer(left), Self::Large(right)) => {
                Number::integer(*left).order_of_large(right)
            }
            (Self::Number(left), Self::Large(right)) => left.order_of_large(right),
            (Self::Large(left), Self::Integer(right)) => {
                Number::integer(*right).order_of_large(left).reverse()
            }
            (Self::Large(left), Self::Number(right)) => right.order_of_large(left).reverse(),
            (Self::Blank(left), Self::Blank(right))
            | (Self::Iri(left), Self::Iri(right))
            | (Self::String(left), Self::String(right)) => left.cmp(right),
            (Self::Boolean(left), Self::Boolean(right)) => left.cmp(right),
            (Self::LangString(left, left_tag), Self::LangString(right, right_tag))
            | (Self::Other(left, left_tag), Self::Other(right, right_tag)) => {
                (left, left_tag).cmp(&(right, right_tag))
            }
            (Self::DateTime(left), Self::DateTime(right))
            | (Self::Date(left), Self::Date(right))
            | (Self::Time(left), Self::Time(right)) => left.cmp(right),
            (Self::Duration(left, left_months), Self::Duration(right, right_months)) => {
                (left, left_months).cmp(&(right, right_months))
            }
            (left, right) => left.rank().cmp(&right.rank()),
        }
    }
}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Key {}

impl SortKey {
    /// The key of a term; of [`TermId::NONE`] that of an unbound variable, and so of one that is lost, after
    /// which no order counts ([`Terms::lost`]).
    #[must_use]
    pub fn new(id: TermId, terms: &Terms) -> Self {
        if let Some(value) = inline::as_integer(id) {
            return Self(Key::Integer(value));
        }
        // As a decimal of seconds on the time line of XML Schema.
        let seconds = |ms: i64| Decimal::new(i128::from(ms) + EPOCH_MS, 3).ok();
        if let Some(key) = inline::as_date_time(id).and_then(|(ms, _)| seconds(ms)) {
            return Self(Key::DateTime(key));
        }
        if let Some(key) = inline::as_date(id).and_then(|(ms, _)| seconds(ms)) {
            return Self(Key::Date(key));
        }
        Self(match Value::decode(id, terms) {
            Ok(value) => key_of(value),
            // Of no term, or of one that cannot be read.
            Err(_) => Key::Unbound,
        })
    }

    /// That of the kind of the term.
    pub(super) fn rank(&self) -> u8 {
        self.0.rank()
    }

    /// Bytes that the key holds beyond its own size.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        match &self.0 {
            Key::Blank(text) | Key::Iri(text) | Key::String(text) => text.len(),
            Key::LangString(first, second) | Key::Other(first, second) => {
                first.len() + second.len()
            }
            Key::Large(number) => size_of_val(&**number) + number.1.text().len(),
            Key::Unbound
            | Key::Boolean(_)
            | Key::Integer(_)
            | Key::Number(_)
            | Key::DateTime(_)
            | Key::Date(_)
            | Key::Time(_)
            | Key::Duration(..) => 0,
        }
    }
}

fn key_of(value: Value) -> Key {
    /// The mean length of a month in the Gregorian calendar, in seconds.
    const MONTH_SECONDS: i64 = 2_629_746;
    match value {
        Value::Id(_) => unreachable!("decoded values are no ids"),
        Value::Iri(text) => Key::Iri(text.into()),
        Value::Blank(text) => Key::Blank(text.into()),
        Value::Boolean(value) => Key::Boolean(value),
        Value::Integer(value) => Key::Integer(value.into()),
        Value::Decimal(value) => {
            // Parsing rounds to the nearest double, so that the order is kept.
            let nearest = value
                .to_string()
                .parse()
                .expect("a decimal reads as a double");
            Key::Number(Number::exact(nearest, value))
        }
        Value::Large(value) => Key::Large(Box::new((value.to_double().into(), *value))),
        Value::Float(value) => Key::Number(Number::real(f32::from(value).into())),
        Value::Double(value) => Key::Number(Number::real(value.into())),
        Value::String(text) => Key::String(text.into()),
        Value::LangString { value, language } => Key::LangString(value.into(), language.into()),
        Value::DateTime(value) => Key::DateTime(instant(value.to_be_bytes())),
        Value::Date(value) => Key::Date(instant(value.to_be_bytes())),
        Value::Time(value) => Key::Time(instant(value.to_be_bytes())),
        Value::Duration(value) => duration_key(value, MONTH_SECONDS),
        Value::YearMonthDuration(value) => duration_key(value.into(), MONTH_SECONDS),
        Value::DayTimeDuration(value) => duration_key(value.into(), MONTH_SECONDS),
        Value::Other { value, datatype } => Key::Other(datatype.into(), value.into()),
    }
}

/// The seconds with which the bytes of a date or time begin: of UTC where there is a time zone.
fn instant(bytes: [u8; 18]) -> Decimal {
    let mut seconds = [0; 16];
    seconds.copy_from_slice(&bytes[..16]);
    Decimal::from_be_bytes(seconds)
}

fn duration_key(value: oxsdatatypes::Duration, month_seconds: i64) -> Key {
    let parts = months_of(value).ok().zip(seconds_of(value).ok());
    let total = parts.and_then(|(months, seconds)| {
        let of_months = Decimal::from(months).checked_mul(Decimal::from(month_seconds))?;
        Some((of_months.checked_add(seconds)?, months))
    });
    match total {
        Some((seconds, months)) => Key::Duration(seconds, months),
        // Durations beyond the range of decimals come last of all durations.
        None => Key::Duration(Decimal::MAX, i64::MAX),
    }
}
