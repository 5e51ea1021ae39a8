//! Which constants of its query does a graph pattern use?

use std::iter::once;

use rustc_hash::FxHashSet;

use crate::algebra::{Modifiers, Pattern};
use crate::expression::Expression;
use crate::physical::{ConstId, PathExpression, Scope, Slot};

impl Pattern {
    /// The constants that occur anywhere in the pattern, be it in a path, an expression or inline data.
    pub(crate) fn constants(&self) -> FxHashSet<ConstId> {
        let mut used = Used::default();
        used.add(self);
        used.0
    }
}

#[derive(Default)]
struct Used(FxHashSet<ConstId>);

impl Used {
    // Each field is named, so that a new one cannot be forgotten here.
    fn add(&mut self, pattern: &Pattern) {
        match pattern {
            Pattern::Unit | Pattern::Materialized { vars: _, rows: _ } => {}
            Pattern::Quads(quads) => {
                for quad in quads {
                    self.add_ends(quad.subject, quad.object, quad.scope);
                    self.add_slot(quad.predicate);
                }
            }
            Pattern::Path(path) => {
                self.add_ends(path.subject, path.object, path.scope);
                self.add_path(&path.path);
            }
            Pattern::Graphs(slot) => self.add_slot(*slot),
            Pattern::Values { vars: _, rows } => self.0.extend(rows.iter().flatten().flatten()),
            Pattern::Join(parts) | Pattern::Union(parts) => {
                parts.iter().for_each(|part| self.add(part));
            }
            Pattern::LeftJoin {
                left,
                right,
                marks,
                condition,
            } => {
                let marks = marks.iter().map(|(_, pattern)| pattern);
                let patterns = [&**left, &**right].into_iter().chain(marks);
                patterns.for_each(|pattern| self.add(pattern));
                self.add_expressions(condition);
            }
            Pattern::Minus {
                left: one,
                right: other,
                graph: _,
            }
            | Pattern::Exists {
                inner: one,
                pattern: other,
                outcome: _,
            } => {
                self.add(one);
                self.add(other);
            }
            Pattern::Subquery(query) => {
                self.add(&query.pattern);
                self.add_modifiers(&query.modifiers);
            }
            // What is sent to another endpoint is text.
            Pattern::Service(service) => self.add_slot(service.endpoint),
            Pattern::EachGraph {
                scope: _,
                name: _,
                inner,
            } => self.add(inner),
            Pattern::Filter { inner, expression } => {
                self.add(inner);
                self.add_expressions(once(expression));
            }
            Pattern::Extend { inner, bindings } => {
                self.add(inner);
                self.add_expressions(bindings.iter().map(|(_, expression)| expression));
            }
            Pattern::Group {
                inner,
                by: _,
                aggregates,
            } => {
                self.add(inner);
                let aggregates = aggregates.iter().map(|(_, aggregate)| aggregate);
                self.add_expressions(aggregates.flat_map(|aggregate| &aggregate.operand));
            }
        }
    }

    fn add_ends(&mut self, subject: Slot, object: Slot, scope: Scope) {
        self.add_slot(subject);
        self.add_slot(object);
        match scope {
            Scope::Default | Scope::Named => {}
            Scope::Graph(slot) => self.add_slot(slot),
        }
    }

    fn add_slot(&mut self, slot: Slot) {
        match slot {
            Slot::Const(id) => self.0.extend([id]),
            Slot::Var(_) => {}
        }
    }

    fn add_path(&mut self, path: &PathExpression) {
        match path {
            PathExpression::Edge(predicate, _) => self.0.extend([*predicate]),
            PathExpression::Negated(predicates, _) => self.0.extend(predicates),
            PathExpression::Sequence(parts) | PathExpression::Alternative(parts) => {
                parts.iter().for_each(|part| self.add_path(part));
            }
            PathExpression::ZeroOrOne(inner)
            | PathExpression::ZeroOrMore(inner)
            | PathExpression::OneOrMore(inner) => self.add_path(inner),
        }
    }

    fn add_modifiers(&mut self, modifiers: &Modifiers) {
        self.add_expressions(modifiers.order.iter().map(|key| &key.expression));
    }

    fn add_expressions<'e>(&mut self, expressions: impl IntoIterator<Item = &'e Expression>) {
        for expression in expressions {
            self.add_expression(expression);
        }
    }

    fn add_expression(&mut self, expression: &Expression) {
        match expression {
            Expression::Constant(id) => self.0.extend([*id]),
            other => other.for_each_part(&mut |part| self.add_expression(part)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algebra::Query;
    use crate::continuous::parse_continuous;
    use crate::limits::Limits;

    fn query(pattern: &str) -> Query {
        let from = "FROM STREAM :s [RANGE 1s] FROM NAMED STREAM :t [RANGE 1s]";
        let text = format!("PREFIX : <http://e/> SELECT * {from} WHERE {{ {pattern} }}");
        let limits = Limits {
            reserve: &mut |_| true,
            is_over: &|| false,
        };
        let parsed = parse_continuous(&text, None, &|_| None, false, limits);
        Query::clone(parsed.expect("it is sound").logical())
    }

    /// The constants that a pattern has by its `Debug` text, which has every field.
    fn in_text(query: &Query) -> FxHashSet<ConstId> {
        let text = format!("{:?}", query.pattern);
        let ids = (0..query.constants.len() as u16).map(ConstId);
        ids.filter(|id| text.contains(&format!("{id:?}"))).collect()
    }

    #[test]
    fn the_constants_of_a_pattern_are_those_of_its_text() {
        for (pattern, least) in [
            ("", 0),
            ("?x ?p ?y", 0),
            (":a :p :b . GRAPH :g { ?x :q 7 }", 6),
            (":a (:p/^:q)* :b . ?x !(:r|^:s) ?y . ?x (:t|:u)? :c", 9),
            ("GRAPH ?g { ?x :p* :a } GRAPH :g {}", 3),
            ("VALUES (?x ?y) { (:a UNDEF) (:b 1) }", 3),
            (
                "?x :p ?y OPTIONAL { ?y :q ?z FILTER(?z > 5 && ?x != :a) }",
                4,
            ),
            (
                "?x :p ?y OPTIONAL { ?y :q ?z FILTER EXISTS { ?z :r :a } }",
                4,
            ),
            (
                "?x :p ?y MINUS { ?x :q :a } FILTER NOT EXISTS { ?x :r :b }",
                5,
            ),
            ("{ ?x :p :a } UNION { ?x :q :b }", 4),
            ("{ SELECT ?x { ?x :p ?y } ORDER BY (?y + 3) LIMIT 4 }", 2),
            ("SERVICE :e { ?x :p :a } ?x :q ?y", 2),
            (
                "GRAPH ?g { ?x :p ?y { SELECT ?x { ?x :q :a } LIMIT 1 } }",
                3,
            ),
            (
                "?x :p ?y BIND(IF(?y IN (1, 2), :a, COALESCE(-?y, 5 * 6)) AS ?z)",
                6,
            ),
            (
                "{ SELECT ?x (SUM(?y + 8) AS ?n) { ?x :p ?y } GROUP BY ?x }",
                2,
            ),
        ] {
            let query = query(pattern);
            let used = query.pattern.constants();
            assert_eq!(used, in_text(&query), "{pattern}");
            assert!(used.len() >= least, "{pattern}: {used:?}");
        }
    }
}
