//! Heavy queries, slow or lost clients, full servers: what is bounded, and what is cut.

use std::time::Duration;

use jindou_server::ServerConfig;

use crate::client::{Running, TRIPLES, encode};

/// More rows than anyone waits for.
const ENDLESS: &str = "SELECT * { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i . ?j ?k ?l }";
/// As much work, and not one row.
const FRUITLESS: &str = "SELECT * { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i . ?j ?k ?l \
                         FILTER(CONCAT(STR(?a), STR(?d), STR(?g), STR(?j)) = \"\") }";
const PRODUCT: &str = "SELECT * { ?s <http://e/p> ?o . ?t <http://e/p> ?u }";

fn target(query: &str, more: &str) -> String {
    format!("/query?query={}{more}", encode(query))
}

#[test]
fn a_large_result_is_streamed_whole() {
    for budget in [0, 1, 5] {
        let server = Running::with(|config| config.inline_budget = Duration::from_millis(budget));
        // The second time the text is known to be heavy.
        for _ in 0..2 {
            let answer = server.query(PRODUCT, "&format=tsv");
            assert_eq!(answer.header("transfer-encoding"), Some("chunked"));
            assert!(answer.whole);
            assert_eq!(answer.text().lines().count(), TRIPLES * TRIPLES + 1);
        }
        let answer = server.query(PRODUCT, "");
        let rows = answer.json()["results"]["bindings"]
            .as_array()
            .unwrap()
            .len();
        assert_eq!(rows, TRIPLES * TRIPLES);
    }
}

#[test]
fn a_small_result_of_a_heavy_query_has_a_length() {
    let server = Running::with(|config| config.inline_budget = Duration::ZERO);
    let answer = server.query("ASK {}", "&format=csv");
    assert_eq!(
        (answer.text().as_str(), answer.header("content-length")),
        ("true", Some("4"))
    );
    assert_eq!(server.query("nonsense", "").status, 400);
}

#[test]
fn results_come_before_the_last_is_found_and_a_lost_client_ends_the_query() {
    let server = Running::new();
    let mut connection = server.connect();
    connection.send("GET", &target(ENDLESS, "&format=tsv"), "", "");
    assert_eq!(connection.head().status, 200);
    assert!(connection.chunk().expect("a chunk").starts_with(b"?"));
    server.wait_for_metric("jindou_queries_in_flight 1");
    connection.hang_up();
    server.wait_for_metric("jindou_queries_in_flight 0");
    server.wait_for_metric("jindou_queries_total{status=\"abandoned\"} 1");
}

#[test]
fn a_client_lost_before_the_first_result_ends_the_query() {
    let server = Running::new();
    let mut connection = server.connect();
    connection.send("GET", &target(FRUITLESS, ""), "", "");
    server.wait_for_metric("jindou_queries_in_flight 1");
    server.wait_for_metric("jindou_queries_moved_total 1");
    connection.hang_up();
    server.wait_for_metric("jindou_queries_total{status=\"abandoned\"} 1");
    server.wait_for_metric("jindou_queries_in_flight 0");
}

#[test]
fn a_query_out_of_time_is_told_so_or_cut() {
    let server = Running::with(|config| config.max_timeout = Duration::from_millis(300));
    for more in ["&timeout=100ms", "&timeout=0.002", "&timeout=1000", ""] {
        let answer = server.query(FRUITLESS, more);
        assert_eq!(answer.status, 504, "{}", answer.text());
        assert!(answer.text().contains("limit"), "{}", answer.text());
    }
    for headers in ["", "Accept-Encoding: gzip\r\n"] {
        let answer = server.get(&target(ENDLESS, "&timeout=0.2s"), headers);
        assert_eq!(answer.status, 200);
        assert!(!answer.whole, "no client takes a part for the whole");
    }
    server.wait_for_metric("jindou_queries_total{status=\"timeout\"} 6");
}

