//! Documents that are made to cost: they are refused with a reason, or read in proportion.

use crate::common::{collect, options, position};
use jindou_ingest::{Format, Guard, IngestError, Source};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

fn load(name: &str, document: String) -> Result<Vec<String>, IngestError> {
    let source = Source::bytes(name, document).with_base_iri("http://e/");
    Ok(collect(vec![source], &options(1, 1 << 16))?.0)
}

#[track_caller]
fn refused(name: &str, document: String, reason: &str) -> IngestError {
    let error = load(name, document).expect_err(reason);
    assert!(matches!(error, IngestError::Syntax(_)), "{error}");
    assert!(error.to_string().contains(reason), "{error}");
    error
}

#[test]
fn json_ld_that_would_overflow_the_stack_is_refused_with_its_place() {
    let terms: Vec<_> = (0..909)
        .map(|n| format!("\"t{n}\":\"t{}:x\"", n + 1))
        .collect();
    let chain = format!("{{\"@context\":{{{}}}}}", terms.join(","));
    let error = refused("a.jsonld", chain, "defined by one another");
    assert_eq!(position(&error).0, Some(1));
    let within = "more than 256 arrays and objects within one another";
    for key in [
        "@set",
        "@graph",
        "@included",
        "@list",
        "@value",
        "http://e/p",
    ] {
        let open = format!("{{\"{key}\":\n").repeat(1000);
        let error = refused("a.jsonld", format!("{open}{}", "}".repeat(1000)), within);
        assert_eq!(position(&error), (Some(257), Some(1)), "{key}");
    }
    let reverse = "{\"@reverse\":{\"http://e/p\":".repeat(1000);
    refused("a.jsonld", reverse, within);
    let scoped = "{\"a\":{\"@id\":\"http://e/a\",\"@context\":".repeat(100);
    let scoped = format!("{{\"@context\":{scoped}{{}}{}}}", "}}".repeat(100));
    refused("a.jsonld", scoped, "defined by one another");
    refused("a.jsonld", "[".repeat(100_000), within);
}

fn terms(count: usize) -> String {
    let terms: Vec<_> = (0..count)
        .map(|n| format!("\"t{n}\":\"http://e/t{n}\""))
        .collect();
    terms.join(",")
}

fn list(value: &str, count: usize) -> String {
    vec![value; count].join(",")
}

#[test]
fn json_ld_that_takes_its_parser_more_than_its_size_is_refused() {
    let terms = terms(20_000);
    let graph =
        |context: &str, nodes: &str| format!("{{\"@context\":{{{context}}},\"@graph\":[{nodes}]}}");
    let copies = "most of them for copies of the terms in scope";
    let scoped = |own: &str| format!("\"s\":{{\"@id\":\"http://e/s\",\"@context\":{{{own}}}}}");
    let with_scoped = format!("{terms},{}", scoped(""));
    for document in [
        graph(&terms, &list("{\"@context\":{},\"t0\":1}", 2_000)),
        // The context comes last.
        format!(
            "{{\"@graph\":[{}],\"@context\":{{{terms}}}}}",
            list("{\"@context\":null,\"t0\":1}", 2_000)
        ),
        graph(
            &terms,
            &format!("{{\"@context\":[{}]}}", list("null", 2_000)),
        ),
        graph(&terms, &format!("{{\"@context\":[{}]}}", list("{}", 2_000))),
        graph(&with_scoped, &format!("{{\"s\":[{}]}}", list("1", 2_000))),
        graph(
            &with_scoped,
            &format!("{{\"\\u0073\":{{\"@set\":[{}]}}}}", list("1", 2_000)),
        ),
        graph(&with_scoped, &list("{\"s\":1}", 2_000)),
        graph(&with_scoped, &list("{\"@type\":\"s\"}", 2_000)),
        graph(
            &with_scoped,
            &format!("{{\"@type\":[{}]}}", list("\"s\"", 2_000)),
        ),
        graph(
            &scoped(&terms),
            &format!("{{\"s\":[{}]}}", list("1", 2_000)),
        ),
        format!(
            "{{\"@graph\":[{{\"s\":[{}]}}],\"@context\":{{{with_scoped}}}}}",
            list("1", 2_000)
        ),
        graph(
            &format!("{terms},\"s\":{{\"@id\":\"http://e/s\",\"@context\":null}}"),
            &list("{\"s\":1}", 2_000),
        ),
        // Each use of the one brings the others into force.
        graph(
            &format!(
                "{terms},{}",
                scoped(
                    &(0..100)
                        .map(|n| format!("\"u{n}\":{{\"@id\":\"http://e/\",\"@context\":{{}}}}"))
                        .collect::<Vec<_>>()
                        .join(",")
                )
            ),
            &list("{\"s\":1}", 50),
        ),
        graph(
            &format!(
                "{terms},{}",
                (0..2_000)
                    .map(|n| format!("\"s{n}\":{{\"@id\":\"http://e/\",\"@context\":{{}}}}"))
                    .collect::<Vec<_>>()
                    .join(",")
            ),
            "",
        ),
    ] {
        let error = refused("a.jsonld", document, copies);
        assert_eq!(position(&error).0, Some(1));
    }
    let deep = |values: &str| {
        let open = "{\"http://e/p\":".repeat(250);
        format!("{open}[{values}]{}", "}".repeat(250))
    };
    let nesting = "most of them for values deep within other objects";
    refused("a.jsonld", deep(&list("1", 400_000)), nesting);
    let long = "http://e/".to_owned() + &"x".repeat(1 << 20);
    let names = "most of them for long IRIs and keys";
    let values = list("1", 20_000);
    for document in [
        format!("{{\"{long}\":[{values}]}}"),
        format!("{{\"@id\":\"{long}\",\"http://e/p\":[{values}]}}"),
        format!("{{\"http://e/p\":[{values}],\"@id\":\"{long}\"}}"),
        format!("{{\"@context\":{{\"p\":\"{long}\"}},\"p\":[{values}]}}"),
        format!("{{\"p\":[{values}],\"@context\":{{\"@vocab\":\"{long}\"}}}}"),
    ] {
        refused("a.jsonld", document, names);
    }
}

