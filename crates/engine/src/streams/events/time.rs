//! Which time does an event have by the value of a predicate?

use std::ops::Range;
use std::str::FromStr;

use jindou_model::{inline, key};
use oxrdf::vocab::xsd;
use oxrdf::{Literal, LiteralRef, NamedNodeRef};
use oxsdatatypes::{DateTime, Decimal};

use super::EventError;
use crate::streams::tuples::{ObjectKey, Tuples};

/// When 1970 begins.
const EPOCH: &str = "1970-01-01T00:00:00Z";

/// The time of the event that some tuples are: the one value that the predicate has there.
///
/// # Errors
/// None, more than one, or one that is no time.
pub(super) fn of_event(
    tuples: &Tuples,
    event: Range<usize>,
    predicate: &str,
) -> Result<i64, EventError> {
    let mut value = None;
    for tuple in event {
        let keys = tuples.get(tuple);
        if keys.predicate != predicate {
            continue;
        }
        match value.replace(keys.object) {
            Some(before) if before != keys.object => {
                return Err(EventError::Times {
                    predicate: predicate.to_owned(),
                });
            }
            _ => {}
        }
    }
    let Some(value) = value else {
        return Err(EventError::NoTime {
            predicate: predicate.to_owned(),
        });
    };
    time_of(value).map_err(|value| EventError::NoTimeValue {
        predicate: predicate.to_owned(),
        value,
    })
}

/// # Errors
/// The value as it is written, if it is no time.
fn time_of(object: ObjectKey<'_>) -> Result<i64, String> {
    let literal = match object {
        ObjectKey::Inline(id) => {
            let mut lexical = String::new();
            let is_whole = inline::decode_lexical(id, &mut lexical);
            let datatype = inline::datatype(id).filter(|_| is_whole);
            datatype.map(|datatype| Literal::new_typed_literal(lexical, datatype))
        }
        ObjectKey::Literal(text) => key::literal(text),
        ObjectKey::Node(text) => {
            return Err(key::vertex(text).map_or_else(String::new, |term| term.to_string()));
        }
    };
    let literal = literal.ok_or_else(String::new)?;
    milliseconds_of(literal.as_ref()).ok_or_else(|| literal.to_string())
}

/// The time that a literal says, in milliseconds since 1970: an `xsd:dateTime` (of UTC where it has no time
/// zone), an `xsd:dateTimeStamp`, or an `xsd:integer` or `xsd:long` of milliseconds.
#[must_use]
pub fn milliseconds_of(literal: LiteralRef<'_>) -> Option<i64> {
    let (text, datatype) = (literal.value().trim(), literal.datatype());
    if datatype == xsd::INTEGER || datatype == xsd::LONG {
        return text.parse().ok();
    }
    let is_stamp = datatype == DATE_TIME_STAMP;
    if datatype != xsd::DATE_TIME && !is_stamp {
        return None;
    }
    let time = DateTime::from_str(text).ok()?;
    let time = match (time.timezone_offset(), is_stamp) {
        (Some(_), _) => time,
        (None, true) => return None,
        // It is that of UTC.
        (None, false) => DateTime::from_str(&format!("{text}Z")).ok()?,
    };
    let epoch = DateTime::from_str(EPOCH).expect("it is a time");
    let since = time.checked_sub(epoch)?;
    let thousand = Decimal::from(1000);
    let whole = since.as_seconds().checked_mul(thousand)?.checked_floor()?;
    whole.to_string().parse().ok()
}

const DATE_TIME_STAMP: NamedNodeRef<'static> =
    NamedNodeRef::new_unchecked("http://www.w3.org/2001/XMLSchema#dateTimeStamp");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_instants_or_milliseconds() {
        let cases = [
            ("1970-01-01T00:00:01Z", xsd::DATE_TIME, Some(1_000)),
            ("1970-01-01T00:00:01", xsd::DATE_TIME, Some(1_000)),
            ("1970-01-01T01:00:00+01:00", xsd::DATE_TIME, Some(0)),
            ("1969-12-31T23:59:59.9995Z", xsd::DATE_TIME, Some(-1)),
            (
                "2026-01-01T00:00:00.25Z",
                DATE_TIME_STAMP,
                Some(1_767_225_600_250),
            ),
            ("2026-01-01T00:00:00", DATE_TIME_STAMP, None),
            ("1700000000000", xsd::INTEGER, Some(1_700_000_000_000)),
            ("-5", xsd::LONG, Some(-5)),
            ("9223372036854775808", xsd::LONG, None),
            ("2026-01-01", xsd::DATE, None),
            ("1", xsd::INT, None),
            ("yesterday", xsd::DATE_TIME, None),
            ("1700000000000", xsd::STRING, None),
        ];
        for (text, datatype, time_ms) in cases {
            let literal = LiteralRef::new_typed_literal(text, datatype);
            assert_eq!(milliseconds_of(literal), time_ms, "{literal}");
        }
    }
}
