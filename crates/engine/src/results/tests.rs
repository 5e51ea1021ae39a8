//! Does what is written read back, with a parser that is not ours, as what went in?

use std::collections::BTreeMap;

use oxrdf::{BlankNode, Literal, NamedNode, NamedOrBlankNode, Term, Triple};
use oxrdfio::{JsonLdProfileSet, RdfFormat, RdfParser};
use proptest::prelude::*;
use sparesults::{QueryResultsFormat, QueryResultsParser, SliceQueryResultsParserOutput as Parsed};

use super::escape::not_xml;
use super::*;

pub(super) type Row = Vec<Option<Term>>;

fn iri() -> impl Strategy<Value = NamedNode> {
    "http://[a-z]{1,3}/[a-zA-Z0-9é漢?=&;,.()'~/-]{0,60}(#[a-z]{0,5})?"
        .prop_map(NamedNode::new_unchecked)
}

fn blank() -> impl Strategy<Value = BlankNode> {
    "[a-z][a-z0-9]{0,9}".prop_map(BlankNode::new_unchecked)
}

/// Any string, with more of what formats treat specially than chance would give.
fn value() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        "[ \t\r\n\"'<>&,;\\\\a\u{0}\u{8}\u{c}\u{1b}\u{7f}\u{85}\u{2028}\u{feff}\u{fffe}\u{ff21}]{0,40}",
        "[+-]?[0-9]{0,3}[.]?[0-9]{0,3}([eE][+-]?[0-9]{0,2})?",
        Just("true".to_owned()),
    ]
}

fn literal() -> impl Strategy<Value = Literal> {
    prop_oneof![
        value().prop_map(Literal::new_simple_literal),
        (value(), "[a-z]{2,3}(-[a-z]{4})?(-([a-z]{2}|[0-9]{3}))?")
            .prop_map(|(value, tag)| Literal::new_language_tagged_literal(value, tag).unwrap()),
        (value(), iri()).prop_map(|(value, datatype)| Literal::new_typed_literal(value, datatype)),
        (
            value(),
            prop::sample::select(vec!["integer", "decimal", "double", "boolean", "int"])
        )
            .prop_map(|(value, name)| Literal::new_typed_literal(
                value,
                NamedNode::new_unchecked(format!("http://www.w3.org/2001/XMLSchema#{name}")),
            )),
    ]
}

fn term() -> impl Strategy<Value = Term> {
    prop_oneof![
        iri().prop_map(Term::from),
        blank().prop_map(Term::from),
        literal().prop_map(Term::from)
    ]
}

pub(super) fn solutions() -> impl Strategy<Value = (Vec<String>, Vec<Row>)> {
    (0_usize..5).prop_flat_map(|columns| {
        let names = (0..columns).map(|n| format!("v{n}_é")).collect();
        let row = prop::collection::vec(prop::option::of(term()), columns);
        (Just(names), prop::collection::vec(row, 0..6))
    })
}

pub(super) fn write(
    format: SolutionsFormat,
    names: &[String],
    rows: &[Row],
) -> Result<Vec<u8>, ResultsError> {
    let mut out = Vec::new();
    let mut writer = SolutionsWriter::new(format, names);
    writer.start(&mut out)?;
    for row in rows {
        writer.row(
            &mut out,
            row.iter()
                .map(|cell| cell.as_ref().map(|t| t.as_ref().into())),
        )?;
    }
    assert_eq!(writer.rows(), rows.len() as u64);
    writer.finish(&mut out)?;
    Ok(out)
}

fn read(format: QueryResultsFormat, text: &[u8]) -> (Vec<String>, Vec<Row>) {
    let parser = QueryResultsParser::from_format(format);
    let Parsed::Solutions(solutions) = parser.for_slice(text).expect("a valid head") else {
        panic!("solutions were written");
    };
    let names: Vec<String> = solutions
        .variables()
        .iter()
        .map(|v| v.as_str().into())
        .collect();
    let rows = solutions
        .map(|solution| {
            let solution = solution.expect("a valid row");
            names
                .iter()
                .map(|name| solution.get(name.as_str()).cloned())
                .collect()
        })
        .collect();
    (names, rows)
}

fn text_of(term: &Term) -> String {
    match term {
        Term::NamedNode(node) => node.as_str().into(),
        Term::BlankNode(node) => node.to_string(),
        Term::Literal(literal) => literal.value().into(),
    }
}

