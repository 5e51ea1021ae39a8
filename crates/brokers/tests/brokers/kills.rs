//! A server that reads one topic and writes another is killed again and again. A consumer that drops
//! results whose id it has seen has each result once, and the graph has each fact.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;

use crate::kafka_broker::{Kafka, Reader};
use crate::serving::{Serving, program, rows};
use crate::{environment, or_skip, wait_for};

/// The time of the first message, and between two.
const FIRST_MS: i64 = 1_700_000_000_050;
const BETWEEN_MS: i64 = 7;
/// The step of the query, whose windows overlap.
const STEP_MS: i64 = 100;
const RANGE_MS: i64 = 200;
/// Messages of one life of the server, at most.
const MOST_MESSAGES: u64 = 300;

const QUERY: &str = "REGISTER QUERY q AS SELECT ?sensor ?value \
    FROM STREAM <http://e/s> [RANGE 200ms STEP 100ms] WHERE { ?sensor <http://e/reads> ?value }";

/// Numbers by a seed.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(0x5851_f42d_4c95_7f2d)
            .wrapping_add(0x1405_7b7e_f767_814f);
        (self.0 >> 33) % end
    }
}

fn time_of(message: u64) -> i64 {
    FIRST_MS + BETWEEN_MS * message as i64
}

fn sensor(message: u64) -> String {
    format!("http://e/sensor{}", message % 13)
}

fn is_fact(message: u64) -> bool {
    message.is_multiple_of(3)
}

/// A reading, and with each third one a fact.
fn message(number: u64) -> (i64, String) {
    let sensor = sensor(number);
    let mut text = format!("<{sensor}> <http://e/reads> \"{number}\" .\n");
    if is_fact(number) {
        text.push_str(&format!("<{sensor}> <http://e/fact> \"{number}\" .\n"));
    }
    (time_of(number), text)
}

/// Makes what is to survive.
fn define(server: &Serving, kafka: &Kafka, [from, to]: [&str; 2]) {
    let address = &kafka.address;
    let stream = format!(
        r#"{{"iri":"http://e/s","durable":true,"timeless":["http://e/fact"],"source":{{"kafka":
            {{"brokers":"{address}","topic":"{from}","format":"application/n-triples"}}}}}}"#
    );
    server.makes("/streams/s", &stream);
    server.makes("/continuous/q", QUERY);
    let sink = format!(r#"{{"kafka":{{"brokers":"{address}","topic":"{to}"}}}}"#);
    server.makes("/continuous/q/sinks/out", &sink);
    assert_eq!(server.put("/continuous/q/sinks/out", &sink).0, 200);
}

/// Waits for something that is chosen at random, and some moments more.
fn until_some_moment(random: &mut Random, server: &Serving, reader: &mut Reader, sent: u64) {
    match random.below(4) {
        0 => {}
        1 => {
            let wanted = reader.seen.len() as u64 + random.below(30);
            wait_for("results", || {
                reader.poll();
                // There may be none for which a later message is missing.
                let tuples = server.get("/streams/s")["tuples"].as_u64()?;
                let last = server.get("/continuous/q")["last_instant_ms"].as_i64();
                let last = last.map(|instant| format!("q/{instant}:"));
                let is_last = |key: &String| last.as_ref().is_none_or(|last| key.starts_with(last));
                let is_done = tuples >= sent + sent.div_ceil(3) && reader.seen.keys().any(is_last);
                (is_done || reader.seen.len() as u64 >= wanted).then_some(())
            });
        }
        _ => {
            let tuples = |server: &Serving| server.get("/streams/s")["tuples"].as_u64();
            let all = sent + sent.div_ceil(3);
            let now = tuples(server).unwrap_or_default().min(all);
            let wanted = now + random.below(all - now + 1);
            wait_for("tuples", || {
                tuples(server).filter(|tuples| *tuples >= wanted)
            });
        }
    }
    // So that all moments are met, not only those after an answer.
    std::thread::sleep(Duration::from_micros(random.below(20_000)));
}

