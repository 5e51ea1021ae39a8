//! How often is one thing looked for that many rows ask for?

use std::fmt::Write as _;

use jindou_engine::{Database, QueryOptions, QueryResults};
use jindou_ingest::{LoadOptions, Progress, Source};

const COUNT: usize = 20_000;

fn database() -> Database {
    let mut text = String::new();
    for number in 0..COUNT {
        writeln!(text, "<e:hub> <e:link> <e:{number}> .").unwrap();
        writeln!(text, "<e:{number}> <e:cat> <e:hub> .").unwrap();
    }
    let database = Database::new();
    let source = Source::bytes("data.nt", text);
    let (options, progress) = (LoadOptions::default(), Progress::default());
    database.load(vec![source], &options, &progress).unwrap();
    database
}

/// The value of the one row's one column, and the profile.
fn profiled(database: &Database, query: &str) -> (String, String) {
    let options = QueryOptions {
        profile: true,
        ..QueryOptions::default()
    };
    let QueryResults::Solutions(mut solutions) = database.query_with(query, options).unwrap()
    else {
        panic!("it is a SELECT");
    };
    let row = solutions.next().unwrap().unwrap();
    let value = row.iter().next().unwrap().1.to_string();
    assert!(solutions.next().is_none());
    (value, solutions.profile().unwrap().unwrap())
}

#[test]
fn what_is_around_a_hub_is_looked_for_once() {
    let database = database();
    for (query, expected) in [
        ("FILTER EXISTS { ?h <e:link> ?z }", COUNT),
        (
            "FILTER NOT EXISTS { ?h <e:link> ?z . ?z <e:none> ?y }",
            COUNT,
        ),
        ("MINUS { ?h <e:link> ?z . ?z <e:none> ?y }", COUNT),
    ] {
        let query = format!("SELECT (COUNT(*) AS ?n) {{ ?s <e:cat> ?h {query} }}");
        let (value, profile) = profiled(&database, &query);
        assert!(value.contains(&format!("\"{expected}\"")), "{value}");
        let step = profile.lines().find(|line| line.contains("?h <e:link> ?z"));
        let rows = step
            .and_then(rows_of)
            .unwrap_or_else(|| panic!("{profile}"));
        assert!(rows <= 2 * COUNT, "{profile}");
    }
    // What is not the same for all is looked for each time.
    let query = "SELECT (COUNT(*) AS ?n) { { SELECT * { ?s <e:cat> ?h } LIMIT 100 } \
                 FILTER EXISTS { ?h <e:link> ?z FILTER(?z = ?s) } }";
    let (value, _) = profiled(&database, query);
    assert!(value.contains("\"100\""), "{value}");
}

/// The rows that the step of a line of a profile made.
fn rows_of(line: &str) -> Option<usize> {
    let rows = line.split_whitespace().rev().nth(2)?;
    rows.replace(',', "").parse().ok()
}

/// The most rows that any step made.
fn most_rows(profile: &str) -> usize {
    let rows = profile.lines().filter_map(rows_of).max();
    rows.unwrap_or_else(|| panic!("{profile}"))
}

/// Vertices with a name, with an edge to a hub and one from it, and in named graphs the same.
fn around_a_hub(count: usize) -> Database {
    let mut text = String::new();
    for number in 0..count {
        for graph in ["", " <e:g>"] {
            writeln!(text, "<e:{number}> <e:in> <e:hub>{graph} .").unwrap();
            writeln!(text, "<e:hub> <e:out> <e:{number}>{graph} .").unwrap();
            writeln!(text, "<e:{number}> <e:name> \"{number}\"{graph} .").unwrap();
        }
    }
    let database = Database::new();
    let source = Source::bytes("data.nq", text);
    let (options, progress) = (LoadOptions::default(), Progress::default());
    database.load(vec![source], &options, &progress).unwrap();
    database
}

