//! How is a document of RDF read whole, before a transaction begins?
//!
//! What its quads take is counted from the first: a few bytes of a document may stand for long
//! terms. So they are kept as bytes, each term that is that of the quad before but once, in parts
//! that the pool of memory has room for before they are made.

use std::io;
use std::num::NonZeroUsize;
use std::sync::Arc;

use jindou_fabric::pace::LongWork;
use jindou_ingest::{Guard, IngestError, LoadOptions, Progress, QuadSink, Source};
use jindou_model::{IdQuad, key};
use oxrdf::{GraphName, GraphNameRef, NamedNode, NamedOrBlankNode, Quad, QuadRef, Term, TermRef};
use parking_lot::Mutex;

use crate::EngineError;
use crate::background::SHORT_TEXT_BYTES;
use crate::database::Inner;
use crate::deadline::Deadline;
use crate::request_memory::RequestMemory;

/// The first part for quads, and the longest but for quads that are longer.
const FIRST_PART_BYTES: usize = 4 << 10;
const PART_BYTES: usize = 256 << 10;
/// Quads between two checks of the deadline.
const QUADS_PER_LOOK: usize = 1024;
/// The longest line or part of a document that is parsed at once; the parser of Turtle has it so.
pub(crate) const MAX_LINE_BYTES: usize = 16 << 20;
const CHUNK_BYTES: NonZeroUsize = NonZeroUsize::new(256 << 10).expect("it is not zero");

/// Which graphs a document may name, and where statements go that name none. No name is that of
/// the default graph.
#[derive(Clone, Debug)]
pub(crate) enum GraphNames {
    /// Any.
    Any { otherwise: Option<NamedNode> },
    /// None: all statements go to one graph.
    None { all: Option<NamedNode> },
}

/// The quads of some documents. Their memory is counted until it is dropped.
#[derive(Default)]
pub(crate) struct Document {
    parts: Vec<Vec<u8>>,
    quads: usize,
    ledger: Option<Arc<Ledger>>,
}

/// The quads of some documents, each with blank nodes of its own. The database knows the prefixes that
/// they declare from then on, whatever becomes of the quads.
///
/// # Errors
/// What is wrong with a document; if it names a graph that it may not, which is
/// [`EngineError::InvalidQuery`]; if their quads need more than one query may hold, or all may
/// together; and those of the deadline.
pub(crate) fn read(
    sources: Vec<Source>,
    graphs: GraphNames,
    inner: &Inner,
    deadline: &Deadline,
) -> Result<Document, EngineError> {
    let ledger = Ledger::new(inner, deadline);
    let is_short = sources.iter().all(|source| {
        let bytes = source.bytes_in_memory();
        bytes.is_some_and(|bytes| bytes <= SHORT_TEXT_BYTES)
    });
    let thread_start = inner.config.reading_start.as_ref().filter(|_| !is_short);
    let sources = sources
        .into_iter()
        .map(|source| source.with_guard(ledger.guard()))
        .collect();
    let (graph, one_graph) = match graphs {
        GraphNames::Any { otherwise } => (otherwise, None),
        GraphNames::None { all } => (None, Some(all)),
    };
    let options = LoadOptions {
        graph,
        blank_scope_start: 0,
        threads: NonZeroUsize::MIN,
        chunk_bytes: CHUNK_BYTES,
        max_line_bytes: MAX_LINE_BYTES,
        thread_start: thread_start.cloned(),
        contexts: inner.config.contexts.clone(),
        ..LoadOptions::default()
    };
    let sink = |_| DocumentSink {
        document: Document {
            ledger: Some(Arc::clone(&ledger)),
            ..Document::default()
        },
        one_graph: one_graph.clone(),
        ledger: Arc::clone(&ledger),
        last: Last::default(),
        quad: Vec::new(),
    };
    let _long = (!is_short).then(LongWork::begin);
    let loaded = jindou_ingest::load(sources, &options, sink, &Progress::default());
    match loaded {
        Ok((sinks, report)) => {
            assert!(sinks.len() <= 1, "one thread has one sink");
            inner.learn_prefixes(&report.prefixes)?;
            let mut documents = sinks.into_iter().map(|sink| sink.document);
            // Without a source there is none.
            Ok(documents.next().unwrap_or_default())
        }
        Err(error) => Err(ledger.refusal(error)),
    }
}

