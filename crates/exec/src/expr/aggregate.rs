//! What do the aggregates of GROUP BY give for their groups (SPARQL 1.1, section 18.5.1)?

use jindou_model::{TermId, inline};
use jindou_plan::expression::{Aggregate, AggregateFunction, Arithmetic};
use jindou_plan::physical::Var;
use oxsdatatypes::{Decimal, Double, Float, Integer};
use rustc_hash::FxHashSet;

use super::concat::{Concat, TextCache};
use super::exact::Exact;
use super::extreme::Extreme;
use super::large::Kind;
use super::numeric::{self, Number};
use super::order_run::RunOfEachKind;
use super::{Context, ExprError, OrderedTerms, Value, place_of};
use crate::rows::RowSet;
use crate::table::{Column, Table};
use crate::terms::{HeldBytes, QueryOrder};

/// One aggregate of all groups of one thread.
///
/// Its operand was made a column of ids, with [`TermId::NONE`] for errors. An error leaves SUM,
/// AVG, MIN, MAX and GROUP_CONCAT without a value; COUNT and SAMPLE pass over it.
#[derive(Debug)]
pub struct GroupedAccumulator {
    function: AggregateFunction,
    states: States,
    /// What the groups have seen, for DISTINCT.
    seen: Option<Seen>,
    /// Bytes that groups hold beyond the tables' own.
    held: usize,
    /// Of these, what is long and may not be booked yet.
    unbooked: Vec<HeldBytes>,
    /// For GROUP_CONCAT.
    texts: TextCache,
    /// For MIN and MAX.
    order: QueryOrder,
    /// The runs of the terms that it orders, where these are at other nodes.
    runs: RunOfEachKind,
    /// There was a term whose place does not tell the order of it and those before.
    is_by_texts: bool,
}

/// The state of each group.
#[derive(Debug)]
enum States {
    Count(Vec<u64>),
    /// SUM, and AVG with how many there were.
    Sum(Vec<(Sum, u64)>),
    Extreme(Vec<Extreme>),
    Sample(Vec<TermId>),
    Concat(Vec<Concat>),
}

/// Distinct values or solutions of the groups.
#[derive(Default)]
pub(crate) struct Seen {
    /// Values, by group.
    values: Vec<ValueSet>,
    /// The group, then the solution; made once it is known how long that is.
    solutions: Option<RowSet>,
    row: Vec<TermId>,
    /// Nothing may be added any more: what is not there is put off, row after row.
    put_off: Option<Vec<TermId>>,
    /// Distinct values of all groups.
    count: usize,
}

/// Bytes of one distinct value, with the room that a set keeps free.
const VALUE_BYTES: usize = 2 * size_of::<TermId>() + 2;

impl std::fmt::Debug for Seen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Seen").field("count", &self.count).finish()
    }
}

impl Seen {
    /// True if a group has not seen a value; where new ones are put off, none is new.
    #[inline]
    fn is_new(&mut self, group: usize, id: TermId) -> bool {
        let Some(put_off) = &mut self.put_off else {
            let is_new = self.values[group].insert(id);
            self.count += usize::from(is_new);
            return is_new;
        };
        if !self.values[group].contains(id) {
            put_off.extend([group_id(group), id]);
        }
        false
    }

    /// The same for solutions.
    fn is_new_solution(&mut self, group: usize, solution: &[TermId]) -> bool {
        self.row.clear();
        self.row.push(group_id(group));
        self.row.extend_from_slice(solution);
        let length = self.row.len();
        let rows = self.solutions.get_or_insert_with(|| RowSet::new(length));
        let Some(put_off) = &mut self.put_off else {
            return rows.insert(&self.row).1;
        };
        if rows.find(&self.row).is_none() {
            put_off.extend_from_slice(&self.row);
        }
        false
    }

    /// Ids of a row that is put off.
    fn width(&self) -> usize {
        // A group and a value, if it is no solution.
        self.solutions.as_ref().map_or(2, |_| self.row.len())
    }

