//! `p?` from known ends: each itself and its neighbours, many at once without any search.

use jindou_model::{Cursor, Direction, Lists, PredicateId, TermId};
use jindou_plan::physical::{Slot, Var};

use super::super::scope::Graph;
use super::automaton::{Automaton, Edge};
use super::view::View;
use crate::ExecError;
use crate::context::Context;
use crate::table::{Table, VarSet, batch_rows};

/// The edge of a path that is one edge or none.
pub(super) fn edge_of(automaton: &Automaton) -> Option<(PredicateId, Direction)> {
    let [step] = automaton.states[0].as_slice() else {
        return None;
    };
    let ends = step
        .targets
        .iter()
        .all(|target| target.accepts && automaton.states[target.state].is_empty());
    match step.edge {
        Edge::Of(predicate, direction) if automaton.is_nullable && ends => {
            Some((predicate, direction))
        }
        _ => None,
    }
}

/// Rows that have one of the ends, in work.
pub(super) struct OrNothing {
    table: Table,
    from: Var,
    to: Var,
    edge: (PredicateId, Direction),
    /// None until the rows themselves were handed on.
    cursor: Option<Cursor>,
}

impl OrNothing {
    /// The rows of a table, if one end is bound in all of them and the other in none; `edges`
    /// are those of the path from the subject and from the object.
    pub(super) fn new(
        table: Table,
        ends: [Slot; 2],
        edges: [Option<(PredicateId, Direction)>; 2],
    ) -> Result<Self, Table> {
        let [Slot::Var(subject), Slot::Var(object)] = ends else {
            return Err(table);
        };
        let is_bound = |var| {
            table
                .get(var)
                .is_some_and(|ids| !ids.contains(&TermId::NONE))
        };
        let (from, to, edge) = match (table.get(subject), table.get(object)) {
            (Some(_), None) => (subject, object, edges[0]),
            (None, Some(_)) => (object, subject, edges[1]),
            _ => return Err(table),
        };
        match edge {
            Some(edge) if is_bound(from) => Ok(Self {
                table,
                from,
                to,
                edge,
                cursor: None,
            }),
            _ => Err(table),
        }
    }

    /// Some more rows; `None` at the end.
    pub(super) fn next(
        &mut self,
        graph: &Graph,
        keep: &VarSet,
        cx: &Context,
    ) -> Result<Option<Table>, ExecError> {
        let keys = self.table.get(self.from).unwrap_or_default();
        let (mut rows, mut values) = (Vec::new(), Vec::new());
        match &mut self.cursor {
            None => {
                let view = View::new(graph.clone());
                for (row, key) in (0..).zip(keys) {
                    if view.has(*key, cx)? {
                        rows.push(row);
                    }
                }
                values.extend(rows.iter().map(|row| keys[*row as usize]));
                self.cursor = Some(Cursor::default());
            }
            Some(cursor) if cursor.key < keys.len() => {
                let (predicate, direction) = self.edge;
                let list = Lists {
                    predicate,
                    direction,
                    keys,
                };
                let most = batch_rows(self.table.width());
                let graph = graph.as_ref();
                cx.expand(graph, &[list], cursor, None, most, &mut rows, &mut values)?;
                // Each end once: the row itself was handed on.
                let is_other = |index: &usize| keys[rows[*index] as usize] != values[*index];
                let others: Vec<usize> = (0..rows.len()).filter(is_other).collect();
                if others.len() < rows.len() {
                    rows = others.iter().map(|index| rows[*index]).collect();
                    values = others.iter().map(|index| values[*index]).collect();
                }
            }
            Some(_) => return Ok(None),
        }
        let mut extended = self.table.gather(&rows, keep);
        if keep.contains(self.to) {
            extended.set(self.to, values);
        }
        Ok(Some(extended))
    }
}
