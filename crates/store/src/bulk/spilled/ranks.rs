//! Which place has each term among all, in the order of their keys?
//!
//! The runs of all sinks are merged. Each run learns the places, its *ranks*, of its terms, and its
//! edges are rewritten in these where they lie.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::sync::Arc;

use jindou_dictionary::Interner;
use rayon::prelude::*;

use super::super::build::predicates_in_order;
use super::super::sink::intern;
use super::keys::{KeyReader, KeyWriter, Keys};
use super::limits::{Limits, share};
use super::records::EdgeList;
use super::scratch::{Appender, Scratch, ScratchFile, Section};
use super::sink::{Run, SpillingSink, renumbered};
use crate::StoreError;

/// Bytes that are gathered for the file of merged keys.
const GATHERED: usize = 1 << 20;
/// The most terms of a kind: ids have 32 bits, and the largest is a mark.
const MOST_TERMS: u64 = u32::MAX as u64;

/// All terms in the order of their keys, and all edges in ranks.
pub(super) struct Ranked {
    pub(super) vertices: Keys,
    pub(super) literals: Keys,
    /// In their final order.
    pub(super) predicates: Vec<Predicate>,
}

/// A predicate, and its edges in each layer.
pub(super) struct Predicate {
    /// The rank of its IRI among vertices.
    pub(super) vertex: u32,
    /// Edges of the default graph.
    pub(super) edges: EdgeList,
    /// Those of named graphs.
    pub(super) named: EdgeList,
}

impl Ranked {
    /// Merges what sinks have put into their files, which is all that they hold.
    pub(super) fn new(
        sinks: Vec<SpillingSink>,
        scratch: &Arc<Scratch>,
        limits: &Limits,
    ) -> Result<Self, StoreError> {
        let (predicates, numbers) = all_predicates(&sinks)?;
        let order = predicates_in_order(&predicates);
        let iris = predicate_keys(&predicates, scratch)?;
        let runs = || sinks.iter().flat_map(|sink| &sink.runs);
        let of_vertices: Vec<&Keys> = runs().map(|run| &run.vertices).chain([&iris]).collect();
        let of_literals: Vec<&Keys> = runs().map(|run| &run.literals).collect();
        let bytes = limits.all() / 4;
        let (vertices, literals) = rayon::join(
            || merge(&of_vertices, scratch, bytes),
            || merge(&of_literals, scratch, bytes),
        );
        let ((vertices, mut vertex_ranks), (literals, literal_ranks)) = (vertices?, literals?);
        let of_iris = vertex_ranks.pop().expect("the predicates are one").read()?;
        rewrite_all(runs().zip(vertex_ranks).zip(literal_ranks))?;

        let places = inverse(&order);
        let sorted: Vec<Predicate> = of_iris.into_iter().map(Predicate::new).collect();
        let by_place = in_final_order(sorted, &predicates, &order);
        Ok(Self {
            vertices,
            literals,
            predicates: with_edges(by_place, sinks, &numbers, &places),
        })
    }
}

impl Predicate {
    fn new(vertex: u32) -> Self {
        Self {
            vertex,
            edges: EdgeList::default(),
            named: EdgeList::default(),
        }
    }
}

/// The predicates of all sinks; and by sink, their numbers among these.
fn all_predicates(sinks: &[SpillingSink]) -> Result<(Interner, Vec<Vec<u32>>), StoreError> {
    let mut all = Interner::new();
    let mut numbers = Vec::with_capacity(sinks.len());
    for sink in sinks {
        let own = sink.sink.predicates.iter();
        let own: Result<Vec<u32>, StoreError> = own.map(|iri| intern(&mut all, iri)).collect();
        numbers.push(own?);
    }
    Ok((all, numbers))
}

fn inverse(order: &[u32]) -> Vec<u32> {
    let mut places = vec![0; order.len()];
    for (place, number) in order.iter().zip(0..) {
        places[*place as usize] = number;
    }
    places
}

/// IRIs of predicates in their order: each is a vertex.
fn predicate_keys(predicates: &Interner, scratch: &Arc<Scratch>) -> Result<Keys, StoreError> {
    let mut iris: Vec<&[u8]> = predicates.iter().collect();
    iris.sort_unstable();
    let mut writer = KeyWriter::new(Appender::at(scratch.create()?, 0, GATHERED));
    iris.into_iter().try_for_each(|iri| writer.push(iri))?;
    Ok(writer.finish()?.0)
}

