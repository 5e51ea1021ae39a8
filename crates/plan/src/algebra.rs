//! What does the query say, before anything is decided about how to answer it?
//!
//! The logical form of a query: SPARQL's algebra with variables and constants numbered, GRAPH
//! pushed down into the quad patterns, and for each pattern the variables that are certainly
//! and possibly bound in its solutions.

use crate::expression::{Aggregate, Expression};
use crate::physical::{
    ConstId, Constant, Dataset, OrderKey, PathExpression, Scope, Slot, TemplateTriple, Var,
};
use crate::varset::VarSet;
use oxrdf::NamedNode;

/// A quad pattern.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Quad {
    pub(crate) subject: Slot,
    pub(crate) predicate: Slot,
    pub(crate) object: Slot,
    pub(crate) scope: Scope,
}

impl Quad {
    /// The variables of all positions, repeats included.
    pub(crate) fn variables(&self) -> impl Iterator<Item = Var> + use<> {
        let graph = match self.scope {
            Scope::Default => None,
            Scope::Graph(slot) => Some(slot),
        };
        [
            Some(self.subject),
            Some(self.predicate),
            Some(self.object),
            graph,
        ]
        .into_iter()
        .flatten()
        .filter_map(|slot| match slot {
            Slot::Var(var) => Some(var),
            Slot::Const(_) => None,
        })
    }
}

/// A property path between two ends that no joins of quad patterns can stand for.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PathPattern {
    pub(crate) subject: Slot,
    pub(crate) path: PathExpression,
    pub(crate) object: Slot,
    pub(crate) scope: Scope,
}

impl PathPattern {
    /// The variables of its ends and graph, repeats included.
    pub(crate) fn variables(&self) -> impl Iterator<Item = Var> + use<> {
        // Any predicate that is no variable of its own.
        let quad = Quad {
            subject: self.subject,
            predicate: self.subject,
            object: self.object,
            scope: self.scope,
        };
        quad.variables()
    }
}

/// A graph pattern.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Pattern {
    /// One solution that binds nothing: the empty group.
    Unit,
    /// Quad patterns, joined.
    Quads(Vec<Quad>),
    /// A property path.
    Path(PathPattern),
    /// The named graphs of the dataset, or whether this one exists.
    Graphs(Slot),
    /// Inline data.
    Values {
        vars: Vec<Var>,
        rows: Vec<Vec<Option<ConstId>>>,
    },
    Join(Box<Self>, Box<Self>),
    LeftJoin {
        left: Box<Self>,
        right: Box<Self>,
        condition: Option<Expression>,
    },
    /// Two branches at least.
    Union(Vec<Self>),
    Filter {
        inner: Box<Self>,
        expression: Expression,
    },
    Extend {
        inner: Box<Self>,
        var: Var,
        expression: Expression,
    },
    Group {
        inner: Box<Self>,
        by: Vec<Var>,
        aggregates: Vec<(Var, Aggregate)>,
    },
}

impl Pattern {
    /// Variables bound in every solution.
    pub(crate) fn certain(&self) -> VarSet {
        match self {
            Self::Unit => VarSet::default(),
            Self::Quads(quads) => quads.iter().flat_map(Quad::variables).collect(),
            Self::Path(path) => path.variables().collect(),
            Self::Graphs(Slot::Var(var)) => [*var].into_iter().collect(),
            Self::Graphs(Slot::Const(_)) => VarSet::default(),
            Self::Values { vars, rows } => certain_of_values(vars, rows),
            Self::Join(left, right) => left.certain().union(&right.certain()),
            Self::LeftJoin { left, .. } => left.certain(),
            Self::Union(branches) => branches
                .iter()
                .map(Self::certain)
                .reduce(|a, b| a.intersection(&b))
                .unwrap_or_default(),
            Self::Filter { inner, .. } => inner.certain(),
            Self::Extend {
                inner,
                var,
                expression,
            } => {
                let mut set = inner.certain();
                if never_fails(expression, &set) {
                    set.insert(*var);
                }
                set
            }
            Self::Group { inner, by, .. } => {
                let set = inner.certain();
                by.iter()
                    .copied()
                    .filter(|var| set.contains(*var))
                    .collect()
            }
        }
    }

