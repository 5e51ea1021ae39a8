//! OPTIONAL with bindings from its left side: what the inner steps find, and the rows for which
//! they find nothing.

use jindou_plan::physical::{PlannedStep, Var};

use super::feed::Feed;
use super::needed_before;
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
    /// What the inner steps look at.
    wanted: VarSet,
    /// What the inner steps give of it, and what they bind.
    given: VarSet,
    /// What they do not look at.
    outer: VarSet,
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
    // Other columns stay behind: they are joined once, by the rows' numbers.
    let last: VarSet = [number].into_iter().collect();
    let mut wanted = needed_before(steps, &last);
    // Inside EXISTS, steps pass over rows for which something was found.
    wanted.extend((builder.undecided.iter()).map(|undecided| undecided.number()));
    let is_inner = |var: &Var| wanted.contains(*var);
    let (given, outer): (Vec<Var>, Vec<Var>) = keep.iter().partition(is_inner);
    let given: VarSet = given.into_iter().collect();
    let mut inner_keep = given.clone();
    inner_keep.insert(number);
    let feed = Feed::default();
    let inner = builder.steps(Box::new(feed.clone()), steps, &inner_keep)?;
    Ok(Box::new(LeftJoinSteps {
        input,
        feed,
        inner,
        number,
        wanted,
        given,
        outer: outer.into_iter().collect(),
        keep: keep.clone(),
        current: None,
    }))
}

impl Operator for LeftJoinSteps {
    fn produce(&mut self, cx: &Context) -> Result<Option<Table>, ExecError> {
        cx.check()?;
        if self.current.is_none() {
            let Some(table) = self.input.next(cx)? else {
                return Ok(None);
            };
            let mut numbered = table.project(&self.wanted);
            numbered.set_origins(self.number);
            self.feed.put(numbered);
            let extended = vec![false; table.rows()];
            self.current = Some((table, extended));
        }
        let (table, extended) = self.current.as_mut().expect("a batch was taken above");
        if let Some(mut found) = self.inner.next(cx)? {
            let rows = found.take_origins(self.number);
            for row in &rows {
                extended[*row as usize] = true;
            }
            let mut joined = table.gather(&rows, &self.outer);
            joined.take_columns(&mut found, &self.given);
            return Ok(Some(joined));
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
