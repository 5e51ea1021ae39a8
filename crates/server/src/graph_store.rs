//! How are whole graphs read and written, by the SPARQL 1.1 Graph Store HTTP Protocol?
//!
//! A graph is named by `?graph=` its IRI, by `?default`, or by the URL itself if that is below
//! `/store/`. What names no graph is about the whole dataset, as Fuseki has it: reading always,
//! writing if the body is in a format of datasets. Each write is one transaction.

use std::sync::Arc;
use std::time::Instant;

use hyper::body::Incoming;
use hyper::header::{HOST, HeaderMap, HeaderValue, LOCATION};
use hyper::{Method, Request, Response, StatusCode};
use jindou_engine::ingest::{Compression, Format, Source};
use jindou_engine::results::{GraphFormat, GraphWriter, Offer, QuadText, negotiate};
use jindou_engine::{
    Database, EngineError, GraphReport, GraphSelection, QueryOptions, Reservation, UpdateOptions,
    UpdateReport,
};
use oxrdf::NamedNode;

use crate::body::Body;
use crate::choice::choose;
use crate::elsewhere;
use crate::error::Refusal;
use crate::execute::{Asked, Output, Query, Sink, Stop};
use crate::multipart;
use crate::protocol::{GraphParameter, Parameters};
use crate::queries::Client;
use crate::receive::Document;
use crate::respond;
use crate::service::{Service, accept, content_type, media_type};
use crate::update::{Write, written};

/// The graph store; graphs named by their URLs are below it.
pub(crate) const STORE: &str = "/store";
pub(crate) const METHODS: &str = "GET, HEAD, PUT, POST, DELETE, OPTIONS";

/// The media type of forms with files.
const MULTIPART: &str = "multipart/form-data";
/// What a part of one is called in messages, and the body of another request.
const PART: &str = "the part of the form";
const BODY: &str = "the body";
/// What a graph may take, with its text, to be laid out as a whole.
pub(crate) const MOST_GATHERED_BYTES: usize = 16 << 20;
/// Triples between two looks at the clock.
const LOOK: u64 = 256;

/// What a request reads or writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Stored {
    /// All graphs.
    Dataset,
    /// `None` is the default graph.
    Graph(Option<NamedNode>),
}

/// What a request is about.
struct Target {
    stored: Stored,
    /// What relative IRIs are resolved against.
    base: String,
    /// The graph was asked for by nothing, and named here.
    new: bool,
}

/// The documents that a request brings.
struct Brought {
    documents: Vec<Source>,
    /// How many bytes they have, decompressed.
    bytes: usize,
    /// What they take; to be kept until they are stored.
    memory: Vec<Reservation>,
}

impl Service {
    /// Answers a request to the graph store, of a method that it takes.
    pub(crate) async fn graph_store(
        &self,
        request: Request<Incoming>,
        client: &Arc<Client>,
    ) -> Result<Response<Body>, Refusal> {
        let target = self.target(&request)?;
        match *request.method() {
            Method::GET => self.read_stored(target, request.headers(), client).await,
            Method::HEAD => self.head(&target, request.headers()),
            Method::DELETE => self.delete_graph(target, client).await,
            Method::PUT | Method::POST => self.write_stored(target, request, client).await,
            _ => Err(Refusal::method(METHODS)),
        }
    }

    fn target(&self, request: &Request<Incoming>) -> Result<Target, Refusal> {
        let uri = request.uri();
        let here = format!("{}{}", self.base_url(request)?, uri.path());
        let parameter = GraphParameter::of(uri.query().unwrap_or_default())?;
        if uri.path() != STORE {
            if parameter != GraphParameter::None {
                return Err(Refusal::bad_request(format!(
                    "the URL names a graph itself; graph and default are parameters of {STORE}"
                )));
            }
            let iri = match uri.query() {
                Some(query) => format!("{here}?{query}"),
                None => here,
            };
            return Target::named(iri, false);
        }
        match parameter {
            GraphParameter::Default => Ok(Target {
                stored: Stored::Graph(None),
                base: here,
                new: false,
            }),
            GraphParameter::Named(graph) => Ok(Target {
                base: graph.as_str().to_owned(),
                stored: Stored::Graph(Some(graph)),
                new: false,
            }),
            GraphParameter::None => self.target_of_none(request, here),
        }
    }

