//! Which tests does a W3C manifest hold?

use oxrdf::vocab::{rdf, rdfs};
use oxrdf::{
    BlankNode, Graph, GraphName, NamedNode, NamedOrBlankNode, NamedOrBlankNodeRef, Quad, Term,
    TermRef,
};
use oxrdfio::{RdfFormat, RdfParser};
use std::collections::{BTreeMap, BTreeSet};

/// What the paths of the suites are relative to: the base IRI of a file is its path under this.
pub const BASE: &str = "https://w3c.github.io/rdf-tests/";

const MF: &str = "http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#";
const QT: &str = "http://www.w3.org/2001/sw/DataAccess/tests/test-query#";

/// One test of a manifest.
#[derive(Debug, Clone)]
pub struct Test {
    /// The IRI of the test.
    pub iri: String,
    /// The local name of its type, such as `QueryEvaluationTest`.
    pub kind: String,
    /// Its name, for messages.
    pub name: String,
    /// Path of the query in the archive.
    pub query: String,
    /// Paths of the files of the default graph.
    pub data: Vec<String>,
    /// Named graphs: path of the file, which is also, under [`BASE`], the name of the graph.
    pub graph_data: Vec<String>,
    /// Path of the expected result.
    pub result: Option<String>,
    /// Whether a row may be repeated less often than expected (REDUCED).
    pub lax_cardinality: bool,
    /// Endpoints that SERVICE may call: their IRIs, and the paths of the files of their default
    /// graphs.
    pub service_data: Vec<(String, Vec<String>)>,
    /// Whether the test asks for an entailment regime.
    pub needs_entailment: bool,
}

/// Why a manifest or a file it names could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ManifestError {
    /// The archive has no such file.
    #[error("{0} is not in the archive")]
    Absent(String),
    /// The file is not what its name says.
    #[error("{path}: {reason}")]
    Malformed {
        /// Path in the archive.
        path: String,
        /// What is wrong with it.
        reason: String,
    },
}

/// Parses a file of RDF of the archive; its base IRI is its path under [`BASE`].
///
/// # Errors
/// When it is absent or malformed.
pub fn parse_graph(
    files: &BTreeMap<String, Vec<u8>>,
    path: &str,
) -> Result<Vec<Quad>, ManifestError> {
    let malformed = |reason: String| ManifestError::Malformed {
        path: path.to_owned(),
        reason,
    };
    let bytes = files
        .get(path)
        .ok_or_else(|| ManifestError::Absent(path.to_owned()))?;
    let format = path
        .rsplit_once('.')
        .and_then(|(_, extension)| RdfFormat::from_extension(extension))
        .ok_or_else(|| malformed("the name tells no RDF format".to_owned()))?;
    RdfParser::from_format(format)
        .with_base_iri(format!("{BASE}{path}"))
        .map_err(|error| malformed(error.to_string()))?
        .for_slice(bytes)
        .collect::<Result<_, _>>()
        .map_err(|error| malformed(error.to_string()))
}

/// The tests of the manifest at `path`, in its order. Included manifests are not followed.
///
/// # Errors
/// When the manifest is absent or malformed.
pub fn tests(files: &BTreeMap<String, Vec<u8>>, path: &str) -> Result<Vec<Test>, ManifestError> {
    let graph: Graph = parse_graph(files, path)?
        .into_iter()
        .map(oxrdf::Triple::from)
        .collect();
    // The manifest itself is a blank node in some files.
    let entries = graph.triples_for_predicate(&mf("entries")).next();
    let Some(TermRef::BlankNode(entries)) = entries.map(|triple| triple.object) else {
        return Ok(Vec::new());
    };
    list(&graph, entries.into())
        .into_iter()
        .filter_map(|term| match term {
            Term::NamedNode(node) => Some(test(&graph, path, &node)),
            _ => None,
        })
        .collect()
}

fn test(graph: &Graph, path: &str, node: &NamedNode) -> Result<Test, ManifestError> {
    let malformed = |reason: &str| ManifestError::Malformed {
        path: path.to_owned(),
        reason: format!("{node} {reason}"),
    };
    let kind = match graph.object_for_subject_predicate(node, rdf::TYPE) {
        Some(TermRef::NamedNode(kind)) => kind.as_str().trim_start_matches(MF).to_owned(),
        _ => return Err(malformed("has no type")),
    };
    let name = match graph.object_for_subject_predicate(node, &mf("name")) {
        Some(TermRef::Literal(name)) => name.value().to_owned(),
        _ => return Err(malformed("has no name")),
    };
    let mut test = Test {
        iri: node.as_str().to_owned(),
        kind,
        name,
        query: String::new(),
        data: Vec::new(),
        graph_data: Vec::new(),
        result: graph
            .object_for_subject_predicate(node, &mf("result"))
            .and_then(file),
        lax_cardinality: graph
            .object_for_subject_predicate(node, &mf("resultCardinality"))
            .is_some_and(|value| value == mf("LaxCardinality").as_ref().into()),
        service_data: Vec::new(),
        needs_entailment: false,
    };
    match graph.object_for_subject_predicate(node, &mf("action")) {
        Some(TermRef::NamedNode(query)) => test.query = file(query.into()).unwrap_or_default(),
        Some(TermRef::BlankNode(action)) => action_of(graph, action.into(), &mut test),
        _ => {}
    }
    Ok(test)
}

