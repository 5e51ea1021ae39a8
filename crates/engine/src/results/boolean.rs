//! How is the answer to ASK written?

use super::BooleanFormat;

/// Appends a whole document with this answer. The text forms have no line end.
pub fn write_boolean(out: &mut Vec<u8>, format: BooleanFormat, value: bool) {
    let word = if value { "true" } else { "false" };
    let (before, after) = match format {
        BooleanFormat::Json => (r#"{"head":{},"boolean":"#, "}"),
        BooleanFormat::Xml => (
            concat!(
                r#"<?xml version="1.0"?>"#,
                r#"<sparql xmlns="http://www.w3.org/2005/sparql-results#">"#,
                "<head></head><boolean>"
            ),
            "</boolean></sparql>",
        ),
        BooleanFormat::Text | BooleanFormat::Csv | BooleanFormat::Tsv => ("", ""),
    };
    for part in [before, word, after] {
        out.extend_from_slice(part.as_bytes());
    }
}
