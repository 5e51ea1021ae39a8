//! Windows of a number of tuples: which tuples are the last ones, at which instants, and of what is that
//! independent?

use std::path::Path;
use std::time::Duration;

use jindou_engine::{
    Answer, Config, Database, EngineError, NextResult, StreamDefinition, TupleFormat,
};

const PREFIX: &str = "PREFIX : <http://e/> ";

fn stream(database: &Database, name: &str, set: impl FnOnce(&mut StreamDefinition)) {
    let mut definition = StreamDefinition::new(format!("http://e/{name}"));
    set(&mut definition);
    assert!(database.create_stream(name, definition).unwrap());
}

fn register(database: &Database, name: &str, text: &str) {
    let registered = database.register(name, &format!("{PREFIX}{text}"));
    registered.unwrap_or_else(|error| panic!("{error}: {text}"));
}

/// Tuples by their times and what they are called.
fn push(database: &Database, stream: &str, tuples: &[(i64, &str)]) {
    let line = |(time, name): &(i64, &str)| {
        format!("{time}\t<http://e/{name}> <http://e/is> <http://e/here> .\n")
    };
    let text: String = tuples.iter().map(line).collect();
    let pushed = database.push(stream, TupleFormat::Lines, None, text.into_bytes());
    pushed.unwrap();
}

/// A result: its instant, the numbers of each window, and the names that it found.
type Found = (i64, Vec<Option<(u64, u64)>>, String);

fn results(database: &Database, name: &str) -> Vec<Found> {
    let mut reader = database.results_of(name, Some(0)).unwrap();
    let mut all = Vec::new();
    while let NextResult::Result(result, _) = reader.next_within(Duration::ZERO) {
        let numbers = result.windows.iter().map(|window| window.held.numbers);
        let answer = result.answer.as_ref().unwrap();
        let rows = answer.rows().unwrap().iter();
        let mut names: Vec<String> = rows
            .map(|row| {
                let mut bytes = Vec::new();
                for cell in row.into_iter().flatten() {
                    jindou_engine::results::write_term(&mut bytes, cell, true);
                }
                String::from_utf8(bytes).unwrap().replace("http://e/", "")
            })
            .collect();
        names.sort();
        all.push((result.instant_ms, numbers.collect(), names.join(" ")));
    }
    all
}

fn found(instant: i64, numbers: (u64, u64), names: &str) -> Found {
    (instant, vec![Some(numbers)], names.to_owned())
}

const LAST_THREE: &str = "SELECT ?x FROM NAMED WINDOW :w ON :s [RANGE TRIPLES 3 STEP 2] WHERE { WINDOW :w { ?x ?p ?y } }";

#[test]
fn a_window_slides_with_every_so_manieth_tuple_and_once_a_batch() {
    let database = Database::new();
    stream(&database, "s", |s| s.lateness_ms = 60);
    register(&database, "q", LAST_THREE);
    register(
        &database,
        "tumbling",
        "SELECT ?x FROM STREAM :s [TRIPLES 4] WHERE { ?x ?p ?y }",
    );
    // One by one, out of order; those of one time in the order in which they come.
    for tuple in [(50, "b"), (10, "a"), (50, "c"), (130, "d")] {
        push(&database, "s", &[tuple]);
    }
    assert_eq!(results(&database, "q"), []);
    push(&database, "s", &[(260, "f"), (220, "e")]);
    // Late, and in no window.
    push(&database, "s", &[(20, "late")]);
    let first = [
        found(100, (1, 2), "<a> <b>"),
        found(200, (2, 4), "<b> <c> <d>"),
    ];
    assert_eq!(results(&database, "q"), first);
    let many: Vec<(i64, String)> = (0..7).map(|n| (300 + n, format!("n{n}"))).collect();
    let many: Vec<(i64, &str)> = many.iter().map(|(time, name)| (*time, &**name)).collect();
    push(&database, "s", &many);
    database.heartbeat("s", 900).unwrap();
    let rest = [
        found(300, (4, 6), "<d> <e> <f>"),
        // Three slides at once.
        found(400, (10, 12), "<n3> <n4> <n5>"),
    ];
    assert_eq!(results(&database, "q")[2..], rest);
    let expected = [
        found(200, (1, 4), "<a> <b> <c> <d>"),
        found(400, (9, 12), "<n2> <n3> <n4> <n5>"),
    ];
    assert_eq!(results(&database, "tumbling"), expected);
    let plan = database.explain_continuous("q").unwrap().unwrap();
    let reason = "recomputed at each instant: a window of a number of tuples";
    assert!(plan.starts_with(reason), "{plan}");
}

