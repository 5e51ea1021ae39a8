//! What bounds streams and continuous queries: how many are registered, what their results take together,
//! how long one is evaluated, how far ahead a time may be, and for whom is a stream full?

use std::fmt::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jindou_counting::held;
use jindou_engine::{
    Clock, Config, Database, EngineError, MemoryPool, MergePolicy, NextResult, Predicates,
    StreamDefinition, TupleFormat,
};

/// Memory is counted for the whole process.
static ONE: Mutex<()> = Mutex::new(());

fn one() -> MutexGuard<'static, ()> {
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn with_stream(config: Config) -> Database {
    let database = Database::with_config(config);
    stream(&database, "s", |_| ());
    database
}

fn stream(database: &Database, name: &str, set: impl FnOnce(&mut StreamDefinition)) {
    let mut definition = StreamDefinition::new(format!("http://e/{name}"));
    set(&mut definition);
    assert!(database.create_stream(name, definition).unwrap());
}

fn push(database: &Database, stream: &str, lines: &str) -> Result<u64, EngineError> {
    let text = lines.as_bytes().to_vec();
    let report = database.push(stream, TupleFormat::Lines, None, text)?;
    Ok(report.accepted)
}

fn line(time_ms: i64, tuple: usize) -> String {
    format!("{time_ms}\t<http://e/s{tuple}> <http://e/p> <http://e/o{tuple}> .\n")
}

fn pool(bytes: u64) -> Config {
    let mut config = Config::default();
    config.memory_pool = Some(Arc::new(MemoryPool::new(bytes)));
    config
}

/// Texts of about so many bytes, each another one: of one shape, or of shapes of their own.
fn text(number: usize, bytes: usize, has_own_shape: bool) -> String {
    let mut text = "SELECT ?x FROM STREAM <http://e/s> [RANGE 2s STEP 1s] WHERE { ".to_owned();
    let predicate = if has_own_shape { number } else { 0 };
    write!(text, "?x <http://e/p{predicate}> <http://e/o{number}> . ").unwrap();
    for other in 0.. {
        if text.len() >= bytes {
            break;
        }
        match other % 50 {
            0 => write!(text, "OPTIONAL {{ ?x <http://e/q> ?x{other} }} ").unwrap(),
            _ => write!(text, "FILTER(?x != <http://e/{other}>) ").unwrap(),
        }
    }
    text + "}"
}

#[test]
fn registered_queries_take_no_more_than_is_counted() {
    let _one = one();
    for (bytes, queries, has_own_shape) in [
        (0, 2_000, false),
        (0, 2_000, true),
        (2_000, 300, true),
        (40_000, 30, true),
    ] {
        let database = with_stream(Config::default());
        let before = held();
        let mut texts = 0;
        for number in 0..queries {
            let text = text(number, bytes, has_own_shape);
            texts += text.len() as u64;
            database.register(&format!("q{number}"), &text).unwrap();
        }
        let registered = held() - before;
        // The first result, and the plans that it takes.
        push(
            &database,
            "s",
            &(0..30)
                .map(|n| line(100 * n, n as usize))
                .collect::<String>(),
        )
        .unwrap();
        let evaluated = held() - before;
        let counted = queries as u64 * (12 << 10) + 40 * texts;
        println!(
            "{queries} texts of {} bytes: {} bytes each, {} evaluated; counted {}",
            texts / queries as u64,
            registered / queries as u64,
            evaluated / queries as u64,
            counted / queries as u64
        );
        assert!(evaluated <= counted, "{evaluated} {counted}");
    }
}

#[test]
fn queries_are_registered_until_they_take_their_share() {
    let _one = one();
    let database = with_stream(pool(16 << 20));
    let mut registered = 0;
    let refused = loop {
        let text = text(registered, 0, true);
        match database.register(&format!("q{registered}"), &text) {
            Ok(is_new) => assert!(is_new),
            Err(error) => break error,
        }
        registered += 1;
    };
    assert!((100..400).contains(&registered), "{registered}");
    let EngineError::TooManyRegistered {
        queries,
        limit_bytes,
        ..
    } = refused
    else {
        panic!("{refused}");
    };
    assert_eq!((queries, limit_bytes), (registered as u64, 4 << 20));
    // One that is there is there, and a place that is given up is another's.
    assert!(!database.register("q7", &text(7, 0, true)).unwrap());
    assert!(database.unregister("q7").unwrap());
    assert!(database.register("other", &text(7, 0, true)).unwrap());
    assert!(database.register("more", &text(1, 0, true)).is_err());
}