/// Fields by RFC 4180, strictly: quotes only around whole fields, records end with CR LF.
fn read_csv(text: &str) -> Vec<Vec<String>> {
    let mut records = vec![vec![String::new()]];
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let field = records.last_mut().unwrap().last_mut().unwrap();
        match c {
            '"' => {
                assert!(field.is_empty(), "a quote begins a field");
                loop {
                    match chars.next().expect("a closing quote") {
                        '"' if chars.peek() == Some(&'"') => field.push(chars.next().unwrap()),
                        '"' => break,
                        c => field.push(c),
                    }
                }
                assert!(
                    matches!(chars.peek(), Some(',' | '\r')),
                    "a quote ends a field"
                );
            }
            ',' => records.last_mut().unwrap().push(String::new()),
            '\r' => {
                assert_eq!(chars.next(), Some('\n'));
                records.push(vec![String::new()]);
            }
            '\n' => panic!("a bare line feed"),
            c => field.push(c),
        }
    }
    assert_eq!(
        records.pop(),
        Some(vec![String::new()]),
        "the last record ends too"
    );
    records
}

pub(super) fn triple() -> impl Strategy<Value = Triple> {
    let subject = prop_oneof![
        iri().prop_map(NamedOrBlankNode::from),
        blank().prop_map(NamedOrBlankNode::from)
    ];
    let predicate = "http://[a-z]{1,3}/[a-z]{1,9}".prop_map(NamedNode::new_unchecked);
    (subject, predicate, term()).prop_map(|(s, p, o)| Triple::new(s, p, o))
}

/// Blank nodes are renamed in order of appearance: JSON-LD and RDF/XML parsers give new labels.
fn canonical(triples: Vec<Triple>) -> Vec<Triple> {
    let mut labels = BTreeMap::new();
    let mut rename = |node: BlankNode| {
        let next = labels.len();
        let number = *labels.entry(node.as_str().to_owned()).or_insert(next);
        BlankNode::new_unchecked(format!("n{number}"))
    };
    triples
        .into_iter()
        .map(|triple| {
            let subject = match triple.subject {
                NamedOrBlankNode::BlankNode(node) => rename(node).into(),
                named @ NamedOrBlankNode::NamedNode(_) => named,
            };
            let object = match triple.object {
                Term::BlankNode(node) => rename(node).into(),
                other => other,
            };
            Triple {
                subject,
                predicate: triple.predicate,
                object,
            }
        })
        .collect()
}

pub(super) fn write_graph(
    format: GraphFormat,
    triples: &[Triple],
) -> Result<Vec<u8>, ResultsError> {
    let mut out = Vec::new();
    let mut writer = GraphWriter::new(format);
    for triple in triples {
        writer.triple(&mut out, triple.as_ref())?;
    }
    assert_eq!(writer.triples(), triples.len() as u64);
    writer.finish(&mut out)?;
    Ok(out)
}

