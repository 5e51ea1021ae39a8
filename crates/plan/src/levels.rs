//! How many calls does a recursion over a plan nest?

use crate::expression::Expression;
use crate::physical::{NESTED_STEPS, Node, Operator, OrderKey, PathExpression, PlannedStep, Step};

/// The most operators, steps and expressions that are nested in each other below a node, itself
/// included, where lists of steps are run in pieces of [`NESTED_STEPS`].
pub(crate) fn levels(node: &Node) -> usize {
    let below = match &node.operator {
        Operator::Explore { input, steps } => {
            let input = input.as_deref().map_or(0, levels);
            nested(steps) + of_each(steps).max(input)
        }
        Operator::Join { build, probe, .. } => levels(build).max(levels(probe)),
        Operator::LeftJoin {
            left,
            right,
            marks,
            condition,
            ..
        } => {
            let sides = levels(left).max(levels(right));
            sides.max(of_steps(marks)).max(of_any(condition))
        }
        Operator::Minus { left, right, .. } => levels(left).max(levels(right)),
        Operator::Service {
            input,
            marks,
            condition,
            ..
        } => {
            let input = input.as_deref().map_or(0, levels);
            input.max(of_steps(marks)).max(of_any(condition))
        }
        Operator::Union(inputs) => most(inputs.iter().map(levels)),
        Operator::Materialized { .. } => 0,
        Operator::EndCounts(planned) => levels(&planned.general),
        Operator::Group {
            input, aggregates, ..
        } => {
            let operands = aggregates.iter().map(|(_, aggregate)| &aggregate.operand);
            levels(input).max(most(operands.map(of_any)))
        }
        Operator::OrderBy { input, keys, .. } => {
            let of_key = |key: &OrderKey| of_expression(&key.expression);
            levels(input).max(most(keys.iter().map(of_key)))
        }
        Operator::EachGraph { input, .. }
        | Operator::Project { input, .. }
        | Operator::Distinct { input }
        | Operator::Reduced { input }
        | Operator::Slice { input, .. } => levels(input),
    };
    1 + below
}

pub(crate) fn of_steps(steps: &[PlannedStep]) -> usize {
    nested(steps) + of_each(steps)
}

/// Steps of a list that are nested in each other.
fn nested(steps: &[PlannedStep]) -> usize {
    steps.len().min(NESTED_STEPS)
}

/// The most that is nested in one of these steps.
fn of_each(steps: &[PlannedStep]) -> usize {
    most(steps.iter().map(|planned| match &planned.step {
        Step::Bind { .. }
        | Step::Check { .. }
        | Step::Test { .. }
        | Step::Match { .. }
        | Step::Graphs { .. }
        | Step::Values { .. } => 0,
        Step::Path { path, .. } => of_path(path),
        Step::Filter(expression) | Step::Extend { expression, .. } => of_expression(expression),
        Step::Optional { steps } | Step::Exists { steps, .. } => of_steps(steps),
        Step::Union(branches) => most(branches.iter().map(|branch| of_steps(branch))),
        Step::ExistsGiven {
            node, all_bound, ..
        } => levels(node).max(all_bound.as_deref().map_or(0, levels)),
    }))
}

fn of_path(path: &PathExpression) -> usize {
    let below = match path {
        PathExpression::Edge(..) | PathExpression::Negated(..) => 0,
        PathExpression::Sequence(parts) | PathExpression::Alternative(parts) => {
            most(parts.iter().map(of_path))
        }
        PathExpression::ZeroOrOne(inner)
        | PathExpression::ZeroOrMore(inner)
        | PathExpression::OneOrMore(inner) => of_path(inner),
    };
    1 + below
}

fn of_any(expression: &Option<Expression>) -> usize {
    expression.as_ref().map_or(0, of_expression)
}

fn of_expression(expression: &Expression) -> usize {
    let mut below = 0;
    expression.for_each_part(&mut |part| below = below.max(of_expression(part)));
    1 + below
}

fn most(levels: impl Iterator<Item = usize>) -> usize {
    levels.max().unwrap_or(0)
}