    pub(crate) fn bytes(&self) -> usize {
        let solutions = self.solutions.as_ref().map_or(0, RowSet::bytes);
        let groups = self.values.capacity() * size_of::<ValueSet>();
        self.count * VALUE_BYTES + groups + solutions
    }

    /// Bytes at most after so many more values or solutions, each perhaps of another group.
    fn bytes_with(&self, rows: usize) -> usize {
        let groups = match self.values.len() + rows {
            needed if needed > self.values.capacity() => needed.max(2 * self.values.capacity()),
            _ => 0,
        };
        let solutions = self.solutions.as_ref();
        let solutions = solutions.map_or(0, |set| set.bytes_with(rows) - set.bytes());
        self.bytes() + rows * VALUE_BYTES + groups * size_of::<ValueSet>() + solutions
    }
}

/// A group's number where ids are kept.
fn group_id(group: usize) -> TermId {
    TermId::from_raw(group as u64)
}

/// Distinct values. Many of them lie in several sets, so that none takes long to grow.
#[derive(Default)]
struct ValueSet {
    few: FxHashSet<TermId>,
    many: Option<Box<[FxHashSet<TermId>]>>,
}

/// Values that lie in one set at most.
const FEW: usize = 1 << 18;
/// Values that are merged between two looks at the clock.
const MERGED_AT_ONCE: usize = 1 << 16;
/// Sets of many values.
const SETS: usize = 64;

impl ValueSet {
    #[inline]
    fn insert(&mut self, id: TermId) -> bool {
        if let Some(many) = &mut self.many {
            return many[set_of(id)].insert(id);
        }
        let is_new = self.few.insert(id);
        if is_new && self.few.len() == FEW {
            let mut many = vec![FxHashSet::default(); SETS];
            for id in std::mem::take(&mut self.few) {
                many[set_of(id)].insert(id);
            }
            self.many = Some(many.into_boxed_slice());
        }
        is_new
    }

    fn contains(&self, id: TermId) -> bool {
        match &self.many {
            Some(many) => many[set_of(id)].contains(&id),
            None => self.few.contains(&id),
        }
    }

    fn len(&self) -> usize {
        let many = self.many.iter().flatten().map(FxHashSet::len);
        self.few.len() + many.sum::<usize>()
    }

    fn iter(&self) -> impl Iterator<Item = TermId> + '_ {
        let many = self.many.iter().flatten().flatten();
        self.few.iter().chain(many).copied()
    }
}

fn set_of(id: TermId) -> usize {
    let mixed = id.raw().wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> (u64::BITS - SETS.ilog2())) as usize
}

impl GroupedAccumulator {
    /// No groups yet.
    #[must_use]
    pub fn new(aggregate: &Aggregate) -> Self {
        let states = match aggregate.function {
            AggregateFunction::Count => States::Count(Vec::new()),
            AggregateFunction::Sum | AggregateFunction::Avg => States::Sum(Vec::new()),
            AggregateFunction::Min | AggregateFunction::Max => States::Extreme(Vec::new()),
            AggregateFunction::Sample => States::Sample(Vec::new()),
            AggregateFunction::GroupConcat(_) => States::Concat(Vec::new()),
        };
        Self {
            function: aggregate.function.clone(),
            states,
            seen: aggregate.distinct.then(Seen::default),
            held: 0,
            unbooked: Vec::new(),
            texts: TextCache::default(),
            order: QueryOrder::default(),
            runs: RunOfEachKind::default(),
            is_by_texts: false,
        }
    }

