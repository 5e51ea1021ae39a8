//! What is in a database, and how is it put there by updates?

use crate::answer::Answer;
use crate::engines::ask;
use jindou_engine::{Database, EngineError};
use oxrdf::{GraphName, Quad, Term};
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// A row for each quad: subject, predicate, object and, unless it is the default one, graph.
pub type QuadRow = Vec<Option<Term>>;

/// All quads, as rows that [`crate::isomorphism::isomorphic`] compares.
///
/// # Errors
/// Whatever the engine says.
pub fn quads(database: &Database) -> Result<Vec<QuadRow>, EngineError> {
    let mut rows = Vec::new();
    for query in [
        "SELECT ?s ?p ?o ?g { ?s ?p ?o }",
        "SELECT ?s ?p ?o ?g { GRAPH ?g { ?s ?p ?o } }",
    ] {
        if let Answer::Solutions(table) = ask(database, query, None)? {
            rows.extend(table.rows);
        }
    }
    Ok(rows)
}

/// The names of the named graphs, those that are there and empty included.
///
/// # Errors
/// Whatever the engine says.
pub fn graphs(database: &Database) -> Result<BTreeSet<String>, EngineError> {
    let answer = ask(database, "SELECT ?g { GRAPH ?g {} }", None)?;
    let Answer::Solutions(table) = answer else {
        return Ok(BTreeSet::new());
    };
    let name = |term: Term| match term {
        Term::NamedNode(node) => node.into_string(),
        other => other.to_string(),
    };
    let cells = table.rows.into_iter().flatten().flatten();
    Ok(cells.map(name).collect())
}

/// The row of a quad.
#[must_use]
pub fn row_of(quad: &Quad) -> QuadRow {
    vec![
        Some(quad.subject.clone().into()),
        Some(quad.predicate.clone().into()),
        Some(quad.object.clone()),
        match &quad.graph_name {
            GraphName::DefaultGraph => None,
            GraphName::NamedNode(node) => Some(node.clone().into()),
            GraphName::BlankNode(node) => Some(node.clone().into()),
        },
    ]
}

/// The quads as they stand between the braces of INSERT DATA and DELETE DATA.
#[must_use]
pub fn as_data<'a>(quads: impl IntoIterator<Item = &'a Quad>) -> String {
    let mut text = String::new();
    for quad in quads {
        let (s, p, o) = (&quad.subject, &quad.predicate, &quad.object);
        let written = match &quad.graph_name {
            GraphName::DefaultGraph => writeln!(text, "  {s} {p} {o} ."),
            graph => writeln!(text, "  GRAPH {graph} {{ {s} {p} {o} }}"),
        };
        written.expect("writing to a string never fails");
    }
    text
}
