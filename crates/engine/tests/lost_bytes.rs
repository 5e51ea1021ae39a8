//! A store whose files lose bytes while it is open: a query that reads these gets an error with the name
//! of the file, and never an answer made of what is there in their place; the process goes on.
//!
//! In a process of its own, since without all this the signal would end the others' tests.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use jindou_engine::ingest::{Format, LoadOptions, Progress, Source};
use jindou_engine::results::{
    GraphFormat, GraphWriter, SolutionsFormat, SolutionsWriter, WriteError,
};
use jindou_engine::{
    Config, Database, EngineError, Failure, GraphSelection, MergePolicy, QueryResults, Solutions,
};

const NODES: usize = 20_000;

fn load(location: &Path) {
    let class = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <http://e/C>";
    let mut text = String::new();
    for number in 0..NODES {
        text += &format!(
            "<http://e/{number}> {class} .\n\
             <http://e/{number}> <http://e/p> <http://e/{}> .\n\
             <http://e/{number}> <http://e/q> \"text {number}\" <http://e/g{}> .\n",
            number * 7 % NODES,
            number % 5
        );
    }
    let data = vec![Source::bytes("data.nq", text).with_format(Format::NQuads)];
    let (options, progress) = (LoadOptions::default(), Progress::default());
    Database::create(location, data, &options, &progress, config()).unwrap();
}

fn config() -> Config {
    let mut config = Config::default();
    config.merge = MergePolicy::never();
    config
}

/// A copy of a store, opened.
fn copy(of: &Path, to: &Path) -> Database {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(of).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
    Database::open(to, config()).unwrap()
}

fn files(location: &Path) -> Vec<PathBuf> {
    let names = fs::read_dir(location).unwrap();
    let names = names.map(|entry| entry.unwrap().path());
    let is_of_base = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap();
        ["base-", "terms-", "edges-"]
            .iter()
            .any(|kind| name.starts_with(kind))
    };
    let mut files: Vec<PathBuf> = names.filter(is_of_base).collect();
    files.sort();
    files
}

/// Cuts a file that is in use to `parts` eighths of its length.
fn shorten(path: &Path, parts: u64) {
    let file = File::options().write(true).open(path).unwrap();
    file.set_len(file.metadata().unwrap().len() * parts / 8)
        .unwrap();
}

fn terms(solutions: Solutions) -> Result<String, EngineError> {
    let mut text = String::new();
    for solution in solutions {
        text += &format!("{:?}\n", solution?);
    }
    Ok(text)
}

fn engine(error: WriteError) -> EngineError {
    match error {
        WriteError::Query(error) => error,
        other => panic!("no error of the query: {other}"),
    }
}

fn written(mut solutions: Solutions) -> Result<Vec<u8>, EngineError> {
    let mut out = Vec::new();
    let variables = solutions.variables().to_vec();
    let names: Vec<&str> = variables.iter().map(String::as_str).collect();
    let mut writer = SolutionsWriter::new(SolutionsFormat::Tsv, &names);
    writer.start(&mut out).unwrap();
    while writer
        .advance(&mut out, &mut solutions)
        .map_err(engine)?
        .is_some()
    {}
    writer.finish(&mut out).unwrap();
    Ok(out)
}

/// The answer as text, by several ways.
fn answer(database: &Database, query: &str) -> Result<Vec<u8>, EngineError> {
    match database.query(query)? {
        QueryResults::Boolean(answer) => Ok(vec![u8::from(answer)]),
        QueryResults::Graph(mut graph) => {
            let mut out = Vec::new();
            let mut writer = GraphWriter::new(GraphFormat::NTriples);
            while writer
                .advance(&mut out, &mut graph)
                .map_err(engine)?
                .is_some()
            {}
            writer.finish(&mut out).unwrap();
            Ok(out)
        }
        QueryResults::Solutions(solutions) => {
            let text = terms(solutions)?;
            let QueryResults::Solutions(solutions) = database.query(query)? else {
                panic!("the same query has other results");
            };
            Ok([written(solutions)?, text.into_bytes()].concat())
        }
    }
}

