//! What does the server say about its streams, in the vocabulary for streams of the web?
//!
//! [VoCaLS](https://linkeddata.stream/resources/vocals/) describes a stream by a document about it, the
//! endpoints that it has, and the service that processes it.

use hyper::Response;
use hyper::header::{HeaderMap, HeaderValue, VARY};
use jindou_engine::results::{GraphFormat, GraphWriter, Offer, negotiate};
use jindou_engine::{StreamStatus, TupleFormat};
use oxrdf::vocab::rdf;
use oxrdf::{Literal, NamedNode, Term, Triple};

use crate::body::Body;
use crate::error::Refusal;
use crate::respond;
use crate::service::accept;

const VOCALS: &str = "http://w3id.org/rsp/vocals#";
const SERVICES: &str = "http://w3id.org/rsp/vocals-sd#";
const CATALOGUE: &str = "http://www.w3.org/ns/dcat#";
const TERMS: &str = "http://purl.org/dc/terms/";
const MEDIA_TYPES: &str = "https://www.iana.org/assignments/media-types/";
const JSON: &str = "application/json";

/// The format that a client prefers to JSON, if it prefers one.
pub(crate) fn preferred(headers: &HeaderMap) -> Option<Offer<GraphFormat>> {
    let accept = accept(headers);
    let json = Offer::new(JSON, None);
    let graphs = GraphFormat::OFFERS.iter();
    let graphs = graphs.map(|offer| Offer::new(offer.media_type, Some(offer.format)));
    let offers: Vec<_> = std::iter::once(json).chain(graphs).collect();
    let chosen = negotiate(&accept, &offers)?;
    Some(Offer::new(chosen.media_type, chosen.format?))
}

/// A description of streams.
pub(crate) fn respond(
    base_url: &str,
    streams: &[StreamStatus],
    offer: &Offer<GraphFormat>,
) -> Result<Response<Body>, Refusal> {
    let mut writer = GraphWriter::new(offer.format);
    let mut out = Vec::new();
    for triple in triples(base_url, streams) {
        let written = writer.triple(&mut out, triple.as_ref());
        written.map_err(|_| Refusal::internal())?;
    }
    writer.finish(&mut out).map_err(|_| Refusal::internal())?;
    let mut response = respond::whole(offer.media_type, out);
    let vary = HeaderValue::from_static("accept");
    response.headers_mut().insert(VARY, vary);
    Ok(response)
}

fn triples(base_url: &str, streams: &[StreamStatus]) -> Vec<Triple> {
    let mut triples = Vec::new();
    let mut add = |subject: &NamedNode, predicate: NamedNode, object: Term| {
        triples.push(Triple::new(subject.clone(), predicate, object));
    };
    let service = NamedNode::new_unchecked(format!("{base_url}/streams"));
    for class in ["CatalogService", "ProcessingService"] {
        add(
            &service,
            rdf::TYPE.into_owned(),
            term(SERVICES, class).into(),
        );
    }
    for stream in streams {
        let address = format!("{base_url}/streams/{}", stream.name);
        let descriptor = NamedNode::new_unchecked(&address);
        let endpoint = NamedNode::new_unchecked(format!("{address}#endpoint"));
        let iri = NamedNode::new_unchecked(&stream.definition.iri);
        let class = rdf::TYPE.into_owned();
        let title = Literal::new_simple_literal(&stream.name);
        add(
            &service,
            term(SERVICES, "availableStream"),
            iri.clone().into(),
        );
        add(
            &descriptor,
            class.clone(),
            term(VOCALS, "StreamDescriptor").into(),
        );
        add(&descriptor, term(CATALOGUE, "dataset"), iri.clone().into());
        add(&iri, class.clone(), term(VOCALS, "RDFStream").into());
        add(&iri, term(TERMS, "title"), title.into());
        add(&iri, term(VOCALS, "hasEndpoint"), endpoint.clone().into());
        add(&endpoint, class, term(VOCALS, "StreamEndpoint").into());
        add(&endpoint, term(CATALOGUE, "accessURL"), descriptor.into());
        for media_type in TupleFormat::MEDIA_TYPES {
            let format = term(MEDIA_TYPES, media_type);
            add(&endpoint, term(CATALOGUE, "mediaType"), format.into());
        }
    }
    triples
}

fn term(namespace: &str, name: &str) -> NamedNode {
    NamedNode::new_unchecked(format!("{namespace}{name}"))
}
