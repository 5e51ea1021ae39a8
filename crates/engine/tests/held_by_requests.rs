//! What requests hold is counted: what the allocator gave at most, and what the pool knew of.

mod counting;

use std::fmt::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use counting::{Peak, peak};
use jindou_engine::ingest::{Format, LoadOptions, Progress, Source};
use jindou_engine::{Config, Database, EngineError, MemoryPool, QueryResults, SpillLimits};

/// One request is measured at a time.
static ONE: Mutex<()> = Mutex::new(());

fn one() -> MutexGuard<'static, ()> {
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Batches, plans, buffers of one step and what a test itself takes.
const UNCOUNTED: u64 = 12 << 20;
/// A pool of this size is never empty here.
const ENOUGH: u64 = 8 << 30;

fn database(pool: &Arc<MemoryPool>, quads: &str) -> Database {
    let mut config = Config::default();
    config.memory_pool = Some(Arc::clone(pool));
    config.spill = SpillLimits::off();
    config.threads = 1;
    let database = Database::with_config(config);
    let source = Source::bytes("data.nq", quads).with_format(Format::NQuads);
    database
        .load(vec![source], &LoadOptions::default(), &Progress::default())
        .unwrap();
    database
}

/// Reads the answer of a query to its end; gives its rows or triples.
fn read(database: &Database, query: &str) -> Result<usize, EngineError> {
    Ok(match database.query(query)? {
        QueryResults::Solutions(mut solutions) => {
            let mut rows = 0;
            while let Some(batch) = solutions.next_batch()? {
                rows += batch.rows();
            }
            rows
        }
        QueryResults::Boolean(answer) => usize::from(answer),
        QueryResults::Graph(mut graph) => {
            let mut triples = 0;
            while let Some(batch) = graph.next_batch()? {
                triples += batch.len();
            }
            triples
        }
    })
}

/// Makes a request with a pool that is large enough, and says what it held.
fn held<T>(
    name: &str,
    quads: &str,
    request: impl FnOnce(&Database) -> Result<T, EngineError>,
) -> (Peak, T) {
    let pool = Arc::new(MemoryPool::new(ENOUGH));
    let database = database(&pool, quads);
    let counted = {
        let pool = Arc::clone(&pool);
        move || pool.held_bytes()
    };
    let (peak, made) = peak(counted, || request(&database));
    println!(
        "{name}: {} KiB, of which {} counted",
        peak.bytes >> 10,
        peak.counted >> 10
    );
    assert_eq!(pool.held_bytes(), 0, "{name}");
    (peak, made.unwrap())
}

/// The request ends with the typed error where the pool has not enough.
#[track_caller]
fn refused<T>(
    pool_bytes: u64,
    quads: &str,
    request: impl FnOnce(&Database) -> Result<T, EngineError>,
) {
    let pool = Arc::new(MemoryPool::new(pool_bytes));
    let database = database(&pool, quads);
    match request(&database) {
        Err(EngineError::PoolExhausted { limit_bytes }) => assert_eq!(limit_bytes, pool_bytes),
        Err(error) => panic!("another error: {error}"),
        Ok(_) => panic!("it needs no more than {pool_bytes} bytes"),
    }
    assert_eq!(pool.held_bytes(), 0);
}

/// Many subjects with a number each.
fn numbers(count: usize) -> String {
    let mut text = String::new();
    for number in 0..count {
        writeln!(text, "<e:s{number}> <e:n> <e:{number}> .").unwrap();
    }
    text
}

#[test]
fn a_long_template_is_filled_in_batches() {
    let _one = one();
    let template: String = (0..3000).map(|n| format!("?s <e:p{n}> ?o . ")).collect();
    let query = format!("CONSTRUCT {{ {template} }} {{ ?s <e:n> ?o }}");
    let (peak, triples) = held("template", &numbers(2000), |database| {
        read(database, &query)
    });
    assert_eq!(triples, 2000 * 3000);
    // The text is counted while it is read alone.
    assert!(
        peak.bytes <= UNCOUNTED.max(peak.counted) + UNCOUNTED,
        "{peak:?}"
    );
}

#[test]
fn triples_that_others_may_repeat_are_counted_before_they_are_kept() {
    let _one = one();
    let quads = numbers(200_000);
    let query = "CONSTRUCT { ?o <e:p> ?x } { ?s <e:n> ?o BIND(1 AS ?x) }";
    let (peak, triples) = held("repeats", &quads, |database| read(database, query));
    assert_eq!(triples, 200_000);
    assert!(peak.bytes <= peak.counted + UNCOUNTED, "{peak:?}");
    refused(2 << 20, &quads, |database| read(database, query));
}

/// Very many quads of one subject in few named graphs.
fn hub(neighbours: usize) -> String {
    let mut text = String::new();
    for number in 0..neighbours {
        writeln!(text, "<e:hub> <e:p> <e:{number}> <e:g{}> .", number % 3).unwrap();
    }
    text
}

#[test]
fn the_quads_of_a_hub_in_named_graphs_are_counted() {
    let _one = one();
    let quads = hub(200_000);
    for query in [
        "SELECT * { VALUES ?s { <e:hub> } GRAPH ?g { ?s ?p ?o } }",
        "SELECT * FROM <e:g0> FROM <e:g1> FROM <e:g2> { <e:hub> ?p ?o }",
    ] {
        let (peak, rows) = held(query, &quads, |database| read(database, query));
        assert_eq!(rows, 200_000);
        assert!(peak.bytes <= peak.counted + UNCOUNTED, "{query}: {peak:?}");
        refused(2 << 20, &quads, |database| read(database, query));
    }
}

#[test]
fn the_quads_of_a_graph_that_is_emptied_are_counted() {
    let _one = one();
    let (named, default) = (hub(200_000), numbers(200_000));
    for (update, quads) in [
        ("CLEAR DEFAULT", &default),
        ("CLEAR ALL", &named),
        ("DROP NAMED", &named),
        ("DROP GRAPH <e:g0>", &named),
        ("DELETE WHERE { ?s ?p ?o }", &default),
        ("DELETE WHERE { GRAPH ?g { ?s ?p ?o } }", &named),
        ("INSERT { ?s <e:m> ?o } WHERE { ?s ?p ?o }", &default),
    ] {
        let (peak, _) = held(update, quads, |database| database.update(update));
        assert!(peak.bytes <= peak.counted + UNCOUNTED, "{update}: {peak:?}");
        refused(8 << 20, quads, |database| database.update(update));
    }
}
