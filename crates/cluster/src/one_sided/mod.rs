//! How is a shard of another node read without asking that node?
//!
//! Its lists lie in memory that the node registered: a key's row is computed from the domain, and the list is
//! two one-sided reads away, or one where each key has one neighbour. Reads of a batch of keys fly together.
//! What no plain array says (single named graphs, what literals have, patterns that are scanned) the node is
//! asked for.

mod counts;
mod publication;
mod segment;

use std::any::Any;
use std::ops::{ControlFlow, Range};
use std::sync::Arc;

use jindou_exec::{Catalogue, GraphSource};
use jindou_fabric::FabricError;
use jindou_fabric::remote::Fabric;
use jindou_model::{
    Cursor, Direction, GraphRef, IdRanges, Lists, Membership, Pattern, Precision, PredicateId,
    ShardId, TermId, Unavailable, Visit,
};
use jindou_store::LayerKind;
use rustc_hash::FxHashMap;

pub use counts::{ReadCounts, RemoteReads};
pub use publication::{Offered, Publication};
use segment::{Reads, RemoteSegment, Segments};

/// Keys whose lists are read together.
const KEYS_AT_ONCE: usize = 1024;
/// Neighbours of a list up to which it is read to see what it holds; longer ones are asked of their node.
const SEARCHED_LIST: u64 = 1024;

/// A shard of another node.
pub struct OneSided {
    shard: ShardId,
    segments: Segments,
    fabric: Arc<dyn Fabric>,
    /// The shard as its node answers for it.
    owner: Arc<dyn GraphSource>,
    counts: Arc<ReadCounts>,
    /// What is to be there for as long as this is used.
    _kept: Arc<dyn Any + Send + Sync>,
}

impl OneSided {
    /// The shard that a node has published, and answers for as `owner`; `kept` is not dropped before this.
    ///
    /// # Errors
    /// Those of [`Fabric::open`].
    pub fn attach(
        (shard, publication): (ShardId, &Publication),
        fabric: &Arc<dyn Fabric>,
        owner: Arc<dyn GraphSource>,
        counts: &Arc<ReadCounts>,
        kept: Arc<dyn Any + Send + Sync>,
    ) -> Result<Self, FabricError> {
        let mut memories = FxHashMap::default();
        let mut segments = Segments::default();
        for (name, layout) in &publication.segments {
            let memory = match memories.get(&layout.region) {
                Some(memory) => memory,
                None => {
                    let key = publication.memory(layout.region);
                    let key = key.ok_or(FabricError::Malformed("publication"))?;
                    let opened = fabric.open(key)?;
                    memories.entry(layout.region).or_insert(opened)
                }
            };
            let segment = RemoteSegment::new(layout.clone(), memory.clone());
            segments.insert(*name, Arc::new(segment));
        }
        Ok(Self {
            shard,
            segments,
            fabric: Arc::clone(fabric),
            owner,
            counts: Arc::clone(counts),
            _kept: kept,
        })
    }

    /// The shard as its node answers for it, which is counted.
    fn ask(&self) -> &dyn GraphSource {
        self.counts.count_call();
        &*self.owner
    }

    /// What a graph that cannot be read makes of a call.
    fn unavailable(&self, error: &FabricError) -> Unavailable {
        match error {
            FabricError::Deadline | FabricError::Cancelled | FabricError::Exhausted { .. } => {
                Unavailable::NotNow
            }
            _ => Unavailable::Never(self.shard),
        }
    }

    /// The segment of some lists; `Err` where a node must be asked, `None` where there is none.
    fn segment(
        &self,
        graph: GraphRef<'_>,
        predicate: PredicateId,
        direction: Direction,
    ) -> Result<Option<&RemoteSegment>, Asked> {
        let kind = match graph {
            GraphRef::Default => LayerKind::Default,
            GraphRef::Named => LayerKind::Named,
            GraphRef::Union | GraphRef::One(_) | GraphRef::Some(_) | GraphRef::Each(_) => {
                return Err(Asked);
            }
        };
        if predicate == PredicateId::TYPE {
            return Err(Asked);
        }
        let name = publication::name(kind, predicate, direction);
        Ok(self.segments.get(&name).map(|segment| &**segment))
    }

