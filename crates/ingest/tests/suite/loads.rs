//! Do files, compressions, threads, errors and blank node scopes work together?

use crate::common::{Collect, collect, options, position};
use jindou_ingest::{
    Compression, Contexts, Format, IngestError, LoadOptions, Progress, QuadSink, Share, Source,
    load,
};
use oxrdf::{NamedNode, QuadRef};
use std::fs;
use std::io::{self, Cursor, Write};
use std::path::PathBuf;

/// One triple in each format: `<http://a/s> <http://a/p> "o"`.
const ONE_TRIPLE: [(&str, &str); 13] = [
    ("nt", "<http://a/s> <http://a/p> \"o\" ."),
    ("ntriples", "<http://a/s> <http://a/p> \"o\" .\r\n"),
    ("nq", "<http://a/s> <http://a/p> \"o\" .\n"),
    ("nquads", "# c\n<http://a/s> <http://a/p> \"o\" ."),
    ("ttl", "@prefix a: <http://a/> . a:s a:p \"o\" ."),
    ("turtle", "@prefix a: <http://a/> . a:s a:p \"o\" ."),
    ("n3", "@base <http://a/> . <s> <p> 'o' ."),
    ("trig", "PREFIX a: <http://a/> { a:s a:p \"o\" }"),
    ("rdf", RDF_XML),
    ("xml", RDF_XML),
    ("owl", RDF_XML),
    ("jsonld", JSON_LD),
    ("json", JSON_LD),
];
const RDF_XML: &str = "<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#' \
     xmlns:a='http://a/'><rdf:Description rdf:about='http://a/s'><a:p>o</a:p>\
     </rdf:Description></rdf:RDF>";
const JSON_LD: &str = r#"{"@id": "http://a/s", "http://a/p": "o"}"#;

fn compress(text: &[u8], compression: Compression) -> Vec<u8> {
    match compression {
        Compression::None => text.to_vec(),
        Compression::Gzip => {
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), Default::default());
            encoder.write_all(text).unwrap();
            encoder.finish().unwrap()
        }
        Compression::Zstd => zstd::encode_all(text, 1).unwrap(),
        Compression::Bzip2 => {
            let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), Default::default());
            encoder.write_all(text).unwrap();
            encoder.finish().unwrap()
        }
    }
}

const COMPRESSIONS: [(Compression, &str); 4] = [
    (Compression::None, ""),
    (Compression::Gzip, ".gz"),
    (Compression::Zstd, ".zst"),
    (Compression::Bzip2, ".bz2"),
];

#[test]
fn every_ending_loads_in_every_compression() {
    let dir = tempfile::tempdir().unwrap();
    for (ending, text) in ONE_TRIPLE {
        for (compression, suffix) in COMPRESSIONS {
            let path = dir.path().join(format!("data.{ending}{suffix}"));
            fs::write(&path, compress(text.as_bytes(), compression)).unwrap();
            let (quads, _) = collect(vec![Source::path(&path)], &options(2, 8)).unwrap();
            assert_eq!(
                quads,
                ["<http://a/s> <http://a/p> \"o\""],
                "{}",
                path.display()
            );
            // The first bytes tell the compression when the name does not.
            let bare = dir.path().join(format!("data.{ending}"));
            fs::write(&bare, compress(text.as_bytes(), compression)).unwrap();
            assert_eq!(
                collect(vec![Source::path(&bare)], &options(1, 8))
                    .unwrap()
                    .0,
                quads
            );
        }
    }
}

#[test]
fn plain_text_loads_whatever_compression_its_name_says() {
    let dir = tempfile::tempdir().unwrap();
    for (ending, text) in ONE_TRIPLE {
        for (_, suffix) in COMPRESSIONS {
            // With the ending of its format, and without it.
            for name in [format!("data.{ending}{suffix}"), format!("data{suffix}")] {
                let path = dir.path().join(&name);
                fs::write(&path, text).unwrap();
                for source in [Source::path(&path), Source::bytes(name.as_str(), text)] {
                    let (quads, _) = collect(vec![source], &options(2, 8)).unwrap();
                    assert_eq!(quads, ["<http://a/s> <http://a/p> \"o\""], "{name}");
                }
            }
        }
    }
    // Characters that are cut where the text is looked at.
    for shift in 0..4 {
        let comment = format!("#{}{}\n", "x".repeat(shift), "漢".repeat(1000));
        let text = comment + "<http://a> <http://b> <http://c> .\n";
        for source in [
            Source::bytes("x.nt.gz", text.as_str()),
            Source::reader("x.gz", Cursor::new(text.clone())).with_format(Format::NTriples),
        ] {
            assert_eq!(collect(vec![source], &options(1, 8)).unwrap().1.quads, 1);
        }
    }
}

#[test]
fn documents_without_statements_declare_their_prefixes() {
    let declared = |text: &str, format: Format, lenient: bool| {
        let source = Source::bytes("x", text).with_format(format);
        let options = LoadOptions {
            lenient,
            ..options(1, 8)
        };
        let (_, report) = collect(vec![source], &options).unwrap();
        assert_eq!(report.quads, 0, "{text}");
        report.prefixes
    };
    let xml = "<!DOCTYPE r [<!ENTITY n \"http://n/\">]>\n<r:RDF\n xmlns:r='http://www.w3.org/1999/02/22-rdf-syntax-ns#'\n xmlns='http://d/' \
               xmlns:e=\"http://e/?a&amp;b\" xmlns:n='&n;' xmlns:relative='x' e:not='one'>\n</r:RDF>";
    let long = format!(
        "<r:RDF xmlns:e='http://e/{}' xmlns:r='http://www.w3.org/1999/02/22-rdf-syntax-ns#'/>",
        "x".repeat(300)
    );
    let rdf = "http://www.w3.org/1999/02/22-rdf-syntax-ns#";
    for (text, format, expected) in [
        (
            "@prefix e: <http://e/> . PREFIX : <http://d/>",
            Format::Turtle,
            &[("", "http://d/"), ("e", "http://e/")][..],
        ),
        (
            "# none\n@prefix e: <http://e/> . e:g {}",
            Format::TriG,
            &[("e", "http://e/")],
        ),
        (
            xml,
            Format::RdfXml,
            &[("", "http://d/"), ("e", "http://e/?a&b"), ("r", rdf)],
        ),
        (&long, Format::RdfXml, &[("r", rdf)]),
        (
            r#"{"@context": {"e": "http://e/"}}"#,
            Format::JsonLd,
            &[("e", "http://e/")],
        ),
        (
            r#"{"@context": {"e": "http://e/"}, "@graph": []}"#,
            Format::JsonLd,
            &[("e", "http://e/")],
        ),
    ] {
        let expected: Vec<_> = expected
            .iter()
            .map(|(name, iri)| ((*name).to_owned(), (*iri).to_owned()))
            .collect();
        for lenient in [false, true] {
            assert_eq!(declared(text, format, lenient), expected, "{text}");
        }
    }
}

