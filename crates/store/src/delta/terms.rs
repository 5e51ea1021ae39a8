//! Terms that came after the bulk load: which id has this key, and which key has this id?
//!
//! One list for all snapshots of a generation. It only grows: a snapshot knows how many terms
//! there were when it was made and takes no notice of later ones.

use std::sync::atomic::{AtomicUsize, Ordering};

use hashbrown::HashTable;
use jindou_model::{PredicateId, ShardId, TermId};
use parking_lot::RwLock;
use rustc_hash::FxHashMap;

use crate::{Base, StoreError};

/// The index of a list of strings is cut in so many parts, so that one that grows holds up a
/// small part of the readers for a short time.
const INDEX_SHARDS: usize = 64;

/// How many of the appended terms a snapshot knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TermCounts {
    /// IRIs and blank nodes.
    pub vertices: u64,
    /// Literals of the dictionary.
    pub literals: u64,
    /// Predicates.
    pub predicates: u64,
}

/// Distinct strings, numbered in order of arrival. One thread adds, many read.
struct Strings {
    keys: boxcar::Vec<Box<[u8]>>,
    /// Hash and number.
    index: Vec<RwLock<HashTable<(u64, u32)>>>,
    bytes: AtomicUsize,
}

impl Strings {
    fn new() -> Self {
        Self {
            keys: boxcar::Vec::new(),
            index: (0..INDEX_SHARDS).map(|_| RwLock::default()).collect(),
            bytes: AtomicUsize::new(0),
        }
    }

    fn len(&self) -> u64 {
        self.keys.count() as u64
    }

    fn shard(&self, hash: u64) -> &RwLock<HashTable<(u64, u32)>> {
        &self.index[(hash >> 58) as usize % INDEX_SHARDS]
    }

    fn find(&self, hash: u64, key: &[u8]) -> Option<u64> {
        let shard = self.shard(hash).read();
        let is_it = |entry: &(u64, u32)| entry.0 == hash && *self.keys[entry.1 as usize] == *key;
        shard.find(hash, is_it).map(|entry| u64::from(entry.1))
    }

    /// Adds a key that is not there.
    fn push(&self, hash: u64, key: &[u8]) -> Result<u64, StoreError> {
        let number = self.keys.push(key.into());
        let short = u32::try_from(number).map_err(|_| StoreError::TooLarge {
            reason: "2^32 terms were added since the last merge".to_owned(),
        })?;
        let mut shard = self.shard(hash).write();
        shard.insert_unique(hash, (hash, short), |entry| entry.0);
        self.bytes.fetch_add(key.len() + 48, Ordering::Relaxed);
        Ok(number as u64)
    }

    fn get(&self, number: u64) -> &[u8] {
        &self.keys[number as usize]
    }
}

/// The terms that a generation's base does not have.
pub(crate) struct AppendedTerms {
    vertices: Strings,
    literals: Strings,
    predicates: Strings,
    /// The term of each appended predicate.
    predicate_terms: boxcar::Vec<TermId>,
    /// Appended predicates of vertices, by local id.
    vertex_predicates: RwLock<FxHashMap<u64, PredicateId>>,
}

impl AppendedTerms {
    pub(crate) fn new() -> Self {
        Self {
            vertices: Strings::new(),
            literals: Strings::new(),
            predicates: Strings::new(),
            predicate_terms: boxcar::Vec::new(),
            vertex_predicates: RwLock::default(),
        }
    }

    /// All there are.
    pub(crate) fn counts(&self) -> TermCounts {
        TermCounts {
            vertices: self.vertices.len(),
            literals: self.literals.len(),
            predicates: self.predicate_terms.count() as u64,
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        [&self.vertices, &self.literals, &self.predicates]
            .iter()
            .map(|strings| strings.bytes.load(Ordering::Relaxed))
            .sum()
    }

    /// The number of a vertex among the first `known`.
    pub(crate) fn find_vertex(&self, key: &[u8], known: u64) -> Option<u64> {
        self.vertices
            .find(jindou_dictionary::hash(key), key)
            .filter(|number| *number < known)
    }

    /// The number of a literal among the first `known`.
    pub(crate) fn find_literal(&self, key: &[u8], known: u64) -> Option<u64> {
        self.literals
            .find(jindou_dictionary::hash(key), key)
            .filter(|number| *number < known)
    }

    /// The number of a predicate among the first `known`.
    pub(crate) fn find_predicate(&self, iri: &[u8], known: u64) -> Option<u64> {
        self.predicates
            .find(jindou_dictionary::hash(iri), iri)
            .filter(|number| *number < known)
    }

    pub(crate) fn vertex_key(&self, number: u64) -> &[u8] {
        self.vertices.get(number)
    }

    pub(crate) fn literal_key(&self, number: u64) -> &[u8] {
        self.literals.get(number)
    }

    pub(crate) fn predicate_key(&self, number: u64) -> &[u8] {
        self.predicates.get(number)
    }

    pub(crate) fn predicate_term(&self, number: u64) -> TermId {
        self.predicate_terms[number as usize]
    }

    /// The appended predicate that a vertex is; perhaps one that came later than a snapshot.
    pub(crate) fn predicate_of_vertex(&self, local: u64) -> Option<PredicateId> {
        if self.predicate_terms.is_empty() {
            return None;
        }
        self.vertex_predicates.read().get(&local).copied()
    }

    /// The id of a vertex, a new one if neither the base nor this list has it.
    pub(crate) fn intern_node(&self, base: &Base, key: &[u8]) -> Result<TermId, StoreError> {
        if let Some(known) = base.find_node(key) {
            return Ok(known);
        }
        let hash = jindou_dictionary::hash(key);
        if let Some(number) = self.vertices.find(hash, key) {
            return Ok(vertex(base, number));
        }
        // A predicate that becomes a vertex keeps its id until the next merge.
        if let Some(number) = self.predicates.find(hash, key) {
            return Ok(self.predicate_term(number));
        }
        Ok(vertex(base, self.vertices.push(hash, key)?))
    }

    pub(crate) fn intern_literal(&self, base: &Base, key: &[u8]) -> Result<TermId, StoreError> {
        if let Some(known) = base.find_literal(key) {
            return Ok(known);
        }
        let hash = jindou_dictionary::hash(key);
        let number = match self.literals.find(hash, key) {
            Some(number) => number,
            None => self.literals.push(hash, key)?,
        };
        Ok(TermId::literal(ShardId(0), base.literal_count() + number))
    }

    pub(crate) fn intern_predicate(
        &self,
        base: &Base,
        iri: &str,
    ) -> Result<PredicateId, StoreError> {
        if let Some(known) = base.find_predicate(iri) {
            return Ok(known);
        }
        let key = iri.as_bytes();
        let hash = jindou_dictionary::hash(key);
        let id = |number: u64| PredicateId((base.predicate_count() as u64 + number) as u32);
        if let Some(number) = self.predicates.find(hash, key) {
            return Ok(id(number));
        }
        let as_vertex = base.find_node(key).or_else(|| {
            let number = self.vertices.find(hash, key)?;
            Some(vertex(base, number))
        });
        let number = self.predicates.push(hash, key)?;
        if let Some(term) = as_vertex {
            let mut known = self.vertex_predicates.write();
            known.insert(term.local(), id(number));
        }
        let term = as_vertex.unwrap_or_else(|| TermId::predicate(id(number)));
        self.predicate_terms.push(term);
        Ok(id(number))
    }
}

fn vertex(base: &Base, number: u64) -> TermId {
    TermId::vertex(ShardId(0), base.vertex_count() + number)
}
