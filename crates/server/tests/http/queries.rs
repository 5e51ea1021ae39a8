//! The list of queries under way: who sees it, and who ends what.

use std::time::Duration;

use crate::client::{Running, encode};
use crate::limits::{ENDLESS, FRUITLESS, target};

/// The id of the only query under way, once there is one in this state.
fn only(server: &Running, state: &str) -> String {
    loop {
        let list = server.get("/queries", "").json();
        let queries = list["queries"].as_array().expect("a list");
        let found = queries.iter().find(|query| query["state"] == state);
        if let Some(query) = found {
            return query["id"].as_str().expect("an id").to_owned();
        }
        std::thread::yield_now();
    }
}

#[test]
fn queries_are_listed_with_their_progress() {
    let server = Running::new();
    assert_eq!(
        server.get("/queries", "").json()["queries"],
        serde_json::json!([])
    );
    let mut connection = server.connect();
    connection.send("GET", &target(FRUITLESS, "&timeout=50"), "", "");
    server.wait_for_metric("jindou_heavy_queries{state=\"computing\"} 1");
    let id = only(&server, "running");
    let query = loop {
        let query = server.get(&format!("/queries/{id}"), "").json();
        if query["batches"].as_u64().expect("a number") > 0 {
            break query;
        }
    };
    assert_eq!(query["class"], "heavy");
    assert_eq!(query["query"], FRUITLESS);
    assert_eq!(query["timeout_seconds"], 50.0);
    assert_eq!(
        (&query["rows_found"], &query["rows_sent"]),
        (&0.into(), &0.into())
    );
    let local = connection.reader.get_ref().local_addr().expect("connected");
    assert_eq!(query["client"], local.to_string());
    connection.hang_up();
    server.wait_for_metric("jindou_queries_in_flight 0");
    assert_eq!(server.get(&format!("/queries/{id}"), "").status, 404);
}

#[test]
fn a_query_that_has_sent_nothing_is_told_that_it_was_cancelled() {
    let server = Running::new();
    let mut connection = server.connect();
    connection.send("GET", &target(FRUITLESS, ""), "", "");
    let id = only(&server, "running");
    let deleted = server.send("DELETE", &format!("/queries/{id}"), "", "");
    assert_eq!(deleted.status, 204);
    let answer = connection.answer("GET");
    assert_eq!((answer.status, answer.header("retry-after")), (409, None));
    assert!(answer.text().contains("cancelled"), "{}", answer.text());
    assert_eq!(answer.header("jindou-query-id"), Some(&*id));
    server.wait_for_metric("jindou_queries_total{status=\"cancelled\"} 1");
    server.wait_for_metric("jindou_queries_in_flight 0");
    let again = server.send("DELETE", &format!("/queries/{id}"), "", "");
    assert_eq!(again.status, 404);
    // The connection is in order.
    connection.send("GET", "/health", "", "");
    assert_eq!(connection.answer("GET").status, 200);
}

#[test]
fn a_query_that_waits_for_its_turn_can_be_cancelled() {
    let server = Running::with(|config| config.heavy_queries = 1);
    let mut first = server.connect();
    first.send("GET", &target(FRUITLESS, ""), "", "");
    server.wait_for_metric("jindou_heavy_queries{state=\"computing\"} 1");
    let mut second = server.connect();
    second.send("GET", &target(FRUITLESS, ""), "", "");
    let id = only(&server, "queued");
    assert_eq!(
        server
            .send("DELETE", &format!("/queries/{id}"), "", "")
            .status,
        204
    );
    assert_eq!(second.answer("GET").status, 409);
    server.wait_for_metric("jindou_heavy_queries{state=\"queued\"} 0");
    server.wait_for_metric("jindou_queries_in_flight 1");
}