    /// What a request is about that names no graph.
    fn target_of_none(&self, request: &Request<Incoming>, here: String) -> Result<Target, Refusal> {
        let which = |advice: &str| {
            let message =
                format!("which graph? Give {STORE}?graph=IRI or {STORE}?default; {advice}");
            Err(Refusal::bad_request(message))
        };
        let is_dataset = match *request.method() {
            Method::GET | Method::HEAD => true,
            Method::DELETE => return which("CLEAR ALL at /update removes all graphs"),
            _ => is_dataset(&content_type(request.headers())?),
        };
        if is_dataset {
            return Ok(Target {
                stored: Stored::Dataset,
                base: here,
                new: false,
            });
        }
        if request.method() == Method::POST {
            let name = self.executor.queries.new_name();
            return Target::named(format!("{here}/{name}"), true);
        }
        which(
            "the whole dataset is replaced by application/trig, application/n-quads and \
             application/ld+json",
        )
    }

    /// What comes before the path in the URLs that clients see.
    pub(crate) fn base_url(&self, request: &Request<Incoming>) -> Result<String, Refusal> {
        if let Some(public) = &self.config.public_url {
            return Ok(public.trim_end_matches('/').to_owned());
        }
        let host = request.headers().get(HOST).and_then(|h| h.to_str().ok());
        let authority = request.uri().authority().map(|a| a.as_str());
        let scheme = match self.config.tls {
            Some(_) => "https",
            None => "http",
        };
        let url = match authority.or(host) {
            Some(host) => format!("{scheme}://{host}"),
            None => format!("{scheme}://{}", self.config.address),
        };
        match NamedNode::new(format!("{url}/")) {
            Ok(_) => Ok(url),
            Err(_) => Err(Refusal::bad_request("the header Host is no name of a host")),
        }
    }

    async fn read_stored(
        &self,
        target: Target,
        headers: &HeaderMap,
        client: &Arc<Client>,
    ) -> Result<Response<Body>, Refusal> {
        let query = Query {
            parameters: Parameters {
                query: Some(target.describe("GET")),
                ..Parameters::default()
            },
            asked: Asked::Stored(target.stored),
            base: None,
            accept: accept(headers),
            gzip: self.config.gzip && respond::accepts_gzip(headers),
            limit: self.config.default_timeout,
            client: Arc::clone(client),
            _memory: None,
        };
        self.executor.answer(query).await
    }

    /// What GET would say of itself, without looking at the graph's statements.
    fn head(&self, target: &Target, headers: &HeaderMap) -> Result<Response<Body>, Refusal> {
        let accept = accept(headers);
        let stored = &target.stored;
        let chosen = negotiate(&accept, stored.offers()).ok_or_else(|| {
            let message = format!("{} is not available as {accept}", stored.name());
            Refusal::new(StatusCode::NOT_ACCEPTABLE, message)
        })?;
        if let Stored::Graph(Some(name)) = stored
            && !self.executor.database.has_graph(&name.clone().into())
        {
            return Err(absent(Some(name)));
        }
        Ok(respond::with_body(chosen.media_type, Body::Unsent))
    }

    async fn delete_graph(
        &self,
        target: Target,
        client: &Arc<Client>,
    ) -> Result<Response<Body>, Refusal> {
        let write = self.write_of(target.describe("DELETE"), 0, client);
        let Stored::Graph(graph) = target.stored else {
            return Err(Refusal::internal());
        };
        let work =
            move |database: &Database, options| database.drop_graph(graph.as_ref(), &options);
        let (report, id) = self.executor.write(write, |report| report, work).await?;
        Ok(written(&report, id))
    }

