//! Inside EXISTS: which rows need no more work, as something was found for the outer row that they
//! come from?

use std::sync::{Arc, Mutex, MutexGuard};

use jindou_plan::physical::Var;

use crate::ExecError;
use crate::context::Context;
use crate::operator::{Boxed, Operator};
use crate::table::{Table, batch_rows};

/// Rows that a step makes at once where more than that was not needed several times.
const FEWEST_ROWS: usize = 16;
/// By how much a step makes fewer rows at once after some were not needed.
const FEWER: usize = 4;
/// By how much it makes more otherwise.
const MORE: usize = 2;

/// Which rows of the outer batch in work something was found for, as all steps inside see it.
#[derive(Clone)]
pub(crate) struct Undecided {
    found: Arc<Mutex<Vec<bool>>>,
    /// The hidden column of the outer row that each row comes from.
    number: Var,
}

impl Undecided {
    pub(super) fn new(number: Var) -> Self {
        Self {
            found: Arc::default(),
            number,
        }
    }

    /// The hidden column that the steps inside carry along.
    pub(super) fn number(&self) -> Var {
        self.number
    }

    fn lock(&self) -> MutexGuard<'_, Vec<bool>> {
        self.found
            .lock()
            .expect("no thread panics while it notes what was found")
    }

    /// Begins a batch of so many outer rows.
    pub(super) fn begin(&self, rows: usize) {
        *self.lock() = vec![false; rows];
    }

    /// Notes that the outer rows of these have been found.
    pub(super) fn note(&self, rows: &Table) {
        let mut found = self.lock();
        for origin in rows.origins(self.number) {
            found[*origin as usize] = true;
        }
    }

    /// Ends the batch: what was found for each of its rows?
    pub(super) fn end(&self) -> Vec<bool> {
        std::mem::take(&mut *self.lock())
    }

    /// The first row from `row` on for whose outer row nothing was found yet; the number of rows if there is
    /// none.
    fn next_open(&self, table: &Table, row: usize) -> usize {
        let found = self.lock();
        let rows = table.origins(self.number)[row..].iter();
        row + rows.take_while(|origin| found[**origin as usize]).count()
    }

    /// Keeps the rows for which nothing was found yet.
    pub(super) fn retain(&self, table: &mut Table) {
        let rows: Vec<u32> = {
            let found = self.lock();
            let origins = (0..).zip(table.origins(self.number));
            let is_open = |(row, origin): (u32, &u32)| (!found[*origin as usize]).then_some(row);
            origins.filter_map(is_open).collect()
        };
        table.retain_rows(&rows);
    }
}

/// Passes the rows for which nothing was found yet.
pub(super) struct Open {
    pub(super) input: Boxed,
    pub(super) undecided: Undecided,
}

impl Operator for Open {
    fn produce(&mut self, cx: &Context) -> Result<Option<Table>, ExecError> {
        let Some(mut table) = self.input.next(cx)? else {
            return Ok(None);
        };
        self.undecided.retain(&mut table);
        Ok(Some(table))
    }
}

/// How many rows a step makes at once, and which rows of its input it passes over: inside EXISTS, what was
/// made of an outer row may have been enough.
pub(super) struct Portion {
    undecided: Option<Undecided>,
    /// It begins with few, whatever was needed before.
    is_careful: bool,
    most: usize,
}

impl Portion {
    /// Of a step; inside EXISTS, with what was found there.
    pub(super) fn new(undecided: Option<Undecided>) -> Self {
        Self {
            undecided,
            is_careful: false,
            most: usize::MAX,
        }
    }

    /// Of a step that may take all of a row at once, so that nobody learns how much of that was needed.
    pub(super) fn careful(undecided: Option<Undecided>) -> Self {
        Self {
            is_careful: undecided.is_some(),
            ..Self::new(undecided)
        }
    }

    /// Rows to make at once in a table of this width.
    pub(super) fn rows(&self, width: usize) -> usize {
        batch_rows(width).min(self.most)
    }

    fn grow(&mut self) {
        self.most = self.most.saturating_mul(MORE);
    }

    /// Begins a table, or a row that takes several batches.
    pub(super) fn begin(&mut self) {
        if self.is_careful {
            self.most = FEWEST_ROWS;
        } else {
            self.grow();
        }
    }

    /// Goes on with a table, of which some rows were made: the row from which on more are needed, the
    /// number of rows if there is none.
    pub(super) fn go_on(&mut self, table: &Table, row: usize) -> usize {
        let next = self.next(table, row);
        if next > row {
            self.most = (self.rows(table.width()) / FEWER).max(FEWEST_ROWS);
        } else {
            self.grow();
        }
        next
    }

    /// True if a row needs no work.
    pub(super) fn passes_over(&self, table: &Table, row: usize) -> bool {
        self.next(table, row) > row
    }

    /// The first row from this one on that needs work.
    fn next(&self, table: &Table, row: usize) -> usize {
        match &self.undecided {
            Some(undecided) => undecided.next_open(table, row),
            None => row,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_makes_fewer_rows_at_once_while_some_are_not_needed() {
        let number = Var(0);
        let undecided = Undecided::new(number);
        undecided.begin(3);
        let mut table = Table::with_rows(1, 3);
        table.set_origins(number);
        let mut portion = Portion::new(Some(undecided.clone()));
        assert_eq!(portion.rows(1), batch_rows(1));
        undecided.note(&table.gather(&[0], &[number].into_iter().collect()));
        assert_eq!(portion.go_on(&table, 0), 1);
        assert_eq!(portion.rows(1), batch_rows(1) / FEWER);
        for _ in 0..9 {
            portion.begin();
            assert_eq!(portion.go_on(&table, 0), 1);
        }
        assert_eq!(portion.rows(1), FEWEST_ROWS);
        assert_eq!(portion.go_on(&table, 1), 1);
        assert_eq!(portion.rows(1), FEWEST_ROWS * MORE);
        undecided.note(&table);
        assert_eq!(portion.go_on(&table, 2), 3);
        undecided.retain(&mut table);
        assert_eq!((table.rows(), undecided.end()), (0, vec![true; 3]));
    }
}
