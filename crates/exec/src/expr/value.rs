//! What value does a term have, and which term does a value make?

use std::fmt::Write as _;

use jindou_model::{TermId, TermKind, Unavailable, inline, key};
use oxrdf::vocab::{rdf, xsd};
use oxrdf::{BlankNode, Literal, NamedNode, NamedNodeRef, TermRef};
use oxsdatatypes::{
    Date, DateTime, DayTimeDuration, Decimal, Double, Duration, Float, Integer, Time,
    YearMonthDuration,
};

use super::large::{self, Kind, Large};
use super::numeric::Number;
use super::{Context, ExprError};
use crate::Terms;
use crate::terms::HeldBytes;

const XSD: &str = "http://www.w3.org/2001/XMLSchema#";

/// The value of an expression.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A term known by its id, not decoded: it is passed on as it is.
    Id(TermId),
    /// An IRI.
    Iri(String),
    /// A blank node, by its label.
    Blank(String),
    /// `xsd:boolean`
    Boolean(bool),
    /// `xsd:integer` and the types derived from it.
    Integer(Integer),
    /// `xsd:decimal`
    Decimal(Decimal),
    /// An integer or a decimal that the two above have no room for.
    Large(Box<Large>),
    /// `xsd:float`
    Float(Float),
    /// `xsd:double`
    Double(Double),
    /// `xsd:string`
    String(String),
    /// A string with a language tag.
    LangString {
        /// Its characters.
        value: String,
        /// Its tag.
        language: String,
    },
    /// `xsd:dateTime`
    DateTime(DateTime),
    /// `xsd:date`
    Date(Date),
    /// `xsd:time`
    Time(Time),
    /// `xsd:duration`
    Duration(Duration),
    /// `xsd:yearMonthDuration`
    YearMonthDuration(YearMonthDuration),
    /// `xsd:dayTimeDuration`
    DayTimeDuration(DayTimeDuration),
    /// A literal of another datatype, or one whose lexical form is not in its datatype.
    Other {
        /// Its lexical form.
        value: String,
        /// The IRI of its datatype.
        datatype: String,
    },
}

impl Value {
    /// The value of the term with this id.
    ///
    /// # Errors
    /// [`ExprError::Unbound`] for [`TermId::NONE`], [`ExprError::Lost`].
    ///
    /// # Panics
    /// As [`Terms::term`] does.
    pub fn decode(id: TermId, terms: &Terms) -> Result<Self, ExprError> {
        if id.is_none() {
            return Err(ExprError::Unbound);
        }
        if id.is_inline() {
            return Ok(decode_inline(id));
        }
        let mut bytes = Vec::new();
        if !terms.push_key(id, &mut bytes)? {
            let text = String::from_utf8(bytes).expect("the dictionary holds UTF-8");
            return Ok(match text.strip_prefix("_:") {
                Some(label) => Self::Blank(label.to_owned()),
                None => Self::Iri(text),
            });
        }
        let (value, language, datatype) =
            key::literal_parts(&bytes).expect("the dictionary holds keys of terms");
        if let Some(language) = language {
            return Ok(Self::LangString {
                value: value.to_owned(),
                language: language.to_owned(),
            });
        }
        if datatype == xsd::STRING {
            let length = value.len();
            bytes.truncate(length);
            return Ok(Self::String(
                String::from_utf8(bytes).expect("it was UTF-8 just now"),
            ));
        }
        Ok(Self::typed(value, datatype.as_str()))
    }

    /// The value of a literal without a language tag.
    #[must_use]
    pub fn typed(lexical: &str, datatype: &str) -> Self {
        parse(lexical, datatype).unwrap_or_else(|| Self::Other {
            value: lexical.to_owned(),
            datatype: datatype.to_owned(),
        })
    }

