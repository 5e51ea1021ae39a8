//! What is counted without being made is as much as what is made: COUNT, DISTINCT and negated
//! property sets against the rows of the same patterns.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use jindou_engine::ingest::{Progress, Source};
use jindou_engine::{Config, Database, LoadOptions, QueryOptions, QueryResults};

const RDF_TYPE: &str = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>";

/// Vertices of three classes with up to four predicates, some of which have literals, and one
/// predicate that is a vertex too.
fn database() -> Database {
    let (mut text, mut quads) = (String::new(), String::new());
    let mut state = 11_u64;
    let mut next = |below: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    for vertex in 0..4000 {
        let class = next(3);
        writeln!(text, "<e:{vertex}> {RDF_TYPE} <e:C{class}> .").unwrap();
        for _ in 0..next(6) {
            let (predicate, object) = (next(3), next(200));
            writeln!(text, "<e:{vertex}> <e:p{predicate}> <e:{object}> .").unwrap();
            for graph in 0..next(3) {
                let triple = format!("<e:{vertex}> <e:p{predicate}> <e:{object}>");
                writeln!(quads, "{triple} <e:g{}> .", object % 20 + graph).unwrap();
            }
        }
        if class == 1 {
            writeln!(text, "<e:{vertex}> <e:q> \"{}\" .", next(40)).unwrap();
            writeln!(quads, "<e:{vertex}> {RDF_TYPE} <e:C{}> <e:g1> .", next(3)).unwrap();
            writeln!(text, "<e:{vertex}> <e:n> {} .", next(40)).unwrap();
        }
    }
    writeln!(text, "<e:p1> <e:p0> <e:1> .").unwrap();
    writeln!(text, "<e:7> <e:p0> <e:7> .").unwrap();
    writeln!(quads, "<e:g1> <e:p0> <e:1> <e:g1> .").unwrap();
    let mut config = Config::default();
    config.threads = 2;
    let database = Database::with_config(config);
    let sources = vec![
        Source::bytes("counted.ttl", text),
        Source::bytes("counted.nq", quads),
    ];
    database
        .load(sources, &LoadOptions::default(), &Progress::default())
        .unwrap();
    let update = "DELETE WHERE { GRAPH <e:g3> { ?s <e:p1> ?o } } ; \
        INSERT DATA { GRAPH <e:g2> { <e:g1> <e:new> 1, 2 . <e:7> <e:p0> <e:7> } } ; \
        INSERT DATA { GRAPH <e:late> { <e:late> <e:new> 1 . <e:7> <e:p0> <e:8> } } ; \
        DROP GRAPH <e:g4>";
    database.update(update).unwrap();
    database
}

fn rows(database: &Database, query: &str, profile: bool) -> Vec<Vec<String>> {
    let query = format!("PREFIX e: <e:> {query}");
    let options = QueryOptions {
        threads: Some(if profile { 1 } else { 2 }),
        ..QueryOptions::default()
    };
    let QueryResults::Solutions(mut solutions) = database.query_with(&query, options).unwrap()
    else {
        panic!("SELECT has solutions");
    };
    let columns = solutions.variables().len();
    let mut rows = Vec::new();
    while let Some(batch) = solutions.next_batch().unwrap() {
        let mut decoder = solutions.decoder();
        for row in 0..batch.rows() {
            let cell = |column: usize| batch.column(column)[row];
            rows.push(
                (0..columns)
                    .map(|c| format!("{:?}", decoder.text(cell(c))))
                    .collect(),
            );
        }
    }
    rows
}

