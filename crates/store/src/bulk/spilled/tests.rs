//! Is what is made by way of files what is made in memory?

use std::collections::BTreeMap;
use std::path::Path;

use oxrdf::{BlankNode, GraphName, Literal, NamedNode, NamedOrBlankNode, Quad, Term};
use proptest::prelude::*;

use super::*;
use crate::bulk::BulkSink;
use crate::directory::SCRATCH;
use crate::identity::Identity;

fn iri(kind: &str, number: u64) -> NamedNode {
    NamedNode::new_unchecked(format!("http://e/{kind}{number}"))
}

fn subject(number: u64) -> NamedOrBlankNode {
    match number % 4 {
        0 => BlankNode::new_unchecked(format!("b{number}")).into(),
        _ => iri("s", number).into(),
    }
}

/// A vertex, a literal or an inline value.
fn object(number: u64) -> Term {
    let text = number / 7;
    match number % 7 {
        0 => Literal::from(text as i64).into(),
        1 => Literal::new_simple_literal(format!("text {text}")).into(),
        2 => Literal::new_language_tagged_literal_unchecked(format!("text {text}"), "en").into(),
        3 => Literal::new_typed_literal(format!("0{text}"), oxrdf::vocab::xsd::INTEGER).into(),
        4 => subject(text).into(),
        5 => iri("p", text % 9).into(),
        _ => iri("s", text).into(),
    }
}

fn quad([s, p, o, g]: [u64; 4]) -> Quad {
    let (predicate, object) = match p % 8 {
        0 => {
            // Classes that are literals or values, too, as some data has them by mistake.
            let class = match o % 13 {
                0 => object(o),
                _ => iri("Class", o % 5).into(),
            };
            (oxrdf::vocab::rdf::TYPE.into_owned(), class)
        }
        number => (iri("p", number), object(o)),
    };
    let graph = match g % 6 {
        0 => iri("g", g / 6).into(),
        1 => BlankNode::new_unchecked(format!("g{}", g / 6 % 3)).into(),
        2 => iri("g", 1).into(),
        _ => GraphName::DefaultGraph,
    };
    Quad::new(subject(s), predicate, object, graph)
}

/// A folder of a store that is to come.
struct Place {
    folder: tempfile::TempDir,
    directory: Directory,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("there is room");
        let directory = Directory::create(&folder.path().join("store")).expect("there is room");
        Self { folder, directory }
    }

    /// What the files of a base hold, by name.
    fn files(&self, base: &Base) -> BTreeMap<String, Vec<u8>> {
        let written = self.directory.write_base(base, 1, Identity::default());
        written
            .expect("there is room")
            .verify()
            .expect("it is whole");
        let entries = std::fs::read_dir(self.directory.path()).expect("it is there");
        let file = |entry: std::io::Result<std::fs::DirEntry>| {
            let entry = entry.expect("it is there");
            let name = entry.file_name().into_string().expect("names are text");
            let bytes = std::fs::read(entry.path()).unwrap_or_default();
            name.ends_with(".jnd").then_some((name, bytes))
        };
        entries.filter_map(file).collect()
    }

    fn load(&self, limits: Limits) -> SpilledLoad {
        let options = DurabilityOptions::default();
        SpilledLoad {
            scratch: Scratch::begin(&self.directory, &options).expect("there is room"),
            limits,
        }
    }
}

/// Loads quads by turns into so many sinks, each of which spills after so many.
fn load(
    load: &SpilledLoad,
    quads: &[Quad],
    sinks: usize,
    spill_after: usize,
) -> Result<Base, StoreError> {
    let mut made: Vec<SpillingSink> = (0..sinks).map(|_| load.sink()).collect();
    for (number, quad) in quads.iter().enumerate() {
        let sink = &mut made[number % sinks];
        sink.quad(quad.as_ref())?;
        if number / sinks % spill_after == spill_after - 1 {
            sink.spill()?;
        }
    }
    let collected: u64 = made.iter().map(SpillingSink::quads).sum();
    assert_eq!(collected, quads.len() as u64);
    load.build_spilled(made, 5, &|_| ())
}

fn assert_same(quads: &[Quad], sinks: usize, spill_after: usize, sorted_bytes: u64) {
    let mut sink = BulkSink::new();
    for quad in quads {
        sink.quad(quad.as_ref()).expect("there are few terms");
    }
    let expected = build(vec![sink], 5).expect("there are few terms");
    let place = Place::new();
    let spilled = place.load(Limits::tiny(sorted_bytes));
    let base = load(&spilled, quads, sinks, spill_after).expect("there is room");
    drop(spilled);
    assert!(!place.directory.path().join(SCRATCH).exists());
    let (expected, files) = (Place::new().files(&expected), place.files(&base));
    assert!(expected.keys().eq(files.keys()));
    for (name, bytes) in &expected {
        assert!(bytes == &files[name], "{name} has other bytes");
    }
}

