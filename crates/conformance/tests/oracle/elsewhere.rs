//! Does a query whose tables go to another machine and back, from each operator to the next, answer
//! as one that is in one place?
//!
//! `JINDOU_SEED` sets the first seed, `JINDOU_CASES` the number of cases, as in `differential`; and
//! `JINDOU_ELSEWHERE=1` runs all other tests of this crate so, which is the long form of these.

use jindou_conformance::answer::Answer;
use jindou_conformance::cases::seeds;
use jindou_conformance::common_ground::common_ground;
use jindou_conformance::differential::{Loaded, Outcome, bold_case, case};
use jindou_conformance::elsewhere::Elsewhere;
use jindou_conformance::engines::{ask, load_with};
use jindou_conformance::isomorphism::isomorphic;
use jindou_conformance::shrink::{Case, shrink};
use jindou_engine::ingest::Source;
use jindou_engine::{Config, Database, EngineError, TransportOfTables};
use jindou_exec::{Context, ExecError, Table, Transport, WireError};
use std::fmt::Write as _;
use std::sync::Arc;

const DEFAULT_CASES: u64 = 200;

fn config(transport: TransportOfTables) -> Config {
    let mut config = Config::default();
    config.transport = Some(transport);
    config
}

#[test]
fn random_queries_are_answered_as_defined() {
    let elsewhere = Elsewhere::new();
    let outcome = |case: &Case| {
        let loaded = Loaded::with_config(&case.quads, config(elsewhere.transport()));
        loaded
            .expect("it loads")
            .compare_to_definitions(&case.query)
    };
    for seed in seeds(DEFAULT_CASES) {
        let case = bold_case(seed);
        if !matches!(outcome(&case), Outcome::Different(_)) {
            continue;
        }
        let shrunk = shrink(case, &mut |case| {
            matches!(outcome(case), Outcome::Different(_))
        });
        for quad in &shrunk.quads {
            println!("{quad} .");
        }
        let (query, outcome) = (&shrunk.query, outcome(&shrunk));
        panic!("seed {seed}, shrunk: {query}\n{outcome:?}");
    }
    report(&elsewhere);
}

#[test]
fn random_queries_are_answered_as_by_the_oracle() {
    let elsewhere = Elsewhere::new();
    for seed in seeds(DEFAULT_CASES) {
        let case = case(seed);
        let loaded = Loaded::with_config(&case.quads, config(elsewhere.transport()));
        let outcome = loaded.expect("it loads").compare(&case.query);
        if let Outcome::Different(reason) = outcome
            && common_ground(&case.query.pattern)
        {
            panic!("seed {seed}: {}\n{reason}", case.query);
        }
    }
    report(&elsewhere);
}

/// Something was tested.
fn report(elsewhere: &Elsewhere) {
    let (tables, computed) = (elsewhere.tables(), elsewhere.with_computed());
    println!("{tables} tables went elsewhere, {computed} with computed terms");
    assert!(tables > 0 && (computed > 0 || seeds(DEFAULT_CASES).count() < 100));
}

const DATA: &str = r#"
    @prefix : <http://e/> .
    :a :p :b, :c ; :q 1, 12345678901234567890123456789, 0.1 ; :r "x"@en-GB, "y" .
    :b :p :c ; :q 2 ; :r "z"^^:type .
    :c :q 3e200 .
    _:d :p _:e, :a ; :r "w" .
    :g { :a :p :b . :b :p :a }
"#;

/// Queries that compute terms of each kind, and let rows, counts and numbers of solutions go along.
const COMPUTED: &[&str] = &[
    "SELECT ?s ?v { ?s :p ?o BIND(CONCAT(STR(?s), \"-\", STR(?o)) AS ?v) }",
    "SELECT ?s ?v { ?s :r ?o BIND(STRLANG(STR(?o), \"fr-CA\") AS ?v) }",
    "SELECT ?s ?v { ?s :r ?o BIND(STRDT(STR(?o), :made) AS ?v) }",
    "SELECT ?s ?v { ?s :r ?o BIND(IRI(CONCAT(\"http://made/\", STR(?o))) AS ?v) }",
    "SELECT ?v { ?s :q ?n BIND(?n * 1000000000000000000000000000007 AS ?v) }",
    "SELECT ?v { ?s :q ?n BIND(?n / 7 AS ?v) BIND(?v + 1e300 AS ?w) }",
    "SELECT ?s ?v ?w { ?s :p ?o BIND(BNODE() AS ?v) BIND(BNODE(\"l\") AS ?w) }",
    "SELECT ?s ?v ?w { ?s :p ?o BIND(BNODE(\"l\") AS ?v) OPTIONAL { ?o :p ?x } \
     BIND(BNODE(\"l\") AS ?w) }",
    "SELECT (COUNT(DISTINCT ?v) AS ?n) (MIN(STRLEN(STR(?v))) AS ?l) { ?s :p ?o \
     BIND(UUID() AS ?v) FILTER(ISIRI(?v)) }",
    "SELECT (COUNT(DISTINCT ?v) AS ?n) { ?s ?p ?o BIND(STRUUID() AS ?v) FILTER(?v != \"\") }",
    "SELECT ?s (GROUP_CONCAT(?t; SEPARATOR=\"\") AS ?v) { SELECT ?s ?t { ?s :p ?o \
     BIND(\"t\" AS ?t) } } GROUP BY ?s",
    "SELECT ?v (COUNT(*) AS ?n) { ?s :p ?o BIND(CONCAT(\"a\", STR(?s)) AS ?v) } GROUP BY ?v",
    "SELECT ?s (COUNT(*) AS ?n) { ?s :p ?o . ?s ?p ?x } GROUP BY ?s",
    "SELECT (COUNT(*) AS ?n) { ?s :p+ ?o . ?o ?p ?x }",
    "SELECT DISTINCT ?v { ?s :p ?o BIND(CONCAT(\"a\", STR(?s)) AS ?v) } ORDER BY ?v",
    "SELECT ?s ?v ?w { ?s :p ?o OPTIONAL { ?o :r ?x BIND(CONCAT(STR(?x), \"!\") AS ?v) \
     OPTIONAL { ?s :q ?y BIND(STR(?y) AS ?w) } } }",
    "SELECT ?s { ?s :p ?o FILTER EXISTS { ?o :p ?x FILTER NOT EXISTS { ?x :r ?y } } }",
    "SELECT ?s ?v { ?s :p ?o BIND(STR(?o) AS ?v) MINUS { ?x :p ?y BIND(STR(?x) AS ?v) } }",
    "SELECT ?s ?v { { ?s :p ?o BIND(STR(?o) AS ?v) } { ?x :p ?y BIND(STR(?y) AS ?v) } }",
    "SELECT ?g ?v { GRAPH ?g { ?s :p ?o } BIND(CONCAT(STR(?g), STR(?s)) AS ?v) }",
    "CONSTRUCT { ?v :made _:x } { ?s :p ?o BIND(IRI(CONCAT(STR(?s), STR(?o))) AS ?v) }",
];

