//! Which characteristic set has each vertex, and in which graph is it at home, by edges that lie in
//! files?
//!
//! As `cluster` and `named` find them: vertices walk down the same trie, by numbers that are ranks
//! here, so that numbers are in the order of texts.

use std::cell::RefCell;
use std::cmp::{Ordering, Reverse};
use std::sync::Arc;

use jindou_model::{PredicateId, TermId, TermKind};
use rustc_hash::{FxHashMap, FxHashSet};

use super::super::cluster::{
    Clustering, IN, NAMED, OUT, Symbol, Trie, class_order, number_clusters,
};
use super::keys::Keys;
use super::ranks::Ranked;
use super::records::EdgeList;
use super::scratch::Scratch;
use super::sorter::{Sorted, Sorter};
use crate::StoreError;
use crate::homes::majorities;
use crate::runs::NO_HOME;

/// Bytes that are read ahead where texts of a few terms are looked for.
const AHEAD: usize = 256 << 10;

/// Finds the sets of all vertices, with about so many bytes for sorting types.
pub(super) fn cluster(
    ranked: &Ranked,
    scratch: &Arc<Scratch>,
    sort_bytes: u64,
) -> Result<Clustering, StoreError> {
    let mut walk = Walk {
        ranked,
        scratch,
        sort_bytes,
        trie: Trie::new(),
        places: Trie::places(ranked.vertices.count as usize),
    };
    let types = &ranked.predicates[PredicateId::TYPE.index()];
    let of_default = walk.types(&types.edges, 0)?;
    let of_named = walk.types(&types.named, NAMED)?;
    for (rank, predicate) in ranked.predicates.iter().enumerate().skip(1) {
        walk.edges(&predicate.edges, rank as Symbol)?;
        walk.edges(&predicate.named, NAMED | rank as Symbol)?;
    }
    let classes = [of_default.as_slice(), of_named.as_slice()];
    Ok(number_clusters(&walk.trie, walk.places, classes))
}

/// Vertices on their way down the trie.
struct Walk<'a> {
    ranked: &'a Ranked,
    scratch: &'a Arc<Scratch>,
    sort_bytes: u64,
    trie: Trie,
    places: Vec<u32>,
}

impl Walk<'_> {
    /// Lets each end of the edges of a predicate take a step.
    fn edges(&mut self, edges: &EdgeList, symbol: Symbol) -> Result<(), StoreError> {
        edges.for_each(|edge| {
            let place = &mut self.places[edge.subject as usize];
            self.trie.advance(place, OUT | symbol);
            Ok(())
        })?;
        edges.for_each(|edge| {
            let object = TermId::from_raw(edge.object);
            if object.kind() == TermKind::Vertex {
                let place = &mut self.places[object.number() as usize];
                self.trie.advance(place, IN | symbol);
            }
            Ok(())
        })
    }

    /// Lets each vertex step through its types, the most frequent first; returns the types in that
    /// order.
    fn types(&mut self, edges: &EdgeList, layer: Symbol) -> Result<Vec<u64>, StoreError> {
        let mut counts: FxHashMap<u64, usize> = FxHashMap::default();
        edges.for_each(|edge| {
            *counts.entry(edge.object).or_default() += 1;
            Ok(())
        })?;
        let classes = self.classes_in_order(counts)?;
        let ranks: FxHashMap<u64, u64> = classes.iter().copied().zip(0..).collect();
        let mut sorter = Sorter::new(self.scratch, edges.len(), self.sort_bytes);
        edges.for_each(|edge| sorter.push((ranks[&edge.object], u64::from(edge.subject))))?;
        let sorted: Sorted<(u64, u64)> = sorter.finish()?;
        sorted.for_each(|(rank, subject)| {
            let place = &mut self.places[subject as usize];
            self.trie.advance(place, layer | rank);
            Ok(())
        })?;
        Ok(classes)
    }

    fn classes_in_order(&self, counts: FxHashMap<u64, usize>) -> Result<Vec<u64>, StoreError> {
        let mut classes: Vec<(usize, u64)> = counts.into_iter().map(|(id, n)| (n, id)).collect();
        let kind = |(_, class): &(usize, u64)| TermId::from_raw(*class).kind();
        let has = |wanted| classes.iter().any(|class| kind(class) == wanted);
        if has(TermKind::Vertex) && has(TermKind::Literal) {
            let texts = Texts::of(self.ranked, &classes)?;
            classes.sort_unstable_by(|a, b| texts.order(*a, *b));
        } else {
            // Of one kind, ranks are in the order of texts.
            let key = |(count, class): &(usize, u64)| {
                let has_text = matches!(
                    TermId::from_raw(*class).kind(),
                    TermKind::Vertex | TermKind::Literal
                );
                (Reverse(*count), has_text, *class)
            };
            classes.sort_unstable_by_key(key);
        }
        Ok(classes.into_iter().map(|(_, class)| class).collect())
    }
}