    /// Makes sure that the groups `0..groups` are there; new ones are empty.
    pub fn grow(&mut self, groups: usize) {
        fn grow<T: Default>(states: &mut Vec<T>, groups: usize) {
            if states.len() < groups {
                states.resize_with(groups, T::default);
            }
        }
        // What was added before is booked by now.
        self.unbooked.clear();
        match &mut self.states {
            States::Count(states) => grow(states, groups),
            States::Sum(states) => grow(states, groups),
            States::Extreme(states) => grow(states, groups),
            States::Sample(states) => grow(states, groups),
            States::Concat(states) => grow(states, groups),
        }
        if let Some(seen) = &mut self.seen {
            grow(&mut seen.values, groups);
        }
    }

    /// True if it goes by the order of terms.
    pub(crate) fn has_order(&self) -> bool {
        matches!(self.states, States::Extreme(_))
    }

    /// Goes by an order of texts from now on.
    pub(crate) fn use_order(&mut self, order: &QueryOrder, cx: &Context) {
        if self.order.is_same(order) {
            return;
        }
        self.order = order.clone();
        self.runs = RunOfEachKind::default();
        let terms = ordered_terms(&self.order, cx);
        if let States::Extreme(extremes) = &mut self.states {
            for extreme in extremes {
                let before = extreme.bytes();
                extreme.place_by(terms);
                self.held = self.held + extreme.bytes() - before;
            }
        }
    }

    /// Adds the operand's value of each row to the group of that row.
    ///
    /// # Panics
    /// If the columns differ in length or a group is not there (see
    /// [`GroupedAccumulator::grow`]).
    pub fn add_column(&mut self, ids: &[TermId], group_of_row: &[u32], cx: &Context) {
        assert_eq!(
            ids.len(),
            group_of_row.len(),
            "each row has a value and a group"
        );
        self.expect(ids, cx);
        for (id, group) in ids.iter().zip(group_of_row) {
            self.add(*group as usize, *id, cx);
        }
    }

    /// Adds the operand's value of each row to the group of that row, as often as the row stands for.
    ///
    /// # Panics
    /// As [`GroupedAccumulator::add_column`], and if this is GROUP_CONCAT without DISTINCT.
    pub fn add_counted_column(
        &mut self,
        ids: &[TermId],
        group_of_row: &[u32],
        row_counts: &[u64],
        cx: &Context,
    ) {
        assert_eq!(
            (ids.len(), ids.len()),
            (group_of_row.len(), row_counts.len()),
            "each row has a value, a group and a count"
        );
        self.expect(ids, cx);
        for ((id, group), times) in ids.iter().zip(group_of_row).zip(row_counts) {
            let group = *group as usize;
            match (&mut self.states, &self.seen) {
                (States::Count(counts), None) => {
                    counts[group] += if id.is_none() { 0 } else { *times };
                }
                (States::Sum(sums), None) => {
                    let (sum, count) = &mut sums[group];
                    *count += times;
                    let more = sum.add_times(*id, *times, cx);
                    self.held += more;
                    self.count_growth(more, cx);
                }
                (States::Concat(_), None) => panic!("GROUP_CONCAT takes rows one by one"),
                // Repeats do not matter.
                _ => self.add(group, *id, cx),
            }
        }
    }

    /// Has the terms read together that are added one by one.
    fn expect(&mut self, ids: &[TermId], cx: &Context) {
        let are_read = match self.states {
            States::Sum(_) | States::Concat(_) => true,
            States::Extreme(_) => !cx.terms().are_here() && self.are_compared_by_texts(ids),
            States::Count(_) | States::Sample(_) => false,
        };
        if are_read {
            cx.terms().expect(ids.iter().copied());
        }
    }

    /// True if places do not tell the order of these terms and those that were added before.
    fn are_compared_by_texts(&mut self, ids: &[TermId]) -> bool {
        let is_placed = |id: &TermId| {
            let place = place_of(*id, &self.order);
            place.is_some_and(|place| self.runs.add(place))
        };
        self.is_by_texts |= !ids.iter().all(is_placed);
        self.is_by_texts
    }

