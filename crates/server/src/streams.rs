//! How are streams and continuous queries made, fed and asked about?
//!
//! What makes, changes or feeds one passes the gate of updates and runs on a thread that it may
//! block: tuples that complete a window have its queries evaluated before they are acknowledged. What
//! only asks runs there, too, as it may wait for a lock that such a thread has.

use std::fmt;
use std::sync::Arc;

use hyper::body::Incoming;
use hyper::header::{HeaderMap, HeaderValue, VARY};
use hyper::{Method, Request, Response, StatusCode};
use jindou_engine::results::{GraphFormat, Offer};
use jindou_engine::{
    ContinuousStatus, Database, EngineError, MOST_DEFINITION_BYTES, Reservation, StreamDefinition,
    StreamStatus, TupleFormat, json_bytes,
};
use serde::Serialize;
use tokio::sync::oneshot;

use crate::body::{Body, CancelOnDrop};
use crate::elsewhere;
use crate::error::Refusal;
use crate::execute::{Executor, Stop, guarded, no_thread};
use crate::protocol;
use crate::queries::{Client, Kind};
use crate::respond;
use crate::sender::Sender;
use crate::service::{SHOWN_BYTES, Service, content_type, media_type};
use crate::sinks::Fed;
use crate::threads::Purpose;
use crate::update::Write;
use crate::vocals;
use crate::websocket;

const STREAMS: &str = "streams";
const CONTINUOUS: &str = "continuous";
pub(crate) const JSON: &str = "application/json";
/// The media type of lines with times, and of those that came late.
const LINES: &str = "text/tab-separated-values";
/// The media types of texts of continuous queries.
const TEXTS: [&str; 3] = [
    "application/sparql-query",
    "application/rsp-ql",
    "text/plain",
];
/// What a compressed answer takes while it grows, as a multiple of an answer that cannot be compressed.
const GZIP_FACTOR: usize = 3;
/// What pushed tuples take, as a multiple of their text: that, a copy, and the terms of each.
pub(crate) const PUSH_FACTOR: usize = 6;

/// What a request is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Endpoint {
    Streams,
    Stream(String),
    Heartbeat(String),
    Late(String),
    Queries,
    Query(String),
    Pause(String),
    Resume(String),
    Results(String),
    Sinks(String),
    Sink(String, String),
}

impl Endpoint {
    /// What a path names; `None` if it is none of these. Names need no escapes.
    pub(crate) fn of(path: &str) -> Option<Self> {
        let mut parts = path.strip_prefix('/')?.split('/');
        let kind = parts.next()?;
        if kind != STREAMS && kind != CONTINUOUS {
            return None;
        }
        let is_stream = kind == STREAMS;
        let name = parts.next().unwrap_or_default().to_owned();
        let part = parts.next();
        let of_part = parts.next();
        if parts.next().is_some() {
            return None;
        }
        if let Some(sink) = of_part {
            let is_sink = !is_stream && part == Some("sinks") && !sink.is_empty();
            return is_sink.then(|| Self::Sink(name, sink.to_owned()));
        }
        Some(match (is_stream, part) {
            (true, None) if name.is_empty() => Self::Streams,
            (false, None) if name.is_empty() => Self::Queries,
            (true, None) => Self::Stream(name),
            (false, None) => Self::Query(name),
            (true, Some("heartbeat")) => Self::Heartbeat(name),
            (true, Some("late")) => Self::Late(name),
            (false, Some("pause")) => Self::Pause(name),
            (false, Some("resume")) => Self::Resume(name),
            (false, Some("results")) => Self::Results(name),
            (false, Some("sinks")) => Self::Sinks(name),
            _ => return None,
        })
    }

    pub(crate) fn methods(&self) -> &'static str {
        match self {
            Self::Streams | Self::Late(_) | Self::Queries | Self::Sinks(_) => "GET, HEAD, OPTIONS",
            Self::Stream(_) => "GET, HEAD, PUT, POST, DELETE, OPTIONS",
            Self::Query(_) | Self::Sink(..) => "GET, HEAD, PUT, DELETE, OPTIONS",
            Self::Heartbeat(_) | Self::Pause(_) | Self::Resume(_) => "POST, OPTIONS",
            Self::Results(_) => "GET, OPTIONS",
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Streams => f.write_str("streams"),
            Self::Queries => f.write_str("continuous queries"),
            Self::Stream(name) | Self::Heartbeat(name) | Self::Late(name) => {
                write!(f, "the stream {name}")
            }
            Self::Query(name)
            | Self::Pause(name)
            | Self::Resume(name)
            | Self::Results(name)
            | Self::Sinks(name) => write!(f, "the continuous query {name}"),
            Self::Sink(query, name) => write!(f, "the sink {name} of the continuous query {query}"),
        }
    }
}

