//! What does the server say about itself, by SPARQL 1.1 Service Description?

use hyper::header::HeaderMap;
use hyper::{Response, StatusCode};
use jindou_engine::AddressPolicy;
use jindou_engine::ingest::Format;
use jindou_engine::results::{
    BooleanFormat, GraphFormat, GraphWriter, Offer, SolutionsFormat, negotiate,
};
use oxrdf::vocab::{rdf, rdfs, xsd};
use oxrdf::{BlankNode, Literal, NamedNode, NamedOrBlankNode, Term, Triple};

use crate::body::Body;
use crate::error::Refusal;
use crate::respond;
use crate::service::accept;

const SD: &str = "http://www.w3.org/ns/sparql-service-description#";
/// The media type of the page for people.
const PAGE: &str = "text/html";
const VOID_TRIPLES: &str = "http://rdfs.org/ns/void#triples";

/// The media types of results and documents, and the IRIs that the W3C gives their formats.
const FORMATS: [(&str, &str); 11] = [
    ("application/sparql-results+xml", "SPARQL_Results_XML"),
    ("application/sparql-results+json", "SPARQL_Results_JSON"),
    ("text/csv", "SPARQL_Results_CSV"),
    ("text/tab-separated-values", "SPARQL_Results_TSV"),
    ("text/turtle", "Turtle"),
    ("application/n-triples", "N-Triples"),
    ("application/rdf+xml", "RDF_XML"),
    ("application/ld+json", "JSON-LD"),
    ("application/trig", "TriG"),
    ("application/n-quads", "N-Quads"),
    ("text/n3", "N3"),
];

/// What the description says.
pub(crate) struct Description<'a> {
    /// What clients see before the path.
    pub(crate) base_url: &'a str,
    /// The path that was asked, as it was written: the endpoint is the one whose description this is.
    pub(crate) path: &'a str,
    /// Whether there are updates.
    pub(crate) writes: bool,
    /// Which endpoints queries may call.
    pub(crate) services: &'a AddressPolicy,
    /// Triples of the default graph.
    pub(crate) triples: u64,
}

/// Whether a client prefers a page to any form that the description has.
pub(crate) fn is_for_people(accept: &str) -> bool {
    let formats = GraphFormat::OFFERS.iter().map(|offer| offer.media_type);
    prefers(accept, formats.chain([PAGE])) == Some(PAGE)
}

/// Whether a client prefers a form of the description to a page.
pub(crate) fn is_for_programs(accept: &str) -> bool {
    let formats = GraphFormat::OFFERS.iter().map(|offer| offer.media_type);
    let preferred = prefers(accept, [PAGE].into_iter().chain(formats));
    preferred.is_some_and(|media_type| media_type != PAGE)
}

/// The media type that a client prefers; the earlier one where it prefers none.
fn prefers(accept: &str, media_types: impl Iterator<Item = &'static str>) -> Option<&'static str> {
    let offers: Vec<_> = media_types
        .map(|media_type| Offer::new(media_type, ()))
        .collect();
    negotiate(accept, &offers).map(|offer| offer.media_type)
}

/// The description in the format that a client prefers.
pub(crate) fn respond(
    description: &Description<'_>,
    headers: &HeaderMap,
) -> Result<Response<Body>, Refusal> {
    let accept = accept(headers);
    let chosen = negotiate(&accept, GraphFormat::OFFERS).ok_or_else(|| {
        let message = format!(
            "the parameter query is missing; without it this is a description of the service, \
             which is not available as {accept}"
        );
        Refusal::new(StatusCode::NOT_ACCEPTABLE, message)
    })?;
    let mut writer = GraphWriter::new(chosen.format);
    let mut out = Vec::new();
    for triple in description.triples() {
        writer
            .triple(&mut out, triple.as_ref())
            .map_err(|_| Refusal::internal())?;
    }
    writer.finish(&mut out).map_err(|_| Refusal::internal())?;
    Ok(respond::whole(chosen.media_type, out))
}

impl Description<'_> {
    fn triples(&self) -> Vec<Triple> {
        let mut graph = Statements(Vec::new());
        let dataset = graph.dataset(self.triples);
        // Comunica takes any service without a name for the one that it asked, and of several the last.
        let service = NamedNode::new_unchecked(self.url(self.path));
        graph.push(&service, rdf::TYPE.into_owned(), sd("Service"));
        graph.add(&service, "endpoint", service.clone());
        graph.add(&service, "defaultDataset", dataset);
        graph.add(&service, "supportedLanguage", sd("SPARQL11Query"));
        if *self.services != AddressPolicy::None {
            graph.add(&service, "feature", sd("BasicFederatedQuery"));
        }
        let solutions = SolutionsFormat::OFFERS.iter().map(|o| o.media_type);
        let booleans = BooleanFormat::OFFERS.iter().map(|o| o.media_type);
        let graphs = GraphFormat::OFFERS.iter().map(|o| o.media_type);
        for format in formats(solutions.chain(booleans).chain(graphs)) {
            graph.add(&service, "resultFormat", format);
        }
        // What they are is described there.
        let streams = NamedNode::new_unchecked(self.url("/streams"));
        graph.push(&service, rdfs::SEE_ALSO.into_owned(), streams);
        if self.writes {
            graph.add(&service, "supportedLanguage", sd("SPARQL11Update"));
            // A graph that was made or emptied stays.
            graph.add(&service, "feature", sd("EmptyGraphs"));
            let read = Format::ALL.iter().map(|format| format.media_type());
            for format in formats(read) {
                graph.add(&service, "inputFormat", format);
            }
        }
        graph.0
    }

    fn url(&self, path: &str) -> String {
        format!("{}{path}", self.base_url)
    }
}

struct Statements(Vec<Triple>);

impl Statements {
    fn add(
        &mut self,
        subject: &(impl Into<NamedOrBlankNode> + Clone),
        property: &str,
        object: impl Into<Term>,
    ) {
        self.push(subject, sd(property), object);
    }

    fn push(
        &mut self,
        subject: &(impl Into<NamedOrBlankNode> + Clone),
        property: NamedNode,
        object: impl Into<Term>,
    ) {
        self.0.push(Triple::new(subject.clone(), property, object));
    }

    /// A node of this class, which no other description has.
    fn node(&mut self, label: &str, class: &str) -> BlankNode {
        let node = BlankNode::new_unchecked(label);
        self.push(&node, rdf::TYPE.into_owned(), sd(class));
        node
    }

    fn dataset(&mut self, triples: u64) -> BlankNode {
        let dataset = self.node("dataset", "Dataset");
        let default = self.node("defaultGraph", "Graph");
        let count = Literal::new_typed_literal(triples.to_string(), xsd::INTEGER);
        self.push(&default, NamedNode::new_unchecked(VOID_TRIPLES), count);
        self.add(&dataset, "defaultGraph", default);
        dataset
    }
}

fn sd(name: &str) -> NamedNode {
    NamedNode::new_unchecked(format!("{SD}{name}"))
}

/// The IRIs of formats, each once; those that have none are left out.
fn formats(media_types: impl Iterator<Item = &'static str>) -> Vec<NamedNode> {
    let mut formats = Vec::new();
    for media_type in media_types {
        let Some((_, name)) = FORMATS.iter().find(|(name, _)| *name == media_type) else {
            continue;
        };
        let format = NamedNode::new_unchecked(format!("http://www.w3.org/ns/formats/{name}"));
        if !formats.contains(&format) {
            formats.push(format);
        }
    }
    formats
}
