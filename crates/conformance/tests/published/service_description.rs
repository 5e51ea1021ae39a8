//! Does the server pass the W3C suite of SPARQL 1.1 Service Description?
//!
//! The manifest has three tests, each of them no more than a name; what they mean is written out
//! here, and a test that is not known here fails. The description is asked for at both paths of
//! queries and in each format, of servers with and without data.

use jindou_conformance::data::{read_tar_zstd, require};
use jindou_conformance::engines::{guarded, load};
use jindou_conformance::manifest;
use jindou_conformance::record::{Counts, record};
use jindou_conformance::reply_check::body_graph;
use jindou_conformance::served::{Reply, Served};
use jindou_engine::Database;
use jindou_engine::ingest::Source;
use oxrdf::vocab::rdf;
use oxrdf::{Graph, NamedNode, NamedOrBlankNodeRef, TermRef, Triple};

const SD: &str = "http://www.w3.org/ns/sparql-service-description#";
const HOST: &str = "www.example";
const PATHS: [&str; 2] = ["/query", "/sparql"];
/// What is asked for; empty is nothing.
const ACCEPT: [&str; 5] = [
    "",
    "text/turtle",
    "application/n-triples",
    "application/rdf+xml",
    "application/ld+json",
];

/// The classes of the vocabulary, each with those that it is a part of.
const CLASSES: &[(&str, &[&str])] = &[
    ("Service", &[]),
    ("Feature", &[]),
    ("Language", &[]),
    ("Function", &[]),
    ("Aggregate", &[]),
    ("EntailmentRegime", &[]),
    ("EntailmentProfile", &[]),
    ("GraphCollection", &[]),
    ("Dataset", &["GraphCollection"]),
    ("Graph", &[]),
    ("NamedGraph", &[]),
];

