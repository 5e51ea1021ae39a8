//! Events in JSON-LD, or in plain JSON with the context of their stream.
//!
//! Lines are read as the [draft of RDF Messages](https://w3c-cg.github.io/rsp/spec/messages#json-ld)
//! has it: a line of nothing but `@context` is the context of the lines after it, and `{}` is an empty
//! event.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use jindou_ingest::{Format, Source, with_parser_stack};
use jindou_stream::StreamDefinition;
use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, MapAccess, Visitor};
use serde_json::Value;

use super::batch::{Batch, Object, WRAPPED};
use super::{EventError, Place, Reading, read_guarded};
use crate::EngineError;
use crate::database::Inner;
use crate::deadline::Deadline;
use crate::streams::tuples::Tuples;

const CONTEXT: &str = "@context";

/// Reads an object a line. Blank lines are passed over.
pub(super) fn read_lines(reading: &mut Reading<'_>, text: &[u8]) -> Result<(), EngineError> {
    let first = reading.blank_scopes(memchr::memchr_iter(b'\n', text).count() + 1)?;
    let of_stream = stream_context(reading);
    let mut active = None;
    let text = without_mark(text);
    let mut batch = Batch::new(text);
    let mut next = 0;
    for (number, line) in (0..).zip(text.split(|byte| *byte == b'\n')) {
        let range = trimmed(text, next..next + line.len());
        let indent = range.start - next;
        next += line.len() + 1;
        if range.is_empty() {
            continue;
        }
        let object = &text[range.clone()];
        let place = Place {
            line: number + 1,
            column: indent as u64 + 1,
        };
        let members = members(reading, &mut batch, object, place)?;
        if members.is_context() {
            active = Some(context_of(reading, &mut batch, object, place)?);
            continue;
        }
        let context = match (&active, members.has_context) {
            (Some(active), _) => Some(active),
            (None, true) => None,
            (None, false) => of_stream.as_ref(),
        };
        let object = Object {
            range,
            place,
            scope: first + number,
            is_empty: members.count == 0,
        };
        batch.add(reading, context, object)?;
    }
    batch.read(reading)
}

/// Reads an object, or an array of objects.
pub(super) fn read(reading: &mut Reading<'_>, text: &[u8]) -> Result<(), EngineError> {
    let text = without_mark(text);
    let objects = match text.trim_ascii_start().first() {
        Some(b'[') => elements(text).map_err(|(at, reason)| {
            let error = EventError::NoJson {
                reason: reason.to_owned(),
            };
            reading.wrong(Places::default().of(text, at).line, error)
        })?,
        _ => std::iter::once(0..text.len()).collect(),
    };
    let first = reading.blank_scopes(objects.len())?;
    let of_stream = stream_context(reading);
    let mut places = Places::default();
    let mut batch = Batch::new(text);
    for (scope, range) in (first..).zip(objects) {
        let place = places.of(text, range.start);
        let members = members(reading, &mut batch, &text[range.clone()], place)?;
        let context = of_stream.as_ref().filter(|_| !members.has_context);
        if context.is_none() && !members.has_context {
            batch.read(reading)?;
            return Err(reading.wrong(place.line, EventError::NoContext));
        }
        let object = Object {
            range,
            place,
            scope,
            is_empty: members.count == 0,
        };
        batch.add(reading, context, object)?;
    }
    batch.read(reading)
}

/// Whether the parser takes the context of a stream.
///
/// # Errors
/// Why not.
pub(in crate::streams) fn check_context(
    inner: &Inner,
    definition: &StreamDefinition,
) -> Result<(), EngineError> {
    let Some(context) = &definition.context else {
        return Ok(());
    };
    let text = format!("{}{context}{}{{}}{}", WRAPPED[0], WRAPPED[1], WRAPPED[2]);
    let source = Source::bytes("context", text.into_bytes()).with_format(Format::JsonLd);
    let deadline = Deadline::new(Instant::now(), inner.config.query_timeout, None);
    let mut tuples = Tuples::default();
    with_parser_stack(|| read_guarded(inner, &deadline, source, 0, &mut tuples))?
}

/// The context that the stream has for plain JSON, on one line.
fn stream_context(reading: &Reading<'_>) -> Option<Arc<str>> {
    let context = reading.stream.definition.context.as_ref();
    context.map(|context| context.to_string().into())
}

/// The context that an object of nothing else has, on one line.
fn context_of(
    reading: &mut Reading<'_>,
    batch: &mut Batch<'_>,
    object: &[u8],
    place: Place,
) -> Result<Arc<str>, EngineError> {
    match serde_json::from_slice::<Value>(object) {
        Ok(object) => Ok(object[CONTEXT].to_string().into()),
        Err(error) => {
            batch.read(reading)?;
            Err(no_json(reading, &error, place))
        }
    }
}

/// What is known of an object before it is read.
#[derive(Clone, Copy, Default)]
struct Members {
    count: usize,
    has_context: bool,
}

impl Members {
    /// Whether there is nothing but a context.
    fn is_context(self) -> bool {
        self.has_context && self.count == 1
    }
}

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(MembersVisitor)
    }
}

struct MembersVisitor;

