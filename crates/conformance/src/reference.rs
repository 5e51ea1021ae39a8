//! What is the answer to a generated query by the definitions of SPARQL 1.1 (section 18)?
//!
//! Groups are evaluated from the inside out as the definitions say, and slowly: nothing is shared
//! with the engine, and nothing with the oracle's algebra, so that it also decides where the oracle
//! is known to differ. Expressions and SELECT clauses go to the oracle, over VALUES that hold the
//! solutions. The values must be spelt as the oracle spells them, and none may be a blank node.
//!
//! EXISTS is asked with the values of the solution joined to each part of its group, as the engine
//! documents; where other readings of its definition say something else, the query is
//! [`Undecided`].

use crate::answer::{Answer, Table};
use crate::engines::ask_oracle;
use crate::path::Path;
use crate::path_definition::{Graph, evaluate, text_of};
use crate::query::{Element, Expression, Form, Group, Item, Node, Pattern, Query};
use oxrdf::{Dataset, GraphName, Literal, Quad, Term};
use std::collections::{BTreeMap, BTreeSet};

/// Solutions that a group may have.
const SOLUTIONS_LIMIT: usize = 2000;
/// Pairs of solutions looked at for one join.
const PAIRS_LIMIT: usize = 400_000;
/// Solutions for which EXISTS is asked.
const EXISTS_LIMIT: usize = 60;

type Solution = BTreeMap<String, Term>;

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Undecided {
    /// It would take too long.
    #[error("there are too many solutions on the way")]
    TooLarge,
    /// The standard does not say.
    #[error("the standard leaves open {0}")]
    Open(&'static str),
    /// The oracle does not evaluate an expression.
    #[error("{0}")]
    Expression(String),
}

/// A data set to be asked.
pub struct Reference {
    default: Triples,
    named: BTreeMap<String, Triples>,
    terms: BTreeMap<String, Term>,
}

/// A graph, for triple patterns and for paths.
#[derive(Default)]
struct Triples {
    triples: BTreeSet<[String; 3]>,
    paths: Graph,
}

impl Triples {
    fn insert(&mut self, quad: &Quad) {
        let [s, p, o]: [Term; 3] = terms_of(quad);
        let predicate = match text_of(&p) {
            text if text.starts_with(':') => text[1..].to_owned(),
            _ if p == oxrdf::vocab::rdf::TYPE.into_owned().into() => "type".to_owned(),
            text => text,
        };
        self.paths.insert((text_of(&s), predicate, text_of(&o)));
        self.triples.insert([s, p, o].map(|term| text_of(&term)));
    }
}

fn terms_of(quad: &Quad) -> [Term; 3] {
    [
        quad.subject.clone().into(),
        quad.predicate.clone().into(),
        quad.object.clone(),
    ]
}

/// What a group is evaluated in.
#[derive(Clone, Copy)]
struct Place<'a> {
    data: &'a Reference,
    graph: &'a Triples,
    /// The solution that EXISTS is asked for; otherwise empty.
    given: &'a Solution,
    is_exists: bool,
}

impl Reference {
    /// The data set that FROM and FROM NAMED of the query choose, if they do: graphs that it names need no
    /// triples. Of the others one without triples is none, unless it is among `graphs`.
    #[must_use]
    pub fn new(quads: &[Quad], graphs: &[Term], query: &Query) -> Self {
        let is_chosen = !query.from.is_empty() || !query.from_named.is_empty();
        let mut new = Self {
            default: Triples::default(),
            named: BTreeMap::new(),
            terms: BTreeMap::new(),
        };
        let without_clause = graphs.iter().filter(|_| !is_chosen);
        for name in without_clause.chain(&query.from_named) {
            new.terms.insert(text_of(name), name.clone());
            new.named.entry(text_of(name)).or_default();
        }
        for quad in quads {
            for term in terms_of(quad) {
                new.terms.insert(text_of(&term), term);
            }
            let name: Term = match &quad.graph_name {
                GraphName::DefaultGraph => {
                    if !is_chosen {
                        new.default.insert(quad);
                    }
                    continue;
                }
                GraphName::NamedNode(node) => node.clone().into(),
                GraphName::BlankNode(node) => node.clone().into(),
            };
            if query.from.contains(&name) {
                new.default.insert(quad);
            }
            if !is_chosen || query.from_named.contains(&name) {
                let text = text_of(&name);
                new.terms.insert(text.clone(), name);
                new.named.entry(text).or_default().insert(quad);
            }
        }
        new
    }

