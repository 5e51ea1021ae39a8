//! Is the text a query, and where is it wrong if not?

use spargebra::SparqlParser;

use crate::algebra::Query;
use crate::arguments::Placeholders;
use crate::convert::Converter;
use crate::error::PlanError;
use crate::misread::{Wrong, comparison_message, parse_tokens};
use crate::repeats::refuse_repeats;
use crate::stack::{PLAIN_TEXT_BYTES, Stack};
use crate::update::parse_update;
use crate::update_text::{Outline, place_of};

/// Parses a query and converts it to the logical form.
///
/// `placeholders` are what stands in `text` for arguments, if anything does.
///
/// # Errors
/// [`PlanError::Syntax`], [`PlanError::Update`], [`PlanError::Base`], and what [`Converter`] refuses.
pub(crate) fn parse(
    text: &str,
    base: Option<&str>,
    placeholders: Option<&mut Placeholders>,
) -> Result<Query, PlanError> {
    if text.len() > PLAIN_TEXT_BYTES {
        refuse_repeats(text)?;
    }
    let parser = parser(base)?;
    let parsed = match parse_tokens(text, |text| parser.clone().parse_query(text)) {
        Ok(parsed) => parsed,
        Err(Wrong::Comparison(iri)) => {
            let (line, column) = place_of(text, iri.start);
            return Err(PlanError::Syntax {
                line,
                column,
                message: comparison_message(text, iri),
            });
        }
        Err(Wrong::Parser(error)) => {
            let is_update = !begins_as_query(text)
                && parse_update(text, base, None).is_ok_and(|update| !update.operations.is_empty());
            return Err(if is_update {
                PlanError::Update
            } else {
                let (line, column, message) = place(&error.to_string());
                syntax_error(line, column, &message, text, "query")
            });
        }
    };
    Converter::new(text, placeholders).query(parsed)
}

/// True if behind its prologue a text has the name of a form: it is no update then, and need not
/// be parsed as one.
fn begins_as_query(text: &str) -> bool {
    const FORMS: [&[u8]; 4] = [b"SELECT", b"ASK", b"CONSTRUCT", b"DESCRIBE"];
    let outline = Outline::new(text);
    let first = outline.runs.iter().flat_map(|run| &run.operations).next();
    let word = first.map_or(&[][..], |first| &text.as_bytes()[first.range.start..]);
    FORMS.iter().any(|form| {
        word.get(..form.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(form))
    })
}

/// Runs `work` with a stack that fits a text of this size and nesting.
///
/// The parser and the conversion recurse over the text's structure, and a query must not be able
/// to overflow the stack of the thread that it happens to be planned on.
pub(crate) fn on_fitting_stack<T: Send>(
    text: &str,
    work: impl FnOnce() -> Result<T, PlanError> + Send,
) -> Result<T, PlanError> {
    Stack::fitting(text.len(), nesting(text))?.run(work)?
}

/// An upper bound of the brackets open at once (those in strings count too).
pub(crate) fn nesting(text: &str) -> usize {
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

/// A parser that resolves relative IRIs against `base`.
///
/// # Errors
/// [`PlanError::Base`].
pub(crate) fn parser(base: Option<&str>) -> Result<SparqlParser, PlanError> {
    let Some(base) = base else {
        return Ok(SparqlParser::new());
    };
    SparqlParser::new()
        .with_base_iri(base)
        .map_err(|error| PlanError::Base {
            iri: base.to_owned(),
            message: error.to_string(),
        })
}

/// Line, column and the rest of a message of the parser, which tells the position only there:
/// `error at LINE:COLUMN: expected ...`.
pub(crate) fn place(message: &str) -> (usize, usize, String) {
    let position = message.strip_prefix("error at ").and_then(|rest| {
        let (line, rest) = rest.split_once(':')?;
        let (column, rest) = rest.split_once(':')?;
        Some((line.parse().ok()?, column.parse().ok()?, rest.trim()))
    });
    let (line, column, message) = position.unwrap_or((1, 1, message));
    (line, column, message.to_owned())
}

/// The error that the parser's `message` tells of a place of the text, which is a `whole`.
pub(crate) fn syntax_error(
    line: usize,
    column: usize,
    message: &str,
    text: &str,
    whole: &str,
) -> PlanError {
    PlanError::Syntax {
        line,
        column,
        message: readable(message, &token_at(text, line, column, whole)),
    }
}

/// What stands at a place of the text, for a message.
fn token_at(text: &str, line: usize, column: usize, whole: &str) -> String {
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
        None => return format!("end of the {whole}"),
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
