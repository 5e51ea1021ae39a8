//! Rows kept beyond a batch: which of them has this key?
//!
//! The set grows in small steps however large it is, so that no insertion takes long: ids lie in
//! blocks, and a large set has many hash tables, each with the rows of some hashes.

use std::hash::Hasher;

use hashbrown::HashTable;
use jindou_model::TermId;
use rustc_hash::FxHasher;

/// Rows of a full block.
const BLOCK_ROWS: usize = 1 << 16;
/// A set with so many rows is put into many tables.
const MANY_ROWS: usize = 1 << 18;
/// Tables of a large set.
const TABLES: usize = 256;
/// The bits of a hash that tell the table begin here: those that a table itself uses are others.
const TABLE_SHIFT: u32 = 40;
/// Bytes of a row's place in a table: its number and its mark.
const PLACE_BYTES: usize = size_of::<u32>() + 1;

/// Distinct rows of a fixed number of ids, numbered in order of first sight.
pub(crate) struct RowSet {
    arity: usize,
    tables: Vec<HashTable<u32>>,
    /// All but the last are full.
    blocks: Vec<Vec<TermId>>,
    len: usize,
}

impl RowSet {
    pub(crate) fn new(arity: usize) -> Self {
        Self {
            arity,
            tables: vec![HashTable::new()],
            blocks: vec![Vec::new()],
            len: 0,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The number of a row, and whether it is new.
    ///
    /// # Panics
    /// If there are 2^32 rows.
    pub(crate) fn insert(&mut self, row: &[TermId]) -> (usize, bool) {
        debug_assert_eq!(row.len(), self.arity);
        let (arity, blocks) = (self.arity, &self.blocks);
        let hash = hash_row(row);
        let table = table_of(hash, self.tables.len());
        let entry = self.tables[table].entry(
            hash,
            |number| row_at(blocks, arity, *number) == row,
            |number| hash_row(row_at(blocks, arity, *number)),
        );
        match entry {
            hashbrown::hash_table::Entry::Occupied(found) => (*found.get() as usize, false),
            hashbrown::hash_table::Entry::Vacant(free) => {
                let number = u32::try_from(self.len).expect("fewer than 2^32 distinct rows");
                free.insert(number);
                self.push(row);
                (number as usize, true)
            }
        }
    }

    /// Appends a row that is in the tables.
    fn push(&mut self, row: &[TermId]) {
        self.len += 1;
        let last = self.blocks.last_mut().expect("there is a block");
        last.extend_from_slice(row);
        if self.len.is_multiple_of(BLOCK_ROWS) {
            self.blocks.push(Vec::new());
        }
        if self.len == MANY_ROWS {
            self.use_many_tables();
        }
    }

    fn use_many_tables(&mut self) {
        let mut tables: Vec<HashTable<u32>> = (0..TABLES)
            .map(|_| HashTable::with_capacity(2 * MANY_ROWS / TABLES))
            .collect();
        let hash_of = |number: &u32| hash_row(row_at(&self.blocks, self.arity, *number));
        for number in 0..self.len as u32 {
            let hash = hash_of(&number);
            tables[table_of(hash, TABLES)].insert_unique(hash, number, hash_of);
        }
        self.tables = tables;
    }

    /// The number of a row that was inserted.
    pub(crate) fn find(&self, row: &[TermId]) -> Option<usize> {
        let hash = hash_row(row);
        self.tables[table_of(hash, self.tables.len())]
            .find(hash, |number| {
                row_at(&self.blocks, self.arity, *number) == row
            })
            .map(|number| *number as usize)
    }

    /// The row of a number.
    pub(crate) fn row(&self, number: usize) -> &[TermId] {
        row_at(&self.blocks, self.arity, number as u32)
    }

    pub(crate) fn bytes(&self) -> usize {
        let places: usize = self.tables.iter().map(HashTable::capacity).sum();
        let last = self.blocks.last().map_or(0, Vec::capacity);
        let full = (self.blocks.len() - 1) * BLOCK_ROWS * self.arity;
        places * PLACE_BYTES + (full + last) * size_of::<TermId>()
    }

    /// Bytes at most after so many more rows came.
    pub(crate) fn bytes_with(&self, rows: usize) -> usize {
        let places: usize = self.tables.iter().map(HashTable::capacity).sum();
        // Many tables grow at about the same time, one by one.
        let grows = self.len + rows > places - places / 8;
        let more = if grows { places.max(2 * rows) } else { 0 };
        let block = (self.len % BLOCK_ROWS).max(rows).min(BLOCK_ROWS) + rows;
        self.bytes() + more * PLACE_BYTES + block * self.arity * size_of::<TermId>()
    }

    /// True if so many more rows could not be numbered.
    pub(crate) fn is_full(&self, rows: usize) -> bool {
        self.len + rows > u32::MAX as usize
    }
}

#[inline]
fn table_of(hash: u64, tables: usize) -> usize {
    (hash >> TABLE_SHIFT) as usize & (tables - 1)
}

#[inline]
fn row_at(blocks: &[Vec<TermId>], arity: usize, number: u32) -> &[TermId] {
    let (block, place) = (number as usize / BLOCK_ROWS, number as usize % BLOCK_ROWS);
    &blocks[block][place * arity..(place + 1) * arity]
}

pub(crate) fn hash_row(row: &[TermId]) -> u64 {
    let mut hasher = FxHasher::default();
    for id in row {
        hasher.write_u64(id.raw());
    }
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(number: usize) -> [TermId; 2] {
        [number % 1_000, number / 1_000].map(|part| TermId::from_raw(part as u64 + 1))
    }

    #[test]
    fn rows_keep_their_numbers_while_a_set_grows() {
        let mut set = RowSet::new(2);
        let count = 2 * MANY_ROWS;
        for number in 0..count {
            if number % 4_096 == 0 {
                let bound = set.bytes_with(4_096);
                let mut further = number;
                while further < count && further < number + 4_096 {
                    assert_eq!(set.insert(&row(further)), (further, true));
                    further += 1;
                }
                // Where one table becomes many, they begin with room for twice as many rows.
                assert!(set.bytes() <= bound + 2 * MANY_ROWS * PLACE_BYTES);
            }
            assert_eq!(set.insert(&row(number)), (number, false));
        }
        assert_eq!(set.len(), count);
        for number in (0..count).step_by(97) {
            assert_eq!(set.find(&row(number)), Some(number));
            assert_eq!(set.row(number), row(number));
        }
        assert_eq!(set.find(&row(count)), None);
    }

    #[test]
    fn rows_without_ids_are_one() {
        let mut set = RowSet::new(0);
        assert_eq!(set.insert(&[]), (0, true));
        assert_eq!(set.insert(&[]), (0, false));
        assert_eq!(set.row(0), []);
        assert_eq!(set.len(), 1);
    }
}