    /// The whole answer, LIMIT and OFFSET as the query has them.
    ///
    /// # Errors
    /// Why there is none.
    pub fn answer(&self, query: &Query) -> Result<Answer, Undecided> {
        let place = Place {
            data: self,
            graph: &self.default,
            given: &Solution::new(),
            is_exists: false,
        };
        place.query(query)
    }

    fn term(&self, text: &str) -> Term {
        match self.terms.get(text) {
            Some(term) => term.clone(),
            // An end of a path that is nowhere in the data.
            None => crate::random_data::iri(&text[1..]).into(),
        }
    }
}

/// The union of two solutions, if they agree on what both have.
fn merged(left: &Solution, right: &Solution) -> Option<Solution> {
    let agree = right
        .iter()
        .all(|(name, term)| left.get(name).is_none_or(|other| other == term));
    agree.then(|| {
        let mut both = left.clone();
        both.extend(
            right
                .iter()
                .map(|(name, term)| (name.clone(), term.clone())),
        );
        both
    })
}

fn bounded(rows: Vec<Solution>) -> Result<Vec<Solution>, Undecided> {
    if rows.len() > SOLUTIONS_LIMIT {
        return Err(Undecided::TooLarge);
    }
    Ok(rows)
}

fn join(left: &[Solution], right: &[Solution]) -> Result<Vec<Solution>, Undecided> {
    if left.len() * right.len() > PAIRS_LIMIT {
        return Err(Undecided::TooLarge);
    }
    let of = |l| right.iter().filter_map(move |r| merged(l, r));
    bounded(left.iter().flat_map(of).collect())
}

/// The variables in scope after some elements of a group.
fn scope(elements: &[Element]) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let mut note = |node: &Node| {
        if let Node::Variable(name) = node {
            names.insert(name.clone());
        }
    };
    for element in elements {
        match element {
            Element::Triples(patterns) => {
                for pattern in patterns {
                    [&pattern.subject, &pattern.predicate, &pattern.object]
                        .into_iter()
                        .for_each(&mut note);
                }
            }
            Element::Path(subject, _, object) => {
                [subject, object].into_iter().for_each(&mut note);
            }
            _ => {}
        }
    }
    for element in elements {
        match element {
            Element::Optional(inner) | Element::Nested(inner) => names.extend(scope(&inner.0)),
            Element::Graph(name, inner) => {
                names.extend(scope(&inner.0));
                if let Node::Variable(name) = name {
                    names.insert(name.clone());
                }
            }
            Element::Union(branches) => names.extend(branches.iter().flat_map(|b| scope(&b.0))),
            Element::Values(variables, _) => names.extend(variables.iter().cloned()),
            Element::Bind(_, name) => drop(names.insert(name.clone())),
            Element::Subquery(query) => match &query.form {
                Form::Select { items, .. } if !items.is_empty() => {
                    names.extend(items.iter().map(|item| item.variable.clone()));
                }
                _ => names.extend(scope(&query.pattern.0)),
            },
            Element::Triples(_) | Element::Path(..) | Element::Filter(_) | Element::Minus(_) => {}
        }
    }
    names
}

