//! Groups in memory: their keys, and the state of each aggregate.

use jindou_model::TermId;
use jindou_plan::expression::Aggregate;
use jindou_plan::physical::Var;

use super::arguments::{Arguments, Operand};
use crate::ExecError;
use crate::context::Context;
use crate::expr::GroupedAccumulator;
use crate::rows::RowSet;
use crate::spill::push_values;
use crate::table::Table;

/// Groups that are merged between two looks at the clock.
const MERGED_AT_ONCE: usize = 1 << 12;

/// The groups of some rows.
pub(super) struct Groups {
    keys: RowSet,
    /// One for each aggregate.
    states: Vec<GroupedAccumulator>,
}

/// Which rows are of groups that are there, and their groups; and which are not.
#[derive(Default)]
pub(super) struct Known {
    pub(super) rows: Vec<u32>,
    pub(super) groups: Vec<u32>,
    pub(super) others: Vec<u32>,
}

impl Groups {
    pub(super) fn new<'a>(keys: usize, aggregates: impl Iterator<Item = &'a Aggregate>) -> Self {
        Self {
            keys: RowSet::new(keys),
            states: aggregates.map(GroupedAccumulator::new).collect(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.keys.len()
    }

    /// The key of a group.
    pub(super) fn key(&self, group: usize) -> &[TermId] {
        self.keys.row(group)
    }

    pub(super) fn states(&mut self) -> &mut [GroupedAccumulator] {
        &mut self.states
    }

    /// The one group that there is without keys, also of no rows.
    pub(super) fn insert_whole(&mut self) {
        self.keys.insert(&[]);
    }

    pub(super) fn bytes(&self) -> usize {
        let states = self.states.iter().map(GroupedAccumulator::bytes);
        self.keys.bytes() + states.sum::<usize>()
    }

    /// Bytes at most after so many more rows, each perhaps of a group of its own.
    pub(super) fn bytes_with(&self, rows: usize) -> usize {
        let groups = self.keys.len();
        let states = self.states.iter().map(|s| s.bytes_with(groups, rows));
        self.keys.bytes_with(rows) + states.sum::<usize>()
    }

    /// True if the groups of so many more rows could not be numbered.
    pub(super) fn is_full(&self, rows: usize) -> bool {
        self.keys.is_full(rows)
    }

    /// What it takes to merge this: groups, or distinct values of one aggregate if these are more.
    pub(super) fn size(&self) -> usize {
        let values = self.states.iter().map(GroupedAccumulator::distinct_values);
        values.fold(self.keys.len(), usize::max)
    }

    /// MIN and MAX go by the order of texts that is known now.
    pub(super) fn follow_order(&mut self, cx: &Context) -> Result<(), ExecError> {
        let mut ordered = self.states.iter_mut().filter(|s| s.has_order()).peekable();
        if ordered.peek().is_some() {
            let order = cx.text_order()?;
            ordered.for_each(|state| state.use_order(&order, &cx.expressions));
        }
        Ok(())
    }

    /// The group of each row, new or known.
    pub(super) fn of_rows(&mut self, arguments: &Table, layout: &Arguments) -> Vec<u32> {
        let keys = layout.keys();
        if keys == 0 {
            self.insert_whole();
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
                        *group.insert(self.keys.insert(&last).0 as u32)
                    }
                }
            })
            .collect()
    }

    /// Which rows are of groups that are there.
    pub(super) fn known(&self, arguments: &Table, layout: &Arguments) -> Known {
        let keys: Vec<Var> = (0..layout.keys()).map(|place| Var(place as u16)).collect();
        let mut known = Known::default();
        let mut key = Vec::with_capacity(keys.len());
        for row in 0..arguments.rows() {
            push_values(&keys, arguments, row, &mut key);
            match self.keys.find(&key) {
                Some(group) => {
                    known.rows.push(row as u32);
                    known.groups.push(group as u32);
                }
                None => known.others.push(row as u32),
            }
        }
        known
    }

    /// Adds rows to their groups.
    pub(super) fn accumulate(
        &mut self,
        arguments: &Table,
        groups: &[u32],
        layout: &Arguments,
        cx: &Context,
    ) {
        let count = self.keys.len();
        let counts = layout.counts(arguments);
        for (number, operand) in layout.operands().iter().enumerate() {
            let state = &mut self.states[number];
            state.grow(count);
            match operand {
                Operand::Rows => match counts {
                    Some(counts) => state.add_counted_rows(groups, counts),
                    None => state.add_rows(groups),
                },
                Operand::Values(_) => {
                    match (arguments.get(layout.place_of_operand(number)), counts) {
                        (Some(values), None) => state.add_column(values, groups, &cx.expressions),
                        (Some(values), Some(counts)) => {
                            state.add_counted_column(values, groups, counts, &cx.expressions);
                        }
                        // From disk, where all values are errors.
                        (None, _) => groups.iter().for_each(|group| {
                            state.add(*group as usize, TermId::NONE, &cx.expressions);
                        }),
                    }
                }
                Operand::Solutions => {
                    let variables = layout.places_of_variables();
                    let mut solution = Vec::with_capacity(variables.len());
                    for (row, group) in groups.iter().enumerate() {
                        push_values(&variables, arguments, row, &mut solution);
                        state.add_solution(*group as usize, &solution);
                    }
                }
            }
        }
    }

    /// Adds the groups of other rows.
    pub(super) fn merge(&mut self, mut other: Self, cx: &Context) -> Result<(), ExecError> {
        self.follow_order(cx)?;
        let all: Vec<u32> = (0..other.len() as u32).collect();
        if all.len() <= MERGED_AT_ONCE {
            return self.merge_few(other, cx);
        }
        for some in all.chunks(MERGED_AT_ONCE) {
            let some = other.take(some);
            self.merge_few(some, cx)?;
        }
        Ok(())
    }

    fn merge_few(&mut self, other: Self, cx: &Context) -> Result<(), ExecError> {
        cx.check()?;
        let groups = (0..other.len()).map(|group| self.keys.insert(other.key(group)).0 as u32);
        let groups: Vec<u32> = groups.collect();
        for (ours, theirs) in self.states.iter_mut().zip(other.states) {
            ours.grow(self.keys.len());
            ours.merge(theirs, &groups, &cx.expressions);
        }
        Ok(())
    }

    /// The groups from `from` on whose keys these groups have, too: so many at most.
    pub(super) fn shared_with(&self, other: &Self, from: usize) -> Vec<u32> {
        let groups = from..self.len();
        let is_shared = |group: &usize| other.keys.find(self.key(*group)).is_some();
        groups.filter(is_shared).map(|group| group as u32).collect()
    }

    /// Takes the states of some groups away, the keys of which stay.
    pub(super) fn take(&mut self, groups: &[u32]) -> Self {
        let first = self.key(0).len();
        let mut keys = RowSet::new(first);
        for group in groups {
            keys.insert(self.keys.row(*group as usize));
        }
        let states = self.states.iter_mut();
        Self {
            keys,
            states: states.map(|state| state.take_groups(groups)).collect(),
        }
    }
}
