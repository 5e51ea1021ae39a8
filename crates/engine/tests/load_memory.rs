//! What does a load onto data hold at most, beside what numbering everything anew would?

use std::fmt::Write as _;
use std::io::Write as _;
use std::num::NonZeroUsize;

use jindou_counting::peak;
use jindou_engine::ingest::{Format, Progress, Source};
use jindou_engine::{Database, LoadOptions};
use jindou_store::bulk::{BulkSink, build};
use oxrdfio::{RdfFormat, RdfParser};

const TYPE: &str = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type";

/// Six triples for each of these people, one literal among them.
fn document(people: std::ops::Range<u64>) -> String {
    let mut text = String::new();
    for n in people {
        let person = format!("<http://example.org/people/of/some/group/{n}>");
        writeln!(
            text,
            "{person} <{TYPE}> <http://example.org/Person{}> .",
            n % 5
        )
        .unwrap();
        writeln!(
            text,
            "{person} <http://example.org/name> \"the name of {n}\" ."
        )
        .unwrap();
        for (place, step) in [(0, 7), (1, 100), (2, 1_001), (3, 20_011)] {
            let other = n.wrapping_mul(step) % (n + 1);
            let other = format!("<http://example.org/people/of/some/group/{other}>");
            writeln!(text, "{person} <http://example.org/knows{place}> {other} .").unwrap();
        }
    }
    text
}

/// Reads from a file, which takes no memory beside what is counted.
fn load(database: &Database, text: &str) {
    let mut file = tempfile::NamedTempFile::new().expect("there is room");
    file.write_all(text.as_bytes()).expect("there is room");
    let source = Source::path(file.path()).with_format(Format::NTriples);
    let options = LoadOptions {
        threads: NonZeroUsize::MIN,
        chunk_bytes: NonZeroUsize::new(64 << 10).expect("it is not zero"),
        ..LoadOptions::default()
    };
    let loaded = database.load(vec![source], &options, &Progress::default());
    loaded.expect("the document is sound");
}

fn sink(text: &str) -> BulkSink {
    let mut sink = BulkSink::new();
    let parser = RdfParser::from_format(RdfFormat::NTriples);
    for quad in parser.for_slice(text) {
        let quad = quad.expect("the document is sound");
        sink.quad(quad.as_ref()).expect("there is room");
    }
    sink
}

#[test]
fn a_load_holds_less_than_numbering_everything_anew_where_the_store_is_larger() {
    const STORED: u64 = 40_000;
    for (loaded, share) in [(10_000, 4), (20_000, 2), (40_000, 1)] {
        let quads = 6 * loaded;
        let (before, text) = (document(0..STORED), document(STORED..STORED + loaded));
        let (anew, base) = peak(|| build(vec![sink(&text), sink(&before)], 0).expect("it fits"));
        drop(base);
        let database = Database::new();
        load(&database, &before);
        let (onto, ()) = peak(|| load(&database, &text));
        println!(
            "a load of one in {share}: {} bytes a loaded quad; anew {}",
            onto / quads,
            anew / quads
        );
        if share > 1 {
            assert!(
                onto < anew,
                "{onto} bytes, {anew} where all is numbered anew"
            );
        }
    }
}
