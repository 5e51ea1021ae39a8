//! What a store keeps through checkpoints, merges, faults of its disk and damage to its files.

mod backups;
mod beside_merges;
mod bounded_loads;
mod contents;
mod crash_states;
mod damage;
mod dead_terms;
mod disk;
mod faults;
mod killed_loads;
mod kills;
mod named_points;
mod numbers;
mod random_requests;
mod readers;
mod refused;
mod trouble;
mod watched;

use std::fs;
use std::path::{Path, PathBuf};

use jindou_engine::{Config, Database, EngineError, MergePolicy, QueryResults};

fn config() -> Config {
    let mut config = Config::default();
    config.merge = MergePolicy::never();
    config
}

/// The numbers `?n` of `:mark :is ?n`, sorted.
fn marks(database: &Database) -> Vec<u64> {
    let query = "SELECT ?n { <http://e/mark> <http://e/is> ?n } ORDER BY ?n";
    let QueryResults::Solutions(solutions) = database.query(query).expect("the query is sound")
    else {
        panic!("SELECT gives solutions");
    };
    solutions
        .map(|solution| {
            let solution = solution.expect("the store is whole");
            let term = solution.get("n").expect("it is bound").to_string();
            let digits = term.split('"').nth(1).expect("a literal");
            digits.parse().expect("an integer")
        })
        .collect()
}

fn mark(database: &Database, number: u64) -> Result<(), EngineError> {
    let text = format!("INSERT DATA {{ <http://e/mark> <http://e/is> {number} }}");
    database.update(&text).map(|_| ())
}

fn names(location: &Path) -> Vec<String> {
    let entries = fs::read_dir(location).expect("the store is a directory");
    let mut names: Vec<String> = entries
        .map(|entry| entry.expect("it can be read").file_name())
        .map(|name| name.into_string().expect("names are text"))
        .collect();
    names.sort();
    names
}

fn refusal(location: &Path) -> String {
    match Database::open(location, config()) {
        Ok(_) => panic!("a damaged store was opened"),
        Err(error) => error.to_string(),
    }
}

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

    /// A number below a bound.
    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}

/// A number from the environment, or another one.
fn environment(name: &str, default: u64) -> u64 {
    match std::env::var(name) {
        Ok(text) => text
            .parse()
            .unwrap_or_else(|_| panic!("{name} is no number: {text}")),
        Err(_) => default,
    }
}

/// A store of transactions that each made one of the marks below `count`.
fn store(folder: &Path, count: u64) -> PathBuf {
    let location = folder.join("store");
    let database = Database::open_or_create(&location, config()).expect("it can be made");
    (0..count).for_each(|number| mark(&database, number).expect("there is room"));
    location
}

#[test]
fn a_second_checkpoint_without_a_transaction_between_keeps_the_first_one() {
    let folder = tempfile::tempdir().unwrap();
    let location = store(folder.path(), 3);
    let database = Database::open(&location, config()).unwrap();
    database.checkpoint().unwrap();
    database.checkpoint().unwrap();
    drop(database);
    let database = Database::open(&location, config()).unwrap();
    assert_eq!(marks(&database), [0, 1, 2]);
    // And with no transaction since the base.
    database.compact().unwrap();
    database.checkpoint().unwrap();
    database.checkpoint().unwrap();
    let found = names(&location);
    let changes = found.iter().filter(|name| name.starts_with("changes"));
    assert_eq!(changes.count(), 1, "{found:?}");
    drop(database);
    assert_eq!(
        marks(&Database::open(&location, config()).unwrap()),
        [0, 1, 2]
    );
}

/// The bytes of all files of a store, and how many there are.
fn usage(location: &Path) -> (usize, u64) {
    let names = names(location);
    let bytes = names.iter().map(|name| {
        std::fs::metadata(location.join(name))
            .expect("it is there")
            .len()
    });
    (names.len(), bytes.sum())
}