impl<'de> Visitor<'de> for MembersVisitor {
    type Value = Members;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object, which is an event")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
        let mut members = Members::default();
        while let Some(key) = map.next_key::<String>()? {
            map.next_value::<IgnoredAny>()?;
            members.count += 1;
            if key == CONTEXT && std::mem::replace(&mut members.has_context, true) {
                return Err(Error::custom("there are two members @context"));
            }
        }
        Ok(members)
    }
}

/// What an object has; that it is one, and well formed, is known then. What is wrong with those before
/// it goes first.
fn members(
    reading: &mut Reading<'_>,
    batch: &mut Batch<'_>,
    object: &[u8],
    place: Place,
) -> Result<Members, EngineError> {
    match serde_json::from_slice(object) {
        Ok(members) => Ok(members),
        Err(error) => {
            batch.read(reading)?;
            Err(no_json(reading, &error, place))
        }
    }
}

fn no_json(reading: &Reading<'_>, error: &serde_json::Error, place: Place) -> EngineError {
    let line = place.line + (error.line() as u64).saturating_sub(1);
    let reason = error.to_string();
    // The place in it is that within the object.
    let reason = reason.split(" at line ").next().unwrap_or_default();
    let column = match error.line() {
        0 | 1 => place.column + (error.column() as u64).saturating_sub(1),
        _ => error.column() as u64,
    };
    let reason = format!("{reason} (column {column})");
    reading.wrong(line, EventError::NoJson { reason })
}

fn without_mark(text: &[u8]) -> &[u8] {
    text.strip_prefix("\u{feff}".as_bytes()).unwrap_or(text)
}

/// Where the elements of an array lie. Each may be anything but empty: what it is, others find out.
///
/// # Errors
/// Where the array ends too early or too late, and how.
fn elements(text: &[u8]) -> Result<Vec<Range<usize>>, (usize, &'static str)> {
    let mut elements = Vec::new();
    let mut depth = 0_usize;
    let (mut in_string, mut is_escaped, mut is_over) = (false, false, false);
    let mut begin = 0;
    for (at, byte) in text.iter().enumerate() {
        if in_string {
            match byte {
                _ if is_escaped => is_escaped = false,
                b'\\' => is_escaped = true,
                b'"' => in_string = false,
                _ => {}
            }
            continue;
        }
        if is_over && !byte.is_ascii_whitespace() {
            return Err((at, "something follows the array"));
        }
        match byte {
            b'"' => in_string = true,
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        let is_end = matches!(byte, b']' | b'}') && depth == 0;
        if is_end || *byte == b',' && depth == 1 {
            let element = trimmed(text, begin..at);
            let is_only = is_end && elements.is_empty();
            match element.is_empty() {
                true if is_only => {}
                true => return Err((at, "an element is missing")),
                false => elements.push(element),
            }
            is_over = is_end;
        }
        if matches!(byte, b'[' | b',') && depth == 1 {
            begin = at + 1;
        }
    }
    match is_over {
        true => Ok(elements),
        false => Err((text.len(), "the array does not end")),
    }
}

fn trimmed(text: &[u8], range: Range<usize>) -> Range<usize> {
    let part = &text[range.clone()];
    let begin = range.start + part.len() - part.trim_ascii_start().len();
    begin..begin + text[begin..range.end].trim_ascii_end().len()
}

/// Says where in a text something is, which comes after what was asked before.
#[derive(Default)]
struct Places {
    /// Up to here lines were counted, and the characters of the last one.
    at: usize,
    line: u64,
    column: u64,
}

impl Places {
    fn of(&mut self, text: &[u8], at: usize) -> Place {
        let passed = &text[self.at..at];
        let mut last = passed;
        if let Some(end) = memchr::memrchr(b'\n', passed) {
            self.line += memchr::memchr_iter(b'\n', passed).count() as u64;
            last = &passed[end + 1..];
            self.column = 0;
        }
        // A byte that continues a character is none.
        let is_first = |byte: &&u8| **byte & 0xc0 != 0x80;
        self.column += last.iter().filter(is_first).count() as u64;
        self.at = at;
        Place {
            line: self.line + 1,
            column: self.column + 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_array_has_elements() {
        let text = br#" [ {"a":"],"}, [1,{"b":2}] , "\"]" ]
"#;
        let found = elements(text).expect("it is an array");
        let found: Vec<_> = found
            .into_iter()
            .map(|range| std::str::from_utf8(&text[range]).expect("UTF-8"))
            .collect();
        assert_eq!(found, [r#"{"a":"],"}"#, r#"[1,{"b":2}]"#, r#""\"]""#]);
        assert_eq!(elements(b"[ ]"), Ok(vec![]));
        for wrong in ["[", "[1", "[,]", "[1,]", "[1,,2]", "[1] 2", "[1]]", "[\"]"] {
            assert!(elements(wrong.as_bytes()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn places_are_counted_from_the_last_one() {
        let mut places = Places::default();
        let text = "[\n é{},\n\n{}]".as_bytes();
        for (at, line, column) in [(0, 1, 1), (5, 2, 3), (10, 4, 1), (12, 4, 3)] {
            let place = places.of(text, at);
            assert_eq!((place.line, place.column), (line, column), "{at}");
        }
    }
}