#[test]
fn results_of_many_queries_are_bounded_together() {
    const QUERIES: usize = 400;
    const POOL: u64 = 64 << 20;
    let _one = one();
    let mut config = pool(POOL);
    config.together_from = usize::MAX;
    let database = with_stream(config);
    for number in 0..QUERIES {
        let text = format!(
            "SELECT ?x ?y FROM STREAM <http://e/s> [RANGE 100ms] WHERE {{ ?x <http://e/p> ?y . \
             FILTER(?x != <http://e/{number}>) }}"
        );
        database.register(&format!("q{number}"), &text).unwrap();
    }
    let run = |batches: std::ops::Range<i64>| {
        for batch in batches {
            let lines: String = (0..20).map(|tuple| line(100 * batch, tuple)).collect();
            push(&database, "s", &lines).unwrap();
        }
    };
    run(0..10);
    let before = held();
    // Some 300 MiB if each kept its last thousand.
    run(10..400);
    let taken = held() - before;
    assert!(taken < POOL / 8 * 2, "{taken}");
    let mut results = database.results_of("q3", Some(0)).unwrap();
    let mut sequences = Vec::new();
    while let NextResult::Result(result, _) = results.next_within(Duration::ZERO) {
        assert_eq!(result.answer.as_ref().unwrap().rows().unwrap().len(), 20);
        sequences.push(result.sequence);
    }
    // Its share, of the last ones.
    assert!(sequences.len() > 5, "{sequences:?}");
    assert_eq!(sequences.last(), Some(&399));
}

const CROSS: &str = "SELECT (COUNT(*) AS ?n) FROM STREAM <http://e/s> [RANGE 1s] \
                     WHERE { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i FILTER(STR(?a) < STR(?i)) }";

/// A second of tuples, and the first of the next.
fn a_second(database: &Database, second: i64, tuples: usize) {
    let lines: String = (0..tuples)
        .map(|tuple| line(1000 * second, tuple))
        .collect();
    push(database, "s", &lines).unwrap();
    database.heartbeat("s", 1000 * (second + 1)).unwrap();
}

fn next(database: &Database, name: &str, after: u64) -> Result<u64, String> {
    let mut results = database.results_of(name, Some(after)).unwrap();
    let NextResult::Result(result, _) = results.next_within(Duration::from_secs(120)) else {
        panic!("{name} has no result after {after}");
    };
    result.answer.clone().map(|_| result.sequence)
}

#[test]
fn a_query_that_is_dropped_gives_up_the_thread_that_evaluates_it() {
    let _one = one();
    let mut config = Config::default();
    config.continuous_threads = 1;
    let database = with_stream(config);
    // A billion rows and more.
    database.register("heavy", CROSS).unwrap();
    a_second(&database, 0, 2_000);
    let fair = "SELECT (COUNT(*) AS ?n) FROM STREAM <http://e/s> [RANGE 2s STEP 1s] \
                WHERE { ?a ?b ?c . ?d ?e ?f FILTER(STR(?a) < STR(?f)) }";
    database.register("fair", fair).unwrap();
    assert!(database.unregister("heavy").unwrap());
    a_second(&database, 1, 300);
    assert_eq!(next(&database, "fair", 0), Ok(1));
}

#[test]
fn a_query_that_takes_milliseconds_does_not_wait_for_one_that_takes_minutes() {
    let _one = one();
    let mut config = Config::default();
    config.continuous_threads = 1;
    let database = with_stream(config);
    for heavy in 0..3 {
        database.register(&format!("heavy{heavy}"), CROSS).unwrap();
    }
    let fair = "SELECT (COUNT(*) AS ?n) FROM STREAM <http://e/s> [RANGE 1s] \
                WHERE { ?a <http://e/p> ?c . ?d <http://e/p> ?f FILTER(STR(?a) < STR(?f)) }";
    a_second(&database, 0, 2_000);
    database.register("fair", fair).unwrap();
    // Some ten thousand pairs each.
    for second in 1..6 {
        a_second(&database, second, 100);
    }
    for sequence in 0..5 {
        assert_eq!(next(&database, "fair", sequence), Ok(sequence + 1));
    }
    assert_eq!(database.continuous_query("heavy0").unwrap().executions, 0);
    for heavy in 0..3 {
        assert!(database.unregister(&format!("heavy{heavy}")).unwrap());
    }
}