const QUERIES: [&str; 9] = [
    "SELECT * { ?s ?p ?o }",
    "SELECT * { GRAPH ?g { ?s ?p ?o } }",
    "SELECT * { ?s a <http://e/C> ; <http://e/p> ?o . ?o <http://e/p> ?x }",
    "SELECT (COUNT(*) AS ?n) { ?s <http://e/p> ?o }",
    "SELECT * { <http://e/77> ?p ?o }",
    "SELECT * { GRAPH ?g { ?s ?p ?o FILTER(CONTAINS(?o, \"99\")) } } ORDER BY ?o",
    "ASK { <http://e/19999> <http://e/p> ?o }",
    "CONSTRUCT { ?o <http://e/back> ?s } WHERE { ?s <http://e/p> ?o }",
    "DESCRIBE <http://e/4711>",
];

fn is_lost(error: &EngineError, name: &str) -> bool {
    matches!(error, EngineError::Corrupt { path, .. } if path.ends_with(name))
}

/// The lines of an answer in one order: threads hand over their rows in any.
fn lines(answer: &[u8]) -> Vec<&[u8]> {
    let mut lines: Vec<&[u8]> = answer.split(|byte| *byte == b'\n').collect();
    lines.sort_unstable();
    lines
}

#[test]
fn a_file_that_is_shortened_costs_the_queries_of_its_store_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("source");
    load(&source);
    let other = copy(&source, &folder.path().join("other"));
    let right: Vec<Vec<u8>> = QUERIES.map(|query| answer(&other, query).unwrap()).into();
    for part in 0..files(&source).len() {
        for parts in [0, 1, 4, 7] {
            let to = folder.path().join(format!("{part}-{parts}"));
            let database = copy(&source, &to);
            // Its answer is under way when it happens.
            let QueryResults::Solutions(mut begun) = database.query(QUERIES[0]).unwrap() else {
                panic!("SELECT has solutions");
            };
            begun.next().unwrap().unwrap();
            assert!(database.health().is_empty());
            let file = &files(&to)[part];
            let name = file.file_name().and_then(|name| name.to_str()).unwrap();
            shorten(file, parts);
            let error = terms(begun).expect_err("its rows are gone");
            assert!(is_lost(&error, name), "{name} {parts}/8: {error}");
            for query in QUERIES {
                let error = answer(&database, query).expect_err(query);
                assert!(is_lost(&error, name), "{name} {parts}/8: {query}: {error}");
            }
            let health = database.health();
            assert!(
                matches!(&*health, [Failure::Data { reason }] if reason.contains(name)),
                "{name} {parts}/8: {health:?}"
            );
            let visit = |_: jindou_engine::results::QuadText<'_>| Ok::<(), EngineError>(());
            let error = database.for_each_quad(&GraphSelection::All, visit);
            assert!(is_lost(&error.unwrap_err(), name));
            for update in [
                "INSERT DATA { <http://e/new> <http://e/p> <http://e/77> }",
                "DELETE { ?s <http://e/p> ?o } WHERE { ?s <http://e/p> ?o }",
            ] {
                let error = database.update(update).expect_err(update);
                assert!(is_lost(&error, name), "{name} {parts}/8: {update}: {error}");
            }
            let error = database.backup(&folder.path().join("backup")).unwrap_err();
            assert!(is_lost(&error, name), "{error}");
            drop(database);
            let refused = Database::open(&to, config()).map(drop).unwrap_err();
            assert!(is_lost(&refused, name), "{refused}");
        }
        for (query, right) in QUERIES.iter().zip(&right) {
            let answer = answer(&other, query).unwrap();
            assert!(lines(&answer) == lines(right), "{query}");
        }
    }
}

#[test]
fn changes_are_not_merged_with_what_lost_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("source");
    load(&source);
    let to = folder.path().join("copy");
    let database = copy(&source, &to);
    let update = "INSERT DATA { <http://e/new> <http://e/p> <http://e/77> }";
    database.update(update).unwrap();
    let current = fs::read(to.join("CURRENT")).unwrap();
    shorten(&to.join("base-1-0.jnd"), 4);
    for error in [
        database.compact().map(drop).unwrap_err(),
        database.checkpoint().unwrap_err(),
    ] {
        assert!(is_lost(&error, "base-1-0.jnd"), "{error}");
    }
    assert_eq!(fs::read(to.join("CURRENT")).unwrap(), current);
    assert!(!to.join("base-1-1.jnd").exists());
}
