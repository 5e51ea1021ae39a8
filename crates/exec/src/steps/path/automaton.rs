//! Which edges may follow each other on a path?
//!
//! The path as a finite automaton without empty moves (Glushkov's construction). A state is what
//! may come next, so edges after which the same may follow lead to the same state: `p*` and `p+`
//! have one state, and a search that visits each (state, vertex) once looks at each edge once.

use std::collections::{BTreeMap, BTreeSet};

use jindou_model::{Direction, PredicateId};
use jindou_plan::physical::PathExpression;

use crate::context::Context;

/// Edges that are followed alike.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Edge {
    /// Those of one predicate.
    Of(PredicateId, Direction),
    /// Those of any predicate but these, sorted.
    Except(Vec<PredicateId>, Direction),
}

/// Where an edge leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Target {
    /// The state then.
    pub(super) state: usize,
    /// True if the path may end here.
    pub(super) accepts: bool,
}

/// An edge out of a state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Move {
    pub(super) edge: Edge,
    /// One for each state.
    pub(super) targets: Vec<Target>,
}

/// The automaton of a path in one direction.
#[derive(Clone, Debug)]
pub(super) struct Automaton {
    /// Moves by state; a search begins in state 0.
    pub(super) states: Vec<Vec<Move>>,
    /// A term of the graph is connected with itself.
    pub(super) is_nullable: bool,
    /// A constant is connected with itself, wherever it is.
    pub(super) matches_absent: bool,
}

/// A part of a path: at which of its edges may it begin and end?
struct Fragment {
    is_nullable: bool,
    first: BTreeSet<usize>,
    last: BTreeSet<usize>,
}

/// The edges of a path by position, and what may follow each.
#[derive(Default)]
struct Positions {
    edges: Vec<Edge>,
    follow: Vec<BTreeSet<usize>>,
}

impl Automaton {
    pub(super) fn new(path: &PathExpression, cx: &Context) -> Self {
        let mut positions = Positions::default();
        let whole = positions.add(path, cx);
        let mut sets = vec![whole.first];
        let mut numbers: BTreeMap<BTreeSet<usize>, usize> = [(sets[0].clone(), 0)].into();
        let mut states = Vec::new();
        while states.len() < sets.len() {
            let mut moves: BTreeMap<&Edge, BTreeMap<usize, bool>> = BTreeMap::new();
            for position in sets[states.len()].clone() {
                let follow = &positions.follow[position];
                let state = *numbers.entry(follow.clone()).or_insert_with(|| {
                    sets.push(follow.clone());
                    sets.len() - 1
                });
                *moves
                    .entry(&positions.edges[position])
                    .or_default()
                    .entry(state)
                    .or_default() |= whole.last.contains(&position);
            }
            let moves = moves.into_iter().map(|(edge, targets)| Move {
                edge: edge.clone(),
                targets: targets
                    .into_iter()
                    .map(|(state, accepts)| Target { state, accepts })
                    .collect(),
            });
            states.push(moves.collect());
        }
        Self {
            states,
            is_nullable: path.is_nullable(),
            matches_absent: path.matches_absent(),
        }
    }
}

impl Positions {
    fn add(&mut self, path: &PathExpression, cx: &Context) -> Fragment {
        match path {
            PathExpression::Edge(predicate, direction) => {
                let edge = super::super::predicate(cx, *predicate)
                    .map(|predicate| Edge::Of(predicate, *direction));
                self.add_edge(edge)
            }
            PathExpression::Negated(predicates, direction) => {
                let mut excluded: Vec<PredicateId> = predicates
                    .iter()
                    .filter_map(|id| super::super::predicate(cx, *id))
                    .collect();
                excluded.sort_unstable();
                self.add_edge(Some(Edge::Except(excluded, *direction)))
            }
            PathExpression::Sequence(parts) => {
                let first = self.add(&parts[0], cx);
                let second = self.add(&parts[1], cx);
                self.connect(&first.last, &second.first);
                Fragment {
                    is_nullable: first.is_nullable && second.is_nullable,
                    first: match first.is_nullable {
                        true => &first.first | &second.first,
                        false => first.first,
                    },
                    last: match second.is_nullable {
                        true => &first.last | &second.last,
                        false => second.last,
                    },
                }
            }
            PathExpression::Alternative(parts) => {
                let first = self.add(&parts[0], cx);
                let second = self.add(&parts[1], cx);
                Fragment {
                    is_nullable: first.is_nullable || second.is_nullable,
                    first: &first.first | &second.first,
                    last: &first.last | &second.last,
                }
            }
            PathExpression::ZeroOrOne(inner) => Fragment {
                is_nullable: true,
                ..self.add(inner, cx)
            },
            PathExpression::ZeroOrMore(inner) => Fragment {
                is_nullable: true,
                ..self.repeated(inner, cx)
            },
            PathExpression::OneOrMore(inner) => self.repeated(inner, cx),
        }
    }

    /// An edge that the graph does not have at all is no position.
    fn add_edge(&mut self, edge: Option<Edge>) -> Fragment {
        let position: BTreeSet<usize> = edge
            .map(|edge| {
                self.edges.push(edge);
                self.follow.push(BTreeSet::new());
                self.edges.len() - 1
            })
            .into_iter()
            .collect();
        Fragment {
            is_nullable: false,
            first: position.clone(),
            last: position,
        }
    }

    fn repeated(&mut self, inner: &PathExpression, cx: &Context) -> Fragment {
        let fragment = self.add(inner, cx);
        self.connect(&fragment.last, &fragment.first);
        fragment
    }

    fn connect(&mut self, from: &BTreeSet<usize>, to: &BTreeSet<usize>) {
        for position in from {
            self.follow[*position].extend(to);
        }
    }
}
