//! Which format is this text in, by how it begins?
//!
//! Names mislead: ontologies in Turtle are called `.owl`, and files without an ending are anything.
//! What a document's name or media type says holds unless its first bytes can be nothing of it.

use crate::format::Format;
use crate::turtle::TurtleWatch;
use oxttl::NQuadsParser;

/// How much of a text is looked at.
pub(crate) const HEAD_BYTES: usize = 1 << 10;

/// Media types that tell nothing, or something that is not the format.
const VAGUE: [&str; 12] = [
    "",
    "text/plain",
    "text/xml",
    "application/xml",
    "application/json",
    "application/octet-stream",
    "binary/octet-stream",
    "application/gzip",
    "application/x-gzip",
    "application/zstd",
    "application/x-bzip2",
    "application/x-bzip",
];

/// What a text begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Xml,
    Json,
    /// A declaration of Turtle or TriG.
    Declaration,
    /// Whole lines of N-Triples; of N-Quads, with the name of a graph in one at least.
    Triples,
    Quads,
    /// A term, as statements of Turtle begin.
    Term,
    Unknown,
}

impl Format {
    /// Whether a media type says nothing of a document's format that must hold, as those that are given to
    /// what is unknown: the name of the document, if it has one, and how it begins are better witnesses.
    ///
    /// ```
    /// use jindou_ingest::Format;
    ///
    /// assert!(Format::is_vague("Application/XML; charset=utf-8") && Format::is_vague(""));
    /// assert!(!Format::is_vague("text/turtle"));
    /// ```
    #[must_use]
    pub fn is_vague(media_type: &str) -> bool {
        let plain = media_type.split(';').next().unwrap_or_default().trim();
        VAGUE.iter().any(|vague| plain.eq_ignore_ascii_case(vague))
    }

    /// The format that a text is in: the likely one, unless its first bytes can be nothing of that;
    /// then what they look like, if they look like anything. A mark of the byte order is passed over.
    ///
    /// ```
    /// use jindou_ingest::Format;
    ///
    /// let turtle = b"@prefix e: <http://e/> . e:a a e:B .";
    /// assert_eq!(Format::of_content(turtle, Some(Format::RdfXml)), Some(Format::Turtle));
    /// assert_eq!(Format::of_content(turtle, Some(Format::TriG)), Some(Format::TriG));
    /// assert_eq!(Format::of_content(b"hello", None), None);
    /// ```
    #[must_use]
    pub fn of_content(text: &[u8], likely: Option<Self>) -> Option<Self> {
        let is_whole = text.len() < HEAD_BYTES;
        let head = &text[..text.len().min(HEAD_BYTES)];
        // XML alone may be in UTF-16.
        if head.starts_with(b"\xff\xfe") || head.starts_with(b"\xfe\xff") {
            return likely.or(Some(Self::RdfXml));
        }
        let head = head.strip_prefix("\u{feff}".as_bytes()).unwrap_or(head);
        let is_turtle = matches!(likely, Some(Self::Turtle | Self::TriG));
        // What begins with a bracket may be JSON that is wrong elsewhere.
        let is_json = likely == Some(Self::JsonLd) && without_comments(head).starts_with(b"[");
        let is_lines = matches!(likely, Some(Self::NTriples | Self::NQuads));
        match kind(head, is_whole) {
            Kind::Xml => Some(Self::RdfXml),
            Kind::Json => Some(Self::JsonLd),
            Kind::Declaration if !is_turtle => Some(turtle_or_trig(head)),
            Kind::Triples if !is_turtle && !is_lines => Some(Self::NTriples),
            Kind::Quads => Some(Self::NQuads),
            Kind::Term if !is_turtle && !is_lines && !is_json => Some(turtle_or_trig(head)),
            _ => likely,
        }
    }
}

fn kind(head: &[u8], is_whole: bool) -> Kind {
    let text = without_comments(head);
    match text {
        [b'<', rest @ ..] if is_xml(rest) => Kind::Xml,
        [b'{', rest @ ..] if matches!(rest.trim_ascii_start(), [b'"', ..]) => Kind::Json,
        [b'[', rest @ ..] if matches!(rest.trim_ascii_start(), [b'{', ..]) => Kind::Json,
        _ if is_declaration(text) => Kind::Declaration,
        _ => match lines(head, is_whole) {
            Some(kind) => kind,
            None if begins_with_term(text) => Kind::Term,
            None => Kind::Unknown,
        },
    }
}

/// The text behind the white space and the comments that it begins with.
fn without_comments(mut text: &[u8]) -> &[u8] {
    loop {
        text = text.trim_ascii_start();
        if !text.starts_with(b"#") {
            return text;
        }
        let end = memchr::memchr2(b'\n', b'\r', text);
        text = &text[end.unwrap_or(text.len())..];
    }
}

/// Whether XML goes on so behind its first `<`. In an IRI there is no white space.
fn is_xml(rest: &[u8]) -> bool {
    let is_name =
        |byte: &u8| byte.is_ascii_alphanumeric() || b"_-.:".contains(byte) || *byte > 0x7f;
    let end = rest.iter().position(|byte| !is_name(byte));
    rest.starts_with(b"?xml")
        || rest.starts_with(b"!--")
        || rest.starts_with(b"!DOCTYPE")
        || end.is_some_and(|end| end > 0 && rest[end].is_ascii_whitespace())
}

