//! Events in [RDF Patch](https://jena.apache.org/documentation/rdf-patch/): a transaction is one.
//!
//! Rows that add are statements. One that deletes is refused: what was in a window stays there until it
//! expires. Headers and prefixes say nothing about a stream and are passed over. A blank node is the same
//! in all of a patch, and another one in the next.

use std::ops::Range;

use super::{EventError, Reading};
use crate::EngineError;

const NESTED: &str = "TX begins a transaction within another";
const NOT_BEGUN: &str = "TC or TA ends a transaction that was not begun";
const OUTSIDE: &str = "A stands outside of the transactions that the patch has";
const OPEN: &str = "the last transaction is neither committed by TC nor aborted by TA";

/// Rows of one transaction.
struct Transaction {
    /// Where its rows are.
    rows: Range<usize>,
    first_line: u64,
    is_kept: bool,
}

/// Adds what is committed.
pub(super) fn read(reading: &mut Reading<'_>, mut text: Vec<u8>) -> Result<(), EngineError> {
    let transactions =
        transactions(&mut text).map_err(|(line, error)| reading.wrong(line, error))?;
    let scope = reading.blank_scopes(1)?;
    for transaction in transactions {
        let begin = reading.tuples.len();
        // One that is aborted is to be right, too.
        reading.lines(&text[transaction.rows], scope, transaction.first_line)?;
        match transaction.is_kept {
            true => reading.end_event(Some(transaction.first_line))?,
            false => reading.tuples.truncate(begin),
        }
    }
    Ok(())
}

/// Finds the transactions of a patch, and leaves nothing but the statements of its text.
fn transactions(text: &mut [u8]) -> Result<Vec<Transaction>, (u64, EventError)> {
    let mut transactions = Vec::new();
    let mut open: Option<(usize, u64)> = None;
    let mut loose = None;
    let (mut at, mut number) = (0, 0);
    for line in text.split_mut(|byte| *byte == b'\n') {
        number += 1;
        let begin = at;
        at += line.len() + 1;
        let wrong = |error| (number, error);
        let outside = |what| (number, EventError::Transaction { what });
        match Row::of(line).map_err(wrong)? {
            Row::Statement => {
                if open.is_none() {
                    loose.get_or_insert(number);
                }
                continue;
            }
            Row::Begin if open.is_some() => return Err(outside(NESTED)),
            Row::Begin => open = Some((begin, number)),
            Row::End { is_kept } => {
                let (begin, first_line) = open.take().ok_or_else(|| outside(NOT_BEGUN))?;
                transactions.push(Transaction {
                    rows: begin..at - 1,
                    first_line,
                    is_kept,
                });
            }
            Row::Other => {}
        }
        line.fill(b' ');
    }
    match (open, loose) {
        (Some((_, line)), _) => Err((line, EventError::Transaction { what: OPEN })),
        (None, Some(line)) if !transactions.is_empty() => {
            Err((line, EventError::Transaction { what: OUTSIDE }))
        }
        (None, Some(_)) => Ok(vec![Transaction {
            rows: 0..text.len(),
            first_line: 1,
            is_kept: true,
        }]),
        (None, None) => Ok(transactions),
    }
}

/// What a line of a patch is.
enum Row {
    /// What remains of the line is a statement.
    Statement,
    Begin,
    End {
        is_kept: bool,
    },
    /// Nothing that a stream has to do with.
    Other,
}

