//! Which graph does a step look into: one for all rows, or one for each row?

use std::borrow::Cow;
use std::sync::Arc;

use jindou_model::{
    Cursor, Direction, GraphRef, IdRanges, Lists, Membership, Precision, PredicateId, TermId,
};
use jindou_plan::physical::{Scope, Slot, Var};
use rustc_hash::FxHashMap;

use super::ResolvedSide;
use crate::ExecError;
use crate::context::Context;
use crate::table::{Table, VarSet};

/// A graph that is the same for all rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Graph {
    Default,
    Named,
    Union,
    One(TermId),
    Some(Arc<[TermId]>),
}

impl Graph {
    /// The default graph of the query.
    pub(crate) fn default_of(cx: &Context) -> Self {
        match &cx.dataset {
            None if cx.union_default_graph => Self::Union,
            None => Self::Default,
            Some(dataset) if dataset.default_is_all => Self::Named,
            Some(dataset) => match dataset.default.as_slice() {
                [only] => Self::One(*only),
                several => Self::Some(several.into()),
            },
        }
    }

    /// The merge of the named graphs of the query's dataset.
    pub(crate) fn all_named(cx: &Context) -> Self {
        match &cx.dataset {
            None => Self::Named,
            Some(dataset) => Self::Some(dataset.named.as_slice().into()),
        }
    }

    /// A named graph, if it is one of the query's dataset; else an empty one.
    pub(crate) fn named(graph: TermId, cx: &Context) -> Self {
        match cx.is_in_dataset(graph) {
            true => Self::One(graph),
            false => Self::Some(Arc::from([])),
        }
    }

    pub(crate) fn as_ref(&self) -> GraphRef<'_> {
        match self {
            Self::Default => GraphRef::Default,
            Self::Named => GraphRef::Named,
            Self::Union => GraphRef::Union,
            Self::One(graph) => GraphRef::One(*graph),
            Self::Some(graphs) => GraphRef::Some(graphs),
        }
    }
}

/// The scope of a step, resolved.
#[derive(Clone, Debug)]
pub(crate) enum Place {
    /// One graph for all rows.
    Fixed(Graph),
    /// The graph of each row, or any where that is not bound.
    Var(Var),
}

impl Place {
    pub(crate) fn new(scope: Scope, cx: &Context) -> Self {
        match scope {
            Scope::Default => Self::Fixed(Graph::default_of(cx)),
            Scope::Graph(Slot::Const(id)) => Self::Fixed(Graph::named(cx.constant(id), cx)),
            Scope::Graph(Slot::Var(var)) => Self::Var(var),
            Scope::Named => Self::Fixed(Graph::all_named(cx)),
        }
    }

    /// A graph that has at least what any row may find.
    pub(crate) fn widest(&self) -> GraphRef<'_> {
        match self {
            Self::Fixed(graph) => graph.as_ref(),
            Self::Var(_) => GraphRef::Named,
        }
    }

    /// True if the graph is a variable of which nobody wants the values, and each edge of a predicate
    /// is in one graph: then it makes no rows, and need not be found.
    pub(crate) fn is_unwanted(&self, predicate: PredicateId, keep: &VarSet, cx: &Context) -> bool {
        let Self::Var(graph) = self else {
            return false;
        };
        let edges = || cx.source.edges(GraphRef::Named, predicate);
        let quads = || cx.source.named_quads(predicate);
        !keep.contains(*graph) && cx.dataset.is_none() && edges().is_some() && edges() == quads()
    }

    /// The graph of each row, where rows have one.
    pub(crate) fn of_rows<'t>(&self, table: &'t Table) -> Option<&'t [TermId]> {
        match self {
            Self::Fixed(_) => None,
            Self::Var(var) => table.get(*var),
        }
    }

    /// Follows lists as [`Context::expand`], each row in its own graph or in any; what the rows of
    /// one graph find there is in `allowed` and has the `traits` in that graph.
    #[expect(clippy::too_many_arguments, reason = "those of the call that it makes")]
    pub(crate) fn expand(
        &self,
        table: &Table,
        lists: &[Lists<'_>],
        cursor: &mut Cursor,
        (allowed, traits): (Option<&IdRanges>, &[Membership]),
        budget: usize,
        (rows, out): (&mut Vec<u32>, &mut Vec<TermId>),
        cx: &Context,
    ) -> Result<(), ExecError> {
        let Some(graphs) = self.of_rows(table) else {
            return cx.expand(self.widest(), lists, cursor, allowed, budget, rows, out);
        };
        let graphs = in_dataset(graphs, cx);
        let is_type = |asked: &Membership| matches!(asked, Membership::Type(_));
        if traits.iter().any(is_type) {
            let found = (rows, out);
            return expand_typed(&graphs, lists, cursor, traits, budget, found, cx);
        }
        let graph = GraphRef::Each(&graphs);
        cx.expand(graph, lists, cursor, allowed, budget, rows, out)
    }
}