#[test]
fn members_frames_and_streams_behind_one_another_are_all_read() {
    for (compression, suffix) in COMPRESSIONS {
        let mut data = Vec::new();
        for i in 0..3 {
            let line = format!("<http://a> <http://b> <http://c/{i}> .\n");
            data.extend(compress(line.as_bytes(), compression));
        }
        let source = Source::bytes(format!("x.nt{suffix}"), data);
        assert_eq!(
            collect(vec![source], &options(1, 20)).unwrap().1.quads,
            3,
            "{suffix}"
        );
    }
}

#[test]
fn damaged_compressed_data_is_an_error_that_names_file_and_compression() {
    let text = "<http://a> <http://b> <http://c> .\n".repeat(1000);
    for (compression, suffix) in COMPRESSIONS.into_iter().skip(1) {
        for ending in ["nt", "ttl"] {
            let whole = compress(text.as_bytes(), compression);
            let name = format!("x.{ending}{suffix}");
            for data in [
                whole[..whole.len() / 2].to_vec(),
                Vec::new(),
                b"no text\0".to_vec(),
            ] {
                let lenient = LoadOptions {
                    lenient: true,
                    ..options(1, 100)
                };
                let error =
                    collect(vec![Source::bytes(name.as_str(), data)], &lenient).unwrap_err();
                assert!(
                    matches!(&error, IngestError::Decompress { compression: c, .. } if *c == compression),
                    "{name}: {error:?}"
                );
                assert!(error.to_string().starts_with(&name), "{error}");
            }
        }
    }
}

#[test]
fn what_cannot_be_opened_is_told_before_anything_is_parsed() {
    let dir = tempfile::tempdir().unwrap();
    let unread = || Source::reader("first.nt", PanicsWhenRead);
    for (source, expected) in [
        (Source::path(dir.path().join("data.csv")), "No such file"),
        (
            Source::path(dir.path()).with_format(Format::Turtle),
            "directory",
        ),
        (Source::bytes("data.csv", ""), "--format"),
        (Source::stdin(), "--format"),
        (
            Source::bytes("x.ttl", "").with_base_iri("relative"),
            "base IRI",
        ),
    ] {
        let name = source.name().to_owned();
        let error = collect(vec![unread(), source], &options(1, 100))
            .unwrap_err()
            .to_string();
        assert!(error.contains(expected) && error.contains(&name), "{error}");
    }
    let error = collect(vec![Source::bytes("data.csv", "")], &options(1, 1)).unwrap_err();
    assert!(error.to_string().contains(".jsonld"), "{error}");
}

struct PanicsWhenRead;

impl io::Read for PanicsWhenRead {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        panic!("nothing should be read")
    }
}

struct FailsAfter(usize);

impl io::Read for FailsAfter {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if self.0 == 0 {
            return Err(io::Error::other("the disk is on fire"));
        }
        self.0 -= 1;
        buf[0] = b'#';
        Ok(1)
    }
}

#[test]
fn a_read_error_names_the_file() {
    for name in ["x.nt", "x.ttl"] {
        let error =
            collect(vec![Source::reader(name, FailsAfter(50))], &options(2, 10)).unwrap_err();
        assert!(matches!(error, IngestError::Io { .. }), "{error:?}");
        assert_eq!(error.to_string(), format!("{name}: the disk is on fire"));
    }
}

#[test]
fn errors_name_file_line_and_column() {
    let line = "<http://a> <http://b> \"é\" .\n";
    for (name, text, expected) in [
        (
            "x.nt",
            format!("{line}\n# c\r\n{line}<http://a> <http://b> \"é\" <x> .\n"),
            (5, 27),
        ),
        ("x.nq", format!("{line}<http://a> b <c> .\n"), (2, 12)),
        (
            "x.ttl",
            "@prefix a: <http://a/> .\na:é a:p é .\n".to_owned(),
            (2, 9),
        ),
        (
            "x.trig",
            "{\n<http://a> <http://b> <http://c d> }".to_owned(),
            (2, 23),
        ),
    ] {
        for threads in [1, 3] {
            let source = Source::bytes(name, text.as_str());
            let error = collect(vec![source], &options(threads, 10)).unwrap_err();
            assert_eq!(
                position(&error),
                (Some(expected.0), Some(expected.1)),
                "{error}"
            );
            let shown = error.to_string();
            assert!(
                shown.starts_with(&format!("{name}:{}:{}: ", expected.0, expected.1)),
                "{shown}"
            );
            assert!(!shown.contains("Parser error"), "{shown}");
        }
    }
}

