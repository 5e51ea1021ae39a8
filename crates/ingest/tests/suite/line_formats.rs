//! Does the parser for N-Triples and N-Quads agree with oxttl on every document?

use crate::common::{collect, options};
use jindou_ingest::{Format, IngestError, LoadOptions, Source};
use jindou_syntax::is_readable_iri;
use oxrdf::{BlankNode, GraphName, NamedOrBlankNode, Quad, Term};
use oxttl::{NQuadsParser, NTriplesParser, TurtleSyntaxError};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use std::fmt;
use std::io::Write;

fn oxttl_quads(format: Format, text: &[u8]) -> Vec<Result<Quad, TurtleSyntaxError>> {
    match format {
        Format::NTriples => NTriplesParser::new()
            .for_slice(text)
            .map(|t| Ok(t?.in_graph(GraphName::DefaultGraph)))
            .collect(),
        Format::NQuads => NQuadsParser::new().for_slice(text).collect(),
        other => panic!("{other} has no lines"),
    }
}

/// The quads of a line of which all IRIs can be read, though they may be odd.
fn odd_quads(format: Format, line: &[u8]) -> Option<Vec<Quad>> {
    let quads: Result<Vec<_>, _> = match format {
        Format::NTriples => NTriplesParser::new()
            .lenient()
            .for_slice(line)
            .map(|t| Ok::<_, TurtleSyntaxError>(t?.in_graph(GraphName::DefaultGraph)))
            .collect(),
        _ => NQuadsParser::new().lenient().for_slice(line).collect(),
    };
    let is_read = |quad: &Quad| {
        let subject = match &quad.subject {
            NamedOrBlankNode::NamedNode(node) => is_readable_iri(node.as_str()),
            NamedOrBlankNode::BlankNode(_) => true,
        };
        let graph = match &quad.graph_name {
            GraphName::NamedNode(node) => is_readable_iri(node.as_str()),
            GraphName::BlankNode(_) | GraphName::DefaultGraph => true,
        };
        let object = match &quad.object {
            Term::NamedNode(node) => is_readable_iri(node.as_str()),
            Term::Literal(literal) if literal.language().is_none() => {
                let datatype = literal.datatype().as_str();
                is_readable_iri(datatype) && !datatype.ends_with("ns#langString")
            }
            _ => true,
        };
        subject && graph && object && is_readable_iri(quad.predicate.as_str())
    };
    quads.ok().filter(|quads| quads.iter().all(is_read))
}

fn scoped(quad: Quad) -> String {
    let rename = |node: BlankNode| BlankNode::new(format!("f0_{}", node.as_str())).unwrap();
    Quad {
        subject: match quad.subject {
            NamedOrBlankNode::BlankNode(node) => rename(node).into(),
            node => node,
        },
        predicate: quad.predicate,
        object: match quad.object {
            Term::BlankNode(node) => rename(node).into(),
            term => term,
        },
        graph_name: match quad.graph_name {
            GraphName::BlankNode(node) => rename(node).into(),
            graph => graph,
        },
    }
    .to_string()
}

/// The lines as the grammar sees them: ended by LF, CR, or both.
fn split_lines(text: &[u8]) -> Vec<&[u8]> {
    let mut lines = Vec::new();
    let mut start = 0;
    let mut at = 0;
    while at < text.len() {
        let end = at;
        match text[at] {
            b'\r' if text.get(at + 1) == Some(&b'\n') => at += 2,
            b'\r' | b'\n' => at += 1,
            _ => {
                at += 1;
                continue;
            }
        }
        lines.push(&text[start..end]);
        start = at;
    }
    lines.push(&text[start..]);
    lines
}

/// Both ways to get at the text: as a stream and by offsets.
fn both_ways(format: Format, text: &[u8]) -> (Source, Source, tempfile::NamedTempFile) {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(text).unwrap();
    (
        Source::bytes("doc", text).with_format(format),
        Source::path(file.path()).with_format(format),
        file,
    )
}

/// The first line that oxttl refuses when it sees nothing else, counted from 1.
fn first_bad_line(format: Format, text: &[u8]) -> u64 {
    let is_bad = |line: &&[u8]| oxttl_quads(format, line).iter().any(Result::is_err);
    let line = split_lines(text).iter().position(is_bad);
    line.expect("oxttl refuses the whole") as u64 + 1
}

/// The text behind a mark of the byte order, which oxttl does not skip.
fn unmarked(text: &[u8]) -> &[u8] {
    text.strip_prefix("\u{feff}".as_bytes()).unwrap_or(text)
}

