//! Do readers and the end agree with one transaction after another, while many threads write and
//! merges run?
//!
//! Each writer owns a subject, a graph and a mark, and replaces or removes them in transactions of
//! several quads; all share one counter. Readers check on every snapshot what each transaction
//! leaves whole. What a writer does follows from `JINDOU_SEED` alone, so that the end is known;
//! the order in which the writers' transactions fall is the scheduler's.

use jindou_conformance::answer::Answer;
use jindou_conformance::cases::setting;
use jindou_conformance::contents::{quads, row_of};
use jindou_conformance::engines::{ask, settings};
use jindou_conformance::random::Random;
use jindou_conformance::random_update::{quads_of, update_oracle};
use jindou_conformance::update_differential::half;
use jindou_engine::{Config, Database, Fsync, MergePolicy};
use oxigraph::store::Store;
use oxrdf::Term;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

const PREFIX: &str = "PREFIX : <http://example.org/>";
const WRITERS: usize = 4;
const READERS: usize = 2;
const DEFAULT_ROUNDS: u64 = 60;
/// Quads that each transaction of a writer leaves of its mark, if any.
const MARKS: usize = 5;

/// What a writer asks for in one round: a request of its own things, which commutes with those of
/// the others.
fn request(random: &mut Random, writer: usize, round: u64) -> String {
    let (subject, graph) = (format!(":w{writer}"), format!(":g{writer}"));
    let marks = |round: u64| -> String {
        (0..MARKS)
            .map(|part| format!("{subject} :mark{part} {round} . "))
            .collect()
    };
    let clear = format!("DELETE {{ {subject} ?p ?o }} WHERE {{ {subject} ?p ?o }}");
    let count = "DELETE { :counter :value ?n } INSERT { :counter :value ?m } \
                 WHERE { :counter :value ?n BIND(?n + 1 AS ?m) }";
    let change = match random.below(6) {
        // All marks of one round.
        0..=2 => format!("{clear}; INSERT DATA {{ {} }}", marks(round)),
        // No mark.
        3 => clear,
        // The graph holds what the subject does, and a class of its own comes or goes.
        4 => format!(
            "{clear}; INSERT DATA {{ {} {subject} a :C{writer} }}; \
             INSERT {{ GRAPH {graph} {{ {subject} ?p ?o }} }} WHERE {{ {subject} ?p ?o }}",
            marks(round)
        ),
        _ => format!(
            "DROP SILENT GRAPH {graph}; \
             INSERT DATA {{ GRAPH {graph} {{ :v{round} :p{writer} {subject}, {round} }} }}"
        ),
    };
    format!("{PREFIX} {change}; {count}")
}

/// What every snapshot holds.
fn check(database: &Database, counted: &mut i64) {
    let query = format!(
        "{PREFIX} SELECT ?s ?p ?o {{ ?s ?p ?o FILTER(STRSTARTS(STR(?p), STR(:mark)) || ?p = :value) }}"
    );
    let Ok(Answer::Solutions(table)) = ask(database, &query, None) else {
        panic!("a query fails while others write");
    };
    let mut marks: BTreeMap<String, (usize, BTreeSet<String>)> = BTreeMap::new();
    let mut counters = Vec::new();
    for row in table.rows {
        let [Some(subject), Some(predicate), Some(Term::Literal(value))] = row.as_slice() else {
            panic!("{row:?} is no mark");
        };
        if predicate.to_string().ends_with("/value>") {
            counters.push(value.value().parse::<i64>().expect("a number"));
            continue;
        }
        let (count, rounds) = marks.entry(subject.to_string()).or_default();
        *count += 1;
        rounds.insert(value.value().to_owned());
    }
    assert_eq!(counters.len(), 1, "counters in one snapshot: {counters:?}");
    assert!(
        counters[0] >= *counted,
        "the counter went from {counted} back to {}",
        counters[0]
    );
    *counted = counters[0];
    for (subject, (count, rounds)) in marks {
        assert!(
            count == MARKS && rounds.len() == 1,
            "half a transaction of {subject}: {count} marks of the rounds {rounds:?}"
        );
    }
}

