//! GRAPH with a variable around a plan that looks at one graph at a time.

use jindou_model::TermId;
use jindou_plan::physical::{Slot, Var};

use crate::ExecError;
use crate::context::{Booked, Context};
use crate::operator::{Boxed, Operator, Template};
use crate::steps::{is_named_graph, named_graphs};
use crate::table::{Table, VarSet};

/// [`jindou_plan::physical::Operator::EachGraph`].
pub(super) struct EachGraph {
    template: Template,
    scope: Var,
    name: Var,
    keep: VarSet,
    /// The graphs still to come, the next one last.
    graphs: Option<Vec<TermId>>,
    /// Of these.
    booked: Booked,
    /// The graph in work.
    current: Option<(TermId, Boxed)>,
}

impl EachGraph {
    pub(super) fn new(template: Template, scope: Var, name: Var, keep: VarSet) -> Self {
        Self {
            template,
            scope,
            name,
            keep,
            graphs: None,
            booked: Booked::default(),
            current: None,
        }
    }

    fn all_graphs(&self, cx: &Context) -> Vec<TermId> {
        match self.template.given(self.name) {
            Some(graph) if is_named_graph(cx, Slot::Var(self.name), graph) => vec![graph],
            Some(_) => Vec::new(),
            None => named_graphs(cx),
        }
    }

    /// The rows with their graph's name; those that bind it to something else are dropped.
    fn name_rows(&self, mut table: Table, graph: TermId) -> Table {
        let fits = |row: &u32| {
            let value = table.value(self.name, *row as usize);
            value.is_none() || value == graph
        };
        let rows: Vec<u32> = (0..table.rows() as u32).filter(fits).collect();
        table.retain_rows(&rows);
        table.retain_columns(&self.keep);
        if self.keep.contains(self.name) {
            table.set(self.name, vec![graph; rows.len()]);
        }
        table
    }
}

impl Operator for EachGraph {
    fn produce(&mut self, cx: &Context) -> Result<Option<Table>, ExecError> {
        if self.graphs.is_none() {
            let graphs = self.all_graphs(cx);
            let bytes = graphs.capacity() * size_of::<TermId>();
            cx.book(&mut self.booked, bytes)?;
            self.graphs = Some(graphs);
        }
        loop {
            cx.check()?;
            if let Some((graph, rows)) = &mut self.current {
                let graph = *graph;
                if let Some(table) = rows.next(cx)? {
                    return Ok(Some(self.name_rows(table, graph)));
                }
                self.current = None;
            }
            let Some(graph) = self.graphs.as_mut().and_then(Vec::pop) else {
                return Ok(None);
            };
            let rows = self.template.start(&[(self.scope, graph)], cx)?;
            self.current = Some((graph, rows));
        }
    }
}