    /// The id of the term that this value makes.
    ///
    /// # Errors
    /// [`ExprError::Lost`].
    pub fn into_id(self, terms: &Terms) -> Result<TermId, ExprError> {
        let id = match self {
            Self::Id(id) => return Ok(id),
            Self::Boolean(value) => return Ok(inline::from_boolean(value)),
            Self::Iri(iri) => terms.intern(TermRef::from(NamedNode::new_unchecked(iri).as_ref())),
            Self::Blank(label) => {
                terms.intern(TermRef::from(BlankNode::new_unchecked(label).as_ref()))
            }
            Self::String(value) => {
                let mut key = value.into_bytes();
                key.push(0);
                terms.intern_key(&key, true)
            }
            Self::LangString { value, language } => terms.intern_literal(
                &Literal::new_language_tagged_literal_unchecked(value, language),
            ),
            Self::Integer(value) => match inline::from_integer(value.into()) {
                Some(id) => return Ok(id),
                None => intern_typed(terms, value.to_string(), xsd::INTEGER),
            },
            Self::Decimal(value) => match inline_decimal(value) {
                Some(id) => return Ok(id),
                None => intern_typed(terms, value.to_string(), xsd::DECIMAL),
            },
            Self::Large(value) => {
                let datatype = datatype_of(value.kind());
                intern_typed(terms, value.text().to_owned(), datatype)
            }
            Self::Other { value, datatype } => {
                intern_typed(terms, value, NamedNodeRef::new_unchecked(&datatype))
            }
            value @ (Self::Float(_)
            | Self::Double(_)
            | Self::DateTime(_)
            | Self::Date(_)
            | Self::Time(_)
            | Self::Duration(_)
            | Self::YearMonthDuration(_)
            | Self::DayTimeDuration(_)) => {
                let datatype = value.computed_datatype();
                intern_typed(terms, value.canonical(), datatype)
            }
        };
        Ok(id?)
    }

    /// Counts the value, if it is long, while something else is evaluated.
    ///
    /// # Errors
    /// As [`Context::hold`].
    pub(super) fn hold(&self, cx: &Context) -> Result<Option<HeldBytes>, ExprError> {
        match self {
            Self::String(text) | Self::Iri(text) => cx.hold_text(text.capacity()),
            Self::LangString { value, .. } | Self::Other { value, .. } => {
                cx.hold_text(value.capacity())
            }
            Self::Large(value) => value.hold(cx),
            _ => Ok(None),
        }
    }

    /// The datatype of a computed value, which is not an IRI, a blank node or an id.
    pub(super) fn computed_datatype(&self) -> NamedNodeRef<'_> {
        match self {
            Self::Boolean(_) => xsd::BOOLEAN,
            Self::Integer(_) => xsd::INTEGER,
            Self::Decimal(_) => xsd::DECIMAL,
            Self::Large(value) => datatype_of(value.kind()),
            Self::Float(_) => xsd::FLOAT,
            Self::Double(_) => xsd::DOUBLE,
            Self::String(_) => xsd::STRING,
            Self::LangString { .. } => rdf::LANG_STRING,
            Self::DateTime(_) => xsd::DATE_TIME,
            Self::Date(_) => xsd::DATE,
            Self::Time(_) => xsd::TIME,
            Self::Duration(_) => xsd::DURATION,
            Self::YearMonthDuration(_) => xsd::YEAR_MONTH_DURATION,
            Self::DayTimeDuration(_) => xsd::DAY_TIME_DURATION,
            Self::Other { datatype, .. } => NamedNodeRef::new_unchecked(datatype),
            Self::Id(_) | Self::Iri(_) | Self::Blank(_) => {
                unreachable!("only computed literals are asked for their datatype")
            }
        }
    }

    /// The lexical form that a computed literal gets; of an IRI or blank node its text.
    pub(super) fn canonical(&self) -> String {
        match self {
            Self::Id(_) => unreachable!("ids are decoded first"),
            Self::Iri(text) | Self::Blank(text) | Self::String(text) => text.clone(),
            Self::LangString { value, .. } | Self::Other { value, .. } => value.clone(),
            Self::Boolean(value) => value.to_string(),
            Self::Integer(value) => value.to_string(),
            Self::Decimal(value) => value.to_string(),
            Self::Large(value) => value.text().to_owned(),
            Self::Float(_) | Self::Double(_) => self.real_text(PLAIN_BELOW),
            Self::DateTime(value) => value.to_string(),
            Self::Date(value) => value.to_string(),
            Self::Time(value) => value.to_string(),
            Self::Duration(value) => value.to_string(),
            Self::YearMonthDuration(value) => value.to_string(),
            Self::DayTimeDuration(value) => value.to_string(),
        }
    }

    /// A float or double with an exponent from `plain_below` on.
    pub(super) fn real_text(&self, plain_below: f64) -> String {
        match self {
            Self::Float(value) => {
                let number = f32::from(*value);
                real(
                    number.into(),
                    plain_below,
                    value.to_string(),
                    format!("{number:E}"),
                )
            }
            Self::Double(value) => {
                let number = f64::from(*value);
                real(
                    number,
                    plain_below,
                    value.to_string(),
                    format!("{number:E}"),
                )
            }
            _ => self.canonical(),
        }
    }

    /// The effective boolean value (SPARQL 1.1, section 17.2.2).
    ///
    /// # Errors
    /// [`ExprError::Type`] where it has none.
    pub fn effective_boolean(&self, terms: &Terms) -> Result<bool, ExprError> {
        match self {
            Self::Id(id) => match inline::as_boolean(*id) {
                Some(value) => Ok(value),
                None => Self::decode(*id, terms)?.effective_boolean(terms),
            },
            Self::Boolean(value) => Ok(*value),
            Self::Integer(value) => Ok(*value != Integer::from(0)),
            Self::Decimal(value) => Ok(*value != Decimal::default()),
            Self::Float(value) => Ok(f32::from(*value) != 0.0 && !value.is_nan()),
            Self::Double(value) => Ok(f64::from(*value) != 0.0 && !value.is_nan()),
            Self::String(value) | Self::LangString { value, .. } => Ok(!value.is_empty()),
            // Zero is not large.
            Self::Large(_) => Ok(true),
            // An invalid lexical form of a boolean or a number is false.
            Self::Other { datatype, .. } if is_boolean_or_numeric(datatype) => Ok(false),
            Self::Iri(_)
            | Self::Blank(_)
            | Self::DateTime(_)
            | Self::Date(_)
            | Self::Time(_)
            | Self::Duration(_)
            | Self::YearMonthDuration(_)
            | Self::DayTimeDuration(_)
            | Self::Other { .. } => Err(ExprError::Type),
        }
    }
}

