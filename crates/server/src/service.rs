//! Which request gets which answer?

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::{Body as _, Incoming};
use hyper::header::{ACCEPT, CONTENT_TYPE, HeaderMap, ORIGIN};
use hyper::{Method, Request, Response, StatusCode};
use serde_json::json;

use crate::body::Body;
use crate::config::ServerConfig;
use crate::error::Refusal;
use crate::execute::{Executor, Query};
use crate::metrics::Now;
use crate::protocol::{Parameters, update};
use crate::queries::{Client, QueryId, Reason};
use crate::respond;
use crate::threads::PLAIN_TEXT_BYTES;

const PAGE: &str = include_str!("page.html");
const READ: &str = "GET, HEAD, OPTIONS";
const QUERY: &str = "GET, HEAD, POST, OPTIONS";
const UPDATE: &str = "POST, OPTIONS";
const RUNNING: &str = "GET, HEAD, DELETE, OPTIONS";
/// The list of queries under way; a query's id may follow.
const QUERIES: &str = "/queries";

/// Answers requests of all connections.
pub(crate) struct Service {
    executor: Arc<Executor>,
    config: ServerConfig,
    connections: AtomicUsize,
}

impl Service {
    pub(crate) fn new(executor: Arc<Executor>, config: ServerConfig) -> Self {
        Self {
            executor,
            config,
            connections: AtomicUsize::new(0),
        }
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
        request: Request<Incoming>,
        client: &Arc<Client>,
    ) -> Response<Body> {
        let origin = request.headers().get(ORIGIN).cloned();
        // Pages of other origins have no business with others' queries.
        let shared = !is_about_queries(request.uri().path());
        let mut response = match self.route(request, client).await {
            Ok(response) => response,
            Err(refusal) => {
                tracing::debug!(status = refusal.status.as_u16(), "{}", refusal.message);
                respond::refusal(&refusal)
            }
        };
        if shared {
            respond::allow_origin(&self.config.cors, origin.as_ref(), &mut response);
        }
        response
    }

