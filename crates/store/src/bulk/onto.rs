//! What some sinks collected -> a snapshot that has data and, with ids of before, them.
//!
//! A load onto data goes the way of a transaction: terms are found or added, new ones are numbered by
//! extents, and the quads become changes. Others may commit meanwhile. So it is done in two steps.
//! [`LoadedQuads`] are in the ids of a snapshot, and can be moved onto a later one as long as their
//! terms are not in the log. Then ids stay, and [`Loaded`] is a snapshot with the quads from which a
//! base is merged; what others committed meanwhile is made in it, too, at the end.

use jindou_dictionary::Interner;
use jindou_model::{Change, Direction, IdQuad, PredicateId, TermId, TermKind};
use rayon::prelude::*;

use super::sink::BulkSink;
use crate::delta::{Changes, Stage, TermCounts};
use crate::{LayerKind, Merged, Snapshot, StoreError};

/// Terms looked up together: the parts of the index that they need are still cached when those that
/// were not found are added.
const LOOKUP_BATCH: usize = 256;

/// The order of loaded quads: those of a predicate lie together.
type QuadOrder = (PredicateId, TermId, TermId, TermId);

fn order(quad: &IdQuad) -> QuadOrder {
    (quad.predicate, quad.subject, quad.object, quad.graph)
}

impl Snapshot {
    /// True if there is no term whose id anybody may remember: `rdf:type` is all that it knows, and
    /// no quad has that.
    #[must_use]
    pub fn is_blank(&self) -> bool {
        let TermCounts {
            vertices,
            literals,
            predicates,
        } = self.known_terms();
        let has_terms = vertices > 1 || literals > 0 || predicates > 1;
        let is_used = || self.triples() + self.named_quads() > 0;
        !has_terms && !is_used() && self.declared_graphs().next().is_none()
    }
}

/// What sinks collected as one step of a transaction in `onto`, which gets the terms that it lacks,
/// those of a characteristic set next to each other. Quads are sorted and distinct; some may be there
/// already.
///
/// Costs lookups of all terms of the sinks, in batches, and sorts of the quads and of the new terms;
/// holds 32 bytes a quad, and 8 a term of a sink meanwhile.
///
/// # Errors
/// [`StoreError::TooLarge`] after 2^32 terms.
pub fn stage_onto(sinks: &[BulkSink], onto: &mut Snapshot) -> Result<Stage, StoreError> {
    let since = onto.known_terms();
    let count: u64 = sinks.iter().map(BulkSink::quads).sum();
    let mut quads = Vec::with_capacity(count as usize);
    for sink in sinks {
        push_quads(sink, onto, &mut quads)?;
    }
    let mut stage = Stage {
        changes: Changes {
            add: quads,
            ..Changes::default()
        },
        ..Stage::default()
    };
    onto.arrange(since, &mut stage);
    sort(&mut stage.changes.add);
    Ok(stage)
}

fn sort(quads: &mut Vec<IdQuad>) {
    quads.par_sort_unstable_by_key(order);
    quads.dedup();
}

/// Appends the quads of a sink in ids of a snapshot.
fn push_quads(
    sink: &BulkSink,
    onto: &mut Snapshot,
    quads: &mut Vec<IdQuad>,
) -> Result<(), StoreError> {
    let vertices = ids_of(&sink.vertices, TermKind::Vertex, onto)?;
    let literals = ids_of(&sink.literals, TermKind::Literal, onto)?;
    let term = |raw: u64| {
        let id = TermId::from_raw(raw);
        match id.kind() {
            TermKind::Vertex => vertices[id.number() as usize],
            TermKind::Literal => literals[id.number() as usize],
            _ => id,
        }
    };
    for (number, (edges, named)) in sink.edges.iter().zip(&sink.named).enumerate() {
        if edges.is_empty() && named.is_empty() {
            continue;
        }
        let iri = std::str::from_utf8(sink.predicates.get(number as u32));
        let predicate = onto.intern_predicate(iri.expect("predicates are IRIs"))?;
        let quad = |subject, object, graph| IdQuad {
            subject: term(subject),
            predicate,
            object: term(object),
            graph,
        };
        quads.extend(edges.iter().map(|(s, o)| quad(*s, *o, TermId::NONE)));
        quads.extend(named.iter().map(|(s, o, g)| quad(*s, *o, term(*g))));
    }
    Ok(())
}

