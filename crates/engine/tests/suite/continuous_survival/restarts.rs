//! What is there when a store is opened again without a kill, and in its copies.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering::SeqCst};

use jindou_engine::ingest::Format;
use jindou_engine::{
    Answer, Clock, Config, Database, NextResult, Producer, TimeSource, TupleFormat,
};

use super::{config, durable, open, push, results, with_facts};

const COUNT: &str = "SELECT (COUNT(*) AS ?n) FROM STREAM <http://e/s> [RANGE 1s STEP 500ms] \
                     WHERE { ?x ?p ?y }";

fn line(time: i64, number: u64) -> String {
    format!("{time}\t<http://e/{number}> <http://e/p> \"new text {number}\" .\n")
}

#[test]
fn windows_go_on_and_results_are_there_still() {
    let folder = tempfile::tempdir().unwrap();
    let location = folder.path().join("store");
    let database = open(&location);
    database.create_stream("s", durable("http://e/s")).unwrap();
    database.register("q", COUNT).unwrap();
    push(
        &database,
        "s",
        &(line(100, 1) + &line(600, 2) + &line(700, 3)),
    );
    let before = results(&database, "q", 0);
    assert_eq!(before.len(), 1);
    drop(database);
    let database = open(&location);
    assert_eq!(results(&database, "q", 0), before);
    assert!(results(&database, "q", 1).is_empty());
    let status = database.stream("s").unwrap();
    assert_eq!((status.tuples, status.watermark_ms), (3, Some(700)));
    assert_eq!(status.needed_from_ms, Some(0));
    push(&database, "s", &line(1600, 4));
    let after = results(&database, "q", 1);
    assert!(
        after[0].starts_with("2 at 1000") && after[0].ends_with("\"3\" "),
        "{after:?}"
    );
    assert!(
        after[1].starts_with("3 at 1500") && after[1].ends_with("\"2\" "),
        "{after:?}"
    );
    // And once more where a state was written.
    database.cut_stream_log().unwrap();
    drop(database);
    let database = open(&location);
    database.heartbeat("s", 2100).unwrap();
    assert_eq!(results(&database, "q", 1)[..2], after);
    let last = results(&database, "q", 3);
    assert!(
        last[0].starts_with("4 at 2000") && last[0].ends_with("\"1\" "),
        "{last:?}"
    );
}

#[test]
fn streams_that_are_not_durable_are_there_and_empty() {
    let folder = tempfile::tempdir().unwrap();
    let location = folder.path().join("store");
    assert!(open(&location).stream_log().is_none());
    assert!(!location.join("streams").exists());
    let definition = jindou_engine::StreamDefinition::new("http://e/s");
    let database = open(&location);
    database.create_stream("s", definition).unwrap();
    database.register("q", COUNT).unwrap();
    let before = database.stream_log().unwrap();
    push(&database, "s", &(line(100, 1) + &line(600, 2)));
    assert_eq!(database.stream_log().unwrap(), before, "nothing is logged");
    drop(database);
    let database = open(&location);
    assert_eq!(database.continuous_query("q").unwrap().text, COUNT);
    assert_eq!(database.stream("s").unwrap().tuples, 0);
}

#[test]
fn what_a_producer_sent_before_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let location = folder.path().join("store");
    let send = |database: &Database, stream: &str, name, sequence, time| {
        let producer = Producer { name, sequence };
        let text = line(time, sequence).into_bytes();
        let pushed = database.push_once(stream, producer, TupleFormat::Lines, None, text);
        let report = pushed.unwrap();
        (report.accepted, report.repeated)
    };
    let database = open(&location);
    database.create_stream("s", durable("http://e/s")).unwrap();
    let other = jindou_engine::StreamDefinition::new("http://e/t");
    database.create_stream("t", other).unwrap();
    for stream in ["s", "t"] {
        assert_eq!(send(&database, stream, "a", 5, 10), (1, false));
        assert_eq!(send(&database, stream, "a", 5, 10), (0, true));
        assert_eq!(send(&database, stream, "a", 4, 10), (0, true));
        assert_eq!(send(&database, stream, "b", 4, 10), (1, false));
        assert_eq!(database.stream(stream).unwrap().tuples, 2);
    }
    for _ in 0..2 {
        drop(database.clone());
        let database = Database::open(&location, config());
        assert!(database.is_err(), "it is open");
    }
    drop(database);
    let database = open(&location);
    assert_eq!(send(&database, "s", "a", 5, 10), (0, true));
    assert_eq!(send(&database, "t", "a", 5, 10), (1, false));
    database.cut_stream_log().unwrap();
    drop(database);
    let database = open(&location);
    assert_eq!(send(&database, "s", "b", 4, 10), (0, true));
    assert_eq!(send(&database, "s", "b", 5, 10), (1, false));
}

