//! Which triples of a CONSTRUCT template can come twice?

use jindou_plan::physical::{
    Constant, Node, Operator, Plan, Scope, Slot, Step, TemplateSlot, TemplateTriple, Var,
};

/// Each two triples of a template are compared, unless it has more than these: that takes
/// tens of milliseconds.
const MOST_COMPARED: usize = 4096;

/// For each triple of the template, whether another row, or another triple of the template, may
/// make the same triple. Says so wherever it cannot tell.
pub(crate) fn repeating(plan: &Plan, template: &[TemplateTriple]) -> Vec<bool> {
    let key = key(&plan.root);
    let makes_each_once = |triple: &TemplateTriple| {
        // A blank node is each row's own.
        let has_blank = slots(triple)
            .iter()
            .any(|slot| matches!(slot, TemplateSlot::Blank(_)));
        has_blank
            || key.as_ref().is_some_and(|key| {
                key.iter().all(|var| {
                    let slot = TemplateSlot::Var(*var);
                    slots(triple).contains(&slot)
                })
            })
    };
    if template.len() > MOST_COMPARED {
        return vec![true; template.len()];
    }
    (0..template.len())
        .map(|number| {
            let triple = &template[number];
            let mut others = template.iter().enumerate();
            !makes_each_once(triple)
                || others.any(|(other, with)| other != number && !differ(triple, with, plan))
        })
        .collect()
}

fn slots(triple: &TemplateTriple) -> [TemplateSlot; 3] {
    [triple.subject, triple.predicate, triple.object]
}

/// True if the two never make the same triple: constants tell them apart.
fn differ(one: &TemplateTriple, other: &TemplateTriple, plan: &Plan) -> bool {
    slots(one).into_iter().zip(slots(other)).any(|pair| match pair {
        (TemplateSlot::Const(one), TemplateSlot::Const(other)) => {
            // Arguments of a query may be given the same value.
            let [one, other] = [one, other].map(|id| &plan.constants[id.index()]);
            matches!((one, other), (Constant::Fixed(one), Constant::Fixed(other)) if one != other)
        }
        _ => false,
    })
}

/// Variables whose values no two rows share, all of them bound in all rows; `None` where that
/// is not known.
fn key(node: &Node) -> Option<Vec<Var>> {
    match &node.operator {
        // Columns that go do not make rows equal that the template can tell apart by the others.
        Operator::Project { input, .. }
        | Operator::OrderBy { input, .. }
        | Operator::Slice { input, .. }
        | Operator::Distinct { input }
        | Operator::Reduced { input } => key(input),
        Operator::Explore { input: None, steps } => {
            let mut vars = Vec::new();
            for planned in steps.iter() {
                add_key(&planned.step, &mut vars)?;
            }
            Some(vars)
        }
        _ => None,
    }
}

/// The variable for the graph of a scope.
fn graph(scope: Scope) -> Option<Var> {
    match scope {
        Scope::Default | Scope::Named => None,
        Scope::Graph(graph) => variable(&graph),
    }
}

/// Adds the variables that a step binds and by which it makes several rows of one.
fn add_key(step: &Step, vars: &mut Vec<Var>) -> Option<()> {
    match step {
        Step::Bind { var, scope, .. } => {
            vars.push(*var);
            vars.extend(graph(*scope));
        }
        Step::Match {
            subject,
            predicate,
            object,
            scope: Scope::Default | Scope::Named | Scope::Graph(Slot::Const(_)),
        } => vars.extend(
            [subject, predicate, object]
                .into_iter()
                .filter_map(variable),
        ),
        Step::Path {
            subject,
            object,
            scope: Scope::Default | Scope::Named | Scope::Graph(Slot::Const(_)),
            ..
        } => vars.extend([subject, object].into_iter().filter_map(variable)),
        // They may be in several graphs.
        Step::Check { scope, .. } | Step::Test { scope, .. } => vars.extend(graph(*scope)),
        Step::Filter(_) => {}
        // One row of each, with a mark at the most.
        Step::Extend { .. } | Step::Exists { .. } | Step::ExistsGiven { .. } => {}
        // A cell that is unbound matches anything, and rows of VALUES may repeat.
        Step::Match { .. }
        | Step::Path { .. }
        | Step::Graphs { .. }
        | Step::Values { .. }
        | Step::Optional { .. }
        | Step::Union(_) => return None,
    }
    Some(())
}

fn variable(slot: &Slot) -> Option<Var> {
    match slot {
        Slot::Var(var) => Some(*var),
        Slot::Const(_) => None,
    }
}
