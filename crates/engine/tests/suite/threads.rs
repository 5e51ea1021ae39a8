//! Heavy queries on several threads: the same rows, whoever finds them.

use std::fmt::Write as _;

use jindou_engine::ingest::{Progress, Source};
use jindou_engine::{Config, Database, LoadOptions, QueryOptions, QueryResults, Solutions};

const SUBJECTS: u64 = 2_000;
const EDGES: u64 = 10;
const OBJECTS: u64 = 400;
/// Each object is shared by 50 subjects, so each edge meets 50.
const ROWS: u64 = SUBJECTS * EDGES * SUBJECTS * EDGES / OBJECTS;
const HEAVY: &str = "SELECT ?a ?b ?c WHERE { ?a <http://e.org/p> ?b . ?c <http://e.org/p> ?b }";

fn database() -> Database {
    let mut text = String::new();
    for subject in 0..SUBJECTS {
        for edge in 0..EDGES {
            let object = (subject * EDGES + edge) % OBJECTS;
            writeln!(
                text,
                "<http://e.org/s{subject}> <http://e.org/p> <http://e.org/o{object}> ."
            )
            .unwrap();
        }
    }
    let mut config = Config::default();
    config.threads = 2;
    let database = Database::with_config(config);
    let source = Source::bytes("edges.nt", text);
    database
        .load(vec![source], &LoadOptions::default(), &Progress::default())
        .unwrap();
    database
}

fn heavy(database: &Database, threads: usize) -> Solutions {
    let options = QueryOptions {
        threads: Some(threads),
        ..QueryOptions::default()
    };
    match database.query_with(HEAVY, options).unwrap() {
        QueryResults::Solutions(solutions) => solutions,
        other => panic!("not solutions: {other:?}"),
    }
}

/// Number of rows, and a sum over them that does not depend on their order.
fn drain(solutions: &mut Solutions) -> (u64, u64) {
    let (mut rows, mut sum) = (0, 0_u64);
    while let Some(batch) = solutions.next_batch().unwrap() {
        rows += batch.rows() as u64;
        for row in 0..batch.rows() {
            let cells = (0..3).map(|column| batch.column(column)[row].raw());
            let mixed = cells.fold(7_u64, |mixed, id| {
                (mixed ^ id)
                    .wrapping_mul(0x9e37_79b9_7f4a_7c15)
                    .rotate_left(29)
            });
            sum = sum.wrapping_add(mixed);
        }
    }
    (rows, sum)
}

#[test]
fn several_threads_find_the_rows_of_one() {
    let database = database();
    let alone = drain(&mut heavy(&database, 1));
    assert_eq!(alone.0, ROWS);
    for _ in 0..3 {
        assert_eq!(drain(&mut heavy(&database, 2)), alone);
    }
}

#[test]
fn a_query_does_not_wait_for_workers_that_another_holds() {
    let database = database();
    let mut first = heavy(&database, 2);
    // From here on the only worker is busy: it waits for a reader of the first query.
    let begun = first.next_batch().unwrap().expect("there are rows").rows() as u64;
    assert_eq!(drain(&mut heavy(&database, 2)).0, ROWS);
    assert_eq!(begun + drain(&mut first).0, ROWS);
}

#[test]
fn workers_are_free_again_once_a_query_is_dropped() {
    let database = database();
    for _ in 0..20 {
        let mut dropped = heavy(&database, 2);
        assert!(dropped.next_batch().unwrap().is_some());
    }
    assert_eq!(drain(&mut heavy(&database, 2)).0, ROWS);
}