#[test]
fn rdf_xml_and_json_ld_errors_have_the_line_that_is_known() {
    let text = RDF_XML.replace("<a:p>", "\n\n<a:q>");
    let error = collect(vec![Source::bytes("x.rdf", text)], &options(1, 10)).unwrap_err();
    assert_eq!(position(&error), (Some(3), None), "{error}");
    let error = collect(
        vec![Source::bytes("x.json", "{\n\"@id\": ]}")],
        &options(1, 10),
    );
    assert_eq!(position(&error.unwrap_err()).0, Some(2));
}

#[test]
fn the_first_error_of_a_file_is_told_on_any_number_of_threads() {
    let mut text = String::new();
    for i in 0..500 {
        // Every line from 100 on is bad.
        let object = if i < 99 { "<http://c>" } else { "bad" };
        text.push_str(&format!("<http://a/{i}> <http://b> {object} .\n"));
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.nt");
    fs::write(&path, &text).unwrap();
    for _ in 0..50 {
        let sources = [Source::path(&path), Source::bytes("x.nt", text.as_str())];
        for source in sources {
            let error = collect(vec![source], &options(4, 50)).unwrap_err();
            assert_eq!(position(&error).0, Some(100), "{error}");
        }
    }
}

#[test]
fn lenient_loads_what_it_can_and_tells_what_it_left_out() {
    let options = LoadOptions {
        lenient: true,
        max_reported_errors: 4,
        ..options(2, 30)
    };
    let sources = vec![
        Source::bytes(
            "a.nt",
            "<http://a> <http://b> <http://c> .\nbad\nbad\n<http://a> bad\n",
        ),
        Source::bytes(
            "b.ttl",
            "<http://a> <http://b> <http://d> .\n<http://a> bad .\n<http://a> <http://b> <http://e> .\n",
        ),
        Source::bytes("c.rdf", RDF_XML.replace("</rdf:RDF>", "</oops>")),
        Source::bytes(
            "d.json",
            "[{\"@id\": \"http://a/s\", \"http://a/p\": \"o\"}, oops",
        ),
    ];
    let (quads, report) = collect(sources, &options).unwrap();
    for object in ["c", "d", "e"] {
        let quad = format!("<http://a> <http://b> <http://{object}>");
        assert!(quads.contains(&quad), "{quad} is not in {quads:?}");
    }
    assert_eq!(report.skipped, 6);
    let told: Vec<_> = report
        .errors
        .iter()
        .map(|s| (&*s.error.file, s.error.line, s.rest_dropped))
        .collect();
    assert_eq!(
        told,
        [
            ("a.nt", Some(2), false),
            ("a.nt", Some(3), false),
            ("a.nt", Some(4), false),
            ("b.ttl", Some(2), false)
        ]
    );
}

#[test]
fn lenient_stores_nothing_of_a_statement_that_cannot_be_read() {
    let options = LoadOptions {
        lenient: true,
        ..options(1, 30)
    };
    let good = "<http://a/s> <http://a/p> <http://a/GOOD>";
    for bad in [
        "<http://a> <http://b> \"x\"@en_US .",
        "<http://a> <http://b> \"x\"@en-US-.",
        "<http://a> <http://b> 1, 2, bad .",
        "<http://a> <http://b> 1 ; <http://c> 2 ; <d> 3 .",
        "<http://a> <http://b> 1 ;\n<http://c> 1.5, oops ;\n<http://d> 2 .",
        "<http://a> <http://b> ( 1 2 <http://c d> ) .",
        "<http://a> <http://b> [ <http://c> 1 ; <http://d> ] .",
        "<http://a> <http://b> [ <http://c> 1 .",
        "<http://a> <http://b> 1, \"not closed .\n",
        "<http://a> <http://b> 1, <not closed .",
        "<http://a> <http://b> 1 <http://c> .",
        "<http://a> <http://b> 1, e:unknown .",
        "<http://a> <http://b> 1, 'x'^^<> .",
    ] {
        // On lines of their own, and on one.
        for between in ["\n", " "] {
            let text = [good, " .", between, bad, between].concat();
            let after = good.replace("GOOD", "AFTER");
            // The parser finds its way back at the next point.
            let text = [&text, ".", between, &after, " ."].concat();
            let source = Source::bytes("x.ttl", text.clone());
            let (quads, report) = collect(vec![source], &options).unwrap();
            assert!(report.skipped >= 1, "{text}");
            let stored = |quad: &String| quad == good || *quad == after;
            assert!(quads.iter().all(stored), "{text}: {quads:?}");
            assert!(quads.iter().any(|quad| quad == good), "{text}: {quads:?}");
        }
    }
    let text = format!("{good} . <http://g> {{ {good} . {good}, 1, bad . {good} }}");
    let (quads, report) = collect(vec![Source::bytes("x.trig", text)], &options).unwrap();
    assert_eq!((quads.len(), report.skipped), (3, 1), "{quads:?}");
}

#[test]
fn a_lenient_load_of_good_documents_has_all_of_them() {
    let lenient = LoadOptions {
        lenient: true,
        ..options(1, 30)
    };
    let statement = |n: usize| {
        format!(
            "e:s{n} e:p {n}, {n}.5, \"a . b\", 'c'@en-GB, [ e:q ( 1 2.0 'x' ) ], _:b{n}.\n\
             <s{n}>e:p\"\"\"a\" .\n\"\"\"^^e:t.<x{n}> a e:T{n}\\. . # . a comment\n"
        )
    };
    let statements: String = (0..3000).map(statement).collect();
    let turtle = format!("@prefix e: <http://e/>.\nBASE <http://b/>\n{statements}");
    let trig = format!("{turtle} <g> {{ {statements} e:s e:p 1 }} e:h {{}} {{ e:s e:p 2 }}");
    for (name, text) in [("x.ttl", turtle), ("x.trig", trig)] {
        let load = |options: &LoadOptions| {
            let source = Source::bytes(name, text.clone());
            collect(vec![source], options).expect("it is good")
        };
        let (mut expected, _) = load(&options(1, 30));
        let (mut found, report) = load(&lenient);
        assert_eq!(report.skipped, 0, "{name}: {:?}", report.errors);
        assert!(found.len() > 30_000, "{name}");
        expected.sort();
        found.sort();
        assert!(found == expected, "{name}");
    }
}

#[test]
fn contexts_that_are_known_are_read_and_others_are_named() {
    let schema =
        r#"{"@context": "https://schema.org/", "@id": "http://a", "@type": "Person", "name": "x"}"#;
    let (quads, _) = collect(vec![Source::bytes("x.jsonld", schema)], &options(1, 1)).unwrap();
    assert_eq!(
        quads,
        [
            "<http://a> <http://schema.org/name> \"x\"",
            "<http://a> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <http://schema.org/Person>",
        ]
    );
    let unknown = r#"{"@context": ["http://c/", {}], "@id": "http://a", "p": "x"}"#;
    let scoped =
        r#"{"@context": {"t": {"@id": "http://t", "@context": "http://c/"}}, "t": {"p": 1}}"#;
    for (text, predicate) in [(unknown, "<http://p>"), (scoped, "<http://p>")] {
        let error = collect(vec![Source::bytes("x.jsonld", text)], &options(1, 1)).unwrap_err();
        let said = error.to_string();
        assert!(said.contains("--context http://c/=FILE"), "{said}");
        let given = Contexts::default().with("http://c/", r#"{"@context": {"p": "http://p"}}"#);
        let options = LoadOptions {
            contexts: given.unwrap(),
            ..options(1, 1)
        };
        let (quads, _) = collect(vec![Source::bytes("x.jsonld", text)], &options).unwrap();
        assert!(
            quads.iter().any(|quad| quad.contains(predicate)),
            "{quads:?}"
        );
    }
}

#[test]
fn contexts_that_are_named_cost_what_they_would_in_their_place() {
    let circle = r#"{"@context": ["http://c/", {"p": "http://p"}]}"#;
    let term = |n: usize| format!("\"t{n}\": \"t{}:x\"", n + 1);
    let terms: Vec<String> = (0..100).map(term).collect();
    let deep = format!("{{\"@context\": {{{}}}}}", terms.join(", "));
    for (context, said) in [(circle, "name each other"), (deep.as_str(), "deep")] {
        let options = LoadOptions {
            contexts: Contexts::default().with("http://c/", context).unwrap(),
            ..options(1, 1)
        };
        let text = r#"{"@context": "http://c/", "@id": "http://a", "p": "x"}"#;
        let error = collect(vec![Source::bytes("x.jsonld", text)], &options).unwrap_err();
        assert!(error.to_string().contains(said), "{error}");
    }
    // Each use of a large one costs as much as its terms do.
    let one = r#"{"@context": "https://schema.org", "name": "x"}"#;
    let many = format!("[{}]", [one; 2000].join(","));
    let error = collect(vec![Source::bytes("x.jsonld", many)], &options(1, 1)).unwrap_err();
    assert!(error.to_string().contains("steps"), "{error}");
}

#[test]
fn lenient_drops_the_rest_of_rdf_xml_and_says_so() {
    let options = LoadOptions {
        lenient: true,
        ..options(1, 30)
    };
    let source = Source::bytes("c.rdf", RDF_XML.replace("</rdf:RDF>", "</oops>"));
    let (quads, report) = collect(vec![source], &options).unwrap();
    assert_eq!(quads.len(), 1);
    assert!(report.errors[0].rest_dropped);
}

#[test]
fn blank_nodes_are_scoped_by_document() {
    let options = LoadOptions {
        blank_scope_start: 7,
        ..options(2, 10)
    };
    let sources = vec![
        Source::bytes("a.nt", "_:x <http://p> _:\u{e9}.1 .\n"),
        Source::bytes(
            "b.nq",
            "_:x <http://p> _:abc <http://g> .\n_:x <http://p> _:y _:g .",
        ),
        Source::bytes("c.ttl", "_:x <http://p> [ <http://q> ( 1 ) ] ."),
        Source::bytes("d.trig", "_:g { _:x <http://p> [] }"),
    ];
    let (quads, report) = collect(sources, &options).unwrap();
    let rdf = "http://www.w3.org/1999/02/22-rdf-syntax-ns#";
    let integer = "http://www.w3.org/2001/XMLSchema#integer";
    let mut expected = vec![
        "_:f7_x <http://p> _:f7_\u{e9}.1".to_owned(),
        "_:f8_x <http://p> _:f8_abc <http://g>".to_owned(),
        "_:f8_x <http://p> _:f8_y _:f8_g".to_owned(),
        "_:f9_x <http://p> _:f9-0".to_owned(),
        "_:f9-0 <http://q> _:f9-1".to_owned(),
        format!("_:f9-1 <{rdf}first> \"1\"^^<{integer}>"),
        format!("_:f9-1 <{rdf}rest> <{rdf}nil>"),
        "_:f10_x <http://p> _:f10-0 _:f10_g".to_owned(),
    ];
    expected.sort();
    // Which of the anonymous nodes is first seen is the parser's affair; the names are its only
    // freedom.
    let mut swapped: Vec<_> = expected
        .iter()
        .map(|q| {
            q.replace("f9-0", "f9-?")
                .replace("f9-1", "f9-0")
                .replace("f9-?", "f9-1")
        })
        .collect();
    swapped.sort();
    assert!(quads == expected || quads == swapped, "{quads:#?}");
    assert_eq!(report.next_blank_scope, 11);
}

#[test]
fn anonymous_nodes_get_the_same_names_each_time() {
    let text = "[] <http://p> [ <http://q> (1 2 [ <http://r> 3 ]) ] . [ <http://s> 4 ] .";
    let load = || {
        collect(vec![Source::bytes("x.ttl", text)], &options(1, 10))
            .unwrap()
            .0
    };
    assert_eq!(load(), load());
}

#[test]
fn relative_iris_are_resolved_against_the_file_or_the_base_given() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a b.ttl");
    fs::write(&path, "<> <#p> <c> .").unwrap();
    let (quads, _) = collect(vec![Source::path(&path)], &options(1, 1)).unwrap();
    let base = format!("file://{}", dir.path().display());
    assert_eq!(
        quads,
        [format!(
            "<{base}/a%20b.ttl> <{base}/a%20b.ttl#p> <{base}/c>"
        )]
    );
    let source = Source::path(&path).with_base_iri("http://x/y");
    let (quads, _) = collect(vec![source], &options(1, 1)).unwrap();
    assert_eq!(quads, ["<http://x/y> <http://x/y#p> <http://x/c>"]);
    assert!(
        collect(
            vec![Source::bytes("x.ttl", "<> <#p> <c> .")],
            &options(1, 1)
        )
        .is_err()
    );
}

#[test]
fn dots_in_the_path_of_a_base_are_resolved() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("a")).unwrap();
    fs::write(dir.path().join("x.ttl"), "<> <#p> <c> .").unwrap();
    let path = dir.path().join("a/./../x.ttl");
    let (quads, _) = collect(vec![Source::path(&path)], &options(1, 1)).unwrap();
    let base = format!("file://{}", dir.path().display());
    assert_eq!(
        quads,
        [format!("<{base}/x.ttl> <{base}/x.ttl#p> <{base}/c>")]
    );
    let given = || Source::bytes("x.ttl", "<> <#p> <../c> .").with_base_iri("http://x/a/../y/.");
    let (quads, _) = collect(vec![given()], &options(1, 1)).unwrap();
    assert_eq!(quads, ["<http://x/y/> <http://x/y/#p> <http://x/c>"]);
}

