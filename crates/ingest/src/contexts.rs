//! Which contexts of JSON-LD are known by the IRIs that documents name them by?
//!
//! Nothing is fetched: those of schema.org and some of the W3C are part of the program, and others are
//! given to it.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use crate::error::IngestError;

/// What documents call the contexts that are known to begin with. Of some the scheme has changed, and
/// schema.org serves its own at several places.
const BUNDLED: [(&[&str], &str); 13] = [
    (
        &[
            "https://schema.org/",
            "https://schema.org",
            "http://schema.org/",
            "http://schema.org",
            "https://schema.org/docs/jsonldcontext.jsonld",
            "https://schema.org/docs/jsonldcontext.json",
        ],
        ssi_contexts::SCHEMA_ORG,
    ),
    (
        &["https://www.w3.org/2018/credentials/v1"],
        ssi_contexts::CREDENTIALS_V1,
    ),
    (
        &["https://www.w3.org/ns/credentials/v2"],
        ssi_contexts::CREDENTIALS_V2,
    ),
    (
        &[
            "http://www.w3.org/ns/odrl.jsonld",
            "https://www.w3.org/ns/odrl.jsonld",
        ],
        ssi_contexts::ODRL,
    ),
    (&["https://www.w3.org/ns/did/v1"], ssi_contexts::DID_V1),
    (&["https://w3id.org/security/v1"], ssi_contexts::SECURITY_V1),
    (&["https://w3id.org/security/v2"], ssi_contexts::SECURITY_V2),
    (
        &["https://w3id.org/security/data-integrity/v1"],
        ssi_contexts::W3ID_DATA_INTEGRITY_V1,
    ),
    (
        &["https://w3id.org/security/data-integrity/v2"],
        ssi_contexts::W3ID_DATA_INTEGRITY_V2,
    ),
    (
        &["https://w3id.org/security/multikey/v1"],
        ssi_contexts::W3ID_MULTIKEY_V1,
    ),
    (
        &["https://w3id.org/security/suites/ed25519-2020/v1"],
        ssi_contexts::W3ID_ED2020_V1,
    ),
    (
        &["https://w3id.org/security/suites/jws-2020/v1"],
        ssi_contexts::W3ID_JWS2020_V1,
    ),
    (
        &["https://w3id.org/citizenship/v1"],
        ssi_contexts::CITIZENSHIP_V1,
    ),
];

/// The contexts that documents of JSON-LD may name by an IRI. A clone has the same.
#[derive(Clone, Default)]
pub struct Contexts {
    /// Those that were given, by their IRIs.
    given: Arc<HashMap<String, Arc<str>>>,
}

impl Contexts {
    /// These and another, which goes before one of the same IRI.
    ///
    /// # Errors
    /// [`IngestError::Context`] for a document that is no object of JSON with a `@context`.
    pub fn with(mut self, iri: &str, document: &str) -> Result<Self, IngestError> {
        context_of(document).map_err(|reason| IngestError::Context {
            iri: iri.to_owned(),
            reason,
        })?;
        Arc::make_mut(&mut self.given).insert(iri.to_owned(), document.into());
        Ok(self)
    }

    /// The document of a context.
    pub(crate) fn document(&self, iri: &str) -> Option<&str> {
        let bundled = || {
            let named = BUNDLED.iter().find(|(names, _)| names.contains(&iri));
            named.map(|(_, document)| *document)
        };
        self.given
            .get(iri)
            .map(|document| &**document)
            .or_else(bundled)
    }

    /// What a context says, as text of JSON.
    pub(crate) fn context(&self, iri: &str) -> Option<String> {
        context_of(self.document(iri)?).ok()
    }
}

/// What a document has under `@context`.
fn context_of(document: &str) -> Result<String, String> {
    let parsed: serde_json::Value =
        serde_json::from_str(document).map_err(|error| error.to_string())?;
    match parsed.get("@context") {
        Some(context) => Ok(context.to_string()),
        None => Err("it is no object with a @context".to_owned()),
    }
}

impl fmt::Debug for Contexts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.given.keys()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_is_known_to_begin_with_can_be_read() {
        let contexts = Contexts::default();
        for iri in BUNDLED.iter().flat_map(|(names, _)| names.iter()) {
            let context = contexts.context(iri).expect(iri);
            assert!(context.len() > 100, "{iri}");
        }
        assert_eq!(contexts.document("https://schema.org/Person"), None);
    }

    #[test]
    fn what_is_given_goes_before_what_is_bundled() {
        let given = "{\"@context\": {\"a\": \"http://e/a\"}}";
        let contexts = Contexts::default()
            .with("https://schema.org/", given)
            .expect("a context");
        assert_eq!(contexts.document("https://schema.org/"), Some(given));
        for wrong in ["", "[]", "{}", "{\"a\": 1}", "1"] {
            assert!(Contexts::default().with("a:b", wrong).is_err(), "{wrong}");
        }
    }
}
