//! When are two answers the same?

use oxrdf::{TermRef, TripleRef};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use super::catalogue::Check;

/// An answer in short: how many rows, and hashes of them. A truth value is a row, and so is a
/// triple.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// Rows.
    pub rows: u64,
    /// A hash of the rows, whatever their order.
    pub bag: u64,
    /// A hash of the rows in their order.
    pub sequence: u64,
}

impl Answer {
    /// Whether both are right if one is.
    #[must_use]
    pub fn same(&self, other: &Self, check: Check) -> bool {
        self.rows == other.rows && self.hash(check) == other.hash(check)
    }

    /// The hash that counts.
    #[must_use]
    pub fn hash(&self, check: Check) -> u64 {
        match check {
            Check::Rows => self.bag,
            Check::Sequence => self.sequence,
        }
    }

    /// The answer of an ASK query.
    #[must_use]
    pub fn boolean(value: bool) -> Self {
        let mut digest = Digest::new::<&str>(&[]);
        digest.text.push_str(if value { "true" } else { "false" });
        digest.end_row();
        digest.finish()
    }
}

/// Takes an answer row by row.
#[derive(Debug)]
pub struct Digest {
    answer: Answer,
    /// The positions of the columns by the names of their variables, whose order is free in
    /// `SELECT *`.
    columns: Vec<usize>,
    text: String,
}

impl Digest {
    /// Of rows with these variables.
    #[must_use]
    pub fn new<T: AsRef<str>>(variables: &[T]) -> Self {
        let mut columns: Vec<usize> = (0..variables.len()).collect();
        columns.sort_by_key(|&column| variables[column].as_ref());
        Self {
            answer: Answer {
                rows: 0,
                bag: 0,
                sequence: 0,
            },
            columns,
            text: String::new(),
        }
    }

    /// Adds a solution; `get` gives the term of the variable with a position.
    pub fn solution<'t>(&mut self, get: impl Fn(usize) -> Option<TermRef<'t>>) {
        for place in 0..self.columns.len() {
            if let Some(term) = get(self.columns[place]) {
                self.text.push_str(&term.to_string());
            }
            self.text.push('\t');
        }
        self.end_row();
    }

    /// Adds a triple.
    pub fn triple(&mut self, triple: TripleRef<'_>) {
        self.text.push_str(&triple.to_string());
        self.end_row();
    }

    fn end_row(&mut self) {
        let hash = xxh3_64(self.text.as_bytes());
        self.text.clear();
        let answer = &mut self.answer;
        answer.rows += 1;
        answer.bag = answer.bag.wrapping_add(hash);
        answer.sequence = (answer.sequence ^ hash)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .rotate_left(29);
    }

    /// The whole.
    #[must_use]
    pub fn finish(self) -> Answer {
        self.answer
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use oxrdf::{LiteralRef, NamedNodeRef};

    fn answer(names: [&str; 2], rows: &[[Option<&str>; 2]]) -> Answer {
        let mut digest = Digest::new(&names);
        for row in rows {
            digest.solution(|column| {
                row[column].map(|text| LiteralRef::new_simple_literal(text).into())
            });
        }
        digest.finish()
    }

    #[test]
    fn the_order_of_rows_counts_only_where_it_should() {
        let (a, b) = ([Some("a"), None], [None, Some("b")]);
        let (one, other) = (
            answer(["x", "y"], &[a, b, b]),
            answer(["x", "y"], &[b, a, b]),
        );
        assert!(one.same(&other, Check::Rows));
        assert!(!one.same(&other, Check::Sequence));
        assert!(!one.same(&answer(["x", "y"], &[a, b]), Check::Rows));
        assert!(!one.same(&answer(["x", "y"], &[a, a, b]), Check::Rows));
    }

    #[test]
    fn columns_are_told_apart_by_name_not_by_place() {
        let straight = answer(["x", "y"], &[[Some("1"), Some("2")]]);
        assert_eq!(straight, answer(["y", "x"], &[[Some("2"), Some("1")]]));
        assert_ne!(straight, answer(["x", "y"], &[[Some("2"), Some("1")]]));
        assert_ne!(
            answer(["x", "y"], &[[Some("1"), None]]),
            answer(["x", "y"], &[[None, Some("1")]])
        );
    }

    #[test]
    fn terms_of_different_kinds_differ() {
        let mut literal = Digest::new(&["x"]);
        literal.solution(|_| Some(LiteralRef::new_simple_literal("http://a").into()));
        let mut node = Digest::new(&["x"]);
        node.solution(|_| Some(NamedNodeRef::new_unchecked("http://a").into()));
        assert_ne!(literal.finish(), node.finish());
        assert_ne!(Answer::boolean(true), Answer::boolean(false));
    }
}