#[test]
fn bases_in_rdf_xml_are_relative_to_those_around() {
    let about = |base: &str, inside: &str| {
        format!(
            "<rdf:Description rdf:about='x' xml:base='{base}'><a:p>o</a:p>{inside}</rdf:Description>"
        )
    };
    let inner = format!("<a:q>{}</a:q>", about("../d&amp;e/", ""));
    let text = format!(
        "<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#' xmlns:a='http://a/' \
         xml:base='/b/c/../'>{}{}{}{}</rdf:RDF>",
        about("f/g/", &inner),
        about("", "<a:r rdf:parseType='Literal'><b xml:base='z'/></a:r>"),
        about("http://e/h/../i/", ""),
        "<rdf:Description rdf:about='y'><a:p>o</a:p></rdf:Description>",
    );
    let source = Source::bytes("x.rdf", text).with_base_iri("http://d/document");
    let (quads, _) = collect(vec![source], &options(1, 1)).unwrap();
    assert_eq!(
        quads,
        [
            "<http://d/b/f/d&e/x> <http://a/p> \"o\"",
            "<http://d/b/f/g/x> <http://a/p> \"o\"",
            "<http://d/b/f/g/x> <http://a/q> <http://d/b/f/d&e/x>",
            "<http://d/b/x> <http://a/p> \"o\"",
            "<http://d/b/x> <http://a/r> \"<b xml:base=\\\"z\\\"></b>\"^^<http://www.w3.org/1999/\
             02/22-rdf-syntax-ns#XMLLiteral>",
            "<http://d/b/y> <http://a/p> \"o\"",
            "<http://e/i/x> <http://a/p> \"o\"",
        ]
    );
}