    async fn route(
        &self,
        request: Request<Incoming>,
        client: &Arc<Client>,
    ) -> Result<Response<Body>, Refusal> {
        self.check_uri(&request)?;
        let allow = match request.uri().path() {
            "/query" | "/sparql" => QUERY,
            "/update" => UPDATE,
            "/" | "/health" | "/metrics" => READ,
            path if is_about_queries(path) => RUNNING,
            path => {
                return Err(Refusal::new(
                    StatusCode::NOT_FOUND,
                    format!(
                        "nothing at {path}; there are /query, /queries, /health, /metrics and / \
                         (a page)"
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
        let reads = matches!(*request.method(), Method::GET | Method::HEAD);
        let posts = request.method() == Method::POST;
        if !(reads && allow != UPDATE || posts && allow != READ) {
            return Err(Refusal::method(allow));
        }
        match request.uri().path() {
            "/update" => Err(update()),
            "/health" => Ok(respond::whole("application/json", r#"{"status":"ok"}"#)),
            "/metrics" => {
                let text = self.executor.metrics.text(&self.now());
                Ok(respond::whole("text/plain; version=0.0.4", text))
            }
            "/" => Ok(respond::whole("text/html", PAGE)),
            _ => self.query(request, client).await,
        }
    }

    fn now(&self) -> Now {
        Now {
            triples: self.executor.database.statistics().triples,
            in_flight: self.executor.queries.len(),
            connections: self.connections.load(Relaxed),
            heavy: self.executor.admission.figures(),
            memory: self.executor.database.config().memory_pool.clone(),
        }
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
                let query = id.and_then(|id| queries.get(id)).ok_or_else(unknown)?;
                query.cancel(Reason::Request);
                Ok(respond::nothing())
            }
            _ => Err(Refusal::method(RUNNING)),
        }
    }

    /// The plan of a query as text. A long text is planned on a thread that it may block.
    async fn explain(&self, text: String) -> Result<Response<Body>, Refusal> {
        let database = self.executor.database.clone();
        let plan = if text.len() <= PLAIN_TEXT_BYTES {
            database.explain(&text)
        } else {
            let planned = tokio::task::spawn_blocking(move || database.explain(&text)).await;
            planned.map_err(|_panicked| Refusal::internal())?
        };
        Ok(respond::whole("text/plain", plan?))
    }

    async fn query(
        &self,
        request: Request<Incoming>,
        client: &Arc<Client>,
    ) -> Result<Response<Body>, Refusal> {
        let mut parameters = Parameters::default();
        if let Some(encoded) = request.uri().query() {
            parameters.add(encoded)?;
        }
        let gzip = self.config.gzip && respond::accepts_gzip(request.headers());
        let accept = accept(request.headers());
        if request.method() == Method::POST {
            let kind = media_type(request.headers());
            match &*kind {
                "application/x-www-form-urlencoded" => {
                    parameters.add(&self.read(request).await?)?;
                }
                "application/sparql-query" => {
                    let query = self.read(request).await?;
                    if parameters.query.replace(query).is_some() {
                        return Err(Refusal::bad_request(
                            "the query is given in the URL and in the body",
                        ));
                    }
                }
                "application/sparql-update" => return Err(update()),
                _ => {
                    return Err(Refusal::new(
                        StatusCode::UNSUPPORTED_MEDIA_TYPE,
                        "a POST here is application/sparql-query or \
                         application/x-www-form-urlencoded",
                    ));
                }
            }
        }
        let Some(text) = &parameters.query else {
            return Err(Refusal::bad_request("the parameter query is missing"));
        };
        if parameters.explain == Some(true) {
            return self.explain(text.clone()).await;
        }
        let limit = parameters.timeout.unwrap_or(self.config.default_timeout);
        let limit = limit.min(self.config.max_timeout);
        self.executor
            .answer(Query {
                parameters,
                accept,
                gzip,
                limit,
                client: Arc::clone(client),
            })
            .await
    }

    /// Reads a request's body, which is text.
    async fn read(&self, request: Request<Incoming>) -> Result<String, Refusal> {
        let limit = self.config.max_body_bytes;
        let too_large = || {
            Refusal::new(
                StatusCode::PAYLOAD_TOO_LARGE,
                format!("the body is larger than {limit} bytes"),
            )
        };
        let body = request.into_body();
        if body.size_hint().lower() > limit as u64 {
            return Err(too_large());
        }
        let read = Limited::new(body, limit).collect();
        let bytes = match tokio::time::timeout(self.config.idle_timeout, read).await {
            Ok(Ok(body)) => body.to_bytes(),
            Ok(Err(error)) if error.is::<LengthLimitError>() => return Err(too_large()),
            Ok(Err(_)) => return Err(Refusal::bad_request("the body ended early")),
            Err(_) => {
                return Err(Refusal::new(
                    StatusCode::REQUEST_TIMEOUT,
                    "the body took too long to arrive",
                ));
            }
        };
        String::from_utf8(bytes.into()).map_err(|_| Refusal::bad_request("the body is not UTF-8"))
    }
}

/// An open connection, counted.
pub(crate) struct Connected(Arc<Service>);

impl Drop for Connected {
    fn drop(&mut self) {
        self.0.connections.fetch_sub(1, Relaxed);
    }
}

fn is_about_queries(path: &str) -> bool {
    let rest = path.strip_prefix(QUERIES);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// All `Accept` headers as one.
fn accept(headers: &HeaderMap) -> String {
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

/// The body's media type in lower case, without parameters; empty if there is none.
fn media_type(headers: &HeaderMap) -> String {
    let value = headers
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok());
    let (kind, _) = value
        .unwrap_or_default()
        .split_once(';')
        .unwrap_or((value.unwrap_or_default(), ""));
    kind.trim().to_ascii_lowercase()
}
