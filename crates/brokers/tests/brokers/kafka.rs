//! Topics of Kafka as sources and sinks, while nothing is killed.

use serde_json::Value;

use crate::kafka_broker::Kafka;
use crate::serving::{Serving, program};
use crate::{or_skip, wait_for};

/// A stream that reads a topic, with more members of its definition and of its source.
fn stream(kafka: &Kafka, topic: &str, members: &str, of_source: &str) -> String {
    format!(
        r#"{{"iri":"http://e/s","source":{{"kafka":{{"brokers":"{}","topic":"{topic}",{of_source}}}}},{members}}}"#,
        kafka.address
    )
}

fn fact(number: u64) -> String {
    format!("<http://e/a> <http://e/b> \"{number}\" .")
}

fn facts(server: &Serving) -> Vec<u64> {
    let rows = server.rows("SELECT ?o { <http://e/a> <http://e/b> ?o }");
    let number = |row: Vec<String>| row[0].parse().expect("a number");
    let mut facts: Vec<u64> = rows.into_iter().map(number).collect();
    facts.sort_unstable();
    facts
}

#[test]
fn a_topic_with_partitions_is_read_and_what_is_no_event_is_kept_aside() {
    let program = or_skip!("partitions of Kafka", program());
    let kafka = or_skip!("partitions of Kafka", Kafka::shared());
    kafka.create_topic("partitions", 3);
    for partition in 0..3 {
        let numbers = (0..50).map(|number| 3 * number + partition as u64);
        let messages: Vec<_> = numbers.map(|number| (1000, fact(number))).collect();
        kafka.send("partitions", partition, &messages);
    }
    kafka.send("partitions", 1, &[(1000, "no triple".to_owned())]);
    kafka.send("partitions", 1, &[(1000, fact(150))]);
    let folder = tempfile::tempdir().expect("there is room");
    let server = Serving::start(&program, folder.path(), &kafka.address);
    let members = r#""timeless":"all","durable":true"#;
    let format = r#""format":"application/n-triples""#;
    server.makes("/streams/s", &stream(&kafka, "partitions", members, format));
    let status = wait_for("all messages", || {
        let status = server.get("/streams/s");
        let source = &status["source_status"];
        (source["messages"] == 152 && source["lag"] == 0).then_some(status)
    });
    let source = &status["source_status"];
    // As many as were sent, each once: of others that are as many, another one may be missing.
    for (partition, next_offset) in [("0", 50), ("1", 52), ("2", 50)] {
        let position = &source["partitions"][partition];
        assert_eq!(position["next_offset"], next_offset, "{source:#}");
    }
    assert_eq!(
        (&source["connection"], &source["refused"]),
        (&"connected".into(), &1.into()),
        "{source:#}"
    );
    let refused = &source["last_refused"][0];
    assert_eq!(
        (&refused["place"], &refused["text"]),
        (&"partitions/1, offset 50".into(), &"no triple".into())
    );
    let metrics = server.text("/metrics");
    for line in [
        "jindou_source_messages_total{stream=\"s\"} 152",
        "jindou_source_lag{stream=\"s\"} 0",
    ] {
        assert!(
            metrics.lines().any(|one| one == line),
            "{line} in\n{metrics}"
        );
    }
    server.post("/streams/s/heartbeat?time=10000");
    assert_eq!(facts(&server), (0..=150).collect::<Vec<_>>());
    server.end();
    // Nothing comes again, nor is anything left out.
    let server = Serving::start(&program, folder.path(), &kafka.address);
    kafka.send("partitions", 2, &[(20_000, fact(151))]);
    // A message counts after its tuples do.
    let status = wait_for("one more", || {
        let status = server.get("/streams/s");
        (status["source_status"]["messages"] != 0).then_some(status)
    });
    let messages = &status["source_status"]["messages"];
    assert_eq!((messages, &status["tuples"]), (&1.into(), &152.into()));
}

