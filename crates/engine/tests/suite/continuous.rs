//! Continuous queries find in their windows what a database finds that has nothing but these.

use std::time::Duration;

use jindou_engine::ingest::{Format, Progress, Source};
use jindou_engine::{
    Answer, Config, ContinuousResult, Database, LoadOptions, MemoryPool, NextResult,
    StreamDefinition, TupleFormat,
};

const PREFIX: &str = "PREFIX : <http://e/> ";

fn stream(database: &Database, name: &str) {
    let definition = StreamDefinition::new(format!("http://e/{name}"));
    assert!(database.create_stream(name, definition).unwrap());
}

fn push(database: &Database, name: &str, lines: &[(i64, &str)]) {
    let line = |(time, triple): &(i64, &str)| {
        let terms: Vec<String> = triple
            .split(' ')
            .map(|term| match term.parse::<i64>() {
                Ok(number) => format!("\"{number}\"^^<http://www.w3.org/2001/XMLSchema#integer>"),
                Err(_) => format!("<http://e/{term}>"),
            })
            .collect();
        format!("{time}\t{} .\n", terms.join(" "))
    };
    let text: String = lines.iter().map(line).collect();
    let format = TupleFormat::Lines;
    database
        .push(name, format, None, text.into_bytes())
        .unwrap();
}

/// All results so far, each as its instant and its rows, sorted.
fn results(database: &Database, name: &str) -> Vec<(i64, Vec<String>)> {
    let mut reader = database.results_of(name, Some(0)).unwrap();
    let mut all = Vec::new();
    while let NextResult::Result(result, missed) = reader.next_within(Duration::ZERO) {
        assert_eq!(missed, 0);
        all.push((result.instant_ms, rows(&result)));
    }
    all
}

fn rows(result: &ContinuousResult) -> Vec<String> {
    let answer = result.answer.as_ref().unwrap();
    if let Answer::Boolean(value) = answer {
        return vec![value.to_string()];
    }
    let rows = answer.rows().unwrap();
    let text = |cells: Vec<Option<jindou_engine::results::TermText<'_>>>| {
        let cells = cells.into_iter().map(|cell| {
            let mut bytes = Vec::new();
            if let Some(term) = cell {
                jindou_engine::results::write_term(&mut bytes, term, true);
            }
            String::from_utf8(bytes).unwrap().replace("http://e/", "")
        });
        cells.collect::<Vec<_>>().join(" ")
    };
    let mut rows: Vec<String> = rows.iter().map(text).collect();
    rows.sort();
    rows
}

fn found(all: &[(i64, &[&str])]) -> Vec<(i64, Vec<String>)> {
    let owned = |rows: &[&str]| rows.iter().map(|row| (*row).to_owned()).collect();
    all.iter()
        .map(|(instant, rows)| (*instant, owned(rows)))
        .collect()
}

#[test]
fn each_stream_has_its_own_window() {
    let database = Database::new();
    stream(&database, "a");
    stream(&database, "b");
    let query = "REGISTER QUERY q AS SELECT ?x ?y \
                 FROM NAMED WINDOW :w ON :a [RANGE 200ms STEP 100ms] \
                 FROM NAMED WINDOW :v ON :b [RANGE 100ms STEP 100ms] \
                 WHERE { WINDOW :w { ?x :p ?z } WINDOW :v { ?y :q ?z } }";
    database.register("q", &format!("{PREFIX}{query}")).unwrap();
    push(
        &database,
        "a",
        &[(10, "x1 p z"), (120, "x2 p z"), (330, "x3 p z")],
    );
    push(
        &database,
        "b",
        &[
            (50, "y1 q z"),
            (150, "y2 q z"),
            (250, "y3 q other"),
            (320, "y4 q z"),
        ],
    );
    for name in ["a", "b"] {
        database.heartbeat(name, 400).unwrap();
    }
    let expected = found(&[
        (100, &["<x1> <y1>"]),
        (200, &["<x1> <y2>", "<x2> <y2>"]),
        (300, &[]),
        (400, &["<x3> <y4>"]),
    ]);
    assert_eq!(results(&database, "q"), expected);
}

