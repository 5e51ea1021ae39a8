//! How many terms does a property path lead to, and how many edges are looked at for that?

use jindou_model::Direction;

use crate::algebra::PathPattern;
use crate::facts::{Source, count};
use crate::physical::{PathExpression, Scope, Slot};
use crate::varset::VarSet;

/// Repetitions behind the first that are counted: how deep data is, nobody knows.
const REPETITIONS: i32 = 3;
/// Work of beginning a search, in rows handled.
const BEGIN: f64 = 20.0;

/// What one row is expected to meet.
pub(crate) struct Reach {
    /// Rows that it becomes.
    pub(crate) found: f64,
    /// Work, in rows handled.
    pub(crate) visited: f64,
}

/// Neighbours by a path: of a vertex that has the path's first edge, and of any vertex.
#[derive(Clone, Copy)]
struct Spread {
    first: f64,
    any: f64,
}

impl Reach {
    /// What a path means for a row that has bound `bound`; `graphs` are the graphs of the
    /// dataset.
    ///
    /// From one end, the first edge is as the predicate's edges for a key; each one behind it
    /// as its edges for any vertex, since those reached may have none; a repetition is the sum
    /// of the first few. Nothing leads to more vertices than there are. Two known ends are
    /// searched from the cheaper one; two unknown ends are a search from each vertex.
    pub(crate) fn of(path: &PathPattern, source: &Source<'_>, graphs: f64, bound: &VarSet) -> Self {
        let is_known = |slot: Slot| match slot {
            Slot::Const(_) => true,
            Slot::Var(var) => bound.contains(var),
        };
        let of_default = path.scope == Scope::Default && source.dataset.is_none();
        let vertices = if of_default {
            count(source.statistics.vertices())
        } else {
            count(source.statistics.named_quads()) * source.statistics.graph_share()
        }
        .max(1.0);
        let scope = path.scope;
        let from = |direction: Direction| {
            let spread = match direction {
                Direction::Out => spread(&path.path, source, scope, vertices),
                Direction::In => spread(&path.path.reversed(), source, scope, vertices),
            };
            spread.first.min(vertices)
        };
        let (found, visited) = match (is_known(path.subject), is_known(path.object)) {
            (true, true) => {
                let visited = from(Direction::Out).min(from(Direction::In));
                ((visited / vertices).min(1.0), visited)
            }
            (true, false) => (from(Direction::Out), from(Direction::Out)),
            (false, true) => (from(Direction::In), from(Direction::In)),
            (false, false) => {
                let pairs = vertices * from(Direction::Out);
                let is_loop = path.subject == path.object;
                (
                    if is_loop { vertices } else { pairs },
                    pairs + vertices * BEGIN,
                )
            }
        };
        let of_graphs = match path.scope {
            Scope::Graph(graph) if !is_known(graph) => graphs,
            _ => 1.0,
        };
        Self {
            found: found * of_graphs,
            visited: (visited + BEGIN) * of_graphs,
        }
    }
}

fn spread(path: &PathExpression, source: &Source<'_>, scope: Scope, vertices: f64) -> Spread {
    let of = |inner: &PathExpression| spread(inner, source, scope, vertices);
    let repeated = |inner: &PathExpression, nothing: f64| {
        let inner = of(inner);
        let times: f64 = (0..=REPETITIONS).map(|times| inner.any.powi(times)).sum();
        Spread {
            first: (inner.first * times + nothing).min(vertices),
            any: (inner.any * times + nothing).min(vertices),
        }
    };
    match path {
        PathExpression::Edge(predicate, direction) => {
            let segment = source.segment(scope, *predicate, *direction);
            let edges = count(segment.edges);
            Spread {
                first: edges / count(segment.keys).max(1.0),
                any: edges / vertices,
            }
        }
        PathExpression::Negated(..) => {
            let edges = count(source.statistics.triples(source.graph(scope))) / vertices;
            Spread {
                first: edges,
                any: edges,
            }
        }
        PathExpression::Sequence(parts) => {
            let (first, second) = (of(&parts[0]), of(&parts[1]));
            Spread {
                first: first.first * second.any,
                any: first.any * second.any,
            }
        }
        PathExpression::Alternative(parts) => {
            let (first, second) = (of(&parts[0]), of(&parts[1]));
            Spread {
                first: first.first + second.first,
                any: first.any + second.any,
            }
        }
        PathExpression::ZeroOrOne(inner) => {
            let inner = of(inner);
            Spread {
                first: inner.first + 1.0,
                any: inner.any + 1.0,
            }
        }
        PathExpression::ZeroOrMore(inner) => repeated(inner, 1.0),
        PathExpression::OneOrMore(inner) => repeated(inner, 0.0),
    }
}
