//! Whole lists of keys that changed: how are they read at the speed of the base?
//!
//! The sets of changes are searched several times for each key that is read. So the lists of the
//! keys that changed are written out from time to time, as they are then, into a segment that is
//! asked before the base; what changes after that stays in sets, and is little.

use std::sync::Arc;

use jindou_model::{Cursor, Direction, IdRanges, Neighbours, PredicateId, TermId};

use super::key_filter::KeyFilter;
use super::segment::SegmentDelta;
use super::snapshot::Snapshot;
use crate::domain::Domain;
use crate::layer::{Layer, LayerKind};
use crate::segment::Segment;

/// Keys looked up together.
const LOOKUP_BATCH: usize = 256;
/// Which changes are worth being written out?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FoldRule {
    /// Segments where so many edges changed since the last time.
    pub least: usize,
    /// And one in so many of those written out then.
    pub share: usize,
    /// A list of so many neighbours is written out whatever changed in it.
    pub short_list: usize,
    /// A longer one is written out if one in so many of its neighbours changed: till then, what
    /// a search costs is little beside what reading it does.
    pub changed_share: usize,
    /// All lists of a segment are written out if one in so many of its keys changed.
    pub whole_share: usize,
}

impl Default for FoldRule {
    fn default() -> Self {
        Self {
            least: 64,
            share: 8,
            short_list: 4096,
            changed_share: 64,
            whole_share: 16,
        }
    }
}

/// The lists of keys, complete and as they were when they were written out.
#[derive(Debug)]
pub(crate) struct Overlay {
    lists: Segment,
    /// They are those of all keys, and the base need not be asked.
    is_whole: bool,
    /// Which keys may have changed, where the lists do not tell or looking them up is a search.
    filter: Option<KeyFilter>,
}

/// What was made of the changes of one segment.
#[derive(Debug)]
pub(crate) struct Folded {
    pub(crate) overlay: Overlay,
    /// Keys that changed, in order, whose lists were not written out.
    pub(crate) left: Vec<u64>,
}

impl Overlay {
    /// Edges in its lists.
    pub(crate) fn edges(&self) -> usize {
        self.lists.edges()
    }

    /// The lists of all keys, if it has them, in one region.
    pub(crate) fn whole(&self) -> Option<&Segment> {
        self.is_whole.then_some(&self.lists)
    }

    pub(crate) fn bytes(&self) -> usize {
        self.lists.bytes() + self.filter.as_ref().map_or(0, KeyFilter::bytes)
    }

    /// The list of a key, if it has one.
    #[inline]
    pub(crate) fn list(&self, key: TermId) -> Option<Neighbours<'_>> {
        if self.is_whole {
            return Some(self.lists.neighbours(key));
        }
        if !self.may_hold(key) {
            return None;
        }
        let row = self.lists.domain().row(key)?;
        Some(self.lists.run(row))
    }

    /// False if nothing had changed for the key when the lists were written out.
    pub(crate) fn may_have_changed(&self, key: TermId) -> bool {
        self.may_hold(key) && (self.is_whole || self.lists.domain().row(key).is_some())
    }

    #[inline]
    fn may_hold(&self, key: TermId) -> bool {
        let filter = self.filter.as_ref();
        filter.is_none_or(|filter| filter.may_hold(key.raw()))
    }

    /// The rows of keys, `usize::MAX` for those that it does not have; false if it has none.
    fn rows(&self, keys: &[TermId], rows: &mut Vec<usize>) -> bool {
        match &self.filter {
            None => self.lists.domain().rows(keys, rows),
            Some(filter) => {
                rows.clear();
                rows.extend(keys.iter().map(|key| match filter.may_hold(key.raw()) {
                    true => self.lists.domain().row(*key).unwrap_or(usize::MAX),
                    false => usize::MAX,
                }));
            }
        }
        rows.iter().any(|row| *row != usize::MAX)
    }

    /// The lists of many keys: appends one a key. `base` has those that it does not have.
    pub(crate) fn locate<'a>(
        &'a self,
        base: Option<&'a Segment>,
        keys: &[TermId],
        lists: &mut Vec<Neighbours<'a>>,
    ) {
        if self.is_whole {
            return self.lists.locate(keys, lists);
        }
        let (mut over, mut under) = (Vec::new(), Vec::new());
        for keys in keys.chunks(LOOKUP_BATCH) {
            self.rows(keys, &mut over);
            rows_in(base, keys, &mut under);
            lists.extend(over.iter().zip(&under).map(|rows| match (rows, base) {
                ((&usize::MAX, &usize::MAX), _) | ((&usize::MAX, _), None) => Neighbours::NONE,
                ((&usize::MAX, row), Some(base)) => base.run(*row),
                ((row, _), _) => self.lists.run(*row),
            }));
        }
    }

    /// As [`Segment::expand`], over these lists and those of the base for all other keys.
    #[expect(
        clippy::too_many_arguments,
        reason = "the segment's arguments and the segment below"
    )]
    pub(crate) fn expand(
        &self,
        base: Option<&Segment>,
        keys: &[TermId],
        cursor: &mut Cursor,
        filter: Option<&IdRanges>,
        budget: usize,
        rows: &mut Vec<u32>,
        out: &mut Vec<TermId>,
    ) {
        if self.is_whole {
            return self.lists.expand(keys, cursor, filter, budget, rows, out);
        }
        let mut over = Vec::with_capacity(LOOKUP_BATCH.min(keys.len()));
        let mut under = Vec::new();
        while cursor.key < keys.len() && out.len() < budget {
            let end = keys.len().min(cursor.key + LOOKUP_BATCH);
            let batch = &keys[cursor.key..end];
            if !self.rows(batch, &mut over) {
                match base {
                    Some(base) => base.expand(&keys[..end], cursor, filter, budget, rows, out),
                    None => {
                        *cursor = Cursor {
                            key: end,
                            offset: 0,
                        }
                    }
                }
            } else {
                rows_in(base, batch, &mut under);
                let lists = Lists {
                    over: &self.lists,
                    over_rows: &over,
                    under: base.unwrap_or(&self.lists),
                    under_rows: &under,
                };
                lists.expand(cursor, filter, budget, rows, out);
            }
            if keys.len() == 1 {
                return;
            }
        }
    }
}

