//! What did an engine answer, in a form that two engines can be compared by?

use oxrdf::{Literal, NamedNode, NamedOrBlankNode, Term, Triple};
use oxsdatatypes::{Boolean, DateTime, Decimal, Double, Float, Integer, TimezoneOffset};
use std::collections::BTreeSet;
use std::fmt::{self, Write as _};
use std::str::FromStr;

/// The whole answer to a query, decoded.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// Of SELECT.
    Solutions(Table),
    /// Of ASK.
    Boolean(bool),
    /// Of CONSTRUCT and DESCRIBE, as a set: repeats are dropped.
    Graph(Vec<Triple>),
}

/// Solutions in the order they came.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Table {
    /// Names of the projected variables, without `?`.
    pub variables: Vec<String>,
    /// One value a variable, `None` where unbound.
    pub rows: Vec<Vec<Option<Term>>>,
}

impl Answer {
    /// A graph's answer out of triples that may repeat.
    pub fn graph(triples: impl IntoIterator<Item = Triple>) -> Self {
        let mut seen = std::collections::HashSet::new();
        Self::Graph(
            triples
                .into_iter()
                .filter(|triple| seen.insert(triple.clone()))
                .collect(),
        )
    }

    /// Whether there is no row, no triple, or the answer is false.
    pub fn is_empty(&self) -> bool {
        match self {
            Self::Solutions(table) => table.rows.is_empty(),
            Self::Boolean(value) => !value,
            Self::Graph(triples) => triples.is_empty(),
        }
    }

    /// The form of the answer, for messages.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Solutions(_) => "solutions",
            Self::Boolean(_) => "a boolean",
            Self::Graph(_) => "a graph",
        }
    }

    /// The same answer with every term replaced by `map` of it.
    #[must_use]
    pub fn map_terms(self, map: &impl Fn(Term) -> Term) -> Self {
        match self {
            Self::Solutions(table) => Self::Solutions(Table {
                variables: table.variables,
                rows: table
                    .rows
                    .into_iter()
                    .map(|row| row.into_iter().map(|term| term.map(map)).collect())
                    .collect(),
            }),
            Self::Boolean(value) => Self::Boolean(value),
            Self::Graph(triples) => Self::graph(triples.into_iter().map(|triple| {
                let subject: NamedOrBlankNode = match map(triple.subject.into()) {
                    Term::NamedNode(node) => node.into(),
                    Term::BlankNode(node) => node.into(),
                    Term::Literal(literal) => {
                        panic!("a subject was mapped to the literal {literal}")
                    }
                };
                Triple::new(subject, triple.predicate, map(triple.object))
            })),
        }
    }
}

impl Table {
    /// The position of a variable.
    pub fn position(&self, variable: &str) -> Option<usize> {
        self.variables.iter().position(|name| name == variable)
    }

    /// The same rows with the columns in the order `variables`; columns absent here are unbound.
    #[must_use]
    pub fn reordered(&self, variables: &[String]) -> Self {
        let positions: Vec<_> = variables.iter().map(|name| self.position(name)).collect();
        Self {
            variables: variables.to_vec(),
            rows: self
                .rows
                .iter()
                .map(|row| {
                    positions
                        .iter()
                        .map(|position| position.and_then(|index| row[index].clone()))
                        .collect()
                })
                .collect(),
        }
    }

    /// Whether both have the same set of variables, in any order.
    pub fn same_variables(&self, other: &Self) -> bool {
        self.variables.iter().collect::<BTreeSet<_>>()
            == other.variables.iter().collect::<BTreeSet<_>>()
    }
}

/// Rows printed of a long answer.
const ROWS_SHOWN: usize = 40;

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Boolean(value) => writeln!(f, "{value}"),
            Self::Graph(triples) => {
                let mut lines: Vec<_> = triples.iter().map(ToString::to_string).collect();
                lines.sort();
                write_lines(f, &lines, "triples")
            }
            Self::Solutions(table) => {
                writeln!(f, "?{}", table.variables.join(" ?"))?;
                let lines: Vec<_> = table.rows.iter().map(|row| row_text(row)).collect();
                write_lines(f, &lines, "rows")
            }
        }
    }
}

