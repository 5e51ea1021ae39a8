//! OPTIONAL with bindings from its left side: what the inner steps find, and the rows for which
//! they find nothing.

use jindou_model::{TermId, TermKind};
use jindou_plan::physical::{PlannedStep, Var};

use super::feed::Feed;
use crate::ExecError;
use crate::context::Context;
use crate::operator::{Boxed, Builder, Operator};
use crate::table::{Table, VarSet};

struct LeftJoinSteps {
    input: Boxed,
    feed: Feed,
    inner: Boxed,
    /// The hidden column that numbers the rows of a batch.
    number: Var,
    keep: VarSet,
    /// The batch in work, and which of its rows were extended.
    current: Option<(Table, Vec<bool>)>,
}

/// [`jindou_plan::physical::Step::Optional`].
pub(super) fn build(
    builder: &mut Builder<'_>,
    input: Boxed,
    steps: &[PlannedStep],
    keep: &VarSet,
) -> Result<Boxed, ExecError> {
    let number = builder.hidden_variable();
    let mut inner_keep = keep.clone();
    inner_keep.insert(number);
    let feed = Feed::default();
    let inner = builder.steps(Box::new(feed.clone()), steps, &inner_keep)?;
    Ok(Box::new(LeftJoinSteps {
        input,
        feed,
        inner,
        number,
        keep: keep.clone(),
        current: None,
    }))
}

/// Row numbers as ids, so that they can be a column.
pub(super) fn row_id(row: usize) -> TermId {
    TermId::new(TermKind::Computed, row as u64)
}

impl Operator for LeftJoinSteps {
    fn next(&mut self, cx: &Context) -> Result<Option<Table>, ExecError> {
        cx.check()?;
        if self.current.is_none() {
            let Some(table) = self.input.next(cx)? else {
                return Ok(None);
            };
            let mut numbered = table.clone();
            numbered.set(self.number, (0..table.rows()).map(row_id).collect());
            self.feed.put(numbered);
            let extended = vec![false; table.rows()];
            self.current = Some((table, extended));
        }
        let (_, extended) = self.current.as_mut().expect("a batch was taken above");
        if let Some(mut found) = self.inner.next(cx)? {
            if let Some(numbers) = found.get(self.number) {
                for number in numbers {
                    extended[number.payload() as usize] = true;
                }
            }
            found.retain_columns(&self.keep);
            return Ok(Some(found));
        }
        let (mut table, extended) = self.current.take().expect("a batch was taken above");
        let alone: Vec<u32> = (0..table.rows() as u32)
            .filter(|row| !extended[*row as usize])
            .collect();
        table.retain_columns(&self.keep);
        table.retain_rows(&alone);
        Ok(Some(table))
    }
}
