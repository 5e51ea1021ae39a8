//! Queries whose memory does not suffice give the same answers from disk.

use std::fmt::Write as _;
use std::path::Path;

use jindou_engine::ingest::{Format, LoadOptions, Progress, Source};
use jindou_engine::{
    CancellationToken, Config, Database, EngineError, QueryOptions, QueryResults, SpillLimits,
};

const SUBJECTS: u64 = 12_000;
const MUCH: u64 = 1 << 30;
/// Holds a few hundred rows.
const LITTLE: u64 = 150_000;
const SEEDS: [u64; 2] = [3, 2026];

/// A small generator of numbers (splitmix64).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound
    }
}

/// Subjects with a number, a name that several share, neighbours, and some of them a note.
fn data(seed: u64) -> String {
    let mut random = Random(seed);
    let mut text = String::new();
    for subject in 0..SUBJECTS {
        let number = random.below(500);
        let name = random.below(SUBJECTS);
        let typed = match random.below(3) {
            0 => format!("\"{number}\"^^<http://www.w3.org/2001/XMLSchema#integer>"),
            1 => format!("\"{number}.5\"^^<http://www.w3.org/2001/XMLSchema#decimal>"),
            _ => format!("\"text {number}\""),
        };
        writeln!(
            text,
            "<http://e/{subject}> <http://e/number> \
             \"{number}\"^^<http://www.w3.org/2001/XMLSchema#integer> .\n\
             <http://e/{subject}> <http://e/name> \"name {name}\" .\n\
             <http://e/{subject}> <http://e/mixed> {typed} ."
        )
        .expect("a string takes all");
        for _ in 0..random.below(4) {
            let other = random.below(SUBJECTS);
            writeln!(
                text,
                "<http://e/{subject}> <http://e/near> <http://e/{other}> ."
            )
            .expect("a string takes all");
        }
        if random.below(3) == 0 {
            writeln!(
                text,
                "<http://e/{subject}> <http://e/note> \"note {name}\" ."
            )
            .expect("a string takes all");
        }
    }
    text
}

fn database(seed: u64, memory_bytes: u64, spill: SpillLimits) -> Database {
    let mut config = Config::default();
    config.query_memory_bytes = memory_bytes;
    config.spill = spill;
    config.threads = 1;
    let database = Database::with_config(config);
    let source = Source::bytes("data.nt", data(seed)).with_format(Format::NTriples);
    database
        .load(vec![source], &LoadOptions::default(), &Progress::default())
        .expect("the data is well-formed");
    database
}

/// The rows as text, and the bytes that were written.
fn rows(database: &Database, query: &str) -> Result<(Vec<String>, u64), EngineError> {
    rows_with(database, query, QueryOptions::default())
}

fn rows_with(
    database: &Database,
    query: &str,
    options: QueryOptions,
) -> Result<(Vec<String>, u64), EngineError> {
    let text = format!("PREFIX : <http://e/> {query}");
    let QueryResults::Solutions(mut solutions) = database.query_with(&text, options)? else {
        panic!("SELECT has solutions");
    };
    let mut rows = Vec::new();
    for solution in &mut solutions {
        let cells: Vec<String> = solution?
            .iter()
            .map(|(name, term)| format!("{name}={term}"))
            .collect();
        rows.push(cells.join(" "));
    }
    Ok((rows, solutions.spilled_bytes()))
}

fn in_temporary_files(directory: &Path) -> SpillLimits {
    SpillLimits::new(directory, 1 << 30)
}

/// Their rows come in an order.
const ORDERED: [&str; 9] = [
    "SELECT * { ?s :number ?n } ORDER BY ?n",
    "SELECT * { ?s :number ?n ; :name ?name } ORDER BY DESC(?n) ?name",
    "SELECT ?s ?m { ?s :mixed ?m } ORDER BY ?m DESC(?s)",
    "SELECT ?s { ?s :name ?name } ORDER BY STRLEN(?name) DESC(?name)",
    "SELECT * { ?s :near ?o OPTIONAL { ?o :note ?note } } ORDER BY ?note ?s ?o",
    "SELECT * { ?s :name ?name } ORDER BY ?name LIMIT 9000",
    "SELECT * { ?s :name ?name } ORDER BY ?name OFFSET 1000 LIMIT 9000",
    "SELECT DISTINCT ?name ?n { ?s :name ?name ; :number ?n } ORDER BY ?n",
    "SELECT DISTINCT ?o { ?s :near ?o ; :number ?n } ORDER BY DESC(?n) OFFSET 50 LIMIT 2000",
];