#[test]
fn an_evaluation_that_takes_too_long_is_a_result_that_says_so() {
    let _one = one();
    let mut config = Config::default();
    config.continuous_threads = 1;
    config.continuous_timeout = Some(Duration::from_millis(50));
    let database = with_stream(config);
    database.register("heavy", CROSS).unwrap();
    a_second(&database, 0, 2_000);
    let said = next(&database, "heavy", 0).unwrap_err();
    assert!(said.contains("limit of 0.05 s"), "{said}");
    a_second(&database, 1, 2);
    assert_eq!(next(&database, "heavy", 1), Ok(2));
}

#[test]
fn an_answer_that_no_reader_could_have_is_not_read_to_its_end() {
    const POOL: u64 = 64 << 20;
    // One alone, and several that are evaluated together.
    for queries in [1, 10] {
        let _one = one();
        let database = with_stream(pool(POOL));
        // Eight million rows.
        let product = "SELECT * FROM STREAM <http://e/s> [RANGE 1s] \
                       WHERE { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i }";
        for number in 0..queries {
            database.register(&format!("q{number}"), product).unwrap();
        }
        let (most, ()) = jindou_counting::peak(|| a_second(&database, 0, 200));
        assert!(most < POOL, "{most} bytes");
        for number in 0..queries {
            let said = next(&database, &format!("q{number}"), 0).unwrap_err();
            let limit = "more than the 8388608 bytes that all results";
            assert!(said.contains(limit), "{said}");
        }
        // The next window has an answer.
        a_second(&database, 1, 2);
        assert_eq!(next(&database, "q0", 1), Ok(2));
    }
}

#[test]
fn times_too_far_ahead_are_refused_with_all_that_comes_with_them() {
    let mut config = Config::default();
    config.clock = Clock::new(|| 1_000_000);
    let database = with_stream(config);
    let hour = 60 * 60 * 1000;
    assert_eq!(push(&database, "s", &line(1_000_000 + hour, 1)).unwrap(), 1);
    let ahead = format!("{}\n\n{}", line(5, 1), line(1_000_001 + hour, 2));
    let refused = push(&database, "s", &ahead).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "s: line 4: event 2: the time 4600001 is 3600001 ms ahead of the clock, which says 1000000, and \
         the stream takes what is up to 3600000 ms ahead (max_ahead_ms)"
    );
    let document = |time_ms| {
        let format = TupleFormat::from_media_type("text/turtle").unwrap();
        database.push("s", format, Some(time_ms), b"<a:a> <a:b> 1 .".to_vec())
    };
    assert!(matches!(document(i64::MAX), Err(EngineError::Event { .. })));
    let beat = database.heartbeat("s", i64::MAX).unwrap_err();
    assert!(
        beat.to_string().starts_with("s: a heartbeat: the time "),
        "{beat}"
    );
    // Nothing was kept: what comes now is not late.
    assert_eq!(document(1_000_000 + hour).unwrap().late, 0);
    stream(&database, "any", |stream| stream.max_ahead_ms = None);
    assert_eq!(push(&database, "any", &line(i64::MAX, 1)).unwrap(), 1);
    stream(&database, "little", |stream| stream.max_ahead_ms = Some(0));
    assert_eq!(push(&database, "little", &line(1_000_000, 1)).unwrap(), 1);
    assert!(push(&database, "little", &line(1_000_001, 1)).is_err());
}

#[test]
fn a_full_stream_says_which_query_needs_the_oldest_tuples() {
    for (name, window) in [
        ("year", "[RANGE 365d STEP 10ms]"),
        ("count", "[TRIPLES 2000 STEP 1]"),
    ] {
        let database = Database::new();
        stream(&database, "s", |stream| stream.memory = 200_000);
        for (name, window) in [("short", "[RANGE 1s]"), (name, window)] {
            let text =
                format!("ASK FROM STREAM <http://e/s> {window} WHERE {{ ?x <http://e/p> 1 }}");
            database.register(name, &text).unwrap();
        }
        let pushed =
            (0..100_000).map(|tuple| push(&database, "s", &line(10 * tuple, tuple as usize)));
        let refused = pushed
            .into_iter()
            .find_map(Result::err)
            .expect("it is full");
        let said = format!("the continuous query {name} needs the oldest tuples");
        assert!(refused.to_string().ends_with(&said), "{refused}");
        assert!(database.unregister(name).unwrap());
        assert_eq!(push(&database, "s", &line(1_000_000, 1)).unwrap(), 1);
    }
}

