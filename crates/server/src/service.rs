//! Which request gets which answer?

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::thread::Thread;
use std::time::Instant;

use hyper::body::Incoming;
use hyper::header::{ACCEPT, CONNECTION, CONTENT_TYPE, HeaderMap, HeaderValue, LOCATION, ORIGIN};
use hyper::{Method, Request, Response, StatusCode};
use jindou_brokers::Connectors;
use jindou_engine::{Database, Reservation, UpdateOptions};
use oxrdf::NamedNode;
use serde_json::json;

use crate::access::{Access, Identity};
use crate::body::Body;
use crate::config::ServerConfig;
use crate::connections::Peer;
use crate::credentials::Role;
use crate::delta::DeltaFormat;
use crate::description::{self, Description};
use crate::error::Refusal;
use crate::events::Readers;
use crate::execute::{Asked, Executor, Query};
use crate::graph_store::{self, is_store};
use crate::metrics::Rejected;
use crate::metrics_now::Now;
use crate::operation::Operation;
use crate::origin::{Origins, check_names};
use crate::prefixes::{self, PREFIXES};
use crate::protocol::{Parameters, UpdateParameters, begins_as_query, begins_as_update, names};
use crate::queries::{Client, QueryId, Reason};
use crate::respond;
use crate::sinks::Sink;
use crate::streams::Endpoint;
use crate::update::{Write, written, written_with};

const PAGE: &str = include_str!("page.html");
/// Streams and continuous queries as they are.
const LIVE: &str = include_str!("live.html");
const READ: &str = "GET, HEAD, OPTIONS";
/// Of endpoints of SPARQL, each of which takes queries and updates.
const SPARQL: &str = "GET, HEAD, POST, OPTIONS";
const RUNNING: &str = "GET, HEAD, DELETE, OPTIONS";
/// The list of queries under way; a query's id may follow.
const QUERIES: &str = "/queries";
/// Named graphs whose sizes are told one by one, the largest.
const NAMED_GRAPHS: usize = 64;
/// Bytes of an update's text kept for the list of queries, at most.
pub(crate) const SHOWN_BYTES: usize = 4096;

/// Answers requests of all connections.
pub(crate) struct Service {
    pub(crate) executor: Arc<Executor>,
    pub(crate) config: ServerConfig,
    origins: Origins,
    access: Access,
    connections: AtomicUsize,
    pub(crate) readers: Readers,
    started: Instant,
    ticker: OnceLock<Thread>,
    pub(crate) connectors: Arc<Connectors>,
}

impl Service {
    pub(crate) fn new(executor: Arc<Executor>, config: ServerConfig) -> Self {
        let database = executor.database.clone();
        let connectors = Connectors::new(database, config.brokers.clone());
        Self {
            executor,
            connectors: connectors.into(),
            origins: Origins::new(&config),
            access: Access::new(&config),
            readers: Readers::new(config.result_readers, config.keep_alive),
            config,
            connections: AtomicUsize::new(0),
            started: Instant::now(),
            ticker: OnceLock::new(),
        }
    }

    /// Names the thread that has streams go on with the clock.
    pub(crate) fn set_ticker(&self, thread: Thread) {
        // The first one is that of this server.
        let _ = self.ticker.set(thread);
    }

    /// A stream was made, which may go on with the clock.
    pub(crate) fn wake_ticker(&self) {
        self.ticker.get().inspect(|thread| thread.unpark());
    }

    /// Counts a connection for as long as what this returns lives.
    pub(crate) fn connected(self: &Arc<Self>) -> Connected {
        self.connections.fetch_add(1, Relaxed);
        Connected(Arc::clone(self))
    }

    /// Whether any query is left.
    pub(crate) fn is_idle(&self) -> bool {
        self.executor.queries.len() == 0
    }

