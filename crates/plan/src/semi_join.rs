//! When steps only have to find something, what do the last of them need to know?
//!
//! EXISTS, NOT EXISTS and MINUS take a row or leave it, however often its steps find something. What
//! the last steps find depends on the variables that they name alone. So once a variable of the
//! outer row is named no more, the steps from there on are a semi-join with what is left: an EXISTS of their
//! own, which the executor answers once for rows that agree in the variables that are left. Rows
//! that reach the same hub look around it once.

use rustc_hash::FxHashMap;

use crate::facts::Source;
use crate::physical::{COMPARED_VARIABLES, Outcome, PlannedStep, Scope, Slot, Step, Var};
use crate::varset::VarSet;

/// The part of rows that a semi-join is taken to keep.
pub(crate) const KEPT: f64 = 0.5;
/// Semi-joins that are nested in each other by this, at most: each takes a stack when it runs.
const MOST_NESTED: usize = 8;

/// The steps of an EXISTS for rows that bind the variables `outer`, with semi-joins.
pub(crate) fn with_semi_joins(
    steps: Vec<PlannedStep>,
    outer: &VarSet,
    source: &Source<'_>,
) -> Vec<PlannedStep> {
    nested(steps, outer, MOST_NESTED, source)
}

/// The steps of rows of which only the distinct values of `needed` count: those after which no value
/// of these comes become a semi-join, where that is less than to make their rows.
pub(crate) fn for_distinct(
    mut steps: Vec<PlannedStep>,
    before: &VarSet,
    needed: &VarSet,
    source: &Source<'_>,
) -> Vec<PlannedStep> {
    if source.patience.spend(steps.len()) {
        return steps;
    }
    let binds_needed = |planned: &PlannedStep| {
        let mut binds = false;
        for_each_bound(&planned.step, &mut |var| binds |= needed.contains(var));
        binds
    };
    let first = steps.iter().rposition(binds_needed);
    let first = first.map_or(0, |last| last + 1);
    if !steps[first..]
        .iter()
        .any(|planned| may_multiply(&planned.step))
    {
        return steps;
    }
    let mut outer = before.clone();
    for planned in &steps[..first] {
        planned.step.for_each_variable(&mut |var| outer.insert(var));
    }
    let rest = steps.split_off(first);
    push(&mut steps, rest, &outer, MOST_NESTED, source);
    steps
}

fn nested(
    mut steps: Vec<PlannedStep>,
    outer: &VarSet,
    most: usize,
    source: &Source<'_>,
) -> Vec<PlannedStep> {
    while steps.last().is_some_and(|last| keeps_all(&last.step)) {
        steps.pop();
    }
    if most == 0 || source.patience.spend(steps.len()) {
        return steps;
    }
    if let Some((first, left)) = split(&steps, outer, source) {
        let rest = steps.split_off(first);
        push(&mut steps, rest, &left, most, source);
    } else if let Some(last) = steps.last_mut()
        && let Step::Union(branches) = &mut last.step
    {
        for branch in branches {
            *branch = nested(std::mem::take(branch), outer, most - 1, source);
        }
    }
    steps
}

/// Adds the rest of some steps as a semi-join.
fn push(
    steps: &mut Vec<PlannedStep>,
    rest: Vec<PlannedStep>,
    outer: &VarSet,
    most: usize,
    source: &Source<'_>,
) {
    let before = steps.last().map_or(1.0, |last| last.rows);
    steps.push(PlannedStep {
        step: Step::Exists {
            steps: nested(rest, outer, most - 1, source),
            outcome: Outcome::Keep,
        },
        rows: before * KEPT,
        id: 0,
    });
}

/// Where a semi-join begins, and the variables that its steps know then.
fn split(steps: &[PlannedStep], outer: &VarSet, source: &Source<'_>) -> Option<(usize, VarSet)> {
    let mut last_named: FxHashMap<Var, usize> = FxHashMap::default();
    for (place, planned) in steps.iter().enumerate() {
        (planned.step).for_each_variable(&mut |var| {
            last_named.insert(var, place);
        });
    }
    let of_outer = last_named.iter().filter(|(var, _)| outer.contains(**var));
    let mut begins: Vec<usize> = of_outer.map(|(_, last)| last + 1).collect();
    begins.sort_unstable();
    begins.dedup();
    let mut known = outer.clone();
    let mut passed = 0;
    for first in begins {
        if source.patience.spend(1) || is_quick(&steps[first..], source) {
            return None;
        }
        for planned in &steps[passed..first] {
            planned.step.for_each_variable(&mut |var| known.insert(var));
        }
        passed = first;
        let mut left = VarSet::default();
        let named_later = known
            .iter()
            .filter(|var| last_named.get(var) >= Some(&first));
        named_later.for_each(|var| left.insert(var));
        if left.iter().count() <= COMPARED_VARIABLES {
            return Some((first, left));
        }
    }
    None
}

/// Calls `visit` with each variable to which a step may give a value.
fn for_each_bound(step: &Step, visit: &mut dyn FnMut(Var)) {
    let graph = |scope: &Scope, visit: &mut dyn FnMut(Var)| {
        if let Scope::Graph(Slot::Var(var)) = scope {
            visit(*var);
        }
    };
    match step {
        Step::Bind { var, scope, .. } => {
            visit(*var);
            graph(scope, visit);
        }
        Step::Check { scope, .. } | Step::Test { scope, .. } => graph(scope, visit),
        Step::Filter(_) => (),
        Step::Extend { var, .. } => visit(*var),
        Step::Exists { outcome, .. } | Step::ExistsGiven { outcome, .. } => {
            outcome.variable().into_iter().for_each(visit);
        }
        // Each may bind what is unbound so far.
        Step::Match { .. }
        | Step::Path { .. }
        | Step::Graphs { .. }
        | Step::Values { .. }
        | Step::Optional { .. }
        | Step::Union(_) => step.for_each_variable(visit),
    }
}

/// True of a step that gives at least one row for each.
fn keeps_all(step: &Step) -> bool {
    match step {
        Step::Optional { .. } | Step::Extend { .. } => true,
        Step::Exists { outcome, .. } | Step::ExistsGiven { outcome, .. } => {
            outcome.variable().is_some()
        }
        _ => false,
    }
}

/// True of a step that may give several rows for one.
fn may_multiply(step: &Step) -> bool {
    !matches!(
        step,
        Step::Check { .. }
            | Step::Test { .. }
            | Step::Filter(_)
            | Step::Extend { .. }
            | Step::Exists { .. }
            | Step::ExistsGiven { .. }
    )
}

/// True if the executor finds out for each row, without a list of anything, whether these steps find something.
fn is_quick(steps: &[PlannedStep], source: &Source<'_>) -> bool {
    let Some((last, before)) = steps.split_last() else {
        return true;
    };
    let is_test = |step: &Step| {
        let scope = match step {
            Step::Check { scope, .. } | Step::Test { scope, .. } => scope,
            Step::Filter(_) => return true,
            _ => return false,
        };
        !matches!(scope, Scope::Graph(_))
    };
    let is_look = |step: &Step| match step {
        Step::Bind {
            sides,
            requires,
            scope,
            ..
        } => sides.len() < 2 && requires.is_empty() && source.knows_lengths(*scope),
        step => is_test(step),
    };
    before.iter().all(|planned| is_test(&planned.step)) && is_look(&last.step)
}
