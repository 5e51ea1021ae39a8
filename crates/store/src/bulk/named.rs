//! Quads of named graphs -> where is each vertex at home, one layer of edges, and their graphs.

use std::sync::Arc;

use jindou_dictionary::Interner;
use jindou_model::{PredicateId, TermId, TermKind};
use rayon::prelude::*;
use rustc_hash::FxHashMap;

use super::sink::{Edges, NamedEdges};
use super::sort::sort_pairs;
use crate::clusters::Lists;
use crate::graph_packing::Packer;
use crate::graph_table::{GraphCoder, GraphTable};
use crate::homes::majorities;
use crate::named::NamedGraphs;
use crate::predicate_graphs::PredicateGraphs;
use crate::runs::{NO_HOME, Runs};
use crate::segment::Segment;

/// Vertices of one characteristic set that share a home have a run of their own if they are so
/// many, or all of the set.
pub(super) const LEAST_RUN: usize = 64;

/// The home of each vertex, as a rank of the graphs by text, and the graphs by rank, all as local
/// ids of the input numbering: the graph that has more than half of the quads of which the vertex is
/// the subject.
pub(super) fn homes(vertices: &Interner, named: &[NamedEdges]) -> (Vec<u32>, Vec<u32>) {
    if named.iter().all(Vec::is_empty) {
        return (Vec::new(), Vec::new());
    }
    let edges = || named.iter().flatten();
    let by_subject = || edges().map(|(s, _, g)| (local(*s), local(*g) as u32));
    let mut homes = majorities(vertices.len(), by_subject);
    let mut graphs: Vec<u32> = homes
        .iter()
        .copied()
        .filter(|home| *home != NO_HOME)
        .collect();
    graphs.sort_unstable();
    graphs.dedup();
    graphs.par_sort_unstable_by(|a, b| vertices.get(*a).cmp(vertices.get(*b)));
    let ranks: FxHashMap<u32, u32> = graphs.iter().copied().zip(0..).collect();
    for home in homes.iter_mut().filter(|home| **home != NO_HOME) {
        *home = ranks[home];
    }
    (homes, graphs)
}

fn local(raw: u64) -> usize {
    debug_assert_eq!(TermId::from_raw(raw).kind(), TermKind::Vertex);
    TermId::from_raw(raw).number() as usize
}

/// What is made of the quads of named graphs.
pub(super) struct Built {
    pub(super) segments: [Vec<Option<Segment>>; 2],
    pub(super) graphs: NamedGraphs,
}

/// Packs renumbered quads, by predicate; `runs` says where vertices are at home, `homes` are the
/// graphs by its numbers, and `ids` all graphs, sorted.
pub(super) fn pack(named: Vec<NamedEdges>, ids: Vec<u64>, runs: &Runs) -> Built {
    let numbers: FxHashMap<u64, u32> = ids.iter().copied().zip(0..).collect();
    let mut coder = GraphCoder::new(GraphTable::new(ids, Lists::default()));
    let mut segments = [Vec::new(), Vec::new()];
    let mut of_predicate = Vec::new();
    for (number, mut list) in named.into_iter().enumerate() {
        let number_of = |graph| numbers[&graph];
        of_predicate.push(Arc::new(graphs_of(&mut list, number_of, &mut coder, runs)));
        let mut pairs: Edges = list.iter().map(|(s, o, _)| (*s, *o)).collect();
        drop(list);
        pairs.dedup();
        // Types are in the clusters.
        if pairs.is_empty() || number == PredicateId::TYPE.index() {
            segments.iter_mut().for_each(|side| side.push(None));
            continue;
        }
        segments[0].push(Some(Segment::from_sorted(&pairs)));
        for pair in &mut pairs {
            *pair = (pair.1, pair.0);
        }
        sort_pairs(&mut pairs);
        segments[1].push(Some(Segment::from_sorted(&pairs)));
    }
    Built {
        segments,
        graphs: NamedGraphs::join(Arc::new(coder.finish()), of_predicate),
    }
}

/// Sorts the quads of one predicate, without repeats, and packs their graphs, of which `number_of` tells the numbers:
/// these are in the order of the graphs.
pub(super) fn graphs_of(
    quads: &mut NamedEdges,
    number_of: impl Fn(u64) -> u32,
    coder: &mut GraphCoder,
    runs: &Runs,
) -> PredicateGraphs {
    quads.par_sort_unstable();
    quads.dedup();
    let edges = || quads.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1));
    let mut packer = Packer::new(coder, runs, edges().count() as u64);
    let mut graphs = Vec::new();
    for edge in edges() {
        graphs.clear();
        graphs.extend(edge.iter().map(|(_, _, graph)| number_of(*graph)));
        packer.edge(TermId::from_raw(edge[0].0), &graphs);
    }
    packer.finish()
}
