//! Does a pattern mean the same to another endpoint as it does here?
//!
//! Random patterns over random data, asked in place and through SERVICE from an endpoint that has
//! the same data: whole, joined with what is found here, and as an optional part.
//!
//! `JINDOU_SEED` sets the first seed, `JINDOU_CASES` the number of cases; a failure prints its
//! seed.

use jindou_conformance::answer::{Answer, Table};
use jindou_conformance::cases::setting;
use jindou_conformance::differential::{case, same_rows};
use jindou_conformance::engines::{Endpoints, ask, guarded, load_quads_with};
use jindou_conformance::query::{Form, Group, Query};
use jindou_engine::{Database, EngineError};
use oxrdf::{NamedOrBlankNode, Quad, Term};
use std::collections::BTreeMap;

const DEFAULT_SEED: u64 = 1;
const DEFAULT_CASES: u64 = 300;
const ENDPOINT: &str = "http://other.example/sparql";
/// Rows that an answer may have to be compared.
const MOST_ROWS: usize = 20_000;

/// Blank nodes of another endpoint are nobody's here, so that joins would differ.
fn has_blank(quad: &Quad) -> bool {
    matches!(quad.subject, NamedOrBlankNode::BlankNode(_))
        || matches!(quad.object, Term::BlankNode(_))
}

/// A query for all solutions of a group.
fn all_of(group: &Group) -> Query {
    Query {
        form: Form::Select {
            distinct: false,
            items: Vec::new(),
        },
        from: Vec::new(),
        from_named: Vec::new(),
        pattern: group.clone(),
        group_by: Vec::new(),
        having: None,
        order_by: Vec::new(),
        limit: None,
        offset: None,
    }
}

/// The text of a group, and that before it.
fn parts(group: &Group) -> (String, String) {
    let text = all_of(group).to_string();
    let (head, body) = text.split_once("WHERE ").expect("a query has a pattern");
    (head.to_owned(), body.trim_end().to_owned())
}

/// The pattern in place, and the same through SERVICE.
fn pairs(pattern: &Group) -> Vec<(String, String)> {
    let (head, body) = parts(pattern);
    let service = format!("SERVICE <{ENDPOINT}>");
    let mut pairs = vec![(
        format!("{head}WHERE {{ {body} }}"),
        format!("{head}WHERE {{ {service} {body} }}"),
    )];
    if pattern.0.len() > 1 {
        let (_, first) = parts(&Group(pattern.0[..1].to_vec()));
        let (_, rest) = parts(&Group(pattern.0[1..].to_vec()));
        for (before, after) in [("", ""), ("OPTIONAL { ", " }")] {
            pairs.push((
                format!("{head}WHERE {{ {first} {before}{rest}{after} }}"),
                format!("{head}WHERE {{ {first} {before}{service} {rest}{after} }}"),
            ));
        }
        pairs.push((
            format!("{head}WHERE {{ {first} MINUS {rest} }}"),
            format!("{head}WHERE {{ {first} MINUS {{ {service} {rest} }} }}"),
        ));
    }
    pairs
}

fn rows(database: &Database, query: &str) -> Result<Option<Table>, String> {
    match guarded(|| ask(database, query, None))? {
        Ok(Answer::Solutions(table)) => Ok((table.rows.len() <= MOST_ROWS).then_some(table)),
        Ok(other) => Err(format!("{} instead of solutions", other.kind())),
        // Splitting a group may use a variable before BIND does.
        Err(EngineError::Syntax { .. } | EngineError::Unsupported { .. }) => Ok(None),
        Err(error) => Err(error.to_string()),
    }
}

#[test]
fn a_pattern_means_the_same_behind_a_service() {
    let first = setting("JINDOU_SEED", DEFAULT_SEED);
    let cases = setting("JINDOU_CASES", DEFAULT_CASES);
    let (mut compared, mut with_rows) = (0, 0);
    for seed in first..first + cases {
        let case = case(seed);
        let mut quads = case.quads;
        quads.retain(|quad| !has_blank(quad));
        let endpoints = Endpoints::new();
        let load = || load_quads_with(&quads, endpoints.config()).expect("generated data loads");
        let database = load();
        endpoints.serve(BTreeMap::from([(ENDPOINT.to_owned(), load())]));
        for (in_place, federated) in pairs(&case.query.pattern) {
            let told = |error: String| panic!("seed {seed}: {error}\n{federated}");
            let Some(expected) = rows(&database, &in_place).unwrap_or_else(told) else {
                continue;
            };
            let Some(found) = rows(&database, &federated).unwrap_or_else(told) else {
                panic!("seed {seed}: refused\n{federated}");
            };
            compared += 1;
            with_rows += u64::from(!expected.rows.is_empty());
            assert!(
                same_rows(&expected, &found),
                "seed {seed}: other rows\n{federated}\n{}\nexpected:\n{}found:\n{}",
                database.explain(&federated).expect("it was answered"),
                Answer::Solutions(expected),
                Answer::Solutions(found),
            );
        }
    }
    println!("{cases} cases from seed {first}, {compared} compared, {with_rows} with rows");
    assert!(
        with_rows * 4 > compared,
        "most queries should find something"
    );
}
