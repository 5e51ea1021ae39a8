//! A source that sends again what was not acknowledged, a process that is killed at random operations on
//! its files, and a consumer that drops what it has seen: does it see what it would have seen without
//! any kill, each result once?

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use jindou_engine::{Database, EngineError, Producer, PushReport, QueryResults, TupleFormat};

use super::mortal::Life;
use super::{config, durable, environment, results, with_facts};

/// What the source does with one store.
const STEPS: u64 = 60;
/// And where it is killed at each operation in turn.
const FEW_STEPS: u64 = 14;
/// Facts of each push.
const FACTS: u64 = 3;
/// A store is left after so many kills.
const KILLS_OF_A_STORE: u64 = 12;

const WINDOWS: [(&str, &str); 7] = [
    (
        "all",
        "PREFIX : <http://e/> REGISTER QUERY counts AS SELECT ?x (COUNT(*) AS ?n) \
         FROM NAMED WINDOW :w ON :s [RANGE 700ms STEP 200ms] \
         WHERE { WINDOW :w { ?x ?p ?y } } GROUP BY ?x",
    ),
    (
        "new",
        "PREFIX : <http://e/> REGISTER ISTREAM :new AS SELECT ?x ?y \
         FROM NAMED WINDOW :w ON :s [RANGE 500ms STEP 100ms] WHERE { WINDOW :w { ?x :seen ?y } }",
    ),
    (
        "old",
        "PREFIX : <http://e/> REGISTER DSTREAM :old AS SELECT ?x ?z \
         FROM NAMED WINDOW :w ON :s [RANGE 600ms STEP 300ms] \
         FROM NAMED WINDOW :v ON :r [RANGE 900ms STEP 300ms] \
         WHERE { WINDOW :w { ?x :seen ?y } WINDOW :v { ?y :is ?z } }",
    ),
    (
        "made",
        "PREFIX : <http://e/> REGISTER STREAM made AS CONSTRUCT { ?x :pair ?z } \
         FROM STREAM :s [RANGE 400ms STEP 200ms] WHERE { ?x :seen ?z }",
    ),
    (
        "read",
        "PREFIX : <http://e/> REGISTER QUERY pairs AS SELECT ?x (COUNT(DISTINCT ?z) AS ?n) \
         FROM STREAM made [RANGE 1s STEP 400ms] WHERE { ?x :pair ?z } GROUP BY ?x",
    ),
    (
        "last",
        "PREFIX : <http://e/> REGISTER ISTREAM :last AS SELECT ?x ?y \
         FROM NAMED WINDOW :w ON :s [RANGE TRIPLES 9 STEP 4] WHERE { WINDOW :w { ?x :seen ?y } }",
    ),
    (
        "both",
        "PREFIX : <http://e/> REGISTER QUERY both AS SELECT ?x ?z \
         FROM NAMED WINDOW :w ON :s [RANGE 600ms STEP 300ms] \
         FROM NAMED WINDOW :v ON :r [RANGE TRIPLES 3] \
         WHERE { WINDOW :w { ?x :seen ?y } WINDOW :v { ?y :is ?z } }",
    ),
];

/// A small generator of random numbers (splitmix64).
#[derive(Clone, Debug)]
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}

