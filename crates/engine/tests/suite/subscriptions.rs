//! A query without windows tells of each transaction what the full answers before and after it differ
//! in.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use std::time::Duration;

use jindou_engine::ingest::{Progress, Source};
use jindou_engine::results::{TermText, write_term};
use jindou_engine::{
    Answer, Clock, Config, ContinuousResult, Database, EngineError, LoadOptions, MergePolicy,
    NextResult, Predicates, QueryResults, Rows, StreamDefinition, TupleFormat, UpdateOptions,
};
use oxrdf::NamedNode;

const PREFIX: &str = "PREFIX : <http://e/> ";

/// Rows, each with how often it is there.
type Multiset = BTreeMap<String, i64>;

fn config() -> Config {
    let mut config = Config::default();
    config.merge = MergePolicy::never();
    config
}

fn line(cells: Vec<Option<TermText<'_>>>) -> String {
    let mut out = Vec::new();
    for cell in cells {
        if let Some(term) = cell {
            write_term(&mut out, term, true);
        }
        out.push(b' ');
    }
    String::from_utf8(out).unwrap()
}

fn of_rows(rows: &Rows) -> Multiset {
    let mut all = Multiset::new();
    for row in rows.iter() {
        *all.entry(line(row)).or_default() += 1;
    }
    all
}

fn of_answer(answer: &Answer) -> Multiset {
    match answer {
        Answer::Boolean(value) => Multiset::from([(value.to_string(), 1)]),
        answer => of_rows(answer.rows().unwrap()),
    }
}

/// What a query finds now.
fn ask(database: &Database, query: &str) -> Multiset {
    let mut all = Multiset::new();
    let mut add = |row: String| *all.entry(row).or_default() += 1;
    match database.query(query).unwrap() {
        QueryResults::Boolean(value) => add(value.to_string()),
        QueryResults::Solutions(mut solutions) => {
            while let Some(batch) = solutions.next_batch().unwrap() {
                let columns: Vec<_> = batch.columns().collect();
                let mut decoder = solutions.decoder();
                for row in 0..batch.rows() {
                    let mut out = Vec::new();
                    for column in &columns {
                        if let Some(term) = decoder.text(column[row]) {
                            write_term(&mut out, term, true);
                        }
                        out.push(b' ');
                    }
                    add(String::from_utf8(out).unwrap());
                }
            }
        }
        QueryResults::Graph(mut graph) => {
            while let Some(batch) = graph.next_batch().unwrap() {
                let mut decoder = graph.decoder();
                for triple in &batch {
                    let mut out = Vec::new();
                    for id in triple {
                        write_term(&mut out, decoder.text(*id).unwrap(), true);
                        out.push(b' ');
                    }
                    add(String::from_utf8(out).unwrap());
                }
            }
        }
    }
    all
}

/// What the first has more.
fn without(these: &Multiset, those: &Multiset) -> Multiset {
    let more = these.iter().map(|(row, count)| {
        let more = count - those.get(row).unwrap_or(&0);
        (row.clone(), more)
    });
    more.filter(|(_, more)| *more > 0).collect()
}

/// All results after one.
fn results(database: &Database, name: &str, after: u64) -> Vec<Arc<ContinuousResult>> {
    let mut reader = database.results_of(name, Some(after)).unwrap();
    let mut all = Vec::new();
    while let NextResult::Result(result, missed) = reader.next_within(Duration::ZERO) {
        assert_eq!(missed, 0);
        assert!(result.windows.is_empty());
        all.push(result);
    }
    all
}

fn update(database: &Database, text: &str) -> u64 {
    let report = database.update(&format!("{PREFIX}{text}")).unwrap();
    report.snapshot.0
}

/// What a subscription gives of each change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Gives {
    Both,
    Added,
    Removed,
    All,
}

