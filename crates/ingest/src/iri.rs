//! Is this text, found between angle brackets and without escapes, an absolute IRI?
//!
//! Nearly all are plain: a scheme, a host, and a path of unreserved characters. These are told by
//! comparing sixteen bytes at a time; whatever else turns up is left to the full RFC 3987 parser
//! behind [`NamedNodeRef::new`], the same that `oxttl` asks.

use memchr::{memchr, memrchr};
use oxrdf::NamedNodeRef;

/// Whether `oxttl` would accept that IRI (it must be absolute). About 10 ns for a plain IRI.
pub(crate) fn is_valid(iri: &str) -> bool {
    is_plain(iri.as_bytes()) || NamedNodeRef::new(iri).is_ok()
}

/// A sufficient condition: `false` says nothing.
fn is_plain(iri: &[u8]) -> bool {
    let Some(after_scheme) = scheme_end(iri) else {
        return false;
    };
    let rest = &iri[after_scheme..];
    let found = classify(rest);
    if found & BAD != 0 {
        return false;
    }
    // A fragment holds no second number sign.
    if found & HASH != 0 && memchr(b'#', rest) != memrchr(b'#', rest) {
        return false;
    }
    // Without ':' and '@', an authority is nothing but a host, and what may be in a path may be
    // in a host.
    match rest {
        [b'/', b'/', authority @ ..] if found & COLON_OR_AT != 0 => authority
            .iter()
            .take_while(|b| !matches!(b, b'/' | b'?' | b'#'))
            .all(|b| !matches!(b, b':' | b'@')),
        _ => true,
    }
}

/// The offset after the colon that ends the scheme.
fn scheme_end(iri: &[u8]) -> Option<usize> {
    if iri.starts_with(b"http://") {
        return Some(5);
    }
    if !iri.first()?.is_ascii_alphabetic() {
        return None;
    }
    let end = iri
        .iter()
        .position(|b| !(b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.')))?;
    (iri[end] == b':').then_some(end + 1)
}

const BAD: u8 = 1;
const HASH: u8 = 2;
const COLON_OR_AT: u8 = 4;

/// Which kinds of bytes are there? No branches, so that the compiler can do sixteen at once.
#[inline(always)]
fn class(b: u8) -> u8 {
    let bad = (b <= b' ')
        | (b == b'"')
        | (b == b'%')
        | (b == b'<')
        | (b == b'>')
        | (b'['..=b'^').contains(&b)
        | (b == b'`')
        | (b'{'..=b'}').contains(&b)
        | (b >= 0x7f);
    let colon_or_at = (b == b':') | (b == b'@');
    u8::from(bad) | (u8::from(b == b'#') << 1) | (u8::from(colon_or_at) << 2)
}

#[inline]
fn classify_block(block: &[u8; 16]) -> u8 {
    block.iter().fold(0, |found, &b| found | class(b))
}

fn classify(bytes: &[u8]) -> u8 {
    let (blocks, _) = bytes.as_chunks::<16>();
    match bytes.last_chunk::<16>() {
        // The last sixteen bytes overlap the blocks before: looking twice does no harm.
        Some(last) => blocks
            .iter()
            .fold(classify_block(last), |found, b| found | classify_block(b)),
        None => bytes.iter().fold(0, |found, &b| found | class(b)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn common_iris_take_the_short_way() {
        for iri in [
            "http://www.Department0.University0.edu/FullProfessor7",
            "http://www.w3.org/1999/02/22-rdf-syntax-ns#type",
            "https://a.b/c?d=e&f#g",
            "urn:isbn:0451450523",
            "mailto:a@b.org",
            "http://dbpedia.org/resource/Category:Cities",
            "tag:x,2020:y",
        ] {
            assert!(is_plain(iri.as_bytes()), "{iri}");
        }
    }

    #[test]
    fn strange_iris_get_the_exact_answer() {
        for (iri, valid) in [
            ("http://a:80/", true),
            ("http://a:b/", false),
            ("http://u@a/", true),
            ("http://u@b@a/", false),
            ("http://a/%41", true),
            ("http://a/%4", false),
            ("http://a/#b#c", false),
            ("http://[::1]/", true),
            ("http://a/[", false),
            ("http://ü.de/ß", true),
            ("http://a/\u{e000}", false),
            ("http://a/?\u{e000}", true),
            ("relative", false),
            ("", false),
            (":", false),
            ("a:", true),
            ("1a:b", false),
            ("http://a b", false),
        ] {
            assert_eq!(is_valid(iri), valid, "{iri}");
        }
    }

    proptest! {
        #[test]
        fn a_plain_iri_is_one_for_the_full_parser(
            iri in "(http://|https:|u:|[a-z]{0,3}:?)[a-c:/?#@%\\[\\]!'\"<>{}|^`\\\\ é.~-]{0,40}"
        ) {
            if is_plain(iri.as_bytes()) {
                prop_assert!(NamedNodeRef::new(&iri).is_ok(), "{iri}");
            }
        }
    }
}
