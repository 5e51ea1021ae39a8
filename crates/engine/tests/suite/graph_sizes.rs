//! Are plans for one named graph good where graphs are of very different sizes?

use std::fmt::Write as _;

use jindou_engine::Database;
use jindou_engine::ingest::{Format, LoadOptions, Progress, Source};

/// One graph with all students and courses, and many little ones.
fn database() -> Database {
    let mut text = String::new();
    let mut quad = |s: String, p: &str, o: String, g: String| {
        writeln!(
            text,
            "<http://e/{s}> <http://e/{p}> <http://e/{o}> <http://e/{g}> ."
        )
        .unwrap();
    };
    for number in 0..3000 {
        let (student, course) = (format!("s{number}"), format!("c{number}"));
        quad(course.clone(), "a", "Course".into(), "big".into());
        quad(student.clone(), "takes", course, "big".into());
        quad(student, "knows", format!("s{}", number + 1), "big".into());
        quad(
            format!("x{number}"),
            "a",
            "Course".into(),
            format!("g{number}"),
        );
    }
    let text = text.replace(
        "http://e/a>",
        "http://www.w3.org/1999/02/22-rdf-syntax-ns#type>",
    );
    let source = Source::bytes("data.nq", text).with_format(Format::NQuads);
    let database = Database::new();
    let (options, progress) = (LoadOptions::default(), Progress::default());
    database.load(vec![source], &options, &progress).unwrap();
    database
}

#[test]
fn a_constant_of_a_large_graph_is_followed_and_its_types_are_not_scanned() {
    let query = "SELECT * { GRAPH <http://e/big> { <http://e/s7> <http://e/takes> ?c . ?c a <http://e/Course> } }";
    let plan = database().explain(query).unwrap();
    assert!(plan.contains("expand ?c"), "{plan}");
    assert!(!plan.contains("scan"), "{plan}");
}

#[test]
fn literals_that_each_graph_has_are_not_taken_for_few() {
    let mut text = String::new();
    for graph in 0..40 {
        for number in 0..50 {
            let name = number % 10;
            let vertex = format!("<http://e/v{graph}-{number}>");
            let graph = format!("<http://e/g{graph}>");
            writeln!(text, "{vertex} <http://e/name> \"name {name}\" {graph} .").unwrap();
            if number < 5 {
                writeln!(text, "{vertex} <http://e/kind> <http://e/Rare> {graph} .").unwrap();
            }
        }
    }
    let source = Source::bytes("data.nq", text).with_format(Format::NQuads);
    let database = Database::new();
    let (options, progress) = (LoadOptions::default(), Progress::default());
    database.load(vec![source], &options, &progress).unwrap();
    let query = "SELECT * { GRAPH <http://e/g7> { ?v <http://e/kind> <http://e/Rare> ; <http://e/name> ?n } }";
    let plan = database.explain(query).unwrap();
    assert!(plan.contains("expand ?n"), "{plan}");
}

#[test]
fn what_a_hub_has_in_one_graph_is_not_taken_for_all_it_has() {
    let mut text = String::new();
    for number in 0..20_000 {
        let graph = format!("<http://e/g{}>", number % 1000);
        let vertex = format!("<http://e/v{number}>");
        writeln!(
            text,
            "<http://e/hub> <http://e/has> {vertex} {graph} .\n\
             {vertex} <http://e/value> \"{number}\" {graph} ."
        )
        .unwrap();
    }
    let source = Source::bytes("data.nq", text).with_format(Format::NQuads);
    let database = Database::new();
    let (options, progress) = (LoadOptions::default(), Progress::default());
    database.load(vec![source], &options, &progress).unwrap();
    let query = "SELECT * { GRAPH <http://e/g7> { <http://e/hub> <http://e/has> ?x . ?x <http://e/value> ?v } }";
    let plan = database.explain(query).unwrap();
    let expands = plan.lines().filter(|line| line.contains("expand"));
    let rows: Vec<&str> = expands
        .map(|line| line.rsplit(' ').next().unwrap())
        .collect();
    assert_eq!(rows, ["20", "20"], "{plan}");
}

#[test]
fn the_largest_graphs_are_told_one_by_one_and_the_others_together() {
    let database = database();
    let sizes = database.graph_sizes(1);
    assert_eq!(sizes.default_graph, 0);
    assert_eq!(sizes.largest, [("http://e/big".to_owned(), 9000)]);
    assert_eq!(sizes.others, 3000);
    let update = "INSERT DATA { <http://e/s> <http://e/p> 1 GRAPH <http://e/g7> { <http://e/s> <http://e/p> 1, 2 } } ; \
                  DELETE DATA { GRAPH <http://e/big> { <http://e/s7> <http://e/takes> <http://e/c7> } } ; \
                  CREATE GRAPH <http://e/empty>";
    database.update(update).unwrap();
    for _ in ["as changes", "merged"] {
        let sizes = database.graph_sizes(2);
        assert_eq!(sizes.default_graph, 1);
        let named = [
            ("http://e/big".to_owned(), 8999),
            ("http://e/g7".to_owned(), 3),
        ];
        assert_eq!(sizes.largest, named);
        assert_eq!(sizes.others, 2999);
        database.compact().unwrap();
    }
    let all = database.graph_sizes(usize::MAX);
    assert_eq!((all.largest.len(), all.others), (3002, 0));
    assert_eq!(all.largest.last(), Some(&("http://e/empty".to_owned(), 0)));
}
