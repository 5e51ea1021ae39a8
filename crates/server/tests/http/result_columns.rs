//! Do readers of Arrow find the results of continuous queries as events have them?

use std::io::Cursor;

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, UInt64Type};
use arrow_ipc::reader::StreamReader;

use crate::client::{Connection, Running};
use crate::streams::{
    LATEST, LINES, QUERY, TURTLE, assert_status, feed, post, put, with_query, with_stream,
};

const ARROW: &str = "application/vnd.apache.arrow.stream";
const ACCEPT: &str = "Accept: application/vnd.apache.arrow.stream\r\n";

/// A reader of results.
struct Columns(Connection);

impl Columns {
    fn of(server: &Running, target: &str, headers: &str) -> Self {
        let mut connection = server.connect();
        connection.send("GET", target, &format!("{ACCEPT}{headers}"), "");
        let head = connection.head();
        assert_eq!(head.status, 200);
        assert_eq!(head.header("content-type"), Some(ARROW));
        Self(connection)
    }

    /// All batches, up to the end of the stream.
    fn batches(mut self) -> Vec<RecordBatch> {
        let mut bytes = Vec::new();
        loop {
            let chunk = self.0.chunk().expect("the body ends as it should");
            if chunk.is_empty() {
                break;
            }
            bytes.extend(chunk);
        }
        assert!(bytes.ends_with(&[255, 255, 255, 255, 0, 0, 0, 0]), "no end");
        let reader = StreamReader::try_new(Cursor::new(bytes), None).expect("a schema");
        reader.collect::<Result<_, _>>().expect("whole batches")
    }
}

/// Ends the results of a query.
fn unregister(server: &Running) {
    let dropped = server.send("DELETE", "/continuous/q", "", "");
    assert_eq!(dropped.status, 204);
}

fn values(batch: &RecordBatch, name: &str) -> Vec<Option<String>> {
    let column = batch.column_by_name(name).expect("it is there");
    let values = match column.as_struct_opt() {
        Some(terms) => terms.column_by_name("value").expect("a field").clone(),
        None => arrow_array::ArrayRef::clone(column),
    };
    let text = |text: Option<&str>| text.map(str::to_owned);
    match values.as_any_dictionary_opt() {
        Some(words) => {
            let all = words.values().as_string::<i32>();
            if arrow_array::Array::is_empty(all) {
                return vec![None; arrow_array::Array::len(words)];
            }
            let keys = words.normalized_keys();
            let is_there = |place: usize| !arrow_array::Array::is_null(words, place);
            let places =
                (0..keys.len()).map(|place| is_there(place).then(|| all.value(keys[place])));
            places.map(text).collect()
        }
        None => values.as_string::<i32>().iter().map(text).collect(),
    }
}

fn numbers(batch: &RecordBatch, name: &str) -> Vec<u64> {
    let column = batch.column_by_name(name).expect("it is there");
    column.as_primitive::<UInt64Type>().values().to_vec()
}

fn instants(batch: &RecordBatch) -> Vec<i64> {
    let column = batch.column_by_name("_instant").expect("it is there");
    column.as_primitive::<Int64Type>().values().to_vec()
}

fn are_removed(batch: &RecordBatch) -> Vec<bool> {
    let column = batch.column_by_name("_removed").expect("it is there");
    column.as_boolean().values().iter().collect()
}

#[test]
fn each_result_is_a_batch_with_its_instant_and_number() {
    let server = with_query();
    feed(&server, 0..2);
    let columns = Columns::of(&server, "/continuous/q/results?after=0", "");
    let later = Columns::of(
        &server,
        "/continuous/q/results",
        "Last-Event-ID: 1000:1\r\n",
    );
    feed(&server, 3..5);
    unregister(&server);
    let batches = columns.batches();
    let rows: Vec<usize> = batches.iter().map(RecordBatch::num_rows).collect();
    assert_eq!(rows, [1, 1, 0, 1, 1]);
    for (number, batch) in (0_u64..).zip(&batches) {
        let names: Vec<&str> = batch
            .schema_ref()
            .fields()
            .iter()
            .map(|field| &**field.name())
            .collect();
        assert_eq!(
            names,
            [
                "x",
                "y",
                "_instant",
                "_sequence",
                "_snapshot",
                "_removed",
                "_missed",
                "_error"
            ]
        );
        if batch.num_rows() > 0 {
            assert_eq!(values(batch, "x"), [Some(format!("http://e/x{number}"))]);
            assert_eq!(values(batch, "y"), [Some(format!("é\n{number}"))]);
            assert_eq!(instants(batch), [1000 * (number as i64 + 1)]);
            assert_eq!(numbers(batch, "_sequence"), [number + 1]);
            assert_eq!(
                (numbers(batch, "_missed"), are_removed(batch)),
                (vec![0], vec![false])
            );
            assert_eq!(values(batch, "_error"), [None]);
        }
    }
    assert_eq!(later.batches(), batches[1..]);
}

#[test]
fn a_reader_that_is_gone_is_noticed_while_there_are_no_results() {
    let server = with_query();
    let mut columns = Columns::of(&server, "/continuous/q/results", "");
    assert!(columns.0.chunk().is_some_and(|schema| !schema.is_empty()));
    server.wait_for_metric("jindou_result_readers 1");
    drop(columns);
    server.wait_for_metric("jindou_result_readers 0");
}

