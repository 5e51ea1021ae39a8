//! The terms that a transaction added and that are not in the log yet: which id has this key, and
//! which key has this id?
//!
//! They follow those that its generation shares. The list only grows, and copies of the transaction's
//! snapshot share it; a copy that adds terms after another one did takes the list for itself. The
//! terms of an operation are numbered as they come, and [anew](super::arrange) before anybody sees
//! them.

use std::sync::atomic::{AtomicU64, Ordering};

use jindou_model::{PredicateId, TermId};
use parking_lot::{Mutex, RwLock};
use rustc_hash::FxHashMap;

use super::extents::{Extent, Extents};
use super::terms::{Strings, TermCounts};

/// What a term costs beside its string: its number, and its place by that.
const NUMBER_BYTES: usize = 32;

/// Strings with numbers.
struct Numbered {
    strings: Strings,
    /// By place in the list.
    numbers: boxcar::Vec<AtomicU64>,
    places: RwLock<PlacesByNumber>,
}

/// The places of the first numbers, as many as were needed.
#[derive(Default)]
struct PlacesByNumber {
    places: FxHashMap<u64, u32>,
    until: u64,
}

impl Numbered {
    fn new() -> Self {
        Self {
            strings: Strings::new(1),
            numbers: boxcar::Vec::new(),
            places: RwLock::default(),
        }
    }

    fn len(&self) -> u64 {
        self.strings.len()
    }

    fn bytes(&self) -> usize {
        self.strings.bytes() + self.len() as usize * NUMBER_BYTES
    }

    fn push(&self, hash: u64, key: &[u8], number: u64) {
        self.numbers.push(AtomicU64::new(number));
        self.strings.push(hash, key.into());
    }

    /// The place of a string whose place and number are `living`.
    fn find(&self, hash: u64, key: &[u8], living: impl Fn(u64, u64) -> bool) -> Option<u64> {
        let is_living = |place| living(place, self.number(place));
        self.strings.find(hash, key, is_living)
    }

    fn number(&self, place: u64) -> u64 {
        self.numbers[place as usize].load(Ordering::Relaxed)
    }

    /// Gives the strings from a place on other numbers.
    fn renumber(&self, first: u64, numbers: &[u64]) {
        let mut known = self.places.write();
        for place in first..known.until {
            known.places.remove(&self.number(place));
        }
        known.until = known.until.min(first);
        for (place, number) in (first..).zip(numbers) {
            self.numbers[place as usize].store(*number, Ordering::Relaxed);
        }
    }

    fn place_of(&self, number: u64) -> Option<u64> {
        {
            let known = self.places.read();
            if known.until == self.len() {
                return known.places.get(&number).copied().map(u64::from);
            }
        }
        let mut known = self.places.write();
        for place in known.until..self.len() {
            known.places.insert(self.number(place), place as u32);
        }
        known.until = self.len();
        known.places.get(&number).copied().map(u64::from)
    }

    /// The first so many strings, with their numbers.
    fn until(&self, count: u64) -> impl Iterator<Item = (u64, &[u8])> {
        (0..count).map(|place| (self.number(place), self.strings.get(place)))
    }
}

/// Predicates that are new, in order.
#[derive(Clone, Default)]
struct Predicates {
    terms: Vec<TermId>,
    /// By the number of the vertex.
    of_vertex: FxHashMap<u64, PredicateId>,
}

/// The terms of one transaction, perhaps with more of a copy's than a snapshot knows.
pub(crate) struct PendingTerms {
    /// Terms before these.
    first: TermCounts,
    vertices: Numbered,
    literals: Numbered,
    predicates: RwLock<Predicates>,
    /// What the vertices filled and opened.
    extents: Mutex<Extents>,
    /// How often extents had been closed before.
    closings: u64,
}

impl PendingTerms {
    /// A list behind so many terms; extents were closed so often.
    pub(super) fn behind(first: TermCounts, closings: u64) -> Self {
        Self {
            first,
            vertices: Numbered::new(),
            literals: Numbered::new(),
            predicates: RwLock::default(),
            extents: Mutex::default(),
            closings,
        }
    }

    /// A list with the terms of this one that a snapshot knows.
    pub(super) fn copied(&self, known: TermCounts) -> Self {
        let copy = Self::behind(self.first, self.closings);
        let parts = [
            (&self.vertices, &copy.vertices, self.vertices_of(known)),
            (&self.literals, &copy.literals, self.literals_of(known)),
        ];
        for (from, to, count) in parts {
            for (number, key) in from.until(count) {
                to.push(jindou_dictionary::hash(key), key, number);
            }
        }
        for term in self.predicates_until(known.predicates) {
            copy.push_predicate(term);
        }
        // Another copy may have filled them further.
        let mut extents = self.extents();
        extents.values_mut().for_each(Extent::fill_up);
        *copy.extents.lock() = extents;
        copy
    }

    fn vertices_of(&self, known: TermCounts) -> u64 {
        known.vertices - self.first.vertices
    }

    fn literals_of(&self, known: TermCounts) -> u64 {
        known.literals - self.first.literals
    }

    /// Terms before those of this list.
    pub(crate) fn first(&self) -> TermCounts {
        self.first
    }

    /// True if a snapshot that knows so many terms knows all of these.
    pub(super) fn are_all_of(&self, known: TermCounts) -> bool {
        self.vertices.len() == self.vertices_of(known)
            && self.literals.len() == self.literals_of(known)
            && self.predicates.read().terms.len() as u64 == known.predicates - self.first.predicates
    }

    pub(super) fn closings(&self) -> u64 {
        self.closings
    }