#[test]
fn windows_and_stored_graphs_are_one_default_graph() {
    let database = Database::new();
    let stored = "<http://e/x> <http://e/knows> <http://e/y> <http://e/static> .\n\
                  <http://e/x> <http://e/likes> <http://e/1> <http://e/static> .\n\
                  <http://e/x> <http://e/likes> <http://e/2> <http://e/other> .\n";
    let source = Source::bytes("s", stored.as_bytes()).with_format(Format::NQuads);
    database
        .load(vec![source], &LoadOptions::default(), &Progress::default())
        .unwrap();
    stream(&database, "s");
    let query = "SELECT ?a ?b ?what FROM STREAM :s [RANGE 1s STEP 100ms] FROM :static \
                 WHERE { ?a :knows ?b . ?a :likes ?what }";
    database.register("q", &format!("{PREFIX}{query}")).unwrap();
    let lines = [
        (10, "x likes 1"),
        (20, "x likes 3"),
        (30, "y likes 4"),
        (110, "y knows x"),
    ];
    push(&database, "s", &lines);
    database.heartbeat("s", 200).unwrap();
    let first: &[&str] = &["<x> <y> 1", "<x> <y> 3", "<x> <y> <1>"];
    let second: &[&str] = &["<x> <y> 1", "<x> <y> 3", "<x> <y> <1>", "<y> <x> 4"];
    assert_eq!(
        results(&database, "q"),
        found(&[(100, first), (200, second)])
    );
}

#[test]
fn a_repeated_triple_is_one_until_its_last_time_has_passed() {
    let database = Database::new();
    stream(&database, "s");
    for (name, select) in [
        ("r", "SELECT ?x"),
        ("i", "SELECT ISTREAM ?x"),
        ("d", "SELECT DSTREAM ?x"),
    ] {
        let text = format!(
            "{PREFIX}{select} FROM STREAM :s [RANGE 200ms STEP 100ms] WHERE {{ ?x :p ?y }}"
        );
        database.register(name, &text).unwrap();
    }
    push(
        &database,
        "s",
        &[
            (10, "a p b"),
            (120, "a p b"),
            (130, "c p b"),
            (320, "c p b"),
        ],
    );
    database.heartbeat("s", 600).unwrap();
    let (a, c): (&[&str], &[&str]) = (&["<a>"], &["<c>"]);
    let both: &[&str] = &["<a>", "<c>"];
    let all = [
        (100, a),
        (200, both),
        (300, both),
        (400, c),
        (500, c),
        (600, &[]),
    ];
    assert_eq!(results(&database, "r"), found(&all));
    let new = [
        (100, a),
        (200, c),
        (300, &[]),
        (400, &[]),
        (500, &[]),
        (600, &[]),
    ];
    assert_eq!(results(&database, "i"), found(&new));
    let gone: [(i64, &[&str]); 6] = [
        (100, &[]),
        (200, &[]),
        (300, &[]),
        (400, a),
        (500, &[]),
        (600, c),
    ];
    assert_eq!(results(&database, "d"), found(&gone));
}

#[test]
fn timeless_tuples_are_stored_once_their_batch_is_complete() {
    let database = Database::new();
    let mut definition = StreamDefinition::new("http://e/s");
    definition.timing = Some(jindou_engine::Predicates::Some(vec![
        "http://e/at".to_owned(),
    ]));
    definition.graph = Some("http://e/g".to_owned());
    database.create_stream("s", definition).unwrap();
    let text = format!(
        "{PREFIX}SELECT ?x ?at FROM STREAM :s [RANGE 100ms STEP 100ms] \
         WHERE {{ ?x :at ?at . GRAPH :g {{ ?x :is ?y }} }}"
    );
    database.register("q", &text).unwrap();
    push(
        &database,
        "s",
        &[(10, "x is y"), (20, "x at 1"), (50, "z at 1")],
    );
    assert_eq!(database.quad_counts().total(), 0);
    push(&database, "s", &[(150, "x at 2")]);
    assert_eq!(database.quad_counts().named_quads, 1);
    // Too late for its window, but a fact.
    push(
        &database,
        "s",
        &[(60, "z is y"), (70, "z at 3"), (160, "z at 2")],
    );
    assert_eq!(database.quad_counts().named_quads, 2);
    database.heartbeat("s", 200).unwrap();
    let expected = found(&[(100, &["<x> 1"]), (200, &["<x> 2", "<z> 2"])]);
    assert_eq!(results(&database, "q"), expected);
    let status = database.stream("s").unwrap();
    assert_eq!((status.tuples, status.late, status.absorbed), (5, 2, 2));
    assert!(
        database
            .late_tuples("s")
            .unwrap()
            .starts_with("60\t<http://e/z> ")
    );
}

