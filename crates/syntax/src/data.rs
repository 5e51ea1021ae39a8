//! Which quads does the block of an INSERT DATA or DELETE DATA say?
//!
//! They are handed on one by one while the text is read: no tree is built, and nothing is kept but
//! what the brackets open at the time need. The block is read once to check it, when the request
//! is parsed, and again when its operation is executed.

use std::mem::size_of;
use std::sync::{Arc, OnceLock};

use oxrdf::vocab::xsd;
use oxrdf::{LiteralRef, NamedNodeRef};
use rustc_hash::FxHashMap;

use crate::error::Error;
use crate::keywords::Keyword;
use crate::lexer::{Kind, Lexer, span};
use crate::memory::{Failure, Memory, Parsed};
use crate::parser::Parser;
use crate::prologue::Declarations;
use crate::terms::{RDF_NIL, RDF_TYPE};
use crate::tree::Span;
use crate::triples::Sink;

/// The declarations of a request, which are known when all of it is read.
type Shared<'t> = Arc<OnceLock<Arc<Declarations<'t>>>>;

/// What a block may have beyond RDF 1.1.
const TRIPLE_TERM: &str = "triple terms in data";
const DIRECTION: &str = "literals with a base direction in data";

/// The data of an INSERT DATA or DELETE DATA, as its text.
#[derive(Clone, Debug)]
pub struct DataBlock<'t> {
    /// The text up to the brace that closes it.
    text: &'t str,
    /// Where its opening brace is.
    start: u32,
    declarations: Shared<'t>,
    visible: u32,
    /// Whether blank nodes are allowed.
    inserts: bool,
    beyond: Option<(&'static str, Span)>,
}

impl PartialEq for DataBlock<'_> {
    fn eq(&self, other: &Self) -> bool {
        (self.start, self.visible, self.inserts) == (other.start, other.visible, other.inserts)
            && self.text == other.text
            && self.declarations == other.declarations
    }
}

/// A quad of a [`DataBlock`]. It holds until the next one is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataQuad<'q> {
    /// An IRI or a blank node.
    pub subject: DataTerm<'q>,
    /// The predicate's IRI.
    pub predicate: &'q str,
    /// Any term.
    pub object: DataTerm<'q>,
    /// The graph's IRI; none for the default graph.
    pub graph: Option<&'q str>,
}

/// A subject or object of a [`DataBlock`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataTerm<'q> {
    /// An IRI.
    Iri(&'q str),
    /// A literal.
    Literal(LiteralRef<'q>),
    /// A blank node by its label: a new node whenever the operation is executed, unlike any of
    /// the store or of another operation; the same label is the same node.
    Label(&'q str),
    /// A blank node without a label, by a number from 0 on that no other has.
    Anonymous(u64),
}

impl<'t> DataBlock<'t> {
    /// Its place, braces included.
    #[must_use]
    pub const fn span(&self) -> Span {
        span(self.start as usize, self.text.len())
    }

    /// What the block has beyond RDF 1.1, and where it is first: triple terms, or literals with a
    /// base direction. Then [`DataBlock::for_each`] ends with [`Error::Unsupported`].
    #[must_use]
    pub const fn beyond(&self) -> Option<(&'static str, Span)> {
        self.beyond
    }

    /// Reads the block, and hands each quad to `sink`, in no particular order, repeats included.
    ///
    /// Costs some hundred nanoseconds for each quad. Holds the terms in front of the brackets open
    /// at the time, and nothing else.
    ///
    /// # Errors
    /// What `sink` returns, which ends it, and [`Error::Unsupported`].
    pub fn for_each<E: From<Error>>(
        &self,
        sink: &mut dyn FnMut(&DataQuad<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        if let Some((what, span)) = self.beyond {
            return Err(Error::Unsupported { span, what }.into());
        }
        let declarations = self.declarations.get().expect("the request was parsed");
        let names = Arc::clone(declarations);
        let start = self.start as usize;
        let mut parser = Parser::at(self.text, start, names, Memory::new(None));
        parser.visible = self.visible;
        let mut failed = None;
        let mut hand_on = |quad: &DataQuad<'_>| match sink(quad) {
            Ok(()) => true,
            Err(error) => {
                failed = Some(error);
                false
            }
        };
        let read = parser.advance().and_then(|()| {
            let mut data = DataSink::new(self.inserts, &mut hand_on, None);
            parser.block(&mut data)
        });
        match (failed, read) {
            (Some(error), _) => Err(error),
            (None, Err(failure)) => Err((*failure).into()),
            (None, Ok(())) => Ok(()),
        }
    }
}

/// What the blocks of a request share.
#[derive(Debug, Default)]
pub(crate) struct Blocks<'t> {
    declarations: Shared<'t>,
    labels: Labels<'t>,
    /// Where the data of the first INSERT DATA is. Its labels are noted when there is a second: of
    /// one alone none are held.
    first: Option<Span>,
}

impl<'t> Blocks<'t> {
    /// Gives the blocks the declarations of the request, all of which are read.
    pub(crate) fn close(self, declarations: &Arc<Declarations<'t>>) {
        let set = self.declarations.set(Arc::clone(declarations));
        assert!(set.is_ok(), "a request ends once");
    }
}

/// The labels of the INSERT DATA operations of a request.
#[derive(Debug, Default)]
struct Labels<'t> {
    seen: FxHashMap<&'t str, u32>,
    block: u32,
}

