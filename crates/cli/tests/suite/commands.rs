//! What does a person see who runs the commands?

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use tempfile::TempDir;

const TURTLE: &str = "\
@prefix : <http://example.org/> .
:ann :knows :bob, :cid ; :name \"Ann\" .
:bob :name \"Bob\" .
";

fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("people.ttl"), TURTLE).unwrap();
    folder
}

fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_jindou"));
    command.current_dir(folder).args(arguments);
    command
}

fn run(folder: &Path, arguments: &[&str]) -> Output {
    command(folder, arguments).output().unwrap()
}

fn stdout(folder: &Path, arguments: &[&str]) -> String {
    let output = run(folder, arguments);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {said}");
    String::from_utf8(output.stdout).unwrap()
}

/// The one line of a failure.
fn error(folder: &Path, arguments: &[&str]) -> String {
    let output = run(folder, arguments);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{arguments:?}: {said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(said.starts_with("error: "), "{said}");
    assert!(output.stdout.is_empty());
    said
}

#[track_caller]
fn assert_says(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part:?} is not in {text:?}");
    }
}

#[test]
fn standard_error_that_nobody_reads_ends_nothing() {
    let folder = folder();
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let load = ["load", "--location", "store", "people.ttl"];
    let mut load = command(folder.path(), &load);
    let status = load.stderr(writer.try_clone().unwrap());
    assert!(status.status().unwrap().success());
    let query = ["query", "--location", "store", "--query", "SELECT nonsense"];
    let mut query = command(folder.path(), &query);
    let status = query.stderr(writer.try_clone().unwrap());
    assert_eq!(status.status().unwrap().code(), Some(1));
    // A server says where it serves, and, in the log, each thing that it does.
    let port = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let bind = port.to_string();
    let mut server = command(folder.path(), &["serve", "--bind", &bind])
        .env("JINDOU_LOG", "debug")
        .stderr(writer)
        .spawn()
        .unwrap();
    let mut stream = loop {
        match TcpStream::connect(port) {
            Ok(stream) => break stream,
            Err(_) => assert!(server.try_wait().unwrap().is_none(), "it ended"),
        }
    };
    let request = b"GET /nowhere HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    stream.write_all(request).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let running = server.try_wait().unwrap().is_none();
    server.kill().unwrap();
    server.wait().unwrap();
    assert!(running, "{answer}");
    assert!(answer.starts_with("HTTP/1.1 404"), "{answer}");
}

#[test]
fn a_typo_is_a_usage_error_with_a_hint() {
    let folder = folder();
    let output = run(folder.path(), &["serv"]);
    assert_eq!(output.status.code(), Some(2));
    assert_says(&String::from_utf8_lossy(&output.stderr), &["serve"]);
    let output = run(
        folder.path(),
        &["query", "--data", "people.ttl", "--qery", "ASK {}"],
    );
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn every_command_explains_itself() {
    let folder = folder();
    assert_says(
        &stdout(folder.path(), &["--help"]),
        &["jindou demo", "serve", "Examples"],
    );
    assert_says(
        &stdout(folder.path(), &["--version"]),
        &["jindou", env!("CARGO_PKG_VERSION")],
    );
    for name in [
        "serve", "load", "query", "demo", "prefixes", "backup", "restore", "verify", "compact",
        "stream",
    ] {
        assert_says(
            &stdout(folder.path(), &[name, "--help"]),
            &["Examples", "Usage"],
        );
    }
}

#[test]
fn a_mistake_in_a_query_is_shown_with_a_caret() {
    let folder = folder();
    let text = "SELECT *\nWHERE { ?s ?p ?o FILTR(?o) }";
    let arguments = ["query", "--data", "people.ttl", "--query", text];
    let output = run(folder.path(), &arguments);
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).unwrap();
    let lines: Vec<&str> = said.lines().collect();
    let [first, line, caret] = &*lines else {
        panic!("{said}");
    };
    assert_says(
        first,
        &[
            "error: ",
            "query, line 2, column 18: ",
            "did you mean FILTER?",
        ],
    );
    assert_eq!(*line, "  WHERE { ?s ?p ?o FILTR(?o) }");
    assert_eq!(*caret, format!("{}^", " ".repeat(2 + 17)));
}

