//! How long is a duration of a continuous query?
//!
//! C-SPARQL writes a number and a unit (`10s`, `100 ms`), RSP-QL an `xsd:dayTimeDuration`, bare
//! (`PT10S`) or as a literal. Letters may have either case, as in the texts of both.

use crate::chars::{WORD, is, run};
use crate::continuous::Duration;
use crate::group::with_hint;
use crate::hints;
use crate::keywords::Keyword;
use crate::lexer::{Kind, offset, span};
use crate::memory::{Failure, Parsed};
use crate::parser::Parser;
use crate::tree::{LiteralKind, Span};

/// Longest duration in milliseconds: instants are signed.
const MAX_MS: u64 = u64::MAX / 2;

const WAYS: &str = "a duration such as 10s or PT10S";
const UNIT: &str = "a unit (ms, s, m, h or d)";
/// Units of C-SPARQL in milliseconds.
const UNITS: &[(&str, u64)] = &[
    ("ms", 1),
    ("s", SECOND_MS),
    ("m", MINUTE_MS),
    ("h", HOUR_MS),
    ("d", DAY_MS),
];
const SECOND_MS: u64 = 1_000;
const MINUTE_MS: u64 = 60 * SECOND_MS;
const HOUR_MS: u64 = 60 * MINUTE_MS;
const DAY_MS: u64 = 24 * HOUR_MS;

const DATATYPES: &[&str] = &[
    "http://www.w3.org/2001/XMLSchema#duration",
    "http://www.w3.org/2001/XMLSchema#dayTimeDuration",
];

/// Why a text is no length of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    Malformed,
    Negative,
    /// It has years or months.
    Calendar,
    /// It has less than a millisecond.
    Fine,
    Long,
}

