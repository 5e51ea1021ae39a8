//! Which vertices have the same types and predicates?
//!
//! Every vertex walks down a trie: one step for each of its types, then for each predicate it has,
//! in one order that is the same for all. Where a vertex ends names its characteristic set
//! exactly; no hashing of sets, no collisions. An edge costs one step for each end.

use std::cmp::Ordering;

use jindou_dictionary::Interner;
use jindou_model::{PredicateId, TermId, TermKind};
use rustc_hash::FxHashMap;

use super::sink::{Edges, NamedEdges};

/// A type, or a predicate and direction.
pub(super) type Symbol = u64;

pub(super) const OUT: Symbol = 1 << 62;
pub(super) const IN: Symbol = 2 << 62;
/// Of a symbol that is of named graphs.
pub(super) const NAMED: Symbol = 1 << 60;
const ROOT: u32 = 0;

/// The trie of all characteristic sets.
pub(super) struct Trie {
    /// Parent and symbol of each node.
    nodes: Vec<(u32, Symbol)>,
    children: FxHashMap<(u32, Symbol), u32>,
}

impl Trie {
    /// That of the empty set alone.
    pub(super) fn new() -> Self {
        Self {
            nodes: vec![(ROOT, u64::MAX)],
            children: FxHashMap::default(),
        }
    }

    /// Where so many vertices begin to walk.
    pub(super) fn places(vertices: usize) -> Vec<u32> {
        vec![ROOT; vertices]
    }

    /// Moves one vertex on by `symbol`; a repeated edge does not move it.
    #[inline]
    pub(super) fn advance(&mut self, place: &mut u32, symbol: Symbol) {
        if self.nodes[*place as usize].1 == symbol {
            return;
        }
        let next = self.nodes.len() as u32;
        let child = *self.children.entry((*place, symbol)).or_insert(next);
        if child == next {
            self.nodes.push((*place, symbol));
        }
        *place = child;
    }

    fn path(&self, node: u32) -> Vec<Symbol> {
        let mut path = Vec::new();
        let mut at = node;
        while at != ROOT {
            path.push(self.nodes[at as usize].1);
            at = self.nodes[at as usize].0;
        }
        path.reverse();
        path
    }

    /// The ways to where vertices are now, sorted, each with the node where it ends.
    pub(super) fn paths(&self, places: &[u32]) -> Vec<(Vec<Symbol>, u32)> {
        let mut used = vec![false; self.nodes.len()];
        for node in places {
            used[*node as usize] = true;
        }
        let nodes = (0..self.nodes.len() as u32).filter(|node| used[*node as usize]);
        let mut found: Vec<(Vec<Symbol>, u32)> =
            nodes.map(|node| (self.path(node), node)).collect();
        found.sort_unstable();
        found
    }

    /// Puts numbers of sets in the place of the nodes where vertices are: each node comes with its number.
    pub(super) fn number(&self, places: &mut [u32], numbers: impl IntoIterator<Item = (u32, u32)>) {
        let mut of_node = vec![0; self.nodes.len()];
        for (node, number) in numbers {
            of_node[node as usize] = number;
        }
        for node in places {
            *node = of_node[*node as usize];
        }
    }
}

/// By layer and set, given by its way down the trie: the types, of which `classes` are those of each layer by rank.
pub(super) fn types_of_paths<'a>(
    paths: impl Iterator<Item = &'a [Symbol]> + Clone,
    classes: [&[u64]; 2],
) -> [Vec<Vec<u64>>; 2] {
    [(0, classes[0]), (NAMED, classes[1])].map(|(layer, classes)| {
        let of_layer = |symbol: &&Symbol| **symbol < OUT && **symbol & NAMED == layer;
        let class = |rank: &Symbol| classes[(rank & !NAMED) as usize];
        let types_of = |path: &[Symbol]| path.iter().filter(of_layer).map(class).collect();
        paths.clone().map(types_of).collect()
    })
}

/// The order of types, given by how many have each, its text, and its id: the most frequent one is first. Inline
/// values have no text: their ids are the same in every load.
pub(super) fn class_order(
    (count, text, id): (usize, Option<&[u8]>, u64),
    other: (usize, Option<&[u8]>, u64),
) -> Ordering {
    let (others, other_text, other_id) = other;
    others
        .cmp(&count)
        .then_with(|| text.cmp(&other_text))
        .then(id.cmp(&other_id))
}

