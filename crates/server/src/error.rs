//! What can go wrong with the server, and what does a client hear of a failed request?

use std::borrow::Cow;
use std::io;
use std::net::SocketAddr;

use hyper::StatusCode;
use jindou_engine::results::ResultsError;
use jindou_engine::{EngineError, LeaderErrorClass, ServiceError, WebError};

use crate::queries::{QueryId, Reason};
use crate::stopping;

/// When to come again to a server whose memory is taken, in seconds.
const MEMORY_SECONDS: u32 = 5;

/// When to come again to a stream that is full, in seconds.
const STREAM_SECONDS: u32 = 1;

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
    /// When to try again, in seconds, if that may help.
    pub(crate) retry_after: Option<u32>,
    /// The query that failed.
    pub(crate) query: Option<QueryId>,
    /// What is wrong, or not supported, in its text.
    pub(crate) mistake: Option<Box<Mistake>>,
    /// Whether to ask for credentials.
    pub(crate) challenge: bool,
}

/// A mistake in the text of a query or an update, or in a document.
#[derive(Debug)]
pub(crate) struct Mistake {
    /// From 1.
    pub(crate) line: u64,
    /// In characters, from 1, where it is known.
    pub(crate) column: Option<u64>,
    /// What would mend it, where that is likely.
    pub(crate) hint: Option<String>,
}

impl Mistake {
    /// Without a hint.
    pub(crate) fn at(line: u64, column: Option<u64>) -> Box<Self> {
        Box::new(Self {
            line,
            column,
            hint: None,
        })
    }
}

impl Refusal {
    pub(crate) fn new(status: StatusCode, message: impl Into<Cow<'static, str>>) -> Self {
        Self {
            status,
            message: message.into(),
            allow: None,
            retry_after: None,
            query: None,
            mistake: None,
            challenge: false,
        }
    }

    /// The same, for a client that may try again after so many seconds.
    pub(crate) fn come_again(self, seconds: u32) -> Self {
        Self {
            retry_after: Some(seconds),
            ..self
        }
    }

    /// The same, about this query.
    pub(crate) fn of(self, query: QueryId) -> Self {
        Self {
            query: Some(query),
            ..self
        }
    }

    /// The same, with something to do about it.
    pub(crate) fn with_advice(self, advice: &str) -> Self {
        Self {
            message: format!("{}; {advice}", self.message).into(),
            ..self
        }
    }

    /// A query was ended from outside. Not 503, but where the server stops: whoever tries again by itself should not.
    pub(crate) fn cancelled(reason: Reason) -> Self {
        match reason {
            Reason::Stopped => stopping::refused(),
            Reason::Request | Reason::Gone | Reason::Stalled => {
                Self::new(StatusCode::CONFLICT, reason.message())
            }
        }
    }

