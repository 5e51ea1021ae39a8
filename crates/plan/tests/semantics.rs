//! Plans give the answers of SPARQL's bottom-up semantics: random queries over random small
//! graphs, planned and interpreted step by step as the contract of `physical` says, against the
//! definitions of the algebra followed to the letter.

mod common;
#[path = "semantics/update.rs"]
mod update;

use std::collections::{BTreeMap, BTreeSet};

use common::Noise;
use common::paths::{Graph, Path, evaluate};
use jindou_model::Direction;
use jindou_plan::expression::{Comparison, Expression};
use jindou_plan::physical::{
    ConstId, Constant, Dataset, Form, Node, Operator, Outcome, PathExpression, Plan, PlannedStep,
    Requirement, Scope, Slot, Step, Var,
};
use jindou_plan::plan;
use oxrdf::{NamedNode, Term};
use spargebra::SparqlParser;
use spargebra::algebra::{Expression as Parsed, GraphPattern};
use spargebra::term::{GroundTerm, NamedNodePattern, TermPattern};

const TYPE: &str = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type";

/// Graph (empty for the default graph), subject, predicate, object.
type Quads = BTreeSet<(String, String, String, String)>;
type Solution = BTreeMap<String, String>;

struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 20) % bound
    }
}

// Random data and queries.

fn data(random: &mut Random) -> Quads {
    let mut quads = Quads::new();
    for _ in 0..6 + random.below(14) {
        let graph = match random.below(4) {
            0 => "http://e/c0".to_owned(),
            1 => "http://e/c1".to_owned(),
            _ => String::new(),
        };
        let node = |random: &mut Random| format!("http://e/c{}", random.below(5));
        let (predicate, object) = match random.below(5) {
            0 => (TYPE.to_owned(), format!("http://e/T{}", random.below(2))),
            _ => (format!("http://e/p{}", random.below(3)), node(random)),
        };
        quads.insert((graph, node(random), predicate, object));
    }
    quads
}

fn variable(random: &mut Random) -> String {
    format!("?{}", ["a", "b", "c", "d", "g"][random.below(5) as usize])
}

fn end(random: &mut Random) -> String {
    match random.below(6) {
        0 => format!("e:c{}", random.below(5)),
        1 => "_:x".to_owned(),
        _ => variable(random),
    }
}

fn path(random: &mut Random, depth: u64) -> String {
    let inner = |random: &mut Random| path(random, depth - 1);
    match random.below(if depth == 0 { 3 } else { 10 }) {
        0 => "a".to_owned(),
        1 | 2 => format!("e:p{}", random.below(3)),
        3 => format!("(^{})", inner(random)),
        4 => format!("({}/{})", inner(random), inner(random)),
        5 => format!("({}|{})", inner(random), inner(random)),
        6 => format!("({}?)", inner(random)),
        7 => format!("({}*)", inner(random)),
        8 => format!("({}+)", inner(random)),
        _ => match random.below(3) {
            0 => "!a".to_owned(),
            1 => format!("!(e:p{}|^e:p{})", random.below(3), random.below(3)),
            _ => format!("!(^e:p{})", random.below(3)),
        },
    }
}

fn triple(random: &mut Random) -> String {
    match random.below(10) {
        8 | 9 => format!("{} {} {} .", end(random), path(random, 3), end(random)),
        0 => format!("{} a e:T{} .", variable(random), random.below(2)),
        1 => format!(
            "{} {} {} .",
            variable(random),
            variable(random),
            variable(random)
        ),
        2 => format!("{} a {} .", variable(random), variable(random)),
        _ => format!("{} e:p{} {} .", end(random), random.below(3), end(random)),
    }
}

fn condition(random: &mut Random, depth: u64) -> String {
    match random.below(if depth == 0 { 6 } else { 8 }) {
        6 => format!("EXISTS {}", group(random, depth - 1)),
        7 => format!("NOT EXISTS {}", group(random, depth - 1)),
        0 => format!("BOUND({})", variable(random)),
        1 => format!("!BOUND({})", variable(random)),
        2 => format!("{} = e:c{}", variable(random), random.below(5)),
        3 => format!(
            "({} || {})",
            condition(random, depth),
            condition(random, depth)
        ),
        4 => format!(
            "({} && {})",
            condition(random, depth),
            condition(random, depth)
        ),
        _ => format!("{} != {}", variable(random), variable(random)),
    }
}