impl<'t> Labels<'t> {
    /// Notes a label of the present block; false if it is one of an earlier block.
    fn see(&mut self, label: &'t str, memory: &mut Memory<'_>) -> Parsed<bool> {
        if let Some(block) = self.seen.get(label) {
            return Ok(*block == self.block);
        }
        memory.place(&mut self.seen)?;
        self.seen.insert(label, self.block);
        Ok(true)
    }
}

/// What a [`Node`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NodeKind {
    Iri,
    Label,
    Anonymous(u64),
    Simple,
    Language,
    Typed,
    /// A literal of this datatype.
    Known(&'static str),
    /// What no RDF 1.1 store can hold.
    Beyond,
}

/// A term. Its buffers are used again for others.
#[derive(Debug)]
struct Node {
    kind: NodeKind,
    /// The IRI, label or lexical form.
    value: String,
    /// The language or the datatype.
    suffix: String,
}

impl Node {
    fn term(&self) -> DataTerm<'_> {
        let value = self.value.as_str();
        let typed =
            |datatype| LiteralRef::new_typed_literal(value, NamedNodeRef::new_unchecked(datatype));
        DataTerm::Literal(match self.kind {
            NodeKind::Iri => return DataTerm::Iri(value),
            NodeKind::Label => return DataTerm::Label(value),
            NodeKind::Anonymous(number) => return DataTerm::Anonymous(number),
            NodeKind::Simple | NodeKind::Beyond => LiteralRef::new_simple_literal(value),
            NodeKind::Language => {
                LiteralRef::new_language_tagged_literal_unchecked(value, &self.suffix)
            }
            NodeKind::Typed => typed(&self.suffix),
            NodeKind::Known(datatype) => typed(datatype),
        })
    }
}

/// Hands quads on.
struct DataSink<'s, 't> {
    inserts: bool,
    /// Takes a quad; false if it wants no more.
    hand_on: &'s mut dyn FnMut(&DataQuad<'_>) -> bool,
    /// Where labels are looked up, if they are checked.
    labels: Option<&'s mut Labels<'t>>,
    graph: Option<String>,
    /// Terms that are used no more.
    unused: Vec<Node>,
    /// Blank nodes without label so far.
    anonymous: u64,
    beyond: Option<(&'static str, Span)>,
}

