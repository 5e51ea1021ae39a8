//! How may tuples be written, and what are these formats called?

use jindou_ingest::Format;

use super::events::has_messages;

/// How tuples are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TupleFormat {
    /// Lines of a time in milliseconds, a tab, and a statement of N-Triples or N-Quads.
    Lines,
    /// A document, all of whose statements are one event; or a log of RDF Messages that announces
    /// itself.
    Document(Format),
    /// A log of RDF Messages, each of which is an event: N-Triples, N-Quads, Turtle or TriG.
    Messages(Format),
    /// A JSON object a line, which is an event: JSON-LD, or plain JSON with the stream's context.
    JsonLines,
    /// A JSON object, which is an event, or an array of such: plain JSON with the stream's context.
    Json,
    /// RDF Patch without deletions, each transaction of which is an event.
    Patch,
}

/// What lines of JSON are called: no name is registered.
const JSON_LINES: [&str; 4] = [
    "application/x-ndjson",
    "application/ndjson",
    "application/jsonl",
    "application/x-ld+ndjson",
];

impl TupleFormat {
    /// The media types of all formats, in the order of the documentation.
    pub const MEDIA_TYPES: [&str; 10] = [
        "text/tab-separated-values",
        "application/n-triples",
        "application/n-quads",
        "text/turtle",
        "application/trig",
        "application/rdf+xml",
        "application/ld+json",
        JSON_LINES[0],
        "application/json",
        "application/rdf-patch",
    ];

    /// The format of a media type with its parameters, as in `text/turtle; version=1.2-messages`.
    #[must_use]
    pub fn from_media_type(text: &str) -> Option<Self> {
        let (name, parameters) = text.split_once(';').unwrap_or((text, ""));
        let name = name.trim().to_ascii_lowercase();
        match &*name {
            "text/tab-separated-values" => return Some(Self::Lines),
            "application/json" => return Some(Self::Json),
            "application/rdf-patch" => return Some(Self::Patch),
            name if JSON_LINES.contains(&name) => return Some(Self::JsonLines),
            _ => {}
        }
        // A short name of a format is no media type.
        let format = Format::from_name(Some(&*name).filter(|name| name.contains('/'))?).ok()?;
        let is_log = parameters.split(';').any(|parameter| {
            let (name, value) = parameter.split_once('=').unwrap_or_default();
            let value = value.trim().trim_matches('"');
            name.trim().eq_ignore_ascii_case("version") && value.ends_with("-messages")
        });
        match is_log {
            true => has_messages(format).then_some(Self::Messages(format)),
            false => Some(Self::Document(format)),
        }
    }

    /// The media type of a file with this ending (without the dot, in any case), if it is one of
    /// events.
    #[must_use]
    pub fn media_type_of_ending(ending: &str) -> Option<&'static str> {
        match &*ending.to_ascii_lowercase() {
            "ndjson" | "jsonl" => Some(JSON_LINES[0]),
            "json" => Some("application/json"),
            "rdfp" => Some("application/rdf-patch"),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_have_media_types() {
        for media_type in TupleFormat::MEDIA_TYPES {
            assert!(TupleFormat::from_media_type(media_type).is_some());
        }
        let of = TupleFormat::from_media_type;
        let log = "Text/Turtle; charset=utf-8; version=\"1.2-messages\"";
        assert_eq!(of(log), Some(TupleFormat::Messages(Format::Turtle)));
        let turtle = "text/turtle; version=1.2";
        assert_eq!(of(turtle), Some(TupleFormat::Document(Format::Turtle)));
        for unknown in [
            "",
            "turtle",
            "image/png",
            "application/ld+json; version=1.2-messages",
        ] {
            assert_eq!(of(unknown), None, "{unknown}");
        }
    }
}