#[test]
fn the_windows_of_streams_are_data() {
    let database = with_stream(Config::default());
    let taken = || database.data_memory(None).stream_bytes;
    assert_eq!(taken(), 0);
    database.register("q", CROSS).unwrap();
    push(&database, "s", &line(0, 1)).unwrap();
    let waiting = taken();
    assert!(waiting > 0);
    push(&database, "s", &line(200, 2)).unwrap();
    assert!(taken() > waiting);
}

#[test]
fn light_queries_go_on_while_others_hold_all_memory() {
    let _one = one();
    let config = pool(64 << 20);
    let all = config.memory_pool.clone().unwrap();
    let database = with_stream(config);
    let rows = "SELECT ?s ?o FROM STREAM <http://e/s> [RANGE 1s STEP 100ms] \
                WHERE { ?s <http://e/p> ?o }";
    database.register("rows", rows).unwrap();
    let count = rows.replace("?s ?o FROM", "(COUNT(*) AS ?n) FROM");
    database.register("count", &count).unwrap();
    let held = all.reserve(all.limit_bytes()).unwrap();
    for batch in 0..30 {
        push(&database, "s", &line(100 * batch, batch as usize)).unwrap();
    }
    drop(held);
    assert_eq!(next(&database, "rows", 0), Ok(1));
    assert_eq!(next(&database, "rows", 28), Ok(29));
    assert_eq!(next(&database, "count", 28), Ok(29));
}

