//! Who has the lists of these keys?
//!
//! Those of a shard that is here come from that shard, those of all shards of a node that is asked in one answer;
//! those of all shards whose memory is read from here come together, whatever nodes these are of.

use jindou_exec::GraphSource;
use jindou_model::{
    Cursor, Direction, GraphRef, IdRanges, Lists, PredicateId, ShardId, TermId, TermKind,
    Unavailable,
};
use jindou_partition::Split;
use jindou_store::LayerKind;

use crate::one_sided::{NotRead, OneSided, ReadSegments};
use crate::{ChangedLists, Sharded};

/// False of a term that a query computed, or that only it names: no shard has edges of it, and none is asked,
/// which may be lost.
pub(crate) fn is_of_graph(key: TermId) -> bool {
    key.kind() != TermKind::Computed
}

/// Who has the lists of some keys.
#[derive(Clone, Copy)]
pub(crate) enum Holder<'a> {
    /// One graph has all of them.
    Graph(&'a dyn GraphSource),
    /// They are of shards whose memory is read from here.
    Read(Reading<'a>),
}

/// The shards of other nodes, whose lists are read.
#[derive(Clone, Copy)]
pub(crate) struct Reading<'a> {
    pub(crate) reader: &'a OneSided,
    /// Of which segments.
    pub(crate) segments: ReadSegments<'a>,
    /// What it cannot read any more; none where nothing changed.
    pub(crate) changes: Option<&'a dyn ChangedLists>,
    /// The layer that has them.
    pub(crate) kind: LayerKind,
    /// Who asks for what cannot be read.
    pub(crate) sharded: &'a Sharded,
}

impl Reading<'_> {
    /// True if the list of a key, which a shard owns, is read here, and is as it was published.
    fn has(self, segment: (PredicateId, Direction), shard: ShardId, key: TermId) -> bool {
        self.reads(shard) && self.is_as_published(segment, key)
    }

    /// True if lists of a shard are read here.
    fn reads(self, shard: ShardId) -> bool {
        self.reader.has(self.segments, shard) && self.sharded.of_shard(shard).is_ok()
    }

    fn is_as_published(self, segment: (PredicateId, Direction), key: TermId) -> bool {
        let has_changed =
            |changes: &dyn ChangedLists| changes.may_have_changed(self.kind, segment, key);
        !self.changes.is_some_and(has_changed)
    }

    /// True if the lists of all these keys are read here, and are as they were published.
    fn has_all(self, segment: (PredicateId, Direction), keys: &[TermId]) -> bool {
        // Those of the first shards that are.
        let mut read: u64 = 0;
        keys.iter().all(|key| {
            let shard = self.sharded.shards.owner(*key);
            let bit = 1_u64.checked_shl(shard.0).unwrap_or(0);
            if read & bit == 0 {
                if !self.reads(shard) {
                    return false;
                }
                read |= bit;
            }
            is_of_graph(*key) && self.is_as_published(segment, *key)
        })
    }
}