proptest! {
    #[test]
    fn json_reads_back((names, rows) in solutions()) {
        let text = write(SolutionsFormat::Json, &names, &rows).unwrap();
        prop_assert_eq!(read(QueryResultsFormat::Json, &text), (names, rows));
    }

    #[test]
    fn tsv_reads_back((names, rows) in solutions()) {
        let text = write(SolutionsFormat::Tsv, &names, &rows).unwrap();
        prop_assert_eq!(read(QueryResultsFormat::Tsv, &text), (names, rows));
    }

    #[test]
    fn xml_reads_back_or_names_what_it_cannot_carry((names, rows) in solutions()) {
        let lacking = rows.iter().flatten().flatten().find_map(|term| not_xml(&text_of(term)));
        match write(SolutionsFormat::Xml, &names, &rows) {
            Ok(text) => {
                prop_assert_eq!(lacking, None);
                prop_assert_eq!(read(QueryResultsFormat::Xml, &text), (names, rows));
            }
            Err(ResultsError::NotXml { character }) => prop_assert_eq!(lacking, Some(character)),
            Err(error) => panic!("{error}"),
        }
    }

    #[test]
    fn csv_keeps_every_value((names, rows) in solutions()) {
        let text = String::from_utf8(write(SolutionsFormat::Csv, &names, &rows).unwrap()).unwrap();
        let mut expected = vec![names];
        for row in &rows {
            expected.push(row.iter().map(|t| t.as_ref().map(text_of).unwrap_or_default()).collect());
        }
        for record in &mut expected {
            if record.is_empty() {
                record.push(String::new());
            }
        }
        prop_assert_eq!(read_csv(&text), expected);
    }

    #[test]
    fn a_table_has_a_line_per_row((names, rows) in solutions()) {
        let text = String::from_utf8(write(SolutionsFormat::Table, &names, &rows).unwrap()).unwrap();
        let lines = if names.is_empty() { 1 } else { rows.len() + 3 };
        prop_assert_eq!(text.split('\n').count(), lines + 1, "{}", text);
        prop_assert!(!text.chars().any(|c| c != '\n' && c.is_control()));
    }

    #[test]
    fn lines_read_back(triples in prop::collection::vec(triple(), 0..8)) {
        for (ours, theirs) in [
            (GraphFormat::NTriples, RdfFormat::NTriples),
            (GraphFormat::NQuads, RdfFormat::NQuads),
        ] {
            let text = write_graph(ours, &triples).unwrap();
            let read: Vec<Triple> = RdfParser::from_format(theirs)
                .for_slice(&text)
                .map(|quad| quad.expect("valid text").into())
                .collect();
            prop_assert_eq!(&read, &triples, "{}", ours.name());
        }
    }

    #[test]
    fn graphs_read_back(
        triples in prop::collection::vec(triple(), 1..8),
        cuts in prop::collection::vec((any::<prop::sample::Index>(), 7_usize..40), 0..4),
    ) {
        let prefixes = ["", "e", "e-1.x", "é"];
        let prefixes = cuts.iter().zip(prefixes).map(|((triple, end), name)| {
            let NamedOrBlankNode::NamedNode(node) = &triple.get(&triples).subject else {
                return (name.to_owned(), "http://a/".to_owned());
            };
            (name.to_owned(), node.as_str().chars().take(*end).collect())
        });
        let names = Names::new(prefixes);
        let canonical = |triples: &[Triple]| {
            let mut graph: oxrdf::Graph = triples.iter().collect();
            graph.canonicalize(oxrdf::graph::CanonicalizationAlgorithm::Unstable);
            graph
        };
        for (ours, theirs) in [
            (GraphFormat::Turtle, RdfFormat::Turtle),
            (GraphFormat::TriG, RdfFormat::TriG),
            (GraphFormat::N3, RdfFormat::N3),
        ] {
            let mut text = Vec::new();
            let mut writer = GraphWriter::new(ours).with_names(names.clone());
            for triple in &triples {
                writer.triple(&mut text, triple.as_ref()).unwrap();
            }
            writer.finish(&mut text).unwrap();
            let read: Vec<Triple> = RdfParser::from_format(theirs)
                .for_slice(&text)
                .map(|quad| quad.expect("valid text").into())
                .collect();
            let shown = String::from_utf8_lossy(&text);
            prop_assert_eq!(canonical(&read), canonical(&triples), "{}", shown);
        }
    }

    #[test]
    fn json_ld_reads_back(triples in prop::collection::vec(triple(), 0..8)) {
        let text = write_graph(GraphFormat::JsonLd, &triples).unwrap();
        let profile = JsonLdProfileSet::empty();
        let read = RdfParser::from_format(RdfFormat::JsonLd { profile })
            .for_slice(&text)
            .map(|quad| quad.expect("valid text").into())
            .collect();
        prop_assert_eq!(canonical(read), canonical(triples));
    }

    #[test]
    fn rdf_xml_reads_back_or_names_what_it_cannot_carry(
        triples in prop::collection::vec(triple(), 0..8),
    ) {
        let lacking = triples.iter().find_map(|t| not_xml(&text_of(&t.object)));
        match write_graph(GraphFormat::RdfXml, &triples) {
            Ok(text) => {
                prop_assert_eq!(lacking, None);
                let read = RdfParser::from_format(RdfFormat::RdfXml)
                    .for_slice(&text)
                    .map(|quad| quad.expect("valid text").into())
                    .collect();
                prop_assert_eq!(canonical(read), canonical(triples));
            }
            Err(ResultsError::NotXml { character }) => prop_assert_eq!(lacking, Some(character)),
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn turtle_has_the_prefixes_of_the_query_and_names_a_subject_once() {
    let database = crate::Database::new();
    database
        .update(
            "PREFIX : <http://e/> INSERT DATA { :a :p :b, :c ; :q 1, <http://f/x.> . :d :p :b }",
        )
        .unwrap();
    let written = |format, query: &str| {
        let results = database.query(query).unwrap();
        let crate::QueryResults::Graph(mut graph) = results else {
            panic!("no graph: {query}");
        };
        let (mut text, mut writer) = (Vec::new(), GraphWriter::new(format));
        while writer.advance(&mut text, &mut graph).unwrap().is_some() {}
        writer.finish(&mut text).unwrap();
        String::from_utf8(text).unwrap()
    };
    let pattern = "CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o } ORDER BY ?s ?p ?o";
    let query = format!("PREFIX ex: <http://e/> PREFIX f: <http://f/> {pattern}");
    let expected = "@prefix ex: <http://e/> .\n@prefix f: <http://f/> .\n\n\
                    ex:a ex:p ex:b, ex:c ;\n    ex:q f:x\\., 1 .\n\nex:d ex:p ex:b .\n";
    assert_eq!(written(GraphFormat::TriG, &query), expected);
    // The plan is a known one, now.
    assert_eq!(written(GraphFormat::Turtle, &query), expected);
    let lines = written(GraphFormat::NTriples, &query);
    assert_eq!(lines.lines().count(), 5, "{lines}");
    let plain = written(GraphFormat::Turtle, pattern);
    assert!(plain.starts_with("<http://e/a> <http://e/p>"), "{plain}");
}

#[test]
fn rdf_xml_refuses_predicates_that_no_element_can_stand_for() {
    const RDF: &str = "http://www.w3.org/1999/02/22-rdf-syntax-ns#";
    let write = |predicate: &str| {
        let node = NamedNode::new_unchecked("http://e/s");
        let predicate = NamedNode::new_unchecked(predicate);
        write_graph(
            GraphFormat::RdfXml,
            &[Triple::new(node.clone(), predicate, node)],
        )
    };
    for good in [
        "http://e/a",
        "http://e/1a",
        "urn:p",
        "http://e#é-1",
        &format!("{RDF}_1"),
    ] {
        assert!(write(good).is_ok(), "{good}");
    }
    let li = format!("{RDF}li");
    for bad in [
        "http://e/",
        "http://e/1",
        "http://e/a=",
        "http://e/a?-",
        &li,
    ] {
        let error = write(bad).expect_err(bad).to_string();
        assert!(error.contains(bad), "{error}");
    }
}

#[test]
fn booleans_read_back() {
    for value in [true, false] {
        for (ours, theirs) in [
            (BooleanFormat::Json, QueryResultsFormat::Json),
            (BooleanFormat::Xml, QueryResultsFormat::Xml),
            (BooleanFormat::Tsv, QueryResultsFormat::Tsv),
            (BooleanFormat::Csv, QueryResultsFormat::Tsv),
            (BooleanFormat::Text, QueryResultsFormat::Tsv),
        ] {
            let mut text = Vec::new();
            write_boolean(&mut text, ours, value);
            let Parsed::Boolean(read) = QueryResultsParser::from_format(theirs)
                .for_slice(&text)
                .unwrap()
            else {
                panic!("a boolean was written");
            };
            assert_eq!(read, value, "{ours:?}");
        }
    }
}

#[test]
fn a_profile_is_the_last_member_of_json_and_of_nothing_else() {
    let mut out = Vec::new();
    let mut writer = SolutionsWriter::new(SolutionsFormat::Json, &["x"]);
    writer.start(&mut out).unwrap();
    writer.row(&mut out, [None]).unwrap();
    writer
        .finish_with_profile(&mut out, "scan\t\"1\"\n")
        .unwrap();
    assert_eq!(
        String::from_utf8(out).unwrap(),
        r#"{"head":{"vars":["x"]},"results":{"bindings":[{}]},"profile":"scan\t\"1\"\n"}"#
    );
    for format in SolutionsFormat::ALL {
        if format != SolutionsFormat::Json {
            let mut writer = SolutionsWriter::new(format, &["x"]);
            assert!(matches!(
                writer.finish_with_profile(&mut Vec::new(), ""),
                Err(ResultsError::NoProfile { .. })
            ));
        }
    }
}