/// Their rows come in any order.
const UNORDERED: [&str; 16] = [
    "SELECT DISTINCT ?s ?o { ?s :near ?o }",
    "SELECT DISTINCT ?name { ?s :name ?name }",
    "SELECT DISTINCT ?s ?p ?o { { ?s ?p ?o } UNION { ?s :near ?o } }",
    "SELECT ?name (COUNT(*) AS ?n) (MIN(?m) AS ?least) (MAX(?m) AS ?most) \
     { ?s :name ?name ; :mixed ?m } GROUP BY ?name",
    "SELECT ?o (SUM(?n) AS ?sum) (AVG(?n) AS ?mean) { ?s :near ?o ; :number ?n } GROUP BY ?o",
    "SELECT ?n (COUNT(DISTINCT ?o) AS ?c) (SUM(DISTINCT STRLEN(STR(?o))) AS ?l) \
     { ?s :near ?o ; :number ?n } GROUP BY ?n",
    "SELECT (COUNT(DISTINCT ?o) AS ?c) (COUNT(DISTINCT ?s) AS ?d) (COUNT(?o) AS ?e) \
     { ?s ?p ?o }",
    "SELECT (COUNT(DISTINCT *) AS ?c) { ?s ?p ?o }",
    "SELECT ?p (COUNT(DISTINCT *) AS ?c) { ?s ?p ?o } GROUP BY ?p",
    "SELECT * { { SELECT DISTINCT ?s ?n { ?s :number ?n } } { SELECT DISTINCT ?s ?o { ?s :near ?o } } }",
    "SELECT * { OPTIONAL { ?s :near ?o } OPTIONAL { ?o :name ?name } }",
    "SELECT * { OPTIONAL { ?s :note ?o } OPTIONAL { ?s :near ?x OPTIONAL { ?x :note ?o } } }",
    "SELECT * { { SELECT DISTINCT ?s ?name { ?s :name ?name } } \
     OPTIONAL { { SELECT DISTINCT ?s ?m { ?s :mixed ?m } } FILTER(?m > 100) } }",
    "SELECT * { ?s :name ?name MINUS { SELECT DISTINCT ?s { ?s :near ?o ; :note ?x } } }",
    "SELECT * { ?s :name ?name OPTIONAL { ?s :note ?o } \
     MINUS { ?s :mixed ?m OPTIONAL { ?s :note ?o } FILTER(isNumeric(?m)) } }",
    "SELECT ?n (COUNT(*) AS ?c) { { SELECT DISTINCT ?s ?n { ?s :number ?n } ORDER BY ?n } \
     { SELECT ?s (COUNT(?o) AS ?d) { ?s :near ?o } GROUP BY ?s } } GROUP BY ?n ORDER BY ?n",
];

#[test]
fn answers_from_disk_are_those_from_memory() {
    let directory = tempfile::tempdir().expect("there is room");
    for seed in SEEDS {
        let whole = database(seed, MUCH, SpillLimits::off());
        let tight = database(seed, LITTLE, in_temporary_files(directory.path()));
        let mut spilled = Vec::new();
        for query in ORDERED.iter().chain(&UNORDERED) {
            let (mut expected, none) = rows(&whole, query).expect("there is memory");
            let (mut found, bytes) =
                rows(&tight, query).unwrap_or_else(|error| panic!("seed {seed}: {query}: {error}"));
            assert_eq!(none, 0);
            if UNORDERED.contains(query) {
                expected.sort_unstable();
                found.sort_unstable();
            }
            assert!(!expected.is_empty(), "{query}");
            assert_eq!(found.len(), expected.len(), "seed {seed}: {query}");
            assert_eq!(found, expected, "seed {seed}: {query}");
            spilled.push((bytes > 0, *query));
        }
        let all: Vec<&str> = spilled.iter().filter(|s| !s.0).map(|s| s.1).collect();
        assert!(all.is_empty(), "these did not spill: {all:#?}");
        let left = directory.path().read_dir().expect("it is there").count();
        assert_eq!(left, 0, "files have no names");
    }
}

