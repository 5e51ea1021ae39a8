//! Which request gets which answer?

use std::sync::Arc;

use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::{Body as _, Incoming};
use hyper::header::{ACCEPT, CONTENT_TYPE, HeaderMap, ORIGIN};
use hyper::{Method, Request, Response, StatusCode};

use crate::body::Body;
use crate::config::ServerConfig;
use crate::error::Refusal;
use crate::execute::{Executor, Query};
use crate::protocol::{Parameters, update};
use crate::respond;

const PAGE: &str = include_str!("page.html");
const READ: &str = "GET, HEAD, OPTIONS";
const QUERY: &str = "GET, HEAD, POST, OPTIONS";
const UPDATE: &str = "POST, OPTIONS";

/// Answers requests of all connections.
pub(crate) struct Service {
    executor: Arc<Executor>,
    config: ServerConfig,
}

impl Service {
    pub(crate) fn new(executor: Arc<Executor>, config: ServerConfig) -> Self {
        Self { executor, config }
    }

    /// The answer to a request; what is wrong with it is an answer too.
    pub(crate) async fn respond(&self, request: Request<Incoming>) -> Response<Body> {
        let origin = request.headers().get(ORIGIN).cloned();
        let mut response = match self.route(request).await {
            Ok(response) => response,
            Err(refusal) => {
                tracing::debug!(status = refusal.status.as_u16(), "{}", refusal.message);
                respond::refusal(&refusal)
            }
        };
        respond::allow_origin(&self.config.cors, origin.as_ref(), &mut response);
        response
    }

    async fn route(&self, request: Request<Incoming>) -> Result<Response<Body>, Refusal> {
        let allow = match request.uri().path() {
            "/query" | "/sparql" => QUERY,
            "/update" => UPDATE,
            "/" | "/health" | "/metrics" => READ,
            path => {
                return Err(Refusal::new(
                    StatusCode::NOT_FOUND,
                    format!(
                        "nothing at {path}; there are /query, /health, /metrics and / (a page)"
                    ),
                ));
            }
        };
        if request.method() == Method::OPTIONS {
            return Ok(respond::options(allow, request.headers()));
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
                let triples = self.executor.database.statistics().triples;
                let text = self.executor.metrics.text(triples);
                Ok(respond::whole("text/plain; version=0.0.4", text))
            }
            "/" => Ok(respond::whole("text/html", PAGE)),
            _ => self.query(request).await,
        }
    }

    async fn query(&self, request: Request<Incoming>) -> Result<Response<Body>, Refusal> {
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
            let plan = self.executor.database.explain(text)?;
            return Ok(respond::whole("text/plain", plan));
        }
        let limit = parameters.timeout.unwrap_or(self.config.default_timeout);
        let limit = limit.min(self.config.max_timeout);
        self.executor
            .answer(Query {
                parameters,
                accept,
                gzip,
                limit,
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
