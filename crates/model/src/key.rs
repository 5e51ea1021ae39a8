//! What bytes does the dictionary keep for a term?
//!
//! - an IRI: its characters;
//! - a blank node: `_:` and its label (no IRI begins so);
//! - a literal: its lexical form, a zero byte, and what tells its datatype: nothing for
//!   `xsd:string`, `@` and the language tag, or `^` and the datatype's IRI. The lexical form
//!   comes first, so that keys in byte order are in the order of their strings, and the last
//!   zero byte is the border, as neither tags nor IRIs hold one.

use oxrdf::vocab::{rdf, xsd};
use oxrdf::{BlankNode, Literal, LiteralRef, NamedNode, NamedNodeRef, Term, TermRef};

/// The border between a literal's lexical form and its type.
const BORDER: u8 = 0;

/// Appends the key of a literal to `key`.
pub fn push_literal(key: &mut Vec<u8>, literal: LiteralRef<'_>) {
    push_literal_parts(key, literal.value(), literal.language(), literal.datatype());
}

/// Appends the key of the literal with this lexical form, language tag and datatype.
pub fn push_literal_parts(
    key: &mut Vec<u8>,
    value: &str,
    language: Option<&str>,
    datatype: NamedNodeRef<'_>,
) {
    key.extend_from_slice(value.as_bytes());
    key.push(BORDER);
    if let Some(language) = language {
        key.push(b'@');
        key.extend_from_slice(language.as_bytes());
    } else if datatype != xsd::STRING {
        key.push(b'^');
        key.extend_from_slice(datatype.as_str().as_bytes());
    }
}

/// Appends the key of any term to `key` and tells whether it is a literal's.
///
/// # Errors
/// Nothing here fails; a triple term (RDF 1.2) cannot be built without that feature of `oxrdf`.
pub fn push_term(key: &mut Vec<u8>, term: TermRef<'_>) -> bool {
    match term {
        TermRef::NamedNode(node) => {
            key.extend_from_slice(node.as_str().as_bytes());
            false
        }
        TermRef::BlankNode(node) => {
            key.extend_from_slice(b"_:");
            key.extend_from_slice(node.as_str().as_bytes());
            false
        }
        TermRef::Literal(literal) => {
            push_literal(key, literal);
            true
        }
    }
}

/// The parts of a literal's key: lexical form, language tag, datatype.
///
/// `None` if the bytes are not a literal's key.
#[must_use]
pub fn literal_parts(key: &[u8]) -> Option<(&str, Option<&str>, NamedNodeRef<'_>)> {
    let border = key.iter().rposition(|byte| *byte == BORDER)?;
    let value = std::str::from_utf8(&key[..border]).ok()?;
    let suffix = std::str::from_utf8(&key[border + 1..]).ok()?;
    match suffix.as_bytes().first() {
        None => Some((value, None, xsd::STRING)),
        Some(b'@') => Some((value, Some(&suffix[1..]), rdf::LANG_STRING)),
        Some(b'^') => Some((value, None, NamedNodeRef::new_unchecked(&suffix[1..]))),
        Some(_) => None,
    }
}

/// The term of a literal's key; `None` if the bytes are not one.
#[must_use]
pub fn literal(key: &[u8]) -> Option<Literal> {
    let (value, language, datatype) = literal_parts(key)?;
    Some(match language {
        Some(tag) => Literal::new_language_tagged_literal_unchecked(value, tag),
        None => Literal::new_typed_literal(value, datatype),
    })
}

/// The term of a vertex's key; `None` if the bytes are not UTF-8.
#[must_use]
pub fn vertex(key: &[u8]) -> Option<Term> {
    let text = std::str::from_utf8(key).ok()?;
    Some(match text.strip_prefix("_:") {
        Some(label) => BlankNode::new_unchecked(label).into(),
        None => NamedNode::new_unchecked(text).into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literal_keys_give_the_literal_back() {
        for term in [
            Literal::new_simple_literal(""),
            Literal::new_simple_literal("a\0b"),
            Literal::new_language_tagged_literal_unchecked("chat", "fr-be"),
            Literal::new_typed_literal("01", xsd::INTEGER),
            Literal::new_typed_literal("\0\0", NamedNodeRef::new_unchecked("http://example.org/t")),
        ] {
            let mut key = Vec::new();
            push_literal(&mut key, term.as_ref());
            assert_eq!(literal(&key), Some(term));
        }
    }

    #[test]
    fn keys_of_strings_sort_as_the_strings_do() {
        let keys: Vec<Vec<u8>> = ["a", "a b", "ab", "b"]
            .iter()
            .map(|text| {
                let mut key = Vec::new();
                push_literal(&mut key, Literal::new_simple_literal(*text).as_ref());
                key
            })
            .collect();
        assert!(keys.is_sorted());
    }

    #[test]
    fn a_key_without_a_border_is_refused() {
        assert_eq!(literal_parts(b"plain"), None);
        assert_eq!(literal_parts(b"x\0?"), None);
    }
}
