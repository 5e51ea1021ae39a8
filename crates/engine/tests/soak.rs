//! Is memory bounded over a stream of ever new terms?
//!
//! Each batch brings IRIs and literals that were never there before. Windows, results and the terms
//! themselves have to go again: what is held after each tenth of the batches is compared with what was
//! held after the tenths before. The clock is the test's own, so that no time passes but for the work.
//!
//! A short sample runs always; `JINDOU_BATCHES=1000000 cargo test --release -p jindou-engine --test soak
//! -- --nocapture` is the whole.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jindou_counting::held;
use jindou_engine::{
    Clock, Config, Database, NextResult, Predicates, StreamDefinition, TimeSource, TupleFormat,
};

/// One counter of memory is there for a process.
static ONE: Mutex<()> = Mutex::new(());

/// Batches of the sample.
const SAMPLE: u64 = 5_000;
/// What is held is noted after so many parts of all batches.
const PARTS: u64 = 10;
/// The parts at the beginning fill windows and logs of results, and are not compared.
const FILLING: usize = 4;
/// How often terms are merged, and forgotten, by themselves in a run; beside the end of each part.
const MERGES: u64 = 40;
/// Tuples of a batch, each with a new subject and a new object.
const TUPLES: u64 = 10;
/// Milliseconds of a batch.
const BATCH_MS: i64 = 100;
/// The facts are deleted every so many batches.
const DELETED_EVERY: u64 = 250;
/// What held memory may differ by, in bytes, whatever it is: runs of windows are merged, and terms go, some
/// at a time.
const SLACK: u64 = 128 << 10;
/// Windows need five seconds of tuples, and a run of a minute may hold the last of these.
const MOST_TUPLES: u64 = (5 + 60) * 10 * TUPLES;
/// Each tuple has a new term or two.
const MOST_TERMS: u64 = 2 * MOST_TUPLES;
/// Bytes of a tuple in windows of both kinds, and of a few runs.
const MOST_WINDOW_BYTES: u64 = 40 * MOST_TUPLES + (16 << 10);

/// What is found in five seconds: in each batch five vertices are a chain of their own.
const FOUND: &str = "200";

const GRAPH: &str = "http://e/facts";

/// The number of batches, from the environment or the sample's.
fn batches() -> u64 {
    match std::env::var("JINDOU_BATCHES") {
        Ok(number) => number.parse().expect("JINDOU_BATCHES is a number"),
        Err(_) => SAMPLE,
    }
}

/// A database whose clock stands still until it is set.
struct Soak {
    database: Database,
    now_ms: Arc<AtomicI64>,
    batches: u64,
    /// Bytes that the process held before.
    before: u64,
}

/// What is held after a part.
#[derive(Clone, Copy, Debug)]
struct Held {
    bytes: u64,
    most_bytes: u64,
    terms: u64,
    window_bytes: u64,
}

impl Soak {
    fn new(batches: u64, timeless: Option<Predicates>) -> Self {
        let before = held();
        let now_ms = Arc::new(AtomicI64::new(0));
        let mut config = Config::default();
        config.clock = {
            let now_ms = Arc::clone(&now_ms);
            Clock::new(move || now_ms.load(Relaxed))
        };
        let all_terms = batches * TUPLES * 2 * 40;
        config.merge.term_bytes = all_terms / MERGES;
        let database = Database::with_config(config);
        let mut definition = StreamDefinition::new("http://e/s");
        definition.time = TimeSource::Arrival;
        definition.graph = timeless.is_some().then(|| GRAPH.to_owned());
        definition.timeless = timeless;
        assert!(database.create_stream("s", definition).unwrap());
        for (name, text) in [
            // Overlapping windows, whose solutions are kept.
            (
                "joined",
                "SELECT (COUNT(?text) AS ?n) \
                 FROM NAMED WINDOW <http://e/w> ON <http://e/s> [RANGE 5s STEP 100ms] \
                 WHERE { WINDOW <http://e/w> { ?a <http://e/next> ?b . ?b <http://e/says> ?text } }",
            ),
            (
                "counted",
                "SELECT (COUNT(*) AS ?n) FROM STREAM <http://e/s> [RANGE 1s STEP 100ms] \
                 WHERE { ?s ?p ?o }",
            ),
            (
                "last",
                "SELECT ISTREAM ?s FROM STREAM <http://e/s> [TRIPLES 40 STEP 10] \
                 WHERE { ?s <http://e/says> ?o }",
            ),
        ] {
            let registered = database.register(name, text);
            registered.unwrap_or_else(|error| panic!("{error}: {text}"));
        }
        Self {
            database,
            now_ms,
            batches,
            before,
        }
    }