/// Takes a sink's own error out of the loader's.
pub(crate) fn of_sink(error: IngestError) -> EngineError {
    match error {
        IngestError::Sink { source, file } => match source.downcast::<EngineError>() {
            Ok(error) => *error,
            Err(source) => IngestError::Sink { source, file }.into(),
        },
        error => error.into(),
    }
}

/// What a document takes, and how long it may.
pub(crate) struct Ledger {
    deadline: Deadline,
    limit_bytes: u64,
    held: Mutex<Held>,
}

#[derive(Debug, Default)]
struct Held {
    memory: RequestMemory,
    /// Why there was no more.
    refusal: Option<EngineError>,
}

impl Ledger {
    /// Counts within what one query may hold.
    pub(crate) fn new(inner: &Inner, deadline: &Deadline) -> Arc<Self> {
        Self::within(inner.config.query_memory_bytes, inner, deadline)
    }

    /// Counts within what all may hold together.
    pub(crate) fn of_all(inner: &Inner, deadline: &Deadline) -> Arc<Self> {
        Self::within(u64::MAX, inner, deadline)
    }

    fn within(limit_bytes: u64, inner: &Inner, deadline: &Deadline) -> Arc<Self> {
        Arc::new(Self {
            deadline: deadline.clone(),
            limit_bytes,
            held: Mutex::new(Held {
                memory: RequestMemory::new(inner.config.memory_pool.as_ref()),
                refusal: None,
            }),
        })
    }

    pub(crate) fn deadline(&self) -> &Deadline {
        &self.deadline
    }

    /// Watches readers and parsers.
    pub(crate) fn guard(self: &Arc<Self>) -> Arc<dyn Guard> {
        Arc::new(Watch(Arc::clone(self)))
    }

    /// What an error of a reader that it watches is about.
    pub(crate) fn refusal(&self, error: IngestError) -> EngineError {
        if let Some(refusal) = self.held.lock().refusal.take() {
            return refusal;
        }
        match self.deadline.left() {
            Ok(_) => of_sink(error),
            Err(over) => over,
        }
    }

    /// Counts bytes before they are used.
    ///
    /// # Errors
    /// [`EngineError::DocumentTooLarge`], [`EngineError::DocumentBeyondPool`],
    /// [`EngineError::PoolExhausted`].
    pub(crate) fn hold(&self, bytes: u64) -> Result<(), EngineError> {
        let memory = &mut self.held.lock().memory;
        if memory.held_bytes().saturating_add(bytes) > self.limit_bytes {
            let limit_bytes = self.limit_bytes;
            return Err(EngineError::DocumentTooLarge { limit_bytes });
        }
        memory.take(bytes).map_err(|error| match error {
            // To come again when others have ended would not help.
            EngineError::PoolExhausted { limit_bytes } if memory.is_beyond_pool() => {
                EngineError::DocumentBeyondPool { limit_bytes }
            }
            error => error,
        })
    }
}

/// Counts what readers and parsers hold, and ends them in time.
struct Watch(Arc<Ledger>);

impl Guard for Watch {
    fn look(&self) -> io::Result<()> {
        match self.0.deadline.left() {
            Ok(_) => Ok(()),
            Err(over) => Err(io::Error::new(io::ErrorKind::TimedOut, over)),
        }
    }

    fn hold(&self, bytes: u64) -> io::Result<()> {
        self.0.hold(bytes).map_err(|refusal| {
            let told = io::Error::other(refusal.to_string());
            self.0.held.lock().refusal = Some(refusal);
            told
        })
    }
}

