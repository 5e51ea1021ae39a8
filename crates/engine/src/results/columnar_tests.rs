//! Do the readers of Arrow and Parquet give back what was written?

use std::io::Cursor;

use arrow_array::cast::AsArray;
use arrow_array::types::{ArrowDictionaryKeyType, Int8Type, Int32Type};
use arrow_array::{Array, RecordBatch, StringArray, StructArray};
use arrow_ipc::reader::StreamReader;
use oxrdf::vocab::{rdf, xsd};
use oxrdf::{BlankNode, Literal, NamedNode, NamedOrBlankNode, Term, Triple};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use proptest::prelude::*;

use super::tests::{Row, solutions, triple, write, write_graph};
use super::*;

fn read(format: &str, bytes: Vec<u8>) -> Vec<RecordBatch> {
    match format {
        "arrow" => StreamReader::try_new(Cursor::new(bytes), None)
            .expect("a schema")
            .collect::<Result<_, _>>()
            .expect("whole batches"),
        "parquet" => ParquetRecordBatchReaderBuilder::try_new(bytes::Bytes::from(bytes))
            .expect("a footer")
            .build()
            .expect("a reader")
            .collect::<Result<_, _>>()
            .expect("whole pages"),
        other => panic!("no reader for {other}"),
    }
}

fn text<K: ArrowDictionaryKeyType>(column: &dyn Array, row: usize) -> Option<&str> {
    let column = column.as_dictionary::<K>();
    let values: &StringArray = column.values().as_string();
    column.key(row).map(|key| values.value(key))
}

fn node(text: &str) -> NamedOrBlankNode {
    match text.strip_prefix("_:") {
        Some(label) => BlankNode::new_unchecked(label).into(),
        None => NamedNode::new_unchecked(text).into(),
    }
}

fn term(column: &StructArray, row: usize) -> Option<Term> {
    let kind = text::<Int8Type>(column.column(0), row);
    let datatype = text::<Int32Type>(column.column(2), row);
    let language = text::<Int32Type>(column.column(3), row);
    let values: &StringArray = column.column(1).as_string();
    if column.is_null(row) {
        assert_eq!((kind, datatype, language), (None, None, None));
        assert!(values.is_null(row));
        return None;
    }
    let value = values.value(row);
    Some(match kind.expect("a term has a kind") {
        "iri" | "blank" => {
            assert_eq!((datatype, language), (None, None));
            let node = node(value);
            assert_eq!(kind == Some("blank"), node.is_blank_node());
            node.into()
        }
        "literal" => match (language, datatype.expect("a literal has a datatype")) {
            (Some(language), datatype) => {
                assert_eq!(datatype, rdf::LANG_STRING.as_str());
                Literal::new_language_tagged_literal_unchecked(value, language).into()
            }
            (None, datatype) if datatype == xsd::STRING.as_str() => {
                Literal::new_simple_literal(value).into()
            }
            (None, datatype) => {
                Literal::new_typed_literal(value, NamedNode::new_unchecked(datatype)).into()
            }
        },
        other => panic!("{other} is no kind"),
    })
}

fn rows(batches: &[RecordBatch]) -> Vec<Row> {
    let mut rows = Vec::new();
    for batch in batches {
        for row in 0..batch.num_rows() {
            let cells = batch.columns().iter();
            rows.push(cells.map(|column| term(column.as_struct(), row)).collect());
        }
    }
    rows
}

fn triples(batches: &[RecordBatch]) -> Vec<Triple> {
    let mut triples = Vec::new();
    for batch in batches {
        let [subjects, predicates, objects, graphs] = batch.columns() else {
            panic!("quads have four columns");
        };
        for row in 0..batch.num_rows() {
            assert_eq!(text::<Int32Type>(graphs, row), None);
            let predicate = text::<Int32Type>(predicates, row).expect("a predicate");
            triples.push(Triple::new(
                node(subjects.as_string::<i32>().value(row)),
                NamedNode::new_unchecked(predicate),
                term(objects.as_struct(), row).expect("an object"),
            ));
        }
    }
    triples
}