    /// Adds one value to a group.
    ///
    /// # Panics
    /// If the group is not there.
    #[inline]
    pub fn add(&mut self, group: usize, id: TermId, cx: &Context) {
        if let Some(seen) = &mut self.seen
            && !id.is_none()
            && !seen.is_new(group, id)
        {
            return;
        }
        self.add_new(group, id, cx);
    }

    /// Adds a value that the group has not seen, where that matters.
    ///
    /// # Panics
    /// If the group is not there.
    #[inline]
    pub fn add_new(&mut self, group: usize, id: TermId, cx: &Context) {
        match &mut self.states {
            States::Count(counts) => counts[group] += u64::from(!id.is_none()),
            States::Sum(sums) => {
                let (sum, count) = &mut sums[group];
                *count += 1;
                if !sum.add_inline(id) {
                    let more = sum.add_slowly(id, cx);
                    self.held += more;
                    self.count_growth(more, cx);
                }
            }
            // Rows are not used any more.
            States::Extreme(_) | States::Concat(_) if cx.is_over() => {}
            States::Extreme(extremes) => {
                let greatest = self.function == AggregateFunction::Max;
                let terms = ordered_terms(&self.order, cx);
                let more = extremes[group].add(id, greatest, terms);
                self.held = self.held.saturating_add_signed(more);
                self.count_growth(more.try_into().unwrap_or(0), cx);
            }
            States::Sample(samples) => {
                if samples[group].is_none() {
                    samples[group] = id;
                }
            }
            States::Concat(texts) => {
                let AggregateFunction::GroupConcat(separator) = &self.function else {
                    unreachable!("only GROUP_CONCAT has such states");
                };
                let more = texts[group].add(id, separator, &mut self.texts, cx);
                self.held += more;
                self.count_growth(more, cx);
            }
        }
    }

    /// Counts what a batch adds if that is long: it is booked only after the batch, and each of
    /// its rows may add as much.
    fn count_growth(&mut self, bytes: usize, cx: &Context) {
        // Where the query must end, rows so far are not used.
        if let Ok(Some(held)) = cx.hold_text(bytes) {
            self.unbooked.push(held);
        }
    }

    /// For `COUNT(*)`: counts each row in its group.
    ///
    /// # Panics
    /// If this is another aggregate, or a group is not there.
    pub fn add_rows(&mut self, group_of_row: &[u32]) {
        let (States::Count(counts), None) = (&mut self.states, &self.seen) else {
            panic!("only COUNT(*) counts rows");
        };
        for group in group_of_row {
            counts[*group as usize] += 1;
        }
    }

    /// For `COUNT(*)`: counts rows that stand for several each.
    ///
    /// # Panics
    /// If this is another aggregate, or a group is not there.
    pub fn add_counted_rows(&mut self, group_of_row: &[u32], row_counts: &[u64]) {
        let (States::Count(counts), None) = (&mut self.states, &self.seen) else {
            panic!("only COUNT(*) counts rows");
        };
        for (group, count) in group_of_row.iter().zip(row_counts) {
            counts[*group as usize] += count;
        }
    }

    /// For `COUNT(DISTINCT *)`: counts each solution once in a group.
    ///
    /// # Panics
    /// If this is another aggregate, or the group is not there.
    pub fn add_solution(&mut self, group: usize, solution: &[TermId]) {
        let (States::Count(counts), Some(seen)) = (&mut self.states, &mut self.seen) else {
            panic!("only COUNT(DISTINCT *) counts solutions");
        };
        if seen.is_new_solution(group, solution) {
            counts[group] += 1;
        }
    }

    /// For `COUNT(DISTINCT *)`: counts a solution that the group has not seen.
    ///
    /// # Panics
    /// If this is another aggregate, or the group is not there.
    pub fn add_new_solution(&mut self, group: usize) {
        let States::Count(counts) = &mut self.states else {
            panic!("only COUNT(DISTINCT *) counts solutions");
        };
        counts[group] += 1;
    }

