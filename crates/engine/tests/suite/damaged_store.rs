//! A store whose files were altered is refused by the name of the file; a load that fails changes
//! nothing.

use std::fs;
use std::path::{Path, PathBuf};

use jindou_engine::ingest::{Format, LoadOptions, Progress, Source};
use jindou_engine::{Config, Database, EngineError, QueryResults};

fn source(text: &str) -> Vec<Source> {
    vec![Source::bytes("data.nq", text.to_owned()).with_format(Format::NQuads)]
}

/// A small store of every kind of thing: literals, types, named graphs.
fn store(folder: &Path) -> PathBuf {
    let location = folder.join("store");
    let class = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <http://e/C>";
    let mut text = String::new();
    for number in 0..200 {
        text += &format!(
            "<http://e/{number}> {class} .\n\
             <http://e/{number}> <http://e/p> <http://e/{}> .\n\
             <http://e/{number}> <http://e/q> \"text {number}\" <http://e/g{}> .\n",
            number * 7 % 200,
            number % 5
        );
    }
    load(&location, &text).expect("the data is well-formed");
    location
}

fn load(location: &Path, text: &str) -> Result<(), EngineError> {
    let (options, progress) = (LoadOptions::default(), Progress::default());
    let config = Config::default();
    Database::create(location, source(text), &options, &progress, config).map(|_| ())
}

/// The files of the base: the log is told whole from torn by its own tests.
fn files(location: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = fs::read_dir(location)
        .expect("the store is a directory")
        .map(|entry| entry.expect("it can be read").path())
        .filter(|path| path.extension().is_some_and(|end| end == "jnd"))
        .filter(|path| !path.to_string_lossy().contains("log-"))
        .collect();
    files.sort();
    assert_eq!(files.len(), 4, "{files:?}");
    files
}

fn refusal(location: &Path) -> String {
    match Database::open(location, Config::default()) {
        Ok(_) => panic!("a damaged store was opened"),
        Err(error) => error.to_string(),
    }
}

fn rows(database: &Database, query: &str) -> usize {
    match database.query(query).expect("the query is sound") {
        QueryResults::Solutions(solutions) => solutions.count(),
        _ => panic!("SELECT has solutions"),
    }
}

fn write(path: &Path, bytes: &[u8]) {
    fs::write(path, bytes).expect("the file can be written");
}

#[test]
fn altered_shortened_and_missing_files_are_refused_by_name() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let location = store(folder.path());
    for path in files(&location) {
        let whole = fs::read(&path).expect("the file can be read");
        let name = path
            .file_name()
            .and_then(|name| name.to_str())
            .expect("a name");
        // The header, the first words, and places all over the file.
        let places = (0..64)
            .chain((64..whole.len()).step_by(97))
            .chain([whole.len() - 1]);
        for place in places {
            let mut altered = whole.clone();
            altered[place] ^= 0x40;
            write(&path, &altered);
            let refusal = refusal(&location);
            assert!(refusal.contains(name), "byte {place}: {refusal}");
        }
        for len in [0, 1, 8, 63, 64, whole.len() / 2, whole.len() - 1] {
            write(&path, &whole[..len]);
            let refusal = refusal(&location);
            assert!(refusal.contains(name), "{len} bytes: {refusal}");
        }
        let mut longer = whole.clone();
        longer.extend_from_slice(&[0; 64]);
        write(&path, &longer);
        assert!(refusal(&location).contains(name), "bytes behind the end");
        fs::remove_file(&path).expect("the file can be removed");
        assert!(refusal(&location).contains(name), "it is missing");
        write(&path, &whole);
    }
    let database = Database::open(&location, Config::default()).expect("it is whole again");
    assert_eq!(rows(&database, "SELECT * { ?s ?p ?o }"), 400);
}

#[test]
fn a_file_of_another_store_is_refused() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let location = store(folder.path());
    let other = folder.path().join("other");
    load(&other, "<http://e/a> <http://e/p> <http://e/b> .\n").expect("the data is well-formed");
    for (path, foreign) in files(&location).into_iter().zip(files(&other)) {
        let whole = fs::read(&path).expect("the file can be read");
        fs::copy(&foreign, &path).expect("the file can be written");
        let refusal = refusal(&location);
        assert!(refusal.contains("damaged"), "{}: {refusal}", path.display());
        write(&path, &whole);
    }
}

#[test]
fn a_current_file_that_names_no_generation_is_refused() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let location = store(folder.path());
    for text in ["", "seven", "-1", "2", "18446744073709551616"] {
        write(&location.join("CURRENT"), text.as_bytes());
        let refusal = refusal(&location);
        assert!(
            refusal.contains("CURRENT") || refusal.contains("-2-"),
            "{text:?}: {refusal}"
        );
        // Nothing is loaded beside what cannot be read.
        assert!(load(&location, "").is_err(), "{text:?}");
    }
    fs::remove_file(location.join("CURRENT")).expect("the file can be removed");
    assert!(refusal(&location).contains("store"));
}

