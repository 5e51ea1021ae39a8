//! Do the logs say what was asked and what became of it, and nothing that they should not?

use std::fs::read_to_string;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use jindou_server::{
    AccessPolicy, Credentials, Log, LogFormat, LogTarget, Role, ServerConfig, SlowQueries,
    hash_password,
};
use serde_json::Value;
use tempfile::TempDir;

use crate::client::{Running, encode, let_anonymous};
use crate::limits::{ENDLESS, FRUITLESS, target};

/// A server with a log, which is whole once the server has stopped.
struct Logged {
    _folder: TempDir,
    path: PathBuf,
    server: Running,
}

fn logged(format: LogFormat, configure: impl FnOnce(&mut ServerConfig, Log)) -> Logged {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("log");
    let log = Log::open(LogTarget::File(path.clone()), format).expect("a log");
    let server = Running::with(|config| configure(config, log));
    Logged {
        _folder: folder,
        path,
        server,
    }
}

impl Logged {
    fn lines(mut self) -> Vec<String> {
        self.server.stop();
        let text = read_to_string(&self.path).expect("a log");
        text.lines().map(str::to_owned).collect()
    }

    fn objects(self) -> Vec<Value> {
        let lines = self.lines().into_iter();
        lines
            .map(|line| serde_json::from_str(&line).expect(&line))
            .collect()
    }
}

/// Knows ann, whose password is hers.
fn with_ann(folder: &TempDir, config: &mut ServerConfig) {
    let hash = hash_password(b"hers").expect("a hash");
    let users = folder.path().join("users");
    std::fs::write(&users, format!("ann:read:{hash}\n")).expect("written");
    config.access = AccessPolicy::known(Credentials::read(users).expect("it is right"));
    let_anonymous(config, Role::Read);
}

const ANN: &str = "Authorization: Basic YW5uOmhlcnM=\r\n";
const UPDATE: &str = "Content-Type: application/sparql-update\r\n";

#[test]
fn each_request_is_a_line_without_the_text_of_its_query() {
    let users = tempfile::tempdir().expect("a folder");
    let logged = logged(LogFormat::Json, |config, log| {
        config.access_log = Some(log);
        with_ann(&users, config);
        let_anonymous(config, Role::Admin);
    });
    let server = &logged.server;
    let asked = target("ASK { <http://e/secret> ?p ?o }", "&format=csv");
    let mut connection = server.connect();
    connection.send("GET", &asked, ANN, "");
    assert_eq!(connection.answer("GET").text(), "false");
    // Nothing of the one before is left on the connection.
    connection.send("HEAD", "/query?query=ASK%7B%7D", "", "");
    assert_eq!(connection.answer("HEAD").status, 200);
    let update = "INSERT DATA { <http://e/secret> <http://e/p> 1 }";
    connection.send("POST", "/update", &format!("{UPDATE}{ANN}"), update);
    assert_eq!(connection.answer("POST").status, 403);
    assert_eq!(
        server.get(&format!("/{}", "x".repeat(5000)), "").status,
        404
    );
    assert_eq!(server.get("/q\"u\\x?y", "").status, 404);
    let product = "SELECT * { ?s <http://e/p> ?o . ?t <http://e/p> ?u }";
    let streamed = server.query(product, "&format=tsv").body.len();
    let mut cut = server.connect();
    cut.send("GET", &target(ENDLESS, ""), "", "");
    assert_eq!(cut.head().status, 200);
    cut.chunk().expect("a chunk");
    cut.hang_up();
    server.wait_for_metric("jindou_queries_in_flight 0");
    let lines = logged.objects();
    for line in &lines {
        assert!(!line.to_string().contains("secret"), "{line}");
        assert_eq!(line["client"], "127.0.0.1", "{line}");
        let seconds = line["seconds"].as_f64().expect("a number");
        assert!((0. ..60.).contains(&seconds), "{line}");
        let time = line["time"].as_str().expect("a time");
        assert!(time.starts_with("20") && time.ends_with('Z'), "{line}");
    }
    let of = |line: &Value| {
        let fields = ["user", "method", "path", "status", "bytes", "whole"];
        let mut fields = fields.map(|field| line[field].clone());
        if fields[3].as_u64() > Some(399) {
            // As long as what is said.
            assert!(fields[4].as_u64() > Some(0), "{line}");
            fields[4] = Value::Null;
        }
        Value::from(fields.to_vec())
    };
    let found: Vec<Value> = lines.iter().map(of).collect();
    let long = format!("/{}", "x".repeat(1023));
    for expected in [
        serde_json::json!(["ann", "GET", "/query", 200, 5, true]),
        serde_json::json!([null, "HEAD", "/query", 200, 0, true]),
        serde_json::json!(["ann", "POST", "/update", 403, null, true]),
        serde_json::json!([null, "GET", long, 404, null, true]),
        serde_json::json!([null, "GET", "/q\"u\\x", 404, null, true]),
        serde_json::json!([null, "GET", "/query", 200, streamed, true]),
    ] {
        assert!(found.contains(&expected), "{expected} in {found:#?}");
    }
    let cut = lines.iter().find(|line| line["whole"] == false);
    let cut = cut.expect("one was cut");
    assert_eq!(
        (&cut["path"], &cut["status"]),
        (&"/query".into(), &200.into())
    );
}