fn check_strict(format: Format, text: &[u8], options: &LoadOptions) {
    let (stream, file, _guard) = both_ways(format, text);
    let text = unmarked(text);
    let expected = oxttl_quads(format, text);
    let first_error = expected.iter().find_map(|r| r.as_ref().err());
    for source in [stream, file] {
        let found = collect(vec![source], options);
        match first_error {
            None => {
                let mut expected: Vec<_> = expected
                    .iter()
                    .map(|r| scoped(r.as_ref().unwrap().clone()))
                    .collect();
                expected.sort();
                assert_eq!(found.expect("oxttl accepts it").0, expected);
            }
            Some(e) => {
                let error = found.expect_err("oxttl refuses it");
                let IngestError::Syntax(error) = error else {
                    panic!("{error}")
                };
                let line = error.line.unwrap();
                assert_eq!(line, first_bad_line(format, text), "{error}");
                // An unclosed IRI runs on into the next lines for oxttl.
                let oxttl_line = e.location().start.line + 1;
                assert!(line <= oxttl_line, "ours: {error}, oxttl: {e}");
            }
        }
    }
}

fn check_lenient(format: Format, text: &[u8], options: &LoadOptions) {
    let options = LoadOptions {
        lenient: true,
        ..options.clone()
    };
    let (stream, file, _guard) = both_ways(format, text);
    let text = unmarked(text);
    let mut quads = Vec::new();
    let mut bad = Vec::new();
    for (number, line) in split_lines(text).into_iter().enumerate() {
        match oxttl_quads(format, line)
            .into_iter()
            .collect::<Result<Vec<_>, _>>()
        {
            Ok(found) => quads.extend(found.into_iter().map(scoped)),
            Err(_) if let Some(odd) = odd_quads(format, line) => {
                quads.extend(odd.into_iter().map(scoped));
            }
            Err(e) => bad.push((number as u64 + 1, e.location().start.column + 1)),
        }
    }
    quads.sort();
    for source in [stream, file] {
        let (found, report) = collect(vec![source], &options).unwrap();
        assert_eq!(found, quads);
        assert_eq!(report.skipped, bad.len() as u64);
        let found_bad: Vec<_> = report
            .errors
            .iter()
            .map(|s| (s.error.line.unwrap(), s.error.column.unwrap()))
            .collect();
        let described = bad.len().min(options.max_reported_errors);
        assert_eq!(found_bad, bad[..described]);
    }
}

fn iri() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "<http://(a|a\\.b|x:80|u@h|\\[::1\\])(/[a-c:@é%.~!]{0,12})?(\\?[a-c/?]{0,3})?(#[a-c/?#]{0,4})?>",
        2 => select(vec![
            "<urn:x>", "<mailto:a@b>", "<http://a/%41>", "<http://a/%4>", "<http://a/\\u00e9>",
            "<http://a/\\U0001F600>", "<http://a/\\uD800>", "<rel>", "<>", "<a:>", "<http://a/ b>",
            "<http://a/{}>", "<http://a/|>", "<http://ü.de/>", "<1:a>", "<http://a:b>",
            "<http://www.w3.org/2001/XMLSchema#string>", "<http://a/\u{e000}>", "<<http://a>",
            "<http://www.w3.org/1999/02/22-rdf-syntax-ns#langString>",
        ]).prop_map(str::to_owned),
    ]
}

fn blank() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => "_:[a-cA-Z0-9_][a-c0-9_-]{0,6}",
        1 => "_:[a-cé·0.:_-]{0,6}",
    ]
}

fn literal() -> impl Strategy<Value = String> {
    let text = prop_oneof![
        4 => "[a-zé'. 😀\t]{0,20}",
        1 => "([a-c]|\\\\[tbnrf\"'\\\\]|\\\\u00[eE]9|\\\\U0001F600){0,8}",
        1 => "([a-c]|\\\\[xuU0]|\\\\uD800|\\\\u12g4|\"|\r){0,5}",
    ];
    let kind = prop_oneof![
        3 => Just(String::new()),
        2 => iri().prop_map(|iri| format!("^^{iri}")),
        2 => "@(en|EN|de-CH|zh-Hant|x-private|a|art-lojban|en-us-x-y|en--ltr|en-|1|sl-rozaj-biske|eng-GB)",
        1 => "@[a-zA-Z0-9-]{0,9}",
        1 => "\\^ ?\\^?",
    ];
    (text, kind).prop_map(|(text, kind)| format!("\"{text}\"{kind}"))
}

