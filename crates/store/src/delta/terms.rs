//! Terms that came after the bulk load: which id has this key, and which key has this id?
//!
//! One list for all snapshots of a generation. It only grows: a snapshot knows how many terms
//! there were when it was made and takes no notice of later ones. The terms of a transaction that
//! is not in the log yet are in a pending list of its own, numbered after those of the shared list;
//! they move into the shared list with the commit, or are dropped with the transaction.

use std::sync::atomic::{AtomicUsize, Ordering};

use hashbrown::HashTable;
use jindou_model::{PredicateId, TermId};
use parking_lot::RwLock;
use rustc_hash::FxHashMap;

use crate::StoreError;
use crate::places::{Place, Places};
use crate::tables::TermTables;

/// The index of a shared list of strings is cut in so many parts, so that one that grows holds up
/// a small part of the readers for a short time.
const INDEX_SHARDS: usize = 64;

/// What a term costs beside its key: its place in the list and in the index.
const TERM_BYTES: usize = 48;

/// How many terms a snapshot knows, or a base has.
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
    fn new(shards: usize) -> Self {
        Self {
            keys: boxcar::Vec::new(),
            index: (0..shards).map(|_| RwLock::default()).collect(),
            bytes: AtomicUsize::new(0),
        }
    }

    fn len(&self) -> u64 {
        self.keys.count() as u64
    }

    fn shard(&self, hash: u64) -> &RwLock<HashTable<(u64, u32)>> {
        &self.index[(hash >> 58) as usize % self.index.len()]
    }

    fn find(&self, hash: u64, key: &[u8], living: impl Fn(u64) -> bool) -> Option<u64> {
        let shard = self.shard(hash).read();
        let is_it = |entry: &(u64, u32)| {
            entry.0 == hash && *self.keys[entry.1 as usize] == *key && living(entry.1.into())
        };
        shard.find(hash, is_it).map(|entry| u64::from(entry.1))
    }

    /// Adds a key that is not there.
    fn push(&self, hash: u64, key: Box<[u8]>) -> u64 {
        let bytes = key.len() + TERM_BYTES;
        let number = self.keys.push(key);
        let short = u32::try_from(number).expect("the snapshot bounds the number of terms");
        let mut shard = self.shard(hash).write();
        shard.insert_unique(hash, (hash, short), |entry| entry.0);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        number as u64
    }

    fn get(&self, number: u64) -> &[u8] {
        &self.keys[number as usize]
    }
}

/// Terms that a generation's base does not have: the list that its snapshots share, or the pending
/// one of a transaction. Numbers are those of the terms, whichever list has them.
pub(crate) struct AppendedTerms {
    /// Terms of the base and the lists before this one.
    first: TermCounts,
    vertices: Strings,
    literals: Strings,
    /// The vertex that each appended predicate is.
    predicate_terms: boxcar::Vec<TermId>,
    /// Appended predicates by the number of their vertex.
    vertex_predicates: RwLock<FxHashMap<u64, PredicateId>>,
    /// Where the literals lie among those of the bulk load, by their places in the list.
    literal_places: Places,
}

impl AppendedTerms {
    /// The list that many threads read, behind so many terms of a base.
    pub(crate) fn shared(first: TermCounts) -> Self {
        Self::with_shards(first, INDEX_SHARDS)
    }

    /// The list of one transaction that begins with so many terms before it.
    pub(crate) fn pending(first: TermCounts) -> Self {
        Self::with_shards(first, 1)
    }

    fn with_shards(first: TermCounts, shards: usize) -> Self {
        Self {
            first,
            vertices: Strings::new(shards),
            literals: Strings::new(shards),
            predicate_terms: boxcar::Vec::new(),
            vertex_predicates: RwLock::default(),
            literal_places: Places::default(),
        }
    }

    /// Terms of the base and the lists before this one.
    pub(crate) fn first(&self) -> TermCounts {
        self.first
    }

