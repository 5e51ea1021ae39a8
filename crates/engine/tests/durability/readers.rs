//! A store that is only read: who may have it open at the same time, and is it left as it is?

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};

use jindou_engine::ingest::{LoadOptions, Progress};
use jindou_engine::{Database, EngineError, StoreError};

use crate::{config, mark, marks, names, store};

fn to_read(location: &Path) -> Result<Database, EngineError> {
    Database::open_to_read(location, config())
}

fn is_in_use(opened: Result<Database, EngineError>) -> bool {
    matches!(opened, Err(EngineError::Store(StoreError::Locked { .. })))
}

fn contents(location: &Path) -> BTreeMap<String, Vec<u8>> {
    let content = |name: String| {
        let bytes = fs::read(location.join(&name)).expect("it can be read");
        (name, bytes)
    };
    names(location).into_iter().map(content).collect()
}

#[test]
fn any_number_read_a_store_that_one_writes() {
    let folder = tempfile::tempdir().unwrap();
    let location = store(folder.path(), 3);
    let before = to_read(&location).unwrap();
    let writer = Database::open(&location, config()).unwrap();
    assert!(is_in_use(Database::open(&location, config())));
    let begun = to_read(&location).unwrap();
    mark(&writer, 3).unwrap();
    assert_eq!(marks(&to_read(&location).unwrap()), [0, 1, 2, 3]);
    writer.checkpoint().unwrap();
    let covered = to_read(&location).unwrap();
    mark(&writer, 4).unwrap();
    writer.compact().unwrap();
    mark(&writer, 5).unwrap();
    // Of all files that these have mapped or read only names are gone.
    assert_eq!(marks(&before), [0, 1, 2]);
    assert_eq!(marks(&begun), [0, 1, 2]);
    assert_eq!(marks(&covered), [0, 1, 2, 3]);
    assert_eq!(marks(&to_read(&location).unwrap()), [0, 1, 2, 3, 4, 5]);
    assert!(Database::verify(&location).is_ok());
    drop(writer);
    assert!(Database::open(&location, config()).is_ok());
    assert_eq!(marks(&covered), [0, 1, 2, 3]);
}

#[test]
fn what_is_copied_is_not_written_meanwhile() {
    let folder = tempfile::tempdir().unwrap();
    let location = store(folder.path(), 3);
    let to_copy = || Database::open_to_copy(&location, config());
    let copied = [to_copy().unwrap(), to_copy().unwrap()];
    assert!(is_in_use(Database::open(&location, config())));
    assert!(is_in_use(Database::open_or_create(&location, config())));
    assert_eq!(marks(&to_read(&location).unwrap()), [0, 1, 2]);
    let [first, second] = copied;
    let clone = second.clone();
    drop((first, second));
    assert!(is_in_use(Database::open(&location, config())));
    drop(clone);
    let writer = Database::open(&location, config()).unwrap();
    assert!(is_in_use(to_copy()));
    let restored = Database::restore(&location, &folder.path().join("restored"));
    assert!(matches!(
        restored.map(drop),
        Err(EngineError::Store(StoreError::Locked { .. }))
    ));
    drop(writer);
    assert!(to_copy().is_ok());
}

/// Readers that come at any moment of commits, checkpoints and merges find all that was
/// acknowledged before they came, and no more than was begun when they were there.
#[test]
fn readers_come_while_one_commits_and_merges() {
    const READERS: usize = 150;
    let folder = tempfile::tempdir().unwrap();
    let location = store(folder.path(), 1);
    let (acknowledged, stop) = (AtomicU64::new(1), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let writer = Database::open(&location, config()).unwrap();
            let mut next = 1;
            while !stop.load(SeqCst) {
                mark(&writer, next).unwrap();
                next += 1;
                acknowledged.store(next, SeqCst);
                match next % 23 {
                    0 => writer.compact().map(drop).unwrap(),
                    7 | 13 => writer.checkpoint().unwrap(),
                    _ => {}
                }
            }
        });
        let _stops = Stop(&stop);
        for number in 0..READERS {
            let least = acknowledged.load(SeqCst);
            if number % 10 == 0 {
                Database::verify(&location).unwrap();
            }
            let reader = to_read(&location).unwrap();
            let most = acknowledged.load(SeqCst) + 1;
            let found = marks(&reader);
            let count = found.len() as u64;
            assert!((least..=most).contains(&count), "{least} {count} {most}");
            assert!(found.into_iter().eq(0..count));
        }
    });
}

