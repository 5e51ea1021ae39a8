//! How many rows would the last step give? Where nobody looks at what it binds, that number is
//! enough: the lengths of adjacency lists, without a look at what is in them.

use jindou_model::{Direction, IdRanges, Neighbours, PredicateId, TermId};
use jindou_plan::physical::{PlannedStep, Scope, Slot, Step, Var};

use super::path::FollowPath;
use super::{ResolvedSide, required_ids};
use crate::ExecError;
use crate::context::Context;
use crate::operator::{Boxed, Operator};
use crate::table::{Table, VarSet};

/// Ranges of ids up to which the neighbours in them are counted by searching for their ends.
const FEW_RANGES: usize = 8;
/// Rows whose adjacency is located together.
const ROWS_AT_ONCE: usize = 1024;

/// The last of `steps` as an operator that gives each row once, with the number of rows that it
/// stands for, if it is of a kind that can; `needed` are the variables wanted behind it.
pub(crate) fn build(
    input: Boxed,
    steps: &[PlannedStep],
    needed: &VarSet,
    cx: &Context,
) -> Result<Boxed, Boxed> {
    let Some((last, before)) = steps.split_last() else {
        return Err(input);
    };
    let keep = needed.clone();
    match &last.step {
        Step::Bind {
            var,
            sides,
            requires,
        } if !needed.contains(*var) && sides.len() < 2 => {
            let sides: Vec<ResolvedSide> = sides.iter().map(|s| ResolvedSide::new(s, cx)).collect();
            let allowed = required_ids(requires, sides.is_empty(), None, cx);
            if allowed
                .as_ref()
                .is_some_and(|a| a.ranges().len() > FEW_RANGES)
                && !sides.is_empty()
            {
                return Err(input);
            }
            let side = sides.first().copied();
            Ok(Box::new(CountBind {
                input,
                side,
                allowed,
                keep,
            }))
        }
        Step::Match {
            subject,
            predicate,
            object,
            scope: Scope::Default,
        } if cx.dataset.is_none() => {
            let slots = [*subject, *predicate, *object];
            let is_bound = |slot: Slot| match slot {
                Slot::Const(_) => true,
                Slot::Var(var) => before.iter().any(|planned| binds(&planned.step, var)),
            };
            let is_wanted = |slot: Slot| matches!(slot, Slot::Var(var) if needed.contains(var));
            let repeats = slots[0] == slots[1] || slots[0] == slots[2] || slots[1] == slots[2];
            let ends_are_free = [slots[0], slots[2]]
                .iter()
                .all(|end| is_bound(*end) || !is_wanted(*end));
            if repeats || !ends_are_free {
                return Err(input);
            }
            Ok(Box::new(CountMatch {
                input,
                slots,
                keep,
                current: None,
            }))
        }
        Step::Path {
            subject,
            path,
            object,
            scope,
        } => {
            let ends = [*subject, *object];
            let path = FollowPath::new(input, ends, path, *scope, keep, cx);
            Ok(Box::new(path.counted()))
        }
        _ => Err(input),
    }
}

/// True if this step gives the variable a value in each row.
fn binds(step: &Step, var: Var) -> bool {
    matches!(step, Step::Bind { var: bound, .. } if *bound == var)
}

/// Keeps the rows that stand for some, with their numbers.
fn counted(mut table: Table, counts: Vec<u64>, keep: &VarSet) -> Table {
    let rows: Vec<u32> = (0..table.rows() as u32)
        .filter(|row| counts[*row as usize] > 0)
        .collect();
    table.retain_columns(keep);
    table.retain_rows(&rows);
    table.set_counts(counts.into_iter().filter(|count| *count > 0).collect());
    table
}

/// [`Step::Bind`] of a variable that nobody wants, from one side or none.
struct CountBind {
    input: Boxed,
    /// None for a scan.
    side: Option<ResolvedSide>,
    allowed: Option<IdRanges>,
    keep: VarSet,
}

impl CountBind {
    fn count(&self, list: Neighbours<'_>) -> u64 {
        match &self.allowed {
            None => list.len() as u64,
            Some(allowed) => {
                let mut from = 0;
                let mut count = 0;
                for (first, end) in allowed.ranges() {
                    let begin = list.seek(from, TermId::from_raw(*first));
                    from = list.seek(begin, TermId::from_raw(*end));
                    count += (from - begin) as u64;
                }
                count
            }
        }
    }