#[test]
fn a_byte_order_mark_is_passed_over_in_every_format_however_it_comes() {
    let dir = tempfile::tempdir().unwrap();
    for (ending, text) in ONE_TRIPLE {
        let marked = format!("\u{feff}{text}");
        for (compression, suffix) in COMPRESSIONS {
            let name = format!("data.{ending}{suffix}");
            let bytes = compress(marked.as_bytes(), compression);
            let path = dir.path().join(&name);
            fs::write(&path, &bytes).unwrap();
            for (lenient, chunk_bytes) in [(false, 2), (false, 1000), (true, 3)] {
                let options = LoadOptions {
                    lenient,
                    ..options(3, chunk_bytes)
                };
                for source in [
                    Source::path(&path),
                    Source::bytes(name.as_str(), bytes.clone()),
                    Source::reader(name.as_str(), io::Cursor::new(bytes.clone())),
                ] {
                    let (quads, report) = collect(vec![source], &options).unwrap();
                    assert_eq!(quads, ["<http://a/s> <http://a/p> \"o\""], "{name}");
                    assert_eq!(report.skipped, 0, "{name}");
                }
            }
        }
    }
}

#[test]
fn a_target_graph_takes_the_statements_that_name_none() {
    let graph = NamedNode::new("http://g").unwrap();
    let options = LoadOptions {
        graph: Some(graph),
        ..options(1, 1000)
    };
    let text = "<http://a> <http://b> <http://c> .\n";
    for name in ["x.nt", "x.ttl", "x.nq", "x.trig"] {
        let (quads, _) = collect(vec![Source::bytes(name, text)], &options).unwrap();
        assert_eq!(
            quads,
            ["<http://a> <http://b> <http://c> <http://g>"],
            "{name}"
        );
    }
    let named = Source::bytes("x.nq", "<http://a> <http://b> <http://c> <http://h> .");
    let (quads, _) = collect(vec![named], &options).unwrap();
    assert_eq!(quads, ["<http://a> <http://b> <http://c> <http://h>"]);
}

