//! GROUP BY: one row for each combination of keys, with its aggregates.
//!
//! Once the memory is used up nothing new is kept in it: rows of groups that are not there go to
//! disk, put into parts by their keys, and so do values that DISTINCT has not seen in the groups
//! that are there. Groups in memory are handed over first, then each part is grouped likewise.
//!
//! Where the rows are found by several threads, each groups its own ([`partial`]), and these groups are
//! put together with those in memory. If there is no room for that they stay aside, and each of them is
//! added to the group of its key when that is handed over.

mod arguments;
mod groups;
mod partial;

use jindou_plan::expression::Aggregate;
use jindou_plan::physical::{Node, Var};

use self::arguments::{Arguments, Operand};
use self::groups::Groups;
use self::partial::{PartialGroups, Sent};
use super::dedup::Dedup;
use crate::ExecError;
use crate::context::{Booked, Context};
use crate::discard::discard;
use crate::exchange::Exchange;
use crate::operator::{Boxed, Builder, Operator};
use crate::rows::hash_row;
use crate::spill::{MOST_LEVELS, Partitions, Run, batch_rows, push_values};
use crate::table::{self, Column, Table, VarSet};

/// Groups that are finished between two looks at the clock.
const GROUPS_AT_ONCE: usize = 64;

struct Aggregated {
    var: Var,
    aggregate: Aggregate,
    /// Values and solutions of which it is not known whether DISTINCT has seen them.
    late: Option<Dedup>,
}

/// Where rows come from.
enum Input {
    /// One thread.
    Rows(Boxed),
    /// Several threads, which may have grouped them.
    Exchange(Box<Exchange<PartialGroups>>),
}

impl Input {
    fn next(&mut self, layout: &mut Arguments, cx: &Context) -> Result<Option<Sent>, ExecError> {
        match self {
            Self::Rows(input) => {
                let table = input.next(cx)?;
                Ok(table.map(|table| Sent::Arguments(layout.of(table, cx))))
            }
            Self::Exchange(exchange) => exchange.receive(cx),
        }
    }
}

/// Groups of a thread that were not put together with those in memory.
struct Aside {
    groups: Groups,
    /// Which of them were taken away.
    taken: Vec<bool>,
    /// All before this one were.
    first: usize,
    _booked: Booked,
}

impl Aside {
    /// Takes away some groups that are still there, so many at most; `None` if there are no more.
    fn take_some(&mut self, most: usize) -> Option<Groups> {
        let left = (self.first..self.groups.len()).filter(|group| !self.taken[*group]);
        let some: Vec<u32> = left.take(most).map(|group| group as u32).collect();
        self.first = *some.last()? as usize + 1;
        Some(self.take(&some))
    }

    /// Takes away those whose keys are among these.
    fn take_shared(&mut self, with: &Groups) -> Groups {
        let mut shared = self.groups.shared_with(with, self.first);
        shared.retain(|group| !self.taken[*group as usize]);
        self.take(&shared)
    }

    fn take(&mut self, some: &[u32]) -> Groups {
        for group in some {
            self.taken[*group as usize] = true;
        }
        self.groups.take(some)
    }
}

struct Group {
    input: Input,
    layout: Arguments,
    by: Vec<Var>,
    columns: Vec<Aggregated>,
    groups: Groups,
    width: usize,
    /// The next group to hand over, once all rows are in.
    next: Option<usize>,
    booked: Booked,
    /// What was held when last something new could be kept, and whether there is room for more.
    fixed_bytes: usize,
    has_room: bool,
    /// Set once nothing new may be kept: where rows of other groups go.
    late: Option<Partitions>,
    /// How often the rows in work were put into parts.
    level: u32,
    /// Parts to look at, and how often their rows were put into parts.
    parts: Vec<(Run, u32)>,
    aside: Vec<Aside>,
    /// Groups that have all of their rows.
    whole: Vec<(Groups, Booked)>,
}