impl Holder<'_> {
    /// As [`GraphSource::expand`] of one list.
    pub(crate) fn expand(
        self,
        graph: GraphRef<'_>,
        list: &Lists<'_>,
        cursor: &mut Cursor,
        allowed: Option<&IdRanges>,
        budget: usize,
        (rows, out): (&mut Vec<u32>, &mut Vec<TermId>),
    ) -> Result<(), Unavailable> {
        match self {
            Self::Graph(one) => {
                let lists = std::slice::from_ref(list);
                one.expand(graph, lists, cursor, allowed, budget, rows, out)
            }
            Self::Read(Reading {
                reader,
                segments,
                sharded,
                ..
            }) => {
                let lists = reader.lists(segments, list);
                match reader.expand(&lists, cursor, allowed, budget, (rows, out)) {
                    Ok(()) => Ok(()),
                    Err(NotRead::Unavailable(why)) => Err(why),
                    Err(NotRead::TakenBack) => {
                        let found = (rows, out);
                        sharded.ask_in_turn(graph, list, cursor, allowed, budget, found)
                    }
                }
            }
        }
    }

    /// As [`GraphSource::places`].
    pub(crate) fn places(self, graph: GraphRef<'_>, list: &Lists<'_>) -> Result<u64, Unavailable> {
        match self {
            Self::Graph(one) => one.places(graph, list),
            Self::Read(Reading {
                reader,
                segments,
                sharded,
                ..
            }) => match reader.places(&reader.lists(segments, list)) {
                Ok(places) => Ok(places),
                Err(NotRead::Unavailable(why)) => Err(why),
                Err(NotRead::TakenBack) => {
                    let shard = sharded.shards.owner(list.keys[0]);
                    sharded.of_shard(shard)?.places(graph, list)
                }
            },
        }
    }

    /// As [`GraphSource::contains`], the rows in any order.
    pub(crate) fn contains(
        self,
        graph: GraphRef<'_>,
        list: &Lists<'_>,
        to: &[TermId],
        rows: &mut Vec<u32>,
    ) -> Result<(), Unavailable> {
        match self {
            Self::Graph(one) => one.contains(graph, list, to, rows),
            Self::Read(Reading {
                reader,
                segments,
                sharded,
                ..
            }) => {
                let (before, mut undecided) = (rows.len(), Vec::new());
                match reader.contains(&reader.lists(segments, list), to, rows, &mut undecided) {
                    Ok(()) => {}
                    Err(NotRead::Unavailable(why)) => return Err(why),
                    Err(NotRead::TakenBack) => {
                        rows.truncate(before);
                        undecided = (0..list.keys.len() as u32).collect();
                    }
                }
                sharded.ask_undecided(list, &undecided, |shard, list, places| {
                    let to: Vec<TermId> = places.iter().map(|place| to[*place as usize]).collect();
                    let mut found = Vec::new();
                    shard.contains(graph, list, &to, &mut found)?;
                    rows.extend(found.iter().map(|row| places[*row as usize]));
                    Ok(())
                })
            }
        }
    }

    /// As [`GraphSource::degrees`].
    pub(crate) fn degrees(
        self,
        graph: GraphRef<'_>,
        list: &Lists<'_>,
        allowed: Option<&IdRanges>,
        out: &mut Vec<u64>,
    ) -> Result<(), Unavailable> {
        match self {
            Self::Graph(one) => one.degrees(graph, list, allowed, out),
            Self::Read(Reading {
                reader,
                segments,
                sharded,
                ..
            }) => {
                let lists = reader.lists(segments, list);
                let mut undecided: Vec<u32> = Vec::new();
                let mut degrees = Vec::with_capacity(list.keys.len());
                let read = match allowed {
                    None => reader.degrees(&lists, &mut degrees, &mut undecided),
                    Some(_) => Err(NotRead::TakenBack),
                };
                match read {
                    Ok(()) => {}
                    Err(NotRead::Unavailable(why)) => return Err(why),
                    // The nodes are asked for all of them.
                    Err(NotRead::TakenBack) => {
                        degrees.clear();
                        degrees.resize(list.keys.len(), 0);
                        undecided = (0..list.keys.len() as u32).collect();
                    }
                }
                sharded.ask_undecided(list, &undecided, |shard, list, places| {
                    let mut counts = Vec::new();
                    shard.degrees(graph, list, allowed, &mut counts)?;
                    for (place, count) in places.iter().zip(counts) {
                        degrees[*place as usize] = count;
                    }
                    Ok(())
                })?;
                out.append(&mut degrees);
                Ok(())
            }
        }
    }
}

impl Sharded {
    /// Splits keys by who has their lists.
    pub(crate) fn split(
        &self,
        graph: GraphRef<'_>,
        (predicate, direction): (PredicateId, Direction),
        keys: impl IntoIterator<Item = TermId>,
        split: &mut Split,
    ) {
        let read = self.shards.count() as u32;
        let reading = self.reading(graph, (predicate, direction));
        split.fill(keys, |key| match (self.shards.owner(key), reading) {
            _ if !is_of_graph(key) => self.part_of_others(),
            (shard, Some(reading)) if reading.has((predicate, direction), shard, key) => read,
            (shard, _) => self.part_of(shard),
        });
    }