/// Queries, each with the words that go behind its form.
const QUERIES: &[(&str, &str)] = &[
    ("SELECT", "?s ?o { ?s :p1 ?o }"),
    ("SELECT", "?o { ?s :p1 ?o }"),
    ("SELECT", "?a ?c { ?a :p1 ?b . ?b :p2 ?c }"),
    ("SELECT", "?a ?c { ?a :p1 ?b OPTIONAL { ?b :p2 ?c } }"),
    ("SELECT", "?p (COUNT(*) AS ?n) { ?s ?p ?o } GROUP BY ?p"),
    (
        "SELECT",
        "DISTINCT ?o { ?s :p1|:p3 ?o FILTER NOT EXISTS { ?o :p2 ?x } }",
    ),
    ("SELECT", "?a ?b { ?a :p1+ ?b }"),
    ("SELECT", "?b { :n1 :p1* ?b }"),
    ("SELECT", "?s ?o { ?s :p2 ?o MINUS { ?s :p1 ?o } }"),
    ("SELECT", "?g ?s { GRAPH ?g { ?s :p1 ?o } }"),
    ("SELECT", "?g { GRAPH ?g { } }"),
    ("SELECT", "?s ?o FROM :g1 { ?s :p1 ?o }"),
    ("SELECT", "?s ?o { GRAPH :g2 { ?s :p2 ?o } }"),
    ("SELECT", "?s { ?s a :n1 }"),
    ("SELECT", "?s ?o { ?s :p1 ?o } ORDER BY ?s ?o LIMIT 3"),
    ("SELECT", "?o { VALUES ?o { 1 2 } ?s :p3 ?o }"),
    (
        "CONSTRUCT",
        "{ ?o :of ?s } WHERE { ?s :p1 ?o FILTER(ISIRI(?o)) }",
    ),
    ("ASK", "{ :n1 :p1 :n2 }"),
];

struct Subscribed {
    name: String,
    query: String,
    gives: Gives,
    before: Multiset,
    sequence: u64,
}

fn subscribe(database: &Database) -> Vec<Subscribed> {
    let mut all = Vec::new();
    for (number, (form, rest)) in QUERIES.iter().enumerate() {
        let kinds = match *form {
            "ASK" => &[(Gives::Both, "")][..],
            _ => &[
                (Gives::Both, ""),
                (Gives::Added, " ISTREAM"),
                (Gives::Removed, " DSTREAM"),
                (Gives::All, " RSTREAM"),
            ],
        };
        for (gives, word) in kinds {
            let name = format!("q{number}_{gives:?}");
            database
                .register(&name, &format!("{PREFIX}{form}{word} {rest}"))
                .unwrap_or_else(|error| panic!("{form} {rest}: {error}"));
            all.push(Subscribed {
                name,
                query: format!("{PREFIX}{form} {rest}"),
                gives: *gives,
                before: Multiset::new(),
                sequence: 0,
            });
        }
    }
    all
}

impl Subscribed {
    /// Checks what came after a transaction.
    fn check(&mut self, database: &Database, snapshot: u64, context: &str) -> bool {
        let now = ask(database, &self.query);
        let is_first = self.sequence == 0;
        let (added, removed) = (without(&now, &self.before), without(&self.before, &now));
        let has_changed = !added.is_empty() || !removed.is_empty();
        let is_boolean = self.query.contains(" ASK");
        let expected = match self.gives {
            Gives::Both if is_boolean => has_changed.then(|| (now.clone(), None)),
            Gives::Both => (has_changed || is_first).then_some((added, Some(removed))),
            Gives::Added => (!added.is_empty() || is_first).then_some((added, None)),
            Gives::Removed => (!removed.is_empty() || is_first).then_some((removed, None)),
            Gives::All => (has_changed || is_first).then(|| (now.clone(), None)),
        };
        self.before = now;
        let found = results(database, &self.name, self.sequence);
        let given: Vec<_> = found
            .iter()
            .map(|result| {
                assert_eq!(result.snapshot, snapshot, "{context}");
                let answer = of_answer(result.answer.as_ref().unwrap());
                (answer, result.removed.as_ref().map(of_rows))
            })
            .collect();
        let expected: Vec<_> = expected.into_iter().collect();
        assert_eq!(
            given, expected,
            "{} {:?} after {context}",
            self.query, self.gives
        );
        self.sequence += found.len() as u64;
        has_changed
    }
}

struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }

    fn quad(&mut self) -> String {
        let object = match self.below(3) {
            0 => self.below(4).to_string(),
            _ => format!(":n{}", self.below(5)),
        };
        let predicate = match self.below(6) {
            0 => "a".to_owned(),
            number => format!(":p{}", 1 + number % 4),
        };
        let triple = format!(":n{} {predicate} {object}", self.below(5));
        match self.below(4) {
            0 => format!("GRAPH :g1 {{ {triple} }}"),
            1 => format!("GRAPH :g2 {{ {triple} }}"),
            _ => format!("{triple} ."),
        }
    }

    fn request(&mut self) -> String {
        let quads: Vec<String> = (0..=self.below(4)).map(|_| self.quad()).collect();
        let quads = quads.join(" ");
        let (one, other) = (1 + self.below(4), 1 + self.below(4));
        match self.below(14) {
            0..6 => format!("INSERT DATA {{ {quads} }}"),
            6..10 => format!("DELETE DATA {{ {quads} }}"),
            10 => format!(
                "DELETE {{ ?s :p{one} ?o }} INSERT {{ ?s :p{other} ?o }} WHERE {{ ?s :p{one} ?o }}"
            ),
            11 => format!("DELETE WHERE {{ GRAPH :g1 {{ ?s :p{one} ?o }} }}"),
            12 => format!("CLEAR SILENT GRAPH :g{}", self.below(3)),
            _ => format!("DELETE DATA {{ {quads} }} ; INSERT DATA {{ {quads} }}"),
        }
    }
}

#[test]
fn each_transaction_gives_the_difference_of_the_answers_around_it() {
    for seed in 0..3 {
        let database = Database::with_config(config());
        let mut random = Random(seed);
        for _ in 0..5 {
            update(&database, &random.request());
        }
        let mut subscribed = subscribe(&database);
        let mut changes = 0;
        let number = database.snapshot_number().0;
        for one in &mut subscribed {
            // One that begins empty says so, but ASK begins with its answer.
            one.check(&database, number, "its registration");
        }
        for round in 0..70 {
            let request = random.request();
            let snapshot = update(&database, &request);
            for one in &mut subscribed {
                changes += usize::from(one.check(&database, snapshot, &request));
            }
            match round % 20 {
                4 => drop(database.compact().unwrap()),
                9 => drop(database.fold().unwrap()),
                14 => database.renumber_within(None).unwrap(),
                19 => {
                    let data = Source::bytes(
                        "d.ttl",
                        "@prefix : <http://e/> . :n1 :p1 :n2 , :new . :n2 :p2 1 .",
                    );
                    database
                        .load(vec![data], &LoadOptions::default(), &Progress::default())
                        .unwrap();
                    let graph = NamedNode::new_unchecked("http://e/g1");
                    let number = database.snapshot_number().0;
                    for one in &mut subscribed {
                        one.check(&database, number, "a load");
                    }
                    let data = Source::bytes("d.ttl", "@prefix : <http://e/> . :n3 :p1 :n4 , 2 .");
                    let options = UpdateOptions::default();
                    database
                        .replace_graph(Some(&graph), vec![data], &options)
                        .unwrap();
                    let number = database.snapshot_number().0;
                    for one in &mut subscribed {
                        one.check(&database, number, "a graph that was put");
                    }
                }
                _ => {}
            }
        }
        assert!(changes > 300, "{changes}");
    }
}

