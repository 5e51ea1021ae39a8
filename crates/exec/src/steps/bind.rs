//! Binding a variable: scan an index vertex, follow edges, or intersect adjacency.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use jindou_model::{
    Cursor, Direction, GraphRef, IdRanges, Lists, Membership, Precision, PredicateId, TermId,
};
use jindou_plan::expression::{Expression, Function};
use jindou_plan::physical::{PlannedStep, Requirement, Scope, Side, Slot, Step, Var};

use super::fixed::Fixed;
use super::scope::{Found, Place, SameGraph};
use super::undecided::Portion;
use super::{ResolvedSide, compile, memberships, precision_for, required_ids};
use crate::ExecError;
use crate::context::Context;
use crate::operator::{Boxed, Operator};
use crate::table::{Table, VarSet};

/// [`jindou_plan::physical::Step::Bind`].
pub(crate) struct Bind {
    input: Boxed,
    var: Var,
    place: Place,
    sides: Vec<ResolvedSide>,
    /// What the new vertex must be in; for a scan, all there is.
    allowed: Option<IdRanges>,
    /// Types that must be looked up in the graph of each row.
    classes: Vec<TermId>,
    /// What is asked of the new vertex, where rows have graphs of their own.
    traits: Vec<Membership>,
    keep: VarSet,
    /// Of what it scans, only what this node has.
    own_scan: bool,
    fixed: Fixed,
    portion: Portion,
    /// The input table that is being extended, and how far.
    current: Option<(Table, Cursor)>,
}

