//! Which cycles do the edges have, and of which class is the worst of each knot?
//!
//! A knot is a strongly connected component of all edges. Snapshot isolation holds if each cycle has two
//! anti-dependencies that follow each other (Cerone and Gotsman, 2018: ww, wr and the given order, each with at most
//! one rw after it, form no cycle). That is decided in linear time on a graph in which each transaction is two nodes: reached
//! by an anti-dependency, from where no other one may be taken, or by something else.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::graph::{Arrow, Graph};
use crate::{Anomaly, CycleClass, Dependency, Edge};

/// Edges of a knot from which a short cycle of each class is looked for.
const TRIES: usize = 32;

/// Reports one cycle of each knot, of the first class of [`CycleClass`] that it has, and G2 only if asked for.
/// With `real_time` only those that need an edge of real time. Costs the edges, and the size of each knot a number of times.
pub(crate) fn report(
    nodes: usize,
    edges: &[Edge],
    with_g2: bool,
    real_time: bool,
    found: &mut impl FnMut(Anomaly),
) {
    let all = (0..).zip(edges).map(|(number, edge)| arrow(number, edge));
    let knots = Graph::new(nodes, &all.collect::<Vec<_>>()).components();
    let inside = |edge: &&Edge| knots[edge.from.0 as usize] == knots[edge.to.0 as usize];
    let edges: Vec<Edge> = edges.iter().filter(inside).copied().collect();
    if edges.is_empty() {
        return;
    }
    let mut search = Search {
        nodes,
        knots,
        edges,
        real_time,
        done: FxHashSet::default(),
    };
    let write = |edge: &Edge| {
        matches!(
            edge.why,
            Dependency::Write { .. } | Dependency::RealTime { .. }
        )
    };
    let read = |edge: &Edge| matches!(edge.why, Dependency::Read { .. });
    search.closed_by(CycleClass::G0, &write, &write, found);
    search.closed_by(CycleClass::G1c, &|edge| !is_anti(edge), &read, found);
    search.closed_by(CycleClass::GSingle, &|edge| !is_anti(edge), &is_anti, found);
    search.nonadjacent(found);
    if with_g2 {
        search.closed_by(CycleClass::G2, &|_| true, &is_anti, found);
    }
}

fn arrow(number: u32, edge: &Edge) -> Arrow {
    (edge.from.0, edge.to.0, number)
}

fn is_anti(edge: &Edge) -> bool {
    matches!(edge.why, Dependency::AntiDependency { .. })
}

struct Search {
    nodes: usize,
    knots: Vec<u32>,
    /// Those inside of knots.
    edges: Vec<Edge>,
    real_time: bool,
    /// Knots of which a cycle is reported.
    done: FxHashSet<u32>,
}

impl Search {
    fn knot(&self, edge: &Edge) -> u32 {
        self.knots[edge.from.0 as usize]
    }

    fn numbered(&self) -> impl Iterator<Item = (u32, &Edge)> {
        (0..).zip(&self.edges)
    }

    /// Reports cycles of edges of `way` and one more, which is of `last`.
    fn closed_by(
        &mut self,
        class: CycleClass,
        way: &dyn Fn(&Edge) -> bool,
        last: &dyn Fn(&Edge) -> bool,
        found: &mut impl FnMut(Anomaly),
    ) {
        let ways = self.numbered().filter(|(_, edge)| way(edge));
        let ways: Vec<Arrow> = ways.map(|(number, edge)| arrow(number, edge)).collect();
        let graph = Graph::new(self.nodes, &ways);
        // Where `last` is one of the ways, only what is in a component of theirs can close a cycle.
        let components = graph.components();
        let mut shortest = Shortest::default();
        for (number, edge) in self.numbered() {
            let together = components[edge.from.0 as usize] == components[edge.to.0 as usize];
            if !last(edge) || way(edge) && !together || !shortest.may_try(self, self.knot(edge)) {
                continue;
            }
            if let Some(mut path) = graph.path(edge.to.0, edge.from.0) {
                path.push(number);
                shortest.offer(self, self.knot(edge), path);
            }
        }
        self.take(class, shortest, found);
    }

    /// Reports cycles in which no anti-dependency follows another.
    fn nonadjacent(&mut self, found: &mut impl FnMut(Anomaly)) {
        let mut arrows = Vec::new();
        for (number, edge) in self.numbered() {
            let (from, to) = (2 * edge.from.0, 2 * edge.to.0);
            match is_anti(edge) {
                true => arrows.push((from, to + 1, number)),
                false => arrows.extend([(from, to, number), (from + 1, to, number)]),
            }
        }
        let graph = Graph::new(2 * self.nodes, &arrows);
        let components = graph.components();
        let mut shortest = Shortest::default();
        for (number, edge) in self.numbered() {
            let (from, to) = (2 * edge.from.0, 2 * edge.to.0 + 1);
            let together = components[from as usize] == components[to as usize];
            if !is_anti(edge) || !together || !shortest.may_try(self, self.knot(edge)) {
                continue;
            }
            if let Some(mut path) = graph.path(to, from) {
                path.push(number);
                shortest.offer(self, self.knot(edge), path);
            }
        }
        self.take(CycleClass::GNonadjacent, shortest, found);
    }

    fn take(&mut self, class: CycleClass, shortest: Shortest, found: &mut impl FnMut(Anomaly)) {
        let mut paths: Vec<(u32, Vec<u32>)> = shortest.paths.into_iter().collect();
        paths.sort_unstable();
        for (knot, path) in paths {
            self.done.insert(knot);
            let edges: Vec<Edge> = path.iter().map(|n| self.edges[*n as usize]).collect();
            debug_assert!(edges.windows(2).all(|pair| pair[0].to == pair[1].from));
            found(Anomaly::Cycle {
                class,
                real_time: self.real_time,
                edges,
            });
        }
    }
}

/// The shortest cycle of each knot.
#[derive(Default)]
struct Shortest {
    tries: FxHashMap<u32, usize>,
    paths: FxHashMap<u32, Vec<u32>>,
}

impl Shortest {
    fn may_try(&mut self, search: &Search, knot: u32) -> bool {
        let tries = self.tries.entry(knot).or_default();
        *tries += 1;
        *tries <= TRIES && !search.done.contains(&knot)
    }

    fn offer(&mut self, search: &Search, knot: u32, path: Vec<u32>) {
        let is_real =
            |n: &u32| matches!(search.edges[*n as usize].why, Dependency::RealTime { .. });
        if search.real_time && !path.iter().any(is_real) {
            return;
        }
        let shortest = self.paths.entry(knot).or_insert_with(|| path.clone());
        if path.len() < shortest.len() {
            *shortest = path;
        }
    }
}