#[test]
fn what_the_query_does_not_read_costs_no_evaluation() {
    let database = Database::with_config(config());
    database
        .register(
            "q",
            &format!("{PREFIX}SELECT * {{ ?a :p ?b . ?b :q|^:r ?c }}"),
        )
        .unwrap();
    database
        .register(
            "g",
            &format!("{PREFIX}SELECT * {{ GRAPH :g {{ ?a :p ?b }} }}"),
        )
        .unwrap();
    let executions = |name: &str| database.continuous_query(name).unwrap().executions;
    assert_eq!([executions("q"), executions("g")], [1, 1]);
    for text in [
        "INSERT DATA { :a :other :b }",
        "INSERT DATA { :p :q2 :r2 . GRAPH :h { :a :other :b } }",
        "INSERT DATA { GRAPH :g { :a :q :b } }",
        "DELETE DATA { :a :p :b }",
        "CREATE GRAPH :empty",
    ] {
        update(&database, text);
        database.compact().unwrap();
        assert_eq!([executions("q"), executions("g")], [1, 1], "{text}");
    }
    // What is read and changes no row.
    update(&database, "INSERT DATA { :a :p :b }");
    assert_eq!([executions("q"), executions("g")], [2, 1]);
    assert_eq!(results(&database, "q", 1), []);
    update(
        &database,
        "INSERT DATA { :c :r :b . GRAPH :g { :a :p :b } }",
    );
    assert_eq!([executions("q"), executions("g")], [3, 2]);
    assert_eq!(results(&database, "q", 1).len(), 1);
    assert_eq!(results(&database, "g", 1).len(), 1);
}

#[test]
fn transactions_of_many_writers_are_told_one_by_one() {
    let directory = tempfile::tempdir().unwrap();
    let database = Database::open_or_create(directory.path(), config()).unwrap();
    database
        .register("q", &format!("{PREFIX}SELECT ?w ?n {{ ?w :did ?n }}"))
        .unwrap();
    std::thread::scope(|scope| {
        for writer in 0..4 {
            let database = &database;
            scope.spawn(move || {
                for number in 0..50 {
                    update(
                        database,
                        &format!("INSERT DATA {{ :w{writer} :did {number} . :w :last {number} }}"),
                    );
                }
            });
        }
        let database = &database;
        scope.spawn(move || {
            for _ in 0..5 {
                database.compact().unwrap();
            }
        });
    });
    let told = results(&database, "q", 1);
    assert_eq!(told.len(), 200);
    assert!(told.is_sorted_by(|a, b| a.snapshot < b.snapshot));
    for result in &told {
        let answer = result.answer.as_ref().unwrap();
        assert_eq!(of_answer(answer).len(), 1, "one transaction");
        assert!(result.removed.as_ref().unwrap().is_empty());
    }
}

#[test]
fn absorbed_batches_are_transactions() {
    let now = Arc::new(AtomicI64::new(77));
    let mut config = config();
    let clock = Arc::clone(&now);
    config.clock = Clock::new(move || clock.load(Relaxed));
    let database = Database::with_config(config);
    let mut definition = StreamDefinition::new("http://e/s");
    definition.timeless = Some(Predicates::Some(vec!["http://e/fact".to_owned()]));
    definition.graph = Some("http://e/g".to_owned());
    database.create_stream("s", definition).unwrap();
    database
        .register(
            "q",
            &format!("{PREFIX}SELECT ?a {{ GRAPH :g {{ ?a :fact ?b }} }}"),
        )
        .unwrap();
    now.store(88, Relaxed);
    let push = |text: &str| {
        let text = text.as_bytes().to_vec();
        database.push("s", TupleFormat::Lines, None, text).unwrap();
    };
    push(
        "10\t<http://e/a> <http://e/fact> <http://e/b> .\n20\t<http://e/c> <http://e/fact> <http://e/d> .\n",
    );
    push("110\t<http://e/a> <http://e/other> <http://e/new> .\n");
    push("210\t<http://e/e> <http://e/fact> <http://e/f> .\n");
    database.heartbeat("s", 300).unwrap();
    let told = results(&database, "q", 0);
    let rows: Vec<usize> = told
        .iter()
        .map(|one| one.answer.as_ref().unwrap().rows().unwrap().len())
        .collect();
    assert_eq!(rows, [0, 2, 1]);
    let instants: Vec<i64> = told.iter().map(|one| one.instant_ms).collect();
    assert_eq!(instants, [77, 88, 88]);
}

