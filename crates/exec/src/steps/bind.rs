//! Binding a variable: scan an index vertex, follow edges, or intersect adjacency.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use jindou_model::{Cursor, IdRanges, Neighbours, TermId};
use jindou_plan::expression::{Expression, Function};
use jindou_plan::physical::{PlannedStep, Requirement, Side, Slot, Step, Var};

use super::{ResolvedSide, compile, required_ids};
use crate::ExecError;
use crate::context::Context;
use crate::operator::{Boxed, Operator};
use crate::table::{Table, VarSet, batch_rows};

/// Rows whose adjacency is located together in an intersection.
const INTERSECT_ROWS: usize = 256;
/// Ids of an intersection that are looked at between two looks at the clock.
const INTERSECT_IDS: usize = 1 << 16;
/// Batches of ids found that end a batch of located rows early: these are located again.
const FOUND_BATCHES: usize = 4;

/// [`jindou_plan::physical::Step::Bind`].
pub(crate) struct Bind {
    input: Boxed,
    var: Var,
    sides: Vec<ResolvedSide>,
    /// What the new vertex must be in; for a scan, all there is.
    allowed: Option<IdRanges>,
    keep: VarSet,
    /// The input table that is being extended, and how far.
    current: Option<(Table, Cursor)>,
}

impl Bind {
    pub(crate) fn new(
        input: Boxed,
        start: Start,
        sides: &[Side],
        keep: VarSet,
        cx: &Context,
    ) -> Self {
        let sides: Vec<ResolvedSide> = sides
            .iter()
            .map(|side| ResolvedSide::new(side, cx))
            .collect();
        let allowed = if sides.iter().any(|side| side.predicate.is_none()) {
            Some(IdRanges::new())
        } else {
            start.allowed
        };
        Self {
            input,
            var: start.var,
            sides,
            allowed,
            keep,
            current: None,
        }
    }
}

/// The variable that a step binds, and the ids that it may have.
pub(crate) struct Start {
    var: Var,
    allowed: Option<IdRanges>,
}

impl Start {
    /// Of a step with these sides and requirements, and with these steps behind it: of what is
    /// scanned, filters may leave out most.
    pub(crate) fn new(
        var: Var,
        sides: &[Side],
        requires: &[Requirement],
        after: &[PlannedStep],
        cx: &Context,
    ) -> Result<Self, ExecError> {
        let mut within = None;
        for planned in after {
            let (Step::Filter(expression), true) = (&planned.step, sides.is_empty()) else {
                break;
            };
            for range in ranges(expression, var) {
                let range = compile(range, cx)?;
                within = Some(range.cut(var, within.unwrap_or_else(IdRanges::all)));
            }
        }
        let allowed = required_ids(requires, sides.is_empty(), within.as_ref(), cx);
        Ok(Self { var, allowed })
    }
}

/// The conjuncts of a condition that compare a variable, or its YEAR, with a constant.
fn ranges(condition: &Expression, var: Var) -> Vec<&Expression> {
    let parts = match condition {
        Expression::And(parts) => parts.as_slice(),
        other => std::slice::from_ref(other),
    };
    let is_of_var = |part: &Expression| match part {
        Expression::Variable(of) => *of == var,
        Expression::Call(Function::Year, arguments) => {
            matches!(arguments.as_slice(), [Expression::Variable(of)] if *of == var)
        }
        _ => false,
    };
    let is_constant = |part: &Expression| matches!(part, Expression::Constant(_));
    let is_range = |part: &&Expression| match part {
        Expression::Compare(_, left, right) => {
            (is_of_var(left) && is_constant(right)) || (is_constant(left) && is_of_var(right))
        }
        _ => false,
    };
    parts.iter().filter(is_range).collect()
}

impl Operator for Bind {
    fn produce(&mut self, cx: &Context) -> Result<Option<Table>, ExecError> {
        loop {
            cx.check()?;
            let (table, mut cursor) = match self.current.take() {
                Some(current) => current,
                None => match self.input.next(cx)? {
                    Some(table) => (table, Cursor::default()),
                    None => return Ok(None),
                },
            };
            let begin = cursor;
            let (mut rows, mut values) = (Vec::new(), Vec::new());
            match self.sides.as_slice() {
                [] => scan(
                    self.allowed.as_ref(),
                    &table,
                    &mut cursor,
                    &mut rows,
                    &mut values,
                ),
                [side] => {
                    let side = *side;
                    expand(
                        side,
                        self.allowed.as_ref(),
                        &table,
                        cx,
                        &mut cursor,
                        &mut rows,
                        &mut values,
                    );
                }
                sides => {
                    let allowed = self.allowed.as_ref();
                    intersect(
                        sides,
                        allowed,
                        &table,
                        cx,
                        &mut cursor,
                        &mut rows,
                        &mut values,
                    );
                }
            }
            let done = cursor.key >= table.rows();
            if values.is_empty() {
                if !done {
                    self.current = Some((table, cursor));
                }
                continue;
            }
            let whole = done && begin == Cursor::default();
            let mut extended = if whole && is_identity(&rows, table.rows()) {
                let mut table = table;
                table.retain_columns(&self.keep);
                table
            } else {
                let extended = table.gather(&rows, &self.keep);
                if !done {
                    self.current = Some((table, cursor));
                }
                extended
            };
            if self.keep.contains(self.var) {
                extended.set(self.var, values);
            }
            return Ok(Some(extended));
        }
    }
}