    /// The answer to a request; what is wrong with it is an answer too.
    pub(crate) async fn respond(
        &self,
        mut request: Request<Incoming>,
        client: &Arc<Client>,
        peer: &Arc<Peer>,
    ) -> Response<Body> {
        request.extensions_mut().insert(Arc::clone(peer));
        client.set_user(None);
        let origin = request.headers().get(ORIGIN).cloned();
        let as_problem = respond::wants_problem(&accept(request.headers()));
        // Pages of other origins have no business with others' queries.
        let shared = !is_about_queries(request.uri().path());
        let watches = matches!(endpoint(&request), "/health" | "/metrics");
        let routed = match !watches && peer.is_confined().await {
            true => Err(full()),
            false => self.route(request, client).await,
        };
        let mut response = match routed {
            Ok(response) => response,
            Err(refusal) => {
                tracing::debug!(status = refusal.status.as_u16(), "{}", refusal.message);
                respond::refusal(&refusal, as_problem)
            }
        };
        self.executor.metrics.responded(response.status());
        if shared {
            // A page that may read anything may still change nothing; but it may read why.
            respond::allow_origin(&self.origins.cors, origin.as_ref(), &mut response);
        }
        if peer.is_spare() {
            let close = HeaderValue::from_static("close");
            response.headers_mut().insert(CONNECTION, close);
        }
        response
    }

    async fn route(
        &self,
        mut request: Request<Incoming>,
        client: &Arc<Client>,
    ) -> Result<Response<Body>, Refusal> {
        self.check_uri(&request)?;
        check_names(&request)?;
        self.origins.check_read(&request)?;
        let identity = self.admit(&request, client).await?;
        request.extensions_mut().insert(identity);
        if let Some(endpoint) = Endpoint::of(request.uri().path()) {
            return self.streams(endpoint, request, client).await;
        }
        let allow = match endpoint(&request) {
            "/query" | "/update" | "/sparql" | "/" => SPARQL,
            "/health" | "/metrics" | "/live" => READ,
            PREFIXES => prefixes::METHODS,
            path if is_about_queries(path) => RUNNING,
            path if is_store(path) => graph_store::METHODS,
            path => {
                return Err(Refusal::new(
                    StatusCode::NOT_FOUND,
                    format!(
                        "nothing at {path}; there are /query, /update, /store, /prefixes, /streams, \
                         /continuous, /queries, /health, /metrics and the pages / and /live"
                    ),
                ));
            }
        };
        if request.method() == Method::OPTIONS {
            return Ok(respond::options(allow, request.headers()));
        }
        if allow == RUNNING {
            return self.queries(&request);
        }
        if allow == prefixes::METHODS {
            return self.prefixes(request).await;
        }
        let reads = matches!(*request.method(), Method::GET | Method::HEAD);
        if allow == graph_store::METHODS {
            if !reads {
                self.check_write(&request)?;
            }
            return self.graph_store(request, client).await;
        }
        if !reads && (allow == READ || request.method() != Method::POST) {
            return Err(Refusal::method(allow));
        }
        match endpoint(&request) {
            "/live" => Ok(respond::whole("text/html", LIVE)),
            "/health" => Ok(self.health()),
            "/metrics" => {
                let text = self.executor.metrics.text(self.now().await?);
                Ok(respond::whole("text/plain; version=0.0.4", text))
            }
            path => {
                let asks = request.uri().query().unwrap_or_default();
                // Any parameter is of a request that is not whole, but for those of links to the page.
                let describes = asks.is_empty() || path == "/" && !names_operation(asks);
                match reads && describes {
                    true if path == "/" => self.page(&request),
                    true => self.describe(&request),
                    false => self.sparql(request, client).await,
                }
            }
        }
    }

    /// The page for people, or the description for programs that prefer that.
    fn page(&self, request: &Request<Incoming>) -> Result<Response<Body>, Refusal> {
        match description::is_for_programs(&accept(request.headers())) {
            true => self.describe(request),
            false => Ok(respond::whole("text/html", PAGE)),
        }
    }

    /// Who sent a request, if it may ask for what it does, and did not ask too often.
    async fn admit(
        &self,
        request: &Request<Incoming>,
        client: &Client,
    ) -> Result<Identity, Refusal> {
        let address = client.address().ip();
        // Whoever watches the server must be able to when it is busy.
        if endpoint(request) != "/health" {
            let counted = self.access.check_rate(address);
            counted.inspect_err(|_| self.executor.metrics.rejected(Rejected::Rate))?;
        }
        let identity = self.access.authorize(request, client).await;
        identity.inspect_err(|_| self.executor.metrics.rejected(Rejected::Access))
    }

