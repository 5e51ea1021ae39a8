//! Do the requests that clients send get their answers? They are as they were recorded of the clients
//! themselves, which `cargo xtask test --clients` runs: parameters and headers in the clients' words.

use crate::client::{Answer, Running, TRIPLES, encode};

const SELECT: &str = "SELECT ?age { <http://e/x> <http://e/age> ?age }";
const ASK: &str = "ASK { <http://e/x> <http://e/age> 7 }";
const CONSTRUCT: &str = "CONSTRUCT WHERE { <http://e/x> <http://e/age> ?age }";
const UPDATE: &str =
    "DELETE WHERE { ?s <http://e/new> ?o }; INSERT DATA { <http://e/x> <http://e/new> 'é & +' }";
/// Where a client that knows one address may send everything.
const ENDPOINTS: [&str; 4] = ["/", "/query", "/update", "/sparql"];

const JSON: &str = "application/sparql-results+json";
const XML: &str = "application/sparql-results+xml";

/// The answer is a whole one with a length and of this media type.
fn assert_kind(answer: &Answer, kind: &str, what: &str) {
    assert_eq!(answer.status, 200, "{what}: {}", answer.text());
    let given = answer.header("content-type").expect("a type");
    assert_eq!(given.split(';').next(), Some(kind), "{what}");
    assert!(answer.header("content-length").is_some(), "{what}");
}

fn assert_done(answer: &Answer, what: &str) {
    assert_eq!(answer.status, 204, "{what}: {}", answer.text());
    assert_eq!(answer.header("jindou-inserted"), Some("1"), "{what}");
}

/// Sends a query by GET, as a form, and as text, to every endpoint.
fn ask(server: &Running, query: &str, more: &str, headers: &str, kind: &str) {
    let parameters = format!("query={}{more}", encode(query));
    let form = format!("Content-Type: application/x-www-form-urlencoded\r\n{headers}");
    let text = format!("Content-Type: application/sparql-query\r\n{headers}");
    for path in ENDPOINTS {
        let in_url = format!("{path}?{}", more.trim_start_matches('&'));
        for answer in [
            server.get(&format!("{path}?{parameters}"), headers),
            server.send("POST", path, &form, &parameters),
            server.send("POST", &in_url, &text, query),
        ] {
            assert_kind(&answer, kind, &format!("{path} {query} {more}"));
        }
    }
}

/// Sends an update as a form and as text to every endpoint.
fn update(server: &Running, more: &str, headers: &str) {
    let form = format!("Content-Type: application/x-www-form-urlencoded\r\n{headers}");
    let text = format!("Content-Type: application/sparql-update\r\n{headers}");
    let encoded = format!("update={}{more}", encode(UPDATE));
    for path in ENDPOINTS {
        assert_done(&server.send("POST", path, &form, &encoded), path);
        // Some write the mark of parameters where there are none.
        let marked = format!("{path}?");
        assert_done(&server.send("POST", &marked, &text, UPDATE), path);
    }
}

#[test]
fn sparqlwrapper_sends_its_format_in_three_parameters() {
    let server = Running::new();
    let three = |values: &[&str]| {
        let named = ["format", "output", "results"].map(|name| {
            let pairs = values.iter().map(|value| format!("&{name}={value}"));
            pairs.collect::<String>()
        });
        named.concat()
    };
    let json =
        "application/sparql-results+json,application/json,text/javascript,application/javascript";
    let n3 =
        "application/turtle,text/turtle,text/rdf+n3,application/n-triples,application/n3,text/n3";
    let json_ld = ["json-ld", "application/ld%2Bjson%2Capplication/x-json%2Bld"];
    for (query, values, accept, kind) in [
        (SELECT, &["json"][..], json, JSON),
        (SELECT, &["xml"], XML, XML),
        (SELECT, &["csv"], "text/csv", "text/csv"),
        (
            SELECT,
            &["tsv", "text/tab-separated-values"],
            "text/tab-separated-values",
            "text/tab-separated-values",
        ),
        (SELECT, &["turtle"], "*/*", JSON),
        (SELECT, &["n3"], "*/*", JSON),
        (SELECT, &["rdf%2Bxml", ""], "*/*", JSON),
        (SELECT, &["json-ld", ""], "*/*", JSON),
        (ASK, &["json"], json, JSON),
        (ASK, &["xml"], XML, XML),
        (ASK, &["turtle"], "*/*", JSON),
        (
            CONSTRUCT,
            &["xml"],
            "application/rdf+xml",
            "application/rdf+xml",
        ),
        (
            CONSTRUCT,
            &["rdf%2Bxml", "application/rdf%2Bxml"],
            "application/rdf+xml",
            "application/rdf+xml",
        ),
        (
            CONSTRUCT,
            &json_ld,
            "application/ld+json,application/x-json+ld",
            "application/ld+json",
        ),
        (
            CONSTRUCT,
            &["turtle"],
            "application/turtle,text/turtle",
            "text/turtle",
        ),
        (CONSTRUCT, &["n3"], n3, "text/n3"),
        (CONSTRUCT, &["json"], "*/*", "application/ld+json"),
        (CONSTRUCT, &["csv"], "*/*", "text/turtle"),
        (CONSTRUCT, &["tsv", ""], "*/*", "text/turtle"),
    ] {
        let headers =
            format!("Accept-Encoding: identity\r\nAccept: {accept}\r\nConnection: close\r\n");
        ask(&server, query, &three(values), &headers, kind);
    }
    let accept = format!("Accept: {json}\r\nConnection: close\r\n");
    let virtuoso = "&default-graph-uri=&named-graph-uri=&timeout=0&debug=on&format=json";
    ask(&server, ASK, virtuoso, &accept, JSON);
    update(&server, "", &accept);
}

