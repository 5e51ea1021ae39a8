//! What became of a write at the leader, so that its client hears the same from another node?

use std::sync::Arc;
use std::time::Duration;

use jindou_exec::ServiceError;
use jindou_ingest::{IngestError, SyntaxError};
use jindou_model::SnapshotNumber;
use jindou_store::StoreError;
use serde::{Deserialize, Serialize};

use crate::error::TextPlace;
use crate::{EngineError, LeaderErrorClass, UpdateReport, WebError};

/// What became of it.
pub(super) type Outcome = Result<Written, Failed>;

/// What a write did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Written {
    pub(super) inserted: u64,
    pub(super) deleted: u64,
    pub(super) snapshot: u64,
    /// Whether a graph that was written was there before.
    pub(super) existed: bool,
}

impl Written {
    pub(super) fn of(report: &UpdateReport, existed: bool) -> Self {
        Self {
            inserted: report.inserted,
            deleted: report.deleted,
            snapshot: report.snapshot.0,
            existed,
        }
    }

    pub(super) fn report(&self) -> UpdateReport {
        UpdateReport {
            inserted: self.inserted,
            deleted: self.deleted,
            snapshot: SnapshotNumber(self.snapshot),
            delta: None,
        }
    }
}

/// Why a write was not done: those [errors](EngineError) that clients are told of in ways of their own, and the
/// text of any other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Failed {
    Syntax {
        line: u64,
        column: u64,
        message: String,
        hint: Option<String>,
    },
    Unsupported {
        feature: String,
        place: Option<(u64, u64)>,
    },
    InvalidQuery(String),
    Timeout(Duration),
    Cancelled,
    MemoryExceeded(u64),
    DocumentTooLarge(u64),
    DocumentBeyondPool(u64),
    LoadBeyondPool(u64),
    PoolExhausted(u64),
    SpillExceeded(u64),
    TransactionTooLarge {
        bytes: u64,
        limit_bytes: u64,
    },
    ReadOnly(String),
    Contended(u64),
    Forbidden(String),
    GraphAbsent(String),
    GraphExists(String),
    ServiceNotAllowed(String),
    Document {
        file: String,
        line: Option<u64>,
        column: Option<u64>,
        reason: String,
    },
    TooLarge(String),
    InUse(String),
    NotFound(String),
    /// It does not lead: nothing was done.
    LeaderLost(String),
    LeaderChanged,
    /// It may have been done.
    WriteUnknown(String),
    Other {
        class: LeaderErrorClass,
        message: String,
    },
}

impl From<EngineError> for Failed {
    fn from(error: EngineError) -> Self {
        match error {
            EngineError::Syntax {
                line,
                column,
                message,
                hint,
            } => Self::Syntax {
                line,
                column,
                message,
                hint,
            },
            EngineError::Unsupported { feature, place } => Self::Unsupported {
                feature,
                place: place.map(|place| (place.line, place.column)),
            },
            EngineError::InvalidQuery { message } => Self::InvalidQuery(message),
            EngineError::Timeout { limit } => Self::Timeout(limit),
            EngineError::Cancelled => Self::Cancelled,
            EngineError::MemoryExceeded { limit_bytes } => Self::MemoryExceeded(limit_bytes),
            EngineError::DocumentTooLarge { limit_bytes } => Self::DocumentTooLarge(limit_bytes),
            EngineError::DocumentBeyondPool { limit_bytes } => {
                Self::DocumentBeyondPool(limit_bytes)
            }
            EngineError::LoadBeyondPool { limit_bytes } => Self::LoadBeyondPool(limit_bytes),
            EngineError::PoolExhausted { limit_bytes } => Self::PoolExhausted(limit_bytes),
            EngineError::SpillExceeded { limit_bytes } => Self::SpillExceeded(limit_bytes),
            EngineError::TransactionTooLarge { bytes, limit_bytes } => {
                Self::TransactionTooLarge { bytes, limit_bytes }
            }
            EngineError::ReadOnly { reason } => Self::ReadOnly(reason),
            EngineError::Contended { executions } => Self::Contended(executions),
            EngineError::Forbidden { what } => Self::Forbidden(what),
            EngineError::GraphAbsent { graph } => Self::GraphAbsent(graph),
            EngineError::GraphExists { graph } => Self::GraphExists(graph),
            EngineError::ServiceNotAllowed { endpoint } => Self::ServiceNotAllowed(endpoint),
            EngineError::Ingest(IngestError::Syntax(error)) => Self::Document {
                file: error.file.as_ref().to_owned(),
                line: error.line,
                column: error.column,
                reason: error.reason,
            },
            EngineError::Store(StoreError::TooLarge { reason }) => Self::TooLarge(reason),
            EngineError::InUse { message } => Self::InUse(message),
            EngineError::NotFound { what } => Self::NotFound(what),
            EngineError::LeaderLost { node } => Self::LeaderLost(node),
            EngineError::LeaderChanged => Self::LeaderChanged,
            EngineError::WriteUnknown { node } => Self::WriteUnknown(node),
            error => Self::Other {
                class: class_of(&error),
                message: error.to_string(),
            },
        }
    }
}

