//! What several threads share out, operators that wait for all rows included, is what one thread does.

use std::fmt::Write as _;

use jindou_engine::ingest::{Progress, Source};
use jindou_engine::{Config, Database, LoadOptions, QueryOptions, QueryResults, Sharing};

const VERTICES: u64 = 3_000;
const MEMORY: [u64; 2] = [1 << 30, 3 << 20];

/// Vertices of three classes with edges among them, numbers, texts and a few hubs.
fn database(memory: u64) -> Database {
    let mut text = String::new();
    let mut state = 5_u64;
    let mut below = |bound: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % bound
    };
    for vertex in 0..VERTICES {
        writeln!(text, "<e:{vertex}> a <e:C{}> .", below(3)).unwrap();
        for _ in 0..below(5) {
            writeln!(text, "<e:{vertex}> <e:to> <e:{}> .", below(VERTICES)).unwrap();
        }
        writeln!(text, "<e:{vertex}> <e:in> <e:hub{}> .", below(12)).unwrap();
        writeln!(text, "<e:{vertex}> <e:number> {} .", below(500)).unwrap();
        writeln!(text, "<e:{vertex}> <e:share> {}.5 .", below(90)).unwrap();
        if below(3) == 0 {
            writeln!(text, "<e:{vertex}> <e:name> \"name {}\" .", below(400)).unwrap();
        }
        // A forest.
        writeln!(text, "<e:{vertex}> <e:up> <e:{}> .", vertex / 3).unwrap();
    }
    for hub in 0..12 {
        writeln!(text, "<e:hub{hub}> <e:label> \"hub {}\" .", hub / 2).unwrap();
    }
    let mut config = Config::default();
    config.threads = 3;
    config.sharing = Sharing::all();
    config.query_memory_bytes = memory;
    let database = Database::with_config(config);
    let source = Source::bytes("shared.ttl", text);
    database
        .load(vec![source], &LoadOptions::default(), &Progress::default())
        .unwrap();
    database
}

fn rows(database: &Database, query: &str, threads: usize) -> Vec<String> {
    let options = QueryOptions {
        threads: Some(threads),
        ..QueryOptions::default()
    };
    let query = format!("PREFIX e: <e:> {query}");
    let results = database
        .query_with(&query, options)
        .unwrap_or_else(|error| panic!("{query}: {error}"));
    let QueryResults::Solutions(solutions) = results else {
        panic!("no SELECT: {query}");
    };
    solutions
        .map(|solution| match solution {
            Ok(solution) => format!("{solution:?}"),
            Err(error) => panic!("{query}: {error}"),
        })
        .collect()
}

/// Several threads find the rows of one, in the same order if `ordered`.
fn assert_same(queries: &[&str], ordered: bool) {
    for memory in MEMORY {
        let database = database(memory);
        for query in queries {
            let mut alone = rows(&database, query, 1);
            assert!(!alone.is_empty(), "{query}");
            for _ in 0..2 {
                let mut shared = rows(&database, query, 3);
                if !ordered {
                    alone.sort_unstable();
                    shared.sort_unstable();
                }
                assert!(alone == shared, "{query}, {memory} bytes");
            }
        }
    }
}

#[test]
fn groups() {
    assert_same(
        &[
            "SELECT (COUNT(*) AS ?n) { ?s e:to ?o . ?o e:in ?h }",
            "SELECT (COUNT(?x) AS ?n) (SUM(?v) AS ?sum) (AVG(?v) AS ?mean) {
                ?s e:to ?o . ?o e:number ?v OPTIONAL { ?o e:name ?x } }",
            "SELECT ?h (COUNT(*) AS ?n) (SUM(?f) AS ?sum) (MIN(?v) AS ?low) (MAX(?v) AS ?high) {
                ?s e:in ?h ; e:to ?o . ?o e:number ?v ; e:share ?f } GROUP BY ?h",
            "SELECT ?o (COUNT(*) AS ?n) (MAX(?x) AS ?last) {
                ?s e:to ?o OPTIONAL { ?s e:name ?x } } GROUP BY ?o",
            "SELECT ?s ?o (COUNT(*) AS ?n) { ?s e:to ?m . ?m e:to ?o } GROUP BY ?s ?o",
            "SELECT ?h (COUNT(DISTINCT ?o) AS ?n) (SUM(DISTINCT ?v) AS ?sum) {
                ?s e:in ?h ; e:to ?o . ?o e:number ?v } GROUP BY ?h",
            "SELECT (COUNT(DISTINCT *) AS ?n) { ?s e:in ?h ; e:to ?o }",
            "SELECT (COUNT(DISTINCT ?s) AS ?n) (COUNT(DISTINCT ?h) AS ?m) { ?s e:in ?h ; e:to ?o }",
            "SELECT ?tens (SUM(?v * 2 + 1) AS ?sum) {
                ?s e:to ?o . ?o e:number ?v BIND(FLOOR(?v / 10) AS ?tens) FILTER(?v > 20) } GROUP BY ?tens",
            "SELECT ?h (COUNT(*) AS ?n) { ?s e:in ?h ; e:to ?o } GROUP BY ?h HAVING(COUNT(*) > 500)",
            "SELECT ?n (COUNT(*) AS ?times) { { SELECT ?s (COUNT(*) AS ?n) { ?s e:to ?o . ?o e:in ?h } GROUP BY ?s } } GROUP BY ?n",
            "SELECT ?l (SUM(?n) AS ?all) {
                { SELECT ?h (COUNT(*) AS ?n) { ?s e:in ?h ; e:to ?o } GROUP BY ?h } ?h e:label ?l } GROUP BY ?l",
            "SELECT ?h (SUM(?x) AS ?none) (COUNT(*) AS ?n) { ?s e:in ?h ; e:name ?x } GROUP BY ?h",
            "SELECT (MIN(?v) AS ?low) (SAMPLE(?h) AS ?some) { ?s e:to ?o ; e:in ?h ; e:number ?v FILTER(?h = e:hub1) }",
            "SELECT (COUNT(*) AS ?n) { ?s a e:C1 ; e:to ?o FILTER(?s = ?o) }",
        ],
        false,
    );
}

