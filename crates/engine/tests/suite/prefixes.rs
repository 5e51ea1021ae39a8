//! Does a database keep the prefixes of what is loaded, through all that becomes of its folder?

use std::path::Path;

use jindou_engine::ingest::{Format, Progress, Source};
use jindou_engine::{
    Config, Database, EngineError, LoadOptions, LoadPolicy, PrefixTable, UpdateOptions,
};

const TURTLE: &str = "@prefix e: <http://e/> . @prefix : <http://default/> .
    PREFIX g: <rel#> e:a e:p :b . @prefix late: <http://late/> .";
const XML: &str = r#"<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"
    xmlns:x="http://x/ns#" xmlns:e="http://another/">
    <rdf:Description rdf:about="http://e/a"><x:p>1</x:p></rdf:Description></rdf:RDF>"#;
const JSON: &str = r#"{"@context": {"j": "http://j/", "name": "http://j/name", "list": {"@id": "http://j/list"}},
    "@id": "j:a", "name": "A", "j:b": {"@id": "j:c"}}"#;
const TRIG: &str = "@prefix t: <http://t/> . t:g { t:a t:b t:c }";

fn source(text: &str, format: Format) -> Source {
    Source::bytes("document", text.to_owned())
        .with_format(format)
        .with_base_iri("http://base/x")
}

fn load(database: &Database, text: &str, format: Format) -> Result<u64, EngineError> {
    let (options, progress) = (LoadOptions::default(), Progress::default());
    let report = database.load(vec![source(text, format)], &options, &progress)?;
    Ok(report.quads)
}

fn known(database: &Database) -> Vec<(String, String)> {
    let table = database.prefixes();
    let pairs = table
        .iter()
        .map(|(name, iri)| (name.to_owned(), iri.to_owned()));
    pairs.collect()
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    let pairs = expected
        .iter()
        .map(|(name, iri)| ((*name).to_owned(), (*iri).to_owned()));
    pairs.collect()
}

#[test]
fn each_format_brings_its_prefixes_and_a_name_keeps_its_first_iri() {
    let database = Database::new();
    assert!(database.prefixes().is_empty());
    load(&database, TURTLE, Format::Turtle).expect("it is Turtle");
    let of_turtle = [
        ("", "http://default/"),
        ("e", "http://e/"),
        ("g", "http://base/rel#"),
        ("late", "http://late/"),
    ];
    assert_eq!(known(&database), pairs(&of_turtle));
    for (text, format) in [
        (XML, Format::RdfXml),
        (JSON, Format::JsonLd),
        (TRIG, Format::TriG),
    ] {
        load(&database, text, format).expect("it is well formed");
    }
    let table = database.prefixes();
    for (name, iri) in [
        ("rdf", "http://www.w3.org/1999/02/22-rdf-syntax-ns#"),
        ("x", "http://x/ns#"),
        ("e", "http://e/"),
        ("j", "http://j/"),
        ("t", "http://t/"),
    ] {
        assert_eq!(table.get(name), Some(iri), "{name}");
    }
    // Terms of JSON-LD that are no prefixes.
    assert_eq!((table.get("name"), table.get("list")), (None, None));
}

#[test]
fn queries_and_updates_bring_none_and_hear_of_those_that_are_known() {
    let database = Database::new();
    let update = "PREFIX q: <http://q/> INSERT DATA { q:a q:b q:c }";
    database.update(update).expect("it is an update");
    database
        .query("PREFIX r: <http://r/> SELECT * { r:a ?p ?o }")
        .expect("it is a query");
    assert!(database.prefixes().is_empty());
    load(&database, TURTLE, Format::Turtle).expect("it is Turtle");
    let told = [
        database
            .query("SELECT * { e:a ?p ?o }")
            .expect_err("it is undeclared")
            .to_string(),
        database
            .update("DELETE DATA { e:a e:p 1 }")
            .expect_err("it is undeclared")
            .to_string(),
    ];
    for told in told {
        assert!(told.contains("the prefix e: is not declared"), "{told}");
        assert!(
            told.contains("the store knows it: PREFIX e: <http://e/>"),
            "{told}"
        );
    }
    let other = database
        .query("SELECT * { foaf:a ?p ?o }")
        .expect_err("it is undeclared");
    assert!(!other.to_string().contains("the store knows"), "{other}");
}

