//! What does the query say, before anything is decided about how to answer it?
//!
//! The logical form of a query: SPARQL's algebra with variables and constants numbered, GRAPH
//! pushed down into the quad patterns, and for each pattern the variables that are certainly
//! and possibly bound in its solutions.

use crate::expression::{Aggregate, Expression};
use crate::physical::{
    ConstId, Constant, Dataset, OrderKey, Outcome, PathExpression, Scope, Service, Slot,
    TemplateTriple, Var, Windows,
};
use crate::varset::VarSet;
use oxrdf::NamedNode;

/// A quad pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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
            Scope::Default | Scope::Named => None,
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
#[derive(Clone, Debug, PartialEq, Eq)]
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
#[derive(Clone, Debug, PartialEq, Eq)]
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
    /// Solutions that are given with each execution: they bind all of these variables.
    Materialized {
        vars: Vec<Var>,
        /// About how many.
        rows: u64,
    },
    /// Two parts at least.
    Join(Vec<Self>),
    LeftJoin {
        left: Box<Self>,
        right: Box<Self>,
        /// EXISTS of the condition, each with the variable that holds its answer there.
        marks: Vec<(Var, Self)>,
        condition: Option<Expression>,
    },
    /// The solutions of the left side that none of the right side's agrees with on a shared
    /// variable; `graph` is the variable of the GRAPH around, which does not count as shared.
    Minus {
        left: Box<Self>,
        right: Box<Self>,
        graph: Option<Var>,
    },
    /// Whether `pattern` has a solution once the variables of a solution of `inner` have their
    /// values in it.
    Exists {
        inner: Box<Self>,
        pattern: Box<Self>,
        outcome: Outcome,
    },
    /// A nested SELECT whose modifiers keep it from being a part of the pattern around it.
    Subquery(Box<Subquery>),
    /// `inner` once for each named graph, which is the value of `scope` inside and of `name`
    /// outside.
    EachGraph {
        scope: Var,
        name: Var,
        inner: Box<Self>,
    },
    /// What another endpoint answers.
    Service(Box<Service>),
    /// Two branches at least.
    Union(Vec<Self>),
    Filter {
        inner: Box<Self>,
        expression: Expression,
    },
    /// Each expression sees the variables before it.
    Extend {
        inner: Box<Self>,
        bindings: Vec<(Var, Expression)>,
    },
    Group {
        inner: Box<Self>,
        by: Vec<Var>,
        aggregates: Vec<(Var, Aggregate)>,
    },
}

/// A nested SELECT; the variables that it does not project have numbers of their own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Subquery {
    pub(crate) pattern: Pattern,
    pub(crate) project: Vec<Var>,
    pub(crate) modifiers: Modifiers,
}

/// What is done to the solutions of a SELECT, nested or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Modifiers {
    pub(crate) order: Vec<OrderKey>,
    pub(crate) deduplicate: Deduplicate,
    pub(crate) offset: usize,
    pub(crate) limit: Option<usize>,
}