/// A pattern and what to group it by.
const CASES: &[(&str, &str)] = &[
    ("?s ?p ?o", ""),
    ("?s ?p ?o", "?p"),
    ("?s ?p ?o", "?o"),
    ("?s ?p ?o", "?s ?p"),
    ("?s ?p ?s", ""),
    ("?s ?s ?o", ""),
    ("e:7 ?p ?o", ""),
    ("e:7 ?p ?o", "?p"),
    ("?s ?p e:7", "?p"),
    ("?s ?p e:C1", "?p"),
    ("?s ?p \"7\"", "?p"),
    ("?s ?p 7", ""),
    ("e:7 ?p e:7", "?p"),
    ("?s e:p0 ?o", ""),
    ("?s e:p0 ?o", "?s"),
    ("?s e:p0 ?o", "?o"),
    ("?s a ?c", "?c"),
    ("?s a e:C1", ""),
    ("?s a ?c . ?s e:p0 ?o", "?c"),
    ("?s e:p0 ?m . ?m e:p1 ?o", "?s"),
    ("?s e:p0 ?m . ?m e:p1 ?o . ?o a e:C1", "?s"),
    ("?s e:p0 ?m . ?m ?p ?o", "?p"),
    ("?s e:p0 ?m . ?m ?p ?o", "?s"),
    ("?s e:p0 ?m . ?o ?p ?m", "?p ?m"),
    ("?s e:p0 ?p . ?a ?p ?b", "?p"),
    ("?s e:q ?v . ?o ?p ?v", "?v"),
    ("?s e:nothing ?o", ""),
    ("?s e:p0+ ?o", ""),
    ("?s e:p0+ ?o", "?o"),
    ("?s e:p1* ?s", ""),
    ("?s e:p0+ ?o", "?s"),
    ("?s a e:C1 . ?s e:p0+ ?o", ""),
    ("?s a e:C1 . ?s e:p0* ?o", "?o"),
    ("?s a e:C1 . ?s (e:p0/e:p1)+ ?o", "?s"),
    ("?s a e:C1 . ?o (e:p0|^e:p1)+ ?s", ""),
    ("?s e:q ?v . ?s e:p0+ ?m . ?m e:p1 ?o", "?v"),
    ("?s a e:C1 . ?s e:p0+ ?o . ?i e:p1 ?s", ""),
    ("?i e:p1 ?s . ?s e:p0+ ?o . ?i a ?c . ?j e:p1 ?i", "?c"),
    ("?s e:p0+ ?o . ?i e:p1 ?s . ?s a ?c", "?c ?o"),
    ("GRAPH ?g { ?s e:p0+ ?o . ?i e:p1 ?s }", "?g"),
    ("GRAPH ?g { ?g e:p0+ ?o }", ""),
    ("GRAPH ?g { ?o e:p0+ ?g }", "?o"),
    ("GRAPH ?g { ?s e:p0+ ?o }", "?g"),
    ("?s a e:C1 . ?s e:p0? ?o", ""),
    ("?s !(e:p0|e:p1) ?o", ""),
    ("?s !(e:p0|e:p1|a|e:nothing) ?o", "?o"),
    ("e:7 !(e:p0|a) ?o", "?o"),
    (
        "?s ?p ?o FILTER(?p != e:p0 && ?p != \"x\" && !sameTerm(?p, e:q))",
        "?p",
    ),
    (
        "VALUES (?o ?v) { (e:1 UNDEF) (UNDEF 3) (e:2 4) (e:2 4) } ?s e:p0 ?o ; e:n ?v",
        "?o",
    ),
    (
        "VALUES (?o ?v) { (e:1 UNDEF) (UNDEF UNDEF) } ?s e:p0 ?o ; e:n ?v",
        "?o",
    ),
    (
        "VALUES (?o ?v) { (e:1 UNDEF) (e:2 UNDEF) } ?s e:p0 ?o ; e:n ?v",
        "?v",
    ),
    ("GRAPH e:g1 { ?s ?p ?o }", ""),
    ("GRAPH e:g2 { ?s ?p ?o }", "?p"),
    ("GRAPH e:g2 { e:7 ?p ?o }", "?p"),
    ("GRAPH e:nothing { ?s ?p ?o }", "?p"),
    ("GRAPH ?g { ?s ?p ?o }", ""),
    ("GRAPH ?g { ?s ?p ?o }", "?g"),
    ("GRAPH ?g { ?s ?p ?o }", "?p"),
    ("GRAPH ?g { ?s ?p ?o }", "?p ?g"),
    ("GRAPH ?g { ?s ?p ?o }", "?s"),
    ("GRAPH ?g { ?g ?p ?o }", "?g"),
    ("GRAPH ?g { ?s ?g ?o }", ""),
    ("GRAPH ?g { e:7 ?p ?o }", "?g"),
    ("GRAPH ?g { ?s ?p e:7 }", "?g ?p"),
    ("GRAPH ?g { ?s ?p 1 }", "?g"),
    ("GRAPH ?g { ?s e:p0 ?o }", "?g"),
    ("GRAPH ?g { ?s a ?c }", "?g ?c"),
    (
        "VALUES ?g { e:g1 e:g2 e:nothing } GRAPH ?g { ?s ?p ?o }",
        "?g ?p",
    ),
    ("GRAPH ?g { ?s e:new ?x } GRAPH ?g { ?a ?p ?b }", "?g"),
    ("GRAPH ?g { ?s e:new ?x } GRAPH ?h { ?s ?p ?b }", "?h"),
];

