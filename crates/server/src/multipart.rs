//! Which documents are in a body of the type `multipart/form-data` (RFC 7578)?

use crate::error::Refusal;

/// Parts that one body may have.
const MOST_PARTS: usize = 1000;

/// One part of a body.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Part<'a> {
    /// Empty if it has none.
    pub(crate) file_name: &'a str,
    /// Its `Content-Type`, empty if it has none.
    pub(crate) content_type: &'a str,
    pub(crate) bytes: &'a [u8],
}

/// The parts of a body whose `Content-Type` is `kind`.
pub(crate) fn parts<'a>(kind: &str, body: &'a [u8]) -> Result<Vec<Part<'a>>, Refusal> {
    let malformed = || Refusal::bad_request("the body is no multipart/form-data");
    let boundary = parameter(kind, "boundary")
        .filter(|boundary| !boundary.is_empty())
        .ok_or_else(|| Refusal::bad_request("the Content-Type names no boundary"))?;
    // Each delimiter is on a line of its own, the first perhaps on the first line.
    let delimiter = format!("\r\n--{boundary}").into_bytes();
    let mut rest = match body.strip_prefix(&delimiter[2..]) {
        Some(rest) => rest,
        None => split(body, &delimiter).ok_or_else(malformed)?.1,
    };
    let mut parts = Vec::new();
    while !rest.starts_with(b"--") {
        let (_padding, after) = split(rest, b"\r\n").ok_or_else(malformed)?;
        let (part, after) = split(after, &delimiter).ok_or_else(malformed)?;
        parts.push(self::part(part).ok_or_else(malformed)?);
        if parts.len() > MOST_PARTS {
            let message = format!("the body has more than {MOST_PARTS} parts");
            return Err(Refusal::bad_request(message));
        }
        rest = after;
    }
    Ok(parts)
}

/// The head and the bytes of one part.
fn part(bytes: &[u8]) -> Option<Part<'_>> {
    let (head, bytes) = match bytes.strip_prefix(b"\r\n") {
        Some(bytes) => (&b""[..], bytes),
        None => split(bytes, b"\r\n\r\n")?,
    };
    let mut part = Part {
        file_name: "",
        content_type: "",
        bytes,
    };
    for line in std::str::from_utf8(head).ok()?.split("\r\n") {
        let Some((name, value)) = line.split_once(':') else {
            continue;
        };
        if name.eq_ignore_ascii_case("content-type") {
            part.content_type = value.trim();
        } else if name.eq_ignore_ascii_case("content-disposition") {
            part.file_name = parameter(value, "filename").unwrap_or_default();
        }
    }
    Some(part)
}

/// A parameter of a header's value, without its quotes.
fn parameter<'a>(value: &'a str, wanted: &str) -> Option<&'a str> {
    value.split(';').skip(1).find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        let is_wanted = name.trim().eq_ignore_ascii_case(wanted);
        is_wanted.then(|| value.trim().trim_matches('"'))
    })
}

/// What comes before and after the first `separator`.
fn split<'a>(bytes: &'a [u8], separator: &[u8]) -> Option<(&'a [u8], &'a [u8])> {
    let at = bytes
        .windows(separator.len())
        .position(|window| window == separator)?;
    Some((&bytes[..at], &bytes[at + separator.len()..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIND: &str = "multipart/form-data; boundary=\"b\"";

    #[test]
    fn parts_come_with_their_names_and_types() {
        let body = b"a preamble\r\n--b\r\nContent-Disposition: form-data; name=\"x\"; \
            filename=\"x.ttl\"\r\nContent-Type: text/turtle\r\n\r\n<a>\r\n<b>\r\n--b \r\n\r\nplain\
            \r\n--b--\r\nan epilogue";
        let parts = parts(KIND, body).expect("it is well formed");
        assert_eq!(
            parts,
            [
                Part {
                    file_name: "x.ttl",
                    content_type: "text/turtle",
                    bytes: b"<a>\r\n<b>",
                },
                Part {
                    file_name: "",
                    content_type: "",
                    bytes: b"plain",
                },
            ]
        );
    }

    #[test]
    fn bodies_that_are_cut_short_are_refused() {
        let whole = b"--b\r\nContent-Type: text/turtle\r\n\r\n<a>\r\n--b--";
        assert_eq!(parts(KIND, whole).map(|parts| parts.len()).ok(), Some(1));
        for end in 0..whole.len() - 1 {
            assert!(parts(KIND, &whole[..end]).is_err(), "{end}");
        }
        assert!(parts("multipart/form-data", whole).is_err());
    }
}