    async fn write_stored(
        &self,
        target: Target,
        request: Request<Incoming>,
        client: &Arc<Client>,
    ) -> Result<Response<Body>, Refusal> {
        let replace = request.method() == Method::PUT;
        let text = target.describe(if replace { "PUT" } else { "POST" });
        let kind = content_type(request.headers())?;
        let is_form = media_type(&kind) == MULTIPART;
        if !is_form && !Format::is_vague(&media_type(&kind)) {
            // What is not taken is not read first.
            format(&media_type(&kind))?;
        }
        let database = &self.executor.database;
        if let Some(elsewhere) =
            elsewhere::large_document(database, request.headers(), request.uri())?
        {
            return Ok(elsewhere);
        }
        let brought = self.brought(request, &kind, &target.base).await?;
        let write = self.write_of(text, brought.bytes, client);
        let stored = target.stored.clone();
        let work = move |database: &Database, options| {
            let _memory = brought.memory;
            stored.write(replace, database, brought.documents, &options)
        };
        let report: fn(&GraphReport) -> &UpdateReport = |done| &done.update;
        let (done, id) = self.executor.write(write, report, work).await?;
        let mut response = written(&done.update, id);
        if !done.existed {
            *response.status_mut() = StatusCode::CREATED;
        }
        if let (Stored::Graph(Some(graph)), true) = (target.stored, target.new) {
            let location = HeaderValue::from_str(graph.as_str());
            let location = location.map_err(|_| Refusal::internal())?;
            response.headers_mut().insert(LOCATION, location);
        }
        Ok(response)
    }

    /// Reads what a request brings.
    async fn brought(
        &self,
        request: Request<Incoming>,
        kind: &str,
        base: &str,
    ) -> Result<Brought, Refusal> {
        if media_type(kind) == MULTIPART {
            // Its parts are distinguished in memory.
            let form = self.receive(request).await?;
            return self.brought_by_form(kind, &form.bytes, base).await;
        }
        match self.receive_document(request).await? {
            Document::InFile(spooled) => {
                let mut head = [0; SNIFFED_BYTES];
                let head = spooled.peek(&mut head).map_err(|_| Refusal::internal())?;
                let format = format_of(&media_type(kind), head)?;
                Ok(Brought {
                    bytes: usize::try_from(spooled.bytes()).unwrap_or(usize::MAX),
                    documents: vec![document(Source::reader(BODY, spooled), format, base)],
                    memory: Vec::new(),
                })
            }
            Document::InMemory(body) => {
                let bytes = body.bytes.len();
                // Sources copy their bytes.
                let memory = self.reserve_large(bytes)?.into_iter().collect();
                Ok(Brought {
                    documents: document_of_body(kind, body.bytes, base)?,
                    bytes,
                    memory,
                })
            }
        }
    }

    async fn brought_by_form(
        &self,
        kind: &str,
        form: &[u8],
        base: &str,
    ) -> Result<Brought, Refusal> {
        // The bytes of a part are copied from the form, and sources copy theirs.
        let mut memory: Vec<_> = self.reserve_large(2 * form.len())?.into_iter().collect();
        let (mut documents, mut unpacked_bytes) = (Vec::new(), 0);
        for part in multipart::parts(kind, form)? {
            let most_bytes = self.config.max_body_bytes - unpacked_bytes;
            let source = match self.unpack(part.bytes, most_bytes).await? {
                Some(unpacked) => {
                    unpacked_bytes += unpacked.bytes.len();
                    memory.extend(unpacked.memory);
                    memory.extend(self.reserve_large(unpacked.bytes.len())?);
                    let format = format_of_part(&part, &unpacked.bytes)?;
                    document(Source::bytes(PART, unpacked.bytes), format, base)
                }
                None => {
                    let format = format_of_part(&part, part.bytes)?;
                    document(Source::bytes(PART, part.bytes), format, base)
                }
            };
            documents.push(source);
        }
        Ok(Brought {
            documents,
            bytes: form.len() + unpacked_bytes,
            memory,
        })
    }

    pub(crate) fn write_of(&self, text: String, size: usize, client: &Arc<Client>) -> Write {
        Write {
            text,
            size,
            limit: self.config.default_timeout,
            client: Arc::clone(client),
        }
    }
}

impl Target {
    fn named(iri: String, new: bool) -> Result<Self, Refusal> {
        let graph = NamedNode::new(iri).map_err(|error| {
            Refusal::bad_request(format!("the URL is no IRI of a graph: {error}"))
        })?;
        Ok(Self {
            base: graph.as_str().to_owned(),
            stored: Stored::Graph(Some(graph)),
            new,
        })
    }

