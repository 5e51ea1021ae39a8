//! Topics of an MQTT broker as sources and sinks.

use serde_json::Value;

use crate::kafka_broker::free_port;
use crate::mosquitto::Mosquitto;
use crate::serving::{Serving, program, rows};
use crate::{or_skip, wait_for};

/// A stream that subscribes.
fn stream(broker: &str, members: &str) -> String {
    format!(
        r#"{{"iri":"http://e/s","timeless":"all","source":{{"mqtt":{{"address":"{broker}",
            "topic":"readings/+","format":"text/tab-separated-values"}}}},{members}}}"#
    )
}

fn line(number: u64) -> String {
    format!(
        "{}\t<http://e/a> <http://e/b> \"{number}\" .",
        1000 + number
    )
}

fn facts(server: &Serving) -> Vec<u64> {
    let rows = server.rows("SELECT ?o { <http://e/a> <http://e/b> ?o }");
    let mut facts: Vec<u64> = rows
        .iter()
        .map(|row| row[0].parse().expect("a number"))
        .collect();
    facts.sort_unstable();
    facts
}

#[test]
fn what_comes_while_the_server_is_away_is_read_afterwards() {
    let program = or_skip!("a session of MQTT", program());
    let broker = or_skip!("a session of MQTT", Mosquitto::start(free_port()));
    let folder = tempfile::tempdir().expect("there is room");
    let server = Serving::start(&program, folder.path(), &broker.address());
    server.makes(
        "/streams/s",
        &stream(&broker.address(), r#""durable":true"#),
    );
    let connected = |server: &Serving| {
        wait_for("a subscription", || {
            let status = server.get("/streams/s");
            (status["source_status"]["connection"] == "connected").then_some(())
        });
    };
    connected(&server);
    broker.publish("readings/1", &(0..500).map(line).collect::<Vec<_>>());
    broker.publish("readings/2", &["no line".to_owned()]);
    let status = wait_for("all messages", || {
        let status = server.get("/streams/s");
        (status["source_status"]["messages"] == 501).then_some(status)
    });
    assert_eq!(status["tuples"], 500);
    let refused = &status["source_status"]["last_refused"][0];
    assert_eq!(
        (&refused["place"], &refused["text"]),
        (&"readings/2".into(), &"no line".into())
    );
    server.kill();
    broker.publish("readings/3", &(500..700).map(line).collect::<Vec<_>>());
    let server = Serving::start(&program, folder.path(), &broker.address());
    wait_for("the rest", || {
        let tuples = server.get("/streams/s")["tuples"].as_u64()?;
        (tuples >= 700).then_some(())
    });
    server.post("/streams/s/heartbeat?time=10000");
    assert_eq!(facts(&server), (0..700).collect::<Vec<_>>());
    server.end();
}

#[test]
fn a_stream_that_is_full_is_acknowledged_later() {
    let program = or_skip!("a full stream of MQTT", program());
    let broker = or_skip!("a full stream of MQTT", Mosquitto::start(free_port()));
    let folder = tempfile::tempdir().expect("there is room");
    let server = Serving::start(&program, folder.path(), &broker.address());
    let members = r#""memory":100000,"interval_ms":1000000"#;
    server.makes("/streams/s", &stream(&broker.address(), members));
    let connection = |wanted: &str| {
        wait_for(wanted, || {
            let status = server.get("/streams/s");
            (status["source_status"]["connection"] == wanted).then_some(())
        });
    };
    connection("connected");
    broker.publish("readings/1", &(0..3000).map(line).collect::<Vec<_>>());
    connection("waiting");
    server.post("/streams/s/heartbeat?time=2000000");
    wait_for("all messages", || {
        (facts(&server).len() == 3000).then_some(())
    });
    assert_eq!(facts(&server), (0..3000).collect::<Vec<_>>());
}

#[test]
fn a_broker_that_comes_later_gets_the_results_it_missed() {
    let program = or_skip!("a broker of MQTT that comes later", program());
    let port = free_port();
    let folder = tempfile::tempdir().expect("there is room");
    let address = format!("127.0.0.1:{port}");
    let server = Serving::start(&program, folder.path(), &address);
    server.makes("/streams/s", r#"{"iri":"http://e/s","time":"event"}"#);
    let query = "SELECT ?o FROM STREAM <http://e/s> [RANGE 1s] WHERE { ?s ?p ?o }";
    server.makes("/continuous/q", query);
    let sink = format!(r#"{{"mqtt":{{"address":"{address}","topic":"results"}}}}"#);
    server.makes("/continuous/q/sinks/out", &sink);
    let state = |wanted: &str| {
        wait_for(wanted, || {
            let status = server.get("/continuous/q/sinks/out");
            (status["connection"] == wanted).then_some(())
        });
    };
    state("failed");
    let broker = or_skip!("a broker of MQTT that comes later", Mosquitto::start(port));
    let mut results = broker.subscribe("results");
    state("connected");
    let line = |time: u64| format!("{time}\t<http://e/a> <http://e/b> \"{time}\" .\n");
    let lines: String = (0..4).map(|second| line(1000 * second)).collect();
    server.push("/streams/s", &lines);
    for (sequence, value) in [(1, "0"), (2, "1000"), (3, "2000")] {
        let message = results.next();
        let result: Value = serde_json::from_slice(&message.payload).expect("it is JSON");
        assert_eq!(result["sequence"], sequence);
        assert_eq!(rows(&result), [[value]]);
        let properties = message.properties.expect("it has some").user_properties;
        let id = format!("{}:{sequence}", result["instant"]);
        assert!(
            properties.contains(&("id".to_owned(), id)),
            "{properties:?}"
        );
        assert!(properties.contains(&("query".to_owned(), "q".to_owned())));
    }
    assert_eq!(server.delete("/continuous/q/sinks/out"), 204);
    server.end();
}
