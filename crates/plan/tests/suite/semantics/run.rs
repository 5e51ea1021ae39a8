//! What are the rows of a plan? Each step as the contract of `physical` says, one row at a time.

use std::collections::{BTreeMap, BTreeSet};

use jindou_model::Direction;
use jindou_plan::expression::{Comparison, Expression};
use jindou_plan::physical::{
    ConstId, Constant, Node, Operator, Outcome, PathExpression, Plan, PlannedStep, Requirement,
    Scope, Side, Slot, Step, Var,
};
use oxrdf::Term;

use super::definition::{either, graph_of, names};
use super::{Quads, TYPE};
use crate::common::paths::{Path, evaluate};

pub(crate) type Row = BTreeMap<Var, String>;

/// Stands for the merge of all named graphs.
const ANY: &str = "*";

fn is_in(graph: &str, asked: &str) -> bool {
    match asked {
        ANY => !graph.is_empty(),
        _ => graph == asked,
    }
}

pub(crate) struct Run<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) quads: &'a Quads,
    /// Whether requirements that may be left out are left out.
    pub(crate) lazy: bool,
    /// What explorations without an input begin with.
    pub(crate) given: Row,
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

    /// The graphs that a step looks into for a row; that of the default graph has no name.
    fn graphs(&self, scope: Scope, row: &Row) -> Vec<String> {
        match scope {
            Scope::Default => vec![String::new()],
            Scope::Named => vec![ANY.to_owned()],
            Scope::Graph(slot) => match self.known(slot, row) {
                Some(graph) => vec![graph.to_owned()],
                None => names(self.quads).into_iter().cloned().collect(),
            },
        }
    }

    fn meets(&self, graph: &str, vertex: &str, requirement: &Requirement) -> bool {
        self.quads.iter().any(|quad| match requirement {
            Requirement::Type(class) => {
                is_in(&quad.0, graph)
                    && quad.1 == vertex
                    && quad.2 == TYPE
                    && quad.3 == self.constant(*class)
            }
            // In named graphs it may be that of another one.
            Requirement::Has(predicate, direction) => {
                let end = if *direction == Direction::Out {
                    &quad.1
                } else {
                    &quad.3
                };
                quad.0.is_empty() == graph.is_empty()
                    && end == vertex
                    && quad.2 == self.constant(*predicate)
            }
        })
    }

    fn neighbours(&self, graph: &str, from: &str, side: &Side) -> BTreeSet<String> {
        let predicate = self.constant(side.predicate);
        let edges = self
            .quads
            .iter()
            .filter(|quad| is_in(&quad.0, graph) && quad.2 == predicate);
        edges
            .filter_map(|quad| match side.direction {
                Direction::Out => (quad.1 == from).then(|| quad.3.clone()),
                Direction::In => (quad.3 == from).then(|| quad.1.clone()),
            })
            .collect()
    }

    /// A row for each graph that `finds` something in it, which a variable is bound to.
    fn in_graphs(&self, scope: Scope, row: &Row, finds: impl Fn(&str) -> bool) -> Vec<Row> {
        let graphs = self.graphs(scope, row).into_iter();
        graphs
            .filter(|graph| finds(graph))
            .map(|graph| self.named(scope, row.clone(), graph))
            .collect()
    }

    fn named(&self, scope: Scope, mut row: Row, graph: String) -> Row {
        if let Scope::Graph(Slot::Var(var)) = scope {
            row.insert(var, graph);
        }
        row
    }

    fn bind(
        &self,
        var: Var,
        sides: &[Side],
        requires: &[Requirement],
        scope: Scope,
        row: &Row,
    ) -> Vec<Row> {
        assert!(!row.contains_key(&var), "bound twice");
        assert!(!sides.is_empty() || !requires.is_empty());
        let is_scan = sides.is_empty();
        let is_known_graph = matches!(scope, Scope::Graph(slot) if self.known(slot, row).is_some());
        assert!(
            !is_scan || is_known_graph || row.keys().all(|var| self.given.contains_key(var)),
            "a scan for each of many rows"
        );
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
        let has_type = needed
            .iter()
            .any(|needed| matches!(needed, Requirement::Type(_)));
        let mut out = BTreeSet::new();
        for graph in self.graphs(scope, row) {
            let of_sides = sides
                .iter()
                .map(|side| self.neighbours(&graph, self.must(side.from, row), side));
            let all = || {
                let quads = self.quads.iter();
                quads
                    .flat_map(|quad| [quad.1.clone(), quad.3.clone()])
                    .collect()
            };
            let found = of_sides.reduce(|all, one| &all & &one).unwrap_or_else(all);
            for value in found {
                if needed
                    .iter()
                    .all(|requirement| self.meets(&graph, &value, requirement))
                {
                    let mut row = row.clone();
                    row.insert(var, value);
                    // What is scanned without a type says nothing of the graph.
                    out.insert(match is_scan && !has_type {
                        true => row,
                        false => self.named(scope, row, graph.clone()),
                    });
                }
            }
        }
        out.into_iter().collect()
    }

    fn step(&self, step: &Step, rows: Vec<Row>) -> Vec<Row> {
        rows.into_iter()
            .flat_map(|row| self.step_of_row(step, row))
            .collect()
    }

    fn step_of_row(&self, step: &Step, row: Row) -> Vec<Row> {
        match step {
            Step::Bind {
                var,
                sides,
                requires,
                scope,
            } => self.bind(*var, sides, requires, *scope, &row),
            Step::Check { side, to, scope } => self.in_graphs(*scope, &row, |graph| {
                let ends = self.neighbours(graph, self.must(side.from, &row), side);
                ends.contains(self.must(*to, &row))
            }),
            Step::Test {
                slot,
                requires,
                scope,
            } => self.in_graphs(*scope, &row, |graph| {
                let vertex = self.must(*slot, &row);
                requires
                    .iter()
                    .all(|requirement| self.meets(graph, vertex, requirement))
            }),
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
                        Scope::Graph(_) | Scope::Named if quad.0.is_empty() => continue,
                        Scope::Named => (),
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
            Scope::Named => unreachable!("a path is in one graph"),
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

    pub(crate) fn node(&self, node: &Node) -> Vec<Row> {
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
            Operator::EndCounts(counts) => self.node(&counts.general),
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
