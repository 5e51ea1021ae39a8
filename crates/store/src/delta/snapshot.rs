//! The graph at one snapshot: base and changes together, as readers see it.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use jindou_model::{Change, IdEpoch, PredicateId, SnapshotNumber, SortedSet, TermId, TermKind};
use xxhash_rust::xxh3::xxh3_64;

use super::graph_sets::GraphSetCache;
use super::ids::SetCache;
use super::pending::PendingTerms;
use super::terms::{AppendedTerms, TermCounts, check_count};
use super::transaction::{NewTerms, ReplayError, TransactionError};
use super::view::LayerView;
use super::{Delta, EndCounts, Forgotten};
use crate::identity::Identity;
use crate::tables::TermTables;
use crate::{Base, LayerKind, StoreError};

/// What all snapshots between two merges share.
pub(crate) struct Generation {
    pub(crate) base: Base,
    /// Those of the parts that a snapshot was [cut](Snapshot::cut) into are the same.
    pub(crate) terms: Arc<AppendedTerms>,
    /// The number of the next version of a segment's changes.
    pub(crate) versions: AtomicU64,
    /// By layer.
    pub(crate) sets: [SetCache; 2],
    pub(crate) graph_sets: GraphSetCache,
    pub(crate) end_counts: EndCounts,
    pub(super) number: u64,
}

/// A graph that does not change: the base of its generation and one version of the changes since.
///
/// Cloning costs kilobytes; a clone that is changed leaves this one as it is. The answers for
/// predicates without changes are those of the base, at its cost and one comparison.
#[derive(Clone)]
pub struct Snapshot {
    pub(crate) generation: Arc<Generation>,
    pub(crate) delta: Delta,
    known: TermCounts,
    /// Terms of a transaction that has not been committed.
    pending: Option<Arc<PendingTerms>>,
    number: SnapshotNumber,
    documents: u64,
    /// How often lists that were written out came in: see [`Snapshot::read_through`].
    pub(super) folds: u64,
}

impl Snapshot {
    /// The first snapshot of a base; `generation` tells this base from all others that a reader
    /// may have seen.
    #[must_use]
    pub fn of_base(base: Base, generation: u64, number: SnapshotNumber) -> Self {
        let mut delta = Delta::default();
        let declared: Vec<_> = base
            .declared
            .iter()
            .map(|graph| (*graph, jindou_model::Change::Add))
            .collect();
        delta.declared.apply(&declared);
        let documents = base.documents();
        let known = base.term_counts();
        Self {
            generation: Arc::new(Generation {
                base,
                terms: Arc::new(AppendedTerms::behind(known)),
                versions: AtomicU64::new(1),
                sets: Default::default(),
                end_counts: Default::default(),
                graph_sets: GraphSetCache::default(),
                number: generation,
            }),
            delta,
            known,
            pending: None,
            number,
            documents,
            folds: 0,
        }
    }

    /// A part of this snapshot upon a part of its base, with these changes of its own; its terms are those
    /// of the whole.
    pub(super) fn part_upon(&self, generation: Arc<Generation>, delta: Delta) -> Self {
        Self {
            generation,
            delta,
            folds: 0,
            ..self.clone()
        }
    }

    /// What the parts of this snapshot upon a part of its base share.
    pub(crate) fn generation_of_part(&self, base: Base) -> Arc<Generation> {
        Arc::new(Generation {
            base,
            terms: Arc::clone(&self.generation.terms),
            versions: AtomicU64::new(1),
            sets: Default::default(),
            end_counts: Default::default(),
            graph_sets: GraphSetCache::default(),
            number: self.generation.number,
        })
    }

    /// The same snapshot upon another base, with what that lacks of it; the base has the terms of
    /// `merged`.
    pub(super) fn moved_to(
        &self,
        generation: Arc<Generation>,
        delta: Delta,
        merged: TermCounts,
    ) -> Self {
        assert!(self.pending.is_none(), "a transaction stays upon its base");
        // The base counts the numbers that it leaves out.
        let vertices = generation.base.vertex_count() + self.known.vertices - merged.vertices;
        Self {
            generation,
            delta,
            known: TermCounts {
                vertices,
                ..self.known
            },
            ..self.clone()
        }
    }

