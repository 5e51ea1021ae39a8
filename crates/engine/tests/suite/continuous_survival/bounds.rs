//! How much does the log of streams take, and what does it cost to register?

use std::sync::atomic::Ordering::SeqCst;

use jindou_engine::Database;
use jindou_store::log::Fsync;

use super::mortal::Life;
use super::{config, durable, push};

#[test]
fn the_log_is_as_long_as_what_is_needed() {
    const LIMIT: u64 = 64 << 10;
    let folder = tempfile::tempdir().unwrap();
    let location = folder.path().join("store");
    let mut settings = config();
    settings.durability.fsync = Fsync::Never;
    settings.stream_log_bytes = LIMIT;
    let database = Database::open_or_create(&location, settings).unwrap();
    database.create_stream("s", durable("http://e/s")).unwrap();
    let text = "SELECT ?x FROM STREAM <http://e/s> [RANGE 1s STEP 1s] WHERE { ?x ?p ?y }";
    database.register("q", text).unwrap();
    let (mut pushed, mut longest) = (0, 0);
    for second in 0..600_i64 {
        let line = |tuple| {
            let time = second * 1000 + tuple;
            format!("{time}\t<http://e/{tuple}> <http://e/p> \"text {second}\" .\n")
        };
        let text: String = (0..40).map(line).collect();
        pushed += text.len() as u64;
        push(&database, "s", &text);
        let (bytes, _) = database.stream_log().unwrap();
        longest = longest.max(bytes);
    }
    assert!(pushed > 10 * LIMIT, "{pushed} bytes");
    // Results are kept up to their number.
    let results = 600 * 40 * 40;
    assert!(longest < 3 * LIMIT + results, "{longest} bytes");
    let names = std::fs::read_dir(location.join("streams")).unwrap().count();
    assert_eq!(names, 2, "a state and a file of the log");
}

#[test]
fn registrations_cost_what_they_say() {
    let folder = tempfile::tempdir().unwrap();
    let location = folder.path().join("store");
    let life = Life::of(u64::MAX);
    let mut settings = config();
    settings.durability.fsync = Fsync::Never;
    life.configure(&mut settings);
    let database = Database::open_or_create(&location, settings).unwrap();
    database.create_stream("s", durable("http://e/s")).unwrap();
    let register = |numbers: std::ops::Range<u32>| {
        let before = life.written.load(SeqCst);
        for number in numbers {
            let text =
                format!("ASK FROM STREAM <http://e/s> [RANGE 1s] WHERE {{ ?x ?p {number} }}");
            database.register(&format!("q{number:05}"), &text).unwrap();
        }
        life.written.load(SeqCst) - before
    };
    let first = register(0..1_000);
    let others = register(1_000..10_000);
    assert!(others < 10 * first, "{first} bytes, then {others}");
    assert!(first < 1_000 * 400, "{first} bytes");
    drop(database);
    let database = Database::open(&location, config()).unwrap();
    assert_eq!(database.continuous_queries().len(), 10_000);
}
