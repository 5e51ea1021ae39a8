//! Are records read as they were written, and others refused?

use std::borrow::Cow;

use jindou_stream::{Position, SinkDefinition, StreamDefinition};
use oxrdf::{GraphName, Literal, NamedNode, Quad, Term};

use super::answer::Answer;
use super::records::{Facts, Push, Record, ResultRecord, TuplesKind};
use super::result_log::HeldTuples;
use super::sinks::Delivered;
use super::tuples::Tuples;

fn tuples() -> Tuples {
    let node = |iri: &str| NamedNode::new_unchecked(format!("http://e/{iri}"));
    let objects: [Term; 4] = [
        node("o").into(),
        Literal::from(7).into(),
        Literal::new_simple_literal("a text").into(),
        Literal::new_language_tagged_literal_unchecked("x", "en").into(),
    ];
    let mut tuples = Tuples::default();
    for (time, object) in [-5, 100, 99, i64::MAX].into_iter().zip(objects) {
        let quad = Quad::new(node("s"), node("p"), object, GraphName::DefaultGraph);
        tuples.push(time, quad.as_ref());
    }
    tuples.set_scope(12);
    tuples
}

fn answer() -> Answer {
    let rows: [&[Option<&str>]; 2] = [&[Some("http://e/a"), None], &[None, Some("http://e/b")]];
    Answer::of_iris(&["x", "y"], &rows)
}

fn sink() -> SinkDefinition {
    let json = r#"{"kafka":{"brokers":"h:9092","topic":"t"}}"#;
    serde_json::from_str(json).expect("it is a definition")
}

fn samples(tuples: &Tuples, answer: &Answer) -> Vec<Record<'static>> {
    let mut definition = StreamDefinition::new("http://e/s");
    definition.durable = true;
    let tuples = || Cow::Owned(tuples.clone());
    let noted_push = |producers: &[(&'static str, u64)], first_open, notes: &'static [u8]| {
        Record::Push(Push {
            stream: 300,
            producers: producers.to_vec(),
            first_open,
            late: 9,
            notes,
            tuples: tuples(),
        })
    };
    let push =
        |producers: &[(&'static str, u64)], first_open| noted_push(producers, first_open, &[]);
    let held = |from_ms, until_ms, numbers| HeldTuples {
        from_ms,
        until_ms,
        numbers,
    };
    let result = |answer, numbers| {
        Record::Result(ResultRecord {
            query: 2,
            instant_ms: -1000,
            sequence: 1 << 40,
            windows: vec![held(i64::MIN, 5, numbers), held(0, 0, None)].into(),
            snapshot: 8,
            empty: 3,
            is_given: false,
            answer,
        })
    };
    let of_batch = |facts| Record::Intent {
        stream: 1,
        facts,
        snapshot: u64::MAX,
    };
    let of_kind = |kind| Record::Tuples {
        stream: 1,
        kind,
        tuples: tuples(),
    };
    let position = Position {
        watermark_ms: Some(-7),
        first_open: None,
        begin_ms: Some(3),
        late: 4,
    };
    vec![
        Record::CreateStream {
            stream: 1,
            name: "s",
            definition: Cow::Owned(definition),
        },
        Record::DropStream { stream: 1 },
        Record::Register {
            query: 2,
            name: "q",
            text: "ASK { }",
            is_paused: true,
        },
        Record::Unregister { query: 2 },
        Record::Pause {
            query: 2,
            is_paused: false,
            last_ms: Some(9),
        },
        Record::Begin {
            query: 2,
            last_ms: None,
            begins: vec![i64::MIN, 4].into(),
        },
        push(&[("p", 77)], Some(-3)),
        push(&[("p", 1), ("é", 1 << 60)], None),
        push(&[], None),
        noted_push(&[("ldes:p", 2)], Some(4), b"noted"),
        Record::Notes {
            stream: 1,
            notes: Cow::Borrowed(b"all of it"),
        },
        Record::Heartbeat {
            stream: 1,
            time_ms: -1,
        },
        of_batch(Facts::Batch(-100)),
        of_batch(Facts::Batches(-100, 500)),
        of_batch(Facts::Late(3)),
        result(Ok(Cow::Owned(answer.clone())), None),
        result(Ok(Cow::Owned(Answer::Boolean(true))), Some((1, 1 << 50))),
        result(Err("it failed".into()), Some((7, 9))),
        Record::CreateSink {
            query: 2,
            sink: 5,
            name: "out",
            definition: Cow::Owned(sink()),
            delivered: Delivered {
                sequence: 1 << 33,
                missed: 3,
            },
        },
        Record::DropSink { query: 2, sink: 5 },
        Record::Delivered {
            query: 2,
            sink: 5,
            delivered: Delivered::default(),
        },
        Record::StreamState {
            stream: 1,
            position,
            counts: [1, 2, 3, 400],
        },
        Record::Producer {
            stream: 1,
            producer: "é",
            sequence: 1,
        },
        of_kind(TuplesKind::Open),
        of_kind(TuplesKind::Absorbed),
        of_kind(TuplesKind::Late(6)),
        Record::QueryState {
            query: 2,
            last_ms: Some(0),
            sequence: 4,
            empty: 1,
            before: Some(Cow::Owned(answer.clone())),
        },
    ]
}

#[test]
fn records_are_read_as_written_and_others_are_refused_without_a_panic() {
    let (tuples, answer) = (tuples(), answer());
    let mut random = 1_u64;
    let mut refused = 0;
    for record in samples(&tuples, &answer) {
        let mut bytes = Vec::new();
        record.encode(&mut bytes);
        assert_eq!(Record::decode(&bytes).unwrap(), record);
        for length in 0..bytes.len() {
            assert!(
                Record::decode(&bytes[..length]).is_err(),
                "{record:?} {length}"
            );
        }
        let mut longer = bytes.clone();
        longer.push(0);
        assert!(Record::decode(&longer).is_err());
        for _ in 0..2000 {
            random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            let mut damaged = bytes.clone();
            let place = (random >> 33) as usize % bytes.len();
            damaged[place] ^= (random >> 25) as u8 | 1;
            match Record::decode(&damaged) {
                Err(_) => refused += 1,
                // What is read can be used.
                Ok(Record::Push(push)) => push.tuples.iter().for_each(|(_, keys)| {
                    let _ = keys.text();
                }),
                Ok(Record::Result(result)) => {
                    let rows = result.answer.ok();
                    let rows = rows.as_ref().and_then(|answer| answer.rows());
                    let _ = rows.map(|rows| rows.iter().count());
                }
                Ok(_) => {}
            }
        }
    }
    assert!(refused > 1000, "{refused}");
}