#[test]
fn triples_have_the_columns_of_triples_and_unbound_variables_are_null() {
    for (text, column, expected) in [
        (
            "CONSTRUCT { ?x :q ?y } FROM STREAM s [RANGE 1s] WHERE { ?x :p ?y }",
            "predicate",
            Some("http://e/q".to_owned()),
        ),
        (
            "CONSTRUCT { ?x :q ?y } FROM STREAM s [RANGE 1s] WHERE { ?x :p ?y }",
            "graph",
            None,
        ),
        (
            "SELECT ?z FROM STREAM s [RANGE 1s] WHERE { ?x :p ?y OPTIONAL { ?x :never ?z } }",
            "z",
            None,
        ),
    ] {
        let server = with_stream();
        let text = format!("PREFIX : <http://e/> {text}");
        assert_status(&put(&server, "/continuous/q", QUERY, &text), 201, "");
        let columns = Columns::of(&server, "/continuous/q/results", "");
        feed(&server, 0..1);
        unregister(&server);
        let [batch] = &*columns.batches() else {
            panic!("there is one result");
        };
        assert_eq!(values(batch, column), [expected], "{text}");
    }
}

#[test]
fn rows_that_are_gone_have_a_batch_of_their_own() {
    let server = Running::new();
    let text = "PREFIX : <http://e/> SELECT ?y WHERE { :a :watched ?y }";
    assert_status(&put(&server, "/continuous/q", QUERY, text), 201, "");
    let update = |text: &str| {
        let kind = "Content-Type: application/sparql-update\r\n";
        let text = format!("PREFIX : <http://e/> {text}");
        assert!(post(&server, "/update", kind, &text).status < 300);
    };
    let columns = Columns::of(&server, "/continuous/q/results?after=0", "");
    update("INSERT DATA { :a :watched 1 }");
    update("DELETE { :a :watched 1 } INSERT { :a :watched 2 , 3 } WHERE {}");
    unregister(&server);
    let batches = columns.batches();
    // The first result is of what was there before.
    let said = |batch: &RecordBatch| {
        let mut values: Vec<String> = values(batch, "y").into_iter().flatten().collect();
        values.sort();
        let sequence = numbers(batch, "_sequence").first().copied();
        (
            sequence,
            are_removed(batch).first().copied(),
            values.concat(),
        )
    };
    let said: Vec<_> = batches.iter().map(said).collect();
    assert_eq!(
        said,
        [
            (None, None, String::new()),
            (Some(2), Some(false), "1".to_owned()),
            (Some(3), Some(true), "1".to_owned()),
            (Some(3), Some(false), "23".to_owned()),
        ]
    );
}

#[test]
fn what_cannot_be_a_row_is_an_error() {
    let server = with_query();
    let line =
        |n: u64, value: &str| format!("{}\t<http://e/x> <http://e/p> \"{value}\" .\n", 1000 * n);
    let lines = line(0, "a") + &line(1, &"b".repeat(300_000)) + &line(2, "c") + &line(3, "d");
    assert_status(&post(&server, "/streams/s", LINES, &lines), 200, "accepted");
    let columns = Columns::of(&server, "/continuous/q/results?after=0", "");
    unregister(&server);
    let batches = columns.batches();
    let errors: Vec<_> = batches
        .iter()
        .flat_map(|batch| values(batch, "_error"))
        .collect();
    let [None, Some(error), None] = &*errors else {
        panic!("{errors:?}");
    };
    assert!(error.contains("a row of 3000"), "{error}");
    assert_eq!(values(&batches[1], "y"), [None]);

    let server = with_query();
    feed(&server, 0..1_010);
    let ends = Columns::of(&server, "/continuous/q/results?after=1&slow=disconnect", "");
    let [batch] = &*ends.batches() else {
        panic!("there is one batch");
    };
    let error = values(batch, "_error")[0].clone().expect("it says so");
    assert!(error.contains("slow=disconnect"), "{error}");
    assert_eq!(
        (numbers(batch, "_missed"), numbers(batch, "_sequence")),
        (vec![9], vec![11])
    );
}

#[test]
fn a_large_result_goes_on_in_the_next_batch() {
    let server = with_query();
    let value = "v".repeat(1_000);
    let line = |n: u64| format!("{n}\t<http://e/x{n}> <http://e/p> \"{value}\" .\n");
    let lines: String = (0..900).map(line).collect();
    assert_status(&post(&server, "/streams/s", LINES, &lines), 200, "accepted");
    let columns = Columns::of(&server, "/continuous/q/results", "");
    assert_eq!(
        post(&server, "/streams/s/heartbeat?time=1000", "", "").status,
        204
    );
    unregister(&server);
    let batches = columns.batches();
    assert!(batches.len() > 4, "{}", batches.len());
    let rows: usize = batches.iter().map(RecordBatch::num_rows).sum();
    let ones: usize = batches
        .iter()
        .flat_map(|batch| numbers(batch, "_sequence"))
        .map(|n| n as usize)
        .sum();
    assert_eq!((rows, ones), (900, 900));
}

#[test]
fn what_arrow_does_not_hold_is_refused_by_name() {
    let server = with_stream();
    for (text, part) in [
        (
            "ASK FROM STREAM s [RANGE 1s] WHERE { ?x ?p ?y }",
            "booleans",
        ),
        (
            "SELECT ?_instant FROM STREAM s [RANGE 1s] WHERE { ?x ?p ?_instant }",
            "?_instant",
        ),
    ] {
        assert_status(&put(&server, "/continuous/q", QUERY, text), 201, "");
        assert_status(&server.get("/continuous/q/results", ACCEPT), 406, part);
        unregister(&server);
    }
    assert_status(&server.get("/continuous/q/results", ACCEPT), 404, "q");
    assert_status(&put(&server, "/continuous/q", QUERY, LATEST), 201, "");
    let wrong = server.get("/continuous/q/results?after=1", ACCEPT);
    assert_status(&wrong, 400, "none has the number 1");
    let turtle = post(
        &server,
        "/streams/s?time=1",
        TURTLE,
        "<http://e/a> <http://e/p> 1 .",
    );
    assert_status(&turtle, 200, "accepted");
}