/// What is said of a document that names a graph and may not.
pub(crate) fn names_a_graph(name: GraphNameRef<'_>) -> EngineError {
    EngineError::InvalidQuery {
        message: format!(
            "the document is a dataset: it names the graph {name}, where the statements \
             of one graph are asked for"
        ),
    }
}

/// What a quad has in common with the one before, as bits of its first byte.
const SAME_SUBJECT: u8 = 1;
const SAME_PREDICATE: u8 = 2;
const SAME_GRAPH: u8 = 4;

/// What a term is.
const NODE: u8 = 0;
const LITERAL: u8 = 1;
const DEFAULT_GRAPH: u8 = 2;

/// The terms of the quad before.
#[derive(Default)]
struct Last {
    subject: Vec<u8>,
    predicate: Vec<u8>,
    graph: Vec<u8>,
}

struct DocumentSink {
    document: Document,
    /// The one graph for all statements, which must not name any: none is the default graph.
    one_graph: Option<Option<NamedNode>>,
    ledger: Arc<Ledger>,
    last: Last,
    quad: Vec<u8>,
}

/// Appends a term behind its kind and length, unless it is the last of its place.
fn push(quad: &mut Vec<u8>, term: Option<TermRef<'_>>, last: Option<&mut Vec<u8>>) -> bool {
    let begin = quad.len();
    quad.extend_from_slice(&[DEFAULT_GRAPH, 0, 0, 0, 0, 0, 0, 0, 0]);
    let text = quad.len();
    if let Some(term) = term {
        let is_literal = key::push_term(quad, term);
        quad[begin] = if is_literal { LITERAL } else { NODE };
        let length = (quad.len() - text) as u64;
        quad[begin + 1..text].copy_from_slice(&length.to_le_bytes());
    }
    match last {
        Some(last) if last[..] == quad[begin..] => {
            quad.truncate(begin);
            true
        }
        Some(last) => {
            last.clear();
            last.extend_from_slice(&quad[begin..]);
            false
        }
        None => false,
    }
}

impl QuadSink for DocumentSink {
    type Error = EngineError;

    fn quad(&mut self, quad: QuadRef<'_>) -> Result<(), EngineError> {
        if self.one_graph.is_some() && !quad.graph_name.is_default_graph() {
            return Err(names_a_graph(quad.graph_name));
        }
        if self.document.quads.is_multiple_of(QUADS_PER_LOOK) {
            self.ledger.deadline.left()?;
        }
        let graph = match quad.graph_name {
            GraphNameRef::DefaultGraph => self.one_graph.as_ref().and_then(|graph| {
                let graph = graph.as_ref()?;
                Some(TermRef::from(graph))
            }),
            GraphNameRef::NamedNode(node) => Some(TermRef::from(node)),
            GraphNameRef::BlankNode(node) => Some(TermRef::from(node)),
        };
        let (bytes, last) = (&mut self.quad, &mut self.last);
        bytes.clear();
        bytes.push(0);
        let predicate = Some(quad.predicate.into());
        let same = [
            (
                push(bytes, Some(quad.subject.into()), Some(&mut last.subject)),
                SAME_SUBJECT,
            ),
            (
                push(bytes, predicate, Some(&mut last.predicate)),
                SAME_PREDICATE,
            ),
            (push(bytes, graph, Some(&mut last.graph)), SAME_GRAPH),
        ];
        push(bytes, Some(quad.object), None);
        bytes[0] = same.into_iter().filter(|it| it.0).map(|it| it.1).sum();
        self.document.add(&self.quad)
    }
}

impl Document {
    /// How many quads there are, repeats included.
    pub(crate) fn len(&self) -> usize {
        self.quads
    }

    /// Bytes in which the quads are kept.
    pub(crate) fn bytes(&self) -> usize {
        self.parts.iter().map(Vec::len).sum()
    }

