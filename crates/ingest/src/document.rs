//! Which quads does this document in Turtle, TriG, RDF/XML or JSON-LD hold?

use crate::blank::BlankNames;
use crate::contexts::Contexts;
use crate::error::{IngestError, SyntaxError};
use crate::format::Format;
use crate::iri;
use crate::json::{JsonReader, TooDeep};
use crate::load::{QuadSink, Skipped};
use crate::odd::{Fault, Faults, Odd, reads};
use crate::prefixes;
use crate::progress::Progress;
use crate::source::{Guard, Opened, is_decompression_failure, read_error};
use crate::statements;
use crate::turtle::TurtleReader;
use crate::xml::{XmlReader, XmlWatch};
use crate::xml_encoding::Utf8;
use crate::xml_literal::canonicalize;
use oxrdf::{
    BlankNode, BlankNodeRef, GraphName, GraphNameRef, NamedOrBlankNode, Quad, QuadRef, Term,
};
use oxrdfio::{
    JsonLdProfile, JsonLdProfileSet, LoadedDocument, RdfFormat, RdfParseError, RdfParser,
    RdfSyntaxError, TextPosition,
};
use std::collections::BTreeMap;
use std::error::Error;
use std::io::{self, Read};
use std::sync::Arc;

/// How many quads are handed on between two looks at the stop signal.
const QUADS_PER_POLL: u64 = 1024;

/// The longest token the Turtle parser keeps, in bytes.
const MAX_TOKEN_BYTES: usize = 16 << 20;

const CUT_SHORT: &str = "the document ends before its root element is closed";

/// In what is said of a context that is an IRI and not known.
const UNKNOWN_CONTEXT: &str = "this context is not known";

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
    pub(crate) contexts: &'a Contexts,
    pub(crate) progress: &'a Progress,
}

/// What a document came to.
#[derive(Default)]
pub(crate) struct DocumentTally {
    pub(crate) quads: u64,
    pub(crate) skipped: u64,
    pub(crate) described: Vec<Skipped>,
    pub(crate) odd: Odd,
    pub(crate) faults: Faults,
    /// What it declares, by name.
    pub(crate) prefixes: BTreeMap<String, String>,
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
) -> Result<(), IngestError> {
    let watch = (format == Format::RdfXml).then(|| Arc::new(XmlWatch::new()));
    let guard = opened.guard.clone();
    let reader: Box<dyn Read> = match (&watch, format) {
        (Some(watch), _) => {
            let text = Utf8::new(opened.reader);
            let guard = opened.guard;
            Box::new(XmlReader::new(
                text,
                Arc::clone(watch),
                guard,
                context.base_iri,
            ))
        }
        (None, Format::JsonLd) => {
            let steps = opened.json_steps;
            let contexts = context.contexts.clone();
            Box::new(JsonReader::new(
                opened.reader,
                opened.guard,
                steps,
                contexts,
            ))
        }
        (None, _) => match opened.guard {
            Some(guard) => Box::new(TurtleReader::new(opened.reader, guard, context.base_iri)),
            None => opened.reader,
        },
    };
    let place = Place {
        file: context.file,
        watch,
    };
    let mut delivery = Delivery {
        place: &place,
        context,
        guard: guard.as_deref(),
        names: BlankNames::new(context.scope),
        scratch: QuadScratch::default(),
        reported: 0,
        reserved: 0,
        sink,
        tally,
    };
    match format {
        Format::Turtle | Format::TriG if context.lenient => {
            let base = context.base_iri;
            statements::read(format, reader, base, &mut delivery, asked_to_stop)?;
        }
        _ => read_on(format, reader, &mut delivery, asked_to_stop)?,
    }
    delivery.finish();
    Ok(())
}