const DATASETS: &[&str] = &[
    "",
    "FROM e:g1",
    "FROM e:g1 FROM e:g2 FROM NAMED e:g2 FROM NAMED e:late FROM NAMED e:nothing",
];

#[test]
fn counts_and_distinct_keys_are_those_of_the_rows() {
    let database = database();
    let cases = CASES
        .iter()
        .flat_map(|case| DATASETS.iter().map(move |dataset| (case, dataset)));
    for ((pattern, keys), dataset) in cases {
        // Rows with all their variables are not counted but made.
        let wanted: Vec<Vec<String>> = if keys.is_empty() {
            rows(
                &database,
                &format!("SELECT * {dataset} {{ {pattern} }}"),
                false,
            )
            .into_iter()
            .map(|_| Vec::new())
            .collect()
        } else {
            rows(
                &database,
                &format!("SELECT {keys} {dataset} {{ {pattern} }}"),
                false,
            )
        };
        let mut groups: BTreeMap<Vec<String>, usize> = BTreeMap::new();
        if keys.is_empty() {
            groups.insert(Vec::new(), 0);
        }
        for row in wanted {
            *groups.entry(row).or_default() += 1;
        }
        let by = if keys.is_empty() { "" } else { "GROUP BY" };
        let count =
            format!("SELECT {keys} (COUNT(*) AS ?number) {dataset} {{ {pattern} }} {by} {keys}");
        for profile in [false, true] {
            let mut found = BTreeMap::new();
            for mut row in rows(&database, &count, profile) {
                let number = row.pop().expect("a number");
                let digits: String = number.chars().skip_while(|c| !c.is_ascii_digit()).collect();
                let digits: String = digits.chars().take_while(char::is_ascii_digit).collect();
                assert!(
                    found.insert(row, digits.parse().unwrap()).is_none(),
                    "{count}"
                );
            }
            assert_eq!(found, groups, "{count}");
        }
        if !keys.is_empty() {
            let distinct = rows(
                &database,
                &format!("SELECT DISTINCT {keys} {dataset} {{ {pattern} }}"),
                false,
            );
            let all: BTreeSet<Vec<String>> = groups.keys().cloned().collect();
            assert_eq!(distinct.len(), all.len(), "{pattern}");
            assert_eq!(
                distinct.into_iter().collect::<BTreeSet<_>>(),
                all,
                "{pattern}"
            );
        }
    }
}

#[test]
fn aggregates_that_ignore_repeats_agree_with_those_that_see_them() {
    let database = database();
    let pattern = "?s e:n ?v . ?s e:p0 ?o";
    let repeated = format!("SELECT ?v ?s ?o {{ {pattern} }}");
    let made = rows(&database, &repeated, false);
    let distinct: BTreeSet<&String> = made.iter().map(|row| &row[0]).collect();
    let query = format!(
        "SELECT (COUNT(DISTINCT ?v) AS ?d) (COUNT(*) AS ?n) (COUNT(?o) AS ?m) (MIN(?v) AS ?low) {{ {pattern} }}"
    );
    let row = rows(&database, &query, false).remove(0);
    assert!(row[0].contains(&distinct.len().to_string()), "{row:?}");
    assert!(row[1].contains(&made.len().to_string()), "{row:?}");
    assert_eq!(row[1], row[2]);
}
