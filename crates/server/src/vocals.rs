//! What does the server say about its streams, in the vocabulary for streams of the web?
//!
//! [VoCaLS](https://linkeddata.stream/resources/vocals/) describes a stream by a document about it, the
//! endpoints that it has, and the service that processes it.

use hyper::header::HeaderMap;
use jindou_engine::results::{GraphFormat, GraphWriter, Offer, negotiate};
use jindou_engine::{StreamStatus, TupleFormat};
use oxrdf::vocab::rdf;
use oxrdf::{Literal, NamedNode, Term, Triple};

use crate::error::Refusal;
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

/// How many bytes a description of streams has.
///
/// # Errors
/// An error inside.
pub(crate) fn bytes(
    base_url: &str,
    streams: &[StreamStatus],
    format: GraphFormat,
) -> Result<usize, Refusal> {
    let (mut bytes, mut out) = (0, Vec::new());
    let mut count = |out: &mut Vec<u8>| {
        bytes += out.len();
        out.clear();
    };
    write(base_url, streams, format, &mut out, &mut count)?;
    count(&mut out);
    Ok(bytes)
}

/// Writes a description of streams, and calls a function after each, which may take what was written.
///
/// # Errors
/// An error inside.
pub(crate) fn write(
    base_url: &str,
    streams: &[StreamStatus],
    format: GraphFormat,
    out: &mut Vec<u8>,
    mut after_each: impl FnMut(&mut Vec<u8>),
) -> Result<(), Refusal> {
    let mut writer = GraphWriter::new(format);
    let mut put = |triples: Vec<Triple>, out: &mut Vec<u8>| {
        let mut triples = triples.iter();
        let written = triples.try_for_each(|triple| writer.triple(out, triple.as_ref()));
        written.map_err(|_| Refusal::internal())
    };
    put(of_service(base_url), out)?;
    for stream in streams {
        put(of_stream(base_url, stream), out)?;
        after_each(out);
    }
    writer.finish(out).map_err(|_| Refusal::internal())
}

fn service(base_url: &str) -> NamedNode {
    NamedNode::new_unchecked(format!("{base_url}/streams"))
}

fn of_service(base_url: &str) -> Vec<Triple> {
    let classes = ["CatalogService", "ProcessingService"];
    let is_a = |class| Triple::new(service(base_url), rdf::TYPE, term(SERVICES, class));
    classes.map(is_a).into()
}

fn of_stream(base_url: &str, stream: &StreamStatus) -> Vec<Triple> {
    let mut triples = Vec::new();
    let mut add = |subject: &NamedNode, predicate: NamedNode, object: Term| {
        triples.push(Triple::new(subject.clone(), predicate, object));
    };
    let address = format!("{base_url}/streams/{}", stream.name);
    let descriptor = NamedNode::new_unchecked(&address);
    let endpoint = NamedNode::new_unchecked(format!("{address}#endpoint"));
    let iri = NamedNode::new_unchecked(&stream.definition.iri);
    let class = rdf::TYPE.into_owned();
    let title = Literal::new_simple_literal(&stream.name);
    add(
        &service(base_url),
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
    triples
}

fn term(namespace: &str, name: &str) -> NamedNode {
    NamedNode::new_unchecked(format!("{namespace}{name}"))
}
