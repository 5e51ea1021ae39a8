//! Many sinks -> one: one id a term, whatever thread saw it.

use jindou_dictionary::Interner;
use jindou_model::{TermId, TermKind};
use rayon::prelude::*;

use super::sink::{BulkSink, Edges, NamedEdges};
use crate::StoreError;

/// All terms and edges, in ids of one numbering.
pub(super) struct Merged {
    pub(super) vertices: Interner,
    pub(super) literals: Interner,
    pub(super) predicates: Interner,
    /// By predicate.
    pub(super) edges: Vec<Edges>,
    /// By predicate.
    pub(super) named: Vec<NamedEdges>,
}

/// New ids of one sink's terms.
struct Translation {
    vertices: Vec<u32>,
    literals: Vec<u32>,
    predicates: Vec<u32>,
}

impl Translation {
    fn term(&self, raw: u64) -> u64 {
        let id = TermId::from_raw(raw);
        match id.kind() {
            TermKind::Vertex => {
                TermId::vertex(u64::from(self.vertices[id.number() as usize])).raw()
            }
            TermKind::Literal => {
                TermId::literal(u64::from(self.literals[id.number() as usize])).raw()
            }
            _ => raw,
        }
    }
}

/// Merges the sinks; the first one's ids stay as they are.
pub(super) fn merge(sinks: Vec<BulkSink>) -> Result<Merged, StoreError> {
    let mut sinks = sinks.into_iter();
    let first = sinks.next().unwrap_or_default();
    let mut merged = Merged {
        vertices: first.vertices,
        literals: first.literals,
        predicates: first.predicates,
        edges: first.edges,
        named: first.named,
    };
    for sink in sinks {
        let (vertices, (literals, predicates)) = rayon::join(
            || absorb(&mut merged.vertices, &sink.vertices),
            || {
                rayon::join(
                    || absorb(&mut merged.literals, &sink.literals),
                    || absorb(&mut merged.predicates, &sink.predicates),
                )
            },
        );
        let translation = Translation {
            vertices: vertices?,
            literals: literals?,
            predicates: predicates?,
        };
        merged.edges.resize_with(merged.predicates.len(), Vec::new);
        merged.named.resize_with(merged.predicates.len(), Vec::new);
        append(&mut merged, sink.edges, sink.named, &translation);
    }
    Ok(merged)
}

/// Adds the strings of `other`; returns their new numbers.
fn absorb(interner: &mut Interner, other: &Interner) -> Result<Vec<u32>, StoreError> {
    (0..other.len() as u32)
        .map(|id| {
            interner
                .intern_hashed(other.hash_of(id), other.get(id))
                .map_err(|error| StoreError::TooLarge {
                    reason: error.to_string(),
                })
        })
        .collect()
}

fn append(
    merged: &mut Merged,
    edges: Vec<Edges>,
    named: Vec<NamedEdges>,
    translation: &Translation,
) {
    // Each predicate of a sink has one place in the result, so the lists can be taken apart.
    let mut work: Vec<(Edges, NamedEdges)> = Vec::new();
    work.resize_with(merged.edges.len(), Default::default);
    for (number, lists) in edges.into_iter().zip(named).enumerate() {
        work[translation.predicates[number] as usize] = lists;
    }
    merged
        .edges
        .par_iter_mut()
        .zip(&mut merged.named)
        .zip(work)
        .for_each(|((edges, named), (more, more_named))| {
            edges.reserve_exact(more.len());
            edges.extend(
                more.iter()
                    .map(|(s, o)| (translation.term(*s), translation.term(*o))),
            );
            named.extend(more_named.iter().map(|(s, o, g)| {
                (
                    translation.term(*s),
                    translation.term(*o),
                    translation.term(*g),
                )
            }));
        });
}