    /// For DISTINCT: from here on, values and solutions that their groups have not seen are not
    /// added and not kept as seen, but put off, see [`GroupedAccumulator::take_put_off`].
    pub fn put_off_new(&mut self) {
        if let Some(seen) = &mut self.seen {
            seen.put_off.get_or_insert_default();
        }
    }

    /// What was put off since the last call, some of it perhaps more than once: the group's number
    /// in the first column, then the value or the solution. `None` if it was nothing.
    pub fn take_put_off(&mut self) -> Option<Table> {
        let seen = self.seen.as_mut()?;
        let ids = std::mem::take(seen.put_off.as_mut()?);
        if ids.is_empty() {
            return None;
        }
        let width = seen.width();
        let rows = ids.len() / width;
        let mut table = Table::with_rows(width, rows);
        let column = |column: usize| ids.iter().skip(column).step_by(width);
        let groups = column(0).map(|id| id.raw()).collect();
        table.set_column(Var(0), Column::Numbers(groups));
        for number in 1..width {
            table.set(Var(number as u16), column(number).copied().collect());
        }
        Some(table)
    }

    /// Forgets what the groups have seen; only values that are known to be new may be added after.
    pub(crate) fn take_seen(&mut self) -> Option<Seen> {
        self.seen.take()
    }

    /// Takes the states of some groups away; the first is group 0 of what is returned. They are empty
    /// from then on.
    ///
    /// # Panics
    /// If a group is not there, and if this is GROUP_CONCAT or `COUNT(DISTINCT *)`.
    pub(crate) fn take_groups(&mut self, groups: &[u32]) -> Self {
        fn take<T: Default>(states: &mut [T], groups: &[u32]) -> Vec<T> {
            let groups = groups.iter().map(|group| *group as usize);
            groups
                .map(|group| std::mem::take(&mut states[group]))
                .collect()
        }
        let states = match &mut self.states {
            States::Count(states) => States::Count(take(states, groups)),
            States::Sum(states) => States::Sum(take(states, groups)),
            States::Extreme(states) => States::Extreme(take(states, groups)),
            States::Sample(states) => {
                let samples = groups.iter().map(|group| *group as usize);
                let taken =
                    samples.map(|group| std::mem::replace(&mut states[group], TermId::NONE));
                States::Sample(taken.collect())
            }
            States::Concat(_) => panic!("texts are not taken apart"),
        };
        let seen = self.seen.as_mut().map(|seen| {
            assert!(seen.solutions.is_none(), "solutions are not taken apart");
            let values = take(&mut seen.values, groups);
            let count = values.iter().map(ValueSet::len).sum();
            seen.count -= count;
            Seen {
                values,
                count,
                ..Seen::default()
            }
        });
        let held = states.held();
        self.held = self.held.saturating_sub(held);
        Self {
            function: self.function.clone(),
            states,
            seen,
            held,
            unbooked: Vec::new(),
            texts: TextCache::default(),
            order: self.order.clone(),
            runs: RunOfEachKind::default(),
            is_by_texts: self.is_by_texts,
        }
    }

    /// Distinct values of all groups.
    pub(crate) fn distinct_values(&self) -> usize {
        self.seen.as_ref().map_or(0, |seen| seen.count)
    }

