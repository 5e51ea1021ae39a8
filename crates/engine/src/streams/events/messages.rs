//! Events in logs of [RDF Messages](https://w3c-cg.github.io/rsp/spec/messages) of the RDF Stream
//! Processing community group: a message is one.
//!
//! A log announces its version (`VERSION "1.2-messages"`) and has `MESSAGE` between messages. The
//! parsers know neither: both are taken out of the text, which otherwise stays as it is, and its parser
//! is given one message at a time. So prefixes go on from message to message, and blank nodes do not.

use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use jindou_ingest::{Format, QuadSink, Source};
use oxrdf::{BlankNodeRef, GraphNameRef, NamedOrBlankNodeRef, QuadRef, TermRef};

use super::sink::Gathered;
use super::split::split;
use super::{Reading, read_guarded};
use crate::EngineError;

/// Reads lines of N-Triples or N-Quads.
pub(super) fn read_lines(reading: &mut Reading<'_>, mut text: Vec<u8>) -> Result<(), EngineError> {
    let messages = split(&mut text, true).map_err(|(line, error)| reading.wrong(line, error))?;
    let first = reading.blank_scopes(messages.ends.len())?;
    let mut begin = 0;
    let each = messages.ends.into_iter().zip(messages.lines);
    for (scope, (end, line)) in (first..).zip(each) {
        reading.lines(&text[begin..end], scope, line)?;
        reading.end_event(Some(line))?;
        begin = end;
    }
    Ok(())
}

/// Reads Turtle or TriG.
pub(super) fn read(
    reading: &mut Reading<'_>,
    format: Format,
    mut text: Vec<u8>,
) -> Result<(), EngineError> {
    let messages = split(&mut text, false).map_err(|(line, error)| reading.wrong(line, error))?;
    let scope = reading.blank_scopes(messages.ends.len())?;
    let current = Arc::new(AtomicUsize::new(0));
    let reader = MessageReader {
        text,
        ends: messages.ends,
        at: 0,
        current: Arc::clone(&current),
    };
    let source = Source::reader(&*reading.stream.name, reader);
    let mut sink = MessageSink {
        gathered: Gathered::new(&mut reading.tuples, &reading.ledger),
        ends: Vec::new(),
        current,
        scope,
        prefix: format!("f{scope}"),
        names: Default::default(),
    };
    let (inner, deadline) = (reading.inner, &reading.deadline);
    read_guarded(
        inner,
        deadline,
        source.with_format(format),
        scope,
        &mut sink,
    )?;
    let mut ends = sink.ends;
    ends.resize(messages.lines.len(), reading.tuples.len());
    for (end, line) in ends.into_iter().zip(messages.lines) {
        reading.end_event_at(end, Some(line))?;
    }
    Ok(())
}

/// Gives a parser one message at a time: it has handed on all of one before it asks for the next.
struct MessageReader {
    text: Vec<u8>,
    ends: Vec<usize>,
    at: usize,
    current: Arc<AtomicUsize>,
}

impl Read for MessageReader {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let mut current = self.current.load(Relaxed);
        while self.at == self.ends[current] && current + 1 < self.ends.len() {
            current += 1;
        }
        self.current.store(current, Relaxed);
        let rest = &self.text[self.at..self.ends[current]];
        let count = rest.len().min(buf.len());
        buf[..count].copy_from_slice(&rest[..count]);
        self.at += count;
        Ok(count)
    }
}

/// Notes where messages end among the tuples, and gives each its own blank nodes.
struct MessageSink<'a> {
    gathered: Gathered<'a>,
    /// Of the messages before the one that is read.
    ends: Vec<usize>,
    current: Arc<AtomicUsize>,
    /// That of the first message; the others follow.
    scope: u64,
    /// What the parser calls all of them by.
    prefix: String,
    names: [String; 2],
}

impl QuadSink for MessageSink<'_> {
    type Error = EngineError;

    fn quad(&mut self, quad: QuadRef<'_>) -> Result<(), EngineError> {
        let current = self.current.load(Relaxed);
        self.ends.resize(current, self.gathered.tuples.len());
        if current == 0 {
            return self.gathered.add(quad);
        }
        let scope = self.scope + current as u64;
        let [subject, object] = &mut self.names;
        self.gathered.add(QuadRef {
            subject: match quad.subject {
                NamedOrBlankNodeRef::BlankNode(node) => {
                    renamed(subject, node, &self.prefix, scope).into()
                }
                subject => subject,
            },
            predicate: quad.predicate,
            object: match quad.object {
                TermRef::BlankNode(node) => renamed(object, node, &self.prefix, scope).into(),
                object => object,
            },
            // Names of graphs are not looked at.
            graph_name: GraphNameRef::DefaultGraph,
        })
    }
}

/// A blank node of one scope as that of another.
fn renamed<'a>(
    name: &'a mut String,
    node: BlankNodeRef<'_>,
    prefix: &str,
    scope: u64,
) -> BlankNodeRef<'a> {
    let own = node.as_str().strip_prefix(prefix);
    *name = format!("f{scope}{}", own.expect("the parser was given the scope"));
    BlankNodeRef::new_unchecked(name)
}
