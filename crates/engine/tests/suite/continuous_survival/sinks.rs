//! Sinks of queries come back with the store, and go on after the last result that they got.

use std::time::Duration;

use jindou_engine::{Database, Delivered, EngineError, NextResult, ResultSink, SinkDefinition};

use super::{durable, open, push};

const COUNT: &str =
    "SELECT (COUNT(*) AS ?n) FROM STREAM <http://e/s> [RANGE 1s] WHERE { ?x ?p ?y }";

fn sink(topic: &str) -> SinkDefinition {
    let json = format!(r#"{{"kafka":{{"brokers":"h:9092","topic":"{topic}"}}}}"#);
    serde_json::from_str(&json).expect("it is a definition")
}

fn only(database: &Database) -> ResultSink {
    let mut sinks = database.sinks_of("q").expect("the query is there");
    assert_eq!(sinks.len(), 1);
    sinks.pop().expect("there is one")
}

/// The numbers of the results that a sink gets next.
fn next(sink: &ResultSink) -> Vec<(u64, u64)> {
    let mut results = sink.results();
    let mut all = Vec::new();
    while let NextResult::Result(result, missed) = results.next_within(Duration::ZERO) {
        all.push((result.sequence, missed));
    }
    all
}

fn feed(database: &Database, seconds: std::ops::Range<i64>) {
    let line = |second: i64| {
        format!(
            "{}\t<http://e/a> <http://e/p> \"{second}\" .\n",
            1000 * second
        )
    };
    push(database, "s", &seconds.map(line).collect::<String>());
}

#[test]
fn a_sink_goes_on_after_its_last_result() {
    let folder = tempfile::tempdir().expect("there is room");
    let location = folder.path().join("store");
    let database = open(&location);
    database
        .create_stream("s", durable("http://e/s"))
        .expect("it is new");
    database.register("q", COUNT).expect("it is sound");
    feed(&database, 0..2);
    assert!(
        database
            .create_sink("q", "out", sink("t"))
            .expect("it is new")
    );
    assert!(
        !database
            .create_sink("q", "out", sink("t"))
            .expect("it is alike")
    );
    let other = database.create_sink("q", "out", sink("u"));
    assert!(matches!(other, Err(EngineError::InUse { .. })));
    // One result was there before the sink.
    assert!(next(&only(&database)).is_empty());
    feed(&database, 2..6);
    assert_eq!(next(&only(&database)), [(2, 0), (3, 0), (4, 0), (5, 0)]);
    let delivered = Delivered {
        sequence: 3,
        missed: 7,
    };
    only(&database)
        .deliver(delivered)
        .expect("the log takes it");
    let number = only(&database).number();
    drop(database);
    for cut in [false, true] {
        drop(database_at(&location, cut));
        let database = open(&location);
        let sink = only(&database);
        assert_eq!((sink.delivered(), sink.number()), (delivered, number));
        assert_eq!(next(&sink), [(4, 0), (5, 0)]);
    }
    let database = open(&location);
    database
        .backup(&folder.path().join("copy"))
        .expect("there is room");
    assert_eq!(
        only(&open(&folder.path().join("copy"))).delivered(),
        delivered
    );
    assert!(database.drop_sink("q", "out").expect("the query is there"));
    assert!(!database.drop_sink("q", "out").expect("the query is there"));
    // Another sink of the same name is another one.
    database
        .create_sink("q", "out", sink("t"))
        .expect("it is new");
    assert_ne!(only(&database).number(), number);
    drop(database);
    let database = open(&location);
    assert_eq!(only(&database).delivered().sequence, 5);
    assert!(database.unregister("q").expect("nobody reads it"));
    drop(database);
    assert!(open(&location).sinks().is_empty());
}

/// A store, of whose log a state was made if it is to be.
fn database_at(location: &std::path::Path, cut: bool) -> Database {
    let database = open(location);
    if cut {
        database.cut_stream_log().expect("there is room");
    }
    database
}

#[test]
fn a_sink_of_a_query_that_begins_anew_begins_anew() {
    let folder = tempfile::tempdir().expect("there is room");
    let location = folder.path().join("store");
    let database = open(&location);
    let mut definition = durable("http://e/s");
    definition.durable = false;
    database.create_stream("s", definition).expect("it is new");
    database.register("q", COUNT).expect("it is sound");
    database
        .create_sink("q", "out", sink("t"))
        .expect("it is new");
    feed(&database, 0..4);
    let delivered = Delivered {
        sequence: 3,
        missed: 0,
    };
    only(&database).deliver(delivered).expect("it is in memory");
    assert_eq!(only(&database).delivered(), delivered);
    drop(database);
    let database = open(&location);
    assert_eq!(only(&database).delivered(), Delivered::default());
    feed(&database, 10..12);
    assert_eq!(next(&only(&database)), [(1, 0)]);
}

#[test]
fn sinks_that_make_no_sense_are_refused() {
    let database = Database::new();
    let definition = jindou_engine::StreamDefinition::new("http://e/s");
    database.create_stream("s", definition).expect("it is new");
    let absent = database.create_sink("q", "out", sink("t"));
    assert!(matches!(absent, Err(EngineError::NotFound { .. })));
    database.register("q", COUNT).expect("it is sound");
    for (name, topic) in [("a b", "t"), ("a", "t/t")] {
        let refused = database.create_sink("q", name, sink(topic));
        assert!(matches!(refused, Err(EngineError::InvalidQuery { .. })));
    }
    let mut made = 0;
    let refused = loop {
        match database.create_sink("q", &format!("s{made}"), sink("t")) {
            Ok(true) => made += 1,
            other => break other.expect_err("there are too many"),
        }
    };
    assert!(
        made == 16 && refused.to_string().contains("16 sinks"),
        "{refused}"
    );
}