/// What each instant finds, by an evaluation of all messages, up to the last complete one.
fn expected(sent: u64, end_ms: i64) -> BTreeMap<i64, Vec<Vec<String>>> {
    let first = (FIRST_MS / STEP_MS + 1) * STEP_MS;
    let instants = (first..=end_ms).step_by(STEP_MS as usize);
    let rows_at = |instant: i64| {
        let window = instant - RANGE_MS..instant;
        let inside = (0..sent).filter(|number| window.contains(&time_of(*number)));
        let mut rows: Vec<Vec<String>> = inside
            .map(|number| vec![sensor(number), number.to_string()])
            .collect();
        rows.sort();
        rows
    };
    instants
        .map(|instant| (instant, rows_at(instant)))
        .collect()
}

#[test]
fn each_result_and_each_fact_is_there_once_whatever_is_killed() {
    let program = or_skip!("kills between topics of Kafka", program());
    let kafka = or_skip!("kills between topics of Kafka", Kafka::shared());
    let seed = environment("JINDOU_SEED", 1);
    let kills = environment("JINDOU_KILLS", 5);
    println!("seed {seed}, {kills} kills (JINDOU_SEED, JINDOU_KILLS)");
    let topics = ["killed-from", "killed-to"];
    topics.iter().for_each(|topic| kafka.create_topic(topic, 1));
    let folder = tempfile::tempdir().expect("there is room");
    let store = folder.path().join("store");
    let mut random = Random(seed);
    let mut reader = kafka.read(topics[1]);
    let mut sent = 0;
    for life in 0..kills {
        let more = 1 + random.below(MOST_MESSAGES);
        let messages: Vec<_> = (sent..sent + more).map(message).collect();
        kafka.send(topics[0], 0, &messages);
        sent += more;
        let server = Serving::start(&program, &store, &kafka.address);
        if life == 0 {
            define(&server, &kafka, topics);
        }
        until_some_moment(&mut random, &server, &mut reader, sent);
        server.kill();
        reader.poll();
    }
    let server = Serving::start(&program, &store, &kafka.address);
    if kills == 0 {
        define(&server, &kafka, topics);
    }
    // One more, by which all windows of those before it are complete.
    let end_ms = (time_of(sent) / STEP_MS + 3) * STEP_MS;
    kafka.send(
        topics[0],
        0,
        &[(end_ms, "<http://e/x> <http://e/y> \"end\" .".to_owned())],
    );
    let expected = expected(sent, end_ms);
    wait_for("all results", || {
        let delivered = server.get("/continuous/q/sinks/out")["delivered"].as_u64()?;
        (delivered >= expected.len() as u64).then_some(())
    });
    reader.read_to_end(topics[1]);
    let mut seen = BTreeMap::new();
    let mut sequences = Vec::new();
    for (key, text) in &reader.seen {
        let result: Value = serde_json::from_str(text).expect("it is JSON");
        let (instant, sequence) = (result["instant"].as_i64(), result["sequence"].as_u64());
        let (instant, sequence) = (instant.expect("a number"), sequence.expect("a number"));
        assert_eq!(*key, format!("q/{instant}:{sequence}"));
        seen.insert(instant, rows(&result));
        sequences.push((sequence, instant));
    }
    assert_eq!(seen, expected, "seed {seed}");
    sequences.sort_unstable();
    let in_order: Vec<(u64, i64)> = (1..).zip(expected.keys().copied()).collect();
    assert_eq!(sequences, in_order, "seed {seed}");
    let facts = server.rows("SELECT ?s ?v { ?s <http://e/fact> ?v }");
    let mut produced: Vec<Vec<String>> = (0..sent)
        .filter(|number| is_fact(*number))
        .map(|number| vec![sensor(number), number.to_string()])
        .collect();
    produced.sort();
    assert_eq!(facts, produced, "seed {seed}");
    let status = server.get("/continuous/q/sinks/out");
    assert_eq!(
        (status["missed"].as_u64(), status["unsent"].as_u64()),
        (Some(0), Some(0))
    );
    println!(
        "{} messages, {} results, {} of them came again",
        sent,
        expected.len(),
        reader.repeated
    );
    server.end();
}
