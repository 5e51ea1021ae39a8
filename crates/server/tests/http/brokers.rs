//! What is said of sources and sinks that this server does not read or feed?

use jindou_engine::{AddressPolicy, Config};
use serde_json::Value;

use crate::client::Running;
use crate::streams::{JSON, assert_status, put, with_query};

fn source(protocol: &str, members: &str) -> String {
    format!(
        r#"{{"iri":"http://e/t","time":"arrival","source":{{"{protocol}":{{{members},"topic":"t","format":"text/turtle"}}}}}}"#
    )
}

/// What a server answers that may connect to no broker.
fn refusal(protocol: &str) -> (u16, String) {
    let is_built = match protocol {
        "kafka" => cfg!(feature = "kafka"),
        _ => cfg!(feature = "mqtt"),
    };
    match is_built {
        true => (403, "--allow-broker".to_owned()),
        false => (
            501,
            format!("{protocol} is not supported by this build: the feature `{protocol}`"),
        ),
    }
}

#[test]
fn an_event_stream_is_read_where_load_may_read_it() {
    let mut config = Config::default();
    config.load_addresses = AddressPolicy::None;
    let closed = Running::with_engine(config, |_| ());
    let server = Running::new();
    let source =
        |members: &str| format!(r#"{{"iri":"http://e/t","source":{{"ldes":{{{members}}}}}}}"#);
    for (members, status, part) in [
        (r#""url":"http://127.0.0.1:1/feed""#, 403, "--allow-load"),
        (r#""url":"feed""#, 400, "no address of the web"),
        (r#""url":"http://[/feed""#, 400, "http://[/feed"),
        (r#""url":"http://e/","poll_ms":1"#, 400, "poll_ms"),
    ] {
        let server = if status == 403 { &closed } else { &server };
        let refused = put(server, "/streams/t", JSON, &source(members));
        assert_status(&refused, status, part);
        assert_eq!(server.send("GET", "/streams/t", "", "").status, 404);
    }
}

#[test]
fn sources_and_sinks_are_refused_by_name() {
    let server = with_query();
    for (protocol, address) in [
        ("kafka", r#""brokers":"127.0.0.1:1""#),
        ("mqtt", r#""address":"127.0.0.1:1""#),
    ] {
        let (status, said) = refusal(protocol);
        let refused = put(&server, "/streams/t", JSON, &source(protocol, address));
        assert_status(&refused, status, &said);
        let sink = format!(r#"{{"{protocol}":{{{address},"topic":"t"}}}}"#);
        let refused = put(&server, "/continuous/q/sinks/out", JSON, &sink);
        assert_status(&refused, status, &said);
    }
    assert_eq!(server.send("GET", "/streams/t", "", "").status, 404);
    assert_eq!(
        server.send("GET", "/continuous/q/sinks/out", "", "").status,
        404
    );
    assert_eq!(
        server
            .send("DELETE", "/continuous/q/sinks/out", "", "")
            .status,
        404
    );
    let none = server.send("GET", "/continuous/q/sinks", "", "");
    assert_status(&none, 200, "[]");
    assert_status(&server.send("GET", "/continuous/r/sinks", "", ""), 404, "r");
    assert_eq!(
        server
            .send("POST", "/continuous/q/sinks/out", "", "")
            .status,
        405
    );
}

#[test]
fn definitions_that_make_no_sense_are_refused() {
    let server = Running::new();
    let refused = put(
        &server,
        "/streams/t",
        JSON,
        &source("amqp", r#""address":"h:1""#),
    );
    assert_status(&refused, 400, "amqp");
    let refused = put(
        &server,
        "/streams/t",
        JSON,
        &source("kafka", r#""brokers":"h:1","group":"g""#),
    );
    assert_status(&refused, 400, "group");
    let list: Value = server.send("GET", "/streams", "", "").json();
    assert_eq!(list, Value::Array(Vec::new()));
}
