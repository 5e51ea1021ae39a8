//! GROUP BY: one row for each combination of keys, with its aggregates.
//!
//! Once the memory is used up nothing new is kept in it: rows of groups that are not there go to
//! disk, put into parts by their keys, and so do values that DISTINCT has not seen in the groups
//! that are there. Groups in memory are handed over first, then each part is grouped likewise.

use jindou_model::TermId;
use jindou_plan::expression::Aggregate;
use jindou_plan::physical::{Node, Var};

use super::dedup::Dedup;
use crate::ExecError;
use crate::context::{Booked, Context};
use crate::discard::discard;
use crate::expr::{CompiledExpression, Evaluator, GroupedAccumulator};
use crate::operator::{Boxed, Builder, Operator};
use crate::rows::{RowSet, hash_row};
use crate::spill::{MOST_LEVELS, Partitions, Run, batch_rows, push_values};
use crate::steps::compile;
use crate::table::{self, Column, Table, VarSet};

/// Groups that are finished between two looks at the clock.
const GROUPS_AT_ONCE: usize = 64;

/// What an aggregate is computed over.
enum Operand {
    /// `COUNT(*)`.
    Rows,
    /// `COUNT(DISTINCT *)`.
    Solutions,
    /// An expression.
    Values(Box<Evaluator>),
}

struct Aggregated {
    var: Var,
    operand: Operand,
    aggregate: Aggregate,
    accumulator: GroupedAccumulator,
    /// Values and solutions of which it is not known whether DISTINCT has seen them.
    late: Option<Dedup>,
}

/// Rows are looked at as *arguments*: a column for each key, then one for each aggregate's
/// operand, then all variables if solutions are told apart, then the number of rows that a row stands
/// for, if it may be several.
struct Group {
    input: Boxed,
    by: Vec<Var>,
    /// All variables of the plan, for `COUNT(DISTINCT *)`.
    variables: Vec<Var>,
    columns: Vec<Aggregated>,
    groups: RowSet,
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
    let mut columns = Vec::with_capacity(aggregates.len());
    let mut variables = Vec::new();
    for (var, aggregate) in aggregates {
        let operand = match (&aggregate.operand, aggregate.distinct) {
            (Some(expression), _) => {
                expression.for_each_variable(&mut |var| needed.insert(var));
                let compiled: CompiledExpression = compile(expression, builder.cx)?;
                Operand::Values(Box::new(compiled.evaluator()))
            }
            (None, false) => Operand::Rows,
            (None, true) => {
                needed.extend(all.iter().copied());
                variables.clone_from(&all);
                Operand::Solutions
            }
        };
        columns.push(Aggregated {
            var: *var,
            operand,
            accumulator: GroupedAccumulator::new(aggregate),
            aggregate: aggregate.clone(),
            late: None,
        });
    }
    let input = if aggregates
        .iter()
        .all(|(_, aggregate)| aggregate.takes_counted_rows())
    {
        builder.counted_node(input, &needed)?
    } else {
        builder.node(input, &needed)?
    };
    let width = builder.width();
    Ok(Box::new(Group::new(
        input, by, variables, columns, width, builder.cx,
    )))
}

impl Group {
    fn new(
        input: Boxed,
        by: &[Var],
        variables: Vec<Var>,
        columns: Vec<Aggregated>,
        width: usize,
        cx: &Context,
    ) -> Self {
        Self {
            input,
            by: by.to_vec(),
            variables,
            columns,
            groups: RowSet::new(by.len()),
            width,
            next: None,
            booked: cx.spilling(),
            fixed_bytes: 0,
            has_room: true,
            late: None,
            level: 0,
            parts: Vec::new(),
        }
    }

