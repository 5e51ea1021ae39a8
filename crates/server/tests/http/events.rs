//! Do events in all formats become tuples with their times, and is what is wrong refused by its place?

use serde_json::json;

use crate::client::Running;
use crate::streams::{Events, JSON, LATEST, LINES, QUERY, assert_status, post, put};

const ND_JSON: &str = "Content-Type: application/x-ndjson\r\n";
const TURTLE: &str = "Content-Type: text/turtle\r\n";
const TRIG: &str = "Content-Type: application/trig\r\n";
const N_TRIPLES: &str = "Content-Type: application/n-triples\r\n";
const PATCH: &str = "Content-Type: application/rdf-patch\r\n";
/// A stream whose events say their times.
const AT: &str = r#"{"iri":"http://e/s","time":"http://e/at","lateness_ms":60000}"#;

fn with_definition(definition: &str) -> Running {
    let server = Running::new();
    assert_status(
        &put(&server, "/streams/s", JSON, definition),
        201,
        "http://e/s",
    );
    server
}

/// Pushes, and gives the values that the first window has then, which ends at second 1.
fn values_of(server: &Running, target: &str, kind: &str, body: &str) -> Vec<String> {
    assert_status(&put(server, "/continuous/q", QUERY, LATEST), 201, "");
    let mut events = Events::of(server, "/continuous/q/results?after=0", "");
    assert_status(&post(server, target, kind, body), 200, "accepted");
    let beat = post(server, "/streams/s/heartbeat?time=1000", "", "");
    assert_eq!(beat.status, 204);
    let result = events.next().expect("a result");
    assert_eq!(result.id, "1000:1");
    let rows = result.data["results"]["bindings"].as_array().expect("rows");
    let value = |row: &serde_json::Value| {
        let subject = match row["x"]["type"] == "bnode" {
            true => "_:",
            false => row["x"]["value"].as_str().expect("a text"),
        };
        format!("{subject} {}", row["y"]["value"].as_str().expect("a text"))
    };
    let mut values: Vec<_> = rows.iter().map(value).collect();
    values.sort();
    values
}

#[test]
fn each_line_of_json_is_an_event() {
    let server = with_definition(AT);
    let integer = "http://www.w3.org/2001/XMLSchema#integer";
    let time = r#""http://e/at":{"@value":"1970-01-01T00:00:00.5Z","@type":"http://www.w3.org/2001/XMLSchema#dateTime"}"#;
    let lines = format!(
        "{{\"@id\":\"http://e/a\",\"http://e/p\":1,{time}}}\n\n\
         {{}}\r\n\
         {{\"@context\":{{\"@vocab\":\"http://e/\"}}}}\n\
         {{\"@id\":\"http://e/b\",\"p\":2,\"at\":100}}\n\
         {{\"p\":[3,4],\"at\":{{\"@value\":\"200\",\"@type\":\"{integer}\"}}}}\n\
         {{\"@id\":\"http://e/late\",\"p\":5,\"at\":1200}}"
    );
    let values = values_of(&server, "/streams/s", ND_JSON, &lines);
    assert_eq!(values, ["_: 3", "_: 4", "http://e/a 1", "http://e/b 2"]);
    assert_eq!(server.get("/streams/s", "").json()["tuples"], 9);
}

