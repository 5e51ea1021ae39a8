//! Does a store with streams go on by itself once there is room again, and what was kept meanwhile?

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering::SeqCst};

use jindou_engine::{
    Config, Database, DurabilityOptions, EngineError, NextResult, PushReport, TupleFormat,
};
use jindou_store::log::{Folder, LogFile, Storage};

use super::{config, open, with_facts};

/// Where a disk has room.
#[repr(u8)]
#[derive(Clone, Copy, PartialEq)]
enum Room {
    Everywhere,
    /// For the store until it wants some, and then nowhere: an intent is written, its transaction is not.
    UntilTransaction,
    /// Not for the log of streams.
    OutsideOfStreams,
    Nowhere,
    /// For so many writes as are left.
    ForSome,
}

#[derive(Debug, Default)]
struct Disk {
    room: AtomicU8,
    left: AtomicU32,
}

impl Disk {
    fn set(&self, room: Room) {
        self.room.store(room as u8, SeqCst);
    }

    fn refuses(&self, is_of_streams: bool) -> bool {
        let room = self.room.load(SeqCst);
        if room == Room::ForSome as u8 {
            let one_less = |left: u32| left.checked_sub(1);
            return self.left.fetch_update(SeqCst, SeqCst, one_less).is_err();
        }
        if room == Room::UntilTransaction as u8 && !is_of_streams {
            self.set(Room::Nowhere);
            return true;
        }
        room == Room::Nowhere as u8 || (room == Room::OutsideOfStreams as u8 && is_of_streams)
    }

    fn configure(self: &Arc<Self>, config: &mut Config) {
        let disk = Arc::clone(self);
        config.durability = DurabilityOptions::default();
        config.durability.storage = Arc::new(move |path| {
            let name = path.file_name().and_then(|name| name.to_str());
            Box::new(Filling {
                is_of_streams: name.is_some_and(|name| name.starts_with("streams")),
                folder: Folder::new(path),
                disk: Arc::clone(&disk),
            })
        });
    }
}

#[derive(Debug)]
struct Filling {
    folder: Folder,
    disk: Arc<Disk>,
    is_of_streams: bool,
}

#[derive(Debug)]
struct FillingFile {
    file: Arc<dyn LogFile>,
    disk: Arc<Disk>,
    is_of_streams: bool,
}

impl Filling {
    fn wrap(&self, file: Arc<dyn LogFile>) -> Arc<dyn LogFile> {
        Arc::new(FillingFile {
            file,
            disk: Arc::clone(&self.disk),
            is_of_streams: self.is_of_streams,
        })
    }
}

impl Storage for Filling {
    fn list(&self) -> io::Result<Vec<String>> {
        self.folder.list()
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn LogFile>> {
        Ok(self.wrap(self.folder.create(name)?))
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn LogFile>> {
        Ok(self.wrap(self.folder.open(name)?))
    }

    fn open_to_read(&self, name: &str) -> io::Result<Arc<dyn LogFile>> {
        Ok(self.wrap(self.folder.open_to_read(name)?))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.folder.rename(from, to)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.folder.remove(name)
    }

    fn sync(&self) -> io::Result<()> {
        self.folder.sync()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path(name)
    }
}

impl LogFile for FillingFile {
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        // Zeros take a record back, over what was written.
        let is_new = bytes.iter().any(|byte| *byte != 0);
        if is_new && self.disk.refuses(self.is_of_streams) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.file.write_at(bytes, offset)
    }

    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        self.file.read_at(bytes, offset)
    }

    fn length(&self) -> io::Result<u64> {
        self.file.length()
    }

    fn set_length(&self, length: u64) -> io::Result<()> {
        self.file.set_length(length)
    }

    fn sync(&self) -> io::Result<()> {
        self.file.sync()
    }
}

fn push(database: &Database, time_ms: i64) -> Result<PushReport, EngineError> {
    let text = format!("{time_ms}\t<http://e/at{time_ms}> <http://e/fact> <http://e/o> .\n");
    database.push("s", TupleFormat::Lines, None, text.into_bytes())
}

fn update(database: &Database, subject: &str) -> Result<(), EngineError> {
    let text = format!("INSERT DATA {{ <http://e/{subject}> <http://e/p> <http://e/o> }}");
    database.update(&text).map(|_| ())
}

fn has(database: &Database, subject: &str) -> bool {
    let text = format!("ASK {{ <http://e/{subject}> ?p ?o }}");
    let results = database.query(&text).expect("it is sound");
    matches!(results, jindou_engine::QueryResults::Boolean(true))
}