    /// 503 where the database takes no changes, or soon will not, with the reasons.
    fn health(&self) -> Response<Body> {
        let failures = self.executor.database.health();
        if failures.is_empty() {
            return respond::whole("application/json", r#"{"status":"ok"}"#);
        }
        let reasons: Vec<_> = failures.iter().map(ToString::to_string).collect();
        let told = json!({ "status": "failing", "reasons": reasons });
        let mut response = respond::whole("application/json", told.to_string());
        *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
        response
    }

    async fn now(&self) -> Result<Now, Refusal> {
        let connectors = Arc::clone(&self.connectors);
        let streams = move |database: &Database| {
            let streams = database.streams();
            let named = streams.iter().map(|stream| &stream.name);
            let sources = named.filter_map(|name| Some((name.clone(), connectors.source(name)?)));
            let sources = sources.collect();
            let sinks = database.sinks();
            let sinks = sinks.iter().map(|sink| Sink::new(sink, &connectors));
            let sinks = sinks.collect();
            let graphs = database.graph_sizes(NAMED_GRAPHS);
            Ok((
                graphs,
                streams,
                database.continuous_queries(),
                sources,
                sinks,
            ))
        };
        let (graphs, streams, continuous, sources, sinks) = self.executor.ask(streams).await?;
        let access = self.config.access_log.as_ref().map(|log| ("access", log));
        let slow = self.config.slow_queries.as_ref();
        let slow = slow.map(|slow| ("slow_queries", &slow.log));
        let logs = access.into_iter().chain(slow);
        Ok(Now {
            streams,
            continuous,
            sources,
            sinks,
            readers: self.readers.count(),
            graphs,
            uptime_seconds: self.started.elapsed().as_secs_f64(),
            dropped_lines: logs.map(|(name, log)| (name, log.dropped())).collect(),
            in_flight: self.executor.queries.len(),
            connections: self.connections.load(Relaxed),
            heavy: self.executor.admission.figures(),
            memory: self.executor.database.config().memory_pool.clone(),
            failures: self.executor.database.health(),
        })
    }

    fn check_uri(&self, request: &Request<Incoming>) -> Result<(), Refusal> {
        let limit = self.config.max_uri_bytes;
        let length = request
            .uri()
            .path_and_query()
            .map_or(0, |uri| uri.as_str().len());
        if length > limit {
            let message = format!(
                "the URL is longer than {limit} bytes; send the query in the body of a POST"
            );
            return Err(Refusal::new(StatusCode::URI_TOO_LONG, message));
        }
        Ok(())
    }

    /// Lists queries, or ends one.
    fn queries(&self, request: &Request<Incoming>) -> Result<Response<Body>, Refusal> {
        let path = request.uri().path();
        let queries = &self.executor.queries;
        let name = path[QUERIES.len()..].trim_start_matches('/');
        let id = QueryId::parse(name);
        let unknown = || {
            let message =
                format!("no query {name} is under way; GET {QUERIES} lists those that are");
            Refusal::new(StatusCode::NOT_FOUND, message)
        };
        match *request.method() {
            Method::GET | Method::HEAD if name.is_empty() => {
                let pool = self.executor.database.config().memory_pool.as_ref();
                let list = json!({
                    "queries": queries.json(),
                    "memory_bytes": pool.map(|pool| pool.held_bytes()),
                    "memory_limit_bytes": pool.map(|pool| pool.limit_bytes()),
                });
                Ok(respond::whole("application/json", list.to_string()))
            }
            Method::GET | Method::HEAD => {
                let query = id.and_then(|id| queries.json_of(id)).ok_or_else(unknown)?;
                Ok(respond::whole("application/json", query.to_string()))
            }
            Method::DELETE if name.is_empty() => Err(Refusal::method("GET, HEAD, OPTIONS")),
            Method::DELETE => {
                self.origins.check_change(request)?;
                let query = id.and_then(|id| queries.get(id)).ok_or_else(unknown)?;
                query.cancel(Reason::Request);
                Ok(respond::nothing())
            }
            _ => Err(Refusal::method(RUNNING)),
        }
    }

    /// A query or an update, at any endpoint.
    async fn sparql(
        &self,
        request: Request<Incoming>,
        client: &Arc<Client>,
    ) -> Result<Response<Body>, Refusal> {
        let head = Head {
            accept: accept(request.headers()),
            gzip: self.config.gzip && respond::accepts_gzip(request.headers()),
            endpoint: self.base_url(&request).map(|url| {
                let url = url + request.uri().path();
                NamedNode::new_unchecked(url)
            }),
            may_write: self.check_write(&request),
            client: Arc::clone(client),
        };
        // What is not taken is not read first.
        if media_type(&content_type(request.headers())?) == "application/sparql-update" {
            self.check_write(&request)?;
        }
        let (operation, memory) = match *request.method() {
            Method::POST => self.receive_operation(request).await?,
            _ => (
                Operation::of_url(request.uri().query().unwrap_or_default())?,
                None,
            ),
        };
        match operation {
            Operation::Query(parameters) => self.query(head, parameters, memory).await,
            Operation::Update(parameters) => self.update(head, parameters, memory).await,
        }
    }

    async fn query(
        &self,
        head: Head,
        parameters: Parameters,
        memory: Option<Reservation>,
    ) -> Result<Response<Body>, Refusal> {
        let text = parameters.query.as_deref().unwrap_or_default();
        let limit = parameters.timeout.unwrap_or(self.config.default_timeout);
        let limit = limit.min(self.config.max_timeout);
        let is_update = begins_as_update(text);
        let explain = parameters.explain == Some(true);
        let query = Query {
            asked: Asked::Query,
            parameters,
            // As for updates, the endpoint. Who sends no usable Host may write absolute IRIs.
            base: head.endpoint.ok(),
            accept: head.accept,
            gzip: head.gzip,
            limit,
            client: head.client,
            _memory: memory,
        };
        let answer = match explain {
            true => self.executor.explain(query).await,
            false => self.executor.answer(query).await,
        };
        answer.map_err(
            |refusal| match is_update && refusal.status == StatusCode::BAD_REQUEST {
                true => refusal.with_advice(
                    "an update is sent as the parameter update, or as application/sparql-update",
                ),
                false => refusal,
            },
        )
    }

    /// A request that would change the database.
    async fn update(
        &self,
        head: Head,
        parameters: UpdateParameters,
        memory: Option<Reservation>,
    ) -> Result<Response<Body>, Refusal> {
        head.may_write?;
        let base = head.endpoint?;
        let text = parameters.update.unwrap_or_default();
        let limit = parameters.timeout.unwrap_or(self.config.default_timeout);
        let write = Write {
            size: text.len(),
            text: text[..text.floor_char_boundary(SHOWN_BYTES)].to_owned(),
            limit: limit.min(self.config.max_timeout),
            client: head.client,
        };
        // What cannot be answered is not executed.
        let format = match parameters.return_delta {
            Some(true) => Some(DeltaFormat::of(&head.accept)?),
            _ => None,
        };
        let is_query = begins_as_query(&text);
        let work = move |database: &Database, options| {
            let _memory = memory;
            let options = UpdateOptions {
                using_graphs: parameters.using_graphs,
                using_named_graphs: parameters.using_named_graphs,
                union_default_graph: parameters.union_default_graph,
                base: Some(base),
                return_delta: format.is_some(),
                ..options
            };
            database.update_with(&text, options)
        };
        let done = self.executor.write(write, |report| report, work).await;
        match done {
            Ok((mut report, id)) => Ok(match report.delta.take().zip(format) {
                None => written(&report, id),
                Some((delta, format)) => {
                    let response = self.executor.delta(delta, format, report.snapshot);
                    written_with(response, &report, id)
                }
            }),
            Err(refusal) if is_query && refusal.status == StatusCode::BAD_REQUEST => Err(refusal
                .with_advice(
                    "this is a query; it is sent as the parameter query, or as \
                     application/sparql-query",
                )),
            Err(refusal) => Err(refusal),
        }
    }

    /// Refuses what may not change the database.
    pub(crate) fn check_write(&self, request: &Request<Incoming>) -> Result<(), Refusal> {
        if self.config.read_only {
            return Err(Refusal::new(
                StatusCode::FORBIDDEN,
                "this server was started to read only; it changes nothing",
            ));
        }
        // Whatever led here, and however `access` read the path.
        let identity = request.extensions().get::<Identity>();
        let identity = identity.ok_or_else(Refusal::internal)?;
        identity.check(Role::Write)?;
        self.origins.check_change(request)
    }

    /// Refuses the socket of a page that may not read: a browser opens one for any page.
    pub(crate) fn check_socket(&self, request: &Request<Incoming>) -> Result<(), Refusal> {
        self.origins.check_socket(request)
    }

    /// The service description, for programs; people are sent to the page.
    fn describe(&self, request: &Request<Incoming>) -> Result<Response<Body>, Refusal> {
        if description::is_for_people(&accept(request.headers())) {
            let mut response = respond::nothing();
            *response.status_mut() = StatusCode::SEE_OTHER;
            let headers = response.headers_mut();
            headers.insert(LOCATION, HeaderValue::from_static("/"));
            return Ok(response);
        }
        let database = &self.executor.database;
        let description = Description {
            base_url: &self.base_url(request)?,
            path: request.uri().path(),
            writes: !self.config.read_only,
            services: &self.config.services,
            triples: database.quad_counts().triples,
        };
        description::respond(&description, request.headers())
    }
}

/// To a client that connected when as many were connected as may be, and all of them busy.
fn full() -> Refusal {
    let message = "as many connections are busy as may be open; on this one /health and /metrics \
                   answer";
    Refusal::new(StatusCode::SERVICE_UNAVAILABLE, message).come_again(1)
}

/// What the head of a request at an endpoint of SPARQL says, which is needed after its body was read.
struct Head {
    accept: String,
    gzip: bool,
    /// Its own IRI, which relative ones are resolved against.
    endpoint: Result<NamedNode, Refusal>,
    /// Whether it may change the database.
    may_write: Result<(), Refusal>,
    client: Arc<Client>,
}

/// An open connection, counted.
pub(crate) struct Connected(Arc<Service>);

impl Drop for Connected {
    fn drop(&mut self) {
        self.0.connections.fetch_sub(1, Relaxed);
    }
}

/// The path of a request, without the slash at its end where that makes it one of the endpoints.
fn endpoint<B>(request: &Request<B>) -> &str {
    let path = request.uri().path();
    match path.strip_suffix('/') {
        Some(
            name @ ("/query" | "/sparql" | "/update" | "/health" | "/metrics" | "/live" | PREFIXES),
        ) => name,
        _ => path,
    }
}

/// Whether the parameters of a URL have a query or an update.
fn names_operation(encoded: &str) -> bool {
    names(encoded, "query") || names(encoded, "update")
}

fn is_about_queries(path: &str) -> bool {
    let rest = path.strip_prefix(QUERIES);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// All `Accept` headers as one.
pub(crate) fn accept(headers: &HeaderMap) -> String {
    let mut values = headers
        .get_all(ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok());
    let mut accept = values.next().unwrap_or_default().to_owned();
    for value in values {
        accept.push(',');
        accept.push_str(value);
    }
    accept
}

/// The whole value of `Content-Type`, empty if there is none.
pub(crate) fn content_type(headers: &HeaderMap) -> Result<String, Refusal> {
    match headers.get(CONTENT_TYPE).map(HeaderValue::to_str) {
        None => Ok(String::new()),
        Some(Ok(value)) => Ok(value.to_owned()),
        Some(Err(_)) => Err(Refusal::bad_request("the Content-Type is not ASCII")),
    }
}

/// The media type of a `Content-Type` in lower case, without parameters.
pub(crate) fn media_type(content_type: &str) -> String {
    let (kind, _) = content_type.split_once(';').unwrap_or((content_type, ""));
    kind.trim().to_ascii_lowercase()
}