impl Bind {
    pub(crate) fn new(
        input: Boxed,
        start: Start,
        sides: &[Side],
        (keep, own_scan): (VarSet, bool),
        portion: Portion,
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
            place: start.place,
            sides,
            allowed,
            classes: start.classes,
            traits: start.traits,
            keep,
            own_scan,
            fixed: Fixed::default(),
            portion,
            current: None,
        }
    }

    /// Leaves out of what was scanned what other nodes have.
    fn retain_own(&self, rows: &mut Vec<u32>, values: &mut Vec<TermId>, cx: &Context) {
        let Some(forks) = cx.forks.as_ref().filter(|_| self.own_scan) else {
            return;
        };
        let here = forks.here();
        let mut nodes = Vec::new();
        forks.nodes_of(values, &mut nodes);
        let mut kept = 0;
        for (place, node) in nodes.iter().enumerate() {
            // Written always, so that nothing is to be foreseen.
            (rows[kept], values[kept]) = (rows[place], values[place]);
            kept += usize::from(*node == here);
        }
        rows.truncate(kept);
        values.truncate(kept);
    }

    /// Some of what the rows from the cursor on find.
    fn find(&self, table: &Table, cursor: &mut Cursor, cx: &Context) -> Result<Found, ExecError> {
        let (mut rows, mut values) = (Vec::new(), Vec::new());
        match self.sides.as_slice() {
            [] => match self.place.of_rows(table) {
                Some(graphs) => {
                    let found = (&mut rows, &mut values);
                    self.scan_by_row(graphs, table, cursor, found, cx)?;
                }
                None => {
                    let most = self.portion.rows(table.width());
                    scan(
                        self.allowed.as_ref(),
                        table,
                        cursor,
                        most,
                        (&mut rows, &mut values),
                    );
                }
            },
            sides => self.follow(sides, table, cursor, (&mut rows, &mut values), cx)?,
        }
        self.retain_own(&mut rows, &mut values, cx);
        let mut found = Found {
            rows,
            values,
            graphs: None,
        };
        let same_graph = SameGraph {
            place: &self.place,
            sides: &self.sides,
            classes: &self.classes,
            keep: Some(&self.keep),
        };
        same_graph.settle(&mut found, table, true, cx)?;
        Ok(found)
    }

    /// Each row with the ids that have what is asked for in the graph of the row.
    fn scan_by_row(
        &self,
        graphs: &[TermId],
        table: &Table,
        cursor: &mut Cursor,
        (rows, values): (&mut Vec<u32>, &mut Vec<TermId>),
        cx: &Context,
    ) -> Result<(), ExecError> {
        let most = self.portion.rows(table.width());
        let nothing = self.allowed.as_ref().is_some_and(IdRanges::is_empty);
        let mut of_graph: Option<(TermId, IdRanges)> = None;
        while cursor.key < graphs.len() && values.len() < most {
            let graph = graphs[cursor.key];
            let ids = match &of_graph {
                Some((last, ids)) if *last == graph => ids,
                _ => {
                    cx.check()?;
                    let ids = match cx.ranges_over(graph) && !nothing {
                        true => {
                            cx.members(GraphRef::One(graph), &self.traits, Precision::Exact, None)?
                        }
                        false => None,
                    };
                    &of_graph.insert((graph, ids.unwrap_or_default())).1
                }
            };
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
        Ok(())
    }

    fn follow(
        &self,
        sides: &[ResolvedSide],
        table: &Table,
        cursor: &mut Cursor,
        found: (&mut Vec<u32>, &mut Vec<TermId>),
        cx: &Context,
    ) -> Result<(), ExecError> {
        if self.allowed.as_ref().is_some_and(IdRanges::is_empty) {
            cursor.key = table.rows();
            return Ok(());
        }
        let mut expand = |lists: Option<&[Lists<'_>]>| {
            let Some(lists) = lists else {
                cursor.key = table.rows();
                return Ok(());
            };
            let budget = self.portion.rows(table.width());
            let allowed = (self.allowed.as_ref(), self.traits.as_slice());
            let found = (&mut *found.0, &mut *found.1);
            self.place
                .expand(table, lists, cursor, allowed, budget, found, cx)
        };
        // Light queries are made of such.
        if let [side] = sides {
            let constant = side.constants(table, cx);
            let list = side.list(&constant, table);
            return expand(list.as_ref().map(std::slice::from_ref));
        }
        if self.fixed.is_made() {
            let lists = varying(sides, table);
            expand(lists.as_deref())?;
            self.fixed.retain(found.0, found.1);
            return Ok(());
        }
        let constants = sides.iter().map(|side| side.constants(table, cx));
        let constants: Vec<Vec<TermId>> = constants.collect();
        let lists = sides.iter().zip(&constants);
        let lists = lists.map(|(side, constant)| side.list(constant, table));
        let lists: Option<Vec<Lists<'_>>> = lists.collect();
        expand(lists.as_deref())
    }

    /// Before a table is extended: looks whether what its lists are to share with those of constants is better read
    /// once for all.
    fn meet(&mut self, table: &Table, cx: &Context) -> Result<(), ExecError> {
        if self.place.of_rows(table).is_some() || !self.fixed.count(table.rows()) {
            return Ok(());
        }
        let sides = self.sides.iter();
        let constant = sides.filter_map(|side| Some((side, side.constant_key(cx)?)));
        let constant: Vec<_> = constant.collect();
        let (Some(lists), false) = (varying(&self.sides, table), constant.is_empty()) else {
            return Ok(());
        };
        match lists.is_empty() {
            true => Ok(()),
            false => {
                let graph = self.place.widest();
                self.fixed.meet(table.rows(), &lists, &constant, graph, cx)
            }
        }
    }
}

/// The lists of the rows of sides that do not begin at a constant; `None` if no row has one.
fn varying<'a>(sides: &[ResolvedSide], table: &'a Table) -> Option<Vec<Lists<'a>>> {
    let begins_at_rows = |side: &&ResolvedSide| matches!(side.from, Slot::Var(_));
    let sides = sides.iter().filter(begins_at_rows);
    sides.map(|side| side.list(&[], table)).collect()
}

impl ResolvedSide {
    /// The known end for each row, if it is a constant.
    fn constants(&self, table: &Table, cx: &Context) -> Vec<TermId> {
        match self.from {
            Slot::Const(id) => vec![cx.constant(id); table.rows()],
            Slot::Var(_) => Vec::new(),
        }
    }

