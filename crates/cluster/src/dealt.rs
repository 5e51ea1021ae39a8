//! What does a dictionary say that is dealt to nodes?
//!
//! The string of an id is at the node that holds the id's shard. Each node may also know the order of all ids by their
//! strings. Which ids a term may have, the shard of the term's hash knows. The strings of
//! these ids are read where the ids say, and compared with the term. Each node has
//! its part of both, and is asked for all that it has of a batch in one message; the messages to all nodes are under
//! way together.

use std::sync::Arc;

use jindou_dictionary::hash as hash_of_key;
use jindou_exec::{KeyKind, Keys, MemoryPool, Reservation, TermPart, TermSource, TextOrder};
use jindou_model::{IdEpoch, NodeId, ShardId, TermId, Unavailable};
use jindou_partition::ShardMap;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;

use crate::calls::{AskedTerms, Asking, MOST_BYTES, MOST_TERMS};

/// Bytes of a term that was met, beside its key.
const MET_BYTES: usize = 96;
/// Longer keys are not remembered.
const LONGEST_MET: usize = 1 << 10;

/// The terms of a graph at one snapshot as a node sees them, of which it has a part itself.
pub struct DealtTerms {
    map: ShardMap,
    here: NodeId,
    own: Arc<dyn TermPart>,
    /// By node; none of this one, and of those that are lost.
    others: Vec<Option<AskedTerms>>,
    /// Terms of others that were asked for lately: predicates and constants come again and again.
    met: Arc<Mutex<Met>>,
}

impl DealtTerms {
    /// The terms that the nodes of a map have, as one of them sees them: `own` is its part, and `others` are those
    /// of the other nodes, by number. Up to `met_bytes` of terms that it asked for are remembered, if the pool
    /// has as many.
    ///
    /// # Panics
    /// If there are not as many `others` as nodes.
    #[must_use]
    pub fn new(
        (map, here): (&ShardMap, NodeId),
        own: Arc<dyn TermPart>,
        others: Vec<Option<AskedTerms>>,
        met_bytes: usize,
        pool: Option<&Arc<MemoryPool>>,
    ) -> Self {
        assert_eq!(others.len(), map.nodes().len(), "each node has a part");
        let reserved = match pool {
            None => Some(None),
            Some(pool) => pool.reserve(met_bytes as u64).map(Some),
        };
        let met = Met {
            most_bytes: reserved.as_ref().map_or(0, |_| met_bytes),
            _reserved: reserved.flatten(),
            ..Met::default()
        };
        Self {
            map: map.clone(),
            here,
            own,
            others,
            met: Arc::new(Mutex::new(met)),
        }
    }

    /// The same terms, asked for by other connections; what is remembered is the same, too.
    ///
    /// # Panics
    /// If there are not as many `others` as nodes.
    #[must_use]
    pub fn by(&self, others: Vec<Option<AskedTerms>>) -> Self {
        assert_eq!(others.len(), self.others.len(), "each node has a part");
        Self {
            map: self.map.clone(),
            here: self.here,
            own: Arc::clone(&self.own),
            others,
            met: Arc::clone(&self.met),
        }
    }

    /// The node that a shard's terms are asked for; none for this one.
    fn asked(&self, shard: ShardId) -> Option<NodeId> {
        let node = self.map.holder(shard);
        (node != self.here).then_some(node)
    }

    /// The node that is asked for the key of an id, and the id's shard there; none if it is here.
    fn asked_for_key(&self, id: TermId) -> Option<(NodeId, ShardId)> {
        let shard = self.map.shards().owner(id);
        let node = self.asked(shard)?;
        (!self.own.has_key(id)).then_some((node, shard))
    }

    /// # Errors
    /// That the shard is lost with its node.
    fn node(&self, node: NodeId, shard: ShardId) -> Result<&AskedTerms, Unavailable> {
        let there = self.others[node.0 as usize].as_ref();
        there.ok_or(Unavailable::Never(shard))
    }
}

/// What goes to one node.
struct Part<T> {
    node: NodeId,
    /// That of the first.
    shard: ShardId,
    asked: Vec<T>,
}

/// The part of a node among those of a batch.
fn part_of<T>(parts: &mut Vec<Part<T>>, node: NodeId, shard: ShardId) -> usize {
    let known = parts.iter().position(|part| part.node == node);
    known.unwrap_or_else(|| {
        parts.push(Part {
            node,
            shard,
            asked: Vec::new(),
        });
        parts.len() - 1
    })
}

