//! Which variables does a step look at or bind?

use crate::physical::{Scope, Slot, Step, Var};

impl Step {
    /// Calls `visit` with each variable that the step looks at or binds, steps nested in it included;
    /// with some several times.
    pub fn for_each_variable(&self, visit: &mut dyn FnMut(Var)) {
        let slot = |slot: &Slot, visit: &mut dyn FnMut(Var)| {
            if let Slot::Var(var) = slot {
                visit(*var);
            }
        };
        let of_scope = |scope: &Scope, visit: &mut dyn FnMut(Var)| {
            if let Scope::Graph(graph) = scope {
                slot(graph, visit);
            }
        };
        match self {
            Step::Bind {
                var, sides, scope, ..
            } => {
                visit(*var);
                sides.iter().for_each(|side| slot(&side.from, visit));
                of_scope(scope, visit);
            }
            Step::Check { side, to, scope } => {
                slot(&side.from, visit);
                slot(to, visit);
                of_scope(scope, visit);
            }
            Step::Test {
                slot: tested,
                scope,
                ..
            } => {
                slot(tested, visit);
                of_scope(scope, visit);
            }
            Step::Match {
                subject,
                predicate,
                object,
                scope,
            } => {
                [subject, predicate, object]
                    .into_iter()
                    .for_each(|part| slot(part, visit));
                of_scope(scope, visit);
            }
            Step::Path {
                subject,
                object,
                scope,
                ..
            } => {
                slot(subject, visit);
                slot(object, visit);
                of_scope(scope, visit);
            }
            Step::Graphs { graph } => slot(graph, visit),
            Step::Filter(expression) => expression.for_each_variable(visit),
            Step::Extend { var, expression } => {
                visit(*var);
                expression.for_each_variable(visit);
            }
            Step::Values { vars, .. } => vars.iter().for_each(|var| visit(*var)),
            Step::Optional { steps } => steps
                .iter()
                .for_each(|planned| planned.step.for_each_variable(visit)),
            Step::Exists { steps, outcome } => {
                steps
                    .iter()
                    .for_each(|planned| planned.step.for_each_variable(visit));
                outcome.variable().into_iter().for_each(&mut *visit);
            }
            Step::ExistsGiven { given, outcome, .. } => {
                given.iter().for_each(|var| visit(*var));
                outcome.variable().into_iter().for_each(&mut *visit);
            }
            Step::Union(branches) => branches
                .iter()
                .flatten()
                .for_each(|planned| planned.step.for_each_variable(visit)),
        }
    }
}