#[test]
fn documents_of_the_graph_store_and_of_load_bring_theirs_and_bad_ones_none() {
    let folder = tempfile::tempdir().expect("there is room");
    let mut config = Config::default();
    config.load = LoadPolicy::Folders(vec![folder.path().to_owned()]);
    let database = Database::with_config(config);
    let options = UpdateOptions::default();
    let documents = || vec![source(TURTLE, Format::Turtle)];
    database
        .replace_graph(None, documents(), &options)
        .expect("it is Turtle");
    database
        .add_to_dataset(vec![source(TRIG, Format::TriG)], &options)
        .expect("it is TriG");
    // As a body that waits in a file.
    let text = "@prefix large: <http://large/> . large:a large:b large:c .";
    let large = Source::reader("document", std::io::Cursor::new(text)).with_format(Format::Turtle);
    database
        .add_to_graph(None, vec![large], &options)
        .expect("it is Turtle");
    let bad = vec![source(
        "@prefix bad: <http://bad/> . bad:a bad:b .",
        Format::Turtle,
    )];
    database
        .replace_graph(None, bad, &options)
        .expect_err("a statement has no object");
    let path = folder.path().join("x.rdf");
    std::fs::write(&path, XML).expect("there is room");
    let update = format!("LOAD <file://{}>", path.display());
    database.update(&update).expect("the folder is allowed");
    let table = database.prefixes();
    let of = |name| table.get(name).is_some();
    assert!(of("late") && of("t") && of("x") && of("large") && !of("bad"));
}

fn open(location: &Path) -> Database {
    Database::open(location, Config::default()).expect("it is a store")
}

#[test]
fn a_store_keeps_its_prefixes_in_its_folder_and_in_copies_of_it() {
    let folder = tempfile::tempdir().expect("there is room");
    let place = |name: &str| folder.path().join(name);
    let store = place("store");
    let sources = vec![source(TURTLE, Format::Turtle)];
    let (options, progress) = (LoadOptions::default(), Progress::default());
    let made = Database::create(&store, sources, &options, &progress, Config::default());
    let (database, _) = made.expect("the folder is new");
    let expected = known(&database);
    assert_eq!(expected.len(), 4);
    database
        .backup(&place("of an open store"))
        .expect("there is room");
    database.compact().expect("there is room");
    database.renumber_within(None).expect("there is room");
    drop(database);

    assert_eq!(known(&open(&store)), expected);
    let read = Database::open_to_read(&store, Config::default()).expect("it is a store");
    assert_eq!(known(&read), expected);
    let refused = read
        .set_prefixes(PrefixTable::default())
        .expect_err("it is read only");
    assert!(matches!(refused, EngineError::ReadOnly { .. }), "{refused}");
    read.backup(&place("of a reader")).expect("there is room");
    let copied = Database::open_to_copy(&store, Config::default()).expect("nobody has it");
    copied.backup(&place("of a copier")).expect("there is room");
    drop(copied);
    for name in ["of an open store", "of a reader", "of a copier"] {
        let report = Database::verify(&place(name)).expect(name);
        assert!(
            report.files.iter().any(|file| file.name == "PREFIXES"),
            "{name}"
        );
        let restored = place(&format!("restored {name}"));
        Database::restore(&place(name), &restored).expect(name);
        assert_eq!(known(&open(&restored)), expected, "{name}");
    }

    let database = open(&store);
    let mut table = PrefixTable::default();
    table.set("only", "http://only/").expect("it fits");
    database.set_prefixes(table).expect("there is room");
    load(&database, TRIG, Format::TriG).expect("it is TriG");
    drop(database);
    assert_eq!(
        known(&open(&store)),
        pairs(&[("only", "http://only/"), ("t", "http://t/")])
    );
}

#[test]
fn damage_to_the_file_is_told_by_name() {
    let folder = tempfile::tempdir().expect("there is room");
    let store = folder.path().join("store");
    let database = Database::open_or_create(&store, Config::default()).expect("it is new");
    assert!(!store.join("PREFIXES").exists());
    load(&database, TURTLE, Format::Turtle).expect("it is Turtle");
    drop(database);
    let path = store.join("PREFIXES");
    let text = std::fs::read_to_string(&path).expect("it is there");
    std::fs::write(&path, text.replace("http://late/", "http://fate/")).expect("there is room");
    let told = [
        Database::verify(&store).expect_err("it is damaged"),
        Database::open(&store, Config::default()).expect_err("it is damaged"),
    ];
    for told in told {
        assert!(matches!(told, EngineError::Corrupt { .. }), "{told}");
        assert!(told.to_string().contains("PREFIXES"), "{told}");
    }
}

#[test]
fn a_database_in_memory_has_prefixes_that_a_backup_keeps() {
    let folder = tempfile::tempdir().expect("there is room");
    let database = Database::new();
    load(&database, TURTLE, Format::Turtle).expect("it is Turtle");
    let to = folder.path().join("backup");
    database.backup(&to).expect("there is room");
    assert_eq!(known(&open(&to)), known(&database));
}