/// Why a batch is not answered: what is lost comes before what is late.
fn worse(one: Option<Unavailable>, other: Unavailable) -> Option<Unavailable> {
    match one {
        None | Some(Unavailable::NotNow) => Some(other),
        worst => worst,
    }
}

impl TermSource for DealtTerms {
    fn epoch(&self) -> IdEpoch {
        self.own.epoch()
    }

    fn has(&self, id: TermId) -> bool {
        self.own.has(id)
    }

    fn is_here(&self) -> bool {
        false
    }

    fn text_order(&self) -> Option<Arc<dyn TextOrder>> {
        self.own.text_order()
    }

    /// Those that are lost, or late, are asked for again by whoever reads them.
    fn expect(&self, ids: &[TermId]) {
        let most = self.met.lock().most_bytes / 4;
        let (mut keys, mut done, mut bytes) = (Keys::default(), 0, 0);
        while done < ids.len() && bytes < most {
            keys.clear();
            match self.push_keys(&ids[done..], most - bytes, &mut keys) {
                Ok(read) => done += read,
                Err(_) => break,
            }
            bytes += keys.bytes() + keys.len() * MET_BYTES;
        }
    }

    /// As with ids: they are looked for again.
    fn expect_keys(&self, keys: &Keys) {
        let mut found = Vec::with_capacity(keys.len());
        let _is_there = self.lookup_keys(keys, &mut found).is_ok();
    }

    fn push_key(&self, id: TermId, key: &mut Vec<u8>) -> Result<(), Unavailable> {
        let mut keys = Keys::default();
        self.push_keys(&[id], 1, &mut keys)?;
        key.extend_from_slice(keys.get(0).0);
        Ok(())
    }

    fn lookup(&self, key: &[u8], literal: bool) -> Result<Option<TermId>, Unavailable> {
        let mut keys = Keys::default();
        keys.push(key, KeyKind::of_term(literal));
        let mut ids = Vec::with_capacity(1);
        self.lookup_keys(&keys, &mut ids)?;
        Ok(ids[0])
    }

    fn push_keys(
        &self,
        ids: &[TermId],
        most_bytes: usize,
        keys: &mut Keys,
    ) -> Result<usize, Unavailable> {
        let window = &ids[..ids.len().min(MOST_TERMS)];
        // Those that are met, and where the others are among what is asked.
        let mut known = Keys::default();
        let mut places: FxHashMap<TermId, Found> = FxHashMap::default();
        let mut parts: Vec<Part<TermId>> = Vec::new();
        {
            let mut met = self.met.lock();
            for id in window {
                let Some((node, shard)) = self.asked_for_key(*id) else {
                    continue;
                };
                places.entry(*id).or_insert_with(|| {
                    if let Some(key) = met.key(*id) {
                        known.push(key, KeyKind::of(*id));
                        return Found::Met(known.len() - 1);
                    }
                    let part = part_of(&mut parts, node, shard);
                    parts[part].asked.push(*id);
                    Found::Asked(part, parts[part].asked.len() - 1)
                });
            }
        }
        let room = most_bytes.saturating_sub(keys.bytes()).clamp(1, MOST_BYTES);
        let ask = |part: &Part<TermId>| -> Result<Asking, Unavailable> {
            let node = self.node(part.node, part.shard)?;
            Ok(node.ask_keys(part.shard, &part.asked, room))
        };
        let asking: Vec<_> = parts.iter().map(ask).collect();
        let mut read: Vec<Keys> = Vec::with_capacity(parts.len());
        let mut failed = None;
        // All are waited for: what comes now is there when the others are asked again.
        for (part, asking) in parts.iter().zip(asking) {
            let mut of_part = Keys::default();
            let answered = asking.and_then(|asking| {
                let node = self.node(part.node, part.shard)?;
                node.keys(asking, &part.asked, &mut of_part)
            });
            if let Err(why) = answered {
                failed = worse(failed, why);
            }
            read.push(of_part);
        }
        {
            let mut met = self.met.lock();
            for (part, read) in parts.iter().zip(&read) {
                for (id, (key, kind)) in part.asked.iter().zip(read.iter()) {
                    met.note(*id, key, kind);
                }
            }
        }
        if let Some(why @ (Unavailable::Never(_) | Unavailable::Gone)) = failed {
            return Err(why);
        }
        let mut done = 0;
        while done < window.len() && (done == 0 || keys.bytes() < most_bytes) {
            let found = places.get(&window[done]);
            let key = match found {
                None => {
                    let is_own = |id: &&TermId| !places.contains_key(id);
                    let run = window[done..].iter().take_while(is_own).count();
                    let of_run = &window[done..done + run];
                    match self.own.push_keys(of_run, most_bytes, keys) {
                        Err(_) if done > 0 => break,
                        added => done += added?,
                    }
                    continue;
                }
                Some(Found::Met(number)) => Some(known.get(*number)),
                Some(Found::Asked(part, number)) => {
                    (*number < read[*part].len()).then(|| read[*part].get(*number))
                }
            };
            let Some((key, kind)) = key else { break };
            keys.push(key, kind);
            done += 1;
        }
        match (done, failed) {
            (0, Some(why)) => Err(why),
            (0, None) if !window.is_empty() => Err(Unavailable::NotNow),
            _ => Ok(done),
        }
    }

