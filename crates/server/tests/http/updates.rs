//! Are updates executed as the SPARQL 1.1 Protocol says, and only those that may be?

use std::time::{Duration, Instant};

use jindou_engine::{Config, LoadPolicy};
use jindou_server::Cors;

use crate::client::{Running, encode};

const FORM: &str = "Content-Type: application/x-www-form-urlencoded\r\n";
const UPDATE: &str = "Content-Type: application/sparql-update\r\n";
/// Finds nothing for as long as it may.
const ENDLESS: &str = "DELETE { ?a ?b ?c } WHERE { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i . ?j ?k ?l \
                       FILTER(STRLEN(CONCAT(STR(?a), STR(?d), STR(?g), STR(?j))) = 0) }";

fn asks(server: &Running, pattern: &str) -> bool {
    let answer = server.query(&format!("ASK {{ {pattern} }}"), "&format=json");
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()["boolean"] == true
}

#[test]
fn an_update_is_seen_by_its_client_once_it_is_answered() {
    let server = Running::new();
    let answer = server.send("POST", "/update", UPDATE, "INSERT DATA { <a> <#p> 1 , 2 }");
    assert_eq!(answer.status, 204, "{}", answer.text());
    assert_eq!(answer.header("jindou-inserted"), Some("2"));
    assert_eq!(answer.header("jindou-deleted"), Some("0"));
    assert_eq!(answer.header("jindou-query-id").map(str::len), Some(16));
    let first: u64 = answer
        .header("jindou-snapshot")
        .expect("one")
        .parse()
        .expect("a number");
    // Relative IRIs are those of the endpoint.
    assert!(asks(&server, "<http://e/a> <http://e/update#p> 1 , 2"));
    let form = format!("update={}", encode("DELETE DATA { <http://e/a> <#p> 1 }"));
    let answer = server.send("POST", "/update", FORM, &form);
    assert_eq!(answer.status, 204, "{}", answer.text());
    assert_eq!(answer.header("jindou-deleted"), Some("1"));
    assert_eq!(
        answer.header("jindou-snapshot"),
        Some(&*(first + 1).to_string())
    );
    assert!(!asks(&server, "<http://e/a> <http://e/update#p> 1"));
    let text = server.get("/metrics", "").text();
    for line in [
        "jindou_updates_total{status=\"ok\"} 2",
        "jindou_quads_inserted_total 2",
        "jindou_quads_deleted_total 1",
    ] {
        assert!(text.lines().any(|l| l == line), "no {line} in\n{text}");
    }
}

#[test]
fn the_dataset_of_where_is_given_by_the_protocol() {
    let server = Running::new();
    let copy = "INSERT { ?s <http://e/copied> ?o } WHERE { ?s <http://e/in> ?o }";
    let found = |parameters: &str| {
        let target = format!("/update?{parameters}");
        let answer = server.send("POST", &target, UPDATE, copy);
        assert_eq!(answer.status, 204, "{}", answer.text());
        answer.header("jindou-inserted") == Some("1")
    };
    assert!(!found(""));
    assert!(found("using-graph-uri=http%3A%2F%2Fe%2Fg"));
    for (parameters, text) in [
        (
            "using-graph-uri=http%3A%2F%2Fe%2Fg",
            "WITH <http://e/g> DELETE { ?s ?p ?o } WHERE { ?s ?p ?o }",
        ),
        (
            "using-named-graph-uri=http%3A%2F%2Fe%2Fg",
            "DELETE { ?s ?p ?o } USING <http://e/g> WHERE { ?s ?p ?o }",
        ),
        ("using-graph-uri=g", copy),
        ("default-graph-uri=http%3A%2F%2Fe%2Fg", copy),
        ("update=CLEAR+ALL", copy),
    ] {
        let answer = server.send("POST", &format!("/update?{parameters}"), UPDATE, text);
        assert_eq!(answer.status, 400, "{parameters}: {}", answer.text());
    }
}