/// The ids of strings in a snapshot, which gets those that it lacks.
fn ids_of(
    strings: &Interner,
    kind: TermKind,
    onto: &mut Snapshot,
) -> Result<Vec<TermId>, StoreError> {
    let mut ids = Vec::with_capacity(strings.len());
    let (mut keys, mut numbers) = (Vec::with_capacity(LOOKUP_BATCH), Vec::new());
    for first in (0..strings.len()).step_by(LOOKUP_BATCH) {
        let end = strings.len().min(first + LOOKUP_BATCH);
        keys.clear();
        keys.extend((first..end).map(|number| strings.get(number as u32)));
        numbers.clear();
        let base = onto.base();
        let (tables, id): (_, fn(u64) -> TermId) = match kind {
            TermKind::Vertex => (base.vertex_tables(), TermId::vertex),
            _ => (base.literal_tables(), TermId::literal),
        };
        tables.lookup_batch(&keys, &mut numbers);
        for (key, number) in keys.iter().zip(&numbers) {
            let known = number.map(id).filter(|id| onto.is_living(*id));
            ids.push(match known {
                Some(id) => id,
                None => intern(onto, kind, key)?,
            });
        }
    }
    Ok(ids)
}

fn intern(onto: &mut Snapshot, kind: TermKind, key: &[u8]) -> Result<TermId, StoreError> {
    match kind {
        TermKind::Vertex => onto.intern_node(key),
        _ => onto.intern_literal(key),
    }
}

/// Quads in the ids of a snapshot and of the terms that it lacks.
pub struct LoadedQuads {
    /// Where its terms were looked up.
    basis: Snapshot,
    /// A copy of it with the new terms.
    working: Snapshot,
    /// Sorted by [`order`], distinct.
    quads: Vec<IdQuad>,
}

impl LoadedQuads {
    /// What sinks collected, in the ids of a snapshot. Costs what [`stage_onto`] does.
    ///
    /// # Errors
    /// [`StoreError::TooLarge`] after 2^32 terms.
    pub fn new(sinks: &[BulkSink], basis: &Snapshot) -> Result<Self, StoreError> {
        let mut working = basis.clone();
        let stage = stage_onto(sinks, &mut working)?;
        Ok(Self {
            basis: basis.clone(),
            working,
            quads: stage.changes.add,
        })
    }

    /// True if nobody committed since its terms were looked up.
    #[must_use]
    pub fn is_on(&self, latest: &Snapshot) -> bool {
        latest.is_same_version(&self.basis)
    }

    /// Brings it onto a later snapshot of the same base, where others may have added the same terms.
    /// Costs a lookup of each new term and, where these get other ids, a sort of the quads.
    ///
    /// # Errors
    /// [`StoreError::TooLarge`] after 2^32 terms.
    ///
    /// # Panics
    /// If the snapshot is of another base.
    pub fn move_onto(&mut self, latest: &Snapshot) -> Result<(), StoreError> {
        assert!(
            latest.is_of_generation_of(&self.basis),
            "terms are looked up again after a merge"
        );
        let mut working = latest.clone();
        let moved = Moved::new(&self.working, self.basis.known_terms(), &mut working)?;
        if latest.known_terms() != self.basis.known_terms() {
            self.quads.par_iter_mut().for_each(|quad| moved.quad(quad));
            sort(&mut self.quads);
        }
        self.basis = latest.clone();
        self.working = working;
        Ok(())
    }

    /// A copy of the snapshot with the new terms, which are to be kept, and the quads.
    #[must_use]
    pub fn into_parts(self) -> (Snapshot, Vec<IdQuad>) {
        (self.working, self.quads)
    }
}

/// The ids that new terms have elsewhere.
struct Moved {
    since: TermCounts,
    vertices: Vec<TermId>,
    literals: Vec<TermId>,
    predicates: Vec<PredicateId>,
}

impl Moved {
    /// The terms that `from` knows after the first `since`, in `to`: in their order, so that those
    /// of a set stay next to each other.
    fn new(from: &Snapshot, since: TermCounts, to: &mut Snapshot) -> Result<Self, StoreError> {
        let known = from.known_terms();
        let key = |id: TermId| from.appended_key(id).expect("the term is new");
        let vertices = (since.vertices..known.vertices)
            .map(|number| to.intern_node(key(TermId::vertex(number))))
            .collect::<Result<_, _>>()?;
        let literals = (since.literals..known.literals)
            .map(|number| to.intern_literal(key(TermId::literal(number))))
            .collect::<Result<_, _>>()?;
        let mut iri = Vec::new();
        let predicates = (since.predicates..known.predicates)
            .map(|number| {
                iri.clear();
                from.push_key(from.predicate_term(PredicateId(number as u32)), &mut iri);
                to.intern_predicate(std::str::from_utf8(&iri).expect("predicates are IRIs"))
            })
            .collect::<Result<_, _>>()?;
        Ok(Self {
            since,
            vertices,
            literals,
            predicates,
        })
    }

    fn quad(&self, quad: &mut IdQuad) {
        quad.subject = self.term(quad.subject);
        quad.object = self.term(quad.object);
        quad.graph = self.term(quad.graph);
        let number = u64::from(quad.predicate.0).checked_sub(self.since.predicates);
        let moved = number.map(|place| self.predicates[place as usize]);
        quad.predicate = moved.unwrap_or(quad.predicate);
    }

