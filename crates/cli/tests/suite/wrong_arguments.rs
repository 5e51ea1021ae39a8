//! What does a person see who gives a command what it cannot use, or what only looks wrong?

use std::path::Path;
use std::process::{Command, Output};

fn run(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_jindou"));
    command
        .current_dir(folder)
        .args(arguments)
        .output()
        .unwrap()
}

#[track_caller]
fn succeeds(folder: &Path, arguments: &[&str]) -> String {
    let output = run(folder, arguments);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {said}");
    String::from_utf8(output.stdout).unwrap()
}

#[track_caller]
fn fails(folder: &Path, arguments: &[&str]) -> String {
    let output = run(folder, arguments);
    assert!(!output.status.success(), "{arguments:?}");
    String::from_utf8(output.stderr).unwrap()
}

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let data = "<http://e/a> <http://e/p> 1 .\n";
    std::fs::write(folder.path().join("data.ttl"), data).unwrap();
    folder
}

#[test]
fn files_of_queries_and_updates_may_begin_with_a_byte_order_mark() {
    let folder = folder();
    let at = folder.path();
    let query = "\u{feff}SELECT ?o { <http://e/a> ?p ?o }";
    std::fs::write(at.join("q.rq"), query).unwrap();
    let answer = ["query", "--data", "data.ttl", "--results-format", "csv"];
    let answer = succeeds(at, &[&answer[..], &["--query-file", "q.rq"]].concat());
    assert_eq!(answer, "o\r\n1\r\n");
    succeeds(at, &["load", "--location", "s", "data.ttl"]);
    let update = "\u{feff}INSERT DATA { <http://e/a> <http://e/p> 2 }";
    std::fs::write(at.join("u.ru"), update).unwrap();
    succeeds(at, &["update", "--location", "s", "--update-file", "u.ru"]);
    let dump = succeeds(at, &["dump", "--location", "s"]);
    assert_eq!(dump.lines().count(), 2, "{dump}");
    // Elsewhere it is a mistake, whose place is the one that an editor shows.
    std::fs::write(at.join("q.rq"), "\u{feff}SELECT \u{feff}?o { ?s ?p ?o }").unwrap();
    let said = fails(at, &["query", "--data", "data.ttl", "--query-file", "q.rq"]);
    assert!(said.contains("line 1, column 8"), "{said}");
}

#[test]
fn relative_iris_are_resolved_against_the_base_that_is_given() {
    let folder = folder();
    let at = folder.path();
    succeeds(at, &["load", "--location", "s", "data.ttl"]);
    let base = ["--location", "s", "--base", "http://e/x"];
    let update = [
        &["update"],
        &base[..],
        &["--update", "INSERT DATA { <b> <p> <#c> }"],
    ]
    .concat();
    succeeds(at, &update);
    let ask = |query: &str| {
        let query = [&["query"], &base[..], &["--query", query]].concat();
        succeeds(at, &query)
    };
    assert_eq!(ask("ASK { <b> <p> <http://e/x#c> }"), "true\n");
    assert_eq!(ask("BASE <http://f/> ASK { <b> ?p ?o }"), "false\n");
    let explain = [&["explain"], &base[..], &["--query", "ASK { <b> ?p ?o }"]].concat();
    succeeds(at, &explain);
    let data = ["query", "--data", "data.ttl", "--base", "http://e/"];
    let answer = succeeds(at, &[&data[..], &["--query", "ASK { <a> <p> 1 }"]].concat());
    assert_eq!(answer, "true\n");
    let said = fails(
        at,
        &[
            "query",
            "--location",
            "s",
            "--base",
            "x",
            "--query",
            "ASK {}",
        ],
    );
    assert!(said.contains("absolute IRI"), "{said}");
}

#[test]
fn folders_that_are_not_there_are_named() {
    let folder = folder();
    let at = folder.path();
    let said = fails(at, &["serve", "--allow-load", "nowhere", "--bind", ":0"]);
    assert!(
        said.contains("--allow-load nowhere: there is no such folder"),
        "{said}"
    );
    let said = fails(at, &["restore", "--from", "nowhere", "--location", "s"]);
    assert!(
        said.contains("there is no such folder; name one that `jindou backup` made"),
        "{said}"
    );
}

#[test]
fn an_ontology_in_owl_xml_is_named_as_such() {
    let folder = folder();
    let at = folder.path();
    let owl = "<?xml version=\"1.0\"?>\n<Ontology xmlns=\"http://www.w3.org/2002/07/owl#\"\n  \
               ontologyIRI=\"http://e/o\"><Declaration><Class IRI=\"#A\"/></Declaration></Ontology>";
    std::fs::write(at.join("o.owl"), owl).unwrap();
    let load = |file| fails(at, &["load", "--location", "s", file]);
    let said = load("o.owl");
    assert!(said.contains("looks like OWL/XML"), "{said}");
    // The same mistake in RDF/XML.
    let rdf = "<rdf:RDF xmlns:rdf=\"http://www.w3.org/1999/02/22-rdf-syntax-ns#\"\n  \
               xmlns=\"http://www.w3.org/2002/07/owl#\"><Ontology about=\"http://e/o\"/></rdf:RDF>";
    std::fs::write(at.join("r.owl"), rdf).unwrap();
    let said = load("r.owl");
    assert!(!said.contains("OWL/XML"), "{said}");
}
