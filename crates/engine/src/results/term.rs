//! What is a term as text, and how is it written in the syntax of N-Triples?

use oxrdf::vocab::xsd;
use oxrdf::{NamedOrBlankNodeRef, TermRef, TripleRef};

use super::escape::{push_turtle_iri, push_turtle_string};

/// An RDF term as borrowed text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TermText<'a> {
    /// An IRI, without angle brackets.
    Iri(&'a str),
    /// A blank node's label, without `_:`.
    Blank(&'a str),
    /// A literal.
    Literal {
        /// The lexical form.
        value: &'a str,
        /// The language tag. Where there is one, `datatype` is not looked at.
        language: Option<&'a str>,
        /// The datatype's IRI; `None` is `xsd:string`.
        datatype: Option<&'a str>,
    },
}

impl<'a> TermText<'a> {
    /// The datatype where a format has to write one: neither `xsd:string` nor implied by a
    /// language tag.
    pub(super) fn written_datatype(
        language: Option<&str>,
        datatype: Option<&'a str>,
    ) -> Option<&'a str> {
        datatype.filter(|&iri| language.is_none() && iri != xsd::STRING.as_str())
    }
}

impl<'a> From<TermRef<'a>> for TermText<'a> {
    fn from(term: TermRef<'a>) -> Self {
        match term {
            TermRef::NamedNode(node) => Self::Iri(node.as_str()),
            TermRef::BlankNode(node) => Self::Blank(node.as_str()),
            TermRef::Literal(literal) => Self::Literal {
                value: literal.value(),
                language: literal.language(),
                datatype: Self::written_datatype(
                    literal.language(),
                    Some(literal.datatype().as_str()),
                ),
            },
        }
    }
}

/// A quad as borrowed text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct QuadText<'a> {
    /// An IRI or a blank node.
    pub subject: TermText<'a>,
    /// An IRI, without angle brackets.
    pub predicate: &'a str,
    /// Any term.
    pub object: TermText<'a>,
    /// An IRI or a blank node; `None` is the default graph.
    pub graph: Option<TermText<'a>>,
}

impl<'a> From<TripleRef<'a>> for QuadText<'a> {
    fn from(triple: TripleRef<'a>) -> Self {
        Self {
            subject: match triple.subject {
                NamedOrBlankNodeRef::NamedNode(node) => TermText::Iri(node.as_str()),
                NamedOrBlankNodeRef::BlankNode(node) => TermText::Blank(node.as_str()),
            },
            predicate: triple.predicate.as_str(),
            object: triple.object.into(),
            graph: None,
        }
    }
}

/// Appends a term in the syntax of N-Triples; `abbreviate` allows Turtle's bare numbers and
/// booleans where the lexical form is one that reads back as the same literal.
#[inline]
pub fn write_term(out: &mut Vec<u8>, term: TermText<'_>, abbreviate: bool) {
    match term {
        TermText::Iri(iri) => push_iri(out, iri),
        TermText::Blank(label) => {
            out.extend_from_slice(b"_:");
            out.extend_from_slice(label.as_bytes());
        }
        TermText::Literal {
            value,
            language,
            datatype,
        } => {
            let datatype = TermText::written_datatype(language, datatype);
            if abbreviate && datatype.is_some_and(|iri| is_bare(value, iri)) {
                out.extend_from_slice(value.as_bytes());
                return;
            }
            out.push(b'"');
            push_turtle_string(out, value);
            out.push(b'"');
            if let Some(language) = language {
                out.push(b'@');
                out.extend_from_slice(language.as_bytes());
            } else if let Some(datatype) = datatype {
                out.extend_from_slice(b"^^");
                push_iri(out, datatype);
            }
        }
    }
}

#[inline]
pub(super) fn push_iri(out: &mut Vec<u8>, iri: &str) {
    out.reserve(iri.len() + 2);
    out.push(b'<');
    push_turtle_iri(out, iri);
    out.push(b'>');
}

/// Whether Turtle reads `value` without quotes as a literal of `datatype` with the same lexical
/// form.
pub(super) fn is_bare(value: &str, datatype: &str) -> bool {
    let Some(name) = datatype.strip_prefix("http://www.w3.org/2001/XMLSchema#") else {
        return false;
    };
    let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    let unsigned = value.strip_prefix(['+', '-']).unwrap_or(value);
    // [+-]? [0-9]* '.' [0-9]+
    let decimal = |text: &str| match text.split_once('.') {
        Some((whole, part)) => digits(whole) && digits(part) && !part.is_empty(),
        None => false,
    };
    match name {
        "boolean" => matches!(value, "true" | "false"),
        "integer" => !unsigned.is_empty() && digits(unsigned),
        "decimal" => decimal(unsigned),
        "double" => match unsigned.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => {
                let exponent = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
                let whole = mantissa.strip_suffix('.').unwrap_or(mantissa);
                !exponent.is_empty()
                    && digits(exponent)
                    && (decimal(mantissa) || (!whole.is_empty() && digits(whole)))
            }
            None => false,
        },
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_legal_numbers_are_bare() {
        let xsd = |name: &str| format!("http://www.w3.org/2001/XMLSchema#{name}");
        for (name, bare, quoted) in [
            (
                "integer",
                &["0", "-1", "+007"][..],
                &["", "+", "1.0", "1e0", " 1", "١"][..],
            ),
            (
                "decimal",
                &["1.0", "-.5", "+00.10"],
                &["1", "1.", ".", "1.0e1", "-"],
            ),
            (
                "double",
                &["1e0", "1.E-3", ".5e+1", "-1.5E9"],
                &["1", "1.5", "INF", "NaN", ".e1", "e1", "1e"],
            ),
            ("boolean", &["true", "false"], &["1", "TRUE", ""]),
            ("int", &[], &["1"]),
        ] {
            for value in bare {
                assert!(is_bare(value, &xsd(name)), "{value} {name}");
            }
            for value in quoted {
                assert!(!is_bare(value, &xsd(name)), "{value} {name}");
            }
        }
    }
}
