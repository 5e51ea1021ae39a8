//! The graph at one snapshot: base and changes together, as readers see it.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use jindou_model::{
    Cursor, Direction, Graphs, IdRanges, Neighbours, Pattern, PredicateId, SnapshotNumber, TermId,
    TermKind, Visit,
};

use super::Delta;
use super::ids::SetCache;
use super::named::of_graph;
use super::terms::{AppendedTerms, TermCounts, check_count};
use super::transaction::{ReplayError, TransactionError};
use crate::segment::expand_one;
use crate::{Base, StoreError};

/// What all snapshots between two merges share.
pub(crate) struct Generation {
    pub(crate) base: Base,
    pub(crate) terms: AppendedTerms,
    /// The number of the next version of a segment's changes.
    pub(crate) versions: AtomicU64,
    pub(crate) sets: SetCache,
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
                sets: SetCache::default(),
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

    /// Edges of the default graph changed since lists were last written out: see
    /// [`Snapshot::fold`].
    #[must_use]
    pub fn recent_changes(&self) -> u64 {
        self.delta.recent
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

    // The default graph.

    /// Number of triples of the default graph.
    #[must_use]
    pub fn triples(&self) -> u64 {
        self.base().triples() + self.delta.added - self.delta.removed
    }

    /// Edges and distinct keys of any predicate in the default graph.
    #[must_use]
    pub fn counts(&self, predicate: PredicateId, direction: Direction) -> (u64, u64) {
        let (edges, keys) = self.base().counts(predicate, direction);
        match self.delta.segment(predicate, direction) {
            None => (edges, keys),
            Some(delta) => (
                edges + delta.added.len() as u64 - delta.removed.len() as u64,
                keys + delta.gained.len() as u64 - delta.lost.len() as u64,
            ),
        }
    }

    /// The neighbours of a key by any predicate in the default graph.
    #[inline]
    #[must_use]
    pub fn neighbours(
        &self,
        predicate: PredicateId,
        direction: Direction,
        key: TermId,
    ) -> Neighbours<'_> {
        let base = || self.base().neighbours(predicate, direction, key);
        match self.delta.segment(predicate, direction) {
            Some(delta) => delta.list(key, base),
            None => base(),
        }
    }

