//! Which parts of a pattern may be joined in any order, and what happens to their join?
//!
//! A [`Block`] is a set of items that are joined (a join is commutative and associative), then
//! operations on the result in the order of the text. The join of two blocks is one block where
//! the operations of each side may be done after joining the other side: each variable that an
//! operation looks at must have the same value then. Where that does not hold, the side stays
//! apart and is evaluated by itself, as SPARQL's bottom-up semantics has it.

use crate::algebra::{
    PathPattern, Pattern, Quad, certain_of_values, never_fails, service_certain, service_possible,
};
use crate::expression::Expression;
use crate::patience::Patience;
use crate::physical::{ConstId, Outcome, Service, Slot, Var};
use crate::rows::bound_of;
use crate::varset::VarSet;

use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::VecDeque;

/// Items to join, then operations.
#[derive(Clone, Debug, Default)]
pub(crate) struct Block {
    pub(crate) items: Vec<Item>,
    pub(crate) operations: Vec<Operation>,
    /// The quad patterns among the items.
    quads: FxHashSet<Quad>,
}

/// Something to join.
#[derive(Clone, Debug)]
pub(crate) enum Item {
    Quad(Quad),
    Path(PathPattern),
    Graphs(Slot),
    Values {
        vars: Vec<Var>,
        rows: Vec<Vec<Option<ConstId>>>,
    },
    Union(Vec<Pattern>),
    Service(Box<Service>),
    /// Evaluated by itself.
    Apart(Pattern),
}

/// Something done to each solution of the join.
#[derive(Clone, Debug)]
pub(crate) enum Operation {
    Filter(Expression),
    Extend {
        var: Var,
        expression: Expression,
    },
    Optional {
        right: Pattern,
        marks: Vec<(Var, Pattern)>,
        condition: Option<Expression>,
    },
    Minus {
        right: Pattern,
        /// The variables of the left side that count as shared if the right side has them.
        domain: VarSet,
    },
    Exists {
        pattern: Pattern,
        outcome: Outcome,
    },
}

impl Item {
    pub(crate) fn certain(&self) -> VarSet {
        match self {
            Self::Quad(quad) => quad.variables().collect(),
            Self::Path(path) => path.variables().collect(),
            Self::Graphs(slot) => Pattern::Graphs(*slot).certain(),
            Self::Values { vars, rows } => certain_of_values(vars, rows),
            Self::Union(branches) => certain_of_union(branches),
            Self::Service(service) => service_certain(service),
            Self::Apart(pattern) => pattern.certain(),
        }
    }

    pub(crate) fn possible(&self) -> VarSet {
        match self {
            Self::Quad(_) | Self::Path(_) | Self::Graphs(_) => self.certain(),
            Self::Values { vars, .. } => vars.iter().copied().collect(),
            Self::Union(branches) => possible_of_union(branches),
            Self::Service(service) => service_possible(service),
            Self::Apart(pattern) => pattern.possible(),
        }
    }
}

impl From<Item> for Pattern {
    fn from(item: Item) -> Self {
        match item {
            Item::Quad(quad) => Self::Quads(vec![quad]),
            Item::Path(path) => Self::Path(path),
            Item::Graphs(slot) => Self::Graphs(slot),
            Item::Values { vars, rows } => Self::Values { vars, rows },
            Item::Union(branches) => Self::Union(branches),
            Item::Service(service) => Self::Service(service),
            Item::Apart(pattern) => pattern,
        }
    }
}

