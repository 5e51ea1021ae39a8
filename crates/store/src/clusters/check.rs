//! Does the table of sets agree with itself and with the edges?

use jindou_model::{Direction, PredicateId, TermId, TermKind};
use rustc_hash::FxHashMap;

use super::{Clusters, FixedLists, PredicateLists};
use crate::segment::Segment;

impl Clusters {
    /// Has every one of so many vertices a set, unless the layer `is_empty`, has each set a
    /// vertex, are adjacent stretches of different sets, and is each type `known`?
    pub(crate) fn check(
        &self,
        vertices: u64,
        is_empty: bool,
        known: &dyn Fn(TermId) -> bool,
    ) -> Result<(), &'static str> {
        let (starts, set_of) = self.stretches.parts();
        let covered = match (starts.first(), starts.last()) {
            (Some(first), Some(last)) => *first == 0 && *last == vertices,
            _ => vertices == 0 || is_empty,
        };
        if !covered {
            return Err("the clusters do not hold all vertices");
        }
        let differ = set_of.windows(2).all(|pair| pair[0] != pair[1]);
        if !differ || self.sizes.contains(&0) {
            return Err("the stretches of the clusters are broken");
        }
        let all_known = |types: &[u64]| types.iter().all(|raw| known(TermId::from_raw(*raw)));
        match traits_in_order(&self.types, &self.has) && self.types.iter().all(all_known) {
            true => Ok(()),
            false => Err("the types or predicates of a cluster are out of order"),
        }
    }

    /// Edges and subjects of a predicate other than `rdf:type`, as all sets together say.
    pub(crate) fn counts_by_subject(&self, predicate: PredicateId) -> (u64, u64) {
        let out = Direction::Out as usize;
        let sets = &self.with_predicate[out].sets;
        let listed: &[u32] = match predicate.index() < sets.len() {
            true => sets.get(predicate.index()),
            false => &[],
        };
        listed.iter().fold((0, 0), |(edges, keys), set| {
            let set = *set as usize;
            let of_set = self.has[out].edges(set, predicate).unwrap_or(0);
            (edges + of_set, keys + self.sizes[set])
        })
    }

    /// Does the table say of a predicate what its edges say?
    pub(crate) fn check_predicate(
        &self,
        predicate: PredicateId,
        direction: Direction,
        segment: Option<&Segment>,
    ) -> Result<(), &'static str> {
        // By set: vertices with the predicate, and edges.
        let mut found: FxHashMap<usize, (u64, u64)> = FxHashMap::default();
        let mut lost = false;
        if let Some(segment) = segment {
            segment.domain().for_each(&mut |key| {
                if key.kind() == TermKind::Vertex {
                    match self.set_of_vertex(key) {
                        Some(set) => {
                            let counts = found.entry(set).or_default();
                            counts.0 += 1;
                            counts.1 += segment.edge_range(key).len() as u64;
                        }
                        None => lost = true,
                    }
                }
            });
        }
        let sets = &self.with_predicate[direction as usize].sets;
        let listed: &[u32] = match predicate.index() < sets.len() {
            true => sets.get(predicate.index()),
            false => &[],
        };
        let agrees = |set: &u32| {
            let set = *set as usize;
            let edges = self.has[direction as usize].edges(set, predicate);
            found.get(&set).copied() == edges.map(|edges| (self.sizes[set], edges))
        };
        if lost || listed.len() != found.len() || !listed.iter().all(agrees) {
            return Err("the table of clusters says otherwise than its edges");
        }
        Ok(())
    }
}

/// Are the types and the predicates of each set sorted and distinct?
pub(super) fn traits_in_order(types: &FixedLists<u64>, has: &[PredicateLists; 2]) -> bool {
    types.iter().all(|list| list.is_sorted_by(|a, b| a < b))
        && has.iter().all(PredicateLists::are_in_order)
}
