//! What does a query with very many variables hold, and does its account know?
//!
//! The allocator counts: each new peak is noted with what the account says at that moment.

use std::fmt::Write as _;
use std::sync::Mutex;

use jindou_counting::{Peak, peak_beside};
use jindou_engine::ingest::{Format, LoadOptions, Progress, Source};
use jindou_engine::{Config, Database, QueryOptions, QueryProgress, QueryResults, SpillLimits};

/// One query is measured at a time.
static ONE: Mutex<()> = Mutex::new(());

const SUBJECTS: usize = 3_000;
const PREDICATES: usize = 400;
/// What a part of a query may hold: a batch, and what is made of the next.
const PART: u64 = 640 << 10;
/// Plans, buffers of one step and what a test itself takes.
const UNCOUNTED: u64 = 12 << 20;

/// Each subject has each of the first predicates, and one number.
fn database(threads: usize) -> Database {
    let mut text = String::new();
    for subject in 0..SUBJECTS {
        writeln!(text, "<e:s{subject}> <e:n> {subject} .").unwrap();
        for predicate in 0..8 {
            writeln!(
                text,
                "<e:s{subject}> <e:p{predicate}> <e:o{}> .",
                subject % 50
            )
            .unwrap();
        }
    }
    for predicate in 8..PREDICATES {
        writeln!(text, "<e:s0> <e:p{predicate}> <e:o0> .").unwrap();
    }
    let mut config = Config::default();
    config.query_memory_bytes = 4 << 30;
    config.spill = SpillLimits::off();
    config.threads = threads;
    let database = Database::with_config(config);
    let source = Source::bytes("wide.ttl", text).with_format(Format::Turtle);
    database
        .load(vec![source], &LoadOptions::default(), &Progress::default())
        .unwrap();
    database
}

/// Runs a query and gives what it held at most, and what was counted of that.
fn peak_of(database: &Database, query: &str, batches: usize) -> Peak {
    let progress = QueryProgress::default();
    let options = QueryOptions {
        progress: Some(progress.clone()),
        ..QueryOptions::default()
    };
    let counted = move || progress.memory_bytes();
    let run = || match database.query_with(query, options).unwrap() {
        QueryResults::Solutions(mut solutions) => {
            for _ in 0..batches {
                if solutions.next_batch().unwrap().is_none() {
                    break;
                }
            }
        }
        QueryResults::Boolean(_) => {}
        QueryResults::Graph(_) => panic!("no shape is a CONSTRUCT"),
    };
    peak_beside(counted, run).0
}

fn join(count: usize, part: impl Fn(usize) -> String) -> String {
    (0..count).map(part).collect::<Vec<_>>().join(" ")
}

/// A shape of query by the number of its parts.
type Shape = (&'static str, fn(usize) -> String);

const SHAPES: &[Shape] = &[
    ("OPTIONAL that matches", |count| {
        let parts = join(count, |n| format!("OPTIONAL {{ ?s <e:p{}> ?v{n} }}", n % 8));
        format!("SELECT * {{ ?s ?p ?o {parts} }}")
    }),
    ("OPTIONAL that mostly does not", |count| {
        let parts = join(count, |n| format!("OPTIONAL {{ ?s <e:p{n}> ?v{n} }}"));
        format!("SELECT * {{ ?s ?p ?o {parts} }}")
    }),
    ("patterns", |count| {
        let parts = join(count, |n| format!("?s <e:p{}> ?v{n} .", n % 8));
        format!("SELECT * {{ ?s <e:n> ?o . {parts} }}")
    }),
    ("UNION", |count| {
        let parts = join(count, |n| format!("UNION {{ ?s <e:p{}> ?v{n} }}", n % 8));
        format!("SELECT * {{ {{ ?s <e:n> ?o }} {parts} }}")
    }),
    ("BIND", |count| {
        let parts = join(count, |n| format!("BIND(?o + {n} AS ?v{n})"));
        format!("SELECT * {{ ?s <e:n> ?o {parts} }}")
    }),
    ("nested SELECT", |count| {
        // Fewer, as brackets are bounded.
        let count = count / 4;
        let open = join(count, |n| format!("{{ SELECT * {{ BIND({n} AS ?v{n})"));
        format!("SELECT * {{ {open} ?s <e:n> ?o {} }}", "}}".repeat(count))
    }),
    ("SELECT beside SELECT", |count| {
        let parts = join(count, |n| {
            format!("{{ SELECT ?s ?v{n} {{ ?s <e:p{}> ?v{n} }} }}", n % 8)
        });
        format!("SELECT * {{ ?s <e:n> ?o {parts} }}")
    }),
    ("MINUS", |count| {
        let parts = join(count, |n| format!("MINUS {{ ?s <e:p{}> <e:none> }}", n % 8));
        format!("SELECT * {{ ?s ?p ?o {parts} }}")
    }),
    ("EXISTS", |count| {
        let parts = join(count, |n| {
            format!(
                "FILTER NOT EXISTS {{ ?s <e:p{}> ?v{n} . ?v{n} <e:n> ?s }}",
                n % 8
            )
        });
        format!("SELECT * {{ ?s ?p ?o {parts} }}")
    }),
    ("VALUES", |count| {
        let vars = join(count, |n| format!("?v{n}"));
        let row = join(count, |n| format!("<e:v{n}>"));
        let rows = join(20, |_| format!("({row})"));
        format!("SELECT * {{ ?s <e:n> ?o VALUES ({vars}) {{ {rows} }} }}")
    }),
    ("GROUP BY", |count| {
        let keys = join(count, |n| format!("(?o + {n} AS ?k{n})"));
        format!("SELECT (COUNT(*) AS ?n) {{ ?s <e:n> ?o }} GROUP BY {keys}")
    }),
    ("ORDER BY", |count| {
        let keys = join(count, |n| format!("(?o + {n})"));
        format!("SELECT * {{ ?s <e:n> ?o }} ORDER BY {keys}")
    }),
];

#[test]
fn what_a_wide_query_holds_is_linear_in_its_width_and_counted() {
    let _one = ONE.lock().unwrap();
    for threads in [1, 3] {
        let database = database(threads);
        for (name, query) in SHAPES {
            for count in [50, 100, 200, 400] {
                let peak = peak_of(&database, &query(count), 3);
                let line = format!(
                    "{name} x {count} on {threads} threads: {} KiB, of which {} counted",
                    peak.bytes >> 10,
                    peak.counted >> 10
                );
                println!("{line}");
                let most = UNCOUNTED + count as u64 * PART;
                assert!(peak.bytes <= most, "{line}: more than {most} bytes");
                let least = peak.bytes.saturating_sub(UNCOUNTED) / 2;
                assert!(peak.counted >= least, "{line}: less than {least} bytes");
            }
        }
    }
}