impl Modifiers {
    /// True if all solutions pass as they are, in no certain order.
    pub(crate) fn keep_everything(&self) -> bool {
        self.order.is_empty()
            && matches!(self.deduplicate, Deduplicate::No | Deduplicate::Reduced)
            && self.offset == 0
            && self.limit.is_none()
    }
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
            Self::Materialized { vars, .. } => vars.iter().copied().collect(),
            Self::Join(parts) => {
                let mut set = VarSet::default();
                for part in parts {
                    set.extend(&part.certain());
                }
                set
            }
            Self::LeftJoin { left, .. } | Self::Minus { left, .. } => left.certain(),
            Self::Exists { inner, outcome, .. } => {
                let mut set = inner.certain();
                set.extend(&outcome.variable().into_iter().collect());
                set
            }
            Self::Subquery(query) => query
                .pattern
                .certain()
                .intersection(&query.project.iter().copied().collect()),
            Self::EachGraph { scope, name, inner } => {
                let mut set = inner.certain().without(*scope);
                set.insert(*name);
                set
            }
            Self::Service(service) => service_certain(service),
            Self::Union(branches) => branches
                .iter()
                .map(Self::certain)
                .reduce(|a, b| a.intersection(&b))
                .unwrap_or_default(),
            Self::Filter { inner, .. } => inner.certain(),
            Self::Extend { inner, bindings } => {
                let mut set = inner.certain();
                for (var, expression) in bindings {
                    if never_fails(expression, &set) {
                        set.insert(*var);
                    }
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
            Self::Values { vars, .. } | Self::Materialized { vars, .. } => {
                vars.iter().copied().collect()
            }
            Self::LeftJoin { left, right, .. } => left.possible().union(&right.possible()),
            Self::Minus { left, .. } => left.possible(),
            Self::Exists { inner, outcome, .. } => {
                let mut set = inner.possible();
                set.extend(&outcome.variable().into_iter().collect());
                set
            }
            Self::Subquery(query) => query
                .pattern
                .possible()
                .intersection(&query.project.iter().copied().collect()),
            Self::EachGraph { scope, name, inner } => {
                let mut set = inner.possible().without(*scope);
                set.insert(*name);
                set
            }
            Self::Service(service) => service_possible(service),
            Self::Join(parts) | Self::Union(parts) => {
                let mut set = VarSet::default();
                for part in parts {
                    set.extend(&part.possible());
                }
                set
            }
            Self::Filter { inner, .. } => inner.possible(),
            Self::Extend { inner, bindings } => {
                let mut set = inner.possible();
                for (var, _) in bindings {
                    set.insert(*var);
                }
                set
            }
            Self::Group { by, aggregates, .. } => by
                .iter()
                .copied()
                .chain(aggregates.iter().map(|(var, _)| *var))
                .collect(),
        }
    }

    /// Calls `visit` with each pattern inside, those within a pattern before it, then with the
    /// pattern itself.
    pub(crate) fn for_each_mut(&mut self, visit: &mut dyn FnMut(&mut Self)) {
        match self {
            Self::Unit
            | Self::Quads(_)
            | Self::Path(_)
            | Self::Graphs(_)
            | Self::Values { .. }
            | Self::Materialized { .. }
            | Self::Service(_) => {}
            Self::Minus { left, right, .. } => {
                left.for_each_mut(visit);
                right.for_each_mut(visit);
            }
            Self::LeftJoin {
                left, right, marks, ..
            } => {
                left.for_each_mut(visit);
                right.for_each_mut(visit);
                for (_, pattern) in marks {
                    pattern.for_each_mut(visit);
                }
            }
            Self::Exists { inner, pattern, .. } => {
                inner.for_each_mut(visit);
                pattern.for_each_mut(visit);
            }
            Self::Subquery(query) => query.pattern.for_each_mut(visit),
            Self::Join(parts) | Self::Union(parts) => {
                for part in parts {
                    part.for_each_mut(visit);
                }
            }
            Self::EachGraph { inner, .. }
            | Self::Filter { inner, .. }
            | Self::Extend { inner, .. }
            | Self::Group { inner, .. } => inner.for_each_mut(visit),
        }
        visit(self);
    }

    /// True if `var` occurs anywhere in the pattern, be it in an expression.
    pub(crate) fn mentions(&self, var: Var) -> bool {
        self.mentioned().contains(var)
    }

    /// The variables that occur anywhere in the pattern, be it in an expression.
    pub(crate) fn mentioned(&self) -> VarSet {
        let mut set = VarSet::default();
        self.add_mentioned(&mut set);
        set
    }

