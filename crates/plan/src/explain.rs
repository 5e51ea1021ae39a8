//! What does a plan look like to a person?
//!
//! One line for each operator and step, the inputs of an operator below it: what is done on the
//! left, expected rows on the right, and for a profile the rows and time that it really took.

use std::fmt::Write as _;
use std::iter;
use std::time::Duration;

use jindou_model::{Counted, Direction};
use oxrdf::vocab::{rdf, xsd};
use oxrdf::{Term, TermRef};

use crate::expression::{Aggregate, AggregateFunction, Arithmetic, Comparison, Expression};
use crate::physical::{
    ConstId, EndCounts, Form, Node, Operator, OrderKey, Outcome, PathExpression, Plan, PlannedStep,
    Requirement, Scope, Side, Slot, Step, TemplateSlot, Var,
};
use crate::stack::NoStack;

/// What a step or operator really did: rows that came out of it, and time spent in it alone.
pub type Actual = (u64, Duration);

/// The rows of a node are found by several threads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// The node, by its id.
    pub node: u32,
    /// How many threads.
    pub threads: usize,
    /// What they share out.
    pub dealt: Dealt,
}

/// What threads share out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dealt {
    /// Ids that the first step of an exploration binds a variable to, and how many.
    Ids(Var, u64),
    /// The rows after so many of the first steps of an exploration.
    Steps(usize),
    /// The rows of another node, by its id.
    Node(u32),
}

/// The longest line that others are brought into line with.
const WIDEST: usize = 1000;
/// What is nested deeper than this is set in no further: as many spaces as a line is deep would be
/// the square of the lines.
const DEEPEST: usize = 200;

/// Writes a plan as a tree with expected rows, and what several threads do of it.
///
/// `term` gives the term of each constant: [`Prepared::term`](crate::Prepared::term).
///
/// # Errors
/// [`NoStack`].
pub fn explain(
    plan: &Plan,
    exchanges: &[Exchange],
    term: &(dyn Fn(ConstId) -> Term + Sync),
) -> Result<String, NoStack> {
    plan.stack().run(|| render((plan, exchanges), term, None))
}

/// Writes a plan as a tree with expected and actual rows, and time, by the ids of steps and
/// operators; what has no figures was not run.
///
/// # Errors
/// [`NoStack`].
pub fn explain_profile(
    plan: &Plan,
    exchanges: &[Exchange],
    term: &(dyn Fn(ConstId) -> Term + Sync),
    actual: &(dyn Fn(u32) -> Option<Actual> + Sync),
) -> Result<String, NoStack> {
    plan.stack()
        .run(|| render((plan, exchanges), term, Some(actual)))
}

fn render(
    (plan, exchanges): (&Plan, &[Exchange]),
    term: &dyn Fn(ConstId) -> Term,
    actual: Option<&(dyn Fn(u32) -> Option<Actual> + Sync)>,
) -> String {
    let mut tree = Tree {
        plan,
        exchanges,
        term,
        lines: Vec::new(),
    };
    tree.node(&plan.root, 0);
    let mut text = String::new();
    let _ = writeln!(text, "{}", tree.form());
    if let Some(dataset) = &plan.dataset {
        for graph in &dataset.default {
            let _ = writeln!(text, "from {}", short(graph.as_str()));
        }
        for graph in &dataset.named {
            let _ = writeln!(text, "from named {}", short(graph.as_str()));
        }
    }
    let indent = |line: &Line| 2 * line.depth.min(DEEPEST);
    let width = |line: &Line| line.text.chars().count() + indent(line);
    let measured = tree.lines.iter().filter(|line| line.figures.is_some());
    let widest = measured.map(width).filter(|width| *width <= WIDEST).max();
    for line in &tree.lines {
        // A format's width has sixteen bits.
        text.extend(iter::repeat_n(' ', indent(line)));
        text.push_str(&line.text);
        if let Some((id, rows)) = line.figures {
            let gap = widest.unwrap_or(0).saturating_sub(width(line));
            let _ = write!(text, "{:gap$}  {:>13}", "", rows_text(rows));
            if let Some(actual) = actual {
                match actual(id) {
                    Some((rows, time)) => {
                        let rows = thousands(rows);
                        let _ = write!(text, "  {rows:>13}  {:>11}", time_text(time));
                    }
                    None => {
                        let _ = write!(text, "  {:>13}", "not run");
                    }
                }
            }
        }
        text.push('\n');
    }
    let _ = writeln!(text, "cost {}", rows_text(plan.cost));
    text
}

