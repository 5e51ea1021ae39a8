//! Where may equal solutions of a core be taken once, with their number?
//!
//! Directly below groups whose aggregates count, add or do not care, and below DISTINCT. There the core
//! gives only the columns that are needed, each combination of their values once.

use crate::algebra::{Deduplicate, LogicalForm, Pattern, Query};
use crate::expression::{Aggregate, AggregateFunction, Expression};
use crate::physical::Var;

/// Has what is directly above the core take equal solutions once, if it can: the columns that it needs
/// where those are not all. Otherwise the query stays as it is.
pub(crate) fn count_equal_solutions(rest: &mut Query) -> Option<Vec<Var>> {
    if let Some(needed) = count_distinct_rows(rest) {
        return Some(needed);
    }
    let mut counted = None;
    rest.pattern.for_each_mut(&mut |pattern| {
        if let Pattern::Group {
            inner,
            by,
            aggregates,
        } = pattern
            && let Pattern::Materialized { vars, .. } = &mut **inner
        {
            counted = count_groups(vars, by, aggregates);
        }
    });
    counted
}

/// Has a query that gives what is distinct in some columns of the core take these only.
fn count_distinct_rows(rest: &mut Query) -> Option<Vec<Var>> {
    let (LogicalForm::Select(selected), Pattern::Materialized { vars, .. }) =
        (&rest.form, &mut rest.pattern)
    else {
        return None;
    };
    let is_distinct =
        rest.modifiers.deduplicate == Deduplicate::Distinct && rest.modifiers.order.is_empty();
    let needed: Vec<Var> = (vars.iter().copied())
        .filter(|var| selected.contains(var))
        .collect();
    if !is_distinct || needed.len() == vars.len() {
        return None;
    }
    vars.clone_from(&needed);
    Some(needed)
}

/// Has groups of solutions of the core take only the columns that they need.
fn count_groups(
    vars: &mut Vec<Var>,
    by: &[Var],
    aggregates: &mut [(Var, Aggregate)],
) -> Option<Vec<Var>> {
    let mut used: Vec<Var> = by.to_vec();
    for (_, aggregate) in &*aggregates {
        if counts_solutions(aggregate, vars) {
            continue;
        }
        let is_of_whole_rows = aggregate.operand.is_none() && aggregate.distinct;
        if is_of_whole_rows || !aggregate.takes_counted_rows() {
            return None;
        }
        if let Some(operand) = &aggregate.operand {
            operand.for_each_variable(&mut |var| used.push(var));
        }
    }
    let needed: Vec<Var> = (vars.iter().copied())
        .filter(|var| used.contains(var))
        .collect();
    if needed.len() == vars.len() {
        return None;
    }
    for (_, aggregate) in aggregates {
        if counts_solutions(aggregate, vars) {
            aggregate.operand = None;
        }
    }
    vars.clone_from(&needed);
    Some(needed)
}

/// True of a COUNT of a column of the core: each solution binds it.
fn counts_solutions(aggregate: &Aggregate, columns: &[Var]) -> bool {
    let counted = (&aggregate.function, aggregate.distinct, &aggregate.operand);
    matches!(counted, (AggregateFunction::Count, false, Some(Expression::Variable(var))) if columns.contains(var))
}
