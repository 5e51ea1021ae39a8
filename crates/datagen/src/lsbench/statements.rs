//! How do statements look on the way out: as borrowed terms, as RDF triples, as lines of N-Triples?

use oxrdf::{LiteralRef, NamedNodeRef, TermRef, TripleRef};

use super::vocabulary::{Kind, XSD_DATE_TIME, XSD_DOUBLE};
use crate::numbers::push_number;

/// The object of a [`Tuple`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Object<'a> {
    /// An IRI, without angle brackets.
    Iri(&'a str),
    /// A literal: its text, which never has a character that N-Triples escapes, and its datatype if
    /// that is not `xsd:string`.
    Literal(&'a str, Option<&'static str>),
}

/// One statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Tuple<'a> {
    /// The subject's IRI, without angle brackets.
    pub subject: &'a str,
    /// The predicate's IRI, without angle brackets.
    pub predicate: &'static str,
    /// The object.
    pub object: Object<'a>,
}

impl<'a> Tuple<'a> {
    /// The same as an RDF triple.
    pub fn triple(&self) -> TripleRef<'a> {
        let object: TermRef<'a> = match self.object {
            Object::Iri(iri) => NamedNodeRef::new_unchecked(iri).into(),
            Object::Literal(text, None) => LiteralRef::new_simple_literal(text).into(),
            Object::Literal(text, Some(datatype)) => {
                LiteralRef::new_typed_literal(text, NamedNodeRef::new_unchecked(datatype)).into()
            }
        };
        TripleRef::new(
            NamedNodeRef::new_unchecked(self.subject),
            NamedNodeRef::new_unchecked(self.predicate),
            object,
        )
    }

    /// Appends the statement in N-Triples, without the end of the line.
    #[inline]
    pub fn push_to(&self, out: &mut String) {
        out.push('<');
        out.push_str(self.subject);
        out.push_str("> <");
        out.push_str(self.predicate);
        match self.object {
            Object::Iri(iri) => {
                out.push_str("> <");
                out.push_str(iri);
                out.push_str("> .");
            }
            Object::Literal(text, datatype) => {
                out.push_str("> \"");
                out.push_str(text);
                match datatype {
                    None => out.push_str("\" ."),
                    Some(datatype) => {
                        out.push_str("\"^^<");
                        out.push_str(datatype);
                        out.push_str("> .");
                    }
                }
            }
        }
    }
}

/// Part of the text of [`Statements`].
#[derive(Debug, Clone, Copy)]
pub(super) struct Span {
    start: u32,
    end: u32,
}