/// Follows lists to what has a type in the graph of the row. Mostly these are few ranges in each
/// graph, so that long lists are cut: one run of rows of a graph after the other.
fn expand_typed(
    graphs: &[TermId],
    lists: &[Lists<'_>],
    cursor: &mut Cursor,
    traits: &[Membership],
    budget: usize,
    (rows, out): (&mut Vec<u32>, &mut Vec<TermId>),
    cx: &Context,
) -> Result<(), ExecError> {
    let mut of_run = Vec::with_capacity(lists.len());
    while cursor.key < graphs.len() && out.len() < budget {
        let first = cursor.key;
        let run = first..end_of_run(graphs, first);
        if graphs[first].is_none() {
            *cursor = Cursor {
                key: run.end,
                offset: 0,
            };
            continue;
        }
        of_run.clear();
        of_run.extend(lists.iter().map(|list| Lists {
            keys: &list.keys[run.clone()],
            ..*list
        }));
        let mut of_keys = Cursor {
            key: 0,
            offset: cursor.offset,
        };
        let begin = out.len();
        let graph = GraphRef::One(graphs[first]);
        let allowed = cx.members(graph, traits, Precision::Filter, None)?;
        let allowed = allowed.as_ref();
        cx.expand(graph, &of_run, &mut of_keys, allowed, budget, rows, out)?;
        let found = rows[begin..].iter_mut();
        found.for_each(|row| *row += first as u32);
        *cursor = Cursor {
            key: first + of_keys.key,
            offset: of_keys.offset,
        };
    }
    Ok(())
}

/// The graphs that are in the query's dataset, and `NONE` for others.
fn in_dataset<'g>(graphs: &'g [TermId], cx: &Context) -> Cow<'g, [TermId]> {
    if cx.dataset.is_none() {
        return Cow::Borrowed(graphs);
    }
    let known = graphs.iter().map(|graph| match cx.ranges_over(*graph) {
        true => *graph,
        false => TermId::NONE,
    });
    Cow::Owned(known.collect())
}

/// Where the run of equal ids that begins at `first` ends.
fn end_of_run(ids: &[TermId], first: usize) -> usize {
    let same = ids[first..].iter().take_while(|id| **id == ids[first]);
    first + same.count()
}

/// Appends the number of each row whose edge is in the graph of the row.
pub(crate) fn contains_by_row(
    graphs: &[TermId],
    list: &Lists<'_>,
    to: &[TermId],
    rows: &mut Vec<u32>,
    cx: &Context,
) -> Result<(), ExecError> {
    let graphs = in_dataset(graphs, cx);
    cx.contains(GraphRef::Each(&graphs), list, to, rows)
}

/// The graphs of the query's dataset that edges are in: the row of each, and the graph.
pub(crate) fn graphs_of(
    list: &Lists<'_>,
    to: &[TermId],
    cx: &Context,
) -> Result<(Vec<u32>, Vec<TermId>), ExecError> {
    let (mut rows, mut graphs) = (Vec::new(), Vec::new());
    cx.graphs_of(list, to, &mut rows, &mut graphs)?;
    if cx.dataset.is_some() {
        let kept: Vec<usize> = (0..graphs.len())
            .filter(|index| cx.ranges_over(graphs[*index]))
            .collect();
        rows = kept.iter().map(|index| rows[*index]).collect();
        graphs = kept.iter().map(|index| graphs[*index]).collect();
    }
    Ok((rows, graphs))
}

/// Rows found, each with what it is to bind, and the graph of each where that is known.
pub(crate) struct Found {
    /// Numbers of rows of the input.
    pub(crate) rows: Vec<u32>,
    pub(crate) values: Vec<TermId>,
    pub(crate) graphs: Option<Vec<TermId>>,
}

impl Found {
    fn keep(&mut self, kept: &[u32]) {
        if kept.len() == self.rows.len() {
            return;
        }
        let pick = |list: &[TermId]| kept.iter().map(|at| list[*at as usize]).collect();
        self.rows = kept.iter().map(|at| self.rows[*at as usize]).collect();
        self.values = pick(&self.values);
        self.graphs = self.graphs.as_deref().map(pick);
    }
}

/// What must be in one graph with each other, where that graph is a variable: edges from known ends
/// to the values found, and types of these.
pub(crate) struct SameGraph<'a> {
    pub(crate) place: &'a Place,
    pub(crate) sides: &'a [ResolvedSide],
    pub(crate) classes: &'a [TermId],
    /// The variables that later steps want; all if that is not known.
    pub(crate) keep: Option<&'a VarSet>,
}

