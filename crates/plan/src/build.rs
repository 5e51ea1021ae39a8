//! How does a query in its logical form become a plan?

use crate::algebra::{LogicalForm, Query};
use crate::error::PlanError;
use crate::facts::Source;
use crate::group::Grouper;
use crate::levels::levels;
use crate::modifiers::modified;
use crate::patience::Patience;
use crate::physical::{
    Form, Node, Operator, Plan, PlannedStep, RememberedIds, Slot, Step, TemplateSlot,
    TemplateTriple, Var,
};
use crate::statistics::Statistics;
use rustc_hash::FxHashSet;

/// Plans a query, unless it is no more wanted before that is done.
///
/// # Errors
/// [`PlanError::Interrupted`].
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
    let source = Source::new(statistics, &query.constants, dataset, patience);
    let rows = Grouper::new(&source).alone(&query.pattern);
    let mut cost = rows.cost;
    let (mut root, more) = modified(rows.into_node(), query.modifiers, columns(&query.form));
    cost += more;
    cost += root.rows;
    let mut ids = 0;
    number(&mut root, &mut ids);
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
        base: query.base,
        calls_services: query.calls_services,
        cost,
        ids,
        remembered: RememberedIds::default(),
    };
    patience.keep(plan)
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

/// Numbers nodes and steps from the root down, inputs after the operators that read them.
fn number(node: &mut Node, next: &mut u32) {
    node.id = take(next);
    match &mut node.operator {
        Operator::Explore { input, steps } => {
            number_steps(steps, next);
            if let Some(input) = input {
                number(input, next);
            }
        }
        Operator::Join { build, probe, .. } => {
            number(build, next);
            number(probe, next);
        }
        Operator::LeftJoin {
            left, right, marks, ..
        } => {
            number_steps(marks, next);
            number(left, next);
            number(right, next);
        }
        Operator::Minus { left, right, .. } => {
            number(left, next);
            number(right, next);
        }
        Operator::Service { input, marks, .. } => {
            number_steps(marks, next);
            if let Some(input) = input {
                number(input, next);
            }
        }
        Operator::Union(inputs) => {
            for input in inputs {
                number(input, next);
            }
        }
        Operator::EachGraph { input, .. }
        | Operator::Group { input, .. }
        | Operator::OrderBy { input, .. }
        | Operator::Project { input, .. }
        | Operator::Distinct { input }
        | Operator::Reduced { input }
        | Operator::Slice { input, .. } => number(input, next),
    }
}

fn number_steps(steps: &mut [PlannedStep], next: &mut u32) {
    for step in steps {
        step.id = take(next);
        match &mut step.step {
            Step::Optional { steps, .. } | Step::Exists { steps, .. } => {
                number_steps(steps, next);
            }
            Step::ExistsGiven {
                node, all_bound, ..
            } => {
                number(node, next);
                if let Some(node) = all_bound {
                    number(node, next);
                }
            }
            Step::Union(branches) => {
                for branch in branches {
                    number_steps(branch, next);
                }
            }
            Step::Bind { .. }
            | Step::Check { .. }
            | Step::Test { .. }
            | Step::Match { .. }
            | Step::Path { .. }
            | Step::Graphs { .. }
            | Step::Filter(_)
            | Step::Extend { .. }
            | Step::Values { .. } => (),
        }
    }
}

fn take(next: &mut u32) -> u32 {
    let id = *next;
    *next += 1;
    id
}
