//! Steps of exploration: each takes tables, extends or filters their rows, and hands them on.

mod behind;
mod bind;
mod chain;
mod check;
pub(crate) mod count;
mod exists;
mod exists_given;
mod feed;
mod filter;
mod fixed;
mod graphs;
mod matching;
mod optional;
mod path;
mod scope;
mod undecided;
mod union;
mod values;

use jindou_model::{GraphRef, IdRanges, Membership, Precision, PredicateId};
use jindou_plan::expression::{Comparison, Expression};
use jindou_plan::physical::{ConstId, PlannedStep, Requirement, Side, Slot, Step, Var};

pub(crate) use behind::Behind;
pub(crate) use bind::{Seed, SeededBind};
pub(crate) use chain::Chain;
pub(crate) use exists::is_volatile;
pub(crate) use feed::Feed;
pub(crate) use filter::{ExtendRows, FilterRows};
pub(crate) use graphs::{is_named_graph, named_graphs};
pub(crate) use scope::{Graph, Place};
pub(crate) use undecided::Undecided;

use undecided::Portion;

use crate::ExecError;
use crate::context::Context;
use crate::expr::CompiledExpression;
use crate::operator::{Boxed, Builder};
use crate::table::VarSet;

/// The operator of the first of some steps; `keep` are the variables wanted behind it.
pub(crate) fn build(
    builder: &mut Builder<'_>,
    input: Boxed,
    steps: &[PlannedStep],
    keep: VarSet,
) -> Result<Boxed, ExecError> {
    let cx = builder.cx;
    let (step, after) = steps.split_first().expect("there is a step to build");
    Ok(match &step.step {
        Step::Bind {
            var,
            sides,
            requires,
            scope,
        } => {
            let start = bind::Start::new((*var, *scope), sides, requires, after, cx)?;
            let own_scan = std::mem::take(&mut builder.own_scan);
            Box::new({
                let portion = Portion::new(builder.undecided.clone());
                bind::Bind::new(input, start, sides, (keep, own_scan), portion, cx)
            })
        }
        Step::Check { side, to, scope } => {
            Box::new(check::Check::new(input, (*side, *to), *scope, keep, cx))
        }
        Step::Test {
            slot,
            requires,
            scope,
        } => Box::new(check::Test::new(input, *slot, requires, *scope, keep, cx)?),
        Step::Match {
            subject,
            predicate,
            object,
            scope,
        } => {
            let slots = [*subject, *predicate, *object];
            let portion = Portion::careful(builder.undecided.clone());
            let matching = matching::Match::new(input, slots, *scope, Vec::new(), keep);
            Box::new(matching.in_portions(portion))
        }
        Step::Path {
            subject,
            path,
            object,
            scope,
        } => {
            let portion = Portion::new(builder.undecided.clone());
            let ends = [*subject, *object];
            let path = path::FollowPath::new(input, ends, path, *scope, keep, cx);
            Box::new(path.in_portions(portion))
        }
        Step::Graphs { graph } => Box::new(graphs::EachGraph::new(input, *graph, keep)),
        Step::Filter(expression) => {
            let compiled = compile(expression, cx)?;
            Box::new(FilterRows::new(input, compiled, keep))
        }
        Step::Extend { var, expression } => {
            let compiled = compile(expression, cx)?;
            Box::new(ExtendRows::new(input, [(*var, compiled)], keep))
        }
        Step::Values { vars, rows } => {
            Box::new(values::JoinValues::new(input, vars, rows, keep, cx))
        }
        Step::Optional { steps } => optional::build(builder, input, steps, &keep)?,
        Step::Union(branches) => union::build(builder, input, branches, &keep)?,
        Step::Exists { steps, outcome } => exists::build(builder, input, steps, *outcome, &keep)?,
        Step::ExistsGiven {
            node,
            all_bound,
            given,
            outcome,
        } => {
            let nodes = (&**node, all_bound.as_deref());
            exists_given::build(builder, input, nodes, given, *outcome, keep)
        }
    })
}

/// The BINDs with which `steps` begin, as one operator, and how many these are.
///
/// # Errors
/// What compiling an expression says.
pub(crate) fn build_extends(
    input: Boxed,
    steps: &[PlannedStep],
    keep: impl FnOnce(usize) -> VarSet,
    cx: &Context,
) -> Result<(Boxed, usize), ExecError> {
    let extends = steps.iter().map_while(|planned| match &planned.step {
        Step::Extend { var, expression } => Some((*var, expression)),
        _ => None,
    });
    let compiled = extends.map(|(var, expression)| Ok((var, compile(expression, cx)?)));
    let values = compiled.collect::<Result<Vec<_>, ExecError>>()?;
    let count = values.len();
    Ok((Box::new(ExtendRows::new(input, values, keep(count))), count))
}