    /// Adds what another thread has for the same aggregate: its group `g` is `group_of[g]` here.
    /// Distinct values come in any order.
    ///
    /// # Panics
    /// If it is another aggregate, or a group is not there.
    pub fn merge(&mut self, mut other: Self, group_of: &[u32], cx: &Context) {
        assert_eq!(
            self.function, other.function,
            "merged aggregates are the same"
        );
        other.use_order(&self.order, cx);
        let groups = group_of.iter().map(|group| *group as usize);
        if let Some(seen) = other.seen {
            for (error, group) in other.states.errors().into_iter().zip(groups) {
                if error {
                    self.add(group, TermId::NONE, cx);
                }
            }
            for (values, group) in seen.values.iter().zip(group_of) {
                for (number, id) in values.iter().enumerate() {
                    // Where the query must end, rows so far are not used.
                    if number % MERGED_AT_ONCE == 0 && cx.poll().is_err() {
                        return;
                    }
                    self.add(*group as usize, id, cx);
                }
            }
            let solutions = seen.solutions.unwrap_or_else(|| RowSet::new(1));
            for number in 0..solutions.len() {
                let [group, solution @ ..] = solutions.row(number) else {
                    unreachable!("rows begin with their group");
                };
                let group = group_of[group.raw() as usize];
                self.add_solution(group as usize, solution);
            }
            return;
        }
        match (&mut self.states, other.states) {
            (States::Count(ours), States::Count(theirs)) => {
                for (count, group) in theirs.into_iter().zip(groups) {
                    ours[group] += count;
                }
            }
            (States::Sum(ours), States::Sum(theirs)) => {
                for ((sum, count), group) in theirs.into_iter().zip(groups) {
                    self.held += ours[group].0.merge(&sum);
                    ours[group].1 += count;
                }
            }
            (States::Extreme(ours), States::Extreme(theirs)) => {
                let greatest = self.function == AggregateFunction::Max;
                for (extreme, group) in theirs.into_iter().zip(groups) {
                    let before = ours[group].bytes();
                    ours[group].merge(extreme, greatest, ordered_terms(&self.order, cx));
                    self.held = self.held + ours[group].bytes() - before;
                }
            }
            (States::Sample(ours), States::Sample(theirs)) => {
                for (sample, group) in theirs.into_iter().zip(groups) {
                    if ours[group].is_none() {
                        ours[group] = sample;
                    }
                }
            }
            (States::Concat(ours), States::Concat(theirs)) => {
                let AggregateFunction::GroupConcat(separator) = &self.function else {
                    unreachable!("only GROUP_CONCAT has such states");
                };
                for (text, group) in theirs.into_iter().zip(groups) {
                    self.held += ours[group].merge(&text, separator, cx);
                }
            }
            _ => unreachable!("one function has one kind of state"),
        }
    }

    /// The value of a group; [`TermId::NONE`] where it has none. A text can be taken once.
    ///
    /// # Panics
    /// If the group is not there.
    pub fn finish(&mut self, group: usize, cx: &Context) -> TermId {
        let value = match &mut self.states {
            States::Count(counts) => {
                let count = i64::try_from(counts[group]).map_err(|_| ExprError::Overflow);
                count.map(|count| Value::Integer(Integer::from(count)))
            }
            States::Sum(sums) => {
                let (sum, count) = &sums[group];
                match self.function {
                    AggregateFunction::Avg => sum.average(*count, cx).map(Value::from),
                    _ => sum.total(cx).map(Value::from),
                }
            }
            States::Extreme(extremes) => return extremes[group].id(),
            States::Sample(samples) => return samples[group],
            States::Concat(texts) => {
                let text = texts[group].take();
                self.held = self
                    .held
                    .saturating_sub(text.as_ref().map_or(0, String::len));
                text.map(Value::String)
            }
        };
        let id = value.and_then(|value| value.into_id(cx.terms()));
        id.unwrap_or(TermId::NONE)
    }

    /// Bytes held, for the query's memory budget.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let (capacity, bytes) = self.states.room();
        let seen = self.seen.as_ref().map_or(0, Seen::bytes);
        capacity * bytes + seen + self.held + self.texts.bytes()
    }

    /// Bytes at most after so many more rows, each perhaps of a group of its own beside `groups`;
    /// texts are not foreseen.
    #[must_use]
    pub fn bytes_with(&self, groups: usize, rows: usize) -> usize {
        let (capacity, bytes) = self.states.room();
        let grown = match groups + rows {
            needed if needed > capacity => needed.max(2 * capacity) * bytes,
            _ => 0,
        };
        let seen = self.seen.as_ref();
        let seen = seen.map_or(0, |seen| seen.bytes_with(rows) - seen.bytes());
        self.bytes() + grown + seen
    }
}

