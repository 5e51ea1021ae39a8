//! Are streams made and fed, and continuous queries registered and read, as their chapter says?

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use std::time::Duration;

use jindou_engine::{
    Clock, Config, Database, MemoryPool, StreamDefinition, TimeSource, TupleFormat,
};
use jindou_server::Cors;
use serde_json::{Value, json};

use crate::client::{Answer, Connection, Running};

/// What streams are described in where nobody asks for RDF.
const JSON_TYPE: &str = "application/json";
pub(crate) const JSON: &str = "Content-Type: application/json\r\n";
pub(crate) const LINES: &str = "Content-Type: text/tab-separated-values\r\n";
pub(crate) const TURTLE: &str = "Content-Type: text/turtle\r\n";
pub(crate) const QUERY: &str = "Content-Type: application/sparql-query\r\n";
/// What each window has, every second.
pub(crate) const LATEST: &str = "PREFIX : <http://e/> REGISTER QUERY q AS SELECT ?x ?y \
                      FROM STREAM s [RANGE 1s STEP 1s] WHERE { ?x :p ?y }";

pub(crate) fn put(server: &Running, target: &str, headers: &str, body: &str) -> Answer {
    server.send("PUT", target, headers, body)
}

pub(crate) fn post(server: &Running, target: &str, headers: &str, body: &str) -> Answer {
    server.send("POST", target, headers, body)
}

#[track_caller]
pub(crate) fn assert_status(answer: &Answer, status: u16, part: &str) {
    let text = String::from_utf8_lossy(&answer.body);
    assert_eq!(answer.status, status, "{text}");
    assert!(text.contains(part), "{part:?} is not in {text:?}");
}