fn line() -> impl Strategy<Value = String> {
    let node = || prop_oneof![3 => iri(), 1 => blank()];
    let object = prop_oneof![2 => iri(), 1 => blank(), 3 => literal()];
    let graph = prop_oneof![3 => Just(String::new()), 1 => iri(), 1 => blank(), 1 => literal()];
    let gap = || prop_oneof![6 => Just(" "), 1 => Just(""), 1 => Just("\t "), 1 => Just("\r")];
    let end = prop_oneof![
        8 => Just(".".to_owned()), 1 => Just(String::new()), 1 => Just("..".to_owned()),
        1 => Just(". # é".to_owned()), 1 => Just(".#\ra".to_owned()), 1 => Just(".5".to_owned()),
        1 => Just(" . <http://a> <http://b> <http://c> .".to_owned()), 1 => Just("# x".to_owned()),
    ];
    let eol = prop_oneof![6 => Just("\n"), 2 => Just("\r\n"), 1 => Just("\r"), 1 => Just("\r\r\n")];
    let statement = (
        node(),
        gap(),
        iri(),
        gap(),
        object,
        gap(),
        graph,
        gap(),
        end,
    )
        .prop_map(|(s, a, p, b, o, c, g, d, e)| format!("{s}{a}{p}{b}{o}{c}{g}{d}{e}"));
    let plain = ("[a-d]{1,3}", "[a-d]", "[a-d]{1,4}")
        .prop_map(|(s, p, o)| format!("<http://a/{s}> <http://a/{p}> <http://a/{o}> ."));
    let other = select(vec![
        "",
        " ",
        "#",
        "# comment é",
        "\t#",
        "x",
        "\u{feff}",
        "@prefix a: <b> .",
    ])
    .prop_map(str::to_owned);
    (prop_oneof![2 => statement, 6 => plain, 1 => other], eol)
        .prop_map(|(line, eol)| format!("{line}{eol}"))
}

/// Shows as text in failures.
#[derive(Clone)]
struct Text(Vec<u8>);

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "b\"{}\"", self.0.escape_ascii())
    }
}

/// Documents most of which hold no more than one or two errors.
fn document() -> impl Strategy<Value = Text> {
    let junk: Vec<&'static [u8]> = vec![
        b"<", b">", b"\"", b"\\", b"\n", b"\r", b" ", b".", b"_:", b"@", b"^^", b"#", b"\xff",
        b"\xc3", b"\0", b"\x1f", b"%", b":", b"a", b"\"\"\"", b"<<(", b"'",
    ];
    let edits = prop_oneof![
        3 => vec((any::<Index>(), select(junk.clone()), 0_usize..3), 0..1),
        1 => vec((any::<Index>(), select(junk), 0_usize..3), 1..3),
    ];
    (vec(line(), 0..8), edits, any::<bool>()).prop_map(|(lines, edits, cut)| {
        let mut text = lines.concat().into_bytes();
        for (index, bytes, remove) in edits {
            let at = index.index(text.len() + 1);
            let to = text.len().min(at + remove);
            text.splice(at..to, bytes.iter().copied());
        }
        if cut && text.last() == Some(&b'\n') {
            text.pop();
        }
        Text(text)
    })
}

fn cases() -> u32 {
    std::env::var("JINDOU_FUZZ_CASES")
        .ok()
        .map_or(512, |n| n.parse().expect("a number"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases()))]

    #[test]
    fn agrees_with_oxttl(
        text in document(), quads in any::<bool>(), threads in 1_usize..4, chunk in 1_usize..300
    ) {
        let format = if quads { Format::NQuads } else { Format::NTriples };
        check_strict(format, &text.0, &options(threads, chunk));
    }

    #[test]
    fn lenient_leaves_out_just_the_lines_that_cannot_be_read(
        text in document(), quads in any::<bool>(), threads in 1_usize..4, chunk in 1_usize..300
    ) {
        let format = if quads { Format::NQuads } else { Format::NTriples };
        check_lenient(format, &text.0, &options(threads, chunk));
    }

    #[test]
    fn agrees_with_oxttl_on_single_lines(text in line(), quads in any::<bool>()) {
        let format = if quads { Format::NQuads } else { Format::NTriples };
        check_strict(format, text.as_bytes(), &options(1, 1000));
    }
}

#[test]
fn invalid_utf8_is_refused_in_terms_and_let_pass_in_comments() {
    let good = b"# \xff\n<http://a> <http://b> \"\xc3\xa9\" .\n";
    check_strict(Format::NTriples, good, &options(1, 1000));
    let bad = b"# \xff\n<http://a> <http://b> \"\xc3\" .\n";
    check_strict(Format::NTriples, bad, &options(1, 1000));
    check_lenient(Format::NTriples, bad, &options(2, 10));
}

#[test]
fn an_unclosed_iri_is_told_at_its_own_line() {
    let text = b"<\rhttp://a/\\uD800> <http://b> <http://c> .\n";
    check_strict(Format::NTriples, text, &options(1, 1));
}