/// A nested SELECT. Without an order a slice is only determined if it passes all rows or none.
fn subquery(random: &mut Random, depth: u64) -> String {
    let inner = group(random, depth);
    let (a, b) = (variable(random), variable(random));
    match random.below(8) {
        0 | 1 => format!("{{ SELECT {a} {inner} }}"),
        2 => format!("{{ SELECT DISTINCT {a} {b} {inner} }}"),
        3 => format!("{{ SELECT * {inner} LIMIT 1000 }}"),
        4 => format!("{{ SELECT {a} {inner} OFFSET 1000 }}"),
        5 => format!("{{ SELECT (COUNT(*) AS {a}) {inner} }}"),
        6 => format!("{{ SELECT {a} (COUNT(*) AS ?n) {inner} GROUP BY {a} }}"),
        _ => format!(
            "{{ SELECT {a} {inner} GROUP BY {a} {b} HAVING({}) }}",
            condition(random, depth)
        ),
    }
}

fn group(random: &mut Random, depth: u64) -> String {
    let mut text = String::from("{ ");
    for _ in 0..1 + random.below(3) {
        let element = match random.below(if depth == 0 { 7 } else { 18 }) {
            0..=3 => triple(random).replace("_:x", &format!("_:x{}", random.below(1_000_000))),
            4 => format!("FILTER({})", condition(random, depth)),
            5 => {
                let cell = |random: &mut Random| match random.below(3) {
                    0 => "UNDEF".to_owned(),
                    _ => format!("e:c{}", random.below(5)),
                };
                let rows: Vec<String> = (0..1 + random.below(2))
                    .map(|_| format!("({} {})", cell(random), cell(random)))
                    .collect();
                format!(
                    "VALUES ({} {}) {{ {} }}",
                    variable(random),
                    variable(random),
                    rows.join(" ")
                )
            }
            6 => {
                let value = match random.below(2) {
                    0 => variable(random),
                    _ => format!("e:c{}", random.below(5)),
                };
                format!("BIND({value} AS {})", variable(random))
            }
            7..=9 => format!("OPTIONAL {}", group(random, depth - 1)),
            10 => group(random, depth - 1),
            11 => format!("GRAPH {} {}", variable(random), group(random, depth - 1)),
            13 | 14 => format!("MINUS {}", group(random, depth - 1)),
            15 | 16 => subquery(random, depth - 1),
            12 => format!("GRAPH e:c{} {}", random.below(3), group(random, depth - 1)),
            _ => format!(
                "{} UNION {}",
                group(random, depth - 1),
                group(random, depth - 1)
            ),
        };
        text.push_str(&element);
        text.push(' ');
    }
    text + "}"
}

// The definitions.

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

fn bind(solution: &Solution, var: &str, value: &str) -> Option<Solution> {
    let mut solution = solution.clone();
    match solution.insert(var.to_owned(), value.to_owned()) {
        Some(other) if other != value => None,
        _ => Some(solution),
    }
}

