//! How do SELECT and the solution modifiers read in our own algebra?
//!
//! By section 18.2.4 of SPARQL: groups and aggregates, HAVING, VALUES, the expressions of the
//! columns, ORDER BY, projection, DISTINCT, and the slice. Aggregates are computed with the groups,
//! and are variables in the expressions that have them.
//!
//! A nested SELECT shows its projected variables only: the others get numbers of their own, after
//! which a plain projection is just its pattern.

use jindou_syntax::tree::{
    self, Aggregate as ParsedAggregate, AggregateFunction as ParsedFunction, Column, Element,
    Expression as Parsed, ExpressionKind, Group, Projection, Span, Values,
};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::algebra::{Deduplicate, Modifiers, Pattern, Subquery};
use crate::convert::{Converter, Scoped, deduplicate};
use crate::convert_group::{extended, join};
use crate::error::PlanError;
use crate::expression::{Aggregate, AggregateFunction};
use crate::physical::{OrderKey, Scope, Var};
use crate::varset::VarSet;
use crate::walk;

/// Where solutions come from.
#[derive(Clone, Copy)]
pub(crate) struct Solutions<'q, 't> {
    /// WHERE, if there is one.
    pub(crate) group: Option<&'q Group<'t>>,
    /// The columns of a SELECT that lists them.
    pub(crate) columns: &'q [Column<'t>],
    /// What follows WHERE.
    pub(crate) modifiers: &'q tree::Modifiers<'t>,
    /// VALUES behind it all.
    pub(crate) values: Option<&'q Values<'t>>,
}

/// An aggregate with its place.
type Placed<'q, 't> = (Span, &'q ParsedAggregate<'t>);

impl<'t> Converter<'t> {
    /// The solutions of a query.
    ///
    /// # Errors
    /// As for [`Converter::group`].
    pub(crate) fn outermost(
        &mut self,
        solutions: Solutions<'_, 't>,
        deduplicated: Option<tree::Deduplicate>,
    ) -> Result<(Pattern, Modifiers), PlanError> {
        let modifiers = solutions.modifiers;
        let scoped = self.solutions(solutions, Scope::Default)?;
        let (scoped, order) = self.order(scoped, &modifiers.order_by, Scope::Default)?;
        Ok((scoped.pattern, sliced(order, deduplicated, modifiers)))
    }

    /// A nested SELECT.
    pub(crate) fn subquery(
        &mut self,
        select: &tree::Select<'t>,
        scope: Scope,
    ) -> Result<Scoped, PlanError> {
        let order_is_seen = std::mem::take(&mut self.order_is_seen);
        let mut project = Vec::new();
        let mut names = FxHashMap::default();
        for name in shown(&select.projection) {
            let var = self.variable(name)?;
            if names.insert(name, var).is_none() {
                project.push(var);
            }
        }
        let outer = std::mem::replace(&mut self.by_name, names);
        self.subqueries += 1;
        let modifiers = &select.modifiers;
        let solutions = Solutions {
            group: Some(&select.group),
            columns: columns(&select.projection),
            modifiers,
            values: select.values.as_ref(),
        };
        let scoped = self.solutions(solutions, scope)?;
        // Without a slice or an aggregate the order of a nested SELECT is nobody's to see.
        let ordered = order_is_seen || modifiers.offset > 0 || modifiers.limit.is_some();
        let keys = if ordered { &*modifiers.order_by } else { &[] };
        let (scoped, order) = self.order(scoped, keys, scope)?;
        self.subqueries -= 1;
        self.by_name = outer;
        let modifiers = sliced(order, select.deduplicate, modifiers);
        if modifiers.keep_everything() {
            return Ok(scoped);
        }
        let inner = scoped.in_graph(scope);
        let pattern = Pattern::Subquery(Box::new(Subquery {
            pattern: inner.pattern,
            project,
            modifiers,
        }));
        // What is left of its rows need not have the graph.
        Scoped::above(inner.height, pattern, false)
    }

    /// The variables of the columns.
    pub(crate) fn projected(&mut self, projection: &Projection<'t>) -> Result<Vec<Var>, PlanError> {
        shown(projection).map(|name| self.variable(name)).collect()
    }