#[test]
fn a_query_that_comes_later_counts_as_those_before_it_do() {
    let database = Database::new();
    stream(&database, "s", |_| {});
    // Nobody reads these.
    push(
        &database,
        "s",
        &[(10, "a"), (20, "b"), (30, "c"), (110, "d")],
    );
    register(&database, "q", LAST_THREE);
    push(&database, "s", &[(120, "e"), (210, "f"), (310, "g")]);
    let expected = [found(200, (4, 4), "<d>"), found(300, (4, 6), "<d> <e> <f>")];
    assert_eq!(results(&database, "q"), expected);
    register(&database, "again", LAST_THREE);
    push(&database, "s", &[(320, "h"), (410, "i")]);
    let last = found(400, (6, 8), "<f> <g> <h>");
    assert_eq!(results(&database, "q")[2..], [last]);
    let same = found(400, (7, 8), "<g> <h>");
    assert_eq!(results(&database, "again"), [same]);
}

fn open(location: &Path) -> Database {
    Database::open_or_create(location, Config::default()).unwrap()
}

#[test]
fn tuples_of_one_time_stay_in_their_order_when_a_store_is_opened_again() {
    for is_cut in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let location = folder.path().join("store");
        let database = open(&location);
        stream(&database, "s", |s| s.durable = true);
        register(&database, "q", LAST_THREE);
        // With a window over time, which needs some of the tuples before these, too.
        register(
            &database,
            "time",
            "SELECT ?x FROM STREAM :s [RANGE 200ms STEP 100ms] WHERE { ?x ?p ?y }",
        );
        let same = ["z", "m", "a", "y", "b", "x", "c"].map(|name| (150, name));
        push(&database, "s", &[(20, "first"), (30, "second")]);
        push(&database, "s", &same);
        push(&database, "s", &[(230, "w")]);
        let before = results(&database, "q");
        assert_eq!(before[1], found(200, (6, 8), "<b> <x> <y>"));
        if is_cut {
            database.cut_stream_log().unwrap();
        }
        drop(database);
        let database = open(&location);
        assert_eq!(results(&database, "q"), before);
        push(&database, "s", &[(330, "v"), (430, "u")]);
        let after = [found(300, (8, 10), "<c> <w> <x>")];
        assert_eq!(results(&database, "q")[2..], after);
        let over_time = results(&database, "time");
        let names = |at: usize| over_time[at].2.as_str();
        assert_eq!(names(2), "<a> <b> <c> <m> <w> <x> <y> <z>");
        assert_eq!(names(3), "<v> <w>");
    }
}

#[test]
fn instants_at_which_nothing_slides_are_left_out_after_a_while() {
    let database = Database::new();
    for name in ["s", "t"] {
        stream(&database, name, |_| {});
    }
    register(
        &database,
        "q",
        "SELECT ?x FROM STREAM :s [RANGE 100ms STEP 100ms] FROM STREAM :t [TRIPLES 2 STEP 1] \
         WHERE { ?x ?p ?y }",
    );
    let day = 24 * 3600 * 1000;
    let heartbeat = |time| {
        for name in ["s", "t"] {
            database.heartbeat(name, time).unwrap();
        }
    };
    let last = || {
        let results = results(&database, "q");
        let last = results.last().expect("there are some");
        (last.0, last.2.clone())
    };
    for begin in [0, day, 2 * day] {
        push(&database, "s", &[(begin + 10, "a"), (begin + 50, "b")]);
        push(&database, "t", &[(begin + 20, "c"), (begin + 30, "d")]);
        heartbeat(begin + 100);
        assert_eq!(last(), (begin + 100, "<a> <b> <c> <d>".to_owned()));
        heartbeat(begin + 200);
        assert_eq!(last(), (begin + 200, "<c> <d>".to_owned()));
        heartbeat(begin + day / 2);
        assert_eq!(last(), (begin + 100_100, "<c> <d>".to_owned()));
    }
    // Only the one of a number of tuples has something new.
    push(&database, "t", &[(3 * day, "e")]);
    heartbeat(3 * day + 100);
    assert_eq!(last(), (3 * day + 100, "<d> <e>".to_owned()));
    heartbeat(4 * day);
    let status = database.continuous_query("q").unwrap();
    // Four times one with something new, and as many after it as are given.
    assert_eq!(status.executions, 4 * 1_001);
}

