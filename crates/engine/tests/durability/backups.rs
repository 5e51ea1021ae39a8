//! Backups of a database that goes on, and stores made of them.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use jindou_engine::{Database, EngineError};

use crate::{config, mark, marks, names, store};

fn open(location: &Path) -> Database {
    Database::open(location, config()).expect("it is a store")
}

#[test]
fn a_backup_holds_a_state_that_the_running_database_had() {
    let folder = tempfile::tempdir().unwrap();
    let location = store(folder.path(), 3);
    let mut config = config();
    config.merge.changes = 20;
    config.merge.share_of_graph = u64::MAX;
    config.merge.log_bytes = 8 << 10;
    let database = Database::open(&location, config).unwrap();
    let (acknowledged, stop) = (AtomicU64::new(3), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::SeqCst) {
                let next = acknowledged.load(Ordering::SeqCst);
                mark(&database, next).unwrap();
                acknowledged.store(next + 1, Ordering::SeqCst);
            }
        });
        for round in 0..12 {
            if round % 4 == 1 {
                database.checkpoint().unwrap();
            }
            let to = folder.path().join(format!("backup-{round}"));
            let before = acknowledged.load(Ordering::SeqCst);
            let report = database.backup(&to).unwrap();
            let after = acknowledged.load(Ordering::SeqCst) + 1;
            assert!(report.is_linked);
            assert_eq!(Database::verify(&to).unwrap().triples, report.triples);
            let backup = open(&to);
            let found = marks(&backup);
            assert_eq!(found, (0..report.triples).collect::<Vec<_>>());
            assert!((before..=after).contains(&report.triples), "round {round}");
            // It is a store of its own.
            mark(&backup, 1_000_000).unwrap();
            backup.compact().unwrap();
            mark(&backup, 1_000_001).unwrap();
            drop(backup);
            assert_eq!(marks(&open(&to)).len(), found.len() + 2);
        }
        stop.store(true, Ordering::SeqCst);
    });
    let all: Vec<u64> = (0..acknowledged.into_inner()).collect();
    assert_eq!(marks(&database), all);
    drop(database);
    assert_eq!(marks(&open(&location)), all);
}

#[test]
fn a_database_in_memory_has_backups_too() {
    let folder = tempfile::tempdir().unwrap();
    let database = Database::with_config(config());
    let empty = folder.path().join("empty");
    database.backup(&empty).unwrap();
    assert_eq!(marks(&open(&empty)), [0_u64; 0]);
    mark(&database, 1).unwrap();
    database.update("CREATE GRAPH <http://e/g>").unwrap();
    let changed = folder.path().join("changed");
    let report = database.backup(&changed).unwrap();
    assert!(!report.is_linked);
    database.compact().unwrap();
    let merged = folder.path().join("merged");
    database.backup(&merged).unwrap();
    for place in [&changed, &merged] {
        assert_eq!(marks(&open(place)), [1]);
        let report = Database::verify(place).unwrap();
        assert_eq!((report.triples, report.named_graphs), (1, 1));
    }
}

#[test]
fn nothing_is_overwritten_and_nothing_half_done_is_left() {
    let folder = tempfile::tempdir().unwrap();
    let location = store(folder.path(), 3);
    let database = open(&location);
    let refused = database
        .backup(&location)
        .expect_err("a store is there")
        .to_string();
    assert!(refused.contains("not empty"), "{refused}");
    let empty = folder.path().join("empty");
    fs::create_dir(&empty).unwrap();
    database.backup(&empty).unwrap();
    assert!(database.backup(&empty).is_err());
    drop(database);
    let restored = folder.path().join("restored");
    let full = Database::restore(&empty, &location)
        .expect_err("a store is there")
        .to_string();
    assert!(full.contains("not empty"), "{full}");
    let report = Database::restore(&empty, &restored).unwrap();
    assert_eq!(report.triples, 3);
    assert_eq!(marks(&open(&restored)), [0, 1, 2]);
    let held = open(&restored);
    let locked = Database::restore(&restored, &folder.path().join("again"));
    assert!(matches!(locked, Err(EngineError::Store(_))), "{locked:?}");
    drop(held);
    // A damaged backup is refused by the name of its file.
    for name in names(&empty).iter().filter(|name| *name != "LOCK") {
        let whole = fs::read(empty.join(name)).unwrap();
        let mut altered = whole.clone();
        let used = altered.iter().rposition(|byte| *byte != 0).unwrap();
        altered[used / 2] ^= 4;
        fs::write(empty.join(name), &altered).unwrap();
        let place = folder.path().join("from-damaged");
        let refused = Database::restore(&empty, &place);
        let text = refused.map(drop).expect_err("it is damaged").to_string();
        assert!(text.contains(name.as_str()), "{name}: {text}");
        assert!(!place.exists());
        assert!(
            !names(folder.path())
                .iter()
                .any(|name| name.contains("partial"))
        );
        fs::write(empty.join(name), &whole).unwrap();
    }
}

#[test]
fn what_lies_beside_a_place_stays_whatever_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let location = store(folder.path(), 3);
    let database = open(&location);
    let store_beside = folder.path().join("copy.partial");
    database.backup(&store_beside).unwrap();
    // Named as those that are under way, and without the file that says so.
    let named_alike = folder.path().join(".copy.partial-0123456789abcdef");
    database.backup(&named_alike).unwrap();
    let copy = folder.path().join("copy");
    database.backup(&copy).unwrap();
    fs::remove_dir_all(&copy).unwrap();
    drop(database);
    Database::restore(&location, &copy).unwrap();
    for place in [&store_beside, &named_alike, &copy] {
        assert_eq!(marks(&open(place)), [0, 1, 2], "{}", place.display());
    }
}

#[test]
fn what_a_process_that_was_killed_left_on_its_way_to_a_place_is_removed() {
    let folder = tempfile::tempdir().unwrap();
    let location = store(folder.path(), 3);
    let database = open(&location);
    let left = |random: &str| {
        let path = folder.path().join(format!(".copy.partial-{random}"));
        fs::create_dir(&path).unwrap();
        for name in ["LOCK", "PARTIAL", "CURRENT", "base-1.jnd", "log-1-1.new"] {
            fs::write(path.join(name), "?").unwrap();
        }
        path
    };
    let dead = left("0123456789abcdef");
    let alive = left("0123456789abcde0");
    let lock = fs::File::open(alive.join("LOCK")).unwrap();
    lock.lock().unwrap();
    let other = left("letters");
    database.backup(&folder.path().join("copy")).unwrap();
    assert!(!dead.exists() && alive.exists() && other.exists());
    drop(lock);
    fs::remove_dir_all(folder.path().join("copy")).unwrap();
    database.backup(&folder.path().join("copy")).unwrap();
    assert!(!alive.exists() && other.exists());
}
