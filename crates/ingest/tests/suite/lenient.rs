//! What does a lenient load keep, what does it leave out, and what does it say of both?

use crate::common::{collect, options};
use jindou_ingest::{Faults, LoadOptions, Odd, Report, Source};

fn lenient() -> LoadOptions {
    LoadOptions {
        lenient: true,
        ..options(2, 40)
    }
}

fn load(name: &str, text: &str) -> (Vec<String>, Report) {
    collect(vec![Source::bytes(name, text)], &lenient()).expect("what is wrong is left out")
}

/// Objects that are odd, as they are written in N-Triples and Turtle.
const ODD: [(&str, Odd); 8] = [
    ("<http://e/[x]>", IRI),
    ("<http://e/%zz>", IRI),
    ("<http://e/#a#b>", IRI),
    ("<http://e:port/>", IRI),
    ("\"x\"^^<http://e/[t]>", IRI),
    ("\"x\"@zh-classical", LANGUAGE),
    ("\"x\"@englishlanguage", LANGUAGE),
    ("\"\\uD83D\\uDE00\"", ESCAPE),
];
const IRI: Odd = odd(1, 0, 0);
const LANGUAGE: Odd = odd(0, 1, 0);
const ESCAPE: Odd = odd(0, 0, 1);

const fn odd(iris: u64, languages: u64, escapes: u64) -> Odd {
    Odd {
        iris,
        languages,
        escapes,
    }
}

const GOOD: &str = "<http://e/s> <http://e/p> <http://e/good>";

#[test]
fn odd_terms_that_can_be_read_are_kept_and_counted() {
    for name in ["x.nt", "x.nq", "x.ttl", "x.trig"] {
        for (object, expected) in ODD {
            let text = format!("{GOOD} .\n<http://e/s> <http://e/p> {object} .\n");
            let (quads, report) = load(name, &text);
            let object = object.replace("\\uD83D\\uDE00", "\u{1f600}");
            let expected_quad = format!("<http://e/s> <http://e/p> {object}");
            assert!(quads.contains(&expected_quad), "{name} {object}: {quads:?}");
            assert_eq!((quads.len(), report.skipped), (2, 0), "{name} {object}");
            assert_eq!(report.odd, expected, "{name} {object}");
            // Without leniency it is an error.
            let strict = collect(vec![Source::bytes(name, text)], &options(1, 40));
            assert!(strict.is_err(), "{name} {object}");
        }
    }
    let graph = format!("{GOOD} <http://e/[g]> .\n");
    assert_eq!(load("x.nq", &graph).1.odd, IRI);
    let graph = format!("<http://e/[g]> {{ {GOOD} . {GOOD} }}");
    assert_eq!(load("x.trig", &graph).1.odd, odd(2, 0, 0));
}

#[test]
fn odd_prefixes_and_bases_hold_for_what_follows() {
    let text = "@prefix e: <http://e/[x]/> . @base <http://e/#b#/> .\n\
                e:s e:p 'broken .\ne:s e:p e:o . <a> e:p 1 .\n";
    let (quads, report) = load("x.ttl", text);
    assert_eq!((quads.len(), report.skipped), (2, 1), "{quads:?}");
    assert_eq!(report.odd.iris, 2);
    assert!(
        quads[0].starts_with("<http://e/[x]/s> <http://e/[x]/p>"),
        "{quads:?}"
    );
}

#[test]
fn terms_that_cannot_be_read_are_left_out() {
    for name in ["x.nt", "x.nq", "x.ttl", "x.trig"] {
        for object in [
            "<http://e/a b>",
            "<http://e/{x}>",
            "<http://e/a\\u0020b>",
            "\"x\"@en_US",
            "\"x\"@-",
            "\"x\"^^<http://www.w3.org/1999/02/22-rdf-syntax-ns#langString>",
            "\"\\q\"",
            "\"\\uD83D\"",
        ] {
            let text = format!("{GOOD} .\n<http://e/s> <http://e/p> {object} .\n{GOOD} .\n");
            let (quads, report) = load(name, &text);
            assert_eq!(quads, [GOOD, GOOD], "{name} {object}");
            assert_eq!(report.skipped, 1, "{name} {object}: {:?}", report.errors);
            assert_eq!(report.errors[0].error.line, Some(2), "{name} {object}");
            assert!(report.odd.is_none(), "{name} {object}");
        }
    }
}

#[test]
fn a_broken_string_costs_one_statement() {
    let bad = "<http://e/s> <http://e/p> \"not closed .\n";
    let other = "<http://e/s> <http://e/p> \"it's\" .\n";
    for name in ["x.nt", "x.nq", "x.ttl", "x.trig"] {
        // Its quote, and that of the next, would otherwise be those of strings between.
        let text = format!("{other}{bad}{other}{bad}{bad}{other}{bad}{other}").repeat(100);
        let (quads, report) = load(name, &text);
        assert_eq!((quads.len(), report.skipped), (400, 400), "{name}");
        let lines: Vec<_> = report
            .errors
            .iter()
            .filter_map(|it| it.error.line)
            .collect();
        assert_eq!(lines[..5], [2, 4, 5, 7, 10], "{name}");
        let strings = Faults {
            strings: 400,
            ..Faults::default()
        };
        assert_eq!(report.faults, strings, "{name}: {:?}", report.errors[0]);
    }
    for bad in ["'x", "<x", "[ <p> 'x", "'x\\'"] {
        let text = format!("{GOOD} . <http://e/s> <http://e/p> {bad} .\n{GOOD} .");
        let (quads, report) = load("x.ttl", &text);
        assert_eq!(
            (quads.len(), report.skipped),
            (2, 1),
            "{text} {:?}",
            report.errors
        );
    }
}