fn small(config: Config) -> Database {
    let source = Source::bytes("data.trig", DATA.as_bytes().to_vec());
    load_with(vec![source], config).expect("the data loads")
}

/// The rows of an answer, those of a graph as rows of three.
fn rows(answer: Answer) -> Vec<Vec<Option<oxrdf::Term>>> {
    match answer {
        Answer::Solutions(table) => table.rows,
        Answer::Graph(triples) => {
            let row = |triple: oxrdf::Triple| {
                let parts = [
                    triple.subject.into(),
                    triple.predicate.into(),
                    triple.object,
                ];
                parts.map(Some).to_vec()
            };
            triples.into_iter().map(row).collect()
        }
        Answer::Boolean(value) => panic!("{value} is no rows"),
    }
}

#[test]
fn terms_of_each_kind_that_a_query_computes_survive() {
    let elsewhere = Elsewhere::new();
    let (one, other) = (
        small(Config::default()),
        small(config(elsewhere.transport())),
    );
    for query in COMPUTED {
        let before = elsewhere.tables();
        let text = format!("PREFIX : <http://e/> {query}");
        let answer = |database| ask(database, &text, None).expect("a right query");
        let (here, there) = (rows(answer(&one)), rows(answer(&other)));
        assert!(!here.is_empty(), "{query}");
        let ordered = query.contains("ORDER BY");
        assert!(
            isomorphic(&here, &there, ordered),
            "{query}\n{here:?}\n{there:?}"
        );
        assert!(elsewhere.tables() > before, "{query}");
    }
}

/// Vertices of a data set that threads share out.
const MANY: usize = 6_000;

#[test]
fn threads_send_their_tables_to_the_reader_as_bytes() {
    let mut data = String::new();
    for number in 0..MANY {
        for step in [1, 7, 11, 13] {
            let to = (number * step + step) % MANY;
            writeln!(data, "<http://e/{number}> <http://e/p> <http://e/{to}> .").expect("text");
        }
    }
    let query = "SELECT ?v (COUNT(*) AS ?n) { ?a <http://e/p> ?b . ?b <http://e/p> ?c . \
                 ?c <http://e/p> ?d BIND(CONCAT(STR(?a), SUBSTR(STR(?b), 10)) AS ?v) } GROUP BY ?v";
    let elsewhere = Elsewhere::new();
    let answer = |transport, threads| {
        let mut config = Config::default();
        (config.transport, config.threads) = (transport, threads);
        let source = Source::bytes("data.nt", data.clone().into_bytes());
        let database = load_with(vec![source], config).expect("it loads");
        let mut rows = rows(ask(&database, query, None).expect("a right query"));
        rows.sort_by_cached_key(|row| format!("{row:?}"));
        rows
    };
    let expected = answer(None, 1);
    assert!(expected.len() > MANY);
    assert!(answer(Some(elsewhere.transport()), 4) == expected);
    assert!(elsewhere.threads() > 1, "the exploration was shared out");
}

/// Changes a byte of each table on its way.
struct Damaging {
    place: usize,
}

impl Transport for Damaging {
    fn carry(&self, table: Table, cx: &Context) -> Result<Table, ExecError> {
        let sent = table.encode(cx.terms(), cx)?;
        let mut bytes = sent.bytes().to_vec();
        bytes[self.place] ^= 1;
        Table::decode(&bytes, cx.terms(), cx)
    }
}

#[test]
fn a_table_that_arrives_damaged_or_from_another_epoch_ends_its_query_with_a_typed_error() {
    let error = |place| {
        let database = small(config(TransportOfTables(Arc::new(Damaging { place }))));
        match ask(&database, "SELECT * { ?s ?p ?o }", None) {
            Err(EngineError::Transport { source }) => source,
            other => panic!("{other:?}"),
        }
    };
    assert!(matches!(error(0), WireError::NoTable { .. }));
    assert!(matches!(error(16), WireError::Epoch { .. }));
}