fn write(database: &Database, seed: u64, writer: usize, rounds: u64) {
    let mut random = Random::new(seed + writer as u64);
    let mut counted = 0;
    for round in 0..rounds {
        let text = request(&mut random, writer, round);
        database
            .update(&text)
            .unwrap_or_else(|error| panic!("{error}\n{text}"));
        // It sees what it wrote, and what others wrote before.
        let before = counted;
        check(database, &mut counted);
        assert!(counted > before, "a writer does not see its transaction");
    }
}

fn live(database: &Database, seed: u64, rounds: u64) {
    let begin = format!("{PREFIX} INSERT DATA {{ :counter :value 0 }}");
    database.update(&begin).expect("an update");
    let writing = AtomicUsize::new(WRITERS);
    thread::scope(|scope| {
        for writer in 0..WRITERS {
            let writing = &writing;
            scope.spawn(move || {
                // Counted down when it panics as well: readers would wait for ever.
                let _end = CountDown(writing);
                write(database, seed, writer, rounds);
            });
        }
        for _ in 0..READERS {
            scope.spawn(|| {
                let mut counted = 0;
                while writing.load(Ordering::Acquire) > 0 {
                    check(database, &mut counted);
                }
            });
        }
        scope.spawn(|| {
            for round in 0.. {
                if writing.load(Ordering::Acquire) == 0 {
                    break;
                }
                // Of half of the predicates, and of the others sooner or later.
                let merged = database.compact_some(&half(seed.wrapping_add(round)));
                merged.expect("a merge");
                database.checkpoint().expect("a checkpoint");
                if round % 4 == 3 {
                    database.compact().expect("a merge");
                }
            }
        });
    });
    compare_with_one_after_another(database, &begin, seed, rounds);
}

struct CountDown<'a>(&'a AtomicUsize);

impl Drop for CountDown<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Release);
    }
}

fn compare_with_one_after_another(database: &Database, begin: &str, seed: u64, rounds: u64) {
    let store = Store::new().expect("a store in memory");
    update_oracle(&store, begin).expect("an update");
    for writer in 0..WRITERS {
        let mut random = Random::new(seed + writer as u64);
        for round in 0..rounds {
            update_oracle(&store, &request(&mut random, writer, round)).expect("an update");
        }
    }
    let shown = |row: Vec<Option<Term>>| format!("{row:?}");
    let expected: BTreeSet<String> = quads_of(&store)
        .iter()
        .map(|quad| shown(row_of(quad)))
        .collect();
    let actual: BTreeSet<String> = quads(database)
        .expect("a query")
        .into_iter()
        .map(shown)
        .collect();
    assert_eq!(actual, expected, "seed {seed}");
}

fn config(changes: u64) -> Config {
    let mut config = settings();
    config.threads = 2;
    config.durability.fsync = Fsync::Never;
    config.merge = MergePolicy::never();
    config.merge.changes = changes;
    config.merge.log_bytes = 4_000;
    config
}

#[test]
fn every_snapshot_in_memory_holds_whole_transactions() {
    let (seed, rounds) = (
        setting("JINDOU_SEED", 1),
        setting("JINDOU_CASES", DEFAULT_ROUNDS),
    );
    println!("seed {seed}, {WRITERS} writers of {rounds} transactions");
    live(&Database::with_config(config(50)), seed, rounds);
}

#[test]
fn every_snapshot_of_a_store_holds_whole_transactions_and_the_last_one_comes_back() {
    let (seed, rounds) = (
        setting("JINDOU_SEED", 2),
        setting("JINDOU_CASES", DEFAULT_ROUNDS),
    );
    println!("seed {seed}, {WRITERS} writers of {rounds} transactions");
    let folder = tempfile::tempdir().expect("a folder");
    let location = folder.path().join("store");
    // The background does not merge, so that nothing keeps the directory; the test's threads do.
    let mut settings = config(50);
    settings.merge = MergePolicy::never();
    let database = Database::open_or_create(&location, settings.clone()).expect("a store");
    live(&database, seed, rounds);
    let before = quads(&database).expect("a query");
    drop(database);
    let database = Database::open(&location, settings).expect("a store");
    let shown = |rows: Vec<Vec<Option<Term>>>| -> BTreeSet<String> {
        rows.into_iter().map(|row| format!("{row:?}")).collect()
    };
    assert_eq!(shown(quads(&database).expect("a query")), shown(before));
}
