//! After a large transaction, who waits for the merge of it, and who goes on meanwhile?

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::mpsc::channel;
use std::time::Duration;

use jindou_engine::{Config, Database, EngineError, MergePolicy, UpdateOptions};

use crate::watched::{During, Outcome, Point, Watch};
use crate::{mark, store};

/// Quads of the large transaction; beside its merge there is a place for a quarter of them.
const LARGE: u64 = 4_000;
/// Quads that make a merge due; writers wait for eight times as many.
const DUE: u64 = 100;
/// Quads of a small transaction.
const SMALL: u64 = 50;
/// So long waits who could go on: it fails the test, and hangs no other.
const LONG: Duration = Duration::from_secs(120);

fn config() -> Config {
    let mut merge = MergePolicy::default();
    merge.changes = DUE;
    // No other merge than the one that is due, and nothing else that has its turn.
    merge.idle_changes = u64::MAX;
    merge.term_bytes = u64::MAX;
    merge.idle_term_bytes = u64::MAX;
    merge.fold_changes = u64::MAX;
    merge.fold_idle = LONG;
    let mut config = Config::default();
    config.merge = merge;
    config
}

fn insert(
    database: &Database,
    subject: &str,
    quads: u64,
    limit: Duration,
) -> Result<u64, EngineError> {
    let objects: Vec<String> = (0..quads).map(|number| number.to_string()).collect();
    let objects = objects.join(",");
    let text = format!("INSERT DATA {{ <http://e/{subject}> <http://e/p> {objects} }}");
    let options = UpdateOptions {
        timeout: Some(limit),
        ..UpdateOptions::default()
    };
    Ok(database.update_with(&text, options)?.inserted)
}

#[test]
fn little_goes_on_beside_the_merge_of_a_large_transaction_and_much_waits_for_it() {
    let folder = tempfile::tempdir().unwrap();
    let location = store(folder.path(), 1);
    let watch = Watch::of(&location);
    let mut config = config();
    watch.configure(&mut config);
    let database = Database::open(&location, config).unwrap();
    let (tell_held, held) = channel();
    let (go_on, is_to_go_on) = channel::<()>();
    watch.begin(During::Merge);
    watch.visit(Some(Box::new(move |point| {
        if point == Point::SegmentBegun {
            // The test may have ended.
            let _ = tell_held.send(());
            let _ = is_to_go_on.recv();
        }
        Outcome::Done
    })));
    assert_eq!(insert(&database, "large", LARGE, LONG).unwrap(), LARGE);
    held.recv().expect("the merge has begun");
    let is_free = AtomicBool::new(false);
    std::thread::scope(|scope| {
        // A quarter and one more is too much: a search of which that is known only when it has been executed.
        let much = scope.spawn(|| {
            let text = format!(
                "INSERT {{ ?s <http://e/q> ?o }} WHERE {{ VALUES ?s {{ <http://e/large> }} ?s <http://e/p> ?o FILTER(?o <= {}) }}",
                LARGE / 4
            );
            let report = database.update(&text);
            (report.map(|report| report.inserted), is_free.load(SeqCst))
        });
        let mut answered = 0;
        while answered <= LARGE / 4 {
            let done = insert(&database, &format!("s{answered}"), SMALL, LONG);
            assert_eq!(done.expect("it goes on beside the merge"), SMALL);
            answered += SMALL;
        }
        // There is a place for no more.
        let waits = insert(&database, "late", SMALL, Duration::from_millis(10));
        assert!(
            matches!(waits, Err(EngineError::Timeout { .. })),
            "{waits:?}"
        );
        is_free.store(true, SeqCst);
        drop(go_on);
        let (inserted, was_free) = much.join().expect("it does not panic");
        assert!(was_free, "it waited for the merge");
        assert_eq!(inserted.expect("it goes on"), LARGE / 4 + 1);
    });
    assert_eq!(insert(&database, "after", SMALL, LONG).unwrap(), SMALL);
    mark(&database, 1).unwrap();
}
