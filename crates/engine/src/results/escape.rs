//! How does text get into a format's strings, fast when there is nothing to escape?
//!
//! Almost every term needs no escape, so each function first looks at the whole text with tests
//! that the compiler turns into vector instructions, then copies it at once.

use super::ResultsError;

const HEX: &[u8; 16] = b"0123456789ABCDEF";

/// Whether any byte is special. `special` must be free of branches to be fast.
#[inline(always)]
fn any(bytes: &[u8], special: impl Fn(u8) -> bool + Copy) -> bool {
    const BLOCK: usize = 16;
    let hits = |block: &[u8]| block.iter().fold(false, |hit, &byte| hit | special(byte));
    let (blocks, rest) = bytes.as_chunks::<BLOCK>();
    if blocks.iter().any(|block| hits(block)) {
        return true;
    }
    match bytes.last_chunk::<BLOCK>() {
        // Overlaps what was seen, which is cheaper than going byte by byte.
        Some(last) if !rest.is_empty() => hits(last),
        Some(_) => false,
        None => hits(rest),
    }
}

/// Appends `text` with every special (ASCII) byte handed to `escape` instead.
#[inline(always)]
fn push(
    out: &mut Vec<u8>,
    text: &str,
    special: impl Fn(u8) -> bool + Copy,
    escape: fn(&mut Vec<u8>, u8),
) {
    let bytes = text.as_bytes();
    if any(bytes, special) {
        push_escaped(out, bytes, special, escape);
    } else {
        out.extend_from_slice(bytes);
    }
}

#[cold]
#[inline(never)]
fn push_escaped(
    out: &mut Vec<u8>,
    bytes: &[u8],
    special: impl Fn(u8) -> bool,
    escape: fn(&mut Vec<u8>, u8),
) {
    let mut copied = 0;
    for (index, &byte) in bytes.iter().enumerate() {
        if special(byte) {
            out.extend_from_slice(&bytes[copied..index]);
            escape(out, byte);
            copied = index + 1;
        }
    }
    out.extend_from_slice(&bytes[copied..]);
}

