//! Are solutions that are kept found again only where something changed that they were made of?

use std::time::Duration;

use jindou_engine::{
    Answer, Config, Database, KeepSolutions, NextResult, StreamDefinition, TupleFormat,
};

const QUERY: &str = "PREFIX : <http://e/> SELECT ?x ?z \
    FROM NAMED WINDOW :w ON :s [RANGE 1000s STEP 1s] \
    WHERE { WINDOW :w { ?x :p ?y } ?x :q ?z }";

fn database() -> Database {
    interrupted(None)
}

/// A database whose attempts are given up at places that a seed draws.
fn interrupted(seed: Option<u64>) -> Database {
    let mut config = Config::default();
    config.keep_solutions = KeepSolutions::Always;
    config.interruptions = seed;
    let database = Database::with_config(config);
    let definition = StreamDefinition::new("http://e/s");
    assert!(database.create_stream("s", definition).unwrap());
    database.register("q", QUERY).unwrap();
    database
}

/// Has some instants pass, each after a transaction.
fn pass(database: &Database, seconds: std::ops::Range<i64>, update: impl Fn(i64) -> String) {
    for second in seconds {
        database.update(&update(second)).unwrap();
        let line = format!(
            "{}\t<http://e/a> <http://e/p> <http://e/b{second}> .\n",
            second * 1000
        );
        let lines = line.into_bytes();
        database.push("s", TupleFormat::Lines, None, lines).unwrap();
    }
}

/// How many rows each result has.
fn rows(database: &Database) -> Vec<usize> {
    let mut reader = database.results_of("q", Some(0)).unwrap();
    let mut all = Vec::new();
    while let NextResult::Result(result, _) = reader.next_within(Duration::ZERO) {
        let rows = result.answer.as_ref().ok().and_then(Answer::rows);
        all.push(rows.unwrap().len());
    }
    all
}

fn unrelated(second: i64) -> String {
    format!("INSERT DATA {{ <http://e/n> <http://e/other> {second} }}")
}

#[test]
fn a_predicate_that_no_quad_has_changes_when_one_comes() {
    let database = database();
    pass(&database, 1..41, unrelated);
    let status = database.continuous_query("q").unwrap();
    let instants = rows(&database);
    assert!(instants.len() > 30 && instants.iter().all(|rows| *rows == 0));
    assert_eq!(status.incremental + 1, instants.len() as u64);
    pass(&database, 41..42, |_| {
        "INSERT DATA { <http://e/a> <http://e/q> <http://e/z> }".to_owned()
    });
    // Its batch is complete, and so are the instants before.
    database.heartbeat("s", 43_000).unwrap();
    let found = rows(&database);
    // A row for each ?y, all with the one ?z.
    assert_eq!(found.last(), Some(&41), "{found:?}");
    let before = database.continuous_query("q").unwrap().incremental;
    pass(&database, 43..60, unrelated);
    let after = database.continuous_query("q").unwrap().incremental;
    assert!(after >= before + 15, "{before} {after}");
}

#[test]
fn merges_change_nothing() {
    let database = database();
    pass(&database, 1..11, |second| match second {
        1 => "INSERT DATA { <http://e/a> <http://e/q> <http://e/z> }".to_owned(),
        second => unrelated(second),
    });
    let before = database.continuous_query("q").unwrap();
    for second in 11..31 {
        pass(&database, second..second + 1, unrelated);
        assert!(database.compact().unwrap());
    }
    database.heartbeat("s", 33_000).unwrap();
    let after = database.continuous_query("q").unwrap();
    let executions = after.executions - before.executions;
    assert!(executions >= 20, "{executions}");
    assert_eq!(after.incremental - before.incremental, executions);
    assert_eq!(rows(&database).last(), Some(&30));
}

#[test]
fn an_attempt_that_is_given_up_leaves_what_was_kept() {
    let played = |seed: Option<u64>| {
        let database = interrupted(seed);
        pass(&database, 1..31, |second| match second {
            1 | 12 => format!("INSERT DATA {{ <http://e/a> <http://e/q> <http://e/z{second}> }}"),
            second => unrelated(second),
        });
        let status = database.continuous_query("q").unwrap();
        assert_eq!(status.failures, 0);
        (rows(&database), status.executions, status.incremental)
    };
    let whole = played(None);
    // All are found again at the first instant, and after the second row of what is stored.
    assert_eq!(whole.2 + 2, whole.1);
    for seed in 0..30 {
        assert_eq!(played(Some(seed)), whole, "seed {seed}");
    }
}
