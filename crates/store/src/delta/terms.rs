//! Terms that came after the bulk load: which id has this key, and which key has this id?
//!
//! One list for all snapshots of a generation. It only grows: a snapshot knows how many terms
//! there were when it was made and takes no notice of later ones. The terms of a transaction that
//! is not in the log yet are in a [pending](super::pending) list of its own.
//!
//! The *place* of a term is how many came before it, those of the base included. It is the number of a
//! literal; a vertex has a number of its own, in an [extent](super::extents).

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use hashbrown::HashTable;
use jindou_model::{PredicateId, TermId};
use parking_lot::{Mutex, RwLock};
use rustc_hash::FxHashMap;

use super::extents::OpenExtents;
use super::pending::PendingTerms;
use crate::StoreError;

/// The index of a shared list of strings is cut in so many parts, so that one that grows holds up
/// a small part of the readers for a short time.
const INDEX_SHARDS: usize = 64;

/// What a term costs beside its key: its place in the list and in the index.
const TERM_BYTES: usize = 48;

/// How many terms a snapshot knows, or a base has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TermCounts {
    /// IRIs and blank nodes; where a base left numbers out, these count, too.
    pub vertices: u64,
    /// The number behind the last that a vertex has, or that is set aside for one.
    pub numbers: u64,
    /// Literals of the dictionary.
    pub literals: u64,
    /// Predicates.
    pub predicates: u64,
}

impl TermCounts {
    /// The numbers given so far, which do not depend on what was merged.
    pub(super) fn given(self) -> GivenNumbers {
        GivenNumbers {
            vertices: self.numbers,
            literals: self.literals,
            predicates: self.predicates,
        }
    }
}

/// The number behind the last of each kind of terms that is given or set aside.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GivenNumbers {
    /// Of IRIs and blank nodes.
    pub vertices: u64,
    /// Of literals of the dictionary.
    pub literals: u64,
    /// Of predicates.
    pub predicates: u64,
}

/// Distinct strings, in order of arrival. One thread adds, many read.
pub(super) struct Strings {
    keys: boxcar::Vec<Box<[u8]>>,
    /// Hash and place in the list.
    index: Vec<RwLock<HashTable<(u64, u32)>>>,
    bytes: AtomicUsize,
}

impl Strings {
    pub(super) fn new(shards: usize) -> Self {
        Self {
            keys: boxcar::Vec::new(),
            index: (0..shards).map(|_| RwLock::default()).collect(),
            bytes: AtomicUsize::new(0),
        }
    }

    pub(super) fn len(&self) -> u64 {
        self.keys.count() as u64
    }

    /// Bytes of the keys, and what these cost beside.
    pub(super) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    fn shard(&self, hash: u64) -> &RwLock<HashTable<(u64, u32)>> {
        &self.index[(hash >> 58) as usize % self.index.len()]
    }

    pub(super) fn find(&self, hash: u64, key: &[u8], living: impl Fn(u64) -> bool) -> Option<u64> {
        let shard = self.shard(hash).read();
        let is_it = |entry: &(u64, u32)| {
            entry.0 == hash && *self.keys[entry.1 as usize] == *key && living(entry.1.into())
        };
        shard.find(hash, is_it).map(|entry| u64::from(entry.1))
    }

    /// Gives `take` the places of the keys of a hash.
    pub(super) fn each_of_hash(&self, hash: u64, mut take: impl FnMut(u64)) {
        let shard = self.shard(hash).read();
        let of_hash = shard.iter_hash(hash).filter(|entry| entry.0 == hash);
        of_hash.for_each(|entry| take(entry.1.into()));
    }

    /// Adds a key that is not there.
    pub(super) fn push(&self, hash: u64, key: Box<[u8]>) {
        let bytes = key.len() + TERM_BYTES;
        let place = self.keys.push(key);
        let short = u32::try_from(place).expect("the snapshot bounds the number of terms");
        let mut shard = self.shard(hash).write();
        shard.insert_unique(hash, (hash, short), |entry| entry.0);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn get(&self, place: u64) -> &[u8] {
        &self.keys[place as usize]
    }
}

/// Numbers that are mapped together.
const PAGE: usize = 1024;
type Page = Box<[AtomicU32; PAGE]>;

/// The numbers of vertices by place, and the other way, both counted from the first of the list.
#[derive(Default)]
struct Numbers {
    of_place: boxcar::Vec<u32>,
    /// By number, in pages where there are some, one more than the place; 0 where it has none.
    place_of: boxcar::Vec<OnceLock<Page>>,
}

impl Numbers {
    fn push(&self, number: u64) {
        let short = u32::try_from(number).expect("the snapshot bounds the numbers");
        let place = self.of_place.push(short);
        let (page, at) = (number as usize / PAGE, number as usize % PAGE);
        while self.place_of.count() <= page {
            self.place_of.push(OnceLock::new());
        }
        let page =
            self.place_of[page].get_or_init(|| Box::new([const { AtomicU32::new(0) }; PAGE]));
        page[at].store(place as u32 + 1, Ordering::Release);
    }

    #[inline]
    fn place_of(&self, number: u64) -> Option<u64> {
        let number = usize::try_from(number).ok()?;
        let page = self.place_of.get(number / PAGE)?.get()?;
        let place = page[number % PAGE].load(Ordering::Acquire);
        u64::from(place).checked_sub(1)
    }

