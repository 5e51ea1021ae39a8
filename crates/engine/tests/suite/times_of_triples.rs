//! `timestamp()`: when did a triple come last, of all that the windows of a query have?

use std::time::Duration;

use jindou_engine::{Config, Database, EngineError, KeepSolutions, NextResult, TupleFormat};
use jindou_engine::{StreamDefinition, results::write_term};

const PREFIX: &str = "PREFIX : <http://e/> ";

fn database() -> Database {
    let mut config = Config::default();
    config.keep_solutions = KeepSolutions::Always;
    let database = Database::with_config(config);
    for name in ["s", "t"] {
        let definition = StreamDefinition::new(format!("http://e/{name}"));
        assert!(database.create_stream(name, definition).unwrap());
    }
    database
}

fn push(database: &Database, stream: &str, tuples: &[(i64, &str)]) {
    let line = |(time, triple): &(i64, &str)| {
        let [s, p, o] = [0, 1, 2].map(|part| triple.split(' ').nth(part).unwrap());
        format!("{time}\t<http://e/{s}> <http://e/{p}> <http://e/{o}> .\n")
    };
    let text: String = tuples.iter().map(line).collect();
    let pushed = database.push(stream, TupleFormat::Lines, None, text.into_bytes());
    pushed.unwrap();
}

/// The rows of each result, in order; `-` where nothing is bound.
fn rows(database: &Database, query: &str) -> Vec<(i64, Vec<String>)> {
    let mut reader = database.results_of(query, Some(0)).unwrap();
    let mut all = Vec::new();
    while let NextResult::Result(result, _) = reader.next_within(Duration::ZERO) {
        let answer = result.answer.as_ref().unwrap();
        let rows = answer.rows().unwrap().iter().map(|row| {
            let cells = row.into_iter().map(|cell| {
                let mut bytes = Vec::new();
                match cell {
                    Some(term) => write_term(&mut bytes, term, true),
                    None => bytes.push(b'-'),
                }
                String::from_utf8(bytes).unwrap().replace("http://e/", "")
            });
            cells.collect::<Vec<_>>().join(" ")
        });
        let mut rows: Vec<String> = rows.collect();
        rows.sort();
        all.push((result.instant_ms, rows));
    }
    all
}

fn register(database: &Database, name: &str, text: &str) {
    let registered = database.register(name, &format!("{PREFIX}{text}"));
    registered.unwrap_or_else(|error| panic!("{error}: {text}"));
}

#[test]
fn the_latest_time_of_all_windows_counts() {
    let database = database();
    register(
        &database,
        "q",
        "REGISTER QUERY q COMPUTED EVERY 100ms AS SELECT ?x (timestamp(?x, :p, ?y) AS ?t) \
         FROM NAMED WINDOW :w ON :s [RANGE 300ms STEP 100ms] \
         FROM NAMED WINDOW :v ON :t [TRIPLES 2 STEP 1] WHERE { WINDOW :w { ?x :p ?y } }",
    );
    push(
        &database,
        "s",
        &[(10, "a p b"), (40, "c p d"), (60, "a p b")],
    );
    push(
        &database,
        "t",
        &[
            (20, "a p b"),
            (50, "c p d"),
            (110, "c p d"),
            (120, "x p y"),
            (130, "x p z"),
        ],
    );
    for stream in ["s", "t"] {
        database.heartbeat(stream, 400).unwrap();
    }
    let both = |a: &str, c: &str| vec![format!("<a> {a}"), format!("<c> {c}")];
    let expected = [
        (100, both("60", "50")),
        // The other window has forgotten it.
        (200, both("60", "40")),
        (300, both("60", "40")),
        (400, vec![]),
    ];
    assert_eq!(rows(&database, "q"), expected);
    let plan = database.explain_continuous("q").unwrap().unwrap();
    let reason = "recomputed at each instant: timestamp()";
    assert!(plan.starts_with(reason), "{plan}");
}