    /// Groups all rows of the input.
    fn consume(&mut self, cx: &Context) -> Result<(), ExecError> {
        if self.by.is_empty() {
            // Without keys there is one group, of no rows too.
            self.groups.insert(&[]);
        }
        while let Some(table) = self.input.next(cx)? {
            cx.check()?;
            let arguments = self.arguments(table, cx);
            self.add(arguments, cx)?;
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
            return Ok(false);
        };
        self.level = level;
        self.forget(cx)?;
        let mut reader = part.into_reader();
        while let Some(arguments) = reader.next(cx)? {
            self.add(arguments, cx)?;
        }
        self.end_of_rows(cx)?;
        Ok(true)
    }

    /// Lets go of the groups that were handed over.
    fn forget(&mut self, cx: &Context) -> Result<(), ExecError> {
        let bytes = self.bytes();
        let groups = std::mem::replace(&mut self.groups, RowSet::new(self.by.len()));
        let fresh = |column: &mut Aggregated| {
            let new = GroupedAccumulator::new(&column.aggregate);
            std::mem::replace(&mut column.accumulator, new)
        };
        let accumulators: Vec<GroupedAccumulator> = self.columns.iter_mut().map(fresh).collect();
        discard((groups, accumulators), bytes);
        cx.room(&mut self.booked, 0)?;
        Ok(())
    }

    /// The last column of arguments.
    fn place_of_counts(&self) -> Var {
        Var((self.by.len() + self.columns.len() + self.variables.len()) as u16)
    }

    /// What the aggregates look at in each row.
    fn arguments(&mut self, mut table: Table, cx: &Context) -> Table {
        let place_of_counts = self.place_of_counts();
        let width = usize::from(place_of_counts.0) + 1;
        let mut arguments = Table::with_rows(width, table.rows());
        if let Some(counts) = table.take_counts() {
            arguments.set_column(place_of_counts, counts);
        }
        let mut place = Var(self.by.len() as u16);
        for column in &mut self.columns {
            if let Operand::Values(evaluator) = &mut column.operand {
                let mut values = Vec::new();
                evaluator.evaluate_column(&table, table.rows(), &cx.expressions, &mut values);
                arguments.set(place, values);
            }
            place.0 += 1;
        }
        for var in &self.variables {
            if let Some(column) = table.get(*var) {
                arguments.set(place, column.to_vec());
            }
            place.0 += 1;
        }
        for (place, var) in self.by.iter().enumerate() {
            let column = if self.by[place + 1..].contains(var) {
                table.get(*var).map(<[TermId]>::to_vec)
            } else {
                table.take(*var)
            };
            if let Some(column) = column {
                arguments.set(Var(place as u16), column);
            }
        }
        arguments
    }

    fn add(&mut self, arguments: Table, cx: &Context) -> Result<(), ExecError> {
        self.follow_order(cx)?;
        // Each part brings some groups at least: those of its first batch.
        if self.late.is_none() && !self.may_grow(arguments.rows(), cx)? && self.groups.len() > 0 {
            self.put_off_new(&arguments, cx)?;
        }
        if self.late.is_none() {
            let groups = group_rows(&mut self.groups, self.by.len(), &arguments);
            self.accumulate(&arguments, &groups, cx);
        } else {
            let (known, groups) = self.split(&arguments)?;
            if known.len() == arguments.rows() {
                self.accumulate(&arguments, &groups, cx);
            } else {
                let all: VarSet = arguments.bound().collect();
                self.accumulate(&arguments.gather(&known, &all), &groups, cx);
            }
            self.put_off_values(cx)?;
        }
        self.book(cx)?;
        if self.late.is_none() && !self.has_room {
            self.put_off_new(&arguments, cx)?;
        }
        Ok(())
    }

    /// MIN and MAX go by the order of texts that is known now.
    fn follow_order(&mut self, cx: &Context) -> Result<(), ExecError> {
        let accumulators = self.columns.iter_mut().map(|c| &mut c.accumulator);
        let mut ordered = accumulators.filter(|a| a.has_order()).peekable();
        if ordered.peek().is_some() {
            let order = cx.text_order()?;
            ordered.for_each(|accumulator| accumulator.use_order(&order, &cx.expressions));
        }
        Ok(())
    }

