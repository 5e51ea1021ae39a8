//! Which quads does this document in Turtle, TriG, RDF/XML or JSON-LD hold?

use crate::blank::BlankNames;
use crate::error::{IngestError, SyntaxError};
use crate::format::Format;
use crate::load::{QuadSink, Skipped};
use crate::progress::Progress;
use crate::source::{Opened, is_decompression_failure, read_error};
use oxrdf::{
    BlankNode, BlankNodeRef, GraphName, GraphNameRef, NamedOrBlankNode, Quad, QuadRef, Term,
};
use oxrdfio::{JsonLdProfileSet, RdfFormat, RdfParseError, RdfParser, RdfSyntaxError};
use std::io::{self, BufRead, BufReader, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// How many quads are handed on between two looks at the stop signal.
const QUADS_PER_POLL: u64 = 1024;

/// The longest token the Turtle parser keeps, in bytes.
const MAX_TOKEN_BYTES: usize = 16 << 20;

/// Room for the outside names of a quad's blank nodes; kept from quad to quad.
#[derive(Default)]
pub(crate) struct QuadScratch {
    subject: String,
    object: String,
    graph: String,
}

impl QuadScratch {
    /// The quad as sinks see it: blank nodes renamed, the default graph replaced.
    pub(crate) fn outside<'a>(
        &'a mut self,
        quad: &'a Quad,
        default_graph: GraphNameRef<'a>,
        mut name: impl FnMut(&mut String, &BlankNode),
    ) -> QuadRef<'a> {
        QuadRef {
            subject: match &quad.subject {
                NamedOrBlankNode::NamedNode(node) => node.into(),
                NamedOrBlankNode::BlankNode(node) => {
                    name(&mut self.subject, node);
                    BlankNodeRef::new_unchecked(&self.subject).into()
                }
            },
            predicate: quad.predicate.as_ref(),
            object: match &quad.object {
                Term::BlankNode(node) => {
                    name(&mut self.object, node);
                    BlankNodeRef::new_unchecked(&self.object).into()
                }
                term => term.as_ref(),
            },
            graph_name: match &quad.graph_name {
                GraphName::NamedNode(node) => node.into(),
                GraphName::BlankNode(node) => {
                    name(&mut self.graph, node);
                    BlankNodeRef::new_unchecked(&self.graph).into()
                }
                GraphName::DefaultGraph => default_graph,
            },
        }
    }
}

/// Why a quad cannot be handed on. A build in which another crate turns on RDF 1.2 in the parsers
/// gets to see triple terms, whose blank nodes would escape the renaming above.
pub(crate) fn unsupported(quad: &Quad) -> Option<&'static str> {
    match &quad.object {
        Term::NamedNode(_) | Term::BlankNode(_) | Term::Literal(_) => None,
        #[allow(unreachable_patterns)]
        _ => Some("triple terms of RDF 1.2 are not supported"),
    }
}

/// How one document is to be read.
pub(crate) struct DocumentContext<'a> {
    pub(crate) file: &'a Arc<str>,
    pub(crate) base_iri: Option<&'a str>,
    pub(crate) scope: u64,
    pub(crate) default_graph: GraphNameRef<'a>,
    pub(crate) lenient: bool,
    /// How many errors are described; the others are counted.
    pub(crate) max_described: usize,
    pub(crate) progress: &'a Progress,
}

/// What a document came to.
#[derive(Default)]
pub(crate) struct DocumentTally {
    pub(crate) quads: u64,
    pub(crate) skipped: u64,
    pub(crate) described: Vec<Skipped>,
}

