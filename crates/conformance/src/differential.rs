//! Do our engine and the oracle answer one query over one data set alike?

use crate::answer::{Answer, Table, by_value, ground_blank, value_key_of_any_type};
use crate::engines::{ask, ask_oracle, load_quads, without_source_prefix};
use crate::isomorphism::isomorphic;
use crate::query::{Expression, Form, Query, SEPARATOR};
use crate::random_data::{BLANKS, Domain};
use crate::random_query::{Column, domain_of};
use jindou_engine::{Database, EngineError};
use oxrdf::{Dataset, Literal, Quad, Term};
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A data set loaded into both engines.
pub struct Loaded {
    database: Database,
    dataset: Dataset,
}

/// How a comparison ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// The same answer; whether it held anything.
    Same {
        /// Whether there was a row, a triple, or the answer true.
        something: bool,
    },
    /// Our engine refuses a feature, by this name.
    Unsupported(String),
    /// The oracle refuses the query, which a generated one never is but a shrunk one may be.
    Invalid(String),
    /// They differ, told in full.
    Different(String),
}

impl Loaded {
    /// Loads the quads into both.
    ///
    /// # Errors
    /// What our engine says, or how it panicked.
    pub fn new(quads: &[Quad]) -> Result<Self, String> {
        let database = guarded(|| load_quads(quads))?.map_err(|error| error.to_string())?;
        Ok(Self {
            database,
            dataset: quads.iter().collect(),
        })
    }

    /// Asks both and compares.
    pub fn compare(&self, query: &Query) -> Outcome {
        let whole = match ask_oracle(&self.dataset, &query.unsliced().to_string()) {
            Ok(answer) => answer.map_terms(&|term| ground(term, |label| label)),
            Err(error) => return Outcome::Invalid(error.to_string()),
        };
        let actual = match guarded(|| ask(&self.database, &query.to_string(), None)) {
            Ok(Ok(answer)) => answer.map_terms(&|term| ground(term, without_source_prefix)),
            Ok(Err(EngineError::Unsupported { feature })) => return Outcome::Unsupported(feature),
            Ok(Err(error)) => return Outcome::Different(format!("the engine says: {error}")),
            Err(panic) => return Outcome::Different(panic),
        };
        match differ(query, &whole, &actual) {
            None => Outcome::Same {
                something: match &actual {
                    Answer::Boolean(value) => *value,
                    Answer::Graph(triples) => !triples.is_empty(),
                    Answer::Solutions(table) => !table.rows.is_empty(),
                },
            },
            Some(reason) => Outcome::Different(format!(
                "{reason}\noracle{}:\n{whole}engine:\n{actual}",
                if query.limit.is_some() || query.offset.is_some() {
                    " (without LIMIT and OFFSET)"
                } else {
                    ""
                }
            )),
        }
    }
}

/// Runs `body`; a panic in it becomes its message.
fn guarded<T>(body: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(body)).map_err(|panic| {
        let message = panic
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| panic.downcast_ref::<&str>().copied())
            .unwrap_or("a panic without a message");
        format!("the engine panicked: {message}")
    })
}

/// Blank nodes of the data become names; those made by a query stay blank.
fn ground(term: Term, label_of: impl Fn(&str) -> &str) -> Term {
    if let Term::BlankNode(node) = &term {
        let label = label_of(node.as_str());
        if BLANKS.contains(&label) {
            return ground_blank(label);
        }
    }
    term
}

fn differ(query: &Query, whole: &Answer, actual: &Answer) -> Option<String> {
    match (whole, actual) {
        (Answer::Boolean(left), Answer::Boolean(right)) => {
            (left != right).then(|| "another truth".to_owned())
        }
        (Answer::Graph(left), Answer::Graph(right)) => {
            let rows = |triples: &[oxrdf::Triple]| -> Vec<Vec<Option<Term>>> {
                triples
                    .iter()
                    .map(|triple| {
                        vec![
                            Some(triple.subject.clone().into()),
                            Some(triple.predicate.clone().into()),
                            // A variable of the template may be computed.
                            Some(by_value(triple.object.clone())),
                        ]
                    })
                    .collect()
            };
            (!isomorphic(&rows(left), &rows(right), false)).then(|| "other triples".to_owned())
        }
        (Answer::Solutions(left), Answer::Solutions(right)) => tables_differ(query, left, right),
        _ => Some(format!("{} instead of {}", actual.kind(), whole.kind())),
    }
}

