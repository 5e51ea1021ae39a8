//! How are the quads of a small graph held until all of them are known?
//!
//! Each term is held once, and a quad is the numbers of its terms. What they take is estimated, with the
//! text that will be written of them: a few long terms may be in many quads.

use hashbrown::HashTable;
use rustc_hash::FxBuildHasher;
use std::hash::BuildHasher as _;

use super::{QuadText, TermText};

/// What a quad takes while it is held and put in order, apart from its terms.
const QUAD_BYTES: usize = 160;
/// The same of a term.
const TERM_BYTES: usize = 48;

/// The number of no term: a quad of the default graph has it.
pub(super) const NO_TERM: u32 = u32::MAX;

/// A term, whose texts lie one after the other.
#[derive(Clone, Copy, Debug)]
struct Held {
    kind: Kind,
    start: usize,
    /// Where the value ends, and where its language or datatype does.
    value_end: usize,
    end: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Kind {
    Iri,
    Blank,
    Plain,
    Tagged,
    Typed,
}

/// Quads by the numbers of their terms: subject, predicate, object, graph.
#[derive(Default)]
pub(super) struct Gathered {
    text: String,
    terms: Vec<Held>,
    numbers: HashTable<u32>,
    pub(super) quads: Vec<[u32; 4]>,
    bytes: usize,
}

impl Gathered {
    /// What is held, and what will be written of it: about.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// How many terms there are.
    pub(super) fn terms(&self) -> usize {
        self.terms.len()
    }

    pub(super) fn push(&mut self, quad: QuadText<'_>) {
        let graph = quad.graph.map_or(NO_TERM, |graph| self.number(graph));
        let terms = [quad.subject, TermText::Iri(quad.predicate), quad.object];
        let [subject, predicate, object] = terms.map(|term| self.number(term));
        // The subject is mostly written once for several quads, and long objects are not.
        self.bytes += QUAD_BYTES + self.len(predicate) + self.len(object);
        self.quads.push([subject, predicate, object, graph]);
    }

    fn len(&self, number: u32) -> usize {
        let held = &self.terms[number as usize];
        held.end - held.start
    }

    fn number(&mut self, term: TermText<'_>) -> u32 {
        let (kind, value, rest) = match term {
            TermText::Iri(iri) => (Kind::Iri, iri, ""),
            TermText::Blank(label) => (Kind::Blank, label, ""),
            TermText::Literal {
                value,
                language: Some(language),
                ..
            } => (Kind::Tagged, value, language),
            TermText::Literal {
                value,
                datatype: Some(datatype),
                ..
            } => (Kind::Typed, value, datatype),
            TermText::Literal { value, .. } => (Kind::Plain, value, ""),
        };
        let hash = FxBuildHasher.hash_one((kind, value, rest));
        let (terms, text) = (&self.terms, &self.text);
        let is_it = |number: &u32| {
            let held = &terms[*number as usize];
            held.kind == kind
                && &text[held.start..held.value_end] == value
                && &text[held.value_end..held.end] == rest
        };
        if let Some(number) = self.numbers.find(hash, is_it) {
            return *number;
        }
        let number = u32::try_from(terms.len()).expect("what is held is bounded");
        let start = self.text.len();
        self.text.push_str(value);
        let value_end = self.text.len();
        self.text.push_str(rest);
        let end = self.text.len();
        self.terms.push(Held {
            kind,
            start,
            value_end,
            end,
        });
        self.bytes += TERM_BYTES + (end - start);
        let hash_of = |number: &u32| {
            let held = &self.terms[*number as usize];
            let value = &self.text[held.start..held.value_end];
            FxBuildHasher.hash_one((held.kind, value, &self.text[held.value_end..held.end]))
        };
        self.numbers.insert_unique(hash, number, hash_of);
        number
    }

    pub(super) fn term(&self, number: u32) -> TermText<'_> {
        let held = &self.terms[number as usize];
        let value = &self.text[held.start..held.value_end];
        let rest = &self.text[held.value_end..held.end];
        match held.kind {
            Kind::Iri => TermText::Iri(value),
            Kind::Blank => TermText::Blank(value),
            Kind::Plain | Kind::Tagged | Kind::Typed => TermText::Literal {
                value,
                language: (held.kind == Kind::Tagged).then_some(rest),
                datatype: (held.kind == Kind::Typed).then_some(rest),
            },
        }
    }

    /// The text of a term that is an IRI.
    pub(super) fn iri(&self, number: u32) -> Option<&str> {
        match self.term(number) {
            TermText::Iri(iri) => Some(iri),
            _ => None,
        }
    }

    pub(super) fn is_blank(&self, number: u32) -> bool {
        number != NO_TERM && self.terms[number as usize].kind == Kind::Blank
    }

    pub(super) fn is_literal(&self, number: u32) -> bool {
        let kind = self.terms[number as usize].kind;
        matches!(kind, Kind::Plain | Kind::Tagged | Kind::Typed)
    }

    /// A quad as text.
    pub(super) fn quad(&self, number: u32) -> QuadText<'_> {
        let [subject, predicate, object, graph] = self.quads[number as usize];
        QuadText {
            subject: self.term(subject),
            predicate: self.iri(predicate).expect("predicates are IRIs"),
            object: self.term(object),
            graph: (graph != NO_TERM).then(|| self.term(graph)),
        }
    }

    /// The quads as text, in the order in which they came.
    pub(super) fn quads(&self) -> impl Iterator<Item = QuadText<'_>> {
        (0..self.quads.len() as u32).map(|number| self.quad(number))
    }
}
