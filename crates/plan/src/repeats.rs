//! Does a text repeat what the parser compares each with all before?
//!
//! The parser looks through all columns of a SELECT for each of them, and likewise through
//! aggregates and what BIND assigns in a group, and cannot be stopped while it does. Texts with more
//! than anybody writes are refused before it sees them.

use crate::error::PlanError;
use crate::lexer::{Lexer, Token};

/// Columns of a SELECT, and aggregates of a text.
const MAX_COLUMNS: usize = 8192;
/// BINDs of a group. Each is a level of nesting, of which there may not be as many anyway.
const MAX_BINDS: usize = 512;

/// `!` in a row, which the parser reads by recursion before it refuses two of them.
const MAX_NOTS: usize = 16;

const AGGREGATES: [&[u8]; 7] = [
    b"COUNT",
    b"SUM",
    b"MIN",
    b"MAX",
    b"AVG",
    b"SAMPLE",
    b"GROUP_CONCAT",
];

/// Refuses a text that would keep the parser for long, in one pass.
///
/// # Errors
/// [`PlanError::TooLarge`].
pub(crate) fn refuse_repeats(text: &str) -> Result<(), PlanError> {
    let too_large = |what, limit| Err(PlanError::TooLarge { what, limit });
    let mut lexer = Lexer::new(text.as_bytes());
    let (mut aggregates, mut nots) = (0_usize, 0_usize);
    // For each bracket that is open: its BINDs, and the columns of a SELECT in it.
    let mut open = vec![(0_usize, None::<usize>)];
    while lexer.at < text.len() {
        let start = lexer.at;
        let token = lexer.token();
        let byte = lexer.bytes[start];
        let Some((binds, columns)) = open.last_mut() else {
            open.push((0, None));
            continue;
        };
        nots = match (&token, byte) {
            (Token::Space, _) => nots,
            (Token::Other, b'!') => nots + 1,
            _ => 0,
        };
        match token {
            Token::Word(word) => {
                let word = &lexer.bytes[word];
                let is = |keyword: &[u8]| word.eq_ignore_ascii_case(keyword);
                if is(b"SELECT") {
                    *columns = Some(0);
                } else if is(b"WHERE") || is(b"FROM") {
                    *columns = None;
                } else if is(b"BIND") {
                    *binds += 1;
                }
                aggregates += usize::from(AGGREGATES.iter().any(|name| is(name)));
            }
            Token::Open => {
                if byte == b'{' {
                    *columns = None;
                }
                *columns = columns.map(|columns| columns + 1);
                open.push((0, None));
            }
            Token::Close => drop(open.pop()),
            Token::Other if matches!(byte, b'?' | b'$') => {
                *columns = columns.map(|columns| columns + 1);
            }
            _ => (),
        }
        let Some((binds, columns)) = open.last() else {
            continue;
        };
        if *binds > MAX_BINDS {
            return too_large("BINDs in a group", MAX_BINDS);
        }
        if columns.is_some_and(|columns| columns > MAX_COLUMNS) {
            return too_large("columns of a SELECT", MAX_COLUMNS);
        }
        if aggregates > MAX_COLUMNS {
            return too_large("aggregates", MAX_COLUMNS);
        }
        if nots > MAX_NOTS {
            return too_large("negations in a row", MAX_NOTS);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> Option<&'static str> {
        match refuse_repeats(text) {
            Ok(()) => None,
            Err(PlanError::TooLarge { what, .. }) => Some(what),
            Err(other) => panic!("{other}"),
        }
    }

    #[test]
    fn what_the_parser_compares_with_all_before_is_bounded() {
        let numbered = |part: &str, count: usize| -> String {
            (0..count)
                .map(|number| part.replace('#', &number.to_string()))
                .collect()
        };
        for (count, columns) in [(8000, None), (9000, Some("columns of a SELECT"))] {
            for column in ["(1 AS ?x#)", "?x# ", "(EXISTS { ?s ?p ?o } AS $x#)"] {
                let columns_of = numbered(column, count);
                let text = format!("SELECT {columns_of} WHERE {{}}");
                assert_eq!(refused(&text), columns);
                let text = format!("ASK {{ {{ SELECT {columns_of} {{}} }} }}");
                assert_eq!(refused(&text), columns);
            }
        }
        let pattern = numbered("?x# ?y# ?z# .", 9000);
        assert_eq!(refused(&format!("SELECT ?x {{ {pattern} }}")), None);
        let binds = numbered("BIND(1 AS ?x#)", 600);
        let text = format!("ASK {{ {binds} }}");
        assert_eq!(refused(&text), Some("BINDs in a group"));
        assert_eq!(refused(&"{ BIND(1 AS ?x) }".repeat(600)), None);
        let sums = numbered("SUM(?x#)+", 9000);
        let text = format!("SELECT ({sums} 1 AS ?x) {{}}");
        assert_eq!(refused(&text), Some("aggregates"));
        assert_eq!(refused(")}]"), None);
        let nots = |count| format!("ASK {{ FILTER({}?x) }}", "! ".repeat(count));
        assert_eq!(refused(&nots(MAX_NOTS)), None);
        assert_eq!(refused(&nots(1_000)), Some("negations in a row"));
    }
}
