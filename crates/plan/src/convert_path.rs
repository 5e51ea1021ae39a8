//! Which property paths are joins and unions of quad patterns, and what is left of the others?
//!
//! A sequence is a join over a variable of its own, an inverse swaps the ends, an alternative is
//! a union, and a negated property set is a quad pattern whose predicate is filtered: the
//! specification defines them so, duplicates included (SPARQL 1.1, sections 9.3 and 18.2.2.4).
//! Only `?`, `*` and `+`, which are sets of pairs, stay paths.

use jindou_model::Direction;
use oxrdf::NamedNode;
use oxrdf::vocab::rdf;
use spargebra::algebra::PropertyPathExpression as Parsed;
use spargebra::term::TermPattern;

use crate::algebra::{PathPattern, Pattern, Quad};
use crate::convert::Converter;
use crate::error::PlanError;
use crate::expression::{Comparison, Expression};
use crate::physical::{ConstId, PathExpression, Scope, Slot};

/// Edges inside `?`, `*` and `+` above which a query is refused: what may follow what takes the
/// square of it.
const MAX_PATH_EDGES: usize = 256;

impl Converter<'_> {
    /// Converts a property path between two ends.
    ///
    /// # Errors
    /// [`PlanError::TooLarge`].
    pub(crate) fn path(
        &mut self,
        subject: TermPattern,
        path: Parsed,
        object: TermPattern,
        scope: Scope,
    ) -> Result<Pattern, PlanError> {
        // A type decides the plan, so it is a part of it.
        let subject = self.slot(subject, ends_in_type(&path, Direction::In))?;
        let object = self.slot(object, ends_in_type(&path, Direction::Out))?;
        self.between(subject, path, object, scope)
    }

    fn between(
        &mut self,
        subject: Slot,
        path: Parsed,
        object: Slot,
        scope: Scope,
    ) -> Result<Pattern, PlanError> {
        self.deepen()?;
        let pattern = match path {
            Parsed::NamedNode(predicate) => {
                self.count_triple_patterns(1)?;
                Pattern::Quads(vec![Quad {
                    subject,
                    predicate: Slot::Const(self.iri(predicate)?),
                    object,
                    scope,
                }])
            }
            Parsed::Reverse(inner) => self.between(object, *inner, subject, scope)?,
            Parsed::Sequence(first, second) => {
                let middle = Slot::Var(self.make_up_variable()?);
                let first = self.between(subject, *first, middle, scope)?;
                let second = self.between(middle, *second, object, scope)?;
                Pattern::Join(Box::new(first), Box::new(second))
            }
            Parsed::Alternative(first, second) => {
                // The parser makes chains that lean to the left.
                let mut parts = vec![*second];
                let mut rest = *first;
                while let Parsed::Alternative(first, second) = rest {
                    parts.push(*second);
                    rest = *first;
                }
                parts.push(rest);
                let mut branches = Vec::new();
                for part in parts.into_iter().rev() {
                    match self.between(subject, part, object, scope)? {
                        Pattern::Union(more) => branches.extend(more),
                        branch => branches.push(branch),
                    }
                }
                Pattern::Union(branches)
            }
            Parsed::NegatedPropertySet(excluded) => {
                self.count_triple_patterns(1)?;
                self.negated(subject, excluded, object, scope)?
            }
            Parsed::ZeroOrOne(_) | Parsed::ZeroOrMore(_) | Parsed::OneOrMore(_) => {
                let mut edges = 0;
                let path = self.repeated(path, Direction::Out, &mut edges)?;
                self.count_triple_patterns(edges)?;
                Pattern::Path(PathPattern {
                    subject,
                    path,
                    object,
                    scope,
                })
            }
        };
        self.depth -= 1;
        Ok(pattern)
    }

    fn negated(
        &mut self,
        subject: Slot,
        excluded: Vec<NamedNode>,
        object: Slot,
        scope: Scope,
    ) -> Result<Pattern, PlanError> {
        let predicate = self.make_up_variable()?;
        let mut others = Vec::with_capacity(excluded.len());
        for constant in self.predicates(excluded)? {
            let same = Expression::Compare(
                Comparison::SameTerm,
                Box::new(Expression::Variable(predicate)),
                Box::new(Expression::Constant(constant)),
            );
            others.push(Expression::Not(Box::new(same)));
        }
        let quad = Quad {
            subject,
            predicate: Slot::Var(predicate),
            object,
            scope,
        };
        Ok(Pattern::Filter {
            inner: Box::new(Pattern::Quads(vec![quad])),
            expression: Expression::And(others),
        })
    }

    fn predicates(&mut self, nodes: Vec<NamedNode>) -> Result<Vec<ConstId>, PlanError> {
        nodes.into_iter().map(|node| self.iri(node)).collect()
    }

    /// A path inside `?`, `*` or `+`, with its inverses pushed down; counts its edges.
    fn repeated(
        &mut self,
        path: Parsed,
        direction: Direction,
        edges: &mut usize,
    ) -> Result<PathExpression, PlanError> {
        self.deepen()?;
        let mut of = |inner: Parsed, direction: Direction| self.repeated(inner, direction, edges);
        let path = match path {
            Parsed::NamedNode(_) | Parsed::NegatedPropertySet(_) => {
                *edges += 1;
                if *edges > MAX_PATH_EDGES {
                    return Err(PlanError::TooLarge {
                        what: "edges of a repeated property path",
                        limit: MAX_PATH_EDGES,
                    });
                }
                match path {
                    Parsed::NamedNode(node) => PathExpression::Edge(self.iri(node)?, direction),
                    Parsed::NegatedPropertySet(nodes) => {
                        PathExpression::Negated(self.predicates(nodes)?, direction)
                    }
                    _ => unreachable!("matched above"),
                }
            }
            Parsed::Reverse(inner) => of(*inner, direction.reverse())?,
            Parsed::Sequence(first, second) => {
                let (first, second) = match direction {
                    Direction::Out => (first, second),
                    Direction::In => (second, first),
                };
                PathExpression::Sequence(Box::new([
                    of(*first, direction)?,
                    of(*second, direction)?,
                ]))
            }
            Parsed::Alternative(first, second) => PathExpression::Alternative(Box::new([
                of(*first, direction)?,
                of(*second, direction)?,
            ])),
            Parsed::ZeroOrOne(inner) => PathExpression::ZeroOrOne(Box::new(of(*inner, direction)?)),
            Parsed::ZeroOrMore(inner) => {
                PathExpression::ZeroOrMore(Box::new(of(*inner, direction)?))
            }
            Parsed::OneOrMore(inner) => PathExpression::OneOrMore(Box::new(of(*inner, direction)?)),
        };
        self.depth -= 1;
        Ok(path)
    }
}

/// True if the path's object (`Out`) or subject (`In`) may be a type.
fn ends_in_type(path: &Parsed, direction: Direction) -> bool {
    match path {
        Parsed::NamedNode(node) => direction == Direction::Out && *node == rdf::TYPE,
        Parsed::Reverse(inner) => ends_in_type(inner, direction.reverse()),
        Parsed::Sequence(first, last) => match direction {
            Direction::Out => ends_in_type(last, direction),
            Direction::In => ends_in_type(first, direction),
        },
        Parsed::Alternative(first, second) => {
            ends_in_type(first, direction) || ends_in_type(second, direction)
        }
        Parsed::NegatedPropertySet(_)
        | Parsed::ZeroOrOne(_)
        | Parsed::ZeroOrMore(_)
        | Parsed::OneOrMore(_) => false,
    }
}