    /// The solutions of WHERE, grouped and filtered, with those of VALUES and with the columns'
    /// expressions.
    fn solutions(
        &mut self,
        solutions: Solutions<'_, 't>,
        scope: Scope,
    ) -> Result<Scoped, PlanError> {
        let Solutions {
            group,
            columns,
            modifiers,
            values,
        } = solutions;
        let mut aggregates = Vec::new();
        for expression in after_grouping(columns, modifiers) {
            add_aggregates(expression, &mut aggregates);
        }
        self.order_is_seen = group.is_some_and(is_select)
            && aggregates
                .iter()
                .any(|(_, aggregate)| shows_order(aggregate));
        let mut scoped = match group {
            Some(group) => self.group(group, scope)?,
            None => Scoped::leaf(Pattern::Unit, false),
        };
        if !modifiers.group_by.is_empty() || !aggregates.is_empty() {
            scoped = self.grouped(scoped, &modifiers.group_by, &aggregates, scope)?;
        }
        // What HAVING mentions by its alias is computed before it.
        let (before, after) = columns.split_at(first_columns(columns, &modifiers.having));
        scoped = self.extensions(scoped, before, scope)?;
        scoped = self.filter(scoped, modifiers.having.iter(), scope)?;
        if let Some(values) = values {
            let values = self.values(values)?;
            scoped = join(scoped, values)?;
        }
        self.extensions(scoped, after, scope)
    }

    fn extensions(
        &mut self,
        mut scoped: Scoped,
        columns: &[Column<'t>],
        scope: Scope,
    ) -> Result<Scoped, PlanError> {
        for column in columns {
            if let Some(expression) = &column.expression {
                scoped = self.extend(scoped, expression, column.variable.name, scope)?;
            }
        }
        Ok(scoped)
    }

    fn grouped(
        &mut self,
        inner: Scoped,
        keys: &[(Parsed<'t>, Option<tree::Variable<'t>>)],
        aggregates: &[Placed<'_, 't>],
        scope: Scope,
    ) -> Result<Scoped, PlanError> {
        let mut inner = inner;
        let mut by = Vec::with_capacity(keys.len());
        let mut seen = VarSet::default();
        for (expression, alias) in keys {
            let var = match (&expression.kind, alias) {
                (ExpressionKind::Variable(variable), None) => self.variable(variable.name)?,
                _ => {
                    let (marked, expression) =
                        self.marking(inner, scope, |this| this.expression(expression))?;
                    let var = match alias {
                        Some(alias) => self.variable(alias.name)?,
                        None => self.make_up_variable()?,
                    };
                    inner = extended(marked, var, expression)?;
                    var
                }
            };
            if !seen.contains(var) {
                seen.insert(var);
                by.push(var);
            }
        }
        let mut inner = inner.in_graph(scope);
        let counts_solutions =
            |(_, aggregate): &Placed<'_, '_>| aggregate.distinct && aggregate.operand.is_none();
        if aggregates.iter().any(counts_solutions) {
            inner = self.solutions_only(inner)?;
        }
        let (inner, aggregates) = self.marking(inner, scope, |this| this.aggregates(aggregates))?;
        let pattern = Pattern::Group {
            inner: Box::new(inner.pattern),
            by,
            aggregates,
        };
        // Without keys there is a group even where there is no graph.
        Scoped::above(inner.height, pattern, false)
    }

    /// Converts aggregates, those written alike to one; from here on variables stand for them.
    fn aggregates(
        &mut self,
        placed: &[Placed<'_, 't>],
    ) -> Result<Vec<(Var, Aggregate)>, PlanError> {
        let mut aggregates = Vec::new();
        let mut known: FxHashMap<&str, Var> = FxHashMap::default();
        for (span, parsed) in placed {
            self.patience.work(1)?;
            let written = self.written(*span);
            let var = match known.get(written) {
                Some(var) => *var,
                None => {
                    let aggregate = self.aggregate(parsed)?;
                    let var = self.make_up_variable()?;
                    aggregates.push((var, aggregate));
                    known.insert(written, var);
                    var
                }
            };
            self.aggregates.insert(*span, var);
        }
        Ok(aggregates)
    }

    fn aggregate(&mut self, parsed: &ParsedAggregate<'t>) -> Result<Aggregate, PlanError> {
        let function = match &parsed.function {
            ParsedFunction::Count => AggregateFunction::Count,
            ParsedFunction::Sum => AggregateFunction::Sum,
            ParsedFunction::Avg => AggregateFunction::Avg,
            ParsedFunction::Min => AggregateFunction::Min,
            ParsedFunction::Max => AggregateFunction::Max,
            ParsedFunction::Sample => AggregateFunction::Sample,
            ParsedFunction::GroupConcat { separator } => {
                let separator = separator.as_deref().unwrap_or(" ");
                AggregateFunction::GroupConcat(separator.to_owned())
            }
        };
        let operand = parsed.operand.as_ref();
        Ok(Aggregate {
            function,
            operand: operand
                .map(|operand| self.expression(operand))
                .transpose()?,
            distinct: parsed.distinct,
        })
    }

    /// Drops what the pattern binds beyond the variables of its own SELECT, such as blank nodes.
    fn solutions_only(&mut self, inner: Scoped) -> Result<Scoped, PlanError> {
        // The pattern is walked, and with it those nested in it.
        self.patience.ask()?;
        let possible = inner.pattern.possible();
        let mut project: Vec<Var> = self.by_name.values().copied().collect();
        project.retain(|var| possible.contains(*var));
        project.sort_unstable();
        let pattern = Pattern::Subquery(Box::new(Subquery {
            pattern: inner.pattern,
            project,
            modifiers: Modifiers {
                order: Vec::new(),
                deduplicate: Deduplicate::No,
                offset: 0,
                limit: None,
            },
        }));
        Scoped::above(inner.height, pattern, true)
    }

    /// Converts the keys of ORDER BY; their EXISTS are answered in the pattern.
    fn order(
        &mut self,
        scoped: Scoped,
        keys: &[tree::OrderKey<'t>],
        scope: Scope,
    ) -> Result<(Scoped, Vec<OrderKey>), PlanError> {
        self.marking(scoped, scope, |this| {
            let keys = keys.iter().map(|key| {
                Ok(OrderKey {
                    expression: this.expression(&key.expression)?,
                    descending: key.descending,
                })
            });
            keys.collect()
        })
    }
}

/// The columns that a SELECT lists.
pub(crate) fn columns<'q, 't>(projection: &'q Projection<'t>) -> &'q [Column<'t>] {
    match projection {
        Projection::All(_) => &[],
        Projection::Columns(columns) => columns,
    }
}

/// The names of what a SELECT shows.
pub(crate) fn shown<'t>(projection: &Projection<'t>) -> impl Iterator<Item = &'t str> {
    let all = match projection {
        Projection::All(variables) => &**variables,
        Projection::Columns(_) => &[],
    };
    let columns = columns(projection)
        .iter()
        .map(|column| column.variable.name);
    all.iter().map(|variable| variable.name).chain(columns)
}

