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
        "jindou_update_duration_seconds_count 2",
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
            "Content-Type: application/sparql-update; charset=UTF-16\r\n",
            "CLEAR ALL",
            415,
            "UTF-16",
        ),
        (
            "POST",
            "/update",
            "Content-Encoding: deflate\r\nContent-Type: application/sparql-update\r\n",
            "CLEAR ALL",
            415,
            "Content-Encoding",
        ),
        ("POST", "/update", FORM, "", 400, "or update for an update"),
        (
            "POST",
            "/update",
            FORM,
            "query=ASK+%7B%7D&update=CLEAR+ALL",
            400,
            "both parameters",
        ),
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
            "application/sparql-query",
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
fn a_file_that_is_not_there_is_missed_in_an_allowed_folder_and_forbidden_elsewhere() {
    let folder = tempfile::tempdir().expect("a folder");
    let other = tempfile::tempdir().expect("a folder");
    std::fs::write(other.path().join("there.ttl"), "<#a> <#p> 1 .").expect("it is written");
    let mut engine = Config::default();
    engine.load = LoadPolicy::Folders(vec![folder.path().to_owned()]);
    let server = Running::with_engine(engine, |_| {});
    let load = |folder: &std::path::Path, name: &str| {
        let update = format!("LOAD <file://{}/{name}>", folder.display());
        let answer = server.send("POST", "/update", UPDATE, &update);
        // Without what the client itself said.
        let said = answer.text().replace(&*folder.to_string_lossy(), "");
        (answer.status, said.replace(name, ""))
    };
    let (status, said) = load(folder.path(), "absent.ttl");
    assert_eq!(status, 400, "{said}");
    assert!(said.contains("there is no such file"), "{said}");
    let there = load(other.path(), "there.ttl");
    assert_eq!(there.0, 403, "{}", there.1);
    assert_eq!(load(other.path(), "absent.ttl"), there);
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

#[test]
fn what_an_update_changed_is_returned_to_whoever_asks() {
    let server = Running::new();
    let update = |parameters: &str, headers: &str, text: &str| {
        let target = format!("/update?{parameters}");
        server.send("POST", &target, &format!("{UPDATE}{headers}"), text)
    };
    let insert = "INSERT DATA { <a> <p> 1 , \"x\\ny\"@en GRAPH <g> { <b> <p> <c> } } ;
                  INSERT DATA { <a> <p> 2 } ; DELETE DATA { <a> <p> 2 }";
    let answer = update("return-delta=true", "", insert);
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(answer.header("content-type"), Some("application/json"));
    assert_eq!(answer.header("jindou-inserted"), Some("4"));
    let json = answer.json();
    let number = answer.header("jindou-snapshot").expect("one").parse().ok();
    assert_eq!(json["snapshot"].as_u64(), number);
    let mut added: Vec<&str> = (json["added"].as_array().unwrap().iter())
        .map(|line| line.as_str().unwrap())
        .collect();
    added.sort_unstable();
    let integer = "<http://www.w3.org/2001/XMLSchema#integer>";
    let expected = [
        format!("<http://e/a> <http://e/p> \"1\"^^{integer} ."),
        "<http://e/a> <http://e/p> \"x\\ny\"@en .".to_owned(),
        "<http://e/b> <http://e/p> <http://e/c> <http://e/g> .".to_owned(),
    ];
    assert_eq!(added, expected);
    assert_eq!(json["removed"], serde_json::json!([]));

    let patch = "Accept: application/rdf-patch\r\n";
    let delete = "DELETE WHERE { GRAPH <g> { <b> ?p ?o } } ; INSERT DATA { <d> <p> <e> }";
    let answer = update("return-delta=true", patch, delete);
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(answer.header("content-type"), Some("application/rdf-patch"));
    assert_eq!(
        answer.text(),
        "TX .\nD <http://e/b> <http://e/p> <http://e/c> <http://e/g> .\n\
         A <http://e/d> <http://e/p> <http://e/e> .\nTC .\n"
    );
    // Again, it changes nothing.
    assert_eq!(
        update("return-delta=true", patch, delete).text(),
        "TX .\nTC .\n"
    );
    let empty = update("return-delta=true", "", delete).json();
    assert_eq!(
        (&empty["added"], &empty["removed"]),
        (&json["removed"], &json["removed"])
    );

    assert_eq!(update("return-delta=false", patch, "CLEAR ALL").status, 204);
    for (parameters, headers, status) in [
        ("return-delta=json", "", 400),
        ("return-delta=true", "Accept: text/turtle\r\n", 406),
    ] {
        let answer = update(parameters, headers, "INSERT DATA { <refused> <p> 1 }");
        assert_eq!(answer.status, status, "{}", answer.text());
    }
    assert!(!asks(&server, "?refused <http://e/p> 1"));
}

#[test]
fn a_long_delta_comes_in_parts() {
    let server = Running::new();
    let lines = |value: &serde_json::Value| -> Vec<String> {
        let lines = value.as_array().unwrap().iter();
        lines
            .map(|line| line.as_str().unwrap().to_owned())
            .collect()
    };
    // Around the bounds of parts.
    let mut before: Vec<String> = Vec::new();
    for many in [511, 512, 513, 1024, 3000] {
        let quads: String = (0..many)
            .map(|number| format!("<s{many}> <q{many}> {number} . "))
            .collect();
        let text = format!(
            "DELETE {{ ?s ?p ?o }} WHERE {{ ?s ?p ?o FILTER(STRSTARTS(STR(?p), 'http://e/q')) }} ;
             INSERT DATA {{ {quads} }}"
        );
        let answer = server.send("POST", "/update?return-delta=true", UPDATE, &text);
        assert_eq!(answer.status, 200, "{}", answer.text());
        let json = answer.json();
        let (mut added, mut removed) = (lines(&json["added"]), lines(&json["removed"]));
        added.sort_unstable();
        added.dedup();
        removed.sort_unstable();
        assert_eq!(added.len(), many);
        assert_eq!(removed, before);
        before = added;
    }
    let answer = server.send(
        "POST",
        "/update?return-delta=true",
        &format!("{UPDATE}Accept: application/rdf-patch\r\n"),
        "CLEAR ALL",
    );
    let text = answer.text();
    assert!(text.ends_with("TC .\n"));
    assert_eq!(text.matches("\nD <http://e/s3000>").count(), 3000);
}

#[test]
fn a_delta_that_is_too_large_is_refused_and_nothing_is_changed() {
    let mut engine = Config::default();
    engine.query_memory_bytes = 1 << 20;
    let server = Running::with_engine(engine, |_| {});
    let quads: String = (0..10_000)
        .map(|number| format!("<s> <many> {number} . "))
        .collect();
    let insert = format!("INSERT DATA {{ {quads} }}");
    let answer = server.send("POST", "/update?return-delta=true", UPDATE, &insert);
    assert_eq!(answer.status, 422, "{}", answer.text());
    assert!(
        answer.text().contains("nothing was changed"),
        "{}",
        answer.text()
    );
    assert!(!asks(&server, "?s <http://e/many> ?o"));
    assert_eq!(server.send("POST", "/update", UPDATE, &insert).status, 204);
}
