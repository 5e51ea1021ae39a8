//! Which rows of an answer did the one before it have?
//!
//! Windows that slide share most of what they have, and so do answers, mostly in the same order. A row of
//! the same ids as one of the answer before is a copy of its bytes, and none of its terms is looked up.

use std::hash::Hasher as _;

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use jindou_model::{TermId, TermKind};
use jindou_store::Snapshot;
use rustc_hash::FxHasher;

use super::rows::{Rows, RowsBuilder};
use crate::EngineError;
use crate::database::Inner;
use crate::graph::StoredGraph;
use crate::request_memory::RequestMemory;

/// The rows of the last answer, and of which base their ids are.
#[derive(Default)]
pub(super) struct LastRows(Option<(BaseVersion, Written)>);

/// The generation of a base, and the merges behind it: while they are the same, ids mean the same terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BaseVersion(u64, u64);

/// The rows of an answer, with the ids that they were written from.
pub(super) struct Written {
    ids: Ids,
    rows: Rows,
    /// What its bytes are reserved from, once they are.
    memory: Option<RequestMemory>,
}

/// Rows of as many ids each.
struct Ids {
    width: usize,
    ids: Vec<TermId>,
    rows: usize,
}

/// Rows that are being written.
pub(super) struct Writing {
    /// Of so many ids of a row the terms are written.
    columns: usize,
    before: Option<Written>,
    /// The row of the answer before that is expected.
    next: usize,
    /// Rows of the answer before by the hashes of their ids, once one was not where it was expected.
    index: Option<HashTable<u32>>,
    ids: Ids,
    rows: RowsBuilder,
}

impl BaseVersion {
    pub(super) fn of(snapshot: &Snapshot) -> Self {
        let (generation, _, merges) = snapshot.place();
        Self(generation, merges)
    }
}

impl Inner {
    /// Reads an answer beside the last one, and keeps its rows for the next one if there is memory for
    /// them.
    pub(super) fn read_beside<T>(
        &self,
        last: &mut LastRows,
        graph: &StoredGraph,
        read: impl FnOnce(&mut Option<Written>) -> Result<T, EngineError>,
    ) -> Result<T, EngineError> {
        let base = BaseVersion::of(&graph.snapshot);
        let known = last.0.take().filter(|(of, _)| *of == base);
        let mut written = known.map(|(_, written)| written);
        let answer = read(&mut written)?;
        last.0 = written.and_then(|mut written| {
            let mut memory = RequestMemory::new(self.config.memory_pool.as_ref());
            memory.try_reserve(written.bytes()).then(|| {
                written.memory = Some(memory);
                (base, written)
            })
        });
        Ok(answer)
    }
}

impl Written {
    /// Bytes that it takes.
    fn bytes(&self) -> u64 {
        (size_of_val::<[TermId]>(&self.ids.ids) + self.rows.bytes()) as u64
    }
}

impl Ids {
    fn row(&self, number: usize) -> &[TermId] {
        &self.ids[number * self.width..][..self.width]
    }

    /// The number of each of the rows, those that are equal once.
    fn index(&self) -> HashTable<u32> {
        let mut index = HashTable::with_capacity(self.rows);
        let hash = |number: &u32| hash_of(self.row(*number as usize));
        for number in 0..u32::try_from(self.rows).unwrap_or(u32::MAX) {
            let row = self.row(number as usize);
            let is_it = |other: &u32| self.row(*other as usize) == row;
            if let Entry::Vacant(new) = index.entry(hash_of(row), is_it, hash) {
                new.insert(number);
            }
        }
        index
    }
}

impl Writing {
    /// Rows of `width` ids, of the first `columns` of which the terms are written. The ids of `before`
    /// mean the same now as then.
    pub(super) fn new(before: Option<Written>, (width, columns): (usize, usize)) -> Self {
        let before = before.filter(|before| before.ids.width == width);
        let expected = before.as_ref();
        let ids = expected.map_or(0, |before| before.ids.ids.len());
        let expected = expected.map(|before| &before.rows);
        Self {
            columns,
            next: 0,
            index: None,
            ids: Ids {
                width,
                ids: Vec::with_capacity(ids),
                rows: 0,
            },
            rows: RowsBuilder::for_about(columns, expected),
            before,
        }
    }