#[test]
fn groups_of_one_thread_each() {
    assert_same(
        &[
            "SELECT ?s (COUNT(*) AS ?n) (MAX(?v) AS ?high) { ?s a e:C1 ; e:to ?o . ?o e:number ?v } GROUP BY ?s",
            "SELECT ?s (COUNT(DISTINCT ?v) AS ?n) { ?s a e:C2 ; e:to ?o . ?o e:number ?v } GROUP BY ?s",
            "SELECT ?s ?h (SUM(?v) AS ?sum) { ?s a ?c ; e:in ?h ; e:to ?o . ?o e:number ?v } GROUP BY ?s ?h",
            "SELECT ?s (COUNT(*) AS ?n) {
                { SELECT ?o { ?s a e:C1 ; e:to ?o } } ?o e:up ?s } GROUP BY ?s",
        ],
        false,
    );
}

#[test]
fn distinct_rows() {
    assert_same(
        &[
            "SELECT DISTINCT ?h { ?s e:in ?h ; e:to ?o }",
            "SELECT DISTINCT ?o { ?s a e:C1 ; e:to ?o }",
            "SELECT DISTINCT ?s { ?s a e:C1 ; e:to ?o }",
            "SELECT DISTINCT ?s ?u { ?s a ?c ; e:to ?o . ?o e:up ?u }",
            "SELECT DISTINCT ?m ?n { ?s e:up ?m ; e:to ?o . ?o e:up ?n }",
            "SELECT DISTINCT ?x { ?s e:to ?o OPTIONAL { ?o e:name ?x } }",
            "SELECT DISTINCT (?v + 1 AS ?w) { ?s e:to ?o . ?o e:number ?v }",
            "SELECT (COUNT(*) AS ?n) { SELECT DISTINCT ?o ?h { ?s e:to ?o ; e:in ?h } }",
            "SELECT DISTINCT ?n { SELECT ?s (COUNT(*) AS ?n) { ?s e:to ?o . ?o e:in ?h } GROUP BY ?s }",
        ],
        false,
    );
    assert_same(
        &["SELECT DISTINCT ?v { ?s e:to ?o . ?o e:number ?v } ORDER BY ?v"],
        true,
    );
}

#[test]
fn rows_in_order() {
    assert_same(
        &[
            "SELECT ?s ?o ?v { ?s e:to ?o . ?o e:number ?v } ORDER BY DESC(?v) ?s ?o",
            "SELECT ?s ?o ?v { ?s e:to ?o . ?o e:number ?v } ORDER BY DESC(?v) ?s ?o LIMIT 20",
            "SELECT ?s ?o { ?s e:to ?o . ?o e:in ?h } ORDER BY ?o ?s ?h OFFSET 100 LIMIT 4000",
            "SELECT ?s ?o { ?s e:to ?o . ?o e:number ?v ; e:share ?f } ORDER BY (?v + ?f) ?s ?o LIMIT 7",
            "SELECT ?s ?x { ?s e:to ?o OPTIONAL { ?o e:name ?x } } ORDER BY STRLEN(?x) ?x ?s ?o",
            "SELECT ?h (COUNT(*) AS ?n) { ?s e:in ?h ; e:to ?o } GROUP BY ?h ORDER BY DESC(?n) ?h LIMIT 3",
            "SELECT ?o ?n { { SELECT ?o ?n { ?s e:to ?o . ?o e:number ?n } ORDER BY ?n ?o ?s LIMIT 50 } } ORDER BY DESC(?n) ?o",
        ],
        true,
    );
}

#[test]
fn a_slice_of_a_nested_select_ends_its_threads() {
    let database = database(1 << 30);
    let query = "SELECT (COUNT(*) AS ?n) {
        { SELECT ?s ?p { ?s e:to ?o . ?o e:to ?p . ?q e:to ?p } LIMIT 10 } ?p e:in ?h }";
    for _ in 0..20 {
        assert_eq!(rows(&database, query, 3).len(), 1);
    }
    // All workers take part again.
    let all = "SELECT ?h (COUNT(*) AS ?n) { ?s e:in ?h ; e:to ?o } GROUP BY ?h";
    assert_eq!(rows(&database, all, 3).len(), 12);
}

#[test]
fn an_error_of_any_thread_ends_the_query() {
    let database = database(1 << 30);
    // Of all rows, one in some thousands makes a text that is longer than may be.
    let text = "x".repeat(1 << 10);
    let query = format!(
        "SELECT (COUNT(?long) AS ?n) {{ ?s <e:to> ?o . ?o <e:to> ?p . ?p <e:number> ?v
         BIND(REPLACE(IF(?s = <e:2999>, \"{text}\", \"\"), \"x\", \"{text}{text}\") AS ?a)
         BIND(REPLACE(?a, \"x\", \"{text}{text}\") AS ?long) }}"
    );
    for threads in [1, 3] {
        let options = QueryOptions {
            threads: Some(threads),
            ..QueryOptions::default()
        };
        let results = database.query_with(&query, options).unwrap();
        let QueryResults::Solutions(mut solutions) = results else {
            panic!("no SELECT: {query}");
        };
        assert!(
            solutions.next().is_some_and(|row| row.is_err()),
            "{threads}"
        );
    }
}
