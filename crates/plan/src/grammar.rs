//! Is a text a query or an update, as far as its grammar goes? What planning it says first, for whoever has no data to
//! plan for.

use jindou_syntax::{Options, parse_query, parse_update};

use crate::error::PlanError;
use crate::planner::MAX_TEXT_BYTES;
use crate::update::MAX_UPDATE_BYTES;

/// Parses the text of a query, with at most so much memory for its tree.
///
/// # Errors
/// What is wrong with its grammar, as [`plan`](crate::plan) says it, and [`PlanError::MemoryRefused`].
pub fn check_query(text: &str, base: Option<&str>, most_bytes: usize) -> Result<(), PlanError> {
    check(text, MAX_TEXT_BYTES, (base, most_bytes), |text, options| {
        parse_query(text, options).map(drop)
    })
}

/// Parses the text of an update, with at most so much memory for its tree.
///
/// # Errors
/// What is wrong with its grammar, as [`parse_update`](crate::parse_update) says it, and
/// [`PlanError::MemoryRefused`].
pub fn check_update(text: &str, base: Option<&str>, most_bytes: usize) -> Result<(), PlanError> {
    check(
        text,
        MAX_UPDATE_BYTES,
        (base, most_bytes),
        |text, options| parse_update(text, options).map(drop),
    )
}

fn check(
    text: &str,
    limit: usize,
    (base, most_bytes): (Option<&str>, usize),
    parse: impl FnOnce(&str, Options<'_>) -> Result<(), jindou_syntax::Error>,
) -> Result<(), PlanError> {
    if text.len() > limit {
        let what = "bytes of text";
        return Err(PlanError::TooLarge { what, limit });
    }
    let mut left = most_bytes;
    let mut reserve = |bytes: usize| {
        let rest = left.checked_sub(bytes);
        left = rest.unwrap_or(left);
        rest.is_some()
    };
    let options = Options {
        base,
        reserve: Some(&mut reserve),
        is_over: None,
    };
    parse(text, options).map_err(|error| PlanError::of_syntax(error, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_is_right_is_so_while_there_is_memory() {
        let query = "SELECT * { ?s <p> \"o\"@en ; <q> [] }";
        let (base, plenty) = (Some("http://e/query"), 1 << 20);
        assert_eq!(check_query(query, base, plenty), Ok(()));
        assert_eq!(check_query(query, base, 0), Err(PlanError::MemoryRefused));
        let update = "CLEAR ALL; INSERT DATA { <a> <b> 1 }";
        assert_eq!(check_update(update, base, plenty), Ok(()));
        assert_eq!(check_update(update, base, 0), Err(PlanError::MemoryRefused));
    }
}