    fn lookup_keys(&self, keys: &Keys, ids: &mut Vec<Option<TermId>>) -> Result<(), Unavailable> {
        let first = ids.len();
        ids.resize(first + keys.len(), None);
        let found = self.find(keys, &mut ids[first..]);
        if found.is_err() {
            ids.truncate(first);
        }
        found
    }
}

impl DealtTerms {
    /// Puts the ids of `keys` to their places, some messages' worth after the other.
    fn find(&self, keys: &Keys, ids: &mut [Option<TermId>]) -> Result<(), Unavailable> {
        let mut begin = 0;
        while begin < keys.len() {
            let mut bytes = 0;
            let fits = |number: &usize| {
                bytes += keys.get(*number).0.len();
                *number == begin || bytes <= MOST_BYTES
            };
            let most = keys.len().min(begin + MOST_TERMS);
            let end = begin + (begin..most).take_while(fits).count();
            self.find_some(keys, begin..end, ids)?;
            begin = end;
        }
        Ok(())
    }

    fn find_some(
        &self,
        keys: &Keys,
        numbers: std::ops::Range<usize>,
        ids: &mut [Option<TermId>],
    ) -> Result<(), Unavailable> {
        let mut unknown = Vec::new();
        {
            let mut met = self.met.lock();
            for number in numbers {
                let (key, kind) = keys.get(number);
                ids[number] = match kind {
                    KeyKind::None => continue,
                    KeyKind::Node => self.own.find_name(key),
                    KeyKind::Literal => None,
                };
                if ids[number].is_none() {
                    let hash = hash_of_key(key);
                    ids[number] = met.id(hash, key, kind);
                    if ids[number].is_none() {
                        unknown.push((number, hash, kind == KeyKind::Literal));
                    }
                }
            }
        }
        let mut candidates = Vec::with_capacity(unknown.len());
        self.push_candidates(&unknown, &mut candidates)?;
        self.compare(keys, &candidates, ids)
    }

    /// Appends number and id of what some keys may be, which are given by number, hash and whether they are literals'.
    fn push_candidates(
        &self,
        unknown: &[(usize, u64, bool)],
        candidates: &mut Vec<(usize, TermId)>,
    ) -> Result<(), Unavailable> {
        let mut parts: Vec<Part<(usize, u64, bool)>> = Vec::new();
        let mut found = Vec::new();
        for (number, hash, is_literal) in unknown {
            let shard = self.map.shards().of_hash(*hash);
            if let Some(node) = self.asked(shard) {
                let part = part_of(&mut parts, node, shard);
                parts[part].asked.push((*number, *hash, *is_literal));
            } else {
                self.own.push_candidates(*hash, *is_literal, &mut found)?;
                candidates.extend(found.drain(..).map(|id| (*number, id)));
            }
        }
        let mut failed = None;
        // One round, unless an answer would be too large: then the rest is asked for.
        while !parts.is_empty() {
            let ask = |part: &Part<(usize, u64, bool)>| -> Result<Asking, Unavailable> {
                let asked = part.asked.iter();
                let asked: Vec<_> = asked.map(|(_, hash, literal)| (*hash, *literal)).collect();
                let node = self.node(part.node, part.shard)?;
                Ok(node.ask_candidates(part.shard, &asked))
            };
            let asking: Vec<_> = parts.iter().map(ask).collect();
            for (part, asking) in parts.iter_mut().zip(asking) {
                let answered = asking.and_then(|asking| {
                    let node = self.node(part.node, part.shard)?;
                    node.candidates(asking, part.asked.len())
                });
                match answered {
                    Ok((found, done)) => {
                        let of_row = |(row, id): (u32, _)| (part.asked[row as usize].0, id);
                        candidates.extend(found.into_iter().map(of_row));
                        part.asked.drain(..done);
                    }
                    Err(why) => {
                        failed = worse(failed, why);
                        part.asked.clear();
                    }
                }
            }
            parts.retain(|part| !part.asked.is_empty());
        }
        failed.map_or(Ok(()), Err)
    }

