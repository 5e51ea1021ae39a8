//! Answers that several threads write are those of one thread, in the same order.

use std::fmt::Write as _;

use jindou_engine::ingest::{Progress, Source};
use jindou_engine::results::{GraphFormat, GraphWriter, SolutionsFormat, SolutionsWriter};
use jindou_engine::{
    CancellationToken, Config, Database, EngineError, LoadOptions, QueryOptions, QueryResults,
};

const SUBJECTS: u64 = 12_000;

fn database(threads: usize) -> Database {
    let mut text = String::new();
    for subject in 0..SUBJECTS {
        let object = match subject % 5 {
            0 => format!("\"long {}\"", "text ".repeat((subject % 977) as usize)),
            1 => format!("\"{subject}\"^^<http://www.w3.org/2001/XMLSchema#integer>"),
            2 => format!("\"a, \\\"b\\\" \\n {subject}\"@en"),
            3 => format!("_:b{}", subject % 1_000),
            _ => format!("<http://e.org/o{}>", subject % 100),
        };
        writeln!(
            text,
            "<http://e.org/s{subject}> <http://e.org/p> {object} ."
        )
        .unwrap();
        if subject % 3 == 0 {
            writeln!(
                text,
                "<http://e.org/s{subject}> <http://e.org/q> \"{subject}\" ."
            )
            .unwrap();
        }
    }
    let mut config = Config::default();
    config.threads = threads;
    let database = Database::with_config(config);
    let source = Source::bytes("rows.nt", text);
    database
        .load(vec![source], &LoadOptions::default(), &Progress::default())
        .unwrap();
    database
}

fn options(threads: usize) -> QueryOptions {
    QueryOptions {
        threads: Some(threads),
        ..QueryOptions::default()
    }
}

fn written(database: &Database, query: &str, format: SolutionsFormat, threads: usize) -> Vec<u8> {
    let results = database.query_with(query, options(threads)).unwrap();
    let QueryResults::Solutions(mut solutions) = results else {
        panic!("SELECT has solutions");
    };
    let mut writer = SolutionsWriter::new(format, solutions.variables());
    let (mut all, mut out) = (Vec::new(), Vec::new());
    writer.start(&mut all).unwrap();
    while writer.advance(&mut out, &mut solutions).unwrap().is_some() {
        all.append(&mut out);
    }
    writer.finish(&mut all).unwrap();
    all
}

/// What one thread writes without remembering anything.
fn by_cells(database: &Database, query: &str, format: SolutionsFormat) -> Vec<u8> {
    let results = database.query_with(query, options(1)).unwrap();
    let QueryResults::Solutions(mut solutions) = results else {
        panic!("SELECT has solutions");
    };
    let mut writer = SolutionsWriter::new(format, solutions.variables());
    let mut out = Vec::new();
    writer.start(&mut out).unwrap();
    while let Some(batch) = solutions.next_batch().unwrap() {
        let mut decoder = solutions.decoder();
        for row in 0..batch.rows() {
            writer.begin_row(&mut out);
            for column in batch.columns() {
                writer.cell(&mut out, decoder.text(column[row])).unwrap();
            }
            writer.end_row(&mut out).unwrap();
        }
    }
    writer.finish(&mut out).unwrap();
    out
}

#[test]
fn rows_of_several_threads_are_those_of_one_in_order() {
    let database = database(4);
    for query in [
        // Found by one thread, then written by all.
        "SELECT * { ?s ?p ?o }",
        "SELECT ?s ?o ?q { ?s <http://e.org/p> ?o OPTIONAL { ?s <http://e.org/q> ?q } } ORDER BY ?s",
        "SELECT ?o ?s { ?s <http://e.org/p> ?o } ORDER BY DESC(?o) ?s OFFSET 7 LIMIT 8000",
        // Rows without cells, no rows, and one.
        "SELECT ?none { ?s <http://e.org/p> ?o }",
        "SELECT ?s { ?s <http://e.org/none> ?o }",
        "SELECT ?s { ?s <http://e.org/q> \"6\" }",
    ] {
        for format in [
            SolutionsFormat::Tsv,
            SolutionsFormat::Csv,
            SolutionsFormat::Json,
            SolutionsFormat::Xml,
            SolutionsFormat::Table,
        ] {
            let expected = by_cells(&database, query, format);
            for threads in [1, 2, 4] {
                let found = written(&database, query, format, threads);
                assert!(found == expected, "{query} in {format:?} by {threads}");
            }
        }
    }
}

#[test]
fn rows_that_several_threads_find_are_all_written() {
    let database = database(2);
    let query = "SELECT ?a ?b ?o { ?a <http://e.org/p> ?o . ?b <http://e.org/p> ?o \
                 FILTER(isIRI(?o)) }";
    let sorted = |text: Vec<u8>| {
        let text = String::from_utf8(text).unwrap();
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort_unstable();
        lines
    };
    let alone = sorted(written(&database, query, SolutionsFormat::Tsv, 1));
    assert!(alone.len() > 50_000);
    for _ in 0..3 {
        let both = sorted(written(&database, query, SolutionsFormat::Tsv, 2));
        assert!(both == alone);
    }
}

#[test]
fn graphs_of_several_threads_are_those_of_one_in_order() {
    let database = database(3);
    let query = "CONSTRUCT { ?s ?p ?o . ?s a ?p } { ?s ?p ?o }";
    let write = |threads| {
        let results = database.query_with(query, options(threads)).unwrap();
        let QueryResults::Graph(mut graph) = results else {
            panic!("CONSTRUCT has triples");
        };
        let mut writer = GraphWriter::new(GraphFormat::NTriples);
        let (mut all, mut out) = (Vec::new(), Vec::new());
        while writer.advance(&mut out, &mut graph).unwrap().is_some() {
            all.append(&mut out);
        }
        assert!(writer.triples() > SUBJECTS);
        writer.finish(&mut all).unwrap();
        all
    };
    assert!(write(1) == write(3));
}

#[test]
fn answers_end_early_where_they_are_dropped_or_cancelled() {
    let database = database(2);
    for _ in 0..20 {
        let token = CancellationToken::new();
        let options = QueryOptions {
            cancellation: Some(token.clone()),
            ..options(2)
        };
        let results = database
            .query_with("SELECT * { ?s ?p ?o . ?t ?p ?o }", options)
            .unwrap();
        let QueryResults::Solutions(mut solutions) = results else {
            panic!("SELECT has solutions");
        };
        let mut writer = SolutionsWriter::new(SolutionsFormat::Tsv, solutions.variables());
        let mut out = Vec::new();
        for _ in 0..50 {
            out.clear();
            assert!(writer.advance(&mut out, &mut solutions).unwrap().is_some());
        }
        token.cancel();
        let ended = loop {
            out.clear();
            match writer.advance(&mut out, &mut solutions) {
                Ok(step) => assert!(step.is_some(), "it does not end by itself so soon"),
                Err(error) => break error,
            }
        };
        assert!(matches!(
            ended,
            jindou_engine::results::WriteError::Query(EngineError::Cancelled)
        ));
    }
    // Its worker is free again.
    let query = "SELECT * { ?s ?p ?o }";
    let all = written(&database, query, SolutionsFormat::Csv, 2);
    assert!(all == by_cells(&database, query, SolutionsFormat::Csv));
}