impl Service {
    /// Answers a request about streams and continuous queries, of any method but OPTIONS.
    pub(crate) async fn streams(
        &self,
        endpoint: Endpoint,
        request: Request<Incoming>,
        client: &Arc<Client>,
    ) -> Result<Response<Body>, Refusal> {
        let methods = endpoint.methods();
        let method = request.method().clone();
        let reads = matches!(method, Method::GET | Method::HEAD);
        let is_socket = websocket::is_asked_for(&request);
        if !reads {
            self.check_change(&endpoint, &request)?;
        }
        if self.executor.database.has_resting_streams() {
            return Err(Refusal::new(
                StatusCode::FORBIDDEN,
                "this server was started to read only; streams and continuous queries of the store rest",
            ));
        }
        if let Some(elsewhere) = self.streams_elsewhere(&request)? {
            return Ok(elsewhere);
        }
        // Until all is said.
        let _catalogue = match endpoint {
            Endpoint::Streams | Endpoint::Queries => self.reserve_catalogue()?,
            _ => None,
        };
        match endpoint {
            Endpoint::Streams if reads => {
                if let Some(offer) = vocals::preferred(request.headers()) {
                    let all = self.executor.ask(|database| Ok(database.streams())).await?;
                    return self.described_in_rdf(&request, &all, &offer);
                }
                let connectors = Arc::clone(&self.connectors);
                let all = self.executor.ask(move |database| {
                    let streams = database.streams().into_iter();
                    let fed = streams.map(|stream| Fed::new(stream, database, &connectors));
                    Ok(fed.collect::<Vec<_>>())
                });
                self.json(&all.await?, request.headers())
            }
            Endpoint::Queries if reads => {
                let all = |database: &Database| Ok(database.continuous_queries());
                let all = self.executor.ask(all).await?;
                self.json(&all, request.headers())
            }
            Endpoint::Stream(name) if is_socket => self.push_socket(name, request, client),
            Endpoint::Results(name) if is_socket => self.results_socket(name, request).await,
            Endpoint::Stream(name) if reads => {
                if let Some(offer) = vocals::preferred(request.headers()) {
                    let one = self.executor.ask(move |database| stream(database, &name));
                    return self.described_in_rdf(&request, &[one.await?], &offer);
                }
                let connectors = Arc::clone(&self.connectors);
                let one = self.executor.ask(move |database| {
                    Ok(Fed::new(stream(database, &name)?, database, &connectors))
                });
                self.json(&one.await?, request.headers())
            }
            Endpoint::Sinks(name) if reads => self.sinks(name, &request).await,
            Endpoint::Sink(query, name)
                if reads || matches!(method, Method::PUT | Method::DELETE) =>
            {
                self.sink((query, name), request, client).await
            }
            Endpoint::Query(name) if reads => {
                let one = self
                    .executor
                    .ask(move |database| explained(database, &name));
                self.json(&one.await?, request.headers())
            }
            Endpoint::Late(name) if reads => {
                let late = self
                    .executor
                    .ask(move |database| database.late_tuples(&name));
                Ok(respond::whole(LINES, late.await?))
            }
            Endpoint::Results(name) if method == Method::GET => self.results(name, &request).await,
            Endpoint::Stream(name) if method == Method::PUT => {
                self.create_stream(name, request, client).await
            }
            Endpoint::Stream(name) if method == Method::POST => {
                self.push(name, request, client).await
            }
            Endpoint::Stream(name) if method == Method::DELETE => {
                let connectors = Arc::clone(&self.connectors);
                let work = move |database: &Database| match database.drop_stream(&name)? {
                    true => {
                        connectors.end_dropped();
                        Ok(())
                    }
                    false => Err(absent("stream", &name)),
                };
                self.done(&request, client, work).await
            }
            Endpoint::Heartbeat(name) if method == Method::POST => {
                let time_ms = time(&request)?;
                let work = move |database: &Database| match time_ms {
                    Some(time_ms) => database.heartbeat(&name, time_ms),
                    None => database.heartbeat_now(&name),
                };
                self.done(&request, client, work).await
            }
            Endpoint::Query(name) if method == Method::PUT => {
                self.register(name, request, client).await
            }
            Endpoint::Query(name) if method == Method::DELETE => {
                let connectors = Arc::clone(&self.connectors);
                let work = move |database: &Database| match database.unregister(&name)? {
                    true => {
                        connectors.end_dropped();
                        Ok(())
                    }
                    false => Err(absent("continuous query", &name)),
                };
                self.done(&request, client, work).await
            }
            Endpoint::Pause(name) if method == Method::POST => {
                let work = move |database: &Database| database.set_paused(&name, true);
                self.done(&request, client, work).await
            }
            Endpoint::Resume(name) if method == Method::POST => {
                let work = move |database: &Database| database.set_paused(&name, false);
                self.done(&request, client, work).await
            }
            _ => Err(Refusal::method(methods)),
        }
    }

