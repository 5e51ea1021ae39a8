//! Which elements of this RDF/XML document hold an XML literal, and how is that noted?
//!
//! The parser refuses a literal that is empty, drops comments and processing instructions, and
//! does not say which literals of its datatype it made of XML and which were spelt out. So each
//! literal is begun with a mark, and what would be dropped is put between others. The marks hold
//! random bits, new for each document: no text can hold one by design, and none does by chance.

use crate::xml_entities::Entities;
use crate::xml_literal::RDF;
use crate::xml_tags::Attribute;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::mem::take;

/// An empty element with a longer name stays as it is: the name is written once more.
const MAX_NAME_BYTES: usize = 1024;

/// The first of more than 2^15 characters for private use.
const PRIVATE: u32 = 0xf_0000;

/// The texts that the parser gets besides those of the document.
#[derive(Debug)]
pub(crate) struct Marks {
    /// In front of what an element with an XML literal holds: white space, as it is passed over
    /// in an element that must not have the attribute but has it.
    pub(crate) literal: String,
    pub(crate) comment: Pair,
    pub(crate) instruction: Pair,
}

/// What stands around a text.
#[derive(Debug)]
pub(crate) struct Pair {
    pub(crate) begin: String,
    pub(crate) end: String,
}

impl Marks {
    pub(crate) fn new() -> Self {
        let [first, second] = [(); 2].map(|()| RandomState::new().hash_one(0));
        let blank = |bit: u32| match first >> bit & 1 {
            0 => ' ',
            _ => '\t',
        };
        let private = |kind: u32| -> String {
            let bits = (0..4).map(|at| (second >> (16 * at) & 0x7fff) as u32);
            let numbers = bits.chain([0x8000 + kind]);
            numbers
                .filter_map(|n| char::from_u32(PRIVATE + n))
                .collect()
        };
        let pair = |kind| Pair {
            begin: private(kind),
            end: private(kind + 1),
        };
        Self {
            literal: (0..u64::BITS).map(blank).collect(),
            comment: pair(0),
            instruction: pair(2),
        }
    }
}

/// Follows the namespaces of a document's elements.
#[derive(Default)]
pub(crate) struct Literals {
    /// Which prefixes are bound by the elements that are open, the innermost last.
    bindings: Vec<Binding>,
    open: usize,
    /// How many elements are open around what the parser does not read as RDF.
    within: Option<usize>,
    tag: Tag,
}

struct Binding {
    /// How many elements were open within the one that binds it, itself included.
    open: usize,
    prefix: Vec<u8>,
    is_rdf: bool,
}

/// The start tag that is being read.
#[derive(Default)]
struct Tag {
    name: Vec<u8>,
    name_ended: bool,
    bound: Vec<(Vec<u8>, bool)>,
    /// Prefixes and values of its attributes of the name `parseType`.
    parse_types: Vec<(Vec<u8>, String)>,
    /// It has an attribute that an element around an XML literal must not have, which is the
    /// parser's to refuse.
    has_others: bool,
}

impl Literals {
    /// A start tag begins.
    pub(crate) fn begin(&mut self) {
        self.tag = Tag::default();
    }

    /// A byte of a start tag outside of quotes.
    pub(crate) fn outside(&mut self, b: u8) {
        let tag = &mut self.tag;
        tag.name_ended |= b.is_ascii_whitespace() || b == b'/';
        if !tag.name_ended && tag.name.len() <= MAX_NAME_BYTES {
            tag.name.push(b);
        }
    }

    /// An attribute of the start tag.
    pub(crate) fn attribute(&mut self, attribute: &Attribute, entities: &Entities) {
        let Attribute { key, value } = attribute;
        let Some(colon) = key.iter().position(|&b| b == b':') else {
            self.tag.has_others |= key != b"xmlns";
            return;
        };
        let (prefix, local) = (&key[..colon], &key[colon + 1..]);
        if prefix == b"xmlns" {
            let is_rdf = entities.expand(value).is_some_and(|value| value == RDF);
            self.tag.bound.push((local.to_vec(), is_rdf));
        } else if local == b"parseType"
            && let Some(value) = entities.expand(value)
        {
            self.tag.parse_types.push((prefix.to_vec(), value));
        } else {
            self.tag.has_others |= prefix != b"xml" && local != b"ID";
        }
    }

    /// A start tag ends; that of an empty element ends the element. Whether it is one around an
    /// XML literal.
    pub(crate) fn end(&mut self, is_empty: bool) -> bool {
        self.open += 1;
        let open = self.open;
        let bound = take(&mut self.tag.bound).into_iter();
        self.bindings.extend(bound.map(|(prefix, is_rdf)| Binding {
            open,
            prefix,
            is_rdf,
        }));
        let mut is_literal = false;
        if self.within.is_none() {
            let parse_types = take(&mut self.tag.parse_types);
            let own = parse_types.iter().find(|(prefix, _)| self.is_rdf(prefix));
            if let Some((_, value)) = own
                && !matches!(value.as_str(), "Resource" | "Collection" | "Triple")
            {
                self.within = Some(open);
                is_literal = value == "Literal";
            }
        }
        is_literal &= !self.tag.has_others;
        is_literal &= !is_empty || self.tag.name.len() <= MAX_NAME_BYTES;
        if is_empty {
            self.close();
        }
        is_literal
    }

    /// An end tag ends.
    pub(crate) fn close(&mut self) {
        self.open = self.open.saturating_sub(1);
        let open = self.open;
        while self.bindings.last().is_some_and(|it| it.open > open) {
            self.bindings.pop();
        }
        self.within = self.within.filter(|&within| within <= open);
    }

    /// Whether what comes is part of an XML literal.
    pub(crate) fn is_within(&self) -> bool {
        self.within.is_some()
    }

    /// The name of the element whose start tag was read last.
    pub(crate) fn name(&self) -> &[u8] {
        &self.tag.name
    }

    fn is_rdf(&self, prefix: &[u8]) -> bool {
        let bound = self.bindings.iter().rev().find(|it| it.prefix == prefix);
        bound.is_some_and(|bound| bound.is_rdf)
    }
}
