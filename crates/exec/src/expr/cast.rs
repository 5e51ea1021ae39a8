//! What does a value become when it is cast (SPARQL 1.1, section 17.5)?

use jindou_model::{TermId, inline};
use jindou_plan::expression::Function;
use oxrdf::vocab::xsd;
use oxsdatatypes::{
    Date, DateTime, DayTimeDuration, Decimal, Double, Duration, Float, Integer, Time,
    YearMonthDuration,
};

use super::large::{self, Kind};
use super::numeric::{Number, nearest_double, nearest_float};
use super::value::parse_real;
use super::{ExprError, Value};

/// The white space of XML, which casts from strings ignore at both ends.
const SPACES: [char; 4] = [' ', '\t', '\n', '\r'];

/// Casts a decoded value.
///
/// # Errors
/// [`ExprError::Type`] where no such cast is defined, [`ExprError::Value`] where this value
/// cannot be cast.
pub(super) fn cast(function: Function, value: &Value) -> Result<Value, ExprError> {
    match function {
        Function::CastString => string(value),
        Function::CastBoolean => boolean(value).map(Value::Boolean),
        Function::CastInteger => integer(value).map(Value::from),
        Function::CastDecimal => decimal(value).map(Value::from),
        Function::CastFloat => float(value).map(Value::Float),
        Function::CastDouble => double(value).map(Value::Double),
        Function::CastDateTime => date_time(value).map(Value::DateTime),
        Function::CastDate => date(value).map(Value::Date),
        Function::CastTime => time(value).map(Value::Time),
        Function::CastDuration => duration(value).map(Value::Duration),
        Function::CastDayTimeDuration => day_time(value).map(Value::DayTimeDuration),
        Function::CastYearMonthDuration => year_month(value).map(Value::YearMonthDuration),
        _ => Err(ExprError::Type),
    }
}

/// The id of the date or dateTime that a string is cast to, where the string is its canonical
/// form and fits inline.
pub(super) fn inline_time(function: Function, text: &str) -> Option<TermId> {
    let datatype = match function {
        Function::CastDate => xsd::DATE,
        Function::CastDateTime => xsd::DATE_TIME,
        _ => return None,
    };
    let text = text.trim_matches(SPACES);
    // UTC is written as `Z`, and a fraction may end with zeros.
    if text.ends_with("+00:00") || text.contains('.') {
        return None;
    }
    inline::encode(text, datatype.as_str())
}

/// The text of a string, as casts read it; anything else has no such cast.
fn text(value: &Value) -> Result<&str, ExprError> {
    match value {
        Value::String(text) => Ok(text.trim_matches(SPACES)),
        _ => Err(ExprError::Type),
    }
}

fn parse<T: std::str::FromStr>(value: &Value) -> Result<T, ExprError> {
    text(value)?.parse().map_err(|_| ExprError::Value)
}

/// Beyond what section 17.5 lists, literals of any other type give their lexical form.
fn string(value: &Value) -> Result<Value, ExprError> {
    let text = match value {
        Value::Id(_) | Value::Blank(_) => return Err(ExprError::Type),
        // XPath writes an exponent from a million on.
        value @ (Value::Float(_) | Value::Double(_)) => value.real_text(1e6),
        value => value.canonical(),
    };
    Ok(Value::String(text))
}

fn boolean(value: &Value) -> Result<bool, ExprError> {
    match value {
        Value::Boolean(value) => Ok(*value),
        Value::Integer(value) => Ok(*value != Integer::from(0)),
        Value::Decimal(value) => Ok(*value != Decimal::default()),
        // Zero is not large.
        Value::Large(_) => Ok(true),
        Value::Float(value) => Ok(f32::from(*value) != 0.0 && !value.is_nan()),
        Value::Double(value) => Ok(f64::from(*value) != 0.0 && !value.is_nan()),
        value => match text(value)? {
            "true" | "1" => Ok(true),
            "false" | "0" => Ok(false),
            _ => Err(ExprError::Value),
        },
    }
}

fn integer(value: &Value) -> Result<Number, ExprError> {
    match value {
        Value::Boolean(value) => Ok(Number::Integer((*value).into())),
        Value::Integer(value) => Ok(Number::Integer(*value)),
        Value::Decimal(value) => Ok(match Integer::try_from(*value) {
            Ok(value) => Number::Integer(value),
            Err(_) => large::truncated(&value.to_string()),
        }),
        Value::Large(value) => Ok(large::truncated(value.text())),
        Value::Float(value) => whole(f32::from(*value).into()),
        Value::Double(value) => whole((*value).into()),
        value => large::parse(Kind::Integer, text(value)?).ok_or(ExprError::Value),
    }
}

/// The number without its fraction.
fn whole(number: f64) -> Result<Number, ExprError> {
    /// 2^63, the least double beyond 64 bits.
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    if !number.is_finite() {
        return Err(ExprError::Value);
    }
    if (-LIMIT..LIMIT).contains(&number) {
        return Ok(Number::Integer(Integer::from(number.trunc() as i64)));
    }
    // A double of this size is an integer, of which this prints all digits.
    large::parse(Kind::Integer, &format!("{number:.0}")).ok_or(ExprError::Value)
}

