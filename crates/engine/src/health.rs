//! What is wrong with a database that still answers queries?

/// Why a database takes no changes, or soon will not.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Failure {
    /// The log failed: nothing is written until the store is opened again.
    #[error("the log failed, so the store is read-only until it is opened again: {reason}")]
    Log {
        /// What was said.
        reason: String,
    },
    /// A file of the data is damaged: queries that read it fail, and nothing is written.
    #[error("the data is damaged: {reason}")]
    Data {
        /// What was said.
        reason: String,
    },
    /// The last merge or checkpoint failed. It is tried again; when too many changes wait for it,
    /// updates are refused.
    #[error("changes cannot be merged, which is tried again: {reason}")]
    Maintenance {
        /// What was said.
        reason: String,
    },
    /// The copy of another node's store takes no transactions of that node any more, until it is opened again.
    #[error("this copy follows the cluster no more: {reason}")]
    Replication {
        /// What was said.
        reason: String,
    },
}