fn is_identity(rows: &[u32], count: usize) -> bool {
    rows.len() == count
        && rows
            .iter()
            .enumerate()
            .all(|(index, row)| index == *row as usize)
}

/// Each row with each of the ids.
fn scan(
    ids: Option<&IdRanges>,
    table: &Table,
    cursor: &mut Cursor,
    rows: &mut Vec<u32>,
    values: &mut Vec<TermId>,
) {
    let ids = ids.expect("a scan names what it scans");
    let most = batch_rows(table.width());
    while cursor.key < table.rows() && values.len() < most {
        ids.copy(cursor.offset as u64, most - values.len(), values);
        cursor.offset += values.len() - rows.len();
        rows.resize(values.len(), cursor.key as u32);
        if cursor.offset as u64 >= ids.len() {
            *cursor = Cursor {
                key: cursor.key + 1,
                offset: 0,
            };
        }
    }
}

fn expand(
    side: ResolvedSide,
    allowed: Option<&IdRanges>,
    table: &Table,
    cx: &Context,
    cursor: &mut Cursor,
    rows: &mut Vec<u32>,
    values: &mut Vec<TermId>,
) {
    let (Some(predicate), false) = (side.predicate, allowed.is_some_and(IdRanges::is_empty)) else {
        cursor.key = table.rows();
        return;
    };
    let repeated;
    let keys = match side.from {
        Slot::Var(var) => table.get(var).unwrap_or(&[]),
        Slot::Const(id) => {
            repeated = vec![cx.constant(id); table.rows()];
            &repeated
        }
    };
    cx.source.expand(
        predicate,
        side.direction,
        keys,
        cursor,
        allowed,
        batch_rows(table.width()),
        rows,
        values,
    );
    if keys.is_empty() {
        cursor.key = table.rows();
    }
}

fn intersect(
    sides: &[ResolvedSide],
    allowed: Option<&IdRanges>,
    table: &Table,
    cx: &Context,
    cursor: &mut Cursor,
    rows: &mut Vec<u32>,
    values: &mut Vec<TermId>,
) {
    if allowed.is_some_and(IdRanges::is_empty) {
        cursor.key = table.rows();
        return;
    }
    let mut located: Vec<Vec<Neighbours<'_>>> = vec![Vec::new(); sides.len()];
    let mut lists = Vec::with_capacity(sides.len());
    let mut places = vec![0; sides.len()];
    let most = batch_rows(table.width());
    while cursor.key < table.rows() && values.len() < most {
        let end = table.rows().min(cursor.key + INTERSECT_ROWS);
        for (side, out) in sides.iter().zip(&mut located) {
            out.clear();
            locate(*side, table, cursor.key..end, cx, out);
        }
        let begin = cursor.key;
        let mut looked = 0;
        while cursor.key < end && values.len() < FOUND_BATCHES * most && looked < INTERSECT_IDS {
            lists.clear();
            lists.extend(located.iter().map(|side| side[cursor.key - begin]));
            let from = cursor.offset;
            let most = FOUND_BATCHES * most;
            let to = intersect_row(&mut lists, &mut places, allowed, from, most, values);
            rows.resize(values.len(), cursor.key as u32);
            // The shortest list is the first now.
            looked += 1 + to.unwrap_or(lists[0].len()).saturating_sub(from);
            *cursor = match to {
                Some(to) => Cursor {
                    key: cursor.key,
                    offset: to,
                },
                None => Cursor {
                    key: cursor.key + 1,
                    offset: 0,
                },
            };
        }
        if looked >= INTERSECT_IDS {
            return;
        }
    }
}

