//! Sources, registrations, states, merges and copies at the same time: does each wait for the others as
//! it should, and is everything there afterwards?

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use jindou_engine::{Database, Fsync, Producer, TupleFormat};

use super::{config, open, with_facts};

const PUSHES: u64 = 1_500;
const SOURCES: u64 = 3;

fn source(database: &Database, number: u64) {
    let name = format!("source {number}");
    for push in 0..PUSHES {
        let time = push * 40;
        let subject = format!("<http://e/{number}-{push}>");
        // Of these some are late, as sources are not equally fast.
        let text = format!(
            "{time}\t{subject} <http://e/fact> \"{push}\" .\n{time}\t{subject} <http://e/p> \"{push}\" .\n"
        );
        for _ in 0..2 {
            let producer = Producer {
                name: &name,
                sequence: push,
            };
            let text = text.clone().into_bytes();
            (database.push_once("s", producer, TupleFormat::Lines, None, text)).unwrap();
        }
    }
}

#[test]
fn nobody_waits_for_ever_and_nothing_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    let location = folder.path().join("store");
    let mut settings = config();
    settings.durability.fsync = Fsync::Never;
    settings.stream_log_bytes = 16 << 10;
    settings.continuous_threads = 2;
    let database = Database::open_or_create(&location, settings).unwrap();
    database
        .create_stream("s", with_facts("http://e/s"))
        .unwrap();
    let made = "PREFIX : <http://e/> REGISTER STREAM made AS CONSTRUCT { ?x :q ?y } \
                FROM STREAM :s [RANGE 400ms STEP 200ms] WHERE { ?x :p ?y }";
    let read = "SELECT (COUNT(*) AS ?n) FROM STREAM made [RANGE 1s STEP 200ms] WHERE { ?x ?p ?y }";
    database.register("made", made).unwrap();
    database.register("read", read).unwrap();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let others = scope.spawn(|| {
            let mut round = 0;
            while !is_over.load(SeqCst) {
                let name = format!("q{}", round % 5);
                let text = format!(
                    "ASK FROM STREAM s [RANGE {}ms] WHERE {{ ?x ?p ?y }}",
                    round + 1
                );
                database.register(&name, &text).unwrap();
                database.set_paused(&name, round % 2 == 0).unwrap();
                database
                    .create_stream(
                        &format!("t{round}"),
                        with_facts(&format!("http://e/t{round}")),
                    )
                    .unwrap();
                database.compact().unwrap();
                database.cut_stream_log().unwrap();
                let copy = folder.path().join(format!("copy{round}"));
                database.backup(&copy).unwrap();
                let copied = open(&copy);
                assert!(copied.stream(&format!("t{round}")).is_some());
                drop(copied);
                std::fs::remove_dir_all(copy).unwrap();
                assert!(database.unregister(&name).unwrap());
                round += 1;
            }
        });
        let sources: Vec<_> = (0..SOURCES)
            .map(|number| {
                scope.spawn({
                    let database = &database;
                    move || source(database, number)
                })
            })
            .collect();
        sources
            .into_iter()
            .for_each(|source| source.join().unwrap());
        is_over.store(true, SeqCst);
        others.join().unwrap();
    });
    let known = |database: &Database| {
        let status = database.stream("s").unwrap();
        (status.tuples + status.late, database.quad_counts().triples)
    };
    database.heartbeat("s", 100_000).unwrap();
    let all = PUSHES * SOURCES;
    assert_eq!(known(&database), (2 * all, all));
    drop(database);
    let database = open(&location);
    assert_eq!(known(&database), (2 * all, all));
    let last = database.continuous_query("read").unwrap().last_instant_ms;
    assert!(last > Some(6_000), "{last:?}");
}
