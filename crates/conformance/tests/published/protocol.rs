//! Does the server pass the W3C suites of the SPARQL 1.1 Protocol and of the Graph Store Protocol?
//!
//! Each test has a server of its own, on loopback, and is made as its manifest describes it. A
//! request that has to be refused is made of every endpoint that it could be meant for, and each
//! has to refuse it.

use jindou_conformance::data::{read_tar_zstd, require};
use jindou_conformance::engines::{guarded, load_quads};
use jindou_conformance::exchange::{Exchange, ExchangeTest, Status, exchange_tests};
use jindou_conformance::manifest::parse_graph;
use jindou_conformance::record::{Counts, record};
use jindou_conformance::reply_check::check;
use jindou_conformance::served::{Reply, Served};
use oxrdf::{NamedNode, Quad};
use std::collections::BTreeMap;

type Files = BTreeMap<String, Vec<u8>>;

/// What the manifests call the server.
const HOST: &str = "www.example";
/// The paths at which queries are answered, which mean the same.
const QUERIES: [&str; 2] = ["/query", "/sparql"];
const UPDATES: &str = "/update";
const STORE: &str = "/store";

/// What the tests may ask of a server, all of which ours has.
const FEATURES: [&str; 3] = [
    "DirectGraphIdentification",
    "IndirectGraphIdentification",
    "POSTGraphCreation",
];

/// Where the requests of a test go.
#[derive(Debug, Clone, Copy)]
enum Endpoint {
    /// To the path of queries given, and to that of updates.
    Sparql(&'static str),
    /// To the graph store.
    Store,
}

fn files() -> Option<Files> {
    let archive = require("W3C SPARQL suites", "w3c/sparql10-sparql11.tar.zst")?;
    Some(read_tar_zstd(&archive).expect("the archive unpacks"))
}

#[test]
fn the_protocol_suite_passes() {
    let Some(files) = files() else {
        return;
    };
    let endpoints = QUERIES.map(Endpoint::Sparql);
    run_suite(
        &files,
        "SPARQL 1.1 Protocol",
        "protocol",
        &["manifest"],
        &endpoints,
    );
}

#[test]
fn the_graph_store_protocol_suite_passes() {
    let Some(files) = files() else {
        return;
    };
    let manifests = ["manifest-direct", "manifest-indirect"];
    let group = "SPARQL 1.1 Graph Store HTTP Protocol";
    run_suite(
        &files,
        group,
        "graph-store-protocol",
        &manifests,
        &[Endpoint::Store],
    );
}

fn run_suite(files: &Files, group: &str, suite: &str, manifests: &[&str], endpoints: &[Endpoint]) {
    let mut counts = Counts::default();
    let mut failures = Vec::new();
    for manifest in manifests {
        let path = format!("sparql/sparql11/{suite}/{manifest}.ttl");
        let tests = exchange_tests(files, &path).expect("the manifest can be read");
        assert!(!tests.is_empty(), "{path} has no tests");
        for test in &tests {
            let run = |endpoint: &Endpoint| {
                let outcome = guarded(|| run(files, test, *endpoint));
                outcome.and_then(|result| result).err()
            };
            match endpoints.iter().find_map(run) {
                None => counts.passed += 1,
                Some(reason) => {
                    counts.failed += 1;
                    failures.push(format!("{} ({}): {reason}", test.iri, test.name));
                }
            }
        }
    }
    println!(
        "{suite}: {} passed, {} failed",
        counts.passed, counts.failed
    );
    record(group, &format!("sparql11/{suite}"), &counts);
    assert!(
        failures.is_empty(),
        "{} failed:\n{}",
        failures.len(),
        failures.join("\n")
    );
}

fn run(files: &Files, test: &ExchangeTest, endpoint: Endpoint) -> Result<(), String> {
    let unknown = |feature: &&String| !FEATURES.contains(&feature.as_str());
    if let Some(feature) = test.requires.iter().find(unknown) {
        return Err(format!("the feature {feature} is not known"));
    }
    let served = Served::start(load_quads(&data(files, test)?).map_err(|error| error.to_string())?);
    // Texts that stand for what earlier answers said.
    let mut values: Vec<(String, String)> = Vec::new();
    for (index, exchange) in test.exchanges.iter().enumerate() {
        let told = |reason: String| {
            let (method, target) = (&exchange.method, &exchange.target);
            format!("request {index}, {method} {target}: {reason}")
        };
        let exchange = with_values(exchange, &values);
        for target in targets(&exchange, endpoint).map_err(told)? {
            let reply = send(&served, &exchange, &target).map_err(told)?;
            check(&reply, &exchange.expected).map_err(told)?;
            if reply.status == 404 && expects_refusal(&exchange) {
                return Err(told(format!("there is nothing at {target}")));
            }
            if let (Some(name), Some(value)) =
                (&exchange.expected.location, reply.header("location"))
            {
                values.push((name.clone(), value.to_owned()));
            }
        }
    }
    Ok(())
}

/// What the store holds before the test.
fn data(files: &Files, test: &ExchangeTest) -> Result<Vec<Quad>, String> {
    let mut quads = Vec::new();
    for (name, path) in &test.graphs {
        let graph = NamedNode::new(name).map_err(|error| format!("{name}: {error}"))?;
        let read = parse_graph(files, path).map_err(|error| error.to_string())?;
        quads.extend(read.into_iter().map(|quad| Quad {
            graph_name: graph.clone().into(),
            ..quad
        }));
    }
    Ok(quads)
}

fn with_values(exchange: &Exchange, values: &[(String, String)]) -> Exchange {
    let mut exchange = exchange.clone();
    for (name, value) in values {
        exchange.target = exchange.target.replace(name, value);
        if let Ok(text) = String::from_utf8(exchange.body.clone()) {
            exchange.body = text.replace(name, value).into();
        }
    }
    exchange
}

/// Whether the request is one that no endpoint may answer.
fn expects_refusal(exchange: &Exchange) -> bool {
    exchange.expected.statuses == [Status::Class(4)]
}

/// Where on our server a request goes.
fn targets(exchange: &Exchange, endpoint: Endpoint) -> Result<Vec<String>, String> {
    let rest = |prefix: &str| {
        let rest = exchange.target.strip_prefix(prefix);
        rest.ok_or_else(|| format!("the path does not begin with {prefix}"))
    };
    Ok(match endpoint {
        Endpoint::Store => vec![format!("{STORE}{}", rest("/gsp")?)],
        Endpoint::Sparql(queries) => {
            let rest = rest("/sparql/")?;
            let (query, update) = (format!("{queries}{rest}"), format!("{UPDATES}{rest}"));
            match (expects_refusal(exchange), is_update(exchange)) {
                (true, _) => vec![query, update],
                (false, true) => vec![update],
                (false, false) => vec![query],
            }
        }
    })
}

/// Whether a good request is about an update.
fn is_update(exchange: &Exchange) -> bool {
    exchange.body.starts_with(b"update=")
        || exchange
            .headers
            .iter()
            .any(|(name, value)| name == "content-type" && value == "application/sparql-update")
}

fn send(served: &Served, exchange: &Exchange, target: &str) -> Result<Reply, String> {
    let Exchange {
        method,
        headers,
        body,
        ..
    } = exchange;
    served
        .send(HOST, method, target, headers, body)
        .map_err(|error| format!("no answer: {error}"))
}