/// Who has to do something about an error that has no variant here.
fn class_of(error: &EngineError) -> LeaderErrorClass {
    use std::io::ErrorKind::{QuotaExceeded, StorageFull};
    match error {
        EngineError::Ingest(_) | EngineError::DeltaTooLarge { .. } => LeaderErrorClass::Request,
        EngineError::Cluster(_) => LeaderErrorClass::Conflict,
        EngineError::NoStack { .. } | EngineError::ShardLost { .. } => {
            LeaderErrorClass::Unavailable
        }
        EngineError::Service { source, .. } => match source {
            ServiceError::Unbound => LeaderErrorClass::Request,
            ServiceError::Timeout { .. } => LeaderErrorClass::ElsewhereTimedOut,
            _ => LeaderErrorClass::Elsewhere,
        },
        EngineError::Document { source, .. } => match source {
            WebError::NoAddress { .. } => LeaderErrorClass::Request,
            WebError::Timeout { .. } => LeaderErrorClass::ElsewhereTimedOut,
            _ => LeaderErrorClass::Elsewhere,
        },
        EngineError::Spill { source, .. }
            if matches!(source.kind(), StorageFull | QuotaExceeded) =>
        {
            LeaderErrorClass::DiskFull
        }
        _ => LeaderErrorClass::Internal,
    }
}

impl From<Failed> for EngineError {
    fn from(failed: Failed) -> Self {
        match failed {
            Failed::Syntax {
                line,
                column,
                message,
                hint,
            } => Self::Syntax {
                line,
                column,
                message,
                hint,
            },
            Failed::Unsupported { feature, place } => Self::Unsupported {
                feature,
                place: place.map(|(line, column)| TextPlace { line, column }),
            },
            Failed::InvalidQuery(message) => Self::InvalidQuery { message },
            Failed::Timeout(limit) => Self::Timeout { limit },
            Failed::Cancelled => Self::Cancelled,
            Failed::MemoryExceeded(limit_bytes) => Self::MemoryExceeded { limit_bytes },
            Failed::DocumentTooLarge(limit_bytes) => Self::DocumentTooLarge { limit_bytes },
            Failed::DocumentBeyondPool(limit_bytes) => Self::DocumentBeyondPool { limit_bytes },
            Failed::LoadBeyondPool(limit_bytes) => Self::LoadBeyondPool { limit_bytes },
            Failed::PoolExhausted(limit_bytes) => Self::PoolExhausted { limit_bytes },
            Failed::SpillExceeded(limit_bytes) => Self::SpillExceeded { limit_bytes },
            Failed::TransactionTooLarge { bytes, limit_bytes } => {
                Self::TransactionTooLarge { bytes, limit_bytes }
            }
            Failed::ReadOnly(reason) => Self::ReadOnly { reason },
            Failed::Contended(executions) => Self::Contended { executions },
            Failed::Forbidden(what) => Self::Forbidden { what },
            Failed::GraphAbsent(graph) => Self::GraphAbsent { graph },
            Failed::GraphExists(graph) => Self::GraphExists { graph },
            Failed::ServiceNotAllowed(endpoint) => Self::ServiceNotAllowed { endpoint },
            Failed::Document {
                file,
                line,
                column,
                reason,
            } => Self::Ingest(IngestError::Syntax(SyntaxError {
                file: Arc::from(file),
                line,
                column,
                reason,
            })),
            Failed::TooLarge(reason) => Self::Store(StoreError::TooLarge { reason }),
            Failed::InUse(message) => Self::InUse { message },
            Failed::NotFound(what) => Self::NotFound { what },
            Failed::LeaderLost(node) => Self::LeaderLost { node },
            Failed::LeaderChanged => Self::LeaderChanged,
            Failed::WriteUnknown(node) => Self::WriteUnknown { node },
            Failed::Other { class, message } => Self::AtLeader { class, message },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_says_the_same_after_it_was_sent() {
        let limit_bytes = 7;
        let place = Some(TextPlace { line: 2, column: 3 });
        let document = SyntaxError {
            file: "a.ttl".into(),
            line: Some(4),
            column: None,
            reason: "it is wrong".to_owned(),
        };
        let text = || "text".to_owned();
        for error in [
            EngineError::Syntax {
                line: 1,
                column: 2,
                message: text(),
                hint: Some(text()),
            },
            EngineError::Unsupported {
                feature: text(),
                place,
            },
            EngineError::InvalidQuery { message: text() },
            EngineError::Timeout {
                limit: Duration::from_millis(1500),
            },
            EngineError::Cancelled,
            EngineError::DocumentTooLarge { limit_bytes },
            EngineError::DocumentBeyondPool { limit_bytes },
            EngineError::PoolExhausted { limit_bytes },
            EngineError::ReadOnly { reason: text() },
            EngineError::Contended { executions: 3 },
            EngineError::Forbidden { what: text() },
            EngineError::GraphAbsent { graph: text() },
            EngineError::GraphExists { graph: text() },
            EngineError::LeaderLost { node: text() },
            EngineError::LeaderChanged,
            EngineError::WriteUnknown { node: text() },
            EngineError::Ingest(IngestError::Syntax(document)),
            EngineError::Store(StoreError::TooLarge { reason: text() }),
            EngineError::Cluster("it is so"),
            EngineError::Internal,
        ] {
            let said = error.to_string();
            let kind = std::mem::discriminant(&error);
            let failed = Failed::from(error);
            let bytes = postcard::to_allocvec(&failed).expect("it is written");
            let read: Failed = postcard::from_bytes(&bytes).expect("it is read");
            assert_eq!(read, failed);
            let has_variant = !matches!(failed, Failed::Other { .. });
            let error = EngineError::from(read);
            assert_eq!(error.to_string(), said);
            assert_eq!(
                std::mem::discriminant(&error) == kind,
                has_variant,
                "{said}"
            );
        }
    }
}
