//! Is the union of all graphs the default graph where that is asked for, and said where it is missed?

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

const QUADS: &str = "<http://e/a> <http://e/p> <http://e/b> <http://e/g> .\n\
                     <http://e/a> <http://e/p> <http://e/b> <http://e/h> .\n\
                     <http://e/b> <http://e/p> <http://e/c> <http://e/h> .\n";
const CHAIN: &str = "SELECT ?x ?z { ?x <http://e/p> ?y . ?y <http://e/p> ?z }";
const ROW: &str = "?x\t?z\n<http://e/a>\t<http://e/c>\n";

fn jindou(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_jindou"));
    let output = command
        .current_dir(folder)
        .args(arguments)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {said}");
    output
}

/// The result as TSV, and what is said beside it.
fn query(folder: &Path, store: &str, more: &[&str]) -> (String, String) {
    let asked = [
        "query",
        "--location",
        store,
        "--results-format",
        "tsv",
        "--query",
        CHAIN,
    ];
    let output = jindou(folder, &[&asked, more].concat());
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (text(output.stdout), text(output.stderr))
}

#[test]
fn all_graphs_are_the_default_graph_where_that_is_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::write(folder.join("data.nq"), QUADS).unwrap();
    jindou(folder, &["load", "--location", "plain", "data.nq"]);
    let (rows, said) = query(folder, "plain", &[]);
    assert_eq!(rows, "?x\t?z\n");
    assert!(
        said.contains("the default graph is empty: all 3 quads are in 2 named graphs"),
        "{said}"
    );
    assert!(said.contains("--union-default-graph"), "{said}");
    let (rows, said) = query(folder, "plain", &["--union-default-graph"]);
    assert_eq!((rows.as_str(), said.as_str()), (ROW, ""));

    let load = [
        "load",
        "--location",
        "union",
        "--union-default-graph",
        "data.nq",
    ];
    jindou(folder, &load);
    assert_eq!(query(folder, "union", &[]), (ROW.to_owned(), String::new()));
    // Updates change the stored default graph, and a merge keeps what the store is.
    let update = "INSERT { ?x <http://e/q> ?z } WHERE { ?x <http://e/p> ?y . ?y <http://e/p> ?z }";
    jindou(
        folder,
        &["update", "--location", "union", "--update", update],
    );
    jindou(folder, &["compact", "--location", "union"]);
    assert_eq!(query(folder, "union", &[]), (ROW.to_owned(), String::new()));
    let dump = jindou(folder, &["dump", "--location", "union"]).stdout;
    let dump = String::from_utf8(dump).unwrap();
    assert!(
        dump.contains("<http://e/a> <http://e/q> <http://e/c> .\n"),
        "{dump}"
    );
    assert_eq!(dump.lines().count(), 4);
}