    fn counts(&self, table: &Table, cx: &Context) -> Result<Vec<u64>, ExecError> {
        let Some(side) = self.side else {
            let ids = self.allowed.as_ref().expect("a scan names what it scans");
            return Ok(vec![ids.len(); table.rows()]);
        };
        let Some(predicate) = side.predicate else {
            return Ok(vec![0; table.rows()]);
        };
        let neighbours = |key| cx.source.neighbours(predicate, side.direction, key);
        let column = match side.from {
            Slot::Const(id) => {
                let count = self.count(neighbours(cx.constant(id)));
                return Ok(vec![count; table.rows()]);
            }
            Slot::Var(var) => table.get(var).unwrap_or_default(),
        };
        let mut counts = Vec::with_capacity(table.rows());
        let mut lists = Vec::with_capacity(ROWS_AT_ONCE.min(column.len()));
        for keys in column.chunks(ROWS_AT_ONCE) {
            cx.check()?;
            lists.clear();
            cx.source
                .locate(predicate, side.direction, keys, &mut lists);
            counts.extend(lists.iter().map(|list| self.count(*list)));
        }
        counts.resize(table.rows(), 0);
        Ok(counts)
    }
}

impl Operator for CountBind {
    fn produce(&mut self, cx: &Context) -> Result<Option<Table>, ExecError> {
        cx.check()?;
        let Some(table) = self.input.next(cx)? else {
            return Ok(None);
        };
        let counts = self.counts(&table, cx)?;
        Ok(Some(counted(table, counts, &self.keep)))
    }
}

/// [`Step::Match`] in the default graph whose ends, where it binds them, nobody wants.
struct CountMatch {
    input: Boxed,
    slots: [Slot; 3],
    keep: VarSet,
    current: Option<(Table, usize)>,
}

/// The rows found, those of one predicate each where somebody wants it.
#[derive(Default)]
struct Found {
    rows: Vec<u32>,
    predicates: Vec<TermId>,
    counts: Vec<u64>,
}

impl CountMatch {
    /// Quads of one predicate that match.
    fn count(predicate: PredicateId, ends: [Option<TermId>; 2], cx: &Context) -> u64 {
        match ends {
            [None, None] => cx.source.edges(predicate),
            [Some(subject), None] => cx
                .source
                .neighbours(predicate, Direction::Out, subject)
                .len() as u64,
            [None, Some(object)] => {
                cx.source.neighbours(predicate, Direction::In, object).len() as u64
            }
            [Some(subject), Some(object)] => {
                let list = cx.source.neighbours(predicate, Direction::Out, subject);
                u64::from(list.contains(object))
            }
        }
    }

    fn count_row(&self, table: &Table, row: usize, found: &mut Found, cx: &Context) {
        let known = |slot| Some(cx.slot(slot, table, row)).filter(|id| !id.is_none());
        let [subject, term, object] = self.slots.map(known);
        let ends = [subject, object];
        let mut add = |count: u64, term: TermId| {
            if count > 0 {
                found.rows.push(row as u32);
                found.counts.push(count);
                found.predicates.push(term);
            }
        };
        if let Some(term) = term {
            if let Some(predicate) = cx.source.predicate(term) {
                add(Self::count(predicate, ends, cx), term);
            }
            return;
        }
        let mut predicates = Vec::new();
        match ends {
            [Some(subject), _] => {
                cx.source
                    .predicates_of(subject, Direction::Out, &mut predicates);
            }
            [None, Some(object)] => {
                cx.source
                    .predicates_of(object, Direction::In, &mut predicates);
            }
            [None, None] => predicates.extend((0..cx.source.predicate_count()).map(PredicateId)),
        }
        let is_wanted = matches!(self.slots[1], Slot::Var(var) if self.keep.contains(var));
        if is_wanted {
            for predicate in predicates {
                let count = Self::count(predicate, ends, cx);
                add(count, cx.source.predicate_term(predicate));
            }
        } else {
            let counts = predicates.iter().map(|p| Self::count(*p, ends, cx));
            add(counts.sum(), TermId::NONE);
        }
    }
}

impl Operator for CountMatch {
    fn produce(&mut self, cx: &Context) -> Result<Option<Table>, ExecError> {
        cx.check()?;
        let (table, mut row) = match self.current.take() {
            Some(current) => current,
            None => match self.input.next(cx)? {
                Some(table) => (table, 0),
                None => return Ok(None),
            },
        };
        let mut found = Found::default();
        while row < table.rows() && found.rows.len() < ROWS_AT_ONCE {
            self.count_row(&table, row, &mut found, cx);
            row += 1;
        }
        let mut extended = table.gather(&found.rows, &self.keep);
        if let Slot::Var(var) = self.slots[1]
            && self.keep.contains(var)
        {
            extended.set(var, found.predicates);
        }
        extended.set_counts(found.counts);
        if row < table.rows() {
            self.current = Some((table, row));
        }
        Ok(Some(extended))
    }
}