impl Place<'_> {
    fn group(&self, group: &Group) -> Result<Vec<Solution>, Undecided> {
        let mut rows = self.unfiltered(group)?;
        for element in &group.0 {
            if let Element::Filter(condition) = element {
                rows = self.filtered(rows, condition)?;
            }
        }
        Ok(rows)
    }

    /// A group without its own filters.
    fn unfiltered(&self, group: &Group) -> Result<Vec<Solution>, Undecided> {
        let mut rows = vec![self.given.clone()];
        for (index, element) in group.0.iter().enumerate() {
            rows = match element {
                Element::Triples(patterns) => self.triples(&rows, patterns)?,
                Element::Path(subject, path, object) => {
                    join(&rows, &self.path(subject, path, object)?)?
                }
                Element::Filter(_) => continue,
                Element::Optional(inner) => self.optional(&rows, inner)?,
                Element::Union(branches) => {
                    let mut all = Vec::new();
                    for branch in branches {
                        all.extend(self.group(branch)?);
                    }
                    join(&rows, &all)?
                }
                Element::Graph(name, inner) => join(&rows, &self.graph(name, inner)?)?,
                Element::Values(names, lines) => {
                    let row = |line: &Vec<Option<Term>>| -> Solution {
                        let cells = names.iter().zip(line);
                        cells
                            .filter_map(|(name, term)| Some((name.clone(), term.clone()?)))
                            .collect()
                    };
                    join(&rows, &lines.iter().map(row).collect::<Vec<_>>())?
                }
                Element::Bind(expression, name) => self.bind(rows, expression, name)?,
                Element::Nested(inner) => join(&rows, &self.group(inner)?)?,
                Element::Minus(inner) => {
                    let known = scope(&group.0[..index]);
                    self.minus(rows, &known, inner)?
                }
                Element::Subquery(query) => join(&rows, &self.subquery(query)?)?,
            };
        }
        Ok(rows)
    }

    fn filtered(
        &self,
        rows: Vec<Solution>,
        condition: &Expression,
    ) -> Result<Vec<Solution>, Undecided> {
        // The effective boolean value, as FILTER takes it.
        let not = |inner| Expression::Unary("!", Box::new(inner));
        let truth = self.values(&rows, &not(not(condition.clone())))?;
        let is_true = |value: &Option<Term>| *value == Some(Literal::from(true).into());
        let kept = rows.into_iter().zip(&truth);
        Ok(kept
            .filter(|(_, value)| is_true(value))
            .map(|(row, _)| row)
            .collect())
    }

    /// Joins solutions with those of a basic graph pattern, one of its triples after another. A
    /// blank node is a variable that is forgotten, with its duplicates kept.
    fn triples(&self, rows: &[Solution], patterns: &[Pattern]) -> Result<Vec<Solution>, Undecided> {
        let mut rows = rows.to_vec();
        for pattern in patterns {
            let mut next = Vec::new();
            for row in &rows {
                for triple in &self.graph.triples {
                    let mut found = row.clone();
                    let nodes = [&pattern.subject, &pattern.predicate, &pattern.object];
                    let fits = nodes.into_iter().zip(triple).all(|(node, text)| {
                        let name = match node {
                            Node::Term(term) => return text_of(term) == *text,
                            Node::Variable(name) => name.clone(),
                            Node::Blank(label) => format!("_:{label}"),
                        };
                        let term = self.data.term(text);
                        *found.entry(name).or_insert_with(|| term.clone()) == term
                    });
                    if fits {
                        next.push(found);
                    }
                }
            }
            rows = bounded(next)?;
        }
        for row in &mut rows {
            row.retain(|name, _| !name.starts_with("_:"));
        }
        Ok(rows)
    }

    fn path(&self, subject: &Node, path: &Path, object: &Node) -> Result<Vec<Solution>, Undecided> {
        if self.is_exists && path.is_nullable() {
            return Err(Undecided::Open(
                "what a path without edges is inside EXISTS",
            ));
        }
        let end = |node: &Node| match node {
            Node::Term(term) => Some(text_of(term)),
            _ => None,
        };
        let (from, to) = (end(subject), end(object));
        let mut rows = Vec::new();
        for (s, o) in evaluate(&self.graph.paths, path, from.as_deref(), to.as_deref()) {
            let mut found = Solution::new();
            let fits = [(subject, s), (object, o)].into_iter().all(|(node, text)| {
                let Node::Variable(name) = node else {
                    return true;
                };
                let term = self.data.term(&text);
                *found.entry(name.clone()).or_insert_with(|| term.clone()) == term
            });
            if fits {
                rows.push(found);
            }
        }
        bounded(rows)
    }

    fn optional(&self, rows: &[Solution], inner: &Group) -> Result<Vec<Solution>, Undecided> {
        // The filters of the group are the condition of the join.
        let right = self.unfiltered(inner)?;
        if rows.len() * right.len() > PAIRS_LIMIT {
            return Err(Undecided::TooLarge);
        }
        let mut pairs = Vec::new();
        for (index, left) in rows.iter().enumerate() {
            pairs.extend(right.iter().filter_map(|r| Some((index, merged(left, r)?))));
        }
        let mut both: Vec<Solution> = pairs
            .into_iter()
            .map(|(index, mut row)| {
                let number = Literal::from(i64::try_from(index).expect("rows are few"));
                row.insert("left".to_owned(), number.into());
                row
            })
            .collect();
        bounded(both.clone())?;
        for element in &inner.0 {
            if let Element::Filter(condition) = element {
                both = self.filtered(both, condition)?;
            }
        }
        let mut found: Vec<Vec<Solution>> = vec![Vec::new(); rows.len()];
        for mut row in both {
            let Some(Term::Literal(number)) = row.remove("left") else {
                unreachable!("it was put there");
            };
            let index: usize = number.value().parse().expect("it is a number");
            found[index].push(row);
        }
        let of = |(left, found): (&Solution, Vec<Solution>)| match found.is_empty() {
            true => vec![left.clone()],
            false => found,
        };
        bounded(rows.iter().zip(found).flat_map(of).collect())
    }

    fn graph(&self, name: &Node, inner: &Group) -> Result<Vec<Solution>, Undecided> {
        let inside = |graph| Place { graph, ..*self }.group(inner);
        match name {
            Node::Term(term) => match self.data.named.get(&text_of(term)) {
                Some(graph) => inside(graph),
                None => Ok(Vec::new()),
            },
            Node::Variable(variable) => {
                let mut all = Vec::new();
                for (name, graph) in &self.data.named {
                    let named = Solution::from([(variable.clone(), self.data.term(name))]);
                    all.extend(join(&inside(graph)?, &[named])?);
                }
                bounded(all)
            }
            Node::Blank(_) => Err(Undecided::Open("a blank node as the name of a graph")),
        }
    }

    fn bind(
        &self,
        rows: Vec<Solution>,
        expression: &Expression,
        name: &str,
    ) -> Result<Vec<Solution>, Undecided> {
        let values = self.values(&rows, expression)?;
        let extended = rows.into_iter().zip(values).filter_map(|(row, value)| {
            let Some(value) = value else {
                return Some(row);
            };
            merged(&row, &Solution::from([(name.to_owned(), value)]))
        });
        Ok(extended.collect())
    }

    fn minus(
        &self,
        rows: Vec<Solution>,
        known: &BTreeSet<String>,
        inner: &Group,
    ) -> Result<Vec<Solution>, Undecided> {
        if self.is_exists {
            return Err(Undecided::Open("what MINUS shares inside EXISTS"));
        }
        let right = self.group(inner)?;
        let stays = |left: &Solution| {
            !right.iter().any(|other| {
                let shares = other
                    .keys()
                    .any(|name| known.contains(name) && left.contains_key(name));
                shares && merged(left, other).is_some()
            })
        };
        Ok(rows.into_iter().filter(stays).collect())
    }

    fn subquery(&self, query: &Query) -> Result<Vec<Solution>, Undecided> {
        let shown = scope(&[Element::Subquery(Box::new(query.clone()))]);
        let mut given = self.given.clone();
        given.retain(|name, _| shown.contains(name));
        if self.is_exists && (query.limit.is_some() || query.offset.is_some()) {
            return Err(Undecided::Open("which rows are cut inside EXISTS"));
        }
        let inside = Place {
            given: &given,
            ..*self
        };
        let Answer::Solutions(table) = inside.query(query)? else {
            unreachable!("a nested query is a SELECT");
        };
        let names = &table.variables;
        let row = |row: &Vec<Option<Term>>| {
            let cells = names.iter().zip(row);
            cells
                .filter_map(|(name, term)| Some((name.clone(), term.clone()?)))
                .collect()
        };
        Ok(table.rows.iter().map(row).collect())
    }

    /// The pattern by the definitions, the rest by the oracle.
    fn query(&self, query: &Query) -> Result<Answer, Undecided> {
        let rows = self.group(&query.pattern)?;
        let mut names: Vec<String> = scope(&query.pattern.0).into_iter().collect();
        if names.is_empty() {
            if let Form::Select { items, distinct } = &query.form
                && items.is_empty()
            {
                let count = rows.len().min(if *distinct { 1 } else { usize::MAX });
                let rows = vec![Vec::new(); count];
                let variables = Vec::new();
                return Ok(Answer::Solutions(Table { variables, rows }));
            }
            names.push("nothing".to_owned());
        }
        let has_exists = |expression: &Expression| !exists_in(expression).is_empty();
        let items: &[Item] = match &query.form {
            Form::Select { items, .. } => items,
            Form::Ask | Form::Construct(_) => &[],
        };
        if items
            .iter()
            .filter_map(|item| item.expression.as_ref())
            .any(has_exists)
            || query.having.iter().any(has_exists)
        {
            return Err(Undecided::Open("EXISTS among aggregates"));
        }
        let lines = rows.iter().map(|row| {
            let cell = |name: &String| row.get(name).cloned();
            names.iter().map(cell).collect()
        });
        let values = Element::Values(names.clone(), lines.collect());
        oracle(&Query {
            pattern: Group(vec![values]),
            from: Vec::new(),
            from_named: Vec::new(),
            ..query.clone()
        })
    }

    /// An expression for each solution, none where it is an error.
    fn values(
        &self,
        rows: &[Solution],
        expression: &Expression,
    ) -> Result<Vec<Option<Term>>, Undecided> {
        if rows.is_empty() {
            return Ok(Vec::new());
        }
        let conditions = exists_in(expression);
        if !conditions.is_empty() && rows.len() > EXISTS_LIMIT {
            return Err(Undecided::TooLarge);
        }
        let mut names: Vec<String> = variables_in(expression).into_iter().collect();
        let mut lines: Vec<Vec<Option<Term>>> = rows
            .iter()
            .map(|row| names.iter().map(|name| row.get(name).cloned()).collect())
            .collect();
        let mut plain = expression.clone();
        for (index, condition) in conditions.iter().enumerate() {
            let Expression::Exists(negated, group) = condition else {
                unreachable!("only these were looked for");
            };
            let name = format!("exists{index}");
            plain = replaced(&plain, condition, &Expression::Variable(name.clone()));
            names.push(name);
            for (row, line) in rows.iter().zip(&mut lines) {
                let mut given = row.clone();
                given.remove("left");
                let inside = Place {
                    given: &given,
                    is_exists: true,
                    ..*self
                };
                let truth = inside.group(group)?.is_empty() == *negated;
                line.push(Some(Literal::from(truth).into()));
            }
        }
        names.push("row".to_owned());
        for (index, line) in lines.iter_mut().enumerate() {
            let index = i64::try_from(index).expect("rows are few");
            line.push(Some(Literal::from(index).into()));
        }
        let item = |variable: &str, expression| Item {
            variable: variable.to_owned(),
            expression,
        };
        let answer = oracle(&Query {
            form: Form::Select {
                distinct: false,
                items: vec![item("row", None), item("value", Some(plain))],
            },
            from: Vec::new(),
            from_named: Vec::new(),
            pattern: Group(vec![Element::Values(names, lines)]),
            group_by: Vec::new(),
            having: None,
            order_by: Vec::new(),
            limit: None,
            offset: None,
        })?;
        let Answer::Solutions(table) = answer else {
            unreachable!("it is a SELECT");
        };
        let mut values = vec![None; rows.len()];
        for mut row in table.rows {
            let value = row.pop().flatten();
            let Some(Some(Term::Literal(number))) = row.pop() else {
                unreachable!("each row has its number");
            };
            let index: usize = number.value().parse().expect("it is a number");
            values[index] = value;
        }
        Ok(values)
    }
}

