//! `GRAPH ?g {}`: which named graphs are there?

use jindou_model::{Cursor, TermId};
use jindou_plan::physical::{Slot, Var};

use crate::ExecError;
use crate::context::{Booked, Context};
use crate::operator::{Boxed, Operator};
use crate::table::{Table, VarSet, batch_rows};

/// [`jindou_plan::physical::Step::Graphs`].
pub(crate) struct EachGraph {
    input: Boxed,
    graph: Slot,
    keep: VarSet,
    /// All graphs, once they were asked for.
    graphs: Option<Vec<TermId>>,
    /// Of these.
    booked: Booked,
    current: Option<(Table, Cursor)>,
}

impl EachGraph {
    pub(crate) fn new(input: Boxed, graph: Slot, keep: VarSet) -> Self {
        Self {
            input,
            graph,
            keep,
            graphs: None,
            booked: Booked::default(),
            current: None,
        }
    }
}

/// The named graphs of the query's dataset: those that its clause names, with quads or without (SPARQL 1.1,
/// 13.2.2), or else those of the store, which have quads.
pub(crate) fn named_graphs(cx: &Context) -> Vec<TermId> {
    if let Some(dataset) = &cx.dataset {
        return dataset.named.clone();
    }
    let mut graphs = Vec::new();
    cx.source.graphs(&mut graphs);
    graphs
}

/// True if the graph is a named graph of the query's dataset, for what GRAPH has: a name, or a variable.
pub(crate) fn is_named_graph(cx: &Context, slot: Slot, graph: TermId) -> bool {
    let is_in_dataset = match slot {
        Slot::Const(_) => cx.is_in_dataset(graph),
        Slot::Var(_) => cx.ranges_over(graph),
    };
    is_in_dataset && (cx.is_named_by_clause(graph) || cx.source.has_graph(graph))
}

impl Operator for EachGraph {
    fn produce(&mut self, cx: &Context) -> Result<Option<Table>, ExecError> {
        loop {
            cx.check()?;
            let (mut table, cursor) = match self.current.take() {
                Some(current) => current,
                None => match self.input.next(cx)? {
                    Some(table) => (table, Cursor::default()),
                    None => return Ok(None),
                },
            };
            let unbound = match self.graph {
                Slot::Var(var) if table.get(var).is_none() => Some(var),
                _ => None,
            };
            let Some(var) = unbound else {
                let rows: Vec<u32> = (0..table.rows() as u32)
                    .filter(|row| {
                        let graph = cx.slot(self.graph, &table, *row as usize);
                        is_named_graph(cx, self.graph, graph)
                    })
                    .collect();
                table.retain_columns(&self.keep);
                table.retain_rows(&rows);
                return Ok(Some(table));
            };
            if self.graphs.is_none() {
                let graphs = named_graphs(cx);
                let bytes = graphs.capacity() * size_of::<TermId>();
                cx.book(&mut self.booked, bytes)?;
                self.graphs = Some(graphs);
            }
            if let Some(extended) = self.extend(table, cursor, var) {
                return Ok(Some(extended));
            }
        }
    }
}

impl EachGraph {
    /// Some rows with their graphs; the rest stays in `current`.
    fn extend(&mut self, table: Table, mut cursor: Cursor, var: Var) -> Option<Table> {
        let graphs = self.graphs.as_deref().unwrap_or_default();
        let (mut rows, mut values) = (Vec::new(), Vec::new());
        let most = batch_rows(table.width());
        while cursor.key < table.rows() && values.len() < most {
            let end = graphs.len().min(cursor.offset + most - values.len());
            values.extend_from_slice(&graphs[cursor.offset..end]);
            rows.resize(values.len(), cursor.key as u32);
            cursor.offset = end;
            if end == graphs.len() {
                cursor = Cursor {
                    key: cursor.key + 1,
                    offset: 0,
                };
            }
        }
        let extended = (!values.is_empty()).then(|| {
            let mut extended = table.gather(&rows, &self.keep);
            extended.set(var, values);
            extended
        });
        if cursor.key < table.rows() {
            self.current = Some((table, cursor));
        }
        extended
    }
}
