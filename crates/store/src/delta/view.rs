//! A layer at one snapshot: its base and the changes together.

use std::ops::ControlFlow;

use jindou_model::{
    Cursor, Direction, IdRanges, Neighbours, Pattern, PredicateId, TermId, TermKind, Visit,
};

use super::LayerDelta;
use super::ids::SetCache;
use crate::Layer;
use crate::segment::expand_one;

/// A layer at one snapshot. The answers for predicates without changes are those of the base, at
/// its cost and one comparison.
#[derive(Clone, Copy)]
pub struct LayerView<'a> {
    pub(super) base: &'a Layer,
    pub(super) delta: &'a LayerDelta,
    pub(super) sets: &'a SetCache,
    /// Predicates and vertices that the snapshot knows.
    pub(super) predicates: usize,
    pub(super) vertices: u64,
}

impl<'a> LayerView<'a> {
    /// Number of edges.
    #[must_use]
    pub fn edges(self) -> u64 {
        self.base.edges() + self.delta.added - self.delta.removed
    }

    /// True if edges were added or removed since the bulk load.
    #[must_use]
    pub fn has_changes(self) -> bool {
        self.delta.added != 0 || self.delta.removed != 0
    }

    /// The version of the changes of a segment; 0 without any.
    pub(super) fn version(self, predicate: PredicateId, direction: Direction) -> u64 {
        let delta = self.delta.segment(predicate, direction);
        delta.map_or(0, |delta| delta.version)
    }

