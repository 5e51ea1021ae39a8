//! Snapshot numbers, which clients keep: do they ever go backwards?

use std::path::Path;

use jindou_engine::ingest::{Format, Progress, Source};
use jindou_engine::{Database, LoadOptions};

use crate::{config, mark, store};

fn open(location: &Path) -> Database {
    Database::open(location, config()).expect("it is a store")
}

fn load(database: &Database) {
    let text = "<http://e/a> <http://e/b> <http://e/c> .\n";
    let document = Source::bytes("document.nt", text).with_format(Format::NTriples);
    let (options, progress) = (LoadOptions::default(), Progress::default());
    database
        .load(vec![document], &options, &progress)
        .expect("the document is sound");
}

fn merge(database: &Database) {
    database.compact().expect("there is room");
}

/// Does something to a store, and opens it again: the number is what it was then.
fn keeps_its_number(location: &Path, what: &str, work: impl FnOnce(&Database)) -> u64 {
    let database = open(location);
    let before = database.snapshot_number();
    work(&database);
    let after = database.snapshot_number();
    assert!(after >= before, "{what}: {before:?}, then {after:?}");
    drop(database);
    assert_eq!(
        open(location).snapshot_number(),
        after,
        "opened after {what}"
    );
    let verified = Database::verify(location).expect("the store is whole");
    assert_eq!(verified.snapshot, after, "verified after {what}");
    after.0
}

#[test]
fn the_snapshot_number_does_not_go_backwards_over_merges_checkpoints_loads_and_reopening() {
    let folder = tempfile::tempdir().unwrap();
    let location = store(folder.path(), 5);
    let keeps = |what: &str, work: &dyn Fn(&Database)| keeps_its_number(&location, what, work);
    assert_eq!(keeps("nothing", &|_| ()), 6);
    assert_eq!(keeps("merge", &merge), 6);
    assert_eq!(keeps("update", &|store| mark(store, 5).unwrap()), 7);
    assert_eq!(keeps("checkpoint", &|store| store.checkpoint().unwrap()), 7);
    assert_eq!(keeps("merge", &merge), 7);
    assert_eq!(keeps("checkpoint", &|store| store.checkpoint().unwrap()), 7);
    // Its terms come first.
    assert_eq!(keeps("load", &load), 9);
    assert_eq!(keeps("update", &|store| mark(store, 6).unwrap()), 10);
}

#[test]
fn a_backup_and_a_store_made_of_it_have_the_number_of_what_they_are_copies_of() {
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name);
    let database = open(&store(folder.path(), 5));
    let copies = |database: &Database, name: &str| {
        let (backup, restored) = (place(name), place(&format!("{name}-restored")));
        let report = database.backup(&backup).unwrap();
        let restoring = Database::restore(&backup, &restored).unwrap();
        assert_eq!(report.snapshot, database.snapshot_number(), "{name}");
        assert_eq!(restoring.snapshot, report.snapshot, "{name}");
        for copy in [backup, restored] {
            assert_eq!(open(&copy).snapshot_number(), report.snapshot, "{name}");
        }
    };
    copies(&database, "changed");
    database.compact().unwrap();
    copies(&database, "merged");
    let memory = Database::with_config(config());
    mark(&memory, 1).unwrap();
    copies(&memory, "from-memory");
    memory.compact().unwrap();
    copies(&memory, "merged-in-memory");
}
