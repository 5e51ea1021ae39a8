//! How are the shards of other nodes read without asking these?
//!
//! Their lists lie in memory that their nodes registered: a key's row is computed from the domain, and the
//! list is two one-sided reads away, or one where each key has one neighbour. Reads of a batch of keys fly
//! together, whatever nodes these are of. What no plain array says (single named graphs, what literals have,
//! patterns that are scanned, long lists that are to be searched) the nodes are asked for.

mod alike;
mod counts;
mod near;
mod opened;
mod publication;
mod segment;

use std::any::Any;
use std::ops::Range;
use std::sync::Arc;

use jindou_fabric::FabricError;
use jindou_fabric::remote::Fabric;
use jindou_model::{
    Cursor, Direction, GraphRef, IdRanges, Lists, NodeId, PredicateId, ShardId, TermId, Unavailable,
};
use jindou_partition::Shards;
use jindou_store::LayerKind;
use rustc_hash::FxHashMap;

pub(crate) use alike::Alike;
pub use counts::{ReadCounts, RemoteReads};
pub(crate) use opened::Opened;
use publication::SegmentName;
pub(crate) use publication::segment_name;
pub use publication::{Offered, Publication};
use segment::{Reads, RemoteSegment};

/// Keys whose lists are read together.
const KEYS_AT_ONCE: usize = 1024;
/// Keys of which the bounds of the lists are read first, where those may not all be followed.
const FIRST_KEYS: usize = 64;
/// Neighbours of a list up to which it is read to see what it holds; the nodes of longer ones are asked.
const SEARCHED_LIST: u64 = 1024;

/// Shards of other nodes, as one node reads them.
pub struct OneSided {
    shards: Shards,
    /// Whose node this is.
    here: NodeId,
    /// Who has each shard; none of those that are not read.
    holders: Vec<Option<Holder>>,
    segments: FxHashMap<SegmentName, BySegment>,
    fabric: Arc<dyn Fabric>,
    counts: Arc<ReadCounts>,
    /// What is to be there for as long as this is used.
    kept: Vec<Arc<dyn Any + Send + Sync>>,
}

/// Who has a shard.
struct Holder {
    node: NodeId,
    /// Of which predicates its lists are read.
    alike: Arc<Alike>,
}

/// By shard; none of those without such a segment.
struct BySegment {
    by_shard: Box<[Option<Arc<RemoteSegment>>]>,
    /// Loads of this process reach all of them.
    are_near: bool,
}

/// The segments of a predicate in one direction.
#[derive(Clone, Copy)]
pub(crate) struct ReadSegments<'a> {
    predicate: PredicateId,
    /// None where no shard has one.
    by_shard: Option<&'a BySegment>,
}

/// Lists that are read together.
pub(crate) struct ReadLists<'a> {
    segments: ReadSegments<'a>,
    list: Lists<'a>,
}

/// Why lists are not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotRead {
    /// The node has taken back memory that it had published: it is to be asked, and so for as long as nothing newer
    /// of it is known.
    TakenBack,
    /// What it makes of the call.
    Unavailable(Unavailable),
}

/// Which neighbours of its segment each key has; none without a segment.
type Located<'a> = Vec<(Option<&'a RemoteSegment>, Range<u64>)>;

impl OneSided {
    /// No shards, for a node of this fabric.
    #[must_use]
    pub fn new(shards: Shards, fabric: &Arc<dyn Fabric>, counts: &Arc<ReadCounts>) -> Self {
        Self {
            shards,
            here: fabric.node(),
            holders: (0..shards.count()).map(|_| None).collect(),
            segments: FxHashMap::default(),
            fabric: Arc::clone(fabric),
            counts: Arc::clone(counts),
            kept: Vec::new(),
        }
    }

