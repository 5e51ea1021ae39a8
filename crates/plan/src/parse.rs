//! Is the text a query, and where is it wrong if not?

use spargebra::SparqlParser;

use crate::algebra::Query;
use crate::arguments::Placeholders;
use crate::convert::Converter;
use crate::error::PlanError;

/// Bytes of text above which a query is refused.
pub(crate) const MAX_TEXT_BYTES: usize = 4 << 20;
/// Bytes of text, or brackets open at once, above which a text is handled on a large stack.
const PLAIN_TEXT_BYTES: usize = 2 << 10;
const PLAIN_NESTING: usize = 16;
/// Brackets open at once above which a query is refused.
const MAX_NESTING: usize = 256;
/// Stack for large texts: the parser recurses over chains of operators as well as brackets.
const LARGE_STACK_BYTES: usize = 64 << 20;
const STACK_BYTES_PER_TEXT_BYTE: usize = 512;

/// Parses a query and converts it to the logical form.
///
/// `placeholders` are what stands in `text` for arguments, if anything does.
///
/// # Errors
/// [`PlanError::Syntax`], [`PlanError::Base`], and what [`Converter`] refuses.
pub(crate) fn parse(
    text: &str,
    base: Option<&str>,
    placeholders: Option<&mut Placeholders>,
) -> Result<Query, PlanError> {
    let mut parser = SparqlParser::new();
    if let Some(base) = base {
        parser = parser
            .with_base_iri(base)
            .map_err(|error| PlanError::Base {
                iri: base.to_owned(),
                message: error.to_string(),
            })?;
    }
    let parsed = match parser.clone().parse_query(text) {
        Ok(parsed) => parsed,
        Err(error) => {
            let is_update = parser
                .parse_update(text)
                .is_ok_and(|update| !update.operations.is_empty());
            return Err(if is_update {
                PlanError::unsupported("updates")
            } else {
                syntax_error(&error.to_string(), text)
            });
        }
    };
    Converter::new(text, placeholders).query(parsed)
}

/// Runs `work` with a stack that fits a text of this size and nesting.
///
/// The parser and the conversion recurse over the text's structure, and a query must not be able
/// to overflow the stack of the thread that it happens to be planned on.
pub(crate) fn on_fitting_stack<T: Send>(
    text: &str,
    work: impl FnOnce() -> Result<T, PlanError> + Send,
) -> Result<T, PlanError> {
    if text.len() > MAX_TEXT_BYTES {
        return Err(PlanError::TooLarge {
            what: "bytes of text",
            limit: MAX_TEXT_BYTES,
        });
    }
    let nesting = nesting(text);
    if nesting > MAX_NESTING {
        return Err(PlanError::TooLarge {
            what: "brackets open at once",
            limit: MAX_NESTING,
        });
    }
    if text.len() <= PLAIN_TEXT_BYTES && nesting <= PLAIN_NESTING {
        return work();
    }
    let stack = LARGE_STACK_BYTES + text.len() * STACK_BYTES_PER_TEXT_BYTE;
    std::thread::scope(|scope| {
        let handle = std::thread::Builder::new()
            .name("plan".to_owned())
            .stack_size(stack)
            .spawn_scoped(scope, work);
        match handle {
            Ok(handle) => match handle.join() {
                Ok(result) => result,
                Err(panic) => std::panic::resume_unwind(panic),
            },
            Err(_) => Err(PlanError::TooLarge {
                what: "bytes of text for the memory that is left",
                limit: PLAIN_TEXT_BYTES,
            }),
        }
    })
}

/// An upper bound of the brackets open at once (those in strings count too).
fn nesting(text: &str) -> usize {
    let (mut open, mut most) = (0usize, 0);
    for byte in text.bytes() {
        match byte {
            b'(' | b'[' | b'{' => {
                open += 1;
                most = most.max(open);
            }
            b')' | b']' | b'}' => open = open.saturating_sub(1),
            _ => (),
        }
    }
    most
}

/// The parser tells the position only in its message: `error at LINE:COLUMN: expected ...`.
fn syntax_error(message: &str, text: &str) -> PlanError {
    let position = message.strip_prefix("error at ").and_then(|rest| {
        let (line, rest) = rest.split_once(':')?;
        let (column, rest) = rest.split_once(':')?;
        Some((line.parse().ok()?, column.parse().ok()?, rest.trim()))
    });
    let (line, column, message) = position.unwrap_or((1, 1, message));
    PlanError::Syntax {
        line,
        column,
        message: readable(message, &token_at(text, line, column)),
    }
}

/// What stands at a place of the text, for a message.
fn token_at(text: &str, line: usize, column: usize) -> String {
    let rest: String = text
        .lines()
        .nth(line.saturating_sub(1))
        .unwrap_or_default()
        .chars()
        .skip(column.saturating_sub(1))
        .collect();
    let word = |c: char| c.is_alphanumeric() || matches!(c, '_' | ':' | '?' | '$' | '-');
    let rest = rest.trim_start();
    let token: String = match rest.chars().next() {
        Some(first) if word(first) => rest.chars().take_while(|c| word(*c)).take(40).collect(),
        Some(first) => first.to_string(),
        None if text.lines().count() > line => return "end of the line".to_owned(),
        // The parser looks past a bracket that closes too early.
        None if nesting_at_end(text) == 0 && text.trim_end().ends_with('}') => "}".to_owned(),
        None => return "end of the query".to_owned(),
    };
    format!("'{token}'")
}

/// Braces still open at the end of a text.
fn nesting_at_end(text: &str) -> usize {
    text.bytes().fold(0_usize, |open, byte| match byte {
        b'{' => open + 1,
        b'}' => open.saturating_sub(1),
        _ => open,
    })
}

/// So many expected tokens are listed; more would not be read.
const MOST_EXPECTED: usize = 6;

/// The parser's message without its classes of characters and our oracle's extensions.
fn readable(message: &str, found: &str) -> String {
    let Some(list) = message.strip_prefix("expected ") else {
        return message.to_owned();
    };
    let expected: Vec<&str> = list
        .strip_prefix("one of ")
        .unwrap_or(list)
        .split(", ")
        .map(|token| token.trim_matches(['"', '`']))
        .filter(|token| !token.starts_with('[') && !token.starts_with("['") && !token.is_empty())
        .filter(|token| !matches!(*token, "LATERAL" | "ADJUST" | "SERVICE" | "#" | "EOF"))
        .collect();
    // What the parser checks beyond the grammar it says in words.
    if let Some(said) = expected.iter().find(|token| token.contains(' ')) {
        return (*said).to_owned();
    }
    match expected.len() {
        0 => format!("unexpected {found}"),
        1 => format!("unexpected {found}, expected {}", expected[0]),
        2..=MOST_EXPECTED => {
            format!(
                "unexpected {found}, expected one of {}",
                expected.join(", ")
            )
        }
        _ => format!("unexpected {found}"),
    }
}