#[test]
fn json_ld_of_common_shapes_is_within_the_bounds() {
    // As that of schema.org.
    let terms: Vec<_> = (0..3_000)
        .map(|n| format!("\"t{n}\":{{\"@id\":\"schema:t{n}\",\"@type\":\"@id\"}}"))
        .collect();
    let terms = format!(
        "\"schema\":\"http://schema.org/\",\"@vocab\":\"http://schema.org/\",{}",
        terms.join(",")
    );
    let nodes: Vec<_> = (0..5_000)
        .map(|n| {
            format!(
                "{{\"@type\":\"T\",\"@id\":\"http://e/{n}\",\"t{}\":\"x\"}}",
                n % 3_000
            )
        })
        .collect();
    let document = |context: &str, nodes: &[String]| {
        let nodes = nodes.join(",");
        load(
            "a.jsonld",
            format!("{{\"@context\":{{{context}}},\"@graph\":[{nodes}]}}"),
        )
    };
    assert_eq!(document(&terms, &nodes).unwrap().len(), 10_000);
    // Some nodes with a context of their own, and some terms with one.
    let own: Vec<_> = (0..500)
        .map(|n| {
            format!("{{\"@context\":{{\"u\":\"http://e/u\"}},\"@id\":\"http://e/{n}\",\"u\":{n}}}")
        })
        .collect();
    assert_eq!(document(&terms, &own).unwrap().len(), 500);
    let small: Vec<_> = (0..20)
        .map(|n| format!("\"s{n}\":{{\"@id\":\"http://e/s{n}\",\"@context\":{{\"a\":\"http://e/a{n}\",\"b\":\"http://e/b\"}}}}"))
        .collect();
    let uses: Vec<_> = (0..2_000)
        .map(|n| {
            format!(
                "{{\"@id\":\"http://e/{n}\",\"s{}\":{{\"a\":1,\"b\":[2,3]}}}}",
                n % 20
            )
        })
        .collect();
    assert_eq!(document(&small.join(","), &uses).unwrap().len(), 8_000);
    // Deep, with little in it.
    let deep = format!("{}1{}", "{\"http://e/p\":".repeat(255), "}".repeat(255));
    assert_eq!(load("a.jsonld", deep).unwrap().len(), 255);
}

/// Lets some parts be read.
struct Parts(AtomicU64);

impl Guard for Parts {
    fn look(&self) -> io::Result<()> {
        match self.0.fetch_sub(1, Relaxed) {
            0 => Err(io::Error::other("enough")),
            _ => Ok(()),
        }
    }

    fn hold(&self, _: u64) -> io::Result<()> {
        Ok(())
    }
}

/// A document without an end, which counts what is read of it.
struct Endless(&'static [u8], Arc<AtomicU64>);

impl io::Read for Endless {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let at = self.1.load(Relaxed) as usize;
        for (n, b) in buf.iter_mut().enumerate() {
            *b = match at + n {
                0 => b'[',
                at => self.0[(at - 1) % self.0.len()],
            };
        }
        self.1.fetch_add(buf.len() as u64, Relaxed);
        Ok(buf.len())
    }
}

#[test]
fn a_guard_ends_a_json_ld_document_between_its_parts() {
    for part in ["{\"http://e/p\":1},", "{\"http://e/p\":[1,", "1,", " "] {
        let read = Arc::new(AtomicU64::new(0));
        let source = Source::reader("a", Endless(part.as_bytes(), Arc::clone(&read)))
            .with_format(Format::JsonLd)
            .with_guard(Arc::new(Parts(AtomicU64::new(10))));
        let error = collect(vec![source], &options(1, 1)).expect_err("no end");
        // One that nests ends by itself.
        let nests = part.contains("[1");
        assert!(nests || error.to_string().contains("enough"), "{error}");
        // Ten parts, and the first bytes of the document.
        assert!(read.load(Relaxed) <= 11 * (64 << 10), "{part}");
    }
}