/// Whether a declaration of Turtle comes first, in either way of writing it.
fn is_declaration(text: &[u8]) -> bool {
    [&b"@prefix"[..], b"@base", b"prefix", b"base"]
        .iter()
        .any(|word| {
            text.len() > word.len()
                && text[..word.len()].eq_ignore_ascii_case(word)
                && (text[word.len()].is_ascii_whitespace() || text[word.len()] == b'<')
        })
}

/// What the whole lines of a text are, if each of them is a statement or nothing.
fn lines(head: &[u8], is_whole: bool) -> Option<Kind> {
    let end = match is_whole {
        true => head.len(),
        false => memchr::memrchr(b'\n', head)? + 1,
    };
    let mut found = None;
    for line in head[..end].split(|&byte| byte == b'\n') {
        for quad in NQuadsParser::new().lenient().for_slice(line) {
            let has_graph = !quad.ok()?.graph_name.is_default_graph();
            let kind = if has_graph {
                Kind::Quads
            } else {
                Kind::Triples
            };
            found = found.filter(|before| *before == Kind::Quads).or(Some(kind));
        }
    }
    found
}

/// Whether a statement of Turtle may begin so.
fn begins_with_term(text: &[u8]) -> bool {
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-.".contains(byte) || *byte > 0x7f;
    match text {
        [b'<', rest @ ..] => {
            let end = rest.iter().position(|byte| b"<> \t\r\n\"".contains(byte));
            end.is_some_and(|end| rest[end] == b'>')
        }
        [b'[' | b'(', ..] => true,
        _ => {
            let end = text.iter().position(|byte| !is_name(byte));
            end.is_some_and(|end| text[end] == b':')
        }
    }
}

/// Turtle, or TriG if a graph's block is seen.
fn turtle_or_trig(head: &[u8]) -> Format {
    let mut watch = TurtleWatch::default();
    head.iter().for_each(|byte| watch.byte(*byte));
    match watch.ends().opened {
        0 => Format::Turtle,
        _ => Format::TriG,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Format::{JsonLd, NQuads, NTriples, RdfXml, TriG, Turtle};

    #[test]
    fn what_a_text_looks_like_goes_before_a_name_that_it_cannot_have() {
        let long = format!("<http://a> <http://b> \"{}\" .\n", "x".repeat(2000));
        // The text, what it is without a name, and the names that it may have.
        for (text, alone, fitting) in [
            (
                "@prefix e: <http://e/> .",
                Some(Turtle),
                &[Turtle, TriG][..],
            ),
            (
                "\u{feff}# c\n\nPREFIX e: <http://e/>\n",
                Some(Turtle),
                &[Turtle, TriG],
            ),
            (
                "@base <http://e/> . <g> { <a> <b> 1 }",
                Some(TriG),
                &[Turtle, TriG],
            ),
            ("# <?xml\n<?xml version='1.0'?>", Some(RdfXml), &[RdfXml]),
            ("<?xml version='1.0'?>", Some(RdfXml), &[RdfXml]),
            ("<!-- c -->\n<rdf:RDF>", Some(RdfXml), &[RdfXml]),
            ("<rdf:RDF xmlns:rdf=''>", Some(RdfXml), &[RdfXml]),
            ("\n<RDF\nxmlns=''>", Some(RdfXml), &[RdfXml]),
            ("\u{feff}{ \"@id\": 1 }", Some(JsonLd), &[JsonLd]),
            ("[\n{", Some(JsonLd), &[JsonLd]),
            (
                "<http://a> <http://b> 'c' .",
                Some(Turtle),
                &[Turtle, TriG, NTriples, NQuads],
            ),
            (
                "<http://a> <http://b> _:c .",
                Some(NTriples),
                &[Turtle, TriG, NTriples, NQuads],
            ),
            (
                "# c\n_:a <b:> \"c\"@en .\n",
                Some(NTriples),
                &[Turtle, TriG, NTriples, NQuads],
            ),
            (
                "<a:> <b:> <c:> .\n<a:> <b:> <c:> <d:> .\n<a:> <b:> <c:> .\n",
                Some(NQuads),
                &[NQuads],
            ),
            (&long, Some(Turtle), &[Turtle, TriG, NTriples, NQuads]),
            (
                "e:a a e:B .",
                Some(Turtle),
                &[Turtle, TriG, NTriples, NQuads],
            ),
            (
                "[] a <b> .",
                Some(Turtle),
                &[Turtle, TriG, NTriples, NQuads, JsonLd],
            ),
            ("<g> { }", Some(TriG), &[Turtle, TriG, NTriples, NQuads]),
        ] {
            assert_eq!(Format::of_content(text.as_bytes(), None), alone, "{text}");
            for likely in Format::ALL {
                let expected = match fitting.contains(&likely) {
                    true => Some(likely),
                    false => alone,
                };
                let found = Format::of_content(text.as_bytes(), Some(likely));
                assert_eq!(found, expected, "{text} as {likely}");
            }
        }
        for text in ["", "hello", "{}", "a,b\n1,2\n", "\u{1f}\u{8b}", "<a"] {
            assert_eq!(Format::of_content(text.as_bytes(), None), None, "{text}");
            for likely in Format::ALL {
                let found = Format::of_content(text.as_bytes(), Some(likely));
                assert_eq!(found, Some(likely), "{text}");
            }
        }
        let utf16: Vec<u8> = "\u{feff}<?xml"
            .encode_utf16()
            .flat_map(u16::to_le_bytes)
            .collect();
        assert_eq!(Format::of_content(&utf16, None), Some(RdfXml));
    }
}
