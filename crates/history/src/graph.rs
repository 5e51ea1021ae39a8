//! Which nodes of a directed graph reach each other, and by which edges?

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

/// A directed graph in compressed rows; each edge has the number under which its maker knows it.
pub(crate) struct Graph {
    /// By node, where its edges begin; one more at the end.
    starts: Vec<u32>,
    /// Target and number of each edge.
    edges: Vec<(u32, u32)>,
}

/// An edge to be: from, to, number.
pub(crate) type Arrow = (u32, u32, u32);

impl Graph {
    /// Costs the nodes and edges.
    pub(crate) fn new(nodes: usize, arrows: &[Arrow]) -> Self {
        let mut starts = vec![0_u32; nodes + 1];
        for (from, ..) in arrows {
            starts[*from as usize + 1] += 1;
        }
        for node in 0..nodes {
            starts[node + 1] += starts[node];
        }
        let mut next = starts.clone();
        let mut edges = vec![(0, 0); arrows.len()];
        for (from, to, number) in arrows {
            let place = &mut next[*from as usize];
            edges[*place as usize] = (*to, *number);
            *place += 1;
        }
        Self { starts, edges }
    }

    fn nodes(&self) -> usize {
        self.starts.len() - 1
    }

    /// The strongly connected component of each node, by Tarjan's algorithm (1972) with a stack of its own,
    /// as histories are longer than threads' stacks are deep. Costs the nodes and edges.
    pub(crate) fn components(&self) -> Vec<u32> {
        let mut search = Tarjan {
            graph: self,
            met: vec![0; self.nodes()],
            lowest: vec![0; self.nodes()],
            component: vec![UNASSIGNED; self.nodes()],
            clock: 0,
            components: 0,
            open: Vec::new(),
        };
        for root in 0..self.nodes() as u32 {
            if search.met[root as usize] == 0 {
                search.visit(root);
            }
        }
        search.component
    }

    /// The numbers of the edges of a shortest path, if there is one. Costs what is reached from `from`.
    pub(crate) fn path(&self, from: u32, to: u32) -> Option<Vec<u32>> {
        let mut reached: FxHashMap<u32, (u32, u32)> = FxHashMap::default();
        let mut open = VecDeque::from([from]);
        while let Some(node) = open.pop_front() {
            if node == to {
                return Some(back(&reached, from, to));
            }
            let range = self.starts[node as usize]..self.starts[node as usize + 1];
            for (next, number) in &self.edges[range.start as usize..range.end as usize] {
                if *next != from && !reached.contains_key(next) {
                    reached.insert(*next, (node, *number));
                    open.push_back(*next);
                }
            }
        }
        None
    }
}

fn back(reached: &FxHashMap<u32, (u32, u32)>, from: u32, to: u32) -> Vec<u32> {
    let mut path = Vec::new();
    let mut node = to;
    while node != from {
        let (before, number) = reached[&node];
        path.push(number);
        node = before;
    }
    path.reverse();
    path
}

const UNASSIGNED: u32 = u32::MAX;

struct Tarjan<'g> {
    graph: &'g Graph,
    /// When each node was first met, from 1; 0 before that.
    met: Vec<u32>,
    /// The earliest node on the stack that is known to be reachable.
    lowest: Vec<u32>,
    component: Vec<u32>,
    clock: u32,
    components: u32,
    /// Met, and not in a component yet.
    open: Vec<u32>,
}

impl Tarjan<'_> {
    fn enter(&mut self, node: u32, calls: &mut Vec<(u32, u32)>) {
        self.clock += 1;
        self.met[node as usize] = self.clock;
        self.lowest[node as usize] = self.clock;
        self.open.push(node);
        calls.push((node, self.graph.starts[node as usize]));
    }

    fn visit(&mut self, root: u32) {
        // Each call is a node and the next edge to follow.
        let mut calls = Vec::new();
        self.enter(root, &mut calls);
        while let Some((node, edge)) = calls.last_mut() {
            let here = *node as usize;
            if *edge < self.graph.starts[here + 1] {
                let (to, _) = self.graph.edges[*edge as usize];
                *edge += 1;
                if self.met[to as usize] == 0 {
                    self.enter(to, &mut calls);
                } else if self.component[to as usize] == UNASSIGNED {
                    self.lowest[here] = self.lowest[here].min(self.met[to as usize]);
                }
                continue;
            }
            calls.pop();
            if let Some((caller, _)) = calls.last() {
                let caller = *caller as usize;
                self.lowest[caller] = self.lowest[caller].min(self.lowest[here]);
            }
            if self.lowest[here] == self.met[here] {
                self.close(here as u32);
            }
        }
    }

    fn close(&mut self, root: u32) {
        while let Some(node) = self.open.pop() {
            self.component[node as usize] = self.components;
            if node == root {
                break;
            }
        }
        self.components += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn reaches(arrows: &[Arrow], nodes: usize) -> Vec<Vec<bool>> {
        let mut reach = vec![vec![false; nodes]; nodes];
        for (node, row) in reach.iter_mut().enumerate() {
            row[node] = true;
        }
        for (from, to, _) in arrows {
            reach[*from as usize][*to as usize] = true;
        }
        for via in 0..nodes {
            for from in 0..nodes {
                for to in 0..nodes {
                    reach[from][to] |= reach[from][via] && reach[via][to];
                }
            }
        }
        reach
    }

    proptest! {
        #[test]
        fn components_and_paths_are_those_of_the_transitive_closure(
            ends in proptest::collection::vec((0..12_u32, 0..12_u32), 0..30),
        ) {
            let arrows: Vec<Arrow> = (0..).zip(ends).map(|(n, (from, to))| (from, to, n)).collect();
            let graph = Graph::new(12, &arrows);
            let component = graph.components();
            let reach = reaches(&arrows, 12);
            for from in 0..12 {
                for to in 0..12 {
                    let both = reach[from][to] && reach[to][from];
                    prop_assert_eq!(component[from] == component[to], both);
                    let path = graph.path(from as u32, to as u32);
                    prop_assert_eq!(path.is_some(), reach[from][to]);
                    let mut at = from as u32;
                    for number in path.unwrap_or_default() {
                        let (start, end, _) = arrows[number as usize];
                        prop_assert_eq!(start, at);
                        at = end;
                    }
                    prop_assert!(!reach[from][to] || at == to as u32);
                }
            }
        }
    }

    #[test]
    fn a_chain_longer_than_a_stack_is_deep_is_one_component_if_closed() {
        let count = 300_000;
        let arrows: Vec<Arrow> = (0..count).map(|n| (n, (n + 1) % count, n)).collect();
        let component = Graph::new(count as usize, &arrows).components();
        assert!(component.iter().all(|c| *c == component[0]));
    }
}
