//! What is counted of a graph answers groups as its triples do, whatever changed since and whichever graph is asked.

use std::fmt::Write as _;

use jindou_engine::ingest::{Progress, Source};
use jindou_engine::{
    Config, Database, ForkPolicy, LoadOptions, MergePolicy, MessageLimits, QueryOptions,
    QueryResults, Shards, SpillLimits,
};

/// A row of pseudo-random numbers.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self, below: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % below
    }

    fn subject(&mut self) -> String {
        match self.next(4) {
            0 => format!("_:b{}", self.next(60)),
            _ => format!("<e:{}>", self.next(200)),
        }
    }

    fn object(&mut self) -> String {
        match self.next(9) {
            0 => self.subject(),
            1 => format!("\"text {}\"", self.next(50)),
            2 => format!("\"text {}\"@en", self.next(50)),
            3 => format!("\"text {}\"@de-AT", self.next(20)),
            4 => format!("\"{}\"^^<e:type{}>", self.next(30), self.next(3)),
            5 => format!("{}", self.next(80)),
            6 => format!("{}.5", self.next(80)),
            7 => format!(
                "\"00{}\"^^<http://www.w3.org/2001/XMLSchema#integer>",
                self.next(9)
            ),
            _ => format!("<e:{}>", self.next(200)),
        }
    }

    /// Random triples: `rdf:type`, or one of so many predicates.
    fn triples(&mut self, count: usize, predicates: u64) -> String {
        let mut text = String::new();
        for _ in 0..count {
            let subject = self.subject();
            match self.next(6) {
                0 => writeln!(text, "{subject} a <e:C{}> .", self.next(5)).unwrap(),
                _ => {
                    let (predicate, object) = (self.next(predicates), self.object());
                    writeln!(text, "{subject} <e:p{predicate}> {object} .").unwrap();
                }
            }
        }
        text
    }
}

/// A default graph, and three named ones: the first has predicates of its own.
fn text(numbers: &mut Numbers) -> String {
    let mut text = numbers.triples(1500, 5);
    for (graph, predicates) in [("own", 0), ("g1", 4), ("g2", 8)] {
        let triples = match predicates {
            0 => numbers
                .triples(400, 3)
                .replace("<e:p", "<e:own")
                .replace(" a <e:C", " <e:ownt> <e:C"),
            predicates => numbers.triples(400, predicates),
        };
        writeln!(text, "<e:{graph}> {{ {triples} }}").unwrap();
    }
    text
}

/// Where triples are looked for: dataset clauses, and what is around the pattern.
const GRAPHS: [(&str, &str); 6] = [
    ("", "{ @ }"),
    ("", "{ GRAPH <e:own> { @ } }"),
    ("", "{ GRAPH <e:g1> { @ } }"),
    ("FROM <e:own>", "{ @ }"),
    ("FROM <e:g1> FROM <e:g2>", "{ @ }"),
    ("", "{ GRAPH <e:none> { @ } }"),
];

/// What is asked, with a pattern and what is behind it.
const GROUPS: [[&str; 3]; 16] = [
    ["(COUNT(DISTINCT ?s) AS ?n)", "?s ?p ?o", ""],
    ["(COUNT(DISTINCT ?o) AS ?n)", "?s ?p ?o", ""],
    ["(COUNT(DISTINCT ?o) AS ?n)", "?s <e:p1> ?o", ""],
    ["(COUNT(DISTINCT ?s) AS ?n)", "?s a ?o", ""],
    [
        "(COUNT(DISTINCT ?o) AS ?n)",
        "?s ?p ?o FILTER(isBlank(?o))",
        "",
    ],
    [
        "(COUNT(DISTINCT ?o) AS ?n)",
        "?s ?p ?o FILTER(isLiteral(?o) && LANG(?o) = \"\")",
        "",
    ],
    [
        "(COUNT(DISTINCT ?s) AS ?n)",
        "?s ?p ?o FILTER(isIRI(?s))",
        "",
    ],
    ["?p (COUNT(DISTINCT ?o) AS ?n)", "?s ?p ?o", "GROUP BY ?p"],
    [
        "?p (COUNT(DISTINCT ?s) AS ?n)",
        "?s ?p ?o FILTER(?p != <e:p0> && !isBlank(?s))",
        "GROUP BY ?p",
    ],
    [
        "?d (COUNT(*) AS ?n)",
        "?s ?p ?o",
        "GROUP BY (DATATYPE(?o) AS ?d)",
    ],
    [
        "?d ?l (COUNT(?s) AS ?n)",
        "?s ?p ?o FILTER(isLiteral(?o))",
        "GROUP BY (DATATYPE(?o) AS ?d) (LANG(?o) AS ?l)",
    ],
    [
        "?l (COUNT(DISTINCT ?o) AS ?n)",
        "?s ?p ?o BIND(LANG(?o) AS ?l)",
        "GROUP BY ?l HAVING(COUNT(DISTINCT ?o) > 10)",
    ],
    [
        "?p ?d (COUNT(*) AS ?n)",
        "?s ?p ?o",
        "GROUP BY ?p (DATATYPE(?o) AS ?d)",
    ],
    [
        "?d (COUNT(?o) AS ?n)",
        "?s <e:p2> ?o",
        "GROUP BY (DATATYPE(?o) AS ?d)",
    ],
    [
        "?b (COUNT(*) AS ?n)",
        "?s ?p ?o FILTER(?p = <e:p1> || ?p = <http://www.w3.org/1999/02/22-rdf-syntax-ns#type>)",
        "GROUP BY (isBlank(?s) AS ?b)",
    ],
    [
        "?t (COUNT(*) AS ?n)",
        "?s a ?o",
        "GROUP BY (isIRI(?o) AS ?t)",
    ],
];