/// Puts predicates that are in the order of all their IRIs into that of a store, where `rdf:type` is first.
fn in_final_order(
    mut sorted: Vec<Predicate>,
    predicates: &Interner,
    order: &[u32],
) -> Vec<Predicate> {
    let first = predicates.get(order[0]);
    let place = order[1..].partition_point(|number| predicates.get(*number) < first);
    let first = sorted.remove(place);
    sorted.insert(0, first);
    sorted
}

/// Gives predicates the edges that all sinks have of them.
fn with_edges(
    mut predicates: Vec<Predicate>,
    sinks: Vec<SpillingSink>,
    numbers: &[Vec<u32>],
    places: &[u32],
) -> Vec<Predicate> {
    for (sink, numbers) in sinks.into_iter().zip(numbers) {
        let place = |number: u32| places[numbers[number as usize] as usize] as usize;
        for run in sink.runs {
            for (number, records) in run.edges {
                predicates[place(number)].edges.add(records);
            }
            for (number, records) in run.named {
                predicates[place(number)].named.add(records);
            }
        }
    }
    predicates
}

/// The ranks of the terms of one run, in a file.
struct Ranks {
    file: Arc<ScratchFile>,
    section: Section,
}

impl Ranks {
    fn read(&self) -> Result<Vec<u32>, StoreError> {
        let mut ranks = vec![0_u32; (self.section.bytes / 4) as usize];
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut ranks);
        self.file.read(bytes, self.section.offset)?;
        Ok(ranks)
    }
}

/// A run that is being merged: the smallest key is the greatest of these.
struct Source {
    reader: KeyReader,
    ranks: Appender,
}

impl Ord for Source {
    fn cmp(&self, other: &Self) -> Ordering {
        other.reader.key().cmp(self.reader.key())
    }
}

impl PartialOrd for Source {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Source {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Source {}

/// Merges keys, each of which comes once: all of them, and for each source the ranks of its own.
fn merge(
    sources: &[&Keys],
    scratch: &Arc<Scratch>,
    bytes: u64,
) -> Result<(Keys, Vec<Ranks>), StoreError> {
    let file = scratch.create()?;
    let ahead = share(bytes / 2, sources.len());
    let mut ranks = Vec::with_capacity(sources.len());
    let mut heap = BinaryHeap::with_capacity(sources.len());
    let mut offset = 0;
    for keys in sources {
        let section = Section {
            offset,
            bytes: keys.count * 4,
        };
        ranks.push(Ranks {
            file: Arc::clone(&file),
            section,
        });
        let mut source = Source {
            reader: keys.read(ahead),
            ranks: Appender::at(Arc::clone(&file), offset, ahead),
        };
        offset += section.bytes;
        if source.reader.advance()? {
            heap.push(source);
        }
    }
    let keys = merge_heap(heap, scratch)?;
    Ok((keys, ranks))
}

fn merge_heap(mut heap: BinaryHeap<Source>, scratch: &Arc<Scratch>) -> Result<Keys, StoreError> {
    let mut writer = KeyWriter::new(Appender::at(scratch.create()?, 0, GATHERED));
    let mut last: Vec<u8> = Vec::new();
    let mut count = 0_u64;
    while let Some(mut top) = heap.peek_mut() {
        let key = top.reader.key();
        if count == 0 || last != key {
            if count == MOST_TERMS {
                return Err(StoreError::TooLarge {
                    reason: format!("a store holds at most {MOST_TERMS} of a kind"),
                });
            }
            writer.push(key)?;
            last.clear();
            last.extend_from_slice(key);
            count += 1;
        }
        top.ranks.push(&((count - 1) as u32).to_le_bytes())?;
        if !top.reader.advance()? {
            PeekMut::pop(top).ranks.rest()?;
        }
    }
    Ok(writer.finish()?.0)
}

/// Rewrites the edges of runs in the ranks of their terms.
fn rewrite_all<'r>(
    runs: impl Iterator<Item = ((&'r Run, Ranks), Ranks)>,
) -> Result<(), StoreError> {
    let runs: Vec<_> = runs.collect();
    runs.into_par_iter()
        .try_for_each(|((run, vertices), literals)| {
            let ranks = [vertices.read()?, literals.read()?];
            for (_, records) in &run.edges {
                records.rewrite(|mut record| {
                    record.subject = ranks[0][record.subject as usize];
                    record.object = renumbered(&ranks, record.object);
                    record
                })?;
            }
            for (_, records) in &run.named {
                records.rewrite(|mut record| {
                    record.subject = ranks[0][record.subject as usize];
                    record.object = renumbered(&ranks, record.object);
                    record.graph = ranks[0][record.graph as usize];
                    record
                })?;
            }
            Ok(())
        })
}