    /// Reads a shard, too, that the `holder` has published; `kept` is not dropped before this.
    ///
    /// # Errors
    /// Those of [`Fabric::open`].
    pub fn attach(
        &mut self,
        place: (ShardId, NodeId),
        publication: &Publication,
        kept: Arc<dyn Any + Send + Sync>,
    ) -> Result<(), FabricError> {
        let opened = Opened::new(publication, &*self.fabric, None)?;
        let all = Arc::new(Alike::all());
        self.attach_opened(place, &[(&opened, &all)], &all);
        self.keep(kept);
        Ok(())
    }

    /// Reads a shard, too, that is open: of each predicate what the first one of several bases has that is alike in
    /// it, and none where that is none of them; `in_any` says of which it is one.
    pub(crate) fn attach_opened(
        &mut self,
        (shard, node): (ShardId, NodeId),
        bases: &[(&Opened, &Arc<Alike>)],
        in_any: &Arc<Alike>,
    ) {
        let count = self.shards.count();
        for (place, (opened, alike)) in bases.iter().enumerate() {
            for (name, segment) in &opened.segments {
                let is_in = |(_, alike): &(&Opened, &Arc<Alike>)| alike.has(name.1);
                if !alike.has(name.1) || bases[..place].iter().any(is_in) {
                    continue;
                }
                let none = || BySegment {
                    by_shard: (0..count).map(|_| None).collect(),
                    are_near: true,
                };
                let all = self.segments.entry(*name).or_insert_with(none);
                all.by_shard[shard.0 as usize] = Some(Arc::clone(segment));
                all.are_near &= segment.near().is_some();
            }
        }
        let alike = Arc::clone(in_any);
        self.holders[shard.0 as usize] = Some(Holder { node, alike });
    }

    /// Keeps something for as long as this is used.
    pub(crate) fn keep(&mut self, kept: Arc<dyn Any + Send + Sync>) {
        self.kept.push(kept);
    }