/// Ends another thread with this one, however that ends.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, SeqCst);
    }
}

#[test]
fn what_was_opened_to_be_read_takes_no_change() {
    let folder = tempfile::tempdir().unwrap();
    let location = store(folder.path(), 40);
    let before = contents(&location);
    let database = to_read(&location).unwrap();
    let empty = || LoadOptions::default();
    let refused = [
        mark(&database, 40),
        database.update("CLEAR ALL").map(drop),
        database
            .load(Vec::new(), &empty(), &Progress::default())
            .map(drop),
        database.compact().map(drop),
        database.checkpoint(),
    ];
    for refused in refused {
        let error = refused.expect_err("it was opened to be read");
        assert!(matches!(error, EngineError::ReadOnly { .. }), "{error}");
        let said = error.to_string();
        assert!(said.ends_with("was opened to be read only"), "{said}");
    }
    // Lists of changed keys lie in memory.
    assert!(database.fold().unwrap());
    assert_eq!(marks(&database), (0..40).collect::<Vec<_>>());
    assert!(database.health().is_empty());
    drop(database);
    assert!(contents(&location) == before);
}

#[test]
fn one_that_reads_has_backups_too() {
    let folder = tempfile::tempdir().unwrap();
    let location = store(folder.path(), 4);
    let to_copy = Database::open_to_copy(&location, config()).unwrap();
    let readers = [to_copy, to_read(&location).unwrap()];
    for (number, reader) in readers.iter().enumerate() {
        let to = folder.path().join(format!("backup-{number}"));
        let report = reader.backup(&to).unwrap();
        // The files of one that is not locked may go.
        assert_eq!(report.is_linked, number == 0);
        assert_eq!(marks(&to_read(&to).unwrap()), [0, 1, 2, 3]);
    }
}

#[test]
fn a_torn_end_of_the_log_is_passed_over_and_stays_until_one_writes() {
    let folder = tempfile::tempdir().unwrap();
    let location = store(folder.path(), 3);
    let all = names(&location);
    let log = all.iter().rfind(|name| name.starts_with("log-")).unwrap();
    let path = location.join(log);
    // The end of the records, behind which a crash left a part of one.
    let bytes = fs::read(&path).unwrap();
    let end = bytes.iter().rposition(|&byte| byte != 0).unwrap() + 1;
    let end = end.next_multiple_of(8);
    let torn = [&bytes[..end], &[0x5a; 77]].concat();
    fs::write(&path, &torn).unwrap();
    let mut file = OpenOptions::new().append(true).open(&path).unwrap();
    file.write_all(&vec![0; bytes.len() - torn.len()]).unwrap();
    // What one that wrote would remove.
    fs::write(location.join("base-900-0.jnd"), "left by a crash").unwrap();
    let before = contents(&location);
    let database = to_read(&location).unwrap();
    assert_eq!(marks(&database), [0, 1, 2]);
    assert!(database.recovery().dropped_bytes >= 77);
    drop(database);
    assert!(contents(&location) == before);
    let writer = Database::open(&location, config()).unwrap();
    assert!(writer.recovery().dropped_bytes >= 77);
    drop(writer);
    let after = contents(&location);
    assert!(after[log] != before[log] && !after.contains_key("base-900-0.jnd"));
    let database = to_read(&location).unwrap();
    assert_eq!(database.recovery().dropped_bytes, 0);
    assert_eq!(marks(&database), [0, 1, 2]);
}

#[test]
fn where_there_is_no_store_none_is_made() {
    let folder = tempfile::tempdir().unwrap();
    for place in [folder.path().to_owned(), folder.path().join("absent")] {
        let refused = to_read(&place).map(drop).unwrap_err();
        assert!(matches!(
            refused,
            EngineError::Store(StoreError::NotAStore { .. })
        ));
    }
    assert!(names(folder.path()).is_empty());
}
