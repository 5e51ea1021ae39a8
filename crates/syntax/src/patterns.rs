//! What are the triples of patterns and templates?

use std::borrow::Cow;
use std::mem::size_of;

use crate::keywords::Keyword;
use crate::lexer::Kind;
use crate::memory::{Failure, Parsed};
use crate::parser::Parser;
use crate::terms::{RDF_NIL, RDF_TYPE};
use crate::tree::{
    BlankNode, Iri, Literal, LiteralKind, Name, Path, Predicate, Span, Term, Triple, TriplePattern,
    TripleTerm,
};
use crate::triples::Sink;

/// What stands between subject and object: [`Predicate`] in patterns, [`Name`] in templates.
pub(crate) trait Verb<'t>: Sized {
    /// What it makes.
    type Triple;
    /// Whether it may be a path.
    const PATHS: bool;
    fn read(parser: &mut Parser<'t, '_>, sees: bool, may_be_path: bool) -> Parsed<Self>;
    fn of(name: Name<'t>) -> Self;
    /// The name, if it is no path.
    fn name(&self) -> Option<&Name<'t>>;
    fn into_name(self) -> Option<Name<'t>>;
    fn copy(&self, parser: &mut Parser<'t, '_>) -> Parsed<Self>;
    fn triple(self, subject: Term<'t>, object: Term<'t>) -> Self::Triple;
}

impl<'t> Verb<'t> for Name<'t> {
    type Triple = Triple<'t>;
    const PATHS: bool = false;

    fn read(parser: &mut Parser<'t, '_>, sees: bool, _: bool) -> Parsed<Self> {
        parser.verb_name(sees)
    }

    fn of(name: Name<'t>) -> Self {
        name
    }

    fn name(&self) -> Option<&Name<'t>> {
        Some(self)
    }

    fn into_name(self) -> Option<Name<'t>> {
        Some(self)
    }

    fn copy(&self, parser: &mut Parser<'t, '_>) -> Parsed<Self> {
        parser.copy_name(self)
    }

    fn triple(self, subject: Term<'t>, object: Term<'t>) -> Triple<'t> {
        Triple {
            subject,
            predicate: self,
            object,
        }
    }
}

impl<'t> Verb<'t> for Predicate<'t> {
    type Triple = TriplePattern<'t>;
    const PATHS: bool = true;

    fn read(parser: &mut Parser<'t, '_>, sees: bool, may_be_path: bool) -> Parsed<Self> {
        if !may_be_path || parser.is(Kind::Variable) {
            return Ok(Self::Name(parser.verb_name(sees)?));
        }
        Ok(match parser.path()? {
            Path::Iri(iri) => Self::Name(Name::Iri(iri)),
            path => Self::Path(path),
        })
    }

    fn of(name: Name<'t>) -> Self {
        Self::Name(name)
    }

    fn name(&self) -> Option<&Name<'t>> {
        match self {
            Self::Name(name) => Some(name),
            Self::Path(_) => None,
        }
    }

    fn into_name(self) -> Option<Name<'t>> {
        match self {
            Self::Name(name) => Some(name),
            Self::Path(_) => None,
        }
    }

    fn copy(&self, parser: &mut Parser<'t, '_>) -> Parsed<Self> {
        Ok(match self {
            Self::Name(name) => Self::Name(parser.copy_name(name)?),
            Self::Path(path) => {
                parser.memory.take(path_bytes(path))?;
                Self::Path(path.clone())
            }
        })
    }

    fn triple(self, subject: Term<'t>, object: Term<'t>) -> TriplePattern<'t> {
        TriplePattern {
            subject,
            predicate: self,
            object,
        }
    }
}