    /// The segments of a predicate in one direction of a layer.
    pub(crate) fn segments(
        &self,
        kind: LayerKind,
        (predicate, direction): (PredicateId, Direction),
    ) -> ReadSegments<'_> {
        let name = segment_name(kind, predicate, direction);
        ReadSegments {
            predicate,
            by_shard: self.segments.get(&name),
        }
    }

    /// True if lists of this shard in these segments are read here.
    #[inline]
    pub(crate) fn has(&self, of: ReadSegments<'_>, shard: ShardId) -> bool {
        let place = shard.0 as usize;
        let Some(holder) = &self.holders[place] else {
            return false;
        };
        let segment = of.by_shard.and_then(|all| all.by_shard[place].as_deref());
        // Its own lists are read with those of others where nothing flies; else its shard is asked.
        if holder.node == self.here && !of.by_shard.is_none_or(|all| all.are_near) {
            return false;
        }
        holder.alike.has(of.predicate) && !segment.is_some_and(RemoteSegment::is_taken_back)
    }

    /// True of a shard that another node has.
    #[inline]
    fn is_of_other(&self, shard: ShardId) -> bool {
        let holder = self.holders[shard.0 as usize].as_ref();
        holder.is_some_and(|holder| holder.node != self.here)
    }

    /// Lists of keys in these segments, all of which are of shards that are read here.
    pub(crate) fn lists<'a>(
        &'a self,
        segments: ReadSegments<'a>,
        list: &Lists<'a>,
    ) -> ReadLists<'a> {
        ReadLists {
            segments,
            list: *list,
        }
    }

    /// What it makes of a call for some keys that they cannot be read.
    fn not_read(&self, error: &FabricError, of: &ReadLists<'_>, keys: &[TermId]) -> NotRead {
        let mut shards = keys.iter().map(|key| self.shards.owner(*key));
        let is_of = |shard: &ShardId, node: NodeId| {
            let holder = self.holders[shard.0 as usize].as_ref();
            holder.is_some_and(|holder| holder.node == node)
        };
        NotRead::Unavailable(match error {
            FabricError::Unregistered(node) => {
                for shard in shards.filter(|shard| is_of(shard, *node)) {
                    if let Some(segment) = of.segment(shard) {
                        segment.take_back();
                    }
                }
                return NotRead::TakenBack;
            }
            FabricError::Deadline | FabricError::Cancelled | FabricError::Exhausted { .. } => {
                Unavailable::NotNow
            }
            FabricError::PeerLost(node) => {
                let lost = shards.find(|shard| is_of(shard, *node));
                Unavailable::Never(lost.unwrap_or(ShardId(0)))
            }
            _ => Unavailable::Never(shards.next().unwrap_or(ShardId(0))),
        })
    }

    /// Which neighbours each of some keys has: reads the offsets of all together.
    fn locate<'a>(&self, of: &ReadLists<'a>, keys: &[TermId]) -> Result<Located<'a>, NotRead> {
        let locate = || {
            let mut reads = Reads::new(&*self.fabric, &self.counts);
            let mut located: Located<'a> = Vec::with_capacity(keys.len());
            let mut begun = Vec::new();
            for (place, key) in keys.iter().enumerate() {
                let segment = of.segment(self.shards.owner(*key));
                let row = match segment {
                    Some(segment) => segment.row(*key, &*self.fabric, &self.counts)?,
                    None => None,
                };
                let (Some(segment), Some(row)) = (segment, row) else {
                    located.push((None, 0..0));
                    continue;
                };
                located.push((Some(segment), row..row + 1));
                if let Some(read) = segment.read_bounds(row, &mut reads)? {
                    begun.push((place, segment, read));
                }
            }
            if begun.is_empty() {
                return Ok(located);
            }
            let completed = reads.complete()?;
            for (place, segment, read) in begun {
                located[place].1 = segment.bounds(completed.bytes(read))?;
            }
            Ok(located)
        };
        locate().map_err(|error: FabricError| self.not_read(&error, of, keys))
    }

    /// As [`OneSided::locate`], of as many of the first keys as it takes for their lists to fill the room, or more.
    fn locate_some<'a>(
        &self,
        of: &ReadLists<'a>,
        keys: &[TermId],
        room: u64,
    ) -> Result<Located<'a>, NotRead> {
        let mut located = self.locate(of, &keys[..keys.len().min(FIRST_KEYS)])?;
        let mut ids: u64 = located.iter().map(|(_, list)| length(list)).sum();
        while located.len() < keys.len() && ids < room {
            // Twice as many as were located.
            let end = keys.len().min(3 * located.len());
            let more = self.locate(of, &keys[located.len()..end])?;
            ids += more.iter().map(|(_, list)| length(list)).sum::<u64>();
            located.extend(more);
        }
        Ok(located)
    }

    /// Reads some lists, whole or in part, together.
    fn read(
        &self,
        of: &ReadLists<'_>,
        located: &Located<'_>,
        keys: &[TermId],
        each: &mut dyn FnMut(usize, &[TermId]),
    ) -> Result<(), NotRead> {
        let mut read = || {
            let mut reads = Reads::new(&*self.fabric, &self.counts);
            let mut begun = Vec::with_capacity(located.len());
            for (place, (segment, list)) in located.iter().enumerate() {
                if let Some(segment) = segment
                    && !list.is_empty()
                {
                    let read = segment.read_list(list.clone(), &mut reads)?;
                    begun.push((place, segment, read));
                }
            }
            if begun.is_empty() {
                return Ok(());
            }
            let completed = reads.complete()?;
            let mut ids = Vec::new();
            for (place, segment, read) in begun {
                ids.clear();
                segment.push_list(completed.bytes(read), &mut ids);
                each(place, &ids);
            }
            Ok(())
        };
        read().map_err(|error: FabricError| self.not_read(&error, of, keys))
    }

    /// As [`GraphSource::expand`](jindou_exec::GraphSource::expand) of one list.
    pub(crate) fn expand(
        &self,
        of: &ReadLists<'_>,
        cursor: &mut Cursor,
        allowed: Option<&IdRanges>,
        budget: usize,
        (rows, out): (&mut Vec<u32>, &mut Vec<TermId>),
    ) -> Result<(), NotRead> {
        if of.are_near() {
            return self.expand_near(of, cursor, allowed, budget, (rows, out));
        }
        let count = of.list.keys.len();
        let most = count.min(cursor.key + KEYS_AT_ONCE);
        while cursor.key < most && out.len() < budget {
            let room = budget - out.len();
            let end = most;
            let keys = &of.list.keys[cursor.key..end];
            let located = self.locate_some(of, keys, room as u64)?;
            let known = cursor.key + located.len();
            let (lists, next) = fitting(*cursor, located, room as u64);
            let first = cursor.key;
            self.read(of, &lists, keys, &mut |place, ids| {
                let before = out.len();
                out.extend(ids.iter().filter(|id| is_allowed(allowed, **id)));
                rows.resize(rows.len() + (out.len() - before), (first + place) as u32);
            })?;
            *cursor = next;
            // The places of one list may be shared out: see `GraphSource::expand`. And where there was no room for all
            // lists that were located, they are not located again for what is left of it.
            if count == 1 || cursor.key < known {
                break;
            }
        }
        Ok(())
    }

    /// As [`GraphSource::places`](jindou_exec::GraphSource::places).
    pub(crate) fn places(&self, of: &ReadLists<'_>) -> Result<u64, NotRead> {
        if of.are_near() {
            let mut places = 0;
            self.for_each_near(of, false, |_, list| places += list.length() as u64)?;
            return Ok(places);
        }
        let located = self.locate(of, of.list.keys)?;
        Ok(located.iter().map(|(_, list)| length(list)).sum())
    }

    /// As [`GraphSource::contains`](jindou_exec::GraphSource::contains), with the rows in order; those
    /// whose lists are too long to be read go to `undecided`.
    pub(crate) fn contains(
        &self,
        of: &ReadLists<'_>,
        to: &[TermId],
        rows: &mut Vec<u32>,
        undecided: &mut Vec<u32>,
    ) -> Result<(), NotRead> {
        if of.are_near() {
            return self.for_each_near(of, true, |place, list| {
                if list.neighbours().contains(to[place]) {
                    rows.push(place as u32);
                }
            });
        }
        // Equal keys follow each other where several ids are looked for in one list, which is read once.
        let keys = of.list.keys;
        let is_first = |place: &usize| *place == 0 || keys[place - 1] != keys[*place];
        let starts: Vec<usize> = (0..keys.len()).filter(is_first).collect();
        for first in (0..starts.len()).step_by(KEYS_AT_ONCE) {
            let runs = &starts[first..starts.len().min(first + KEYS_AT_ONCE)];
            let end = |run: usize| starts.get(first + run + 1).copied();
            let places = |run: usize| runs[run]..end(run).unwrap_or(keys.len());
            let keys: Vec<TermId> = runs.iter().map(|place| keys[*place]).collect();
            let mut located = self.locate(of, &keys)?;
            for (run, (_, list)) in located.iter_mut().enumerate() {
                if length(list) > SEARCHED_LIST {
                    undecided.extend(places(run).map(|place| place as u32));
                    *list = 0..0;
                }
            }
            self.read(of, &located, &keys, &mut |run, ids| {
                let is_held = |place: &usize| ids.binary_search(&to[*place]).is_ok();
                rows.extend(places(run).filter(is_held).map(|place| place as u32));
            })?;
        }
        Ok(())
    }

    /// As [`GraphSource::degrees`](jindou_exec::GraphSource::degrees) of all neighbours; the rows of
    /// which the bounds of their lists do not say it go to `undecided`, and have any number.
    pub(crate) fn degrees(
        &self,
        of: &ReadLists<'_>,
        out: &mut Vec<u64>,
        undecided: &mut Vec<u32>,
    ) -> Result<(), NotRead> {
        if of.are_near() {
            return self.for_each_near(of, false, |_, list| out.push(list.length() as u64));
        }
        for keys in of.list.keys.chunks(KEYS_AT_ONCE) {
            for (segment, list) in self.locate(of, keys)? {
                if segment.is_some_and(RemoteSegment::has_holes) {
                    undecided.push(out.len() as u32);
                }
                out.push(length(&list));
            }
        }
        Ok(())
    }
}