/// [`jindou_plan::physical::Operator::Group`].
pub(super) fn build(
    builder: &mut Builder<'_>,
    input: &Node,
    by: &[Var],
    aggregates: &[(Var, Aggregate)],
) -> Result<Boxed, ExecError> {
    let mut needed: VarSet = by.iter().copied().collect();
    let all: Vec<Var> = builder.variables().collect();
    for (_, aggregate) in aggregates {
        match &aggregate.operand {
            Some(expression) => expression.for_each_variable(&mut |var| needed.insert(var)),
            None if aggregate.distinct => needed.extend(all.iter().copied()),
            None => {}
        }
    }
    let of_all = aggregates.iter().map(|(_, aggregate)| aggregate);
    let counted = of_all.clone().all(Aggregate::takes_counted_rows);
    let partial = |distinct, cx: &Context| PartialGroups::new(by, aggregates, &all, distinct, cx);
    let input = match builder.exchange(input, &needed, counted, partial)? {
        Some(exchange) => Input::Exchange(exchange),
        None if counted => Input::Rows(builder.counted_node(input, &needed)?),
        None => Input::Rows(builder.node(input, &needed)?),
    };
    let layout = Arguments::new(by, of_all, &all, builder.cx)?;
    let width = builder.width();
    let group = Group::new(input, by, layout, aggregates, width, builder.cx);
    Ok(Box::new(group))
}

impl Group {
    fn new(
        input: Input,
        by: &[Var],
        layout: Arguments,
        aggregates: &[(Var, Aggregate)],
        width: usize,
        cx: &Context,
    ) -> Self {
        let columns = aggregates.iter().map(|(var, aggregate)| Aggregated {
            var: *var,
            aggregate: aggregate.clone(),
            late: None,
        });
        let columns: Vec<Aggregated> = columns.collect();
        Self {
            input,
            groups: Groups::new(by.len(), columns.iter().map(|column| &column.aggregate)),
            layout,
            by: by.to_vec(),
            columns,
            width,
            next: None,
            booked: cx.spilling(),
            fixed_bytes: 0,
            has_room: true,
            late: None,
            level: 0,
            parts: Vec::new(),
            aside: Vec::new(),
            whole: Vec::new(),
        }
    }

    /// Groups all rows of the input.
    fn consume(&mut self, cx: &Context) -> Result<(), ExecError> {
        while let Some(sent) = self.input.next(&mut self.layout, cx)? {
            cx.check()?;
            match sent {
                Sent::Arguments(arguments) => self.add(&arguments, cx)?,
                Sent::Groups(groups, booked) => self.merge(groups, booked, cx)?,
                Sent::Whole(groups, booked) => self.whole.push((groups, booked)),
            }
        }
        if self.by.is_empty() {
            // Without keys there is one group, of no rows too.
            self.groups.insert_whole();
        }
        self.end_of_rows(cx)
    }

    /// Groups the rows of the next part; false if there is none.
    fn consume_part(&mut self, cx: &Context) -> Result<bool, ExecError> {
        if let Some(late) = self.late.take() {
            let parts = late.finish()?.into_iter();
            let parts = parts.filter(|part| part.rows() > 0);
            self.parts.extend(parts.map(|part| (part, self.level + 1)));
        }
        let Some((part, level)) = self.parts.pop() else {
            return Ok(self.take_whole(cx)? || self.take_aside(cx)?);
        };
        self.level = level;
        self.forget(cx)?;
        let mut reader = part.into_reader();
        while let Some(arguments) = reader.next(cx)? {
            self.add(&arguments, cx)?;
        }
        self.end_of_rows(cx)?;
        Ok(true)
    }

    /// Goes on with groups that have all of their rows; false if there are none.
    fn take_whole(&mut self, cx: &Context) -> Result<bool, ExecError> {
        let Some((groups, booked)) = self.whole.pop() else {
            return Ok(false);
        };
        self.forget(cx)?;
        self.groups = groups;
        self.booked.absorb(booked);
        self.end_of_rows(cx)?;
        Ok(true)
    }