    fn bounds(
        &self,
        segment: &RemoteSegment,
        keys: &[TermId],
    ) -> Result<Vec<Range<u64>>, Unavailable> {
        segment
            .bounds(keys, &*self.fabric, &self.counts)
            .map_err(|error| self.unavailable(&error))
    }

    /// Reads some lists of a segment, whole or in part, together.
    fn lists(
        &self,
        segment: &RemoteSegment,
        lists: &[Range<u64>],
        each: &mut dyn FnMut(usize, &[TermId]),
    ) -> Result<(), Unavailable> {
        let mut read = || {
            let mut reads = Reads::new(&*self.fabric, &self.counts);
            let mut begun = Vec::with_capacity(lists.len());
            for (place, list) in lists.iter().enumerate() {
                if !list.is_empty() {
                    begun.push((place, segment.read_list(list.clone(), &mut reads)?));
                }
            }
            if begun.is_empty() {
                return Ok(());
            }
            let completed = reads.complete()?;
            let mut ids = Vec::new();
            for (place, read) in begun {
                ids.clear();
                segment.push_list(completed.bytes(read), &mut ids);
                each(place, &ids);
            }
            Ok(())
        };
        read().map_err(|error: FabricError| self.unavailable(&error))
    }

    /// Follows the lists of the rows from the cursor's on, as many together as there is room for.
    fn follow(
        &self,
        segment: &RemoteSegment,
        keys: &[TermId],
        cursor: &mut Cursor,
        allowed: Option<&IdRanges>,
        room: usize,
        (rows, out): (&mut Vec<u32>, &mut Vec<TermId>),
    ) -> Result<(), Unavailable> {
        let end = keys.len().min(cursor.key + KEYS_AT_ONCE);
        let bounds = self.bounds(segment, &keys[cursor.key..end])?;
        let (lists, next) = fitting(*cursor, bounds, room as u64);
        let first = cursor.key;
        self.lists(segment, &lists, &mut |place, ids| {
            let before = out.len();
            out.extend(ids.iter().filter(|id| is_allowed(allowed, **id)));
            rows.resize(rows.len() + (out.len() - before), (first + place) as u32);
        })?;
        *cursor = next;
        Ok(())
    }
}

/// The node must be asked.
struct Asked;

fn is_allowed(allowed: Option<&IdRanges>, id: TermId) -> bool {
    allowed.is_none_or(|allowed| allowed.contains(id))
}

/// Of the lists from a cursor on those that there is room for, the first at least in part, and where the
/// next begins.
fn fitting(from: Cursor, bounds: Vec<Range<u64>>, room: u64) -> (Vec<Range<u64>>, Cursor) {
    let mut lists = Vec::with_capacity(bounds.len());
    let (mut cursor, mut taken) = (from, 0);
    for list in bounds {
        let begin = list.end.min(list.start + cursor.offset as u64);
        let length = list.end - begin;
        let left = room.saturating_sub(taken).max(u64::from(lists.is_empty()));
        if length > left && !lists.is_empty() {
            break;
        }
        let read = length.min(left);
        lists.push(begin..begin + read);
        taken += read;
        if read < length {
            cursor.offset += read as usize;
            break;
        }
        cursor = Cursor {
            key: cursor.key + 1,
            offset: 0,
        };
    }
    (lists, cursor)
}

impl GraphSource for OneSided {
    fn members(
        &self,
        graph: GraphRef<'_>,
        memberships: &[Membership],
        precision: Precision,
        within: Option<&IdRanges>,
    ) -> Result<Option<IdRanges>, Unavailable> {
        self.ask().members(graph, memberships, precision, within)
    }

