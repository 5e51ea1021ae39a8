//! How are more records sorted than fit into memory?
//!
//! As many as fit are sorted and written, and what was written is merged, each time it is read.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::sync::Arc;

use rayon::prelude::*;

use super::super::sort::sort_pairs;
use super::limits::share;
use super::scratch::{Appender, Scratch, ScratchFile, Section, SectionReader};
use crate::StoreError;

/// Bytes that are gathered for a file.
const GATHERED: usize = 256 << 10;

/// Some numbers, which are in the order of the first one, then of the next.
pub(super) trait Row: Copy + Ord + Send {
    /// Bytes of one in a file.
    const BYTES: usize;
    /// Bytes of memory that sorting takes for each, the row itself included.
    const SORT_BYTES: usize;

    /// Sorts, and removes repeats.
    fn sort(rows: &mut Vec<Self>);
    fn write(self, out: &mut Appender) -> Result<(), StoreError>;
    fn read(bytes: &[u8]) -> Self;
}

fn word(bytes: &[u8], place: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[place * 8..place * 8 + 8]);
    u64::from_le_bytes(word)
}

impl Row for (u64, u64) {
    const BYTES: usize = 16;
    const SORT_BYTES: usize = 32;

    fn sort(rows: &mut Vec<Self>) {
        sort_pairs(rows);
    }

    fn write(self, out: &mut Appender) -> Result<(), StoreError> {
        out.push(&self.0.to_le_bytes())?;
        out.push(&self.1.to_le_bytes())
    }

    fn read(bytes: &[u8]) -> Self {
        (word(bytes, 0), word(bytes, 1))
    }
}

impl Row for (u64, u64, u64) {
    const BYTES: usize = 24;
    const SORT_BYTES: usize = 32;

    fn sort(rows: &mut Vec<Self>) {
        rows.par_sort_unstable();
        rows.dedup();
    }

    fn write(self, out: &mut Appender) -> Result<(), StoreError> {
        out.push(&self.0.to_le_bytes())?;
        out.push(&self.1.to_le_bytes())?;
        out.push(&self.2.to_le_bytes())
    }

    fn read(bytes: &[u8]) -> Self {
        (word(bytes, 0), word(bytes, 1), word(bytes, 2))
    }
}

/// Takes records in any order.
pub(super) struct Sorter<R> {
    scratch: Arc<Scratch>,
    rows: Vec<R>,
    most: usize,
    /// Bytes of memory.
    bytes: u64,
    out: Option<Appender>,
    runs: Vec<Section>,
}

impl<R: Row> Sorter<R> {
    /// For so many records at the most, in about so many bytes of memory.
    pub(super) fn new(scratch: &Arc<Scratch>, count: u64, bytes: u64) -> Self {
        let most = (bytes / R::SORT_BYTES as u64).max(1);
        Self {
            scratch: Arc::clone(scratch),
            rows: Vec::with_capacity(most.min(count) as usize),
            most: usize::try_from(most).unwrap_or(usize::MAX),
            bytes,
            out: None,
            runs: Vec::new(),
        }
    }

    #[inline]
    pub(super) fn push(&mut self, row: R) -> Result<(), StoreError> {
        if self.rows.len() == self.most {
            self.spill()?;
        }
        self.rows.push(row);
        Ok(())
    }

    #[cold]
    fn spill(&mut self) -> Result<(), StoreError> {
        R::sort(&mut self.rows);
        let out = match &mut self.out {
            Some(out) => out,
            none => none.insert(Appender::at(self.scratch.create()?, 0, GATHERED)),
        };
        let offset = out.end();
        for row in self.rows.drain(..) {
            row.write(out)?;
        }
        let bytes = out.end() - offset;
        self.runs.push(Section { offset, bytes });
        Ok(())
    }

    /// All records, sorted and each once.
    pub(super) fn finish(mut self) -> Result<Sorted<R>, StoreError> {
        if self.runs.is_empty() {
            R::sort(&mut self.rows);
            return Ok(Sorted::InMemory(self.rows));
        }
        self.spill()?;
        self.rows = Vec::new();
        let mut out = self.out.expect("it was written to");
        out.rest()?;
        Ok(Sorted::InFile {
            file: Arc::clone(out.file()),
            held: share(self.bytes, self.runs.len()).next_multiple_of(R::BYTES),
            runs: self.runs,
        })
    }
}

/// Records in order, each once.
pub(super) enum Sorted<R> {
    InMemory(Vec<R>),
    InFile {
        file: Arc<ScratchFile>,
        runs: Vec<Section>,
        /// Bytes that are read ahead of each.
        held: usize,
    },
}

impl<R: Row> Sorted<R> {
    /// Calls `visit` with each record.
    pub(super) fn for_each(
        &self,
        mut visit: impl FnMut(R) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let (file, runs, held) = match self {
            Self::InMemory(rows) => return rows.iter().try_for_each(|row| visit(*row)),
            Self::InFile { file, runs, held } => (file, runs, *held),
        };
        let reader = |run: &Section| SectionReader::new(Arc::clone(file), *run, held);
        let mut readers: Vec<SectionReader> = runs.iter().map(reader).collect();
        let mut heap = BinaryHeap::with_capacity(readers.len());
        for (place, reader) in readers.iter_mut().enumerate() {
            if !reader.is_at_end() {
                heap.push(Reverse((R::read(reader.take(R::BYTES)?), place)));
            }
        }
        let mut before = None;
        while let Some(mut top) = heap.peek_mut() {
            let Reverse((row, place)) = *top;
            if before != Some(row) {
                visit(row)?;
                before = Some(row);
            }
            match readers[place].is_at_end() {
                true => drop(PeekMut::pop(top)),
                false => *top = Reverse((R::read(readers[place].take(R::BYTES)?), place)),
            }
        }
        Ok(())
    }
}