fn write_lines(f: &mut fmt::Formatter<'_>, lines: &[String], what: &str) -> fmt::Result {
    for line in lines.iter().take(ROWS_SHOWN) {
        writeln!(f, "  {line}")?;
    }
    writeln!(f, "  ({} {what})", lines.len())
}

/// One row on one line: N-Triples terms separated by a space, `UNDEF` where unbound.
pub fn row_text(row: &[Option<Term>]) -> String {
    let mut text = String::new();
    for (index, term) in row.iter().enumerate() {
        if index > 0 {
            text.push(' ');
        }
        match term {
            Some(term) => write!(text, "{term}").expect("writing to a string never fails"),
            None => text.push_str("UNDEF"),
        }
    }
    text
}

/// The type of an `xsd:` number, by its local name, or `None` for anything else.
fn numeric_kind(datatype: &str) -> Option<&'static str> {
    let name = datatype.strip_prefix("http://www.w3.org/2001/XMLSchema#")?;
    match name {
        "integer" | "nonPositiveInteger" | "negativeInteger" | "long" | "int" | "short"
        | "byte" | "nonNegativeInteger" | "unsignedLong" | "unsignedInt" | "unsignedShort"
        | "unsignedByte" | "positiveInteger" => Some("integer"),
        "decimal" => Some("decimal"),
        "float" => Some("float"),
        "double" => Some("double"),
        _ => None,
    }
}

/// The value of a number as a double, for comparisons that tolerate rounding.
pub fn numeric_value(literal: &Literal) -> Option<f64> {
    let value = literal.value();
    match numeric_kind(literal.datatype().as_str())? {
        "integer" => Integer::from_str(value)
            .ok()
            .map(|v| Double::from(v).into()),
        "decimal" => Decimal::from_str(value)
            .ok()
            .map(|v| Double::from(v).into()),
        "float" => Float::from_str(value).ok().map(|v| Double::from(v).into()),
        _ => Double::from_str(value).ok().map(Into::into),
    }
}

/// A number written with ten significant digits: sums in another order agree in them.
fn rounded(value: f64) -> String {
    // Adding zero turns a negative zero into the positive one.
    format!("{:.9e}", value + 0.0)
}

/// A key equal for literals that have the same type and the same value: numbers agree to ten
/// significant digits, booleans and points in time by value, everything else as written.
pub fn value_key(term: &Term) -> String {
    let Term::Literal(literal) = term else {
        return term.to_string();
    };
    let datatype = literal.datatype();
    if let (Some(value), Some(kind)) = (numeric_value(literal), numeric_kind(datatype.as_str())) {
        return format!("{kind} {}", rounded(value));
    }
    match datatype.as_str() {
        "http://www.w3.org/2001/XMLSchema#boolean" => Boolean::from_str(literal.value())
            .map_or_else(|_| term.to_string(), |value| format!("boolean {value}")),
        "http://www.w3.org/2001/XMLSchema#dateTime" => match DateTime::from_str(literal.value()) {
            // Adding a time zone to a point in time without one would be an invention.
            Ok(value) if value.timezone_offset().is_some() => {
                let value = value.adjust(Some(TimezoneOffset::UTC)).unwrap_or(value);
                format!("dateTime {value}")
            }
            Ok(value) => format!("dateTime {value}"),
            Err(_) => term.to_string(),
        },
        _ => term.to_string(),
    }
}

/// As [`value_key`], but equal for equal numbers of different types (`1` and `1.0`), which is what
/// MIN and MAX leave open.
pub fn value_key_of_any_type(term: &Term) -> String {
    if let Term::Literal(literal) = term
        && let Some(value) = numeric_value(literal)
    {
        return format!("number {}", rounded(value));
    }
    value_key(term)
}

/// A literal that stands for every literal equal to this one by [`value_key`]; other terms are kept.
pub fn by_value(term: Term) -> Term {
    match term {
        Term::Literal(_) => Literal::new_simple_literal(value_key(&term)).into(),
        other => other,
    }
}

/// A name that stands for a blank node whose identity both sides know.
pub fn ground_blank(label: &str) -> Term {
    NamedNode::new_unchecked(format!("urn:jindou-conformance:blank:{label}")).into()
}