fn push_u4(out: &mut Vec<u8>, byte: u8) {
    out.extend_from_slice(b"\\u00");
    out.extend_from_slice(&[HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
}

#[inline(always)]
fn json_special(b: u8) -> bool {
    (b < 0x20) | (b == b'"') | (b == b'\\')
}

/// Whether any of these bytes, apart from borders of keys, needs an escape in a JSON string.
pub(super) fn any_json(bytes: &[u8]) -> bool {
    any(bytes, |b| json_special(b) & (b != 0))
}

/// Appends what stands between the quotes of a JSON string.
#[inline]
pub(super) fn push_json(out: &mut Vec<u8>, text: &str) {
    push(out, text, json_special, |out, byte| match byte {
        b'"' => out.extend_from_slice(b"\\\""),
        b'\\' => out.extend_from_slice(b"\\\\"),
        b'\n' => out.extend_from_slice(b"\\n"),
        b'\r' => out.extend_from_slice(b"\\r"),
        b'\t' => out.extend_from_slice(b"\\t"),
        _ => push_u4(out, byte),
    });
}

#[inline(always)]
fn turtle_string_special(b: u8) -> bool {
    json_special(b) | (b == 0x7F)
}

/// Whether any of these bytes, apart from borders of keys, needs an escape in a string of
/// N-Triples.
pub(super) fn any_turtle_string(bytes: &[u8]) -> bool {
    any(bytes, |b| turtle_string_special(b) & (b != 0))
}

/// Appends what stands between the quotes of a string in N-Triples, in its canonical form.
#[inline]
pub(super) fn push_turtle_string(out: &mut Vec<u8>, text: &str) {
    push(out, text, turtle_string_special, |out, byte| match byte {
        b'"' => out.extend_from_slice(b"\\\""),
        b'\\' => out.extend_from_slice(b"\\\\"),
        b'\n' => out.extend_from_slice(b"\\n"),
        b'\r' => out.extend_from_slice(b"\\r"),
        b'\t' => out.extend_from_slice(b"\\t"),
        0x08 => out.extend_from_slice(b"\\b"),
        0x0C => out.extend_from_slice(b"\\f"),
        _ => push_u4(out, byte),
    });
}

#[inline(always)]
fn turtle_iri_special(b: u8) -> bool {
    // Bit 1 tells `<` from `>` and `\\` from `^`; `{`, `|` and `}` follow each other. Fewer tests
    // make this a third faster than one for each.
    (b <= b' ')
        | (b & !2 == b'<')
        | (b & !2 == b'\\')
        | (b.wrapping_sub(b'{') < 3)
        | (b == b'"')
        | (b == b'`')
}

/// Whether any of these bytes needs an escape in an IRI of N-Triples.
pub(super) fn any_turtle_iri(bytes: &[u8]) -> bool {
    any(bytes, turtle_iri_special)
}

/// Appends what stands between the angle brackets of an IRI in N-Triples. Characters that no IRI
/// has, but that lenient loading may have let in, are escaped so that they stay inside.
#[inline]
pub(super) fn push_turtle_iri(out: &mut Vec<u8>, iri: &str) {
    push(out, iri, turtle_iri_special, push_u4);
}

/// Whether any of these bytes makes a CSV field be quoted.
pub(super) fn any_csv(bytes: &[u8]) -> bool {
    any(bytes, |b| {
        (b == b'"') | (b == b',') | (b == b'\n') | (b == b'\r')
    })
}

/// Appends a CSV field by RFC 4180.
#[inline]
pub(super) fn push_csv(out: &mut Vec<u8>, text: &str) {
    if any_csv(text.as_bytes()) {
        out.push(b'"');
        push(
            out,
            text,
            |b| b == b'"',
            |out, _| out.extend_from_slice(b"\"\""),
        );
        out.push(b'"');
    } else {
        out.extend_from_slice(text.as_bytes());
    }
}

#[inline(always)]
fn xml_special(b: u8) -> bool {
    // 0xEF leads U+FFFE and U+FFFF, which XML lacks, among other characters that it has.
    (b < b' ') | (b == b'<') | (b == b'>') | (b == b'&') | (b == b'"') | (b == 0xEF)
}

/// Whether any of these bytes, apart from borders of keys, may need care in XML, wherever it
/// stands.
pub(super) fn any_xml(bytes: &[u8]) -> bool {
    any(bytes, |b| xml_special(b) & (b != 0))
}

/// Appends the content of an XML element or of an attribute in double quotes.
///
/// White space at either end is written as references, as is every carriage return: parsers trim
/// the first and normalize the second.
///
/// # Errors
/// [`ResultsError::NotXml`]; what was appended until then stays.
#[inline]
pub(super) fn push_xml(out: &mut Vec<u8>, text: &str) -> Result<(), ResultsError> {
    let bytes = text.as_bytes();
    let blank_end = bytes.first() == Some(&b' ') || bytes.last() == Some(&b' ');
    if any(bytes, xml_special) || blank_end {
        return push_xml_escaped(out, text);
    }
    out.extend_from_slice(bytes);
    Ok(())
}

#[cold]
#[inline(never)]
fn push_xml_escaped(out: &mut Vec<u8>, text: &str) -> Result<(), ResultsError> {
    let blank = |c: char| matches!(c, ' ' | '\t' | '\n' | '\r');
    let start = text.len() - text.trim_start_matches(blank).len();
    let end = text.trim_end_matches(blank).len();
    for (index, character) in text.char_indices() {
        let at_end = index < start || index >= end;
        match character {
            '<' => out.extend_from_slice(b"&lt;"),
            '>' => out.extend_from_slice(b"&gt;"),
            '&' => out.extend_from_slice(b"&amp;"),
            '"' => out.extend_from_slice(b"&quot;"),
            '\r' => out.extend_from_slice(b"&#xD;"),
            ' ' if at_end => out.extend_from_slice(b"&#x20;"),
            '\t' if at_end => out.extend_from_slice(b"&#x9;"),
            '\n' if at_end => out.extend_from_slice(b"&#xA;"),
            '\t' | '\n' => out.push(character as u8),
            '\0'..='\u{1F}' | '\u{FFFE}' | '\u{FFFF}' => {
                return Err(ResultsError::NotXml { character });
            }
            _ => out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    Ok(())
}

/// The first character that XML 1.0 cannot carry, if any.
pub(super) fn not_xml(text: &str) -> Option<char> {
    let suspect = |b: u8| (b < b' ') | (b == 0xEF);
    if !any(text.as_bytes(), suspect) {
        return None;
    }
    text.chars().find(|&c| {
        matches!(c, '\0'..='\u{8}' | '\u{B}' | '\u{C}' | '\u{E}'..='\u{1F}' | '\u{FFFE}' | '\u{FFFF}')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_special_byte_is_found_at_every_place() {
        for length in 0..70 {
            for place in 0..length {
                let mut bytes = vec![b'a'; length];
                bytes[place] = b'"';
                assert!(any(&bytes, |b| b == b'"'), "{place} of {length}");
            }
            assert!(!any(&vec![b'a'; length], |b| b == b'"'), "none of {length}");
        }
    }

    #[test]
    fn exactly_what_an_iri_lacks_is_escaped() {
        for byte in 0..128_u8 {
            let mut out = Vec::new();
            push_turtle_iri(&mut out, char::from(byte).encode_utf8(&mut [0; 4]));
            let lacking = byte <= b' ' || br#"<>"{}|^`\"#.contains(&byte);
            assert_eq!(out.len() == 6, lacking, "{byte:#x}");
        }
    }

    #[test]
    fn an_iri_cannot_leave_its_brackets() {
        let mut out = Vec::new();
        push_turtle_iri(&mut out, "http://e/a> <b\t\\u");
        assert_eq!(out, br"http://e/a\u003E\u0020\u003Cb\u0009\u005Cu");
    }

    #[test]
    fn xml_keeps_blanks_at_the_ends_and_refuses_what_it_lacks() {
        let mut out = Vec::new();
        push_xml(&mut out, " a\tb\r\n ").unwrap();
        assert_eq!(out, b"&#x20;a\tb&#xD;&#xA;&#x20;");
        assert!(matches!(
            push_xml(&mut out, "a\u{1}"),
            Err(ResultsError::NotXml { character: '\u{1}' })
        ));
        assert!(push_xml(&mut out, "\u{FFFF}").is_err());
        assert!(push_xml(&mut out, "\u{FF21}").is_ok());
    }
}
