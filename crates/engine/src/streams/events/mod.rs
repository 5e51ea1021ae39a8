//! Which events does a text have, and what time has each?
//!
//! An event is some statements with one time: all of a document, a line of NDJSON, an RDF message, a
//! transaction of a patch. What a request has is gathered whole before any of it becomes part of the
//! stream, and counted as it grows.

mod batch;
mod error;
mod json;
mod messages;
mod patch;
mod sink;
mod split;
mod time;

use std::sync::Arc;
use std::time::{Duration, Instant};

use jindou_ingest::with_parser_stack;
use jindou_ingest::{
    Compression, Format, IngestError, QuadSink, Source, read_document, read_lines,
};
use jindou_stream::TimeSource;

pub use error::EventError;
pub(super) use json::check_context;
use sink::Gathered;
pub use time::milliseconds_of;

use super::formats::TupleFormat;
use super::stream::Stream;
use super::tuples::Tuples;
use crate::EngineError;
use crate::background::SHORT_TEXT_BYTES;
use crate::database::Inner;
use crate::deadline::Deadline;
use crate::document::{Ledger, of_sink};

/// How long it may take to read a text, where the database has no limit for queries: many small events may
/// each have an expensive context.
const MOST_TIME: Duration = Duration::from_secs(60);

/// The tuples of a text's events, with their times. Where times are of arrival, those are yet to be
/// set.
///
/// # Errors
/// What is wrong with the text, with its place; the deadline; memory.
pub(super) fn read(
    inner: &Inner,
    stream: &Stream,
    format: TupleFormat,
    time_ms: Option<i64>,
    text: Vec<u8>,
) -> Result<Tuples, EngineError> {
    let format = match format {
        TupleFormat::Document(format) if has_messages(format) && split::announces(&text) => {
            TupleFormat::Messages(format)
        }
        format => format,
    };
    let reading = Reading::new(inner, stream, time_ms);
    if let TupleFormat::Document(Format::NTriples | Format::NQuads)
    | TupleFormat::Messages(Format::NTriples | Format::NQuads)
    | TupleFormat::Patch = format
    {
        return reading.read(format, text);
    }
    let start = inner.config.reading_start.as_ref();
    let start = start.filter(|_| text.len() > SHORT_TEXT_BYTES);
    with_parser_stack(|| {
        if let Some(start) = start {
            (start.0)();
        }
        reading.read(format, text)
    })?
}

/// Whether there are logs of RDF Messages in a format.
pub(super) fn has_messages(format: Format) -> bool {
    matches!(
        format,
        Format::NTriples | Format::NQuads | Format::Turtle | Format::TriG
    )
}

/// The events of one text.
struct Reading<'a> {
    inner: &'a Inner,
    stream: &'a Stream,
    deadline: Deadline,
    /// What the tuples take.
    ledger: Arc<Ledger>,
    time_ms: Option<i64>,
    tuples: Tuples,
    /// The first tuple of the event that is read.
    begin: usize,
    /// Events that were read.
    events: u64,
}

impl<'a> Reading<'a> {
    fn new(inner: &'a Inner, stream: &'a Stream, time_ms: Option<i64>) -> Self {
        let limit = inner.config.query_timeout.unwrap_or(MOST_TIME);
        let deadline = Deadline::new(Instant::now(), Some(limit), None);
        Self {
            inner,
            stream,
            ledger: Ledger::new(inner, &deadline),
            deadline,
            time_ms,
            tuples: Tuples::default(),
            begin: 0,
            events: 0,
        }
    }

    fn read(mut self, format: TupleFormat, text: Vec<u8>) -> Result<Tuples, EngineError> {
        match format {
            TupleFormat::Document(format) => {
                let scope = self.blank_scopes(1)?;
                match format.is_line_based() {
                    true => self.lines(&text, scope, 1)?,
                    false => self.document(text, format, scope)?,
                }
                self.end_event(None)?;
            }
            TupleFormat::Lines => unreachable!("lines have times of their own"),
            TupleFormat::Messages(format) if format.is_line_based() => {
                messages::read_lines(&mut self, text)?;
            }
            TupleFormat::Messages(format) => messages::read(&mut self, format, text)?,
            TupleFormat::JsonLines => json::read_lines(&mut self, &text)?,
            TupleFormat::Json => json::read(&mut self, &text)?,
            TupleFormat::Patch => patch::read(&mut self, text)?,
        }
        Ok(self.tuples)
    }