    /// The characteristic sets of the base.
    #[must_use]
    pub fn clusters(self) -> &'a crate::Clusters {
        self.base.clusters()
    }

    /// Edges and distinct keys of any predicate.
    #[must_use]
    pub fn counts(self, predicate: PredicateId, direction: Direction) -> (u64, u64) {
        let (edges, keys) = self.base.counts(predicate, direction);
        match self.delta.segment(predicate, direction) {
            None => (edges, keys),
            Some(delta) => (
                edges + delta.added.len() as u64 - delta.removed.len() as u64,
                keys + delta.gained.len() as u64 - delta.lost.len() as u64,
            ),
        }
    }

    /// The neighbours of a key by any predicate.
    #[inline]
    #[must_use]
    pub fn neighbours(
        self,
        predicate: PredicateId,
        direction: Direction,
        key: TermId,
    ) -> Neighbours<'a> {
        let base = || self.base.neighbours(predicate, direction, key);
        match self.delta.segment(predicate, direction) {
            Some(delta) => delta.list(key, base),
            None => base(),
        }
    }

    /// The neighbours of many keys: appends one entry a key to `out`.
    pub fn locate(
        self,
        predicate: PredicateId,
        direction: Direction,
        keys: &[TermId],
        out: &mut Vec<Neighbours<'a>>,
    ) {
        let Some(delta) = self.delta.segment(predicate, direction) else {
            return self.base.locate(predicate, direction, keys, out);
        };
        if predicate == PredicateId::TYPE {
            let lists = keys
                .iter()
                .map(|key| self.neighbours(predicate, direction, *key));
            return out.extend(lists);
        }
        let begin = out.len();
        let base = self.base.segment(predicate, direction);
        match delta.overlay() {
            Some(overlay) => overlay.locate(base, keys, out),
            None => self.base.locate(predicate, direction, keys, out),
        }
        delta.patch(keys, &mut out[begin..]);
    }

    /// Follows the edges of many keys; see [`crate::Segment::expand`].
    #[expect(
        clippy::too_many_arguments,
        reason = "the segment's arguments and which segment"
    )]
    pub fn expand(
        self,
        predicate: PredicateId,
        direction: Direction,
        keys: &[TermId],
        cursor: &mut Cursor,
        filter: Option<&IdRanges>,
        budget: usize,
        rows: &mut Vec<u32>,
        out: &mut Vec<TermId>,
    ) {
        let base = self.base;
        let Some(delta) = self.delta.segment(predicate, direction) else {
            return base.expand(
                predicate, direction, keys, cursor, filter, budget, rows, out,
            );
        };
        let base_expand =
            |keys: &[TermId], cursor: &mut Cursor, rows: &mut Vec<u32>, out: &mut Vec<TermId>| {
                match delta.overlay() {
                    Some(overlay) if predicate != PredicateId::TYPE => {
                        let below = base.segment(predicate, direction);
                        overlay.expand(below, keys, cursor, filter, budget, rows, out);
                    }
                    _ => base.expand(
                        predicate, direction, keys, cursor, filter, budget, rows, out,
                    ),
                }
            };
        // Types are not kept as a segment: their changed lists are read one by one.
        let is_alone = |key: TermId| match predicate {
            PredicateId::TYPE => delta.may_have_changed(key),
            _ => delta.may_touch(key),
        };
        let none_is_alone = predicate != PredicateId::TYPE && delta.recent().len() == 0;
        while cursor.key < keys.len() && out.len() < budget {
            // As far as the budget may go, if each key has a neighbour.
            let end = keys.len().min(cursor.key + (budget - out.len()));
            let together = match none_is_alone {
                true => None,
                false => keys[cursor.key..end].iter().position(|key| is_alone(*key)),
            };
            let together = together.map_or(end, |place| cursor.key + place);
            if together > cursor.key {
                base_expand(&keys[..together], cursor, rows, out);
            } else {
                let list = self.neighbours(predicate, direction, keys[cursor.key]);
                expand_one(list, cursor, filter, budget, rows, out);
            }
            if keys.len() == 1 {
                return;
            }
        }
    }

    /// The predicates that a vertex has in a direction, `rdf:type` perhaps
    /// without an edge, appended to `out`.
    pub fn predicates_of_vertex(
        self,
        vertex: TermId,
        direction: Direction,
        out: &mut Vec<PredicateId>,
    ) {
        out.push(PredicateId::TYPE);
        let begin = out.len();
        let clusters = self.base.clusters();
        out.extend(clusters.predicates_of_vertex(vertex, direction));
        let of_vertex = |set: &jindou_model::SortedSet<(u64, u32)>| {
            let key = vertex.raw();
            set.rank_by(|entry| entry.0 < key)..set.rank_by(|entry| entry.0 <= key)
        };
        let (gained, lost) = (
            &self.delta.gained[direction as usize],
            &self.delta.lost[direction as usize],
        );
        let gone = of_vertex(lost);
        if !gone.is_empty() {
            let mut kept = begin;
            for place in begin..out.len() {
                out[kept] = out[place];
                kept += usize::from(!lost.contains((vertex.raw(), out[place].0)));
            }
            out.truncate(kept);
        }
        let more = gained.slices(of_vertex(gained)).flatten();
        let more = more.map(|(_, predicate)| PredicateId(*predicate));
        out.extend(more.filter(|predicate| *predicate != PredicateId::TYPE));
    }

    /// Calls `visit` with each edge that matches, until it breaks; the graph of each is `NONE`.
    ///
    /// Costs as [`Layer::for_each_match`], and the changes that match.
    pub fn for_each_match(self, pattern: &Pattern, visit: &mut Visit<'_>) -> ControlFlow<()> {
        if !self.has_changes() {
            return self.base.for_each_match(pattern, visit);
        }
        if let Some(predicate) = pattern.predicate {
            return self.match_predicate(pattern, predicate, visit);
        }
        let end = match (pattern.subject, pattern.object) {
            (Some(subject), _) => Some((subject, Direction::Out)),
            (None, Some(object)) => Some((object, Direction::In)),
            _ => None,
        };
        let mut predicates = Vec::new();
        match end {
            Some((key, direction)) if key.kind() == TermKind::Vertex => {
                self.predicates_of_vertex(key, direction, &mut predicates);
            }
            _ => predicates.extend((0..self.predicates).map(|n| PredicateId(n as u32))),
        }
        for predicate in predicates {
            self.match_predicate(pattern, predicate, visit)?;
        }
        ControlFlow::Continue(())
    }

    fn match_predicate(
        self,
        pattern: &Pattern,
        predicate: PredicateId,
        visit: &mut Visit<'_>,
    ) -> ControlFlow<()> {
        // Of a shard the lists of one direction may have changed, and those of the other not.
        let direction = match (pattern.subject, pattern.object) {
            (None, Some(_)) => Direction::In,
            _ => Direction::Out,
        };
        let Some(delta) = self.delta.segment(predicate, direction) else {
            return self.base.match_predicate(pattern, predicate, visit);
        };
        match (pattern.subject, pattern.object) {
            (Some(subject), Some(object)) => {
                let list = self.neighbours(predicate, Direction::Out, subject);
                if list.contains(object) {
                    visit(subject, predicate, object, TermId::NONE)?;
                }
            }
            (Some(subject), None) => {
                let list = self.neighbours(predicate, Direction::Out, subject);
                for_each_neighbour(list, &mut |object| {
                    visit(subject, predicate, object, TermId::NONE)
                })?;
            }
            (None, Some(object)) => {
                let list = self.neighbours(predicate, Direction::In, object);
                for_each_neighbour(list, &mut |subject| {
                    visit(subject, predicate, object, TermId::NONE)
                })?;
            }
            (None, None) => {
                // The base's edges come in the order of subjects and objects.
                let mut removed = delta.removed.iter().peekable();
                self.base
                    .match_predicate(pattern, predicate, &mut |s, p, o, g| match removed
                        .next_if_eq(&(s.raw(), o.raw()))
                    {
                        Some(_) => ControlFlow::Continue(()),
                        None => visit(s, p, o, g),
                    })?;
                for (s, o) in delta.added.iter() {
                    let (s, o) = (TermId::from_raw(s), TermId::from_raw(o));
                    visit(s, predicate, o, TermId::NONE)?;
                }
            }
        }
        ControlFlow::Continue(())
    }
}

pub(super) fn for_each_neighbour(
    list: Neighbours<'_>,
    visit: &mut dyn FnMut(TermId) -> ControlFlow<()>,
) -> ControlFlow<()> {
    const AT_ONCE: usize = 1024;
    let mut ids = Vec::new();
    let mut from = 0;
    while from < list.len() {
        ids.clear();
        list.copy(from, AT_ONCE, &mut ids);
        from += ids.len();
        for id in &ids {
            visit(*id)?;
        }
    }
    ControlFlow::Continue(())
}