#[test]
fn what_is_no_update_is_refused_and_changes_nothing() {
    let server = Running::new();
    for (method, target, headers, body, status, told) in [
        ("GET", "/update?update=CLEAR+ALL", "", "", 405, "POST"),
        ("PUT", "/update", UPDATE, "CLEAR ALL", 405, "POST"),
        (
            "POST",
            "/update",
            "",
            "CLEAR ALL",
            415,
            "application/sparql-update",
        ),
        (
            "POST",
            "/update",
            "Content-Type: text/plain\r\n",
            "CLEAR ALL",
            415,
            "application/sparql-update",
        ),
        (
            "POST",
            "/update",
            "Content-Type: application/sparql-query\r\n",
            "ASK {}",
            415,
            "/query",
        ),
        (
            "POST",
            "/update",
            "Content-Type: application/sparql-update; charset=UTF-16\r\n",
            "CLEAR ALL",
            415,
            "UTF-16",
        ),
        (
            "POST",
            "/update",
            "Content-Encoding: gzip\r\nContent-Type: application/sparql-update\r\n",
            "CLEAR ALL",
            415,
            "Content-Encoding",
        ),
        ("POST", "/update", FORM, "", 400, "update is missing"),
        ("POST", "/update", FORM, "query=ASK+%7B%7D", 400, "/query"),
        (
            "POST",
            "/update",
            FORM,
            "update=CLEAR+ALL&update=CLEAR+ALL",
            400,
            "more than once",
        ),
        (
            "POST",
            "/update",
            UPDATE,
            "SELECT * { ?s ?p ?o }",
            400,
            "/query",
        ),
        (
            "POST",
            "/update",
            UPDATE,
            "CLEAR\nXYZ",
            400,
            "line 2, column 1",
        ),
        (
            "POST",
            "/update",
            UPDATE,
            "CLEAR ALL; DROP GRAPH <http://e/none>",
            404,
            "http://e/none",
        ),
        (
            "POST",
            "/update",
            UPDATE,
            "COPY <http://e/none> TO DEFAULT",
            404,
            "http://e/none",
        ),
        (
            "POST",
            "/update",
            UPDATE,
            "CLEAR ALL; CREATE GRAPH <http://e/h>; CREATE GRAPH <http://e/h>",
            409,
            "exists",
        ),
        (
            "POST",
            "/update",
            UPDATE,
            "CLEAR ALL; LOAD <urn:e:x>",
            501,
            "file:",
        ),
        (
            "POST",
            "/update",
            UPDATE,
            "CLEAR ALL; LOAD <http://127.0.0.1:9/x>",
            502,
            "cannot be reached",
        ),
        (
            "POST",
            "/update",
            UPDATE,
            "CLEAR ALL; INSERT { ?s ?p ?o } WHERE { SERVICE <http://127.0.0.1:9/> { ?s ?p ?o } }",
            403,
            "--allow-service",
        ),
    ] {
        let answer = server.send(method, target, headers, body);
        let text = answer.text();
        assert_eq!(answer.status, status, "{method} {target} {body}: {text}");
        assert!(text.contains(told), "{method} {target} {body}: {text}");
        assert_eq!(text.matches('\n').count(), 1, "one line: {text}");
    }
    assert!(asks(&server, "<http://e/s0> ?p ?o"), "nothing was cleared");
}

#[test]
fn files_are_loaded_from_folders_that_are_allowed_only() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("a.ttl");
    std::fs::write(&file, "<#a> <#p> 1 .").expect("it is written");
    let load = format!(
        "LOAD <file://{}> INTO GRAPH <http://e/loaded>",
        file.display()
    );
    for (policy, status) in [
        (LoadPolicy::None, 403),
        (LoadPolicy::Folders(vec![folder.path().to_owned()]), 204),
    ] {
        let mut engine = Config::default();
        engine.load = policy;
        let server = Running::with_engine(engine, |_| {});
        let answer = server.send("POST", "/update", UPDATE, &load);
        assert_eq!(answer.status, status, "{}", answer.text());
        assert_eq!(
            asks(&server, "GRAPH <http://e/loaded> { ?s ?p 1 }"),
            status == 204
        );
    }
}