#[test]
fn plain_json_has_the_context_of_its_stream() {
    let context = r#"{"iri":"http://e/s","context":{"p":"http://e/p","id":"@id"}}"#;
    for (kind, body) in [
        (
            JSON,
            r#"[ {"id":"http://e/a","p":"1"},
                    {"id":"http://e/b","p":"2","other":7} ]"#,
        ),
        (
            ND_JSON,
            "{\"id\":\"http://e/a\",\"p\":\"1\"}\n{\"@context\":{\"q\":\"http://e/p\"},\"@id\":\"http://e/b\",\"q\":\"2\"}\n",
        ),
    ] {
        let server = with_definition(context);
        assert_eq!(
            server.get("/streams/s", "").json()["context"]["p"],
            "http://e/p"
        );
        let values = values_of(&server, "/streams/s?time=10", kind, body);
        assert_eq!(values, ["http://e/a 1", "http://e/b 2"]);
    }
    let server = with_definition(context);
    let one = post(
        &server,
        "/streams/s?time=1",
        JSON,
        r#"{"id":"http://e/a","p":"1"}"#,
    );
    assert_eq!(one.json(), json!({ "accepted": 1, "late": 0 }));
    for (context, part) in [
        (r#""http://elsewhere/c""#, "is elsewhere"),
        (r#"[{}, {"@import":"http://elsewhere/c"}]"#, "is elsewhere"),
        ("7", "a context is an object"),
        (r#"{"p":{"@id":7}}"#, "context"),
    ] {
        let definition = format!(r#"{{"iri":"http://e/t","context":{context}}}"#);
        assert_status(&put(&server, "/streams/t", JSON, &definition), 400, part);
    }
}

#[test]
fn each_message_is_an_event() {
    let message = |value: &str, time: i64| {
        format!("_:b <http://e/p> \"{value}\" . <http://e/x> <http://e/at> {time} .\n")
    };
    let turtle = format!(
        "VERSION \"1.2-messages\"\n{}MESSAGE\nMESSAGE @prefix : <http://e/> .\n{}@message .\n\
         :c :p \"3\" ; :at 300 .\nMESSAGE",
        message("1", 100),
        message("2", 200)
    );
    let integer = "\"7\"^^<http://www.w3.org/2001/XMLSchema#integer>";
    let lines = |head: &str| {
        format!(
            "{head}_:b <http://e/p> \"1\" .\n<http://e/a> <http://e/at> {integer} .\nMESSAGE # next\n\
             _:b <http://e/p> \"2\" .\n_:b <http://e/at> {integer} .\n"
        )
    };
    let announced = "Content-Type: application/n-triples; version=1.1-messages\r\n";
    for (kind, body, expected) in [
        (TURTLE, turtle.clone(), vec!["_: 1", "_: 2", "http://e/c 3"]),
        (TRIG, turtle, vec!["_: 1", "_: 2", "http://e/c 3"]),
        (
            N_TRIPLES,
            lines("VERSION \"1.1-messages\"\n"),
            vec!["_: 1", "_: 2"],
        ),
        (announced, lines(""), vec!["_: 1", "_: 2"]),
    ] {
        let server = with_definition(AT);
        assert_eq!(
            values_of(&server, "/streams/s", kind, &body),
            expected,
            "{body}"
        );
    }
}

#[test]
fn each_transaction_of_a_patch_is_an_event() {
    let server = with_definition(AT);
    let at = |time: &str| {
        format!(
            "A <http://e/x> <http://e/at> \"{time}\"^^<http://www.w3.org/2001/XMLSchema#integer> .\n"
        )
    };
    let patch = format!(
        "H id <urn:uuid:1> .\nTX .\nPA \"e\" \"http://e/\" .\nA <_:b> <http://e/p> \"1 <_:b>\" .\n{}TC .\n\
         TX .\nA <http://e/b> <http://e/p> \"2\" .\nTA .\n\
         TX .\nA <http://e/c> <http://e/p> \"3\" <http://e/g> .\n{}TC .\n",
        at("100"),
        at("200")
    );
    let values = values_of(&server, "/streams/s", PATCH, &patch);
    assert_eq!(values, ["_: 1 <_:b>", "http://e/c 3"]);
}

#[test]
fn an_event_has_one_time() {
    let server = with_definition(AT);
    let a = "@prefix : <http://e/> . @prefix xsd: <http://www.w3.org/2001/XMLSchema#> . :a :p 1";
    for (time, accepted) in [
        ("; :at '1970-01-01T00:00:01'^^xsd:dateTime .", 2),
        ("; :at '1970-01-01T00:00:01+00:00'^^xsd:dateTimeStamp .", 2),
        ("; :at '1000'^^xsd:long . :b :at '1000'^^xsd:long .", 3),
    ] {
        let answer = post(&server, "/streams/s", TURTLE, &format!("{a}{time}"));
        assert_eq!(answer.json()["accepted"], accepted, "{}", answer.text());
    }
    for (time, part) in [
        (".", "no statement has the predicate <http://e/at>"),
        ("; :at 1, 2 .", "more than one value"),
        (
            "; :at '1970-01-01T00:00:01'^^xsd:dateTimeStamp .",
            "is no time",
        ),
        ("; :at 'now' .", "\"now\", which is no time"),
        ("; :at :now .", "<http://e/now>, which is no time"),
        ("; :at 1.5 .", "is no time"),
    ] {
        let answer = post(&server, "/streams/s", TURTLE, &format!("{a}{time}"));
        assert_status(&answer, 400, part);
    }
    let line = "5\t<http://e/a> <http://e/at> <http://e/b> .\n";
    for (target, kind, body) in [
        ("/streams/s", LINES, line),
        ("/streams/s?time=1", TURTLE, ""),
    ] {
        assert_status(
            &post(&server, target, kind, body),
            400,
            "times that <http://e/at> says",
        );
    }
    assert_eq!(server.get("/streams/s", "").json()["tuples"], 7);
}

#[test]
fn a_wrong_event_is_refused_by_its_place_and_nothing_is_kept() {
    let server = with_definition(r#"{"iri":"http://e/s","context":{"p":"http://e/p"}}"#);
    let good = r#"{"p":"1"}"#;
    let deep = format!("{}1{}", "[".repeat(5_000), "]".repeat(5_000));
    let log = "VERSION \"1.2-messages\"\n<http://e/a> <http://e/p> 1 .\n";
    for (kind, body, part) in [
        (ND_JSON, format!("{good}\n{{\"p\":\n"), "line 2: event 2: no JSON"),
        (ND_JSON, format!("{good}\n[{good}]"), "line 2: event 2: no JSON: invalid type"),
        (ND_JSON, format!("{good}\n{good} {good}"), "line 2: event 2: no JSON: trailing"),
        (ND_JSON, format!("{good}\n{{\"p\":1}},\"@id\":\"x\""), "line 2: event 2: no JSON: trailing"),
        (ND_JSON, format!("{good}\n{{\"q\":1}}"), "line 2: event 2: it has members"),
        (ND_JSON, format!("{good}\n{{\"p\":{{\"@value\":{{}}}}}}"), "line 2"),
        (ND_JSON, format!("{good}\n{{\"@context\":\"http://elsewhere/c\",\"p\":1}}"), "contexts are not fetched"),
        (ND_JSON, format!("{good}\n{{\"p\":{deep}}}"), "256 arrays and objects"),
        (ND_JSON, "{\"@context\":{},\"@context\":{}}".to_owned(), "two members @context"),
        (JSON, format!("[{good},\n {good},]"), "line 2: event 1: no JSON"),
        (JSON, format!("[{good},\n 7]"), "line 2: event 2: no JSON"),
        (JSON, format!("[{good}"), "no JSON"),
        (JSON, "\"p\"".to_owned(), "no JSON"),
        (TURTLE, format!("{log}MESSAGE\n<http://e/a> <http://e/p> .\n"), "line 4"),
        (TURTLE, format!("{log}@message <http://e/a>"), "@message is followed by a point"),
        (TURTLE, log.replace("1.2-messages", "1.2"), "line 1"),
        (TURTLE, "<http://e/a> <http://e/p> 1 .\nMESSAGE".to_owned(), "line 2"),
        (TRIG, format!("{log}<http://e/g> {{ <http://e/a> <http://e/p> 1 .\nMESSAGE\n}}"), "line 4"),
        (N_TRIPLES, format!("{}MESSAGE\n\n<a> <b> <c> .\n", log.replace(" 1 ", " <http://e/b> ")), "line 5"),
        (PATCH, "TX .\nD <http://e/a> <http://e/p> <http://e/b> .\nTC .\n".to_owned(), "line 2: event 1: D takes a statement away"),
        (PATCH, "TX .\nA <http://e/a> <http://e/p> <http://e/b> .\nTC .\nTX .\nA <http://e/a> <b> .\nTC .".to_owned(), "line 5"),
        (PATCH, "TX .\nA <http://e/a> <http://e/p> <http://e/b> .\n".to_owned(), "neither committed"),
    ] {
        let answer = post(&server, "/streams/s?time=1", kind, &body);
        assert_status(&answer, 400, part);
        assert_eq!(answer.text().lines().count(), 1);
    }
    let without = r#"{"iri":"http://e/t"}"#;
    assert_status(&put(&server, "/streams/t", JSON, without), 201, "");
    let answer = post(&server, "/streams/t?time=1", JSON, good);
    assert_status(&answer, 400, "plain JSON says nothing without a context");
    let answer = post(&server, "/streams/s", ND_JSON, good);
    assert_status(&answer, 400, "none is given");
    let status = server.get("/streams/s", "").json();
    assert_eq!(
        (&status["tuples"], &status["waiting_bytes"]),
        (&json!(0), &json!(0))
    );
}

#[test]
fn many_events_on_one_line_take_time_in_proportion() {
    let server = with_definition(r#"{"iri":"http://e/s","context":{"p":"http://e/p"}}"#);
    let array = format!("[{}{{\"p\":1,}}]", "{\"p\":1},".repeat(20_000));
    let answer = post(&server, "/streams/s?time=1", JSON, &array);
    assert_status(
        &answer,
        400,
        "line 1: event 20001: no JSON: trailing comma (column 160009)",
    );
    let log = format!("VERSION \"1.2-messages\" {}", "MESSAGE ".repeat(100_000));
    let empty = post(&server, "/streams/s?time=1", TURTLE, &log);
    assert_eq!(empty.json(), json!({ "accepted": 0, "late": 0 }));
}

#[test]
fn many_events_are_read_in_bounded_memory() {
    // What a parser of JSON-LD takes for all of them at once would be more than a request may hold.
    let mut engine = jindou_engine::Config::default();
    engine.query_memory_bytes = 4 << 20;
    let server = Running::with_engine(engine, |_| {});
    let definition = r#"{"iri":"http://e/s","context":{"p":"http://e/p"}}"#;
    assert_status(&put(&server, "/streams/s", JSON, definition), 201, "");
    let lines = "{\"p\":[1,2,3,4]}\n".repeat(2_000);
    let report = post(&server, "/streams/s?time=1", ND_JSON, &lines);
    assert_eq!(report.json()["accepted"], 8_000, "{}", report.text());
    let prefix = "x".repeat(1 << 20);
    let turtle = format!(
        "@prefix : <http://e/{prefix}> .\n{}",
        ":a :b :c .\n".repeat(1_000)
    );
    let answer = post(&server, "/streams/s?time=1", TURTLE, &turtle);
    assert_status(&answer, 413, "more than the 4194304 bytes");
    assert_eq!(server.get("/streams/s", "").json()["tuples"], 8_000);
}

#[test]
fn a_long_context_is_processed_once_for_many_lines() {
    let server = with_definition(r#"{"iri":"http://e/s"}"#);
    let term = |number: usize| format!("\"t{number}\":\"http://e/t{number}\"");
    let terms: Vec<_> = (0..4_000).map(term).collect();
    let context = format!("{{\"@context\":{{{}}}}}\n", terms.join(","));
    // Line by line it would take ten times the steps that a request has.
    let lines = context.clone() + &"{\"t1\":1}\n".repeat(4_000);
    let report = post(&server, "/streams/s?time=1", ND_JSON, &lines);
    assert_eq!(report.json()["accepted"], 4_000, "{}", report.text());
    // Each of these changes the context, which nobody can do but once an event.
    let lines = context + &"{\"@context\":{},\"t1\":1}\n".repeat(4_000);
    let answer = post(&server, "/streams/s?time=1", ND_JSON, &lines);
    assert_status(&answer, 400, "send fewer objects in one request");
    assert_eq!(server.get("/streams/s", "").json()["tuples"], 4_000);
}

#[test]
fn events_that_are_read_together_are_those_of_each_alone() {
    let context = r#"{"@vocab":"http://e/","p":{"@id":"http://e/p"},"g":{"@id":"http://e/g","@container":"@graph"},"n":"@nest","at":"http://e/at"}"#;
    let definition = format!(
        r#"{{"iri":"http://e/s","time":"http://e/at","lateness_ms":60000,"context":{context}}}"#
    );
    let objects = [
        r#"{"@id":"_:b","p":1,"at":100}"#,
        r#"{"@id":"_:b","p":2,"at":101}"#,
        "{}",
        r#"{"p":{"@id":"_:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa","p":3},"at":102}"#,
        r#"{"@id":"_:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa","p":4,"at":103}"#,
        r#"{"@graph":[{"p":5},{"at":104}],"@id":"http://e/named"}"#,
        r#"{"g":{"p":6},"at":105}"#,
        r#"{"@included":[{"p":7}],"at":106,"n":{"p":8}}"#,
        r#"{"p":{"@list":[9,10]},"@type":"T","at":107}"#,
        r#"{"@reverse":{"p":{"p":11}},"@id":"http://e/r","at":108}"#,
        r#"{"@graph":[{"@id":"_:b","p":12}],"at":109}"#,
        r#"{"@set":[{"p":13,"at":110}]}"#,
    ];
    let query = "PREFIX : <http://e/> REGISTER STREAM :q AS SELECT ?s ?p ?o \
                 FROM NAMED WINDOW :w ON :s [RANGE PT1S STEP PT1S] WHERE { WINDOW :w { ?s ?p ?o } }";
    let rows_of = |pushes: &[String], kind: &str| {
        let server = with_definition(&definition);
        assert_status(&put(&server, "/continuous/q", QUERY, query), 201, "");
        let mut events = Events::of(&server, "/continuous/q/results?after=0", "");
        let statuses: Vec<_> = pushes
            .iter()
            .map(|push| post(&server, "/streams/s", kind, push).status)
            .collect();
        post(&server, "/streams/s/heartbeat?time=1000", "", "");
        let result = events.next().expect("a result");
        let rows = result.data["results"]["bindings"].as_array().expect("rows");
        let text = |term: &serde_json::Value| match term["type"] == "bnode" {
            true => "_:".to_owned(),
            false => term["value"].as_str().expect("a text").to_owned(),
        };
        let mut nodes: Vec<_> = rows
            .iter()
            .map(|row| row["s"]["value"].to_string())
            .collect();
        nodes.sort();
        nodes.dedup();
        let mut shown: Vec<_> = rows
            .iter()
            .map(|row| [&row["s"], &row["p"], &row["o"]].map(text).join(" "))
            .collect();
        shown.sort();
        (statuses, shown, nodes.len())
    };
    let alone: Vec<String> = objects.iter().map(|&object| object.to_owned()).collect();
    let (statuses, rows, nodes) = rows_of(&alone, JSON);
    let objects = objects.into_iter().zip(statuses);
    let good: Vec<_> = objects
        .filter(|(_, status)| *status == 200)
        .map(|(object, _)| object)
        .collect();
    assert!(good.len() >= 10, "{good:?}");
    for (text, kind) in [
        (good.join("\n"), ND_JSON),
        (format!("[{}]", good.join(",")), JSON),
    ] {
        let (status, together, count) = rows_of(&[text], kind);
        assert_eq!((status, together, count), (vec![200], rows.clone(), nodes));
    }
}