    fn expand(
        &self,
        graph: GraphRef<'_>,
        lists: &[Lists<'_>],
        cursor: &mut Cursor,
        allowed: Option<&IdRanges>,
        budget: usize,
        rows: &mut Vec<u32>,
        out: &mut Vec<TermId>,
    ) -> Result<(), Unavailable> {
        let [list] = lists else {
            return self
                .ask()
                .expand(graph, lists, cursor, allowed, budget, rows, out);
        };
        let count = list.keys.len();
        match self.segment(graph, list.predicate, list.direction) {
            Err(Asked) => {
                return self
                    .ask()
                    .expand(graph, lists, cursor, allowed, budget, rows, out);
            }
            Ok(None) => {
                *cursor = Cursor {
                    key: count,
                    offset: 0,
                };
            }
            Ok(Some(segment)) => {
                while cursor.key < count && out.len() < budget {
                    let room = budget - out.len();
                    self.follow(segment, list.keys, cursor, allowed, room, (rows, out))?;
                    // The places of one list may be shared out: see `GraphSource::expand`.
                    if count == 1 {
                        break;
                    }
                }
            }
        }
        Ok(())
    }

    fn places(&self, graph: GraphRef<'_>, list: &Lists<'_>) -> Result<u64, Unavailable> {
        match self.segment(graph, list.predicate, list.direction) {
            Err(Asked) => self.ask().places(graph, list),
            Ok(None) => Ok(0),
            Ok(Some(segment)) => {
                let bounds = self.bounds(segment, list.keys)?;
                Ok(bounds.iter().map(|list| list.end - list.start).sum())
            }
        }
    }

    fn contains(
        &self,
        graph: GraphRef<'_>,
        list: &Lists<'_>,
        to: &[TermId],
        rows: &mut Vec<u32>,
    ) -> Result<(), Unavailable> {
        let segment = match self.segment(graph, list.predicate, list.direction) {
            Err(Asked) => return self.ask().contains(graph, list, to, rows),
            Ok(None) => return Ok(()),
            Ok(Some(segment)) => segment,
        };
        let mut found: Vec<u32> = Vec::new();
        let mut first = 0;
        for keys in list.keys.chunks(KEYS_AT_ONCE) {
            let mut bounds = self.bounds(segment, keys)?;
            let mut long: Vec<u32> = Vec::new();
            for (place, list) in bounds.iter_mut().enumerate() {
                if list.end - list.start > SEARCHED_LIST {
                    long.push((first + place) as u32);
                    *list = 0..0;
                }
            }
            self.lists(segment, &bounds, &mut |place, ids| {
                if ids.binary_search(&to[first + place]).is_ok() {
                    found.push((first + place) as u32);
                }
            })?;
            self.ask_of(graph, list, to, &long, &mut found)?;
            first += keys.len();
        }
        found.sort_unstable();
        rows.append(&mut found);
        Ok(())
    }

    fn degrees(
        &self,
        graph: GraphRef<'_>,
        list: &Lists<'_>,
        allowed: Option<&IdRanges>,
        out: &mut Vec<u64>,
    ) -> Result<(), Unavailable> {
        let segment = match self.segment(graph, list.predicate, list.direction) {
            Err(Asked) => return self.ask().degrees(graph, list, allowed, out),
            Ok(None) => {
                out.resize(out.len() + list.keys.len(), 0);
                return Ok(());
            }
            Ok(Some(segment)) => segment,
        };
        if allowed.is_some() || segment.has_holes() {
            return self.ask().degrees(graph, list, allowed, out);
        }
        let mut degrees = Vec::with_capacity(list.keys.len());
        for keys in list.keys.chunks(KEYS_AT_ONCE) {
            let bounds = self.bounds(segment, keys)?;
            degrees.extend(bounds.iter().map(|list| list.end - list.start));
        }
        out.append(&mut degrees);
        Ok(())
    }

    fn graphs_of(
        &self,
        list: &Lists<'_>,
        to: &[TermId],
        rows: &mut Vec<u32>,
        graphs: &mut Vec<TermId>,
    ) -> Result<(), Unavailable> {
        self.ask().graphs_of(list, to, rows, graphs)
    }

    fn for_each_match(
        &self,
        pattern: &Pattern,
        graph: GraphRef<'_>,
        visit: &mut Visit<'_>,
    ) -> Result<ControlFlow<()>, Unavailable> {
        self.ask().for_each_match(pattern, graph, visit)
    }

    fn for_each_quad(
        &self,
        pattern: &Pattern,
        visit: &mut Visit<'_>,
    ) -> Result<ControlFlow<()>, Unavailable> {
        self.ask().for_each_quad(pattern, visit)
    }
}

impl OneSided {
    /// Asks the node for some rows of [`GraphSource::contains`].
    fn ask_of(
        &self,
        graph: GraphRef<'_>,
        list: &Lists<'_>,
        to: &[TermId],
        asked: &[u32],
        found: &mut Vec<u32>,
    ) -> Result<(), Unavailable> {
        if asked.is_empty() {
            return Ok(());
        }
        let of = |ids: &[TermId]| -> Vec<TermId> {
            asked.iter().map(|row| ids[*row as usize]).collect()
        };
        let (keys, to) = (of(list.keys), of(to));
        let list = Lists {
            keys: &keys,
            ..*list
        };
        let mut rows = Vec::new();
        self.ask().contains(graph, &list, &to, &mut rows)?;
        found.extend(rows.into_iter().map(|row| asked[row as usize]));
        Ok(())
    }
}

/// What every machine knows is the same everywhere.
impl Catalogue for OneSided {
    fn predicate(&self, term: TermId) -> Option<PredicateId> {
        self.owner.predicate(term)
    }

