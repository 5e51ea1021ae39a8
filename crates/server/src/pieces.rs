//! How is a long term written for a reader who takes it slowly?
//!
//! In pieces: what a term has that is long is taken out of it, the rest is written, and the text goes
//! between its parts, little by little. So whoever reads holds a chunk, however long terms are.

use jindou_engine::results::{ResultsError, SolutionsWriter, TermText, write_term};
use serde_json::json;

/// Texts up to this many bytes are written whole. Six bytes, or seven, may stand for one.
pub(crate) const PIECE_BYTES: usize = 1 << 10;

/// A part of a term.
pub(crate) enum Part<'t> {
    Written(Vec<u8>),
    Text(&'t str, Escape),
}

/// How a text is escaped.
#[derive(Clone, Copy)]
pub(crate) enum Escape {
    /// As a string of JSON.
    Json,
    /// As a literal of N-Triples within a string of JSON.
    Literal,
    /// As an IRI of N-Triples within a string of JSON.
    Iri,
}

/// Whether a term is to be written in pieces.
pub(crate) fn is_long(term: TermText<'_>) -> bool {
    texts(term).iter().any(|(_, text)| is_long_text(text))
}

fn is_long_text(text: &str) -> bool {
    text.len() > PIECE_BYTES
}

/// The texts that a term has, with what comes before each in results in JSON.
fn texts(term: TermText<'_>) -> [(&'static str, &str); 3] {
    let none = ("", "");
    match term {
        TermText::Iri(text) | TermText::Blank(text) => [("\"value\":\"", text), none, none],
        TermText::Literal {
            value,
            language,
            datatype,
        } => [
            ("\"value\":\"", value),
            ("\"xml:lang\":\"", language.unwrap_or_default()),
            (
                "\"datatype\":\"",
                datatype.filter(|_| language.is_none()).unwrap_or_default(),
            ),
        ],
    }
}

/// The same term without its long texts.
fn shortened(term: TermText<'_>) -> TermText<'_> {
    let short = |text| if is_long_text(text) { "" } else { text };
    match term {
        TermText::Iri(text) => TermText::Iri(short(text)),
        TermText::Blank(text) => TermText::Blank(short(text)),
        TermText::Literal {
            value,
            language,
            datatype,
        } => TermText::Literal {
            value: short(value),
            language: language.map(short),
            datatype: datatype.map(short),
        },
    }
}

/// The parts of a long term as the next cell of a row in JSON.
///
/// # Errors
/// Those of the writer.
pub(crate) fn cell<'t>(
    writer: &mut SolutionsWriter,
    term: TermText<'t>,
) -> Result<Vec<Part<'t>>, ResultsError> {
    let mut written = Vec::new();
    writer.cell(&mut written, Some(shortened(term)))?;
    let mut parts = Vec::new();
    for (before, text) in texts(term) {
        if !is_long_text(text) {
            continue;
        }
        // No variable has a quotation mark, and before the value comes no other text.
        let empty = format!("{before}\"");
        let mut places = written.windows(empty.len());
        let place = places.position(|part| part == empty.as_bytes());
        let place = place.expect("a text that was taken out has left its place") + before.len();
        let rest = written.split_off(place);
        parts.push(Part::Written(std::mem::replace(&mut written, rest)));
        parts.push(Part::Text(text, Escape::Json));
    }
    parts.push(Part::Written(written));
    Ok(parts)
}

/// The parts of a term in N-Triples within a string of JSON.
pub(crate) fn triple_term(term: TermText<'_>) -> Vec<Part<'_>> {
    let plain = |text: &str| Part::Written(text.as_bytes().to_vec());
    match term {
        term if !is_long(term) => {
            let mut written = Vec::new();
            write_term(&mut written, term, false);
            let mut quoted = Vec::with_capacity(written.len());
            push_json(&mut quoted, &String::from_utf8_lossy(&written));
            vec![Part::Written(quoted)]
        }
        TermText::Iri(iri) => vec![plain("<"), Part::Text(iri, Escape::Iri), plain(">")],
        TermText::Blank(label) => vec![plain("_:"), Part::Text(label, Escape::Json)],
        TermText::Literal {
            value,
            language,
            datatype,
        } => {
            let quote = || plain("\\\"");
            let mut parts = vec![quote(), Part::Text(value, Escape::Literal), quote()];
            match (language, datatype) {
                (Some(language), _) => {
                    parts.extend([plain("@"), Part::Text(language, Escape::Json)]);
                }
                (None, Some(datatype)) if datatype != XSD_STRING => {
                    let datatype = Part::Text(datatype, Escape::Iri);
                    parts.extend([plain("^^<"), datatype, plain(">")]);
                }
                (None, _) => {}
            }
            parts
        }
    }
}

const XSD_STRING: &str = "http://www.w3.org/2001/XMLSchema#string";

/// Pieces of a text, none of which ends within a character.
pub(crate) fn pieces(mut text: &str) -> impl Iterator<Item = &str> {
    std::iter::from_fn(move || {
        let (piece, rest) = text.split_at(text.floor_char_boundary(PIECE_BYTES));
        text = rest;
        (!piece.is_empty()).then_some(piece)
    })
}

/// Appends a piece as it is written.
pub(crate) fn push(out: &mut Vec<u8>, piece: &str, escape: Escape) {
    let mut written = Vec::new();
    let term = match escape {
        Escape::Json => return push_json(out, piece),
        Escape::Iri => TermText::Iri(piece),
        Escape::Literal => TermText::Literal {
            value: piece,
            language: None,
            datatype: None,
        },
    };
    write_term(&mut written, term, false);
    // Without what stands around it.
    push_json(
        out,
        &String::from_utf8_lossy(&written[1..written.len() - 1]),
    );
}

fn push_json(out: &mut Vec<u8>, text: &str) {
    let quoted = json!(text).to_string();
    out.extend_from_slice(&quoted.as_bytes()[1..quoted.len() - 1]);
}