fn oracle(query: &Query) -> Result<Answer, Undecided> {
    ask_oracle(&Dataset::new(), &query.to_string())
        .map_err(|error| Undecided::Expression(format!("{error}\n{query}")))
}

/// The operands of an expression.
fn operands(expression: &Expression) -> Vec<&Expression> {
    match expression {
        Expression::Variable(_) | Expression::Term(_) | Expression::Exists(..) => Vec::new(),
        Expression::Unary(_, inner) => vec![inner],
        Expression::Binary(_, left, right) => vec![left, right],
        Expression::Call(_, parts) => parts.iter().collect(),
        Expression::In(inner, _, parts) => std::iter::once(&**inner).chain(parts).collect(),
        Expression::Aggregate(_, _, inner) => inner.iter().map(|inner| &**inner).collect(),
    }
}

fn exists_in(expression: &Expression) -> Vec<Expression> {
    if let Expression::Exists(..) = expression {
        return vec![expression.clone()];
    }
    operands(expression)
        .into_iter()
        .flat_map(exists_in)
        .collect()
}

fn variables_in(expression: &Expression) -> BTreeSet<String> {
    if let Expression::Variable(name) = expression {
        return BTreeSet::from([name.clone()]);
    }
    operands(expression)
        .into_iter()
        .flat_map(variables_in)
        .collect()
}

