//! Are two values equal, and which is the less?

use std::cmp::Ordering;

use jindou_model::TermId;
use jindou_plan::expression::Comparison;

use super::numeric::order_of_values;
use super::{ExprError, Value};

/// What `=` says of two decoded values (SPARQL 1.1, sections 17.3 and 17.4.1.7).
///
/// # Errors
/// [`ExprError::Type`] where the values of two literals cannot be told apart: one of them is of
/// a datatype that is not known, or is malformed, or a time lacks the time zone to tell.
pub(super) fn equals(left: &Value, right: &Value) -> Result<bool, ExprError> {
    use Value as V;
    if let Some(order) = order_of_values(left, right) {
        return Ok(order == Some(Ordering::Equal));
    }
    match (left, right) {
        (V::Iri(left), V::Iri(right)) | (V::Blank(left), V::Blank(right)) => Ok(left == right),
        (V::Iri(_) | V::Blank(_), _) | (_, V::Iri(_) | V::Blank(_)) => Ok(false),
        (
            V::Other {
                value: left,
                datatype: left_type,
            },
            V::Other {
                value: right,
                datatype: right_type,
            },
        ) if left == right && left_type == right_type => Ok(true),
        // No other datatype has pairs of a string and a tag for values.
        (V::LangString { .. }, V::Other { .. }) | (V::Other { .. }, V::LangString { .. }) => {
            Ok(false)
        }
        (V::Other { .. }, _) | (_, V::Other { .. }) => Err(ExprError::Type),
        (V::String(left), V::String(right)) => Ok(left == right),
        (V::Boolean(left), V::Boolean(right)) => Ok(left == right),
        (
            V::LangString {
                value: left,
                language: left_tag,
            },
            V::LangString {
                value: right,
                language: right_tag,
            },
        ) => Ok(left == right && left_tag.eq_ignore_ascii_case(right_tag)),
        (V::DateTime(left), V::DateTime(right)) => same_instant(left.partial_cmp(right)),
        (V::Date(left), V::Date(right)) => same_instant(left.partial_cmp(right)),
        (V::Time(left), V::Time(right)) => same_instant(left.partial_cmp(right)),
        // Durations of all three types share one value space.
        _ => match (duration(left), duration(right)) {
            (Some(left), Some(right)) => Ok(left == right),
            // Literals of two known value spaces that have no value in common.
            _ => Ok(false),
        },
    }
}

fn same_instant(order: Option<Ordering>) -> Result<bool, ExprError> {
    order
        .map(|order| order == Ordering::Equal)
        .ok_or(ExprError::Type)
}

fn duration(value: &Value) -> Option<oxsdatatypes::Duration> {
    match value {
        Value::Duration(value) => Some(*value),
        Value::YearMonthDuration(value) => Some((*value).into()),
        Value::DayTimeDuration(value) => Some((*value).into()),
        _ => None,
    }
}

/// The order of two decoded values; `Ok(None)` where one is NaN, for which every comparison but
/// `!=` is false.
///
/// # Errors
/// [`ExprError::Type`] where `<` is not defined for them.
pub(super) fn order(left: &Value, right: &Value) -> Result<Option<Ordering>, ExprError> {
    use Value as V;
    if let Some(order) = order_of_values(left, right) {
        return Ok(order);
    }
    let order = match (left, right) {
        (V::String(left), V::String(right)) => Some(left.cmp(right)),
        (V::Boolean(left), V::Boolean(right)) => Some(left.cmp(right)),
        (
            V::LangString {
                value: left,
                language: left_tag,
            },
            V::LangString {
                value: right,
                language: right_tag,
            },
        ) if left_tag.eq_ignore_ascii_case(right_tag) => Some(left.cmp(right)),
        (V::DateTime(left), V::DateTime(right)) => left.partial_cmp(right),
        (V::Date(left), V::Date(right)) => left.partial_cmp(right),
        (V::Time(left), V::Time(right)) => left.partial_cmp(right),
        _ => match (duration(left), duration(right)) {
            (Some(left), Some(right)) => left.partial_cmp(&right),
            _ => None,
        },
    };
    order.map(Some).ok_or(ExprError::Type)
}

/// `left operator right`, for every operator but `sameTerm`.
pub(super) fn compare(
    operator: Comparison,
    left: &Value,
    right: &Value,
) -> Result<bool, ExprError> {
    match operator {
        Comparison::Equal | Comparison::SameTerm => equals(left, right),
        Comparison::NotEqual => equals(left, right).map(|equal| !equal),
        Comparison::Less
        | Comparison::LessOrEqual
        | Comparison::Greater
        | Comparison::GreaterOrEqual => {
            Ok(order(left, right)?.is_some_and(|order| holds(operator, order)))
        }
    }
}

/// Whether `operator` holds for two values in this order.
pub(super) fn holds(operator: Comparison, order: Ordering) -> bool {
    match operator {
        Comparison::Equal | Comparison::SameTerm => order == Ordering::Equal,
        Comparison::NotEqual => order != Ordering::Equal,
        Comparison::Less => order == Ordering::Less,
        Comparison::LessOrEqual => order != Ordering::Greater,
        Comparison::Greater => order == Ordering::Greater,
        Comparison::GreaterOrEqual => order != Ordering::Less,
    }
}

/// The order of two inline values where their ids alone tell it: two numbers without rounding,
/// two booleans, or two times that both have or both lack a time zone.
#[inline]
pub(super) fn order_of_ids(left: TermId, right: TermId) -> Option<Ordering> {
    use jindou_model::{TermKind as K, inline};
    match (left.kind(), right.kind()) {
        // Payloads of integers and of booleans sort as the values do.
        (K::Integer, K::Integer) | (K::Boolean, K::Boolean) => Some(left.cmp(&right)),
        (K::Integer | K::Decimal, K::Integer | K::Decimal) => {
            let (left, left_scale) = exact(left)?;
            let (right, right_scale) = exact(right)?;
            let scale = left_scale.max(right_scale);
            // Below 2^59 * 10^15, which fits.
            let left = left * 10_i128.pow(scale - left_scale);
            let right = right * 10_i128.pow(scale - right_scale);
            Some(left.cmp(&right))
        }
        (K::Double, K::Double) => inline::as_f64(left)?.partial_cmp(&inline::as_f64(right)?),
        (K::Double, K::Integer) => {
            inline::as_f64(left)?.partial_cmp(&(inline::as_integer(right)? as f64))
        }
        (K::Integer, K::Double) => {
            (inline::as_integer(left)? as f64).partial_cmp(&inline::as_f64(right)?)
        }
        (K::DateTime, K::DateTime) => {
            instants(inline::as_date_time(left)?, inline::as_date_time(right)?)
        }
        (K::Date, K::Date) => instants(inline::as_date(left)?, inline::as_date(right)?),
        _ => None,
    }
}

fn exact(id: TermId) -> Option<(i128, u32)> {
    use jindou_model::inline;
    match inline::as_integer(id) {
        Some(value) => Some((i128::from(value), 0)),
        None => inline::as_decimal(id).map(|(value, scale)| (value.into(), scale.into())),
    }
}

fn instants(left: (i64, Option<i16>), right: (i64, Option<i16>)) -> Option<Ordering> {
    (left.1.is_some() == right.1.is_some()).then(|| left.0.cmp(&right.0))
}