/// Hands on quads as the parser finds them.
fn read_on<S: QuadSink>(
    format: Format,
    reader: Box<dyn Read>,
    delivery: &mut Delivery<'_, S>,
    asked_to_stop: impl Fn() -> bool,
) -> Result<(), IngestError> {
    let (place, context) = (delivery.place, delivery.context);
    let mut items = parser(format, context)?.for_reader(reader);
    let mut is_begun = false;
    if format == Format::JsonLd {
        let contexts = context.contexts.clone();
        items = items.with_document_loader(move |iri| load_context(&contexts, iri));
    }
    loop {
        let item = items.next();
        if !is_begun || item.is_none() {
            // The names of RDF/XML are those of the element that the parser is in, so the end has none.
            is_begun = true;
            delivery.note_prefixes(items.prefixes());
            if item.is_none()
                && let Some(watch) = place.watch.as_deref()
            {
                delivery.note_prefixes(watch.root_names());
            }
        }
        // After a quad alone the parser can go on.
        let (error, fault, rest_dropped) = match item {
            Some(Ok(quad)) => match delivery.refusal(&quad) {
                None => {
                    delivery.deliver(quad)?;
                    if delivery.is_time_to_look() && asked_to_stop() {
                        return Ok(());
                    }
                    continue;
                }
                Some((reason, fault)) => (place.syntax_error(None, reason), fault, false),
            },
            Some(Err(RdfParseError::Syntax(e))) => {
                let error = place.parser_error(&e);
                let fault = Fault::of_parser(&error.reason);
                (error, fault, true)
            }
            Some(Err(RdfParseError::Io(e))) => {
                let error = place.io_error(e)?;
                let fault = Fault::of_parser(&error.reason);
                (error, fault, true)
            }
            None => match place.watch.as_ref().filter(|watch| !watch.is_closed()) {
                Some(_) => {
                    let error = place.syntax_error(None, CUT_SHORT.to_owned());
                    (error, Fault::Other, true)
                }
                None => return Ok(()),
            },
        };
        if !context.lenient {
            return Err(error.into());
        }
        delivery.leave_out(error, fault, rest_dropped);
        if rest_dropped || asked_to_stop() {
            return Ok(());
        }
    }
}

/// Hands quads to a sink, and counts them.
pub(crate) struct Delivery<'a, S> {
    place: &'a Place<'a>,
    context: &'a DocumentContext<'a>,
    guard: Option<&'a dyn Guard>,
    names: BlankNames,
    scratch: QuadScratch,
    /// Quads that the progress knows of.
    reported: u64,
    /// Bytes that are reserved for the names of blank nodes.
    reserved: u64,
    sink: &'a mut S,
    tally: &'a mut DocumentTally,
}

impl<S: QuadSink> Delivery<'_, S> {
    pub(crate) fn file(&self) -> &Arc<str> {
        self.context.file
    }

    /// Why a quad cannot be handed on. What is odd about one that a lenient load keeps is counted.
    fn refusal(&mut self, quad: &Quad) -> Option<(String, Fault)> {
        if let Some(reason) = unsupported(quad) {
            return Some((reason.to_owned(), Fault::Other));
        }
        let is_read = !self.context.lenient || reads(quad.as_ref(), &mut self.tally.odd);
        let reason = || format!("an IRI or a language tag of {quad} cannot be read");
        (!is_read).then(|| (reason(), Fault::Iri))
    }

    /// Notes what the document declares, without what is odd: it is kept for what is written.
    pub(crate) fn note_prefixes<'p>(&mut self, declared: impl Iterator<Item = (&'p str, &'p str)>) {
        let valid = declared.filter(|(_, iri)| iri::is_valid(iri));
        prefixes::note(&mut self.tally.prefixes, valid);
    }

    pub(crate) fn keep_odd(&mut self, odd: Odd) {
        self.tally.odd.add(odd);
    }

    pub(crate) fn deliver(&mut self, mut quad: Quad) -> Result<(), IngestError> {
        if let Some(watch) = &self.place.watch {
            canonicalize(&mut quad, watch.marks());
        }
        if let Some(guard) = self.guard
            && self.names.growth() > self.reserved
        {
            let growth = self.names.growth();
            guard
                .hold(growth - self.reserved)
                .map_err(|error| read_error(error, self.context.file))?;
            self.reserved = growth;
        }
        let names = &mut self.names;
        let name = |out: &mut String, node: &BlankNode| names.write(out, node);
        let default_graph = self.context.default_graph;
        let quad = self.scratch.outside(&quad, default_graph, name);
        let taken = self.sink.quad(quad);
        taken.map_err(|e| self.place.sink_error(e))?;
        self.tally.quads += 1;
        Ok(())
    }

    /// Whether it is time again to look if somebody wants the load to end.
    pub(crate) fn is_time_to_look(&mut self) -> bool {
        let since = self.tally.quads - self.reported;
        if since < QUADS_PER_POLL {
            return false;
        }
        self.context.progress.add_quads(since);
        self.reported = self.tally.quads;
        true
    }

    pub(crate) fn leave_out(&mut self, error: SyntaxError, fault: Fault, rest_dropped: bool) {
        self.tally.skipped += 1;
        self.tally.faults.count(fault);
        if self.tally.described.len() < self.context.max_described {
            self.tally.described.push(Skipped {
                error,
                rest_dropped,
            });
        }
    }

    fn finish(&self) {
        self.context
            .progress
            .add_quads(self.tally.quads - self.reported);
    }
}

