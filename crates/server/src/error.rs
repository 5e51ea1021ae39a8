//! What can go wrong with the server, and what does a client hear of a failed request?

use std::borrow::Cow;
use std::io;
use std::net::SocketAddr;

use hyper::StatusCode;
use jindou_engine::results::ResultsError;
use jindou_engine::{EngineError, ServiceError};

/// Why a server cannot run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// The address cannot be listened at.
    #[error("cannot listen at {address}: {source}")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// Why not.
        source: io::Error,
    },
}

/// A request that is refused or failed, as the client is told.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) status: StatusCode,
    pub(crate) message: Cow<'static, str>,
    /// The methods to name in `Allow`.
    pub(crate) allow: Option<&'static str>,
}

impl Refusal {
    pub(crate) fn new(status: StatusCode, message: impl Into<Cow<'static, str>>) -> Self {
        Self {
            status,
            message: message.into(),
            allow: None,
        }
    }

    pub(crate) fn bad_request(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, message)
    }

    pub(crate) fn method(allow: &'static str) -> Self {
        let message = format!("this path answers to {allow} only");
        Self {
            allow: Some(allow),
            ..Self::new(StatusCode::METHOD_NOT_ALLOWED, message)
        }
    }

    pub(crate) fn internal() -> Self {
        Self::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "an error inside the server; see its log",
        )
    }
}

impl From<EngineError> for Refusal {
    fn from(error: EngineError) -> Self {
        match error {
            EngineError::Syntax {
                line,
                column,
                message,
            } => Self::bad_request(format!("line {line}, column {column}: {message}")),
            EngineError::Unsupported { feature } => Self::new(
                StatusCode::NOT_IMPLEMENTED,
                format!("not supported: {feature}"),
            ),
            EngineError::InvalidQuery { message } => Self::bad_request(message),
            EngineError::Timeout { limit } => Self::new(
                StatusCode::GATEWAY_TIMEOUT,
                format!("the query took longer than its limit of {limit:?}"),
            ),
            EngineError::Cancelled => {
                Self::new(StatusCode::SERVICE_UNAVAILABLE, "the query was cancelled")
            }
            EngineError::MemoryExceeded { limit_bytes } => Self::new(
                StatusCode::SERVICE_UNAVAILABLE,
                format!("the query needs more memory than its limit of {limit_bytes} bytes"),
            ),
            EngineError::ServiceNotAllowed { endpoint } => {
                let text = endpoint.trim_matches(['<', '>']);
                Self::new(
                    StatusCode::FORBIDDEN,
                    format!(
                        "SERVICE {endpoint}: this server may not call it; it may, if it is \
                         started with --allow-service {text} (or --allow-service any)"
                    ),
                )
            }
            EngineError::Service { ref source, .. } => {
                let status = match source {
                    ServiceError::Unbound => StatusCode::BAD_REQUEST,
                    ServiceError::Timeout { .. } => StatusCode::GATEWAY_TIMEOUT,
                    _ => StatusCode::BAD_GATEWAY,
                };
                Self::new(status, error.to_string())
            }
            // What is left is about the server's files, which are not the client's business.
            error => {
                tracing::error!(error = &error as &dyn std::error::Error, "a query failed");
                Self::internal()
            }
        }
    }
}

impl From<ResultsError> for Refusal {
    fn from(error: ResultsError) -> Self {
        let status = match error {
            ResultsError::NoProfile { .. } => StatusCode::BAD_REQUEST,
            _ => StatusCode::NOT_ACCEPTABLE,
        };
        Self::new(status, error.to_string())
    }
}
