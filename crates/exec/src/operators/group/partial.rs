//! The groups of one thread's rows, before those of all threads are put together.
//!
//! What the reader cannot put together exactly, and what does not fit or would not become fewer, goes to
//! it as rows.

use jindou_plan::expression::{Aggregate, AggregateFunction};
use jindou_plan::physical::Var;

use super::arguments::Arguments;
use super::groups::Groups;
use crate::ExecError;
use crate::context::{Booked, Context};
use crate::exchange::{Mode, Partial, Reduction};
use crate::table::{Table, VarSet};

/// [`Partial`] of GROUP BY.
pub(super) struct PartialGroups {
    arguments: Arguments,
    groups: Groups,
    reduction: Reduction,
}

/// What a thread has for the reader.
pub(super) enum Sent {
    /// Rows, as what aggregates look at.
    Arguments(Table),
    /// Groups, with what they hold.
    Groups(Groups, Booked),
    /// Groups of which no other thread has rows, and the reader gets none.
    Whole(Groups, Booked),
}

/// True of an aggregate that the reader can put together from those of parts of the rows, as if it had
/// met them all.
fn is_mergeable(aggregate: &Aggregate) -> bool {
    let is_of_solutions = aggregate.operand.is_none() && aggregate.distinct;
    // A text is longer than what is told of it by ids, and grows without bounds.
    let is_text = matches!(aggregate.function, AggregateFunction::GroupConcat(_));
    !is_of_solutions && !is_text
}

impl PartialGroups {
    /// Of groups by these variables, in a plan that has all of `variables`, where each value of `distinct`
    /// is in rows of this thread only.
    ///
    /// # Errors
    /// What compiling an expression says.
    pub(super) fn new(
        by: &[Var],
        aggregates: &[(Var, Aggregate)],
        variables: &[Var],
        distinct: Option<Var>,
        cx: &Context,
    ) -> Result<Self, ExecError> {
        let aggregates = || aggregates.iter().map(|(_, aggregate)| aggregate);
        let mode = match aggregates().all(is_mergeable) {
            true => Mode::Grow,
            false => Mode::PassOn,
        };
        // What groups of distinct values hold grows with rows of groups that are there, too.
        let then = match aggregates().any(|aggregate| aggregate.distinct) {
            true => Mode::PassOn,
            false => Mode::Keep,
        };
        let is_own = distinct.is_some_and(|var| by.contains(&var));
        Ok(Self {
            arguments: Arguments::new(by, aggregates(), variables, cx)?,
            groups: Groups::new(by.len(), aggregates()),
            reduction: Reduction::new(mode, then, is_own, cx),
        })
    }

    /// What becomes of so many more rows.
    fn decide(&mut self, rows: usize, cx: &Context) -> Mode {
        let bytes_with = || match self.groups.is_full(rows) {
            true => usize::MAX,
            false => self.groups.bytes_with(rows),
        };
        self.reduction
            .decide(rows, self.groups.size(), bytes_with, cx)
    }

    fn add(&mut self, arguments: &Table, groups: &[u32], cx: &Context) -> Result<(), ExecError> {
        self.groups.follow_order(cx)?;
        self.groups
            .accumulate(arguments, groups, &self.arguments, cx);
        self.reduction.book(self.groups.bytes(), cx);
        Ok(())
    }

    /// Adds the rows of groups that are there; gives the others.
    fn add_known(
        &mut self,
        mut arguments: Table,
        cx: &Context,
    ) -> Result<Option<Table>, ExecError> {
        let known = self.groups.known(&arguments, &self.arguments);
        if known.others.is_empty() {
            self.add(&arguments, &known.groups, cx)?;
            return Ok(None);
        }
        if !known.rows.is_empty() {
            let all: VarSet = arguments.bound().collect();
            let rows = arguments.gather(&known.rows, &all);
            self.add(&rows, &known.groups, cx)?;
        }
        arguments.retain_rows(&known.others);
        Ok(Some(arguments))
    }
}

impl Partial for PartialGroups {
    type Sent = Sent;

    fn take(&mut self, table: Table, cx: &Context) -> Result<Option<Sent>, ExecError> {
        cx.check()?;
        let arguments = self.arguments.of(table, cx);
        let rest = match self.decide(arguments.rows(), cx) {
            Mode::Grow => {
                let groups = self.groups.of_rows(&arguments, &self.arguments);
                self.add(&arguments, &groups, cx)?;
                None
            }
            Mode::Keep => self.add_known(arguments, cx)?,
            Mode::PassOn => Some(arguments),
        };
        let Some(mut rest) = rest else {
            return Ok(None);
        };
        cx.book_table(&mut rest)?;
        Ok(Some(Sent::Arguments(rest)))
    }

    fn finish(self, _: &Context) -> Result<Option<Sent>, ExecError> {
        if self.groups.len() == 0 {
            return Ok(None);
        }
        let is_whole = self.reduction.is_whole();
        let booked = self.reduction.into_booked();
        Ok(Some(match is_whole {
            true => Sent::Whole(self.groups, booked),
            false => Sent::Groups(self.groups, booked),
        }))
    }
}