#[test]
fn facts_that_were_deleted_do_not_come_back() {
    let folder = tempfile::tempdir().unwrap();
    let location = folder.path().join("store");
    let fact = |time, name| format!("{time}\t<http://e/{name}> <http://e/fact> <http://e/o> .\n");
    let database = open(&location);
    database
        .create_stream("s", with_facts("http://e/s"))
        .unwrap();
    database.register("q", COUNT).unwrap();
    push(
        &database,
        "s",
        &(fact(10, "a") + &fact(20, "b") + &fact(250, "c")),
    );
    // Late.
    push(&database, "s", &(fact(30, "d") + &fact(40, "e")));
    let deleted = "DELETE DATA { <http://e/a> <http://e/fact> <http://e/o> . \
                   <http://e/d> <http://e/fact> <http://e/o> }";
    database.update(deleted).unwrap();
    assert_eq!(database.quad_counts().triples, 2);
    for _ in 0..2 {
        drop(database.clone());
    }
    drop(database);
    let database = open(&location);
    assert_eq!(database.quad_counts().triples, 2);
    assert_eq!(database.stream("s").unwrap().absorbed, 4);
    database.compact().unwrap();
    database.cut_stream_log().unwrap();
    drop(database);
    let database = open(&location);
    database.heartbeat("s", 600).unwrap();
    assert_eq!(database.quad_counts().triples, 3);
    // The window has what came in time, deleted or not.
    let found = results(&database, "q", 0);
    assert!(found[0].ends_with("\"3\" "), "{found:?}");
}

#[test]
fn facts_that_were_there_already_do_not_come_back_either() {
    const FACT: &str = "<http://e/s> <http://e/fact> <http://e/o>";
    let late_then_known =
        format!("500\t{FACT} .\n910\t<http://e/x> <http://e/p> <http://e/y> .\n500\t{FACT} .\n");
    let twice = format!("10\t{FACT} .\n110\t{FACT} .\n");
    let once = format!("10\t{FACT} .\n");
    for (text, is_stored_before, is_read) in [
        (&once, true, false),
        (&once, true, true),
        (&twice, false, false),
        (&twice, false, true),
        (&late_then_known, true, true),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let database = open(folder.path());
        database
            .create_stream("s", with_facts("http://e/s"))
            .unwrap();
        if is_read {
            let count = "SELECT (COUNT(*) AS ?n) FROM STREAM <http://e/s> [RANGE 1s] { ?a ?p ?b }";
            database.register("q", count).unwrap();
        }
        if is_stored_before {
            database
                .update(&format!("INSERT DATA {{ {FACT} }}"))
                .unwrap();
        }
        push(&database, "s", text);
        database.heartbeat("s", 2_000).unwrap();
        push(&database, "s", &format!("1500\t{FACT} .\n"));
        database
            .update(&format!("DELETE DATA {{ {FACT} }}"))
            .unwrap();
        let facts = database.quad_counts().total();
        drop(database);
        for _ in 0..2 {
            let again = open(folder.path());
            assert_eq!(again.quad_counts().total(), facts, "{text} {is_read}");
        }
    }
}

