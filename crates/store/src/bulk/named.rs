//! Quads of named graphs -> where is each vertex at home, one layer of edges, and their graphs.

use jindou_dictionary::Interner;
use jindou_model::{PredicateId, TermId, TermKind};
use rayon::prelude::*;
use rustc_hash::FxHashMap;

use super::sink::{Edges, NamedEdges};
use super::sort::sort_pairs;
use crate::clusters::Lists;
use crate::column::Column;
use crate::graph_index::{Entry, GraphIndex};
use crate::named::{EdgeSets, NamedGraphs};
use crate::runs::{NO_HOME, Runs};
use crate::segment::Segment;

/// Vertices of one characteristic set that share a home have a run of their own if they are so
/// many, or all of the set.
pub(super) const LEAST_RUN: usize = 64;
/// The share of edges beyond which, where they are not just in the home of their subject, each edge
/// says where it is.
const EACH_SHARE: usize = 8;

/// The home of each vertex, as a rank of the graphs by text, and the graphs by rank, all as local
/// ids of the input numbering: the graph that has more than half of the quads of which the vertex is
/// the subject.
pub(super) fn homes(vertices: &Interner, named: &[NamedEdges]) -> (Vec<u32>, Vec<u32>) {
    if named.iter().all(Vec::is_empty) {
        return (Vec::new(), Vec::new());
    }
    // A graph that has more than half of a vertex' quads is left over when each quad cancels one of
    // another graph (Boyer and Moore); whether it has more than half is counted after that.
    let mut candidates = vec![(NO_HOME, 0_u32); vertices.len()];
    let edges = || named.iter().flatten();
    for (subject, _, graph) in edges() {
        let (candidate, lead) = &mut candidates[local(*subject)];
        let graph = local(*graph) as u32;
        match (*candidate == graph, *lead) {
            (true, _) => *lead += 1,
            (false, 0) => (*candidate, *lead) = (graph, 1),
            (false, _) => *lead -= 1,
        }
    }
    let mut counts = vec![(0_u32, 0_u32); vertices.len()];
    for (subject, _, graph) in edges() {
        let (all, of_candidate) = &mut counts[local(*subject)];
        *all += 1;
        *of_candidate += u32::from(candidates[local(*subject)].0 == local(*graph) as u32);
    }
    let mut graphs: Vec<u32> = Vec::new();
    let mut homes: Vec<u32> = Vec::with_capacity(vertices.len());
    for ((candidate, _), (all, of_candidate)) in candidates.into_iter().zip(counts) {
        let is_home = all > 0 && u64::from(of_candidate) * 2 > u64::from(all);
        homes.push(if is_home { candidate } else { NO_HOME });
        if is_home && graphs.last() != Some(&candidate) {
            graphs.push(candidate);
        }
    }
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
    let mut packing = Packing {
        numbers: ids.iter().copied().zip(0..).collect(),
        sets: Lists::default(),
        set_numbers: FxHashMap::default(),
        entries: Vec::new(),
        places: Vec::new(),
        quads: 0,
    };
    let mut segments = [Vec::new(), Vec::new()];
    let mut of_predicate = Vec::new();
    for (number, mut list) in named.into_iter().enumerate() {
        list.par_sort_unstable();
        list.dedup();
        packing.quads += list.len() as u64;
        of_predicate.push(packing.edge_sets(number as u32, &list, runs));
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
    let (entries, places) = packing.index();
    let index = GraphIndex::new(&entries, ids.len(), &places);
    Built {
        segments,
        graphs: NamedGraphs::new(ids, packing.sets, of_predicate, index, packing.quads),
    }
}

struct Packing {
    numbers: FxHashMap<u64, u32>,
    sets: Lists<u32>,
    set_numbers: FxHashMap<Box<[u32]>, u64>,
    /// By predicate, then graph.
    entries: Vec<Entry>,
    /// Graph and place of each listed edge, by predicate, graph and place.
    places: Vec<(u32, u64)>,
    quads: u64,
}

impl Packing {
    fn set(&mut self, graphs: &[u32]) -> u64 {
        if let [only] = graphs {
            return u64::from(*only);
        }
        if let Some(known) = self.set_numbers.get(graphs) {
            return *known;
        }
        let number = (self.numbers.len() + self.sets.len()) as u64;
        self.sets.push(graphs.iter().copied());
        self.set_numbers.insert(graphs.into(), number);
        number
    }

    /// The graphs of one predicate's quads, which are sorted and distinct.
    fn edge_sets(&mut self, predicate: u32, quads: &[(u64, u64, u64)], runs: &Runs) -> EdgeSets {
        let mut sets = Vec::new();
        let mut listed = Vec::new();
        let mut graphs = Vec::new();
        let mut listed_runs: Vec<u32> = Vec::new();
        // Local ids, number and home of the last run.
        let mut last = (0..0, 0, NO_HOME);
        for (place, edge) in quads.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)).enumerate() {
            graphs.clear();
            graphs.extend(edge.iter().map(|(_, _, graph)| self.numbers[graph]));
            let subject = TermId::from_raw(edge[0].0);
            if !last.0.contains(&subject.number()) {
                let run = runs.run_of(subject).expect("subjects are vertices");
                last = (runs.members(run), run as u32, runs.home_of(run));
            }
            sets.push(self.set(&graphs));
            if graphs != [last.2] {
                listed.push(place as u64);
                if listed_runs.last() != Some(&last.1) {
                    listed_runs.push(last.1);
                }
            }
        }
        let is_each = listed.len() > sets.len() / EACH_SHARE;
        self.note(predicate, quads, (!is_each).then_some(&listed));
        match is_each {
            true => EdgeSets::Each(Column::from_values(&sets)),
            false => {
                let of_listed: Vec<u64> = listed.iter().map(|at| sets[*at as usize]).collect();
                EdgeSets::Home {
                    places: Column::from_values(&listed),
                    sets: Column::from_values(&of_listed),
                    runs: listed_runs,
                }
            }
        }
    }

    /// Notes what each graph has of a predicate, and the places that are `listed`, or all.
    fn note(&mut self, predicate: u32, quads: &[(u64, u64, u64)], listed: Option<&Vec<u64>>) {
        let mut of_graph: FxHashMap<u32, (u64, u64)> = FxHashMap::default();
        let begin = self.places.len();
        let mut next = listed.map(|places| places.iter().copied().peekable());
        for (place, edge) in quads.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)).enumerate() {
            let place = place as u64;
            let is_listed = match &mut next {
                None => true,
                Some(next) => next.next_if_eq(&place).is_some(),
            };
            for (_, _, graph) in edge {
                let graph = self.numbers[graph];
                let counts = of_graph.entry(graph).or_default();
                counts.0 += 1;
                counts.1 += u64::from(is_listed);
                if is_listed {
                    self.places.push((graph, place));
                }
            }
        }
        self.places[begin..].par_sort_unstable();
        let entries = of_graph.into_iter();
        self.entries.extend(entries.map(|(graph, counts)| Entry {
            graph,
            predicate,
            edges: counts.0,
            listed: counts.1,
        }));
    }

    /// The entries by graph and predicate, and their places in that order.
    fn index(&mut self) -> (Vec<Entry>, Vec<u64>) {
        let mut entries = std::mem::take(&mut self.entries);
        // The places lie by predicate and graph: where do those of each entry begin?
        entries.sort_unstable_by_key(|entry| (entry.predicate, entry.graph));
        let mut begin = 0;
        let mut begins: FxHashMap<(u32, u32), usize> = FxHashMap::default();
        for entry in &entries {
            begins.insert((entry.graph, entry.predicate), begin);
            begin += entry.listed as usize;
        }
        entries.sort_unstable();
        let mut places = Vec::with_capacity(self.places.len());
        for entry in &entries {
            let begin = begins[&(entry.graph, entry.predicate)];
            let of_entry = &self.places[begin..begin + entry.listed as usize];
            places.extend(of_entry.iter().map(|(_, place)| *place));
        }
        (entries, places)
    }
}