/// The rows of keys, `usize::MAX` for those that have none.
fn rows_in(segment: Option<&Segment>, keys: &[TermId], rows: &mut Vec<usize>) {
    match segment {
        Some(segment) => segment.domain().rows(keys, rows),
        None => {
            rows.clear();
            rows.resize(keys.len(), usize::MAX);
        }
    }
}

/// A batch of keys and where the list of each is.
struct Lists<'a> {
    over: &'a Segment,
    over_rows: &'a [usize],
    under: &'a Segment,
    under_rows: &'a [usize],
}

impl Lists<'_> {
    /// Copies the lists from the cursor's key on, which is the first of them, and moves it: keys
    /// next to each other whose lists are in one segment are read together.
    fn expand(
        &self,
        cursor: &mut Cursor,
        filter: Option<&IdRanges>,
        budget: usize,
        rows: &mut Vec<u32>,
        out: &mut Vec<TermId>,
    ) {
        let first = cursor.key;
        let end = first + self.over_rows.len();
        while cursor.key < end && out.len() < budget {
            let at = cursor.key - first;
            let is_over = self.over_rows[at] != usize::MAX;
            let mut stop = at + 1;
            while self
                .over_rows
                .get(stop)
                .is_some_and(|row| (*row != usize::MAX) == is_over)
            {
                stop += 1;
            }
            let (segment, found) = match is_over {
                true => (self.over, &self.over_rows[at..stop]),
                false => (self.under, &self.under_rows[at..stop]),
            };
            segment.expand_rows(found, cursor, filter, budget, rows, out);
            if self.over_rows.len() == 1 {
                return;
            }
        }
    }
}

/// The lists of one segment.
#[derive(Debug)]
struct FoldedSegment {
    place: (LayerKind, PredicateId, Direction),
    /// The changes that they hold.
    of: Arc<SegmentDelta>,
    folded: Folded,
}

/// Lists written out for one snapshot, for those that follow it: see [`Snapshot::fold`].
#[derive(Debug)]
pub struct Fold {
    segments: Vec<FoldedSegment>,
}

impl Fold {
    /// True if no lists were written out.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }
}

impl Snapshot {
    /// Writes out the lists of the keys that changed, where that is worth it.
    ///
    /// Costs the edges of these lists, in time and memory; changes nothing. Between this and
    /// [`Snapshot::read_through`] there must be no other fold.
    #[must_use]
    pub fn fold(&self, rule: FoldRule) -> Fold {
        let mut segments = Vec::new();
        for kind in [LayerKind::Default, LayerKind::Named] {
            let layer = &self.delta.layers[kind as usize];
            for direction in [Direction::Out, Direction::In] {
                for (number, delta) in layer.segments[direction as usize].iter() {
                    let written = delta.overlay().map_or(0, Overlay::edges);
                    let least = rule.least.max(written / rule.share.max(1));
                    if delta.recent().len() < least.max(1) {
                        continue;
                    }
                    let predicate = PredicateId(number as u32);
                    let below = Below {
                        base: self.base().layer(kind),
                        predicate,
                        direction,
                    };
                    segments.push(FoldedSegment {
                        place: (kind, predicate, direction),
                        of: Arc::clone(delta),
                        folded: delta.fold(rule, below),
                    });
                }
            }
        }
        Fold { segments }
    }

