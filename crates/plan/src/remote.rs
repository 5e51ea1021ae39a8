//! How is the pattern of a SERVICE written as a query for its endpoint?
//!
//! The parser's own printing is not enough: it drops brackets that decide the order of
//! arithmetic, and braces that decide what a filter sees. Here every operation has its brackets,
//! and braces are left out only where a part cannot reach beyond itself.

use std::fmt::Write as _;

use oxrdf::{Literal, Variable};
use rustc_hash::FxHashSet;
use spargebra::algebra::{
    AggregateExpression, AggregateFunction, Expression, Function, GraphPattern, OrderExpression,
};
use spargebra::term::{NamedNodePattern, TermPattern};

use crate::error::PlanError;

/// Writes what stands between the braces of a group that says the same as `pattern`.
///
/// # Errors
/// [`PlanError::Unsupported`] for extensions of the language that endpoints need not know.
pub(crate) fn group(pattern: &GraphPattern) -> Result<String, PlanError> {
    let mut writer = Writer::default();
    writer.contents(pattern)?;
    Ok(writer.text.trim().to_owned())
}

/// True where more patterns may stand beside the group's contents, in the same braces, and no
/// part of it means anything else: triple patterns under filters.
pub(crate) fn is_plain(pattern: &GraphPattern) -> bool {
    match pattern {
        GraphPattern::Filter { expr, inner } => !has_exists(expr) && is_plain(inner),
        pattern => is_triples(pattern),
    }
}

/// The variables that a solution of the pattern may bind, in order of first sight.
pub(crate) fn visible(pattern: &GraphPattern) -> Vec<Variable> {
    let mut seen = FxHashSet::default();
    let mut variables = Vec::new();
    pattern.on_in_scope_variable(|variable| {
        if seen.insert(variable) {
            variables.push(variable.clone());
        }
    });
    variables
}

/// The variables that every solution of the pattern binds, as far as the text tells.
pub(crate) fn certain(pattern: &GraphPattern) -> FxHashSet<&Variable> {
    let mut set = FxHashSet::default();
    match pattern {
        GraphPattern::Bgp { .. } | GraphPattern::Path { .. } => {
            pattern.on_in_scope_variable(|variable| {
                set.insert(variable);
            });
        }
        GraphPattern::Join { left, right } => {
            set = certain(left);
            set.extend(certain(right));
        }
        GraphPattern::LeftJoin { left, .. }
        | GraphPattern::Minus { left, .. }
        | GraphPattern::Lateral { left, .. } => set = certain(left),
        GraphPattern::Filter { inner, .. }
        | GraphPattern::OrderBy { inner, .. }
        | GraphPattern::Distinct { inner }
        | GraphPattern::Reduced { inner }
        | GraphPattern::Slice { inner, .. } => set = certain(inner),
        GraphPattern::Extend {
            inner,
            variable,
            expression,
        } => {
            set = certain(inner);
            let never_fails = match expression {
                Expression::NamedNode(_) | Expression::Literal(_) => true,
                Expression::Variable(other) => set.contains(other),
                _ => false,
            };
            if never_fails {
                set.insert(variable);
            }
        }
        GraphPattern::Union { left, right } => {
            let right = certain(right);
            set = certain(left);
            set.retain(|variable| right.contains(variable));
        }
        GraphPattern::Graph { name, inner } => {
            set = certain(inner);
            if let NamedNodePattern::Variable(variable) = name {
                set.insert(variable);
            }
        }
        GraphPattern::Values {
            variables,
            bindings,
        } => {
            for (column, variable) in variables.iter().enumerate() {
                if bindings.iter().all(|row| row[column].is_some()) {
                    set.insert(variable);
                }
            }
        }
        GraphPattern::Group {
            inner, variables, ..
        } => {
            let inner = certain(inner);
            set.extend(variables.iter().filter(|variable| inner.contains(variable)));
        }
        GraphPattern::Project { inner, variables } => {
            let inner = certain(inner);
            set.extend(variables.iter().filter(|variable| inner.contains(variable)));
        }
        GraphPattern::Service { inner, silent, .. } => {
            if !silent {
                set = certain(inner);
            }
        }
    }
    set
}

