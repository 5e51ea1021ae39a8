//! What keeps a query within its limits, and the database whole after it?

use std::time::Duration;

use jindou_engine::ingest::{Format, LoadOptions, Progress, Source};
use jindou_engine::{
    CancellationToken, Config, Database, EngineError, QueryOptions, QueryResults, SpillLimits,
};

const HUB_EDGES: usize = 30_000;

/// A hub with edges both ways and a literal on each neighbour.
fn data() -> String {
    let mut text = String::new();
    for number in 0..HUB_EDGES {
        text += &format!(
            "<http://e/hub> <http://e/out> <http://e/{number}> .\n\
             <http://e/{number}> <http://e/in> <http://e/hub> .\n\
             <http://e/{number}> <http://e/name> \"name {number}\" .\n"
        );
    }
    text
}

fn load(database: &Database, text: String) {
    let source = Source::bytes("data.nt", text).with_format(Format::NTriples);
    database
        .load(vec![source], &LoadOptions::default(), &Progress::default())
        .expect("the data is well-formed");
}

fn database(memory_bytes: u64) -> Database {
    let mut config = Config::default();
    config.query_memory_bytes = memory_bytes;
    config.spill = SpillLimits::off();
    config.threads = 2;
    let database = Database::with_config(config);
    load(&database, data());
    database
}

/// Rows or triples of a query.
fn count(database: &Database, query: &str, options: QueryOptions) -> Result<usize, EngineError> {
    let text = format!("PREFIX : <http://e/> {query}");
    Ok(match database.query_with(&text, options)? {
        QueryResults::Solutions(mut solutions) => {
            let mut rows = 0;
            while let Some(batch) = solutions.next_batch()? {
                rows += batch.rows();
            }
            rows
        }
        QueryResults::Boolean(answer) => usize::from(answer),
        QueryResults::Graph(graph) => graph.collect::<Result<Vec<_>, _>>()?.len(),
    })
}

/// Queries that hold much, and some that run for long.
const HOLDING: [&str; 7] = [
    "SELECT * { ?s ?p ?o } ORDER BY ?o",
    "SELECT DISTINCT ?s ?o { ?s ?p ?o }",
    "SELECT ?s (COUNT(*) AS ?n) { ?s ?p ?o } GROUP BY ?s",
    "SELECT (COUNT(DISTINCT ?o) AS ?n) { ?s ?p ?o FILTER(STRLEN(STR(?o)) > 0) }",
    "SELECT * { OPTIONAL { ?x :in ?h } OPTIONAL { ?x :name ?n } }",
    "CONSTRUCT { ?o ?p ?s } { ?s ?p ?o . ?s ?q ?r FILTER(isIRI(?o)) }",
    "DESCRIBE :hub",
];
const LONG: [&str; 2] = [
    "SELECT * { ?a ?b ?c . ?d ?e ?f }",
    "SELECT * { :hub ?p ?x OPTIONAL { ?x ?q ?y } }",
];

#[test]
fn a_query_that_was_cancelled_or_is_out_of_time_ends_wherever_it_is() {
    let database = database(4 << 30);
    for query in HOLDING.iter().chain(&LONG) {
        let cancellation = CancellationToken::new();
        cancellation.cancel();
        let options = QueryOptions {
            cancellation: Some(cancellation),
            ..QueryOptions::default()
        };
        let ended = count(&database, query, options);
        assert!(
            matches!(ended, Err(EngineError::Cancelled)),
            "{query}: {ended:?}"
        );

        let options = QueryOptions {
            timeout: Some(Duration::ZERO),
            ..QueryOptions::default()
        };
        let ended = count(&database, query, options);
        assert!(
            matches!(ended, Err(EngineError::Timeout { .. })),
            "{query}: {ended:?}"
        );
    }
}