    /// Adds a row, whose cells are put one by one unless it is known; returns its ids and its bytes.
    pub(super) fn row(
        &mut self,
        ids: impl Iterator<Item = TermId>,
        mut put: impl FnMut(&mut RowsBuilder, TermId),
    ) -> (&[TermId], &[u8]) {
        let number = self.ids.rows;
        self.ids.ids.extend(ids);
        self.ids.rows += 1;
        match (self.find(number), &self.before) {
            (Some(found), Some(before)) => self.rows.push_row(before.rows.row(found)),
            _ => {
                for id in &self.ids.row(number)[..self.columns] {
                    put(&mut self.rows, *id);
                }
                self.rows.end_row();
            }
        }
        (self.ids.row(number), self.rows.row(number))
    }

    /// Bytes that the rows and their ids take so far.
    pub(super) fn bytes(&self) -> usize {
        self.ids.ids.capacity() * size_of::<TermId>() + self.rows.bytes()
    }

    /// Bytes of the rows alone.
    pub(super) fn row_bytes(&self) -> usize {
        self.rows.row_bytes()
    }

    /// The row of the answer before that has the ids of a row.
    fn find(&mut self, number: usize) -> Option<usize> {
        let before = &self.before.as_ref()?.ids;
        let row = self.ids.row(number);
        // An id of a value that was computed is of its execution alone.
        if row.iter().any(|id| id.kind() == TermKind::Computed) {
            return None;
        }
        let found = match self.next < before.rows && before.row(self.next) == row {
            true => self.next,
            false => {
                let index = self.index.get_or_insert_with(|| before.index());
                let is_it = |number: &u32| before.row(*number as usize) == row;
                *index.find(hash_of(row), is_it)? as usize
            }
        };
        self.next = found + 1;
        Some(found)
    }

    /// The rows; `written` is what to begin the next ones with.
    pub(super) fn end(self, written: &mut Option<Written>) -> Rows {
        let rows = self.rows.build();
        *written = Some(Written {
            ids: self.ids,
            rows: rows.clone(),
            memory: None,
        });
        rows
    }
}

fn hash_of(row: &[TermId]) -> u64 {
    let mut hasher = FxHasher::default();
    row.iter().for_each(|id| hasher.write_u64(id.raw()));
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::TermText;

    /// Writes rows after others; also, how many had to be written.
    fn write(rows: &[[u64; 3]], known: &mut Option<Written>) -> (Rows, usize) {
        let id = |number: u64| match number {
            8 => TermId::new(TermKind::Computed, 1),
            number => TermId::vertex(number),
        };
        let mut writing = Writing::new(known.take(), (3, 2));
        let mut cells = 0;
        for row in rows {
            let (ids, _) = writing.row(row.iter().copied().map(id), |rows, id| {
                cells += 1;
                rows.push_cell(Some(TermText::Iri(&id.number().to_string())));
            });
            assert_eq!(ids, row.map(id));
        }
        (writing.end(known), cells / 2)
    }

    #[test]
    fn only_new_rows_are_written() {
        let mut seed = 7_u64;
        let mut random = move |most: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) % most
        };
        let mut known = None;
        let mut last: Vec<[u64; 3]> = Vec::new();
        for _ in 0..500 {
            let mut rows = last.clone();
            match random(4) {
                0 => rows.reverse(),
                1 => rows.retain(|_| random(3) > 0),
                _ => {}
            }
            for _ in 0..random(5) {
                let place = random(rows.len() as u64 + 1) as usize;
                rows.insert(place, [random(9), random(9), random(3)]);
            }
            rows.truncate(40);
            let (alone, _) = write(&rows, &mut None);
            let (beside, written) = write(&rows, &mut known);
            assert_eq!(beside, alone);
            let is_new = |row: &&[u64; 3]| row.contains(&8) || !last.contains(row);
            assert_eq!(written, rows.iter().filter(is_new).count());
            last = rows;
        }
    }
}