    /// The request, for the list of queries.
    fn describe(&self, method: &str) -> String {
        match &self.stored {
            Stored::Dataset => format!("{method} the dataset"),
            Stored::Graph(Some(graph)) => format!("{method} graph {graph}"),
            Stored::Graph(None) => format!("{method} the default graph"),
        }
    }
}

impl Stored {
    /// What it is called in messages.
    fn name(&self) -> &'static str {
        match self {
            Self::Dataset => "a dataset",
            Self::Graph(_) => "a graph",
        }
    }

    fn offers(&self) -> &'static [Offer<GraphFormat>] {
        match self {
            Self::Dataset => GraphFormat::DATASET_OFFERS,
            Self::Graph(_) => GraphFormat::OFFERS,
        }
    }

    /// Writes documents in the place of what is there, or beside it.
    fn write(
        &self,
        replace: bool,
        database: &Database,
        documents: Vec<Source>,
        options: &UpdateOptions,
    ) -> Result<GraphReport, EngineError> {
        let report = match (self, replace) {
            (Self::Graph(name), true) => {
                return database.replace_graph(name.as_ref(), documents, options);
            }
            (Self::Graph(name), false) => {
                return database.add_to_graph(name.as_ref(), documents, options);
            }
            (Self::Dataset, true) => database.replace_dataset(documents, options)?,
            (Self::Dataset, false) => database.add_to_dataset(documents, options)?,
        };
        Ok(GraphReport::of_dataset(report))
    }
}

/// Whether a body of this type may have named graphs.
fn is_dataset(content_type: &str) -> bool {
    let format = format(&media_type(content_type));
    matches!(format, Ok(Format::TriG | Format::NQuads | Format::JsonLd))
}

fn absent(graph: Option<&NamedNode>) -> Refusal {
    let name = graph.map(ToString::to_string).unwrap_or_default();
    Refusal::new(StatusCode::NOT_FOUND, format!("there is no graph {name}"))
}

/// The document in the body of a request that is no form; none, if nothing came.
fn document_of_body(kind: &str, body: Vec<u8>, base: &str) -> Result<Vec<Source>, Refusal> {
    if body.is_empty() && kind.is_empty() {
        return Ok(Vec::new());
    }
    let format = format_of(&media_type(kind), &body)?;
    let source = Source::bytes(BODY, body);
    Ok(vec![document(source, format, base)])
}

/// The format of a part of a form that begins so.
fn format_of_part(part: &multipart::Part<'_>, head: &[u8]) -> Result<Format, Refusal> {
    let kind = media_type(part.content_type);
    let (by_name, _) = Format::from_file_name(part.file_name);
    match by_name {
        // What browsers say of files that they do not know.
        Some(_) if Format::is_vague(&kind) => {
            Format::of_content(head, by_name).ok_or_else(|| unknown_format(&kind))
        }
        _ => format_of(&kind, head),
    }
}

/// So much of a document says its format, where no media type does.
const SNIFFED_BYTES: usize = 1 << 10;

/// The format of a document that begins so.
fn format_of(kind: &str, head: &[u8]) -> Result<Format, Refusal> {
    if !Format::is_vague(kind) {
        return format(kind);
    }
    // Of plain text, as N-Triples was before it had a type of its own, and of what is XML or JSON.
    let likely = format(kind).ok();
    Format::of_content(head, likely).ok_or_else(|| unknown_format(kind))
}

fn document(source: Source, format: Format, base: &str) -> Source {
    source
        .with_format(format)
        .with_compression(Compression::None)
        .with_base_iri(base)
}

fn format(media_type: &str) -> Result<Format, Refusal> {
    let known = media_type
        .contains('/')
        .then(|| Format::from_name(media_type));
    match known {
        Some(Ok(format)) => Ok(format),
        _ => Err(unknown_format(media_type)),
    }
}

fn unknown_format(media_type: &str) -> Refusal {
    let known: Vec<&str> = Format::ALL
        .iter()
        .map(|format| format.media_type())
        .collect();
    let said = match media_type {
        "" => "no Content-Type says in which format the graph is".to_owned(),
        other => format!("a graph is not read as {other}"),
    };
    let message = format!("{said}; it may be {}", known.join(", "));
    Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, message)
}

