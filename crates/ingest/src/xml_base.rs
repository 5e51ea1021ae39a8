//! Against what does an `xml:base` of this RDF/XML document stand?
//!
//! XML Base has them be relative to that of the element around (section 3.1), and the parser takes
//! none that is not absolute. So it gets what they come to.

use oxiri::Iri;

use crate::xml_entities::Entities;
use crate::xml_tags::{Attribute, MAX_SEEN_BYTES};
use jindou_syntax::without_dots;

/// Follows the bases of a document's elements.
#[derive(Default)]
pub(crate) struct Bases {
    /// The document's own.
    document: Option<Iri<String>>,
    /// Those of elements that are open, each with how many were open around it, itself included;
    /// none where the parser alone knows it.
    bound: Vec<(usize, Option<Iri<String>>)>,
    open: usize,
}

impl Bases {
    /// Those of a document that is at an absolute IRI, if it is known.
    pub(crate) fn new(document: Option<&str>) -> Self {
        Self {
            document: document.and_then(|iri| Iri::parse(iri.to_owned()).ok()),
            ..Self::default()
        }
    }

    /// An attribute of the start tag that is being read: what the parser is to read as its value, if
    /// that is another.
    pub(crate) fn attribute(&mut self, attribute: &Attribute, entities: &Entities) -> Option<&str> {
        let Attribute { key, value } = attribute;
        if key != b"xml:base" {
            return None;
        }
        // What is longer was not seen whole; and the parser knows more entities.
        let is_seen = value.len() < MAX_SEEN_BYTES;
        let written = entities.expand(value).filter(|_| is_seen);
        let base = written.as_deref().and_then(|written| self.resolve(written));
        self.bound.push((self.open + 1, base));
        let (_, base) = self.bound.last()?;
        let base = base.as_ref()?.as_str();
        (written.as_deref() != Some(base)).then_some(base)
    }

    /// What a base comes to, if it is known against what it stands.
    fn resolve(&self, written: &str) -> Option<Iri<String>> {
        if let Ok(absolute) = Iri::parse(without_dots(written).into_owned()) {
            return Some(absolute);
        }
        let around = match self.bound.last() {
            Some((_, around)) => around.as_ref(),
            None => self.document.as_ref(),
        };
        around?.resolve(written).ok()
    }

    /// A start tag ends.
    pub(crate) fn begin(&mut self) {
        self.open += 1;
    }

    /// An element ends.
    pub(crate) fn close(&mut self) {
        while self
            .bound
            .last()
            .is_some_and(|(open, _)| *open >= self.open)
        {
            self.bound.pop();
        }
        self.open = self.open.saturating_sub(1);
    }
}