/// A server with the stream `s`.
pub(crate) fn with_stream() -> Running {
    let server = Running::new();
    let made = put(&server, "/streams/s", JSON, r#"{"iri":"http://e/s"}"#);
    assert_status(&made, 201, "http://e/s");
    server
}

/// A server with the stream `s` and the query `q`.
pub(crate) fn with_query() -> Running {
    let server = with_stream();
    assert_status(&put(&server, "/continuous/q", QUERY, LATEST), 201, "");
    server
}

/// Has so many windows of the query be complete; tuple `n` is in the middle of window `n`.
pub(crate) fn feed(server: &Running, instants: std::ops::Range<i64>) {
    let line = |n: i64| {
        format!(
            "{}\t<http://e/x{n}> <http://e/p> \"é\\n{n}\" .\n",
            n * 1000 + 500
        )
    };
    let lines: String = instants.clone().map(line).collect();
    assert_status(&post(server, "/streams/s", LINES, &lines), 200, "accepted");
    let beat = format!("/streams/s/heartbeat?time={}", instants.end * 1000);
    assert_eq!(post(server, &beat, "", "").status, 204);
}

/// Server-sent events.
pub(crate) struct Events {
    connection: Connection,
    text: String,
}

/// One of them, or a comment.
#[derive(Debug, Default)]
pub(crate) struct Event {
    pub(crate) kind: String,
    pub(crate) id: String,
    pub(crate) data: Value,
}

impl Events {
    pub(crate) fn of(server: &Running, target: &str, headers: &str) -> Self {
        let mut connection = server.connect();
        connection.send("GET", target, headers, "");
        let head = connection.head();
        assert_eq!(head.status, 200);
        let kind = head.header("content-type").expect("a type");
        assert!(kind.starts_with("text/event-stream"), "{kind}");
        assert_eq!(head.header("cache-control"), Some("no-cache"));
        Self {
            connection,
            text: String::new(),
        }
    }

    /// The next event; `None` at the end.
    pub(crate) fn next(&mut self) -> Option<Event> {
        loop {
            if let Some((event, rest)) = self.text.split_once("\n\n") {
                let (event, rest) = (event.to_owned(), rest.to_owned());
                self.text = rest;
                return Some(parse(&event));
            }
            let chunk = self.connection.chunk().expect("events end as they should");
            if chunk.is_empty() {
                assert_eq!(self.text, "");
                return None;
            }
            self.text.push_str(std::str::from_utf8(&chunk).unwrap());
        }
    }

    fn ids(&mut self, count: usize) -> Vec<String> {
        let next = |_| self.next().expect("another").id;
        (0..count).map(next).collect()
    }
}

fn parse(text: &str) -> Event {
    let mut event = Event::default();
    for line in text.lines() {
        match line.split_once(": ").expect("a field") {
            ("event", kind) => event.kind = kind.to_owned(),
            ("id", id) => event.id = id.to_owned(),
            ("data", data) => event.data = serde_json::from_str(data).expect("one line of JSON"),
            ("", comment) => assert_eq!(comment, ""),
            field => panic!("{field:?}"),
        }
    }
    event
}

#[test]
fn a_stream_is_made_once_told_about_and_dropped() {
    let server = Running::new();
    assert_eq!(server.get("/streams", "").json(), json!([]));
    let definition = r#"{"iri":"http://e/s","timeless":["http://e/p"],"graph":"http://e/h",
                         "interval_ms":50,"lateness_ms":20}"#;
    let made = put(&server, "/streams/s", JSON, definition);
    assert_eq!(
        (made.status, &made.json()["interval_ms"]),
        (201, &json!(50))
    );
    assert_eq!(put(&server, "/streams/s", JSON, definition).status, 200);
    let other = put(&server, "/streams/s", JSON, r#"{"iri":"http://e/s"}"#);
    assert_status(&other, 409, "the stream s");
    let same_iri = put(&server, "/streams/t", JSON, r#"{"iri":"http://e/s"}"#);
    assert_status(&same_iri, 409, "the stream s has the IRI");
    let all = server.get("/streams", "").json();
    assert_eq!(all[0]["name"], "s");
    let one = server.get("/streams/s", "");
    assert_eq!(one.json(), all[0]);
    assert_eq!(one.json()["timeless"], json!(["http://e/p"]));
    assert_eq!(server.get("/streams/t", "").status, 404);
    assert_eq!(server.send("HEAD", "/streams/s", "", "").status, 200);
    assert_eq!(server.send("DELETE", "/streams/s", "", "").status, 204);
    assert_status(
        &server.send("DELETE", "/streams/s", "", ""),
        404,
        "stream s",
    );
}

#[test]
fn a_definition_that_makes_no_sense_is_refused_by_its_field() {
    let server = Running::new();
    for (name, body, part) in [
        (
            "s",
            r#"{"iri":"http://e/s","lasting":true}"#,
            "unknown field `lasting`",
        ),
        (
            "s",
            r#"{"iri":"http://e/s","iri":"http://e/t"}"#,
            "duplicate field `iri`",
        ),
        ("s", r#"{}"#, "missing field `iri`"),
        ("s", r#"{"iri":"s"}"#, "no absolute IRI"),
        (
            "s",
            r#"{"iri":"http://e/s","time":"at"}"#,
            "`event` or `arrival` or the absolute IRI of a predicate",
        ),
        (
            "s",
            r#"{"iri":"http://e/s","timing":"some"}"#,
            "lists of IRIs, or \"all\"",
        ),
        (
            "s",
            r#"{"iri":"http://e/s","interval_ms":0}"#,
            "interval_ms",
        ),
        ("s", r#"{"iri":"http://e/s""#, "line 1 column"),
        ("1", r#"{"iri":"http://e/s"}"#, "no name of a stream"),
        ("%61", r#"{"iri":"http://e/s"}"#, "no name of a stream"),
    ] {
        let answer = put(&server, &format!("/streams/{name}"), JSON, body);
        assert_status(&answer, 400, part);
    }
    let long = format!(r#"{{"iri":"http://e/{}"}}"#, "x".repeat(1 << 20));
    let answer = put(&server, "/streams/s", JSON, &long);
    assert_status(&answer, 413, "one may have 1048576 at most");
    // Shorter as it is written here than as it is kept.
    let lists = ["timing", "timeless"].map(|list| {
        let iris = (0..9_000).map(|number| format!("\"http://e/{list}/{number}/a/long/name\""));
        format!("\"{list}\":[{}]", iris.collect::<Vec<_>>().join(","))
    });
    let context = "\"context\":{\"a\":\"http://e/\\u0001\"}";
    let body = format!(r#"{{"iri":"http://e/s",{},{context}}}"#, lists.join(","));
    assert!(body.len() < 1 << 20, "{}", body.len());
    assert_eq!(put(&server, "/streams/long", JSON, &body).status, 201);
    assert_eq!(server.send("DELETE", "/streams/long", "", "").status, 204);
    let durable = r#"{"iri":"http://e/s","durable":true}"#;
    let answer = put(&server, "/streams/s", JSON, durable);
    assert_status(&answer, 400, "jindou serve --location DIR");
    let form = "Content-Type: application/x-www-form-urlencoded\r\n";
    let answer = put(&server, "/streams/s", form, r#"{"iri":"http://e/s"}"#);
    assert_status(&answer, 415, "application/json");
    assert_eq!(server.get("/streams", "").json(), json!([]));
}

#[test]
fn tuples_come_as_lines_and_as_documents_of_all_formats() {
    let server = with_query();
    let lines = "500\t<http://e/a> <http://e/p> 1 .\n".replace(" 1 ", " \"1\" ");
    let report = post(&server, "/streams/s", LINES, &lines);
    assert_eq!(report.json(), json!({ "accepted": 1, "late": 0 }));
    for (kind, body) in [
        ("application/n-triples", "<http://e/b> <http://e/p> \"2\" ."),
        (
            "application/n-quads",
            "<http://e/c> <http://e/p> \"2\" <http://e/g> .",
        ),
        ("text/turtle", "@prefix : <http://e/> . :d :p 2 ."),
        ("application/trig", "@prefix : <http://e/> . { :e :p 2 }"),
        (
            "application/ld+json",
            r#"{"@id":"http://e/f","http://e/p":2}"#,
        ),
        (
            "application/rdf+xml",
            "<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#' xmlns='http://e/'>\
             <rdf:Description rdf:about='http://e/g'><p>2</p></rdf:Description></rdf:RDF>",
        ),
    ] {
        let kind = format!("Content-Type: {kind}\r\n");
        let report = post(&server, "/streams/s?time=700", &kind, body);
        assert_eq!(report.status, 200, "{kind}{}", report.text());
        assert_eq!(report.json()["accepted"], 1);
    }
    let mut events = Events::of(&server, "/continuous/q/results", "");
    assert_eq!(
        post(&server, "/streams/s/heartbeat?time=1000", "", "").status,
        204
    );
    let result = events.next().unwrap();
    let rows = result.data["results"]["bindings"].as_array().unwrap();
    assert_eq!(rows.len(), 7, "{result:?}");
    let late = post(&server, "/streams/s", LINES, &lines);
    assert_eq!(late.json(), json!({ "accepted": 0, "late": 1 }));
    let late = server.get("/streams/s/late", "");
    assert_eq!(late.text(), lines);
    let kind = late.header("content-type").unwrap();
    assert!(kind.starts_with("text/tab-separated-values"), "{kind}");
    assert_eq!(server.get("/streams/s", "").json()["tuples"], 7);
}

#[test]
fn tuples_that_are_wrong_are_refused_all_together() {
    let server = with_stream();
    let good = "1\t<http://e/a> <http://e/p> <http://e/b> .\n";
    for (target, kind, body, status, part) in [
        ("/streams/t", LINES, good, 404, "stream t"),
        (
            "/streams/s",
            LINES,
            "<http://e/a> <http://e/p> <http://e/b> .\n",
            400,
            "line 1",
        ),
        (
            "/streams/s",
            LINES,
            "1\t<http://e/a> <http://e/p> .\n",
            400,
            "line 1",
        ),
        ("/streams/s?time=5", LINES, good, 400, "a time of its own"),
        (
            "/streams/s",
            TURTLE,
            "<http://e/a> a <http://e/b> .",
            400,
            "none is given",
        ),
        (
            "/streams/s?time=soon",
            TURTLE,
            "",
            400,
            "milliseconds since 1970",
        ),
        (
            "/streams/s?time=1&time=2",
            TURTLE,
            "",
            400,
            "more than once",
        ),
        ("/streams/s?time=1", TURTLE, "<a> <b>", 400, ""),
        ("/streams/s?time=1", "", "a", 415, "no Content-Type"),
        (
            "/streams/s?time=1",
            "Content-Type: text/csv\r\n",
            "{}",
            415,
            "text/tab-separated-values, application/n-triples",
        ),
    ] {
        let lines = format!("{good}{body}");
        let is_mixed = kind == LINES && status == 400 && body != good;
        let answer = post(&server, target, kind, if is_mixed { &lines } else { body });
        let part = if is_mixed {
            part.replace("line 1", "line 2")
        } else {
            part.to_owned()
        };
        assert_status(&answer, status, &part);
    }
    let status = server.get("/streams/s", "").json();
    assert_eq!(
        (&status["tuples"], &status["waiting_bytes"]),
        (&json!(0), &json!(0))
    );
    for (target, status, part) in [
        ("/streams/s/heartbeat", 400, "none is given"),
        ("/streams/t/heartbeat?time=1", 404, "stream t"),
        ("/streams/s/heartbeat?time=1.5", 400, "milliseconds"),
    ] {
        assert_status(&post(&server, target, "", ""), status, part);
    }
    assert_status(&server.get("/streams/t/late", ""), 404, "stream t");
}

#[test]
fn a_body_may_be_as_large_as_that_of_an_update() {
    let server = Running::with(|config| config.max_body_bytes = 100);
    assert_eq!(
        put(&server, "/streams/s", JSON, r#"{"iri":"http://e/s"}"#).status,
        201
    );
    let line = "1\t<http://e/a> <http://e/p> <http://e/b> .\n";
    assert_eq!(post(&server, "/streams/s", LINES, line).status, 200);
    assert_status(
        &post(&server, "/streams/s", LINES, &line.repeat(4)),
        413,
        "100 bytes",
    );
    let deflate = format!("{LINES}Content-Encoding: deflate\r\n");
    assert_status(
        &post(&server, "/streams/s", &deflate, line),
        415,
        "Content-Encoding",
    );
}

#[test]
fn a_full_stream_says_when_to_come_again() {
    let server = Running::new();
    let definition = r#"{"iri":"http://e/s","memory":1000}"#;
    assert_eq!(put(&server, "/streams/s", JSON, definition).status, 201);
    let line = "1\t<http://e/a> <http://e/p> <http://e/b> .\n".repeat(50);
    assert_eq!(post(&server, "/streams/s", LINES, &line).status, 200);
    let full = post(&server, "/streams/s", LINES, &line);
    assert_status(&full, 503, "the stream s is full");
    assert_eq!(full.header("retry-after"), Some("1"));
    // What nobody reads is dropped with its batch.
    assert_eq!(
        post(&server, "/streams/s/heartbeat?time=100", "", "").status,
        204
    );
    assert_eq!(post(&server, "/streams/s", LINES, &line).json()["late"], 50);
}

#[test]
fn a_time_from_far_ahead_is_refused_with_its_line_and_spoils_nothing() {
    let mut engine = Config::default();
    engine.clock = Clock::new(|| 5_000);
    let server = Running::with_engine(engine, |_| ());
    let definition = r#"{"iri":"http://e/s","max_ahead_ms":1000}"#;
    assert_eq!(put(&server, "/streams/s", JSON, definition).status, 201);
    let line = |time: i64| format!("{time}\t<http://e/a> <http://e/p> <http://e/b> .\n");
    let push = |lines: &str| post(&server, "/streams/s", LINES, lines);
    let ahead = push(&format!("{}{}", line(6_000), line(6_001)));
    assert_status(
        &ahead,
        400,
        "s: line 2: event 2: the time 6001 is 1001 ms ahead",
    );
    let beat = post(&server, "/streams/s/heartbeat?time=7000", "", "");
    assert_status(&beat, 400, "max_ahead_ms");
    let document = post(&server, "/streams/s?time=7000", TURTLE, "<a:a> <a:b> 1 .");
    assert_status(&document, 400, "event 1: the time 7000");
    assert_eq!(push(&line(1)).json()["late"], 0);
    assert_eq!(server.get("/streams/s", "").json()["max_ahead_ms"], 1000);
    let any = r#"{"iri":"http://e/any","max_ahead_ms":null}"#;
    assert_eq!(put(&server, "/streams/any", JSON, any).status, 201);
    let leap = post(&server, "/streams/any", LINES, &line(i64::MAX));
    assert_status(&leap, 200, "\"accepted\":1");
}

#[test]
fn registrations_end_where_they_take_their_share_of_memory() {
    let mut engine = Config::default();
    engine.memory_pool = Some(Arc::new(MemoryPool::new(1 << 20)));
    let server = Running::with_engine(engine, |_| ());
    assert_eq!(
        put(&server, "/streams/s", JSON, r#"{"iri":"http://e/s"}"#).status,
        201
    );
    let mut register =
        (0..).map(|number| put(&server, &format!("/continuous/q{number}"), QUERY, LATEST));
    let refused = register
        .find(|answer| answer.status != 201)
        .expect("not all are taken");
    assert_status(&refused, 503, "one more takes more than");
    assert_eq!(server.send("DELETE", "/continuous/q0", "", "").status, 204);
    assert_eq!(put(&server, "/continuous/other", QUERY, LATEST).status, 201);
}

#[test]
fn what_lists_streams_is_counted_before_it_is_made() {
    const MEMORY: u64 = 64 << 20;
    let pool = Arc::new(MemoryPool::new(MEMORY));
    let mut engine = Config::default();
    engine.memory_pool = Some(Arc::clone(&pool));
    let server = Running::with_engine(engine, |_| ());
    for number in 0..10 {
        let predicates = (0..4_000).map(|predicate| format!("\"http://e/{predicate}\""));
        let predicates: Vec<String> = predicates.collect();
        let body = format!(
            r#"{{"iri":"http://e/{number}","timeless":[{}]}}"#,
            predicates.join(",")
        );
        let made = put(&server, &format!("/streams/s{number}"), JSON, &body);
        assert_status(&made, 201, "");
    }
    let turtle = "Host: localhost\r\nAccept: text/turtle\r\n";
    let kinds = ["", "Accept-Encoding: gzip\r\n", turtle];
    let all = server.get("/streams", "");
    assert_eq!(all.status, 200);
    let free = pool.limit_bytes() - pool.held_bytes();
    let rest = pool.reserve(free - (256 << 10));
    let rest = rest.expect("there is so much");
    for kind in kinds {
        assert_status(&server.get("/streams", kind), 503, "memory");
    }
    drop(rest);
    for kind in kinds {
        assert_eq!(server.get("/streams", kind).status, 200, "{kind}");
    }
}

#[test]
fn times_of_arrival_are_those_of_the_clock() {
    let now = Arc::new(AtomicI64::new(5_000));
    let mut engine = Config::default();
    let clock = Arc::clone(&now);
    engine.clock = Clock::new(move || clock.load(Relaxed));
    let server = Running::with_engine(engine, |_| {});
    let definition = r#"{"iri":"http://e/s","time":"arrival"}"#;
    assert_eq!(put(&server, "/streams/s", JSON, definition).status, 201);
    assert_eq!(put(&server, "/continuous/q", QUERY, LATEST).status, 201);
    let mut events = Events::of(&server, "/continuous/q/results", "");
    let body = "<http://e/a> <http://e/p> 1 .";
    assert_eq!(post(&server, "/streams/s", TURTLE, body).status, 200);
    // A clock that goes back makes nothing late.
    now.store(4_000, Relaxed);
    let report = post(&server, "/streams/s", TURTLE, body);
    assert_eq!(report.json(), json!({ "accepted": 1, "late": 0 }));
    now.store(6_100, Relaxed);
    assert_eq!(post(&server, "/streams/s/heartbeat", "", "").status, 204);
    let result = events.next().unwrap();
    assert_eq!((&*result.kind, &*result.id), ("result", "6000:1"));
    for (target, kind, body) in [
        ("/streams/s?time=7", TURTLE, body),
        (
            "/streams/s",
            LINES,
            "7\t<http://e/a> <http://e/p> <http://e/b> .",
        ),
        ("/streams/s/heartbeat?time=7", "", ""),
    ] {
        let answer = post(&server, target, kind, body);
        assert_status(&answer, 400, "times of arrival");
    }
}

#[test]
fn a_query_is_registered_once_told_about_and_dropped() {
    let server = with_stream();
    assert_eq!(server.get("/continuous", "").json(), json!([]));
    let made = put(
        &server,
        "/continuous/q",
        "Content-Type: application/rsp-ql\r\n",
        LATEST,
    );
    assert_eq!((made.status, &made.json()["streams"]), (201, &json!(["s"])));
    let again = put(
        &server,
        "/continuous/q",
        "Content-Type: text/plain\r\n",
        LATEST,
    );
    assert_eq!(again.status, 200, "{}", again.text());
    let other = put(&server, "/continuous/q", QUERY, &LATEST.replace("1s", "2s"));
    assert_status(&other, 409, "the continuous query q");
    assert_status(
        &server.send("DELETE", "/streams/s", "", ""),
        409,
        "the continuous query q reads s",
    );
    feed(&server, 0..2);
    let mut status = server.get("/continuous/q", "").json();
    assert_eq!(
        (&status["name"], &status["text"]),
        (&json!("q"), &json!(LATEST))
    );
    assert_eq!(
        (&status["executions"], &status["rows"]),
        (&json!(2), &json!(2))
    );
    // Of one alone the plan is told, too.
    status.as_object_mut().unwrap().remove("plan");
    assert_eq!(server.get("/continuous", "").json()[0], status);
    assert_eq!(server.get("/continuous/r", "").status, 404);
    assert_eq!(server.send("DELETE", "/continuous/q", "", "").status, 204);
    assert_status(
        &server.send("DELETE", "/continuous/q", "", ""),
        404,
        "query q",
    );
    assert_eq!(server.send("DELETE", "/streams/s", "", "").status, 204);
}

#[test]
fn a_text_that_is_wrong_is_refused_with_its_place() {
    let server = with_stream();
    for (name, headers, text, status, part) in [
        (
            "q",
            QUERY,
            "SELECT ?x\nFROM STREAM s [RANGE 1s] WHERE { ?x }",
            400,
            "line 2, column ",
        ),
        (
            "q",
            QUERY,
            "SELECT ?x\nFROM STREAM t [RANGE 1s] WHERE { ?x ?y ?z }",
            404,
            "line 2, column 13",
        ),
        (
            "q",
            QUERY,
            "SELECT * FROM STREAM <http://e/t> [RANGE 1s] { ?x ?y ?z }",
            404,
            "http://e/t",
        ),
        (
            "q",
            QUERY,
            "SELECT * FROM STREAM s [RANGE 1s] { ?x ?y ?z FILTER(timestamp(?x) > 1) }",
            501,
            "three arguments",
        ),
        (
            "q",
            QUERY,
            "SELECT * FROM STREAM s [RANGE TRIPLES 100000000] { ?x ?y ?z }",
            400,
            "a window of 100000000 triples",
        ),
        (
            "q",
            QUERY,
            "REGISTER QUERY q COMPUTED EVERY 1s AS SELECT * { ?x ?y ?z }",
            501,
            "without windows",
        ),
        ("a.b", QUERY, LATEST, 400, "no name of a continuous query"),
        ("q", TURTLE, LATEST, 415, "application/rsp-ql"),
    ] {
        let answer = put(&server, &format!("/continuous/{name}"), headers, text);
        assert_status(&answer, status, part);
    }
    let problem = format!("{QUERY}Accept: application/problem+json\r\n");
    let text = "SELECT ?x FROM STREAM s [RANGE 1] WHERE { ?x ?y ?z }";
    let answer = put(&server, "/continuous/q", &problem, text);
    assert_eq!((answer.status, &answer.json()["line"]), (400, &json!(1)));
    assert_eq!(server.get("/continuous", "").json(), json!([]));
}

#[test]
fn a_query_without_windows_tells_what_updates_change() {
    let server = Running::new();
    let update = |text: &str| {
        let kind = "Content-Type: application/sparql-update\r\n";
        let answer = post(&server, "/update", kind, text);
        assert_eq!(answer.status, 204, "{}", answer.text());
        let number = answer.header("jindou-snapshot").expect("one");
        number.parse::<u64>().expect("a number")
    };
    let select = "SELECT ?o { <http://e/new> <http://e/is> ?o }";
    assert_status(&put(&server, "/continuous/q", QUERY, select), 201, "");
    let construct = "CONSTRUCT WHERE { <http://e/new> <http://e/is> ?o }";
    assert_status(&put(&server, "/continuous/c", QUERY, construct), 201, "");
    let mut events = Events::of(&server, "/continuous/q/results?after=0", "");
    let first = events.next().unwrap().data;
    assert_eq!(
        (&first["windows"], &first["sequence"]),
        (&json!([]), &json!(1))
    );
    assert_eq!(first["results"]["bindings"], json!([]));
    update("INSERT DATA { <http://e/new> <http://e/is> <http://e/a> }");
    assert_eq!(events.next().unwrap().data["sequence"], json!(2));
    update("INSERT DATA { <http://e/other> <http://e/was> <http://e/a> }");
    let snapshot = update(
        "DELETE { ?s ?p <http://e/a> } INSERT { ?s ?p <http://e/b> , <http://e/c> } \
         WHERE { ?s ?p <http://e/a> FILTER(?p = <http://e/is>) }",
    );
    let told = events.next().unwrap().data;
    assert_eq!(
        (&told["sequence"], &told["snapshot"], &told["query"]),
        (&json!(3), &json!(snapshot), &json!("q"))
    );
    let iri = |name: &str| json!({ "o": { "type": "uri", "value": format!("http://e/{name}") } });
    assert_eq!(told["removed"], json!({ "bindings": [iri("a")] }));
    assert_eq!(told["head"], json!({ "vars": ["o"] }));
    assert_eq!(
        told["results"]["bindings"].as_array().map(Vec::len),
        Some(2)
    );
    let mut events = Events::of(&server, "/continuous/c/results?after=2", "");
    let told = events.next().unwrap().data;
    assert_eq!(
        told["removed"],
        json!("<http://e/new> <http://e/is> <http://e/a> .\n")
    );
    assert_eq!(
        told["triples"]
            .as_str()
            .map(|triples| triples.lines().count()),
        Some(2)
    );
    let plan = server.get("/continuous/q", "").text();
    assert!(
        plan.contains("after each transaction that changes"),
        "{plan}"
    );
}

#[test]
fn results_say_which_tuples_a_window_of_a_number_of_them_held() {
    let server = with_query();
    let text = "PREFIX : <http://e/> \
                SELECT ?x FROM NAMED WINDOW :w ON s [TRIPLES 3 STEP 2] WHERE { WINDOW :w { ?x :p ?y } }";
    assert_status(&put(&server, "/continuous/n", QUERY, text), 201, "");
    feed(&server, 0..4);
    let mut events = Events::of(&server, "/continuous/n/results?after=0", "");
    let windows: Vec<Value> = (0..2)
        .map(|_| events.next().unwrap().data["windows"].clone())
        .collect();
    let held = |from: i64, until: i64, first: u64, last: u64| json!([{ "name": "http://e/w", "from": from, "until": until, "first": first, "last": last }]);
    assert_eq!(windows, [held(500, 1501, 1, 2), held(1500, 3501, 2, 4)]);
}

#[test]
fn results_are_events_that_can_be_resumed() {
    let server = with_query();
    let mut events = Events::of(&server, "/continuous/q/results", "");
    feed(&server, 0..3);
    let first = events.next().unwrap();
    assert_eq!((&*first.kind, &*first.id), ("result", "1000:1"));
    let snapshot = first.data["snapshot"].as_u64().expect("a number");
    assert_eq!(
        first.data,
        json!({
            "query": "q",
            "instant": 1000,
            "windows": [{ "name": "http://e/s", "from": 0, "until": 1000 }],
            "snapshot": snapshot,
            "sequence": 1,
            "head": { "vars": ["x", "y"] },
            "results": { "bindings": [{
                "x": { "type": "uri", "value": "http://e/x0" },
                "y": { "type": "literal", "value": "é\n0" },
            }] },
        })
    );
    assert_eq!(events.ids(2), ["2000:2", "3000:3"]);
    // Another one that was there before, or says that it was.
    let resumed = "Last-Event-ID: 1000:1\r\n";
    let mut others = [
        Events::of(&server, "/continuous/q/results?after=1", ""),
        Events::of(&server, "/continuous/q/results", resumed),
        Events::of(&server, "/continuous/q/results?after=0", resumed),
    ];
    for other in &mut others {
        assert_eq!(other.ids(2), ["2000:2", "3000:3"]);
    }
    let mut all = Events::of(&server, "/continuous/q/results?after=0", "");
    assert_eq!(all.ids(3), ["1000:1", "2000:2", "3000:3"]);
    feed(&server, 3..4);
    for other in &mut others {
        assert_eq!(other.ids(1), ["4000:4"]);
    }
    assert_eq!(events.ids(1), ["4000:4"]);
    for (target, headers, status) in [
        ("/continuous/r/results", "", 404),
        ("/continuous/q/results?after=5", "", 400),
        ("/continuous/q/results?after=x", "", 400),
        ("/continuous/q/results", "Last-Event-ID: 4\r\n", 400),
    ] {
        let answer = server.get(target, headers);
        assert_eq!(answer.status, status, "{}", answer.text());
    }
    let head = server.send("HEAD", "/continuous/q/results", "", "");
    assert_eq!(head.status, 405);
    // A browser that saw results of a server before this one: it would not come again if it were refused.
    let beyond = "Last-Event-ID: 9000:9\r\n";
    let mut other = Events::of(&server, "/continuous/q/results?after=1", beyond);
    feed(&server, 4..5);
    assert_eq!(other.ids(1), ["5000:5"]);
}

#[test]
fn results_of_all_forms_have_their_members() {
    let server = with_stream();
    let from = "FROM STREAM s [RANGE 1s STEP 1s] WHERE { ?x <http://e/p> ?y }";
    for (name, text) in [
        ("a", format!("ASK {from}")),
        ("c", format!("CONSTRUCT {{ ?x <http://e/q> ?y }} {from}")),
        ("w", format!("SELECT (1/0 AS ?none) {from}")),
    ] {
        assert_status(
            &put(&server, &format!("/continuous/{name}"), QUERY, &text),
            201,
            "",
        );
    }
    let names = ["a", "c", "w"];
    let read = |name: &str| Events::of(&server, &format!("/continuous/{name}/results"), "");
    let mut readers = names.map(read);
    feed(&server, 0..1);
    feed(&server, 1..2);
    let [ask, construct, unbound] = readers.each_mut().map(|reader| reader.next().unwrap().data);
    assert_eq!(ask["boolean"], true);
    let triple = "<http://e/x0> <http://e/q> \"é\\n0\" .\n";
    assert_eq!(construct["triples"], triple);
    assert_eq!(unbound["results"]["bindings"], json!([{}]));
}

#[test]
fn events_end_with_their_query_and_with_the_server() {
    let mut server = with_query();
    let mut events = Events::of(&server, "/continuous/q/results", "");
    server.wait_for_metric("jindou_result_readers 1");
    feed(&server, 0..1);
    assert_eq!(server.send("DELETE", "/continuous/q", "", "").status, 204);
    assert_eq!(events.ids(1), ["1000:1"]);
    let end = events.next().unwrap();
    assert_eq!((&*end.kind, &end.data), ("end", &json!({ "query": "q" })));
    assert!(events.next().is_none());
    server.wait_for_metric("jindou_result_readers 0");
    assert_eq!(put(&server, "/continuous/q", QUERY, LATEST).status, 201);
    let mut events = Events::of(&server, "/continuous/q/results", "");
    server.stop();
    assert!(events.next().is_none());
}

#[test]
fn readers_hear_something_and_are_few() {
    let server = Running::with(|config| {
        config.result_readers = 1;
        config.keep_alive = Duration::from_millis(5);
    });
    assert_eq!(
        put(&server, "/streams/s", JSON, r#"{"iri":"http://e/s"}"#).status,
        201
    );
    assert_eq!(put(&server, "/continuous/q", QUERY, LATEST).status, 201);
    let mut events = Events::of(&server, "/continuous/q/results", "");
    for _ in 0..2 {
        assert_eq!(events.next().unwrap().kind, "");
    }
    let refused = server.get("/continuous/q/results", "");
    assert_status(&refused, 503, "--result-readers");
    assert_eq!(refused.header("retry-after"), Some("5"));
    events.connection.hang_up();
    server.wait_for_metric("jindou_result_readers 0");
    Events::of(&server, "/continuous/q/results", "");
}

#[test]
fn a_reader_that_does_not_read_holds_nobody_and_is_told_what_it_missed() {
    let server = with_query();
    let mut slow = Events::of(&server, "/continuous/q/results", "");
    // Windows of a megabyte each: far more than is under way to anyone.
    let value = "x".repeat(1 << 20);
    for n in 0..40 {
        let line = format!(
            "{}\t<http://e/x{n}> <http://e/p> \"{value}\" .\n",
            n * 1000 + 500
        );
        assert_status(&post(&server, "/streams/s", LINES, &line), 200, "accepted");
        let beat = format!("/streams/s/heartbeat?time={}", (n + 1) * 1000);
        assert_eq!(post(&server, &beat, "", "").status, 204);
    }
    assert_eq!(server.get("/continuous/q", "").json()["executions"], 40);
    let (mut seen, mut missed) = (0, 0);
    while seen + missed < 40 {
        let event = slow.next().unwrap().data;
        seen += 1;
        missed += event["missed"].as_u64().unwrap_or_default();
        assert_eq!(event["sequence"], seen + missed);
    }
    assert!(missed > 0 && seen > 1, "{seen} seen, {missed} missed");
}

#[test]
fn a_paused_query_passes_over_instants() {
    let server = with_query();
    assert_eq!(post(&server, "/continuous/q/pause", "", "").status, 204);
    assert_eq!(server.get("/continuous/q", "").json()["paused"], true);
    feed(&server, 0..2);
    assert_eq!(post(&server, "/continuous/q/resume", "", "").status, 204);
    feed(&server, 2..3);
    let mut events = Events::of(&server, "/continuous/q/results?after=0", "");
    assert_eq!(events.ids(1), ["3000:1"]);
    assert_status(
        &post(&server, "/continuous/r/pause", "", ""),
        404,
        "query r",
    );
}

#[test]
fn streams_are_changed_by_whom_updates_are() {
    let database = Database::new();
    database
        .create_stream("s", StreamDefinition::new("http://e/s"))
        .unwrap();
    database.register("q", LATEST).unwrap();
    let server = Running::with_database(database, |config| {
        config.read_only = true;
        config.cors = Cors::Any;
    });
    let changes = [
        ("PUT", "/streams/t"),
        ("POST", "/streams/s"),
        ("POST", "/streams/s/heartbeat?time=1"),
        ("DELETE", "/streams/s"),
        ("PUT", "/continuous/r"),
        ("POST", "/continuous/q/pause"),
        ("POST", "/continuous/q/resume"),
        ("DELETE", "/continuous/q"),
    ];
    let origin = "Host: localhost\r\nOrigin: http://other.example\r\n";
    for (method, target) in changes {
        assert_status(&server.send(method, target, "", ""), 403, "read only");
    }
    for target in ["/streams", "/streams/s", "/continuous", "/continuous/q"] {
        let answer = server.get(target, origin);
        assert_eq!(answer.status, 200, "{target}");
        assert_eq!(answer.header("access-control-allow-origin"), Some("*"));
    }
    drop(server);
    let server = with_query();
    for (method, target) in changes {
        let answer = server.send(method, target, origin, "");
        assert_status(&answer, 403, "pages of other servers");
        // Such a page may read why.
        assert_eq!(answer.header("access-control-allow-origin"), Some("*"));
    }
}

#[test]
fn paths_answer_to_their_methods() {
    let server = with_query();
    for (method, target, allow) in [
        ("POST", "/streams", "GET, HEAD, OPTIONS"),
        (
            "PATCH",
            "/streams/s",
            "GET, HEAD, PUT, POST, DELETE, OPTIONS",
        ),
        ("GET", "/streams/s/heartbeat", "POST, OPTIONS"),
        ("POST", "/streams/s/late", "GET, HEAD, OPTIONS"),
        ("DELETE", "/continuous", "GET, HEAD, OPTIONS"),
        ("POST", "/continuous/q", "GET, HEAD, PUT, DELETE, OPTIONS"),
        ("GET", "/continuous/q/pause", "POST, OPTIONS"),
        ("POST", "/continuous/q/results", "GET, OPTIONS"),
    ] {
        let answer = server.send(method, target, "", "");
        assert_eq!(answer.status, 405, "{method} {target}");
        assert_eq!(answer.header("allow"), Some(allow));
        let options = server.send("OPTIONS", target, "", "");
        assert_eq!(
            (options.status, options.header("allow")),
            (204, Some(allow))
        );
    }
    assert_status(&server.get("/streams/s/more", ""), 404, "/continuous");
}

#[test]
fn metrics_tell_about_streams_and_queries() {
    let server = with_query();
    feed(&server, 0..2);
    feed(&server, 1..2);
    let text = server.get("/metrics", "").text();
    for line in [
        "jindou_stream_tuples_total{stream=\"s\"} 2",
        "jindou_stream_late_total{stream=\"s\"} 1",
        "jindou_continuous_executions_total{query=\"q\"} 2",
        "jindou_continuous_failures_total{query=\"q\"} 0",
        "jindou_continuous_rows_total{query=\"q\"} 2",
        "jindou_result_readers 0",
    ] {
        assert!(text.lines().any(|l| l == line), "no {line} in\n{text}");
    }
    for name in [
        "jindou_stream_window_bytes{",
        "jindou_continuous_seconds_total{",
    ] {
        assert!(text.contains(name), "no {name} in\n{text}");
    }
}

#[test]
fn a_slow_reader_may_ask_to_be_told_instead_of_missing_results() {
    let server = with_query();
    // The log keeps 1,000.
    feed(&server, 0..1_010);
    let mut drops = Events::of(&server, "/continuous/q/results?after=1&slow=drop", "");
    assert_eq!(drops.next().unwrap().data["missed"], 9);
    let mut ends = Events::of(&server, "/continuous/q/results?after=1&slow=disconnect", "");
    let error = ends.next().unwrap();
    assert_eq!((&*error.kind, &error.data["missed"]), ("error", &json!(9)));
    assert!(ends.next().is_none());
    let mut keeps_up = Events::of(
        &server,
        "/continuous/q/results?after=1009&slow=disconnect",
        "",
    );
    assert_eq!(keeps_up.ids(1), ["1010000:1010"]);
    let mut waits = Events::of(&server, "/continuous/q/results?after=1&slow=wait", "");
    let error = waits.next().unwrap();
    assert_eq!((&*error.kind, &error.data["missed"]), ("error", &json!(9)));
    let said = error.data["error"].as_str().expect("a text");
    assert!(said.contains("slow=wait"), "{said}");
    assert!(waits.next().is_none());
    let wrong = server.get("/continuous/q/results?slow=down", "");
    assert_status(&wrong, 400, "drop, disconnect or wait");
}

#[test]
fn results_are_kept_for_a_reader_that_waits() {
    let server = with_query();
    let mut waits = Events::of(&server, "/continuous/q/results?after=0&slow=wait", "");
    let mut drops = Events::of(&server, "/continuous/q/results?after=0&slow=drop", "");
    // More than sockets hold and than is kept otherwise, while nobody reads.
    let value = "v".repeat(25_000);
    for windows in [0..500, 500..1_000, 1_000..1_500] {
        let line = |n| {
            format!(
                "{}\t<http://e/x{n}> <http://e/p> \"{value}\" .\n",
                n * 1000 + 500
            )
        };
        let lines: String = windows.map(line).collect();
        assert_status(&post(&server, "/streams/s", LINES, &lines), 200, "accepted");
    }
    let beat = post(&server, "/streams/s/heartbeat?time=1500000", "", "");
    assert_eq!(beat.status, 204);
    for sequence in 1..=1_500 {
        let result = waits.next().expect("another");
        assert_eq!(result.data["sequence"], sequence);
        assert_eq!(result.data.get("missed"), None);
    }
    let mut missed = 0;
    while missed == 0 {
        missed = drops.next().expect("another").data["missed"]
            .as_u64()
            .unwrap_or(0);
    }
    assert!(missed > 0);
}

#[test]
fn streams_go_on_with_the_clock_while_nothing_comes() {
    let now = Arc::new(AtomicI64::new(5_000));
    let mut engine = Config::default();
    let clock = Arc::clone(&now);
    engine.clock = Clock::new(move || clock.load(Relaxed));
    let server = Running::with_engine(engine, |_| {});
    let arrival = r#"{"iri":"http://e/s","time":"arrival","interval_ms":10}"#;
    assert_eq!(put(&server, "/streams/s", JSON, arrival).status, 201);
    assert_eq!(put(&server, "/continuous/q", QUERY, LATEST).status, 201);
    let mut events = Events::of(&server, "/continuous/q/results", "");
    let body = "<http://e/a> <http://e/p> 1 .";
    assert_eq!(post(&server, "/streams/s", TURTLE, body).status, 200);
    now.store(6_005, Relaxed);
    let result = events.next().unwrap();
    assert_eq!(result.id, "6000:1");
    assert_eq!(
        result.data["results"]["bindings"].as_array().unwrap().len(),
        1
    );
    let idle = r#"{"iri":"http://e/t","idle_ms":300,"interval_ms":10}"#;
    assert_eq!(put(&server, "/streams/t", JSON, idle).status, 201);
    let of_t = LATEST.replace("STREAM s", "STREAM t");
    assert_eq!(put(&server, "/continuous/r", QUERY, &of_t).status, 201);
    let mut events = Events::of(&server, "/continuous/r/results", "");
    let line = "500\t<http://e/a> <http://e/p> <http://e/b> .\n";
    assert_eq!(post(&server, "/streams/t", LINES, line).status, 200);
    // The watermark is 500 + 810 - 300.
    now.store(6_815, Relaxed);
    assert_eq!(events.next().unwrap().id, "1000:1");
    let late = post(&server, "/streams/t", LINES, line);
    assert_eq!(late.json(), json!({ "accepted": 0, "late": 1 }));
    let wrong = r#"{"iri":"http://e/u","time":"arrival","idle_ms":300}"#;
    assert_status(&put(&server, "/streams/u", JSON, wrong), 400, "idle_ms");
}

#[test]
fn streams_are_described_in_rdf() {
    let server = with_stream();
    for target in ["/streams", "/streams/s"] {
        let turtle = server.get(target, "Host: localhost:1\r\nAccept: text/turtle\r\n");
        let kind = turtle.header("content-type").unwrap();
        assert!(kind.starts_with("text/turtle"), "{kind}");
        let lines = server.get(
            target,
            "Host: localhost:1\r\nAccept: application/n-triples\r\n",
        );
        let endpoint = "<http://localhost:1/streams/s#endpoint>";
        for line in [
            "<http://localhost:1/streams/s> <http://www.w3.org/ns/dcat#dataset> <http://e/s> ."
                .to_owned(),
            format!("<http://e/s> <http://w3id.org/rsp/vocals#hasEndpoint> {endpoint} ."),
            format!(
                "{endpoint} <http://www.w3.org/ns/dcat#accessURL> <http://localhost:1/streams/s> ."
            ),
        ] {
            assert!(
                lines.text().lines().any(|l| l == line),
                "{line}: {}",
                lines.text()
            );
        }
        let json = server.get(target, "Accept: */*\r\n");
        assert!(json.header("content-type").unwrap().starts_with(JSON_TYPE));
    }
    let absent = server.get("/streams/t", "Accept: text/turtle\r\n");
    assert_eq!(absent.status, 404);
}

#[test]
fn what_a_producer_sends_again_is_taken_once() {
    let server = with_stream();
    let send = |headers: &str| {
        let headers = format!("{LINES}{headers}");
        let line = "100\t<http://e/x> <http://e/p> \"1\" .\n";
        post(&server, "/streams/s", &headers, line)
    };
    let first = "Producer: a\r\nSequence: 7\r\n";
    assert_status(&send(first), 200, r#"{"accepted":1,"late":0}"#);
    let again = r#"{"accepted":0,"late":0,"repeated":true}"#;
    assert_status(&send(first), 200, again);
    assert_status(&send("Producer: a\r\nSequence: 6\r\n"), 200, again);
    assert_status(
        &send("Producer: b\r\nSequence: 6\r\n"),
        200,
        r#""accepted":1"#,
    );
    assert_status(&send("Producer: a\r\n"), 400, "come together");
    assert_status(&send("Producer: a\r\nSequence: x\r\n"), 400, "Sequence");
    let status = server.send("GET", "/streams/s", "", "");
    assert_status(&status, 200, r#""tuples":2"#);
}

#[test]
fn streams_of_a_store_that_is_read_only_are_shown_and_not_changed() {
    let folder = tempfile::tempdir().unwrap();
    let location = folder.path().join("store");
    let database = Database::open_or_create(&location, Config::default()).unwrap();
    let mut durable = StreamDefinition::new("http://e/s");
    durable.durable = true;
    database.create_stream("s", durable).unwrap();
    let mut arrival = StreamDefinition::new("http://e/now");
    arrival.time = TimeSource::Arrival;
    database.create_stream("now", arrival).unwrap();
    database.register("q", LATEST).unwrap();
    let lines = "500\t<http://e/x> <http://e/p> \"1\" .\n1500\t<http://e/x> <http://e/p> \"2\" .\n";
    let format = TupleFormat::Lines;
    database.push("s", format, None, lines.into()).unwrap();
    let before = database.stream("s").unwrap();
    drop(database);
    let database = Database::open_to_read(&location, Config::default()).unwrap();
    assert!(database.has_resting_streams());
    let open = |database: &Database| {
        Running::with_database(database.clone(), |config| config.read_only = true)
    };
    let server = open(&database);
    for target in ["/streams", "/streams/s", "/continuous"] {
        assert_status(&server.get(target, ""), 403, "rest");
    }
    drop(server);
    database.show_resting_streams().unwrap();
    assert!(!database.has_resting_streams());
    let server = open(&database);
    let all = server.get("/streams", "").json();
    assert_eq!(
        (&all[0]["name"], &all[1]["name"]),
        (&json!("now"), &json!("s"))
    );
    let one = server.get("/streams/s", "").json();
    for (member, expected) in [
        ("iri", json!("http://e/s")),
        ("tuples", json!(2)),
        ("batches", json!(before.batches)),
        ("watermark_ms", json!(1_500)),
        ("stable_ms", json!(before.stable_ms)),
        ("waiting_bytes", json!(before.waiting_bytes)),
        ("queries", json!(1)),
    ] {
        assert_eq!(one[member], expected, "{member}");
    }
    let turtle = server.get("/streams/s", "Host: localhost\r\nAccept: text/turtle\r\n");
    assert_status(&turtle, 200, "http://e/s");
    assert_eq!(server.get("/continuous", "").json()[0]["text"], LATEST);
    assert_eq!(
        server.get("/continuous/q", "").json()["last_instant_ms"],
        1_000
    );
    assert_eq!(server.get("/streams/s/late", "").status, 200);
    let mut events = Events::of(&server, "/continuous/q/results?after=0", "");
    assert_eq!(events.next().unwrap().id, "1000:1");
    for (method, target, named) in [
        ("PUT", "/streams/t", "does not change the stream t"),
        ("POST", "/streams/s", "does not change the stream s"),
        ("DELETE", "/streams/s", "does not change the stream s"),
        (
            "POST",
            "/streams/s/heartbeat?time=9000",
            "does not change the stream s",
        ),
        (
            "PUT",
            "/continuous/r",
            "does not change the continuous query r",
        ),
        (
            "POST",
            "/continuous/q/pause",
            "does not change the continuous query q",
        ),
        (
            "PUT",
            "/continuous/q/sinks/k",
            "does not change the sink k of the continuous query q",
        ),
    ] {
        let answer = server.send(method, target, "", "");
        assert_status(&answer, 403, "started to read only");
        assert_status(&answer, 403, named);
    }
    // Whoever has the database changes nothing either.
    assert_eq!(database.tick().unwrap(), None);
    let pushed = database.push("s", format, None, lines.into());
    let beaten = database.heartbeat("s", 9_000);
    for error in [pushed.map(drop), beaten, database.heartbeat_now("now")] {
        let error = error.unwrap_err().to_string();
        assert!(error.contains("was opened to be read only"), "{error}");
    }
    assert_eq!(server.get("/streams/s", "").json()["tuples"], 2);
}