/// A quad pattern and the filters behind it that leave predicates out, as one operator, and how
/// many steps these are; `None` where `steps` do not begin like that.
pub(crate) fn build_match_except(
    input: Boxed,
    steps: &[PlannedStep],
    keep: impl FnOnce(usize) -> VarSet,
    cx: &Context,
) -> Result<(Boxed, usize), Boxed> {
    let Some(Step::Match {
        subject,
        predicate: Slot::Var(predicate),
        object,
        scope,
    }) = steps.first().map(|planned| &planned.step)
    else {
        return Err(input);
    };
    let mut except: Vec<PredicateId> = Vec::new();
    let filters = steps[1..].iter().map_while(|planned| match &planned.step {
        Step::Filter(expression) => left_out(expression, *predicate, cx),
        _ => None,
    });
    let mut count = 1;
    for left_out in filters {
        except.extend(left_out);
        count += 1;
    }
    if count == 1 {
        return Err(input);
    }
    except.sort_unstable();
    let slots = [*subject, Slot::Var(*predicate), *object];
    let keep = keep(count);
    let matching = matching::Match::new(input, slots, *scope, except, keep);
    Ok((Box::new(matching), count))
}

/// What an expression leaves out if it says that a predicate is not this one: the predicate, or
/// nothing if no edge has it.
fn left_out(expression: &Expression, predicate: Var, cx: &Context) -> Option<Option<PredicateId>> {
    let (left, right) = match expression {
        Expression::Compare(Comparison::NotEqual, left, right) => (left, right),
        Expression::Not(inner) => match &**inner {
            Expression::Compare(Comparison::SameTerm | Comparison::Equal, left, right) => {
                (left, right)
            }
            _ => return None,
        },
        _ => return None,
    };
    let (var, constant) = match (&**left, &**right) {
        (Expression::Variable(var), Expression::Constant(constant))
        | (Expression::Constant(constant), Expression::Variable(var)) => (var, constant),
        _ => return None,
    };
    // A predicate is an IRI, which equals nothing but itself, and compares with any term.
    (*var == predicate).then(|| cx.source.predicate(cx.constant(*constant)))
}

pub(crate) fn compile(
    expression: &jindou_plan::expression::Expression,
    cx: &Context,
) -> Result<CompiledExpression, ExecError> {
    Ok(CompiledExpression::compile(
        expression,
        &cx.constants,
        &cx.expressions,
    )?)
}

/// The variables wanted before `steps`, if `needed` are wanted behind them.
pub(crate) fn needed_before(steps: &[PlannedStep], needed: &VarSet) -> VarSet {
    let mut before = needed.clone();
    for planned in steps {
        planned
            .step
            .for_each_variable(&mut |var| before.insert(var));
    }
    before
}

/// The predicate of a constant; `None` if no edge has it.
fn predicate(cx: &Context, id: ConstId) -> Option<PredicateId> {
    cx.source.predicate(cx.constant(id))
}

/// A side of a step with its predicate looked up.
#[derive(Clone, Copy, Debug)]
struct ResolvedSide {
    from: Slot,
    predicate: Option<PredicateId>,
    direction: jindou_model::Direction,
}

impl ResolvedSide {
    fn new(side: &Side, cx: &Context) -> Self {
        Self {
            from: side.from,
            predicate: predicate(cx, side.predicate),
            direction: side.direction,
        }
    }
}

/// The requirements with their terms looked up; `None` where one asks for a predicate that no edge
/// has.
fn memberships(requires: &[Requirement], cx: &Context) -> Option<Vec<Membership>> {
    let membership = |requirement: &Requirement| match requirement {
        Requirement::Type(class) => Some(Membership::Type(cx.constant(*class))),
        Requirement::Has(id, direction) => Some(Membership::Has(predicate(cx, *id)?, *direction)),
    };
    requires.iter().map(membership).collect()
}

/// What the ids that a step binds through these sides are asked for: without a side, to be scanned.
fn precision_for(sides: &[Side], cx: &Context) -> Precision {
    let Some(side) = sides.first() else {
        return Precision::Exact;
    };
    match predicate(cx, side.predicate) {
        Some(predicate) if predicate != PredicateId::TYPE => {
            Precision::FilterOf(Membership::Has(predicate, side.direction.reverse()))
        }
        _ => Precision::Filter,
    }
}

/// The ids that meet the requirements in a graph: `Ok(None)` where all do, or where only requirements that
/// other patterns imply would be costly to test. Those in `within`, where that is given.
fn required_ids(
    graph: GraphRef<'_>,
    requires: &[Requirement],
    precision: Precision,
    within: Option<&IdRanges>,
    cx: &Context,
) -> Result<Option<IdRanges>, ExecError> {
    if requires.is_empty() {
        return Ok(None);
    }
    match memberships(requires, cx) {
        // A predicate that no edge has.
        None => Ok(Some(IdRanges::new())),
        Some(memberships) => cx.members(graph, &memberships, precision, within),
    }
}