/// What the source does, each as a function of its number.
#[derive(Debug)]
enum Step {
    Push(&'static str, String),
    Heartbeat(&'static str, i64),
}

impl Step {
    fn of(seed: u64, number: u64) -> Self {
        let mut random = Random(seed ^ (number << 20));
        let now = number as i64 * 90;
        if random.below(5) == 0 {
            let stream = ["s", "r"][random.below(2) as usize];
            return Self::Heartbeat(stream, now - 100);
        }
        // Some of it late, and some of that so late that no window has it.
        let time = match random.below(12) {
            0 => now - 600,
            _ => now - random.below(150) as i64,
        };
        if random.below(4) == 0 {
            let y = random.below(4);
            let line = format!("{time}\t<http://e/y{y}> <http://e/is> \"{number}\" .\n");
            return Self::Push("r", line);
        }
        let mut text = String::new();
        for fact in 0..FACTS {
            let subject = format!("<http://e/push{number}>");
            text += &format!("{time}\t{subject} <http://e/fact> \"fact {fact}\" .\n");
        }
        for _ in 0..1 + random.below(3) {
            let (x, y) = (random.below(5), random.below(4));
            let at = time - random.below(60) as i64;
            text += &format!("{at}\t<http://e/x{x}> <http://e/seen> <http://e/y{y}> .\n");
        }
        Self::Push("s", text)
    }

    fn take(&self, database: &Database, number: u64) -> Result<PushReport, EngineError> {
        match self {
            Self::Push(stream, text) => {
                let producer = Producer {
                    name: "source",
                    sequence: number,
                };
                let text = text.as_bytes().to_vec();
                database.push_once(stream, producer, TupleFormat::Lines, None, text)
            }
            Self::Heartbeat(stream, time_ms) => database
                .heartbeat(stream, *time_ms)
                .map(|()| PushReport::default()),
        }
    }
}

fn prepare(database: &Database) {
    for (name, mut definition) in [
        ("s", with_facts("http://e/s")),
        ("r", durable("http://e/r")),
    ] {
        definition.lateness_ms = 200;
        (database.create_stream(name, definition)).expect("it is new");
    }
    for (name, text) in WINDOWS {
        database.register(name, text).expect("it is sound");
    }
}

/// What consumers have seen, by the names of the queries.
#[derive(Default)]
struct Seen(BTreeMap<&'static str, Vec<String>>);

impl Seen {
    fn read(&mut self, database: &Database) {
        for (query, _) in WINDOWS {
            let seen = self.0.entry(query).or_default();
            seen.extend(results(database, query, seen.len() as u64));
        }
    }
}

fn uninterrupted(seed: u64, steps: u64) -> Seen {
    let folder = tempfile::tempdir().expect("there is room");
    let mut settings = config();
    settings.durability.fsync = jindou_store::log::Fsync::Never;
    let database = Database::open_or_create(&folder.path().join("store"), settings);
    let database = database.expect("there is room");
    prepare(&database);
    let mut seen = Seen::default();
    for number in 1..=steps {
        (Step::of(seed, number).take(&database, number)).expect("nothing is wrong");
        seen.read(&database);
    }
    seen
}

/// How many facts each push has in the graph.
fn facts(database: &Database) -> BTreeMap<u64, u64> {
    let query = "SELECT ?s (COUNT(*) AS ?n) { ?s <http://e/fact> ?o } GROUP BY ?s";
    let QueryResults::Solutions(solutions) = database.query(query).expect("it is sound") else {
        panic!("SELECT gives solutions");
    };
    let number = |text: String| -> u64 {
        let digits: String = text.chars().filter(char::is_ascii_digit).collect();
        digits.parse().expect("it has a number")
    };
    solutions
        .map(|solution| {
            let solution = solution.expect("the store is whole");
            let of = |name| solution.get(name).expect("it is bound");
            let count = of("n").to_string();
            let count = count.split('"').nth(1).expect("a literal").to_owned();
            (number(of("s").to_string()), number(count))
        })
        .collect()
}

/// What is known of facts.
#[derive(Default)]
struct Facts {
    there: BTreeMap<u64, bool>,
}

impl Facts {
    /// Those of a push are there together or not at all, and once deleted, for ever.
    fn check(&mut self, database: &Database) {
        let found = facts(database);
        for (push, count) in &found {
            assert_eq!(*count, FACTS, "of push {push}");
            let there = *self.there.entry(*push).or_insert(true);
            assert!(there, "the facts of push {push} came back");
        }
        for (push, there) in &self.there {
            assert_eq!(found.contains_key(push), *there, "the facts of push {push}");
        }
    }

    fn delete(&mut self, database: &Database, random: &mut Random) -> Result<(), EngineError> {
        let there: Vec<u64> = (self.there.iter())
            .filter_map(|(push, there)| there.then_some(*push))
            .collect();
        if there.is_empty() {
            return Ok(());
        }
        let push = there[random.below(there.len() as u64) as usize];
        let text = format!("DELETE WHERE {{ <http://e/push{push}> <http://e/fact> ?o }}");
        // Without an answer nobody knows, until the store is open again.
        self.there.remove(&push);
        database.update(&text)?;
        self.there.insert(push, false);
        Ok(())
    }
}

/// What else happens: true if the process is there still.
fn disturb(database: &Database, facts: &mut Facts, random: &mut Random) -> bool {
    let done = match random.below(12) {
        0 => database.checkpoint(),
        1 => database.compact().map(|_| ()),
        2 => database.cut_stream_log(),
        3 | 4 => facts.delete(database, random),
        _ => Ok(()),
    };
    done.is_ok()
}

/// Runs a store through its steps with at most so many kills, and says how many there were.
fn run(seed: u64, most_kills: u64, location: &Path) -> (Seen, u64) {
    let mut random = Random(seed);
    let (mut seen, mut facts) = (Seen::default(), Facts::default());
    drop({
        let database = Database::open_or_create(location, config()).expect("there is room");
        prepare(&database);
        database
    });
    let (mut next, mut kills) = (1, 0);
    while next <= STEPS {
        let most = 4 << random.below(8);
        let operations = match kills < most_kills {
            true => 1 + random.below(most),
            false => u64::MAX,
        };
        let life = Life::of(operations);
        let mut settings = config();
        life.configure(&mut settings);
        // So that states are written all the time.
        settings.stream_log_bytes = 6 << 10;
        match Database::open(location, settings) {
            Ok(database) => {
                let (seen, random) = (&mut seen, Some(&mut random));
                live(
                    (seed, STEPS),
                    &database,
                    &mut next,
                    (seen, &mut facts),
                    random,
                );
            }
            Err(error) => assert!(life.has_ended(), "{error}"),
        }
        kills += u64::from(life.has_ended());
    }
    let database = super::open(location);
    facts.check(&database);
    seen.read(&database);
    (seen, kills)
}

/// Takes steps until all are taken or the process is killed.
fn live(
    (seed, steps): (u64, u64),
    database: &Database,
    next: &mut u64,
    (seen, facts): (&mut Seen, &mut Facts),
    mut random: Option<&mut Random>,
) {
    facts.check(database);
    seen.read(database);
    while *next <= steps {
        if Step::of(seed, *next).take(database, *next).is_err() {
            return;
        }
        *next += 1;
        seen.read(database);
        facts.check(database);
        if let Some(random) = &mut random
            && !disturb(database, facts, random)
        {
            return;
        }
    }
}

fn compare(seen: &Seen, expected: &Seen, at: &str) {
    for (query, expected) in &expected.0 {
        let seen = &seen.0[query];
        for (seen, expected) in seen.iter().zip(expected) {
            assert_eq!(seen, expected, "{query}, {at}");
        }
        assert_eq!(seen.len(), expected.len(), "{query}, {at}");
    }
}

#[test]
fn a_kill_at_any_operation_changes_nothing() {
    let seed = environment("JINDOU_SEED", 1);
    println!("seed {seed} (JINDOU_SEED)");
    let expected = uninterrupted(seed, FEW_STEPS);
    let prepared = tempfile::tempdir().expect("there is room");
    prepare(&super::open(&prepared.path().join("store")));
    for operation in 1.. {
        let folder = tempfile::tempdir().expect("there is room");
        let location = folder.path().join("store");
        copy(&prepared.path().join("store"), &location);
        let (mut seen, mut facts, mut next) = (Seen::default(), Facts::default(), 1);
        let life = Life::of(operation);
        for life in [Arc::clone(&life), Life::of(u64::MAX)] {
            let mut settings = config();
            life.configure(&mut settings);
            settings.stream_log_bytes = 8 << 10;
            match Database::open(&location, settings) {
                Ok(database) => {
                    let known = (&mut seen, &mut facts);
                    live((seed, FEW_STEPS), &database, &mut next, known, None);
                }
                Err(error) => assert!(life.has_ended(), "{error}"),
            }
        }
        assert!(next > FEW_STEPS);
        compare(
            &seen,
            &expected,
            &format!("JINDOU_SEED={seed}, operation {operation}"),
        );
        if !life.has_ended() {
            println!("{operation} operations");
            return;
        }
    }
}

/// Copies a folder with those in it.
fn copy(from: &Path, to: &Path) {
    std::fs::create_dir(to).expect("it is new");
    for entry in std::fs::read_dir(from).expect("it can be read") {
        let entry = entry.expect("it can be read");
        let to = to.join(entry.file_name());
        match entry.file_type().expect("it has one").is_dir() {
            true => copy(&entry.path(), &to),
            false => drop(std::fs::copy(entry.path(), to).expect("there is room")),
        }
    }
}

#[test]
fn consumers_see_each_result_once_and_what_they_would_have_seen_without_kills() {
    let first = environment("JINDOU_SEED", 1);
    let most = environment("JINDOU_KILLS", 10);
    println!("seed {first}, {most} kills (JINDOU_SEED, JINDOU_KILLS)");
    let (mut kills, mut seed) = (0, first);
    while kills < most {
        let folder = tempfile::tempdir().expect("there is room");
        let expected = uninterrupted(seed, STEPS);
        let of_store = KILLS_OF_A_STORE.min(most - kills);
        let attempt = || run(seed, of_store, &folder.path().join("store"));
        let outcome = std::panic::catch_unwind(attempt);
        let (seen, done) = outcome.unwrap_or_else(|panic| {
            println!(
                "JINDOU_SEED={seed}: what is left: {}",
                folder.keep().display()
            );
            std::panic::resume_unwind(panic)
        });
        let lengths = expected.0.values().map(Vec::len);
        assert!(lengths.min() > Some(5), "all queries give results");
        compare(&seen, &expected, &format!("JINDOU_SEED={seed}"));
        kills += done.max(1);
        seed += 1;
    }
}