/// Writes a graph as a whole, or all of them, to `sink`; what is returned is left to be sent.
pub(crate) fn run(
    database: &Database,
    stored: &Stored,
    query: &Query,
    options: &QueryOptions,
    sink: &mut impl Sink,
) -> Result<Output, Stop> {
    let (media_type, format) = choose(
        query,
        stored.name(),
        stored.offers(),
        GraphFormat::from_name,
        |format| format.media_type(),
    )?;
    let begun = Instant::now();
    let pool = database.config().memory_pool.as_ref();
    let mut writer = GraphWriter::new(format)
        .with_names(database.prefixes().after(&[]))
        .with_memory(pool, MOST_GATHERED_BYTES);
    let mut out = Vec::with_capacity(4096);
    let visit = |mut quad: QuadText<'_>| {
        if *stored != Stored::Dataset {
            // The statements of one graph, whatever its name.
            quad.graph = None;
        }
        writer.quad(&mut out, quad)?;
        sink.rows(writer.triples())?;
        let look = writer.triples().is_multiple_of(LOOK);
        if look {
            check(options, begun)?;
            writer.pause(&mut out)?;
        }
        sink.offer(media_type, &mut out, look)
    };
    match stored {
        Stored::Dataset => {
            database.for_each_quad(&GraphSelection::All, visit)?;
        }
        Stored::Graph(name) => {
            let visited = database.for_each_quad_in(name.as_ref(), visit)?;
            visited.ok_or_else(|| Stop::Refused(absent(name.as_ref())))?;
        }
    }
    let rows = writer.triples();
    writer.finish(&mut out)?;
    Ok(Output {
        media_type,
        bytes: out,
        rows,
    })
}

/// Ends the reading where it was cancelled or took too long.
fn check(options: &QueryOptions, begun: Instant) -> Result<(), Stop> {
    let cancelled = options.cancellation.as_ref();
    if cancelled.is_some_and(jindou_engine::CancellationToken::is_cancelled) {
        return Err(Stop::Engine(EngineError::Cancelled));
    }
    match options.timeout {
        Some(limit) if begun.elapsed() > limit => Err(Stop::Engine(EngineError::Timeout { limit })),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_told_by_media_type_only() {
        assert_eq!(format("text/turtle").ok(), Some(Format::Turtle));
        for wrong in ["", "turtle", "text/html", "application/sparql-update"] {
            let refusal = format(wrong).expect_err(wrong);
            assert_eq!(refusal.status, StatusCode::UNSUPPORTED_MEDIA_TYPE);
        }
    }

    #[test]
    fn a_type_that_says_nothing_leaves_it_to_the_document() {
        let turtle = b"@prefix e: <http://e/> .";
        for kind in ["", "application/octet-stream", "text/plain"] {
            assert_eq!(format_of(kind, turtle).ok(), Some(Format::Turtle), "{kind}");
        }
        for kind in ["application/xml", "text/xml", "application/json"] {
            assert_eq!(format_of(kind, turtle).ok(), Some(Format::Turtle), "{kind}");
        }
        assert_eq!(format_of("text/xml", b"?").ok(), Some(Format::RdfXml));
        assert!(format_of("application/gzip", b"\x1f\x8b").is_err());
        let line = b"<http://a> <http://b> <http://c> .";
        assert_eq!(format_of("text/plain", line).ok(), Some(Format::NTriples));
        assert_eq!(
            format_of("text/turtle", b"<?xml").ok(),
            Some(Format::Turtle)
        );
        assert!(format_of("application/octet-stream", b"hello").is_err());
    }

    #[test]
    fn an_empty_body_is_an_empty_graph_in_any_format() {
        let count = |kind: &str, body: &'static str| {
            document_of_body(kind, body.into(), "http://e/").map(|documents| documents.len())
        };
        assert_eq!(count("", "").ok(), Some(0));
        assert_eq!(count("text/turtle; charset=utf-8", "").ok(), Some(1));
        assert!(count("", "hello").is_err());
    }
}