    /// The lists of the rows; `None` if no row has one.
    fn list<'a>(&self, constants: &'a [TermId], table: &'a Table) -> Option<Lists<'a>> {
        let keys = match self.from {
            Slot::Const(_) => constants,
            Slot::Var(var) => table.get(var)?,
        };
        Some(Lists {
            predicate: self.predicate?,
            direction: self.direction,
            keys,
        })
    }
}

/// The variable that a step binds, and the ids that it may have.
pub(crate) struct Start {
    var: Var,
    place: Place,
    allowed: Option<IdRanges>,
    classes: Vec<TermId>,
    traits: Vec<Membership>,
}

impl Start {
    /// Of a step with these sides and requirements, and with these steps behind it: of what is
    /// scanned, filters may leave out most.
    pub(crate) fn new(
        (var, scope): (Var, Scope),
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
        let place = Place::new(scope, cx);
        let precision = precision_for(sides, cx);
        let allowed = required_ids(place.widest(), requires, precision, within.as_ref(), cx)?;
        let (classes, traits) = match place {
            Place::Fixed(_) => (Vec::new(), Vec::new()),
            Place::Var(_) => (
                classes_of(requires, cx),
                memberships(requires, cx).unwrap_or_default(),
            ),
        };
        Ok(Self {
            var,
            place,
            allowed,
            classes,
            traits,
        })
    }
}

/// The types among some requirements.
pub(super) fn classes_of(requires: &[Requirement], cx: &Context) -> Vec<TermId> {
    let class = |requirement: &Requirement| match requirement {
        Requirement::Type(class) => Some(cx.constant(*class)),
        Requirement::Has(..) => None,
    };
    requires.iter().filter_map(class).collect()
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
                Some((table, cursor)) => match self.portion.go_on(&table, cursor.key) {
                    row if row == table.rows() => continue,
                    row if row == cursor.key => (table, cursor),
                    key => (table, Cursor { key, offset: 0 }),
                },
                None => match self.input.next(cx)? {
                    Some(table) => {
                        self.portion.begin();
                        (table, Cursor::default())
                    }
                    None => return Ok(None),
                },
            };
            let begin = cursor;
            if begin == Cursor::default() && self.sides.len() > 1 {
                self.meet(&table, cx)?;
            }
            let found = self.find(&table, &mut cursor, cx)?;
            let done = cursor.key >= table.rows();
            if found.values.is_empty() {
                if !done {
                    self.current = Some((table, cursor));
                }
                continue;
            }
            let whole = done && begin == Cursor::default();
            let mut extended = if whole && is_identity(&found.rows, table.rows()) {
                let mut table = table;
                table.retain_columns(&self.keep);
                table
            } else {
                let extended = table.gather(&found.rows, &self.keep);
                if !done {
                    self.current = Some((table, cursor));
                }
                extended
            };
            bind(&mut extended, found, self.var, &self.place, &self.keep);
            return Ok(Some(extended));
        }
    }
}