#[test]
fn a_stream_that_is_full_holds_its_source_back_and_loses_nothing() {
    let program = or_skip!("a full stream", program());
    let kafka = or_skip!("a full stream", Kafka::shared());
    kafka.create_topic("full", 1);
    let last = 5000;
    let messages: Vec<_> = (0..=last).map(|number| (1000, fact(number))).collect();
    kafka.send("full", 0, &messages);
    let folder = tempfile::tempdir().expect("there is room");
    let server = Serving::start(&program, folder.path(), &kafka.address);
    let members = r#""timeless":"all","memory":100000"#;
    let format = r#""format":"application/n-triples""#;
    server.makes("/streams/s", &stream(&kafka, "full", members, format));
    wait_for("a full stream", || {
        let status = server.get("/streams/s");
        (status["source_status"]["connection"] == "waiting").then_some(status)
    });
    // The batch is complete thereby, and what comes after it is late: a fact all the same.
    server.post("/streams/s/heartbeat?time=10000");
    wait_for("all messages", || {
        (facts(&server).len() as u64 > last).then_some(())
    });
    assert_eq!(facts(&server), (0..=last).collect::<Vec<_>>());
    // They count after they are there.
    wait_for("the count of all messages", || {
        let messages = &server.get("/streams/s")["source_status"]["messages"];
        (*messages == last + 1).then_some(())
    });
}

#[test]
fn the_next_messages_are_those_after_the_first_connection() {
    let program = or_skip!("the latest messages", program());
    let kafka = or_skip!("the latest messages", Kafka::shared());
    kafka.create_topic("latest", 1);
    kafka.send("latest", 0, &[(1000, fact(0))]);
    let folder = tempfile::tempdir().expect("there is room");
    let server = Serving::start(&program, folder.path(), &kafka.address);
    let members = r#""timeless":"all","durable":true"#;
    let from = r#""format":"application/n-triples","start":"latest""#;
    server.makes("/streams/s", &stream(&kafka, "latest", members, from));
    wait_for("a connection", || {
        let status = server.get("/streams/s");
        (status["source_status"]["connection"] == "connected").then_some(())
    });
    server.kill();
    kafka.send("latest", 0, &[(2000, fact(1))]);
    let server = Serving::start(&program, folder.path(), &kafka.address);
    wait_for("the message", || {
        (server.get("/streams/s")["tuples"] == 1).then_some(())
    });
    server.post("/streams/s/heartbeat?time=10000");
    assert_eq!(facts(&server), [1]);
}

