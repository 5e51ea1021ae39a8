//! Loads that keep within a given memory: is the store the one of a load that does not, and what is
//! left of one that failed or was killed?

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::ErrorKind;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::atomic::Ordering;

use jindou_engine::ingest::{Format, Progress, Source};
use jindou_engine::{Config, Database, EngineError, LoadOptions, LoadReport};

use crate::faults::Faults;
use crate::{config, names};

/// The least that a load by one thread may be given.
pub(crate) const LEAST_BYTES: u64 = 48 << 20;

/// Quads in the default graph and in named graphs: more than a sink may hold of that memory.
pub(crate) fn document() -> String {
    let mut text = String::new();
    for n in 0..60_000 {
        let graph = match n % 3 {
            0 => format!(" <http://e/graph{}>", n / 3_000),
            _ => String::new(),
        };
        let (subject, other) = (n / 4, n * 7 % 15_000);
        let object = match n % 4 {
            0 => format!("\"the name of number {n}\"@en"),
            1 => format!("\"{n}\"^^<http://www.w3.org/2001/XMLSchema#integer>"),
            2 => format!("_:node{other}"),
            _ => format!("<http://example.org/a/longer/name/of/person/{other}>"),
        };
        writeln!(
            text,
            "<http://example.org/a/longer/name/of/person/{subject}> <http://e/p{}> {object}{graph} .",
            n % 4
        )
        .expect("a string takes all");
    }
    text
}

pub(crate) fn bounded(bytes: u64) -> Config {
    let mut config = config();
    config.load_memory_bytes = Some(bytes);
    config
}

pub(crate) fn options() -> LoadOptions {
    LoadOptions {
        threads: NonZeroUsize::MIN,
        ..LoadOptions::default()
    }
}

fn source(text: &str) -> Vec<Source> {
    vec![Source::bytes("data.nq", text.to_owned()).with_format(Format::NQuads)]
}

pub(crate) fn create(
    location: &Path,
    text: &str,
    config: Config,
) -> Result<LoadReport, EngineError> {
    let (options, progress) = (options(), Progress::default());
    let made = Database::create(location, source(text), &options, &progress, config);
    made.map(|(_, report)| report)
}

/// The files of terms and edges: these do not say which store they are of.
pub(crate) fn contents(location: &Path) -> BTreeMap<String, Vec<u8>> {
    let names = names(location).into_iter();
    let names = names.filter(|name| name.starts_with("terms-") || name.starts_with("edges-"));
    let content = |name: String| {
        let bytes = fs::read(location.join(&name)).expect("it is there");
        (name, bytes)
    };
    names.map(content).collect()
}

#[test]
fn a_bounded_load_makes_the_same_store() {
    let folder = tempfile::tempdir().expect("there is room");
    let [free, within, later] = ["free", "within", "later"].map(|name| folder.path().join(name));
    let text = document();
    let expected = create(&free, &text, config()).expect("it is sound");
    let report = create(&within, &text, bounded(LEAST_BYTES)).expect("it is sound");
    assert_eq!(
        (report.triples, report.named_quads),
        (expected.triples, expected.named_quads)
    );
    assert!(contents(&within) == contents(&free), "the same ids");
    assert_eq!(names(&within), names(&free));
    // An empty store is filled as well, and queries go on.
    let faults = Faults::new();
    let mut config = bounded(LEAST_BYTES);
    faults.configure(&mut config);
    let database = Database::open_or_create(&later, config).expect("there is room");
    let progress = Progress::default();
    let report = database.load(source(&text), &options(), &progress);
    assert_eq!(report.expect("it is sound").triples, expected.triples);
    assert!(progress.step().is_some(), "it said what it did");
    drop(database);
    let opened = Database::open(&later, self::config()).expect("it is whole");
    assert_eq!(opened.statistics().named_quads, expected.named_quads);
    assert!(!later.join(".jindou-loading").exists());
}