#[track_caller]
fn assert_refused<T: std::fmt::Debug>(result: Result<T, EngineError>) {
    let error = result.expect_err("the disk is full");
    assert!(matches!(error, EngineError::ReadOnly { .. }), "{error:?}");
    let text = error.to_string();
    assert_eq!(text.matches("takes no updates").count(), 1, "{text}");
}

/// A store whose disk ran full in the middle of the transaction of the facts of the first batch.
fn filled(location: &Path) -> (Database, Arc<Disk>) {
    let disk = Arc::new(Disk::default());
    let mut settings = config();
    disk.configure(&mut settings);
    let database = Database::open_or_create(location, settings).unwrap();
    (database.create_stream("s", with_facts("http://e/s"))).unwrap();
    assert_eq!(push(&database, 10).unwrap().accepted, 1);
    disk.set(Room::UntilTransaction);
    // It is in the log of streams, and not lost: what it completes waits.
    assert_eq!(push(&database, 200).unwrap().accepted, 1);
    assert!(!has(&database, "at10"));
    (database, disk)
}

#[test]
fn facts_that_waited_for_room_are_stored_by_themselves() {
    let folder = tempfile::tempdir().unwrap();
    let location = folder.path().join("store");
    let (database, disk) = filled(&location);
    let before = database.stream("s").unwrap();
    assert_refused(push(&database, 400));
    assert_refused(database.heartbeat("s", 1_000_000));
    assert_refused(database.tick());
    assert_refused(update(&database, "x"));
    // What was refused has changed nothing.
    assert_eq!(database.stream("s").unwrap(), before);
    disk.set(Room::Everywhere);
    assert!(database.tick().unwrap().is_some());
    assert!(has(&database, "at10"));
    update(&database, "x").unwrap();
    assert_eq!(push(&database, 400).unwrap().accepted, 1);
    database.heartbeat("s", 1_000_000).unwrap();
    for subject in ["at200", "at400", "x"] {
        assert!(has(&database, subject), "{subject}");
    }
    let after = database.stream("s").unwrap();
    assert_eq!((after.tuples, after.absorbed, after.late), (3, 3, 0));
    drop(database);
    let database = open(&location);
    assert_eq!(database.quad_counts().triples, 4);
    assert_eq!(database.stream("s").unwrap().absorbed, 3);
}

#[test]
fn no_other_transaction_is_taken_for_one_that_had_no_room() {
    for has_room_again in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        let location = folder.path().join("store");
        let (database, disk) = filled(&location);
        if has_room_again {
            disk.set(Room::Everywhere);
            // It has the number that the facts were to have.
            update(&database, "x").unwrap();
        }
        drop(database);
        let database = open(&location);
        assert_eq!(has(&database, "x"), has_room_again);
        assert!(has(&database, "at10"));
        database.heartbeat("s", 1_000).unwrap();
        assert!(has(&database, "at200"));
    }
}

#[test]
fn a_push_that_is_not_logged_keeps_nothing_and_stops_no_update() {
    let folder = tempfile::tempdir().unwrap();
    let location = folder.path().join("store");
    let (database, disk) = filled(&location);
    disk.set(Room::Everywhere);
    database.tick().unwrap();
    let before = database.stream("s").unwrap();
    disk.set(Room::OutsideOfStreams);
    assert_refused(push(&database, 400));
    assert_refused(database.heartbeat("s", 400));
    assert_eq!(database.stream("s").unwrap(), before);
    update(&database, "x").unwrap();
    disk.set(Room::Everywhere);
    push(&database, 400).unwrap();
    drop(database);
    let database = open(&location);
    database.heartbeat("s", 1_000).unwrap();
    assert_eq!(database.quad_counts().triples, 4);
}

/// Whether a query has given a result.
fn has_result(database: &Database) -> bool {
    let mut results = database.results_of("q", Some(0)).unwrap();
    let next = results.next_within(std::time::Duration::ZERO);
    matches!(next, NextResult::Result(result, 0) if result.answer.is_ok())
}

