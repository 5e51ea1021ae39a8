//! Which predicates has each set, and how many edges of each?

use jindou_model::PredicateId;

use super::Edges;
use super::lists::{FixedLists, Lists};
use crate::array::Array;

/// For each set its predicates, sorted, with the number of edges: in two arrays of a region, as most
/// of the time only the first is asked.
#[derive(Clone, Debug)]
pub(super) struct PredicateLists {
    predicates: FixedLists<u64>,
    /// Beside each predicate of each set.
    edges: Array<u64>,
}

impl PredicateLists {
    /// The same as these, in regions of their own.
    pub(super) fn of(lists: &Lists<Edges>) -> Self {
        let edges: Vec<u64> = lists.parts().1.iter().map(|(_, edges)| *edges).collect();
        Self {
            predicates: lists.fixed(|(predicate, _)| u64::from(predicate.0)),
            edges: Array::copy_from(&edges),
        }
    }

    /// The lists of these parts; `None` if they contradict each other.
    pub(super) fn from_parts(
        offsets: Array<u64>,
        predicates: Array<u64>,
        edges: Array<u64>,
    ) -> Option<Self> {
        let same_length = predicates.len() == edges.len();
        let predicates = FixedLists::from_parts(offsets, predicates);
        predicates
            .filter(|_| same_length)
            .map(|predicates| Self { predicates, edges })
    }

    /// Offsets, predicates and edges.
    pub(super) fn parts(&self) -> (&Array<u64>, &Array<u64>, &Array<u64>) {
        let (offsets, predicates) = self.predicates.parts();
        (offsets, predicates, &self.edges)
    }

    /// How many sets.
    pub(super) fn len(&self) -> usize {
        self.predicates.len()
    }

    /// The predicates of a set, in order.
    pub(super) fn predicates(
        &self,
        set: usize,
    ) -> impl ExactSizeIterator<Item = PredicateId> + Clone + '_ {
        let list = self.predicates.get(set).iter();
        list.map(|predicate| PredicateId(*predicate as u32))
    }

    /// The predicates of a set with the number of edges, in order.
    pub(super) fn get(&self, set: usize) -> impl ExactSizeIterator<Item = Edges> + Clone + '_ {
        let edges = &self.edges[self.predicates.range(set)];
        self.predicates(set).zip(edges.iter().copied())
    }

    /// The number of edges of a predicate, if the set has it.
    #[inline]
    pub(super) fn edges(&self, set: usize, predicate: PredicateId) -> Option<u64> {
        let range = self.predicates.range(set);
        let list = &self.predicates.parts().1[range.clone()];
        let place = list.binary_search(&u64::from(predicate.0)).ok()?;
        Some(self.edges[range.start + place])
    }

    /// True if the set has the predicate.
    #[inline]
    pub(super) fn has(&self, set: usize, predicate: PredicateId) -> bool {
        let list = self.predicates.get(set);
        list.binary_search(&u64::from(predicate.0)).is_ok()
    }

    /// True if each set's predicates are sorted and distinct.
    pub(super) fn are_in_order(&self) -> bool {
        self.predicates
            .iter()
            .all(|list| list.is_sorted_by(|a, b| a < b))
    }

    /// For each predicate: the sets that have it, in order.
    pub(super) fn inverted(&self, predicates: usize) -> Lists<u32> {
        self.predicates.inverted(predicates, |id| *id as usize)
    }

    pub(super) fn bytes(&self) -> usize {
        self.predicates.bytes() + self.edges.len() * 8
    }
}