/// Triple patterns and paths, which share their blank nodes.
fn is_triples(pattern: &GraphPattern) -> bool {
    match pattern {
        GraphPattern::Bgp { .. } | GraphPattern::Path { .. } => true,
        GraphPattern::Join { left, right } => is_triples(left) && is_triples(right),
        _ => false,
    }
}

/// True if the expression looks at a pattern.
fn has_exists(expression: &Expression) -> bool {
    match expression {
        Expression::Exists(_) => true,
        Expression::NamedNode(_)
        | Expression::Literal(_)
        | Expression::Variable(_)
        | Expression::Bound(_) => false,
        Expression::Or(a, b)
        | Expression::And(a, b)
        | Expression::Equal(a, b)
        | Expression::SameTerm(a, b)
        | Expression::Greater(a, b)
        | Expression::GreaterOrEqual(a, b)
        | Expression::Less(a, b)
        | Expression::LessOrEqual(a, b)
        | Expression::Add(a, b)
        | Expression::Subtract(a, b)
        | Expression::Multiply(a, b)
        | Expression::Divide(a, b) => has_exists(a) || has_exists(b),
        Expression::In(a, list) => has_exists(a) || list.iter().any(has_exists),
        Expression::UnaryPlus(a) | Expression::UnaryMinus(a) | Expression::Not(a) => has_exists(a),
        Expression::If(a, b, c) => has_exists(a) || has_exists(b) || has_exists(c),
        Expression::Coalesce(list) | Expression::FunctionCall(_, list) => {
            list.iter().any(has_exists)
        }
    }
}

#[derive(Default)]
struct Writer {
    text: String,
}

type Written = Result<(), PlanError>;

impl Writer {
    fn push(&mut self, part: impl std::fmt::Display) {
        write!(self.text, "{part}").expect("a string takes all that is written");
    }

    /// The pattern as what stands in a group of its own.
    fn contents(&mut self, pattern: &GraphPattern) -> Written {
        match pattern {
            GraphPattern::Bgp { patterns } => {
                for triple in patterns {
                    self.triple(&triple.subject, &triple.predicate, &triple.object);
                }
            }
            GraphPattern::Path {
                subject,
                path,
                object,
            } => self.triple(subject, path, object),
            GraphPattern::Join { left, right } => {
                self.first(left)?;
                self.element(right)?;
            }
            GraphPattern::LeftJoin {
                left,
                right,
                expression,
            } => {
                self.first(left)?;
                self.push("OPTIONAL { ");
                // A filter of the right side sees that side only; without braces it would be
                // the condition of the left join.
                self.first(right)?;
                if let Some(condition) = expression {
                    self.condition(condition)?;
                }
                self.push("} ");
            }
            GraphPattern::Minus { left, right } => {
                self.first(left)?;
                self.push("MINUS ");
                self.braced(right)?;
            }
            GraphPattern::Filter { expr, inner } => {
                match &**inner {
                    GraphPattern::Filter { .. } => self.contents(inner)?,
                    inner => self.first(inner)?,
                }
                self.condition(expr)?;
            }
            GraphPattern::Extend {
                inner,
                variable,
                expression,
            } => {
                self.first(inner)?;
                self.push("BIND(");
                self.expression(expression)?;
                self.push(format_args!(" AS {variable}) "));
            }
            GraphPattern::Union { left, right } => {
                match &**left {
                    GraphPattern::Union { .. } => self.contents(left)?,
                    left => self.braced(left)?,
                }
                self.push("UNION ");
                self.braced(right)?;
            }
            GraphPattern::Graph { name, inner } => {
                self.push(format_args!("GRAPH {name} "));
                self.braced(inner)?;
            }
            GraphPattern::Service {
                name,
                inner,
                silent,
            } => {
                let silent = if *silent { "SILENT " } else { "" };
                self.push(format_args!("SERVICE {silent}{name} "));
                self.braced(inner)?;
            }
            GraphPattern::Values { .. } => self.push(format_args!("{pattern} ")),
            GraphPattern::Lateral { .. } => return Err(PlanError::unsupported("LATERAL")),
            select @ (GraphPattern::Group { .. }
            | GraphPattern::Project { .. }
            | GraphPattern::Distinct { .. }
            | GraphPattern::Reduced { .. }
            | GraphPattern::Slice { .. }
            | GraphPattern::OrderBy { .. }) => {
                self.push("{ ");
                self.select(select)?;
                self.push("} ");
            }
        }
        Ok(())
    }

