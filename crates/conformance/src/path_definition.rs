//! Which pairs of terms does a property path connect, by the definitions of SPARQL 1.1 (section 18.5)
//! followed to the letter?
//!
//! Slow on purpose: nothing here is shared with the engine.

use crate::path::Path;
use oxrdf::Term;
use std::collections::BTreeSet;

/// One graph: subject, predicate, object.
pub type Graph = BTreeSet<(String, String, String)>;
/// Pairs of ends, duplicates counted.
pub type Pairs = Vec<(String, String)>;

/// The definitions. An end is a term, or `None` for a variable.
#[must_use]
pub fn evaluate(graph: &Graph, path: &Path, subject: Option<&str>, object: Option<&str>) -> Pairs {
    let is = |end: Option<&str>, term: &str| end.is_none_or(|end| end == term);
    let edges = |matches: &dyn Fn(&str) -> bool, inverse: bool| -> Pairs {
        let found = graph.iter().filter(|triple| matches(&triple.1));
        let pairs = found.map(|(s, _, o)| match inverse {
            false => (s.clone(), o.clone()),
            true => (o.clone(), s.clone()),
        });
        pairs
            .filter(|(s, o)| is(subject, s) && is(object, o))
            .collect()
    };
    let swapped = |pairs: Pairs| -> Pairs { pairs.into_iter().map(|(a, b)| (b, a)).collect() };
    match path {
        Path::Edge(predicate) => edges(&|p| p == predicate, false),
        Path::Negated(forward, inverse) => {
            let others = |list: &Vec<String>, is_inverse: bool| match list.is_empty() {
                true => Vec::new(),
                false => edges(&|p| list.iter().all(|not| not != p), is_inverse),
            };
            let mut pairs = others(forward, false);
            pairs.extend(others(inverse, true));
            pairs
        }
        Path::Inverse(inner) => swapped(evaluate(graph, inner, object, subject)),
        Path::Sequence(first, second) => {
            let second = evaluate(graph, second, None, object);
            let mut pairs = Pairs::new();
            for (from, middle) in evaluate(graph, first, subject, None) {
                let ends = second.iter().filter(|(start, _)| *start == middle);
                pairs.extend(ends.map(|(_, end)| (from.clone(), end.clone())));
            }
            pairs
        }
        Path::Alternative(first, second) => {
            let mut pairs = evaluate(graph, first, subject, object);
            pairs.extend(evaluate(graph, second, subject, object));
            pairs
        }
        Path::ZeroOrOne(inner) => {
            let mut pairs: BTreeSet<_> = evaluate(graph, inner, subject, object)
                .into_iter()
                .collect();
            pairs.extend(itself(graph, subject, object));
            pairs.into_iter().collect()
        }
        Path::ZeroOrMore(_) | Path::OneOrMore(_) => match (subject, object) {
            (Some(start), _) => reached(graph, path, start)
                .into_iter()
                .filter(|end| is(object, end))
                .map(|end| (start.to_owned(), end))
                .collect(),
            (None, Some(end)) => {
                let inverse = |inner: &Path| Box::new(Path::Inverse(Box::new(inner.clone())));
                let backwards = match path {
                    Path::ZeroOrMore(inner) => Path::ZeroOrMore(inverse(inner)),
                    Path::OneOrMore(inner) => Path::OneOrMore(inverse(inner)),
                    _ => unreachable!("matched above"),
                };
                swapped(evaluate(graph, &backwards, Some(end), None))
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

/// The pairs of a path without edges.
fn itself(graph: &Graph, subject: Option<&str>, object: Option<&str>) -> Pairs {
    let pair = |term: &str| (term.to_owned(), term.to_owned());
    match (subject, object) {
        (Some(a), Some(b)) if a != b => Pairs::new(),
        (Some(term), _) | (None, Some(term)) => vec![pair(term)],
        (None, None) => nodes(graph).iter().map(|term| pair(term)).collect(),
    }
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

/// Terms by their text, which is what the definitions work on.
#[must_use]
pub fn text_of(term: &Term) -> String {
    match term {
        Term::NamedNode(node) => match node.as_str().strip_prefix("http://example.org/") {
            Some(name) => format!(":{name}"),
            None => node.to_string(),
        },
        other => other.to_string(),
    }
}
