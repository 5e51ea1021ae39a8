//! Which groups need no more than what is counted of a graph?
//!
//! Those over one triple pattern whose ends are variables, that count its solutions or the different terms at one
//! end, and look at nothing of that end but its kind: whether it is an IRI or a blank node, its datatype, its language.
//! All terms of a kind are alike to them, so one row with a number stands for all of these, and the number is
//! counted by the store. The predicate may be a variable with values, as each predicate is counted by itself.

use jindou_model::{Counted, Direction};

use crate::algebra::{Pattern, Quad};
use crate::expression::{Aggregate, AggregateFunction, Expression, Function};
use crate::group::Grouper;
use crate::physical::{EndCounts, Node, Operator, Scope, Slot, Var};
use crate::rows::{Rows, node};
use crate::varset::VarSet;

/// Kinds that are expected of the terms of one predicate.
const KINDS: f64 = 4.0;

/// A group of the solutions of one triple pattern.
struct GroupOfQuad<'a> {
    quad: &'a Quad,
    /// What is done to its solutions, the last first.
    operations: Vec<Operation<'a>>,
    by: &'a [Var],
    aggregates: &'a [(Var, Aggregate)],
}

enum Operation<'a> {
    Filter(&'a Expression),
    Extend(&'a [(Var, Expression)]),
}

impl Grouper<'_> {
    /// The rows of a group of counted ends, and its aggregates for these; `None` of any other group.
    pub(crate) fn counted_ends(
        &self,
        inner: &Pattern,
        by: &[Var],
        aggregates: &[(Var, Aggregate)],
    ) -> Option<(Rows, Vec<(Var, Aggregate)>)> {
        // What is given is in the rows before they are counted.
        if self.looks > 0 || !self.given.is_empty() || !self.perhaps.is_empty() {
            return None;
        }
        let group = GroupOfQuad::of(inner, by, aggregates)?;
        let (end, direction, counted) = group.end()?;
        let used = group.used();
        let predicate = match group.quad.predicate {
            Slot::Var(var) if !used.contains(var) => None,
            slot => Some(slot),
        };
        let general = self.alone(&Pattern::Quads(vec![*group.quad]));
        let cost = general.cost;
        let mut general = general.into_node();
        if counted == Counted::Terms {
            let var = predicate.and_then(variable);
            let vars = [Some(end), var].into_iter().flatten().collect();
            general = distinct(general, vars);
        }
        let by_kind = used.contains(end);
        let predicates = match predicate {
            Some(Slot::Var(_)) => f64::from(self.source.statistics.predicates()),
            _ => 1.0,
        };
        let rows = predicates * if by_kind { KINDS } else { 1.0 };
        let rows = rows.min(general.rows);
        let counts = Operator::EndCounts(Box::new(EndCounts {
            end,
            predicate,
            direction,
            scope: group.quad.scope,
            counted,
            by_kind,
            general,
        }));
        let bound: VarSet = [Some(end).filter(|_| by_kind), predicate.and_then(variable)]
            .into_iter()
            .flatten()
            .collect();
        let mut rows = self.rows_of(node(counts, rows), cost, &bound, &bound);
        for operation in group.operations.iter().rev() {
            match operation {
                Operation::Filter(expression) => rows.filter((*expression).clone()),
                Operation::Extend(bindings) => {
                    for (var, expression) in *bindings {
                        rows.extend(*var, expression.clone(), false);
                    }
                }
            }
        }
        let counting = |(var, aggregate): &(Var, Aggregate)| {
            let counts_rows = Aggregate {
                operand: None,
                distinct: false,
                ..aggregate.clone()
            };
            (*var, counts_rows)
        };
        Some((rows, aggregates.iter().map(counting).collect()))
    }
}

impl<'a> GroupOfQuad<'a> {
    fn of(
        mut inner: &'a Pattern,
        by: &'a [Var],
        aggregates: &'a [(Var, Aggregate)],
    ) -> Option<Self> {
        let mut operations = Vec::new();
        let quad = loop {
            inner = match inner {
                Pattern::Filter { inner, expression } => {
                    operations.push(Operation::Filter(expression));
                    inner
                }
                Pattern::Extend { inner, bindings } => {
                    operations.push(Operation::Extend(bindings));
                    inner
                }
                Pattern::Quads(quads) => match quads.as_slice() {
                    [quad] => break quad,
                    _ => return None,
                },
                _ => return None,
            };
        };
        let of_one_graph = matches!(quad.scope, Scope::Default | Scope::Graph(Slot::Const(_)));
        let group = Self {
            quad,
            operations,
            by,
            aggregates,
        };
        (of_one_graph && !group.expressions().any(Expression::is_volatile)).then_some(group)
    }