    /// The pattern where more follows in the same group: a filter would see that too.
    fn first(&mut self, pattern: &GraphPattern) -> Written {
        match pattern {
            GraphPattern::Filter { .. } => self.braced(pattern),
            pattern => self.contents(pattern),
        }
    }

    /// The pattern behind others in the same group.
    fn element(&mut self, pattern: &GraphPattern) -> Written {
        match pattern {
            GraphPattern::Filter { .. }
            | GraphPattern::LeftJoin { .. }
            | GraphPattern::Minus { .. }
            | GraphPattern::Extend { .. } => self.braced(pattern),
            GraphPattern::Join { left, right } => {
                self.element(left)?;
                self.element(right)
            }
            pattern => self.contents(pattern),
        }
    }

    fn braced(&mut self, pattern: &GraphPattern) -> Written {
        self.push("{ ");
        self.contents(pattern)?;
        self.push("} ");
        Ok(())
    }

    fn triple(
        &mut self,
        subject: &TermPattern,
        predicate: impl std::fmt::Display,
        object: &TermPattern,
    ) {
        self.push(format_args!("{subject} {predicate} {object} . "));
    }

    fn condition(&mut self, expression: &Expression) -> Written {
        self.push("FILTER(");
        self.expression(expression)?;
        self.push(") ");
        Ok(())
    }

    fn select(&mut self, pattern: &GraphPattern) -> Written {
        let mut rest = pattern;
        let mut slice = String::new();
        if let GraphPattern::Slice {
            inner,
            start,
            length,
        } = rest
        {
            if *start > 0 {
                let _ = write!(slice, "OFFSET {start} ");
            }
            if let Some(length) = length {
                let _ = write!(slice, "LIMIT {length} ");
            }
            rest = inner;
        }
        self.push("SELECT ");
        match rest {
            GraphPattern::Distinct { inner } => {
                self.push("DISTINCT ");
                rest = inner;
            }
            GraphPattern::Reduced { inner } => {
                self.push("REDUCED ");
                rest = inner;
            }
            _ => (),
        }
        if let GraphPattern::Project { inner, variables } = rest {
            self.columns(variables, inner);
            rest = inner;
        } else if let GraphPattern::Group {
            inner,
            variables,
            aggregates,
        } = rest
        {
            return self.grouped(inner, variables, aggregates, &slice);
        } else {
            self.columns(&visible(rest), rest);
        }
        let order: &[OrderExpression] = match rest {
            GraphPattern::OrderBy { inner, expression } => {
                rest = inner;
                expression
            }
            _ => &[],
        };
        self.push("WHERE ");
        self.braced(rest)?;
        if !order.is_empty() {
            self.push("ORDER BY ");
            for key in order {
                let (direction, expression) = match key {
                    OrderExpression::Asc(expression) => ("ASC", expression),
                    OrderExpression::Desc(expression) => ("DESC", expression),
                };
                self.push(format_args!("{direction}("));
                self.expression(expression)?;
                self.push(") ");
            }
        }
        self.push(slice);
        Ok(())
    }

    fn columns(&mut self, variables: &[Variable], inner: &GraphPattern) {
        for variable in variables {
            self.push(format_args!("{variable} "));
        }
        if variables.is_empty() {
            let column = unused(&inner.to_string());
            self.push(format_args!("?{column} "));
        }
    }

    fn grouped(
        &mut self,
        inner: &GraphPattern,
        by: &[Variable],
        aggregates: &[(Variable, AggregateExpression)],
        slice: &str,
    ) -> Written {
        for variable in by {
            self.push(format_args!("{variable} "));
        }
        for (variable, aggregate) in aggregates {
            self.push("(");
            self.aggregate(aggregate)?;
            self.push(format_args!(" AS {variable}) "));
        }
        if by.is_empty() && aggregates.is_empty() {
            // One group, of which nothing is asked.
            let column = unused(&inner.to_string());
            self.push(format_args!("(COUNT(*) AS ?{column}) "));
        }
        self.push("WHERE ");
        self.braced(inner)?;
        if !by.is_empty() {
            self.push("GROUP BY ");
            for variable in by {
                self.push(format_args!("{variable} "));
            }
        }
        self.push(slice);
        Ok(())
    }