#[test]
fn a_message_of_a_sink_is_the_data_of_an_event() {
    let program = or_skip!("messages of a sink", program());
    let kafka = or_skip!("messages of a sink", Kafka::shared());
    kafka.create_topic("sink-from", 1);
    kafka.create_topic("sink-to", 1);
    let folder = tempfile::tempdir().expect("there is room");
    let server = Serving::start(&program, folder.path(), &kafka.address);
    let lines = r#""format":"text/tab-separated-values""#;
    server.makes(
        "/streams/s",
        &stream(&kafka, "sink-from", r#""durable":true"#, lines),
    );
    for (name, form) in [
        ("rows", "SELECT *"),
        ("graph", "CONSTRUCT { ?s ?p ?o }"),
        ("any", "ASK"),
    ] {
        let query = format!("{form} FROM STREAM <http://e/s> [RANGE 1s] WHERE {{ ?s ?p ?o }}");
        server.makes(&format!("/continuous/{name}"), &query);
        let sink = format!(
            r#"{{"kafka":{{"brokers":"{}","topic":"sink-to"}}}}"#,
            kafka.address
        );
        server.makes(&format!("/continuous/{name}/sinks/out"), &sink);
    }
    let line = |time: u64| {
        (
            0,
            format!("{time}\t<http://e/a> <http://e/b> \"a \\\"b\\\" ü\\n\"@en .\n"),
        )
    };
    kafka.send("sink-from", 0, &[line(100), line(1100), line(2100)]);
    let mut reader = kafka.read("sink-to");
    wait_for("results", || {
        reader.poll();
        (reader.seen.len() == 6).then_some(())
    });
    for name in ["rows", "graph", "any"] {
        let path = format!("/continuous/{name}");
        assert_eq!(server.delete(&format!("{path}/sinks/none")), 404);
        // It is noted after a consumer may have the result.
        let status = wait_for("two results", || {
            let status = server.get(&format!("{path}/sinks/out"));
            (status["delivered"] == 2).then_some(status)
        });
        assert_eq!(
            (&status["results"], &status["missed"]),
            (&2.into(), &0.into())
        );
        assert_eq!(server.get(&format!("{path}/sinks"))[0], status);
        // A reader that begins after the first has the second, and the end once the query is dropped.
        let of =
            |instant: u64, sequence: u64| &reader.seen[&format!("{name}/{instant}:{sequence}")];
        let events = std::thread::scope(|scope| {
            let events = scope.spawn(|| server.text(&format!("{path}/results?after=0")));
            wait_for("a reader", || {
                let metrics = server.text("/metrics");
                metrics.contains("jindou_result_readers 1").then_some(())
            });
            assert_eq!(server.delete(&path), 204);
            events.join().expect("no panic")
        });
        for (instant, sequence) in [(1000, 1), (2000, 2)] {
            let event = format!(
                "event: result\nid: {instant}:{sequence}\ndata: {}\n\n",
                of(instant, sequence)
            );
            assert!(events.contains(&event), "{event}\n is not in {events}");
        }
        let _: Value = serde_json::from_str(of(1000, 1)).expect("it is JSON");
    }
}

#[test]
fn what_is_not_allowed_or_makes_no_sense_is_refused() {
    let program = or_skip!("refusals", program());
    let kafka = or_skip!("refusals", Kafka::shared());
    let folder = tempfile::tempdir().expect("there is room");
    let server = Serving::start(&program, folder.path(), "127.0.0.1:1");
    let format = r#""format":"application/n-triples""#;
    let (status, said) = server.put(
        "/streams/s",
        &stream(&kafka, "a", r#""time":"event""#, format),
    );
    assert_eq!(status, 403, "{said}");
    assert!(
        said.contains(&kafka.address) && said.contains("--allow-broker"),
        "{said}"
    );
    let put = |source: &str| {
        server.put(
            "/streams/s",
            &format!(r#"{{"iri":"http://e/s","source":{source}}}"#),
        )
    };
    let of = |members: &str| {
        put(&format!(
            r#"{{"kafka":{{"brokers":"127.0.0.1:1",{members}}}}}"#
        ))
    };
    let (status, said) = of(r#""topic":"a","format":"text/turtle","group":"g""#);
    assert!(status == 400 && said.contains("group"), "{status} {said}");
    let (status, said) = of(r#""topic":"a/b","format":"text/turtle""#);
    assert!(status == 400 && said.contains("a/b"), "{status} {said}");
    let (status, said) = put(r#"{"amqp":{}}"#);
    assert!(status == 400 && said.contains("amqp"), "{status} {said}");
    // Nobody listens there: it is tried again and again, and dropped at once.
    let (status, said) = of(r#""topic":"a","format":"text/turtle""#);
    assert_eq!(status, 201, "{said}");
    wait_for("a failure", || {
        let status = server.get("/streams/s");
        (status["source_status"]["connection"] == "failed").then_some(())
    });
    assert_eq!(server.delete("/streams/s"), 204);
    server.end();
}

#[test]
fn partitions_are_read_in_the_order_of_their_times() {
    let program = or_skip!("the order of partitions", program());
    let kafka = or_skip!("the order of partitions", Kafka::shared());
    kafka.create_topic("ordered-from", 4);
    // One after the other, each as long as all windows together: read so, most would be late.
    let (count, partitions) = (8000, 4);
    for partition in 0..partitions {
        let numbers = (0..count).filter(|number| number % partitions == partition);
        let messages: Vec<_> = numbers
            .map(|number| (1 + number as i64, fact(number)))
            .collect();
        kafka.send("ordered-from", partition as i32, &messages);
    }
    let folder = tempfile::tempdir().expect("there is room");
    let server = Serving::start(&program, folder.path(), &kafka.address);
    let members = r#""durable":true"#;
    let format = r#""format":"application/n-triples""#;
    let stream = stream(&kafka, "ordered-from", members, format);
    server.makes("/streams/s", &stream);
    let query = "SELECT ?o FROM STREAM <http://e/s> [RANGE 100ms] WHERE { ?s ?p ?o }";
    server.makes("/continuous/q", query);
    let status = wait_for("all messages", || {
        let status = server.get("/streams/s");
        (status["source_status"]["messages"] == count).then_some(status)
    });
    assert_eq!(
        (&status["late"], &status["tuples"]),
        (&0.into(), &count.into())
    );
}
