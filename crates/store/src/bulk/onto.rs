//! What some sinks collected -> a snapshot that has data and, with ids of before, them.
//!
//! A load onto data goes the way of a transaction: terms are found or added, new ones are numbered by
//! extents, and the quads become changes. Others may commit meanwhile. So it is done in two steps.
//! [`LoadedQuads`] are in the ids of a snapshot, and can be moved onto a later one as long as their
//! terms are not in the log. Then ids stay, and [`Loaded`] is a snapshot with the quads from which a
//! base is merged; what others committed meanwhile is made in it, too, at the end.

use jindou_dictionary::Interner;
use jindou_model::{Change, IdQuad, PredicateId, TermId, TermKind};
use rayon::prelude::*;
use rustc_hash::FxHashMap;

use super::sink::BulkSink;
use crate::delta::{Changes, NewIds, Stage, TermCounts, TermKey};
use crate::{Merged, Snapshot, StoreError};

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
            ..
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
    let quads = quads_onto(sinks, onto)?;
    Ok(arranged(quads, since, onto))
}

/// The quads of sinks in ids of a snapshot, which gets the terms that it lacks, in no order and with
/// repeats. New vertices may be [arranged](Snapshot::arrange) afterwards.
///
/// # Errors
/// As [`stage_onto`].
pub fn quads_onto(sinks: &[BulkSink], onto: &mut Snapshot) -> Result<Vec<IdQuad>, StoreError> {
    let mut quads = Vec::with_capacity(count(sinks));
    for sink in sinks {
        push_quads(sink, onto, &mut quads)?;
    }
    Ok(quads)
}

fn count(sinks: &[BulkSink]) -> usize {
    sinks.iter().map(BulkSink::quads).sum::<u64>() as usize
}

/// The step that adds quads, of which `onto` got the terms after the first `since`.
fn arranged(quads: Vec<IdQuad>, since: TermCounts, onto: &mut Snapshot) -> Stage {
    let mut stage = Stage {
        changes: Changes {
            add: quads,
            ..Changes::default()
        },
        ..Stage::default()
    };
    onto.arrange(since, &mut stage, &mut []);
    sort(&mut stage.changes.add);
    stage
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
    let mut keys = Vec::with_capacity(LOOKUP_BATCH);
    for first in (0..strings.len()).step_by(LOOKUP_BATCH) {
        let end = strings.len().min(first + LOOKUP_BATCH);
        keys.clear();
        let strings = (first..end).map(|number| strings.get(number as u32));
        keys.extend(strings.map(|key| TermKey::new(key, kind == TermKind::Literal)));
        ids.extend(onto.intern_keys(&keys)?);
    }
    Ok(ids)
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
    /// What sinks collected, in the ids of a snapshot. Costs what [`stage_onto`] does, and gives up
    /// the sinks one by one.
    ///
    /// # Errors
    /// [`StoreError::TooLarge`] after 2^32 terms.
    pub fn new(sinks: Vec<BulkSink>, basis: &Snapshot) -> Result<Self, StoreError> {
        let mut working = basis.clone();
        let mut quads = Vec::with_capacity(count(&sinks));
        for sink in sinks {
            push_quads(&sink, &mut working, &mut quads)?;
        }
        let stage = arranged(quads, basis.known_terms(), &mut working);
        Ok(Self {
            basis: basis.clone(),
            working,
            quads: stage.changes.add,
        })
    }

    /// True if nobody committed since its terms were looked up.
    #[must_use]
    pub fn is_on(&self, latest: &Snapshot) -> bool {
        latest.is_same_version(&self.basis) && self.working.has_open_extents()
    }

    /// Brings it onto a later snapshot of the same base, where others may have added the same terms.
    /// Costs a lookup of each new term and a sort of the quads, of which it holds a copy meanwhile.
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
        let stage = Stage {
            changes: Changes {
                add: std::mem::take(&mut self.quads),
                ..Changes::default()
            },
            ..Stage::default()
        };
        let mut working = latest.clone();
        let mut new_ids = NewIds::beside(self.basis.clone(), self.working.clone());
        self.quads = new_ids.stage(&stage, &mut working)?.changes.add;
        sort(&mut self.quads);
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

/// A snapshot with loaded quads, while others commit to the one that it was made of.
pub struct Loaded {
    start: Snapshot,
    with: Snapshot,
    /// All that was loaded of the predicates of which some quads were there already, sorted by
    /// [`order`].
    repeated: FxHashMap<PredicateId, Vec<IdQuad>>,
    added: u64,
}

impl Loaded {
    /// Adds quads, sorted as [`LoadedQuads`] has them, to a copy of a snapshot that knows their
    /// terms.
    ///
    /// Costs what [`Snapshot::apply`] does; holds some hundred bytes a quad, and gives up those that
    /// are added, one predicate after the other.
    #[must_use]
    pub fn new(start: Snapshot, mut quads: Vec<IdQuad>) -> Self {
        debug_assert!(quads.is_sorted_by_key(order));
        let mut with = start.clone();
        let (mut repeated, mut added) = (FxHashMap::default(), 0);
        while let Some(predicate) = quads.last().map(|quad| quad.predicate) {
            let first = quads.partition_point(|quad| quad.predicate < predicate);
            let changes = Changes {
                add: quads.split_off(first),
                ..Changes::default()
            };
            // Seldom enough that what is copied then is no more than there was.
            if quads.len() <= quads.capacity() / 2 {
                quads.shrink_to_fit();
            }
            let new = with.apply(&changes).added;
            added += new;
            if new < changes.add.len() as u64 {
                repeated.insert(predicate, changes.add);
            }
        }
        Self {
            start,
            with,
            repeated,
            added,
        }
    }

    /// Quads that were not there.
    #[must_use]
    pub fn added(&self) -> u64 {
        self.added
    }

    /// A base with these quads and all that changed before. Extents were
    /// [closed](Snapshot::close_extents) when the terms were the latest.
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
        // What they removed was there before the load.
        let is_loaded = |quad: &IdQuad| {
            let loaded = self.repeated.get(&quad.predicate);
            loaded.is_some_and(|quads| quads.binary_search_by_key(&order(quad), order).is_ok())
        };
        meanwhile.changes.remove.retain(|quad| !is_loaded(quad));
        next.apply_stage(&meanwhile);
        next
    }
}

