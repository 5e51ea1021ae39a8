//! Why did a query end without its whole answer?

use std::time::Duration;

use crate::expr::CompileError;

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
    /// All queries together need more memory than they may hold, this one among them.
    #[error("all queries together need more than their memory budget of {limit_bytes} bytes")]
    PoolExhausted {
        /// The budget.
        limit_bytes: u64,
    },
    /// A thread of the query met a mistake of ours.
    #[error("an internal error ended the query; the log has its trace")]
    Panicked,
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