impl<'t> Parser<'t, '_> {
    /// A duration, which is more than zero.
    pub(crate) fn duration(&mut self, what: &str) -> Parsed<Duration> {
        let start = self.token.span.start;
        let ms = match self.token.kind {
            Kind::Integer => self.number_with_unit(what)?,
            Kind::Decimal | Kind::Double => {
                let failure = self.unexpected(what, &[WAYS]);
                return Err(with_hint(failure, "the number before a unit is an integer"));
            }
            Kind::String => self.typed_duration()?,
            Kind::Word if self.at_bare_duration() => self.bare_duration()?,
            Kind::Minus => return Err(self.negative_duration()),
            _ => return Err(self.unexpected(what, &[WAYS])),
        };
        let span = self.since(start);
        match ms {
            0 => Err(self.no_duration(span, Fault::Negative)),
            1..=MAX_MS => Ok(Duration { span, ms }),
            _ => Err(self.no_duration(span, Fault::Long)),
        }
    }

    /// `10s`.
    fn number_with_unit(&mut self, what: &str) -> Parsed<u64> {
        let number = self.token;
        let written = number.of(self.text);
        if written.starts_with('-') {
            return Err(self.negative_duration());
        }
        if written.starts_with('+') {
            return Err(self.unexpected(what, &[WAYS]));
        }
        self.advance()?;
        let unit = UNITS.iter().find(|(unit, _)| self.at_spelled(unit));
        let Some((_, unit_ms)) = unit else {
            return Err(self.unexpected(what, &[UNIT]));
        };
        self.advance()?;
        let count = written.parse::<u64>().ok();
        let ms = count.and_then(|count| count.checked_mul(*unit_ms));
        ms.ok_or_else(|| self.no_duration(self.since(number.span.start), Fault::Long))
    }

    /// Whether `PT10S` or the like is next.
    fn at_bare_duration(&self) -> bool {
        let bytes = self.token.of(self.text).as_bytes();
        self.keyword == Keyword::None
            && matches!(bytes, [b'P' | b'p', b'T' | b't' | b'0'..=b'9', ..])
    }

    /// `PT10S`, of which a word is only the beginning if it has a fraction.
    fn bare_duration(&mut self) -> Parsed<u64> {
        let start = self.token.span.start as usize;
        let rest = &self.text.as_bytes()[start..];
        let is_part = |byte: &u8| is(*byte, WORD) || *byte == b'.';
        let length = rest.iter().take_while(|byte| is_part(byte)).count();
        self.extend_token(start + length);
        let written = self.token;
        self.advance()?;
        day_time_ms(written.of(self.text)).map_err(|fault| self.no_duration(written.span, fault))
    }

    /// `"PT10S"^^xsd:duration`.
    fn typed_duration(&mut self) -> Parsed<u64> {
        let literal = self.literal()?;
        let is_duration = match &literal.kind {
            LiteralKind::Typed(iri) => DATATYPES.contains(&&*iri.value),
            _ => false,
        };
        let fault = match is_duration {
            true => match day_time_ms(&literal.value) {
                Ok(ms) => return Ok(ms),
                Err(fault) => fault,
            },
            false => Fault::Malformed,
        };
        Err(self.no_duration(literal.span, fault))
    }

    /// The error that the next token is a minus, or begins with one, and is before a duration.
    #[cold]
    fn negative_duration(&self) -> Failure {
        let start = self.token.span.start as usize;
        let end = run(self.text.as_bytes(), start + 1, WORD);
        self.no_duration(span(start, end), Fault::Negative)
    }

    #[cold]
    fn no_duration(&self, span: Span, fault: Fault) -> Failure {
        let written = &self.text[span.start as usize..span.end as usize];
        let shown = hints::shown(written);
        let hint = "durations are written 10s, 100ms, PT10S or \"PT10S\"^^xsd:duration";
        let (message, hint) = match fault {
            Fault::Malformed => (format!("{shown} is no duration"), Some(hint.to_owned())),
            Fault::Negative => (
                format!("the duration {shown} is not longer than zero"),
                None,
            ),
            Fault::Calendar => {
                let message = format!("{shown} has years or months, which differ in length");
                (message, Some("days, hours and seconds do not".to_owned()))
            }
            Fault::Fine => (format!("{shown} is finer than milliseconds"), None),
            Fault::Long => {
                let message = format!("{shown} is longer than {MAX_MS} milliseconds");
                (message, None)
            }
        };
        self.wrong(span, message, hint)
    }

    /// Makes the token longer, up to a place before which it is one for the caller.
    pub(crate) fn extend_token(&mut self, end: usize) {
        self.token.span.end = offset(end);
        self.lexer.go_to(self.token.span.end);
    }
}

/// The milliseconds of an `xsd:dayTimeDuration`.
fn day_time_ms(written: &str) -> Result<u64, Fault> {
    if written.starts_with('-') {
        return Err(Fault::Negative);
    }
    let mut rest = written
        .strip_prefix(['P', 'p'])
        .filter(|rest| !rest.is_empty() && !rest.ends_with(['T', 't']))
        .ok_or(Fault::Malformed)?;
    let mut in_time = false;
    // What a part has to be shorter than: they stand in order.
    let mut above_ms = u64::MAX;
    let mut total_ms = 0_u64;
    while !rest.is_empty() {
        if let (false, Some(time)) = (in_time, rest.strip_prefix(['T', 't'])) {
            in_time = true;
            rest = time;
        }
        let is_unit = |c: char| !c.is_ascii_digit() && c != '.';
        let digits = rest.find(is_unit).ok_or(Fault::Malformed)?;
        let (number, after) = rest.split_at(digits);
        let unit_ms = match (in_time, after.as_bytes()[0].to_ascii_uppercase()) {
            (false, b'Y' | b'M') => return Err(Fault::Calendar),
            (false, b'D') => DAY_MS,
            (true, b'H') => HOUR_MS,
            (true, b'M') => MINUTE_MS,
            (true, b'S') => SECOND_MS,
            _ => return Err(Fault::Malformed),
        };
        if unit_ms >= above_ms {
            return Err(Fault::Malformed);
        }
        above_ms = unit_ms;
        let part_ms = match number.split_once('.') {
            Some((whole, fraction)) if unit_ms == SECOND_MS => {
                times(whole, unit_ms)?.checked_add(fraction_ms(fraction)?)
            }
            Some(_) => return Err(Fault::Malformed),
            None => Some(times(number, unit_ms)?),
        };
        let sum_ms = part_ms.and_then(|part_ms| total_ms.checked_add(part_ms));
        total_ms = sum_ms.ok_or(Fault::Long)?;
        rest = &after[1..];
    }
    Ok(total_ms)
}

