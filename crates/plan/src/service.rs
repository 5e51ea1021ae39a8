//! How is a SERVICE joined with the rows at hand, and what is that expected to cost?
//!
//! An endpoint is asked last where that can be: then the values of what it shares with the rows
//! are sent along, and it answers no more than is needed. Only where there are many rows, the
//! executor fetches all that it has.

use crate::algebra::{Pattern, service_certain, service_possible};
use crate::expression::Expression;
use crate::group::Grouper;
use crate::join::{HASH, joined_rows, shared};
use crate::physical::{Operator, Service, Var};
use crate::rows::{Rows, node};

/// Solutions that an endpoint is taken to have, as nothing is known of it.
const SOLUTIONS: f64 = 1000.0;
/// Work of fetching all that an endpoint has: it may be anything.
const ALL: f64 = 1_000_000.0;
/// Work of one request for certain values.
const REQUEST: f64 = 10_000.0;
/// Rows whose values go with one request.
const ROWS_A_REQUEST: f64 = 500.0;

/// What a left join has beside its sides: the EXISTS of its condition, and the condition.
pub(crate) type LeftJoin<'a> = (&'a [(Var, Pattern)], Option<Expression>);

impl Grouper<'_> {
    /// Joins the rows with what an endpoint answers; as a left join, if `left_join` is given.
    pub(crate) fn service(
        &self,
        rows: Rows,
        service: &Service,
        left_join: Option<LeftJoin<'_>>,
    ) -> Rows {
        let answered = Rows {
            rows: SOLUTIONS,
            certain: service_certain(service),
            possible: service_possible(service),
            ..Rows::unit()
        };
        let (keys, loose) = shared(&rows, &answered);
        let send: Vec<Var> = service
            .certain
            .iter()
            .copied()
            .filter(|var| rows.certain.contains(*var))
            .collect();
        let mut found = joined_rows(&rows, &answered, &keys, &loose);
        let asked = if send.is_empty() {
            ALL
        } else {
            // Each row finds about one solution.
            found = rows.rows;
            (REQUEST * (rows.rows / ROWS_A_REQUEST).ceil().max(1.0)).min(ALL)
        };
        let optional = left_join.is_some();
        if optional {
            found = found.max(rows.rows);
        }
        let mut cost = rows.cost + asked + HASH * (rows.rows + SOLUTIONS) + found;
        let possible = rows.possible.union(&answered.possible);
        let both = rows.certain.union(&answered.certain);
        let certain = if optional {
            rows.certain.clone()
        } else {
            both.clone()
        };
        let (marks, condition) = match left_join {
            None => (Vec::new(), None),
            Some((marks, condition)) => {
                let joined = Rows {
                    certain: both,
                    possible: possible.clone(),
                    rows: found,
                    ..Rows::unit()
                };
                let marked = self.marked(joined, marks);
                cost += marked.cost;
                (marked.steps, condition)
            }
        };
        let begins = rows.input.is_none() && rows.steps.is_empty();
        let operator = Operator::Service {
            input: (!begins).then(|| Box::new(rows.into_node())),
            service: Box::new(service.clone()),
            keys,
            loose,
            send,
            optional,
            marks,
            condition,
        };
        Rows::of_node(node(operator, found), cost, certain, possible).begun_with(&self.given)
    }
}