fn decimal(value: &Value) -> Result<Number, ExprError> {
    match value {
        Value::Boolean(value) => Ok(Number::Decimal((*value).into())),
        Value::Integer(value) => Ok(Number::Decimal((*value).into())),
        Value::Decimal(value) => Ok(Number::Decimal(*value)),
        Value::Large(value) => large::parse(Kind::Decimal, value.text()).ok_or(ExprError::Value),
        Value::Float(value) => nearest_decimal(f32::from(*value).into()),
        Value::Double(value) => nearest_decimal((*value).into()),
        value => large::parse(Kind::Decimal, text(value)?).ok_or(ExprError::Value),
    }
}

/// The decimal that is nearest to a number, of those with 18 digits after the point.
fn nearest_decimal(number: f64) -> Result<Number, ExprError> {
    if !number.is_finite() {
        return Err(ExprError::Value);
    }
    large::parse(Kind::Decimal, &format!("{number:.18}")).ok_or(ExprError::Value)
}

fn float(value: &Value) -> Result<Float, ExprError> {
    match value {
        Value::Boolean(value) => Ok(Integer::from(*value).into()),
        Value::Integer(value) => Ok((*value).into()),
        Value::Decimal(value) => Ok(nearest_float(*value)),
        Value::Large(value) => Ok(value.to_float()),
        Value::Float(value) => Ok(*value),
        Value::Double(value) => Ok((*value).into()),
        value => {
            let text = text(value)?;
            let number = parse_real(text).ok_or(ExprError::Value)?;
            // Parsed as it is, not rounded twice; the words for what is not finite are the same.
            let float = if number.is_finite() {
                text.parse().map_err(|_| ExprError::Value)?
            } else {
                number as f32
            };
            Ok(float.into())
        }
    }
}

fn double(value: &Value) -> Result<Double, ExprError> {
    match value {
        Value::Boolean(value) => Ok(Integer::from(*value).into()),
        Value::Integer(value) => Ok((*value).into()),
        Value::Decimal(value) => Ok(nearest_double(*value)),
        Value::Large(value) => Ok(value.to_double()),
        Value::Float(value) => Ok((*value).into()),
        Value::Double(value) => Ok(*value),
        value => parse_real(text(value)?)
            .map(Double::from)
            .ok_or(ExprError::Value),
    }
}

fn date_time(value: &Value) -> Result<DateTime, ExprError> {
    match value {
        Value::DateTime(value) => Ok(*value),
        Value::Date(value) => (*value).try_into().map_err(|_| ExprError::Overflow),
        value => parse(value),
    }
}

fn date(value: &Value) -> Result<Date, ExprError> {
    match value {
        Value::Date(value) => Ok(*value),
        Value::DateTime(value) => (*value).try_into().map_err(|_| ExprError::Overflow),
        value => parse(value),
    }
}

fn time(value: &Value) -> Result<Time, ExprError> {
    match value {
        Value::Time(value) => Ok(*value),
        Value::DateTime(value) => Ok((*value).into()),
        value => parse(value),
    }
}

fn duration(value: &Value) -> Result<Duration, ExprError> {
    match value {
        Value::Duration(value) => Ok(*value),
        Value::DayTimeDuration(value) => Ok((*value).into()),
        Value::YearMonthDuration(value) => Ok((*value).into()),
        value => parse(value),
    }
}

/// Casting between durations keeps the parts that the new type has.
fn day_time(value: &Value) -> Result<DayTimeDuration, ExprError> {
    match value {
        Value::DayTimeDuration(value) => Ok(*value),
        Value::YearMonthDuration(_) => Ok(DayTimeDuration::default()),
        Value::Duration(value) => seconds_of(*value).map(DayTimeDuration::new),
        value => parse(value),
    }
}

fn year_month(value: &Value) -> Result<YearMonthDuration, ExprError> {
    match value {
        Value::YearMonthDuration(value) => Ok(*value),
        Value::DayTimeDuration(_) => Ok(YearMonthDuration::default()),
        Value::Duration(value) => months_of(*value).map(YearMonthDuration::new),
        value => parse(value),
    }
}

/// All months of a duration.
pub(super) fn months_of(value: Duration) -> Result<i64, ExprError> {
    let months = value
        .years()
        .checked_mul(12)
        .and_then(|months| months.checked_add(value.months()));
    months.ok_or(ExprError::Overflow)
}

/// All seconds of a duration but those of its months.
pub(super) fn seconds_of(value: Duration) -> Result<Decimal, ExprError> {
    let minutes = (i128::from(value.days()) * 24 + i128::from(value.hours())) * 60
        + i128::from(value.minutes());
    let whole = Decimal::try_from(minutes * 60).map_err(|_| ExprError::Overflow)?;
    whole
        .checked_add(value.seconds())
        .ok_or(ExprError::Overflow)
}