#[test]
fn rdflib_takes_two_media_types_for_all_forms() {
    let server = Running::new();
    let accept = "Accept-Encoding: identity\r\nUser-Agent: Python-urllib/3.11\r\n\
                  Accept: application/rdf+xml, application/sparql-results+xml\r\nConnection: close\r\n";
    ask(&server, SELECT, "", accept, XML);
    ask(&server, ASK, "", accept, XML);
    ask(&server, CONSTRUCT, "", accept, "application/rdf+xml");
    let graph = "&default-graph-uri=http%3A%2F%2Fe%2Fg";
    ask(
        &server,
        "SELECT (count(*) as ?c) WHERE {?s ?p ?o .}",
        graph,
        accept,
        XML,
    );
    update(&server, "", accept);
    let text = format!("Content-Type: application/sparql-update; charset=UTF-8\r\n{accept}");
    assert_done(&server.send("POST", "/?", &text, UPDATE), "charset");
}

/// Comunica asks what an endpoint is, with HTML as one of the last that it would read, and takes the
/// endpoint that the description names.
#[test]
fn comunica_finds_out_what_an_endpoint_is() {
    let server = Running::new();
    let common = "Host: 127.0.0.1\r\nAccept-Encoding: br,gzip,deflate\r\naccept-language: *\r\n\
                  sec-fetch-mode: cors\r\n";
    let discovers = format!(
        "{common}Accept: application/n-quads,application/trig;q=0.95,application/ld+json;q=0.9,\
         application/n-triples;q=0.8,text/turtle;q=0.6,application/rdf+xml;q=0.5,text/n3;q=0.35,\
         application/xml;q=0.3,image/svg+xml;q=0.3,text/xml;q=0.3,text/html;q=0.2,\
         application/xhtml+xml;q=0.18,application/json;q=0.135,text/shaclc;q=0.1,\
         text/shaclc-ext;q=0.05\r\n"
    );
    for path in ENDPOINTS {
        let answer = server.get(path, &discovers);
        assert_kind(&answer, "application/n-quads", path);
        let sd = "<http://www.w3.org/ns/sparql-service-description#endpoint>";
        let endpoint = format!("<http://127.0.0.1{path}> {sd} <http://127.0.0.1{path}> .");
        let text = answer.text();
        let named: Vec<&str> = text.lines().filter(|line| line.contains(sd)).collect();
        assert_eq!(named, [endpoint], "{path}");
    }
    let bindings = "application/sparql-results+json;q=1.0,application/sparql-results+xml;q=0.7";
    let accept = format!("{common}Accept: {bindings}\r\n");
    ask(&server, SELECT, "", &accept, JSON);
    ask(&server, ASK, "", &accept, JSON);
    let accept = format!("{common}Accept: text/turtle\r\n");
    ask(&server, CONSTRUCT, "", &accept, "text/turtle");
    update(&server, "", &format!("{common}Accept: */*\r\n"));
}

#[test]
fn html_is_given_where_it_is_preferred_only() {
    let server = Running::new();
    for (accept, status) in [
        ("text/html;q=0.1,text/turtle", 200),
        ("text/html;q=0.1,*/*;q=0.2", 200),
        ("text/html;q=0.5,application/n-triples;q=0.5", 200),
        ("text/html,application/rdf+xml;q=0.9", 303),
        ("text/html;q=0.1", 303),
    ] {
        for path in &ENDPOINTS[1..] {
            let answer = server.get(path, &format!("Accept: {accept}\r\n"));
            assert_eq!(answer.status, status, "{path} {accept}");
        }
    }
}