    /// Goes on with groups aside whose keys no rows have that are not in them; false if there are none.
    fn take_aside(&mut self, cx: &Context) -> Result<bool, ExecError> {
        while let Some(last) = self.aside.last_mut() {
            match last.take_some(table::batch_rows(self.width)) {
                None => drop(self.aside.pop()),
                Some(groups) => {
                    self.forget(cx)?;
                    self.groups = groups;
                    self.end_of_rows(cx)?;
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Lets go of the groups that were handed over.
    fn forget(&mut self, cx: &Context) -> Result<(), ExecError> {
        let bytes = self.groups.bytes();
        let aggregates = self.columns.iter().map(|column| &column.aggregate);
        let fresh = Groups::new(self.by.len(), aggregates);
        discard(std::mem::replace(&mut self.groups, fresh), bytes);
        cx.room(&mut self.booked, 0)?;
        Ok(())
    }

    fn add(&mut self, arguments: &Table, cx: &Context) -> Result<(), ExecError> {
        self.groups.follow_order(cx)?;
        // Each part brings some groups at least: those of its first batch.
        if self.late.is_none() && !self.may_grow(arguments.rows(), cx)? && self.groups.len() > 0 {
            self.put_off_new(cx)?;
        }
        if self.late.is_none() {
            let groups = self.groups.of_rows(arguments, &self.layout);
            self.groups.accumulate(arguments, &groups, &self.layout, cx);
        } else {
            self.add_known(arguments, cx)?;
            self.put_off_values(cx)?;
        }
        self.book(cx)?;
        if self.late.is_none() && !self.has_room {
            self.put_off_new(cx)?;
        }
        Ok(())
    }

    /// Adds the rows of groups that are there; the other rows are put off.
    fn add_known(&mut self, arguments: &Table, cx: &Context) -> Result<(), ExecError> {
        let known = self.groups.known(arguments, &self.layout);
        if known.others.is_empty() {
            self.groups
                .accumulate(arguments, &known.groups, &self.layout, cx);
            return Ok(());
        }
        if let Some(late) = &mut self.late {
            let keys: Vec<Var> = (0..self.by.len()).map(|place| Var(place as u16)).collect();
            let mut key = Vec::with_capacity(keys.len());
            late.push(arguments, known.others.into_iter(), |row| {
                push_values(&keys, arguments, row, &mut key);
                hash_row(&key)
            })?;
        }
        let all: VarSet = arguments.bound().collect();
        let rows = arguments.gather(&known.rows, &all);
        self.groups
            .accumulate(&rows, &known.groups, &self.layout, cx);
        Ok(())
    }

    /// Puts the groups of a thread together with those that are there.
    fn merge(&mut self, groups: Groups, booked: Booked, cx: &Context) -> Result<(), ExecError> {
        if self.late.is_none() && self.groups.len() == 0 {
            self.groups = groups;
            self.booked.absorb(booked);
            self.groups.follow_order(cx)?;
        } else if self.late.is_none() && self.may_grow(groups.size(), cx)? {
            self.groups.merge(groups, cx)?;
        } else {
            if self.late.is_none() {
                self.put_off_new(cx)?;
            }
            self.aside.push(Aside {
                taken: vec![false; groups.len()],
                groups,
                first: 0,
                _booked: booked,
            });
            return Ok(());
        }
        self.book(cx)?;
        if !self.has_room {
            self.put_off_new(cx)?;
        }
        Ok(())
    }

    /// Adds the groups aside whose keys are those of groups in memory: what these lack of their rows.
    fn merge_aside(&mut self, cx: &Context) -> Result<(), ExecError> {
        for aside in &mut self.aside {
            let shared = aside.take_shared(&self.groups);
            self.groups.merge(shared, cx)?;
        }
        if !self.aside.is_empty() {
            self.put_off_values(cx)?;
            self.book(cx)?;
        }
        Ok(())
    }

    /// Books what is held, and a rest for texts that grow in groups that are there when nothing
    /// new may be kept any more.
    fn book(&mut self, cx: &Context) -> Result<(), ExecError> {
        let bytes = self.groups.bytes();
        if self.late.is_none() {
            self.has_room = cx.room(&mut self.booked, bytes + rest(bytes, cx))?;
            self.fixed_bytes = bytes;
        } else if bytes > self.fixed_bytes + rest(self.fixed_bytes, cx)
            && !cx.room(&mut self.booked, bytes)?
        {
            // Texts must be held to be handed over.
            return Err(cx.memory_exceeded());
        }
        Ok(())
    }

    fn may_grow(&mut self, rows: usize, cx: &Context) -> Result<bool, ExecError> {
        let bytes = self.groups.bytes_with(rows);
        Ok(!self.groups.is_full(rows) && cx.room(&mut self.booked, bytes + rest(bytes, cx))?)
    }

    /// From here on nothing new is kept in memory.
    fn put_off_new(&mut self, cx: &Context) -> Result<(), ExecError> {
        if self.level >= MOST_LEVELS {
            return Err(cx.memory_exceeded());
        }
        let rows = batch_rows(cx, self.layout.width());
        self.late = Some(Partitions::new(cx, self.level, rows)?);
        for state in self.groups.states() {
            state.put_off_new();
        }
        Ok(())
    }

    /// Writes the values and solutions that DISTINCT has not seen.
    fn put_off_values(&mut self, cx: &Context) -> Result<(), ExecError> {
        for (column, state) in self.columns.iter_mut().zip(self.groups.states()) {
            let Some(values) = state.take_put_off() else {
                continue;
            };
            let late = match &mut column.late {
                Some(late) => late,
                None => {
                    let vars = (0..values.width()).map(|place| Var(place as u16));
                    let late = column.late.insert(Dedup::new(vars.collect(), cx));
                    late.put_off(&values, cx)?;
                    late
                }
            };
            late.fresh(&values, cx)?;
        }
        Ok(())
    }

    /// All rows are in: what DISTINCT has put off is added now.
    fn end_of_rows(&mut self, cx: &Context) -> Result<(), ExecError> {
        self.groups.follow_order(cx)?;
        self.merge_aside(cx)?;
        for number in 0..self.columns.len() {
            let count = self.groups.len();
            let state = &mut self.groups.states()[number];
            state.grow(count);
            if let Some(seen) = state.take_seen() {
                let bytes = seen.bytes();
                discard(seen, bytes);
            }
            let Some(mut late) = self.columns[number].late.take() else {
                continue;
            };
            while let Some(values) = late.next_late(cx)? {
                self.add_late(number, &values, cx);
                self.book(cx)?;
            }
        }
        // Nothing grows any more: the rest is given back, as others may need it, and as what is
        // booked tells how long all of this takes to free.
        let bytes = self.groups.bytes();
        cx.room(&mut self.booked, bytes)?;
        self.next = Some(0);
        Ok(())
    }

    /// Adds values or solutions to an aggregate that it has not seen.
    fn add_late(&mut self, number: usize, values: &Table, cx: &Context) {
        let Some(Column::Numbers(groups)) = values.of_any_kind(Var(0)) else {
            panic!("what was put off says of which group it is");
        };
        let operand = &self.layout.operands()[number];
        let state = &mut self.groups.states()[number];
        for (row, group) in groups.iter().enumerate() {
            let group = *group as usize;
            match operand {
                Operand::Solutions => state.add_new_solution(group),
                Operand::Rows | Operand::Values(_) => {
                    state.add_new(group, values.value(Var(1), row), &cx.expressions);
                }
            }
        }
    }

    /// Some of the groups.
    fn hand_over(&mut self, from: usize, to: usize, cx: &Context) -> Result<Table, ExecError> {
        let mut table = Table::with_rows(self.width, to - from);
        for (place, var) in self.by.iter().enumerate() {
            let key = |group| self.groups.key(group)[place];
            table.set(*var, (from..to).map(key).collect());
        }
        for (column, state) in self.columns.iter().zip(self.groups.states()) {
            let mut values = Vec::with_capacity(to - from);
            for group in from..to {
                if group.is_multiple_of(GROUPS_AT_ONCE) {
                    cx.check()?;
                    cx.check_computed()?;
                }
                values.push(state.finish(group, &cx.expressions));
            }
            table.set(column.var, values);
        }
        Ok(table)
    }
}

/// Bytes that are left to texts of the groups that are there when nothing new may be kept: no more than
/// these take, so that a few groups hold nothing of what all queries share.
fn rest(bytes: usize, cx: &Context) -> usize {
    bytes.min(cx.space().own_bytes() / 2)
}

impl Operator for Group {
    fn produce(&mut self, cx: &Context) -> Result<Option<Table>, ExecError> {
        cx.check()?;
        if self.next.is_none() {
            self.consume(cx)?;
        }
        loop {
            let from = self.next.unwrap_or(0);
            let to = self.groups.len().min(from + table::batch_rows(self.width));
            if from < to {
                self.next = Some(to);
                return self.hand_over(from, to, cx).map(Some);
            }
            if !self.consume_part(cx)? {
                return Ok(None);
            }
        }
    }
}

#[cfg(test)]
mod tests;

/// Groups the rows of an operator by a `COUNT(*)`, `DISTINCT` or not.
#[cfg(test)]
pub(super) fn of_tables(
    input: Boxed,
    by: &[Var],
    (var, aggregate): (Var, Aggregate),
    variables: &[Var],
    cx: &Context,
) -> Boxed {
    let layout = Arguments::new(by, [&aggregate].into_iter(), variables, cx);
    let layout = layout.expect("it counts rows");
    let width = variables.len() + 1;
    let input = Input::Rows(input);
    Box::new(Group::new(
        input,
        by,
        layout,
        &[(var, aggregate)],
        width,
        cx,
    ))
}
