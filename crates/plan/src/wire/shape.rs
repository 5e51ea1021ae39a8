//! Are steps as the executor may expect them, beyond what their types say?

use super::PlanWireError;
use crate::expression::{Aggregate, Expression};
use crate::physical::{Node, Operator, PlannedStep, RemoteQuery, Service, Step, Var};

type Checked = Result<(), PlanWireError>;

fn expect(holds: bool, what: &'static str) -> Checked {
    match holds {
        true => Ok(()),
        false => Err(PlanWireError::Shape { what }),
    }
}

/// Looks at steps and at all that is nested in them, by recursion.
///
/// # Errors
/// [`PlanWireError::Shape`]: what is wrong with the first that is not as it should be.
pub(super) fn check(steps: &[PlannedStep]) -> Checked {
    steps.iter().try_for_each(|planned| step(&planned.step))
}

fn step(of: &Step) -> Checked {
    match of {
        Step::Bind {
            sides, requires, ..
        } => expect(
            !sides.is_empty() || !requires.is_empty(),
            "a scan that does not name what it scans",
        ),
        Step::Test { requires, .. } => expect(!requires.is_empty(), "a test of nothing"),
        Step::Check { .. } | Step::Match { .. } | Step::Path { .. } | Step::Graphs { .. } => Ok(()),
        Step::Filter(of) => expression(of),
        Step::Extend { expression: of, .. } => expression(of),
        Step::Values { vars, rows } => expect(
            rows.iter().all(|row| row.len() == vars.len()),
            "a row of values that has more or fewer cells than columns",
        ),
        Step::Optional { steps } | Step::Exists { steps, .. } => check(steps),
        Step::Union(branches) => branches.iter().try_for_each(|branch| check(branch)),
        Step::ExistsGiven {
            node: of,
            all_bound,
            ..
        } => {
            node(of)?;
            all_bound.as_deref().map_or(Ok(()), node)
        }
    }
}

fn node(of: &Node) -> Checked {
    let input_of = |input: &Option<Box<Node>>| input.as_deref().map_or(Ok(()), node);
    match &of.operator {
        Operator::Explore { input, steps } => {
            input_of(input)?;
            check(steps)
        }
        Operator::Join { build, probe, .. } => {
            node(build)?;
            node(probe)
        }
        Operator::LeftJoin {
            left,
            right,
            marks,
            condition,
            ..
        } => {
            node(left)?;
            node(right)?;
            check(marks)?;
            condition.as_ref().map_or(Ok(()), expression)
        }
        Operator::Minus { left, right, .. } => {
            node(left)?;
            node(right)
        }
        Operator::Service {
            input,
            service: asked,
            send,
            marks,
            condition,
            ..
        } => {
            input_of(input)?;
            service(asked, send)?;
            check(marks)?;
            condition.as_ref().map_or(Ok(()), expression)
        }
        Operator::Materialized { .. } => expect(false, "rows that are given with an execution"),
        Operator::Union(inputs) => inputs.iter().try_for_each(node),
        Operator::EndCounts(planned) => node(&planned.general),
        Operator::Group {
            input, aggregates, ..
        } => {
            node(input)?;
            aggregates.iter().try_for_each(|(_, of)| aggregate(of))
        }
        Operator::OrderBy { input, keys, .. } => {
            node(input)?;
            keys.iter().try_for_each(|key| expression(&key.expression))
        }
        Operator::EachGraph { input, .. }
        | Operator::Project { input, .. }
        | Operator::Distinct { input }
        | Operator::Reduced { input }
        | Operator::Slice { input, .. } => node(input),
    }
}

fn service(asked: &Service, send: &[Var]) -> Checked {
    let is_column = |var: &Var| asked.columns.contains(var);
    expect(
        asked.query.names.len() == asked.columns.len(),
        "a service that has more or fewer names than columns",
    )?;
    expect(
        send.iter().all(is_column),
        "a service that is sent what is no column of it",
    )?;
    openings(&asked.query)
}

/// They rise, and no character is cut.
fn openings(query: &RemoteQuery) -> Checked {
    let mut before = 0;
    query.openings.iter().try_for_each(|opening| {
        let lies_right = before <= opening.at && query.pattern.is_char_boundary(opening.at);
        before = opening.at;
        expect(lies_right, "a place of a service's query that is none")
    })
}

fn aggregate(of: &Aggregate) -> Checked {
    of.operand.as_ref().map_or(Ok(()), expression)
}

fn expression(of: &Expression) -> Checked {
    if let Expression::Or(list) | Expression::And(list) = of {
        expect(list.len() >= 2, "an operator that has too few operands")?;
    }
    let mut checked = Ok(());
    of.for_each_part(&mut |part| {
        if checked.is_ok() {
            checked = expression(part);
        }
    });
    checked
}