    /// Who has the lists of a part of [`Sharded::split`].
    pub(crate) fn holder_of_part(
        &self,
        graph: GraphRef<'_>,
        segment: (PredicateId, Direction),
        part: u32,
    ) -> Result<Holder<'_>, Unavailable> {
        match self.reading(graph, segment) {
            Some(reading) if part as usize == self.shards.count() => Ok(Holder::Read(reading)),
            _ => Ok(Holder::Graph(self.of_part(part)?)),
        }
    }

    /// The part of keys that are of no shard, behind those of the shards and of what is read.
    pub(crate) fn part_of_others(&self) -> u32 {
        self.shards.count() as u32 + 1
    }

    /// The rows of a part, which is not of what is read.
    pub(crate) fn of_part(&self, part: u32) -> Result<&dyn GraphSource, Unavailable> {
        match part == self.part_of_others() {
            true => Ok(&*self.shared),
            false => self.of_shard(ShardId(part)),
        }
    }

    /// Who has the list of one key.
    pub(crate) fn holder_of_key(
        &self,
        graph: GraphRef<'_>,
        (predicate, direction): (PredicateId, Direction),
        key: TermId,
    ) -> Result<Holder<'_>, Unavailable> {
        let shard = self.shards.owner(key);
        match self.reading(graph, (predicate, direction)) {
            _ if predicate == PredicateId::TYPE || !is_of_graph(key) => {
                Ok(Holder::Graph(&*self.shared))
            }
            Some(reading) if reading.has((predicate, direction), shard, key) => {
                Ok(Holder::Read(reading))
            }
            _ => Ok(Holder::Graph(self.of_shard(shard)?)),
        }
    }

    /// What reads the lists of these keys, if nobody is to be asked for one of them.
    pub(crate) fn reader_of(
        &self,
        graph: GraphRef<'_>,
        segment: (PredicateId, Direction),
        keys: &[TermId],
    ) -> Option<Holder<'_>> {
        let reading = self.reading(graph, segment)?;
        (reading.has_all(segment, keys)).then_some(Holder::Read(reading))
    }

    /// As [`GraphSource::expand`] of one list: asks the shard of each key, one after the other. For what was to be read
    /// and is not there any more.
    fn ask_in_turn(
        &self,
        graph: GraphRef<'_>,
        list: &Lists<'_>,
        cursor: &mut Cursor,
        allowed: Option<&IdRanges>,
        budget: usize,
        (rows, out): (&mut Vec<u32>, &mut Vec<TermId>),
    ) -> Result<(), Unavailable> {
        while cursor.key < list.keys.len() && out.len() < budget {
            let place = cursor.key;
            let shard = self.of_shard(self.shards.owner(list.keys[place]))?;
            let one = Lists {
                keys: &list.keys[place..=place],
                ..*list
            };
            let mut within = Cursor {
                key: 0,
                offset: cursor.offset,
            };
            let before = rows.len();
            shard.expand(graph, &[one], &mut within, allowed, budget, rows, out)?;
            rows[before..]
                .iter_mut()
                .for_each(|row| *row = place as u32);
            let has_moved = within.key > 0 || within.offset > cursor.offset;
            *cursor = Cursor {
                key: place + within.key,
                offset: within.offset,
            };
            // The places of one list may be shared out: see `GraphSource::expand`.
            if list.keys.len() == 1 || !has_moved {
                break;
            }
        }
        Ok(())
    }

    /// Calls `ask` for the shards of some rows of a list, with their keys and numbers.
    fn ask_undecided(
        &self,
        list: &Lists<'_>,
        undecided: &[u32],
        mut ask: impl FnMut(&dyn GraphSource, &Lists<'_>, &[u32]) -> Result<(), Unavailable>,
    ) -> Result<(), Unavailable> {
        let keys = undecided.iter().map(|row| list.keys[*row as usize]);
        self.ask_shards(keys, |shard, part| {
            let rows = part.places.iter().map(|place| undecided[*place as usize]);
            let rows: Vec<u32> = rows.collect();
            let list = Lists {
                keys: &part.keys,
                ..*list
            };
            ask(shard, &list, &rows)
        })
    }
}
