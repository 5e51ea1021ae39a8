//! What is asked for often costs nothing that grows with the data: counted by the allocator.

use std::fmt::Write as _;

use jindou_counting::peak;
use jindou_engine::ingest::{Format, LoadOptions, Progress, Source};
use jindou_engine::{Config, Database, QueryResults};

const PREDICATES: u64 = 2000;

fn database(quads: String) -> Database {
    let mut config = Config::default();
    config.threads = 1;
    let database = Database::with_config(config);
    let document = Source::bytes("a.nq", quads).with_format(Format::NQuads);
    database
        .load(
            vec![document],
            &LoadOptions::default(),
            &Progress::default(),
        )
        .expect("the document is sound");
    database
}

/// One test, as there is one counter.
#[test]
fn counts_read_no_quads_and_make_no_table_of_predicates() {
    quads_of_graphs_are_counted_unread();
    let mut text = String::new();
    for number in 0..PREDICATES {
        writeln!(text, "<e:a> <e:p{number}> <e:b> .").expect("a String takes all");
    }
    let database = database(text);
    let (bytes, counts) = peak(|| database.quad_counts());
    assert_eq!((bytes, counts.total()), (0, PREDICATES));
    let (bytes, statistics) = peak(|| database.statistics());
    assert_eq!(statistics.triples, PREDICATES);
    assert!(bytes > 16 * PREDICATES, "the table is seen: {bytes}");
}

fn quads_of_graphs_are_counted_unread() {
    let mut text = String::new();
    for number in 0..20_000 {
        let graph = if number < 10_000 { 0 } else { number % 7 };
        writeln!(text, "<e:{number}> <e:p> <e:b> <e:g{graph}> .").expect("a String takes all");
    }
    let database = database(text);
    for (select, graph) in [
        ("(COUNT(*) AS ?n)", "<e:g0>"),
        ("(COUNT(*) AS ?n)", "?g"),
        ("DISTINCT ?g", "?g"),
        ("DISTINCT ?p", "<e:g0>"),
    ] {
        let ask = |filter: &str| {
            let query = format!("SELECT {select} {{ GRAPH {graph} {{ ?s ?p ?o {filter} }} }}");
            let rows = || match database.query(&query).expect("it is sound") {
                QueryResults::Solutions(solutions) => solutions.map(Result::unwrap).count(),
                _ => panic!("SELECT gives solutions"),
            };
            // What is loaded, planned and kept is so once.
            rows();
            peak(rows)
        };
        let ((unread, rows), (read, same)) = (ask(""), ask("FILTER(?s != ?o)"));
        assert_eq!(rows, same);
        assert!(
            4 * unread < read,
            "{select} {graph}: {unread} of {read} bytes"
        );
    }
}
