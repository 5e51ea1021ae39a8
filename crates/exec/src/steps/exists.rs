//! EXISTS and MINUS with bindings from their left side: for which rows do the inner steps find
//! anything?

use jindou_model::{TermId, inline};
use jindou_plan::physical::{COMPARED_VARIABLES, Outcome, PlannedStep, Step, Var};
use rustc_hash::{FxBuildHasher, FxHashMap};

use super::feed::Feed;
use super::undecided::{Open, Undecided};
use super::{Behind, Chain, needed_before};
use crate::ExecError;
use crate::context::{Booked, Context};
use crate::operator::{Boxed, Builder, Operator};
use crate::table::{Table, VarSet};

struct Exists {
    input: Boxed,
    feed: Feed,
    inner: Boxed,
    /// Which rows of the batch in work nothing was found for yet.
    undecided: Undecided,
    /// What the inner steps look at.
    wanted: VarSet,
    /// What was found for rows before, where that does not change from row to row.
    decided: Option<Decided>,
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
    let undecided = Undecided::new(number);
    let around = builder.undecided.replace(undecided.clone());
    let inner = build_inner(builder, Box::new(feed.clone()), steps, &undecided);
    builder.undecided = around;
    Ok(Box::new(Exists {
        input,
        feed,
        inner: inner?,
        undecided,
        wanted: needed_before(steps, &last),
        decided: (!steps.iter().any(is_volatile)).then(Decided::default),
        outcome,
        keep: keep.clone(),
    }))
}

/// The steps inside: each passes over rows for which something was found.
fn build_inner(
    builder: &mut Builder<'_>,
    input: Boxed,
    steps: &[PlannedStep],
    undecided: &Undecided,
) -> Result<Boxed, ExecError> {
    let last: VarSet = [undecided.number()].into_iter().collect();
    let mut chain = Chain::default();
    let mut behind = Behind::new(steps, &last);
    let mut inner = input;
    for (index, step) in steps.iter().enumerate() {
        inner = chain.input(inner);
        if index > 0 {
            inner = Box::new(Open {
                input: inner,
                undecided: undecided.clone(),
            });
        }
        let needed = behind.behind(index + 1);
        inner = builder.steps(inner, std::slice::from_ref(step), needed)?;
    }
    Ok(chain.end(inner))
}

impl Operator for Exists {
    fn produce(&mut self, cx: &Context) -> Result<Option<Table>, ExecError> {
        cx.check()?;
        let Some(table) = self.input.next(cx)? else {
            return Ok(None);
        };
        let found = match self.decided.take() {
            Some(mut decided) => {
                let alike = decided.alike(&table, &self.wanted);
                let found = self.look(table.gather(&alike.rows, &self.wanted), cx)?;
                let is_of_use = decided.note(&alike, &found);
                if is_of_use {
                    let bytes = decided.known.capacity() * size_of::<(Values, bool)>();
                    cx.book(&mut decided.booked, bytes)?;
                    self.decided = Some(decided);
                }
                alike.of_all(&found)
            }
            None => self.look(table.project(&self.wanted), cx)?,
        };
        Ok(Some(decide(table, &found, self.outcome, &self.keep)))
    }
}

impl Exists {
    /// For which rows is something found?
    fn look(&mut self, mut rows: Table, cx: &Context) -> Result<Vec<bool>, ExecError> {
        if rows.rows() == 0 {
            return Ok(Vec::new());
        }
        rows.set_origins(self.undecided.number());
        self.undecided.begin(rows.rows());
        self.feed.put(rows);
        while let Some(rows) = self.inner.next(cx)? {
            cx.check()?;
            self.undecided.note(&rows);
        }
        Ok(self.undecided.end())
    }
}