#[test]
fn a_line_of_text_is_in_the_common_log_format() {
    let users = tempfile::tempdir().expect("a folder");
    let logged = logged(LogFormat::Text, |config, log| {
        config.access_log = Some(log);
        with_ann(&users, config);
    });
    let asked = target("ASK {}", "&format=csv");
    assert_eq!(logged.server.get(&asked, ANN).status, 200);
    assert_eq!(logged.server.get("/q\"x", "").status, 404);
    let mut lines = logged.lines();
    lines.sort_by_key(|line| line.contains("404"));
    let (before, after) = lines[0].split_once(" [").expect("a time");
    assert_eq!(before, "127.0.0.1 - ann");
    let (time, after) = after.split_once("] ").expect("its end");
    assert!(time.ends_with(" +0000") && time.len() == 26, "{time}");
    let said = "\"GET /query HTTP/1.1\" 200 4 ";
    let seconds = after.strip_prefix(said).expect(after);
    assert!(seconds.parse::<f64>().is_ok(), "{seconds}");
    assert!(
        lines[1].contains("] \"GET /q\\\"x HTTP/1.1\" 404 "),
        "{}",
        lines[1]
    );
}

#[test]
fn slow_queries_and_updates_are_noted_with_their_text() {
    let users = tempfile::tempdir().expect("a folder");
    let slow = logged(LogFormat::Json, |config, log| {
        config.slow_queries = Some(SlowQueries {
            from: Duration::ZERO,
            log,
        });
        with_ann(&users, config);
        let_anonymous(config, Role::Admin);
    });
    let server = &slow.server;
    let long = format!("ASK {{}} #{}", "é".repeat(4000));
    assert_eq!(server.get(&target(&long, ""), ANN).status, 200);
    let rows = "SELECT * { ?s <http://e/p> ?o } LIMIT 7";
    assert_eq!(server.query(rows, "").status, 200);
    assert_eq!(server.query(FRUITLESS, "&timeout=10ms").status, 504);
    let update = "INSERT DATA { <http://e/a> <http://e/p> 1, 2 }";
    assert_eq!(server.send("POST", "/update", UPDATE, update).status, 204);
    assert_eq!(server.query("nonsense", "").status, 400);
    let lines = slow.objects();
    assert_eq!(lines.len(), 5, "{lines:#?}");
    let of = |n: usize| {
        let line = &lines[n];
        let fields = ["kind", "status", "rows", "user", "query", "query_bytes"];
        Value::from(fields.map(|field| line[field].clone()).to_vec())
    };
    let kept = &long[..long.floor_char_boundary(4096)];
    for (place, expected) in [
        serde_json::json!(["query", "ok", lines[0]["rows"], "ann", kept, long.len()]),
        serde_json::json!(["query", "ok", 7, null, rows, rows.len()]),
        serde_json::json!(["query", "timeout", 0, null, FRUITLESS, FRUITLESS.len()]),
        serde_json::json!(["update", "ok", 2, null, update, update.len()]),
        serde_json::json!(["query", "refused", 0, null, "nonsense", 8]),
    ]
    .into_iter()
    .enumerate()
    {
        assert_eq!(of(place), expected);
    }
    assert!(lines[2]["seconds"].as_f64() >= Some(0.01), "{}", lines[2]);
    assert_eq!(lines[1]["id"].as_str().map(str::len), Some(16));
    assert_eq!(lines[1]["client"], "127.0.0.1");
}

#[test]
fn what_is_faster_is_not_noted_and_a_text_stays_on_its_line() {
    let none = logged(LogFormat::Text, |config, log| {
        let from = Duration::from_secs(3600);
        config.slow_queries = Some(SlowQueries { from, log });
    });
    assert_eq!(none.server.query("ASK {}", "").status, 200);
    assert!(none.lines().is_empty());
    let all = logged(LogFormat::Text, |config, log| {
        let from = Duration::ZERO;
        config.slow_queries = Some(SlowQueries { from, log });
    });
    let query = "ASK {\n ?s ?p \"a\" }";
    assert_eq!(all.server.query(query, "").status, 200);
    let lines = all.lines();
    assert_eq!(lines.len(), 1, "{lines:?}");
    let (fields, text) = lines[0].split_once(" query=").expect("a text");
    assert_eq!(text, "\"ASK {\\n ?s ?p \\\"a\\\" }\"");
    let fields: Vec<_> = fields
        .split(' ')
        .map(|field| field.split_once('=').expect("name=value"))
        .collect();
    let names: Vec<_> = fields.iter().map(|(name, _)| *name).collect();
    assert_eq!(
        names.join(" "),
        "time seconds rows kind status id client user query_bytes"
    );
    let of = |wanted: &str| {
        let found = fields.iter().find(|(name, _)| *name == wanted);
        found.map(|(_, value)| *value).expect("it was seen above")
    };
    for (name, value) in [
        ("kind", "query"),
        ("status", "ok"),
        ("client", "127.0.0.1"),
        ("user", "-"),
        ("query_bytes", "18"),
    ] {
        assert_eq!(of(name), value, "{name}");
    }
    assert!(of("seconds").parse::<f64>().is_ok(), "{}", of("seconds"));
}

#[test]
fn who_asks_is_in_the_list_of_queries() {
    let users = tempfile::tempdir().expect("a folder");
    let server = Running::with(|config| {
        with_ann(&users, config);
        let_anonymous(config, Role::Admin);
    });
    let mut connection = server.connect();
    connection.send("GET", &format!("/query?query={}", encode(ENDLESS)), ANN, "");
    let give_up = Instant::now() + Duration::from_secs(60);
    loop {
        let list = server.get("/queries", "").json();
        if list["queries"][0]["user"] == "ann" {
            break;
        }
        assert!(Instant::now() < give_up, "{list}");
    }
    connection.hang_up();
}
