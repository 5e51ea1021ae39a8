//! Where does the parser read tokens otherwise than SPARQL has them?
//!
//! - SPARQL's keywords are the same in all cases; the parser knows `true` and `false` in lower
//!   case only. Where it refuses a text that has them otherwise, it is given them in lower case.
//! - SPARQL takes the longest token that fits, so that `?x<?a&&?b>?y` has an IRI where no operator
//!   is; the parser goes back and reads two comparisons. Where a text that it accepts has an IRI
//!   that could be read so, it is given another in its place, of which no operator can be made.

use std::ops::Range;

use memchr::{memchr_iter, memmem};
use spargebra::SparqlSyntaxError;

use crate::lexer::{Lexer, Token, iri_at};

/// What stands in the place of an IRI to see that it was read as one. No expression is between a
/// `<` and a `>` that are both operators: `a < z:z > b` compares twice, which SPARQL does not have.
const PLAIN_IRI: &str = "z:z";

/// Most characters of an IRI that a message shows.
const MOST_SHOWN: usize = 40;

/// Why a text is wrong.
pub(crate) enum Wrong {
    /// The parser says so.
    Parser(SparqlSyntaxError),
    /// The parser takes this IRI, `<` and `>` included, for operators and what is between them.
    Comparison(Range<usize>),
}

/// The message about an IRI of the text that [`Wrong::Comparison`] names.
pub(crate) fn comparison_message(text: &str, iri: Range<usize>) -> String {
    let mut shown: String = text[iri.clone()].chars().take(MOST_SHOWN).collect();
    if shown.len() < iri.len() {
        shown.push('…');
    }
    format!("{shown} is read as an IRI; spaces around < and > make comparisons of it")
}

/// What `parse` makes of a text, read in the tokens that SPARQL has.
///
/// Other texts than `text` are parsed only where it has a boolean in upper case or an IRI that may
/// be misread; they are as long in lines, and in columns up to the first such IRI.
///
/// # Errors
/// [`Wrong`], whose places are those of `text`.
pub(crate) fn parse_tokens<T>(
    text: &str,
    parse: impl Fn(&str) -> Result<T, SparqlSyntaxError>,
) -> Result<T, Wrong> {
    let refused = match parse(text) {
        Ok(parsed) => return refuse_misread(text, parsed, parse),
        Err(error) => error,
    };
    let Some(lowered) = with_lower_booleans(text) else {
        return Err(Wrong::Parser(refused));
    };
    let parsed = parse(&lowered).map_err(Wrong::Parser)?;
    refuse_misread(&lowered, parsed, parse)
}

/// The text with all booleans in lower case; none if they are.
fn with_lower_booleans(text: &str) -> Option<String> {
    let mut lowered = None;
    let mut lexer = Lexer::new(text.as_bytes());
    while lexer.at < text.len() {
        let Token::Word(word) = lexer.token() else {
            continue;
        };
        let sign = word.start.checked_sub(1).map(|at| text.as_bytes()[at]);
        for part in keywords(&text.as_bytes()[word.clone()], sign) {
            let range = word.start + part.start..word.start + part.end;
            let keyword = &text[range.clone()];
            let is = |name: &str| keyword.eq_ignore_ascii_case(name) && keyword != name;
            if is("true") || is("false") {
                let lowered = lowered.get_or_insert_with(|| text.to_owned());
                lowered[range].make_ascii_lowercase();
            }
        }
    }
    lowered
}

/// What may be keywords of a word: signs and points, as of `?x-TRUE.`, part them, and what belongs
/// to the sign before the word is the name of a variable or a language.
fn keywords(word: &[u8], sign: Option<u8>) -> impl Iterator<Item = Range<usize>> {
    let owned = match sign {
        Some(b'@') => usize::MAX,
        Some(b'?' | b'$') => 1,
        _ => 0,
    };
    let mut start = 0;
    word.split(|byte| matches!(byte, b'-' | b'.' | b'%'))
        .map(move |part| {
            let range = start..start + part.len();
            start = range.end + 1;
            range
        })
        .skip(owned)
}

/// `parsed`, unless the parser read an IRI of the text as something else.
fn refuse_misread<T>(
    text: &str,
    parsed: T,
    parse: impl Fn(&str) -> Result<T, SparqlSyntaxError>,
) -> Result<T, Wrong> {
    let iris = doubtful_iris(text);
    let is_wrong = |count: usize| parse(&with_plain_iris(text, &iris[..count])).is_err();
    if iris.is_empty() || !is_wrong(iris.len()) {
        return Ok(parsed);
    }
    // As many of the first as can be replaced are IRIs to the parser, too; the next one is not.
    let (mut fine, mut wrong) = (0, iris.len());
    while wrong - fine > 1 {
        let middle = fine.midpoint(wrong);
        match is_wrong(middle) {
            true => wrong = middle,
            false => fine = middle,
        }
    }
    let iri = &iris[fine];
    Err(Wrong::Comparison(iri.start - 1..iri.end + 1))
}

/// The IRIs of a text that the parser may have read as something else, without `<` and `>`.
///
/// Comparisons are between round brackets only.
fn doubtful_iris(text: &str) -> Vec<Range<usize>> {
    let bytes = text.as_bytes();
    let mut iris = Vec::new();
    // Most texts have none, and this is faster than a lexer.
    let may_have = |at| iri_at(bytes, at).is_some_and(|iri| is_doubtful(&bytes[iri]));
    if !memchr_iter(b'<', bytes).any(may_have) {
        return iris;
    }
    let mut lexer = Lexer::new(bytes);
    let mut open = Vec::new();
    while lexer.at < bytes.len() {
        let start = lexer.at;
        match lexer.token() {
            Token::Open => open.push(bytes[start]),
            Token::Close => drop(open.pop()),
            Token::Iri(iri) if open.last() == Some(&b'(') && is_doubtful(&bytes[iri.clone()]) => {
                iris.push(iri);
            }
            _ => (),
        }
    }
    iris
}

/// True if what is between `<` and `>` could be read as part of expressions.
///
/// If both are operators, they are of different comparisons, which `&&`, a comma or a bracket
/// parts: all else that does is no part of IRIs. Or else `>` is in a string or in a comment.
fn is_doubtful(iri: &[u8]) -> bool {
    let parts = |byte: &u8| matches!(byte, b'(' | b')' | b',' | b'\'' | b'#');
    (iri.iter().any(parts) || memmem::find(iri, b"&&").is_some()) && !has_authority(iri)
}

/// True of IRIs that go on with `//` after a scheme, as most do. No expression does.
fn has_authority(iri: &[u8]) -> bool {
    let scheme = memmem::find(iri, b"://").map_or(&[][..], |end| &iri[..end]);
    scheme.first().is_some_and(u8::is_ascii_alphabetic)
        && scheme
            .iter()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.'))
}

fn with_plain_iris(text: &str, iris: &[Range<usize>]) -> String {
    let mut replaced = String::with_capacity(text.len() + PLAIN_IRI.len() * iris.len());
    let mut end = 0;
    for iri in iris {
        replaced.push_str(&text[end..iri.start]);
        replaced.push_str(PLAIN_IRI);
        end = iri.end;
    }
    replaced.push_str(&text[end..]);
    replaced
}

#[cfg(test)]
#[path = "misread_tests.rs"]
mod tests;