    pub(super) fn extents(&self) -> Extents {
        self.extents.lock().clone()
    }

    /// Works on what the transaction filled and opened.
    pub(super) fn with_extents<T>(&self, work: impl FnOnce(&mut Extents) -> T) -> T {
        work(&mut self.extents.lock())
    }

    pub(crate) fn bytes(&self) -> usize {
        self.vertices.bytes() + self.literals.bytes()
    }

    /// Gives `take` places and numbers of the vertices, or the literals, of a hash.
    pub(super) fn each_of(&self, hash: u64, is_literal: bool, mut take: impl FnMut(u64, u64)) {
        let (of_kind, first) = match is_literal {
            false => (&self.vertices, self.first.vertices),
            true => (&self.literals, self.first.literals),
        };
        let strings = &of_kind.strings;
        strings.each_of_hash(hash, |place| take(first + place, of_kind.number(place)));
    }

    /// The number of a vertex, of which `living` holds with its place and number.
    pub(crate) fn find_vertex(
        &self,
        hash: u64,
        key: &[u8],
        living: impl Fn(u64, u64) -> bool,
    ) -> Option<u64> {
        let first = self.first.vertices;
        let is_living = |place, number| living(first + place, number);
        let place = self.vertices.find(hash, key, is_living)?;
        Some(self.vertices.number(place))
    }

    /// The number of a literal, of which `living` holds with its place and number.
    pub(crate) fn find_literal(
        &self,
        hash: u64,
        key: &[u8],
        living: impl Fn(u64, u64) -> bool,
    ) -> Option<u64> {
        let first = self.first.literals;
        let is_living = |place, number| living(first + place, number);
        let place = self.literals.find(hash, key, is_living)?;
        Some(self.literals.number(place))
    }

    /// The place of the vertex of a number, if it is one of these.
    pub(crate) fn vertex_place(&self, number: u64) -> Option<u64> {
        let place = self.vertices.place_of(number)?;
        Some(self.first.vertices + place)
    }

    /// The number of the vertex of a place.
    pub(crate) fn vertex_number(&self, place: u64) -> u64 {
        self.vertices.number(place - self.first.vertices)
    }

    /// The key of the vertex of a place.
    pub(crate) fn vertex_key(&self, place: u64) -> &[u8] {
        self.vertices.strings.get(place - self.first.vertices)
    }

    /// The key of the literal of a number.
    pub(crate) fn literal_key(&self, number: u64) -> Option<&[u8]> {
        let place = self.literals.place_of(number)?;
        Some(self.literals.strings.get(place))
    }

    /// The key of the literal of a place.
    pub(super) fn literal_key_at(&self, place: u64) -> &[u8] {
        self.literals.strings.get(place - self.first.literals)
    }

    /// The vertex that a predicate of this list is.
    pub(crate) fn predicate_term(&self, predicate: PredicateId) -> TermId {
        self.predicates.read().terms[predicate.index() - self.first.predicates as usize]
    }

    /// The predicate of this list that a vertex is.
    pub(crate) fn predicate_of_vertex(&self, number: u64) -> Option<PredicateId> {
        self.predicates.read().of_vertex.get(&number).copied()
    }

    /// Adds a vertex that no list has, with its number.
    pub(super) fn push_vertex(&self, hash: u64, key: &[u8], number: u64) {
        self.vertices.push(hash, key, number);
    }

    /// Adds a literal that no list has, with its number.
    pub(super) fn push_literal(&self, hash: u64, key: &[u8], number: u64) {
        self.literals.push(hash, key, number);
    }

    /// Makes a vertex the next predicate.
    pub(super) fn push_predicate(&self, term: TermId) {
        let mut predicates = self.predicates.write();
        let number = self.first.predicates + predicates.terms.len() as u64;
        let id = PredicateId(number as u32);
        predicates.of_vertex.insert(term.number(), id);
        predicates.terms.push(term);
    }

    /// Gives the terms after the first `since` other numbers, in the order of their places, and
    /// `term` tells those of the vertices that predicates are.
    pub(super) fn renumber(
        &self,
        since: TermCounts,
        vertices: &[u64],
        literals: &[u64],
        term: impl Fn(TermId) -> TermId,
    ) {
        self.vertices.renumber(self.vertices_of(since), vertices);
        self.literals.renumber(self.literals_of(since), literals);
        let mut predicates = self.predicates.write();
        let Predicates { terms, of_vertex } = &mut *predicates;
        let old = (since.predicates - self.first.predicates) as usize;
        for id in &mut terms[old..] {
            of_vertex.remove(&id.number());
            *id = term(*id);
        }
        // One may have the number that another had.
        for (id, predicate) in terms[old..].iter().zip(since.predicates..) {
            of_vertex.insert(id.number(), PredicateId(predicate as u32));
        }
    }

    /// The vertices that a snapshot knows, with their numbers, in the order of their places.
    pub(super) fn vertices_until(&self, known: u64) -> impl Iterator<Item = (u64, &[u8])> {
        self.vertices.until(known - self.first.vertices)
    }

    /// The literals that a snapshot knows, in the order of their numbers, which follow one another.
    pub(super) fn literals_by_number(&self, known: u64) -> Vec<&[u8]> {
        let count = known - self.first.literals;
        let mut keys: Vec<&[u8]> = vec![&[]; count as usize];
        for (number, key) in self.literals.until(count) {
            keys[(number - self.first.literals) as usize] = key;
        }
        keys
    }

    /// The predicates that a snapshot knows.
    pub(super) fn predicates_until(&self, known: u64) -> Vec<TermId> {
        let count = (known - self.first.predicates) as usize;
        self.predicates.read().terms[..count].to_vec()
    }
}