#[test]
fn a_pause_ends_with_one_difference() {
    let database = Database::with_config(config());
    database
        .register("q", &format!("{PREFIX}SELECT ?a {{ ?a :p ?b }}"))
        .unwrap();
    database.set_paused("q", true).unwrap();
    update(&database, "INSERT DATA { :a :p 1 }");
    update(&database, "INSERT DATA { :b :p 1 } ");
    update(&database, "DELETE DATA { :a :p 1 }");
    assert_eq!(results(&database, "q", 1), []);
    database.set_paused("q", false).unwrap();
    let told = results(&database, "q", 1);
    assert_eq!(told.len(), 1);
    let added = of_answer(told[0].answer.as_ref().unwrap());
    assert_eq!(added.keys().collect::<Vec<_>>(), ["<http://e/b> "]);
    update(&database, "DELETE DATA { :b :p 1 }");
    assert_eq!(results(&database, "q", 2).len(), 1);
    database.unregister("q").unwrap();
    update(&database, "INSERT DATA { :b :p 1 }");
}

#[test]
fn subscriptions_come_back_and_begin_anew() {
    let directory = tempfile::tempdir().unwrap();
    let query = format!("{PREFIX}SELECT ?a {{ ?a :p ?b }}");
    {
        let database = Database::open_or_create(directory.path(), config()).unwrap();
        database.register("q", &query).unwrap();
        update(&database, "INSERT DATA { :a :p 1 . :b :p 1 }");
        assert_eq!(results(&database, "q", 0).len(), 2);
    }
    let database = Database::open_or_create(directory.path(), config()).unwrap();
    let first = results(&database, "q", 0);
    assert_eq!(first.len(), 1);
    assert_eq!(
        of_answer(first[0].answer.as_ref().unwrap()),
        ask(&database, &query)
    );
    update(&database, "DELETE DATA { :a :p 1 }");
    let told = results(&database, "q", 1);
    assert_eq!(told[0].removed.as_ref().map(Rows::len), Some(1));
}

#[test]
fn a_subscription_is_explained_by_what_it_reads() {
    let database = Database::new();
    database
        .register("q", &format!("{PREFIX}SELECT ?a {{ ?a :p/:q ?b }}"))
        .unwrap();
    let text = database.explain_continuous("q").unwrap().unwrap();
    assert!(
        text.starts_with("computed after each transaction that changes quads"),
        "{text}"
    );
    assert!(text.contains("<http://e/p> <http://e/q>"), "{text}");
    database.register("all", "SELECT * { ?s ?p ?o }").unwrap();
    let text = database.explain_continuous("all").unwrap().unwrap();
    assert!(
        text.starts_with("computed after each transaction that changes any quad"),
        "{text}"
    );
    let status = database.continuous_query("q").unwrap();
    assert_eq!((status.executions, status.streams.len()), (1, 0));
}

#[test]
fn what_subscriptions_cannot_do_is_refused_by_name() {
    let database = Database::new();
    for (text, part) in [
        (
            "REGISTER QUERY q COMPUTED EVERY 1s AS SELECT * { ?s ?p ?o }",
            "COMPUTED EVERY",
        ),
        (
            "REGISTER STREAM q AS CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o }",
            "REGISTER STREAM",
        ),
        ("SELECT * { SERVICE <http://e/> { ?s ?p ?o } }", "SERVICE"),
    ] {
        let refused = database.register("q", text).unwrap_err();
        assert!(
            matches!(refused, EngineError::Unsupported { .. }),
            "{refused}"
        );
        assert!(refused.to_string().contains(part), "{refused}");
    }
    assert!(database.continuous_queries().is_empty());
}