fn times(digits: &str, unit_ms: u64) -> Result<u64, Fault> {
    if digits.is_empty() {
        return Err(Fault::Malformed);
    }
    // Nothing but digits is left: what cannot be parsed is too long.
    let count = digits.parse::<u64>().ok();
    let ms = count.and_then(|count| count.checked_mul(unit_ms));
    ms.ok_or(Fault::Long)
}

/// Milliseconds of the digits after a point.
fn fraction_ms(digits: &str) -> Result<u64, Fault> {
    if digits.is_empty() || digits.contains('.') {
        return Err(Fault::Malformed);
    }
    let (kept, finer) = digits.split_at(digits.len().min(3));
    if finer.bytes().any(|digit| digit != b'0') {
        return Err(Fault::Fine);
    }
    let ms = kept
        .bytes()
        .fold(0, |ms, digit| ms * 10 + u64::from(digit - b'0'));
    let missing = kept.len()..3;
    Ok(missing.fold(ms, |ms, _| ms * 10))
}

#[cfg(test)]
mod tests {
    use super::{DAY_MS, Fault, HOUR_MS, MAX_MS, day_time_ms};

    #[test]
    fn day_time_durations_are_milliseconds() {
        for (written, ms) in [
            ("PT10S", 10_000),
            ("pt1m10s", 70_000),
            ("PT0.5S", 500),
            ("PT0.050S", 50),
            ("PT1.0010000S", 1_001),
            ("P1D", DAY_MS),
            ("P1DT2H3M4S", DAY_MS + 2 * HOUR_MS + 184_000),
            ("PT36H", 36 * HOUR_MS),
            ("PT0S", 0),
            ("PT9223372036854775.807S", MAX_MS),
        ] {
            assert_eq!(day_time_ms(written), Ok(ms), "{written}");
        }
    }

    #[test]
    fn what_is_no_day_time_duration_is_refused_with_its_reason() {
        for (written, fault) in [
            ("", Fault::Malformed),
            ("P", Fault::Malformed),
            ("PT", Fault::Malformed),
            ("P1DT", Fault::Malformed),
            ("10S", Fault::Malformed),
            ("P10S", Fault::Malformed),
            ("PT10", Fault::Malformed),
            ("PTS", Fault::Malformed),
            ("PT10S5M", Fault::Malformed),
            ("PT1S1S", Fault::Malformed),
            ("PT1TS", Fault::Malformed),
            ("PT1.5M", Fault::Malformed),
            ("PT1.S", Fault::Malformed),
            ("PT.5S", Fault::Malformed),
            ("PT1.5.5S", Fault::Malformed),
            ("PT1\u{e9}", Fault::Malformed),
            ("P1W", Fault::Malformed),
            ("-PT1S", Fault::Negative),
            ("P1Y", Fault::Calendar),
            ("P1M", Fault::Calendar),
            ("PT0.0005S", Fault::Fine),
            ("PT99999999999999999999S", Fault::Long),
            ("P99999999999999999D", Fault::Long),
            ("PT18446744073709551S18446744073709551S", Fault::Malformed),
        ] {
            assert_eq!(day_time_ms(written), Err(fault), "{written}");
        }
    }
}