#[test]
fn jena_knows_one_address_and_writes_whole_datasets() {
    let server = Running::new();
    let common = "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n\
                  HTTP2-Settings: AAEAAEAAAAIAAAAAAAMAAAAAAAQBAAAAAAUAAEAAAAYABgAA\r\n";
    let accept = |kinds: &str| format!("{common}Accept: {kinds}\r\n");
    let select = accept(
        "application/sparql-results+json, application/sparql-results+xml;q=0.9, \
         text/tab-separated-values;q=0.7, text/csv;q=0.5,application/json;q=0.2,\
         application/xml;q=0.2,*/*;q=0.1",
    );
    ask(&server, SELECT, "", &select, JSON);
    let truth = accept(
        "application/sparql-results+json, application/sparql-results+xml;q=0.9,\
         application/json;q=0.2,application/xml;q=0.2,*/*;q=0.1",
    );
    ask(&server, ASK, "", &truth, JSON);
    let graph = accept(
        "text/turtle,application/n-triples;q=0.9,application/ld+json;q=0.8,\
         application/rdf+xml;q=0.7,*/*;q=0.3",
    );
    ask(&server, CONSTRUCT, "", &graph, "text/turtle");
    update(&server, "", common);

    let dataset =
        accept("application/trig,application/n-quads;q=0.9,application/ld+json;q=0.8,*/*;q=0.3");
    let fetched = server.get("/store", &dataset);
    assert_kind(&fetched, "application/trig", "fetchDataset");
    let quad = "<http://e/a> <http://e/p> \"1\"  <http://e/h> .\n";
    let json = r#"{"@id": "http://e/h", "@graph": [{"@id": "http://e/a", "http://e/p": "2"}]}"#;
    for (method, kind, body, inserted) in [
        ("PUT", "application/n-quads", quad, "1"),
        ("POST", "application/ld+json", json, "1"),
        ("PUT", "application/trig", &*fetched.text(), "305"),
    ] {
        let headers = format!("{common}Content-Type: {kind}\r\n");
        let answer = server.send(method, "/store", &headers, body);
        assert_eq!(answer.status, 204, "{kind}: {}", answer.text());
        assert_eq!(answer.header("jindou-inserted"), Some(inserted), "{kind}");
    }
    assert_eq!(TRIPLES + 5, 305, "with the triple of the update");
    let head = server.send("HEAD", "/store", &dataset, "");
    assert_eq!(
        (head.status, head.header("content-type")),
        (200, Some("application/trig"))
    );
}

#[test]
fn rdf4j_knows_one_address() {
    let server = Running::new();
    let accept = |kinds: &str| {
        format!("Accept: {kinds}\r\nConnection: Keep-Alive\r\nAccept-Encoding: gzip,deflate\r\n")
    };
    let tuples = accept(
        "application/sparql-results+xml, application/xml, \
         application/x-sparqlstar-results+xml;q=0.8, application/x-binary-rdf-results-table;q=0.8",
    );
    ask(&server, SELECT, "", &tuples, XML);
    let truth = accept("application/sparql-results+xml;q=0.8, application/xml;q=0.8");
    ask(&server, ASK, "", &truth, XML);
    let graph = accept(
        "application/n-triples;q=0.7, text/plain;q=0.7, text/turtle, application/x-turtle, \
         application/trig;q=0.8, application/x-trig;q=0.8, application/x-trigstar;q=0.8, \
         text/x-turtlestar;q=0.8, application/x-turtlestar;q=0.8",
    );
    ask(&server, CONSTRUCT, "", &graph, "text/turtle");
    let graph_of = "&default-graph-uri=http%3A%2F%2Fe%2Fg";
    ask(
        &server,
        "ASK { ?s <http://e/in> ?o }",
        graph_of,
        &truth,
        XML,
    );
    let form = "Content-Type: application/x-www-form-urlencoded; charset=utf-8\r\n";
    let body = format!("update={}", encode(UPDATE));
    for path in ENDPOINTS {
        assert_done(&server.send("POST", path, form, &body), path);
    }
}

#[test]
fn clients_of_node_send_chunks_and_an_empty_default() {
    let server = Running::new();
    let accept =
        "Accept: application/sparql-results+json;q=1.0,application/sparql-results+xml;q=0.7\r\n";
    ask(&server, SELECT, "", accept, JSON);
    let accept =
        "accept: application/n-triples, text/turtle\r\naccept-encoding: gzip, deflate, br\r\n";
    ask(&server, CONSTRUCT, "", accept, "text/turtle");
    update(&server, "", "accept: */*\r\n");
    let line = "<urn:a> <urn:store> \"one\" .\n";
    for target in ["/store?default=", "/store?graph=http%3A%2F%2Fe%2Fh"] {
        let mut connection = server.connect();
        let head =
            "accept: */*\r\ncontent-type: application/n-triples\r\nTransfer-Encoding: chunked\r\n";
        connection.send("PUT", target, head, "");
        connection.write(format!("{:x}\r\n{line}\r\n0\r\n\r\n", line.len()).as_bytes());
        let answer = connection.answer("PUT");
        assert!(answer.status < 300, "{target}: {}", answer.text());
        let read = server.get(target, "accept: application/n-triples\r\n");
        assert_eq!(read.text(), line, "{target}");
    }
}