#[derive(Debug, Clone, Copy)]
enum Row {
    Iri(Span),
    Name(&'static str),
    Literal(Span, Option<&'static str>),
    Word(&'static str),
}

/// A few statements that belong together: those of one event, or of one user. Emptied and filled
/// again, so it allocates next to nothing.
#[derive(Debug, Default)]
pub struct Statements {
    text: String,
    rows: Vec<(Span, &'static str, Row)>,
}

impl Statements {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// All of them, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Tuple<'_>> + Clone {
        self.rows.iter().map(|&(subject, predicate, row)| Tuple {
            subject: self.part(subject),
            predicate,
            object: match row {
                Row::Iri(span) => Object::Iri(self.part(span)),
                Row::Name(iri) => Object::Iri(iri),
                Row::Literal(span, datatype) => Object::Literal(self.part(span), datatype),
                Row::Word(text) => Object::Literal(text, None),
            },
        })
    }

    /// Appends a line of N-Triples for each.
    pub fn push_lines(&self, out: &mut String) {
        for tuple in self.iter() {
            tuple.push_to(out);
            out.push('\n');
        }
    }

    #[inline]
    fn part(&self, span: Span) -> &str {
        &self.text[span.start as usize..span.end as usize]
    }

    pub(super) fn clear(&mut self) {
        self.text.clear();
        self.rows.clear();
    }

    /// The IRI of the so manieth of its kind, to be named in statements.
    #[inline]
    pub(super) fn iri(&mut self, kind: Kind, number: u64) -> Span {
        self.span(|text| {
            text.push_str(kind.prefix());
            push_number(text, number);
        })
    }

    /// An IRI that `write` appends.
    #[inline]
    pub(super) fn span(&mut self, write: impl FnOnce(&mut String)) -> Span {
        let start = self.text.len() as u32;
        write(&mut self.text);
        Span {
            start,
            end: self.text.len() as u32,
        }
    }

    #[inline]
    pub(super) fn link(&mut self, subject: Span, predicate: &'static str, object: Span) {
        self.rows.push((subject, predicate, Row::Iri(object)));
    }

    #[inline]
    pub(super) fn name(&mut self, subject: Span, predicate: &'static str, iri: &'static str) {
        self.rows.push((subject, predicate, Row::Name(iri)));
    }

    #[inline]
    pub(super) fn word(&mut self, subject: Span, predicate: &'static str, text: &'static str) {
        self.rows.push((subject, predicate, Row::Word(text)));
    }

    #[inline]
    pub(super) fn text(
        &mut self,
        subject: Span,
        predicate: &'static str,
        write: impl FnOnce(&mut String),
    ) {
        self.typed(subject, predicate, None, write);
    }

    #[inline]
    pub(super) fn typed(
        &mut self,
        subject: Span,
        predicate: &'static str,
        datatype: Option<&'static str>,
        write: impl FnOnce(&mut String),
    ) {
        let span = self.span(write);
        debug_assert!(
            !self.part(span).contains(['"', '\\', '\n', '\r']),
            "{} needs no escapes",
            self.part(span)
        );
        self.rows
            .push((subject, predicate, Row::Literal(span, datatype)));
    }

    /// A time, in seconds after the first one of the data.
    pub(super) fn time(&mut self, subject: Span, predicate: &'static str, seconds: u64) {
        self.typed(subject, predicate, Some(XSD_DATE_TIME), |text| {
            push_time(text, seconds);
        });
    }

    /// A coordinate in units of 10^-12 degrees.
    pub(super) fn coordinate(&mut self, subject: Span, predicate: &'static str, value: i64) {
        self.typed(subject, predicate, Some(XSD_DOUBLE), |text| {
            if value < 0 {
                text.push('-');
            }
            let value = value.unsigned_abs();
            push_number(text, value / 1_000_000_000_000);
            text.push('.');
            push_padded(text, value % 1_000_000_000_000, 12);
        });
    }
}

/// Appends so many digits, the first of which may be 0.
pub(super) fn push_padded(out: &mut String, n: u64, digits: u32) {
    let mut rest = n;
    for place in (0..digits).rev() {
        let unit = 10_u64.pow(place);
        out.push(char::from(b'0' + (rest / unit % 10) as u8));
        rest %= unit;
    }
}

/// Days from 1970-01-01 to the first day of the data, 2010-02-01.
const FIRST_DAY: u64 = 14_641;

/// Appends a date, in days after the first one of the data.
pub(super) fn push_date(out: &mut String, days: u64) {
    // The civil calendar in eras of 400 years that begin on 1 March of the year 0.
    let days = days + FIRST_DAY + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year + era * 400 + u64::from(month <= 2);
    push_padded(out, year, 4);
    out.push('-');
    push_padded(out, month, 2);
    out.push('-');
    push_padded(out, day, 2);
}

fn push_time(out: &mut String, seconds: u64) {
    push_date(out, seconds / 86_400);
    out.push('T');
    push_padded(out, seconds / 3_600 % 24, 2);
    out.push(':');
    push_padded(out, seconds / 60 % 60, 2);
    out.push(':');
    push_padded(out, seconds % 60, 2);
    out.push('Z');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_the_calendar() {
        for (seconds, expected) in [
            (0, "2010-02-01T00:00:00Z"),
            (2_063, "2010-02-01T00:34:23Z"),
            (28 * 86_400 - 1, "2010-02-28T23:59:59Z"),
            (28 * 86_400, "2010-03-01T00:00:00Z"),
            // 29 February 2012.
            (758 * 86_400, "2012-02-29T00:00:00Z"),
            (32_841 * 86_400, "2100-01-01T00:00:00Z"),
        ] {
            let mut text = String::new();
            push_time(&mut text, seconds);
            assert_eq!(text, expected);
        }
    }

    #[test]
    fn coordinates_are_decimal() {
        let mut out = Statements::default();
        let place = out.iri(Kind::Gps, 7);
        out.coordinate(place, "p", -5_000_000_000_001);
        let line = out.iter().next().map(|tuple| tuple.object);
        assert_eq!(
            line,
            Some(Object::Literal("-5.000000000001", Some(XSD_DOUBLE)))
        );
    }
}