/// Bytes that a copy of a path takes.
fn path_bytes(path: &Path<'_>) -> usize {
    let iri_bytes = |iri: &Iri<'_>| owned_bytes(&iri.value);
    match path {
        Path::Iri(iri) => iri_bytes(iri),
        Path::Inverse(path)
        | Path::ZeroOrOne(path)
        | Path::ZeroOrMore(path)
        | Path::OneOrMore(path) => size_of::<Path<'_>>() + path_bytes(path),
        Path::Sequence(paths) | Path::Alternative(paths) => {
            let inside: usize = paths.iter().map(path_bytes).sum();
            size_of_val(paths.as_slice()) + inside
        }
        Path::Negated { forward, inverse } => forward
            .iter()
            .chain(inverse)
            .map(|iri| size_of::<Iri<'_>>() + iri_bytes(iri))
            .sum(),
    }
}

#[expect(clippy::ptr_arg, reason = "whether it is owned is asked")]
fn owned_bytes(value: &Cow<'_, str>) -> usize {
    match value {
        Cow::Borrowed(_) => 0,
        Cow::Owned(value) => value.len(),
    }
}

/// Bytes that a copy of a term takes.
fn term_bytes(term: &Term<'_>) -> usize {
    match term {
        Term::Variable(_) | Term::Blank(_) => 0,
        Term::Iri(iri) => owned_bytes(&iri.value),
        Term::Literal(literal) => literal_bytes(literal),
        Term::Triple(triple) => {
            let inside: usize = triple.terms.iter().map(term_bytes).sum();
            size_of::<TripleTerm<'_>>() + inside
        }
    }
}

fn literal_bytes(literal: &Literal<'_>) -> usize {
    let kind = match &literal.kind {
        LiteralKind::Language { tag, .. } => owned_bytes(tag),
        LiteralKind::Typed(iri) => owned_bytes(&iri.value),
        _ => 0,
    };
    owned_bytes(&literal.value) + kind
}

/// Which blank nodes may stand in triples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Blanks {
    Allowed,
    /// None, in this place.
    Refused(&'static str),
}

/// Takes the triples of a pattern or a template.
pub(crate) struct TreeSink<'t, V: Verb<'t>> {
    pub(crate) triples: Vec<V::Triple>,
    /// Whether variables are in scope.
    pub(crate) sees: bool,
    pub(crate) blanks: Blanks,
}

impl<'t, V: Verb<'t>> TreeSink<'t, V> {
    pub(crate) const fn new(sees: bool, blanks: Blanks) -> Self {
        Self {
            triples: Vec::new(),
            sees,
            blanks,
        }
    }

    fn check_blank(&self, parser: &Parser<'t, '_>, span: Span) -> Parsed<()> {
        match self.blanks {
            Blanks::Allowed => Ok(()),
            Blanks::Refused(place) => Err(parser.no_blank(span, place)),
        }
    }
}

impl<'t, V: Verb<'t>> Sink<'t> for TreeSink<'t, V> {
    type Node = Term<'t>;
    type Verb = V;
    const PATHS: bool = V::PATHS;