fn config(shards: u32, nodes: u32) -> Config {
    let mut config = Config::default();
    config.threads = 2;
    config.merge = MergePolicy::never();
    config.shards = Shards::new(shards).expect("a power of two");
    config.nodes = nodes;
    if nodes > 1 {
        config.fork_policy = ForkPolicy::Dynamic;
        config.fork_messages = Some(MessageLimits::default());
    }
    config
}

fn rows(database: &Database, query: &str, union: bool) -> Vec<String> {
    let options = QueryOptions {
        union_default_graph: Some(union),
        ..QueryOptions::default()
    };
    let answer = database.query_with(query, options).unwrap();
    let QueryResults::Solutions(solutions) = answer else {
        panic!("SELECT has solutions");
    };
    let mut rows: Vec<String> = solutions.map(|row| format!("{:?}", row.unwrap())).collect();
    rows.sort_unstable();
    rows
}

/// Asks everything, and the same of triples that a subquery finds, of which nothing is counted.
fn compare(database: &Database, note: &str) {
    for (dataset, around) in GRAPHS {
        for [select, pattern, behind] in GROUPS {
            let (triple, filter) = match pattern.split_once("?o ") {
                Some((triple, filter)) => (format!("{triple}?o"), filter),
                None => (pattern.to_owned(), ""),
            };
            let found = format!("{{ SELECT * {{ {triple} }} LIMIT 1000000 }} {filter}");
            for union in [false, true] {
                let asked = |pattern: &str| {
                    let around = around.replace('@', pattern);
                    format!("SELECT {select} {dataset} WHERE {around} {behind}")
                };
                let expected = rows(database, &asked(&found), union);
                let query = asked(pattern);
                assert!(
                    database.explain(&query).unwrap().contains("counted t"),
                    "{query}"
                );
                let note = format!("{note}, union {union}: {query}");
                assert_eq!(rows(database, &query, union), expected, "{note}");
            }
        }
    }
}

#[test]
fn counts_of_ends_are_those_of_the_triples() {
    for (shards, nodes) in [(1, 1), (8, 1), (8, 3)] {
        let mut numbers = Numbers(5);
        let database = Database::with_config(config(shards, nodes));
        let sources = vec![Source::bytes("ends.trig", text(&mut numbers))];
        database
            .load(sources, &LoadOptions::default(), &Progress::default())
            .unwrap();
        let note = format!("{shards} shards, {nodes} nodes");
        compare(&database, &format!("{note}, loaded"));
        for round in 0..2 {
            let new = numbers.triples(200, 9);
            let of_graph = numbers.triples(40, 9);
            let updates = [
                format!("INSERT DATA {{ {new} GRAPH <e:g1> {{ {of_graph} }} }}"),
                "DELETE { ?s <e:p1> ?o } WHERE { ?s <e:p1> ?o FILTER(isLiteral(?o)) }".to_owned(),
                format!("DELETE WHERE {{ <e:{round}> ?p ?o }}"),
                "DELETE { GRAPH <e:g2> { ?s a ?o } } WHERE { GRAPH <e:g2> { ?s a ?o } }".to_owned(),
            ];
            for update in &updates {
                database.update(update).unwrap();
            }
            compare(&database, &format!("{note}, changed {round}"));
            database.compact().unwrap();
            compare(&database, &format!("{note}, merged {round}"));
        }
    }
}

/// More kinds of terms than are counted by kind: all of them together are counted all the same.
#[test]
fn terms_of_very_many_kinds_are_counted_where_kinds_do_not_matter() {
    let mut config = config(1, 1);
    // Less than looking at all of them takes.
    config.query_memory_bytes = 200_000;
    config.spill = SpillLimits::off();
    let database = Database::with_config(config);
    let mut text = String::new();
    for number in 0..20_000 {
        writeln!(
            text,
            "<e:{}> <e:p> \"{number}\"^^<e:type{number}> .",
            number % 7
        )
        .unwrap();
    }
    let sources = vec![Source::bytes("kinds.ttl", text)];
    database
        .load(sources, &LoadOptions::default(), &Progress::default())
        .unwrap();
    let count = |n: u32, pattern: &str| {
        let query = format!("SELECT (COUNT(DISTINCT ?o) AS ?n) {{ {pattern} }}");
        let found = rows(&database, &query, false);
        assert!(found[0].contains(&format!("\"{n}\"")), "{query}: {found:?}");
    };
    count(20_000, "?s ?p ?o");
    database
        .update("INSERT DATA { <e:1> <e:q> \"x\"^^<e:other> }")
        .unwrap();
    count(20_001, "?s ?p ?o");
    count(20_000, "?s <e:p> ?o");
}