    fn add_mentioned(&self, set: &mut VarSet) {
        match self {
            Self::Unit => (),
            Self::Quads(quads) => set.extend(&quads.iter().flat_map(Quad::variables).collect()),
            Self::Path(path) => set.extend(&path.variables().collect()),
            Self::Graphs(slot) => set.extend(&Self::Graphs(*slot).certain()),
            Self::Values { vars, .. } | Self::Materialized { vars, .. } => {
                set.extend(&vars.iter().copied().collect());
            }
            Self::Minus { left, right, .. } => {
                left.add_mentioned(set);
                right.add_mentioned(set);
            }
            Self::LeftJoin {
                left,
                right,
                marks,
                condition,
            } => {
                left.add_mentioned(set);
                right.add_mentioned(set);
                for (var, pattern) in marks {
                    set.insert(*var);
                    pattern.add_mentioned(set);
                }
                if let Some(condition) = condition {
                    set.extend(&condition.variables());
                }
            }
            Self::Exists {
                inner,
                pattern,
                outcome,
            } => {
                inner.add_mentioned(set);
                pattern.add_mentioned(set);
                set.extend(&outcome.variable().into_iter().collect());
            }
            Self::Subquery(query) => {
                query.pattern.add_mentioned(set);
                set.extend(&query.project.iter().copied().collect());
                for key in &query.modifiers.order {
                    set.extend(&key.expression.variables());
                }
            }
            Self::EachGraph { scope, name, inner } => {
                set.insert(*scope);
                set.insert(*name);
                inner.add_mentioned(set);
            }
            Self::Service(service) => {
                set.extend(&service_possible(service));
                let variables = service.query.openings.iter();
                let variables = variables.flat_map(|opening| &opening.variables);
                set.extend(&variables.map(|(_, var)| *var).collect());
            }
            Self::Join(parts) | Self::Union(parts) => {
                for part in parts {
                    part.add_mentioned(set);
                }
            }
            Self::Filter { inner, expression } => {
                inner.add_mentioned(set);
                set.extend(&expression.variables());
            }
            Self::Extend { inner, bindings } => {
                inner.add_mentioned(set);
                for (var, expression) in bindings {
                    set.insert(*var);
                    set.extend(&expression.variables());
                }
            }
            Self::Group {
                inner,
                by,
                aggregates,
            } => {
                inner.add_mentioned(set);
                set.extend(&by.iter().copied().collect());
                for (var, aggregate) in aggregates {
                    set.insert(*var);
                    if let Some(operand) = &aggregate.operand {
                        set.extend(&operand.variables());
                    }
                }
            }
        }
    }
}

/// The variables that each answer of an endpoint binds; the answer of one that fails binds none.
pub(crate) fn service_certain(service: &Service) -> VarSet {
    if service.silent {
        return VarSet::default();
    }
    let certain = service.certain.iter().copied();
    certain.chain(endpoint_variable(service)).collect()
}

/// The variables that an answer of an endpoint may bind, that of the endpoint itself included.
pub(crate) fn service_possible(service: &Service) -> VarSet {
    let columns = service.columns.iter().copied();
    columns.chain(endpoint_variable(service)).collect()
}

/// The variable that holds the endpoint.
pub(crate) fn endpoint_variable(service: &Service) -> Option<Var> {
    match service.endpoint {
        Slot::Var(var) => Some(var),
        Slot::Const(_) => None,
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
#[derive(Clone, Debug, PartialEq, Eq)]
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
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Query {
    pub(crate) form: LogicalForm,
    pub(crate) variables: Vec<String>,
    pub(crate) constants: Vec<Constant>,
    pub(crate) dataset: Option<Dataset>,
    /// Those of a continuous query.
    pub(crate) windows: Option<Windows>,
    /// Without a dataset, all graphs together are the default graph.
    pub(crate) union_default_graph: bool,
    pub(crate) base: Option<NamedNode>,
    pub(crate) pattern: Pattern,
    pub(crate) modifiers: Modifiers,
    /// There is a SERVICE somewhere.
    pub(crate) calls_services: bool,
    /// An expression asks when triples of windows came.
    pub(crate) reads_times: bool,
}
