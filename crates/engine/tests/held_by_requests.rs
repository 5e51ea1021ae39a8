//! What requests hold is counted: what the allocator gave at most, and what the pool knew of.

use std::fmt::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jindou_counting::{Peak, peak_beside};
use jindou_engine::ingest::{Format, LoadOptions, Progress, Source};
use jindou_engine::{
    Config, Database, EngineError, MemoryPool, QueryResults, SpillLimits, UpdateOptions,
};

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
    let (peak, made) = peak_beside(counted, || request(&database));
    println!(
        "{name}: {} KiB, of which {} counted",
        peak.bytes >> 10,
        peak.counted >> 10
    );
    all_given_back(&pool);
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
    all_given_back(&pool);
}

/// What a request held is freed by a thread of its own where it is much.
fn all_given_back(pool: &MemoryPool) {
    for _ in 0..100_000_000 {
        if pool.held_bytes() == 0 {
            return;
        }
        std::thread::yield_now();
    }
    panic!("{} bytes are still held", pool.held_bytes());
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
fn the_quads_of_a_hub_in_named_graphs_are_read_in_batches() {
    let _one = one();
    let quads = hub(200_000);
    for query in [
        "SELECT * { VALUES ?s { <e:hub> } GRAPH ?g { ?s ?p ?o } }",
        "SELECT * FROM <e:g0> FROM <e:g1> FROM <e:g2> { <e:hub> ?p ?o }",
    ] {
        let (peak, rows) = held(query, &quads, |database| read(database, query));
        assert_eq!(rows, 200_000);
        // They are read in batches.
        assert!(peak.bytes <= UNCOUNTED, "{query}: {peak:?}");
    }
}

#[test]
fn the_names_of_very_many_graphs_are_counted() {
    let _one = one();
    let mut quads = String::new();
    for number in 0..200_000 {
        writeln!(quads, "<e:s{number}> <e:p> <e:o> <e:g{number}> .").unwrap();
    }
    for query in [
        "SELECT * { GRAPH ?g {} }",
        "SELECT * { GRAPH ?g { ?s <e:p>+ ?o } }",
        "SELECT * { GRAPH ?g { SELECT (COUNT(*) AS ?n) { ?s ?p ?o } } }",
    ] {
        let (peak, _) = held(query, &quads, |database| read(database, query));
        assert!(peak.bytes <= peak.counted + UNCOUNTED, "{query}: {peak:?}");
        refused(256 << 10, &quads, |database| read(database, query));
    }
    // The graphs of edges come with these.
    let query = "SELECT * { GRAPH ?g { ?s ?p ?o } }";
    let (peak, _) = held(query, &quads, |database| read(database, query));
    assert!(peak.bytes <= UNCOUNTED, "{query}: {peak:?}");
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

#[test]
fn new_terms_are_counted_until_they_are_the_database_s() {
    let _one = one();
    let mut text = String::new();
    for number in 0..3000 {
        let literal = "x".repeat(10_000);
        writeln!(text, "<e:s{number}> <e:t> \"{number} {literal}\" .").unwrap();
    }
    let folder = tempfile::tempdir().unwrap();
    for stored in [false, true] {
        let pool = Arc::new(MemoryPool::new(ENOUGH));
        let mut config = Config::default();
        config.memory_pool = Some(Arc::clone(&pool));
        let database = match stored {
            true => Database::open_or_create(&folder.path().join("store"), config).unwrap(),
            false => Database::with_config(config),
        };
        let source = Source::bytes("data.nt", text.clone());
        let counted = {
            let pool = Arc::clone(&pool);
            move || pool.held_bytes()
        };
        let options = UpdateOptions::default();
        let add = || database.add_to_graph(None, vec![source], &options);
        let (peak, done) = peak_beside(counted, add);
        println!("terms, stored {stored}: {peak:?}");
        assert_eq!(done.unwrap().update.inserted, 3000);
        assert!(
            peak.bytes <= peak.counted + UNCOUNTED,
            "stored {stored}: {peak:?}"
        );
        all_given_back(&pool);
    }
}

/// Numbered parts, one after the other.
fn parts(count: usize, part: impl Fn(usize) -> String) -> String {
    (0..count).map(part).collect::<Vec<_>>().join(" ")
}

/// Texts in which patterns find much to do.
fn texts() -> String {
    let mut text = String::new();
    for number in 0..200 {
        let words = parts(100, |n| format!("aab{}-{n}", "bcd".repeat(n % 7)));
        writeln!(text, "<e:s> <e:t> \"{number} {words}\" .").unwrap();
    }
    text
}

/// Kinds of patterns by their number: those of few states, with groups, of large classes, and of
/// very many states.
const PATTERNS: [fn(usize) -> String; 5] = [
    |n| format!("[ab]+c?d{n}"),
    |n| format!("(a|b)+-(c|d)*{n}$"),
    |n| format!("(a|b)*b(a|b|c|d){{9}}x{n}"),
    |n| format!("\\\\w+ \\\\w{n}"),
    |n| format!("[\\\\w-]{{12,16}}y{n}"),
];

#[test]
fn what_compiled_patterns_take_is_counted() {
    let _one = one();
    let quads = texts();
    for kind in PATTERNS {
        let filters = parts(60, |n| format!("FILTER(!REGEX(?t, \"{}\"))", kind(n)));
        let constant = format!("SELECT * {{ ?s <e:t> ?t {filters} }}");
        let values = parts(30, |n| format!("\"{}\"", kind(n)));
        let varying =
            format!("SELECT * {{ VALUES ?p {{ {values} }} ?s <e:t> ?t FILTER(!REGEX(?t, ?p)) }}");
        for query in [constant, varying] {
            let name = query.get(..60).unwrap_or(&query);
            let (peak, _) = held(name, &quads, |database| read(database, &query));
            assert!(peak.bytes <= peak.counted + UNCOUNTED, "{name}: {peak:?}");
            refused(8 << 20, &quads, |database| read(database, &query));
        }
    }
    // Parsing takes much more than the pattern has bytes.
    for flags in ["", "i"] {
        let query = format!(
            "SELECT * {{ ?s <e:t> ?t FILTER(REGEX(?t, \"{}\", \"{flags}\")) }}",
            "\\\\w\\\\W\\\\p{L}".repeat(1000)
        );
        let pool = Arc::new(MemoryPool::new(ENOUGH));
        let database = database(&pool, &quads);
        let counted = {
            let pool = Arc::clone(&pool);
            move || pool.held_bytes()
        };
        let (peak, read) = peak_beside(counted, || self::read(&database, &query));
        println!("a pattern that is too large: {peak:?}");
        let error = read.expect_err("it is too large").to_string();
        assert!(error.contains("when compiled"), "{error}");
        assert!(peak.bytes <= peak.counted + UNCOUNTED, "{peak:?}");
        refused(16 << 20, &quads, |database| self::read(database, &query));
    }
}

#[test]
fn long_texts_that_nested_calls_hold_are_counted() {
    let _one = one();
    let quads = format!("<e:s> <e:t> \"{}\" .\n", "x y".repeat(300_000));
    let nested = (0..60).fold("?t".to_owned(), |inner, n| {
        format!("STRBEFORE(CONCAT(?t, \"{n}\"), {inner})")
    });
    let query = format!("SELECT (STRLEN({nested}) AS ?n) {{ ?s <e:t> ?t }}");
    let (peak, _) = held("nested", &quads, |database| read(database, &query));
    assert!(peak.bytes <= peak.counted + UNCOUNTED, "{peak:?}");
    refused(16 << 20, &quads, |database| read(database, &query));
    let groups = "$1".repeat(100);
    let encoded = (0..130).fold("?t".to_owned(), |inner, _| {
        format!("ENCODE_FOR_URI({inner})")
    });
    for (function, expression) in [
        ("REPLACE", format!("REPLACE(?t, \"(.+)\", \"{groups}\")")),
        ("ENCODE_FOR_URI", encoded),
    ] {
        let query = format!("SELECT (STRLEN({expression}) AS ?n) {{ ?s <e:t> ?t }}");
        let pool = Arc::new(MemoryPool::new(ENOUGH));
        let database = database(&pool, &quads);
        let counted = {
            let pool = Arc::clone(&pool);
            move || pool.held_bytes()
        };
        let (peak, read) = peak_beside(counted, || read(&database, &query));
        println!("{function}: {peak:?}");
        let error = read.expect_err("the text would be too long").to_string();
        assert!(
            error.contains(&format!("{function} made more than")),
            "{error}"
        );
        assert!(peak.bytes <= peak.counted + UNCOUNTED, "{peak:?}");
    }
}

#[test]
fn long_texts_of_groups_are_counted_before_their_batch_ends() {
    let _one = one();
    let mut quads = format!("<e:s> <e:t> \"{}\" .\n", "x y".repeat(300_000));
    for number in 0..100 {
        writeln!(quads, "<e:{number}> <e:n> <e:s> .").unwrap();
    }
    let query = "SELECT ?g (GROUP_CONCAT(?t) AS ?all) { ?g <e:n> ?s . ?s <e:t> ?t } GROUP BY ?g";
    let (peak, _) = held("groups", &quads, |database| read(database, query));
    assert!(peak.bytes <= peak.counted + UNCOUNTED, "{peak:?}");
    refused(16 << 20, &quads, |database| read(database, query));
}