    fn term(&mut self, parser: &mut Parser<'t, '_>) -> Parsed<Term<'t>> {
        let span = parser.token.span;
        Ok(match parser.token.kind {
            Kind::Variable => {
                let variable = parser.variable("triples")?;
                if self.sees {
                    parser.scope.see(variable, &mut parser.memory)?;
                }
                Term::Variable(variable)
            }
            Kind::Label => {
                self.check_blank(parser, span)?;
                let label = &parser.token.of(parser.text)[2..];
                let id = match parser.scope.label(label, span, &mut parser.memory)? {
                    Ok(id) => id,
                    Err(first) => return Err(parser.reused_label(label, first)),
                };
                parser.advance()?;
                Term::Blank(BlankNode {
                    span,
                    id,
                    label: Some(label),
                })
            }
            Kind::Anon => {
                parser.advance()?;
                self.blank(parser, span)?
            }
            Kind::Iri | Kind::Name => Term::Iri(parser.iri("triples")?),
            _ => Term::Literal(parser.literal()?),
        })
    }

    fn nil(&mut self, _: &mut Parser<'t, '_>, span: Span) -> Parsed<Term<'t>> {
        let value = Cow::Borrowed(RDF_NIL);
        Ok(Term::Iri(Iri { span, value }))
    }

    fn blank(&mut self, parser: &mut Parser<'t, '_>, span: Span) -> Parsed<Term<'t>> {
        self.check_blank(parser, span)?;
        Ok(Term::Blank(BlankNode {
            span,
            id: parser.scope.fresh(),
            label: None,
        }))
    }

    fn verb(&mut self, parser: &mut Parser<'t, '_>, may_be_path: bool) -> Parsed<V> {
        V::read(parser, self.sees, may_be_path)
    }

    fn known(&mut self, _: &mut Parser<'t, '_>, span: Span, iri: &'static str) -> Parsed<V> {
        let value = Cow::Borrowed(iri);
        Ok(V::of(Name::Iri(Iri { span, value })))
    }

    fn is_simple(&self, verb: &V) -> bool {
        verb.name().is_some()
    }

    fn copy(&mut self, parser: &mut Parser<'t, '_>, node: &Term<'t>) -> Parsed<Term<'t>> {
        parser.memory.take(term_bytes(node))?;
        Ok(node.clone())
    }

    fn copy_verb(&mut self, parser: &mut Parser<'t, '_>, verb: &V) -> Parsed<V> {
        verb.copy(parser)
    }

    fn check_subject(&self, _: &Parser<'t, '_>, _: &Term<'t>, _: Span) -> Parsed<()> {
        Ok(())
    }

    fn triple_term(
        &mut self,
        parser: &mut Parser<'t, '_>,
        span: Span,
        (subject, verb, object): (Term<'t>, V, Term<'t>),
    ) -> Parsed<Term<'t>> {
        let name = verb
            .into_name()
            .expect("paths are not read in triple terms");
        let predicate = match name {
            Name::Variable(variable) => Term::Variable(variable),
            Name::Iri(iri) => Term::Iri(iri),
        };
        let terms = [subject, predicate, object];
        let term = parser.memory.boxed(TripleTerm { span, terms })?;
        Ok(Term::Triple(term))
    }

    fn triple(
        &mut self,
        parser: &mut Parser<'t, '_>,
        (subject, verb, object): (Term<'t>, V, Term<'t>),
    ) -> Parsed<()> {
        let triple = verb.triple(subject, object);
        parser.memory.push(&mut self.triples, triple)
    }
}

impl<'t> Parser<'t, '_> {
    /// A variable, an IRI or `a`, in the place of a predicate.
    fn verb_name(&mut self, sees: bool) -> Parsed<Name<'t>> {
        if self.keyword == Keyword::A {
            return Ok(Name::Iri(self.type_iri()?));
        }
        let name = self.name("the predicate of a triple")?;
        if let (Name::Variable(variable), true) = (&name, sees) {
            self.scope.see(*variable, &mut self.memory)?;
        }
        Ok(name)
    }

    /// `a`, which is next.
    pub(crate) fn type_iri(&mut self) -> Parsed<Iri<'t>> {
        let span = self.token.span;
        self.advance()?;
        let value = Cow::Borrowed(RDF_TYPE);
        Ok(Iri { span, value })
    }

    pub(crate) fn copy_name(&mut self, name: &Name<'t>) -> Parsed<Name<'t>> {
        if let Name::Iri(iri) = name {
            self.memory.take(owned_bytes(&iri.value))?;
        }
        Ok(name.clone())
    }

    pub(crate) fn no_blank(&self, span: Span, place: &str) -> Failure {
        let message = format!("blank nodes are not allowed in {place}");
        let hint = "a variable of the WHERE clause stands for nodes that are there".to_owned();
        self.wrong(span, message, Some(hint))
    }

    fn reused_label(&self, label: &str, first: Span) -> Failure {
        let message = format!("the blank node _:{label} is used in two graph patterns");
        let place = self.place(first.start);
        let hint = format!("it is at {place}, too; a variable is the same node in both");
        self.wrong(self.token.span, message, Some(hint))
    }

    /// A triple pattern of what a template has.
    pub(crate) fn pattern_of(&mut self, triple: &Triple<'t>) -> Parsed<TriplePattern<'t>> {
        self.memory
            .take(term_bytes(&triple.subject) + term_bytes(&triple.object))?;
        Ok(TriplePattern {
            subject: triple.subject.clone(),
            predicate: Predicate::Name(self.copy_name(&triple.predicate)?),
            object: triple.object.clone(),
        })
    }
}
