//! Terms that come again are written as they were the first time.

use std::collections::HashSet;
use std::fmt::Write as _;

use jindou_engine::ingest::{Progress, Source};
use jindou_engine::results::{GraphFormat, GraphWriter, SolutionsFormat, SolutionsWriter};
use jindou_engine::{Database, LoadOptions, QueryResults};

const ROWS: usize = 3_000;

/// The values of the rows: some come often, some once, some are long or need escapes.
fn value(row: usize) -> String {
    match row % 7 {
        0 => format!("once {row}"),
        1 => "tab\\tand \\\"quote\\\", comma".to_owned(),
        2 => "long ".repeat(2_000 + row % 3),
        _ => format!("often {}", row % 900),
    }
}

/// The objects of the rows: all kinds of terms, as in N-Triples.
fn object(row: usize) -> String {
    let value = value(row);
    match row % 11 {
        0 => format!("\"{value}\"@en"),
        1 => format!("\"{value}\"^^<http://e.org/type>"),
        2 => format!("<http://e.org/often/{}>", row % 70),
        3 => format!("_:often{}", row % 50),
        4 => format!("\" {} \"", row % 300),
        5 => format!("\"Ａ&<{}>\"", row % 400),
        6 => format!("<http://e.org/o?a={}&b=é,>", row % 500),
        7 => format!(
            "\"{}\"^^<http://www.w3.org/2001/XMLSchema#integer>",
            row % 40
        ),
        _ => format!("\"{value}\""),
    }
}

fn database() -> Database {
    let mut text = String::new();
    for row in 0..ROWS {
        let object = object(row);
        writeln!(text, "<http://e.org/{row}> <http://e.org/p> {object} .").unwrap();
    }
    let database = Database::new();
    let source = Source::bytes("values.nt", text);
    database
        .load(vec![source], &LoadOptions::default(), &Progress::default())
        .unwrap();
    database
}

#[test]
fn repeated_terms_are_written_as_single_ones() {
    let database = database();
    for format in [
        SolutionsFormat::Tsv,
        SolutionsFormat::Csv,
        SolutionsFormat::Json,
        SolutionsFormat::Xml,
    ] {
        let query = "SELECT ?v ?s { ?s <http://e.org/p> ?v }";
        let QueryResults::Solutions(mut solutions) = database.query(query).unwrap() else {
            panic!("SELECT has solutions");
        };
        let mut remembering = SolutionsWriter::new(format, solutions.variables());
        let mut plain = SolutionsWriter::new(format, solutions.variables());
        let columns = solutions.variables().len();
        let (mut one, mut other) = (Vec::new(), Vec::new());
        while let Some(batch) = solutions.next_batch().unwrap() {
            let mut decoder = solutions.decoder();
            for row in 0..batch.rows() {
                remembering.begin_row(&mut one);
                plain.begin_row(&mut other);
                for column in 0..columns {
                    let id = batch.column(column)[row];
                    remembering.term(&mut one, id, &mut decoder).unwrap();
                    plain.cell(&mut other, decoder.text(id)).unwrap();
                }
                remembering.end_row(&mut one);
                plain.end_row(&mut other);
            }
        }
        assert_eq!(remembering.rows(), ROWS as u64);
        assert!(one == other, "{format:?}");
    }
}

#[test]
fn triples_of_ids_are_written_as_triples_of_terms() {
    let database = database();
    let query = "CONSTRUCT WHERE { ?s ?p ?o }";
    for format in [GraphFormat::NTriples, GraphFormat::Turtle] {
        let mut ids = GraphWriter::new(format);
        let mut terms = GraphWriter::new(format);
        let (mut one, mut other) = (Vec::new(), Vec::new());
        let QueryResults::Graph(mut graph) = database.query(query).unwrap() else {
            panic!("CONSTRUCT has triples");
        };
        while let Some(triples) = graph.next_batch().unwrap() {
            let mut decoder = graph.decoder();
            for triple in triples {
                ids.ids(&mut one, triple, &mut decoder).unwrap();
            }
        }
        let QueryResults::Graph(graph) = database.query(query).unwrap() else {
            panic!("CONSTRUCT has triples");
        };
        for triple in graph {
            terms.triple(&mut other, triple.unwrap().as_ref()).unwrap();
        }
        assert_eq!(ids.triples(), ROWS as u64);
        ids.finish(&mut one).unwrap();
        terms.finish(&mut other).unwrap();
        assert!(one == other, "{format:?}");
    }
}

/// Templates and patterns, and what has as many solutions as there are different triples.
const GRAPHS: [(&str, &str); 6] = [
    ("{ ?s ?p ?o } { ?s ?p ?o }", "?s ?p ?o { ?s ?p ?o }"),
    ("{ ?s ?p ?s } { ?s ?p ?o . ?s ?q ?r }", "?s ?p { ?s ?p ?o }"),
    (
        "{ ?o <http://e.org/q> ?o } { ?s ?p ?o }",
        "?o { ?s ?p ?o FILTER(!isLiteral(?o)) }",
    ),
    (
        "{ ?s <http://e.org/p> ?o . ?s <http://e.org/q> ?o } { ?s <http://e.org/p> ?o }",
        "?s ?o ?q { ?s ?p ?o VALUES ?q { 1 2 } }",
    ),
    (
        "{ ?s <http://e.org/p> ?o } { { ?s ?p ?o } UNION { ?s ?q ?o } }",
        "?s ?o { ?s ?p ?o }",
    ),
    (
        "{ _:b ?p ?o . ?s ?p ?o . ?o ?p ?s } { ?s ?p ?o }",
        "?s ?o ?q { { ?s ?p ?o VALUES ?q { 1 2 } } UNION { ?s ?p ?o FILTER(!isLiteral(?o)) } }",
    ),
];

#[test]
fn no_triple_comes_twice_and_none_is_lost() {
    let database = database();
    for (construct, select) in GRAPHS {
        let Ok(QueryResults::Graph(graph)) = database.query(&format!("CONSTRUCT {construct}"))
        else {
            panic!("CONSTRUCT has triples");
        };
        let triples: Vec<_> = graph.map(Result::unwrap).collect();
        let different: HashSet<_> = triples.iter().collect();
        assert_eq!(different.len(), triples.len(), "{construct}");
        let Ok(QueryResults::Solutions(rows)) =
            database.query(&format!("SELECT DISTINCT {select}"))
        else {
            panic!("SELECT has solutions");
        };
        assert_eq!(triples.len(), rows.count(), "{construct}");
    }
}