fn ordered_terms<'a>(order: &'a QueryOrder, cx: &'a Context) -> OrderedTerms<'a> {
    let terms = cx.terms();
    OrderedTerms { terms, order }
}

impl States {
    /// Groups that there is room for, and bytes of one.
    fn room(&self) -> (usize, usize) {
        match self {
            Self::Count(states) => (states.capacity(), size_of::<u64>()),
            Self::Sum(states) => (states.capacity(), size_of::<(Sum, u64)>()),
            Self::Extreme(states) => (states.capacity(), size_of::<Extreme>()),
            Self::Sample(states) => (states.capacity(), size_of::<TermId>()),
            Self::Concat(states) => (states.capacity(), size_of::<Concat>()),
        }
    }

    /// Bytes that groups hold beyond the table's own, texts left out.
    fn held(&self) -> usize {
        match self {
            Self::Sum(states) => states.iter().map(|(sum, _)| sum.large_bytes()).sum(),
            Self::Extreme(states) => states.iter().map(Extreme::bytes).sum(),
            Self::Count(_) | Self::Sample(_) | Self::Concat(_) => 0,
        }
    }

    /// Which groups met an error.
    fn errors(&self) -> Vec<bool> {
        match self {
            Self::Count(states) => vec![false; states.len()],
            Self::Sample(states) => vec![false; states.len()],
            Self::Sum(states) => states.iter().map(|(sum, _)| sum.error).collect(),
            Self::Extreme(states) => states
                .iter()
                .map(|state| matches!(state, Extreme::Error))
                .collect(),
            Self::Concat(states) => states.iter().map(|state| state.error).collect(),
        }
    }
}

/// A sum, kept apart by type: exact parts stay exact, whatever the order of the rows.
#[derive(Clone, Debug, Default)]
struct Sum {
    integers: i128,
    decimals: Option<Decimal>,
    /// What the two above have no room for, and whether a decimal is part of it.
    large: Option<Box<(Exact, bool)>>,
    floats: Option<Float>,
    doubles: Option<Double>,
    /// Something was no number, or had too many digits.
    error: bool,
}

impl Sum {
    /// Adds an inline integer; false of any other id.
    #[inline]
    fn add_inline(&mut self, id: TermId) -> bool {
        match inline::as_integer(id) {
            Some(value) => {
                // 2^63 rows of 2^63 each would fit.
                self.integers += i128::from(value);
                true
            }
            None => false,
        }
    }

    /// Bytes that any other term added.
    fn add_slowly(&mut self, id: TermId, cx: &Context) -> usize {
        self.add_times(id, 1, cx)
    }

    /// Bytes that a term added that comes several times. It costs as much as to add it once: inexact
    /// sums add the product.
    fn add_times(&mut self, id: TermId, times: u64, cx: &Context) -> usize {
        match Value::decode(id, cx.terms()) {
            Ok(Value::Integer(value)) => {
                self.integers += i128::from(i64::from(value)) * i128::from(times);
            }
            Ok(Value::Decimal(value)) => {
                let factor = i64::try_from(times).ok();
                return match factor.and_then(|factor| value.checked_mul(factor)) {
                    Some(value) => self.add_decimal(value),
                    None => self.add_large(&Exact::decimal(value).times(times), true),
                };
            }
            Ok(Value::Large(value)) => {
                let is_decimal = value.kind() == Kind::Decimal;
                match Exact::of(&Number::Large(value), cx) {
                    Ok(value) => return self.add_large(&value.times(times), is_decimal),
                    Err(_) => self.error = true,
                }
            }
            Ok(Value::Float(value)) => {
                let value = value * Float::from(times as f32);
                self.floats = Some(self.floats.map_or(value, |sum| sum + value));
            }
            Ok(Value::Double(value)) => {
                let value = value * Double::from(times as f64);
                self.doubles = Some(self.doubles.map_or(value, |sum| sum + value));
            }
            Ok(_) | Err(_) => self.error = true,
        }
        0
    }

