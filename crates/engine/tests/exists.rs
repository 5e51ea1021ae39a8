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
        let step = step.unwrap_or_else(|| panic!("{profile}"));
        let rows = step
            .split_whitespace()
            .rev()
            .nth(2)
            .unwrap()
            .replace(',', "");
        let rows: usize = rows.parse().unwrap_or_else(|_| panic!("{step}"));
        assert!(rows <= 2 * COUNT, "{step}");
    }
    // What is not the same for all is looked for each time.
    let query = "SELECT (COUNT(*) AS ?n) { { SELECT * { ?s <e:cat> ?h } LIMIT 100 } \
                 FILTER EXISTS { ?h <e:link> ?z FILTER(?z = ?s) } }";
    let (value, _) = profiled(&database, query);
    assert!(value.contains("\"100\""), "{value}");
}
