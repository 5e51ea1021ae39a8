//! Which queries must our engine and the oracle answer alike?
//!
//! As in [`crate::random_expression`], what the standard leaves open or the oracle is known to do
//! differently is left out:
//! - a group inside GRAPH starts with triple patterns: without any, the oracle has a solution even
//!   for a graph that does not exist, and does not bind the variable of GRAPH;
//! - the variable of GRAPH does not occur inside, where it has no value by the standard;
//! - property paths are sequences of edges and of paths with `?`, `*` or `+`: the oracle drops
//!   duplicates of alternatives, and of negated property sets between two known ends;
//! - a constant at the end of a path that can be empty is in the graph, by a triple pattern
//!   beside it: by the standard it is connected with itself wherever it is, by the oracle not;
//! - MINUS and nested SELECTs inside GRAPH with a variable: the oracle takes the graph for a
//!   variable of the pattern;
//! - nested SELECTs inside GRAPH with a name, as the graph may not exist;
//! - MINUS of an empty group, or inside OPTIONAL: in the oracle its variables have the values that
//!   they have outside the OPTIONAL, and a shared one decides what is removed;
//! - COUNT(DISTINCT *) over property paths: the oracle counts the vertices between their edges;
//! - MINUS inside EXISTS: in the oracle both sides bind all variables of the current solution;
//! - a nested SELECT has LIMIT or OFFSET only where its rows are counted: which they are is open;
//! - blank nodes inside EXISTS: the parser refuses some;
//! - one FROM graph: the oracle does not merge several;
//! - DISTINCT does not go with SAMPLE or GROUP_CONCAT.

use crate::path::Path;
use crate::query::{Element, Expression, Form, Group, Item, Node, Query};
use crate::random_data::Domain;
use crate::random_query::domain_of;

/// Whether a group keeps to what both engines must answer alike.
pub fn common_ground(group: &Group) -> bool {
    fits(group, Around::default())
}

/// What is around a group.
#[derive(Clone, Copy, Default)]
struct Around {
    graph: bool,
    graph_variable: bool,
    exists: bool,
    optional: bool,
    /// The rows are only counted.
    counted: bool,
}

fn fits(group: &Group, around: Around) -> bool {
    if around.graph
        && !matches!(group.0.first(), Some(Element::Triples(patterns)) if !patterns.is_empty())
    {
        return false;
    }
    let inside = Around {
        counted: false,
        ..around
    };
    group.0.iter().all(|element| match element {
        Element::Graph(name, inner) => fits(
            inner,
            Around {
                graph: true,
                graph_variable: inside.graph_variable || matches!(name, Node::Variable(_)),
                ..inside
            },
        ),
        Element::Optional(inner) => fits(
            inner,
            Around {
                optional: true,
                ..inside
            },
        ),
        Element::Nested(inner) => fits(inner, inside),
        Element::Minus(inner) => {
            !inner.0.is_empty()
                && !around.optional
                && !around.graph_variable
                && !around.exists
                && fits(inner, inside)
        }
        Element::Subquery(query) => {
            let may_be_cut = around.counted && group.0.len() == 1;
            let is_cut = query.limit.is_some() || query.offset.is_some();
            !around.graph
                && (may_be_cut || !is_cut)
                && expressions_of(query).all(|expression| expression_fits(expression, inside))
                && fits(
                    &query.pattern,
                    Around {
                        counted: counts_only(query),
                        ..inside
                    },
                )
        }
        Element::Union(branches) => branches.iter().all(|branch| fits(branch, inside)),
        Element::Filter(expression) | Element::Bind(expression, _) => {
            expression_fits(expression, inside)
        }
        Element::Path(subject, path, object) => {
            !around.exists && is_common_path(group, path, [subject, object])
        }
        Element::Triples(_) | Element::Values(..) => true,
    })
}

/// Whether a path of the group is made of what both engines take alike, and its ends are what
/// their names say: a path can lead anywhere, so only `a…` stands for whatever it finds.
fn is_common_path(group: &Group, path: &Path, ends: [&Node; 2]) -> bool {
    let is_in_triples = |end: &Node| {
        group.0.iter().any(|element| match element {
            Element::Triples(patterns) => patterns
                .iter()
                .any(|pattern| pattern.subject == *end || pattern.object == *end),
            _ => false,
        })
    };
    path.is_sequence()
        && ends.iter().all(|end| match end {
            Node::Variable(name) if domain_of(name) == Domain::Any => true,
            Node::Term(_) if !path.is_nullable() => true,
            end => is_in_triples(end),
        })
}

fn expressions_of(query: &Query) -> impl Iterator<Item = &Expression> {
    let items: &[Item] = match &query.form {
        Form::Select { items, .. } => items,
        _ => &[],
    };
    items
        .iter()
        .filter_map(|item| item.expression.as_ref())
        .chain(&query.having)
}

fn counts_only(query: &Query) -> bool {
    let Form::Select { items, .. } = &query.form else {
        return false;
    };
    query.group_by.is_empty()
        && items.len() == 1
        && items.iter().all(|item| {
            matches!(
                item.expression,
                Some(Expression::Aggregate("COUNT", false, None))
            )
        })
}

fn expression_fits(expression: &Expression, around: Around) -> bool {
    let fit = |part: &Expression| expression_fits(part, around);
    match expression {
        Expression::Exists(_, group) => fits(
            group,
            Around {
                exists: true,
                ..around
            },
        ),
        Expression::Variable(_) | Expression::Term(_) => true,
        Expression::Unary(_, inner) => fit(inner),
        Expression::Binary(_, left, right) => fit(left) && fit(right),
        Expression::Call(_, parts) => parts.iter().all(fit),
        Expression::In(inner, _, parts) => fit(inner) && parts.iter().all(fit),
        Expression::Aggregate(_, _, inner) => inner.iter().all(|inner| fit(inner)),
    }
}