/// Adds the columns of what was found to its rows.
fn bind(extended: &mut Table, found: Found, var: Var, place: &Place, keep: &VarSet) {
    if keep.contains(var) {
        extended.set(var, found.values);
    }
    if let (Place::Var(graph), Some(graphs)) = (place, found.graphs)
        && keep.contains(*graph)
    {
        extended.set(*graph, graphs);
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
    most: usize,
    (rows, values): (&mut Vec<u32>, &mut Vec<TermId>),
) {
    let ids = ids.expect("a scan names what it scans");
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

/// Where an exploration starts, to be shared out among threads: a list of ids.
pub(crate) struct Seed {
    ids: SeedIds,
    var: Var,
    place: Place,
    side: Option<ResolvedSide>,
    classes: Vec<TermId>,
}

enum SeedIds {
    /// The ids of a scan.
    Ids(IdRanges),
    /// The neighbours of a constant.
    Edges {
        /// The constant.
        key: TermId,
        predicate: PredicateId,
        direction: Direction,
        /// Which neighbours count.
        allowed: Option<IdRanges>,
    },
}

impl Seed {
    /// The start of an exploration whose first step is this, with these steps behind it, if it
    /// can be shared out.
    pub(crate) fn of(
        var: (Var, Scope),
        sides: &[Side],
        requires: &[Requirement],
        after: &[PlannedStep],
        cx: &Context,
    ) -> Result<Option<Self>, ExecError> {
        let side = match sides {
            [] => None,
            [side] => Some(ResolvedSide::new(side, cx)),
            _ => return Ok(None),
        };
        let start = Start::new(var, sides, requires, after, cx)?;
        let ids = match side {
            None => start.allowed.map(SeedIds::Ids),
            Some(ResolvedSide {
                from: Slot::Const(from),
                predicate: Some(predicate),
                direction,
            }) => Some(SeedIds::Edges {
                key: cx.constant(from),
                predicate,
                direction,
                allowed: start.allowed,
            }),
            Some(_) => None,
        };
        Ok(ids.map(|ids| Self {
            ids,
            var: start.var,
            place: start.place,
            side,
            classes: start.classes,
        }))
    }

    /// The variable that it binds, if no two morsels have the same value of it.
    pub(crate) fn distinct_var(&self) -> Option<Var> {
        let is_of_one_graph = matches!(self.place, Place::Fixed(_));
        (is_of_one_graph || matches!(self.ids, SeedIds::Ids(_))).then_some(self.var)
    }

    /// The variable that it binds.
    pub(crate) fn var(&self) -> Var {
        self.var
    }

    /// How many ids there are to share out.
    pub(crate) fn len(&self, cx: &Context) -> Result<u64, ExecError> {
        match &self.ids {
            SeedIds::Ids(ids) => Ok(ids.len()),
            SeedIds::Edges {
                key,
                predicate,
                direction,
                ..
            } => {
                let list = Lists {
                    predicate: *predicate,
                    direction: *direction,
                    keys: &[*key],
                };
                cx.places(self.place.widest(), &list)
            }
        }
    }

    fn copy(&self, from: u64, count: usize, cx: &Context) -> Result<Vec<TermId>, ExecError> {
        let mut out = Vec::with_capacity(count);
        match &self.ids {
            SeedIds::Ids(ids) => {
                ids.copy(from, count, &mut out);
            }
            SeedIds::Edges {
                key,
                predicate,
                direction,
                allowed,
            } => {
                let list = Lists {
                    predicate: *predicate,
                    direction: *direction,
                    keys: &[*key],
                };
                let mut cursor = Cursor {
                    key: 0,
                    offset: from as usize,
                };
                let end = from as usize + count;
                while cursor.key == 0 && cursor.offset < end {
                    // Of what is looked at, `allowed` may leave little.
                    let budget = out.len() + (end - cursor.offset);
                    let graph = self.place.widest();
                    let rows = &mut Vec::new();
                    rows.resize(out.len(), 0);
                    let allowed = allowed.as_ref();
                    cx.expand(graph, &[list], &mut cursor, allowed, budget, rows, &mut out)?;
                }
            }
        }
        Ok(out)
    }

    /// The rows of a piece.
    fn rows(
        &self,
        from: u64,
        count: usize,
        width: usize,
        cx: &Context,
    ) -> Result<Table, ExecError> {
        let values = self.copy(from, count, cx)?;
        let mut found = Found {
            rows: vec![0; values.len()],
            values,
            graphs: None,
        };
        let same_graph = SameGraph {
            place: &self.place,
            sides: self.side.as_slice(),
            classes: &self.classes,
            keep: None,
        };
        same_graph.settle(&mut found, &Table::with_rows(width, 1), false, cx)?;
        let mut table = Table::with_rows(width, found.values.len());
        table.set(self.var, found.values);
        if let (Place::Var(graph), Some(graphs)) = (&self.place, found.graphs) {
            table.set(*graph, graphs);
        }
        Ok(table)
    }
}

/// The first step of one of several threads: takes the next piece of the seed.
pub(crate) struct SeededBind {
    pub(crate) seed: Arc<Seed>,
    pub(crate) taken: Arc<AtomicU64>,
    pub(crate) len: u64,
    /// Ids taken at once.
    pub(crate) piece: u64,
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
        self.seed.rows(from, count, self.width, cx).map(Some)
    }
}