    /// Variables bound in some solution, as far as the text tells.
    pub(crate) fn possible(&self) -> VarSet {
        match self {
            Self::Unit | Self::Quads(_) | Self::Path(_) | Self::Graphs(_) => self.certain(),
            Self::Values { vars, .. } => vars.iter().copied().collect(),
            Self::Join(left, right) | Self::LeftJoin { left, right, .. } => {
                left.possible().union(&right.possible())
            }
            Self::Union(branches) => {
                let mut set = VarSet::default();
                for branch in branches {
                    set.extend(&branch.possible());
                }
                set
            }
            Self::Filter { inner, .. } => inner.possible(),
            Self::Extend { inner, var, .. } => {
                let mut set = inner.possible();
                set.insert(*var);
                set
            }
            Self::Group { by, aggregates, .. } => by
                .iter()
                .copied()
                .chain(aggregates.iter().map(|(var, _)| *var))
                .collect(),
        }
    }

    /// True if `var` occurs anywhere in the pattern, be it in an expression.
    pub(crate) fn mentions(&self, var: Var) -> bool {
        let in_expression = |expression: &Expression| expression.variables().contains(var);
        match self {
            Self::Unit => false,
            Self::Quads(quads) => quads.iter().any(|quad| quad.variables().any(|v| v == var)),
            Self::Path(path) => path.variables().any(|v| v == var),
            Self::Graphs(slot) => *slot == Slot::Var(var),
            Self::Values { vars, .. } => vars.contains(&var),
            Self::Join(left, right) => left.mentions(var) || right.mentions(var),
            Self::LeftJoin {
                left,
                right,
                condition,
            } => {
                left.mentions(var)
                    || right.mentions(var)
                    || condition.as_ref().is_some_and(in_expression)
            }
            Self::Union(branches) => branches.iter().any(|branch| branch.mentions(var)),
            Self::Filter { inner, expression } => inner.mentions(var) || in_expression(expression),
            Self::Extend {
                inner,
                var: new,
                expression,
            } => *new == var || inner.mentions(var) || in_expression(expression),
            Self::Group {
                inner,
                by,
                aggregates,
            } => {
                inner.mentions(var)
                    || by.contains(&var)
                    || aggregates.iter().any(|(new, aggregate)| {
                        *new == var || aggregate.operand.as_ref().is_some_and(in_expression)
                    })
            }
        }
    }
}

/// Columns of inline data that no row leaves undefined.
pub(crate) fn certain_of_values(vars: &[Var], rows: &[Vec<Option<ConstId>>]) -> VarSet {
    vars.iter()
        .enumerate()
        .filter(|(column, _)| rows.iter().all(|row| row[*column].is_some()))
        .map(|(_, var)| *var)
        .collect()
}

/// True if the expression has a value in every solution that binds `certain`.
pub(crate) fn never_fails(expression: &Expression, certain: &VarSet) -> bool {
    match expression {
        Expression::Constant(_) | Expression::Bound(_) => true,
        Expression::Variable(var) => certain.contains(*var),
        _ => false,
    }
}

/// What the query returns, before it is known which columns that needs.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum LogicalForm {
    Select(Vec<Var>),
    Ask,
    Construct(Vec<TemplateTriple>),
    Describe(Vec<Slot>),
}

/// `DISTINCT` or `REDUCED`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Deduplicate {
    No,
    Distinct,
    Reduced,
}

/// A query in its logical form.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Query {
    pub(crate) form: LogicalForm,
    pub(crate) variables: Vec<String>,
    pub(crate) constants: Vec<Constant>,
    pub(crate) dataset: Option<Dataset>,
    pub(crate) base: Option<NamedNode>,
    pub(crate) pattern: Pattern,
    pub(crate) order: Vec<OrderKey>,
    pub(crate) deduplicate: Deduplicate,
    pub(crate) offset: usize,
    pub(crate) limit: Option<usize>,
}