fn tables_differ(query: &Query, whole: &Table, actual: &Table) -> Option<String> {
    let star = matches!(&query.form, Form::Select { items, .. } if items.is_empty());
    if star {
        if !whole.same_variables(actual) {
            return Some("other variables".to_owned());
        }
    } else if whole.variables != actual.variables {
        return Some("other variables, or in another order".to_owned());
    }
    let actual = actual.reordered(&whole.variables);
    let total = whole.rows.len();
    let start = query.offset.unwrap_or(0).min(total);
    let end = query
        .limit
        .map_or(total, |limit| total.min(start.saturating_add(limit)));
    if actual.rows.len() != end - start {
        return Some(format!("not {} rows", end - start));
    }
    let expected_rows = comparable(whole);
    let actual_rows = comparable(&actual);
    if end - start == total {
        if !isomorphic(&expected_rows, &actual_rows, false) {
            return Some("other rows".to_owned());
        }
    } else if !is_part_of(&actual_rows, &expected_rows) {
        return Some("rows that are not in the whole answer".to_owned());
    }
    let expected_keys = sort_keys(query, whole);
    let actual_keys = sort_keys(query, &actual);
    let depth = comparable_keys(&expected_keys);
    let cut = |keys: &[Vec<Key>]| -> Vec<Vec<Key>> {
        keys.iter().map(|row| row[..depth].to_vec()).collect()
    };
    (cut(&expected_keys[start..end]) != cut(&actual_keys))
        .then(|| "the rows are not in the order asked for".to_owned())
}

/// The rows with each column reduced to what has to agree in it.
fn comparable(table: &Table) -> Vec<Vec<Option<Term>>> {
    let columns: Vec<_> = table
        .variables
        .iter()
        .map(|name| Column::of(name))
        .collect();
    table
        .rows
        .iter()
        .map(|row| {
            row.iter()
                .zip(&columns)
                .map(|(term, column)| term.as_ref().map(|term| reduced(term, *column)))
                .collect()
        })
        .collect()
}

fn reduced(term: &Term, column: Column) -> Term {
    match (column, term) {
        (Column::Exact, _) => term.clone(),
        (Column::Value, _) => by_value(term.clone()),
        (Column::ValueOfAnyType, Term::Literal(_)) => {
            Literal::new_simple_literal(value_key_of_any_type(term)).into()
        }
        (Column::Parts, Term::Literal(literal)) => {
            let mut parts: Vec<_> = literal.value().split(SEPARATOR).collect();
            parts.sort_unstable();
            Literal::new_simple_literal(parts.join(SEPARATOR)).into()
        }
        (Column::Presence, _) => Literal::new_simple_literal("something").into(),
        (Column::ValueOfAnyType | Column::Parts, _) => term.clone(),
    }
}

fn is_part_of(part: &[Vec<Option<Term>>], whole: &[Vec<Option<Term>>]) -> bool {
    let mut left: HashMap<&[Option<Term>], usize> = HashMap::new();
    for row in whole {
        *left.entry(row).or_default() += 1;
    }
    part.iter().all(|row| match left.get_mut(row.as_slice()) {
        Some(count) if *count > 0 => {
            *count -= 1;
            true
        }
        _ => false,
    })
}

/// What of a sort key has to agree at each position of the order.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Key {
    text: String,
    /// Whether terms with this key need not be in any order among each other although they differ:
    /// what follows in later keys then tells nothing.
    open: bool,
}

fn sort_keys(query: &Query, table: &Table) -> Vec<Vec<Key>> {
    let positions: Vec<_> = query
        .order_by
        .iter()
        .map(|(expression, _)| match expression {
            Expression::Variable(name) => (table.position(name), ordered_domain(name)),
            _ => (None, false),
        })
        .collect();
    table
        .rows
        .iter()
        .map(|row| {
            positions
                .iter()
                .map(|(position, ordered)| match position {
                    Some(position) => sort_key(row[*position].as_ref(), *ordered),
                    None => Key {
                        text: String::new(),
                        open: true,
                    },
                })
                .collect()
        })
        .collect()
}

/// Whether any two literals that a variable of this name has can be compared by `<`.
fn ordered_domain(name: &str) -> bool {
    match domain_of(name) {
        Domain::Number | Domain::String | Domain::Date | Domain::Boolean => true,
        Domain::Node | Domain::Language | Domain::Any => false,
    }
}

fn sort_key(term: Option<&Term>, ordered: bool) -> Key {
    let (text, open) = match term {
        None => ("unbound".to_owned(), false),
        Some(Term::BlankNode(_)) => ("blank".to_owned(), true),
        Some(Term::NamedNode(node)) if ground_label(node.as_str()) => ("blank".to_owned(), true),
        Some(Term::NamedNode(node)) => (node.as_str().to_owned(), false),
        Some(term @ Term::Literal(_)) if ordered => (value_key_of_any_type(term), false),
        Some(Term::Literal(_)) => ("literal".to_owned(), true),
    };
    Key { text, open }
}

fn ground_label(iri: &str) -> bool {
    BLANKS
        .iter()
        .any(|label| matches!(ground_blank(label), Term::NamedNode(node) if node.as_str() == iri))
}

/// How many keys, from the first, can be compared: up to the first with an open order, included.
fn comparable_keys(rows: &[Vec<Key>]) -> usize {
    let count = rows.first().map_or(0, Vec::len);
    (0..count)
        .find(|index| rows.iter().any(|row| row[*index].open))
        .map_or(count, |index| index + 1)
}