    /// Reads the keys of candidates, and puts the ids of those that are equal to the keys they are given for to
    /// their places.
    fn compare(
        &self,
        keys: &Keys,
        candidates: &[(usize, TermId)],
        ids: &mut [Option<TermId>],
    ) -> Result<(), Unavailable> {
        let all: Vec<TermId> = candidates.iter().map(|(_, id)| *id).collect();
        let (mut read, mut done) = (Keys::default(), 0);
        while done < all.len() {
            read.clear();
            let added = self.push_keys(&all[done..], MOST_BYTES, &mut read)?;
            let mut met = self.met.lock();
            let of_read = candidates[done..].iter().zip(read.iter());
            for ((number, id), found) in of_read {
                if keys.get(*number) == found {
                    ids[*number] = Some(*id);
                    // Which id it has may be asked for elsewhere than its key.
                    met.note(*id, found.0, found.1);
                }
            }
            done += added;
        }
        Ok(())
    }
}

/// Where the key of a term is found.
#[derive(Clone, Copy)]
enum Found {
    /// Among those that were met.
    Met(usize),
    /// Among those that are asked for: in which part, and its place there.
    Asked(usize, usize),
}

/// Terms that were met: of those of two generations, the younger one grows until it has half of the bytes, and
/// takes over what is asked for again of the older one, which goes then.
#[derive(Default)]
struct Met {
    young: Generation,
    old: Generation,
    most_bytes: usize,
    _reserved: Option<Reservation>,
}

#[derive(Default)]
struct Generation {
    keys: Keys,
    ids: Vec<TermId>,
    by_id: FxHashMap<TermId, u32>,
    /// By the hash of the key: of keys that share one the last.
    by_key: FxHashMap<u64, u32>,
}

impl Generation {
    fn bytes(&self) -> usize {
        self.keys.bytes() + self.ids.len() * MET_BYTES
    }

    fn key(&self, id: TermId) -> Option<&[u8]> {
        let place = *self.by_id.get(&id)?;
        Some(self.keys.get(place as usize).0)
    }

    fn id(&self, hash: u64, key: &[u8], kind: KeyKind) -> Option<TermId> {
        let place = *self.by_key.get(&hash)? as usize;
        (self.keys.get(place) == (key, kind)).then(|| self.ids[place])
    }
}

impl Met {
    fn key(&mut self, id: TermId) -> Option<&[u8]> {
        if self.young.by_id.contains_key(&id) {
            return self.young.key(id);
        }
        let key = self.old.key(id)?.to_vec();
        self.note(id, &key, KeyKind::of(id));
        self.young.key(id).or_else(|| self.old.key(id))
    }

    fn id(&mut self, hash: u64, key: &[u8], kind: KeyKind) -> Option<TermId> {
        if let Some(id) = self.young.id(hash, key, kind) {
            return Some(id);
        }
        let id = self.old.id(hash, key, kind)?;
        self.note(id, key, kind);
        Some(id)
    }

    /// Notes that a term has this key.
    fn note(&mut self, id: TermId, key: &[u8], kind: KeyKind) {
        let is_short = key.len() <= LONGEST_MET.min(self.most_bytes / 4);
        if !is_short || self.young.by_id.contains_key(&id) {
            return;
        }
        if self.young.bytes() + key.len() + MET_BYTES > self.most_bytes / 2 {
            self.old = std::mem::take(&mut self.young);
        }
        let young = &mut self.young;
        let place = young.ids.len() as u32;
        young.keys.push(key, kind);
        young.ids.push(id);
        young.by_id.insert(id, place);
        young.by_key.insert(hash_of_key(key), place);
    }
}

#[cfg(test)]
mod tests;