    /// The first of so many numbers for blank nodes that are no other text's.
    fn blank_scopes(&mut self, count: usize) -> Result<u64, EngineError> {
        let count = count.max(1) as u64;
        let first = self.inner.writer.lock().reserve_documents(count, 0)?;
        self.tuples.set_scope(first + count);
        Ok(first)
    }

    /// Adds the statements of lines, the first of which has this number.
    fn lines(&mut self, text: &[u8], scope: u64, first_line: u64) -> Result<(), EngineError> {
        let name = &*self.stream.name;
        let mut sink = Gathered::new(&mut self.tuples, &self.ledger);
        let read = read_lines(name, text, scope, &mut sink);
        let place = Place {
            line: first_line,
            column: 1,
        };
        read.map_err(|error| place.moved(of_sink(error), 0))
    }

    /// Adds the statements of a document.
    fn document(&mut self, text: Vec<u8>, format: Format, scope: u64) -> Result<(), EngineError> {
        let source = Source::bytes(&*self.stream.name, text).with_format(format);
        let mut sink = Gathered::new(&mut self.tuples, &self.ledger);
        read_guarded(self.inner, &self.deadline, source, scope, &mut sink)
    }

    /// All statements since the last event are one. One without statements passes.
    fn end_event(&mut self, line: Option<u64>) -> Result<(), EngineError> {
        let end = self.tuples.len();
        self.end_event_at(end, line)
    }

    /// The same of those before a tuple.
    fn end_event_at(&mut self, end: usize, line: Option<u64>) -> Result<(), EngineError> {
        self.events += 1;
        let begin = std::mem::replace(&mut self.begin, end);
        if begin == end {
            return Ok(());
        }
        let time_ms = match &self.stream.definition.time {
            TimeSource::Predicate(predicate) => {
                let time = time::of_event(&self.tuples, begin..end, predicate);
                time.map_err(|error| self.refused(line, error))?
            }
            // Where times are of arrival, this one is replaced.
            _ => self.time_ms.unwrap_or_default(),
        };
        if self.stream.definition.time != TimeSource::Arrival {
            let checked = self.stream.check_ahead(time_ms, self.inner);
            checked.map_err(|error| self.refused(line, error))?;
        }
        self.tuples.set_time(begin..end, time_ms);
        Ok(())
    }

    /// Why the event that is read is refused.
    fn refused(&self, line: Option<u64>, source: EventError) -> EngineError {
        EngineError::Event {
            stream: self.stream.name.clone(),
            event: self.events.max(1),
            line,
            source,
        }
    }

    /// What is wrong on a line, where the next event is read.
    fn wrong(&self, line: u64, source: EventError) -> EngineError {
        EngineError::Event {
            stream: self.stream.name.clone(),
            event: self.events + 1,
            line: Some(line),
            source,
        }
    }
}

/// Reads a document whose parser takes from memory of its own, which is given back after it.
fn read_guarded(
    inner: &Inner,
    deadline: &Deadline,
    source: Source,
    scope: u64,
    sink: &mut impl QuadSink,
) -> Result<(), EngineError> {
    let ledger = Ledger::new(inner, deadline);
    let source = source
        .with_compression(Compression::None)
        .with_guard(ledger.guard());
    read_document(source, scope, sink).map_err(|error| ledger.refusal(error))
}

/// Where a part of a text begins, from 1.
#[derive(Clone, Copy)]
struct Place {
    line: u64,
    /// In characters.
    column: u64,
}

impl Place {
    /// An error in the part, before whose first line so many characters were put, with its place in the
    /// whole.
    fn moved(self, error: EngineError, added: u64) -> EngineError {
        let EngineError::Ingest(IngestError::Syntax(mut error)) = error else {
            return error;
        };
        let line = error.line.unwrap_or(1);
        if line == 1 {
            let column = |column: u64| (column + self.column).saturating_sub(added + 1);
            error.column = error.column.map(|at| column(at).max(self.column));
        }
        error.line = Some(line + self.line - 1);
        IngestError::from(error).into()
    }
}