#[test]
fn a_key_that_several_rows_have_is_followed_for_each_in_windows_and_a_small_graph() {
    let database = Database::new();
    let few = (0..20)
        .map(|number| format!("<http://e/s{number}> <http://e/p> <http://e/o> <http://e/g> .\n"));
    let many = (0..30_000)
        .map(|number| format!("<http://e/x{number}> <http://e/p> <http://e/o> <http://e/h> .\n"));
    let others = (0..9_000).map(|number| {
        format!("<http://e/s{number}> <http://e/p> <http://e/y{number}> <http://e/g> .\n")
    });
    let text: String = few.chain(many).chain(others).collect();
    let source = Source::bytes("stored.nq", text.into_bytes()).with_format(Format::NQuads);
    let loaded = database.load(vec![source], &LoadOptions::default(), &Progress::default());
    loaded.unwrap();
    stream(&database, "s");
    let text = "SELECT ?i (COUNT(?s) AS ?n) FROM STREAM <http://e/s> [RANGE 1s] FROM <http://e/g> \
                WHERE { ?i <http://e/q> ?o . ?s <http://e/p> ?o . ?s <http://e/p> ?o2 } GROUP BY ?i";
    database.register("q", text).unwrap();
    let lines = [
        "1\t<http://e/i1> <http://e/q> <http://e/o> .\n",
        "1\t<http://e/i2> <http://e/q> <http://e/o> .\n",
        "1\t<http://e/i3> <http://e/q> <http://e/o> .\n",
        "1\t<http://e/z> <http://e/p> <http://e/o> .\n",
        "1\t<http://e/s1> <http://e/p> <http://e/other> .\n",
    ];
    let pushed = database.push("s", TupleFormat::Lines, None, lines.concat().into());
    pushed.unwrap();
    database.heartbeat("s", 1000).unwrap();
    let mut results = database.results_of("q", Some(0)).unwrap();
    let NextResult::Result(result, _) = results.next_within(Duration::ZERO) else {
        panic!("there is one");
    };
    let answer = result.answer.as_ref().unwrap();
    let counts: Vec<String> = answer
        .rows()
        .unwrap()
        .iter()
        .map(|row| format!("{:?}", row[1]))
        .collect();
    // Nineteen stored ones with two objects each, one with three, and one of the window.
    assert_eq!(counts.len(), 3);
    assert!(
        counts.iter().all(|count| count.contains("\"42\"")),
        "{counts:?}"
    );
}

