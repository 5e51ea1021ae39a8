//! How does a table get from the operator that found its rows to the one that reads them, where
//! these may be in two processes?

use std::sync::Arc;

use crate::ExecError;
use crate::context::Context;
use crate::operator::{Boxed, Operator};
use crate::table::Table;

/// What carries tables between operators.
///
/// Who implements it sends [`Table::encode`] and reads with [`Table::decode`].
pub trait Transport: Send + Sync {
    /// A table as it arrives.
    ///
    /// # Errors
    /// What ends the query: above all that what arrived is no table, or that there is no room
    /// for it.
    fn carry(&self, table: Table, cx: &Context) -> Result<Table, ExecError>;
}

/// Hands over the tables of the operator inside as they arrive.
pub(crate) struct Carried {
    inner: Boxed,
    transport: Arc<dyn Transport>,
}

impl Carried {
    pub(crate) fn new(inner: Boxed, transport: Arc<dyn Transport>) -> Self {
        Self { inner, transport }
    }
}

impl Operator for Carried {
    fn produce(&mut self, cx: &Context) -> Result<Option<Table>, ExecError> {
        let table = self.inner.next(cx)?;
        table
            .map(|table| self.transport.carry(table, cx))
            .transpose()
    }
}