/// Doubles from a millionth to this are written without an exponent: those fit inline.
const PLAIN_BELOW: f64 = 1e15;

/// A float or double as XML Schema writes it: `plain` from a millionth to `plain_below`, else
/// `exponent`, of which Rust writes `1E20` and XML Schema `1.0E20`.
fn real(number: f64, plain_below: f64, plain: String, exponent: String) -> String {
    if number == 0.0 || !number.is_finite() || (1e-6..plain_below).contains(&number.abs()) {
        return plain;
    }
    match exponent.split_once('E') {
        Some((mantissa, power)) if !mantissa.contains('.') => format!("{mantissa}.0E{power}"),
        _ => exponent,
    }
}

fn intern_typed(
    terms: &Terms,
    lexical: String,
    datatype: NamedNodeRef<'_>,
) -> Result<TermId, Unavailable> {
    terms.intern_literal(&Literal::new_typed_literal(lexical, datatype))
}

fn decode_inline(id: TermId) -> Value {
    let value = match id.kind() {
        TermKind::Integer => inline::as_integer(id).map(|value| Value::Integer(value.into())),
        TermKind::Decimal => inline::as_decimal(id).and_then(|(mantissa, scale)| {
            let value = Decimal::new(i128::from(mantissa), u32::from(scale)).ok()?;
            Some(Value::Decimal(value))
        }),
        TermKind::Double => inline::as_f64(id).map(|value| Value::Double(value.into())),
        TermKind::Float => inline::as_f32(id).map(|value| Value::Float(value.into())),
        TermKind::Boolean => inline::as_boolean(id).map(Value::Boolean),
        TermKind::DateTime if let Some(bytes) = inline::as_date_time(id).and_then(timeline) => {
            Some(Value::DateTime(DateTime::from_be_bytes(bytes)))
        }
        TermKind::Date if let Some(bytes) = inline::as_date(id).and_then(timeline) => {
            Some(Value::Date(Date::from_be_bytes(bytes)))
        }
        _ => {
            let mut lexical = String::new();
            let datatype = inline::datatype(id);
            match (inline::decode_lexical(id, &mut lexical), datatype) {
                (true, Some(datatype)) => Some(Value::typed(&lexical, datatype.as_str())),
                _ => None,
            }
        }
    };
    value.expect("an inline id holds a value")
}

/// Milliseconds from 0001-01-01T00:00:00Z, where the time line of XML Schema begins, to 1970.
pub(super) const EPOCH_MS: i128 = 62_135_596_800_000;

/// A time as the bytes of a date or time: seconds on the time line of XML Schema as a decimal,
/// and minutes of the time zone, all bits set for none.
///
/// `None` for the time zone of one minute west, which has those bits too.
fn timeline((ms, zone): (i64, Option<i16>)) -> Option<[u8; 18]> {
    if zone == Some(-1) {
        return None;
    }
    let seconds = Decimal::new(i128::from(ms) + EPOCH_MS, 3).ok()?;
    let mut bytes = [0; 18];
    bytes[..16].copy_from_slice(&seconds.to_be_bytes());
    bytes[16..].copy_from_slice(&zone.unwrap_or(-1).to_be_bytes());
    Some(bytes)
}

