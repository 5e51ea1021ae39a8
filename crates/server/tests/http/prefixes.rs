//! Are the prefixes of the store read, replaced and used, and by nobody who may not?

use jindou_server::{AccessPolicy, Credentials, Role};

use crate::client::{Running, encode};

const JSON: &str = "Content-Type: application/json\r\n";
const TURTLE: &str = "Content-Type: text/turtle\r\n";

#[test]
fn prefixes_of_documents_are_read_and_replaced_in_both_formats() {
    let server = Running::new();
    assert_eq!(server.get("/prefixes", "").text(), "{}");
    let body = "@prefix e: <http://e/> . @prefix : <http://d/> . e:a a :T .";
    assert_eq!(
        server.send("POST", "/store?default", TURTLE, body).status,
        204
    );
    let answer = server.get("/prefixes", "");
    assert_eq!(answer.header("content-type"), Some("application/json"));
    assert_eq!(answer.text(), r#"{"":"http://d/","e":"http://e/"}"#);
    let turtle = "@prefix : <http://d/> .\n@prefix e: <http://e/> .\n";
    let answer = server.get("/prefixes/", "Accept: text/turtle\r\n");
    assert_eq!(
        answer.header("content-type"),
        Some("text/turtle; charset=utf-8")
    );
    assert_eq!(answer.text(), turtle);

    let put = |kind: &str, body: &str| server.send("PUT", "/prefixes", kind, body).status;
    assert_eq!(put(JSON, r#"{"x": "http://x/#"}"#), 204);
    assert_eq!(server.get("/prefixes", "").text(), r#"{"x":"http://x/#"}"#);
    assert_eq!(put(TURTLE, turtle), 204);
    assert_eq!(
        server.get("/prefixes", "Accept: text/turtle\r\n").text(),
        turtle
    );
    assert_eq!(put(JSON, "{}"), 204);
    assert_eq!(server.get("/prefixes", "").text(), "{}");
}

#[test]
fn a_body_that_declares_nothing_removes_no_prefixes() {
    let server = Running::new();
    let table = r#"{"e":"http://e/"}"#;
    assert_eq!(server.send("PUT", "/prefixes", JSON, table).status, 204);
    // The first is what `curl -d @FILE` sends of a file that is not there.
    for (kind, body) in [
        (TURTLE, ""),
        (JSON, ""),
        (JSON, "\n"),
        (TURTLE, "# nothing\n"),
        (TURTLE, "@base <http://e/> ."),
    ] {
        let answer = server.send("PUT", "/prefixes", kind, body);
        let told = answer.text();
        assert_eq!(answer.status, 400, "{kind}{body}: {told}");
        let advice = "declares no prefix, so nothing was changed; a prefix is removed by a table without it, \
                      and all of them by the object {} as application/json";
        assert!(told.contains(advice), "{told}");
        assert_eq!(server.get("/prefixes", "").text(), table);
    }
}

#[test]
fn documents_of_declarations_alone_bring_their_prefixes() {
    let xml =
        r#"<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:x="http://x/"/>"#;
    let large = format!(
        "@prefix large: <http://large/> .\n#{}\n",
        "x".repeat(64 << 10)
    );
    // What does not fit is in a temporary file.
    let server = Running::with(|config| config.max_body_bytes = 32 << 10);
    for (method, target, kind, body, name) in [
        (
            "POST",
            "/store?default",
            "text/turtle",
            "@prefix a: <http://a/> .",
            "a",
        ),
        (
            "PUT",
            "/store?graph=http://e/g",
            "text/turtle",
            "PREFIX b: <http://b/>",
            "b",
        ),
        (
            "POST",
            "/store",
            "text/turtle",
            "@prefix c: <http://c/> .",
            "c",
        ),
        (
            "POST",
            "/store",
            "application/trig",
            "@prefix d: <http://d/> .",
            "d",
        ),
        ("POST", "/store?default", "application/rdf+xml", xml, "x"),
        (
            "POST",
            "/store",
            "application/ld+json",
            r#"{"@context": {"j": "http://j/"}}"#,
            "j",
        ),
        ("POST", "/store?default", "text/turtle", &large, "large"),
    ] {
        let answer = server.send(method, target, &format!("Content-Type: {kind}\r\n"), body);
        assert!(answer.status < 300, "{name}: {}", answer.text());
        assert_eq!(answer.header("jindou-inserted"), Some("0"), "{name}");
        let known = server.get("/prefixes", "").json();
        assert_eq!(known[name], format!("http://{name}/"), "{known}");
    }
}

#[test]
fn what_is_wrong_with_prefixes_is_told_and_changes_nothing() {
    let server = Running::new();
    let many: Vec<String> = (0..1001)
        .map(|n| format!(r#""p{n}": "http://e/""#))
        .collect();
    let many = format!("{{{}}}", many.join(", "));
    for (method, headers, body, status, said) in [
        (
            "PUT",
            JSON,
            r#"{"a b": "http://e/"}"#,
            400,
            "\"a b\" is no name",
        ),
        (
            "PUT",
            JSON,
            r#"{"a": "e/"}"#,
            400,
            "the prefix a: stands for <e/>",
        ),
        ("PUT", JSON, r#"["a"]"#, 400, "no object of names and IRIs"),
        ("PUT", JSON, &many, 400, "more than 1000 prefixes"),
        ("PUT", TURTLE, "<http://e/a> a 1 .", 400, "states triples"),
        ("PUT", TURTLE, "@prefix a: <e> .", 400, "no Turtle"),
        ("PUT", "", "{}", 415, "application/json or text/turtle"),
        (
            "PUT",
            "Content-Type: application/n-triples\r\n",
            "",
            415,
            "n-triples",
        ),
        ("POST", JSON, "{}", 405, "GET, HEAD, PUT, OPTIONS"),
        ("DELETE", "", "", 405, "GET, HEAD, PUT, OPTIONS"),
        ("GET", "Accept: text/csv\r\n", "", 406, "text/turtle"),
    ] {
        let answer = server.send(method, "/prefixes", headers, body);
        let told = format!("{} {:?}", answer.text(), answer.header("allow"));
        assert_eq!(answer.status, status, "{method} {body}: {told}");
        assert!(told.contains(said), "{method} {body}: {told}");
    }
    assert_eq!(server.get("/prefixes", "").text(), "{}");
    let nothing = server.get("/nothing", "");
    for path in ["/prefixes", "/query", "/sparql", "/update", "/store"] {
        assert!(nothing.text().contains(path), "{}", nothing.text());
    }
}

#[test]
fn who_may_not_write_replaces_no_prefixes() {
    let read_only = Running::with(|config| config.read_only = true);
    let folder = tempfile::tempdir().expect("a folder");
    let users = folder.path().join("users");
    let token = format!("token:ann:write:{}\n", "0".repeat(64));
    std::fs::write(&users, token).expect("written");
    let reader = Running::with(|config| {
        config.access = AccessPolicy::Known {
            credentials: Credentials::read(users).expect("it is right"),
            anonymous: Some(Role::Read),
        };
    });
    for (server, status) in [(&read_only, 403), (&reader, 401)] {
        assert_eq!(server.get("/prefixes", "").status, 200);
        let refused = server.send("PUT", "/prefixes", JSON, "{}");
        assert_eq!(refused.status, status, "{}", refused.text());
    }
}

#[test]
fn results_use_the_prefixes_of_the_query_first_and_then_those_of_the_store() {
    let server = Running::new();
    let body = r#"{"e": "http://e/", "n": "http://n/"}"#;
    assert_eq!(server.send("PUT", "/prefixes", JSON, body).status, 204);
    let document = "<http://e/s> a <http://n/T> ; <http://e/p> [ <http://e/q> 1 ] .";
    assert_eq!(
        server
            .send("PUT", "/store?default", TURTLE, document)
            .status,
        204
    );
    let laid_out = |prefixes: &str, n: &str| {
        format!("{prefixes}\ne:s a {n}:T ;\n    e:p [\n        e:q 1\n    ] .\n")
    };
    let own = "@prefix e: <http://e/> .\n@prefix n: <http://n/> .\n";
    let get = |target: &str, accept: &str| {
        let answer = server.get(target, &format!("Accept: {accept}\r\n"));
        assert_eq!(answer.status, 200, "{}", answer.text());
        answer.text()
    };
    assert_eq!(get("/store?default", "text/turtle"), laid_out(own, "n"));
    let query = "PREFIX mine: <http://n/> PREFIX unused: <http://u/> DESCRIBE <http://e/s>";
    let target = format!("/query?query={}", encode(query));
    let both = "@prefix mine: <http://n/> .\n@prefix e: <http://e/> .\n";
    assert_eq!(get(&target, "text/turtle"), laid_out(both, "mine"));
    let xml = get(&target, "application/rdf+xml");
    assert!(
        xml.contains("<mine:T") && xml.contains("<e:p") && !xml.contains("unused"),
        "{xml}"
    );
    let json = get(&target, "application/ld+json");
    assert!(
        json.starts_with(r#"{"@context":{"mine":"http://n/","e":"http://e/"}"#),
        "{json}"
    );
}
