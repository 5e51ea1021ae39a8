//! A store that is only read: who may have it open at the same time, and is it left as it is?

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::Path;

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
fn many_may_read_a_store_and_one_alone_may_write_it() {
    let folder = tempfile::tempdir().unwrap();
    let location = store(folder.path(), 3);
    let readers = [to_read(&location).unwrap(), to_read(&location).unwrap()];
    assert!(is_in_use(Database::open(&location, config())));
    assert!(is_in_use(Database::open_or_create(&location, config())));
    assert!(Database::verify(&location).is_ok());
    let [first, second] = readers;
    drop(first);
    assert!(is_in_use(Database::open(&location, config())));
    assert_eq!(marks(&second), [0, 1, 2]);
    let clone = second.clone();
    drop(second);
    assert!(is_in_use(Database::open(&location, config())));
    drop(clone);
    let writer = Database::open(&location, config()).unwrap();
    assert!(is_in_use(to_read(&location)));
    let verified = Database::verify(&location).map(drop);
    assert!(matches!(
        verified,
        Err(EngineError::Store(StoreError::Locked { .. }))
    ));
    mark(&writer, 3).unwrap();
    drop(writer);
    assert_eq!(marks(&to_read(&location).unwrap()), [0, 1, 2, 3]);
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
    let readers = [to_read(&location).unwrap(), to_read(&location).unwrap()];
    for (number, reader) in readers.iter().enumerate() {
        let to = folder.path().join(format!("backup-{number}"));
        let report = reader.backup(&to).unwrap();
        assert!(report.is_linked);
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
    fs::write(location.join("base-900.jnd"), "left by a crash").unwrap();
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
    assert!(after[log] != before[log] && !after.contains_key("base-900.jnd"));
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
