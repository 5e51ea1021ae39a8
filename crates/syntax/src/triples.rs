//! Which triples do the abbreviations of a block of triples stand for?
//!
//! One machine with a stack of its own reads collections, property lists of blank nodes, reified
//! triples, triple terms and annotations, and hands each triple to a sink: of a pattern, of a
//! template, or of data. Between two triples it holds what the brackets open at the time need.

use crate::group::with_hint;
use crate::keywords::Keyword;
use crate::lexer::Kind;
use crate::memory::Parsed;
use crate::parser::Parser;
use crate::terms::{RDF_FIRST, RDF_REIFIES, RDF_REST};
use crate::tree::Span;

/// What makes terms of the text, and takes the triples.
pub(crate) trait Sink<'t> {
    /// A subject or an object.
    type Node;
    /// A predicate.
    type Verb;
    /// Whether predicates may be paths.
    const PATHS: bool;

    /// Reads a term without brackets, or an empty pair of square ones, which is next.
    fn term(&mut self, parser: &mut Parser<'t, '_>) -> Parsed<Self::Node>;
    /// `rdf:nil`, for the brackets at a place.
    fn nil(&mut self, parser: &mut Parser<'t, '_>, span: Span) -> Parsed<Self::Node>;
    /// A new blank node, for what is at a place.
    fn blank(&mut self, parser: &mut Parser<'t, '_>, span: Span) -> Parsed<Self::Node>;
    /// Reads a predicate, of which only those that [`Parser::at_verb`] finds are next.
    fn verb(&mut self, parser: &mut Parser<'t, '_>, may_be_path: bool) -> Parsed<Self::Verb>;
    /// A predicate that the text does not have.
    fn known(
        &mut self,
        parser: &mut Parser<'t, '_>,
        span: Span,
        iri: &'static str,
    ) -> Parsed<Self::Verb>;
    /// Whether a predicate is no path.
    fn is_simple(&self, verb: &Self::Verb) -> bool;
    /// A copy of a node.
    fn copy(&mut self, parser: &mut Parser<'t, '_>, node: &Self::Node) -> Parsed<Self::Node>;
    /// A copy of a predicate.
    fn copy_verb(&mut self, parser: &mut Parser<'t, '_>, verb: &Self::Verb) -> Parsed<Self::Verb>;
    /// Refuses what cannot be a subject; by the grammar, all may be.
    fn check_subject(&self, parser: &Parser<'t, '_>, node: &Self::Node, span: Span) -> Parsed<()>;
    /// A triple term.
    fn triple_term(
        &mut self,
        parser: &mut Parser<'t, '_>,
        span: Span,
        parts: (Self::Node, Self::Verb, Self::Node),
    ) -> Parsed<Self::Node>;
    /// Takes a triple.
    fn triple(
        &mut self,
        parser: &mut Parser<'t, '_>,
        triple: (Self::Node, Self::Verb, Self::Node),
    ) -> Parsed<()>;
}

/// What a frame is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FrameKind {
    /// The triples of one subject.
    Subject,
    /// Between `[` and `]`.
    Properties,
    /// Between `{|` and `|}`.
    Annotation,
    /// Between `(` and `)`.
    List,
    /// Between `<<` and `>>`.
    Reified,
    /// Between `<<(` and `)>>`.
    Triple,
}

/// What is open.
#[derive(Debug)]
pub(crate) struct Frame<N, V> {
    kind: FrameKind,
    /// Where it begins.
    start: u32,
    /// The subject; of a list, its present node.
    subject: Option<N>,
    /// Of a list, its first node.
    first: Option<N>,
    verb: Option<V>,
    /// The last object, where an annotation is about its triple.
    object: Option<N>,
    /// The reifier that the next annotation is about.
    reifier: Option<N>,
}

impl<N, V> Frame<N, V> {
    const fn new(kind: FrameKind, start: u32, subject: Option<N>) -> Self {
        Self {
            kind,
            start,
            subject,
            first: None,
            verb: None,
            object: None,
            reifier: None,
        }
    }
}