    fn term(&self, id: TermId) -> TermId {
        let (ids, since) = match id.kind() {
            TermKind::Vertex => (&self.vertices, self.since.vertices),
            TermKind::Literal => (&self.literals, self.since.literals),
            _ => return id,
        };
        let place = id.number().checked_sub(since);
        place.map_or(id, |place| ids[place as usize])
    }
}

/// A snapshot with loaded quads, while others commit to the one that it was made of.
pub struct Loaded {
    start: Snapshot,
    with: Snapshot,
    /// Sorted by [`order`], distinct.
    quads: Vec<IdQuad>,
    added: u64,
}

impl Loaded {
    /// Adds quads, sorted as [`LoadedQuads`] has them, to a copy of a snapshot that knows their
    /// terms.
    ///
    /// Costs what [`Snapshot::apply`] does; holds some hundred bytes a quad.
    #[must_use]
    pub fn new(start: Snapshot, quads: Vec<IdQuad>) -> Self {
        debug_assert!(quads.is_sorted_by_key(order));
        let mut with = start.clone();
        let mut added = 0;
        // One predicate after the other, so that only its quads are held a third time.
        for of_predicate in quads.chunk_by(|a, b| a.predicate == b.predicate) {
            let changes = Changes {
                add: of_predicate.to_vec(),
                ..Changes::default()
            };
            added += with.apply(&changes).added;
        }
        Self {
            start,
            with,
            quads,
            added,
        }
    }

    /// Quads that were not there.
    #[must_use]
    pub fn added(&self) -> u64 {
        self.added
    }

    /// A base with these quads and all that changed before.
    ///
    /// # Errors
    /// As [`Merged::new`].
    pub fn merged(&self) -> Result<Merged, StoreError> {
        let changed = self.with.changed_predicates().into_iter();
        let predicates = changed.map(|one| one.predicate).collect();
        Merged::new(self.with.clone(), predicates)
    }

    /// The latest snapshot with these quads, also with those that others removed meanwhile: the load
    /// comes after them. It is still upon the base before, and has the number of `latest`.
    ///
    /// Costs what others changed meanwhile.
    ///
    /// # Panics
    /// If `latest` is of another base.
    #[must_use]
    pub fn onto(&self, latest: &Snapshot) -> Snapshot {
        let mut next = latest.clone();
        next.delta = self.with.delta.clone();
        let mut meanwhile = changes_between(&self.start, latest);
        let is_loaded = |quad: &IdQuad| {
            let place = self.quads.binary_search_by_key(&order(quad), order);
            place.is_ok()
        };
        meanwhile.changes.remove.retain(|quad| !is_loaded(quad));
        next.apply_stage(&meanwhile);
        next
    }
}

/// The step that leads from one snapshot to a later one of the same base.
fn changes_between(before: &Snapshot, after: &Snapshot) -> Stage {
    assert!(
        after.is_of_generation_of(before),
        "ids of another generation mean something else"
    );
    let mut changes = Changes::default();
    let mut note = |change, graph, number, subject, object| {
        let quad = IdQuad {
            subject: TermId::from_raw(subject),
            predicate: PredicateId(number),
            object: TermId::from_raw(object),
            graph,
        };
        match change {
            Change::Add => changes.add.push(quad),
            Change::Remove => changes.remove.push(quad),
        }
    };
    let kind = LayerKind::Default as usize;
    let segments = &after.delta.layers[kind].segments[Direction::Out as usize];
    for (number, segment) in segments.iter() {
        let old = before.delta.layers[kind].segment(PredicateId(number as u32), Direction::Out);
        let nothing = Default::default();
        for ((subject, object), change) in segment.edges_since(old.unwrap_or(&nothing)) {
            note(change, TermId::NONE, number as u32, subject, object);
        }
    }
    let (now, then) = (&after.delta.named, &before.delta.named);
    let inverse = |change| match change {
        Change::Add => Change::Remove,
        Change::Remove => Change::Add,
    };
    for ((graph, number, subject, object), change) in now.added.changes_since(&then.added) {
        note(change, TermId::from_raw(graph), number, subject, object);
    }
    for ((graph, number, subject, object), change) in now.removed.changes_since(&then.removed) {
        let change = inverse(change);
        note(change, TermId::from_raw(graph), number, subject, object);
    }
    let declared = after.declared_since(before);
    let of = |wanted: Change| {
        let graphs = declared.iter().filter(move |(_, change)| *change == wanted);
        graphs.map(|(graph, _)| TermId::from_raw(*graph)).collect()
    };
    Stage {
        changes,
        forget: of(Change::Remove),
        declare: of(Change::Add),
    }
}
