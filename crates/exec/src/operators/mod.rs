//! Operators beyond exploration: joins, groups, order, distinct rows.

mod dedup;
mod distinct;
mod each_graph;
mod end_counts;
mod group;
mod join;
mod kept;
mod kept_side;
mod materialized;
mod minus;
mod order;
mod ordering;
mod partial_distinct;
mod partial_order;
mod service;
mod service_fetch;
mod slice;
mod sorter;
mod two_sided;

use std::sync::Arc;

use jindou_plan::physical::{Node, Operator as Planned, Slot, Var};

use kept_side::KeptSide;
use partial_distinct::PartialDistinct;
use two_sided::{Side, TwoSided};

pub use self::materialized::MaterializedRows;
pub(crate) use self::service::can_be_written;
use crate::ExecError;
use crate::context::Context;
use crate::operator::{Boxed, Builder, Operator};
use crate::steps::needed_before;
use crate::table::{Table, VarSet};

/// The operator of a node other than an exploration, of which `needed` is wanted.
pub(crate) fn build(
    builder: &mut Builder<'_>,
    node: &Node,
    needed: &VarSet,
) -> Result<Boxed, ExecError> {
    let with_shared = |keys: &[Var], loose: &[Var]| {
        let mut inner = needed.clone();
        inner.extend(keys.iter().chain(loose).copied());
        inner
    };
    Ok(match &node.operator {
        Planned::Explore { .. } => unreachable!("the builder makes explorations itself"),
        Planned::Join {
            build,
            probe,
            keys,
            loose,
        } => {
            let inner = with_shared(keys, loose);
            let side = join::JoinSide::new(keys, loose, None, needed.clone());
            let kept = kept_side(builder, (node.id, build), &inner, &side, (keys, false))?;
            let probe = builder.node(probe, &inner)?;
            Box::new(TwoSided::past(kept, probe, side, needed.clone()))
        }
        Planned::LeftJoin {
            left,
            right,
            keys,
            loose,
            marks,
            condition,
        } => {
            let mut judged = needed.clone();
            if let Some(condition) = condition {
                condition.for_each_variable(&mut |var| judged.insert(var));
            }
            let mut inner = needed_before(marks, &judged);
            inner.extend(keys.iter().chain(loose).copied());
            let condition = match condition {
                Some(condition) => Some(join::Condition::new(builder, marks, condition, &judged)?),
                None => None,
            };
            let side = join::JoinSide::new(keys, loose, condition, needed.clone());
            let kept = kept_side(builder, (node.id, right), &inner, &side, (keys, true))?;
            let left = builder.node(left, &inner)?;
            Box::new(TwoSided::past(kept, left, side, needed.clone()))
        }
        Planned::Minus {
            left,
            right,
            keys,
            loose,
            overlaps,
        } => {
            let shared: VarSet = keys.iter().chain(loose).copied().collect();
            let side = minus::MinusSide::new(keys, loose, *overlaps);
            let kept = kept_side(builder, (node.id, right), &shared, &side, (keys, true))?;
            let inner = with_shared(keys, loose);
            let left = builder.node(left, &inner)?;
            Box::new(TwoSided::past(kept, left, side, needed.clone()))
        }
        Planned::Service {
            input,
            service,
            keys,
            loose,
            send,
            optional,
            marks,
            condition,
        } => {
            let mut judged = needed.clone();
            if let Some(condition) = condition {
                condition.for_each_variable(&mut |var| judged.insert(var));
            }
            let mut inner = needed_before(marks, &judged);
            inner.extend(keys.iter().chain(loose).chain(send).copied());
            if let Slot::Var(endpoint) = service.endpoint {
                inner.insert(endpoint);
            }
            let input = match input {
                Some(input) => builder.node(input, &inner)?,
                None => builder.unit(),
            };
            let condition = match condition {
                Some(condition) => Some(join::Condition::new(builder, marks, condition, &judged)?),
                None => None,
            };
            let begin = service::Begin {
                input,
                service: Arc::new(builder.given_to(service)),
                keys: keys.clone(),
                loose: loose.clone(),
                send: send.clone(),
                condition,
                left: *optional,
                inner,
                width: builder.width(),
            };
            Box::new(service::ServiceJoin::new(begin, needed.clone()))
        }
        Planned::EachGraph { input, scope, name } => {
            let inner = with_shared(&[*name], &[]);
            let input = builder.template(input, inner);
            Box::new(each_graph::EachGraph::new(
                input,
                *scope,
                *name,
                needed.clone(),
            ))
        }
        Planned::Materialized { vars } => {
            let rows = Arc::clone(&builder.cx.materialized);
            let wanted = (needed, std::mem::take(&mut builder.counted));
            let width = builder.width();
            Box::new(materialized::Materialized::new(rows, vars, wanted, width))
        }
        Planned::EndCounts(planned) => end_counts::build(builder, planned, needed)?,
        Planned::Union(inputs) => Box::new(Concatenation {
            inputs: inputs
                .iter()
                .map(|input| builder.node(input, needed))
                .collect::<Result<_, _>>()?,
            next: 0,
        }),
        Planned::Group {
            input,
            by,
            aggregates,
        } => {
            let group = group::build(builder, input, by, aggregates)?;
            builder.give_again(group)
        }
        Planned::OrderBy { input, keys, limit } => {
            order::build(builder, input, keys, *limit, needed)?
        }
        Planned::Project { input, vars } => {
            let wanted: VarSet = vars.iter().copied().collect();
            let input = builder.node(input, &wanted)?;
            builder.give_again(Box::new(Projection { input, wanted }))
        }
        Planned::Distinct { input } => distinct(builder, input, needed)?,
        // Duplicates in a row of rows are what is cheaply found, but the specification allows to
        // leave all of them.
        Planned::Reduced { input } => builder.node(input, needed)?,
        Planned::Slice {
            input,
            offset,
            limit,
        } => {
            let input = builder.node(input, needed)?;
            Box::new(slice::Slice::new(input, *offset, *limit))
        }
    })
}

