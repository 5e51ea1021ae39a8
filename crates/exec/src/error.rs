//! Why did a query end without its whole answer?

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use jindou_model::{NodeId, ShardId, Unavailable};
use jindou_plan::NoStack;

use crate::expr::CompileError;
use crate::{ServiceError, SubQueryWireError, WireError};

/// An error of execution.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExecError {
    /// It ran for longer than it may.
    #[error("the query ran for longer than its limit of {} s", limit.as_secs_f64())]
    Timeout {
        /// The limit.
        limit: Duration,
    },
    /// Somebody ended it.
    #[error("the query was cancelled")]
    Cancelled,
    /// It needs more memory than it may hold.
    #[error("the query needs more than its memory budget of {limit_bytes} bytes")]
    Memory {
        /// The budget.
        limit_bytes: u64,
    },
    /// It needs more memory than it may hold, and more on disk than it may put there.
    #[error("the query needs more than its {limit_bytes} bytes of temporary files")]
    SpillExceeded {
        /// Bytes that it may have on disk.
        limit_bytes: u64,
    },
    /// Temporary files cannot be made, written or read.
    #[error("temporary files in {}: {source}", directory.display())]
    Spill {
        /// Where they are.
        directory: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// All queries together need more memory than they may hold, this one among them.
    #[error("all queries together need more than their memory budget of {limit_bytes} bytes")]
    PoolExhausted {
        /// The budget.
        limit_bytes: u64,
    },
    /// A part of the graph was lost.
    #[error("shard {} is lost, and the query needs it", shard.0)]
    ShardLost {
        /// Which part.
        shard: ShardId,
    },
    /// A node was lost, and sub-queries may have been there.
    #[error("node number {} is lost, and the query needs it", node.0)]
    NodeLost {
        /// Which node.
        node: NodeId,
    },
    /// A node of the cluster does not have the graph as it was when the query began, or not any more.
    #[error("a node does not have the snapshot of the query, which may have taken too long")]
    SnapshotGone,
    /// A table that came from elsewhere is none.
    #[error("a table from elsewhere cannot be used: {0}")]
    Wire(#[from] WireError),
    /// What nodes said to each other about a sub-query cannot be used.
    #[error("a message between nodes cannot be used: {0}")]
    SubQuery(#[from] SubQueryWireError),
    /// There is no memory for the stack that the plan needs.
    #[error(transparent)]
    NoStack(#[from] NoStack),
    /// A thread of the query met a mistake of ours.
    #[error("an internal error ended the query; the log has its trace")]
    Panicked,
    /// Another endpoint did not answer.
    #[error("{endpoint}: {source}")]
    Service {
        /// The endpoint, as the query would write it.
        endpoint: String,
        /// Why not.
        source: ServiceError,
    },
    /// An expression asks for something that is refused.
    #[error(transparent)]
    Expression(#[from] CompileError),
    /// An expression met something that is refused.
    #[error("{reason}")]
    Refused {
        /// What.
        reason: String,
    },
}

impl ExecError {
    /// What a query ends for where a part of its graph or of its dictionary cannot be had.
    #[must_use]
    pub fn of_unavailable(why: Unavailable) -> Self {
        match why {
            Unavailable::Never(shard) => Self::ShardLost { shard },
            Unavailable::Gone => Self::SnapshotGone,
            // Nobody stops waiting but for a query that must end.
            Unavailable::NotNow => Self::Cancelled,
        }
    }
}
