//! Arrow and Parquet: what do their readers find in an answer?

use std::io::{Cursor, Read};
use std::time::Duration;

use arrow_array::cast::AsArray;
use arrow_array::{Array, RecordBatch, StringArray};
use arrow_ipc::reader::StreamReader;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use crate::client::{Answer, Running, TRIPLES, encode};

const ARROW: &str = "application/vnd.apache.arrow.stream";
const PARQUET: &str = "application/vnd.apache.parquet";
const EDGES: &str = "SELECT ?s ?o { ?s <http://e/p> ?o }";
const PRODUCT: &str = "SELECT * { ?s <http://e/p> ?o . ?t <http://e/p> ?u }";

fn stream(bytes: Vec<u8>) -> Vec<RecordBatch> {
    StreamReader::try_new(Cursor::new(bytes), None)
        .expect("a schema")
        .collect::<Result<_, _>>()
        .expect("whole batches")
}

fn file(bytes: Vec<u8>) -> Vec<RecordBatch> {
    ParquetRecordBatchReaderBuilder::try_new(bytes::Bytes::from(bytes))
        .expect("a footer")
        .build()
        .expect("a reader")
        .collect::<Result<_, _>>()
        .expect("whole pages")
}

fn rows(batches: &[RecordBatch]) -> usize {
    batches.iter().map(RecordBatch::num_rows).sum()
}

/// The values of a variable, sorted.
fn values(batches: &[RecordBatch], name: &str) -> Vec<String> {
    let mut values = Vec::new();
    for batch in batches {
        let column = batch
            .column_by_name(name)
            .expect("the variable")
            .as_struct();
        let column: &StringArray = column.column_by_name("value").expect("a field").as_string();
        values.extend(column.iter().map(|value| value.expect("bound").to_owned()));
    }
    values.sort();
    values
}

fn get(server: &Running, query: &str, headers: &str, media_type: &str) -> Answer {
    let answer = server.get(&format!("/query?query={}", encode(query)), headers);
    assert_eq!(answer.status, 200, "{:?}", answer.body);
    assert_eq!(answer.header("content-type"), Some(media_type));
    assert!(answer.whole);
    answer
}

#[test]
fn solutions_come_as_columns_to_those_who_accept_them() {
    for budget in [Duration::from_secs(5), Duration::ZERO] {
        let server = Running::with(|config| config.inline_budget = budget);
        let json = server.query(EDGES, "").json();
        let bindings = json["results"]["bindings"].as_array().unwrap();
        for variable in ["s", "o"] {
            let mut expected: Vec<String> = bindings
                .iter()
                .map(|row| row[variable]["value"].as_str().unwrap().to_owned())
                .collect();
            expected.sort();
            assert_eq!(expected.len(), TRIPLES);
            let accept = format!("Accept: image/png, text/csv;q=0.5, {ARROW};q=0.9\r\n");
            let batches = stream(get(&server, EDGES, &accept, ARROW).body);
            assert_eq!(values(&batches, variable), expected);
            let accept = format!("Accept: {PARQUET}\r\n");
            let batches = file(get(&server, EDGES, &accept, PARQUET).body);
            assert_eq!(values(&batches, variable), expected);
        }
        assert_eq!(stream(server.query(EDGES, "&format=arrow").body).len(), 1);
        assert_eq!(
            rows(&file(server.query(EDGES, "&format=parquet").body)),
            TRIPLES
        );
    }
}

#[test]
fn large_results_come_as_columns_compressed_or_not() {
    let server = Running::with(|config| config.inline_budget = Duration::ZERO);
    let accept = format!("Accept: {ARROW}\r\n");
    let plain = get(&server, PRODUCT, &accept, ARROW);
    assert_eq!(plain.header("transfer-encoding"), Some("chunked"));
    let batches = stream(plain.body);
    assert!(batches.len() > 1);
    assert_eq!(rows(&batches), TRIPLES * TRIPLES);
    let gzip = format!("{accept}Accept-Encoding: gzip\r\n");
    let compressed = get(&server, PRODUCT, &gzip, ARROW);
    assert_eq!(compressed.header("content-encoding"), Some("gzip"));
    let mut bytes = Vec::new();
    flate2::read::GzDecoder::new(&compressed.body[..])
        .read_to_end(&mut bytes)
        .unwrap();
    assert_eq!(rows(&stream(bytes)), TRIPLES * TRIPLES);
    let parquet = get(&server, PRODUCT, &format!("Accept: {PARQUET}\r\n"), PARQUET);
    assert_eq!(rows(&file(parquet.body)), TRIPLES * TRIPLES);
}

#[test]
fn rows_of_an_endless_arrow_stream_can_be_read_while_it_runs() {
    let server = Running::new();
    let mut connection = server.connect();
    let endless = "SELECT * { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i . ?j ?k ?l }";
    let target = format!("/query?query={}", encode(endless));
    connection.send("GET", &target, &format!("Accept: {ARROW}\r\n"), "");
    assert_eq!(connection.head().status, 200);
    let mut bytes = connection.chunk().expect("a chunk");
    // The first chunk may end inside a batch.
    loop {
        let mut reader = StreamReader::try_new(Cursor::new(&bytes), None).expect("a schema");
        if let Some(Ok(batch)) = reader.next() {
            assert!(batch.num_rows() > 0);
            break;
        }
        bytes.extend(connection.chunk().expect("another chunk"));
    }
    connection.hang_up();
    server.wait_for_metric("jindou_queries_in_flight 0");
}

#[test]
fn a_graph_comes_as_columns_too() {
    let server = Running::new();
    let construct = "CONSTRUCT WHERE { ?s <http://e/age> ?o }";
    let batches = stream(server.query(construct, "&format=arrow").body);
    assert_eq!(rows(&batches), 1);
    let names: Vec<String> = batches[0]
        .schema()
        .fields()
        .iter()
        .map(|field| field.name().clone())
        .collect();
    assert_eq!(names, ["subject", "predicate", "object", "graph"]);
    assert_eq!(values(&batches, "object"), ["7"]);
    assert!(batches[0].column(3).is_null(0));
    let empty = stream(
        server
            .query("CONSTRUCT WHERE { ?s <http://e/none> ?o }", "&format=arrow")
            .body,
    );
    assert_eq!(rows(&empty), 0);
}