/// The id of a decimal, if it fits inline.
fn inline_decimal(value: Decimal) -> Option<TermId> {
    /// Decimals are kept with so many digits after the point.
    const SCALE: u8 = 18;
    const ONE: i128 = 1_000_000_000_000_000_000;
    let units = i128::from_be_bytes(value.to_be_bytes());
    let whole = i64::try_from(units / ONE).ok()?;
    let mut fraction = (units - i128::from(whole) * ONE) as i64;
    if fraction == 0 {
        return inline::from_decimal(whole, 0);
    }
    let mut scale = SCALE;
    while fraction % 10 == 0 {
        fraction /= 10;
        scale -= 1;
    }
    let power = 10_i64.checked_pow(scale.into())?;
    let mantissa = whole.checked_mul(power)?.checked_add(fraction)?;
    inline::from_decimal(mantissa, scale)
}

/// The local name of a datatype of XML Schema.
pub(super) fn xsd_name(datatype: &str) -> Option<&str> {
    datatype.strip_prefix(XSD)
}

fn is_boolean_or_numeric(datatype: &str) -> bool {
    xsd_name(datatype).is_some_and(|name| {
        matches!(name, "boolean" | "decimal" | "float" | "double") || integer_range(name).is_some()
    })
}

fn datatype_of(kind: Kind) -> NamedNodeRef<'static> {
    match kind {
        Kind::Integer => xsd::INTEGER,
        Kind::Decimal => xsd::DECIMAL,
    }
}

/// Whether a type derived from `xsd:integer`, by local name, has an integer that is outside of 64
/// bits.
fn has_large(name: &str, lexical: &str) -> bool {
    match name {
        "integer" => true,
        "nonNegativeInteger" | "positiveInteger" => !lexical.starts_with('-'),
        "nonPositiveInteger" | "negativeInteger" => lexical.starts_with('-'),
        "unsignedLong" => lexical.parse::<u64>().is_ok(),
        _ => false,
    }
}

/// The range of `xsd:integer` and the types derived from it, by local name, within 64 bits; see
/// [`has_large`] for what is beyond.
fn integer_range(name: &str) -> Option<(i64, i64)> {
    Some(match name {
        "integer" | "long" => (i64::MIN, i64::MAX),
        "int" => (i32::MIN.into(), i32::MAX.into()),
        "short" => (i16::MIN.into(), i16::MAX.into()),
        "byte" => (i8::MIN.into(), i8::MAX.into()),
        "nonNegativeInteger" | "unsignedLong" => (0, i64::MAX),
        "positiveInteger" => (1, i64::MAX),
        "nonPositiveInteger" => (i64::MIN, 0),
        "negativeInteger" => (i64::MIN, -1),
        "unsignedInt" => (0, u32::MAX.into()),
        "unsignedShort" => (0, u16::MAX.into()),
        "unsignedByte" => (0, u8::MAX.into()),
        _ => return None,
    })
}

/// The value of a lexical form in a datatype that expressions know.
fn parse(lexical: &str, datatype: &str) -> Option<Value> {
    let name = xsd_name(datatype)?;
    if let Some((least, greatest)) = integer_range(name) {
        return match large::parse(Kind::Integer, lexical)? {
            Number::Integer(value) => (least..=greatest)
                .contains(&value.into())
                .then_some(Value::Integer(value)),
            large => has_large(name, lexical).then(|| Value::from(large)),
        };
    }
    match name {
        "string" => Some(Value::String(lexical.to_owned())),
        "boolean" => match lexical {
            "true" | "1" => Some(Value::Boolean(true)),
            "false" | "0" => Some(Value::Boolean(false)),
            _ => None,
        },
        "decimal" => large::parse(Kind::Decimal, lexical).map(Value::from),
        "float" => parse_real(lexical).and_then(|_| lexical_float(lexical)),
        "double" => parse_real(lexical).map(|value| Value::Double(value.into())),
        "dateTime" => lexical.parse().ok().map(Value::DateTime),
        "dateTimeStamp" => {
            let value: DateTime = lexical.parse().ok()?;
            value.timezone_offset().map(|_| Value::DateTime(value))
        }
        "date" => lexical.parse().ok().map(Value::Date),
        "time" => lexical.parse().ok().map(Value::Time),
        "duration" => lexical.parse().ok().map(Value::Duration),
        "yearMonthDuration" => lexical.parse().ok().map(Value::YearMonthDuration),
        "dayTimeDuration" => lexical.parse().ok().map(Value::DayTimeDuration),
        _ => None,
    }
}

