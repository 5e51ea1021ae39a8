//! How do filters and EXISTS read in our own algebra?
//!
//! EXISTS in an expression becomes a variable that the pattern below binds to true or false; as a
//! whole condition it is a filter of its own.

use jindou_syntax::tree::{Element, Expression as Parsed, ExpressionKind, Group};

use rustc_hash::FxHashSet;

use crate::algebra::Pattern;
use crate::convert::{Converter, Mark, Scoped};
use crate::convert_expression::conjunction;
use crate::convert_select::{columns, shown};
use crate::error::PlanError;
use crate::expression::{Comparison, Expression};
use crate::physical::{Outcome, Scope, Var};

/// Conditions, apart: those without and those that are EXISTS, with what they keep.
#[derive(Default)]
struct Conditions<'q, 't> {
    rest: Vec<&'q Parsed<'t>>,
    tests: Vec<(&'q Group<'t>, Outcome)>,
}

impl<'q, 't> Conditions<'q, 't> {
    fn add(&mut self, condition: &'q Parsed<'t>, is_wanted: bool) {
        match &condition.kind {
            ExpressionKind::And(list) if is_wanted => {
                for part in list {
                    self.add(part, true);
                }
            }
            ExpressionKind::Exists { negated, group } => {
                let outcome = match *negated != is_wanted {
                    true => Outcome::Keep,
                    false => Outcome::Drop,
                };
                self.tests.push((group, outcome));
            }
            ExpressionKind::Not(part) if matches!(part.kind, ExpressionKind::Exists { .. }) => {
                self.add(part, !is_wanted);
            }
            _ => self.rest.push(condition),
        }
    }
}

impl<'t> Converter<'t> {
    /// The solutions that meet all conditions: EXISTS among the operands of a conjunction are
    /// conditions by themselves.
    pub(crate) fn filter<'q>(
        &mut self,
        inner: Scoped,
        conditions: impl Iterator<Item = &'q Parsed<'t>>,
        scope: Scope,
    ) -> Result<Scoped, PlanError>
    where
        't: 'q,
    {
        let mut apart = Conditions::default();
        for condition in conditions {
            apart.add(condition, true);
        }
        let mut scoped = inner;
        if !apart.rest.is_empty() {
            let (inner, condition) =
                self.marking(scoped, scope, |this| this.conjunction(apart.rest))?;
            scoped = match condition {
                None => inner,
                Some(expression) => {
                    let pattern = Pattern::Filter {
                        inner: Box::new(inner.pattern),
                        expression,
                    };
                    Scoped::above(inner.height, pattern, inner.in_graph)?
                }
            };
        }
        for (group, outcome) in apart.tests {
            let pattern = self.exists(group, scope)?;
            scoped = looked_for(scoped, pattern, outcome, scope)?;
        }
        Ok(scoped)
    }

    /// Converts an expression, and the patterns of EXISTS in it.
    pub(crate) fn with_marks<T>(
        &mut self,
        scope: Scope,
        convert: impl FnOnce(&mut Self) -> Result<T, PlanError>,
    ) -> Result<(T, Vec<Mark>), PlanError> {
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
        for Mark {
            var,
            pattern,
            height,
        } in marks
        {
            let pattern = Scoped {
                pattern,
                in_graph: true,
                height,
            };
            scoped = looked_for(scoped, pattern, Outcome::Mark(var), scope)?;
        }
        Ok((scoped, converted))
    }

    /// The variable that holds whether the pattern of an EXISTS in an expression has a solution.
    pub(crate) fn mark(&mut self, group: &Group<'t>) -> Result<Var, PlanError> {
        let Scoped {
            pattern, height, ..
        } = self.exists(group, self.scope)?;
        let var = self.make_up_variable()?;
        self.marks.push(Mark {
            var,
            pattern,
            height,
        });
        Ok(var)
    }

    /// The pattern of EXISTS.
    ///
    /// The variables of the current solution have their values in it. Where the pattern computes
    /// one of them itself, that is another variable, and must agree with it in the end.
    fn exists(&mut self, group: &Group<'t>, scope: Scope) -> Result<Scoped, PlanError> {
        let mut names = Vec::new();
        add_computed(group, &mut names);
        let mut seen = FxHashSet::default();
        names.retain(|name| seen.insert(*name));
        let mut hidden: Vec<(&str, Var, Var)> = Vec::new();
        for name in names {
            if let Some(outer) = self.by_name.get(name).copied() {
                let inner = self.hidden_variable(name)?;
                self.by_name.insert(name, inner);
                hidden.push((name, outer, inner));
            }
        }
        self.exists += 1;
        let depth = std::mem::take(&mut self.depth);
        let scoped = self.group(group, scope)?;
        self.depth = depth;
        self.exists -= 1;
        let mut conditions = Vec::with_capacity(hidden.len());
        for (name, outer, inner) in hidden {
            self.by_name.insert(name, outer);
            conditions.push(agree(outer, inner));
        }
        let Some(expression) = conjunction(conditions) else {
            return Ok(scoped);
        };
        let pattern = Pattern::Filter {
            inner: Box::new(scoped.pattern),
            expression,
        };
        Scoped::above(scoped.height, pattern, scoped.in_graph)
    }
}

/// True where two variables have the same value, or one of them has none.
fn agree(outer: Var, inner: Var) -> Expression {
    let unbound = |var| Expression::Not(Box::new(Expression::Bound(var)));
    let same = Expression::Compare(
        Comparison::SameTerm,
        Box::new(Expression::Variable(inner)),
        Box::new(Expression::Variable(outer)),
    );
    Expression::Or(vec![unbound(outer), unbound(inner), same])
}

/// A pattern whose solutions are asked whether there is a solution of another.
fn looked_for(
    inner: Scoped,
    pattern: Scoped,
    outcome: Outcome,
    scope: Scope,
) -> Result<Scoped, PlanError> {
    // EXISTS looks into the current graph, so the graph must be bound before.
    let inner = inner.in_graph(scope);
    let height = inner.height.max(pattern.height);
    let pattern = Pattern::Exists {
        inner: Box::new(inner.pattern),
        pattern: Box::new(pattern.pattern),
        outcome,
    };
    Scoped::above(height, pattern, true)
}

/// The names of variables that a group shows and that it computes rather than matches.
fn add_computed<'t>(group: &Group<'t>, names: &mut Vec<&'t str>) {
    for element in &group.elements {
        match element {
            Element::Bind(_, variable) => names.push(variable.name),
            Element::Union(groups) => groups.iter().for_each(|group| add_computed(group, names)),
            Element::Optional(group)
            | Element::Minus(group)
            | Element::Graph(_, group)
            | Element::BareGraph(_, group)
            | Element::Window(_, group) => add_computed(group, names),
            Element::Service(service) => add_computed(&service.group, names),
            Element::Select(select) => {
                let mut computed = Vec::new();
                add_computed(&select.group, &mut computed);
                let aliases = select
                    .modifiers
                    .group_by
                    .iter()
                    .filter_map(|(_, alias)| *alias);
                computed.extend(aliases.map(|alias| alias.name));
                let shown: FxHashSet<&str> = shown(&select.projection).collect();
                names.extend(computed.into_iter().filter(|name| shown.contains(name)));
                let columns = columns(&select.projection).iter();
                let columns = columns.filter(|column| column.expression.is_some());
                names.extend(columns.map(|column| column.variable.name));
            }
            Element::Triples(_) | Element::Filter(_) | Element::Values(_) => (),
        }
    }
}
