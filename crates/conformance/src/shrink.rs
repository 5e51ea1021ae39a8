//! What is the smallest case that still fails?
//!
//! Greedy: each candidate leaves out one thing of the query, or some quads; the first that still
//! fails is taken, until none does or the attempts are used up.

use crate::query::{Element, Expression, Form, Group, Query};
use oxrdf::Quad;

/// Comparisons made at most while shrinking one failure.
const ATTEMPTS_LIMIT: usize = 1500;

/// A failing case.
#[derive(Debug, Clone)]
pub struct Case {
    /// The data.
    pub quads: Vec<Quad>,
    /// The query.
    pub query: Query,
}

/// The smallest case found for which `fails` still holds; it holds for `case`.
pub fn shrink(mut case: Case, fails: &mut dyn FnMut(&Case) -> bool) -> Case {
    let mut left = ATTEMPTS_LIMIT;
    loop {
        let before = left;
        let query_shrunk = take_first(&mut case, &mut left, fails, |case| {
            queries(&case.query)
                .into_iter()
                .map(|query| Case {
                    quads: case.quads.clone(),
                    query,
                })
                .collect()
        });
        let data_shrunk = take_first(&mut case, &mut left, fails, |case| {
            fewer_quads(&case.quads)
                .into_iter()
                .map(|quads| Case {
                    quads,
                    query: case.query.clone(),
                })
                .collect()
        });
        if left == 0 || before == left || !(query_shrunk || data_shrunk) {
            return case;
        }
    }
}

/// Replaces `case` by failing candidates as long as there is one; whether there was.
fn take_first(
    case: &mut Case,
    left: &mut usize,
    fails: &mut dyn FnMut(&Case) -> bool,
    candidates: impl Fn(&Case) -> Vec<Case>,
) -> bool {
    let mut changed = false;
    'again: loop {
        for candidate in candidates(case) {
            if *left == 0 {
                return changed;
            }
            *left -= 1;
            if fails(&candidate) {
                *case = candidate;
                changed = true;
                continue 'again;
            }
        }
        return changed;
    }
}

/// The quads without a run of them: long runs first, down to single ones.
fn fewer_quads(quads: &[Quad]) -> Vec<Vec<Quad>> {
    let mut candidates = Vec::new();
    let mut run = quads.len() / 2;
    while run > 0 {
        for start in (0..quads.len()).step_by(run) {
            let end = (start + run).min(quads.len());
            candidates.push([&quads[..start], &quads[end..]].concat());
        }
        run /= 2;
    }
    candidates
}

/// Queries with one thing less.
fn queries(query: &Query) -> Vec<Query> {
    let mut candidates = Vec::new();
    let mut with = |change: &dyn Fn(&mut Query)| {
        let mut candidate = query.clone();
        change(&mut candidate);
        if candidate != *query {
            candidates.push(candidate);
        }
    };
    with(&|query| query.limit = None);
    with(&|query| query.offset = None);
    with(&|query| query.having = None);
    with(&|query| query.order_by.clear());
    with(&|query| query.from_named.clear());
    with(&|query| {
        query.from.clear();
        query.from_named.clear();
    });
    for index in 0..query.order_by.len() {
        with(&|query| drop(query.order_by.remove(index)));
    }
    for index in 0..query.group_by.len() {
        with(&|query| {
            let (key, name) = query.group_by.remove(index);
            let name = name.or(match key {
                Expression::Variable(name) => Some(name),
                _ => None,
            });
            if let Form::Select { items, .. } = &mut query.form {
                items.retain(|item| Some(&item.variable) != name.as_ref());
            }
        });
    }
    if let Form::Select { items, .. } = &query.form {
        let count = items.len();
        with(&|query| {
            if let Form::Select { distinct, .. } = &mut query.form {
                *distinct = false;
            }
        });
        // An empty list would stand for `*`, which is another query.
        if count > 1 {
            for index in 0..count {
                with(&|query| {
                    if let Form::Select { items, .. } = &mut query.form {
                        items.remove(index);
                    }
                });
            }
        }
        for (index, item) in items.iter().enumerate() {
            for simpler in item.expression.iter().flat_map(expressions) {
                with(&|query| {
                    if let Form::Select { items, .. } = &mut query.form {
                        items[index].expression = Some(simpler.clone());
                    }
                });
            }
        }
    }
    if let Form::Construct(template) = &query.form
        && template.len() > 1
    {
        for index in 0..template.len() {
            with(&|query| {
                if let Form::Construct(template) = &mut query.form {
                    template.remove(index);
                }
            });
        }
    }
    for pattern in groups(&query.pattern) {
        with(&|query| query.pattern = pattern.clone());
    }
    candidates
}

/// Groups with one thing less.
fn groups(group: &Group) -> Vec<Group> {
    let mut candidates = Vec::new();
    for index in 0..group.0.len() {
        let mut without = group.clone();
        without.0.remove(index);
        candidates.push(without);
    }
    for (index, element) in group.0.iter().enumerate() {
        for replacement in elements(element) {
            let mut candidate = group.clone();
            candidate.0.splice(index..=index, replacement);
            candidates.push(candidate);
        }
    }
    candidates
}

