//! Transactions that are refused late: what do they leave in memory and in the log?

use std::path::Path;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jindou_engine::{
    CancellationToken, Config, Database, EngineError, MemoryPool, ServiceCall, ServiceCaller,
    ServiceError, ServiceNext, ServiceRows, UpdateOptions,
};

use crate::faults::Faults;
use crate::{config, mark, marks, store};

/// Bytes of the text that a refused request would have added.
const TEXT_BYTES: usize = 1 << 20;
const TIMES: usize = 20;

/// A request that adds a text, a new predicate and a new IRI, and then does `then`.
fn request(number: usize, then: &str) -> String {
    let text = "x".repeat(TEXT_BYTES);
    format!(
        "INSERT DATA {{ <http://e/new{number}> <http://e/p{number}> '{number}{text}' }} ; {then}"
    )
}

/// What a database holds: vertices, literals, predicates' quads and bytes of changes.
fn figures(database: &Database) -> (u64, u64, u64, u64) {
    let figures = database.statistics();
    (
        figures.vertices,
        figures.dictionary_literals,
        figures.changes,
        figures.change_bytes,
    )
}

/// Has requests refused, then makes one small change, and compares with a database in which no
/// request was refused.
#[track_caller]
fn assert_nothing_is_left(
    configure: impl Fn(&mut Config),
    mut refuse: impl FnMut(&Database, usize) -> EngineError,
) {
    let folders = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let mut all = Vec::new();
    for (folder, times) in folders.iter().zip([0, TIMES]) {
        let location = store(folder.path(), 1);
        let mut config = config();
        configure(&mut config);
        let open = |location: &Path| Database::open(location, config.clone()).unwrap();
        let database = open(&location);
        let before = figures(&database);
        for number in 0..times {
            refuse(&database, number);
            assert_eq!(figures(&database), before);
        }
        mark(&database, 1).unwrap();
        let after = figures(&database);
        drop(database);
        let database = open(&location);
        assert_eq!(figures(&database), after, "as before the restart");
        assert_eq!(marks(&database), [0, 1]);
        all.push((after, database.recovery().bytes));
        drop(database);
        Database::verify(&location).unwrap();
    }
    assert_eq!(all[0], all[1]);
}

#[test]
fn a_request_refused_for_a_graph_that_exists_leaves_nothing() {
    assert_nothing_is_left(
        |_| {},
        |database, number| {
            let then = "CREATE GRAPH <http://e/g> ; CREATE GRAPH <http://e/g>";
            let refused = database.update(&request(number, then)).unwrap_err();
            assert!(matches!(refused, EngineError::GraphExists { .. }));
            refused
        },
    );
}

#[test]
fn a_request_refused_by_a_later_where_leaves_nothing() {
    assert_nothing_is_left(
        |config| config.services = jindou_engine::AddressPolicy::None,
        |database, number| {
            let then = "INSERT { ?s <http://e/o> ?o } WHERE { SERVICE <http://e/> { ?s ?p ?o } }";
            let refused = database.update(&request(number, then)).unwrap_err();
            assert!(
                matches!(refused, EngineError::ServiceNotAllowed { .. }),
                "{refused}"
            );
            refused
        },
    );
}

/// Cancels what is to be cancelled when it is called, or lets the caller's time pass.
#[derive(Debug, Default)]
struct Ender(Mutex<Option<CancellationToken>>);

impl ServiceCaller for Ender {
    fn call(&self, _call: &ServiceCall<'_>) -> Result<Box<dyn ServiceRows>, ServiceError> {
        if let Some(cancellation) = &*self.0.lock().unwrap() {
            cancellation.cancel();
        }
        Ok(Box::new(Silence))
    }
}

/// No solutions, and no end of them.
struct Silence;

impl ServiceRows for Silence {
    fn next(&mut self, _wait: Duration) -> Result<ServiceNext, ServiceError> {
        Ok(ServiceNext::Rows(Vec::new()))
    }

    fn received_bytes(&self) -> u64 {
        0
    }
}

const ENDLESS: &str =
    "INSERT { ?s <http://e/o> ?o } WHERE { SERVICE <http://e/> { ?s <http://e/q> ?o } }";

#[test]
fn a_request_that_was_cancelled_or_ran_out_of_time_leaves_nothing() {
    let ender = Arc::new(Ender::default());
    for is_cancelled in [true, false] {
        assert_nothing_is_left(
            |config| config.service_caller = Some(Arc::clone(&ender) as _),
            |database, number| {
                let mut options = UpdateOptions::default();
                match is_cancelled {
                    true => options.cancellation = Some(CancellationToken::new()),
                    false => options.timeout = Some(Duration::from_millis(30)),
                }
                (*ender.0.lock().unwrap()).clone_from(&options.cancellation);
                let refused = database
                    .update_with(&request(number, ENDLESS), options)
                    .expect_err("it never ends");
                assert!(matches!(
                    refused,
                    EngineError::Cancelled | EngineError::Timeout { .. }
                ));
                refused
            },
        );
    }
}

#[test]
fn a_request_that_found_no_space_on_disk_leaves_nothing() {
    let faults = Faults::new();
    assert_nothing_is_left(
        |config| faults.configure(config),
        |database, number| {
            faults.is_log_full.store(true, SeqCst);
            let refused = database.update(&request(number, "")).unwrap_err();
            assert!(matches!(refused, EngineError::ReadOnly { .. }));
            faults.is_log_full.store(false, SeqCst);
            refused
        },
    );
}

#[test]
fn new_terms_are_counted_while_a_transaction_runs_and_refused_beyond_the_pool() {
    // The longest string is held while the text is read, too.
    let pool = Arc::new(MemoryPool::new(5 << 20));
    let mut config = config();
    config.memory_pool = Some(Arc::clone(&pool));
    let database = Database::with_config(config);
    let before = figures(&database);
    let insert = |texts: usize| {
        let text = "x".repeat(TEXT_BYTES);
        let quads: Vec<String> = (0..texts)
            .map(|n| format!("<http://e/a> <http://e/p> '{n}{text}'"))
            .collect();
        database.update(&format!("INSERT DATA {{ {} }}", quads.join(" . ")))
    };
    for _ in 0..3 {
        let refused = insert(8).unwrap_err();
        assert!(matches!(refused, EngineError::PoolExhausted { .. }));
        assert_eq!(pool.held_bytes(), 0);
        assert_eq!(figures(&database), before);
    }
    insert(4).unwrap();
    assert_eq!(pool.held_bytes(), 0);
}
