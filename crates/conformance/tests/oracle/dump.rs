//! Does a dataset that is dumped and loaded again stay the same?
//!
//! `JINDOU_SEED` sets the first seed, `JINDOU_CASES` the number of random data sets. A failure
//! prints its seed and the format.

use jindou_conformance::cases::setting;
use jindou_conformance::isomorphism::isomorphic;
use jindou_conformance::random::Random;
use jindou_conformance::random_data::{Profile, dataset};
use jindou_engine::ingest::{Progress, Source};
use jindou_engine::results::{GraphFormat, GraphWriter, QuadText, TermText, WriteError};
use jindou_engine::{Database, EngineError, GraphSelection, LoadOptions};
use oxrdf::vocab::{rdf, xsd};
use oxrdf::{BlankNode, GraphName, Literal, NamedNode, NamedOrBlankNode, Quad, Term};

const DEFAULT_SEED: u64 = 1;
const DEFAULT_CASES: u64 = 60;

/// Formats that hold a dataset and can be loaded.
const DATASETS: [GraphFormat; 3] = [GraphFormat::NQuads, GraphFormat::TriG, GraphFormat::JsonLd];
/// Formats that hold one graph and can be loaded, and the names of their files.
const GRAPHS: [(GraphFormat, &str); 4] = [
    (GraphFormat::NTriples, "g.nt"),
    (GraphFormat::Turtle, "g.ttl"),
    (GraphFormat::N3, "g.n3"),
    (GraphFormat::RdfXml, "g.rdf"),
];

type Row = Vec<Option<Term>>;

fn load(name: &str, text: Vec<u8>) -> Database {
    let database = Database::new();
    let shown = String::from_utf8_lossy(&text).into_owned();
    let source = Source::bytes(name, text);
    database
        .load(vec![source], &LoadOptions::default(), &Progress::default())
        .unwrap_or_else(|error| panic!("{name}: {error}\n{shown}"));
    database
}

fn loaded(quads: &[Quad]) -> Database {
    let text: String = quads.iter().map(|quad| format!("{quad} .\n")).collect();
    load("data.nq", text.into_bytes())
}

fn dump(
    database: &Database,
    selection: &GraphSelection,
    format: GraphFormat,
) -> Result<Vec<u8>, WriteError> {
    let mut out = Vec::new();
    let mut writer = GraphWriter::new(format);
    let visited = database.for_each_quad(selection, |quad| {
        writer.quad(&mut out, quad)?;
        Ok::<_, WriteError>(())
    })?;
    assert_eq!(visited, writer.triples());
    writer.finish(&mut out)?;
    Ok(out)
}

fn term(text: TermText<'_>) -> Term {
    match text {
        TermText::Iri(iri) => NamedNode::new(iri).expect("a valid IRI").into(),
        TermText::Blank(label) => BlankNode::new(label).expect("a valid label").into(),
        TermText::Literal {
            value,
            language: Some(language),
            ..
        } => Literal::new_language_tagged_literal_unchecked(value, language).into(),
        TermText::Literal {
            value,
            language: None,
            datatype,
        } => {
            let datatype = datatype.map_or(xsd::STRING.into_owned(), NamedNode::new_unchecked);
            Literal::new_typed_literal(value, datatype).into()
        }
    }
}

fn rows(database: &Database) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut add = |quad: QuadText<'_>| {
        rows.push(vec![
            Some(term(quad.subject)),
            Some(term(TermText::Iri(quad.predicate))),
            Some(term(quad.object)),
            quad.graph.map(term),
        ]);
        Ok::<(), EngineError>(())
    };
    let visited = database.for_each_quad(&GraphSelection::All, &mut add);
    let visited = visited.expect("nothing fails");
    assert_eq!(visited, rows.len() as u64);
    rows
}

fn rows_of(quads: &[Quad]) -> Vec<Row> {
    let row = |quad: &Quad| {
        vec![
            Some(quad.subject.clone().into()),
            Some(quad.predicate.clone().into()),
            Some(quad.object.clone()),
            match quad.graph_name.clone() {
                GraphName::DefaultGraph => None,
                GraphName::NamedNode(node) => Some(node.into()),
                GraphName::BlankNode(node) => Some(node.into()),
            },
        ]
    };
    quads.iter().map(row).collect()
}

#[test]
fn random_datasets_survive_a_dump_in_every_dataset_format() {
    let first = setting("JINDOU_SEED", DEFAULT_SEED);
    for seed in first..first + setting("JINDOU_CASES", DEFAULT_CASES) {
        let mut random = Random::new(seed);
        let profile = Profile::random(&mut random);
        let quads = dataset(&mut random, profile);
        let database = loaded(&quads);
        assert!(
            isomorphic(&rows(&database), &rows_of(&quads), false),
            "seed {seed}: what is read is not what was loaded"
        );
        for format in DATASETS {
            let text = dump(&database, &GraphSelection::All, format).expect("the format holds it");
            let again = load(&format!("dump.{}", format.name()), text);
            assert!(
                isomorphic(&rows(&again), &rows_of(&quads), false),
                "seed {seed}, {}",
                format.name()
            );
        }
    }
}