#[test]
fn the_graph_of_a_trig_document_is_known_after_an_error() {
    let text = format!(
        "@prefix e: <http://e/> .\n e:g {{ {GOOD} . e:a e:b .\n {GOOD} . e:a e:b x }}\n\
         {GOOD} . GRAPH e:h {{ e:a e:b 'x .\n {GOOD} }} [] {{ e:a . {GOOD} . {GOOD} }}\n\
         e:g e:h {{ {GOOD} }} {GOOD} ."
    );
    let (quads, report) = load("x.trig", &text);
    let of = |graph: &str| {
        let quad = format!("{GOOD} <http://e/{graph}>");
        quads.iter().filter(|it| **it == quad).count()
    };
    assert_eq!((of("g"), of("h")), (2, 1), "{quads:?}");
    let plain = quads.iter().filter(|quad| *quad == GOOD).count();
    assert_eq!(plain, 2, "{quads:?}");
    // The graph without a name is one.
    let anonymous: Vec<_> = quads
        .iter()
        .filter(|quad| quad.contains("> _:f0-"))
        .collect();
    assert_eq!(anonymous.len(), 2, "{quads:?}");
    assert_eq!(anonymous[0], anonymous[1]);
    assert_eq!(quads.len(), 7, "{quads:?}");
    let lines: Vec<_> = report
        .errors
        .iter()
        .filter_map(|it| it.error.line)
        .collect();
    assert_eq!(lines, [2, 3, 4, 5, 6, 6], "{:?}", report.errors);
    assert!(report.errors.iter().all(|it| !it.rest_dropped));
}

#[test]
fn nothing_of_a_formula_is_taken_for_a_fact() {
    let text = format!("{GOOD} . {{ {GOOD} . {GOOD} . {GOOD} }} => {{ {GOOD} }} . {GOOD} .");
    let (quads, report) = load("x.n3", &text);
    assert_eq!(quads.len(), 2, "{quads:?}");
    assert!(report.skipped >= 3);
}

#[test]
fn faults_are_counted_by_kind_and_placed_where_they_are() {
    let text = "<http://e/a> <http://e/p> x:y .\n\n  <http://e/a> <http://e/p> <a b> .\n\
                <http://e/a> <http://e/p> \"\\q\" . <http://e/a> <http://e/p> .\r\n\
                <http://e/a> <http://e/p> é .\n";
    let (quads, report) = load("x.ttl", text);
    assert!(quads.is_empty());
    let faults = Faults {
        strings: 1,
        iris: 1,
        prefixes: 1,
        others: 2,
    };
    let places: Vec<_> = report
        .errors
        .iter()
        .map(|it| (it.error.line.unwrap_or(0), it.error.column.unwrap_or(0)))
        .collect();
    assert_eq!(
        places,
        [(1, 27), (3, 29), (4, 28), (4, 60), (5, 27)],
        "{:?}",
        report.errors
    );
    assert_eq!(report.faults, faults, "{:?}", report.errors);
}

const RDF_XML: &str = "<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#' \
     xmlns:a='http://e/'><rdf:Description rdf:about='http://e/s'>\nPROPERTY\n<a:p>good</a:p>\
     </rdf:Description></rdf:RDF>";

#[test]
fn odd_terms_of_rdf_xml_are_kept_and_others_cost_one_statement() {
    for (property, expected, skipped) in [
        ("<a:p rdf:resource='http://e/[x]'/>", IRI, 0),
        ("<a:p rdf:resource='#a#b'/>", IRI, 0),
        ("<a:p xml:lang='zh-classical'>x</a:p>", LANGUAGE, 0),
        ("<a:p rdf:resource='http://e/a b'/>", Odd::default(), 1),
        // What is said of it has words of the document.
        ("<a:p rdf:resource='http://e/a prefix'/>", Odd::default(), 1),
        ("<a:p xml:lang='en_US'>x</a:p>", Odd::default(), 1),
    ] {
        let text = RDF_XML.replace("PROPERTY", property);
        let source = Source::bytes("x.rdf", text).with_base_iri("http://b/");
        let (quads, report) = collect(vec![source], &lenient()).expect(property);
        assert_eq!(
            (quads.len(), report.skipped),
            (2 - skipped, skipped as u64),
            "{property}"
        );
        assert_eq!(report.odd, expected, "{property}");
        assert_eq!(report.faults.iris, skipped as u64, "{property}");
        assert!(
            report.errors.iter().all(|it| !it.rest_dropped),
            "{property}"
        );
    }
}

#[test]
fn odd_terms_of_json_ld_are_kept() {
    let text = r#"{"@id": "http://e/s", "http://e/p": [{"@id": "http://e/[x]"}, "good"]}"#;
    let (quads, report) = load("x.jsonld", text);
    assert_eq!((quads.len(), report.skipped), (2, 0), "{quads:?}");
    assert_eq!(report.odd, IRI);
}
