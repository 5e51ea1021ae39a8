//! Counts of edges by set: how many lead from the vertices of which set to those of which?

use jindou_model::{Direction, PredicateId, TermKind};
use rayon::prelude::*;
use rustc_hash::FxHashMap;

use super::{Clusters, Edges, Lists, Stretches};
use crate::segment::Segment;

/// Beyond so many pairs of sets a predicate's pairs are not kept.
pub(crate) const MOST_PAIRS: usize = 2048;

/// Edges of one predicate from the vertices of one set to those of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PairEdges {
    pub(crate) subjects: u32,
    pub(crate) objects: u32,
    pub(crate) edges: u64,
}

impl PairEdges {
    /// As the table has it.
    pub(super) fn words(&self) -> [u64; 3] {
        [self.subjects.into(), self.objects.into(), self.edges]
    }

    pub(super) fn of_words([subjects, objects, edges]: &[u64; 3]) -> Self {
        Self {
            subjects: *subjects as u32,
            objects: *objects as u32,
            edges: *edges,
        }
    }
}

/// What edges say of the sets at their ends.
pub(crate) struct SetCounts {
    /// By direction and set: edges by predicate, sorted.
    pub(crate) edges: [Vec<Vec<Edges>>; 2],
    /// By predicate: edges by pair of sets, sorted; `None` where there are too many pairs.
    pub(crate) pairs: Vec<Option<Vec<PairEdges>>>,
}

impl SetCounts {
    /// Those of no edges, of so many sets.
    pub(crate) fn none(sets: usize) -> Self {
        Self {
            edges: [vec![Vec::new(); sets], vec![Vec::new(); sets]],
            pairs: Vec::new(),
        }
    }

    /// Adds the segments of the next predicate.
    ///
    /// Costs a scan of both.
    pub(crate) fn add(
        &mut self,
        predicate: PredicateId,
        [out, incoming]: &[Option<Segment>; 2],
        stretches: &Stretches,
    ) {
        debug_assert_eq!(self.pairs.len(), predicate.index(), "one after the other");
        let [out_edges, in_edges] = &mut self.edges;
        let (pairs, ()) = rayon::join(
            || match out {
                Some(out) => count_pairs(out, stretches),
                None => Some(Vec::new()),
            },
            || {
                for (segment, edges) in [(out, out_edges), (incoming, in_edges)] {
                    if let Some(segment) = segment {
                        count_edges(segment, predicate, stretches, edges);
                    }
                }
            },
        );
        self.pairs.push(pairs);
    }

    /// Those of segments by direction and predicate: of edges by the sets of their keys, of pairs those from subjects.
    ///
    /// Costs a scan of all segments.
    pub(crate) fn of_segments(
        stretches: &Stretches,
        sets: usize,
        segments: &[Vec<Option<Segment>>; 2],
    ) -> Self {
        let edges = [Direction::Out, Direction::In].map(|direction| {
            let mut edges: Vec<Vec<Edges>> = vec![Vec::new(); sets];
            for (number, segment) in segments[direction as usize].iter().enumerate() {
                if let Some(segment) = segment {
                    count_edges(segment, PredicateId(number as u32), stretches, &mut edges);
                }
            }
            edges
        });
        let segments: Vec<Option<&Segment>> = segments[0].iter().map(Option::as_ref).collect();
        Self {
            edges,
            pairs: count_pairs_of_each(&segments, stretches),
        }
    }
}

impl Clusters {
    /// The table of a bulk load: the types of each set as found, predicates and edge counts from
    /// the segments by direction and predicate.
    ///
    /// Costs a scan of all segments.
    pub(crate) fn of_segments(
        stretches: Stretches,
        types: Lists<u64>,
        segments: &[Vec<Option<Segment>>; 2],
    ) -> Self {
        let stretches = stretches.indexed();
        let counts = SetCounts::of_segments(&stretches, types.len(), segments);
        Self::of_counts(stretches, types, counts)
    }

    /// The table of a bulk load: the types of each set as found, predicates and edge counts as counted over all edges.
    pub(crate) fn of_counts(stretches: Stretches, types: Lists<u64>, counts: SetCounts) -> Self {
        let has = counts.edges.map(|edges| {
            let mut lists = Lists::default();
            edges.into_iter().for_each(|list| lists.push(list));
            lists
        });
        let mut pairs = Lists::default();
        for list in counts.pairs {
            pairs.push(list.unwrap_or_default());
        }
        Self::new(stretches, types, has, pairs)
    }
}

/// Adds the edges of one segment to the sets of their keys.
fn count_edges(
    segment: &Segment,
    predicate: PredicateId,
    stretches: &Stretches,
    edges: &mut [Vec<Edges>],
) {
    let mut near = (0..0, 0);
    segment.domain().for_each(&mut |key| {
        if key.kind() != TermKind::Vertex {
            return;
        }
        let set = set_near(stretches, key.number(), &mut near);
        let degree = segment.neighbours(key).len() as u64;
        match edges[set as usize].last_mut() {
            Some((last, sum)) if *last == predicate => *sum += degree,
            _ => edges[set as usize].push((predicate, degree)),
        }
    });
}

/// The pairs of each of some predicates by their segments from subjects, on all cores; `None` where there are too many.
pub(super) fn count_pairs_of_each(
    segments: &[Option<&Segment>],
    stretches: &Stretches,
) -> Vec<Option<Vec<PairEdges>>> {
    let pairs = |segment: &Option<&Segment>| match segment {
        Some(segment) => count_pairs(segment, stretches),
        None => Some(Vec::new()),
    };
    segments.par_iter().map(pairs).collect()
}

/// The edges of one predicate by sets of both ends, sorted; `None` where there are too many pairs, and none
/// where no object is a vertex. Once there are too many, no more edges are looked at.
fn count_pairs(segment: &Segment, stretches: &Stretches) -> Option<Vec<PairEdges>> {
    let mut counts: FxHashMap<(u32, u32), u64> = FxHashMap::default();
    let (mut near_subject, mut near_object) = ((0..0, 0), (0..0, 0));
    segment.domain().for_each(&mut |subject| {
        if counts.len() > MOST_PAIRS {
            return;
        }
        let from = set_near(stretches, subject.number(), &mut near_subject);
        let list = segment.neighbours(subject);
        for index in 0..list.len() {
            let object = list.get(index);
            if object.kind() != TermKind::Vertex || counts.len() > MOST_PAIRS {
                continue;
            }
            let to = set_near(stretches, object.number(), &mut near_object);
            *counts.entry((from, to)).or_default() += 1;
        }
    });
    (counts.len() <= MOST_PAIRS).then(|| in_order(counts))
}

/// Pairs sorted by subjects, then objects.
pub(crate) fn in_order(counts: FxHashMap<(u32, u32), u64>) -> Vec<PairEdges> {
    let pair = |((subjects, objects), edges)| PairEdges {
        subjects,
        objects,
        edges,
    };
    let mut pairs: Vec<PairEdges> = counts.into_iter().map(pair).collect();
    pairs.sort_unstable_by_key(|pair| (pair.subjects, pair.objects));
    pairs
}

/// The set of a vertex of the table; `near` is the stretch of the vertex before, as neighbours and
/// keys in order mostly lie in one.
fn set_near(stretches: &Stretches, number: u64, near: &mut (std::ops::Range<u64>, u32)) -> u32 {
    if !near.0.contains(&number) {
        let stretch = stretches.at(number).expect("every vertex has a set");
        *near = (stretches.members(stretch), stretches.set(stretch) as u32);
    }
    near.1
}