#[test]
fn many_files_on_many_threads_give_the_same_quads() {
    let dir = tempfile::tempdir().unwrap();
    let mut paths: Vec<PathBuf> = Vec::new();
    for file in 0..12 {
        let mut text = String::new();
        for i in 0..200 {
            text.push_str(&format!("<http://a/{file}> <http://b> _:n{i} .\n"));
        }
        let (compression, suffix) = COMPRESSIONS[file % 4];
        let ending = if file % 3 == 0 { "ttl" } else { "nt" };
        let path = dir.path().join(format!("{file}.{ending}{suffix}"));
        fs::write(&path, compress(text.as_bytes(), compression)).unwrap();
        paths.push(path);
    }
    let sources = || paths.iter().map(Source::path).collect::<Vec<_>>();
    let (expected, _) = collect(sources(), &options(1, 1 << 20)).unwrap();
    assert_eq!(expected.len(), 12 * 200);
    for threads in [2, 3, 8] {
        for chunk_bytes in [7, 100, 5000] {
            assert_eq!(
                collect(sources(), &options(threads, chunk_bytes))
                    .unwrap()
                    .0,
                expected
            );
        }
    }
}

#[test]
fn a_line_longer_than_a_chunk_is_read_and_one_longer_than_the_bound_refused() {
    let text = format!("# c\n<http://a> <http://b> \"{}\" .\n", "x".repeat(10_000));
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.nt");
    fs::write(&path, &text).unwrap();
    for source in [
        |p: &PathBuf| Source::path(p),
        |p: &PathBuf| Source::reader("x.nt", fs::File::open(p).unwrap()),
    ] {
        assert_eq!(
            collect(vec![source(&path)], &options(2, 64))
                .unwrap()
                .1
                .quads,
            1
        );
        let bounded = LoadOptions {
            max_line_bytes: 1000,
            ..options(2, 64)
        };
        let error = collect(vec![source(&path)], &bounded).unwrap_err();
        assert!(
            matches!(
                error,
                IngestError::TooLong {
                    limit_bytes: 1000,
                    line: Some(2),
                    ..
                }
            ),
            "{error:?}"
        );
    }
}

#[derive(Debug, thiserror::Error)]
#[error("full after {0}")]
struct Full(u64);

struct Bounded(u64);

impl QuadSink for Bounded {
    type Error = Full;

    fn quad(&mut self, _: QuadRef<'_>) -> Result<(), Full> {
        self.0 += 1;
        if self.0 > 3 { Err(Full(3)) } else { Ok(()) }
    }
}

#[test]
fn a_sink_that_refuses_a_quad_ends_the_load_with_its_own_error() {
    let text = "<http://a> <http://b> <http://c> .\n".repeat(100);
    for name in ["x.nt", "x.ttl"] {
        let source = Source::bytes(name, text.as_str());
        let lenient = LoadOptions {
            lenient: true,
            ..options(3, 50)
        };
        let result = load(vec![source], &lenient, |_| Bounded(0), &Progress::default());
        let Err(IngestError::Sink { source, file }) = result.map(|_| ()) else {
            panic!()
        };
        assert_eq!((&*file, source.downcast::<Full>().unwrap().0), (name, 3));
    }
}

struct Panics;

impl QuadSink for Panics {
    type Error = Full;

    fn quad(&mut self, _: QuadRef<'_>) -> Result<(), Full> {
        panic!("the sink is broken")
    }
}

#[test]
#[should_panic(expected = "the sink is broken")]
fn a_sink_that_panics_does_not_leave_the_other_threads_waiting() {
    let text = "<http://a> <http://b> <http://c> .\n".repeat(100);
    let sources = vec![
        Source::bytes("x.nt", text.as_str()),
        Source::bytes("x.ttl", text),
    ];
    let _ = load(sources, &options(3, 50), |_| Panics, &Progress::default());
}

#[test]
fn nothing_to_load_is_nothing_loaded() {
    let (sinks, report) = load(
        vec![],
        &options(2, 1),
        |_| Collect::default(),
        &Progress::default(),
    )
    .unwrap();
    assert_eq!((sinks.len(), report.quads), (2, 0));
    for (ending, _) in &ONE_TRIPLE[..8] {
        let source = Source::bytes(format!("x.{ending}"), "");
        assert_eq!(collect(vec![source], &options(1, 1)).unwrap().1.quads, 0);
    }
}

#[test]
fn citybench_static_files_load_without_complaint() {
    let folder = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../../shared/data/citybench/static"
    );
    let Ok(entries) = fs::read_dir(folder) else {
        println!("SKIPPED: CityBench's static files (…/shared/data is absent)");
        return;
    };
    let ontology = fs::read_dir(format!("{folder}/ontology")).unwrap();
    let mut files = 0;
    for entry in entries.chain(ontology) {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|e| e == "n3" || e == "owl") {
            let (quads, report) = collect(vec![Source::path(&path)], &options(1, 1 << 20))
                .unwrap_or_else(|e| panic!("{e}"));
            assert!(!quads.is_empty() && report.skipped == 0);
            files += 1;
        }
    }
    assert_eq!(files, 6);
}

#[test]
fn a_document_cut_short_is_an_error() {
    for (name, text) in [
        ("x.rdf", RDF_XML),
        ("x.json", JSON_LD),
        ("x.trig", "{ <http://a> <http://b> <http://c> . }"),
        ("x.ttl", "<http://a> <http://b> <http://c> ."),
        ("x.nq", "<http://a> <http://b> <http://c> ."),
    ] {
        for cut in 1..text.len() {
            let source = Source::bytes(name, &text[..cut]);
            let done = collect(vec![source], &options(1, 100));
            assert!(done.is_err(), "{name}: {}", &text[..cut]);
        }
    }
}

#[test]
fn lenient_puts_nothing_of_a_trig_document_into_the_wrong_graph() {
    let options = LoadOptions {
        lenient: true,
        ..options(1, 30)
    };
    let text =
        "<http://g> { <http://a> <http://b> 1 . <http://a> bad . <http://a> <http://b> 2 . }";
    let (quads, report) = collect(vec![Source::bytes("x.trig", text)], &options).unwrap();
    assert_eq!((quads.len(), report.skipped), (2, 1));
    let is_of_graph = |quad: &String| quad.ends_with(" <http://g>");
    assert!(quads.iter().all(is_of_graph), "{quads:?}");
    assert!(!report.errors[0].rest_dropped);
}