#[test]
fn a_store_that_is_open_is_locked() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let location = store(folder.path());
    let open = Database::open(&location, Config::default()).expect("the store is whole");
    let clone = open.clone();
    drop(open);
    let refused = refusal(&location);
    assert!(refused.contains("using this store"), "{refused}");
    assert!(load(&location, "").is_err());
    drop(clone);
    assert!(Database::open(&location, Config::default()).is_ok());
}

#[test]
fn a_load_that_fails_leaves_the_store_as_it_was() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let location = store(folder.path());
    let bad = "<http://e/new> <http://e/p> <http://e/1> .\n<http://e/new> oops .\n";
    let before = files(&location);
    let error = load(&location, bad)
        .expect_err("the second line is none")
        .to_string();
    assert!(error.contains("data.nq"), "{error}");
    assert_eq!(files(&location), before);
    let database = Database::open(&location, Config::default()).expect("the store is whole");
    let (options, progress) = (LoadOptions::default(), Progress::default());
    assert!(database.load(source(bad), &options, &progress).is_err());
    assert_eq!(rows(&database, "SELECT * { ?s ?p ?o }"), 400);
    assert_eq!(rows(&database, "SELECT * { GRAPH ?g { ?s ?p ?o } }"), 200);
    drop(database);
    let database = Database::open(&location, Config::default()).expect("the store is whole");
    assert_eq!(rows(&database, "SELECT * { ?s ?p ?o }"), 400);
}

/// Two stores of one generation, which hold the same, each with a log; and a checkpoint, if asked.
fn twins(folder: &Path, checkpoint: bool) -> [PathBuf; 2] {
    ["one", "two"].map(|name| {
        let location = folder.join(name);
        load(&location, "<http://e/a> <http://e/p> <http://e/b> .\n").expect("it is well-formed");
        let database = Database::open(&location, Config::default()).expect("the store is whole");
        let update = format!("INSERT DATA {{ <http://e/{name}> <http://e/p> <http://e/c> }}");
        database.update(&update).expect("the update is sound");
        if checkpoint {
            database.checkpoint().expect("it can be written");
        }
        location
    })
}

fn only_file(location: &Path, prefix: &str) -> PathBuf {
    let entries = fs::read_dir(location).expect("the store is a directory");
    let mut paths = entries.map(|entry| entry.expect("it can be read").path());
    let is_it = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| name.starts_with(prefix))
    };
    paths.find(is_it).expect("the store has such a file")
}

#[test]
fn a_log_or_checkpoint_that_continues_another_base_is_refused_by_name() {
    for (prefix, checkpoint) in [("log-", false), ("log-", true), ("changes-", true)] {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let stores = twins(folder.path(), checkpoint);
        let files = stores
            .each_ref()
            .map(|location| only_file(location, prefix));
        assert_eq!(files[0].file_name(), files[1].file_name());
        let spare = folder.path().join("spare");
        for (from, to) in [
            (&files[0], &spare),
            (&files[1], &files[0]),
            (&spare, &files[1]),
        ] {
            fs::rename(from, to).expect("it can be moved");
        }
        for (location, file) in stores.iter().zip(&files) {
            let name = file
                .file_name()
                .and_then(|name| name.to_str())
                .expect("a name");
            let verified = Database::verify(location).map(drop);
            for refused in [
                refusal(location),
                verified.expect_err("refused").to_string(),
            ] {
                assert!(refused.contains(name), "{name}: {refused}");
                assert!(refused.contains("of another store"), "{name}: {refused}");
            }
        }
    }
}

#[test]
fn the_files_of_another_base_with_its_tables_are_refused_by_name() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let [one, two] = twins(folder.path(), false);
    for (path, foreign) in files(&one).into_iter().zip(files(&two)) {
        fs::copy(foreign, path).expect("the file can be written");
    }
    let refused = refusal(&one);
    assert!(refused.contains("base-1-0.jnd"), "{refused}");
    assert!(refused.contains("of another store"), "{refused}");
}

#[test]
fn a_backup_and_a_restored_store_continue_the_base_that_they_are_of() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let [one, _] = twins(folder.path(), true);
    let (backup, restored) = (folder.path().join("backup"), folder.path().join("restored"));
    let database = Database::open(&one, Config::default()).expect("the store is whole");
    database.backup(&backup).expect("it can be copied");
    database.compact().expect("it can be merged");
    drop(database);
    Database::restore(&backup, &restored).expect("the backup is whole");
    for location in [&one, &backup, &restored] {
        let database = Database::open(location, Config::default()).expect("the store is whole");
        assert_eq!(rows(&database, "SELECT * { ?s ?p ?o }"), 2);
        let update = "INSERT DATA { <http://e/d> <http://e/p> <http://e/c> }";
        database.update(update).expect("the update is sound");
        drop(database);
        assert_eq!(Database::verify(location).expect("it is whole").triples, 3);
    }
}