    /// Books what is held, and a rest for texts that grow in groups that are there when nothing
    /// new may be kept any more.
    fn book(&mut self, cx: &Context) -> Result<(), ExecError> {
        let bytes = self.bytes();
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
        let groups = self.groups.len();
        let columns = self.columns.iter();
        let states = columns.map(|c| c.accumulator.bytes_with(groups, rows));
        let bytes = self.groups.bytes_with(rows) + states.sum::<usize>();
        Ok(!self.groups.is_full(rows) && cx.room(&mut self.booked, bytes + rest(bytes, cx))?)
    }

    fn bytes(&self) -> usize {
        let states = self.columns.iter().map(|c| c.accumulator.bytes());
        self.groups.bytes() + states.sum::<usize>()
    }

    /// From here on nothing new is kept in memory.
    fn put_off_new(&mut self, arguments: &Table, cx: &Context) -> Result<(), ExecError> {
        if self.level >= MOST_LEVELS {
            return Err(cx.memory_exceeded());
        }
        let rows = batch_rows(cx, arguments.width());
        self.late = Some(Partitions::new(cx, self.level, rows)?);
        for column in &mut self.columns {
            column.accumulator.put_off_new();
        }
        Ok(())
    }

    /// The rows of groups that are there, and their groups; the other rows are put off.
    fn split(&mut self, arguments: &Table) -> Result<(Vec<u32>, Vec<u32>), ExecError> {
        let keys: Vec<Var> = (0..self.by.len()).map(|place| Var(place as u16)).collect();
        let (mut known, mut groups, mut others) = (Vec::new(), Vec::new(), Vec::new());
        let mut key = Vec::with_capacity(keys.len());
        for row in 0..arguments.rows() {
            push_values(&keys, arguments, row, &mut key);
            match self.groups.find(&key) {
                Some(group) => {
                    known.push(row as u32);
                    groups.push(group as u32);
                }
                None => others.push(row as u32),
            }
        }
        if let Some(late) = &mut self.late {
            late.push(arguments, others.into_iter(), |row| {
                push_values(&keys, arguments, row, &mut key);
                hash_row(&key)
            })?;
        }
        Ok((known, groups))
    }

    fn accumulate(&mut self, arguments: &Table, groups: &[u32], cx: &Context) {
        let (by, count) = (self.by.len(), self.groups.len());
        let first_variable = by + self.columns.len();
        let counts = match arguments.of_any_kind(self.place_of_counts()) {
            Some(Column::Counts(counts)) => Some(counts.as_slice()),
            _ => None,
        };
        for (number, column) in self.columns.iter_mut().enumerate() {
            let accumulator = &mut column.accumulator;
            accumulator.grow(count);
            match &column.operand {
                Operand::Rows => match counts {
                    Some(counts) => accumulator.add_counted_rows(groups, counts),
                    None => accumulator.add_rows(groups),
                },
                Operand::Values(_) => match (arguments.get(Var((by + number) as u16)), counts) {
                    (Some(values), None) => {
                        accumulator.add_column(values, groups, &cx.expressions);
                    }
                    (Some(values), Some(counts)) => {
                        accumulator.add_counted_column(values, groups, counts, &cx.expressions);
                    }
                    // From disk, where all values are errors.
                    (None, _) => groups.iter().for_each(|group| {
                        accumulator.add(*group as usize, TermId::NONE, &cx.expressions);
                    }),
                },
                Operand::Solutions => {
                    let variables = first_variable..first_variable + self.variables.len();
                    let variables: Vec<Var> = variables.map(|place| Var(place as u16)).collect();
                    let mut solution = Vec::with_capacity(variables.len());
                    for (row, group) in groups.iter().enumerate() {
                        push_values(&variables, arguments, row, &mut solution);
                        accumulator.add_solution(*group as usize, &solution);
                    }
                }
            }
        }
    }

