//! How much do the tags of this XML document cost its parser?
//!
//! The parser compares each attribute of an element with those before it, looks for the namespace
//! of a name among all that are in scope, for the language and the base among all elements that
//! are open, and writes all namespaces in scope on each outermost element of an XML literal. So
//! a document of a few MB could take it hours or all memory; what nobody writes is refused.

use std::mem::take;

/// How many attributes an element may have.
const MAX_ATTRIBUTES: usize = 1024;

/// How many elements may be open at once.
const MAX_OPEN_ELEMENTS: usize = 1024;

/// How many declarations of namespaces may be in scope, those that others hide included.
const MAX_NAMESPACES: usize = 512;

/// What the namespaces written into XML literals may come to, besides [`MAX_GROWTH`] times the
/// size of the document.
const FREE_LITERAL_BYTES: u64 = 16 << 20;

/// How many times longer the XML literals of a document may become than it is.
const MAX_GROWTH: u64 = 32;

/// What stands around the prefix and the namespace in a declaration.
const DECLARATION_BYTES: usize = " xmlns:=\"\"".len();

/// So much of a name or value is looked at.
pub(crate) const MAX_SEEN_BYTES: usize = 256;

/// Follows the tags of a document.
#[derive(Default)]
pub(crate) struct Tags {
    /// For each open element how many namespaces it declares, and how long these are.
    open: Vec<(usize, usize)>,
    namespaces: usize,
    namespace_bytes: usize,
    /// So many elements are open around what an XML literal holds.
    literal_within: Option<usize>,
    read: u64,
    written: u64,
    tag: Tag,
}

/// The start tag that is being read.
#[derive(Default)]
struct Tag {
    attributes: usize,
    /// The name of an attribute, or of the element, as far as it is looked at.
    key: Vec<u8>,
    /// Whether the name has ended.
    key_ended: bool,
    value: Vec<u8>,
    value_bytes: usize,
    namespaces: usize,
    namespace_bytes: usize,
    has_literal: bool,
}

/// An attribute, its name and value as far as they are looked at.
pub(crate) struct Attribute {
    pub(crate) key: Vec<u8>,
    /// As it is written.
    pub(crate) value: Vec<u8>,
}

/// Keeps a byte, if it is among the first.
fn push(seen: &mut Vec<u8>, b: u8) {
    if seen.len() < MAX_SEEN_BYTES {
        seen.push(b);
    }
}

impl Tags {
    /// A start tag begins.
    pub(crate) fn begin(&mut self) {
        self.tag = Tag::default();
    }

    /// A byte of a start tag outside of quotes; of the quotes the first.
    pub(crate) fn outside(&mut self, b: u8) {
        let tag = &mut self.tag;
        match b {
            b'=' | b'"' | b'\'' => tag.key_ended = true,
            b if b.is_ascii_whitespace() => tag.key_ended = true,
            b => {
                if take(&mut tag.key_ended) {
                    tag.key.clear();
                }
                push(&mut tag.key, b);
            }
        }
    }

    /// A byte within quotes.
    pub(crate) fn inside(&mut self, b: u8) {
        self.tag.value_bytes += 1;
        push(&mut self.tag.value, b);
    }

    /// The quotes close.
    ///
    /// # Errors
    /// The bound that was broken, in words.
    pub(crate) fn attribute(&mut self) -> Result<Attribute, String> {
        let tag = &mut self.tag;
        tag.attributes += 1;
        if tag.attributes > MAX_ATTRIBUTES {
            return Err(format!(
                "an element with more than {MAX_ATTRIBUTES} attributes"
            ));
        }
        let value_bytes = take(&mut tag.value_bytes);
        let value = take(&mut tag.value);
        let key = take(&mut tag.key);
        if key.starts_with(b"xmlns") {
            tag.namespaces += 1;
            tag.namespace_bytes += key.len() + value_bytes + DECLARATION_BYTES;
            if self.namespaces + tag.namespaces > MAX_NAMESPACES {
                return Err(format!(
                    "more than {MAX_NAMESPACES} declarations of namespaces in scope"
                ));
            }
        }
        let is_parse_type = key.ends_with(b"parseType");
        tag.has_literal |= is_parse_type && !matches!(&value[..], b"Resource" | b"Collection");
        Ok(Attribute { key, value })
    }

    /// A start tag ends; that of an empty element ends the element.
    ///
    /// # Errors
    /// The bound that was broken, in words.
    pub(crate) fn end(&mut self, is_empty: bool) -> Result<(), String> {
        let tag = take(&mut self.tag);
        if self.open.len() == MAX_OPEN_ELEMENTS {
            return Err(format!(
                "more than {MAX_OPEN_ELEMENTS} elements within one another"
            ));
        }
        self.open.push((tag.namespaces, tag.namespace_bytes));
        self.namespaces += tag.namespaces;
        self.namespace_bytes += tag.namespace_bytes;
        match self.literal_within {
            Some(within) if within + 1 == self.open.len() => {
                self.written += self.namespace_bytes as u64;
                if self.written > FREE_LITERAL_BYTES + MAX_GROWTH * self.read {
                    return Err("the namespaces of XML literals come to too much".to_owned());
                }
            }
            None if tag.has_literal => self.literal_within = Some(self.open.len()),
            _ => {}
        }
        if is_empty {
            self.close();
        }
        Ok(())
    }

    /// An end tag ends.
    pub(crate) fn close(&mut self) {
        if let Some((namespaces, bytes)) = self.open.pop() {
            self.namespaces -= namespaces;
            self.namespace_bytes -= bytes;
        }
        let is_within = |within: &usize| *within <= self.open.len();
        self.literal_within = self.literal_within.filter(is_within);
    }

    /// So many bytes of the document were read.
    pub(crate) fn read(&mut self, bytes: usize) {
        self.read += bytes as u64;
    }

    /// How many elements are open.
    pub(crate) fn open(&self) -> usize {
        self.open.len()
    }
}