proptest! {
    #[test]
    fn solutions_read_back_from_columns((names, expected) in solutions()) {
        let arrow = write(SolutionsFormat::Arrow, &names, &expected).unwrap();
        let batches = read("arrow", arrow);
        prop_assert_eq!(&rows(&batches), &expected);
        for batch in &batches {
            let schema = batch.schema();
            let fields: Vec<&String> = schema.fields().iter().map(|field| field.name()).collect();
            prop_assert_eq!(fields, names.iter().collect::<Vec<_>>());
        }
        match write(SolutionsFormat::Parquet, &names, &expected) {
            Ok(parquet) => prop_assert_eq!(&rows(&read("parquet", parquet)), &expected),
            Err(ResultsError::NoColumns) => prop_assert!(names.is_empty()),
            Err(error) => panic!("{error}"),
        }
    }

    #[test]
    fn graphs_read_back_from_columns(expected in prop::collection::vec(triple(), 0..8)) {
        for format in [GraphFormat::Arrow, GraphFormat::Parquet] {
            let bytes = write_graph(format, &expected).unwrap();
            prop_assert_eq!(&triples(&read(format.name(), bytes)), &expected);
        }
    }
}

/// Enough rows for many batches and for dictionaries that begin anew.
fn many() -> Vec<Row> {
    (0..50_000_u32)
        .map(|n| {
            let datatype = match n {
                20_000..25_000 => format!("http://e/t{n}"),
                _ => format!("http://e/t{}", n % 3),
            };
            let typed =
                Literal::new_typed_literal(n.to_string(), NamedNode::new_unchecked(datatype));
            let tagged = Literal::new_language_tagged_literal_unchecked("x", format!("a{}", n % 7));
            vec![
                Some(typed.into()),
                (n % 5 > 0).then(|| tagged.into()),
                (n % 1000 == 0).then(|| BlankNode::new_unchecked(format!("b{n}")).into()),
            ]
        })
        .collect()
}

#[test]
fn many_batches_with_growing_dictionaries_read_back() {
    let names = ["a", "b", "c"].map(str::to_owned);
    let expected = many();
    for format in [SolutionsFormat::Arrow, SolutionsFormat::Parquet] {
        let batches = read(format.name(), write(format, &names, &expected).unwrap());
        assert!(batches.len() > 1);
        assert!(rows(&batches) == expected, "{}", format.name());
    }
}

#[test]
fn the_first_rows_of_a_stream_leave_at_the_first_pause() {
    let mut out = Vec::new();
    let mut writer = SolutionsWriter::new(SolutionsFormat::Arrow, &["x"]);
    writer.start(&mut out).unwrap();
    let head = out.len();
    let cell = Some(TermText::Iri("http://e/x"));
    writer.row(&mut out, [cell]).unwrap();
    assert_eq!(out.len(), head, "a row alone is no batch");
    writer.pause(&mut out).unwrap();
    assert!(out.len() > head);
    let mut reader = StreamReader::try_new(Cursor::new(&out), None).unwrap();
    assert_eq!(reader.next().unwrap().unwrap().num_rows(), 1);
    drop(reader);
    for _ in 0..1024 {
        writer.row(&mut out, [cell]).unwrap();
    }
    writer.pause(&mut out).unwrap();
    writer.finish(&mut out).unwrap();
    let lengths: Vec<usize> = read("arrow", out)
        .iter()
        .map(RecordBatch::num_rows)
        .collect();
    assert_eq!(lengths.iter().sum::<usize>(), 1025);
    assert_eq!(lengths[0], 1);
}

#[test]
fn rows_without_columns_are_counted_in_arrow_and_refused_in_parquet() {
    let out = write(SolutionsFormat::Arrow, &[], &[vec![], vec![]]).unwrap();
    let count: usize = read("arrow", out).iter().map(RecordBatch::num_rows).sum();
    assert_eq!(count, 2);
    assert!(matches!(
        write(SolutionsFormat::Parquet, &[], &[vec![]]),
        Err(ResultsError::NoColumns)
    ));
}

#[test]
fn named_graphs_are_kept_or_refused() {
    let quad = QuadText {
        subject: TermText::Blank("s"),
        predicate: "http://e/p",
        object: TermText::Blank("s"),
        graph: Some(TermText::Iri("http://e/g")),
    };
    for format in GraphFormat::ALL {
        let mut out = Vec::new();
        let mut writer = GraphWriter::new(format);
        match writer.quad(&mut out, quad) {
            Ok(()) => {
                assert!(format.has_named_graphs(), "{}", format.name());
                writer.finish(&mut out).unwrap();
            }
            Err(ResultsError::NoNamedGraphs { graph, .. }) => {
                assert!(!format.has_named_graphs(), "{}", format.name());
                assert_eq!(graph, "<http://e/g>");
            }
            Err(error) => panic!("{error}"),
        }
        if matches!(format, GraphFormat::Arrow | GraphFormat::Parquet) {
            let batches = read(format.name(), out);
            assert_eq!(
                text::<Int32Type>(batches[0].column(3), 0),
                Some("http://e/g")
            );
            assert_eq!(batches[0].column(0).as_string::<i32>().value(0), "_:s");
        }
    }
}