#[test]
fn what_is_not_supported_is_shown_with_a_caret() {
    let folder = folder();
    let text = "ASK {\n  ?s ?p << <a:a> <a:b> 1 >> }";
    let output = run(
        folder.path(),
        &["query", "--data", "people.ttl", "--query", text],
    );
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).unwrap();
    let expected = "error: query, not supported: triple terms (line 2, column 9)\n    \
                    ?s ?p << <a:a> <a:b> 1 >> }\n          ^\n";
    assert_eq!(said, expected);
}

#[test]
fn mistakes_are_told_in_one_line() {
    let folder = folder();
    let path = folder.path();
    let error = |arguments: &[&str]| error(path, arguments);
    let query = |data, text| error(&["query", "--data", data, "--query", text]);
    assert_says(
        &query("missing.nt", "ASK {}"),
        &["missing.nt", "check the name"],
    );
    std::fs::write(path.join("data.foo"), "neither name nor text").unwrap();
    assert_says(
        &query("data.foo", "ASK {}"),
        &["data.foo", "--format", ".nt"],
    );
    std::fs::write(path.join("bad.nt"), "<http://a> <http://b> .\n").unwrap();
    assert_says(&query("bad.nt", "ASK {}"), &["bad.nt:1:", "--lenient"]);
    std::fs::create_dir(path.join("empty")).unwrap();
    let not_a_store = error(&["stats", "--location", "empty"]);
    assert_says(&not_a_store, &["empty", "jindou load"]);
    let nowhere = error(&["query", "--location", "nowhere", "--query", "ASK {}"]);
    assert_says(&nowhere, &["nowhere", "jindou load"]);
    std::fs::write(path.join("empty/thing"), "").unwrap();
    let others = error(&["load", "--location", "empty", "people.ttl"]);
    assert_says(&others, &["empty", "name a new directory"]);
    assert_says(&error(&["load", "--location", "new", "-"]), &["--format"]);
    let call = "SELECT * { SERVICE <http://127.0.0.1:1/> { ?s ?p ?o } }";
    assert_says(
        &query("people.ttl", call),
        &["SERVICE <http://127.0.0.1:1/>", "cannot be reached"],
    );
    let options = ["query", "--data", "people.ttl", "--query", call];
    let kept = error(&[&options[..], &["--allow-service", "http://e/"]].concat());
    assert_says(&kept, &["not allowed", "--allow-service"]);
    let missing = error(&["query", "--data", "people.ttl", "--query-file", "no.rq"]);
    assert_says(&missing, &["no.rq"]);
    let written = error(&[
        "generate",
        "lubm",
        "--universities",
        "1",
        "--output",
        "no/such.nt",
    ]);
    assert_says(&written, &["no/such.nt"]);
    let generate = ["generate", "lsbench", "--users", "2", "--output"];
    let over_a_file = error(&[&generate[..], &["people.ttl"]].concat());
    assert_says(&over_a_file, &["people.ttl: it is a file"]);
}

#[test]
fn a_place_that_cannot_be_what_it_is_named_for_is_refused_with_the_reason() {
    let folder = folder();
    let path = folder.path();
    let said = |arguments: &[&str], parts: &[&str]| {
        let text = error(path, arguments);
        assert_says(&text, parts);
        assert!(!text.contains("os error"), "{arguments:?}: {text}");
    };
    let file = ["people.ttl: ", "it is a file, and a store is a folder"];
    let nowhere = ["nowhere: ", "there is no such folder"];
    for (place, parts) in [("people.ttl", &file), ("nowhere", &nowhere)] {
        let at = ["--location", place];
        said(&[&["verify"], &at[..]].concat(), parts);
        said(&[&["stats"], &at[..]].concat(), parts);
        said(&[&["dump"], &at[..]].concat(), parts);
        said(&[&["compact"], &at[..]].concat(), parts);
        said(&[&["query", "--query", "ASK {}"], &at[..]].concat(), parts);
        said(
            &[&["update", "--update", "CLEAR ALL"], &at[..]].concat(),
            parts,
        );
        said(&["restore", "--from", place, "--location", "new"], parts);
        said(&["backup", "--location", place, "--to", "new"], parts);
    }
    said(&["load", "--location", "people.ttl", "people.ttl"], &file);
    // Port 0: another server may have the usual one.
    let serve = ["serve", "--bind", "127.0.0.1:0", "--location", "people.ttl"];
    said(&serve, &file);
    stdout(path, &["load", "--location", "store", "people.ttl"]);
    said(
        &["backup", "--location", "store", "--to", "people.ttl"],
        &file,
    );
    said(
        &["restore", "--from", "store", "--location", "people.ttl"],
        &file,
    );
    let dump = |to: &str| ["dump", "--location", "store", "--output", to].map(str::to_owned);
    let dumped = |to: &str, parts: &[&str]| {
        let arguments = dump(to);
        said(&arguments.each_ref().map(String::as_str), parts);
    };
    dumped(
        "no/such.nq",
        &["no/such.nq: cannot write: there is no folder no"],
    );
    dumped("people.ttl/such.nq", &["people.ttl is no folder"]);
    let update = run(
        path,
        &["update", "--location", "store", "--update", "CLEAR"],
    );
    assert_says(
        &String::from_utf8_lossy(&update.stderr),
        &["error: update, line 1"],
    );
    let options = ["update", "--location", "store", "--update-file", "no.ru"];
    assert_says(&error(path, &options), &["no.ru: cannot read the update"]);
}