    fn add_decimal(&mut self, value: Decimal) -> usize {
        let sum = self.decimals.unwrap_or_default();
        match sum.checked_add(value) {
            Some(sum) => {
                self.decimals = Some(sum);
                0
            }
            None => {
                self.decimals = Some(value);
                self.add_large(&Exact::decimal(sum), true)
            }
        }
    }

    /// Bytes that this added. Sums may have more digits than an operand of arithmetic, by those of
    /// the number of rows, so that the total does not depend on the order of the rows.
    #[cold]
    fn add_large(&mut self, value: &Exact, is_decimal: bool) -> usize {
        let before = self.large_bytes();
        let (sum, has_decimal) = &mut **self.large.get_or_insert_default();
        *sum = sum.plus(value);
        *has_decimal |= is_decimal;
        self.large_bytes().saturating_sub(before)
    }

    fn large_bytes(&self) -> usize {
        match &self.large {
            Some(large) => size_of_val(&**large) + large.0.heap_bytes(),
            None => 0,
        }
    }

    /// Bytes that this added.
    fn merge(&mut self, other: &Self) -> usize {
        self.integers += other.integers;
        let mut more = 0;
        if let Some(value) = other.decimals {
            more += self.add_decimal(value);
        }
        if let Some(large) = &other.large {
            more += self.add_large(&large.0, large.1);
        }
        if let Some(value) = other.floats {
            self.floats = Some(self.floats.map_or(value, |sum| sum + value));
        }
        if let Some(value) = other.doubles {
            self.doubles = Some(self.doubles.map_or(value, |sum| sum + value));
        }
        self.error |= other.error;
        more
    }

    fn total(&self, cx: &Context) -> Result<Number, ExprError> {
        if self.error {
            return Err(ExprError::Type);
        }
        let mut sum = self.exact()?;
        if let Some(floats) = self.floats {
            sum = numeric::arithmetic(Arithmetic::Add, sum, Number::Float(floats), cx)?;
        }
        if let Some(doubles) = self.doubles {
            sum = numeric::arithmetic(Arithmetic::Add, sum, Number::Double(doubles), cx)?;
        }
        Ok(sum)
    }

    /// Integers and decimals.
    fn exact(&self) -> Result<Number, ExprError> {
        let small = match (self.decimals, &self.large) {
            (None, None) => match i64::try_from(self.integers) {
                Ok(sum) => Some(Number::Integer(sum.into())),
                Err(_) => None,
            },
            (Some(decimals), None) => Decimal::try_from(self.integers)
                .ok()
                .and_then(|integers| integers.checked_add(decimals))
                .map(Number::Decimal),
            (_, Some(_)) => None,
        };
        match small {
            Some(sum) => Ok(sum),
            None => self.large_exact(),
        }
    }

    #[cold]
    fn large_exact(&self) -> Result<Number, ExprError> {
        let mut sum = Exact::integer(self.integers);
        let mut kind = Kind::Integer;
        if let Some(decimals) = self.decimals {
            sum = sum.plus(&Exact::decimal(decimals));
            kind = Kind::Decimal;
        }
        if let Some(large) = &self.large {
            sum = sum.plus(&large.0);
            if large.1 {
                kind = Kind::Decimal;
            }
        }
        sum.into_number(kind)
    }

    fn average(&self, count: u64, cx: &Context) -> Result<Number, ExprError> {
        if count == 0 {
            return Ok(Number::Integer(Integer::from(0)));
        }
        let count = i64::try_from(count).map_err(|_| ExprError::Overflow)?;
        let count = Number::Integer(count.into());
        numeric::arithmetic(Arithmetic::Divide, self.total(cx)?, count, cx)
    }
}