    pub(crate) fn too_many_rows(limit: u64) -> Self {
        let message = format!(
            "the result has more than {limit} rows, which is all that this server gives; ask for \
             less, as with LIMIT"
        );
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, message)
    }

    pub(crate) fn pool_exhausted(limit_bytes: u64) -> Self {
        let message = format!(
            "all queries together need more than the server's memory of {limit_bytes} bytes, which \
             --memory sets; try again when others have ended"
        );
        Self::new(StatusCode::SERVICE_UNAVAILABLE, message).come_again(MEMORY_SECONDS)
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
        let said = error.to_string();
        match error {
            EngineError::Syntax {
                line, column, hint, ..
            } => Self {
                mistake: Some(Box::new(Mistake {
                    line,
                    column: Some(column),
                    hint,
                })),
                ..Self::bad_request(said)
            },
            EngineError::Unsupported { place, .. } => Self {
                mistake: place.map(|place| Mistake::at(place.line, Some(place.column))),
                ..Self::new(StatusCode::NOT_IMPLEMENTED, said)
            },
            EngineError::InvalidQuery { message } => Self::bad_request(message),
            EngineError::Event { line, .. } => Self {
                mistake: line.map(|line| Mistake::at(line, None)),
                ..Self::bad_request(said)
            },
            EngineError::NoSuchResult { .. } => Self::bad_request(said),
            EngineError::Timeout { limit } => Self::new(
                StatusCode::GATEWAY_TIMEOUT,
                format!("the query took longer than its limit of {limit:?}"),
            ),
            EngineError::Cancelled => Self::cancelled(Reason::Request),
            EngineError::MemoryExceeded { limit_bytes } => Self::new(
                StatusCode::SERVICE_UNAVAILABLE,
                format!("the query needs more memory than its limit of {limit_bytes} bytes"),
            ),
            EngineError::DeltaTooLarge { .. } => Self::new(StatusCode::UNPROCESSABLE_ENTITY, said),
            EngineError::SpillExceeded { limit_bytes } => Self::new(
                StatusCode::SERVICE_UNAVAILABLE,
                format!(
                    "the query needs more than its memory and its limit of {limit_bytes} bytes of \
                     temporary files"
                ),
            ),
            EngineError::Spill { ref source, .. } if is_full(source) => {
                tracing::error!("{error}");
                Self::new(
                    StatusCode::INSUFFICIENT_STORAGE,
                    "the query needs temporary files, for which the server's disk has no room; \
                     ask for less, or try again when others have ended",
                )
                .come_again(MEMORY_SECONDS)
            }
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
            EngineError::Document { ref source, .. } => {
                let status = match source {
                    WebError::Timeout { .. } => StatusCode::GATEWAY_TIMEOUT,
                    WebError::NoAddress { .. } => StatusCode::BAD_REQUEST,
                    _ => StatusCode::BAD_GATEWAY,
                };
                Self::new(status, error.to_string())
            }
            EngineError::PoolExhausted { limit_bytes } => Self::pool_exhausted(limit_bytes),
            EngineError::InUse { .. } => Self::new(StatusCode::CONFLICT, said),
            EngineError::NotFound { .. } => Self::new(StatusCode::NOT_FOUND, said),
            EngineError::StreamFull { .. } => {
                Self::new(StatusCode::SERVICE_UNAVAILABLE, said).come_again(STREAM_SECONDS)
            }
            EngineError::TooManyRegistered { .. } => {
                Self::new(StatusCode::SERVICE_UNAVAILABLE, said)
            }
            EngineError::Cluster(_) => Self::new(StatusCode::CONFLICT, said),
            EngineError::LeaderLost { .. }
            | EngineError::LeaderChanged
            | EngineError::StreamsElsewhere { .. }
            | EngineError::StreamsBegin
            | EngineError::StreamsFailed { .. } => {
                Self::new(StatusCode::SERVICE_UNAVAILABLE, said).come_again(MEMORY_SECONDS)
            }
            EngineError::WriteUnknown { .. } | EngineError::Behind { .. } => {
                Self::new(StatusCode::GATEWAY_TIMEOUT, said)
            }
            EngineError::AtLeader { class, message } => match status_of(class) {
                Some(status) => Self::new(status, message),
                None => {
                    tracing::error!("a write failed at the node that takes all: {message:?}");
                    Self::internal()
                }
            },
            EngineError::TransactionTooLarge { .. }
            | EngineError::LoadBeyondPool { .. }
            | EngineError::DocumentsBeyondLink { .. } => {
                Self::new(StatusCode::PAYLOAD_TOO_LARGE, said)
            }
            EngineError::NoStack { .. }
            | EngineError::SnapshotGone
            | EngineError::NotFollowing { .. }
            | EngineError::ShardLost { .. }
            | EngineError::NodeLost { .. } => {
                Self::new(StatusCode::SERVICE_UNAVAILABLE, error.to_string())
                    .come_again(MEMORY_SECONDS)
            }
            // What is left is about the server's files, which are not the client's business.
            error => {
                tracing::error!(error = &error as &dyn std::error::Error, "a query failed");
                Self::internal()
            }
        }
    }
}

/// The status of an error at another node, as that one's server has it; none where it is no client's business.
fn status_of(class: LeaderErrorClass) -> Option<StatusCode> {
    Some(match class {
        LeaderErrorClass::Request => StatusCode::BAD_REQUEST,
        LeaderErrorClass::Conflict => StatusCode::CONFLICT,
        LeaderErrorClass::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        LeaderErrorClass::Elsewhere => StatusCode::BAD_GATEWAY,
        LeaderErrorClass::ElsewhereTimedOut => StatusCode::GATEWAY_TIMEOUT,
        LeaderErrorClass::DiskFull => StatusCode::INSUFFICIENT_STORAGE,
        _ => return None,
    })
}

/// Whether a disk, or the part of it that may be used, is full.
fn is_full(error: &io::Error) -> bool {
    use io::ErrorKind::{QuotaExceeded, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lacks_room_is_told_by_whose_limit_it_met() {
        let spill = |kind| EngineError::Spill {
            directory: "/secret".into(),
            source: io::Error::from(kind),
        };
        let own = StatusCode::SERVICE_UNAVAILABLE;
        for (error, status, retries) in [
            (EngineError::MemoryExceeded { limit_bytes: 1 }, own, false),
            (EngineError::SpillExceeded { limit_bytes: 1 }, own, false),
            (EngineError::PoolExhausted { limit_bytes: 1 }, own, true),
            (
                spill(io::ErrorKind::StorageFull),
                StatusCode::INSUFFICIENT_STORAGE,
                true,
            ),
            (
                spill(io::ErrorKind::PermissionDenied),
                StatusCode::INTERNAL_SERVER_ERROR,
                false,
            ),
        ] {
            let refusal = Refusal::from(error);
            assert_eq!(refusal.status, status, "{}", refusal.message);
            assert_eq!(refusal.retry_after.is_some(), retries);
            assert!(!refusal.message.contains("secret"));
        }
    }
}