#[test]
fn a_format_that_does_not_fit_the_result_is_refused() {
    let folder = folder();
    let error = |text, format| {
        let from = [
            "query",
            "--data",
            "people.ttl",
            "--query",
            text,
            "--results-format",
            format,
        ];
        error(folder.path(), &from)
    };
    assert_says(
        &error("CONSTRUCT WHERE { ?s ?p ?o }", "csv"),
        &["graph", "turtle"],
    );
    assert_says(
        &error("SELECT * WHERE { ?s ?p ?o }", "nt"),
        &["table", "csv"],
    );
    assert_says(&error("ASK {}", "turtle"), &["true or false", "json"]);
}

#[test]
fn what_is_loaded_can_be_queried_and_counted() {
    let folder = folder();
    let path = folder.path();
    assert_eq!(
        stdout(path, &["load", "--location", "store", "people.ttl"]),
        ""
    );
    let statistics = stdout(path, &["stats", "--location", "store", "--json"]);
    let statistics: serde_json::Value = serde_json::from_str(&statistics).unwrap();
    assert_eq!(statistics["triples"], 4);
    assert_says(
        &stdout(path, &["stats", "--location", "store"]),
        &["triples", "4"],
    );
    let names = "SELECT ?name WHERE { ?s <http://example.org/name> ?name } ORDER BY ?name";
    for from in [["--location", "store"], ["--data", "people.ttl"]] {
        let ask = |format| {
            let rest = ["--query", names, "--results-format", format];
            stdout(path, &[&["query"], &from[..], &rest].concat())
        };
        assert_eq!(ask("tsv"), "?name\n\"Ann\"\n\"Bob\"\n");
        assert_eq!(ask("csv"), "name\r\nAnn\r\nBob\r\n");
        assert_says(&ask("table"), &["?name", "(2 rows)"]);
        assert_says(&ask("xml"), &["<literal>Ann</literal>"]);
        let json: serde_json::Value = serde_json::from_str(&ask("json")).unwrap();
        assert_eq!(json["results"]["bindings"][1]["name"]["value"], "Bob");
    }
    let plan = stdout(path, &["explain", "--location", "store", "--query", names]);
    assert!(plan.ends_with('\n') && plan.len() > 1);
    std::fs::write(path.join("more.nt"), "<http://a> <http://b> <http://c> .\n").unwrap();
    stdout(path, &["load", "--location", "store", "more.nt"]);
    let all = "SELECT * WHERE { ?s ?p ?o }";
    let rows = [
        "query",
        "--location",
        "store",
        "--query",
        all,
        "--results-format",
        "tsv",
    ];
    assert_eq!(stdout(path, &rows).lines().count(), 6);
}

