//! What are the solutions of a pattern? The definitions of the algebra, followed to the letter.

use std::collections::{BTreeMap, BTreeSet};

use jindou_plan::physical::Dataset;
use oxrdf::NamedNode;
use spargebra::algebra::{Expression as Parsed, GraphPattern};
use spargebra::term::{GroundTerm, NamedNodePattern, TermPattern};

use super::{Quads, Solution};
use crate::common::paths::{Graph, Path, evaluate};

fn compatible(a: &Solution, b: &Solution) -> bool {
    a.iter()
        .all(|(var, value)| b.get(var).is_none_or(|other| other == value))
}

fn merge(a: &Solution, b: &Solution) -> Solution {
    a.iter()
        .chain(b)
        .map(|(var, value)| (var.clone(), value.clone()))
        .collect()
}

fn joined(left: &[Solution], right: &[Solution]) -> Vec<Solution> {
    let mut out = Vec::new();
    for a in left {
        out.extend(
            right
                .iter()
                .filter(|b| compatible(a, b))
                .map(|b| merge(a, b)),
        );
    }
    out
}

pub(crate) fn bind(solution: &Solution, var: &str, value: &str) -> Option<Solution> {
    let mut solution = solution.clone();
    match solution.insert(var.to_owned(), value.to_owned()) {
        Some(other) if other != value => None,
        _ => Some(solution),
    }
}

/// The quads as a dataset of these graphs shows them.
pub(crate) fn of_dataset(quads: &Quads, dataset: &Dataset) -> Quads {
    let in_list = |list: &[NamedNode], graph: &str| list.iter().any(|node| node.as_str() == graph);
    let mut shown = Quads::new();
    for quad in quads {
        if in_list(&dataset.default, &quad.0) {
            let mut quad = quad.clone();
            quad.0.clear();
            shown.insert(quad);
        }
        if in_list(&dataset.named, &quad.0) {
            shown.insert(quad.clone());
        }
    }
    shown
}

pub(crate) fn names(quads: &Quads) -> BTreeSet<&String> {
    quads
        .iter()
        .map(|quad| &quad.0)
        .filter(|graph| !graph.is_empty())
        .collect()
}

/// One graph of the quads.
pub(crate) fn graph_of(quads: &Quads, graph: &str) -> Graph {
    quads
        .iter()
        .filter(|quad| quad.0 == graph)
        .map(|(_, s, p, o)| (s.clone(), p.clone(), o.clone()))
        .collect()
}