#[test]
fn many_batches_of_a_push_are_few_transactions() {
    const BATCHES: u64 = 900;
    let folder = tempfile::tempdir().unwrap();
    let database = open(folder.path());
    database
        .create_stream("s", with_facts("http://e/s"))
        .unwrap();
    let count =
        "SELECT (COUNT(*) AS ?n) FROM STREAM <http://e/s> [RANGE 200ms STEP 100ms] { ?a ?p ?b }";
    database.register("q", count).unwrap();
    let lines = (0..BATCHES).map(|batch| {
        let time = 100 * batch + 10;
        format!("{time}\t<http://e/s{batch}> <http://e/fact> <http://e/o> .\n")
    });
    let before = database.snapshot_number().0;
    push(&database, "s", &lines.collect::<String>());
    let after = database.snapshot_number().0;
    assert!((1..6).contains(&(after - before)), "{before} {after}");
    let status = database.stream("s").unwrap();
    assert_eq!(
        (status.batches, status.absorbed),
        (BATCHES - 1, BATCHES - 1)
    );
    let found = results(&database, "q", 0);
    assert_eq!(found.len() as u64, BATCHES - 1);
    assert!(
        found[1..].iter().all(|said| said.ends_with("\"2\" ")),
        "{found:?}"
    );
    let deleted = "DELETE DATA { <http://e/s0> <http://e/fact> <http://e/o> . \
                   <http://e/s500> <http://e/fact> <http://e/o> }";
    database.update(deleted).unwrap();
    drop(database);
    let database = open(folder.path());
    assert_eq!(database.quad_counts().total(), BATCHES - 3);
    assert_eq!(results(&database, "q", 0), found);
    database.heartbeat("s", 100 * BATCHES as i64).unwrap();
    assert_eq!(database.quad_counts().total(), BATCHES - 2);
    assert!(results(&database, "q", BATCHES - 1)[0].ends_with("\"2\" "));
}

#[test]
fn a_stream_without_tuples_begins_with_the_first_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    open(folder.path())
        .create_stream("s", durable("http://e/s"))
        .unwrap();
    let database = open(folder.path());
    let count = "SELECT (COUNT(*) AS ?n) FROM STREAM <http://e/s> [RANGE 1s] { ?a ?p ?b }";
    database.register("q", count).unwrap();
    push(&database, "s", &line(15_500, 1));
    database.heartbeat("s", 18_000).unwrap();
    let all = results(&database, "q", 0);
    assert!(all[0].starts_with("1 at 16000 "), "{all:?}");
    assert_eq!(all.len(), 3);
}

#[test]
fn changes_and_published_results_go_on() {
    let folder = tempfile::tempdir().unwrap();
    let location = folder.path().join("store");
    let database = open(&location);
    database.create_stream("s", durable("http://e/s")).unwrap();
    let new = "PREFIX : <http://e/> REGISTER ISTREAM :n AS SELECT ?x \
               FROM NAMED WINDOW :w ON :s [RANGE 1s STEP 500ms] WHERE { WINDOW :w { ?x :p ?y } }";
    let made = "PREFIX : <http://e/> REGISTER STREAM made AS CONSTRUCT { ?x :q ?y } \
                FROM STREAM :s [RANGE 1s STEP 500ms] WHERE { ?x :p ?y }";
    let read = "SELECT ?x FROM STREAM made [RANGE 1s STEP 1s] WHERE { ?x ?p ?y }";
    for (name, text) in [("new", new), ("made", made), ("read", read)] {
        database.register(name, text).unwrap();
    }
    push(&database, "s", &(line(100, 1) + &line(700, 2)));
    assert!(results(&database, "new", 0)[0].ends_with(": http://e/1 "));
    assert!(database.stream("made").unwrap().definition.durable);
    for cut in [false, true] {
        let database = open_again(database.clone(), &location, cut);
        drop(database);
    }
    drop(database);
    let database = open(&location);
    push(&database, "s", &line(1200, 3));
    push(&database, "s", &line(2600, 4));
    let new = results(&database, "new", 1);
    assert!(new[0].ends_with(": http://e/2 "), "{new:?}");
    assert!(new[1].ends_with(": http://e/3 "), "{new:?}");
    let read = results(&database, "read", 0);
    assert!(read[0].ends_with(": http://e/1 "), "{read:?}");
    assert!(
        read[1].contains("http://e/1 , http://e/2 , http://e/3"),
        "{read:?}"
    );
}