#[test]
fn rows_of_distinct_leave_before_all_are_known() {
    let directory = tempfile::tempdir().expect("there is room");
    let database = database(1, 2 * LITTLE, in_temporary_files(directory.path()));
    let query = "SELECT DISTINCT ?s ?o { ?s ?p ?o }";
    let Ok(QueryResults::Solutions(mut solutions)) = database.query(query) else {
        panic!("SELECT has solutions");
    };
    let first = solutions.next_batch().expect("nothing limits it");
    assert!(first.is_some_and(|batch| batch.rows() > 0));
    assert_eq!(solutions.spilled_bytes(), 0);
    while solutions.next_batch().expect("nothing limits it").is_some() {}
    assert!(solutions.spilled_bytes() > 0);
}

#[test]
fn a_query_beyond_its_temporary_files_ends_and_the_next_is_answered() {
    let directory = tempfile::tempdir().expect("there is room");
    let limit = 20_000;
    let database = database(1, LITTLE, SpillLimits::new(directory.path(), limit));
    for query in [
        "SELECT * { ?s ?p ?o } ORDER BY ?o",
        "SELECT DISTINCT ?s ?o { ?s ?p ?o }",
        "SELECT ?s ?o (COUNT(*) AS ?n) { ?s ?p ?o } GROUP BY ?s ?o",
        "SELECT (COUNT(DISTINCT ?o) AS ?n) { ?s ?p ?o FILTER(STRLEN(STR(?o)) > 0) }",
        "SELECT * { OPTIONAL { ?s :near ?o } OPTIONAL { ?o :name ?name } }",
        "SELECT * { ?s :name ?name MINUS { SELECT DISTINCT ?s { ?s :number ?o ; :mixed ?x } } }",
    ] {
        let ended = rows(&database, query);
        assert!(
            matches!(ended, Err(EngineError::SpillExceeded { limit_bytes }) if limit_bytes == limit),
            "{query}: {ended:?}"
        );
        let light = rows(&database, "SELECT * { :17 :name ?name }");
        assert_eq!(light.expect("a light query holds nothing").0.len(), 1);
    }
}

#[test]
fn a_directory_that_cannot_be_written_is_named() {
    let directory = tempfile::tempdir().expect("there is room");
    let absent = directory.path().join("absent");
    let database = database(1, LITTLE, in_temporary_files(&absent));
    let ended = rows(&database, "SELECT * { ?s ?p ?o } ORDER BY ?o");
    let Err(EngineError::Spill { directory, .. }) = &ended else {
        panic!("{ended:?}");
    };
    assert_eq!(*directory, absent);
    let message = ended.expect_err("it has ended").to_string();
    assert!(message.contains("absent"), "{message}");
}

#[test]
fn texts_that_do_not_fit_end_a_query() {
    let directory = tempfile::tempdir().expect("there is room");
    let database = database(1, LITTLE, in_temporary_files(directory.path()));
    for query in [
        "SELECT (GROUP_CONCAT(?name) AS ?all) { ?s :name ?name ; ?p ?o }",
        "SELECT ?s (GROUP_CONCAT(?name) AS ?all) { ?s :name ?name ; ?p ?o } GROUP BY ?s",
    ] {
        let ended = rows(&database, query);
        assert!(
            matches!(
                ended,
                Err(EngineError::MemoryExceeded {
                    limit_bytes: LITTLE
                })
            ),
            "{query}: {ended:?}"
        );
    }
}

#[test]
fn a_query_that_is_cancelled_while_its_rows_are_on_disk_ends() {
    let directory = tempfile::tempdir().expect("there is room");
    let database = database(1, LITTLE, in_temporary_files(directory.path()));
    for query in [
        "SELECT * { ?s ?p ?o } ORDER BY ?o",
        "SELECT DISTINCT ?s ?o { ?s ?p ?o }",
        "SELECT * { OPTIONAL { ?s :near ?o } OPTIONAL { ?o :name ?name } }",
    ] {
        let cancellation = CancellationToken::new();
        let options = QueryOptions {
            cancellation: Some(cancellation.clone()),
            ..QueryOptions::default()
        };
        let text = format!("PREFIX : <http://e/> {query}");
        let Ok(QueryResults::Solutions(mut solutions)) = database.query_with(&text, options) else {
            panic!("SELECT has solutions");
        };
        while solutions.spilled_bytes() == 0 {
            let batch = solutions.next_batch().expect("nothing limits it");
            assert!(batch.is_some(), "{query}: nothing was spilled");
        }
        cancellation.cancel();
        let ended = solutions.next_batch();
        assert!(matches!(ended, Err(EngineError::Cancelled)), "{query}");
        drop(solutions);
        let left = directory.path().read_dir().expect("it is there").count();
        assert_eq!(left, 0, "files have no names");
    }
}