#[test]
fn results_that_wait_for_readers_are_bounded_together() {
    let mut config = Config::default();
    config.memory_pool = Some(std::sync::Arc::new(MemoryPool::new(16 << 20)));
    let database = Database::with_config(config);
    database
        .create_stream("s", StreamDefinition::new("http://e/s"))
        .unwrap();
    let text = |number: usize| {
        format!(
            "SELECT * FROM STREAM <http://e/s> [RANGE 1s] WHERE {{ ?s ?p ?o FILTER({number} = {number}) }}"
        )
    };
    for number in 0..40 {
        database
            .register(&format!("q{number}"), &text(number))
            .unwrap();
    }
    let long = "x".repeat(1000);
    let push = |time_ms: i64, count: i64| {
        let line =
            |number: i64| format!("{time_ms}\t<http://e/{number}> <http://e/p> \"{long}\" .\n");
        let lines: String = (0..count).map(line).collect();
        let pushed = database.push("s", TupleFormat::Lines, None, lines.into());
        pushed.unwrap();
        database.heartbeat("s", time_ms + 1000).unwrap();
    };
    let last = |number: usize| {
        let name = format!("q{number}");
        let mut results = database.results_of(&name, Some(0)).unwrap();
        let mut last = None;
        while let NextResult::Result(result, _) = results.next_within(Duration::ZERO) {
            last = Some(result);
        }
        last.expect("there is one").answer.clone()
    };
    push(0, 100);
    let kept = (0..40).filter(|number| last(*number).is_ok()).count();
    assert!(
        (10..25).contains(&kept),
        "{kept} results of 100 kB are kept in 2 MiB"
    );
    let refused = (0..40).find_map(|number| last(number).err());
    assert!(
        refused
            .expect("not all are")
            .contains("may have 2097152 together")
    );
    // Small ones are always given, and give way to nobody.
    push(1000, 10);
    assert!((0..40).all(|number| last(number).is_ok()));
    (1..40).for_each(|number| assert!(database.unregister(&format!("q{number}")).unwrap()));
    push(2000, 1000);
    assert!(last(0).is_ok(), "what others had is given back");
}

#[test]
fn late_tuples_that_are_kept_are_part_of_the_memory_of_their_stream() {
    let database = Database::new();
    let mut definition = StreamDefinition::new("http://e/s");
    definition.memory = 1 << 20;
    database.create_stream("s", definition).unwrap();
    let push = |time: i64, literal: &str| {
        let line = format!("{time}\t<http://e/a> <http://e/b> \"{literal}\" .\n");
        let report = database.push("s", TupleFormat::Lines, None, line.into_bytes());
        report.unwrap().late
    };
    assert_eq!(push(1_000_000_000, "first"), 0);
    for number in 0..20 {
        assert_eq!(push(number, &"x".repeat(10_000)), 1);
    }
    let many = database.stream("s").unwrap().late_bytes;
    assert!((50_000..=1 << 16).contains(&many), "{many}");
    // What would take all of it alone is only counted.
    assert_eq!(push(21, &"x".repeat(1 << 20)), 1);
    let status = database.stream("s").unwrap();
    assert_eq!((status.late, status.late_bytes), (21, many));
    let kept = database.late_tuples("s").unwrap();
    assert!(kept.lines().last().unwrap().starts_with("19\t"));
}

#[test]
fn a_concatenation_of_ordered_values_is_new_only_where_a_value_is() {
    let database = Database::new();
    stream(&database, "s");
    let of = |inner: &str| {
        format!(
            "{PREFIX} SELECT ISTREAM ?x (GROUP_CONCAT(?y; SEPARATOR=' ') AS ?all) \
             FROM NAMED WINDOW :w ON :s [RANGE 400ms STEP 100ms] WHERE {{ {inner} }} GROUP BY ?x"
        )
    };
    let ordered = of("{ SELECT ?x ?y WHERE { WINDOW :w { ?x :p ?y } } ORDER BY ?y }");
    database.register("q", &ordered).unwrap();
    // The same values come again in other orders, before the ones before them expire, and more of others.
    push(
        &database,
        "s",
        &[(10, "x p 3"), (20, "x p 1"), (30, "x p 2"), (40, "z p 7")],
    );
    push(
        &database,
        "s",
        &[(110, "x p 2"), (120, "y p 4"), (130, "x p 3")],
    );
    push(
        &database,
        "s",
        &[(210, "x p 1"), (220, "y p 5"), (230, "x p 3")],
    );
    push(
        &database,
        "s",
        &[(310, "x p 3"), (320, "x p 2"), (330, "x p 1")],
    );
    push(&database, "s", &[(410, "x p 1"), (420, "x p 0")]);
    database.heartbeat("s", 500).unwrap();
    let expected = found(&[
        (100, &["\"1 2 3\"", "\"7\""]),
        (200, &["\"4\""]),
        (300, &["\"4 5\""]),
        (400, &[]),
        (500, &["\"0 1 2 3\""]),
    ]);
    let mut all = results(&database, "q");
    for (_, rows) in &mut all {
        rows.iter_mut().for_each(|row| {
            let (_, text) = row.split_once(' ').expect("two cells");
            *row = text.to_owned();
        });
        rows.sort();
    }
    assert_eq!(all, expected);
}

