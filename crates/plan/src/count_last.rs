//! Which step of a group comes last, as all that it does is to multiply rows that are counted?
//!
//! A path that binds a variable which nobody looks at: each row stands for as many as the path reaches from it. As the last
//! step it counts these; before other steps each of them would be a row.

use crate::expression::Aggregate;
use crate::physical::{Node, Operator, PlannedStep, Scope, Slot, Step, Var};
use crate::varset::VarSet;

/// Has such a path be the last step of what a group takes, where these variables are `given`.
pub(crate) fn count_path_last(
    node: &mut Node,
    by: &[Var],
    aggregates: &[(Var, Aggregate)],
    given: &VarSet,
) {
    let Operator::Explore { input: None, steps } = &mut node.operator else {
        return;
    };
    let takes_counted = |aggregate: &Aggregate| {
        let is_of_whole_rows = aggregate.operand.is_none() && aggregate.distinct;
        !is_of_whole_rows && aggregate.takes_counted_rows()
    };
    if !aggregates
        .iter()
        .all(|(_, aggregate)| takes_counted(aggregate))
    {
        return;
    }
    let mut needed = given.clone();
    by.iter().for_each(|var| needed.insert(*var));
    for operand in aggregates.iter().filter_map(|(_, it)| it.operand.as_ref()) {
        operand.for_each_variable(&mut |var| needed.insert(var));
    }
    // One that is the last already is counted in any case.
    let before_last = 1..steps.len().saturating_sub(1);
    if let Some(place) = before_last
        .rev()
        .find(|place| only_multiplies(steps, *place, &needed))
    {
        let mut moved = steps.to_vec();
        move_last(&mut moved, place);
        *steps = moved.into();
    }
}

/// True of a path from a variable of the steps before it to one that no other step mentions and nobody needs, behind
/// which each row is looked at by itself.
fn only_multiplies(steps: &[PlannedStep], place: usize, needed: &VarSet) -> bool {
    let Step::Path {
        subject: Slot::Var(subject),
        object: Slot::Var(object),
        scope,
        ..
    } = &steps[place].step
    else {
        return false;
    };
    let mentions = |steps: &[PlannedStep], var: Var| {
        let mut found = false;
        for planned in steps {
            planned
                .step
                .for_each_variable(&mut |other| found |= other == var);
        }
        found
    };
    let (before, behind) = (&steps[..place], &steps[place + 1..]);
    let is_free =
        |var: Var| !needed.contains(var) && !mentions(before, var) && !mentions(behind, var);
    let ends = [(*subject, *object), (*object, *subject)];
    let leads_out = ends
        .iter()
        .any(|(from, to)| mentions(before, *from) && is_free(*to));
    let is_of_rows = |planned: &PlannedStep| {
        matches!(
            planned.step,
            Step::Bind { .. } | Step::Check { .. } | Step::Test { .. } | Step::Match { .. }
        )
    };
    let is_in_one = !matches!(scope, Scope::Graph(Slot::Var(_)));
    leads_out && is_in_one && behind.iter().all(is_of_rows)
}

/// Moves a step behind all others, which have fewer rows then.
fn move_last(steps: &mut Vec<PlannedStep>, place: usize) {
    let mut path = steps.remove(place);
    let times = path.rows / steps[place - 1].rows.max(f64::MIN_POSITIVE);
    path.rows = steps.last().map_or(path.rows, |last| last.rows);
    if times > 0.0 && times.is_finite() {
        for planned in &mut steps[place..] {
            planned.rows /= times;
        }
    }
    steps.push(path);
}