/// True of a step that may find other things for the same values.
pub(crate) fn is_volatile(planned: &PlannedStep) -> bool {
    match &planned.step {
        Step::Filter(expression) | Step::Extend { expression, .. } => expression.is_volatile(),
        Step::Optional { steps } | Step::Exists { steps, .. } => steps.iter().any(is_volatile),
        Step::Union(branches) => branches.iter().flatten().any(is_volatile),
        // Whatever is in there.
        Step::ExistsGiven { .. } => true,
        Step::Bind { .. }
        | Step::Check { .. }
        | Step::Test { .. }
        | Step::Match { .. }
        | Step::Path { .. }
        | Step::Graphs { .. }
        | Step::Values { .. } => false,
    }
}

/// Combinations of values that are remembered at most; all are forgotten when there are more.
const MOST_DECIDED: usize = 1 << 16;
/// Rows after which it is known whether they repeat values.
const TRIED_ROWS: usize = 1 << 12;

/// The values of a row at which the inner steps look.
type Values = [TermId; COMPARED_VARIABLES];

/// For which values was something found? Rows often come with the same ones, and what is around one
/// of them may be much.
#[derive(Default)]
struct Decided {
    known: FxHashMap<Values, bool>,
    /// The variables of these, that the last batch had.
    vars: Vec<Var>,
    /// Rows that came, and those that had to be looked for.
    rows: usize,
    looked_for: usize,
    booked: Booked,
}

/// The rows of a batch that differ in their values.
struct Alike {
    /// The first of each that is not decided, and its values.
    rows: Vec<u32>,
    values: Vec<Values>,
    /// For each row the place of its like among these, or what was found before.
    all: Vec<Result<usize, bool>>,
}

impl Decided {
    fn alike(&mut self, table: &Table, wanted: &VarSet) -> Alike {
        let is_there = |var: &Var| table.get(*var).is_some();
        let vars: Vec<Var> = wanted.iter().filter(is_there).collect();
        if vars != self.vars {
            self.known.clear();
        }
        let columns: Vec<&[TermId]> = vars.iter().filter_map(|var| table.get(*var)).collect();
        self.vars = vars;
        let is_compared = columns.len() <= COMPARED_VARIABLES;
        let mut alike = Alike {
            rows: Vec::new(),
            values: Vec::new(),
            all: Vec::with_capacity(table.rows()),
        };
        let most = if is_compared { table.rows() } else { 0 };
        let mut places: FxHashMap<Values, usize> =
            FxHashMap::with_capacity_and_hasher(most, FxBuildHasher);
        for row in 0..table.rows() {
            let mut values = Values::default();
            for (value, column) in values.iter_mut().zip(&columns) {
                *value = column[row];
            }
            if let (Some(found), true) = (self.known.get(&values), is_compared) {
                alike.all.push(Err(*found));
                continue;
            }
            let next = alike.rows.len();
            let place = match is_compared {
                true => *places.entry(values).or_insert(next),
                false => next,
            };
            if place == next {
                alike.rows.push(row as u32);
                alike.values.push(values);
            }
            alike.all.push(Ok(place));
        }
        alike
    }

    /// Remembers what was found; false if rows are too different for that to be of use.
    fn note(&mut self, alike: &Alike, found: &[bool]) -> bool {
        self.rows += alike.all.len();
        self.looked_for += alike.rows.len();
        if self.rows >= TRIED_ROWS && self.looked_for > self.rows / 8 * 7 {
            return false;
        }
        if self.vars.len() > COMPARED_VARIABLES {
            return true;
        }
        if self.known.len() + found.len() > MOST_DECIDED {
            self.known.clear();
        }
        let decided = alike.values.iter().copied().zip(found.iter().copied());
        self.known.extend(decided.take(MOST_DECIDED));
        true
    }
}

impl Alike {
    /// What was found for all rows.
    fn of_all(&self, found: &[bool]) -> Vec<bool> {
        let of_row = |place: &Result<usize, bool>| match place {
            Ok(place) => found[*place],
            Err(found) => *found,
        };
        self.all.iter().map(of_row).collect()
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
