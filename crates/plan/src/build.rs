//! How does a query in its logical form become a plan?

use std::sync::Arc;

use crate::algebra::{LogicalForm, Query};
use crate::convert::narrow;
use crate::error::PlanError;
use crate::expression::Expression;
use crate::facts::Source;
use crate::group::Grouper;
use crate::levels::levels;
use crate::modifiers::modified;
use crate::patience::Patience;
use crate::physical::{
    Form, Node, Operator, OrderKey, Plan, PlannedStep, RememberedIds, Scope, Slot, Step,
    TemplateSlot, TemplateTriple, Var,
};
use crate::statistics::Statistics;
use jindou_model::TermId;
use rustc_hash::FxHashSet;

/// Plans a query, unless it is no more wanted before that is done.
///
/// # Errors
/// [`PlanError::Interrupted`], and [`PlanError::TooLarge`] where a row would have more columns than
/// there are numbers of variables.
pub(crate) fn build(
    query: Query,
    statistics: &dyn Statistics,
    patience: &Patience<'_>,
) -> Result<Plan, PlanError> {
    patience.ask()?;
    let dataset = query
        .dataset
        .as_ref()
        .map(|dataset| (dataset.default.len(), dataset.named.len()));
    let union = query.union_default_graph && dataset.is_none();
    let merged = graphs_with_windows(&query, statistics);
    let source = Source::new(statistics, &query.constants, dataset, union, patience);
    let source = source.with_default(merged);
    let rows = Grouper::new(&source).alone(&query.pattern);
    let mut cost = rows.cost;
    let (mut root, more) = modified(rows.into_node(), query.modifiers, columns(&query.form));
    cost += more;
    cost += root.rows;
    let mut numbering = Numbering {
        patience,
        next: 0,
        numbered: 0,
        added: 0,
        reads_default_graph: false,
    };
    numbering.node(&mut root);
    let columns = query.variables.len() + numbering.numbered + numbering.added;
    // Given up or not, it is dropped with the stack that it needs.
    let plan = Plan {
        form: match query.form {
            LogicalForm::Select(vars) => Form::Select(vars),
            LogicalForm::Ask => Form::Ask,
            LogicalForm::Construct(template) => Form::Construct(template),
            LogicalForm::Describe(slots) => Form::Describe(slots),
        },
        variables: query.variables,
        constants: query.constants,
        levels: levels(&root),
        root,
        dataset: query.dataset,
        windows: query.windows,
        union_default_graph: query.union_default_graph,
        reads_default_graph: numbering.reads_default_graph,
        base: query.base,
        calls_services: query.calls_services,
        cost,
        ids: numbering.next,
        remembered: RememberedIds::default(),
    };
    let plan = patience.keep(plan)?;
    narrow(columns, "columns")?;
    Ok(plan)
}

/// The graphs whose merge is the default graph, where windows are among them; sorted.
fn graphs_with_windows(query: &Query, statistics: &dyn Statistics) -> Option<Vec<TermId>> {
    let windows = query.windows.as_ref()?;
    if windows.default.is_empty() {
        return None;
    }
    let stored = query.dataset.iter().flat_map(|dataset| &dataset.default);
    let stored = stored.filter_map(|graph| statistics.term(graph.as_ref().into()));
    let windows = windows.default.iter().map(|number| TermId::window(*number));
    let mut graphs: Vec<TermId> = stored.chain(windows).collect();
    graphs.sort_unstable();
    graphs.dedup();
    Some(graphs)
}

/// The columns that the form needs; ASK needs none, and counts no rows.
fn columns(form: &LogicalForm) -> Option<Vec<Var>> {
    let mut vars = Vec::new();
    let mut seen = FxHashSet::default();
    let mut add = |var: Var| {
        if seen.insert(var) {
            vars.push(var);
        }
    };
    match form {
        LogicalForm::Ask => return None,
        LogicalForm::Select(select) => return Some(select.clone()),
        LogicalForm::Construct(template) => {
            for TemplateTriple {
                subject,
                predicate,
                object,
            } in template
            {
                for slot in [subject, predicate, object] {
                    if let TemplateSlot::Var(var) = slot {
                        add(*var);
                    }
                }
            }
        }
        LogicalForm::Describe(slots) => {
            for slot in slots {
                if let Slot::Var(var) = slot {
                    add(*var);
                }
            }
        }
    }
    Some(vars)
}

/// Numbers nodes and steps from the root down, inputs after the operators that read them, and
/// counts the columns that rows have beside those of the variables.
struct Numbering<'p> {
    patience: &'p Patience<'p>,
    next: u32,
    /// Steps that number their rows.
    numbered: usize,
    /// The most columns that one operator puts behind all others.
    added: usize,
    /// Some step looks into the default graph.
    reads_default_graph: bool,
}

impl Numbering<'_> {
    fn node(&mut self, node: &mut Node) {
        // Given up, the plan is thrown away.
        if self.patience.spend(1) {
            return;
        }
        node.id = self.take();
        match &mut node.operator {
            Operator::Explore { input, steps } => {
                self.steps(Arc::get_mut(steps).expect("nobody else has a plan that is made"));
                if let Some(input) = input {
                    self.node(input);
                }
            }
            Operator::Join { build, probe, .. } => {
                self.node(build);
                self.node(probe);
            }
            Operator::LeftJoin {
                left, right, marks, ..
            } => {
                self.steps(marks);
                self.node(left);
                self.node(right);
            }
            Operator::Minus { left, right, .. } => {
                self.node(left);
                self.node(right);
            }
            Operator::Service { input, marks, .. } => {
                self.steps(marks);
                if let Some(input) = input {
                    self.node(input);
                }
            }
            Operator::Materialized { .. } => {}
            Operator::EndCounts(planned) => self.node(&mut planned.general),
            Operator::Union(inputs) => {
                for input in inputs {
                    self.node(input);
                }
            }
            Operator::OrderBy { input, keys, .. } => {
                let is_computed =
                    |key: &&OrderKey| !matches!(key.expression, Expression::Variable(_));
                self.added = self.added.max(keys.iter().filter(is_computed).count());
                self.node(input);
            }
            Operator::Distinct { input } => {
                self.added = self.added.max(1);
                self.node(input);
            }
            Operator::EachGraph { input, .. }
            | Operator::Group { input, .. }
            | Operator::Project { input, .. }
            | Operator::Reduced { input }
            | Operator::Slice { input, .. } => self.node(input),
        }
    }

    fn steps(&mut self, steps: &mut [PlannedStep]) {
        for step in steps {
            if self.patience.spend(1) {
                return;
            }
            step.id = self.take();
            match &mut step.step {
                Step::Optional { steps, .. } | Step::Exists { steps, .. } => {
                    self.numbered += 1;
                    self.steps(steps);
                }
                Step::ExistsGiven {
                    node, all_bound, ..
                } => {
                    self.numbered += 1;
                    self.node(node);
                    if let Some(node) = all_bound {
                        self.node(node);
                    }
                }
                Step::Union(branches) => {
                    for branch in branches {
                        self.steps(branch);
                    }
                }
                Step::Bind { scope, .. }
                | Step::Check { scope, .. }
                | Step::Test { scope, .. }
                | Step::Match { scope, .. }
                | Step::Path { scope, .. } => {
                    self.reads_default_graph |= *scope == Scope::Default;
                }
                Step::Graphs { .. }
                | Step::Filter(_)
                | Step::Extend { .. }
                | Step::Values { .. } => (),
            }
        }
    }

    fn take(&mut self) -> u32 {
        let id = self.next;
        self.next += 1;
        id
    }
}