/// The step that leads from one snapshot to a later one of the same base.
fn changes_between(before: &Snapshot, after: &Snapshot) -> Stage {
    let declared = after.declared_since(before);
    let of = |wanted: Change| {
        let graphs = declared.iter().filter(move |(_, change)| *change == wanted);
        graphs.map(|(graph, _)| TermId::from_raw(*graph)).collect()
    };
    Stage {
        changes: after.quads_since(before),
        forget: of(Change::Remove),
        declare: of(Change::Add),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};
    use std::ops::ControlFlow;

    use jindou_model::{Pattern, SnapshotNumber};
    use oxrdf::{GraphName, Literal, NamedNode, Quad, Term};

    use super::*;
    use crate::Rebase;
    use crate::bulk::build;

    /// Subject, predicate, object and graph.
    type Text = [String; 4];
    type Texts = BTreeSet<Text>;

    struct Random(u64);

    impl Random {
        fn below(&mut self, bound: u64) -> u64 {
            self.0 = (self.0)
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 33) % bound
        }

        fn quad(&mut self) -> Text {
            let mut iri = |kind: &str, count| format!("http://e/{kind}{}", self.below(count));
            let (subject, mut predicate) = (iri("s", 60), iri("p", 7));
            let (graph, mut object) = (iri("g", 6), iri("s", 60));
            match self.below(6) {
                0 => object = format!("a text {}", self.below(40)),
                1 => {
                    "http://www.w3.org/1999/02/22-rdf-syntax-ns#type".clone_into(&mut predicate);
                }
                2 => predicate = format!("http://e/s{}", self.below(3)),
                _ => {}
            }
            let is_named = ["g0", "g1", "g2"].iter().any(|end| graph.ends_with(end));
            let graph = if is_named { graph } else { String::new() };
            [subject, predicate, object, graph]
        }

        fn quads(&mut self, most: u64) -> Texts {
            (0..self.below(most)).map(|_| self.quad()).collect()
        }

        fn some_of(&mut self, quads: &Texts) -> Texts {
            let some = quads.iter().filter(|_| self.below(3) == 0);
            some.cloned().collect()
        }
    }

    fn sink<'q>(quads: impl IntoIterator<Item = &'q Text>) -> BulkSink {
        let mut sink = BulkSink::new();
        for [subject, predicate, object, graph] in quads {
            let object: Term = match object.starts_with("http") {
                true => NamedNode::new_unchecked(object).into(),
                false => Literal::new_simple_literal(object).into(),
            };
            let graph = match graph.is_empty() {
                true => GraphName::DefaultGraph,
                false => NamedNode::new_unchecked(graph).into(),
            };
            let subject = NamedNode::new_unchecked(subject);
            let quad = Quad::new(subject, NamedNode::new_unchecked(predicate), object, graph);
            sink.quad(quad.as_ref()).unwrap();
        }
        sink
    }

    /// What a snapshot holds, and the ids of its terms.
    fn read(snapshot: &Snapshot) -> (Texts, BTreeMap<String, TermId>) {
        let (mut quads, mut ids) = (Texts::new(), BTreeMap::new());
        let mut visit = |s, p: PredicateId, o, g: TermId| {
            let mut text = |id: TermId| {
                let mut key = Vec::new();
                snapshot.push_key(id, &mut key);
                let key = String::from_utf8_lossy(&key)
                    .trim_end_matches('\0')
                    .to_owned();
                ids.insert(key.clone(), id);
                key
            };
            let predicate = text(snapshot.predicate_term(p));
            let graph = if g.is_none() { String::new() } else { text(g) };
            quads.insert([text(s), predicate, text(o), graph]);
            ControlFlow::Continue(())
        };
        let all = Pattern {
            subject: None,
            predicate: None,
            object: None,
        };
        let _ = snapshot.for_each_quad(&all, &mut visit);
        let _ = snapshot.default_graph().for_each_match(&all, &mut visit);
        (quads, ids)
    }

    fn next_of(latest: &Snapshot, working: Snapshot) -> Snapshot {
        let mut next = working;
        next.set_number(SnapshotNumber(latest.number().0 + 1));
        next.keep_terms();
        next
    }

    /// The latest snapshot, and what it holds.
    struct Store {
        latest: Snapshot,
        quads: Texts,
    }

    impl Store {
        fn commit(&mut self, remove: &Texts, add: &Texts) {
            let mut working = self.latest.clone();
            let mut ids = |quads| stage_onto(&[sink(quads)], &mut working).unwrap();
            let (remove_ids, add_ids) = (ids(remove).changes.add, ids(add).changes.add);
            working.apply(&Changes {
                remove: remove_ids,
                add: add_ids,
            });
            self.latest = next_of(&self.latest, working);
            self.quads.retain(|quad| !remove.contains(quad));
            self.quads.extend(add.iter().cloned());
        }
    }

    #[test]
    fn a_load_comes_after_what_others_commit_meanwhile_and_no_term_gets_another_id() {
        for seed in 0..300 {
            let mut random = Random(seed);
            let quads = random.quads(150);
            let base = build(vec![sink(&quads)], 0).unwrap();
            let latest = Snapshot::of_base(base, 1, SnapshotNumber(1));
            let mut store = Store { latest, quads };
            let change = |random: &mut Random, store: &mut Store, more: &Texts| {
                let gone = random.some_of(&store.quads.union(more).cloned().collect());
                let new = random.quads(20);
                store.commit(&gone, &new);
            };
            change(&mut random, &mut store, &Texts::new());
            let mut load = random.quads(100);
            load.extend(random.some_of(&store.quads));
            let (one, other): (Vec<_>, Vec<_>) = load.iter().partition(|_| random.below(3) > 0);
            // What both have is loaded once.
            let sinks = [sink(one), sink(other.iter().copied()), sink(other)];
            let mut quads = LoadedQuads::new(sinks.into(), &store.latest).unwrap();
            for _ in 0..random.below(3) {
                change(&mut random, &mut store, &load);
                assert!(!quads.is_on(&store.latest));
                quads.move_onto(&store.latest).unwrap();
            }
            assert!(quads.is_on(&store.latest));
            let (working, quads) = quads.into_parts();
            assert_eq!(quads.len(), load.len(), "seed {seed}");
            store.latest = next_of(&store.latest, working);
            store.latest.close_extents();
            let (found, ids) = read(&store.latest);
            assert_eq!(found, store.quads, "seed {seed}");
            let new = load.difference(&store.quads).count() as u64;
            let loaded = Loaded::new(store.latest.clone(), quads);
            assert_eq!(loaded.added(), new, "seed {seed}");
            for _ in 0..random.below(3) {
                change(&mut random, &mut store, &load);
            }
            let merged = loaded.merged().unwrap();
            let with = loaded.onto(&store.latest);
            let rebase = Rebase::new(merged, &with);
            let mut next = rebase.apply(&with);
            next.forget_terms(rebase.unused());
            let expected: Texts = store.quads.union(&load).cloned().collect();
            assert_eq!(read(&with).0, expected, "seed {seed}");
            let (found, later) = read(&next);
            assert_eq!(found, expected, "seed {seed}");
            next.base().verify().unwrap();
            for (term, id) in ids {
                let found = later.get(&term);
                assert!(
                    found.is_none_or(|found| *found == id),
                    "seed {seed}: {term}"
                );
            }
        }
    }
}
