//! How does the error that ended a sub-query get to the reader of its query?
//!
//! By a code with what belongs to it, of which the reader's node makes the error that it would have been
//! there: a limit that the query has in time is its own, not what was left of it when the sub-query began.

use std::io;
use std::path::PathBuf;

use jindou_model::{NodeId, ShardId};
use jindou_plan::NoStack;
use serde::{Deserialize, Serialize};

use super::SubQueryWireError;
use crate::context::SharedContext;
use crate::expr::CompileError;
use crate::{ExecError, ServiceError};

/// Bytes of the reason in a message that must be short.
const SHORT_BYTES: usize = 1 << 10;

/// An [`ExecError`] on its way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::fork) enum Failure {
    Timeout,
    Cancelled,
    Memory {
        limit_bytes: u64,
    },
    SpillExceeded {
        limit_bytes: u64,
    },
    Spill {
        directory: String,
        /// The number that the operating system has for it.
        number: Option<i32>,
        reason: String,
    },
    PoolExhausted {
        limit_bytes: u64,
    },
    ShardLost {
        shard: u32,
    },
    NoStack {
        bytes: u64,
    },
    Panicked,
    Service {
        endpoint: String,
        source: ServiceError,
    },
    Expression(CompileError),
    Refused {
        reason: String,
    },
    /// Something that node cannot use.
    Unusable {
        reason: String,
    },
    NodeLost {
        node: u32,
    },
    SnapshotGone,
}

impl Failure {
    pub(in crate::fork) fn of(error: ExecError) -> Self {
        match error {
            ExecError::Timeout { .. } => Self::Timeout,
            ExecError::Cancelled => Self::Cancelled,
            ExecError::Memory { limit_bytes } => Self::Memory { limit_bytes },
            ExecError::SpillExceeded { limit_bytes } => Self::SpillExceeded { limit_bytes },
            ExecError::Spill { directory, source } => Self::Spill {
                directory: directory.to_string_lossy().into_owned(),
                number: source.raw_os_error(),
                reason: source.to_string(),
            },
            ExecError::PoolExhausted { limit_bytes } => Self::PoolExhausted { limit_bytes },
            ExecError::ShardLost { shard } => Self::ShardLost { shard: shard.0 },
            ExecError::NodeLost { node } => Self::NodeLost { node: node.0 },
            ExecError::SnapshotGone => Self::SnapshotGone,
            ExecError::NoStack(NoStack { bytes }) => Self::NoStack {
                bytes: bytes as u64,
            },
            ExecError::Panicked => Self::Panicked,
            ExecError::Service { endpoint, source } => Self::Service { endpoint, source },
            ExecError::Expression(error) => Self::Expression(error),
            ExecError::Refused { reason } => Self::Refused { reason },
            ExecError::Wire(error) => Self::unusable(&error),
            ExecError::SubQuery(error) => Self::unusable(&error),
        }
    }

    fn unusable(error: &dyn std::error::Error) -> Self {
        Self::Unusable {
            reason: error.to_string(),
        }
    }

    /// With a reason that fits into any message.
    pub(super) fn shortened(mut self) -> Self {
        if let Self::Unusable { reason } = &mut self {
            reason.truncate(reason.floor_char_boundary(SHORT_BYTES));
        }
        self
    }

    /// The error that it is for a query, as `node` says.
    pub(in crate::fork) fn into_error(self, node: NodeId, query: &SharedContext) -> ExecError {
        match self {
            Self::Timeout => query.out_of_time(),
            Self::Cancelled => ExecError::Cancelled,
            Self::Memory { limit_bytes } => ExecError::Memory { limit_bytes },
            Self::SpillExceeded { limit_bytes } => ExecError::SpillExceeded { limit_bytes },
            Self::Spill {
                directory,
                number,
                reason,
            } => ExecError::Spill {
                directory: PathBuf::from(directory),
                source: number
                    .map_or_else(|| io::Error::other(reason), io::Error::from_raw_os_error),
            },
            Self::PoolExhausted { limit_bytes } => ExecError::PoolExhausted { limit_bytes },
            Self::ShardLost { shard } => ExecError::ShardLost {
                shard: ShardId(shard),
            },
            Self::NodeLost { node } => ExecError::NodeLost { node: NodeId(node) },
            Self::SnapshotGone => ExecError::SnapshotGone,
            Self::NoStack { bytes } => ExecError::NoStack(NoStack {
                bytes: usize::try_from(bytes).unwrap_or(usize::MAX),
            }),
            Self::Panicked => ExecError::Panicked,
            Self::Service { endpoint, source } => ExecError::Service { endpoint, source },
            Self::Expression(error) => ExecError::Expression(error),
            Self::Refused { reason } => ExecError::Refused { reason },
            Self::Unusable { reason } => SubQueryWireError::Elsewhere { node, reason }.into(),
        }
    }
}