impl<'s, 't> DataSink<'s, 't> {
    fn new(
        inserts: bool,
        hand_on: &'s mut dyn FnMut(&DataQuad<'_>) -> bool,
        labels: Option<&'s mut Labels<'t>>,
    ) -> Self {
        Self {
            inserts,
            hand_on,
            labels,
            graph: None,
            unused: Vec::new(),
            anonymous: 0,
            beyond: None,
        }
    }

    /// A term that says nothing yet.
    fn empty(&mut self, parser: &mut Parser<'t, '_>, kind: NodeKind) -> Parsed<Node> {
        match self.unused.pop() {
            Some(mut node) => {
                node.kind = kind;
                node.value.clear();
                node.suffix.clear();
                Ok(node)
            }
            None => {
                // And its place among those that are used no more.
                parser.memory.take(4 * size_of::<Node>())?;
                Ok(Node {
                    kind,
                    value: String::new(),
                    suffix: String::new(),
                })
            }
        }
    }

    /// A term that says this.
    fn saying(&mut self, parser: &mut Parser<'t, '_>, kind: NodeKind, value: &str) -> Parsed<Node> {
        let mut node = self.empty(parser, kind)?;
        parser.memory.push_str(&mut node.value, value)?;
        Ok(node)
    }

    fn no_blanks(&self, parser: &Parser<'t, '_>, span: Span) -> Parsed<()> {
        match self.inserts {
            true => Ok(()),
            false => {
                let message = "blank nodes are not allowed in DELETE DATA";
                let hint = "DELETE WHERE { ... } removes what a pattern finds".to_owned();
                Err(parser.wrong(span, message.to_owned(), Some(hint)))
            }
        }
    }

    fn note(&mut self, what: &'static str, span: Span) {
        self.beyond.get_or_insert((what, span));
    }

    fn iri(&mut self, parser: &mut Parser<'t, '_>) -> Parsed<Node> {
        let mut node = self.empty(parser, NodeKind::Iri)?;
        parser.write_iri_within(&mut node.value)?;
        parser.advance()?;
        Ok(node)
    }

    fn label(&mut self, parser: &mut Parser<'t, '_>) -> Parsed<Node> {
        let token = parser.token;
        self.no_blanks(parser, token.span)?;
        let label = &token.of(parser.text)[2..];
        if let Some(labels) = &mut self.labels
            && !labels.see(label, &mut parser.memory)?
        {
            let message = format!("the blank node _:{label} is used in two INSERT DATA operations");
            let hint = "blank nodes of different operations are different nodes".to_owned();
            return Err(parser.wrong(token.span, message, Some(hint)));
        }
        parser.advance()?;
        self.saying(parser, NodeKind::Label, label)
    }

    fn literal(&mut self, parser: &mut Parser<'t, '_>) -> Parsed<Node> {
        let token = parser.token;
        let known = match token.kind {
            Kind::Integer => Some(xsd::INTEGER),
            Kind::Decimal => Some(xsd::DECIMAL),
            Kind::Double => Some(xsd::DOUBLE),
            Kind::Word => Some(xsd::BOOLEAN),
            _ => None,
        };
        if let Some(known) = known {
            let value = match parser.keyword {
                Keyword::True => "true",
                Keyword::False => "false",
                _ => token.of(parser.text),
            };
            parser.advance()?;
            return self.saying(parser, NodeKind::Known(known.as_str()), value);
        }
        let mut node = self.empty(parser, NodeKind::Simple)?;
        parser.reserve_string(&mut node.value, token)?;
        parser.write_string(token, &mut node.value)?;
        parser.advance()?;
        match parser.token.kind {
            Kind::Language => {
                let span = parser.token.span;
                parser.reserve_string(&mut node.suffix, parser.token)?;
                let direction = parser.write_language(&mut node.suffix)?;
                node.kind = NodeKind::Language;
                if direction.is_some() {
                    node.kind = NodeKind::Beyond;
                    self.note(DIRECTION, span);
                }
            }
            Kind::Datatype => {
                parser.advance()?;
                if !parser.at_iri() {
                    return Err(parser.unexpected("the datatype of a literal", &["an IRI"]));
                }
                parser.write_iri_within(&mut node.suffix)?;
                parser.advance()?;
                node.kind = match node.suffix == xsd::STRING.as_str() {
                    true => NodeKind::Simple,
                    false => NodeKind::Typed,
                };
            }
            _ => (),
        }
        Ok(node)
    }
}

