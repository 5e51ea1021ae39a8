//! What one parsing thread collects, and puts into a file once it is too much.

use std::sync::Arc;

use jindou_dictionary::Interner;
use jindou_fabric::allocator;
use jindou_model::{TermId, TermKind};
use oxrdf::{NamedOrBlankNodeRef, QuadRef, TermRef};

use super::super::build::sort_by_bytes;
use super::super::sink::BulkSink;
use super::keys::{KeyWriter, Keys};
use super::limits::Limits;
use super::records::{Record, Records, vertex_number};
use super::scratch::{Appender, Scratch};
use crate::StoreError;

/// Bytes that are gathered for the file.
const GATHERED: usize = 1 << 20;
/// Quads after which a sink looks at what it holds, which costs a step for each predicate.
const LEAST_BETWEEN: u32 = 256;
/// And after terms of this part of the bytes that it may hold.
const PART_OF_LIMIT: u64 = 8;

/// What a sink held when it was put into its file: terms are numbered in the order of their keys.
pub(super) struct Run {
    pub(super) vertices: Keys,
    pub(super) literals: Keys,
    /// Edges of predicates by their numbers in the sink.
    pub(super) edges: Vec<(u32, Records)>,
    pub(super) named: Vec<(u32, Records)>,
}

/// Bytes of the texts of a quad, as far as they may be long.
fn text_bytes(quad: QuadRef<'_>) -> u64 {
    let subject = match quad.subject {
        NamedOrBlankNodeRef::NamedNode(iri) => iri.as_str(),
        NamedOrBlankNodeRef::BlankNode(node) => node.as_str(),
    };
    let object = match quad.object {
        TermRef::NamedNode(iri) => iri.as_str(),
        TermRef::BlankNode(node) => node.as_str(),
        TermRef::Literal(literal) => literal.value(),
    };
    (subject.len() + object.len()) as u64
}

/// Terms and edges of one thread, as a [`BulkSink`] has them, of which what is too much for memory
/// is in a file.
pub struct SpillingSink {
    pub(super) sink: BulkSink,
    scratch: Arc<Scratch>,
    out: Option<Appender>,
    pub(super) runs: Vec<Run>,
    limit_bytes: u64,
    until_look: u32,
    text_until_look: u64,
    spilled_quads: u64,
}

impl SpillingSink {
    pub(super) fn new(scratch: &Arc<Scratch>, limits: &Limits) -> Self {
        Self {
            sink: BulkSink::new(),
            scratch: Arc::clone(scratch),
            out: None,
            runs: Vec::new(),
            limit_bytes: limits.sink_bytes(),
            until_look: LEAST_BETWEEN,
            text_until_look: limits.sink_bytes() / PART_OF_LIMIT,
            spilled_quads: 0,
        }
    }

    /// Takes one quad.
    ///
    /// # Errors
    /// As [`BulkSink::quad`]; what the operating system says of the file.
    #[inline]
    pub fn quad(&mut self, quad: QuadRef<'_>) -> Result<(), StoreError> {
        self.sink.quad(quad)?;
        self.until_look -= 1;
        self.text_until_look = self.text_until_look.saturating_sub(text_bytes(quad));
        match self.until_look == 0 || self.text_until_look == 0 {
            true => self.look(),
            false => Ok(()),
        }
    }

    /// Number of quads collected, repeats included.
    #[must_use]
    pub fn quads(&self) -> u64 {
        self.spilled_quads + self.sink.quads()
    }

    /// How often what it held was put into its file.
    #[must_use]
    pub fn spills(&self) -> usize {
        self.runs.len()
    }

    fn look(&mut self) -> Result<(), StoreError> {
        self.until_look = LEAST_BETWEEN.max(self.sink.edges.len() as u32);
        self.text_until_look = self.limit_bytes / PART_OF_LIMIT;
        match self.sink.bytes() > self.limit_bytes {
            true => self.spill(),
            false => Ok(()),
        }
    }

    /// Puts what it holds into its file; predicates keep their numbers.
    pub(super) fn spill(&mut self) -> Result<(), StoreError> {
        let mut sink = std::mem::take(&mut self.sink);
        self.spilled_quads += sink.quads();
        let out = match self.out.take() {
            Some(out) => out,
            None => Appender::at(self.scratch.create()?, 0, GATHERED),
        };
        let (vertices, vertex_keys, out) = write_keys(&sink.vertices, out)?;
        sink.vertices = Interner::new();
        let (literals, literal_keys, mut out) = write_keys(&sink.literals, out)?;
        sink.literals = Interner::new();
        let numbers = [vertices, literals];
        let edges = write_edges(&mut sink, &numbers, &mut out)?;
        let named = write_named(&mut sink, &numbers, &mut out)?;
        out.rest()?;
        self.out = Some(out);
        self.runs.push(Run {
            vertices: vertex_keys,
            literals: literal_keys,
            edges,
            named,
        });
        let predicates = sink.predicates.len();
        self.sink.predicates = sink.predicates;
        self.sink.edges.resize_with(predicates, Vec::new);
        self.sink.named.resize_with(predicates, Vec::new);
        allocator::release_free_memory();
        Ok(())
    }
}

/// Writes keys in order; also gives the place of each in that.
fn write_keys(strings: &Interner, out: Appender) -> Result<(Vec<u32>, Keys, Appender), StoreError> {
    let mut order: Vec<u32> = (0..strings.len() as u32).collect();
    sort_by_bytes(&mut order, |id| strings.get(id));
    let mut places = vec![0; order.len()];
    let mut writer = KeyWriter::new(out);
    for (place, id) in order.iter().enumerate() {
        writer.push(strings.get(*id))?;
        places[*id as usize] = place as u32;
    }
    let (keys, out) = writer.finish()?;
    Ok((places, keys, out))
}

/// The id that a term has by the new numbers of vertices and literals.
#[inline]
pub(super) fn renumbered([vertices, literals]: &[Vec<u32>; 2], raw: u64) -> u64 {
    let id = TermId::from_raw(raw);
    match id.kind() {
        TermKind::Vertex => TermId::vertex(vertices[id.number() as usize].into()).raw(),
        TermKind::Literal => TermId::literal(literals[id.number() as usize].into()).raw(),
        _ => raw,
    }
}

fn write_edges(
    sink: &mut BulkSink,
    numbers: &[Vec<u32>; 2],
    out: &mut Appender,
) -> Result<Vec<(u32, Records)>, StoreError> {
    let mut written = Vec::new();
    let with_edges = sink.edges.iter_mut().zip(0..);
    for (list, predicate) in with_edges.filter(|(list, _)| !list.is_empty()) {
        let records = list.iter().map(|(subject, object)| Record {
            subject: numbers[0][vertex_number(*subject) as usize],
            object: renumbered(numbers, *object),
            graph: 0,
        });
        written.push((predicate, Records::write(out, false, records)?));
        *list = Vec::new();
    }
    Ok(written)
}

fn write_named(
    sink: &mut BulkSink,
    numbers: &[Vec<u32>; 2],
    out: &mut Appender,
) -> Result<Vec<(u32, Records)>, StoreError> {
    let mut written = Vec::new();
    let with_edges = sink.named.iter_mut().zip(0..);
    for (list, predicate) in with_edges.filter(|(list, _)| !list.is_empty()) {
        let records = list.iter().map(|(subject, object, graph)| Record {
            subject: numbers[0][vertex_number(*subject) as usize],
            object: renumbered(numbers, *object),
            graph: numbers[0][vertex_number(*graph) as usize],
        });
        written.push((predicate, Records::write(out, true, records)?));
        *list = Vec::new();
    }
    Ok(written)
}
