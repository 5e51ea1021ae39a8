//! What are the parts of a date or a time (SPARQL 1.1, section 17.4.5)?
//!
//! Beyond SPARQL's `xsd:dateTime` these take `xsd:date` and `xsd:time` too, as the functions of
//! XPath of the same names do.

use jindou_model::{TermId, inline};
use jindou_plan::expression::Function;
use jindou_plan::physical::Var;
use oxsdatatypes::{DayTimeDuration, Decimal, Integer};

use super::compile::Code;
use super::numeric::Number;
use super::{ExprError, Value};

/// YEAR, MONTH, DAY, HOURS, MINUTES or SECONDS of an id that holds a date or a dateTime; `None`
/// where it holds none, or has no such part.
#[inline]
pub(super) fn part_of_id(function: Function, id: TermId) -> Option<Number> {
    if function == Function::Seconds {
        let ms = inline::ms_of_day(id)? % 60_000;
        return Decimal::new(ms.into(), 3).ok().map(Number::Decimal);
    }
    whole_part_of_id(function, id).map(|part| Number::Integer(Integer::from(part)))
}

/// As [`part_of_id`], of the functions that give integers; `None` for others.
#[inline]
pub(super) fn whole_part_of_id(function: Function, id: TermId) -> Option<i64> {
    match function {
        Function::Year => Some(inline::year_month_day(id)?.0),
        Function::Month => Some(inline::year_month_day(id)?.1),
        Function::Day => Some(inline::year_month_day(id)?.2),
        Function::Hours => Some(inline::ms_of_day(id)? / 3_600_000),
        Function::Minutes => Some(inline::ms_of_day(id)? / 60_000 % 60),
        _ => None,
    }
}

/// The function and the variable, if this is one of those of [`whole_part_of_id`], of a variable.
pub(super) fn as_whole_part(code: &Code) -> Option<(Function, Var)> {
    let Code::Call(function, arguments) = code else {
        return None;
    };
    let whole = matches!(
        function,
        Function::Year | Function::Month | Function::Day | Function::Hours | Function::Minutes
    );
    match arguments.first() {
        Some(Code::Variable(var)) if whole => Some((*function, *var)),
        _ => None,
    }
}

/// YEAR, MONTH, DAY, HOURS, MINUTES or SECONDS.
pub(super) fn part(function: Function, value: &Value) -> Result<Number, ExprError> {
    let whole = |number: i64| Ok(Number::Integer(Integer::from(number)));
    let seconds = |number: Decimal| Ok(Number::Decimal(number));
    match (function, value) {
        (Function::Year, Value::DateTime(value)) => whole(value.year()),
        (Function::Year, Value::Date(value)) => whole(value.year()),
        (Function::Month, Value::DateTime(value)) => whole(value.month().into()),
        (Function::Month, Value::Date(value)) => whole(value.month().into()),
        (Function::Day, Value::DateTime(value)) => whole(value.day().into()),
        (Function::Day, Value::Date(value)) => whole(value.day().into()),
        (Function::Hours, Value::DateTime(value)) => whole(value.hour().into()),
        (Function::Hours, Value::Time(value)) => whole(value.hour().into()),
        (Function::Minutes, Value::DateTime(value)) => whole(value.minute().into()),
        (Function::Minutes, Value::Time(value)) => whole(value.minute().into()),
        (Function::Seconds, Value::DateTime(value)) => seconds(value.second()),
        (Function::Seconds, Value::Time(value)) => seconds(value.second()),
        _ => Err(ExprError::Type),
    }
}

/// TIMEZONE: an error where there is none.
pub(super) fn timezone(value: &Value) -> Result<Value, ExprError> {
    zone(value)?
        .map(Value::DayTimeDuration)
        .ok_or(ExprError::Value)
}

fn zone(value: &Value) -> Result<Option<DayTimeDuration>, ExprError> {
    match value {
        Value::DateTime(value) => Ok(value.timezone()),
        Value::Date(value) => Ok(value.timezone()),
        Value::Time(value) => Ok(value.timezone()),
        _ => Err(ExprError::Type),
    }
}

/// TZ: the time zone as `lexical`, the lexical form of `value`, writes it.
pub(super) fn tz(value: &Value, lexical: &str) -> Result<Value, ExprError> {
    let zone = match zone(value)? {
        None => "",
        Some(_) if lexical.ends_with('Z') => "Z",
        // `+hh:mm`
        Some(_) => &lexical[lexical.len() - 6..],
    };
    Ok(Value::String(zone.to_owned()))
}