/// The columns, up to which all are computed before HAVING, as it mentions one by its alias.
fn first_columns(columns: &[Column<'_>], having: &[Parsed<'_>]) -> usize {
    let mut mentioned = FxHashSet::default();
    for condition in having {
        walk::for_each_variable(condition, &mut |variable| {
            mentioned.insert(variable.name);
        });
    }
    let is_mentioned = |column: &Column<'_>| {
        column.expression.is_some() && mentioned.contains(column.variable.name)
    };
    columns
        .iter()
        .rposition(is_mentioned)
        .map_or(0, |last| last + 1)
}

/// True if a SELECT shows groups.
pub(crate) fn is_grouped(select: &tree::Select<'_>) -> bool {
    let mut aggregates = Vec::new();
    for expression in after_grouping(columns(&select.projection), &select.modifiers) {
        add_aggregates(expression, &mut aggregates);
    }
    !select.modifiers.group_by.is_empty() || !aggregates.is_empty()
}

/// The expressions on groups, where there are groups.
fn after_grouping<'q, 't>(
    columns: &'q [Column<'t>],
    modifiers: &'q tree::Modifiers<'t>,
) -> impl Iterator<Item = &'q Parsed<'t>> {
    let columns = columns
        .iter()
        .filter_map(|column| column.expression.as_ref());
    let order = modifiers.order_by.iter().map(|key| &key.expression);
    columns.chain(&modifiers.having).chain(order)
}

/// The aggregates of an expression; what EXISTS looks for has its own.
fn add_aggregates<'q, 't>(expression: &'q Parsed<'t>, aggregates: &mut Vec<Placed<'q, 't>>) {
    match &expression.kind {
        ExpressionKind::Aggregate(aggregate) => aggregates.push((expression.span, aggregate)),
        ExpressionKind::Exists { .. } => (),
        _ => {
            for part in walk::parts(expression) {
                add_aggregates(part, aggregates);
            }
        }
    }
}

/// The modifiers of a SELECT with these keys.
fn sliced(
    order: Vec<OrderKey>,
    deduplicated: Option<tree::Deduplicate>,
    modifiers: &tree::Modifiers<'_>,
) -> Modifiers {
    let size = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    Modifiers {
        order,
        deduplicate: deduplicate(deduplicated),
        offset: size(modifiers.offset),
        limit: modifiers.limit.map(size),
    }
}

/// True if all that is in the braces is a SELECT.
fn is_select(group: &Group<'_>) -> bool {
    match &*group.elements {
        [Element::Select(_)] => true,
        [Element::Union(groups)] => matches!(&**groups, [group] if is_select(group)),
        _ => false,
    }
}

/// SPARQL leaves to the engine in which order values are concatenated; that of what is grouped is
/// what everybody expects.
fn shows_order(aggregate: &ParsedAggregate<'_>) -> bool {
    matches!(
        aggregate.function,
        ParsedFunction::GroupConcat { .. } | ParsedFunction::Sample
    )
}