    fn aggregate(&mut self, aggregate: &AggregateExpression) -> Written {
        match aggregate {
            AggregateExpression::CountSolutions { distinct } => {
                self.push(if *distinct {
                    "COUNT(DISTINCT *)"
                } else {
                    "COUNT(*)"
                });
            }
            AggregateExpression::FunctionCall {
                name,
                expr,
                distinct,
            } => {
                let distinct = if *distinct { "DISTINCT " } else { "" };
                self.push(format_args!("{name}({distinct}"));
                self.expression(expr)?;
                if let AggregateFunction::GroupConcat {
                    separator: Some(separator),
                } = name
                {
                    let separator = Literal::new_simple_literal(separator);
                    self.push(format_args!(" ; SEPARATOR = {separator}"));
                }
                self.push(")");
            }
        }
        Ok(())
    }

    fn expression(&mut self, expression: &Expression) -> Written {
        match expression {
            Expression::NamedNode(node) => self.push(node),
            Expression::Literal(literal) => self.push(literal),
            Expression::Variable(variable) => self.push(variable),
            Expression::Bound(variable) => self.push(format_args!("BOUND({variable})")),
            Expression::Or(a, b) => self.binary(a, "||", b)?,
            Expression::And(a, b) => self.binary(a, "&&", b)?,
            Expression::Equal(a, b) => self.binary(a, "=", b)?,
            Expression::Greater(a, b) => self.binary(a, ">", b)?,
            Expression::GreaterOrEqual(a, b) => self.binary(a, ">=", b)?,
            Expression::Less(a, b) => self.binary(a, "<", b)?,
            Expression::LessOrEqual(a, b) => self.binary(a, "<=", b)?,
            Expression::Add(a, b) => self.binary(a, "+", b)?,
            Expression::Subtract(a, b) => self.binary(a, "-", b)?,
            Expression::Multiply(a, b) => self.binary(a, "*", b)?,
            Expression::Divide(a, b) => self.binary(a, "/", b)?,
            Expression::SameTerm(a, b) => self.call("sameTerm", [&**a, &**b])?,
            Expression::In(a, list) => {
                self.push("(");
                self.expression(a)?;
                self.push(" IN ");
                self.call("", list)?;
                self.push(")");
            }
            Expression::UnaryPlus(a) => self.unary("+", a)?,
            Expression::UnaryMinus(a) => self.unary("-", a)?,
            Expression::Not(a) => self.unary("!", a)?,
            Expression::Exists(pattern) => {
                self.push("EXISTS ");
                self.braced(pattern)?;
            }
            Expression::If(a, b, c) => self.call("IF", [&**a, &**b, &**c])?,
            Expression::Coalesce(list) => self.call("COALESCE", list)?,
            Expression::FunctionCall(Function::Adjust, _) => {
                return Err(PlanError::unsupported("ADJUST"));
            }
            Expression::FunctionCall(function, list) => self.call(function, list)?,
        }
        Ok(())
    }

    fn unary(&mut self, sign: &str, operand: &Expression) -> Written {
        self.push(format_args!("({sign} ("));
        self.expression(operand)?;
        self.push("))");
        Ok(())
    }

    fn binary(&mut self, left: &Expression, sign: &str, right: &Expression) -> Written {
        self.push("(");
        self.expression(left)?;
        self.push(format_args!(" {sign} "));
        self.expression(right)?;
        self.push(")");
        Ok(())
    }

    fn call<'e>(
        &mut self,
        name: impl std::fmt::Display,
        arguments: impl IntoIterator<Item = &'e Expression>,
    ) -> Written {
        self.push(format_args!("{name}("));
        for (number, argument) in arguments.into_iter().enumerate() {
            if number > 0 {
                self.push(", ");
            }
            self.expression(argument)?;
        }
        self.push(")");
        Ok(())
    }
}

/// A name for a column that nothing binds, so that a SELECT without variables has one.
pub(crate) fn unused(text: &str) -> String {
    let names = (0..).map(|number| format!("row{number}"));
    let mut free = names.filter(|name| !text.contains(name.as_str()));
    free.next().expect("a text has finitely many names")
}

#[cfg(test)]
#[path = "remote_tests.rs"]
mod tests;
