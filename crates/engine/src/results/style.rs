//! How is one term written in each format, without what is around it in its row?

use jindou_model::{TermId, TermKind, inline};

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

    /// Appends a string with a language tag, neither of which needs an escape.
    pub(super) fn write_clean_tagged(self, out: &mut Vec<u8>, value: &[u8], tag: &[u8]) {
        let (open, between, close): (&[u8], &[u8], &[u8]) = match self {
            Self::Tsv | Self::NTriples => (b"\"", b"\"@", b""),
            Self::Csv => return out.extend_from_slice(value),
            Self::Json => (br#"literal","value":""#, br#"","xml:lang":""#, br#""}"#),
            Self::Xml => (b"<literal xml:lang=\"", b"\">", b"</literal></binding>"),
        };
        let (first, second) = match self {
            Self::Xml => (tag, value),
            _ => (value, tag),
        };
        for part in [open, first, between, second, close] {
            out.extend_from_slice(part);
        }
    }

    /// Whether IRIs, or (`literal`) plain strings, are written as they are if they are made of
    /// these bytes and the borders of strings. Blanks at the ends of XML's have to be looked for.
    pub(super) fn is_clean(self, bytes: (&[u8], &[u8]), literal: bool) -> bool {
        let any = match (self, literal) {
            (Self::Tsv | Self::NTriples, false) => any_turtle_iri,
            (Self::Tsv | Self::NTriples, true) => any_turtle_string,
            (Self::Csv, _) => any_csv,
            (Self::Json, _) => any_json,
            (Self::Xml, _) => any_xml,
        };
        !any(bytes.0) && !any(bytes.1)
    }
}

/// What stands around the lexical forms of values held inline, none of which needs an escape.
pub(super) struct InlineFrames {
    style: Style,
    /// By kind: before and after; empty where Turtle needs neither.
    frames: [(Vec<u8>, Vec<u8>); INLINE_KINDS.len()],
    scratch: Vec<u8>,
}

const INLINE_KINDS: [TermKind; 7] = [
    TermKind::Integer,
    TermKind::Decimal,
    TermKind::Double,
    TermKind::Float,
    TermKind::Boolean,
    TermKind::DateTime,
    TermKind::Date,
];

impl InlineFrames {
    pub(super) fn new(style: Style) -> Self {
        Self {
            style,
            frames: INLINE_KINDS.map(|kind| inline_frame(style, kind)),
            scratch: Vec::new(),
        }
    }

    /// Appends the value held by an id as [`Style::write`] would; false if it holds none.
    pub(super) fn write(&mut self, out: &mut Vec<u8>, id: TermId) -> bool {
        let kind = id.kind();
        let Some(place) = INLINE_KINDS.iter().position(|other| *other == kind) else {
            return false;
        };
        self.scratch.clear();
        if !inline::decode_lexical_bytes(id, &mut self.scratch) {
            return false;
        }
        let (before, after) = &self.frames[place];
        // Without a point, Turtle reads an integer.
        let is_bare = kind == TermKind::Decimal && self.style == Style::Tsv;
        if is_bare && self.scratch.contains(&b'.') {
            out.extend_from_slice(&self.scratch);
            return true;
        }
        out.extend_from_slice(before);
        out.extend_from_slice(&self.scratch);
        out.extend_from_slice(after);
        true
    }
}

fn inline_frame(style: Style, kind: TermKind) -> (Vec<u8>, Vec<u8>) {
    let is_bare = matches!(kind, TermKind::Integer | TermKind::Boolean);
    if is_bare && style == Style::Tsv {
        return (Vec::new(), Vec::new());
    }
    let datatype = inline::datatype(TermId::new(kind, 0)).expect("an inline kind has a datatype");
    let write = |value| {
        let mut out = Vec::new();
        let literal = TermText::Literal {
            value,
            language: None,
            datatype: Some(datatype.as_str()),
        };
        style.write(&mut out, literal).expect("nothing XML lacks");
        out
    };
    // A letter makes no number; where it comes in, the frame's second part begins.
    let (without, with) = (write(""), write("x"));
    let same = |(a, b): &(&u8, &u8)| a == b;
    let begin = without.iter().zip(&with).take_while(same).count();
    (without[..begin].to_vec(), without[begin..].to_vec())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_held_inline_are_written_as_other_literals() {
        let mut values = 0;
        for (name, lexicals) in [
            ("integer", &["0", "-17", "1234567890123"][..]),
            ("decimal", &["0.5", "-12.25", "7", "0.0"]),
            ("double", &["1.5", "-3"]),
            ("float", &["2.5", "4"]),
            ("boolean", &["true", "false"]),
            (
                "dateTime",
                &["2020-02-29T12:30:00Z", "1999-12-31T23:59:59.125-05:30"],
            ),
            ("date", &["2020-02-29", "0001-01-01+14:00"]),
        ] {
            let datatype = format!("http://www.w3.org/2001/XMLSchema#{name}");
            for value in lexicals {
                let id = inline::encode(value, &datatype).expect("fits inline");
                for style in [
                    Style::Tsv,
                    Style::NTriples,
                    Style::Csv,
                    Style::Json,
                    Style::Xml,
                ] {
                    let (mut one, mut other) = (Vec::new(), Vec::new());
                    let literal = TermText::Literal {
                        value,
                        language: None,
                        datatype: Some(&datatype),
                    };
                    style.write(&mut one, literal).unwrap();
                    assert!(InlineFrames::new(style).write(&mut other, id));
                    let [one, other] = [one, other].map(|text| String::from_utf8(text).unwrap());
                    assert_eq!(one, other, "{style:?}");
                    values += 1;
                }
            }
        }
        assert_eq!(values, 17 * 5);
    }
}
