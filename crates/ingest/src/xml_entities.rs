//! May the entities that this XML document declares be expanded?
//!
//! The parser expands entities without a bound, and ten declarations that each name the one before
//! ten times make ten billion copies of the first. What people write are names for namespaces.

use crate::xml_literal::RDF;
use quick_xml::escape::{resolve_xml_entity, unescape_with};
use std::collections::HashMap;

/// How long the text of an entity may be once the entities in it are expanded.
const MAX_ENTITY_BYTES: usize = 1024;

/// How long one declaration, with what stands around it, may be.
const MAX_DECLARATION_BYTES: usize = 64 << 10;

/// How many entities may be declared.
const MAX_ENTITIES: usize = 10_000;

/// What all expansions of a document may come to, besides [`MAX_GROWTH`] times its size.
const FREE_EXPANDED_BYTES: u64 = 16 << 20;

/// How many times longer a document may become.
const MAX_GROWTH: u64 = 32;

/// No name of an entity worth looking up is longer.
const MAX_NAME_BYTES: usize = 256;

/// Follows declarations and references, and says when they are too much.
#[derive(Default)]
pub(crate) struct Entities {
    /// The expanded length of each entity declared so far.
    lengths: HashMap<Vec<u8>, usize>,
    /// The expanded text of those that are part of the name of the RDF namespace.
    parts: HashMap<String, String>,
    /// What follows the last `<` within the document type declaration.
    declaration: Vec<u8>,
    /// The name that is being read after `&`.
    name: Option<Vec<u8>>,
    read: u64,
    expanded: u64,
}

/// The bound that was broken, in words.
pub(crate) type TooMuch = String;

impl Entities {
    /// A byte within the document type declaration.
    pub(crate) fn declare(&mut self, b: u8) -> Result<(), TooMuch> {
        if b == b'<' {
            self.finish_declaration()?;
            self.declaration.clear();
        } else if self.declaration.len() < MAX_DECLARATION_BYTES {
            self.declaration.push(b);
        } else {
            return Err("a declaration in the document type is too long".to_owned());
        }
        Ok(())
    }

    /// To be called before the parser may see what was declared; any number of times.
    pub(crate) fn finish_declaration(&mut self) -> Result<(), TooMuch> {
        let Some((name, value)) = entity(&self.declaration) else {
            return Ok(());
        };
        let length = self.expanded_length(value);
        if length > MAX_ENTITY_BYTES {
            return Err("an entity is too long once expanded".to_owned());
        }
        if self.lengths.len() == MAX_ENTITIES && !self.lengths.contains_key(name) {
            return Err("too many entities are declared".to_owned());
        }
        if let Ok(name) = str::from_utf8(name) {
            match self.expand(value).filter(|text| RDF.contains(text)) {
                Some(text) => self.parts.insert(name.to_owned(), text),
                None => self.parts.remove(name),
            };
        }
        let name = name.to_vec();
        self.lengths.insert(name, length);
        Ok(())
    }

    /// What a value says, if it refers to no entities but those that the RDF namespace may be
    /// written with.
    pub(crate) fn expand(&self, value: &[u8]) -> Option<String> {
        let value = str::from_utf8(value).ok()?;
        let part = |name: &str| {
            let declared = || self.parts.get(name).map(String::as_str);
            resolve_xml_entity(name).or_else(declared)
        };
        Some(unescape_with(value, part).ok()?.into_owned())
    }

    fn expanded_length(&self, value: &[u8]) -> usize {
        let mut parts = value.split(|&b| b == b'&');
        let first = parts.next().map_or(0, <[u8]>::len);
        let rest = parts.map(|part| {
            let name = part.split(|&b| b == b';').next().unwrap_or_default();
            part.len() + 1 + self.lengths.get(name).copied().unwrap_or(0)
        });
        first + rest.sum::<usize>()
    }

    /// A byte outside the document type declaration.
    pub(crate) fn refer(&mut self, b: u8) -> Result<(), TooMuch> {
        self.read += 1;
        if self.lengths.is_empty() {
            return Ok(());
        }
        match (b, &mut self.name) {
            (b'&', _) => self.name = Some(Vec::new()),
            (b';', Some(name)) => {
                self.expanded += self.lengths.get(name).copied().unwrap_or(0) as u64;
                self.name = None;
                if self.expanded > FREE_EXPANDED_BYTES + MAX_GROWTH * self.read {
                    return Err("the entities of the document expand to too much".to_owned());
                }
            }
            (_, Some(name)) if name.len() < MAX_NAME_BYTES => name.push(b),
            (_, Some(_)) => self.name = None,
            (_, None) => {}
        }
        Ok(())
    }
}

/// The name and value that the parser will read from this, if it is the declaration of an entity.
fn entity(declaration: &[u8]) -> Option<(&[u8], &[u8])> {
    let rest = declaration.strip_prefix(b"!ENTITY")?.trim_ascii_start();
    let rest = rest.strip_prefix(b"%").unwrap_or(rest).trim_ascii_start();
    let end = rest.iter().position(u8::is_ascii_whitespace)?;
    let (name, rest) = rest.split_at(end);
    let rest = rest.trim_ascii_start().strip_prefix(b"\"")?;
    let end = rest.iter().position(|&b| b == b'"')?;
    Some((name, &rest[..end]))
}