fn action_of(graph: &Graph, action: NamedOrBlankNodeRef<'_>, test: &mut Test) {
    let files = |predicate: &str| -> Vec<String> {
        graph
            .objects_for_subject_predicate(action, &qt(predicate))
            .filter_map(|term| match term {
                // Some manifests name a graph apart from its file: [qt:graph <file>; rdfs:label].
                TermRef::BlankNode(node) => graph
                    .object_for_subject_predicate(node, &qt("graph"))
                    .filter(|_| {
                        graph
                            .object_for_subject_predicate(node, rdfs::LABEL)
                            .is_none()
                    })
                    .and_then(file),
                other => file(other),
            })
            .collect()
    };
    test.query = files("query").pop().unwrap_or_default();
    test.data = files("data");
    test.graph_data = files("graphData");
    test.needs_entailment = graph.triples_for_subject(action).any(|triple| {
        triple.predicate.as_str()
            == "http://www.w3.org/ns/sparql-service-description#entailmentRegime"
    });
    for service in graph.objects_for_subject_predicate(action, &qt("serviceData")) {
        let TermRef::BlankNode(service) = service else {
            continue;
        };
        let endpoint = graph.object_for_subject_predicate(service, &qt("endpoint"));
        if let Some(TermRef::NamedNode(endpoint)) = endpoint {
            let data = graph.objects_for_subject_predicate(service, &qt("data"));
            let data = data.filter_map(file).collect();
            let endpoint = endpoint.as_str().to_owned();
            test.service_data.push((endpoint, data));
        }
    }
}

pub(crate) fn mf(name: &str) -> NamedNode {
    NamedNode::new_unchecked(format!("{MF}{name}"))
}

fn qt(name: &str) -> NamedNode {
    NamedNode::new_unchecked(format!("{QT}{name}"))
}

pub(crate) fn file(term: TermRef<'_>) -> Option<String> {
    match term {
        TermRef::NamedNode(node) => node.as_str().strip_prefix(BASE).map(ToOwned::to_owned),
        _ => None,
    }
}

/// The members of an RDF list.
pub(crate) fn list(graph: &Graph, start: NamedOrBlankNodeRef<'_>) -> Vec<Term> {
    let mut members = Vec::new();
    let mut current: NamedOrBlankNode = start.into_owned();
    while let Some(first) = graph.object_for_subject_predicate(&current, rdf::FIRST) {
        members.push(first.into_owned());
        current = match graph.object_for_subject_predicate(&current, rdf::REST) {
            Some(TermRef::BlankNode(next)) => next.into_owned().into(),
            Some(TermRef::NamedNode(next)) if next != rdf::NIL => next.into_owned().into(),
            _ => break,
        };
    }
    members
}

/// The quads of an evaluation test: its `data` in the default graph, its `graphData` in graphs
/// named by the files, and, when it names neither, the files of the query's FROM and FROM NAMED,
/// each in the graph named by it. Blank nodes of different files are different.
///
/// # Errors
/// When a file is absent or malformed.
pub fn dataset(
    files: &BTreeMap<String, Vec<u8>>,
    test: &Test,
    query: &str,
) -> Result<Vec<Quad>, ManifestError> {
    let mut sources: Vec<(String, GraphName)> = Vec::new();
    for path in &test.data {
        sources.push((path.clone(), GraphName::DefaultGraph));
    }
    let mut named = test.graph_data.clone();
    if test.data.is_empty() && test.graph_data.is_empty() {
        named.extend(dataset_clause(test, query));
    }
    for path in named {
        let name = NamedNode::new_unchecked(format!("{BASE}{path}"));
        sources.push((path, name.into()));
    }
    let mut quads = Vec::new();
    for (index, (path, graph)) in sources.into_iter().enumerate() {
        for quad in parse_graph(files, &path)? {
            quads.push(in_graph(quad, &graph, index));
        }
    }
    Ok(quads)
}

/// Paths of the files that FROM and FROM NAMED name; none when the query cannot be parsed, which
/// the engine will say of it too.
fn dataset_clause(test: &Test, query: &str) -> BTreeSet<String> {
    let parsed = spargebra::SparqlParser::new()
        .with_base_iri(format!("{BASE}{}", test.query))
        .map(|parser| parser.parse_query(query));
    let Ok(Ok(parsed)) = parsed else {
        return BTreeSet::new();
    };
    parsed
        .dataset()
        .into_iter()
        .flat_map(|clause| clause.default.iter().chain(clause.named.iter().flatten()))
        .filter_map(|name| file(name.as_ref().into()))
        .collect()
}

pub(crate) fn in_graph(quad: Quad, graph: &GraphName, file_index: usize) -> Quad {
    let renamed =
        |node: BlankNode| BlankNode::new_unchecked(format!("file{file_index}x{}", node.as_str()));
    let subject = match quad.subject {
        NamedOrBlankNode::BlankNode(node) => renamed(node).into(),
        other => other,
    };
    let object = match quad.object {
        Term::BlankNode(node) => renamed(node).into(),
        other => other,
    };
    Quad::new(subject, quad.predicate, object, graph.clone())
}
