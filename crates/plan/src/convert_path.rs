//! Which property paths are joins and unions of quad patterns, and what is left of the others?
//!
//! A sequence is a join over a variable of its own, an inverse swaps the ends, an alternative is
//! a union, and a negated property set is a quad pattern whose predicate is filtered: the
//! specification defines them so, duplicates included (SPARQL 1.1, sections 9.3 and 18.2.2.4).
//! Only `?`, `*` and `+`, which are sets of pairs, stay paths.

use jindou_model::Direction;
use jindou_syntax::tree::{Iri, Path, Term};
use rustc_hash::FxHashSet;

use crate::algebra::{PathPattern, Pattern, Quad};
use crate::convert::{Converter, Scoped, is_type};
use crate::convert_group::Parts;
use crate::error::PlanError;
use crate::expression::{Comparison, Expression};
use crate::physical::{ConstId, PathExpression, Scope, Slot};

/// Edges inside `?`, `*` and `+` above which a query is refused: what may follow what takes the
/// square of it.
const MAX_PATH_EDGES: usize = 256;

/// The ends of a path, and the graph it lies in.
#[derive(Clone, Copy)]
struct Ends {
    subject: Slot,
    object: Slot,
    scope: Scope,
}

impl<'t> Converter<'t> {
    /// Converts a property path between two ends to patterns that are joined with `parts`.
    ///
    /// # Errors
    /// [`PlanError::TooLarge`].
    pub(crate) fn path(
        &mut self,
        subject: &Term<'t>,
        path: &Path<'t>,
        object: &Term<'t>,
        scope: Scope,
        parts: &mut Parts,
    ) -> Result<(), PlanError> {
        // A type decides the plan, so it is a part of it.
        let ends = Ends {
            subject: self.slot(subject, ends_in_type(path, Direction::In))?,
            object: self.slot(object, ends_in_type(path, Direction::Out))?,
            scope,
        };
        self.between(ends, path, parts)
    }

    fn between(&mut self, ends: Ends, path: &Path<'t>, parts: &mut Parts) -> Result<(), PlanError> {
        self.patience.work(1)?;
        match path {
            Path::Iri(predicate) => {
                self.count_triple_patterns(1)?;
                let predicate = Slot::Const(self.iri(predicate)?);
                parts.push_quad(ends.quad(predicate));
            }
            Path::Inverse(inner) => self.between(ends.swapped(), inner, parts)?,
            Path::Sequence(paths) => {
                let mut rest = ends;
                for (number, path) in paths.iter().enumerate() {
                    let object = match number + 1 == paths.len() {
                        true => ends.object,
                        false => Slot::Var(self.make_up_variable()?),
                    };
                    self.between(Ends { object, ..rest }, path, parts)?;
                    rest.subject = object;
                }
            }
            Path::Alternative(paths) => {
                let mut branches = Branches::default();
                self.branches(ends, paths, &mut branches)?;
                parts.push(branches.union()?);
            }
            Path::Negated { forward, inverse } => {
                let mut branches = Branches::default();
                if !forward.is_empty() || inverse.is_empty() {
                    branches.push(self.negated(ends, forward)?);
                }
                if !inverse.is_empty() {
                    branches.push(self.negated(ends.swapped(), inverse)?);
                }
                parts.push(branches.union()?);
            }
            Path::ZeroOrOne(_) | Path::ZeroOrMore(_) | Path::OneOrMore(_) => {
                let mut edges = 0;
                let path = self.repeated(path, Direction::Out, &mut edges)?;
                self.count_triple_patterns(edges)?;
                let path = Pattern::Path(PathPattern {
                    subject: ends.subject,
                    path,
                    object: ends.object,
                    scope: ends.scope,
                });
                parts.push(Scoped::leaf(path, true));
            }
        }
        Ok(())
    }

