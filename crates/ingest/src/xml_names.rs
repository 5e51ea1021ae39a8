//! Which prefixes does the root element of this RDF/XML document declare?
//!
//! The parser says what holds where it has found a triple. A document without any declares prefixes, too. As there, a namespace that is written by an entity is passed over.

use crate::xml_entities::Entities;
use crate::xml_tags::{Attribute, MAX_SEEN_BYTES};

/// What the start tag of the root declares; as many as may be in scope.
#[derive(Default)]
pub(crate) struct RootNames(Vec<(String, String)>);

impl RootNames {
    /// Takes an attribute of the root.
    pub(crate) fn attribute(&mut self, attribute: &Attribute, entities: &Entities) {
        let Attribute { key, value } = attribute;
        if key.len() >= MAX_SEEN_BYTES || value.len() >= MAX_SEEN_BYTES {
            // There may be more of it.
            return;
        }
        let name = match key.strip_prefix(b"xmlns") {
            Some([]) => &[][..],
            Some([b':', name @ ..]) => name,
            _ => return,
        };
        if let (Ok(name), Some(iri)) = (str::from_utf8(name), entities.expand(value)) {
            self.0.push((name.to_owned(), iri));
        }
    }

    /// Names and IRIs, in their order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, iri)| (&**name, &**iri))
    }
}
