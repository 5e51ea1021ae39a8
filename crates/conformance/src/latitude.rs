//! In what may two right answers to a query differ?
//!
//! In the order of rows and of parts of a text, in how computed numbers are written, in which rows
//! are among those that LIMIT keeps: by what the query's text has. All else must agree.

use crate::answer::{Answer, Table, value_key_of_any_type};
use crate::graph_text::Text;
use crate::isomorphism::isomorphic;
use crate::query_facts::Facts;
use oxrdf::{Literal, Term};
use std::collections::HashSet;

type Row = Vec<Option<Term>>;

/// What two answers to one query may differ in.
#[derive(Debug, Clone)]
pub struct Latitude {
    facts: Facts,
    order: Vec<String>,
}

impl Latitude {
    /// Of a query.
    #[must_use]
    pub fn of(query: &Text) -> Self {
        Self {
            facts: query.facts,
            order: query.order.clone(),
        }
    }

    /// The same in any order of rows.
    #[must_use]
    pub fn in_any_order(mut self) -> Self {
        self.order.clear();
        self
    }

    /// What is different, if they differ in more.
    #[must_use]
    pub fn differ(&self, expected: &Answer, actual: &Answer) -> Option<&'static str> {
        match (expected, actual) {
            (Answer::Boolean(left), Answer::Boolean(right)) => {
                (left != right).then_some("another truth")
            }
            (Answer::Graph(left), Answer::Graph(right)) => {
                let rows = |triples: &[oxrdf::Triple]| -> Vec<Row> {
                    triples.iter().map(row_of).collect()
                };
                self.rows_differ(rows(left), rows(right))
            }
            (Answer::Solutions(left), Answer::Solutions(right)) => {
                if !left.same_variables(right) {
                    return Some("other variables");
                }
                let right = right.reordered(&left.variables);
                let differ = self.rows_differ(left.rows.clone(), right.rows.clone());
                differ.or_else(|| {
                    (self.sorted_by(left) != self.sorted_by(&right)).then_some("another order")
                })
            }
            _ => Some("an answer of another form"),
        }
    }

    fn rows_differ(&self, left: Vec<Row>, right: Vec<Row>) -> Option<&'static str> {
        let facts = &self.facts;
        let [left, right] = [left, right].map(|rows| match facts.reduced {
            true => distinct(rows),
            false => rows,
        });
        if left.len() != right.len() {
            return Some("another number of rows");
        }
        // Of what is cut, the sort keys are compared.
        if facts.slices || facts.slices_inside || facts.samples || facts.makes_terms {
            return None;
        }
        let reduce = |rows: Vec<Row>| -> Vec<Row> {
            let cell = |cell: Option<Term>| cell.map(|term| self.reduced(term));
            rows.into_iter()
                .map(|row| row.into_iter().map(cell).collect())
                .collect()
        };
        (!isomorphic(&reduce(left), &reduce(right), false)).then_some("other rows")
    }

    fn reduced(&self, term: Term) -> Term {
        let Term::Literal(literal) = &term else {
            return term;
        };
        if self.facts.concatenates {
            let mut parts: Vec<char> = literal.value().chars().collect();
            parts.sort_unstable();
            let value = parts.into_iter().collect::<String>();
            return Literal::new_simple_literal(value).into();
        }
        if self.facts.computes {
            return Literal::new_simple_literal(value_key_of_any_type(&term)).into();
        }
        term
    }

    /// The values that rows are sorted by, in the order of the rows.
    fn sorted_by(&self, table: &Table) -> Vec<Vec<String>> {
        let mut keys = vec![Vec::new(); table.rows.len()];
        for name in &self.order {
            let Some(position) = table.position(name) else {
                break;
            };
            let cells = || table.rows.iter().map(|row| row[position].as_ref());
            // Blank nodes are in no order, and what is sorted within them says nothing.
            if cells().any(|cell| matches!(cell, Some(Term::BlankNode(_)))) {
                break;
            }
            for (keys, cell) in keys.iter_mut().zip(cells()) {
                keys.push(cell.map(value_key_of_any_type).unwrap_or_default());
            }
        }
        // Rows may be repeated, beside each other.
        if self.facts.reduced {
            keys.dedup();
        }
        keys
    }
}

fn row_of(triple: &oxrdf::Triple) -> Row {
    vec![
        Some(triple.subject.clone().into()),
        Some(triple.predicate.clone().into()),
        Some(triple.object.clone()),
    ]
}

fn distinct(rows: Vec<Row>) -> Vec<Row> {
    let mut seen = HashSet::new();
    rows.into_iter()
        .filter(|row| seen.insert(row.clone()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(rows: &[&[&str]]) -> Answer {
        let row = |cells: &&[&str]| {
            let term = |cell: &&str| Some(Literal::new_simple_literal(*cell).into());
            cells.iter().map(term).collect()
        };
        Answer::Solutions(Table {
            variables: vec!["x".to_owned(), "y".to_owned()],
            rows: rows.iter().map(row).collect(),
        })
    }

    fn differ(query: &str, left: &[&[&str]], right: &[&[&str]]) -> bool {
        let text = Text::new(query, None).expect("it is about the default graph");
        let differ = Latitude::of(&text).differ(&answer(left), &answer(right));
        differ.is_some()
    }

    const AB: &[&[&str]] = &[&["1", "a"], &["2", "b"]];
    const BA: &[&[&str]] = &[&["2", "b"], &["1", "a"]];
    const AC: &[&[&str]] = &[&["1", "a"], &["2", "c"]];

    #[test]
    fn rows_agree_in_any_order_unless_one_is_asked_for() {
        assert!(!differ("SELECT ?x ?y { ?x ?p ?y }", AB, BA));
        assert!(differ("SELECT ?x ?y { ?x ?p ?y } ORDER BY ?x", AB, BA));
        assert!(differ("SELECT ?x ?y { ?x ?p ?y }", AB, AC));
    }

    #[test]
    fn of_cut_rows_number_and_order_agree() {
        let cut = "SELECT ?x ?y { ?x ?p ?y } ORDER BY ?x LIMIT 2";
        assert!(!differ(cut, AB, AC));
        assert!(differ(cut, AB, BA));
        assert!(differ(cut, AB, &AB[..1]));
    }

    #[test]
    fn reduced_rows_may_repeat() {
        let twice = [AB[0], AB[1], AB[0]];
        assert!(!differ("SELECT REDUCED ?x ?y { ?x ?p ?y }", AB, &twice));
        assert!(differ("SELECT ?x ?y { ?x ?p ?y }", AB, &twice));
    }
}
