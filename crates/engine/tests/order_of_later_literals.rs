//! Is ORDER BY over literals that updates appended as right, and does it hold as little, as over
//! those of a bulk load?
//!
//! Texts are long, so that a query that read them would hold more than its rows.

use std::fmt::Write as _;

use jindou_engine::ingest::{Progress, Source};
use jindou_engine::{Config, Database, LoadOptions, MergePolicy, QueryResults};

const LITERALS: usize = 4_000;
/// Bytes of a text, about.
const TEXT: usize = 1_000;

fn line(number: usize) -> String {
    let value = number * 7919 % 10_007;
    format!(
        "<http://e/{number}> <http://e/name> \"{value:05}{}\" .\n",
        "x".repeat(TEXT)
    )
}

fn lines(numbers: std::ops::Range<usize>) -> String {
    numbers.map(line).collect()
}

fn load(loaded: usize) -> Database {
    let mut config = Config::default();
    config.threads = 1;
    config.merge = MergePolicy::never();
    let database = Database::with_config(config);
    let source = Source::bytes("data.nt", lines(0..loaded).into_bytes());
    let (options, progress) = (LoadOptions::default(), Progress::default());
    database.load(vec![source], &options, &progress).unwrap();
    database
}

fn append(database: &Database, numbers: std::ops::Range<usize>) {
    let mut text = String::new();
    write!(text, "INSERT DATA {{ {} }}", lines(numbers)).unwrap();
    database.update(&text).unwrap();
}

/// The beginnings of the texts of a column, and the most bytes that the query held.
fn answer(database: &Database, text: &str) -> (u64, Vec<String>) {
    let run = || {
        let QueryResults::Solutions(mut solutions) = database.query(text).unwrap() else {
            panic!("no SELECT: {text}")
        };
        let mut ids = Vec::new();
        while let Some(batch) = solutions.next_batch().unwrap() {
            ids.extend_from_slice(batch.column(0));
        }
        ids.len()
    };
    // What is remembered of literals is there after the first time.
    run();
    let (peak, rows) = jindou_counting::peak(run);
    let QueryResults::Solutions(solutions) = database.query(text).unwrap() else {
        panic!("no SELECT: {text}")
    };
    let begin = |solution: jindou_engine::Solution| {
        let term = solution.get("t").expect("it is bound").to_string();
        term[1..6].to_owned()
    };
    let texts: Vec<String> = solutions.map(|solution| begin(solution.unwrap())).collect();
    assert_eq!(texts.len(), rows);
    (peak, texts)
}

const QUERIES: [&str; 5] = [
    "SELECT ?t { ?s <http://e/name> ?t } ORDER BY ?t",
    "SELECT ?t { ?s <http://e/name> ?t } ORDER BY DESC(?t)",
    "SELECT ?t { ?s <http://e/name> ?t } ORDER BY ?t LIMIT 10",
    "SELECT (MIN(?x) AS ?t) { ?s <http://e/name> ?x }",
    "SELECT (MAX(?x) AS ?t) { ?s <http://e/name> ?x }",
];

/// One test, as there is one counter of memory.
#[test]
fn order_by_reads_no_texts_after_updates_and_merges() {
    let fresh = load(LITERALS);
    let right = QUERIES.map(|query| answer(&fresh, query));
    let loaded = LITERALS * 9 / 10;
    let compare = |database: &Database, when: &str| {
        for (query, (peak, texts)) in QUERIES.iter().zip(&right) {
            let (found_peak, found) = answer(database, query);
            assert_eq!(found, *texts, "{query} {when}");
            // The texts that were appended take twice as much.
            let most = peak + (LITERALS * TEXT / 20) as u64;
            assert!(
                found_peak < most,
                "{query} {when}: {found_peak}, not {peak}"
            );
        }
    };
    let database = load(loaded);
    append(&database, loaded..LITERALS);
    compare(&database, "when appended");
    database.compact().unwrap();
    compare(&database, "when merged");
    let database = load(loaded);
    for numbers in [
        loaded..loaded + 300,
        loaded + 300..loaded + 380,
        loaded + 380..LITERALS,
    ] {
        append(&database, numbers);
        database.compact().unwrap();
    }
    compare(&database, "when merged three times");
}
