//! UNION with bindings from its left side: each batch goes through every branch.

use jindou_plan::physical::PlannedStep;

use super::feed::Feed;
use super::{Undecided, needed_before};
use crate::ExecError;
use crate::context::Context;
use crate::operator::{Boxed, Builder, Operator};
use crate::table::{Table, VarSet};

struct Branches {
    input: Boxed,
    /// Inside EXISTS: what was found there.
    undecided: Option<Undecided>,
    branches: Vec<(Feed, Boxed, VarSet)>,
    /// The batch in work and the branch that has it.
    current: Option<(Table, usize)>,
}

/// [`jindou_plan::physical::Step::Union`].
pub(super) fn build(
    builder: &mut Builder<'_>,
    input: Boxed,
    branches: &[Vec<PlannedStep>],
    keep: &VarSet,
) -> Result<Boxed, ExecError> {
    let branches = branches
        .iter()
        .map(|steps| {
            let feed = Feed::default();
            let before = needed_before(steps, keep);
            let chain = builder.steps(Box::new(feed.clone()), steps, keep)?;
            Ok((feed, chain, before))
        })
        .collect::<Result<_, ExecError>>()?;
    Ok(Box::new(Branches {
        input,
        undecided: builder.undecided.clone(),
        branches,
        current: None,
    }))
}

impl Operator for Branches {
    fn produce(&mut self, cx: &Context) -> Result<Option<Table>, ExecError> {
        loop {
            cx.check()?;
            if let Some((table, branch)) = &mut self.current {
                let (_, chain, _) = &mut self.branches[*branch];
                if let Some(rows) = chain.next(cx)? {
                    return Ok(Some(rows));
                }
                *branch += 1;
                match self.branches.get(*branch) {
                    Some((feed, _, before)) => {
                        let mut rows = table.project(before);
                        if let Some(undecided) = &self.undecided {
                            undecided.retain(&mut rows);
                        }
                        feed.put(rows);
                    }
                    None => self.current = None,
                }
                continue;
            }
            let Some(table) = self.input.next(cx)? else {
                return Ok(None);
            };
            if let Some((feed, _, before)) = self.branches.first() {
                feed.put(table.project(before));
                self.current = Some((table, 0));
            }
        }
    }
}
