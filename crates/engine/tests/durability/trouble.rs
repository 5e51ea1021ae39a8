//! A disk that is full, or fails: what is said, what goes on, and what is there afterwards?

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use jindou_engine::{Config, Database, EngineError, Failure};

use crate::faults::Faults;
use crate::{config, mark, marks, store, usage};

fn faulty() -> (Arc<Faults>, Config) {
    let faults = Faults::new();
    let mut config = config();
    faults.configure(&mut config);
    (faults, config)
}

#[track_caller]
fn assert_read_only(result: Result<(), EngineError>, parts: &[&str]) {
    match result {
        Err(EngineError::ReadOnly { reason }) => {
            for part in parts {
                assert!(reason.contains(part), "{part:?} is not in {reason:?}");
            }
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_full_disk_refuses_updates_and_answers_queries_until_there_is_room() {
    let folder = tempfile::tempdir().unwrap();
    let location = store(folder.path(), 3);
    let (faults, config) = faulty();
    let database = Database::open(&location, config.clone()).unwrap();
    mark(&database, 3).unwrap();
    for round in 0..3 {
        faults.set_full(true);
        for _ in 0..5 {
            assert_read_only(mark(&database, 100), &["log-1-1.jnd", "space"]);
            assert_eq!(marks(&database), (0..4 + round).collect::<Vec<_>>());
        }
        faults.set_full(false);
        mark(&database, 4 + round).unwrap();
    }
    drop(database);
    let database = Database::open(&location, config).unwrap();
    assert_eq!(marks(&database), [0, 1, 2, 3, 4, 5, 6]);
}

#[test]
fn a_merge_and_a_checkpoint_that_find_no_space_leave_all_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let location = store(folder.path(), 3);
    let (faults, config) = faulty();
    let database = Database::open(&location, config.clone()).unwrap();
    database.checkpoint().unwrap();
    mark(&database, 3).unwrap();
    faults.is_full.store(true, SeqCst);
    let before = usage(&location).0;
    for number in 4..10 {
        let merge = database
            .compact()
            .expect_err("there is no space")
            .to_string();
        assert!(merge.contains(".jnd") && merge.contains("space"), "{merge}");
        let checkpoint = database
            .checkpoint()
            .expect_err("there is no space")
            .to_string();
        assert!(checkpoint.contains("changes-1-"), "{checkpoint}");
        // The log has space, and goes on; each checkpoint began a file of it.
        mark(&database, number).unwrap();
        assert!(
            usage(&location).0 <= before + number as usize,
            "files are left"
        );
        assert!(
            crate::names(&location)
                .iter()
                .all(|name| !name.ends_with(".new"))
        );
    }
    let all: Vec<u64> = (0..10).collect();
    assert_eq!(marks(&database), all);
    drop(database);
    let database = Database::open(&location, config).unwrap();
    assert_eq!(marks(&database), all);
    faults.set_full(false);
    database.checkpoint().unwrap();
    assert!(database.compact().unwrap());
    drop(database);
    assert_eq!(Database::verify(&location).unwrap().triples, 10);
}

#[test]
fn a_load_that_finds_no_space_leaves_all_as_it_was() {
    use jindou_engine::LoadOptions;
    use jindou_engine::ingest::{Format, Progress, Source};
    let folder = tempfile::tempdir().unwrap();
    let location = store(folder.path(), 3);
    let (faults, config) = faulty();
    let database = Database::open(&location, config.clone()).unwrap();
    let load = || {
        let text =
            "<http://e/mark> <http://e/is> \"9\"^^<http://www.w3.org/2001/XMLSchema#integer> .";
        let source = Source::bytes("data.nt", text).with_format(Format::NTriples);
        database.load(vec![source], &LoadOptions::default(), &Progress::default())
    };
    faults.is_full.store(true, SeqCst);
    let before = usage(&location);
    assert!(load().unwrap_err().to_string().contains(".jnd"));
    assert_eq!(usage(&location), before);
    mark(&database, 3).unwrap();
    faults.is_full.store(false, SeqCst);
    load().unwrap();
    mark(&database, 4).unwrap();
    drop(database);
    let database = Database::open(&location, config).unwrap();
    assert_eq!(marks(&database), [0, 1, 2, 3, 4, 9]);
}

#[test]
fn prefixes_that_find_no_space_keep_their_document_out_and_stay_as_they_were() {
    use jindou_engine::ingest::{Format, Source};
    use jindou_engine::{PrefixTable, UpdateOptions};
    let folder = tempfile::tempdir().unwrap();
    let location = store(folder.path(), 1);
    let (faults, config) = faulty();
    let database = Database::open(&location, config.clone()).unwrap();
    let put = |name: &str| {
        let text = format!("@prefix {name}: <http://e/{name}#> . {name}:a {name}:b 1 .");
        let source = Source::bytes("data.ttl", text).with_format(Format::Turtle);
        database.add_to_graph(None, vec![source], &UpdateOptions::default())
    };
    put("first").unwrap();
    let before = (
        usage(&location),
        database.prefixes(),
        database.quad_counts(),
    );
    faults.is_full.store(true, SeqCst);
    let refused = put("second").unwrap_err().to_string();
    assert!(
        refused.contains("PREFIXES") && refused.contains("space"),
        "{refused}"
    );
    let refused = database.set_prefixes(PrefixTable::default()).unwrap_err();
    assert!(refused.to_string().contains("PREFIXES"), "{refused}");
    let after = (
        usage(&location),
        database.prefixes(),
        database.quad_counts(),
    );
    assert_eq!(after, before);
    // What is known needs no space.
    put("first").unwrap();
    faults.is_full.store(false, SeqCst);
    put("second").unwrap();
    drop(database);
    let database = Database::open(&location, config).unwrap();
    let known: Vec<String> = database
        .prefixes()
        .iter()
        .map(|(name, _)| name.to_owned())
        .collect();
    assert_eq!(known, ["first", "second"]);
}

#[test]
fn merges_that_fail_are_tried_again_later_and_not_by_every_update() {
    let folder = tempfile::tempdir().unwrap();
    let location = store(folder.path(), 3);
    let (faults, mut config) = faulty();
    config.merge.changes = 4;
    config.merge.share_of_graph = u64::MAX;
    config.merge.retry = Duration::from_secs(3600);
    let database = Database::open(&location, config.clone()).unwrap();
    faults.is_full.store(true, SeqCst);
    let before = faults.created.load(SeqCst);
    // Beyond eight times the changes meant for a merge an update waits for one, and cannot.
    let mut taken = 3;
    let refused = loop {
        match mark(&database, taken) {
            Ok(()) => taken += 1,
            Err(error) => break error,
        }
        assert!(taken < 1000, "changes pile up");
    };
    assert_read_only(Err(refused), &[".jnd", "space", "merge"]);
    assert!(
        matches!(&*database.health(), [Failure::Maintenance { reason }] if reason.contains("space"))
    );
    for _ in 0..100 {
        assert_read_only(mark(&database, taken), &[".jnd", "space", "merge"]);
    }
    let tried = faults.created.load(SeqCst) - before;
    assert!(tried <= 2, "{tried} attempts");
    assert_eq!(marks(&database), (0..taken).collect::<Vec<_>>());
    faults.is_full.store(false, SeqCst);
    assert!(database.compact().unwrap());
    assert_eq!(database.health(), []);
    mark(&database, taken).unwrap();
    assert_eq!(marks(&database).len() as u64, taken + 1);

    // With little time between the attempts a merge is done by itself once there is room.
    drop(database);
    config.merge.retry = Duration::from_millis(1);
    let database = Database::open(&location, config).unwrap();
    faults.is_full.store(true, SeqCst);
    (0..10).for_each(|number| mark(&database, 1000 + number).unwrap());
    while faults.created.load(SeqCst) < before + tried + 6 {
        std::thread::yield_now();
    }
    let bases = |location: &Path| -> Vec<String> {
        let names = crate::names(location).into_iter();
        names.filter(|name| name.starts_with("base-")).collect()
    };
    let before = bases(&location);
    faults.is_full.store(false, SeqCst);
    while bases(&location) == before {
        std::thread::yield_now();
    }
    assert_eq!(marks(&database).len() as u64, taken + 11);
}

#[test]
fn after_a_sync_that_failed_nothing_is_taken_until_the_store_is_opened_again() {
    let folder = tempfile::tempdir().unwrap();
    let location = store(folder.path(), 3);
    let (faults, config) = faulty();
    let database = Database::open(&location, config.clone()).unwrap();
    mark(&database, 3).unwrap();
    assert_eq!(database.health(), []);
    faults.fails_to_sync.store(true, SeqCst);
    assert_read_only(mark(&database, 4), &["log-1-1.jnd", "the device failed"]);
    assert!(matches!(&*database.health(), [Failure::Log { reason }] if reason.contains("device")));
    // Not even when the device works again: nobody knows what is on it.
    faults.fails_to_sync.store(false, SeqCst);
    for number in 5..8 {
        assert_read_only(mark(&database, number), &["log-1-1.jnd", "opened again"]);
    }
    // What changes nothing may rest on what is not on the device.
    assert_read_only(mark(&database, 4), &["opened again"]);
    assert!(database.compact().is_err());
    assert!(database.checkpoint().is_err());
    assert_eq!(marks(&database), [0, 1, 2, 3]);
    let copy = folder.path().join("copy");
    database
        .backup(&copy)
        .expect("what is seen is on the device");
    assert_eq!(
        marks(&Database::open(&copy, crate::config()).unwrap()),
        [0, 1, 2, 3]
    );
    drop(database);
    let database = Database::open(&location, config).unwrap();
    let found = marks(&database);
    assert!(
        found == [0, 1, 2, 3] || found == [0, 1, 2, 3, 4],
        "{found:?}"
    );
    mark(&database, 5).unwrap();
}

/// The folder fails to sync its names at every step of a merge and of a checkpoint in turn.
#[test]
fn no_transaction_is_acknowledged_that_a_folder_that_fails_to_sync_could_lose() {
    for step in 0..12 {
        for is_merge in [true, false] {
            let folder = tempfile::tempdir().unwrap();
            let location = store(folder.path(), 3);
            let (faults, config) = faulty();
            let database = Database::open(&location, config.clone()).unwrap();
            mark(&database, 3).unwrap();
            faults.folder_syncs_left.store(step, SeqCst);
            let done = match is_merge {
                true => database.compact().map(drop),
                false => database.checkpoint(),
            };
            faults.folder_syncs_left.store(u64::MAX, SeqCst);
            let mut expected = vec![0, 1, 2, 3];
            match mark(&database, 4) {
                Ok(()) => expected.push(4),
                Err(error) => {
                    assert!(done.is_err(), "{error}");
                    assert_read_only(Err(error), &["opened again"]);
                }
            }
            assert_eq!(marks(&database), expected, "step {step}");
            drop(database);
            assert_eq!(
                Database::verify(&location).unwrap().triples,
                expected.len() as u64
            );
            let database = Database::open(&location, config).unwrap();
            assert_eq!(marks(&database), expected, "step {step}");
            mark(&database, 5).unwrap();
            assert!(database.compact().unwrap());
        }
    }
}

/// A file system of a few MiB in a mount namespace of this test's own.
#[test]
fn a_device_that_is_really_full_makes_the_store_read_only() {
    let folder = tempfile::tempdir().unwrap();
    let executable = std::env::current_exe().expect("a test knows its file");
    let script = format!(
        "mount -t tmpfs -o size=12m tmpfs '{0}' && JINDOU_SMALL_DEVICE='{0}' exec '{1}' \
         --exact trouble::on_a_small_device --ignored --nocapture",
        folder.path().display(),
        executable.display()
    );
    let output = std::process::Command::new("unshare")
        .args(["--user", "--map-root-user", "--mount", "sh", "-c", &script])
        .output();
    let said = |output: &std::process::Output| {
        let text = [&*output.stdout, &*output.stderr].concat();
        String::from_utf8_lossy(&text).into_owned()
    };
    match output {
        Ok(output) if said(&output).contains("running 1 test") => {
            assert!(output.status.success(), "{}", said(&output));
        }
        Ok(output) => println!(
            "SKIPPED: a full device (no mount: {})",
            said(&output).trim()
        ),
        Err(error) => println!("SKIPPED: a full device (no unshare: {error})"),
    }
}

#[test]
#[ignore = "run by the test above, on a device of its own"]
fn on_a_small_device() {
    let device = std::env::var("JINDOU_SMALL_DEVICE").expect("the device's folder");
    let location = Path::new(&device).join("store");
    let database = Database::open_or_create(&location, config()).unwrap();
    let text = |number: u64| {
        let long = "x".repeat(100_000);
        format!(
            "INSERT DATA {{ <http://e/{number}> <http://e/long> '{long}{number}' . <http://e/mark> <http://e/is> {number} }}"
        )
    };
    let mut taken = 0;
    let refused = loop {
        match database.update(&text(taken)) {
            Ok(_) => taken += 1,
            Err(error) => break error,
        }
        assert!(taken < 1000, "the device is endless");
    };
    assert_read_only(Err(refused), &["log-1-1.jnd", "space"]);
    assert!(taken > 10);
    let all: Vec<u64> = (0..taken).collect();
    assert_eq!(marks(&database), all);
    assert!(database.compact().is_err());
    assert!(database.checkpoint().is_err());
    assert_eq!(marks(&database), all);
    assert!(database.update(&text(taken)).is_err());
    drop(database);
    // It opens while the device is full.
    let database = Database::open(&location, config()).unwrap();
    assert_eq!(marks(&database), all);
    assert!(database.update(&text(taken)).is_err());
    drop(database);
    let report = Database::verify(&location).unwrap();
    assert_eq!(report.triples, 2 * taken);
}