#[test]
fn a_query_that_could_not_begin_begins_when_there_is_room() {
    let (mut refused, mut late) = (0, 0);
    for writes in 0..10 {
        for is_killed in [false, true] {
            let folder = tempfile::tempdir().unwrap();
            let location = folder.path().join("store");
            let disk = Arc::new(Disk::default());
            let mut settings = config();
            disk.configure(&mut settings);
            let mut database = Database::open_or_create(&location, settings).unwrap();
            (database.create_stream("s", with_facts("http://e/s"))).unwrap();
            push(&database, 10).unwrap();
            disk.left.store(writes, SeqCst);
            disk.set(Room::ForSome);
            let text = "ASK FROM STREAM <http://e/s> [RANGE 1s] WHERE { ?x ?p ?y }";
            let is_new = match database.register("q", text) {
                Ok(is_new) => is_new,
                Err(error) => {
                    assert!(matches!(error, EngineError::ReadOnly { .. }), "{error:?}");
                    assert!(database.continuous_query("q").is_none());
                    refused += 1;
                    continue;
                }
            };
            assert!(is_new && !database.register("q", text).unwrap());
            late += u32::from(disk.refuses(true));
            let mut disk = disk;
            if is_killed {
                drop(database);
                // As few writes as it takes to open it.
                let opened = (0..20).find_map(|writes| open_with_room_for(writes, &location));
                (database, disk) = opened.expect("it needs little room");
            }
            disk.set(Room::Everywhere);
            push(&database, 20).unwrap();
            database.heartbeat("s", 1_000).unwrap();
            assert!(has_result(&database), "{writes} {is_killed}");
            drop(database);
            let database = open(&location);
            database.heartbeat("s", 2_000).unwrap();
            assert!(has_result(&database), "{writes} {is_killed}");
        }
    }
    assert!(refused > 0 && late > 0, "{refused} {late}");
}

/// Opens a store on a disk that has room for so many writes; `None` if that is too few to open it.
fn open_with_room_for(writes: u32, location: &Path) -> Option<(Database, Arc<Disk>)> {
    let disk = Arc::new(Disk::default());
    let mut settings = config();
    disk.configure(&mut settings);
    disk.left.store(writes, SeqCst);
    disk.set(Room::ForSome);
    match Database::open(location, settings) {
        Ok(database) => Some((database, disk)),
        Err(EngineError::Io { source, .. }) => {
            assert_eq!(source.kind(), io::ErrorKind::StorageFull);
            None
        }
        Err(other) => panic!("{other:?}"),
    }
}

#[test]
fn a_store_is_opened_on_a_full_disk_and_goes_on_when_there_is_room() {
    let mut waited = 0;
    for writes in 0..20 {
        let folder = tempfile::tempdir().unwrap();
        let location = folder.path().join("store");
        drop(filled(&location));
        // What was stored, and is deleted: it does not come back.
        let (database, disk) = open_with_room_for(u32::MAX, &location).unwrap();
        assert!(has(&database, "at10"));
        database.update("DELETE WHERE { ?s ?p ?o }").unwrap();
        disk.set(Room::UntilTransaction);
        push(&database, 310).unwrap();
        assert!(!has(&database, "at200"));
        drop((database, disk));
        let Some((database, disk)) = open_with_room_for(writes, &location) else {
            continue;
        };
        disk.set(Room::Nowhere);
        assert_refused(database.heartbeat("s", 1_000));
        let before = database.stream("s").unwrap();
        waited += u32::from(before.absorbed == 1);
        disk.set(Room::Everywhere);
        database.heartbeat("s", 1_000).unwrap();
        let found = ["at10", "at200", "at310"].map(|subject| has(&database, subject));
        assert_eq!(found, [false, true, true], "{writes}");
        let status = database.stream("s").unwrap();
        assert_eq!((status.absorbed, status.batches), (3, 3), "{writes}");
        assert_eq!(status.waiting_bytes, 0);
        drop(database);
        let database = open(&location);
        assert_eq!(database.quad_counts().triples, 2);
        assert_eq!(database.stream("s").unwrap().absorbed, 3);
    }
    assert!(waited > 0);
}

#[test]
fn what_waited_for_room_waits_on_after_the_store_was_opened_without_room() {
    let mut opened = 0;
    for writes in 0..20 {
        let folder = tempfile::tempdir().unwrap();
        let location = folder.path().join("store");
        drop(filled(&location));
        for _ in 0..2 {
            let Some((database, disk)) = open_with_room_for(writes, &location) else {
                continue;
            };
            disk.set(Room::Nowhere);
            assert_refused(update(&database, "x"));
            assert!(database.stream("s").unwrap().tuples == 2);
            opened += u32::from(!has(&database, "at10"));
        }
        let Some((database, disk)) = open_with_room_for(writes, &location) else {
            continue;
        };
        disk.set(Room::Everywhere);
        database.tick().unwrap();
        assert!(has(&database, "at10"));
        update(&database, "x").unwrap();
        drop(database);
        let database = open(&location);
        database.heartbeat("s", 1_000).unwrap();
        assert_eq!(database.quad_counts().triples, 3, "{writes}");
    }
    assert!(opened > 1);
}