#[test]
fn results_of_a_construct_are_a_stream_that_others_read() {
    let database = Database::new();
    stream(&database, "s");
    let made = "REGISTER STREAM loud COMPUTED EVERY 100ms AS \
                CONSTRUCT { ?x :loud _:b . _:b :how ?v } \
                FROM STREAM :s [RANGE 100ms STEP 100ms] WHERE { ?x :says ?v FILTER(?v > 5) }";
    database
        .register("make", &format!("{PREFIX}{made}"))
        .unwrap();
    let read = "SELECT ?x (COUNT(DISTINCT ?b) AS ?n) (SUM(?v) AS ?sum) \
                FROM STREAM loud [RANGE 200ms STEP 200ms] \
                WHERE { ?x :loud ?b . ?b :how ?v } GROUP BY ?x";
    database
        .register("read", &format!("{PREFIX}{read}"))
        .unwrap();
    let lines = [
        (10, "a says 6"),
        (20, "a says 1"),
        (120, "a says 7"),
        (250, "b says 9"),
    ];
    push(&database, "s", &lines);
    database.heartbeat("s", 500).unwrap();
    // What is found at 200 is in the windows from 200 on.
    let expected = [(200, &["<a> 1 6"][..]), (400, &["<a> 1 7", "<b> 1 9"])];
    assert_eq!(results(&database, "read"), found(&expected));
    assert!(database.drop_stream("loud").is_err());
    assert!(database.unregister("make").is_err());
    assert!(database.unregister("read").unwrap());
    assert!(database.unregister("make").unwrap());
    assert_eq!(database.stream("loud"), None);
}

#[test]
fn streams_and_queries_come_back_when_a_store_is_opened() {
    let folder = tempfile::tempdir().unwrap();
    let copy = tempfile::tempdir().unwrap();
    let open = |path: &std::path::Path| {
        Database::open_or_create(path, jindou_engine::Config::default()).unwrap()
    };
    let place = folder.path().join("store");
    {
        let database = open(&place);
        stream(&database, "s");
        let made = "REGISTER STREAM made AS CONSTRUCT { ?x :q ?y } \
                    FROM STREAM :s [RANGE 100ms STEP 100ms] WHERE { ?x :p ?y }";
        database.register("z", &format!("{PREFIX}{made}")).unwrap();
        let read = "SELECT ?x FROM STREAM made [RANGE 100ms STEP 100ms] WHERE { ?x :q ?y }";
        database.register("a", &format!("{PREFIX}{read}")).unwrap();
        database.register("b", &format!("{PREFIX}{read}")).unwrap();
        database.set_paused("b", true).unwrap();
        database.backup(&copy.path().join("copy")).unwrap();
    }
    for place in [place, copy.path().join("copy")] {
        let database = open(&place);
        let names = |names: Vec<String>| names.join(" ");
        let streams = database
            .streams()
            .into_iter()
            .map(|stream| stream.name)
            .collect();
        assert_eq!(names(streams), "made s");
        push(&database, "s", &[(10, "x p y"), (110, "x p y")]);
        database.heartbeat("s", 400).unwrap();
        let expected = [(200, &["<x>"][..]), (300, &["<x>"]), (400, &[])];
        assert_eq!(results(&database, "a"), found(&expected));
        assert_eq!(results(&database, "b"), []);
        assert!(database.continuous_query("b").unwrap().paused);
    }
}