    fn predicate_term(&self, predicate: PredicateId) -> TermId {
        self.owner.predicate_term(predicate)
    }

    fn predicates(&self, graph: GraphRef<'_>, out: &mut Vec<PredicateId>) {
        self.owner.predicates(graph, out);
    }

    fn predicates_of(
        &self,
        graph: GraphRef<'_>,
        key: TermId,
        direction: Direction,
        out: &mut Vec<PredicateId>,
    ) {
        self.owner.predicates_of(graph, key, direction, out);
    }

    fn has_graph(&self, graph: TermId) -> bool {
        self.owner.has_graph(graph)
    }

    fn graph_count(&self) -> u64 {
        self.owner.graph_count()
    }

    fn graphs(&self, out: &mut Vec<TermId>) {
        self.owner.graphs(out);
    }

    fn named_quads(&self, predicate: PredicateId) -> Option<u64> {
        self.owner.named_quads(predicate)
    }

    fn edges(&self, graph: GraphRef<'_>, predicate: PredicateId) -> Option<u64> {
        self.owner.edges(graph, predicate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(list: Range<u64>) -> Vec<Range<u64>> {
        std::iter::once(list).collect()
    }

    fn at(key: usize, offset: usize) -> Cursor {
        Cursor { key, offset }
    }

    #[test]
    fn as_many_lists_fit_as_there_is_room_for_and_one_in_part() {
        let bounds = || vec![10..13, 13..13, 13..20, 20..21];
        let (lists, next) = fitting(at(5, 0), bounds(), 100);
        assert_eq!((lists, next), (bounds(), at(9, 0)));
        let (lists, next) = fitting(at(5, 0), bounds(), 9);
        assert_eq!((lists, next), (vec![10..13, 13..13], at(7, 0)));
        let (lists, next) = fitting(at(5, 0), bounds(), 2);
        assert_eq!((lists, next), (one(10..12), at(5, 2)));
        // Part of it was read before.
        let (lists, next) = fitting(at(5, 2), bounds(), 2);
        assert_eq!((lists, next), (vec![12..13, 13..13], at(7, 0)));
        let (lists, next) = fitting(at(7, 6), vec![13..20, 20..21], 1);
        assert_eq!((lists, next), (one(19..20), at(8, 0)));
        // Without room it goes on all the same.
        let (lists, next) = fitting(at(0, 0), bounds(), 0);
        assert_eq!((lists, next), (one(10..11), at(0, 1)));
    }
}
