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