#[test]
fn terms_stay_while_only_windows_have_them_and_go_afterwards() {
    let folder = tempfile::tempdir().unwrap();
    let config = jindou_engine::Config::default();
    let database = Database::open_or_create(folder.path(), config).unwrap();
    stream(&database, "s");
    let text =
        format!("{PREFIX}SELECT ?x FROM STREAM :s [RANGE 1s STEP 100ms] WHERE {{ ?x :p ?y }}");
    database.register("q", &text).unwrap();
    let mut begin = 0;
    let mut terms = Vec::new();
    for round in 0..40 {
        let mut lines = Vec::new();
        for tuple in 0..50 {
            lines.push((
                begin + 2 * tuple,
                format!("x{round}_{tuple} p y{round}_{tuple}"),
            ));
        }
        begin += 100;
        let lines: Vec<(i64, &str)> = lines.iter().map(|(time, text)| (*time, &**text)).collect();
        push(&database, "s", &lines);
        database.heartbeat("s", begin).unwrap();
        database.compact().unwrap();
        let all = results(&database, "q");
        let (instant, rows) = all.last().unwrap();
        assert_eq!((*instant, rows.len()), (begin, 50 * (round + 1).min(10)));
        let newest = format!("<x{round}_49>");
        assert!(rows.contains(&newest), "{newest}");
        let statistics = database.statistics();
        terms.push(statistics.vertices);
    }
    let refused = database.renumber_within(None).unwrap_err().to_string();
    assert!(refused.contains("windows of s hold ids"), "{refused}");
    assert!(database.unregister("q").unwrap());
    database.heartbeat("s", begin + 100).unwrap();
    database.renumber_within(None).unwrap();
    // A window has 1,000 terms, and runs are kept until their last tuple is forgotten.
    assert!(terms.iter().all(|terms| *terms < 2_500), "{terms:?}");
}

#[test]
fn variables_range_over_windows_that_have_names() {
    let database = Database::new();
    stream(&database, "a");
    stream(&database, "b");
    let stored = "INSERT DATA { GRAPH <http://e/g> { <http://e/x> <http://e/p> <http://e/z> } }";
    database.update(stored).unwrap();
    let windows = "FROM NAMED WINDOW :w ON :a [RANGE 100ms STEP 100ms] \
                   FROM NAMED WINDOW :v ON :b [RANGE 100ms STEP 100ms] ";
    let text = format!("{PREFIX}SELECT ?w ?x {windows}WHERE {{ WINDOW ?w {{ ?x :p ?w }} }}");
    database.register("same", &text).unwrap();
    let text = format!("{PREFIX}SELECT ?w ?x {windows}WHERE {{ WINDOW ?w {{ ?x :p ?y }} }}");
    database.register("windows", &text).unwrap();
    let graphs = "FROM NAMED STREAM :a [RANGE 100ms STEP 100ms] \
                  FROM STREAM :b [RANGE 100ms STEP 100ms] FROM NAMED :g ";
    let text = format!("{PREFIX}SELECT ?g ?x {graphs}WHERE {{ GRAPH ?g {{ ?x :p ?y }} }}");
    database.register("graphs", &text).unwrap();
    push(&database, "a", &[(10, "x p y"), (20, "x p w")]);
    push(&database, "b", &[(30, "z p y"), (40, "z p w")]);
    for name in ["a", "b"] {
        database.heartbeat(name, 100).unwrap();
    }
    assert_eq!(results(&database, "same"), found(&[(100, &["<w> <x>"])]));
    let rows: &[&str] = &["<v> <z>", "<v> <z>", "<w> <x>", "<w> <x>"];
    assert_eq!(results(&database, "windows"), found(&[(100, rows)]));
    let rows: &[&str] = &["<a> <x>", "<a> <x>", "<g> <x>"];
    assert_eq!(results(&database, "graphs"), found(&[(100, rows)]));
}

#[test]
fn a_stream_may_leap_by_ages() {
    let database = Database::new();
    let mut definition = StreamDefinition::new("http://e/s");
    definition.max_ahead_ms = None;
    assert!(database.create_stream("s", definition).unwrap());
    let text = "SELECT ?x FROM STREAM :s [RANGE 200ms STEP 100ms] WHERE { ?x :p ?y }";
    for name in ["q", "paused"] {
        database.register(name, &format!("{PREFIX}{text}")).unwrap();
    }
    database.set_paused("paused", true).unwrap();
    push(&database, "s", &[(10, "x p y")]);
    let far = 1_000_000_000_000_000;
    push(&database, "s", &[(far + 10, "z p y"), (far + 150, "z p y")]);
    database.heartbeat("s", far + 400).unwrap();
    let mut reader = database.results_of("q", Some(0)).unwrap();
    let mut last = Vec::new();
    while let NextResult::Result(result, _) = reader.next_within(Duration::ZERO) {
        last.push((result.instant_ms, rows(&result)));
    }
    let begin = last.iter().position(|(instant, _)| *instant > far).unwrap();
    let z: &[&str] = &["<z>"];
    let expected = [
        (far + 100, z),
        (far + 200, z),
        (far + 300, z),
        (far + 400, &[]),
    ];
    assert_eq!(last[begin..], found(&expected));
    database.heartbeat("s", i64::MAX).unwrap();
    let status = |name| database.continuous_query(name).unwrap().executions;
    assert!((2_000..2_010).contains(&status("q")), "{}", status("q"));
    assert_eq!(status("paused"), 0);
}

