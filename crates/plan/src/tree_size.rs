//! How much memory may the syntax tree of a text take?
//!
//! The parser cannot be stopped when memory runs out, so that what it may take is reserved before.
//! Trees are large for their texts: an item of a list may be two bytes of text, and is two triple
//! patterns. So the bound counts tokens, of which texts with long names have few.

use crate::data_terms::Declarations;
use crate::lexer::{Lexer, Token};
use crate::parse::nesting;
use crate::stack::MAX_NESTING;
use crate::update_text::Outline;

/// Bytes that a token takes at most in the parser's tree, in ours and in the plan together, as
/// `tests/parse_memory.rs` measures.
const BYTES_PER_TOKEN: usize = 2 << 10;
/// The same for a byte of the text, as of names and strings: each is copied some times.
const BYTES_PER_BYTE: usize = 8;
/// Bytes of one more copy of a variable, beside those of its name: each `SELECT *` has one of all
/// that are in scope.
const BYTES_PER_VARIABLE: usize = 80;
/// Copies of a variable in a pattern that is sent to an endpoint.
const COPIES_SENT: usize = 5;
/// Times that the IRI of a prefix is copied for a token that uses it.
const COPIES_OF_PREFIX: usize = 4;

/// An upper bound of the bytes that parsing and planning a text hold at a time.
///
/// Costs some nanoseconds for each byte of the text.
#[must_use]
pub fn tree_bytes(text: &str) -> usize {
    let (longest, declared) = declared_bytes(text);
    let per_token = BYTES_PER_TOKEN.saturating_add(longest.saturating_mul(COPIES_OF_PREFIX));
    let Counts {
        tokens,
        variables,
        calls_services,
    } = Counts::of(text);
    let levels = nesting(text).min(MAX_NESTING);
    let copies = if calls_services { COPIES_SENT } else { 1 };
    tokens
        .saturating_mul(per_token)
        .saturating_add(text.len().saturating_mul(BYTES_PER_BYTE))
        .saturating_add(variables.saturating_mul(levels * copies))
        .saturating_add(declared)
}

/// What a text has, at most.
struct Counts {
    tokens: usize,
    /// Bytes of one copy of each variable, as often as it is written.
    variables: usize,
    /// A pattern may be written again, for an endpoint.
    calls_services: bool,
}

impl Counts {
    fn of(text: &str) -> Self {
        let mut lexer = Lexer::new(text.as_bytes());
        let mut counts = Self {
            tokens: 0,
            variables: 0,
            calls_services: false,
        };
        // Where `<` may be an operator, what begins with a quote may be no string.
        let mut is_doubtful = false;
        while lexer.at < text.len() {
            let start = lexer.at;
            let token = lexer.token();
            let bytes = &lexer.bytes[start..lexer.at.min(text.len())];
            let inside = |parts: &[u8]| bytes.iter().filter(|byte| parts.contains(byte)).count();
            let is_variable = start > 0 && matches!(text.as_bytes()[start - 1], b'?' | b'$');
            let read = match (token, bytes[0]) {
                (Token::Space, _) => 0,
                (Token::Iri(_), _) => {
                    is_doubtful |= inside(b"'") > 0;
                    let is_plain = inside(b"?$(,&'|!=*+") == 0;
                    if is_plain { 1 } else { bytes.len() }
                }
                (Token::Other, b'"' | b'\'') if is_doubtful => bytes.len(),
                (Token::Other, b'"' | b'\'') => 1,
                _ => 1 + inside(b"-.%:"),
            };
            counts.tokens += read;
            // It may be read as something else, in which there may be anything.
            let is_anything = read > 1 && matches!(bytes[0], b'<' | b'"' | b'\'');
            counts.calls_services |= is_anything || bytes.eq_ignore_ascii_case(b"SERVICE");
            if is_variable || is_anything {
                counts.variables += bytes.len() + (1 + inside(b"?$")) * BYTES_PER_VARIABLE;
            }
        }
        counts
    }
}

/// Bytes of the longest IRI that the prologues declare, and of all that they declare.
fn declared_bytes(text: &str) -> (usize, usize) {
    let outline = Outline::new(text);
    let Ok(mut declarations) = Declarations::new(None) else {
        return (0, 0);
    };
    let (mut longest, mut sum) = (0, 0_usize);
    for run in &outline.runs {
        let Some(own) = outline.prologues_of(run).last() else {
            continue;
        };
        if own.start != run.body.start {
            continue;
        }
        let read = declarations.read(text, (own.start, own.end), &mut |bytes| {
            longest = longest.max(bytes);
            sum = sum.saturating_add(bytes);
            // What takes more than any memory has need not be read on.
            sum < usize::MAX / 2
        });
        if read.is_err() {
            break;
        }
    }
    (longest, sum)
}
