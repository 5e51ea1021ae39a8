//! Rows of which any may be asked for, in pieces: none is ever copied to make room for more, and
//! they can be let go of piece by piece.

use jindou_model::TermId;
use jindou_plan::physical::Var;

use crate::table::{Table, VarSet};

/// Rows of a full block.
const BLOCK_ROWS: usize = 1 << 16;

/// Rows in blocks.
#[derive(Default)]
pub(crate) struct Blocks {
    /// All but the last are full.
    blocks: Vec<Table>,
    rows: usize,
    /// Bytes of the full blocks.
    full_bytes: usize,
}

impl Blocks {
    /// Appends the rows of a table.
    pub(crate) fn push(&mut self, table: &Table) {
        let mut from = 0;
        while from < table.rows() {
            let within = self.rows % BLOCK_ROWS;
            if within == 0 {
                self.full_bytes += self.blocks.last().map_or(0, Table::bytes);
                self.blocks.push(Table::with_rows(table.width(), 0));
            }
            let to = table.rows().min(from + BLOCK_ROWS - within);
            let last = self
                .blocks
                .last_mut()
                .expect("a block was pushed if none was there");
            last.append_range(table, from, to, BLOCK_ROWS);
            self.rows += to - from;
            from = to;
        }
    }

    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    #[inline]
    pub(crate) fn value(&self, var: Var, row: usize) -> TermId {
        self.blocks[row / BLOCK_ROWS].value(var, row % BLOCK_ROWS)
    }

    /// The variables that have a column.
    pub(crate) fn bound(&self) -> VarSet {
        self.blocks.iter().flat_map(Table::bound).collect()
    }

    /// A table of the given rows, with the columns of `keep` only.
    pub(crate) fn gather(&self, rows: &[u32], keep: &VarSet) -> Table {
        if let [only] = self.blocks.as_slice() {
            return only.gather(rows, keep);
        }
        let width = self.blocks.first().map_or(0, Table::width);
        let mut table = Table::with_rows(width, rows.len());
        let bound = self.bound();
        for var in (0..width).map(|number| Var(number as u16)) {
            if keep.contains(var) && bound.contains(var) {
                table.set(var, self.column(var, rows));
            }
        }
        table
    }

    /// The values of a variable in the given rows.
    fn column(&self, var: Var, rows: &[u32]) -> Vec<TermId> {
        let value = |row: &u32| self.value(var, *row as usize);
        rows.iter().map(value).collect()
    }

    /// Takes some of the rows away, the last ones; `None` if there are no more.
    pub(crate) fn pop(&mut self) -> Option<Table> {
        let last = self.blocks.pop()?;
        self.rows -= last.rows();
        self.full_bytes -= self.blocks.last().map_or(0, Table::bytes);
        Some(last)
    }

    pub(crate) fn bytes(&self) -> usize {
        self.full_bytes + self.blocks.last().map_or(0, Table::bytes)
    }

    /// Bytes at most after the rows of a table were appended.
    pub(crate) fn bytes_with(&self, table: &Table) -> usize {
        let mut bound: VarSet = table.bound().collect();
        bound.extend(self.blocks.last().into_iter().flat_map(Table::bound));
        let columns = (0..table.width()).filter(|number| bound.contains(Var(*number as u16)));
        let within = self.rows % BLOCK_ROWS;
        let grown = within.max(table.rows()).min(BLOCK_ROWS) + table.rows();
        let head = Table::with_rows(table.width(), 0).bytes();
        self.bytes() + head + columns.count() * grown * size_of::<TermId>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_back_in_any_order_across_blocks() {
        let id = |row: usize| TermId::from_raw(row as u64 + 1);
        let mut blocks = Blocks::default();
        let mut rows = 0;
        while rows < 3 * BLOCK_ROWS {
            let count = 1 + rows % 5_003;
            let mut table = Table::with_rows(2, count);
            table.set(Var(0), (rows..rows + count).map(id).collect());
            if rows > BLOCK_ROWS {
                table.set(Var(1), (rows..rows + count).map(id).collect());
            }
            let bound = blocks.bytes_with(&table);
            blocks.push(&table);
            assert!(blocks.bytes() <= bound);
            rows += count;
        }
        assert_eq!(blocks.rows(), rows);
        let asked: Vec<u32> = (0..rows as u32).rev().step_by(7).collect();
        let keep = [Var(0)].into_iter().collect();
        let found = blocks.gather(&asked, &keep);
        let expected: Vec<TermId> = asked.iter().map(|row| id(*row as usize)).collect();
        assert_eq!(found.get(Var(0)), Some(expected.as_slice()));
        assert_eq!(found.get(Var(1)), None);
        assert_eq!(blocks.value(Var(1), 0), TermId::NONE);
        assert_eq!(blocks.value(Var(1), rows - 1), id(rows - 1));
        let mut taken = 0;
        while let Some(table) = blocks.pop() {
            taken += table.rows();
        }
        assert_eq!((taken, blocks.rows(), blocks.bytes()), (rows, 0, 0));
    }
}
