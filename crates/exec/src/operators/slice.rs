//! OFFSET and LIMIT: skip some rows, pass some, then ask for no more.

use crate::ExecError;
use crate::context::Context;
use crate::discard::discard;
use crate::operator::{Boxed, Operator};
use crate::table::Table;

/// Passes a run of its input's rows.
pub(super) struct Slice {
    /// `None` once no more rows are wanted.
    input: Option<Boxed>,
    offset: usize,
    limit: Option<usize>,
}

impl Slice {
    pub(super) fn new(input: Boxed, offset: usize, limit: Option<usize>) -> Self {
        Self {
            input: Some(input),
            offset,
            limit,
        }
    }
}

impl Operator for Slice {
    fn produce(&mut self, cx: &Context) -> Result<Option<Table>, ExecError> {
        loop {
            if self.limit == Some(0) {
                // Its threads do nothing more.
                if let Some(input) = self.input.take() {
                    let held = usize::try_from(cx.held_bytes()).unwrap_or(usize::MAX);
                    discard(input, held);
                }
                return Ok(None);
            }
            let Some(input) = &mut self.input else {
                return Ok(None);
            };
            let Some(mut table) = input.next(cx)? else {
                return Ok(None);
            };
            if self.offset >= table.rows() {
                self.offset -= table.rows();
                continue;
            }
            let from = std::mem::take(&mut self.offset);
            let room = self.limit.unwrap_or(usize::MAX);
            let to = table.rows().min(from.saturating_add(room));
            table.slice(from, to);
            self.limit = self.limit.map(|limit| limit - table.rows());
            return Ok(Some(table));
        }
    }
}
