//! Rows kept beyond a batch: which of them has this key?

use std::hash::Hasher;

use hashbrown::HashTable;
use jindou_model::TermId;
use rustc_hash::FxHasher;

/// Distinct rows of a fixed number of ids, numbered in order of first sight.
pub(crate) struct RowSet {
    arity: usize,
    table: HashTable<u32>,
    ids: Vec<TermId>,
    len: usize,
}

impl RowSet {
    pub(crate) fn new(arity: usize) -> Self {
        Self {
            arity,
            table: HashTable::new(),
            ids: Vec::new(),
            len: 0,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The number of a row, and whether it is new.
    pub(crate) fn insert(&mut self, row: &[TermId]) -> (usize, bool) {
        debug_assert_eq!(row.len(), self.arity);
        let arity = self.arity;
        let ids = &self.ids;
        let at = |number: &u32| &ids[*number as usize * arity..(*number as usize + 1) * arity];
        let entry = self.table.entry(
            hash_row(row),
            |number| at(number) == row,
            |number| hash_row(at(number)),
        );
        match entry {
            hashbrown::hash_table::Entry::Occupied(found) => (*found.get() as usize, false),
            hashbrown::hash_table::Entry::Vacant(free) => {
                let number = u32::try_from(self.len).expect("fewer than 2^32 distinct rows");
                free.insert(number);
                self.ids.extend_from_slice(row);
                self.len += 1;
                (self.len - 1, true)
            }
        }
    }

    /// The number of a row that was inserted.
    pub(crate) fn find(&self, row: &[TermId]) -> Option<usize> {
        let at = |number: &u32| {
            &self.ids[*number as usize * self.arity..(*number as usize + 1) * self.arity]
        };
        self.table
            .find(hash_row(row), |number| at(number) == row)
            .map(|number| *number as usize)
    }

    /// The row of a number.
    pub(crate) fn row(&self, number: usize) -> &[TermId] {
        &self.ids[number * self.arity..(number + 1) * self.arity]
    }

    pub(crate) fn bytes(&self) -> usize {
        self.table.capacity() * 5 + self.ids.capacity() * size_of::<TermId>()
    }
}

pub(crate) fn hash_row(row: &[TermId]) -> u64 {
    let mut hasher = FxHasher::default();
    for id in row {
        hasher.write_u64(id.raw());
    }
    hasher.finish()
}
