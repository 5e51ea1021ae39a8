//! Terms that come again are written as they were the first time.

use std::fmt::Write as _;

use jindou_engine::ingest::{Progress, Source};
use jindou_engine::results::{SolutionsFormat, SolutionsWriter};
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

#[test]
fn repeated_terms_are_written_as_single_ones() {
    let mut text = String::new();
    for row in 0..ROWS {
        writeln!(
            text,
            "<http://e.org/{row}> <http://e.org/p> \"{}\" .",
            value(row)
        )
        .unwrap();
    }
    let database = Database::new();
    let source = Source::bytes("values.nt", text);
    database
        .load(vec![source], &LoadOptions::default(), &Progress::default())
        .unwrap();
    for format in [
        SolutionsFormat::Tsv,
        SolutionsFormat::Csv,
        SolutionsFormat::Json,
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
                remembering.end_row(&mut one).unwrap();
                plain.end_row(&mut other).unwrap();
            }
        }
        assert_eq!(remembering.rows(), ROWS as u64);
        assert!(one == other, "{format:?}");
    }
}