type Frames<'t, S> = Vec<Frame<<S as Sink<'t>>::Node, <S as Sink<'t>>::Verb>>;

/// What has to come next.
enum Next<N> {
    /// A subject, an object or an item.
    Node,
    Verb,
    /// Something is to be done with a node that begins there; whether it may do without
    /// properties where it is a subject.
    Deliver(N, u32, bool),
    AfterObject,
    End,
}

const OPEN: &str = "a statement is being read";
const PATH_OF_VARIABLES: &str = "property paths are made of IRIs, not of variables";
const PATH_ELSEWHERE: &str = "property paths stand in the triples of patterns only, as in WHERE";

impl<'t> Parser<'t, '_> {
    /// Whether a predicate is next.
    pub(crate) fn at_verb(&self, may_be_path: bool) -> bool {
        match self.token.kind {
            Kind::Variable | Kind::Iri | Kind::Name => true,
            Kind::Word => self.keyword == Keyword::A,
            Kind::Caret | Kind::Not | Kind::OpenParen => may_be_path,
            _ => false,
        }
    }

    /// Whether triples begin here.
    pub(crate) fn at_triples(&self) -> bool {
        match self.token.kind {
            Kind::Variable
            | Kind::Label
            | Kind::Anon
            | Kind::Nil
            | Kind::OpenBracket
            | Kind::OpenParen
            | Kind::OpenReified
            | Kind::OpenTriple => true,
            _ => self.at_iri() || self.at_literal(),
        }
    }

    /// Reads the triples of one subject, and those nested in them.
    pub(crate) fn triples<S: Sink<'t>>(
        &mut self,
        sink: &mut S,
        frames: &mut Frames<'t, S>,
    ) -> Parsed<()> {
        let mut next = self.plain(sink, frames)?;
        loop {
            next = match next {
                Next::Node => self.node(sink, frames)?,
                Next::Verb => self.verb(sink, frames)?,
                Next::Deliver(node, start, may_be_alone) => match frames.last() {
                    None => self.subject(sink, frames, (node, start, may_be_alone))?,
                    Some(frame) => match frame.kind {
                        FrameKind::List => self.item(sink, frames, node)?,
                        FrameKind::Reified | FrameKind::Triple => {
                            self.part(sink, frames, (node, start))?
                        }
                        _ => self.object(sink, frames, node)?,
                    },
                },
                Next::AfterObject => self.after_object(sink, frames)?,
                Next::End => return Ok(()),
            };
        }
    }

    /// Reads a triple of a subject that is no bracket as far as it is one of three terms: most are,
    /// and need no frame.
    fn plain<S: Sink<'t>>(
        &mut self,
        sink: &mut S,
        frames: &mut Frames<'t, S>,
    ) -> Parsed<Next<S::Node>> {
        let is_plain = |kind| matches!(kind, Kind::Variable | Kind::Iri | Kind::Name);
        if !is_plain(self.token.kind) {
            return Ok(Next::Node);
        }
        let start = self.token.span.start;
        let subject = sink.term(self)?;
        if !self.at_verb(S::PATHS) {
            return Ok(Next::Deliver(subject, start, false));
        }
        sink.check_subject(self, &subject, self.since(start))?;
        let verb = sink.verb(self, S::PATHS)?;
        let begin = self.token.span.start;
        let next = match is_plain(self.token.kind) {
            false => Next::Node,
            true => {
                let object = sink.term(self)?;
                let has_more = matches!(
                    self.token.kind,
                    Kind::Comma | Kind::Semicolon | Kind::Tilde | Kind::OpenAnnotation
                );
                if !has_more {
                    sink.triple(self, (subject, verb, object))?;
                    return Ok(Next::End);
                }
                Next::Deliver(object, begin, false)
            }
        };
        let mut frame = Frame::new(FrameKind::Subject, start, Some(subject));
        frame.verb = Some(verb);
        self.memory.push(frames, frame)?;
        Ok(next)
    }

    fn node<S: Sink<'t>>(
        &mut self,
        sink: &mut S,
        frames: &mut Frames<'t, S>,
    ) -> Parsed<Next<S::Node>> {
        let start = self.token.span.start;
        let around = frames.last().map(|frame| frame.kind);
        let in_triple = matches!(around, Some(FrameKind::Reified | FrameKind::Triple));
        let kind = match self.token.kind {
            Kind::OpenBracket if !in_triple => FrameKind::Properties,
            Kind::OpenParen if !in_triple => FrameKind::List,
            Kind::OpenReified if around != Some(FrameKind::Triple) => FrameKind::Reified,
            Kind::OpenTriple => FrameKind::Triple,
            Kind::Nil if !in_triple => {
                let span = self.token.span;
                self.advance()?;
                return Ok(Next::Deliver(sink.nil(self, span)?, start, false));
            }
            Kind::Variable | Kind::Label | Kind::Anon => {
                return Ok(Next::Deliver(sink.term(self)?, start, false));
            }
            _ if self.at_iri() || self.at_literal() => {
                return Ok(Next::Deliver(sink.term(self)?, start, false));
            }
            _ => {
                let failure = self.no_node(frames.last());
                let verb = frames.last().and_then(|frame| frame.verb.as_ref());
                let is_path = matches!(
                    self.token.kind,
                    Kind::Slash | Kind::Pipe | Kind::Star | Kind::Plus | Kind::Question
                );
                return Err(match verb.filter(|_| is_path) {
                    Some(verb) if S::PATHS && !in_triple => match sink.is_simple(verb) {
                        // Of an IRI it would be a path.
                        true => with_hint(failure, PATH_OF_VARIABLES),
                        false => failure,
                    },
                    Some(_) => with_hint(failure, PATH_ELSEWHERE),
                    None => failure,
                });
            }
        };
        let span = self.token.span;
        let bracket = self.token.kind;
        self.open(bracket, "triples")?;
        let subject = match kind {
            FrameKind::Properties => Some(sink.blank(self, span)?),
            _ => None,
        };
        self.memory.push(frames, Frame::new(kind, start, subject))?;
        Ok(match kind {
            FrameKind::Properties => Next::Verb,
            _ => Next::Node,
        })
    }

    fn no_node<N, V>(&self, frame: Option<&Frame<N, V>>) -> crate::memory::Failure {
        let term = "a term (variable, IRI, literal or blank node)";
        match frame.map(|frame| (frame.kind, frame.subject.is_some())) {
            None => self.unexpected("triples", &["a subject"]),
            Some((FrameKind::List, _)) => self.unexpected("a list", &[term, "')'"]),
            Some((FrameKind::Reified, false)) => {
                self.unexpected("the subject of a reified triple", &[term])
            }
            Some((FrameKind::Reified, true)) => {
                self.unexpected("the object of a reified triple", &[term])
            }
            Some((FrameKind::Triple, false)) => {
                self.unexpected("the subject of a triple term", &[term])
            }
            Some((FrameKind::Triple, true)) => {
                self.unexpected("the object of a triple term", &[term])
            }
            Some(_) => self.unexpected("the object of a triple", &[term]),
        }
    }

    fn verb<S: Sink<'t>>(
        &mut self,
        sink: &mut S,
        frames: &mut Frames<'t, S>,
    ) -> Parsed<Next<S::Node>> {
        let frame = frames.last_mut().expect(OPEN);
        let in_triple = matches!(frame.kind, FrameKind::Reified | FrameKind::Triple);
        let may_be_path = S::PATHS && !in_triple;
        if !self.at_verb(may_be_path) {
            let fits: &[&str] = match may_be_path {
                true => &["a variable", "an IRI", "a property path"],
                false => &["a variable", "an IRI"],
            };
            return Err(self.unexpected("the predicate of a triple", fits));
        }
        frame.verb = Some(sink.verb(self, may_be_path)?);
        Ok(Next::Node)
    }

    fn subject<S: Sink<'t>>(
        &mut self,
        sink: &mut S,
        frames: &mut Frames<'t, S>,
        (node, start, may_be_alone): (S::Node, u32, bool),
    ) -> Parsed<Next<S::Node>> {
        if may_be_alone && !self.at_verb(S::PATHS) {
            return Ok(Next::End);
        }
        let span = self.since(start);
        sink.check_subject(self, &node, span)?;
        let frame = Frame::new(FrameKind::Subject, start, Some(node));
        self.memory.push(frames, frame)?;
        Ok(Next::Verb)
    }

    fn object<S: Sink<'t>>(
        &mut self,
        sink: &mut S,
        frames: &mut Frames<'t, S>,
        node: S::Node,
    ) -> Parsed<Next<S::Node>> {
        let frame = frames.last_mut().expect(OPEN);
        let subject = frame.subject.as_ref().expect(OPEN);
        let verb = frame.verb.as_ref().expect(OPEN);
        if matches!(self.token.kind, Kind::Tilde | Kind::OpenAnnotation) {
            if !sink.is_simple(verb) {
                let message = "a property path is no triple that can be annotated";
                return Err(self.wrong(self.token.span, message.to_owned(), None));
            }
            let triple = (
                sink.copy(self, subject)?,
                sink.copy_verb(self, verb)?,
                sink.copy(self, &node)?,
            );
            frame.object = Some(node);
            sink.triple(self, triple)?;
            return Ok(Next::AfterObject);
        }
        // What is needed no more is not copied.
        let has_more = matches!(self.token.kind, Kind::Comma | Kind::Semicolon);
        let subject = match frame.kind == FrameKind::Subject && !has_more {
            true => frame.subject.take().expect(OPEN),
            false => sink.copy(self, subject)?,
        };
        let verb = match self.token.kind {
            Kind::Comma => sink.copy_verb(self, verb)?,
            _ => frame.verb.take().expect(OPEN),
        };
        sink.triple(self, (subject, verb, node))?;
        Ok(Next::AfterObject)
    }

    fn after_object<S: Sink<'t>>(
        &mut self,
        sink: &mut S,
        frames: &mut Frames<'t, S>,
    ) -> Parsed<Next<S::Node>> {
        let frame = frames.last_mut().expect(OPEN);
        match self.token.kind {
            Kind::Tilde if frame.object.is_some() => {
                let span = self.token.span;
                self.advance()?;
                let has_name = matches!(self.token.kind, Kind::Variable | Kind::Label | Kind::Anon)
                    || self.at_iri();
                let reifier = match has_name {
                    true => sink.term(self)?,
                    false => sink.blank(self, span)?,
                };
                self.reify(sink, frame, span, &reifier)?;
                frame.reifier = Some(reifier);
                return Ok(Next::AfterObject);
            }
            Kind::OpenAnnotation if frame.object.is_some() => {
                let span = self.token.span;
                let reifier = match frame.reifier.take() {
                    Some(reifier) => reifier,
                    None => {
                        let reifier = sink.blank(self, span)?;
                        self.reify(sink, frame, span, &reifier)?;
                        reifier
                    }
                };
                self.open(Kind::OpenAnnotation, "an annotation")?;
                let frame = Frame::new(FrameKind::Annotation, span.start, Some(reifier));
                self.memory.push(frames, frame)?;
                return Ok(Next::Verb);
            }
            _ => (),
        }
        (frame.object, frame.reifier) = (None, None);
        if self.accept(Kind::Comma)? {
            return Ok(Next::Node);
        }
        if self.is(Kind::Semicolon) {
            while self.accept(Kind::Semicolon)? {}
            if self.at_verb(S::PATHS) {
                return Ok(Next::Verb);
            }
        }
        let others = ["','", "';'"];
        match frame.kind {
            FrameKind::Properties => {
                let what = "the properties of a blank node";
                self.close(Kind::CloseBracket, what, &others)?;
                let frame = frames.pop().expect(OPEN);
                Ok(Next::Deliver(frame.subject.expect(OPEN), frame.start, true))
            }
            FrameKind::Annotation => {
                self.close(Kind::CloseAnnotation, "an annotation", &others)?;
                frames.pop();
                Ok(Next::AfterObject)
            }
            _ => {
                frames.pop();
                Ok(Next::End)
            }
        }
    }

    /// Says that a reifier stands for the triple of the last object.
    fn reify<S: Sink<'t>>(
        &mut self,
        sink: &mut S,
        frame: &Frame<S::Node, S::Verb>,
        span: Span,
        reifier: &S::Node,
    ) -> Parsed<()> {
        let parts = (
            sink.copy(self, frame.subject.as_ref().expect(OPEN))?,
            sink.copy_verb(self, frame.verb.as_ref().expect(OPEN))?,
            sink.copy(self, frame.object.as_ref().expect(OPEN))?,
        );
        let term = sink.triple_term(self, span, parts)?;
        let reifies = sink.known(self, span, RDF_REIFIES)?;
        let reifier = sink.copy(self, reifier)?;
        sink.triple(self, (reifier, reifies, term))
    }

    /// An item of a list.
    fn item<S: Sink<'t>>(
        &mut self,
        sink: &mut S,
        frames: &mut Frames<'t, S>,
        node: S::Node,
    ) -> Parsed<Next<S::Node>> {
        let frame = frames.last_mut().expect(OPEN);
        let span = Span {
            start: frame.start,
            end: frame.start + 1,
        };
        let present = sink.blank(self, span)?;
        match frame.subject.take() {
            None => frame.first = Some(sink.copy(self, &present)?),
            Some(before) => {
                let rest = sink.known(self, span, RDF_REST)?;
                let present = sink.copy(self, &present)?;
                sink.triple(self, (before, rest, present))?;
            }
        }
        let first = sink.known(self, span, RDF_FIRST)?;
        let subject = sink.copy(self, &present)?;
        sink.triple(self, (subject, first, node))?;
        if !self.is(Kind::CloseParen) {
            frame.subject = Some(present);
            return Ok(Next::Node);
        }
        self.close(Kind::CloseParen, "a list", &[])?;
        let rest = sink.known(self, span, RDF_REST)?;
        let nil = sink.nil(self, span)?;
        sink.triple(self, (present, rest, nil))?;
        let frame = frames.pop().expect(OPEN);
        Ok(Next::Deliver(frame.first.expect(OPEN), frame.start, true))
    }

    /// The subject or the object of a reified triple or a triple term.
    fn part<S: Sink<'t>>(
        &mut self,
        sink: &mut S,
        frames: &mut Frames<'t, S>,
        (node, start): (S::Node, u32),
    ) -> Parsed<Next<S::Node>> {
        let frame = frames.last_mut().expect(OPEN);
        if frame.subject.is_none() {
            let span = self.since(start);
            sink.check_subject(self, &node, span)?;
            frame.subject = Some(node);
            return Ok(Next::Verb);
        }
        let mut frame = frames.pop().expect(OPEN);
        let (subject, verb) = (frame.subject.take(), frame.verb.take());
        let parts = (subject.expect(OPEN), verb.expect(OPEN), node);
        if frame.kind == FrameKind::Triple {
            self.close(Kind::CloseTriple, "a triple term", &[])?;
            let span = self.since(frame.start);
            let term = sink.triple_term(self, span, parts)?;
            return Ok(Next::Deliver(term, frame.start, false));
        }
        let mut span = Span {
            start: frame.start,
            end: frame.start + 2,
        };
        let mut reifier = None;
        if self.is(Kind::Tilde) {
            span = self.token.span;
            self.advance()?;
            let has_name = matches!(self.token.kind, Kind::Variable | Kind::Label | Kind::Anon)
                || self.at_iri();
            if has_name {
                reifier = Some(sink.term(self)?);
            }
        }
        self.close(Kind::CloseReified, "a reified triple", &["'~'"])?;
        let reifier = match reifier {
            Some(reifier) => reifier,
            None => sink.blank(self, span)?,
        };
        let whole = self.since(frame.start);
        let term = sink.triple_term(self, whole, parts)?;
        let reifies = sink.known(self, whole, RDF_REIFIES)?;
        let subject = sink.copy(self, &reifier)?;
        sink.triple(self, (subject, reifies, term))?;
        Ok(Next::Deliver(reifier, frame.start, true))
    }
}
