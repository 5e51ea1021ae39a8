//! Filters by the graph: does this edge exist, has this vertex this type?

use std::borrow::Cow;

use jindou_model::{Direction, IdRanges, Lists, Precision, PredicateId, TermId};
use jindou_plan::physical::{Requirement, Scope, Side, Slot};

use super::bind::classes_of;
use super::scope::{Place, contains_by_row, graphs_of};
use super::{ResolvedSide, required_ids};
use crate::ExecError;
use crate::context::Context;
use crate::operator::{Boxed, Operator};
use crate::table::{Table, VarSet};

/// The ids of a slot, one a row; `None` where no row has one.
fn column<'t>(slot: Slot, table: &'t Table, cx: &Context) -> Option<Cow<'t, [TermId]>> {
    match slot {
        Slot::Const(id) => Some(Cow::Owned(vec![cx.constant(id); table.rows()])),
        Slot::Var(var) => table.get(var).map(Cow::Borrowed),
    }
}

/// The rows of a table that are kept, perhaps several times, with their graphs where these are
/// found here.
struct Kept {
    rows: Vec<u32>,
    graphs: Option<Vec<TermId>>,
}

impl Kept {
    /// The rows whose edges are in the graph of the step, or in any.
    fn of(
        (place, keep): (&Place, &VarSet),
        list: &Lists<'_>,
        to: &[TermId],
        table: &Table,
        cx: &Context,
    ) -> Result<Self, ExecError> {
        let mut rows = Vec::new();
        if let Some(graphs) = place.of_rows(table) {
            contains_by_row(graphs, list, to, &mut rows, cx)?;
            return Ok(Self { rows, graphs: None });
        }
        cx.contains(place.widest(), list, to, &mut rows)?;
        if matches!(place, Place::Fixed(_)) || place.is_unwanted(list.predicate, keep, cx) {
            return Ok(Self { rows, graphs: None });
        }
        let pick = |ids: &[TermId]| {
            rows.iter()
                .map(|row| ids[*row as usize])
                .collect::<Vec<_>>()
        };
        let (keys, to) = (pick(list.keys), pick(to));
        let (found, graphs) = graphs_of(
            &Lists {
                keys: &keys,
                ..*list
            },
            &to,
            cx,
        )?;
        Ok(Self {
            rows: found.iter().map(|at| rows[*at as usize]).collect(),
            graphs: Some(graphs),
        })
    }

    /// The kept rows.
    fn apply(self, table: Table, place: &Place, keep: &VarSet) -> Table {
        let Some(graphs) = self.graphs else {
            let mut table = table;
            table.retain_columns(keep);
            table.retain_rows(&self.rows);
            return table;
        };
        let mut extended = table.gather(&self.rows, keep);
        if let Place::Var(graph) = place
            && keep.contains(*graph)
        {
            extended.set(*graph, graphs);
        }
        extended
    }
}

/// [`jindou_plan::physical::Step::Check`].
pub(crate) struct Check {
    input: Boxed,
    side: ResolvedSide,
    to: Slot,
    place: Place,
    keep: VarSet,
}

impl Check {
    pub(crate) fn new(
        input: Boxed,
        (side, to): (Side, Slot),
        scope: Scope,
        keep: VarSet,
        cx: &Context,
    ) -> Self {
        Self {
            input,
            side: ResolvedSide::new(&side, cx),
            to,
            place: Place::new(scope, cx),
            keep,
        }
    }
}

impl Operator for Check {
    fn produce(&mut self, cx: &Context) -> Result<Option<Table>, ExecError> {
        cx.check()?;
        let Some(table) = self.input.next(cx)? else {
            return Ok(None);
        };
        let nothing = Kept {
            rows: Vec::new(),
            graphs: None,
        };
        let kept = match (
            self.side.predicate,
            column(self.side.from, &table, cx),
            column(self.to, &table, cx),
        ) {
            (Some(predicate), Some(keys), Some(to)) => {
                let list = Lists {
                    predicate,
                    direction: self.side.direction,
                    keys: &keys,
                };
                Kept::of((&self.place, &self.keep), &list, &to, &table, cx)?
            }
            _ => nothing,
        };
        Ok(Some(kept.apply(table, &self.place, &self.keep)))
    }
}

/// [`jindou_plan::physical::Step::Test`].
pub(crate) struct Test {
    input: Boxed,
    slot: Slot,
    allowed: Option<IdRanges>,
    place: Place,
    /// Types that must be looked up in the graph of each row.
    classes: Vec<TermId>,
    keep: VarSet,
}

impl Test {
    pub(crate) fn new(
        input: Boxed,
        slot: Slot,
        requires: &[Requirement],
        scope: Scope,
        keep: VarSet,
        cx: &Context,
    ) -> Result<Self, ExecError> {
        let place = Place::new(scope, cx);
        Ok(Self {
            input,
            slot,
            allowed: required_ids(place.widest(), requires, Precision::Filter, None, cx)?,
            classes: match place {
                Place::Fixed(_) => Vec::new(),
                Place::Var(_) => classes_of(requires, cx),
            },
            place,
            keep,
        })
    }

    /// The rows whose vertex has a type in the graph of the row, or in any; `is_last` if no other type is
    /// to be looked up.
    fn typed(
        &self,
        table: Table,
        class: TermId,
        is_last: bool,
        cx: &Context,
    ) -> Result<Table, ExecError> {
        let mut keep = self.keep.clone();
        let mentioned = |slot: Slot, keep: &mut VarSet| {
            if let Slot::Var(var) = slot {
                keep.insert(var);
            }
        };
        if !is_last {
            mentioned(self.slot, &mut keep);
            if let Place::Var(graph) = self.place {
                mentioned(Slot::Var(graph), &mut keep);
            }
        }
        let kept = match column(self.slot, &table, cx) {
            Some(keys) => {
                let list = Lists {
                    predicate: PredicateId::TYPE,
                    direction: Direction::Out,
                    keys: &keys,
                };
                let to = vec![class; table.rows()];
                Kept::of((&self.place, &keep), &list, &to, &table, cx)?
            }
            None => Kept {
                rows: Vec::new(),
                graphs: None,
            },
        };
        Ok(kept.apply(table, &self.place, &keep))
    }
}

impl Operator for Test {
    fn produce(&mut self, cx: &Context) -> Result<Option<Table>, ExecError> {
        cx.check()?;
        let Some(mut table) = self.input.next(cx)? else {
            return Ok(None);
        };
        if let Some(allowed) = &self.allowed {
            let rows: Vec<u32> = (0..table.rows() as u32)
                .filter(|row| allowed.contains(cx.slot(self.slot, &table, *row as usize)))
                .collect();
            table.retain_rows(&rows);
        }
        for (number, class) in self.classes.iter().enumerate() {
            let is_last = number + 1 == self.classes.len();
            table = self.typed(table, *class, is_last, cx)?;
        }
        table.retain_columns(&self.keep);
        Ok(Some(table))
    }
}