    fn branches(
        &mut self,
        ends: Ends,
        paths: &[Path<'t>],
        branches: &mut Branches,
    ) -> Result<(), PlanError> {
        for path in paths {
            match path {
                // An alternative of alternatives is one.
                Path::Alternative(paths) => self.branches(ends, paths, branches)?,
                path => {
                    let mut parts = Parts::default();
                    self.between(ends, path, &mut parts)?;
                    branches.push(parts.joined()?);
                }
            }
        }
        Ok(())
    }

    fn negated(&mut self, ends: Ends, excluded: &[Iri<'t>]) -> Result<Scoped, PlanError> {
        self.count_triple_patterns(1)?;
        let predicate = self.make_up_variable()?;
        let others = self.predicates(excluded)?.into_iter().map(|constant| {
            let same = Expression::Compare(
                Comparison::SameTerm,
                Box::new(Expression::Variable(predicate)),
                Box::new(Expression::Constant(constant)),
            );
            Expression::Not(Box::new(same))
        });
        let pattern = Pattern::Filter {
            expression: Expression::And(others.collect()),
            inner: Box::new(Pattern::Quads(vec![ends.quad(Slot::Var(predicate))])),
        };
        Scoped::above(1, pattern, true)
    }

    /// The members of a set, each once.
    fn predicates(&mut self, iris: &[Iri<'t>]) -> Result<Vec<ConstId>, PlanError> {
        let mut seen = FxHashSet::default();
        let mut predicates = Vec::new();
        for iri in iris {
            let predicate = self.iri(iri)?;
            if seen.insert(predicate) {
                predicates.push(predicate);
            }
        }
        Ok(predicates)
    }

    /// A path inside `?`, `*` or `+`, with its inverses pushed down; counts its edges.
    fn repeated(
        &mut self,
        path: &Path<'t>,
        direction: Direction,
        edges: &mut usize,
    ) -> Result<PathExpression, PlanError> {
        let mut of = |inner: &Path<'t>| {
            let inner = self.repeated(inner, direction, edges)?;
            Ok::<_, PlanError>(Box::new(inner))
        };
        Ok(match path {
            Path::Iri(iri) => {
                count_edge(edges)?;
                PathExpression::Edge(self.iri(iri)?, direction)
            }
            Path::Negated { forward, inverse } => {
                let mut sets = Vec::new();
                if !forward.is_empty() || inverse.is_empty() {
                    sets.push((forward, direction));
                }
                if !inverse.is_empty() {
                    sets.push((inverse, direction.reverse()));
                }
                let mut negated = Vec::new();
                for (excluded, direction) in sets {
                    count_edge(edges)?;
                    negated.push(PathExpression::Negated(
                        self.predicates(excluded)?,
                        direction,
                    ));
                }
                folded(negated, PathExpression::Alternative)
            }
            Path::Inverse(inner) => self.repeated(inner, direction.reverse(), edges)?,
            Path::Sequence(paths) => {
                let mut parts = paths
                    .iter()
                    .map(|path| self.repeated(path, direction, edges))
                    .collect::<Result<Vec<_>, _>>()?;
                if direction == Direction::In {
                    parts.reverse();
                }
                folded(parts, PathExpression::Sequence)
            }
            Path::Alternative(paths) => {
                let parts = paths
                    .iter()
                    .map(|path| self.repeated(path, direction, edges))
                    .collect::<Result<_, _>>()?;
                folded(parts, PathExpression::Alternative)
            }
            Path::ZeroOrOne(inner) => PathExpression::ZeroOrOne(of(inner)?),
            Path::ZeroOrMore(inner) => PathExpression::ZeroOrMore(of(inner)?),
            Path::OneOrMore(inner) => PathExpression::OneOrMore(of(inner)?),
        })
    }
}

impl Ends {
    fn quad(self, predicate: Slot) -> Quad {
        Quad {
            subject: self.subject,
            predicate,
            object: self.object,
            scope: self.scope,
        }
    }

    fn swapped(self) -> Self {
        Self {
            subject: self.object,
            object: self.subject,
            scope: self.scope,
        }
    }
}

/// The branches of a union.
#[derive(Default)]
struct Branches {
    patterns: Vec<Pattern>,
    height: usize,
}

impl Branches {
    fn push(&mut self, branch: Scoped) {
        self.height = self.height.max(branch.height);
        match branch.pattern {
            Pattern::Union(more) => self.patterns.extend(more),
            branch => self.patterns.push(branch),
        }
    }

    fn union(mut self) -> Result<Scoped, PlanError> {
        match self.patterns.len() {
            1 => Ok(Scoped {
                pattern: self.patterns.remove(0),
                in_graph: true,
                height: self.height,
            }),
            _ => Scoped::above(self.height, Pattern::Union(self.patterns), true),
        }
    }
}

fn count_edge(edges: &mut usize) -> Result<(), PlanError> {
    *edges += 1;
    match *edges > MAX_PATH_EDGES {
        true => Err(PlanError::TooLarge {
            what: "edges of a repeated property path",
            limit: MAX_PATH_EDGES,
        }),
        false => Ok(()),
    }
}

/// Parts of a path, of which there is one at least, as pairs of pairs.
fn folded(
    parts: Vec<PathExpression>,
    pair: impl Fn(Box<[PathExpression; 2]>) -> PathExpression,
) -> PathExpression {
    let joined = parts
        .into_iter()
        .reduce(|first, second| pair(Box::new([first, second])));
    joined.expect("a path has parts")
}

/// True if the path's object (`Out`) or subject (`In`) may be a type.
fn ends_in_type(path: &Path<'_>, direction: Direction) -> bool {
    match path {
        Path::Iri(iri) => direction == Direction::Out && is_type(iri),
        Path::Inverse(inner) => ends_in_type(inner, direction.reverse()),
        Path::Sequence(paths) => {
            let last = match direction {
                Direction::Out => paths.last(),
                Direction::In => paths.first(),
            };
            last.is_some_and(|path| ends_in_type(path, direction))
        }
        Path::Alternative(paths) => paths.iter().any(|path| ends_in_type(path, direction)),
        Path::Negated { .. } | Path::ZeroOrOne(_) | Path::ZeroOrMore(_) | Path::OneOrMore(_) => {
            false
        }
    }
}