#[test]
fn prefixes_of_files_are_listed_changed_and_used() {
    let folder = folder();
    let path = folder.path();
    stdout(path, &["load", "--location", "store", "people.ttl"]);
    let prefixes =
        |more: &[&str]| stdout(path, &[&["prefixes", "--location", "store"], more].concat());
    assert_eq!(prefixes(&[]), "prefix  IRI\n:       http://example.org/\n");
    assert_eq!(
        prefixes(&["--turtle"]),
        "@prefix : <http://example.org/> .\n"
    );
    let ttl = "@prefix : <http://example.org/> .\n\n:ann :knows :cid, :bob ;\n    :name \"Ann\" .\n\n\
               :bob :name \"Bob\" .\n";
    stdout(
        path,
        &["dump", "--location", "store", "--output", "dump.ttl"],
    );
    assert_eq!(std::fs::read_to_string(path.join("dump.ttl")).unwrap(), ttl);

    let ask = ["query", "--location", "store", "--query"];
    let select = "SELECT ?s { ?s ?p 'Bob' }";
    let table = |more: &[&str]| stdout(path, &[&ask[..], &[select], more].concat());
    assert_eq!(table(&[]), " ?s\n------\n :bob\n(1 row)\n");
    assert_says(&table(&["--full-iris"]), &[" <http://example.org/bob>\n"]);
    assert_says(
        &table(&["--results-format", "tsv"]),
        &["<http://example.org/bob>"],
    );

    let change = [
        "--set",
        "ex=http://example.org/",
        "--set",
        "o:=<http://other/>",
        "--remove",
        "",
    ];
    assert_eq!(prefixes(&change), "");
    let changed = "@prefix ex: <http://example.org/> .\n@prefix o: <http://other/> .\n";
    assert_eq!(prefixes(&["--turtle"]), changed);
    assert_says(&table(&[]), &[" ex:bob\n"]);
    let undeclared = run(path, &[&ask[..], &["SELECT * { ex:ann ?p ?o }"]].concat());
    assert_says(
        &String::from_utf8_lossy(&undeclared.stderr),
        &["PREFIX ex: <http://example.org/>"],
    );
    let graph = "PREFIX p: <http://example.org/> CONSTRUCT WHERE { ?s p:name 'Bob' }";
    let turtle = stdout(
        path,
        &[&ask[..], &[graph, "--results-format", "turtle"]].concat(),
    );
    assert_eq!(
        turtle,
        "@prefix p: <http://example.org/> .\n\np:bob p:name \"Bob\" .\n"
    );

    let at = ["prefixes", "--location", "store"];
    let absent = error(
        path,
        &[&at[..], &["--set", "n=http://n/", "--remove", "x"]].concat(),
    );
    assert_says(&absent, &["no prefix x:"]);
    for wrong in ["1=http://n/", "n=relative", "n"] {
        let output = run(path, &[&at[..], &["--set", wrong]].concat());
        assert_eq!(output.status.code(), Some(2), "{wrong}");
    }
    let held = jindou_engine::Database::open(&path.join("store"), jindou_engine::Config::default());
    let in_use = error(path, &[&at[..], &["--remove", "o"]].concat());
    assert_says(&in_use, &["another process", "PUT /prefixes"]);
    assert_eq!(prefixes(&["--turtle"]), changed);
    drop(held.unwrap());
}

#[test]
fn truth_values_and_graphs_are_printed_too() {
    let folder = folder();
    let path = folder.path();
    let ask = |text, rest: &[&str]| {
        let first = ["query", "--data", "people.ttl", "--query", text];
        stdout(path, &[&first[..], rest].concat())
    };
    assert_eq!(ask("ASK { ?s ?p \"Ann\" }", &[]), "true\n");
    assert_eq!(ask("ASK { ?s ?p \"Zoe\" }", &[]), "false\n");
    let graph = "CONSTRUCT WHERE { ?s <http://example.org/name> \"Bob\" }";
    let line = "<http://example.org/bob> <http://example.org/name> \"Bob\" .\n";
    assert_eq!(ask(graph, &[]), line);
    assert_says(
        &ask(graph, &["--results-format", "turtle"]),
        &["example.org", "\"Bob\""],
    );
    assert_says(
        &ask(graph, &["--results-format", "rdfxml"]),
        &["<rdf:RDF", "Bob"],
    );
}

#[test]
fn standard_input_is_a_source_of_data_and_of_queries() {
    let folder = folder();
    let arguments = [
        "query",
        "--data",
        "-",
        "--format",
        "turtle",
        "--query",
        "ASK { ?s ?p 1 }",
    ];
    let answer = with_input(folder.path(), &arguments, "<http://a> <http://b> 1 .");
    assert_eq!(answer, "true\n");
    let arguments = ["query", "--data", "people.ttl", "--query-file", "-"];
    assert_eq!(with_input(folder.path(), &arguments, "ASK {}"), "true\n");
}

