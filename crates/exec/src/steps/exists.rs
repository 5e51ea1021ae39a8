//! EXISTS and MINUS with bindings from their left side: for which rows do the inner steps find
//! anything?

use std::sync::{Arc, Mutex};

use jindou_model::inline;
use jindou_plan::physical::{Outcome, PlannedStep, Var};

use super::feed::Feed;
use super::optional::row_id;
use super::{Behind, Chain, needed_before};
use crate::ExecError;
use crate::context::Context;
use crate::operator::{Boxed, Builder, Operator};
use crate::table::{Table, VarSet};

/// Which rows of the batch in work something was found for.
type Found = Arc<Mutex<Vec<bool>>>;

struct Exists {
    input: Boxed,
    feed: Feed,
    inner: Boxed,
    found: Found,
    /// The hidden column that numbers the rows of a batch.
    number: Var,
    /// What the inner steps look at.
    wanted: VarSet,
    outcome: Outcome,
    keep: VarSet,
}

/// [`jindou_plan::physical::Step::Exists`].
pub(super) fn build(
    builder: &mut Builder<'_>,
    input: Boxed,
    steps: &[PlannedStep],
    outcome: Outcome,
    keep: &VarSet,
) -> Result<Boxed, ExecError> {
    let number = builder.hidden_variable();
    let last: VarSet = [number].into_iter().collect();
    let feed = Feed::default();
    let found = Found::default();
    let mut chain = Chain::default();
    let mut behind = Behind::new(steps, &last);
    let mut inner: Boxed = Box::new(feed.clone());
    for (index, step) in steps.iter().enumerate() {
        inner = chain.input(inner);
        if index > 0 {
            inner = Box::new(Undecided {
                input: inner,
                found: Arc::clone(&found),
                number,
            });
        }
        let needed = behind.behind(index + 1);
        inner = builder.steps(inner, std::slice::from_ref(step), needed)?;
    }
    let inner = chain.end(inner);
    Ok(Box::new(Exists {
        input,
        feed,
        inner,
        found,
        number,
        wanted: needed_before(steps, &last),
        outcome,
        keep: keep.clone(),
    }))
}

fn lock(found: &Found) -> std::sync::MutexGuard<'_, Vec<bool>> {
    found
        .lock()
        .expect("no thread panics while it notes what was found")
}

/// Passes the rows for which nothing was found yet: the others need no more work.
struct Undecided {
    input: Boxed,
    found: Found,
    number: Var,
}

impl Operator for Undecided {
    fn produce(&mut self, cx: &Context) -> Result<Option<Table>, ExecError> {
        let Some(mut table) = self.input.next(cx)? else {
            return Ok(None);
        };
        let rows: Vec<u32> = {
            let found = lock(&self.found);
            let is_open =
                |row: &u32| !found[table.value(self.number, *row as usize).payload() as usize];
            (0..table.rows() as u32).filter(is_open).collect()
        };
        table.retain_rows(&rows);
        Ok(Some(table))
    }
}

impl Operator for Exists {
    fn produce(&mut self, cx: &Context) -> Result<Option<Table>, ExecError> {
        cx.check()?;
        let Some(table) = self.input.next(cx)? else {
            return Ok(None);
        };
        let mut numbered = table.project(&self.wanted);
        numbered.set(self.number, (0..table.rows()).map(row_id).collect());
        *lock(&self.found) = vec![false; table.rows()];
        self.feed.put(numbered);
        while let Some(rows) = self.inner.next(cx)? {
            cx.check()?;
            if let Some(numbers) = rows.get(self.number) {
                let mut found = lock(&self.found);
                for number in numbers {
                    found[number.payload() as usize] = true;
                }
            }
        }
        let found = std::mem::take(&mut *lock(&self.found));
        Ok(Some(decide(table, &found, self.outcome, &self.keep)))
    }
}

/// The table once it is known for which of its rows something was found.
pub(super) fn decide(mut table: Table, found: &[bool], outcome: Outcome, keep: &VarSet) -> Table {
    table.retain_columns(keep);
    let wanted = match outcome {
        Outcome::Mark(var) => {
            if keep.contains(var) {
                let column = found.iter().copied().map(inline::from_boolean).collect();
                table.set(var, column);
            }
            return table;
        }
        Outcome::Keep => true,
        Outcome::Drop => false,
    };
    let rows: Vec<u32> = (0..table.rows() as u32)
        .filter(|row| found[*row as usize] == wanted)
        .collect();
    table.retain_rows(&rows);
    table
}
