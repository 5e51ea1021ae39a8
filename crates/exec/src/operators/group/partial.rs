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
use crate::exchange::Partial;
use crate::table::{Table, VarSet};

/// Of the memory of a query, the groups of all its threads may take this part before they are put
/// together.
const PART_OF_MEMORY: u64 = 8;
/// After so many rows it is known whether grouping makes them fewer.
const ENOUGH_ROWS: usize = 1 << 14;
/// Rows that a group must have on average for that.
const ROWS_PER_GROUP: usize = 4;

/// What becomes of rows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// They are added to their groups.
    Grow,
    /// Those are, whose groups are there; the reader gets the others.
    Keep,
    /// The reader gets all.
    PassOn,
}

/// [`Partial`] of GROUP BY.
pub(super) struct PartialGroups {
    arguments: Arguments,
    groups: Groups,
    booked: Booked,
    limit_bytes: usize,
    /// Rows that were added.
    rows: usize,
    mode: Mode,
    /// What groups hold does not grow but with their number.
    is_bounded: bool,
}

/// What a thread has for the reader.
pub(super) enum Sent {
    /// Rows, as what aggregates look at.
    Arguments(Table),
    /// Groups, with what they hold.
    Groups(Groups, Booked),
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
    /// Of groups by these variables, in a plan that has all of `variables`.
    ///
    /// # Errors
    /// What compiling an expression says.
    pub(super) fn new(
        by: &[Var],
        aggregates: &[(Var, Aggregate)],
        variables: &[Var],
        cx: &Context,
    ) -> Result<Self, ExecError> {
        let aggregates = || aggregates.iter().map(|(_, aggregate)| aggregate);
        let limit_bytes = cx.memory_bytes() / PART_OF_MEMORY / cx.threads() as u64;
        Ok(Self {
            arguments: Arguments::new(by, aggregates(), variables, cx)?,
            groups: Groups::new(by.len(), aggregates()),
            booked: Booked::default(),
            limit_bytes: usize::try_from(limit_bytes).unwrap_or(usize::MAX),
            rows: 0,
            mode: match aggregates().all(is_mergeable) {
                true => Mode::Grow,
                false => Mode::PassOn,
            },
            is_bounded: !aggregates().any(|aggregate| aggregate.distinct),
        })
    }

    /// What becomes of the next rows.
    fn decide(&mut self, rows: usize, cx: &Context) -> Mode {
        if self.mode != Mode::Grow {
            return self.mode;
        }
        let are_few = self.rows >= ENOUGH_ROWS && self.groups.size() * ROWS_PER_GROUP > self.rows;
        if are_few {
            return Mode::PassOn;
        }
        if !self.groups.is_full(rows) && self.may_hold(self.groups.bytes_with(rows), cx) {
            return Mode::Grow;
        }
        match self.is_bounded {
            true => Mode::Keep,
            false => Mode::PassOn,
        }
    }

    fn may_hold(&mut self, bytes: usize, cx: &Context) -> bool {
        // The reader may go to disk where this has no room.
        bytes <= self.limit_bytes && cx.room(&mut self.booked, bytes).unwrap_or(false)
    }

    fn add(&mut self, arguments: &Table, groups: &[u32], cx: &Context) -> Result<(), ExecError> {
        self.groups.follow_order(cx)?;
        self.groups
            .accumulate(arguments, groups, &self.arguments, cx);
        let bytes = self.groups.bytes();
        if !cx.room(&mut self.booked, bytes).unwrap_or(false) {
            // Texts have grown that nobody foresaw.
            self.mode = Mode::PassOn;
        }
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
        self.mode = self.decide(arguments.rows(), cx);
        let rest = match self.mode {
            Mode::Grow => {
                let groups = self.groups.of_rows(&arguments, &self.arguments);
                self.add(&arguments, &groups, cx)?;
                self.rows += arguments.rows();
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
        let has_groups = self.groups.len() > 0;
        Ok(has_groups.then(|| Sent::Groups(self.groups, self.booked)))
    }
}