#[test]
fn a_client_that_does_not_read_is_dropped() {
    let server = Running::with(|config| config.write_timeout = Duration::from_millis(100));
    let mut connection = server.connect();
    connection.send("GET", &target(ENDLESS, ""), "", "");
    server.wait_for_metric("jindou_queries_total{status=\"abandoned\"} 1");
    server.wait_for_metric("jindou_queries_in_flight 0");
}

#[test]
fn a_full_server_says_when_to_come_again() {
    let server = Running::with(|config| config.max_queries = 1);
    let mut first = server.connect();
    first.send("GET", &target(ENDLESS, ""), "", "");
    assert_eq!(first.head().status, 200);
    let answer = server.query("ASK {}", "");
    assert_eq!(answer.status, 503);
    assert_eq!(answer.header("retry-after"), Some("1"));
    assert_eq!(server.get("/health", "").status, 200);
    first.hang_up();
    server.wait_for_metric("jindou_queries_in_flight 0");
    assert_eq!(server.query("ASK {}", "").status, 200);
}

#[test]
fn connections_beyond_the_limit_wait_for_their_turn() {
    let server = Running::with(|config| config.max_connections = 1);
    let mut first = server.connect();
    let mut second = server.connect();
    second.send("GET", "/health", "", "");
    first.send("GET", "/health", "", "");
    assert_eq!(first.answer("GET").status, 200);
    first.hang_up();
    assert_eq!(second.answer("GET").status, 200);
}

#[test]
fn idle_connections_are_closed() {
    let server = Running::with(|config| config.idle_timeout = Duration::from_millis(50));
    let mut silent = server.connect();
    let mut used = server.connect();
    used.send("GET", "/health", "", "");
    assert_eq!(used.answer("GET").status, 200);
    let mut halfway = server.connect();
    halfway.write(b"GET /health HT");
    let mut bodiless = server.connect();
    let headers = "Content-Type: application/sparql-query\r\nContent-Length: 10\r\n";
    bodiless.send("POST", "/query", headers, "");
    assert_eq!(bodiless.answer("POST").status, 408);
    assert!(used.ended());
    // What these are told before the end is the HTTP library's choice.
    while !silent.ended() {
        let read = silent.reader.buffer().len();
        std::io::BufRead::consume(&mut silent.reader, read);
    }
    while !halfway.ended() {
        let read = halfway.reader.buffer().len();
        std::io::BufRead::consume(&mut halfway.reader, read);
    }
}

#[test]
fn requests_beyond_the_limits_are_refused() {
    let server = Running::with(|config| {
        config.max_body_bytes = 1000;
        config.max_header_bytes = 10_000;
    });
    let text = "Content-Type: application/sparql-query\r\n";
    assert_eq!(
        server
            .send("POST", "/query", text, &"#".repeat(1001))
            .status,
        413
    );
    let chunked = "Content-Type: application/sparql-query\r\nTransfer-Encoding: chunked\r\n";
    let mut connection = server.connect();
    connection.send("POST", "/query", chunked, "");
    connection.write(format!("400\r\n{}\r\n0\r\n\r\n", "#".repeat(0x400)).as_bytes());
    assert_eq!(connection.answer("POST").status, 413);
    let long = target(&"#".repeat(20_000), "");
    assert_eq!(server.get(&long, "").status, 431);
    assert_eq!(
        server
            .query(&format!("ASK {{}} #{}", "a".repeat(8000)), "")
            .status,
        200
    );
}

#[test]
fn a_stopping_server_ends_what_is_under_way() {
    let mut server = Running::with(|config: &mut ServerConfig| {
        config.shutdown_grace = Duration::from_millis(50);
    });
    let mut streaming = server.connect();
    streaming.send("GET", &target(ENDLESS, ""), "", "");
    assert_eq!(streaming.head().status, 200);
    let mut idle = server.connect();
    idle.send("GET", "/health", "", "");
    assert_eq!(idle.answer("GET").status, 200);
    server.stop();
    assert!(idle.ended());
    while streaming.chunk().is_some_and(|chunk| !chunk.is_empty()) {}
    assert!(streaming.ended());
}