    fn add(&mut self, quad: &[u8]) -> Result<(), EngineError> {
        let room = |part: &Vec<u8>| part.capacity() - part.len();
        if self.parts.last().is_none_or(|part| room(part) < quad.len()) {
            let usual = match self.parts.last() {
                Some(part) => PART_BYTES.min(2 * part.capacity()),
                None => FIRST_PART_BYTES,
            };
            let bytes = usual.max(quad.len());
            self.hold(bytes as u64)?;
            self.parts.push(Vec::with_capacity(bytes));
        }
        if let Some(part) = self.parts.last_mut() {
            part.extend_from_slice(quad);
        }
        // The transaction will have numbers for it.
        self.hold(size_of::<IdQuad>() as u64)?;
        self.quads += 1;
        Ok(())
    }

    fn hold(&self, bytes: u64) -> Result<(), EngineError> {
        match &self.ledger {
            Some(ledger) => ledger.hold(bytes),
            None => Ok(()),
        }
    }

    /// The quads, in the order of the documents.
    ///
    /// # Panics
    /// The iterator does where the bytes are not those that were written: what is kept here never
    /// leaves the process, and a document that ends early would be taken for a whole one.
    pub(crate) fn quads(&self) -> Quads<'_> {
        Quads {
            parts: self.parts.iter(),
            rest: &[],
            subject: NOTHING,
            predicate: NOTHING,
            graph: NOTHING,
        }
    }
}

/// A term as [`Document`] keeps it: what it is, and its key.
type Kept<'a> = (u8, &'a [u8]);

const NOTHING: Kept<'static> = (DEFAULT_GRAPH, &[]);

/// The quads of a [`Document`].
pub(crate) struct Quads<'a> {
    parts: std::slice::Iter<'a, Vec<u8>>,
    rest: &'a [u8],
    subject: Kept<'a>,
    predicate: Kept<'a>,
    graph: Kept<'a>,
}

impl<'a> Quads<'a> {
    fn term(&mut self) -> Kept<'a> {
        let (&kind, rest) = self.rest.split_first().expect(KEPT);
        let (length, rest) = rest.split_first_chunk().expect(KEPT);
        let length = usize::try_from(u64::from_le_bytes(*length)).expect(KEPT);
        let (key, rest) = rest.split_at_checked(length).expect(KEPT);
        self.rest = rest;
        (kind, key)
    }
}

/// What the bytes of a document are by construction.
const KEPT: &str = "a quad is kept whole";

impl Iterator for Quads<'_> {
    type Item = Quad;

    fn next(&mut self) -> Option<Quad> {
        while self.rest.is_empty() {
            self.rest = self.parts.next()?;
        }
        let (&same, rest) = self.rest.split_first().expect(KEPT);
        self.rest = rest;
        if same & SAME_SUBJECT == 0 {
            self.subject = self.term();
        }
        if same & SAME_PREDICATE == 0 {
            self.predicate = self.term();
        }
        if same & SAME_GRAPH == 0 {
            self.graph = self.term();
        }
        let object = self.term();
        let Some(Term::NamedNode(predicate)) = term(self.predicate) else {
            panic!("a predicate is kept as an IRI");
        };
        Some(Quad {
            subject: node(self.subject).expect("a subject is kept as a node"),
            predicate,
            object: term(object).expect("an object is kept as a term"),
            graph_name: node(self.graph).map_or(GraphName::DefaultGraph, Into::into),
        })
    }
}

/// The term that was kept; none for the default graph.
///
/// # Panics
/// If the bytes are not a key of that kind.
fn term((kind, key): Kept<'_>) -> Option<Term> {
    Some(match kind {
        NODE => key::vertex(key).expect("the key of a node is kept"),
        LITERAL => key::literal(key)
            .expect("the key of a literal is kept")
            .into(),
        DEFAULT_GRAPH => return None,
        other => panic!("no term is of the kind {other}"),
    })
}