/// The side of a join that is kept, one for all threads whose rows stream past it.
fn kept_side<S: Side>(
    builder: &mut Builder<'_>,
    (id, node): (u32, &Node),
    needed: &VarSet,
    side: &S,
    how: (&[Var], bool),
) -> Result<Arc<KeptSide<S::Kept>>, ExecError> {
    builder.shared(id, node, |builder| {
        let input = builder.node(node, needed)?;
        Ok(KeptSide::new(input, side.empty(), how, builder.cx))
    })
}

fn distinct(builder: &mut Builder<'_>, input: &Node, needed: &VarSet) -> Result<Boxed, ExecError> {
    // Rows are compared on the columns that the projection below leaves.
    let vars = match &input.operator {
        Planned::Project { vars, .. } => vars.clone(),
        _ => builder.variables().collect(),
    };
    let mut all = needed.clone();
    all.extend(vars.iter().copied());
    let ordered = is_ordered(input);
    let partial = |own: Option<Var>, cx: &Context| {
        let is_own = own.is_some_and(|var| vars.contains(&var));
        Ok(PartialDistinct::new(&vars, is_own, cx))
    };
    let input = match builder.exchange(input, &all, true, partial)? {
        Some(exchange) => distinct::Input::Exchange(exchange),
        None => distinct::Input::Rows(builder.counted_node(input, &all)?),
    };
    Ok(Box::new(distinct::Distinct::new(
        input,
        vars,
        ordered,
        builder.width(),
        builder.cx,
    )))
}

/// True if the rows of a node come in the order of an ORDER BY.
pub(crate) fn is_ordered(node: &Node) -> bool {
    match &node.operator {
        Planned::OrderBy { .. } => true,
        Planned::Explore {
            input: Some(input), ..
        }
        | Planned::Project { input, .. }
        | Planned::Distinct { input }
        | Planned::Reduced { input }
        | Planned::Slice { input, .. } => is_ordered(input),
        _ => false,
    }
}

/// One input after the other.
struct Concatenation {
    inputs: Vec<Boxed>,
    next: usize,
}

impl Operator for Concatenation {
    fn produce(&mut self, cx: &Context) -> Result<Option<Table>, ExecError> {
        while let Some(input) = self.inputs.get_mut(self.next) {
            if let Some(table) = input.next(cx)? {
                return Ok(Some(table));
            }
            self.next += 1;
        }
        Ok(None)
    }
}

/// Some columns only.
struct Projection {
    input: Boxed,
    wanted: VarSet,
}

impl Operator for Projection {
    fn produce(&mut self, cx: &Context) -> Result<Option<Table>, ExecError> {
        let Some(mut table) = self.input.next(cx)? else {
            return Ok(None);
        };
        table.retain_columns(&self.wanted);
        Ok(Some(table))
    }
}

#[cfg(test)]
mod spill_tests;