/// The solutions of a pattern in which the variables of `given` have their values.
pub(crate) fn define(
    pattern: &GraphPattern,
    graph: &str,
    quads: &Quads,
    given: &Solution,
) -> Vec<Solution> {
    match pattern {
        GraphPattern::Bgp { patterns } => {
            let names: BTreeSet<String> = in_scope(pattern);
            let mut solutions = vec![only(given, &names)];
            for pattern in patterns {
                let position = |term: &TermPattern| match term {
                    TermPattern::NamedNode(node) => (false, node.as_str().to_owned()),
                    TermPattern::Variable(variable) => (true, variable.as_str().to_owned()),
                    TermPattern::BlankNode(node) => (true, node.to_string()),
                    TermPattern::Literal(_) => unreachable!("no literals"),
                };
                let predicate = match &pattern.predicate {
                    NamedNodePattern::NamedNode(node) => (false, node.as_str().to_owned()),
                    NamedNodePattern::Variable(variable) => (true, variable.as_str().to_owned()),
                };
                let positions = [
                    position(&pattern.subject),
                    predicate,
                    position(&pattern.object),
                ];
                let mut next = Vec::new();
                for solution in &solutions {
                    for quad in quads.iter().filter(|quad| quad.0 == graph) {
                        let mut found = Some(solution.clone());
                        for ((is_var, name), value) in
                            positions.iter().zip([&quad.1, &quad.2, &quad.3])
                        {
                            found = match found {
                                Some(solution) if *is_var => bind(&solution, name, value),
                                Some(solution) if name == value => Some(solution),
                                _ => None,
                            };
                        }
                        next.extend(found);
                    }
                }
                solutions = next;
            }
            solutions
        }
        GraphPattern::Path {
            subject,
            path,
            object,
        } => {
            let ends = [subject, object].map(|term| match term {
                TermPattern::NamedNode(node) => (None, node.as_str().to_owned()),
                TermPattern::Variable(variable) => {
                    (Some(variable.as_str().to_owned()), String::new())
                }
                TermPattern::BlankNode(node) => (Some(node.to_string()), String::new()),
                TermPattern::Literal(_) => unreachable!("no literals"),
            });
            let term = |end: usize| ends[end].0.is_none().then_some(ends[end].1.as_str());
            let path = Path::of_text(path);
            let names: BTreeSet<String> = in_scope(pattern);
            evaluate(&graph_of(quads, graph), &path, term(0), term(1))
                .into_iter()
                .filter_map(|(subject, object)| {
                    let mut solution = Some(only(given, &names));
                    for ((var, _), value) in ends.iter().zip([subject, object]) {
                        if let Some(var) = var {
                            solution = bind(&solution?, var, &value);
                        }
                    }
                    solution
                })
                .collect()
        }
        GraphPattern::Join { left, right } => joined(
            &define(left, graph, quads, given),
            &define(right, graph, quads, given),
        ),
        GraphPattern::LeftJoin {
            left,
            right,
            expression,
        } => {
            let right = define(right, graph, quads, given);
            let mut out = Vec::new();
            for a in define(left, graph, quads, given) {
                let before = out.len();
                out.extend(joined(std::slice::from_ref(&a), &right).into_iter().filter(
                    |solution| {
                        expression.as_ref().is_none_or(|e| {
                            truth(e, &merge(given, solution), graph, quads) == Some(true)
                        })
                    },
                ));
                if out.len() == before {
                    out.push(a);
                }
            }
            out
        }
        GraphPattern::Filter { expr, inner } => {
            let mut solutions = define(inner, graph, quads, given);
            solutions.retain(|solution| {
                truth(expr, &merge(given, solution), graph, quads) == Some(true)
            });
            solutions
        }
        GraphPattern::Union { left, right } => {
            let mut solutions = define(left, graph, quads, given);
            solutions.extend(define(right, graph, quads, given));
            solutions
        }
        GraphPattern::Graph { name, inner } => match name {
            NamedNodePattern::NamedNode(node) => {
                if names(quads).iter().any(|name| *name == node.as_str()) {
                    define(inner, node.as_str(), quads, given)
                } else {
                    Vec::new()
                }
            }
            NamedNodePattern::Variable(variable) => names(quads)
                .into_iter()
                .flat_map(|name| {
                    let solutions = define(inner, name, quads, given);
                    solutions.into_iter().filter_map(|s| {
                        bind(
                            &merge(&s, &only(given, &[variable.as_str().to_owned()].into())),
                            variable.as_str(),
                            name,
                        )
                    })
                })
                .collect(),
        },
        GraphPattern::Extend {
            inner,
            variable,
            expression,
        } => {
            let mut solutions = define(inner, graph, quads, given);
            for solution in &mut solutions {
                let value = match expression {
                    Parsed::NamedNode(node) => Some(node.as_str().to_owned()),
                    Parsed::Variable(variable) => {
                        merge(given, solution).get(variable.as_str()).cloned()
                    }
                    other => unreachable!("{other}"),
                };
                if let Some(value) = value {
                    solution.insert(variable.as_str().to_owned(), value);
                }
            }
            solutions
        }
        GraphPattern::Values {
            variables,
            bindings,
        } => bindings
            .iter()
            .map(|row| {
                variables
                    .iter()
                    .zip(row)
                    .filter_map(|(variable, cell)| match cell {
                        Some(GroundTerm::NamedNode(node)) => {
                            Some((variable.as_str().to_owned(), node.as_str().to_owned()))
                        }
                        _ => None,
                    })
                    .collect::<Solution>()
            })
            .filter(|row| compatible(row, given))
            .map(|row| merge(&row, &only(given, &in_scope(pattern))))
            .collect(),
        GraphPattern::Project { inner, variables } => {
            let names = variables.iter().map(|v| v.as_str().to_owned()).collect();
            define(inner, graph, quads, &only(given, &names))
                .iter()
                .map(|solution| only(solution, &names))
                .collect()
        }
        GraphPattern::Minus { left, right } => {
            let (left_names, right_names) = (in_scope(left), in_scope(right));
            let right: Vec<Solution> = define(right, graph, quads, given)
                .iter()
                .map(|solution| merge(solution, &only(given, &right_names)))
                .collect();
            let mut solutions = define(left, graph, quads, given);
            solutions.retain(|solution| {
                let solution = merge(solution, &only(given, &left_names));
                !right.iter().any(|other| {
                    compatible(&solution, other) && solution.keys().any(|k| other.contains_key(k))
                })
            });
            solutions
        }
        GraphPattern::Distinct { inner } => {
            let distinct: BTreeSet<Solution> =
                define(inner, graph, quads, given).into_iter().collect();
            distinct.into_iter().collect()
        }
        GraphPattern::Slice {
            inner,
            start,
            length,
        } => define(inner, graph, quads, given)
            .into_iter()
            .skip(*start)
            .take(length.unwrap_or(usize::MAX))
            .collect(),
        GraphPattern::Group {
            inner,
            variables,
            aggregates,
        } => {
            let names = variables.iter().map(|v| v.as_str().to_owned()).collect();
            let mut groups: BTreeMap<Solution, usize> = BTreeMap::new();
            if variables.is_empty() {
                groups.insert(Solution::new(), 0);
            }
            for solution in define(inner, graph, quads, given) {
                *groups.entry(only(&solution, &names)).or_default() += 1;
            }
            groups
                .into_iter()
                .map(|(mut solution, count)| {
                    for (var, _) in aggregates {
                        solution.insert(var.as_str().to_owned(), count.to_string());
                    }
                    solution
                })
                .collect()
        }
        other => unreachable!("{other}"),
    }
}