impl Block {
    /// The block of a pattern, in which the variables of `given` have a value from the start.
    pub(crate) fn of(pattern: &Pattern, given: &VarSet, patience: &Patience<'_>) -> Self {
        // What is nested in the pattern is walked or copied.
        if patience.is_over() {
            return Self::default();
        }
        match pattern {
            Pattern::Unit => Self::default(),
            Pattern::Quads(quads) => {
                let mut block = Self::default();
                for quad in quads {
                    block.add_quad(*quad);
                }
                block
            }
            Pattern::Path(path) => Self::from_item(Item::Path(path.clone())),
            Pattern::Graphs(slot) => Self::from_item(Item::Graphs(*slot)),
            Pattern::Values { vars, rows } => Self::from_item(Item::Values {
                vars: vars.clone(),
                rows: rows.clone(),
            }),
            Pattern::Union(branches) => Self::from_item(Item::Union(branches.clone())),
            Pattern::Service(service) => Self::from_item(Item::Service(service.clone())),
            Pattern::Group { .. }
            | Pattern::Subquery(_)
            | Pattern::EachGraph { .. }
            | Pattern::Materialized { .. } => Self::from_item(Item::Apart(pattern.clone())),
            Pattern::Join(parts) => Self::join(parts, given, patience),
            Pattern::LeftJoin {
                left,
                right,
                marks,
                condition,
            } => {
                let mut block = Self::of(left, given, patience);
                block.operations.push(Operation::Optional {
                    right: (**right).clone(),
                    marks: marks.clone(),
                    condition: condition.clone(),
                });
                block
            }
            Pattern::Minus { left, right, graph } => {
                let mut block = Self::of(left, given, patience);
                let possible = left.possible();
                block.operations.push(Operation::Minus {
                    right: (**right).clone(),
                    domain: match graph {
                        Some(graph) => possible.without(*graph),
                        None => possible,
                    },
                });
                block
            }
            Pattern::Exists {
                inner,
                pattern,
                outcome,
            } => {
                let mut block = Self::of(inner, given, patience);
                block.operations.push(Operation::Exists {
                    pattern: (**pattern).clone(),
                    outcome: *outcome,
                });
                block
            }
            Pattern::Filter { inner, expression } => {
                let mut block = Self::of(inner, given, patience);
                for part in conjuncts(expression, patience) {
                    block.operations.push(Operation::Filter(part));
                }
                block
            }
            Pattern::Extend { inner, bindings } => {
                let mut block = Self::of(inner, given, patience);
                let extensions = bindings.iter().map(|(var, expression)| Operation::Extend {
                    var: *var,
                    expression: expression.clone(),
                });
                block.operations.extend(extensions);
                block
            }
        }
    }

    fn from_item(item: Item) -> Self {
        Self {
            items: vec![item],
            ..Self::default()
        }
    }

    fn join(parts: &[Pattern], given: &VarSet, patience: &Patience<'_>) -> Self {
        let (mut all, mut repeated) = (VarSet::default(), VarSet::default());
        for part in parts {
            if patience.spend(1) {
                return Self::default();
            }
            let possible = part.possible();
            repeated.extend(&all.intersection(&possible));
            all.extend(&possible);
        }
        let mut joined = Self::default();
        for part in parts {
            let own = part.possible().difference(&repeated);
            let block = Self::of_side(part, &all.difference(&own), given, patience);
            if patience.spend(1 + block.items.len() + block.operations.len()) {
                return Self::default();
            }
            for item in block.items {
                match item {
                    Item::Quad(quad) => joined.add_quad(quad),
                    item => joined.items.push(item),
                }
            }
            joined.operations.extend(block.operations);
        }
        joined
    }

    fn of_side(pattern: &Pattern, other: &VarSet, given: &VarSet, patience: &Patience<'_>) -> Self {
        let block = Self::of(pattern, given, patience);
        if block.commutes_with(other, given) && !block.is_thinned_apart() {
            block
        } else {
            Self::from_item(Item::Apart(pattern.clone()))
        }
    }

    /// True where nothing is gained by joining other items before the operations: all items are
    /// evaluated by themselves anyway, and the operations may leave nothing to join.
    fn is_thinned_apart(&self) -> bool {
        let thins = |operation: &Operation| {
            matches!(
                operation,
                Operation::Minus { .. } | Operation::Exists { .. }
            )
        };
        self.operations.iter().any(thins)
            && self.items.iter().all(|item| matches!(item, Item::Apart(_)))
    }