    /// A batch: a chain of new vertices, each of which says something new.
    fn push(&self, batch: u64) {
        self.now_ms.store(batch as i64 * BATCH_MS, Relaxed);
        let mut text = String::new();
        for tuple in 0..TUPLES / 2 {
            let number = batch * TUPLES + tuple;
            let next = number + 1;
            writeln!(
                text,
                "<http://e/v/{number}> <http://e/next> <http://e/v/{next}> .\n\
                 <http://e/v/{number}> <http://e/says> \"what {number} says\" ."
            )
            .unwrap();
        }
        let format = TupleFormat::from_media_type("application/n-triples").unwrap();
        let report = self.database.push("s", format, None, text.into_bytes());
        let report = report.unwrap();
        assert_eq!((report.accepted, report.late), (TUPLES, 0));
        self.now_ms.store((batch as i64 + 1) * BATCH_MS, Relaxed);
        self.database.tick().unwrap();
    }

    /// Runs all batches, and notes what is held after each part of them.
    fn run(&self, mut each: impl FnMut(&Database, u64)) -> Vec<Held> {
        let mut noted = Vec::new();
        let part = (self.batches / PARTS).max(1);
        let mut most_bytes = 0;
        for batch in 0..part * PARTS {
            self.push(batch);
            each(&self.database, batch);
            most_bytes = most_bytes.max(held());
            if (batch + 1) % part == 0 {
                // What is in the background ends first, and forgets all that nothing uses.
                self.database.compact().unwrap();
                self.database.compact().unwrap();
                noted.push(self.held(std::mem::take(&mut most_bytes)));
                println!("{} batches: {:?}", batch + 1, noted[noted.len() - 1]);
            }
        }
        noted
    }

    fn held(&self, most_bytes: u64) -> Held {
        let figures = self.database.statistics();
        let stream = self.database.stream("s").unwrap();
        Held {
            bytes: held() - self.before,
            most_bytes: most_bytes - self.before,
            terms: figures.vertices + figures.dictionary_literals,
            window_bytes: stream.window_bytes + stream.waiting_bytes + stream.late_bytes,
        }
    }

    /// The number that a query found last.
    fn last_number(&self, name: &str) -> String {
        let mut results = self.database.results_of(name, Some(0)).unwrap();
        let mut number = Vec::new();
        while let NextResult::Result(result, _) = results.next_within(Duration::ZERO) {
            let rows = result.answer.as_ref().unwrap().rows().unwrap();
            number.clear();
            for cell in rows.iter().flatten().flatten() {
                jindou_engine::results::write_term(&mut number, cell, true);
            }
        }
        String::from_utf8(number).unwrap()
    }
}

/// What is held does not grow: no later part holds more than those before it, but for a share.
#[track_caller]
fn assert_level(noted: &[Held]) {
    let (before, after) = noted[FILLING..].split_at((noted.len() - FILLING) / 2);
    let most = |part: &[Held]| part.iter().map(|held| held.bytes).max().unwrap();
    let (before, after) = (most(before), most(after));
    println!("{before} bytes at most, and {after} later");
    assert!(after <= before + before / 20 + SLACK, "{noted:#?}");
    let most = |part: &[Held]| part.iter().map(|held| held.most_bytes).max().unwrap();
    let (between_before, between_after) = (most(&noted[..FILLING]), most(&noted[FILLING..]));
    // Merges are due by what came, and come a little sooner or later.
    assert!(between_after <= 2 * between_before, "{noted:#?}");
    for held in noted {
        assert!(held.terms <= MOST_TERMS, "{held:?}");
        assert!(held.window_bytes <= MOST_WINDOW_BYTES, "{held:?}");
    }
}

#[test]
fn ever_new_terms_of_timing_tuples_leave_nothing_behind() {
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let soak = Soak::new(batches(), None);
    let noted = soak.run(|_, _| ());
    assert_eq!(soak.last_number("joined"), FOUND);
    assert_level(&noted);
}

#[test]
fn facts_that_are_deleted_again_leave_nothing_behind() {
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let timeless = Predicates::Some(vec!["http://e/says".to_owned()]);
    let soak = Soak::new(batches(), Some(timeless));
    let noted = soak.run(|database, batch| {
        if (batch + 1) % DELETED_EVERY == 0 {
            let stored = database.quad_counts().named_quads;
            assert_eq!(stored, DELETED_EVERY * TUPLES / 2);
            let text = format!("CLEAR GRAPH <{GRAPH}>");
            database.update(&text).unwrap();
        }
    });
    assert_eq!(soak.last_number("joined"), FOUND);
    assert_level(&noted);
}