#[test]
fn a_window_that_no_stream_of_this_memory_holds_is_refused() {
    let database = Database::new();
    stream(&database, "s", |s| s.memory = 80_000);
    let text = |n: u64, m: u64| {
        format!("ASK FROM STREAM <http://e/s> [TRIPLES {n} STEP {m}] WHERE {{ ?x ?p ?y }}")
    };
    for (n, m) in [(9_999, 2), (1, u64::MAX), (u64::MAX, 1)] {
        let refused = database.register("q", &text(n, m)).unwrap_err();
        let EngineError::InvalidQuery { message } = refused else {
            panic!("{refused}");
        };
        assert!(message.contains("80000 bytes"), "{message}");
    }
    assert!(database.register("q", &text(9_999, 1)).unwrap());
    // It is not refused, and does not fit all the same.
    let names: Vec<String> = (0..9_000).map(|n| format!("n{n}")).collect();
    let mut is_full = false;
    for (time, name) in (0..).zip(&names) {
        let line = format!("{time}\t<http://e/{name}> <http://e/is> <http://e/here> .\n");
        let pushed = database.push("s", TupleFormat::Lines, None, line.into_bytes());
        match pushed {
            Ok(_) => {}
            Err(EngineError::StreamFull { .. }) => is_full = true,
            Err(error) => panic!("{error}"),
        }
    }
    assert!(is_full);
    assert!(database.stream("s").unwrap().window_bytes < 90_000);
    assert!(database.unregister("q").unwrap());
    database.heartbeat("s", 20_000).unwrap();
}

#[test]
fn tuples_are_forgotten_that_no_window_will_have() {
    let database = Database::new();
    stream(&database, "s", |s| s.interval_ms = 10);
    register(
        &database,
        "q",
        "ASK FROM STREAM :s [TRIPLES 100 STEP 7] WHERE { ?x ?p ?y }",
    );
    let mut most = 0;
    for batch in 0..400 {
        let lines = (0..500).map(|n| {
            let time = batch * 10 + n / 50;
            format!("{time}\t<http://e/{n}> <http://e/is> \"{batch}\" .\n")
        });
        let text: String = lines.collect();
        let pushed = database.push("s", TupleFormat::Lines, None, text.into_bytes());
        pushed.unwrap();
        most = most.max(database.stream("s").unwrap().window_bytes);
    }
    // Of 200,000 tuples, those of the longest run, and of the one that is being made.
    assert!(most < 140_000 * 16, "{most}");
}

#[test]
fn queries_of_one_shape_and_equal_windows_are_one_execution() {
    let mut config = Config::default();
    config.together_from = 4;
    let database = Database::with_config(config);
    stream(&database, "s", |_| {});
    for name in 0..6 {
        let text = format!(
            "SELECT ?y FROM STREAM :s [TRIPLES 3 STEP 2] WHERE {{ :n{name} ?p ?y . :n{name} :is ?y }}"
        );
        register(&database, &format!("q{name}"), &text);
    }
    push(
        &database,
        "s",
        &[
            (10, "n1"),
            (20, "n0"),
            (120, "n3"),
            (130, "n2"),
            (210, "n0"),
        ],
    );
    for name in 0..6 {
        let status = database.continuous_query(&format!("q{name}")).unwrap();
        assert_eq!((status.executions, status.together), (2, 2), "{name}");
    }
    let here = |name: &str| -> Vec<usize> {
        let results = results(&database, name);
        results.iter().map(|result| result.2.len()).collect()
    };
    assert_eq!(here("q0"), [6, 6]);
    assert_eq!(here("q1"), [6, 0]);
    assert_eq!(here("q3"), [0, 6]);
}

#[test]
fn results_of_a_query_that_is_computed_every_so_often_have_what_windows_hold_then() {
    let database = Database::new();
    stream(&database, "s", |_| {});
    register(
        &database,
        "q",
        "REGISTER QUERY q COMPUTED EVERY 50ms AS ASK FROM STREAM :s [TRIPLES 2 STEP 2] \
         WHERE { :b ?p ?y }",
    );
    push(
        &database,
        "s",
        &[(10, "a"), (60, "b"), (110, "c"), (160, "d"), (310, "e")],
    );
    let mut reader = database.results_of("q", Some(0)).unwrap();
    let mut all = Vec::new();
    while let NextResult::Result(result, _) = reader.next_within(Duration::ZERO) {
        let held = result.windows[0].held;
        let is_there = result.answer == Ok(Answer::Boolean(true));
        all.push((
            result.instant_ms,
            held.from_ms,
            held.until_ms,
            held.numbers,
            is_there,
        ));
    }
    let expected = [
        (50, 50, 50, None, false),
        (100, 10, 61, Some((1, 2)), true),
        (150, 10, 61, Some((1, 2)), true),
        (200, 110, 161, Some((3, 4)), false),
        (250, 110, 161, Some((3, 4)), false),
        (300, 110, 161, Some((3, 4)), false),
    ];
    assert_eq!(all, expected);
}