fn lexical_float(lexical: &str) -> Option<Value> {
    let number: f32 = match lexical {
        "INF" | "+INF" => f32::INFINITY,
        "-INF" => f32::NEG_INFINITY,
        "NaN" => f32::NAN,
        _ => lexical.parse().ok()?,
    };
    Some(Value::Float(number.into()))
}

/// A double in the lexical space of XML Schema, which lacks the words that Rust also reads
/// (`inf`, `infinity`, `nan`).
pub(super) fn parse_real(lexical: &str) -> Option<f64> {
    match lexical {
        "INF" | "+INF" => return Some(f64::INFINITY),
        "-INF" => return Some(f64::NEG_INFINITY),
        "NaN" => return Some(f64::NAN),
        _ => {}
    }
    let plain = lexical
        .bytes()
        .all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'+' | b'-' | b'e' | b'E'));
    if plain { lexical.parse().ok() } else { None }
}

/// What the text of a literal or IRI is: what STR gives.
///
/// # Errors
/// [`ExprError::Type`] for blank nodes, [`ExprError::Unbound`] for no term, [`ExprError::Lost`].
pub(super) fn lexical(value: &Value, terms: &Terms) -> Result<String, ExprError> {
    match value {
        Value::Id(id) => lexical_of_id(*id, terms),
        Value::Blank(_) => Err(ExprError::Type),
        value => Ok(value.canonical()),
    }
}

/// The text of a literal or IRI.
///
/// # Errors
/// As [`lexical`].
pub(super) fn lexical_of_id(id: TermId, terms: &Terms) -> Result<String, ExprError> {
    if id.is_none() {
        return Err(ExprError::Unbound);
    }
    if id.is_inline() {
        let mut text = String::new();
        let known = inline::decode_lexical(id, &mut text);
        assert!(known, "an inline id holds a value");
        return Ok(text);
    }
    let mut bytes = Vec::new();
    if terms.push_key(id, &mut bytes)? {
        let (value, _, _) = key::literal_parts(&bytes).expect("the dictionary holds keys of terms");
        let length = value.len();
        bytes.truncate(length);
    } else if bytes.starts_with(b"_:") {
        return Err(ExprError::Type);
    }
    Ok(String::from_utf8(bytes).expect("the dictionary holds UTF-8"))
}

/// Appends the hexadecimal digits of some bytes.
pub(super) fn push_hex(text: &mut String, bytes: &[u8]) {
    for byte in bytes {
        write!(text, "{byte:02x}").expect("a string takes any text");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_have_the_ids_of_their_texts() {
        for text in [
            "0",
            "1",
            "-1",
            "0.5",
            "-0.5",
            "10",
            "100.25",
            "-7.125",
            "1.000000000000001",
            "1.0000000000000001",
            "36028797018963967",
            "36028797018963968",
            "12345.5",
            "3602879701896396.7",
            "3602879701896396.8",
            "123456789012345678",
            "0.000000000000000001",
        ] {
            let value: Decimal = text.parse().expect("a decimal");
            let expected = inline::encode(&value.to_string(), xsd::DECIMAL.as_str());
            assert_eq!(inline_decimal(value), expected, "{text}");
        }
    }

    #[test]
    fn times_have_the_values_of_their_texts() {
        for (text, datatype) in [
            ("2020-02-29T23:59:59.125Z", xsd::DATE_TIME),
            ("0000-01-01T00:00:00", xsd::DATE_TIME),
            ("9999-12-31T23:59:59-14:00", xsd::DATE_TIME),
            ("1969-12-31T23:59:59.999-00:01", xsd::DATE_TIME),
            ("1969-12-31T00:00:00+05:30", xsd::DATE_TIME),
            ("2020-02-29", xsd::DATE),
            ("0000-03-01Z", xsd::DATE),
            ("1999-12-31-00:01", xsd::DATE),
            ("1999-12-31+14:00", xsd::DATE),
        ] {
            let id = inline::encode(text, datatype.as_str()).expect("it fits inline");
            let (value, expected) = (decode_inline(id), Value::typed(text, datatype.as_str()));
            assert_eq!(value, expected, "{text}");
            assert_eq!(value.canonical(), expected.canonical(), "{text}");
        }
    }
}
