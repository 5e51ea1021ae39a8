//! Terms that come again are written as they were the first time.

use std::collections::HashSet;
use std::fmt::Write as _;

use jindou_engine::ingest::{Progress, Source};
use jindou_engine::results::{
    GraphFormat, GraphWriter, SolutionsFormat, SolutionsWriter, TermText,
};
use jindou_engine::{Config, Database, LoadOptions, MergePolicy, QueryResults};

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
    let mut config = Config::default();
    config.merge = MergePolicy::never();
    let database = Database::with_config(config);
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
                plain.begin_row(&mut other);
                for column in 0..columns {
                    let id = batch.column(column)[row];
                    plain.cell(&mut other, decoder.text(id)).unwrap();
                }
                plain.end_row(&mut other).unwrap();
            }
        }
        let QueryResults::Solutions(mut solutions) = database.query(query).unwrap() else {
            panic!("SELECT has solutions");
        };
        while remembering
            .advance(&mut one, &mut solutions)
            .unwrap()
            .is_some()
        {}
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
        while ids.advance(&mut one, &mut graph).unwrap().is_some() {}
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

/// Rows that come by updates: of new terms of all kinds, and of known ones.
const NEW_ROWS: usize = 1_000;

/// A triple that comes by an update, as a line of canonical N-Triples.
fn new_line(row: usize) -> String {
    let subject = match row % 3 {
        0 => format!("<http://e.org/{row}>"),
        _ => format!("<http://e.org/new/{row}>"),
    };
    let predicate = match row % 5 {
        0 => "<http://e.org/new-p>",
        _ => "<http://e.org/p>",
    };
    let object = match row % 8 {
        0 => format!("\"new {row}\""),
        1 => format!("\" new {row}\\t\\\"é\\\"<&>,\\n\""),
        2 => format!("\"new {row}\"@en"),
        3 => format!("\"new {row}\"^^<http://e.org/type>"),
        4 => format!("<http://e.org/new/o?a={row}&b=é,>"),
        5 => format!("_:new{row}"),
        6 => format!("\"{row}\"^^<http://www.w3.org/2001/XMLSchema#integer>"),
        _ => object(row + 1),
    };
    format!("{subject} {predicate} {object} .")
}

/// A database whose dictionary ends inside of a block, with terms that came later.
fn grown_database() -> Database {
    let database = database();
    let loaded = database.statistics();
    let block = jindou_dictionary::BLOCK as u64;
    assert_ne!(loaded.vertices % block, 0);
    assert_ne!(loaded.dictionary_literals % block, 0);
    let lines: Vec<String> = (0..NEW_ROWS).map(new_line).collect();
    for lines in lines.chunks(150) {
        let text = format!("INSERT DATA {{ {} }}", lines.join("\n"));
        database.update(&text).unwrap();
    }
    let grown = database.statistics();
    assert_eq!(grown.changes, NEW_ROWS as u64, "nothing was merged");
    assert!(grown.vertices > loaded.vertices + block);
    assert!(grown.dictionary_literals > loaded.dictionary_literals + block);
    database
}

#[test]
fn terms_that_came_by_updates_are_written_beside_those_of_the_dictionary() {
    let database = grown_database();
    // Twice, so that blocks are kept when what is beyond them comes.
    let query = "SELECT ?v ?p ?s { { ?s ?p ?v } UNION { ?s ?p ?v } }";
    for format in [
        SolutionsFormat::Tsv,
        SolutionsFormat::Csv,
        SolutionsFormat::Json,
        SolutionsFormat::Xml,
    ] {
        let QueryResults::Solutions(mut solutions) = database.query(query).unwrap() else {
            panic!("SELECT has solutions");
        };
        let mut writer = SolutionsWriter::new(format, solutions.variables());
        let (mut of_ids, mut of_terms) = (Vec::new(), Vec::new());
        while writer
            .advance(&mut of_ids, &mut solutions)
            .unwrap()
            .is_some()
        {}
        assert_eq!(writer.rows(), 2 * (ROWS + NEW_ROWS) as u64);
        let QueryResults::Solutions(solutions) = database.query(query).unwrap() else {
            panic!("SELECT has solutions");
        };
        let mut writer = SolutionsWriter::new(format, solutions.variables());
        for solution in solutions {
            let solution = solution.unwrap();
            let terms = (0..3).map(|place| solution.get_index(place));
            let cells = terms.map(|term| term.map(|term| TermText::from(term.as_ref())));
            writer.row(&mut of_terms, cells).unwrap();
        }
        // Both find the rows in the same order, as the query is too light for two threads.
        let [of_ids, of_terms] = [&of_ids, &of_terms].map(|text| String::from_utf8_lossy(text));
        for (of_ids, of_terms) in of_ids.split('\n').zip(of_terms.split('\n')) {
            assert_eq!(of_ids, of_terms, "{format:?}");
        }
        assert_eq!(of_ids.len(), of_terms.len());
    }
}

#[test]
fn graphs_hold_the_triples_that_were_loaded_and_those_that_came_by_updates() {
    let database = grown_database();
    let loaded =
        (0..ROWS).map(|row| format!("<http://e.org/{row}> <http://e.org/p> {} .", object(row)));
    let given: HashSet<String> = loaded.chain((0..NEW_ROWS).map(new_line)).collect();
    for query in [
        "CONSTRUCT WHERE { ?s ?p ?o }",
        "CONSTRUCT { ?s ?p ?o } { { ?s ?p ?o } UNION { ?s ?p ?o } }",
    ] {
        let QueryResults::Graph(mut graph) = database.query(query).unwrap() else {
            panic!("CONSTRUCT has triples");
        };
        let mut writer = GraphWriter::new(GraphFormat::NTriples);
        let mut out = Vec::new();
        while writer.advance(&mut out, &mut graph).unwrap().is_some() {}
        let text = String::from_utf8(out).unwrap();
        let found: HashSet<&str> = text.lines().collect();
        assert_eq!(writer.triples(), given.len() as u64, "{query}");
        assert_eq!(found.len(), given.len(), "{query}");
        // Blank nodes have labels of their own.
        for line in given.iter().filter(|line| !line.contains(" _:")) {
            assert!(found.contains(&**line), "{query}: {line}");
        }
    }
}
