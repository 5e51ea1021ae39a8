//! DISTINCT: has this row been seen before?

use jindou_model::TermId;
use jindou_plan::physical::Var;

use crate::ExecError;
use crate::context::{Booked, Context};
use crate::operator::{Boxed, Operator};
use crate::rows::RowSet;
use crate::table::Table;

/// Passes each row once.
pub(super) struct Distinct {
    input: Boxed,
    vars: Vec<Var>,
    seen: RowSet,
    booked: Booked,
}

impl Distinct {
    pub(super) fn new(input: Boxed, vars: Vec<Var>) -> Self {
        let seen = RowSet::new(vars.len());
        Self {
            input,
            vars,
            seen,
            booked: Booked::default(),
        }
    }
}

impl Operator for Distinct {
    fn next(&mut self, cx: &Context) -> Result<Option<Table>, ExecError> {
        cx.check()?;
        let Some(mut table) = self.input.next(cx)? else {
            return Ok(None);
        };
        let mut row = Vec::with_capacity(self.vars.len());
        let mut fresh: Vec<u32> = Vec::new();
        {
            let columns: Vec<Option<&[TermId]>> =
                self.vars.iter().map(|var| table.get(*var)).collect();
            for index in 0..table.rows() {
                row.clear();
                row.extend(columns.iter().map(|c| c.map_or(TermId::NONE, |c| c[index])));
                if self.seen.insert(&row).1 {
                    fresh.push(index as u32);
                }
            }
        }
        let bytes = self.seen.bytes();
        cx.book(&mut self.booked, bytes)?;
        table.retain_rows(&fresh);
        Ok(Some(table))
    }
}