impl Row {
    fn of(line: &mut [u8]) -> Result<Self, EventError> {
        let begin = line.len() - line.trim_ascii_start().len();
        let row = line.trim_ascii();
        if row.is_empty() || row[0] == b'#' {
            return Ok(Self::Other);
        }
        let is_part = |byte: &u8| byte.is_ascii_alphanumeric();
        let length = row.iter().take_while(|byte| is_part(byte)).count();
        let code = &row[..length];
        let is_bare = without_comment(&row[length..]) == b".";
        let ends = without_comment(row).ends_with(b".");
        let wanted = match code {
            b"A" => {
                line[begin] = b' ';
                write_blank_nodes(line);
                return Ok(Self::Statement);
            }
            b"D" => return Err(EventError::Delete),
            b"TX" | b"TB" if is_bare => return Ok(Self::Begin),
            b"TC" | b"TA" if is_bare => {
                let is_kept = code == b"TC";
                return Ok(Self::End { is_kept });
            }
            b"H" | b"PA" | b"PD" if ends => return Ok(Self::Other),
            b"TX" | b"TB" | b"TC" | b"TA" => "its code and a point",
            b"H" | b"PA" | b"PD" => "its code, what that has, and a point",
            _ => "a code (A, TX, TC, TA, H, PA or PD), what that has, and a point",
        };
        Err(EventError::Row { wanted })
    }
}

/// A row without the comment after its last point.
fn without_comment(row: &[u8]) -> &[u8] {
    let point = memchr::memrchr(b'.', row);
    let comment = point.and_then(|point| {
        let after = row[point + 1..].trim_ascii_start();
        after.starts_with(b"#").then_some(&row[..=point])
    });
    comment.unwrap_or(row).trim_ascii()
}

/// Writes blank nodes as N-Quads does: `_:b` for `<_:b>`, as Jena has it.
fn write_blank_nodes(line: &mut [u8]) {
    let (mut in_string, mut is_escaped, mut in_node) = (false, false, false);
    for at in 0..line.len() {
        match line[at] {
            _ if is_escaped => is_escaped = false,
            b'\\' if in_string => is_escaped = true,
            b'"' => in_string = !in_string,
            _ if in_string => {}
            b'<' if line[at + 1..].starts_with(b"_:") => {
                line[at] = b' ';
                in_node = true;
            }
            b'>' if in_node => {
                line[at] = b' ';
                in_node = false;
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Result<Vec<(String, bool)>, u64> {
        let mut text = text.as_bytes().to_vec();
        let found = transactions(&mut text).map_err(|(line, _)| line)?;
        let rows = |rows: Range<usize>| {
            let rows = String::from_utf8(text[rows].to_vec()).expect("it was a text");
            rows.split_whitespace().collect::<Vec<_>>().join(" ")
        };
        let found = found.into_iter();
        Ok(found.map(|it| (rows(it.rows), it.is_kept)).collect())
    }

    #[test]
    fn transactions_are_committed_or_aborted() {
        let text = "H id <urn:uuid:1> .\nTX .\nPA \"e\" \"http://e/\" .\nA <a> <b> \"<_:c>\" .\nTC . # done\n\
                    # nothing\nTX .\nA <_:x> <b> _:y .\nTA .\n";
        let rows = |text: &str, is_kept| (text.to_owned(), is_kept);
        assert_eq!(
            found(text),
            Ok(vec![
                rows("<a> <b> \"<_:c>\" .", true),
                rows("_:x <b> _:y .", false)
            ])
        );
        assert_eq!(
            found("A <a> <b> <c> .\n"),
            Ok(vec![rows("<a> <b> <c> .", true)])
        );
        assert_eq!(found("TX .\nTC .\n"), Ok(vec![rows("", true)]));
        assert_eq!(found(""), Ok(vec![]));
    }

    #[test]
    fn what_is_no_patch_is_refused_by_its_line() {
        for (text, line) in [
            ("TX .\nD <a> <b> <c> .\nTC .", 2),
            ("TX .\nTX .\nTC .", 2),
            ("TC .", 1),
            ("\nTX .\nA <a> <b> <c> .", 2),
            ("TX .\nTC .\nA <a> <b> <c> .", 3),
            ("TX", 1),
            ("H id <x>", 1),
            ("add <a> <b> <c> .", 1),
            ("<a> <b> <c> .", 1),
        ] {
            assert_eq!(found(text), Err(line), "{text:?}");
        }
    }
}