    /// Sends a client to the node of the cluster at which streams go on, if that is another one whose address is known.
    fn streams_elsewhere(
        &self,
        request: &Request<Incoming>,
    ) -> Result<Option<Response<Body>>, Refusal> {
        let database = &self.executor.database;
        let Err(error) = database.check_streams_here() else {
            return Ok(None);
        };
        let EngineError::StreamsElsewhere { node } = &error else {
            return Err(error.into());
        };
        match elsewhere::redirect(database, node, request.uri(), &error.to_string()) {
            Some(redirect) => Ok(Some(redirect)),
            None => Err(error.into()),
        }
    }

    async fn create_stream(
        &self,
        name: String,
        request: Request<Incoming>,
        client: &Arc<Client>,
    ) -> Result<Response<Body>, Refusal> {
        let kind = media_type(&content_type(request.headers())?);
        if !matches!(&*kind, "" | JSON) {
            let message = format!("a stream is described by {JSON}, not by {kind}");
            return Err(Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, message));
        }
        let write = self.write_of(described(&request), 0, client);
        let body = self.receive(request).await?;
        // Before it is read, which takes a multiple of the text.
        if body.bytes.len() as u64 > MOST_DEFINITION_BYTES {
            let message = format!(
                "the definition has {} bytes, and one may have {MOST_DEFINITION_BYTES} at most",
                body.bytes.len()
            );
            return Err(Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, message));
        }
        let definition: StreamDefinition = serde_json::from_slice(&body.bytes)
            .map_err(|error| Refusal::bad_request(format!("this describes no stream: {error}")))?;
        self.check_source(&name, definition.source.as_ref()).await?;
        let connectors = Arc::clone(&self.connectors);
        let has_source = definition.source.is_some();
        let work = move |database: &Database| {
            let is_new = database.create_stream(&name, definition)?;
            if has_source {
                connectors.update();
            }
            let made = stream(database, &name)?;
            Ok((is_new, Fed::new(made, database, &connectors)))
        };
        let made = self.executor.change(write, work).await?;
        self.wake_ticker();
        created(made)
    }

    async fn register(
        &self,
        name: String,
        request: Request<Incoming>,
        client: &Arc<Client>,
    ) -> Result<Response<Body>, Refusal> {
        let kind = media_type(&content_type(request.headers())?);
        if !kind.is_empty() && !TEXTS.contains(&&*kind) {
            let known = TEXTS.join(", ");
            let message = format!("a continuous query is no {kind}; it may be {known}");
            return Err(Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, message));
        }
        let (text, memory) = self.receive_text(request).await?;
        let shown = &text[..text.floor_char_boundary(SHOWN_BYTES)];
        let write = self.write_of(shown.to_owned(), text.len(), client);
        let work = move |database: &Database| {
            let _memory = memory;
            let is_new = database.register(&name, &text)?;
            Ok((is_new, query(database, &name)?))
        };
        created(self.executor.change(write, work).await?)
    }

    async fn push(
        &self,
        name: String,
        request: Request<Incoming>,
        client: &Arc<Client>,
    ) -> Result<Response<Body>, Refusal> {
        let format = format(&content_type(request.headers())?)?;
        let time_ms = time(&request)?;
        let sender = Sender::of(request.headers())?;
        // Tuples need no more stack than the runtime's threads have, and should not wait for a core.
        let write = self.write_of(described(&request), 0, client);
        let body = self.receive_events(request).await?;
        let reserved = self.reserve_large(body.bytes.len() * PUSH_FACTOR)?;
        let (bytes, memory) = (body.bytes, body.memory);
        drop(memory);
        let work = move |database: &Database| {
            let _memory = reserved;
            match &sender {
                None => database.push(&name, format, time_ms, bytes),
                Some(by) => database.push_once(&name, by.producer(), format, time_ms, bytes),
            }
        };
        let report = self.executor.change(write, work).await?;
        Ok(respond::whole(JSON, text_of(&report)?))
    }

    /// Does what is answered by no content.
    pub(crate) async fn done(
        &self,
        request: &Request<Incoming>,
        client: &Arc<Client>,
        work: impl FnOnce(&Database) -> Result<(), EngineError> + Send + 'static,
    ) -> Result<Response<Body>, Refusal> {
        let write = self.write_of(described(request), 0, client);
        self.executor.change(write, work).await?;
        Ok(respond::nothing())
    }

    /// Counts what it takes to say what all streams and queries are, before that is said.
    pub(crate) fn reserve_catalogue(&self) -> Result<Option<Reservation>, Refusal> {
        let bytes = self.executor.database.catalogue_bytes();
        self.reserve_large(usize::try_from(bytes).unwrap_or(usize::MAX))
    }

    pub(crate) fn json(
        &self,
        value: &impl Serialize,
        headers: &HeaderMap,
    ) -> Result<Response<Body>, Refusal> {
        let gzip = self.config.gzip && respond::accepts_gzip(headers);
        let bytes = usize::try_from(json_bytes(value)).unwrap_or(usize::MAX);
        // What is compressed is beside the text, and grows by doubling.
        let factor = if gzip { 1 + GZIP_FACTOR } else { 1 };
        let _memory = self.reserve_large(bytes.saturating_mul(factor))?;
        let mut text = Vec::with_capacity(bytes);
        serde_json::to_writer(&mut text, value).map_err(|_| Refusal::internal())?;
        respond::results(JSON, text, gzip, (&self.executor.answers, None))
    }

    /// What streams are, in a format of RDF.
    fn described_in_rdf(
        &self,
        request: &Request<Incoming>,
        streams: &[StreamStatus],
        offer: &Offer<GraphFormat>,
    ) -> Result<Response<Body>, Refusal> {
        let base_url = self.base_url(request)?;
        let bytes = vocals::bytes(&base_url, streams, offer.format)?;
        let _memory = self.reserve_large(bytes)?;
        let mut text = Vec::with_capacity(bytes);
        vocals::write(&base_url, streams, offer.format, &mut text, |_| ())?;
        let mut response = respond::results(
            offer.media_type,
            text,
            false,
            (&self.executor.answers, None),
        )?;
        let vary = HeaderValue::from_static("accept");
        response.headers_mut().insert(VARY, vary);
        Ok(response)
    }

    /// Refuses what may not change what a request is about.
    fn check_change(
        &self,
        endpoint: &Endpoint,
        request: &Request<Incoming>,
    ) -> Result<(), Refusal> {
        match self.config.read_only {
            true => Err(Refusal::new(
                StatusCode::FORBIDDEN,
                format!("this server was started to read only; it does not change {endpoint}"),
            )),
            false => self.check_write(request),
        }
    }
}