#[test]
fn an_entity_bomb_in_rdf_xml_is_a_syntax_error() {
    let mut text = String::from("<!DOCTYPE rdf:RDF [\n<!ENTITY e0 \"lol\">\n");
    for i in 1..12 {
        let value = format!("&e{};", i - 1).repeat(10);
        text.push_str(&format!("<!ENTITY e{i} \"{value}\">\n"));
    }
    text.push_str("]>");
    text.push_str(&RDF_XML.replace("<a:p>o", "<a:p>&e11;"));
    let error = collect(vec![Source::bytes("x.rdf", text)], &options(1, 1)).unwrap_err();
    // Three times ten to the third is more than the bound of 1024 bytes.
    assert_eq!(position(&error).0, Some(5), "{error}");
}

/// The objects that a document holds, sorted.
fn objects(name: &str, document: &str) -> Vec<String> {
    let source = Source::bytes(name, document.to_owned());
    let (quads, _) = collect(vec![source], &options(1, 1)).expect(document);
    let object = |quad: String| quad.splitn(3, ' ').nth(2).map(str::to_owned);
    quads.into_iter().filter_map(object).collect()
}

#[test]
fn xml_literals_of_rdf_xml_are_canonical_and_those_spelt_out_stay() {
    const NAMESPACE: &str = "http://www.w3.org/1999/02/22-rdf-syntax-ns#";
    let spelt = format!("<b xmlns:rdf=\"{NAMESPACE}\"></b>");
    let escaped = spelt.replace('<', "&lt;");
    let document = |properties: &str| {
        format!(
            "<rdf:RDF xmlns:rdf='{NAMESPACE}' xmlns:a='http://a/'>\
             <rdf:Description rdf:about='http://a/s'>{properties}</rdf:Description></rdf:RDF>"
        )
    };
    let typed = format!("<a:p rdf:datatype='{NAMESPACE}XMLLiteral'>{escaped}</a:p>");
    let text = format!("<a:q rdf:datatype='http://a/t'>{escaped}</a:q>");
    let shown =
        |text: &str, datatype: &str| format!("\"{}\"^^<{datatype}>", text.replace('"', "\\\""));
    let xml = |text: &str| shown(text, &format!("{NAMESPACE}XMLLiteral"));
    assert_eq!(objects("x.rdf", &document(&typed)), [xml(&spelt)]);
    let empty = "<a:p rdf:parseType=\"Literal\"/><a:q rdf:parseType='Literal'></a:q>";
    assert_eq!(objects("x.rdf", &document(empty)), [xml(""), xml("")]);
    let comment = "<a:p rdf:parseType='Literal'><!-- a --></a:p>";
    assert_eq!(objects("x.rdf", &document(comment)), [xml("<!-- a -->")]);
    let literal = "<a:p rdf:parseType='Literal'><b/><a:c d='e'>it's</a:c></a:p>";
    let canonical = "<b></b><a:c xmlns:a=\"http://a/\" d=\"e\">it's</a:c>";
    assert_eq!(
        objects("x.rdf", &document(&format!("{literal}{text}"))),
        [xml(canonical), shown(&spelt, "http://a/t"),]
    );
    let turtle = format!("<http://a/s> <http://a/parseType> {} .", xml(&spelt));
    assert_eq!(objects("x.ttl", &turtle), [xml(&spelt)]);
}

#[test]
fn rdf_xml_keeps_carriage_returns_that_are_references_and_no_others() {
    let document = |text: &str| {
        format!(
            "<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#' xmlns:a='http://a/'>\
             \r\n<rdf:Description rdf:about='http://a/s' a:p='{text}'/>\r<rdf:Description \
             rdf:about='http://a/s'><a:p>{text}</a:p></rdf:Description></rdf:RDF>"
        )
    };
    for (text, attribute, element) in [
        ("a\rb\r\nc\r\r\nd\te", "a b c  d e", "a\nb\nc\n\nd\te"),
        ("a&#13;b&#xD;&#xA;c&#9;d", "a\rb\r\nc\td", "a\rb\r\nc\td"),
        ("&#13;\r&#13;\n", "\r \r ", "\r\n\r\n"),
    ] {
        let mut expected = [attribute, element]
            .map(|text| oxrdf::LiteralRef::new_simple_literal(text).to_string());
        expected.sort();
        assert_eq!(objects("x.rdf", &document(text)), expected, "{text:?}");
    }
}

#[test]
fn rdf_xml_is_read_in_the_encoding_that_it_is_in() {
    let text = RDF_XML.replace("<a:p>o", "<a:p>é€");
    let text = text
        .split_once("?>")
        .map_or(text.as_str(), |(_, text)| text);
    let declared = |label: &str| format!("<?xml version='1.0' encoding='{label}'?>{text}");
    let load = |document: Vec<u8>| {
        let source = Source::bytes("x.rdf", document);
        collect(vec![source], &options(1, 1)).map(|(quads, _)| quads)
    };
    let plain = load(text.as_bytes().to_vec()).unwrap();
    assert!(plain.iter().any(|quad| quad.contains("é€")), "{plain:?}");
    let marked = format!("\u{feff}{}", declared("utf-16"));
    let utf16 = marked.encode_utf16().flat_map(u16::to_le_bytes).collect();
    assert_eq!(load(utf16).unwrap(), plain);
    let byte = |c: char| match c {
        'é' => 0xe9,
        '€' => 0x80,
        c => u8::try_from(c).unwrap(),
    };
    let windows = declared("windows-1252").chars().map(byte).collect();
    assert_eq!(load(windows).unwrap(), plain);
    let error = load(declared("klingon").into_bytes()).unwrap_err();
    assert_eq!(position(&error), (Some(1), None));
    assert!(
        error.to_string().contains("\"klingon\" is not known"),
        "{error}"
    );
}