#[test]
fn nested_turtle_and_trig_need_no_stack() {
    const DEEP: usize = 100_000;
    for name in ["a.ttl", "a.trig"] {
        let nodes = format!("{}<b>{}", "[<p> ".repeat(DEEP), "]".repeat(DEEP));
        let quads = load(name, format!("<a> <p> {nodes} .")).expect("nested nodes");
        assert_eq!(quads.len(), DEEP + 1);
        let lists = format!("{}<b>{}", "(".repeat(DEEP), ")".repeat(DEEP));
        let quads = load(name, format!("<a> <p> {lists} .")).expect("nested lists");
        assert_eq!(quads.len(), 2 * DEEP + 1);
        for open in ["[<p> ", "(", "[", "<<", "<<( ", "{"] {
            let _refused = load(name, open.repeat(DEEP)).expect_err(open);
            let _refused = load(name, format!("<a> <p> {}", open.repeat(DEEP))).expect_err(open);
        }
    }
    for name in ["a.nt", "a.nq"] {
        let open = "<<( <http://e/a> <http://e/p> ".repeat(DEEP);
        let close = ")>> ".repeat(DEEP);
        let line = format!("<http://e/a> <http://e/p> {open} <http://e/b> {close} .");
        let _refused = load(name, line).expect_err("no RDF 1.1");
    }
}

fn rdf(attributes: &str, body: &str) -> String {
    format!(
        "<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#' xmlns:e='http://e/' \
         {attributes}>{body}</rdf:RDF>"
    )
}

#[test]
fn rdf_xml_that_takes_its_parser_more_than_its_size_is_refused_with_its_line() {
    let many = |count: usize, name: &str| -> String {
        (0..count).map(|n| format!("\n{name}{n} = 'x'")).collect()
    };
    let element = |count| format!("<e:A{}/>", many(count, "e:a"));
    assert_eq!(load("a.rdf", rdf("", &element(1024))).unwrap().len(), 1025);
    let error = refused("a.rdf", rdf("", &element(300_000)), "1024 attributes");
    assert_eq!(position(&error).0, Some(1026));

    load("a.rdf", rdf(&many(510, "xmlns:n"), "")).unwrap();
    let namespaces = "512 declarations of namespaces in scope";
    refused("a.rdf", rdf(&many(511, "xmlns:n"), ""), namespaces);
    let nested = |names: usize, depth: usize| {
        let open = |n| format!("<e:A{}><e:p>", many(names, &format!("xmlns:n{n}x")));
        let opened: String = (0..depth).map(open).collect();
        rdf("", &(opened + &"</e:p></e:A>".repeat(depth)))
    };
    refused("a.rdf", nested(20, 100), namespaces);
    assert_eq!(load("a.rdf", nested(1, 500)).unwrap().len(), 1000);
    refused("a.rdf", nested(0, 512), "1024 elements within one another");
    // Those of elements that are closed do not count.
    let one = format!("<e:A{}/>", many(500, "xmlns:n"));
    assert_eq!(load("a.rdf", rdf("", &one.repeat(10))).unwrap().len(), 10);

    let long = format!("xmlns:n='http://e/{}'", "x".repeat(10_000));
    let literal = |elements: usize| {
        let elements = "<e:a/>".repeat(elements);
        let body = format!("<e:A><e:p rdf:parseType='Literal'>{elements}</e:p></e:A>");
        rdf(&long, &body)
    };
    assert_eq!(load("a.rdf", literal(100)).unwrap().len(), 2);
    let too_much = "the namespaces of XML literals come to too much";
    refused("a.rdf", literal(100_000), too_much);
}

#[test]
fn a_mark_of_the_byte_order_is_skipped() {
    let triple = "<http://e/a> <http://e/p> <http://e/b> .\n";
    let json = "{\"@id\":\"http://e/a\",\"http://e/p\":{\"@id\":\"http://e/b\"}}";
    let xml = rdf(
        "",
        "<e:A rdf:about='http://e/a'><e:p rdf:resource='http://e/b'/></e:A>",
    );
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in [
        ("a.nt", triple),
        ("a.nq", triple),
        ("a.ttl", triple),
        ("a.trig", triple),
        ("a.jsonld", json),
        ("a.rdf", &xml),
    ] {
        let marked = format!("\u{feff}{text}");
        let plain = load(name, text.to_owned()).unwrap();
        assert_eq!(load(name, marked.clone()).unwrap(), plain, "{name}");
        let path = folder.path().join(name);
        std::fs::write(&path, marked).unwrap();
        let (quads, _) = collect(vec![Source::path(path)], &options(2, 2)).unwrap();
        assert_eq!(quads, plain, "{name}");
    }
    let two = format!("\u{feff}\u{feff}{triple}");
    assert!(load("a.ttl", two).is_err(), "only one");
}