    /// To within the pages that are not full.
    fn bytes(&self) -> usize {
        self.of_place.count() * (size_of::<(u32, bool)>() + size_of::<u32>())
    }
}

/// Terms that a generation's base does not have, in the list that its snapshots share.
pub(crate) struct AppendedTerms {
    /// Terms of the base.
    first: TermCounts,
    vertices: Strings,
    numbers: Numbers,
    literals: Strings,
    /// The vertex that each appended predicate is.
    predicate_terms: boxcar::Vec<TermId>,
    /// Appended predicates by the number of their vertex.
    vertex_predicates: RwLock<FxHashMap<u64, PredicateId>>,
    /// Where the next vertices get their numbers.
    pub(super) extents: Mutex<OpenExtents>,
}

impl AppendedTerms {
    /// A list behind so many terms of a base.
    pub(crate) fn behind(first: TermCounts) -> Self {
        Self {
            first,
            vertices: Strings::new(INDEX_SHARDS),
            numbers: Numbers::default(),
            literals: Strings::new(INDEX_SHARDS),
            predicate_terms: boxcar::Vec::new(),
            vertex_predicates: RwLock::default(),
            extents: Mutex::default(),
        }
    }

    /// How many vertices, literals and predicates there are, with those of the base.
    fn places(&self) -> [u64; 3] {
        [
            self.first.vertices + self.vertices.len(),
            self.first.literals + self.literals.len(),
            self.first.predicates + self.predicate_terms.count() as u64,
        ]
    }

    pub(crate) fn bytes(&self) -> usize {
        let strings = self.vertices.bytes() + self.literals.bytes();
        strings + self.numbers.bytes()
    }

    /// The number of a vertex, of which `living` holds with its place and number.
    pub(crate) fn find_vertex(
        &self,
        hash: u64,
        key: &[u8],
        living: impl Fn(u64, u64) -> bool,
    ) -> Option<u64> {
        let first = self.first.vertices;
        let is_living = |place| living(first + place, self.vertex_number(first + place));
        let place = self.vertices.find(hash, key, is_living)?;
        Some(self.vertex_number(first + place))
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

    /// Gives `take` places and numbers of the vertices of a hash.
    pub(super) fn each_vertex_of(&self, hash: u64, mut take: impl FnMut(u64, u64)) {
        let first = self.first.vertices;
        (self.vertices).each_of_hash(hash, |at| take(first + at, self.vertex_number(first + at)));
    }

    /// Gives `take` the numbers of the literals of a hash.
    pub(super) fn each_literal_of(&self, hash: u64, mut take: impl FnMut(u64)) {
        (self.literals).each_of_hash(hash, |place| take(self.first.literals + place));
    }

    /// The place of the vertex of a number; perhaps of one that came later than a snapshot.
    #[inline]
    pub(crate) fn vertex_place(&self, number: u64) -> Option<u64> {
        let number = number.checked_sub(self.first.numbers)?;
        let place = self.numbers.place_of(number)?;
        Some(self.first.vertices + place)
    }

    /// The number of the vertex of a place.
    pub(crate) fn vertex_number(&self, place: u64) -> u64 {
        let place = (place - self.first.vertices) as usize;
        self.first.numbers + u64::from(self.numbers.of_place[place])
    }

    /// The key of the vertex of a place.
    pub(crate) fn vertex_key(&self, place: u64) -> &[u8] {
        self.vertices.get(place - self.first.vertices)
    }

    pub(crate) fn literal_key(&self, number: u64) -> &[u8] {
        self.literals.get(number - self.first.literals)
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

    fn push_vertex(&self, key: &[u8], number: u64) {
        let hash = jindou_dictionary::hash(key);
        // Whoever finds the string finds its number.
        self.numbers.push(number - self.first.numbers);
        self.vertices.push(hash, key.into());
    }

    fn push_literal(&self, key: &[u8]) {
        let hash = jindou_dictionary::hash(key);
        self.literals.push(hash, key.into());
    }

    fn push_predicate(&self, term: TermId) {
        let [_, _, predicates] = self.places();
        let id = PredicateId(predicates as u32);
        self.vertex_predicates.write().insert(term.number(), id);
        self.predicate_terms.push(term);
    }

    /// Adds the terms of a transaction, of which its snapshot knows so many.
    ///
    /// # Panics
    /// If others were added since the transaction's, or extents were closed: ids would change their
    /// meaning.
    pub(super) fn keep(&self, pending: &PendingTerms, known: TermCounts) {
        let first = pending.first();
        assert_eq!(
            self.places(),
            [first.vertices, first.literals, first.predicates],
            "pending terms follow those that are kept"
        );
        let mut extents = self.extents.lock();
        assert_eq!(
            extents.closings,
            pending.closings(),
            "pending numbers are those of open extents"
        );
        for (number, key) in pending.vertices_until(known.vertices) {
            self.push_vertex(key, number);
        }
        for key in pending.literals_by_number(known.literals) {
            self.push_literal(key);
        }
        for term in pending.predicates_until(known.predicates) {
            self.push_predicate(term);
        }
        extents.keep(&pending.extents());
    }

    /// Adds copies of those terms of another generation's list that follow the first `since`, which
    /// are those of this one's base, up to `known`; extents stay open.
    pub(super) fn follow(&self, before: &Self, since: TermCounts, known: TermCounts) {
        for place in since.vertices..known.vertices {
            self.push_vertex(before.vertex_key(place), before.vertex_number(place));
        }
        for number in since.literals..known.literals {
            self.push_literal(before.literal_key(number));
        }
        for number in since.predicates..known.predicates {
            self.push_predicate(before.predicate_term(PredicateId(number as u32)));
        }
        *self.extents.lock() = before.extents.lock().clone();
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