struct Line {
    depth: usize,
    text: String,
    figures: Option<(u32, f64)>,
}

struct Tree<'a> {
    plan: &'a Plan,
    exchanges: &'a [Exchange],
    term: &'a dyn Fn(ConstId) -> Term,
    lines: Vec<Line>,
}

/// What a node below this one is called.
fn find_name(node: &Node, id: u32) -> Option<&'static str> {
    let inside = |inputs: &[&Node]| inputs.iter().find_map(|input| find_name(input, id));
    let (name, found) = match &node.operator {
        Operator::Explore { input, .. } => {
            let inputs = input.as_deref();
            ("explore", inputs.and_then(|input| inside(&[input])))
        }
        Operator::Join { build, probe, .. } => ("join", inside(&[build, probe])),
        Operator::LeftJoin { left, right, .. } => ("left join", inside(&[left, right])),
        Operator::Minus { left, right, .. } => ("minus", inside(&[left, right])),
        Operator::Service { input, .. } => {
            let inputs = input.as_deref();
            ("service", inputs.and_then(|input| inside(&[input])))
        }
        Operator::Union(inputs) => {
            let mut inputs = inputs.iter();
            ("union", inputs.find_map(|input| find_name(input, id)))
        }
        Operator::Materialized { .. } => ("kept rows", None),
        Operator::EndCounts(planned) => ("counts", inside(&[&planned.general])),
        Operator::EachGraph { input, .. } => ("graphs", inside(&[input])),
        Operator::Group { input, .. } => ("group", inside(&[input])),
        Operator::OrderBy { input, .. } => ("order", inside(&[input])),
        Operator::Project { input, .. } => ("project", inside(&[input])),
        Operator::Distinct { input } => ("distinct", inside(&[input])),
        Operator::Reduced { input } => ("reduced", inside(&[input])),
        Operator::Slice { input, .. } => ("slice", inside(&[input])),
    };
    if node.id == id { Some(name) } else { found }
}

