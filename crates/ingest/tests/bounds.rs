//! Documents that are made to cost: they are refused with a reason, or read in proportion.

mod common;

use common::{collect, options, position};
use jindou_ingest::{IngestError, Source};

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