/// As [`term`].
///
/// # Panics
/// For a literal, too.
fn node(kept: Kept<'_>) -> Option<NamedOrBlankNode> {
    Some(match term(kept)? {
        Term::NamedNode(node) => node.into(),
        Term::BlankNode(node) => node.into(),
        Term::Literal(literal) => panic!("the literal {literal} stands for a node"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use oxrdf::{BlankNode, Literal};

    #[test]
    fn quads_are_given_back_as_they_were() {
        let ledger = Arc::new(Ledger {
            deadline: Deadline::new(std::time::Instant::now(), None, None),
            limit_bytes: u64::MAX,
            held: Mutex::default(),
        });
        let mut sink = DocumentSink {
            document: Document::default(),
            one_graph: None,
            ledger,
            last: Last::default(),
            quad: Vec::new(),
        };
        let iri = |number: usize| NamedNode::new_unchecked(format!("http://e/{number}"));
        let literal = |number: usize| match number % 3 {
            0 => Literal::new_language_tagged_literal_unchecked("a\0b", "en"),
            1 => Literal::from(number as u64),
            _ => Literal::new_simple_literal("x".repeat(number)),
        };
        let quad = |number: usize| {
            let subject: NamedOrBlankNode = match number % 4 {
                0 => BlankNode::new_unchecked(format!("b{number}")).into(),
                _ => iri(number / 8).into(),
            };
            let graph: GraphName = match number % 5 {
                0 => BlankNode::new_unchecked("g").into(),
                1 | 2 => iri(number / 16).into(),
                _ => GraphName::DefaultGraph,
            };
            let object: Term = match number % 7 {
                0 => iri(number).into(),
                1 => BlankNode::new_unchecked("o").into(),
                _ => literal(number).into(),
            };
            Quad::new(subject, iri(number / 32), object, graph)
        };
        let quads: Vec<Quad> = (0..5_000).map(quad).collect();
        for quad in &quads {
            sink.quad(quad.as_ref()).expect("there is room");
        }
        assert!(sink.document.parts.len() > 2);
        assert_eq!(sink.document.len(), quads.len());
        assert!(sink.document.quads().eq(quads));
    }

    /// Bytes that are not those of a quad are a mistake of ours, never the end of a document.
    #[test]
    fn a_document_whose_bytes_are_no_quads_does_not_pass_for_a_shorter_one() {
        let kept = |kind: u8, key: &[u8]| {
            let length = (key.len() as u64).to_le_bytes();
            [&[kind][..], &length, key].concat()
        };
        let (node, graph) = (kept(NODE, b"http://e/a"), kept(DEFAULT_GRAPH, b""));
        let whole = [&[0][..], &node, &node, &graph, &node].concat();
        let read = |part: Vec<u8>| {
            let document = Document {
                parts: vec![part],
                ..Document::default()
            };
            let count = std::panic::AssertUnwindSafe(|| document.quads().count());
            std::panic::catch_unwind(count)
        };
        assert_eq!(read(whole.clone()).ok(), Some(1));
        for end in 1..whole.len() {
            assert!(read(whole[..end].to_vec()).is_err(), "cut to {end} bytes");
        }
        let no_text = kept(NODE, b"\xff");
        let no_literal = kept(LITERAL, b"without a border");
        let literal = kept(LITERAL, b"value\0");
        for (part, what) in [
            (
                [&[0][..], &no_text, &node, &graph, &node].concat(),
                "subject",
            ),
            (
                [&[0][..], &literal, &node, &graph, &node].concat(),
                "literal as subject",
            ),
            (
                [&[0][..], &node, &literal, &graph, &node].concat(),
                "predicate",
            ),
            ([&[0][..], &node, &node, &literal, &node].concat(), "graph"),
            (
                [&[0][..], &node, &node, &graph, &no_literal].concat(),
                "object",
            ),
            (
                [&[0][..], &node, &node, &graph, &graph].concat(),
                "no object",
            ),
        ] {
            assert!(read(part).is_err(), "{what}");
        }
    }
}