impl<'t> Sink<'t> for DataSink<'_, 't> {
    type Node = Node;
    type Verb = Node;
    const PATHS: bool = false;

    fn term(&mut self, parser: &mut Parser<'t, '_>) -> Parsed<Node> {
        let span = parser.token.span;
        match parser.token.kind {
            Kind::Variable => Err(parser.no_variable(self.inserts)),
            Kind::Label => self.label(parser),
            Kind::Anon => {
                parser.advance()?;
                self.blank(parser, span)
            }
            Kind::Iri | Kind::Name => self.iri(parser),
            _ => self.literal(parser),
        }
    }

    fn nil(&mut self, parser: &mut Parser<'t, '_>, _: Span) -> Parsed<Node> {
        self.saying(parser, NodeKind::Iri, RDF_NIL)
    }

    fn blank(&mut self, parser: &mut Parser<'t, '_>, span: Span) -> Parsed<Node> {
        self.no_blanks(parser, span)?;
        self.anonymous += 1;
        self.empty(parser, NodeKind::Anonymous(self.anonymous - 1))
    }

    fn verb(&mut self, parser: &mut Parser<'t, '_>, _: bool) -> Parsed<Node> {
        if parser.keyword == Keyword::A {
            parser.advance()?;
            return self.saying(parser, NodeKind::Iri, RDF_TYPE);
        }
        match parser.token.kind {
            Kind::Variable => Err(parser.no_variable(self.inserts)),
            _ => self.iri(parser),
        }
    }

    fn known(&mut self, parser: &mut Parser<'t, '_>, _: Span, iri: &'static str) -> Parsed<Node> {
        self.saying(parser, NodeKind::Iri, iri)
    }

    fn is_simple(&self, _: &Node) -> bool {
        true
    }

    fn copy(&mut self, parser: &mut Parser<'t, '_>, node: &Node) -> Parsed<Node> {
        let mut copy = self.saying(parser, node.kind, &node.value)?;
        parser.memory.push_str(&mut copy.suffix, &node.suffix)?;
        Ok(copy)
    }

    fn copy_verb(&mut self, parser: &mut Parser<'t, '_>, verb: &Node) -> Parsed<Node> {
        self.copy(parser, verb)
    }

    fn check_subject(&self, parser: &Parser<'t, '_>, node: &Node, span: Span) -> Parsed<()> {
        let message = match node.kind {
            NodeKind::Iri | NodeKind::Label | NodeKind::Anonymous(_) => return Ok(()),
            NodeKind::Beyond if node.suffix.is_empty() => {
                "a triple term cannot be the subject of data"
            }
            _ => "a literal cannot be the subject of data",
        };
        Err(parser.wrong(span, message.to_owned(), None))
    }

    fn triple_term(
        &mut self,
        parser: &mut Parser<'t, '_>,
        span: Span,
        (subject, verb, object): (Node, Node, Node),
    ) -> Parsed<Node> {
        self.note(TRIPLE_TERM, span);
        self.unused.extend([subject, verb, object]);
        self.empty(parser, NodeKind::Beyond)
    }

    fn triple(
        &mut self,
        _: &mut Parser<'t, '_>,
        (subject, verb, object): (Node, Node, Node),
    ) -> Parsed<()> {
        let quad = DataQuad {
            subject: subject.term(),
            predicate: &verb.value,
            object: object.term(),
            graph: self.graph.as_deref(),
        };
        if !(self.hand_on)(&quad) {
            return Err(Box::new(Error::Interrupted));
        }
        self.unused.extend([subject, verb, object]);
        Ok(())
    }
}

