//! Which update evaluation tests does a W3C manifest hold, and what is in their graph stores?

use crate::manifest::{BASE, ManifestError, file, in_graph, mf, parse_graph, tests};
use oxrdf::vocab::rdfs;
use oxrdf::{Graph, GraphName, NamedNode, NamedOrBlankNodeRef, Quad, TermRef};
use std::collections::{BTreeMap, BTreeSet};

const UT: &str = "http://www.w3.org/2009/sparql/tests/test-update#";

/// What a graph store holds before or after a request.
#[derive(Debug, Clone, Default)]
pub struct Holdings {
    /// Blank nodes of different files are different.
    pub quads: Vec<Quad>,
    /// The named graphs, those that are there and empty included.
    pub graphs: BTreeSet<String>,
}

/// One update evaluation test.
#[derive(Debug, Clone)]
pub struct UpdateTest {
    /// The IRI of the test.
    pub iri: String,
    /// Its name, for messages.
    pub name: String,
    /// Path of the request in the archive.
    pub request: String,
    /// The graph store that the request is given.
    pub before: Holdings,
    /// The graph store that it leaves.
    pub after: Holdings,
}

/// The update evaluation tests of the manifest at `path`, in its order.
///
/// # Errors
/// When the manifest or a file that it names is absent or malformed.
pub fn update_tests(
    files: &BTreeMap<String, Vec<u8>>,
    path: &str,
) -> Result<Vec<UpdateTest>, ManifestError> {
    let graph: Graph = parse_graph(files, path)?
        .into_iter()
        .map(oxrdf::Triple::from)
        .collect();
    let all = tests(files, path)?;
    let evaluated = all
        .into_iter()
        .filter(|test| test.kind == "UpdateEvaluationTest");
    let read = |test: crate::manifest::Test| {
        let node = NamedNode::new_unchecked(&test.iri);
        let malformed = |reason: &str| ManifestError::Malformed {
            path: path.to_owned(),
            reason: format!("{node} {reason}"),
        };
        let part = |predicate: &str| match graph.object_for_subject_predicate(&node, &mf(predicate))
        {
            Some(TermRef::BlankNode(part)) => Ok(part),
            _ => Err(malformed(&format!("has no {predicate}"))),
        };
        let (action, result) = (part("action")?, part("result")?);
        let request = graph
            .object_for_subject_predicate(action, &ut("request"))
            .and_then(file)
            .ok_or_else(|| malformed("has no request"))?;
        Ok(UpdateTest {
            request,
            before: holdings(files, &graph, action.into())?,
            after: holdings(files, &graph, result.into())?,
            iri: test.iri,
            name: test.name,
        })
    };
    evaluated.map(read).collect()
}

/// What `ut:data` and `ut:graphData` of a node name.
fn holdings(
    files: &BTreeMap<String, Vec<u8>>,
    manifest: &Graph,
    node: NamedOrBlankNodeRef<'_>,
) -> Result<Holdings, ManifestError> {
    let mut sources: Vec<(String, GraphName)> = manifest
        .objects_for_subject_predicate(node, &ut("data"))
        .filter_map(file)
        .map(|path| (path, GraphName::DefaultGraph))
        .collect();
    for data in manifest.objects_for_subject_predicate(node, &ut("graphData")) {
        let named = match data {
            TermRef::BlankNode(data) => {
                let path = manifest
                    .object_for_subject_predicate(data, &ut("graph"))
                    .and_then(file);
                let label = manifest.object_for_subject_predicate(data, rdfs::LABEL);
                match (path, label) {
                    (Some(path), Some(TermRef::Literal(label))) => {
                        Some((path, NamedNode::new_unchecked(label.value())))
                    }
                    _ => None,
                }
            }
            other => file(other).map(|path| {
                let name = NamedNode::new_unchecked(format!("{BASE}{path}"));
                (path, name)
            }),
        };
        let (path, name) = named.ok_or_else(|| ManifestError::Malformed {
            path: node.to_string(),
            reason: "has graph data without a file or a name".to_owned(),
        })?;
        sources.push((path, name.into()));
    }
    let mut holdings = Holdings::default();
    for (index, (path, graph)) in sources.into_iter().enumerate() {
        if let GraphName::NamedNode(name) = &graph {
            holdings.graphs.insert(name.as_str().to_owned());
        }
        for quad in parse_graph(files, &path)? {
            holdings.quads.push(in_graph(quad, &graph, index));
        }
    }
    Ok(holdings)
}

fn ut(name: &str) -> NamedNode {
    NamedNode::new_unchecked(format!("{UT}{name}"))
}