#[test]
fn nothing_is_loaded_as_nothing() {
    assert_same(&[], 1, 1, 1);
    assert_same(&[quad([1, 2, 3, 4])], 3, 1, 1);
}

#[test]
fn vertices_of_many_homes_and_predicates_of_many_edges_are_the_same() {
    let mut quads = Vec::new();
    for number in 0..6_000_u64 {
        let graph = match number % 10 {
            0..4 => GraphName::DefaultGraph,
            4..7 => iri("many", number % 3).into(),
            _ => iri("few", number / 40).into(),
        };
        let subject = iri("s", number / 2);
        let object = iri("s", number * 7 % 300);
        let predicate = iri("p", number / 2 % 5);
        quads.push(Quad::new(subject.clone(), predicate, object, graph.clone()));
        let text = Literal::from(format!("text {}", number % 700));
        quads.push(Quad::new(
            subject.clone(),
            iri("text", 0),
            text,
            graph.clone(),
        ));
        if number % 3 == 0 {
            let class = iri("C", number % 4);
            quads.push(Quad::new(subject, oxrdf::vocab::rdf::TYPE, class, graph));
        }
    }
    assert_same(&quads, 2, 1_000, 16 << 10);
    assert_same(&quads, 3, 100_000, u64::MAX);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]
    #[test]
    fn a_spilled_load_makes_the_files_of_one_in_memory(
        numbers in prop::collection::vec([0..40_u64, 0..8_u64, 0..300_u64, 0..60_u64], 0..400),
        sinks in 1..4_usize,
        spill_after in 1..90_usize,
        sorted_bytes in prop::sample::select(vec![1_u64, 1 << 10, 1 << 14, 1 << 20]),
    ) {
        let quads: Vec<Quad> = numbers.into_iter().map(quad).collect();
        assert_same(&quads, sinks, spill_after, sorted_bytes);
    }
}

#[test]
fn a_sink_spills_once_it_holds_its_share() {
    let place = Place::new();
    let options = DurabilityOptions::default();
    let load = SpilledLoad::begin(&place.directory, &options, 64 << 20, 2).expect("it is enough");
    let mut sink = load.sink();
    for number in 0..150_000 {
        let quad = Quad::new(
            subject(number),
            iri("p", 1),
            object(number),
            GraphName::DefaultGraph,
        );
        sink.quad(quad.as_ref()).expect("there is room");
    }
    assert!(sink.spills() > 0 && sink.sink.bytes() < 64 << 20);
    let (base, expected) = (load.build(vec![sink], 0, &|_| ()), 150_000);
    assert_eq!(base.expect("there is room").own_quads().0, expected);
}

#[test]
fn too_little_memory_and_lost_bytes_are_errors_that_leave_nothing() {
    let place = Place::new();
    let options = DurabilityOptions::default();
    let begun = SpilledLoad::begin(&place.directory, &options, 8 << 20, 2);
    assert!(matches!(begun, Err(StoreError::LoadMemory { .. })));
    let quads: Vec<Quad> = (0..200).map(|n| quad([n, n, n, n])).collect();
    let spilled = place.load(Limits::tiny(1));
    let mut sink = spilled.sink();
    for quad in &quads {
        sink.quad(quad.as_ref()).expect("there is room");
    }
    sink.spill().expect("there is room");
    let files = std::fs::read_dir(place.directory.path().join(SCRATCH)).expect("it is there");
    for file in files {
        shorten(&file.expect("it is there").path());
    }
    let failed = spilled.build_spilled(vec![sink], 0, &|_| ());
    assert!(matches!(failed, Err(StoreError::Io { .. })), "it is short");
    drop(spilled);
    let left = std::fs::read_dir(place.directory.path()).expect("it is there");
    assert_eq!(left.count(), 1, "the lock alone");
    drop(place.directory);
    let left = std::fs::read_dir(place.folder.path()).expect("it is there");
    assert_eq!(left.count(), 0, "no store was begun");
}

fn shorten(path: &Path) {
    let file = std::fs::File::options().write(true).open(path);
    let file = file.expect("it is there");
    let length = file.metadata().expect("it is there").len();
    file.set_len(length / 2).expect("there is room");
}

#[test]
fn a_sink_looks_at_long_texts_as_they_come() {
    let place = Place::new();
    let options = DurabilityOptions::default();
    let load = SpilledLoad::begin(&place.directory, &options, 64 << 20, 2).expect("it is enough");
    let mut sink = load.sink();
    for number in 0..60 {
        let text = format!("{number} {}", "x".repeat(1 << 20));
        let quad = Quad::new(
            subject(number),
            iri("p", 1),
            Literal::from(text),
            GraphName::DefaultGraph,
        );
        sink.quad(quad.as_ref()).expect("there is room");
        assert!(sink.sink.bytes() < 40 << 20, "after {number} of a megabyte");
    }
    assert!(sink.spills() > 0);
}