/// The vertices by characteristic set.
pub(super) struct Clustering {
    /// The cluster of each vertex.
    pub(super) cluster_of: Vec<u32>,
    /// Types of each cluster in the default graph and in named graphs, as ids of the input
    /// numbering.
    pub(super) types: [Vec<Vec<u64>>; 2],
}

/// Finds the clusters of `vertices`; `edges` and `named` by predicate, the first of which is
/// `rdf:type`.
/// Clusters are numbered so that those which share their most frequent types are next to each
/// other, and in a way that only the terms decide, not the numbers they have here.
pub(super) fn cluster(
    vertices: &Interner,
    literals: &Interner,
    (edges, named): (&[Edges], &[NamedEdges]),
    predicate_order: &[u32],
) -> Clustering {
    let mut trie = Trie::new();
    let mut place = Trie::places(vertices.len());
    let text = |class: u64| {
        let id = TermId::from_raw(class);
        match id.kind() {
            TermKind::Vertex => Some(vertices.get(id.number() as u32)),
            TermKind::Literal => Some(literals.get(id.number() as u32)),
            _ => None,
        }
    };
    let number = PredicateId::TYPE.index();
    let types = edges[number].iter().copied();
    let of_default = walk_types(&mut trie, &mut place, types, 0, &text);
    let types = named[number].iter().map(|(s, o, _)| (*s, *o));
    let of_named = walk_types(&mut trie, &mut place, types, NAMED, &text);
    for (rank, number) in predicate_order.iter().enumerate().skip(1) {
        let list = edges[*number as usize].iter().copied();
        walk_edges(&mut trie, &mut place, list, rank as Symbol);
        let list = named[*number as usize].iter().map(|(s, o, _)| (*s, *o));
        walk_edges(&mut trie, &mut place, list, NAMED | rank as Symbol);
    }
    number_clusters(&trie, place, [&of_default, &of_named])
}

/// Lets each end of some edges of one predicate take a step.
fn walk_edges(
    trie: &mut Trie,
    place: &mut [u32],
    edges: impl Iterator<Item = (u64, u64)> + Clone,
    symbol: Symbol,
) {
    for (subject, _) in edges.clone() {
        trie.advance(&mut place[local(subject)], OUT | symbol);
    }
    for (_, object) in edges {
        if TermId::from_raw(object).kind() == TermKind::Vertex {
            trie.advance(&mut place[local(object)], IN | symbol);
        }
    }
}

/// Lets each vertex step through its types, the most frequent first; returns the types in that
/// order.
fn walk_types<'a>(
    trie: &mut Trie,
    place: &mut [u32],
    types: impl Iterator<Item = (u64, u64)> + Clone,
    layer: Symbol,
    text: &dyn Fn(u64) -> Option<&'a [u8]>,
) -> Vec<u64> {
    let mut counts: FxHashMap<u64, usize> = FxHashMap::default();
    for (_, class) in types.clone() {
        *counts.entry(class).or_default() += 1;
    }
    let mut classes: Vec<(usize, u64)> = counts.into_iter().map(|(id, n)| (n, id)).collect();
    classes.sort_unstable_by(|a, b| class_order((a.0, text(a.1), a.1), (b.0, text(b.1), b.1)));
    let rank: FxHashMap<u64, usize> = classes
        .iter()
        .enumerate()
        .map(|(rank, (_, class))| (*class, rank))
        .collect();
    let mut by_rank: Vec<Vec<u64>> = classes
        .iter()
        .map(|(n, _)| Vec::with_capacity(*n))
        .collect();
    for (subject, class) in types {
        by_rank[rank[&class]].push(subject);
    }
    for (rank, subjects) in by_rank.into_iter().enumerate() {
        for subject in subjects {
            trie.advance(&mut place[local(subject)], layer | rank as Symbol);
        }
    }
    classes.into_iter().map(|(_, class)| class).collect()
}

pub(super) fn number_clusters(
    trie: &Trie,
    mut place: Vec<u32>,
    classes: [&[u64]; 2],
) -> Clustering {
    let found = trie.paths(&place);
    trie.number(&mut place, found.iter().map(|(_, node)| *node).zip(0..));
    Clustering {
        cluster_of: place,
        types: types_of_paths(found.iter().map(|(path, _)| path.as_slice()), classes),
    }
}

fn local(raw: u64) -> usize {
    TermId::from_raw(raw).number() as usize
}