impl<'a> ReadLists<'a> {
    /// The segment of a shard, if it has one.
    fn segment(&self, shard: ShardId) -> Option<&'a RemoteSegment> {
        self.segments.by_shard?.by_shard[shard.0 as usize].as_deref()
    }

    /// Loads of this process reach all of them.
    pub(crate) fn are_near(&self) -> bool {
        self.segments.by_shard.is_none_or(|all| all.are_near)
    }
}

/// The layer that has the lists of a graph as plain arrays; `None` where nodes must be asked.
pub(crate) fn layer_of(graph: GraphRef<'_>, predicate: PredicateId) -> Option<LayerKind> {
    let kind = match graph {
        GraphRef::Default => LayerKind::Default,
        GraphRef::Named => LayerKind::Named,
        GraphRef::Union | GraphRef::One(_) | GraphRef::Some(_) | GraphRef::Each(_) => return None,
    };
    (predicate != PredicateId::TYPE).then_some(kind)
}

fn length(list: &Range<u64>) -> u64 {
    list.end - list.start
}

fn is_allowed(allowed: Option<&IdRanges>, id: TermId) -> bool {
    allowed.is_none_or(|allowed| allowed.contains(id))
}

/// Of the lists from a cursor on those that there is room for, the first at least in part, and where the
/// next begins.
fn fitting<S>(
    from: Cursor,
    bounds: Vec<(S, Range<u64>)>,
    room: u64,
) -> (Vec<(S, Range<u64>)>, Cursor) {
    let mut lists = Vec::with_capacity(bounds.len());
    let (mut cursor, mut taken) = (from, 0);
    for (segment, list) in bounds {
        let begin = list.end.min(list.start + cursor.offset as u64);
        let length = list.end - begin;
        let left = room.saturating_sub(taken).max(u64::from(lists.is_empty()));
        if length > left && !lists.is_empty() {
            break;
        }
        let read = length.min(left);
        lists.push((segment, begin..begin + read));
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

#[cfg(test)]
mod tests {
    use super::*;

    fn of(lists: Vec<Range<u64>>) -> Vec<((), Range<u64>)> {
        lists.into_iter().map(|list| ((), list)).collect()
    }

    fn one(list: Range<u64>) -> Vec<((), Range<u64>)> {
        of(std::iter::once(list).collect())
    }

    fn at(key: usize, offset: usize) -> Cursor {
        Cursor { key, offset }
    }

    #[test]
    fn as_many_lists_fit_as_there_is_room_for_and_one_in_part() {
        let bounds = || of(vec![10..13, 13..13, 13..20, 20..21]);
        let (lists, next) = fitting(at(5, 0), bounds(), 100);
        assert_eq!((lists, next), (bounds(), at(9, 0)));
        let (lists, next) = fitting(at(5, 0), bounds(), 9);
        assert_eq!((lists, next), (of(vec![10..13, 13..13]), at(7, 0)));
        let (lists, next) = fitting(at(5, 0), bounds(), 2);
        assert_eq!((lists, next), (one(10..12), at(5, 2)));
        // Part of it was read before.
        let (lists, next) = fitting(at(5, 2), bounds(), 2);
        assert_eq!((lists, next), (of(vec![12..13, 13..13]), at(7, 0)));
        let (lists, next) = fitting(at(7, 6), of(vec![13..20, 20..21]), 1);
        assert_eq!((lists, next), (one(19..20), at(8, 0)));
        // Without room it goes on all the same.
        let (lists, next) = fitting(at(0, 0), bounds(), 0);
        assert_eq!((lists, next), (one(10..11), at(0, 1)));
    }
}