    /// What the bulk load or the last merge left.
    #[must_use]
    pub fn base(&self) -> &Base {
        &self.generation.base
    }

    /// What ids mean: that of another store, or after [`crate::bulk::rebuild`], is another one.
    #[must_use]
    pub fn epoch(&self) -> IdEpoch {
        let Identity([high, low]) = self.base().identity;
        let words = [high, low, self.generation.number];
        IdEpoch(xxh3_64(bytemuck::cast_slice(&words)))
    }

    /// The number of the base among those that this database had: ids mean the same for as long
    /// as it is the same.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.generation.number
    }

    /// Its place among all snapshots of a database: its generation, its number, and how many merges
    /// its base has behind it. Of two with the same number both hold the same graph.
    #[must_use]
    pub fn place(&self) -> (u64, SnapshotNumber, u64) {
        (self.generation.number, self.number, self.base().merges())
    }

    /// True if both are of one generation object: their bases are the same, and so are the places
    /// where new terms go.
    #[must_use]
    pub fn is_of_generation_of(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.generation, &other.generation)
    }

    /// True if both are the same version of the same generation, with the same lists written out.
    #[must_use]
    pub fn is_same_version(&self, other: &Self) -> bool {
        self.is_of_generation_of(other) && (self.number, self.folds) == (other.number, other.folds)
    }

    /// The snapshot number: one more for each commit.
    #[must_use]
    pub fn number(&self) -> SnapshotNumber {
        self.number
    }

    /// Gives this snapshot, which nobody else reads yet, its number.
    pub fn set_number(&mut self, number: SnapshotNumber) {
        self.number = number;
    }

    /// Documents and updates seen so far: blank nodes of the next one get this scope.
    #[must_use]
    pub fn documents(&self) -> u64 {
        self.documents
    }

    /// Sets the number of documents seen so far.
    pub fn set_documents(&mut self, documents: u64) {
        self.documents = documents;
    }

    /// Edges changed since lists were last written out: see
    /// [`Snapshot::fold`].
    #[must_use]
    pub fn recent_changes(&self) -> u64 {
        self.delta.layers.iter().map(|layer| layer.recent).sum()
    }

    /// Quads added or removed since the last merge.
    #[must_use]
    pub fn changes(&self) -> u64 {
        self.delta.changes()
    }

    /// True if all that it holds is in its base.
    #[must_use]
    pub fn is_merged(&self) -> bool {
        self.changes() == 0 && self.known == self.base().term_counts()
    }

    /// Bytes of the changes and of the terms that came with them.
    #[must_use]
    pub fn delta_bytes(&self) -> usize {
        self.delta.bytes() + self.appended_bytes() + self.pending_bytes()
    }

    /// Bytes of the terms that came since the last merge, whether quads have them or not.
    #[must_use]
    pub fn appended_bytes(&self) -> usize {
        self.generation.terms.bytes()
    }

    /// Bytes of the terms that are kept only if [`Snapshot::keep_terms`] is called.
    #[must_use]
    pub fn pending_bytes(&self) -> usize {
        self.pending.as_ref().map_or(0, |pending| pending.bytes())
    }

    // Terms.

    /// How many terms it knows.
    #[must_use]
    pub fn known_terms(&self) -> TermCounts {
        self.known
    }

    /// Moves the terms that this snapshot added to the list that its generation shares: what it
    /// was changed to is in the log. Terms of a snapshot that is dropped before leave nothing.
    ///
    /// # Panics
    /// If another snapshot kept terms since this one's were added: ids would change their meaning.
    pub fn keep_terms(&mut self) {
        let Some(pending) = self.pending.take() else {
            return;
        };
        self.generation.terms.keep(&pending, self.known);
    }

    /// Leaves the room in all extents into which vertices were put, so that the terms of this
    /// snapshot, the latest one, can be merged: all that come later have greater numbers.
    ///
    /// Terms that are pending by then are not to be kept: see [`Snapshot::has_open_extents`].
    pub fn close_extents(&self) {
        self.generation.terms.extents.lock().close();
    }

    /// True if all vertices that come later have greater numbers than those of this snapshot.
    pub(crate) fn has_closed_extents(&self) -> bool {
        let extents = self.generation.terms.extents.lock();
        extents.are_behind(self.known.numbers)
    }

    /// False if extents were closed since its new terms got their numbers in them, so that these are
    /// not to be kept.
    #[must_use]
    pub fn has_open_extents(&self) -> bool {
        let closings = self.generation.terms.extents.lock().closings;
        let pending = self.pending.as_ref();
        pending.is_none_or(|pending| pending.closings() == closings)
    }

    /// The list of terms in which this snapshot's next one goes.
    fn own_pending(&mut self) -> &Arc<PendingTerms> {
        let known = self.known;
        let is_mine = |pending: &Arc<PendingTerms>| pending.are_all_of(known);
        if !self.pending.as_ref().is_some_and(is_mine) {
            let own = match &self.pending {
                None => {
                    let closings = self.generation.terms.extents.lock().closings;
                    PendingTerms::behind(known, closings)
                }
                // A clone of this snapshot added others.
                Some(pending) => pending.copied(known),
            };
            self.pending = Some(Arc::new(own));
        }
        self.pending.as_ref().expect("it was set")
    }

    /// The list with the terms that are pending; `None` if there are none.
    pub(super) fn pending_to_arrange(&mut self) -> Option<Arc<PendingTerms>> {
        self.pending.as_ref()?;
        Some(Arc::clone(self.own_pending()))
    }

    /// Terms before those that are pending.
    #[inline]
    pub(super) fn kept(&self) -> TermCounts {
        self.pending
            .as_ref()
            .map_or(self.known, |pending| pending.first())
    }

    /// Its terms that are not in the log yet.
    pub(super) fn known(&self) -> TermCounts {
        self.known
    }

    /// The terms of its generation that came since the base, perhaps with some that it does not know.
    pub(super) fn appended_terms(&self) -> &AppendedTerms {
        &self.generation.terms
    }

    pub(super) fn pending_terms(&self) -> Option<&Arc<PendingTerms>> {
        self.pending.as_ref()
    }

    pub(super) fn set_numbers(&mut self, numbers: u64) {
        self.known.numbers = numbers;
    }

    /// Number of predicates.
    #[must_use]
    pub fn predicate_count(&self) -> usize {
        self.known.predicates as usize
    }

    /// Number of vertices, those without edges included, and numbers that the base leaves out.
    #[must_use]
    pub fn vertex_count(&self) -> u64 {
        self.known.vertices
    }

    /// The number behind the last that a vertex may have.
    #[must_use]
    pub fn vertex_numbers(&self) -> u64 {
        self.known.numbers
    }

    /// Number of literals in the dictionary.
    #[must_use]
    pub fn literal_count(&self) -> u64 {
        self.known.literals
    }

    /// True if the id is one of this snapshot's: terms that came later are not.
    #[must_use]
    pub fn knows(&self, id: TermId) -> bool {
        match id.kind() {
            TermKind::Vertex => {
                id.number() < self.base().vertex_count() || self.has_appended(id.number())
            }
            TermKind::Literal => id.number() < self.literal_count(),
            _ => true,
        }
    }

    /// True if a vertex came since the base.
    fn has_appended(&self, number: u64) -> bool {
        let kept = self.generation.terms.vertex_place(number);
        kept.is_some_and(|place| place < self.kept().vertices)
            || self.pending.as_ref().is_some_and(|pending| {
                let place = pending.vertex_place(number);
                place.is_some_and(|place| place < self.known.vertices)
            })
    }

    /// The numbers of the vertices that came since the base, in the order in which they came.
    pub(crate) fn appended_vertices(&self) -> impl Iterator<Item = u64> + '_ {
        (self.base().vertex_count()..self.known.vertices).map(|place| self.vertex_at(place).0)
    }

    /// Number and key of the vertex of a place behind those of the base.
    pub(crate) fn vertex_at(&self, place: u64) -> (u64, &[u8]) {
        match &self.pending {
            Some(pending) if place >= pending.first().vertices => {
                (pending.vertex_number(place), pending.vertex_key(place))
            }
            _ => {
                let terms = &self.generation.terms;
                (terms.vertex_number(place), terms.vertex_key(place))
            }
        }
    }

    /// The id of the vertex with this key.
    #[must_use]
    pub fn find_node(&self, key: &[u8]) -> Option<TermId> {
        let gone = &self.delta.forgotten.vertices;
        let is_gone = |number: u64| !gone.is_empty() && gone.contains(number);
        if let Some(number) = self.base().vertices.lookup(key, is_gone) {
            return Some(TermId::vertex(number));
        }
        self.find_appended_node(jindou_dictionary::hash(key), key)
    }

    /// The id of a vertex that came since the base.
    pub(super) fn find_appended_node(&self, hash: u64, key: &[u8]) -> Option<TermId> {
        if self.known.vertices == self.base().vertex_count() {
            return None;
        }
        let gone = &self.delta.forgotten.vertices;
        let is_gone = |number: u64| !gone.is_empty() && gone.contains(number);
        let (kept, known) = (self.kept().vertices, self.known.vertices);
        let found = (self.generation.terms)
            .find_vertex(hash, key, |place, number| place < kept && !is_gone(number));
        let found = found.or_else(|| {
            let pending = self.pending.as_ref()?;
            pending.find_vertex(hash, key, |place, number| place < known && !is_gone(number))
        });
        found.map(TermId::vertex)
    }

    /// The id of the dictionary literal with this key.
    #[must_use]
    pub fn find_literal(&self, key: &[u8]) -> Option<TermId> {
        let gone = &self.delta.forgotten.literals;
        let is_gone = |number: u64| !gone.is_empty() && gone.contains(number);
        if let Some(number) = self.base().literals.lookup(key, is_gone) {
            return Some(TermId::literal(number));
        }
        self.find_appended_literal(jindou_dictionary::hash(key), key)
    }

    /// The id of a literal that came since the base.
    pub(super) fn find_appended_literal(&self, hash: u64, key: &[u8]) -> Option<TermId> {
        if self.known.literals == self.base().literal_count() {
            return None;
        }
        let gone = &self.delta.forgotten.literals;
        let is_gone = |number: u64| !gone.is_empty() && gone.contains(number);
        let (kept, known) = (self.kept().literals, self.known.literals);
        let found = (self.generation.terms)
            .find_literal(hash, key, |number| number < kept && !is_gone(number));
        let found = found.or_else(|| {
            let pending = self.pending.as_ref()?;
            pending.find_literal(hash, key, |place, number| place < known && !is_gone(number))
        });
        found.map(TermId::literal)
    }

    /// Of these numbers of literals, which a lookup found in the base: those that are not forgotten.
    #[must_use]
    pub fn is_living(&self, id: TermId) -> bool {
        let gone = &self.delta.forgotten;
        match id.kind() {
            TermKind::Vertex => !gone.vertices.contains(id.number()),
            TermKind::Literal => !gone.literals.contains(id.number()),
            _ => true,
        }
    }

    /// Forgets terms that no quad has: they are not found any more, and whoever needs one gets
    /// another id.
    pub fn forget_terms(&mut self, terms: &[TermId]) {
        if terms.is_empty() {
            return;
        }
        let numbers = |kind: TermKind| {
            let of_kind = terms.iter().filter(|id| id.kind() == kind);
            let mut numbers: Vec<_> = of_kind.map(|id| (id.number(), Change::Add)).collect();
            numbers.sort_unstable_by_key(|(number, _)| *number);
            numbers.dedup();
            numbers
        };
        let forgotten = &mut self.delta.forgotten;
        forgotten.vertices.apply(&numbers(TermKind::Vertex));
        forgotten.literals.apply(&numbers(TermKind::Literal));
        forgotten.times += 1;
    }

    /// How often ids were taken from terms before this snapshot: a plan made for one with another number
    /// may have ids that mean nothing here.
    #[must_use]
    pub fn times_forgotten(&self) -> u64 {
        self.delta.forgotten.times
    }

    /// Terms whose strings may still be there and mean nothing any more.
    pub(crate) fn forgotten(&self) -> &Forgotten {
        &self.delta.forgotten
    }

    /// The terms that are forgotten and whose strings may still be there.
    pub(super) fn forgotten_terms(&self) -> Vec<TermId> {
        let gone = &self.delta.forgotten;
        let vertices = gone.vertices.iter().map(TermId::vertex);
        vertices
            .chain(gone.literals.iter().map(TermId::literal))
            .collect()
    }

    /// Number of IRIs and blank nodes, and of literals, in the dictionary.
    #[must_use]
    pub fn dictionary_terms(&self) -> (u64, u64) {
        let (base, gone) = (self.base(), &self.delta.forgotten);
        if let Some(part) = base.node_part() {
            return part.whole.strings.into();
        }
        let count = |tables: &TermTables, known: u64, gone: &SortedSet<u64>| {
            let stored = gone
                .iter()
                .filter(|n| *n >= tables.len() || tables.contains(*n));
            tables.strings() + known - tables.len() - stored.count() as u64
        };
        (
            count(&base.vertices, self.known.vertices, &gone.vertices),
            count(&base.literals, self.known.literals, &gone.literals),
        )
    }

    /// As [`Base::find_name`].
    #[must_use]
    pub fn find_name(&self, key: &[u8]) -> Option<TermId> {
        match self.base().node_part() {
            // Nothing changes in one.
            Some(_) => self.base().find_name(key),
            None => self.find_node(key),
        }
    }

    /// Appends the ids that the vertex, or the literal, of a [hash](jindou_dictionary::hash) may have: its own, if
    /// there is such a term, and those of a few others. Of a node's part, the hash is to be one of its shards.
    ///
    /// Costs a few loads; no string is read but those of terms that came since the base.
    pub fn push_candidates(&self, hash: u64, is_literal: bool, ids: &mut Vec<TermId>) {
        let begin = ids.len();
        self.base().push_candidates(hash, is_literal, ids);
        let mut kept = begin;
        for place in begin..ids.len() {
            if self.is_living(ids[place]) {
                ids.swap(kept, place);
                kept += 1;
            }
        }
        ids.truncate(kept);
        self.push_appended_candidates(hash, is_literal, ids);
    }

    /// The predicate with this IRI.
    #[must_use]
    pub fn find_predicate(&self, iri: &str) -> Option<PredicateId> {
        self.predicate_of_term(self.find_name(iri.as_bytes())?)
    }

    /// The vertex that a predicate is.
    ///
    /// # Panics
    /// If there is no such predicate.
    #[must_use]
    pub fn predicate_term(&self, predicate: PredicateId) -> TermId {
        if predicate.index() < self.base().predicate_count() {
            return self.base().predicate_term(predicate);
        }
        match &self.pending {
            Some(pending) if u64::from(predicate.0) >= pending.first().predicates => {
                pending.predicate_term(predicate)
            }
            _ => self.generation.terms.predicate_term(predicate),
        }
    }

    /// The predicate that a term is, if it is one.
    #[must_use]
    pub fn predicate_of_term(&self, term: TermId) -> Option<PredicateId> {
        let of_base = self.base().predicate_of_term(term);
        if of_base.is_some() || self.predicate_count() == self.base().predicate_count() {
            return of_base;
        }
        if term.kind() != TermKind::Vertex {
            return None;
        }
        let kept = self.generation.terms.predicate_of_vertex(term.number());
        let kept = kept.filter(|id| u64::from(id.0) < self.kept().predicates);
        kept.or_else(|| {
            let found = (self.pending.as_ref()?).predicate_of_vertex(term.number())?;
            (u64::from(found.0) < self.known.predicates).then_some(found)
        })
    }

    /// Appends the key of a vertex or dictionary literal.
    ///
    /// # Panics
    /// If the id is not one of this generation.
    pub fn push_key(&self, id: TermId, key: &mut Vec<u8>) {
        match self.appended_key(id) {
            Some(bytes) => key.extend_from_slice(bytes),
            None => self.base().push_key(id, key),
        }
    }

    /// The key of a term that came after the bulk load; `None` of one that the base has.
    #[inline]
    #[must_use]
    pub fn appended_key(&self, id: TermId) -> Option<&[u8]> {
        let (base, number) = (self.base(), id.number());
        match id.kind() {
            TermKind::Vertex if number >= base.vertex_count() => {
                let terms = &self.generation.terms;
                let kept = terms.vertex_place(number);
                if let Some(place) = kept.filter(|place| *place < self.kept().vertices) {
                    return Some(terms.vertex_key(place));
                }
                let pending = self.pending.as_ref()?;
                Some(pending.vertex_key(pending.vertex_place(number)?))
            }
            TermKind::Literal if number >= base.literal_count() => match &self.pending {
                Some(pending) if number >= pending.first().literals => pending.literal_key(number),
                _ => Some(self.generation.terms.literal_key(number)),
            },
            _ => None,
        }
    }

    /// The id of a vertex, a new one if it is not known; the snapshot knows it from then on. See
    /// [`Snapshot::keep_terms`].
    ///
    /// # Errors
    /// [`StoreError::TooLarge`] after 2^32 terms.
    pub fn intern_node(&mut self, key: &[u8]) -> Result<TermId, StoreError> {
        match self.find_node(key) {
            Some(known) => Ok(known),
            None => self.push_node(jindou_dictionary::hash(key), key),
        }
    }

    /// Adds a vertex that is not known.
    pub(super) fn push_node(&mut self, hash: u64, key: &[u8]) -> Result<TermId, StoreError> {
        let number = self.known.numbers;
        self.push_vertex(hash, key, number)?;
        self.known.numbers += 1;
        Ok(TermId::vertex(number))
    }

    /// Adds a vertex that is not known, with a number that no other one has.
    fn push_vertex(&mut self, hash: u64, key: &[u8], number: u64) -> Result<(), StoreError> {
        check_count(number.max(self.known.numbers) - self.base().vertex_count())?;
        self.own_pending().push_vertex(hash, key, number);
        self.known.vertices += 1;
        Ok(())
    }

    /// The id of a dictionary literal, a new one if it is not known.
    ///
    /// # Errors
    /// [`StoreError::TooLarge`] after 2^32 terms.
    pub fn intern_literal(&mut self, key: &[u8]) -> Result<TermId, StoreError> {
        match self.find_literal(key) {
            Some(known) => Ok(known),
            None => self.push_literal(jindou_dictionary::hash(key), key),
        }
    }

    /// Adds a literal that is not known.
    pub(super) fn push_literal(&mut self, hash: u64, key: &[u8]) -> Result<TermId, StoreError> {
        check_count(self.known.literals - self.base().literal_count())?;
        let number = self.known.literals;
        self.own_pending().push_literal(hash, key, number);
        self.known.literals += 1;
        Ok(TermId::literal(number))
    }

    /// The number of a predicate, a new one if it is not known; its IRI is a vertex from then on.
    ///
    /// # Errors
    /// [`StoreError::TooLarge`] after 2^32 terms.
    pub fn intern_predicate(&mut self, iri: &str) -> Result<PredicateId, StoreError> {
        let term = self.intern_node(iri.as_bytes())?;
        self.predicate_of_node(term)
    }

    /// The number of the predicate that an IRI of this snapshot is, a new one if it is none.
    ///
    /// # Errors
    /// [`StoreError::TooLarge`] after 2^32 predicates.
    pub fn predicate_of_node(&mut self, term: TermId) -> Result<PredicateId, StoreError> {
        match self.predicate_of_term(term) {
            Some(known) => Ok(known),
            None => self.add_predicate(term),
        }
    }

    /// Makes a vertex that is no predicate the next one.
    fn add_predicate(&mut self, term: TermId) -> Result<PredicateId, StoreError> {
        check_count(self.known.predicates)?;
        let id = PredicateId(self.known.predicates as u32);
        self.own_pending().push_predicate(term);
        self.known.predicates += 1;
        Ok(id)
    }

    /// The terms appended after the first `known`.
    pub(super) fn terms_since(&self, known: TermCounts) -> NewTerms {
        let vertex = |place| {
            let (number, key) = self.vertex_at(place);
            (number, key.into())
        };
        let literal = |number| {
            let key = self.appended_key(TermId::literal(number));
            key.expect("the term came since the base").into()
        };
        NewTerms {
            vertices: (known.vertices..self.known.vertices).map(vertex).collect(),
            numbers: self.known.numbers,
            literals: (known.literals..self.known.literals).map(literal).collect(),
            predicates: (known.predicates..self.known.predicates)
                .map(|number| self.predicate_term(PredicateId(number as u32)))
                .collect(),
        }
    }

    /// True if all vertices have numbers that no other one has, of those of this snapshot, the latest
    /// one, or among themselves.
    pub(super) fn are_new(&self, terms: &NewTerms) -> bool {
        let mut numbers: Vec<u64> = terms.vertices.iter().map(|(number, _)| *number).collect();
        numbers.sort_unstable();
        let first = self.base().vertex_count();
        numbers.is_sorted_by(|a, b| a < b)
            && (numbers.iter()).all(|number| *number >= first && !self.has_appended(*number))
    }

    /// Appends terms of a log, in its order.
    pub(super) fn append_terms(&mut self, terms: &NewTerms) -> Result<(), ReplayError> {
        let mut expected = self.known;
        expected.vertices += terms.vertices.len() as u64;
        expected.numbers = terms.numbers;
        expected.literals += terms.literals.len() as u64;
        expected.predicates += terms.predicates.len() as u64;
        self.append_vertices(terms)?;
        for key in &terms.literals {
            self.intern_literal(key)?;
        }
        for term in &terms.predicates {
            let is_new = self.predicate_of_term(*term).is_none();
            if term.kind() != TermKind::Vertex || !self.knows(*term) || !is_new {
                return Err(TransactionError::UnknownTerm.into());
            }
            self.add_predicate(*term)?;
        }
        // Each of them was new, or ids would mean something else.
        if self.known == expected {
            self.keep_terms();
            Ok(())
        } else {
            Err(TransactionError::Unrelated.into())
        }
    }

    /// Appends vertices of a log with the numbers that they have there.
    fn append_vertices(&mut self, terms: &NewTerms) -> Result<(), ReplayError> {
        let unrelated = || Err(TransactionError::Unrelated.into());
        let (before, new) = (self.known.numbers, terms.vertices.len() as u64);
        if terms.numbers < before || (new == 0 && terms.numbers != before) {
            return unrelated();
        }
        check_count(terms.numbers - self.base().vertex_count())?;
        for (number, key) in &terms.vertices {
            let is_free = *number >= self.base().vertex_count()
                && *number < terms.numbers
                && !self.has_appended(*number);
            if !is_free || self.find_node(key).is_some() {
                return unrelated();
            }
            self.push_vertex(jindou_dictionary::hash(key), key, *number)?;
        }
        self.known.numbers = terms.numbers;
        Ok(())
    }

    /// One of its layers.
    #[inline]
    #[must_use]
    pub fn layer(&self, kind: LayerKind) -> LayerView<'_> {
        LayerView {
            base: self.base().layer(kind),
            delta: &self.delta.layers[kind as usize],
            sets: &self.generation.sets[kind as usize],
            predicates: self.predicate_count(),
            vertices: self.vertex_count(),
        }
    }

    /// The default graph.
    #[inline]
    #[must_use]
    pub fn default_graph(&self) -> LayerView<'_> {
        self.layer(LayerKind::Default)
    }

    /// Number of triples of the default graph.
    #[must_use]
    pub fn triples(&self) -> u64 {
        self.default_graph().edges()
    }
}