impl SameGraph<'_> {
    /// True if there is one edge to each value, and nobody wants to know its graph.
    fn is_unwanted(&self, cx: &Context) -> bool {
        let predicate = match (self.sides, self.classes) {
            ([side], []) => side.predicate,
            ([], [_]) => Some(PredicateId::TYPE),
            _ => None,
        };
        let wanted = self.keep.zip(predicate);
        wanted.is_some_and(|(keep, predicate)| self.place.is_unwanted(predicate, keep, cx))
    }

    /// Gives what was found its graphs, and drops what is in none together; `followed` says that
    /// the edges were followed to what has the types in the graphs of the rows, where these have
    /// some.
    pub(crate) fn settle(
        &self,
        found: &mut Found,
        table: &Table,
        followed: bool,
        cx: &Context,
    ) -> Result<(), ExecError> {
        if matches!(self.place, Place::Fixed(_)) || found.rows.is_empty() {
            return Ok(());
        }
        let (mut sides, mut classes) = (self.sides, self.classes);
        match self.place.of_rows(table) {
            Some(graphs) => {
                let of_row = |row: &u32| graphs[*row as usize];
                found.graphs = Some(found.rows.iter().map(of_row).collect());
                if followed {
                    (sides, classes) = (&[], &[]);
                }
            }
            None if self.is_unwanted(cx) => return Ok(()),
            None => {
                let (rows, graphs) = if let Some((first, others)) = sides.split_first() {
                    sides = others;
                    let keys = keys_of(*first, table, &found.rows, cx);
                    graphs_of(&list(*first, &keys), &found.values, cx)?
                } else if let Some((class, others)) = classes.split_first() {
                    classes = others;
                    let to = vec![*class; found.values.len()];
                    graphs_of(&types_of(&found.values), &to, cx)?
                } else {
                    return Ok(());
                };
                // Mostly each is in one graph.
                let is_identity = rows.len() == found.rows.len() && (0..).eq(rows.iter().copied());
                if !is_identity {
                    found.values = rows.iter().map(|at| found.values[*at as usize]).collect();
                    found.rows = rows.iter().map(|at| found.rows[*at as usize]).collect();
                }
                found.graphs = Some(graphs);
            }
        }
        for side in sides {
            let keys = keys_of(*side, table, &found.rows, cx);
            let mut kept = Vec::new();
            let graphs = found.graphs.as_deref().unwrap_or_default();
            contains_by_row(graphs, &list(*side, &keys), &found.values, &mut kept, cx)?;
            found.keep(&kept);
        }
        for class in classes {
            let mut kept = Vec::new();
            let graphs = found.graphs.as_deref().unwrap_or_default();
            typed_by_row(graphs, &found.values, *class, &mut kept, cx)?;
            found.keep(&kept);
        }
        Ok(())
    }
}

/// Rows are tested against the set of a graph's vertices that have a type where each graph has so
/// many of them.
const MANY_ROWS: usize = 8;

/// Appends the number of each row whose vertex has a type in the graph of the row.
pub(crate) fn typed_by_row(
    graphs: &[TermId],
    vertices: &[TermId],
    class: TermId,
    rows: &mut Vec<u32>,
    cx: &Context,
) -> Result<(), ExecError> {
    let members = |graph: TermId| -> Result<IdRanges, ExecError> {
        if !cx.ranges_over(graph) {
            return Ok(IdRanges::new());
        }
        let asked = [Membership::Type(class)];
        let typed = cx.members(GraphRef::One(graph), &asked, Precision::Exact, None)?;
        Ok(typed.unwrap_or_default())
    };
    if let Some(first) = graphs.first()
        && end_of_run(graphs, 0) == graphs.len()
    {
        let typed = members(*first)?;
        let all = (0..).zip(vertices);
        rows.extend(
            all.filter(|(_, id)| typed.contains(**id))
                .map(|(row, _)| row),
        );
        return Ok(());
    }
    let mut numbers: FxHashMap<TermId, usize> = FxHashMap::default();
    let mut different = Vec::new();
    let mut number = |graph: &TermId| {
        *numbers.entry(*graph).or_insert_with(|| {
            different.push(*graph);
            different.len() - 1
        })
    };
    let of_row: Vec<usize> = graphs.iter().map(&mut number).collect();
    if different.len() * MANY_ROWS > graphs.len() {
        let to = vec![class; vertices.len()];
        return contains_by_row(graphs, &types_of(vertices), &to, rows, cx);
    }
    let sets: Vec<IdRanges> = different
        .into_iter()
        .map(members)
        .collect::<Result<_, _>>()?;
    let all = (0..).zip(of_row.iter().zip(vertices));
    let typed = all.filter(|(_, (graph, id))| sets[**graph].contains(**id));
    rows.extend(typed.map(|(row, _)| row));
    Ok(())
}

fn types_of(keys: &[TermId]) -> Lists<'_> {
    Lists {
        predicate: PredicateId::TYPE,
        direction: Direction::Out,
        keys,
    }
}

/// The lists of a side whose predicate has edges.
fn list<'a>(side: ResolvedSide, keys: &'a [TermId]) -> Lists<'a> {
    Lists {
        predicate: side.predicate.expect("its edges were followed"),
        direction: side.direction,
        keys,
    }
}

/// The known end of a side in some rows of a table.
fn keys_of(side: ResolvedSide, table: &Table, rows: &[u32], cx: &Context) -> Vec<TermId> {
    match side.from {
        Slot::Const(id) => vec![cx.constant(id); rows.len()],
        Slot::Var(var) => {
            let column = table.get(var);
            let value = |row: &u32| column.map_or(TermId::NONE, |ids| ids[*row as usize]);
            rows.iter().map(value).collect()
        }
    }
}