#[test]
fn what_a_document_holds_goes_before_what_its_name_says() {
    const TRIPLE: &str = "<http://a/s> <http://a/p> \"o\"";
    let dir = tempfile::tempdir().unwrap();
    let quads = format!("{TRIPLE} .\n{TRIPLE} <http://a/g> .\n");
    for (name, text, likely, format) in [
        (
            "a.owl",
            ONE_TRIPLE[4].1,
            Some(Format::RdfXml),
            Format::Turtle,
        ),
        (
            "a.rdf",
            ONE_TRIPLE[0].1,
            Some(Format::RdfXml),
            Format::NTriples,
        ),
        ("a.xml", JSON_LD, Some(Format::RdfXml), Format::JsonLd),
        ("a.ttl", RDF_XML, Some(Format::Turtle), Format::RdfXml),
        (
            "a.nt",
            quads.as_str(),
            Some(Format::NTriples),
            Format::NQuads,
        ),
        (
            "a.json",
            ONE_TRIPLE[7].1,
            Some(Format::JsonLd),
            Format::TriG,
        ),
        ("README", ONE_TRIPLE[4].1, None, Format::Turtle),
        ("a.txt", RDF_XML, None, Format::RdfXml),
    ] {
        for (compression, suffix) in COMPRESSIONS {
            let bytes = compress(text.as_bytes(), compression);
            let path = dir.path().join(format!("{name}{suffix}"));
            fs::write(&path, &bytes).unwrap();
            for source in [
                Source::path(&path),
                Source::bytes(format!("{name}{suffix}"), bytes.clone()),
                Source::reader(format!("{name}{suffix}"), io::Cursor::new(bytes)),
            ] {
                let (quads, report) = collect(vec![source], &options(2, 40)).unwrap();
                assert_eq!(quads[0], TRIPLE, "{name}{suffix}");
                let said: Vec<_> = report
                    .mistaken
                    .iter()
                    .map(|it| (it.likely, it.format))
                    .collect();
                let expected: Vec<_> = likely.map(|likely| (likely, format)).into_iter().collect();
                assert_eq!(said, expected, "{name}{suffix}");
            }
            // What is said expressly holds.
            let wrong = match format {
                Format::RdfXml => Format::JsonLd,
                _ => Format::RdfXml,
            };
            let source = Source::path(&path).with_format(wrong);
            assert!(
                collect(vec![source], &options(1, 40)).is_err(),
                "{name}{suffix}"
            );
        }
    }
    let path = dir.path().join("page");
    fs::write(&path, "hello, world").unwrap();
    let error = collect(vec![Source::path(&path)], &options(1, 40)).unwrap_err();
    assert!(
        matches!(error, IngestError::UnknownFormat { .. }),
        "{error}"
    );
    let read = Source::bytes("x.rdf", ONE_TRIPLE[4].1).with_likely_format(Format::NTriples);
    let (_, report) = collect(vec![read], &options(1, 40)).unwrap();
    assert_eq!(report.mistaken[0].likely, Format::NTriples);
}

#[test]
fn shares_of_the_same_sources_are_all_of_them_together() {
    let dir = tempfile::tempdir().unwrap();
    let lines = |count: usize, name: &str| -> String {
        let line = |n: usize| {
            format!(
                "_:b{} <http://a/{name}> \"{}\" .\n",
                n % 7,
                "x".repeat(n % 60)
            )
        };
        (0..count).map(line).collect()
    };
    let turtle = "@prefix a: <http://a/> . a:s a:p [] , \"o\" .";
    let files = [
        ("long.nt", lines(500, "long").into_bytes()),
        ("one.nq", lines(1, "one").into_bytes()),
        ("none.nt", Vec::new()),
        ("a.ttl", turtle.as_bytes().to_vec()),
        (
            "packed.nt.gz",
            compress(lines(90, "packed").as_bytes(), Compression::Gzip),
        ),
        ("b.ttl", turtle.as_bytes().to_vec()),
    ];
    let sources = || {
        let paths = files
            .iter()
            .map(|(name, _)| Source::path(dir.path().join(name)));
        paths.collect::<Vec<_>>()
    };
    for (name, bytes) in &files {
        fs::write(dir.path().join(name), bytes).unwrap();
    }
    let sorted = |mut quads: Vec<String>| {
        quads.sort_unstable();
        quads
    };
    let (whole, report) = collect(sources(), &options(2, 64)).unwrap();
    for of in [1, 2, 3, 7] {
        let (mut all, mut read) = (Vec::new(), 0);
        for number in 0..of {
            let mut options = options(2, 64);
            options.share = Some(Share { number, of });
            let (quads, of_share) = collect(sources(), &options).unwrap();
            assert_eq!(of_share.next_blank_scope, report.next_blank_scope);
            read += of_share.quads;
            all.extend(quads);
        }
        assert_eq!(read, report.quads, "{of}");
        assert_eq!(sorted(all), sorted(whole.clone()), "{of}");
    }
}

#[test]
fn an_error_of_a_share_says_the_line_of_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("bad.nt");
    let line = |n: usize| match n {
        70 => "<http://a/s> <http://a/p> .\n".to_owned(),
        _ => format!("<http://a/s> <http://a/p> \"{}\" .\n", "x".repeat(n % 9)),
    };
    fs::write(&path, (0..100).map(line).collect::<String>()).unwrap();
    for (number, of) in [(0, 1), (2, 3), (1, 2), (3, 5)] {
        for chunk_bytes in [1, 100, 1 << 20] {
            let mut options = options(1, chunk_bytes);
            options.share = Some(Share { number, of });
            let error = collect(vec![Source::path(&path)], &options).unwrap_err();
            assert!(error.to_string().contains("bad.nt:71:"), "{error}");
        }
    }
}