/// The context that a document of JSON-LD names.
fn load_context(
    contexts: &Contexts,
    iri: &str,
) -> Result<LoadedDocument, Box<dyn Error + Send + Sync>> {
    match contexts.document(iri) {
        Some(document) => Ok(LoadedDocument {
            url: iri.to_owned(),
            content: document.as_bytes().to_vec(),
            format: RdfFormat::JsonLd {
                profile: JsonLdProfile::Context.into(),
            },
        }),
        None => Err(UNKNOWN_CONTEXT.into()),
    }
}

fn parser(format: Format, context: &DocumentContext<'_>) -> Result<RdfParser, IngestError> {
    let parser = RdfParser::from_format(match format {
        Format::NTriples => RdfFormat::NTriples,
        Format::NQuads => RdfFormat::NQuads,
        Format::Turtle => RdfFormat::Turtle,
        Format::TriG => RdfFormat::TriG,
        Format::RdfXml => RdfFormat::RdfXml,
        Format::JsonLd => RdfFormat::JsonLd {
            profile: JsonLdProfileSet::empty(),
        },
    });
    let parser = match context.lenient {
        true => parser.lenient(),
        false => parser,
    };
    let Some(base_iri) = context.base_iri else {
        return Ok(parser);
    };
    parser
        .with_base_iri(base_iri)
        .map_err(|e| IngestError::BaseIri {
            file: Arc::clone(context.file),
            base_iri: base_iri.to_owned(),
            reason: e.to_string(),
        })
}

/// What to do about a context that is not known.
fn unknown_context(text: &str) -> String {
    let named = text.split_once("remote context ").map(|(_, rest)| rest);
    let iri = named.and_then(|rest| rest.split_once(": "));
    let iri = iri.map_or("IRI", |(iri, _)| iri);
    format!(
        "the @context <{iri}> is not known, and contexts are not fetched from elsewhere; give it as a \
         file (--context {iri}=FILE), or put the context itself in its place"
    )
}

/// Tells where in which document an error is.
struct Place<'a> {
    file: &'a Arc<str>,
    /// For RDF/XML.
    watch: Option<Arc<XmlWatch>>,
}

impl Place<'_> {
    fn line_reached(&self) -> Option<u64> {
        self.watch.as_ref().map(|watch| watch.line())
    }

    fn syntax_error(&self, start: Option<TextPosition>, reason: String) -> SyntaxError {
        SyntaxError {
            file: Arc::clone(self.file),
            line: start
                .map(|start| start.line + 1)
                .or_else(|| self.line_reached()),
            column: start.map(|start| start.column + 1),
            reason,
        }
    }

    fn parser_error(&self, error: &RdfSyntaxError) -> SyntaxError {
        let start = error.location().map(|location| location.start);
        // The parser's own words begin with the place, which is told apart here.
        let text = error.to_string();
        let reason = match (&start, text.split_once(": ")) {
            _ if text.contains(UNKNOWN_CONTEXT) => unknown_context(&text),
            (Some(_), Some((place, reason))) if place.starts_with("Parser error ") => {
                reason.to_owned()
            }
            _ => text,
        };
        self.syntax_error(start, reason)
    }

    /// An I/O error out of a parser may be about the text after all.
    fn io_error(&self, error: io::Error) -> Result<SyntaxError, IngestError> {
        if error.raw_os_error().is_some() || is_decompression_failure(&error) {
            return Err(read_error(error, self.file));
        }
        match error.kind() {
            io::ErrorKind::OutOfMemory => Err(IngestError::TooLong {
                file: Arc::clone(self.file),
                line: self.line_reached(),
                limit_bytes: MAX_TOKEN_BYTES,
            }),
            io::ErrorKind::InvalidData if error.get_ref().is_some_and(|e| e.is::<TooDeep>()) => {
                let refused = error.get_ref().and_then(|e| e.downcast_ref::<TooDeep>());
                let start = refused.map(|refused| TextPosition {
                    line: refused.line - 1,
                    column: refused.column - 1,
                    offset: 0,
                });
                Ok(self.syntax_error(start, error.to_string()))
            }
            io::ErrorKind::InvalidData => Ok(self.syntax_error(None, error.to_string())),
            _ => Err(read_error(error, self.file)),
        }
    }

    fn sink_error(&self, error: impl std::error::Error + Send + Sync + 'static) -> IngestError {
        IngestError::Sink {
            file: Arc::clone(self.file),
            source: Box::new(error),
        }
    }
}