#[test]
fn results_under_way_break_off_when_their_query_is_cancelled() {
    let server = Running::new();
    for reads in [true, false] {
        let mut connection = server.connect();
        connection.send("GET", &target(ENDLESS, ""), "", "");
        let id = connection
            .head()
            .header("jindou-query-id")
            .unwrap()
            .to_owned();
        if reads {
            assert!(connection.chunk().is_some());
        } else {
            server.wait_for_metric("jindou_heavy_queries{state=\"stalled\"} 1");
        }
        assert_eq!(
            server
                .send("DELETE", &format!("/queries/{id}"), "", "")
                .status,
            204
        );
        server.wait_for_metric("jindou_queries_in_flight 0");
        while let Some(chunk) = connection.chunk() {
            assert!(!chunk.is_empty(), "a part must not look whole");
        }
        assert!(connection.ended());
        let why = server.get(&format!("/queries/{id}"), "").json();
        assert!(
            why["error"].as_str().unwrap().contains("cancelled"),
            "{why}"
        );
    }
    server.wait_for_metric("jindou_queries_total{status=\"cancelled\"} 2");
    server.wait_for_metric("jindou_connections 1");
}

#[test]
fn light_queries_have_an_id_too_and_none_is_given_twice() {
    let server = Running::new();
    let ids: std::collections::HashSet<_> = (0..50)
        .map(|_| {
            let answer = server.query("ASK {}", "");
            answer.header("jindou-query-id").expect("an id").to_owned()
        })
        .collect();
    assert_eq!(ids.len(), 50);
    let wrong = server.query("nonsense", "");
    assert!(wrong.status == 400 && wrong.header("jindou-query-id").is_some());
    assert_eq!(
        server.get("/queries", "").json()["queries"],
        serde_json::json!([])
    );
}

#[test]
fn only_what_is_there_can_be_asked_for_or_ended() {
    let server = Running::new();
    for (method, path, status) in [
        ("GET", "/queries/", 200),
        ("GET", "/queries/0123456789abcdef", 404),
        ("GET", "/queries/x", 404),
        ("GET", "/queries/0123456789abcdef/more", 404),
        ("GET", "/queriesx", 404),
        ("DELETE", "/queries/0123456789abcdef", 404),
        ("DELETE", "/queries/x", 404),
        ("DELETE", "/queries", 405),
        ("POST", "/queries", 405),
        ("DELETE", "/query", 405),
        ("OPTIONS", "/queries/x", 204),
    ] {
        assert_eq!(
            server.send(method, path, "", "").status,
            status,
            "{method} {path}"
        );
    }
}

#[test]
fn pages_of_other_origins_see_and_end_no_queries() {
    let server = Running::new();
    let origin = "Host: localhost\r\nOrigin: http://elsewhere\r\n";
    let list = server.get("/queries", origin);
    assert_eq!(list.header("access-control-allow-origin"), None);
    let asked = format!("{origin}Access-Control-Request-Method: DELETE\r\n");
    let preflight = server.send("OPTIONS", "/queries/x", &asked, "");
    assert_eq!(preflight.header("access-control-allow-origin"), None);
    let answer = server.get(&format!("/query?query={}", encode("ASK {}")), origin);
    assert_eq!(answer.header("access-control-allow-origin"), Some("*"));
    assert_eq!(
        answer.header("access-control-expose-headers"),
        Some("jindou-query-id")
    );
}

#[test]
fn a_query_out_of_time_in_the_queue_is_told_to_come_again() {
    let server = Running::with(|config| config.heavy_queries = 1);
    let mut first = server.connect();
    first.send("GET", &target(FRUITLESS, ""), "", "");
    server.wait_for_metric("jindou_heavy_queries{state=\"computing\"} 1");
    let short = Duration::from_millis(40);
    let more = format!("&timeout={}ms", short.as_millis());
    let answer = server.query(FRUITLESS, &more);
    assert_eq!(
        (answer.status, answer.header("retry-after")),
        (503, Some("5"))
    );
}