impl Tree<'_> {
    fn form(&self) -> String {
        match &self.plan.form {
            Form::Select(vars) => format!("select {}", self.vars(vars)),
            Form::Ask => "ask".to_owned(),
            Form::Construct(template) => {
                let slot = |slot: &TemplateSlot| match slot {
                    TemplateSlot::Var(var) => self.var(*var),
                    TemplateSlot::Const(id) => self.constant(*id),
                    TemplateSlot::Blank(number) => format!("_:{number}"),
                };
                let triples: Vec<String> = template
                    .iter()
                    .map(|t| {
                        format!(
                            "{} {} {}",
                            slot(&t.subject),
                            slot(&t.predicate),
                            slot(&t.object)
                        )
                    })
                    .collect();
                format!("construct {}", triples.join(" . "))
            }
            Form::Describe(slots) => {
                let slots: Vec<String> = slots.iter().map(|slot| self.slot(*slot)).collect();
                format!("describe {}", slots.join(" "))
            }
        }
    }

    fn line(&mut self, depth: usize, text: String, figures: Option<(u32, f64)>) {
        self.lines.push(Line {
            depth,
            text,
            figures,
        });
    }

    fn node(&mut self, node: &Node, mut depth: usize) {
        let mut exchanges = self.exchanges.iter();
        if let Some(exchange) = exchanges.find(|exchange| exchange.node == node.id) {
            let text = self.exchange(exchange);
            self.line(depth, text, None);
            depth += 1;
        }
        let figures = Some((node.id, node.rows));
        let (text, inputs): (String, Vec<&Node>) = match &node.operator {
            Operator::Explore { input, steps } => {
                self.line(depth, "explore".to_owned(), figures);
                if let Some(input) = input {
                    self.node(input, depth + 1);
                }
                self.steps(steps, depth + 1);
                return;
            }
            Operator::Join {
                build,
                probe,
                keys,
                loose,
            } => (
                format!("join{}", self.on(keys, loose)),
                vec![&**build, &**probe],
            ),
            Operator::LeftJoin {
                left,
                right,
                keys,
                loose,
                marks,
                condition,
            } => {
                let mut text = format!("left join{}", self.on(keys, loose));
                if let Some(condition) = condition {
                    let _ = write!(text, " if {}", self.expression(condition));
                }
                self.line(depth, text, figures);
                if !marks.is_empty() {
                    self.line(depth + 1, "with".to_owned(), None);
                    self.steps(marks, depth + 2);
                }
                self.node(left, depth + 1);
                self.node(right, depth + 1);
                return;
            }
            Operator::Minus {
                left,
                right,
                keys,
                loose,
                overlaps,
            } => {
                let mut text = format!("minus{}", self.on(keys, loose));
                if !overlaps {
                    text.push_str(" where one is bound in both");
                }
                (text, vec![&**left, &**right])
            }
            Operator::EachGraph { input, scope, name } => (
                format!("each graph {} as {}", self.var(*scope), self.var(*name)),
                vec![&**input],
            ),
            Operator::Service {
                input,
                service,
                keys,
                loose,
                send,
                optional,
                marks,
                condition,
            } => {
                let mut text = if *optional { "left join" } else { "join" }.to_owned();
                text += &self.on(keys, loose);
                let silent = if service.silent { "silent " } else { "" };
                let endpoint = match service.endpoint {
                    Slot::Var(var) => self.var(var),
                    // In full: it is an address.
                    Slot::Const(id) => (self.term)(id).to_string(),
                };
                let _ = write!(text, " service {silent}{endpoint}");
                if !send.is_empty() {
                    let _ = write!(text, " sending {}", self.vars(send));
                }
                if let Some(condition) = condition {
                    let _ = write!(text, " if {}", self.expression(condition));
                }
                self.line(depth, text, figures);
                for line in service.query.text().lines() {
                    self.line(depth + 1, line.to_owned(), None);
                }
                if !marks.is_empty() {
                    self.line(depth + 1, "with".to_owned(), None);
                    self.steps(marks, depth + 2);
                }
                if let Some(input) = input {
                    self.node(input, depth + 1);
                }
                return;
            }
            Operator::Materialized { .. } => ("solutions that are kept".to_owned(), Vec::new()),
            Operator::EndCounts(planned) => (self.end_counts(planned), vec![&planned.general]),
            Operator::Union(inputs) => ("union".to_owned(), inputs.iter().collect()),
            Operator::Group {
                input,
                by,
                aggregates,
            } => {
                let mut text = "group".to_owned();
                if !by.is_empty() {
                    let _ = write!(text, " by {}", self.vars(by));
                }
                for (var, aggregate) in aggregates {
                    let aggregate = self.aggregate(aggregate);
                    let _ = write!(text, ", {} = {aggregate}", self.var(*var));
                }
                (text, vec![&**input])
            }
            Operator::OrderBy { input, keys, limit } => {
                let mut text = format!("order by {}", self.keys(keys));
                if let Some(limit) = limit {
                    let _ = write!(text, ", first {limit}");
                }
                (text, vec![&**input])
            }
            Operator::Project { input, vars } => {
                (format!("project {}", self.vars(vars)), vec![&**input])
            }
            Operator::Distinct { input } => ("distinct".to_owned(), vec![&**input]),
            Operator::Reduced { input } => ("reduced".to_owned(), vec![&**input]),
            Operator::Slice {
                input,
                offset,
                limit,
            } => {
                let mut text = "slice".to_owned();
                if *offset > 0 {
                    let _ = write!(text, " offset {offset}");
                }
                if let Some(limit) = limit {
                    let _ = write!(text, " limit {limit}");
                }
                (text, vec![&**input])
            }
        };
        self.line(depth, text, figures);
        for input in inputs {
            self.node(input, depth + 1);
        }
    }

    fn exchange(&self, exchange: &Exchange) -> String {
        let what = match exchange.dealt {
            Dealt::Ids(var, ids) => format!("{} ids of {}", thousands(ids), self.var(var)),
            Dealt::Steps(1) => "the rows of its first step".to_owned(),
            Dealt::Steps(steps) => format!("the rows of its first {steps} steps"),
            Dealt::Node(id) => match find_name(&self.plan.root, id) {
                Some(name) => format!("the rows of its {name}"),
                None => "rows".to_owned(),
            },
        };
        format!("exchange: {} threads share {what}", exchange.threads)
    }

    fn end_counts(&self, planned: &EndCounts) -> String {
        let what = match planned.counted {
            Counted::Terms => "terms",
            Counted::Edges => "triples",
        };
        let end = match planned.direction {
            Direction::Out => "subject",
            Direction::In => "object",
        };
        let mut text = format!("counted {what} by {end} {}", self.var(planned.end));
        if planned.by_kind {
            text.push_str(", by kind");
        }
        match planned.predicate {
            Some(Slot::Const(id)) => {
                let _ = write!(text, ", of {}", self.constant(id));
            }
            Some(Slot::Var(var)) => {
                let _ = write!(text, ", of each {}", self.var(var));
            }
            None => {}
        }
        if let Scope::Graph(graph) = planned.scope {
            let _ = write!(text, ", in {}", self.slot(graph));
        }
        text + "; otherwise"
    }

    fn steps(&mut self, steps: &[PlannedStep], depth: usize) {
        for planned in steps {
            let figures = Some((planned.id, planned.rows));
            let text = self.step(&planned.step);
            self.line(depth, text, figures);
            match &planned.step {
                Step::Optional { steps, .. } | Step::Exists { steps, .. } => {
                    self.steps(steps, depth + 1);
                }
                Step::ExistsGiven {
                    node, all_bound, ..
                } => {
                    if let Some(bound) = all_bound {
                        self.line(depth + 1, "where all are bound".to_owned(), None);
                        self.node(bound, depth + 2);
                        self.line(depth + 1, "else".to_owned(), None);
                        self.node(node, depth + 2);
                    } else {
                        self.node(node, depth + 1);
                    }
                }
                Step::Union(branches) => {
                    for branch in branches {
                        self.line(depth + 1, "branch".to_owned(), None);
                        self.steps(branch, depth + 2);
                    }
                }
                _ => (),
            }
        }
    }

    fn in_scope(&self, mut text: String, scope: Scope) -> String {
        match scope {
            Scope::Default => {}
            Scope::Graph(graph) => {
                let _ = write!(text, " in graph {}", self.slot(graph));
            }
            Scope::Named => text.push_str(" in any graph"),
        }
        text
    }

    fn step(&self, step: &Step) -> String {
        match step {
            Step::Bind {
                var,
                sides,
                requires,
                scope,
            } => {
                let verb = match sides.len() {
                    0 => "scan",
                    1 => "expand",
                    _ => "intersect",
                };
                let mut parts: Vec<String> = sides
                    .iter()
                    .map(|side| self.side(side, Slot::Var(*var)))
                    .collect();
                if !requires.is_empty() {
                    parts.push(self.requirements(requires));
                }
                let text = format!("{verb} {}: {}", self.var(*var), parts.join(" . "));
                self.in_scope(text, *scope)
            }
            Step::Check { side, to, scope } => {
                let text = format!("check {}", self.side(side, *to));
                self.in_scope(text, *scope)
            }
            Step::Test {
                slot,
                requires,
                scope,
            } => {
                let requires = self.requirements(requires);
                let text = format!("test {}: {requires}", self.slot(*slot));
                self.in_scope(text, *scope)
            }
            Step::Match {
                subject,
                predicate,
                object,
                scope,
            } => {
                let text = format!(
                    "match {} {} {}",
                    self.slot(*subject),
                    self.slot(*predicate),
                    self.slot(*object)
                );
                self.in_scope(text, *scope)
            }
            Step::Path {
                subject,
                path,
                object,
                scope,
            } => {
                let text = format!(
                    "path {} {} {}",
                    self.slot(*subject),
                    self.path(path),
                    self.slot(*object)
                );
                self.in_scope(text, *scope)
            }
            Step::Graphs { graph } => format!("graphs {}", self.slot(*graph)),
            Step::Filter(expression) => format!("filter {}", self.expression(expression)),
            Step::Extend { var, expression } => {
                format!(
                    "extend {} = {}",
                    self.var(*var),
                    self.expression(expression)
                )
            }
            Step::Values { vars, rows } => {
                const SHOWN: usize = 4;
                let mut text = format!("values ({}) {{", self.vars(vars));
                for row in rows.iter().take(SHOWN) {
                    let cells: Vec<String> = row
                        .iter()
                        .map(|cell| cell.map_or("UNDEF".to_owned(), |id| self.constant(id)))
                        .collect();
                    let _ = write!(text, " ({})", cells.join(" "));
                }
                if rows.len() > SHOWN {
                    let _ = write!(text, " and {} more", rows.len() - SHOWN);
                }
                text + " }"
            }
            Step::Optional { .. } => "optional".to_owned(),
            Step::Union(_) => "union".to_owned(),
            Step::Exists { outcome, .. } => self.outcome(*outcome),
            Step::ExistsGiven { given, outcome, .. } => {
                let mut text = self.outcome(*outcome);
                if !given.is_empty() {
                    let _ = write!(text, " given {}", self.vars(given));
                }
                text
            }
        }
    }

    fn outcome(&self, outcome: Outcome) -> String {
        match outcome {
            Outcome::Keep => "exists".to_owned(),
            Outcome::Drop => "not exists".to_owned(),
            Outcome::Mark(var) => format!("mark {} = exists", self.var(var)),
        }
    }

    fn path(&self, path: &PathExpression) -> String {
        let inverse = |direction: &Direction| match direction {
            Direction::Out => "",
            Direction::In => "^",
        };
        match path {
            PathExpression::Edge(predicate, direction) => {
                format!("{}{}", inverse(direction), self.constant(*predicate))
            }
            PathExpression::Negated(predicates, direction) => {
                let sign = inverse(direction);
                let parts: Vec<String> = predicates
                    .iter()
                    .map(|predicate| format!("{sign}{}", self.constant(*predicate)))
                    .collect();
                format!("!({})", parts.join("|"))
            }
            PathExpression::Sequence(parts) => {
                format!("({}/{})", self.path(&parts[0]), self.path(&parts[1]))
            }
            PathExpression::Alternative(parts) => {
                format!("({}|{})", self.path(&parts[0]), self.path(&parts[1]))
            }
            PathExpression::ZeroOrOne(inner) => self.repeated(inner, '?'),
            PathExpression::ZeroOrMore(inner) => self.repeated(inner, '*'),
            PathExpression::OneOrMore(inner) => self.repeated(inner, '+'),
        }
    }

    fn repeated(&self, inner: &PathExpression, sign: char) -> String {
        let text = self.path(inner);
        match inner {
            PathExpression::Edge(_, Direction::Out)
            | PathExpression::Sequence(_)
            | PathExpression::Alternative(_) => format!("{text}{sign}"),
            _ => format!("({text}){sign}"),
        }
    }

    fn side(&self, side: &Side, to: Slot) -> String {
        let (subject, object) = match side.direction {
            Direction::Out => (side.from, to),
            Direction::In => (to, side.from),
        };
        format!(
            "{} {} {}",
            self.slot(subject),
            self.constant(side.predicate),
            self.slot(object)
        )
    }

    fn requirements(&self, requires: &[Requirement]) -> String {
        let parts: Vec<String> = requires
            .iter()
            .map(|requirement| match requirement {
                Requirement::Type(id) => format!("a {}", self.constant(*id)),
                Requirement::Has(id, Direction::Out) => format!("has {}", self.constant(*id)),
                Requirement::Has(id, Direction::In) => format!("has ^{}", self.constant(*id)),
            })
            .collect();
        parts.join(", ")
    }

    fn on(&self, keys: &[Var], loose: &[Var]) -> String {
        let mut text = String::new();
        if !keys.is_empty() {
            let _ = write!(text, " on {}", self.vars(keys));
        }
        if !loose.is_empty() {
            let _ = write!(text, " if compatible on {}", self.vars(loose));
        }
        text
    }

    fn keys(&self, keys: &[OrderKey]) -> String {
        let keys: Vec<String> = keys
            .iter()
            .map(|key| {
                let expression = self.expression(&key.expression);
                if key.descending {
                    format!("desc({expression})")
                } else {
                    expression
                }
            })
            .collect();
        keys.join(" ")
    }

    fn aggregate(&self, aggregate: &Aggregate) -> String {
        let name = match &aggregate.function {
            AggregateFunction::Count => "count",
            AggregateFunction::Sum => "sum",
            AggregateFunction::Avg => "avg",
            AggregateFunction::Min => "min",
            AggregateFunction::Max => "max",
            AggregateFunction::Sample => "sample",
            AggregateFunction::GroupConcat(_) => "group_concat",
        };
        let distinct = if aggregate.distinct { "distinct " } else { "" };
        let operand = aggregate
            .operand
            .as_ref()
            .map_or("*".to_owned(), |operand| self.expression(operand));
        format!("{name}({distinct}{operand})")
    }

    fn expression(&self, expression: &Expression) -> String {
        let list = |list: &[Expression], between: &str| {
            let parts: Vec<String> = list.iter().map(|part| self.expression(part)).collect();
            parts.join(between)
        };
        match expression {
            Expression::Variable(var) => self.var(*var),
            Expression::Constant(id) => self.constant(*id),
            Expression::Or(parts) => format!("({})", list(parts, " || ")),
            Expression::And(parts) => format!("({})", list(parts, " && ")),
            Expression::Not(part) => format!("!{}", self.expression(part)),
            Expression::Compare(Comparison::SameTerm, left, right) => format!(
                "sameTerm({}, {})",
                self.expression(left),
                self.expression(right)
            ),
            Expression::Compare(comparison, left, right) => {
                let sign = match comparison {
                    Comparison::Equal => "=",
                    Comparison::NotEqual => "!=",
                    Comparison::Less => "<",
                    Comparison::LessOrEqual => "<=",
                    Comparison::Greater => ">",
                    Comparison::GreaterOrEqual => ">=",
                    Comparison::SameTerm => unreachable!("matched above"),
                };
                format!(
                    "({} {sign} {})",
                    self.expression(left),
                    self.expression(right)
                )
            }
            Expression::In(part, parts) => {
                format!("({} in ({}))", self.expression(part), list(parts, ", "))
            }
            Expression::Arithmetic(first, rest) => {
                let mut text = format!("({}", self.expression(first));
                for (operator, part) in rest {
                    text.push_str(match operator {
                        Arithmetic::Add => " + ",
                        Arithmetic::Subtract => " - ",
                        Arithmetic::Multiply => " * ",
                        Arithmetic::Divide => " / ",
                    });
                    text.push_str(&self.expression(part));
                }
                text.push(')');
                text
            }
            Expression::UnaryPlus(part) => format!("+{}", self.expression(part)),
            Expression::UnaryMinus(part) => format!("-{}", self.expression(part)),
            Expression::Bound(var) => format!("bound({})", self.var(*var)),
            Expression::If(condition, then, otherwise) => format!(
                "if({}, {}, {})",
                self.expression(condition),
                self.expression(then),
                self.expression(otherwise)
            ),
            Expression::Coalesce(parts) => format!("coalesce({})", list(parts, ", ")),
            Expression::Call(function, parts) => {
                format!(
                    "{}({})",
                    format!("{function:?}").to_lowercase(),
                    list(parts, ", ")
                )
            }
        }
    }

    fn slot(&self, slot: Slot) -> String {
        match slot {
            Slot::Var(var) => self.var(var),
            Slot::Const(id) => self.constant(id),
        }
    }

    fn var(&self, var: Var) -> String {
        format!("?{}", self.plan.variables[var.index()])
    }

    fn vars(&self, vars: &[Var]) -> String {
        let names: Vec<String> = vars.iter().map(|var| self.var(*var)).collect();
        names.join(" ")
    }

    fn constant(&self, id: ConstId) -> String {
        let term = (self.term)(id);
        match term.as_ref() {
            TermRef::NamedNode(node) if node == rdf::TYPE => "a".to_owned(),
            TermRef::NamedNode(node) => short(node.as_str()),
            TermRef::Literal(literal) if literal.datatype() == xsd::INTEGER => {
                literal.value().to_owned()
            }
            other => other.to_string(),
        }
    }
}

/// What follows the last `#` or `/` of an IRI, if it is a plain word; else the whole IRI.
fn short(iri: &str) -> String {
    let start = iri.rfind(['#', '/']).map_or(0, |at| at + 1);
    let local = &iri[start..];
    let is_plain = start > 0
        && !local.is_empty()
        && local
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'));
    if is_plain {
        format!(":{local}")
    } else {
        format!("<{iri}>")
    }
}

fn rows_text(rows: f64) -> String {
    if rows > 0.0 && rows < 10.0 {
        return format!("{rows:.1}");
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "estimates, and the cast saturates"
    )]
    thousands(rows.round() as u64)
}

fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn time_text(time: Duration) -> String {
    let nanos = time.as_nanos();
    match nanos {
        0..10_000 => format!("{nanos} ns"),
        10_000..10_000_000 => format!("{} us", nanos / 1000),
        _ => format!("{} ms", nanos / 1_000_000),
    }
}