    /// Lets readers of this snapshot, which nobody reads yet, use the lists that were written out
    /// for another one of its generation. Where it has lists of a third one, these stay.
    pub fn read_through(&mut self, fold: Fold) {
        self.folds += 1;
        for FoldedSegment { place, of, folded } in fold.segments {
            let (kind, predicate, direction) = place;
            let segments = &mut self.delta.layers[kind as usize].segments[direction as usize];
            let next = segments.get(predicate.index());
            if let Some(next) = next.and_then(|now| now.with_overlay(folded, &of)) {
                segments.set(predicate.index(), Arc::new(next));
            }
        }
        for layer in &mut self.delta.layers {
            let recent = layer.segments[Direction::Out as usize].iter();
            layer.recent = recent.map(|(_, delta)| delta.recent().len() as u64).sum();
        }
    }
}

impl FoldRule {
    /// True of a long list in which little changed.
    fn leaves(self, list: &Neighbours<'_>) -> bool {
        match list {
            Neighbours::Patched(patched) => {
                let changed = patched.added.len() + patched.removed.len();
                list.len() > self.short_list && list.len() / self.changed_share.max(1) > changed
            }
            _ => false,
        }
    }
}

/// What lies under the changes of one segment.
#[derive(Clone, Copy)]
struct Below<'a> {
    base: &'a Layer,
    predicate: PredicateId,
    direction: Direction,
}

impl<'a> Below<'a> {
    fn list(self, key: TermId) -> Neighbours<'a> {
        self.base.neighbours(self.predicate, self.direction, key)
    }

    /// The base's keys where all lists are to be written out: `changed` keys are many of them.
    fn keys_of_whole(self, rule: FoldRule, changed: usize) -> Option<&'a Domain> {
        let segment = self.base.segment(self.predicate, self.direction)?;
        let domain = segment.domain();
        (changed >= domain.len() / rule.whole_share.max(1)).then_some(domain)
    }
}

impl SegmentDelta {
    /// Writes out the lists of all keys that changed, or of all where these are many.
    ///
    /// Costs the edges of these lists.
    fn fold(&self, rule: FoldRule, below: Below<'_>) -> Folded {
        let changed = self.changed_keys();
        let all_keys = below.keys_of_whole(rule, changed.len());
        let mut keys = changed.clone();
        if let Some(all) = all_keys {
            all.for_each(&mut |key| keys.push(key.raw()));
            keys.sort_unstable();
            keys.dedup();
        }
        let (mut written, mut left) = (Vec::with_capacity(keys.len()), Vec::new());
        let (mut offsets, mut neighbours) = (vec![0], Vec::new());
        let mut ids = Vec::new();
        for key in keys {
            let id = TermId::from_raw(key);
            let list = self.list(id, || below.list(id));
            let is_written = || self.overlay().is_some_and(|o| o.list(id).is_some());
            if all_keys.is_none() && rule.leaves(&list) && !is_written() {
                left.push(key);
                continue;
            }
            ids.clear();
            list.copy(0, usize::MAX, &mut ids);
            written.push(key);
            neighbours.extend(ids.iter().map(|id| id.raw()));
            offsets.push(neighbours.len() as u64);
        }
        let lists = Segment::from_lists(&written, &offsets, &neighbours).packed();
        let is_whole = all_keys.is_some();
        let filter = (is_whole || !lists.domain().is_direct()).then(|| filter_of(&changed));
        Folded {
            overlay: Overlay {
                lists,
                is_whole,
                filter,
            },
            left,
        }
    }

    /// The keys of all changes since the bulk load, in order.
    fn changed_keys(&self) -> Vec<u64> {
        let edges = self.added.iter().chain(self.removed.iter());
        let mut keys: Vec<u64> = edges.map(|(key, _)| key).collect();
        // Some of these were changed back since.
        let recent = self.recent();
        let edges = recent.added.iter().chain(recent.removed.iter());
        keys.extend(edges.map(|(key, _)| key));
        keys.sort_unstable();
        keys.dedup();
        keys
    }
}

fn filter_of(keys: &[u64]) -> KeyFilter {
    let filter = KeyFilter::for_keys(keys.len());
    keys.iter().for_each(|key| filter.note(*key));
    filter
}