    /// The same quad pattern twice matches what it matches once.
    fn add_quad(&mut self, quad: Quad) {
        if self.quads.insert(quad) {
            self.items.push(Item::Quad(quad));
        }
    }

    /// True if the operations may be done after joining solutions that bind at most `other`,
    /// where those of `given` have a value from the start.
    pub(crate) fn commutes_with(&self, other: &VarSet, given: &VarSet) -> bool {
        let mut certain = given.clone();
        for item in &self.items {
            certain.extend(&item.certain());
        }
        let same_value =
            |certain: &VarSet, vars: &VarSet| vars.intersection(other).is_subset(certain);
        for operation in &self.operations {
            let same = match operation {
                Operation::Filter(expression) => same_value(&certain, &expression.variables()),
                Operation::Extend { var, expression } => {
                    let same =
                        !other.contains(*var) && same_value(&certain, &expression.variables());
                    if never_fails(expression, &certain) {
                        certain.insert(*var);
                    }
                    same
                }
                Operation::Minus { right, .. } => same_value(&certain, &right.possible()),
                Operation::Exists { pattern, outcome } => {
                    let same = same_value(&certain, &pattern.mentioned());
                    certain.extend(&outcome.variable().into_iter().collect());
                    same
                }
                Operation::Optional {
                    right,
                    marks,
                    condition,
                } => {
                    let mut vars = right.possible();
                    for (_, pattern) in marks {
                        vars.extend(&pattern.mentioned());
                    }
                    if let Some(condition) = condition {
                        vars.extend(&condition.variables());
                    }
                    same_value(&certain, &vars)
                }
            };
            if !same {
                return false;
            }
        }
        true
    }
}

/// The variables that all branches bind.
pub(crate) fn certain_of_union(branches: &[Pattern]) -> VarSet {
    let certain = branches.iter().map(Pattern::certain);
    certain
        .reduce(|a, b| a.intersection(&b))
        .unwrap_or_default()
}

/// The variables that some branch may bind.
pub(crate) fn possible_of_union(branches: &[Pattern]) -> VarSet {
    let mut set = VarSet::default();
    for branch in branches {
        set.extend(&branch.possible());
    }
    set
}

/// The operands of a conjunction at the top of an expression, where the two bounds of a range are
/// one: together they leave much less than two conditions that have nothing to do with each other.
///
/// A solution passes the conjunction if and only if it passes each operand: both an error and
/// false drop it.
pub(crate) fn conjuncts(expression: &Expression, patience: &Patience<'_>) -> Vec<Expression> {
    let mut operands: Vec<Expression> = Vec::new();
    // The places of bounds of a variable, from below or from above, that have no counterpart.
    let mut lone: FxHashMap<(Var, bool), VecDeque<usize>> = FxHashMap::default();
    for part in flattened(expression) {
        if patience.spend(1) {
            break;
        }
        let bound = bound_of(part);
        let other = bound.and_then(|(var, is_lower)| {
            let others = lone.get_mut(&(var, !is_lower));
            others.and_then(VecDeque::pop_front)
        });
        if let Some(place) = other {
            let other = std::mem::replace(&mut operands[place], Expression::And(Vec::new()));
            operands[place] = Expression::And(vec![other, part.clone()]);
            continue;
        }
        if let Some(bound) = bound {
            lone.entry(bound).or_default().push_back(operands.len());
        }
        operands.push(part.clone());
    }
    operands
}

/// The operands of a conjunction, and of those nested in it.
fn flattened(expression: &Expression) -> Vec<&Expression> {
    let mut operands = Vec::new();
    add_flattened(expression, &mut operands);
    operands
}

fn add_flattened<'e>(expression: &'e Expression, operands: &mut Vec<&'e Expression>) {
    match expression {
        Expression::And(parts) => parts.iter().for_each(|part| add_flattened(part, operands)),
        other => operands.push(other),
    }
}
