//! EXISTS and MINUS with bindings from their left side: for which rows do the inner steps find
//! anything?

use std::sync::{Arc, Mutex};

use jindou_model::{TermId, inline};
use jindou_plan::physical::{Outcome, PlannedStep, Step, Var};
use rustc_hash::FxHashMap;

use super::feed::Feed;
use super::{Behind, Chain, needed_before};
use crate::ExecError;
use crate::context::Context;
use crate::operator::{Boxed, Builder, Operator};
use crate::table::{Table, VarSet};

/// Which rows of the batch in work something was found for.
type Found = Arc<Mutex<Vec<bool>>>;

struct Exists {
    input: Boxed,
    feed: Feed,
    inner: Boxed,
    found: Found,
    /// The hidden column that numbers the rows of a batch.
    number: Var,
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
    let found = Found::default();
    let mut chain = Chain::default();
    let mut behind = Behind::new(steps, &last);
    let mut inner: Boxed = Box::new(feed.clone());
    for (index, step) in steps.iter().enumerate() {
        inner = chain.input(inner);
        if index > 0 {
            inner = Box::new(Undecided {
                input: inner,
                found: Arc::clone(&found),
                number,
            });
        }
        let needed = behind.behind(index + 1);
        inner = builder.steps(inner, std::slice::from_ref(step), needed)?;
    }
    let inner = chain.end(inner);
    Ok(Box::new(Exists {
        input,
        feed,
        inner,
        found,
        number,
        wanted: needed_before(steps, &last),
        decided: (!steps.iter().any(is_volatile)).then(Decided::default),
        outcome,
        keep: keep.clone(),
    }))
}

fn lock(found: &Found) -> std::sync::MutexGuard<'_, Vec<bool>> {
    found
        .lock()
        .expect("no thread panics while it notes what was found")
}

/// Passes the rows for which nothing was found yet: the others need no more work.
struct Undecided {
    input: Boxed,
    found: Found,
    number: Var,
}

impl Operator for Undecided {
    fn produce(&mut self, cx: &Context) -> Result<Option<Table>, ExecError> {
        let Some(mut table) = self.input.next(cx)? else {
            return Ok(None);
        };
        let rows: Vec<u32> = {
            let found = lock(&self.found);
            let origins = (0..).zip(table.origins(self.number));
            let is_open = |(row, origin): (u32, &u32)| (!found[*origin as usize]).then_some(row);
            origins.filter_map(is_open).collect()
        };
        table.retain_rows(&rows);
        Ok(Some(table))
    }
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
                self.decided = decided.note(&alike, &found).then_some(decided);
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
        rows.set_origins(self.number);
        *lock(&self.found) = vec![false; rows.rows()];
        self.feed.put(rows);
        while let Some(rows) = self.inner.next(cx)? {
            cx.check()?;
            let mut found = lock(&self.found);
            for origin in rows.origins(self.number) {
                found[*origin as usize] = true;
            }
        }
        Ok(std::mem::take(&mut *lock(&self.found)))
    }
}

/// True of a step that may find other things for the same values.
fn is_volatile(planned: &PlannedStep) -> bool {
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

/// Variables that are compared at most.
const MOST_VARIABLES: usize = 4;
/// Combinations of values that are remembered at most; all are forgotten when there are more.
const MOST_DECIDED: usize = 256;
/// Rows after which it is known whether they repeat values.
const TRIED_ROWS: usize = 1 << 12;

/// The values of a row at which the inner steps look.
type Values = [TermId; MOST_VARIABLES];

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
        let is_compared = columns.len() <= MOST_VARIABLES;
        let mut alike = Alike {
            rows: Vec::new(),
            values: Vec::new(),
            all: Vec::with_capacity(table.rows()),
        };
        let mut places: FxHashMap<Values, usize> = FxHashMap::default();
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
        if self.vars.len() > MOST_VARIABLES {
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