#[test]
fn what_only_has_to_exist_beyond_a_hub_costs_a_few_rows_for_each() {
    const COUNT: usize = 3_000;
    /// Of each row, where what is looked for depends on it.
    const MOST: usize = 40 * COUNT;
    let database = around_a_hub(COUNT);
    let all = COUNT;
    for (filter, expected) in [
        // Rows that reach the same hub look around it once.
        ("FILTER EXISTS { ?s <e:in> ?h . ?h <e:out> ?o }", all),
        ("FILTER NOT EXISTS { ?s <e:in> ?h . ?h <e:out> ?o }", 0),
        ("MINUS { ?s <e:in> ?h . ?h <e:out> ?o }", 0),
        ("FILTER EXISTS { ?s <e:in>/<e:out> ?o }", all),
        ("FILTER EXISTS { ?s <e:in>/<e:out>/<e:name> ?o }", all),
        ("FILTER EXISTS { ?s <e:in>/<e:out>/<e:none> ?o }", 0),
        (
            "FILTER EXISTS { ?s <e:in> ?h . ?h <e:out> ?o . ?o <e:name> ?m FILTER(?m = \"7\") }",
            all,
        ),
        (
            "FILTER EXISTS { ?s <e:in> ?h . ?h <e:out> ?o FILTER(?o = <e:none>) }",
            0,
        ),
        ("FILTER EXISTS { ?s <e:in> ?h . ?h ?p ?o }", all),
        (
            "FILTER EXISTS { ?s <e:in> ?h { ?h <e:none> ?x } UNION { ?h <e:out> ?o } }",
            all,
        ),
        (
            "FILTER EXISTS { ?s <e:in> ?h OPTIONAL { ?h <e:out> ?o } }",
            all,
        ),
        (
            "FILTER EXISTS { GRAPH <e:g> { ?s <e:in> ?h . ?h <e:out> ?o } }",
            all,
        ),
        (
            "FILTER EXISTS { GRAPH ?g { ?s <e:in> ?h . ?h <e:out> ?o } }",
            all,
        ),
        (
            "MINUS { GRAPH ?g { ?s <e:in> ?h . ?h <e:out> ?o . ?o <e:none> ?x } }",
            all,
        ),
        // The first that fits is enough.
        (
            "FILTER EXISTS { ?s <e:in> ?h . ?h <e:out> ?o FILTER(?o != ?s) }",
            all,
        ),
        (
            "FILTER NOT EXISTS { ?s <e:in> ?h . ?h <e:out> ?o FILTER(?o != ?s) }",
            0,
        ),
        (
            "FILTER EXISTS { ?s <e:in> ?h . ?h ?p ?o FILTER(?o != ?s) }",
            all,
        ),
        (
            "FILTER EXISTS { ?s <e:in> ?h . ?h (<e:out>|<e:none>)+ ?o FILTER(?o != ?s) }",
            all,
        ),
        (
            "FILTER EXISTS { ?s <e:in> ?h OPTIONAL { ?h <e:out> ?o } FILTER(?o != ?s) }",
            all,
        ),
        (
            "FILTER EXISTS { ?s <e:in> ?h { ?h <e:out> ?o } UNION { ?h <e:none> ?o } FILTER(?o != ?s) }",
            all,
        ),
        (
            "FILTER EXISTS { GRAPH <e:g> { ?s <e:in> ?h . ?h <e:out> ?o FILTER(?o != ?s) } }",
            all,
        ),
        (
            "FILTER EXISTS { GRAPH ?g { ?s <e:in> ?h . ?h <e:out> ?o FILTER(?o != ?s) } }",
            all,
        ),
    ] {
        let query = format!("SELECT (COUNT(*) AS ?n) {{ ?s <e:name> ?name {filter} }}");
        let (value, profile) = profiled(&database, &query);
        assert!(
            value.contains(&format!("\"{expected}\"")),
            "{query} {value}"
        );
        let made = most_rows(&profile);
        assert!(made <= MOST, "{query} {made}: {profile}");
    }
}

#[test]
fn the_right_side_of_minus_is_made_of_what_is_compared() {
    const COUNT: usize = 3_000;
    let database = around_a_hub(COUNT);
    // Evaluated once, as nothing is known of its rows before.
    let query = "SELECT (COUNT(*) AS ?n) { { SELECT DISTINCT ?s { ?s <e:name> ?n } LIMIT 100 } \
                 OPTIONAL { ?s <e:none> ?h } MINUS { ?s <e:in> ?h . ?h <e:out> ?o } }";
    let (value, profile) = profiled(&database, query);
    assert!(value.contains("\"0\""), "{value}");
    let made = most_rows(&profile);
    assert!(made <= 2 * COUNT, "{made}: {profile}");
}
