//! What does a database hold, term by term, and under which ids?

use std::collections::{BTreeMap, BTreeSet};

use jindou_engine::{Database, QueryResults, TermId};

use crate::random_requests::{LARGE, Quad, large};

/// What a database holds: its quads, and the id of each of their terms.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Contents {
    pub(crate) quads: BTreeSet<Quad>,
    pub(crate) ids: BTreeMap<String, u64>,
    /// Edges of large predicates that were there from the beginning, and the sum of their numbers:
    /// they are too many to be listed.
    pub(crate) large: (u64, u64),
}

pub(crate) fn contents(database: &Database) -> Contents {
    let mut all = Contents {
        large: large_edges(database),
        ..Contents::default()
    };
    let names: Vec<String> = (0..LARGE).map(large).collect();
    let (listed, values) = (names.join(", "), names.join(" "));
    for (query, has_graph) in [
        (
            format!("SELECT ?s ?p ?o {{ ?s ?p ?o FILTER(?p NOT IN ({listed})) }}"),
            false,
        ),
        (
            format!("SELECT ?s ?p ?o {{ VALUES ?p {{ {values} }} ?s ?p ?o FILTER(?o < 0) }}"),
            false,
        ),
        (
            "SELECT ?s ?p ?o ?g { GRAPH ?g { ?s ?p ?o } }".to_owned(),
            true,
        ),
    ] {
        let results = database.query(&query).expect("the query is sound");
        let QueryResults::Solutions(mut solutions) = results else {
            panic!("SELECT gives solutions");
        };
        while let Some(batch) = solutions.next_batch().expect("the store is whole") {
            let decoder = solutions.decoder();
            for row in 0..batch.rows() {
                let id = |place: usize| batch.column(place)[row];
                let triple = decoder.triple([id(0), id(1), id(2)]);
                let mut note = |text: String, id: TermId| {
                    let known = all.ids.insert(text.clone(), id.raw());
                    assert!(known.is_none_or(|known| known == id.raw()), "{text}");
                    text
                };
                let graph = match has_graph {
                    true => {
                        let graph = decoder.triple([id(3), id(1), id(2)]).subject;
                        note(graph.to_string(), id(3))
                    }
                    false => String::new(),
                };
                all.quads.insert([
                    note(triple.subject.to_string(), id(0)),
                    note(triple.predicate.to_string(), id(1)),
                    note(triple.object.to_string(), id(2)),
                    graph,
                ]);
            }
        }
    }
    all
}

fn large_edges(database: &Database) -> (u64, u64) {
    let mut found = (0, 0);
    for number in 0..LARGE {
        let predicate = large(number);
        let query = format!(
            "SELECT (COUNT(*) AS ?n) (SUM(?o) AS ?sum) {{ ?s {predicate} ?o FILTER(?o >= 0) }}"
        );
        let results = database.query(&query).expect("the query is sound");
        let QueryResults::Solutions(mut solutions) = results else {
            panic!("SELECT gives solutions");
        };
        let solution = solutions.next().expect("an aggregate has a row");
        let solution = solution.expect("the store is whole");
        let number = |name: &str| -> u64 {
            let term = solution.get(name).expect("it is bound").to_string();
            let digits = term.split('"').nth(1).expect("a literal");
            digits.parse().expect("an integer")
        };
        found.0 += number("n");
        found.1 += number("sum");
    }
    found
}

/// Terms that live in both have the same ids.
pub(crate) fn check_ids(before: &Contents, after: &Contents, what: &str) {
    for (term, id) in &before.ids {
        let later = after.ids.get(term);
        assert!(
            later.is_none_or(|later| later == id),
            "{what}: {term} had the id {id:x} and has {later:x?}"
        );
    }
}

pub(crate) fn check_quads(found: &BTreeSet<Quad>, expected: &BTreeSet<Quad>, what: &str) {
    let lacks = expected.difference(found).next();
    let has = found.difference(expected).next();
    assert!(
        lacks.is_none() && has.is_none(),
        "{what}: it lacks {lacks:?} and has {has:?}"
    );
}
