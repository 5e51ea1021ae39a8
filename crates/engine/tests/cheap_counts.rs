//! What is asked for often costs nothing that grows with the data: counted by the allocator.

use std::fmt::Write as _;

use jindou_counting::peak;
use jindou_engine::ingest::{Format, LoadOptions, Progress, Source};
use jindou_engine::{Config, Database};

const PREDICATES: u64 = 2000;

/// One test, as there is one counter.
#[test]
fn counts_make_no_table_of_predicates() {
    let mut text = String::new();
    for number in 0..PREDICATES {
        writeln!(text, "<e:a> <e:p{number}> <e:b> .").expect("a String takes all");
    }
    let mut config = Config::default();
    config.threads = 1;
    let database = Database::with_config(config);
    let document = Source::bytes("a.nt", text).with_format(Format::NTriples);
    database
        .load(
            vec![document],
            &LoadOptions::default(),
            &Progress::default(),
        )
        .expect("the document is sound");
    let (bytes, counts) = peak(|| database.quad_counts());
    assert_eq!((bytes, counts.total()), (0, PREDICATES));
    let (bytes, statistics) = peak(|| database.statistics());
    assert_eq!(statistics.triples, PREDICATES);
    assert!(bytes > 16 * PREDICATES, "the table is seen: {bytes}");
}
