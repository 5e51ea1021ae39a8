//! What may an IRI or a language tag be that its standard refuses, though it can be read?
//!
//! Data has such terms, as `<http://e/[x]>`, `<http://e/%zz>`, `<http://e/#a#b>` and
//! `"..."@zh-classical`: what the grammars of Turtle and SPARQL let stand between the brackets or
//! after the sign, and RFC 3987 or RFC 5646 does not. A lenient load keeps them, and queries may name
//! them.

use std::borrow::Cow;

use oxiri::Iri;

/// Whether a text has a scheme and nothing that an IRI between `<` and `>` must not hold (IRIREF of
/// SPARQL's grammar): so it is an IRI, or looks like one to everybody but RFC 3987.
#[must_use]
pub fn is_readable_iri(text: &str) -> bool {
    let Some((scheme, _)) = text.split_once(':') else {
        return false;
    };
    let is_scheme = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte);
    let fits = |byte: u8| byte > b' ' && !b"<>\"{}|^`\\".contains(&byte);
    scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.bytes().all(is_scheme)
        && text.bytes().all(fits)
}

/// Whether a text is one that may follow the sign of a language tag (LANGTAG of SPARQL's grammar).
#[must_use]
pub fn is_readable_language(text: &str) -> bool {
    let mut parts = text.split('-');
    let first = parts.next().unwrap_or_default();
    !first.is_empty()
        && first.bytes().all(|byte| byte.is_ascii_alphabetic())
        && parts.all(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphanumeric()))
}

/// A base IRI without the segments `.` and `..` in its path.
///
/// RFC 3986 removes them from what a relative reference and the base come to together (section
/// 5.2.3), and `oxiri` from the reference alone. What is no valid IRI stays as it is.
#[must_use]
pub fn without_dots(base: &str) -> Cow<'_, str> {
    if !base.contains("/.") {
        return Cow::Borrowed(base);
    }
    let Ok(parsed) = Iri::parse(base) else {
        return Cow::Borrowed(base);
    };
    let path = parsed.path();
    if !path.starts_with('/') || path.starts_with("//") {
        return Cow::Borrowed(base);
    }
    // A reference that is a path with a root has nothing of the base's, and loses its dots.
    match parsed.resolve(path) {
        Ok(resolved) => {
            let authority = parsed.authority().map_or(0, |it| "//".len() + it.len());
            let begin = parsed.scheme().len() + ":".len() + authority;
            Cow::Owned(resolved.into_inner() + &base[begin + path.len()..])
        }
        Err(_) => Cow::Borrowed(base),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_as_an_iri_has_a_scheme_and_no_space() {
        for (text, is_readable) in [
            ("http://e/[x]", true),
            ("http://e/%zz", true),
            ("http://e/#a#b", true),
            ("http://e:port/", true),
            ("http://é/", true),
            ("a:", true),
            ("http://e/a b", false),
            ("http://e/a\u{7f}", true),
            ("http://e/\n", false),
            ("http://e/{x}", false),
            ("http://e/a\\b", false),
            ("1a:b", false),
            ("[x]:y", false),
            (":a", false),
            ("relative", false),
            ("", false),
        ] {
            assert_eq!(is_readable_iri(text), is_readable, "{text}");
        }
    }

    #[test]
    fn what_is_read_as_a_language_has_letters_first() {
        for text in [
            "en",
            "zh-classical",
            "be-x-old",
            "map-bms",
            "abcdefghijkl",
            "a-1-b",
        ] {
            assert!(is_readable_language(text), "{text}");
        }
        for text in ["", "-en", "en-", "en_US", "1", "en--ltr", "é", "en us"] {
            assert!(!is_readable_language(text), "{text}");
        }
    }

    #[test]
    fn dots_of_a_base_are_resolved() {
        for (base, expected) in [
            ("http://e/a/../b/", "http://e/b/"),
            ("http://e/a/./b/c?d/../e#f/..", "http://e/a/b/c?d/../e#f/.."),
            ("http://u@e:80/a/b/..", "http://u@e:80/a/"),
            ("file:///work/wt/../x.ttl", "file:///work/x.ttl"),
            ("file:/work/../x.ttl", "file:/x.ttl"),
            ("http://e/../../a", "http://e/a"),
            ("http://e/a..b/.c", "http://e/a..b/.c"),
            ("http://e/a?b/../c", "http://e/a?b/../c"),
            ("urn:a/../b", "urn:a/../b"),
            ("http://e/[/../x", "http://e/[/../x"),
        ] {
            assert_eq!(without_dots(base), expected);
        }
    }
}