fn replaced(expression: &Expression, old: &Expression, new: &Expression) -> Expression {
    if expression == old {
        return new.clone();
    }
    let within = |part: &Expression| replaced(part, old, new);
    let boxed = |part: &Expression| Box::new(within(part));
    match expression {
        Expression::Variable(_) | Expression::Term(_) | Expression::Exists(..) => {
            expression.clone()
        }
        Expression::Unary(operator, inner) => Expression::Unary(operator, boxed(inner)),
        Expression::Binary(operator, left, right) => {
            Expression::Binary(operator, boxed(left), boxed(right))
        }
        Expression::Call(name, parts) => Expression::Call(name, parts.iter().map(within).collect()),
        Expression::In(inner, negated, parts) => {
            let parts = parts.iter().map(within).collect();
            Expression::In(boxed(inner), *negated, parts)
        }
        Expression::Aggregate(name, distinct, inner) => {
            let inner = inner.as_ref().map(|inner| boxed(inner));
            Expression::Aggregate(name, *distinct, inner)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random_data::iri;
    use oxrdf::NamedNode;

    fn quad(s: &str, p: &str, o: &str, g: Option<&str>) -> Quad {
        let graph = g.map_or(GraphName::DefaultGraph, |name| iri(name).into());
        Quad::new(iri(s), iri(p), iri(o), graph)
    }

    fn variable(name: &str) -> Node {
        Node::Variable(name.to_owned())
    }

    fn named(name: &str) -> Node {
        Node::Term(iri(name).into())
    }

    fn edge(s: Node, p: &str, o: Node) -> Element {
        Element::Triples(vec![Pattern {
            subject: s,
            predicate: named(p),
            object: o,
        }])
    }

    /// The sorted rows of `SELECT *`, each as the local names of its values.
    fn rows(elements: Vec<Element>) -> Vec<String> {
        let quads = [
            quad("a", "p", "b", None),
            quad("b", "p", "c", None),
            quad("a", "q", "c", None),
            quad("a", "p", "c", Some("g0")),
            quad("a", "p", "a", Some("g1")),
        ];
        let query = Query {
            form: Form::Select {
                distinct: false,
                items: Vec::new(),
            },
            from: Vec::new(),
            from_named: Vec::new(),
            pattern: Group(elements),
            group_by: Vec::new(),
            having: None,
            order_by: Vec::new(),
            limit: None,
            offset: None,
        };
        let graphs: [Term; 1] = [NamedNode::from(iri("g2")).into()];
        let reference = Reference::new(&quads, &graphs, &query);
        let Ok(Answer::Solutions(table)) = reference.answer(&query) else {
            panic!("it is a SELECT that is decided");
        };
        let shown = |row: &Vec<Option<Term>>| {
            let cells = table.variables.iter().zip(row);
            let cells =
                cells.filter_map(|(name, term)| Some(format!("{name}{}", text_of(term.as_ref()?))));
            let mut cells: Vec<String> = cells.collect();
            cells.sort();
            cells.join(" ")
        };
        let mut rows: Vec<String> = table.rows.iter().map(shown).collect();
        rows.sort();
        rows
    }

    #[test]
    fn groups_are_evaluated_as_defined() {
        let (x, y, g) = (variable("x"), variable("y"), variable("g"));
        let all = || edge(variable("x"), "p", variable("y"));
        assert_eq!(rows(vec![all()]), ["x:a y:b", "x:b y:c"]);
        let optional = Element::Optional(Group(vec![edge(y.clone(), "p", variable("z"))]));
        assert_eq!(rows(vec![all(), optional]), ["x:a y:b z:c", "x:b y:c"]);
        // Nothing is removed without a shared variable.
        let minus = |s: Node| Element::Minus(Group(vec![edge(s, "q", named("c"))]));
        assert_eq!(rows(vec![all(), minus(x.clone())]), ["x:b y:c"]);
        assert_eq!(
            rows(vec![all(), minus(variable("w"))]),
            ["x:a y:b", "x:b y:c"]
        );
        // Each graph, the empty one included, once; its name is no variable of the group inside.
        let empty = Element::Graph(g.clone(), Group(Vec::new()));
        assert_eq!(rows(vec![empty]), ["g:g0", "g:g1", "g:g2"]);
        let inside = Element::Graph(g.clone(), Group(vec![edge(x, "p", y)]));
        assert_eq!(rows(vec![inside]), ["g:g0 x:a y:c", "g:g1 x:a y:a"]);
        let bound = Expression::Call("BOUND", vec![Expression::Variable("g".to_owned())]);
        let inside = Element::Graph(g, Group(vec![all(), Element::Filter(bound)]));
        assert_eq!(rows(vec![inside]), Vec::<String>::new());
    }

    #[test]
    fn exists_is_asked_for_each_solution() {
        let all = edge(variable("x"), "p", variable("y"));
        let next = Group(vec![edge(variable("y"), "p", variable("z"))]);
        let exists = |negated| Element::Filter(Expression::Exists(negated, next.clone()));
        assert_eq!(rows(vec![all.clone(), exists(false)]), ["x:a y:b"]);
        assert_eq!(rows(vec![all, exists(true)]), ["x:b y:c"]);
    }
}