    fn expressions(&self) -> impl Iterator<Item = &'a Expression> {
        self.operations.iter().flat_map(|operation| {
            let (one, many): (Option<&Expression>, &[(Var, Expression)]) = match operation {
                Operation::Filter(expression) => (Some(expression), &[]),
                Operation::Extend(bindings) => (None, bindings),
            };
            one.into_iter()
                .chain(many.iter().map(|(_, expression)| expression))
        })
    }

    /// Variables of which something is looked at before rows are counted.
    fn used(&self) -> VarSet {
        let mut used: VarSet = self.by.iter().copied().collect();
        self.expressions()
            .for_each(|expression| used.extend(&expression.variables()));
        used
    }

    /// The end whose terms may stand for each other, and what of it is counted.
    fn end(&self) -> Option<(Var, Direction, Counted)> {
        let (subject, object) = (variable(self.quad.subject)?, variable(self.quad.object)?);
        let predicate = variable(self.quad.predicate);
        if subject == object || predicate.is_some_and(|p| p == subject || p == object) {
            return None;
        }
        let used = self.used();
        let ends = [
            (object, subject, Direction::In),
            (subject, object, Direction::Out),
        ];
        ends.into_iter().find_map(|(end, other, direction)| {
            let is_alike = !used.contains(other)
                && !self.by.contains(&end)
                && self
                    .expressions()
                    .all(|expression| asks_kind(expression, end));
            let counted = self.counted(end, predicate, &used)?;
            // The number of all solutions is known without this.
            let is_wanted = counted == Counted::Terms || used.contains(end);
            (is_alike && is_wanted).then_some((end, direction, counted))
        })
    }

    /// What all aggregates count.
    fn counted(&self, end: Var, predicate: Option<Var>, used: &VarSet) -> Option<Counted> {
        let bound: VarSet = self.quad.variables().collect();
        let counted = |(_, aggregate): &(Var, Aggregate)| {
            let is_count = aggregate.function == AggregateFunction::Count;
            match (&aggregate.operand, aggregate.distinct) {
                _ if !is_count => None,
                (None, false) => Some(Counted::Edges),
                (Some(Expression::Variable(var)), false) if bound.contains(*var) => {
                    Some(Counted::Edges)
                }
                (Some(Expression::Variable(var)), true) if *var == end => Some(Counted::Terms),
                _ => None,
            }
        };
        let mut all = self.aggregates.iter().map(counted);
        let first = all.next()??;
        let are_alike = all.all(|one| one == Some(first));
        // A term that several predicates share is one, unless these are told apart by the groups.
        let is_apart = predicate.is_none_or(|var| !used.contains(var) || self.by.contains(&var));
        (are_alike && (first == Counted::Edges || is_apart)).then_some(first)
    }
}

fn variable(slot: Slot) -> Option<Var> {
    match slot {
        Slot::Var(var) => Some(var),
        Slot::Const(_) => None,
    }
}

/// True if an expression has the same value for all terms of a kind that `var` may be.
fn asks_kind(expression: &Expression, var: Var) -> bool {
    use Function::{Datatype, IsBlank, IsIri, IsLiteral, Lang};
    match expression {
        Expression::Variable(other) => *other != var,
        // It is bound in each row.
        Expression::Bound(_) | Expression::Constant(_) => true,
        Expression::Call(IsIri | IsBlank | IsLiteral | Datatype | Lang, of)
            if matches!(of.as_slice(), [Expression::Variable(_)]) =>
        {
            true
        }
        other => {
            let mut all = true;
            other.for_each_part(&mut |part| all &= asks_kind(part, var));
            all
        }
    }
}

/// What is distinct in some columns of a node.
fn distinct(input: Node, vars: Vec<Var>) -> Node {
    let rows = input.rows;
    let project = Operator::Project {
        input: Box::new(input),
        vars,
    };
    let input = Box::new(node(project, rows));
    node(Operator::Distinct { input }, rows)
}