#[test]
fn streams_are_made_until_they_take_their_share() {
    let _one = one();
    let database = Database::with_config(pool(16 << 20));
    let terms: String = (0..1_000)
        .map(|term| format!(r#","term{term}":"http://e/{term}""#))
        .collect();
    let before = held();
    let mut made = 0;
    let refused = loop {
        let text = format!(r#"{{"iri":"http://e/s{made}","context":{{"a":"http://e/a"{terms}}}}}"#);
        let definition = serde_json::from_str(&text).unwrap();
        match database.create_stream(&format!("s{made}"), definition) {
            Ok(is_new) => assert!(is_new),
            Err(error) => break error,
        }
        made += 1;
    };
    let EngineError::TooManyRegistered {
        streams,
        limit_bytes,
        ..
    } = refused
    else {
        panic!("{refused}");
    };
    assert_eq!((streams, limit_bytes), (made, 4 << 20));
    let taken = held() - before;
    println!("{made} streams: {taken} bytes");
    assert!((10..100).contains(&made), "{made}");
    assert!(taken <= limit_bytes, "{taken}");
    let said = serde_json::to_vec(&database.streams()).unwrap().len() as u64;
    assert!(said <= database.catalogue_bytes(), "{said}");
    assert!(database.drop_stream("s3").unwrap());
    stream(&database, "other", |_| ());
}

#[test]
fn a_definition_is_refused_that_is_longer_than_one_may_be() {
    let database = Database::new();
    let mut definition = StreamDefinition::new("http://e/s");
    let predicates = (0..40_000).map(|number| format!("http://e/some/long/name/of/{number}"));
    definition.timeless = Some(jindou_engine::Predicates::Some(predicates.collect()));
    let refused = database.create_stream("s", definition).unwrap_err();
    let said = refused.to_string();
    assert!(
        matches!(refused, EngineError::InvalidQuery { .. }),
        "{said}"
    );
    assert!(said.starts_with("s: the definition has "), "{said}");
    assert!(said.ends_with("and one may have 1048576 at most"), "{said}");
    assert!(database.streams().is_empty());
}

#[test]
fn windows_of_batches_of_one_tuple_are_counted() {
    let _one = one();
    let database = Database::new();
    const MEMORY: u64 = 2 << 20;
    stream(&database, "s", |definition| {
        definition.memory = MEMORY;
        definition.max_ahead_ms = None;
    });
    // Of either kind, and the first instants are far away.
    for (name, window) in [("time", "[RANGE 36500d]"), ("count", "[TRIPLES 100000]")] {
        let text = format!("ASK FROM STREAM <http://e/s> {window} WHERE {{ ?x ?p ?y }}");
        assert!(database.register(name, &text).unwrap());
    }
    let round = |first: i64| -> String {
        // Too far apart to be merged.
        let lines = (first..first + 50).map(|batch| line(batch * 61_000, batch as usize % 10));
        lines.collect()
    };
    push(&database, "s", &round(0)).unwrap();
    let (before, said_before) = (held(), database.stream("s").unwrap().window_bytes);
    let mut first = 50;
    loop {
        match push(&database, "s", &round(first)) {
            Ok(accepted) => first += accepted as i64,
            Err(EngineError::StreamFull { .. }) => break,
            Err(other) => panic!("{other}"),
        }
    }
    let (taken, status) = (held() - before, database.stream("s").unwrap());
    let said = status.window_bytes - said_before;
    println!("{first} batches: {taken} bytes, of which {said} are counted");
    assert!(status.window_runs > 1_000, "{}", status.window_runs);
    assert!(taken <= said + said / 8, "{taken} bytes, {said} counted");
}

#[test]
fn terms_that_only_windows_hold_are_counted_until_they_are_collected() {
    const MEMORY: u64 = 4 << 20;
    const TEXT: usize = 100_000;
    let _one = one();
    let mut config = Config::default();
    config.merge = MergePolicy::never();
    let database = Database::with_config(config);
    stream(&database, "s", |definition| {
        definition.memory = MEMORY;
        definition.max_ahead_ms = None;
    });
    let query = "SELECT (COUNT(*) AS ?n) FROM STREAM <http://e/s> [RANGE 1h STEP 10s] \
                 WHERE { ?s <http://e/p> ?o }";
    assert!(database.register("q", query).unwrap());
    let text = "x".repeat(TEXT);
    let before = held();
    let mut number = 0;
    for round in 0..10_i64 {
        let begin_ms = round * 3 * 3_600_000;
        let mut accepted = 0;
        let refused = loop {
            let time_ms = begin_ms + accepted * 100;
            number += 1;
            let line = format!("{time_ms}\t<http://e/s> <http://e/p> \"{number} {text}\" .\n");
            match push(&database, "s", &line) {
                Ok(_) => accepted += 1,
                Err(error) => break error,
            }
        };
        assert!(
            matches!(refused, EngineError::StreamFull { .. }),
            "{refused}"
        );
        // About as many as there is memory for.
        assert!((30..=45).contains(&accepted), "{accepted} in round {round}");
        let status = database.stream("s").unwrap();
        assert!(
            status.term_bytes > MEMORY / 2 && status.window_bytes < MEMORY / 8,
            "{status:?}"
        );
        // Its windows have all of them, and whoever waits is told again.
        assert!(push(&database, "s", &line(begin_ms + accepted * 100, 1)).is_err());
        assert_eq!(database.stream("s").unwrap().tuples, status.tuples);
        // The window passes.
        database.heartbeat("s", begin_ms + 2 * 3_600_000).unwrap();
        push(&database, "s", &line(begin_ms + 2 * 3_600_000, 1)).unwrap();
        let status = database.stream("s").unwrap();
        assert!(status.term_bytes < MEMORY / 8, "{status:?}");
        let taken = held() - before;
        println!("round {round}: {accepted} texts, {taken} bytes are held");
        assert!(taken < 6 * MEMORY, "{taken}");
    }
}

#[test]
fn terms_that_facts_have_are_no_streams() {
    let database = Database::new();
    stream(&database, "s", |definition| {
        definition.timeless = Some(Predicates::ALL);
    });
    let query = "ASK FROM STREAM <http://e/s> [RANGE 1h STEP 10s] WHERE { ?s <http://e/p> ?o }";
    assert!(database.register("q", query).unwrap());
    for batch in 0..20 {
        push(&database, "s", &line(batch * 100, batch as usize)).unwrap();
    }
    assert_eq!(database.stream("s").unwrap().term_bytes, 0);
}

#[test]
fn what_waits_in_batches_of_one_tuple_is_counted() {
    let _one = one();
    let database = Database::new();
    stream(&database, "s", |definition| {
        definition.memory = 8 << 20;
        definition.lateness_ms = 1 << 40;
        definition.max_ahead_ms = None;
    });
    let before = held();
    let mut batches = 0;
    let mut tuple = 0;
    while batches < 100_000 {
        let lines: String = (0..100)
            .map(|_| {
                tuple += 1;
                line(tuple * 1_000, tuple as usize)
            })
            .collect();
        match push(&database, "s", &lines) {
            Ok(accepted) => batches += accepted,
            Err(EngineError::StreamFull { .. }) => break,
            Err(other) => panic!("{other}"),
        }
    }
    let taken = held() - before;
    println!("{batches} batches: {taken} bytes");
    assert!((10_000..100_000).contains(&batches), "{batches}");
    assert!(taken < 9 << 20, "{taken}");
    // What left is no longer counted.
    database.heartbeat("s", 1 << 50).unwrap();
    assert_eq!(database.stream("s").unwrap().waiting_bytes, 0);
}
