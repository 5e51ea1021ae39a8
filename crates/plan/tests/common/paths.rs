//! Property paths by the definitions of SPARQL 1.1 (section 18.5), over a few triples.

use std::collections::{BTreeMap, BTreeSet};

use jindou_model::Direction;
use jindou_plan::physical::{ConstId, PathExpression};
use spargebra::algebra::PropertyPathExpression as Parsed;

/// Subject, predicate, object.
pub type Graph = BTreeSet<(String, String, String)>;
/// Pairs of ends, duplicates counted.
pub type Pairs = Vec<(String, String)>;

/// A path, as the text or a plan has it.
#[derive(Clone)]
pub enum Path {
    Edge(String),
    Negated(Vec<String>),
    Inverse(Box<Path>),
    Sequence(Box<Path>, Box<Path>),
    Alternative(Box<Path>, Box<Path>),
    ZeroOrOne(Box<Path>),
    ZeroOrMore(Box<Path>),
    OneOrMore(Box<Path>),
}

impl Path {
    pub fn of_text(path: &Parsed) -> Self {
        let boxed = |path: &Parsed| Box::new(Self::of_text(path));
        match path {
            Parsed::NamedNode(node) => Self::Edge(node.as_str().to_owned()),
            Parsed::Reverse(inner) => Self::Inverse(boxed(inner)),
            Parsed::Sequence(a, b) => Self::Sequence(boxed(a), boxed(b)),
            Parsed::Alternative(a, b) => Self::Alternative(boxed(a), boxed(b)),
            Parsed::ZeroOrMore(inner) => Self::ZeroOrMore(boxed(inner)),
            Parsed::OneOrMore(inner) => Self::OneOrMore(boxed(inner)),
            Parsed::ZeroOrOne(inner) => Self::ZeroOrOne(boxed(inner)),
            Parsed::NegatedPropertySet(nodes) => {
                Self::Negated(nodes.iter().map(|node| node.as_str().to_owned()).collect())
            }
        }
    }

    pub fn of_plan(path: &PathExpression, name: &dyn Fn(ConstId) -> String) -> Self {
        let boxed = |path: &PathExpression| Box::new(Self::of_plan(path, name));
        let directed = |path: Self, direction: Direction| match direction {
            Direction::Out => path,
            Direction::In => Self::Inverse(Box::new(path)),
        };
        match path {
            PathExpression::Edge(id, direction) => directed(Self::Edge(name(*id)), *direction),
            PathExpression::Negated(ids, direction) => {
                let names = ids.iter().map(|id| name(*id)).collect();
                directed(Self::Negated(names), *direction)
            }
            PathExpression::Sequence(parts) => Self::Sequence(boxed(&parts[0]), boxed(&parts[1])),
            PathExpression::Alternative(parts) => {
                Self::Alternative(boxed(&parts[0]), boxed(&parts[1]))
            }
            PathExpression::ZeroOrOne(inner) => Self::ZeroOrOne(boxed(inner)),
            PathExpression::ZeroOrMore(inner) => Self::ZeroOrMore(boxed(inner)),
            PathExpression::OneOrMore(inner) => Self::OneOrMore(boxed(inner)),
        }
    }
}

/// The pairs that a path connects. An end is a term, or `None` for a variable.
pub fn evaluate(graph: &Graph, path: &Path, subject: Option<&str>, object: Option<&str>) -> Pairs {
    let is = |end: Option<&str>, term: &str| end.is_none_or(|end| end == term);
    let edges = |matches: &dyn Fn(&String) -> bool| -> Pairs {
        graph
            .iter()
            .filter(|(s, p, o)| matches(p) && is(subject, s) && is(object, o))
            .map(|(s, _, o)| (s.clone(), o.clone()))
            .collect()
    };
    let swapped = |pairs: Pairs| -> Pairs { pairs.into_iter().map(|(a, b)| (b, a)).collect() };
    match path {
        Path::Edge(predicate) => edges(&|p| p == predicate),
        Path::Negated(not) => edges(&|p| !not.contains(p)),
        Path::Inverse(inner) => swapped(evaluate(graph, inner, object, subject)),
        Path::Sequence(first, second) => {
            let mut ends: BTreeMap<String, Vec<String>> = BTreeMap::new();
            for (middle, end) in evaluate(graph, second, None, object) {
                ends.entry(middle).or_default().push(end);
            }
            evaluate(graph, first, subject, None)
                .into_iter()
                .flat_map(|(from, middle)| {
                    let ends = ends.get(&middle).cloned().unwrap_or_default();
                    ends.into_iter().map(move |end| (from.clone(), end))
                })
                .collect()
        }
        Path::Alternative(first, second) => {
            let mut pairs = evaluate(graph, first, subject, object);
            pairs.extend(evaluate(graph, second, subject, object));
            pairs
        }
        Path::ZeroOrOne(inner) => {
            let found = evaluate(graph, inner, subject, object);
            let mut pairs: BTreeSet<_> = found.into_iter().collect();
            let own: Vec<String> = match (subject, object) {
                (Some(a), Some(b)) if a != b => Vec::new(),
                (Some(term), _) | (None, Some(term)) => vec![term.to_owned()],
                (None, None) => nodes(graph).into_iter().collect(),
            };
            pairs.extend(own.into_iter().map(|term| (term.clone(), term)));
            pairs.into_iter().collect()
        }
        Path::ZeroOrMore(inner) | Path::OneOrMore(inner) => match (subject, object) {
            (Some(start), _) => reached(graph, path, start)
                .into_iter()
                .filter(|end| is(object, end))
                .map(|end| (start.to_owned(), end))
                .collect(),
            (None, Some(_)) => {
                let inverse = Box::new(Path::Inverse(inner.clone()));
                let backwards = match path {
                    Path::ZeroOrMore(_) => Path::ZeroOrMore(inverse),
                    _ => Path::OneOrMore(inverse),
                };
                swapped(evaluate(graph, &backwards, object, None))
            }
            (None, None) => nodes(graph)
                .into_iter()
                .flat_map(|start| evaluate(graph, path, Some(&start), None))
                .collect(),
        },
    }
}

fn nodes(graph: &Graph) -> BTreeSet<String> {
    graph
        .iter()
        .flat_map(|(s, _, o)| [s.clone(), o.clone()])
        .collect()
}

/// The functions ALP of the specification, for `*` and `+`.
fn reached(graph: &Graph, path: &Path, start: &str) -> BTreeSet<String> {
    let step = |inner: &Path, from: &str| -> Vec<String> {
        let pairs = evaluate(graph, inner, Some(from), None);
        pairs.into_iter().map(|(_, end)| end).collect()
    };
    let (inner, mut waiting) = match path {
        Path::ZeroOrMore(inner) => (inner, vec![start.to_owned()]),
        Path::OneOrMore(inner) => (inner, step(inner, start)),
        _ => unreachable!("only `*` and `+` are repeated"),
    };
    let mut seen = BTreeSet::new();
    while let Some(term) = waiting.pop() {
        if seen.insert(term.clone()) {
            waiting.extend(step(inner, &term));
        }
    }
    seen
}