/// The quads as a dataset of these graphs shows them.
fn of_dataset(quads: &Quads, dataset: &Dataset) -> Quads {
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

fn names(quads: &Quads) -> BTreeSet<&String> {
    quads
        .iter()
        .map(|quad| &quad.0)
        .filter(|graph| !graph.is_empty())
        .collect()
}

/// One graph of the quads.
fn graph_of(quads: &Quads, graph: &str) -> Graph {
    quads
        .iter()
        .filter(|quad| quad.0 == graph)
        .map(|(_, s, p, o)| (s.clone(), p.clone(), o.clone()))
        .collect()
}

/// The solutions of a pattern in which the variables of `given` have their values.
fn define(pattern: &GraphPattern, graph: &str, quads: &Quads, given: &Solution) -> Vec<Solution> {
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

fn only(solution: &Solution, names: &BTreeSet<String>) -> Solution {
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
fn either(mut parts: impl Iterator<Item = Option<bool>> + Clone, wins: bool) -> Option<bool> {
    if parts.clone().any(|part| part == Some(wins)) {
        return Some(wins);
    }
    parts.all(|part| part.is_some()).then_some(!wins)
}

// The plan, step by step.

type Row = BTreeMap<Var, String>;

struct Run<'a> {
    plan: &'a Plan,
    quads: &'a Quads,
    /// Whether requirements that may be left out are left out.
    lazy: bool,
    /// What explorations without an input begin with.
    given: Row,
}

impl Run<'_> {
    fn constant(&self, id: ConstId) -> &str {
        match &self.plan.constants[id.index()] {
            Constant::Fixed(Term::NamedNode(node)) => node.as_str(),
            other => panic!("{other:?}"),
        }
    }

    fn known<'a>(&'a self, slot: Slot, row: &'a Row) -> Option<&'a str> {
        match slot {
            Slot::Const(id) => Some(self.constant(id)),
            Slot::Var(var) => row.get(&var).map(String::as_str),
        }
    }

    fn must<'a>(&'a self, slot: Slot, row: &'a Row) -> &'a str {
        self.known(slot, row).expect("bound before it is used")
    }

    fn meets(&self, vertex: &str, requirement: &Requirement) -> bool {
        self.quads
            .iter()
            .filter(|quad| quad.0.is_empty())
            .any(|quad| match requirement {
                Requirement::Type(class) => {
                    quad.1 == vertex && quad.2 == TYPE && quad.3 == self.constant(*class)
                }
                Requirement::Has(predicate, direction) => {
                    let end = if *direction == Direction::Out {
                        &quad.1
                    } else {
                        &quad.3
                    };
                    end == vertex && quad.2 == self.constant(*predicate)
                }
            })
    }

    fn neighbours(&self, from: &str, predicate: ConstId, direction: Direction) -> BTreeSet<String> {
        let predicate = self.constant(predicate);
        let edges = self
            .quads
            .iter()
            .filter(|quad| quad.0.is_empty() && quad.2 == predicate);
        edges
            .filter_map(|quad| match direction {
                Direction::Out => (quad.1 == from).then(|| quad.3.clone()),
                Direction::In => (quad.3 == from).then(|| quad.1.clone()),
            })
            .collect()
    }

    fn step(&self, step: &Step, rows: Vec<Row>) -> Vec<Row> {
        rows.into_iter()
            .flat_map(|row| self.step_of_row(step, row))
            .collect()
    }

    fn step_of_row(&self, step: &Step, row: Row) -> Vec<Row> {
        let is_of_default_graph = matches!(
            step,
            Step::Bind { .. } | Step::Check { .. } | Step::Test { .. }
        );
        assert!(!is_of_default_graph || self.plan.dataset.is_none());
        match step {
            Step::Bind {
                var,
                sides,
                requires,
            } => {
                assert!(!row.contains_key(var), "bound twice");
                assert!(!sides.is_empty() || !requires.is_empty());
                let mut found: Option<BTreeSet<String>> = None;
                for side in sides {
                    let side =
                        self.neighbours(self.must(side.from, &row), side.predicate, side.direction);
                    found = Some(match found {
                        Some(found) => &found & &side,
                        None => side,
                    });
                }
                let is_scan = found.is_none();
                assert!(
                    !is_scan || row.keys().all(|var| self.given.contains_key(var)),
                    "a scan for each of many rows"
                );
                let all = || {
                    let ends = self
                        .quads
                        .iter()
                        .flat_map(|quad| [quad.1.clone(), quad.3.clone()]);
                    ends.collect()
                };
                let mut out = Vec::new();
                let mut has_seen = false;
                let needed: Vec<&Requirement> = requires
                    .iter()
                    .filter(|requirement| match requirement {
                        Requirement::Type(_) => true,
                        Requirement::Has(..) => {
                            let first = is_scan && !has_seen;
                            has_seen = true;
                            first || !self.lazy
                        }
                    })
                    .collect();
                for value in found.unwrap_or_else(all) {
                    if needed
                        .iter()
                        .all(|requirement| self.meets(&value, requirement))
                    {
                        let mut row = row.clone();
                        row.insert(*var, value);
                        out.push(row);
                    }
                }
                out
            }
            Step::Check { side, to } => {
                let ends =
                    self.neighbours(self.must(side.from, &row), side.predicate, side.direction);
                if ends.contains(self.must(*to, &row)) {
                    vec![row]
                } else {
                    Vec::new()
                }
            }
            Step::Test { slot, requires } => {
                let vertex = self.must(*slot, &row).to_owned();
                let meets = requires
                    .iter()
                    .all(|requirement| self.meets(&vertex, requirement));
                if meets { vec![row] } else { Vec::new() }
            }
            Step::Match {
                subject,
                predicate,
                object,
                scope,
            } => {
                let mut out = Vec::new();
                for quad in self.quads {
                    let mut slots = vec![
                        (*subject, &quad.1),
                        (*predicate, &quad.2),
                        (*object, &quad.3),
                    ];
                    match scope {
                        Scope::Default if !quad.0.is_empty() => continue,
                        Scope::Default => (),
                        Scope::Graph(_) if quad.0.is_empty() => continue,
                        Scope::Graph(graph) => slots.push((*graph, &quad.0)),
                    }
                    let mut found = row.clone();
                    let matches = slots.into_iter().all(|(slot, value)| match slot {
                        Slot::Const(id) => self.constant(id) == value,
                        Slot::Var(var) => {
                            found.entry(var).or_insert_with(|| value.clone()) == value
                        }
                    });
                    if matches {
                        out.push(found);
                    }
                }
                out
            }
            Step::Path {
                subject,
                path,
                object,
                scope,
            } => self.path(&row, [*subject, *object], path, *scope),
            Step::Graphs { graph } => names(self.quads)
                .into_iter()
                .filter_map(|name| match graph {
                    Slot::Const(id) => (self.constant(*id) == name).then(|| row.clone()),
                    Slot::Var(var) => {
                        let mut row = row.clone();
                        (row.entry(*var).or_insert_with(|| name.clone()) == name).then_some(row)
                    }
                })
                .collect(),
            Step::Filter(expression) => {
                if self.truth(expression, &row) == Some(true) {
                    vec![row]
                } else {
                    Vec::new()
                }
            }
            Step::Extend { var, expression } => vec![self.extend(row, *var, expression)],
            Step::Values { vars, rows } => {
                let cells: Vec<Row> = rows
                    .iter()
                    .map(|cells| {
                        let cells = vars.iter().zip(cells);
                        cells
                            .filter_map(|(var, cell)| {
                                Some((*var, self.constant((*cell)?).to_owned()))
                            })
                            .collect()
                    })
                    .collect();
                self.join(&[row], &cells)
            }
            Step::Optional { steps } => {
                let found = self.steps(steps, vec![row.clone()]);
                if found.is_empty() { vec![row] } else { found }
            }
            Step::Exists { steps, outcome } => {
                let found = !self.steps(steps, vec![row.clone()]).is_empty();
                Self::outcome(*outcome, row, found)
            }
            Step::ExistsGiven {
                node,
                all_bound,
                given,
                outcome,
            } => {
                let all = given.iter().all(|var| row.contains_key(var));
                let node = all_bound.as_ref().filter(|_| all).unwrap_or(node);
                let given = given
                    .iter()
                    .filter_map(|var| Some((*var, row.get(var)?.clone())));
                let found = !self.with(given).node(node).is_empty();
                Self::outcome(*outcome, row, found)
            }
            Step::Union(branches) => branches
                .iter()
                .flat_map(|steps| self.steps(steps, vec![row.clone()]))
                .collect(),
        }
    }

    fn path(&self, row: &Row, ends: [Slot; 2], path: &PathExpression, scope: Scope) -> Vec<Row> {
        let path = Path::of_plan(path, &|id| self.constant(id).to_owned());
        // What rows bind is a variable's value still.
        let terms = ends.map(|end| match end {
            Slot::Const(id) => Some(self.constant(id)),
            Slot::Var(_) => None,
        });
        let graphs: Vec<Option<&String>> = match scope {
            Scope::Default => vec![None],
            Scope::Graph(_) => names(self.quads).into_iter().map(Some).collect(),
        };
        let mut rows = Vec::new();
        for name in graphs {
            let graph = graph_of(self.quads, name.map_or("", String::as_str));
            for (subject, object) in evaluate(&graph, &path, terms[0], terms[1]) {
                let mut slots = vec![(ends[0], &subject), (ends[1], &object)];
                if let (Scope::Graph(slot), Some(name)) = (scope, name) {
                    slots.push((slot, name));
                }
                let mut found = row.clone();
                let matches = slots.into_iter().all(|(slot, value)| match slot {
                    Slot::Const(id) => self.constant(id) == value,
                    Slot::Var(var) => found.entry(var).or_insert_with(|| value.clone()) == value,
                });
                if matches {
                    rows.push(found);
                }
            }
        }
        rows
    }

    fn with(&self, given: impl Iterator<Item = (Var, String)>) -> Self {
        Self {
            given: self.given.clone().into_iter().chain(given).collect(),
            ..*self
        }
    }

    fn outcome(outcome: Outcome, mut row: Row, found: bool) -> Vec<Row> {
        match outcome {
            Outcome::Keep if !found => return Vec::new(),
            Outcome::Drop if found => return Vec::new(),
            Outcome::Keep | Outcome::Drop => (),
            Outcome::Mark(var) => {
                let marked = row.insert(var, found.to_string());
                assert!(marked.is_none(), "marked twice");
            }
        }
        vec![row]
    }

    fn steps(&self, steps: &[PlannedStep], mut rows: Vec<Row>) -> Vec<Row> {
        for planned in steps {
            rows = self.step(&planned.step, rows);
        }
        rows
    }

    fn extend(&self, mut row: Row, var: Var, expression: &Expression) -> Row {
        assert!(!row.contains_key(&var), "bound twice");
        let value = match expression {
            Expression::Variable(var) => self.known(Slot::Var(*var), &row).map(str::to_owned),
            Expression::Constant(id) => Some(self.constant(*id).to_owned()),
            other => panic!("{other:?}"),
        };
        if let Some(value) = value {
            row.insert(var, value);
        }
        row
    }

    fn join(&self, left: &[Row], right: &[Row]) -> Vec<Row> {
        let mut out = Vec::new();
        for a in left {
            for b in right {
                if a.iter()
                    .all(|(var, value)| b.get(var).is_none_or(|other| other == value))
                {
                    out.push(
                        a.iter()
                            .chain(b)
                            .map(|(var, value)| (*var, value.clone()))
                            .collect(),
                    );
                }
            }
        }
        out
    }

    /// What both sides bind must be a key, certainly bound, or loose.
    fn check_keys(&self, left: &[Row], right: &[Row], keys: &[Var], loose: &[Var]) {
        for row in left.iter().chain(right) {
            assert!(
                keys.iter().all(|key| row.contains_key(key)),
                "a key is unbound"
            );
        }
        for a in left {
            for var in a
                .keys()
                .filter(|var| right.iter().any(|b| b.contains_key(var)))
            {
                assert!(
                    keys.contains(var) || loose.contains(var) || self.given.contains_key(var),
                    "a shared variable is missed"
                );
            }
        }
    }

    fn node(&self, node: &Node) -> Vec<Row> {
        match &node.operator {
            Operator::Explore { input, steps } => {
                let rows = input
                    .as_ref()
                    .map_or_else(|| vec![self.given.clone()], |input| self.node(input));
                self.steps(steps, rows)
            }
            Operator::Join {
                build,
                probe,
                keys,
                loose,
            } => {
                let (build, probe) = (self.node(build), self.node(probe));
                self.check_keys(&build, &probe, keys, loose);
                self.join(&build, &probe)
            }
            Operator::LeftJoin {
                left,
                right,
                keys,
                loose,
                marks,
                condition,
            } => {
                let (left, right) = (self.node(left), self.node(right));
                self.check_keys(&left, &right, keys, loose);
                let mut out = Vec::new();
                for row in left {
                    let found = self.join(std::slice::from_ref(&row), &right);
                    let before = found.len();
                    let mut found = self.steps(marks, found);
                    assert_eq!(found.len(), before, "marks keep all rows");
                    if let Some(condition) = condition {
                        found.retain(|row| self.truth(condition, row) == Some(true));
                    }
                    for planned in marks {
                        if let Step::Exists { outcome, .. } | Step::ExistsGiven { outcome, .. } =
                            &planned.step
                        {
                            let var = outcome.variable().expect("marks bind a variable");
                            found.iter_mut().for_each(|row| drop(row.remove(&var)));
                        }
                    }
                    if found.is_empty() {
                        found.push(row);
                    }
                    out.extend(found);
                }
                out
            }
            Operator::Union(inputs) => inputs.iter().flat_map(|input| self.node(input)).collect(),
            Operator::Project { input, vars } => {
                let mut rows = self.node(input);
                for row in &mut rows {
                    row.retain(|var, _| vars.contains(var));
                    row.extend(self.given.clone());
                }
                rows
            }
            Operator::Minus {
                left,
                right,
                keys,
                loose,
                overlaps,
            } => {
                let (mut left, right) = (self.node(left), self.node(right));
                self.check_keys(&left, &right, keys, loose);
                left.retain(|a| {
                    !right.iter().any(|b| {
                        let agree = |var: &Var| match (a.get(var), b.get(var)) {
                            (Some(a), Some(b)) => a == b,
                            _ => true,
                        };
                        let both = |var: &Var| a.contains_key(var) && b.contains_key(var);
                        keys.iter().chain(loose).all(agree) && (*overlaps || loose.iter().any(both))
                    })
                });
                left
            }
            Operator::EachGraph { input, scope, name } => names(self.quads)
                .into_iter()
                .flat_map(|graph| {
                    let given = std::iter::once((*scope, graph.clone()));
                    let mut rows = self.with(given).node(input);
                    rows.retain_mut(|row| {
                        row.remove(scope);
                        row.entry(*name).or_insert_with(|| graph.clone()) == graph
                    });
                    rows
                })
                .collect(),
            Operator::Distinct { input } => {
                let distinct: BTreeSet<Row> = self.node(input).into_iter().collect();
                distinct.into_iter().collect()
            }
            Operator::Slice {
                input,
                offset,
                limit,
            } => self
                .node(input)
                .into_iter()
                .skip(*offset)
                .take(limit.unwrap_or(usize::MAX))
                .collect(),
            Operator::Group {
                input,
                by,
                aggregates,
            } => {
                let mut groups: BTreeMap<Row, usize> = BTreeMap::new();
                if by.is_empty() {
                    groups.insert(Row::new(), 0);
                }
                for mut row in self.node(input) {
                    row.retain(|var, _| by.contains(var));
                    *groups.entry(row).or_default() += 1;
                }
                groups
                    .into_iter()
                    .map(|(mut row, count)| {
                        for (var, _) in aggregates {
                            row.insert(*var, count.to_string());
                        }
                        row.extend(self.given.clone());
                        row
                    })
                    .collect()
            }
            other => panic!("{other:?}"),
        }
    }

    fn truth(&self, expression: &Expression, row: &Row) -> Option<bool> {
        let value = |expression: &Expression| match expression {
            Expression::Constant(id) => Some(self.constant(*id).to_owned()),
            Expression::Variable(var) => row.get(var).cloned(),
            other => panic!("{other:?}"),
        };
        match expression {
            Expression::Compare(Comparison::Equal | Comparison::SameTerm, a, b) => {
                Some(value(a)? == value(b)?)
            }
            Expression::Compare(Comparison::NotEqual, a, b) => Some(value(a)? != value(b)?),
            // Only what stands for EXISTS is a condition by itself.
            Expression::Variable(var) => Some(row[var] == "true"),
            Expression::Not(part) => self.truth(part, row).map(|value| !value),
            Expression::Bound(var) => Some(row.contains_key(var)),
            Expression::Or(parts) => either(parts.iter().map(|p| self.truth(p, row)), true),
            Expression::And(parts) => either(parts.iter().map(|p| self.truth(p, row)), false),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn plans_answer_as_the_algebra_defines() {
    let mut compared = 0;
    let mut with_answers = 0;
    for seed in 1..=30_000u64 {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let text = format!("PREFIX e: <http://e/> SELECT * {}", group(&mut random, 2));
        let Ok(spargebra::Query::Select { pattern, .. }) = SparqlParser::new().parse_query(&text)
        else {
            // BIND of a variable in scope, which the grammar forbids.
            continue;
        };
        let mut quads = data(&mut random);
        let graph = |number: u64| NamedNode::new_unchecked(format!("http://e/c{number}"));
        let dataset = (random.below(4) == 0).then(|| Dataset {
            default: (0..random.below(3)).map(graph).collect(),
            named: vec![graph(random.below(2))],
        });
        if let Some(dataset) = &dataset {
            quads = of_dataset(&quads, dataset);
        }
        let planned = plan(&text, None, dataset.as_ref(), &Noise(seed))
            .unwrap_or_else(|error| panic!("{seed} {text}: {error}"));
        let Form::Select(_) = planned.form else {
            panic!("not a SELECT");
        };
        let mut wanted = define(&pattern, "", &quads, &Solution::new());
        wanted.sort();
        compared += 1;
        with_answers += usize::from(!wanted.is_empty());
        for lazy in [false, true] {
            let run = Run {
                plan: &planned,
                quads: &quads,
                lazy,
                given: Row::new(),
            };
            let mut found: Vec<Solution> = run
                .node(&planned.root)
                .into_iter()
                .map(|row| {
                    let names = row
                        .into_iter()
                        .map(|(var, value)| (planned.variables[var.index()].clone(), value));
                    names.collect()
                })
                .collect();
            found.sort();
            assert_eq!(
                found,
                wanted,
                "seed {seed}\n{text}\n{quads:#?}\n{}",
                jindou_plan::explain(&planned, &|id| match &planned.constants[id.index()] {
                    Constant::Fixed(term) => term.clone(),
                    other => panic!("{other:?}"),
                })
                .expect("a stack")
            );
        }
    }
    assert!(
        compared > 10_000 && with_answers > 3000,
        "{compared} {with_answers}"
    );
}
