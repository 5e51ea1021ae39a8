//! What a store keeps through checkpoints, merges, faults of its disk and damage to its files.

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
    assert!(!found.iter().any(|name| name.starts_with("changes")), "{found:?}");
    drop(database);
    assert_eq!(marks(&Database::open(&location, config()).unwrap()), [0, 1, 2]);
}

#[test]
fn a_damaged_current_file_is_refused_by_name_and_costs_no_other_file() {
    let folder = tempfile::tempdir().unwrap();
    let location = store(folder.path(), 3);
    let database = Database::open(&location, config()).unwrap();
    database.compact().unwrap();
    mark(&database, 3).unwrap();
    database.checkpoint().unwrap();
    mark(&database, 4).unwrap();
    drop(database);
    let before = names(&location);
    let path = location.join("CURRENT");
    let whole = fs::read(&path).unwrap();
    let flips = (0..whole.len() * 8).map(|bit| {
        let mut altered = whole.clone();
        altered[bit / 8] ^= 1 << (bit % 8);
        altered
    });
    let cuts = (0..whole.len()).map(|length| whole[..length].to_vec());
    for altered in flips.chain(cuts) {
        fs::write(&path, &altered).unwrap();
        // The new line at its end says nothing.
        if let Ok(database) = Database::open(&location, config()) {
            assert_eq!(marks(&database), [0, 1, 2, 3, 4], "{altered:?}");
            assert_eq!(altered.trim_ascii(), whole.trim_ascii());
            continue;
        }
        let refusal = refusal(&location);
        assert!(refusal.contains("CURRENT"), "{altered:?}: {refusal}");
        assert!(Database::open_or_create(&location, config()).is_err());
        assert_eq!(names(&location), before, "{altered:?}");
    }
    fs::remove_file(&path).unwrap();
    assert!(refusal(&location).contains("CURRENT"));
    let made = Database::open_or_create(&location, config());
    let made = made.map(|_| ()).expect_err("a store is not made over another");
    assert!(made.to_string().contains("CURRENT"), "{made}");
    fs::write(&path, &whole).unwrap();
    let database = Database::open(&location, config()).unwrap();
    assert_eq!(marks(&database), [0, 1, 2, 3, 4]);
}
