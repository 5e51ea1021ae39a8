//! The start of a nested chain of steps: one table at a time, put there by the step around it.

use std::sync::{Arc, Mutex};

use crate::ExecError;
use crate::context::Context;
use crate::operator::Operator;
use crate::table::Table;

/// Where the outer step leaves a table for the inner chain.
#[derive(Clone, Default)]
pub(crate) struct Feed {
    slot: Arc<Mutex<Option<Table>>>,
}

impl Feed {
    /// Gives the chain its next input.
    pub(crate) fn put(&self, table: Table) {
        *self
            .slot
            .lock()
            .expect("no thread panics while it holds a table") = Some(table);
    }
}

impl Operator for Feed {
    fn produce(&mut self, _cx: &Context) -> Result<Option<Table>, ExecError> {
        Ok(self
            .slot
            .lock()
            .expect("no thread panics while it holds a table")
            .take())
    }
}