#[test]
fn a_bounded_load_that_finds_no_space_leaves_nothing() {
    let folder = tempfile::tempdir().expect("there is room");
    let location = folder.path().join("store");
    let text = document();
    let faults = Faults::new();
    faults.set_full(true);
    let mut config = bounded(LEAST_BYTES);
    faults.configure(&mut config);
    let failed = create(&location, &text, config.clone()).expect_err("there is no space");
    assert!(
        matches!(&failed, EngineError::Io { source, .. } if source.kind() == ErrorKind::StorageFull),
        "{failed}"
    );
    assert!(!location.exists(), "no store was begun");
    faults.set_full(false);
    create(&location, &text, config).expect("there is space");
}

#[test]
fn what_a_killed_load_left_goes_when_the_store_is_made_or_opened() {
    let folder = tempfile::tempdir().expect("there is room");
    let location = folder.path().join("store");
    let leave = || {
        fs::create_dir_all(location.join(".jindou-loading")).expect("there is room");
        fs::write(location.join(".jindou-loading").join("7"), "left").expect("there is room");
    };
    leave();
    let foreign = create(&location, &document(), bounded(LEAST_BYTES));
    assert!(foreign.is_err(), "no store was begun there");
    fs::write(location.join("LOCK"), "").expect("there is room");
    let opened = Database::open(&location, config());
    assert!(opened.is_err(), "it is no store yet");
    create(&location, &document(), bounded(LEAST_BYTES)).expect("there is room");
    assert!(!location.join(".jindou-loading").exists());
    leave();
    drop(Database::open(&location, config()).expect("it is whole"));
    assert!(!location.join(".jindou-loading").exists());
}

#[test]
fn a_store_that_failed_to_be_made_leaves_no_prefixes_and_no_files_for_the_next() {
    let folder = tempfile::tempdir().expect("there is room");
    let location = folder.path().join("store");
    let faults = Faults::new();
    let mut config = config();
    faults.configure(&mut config);
    let document = || {
        let text = "@prefix e: <http://e/> . e:s e:p e:o .";
        vec![Source::bytes("data.ttl", text).with_format(Format::Turtle)]
    };
    let (options, progress) = (options(), Progress::default());
    faults.fails_to_sync.store(true, Ordering::SeqCst);
    let failed = Database::create(&location, document(), &options, &progress, config.clone());
    assert!(failed.is_err(), "the device failed");
    assert!(names(&location).iter().any(|name| name == "PREFIXES"));
    // As of a process that was killed while it wrote them.
    fs::write(location.join("terms-1-9.jnd"), "left").expect("there is room");
    faults.fails_to_sync.store(false, Ordering::SeqCst);
    let made = Database::open_or_create(&location, config).expect("there is room");
    assert_eq!(made.prefixes().len(), 0);
    let names = names(&location);
    assert!(
        !names.iter().any(|name| name == "terms-1-9.jnd"),
        "{names:?}"
    );
}

#[test]
fn a_bound_that_cannot_be_kept_is_refused_by_name() {
    let folder = tempfile::tempdir().expect("there is room");
    let location = folder.path().join("store");
    let text = "<http://e/s> <http://e/p> 1 .".replace(" 1", " \"1\"");
    let small = create(&location, &text, bounded(1 << 20)).expect_err("it is too small");
    assert!(small.to_string().contains("50331648 bytes"), "{small}");
    assert!(!location.exists());
    create(&location, &text, bounded(LEAST_BYTES)).expect("it fits");
    let again = create(&location, &text, bounded(LEAST_BYTES)).expect_err("it has data");
    assert!(matches!(again, EngineError::BoundedLoad { .. }), "{again}");
    let in_memory = Database::with_config(bounded(LEAST_BYTES));
    let loaded = in_memory.load(source(&text), &options(), &Progress::default());
    assert!(matches!(loaded, Err(EngineError::BoundedLoad { .. })));
}