/// Whether EXISTS of a pattern holds for a solution.
///
/// What the pattern computes itself is another variable, which must agree in the end.
fn exists(pattern: &GraphPattern, solution: &Solution, graph: &str, quads: &Quads) -> bool {
    let mut computed = BTreeSet::new();
    add_computed(pattern, &mut computed);
    let mut given = solution.clone();
    given.retain(|name, _| !computed.contains(name));
    define(pattern, graph, quads, &given)
        .iter()
        .any(|found| compatible(found, solution))
}

/// The variables that a pattern shows and computes.
fn add_computed(pattern: &GraphPattern, names: &mut BTreeSet<String>) {
    match pattern {
        GraphPattern::Extend {
            inner, variable, ..
        } => {
            names.insert(variable.as_str().to_owned());
            add_computed(inner, names);
        }
        GraphPattern::Project { inner, variables } => {
            let mut computed = BTreeSet::new();
            add_computed(inner, &mut computed);
            computed.retain(|name| variables.iter().any(|v| v.as_str() == name));
            names.extend(computed);
        }
        GraphPattern::Join { left, right }
        | GraphPattern::LeftJoin { left, right, .. }
        | GraphPattern::Union { left, right }
        | GraphPattern::Minus { left, right } => {
            add_computed(left, names);
            add_computed(right, names);
        }
        GraphPattern::Filter { inner, .. }
        | GraphPattern::Graph { inner, .. }
        | GraphPattern::Group { inner, .. }
        | GraphPattern::Distinct { inner }
        | GraphPattern::Slice { inner, .. } => add_computed(inner, names),
        _ => (),
    }
}

/// The variables that may be bound in a solution.
fn in_scope(pattern: &GraphPattern) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    pattern.on_in_scope_variable(|variable| {
        names.insert(variable.as_str().to_owned());
    });
    names
}

pub(crate) fn only(solution: &Solution, names: &BTreeSet<String>) -> Solution {
    let mut solution = solution.clone();
    solution.retain(|name, _| names.contains(name));
    solution
}

fn truth(expression: &Parsed, solution: &Solution, graph: &str, quads: &Quads) -> Option<bool> {
    let truth = |part: &Parsed| truth(part, solution, graph, quads);
    let value = |expression: &Parsed| match expression {
        Parsed::NamedNode(node) => Some(node.as_str().to_owned()),
        Parsed::Variable(variable) => solution.get(variable.as_str()).cloned(),
        other => unreachable!("{other}"),
    };
    match expression {
        Parsed::Exists(pattern) => Some(exists(pattern, solution, graph, quads)),
        Parsed::Equal(a, b) => Some(value(a)? == value(b)?),
        Parsed::Not(part) => truth(part).map(|value| !value),
        Parsed::Bound(variable) => Some(solution.contains_key(variable.as_str())),
        Parsed::Or(a, b) => either([truth(a), truth(b)].into_iter(), true),
        Parsed::And(a, b) => either([truth(a), truth(b)].into_iter(), false),
        other => unreachable!("{other}"),
    }
}

/// Three-valued OR (for `wins` true) and AND (for false).
pub(crate) fn either(
    mut parts: impl Iterator<Item = Option<bool>> + Clone,
    wins: bool,
) -> Option<bool> {
    if parts.clone().any(|part| part == Some(wins)) {
        return Some(wins);
    }
    parts.all(|part| part.is_some()).then_some(!wins)
}