/// The texts of classes, where literals are among them by mistake.
struct Texts(FxHashMap<u64, Vec<u8>>);

impl Texts {
    fn of(ranked: &Ranked, classes: &[(usize, u64)]) -> Result<Self, StoreError> {
        let mut texts = FxHashMap::default();
        let kinds = [
            (TermKind::Vertex, &ranked.vertices),
            (TermKind::Literal, &ranked.literals),
        ];
        for (kind, keys) in kinds {
            let ids = classes.iter().map(|(_, class)| TermId::from_raw(*class));
            let ids: FxHashSet<TermId> = ids.filter(|id| id.kind() == kind).collect();
            let mut numbers: Vec<u64> = ids.iter().map(|id| id.number()).collect();
            numbers.sort_unstable();
            let found = texts_at(keys, &numbers)?;
            let id = |number: u64| match kind {
                TermKind::Vertex => TermId::vertex(number).raw(),
                _ => TermId::literal(number).raw(),
            };
            texts.extend(numbers.into_iter().map(id).zip(found));
        }
        Ok(Self(texts))
    }

    fn order(&self, (count, class): (usize, u64), (others, other): (usize, u64)) -> Ordering {
        let text = |class: u64| self.0.get(&class).map(Vec::as_slice);
        class_order((count, text(class), class), (others, text(other), other))
    }
}

/// The keys at some places, which are sorted.
fn texts_at(keys: &Keys, places: &[u64]) -> Result<Vec<Vec<u8>>, StoreError> {
    let mut reader = keys.read(AHEAD);
    let mut read = 0;
    let mut texts = Vec::with_capacity(places.len());
    for place in places {
        while read <= *place {
            reader.advance()?;
            read += 1;
        }
        texts.push(reader.key().to_vec());
    }
    Ok(texts)
}

/// Where vertices are at home.
pub(super) struct Homes {
    /// The home of each vertex, by its place among `graphs`; empty where there are no named graphs.
    pub(super) homes: Vec<u32>,
    /// The graphs that are the home of a vertex, sorted.
    pub(super) graphs: Vec<u32>,
    /// All graphs.
    pub(super) all: FxHashSet<u32>,
}

/// Finds the homes of all vertices. Costs 16 bytes a vertex while it runs, if there are named graphs.
pub(super) fn homes(ranked: &Ranked) -> Result<Homes, StoreError> {
    let mut all = FxHashSet::default();
    let mut last = None;
    for predicate in &ranked.predicates {
        predicate.named.for_each(|edge| {
            if last != Some(edge.graph) {
                last = Some(edge.graph);
                all.insert(edge.graph);
            }
            Ok(())
        })?;
    }
    if all.is_empty() {
        return Ok(Homes {
            homes: Vec::new(),
            graphs: Vec::new(),
            all,
        });
    }
    let failed = RefCell::new(None);
    let mut homes = majorities(ranked.vertices.count as usize, || {
        let records = ranked.predicates.iter();
        let records = records.flat_map(|predicate| predicate.named.iter());
        records.map_while(|record| match record {
            Ok(edge) => Some((edge.subject as usize, edge.graph)),
            Err(error) => {
                failed.replace(Some(error));
                None
            }
        })
    });
    if let Some(error) = failed.into_inner() {
        return Err(error);
    }
    let at_home = homes.iter().copied().filter(|home| *home != NO_HOME);
    let graphs: FxHashSet<u32> = at_home.collect();
    let mut graphs: Vec<u32> = graphs.into_iter().collect();
    graphs.sort_unstable();
    let ranks: FxHashMap<u32, u32> = graphs.iter().copied().zip(0..).collect();
    for home in homes.iter_mut().filter(|home| **home != NO_HOME) {
        *home = ranks[home];
    }
    Ok(Homes { homes, graphs, all })
}