impl Executor {
    /// Runs something that changes streams or continuous queries to its end.
    pub(crate) async fn change<T: Send + 'static>(
        self: &Arc<Self>,
        write: Write,
        work: impl FnOnce(&Database) -> Result<T, EngineError> + Send + 'static,
    ) -> Result<T, Refusal> {
        let client = Some(write.client);
        let listed = self
            .queries
            .list(Kind::Stream, &write.text, client, write.limit);
        let id = listed.id;
        // Whoever goes away while it waits for its turn takes it along.
        let _cancel = CancelOnDrop::of(&listed);
        let work = move |database: &Database, _| work(database);
        let result = self.write_listed(listed, write.size, work).await;
        result.map_err(|(_, refusal)| {
            self.queries
                .failed(id, refusal.status.as_u16(), &refusal.message);
            refusal.of(id)
        })
    }

    /// Asks the database something for which it may have to wait a moment.
    pub(crate) async fn ask<T: Send + 'static>(
        self: &Arc<Self>,
        question: impl FnOnce(&Database) -> Result<T, EngineError> + Send + 'static,
    ) -> Result<T, Refusal> {
        let (sender, answered) = oneshot::channel();
        let executor = Arc::clone(self);
        let work = move || {
            let answer = guarded(|| question(&executor.database).map_err(Stop::Engine));
            // Nobody waits if the client is gone.
            let _ = sender.send(answer);
        };
        let started = self.threads.spawn("streams", Purpose::LightWrite, work);
        started.map_err(|error| no_thread(&error))?;
        match answered.await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(Stop::Engine(error))) => Err(error.into()),
            Ok(Err(_)) | Err(_) => Err(Refusal::internal()),
        }
    }
}

