//! Does the server do what the older W3C suite of the Graph Store Protocol shows in prose?
//!
//! The suite `http-rdf-update` is deprecated in favour of `graph-store-protocol`. Its tests follow
//! on each other, so all are made of one server, in their order; where what they show cannot be
//! right, [`REPAIRS`] says what is made of it.

use jindou_conformance::data::{read_tar_zstd, require};
use jindou_conformance::exchange::Exchange;
use jindou_conformance::record::{Counts, record};
use jindou_conformance::reply_check::check;
use jindou_conformance::served::Served;
use jindou_conformance::transcript::{Repair, Transcript, transcripts};
use jindou_engine::Database;

const HOST: &str = "www.example";
const STORE: &str = "/store";

const NO_DOT: &str = "the Turtle shown lacks the dots at the ends of its statements";

const REPAIRS: &[Repair] = &[
    Repair {
        test: "put__default_graph",
        reason: "201 is shown for the default graph, which is always there; the suite that \
                 replaces this one takes 204",
        replace: &[("201 Created", "204 No Content")],
        before: None,
    },
    Repair {
        test: "delete__existing_graph",
        reason: "nothing made the graph that is to be there",
        replace: &[],
        before: Some((
            "PUT",
            "/person/2.ttl",
            "[] <http://xmlns.com/foaf/0.1/name> 'B' .",
        )),
    },
    Repair {
        test: "post__existing_graph",
        reason: NO_DOT,
        replace: &[("foaf:name \"Jane Doe\"", "foaf:name \"Jane Doe\" .")],
        before: None,
    },
    Repair {
        test: "get_of_post__existing_graph",
        reason: "the graph shown is neither the one that was put nor has it what was posted",
        replace: &[
            ("v:fn \"John Doe\"", "v:fn \"Jane Doe\""),
            ("a foaf:Person;", "a foaf:Person; foaf:name \"Jane Doe\";"),
        ],
        before: None,
    },
    Repair {
        test: "post__multipart_formdata",
        reason: NO_DOT,
        replace: &[("\"Doe\"", "\"Doe\" ."), ("\"Jane\"", "\"Jane\" .")],
        before: None,
    },
    Repair {
        test: "get_of_post__after_noop",
        reason: "the request that is to change nothing is not shown; it is a POST of nothing",
        replace: &[],
        before: Some(("POST", "$NEWPATH$", "")),
    },
];

#[test]
fn the_graph_store_suite_in_prose_passes() {
    let Some(archive) = require("W3C SPARQL suites", "w3c/sparql10-sparql11.tar.zst") else {
        return;
    };
    let files = read_tar_zstd(&archive).expect("the archive unpacks");
    let path = "sparql/sparql11/http-rdf-update/manifest.ttl";
    let tests = transcripts(&files, path).expect("the manifest can be read");
    for repair in REPAIRS {
        let known = tests.iter().any(|test| test.local_name() == repair.test);
        assert!(known, "there is no test {}", repair.test);
    }
    let served = Served::start(Database::new());
    let mut counts = Counts::default();
    let mut failures = Vec::new();
    let mut new_path = None;
    for test in &tests {
        let repair = REPAIRS
            .iter()
            .find(|repair| repair.test == test.local_name());
        match run(&served, test, repair, &mut new_path) {
            Ok(()) => {
                counts.passed += 1;
                if let Some(Repair { test, reason, .. }) = repair {
                    counts
                        .notes
                        .insert(format!("`{test}` is repaired: {reason}"));
                }
            }
            Err(reason) => {
                counts.failed += 1;
                failures.push(format!("{} ({}): {reason}", test.iri, test.name));
            }
        }
    }
    println!("{} passed, {} failed", counts.passed, counts.failed);
    record(
        "SPARQL 1.1 Graph Store HTTP Protocol, in prose (deprecated by the W3C)",
        "sparql11/http-rdf-update",
        &counts,
    );
    assert!(
        failures.is_empty(),
        "{} failed:\n{}",
        failures.len(),
        failures.join("\n")
    );
}

/// Makes one exchange; `new_path` is what the last `Location` said.
fn run(
    served: &Served,
    test: &Transcript,
    repair: Option<&Repair>,
    new_path: &mut Option<String>,
) -> Result<(), String> {
    let turtle = ("content-type".to_owned(), "text/turtle".to_owned());
    if let Some((method, target, body)) = repair.and_then(|repair| repair.before) {
        let target = match (target, &*new_path) {
            ("$NEWPATH$", Some(path)) => path.clone(),
            (below, _) => format!("{STORE}{below}"),
        };
        let reply = served
            .send(HOST, method, &target, &[turtle], body.as_bytes())
            .map_err(|error| error.to_string())?;
        if reply.status / 100 != 2 {
            return Err(format!("{method} {target} before it: {}", reply.text()));
        }
    }
    let exchange = test.exchange(repair, HOST, STORE)?;
    let Exchange {
        method,
        headers,
        body,
        expected,
        ..
    } = &exchange;
    let target = match (exchange.target.as_str(), &*new_path) {
        ("$NEWPATH$", Some(path)) => path,
        (target, _) => target,
    };
    let reply = served
        .send(HOST, method, target, headers, body)
        .map_err(|error| error.to_string())?;
    check(&reply, expected)?;
    if expected.location.is_some() {
        *new_path = reply.header("location").map(ToOwned::to_owned);
    }
    Ok(())
}
