//! How do SELECT and EXISTS inside a pattern read in our own algebra?
//!
//! A nested SELECT shows its projected variables only: the others get numbers of their own, after
//! which a plain projection is just its pattern. EXISTS in an expression becomes a variable that
//! the pattern below binds to true or false; as a whole condition it is a filter of its own.

use spargebra::algebra::{Expression as Parsed, GraphPattern};

use crate::algebra::{Modifiers, Pattern, Subquery};
use crate::convert::{Converter, Scoped, Select, in_graph};
use crate::convert_expression::chain;
use crate::error::PlanError;
use crate::expression::{Comparison, Expression};
use crate::physical::{Outcome, Scope, Slot, Var};

impl Converter<'_> {
    /// A nested SELECT.
    pub(crate) fn subquery(
        &mut self,
        select: GraphPattern,
        scope: Scope,
    ) -> Result<Scoped, PlanError> {
        let order_is_seen = std::mem::take(&mut self.order_is_seen);
        let select = Select::split(select);
        let mut project = Vec::with_capacity(select.project.len());
        let mut names = rustc_hash::FxHashMap::default();
        for variable in select.project {
            let name = variable.as_str().to_owned();
            let var = self.variable(variable)?;
            if names.insert(name, var).is_none() {
                project.push(var);
            }
        }
        let outer = std::mem::replace(&mut self.by_name, names);
        self.subqueries += 1;
        let scoped = self.pattern(select.inner, scope)?;
        let ordered = order_is_seen || select.offset > 0 || select.limit.is_some();
        // Without a slice or an aggregate the order of a nested SELECT is nobody's to see.
        let keys = if ordered { select.order } else { Vec::new() };
        let (scoped, order) = self.order(scoped, keys, scope)?;
        self.subqueries -= 1;
        self.by_name = outer;
        let modifiers = Modifiers {
            order,
            deduplicate: select.deduplicate,
            offset: select.offset,
            limit: select.limit,
        };
        if modifiers.keep_everything() {
            return Ok(scoped);
        }
        Ok(Scoped {
            pattern: Pattern::Subquery(Box::new(Subquery {
                pattern: in_graph(scoped, scope),
                project,
                modifiers,
            })),
            // What is left of its rows need not have the graph.
            in_graph: false,
        })
    }

    /// GRAPH with a variable around what must be evaluated for one graph at a time.
    pub(crate) fn each_graph(
        &mut self,
        name: Var,
        inner: GraphPattern,
    ) -> Result<Scoped, PlanError> {
        let scope = self.make_up_variable()?;
        let inner = self.pattern(inner, Scope::Graph(Slot::Var(scope)))?;
        Ok(Scoped {
            pattern: Pattern::EachGraph {
                scope,
                name,
                inner: Box::new(inner.pattern),
            },
            in_graph: false,
        })
    }

    /// FILTER: EXISTS among the operands of a conjunction are conditions by themselves.
    pub(crate) fn filter(
        &mut self,
        inner: Scoped,
        condition: Parsed,
        scope: Scope,
    ) -> Result<Scoped, PlanError> {
        let mut tests = Vec::new();
        let mut rest = Vec::new();
        split_exists(condition, &mut rest, &mut tests);
        let mut scoped = inner;
        let and = |left, right| Parsed::And(Box::new(left), Box::new(right));
        if let Some(rest) = rest.into_iter().reduce(and) {
            let (inner, expression) = self.marking(scoped, scope, |this| this.expression(rest))?;
            scoped = Scoped {
                pattern: Pattern::Filter {
                    inner: Box::new(inner.pattern),
                    expression,
                },
                in_graph: inner.in_graph,
            };
        }
        for (pattern, outcome) in tests {
            let pattern = self.exists(pattern, scope)?;
            scoped = looked_for(scoped, pattern, outcome, scope);
        }
        Ok(scoped)
    }

    /// Converts an expression, and the patterns of EXISTS in it.
    pub(crate) fn with_marks<T>(
        &mut self,
        scope: Scope,
        convert: impl FnOnce(&mut Self) -> Result<T, PlanError>,
    ) -> Result<(T, Vec<(Var, Pattern)>), PlanError> {
        let outer_scope = std::mem::replace(&mut self.scope, scope);
        let outer = std::mem::take(&mut self.marks);
        let converted = convert(self)?;
        self.scope = outer_scope;
        Ok((converted, std::mem::replace(&mut self.marks, outer)))
    }

    /// Converts an expression on the solutions of a pattern, which then answers its EXISTS.
    pub(crate) fn marking<T>(
        &mut self,
        inner: Scoped,
        scope: Scope,
        convert: impl FnOnce(&mut Self) -> Result<T, PlanError>,
    ) -> Result<(Scoped, T), PlanError> {
        let (converted, marks) = self.with_marks(scope, convert)?;
        let mut scoped = inner;
        for (var, pattern) in marks {
            scoped = looked_for(scoped, pattern, Outcome::Mark(var), scope);
        }
        Ok((scoped, converted))
    }

    /// The pattern of EXISTS.
    ///
    /// The variables of the current solution have their values in it. Where the pattern computes
    /// one of them itself, that is another variable, and must agree with it in the end.
    pub(crate) fn exists(
        &mut self,
        pattern: GraphPattern,
        scope: Scope,
    ) -> Result<Pattern, PlanError> {
        let mut names = Vec::new();
        add_computed(&pattern, &mut names);
        let mut hidden: Vec<(String, Var, Var)> = Vec::new();
        for name in names {
            if let Some(outer) = self.by_name.get(&name).copied()
                && !hidden.iter().any(|(known, ..)| *known == name)
            {
                let inner = self.hidden_variable(&name)?;
                self.by_name.insert(name.clone(), inner);
                hidden.push((name, outer, inner));
            }
        }
        self.exists += 1;
        let mut converted = self.pattern(pattern, scope)?.pattern;
        self.exists -= 1;
        for (name, outer, inner) in hidden {
            self.by_name.insert(name, outer);
            let unbound = |var| Expression::Not(Box::new(Expression::Bound(var)));
            let same = Expression::Compare(
                Comparison::SameTerm,
                Box::new(Expression::Variable(inner)),
                Box::new(Expression::Variable(outer)),
            );
            converted = Pattern::Filter {
                inner: Box::new(converted),
                expression: Expression::Or(vec![unbound(outer), unbound(inner), same]),
            };
        }
        Ok(converted)
    }
}

