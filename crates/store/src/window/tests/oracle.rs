//! The triples of a window, found by reading a list of tuples.

use std::collections::{BTreeMap, BTreeSet};

use jindou_model::{Direction, IdRanges, Lists, Membership, Pattern, PredicateId, TermId};

use super::super::{Bounds, StreamTuple};

pub(super) type Triple = (TermId, PredicateId, TermId);

/// All that a stream brought, and the time before which it is forgotten.
#[derive(Clone)]
pub(super) struct Stream {
    pub(super) tuples: Vec<StreamTuple>,
    pub(super) kept_from_ms: i64,
}

impl Default for Stream {
    fn default() -> Self {
        Self {
            tuples: Vec::new(),
            kept_from_ms: i64::MIN,
        }
    }
}

pub(super) struct Oracle {
    pub(super) triples: BTreeSet<Triple>,
    /// The latest of each.
    pub(super) times: BTreeMap<Triple, i64>,
    neighbours: BTreeMap<(PredicateId, Direction, TermId), BTreeSet<TermId>>,
}

impl Oracle {
    pub(super) fn new<'a>(streams: impl Iterator<Item = (&'a Stream, Bounds)>) -> Self {
        let mut times = BTreeMap::new();
        for (stream, bounds) in streams {
            let inside = stream.tuples.iter().filter(|tuple| {
                let time_ms = tuple.time_ms;
                time_ms >= stream.kept_from_ms
                    && time_ms >= bounds.from_ms
                    && time_ms < bounds.until_ms
            });
            for tuple in inside {
                let triple = (tuple.subject, tuple.predicate, tuple.object);
                let last = times.entry(triple).or_insert(tuple.time_ms);
                *last = tuple.time_ms.max(*last);
            }
        }
        let triples: BTreeSet<Triple> = times.keys().copied().collect();
        let mut neighbours: BTreeMap<_, BTreeSet<TermId>> = BTreeMap::new();
        for (s, p, o) in &triples {
            neighbours
                .entry((*p, Direction::Out, *s))
                .or_default()
                .insert(*o);
            neighbours
                .entry((*p, Direction::In, *o))
                .or_default()
                .insert(*s);
        }
        Self {
            triples,
            times,
            neighbours,
        }
    }

    fn neighbours(
        &self,
        predicate: PredicateId,
        direction: Direction,
        key: TermId,
    ) -> BTreeSet<TermId> {
        let found = self.neighbours.get(&(predicate, direction, key));
        found.cloned().unwrap_or_default()
    }

    /// Row and id of all that each row's lists hold in common, in order.
    pub(super) fn expand(
        &self,
        lists: &[Lists<'_>],
        allowed: Option<&IdRanges>,
    ) -> Vec<(u32, TermId)> {
        let mut found = Vec::new();
        for row in 0..lists[0].keys.len() {
            let of_list =
                |list: &Lists<'_>| self.neighbours(list.predicate, list.direction, list.keys[row]);
            let common = lists.iter().map(of_list).reduce(|all, one| &all & &one);
            let common = common.unwrap_or_default().into_iter();
            let kept = common.filter(|id| allowed.is_none_or(|allowed| allowed.contains(*id)));
            found.extend(kept.map(|id| (row as u32, id)));
        }
        found
    }

    pub(super) fn has(&self, membership: Membership, id: TermId) -> bool {
        let neighbours = |predicate, direction| self.neighbours.get(&(predicate, direction, id));
        match membership {
            Membership::Type(class) => {
                let classes = neighbours(PredicateId::TYPE, Direction::Out);
                classes.is_some_and(|classes| classes.contains(&class))
            }
            Membership::Has(predicate, direction) => neighbours(predicate, direction).is_some(),
        }
    }

    pub(super) fn matches(&self, pattern: &Pattern) -> BTreeSet<Triple> {
        let is_match = |(s, p, o): &&Triple| {
            pattern.subject.is_none_or(|subject| subject == *s)
                && pattern.predicate.is_none_or(|predicate| predicate == *p)
                && pattern.object.is_none_or(|object| object == *o)
        };
        self.triples.iter().filter(is_match).copied().collect()
    }

    pub(super) fn predicates_of(&self, key: TermId, direction: Direction) -> Vec<PredicateId> {
        let of_key = self.triples.iter().filter(|(s, _, o)| match direction {
            Direction::Out => *s == key,
            Direction::In => *o == key,
        });
        let predicates: BTreeSet<PredicateId> = of_key.map(|triple| triple.1).collect();
        predicates.into_iter().collect()
    }
}