/// Counts how often a task was woken.
#[derive(Default)]
struct Woken(std::sync::atomic::AtomicU64);

impl std::task::Wake for Woken {
    fn wake(self: std::sync::Arc<Self>) {
        self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    }
}

#[test]
fn a_task_that_waits_is_woken_by_a_result_and_by_the_end() {
    use std::task::{Context, Poll, Waker};

    let database = Database::new();
    stream(&database, "s");
    let text = format!("{PREFIX}SELECT ?x FROM STREAM :s [RANGE 100ms] WHERE {{ ?x :p ?y }}");
    database.register("q", &text).unwrap();
    let woken = std::sync::Arc::new(Woken::default());
    let count = || woken.0.load(std::sync::atomic::Ordering::Relaxed);
    let waker = Waker::from(std::sync::Arc::clone(&woken));
    let mut context = Context::from_waker(&waker);
    let mut reader = database.results_of("q", None).unwrap();
    let mut gone = database.results_of("q", None).unwrap();
    for _ in 0..2 {
        assert_eq!(reader.poll_next(&mut context), Poll::Pending);
    }
    assert_eq!(gone.poll_next(&mut context), Poll::Pending);
    drop(gone);
    push(&database, "s", &[(10, "x p y")]);
    assert_eq!(count(), 0);
    database.heartbeat("s", 100).unwrap();
    assert_eq!(count(), 1, "once, and nobody who is gone");
    let Poll::Ready(NextResult::Result(result, 0)) = reader.poll_next(&mut context) else {
        panic!("there is one");
    };
    assert_eq!(result.instant_ms, 100);
    assert_eq!(reader.poll_next(&mut context), Poll::Pending);
    assert!(database.results_of("q", Some(1)).is_ok());
    assert!(
        database.results_of("q", Some(2)).is_err(),
        "it has given one"
    );
    assert!(database.unregister("q").unwrap());
    assert_eq!(count(), 2);
    assert_eq!(
        reader.poll_next(&mut context),
        Poll::Ready(NextResult::Over)
    );
}

#[test]
fn names_of_queries_can_be_written_in_addresses() {
    let database = Database::new();
    stream(&database, "s");
    let text = format!("{PREFIX}SELECT ?x FROM STREAM :s [RANGE 100ms] WHERE {{ ?x :p ?y }}");
    for name in ["", "a b", "a/b", "1"] {
        let error = database.register(name, &text).unwrap_err().to_string();
        assert!(error.contains("no name of a continuous query"), "{error}");
    }
    assert!(database.register("_q-1", &text).unwrap());
}