/// What a property's values are.
#[derive(Debug, Clone, Copy)]
enum Range {
    /// Any IRI or blank node.
    Resource,
    /// One of this class, which has to say so if it is described.
    Class(&'static str),
}

/// The properties of the vocabulary with their domains and ranges.
const PROPERTIES: &[(&str, &str, Range)] = &[
    ("endpoint", "Service", Range::Resource),
    ("feature", "Service", Range::Class("Feature")),
    (
        "defaultEntailmentRegime",
        "Service",
        Range::Class("EntailmentRegime"),
    ),
    (
        "defaultSupportedEntailmentProfile",
        "Service",
        Range::Class("EntailmentProfile"),
    ),
    (
        "entailmentRegime",
        "NamedGraph",
        Range::Class("EntailmentRegime"),
    ),
    (
        "supportedEntailmentProfile",
        "NamedGraph",
        Range::Class("EntailmentProfile"),
    ),
    ("extensionFunction", "Service", Range::Class("Function")),
    ("extensionAggregate", "Service", Range::Class("Aggregate")),
    ("languageExtension", "Service", Range::Class("Feature")),
    ("supportedLanguage", "Service", Range::Class("Language")),
    ("propertyFeature", "Service", Range::Class("Feature")),
    ("defaultDataset", "Service", Range::Class("Dataset")),
    (
        "availableGraphs",
        "Service",
        Range::Class("GraphCollection"),
    ),
    ("resultFormat", "Service", Range::Resource),
    ("inputFormat", "Service", Range::Resource),
    ("defaultGraph", "Dataset", Range::Class("Graph")),
    ("namedGraph", "GraphCollection", Range::Class("NamedGraph")),
    ("name", "NamedGraph", Range::Resource),
    ("graph", "NamedGraph", Range::Class("Graph")),
];

/// The instances that the vocabulary itself names, with their classes.
const INSTANCES: &[(&str, &str)] = &[
    ("SPARQL10Query", "Language"),
    ("SPARQL11Query", "Language"),
    ("SPARQL11Update", "Language"),
    ("DereferencesURIs", "Feature"),
    ("UnionDefaultGraph", "Feature"),
    ("RequiresDataset", "Feature"),
    ("EmptyGraphs", "Feature"),
    ("BasicFederatedQuery", "Feature"),
];

#[test]
fn the_service_description_suite_passes() {
    let Some(archive) = require("W3C SPARQL suites", "w3c/sparql10-sparql11.tar.zst") else {
        return;
    };
    let files = read_tar_zstd(&archive).expect("the archive unpacks");
    let path = "sparql/sparql11/service-description/manifest.ttl";
    let tests = manifest::tests(&files, path).expect("the manifest can be read");
    assert!(!tests.is_empty(), "there are no tests");
    let data = "<http://e/a> <http://e/b> 1 . <http://e/g> { <http://e/a> <http://e/b> 2 }";
    let loaded = load(vec![Source::bytes("data.trig", data.as_bytes().to_vec())]);
    let servers = [
        Served::start(Database::new()),
        Served::start(loaded.expect("the data loads")),
    ];
    let mut counts = Counts::default();
    let mut failures = Vec::new();
    for test in &tests {
        let outcome = guarded(|| run(&test.iri, &servers)).and_then(|result| result);
        match outcome {
            Ok(()) => counts.passed += 1,
            Err(reason) => {
                counts.failed += 1;
                failures.push(format!("{} ({}): {reason}", test.iri, test.name));
            }
        }
    }
    println!("{} passed, {} failed", counts.passed, counts.failed);
    record(
        "SPARQL 1.1 Service Description",
        "sparql11/service-description",
        &counts,
    );
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

fn run(test: &str, servers: &[Served]) -> Result<(), String> {
    for served in servers {
        for path in PATHS {
            for accept in ACCEPT {
                let told = |reason: String| format!("{path} as {accept:?}: {reason}");
                let reply = describe(served, path, accept).map_err(told)?;
                one(test, path, &reply).map_err(told)?;
            }
        }
    }
    Ok(())
}

fn one(test: &str, path: &str, reply: &Reply) -> Result<(), String> {
    match test.rsplit('#').next() {
        Some("returns-rdf") => match graph(reply)?.is_empty() {
            true => Err("the description is empty".to_owned()),
            false => Ok(()),
        },
        Some("has-endpoint-triple") => has_endpoint(&graph(reply)?, path),
        Some("conforms-to-schema") => conforms(&graph(reply)?),
        _ => Err("what this test wants is not known".to_owned()),
    }
}

fn describe(served: &Served, path: &str, accept: &str) -> Result<Reply, String> {
    let headers: &[(String, String)] = match accept {
        "" => &[],
        kind => &[("accept".to_owned(), kind.to_owned())],
    };
    let reply = served
        .send(HOST, "GET", path, headers, b"")
        .map_err(|error| error.to_string())?;
    match reply.status {
        200 if accept.is_empty() || reply.media_type() == accept => Ok(reply),
        status => Err(format!("{status} {:?}: {}", reply.headers, reply.text())),
    }
}

fn graph(reply: &Reply) -> Result<Graph, String> {
    Ok(body_graph(reply)?.into_iter().map(Triple::from).collect())
}

fn has_endpoint(graph: &Graph, path: &str) -> Result<(), String> {
    let endpoint = NamedNode::new_unchecked(format!("http://{HOST}{path}"));
    let mut services = graph.subjects_for_predicate_object(&sd("endpoint"), &endpoint);
    match (services.next(), services.next()) {
        (Some(service), None) if is_a(graph, service, "Service") => Ok(()),
        _ => Err(format!(
            "not one service has the endpoint {endpoint}\n{graph}"
        )),
    }
}

/// Whether the statements follow the vocabulary: known terms, domains, ranges, and what each
/// instance has to have.
fn conforms(graph: &Graph) -> Result<(), String> {
    for triple in graph.iter() {
        let told = |reason: &str| Err(format!("{triple}: {reason}"));
        if triple.predicate == rdf::TYPE {
            if let TermRef::NamedNode(class) = triple.object
                && let Some(name) = class.as_str().strip_prefix(SD)
                && !CLASSES.iter().any(|(known, _)| *known == name)
            {
                return told("the vocabulary has no such class");
            }
            continue;
        }
        let Some(name) = triple.predicate.as_str().strip_prefix(SD) else {
            continue;
        };
        let property = PROPERTIES.iter().find(|(known, _, _)| *known == name);
        let Some((_, domain, range)) = property else {
            return told("the vocabulary has no such property");
        };
        if !is_a(graph, triple.subject, domain) {
            return told(&format!("it is of {domain}"));
        }
        let value: NamedOrBlankNodeRef<'_> = match triple.object {
            TermRef::NamedNode(node) => node.into(),
            TermRef::BlankNode(node) => node.into(),
            TermRef::Literal(_) => return told("the value is a literal"),
        };
        match *range {
            Range::Class(class) if !is_in_range(graph, value, class) => {
                return told(&format!("the value is no {class}"));
            }
            _ => {}
        }
    }
    complete(graph)
}

/// Each service has one endpoint, each dataset one default graph, each named graph one name.
fn complete(graph: &Graph) -> Result<(), String> {
    let mut services = 0;
    for (class, property) in [
        ("Service", "endpoint"),
        ("Dataset", "defaultGraph"),
        ("NamedGraph", "name"),
    ] {
        for instance in graph.subjects_for_predicate_object(rdf::TYPE, &sd(class)) {
            services += usize::from(class == "Service");
            let property = sd(property);
            let values = graph.objects_for_subject_predicate(instance, &property);
            if values.count() != 1 {
                return Err(format!("{instance} has not one {property}"));
            }
        }
    }
    match services {
        0 => Err("no service is described".to_owned()),
        _ => Ok(()),
    }
}

fn is_a(graph: &Graph, node: NamedOrBlankNodeRef<'_>, class: &str) -> bool {
    let said = |class: &str| graph.contains(oxrdf::TripleRef::new(node, rdf::TYPE, &sd(class)));
    said(class)
        || CLASSES
            .iter()
            .any(|(part, wholes)| wholes.contains(&class) && said(part))
}

fn is_in_range(graph: &Graph, value: NamedOrBlankNodeRef<'_>, class: &str) -> bool {
    if let NamedOrBlankNodeRef::NamedNode(node) = value
        && let Some(name) = node.as_str().strip_prefix(SD)
    {
        return INSTANCES.contains(&(name, class));
    }
    // What is not described here may be anything.
    let is_described = graph.triples_for_subject(value).next().is_some();
    is_a(graph, value, class) || !is_described && matches!(value, NamedOrBlankNodeRef::NamedNode(_))
}

fn sd(name: &str) -> NamedNode {
    NamedNode::new_unchecked(format!("{SD}{name}"))
}

#[test]
fn the_schema_is_not_met_by_anything() {
    let read = |turtle: &str| -> Graph {
        let prefix = format!("@prefix sd: <{SD}> . ");
        oxttl::TurtleParser::new()
            .for_slice((prefix + turtle).as_bytes())
            .collect::<Result<_, _>>()
            .expect("it is Turtle")
    };
    let good = "[] a sd:Service ; sd:endpoint <http://e/> ; sd:supportedLanguage sd:SPARQL11Query ;
        sd:defaultDataset [ a sd:Dataset ; sd:defaultGraph [ a sd:Graph ] ] .";
    assert_eq!(conforms(&read(good)), Ok(()));
    for (from, to) in [
        ("a sd:Service ;", ""),
        ("sd:endpoint <http://e/> ;", ""),
        ("<http://e/>", "<http://e/>, <http://f/>"),
        ("<http://e/>", "'http://e/'"),
        ("sd:SPARQL11Query", "sd:EmptyGraphs"),
        ("sd:SPARQL11Query", "sd:SPARQL13Query"),
        ("sd:supportedLanguage", "sd:supportsLanguage"),
        ("a sd:Service", "a sd:Service, sd:Servant"),
        ("sd:defaultGraph [ a sd:Graph ]", "a sd:Dataset"),
        ("[ a sd:Graph ]", "[ a sd:Dataset ]"),
    ] {
        let bad = good.replace(from, to);
        assert_ne!(bad, good);
        assert!(conforms(&read(&bad)).is_err(), "{bad}");
    }
}