/// What random data has not: blank nodes that name graphs, lists, odd characters, predicates that
/// are vertices, every kind of literal.
fn odd() -> Vec<Quad> {
    let iri = |name: &str| NamedNode::new_unchecked(format!("http://e/{name}"));
    let blank = |name: &str| BlankNode::new_unchecked(name);
    let typed = |value: &str, name: &str| -> Term {
        let datatype = format!("http://www.w3.org/2001/XMLSchema#{name}");
        Literal::new_typed_literal(value, NamedNode::new_unchecked(datatype)).into()
    };
    let mut objects: Vec<Term> = vec![
        iri("ü?q=1&r#f").into(),
        blank("x").into(),
        Literal::new_simple_literal("").into(),
        Literal::new_simple_literal(" a\tb\nc\rd\"e\\f<&>\u{10ffff}\u{85}\u{fffd} ").into(),
        Literal::new_language_tagged_literal_unchecked("chat", "fr").into(),
        Literal::new_language_tagged_literal_unchecked("chat", "fr-be").into(),
        Literal::new_typed_literal("<b>é</b>", rdf::XML_LITERAL).into(),
        Literal::new_typed_literal("anything", iri("datatype")).into(),
    ];
    for (value, name) in [
        ("1", "integer"),
        ("01", "integer"),
        ("-0", "integer"),
        ("123456789012345678901234567890", "integer"),
        ("one", "integer"),
        ("1.50", "decimal"),
        ("1e0", "double"),
        ("1.0E0", "double"),
        ("NaN", "double"),
        ("-INF", "float"),
        ("true", "boolean"),
        ("1", "boolean"),
        ("2020-02-29", "date"),
        ("2020-02-29T24:00:00.10Z", "dateTime"),
        ("2020-02-29T00:00:00+14:00", "dateTime"),
        ("P1Y", "duration"),
        ("7", "int"),
    ] {
        objects.push(typed(value, name));
    }
    let mut quads: Vec<Quad> = Vec::new();
    let graphs: [GraphName; 3] = [
        GraphName::DefaultGraph,
        iri("g").into(),
        blank("graph").into(),
    ];
    for graph in graphs {
        let mut add = |s: NamedOrBlankNode, p: NamedNode, o: Term| {
            quads.push(Quad::new(s, p, o, graph.clone()));
        };
        for object in &objects {
            add(iri("s").into(), iri("p"), object.clone());
            add(blank("x").into(), iri("q"), object.clone());
        }
        let (first, rest) = (rdf::FIRST.into_owned(), rdf::REST.into_owned());
        add(iri("s").into(), iri("list"), blank("l1").into());
        add(blank("l1").into(), first.clone(), typed("1", "integer"));
        add(blank("l1").into(), rest.clone(), blank("l2").into());
        add(blank("l2").into(), first, blank("x").into());
        add(blank("l2").into(), rest, rdf::NIL.into_owned().into());
        add(iri("s").into(), rdf::TYPE.into_owned(), iri("T").into());
        add(iri("s").into(), rdf::TYPE.into_owned(), blank("x").into());
        add(iri("p").into(), iri("p"), iri("p").into());
    }
    quads
}

#[test]
fn odd_terms_and_graphs_survive_a_dump_in_every_format() {
    let quads = odd();
    let database = loaded(&quads);
    let expected = rows_of(&quads);
    assert!(isomorphic(&rows(&database), &expected, false));
    for format in DATASETS {
        let text = dump(&database, &GraphSelection::All, format).expect("the format holds it");
        let again = load(&format!("dump.{}", format.name()), text);
        assert!(
            isomorphic(&rows(&again), &expected, false),
            "{}",
            format.name()
        );
    }
    let default: Vec<Row> = expected
        .into_iter()
        .filter(|row| row[3].is_none())
        .collect();
    for (format, name) in GRAPHS {
        let text = dump(&database, &GraphSelection::Default, format).expect("the format holds it");
        assert!(
            isomorphic(&rows(&load(name, text)), &default, false),
            "{name}"
        );
    }
}

#[test]
fn one_named_graph_is_read_alone() {
    let database = loaded(&odd());
    let name: NamedOrBlankNode = NamedNode::new_unchecked("http://e/g").into();
    let none: NamedOrBlankNode = NamedNode::new_unchecked("http://e/s").into();
    assert!(database.has_graph(&name));
    assert!(!database.has_graph(&none));
    let count = |selection: &GraphSelection| {
        let count = database.for_each_quad(selection, |_| Ok::<(), EngineError>(()));
        count.expect("nothing fails")
    };
    let third = odd().len() as u64 / 3;
    assert_eq!(count(&GraphSelection::Named(name)), third);
    assert_eq!(count(&GraphSelection::Default), third);
    assert_eq!(count(&GraphSelection::Named(none)), 0);
    assert_eq!(count(&GraphSelection::All), 3 * third);
}

#[test]
fn the_first_error_ends_the_reading() {
    let database = loaded(&odd());
    let mut seen = 0;
    let outcome = database.for_each_quad(&GraphSelection::All, |_| {
        seen += 1;
        if seen < 5 {
            Ok(())
        } else {
            Err(EngineError::Cancelled)
        }
    });
    assert!(
        matches!(outcome, Err(EngineError::Cancelled)),
        "{outcome:?}"
    );
    assert_eq!(seen, 5);
}
