//! What is odd about the terms that a lenient load keeps, and what is wrong with what it leaves out?

use jindou_syntax::{is_readable_iri, is_readable_language};
use oxilangtag::LanguageTag;
use oxrdf::vocab::rdf;
use oxrdf::{GraphNameRef, LiteralRef, NamedNodeRef, NamedOrBlankNodeRef, QuadRef, TermRef};

use crate::iri;

/// How many quads a lenient load kept though their standard refuses something in them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Odd {
    /// Quads with an IRI that RFC 3987 refuses, as `<http://e/[x]>`.
    pub iris: u64,
    /// Quads with a language tag that RFC 5646 refuses, as `@zh-classical`.
    pub languages: u64,
    /// Characters written as two escapes, as UTF-16 has them.
    pub escapes: u64,
}

impl Odd {
    /// Whether there is none.
    #[must_use]
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.iris += other.iris;
        self.languages += other.languages;
        self.escapes += other.escapes;
    }
}

/// How many errors a lenient load passed over, by what is wrong.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Faults {
    /// Strings that are not closed, and escapes that there are not.
    pub strings: u64,
    /// IRIs that cannot be read: relative ones without a base, and those with white space or brackets.
    pub iris: u64,
    /// Prefixes that are not declared.
    pub prefixes: u64,
    /// Everything else.
    pub others: u64,
}

impl Faults {
    pub(crate) fn add(&mut self, other: Self) {
        self.strings += other.strings;
        self.iris += other.iris;
        self.prefixes += other.prefixes;
        self.others += other.others;
    }

    pub(crate) fn count(&mut self, fault: Fault) {
        *match fault {
            Fault::String => &mut self.strings,
            Fault::Iri => &mut self.iris,
            Fault::Prefix => &mut self.prefixes,
            Fault::Other => &mut self.others,
        } += 1;
    }
}

/// What is wrong with what a lenient load leaves out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    String,
    Iri,
    Prefix,
    Other,
}

impl Fault {
    /// By the words of a parser, which says it in no other way. Only the first of them are its own: others
    /// may be the document's.
    pub(crate) fn of_parser(words: &str) -> Self {
        let begins = |beginnings: &[&str]| beginnings.iter().any(|begin| words.starts_with(begin));
        if begins(&["The prefix ", "Unknown prefix "]) {
            Self::Prefix
        } else if begins(&[
            "Line jumps are not allowed in string",
            "Unexpected end of line in a string",
            "Unexpected escape",
            "The escape sequence",
            "Escape sequences",
            "UTF-16 surrogate",
            "Surrogate pair",
            "The codepoint",
            "Unexpected byte",
            "Invalid UTF-8",
            "The XML literal is not in valid UTF-8",
        ]) {
            Self::String
        } else if begins(&[
            "No scheme found",
            "Invalid IRI",
            "Invalid character",
            "Invalid host IP",
            "An IRI path",
            "The prefixed name ",
            "escapes in IRIs",
            "The character that are allowed to be escaped in IRIs",
        ]) {
            Self::Iri
        } else {
            Self::Other
        }
    }
}

/// Whether all terms of a quad are such as can be read, though they may be odd, which is counted.
pub(crate) fn reads(quad: QuadRef<'_>, odd: &mut Odd) -> bool {
    let mut found = Found::default();
    let subject = match quad.subject {
        NamedOrBlankNodeRef::NamedNode(node) => found.iri(node),
        NamedOrBlankNodeRef::BlankNode(_) => true,
    };
    let graph = match quad.graph_name {
        GraphNameRef::NamedNode(node) => found.iri(node),
        GraphNameRef::BlankNode(_) | GraphNameRef::DefaultGraph => true,
    };
    let object = match quad.object {
        TermRef::NamedNode(node) => found.iri(node),
        TermRef::BlankNode(_) => true,
        TermRef::Literal(literal) => found.literal(literal),
        // Triple terms, which are refused elsewhere.
        #[allow(unreachable_patterns)]
        _ => true,
    };
    let is_read = subject && graph && object && found.iri(quad.predicate);
    if is_read {
        odd.iris += u64::from(found.iri);
        odd.languages += u64::from(found.language);
    }
    is_read
}