#[test]
fn graph_with_a_variable_ranges_over_no_graph_that_is_only_named() {
    let database = Database::new();
    let stored = "<http://e/x> <http://e/p> <http://e/y> <http://e/one> .\n\
                  <http://e/x> <http://e/p> <http://e/z> <http://e/other> .\n\
                  <http://e/z> <http://e/q> <http://e/z> <http://e/other> .\n";
    let source = Source::bytes("s", stored.as_bytes()).with_format(Format::NQuads);
    database
        .load(vec![source], &LoadOptions::default(), &Progress::default())
        .unwrap();
    stream(&database, "s");
    let dataset = "FROM STREAM :s [RANGE 100ms] FROM NAMED :one";
    for (name, pattern) in [
        ("pattern", "{ :x :p ?y }"),
        ("path", "{ :x :p+ ?y }"),
        ("optional", "{ ?x :p ?y OPTIONAL { ?y :q ?z } }"),
        ("nullable", "{ :x :p/:q* ?y }"),
    ] {
        let text = format!(
            "{PREFIX}SELECT ?y ?w {dataset} WHERE {{ GRAPH ?g {pattern} GRAPH :other {{ ?w :q ?w }} }}"
        );
        database.register(name, &text).unwrap();
    }
    push(&database, "s", &[(10, "a b c"), (100, "a b c")]);
    for name in ["pattern", "path", "optional", "nullable"] {
        let expected = found(&[(100, &["<y> <z>"])]);
        assert_eq!(results(&database, name), expected, "{name}");
    }
}

#[test]
fn a_long_query_has_a_thread_of_its_own_and_finds_the_same() {
    let long = "SELECT (COUNT(*) AS ?n) (MAX(?x) AS ?last) FROM STREAM :s [RANGE 300ms STEP 100ms] \
                WHERE { ?x :p ?a . ?y :p ?b . ?z :p ?c FILTER(?a <= ?b && ?b != ?c) }";
    let light = "SELECT ?x FROM STREAM :s [RANGE 100ms STEP 100ms] WHERE { ?x :p 7 }";
    let run = |threads: usize| {
        let mut config = jindou_engine::Config::default();
        config.continuous_threads = threads;
        let database = Database::with_config(config);
        stream(&database, "s");
        for (name, text) in [("long", long), ("light", light)] {
            database.register(name, &format!("{PREFIX}{text}")).unwrap();
        }
        let mut reader = database.results_of("long", Some(0)).unwrap();
        for batch in 0..8 {
            let tuple = |n: i64| (100 * batch + n, format!("x{batch}_{n} p {n}"));
            let lines: Vec<(i64, String)> = (0..40).map(tuple).collect();
            let lines: Vec<(i64, &str)> =
                lines.iter().map(|(time, text)| (*time, &**text)).collect();
            push(&database, "s", &lines);
        }
        database.heartbeat("s", 800).unwrap();
        let of_light = results(&database, "light");
        let mut of_long = Vec::new();
        while of_long.len() < 8 {
            match reader.next_within(Duration::from_secs(120)) {
                NextResult::Result(result, 0) => of_long.push((result.instant_ms, rows(&result))),
                other => panic!("{other:?}"),
            }
        }
        (of_light, of_long)
    };
    let (of_light, of_long) = run(0);
    assert_eq!((of_light.len(), of_long.len()), (8, 8));
    for threads in [1, 3] {
        let (with_threads, long_with_threads) = run(threads);
        assert_eq!(long_with_threads, of_long);
        assert!(with_threads.len() <= of_light.len());
    }
}

#[test]
fn a_database_ends_while_a_long_query_is_under_way() {
    let mut config = jindou_engine::Config::default();
    config.continuous_threads = 1;
    let database = Database::with_config(config);
    stream(&database, "s");
    let text = "SELECT (COUNT(*) AS ?n) FROM STREAM :s [RANGE 1s STEP 100ms] \
                WHERE { ?a :p ?b . ?c :p ?d . ?e :p ?f . ?g :p ?h . ?i :p ?j FILTER(?b + ?d + ?f + ?h + ?j = 1) }";
    database.register("q", &format!("{PREFIX}{text}")).unwrap();
    let mut reader = database.results_of("q", Some(0)).unwrap();
    for batch in 0..3 {
        let tuple = |n: i64| (100 * batch + n, format!("x{n} p {n}"));
        let lines: Vec<(i64, String)> = (0..1 + 99 * batch.min(1)).map(tuple).collect();
        let lines: Vec<(i64, &str)> = lines.iter().map(|(time, text)| (*time, &**text)).collect();
        push(&database, "s", &lines);
    }
    let first = reader.next_within(Duration::from_secs(120));
    assert!(matches!(first, NextResult::Result(..)), "{first:?}");
    // The next one has ten thousand million rows to look at, and somebody else has them in hand.
    drop(database);
}