    /// All there are, with those before this list.
    pub(crate) fn counts(&self) -> TermCounts {
        TermCounts {
            vertices: self.first.vertices + self.vertices.len(),
            literals: self.first.literals + self.literals.len(),
            predicates: self.first.predicates + self.predicate_terms.count() as u64,
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        [&self.vertices, &self.literals]
            .iter()
            .map(|strings| strings.bytes.load(Ordering::Relaxed))
            .sum::<usize>()
            + self.literal_places.bytes()
    }

    /// The number of a vertex for which `living` holds.
    pub(crate) fn find_vertex(
        &self,
        hash: u64,
        key: &[u8],
        living: impl Fn(u64) -> bool,
    ) -> Option<u64> {
        let first = self.first.vertices;
        let found = self.vertices.find(hash, key, |place| living(first + place));
        found.map(|place| first + place)
    }

    /// The number of a literal for which `living` holds.
    pub(crate) fn find_literal(
        &self,
        hash: u64,
        key: &[u8],
        living: impl Fn(u64) -> bool,
    ) -> Option<u64> {
        let first = self.first.literals;
        let found = self.literals.find(hash, key, |place| living(first + place));
        found.map(|place| first + place)
    }

    pub(crate) fn vertex_key(&self, number: u64) -> &[u8] {
        self.vertices.get(number - self.first.vertices)
    }

    pub(crate) fn literal_key(&self, number: u64) -> &[u8] {
        self.literals.get(number - self.first.literals)
    }

    /// Where a literal of this list lies among those of the bulk load; `None` if a block of their
    /// table is damaged.
    pub(crate) fn literal_place(&self, number: u64, tables: &TermTables) -> Option<Place> {
        let place = number - self.first.literals;
        self.literal_places.get(place).or_else(|| {
            let found = tables.search().place_of(self.literal_key(number)).ok()?;
            self.literal_places.set(place, found);
            Some(found)
        })
    }

    /// True if somebody asked for the place of a literal.
    pub(crate) fn places_were_asked(&self) -> bool {
        self.literal_places.were_asked()
    }

    /// The vertex that a predicate of this list is.
    pub(crate) fn predicate_term(&self, predicate: PredicateId) -> TermId {
        self.predicate_terms[predicate.index() - self.first.predicates as usize]
    }

    /// The predicate of this list that a vertex is; perhaps one that came later than a snapshot.
    pub(crate) fn predicate_of_vertex(&self, number: u64) -> Option<PredicateId> {
        if self.predicate_terms.is_empty() {
            return None;
        }
        self.vertex_predicates.read().get(&number).copied()
    }

    /// Adds a vertex that no list has, and returns its number.
    pub(crate) fn push_vertex(&self, hash: u64, key: Box<[u8]>) -> u64 {
        self.first.vertices + self.vertices.push(hash, key)
    }

    /// Adds a literal that no list has, and returns its number.
    pub(crate) fn push_literal(&self, hash: u64, key: Box<[u8]>) -> u64 {
        self.first.literals + self.literals.push(hash, key)
    }

    /// Makes a vertex the next predicate.
    pub(crate) fn push_predicate(&self, term: TermId) {
        let id = PredicateId(self.counts().predicates as u32);
        self.vertex_predicates.write().insert(term.number(), id);
        self.predicate_terms.push(term);
    }

    /// Adds copies of another list's terms, from the first that this one lacks up to `known`.
    pub(crate) fn append(&self, from: &Self, known: TermCounts) {
        let mine = self.counts();
        for number in mine.vertices..known.vertices {
            let key = from.vertex_key(number);
            self.push_vertex(jindou_dictionary::hash(key), key.into());
        }
        for number in mine.literals..known.literals {
            let key = from.literal_key(number);
            self.push_literal(jindou_dictionary::hash(key), key.into());
        }
        for number in mine.predicates..known.predicates {
            self.push_predicate(from.predicate_term(PredicateId(number as u32)));
        }
    }
}

/// Refuses the term after the last that a list can number.
pub(crate) fn check_count(appended: u64) -> Result<(), StoreError> {
    match u32::try_from(appended) {
        Ok(_) => Ok(()),
        Err(_) => Err(StoreError::TooLarge {
            reason: "2^32 terms were added since the last merge".to_owned(),
        }),
    }
}
