//! Which names can RDF/XML give to predicates, and to prefixes?

use std::io;

use super::escape::not_xml;
use super::{GraphFormat, QuadText, ResultsError, TermText};

/// Refuses what XML cannot carry, and predicates that no element can stand for.
///
/// # Errors
/// [`ResultsError::NotXml`] and [`ResultsError::Graph`].
pub(super) fn check_xml(quad: QuadText<'_>) -> Result<(), ResultsError> {
    let text = |term: TermText<'_>| match term {
        TermText::Iri(text) | TermText::Blank(text) | TermText::Literal { value: text, .. } => {
            not_xml(text)
        }
    };
    let found = text(quad.subject)
        .or_else(|| not_xml(quad.predicate))
        .or_else(|| text(quad.object));
    if let Some(character) = found {
        return Err(ResultsError::NotXml { character });
    }
    if !is_property_element(quad.predicate) {
        let reason = format!(
            "no XML element can stand for the predicate <{}>",
            quad.predicate
        );
        return Err(ResultsError::Graph {
            format: GraphFormat::RdfXml,
            source: io::Error::new(io::ErrorKind::InvalidInput, reason),
        });
    }
    Ok(())
}

/// Whether an IRI ends in a name that XML allows for an element, and is not one that means
/// something else there (section 7.2.5 of RDF 1.1 XML Syntax).
fn is_property_element(iri: &str) -> bool {
    const RDF: &str = "http://www.w3.org/1999/02/22-rdf-syntax-ns#";
    const OTHER: [&str; 12] = [
        "Description",
        "RDF",
        "ID",
        "about",
        "parseType",
        "resource",
        "nodeID",
        "datatype",
        "li",
        "aboutEach",
        "aboutEachPrefix",
        "bagID",
    ];
    if iri
        .strip_prefix(RDF)
        .is_some_and(|name| OTHER.contains(&name))
    {
        return false;
    }
    namespace(iri).is_some()
}

/// What comes before the name of the element that stands for an IRI.
pub(super) fn namespace(iri: &str) -> Option<&str> {
    let before = iri.trim_end_matches(is_name_char).len();
    let name = before + iri[before..].find(is_name_start_char)?;
    Some(&iri[..name])
}

/// What the serializer declares in each document, for texts with a direction, of which there are none here.
/// No element needs it: the namespace of none ends in a letter.
const UNUSED: &[u8] = b" xmlns:its=\"http://www.w3.org/2005/11/its\"";

/// Takes the declaration that is never used out of the begin of a document; other pieces stay as they are.
pub(super) fn drop_unused(piece: &mut Vec<u8>) {
    if !piece.starts_with(b"<?xml") {
        return;
    }
    // The first tag alone: a literal may have the same text.
    let root = memchr::memmem::find(piece, b"<rdf:RDF").unwrap_or(piece.len());
    let tag = &piece[root..];
    let end = memchr::memchr(b'>', tag).unwrap_or(tag.len());
    if let Some(at) = memchr::memmem::find(&tag[..end], UNUSED) {
        piece.drain(root + at..root + at + UNUSED.len());
    }
}

/// Whether a prefix can be declared in a document of RDF/XML, beside those that the serializer has.
pub(super) fn can_be_declared(name: &str, iri: &str) -> bool {
    let is_reserved = name.len() >= 3 && name.as_bytes()[..3].eq_ignore_ascii_case(b"xml");
    !name.is_empty()
        && !is_reserved
        && !matches!(name, "rdf" | "its")
        && !matches!(
            iri,
            "http://www.w3.org/XML/1998/namespace" | "http://www.w3.org/2000/xmlns/"
        )
}

/// `NameStartChar` of XML 1.0, without the colon.
fn is_name_start_char(c: char) -> bool {
    matches!(c,
        'A'..='Z' | '_' | 'a'..='z' | '\u{c0}'..='\u{d6}' | '\u{d8}'..='\u{f6}'
        | '\u{f8}'..='\u{2ff}' | '\u{370}'..='\u{37d}' | '\u{37f}'..='\u{1fff}'
        | '\u{200c}'..='\u{200d}' | '\u{2070}'..='\u{218f}' | '\u{2c00}'..='\u{2fef}'
        | '\u{3001}'..='\u{d7ff}' | '\u{f900}'..='\u{fdcf}' | '\u{fdf0}'..='\u{fffd}'
        | '\u{10000}'..='\u{effff}')
}

/// `NameChar` of XML 1.0, without the colon.
fn is_name_char(c: char) -> bool {
    is_name_start_char(c)
        || matches!(c, '-' | '.' | '0'..='9' | '\u{b7}' | '\u{300}'..='\u{36f}' | '\u{203f}'..='\u{2040}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_root_of_a_document_loses_what_is_never_used() {
        let unused = String::from_utf8_lossy(UNUSED);
        let document = |declared: &str| {
            let begin =
                format!("<?xml version=\"1.0\"?>\n<rdf:RDF xmlns:e=\"http://e/\"{declared}>");
            format!("{begin}\n\t<e:T{unused}/>")
        };
        let dropped = |text: &str| {
            let mut piece = text.as_bytes().to_vec();
            drop_unused(&mut piece);
            String::from_utf8(piece).expect("it is text")
        };
        assert_eq!(dropped(&document(&unused)), document(""));
        assert_eq!(dropped(&document("")), document(""));
        let later = format!("\n\t<e:T{unused}/>");
        assert_eq!(dropped(&later), later);
    }
}