fn locate<'a>(
    side: ResolvedSide,
    table: &Table,
    rows: std::ops::Range<usize>,
    cx: &'a Context,
    out: &mut Vec<Neighbours<'a>>,
) {
    let Some(predicate) = side.predicate else {
        out.resize(rows.len(), Neighbours::NONE);
        return;
    };
    match side.from {
        Slot::Const(id) => {
            let list = cx
                .source
                .neighbours(predicate, side.direction, cx.constant(id));
            out.resize(rows.len(), list);
        }
        Slot::Var(var) => match table.get(var) {
            Some(column) => cx
                .source
                .locate(predicate, side.direction, &column[rows], out),
            None => out.resize(rows.len(), Neighbours::NONE),
        },
    }
}

/// What all lists hold: walks the shortest, from an index on, and gallops through the others.
/// Returns where it stopped for having looked at, or found, enough for now.
fn intersect_row(
    lists: &mut [Neighbours<'_>],
    places: &mut [usize],
    allowed: Option<&IdRanges>,
    from: usize,
    most: usize,
    values: &mut Vec<TermId>,
) -> Option<usize> {
    lists.sort_unstable_by_key(|list| list.len());
    let (driver, others) = lists
        .split_first()
        .expect("an intersection has two sides at least");
    places.fill(0);
    let end = driver.len().min(from.saturating_add(INTERSECT_IDS));
    'ids: for index in from..end {
        if values.len() >= most {
            return Some(index);
        }
        let id = driver.get(index);
        if allowed.is_some_and(|allowed| !allowed.contains(id)) {
            continue;
        }
        for (list, place) in others.iter().zip(places.iter_mut()) {
            *place = list.seek(*place, id);
            if *place >= list.len() {
                return None;
            }
            if list.get(*place) != id {
                continue 'ids;
            }
        }
        values.push(id);
    }
    (end < driver.len()).then_some(end)
}

/// Where an exploration starts, to be shared out among threads: a list of ids.
pub(crate) enum Seed {
    /// The ids of a scan.
    Ids(IdRanges),
    /// The neighbours of a constant.
    Edges {
        /// The constant and its edges.
        side: (TermId, jindou_model::PredicateId, jindou_model::Direction),
        /// Which neighbours count.
        allowed: Option<IdRanges>,
    },
}

impl Seed {
    /// The start of an exploration whose first step is this, with these steps behind it, if it
    /// can be shared out.
    pub(crate) fn of(
        var: Var,
        sides: &[Side],
        requires: &[Requirement],
        after: &[PlannedStep],
        cx: &Context,
    ) -> Result<Option<Self>, ExecError> {
        Ok(match sides {
            [] => {
                let start = Start::new(var, sides, requires, after, cx)?;
                start.allowed.map(Self::Ids)
            }
            [
                Side {
                    from: Slot::Const(from),
                    predicate,
                    direction,
                },
            ] => {
                let allowed = required_ids(requires, false, None, cx);
                let predicate = super::predicate(cx, *predicate);
                predicate.map(|predicate| Self::Edges {
                    side: (cx.constant(*from), predicate, *direction),
                    allowed,
                })
            }
            _ => None,
        })
    }

    /// How many ids there are to share out.
    pub(crate) fn len(&self, cx: &Context) -> u64 {
        match self {
            Self::Ids(ids) => ids.len(),
            Self::Edges {
                side: (key, predicate, direction),
                ..
            } => cx.source.neighbours(*predicate, *direction, *key).len() as u64,
        }
    }

    fn copy(&self, from: u64, count: usize, cx: &Context, out: &mut Vec<TermId>) {
        match self {
            Self::Ids(ids) => {
                ids.copy(from, count, out);
            }
            Self::Edges {
                side: (key, predicate, direction),
                allowed,
            } => {
                let list = cx.source.neighbours(*predicate, *direction, *key);
                list.copy(from as usize, count, out);
                if let Some(allowed) = allowed {
                    out.retain(|id| allowed.contains(*id));
                }
            }
        }
    }
}

/// The first step of one of several threads: takes the next piece of the seed.
pub(crate) struct SeededBind {
    pub(crate) seed: Arc<Seed>,
    pub(crate) taken: Arc<AtomicU64>,
    pub(crate) len: u64,
    /// Ids taken at once.
    pub(crate) piece: u64,
    pub(crate) var: Var,
    pub(crate) width: usize,
}

impl Operator for SeededBind {
    fn produce(&mut self, cx: &Context) -> Result<Option<Table>, ExecError> {
        cx.check()?;
        let from = self.taken.fetch_add(self.piece, Ordering::Relaxed);
        if from >= self.len {
            return Ok(None);
        }
        let count = self.piece.min(self.len - from) as usize;
        let mut values = Vec::with_capacity(count);
        self.seed.copy(from, count, cx, &mut values);
        let mut table = Table::with_rows(self.width, values.len());
        table.set(self.var, values);
        Ok(Some(table))
    }
}
