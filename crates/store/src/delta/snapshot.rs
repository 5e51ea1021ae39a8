//! The graph at one snapshot: base and changes together, as readers see it.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use jindou_model::{PredicateId, SnapshotNumber, TermId, TermKind};

use super::Delta;
use super::graph_sets::GraphSetCache;
use super::ids::SetCache;
use super::terms::{AppendedTerms, TermCounts, check_count};
use super::transaction::{ReplayError, TransactionError};
use super::view::LayerView;
use crate::{Base, LayerKind, StoreError};

/// What all snapshots between two merges share.
pub(crate) struct Generation {
    pub(crate) base: Base,
    pub(crate) terms: AppendedTerms,
    /// The number of the next version of a segment's changes.
    pub(crate) versions: AtomicU64,
    /// By layer.
    pub(crate) sets: [SetCache; 2],
    pub(crate) graph_sets: GraphSetCache,
    number: u64,
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
    pending: Option<Arc<AppendedTerms>>,
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
        Self {
            generation: Arc::new(Generation {
                base,
                terms: AppendedTerms::shared(),
                versions: AtomicU64::new(1),
                sets: Default::default(),
                graph_sets: GraphSetCache::default(),
                number: generation,
            }),
            delta,
            known: TermCounts::default(),
            pending: None,
            number,
            documents,
            folds: 0,
        }
    }

    /// What the bulk load or the last merge left.
    #[must_use]
    pub fn base(&self) -> &Base {
        &self.generation.base
    }

    /// The number of the base among those that this database had: ids mean the same for as long
    /// as it is the same.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.generation.number
    }

    /// True if both are of one generation object: their ids are the same, and so are the places
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

    /// How many of the appended terms it knows.
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
        let (terms, base) = (&self.generation.terms, &self.generation.base);
        assert_eq!(
            terms.counts(),
            pending.first(),
            "pending terms follow those that are kept"
        );
        terms.append(&pending, self.known, base.predicate_count());
    }

    /// The list of terms in which this snapshot's next one goes.
    fn pending(&mut self) -> &AppendedTerms {
        let known = self.known;
        let is_mine = |pending: &Arc<AppendedTerms>| pending.counts() == known;
        if !self.pending.as_ref().is_some_and(is_mine) {
            let fresh = match &self.pending {
                None => AppendedTerms::pending(known),
                // A clone of this snapshot added others.
                Some(shared) => {
                    let copy = AppendedTerms::pending(shared.first());
                    copy.append(shared, known, self.base().predicate_count());
                    copy
                }
            };
            self.pending = Some(Arc::new(fresh));
        }
        self.pending.as_ref().expect("it was set")
    }

    /// The list that has the term of this number; `first` reads the right one of the counts.
    #[inline]
    fn list_with(&self, number: u64, first: fn(TermCounts) -> u64) -> &AppendedTerms {
        match &self.pending {
            Some(pending) if number >= first(pending.first()) => pending,
            _ => &self.generation.terms,
        }
    }

    /// What one of the lists of appended terms finds.
    fn find_appended(
        &self,
        find: impl Fn(&AppendedTerms, TermCounts) -> Option<u64>,
    ) -> Option<u64> {
        match &self.pending {
            None => find(&self.generation.terms, self.known),
            Some(pending) => {
                find(&self.generation.terms, pending.first()).or_else(|| find(pending, self.known))
            }
        }
    }

    /// Number of predicates.
    #[must_use]
    pub fn predicate_count(&self) -> usize {
        self.base().predicate_count() + self.known.predicates as usize
    }

    /// Number of vertices, those without edges included.
    #[must_use]
    pub fn vertex_count(&self) -> u64 {
        self.base().vertex_count() + self.known.vertices
    }

    /// Number of literals in the dictionary.
    #[must_use]
    pub fn literal_count(&self) -> u64 {
        self.base().literal_count() + self.known.literals
    }

    /// True if the id is one of this snapshot's: terms that came later are not.
    #[must_use]
    pub fn knows(&self, id: TermId) -> bool {
        match id.kind() {
            TermKind::Vertex => id.local() < self.vertex_count(),
            TermKind::Literal => id.local() < self.literal_count(),
            TermKind::Predicate => (id.payload() as usize) < self.predicate_count(),
            _ => true,
        }
    }

    /// The id of the vertex or predicate with this key.
    #[must_use]
    pub fn find_node(&self, key: &[u8]) -> Option<TermId> {
        if let Some(id) = self.base().find_node(key) {
            return Some(id);
        }
        if self.known == TermCounts::default() {
            return None;
        }
        let hash = jindou_dictionary::hash(key);
        let vertex =
            |terms: &AppendedTerms, known: TermCounts| terms.find_vertex(hash, key, known.vertices);
        if let Some(number) = self.find_appended(vertex) {
            let local = self.base().vertex_count() + number;
            return Some(TermId::vertex(jindou_model::ShardId(0), local));
        }
        let predicate = |terms: &AppendedTerms, known: TermCounts| {
            terms.find_predicate(hash, key, known.predicates)
        };
        let number = self.find_appended(predicate)?;
        Some(
            self.list_with(number, |first| first.predicates)
                .predicate_term(number),
        )
    }

    /// The id of the dictionary literal with this key.
    #[must_use]
    pub fn find_literal(&self, key: &[u8]) -> Option<TermId> {
        if let Some(id) = self.base().find_literal(key) {
            return Some(id);
        }
        if self.known.literals == 0 {
            return None;
        }
        let hash = jindou_dictionary::hash(key);
        let number =
            self.find_appended(|terms, known| terms.find_literal(hash, key, known.literals))?;
        let local = self.base().literal_count() + number;
        Some(TermId::literal(jindou_model::ShardId(0), local))
    }

    /// The predicate with this IRI.
    #[must_use]
    pub fn find_predicate(&self, iri: &str) -> Option<PredicateId> {
        if let Some(id) = self.base().find_predicate(iri) {
            return Some(id);
        }
        if self.known.predicates == 0 {
            return None;
        }
        let hash = jindou_dictionary::hash(iri.as_bytes());
        let number = self.find_appended(|terms, known| {
            terms.find_predicate(hash, iri.as_bytes(), known.predicates)
        })?;
        Some(self.appended_predicate(number))
    }

    fn appended_predicate(&self, number: u64) -> PredicateId {
        PredicateId((self.base().predicate_count() as u64 + number) as u32)
    }

    /// The term of a predicate.
    ///
    /// # Panics
    /// If there is no such predicate.
    #[must_use]
    pub fn predicate_term(&self, predicate: PredicateId) -> TermId {
        match predicate.index().checked_sub(self.base().predicate_count()) {
            None => self.base().predicate_term(predicate),
            Some(number) => {
                let number = number as u64;
                self.list_with(number, |first| first.predicates)
                    .predicate_term(number)
            }
        }
    }

    /// The predicate that a term is, if it is one.
    #[must_use]
    pub fn predicate_of_term(&self, term: TermId) -> Option<PredicateId> {
        if term.kind() == TermKind::Vertex && self.known.predicates > 0 {
            let of_vertex = |terms: &AppendedTerms, known: TermCounts| {
                let id = terms.predicate_of_vertex(term.local())?;
                let number = id.index().checked_sub(self.base().predicate_count())? as u64;
                (number < known.predicates).then_some(number)
            };
            if let Some(number) = self.find_appended(of_vertex) {
                return Some(self.appended_predicate(number));
            }
        }
        self.base().predicate_of_term(term)
    }

    /// Appends the key of a vertex, dictionary literal or predicate.
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
        let base = self.base();
        match id.kind() {
            TermKind::Vertex => {
                let number = id.local().checked_sub(base.vertex_count())?;
                Some(
                    self.list_with(number, |first| first.vertices)
                        .vertex_key(number),
                )
            }
            TermKind::Literal => {
                let number = id.local().checked_sub(base.literal_count())?;
                Some(
                    self.list_with(number, |first| first.literals)
                        .literal_key(number),
                )
            }
            TermKind::Predicate => {
                let number = id.payload().checked_sub(base.predicate_count() as u64)?;
                Some(
                    self.list_with(number, |first| first.predicates)
                        .predicate_key(number),
                )
            }
            _ => None,
        }
    }

    /// The id of a vertex, a new one if it is not known; the snapshot knows it from then on. See
    /// [`Snapshot::keep_terms`].
    ///
    /// # Errors
    /// [`StoreError::TooLarge`] after 2^32 terms.
    pub fn intern_node(&mut self, key: &[u8]) -> Result<TermId, StoreError> {
        // A predicate that becomes a vertex keeps its id until the next merge.
        if let Some(known) = self.find_node(key) {
            return Ok(known);
        }
        check_count(self.known.vertices)?;
        let hash = jindou_dictionary::hash(key);
        let number = self.pending().push_vertex(hash, key.into());
        self.known.vertices += 1;
        let local = self.base().vertex_count() + number;
        Ok(TermId::vertex(jindou_model::ShardId(0), local))
    }

    /// The id of a dictionary literal, a new one if it is not known.
    ///
    /// # Errors
    /// [`StoreError::TooLarge`] after 2^32 terms.
    pub fn intern_literal(&mut self, key: &[u8]) -> Result<TermId, StoreError> {
        if let Some(known) = self.find_literal(key) {
            return Ok(known);
        }
        check_count(self.known.literals)?;
        let hash = jindou_dictionary::hash(key);
        let number = self.pending().push_literal(hash, key.into());
        self.known.literals += 1;
        let local = self.base().literal_count() + number;
        Ok(TermId::literal(jindou_model::ShardId(0), local))
    }

    /// The id of a predicate, a new one if it is not known.
    ///
    /// # Errors
    /// [`StoreError::TooLarge`] after 2^32 terms.
    pub fn intern_predicate(&mut self, iri: &str) -> Result<PredicateId, StoreError> {
        if let Some(known) = self.find_predicate(iri) {
            return Ok(known);
        }
        check_count(self.known.predicates)?;
        let key = iri.as_bytes();
        let id = self.appended_predicate(self.known.predicates);
        // No predicate has this key, so a node that has it is a vertex.
        let term = self.find_node(key).unwrap_or(TermId::predicate(id));
        let hash = jindou_dictionary::hash(key);
        self.pending().push_predicate(hash, key.into(), id, term);
        self.known.predicates += 1;
        Ok(id)
    }

    /// The keys of vertices, literals and predicates appended after the first `known`.
    pub(super) fn terms_since(&self, known: TermCounts) -> [Vec<Box<[u8]>>; 3] {
        [
            (known.vertices..self.known.vertices)
                .map(|number| {
                    let list = self.list_with(number, |first| first.vertices);
                    list.vertex_key(number).into()
                })
                .collect(),
            (known.literals..self.known.literals)
                .map(|number| {
                    let list = self.list_with(number, |first| first.literals);
                    list.literal_key(number).into()
                })
                .collect(),
            (known.predicates..self.known.predicates)
                .map(|number| {
                    let list = self.list_with(number, |first| first.predicates);
                    list.predicate_key(number).into()
                })
                .collect(),
        ]
    }

    /// Appends terms of a log, in its order.
    pub(super) fn append_terms(&mut self, terms: &[Vec<Box<[u8]>>; 3]) -> Result<(), ReplayError> {
        let [vertices, literals, predicates] = terms;
        let mut expected = self.known;
        expected.vertices += vertices.len() as u64;
        expected.literals += literals.len() as u64;
        expected.predicates += predicates.len() as u64;
        for key in vertices {
            self.intern_node(key)?;
        }
        for key in literals {
            self.intern_literal(key)?;
        }
        for key in predicates {
            let iri = std::str::from_utf8(key).map_err(|_| TransactionError::UnknownTerm)?;
            self.intern_predicate(iri)?;
        }
        // Each of them was new, or ids would mean something else.
        if self.known == expected {
            self.keep_terms();
            Ok(())
        } else {
            Err(TransactionError::Unrelated.into())
        }
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
