//! How is one term written in each format, without what is around it in its row?

use super::escape::{
    any_csv, any_json, any_turtle_iri, any_turtle_string, any_xml, push_csv, push_json, push_xml,
};
use super::{ResultsError, TermText, write_term};

/// A way to write terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Style {
    /// The syntax of Turtle, with bare numbers and booleans.
    Tsv,
    /// The canonical syntax of N-Triples.
    NTriples,
    /// Values without their types.
    Csv,
    /// The members of an object from the value of `"type"` on, and its end.
    Json,
    /// An element and the end of its binding.
    Xml,
}

impl Style {
    /// Appends a term.
    ///
    /// # Errors
    /// [`ResultsError::NotXml`]; what was appended until then stays.
    #[inline]
    pub(super) fn write(self, out: &mut Vec<u8>, term: TermText<'_>) -> Result<(), ResultsError> {
        match self {
            Self::Tsv => write_term(out, term, true),
            Self::NTriples => write_term(out, term, false),
            Self::Csv => write_csv(out, term),
            Self::Json => write_json(out, term),
            Self::Xml => return write_xml(out, term),
        }
        Ok(())
    }

    /// What comes before and after an IRI, or (`literal`) a plain string, that needs no escape.
    pub(super) fn frame(self, literal: bool) -> (&'static [u8], &'static [u8]) {
        match (self, literal) {
            (Self::Tsv | Self::NTriples, false) => (b"<", b">"),
            (Self::Tsv | Self::NTriples, true) => (b"\"", b"\""),
            (Self::Csv, _) => (b"", b""),
            (Self::Json, false) => (br#"uri","value":""#, br#""}"#),
            (Self::Json, true) => (br#"literal","value":""#, br#""}"#),
            (Self::Xml, false) => (b"<uri>", b"</uri></binding>"),
            (Self::Xml, true) => (b"<literal>", b"</literal></binding>"),
        }
    }

    /// Whether IRIs, or (`literal`) plain strings, are written as they are if these are their
    /// bytes. Says no where each has to be looked at by itself.
    pub(super) fn is_clean(self, bytes: &[u8], literal: bool) -> bool {
        !match (self, literal) {
            (Self::Tsv | Self::NTriples, false) => any_turtle_iri(bytes),
            (Self::Tsv | Self::NTriples, true) => any_turtle_string(bytes),
            (Self::Csv, _) => any_csv(bytes),
            (Self::Json, _) => any_json(bytes),
            // A blank may stand at an end.
            (Self::Xml, _) => any_xml(bytes) || bytes.contains(&b' '),
        }
    }
}

fn write_csv(out: &mut Vec<u8>, term: TermText<'_>) {
    match term {
        TermText::Iri(text) | TermText::Literal { value: text, .. } => push_csv(out, text),
        TermText::Blank(label) => {
            out.extend_from_slice(b"_:");
            out.extend_from_slice(label.as_bytes());
        }
    }
}

#[inline]
fn write_json(out: &mut Vec<u8>, term: TermText<'_>) {
    match term {
        TermText::Iri(iri) => {
            out.extend_from_slice(br#"uri","value":""#);
            push_json(out, iri);
        }
        TermText::Blank(label) => {
            out.extend_from_slice(br#"bnode","value":""#);
            push_json(out, label);
        }
        TermText::Literal {
            value,
            language,
            datatype,
        } => {
            out.extend_from_slice(br#"literal","value":""#);
            push_json(out, value);
            if let Some(language) = language {
                out.extend_from_slice(br#"","xml:lang":""#);
                push_json(out, language);
            } else if let Some(datatype) = TermText::written_datatype(language, datatype) {
                out.extend_from_slice(br#"","datatype":""#);
                push_json(out, datatype);
            }
        }
    }
    out.extend_from_slice(b"\"}");
}

#[inline]
fn write_xml(out: &mut Vec<u8>, term: TermText<'_>) -> Result<(), ResultsError> {
    match term {
        TermText::Iri(iri) => {
            out.extend_from_slice(b"<uri>");
            push_xml(out, iri)?;
            out.extend_from_slice(b"</uri></binding>");
        }
        TermText::Blank(label) => {
            out.extend_from_slice(b"<bnode>");
            push_xml(out, label)?;
            out.extend_from_slice(b"</bnode></binding>");
        }
        TermText::Literal {
            value,
            language,
            datatype,
        } => {
            if let Some(language) = language {
                out.extend_from_slice(b"<literal xml:lang=\"");
                push_xml(out, language)?;
                out.extend_from_slice(b"\">");
            } else if let Some(datatype) = TermText::written_datatype(language, datatype) {
                out.extend_from_slice(b"<literal datatype=\"");
                push_xml(out, datatype)?;
                out.extend_from_slice(b"\">");
            } else {
                out.extend_from_slice(b"<literal>");
            }
            push_xml(out, value)?;
            out.extend_from_slice(b"</literal></binding>");
        }
    }
    Ok(())
}