#[test]
fn a_triple_that_no_window_has_has_no_time() {
    let database = database();
    database
        .update("INSERT DATA { <http://e/a> <http://e/stored> <http://e/b> }")
        .unwrap();
    let of = "FROM :nothing FROM STREAM :s [RANGE 100ms STEP 100ms] WHERE";
    let texts = [
        (
            "bound",
            format!("SELECT ?x ?t {of} {{ ?x :p ?y BIND(timestamp(?y, :p, ?x) AS ?t) }}"),
        ),
        (
            "kept",
            format!("SELECT ?x {of} {{ ?x :p ?y FILTER(timestamp(?y, :p, ?x) < 1000) }}"),
        ),
        (
            "otherwise",
            format!(
                "SELECT ?x (COALESCE(timestamp(?x, :stored, ?y), timestamp(?x, :p, ?z), \"no\") AS ?t) \
                 {of} {{ ?x :p ?y }}"
            ),
        ),
        (
            "made",
            format!("SELECT (timestamp(IRI(\"http://e/a\"), ?p, ?y) AS ?t) {of} {{ :a ?p ?y }}"),
        ),
        (
            "unknown",
            format!(
                "SELECT ?x (COUNT(?t) AS ?n) {of} {{ ?x :p ?y VALUES ?z {{ 3 \"text\" :nowhere :a }} \
                 BIND(COALESCE(timestamp(?x, ?z, ?y), timestamp(?z, :p, IRI(\"http://no\")), \
                 timestamp(IRI(CONCAT(\"http://\", STR(?z))), :p, ?y), timestamp(?x, :p, BNODE())) AS ?t) }} \
                 GROUP BY ?x"
            ),
        ),
        (
            "fixed",
            format!("SELECT (timestamp(:b, :p, :a) AS ?t) {of} {{ }}"),
        ),
    ];
    for (name, text) in &texts {
        register(&database, name, text);
    }
    push(
        &database,
        "s",
        &[(10, "a p b"), (30, "b p a"), (20, "c p b"), (100, "z p z")],
    );
    let one = |name: &str| {
        let mut all = rows(&database, name);
        assert_eq!(all.len(), 1, "{name}");
        all.remove(0).1.join(", ")
    };
    assert_eq!(one("bound"), "<a> 30, <b> 10, <c> -");
    assert_eq!(one("kept"), "<a>, <b>");
    assert_eq!(one("otherwise"), "<a> \"no\", <b> \"no\", <c> \"no\"");
    assert_eq!(one("made"), "10");
    assert_eq!(one("unknown"), "<a> 0, <b> 0, <c> 0");
    assert_eq!(one("fixed"), "30");
}

#[test]
fn times_are_values_wherever_expressions_are() {
    let database = database();
    let of = "FROM STREAM :s [RANGE 1s STEP 100ms] WHERE";
    let later = "FILTER(timestamp(?y, :p, ?what) > timestamp(?x, :p, ?what))";
    let texts = [
        (
            "filter",
            format!("SELECT ?x ?y {of} {{ ?x :p ?what . ?y :p ?what {later} }}"),
        ),
        (
            "exists",
            format!("SELECT ?x {of} {{ ?x :p ?what FILTER NOT EXISTS {{ ?y :p ?what {later} }} }}"),
        ),
        (
            "groups",
            format!(
                "SELECT ?what (MAX(timestamp(?x, :p, ?what)) - MIN(timestamp(?x, :p, ?what)) AS ?took) \
                 {of} {{ ?x :p ?what }} GROUP BY ?what HAVING(COUNT(timestamp(?x, :p, ?what)) > 1)"
            ),
        ),
        (
            "order",
            format!(
                "SELECT ?x {of} {{ ?x :p ?what }} ORDER BY DESC(timestamp(?x, :p, ?what)) LIMIT 1"
            ),
        ),
        (
            "optional",
            format!(
                "SELECT ?x ?y {of} {{ ?x :p :m OPTIONAL {{ ?y :p ?what FILTER(?what = :m) {later} }} }}"
            ),
        ),
    ];
    for (name, text) in &texts {
        register(&database, name, text);
    }
    push(
        &database,
        "s",
        &[(10, "a p m"), (40, "b p m"), (70, "c p n"), (100, "z p z")],
    );
    let one = |name: &str| rows(&database, name)[0].1.join(", ");
    assert_eq!(one("filter"), "<a> <b>");
    assert_eq!(one("exists"), "<b>, <c>");
    assert_eq!(one("groups"), "<m> 30");
    assert_eq!(one("order"), "<c>");
    assert_eq!(one("optional"), "<a> <b>, <b> -");
}

#[test]
fn what_has_no_windows_and_what_is_no_triple_is_refused_by_name() {
    let database = database();
    let iri = "<http://larkc.eu/csparql/sparql/jena/ext#timestamp>";
    let refused = |error: EngineError| {
        let EngineError::Unsupported { feature, .. } = error else {
            panic!("{error}");
        };
        feature
    };
    let window = "FROM STREAM <http://e/s> [RANGE 1s]";
    let texts = [
        (
            format!("ASK {{ ?x ?p ?y FILTER({iri}(?x, ?p, ?y) > 1) }}"),
            "without windows",
        ),
        (
            format!("ASK {window} {{ ?x ?p ?y FILTER(timestamp(?x) > 1) }}"),
            "three arguments",
        ),
        (
            format!("ASK {window} {{ ?x ?p ?y FILTER({iri}(?x, ?p) > 1) }}"),
            "three arguments",
        ),
        (
            format!(
                "ASK {window} {{ SERVICE <http://e/q> {{ ?x ?p ?y FILTER(timestamp(?x, ?p, ?y) > 1) }} }}"
            ),
            "timestamp() in SERVICE",
        ),
    ];
    for (text, part) in &texts {
        let feature = refused(database.register("q", text).expect_err(text));
        assert!(feature.contains(part), "{feature}");
    }
    let feature = refused(
        database
            .query(&texts[0].0)
            .map(|_| ())
            .expect_err("no windows"),
    );
    assert!(
        feature.contains("timestamp() in a query without windows"),
        "{feature}"
    );
}