fn with_input(folder: &Path, arguments: &[&str], input: &str) -> String {
    let mut child = command(folder, arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(input.as_bytes())
        .unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_lenient_load_says_what_it_left_out() {
    let folder = folder();
    let text = "<http://a> <http://b> .\n<http://a> <http://b> <http://c> .\n";
    std::fs::write(folder.path().join("bad.nt"), text).unwrap();
    let ask = "ASK { <http://a> <http://b> <http://c> }";
    let output = run(
        folder.path(),
        &["query", "--data", "bad.nt", "--lenient", "--query", ask],
    );
    assert_eq!(output.stdout, b"true\n");
    assert_says(
        &String::from_utf8_lossy(&output.stderr),
        &["left out", "bad.nt:1:"],
    );
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let folder = folder();
    let path = folder.path();
    let mut child = command(
        path,
        &["generate", "lubm", "--universities", "2", "--output", "-"],
    )
    .stdout(Stdio::piped())
    .stderr(Stdio::piped())
    .spawn()
    .unwrap();
    let mut first = [0; 1];
    let mut out = child.stdout.take().unwrap();
    out.read_exact(&mut first).unwrap();
    drop(out);
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert!(output.status.success());
}

#[test]
fn generated_files_hold_what_was_counted_in_every_compression() {
    let folder = folder();
    let path = folder.path();
    for file in ["u.nt", "u.nt.gz", "u.nt.zst"] {
        let output = run(
            path,
            &["generate", "lubm", "--universities", "1", "--output", file],
        );
        assert!(output.status.success());
        assert_says(
            &String::from_utf8_lossy(&output.stderr),
            &["103,074", "100,543"],
        );
    }
    let plain = std::fs::read(path.join("u.nt")).unwrap();
    assert_eq!(plain.iter().filter(|&&b| b == b'\n').count(), 103_074);
    let zst = std::fs::File::open(path.join("u.nt.zst")).unwrap();
    assert!(
        zstd::decode_all(zst).unwrap() == plain,
        "the zstd file differs"
    );
    let mut text = Vec::new();
    let gz = std::fs::File::open(path.join("u.nt.gz")).unwrap();
    flate2::read::MultiGzDecoder::new(gz)
        .read_to_end(&mut text)
        .unwrap();
    assert!(text == plain, "the gzip file differs");
    let piped = stdout(
        path,
        &["generate", "lubm", "--universities", "1", "--output", "-"],
    );
    assert!(piped.as_bytes() == plain, "the piped text differs");
}

#[test]
fn generated_streams_are_a_file_each_in_every_compression() {
    let folder = folder();
    let path = folder.path();
    let generate = |output: &str, more: &[&str]| {
        let line = "generate lsbench --users 50 --seconds 1 --rate 0.1 --output";
        let line: Vec<&str> = line.split(' ').chain([output]).collect();
        let output = run(path, &[&line[..], more].concat());
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{said}");
        said
    };
    let said = generate("plain", &[]);
    assert_says(
        &said,
        &["of 50 users", "postlike: 8,6", "gps: 2,000 tuples"],
    );
    generate("gz", &["--compress", "gz"]);
    generate("zst", &["--compress", "zst"]);
    for name in [
        "static.nt",
        "post.tnt",
        "postlike.tnt",
        "photo.tnt",
        "photolike.tnt",
        "gps.tnt",
    ] {
        let plain = std::fs::read(path.join("plain").join(name)).unwrap();
        let zst = std::fs::File::open(path.join("zst").join(format!("{name}.zst"))).unwrap();
        assert!(
            zstd::decode_all(zst).unwrap() == plain,
            "{name}.zst differs"
        );
        let gz = std::fs::File::open(path.join("gz").join(format!("{name}.gz"))).unwrap();
        let mut text = Vec::new();
        flate2::read::MultiGzDecoder::new(gz)
            .read_to_end(&mut text)
            .unwrap();
        assert!(text == plain, "{name}.gz differs");
        let lines = String::from_utf8(plain).unwrap();
        assert!(lines.lines().all(|line| line.ends_with(" .")), "{name}");
    }
    stdout(path, &["load", "--location", "store", "plain/static.nt"]);

    let no_streams = ["--seconds", "0"];
    let line = ["generate", "lsbench", "--users", "3", "--output", "stored"];
    stdout(path, &[&line[..], &no_streams].concat());
    let files = std::fs::read_dir(path.join("stored")).unwrap().count();
    assert_eq!(files, 1, "no streams of 0 s");
    let daily = ["--seconds", "24", "--rate", "data", "--pace", "daily"];
    let said = run(path, &[&line[..], &daily].concat());
    assert_says(&String::from_utf8_lossy(&said.stderr), &["photo: "]);
}

#[test]
fn the_demo_runs_the_seven_queries() {
    let folder = folder();
    let table = stdout(
        folder.path(),
        &["demo", "--universities", "1", "--no-serve"],
    );
    let rows: Vec<Vec<&str>> = table
        .lines()
        .skip(1)
        .map(|line| line.split_whitespace().take(2).collect())
        .collect();
    let expected = [
        ["q1", "0"],
        ["q2", "828"],
        ["q3", "0"],
        ["q4", "10"],
        ["q5", "10"],
        ["q6", "125"],
        ["q7", "30"],
    ];
    assert_eq!(rows, expected);
}

#[test]
fn a_taken_port_is_told_before_anything_is_loaded() {
    let folder = folder();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let said = error(folder.path(), &["serve", "people.ttl", "--bind", &address]);
    assert_says(&said, &[&address, "--bind"]);
    assert_says(
        &error(folder.path(), &["demo", "--bind", &address]),
        &[&address, "--bind"],
    );
}

/// Ends the process however the test ends.
struct Ending(Child);

impl Drop for Ending {
    fn drop(&mut self) {
        // It may have ended by itself, which is as good.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_served_file_answers_queries_until_ctrl_c() {
    serve_until("-INT");
}

/// As service managers end it.
#[test]
fn a_request_to_terminate_ends_a_server_as_ctrl_c_does() {
    serve_until("-TERM");
}

fn serve_until(signal: &str) {
    let folder = folder();
    let child = command(
        folder.path(),
        &["serve", "people.ttl", "--bind", "127.0.0.1:0"],
    )
    .stderr(Stdio::piped())
    .spawn()
    .unwrap();
    let mut child = Ending(child);
    let mut said = BufReader::new(child.0.stderr.take().unwrap());
    let line = said
        .by_ref()
        .lines()
        .map(Result::unwrap)
        .find(|line| line.contains("http://"))
        .expect("the address is printed");
    let address = line
        .split("http://")
        .nth(1)
        .unwrap()
        .split('/')
        .next()
        .unwrap();
    let query = "ASK { ?s ?p \"Ann\" }";
    let mut stream = TcpStream::connect(address).unwrap();
    write!(
        stream,
        "POST /sparql HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/sparql-query\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n{query}",
        query.len()
    )
    .unwrap();
    // Far longer than it takes: a server that does not answer should fail, not hang.
    stream
        .set_read_timeout(Some(std::time::Duration::from_secs(60)))
        .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert_says(&answer, &["200 OK", "true"]);
    #[cfg(unix)]
    {
        let id = child.0.id().to_string();
        let sent = Command::new("kill").args([signal, &id]).status().unwrap();
        assert!(sent.success());
        let mut rest = String::new();
        said.read_to_string(&mut rest).unwrap();
        assert_says(&rest, &["Ctrl-C again"]);
        assert!(child.0.wait().unwrap().success());
    }
}

#[test]
fn a_benchmark_prints_tables_and_json() {
    let folder = folder();
    let arguments = [
        "bench",
        "lubm",
        "--universities",
        "1",
        "--runs",
        "1",
        "--light",
        "0.05",
        "--threads",
        "2",
        "--location",
        "store",
        "--json",
        "report.json",
    ];
    let text = stdout(folder.path(), &arguments);
    assert_says(
        &text,
        &[
            "q7",
            "resident bytes a triple",
            "time to open",
            "mixed light load",
        ],
    );
    let json = std::fs::read_to_string(folder.path().join("report.json")).unwrap();
    let report: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(report["load"]["triples"], 100_543);
    assert_eq!(report["queries"][5]["rows"], 125);
    assert!(report["load"]["memory"]["resident_bytes"].as_u64().unwrap() > 0);
}

#[test]
fn loads_piped_from_generators_are_measured_and_killed() {
    let folder = folder();
    let line = "bench bulk --universities 1 --things 30000 --memory 64MiB --threads 1 --kills 2 --data d --json r.json";
    let text = stdout(folder.path(), &line.split(' ').collect::<Vec<_>>());
    let parts = [
        "LUBM(1), 100,543 triples",
        "literals of 30000 things, 300,000 triples",
        "in memory",
        "within the limit",
        "killed after",
        "the load after kills is whole",
    ];
    assert_says(&text, &parts);
    assert!(!text.contains("MISSED"), "{text}");
    let json = std::fs::read_to_string(folder.path().join("r.json")).unwrap();
    let report: serde_json::Value = serde_json::from_str(&json).unwrap();
    for (graph, triples) in [(0, 100_543), (1, 300_000)] {
        let graph = &report["graphs"][graph];
        assert_eq!(graph["after_kills"]["triples"], triples);
        assert_eq!(graph["kills"].as_array().unwrap().len(), 2);
        assert_eq!(graph["loads"][1]["triples"], triples);
    }
    // The stores go with the measurement.
    let left = std::fs::read_dir(folder.path().join("d")).unwrap().count();
    assert_eq!(left, 0);
}

#[test]
fn a_graph_of_literals_is_generated_in_every_compression() {
    let folder = folder();
    let path = folder.path();
    let generate = |output: &str| {
        let line = [
            "generate", "literals", "--things", "20000", "--output", output,
        ];
        let output = run(path, &line);
        assert!(output.status.success());
        assert_says(
            &String::from_utf8_lossy(&output.stderr),
            &["200,000", "60,000"],
        );
        output.stdout
    };
    let plain = generate("-");
    assert_eq!(plain.iter().filter(|&&b| b == b'\n').count(), 200_000);
    generate("t.nt.zst");
    let zst = std::fs::File::open(path.join("t.nt.zst")).unwrap();
    assert!(
        zstd::decode_all(zst).unwrap() == plain,
        "the zstd file differs"
    );
    let output = run(
        path,
        &["generate", "literals", "--things", "1", "--output", "t.ttl"],
    );
    assert!(!output.status.success());
    assert_says(&String::from_utf8_lossy(&output.stderr), &[".gz or .zst"]);
}

#[test]
fn a_store_is_backed_up_verified_restored_and_compacted() {
    let folder = folder();
    let path = folder.path();
    let succeeds = |arguments: &[&str], parts: &[&str]| {
        let output = run(path, arguments);
        let said = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        assert!(output.status.success(), "{arguments:?}: {said}");
        assert_says(&said, parts);
    };
    succeeds(&["load", "--location", "store", "people.ttl"], &[]);
    let report = [
        "base-1-0.jnd",
        "CURRENT",
        "triples of the default graph",
        "whole",
    ];
    succeeds(&["verify", "--location", "store"], &report);
    succeeds(&["compact", "--location", "store"], &["no changes"]);
    let backup = ["backup", "--location", "store", "--to", "copies/monday"];
    succeeds(&backup, &["4 quads", "shares", "copies/monday"]);
    assert_says(&error(path, &backup), &["copies/monday", "not empty"]);
    let restore = ["restore", "--from", "copies/monday", "--location", "again"];
    succeeds(&restore, &["4 quads", "again"]);
    assert_says(&error(path, &restore), &["again", "not empty"]);
    let dump = |location| stdout(path, &["dump", "--location", location]);
    assert_eq!(dump("store"), dump("again"));
    let table = path.join("again/terms-1-1.jnd");
    let mut bytes = std::fs::read(&table).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&table, bytes).unwrap();
    let damaged = error(path, &["verify", "--location", "again"]);
    assert_says(&damaged, &["again/terms-1-1.jnd", "damaged"]);
    let refused = error(path, &["restore", "--from", "again", "--location", "third"]);
    assert_says(&refused, &["again/terms-1-1.jnd", "damaged"]);
    let left = std::fs::read_dir(path).unwrap();
    let names = left.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert!(!names.into_iter().any(|name| name.contains("third")));
    assert_says(
        &error(path, &["verify", "--location", "copies"]),
        &["copies"],
    );
}

#[test]
fn a_store_that_a_server_has_open_is_read_and_not_written() {
    let folder = folder();
    let path = folder.path();
    stdout(path, &["load", "--location", "store", "people.ttl"]);
    let held = jindou_engine::Database::open(&path.join("store"), jindou_engine::Config::default());
    let held = held.unwrap();
    stdout(path, &["verify", "--location", "store"]);
    for arguments in [
        &["load", "--location", "store", "people.ttl"][..],
        &["restore", "--from", "store", "--location", "copy"],
    ] {
        let said = error(path, arguments);
        assert_says(&said, &["store", "another process is using", "/update"]);
    }
    drop(held);
}
