//! How do edges lie in a file?
//!
//! As a subject, an object and, of those in named graphs, a graph. Subjects and graphs are vertices,
//! of which a number of 32 bits is enough; objects are whole ids, as they may be literals or values.

use std::sync::Arc;

use jindou_model::{TermId, TermKind};

use super::scratch::{Appender, ScratchFile, Section, SectionReader};
use crate::StoreError;

/// An edge whose graph is given: the subject's number, the object's id, the graph's number. Of an
/// edge of the default graph the last is 0, and is not written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) subject: u32,
    pub(super) object: u64,
    pub(super) graph: u32,
}

/// Bytes of an edge of the default graph.
const DEFAULT_BYTES: usize = 12;
/// Bytes of an edge of a named graph.
const NAMED_BYTES: usize = 16;
/// Edges that are read or rewritten at once.
const BATCH: usize = 4096;

impl Record {
    fn put(self, bytes: &mut [u8]) {
        bytes[..4].copy_from_slice(&self.subject.to_le_bytes());
        bytes[4..12].copy_from_slice(&self.object.to_le_bytes());
        if let Some(graph) = bytes.get_mut(12..16) {
            graph.copy_from_slice(&self.graph.to_le_bytes());
        }
    }

    fn of(bytes: &[u8]) -> Self {
        let number = |at: usize| {
            let mut number = [0; 4];
            number.copy_from_slice(&bytes[at..at + 4]);
            u32::from_le_bytes(number)
        };
        Self {
            subject: number(0),
            object: u64::from(number(4)) | u64::from(number(8)) << 32,
            graph: if bytes.len() > 12 { number(12) } else { 0 },
        }
    }
}

/// Edges of one predicate in one part of a file.
#[derive(Clone, Debug)]
pub(super) struct Records {
    file: Arc<ScratchFile>,
    section: Section,
    is_named: bool,
}

impl Records {
    /// Appends edges.
    pub(super) fn write(
        out: &mut Appender,
        is_named: bool,
        edges: impl Iterator<Item = Record>,
    ) -> Result<Self, StoreError> {
        let offset = out.end();
        let mut bytes = [0; NAMED_BYTES];
        let bytes = &mut bytes[..record_bytes(is_named)];
        for edge in edges {
            edge.put(bytes);
            out.push(bytes)?;
        }
        Ok(Self {
            file: Arc::clone(out.file()),
            section: Section {
                offset,
                bytes: out.end() - offset,
            },
            is_named,
        })
    }

    /// How many.
    pub(super) fn len(&self) -> u64 {
        self.section.bytes / record_bytes(self.is_named) as u64
    }

    /// Puts what `renumber` makes of each edge in its place.
    pub(super) fn rewrite(&self, renumber: impl Fn(Record) -> Record) -> Result<(), StoreError> {
        let size = record_bytes(self.is_named);
        let mut bytes = vec![0; BATCH * size];
        let (mut offset, end) = (
            self.section.offset,
            self.section.offset + self.section.bytes,
        );
        while offset < end {
            let count = bytes.len().min((end - offset) as usize);
            let batch = &mut bytes[..count];
            self.file.read(batch, offset)?;
            for record in batch.chunks_exact_mut(size) {
                renumber(Record::of(record)).put(record);
            }
            self.file.write(batch, offset)?;
            offset += count as u64;
        }
        Ok(())
    }

    fn read(&self) -> RecordReader {
        let size = record_bytes(self.is_named);
        RecordReader {
            input: SectionReader::new(Arc::clone(&self.file), self.section, BATCH * size),
            size,
        }
    }
}

fn record_bytes(is_named: bool) -> usize {
    match is_named {
        true => NAMED_BYTES,
        false => DEFAULT_BYTES,
    }
}

struct RecordReader {
    input: SectionReader,
    size: usize,
}

impl Iterator for RecordReader {
    type Item = Result<Record, StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.input.is_at_end() {
            return None;
        }
        Some(self.input.take(self.size).map(Record::of))
    }
}

/// All edges of one predicate in one layer, in any order and with repeats.
#[derive(Clone, Debug, Default)]
pub(super) struct EdgeList {
    parts: Vec<Records>,
}

impl EdgeList {
    pub(super) fn add(&mut self, records: Records) {
        if records.len() > 0 {
            self.parts.push(records);
        }
    }

    pub(super) fn len(&self) -> u64 {
        self.parts.iter().map(Records::len).sum()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// All edges; ends with the first error.
    pub(super) fn iter(&self) -> impl Iterator<Item = Result<Record, StoreError>> {
        self.parts.iter().flat_map(Records::read)
    }

    /// Calls `visit` with each edge until it fails.
    pub(super) fn for_each(
        &self,
        mut visit: impl FnMut(Record) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        self.iter().try_for_each(|record| visit(record?))
    }
}

/// The number of a vertex, as records have it.
pub(super) fn vertex_number(raw: u64) -> u32 {
    let id = TermId::from_raw(raw);
    debug_assert_eq!(id.kind(), TermKind::Vertex);
    id.number() as u32
}