#[test]
fn a_query_that_is_long_to_plan_is_not_planned_once_it_is_cancelled() {
    let database = database(4 << 30);
    let chain = "<http://e/p>/".repeat(300);
    let query = format!("ASK {{ ?s {chain}<http://e/p> ?o }}");
    let cancellation = CancellationToken::new();
    cancellation.cancel();
    let cancelled = QueryOptions {
        cancellation: Some(cancellation),
        ..QueryOptions::default()
    };
    let ended = database.query_with(&query, cancelled);
    assert!(matches!(ended, Err(EngineError::Cancelled)), "{ended:?}");
    let late = QueryOptions {
        timeout: Some(Duration::ZERO),
        ..QueryOptions::default()
    };
    let ended = database.query_with(&query, late);
    assert!(
        matches!(ended, Err(EngineError::Timeout { .. })),
        "{ended:?}"
    );
    assert!(database.query(&query).is_ok());
}

#[test]
fn a_query_that_is_cancelled_between_batches_ends_there() {
    let database = database(4 << 30);
    let cancellation = CancellationToken::new();
    let options = QueryOptions {
        cancellation: Some(cancellation.clone()),
        ..QueryOptions::default()
    };
    let text = "SELECT * { ?a ?b ?c . ?d ?e ?f }";
    let Ok(QueryResults::Solutions(mut solutions)) = database.query_with(text, options) else {
        panic!("SELECT has solutions");
    };
    assert!(solutions.next_batch().is_ok_and(|batch| batch.is_some()));
    cancellation.cancel();
    assert!(matches!(
        solutions.next_batch(),
        Err(EngineError::Cancelled)
    ));
}

#[test]
fn a_query_beyond_its_memory_ends_and_the_next_is_answered() {
    let database = database(100_000);
    for query in HOLDING {
        let ended = count(&database, query, QueryOptions::default());
        let limit = 100_000;
        assert!(
            matches!(ended, Err(EngineError::MemoryExceeded { limit_bytes }) if limit_bytes == limit),
            "{query}: {ended:?}"
        );
        let light = "SELECT * { :17 :name ?name }";
        let next = count(&database, light, QueryOptions::default());
        assert_eq!(next.expect("a light query holds nothing"), 1);
    }
}

#[test]
fn the_edges_of_a_hub_come_in_batches() {
    let database = database(4 << 30);
    for query in [
        "SELECT * { :hub ?p ?x }",
        "SELECT * { ?x ?p :hub }",
        "SELECT * { ?s ?p ?o }",
        "SELECT * { ?h :out ?x . ?x :in ?h }",
        "SELECT * { :hub :out ?x . ?x :in :hub }",
    ] {
        let text = format!("PREFIX : <http://e/> {query}");
        let Ok(QueryResults::Solutions(mut solutions)) = database.query(&text) else {
            panic!("SELECT has solutions");
        };
        let (mut rows, mut most) = (0, 0);
        while let Some(batch) = solutions.next_batch().expect("nothing limits it") {
            rows += batch.rows();
            most = most.max(batch.rows());
        }
        assert!(
            rows >= HUB_EDGES && most <= HUB_EDGES / 2,
            "{rows} rows, {most} at once"
        );
    }
}

#[test]
fn optional_parts_that_share_only_a_variable_of_the_first_are_joined_by_it() {
    let mut text = String::new();
    for number in 0..20_000 {
        text += &format!(
            "<http://e/a> <http://e/p> <http://e/{number}> .\n\
             <http://e/{number}> <http://e/q> \"{number}\" .\n"
        );
    }
    let database = Database::new();
    load(&database, text);
    // A nested loop over both sides would compare 400 million pairs.
    let query = "SELECT * { OPTIONAL { ?x :p ?y } OPTIONAL { ?y :q ?z } }";
    let found = count(&database, query, QueryOptions::default());
    assert_eq!(found.expect("nothing limits it"), 20_000);
}

#[test]
fn a_graph_whose_triples_cannot_repeat_is_not_held() {
    let database = database(100_000);
    for query in [
        "CONSTRUCT WHERE { ?s ?p ?o }",
        "CONSTRUCT { ?o ?p ?s } { ?s ?p ?o FILTER(isIRI(?o)) }",
    ] {
        let triples = count(&database, query, QueryOptions::default());
        assert!(triples.is_ok_and(|triples| triples >= 60_000), "{query}");
    }
}