#[derive(Default)]
struct Found {
    iri: bool,
    language: bool,
}

impl Found {
    fn iri(&mut self, node: NamedNodeRef<'_>) -> bool {
        let is_odd = !iri::is_valid(node.as_str());
        self.iri |= is_odd;
        !is_odd || is_readable_iri(node.as_str())
    }

    fn literal(&mut self, literal: LiteralRef<'_>) -> bool {
        match literal.language() {
            Some(language) => {
                let is_odd = LanguageTag::parse(language).is_err();
                self.language |= is_odd;
                !is_odd || is_readable_language(language)
            }
            // A string with a language has one.
            None => literal.datatype() != rdf::LANG_STRING && self.iri(literal.datatype()),
        }
    }
}

/// How many escapes are the first of two that stand for one character as UTF-16 has it.
pub(crate) fn surrogates(text: &[u8]) -> u64 {
    let is_first = |at: &usize| {
        let escape = &text[*at..];
        matches!(
            escape,
            [
                b'\\',
                b'u',
                b'd' | b'D',
                b'8' | b'9' | b'a' | b'b' | b'A' | b'B',
                ..
            ]
        )
    };
    memchr::memchr_iter(b'\\', text).filter(is_first).count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use oxrdf::{Literal, NamedNode, Quad};

    #[test]
    fn a_fault_is_told_by_the_words_of_the_parser_and_not_by_those_of_the_document() {
        for (words, fault) in [
            ("The prefix string: has not been declared", Fault::Prefix),
            (
                "The prefixed name a:b builds IRI x that is invalid",
                Fault::Iri,
            ),
            ("No scheme found in an absolute IRI", Fault::Iri),
            ("Unexpected escape character '\\p'", Fault::String),
            (
                "the prefix of a string is not a valid RDF subject",
                Fault::Other,
            ),
            (
                "\"IRI, prefix, escape\" is not a valid predicate",
                Fault::Other,
            ),
        ] {
            assert_eq!(Fault::of_parser(words), fault, "{words}");
        }
    }

    #[test]
    fn quads_are_read_with_odd_terms_and_not_with_others() {
        let iri = |text: &str| NamedNode::new_unchecked(text);
        let plain = || iri("http://e/a");
        let tagged = |tag: &str| Literal::new_language_tagged_literal_unchecked("x", tag);
        let mut odd = Odd::default();
        let mut read = |quad: Quad| {
            let before = odd;
            let is_read = reads(quad.as_ref(), &mut odd);
            let more = (odd.iris - before.iris, odd.languages - before.languages);
            is_read.then_some(more)
        };
        let quad = |object: oxrdf::Term| Quad::new(plain(), plain(), object, plain());
        assert_eq!(read(quad(plain().into())), Some((0, 0)));
        assert_eq!(read(quad(iri("http://e/[x]").into())), Some((1, 0)));
        assert_eq!(read(quad(iri("http://e/a b").into())), None);
        assert_eq!(read(quad(iri("a").into())), None);
        assert_eq!(read(quad(tagged("zh-classical").into())), Some((0, 1)));
        assert_eq!(read(quad(tagged("en").into())), Some((0, 0)));
        assert_eq!(read(quad(tagged("en us").into())), None);
        let typed = |datatype: &str| Literal::new_typed_literal("x", iri(datatype));
        assert_eq!(read(quad(typed("http://e/%").into())), Some((1, 0)));
        let untagged = typed(rdf::LANG_STRING.as_str());
        assert_eq!(read(quad(untagged.into())), None);
        let strange = Quad::new(iri("a:["), iri("a:["), tagged("a-bcdefghij"), iri("a:["));
        assert_eq!(read(strange), Some((1, 1)));
    }
}