    /// Writes the values and solutions that DISTINCT has not seen.
    fn put_off_values(&mut self, cx: &Context) -> Result<(), ExecError> {
        for column in &mut self.columns {
            let Some(values) = column.accumulator.take_put_off() else {
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
        self.follow_order(cx)?;
        for number in 0..self.columns.len() {
            let column = &mut self.columns[number];
            column.accumulator.grow(self.groups.len());
            if let Some(seen) = column.accumulator.take_seen() {
                let bytes = seen.bytes();
                discard(seen, bytes);
            }
            let Some(mut late) = self.columns[number].late.take() else {
                continue;
            };
            while let Some(values) = late.next_late(cx)? {
                let column = &mut self.columns[number];
                let Some(Column::Numbers(groups)) = values.of_any_kind(Var(0)) else {
                    panic!("what was put off says of which group it is");
                };
                for (row, group) in groups.iter().enumerate() {
                    let group = *group as usize;
                    match column.operand {
                        Operand::Solutions => column.accumulator.add_new_solution(group),
                        Operand::Rows | Operand::Values(_) => {
                            let id = values.value(Var(1), row);
                            column.accumulator.add_new(group, id, &cx.expressions);
                        }
                    }
                }
                self.book(cx)?;
            }
        }
        // Nothing grows any more: the rest is given back, as others may need it, and as what is
        // booked tells how long all of this takes to free.
        let bytes = self.bytes();
        cx.room(&mut self.booked, bytes)?;
        self.next = Some(0);
        Ok(())
    }

    /// Some of the groups.
    fn hand_over(&mut self, from: usize, to: usize, cx: &Context) -> Result<Table, ExecError> {
        let mut table = Table::with_rows(self.width, to - from);
        for (place, var) in self.by.iter().enumerate() {
            let key = |group| self.groups.row(group)[place];
            table.set(*var, (from..to).map(key).collect());
        }
        for column in &mut self.columns {
            let mut values = Vec::with_capacity(to - from);
            for group in from..to {
                if group.is_multiple_of(GROUPS_AT_ONCE) {
                    cx.check()?;
                    cx.check_computed()?;
                }
                values.push(column.accumulator.finish(group, &cx.expressions));
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

/// The group of each row.
fn group_rows(groups: &mut RowSet, keys: usize, arguments: &Table) -> Vec<u32> {
    if keys == 0 {
        return vec![0; arguments.rows()];
    }
    let columns: Vec<Option<&[TermId]>> = (0..keys)
        .map(|place| arguments.get(Var(place as u16)))
        .collect();
    let mut key = Vec::with_capacity(keys);
    // The key before, and its group.
    let (mut last, mut group) = (Vec::with_capacity(keys), None);
    (0..arguments.rows())
        .map(|row| {
            key.clear();
            key.extend(columns.iter().map(|c| c.map_or(TermId::NONE, |c| c[row])));
            match group {
                // Exploration mostly gives rows of one key in a run.
                Some(same) if last == key => same,
                _ => {
                    std::mem::swap(&mut last, &mut key);
                    *group.insert(groups.insert(&last).0 as u32)
                }
            }
        })
        .collect()
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

/// Groups the rows of an operator by a `COUNT(*)`, `DISTINCT` or not.
#[cfg(test)]
pub(super) fn of_tables(
    input: Boxed,
    by: &[Var],
    (var, aggregate): (Var, Aggregate),
    variables: &[Var],
    cx: &Context,
) -> Boxed {
    let operand = if aggregate.distinct {
        Operand::Solutions
    } else {
        Operand::Rows
    };
    let column = Aggregated {
        var,
        operand,
        accumulator: GroupedAccumulator::new(&aggregate),
        aggregate,
        late: None,
    };
    let width = variables.len() + 1;
    let columns = vec![column];
    Box::new(Group::new(
        input,
        by,
        variables.to_vec(),
        columns,
        width,
        cx,
    ))
}
