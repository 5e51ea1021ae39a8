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
use crate::cluster::{self, ClusterNow};
use crate::config::ServerConfig;
use crate::connections::Peer;
use crate::credentials::Role;
use crate::delta::DeltaFormat;
use crate::description::{self, Description};
use crate::error::Refusal;
use crate::events::Readers;
use crate::execute::{Asked, Executor, Query};
use crate::metrics::Rejected;
use crate::metrics_now::Now;
use crate::operation::{Operation, refused_query, refused_update};
use crate::origin::{Origins, check_names};
use crate::protocol::{Parameters, UpdateParameters, begins_as_query, begins_as_update, names};
use crate::queries::{Client, QueryId, Reason};
use crate::respond;
use crate::route::{QUERIES, Route};
use crate::sinks::Sink;
use crate::spool::Spools;
use crate::stopping::{self, Phase, Stopping};
use crate::update::{Write, written, written_with};

const PAGE: &str = include_str!("page.html");
/// Streams and continuous queries as they are.
const LIVE: &str = include_str!("live.html");
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
    pub(crate) spools: Spools,
    started: Instant,
    ticker: OnceLock<Thread>,
    pub(crate) connectors: Arc<Connectors>,
    pub(crate) stopping: Stopping,
}

impl Service {
    pub(crate) fn new(executor: Arc<Executor>, config: ServerConfig) -> Self {
        let database = executor.database.clone();
        let connectors = Connectors::new(database, config.brokers.clone());
        let spools = Spools::new(&executor.database.config().spill);
        Self {
            executor,
            connectors: connectors.into(),
            origins: Origins::new(&config),
            access: Access::new(&config),
            readers: Readers::new(config.result_readers, config.keep_alive),
            spools,
            config,
            connections: AtomicUsize::new(0),
            started: Instant::now(),
            ticker: OnceLock::new(),
            stopping: Stopping::new(),
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
        let route = Route::of(request.uri().path());
        let shared = !route.is_about_queries();
        let watches = matches!(route, Route::Health | Route::Metrics);
        let routed = match !watches && peer.is_confined().await {
            true => Err(full()),
            false => tokio::select! {
                biased;
                routed = self.route(route, request, client) => routed,
                () = self.stopping.until(Phase::GivesUp) => Err(stopping::given_up()),
            },
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
        route: Route,
        mut request: Request<Incoming>,
        client: &Arc<Client>,
    ) -> Result<Response<Body>, Refusal> {
        self.check_uri(&request)?;
        check_names(&request)?;
        self.origins.check_read(&request)?;
        let identity = self.admit(&route, &request, client).await?;
        request.extensions_mut().insert(identity);
        if route == Route::Nothing {
            return Err(nothing_at(request.uri().path()));
        }
        let methods = route.methods();
        if request.method() == Method::OPTIONS {
            return Ok(respond::options(methods, request.headers()));
        }
        let reads = matches!(*request.method(), Method::GET | Method::HEAD);
        match route {
            Route::Streams(endpoint) => self.streams(endpoint, request, client).await,
            Route::Prefixes => self.prefixes(request).await,
            Route::Store => {
                if !reads {
                    self.check_write(&request)?;
                }
                self.graph_store(request, client).await
            }
            Route::Query(name) if reads => self.query_under_way(&name),
            Route::Query(name) if request.method() == Method::DELETE => {
                self.origins.check_change(&request)?;
                self.end_query(&name)
            }
            Route::Queries if reads => Ok(self.queries_under_way()),
            Route::Live if reads => Ok(respond::whole("text/html", LIVE)),
            Route::Cluster if reads => cluster::respond(&self.executor.database, request.headers()),
            Route::Health if reads => Ok(self.health()),
            Route::Metrics if reads => {
                let text = self.executor.metrics.text(self.now().await?);
                Ok(respond::whole("text/plain; version=0.0.4", text))
            }
            Route::Home | Route::Sparql if reads || request.method() == Method::POST => {
                let is_home = route == Route::Home;
                match reads && asks_nothing(is_home, request.uri().query().unwrap_or_default()) {
                    true if is_home => self.page(&request),
                    true => self.describe(&request),
                    false => self.sparql(request, client).await,
                }
            }
            _ => Err(Refusal::method(methods)),
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
        route: &Route,
        request: &Request<Incoming>,
        client: &Client,
    ) -> Result<Identity, Refusal> {
        let address = client.address().ip();
        // Whoever watches the server must be able to when it is busy.
        if *route != Route::Health {
            let counted = self.access.check_rate(address);
            counted.inspect_err(|_| self.executor.metrics.rejected(Rejected::Rate))?;
        }
        let identity = self.access.authorize(route, request, client).await;
        identity.inspect_err(|_| self.executor.metrics.rejected(Rejected::Access))
    }

    /// 503 where the database takes no changes, or soon will not, with the reasons. That other nodes are
    /// away is told, too: this one is well.
    fn health(&self) -> Response<Body> {
        let failures = self.executor.database.health();
        if failures.is_empty() {
            let cluster = ClusterNow::of(&self.executor.database);
            let away = cluster.as_ref().map(ClusterNow::away).unwrap_or_default();
            let told = match away.is_empty() {
                true => json!({ "status": "ok" }),
                false => json!({ "status": "ok", "nodes_away": away }),
            };
            return respond::whole("application/json", told.to_string());
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
            spooled_bytes: self.spools.held_bytes(),
            failures: self.executor.database.health(),
            cluster: ClusterNow::of(&self.executor.database),
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

    /// Lists queries and updates under way.
    fn queries_under_way(&self) -> Response<Body> {
        let pool = self.executor.database.config().memory_pool.as_ref();
        let list = json!({
            "queries": self.executor.queries.json(),
            "memory_bytes": pool.map(|pool| pool.held_bytes()),
            "memory_limit_bytes": pool.map(|pool| pool.limit_bytes()),
        });
        respond::whole("application/json", list.to_string())
    }

    /// Tells of a query or an update under way, or why it failed.
    fn query_under_way(&self, name: &str) -> Result<Response<Body>, Refusal> {
        let id = QueryId::parse(name);
        let query = id.and_then(|id| self.executor.queries.json_of(id));
        let query = query.ok_or_else(|| no_query(name))?;
        Ok(respond::whole("application/json", query.to_string()))
    }

    /// Ends a query or an update under way.
    fn end_query(&self, name: &str) -> Result<Response<Body>, Refusal> {
        let id = QueryId::parse(name);
        let query = id.and_then(|id| self.executor.queries.get(id));
        query.ok_or_else(|| no_query(name))?.cancel(Reason::Request);
        Ok(respond::nothing())
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
        answer.map_err(|refusal| refused_query(is_update, refusal))
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
            Err(refusal) => Err(refused_update(is_query, refusal)),
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
pub(crate) fn full() -> Refusal {
    let message = "as many connections are busy as may be open; on this one /health and /metrics \
                   answer";
    Refusal::new(StatusCode::SERVICE_UNAVAILABLE, message).come_again(1)
}

fn no_query(name: &str) -> Refusal {
    let message = format!("no query {name} is under way; GET {QUERIES} lists those that are");
    Refusal::new(StatusCode::NOT_FOUND, message)
}

fn nothing_at(path: &str) -> Refusal {
    let message = format!(
        "nothing at {path}; there are /query, /update, /sparql, /store, /prefixes, /streams, \
         /continuous, /queries, /cluster, /health, /metrics and the pages / and /live"
    );
    Refusal::new(StatusCode::NOT_FOUND, message)
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

/// Whether a URL of an endpoint has no query: any parameter is of a request that is not whole, but for those of links
/// to the page.
pub(crate) fn asks_nothing(is_home: bool, encoded: &str) -> bool {
    encoded.is_empty() || is_home && !names_operation(encoded)
}

/// Whether the parameters of a URL have a query or an update.
fn names_operation(encoded: &str) -> bool {
    names(encoded, "query") || names(encoded, "update")
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