/// A store that is open already is not opened again.
fn open_again(database: Database, location: &std::path::Path, cut: bool) -> Database {
    if cut {
        database.cut_stream_log().unwrap();
    }
    assert!(Database::open(location, config()).is_err());
    database
}

#[test]
fn a_pause_and_what_was_dropped_stay() {
    let folder = tempfile::tempdir().unwrap();
    let location = folder.path().join("store");
    let database = open(&location);
    for name in ["s", "t"] {
        let iri = format!("http://e/{name}");
        database.create_stream(name, durable(&iri)).unwrap();
    }
    for name in ["p", "q"] {
        database.register(name, COUNT).unwrap();
    }
    push(&database, "t", &line(100, 1));
    assert!(database.unregister("p").unwrap() && database.drop_stream("t").unwrap());
    database.create_stream("t", durable("http://e/t")).unwrap();
    database.set_paused("q", true).unwrap();
    push(&database, "s", &(line(100, 1) + &line(1200, 2)));
    drop(database);
    let database = open(&location);
    assert!(database.continuous_query("p").is_none());
    assert_eq!(database.stream("t").unwrap().tuples, 0);
    assert!(database.continuous_query("q").unwrap().paused);
    database.set_paused("q", false).unwrap();
    assert!(results(&database, "q", 0).is_empty());
    push(&database, "s", &line(1700, 3));
    let found = results(&database, "q", 0);
    assert!(found[0].starts_with("1 at 1500"), "{found:?}");
}

#[test]
fn a_copy_has_windows_and_positions_and_goes_its_own_way() {
    let folder = tempfile::tempdir().unwrap();
    let [location, backup, restored] =
        ["store", "backup", "restored"].map(|name| folder.path().join(name));
    let database = open(&location);
    database
        .create_stream("s", with_facts("http://e/s"))
        .unwrap();
    database.register("q", COUNT).unwrap();
    push(
        &database,
        "s",
        "100\t<http://e/a> <http://e/fact> <http://e/b> .\n",
    );
    push(&database, "s", &line(700, 3));
    let seen = results(&database, "q", 0);
    database.backup(&backup).unwrap();
    push(&database, "s", &line(1600, 4));
    let expected = results(&database, "q", 1);
    drop(database);
    let report = Database::restore(&backup, &restored).unwrap();
    assert!(
        report
            .files
            .iter()
            .any(|file| file.name == "streams/state-1.jnd")
    );
    for location in [&restored, &backup] {
        let database = open(location);
        assert_eq!(results(&database, "q", 0), seen);
        assert_eq!(database.quad_counts().triples, 1);
        push(&database, "s", &line(1600, 4));
        assert_eq!(results(&database, "q", 1), expected);
        drop(database);
        Database::verify(location).unwrap();
    }
    // A backup of a store at rest.
    let (again, reader) = (
        folder.path().join("again"),
        Database::open_to_copy(&location, config()),
    );
    reader.unwrap().backup(&again).unwrap();
    let database = open(&again);
    assert_eq!(results(&database, "q", 1), expected);
}

#[test]
fn a_store_with_names_of_streams_from_before_the_log_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let location = folder.path().join("store");
    drop(open(&location));
    let names = location.join("STREAMS");
    std::fs::write(&names, "{}").unwrap();
    let refused = Database::open(&location, config()).err().unwrap();
    assert!(refused.to_string().contains("STREAMS"), "{refused}");
    std::fs::remove_file(&names).unwrap();
    assert!(open(&location).streams().is_empty());
}

#[test]
fn blank_nodes_that_wait_are_none_of_texts_to_come() {
    let folder = tempfile::tempdir().unwrap();
    let location = folder.path().join("store");
    let query =
        "ASK FROM STREAM <http://e/s> [RANGE 1s] WHERE { ?x <http://e/a> ?y ; <http://e/b> ?z }";
    let database = open(&location);
    database.create_stream("s", durable("http://e/s")).unwrap();
    database.register("q", query).unwrap();
    push(&database, "s", "10\t_:x <http://e/a> \"1\" .\n");
    drop(database);
    let database = open(&location);
    push(&database, "s", "20\t_:x <http://e/b> \"2\" .\n");
    database.heartbeat("s", 1000).unwrap();
    let mut results = database.results_of("q", Some(0)).unwrap();
    let NextResult::Result(result, _) = results.next_within(std::time::Duration::ZERO) else {
        panic!("there is one");
    };
    assert_eq!(result.answer, Ok(Answer::Boolean(false)));
}

