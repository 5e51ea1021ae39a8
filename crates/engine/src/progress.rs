//! How far is a query, seen from another thread?

use std::sync::Arc;

use jindou_exec::Account;

/// Watches one query; clones watch the same. Each query should have one of its own.
///
/// ```
/// use jindou_engine::{Database, QueryOptions, QueryProgress, QueryResults};
///
/// let progress = QueryProgress::default();
/// let options = QueryOptions {
///     progress: Some(progress.clone()),
///     ..QueryOptions::default()
/// };
/// let query = "SELECT * { VALUES ?x { 1 2 3 } }";
/// if let QueryResults::Solutions(solutions) = Database::new().query_with(query, options)? {
///     assert_eq!(solutions.count(), 3);
/// }
/// assert_eq!(progress.rows(), 3);
/// # Ok::<(), jindou_engine::EngineError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct QueryProgress {
    pub(crate) account: Arc<Account>,
}

impl QueryProgress {
    /// Rows that it has found; for CONSTRUCT and DESCRIBE, solutions of its pattern.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.account.rows()
    }

    /// Bytes that its operators hold.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        self.account.bytes()
    }

    /// Batches of rows that its operators have begun: grows also while no row is found.
    #[must_use]
    pub fn batches(&self) -> u64 {
        self.account.batches()
    }
}