#[test]
fn an_update_is_listed_and_can_be_ended_until_it_is_written() {
    let server = Running::new();
    let mut connection = server.connect();
    connection.send("POST", "/update?timeout=600", UPDATE, ENDLESS);
    let give_up = Instant::now() + Duration::from_secs(60);
    let id = loop {
        let list = server.get("/queries", "").json();
        let update = &list["queries"][0];
        if update["kind"] == "update" {
            assert_eq!(update["query"], ENDLESS);
            break update["id"].as_str().expect("a text").to_owned();
        }
        assert!(Instant::now() < give_up, "it is not listed: {list}");
        std::thread::yield_now();
    };
    assert_eq!(
        server
            .send("DELETE", &format!("/queries/{id}"), "", "")
            .status,
        204
    );
    let answer = connection.answer("POST");
    assert_eq!(answer.status, 409, "{}", answer.text());
    assert_eq!(answer.header("jindou-query-id"), Some(&*id));
    let answer = server.send("POST", "/update?timeout=50ms", UPDATE, ENDLESS);
    assert_eq!(answer.status, 504, "{}", answer.text());
    assert!(
        answer.text().contains("nothing was changed"),
        "{}",
        answer.text()
    );
    // A client that goes away ends its update, too; the next one does not wait for it.
    let mut connection = server.connect();
    connection.send("POST", "/update?timeout=600", UPDATE, ENDLESS);
    connection.hang_up();
    let answer = server.send("POST", "/update", UPDATE, "INSERT DATA { <a> <b> <c> }");
    assert_eq!(answer.status, 204, "{}", answer.text());
}

#[test]
fn pages_of_others_and_clients_of_a_server_to_read_change_nothing() {
    let clear = |server: &Running, headers: &str| {
        let headers = format!("{UPDATE}{headers}");
        server
            .send("POST", "/update", &headers, "CLEAR DEFAULT")
            .status
    };
    let server = Running::new();
    assert_eq!(clear(&server, "Origin: http://other\r\n"), 403);
    assert_eq!(clear(&server, "Origin: null\r\n"), 403);
    assert_eq!(
        server
            .send("DELETE", "/store?default", "Origin: http://other\r\n", "")
            .status,
        403
    );
    assert!(asks(&server, "<http://e/s0> ?p ?o"));
    assert_eq!(
        clear(
            &server,
            "Host: localhost:7878\r\nOrigin: http://localhost:7878\r\n"
        ),
        204,
        "its own page may"
    );
    let server = Running::with(|config| {
        config.cors = Cors::Origins(vec!["http://other".to_owned()]);
    });
    assert_eq!(clear(&server, "Origin: http://another\r\n"), 403);
    assert_eq!(clear(&server, "Origin: http://other\r\n"), 204);
    let server = Running::with(|config| config.read_only = true);
    assert_eq!(clear(&server, ""), 403);
    for method in ["PUT", "POST", "DELETE"] {
        assert_eq!(server.send(method, "/store?default", "", "").status, 403);
    }
    assert_eq!(server.get("/store?default", "").status, 200);
    let description = server
        .get("/query", "Accept: application/n-triples\r\n")
        .text();
    assert!(!description.contains("SPARQL11Update"), "{description}");
}

#[test]
fn many_clients_write_at_once() {
    let server = Running::with(|config| config.updates = 2);
    std::thread::scope(|scope| {
        for client in 0..8 {
            let server = &server;
            scope.spawn(move || {
                let mut connection = server.connect();
                for n in 0..5 {
                    let text = format!("INSERT DATA {{ <c{client}> <http://e/wrote> {n} }}");
                    connection.send("POST", "/update", UPDATE, &text);
                    let answer = connection.answer("POST");
                    assert_eq!(answer.status, 204, "{}", answer.text());
                }
            });
        }
    });
    let count = "SELECT (COUNT(*) AS ?n) { ?s <http://e/wrote> ?o }";
    assert_eq!(server.query(count, "&format=csv").text(), "n\r\n40\r\n");
}