#[test]
fn a_database_in_memory_takes_no_durable_stream() {
    let database = Database::with_config(Config::default());
    let made = database.create_stream("s", durable("http://e/s"));
    let error = made.unwrap_err().to_string();
    assert!(error.contains("\"durable\""), "{error}");
    assert!(error.contains("--location"), "{error}");
    assert!(database.streams().is_empty());
}

#[test]
fn a_source_that_can_go_back_is_told_from_where() {
    let folder = tempfile::tempdir().unwrap();
    let location = folder.path().join("store");
    let database = open(&location);
    database.create_stream("d", durable("http://e/d")).unwrap();
    let other = jindou_engine::StreamDefinition::new("http://e/s");
    database.create_stream("s", other).unwrap();
    let text = "PREFIX : <http://e/> REGISTER QUERY q AS SELECT ?x ?y \
                FROM NAMED WINDOW :a ON :s [RANGE 1s STEP 500ms] \
                FROM NAMED WINDOW :b ON :d [RANGE 500ms STEP 500ms] \
                WHERE { WINDOW :a { ?x :p ?z } WINDOW :b { ?y :p ?w } }";
    database.register("q", text).unwrap();
    assert_eq!(database.stream("s").unwrap().needed_from_ms, None);
    let feed = |database: &Database, stream, times: std::ops::Range<i64>| {
        times.for_each(|part| push(database, stream, &line(part * 100 + 50, part as u64)));
    };
    for stream in ["s", "d"] {
        feed(&database, stream, 0..22);
    }
    assert_eq!(results(&database, "q", 0).len(), 4);
    drop(database);
    let database = open(&location);
    // The next instant is 2500.
    assert_eq!(database.stream("s").unwrap().needed_from_ms, Some(1500));
    feed(&database, "s", 15..27);
    feed(&database, "d", 22..27);
    let found = results(&database, "q", 4);
    let pairs = found[0].matches("http://e/").count() - 2;
    // Ten of one window with five of the other.
    assert_eq!((found.len(), pairs), (1, 2 * 10 * 5), "{found:?}");
}

#[test]
fn times_of_arrival_and_ticks_come_back() {
    let folder = tempfile::tempdir().unwrap();
    let location = folder.path().join("store");
    let now = Arc::new(AtomicI64::new(100));
    let with_clock = || {
        let (mut settings, now) = (config(), Arc::clone(&now));
        settings.clock = Clock::new(move || now.load(SeqCst));
        Database::open_or_create(&location, settings).unwrap()
    };
    let arrives = |database: &Database, time, name| {
        now.store(time, SeqCst);
        let text = format!("<http://e/{name}> <http://e/p> _:b .").into_bytes();
        let format = TupleFormat::Document(Format::Turtle);
        database.push("s", format, None, text).unwrap();
    };
    let mut definition = durable("http://e/s");
    definition.time = TimeSource::Arrival;
    let database = with_clock();
    database.create_stream("s", definition).unwrap();
    database.register("q", COUNT).unwrap();
    arrives(&database, 100, 1);
    arrives(&database, 400, 2);
    now.store(650, SeqCst);
    database.tick().unwrap();
    let before = results(&database, "q", 0);
    assert!(
        before[0].starts_with("1 at 500") && before[0].ends_with("\"2\" "),
        "{before:?}"
    );
    drop(database);
    let database = with_clock();
    assert_eq!(results(&database, "q", 0), before);
    assert_eq!(database.stream("s").unwrap().watermark_ms, Some(650));
    // The clock went back.
    arrives(&database, 300, 3);
    now.store(1_100, SeqCst);
    database.tick().unwrap();
    let found = results(&database, "q", 1);
    assert!(
        found[0].starts_with("2 at 1000") && found[0].ends_with("\"3\" "),
        "{found:?}"
    );
}