/// A pattern whose solutions are asked whether there is a solution of another.
fn looked_for(inner: Scoped, pattern: Pattern, outcome: Outcome, scope: Scope) -> Scoped {
    Scoped {
        // EXISTS looks into the current graph, so the graph must be bound before.
        pattern: Pattern::Exists {
            inner: Box::new(in_graph(inner, scope)),
            pattern: Box::new(pattern),
            outcome,
        },
        in_graph: true,
    }
}

/// Parts the operands of a conjunction: EXISTS and NOT EXISTS, and the others.
fn split_exists(
    condition: Parsed,
    rest: &mut Vec<Parsed>,
    tests: &mut Vec<(GraphPattern, Outcome)>,
) {
    match condition {
        Parsed::And(left, right) => {
            let parts = chain(*left, *right, |parsed| match parsed {
                Parsed::And(left, right) => Ok((*left, *right)),
                other => Err(other),
            });
            for part in parts {
                split_exists(part, rest, tests);
            }
        }
        Parsed::Exists(pattern) => tests.push((*pattern, Outcome::Keep)),
        Parsed::Not(part) => match *part {
            Parsed::Exists(pattern) => tests.push((*pattern, Outcome::Drop)),
            part => rest.push(Parsed::Not(Box::new(part))),
        },
        other => rest.push(other),
    }
}

/// The names of variables that a pattern shows and that it computes rather than matches.
fn add_computed(pattern: &GraphPattern, names: &mut Vec<String>) {
    match pattern {
        GraphPattern::Extend {
            inner, variable, ..
        } => {
            names.push(variable.as_str().to_owned());
            add_computed(inner, names);
        }
        GraphPattern::Group {
            inner, aggregates, ..
        } => {
            names.extend(aggregates.iter().map(|(var, _)| var.as_str().to_owned()));
            add_computed(inner, names);
        }
        GraphPattern::Project { inner, variables } => {
            let mut computed = Vec::new();
            add_computed(inner, &mut computed);
            computed.retain(|name| variables.iter().any(|var| var.as_str() == name));
            names.extend(computed);
        }
        GraphPattern::Join { left, right }
        | GraphPattern::LeftJoin { left, right, .. }
        | GraphPattern::Lateral { left, right }
        | GraphPattern::Union { left, right }
        | GraphPattern::Minus { left, right } => {
            add_computed(left, names);
            add_computed(right, names);
        }
        GraphPattern::Filter { inner, .. }
        | GraphPattern::Graph { inner, .. }
        | GraphPattern::OrderBy { inner, .. }
        | GraphPattern::Distinct { inner }
        | GraphPattern::Reduced { inner }
        | GraphPattern::Slice { inner, .. }
        | GraphPattern::Service { inner, .. } => add_computed(inner, names),
        GraphPattern::Bgp { .. } | GraphPattern::Path { .. } | GraphPattern::Values { .. } => (),
    }
}

/// True if the pattern's solutions in several graphs are not those in each of them together.
pub(crate) fn evaluates_apart(pattern: &GraphPattern) -> bool {
    match pattern {
        GraphPattern::Group { .. } | GraphPattern::Distinct { .. } | GraphPattern::Slice { .. } => {
            true
        }
        GraphPattern::Join { left, right }
        | GraphPattern::LeftJoin { left, right, .. }
        | GraphPattern::Lateral { left, right }
        | GraphPattern::Union { left, right }
        | GraphPattern::Minus { left, right } => evaluates_apart(left) || evaluates_apart(right),
        GraphPattern::Project { inner, .. }
        | GraphPattern::Filter { inner, .. }
        | GraphPattern::Extend { inner, .. }
        | GraphPattern::OrderBy { inner, .. }
        | GraphPattern::Reduced { inner } => evaluates_apart(inner),
        // They have graphs of their own.
        GraphPattern::Graph { .. } | GraphPattern::Service { .. } => false,
        GraphPattern::Bgp { .. } | GraphPattern::Path { .. } | GraphPattern::Values { .. } => false,
    }
}