/// What may stand for an element: itself with one thing less, or the elements inside it.
fn elements(element: &Element) -> Vec<Vec<Element>> {
    let one = |element: Element| vec![element];
    let mut candidates: Vec<Vec<Element>> = Vec::new();
    match element {
        Element::Triples(patterns) => {
            for index in 0..patterns.len() {
                let mut fewer = patterns.clone();
                fewer.remove(index);
                if !fewer.is_empty() {
                    candidates.push(one(Element::Triples(fewer)));
                }
            }
        }
        Element::Path(subject, path, object) => {
            for simpler in path.simpler() {
                let ends = (subject.clone(), object.clone());
                candidates.push(one(Element::Path(ends.0, simpler, ends.1)));
            }
        }
        Element::Filter(condition) => {
            for simpler in expressions(condition) {
                candidates.push(one(Element::Filter(simpler)));
            }
        }
        Element::Bind(expression, variable) => {
            for simpler in expressions(expression) {
                candidates.push(one(Element::Bind(simpler, variable.clone())));
            }
        }
        Element::Optional(inner) => {
            candidates.push(inner.0.clone());
            candidates.extend(groups(inner).into_iter().map(|g| one(Element::Optional(g))));
        }
        Element::Minus(inner) => {
            candidates.extend(groups(inner).into_iter().map(|g| one(Element::Minus(g))));
        }
        Element::Subquery(query) => {
            candidates.push(query.pattern.0.clone());
            let simpler = queries(query).into_iter();
            candidates.extend(simpler.map(|q| one(Element::Subquery(Box::new(q)))));
        }
        Element::Nested(inner) => {
            candidates.push(inner.0.clone());
            candidates.extend(groups(inner).into_iter().map(|g| one(Element::Nested(g))));
        }
        Element::Graph(name, inner) => {
            candidates.push(inner.0.clone());
            candidates.extend(
                groups(inner)
                    .into_iter()
                    .map(|g| one(Element::Graph(name.clone(), g))),
            );
        }
        Element::Union(branches) => {
            candidates.extend(branches.iter().map(|branch| branch.0.clone()));
            for (index, branch) in branches.iter().enumerate() {
                if branches.len() > 2 {
                    let mut fewer = branches.clone();
                    fewer.remove(index);
                    candidates.push(one(Element::Union(fewer)));
                }
                for simpler in groups(branch) {
                    let mut changed = branches.clone();
                    changed[index] = simpler;
                    candidates.push(one(Element::Union(changed)));
                }
            }
        }
        Element::Values(variables, rows) => {
            for index in 0..rows.len() {
                let mut fewer = rows.clone();
                fewer.remove(index);
                candidates.push(one(Element::Values(variables.clone(), fewer)));
            }
        }
    }
    candidates
}

/// The operands of an expression, and the expression with an operand replaced by one of its own.
fn expressions(expression: &Expression) -> Vec<Expression> {
    let mut candidates = Vec::new();
    match expression {
        Expression::Variable(_) | Expression::Term(_) | Expression::Aggregate(..) => {}
        Expression::Exists(negated, group) => {
            let simpler = groups(group).into_iter();
            candidates.extend(simpler.map(|group| Expression::Exists(*negated, group)));
        }
        Expression::Unary(operator, inner) => {
            candidates.push((**inner).clone());
            for simpler in expressions(inner) {
                candidates.push(Expression::Unary(operator, Box::new(simpler)));
            }
        }
        Expression::Binary(operator, left, right) => {
            candidates.extend([(**left).clone(), (**right).clone()]);
            for simpler in expressions(left) {
                candidates.push(Expression::Binary(
                    operator,
                    Box::new(simpler),
                    right.clone(),
                ));
            }
            for simpler in expressions(right) {
                candidates.push(Expression::Binary(
                    operator,
                    left.clone(),
                    Box::new(simpler),
                ));
            }
        }
        Expression::Call(name, arguments) => {
            candidates.extend(arguments.iter().cloned());
            for (index, argument) in arguments.iter().enumerate() {
                for simpler in expressions(argument) {
                    let mut changed = arguments.clone();
                    changed[index] = simpler;
                    candidates.push(Expression::Call(name, changed));
                }
            }
        }
        Expression::In(inner, negated, list) => {
            for index in 0..list.len() {
                let mut fewer = list.clone();
                fewer.remove(index);
                if !fewer.is_empty() {
                    candidates.push(Expression::In(inner.clone(), *negated, fewer));
                }
            }
            for simpler in expressions(inner) {
                candidates.push(Expression::In(Box::new(simpler), *negated, list.clone()));
            }
        }
    }
    candidates
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;
    use crate::random_data::{Profile, dataset};
    use crate::random_query::query;

    #[test]
    fn a_case_shrinks_to_what_makes_it_fail() {
        let mut random = Random::new(7);
        let profile = Profile::random(&mut random);
        let quads = dataset(&mut random, profile);
        let culprit = quads[quads.len() / 2].clone();
        let mut case = Case {
            quads,
            query: query(&mut random, profile),
        };
        case.query.limit = Some(3);
        let shrunk = shrink(case, &mut |case| {
            case.quads.contains(&culprit) && case.query.limit.is_some()
        });
        assert_eq!(shrunk.quads, [culprit]);
        assert_eq!(shrunk.query.limit, Some(3));
        assert!(shrunk.query.pattern.0.is_empty());
        assert!(shrunk.query.order_by.is_empty());
    }
}
