//! How is an IRI written as a prefixed name, in Turtle and in SPARQL?

use crate::chars::{is_base, is_inner, is_start};

/// Whether a text is the name of a prefix, `PN_PREFIX` of the grammars, or empty.
#[must_use]
pub fn is_prefix_name(name: &str) -> bool {
    let Some(first) = name.chars().next() else {
        return true;
    };
    is_base(first) && !name.ends_with('.') && name.chars().all(|c| is_inner(c) || c == '.')
}

/// Appends the local part of a prefixed name, `PN_LOCAL` of the grammars, that stands for this end of
/// an IRI. Appends nothing and gives `false` where there is none, and where it would hide the levels of
/// a path: an IRI is easier to read than `e:a\/b`.
///
/// ```
/// let mut out = Vec::new();
/// assert!(jindou_syntax::push_local_name(&mut out, "a.b~."));
/// assert_eq!(out, br"a.b\~\.");
/// assert!(!jindou_syntax::push_local_name(&mut out, "a/b"));
/// assert_eq!(out, br"a.b\~\.");
/// ```
pub fn push_local_name(out: &mut Vec<u8>, local: &str) -> bool {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    if local.bytes().all(|byte| plain(&byte)) {
        out.extend_from_slice(local.as_bytes());
        return true;
    }
    let begin = out.len();
    for (place, c) in local.char_indices() {
        let (is_first, rest) = (place == 0, &local[place + c.len_utf8()..]);
        let stays = match c {
            ':' | '0'..='9' => true,
            '.' => !is_first && !rest.is_empty(),
            '%' => rest.len() >= 2 && rest.bytes().take(2).all(|byte| byte.is_ascii_hexdigit()),
            _ if is_first => is_start(c),
            _ => is_inner(c),
        };
        match c {
            _ if stays => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
            '-' | '.' | '%' | '~' | '!' | '$' | '&' | '\'' | '(' | ')' | '*' | '+' | ',' | ';'
            | '=' | '@' => out.extend_from_slice(&[b'\\', c as u8]),
            _ => {
                out.truncate(begin);
                return false;
            }
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_have_names_of_the_grammar() {
        for name in ["", "a", "foaf", "é", "a.b", "a-1", "a_", "ex.-1"] {
            assert!(is_prefix_name(name), "{name}");
        }
        for name in [
            "1a", "_a", "-", "a.", ".a", "a b", "a:", "a/b", "\u{b7}a", "a\n",
        ] {
            assert!(!is_prefix_name(name), "{name:?}");
        }
    }

    #[test]
    fn local_names_are_escaped_where_the_grammar_asks_for_it() {
        let written = |local: &str| {
            let mut out = b"e:".to_vec();
            let is_written = push_local_name(&mut out, local);
            assert!(is_written || out == b"e:", "{local}");
            is_written.then(|| String::from_utf8(out).expect("it is text"))
        };
        for (local, expected) in [
            ("", "e:"),
            ("a", "e:a"),
            ("_1", "e:_1"),
            ("1a", "e:1a"),
            ("a.b", "e:a.b"),
            ("a..b", "e:a..b"),
            ("a.", r"e:a\."),
            (".", r"e:\."),
            (".a", r"e:\.a"),
            ("-a-", r"e:\-a-"),
            ("a:b", "e:a:b"),
            ("é\u{b7}", "e:é\u{b7}"),
            ("%41%4g", r"e:%41\%4g"),
            ("a%", r"e:a\%"),
            ("a%é", r"e:a\%é"),
            ("~!$&'()*+,;=@", r"e:\~\!\$\&\'\(\)\*\+\,\;\=\@"),
        ] {
            assert_eq!(written(local).as_deref(), Some(expected), "{local}");
        }
        for local in [
            "a/b", "a#", "?a", "\u{b7}", "a b", "a\u{d7}", "[", "a<", "\\",
        ] {
            assert_eq!(written(local), None, "{local}");
        }
    }
}