/// Hands the quads of a document to `sink`.
///
/// # Errors
/// The first one in the document; in lenient mode only those that are not about its syntax.
pub(crate) fn read<S: QuadSink>(
    format: Format,
    opened: Opened,
    context: &DocumentContext<'_>,
    sink: &mut S,
    asked_to_stop: impl Fn() -> bool,
    tally: &mut DocumentTally,
) -> Result<(), IngestError>
where
    S::Error: std::error::Error + Send + Sync + 'static,
{
    let line_reached = Arc::new(AtomicU64::new(0));
    let reader: Box<dyn Read> = if format == Format::RdfXml {
        Box::new(LineByLine {
            inner: BufReader::with_capacity(1 << 16, opened.reader),
            line: Arc::clone(&line_reached),
            at_line_start: true,
        })
    } else {
        Box::new(opened.reader)
    };
    let mut parser = RdfParser::from_format(oxrdfio_format(format));
    if let Some(base_iri) = context.base_iri {
        parser = parser
            .with_base_iri(base_iri)
            .map_err(|e| IngestError::BaseIri {
                file: Arc::clone(context.file),
                base_iri: base_iri.to_owned(),
                reason: e.to_string(),
            })?;
    }
    let mut names = BlankNames::new(context.scope);
    let mut scratch = QuadScratch::default();
    let mut told = 0;
    let mut items = 0;
    for item in parser.for_reader(reader) {
        items += 1;
        if items % QUADS_PER_POLL == 0 {
            context.progress.add_quads(tally.quads - told);
            told = tally.quads;
            if asked_to_stop() {
                break;
            }
        }
        let error = match item {
            Ok(quad) => match unsupported(&quad) {
                None => {
                    let quad = scratch.outside(&quad, context.default_graph, |out, node| {
                        names.write(out, node)
                    });
                    sink.quad(quad).map_err(|e| IngestError::Sink {
                        file: Arc::clone(context.file),
                        source: Box::new(e),
                    })?;
                    tally.quads += 1;
                    continue;
                }
                Some(reason) => SyntaxError {
                    file: Arc::clone(context.file),
                    line: None,
                    column: None,
                    reason: reason.to_owned(),
                },
            },
            Err(RdfParseError::Syntax(e)) => {
                syntax_error(&e, context.file, format, line_reached.load(Relaxed))
            }
            Err(RdfParseError::Io(e)) => io_error(e, context.file, format, &line_reached)?,
        };
        if !context.lenient {
            return Err(error.into());
        }
        // The Turtle parsers find their way back to the next statement, the others do not.
        let rest_dropped = !matches!(format, Format::Turtle | Format::TriG);
        tally.skipped += 1;
        if tally.described.len() < context.max_described {
            tally.described.push(Skipped {
                error,
                rest_dropped,
            });
        }
        if rest_dropped {
            break;
        }
    }
    context.progress.add_quads(tally.quads - told);
    Ok(())
}

fn oxrdfio_format(format: Format) -> RdfFormat {
    match format {
        Format::NTriples => RdfFormat::NTriples,
        Format::NQuads => RdfFormat::NQuads,
        Format::Turtle => RdfFormat::Turtle,
        Format::TriG => RdfFormat::TriG,
        Format::RdfXml => RdfFormat::RdfXml,
        Format::JsonLd => RdfFormat::JsonLd {
            profile: JsonLdProfileSet::empty(),
        },
    }
}

fn syntax_error(
    error: &RdfSyntaxError,
    file: &Arc<str>,
    format: Format,
    line_reached: u64,
) -> SyntaxError {
    let start = error.location().map(|location| location.start);
    // The parser's own words begin with the place, which is told apart here.
    let text = error.to_string();
    let reason = match (&start, text.split_once(": ")) {
        (Some(_), Some((place, reason))) if place.starts_with("Parser error ") => reason.to_owned(),
        _ => text,
    };
    SyntaxError {
        file: Arc::clone(file),
        line: match start {
            Some(start) => Some(start.line + 1),
            None if format == Format::RdfXml => Some(line_reached.max(1)),
            None => None,
        },
        column: start.map(|start| start.column + 1),
        reason,
    }
}

/// An I/O error out of a parser may be about the text after all.
fn io_error(
    error: io::Error,
    file: &Arc<str>,
    format: Format,
    line_reached: &AtomicU64,
) -> Result<SyntaxError, IngestError> {
    let line = (format == Format::RdfXml).then(|| line_reached.load(Relaxed).max(1));
    let from_reader = error.raw_os_error().is_some() || is_decompression_failure(&error);
    match error.kind() {
        _ if from_reader => Err(read_error(error, file)),
        io::ErrorKind::OutOfMemory => Err(IngestError::TooLong {
            file: Arc::clone(file),
            line,
            limit_bytes: MAX_TOKEN_BYTES,
        }),
        io::ErrorKind::InvalidData => Ok(SyntaxError {
            file: Arc::clone(file),
            line,
            column: None,
            reason: error.to_string(),
        }),
        _ => Err(read_error(error, file)),
    }
}

/// Hands on at most one line at a time and counts them, so that the line that a parser has
/// reached is known for one that does not say itself.
struct LineByLine<R> {
    inner: BufReader<R>,
    line: Arc<AtomicU64>,
    at_line_start: bool,
}

impl<R: Read> Read for LineByLine<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let available = self.inner.fill_buf()?;
        let line = match memchr::memchr(b'\n', available) {
            Some(end) => &available[..=end],
            None => available,
        };
        let n = line.len().min(buf.len());
        buf[..n].copy_from_slice(&line[..n]);
        if n > 0 {
            if self.at_line_start {
                self.line.fetch_add(1, Relaxed);
            }
            self.at_line_start = buf[n - 1] == b'\n';
        }
        self.inner.consume(n);
        Ok(n)
    }
}