fn stream(database: &Database, name: &str) -> Result<StreamStatus, EngineError> {
    let stream = database.stream(name);
    stream.ok_or_else(|| absent("stream", name))
}

fn query(database: &Database, name: &str) -> Result<ContinuousStatus, EngineError> {
    let query = database.continuous_query(name);
    query.ok_or_else(|| absent("continuous query", name))
}

/// A continuous query with its plan.
#[derive(Serialize)]
struct Explained {
    #[serde(flatten)]
    status: ContinuousStatus,
    /// Absent before the first instant.
    plan: Option<String>,
}

fn explained(database: &Database, name: &str) -> Result<Explained, EngineError> {
    Ok(Explained {
        status: query(database, name)?,
        plan: database.explain_continuous(name)?,
    })
}

pub(crate) fn absent(what: &str, name: &str) -> EngineError {
    EngineError::NotFound {
        what: format!("{what} {name}"),
    }
}

/// A request, for the list of queries.
pub(crate) fn described(request: &Request<Incoming>) -> String {
    format!("{} {}", request.method(), request.uri())
}

pub(crate) fn created<T: Serialize>(
    (is_new, status): (bool, T),
) -> Result<Response<Body>, Refusal> {
    let mut response = respond::whole(JSON, text_of(&status)?);
    if is_new {
        *response.status_mut() = StatusCode::CREATED;
    }
    Ok(response)
}

fn text_of(value: &impl Serialize) -> Result<Vec<u8>, Refusal> {
    serde_json::to_vec(value).map_err(|_| Refusal::internal())
}

/// The parameter `time`.
pub(crate) fn time(request: &Request<Incoming>) -> Result<Option<i64>, Refusal> {
    let parameters = request.uri().query().unwrap_or_default();
    let what = "a whole number of milliseconds since 1970";
    protocol::number(parameters, "time", what)
}

/// How tuples of a media type are written.
pub(crate) fn format(media_type: &str) -> Result<TupleFormat, Refusal> {
    if let Some(format) = TupleFormat::from_media_type(media_type) {
        return Ok(format);
    }
    let said = match media_type {
        "" => "no Content-Type says in which format the tuples are".to_owned(),
        other => format!("tuples are not read as {other}"),
    };
    let known = TupleFormat::MEDIA_TYPES.join(", ");
    let message = format!("{said}; they may be {known}");
    Err(Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_name_streams_and_queries() {
        let of = |path: &str| Endpoint::of(path);
        let name = || "a".to_owned();
        for (path, endpoint) in [
            ("/streams", Endpoint::Streams),
            ("/streams/", Endpoint::Streams),
            ("/streams/a", Endpoint::Stream(name())),
            ("/streams/a/heartbeat", Endpoint::Heartbeat(name())),
            ("/streams/a/late", Endpoint::Late(name())),
            ("/continuous", Endpoint::Queries),
            ("/continuous/a", Endpoint::Query(name())),
            ("/continuous/a/pause", Endpoint::Pause(name())),
            ("/continuous/a/resume", Endpoint::Resume(name())),
            ("/continuous/a/results", Endpoint::Results(name())),
            ("/continuous/a/sinks", Endpoint::Sinks(name())),
            (
                "/continuous/a/sinks/b",
                Endpoint::Sink(name(), "b".to_owned()),
            ),
        ] {
            assert_eq!(of(path), Some(endpoint), "{path}");
        }
        for path in [
            "/",
            "/stream",
            "/streamsx/a",
            "/streams/a/results",
            "/streams/a/late/b",
            "/continuous/a/late",
            "/continuous/a/",
            "/continuous/a/sinks/",
            "/continuous/a/sinks/b/c",
            "/streams/a/sinks/b",
        ] {
            assert_eq!(of(path), None, "{path}");
        }
    }
}