    /// The neighbours of many keys: appends one entry a key to `out`.
    pub fn locate<'a>(
        &'a self,
        predicate: PredicateId,
        direction: Direction,
        keys: &[TermId],
        out: &mut Vec<Neighbours<'a>>,
    ) {
        let Some(delta) = self.delta.segment(predicate, direction) else {
            return self.base().locate(predicate, direction, keys, out);
        };
        if predicate == PredicateId::TYPE {
            let lists = keys
                .iter()
                .map(|key| self.neighbours(predicate, direction, *key));
            return out.extend(lists);
        }
        let begin = out.len();
        let base = self.base().segment(predicate, direction);
        match delta.overlay() {
            Some(overlay) => overlay.locate(base, keys, out),
            None => self.base().locate(predicate, direction, keys, out),
        }
        delta.patch(keys, &mut out[begin..]);
    }

    /// Follows the edges of many keys; see [`crate::Segment::expand`].
    #[expect(
        clippy::too_many_arguments,
        reason = "the segment's arguments and which segment"
    )]
    pub fn expand(
        &self,
        predicate: PredicateId,
        direction: Direction,
        keys: &[TermId],
        cursor: &mut Cursor,
        filter: Option<&IdRanges>,
        budget: usize,
        rows: &mut Vec<u32>,
        out: &mut Vec<TermId>,
    ) {
        let base = self.base();
        let Some(delta) = self.delta.segment(predicate, direction) else {
            return base.expand(
                predicate, direction, keys, cursor, filter, budget, rows, out,
            );
        };
        let base_expand =
            |keys: &[TermId], cursor: &mut Cursor, rows: &mut Vec<u32>, out: &mut Vec<TermId>| {
                match delta.overlay() {
                    Some(overlay) if predicate != PredicateId::TYPE => {
                        let below = base.segment(predicate, direction);
                        overlay.expand(below, keys, cursor, filter, budget, rows, out);
                    }
                    _ => base.expand(
                        predicate, direction, keys, cursor, filter, budget, rows, out,
                    ),
                }
            };
        // Types are not kept as a segment: their changed lists are read one by one.
        let is_alone = |key: TermId| match predicate {
            PredicateId::TYPE => delta.may_have_changed(key),
            _ => delta.may_touch(key),
        };
        let none_is_alone = predicate != PredicateId::TYPE && delta.recent().len() == 0;
        while cursor.key < keys.len() && out.len() < budget {
            // As far as the budget may go, if each key has a neighbour.
            let end = keys.len().min(cursor.key + (budget - out.len()));
            let together = match none_is_alone {
                true => None,
                false => keys[cursor.key..end].iter().position(|key| is_alone(*key)),
            };
            let together = together.map_or(end, |place| cursor.key + place);
            if together > cursor.key {
                base_expand(&keys[..together], cursor, rows, out);
                continue;
            }
            let list = self.neighbours(predicate, direction, keys[cursor.key]);
            expand_one(list, cursor, filter, budget, rows, out);
        }
    }

    /// The predicates that a vertex has in a direction in the default graph, `rdf:type` perhaps
    /// without an edge, appended to `out`.
    pub fn predicates_of_vertex(
        &self,
        vertex: TermId,
        direction: Direction,
        out: &mut Vec<PredicateId>,
    ) {
        out.push(PredicateId::TYPE);
        let begin = out.len();
        let clusters = self.base().clusters();
        out.extend(clusters.predicates_of_vertex(vertex, direction));
        let of_vertex = |set: &jindou_model::SortedSet<(u64, u32)>| {
            let key = vertex.raw();
            set.rank_by(|entry| entry.0 < key)..set.rank_by(|entry| entry.0 <= key)
        };
        let (gained, lost) = (
            &self.delta.gained[direction as usize],
            &self.delta.lost[direction as usize],
        );
        let gone = of_vertex(lost);
        if !gone.is_empty() {
            let mut kept = begin;
            for place in begin..out.len() {
                out[kept] = out[place];
                kept += usize::from(!lost.contains((vertex.raw(), out[place].0)));
            }
            out.truncate(kept);
        }
        let more = gained.slices(of_vertex(gained)).flatten();
        let more = more.map(|(_, predicate)| PredicateId(*predicate));
        out.extend(more.filter(|predicate| *predicate != PredicateId::TYPE));
    }

    /// Calls `visit` with each quad that matches, until it breaks.
    ///
    /// Costs as [`Base::for_each_match`], and the changes that match.
    pub fn for_each_match(
        &self,
        pattern: &Pattern,
        graphs: Graphs,
        visit: &mut Visit<'_>,
    ) -> ControlFlow<()> {
        match graphs {
            Graphs::Default => self.match_default(pattern, visit),
            Graphs::One(graph) => self.match_named(pattern, Some(graph), visit),
            Graphs::Named => self.match_named(pattern, None, visit),
        }
    }

    fn match_default(&self, pattern: &Pattern, visit: &mut Visit<'_>) -> ControlFlow<()> {
        if self.delta.added == 0 && self.delta.removed == 0 {
            return self.base().for_each_match(pattern, Graphs::Default, visit);
        }
        if let Some(predicate) = pattern.predicate {
            return self.match_predicate(pattern, predicate, visit);
        }
        let end = match (pattern.subject, pattern.object) {
            (Some(subject), _) => Some((subject, Direction::Out)),
            (None, Some(object)) => Some((object, Direction::In)),
            _ => None,
        };
        let mut predicates = Vec::new();
        match end {
            Some((key, direction)) if key.kind() == TermKind::Vertex => {
                self.predicates_of_vertex(key, direction, &mut predicates);
            }
            _ => predicates.extend((0..self.predicate_count()).map(|n| PredicateId(n as u32))),
        }
        for predicate in predicates {
            self.match_predicate(pattern, predicate, visit)?;
        }
        ControlFlow::Continue(())
    }

    fn match_predicate(
        &self,
        pattern: &Pattern,
        predicate: PredicateId,
        visit: &mut Visit<'_>,
    ) -> ControlFlow<()> {
        let Some(delta) = self.delta.segment(predicate, Direction::Out) else {
            return self.base().match_predicate(pattern, predicate, visit);
        };
        match (pattern.subject, pattern.object) {
            (Some(subject), Some(object)) => {
                let list = self.neighbours(predicate, Direction::Out, subject);
                if list.contains(object) {
                    visit(subject, predicate, object, TermId::NONE)?;
                }
            }
            (Some(subject), None) => {
                let list = self.neighbours(predicate, Direction::Out, subject);
                for_each_neighbour(list, &mut |object| {
                    visit(subject, predicate, object, TermId::NONE)
                })?;
            }
            (None, Some(object)) => {
                let list = self.neighbours(predicate, Direction::In, object);
                for_each_neighbour(list, &mut |subject| {
                    visit(subject, predicate, object, TermId::NONE)
                })?;
            }
            (None, None) => {
                // The base's edges come in the order of subjects and objects.
                let mut removed = delta.removed.iter().peekable();
                self.base()
                    .match_predicate(pattern, predicate, &mut |s, p, o, g| match removed
                        .next_if_eq(&(s.raw(), o.raw()))
                    {
                        Some(_) => ControlFlow::Continue(()),
                        None => visit(s, p, o, g),
                    })?;
                for (s, o) in delta.added.iter() {
                    let (s, o) = (TermId::from_raw(s), TermId::from_raw(o));
                    visit(s, predicate, o, TermId::NONE)?;
                }
            }
        }
        ControlFlow::Continue(())
    }

    // Named graphs.

    /// Number of quads outside the default graph.
    #[must_use]
    pub fn named_quads(&self) -> u64 {
        let named = &self.delta.named;
        self.base().named().quads() + named.added.len() as u64 - named.removed.len() as u64
    }

    /// Number of quads with this predicate in all named graphs.
    #[must_use]
    pub fn named_edges(&self, predicate: PredicateId) -> u64 {
        let segment = self.base().named().segment(predicate, Direction::Out);
        let base = segment.map_or(0, |segment| segment.edges().edges() as u64);
        match self.delta.named.segment(predicate, Direction::Out) {
            Some(delta) => base + delta.added.len() as u64 - delta.removed.len() as u64,
            None => base,
        }
    }

    /// Number of named graphs: those that have quads or were declared.
    #[must_use]
    pub fn named_graphs(&self) -> u64 {
        let named = &self.delta.named;
        let with_quads = self.base().named().len() + named.gained.len() - named.lost.len();
        let empty = self.delta.declared.iter();
        let empty = empty.filter(|graph| !self.has_quads(TermId::from_raw(*graph)));
        (with_quads + empty.count()) as u64
    }

    fn has_quads(&self, graph: TermId) -> bool {
        let named = &self.delta.named;
        if self.base().named().contains(graph) {
            !named.lost.contains(graph.raw())
        } else {
            named.gained.contains(graph.raw())
        }
    }

    /// True if a named graph has quads or was declared.
    #[must_use]
    pub fn has_graph(&self, graph: TermId) -> bool {
        self.has_quads(graph) || self.delta.declared.contains(graph.raw())
    }

    /// Calls `visit` with each named graph.
    pub fn for_each_graph(&self, visit: &mut dyn FnMut(TermId)) {
        let named = &self.delta.named;
        self.base().named().for_each_graph(&mut |graph| {
            if !named.lost.contains(graph.raw()) {
                visit(graph);
            }
        });
        named
            .gained
            .iter()
            .map(TermId::from_raw)
            .for_each(&mut *visit);
        let declared = self.delta.declared.iter().map(TermId::from_raw);
        declared
            .filter(|graph| !self.has_quads(*graph))
            .for_each(visit);
    }

    /// Graphs that exist without quads, too.
    pub fn declared_graphs(&self) -> impl Iterator<Item = TermId> + '_ {
        self.delta.declared.iter().map(TermId::from_raw)
    }

    fn match_named(
        &self,
        pattern: &Pattern,
        graph: Option<TermId>,
        visit: &mut Visit<'_>,
    ) -> ControlFlow<()> {
        let graphs = graph.map_or(Graphs::Named, Graphs::One);
        let named = &self.delta.named;
        if named.is_empty() {
            return self.base().for_each_match(pattern, graphs, visit);
        }
        self.base()
            .for_each_match(pattern, graphs, &mut |s, p, o, g| {
                if named.is_removed(g, (s, p, o)) {
                    return ControlFlow::Continue(());
                }
                visit(s, p, o, g)
            })?;
        match (pattern.predicate, graph) {
            (Some(predicate), graph) if pattern.subject.or(pattern.object).is_some() => {
                self.match_added(pattern, predicate, graph, visit)
            }
            (_, Some(graph)) => self.match_added_to(pattern, graph, visit),
            (Some(predicate), None) => self.match_added(pattern, predicate, None, visit),
            (None, None) => {
                for predicate in named.predicates() {
                    self.match_added(pattern, predicate, None, visit)?;
                }
                ControlFlow::Continue(())
            }
        }
    }

    /// Quads that one graph gained since the bulk load.
    fn match_added_to(
        &self,
        pattern: &Pattern,
        graph: TermId,
        visit: &mut Visit<'_>,
    ) -> ControlFlow<()> {
        let added = &self.delta.named.added;
        for quad in added.slices(of_graph(added, graph.raw())).flatten() {
            let (s, p, o) = (
                TermId::from_raw(quad.2),
                PredicateId(quad.1),
                TermId::from_raw(quad.3),
            );
            let fits = pattern.subject.is_none_or(|known| known == s)
                && pattern.predicate.is_none_or(|known| known == p)
                && pattern.object.is_none_or(|known| known == o);
            if fits {
                visit(s, p, o, graph)?;
            }
        }
        ControlFlow::Continue(())
    }

    /// Quads of one predicate that named graphs gained since the bulk load.
    fn match_added(
        &self,
        pattern: &Pattern,
        predicate: PredicateId,
        graph: Option<TermId>,
        visit: &mut Visit<'_>,
    ) -> ControlFlow<()> {
        let direction = if pattern.subject.is_some() {
            Direction::Out
        } else {
            Direction::In
        };
        let Some(delta) = self.delta.named.segment(predicate, direction) else {
            return ControlFlow::Continue(());
        };
        let added = &delta.added;
        let (key, other) = match direction {
            Direction::Out => (pattern.subject, pattern.object),
            Direction::In => (pattern.object, None),
        };
        let range = match key {
            Some(key) => {
                let key = key.raw();
                added.rank_by(|edge| edge.0 < key)..added.rank_by(|edge| edge.0 <= key)
            }
            None => 0..added.len(),
        };
        for (key, to, found) in added.slices(range).flatten() {
            let (key, to, found) = (
                TermId::from_raw(*key),
                TermId::from_raw(*to),
                TermId::from_raw(*found),
            );
            let fits =
                other.is_none_or(|other| other == to) && graph.is_none_or(|graph| graph == found);
            if fits {
                match direction {
                    Direction::Out => visit(key, predicate, to, found)?,
                    Direction::In => visit(to, predicate, key, found)?,
                }
            }
        }
        ControlFlow::Continue(())
    }

    /// Calls `visit` with quads of a named graph, of one predicate where that is given, from the
    /// `from`-th place on and of `count` places, until it breaks; returns false where these are
    /// the last. A place whose quad was removed is passed over.
    pub fn scan_graph(
        &self,
        graph: TermId,
        predicate: Option<PredicateId>,
        from: usize,
        count: usize,
        visit: &mut Visit<'_>,
    ) -> bool {
        let named = &self.delta.named;
        let base = self.base();
        if named.is_empty() {
            return base.scan_graph(graph, predicate, from, count, visit);
        }
        let in_base = base.graph_places(graph, predicate);
        if from < in_base {
            let mut visit = |s: TermId, p: PredicateId, o: TermId, g: TermId| {
                if named.is_removed(g, (s, p, o)) {
                    return ControlFlow::Continue(());
                }
                visit(s, p, o, g)
            };
            let count = count.min(in_base - from);
            base.scan_graph(graph, predicate, from, count, &mut visit);
        }
        let added = &named.added;
        let of_graph = match predicate {
            None => of_graph(added, graph.raw()),
            Some(predicate) => {
                let key = (graph.raw(), predicate.0);
                added.rank_by(|quad| (quad.0, quad.1) < key)
                    ..added.rank_by(|quad| (quad.0, quad.1) <= key)
            }
        };
        let places = in_base + of_graph.len();
        let end = places.min(from.saturating_add(count));
        if end > in_base {
            let first = of_graph.start + from.max(in_base) - in_base;
            let last = of_graph.start + end - in_base;
            for (_, p, s, o) in added.slices(first..last).flatten() {
                let (s, o) = (TermId::from_raw(*s), TermId::from_raw(*o));
                if visit(s, PredicateId(*p), o, graph).is_break() {
                    break;
                }
            }
        }
        end < places
    }
}

fn for_each_neighbour(
    list: Neighbours<'_>,
    visit: &mut dyn FnMut(TermId) -> ControlFlow<()>,
) -> ControlFlow<()> {
    const AT_ONCE: usize = 1024;
    let mut ids = Vec::new();
    let mut from = 0;
    while from < list.len() {
        ids.clear();
        list.copy(from, AT_ONCE, &mut ids);
        from += ids.len();
        for id in &ids {
            visit(*id)?;
        }
    }
    ControlFlow::Continue(())
}
