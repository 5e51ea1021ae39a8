//! Does an aggregate that shows the order of what is grouped show that of a nested ORDER BY?

use std::fmt::Write as _;

use jindou_engine::ingest::{Progress, Source};
use jindou_engine::{Config, Database, LoadOptions, QueryResults};
use oxrdf::Term;

/// More than a batch, so that several threads would take part.
const VALUES: usize = 30_000;

fn database(threads: usize) -> Database {
    let mut text = String::new();
    for number in 0..VALUES {
        // In no order of the ids, and some groups.
        let value = number * 7919 % VALUES;
        let group = value % 3;
        writeln!(
            text,
            "<http://e/s{number}> <http://e/in> <http://e/g{group}> ."
        )
        .unwrap();
        writeln!(text, "<http://e/s{number}> <http://e/is> {value} .").unwrap();
    }
    let mut config = Config::default();
    config.threads = threads;
    let database = Database::with_config(config);
    let source = Source::bytes("data.ttl", text.into_bytes());
    database
        .load(vec![source], &LoadOptions::default(), &Progress::default())
        .unwrap();
    database
}

/// The numbers in the column `list` of each row.
fn lists(database: &Database, query: &str) -> Vec<Vec<usize>> {
    let QueryResults::Solutions(solutions) = database.query(query).unwrap() else {
        panic!("no SELECT: {query}")
    };
    let list = |solution: &jindou_engine::Solution| match solution.get("list") {
        Some(Term::Literal(text)) => {
            let numbers = text.value().split_whitespace();
            numbers.map(|number| number.parse().unwrap()).collect()
        }
        other => panic!("{other:?}"),
    };
    solutions.map(|solution| list(&solution.unwrap())).collect()
}

#[test]
fn group_concat_and_sample_show_the_order_of_a_nested_select() {
    for threads in [1, 4] {
        let database = database(threads);
        let all = "SELECT (GROUP_CONCAT(?v) AS ?list) {
                   { SELECT ?v { ?s <http://e/is> ?v } ORDER BY DESC(?v) } }";
        let expected: Vec<usize> = (0..VALUES).rev().collect();
        assert_eq!(lists(&database, all), [expected]);
        let grouped = "SELECT ?g (GROUP_CONCAT(DISTINCT ?v) AS ?list) {
                       SELECT ?g ?v { ?s <http://e/is> ?v ; <http://e/in> ?g } ORDER BY ?v
                       } GROUP BY ?g ORDER BY ?g";
        let of_group = |group: usize| (group..VALUES).step_by(3).collect::<Vec<_>>();
        assert_eq!(
            lists(&database, grouped),
            [of_group(0), of_group(1), of_group(2)]
        );
        let first = "SELECT (SAMPLE(?v) AS ?list) {
                     { SELECT ?v { ?s <http://e/is> ?v } ORDER BY DESC(?v) } }";
        assert_eq!(lists(&database, first), [[VALUES - 1]]);
    }
}