impl<'t> Parser<'t, '_> {
    #[cold]
    fn no_variable(&self, inserts: bool) -> Failure {
        let message = "variables are not allowed in data";
        let hint = match inserts {
            true => "INSERT { ... } WHERE { ... } has variables",
            false => "DELETE WHERE { ... } removes what a pattern finds",
        };
        self.wrong(self.token.span, message.to_owned(), Some(hint.to_owned()))
    }

    /// Writes the IRI that is next, in memory that is asked for.
    fn write_iri_within(&mut self, out: &mut String) -> Parsed<()> {
        let token = self.token;
        let most = self.most_bytes(token);
        self.memory.reserve(out, most)?;
        self.write_iri(token, out)
    }

    fn reserve_string(&mut self, out: &mut String, token: crate::lexer::Token) -> Parsed<()> {
        let most = (token.span.end - token.span.start) as usize;
        self.memory.reserve(out, most)
    }

    /// The block of an INSERT DATA or DELETE DATA, which is next, read to its end.
    pub(crate) fn data(&mut self, blocks: &mut Blocks<'t>, inserts: bool) -> Parsed<DataBlock<'t>> {
        let start = self.token.span.start;
        if inserts {
            if let Some(first) = blocks.first.filter(|_| blocks.labels.block == 1) {
                self.note_labels(first, &mut blocks.labels)?;
            }
            blocks.labels.block += 1;
        }
        let mut ignore = |_: &DataQuad<'_>| true;
        let are_several = inserts && blocks.first.is_some();
        let labels = are_several.then_some(&mut blocks.labels);
        let mut sink = DataSink::new(inserts, &mut ignore, labels);
        self.inserts = inserts;
        self.block(&mut sink)?;
        self.inserts = false;
        if inserts {
            blocks.first.get_or_insert(self.since(start));
        }
        Ok(DataBlock {
            text: &self.text[..self.end as usize],
            start,
            declarations: Arc::clone(&blocks.declarations),
            visible: self.visible,
            inserts,
            beyond: sink.beyond,
        })
    }

    /// Notes the labels of a block that was read.
    fn note_labels(&mut self, block: Span, labels: &mut Labels<'t>) -> Parsed<()> {
        let text = &self.text[..block.end as usize];
        let mut lexer = Lexer::new(text, block.start as usize);
        loop {
            let token = lexer.next();
            self.count_token()?;
            match token.kind {
                Kind::End => return Ok(()),
                Kind::Label => {
                    labels.see(&token.of(text)[2..], &mut self.memory)?;
                }
                _ => (),
            }
        }
    }

    fn block(&mut self, sink: &mut DataSink<'_, 't>) -> Parsed<()> {
        let what = match sink.inserts {
            true => "INSERT DATA",
            false => "DELETE DATA",
        };
        let mut frames = Vec::new();
        self.open(Kind::OpenBrace, what)?;
        loop {
            let has_point = self.data_triples(sink, &mut frames)?;
            if self.keyword == Keyword::Graph {
                self.advance()?;
                if self.is(Kind::Variable) {
                    return Err(self.no_variable(sink.inserts));
                }
                if !self.at_iri() {
                    return Err(self.unexpected("GRAPH", &["an IRI"]));
                }
                let mut graph = sink.graph.take().unwrap_or_default();
                self.write_iri_within(&mut graph)?;
                sink.graph = Some(graph);
                self.advance()?;
                self.open(Kind::OpenBrace, "GRAPH")?;
                let fits: &[&str] = match self.data_triples(sink, &mut frames)? {
                    true => &["triples"],
                    false => &["'.'", "';'", "','"],
                };
                self.close(Kind::CloseBrace, what, fits)?;
                sink.graph = None;
                self.accept(Kind::Dot)?;
                continue;
            }
            let fits: &[&str] = match has_point {
                true => &["triples", "GRAPH"],
                false => &["'.'", "';'", "','", "GRAPH"],
            };
            return self.close(Kind::CloseBrace, what, fits);
        }
    }

    /// Triples with points between them; whether there are none after the last point.
    fn data_triples(
        &mut self,
        sink: &mut DataSink<'_, 't>,
        frames: &mut Vec<crate::triples::Frame<Node, Node>>,
    ) -> Parsed<bool> {
        while self.at_triples() {
            self.triples(sink, frames)?;
            if !self.accept(Kind::Dot)? {
                if self.at_triples() {
                    return Err(self.no_point());
                }
                return Ok(false);
            }
        }
        Ok(true)
    }
}
