//! A binding table: which terms are bound to which variables, in a batch of rows?

use jindou_model::TermId;
use jindou_plan::physical::Var;

use crate::account::BookedTable;
use crate::expr::Columns;

/// Rows that an operator aims to hand over at once: columns of a few variables stay in the
/// second-level cache.
pub const BATCH_ROWS: usize = 2048;
/// The most that a batch with a column for each variable should take: each operator of a chain
/// may hold one, so a query with many variables would else hold the square of their number.
const BATCH_BYTES: usize = 32 * BATCH_ROWS * size_of::<TermId>();

/// Rows that an operator aims to hand over at once in a plan of `width` variables:
/// [`BATCH_ROWS`], unless there are many.
#[must_use]
pub(crate) fn batch_rows(width: usize) -> usize {
    (BATCH_BYTES / size_of::<TermId>() / width.max(1)).clamp(1, BATCH_ROWS)
}

/// A batch of rows in columns, by variable.
///
/// It is booked with the query that it is of when an operator hands it over; a copy is not, until
/// it is handed over itself.
#[derive(Debug, Default)]
pub struct Table {
    rows: usize,
    /// A column of `rows` ids for each bound variable that is still needed.
    columns: Vec<Option<Vec<TermId>>>,
    /// Numbers of the rows among all solutions of the query, once an expression has asked.
    solutions: Option<Vec<u64>>,
    /// How many equal rows each row stands for, where it may be several.
    counts: Option<Vec<u64>>,
    /// What of it is booked.
    pub(crate) booked: BookedTable,
}

impl Clone for Table {
    fn clone(&self) -> Self {
        Self {
            rows: self.rows,
            columns: self.columns.clone(),
            solutions: self.solutions.clone(),
            counts: self.counts.clone(),
            booked: BookedTable::default(),
        }
    }
}

impl Table {
    /// One row without columns, for `width` variables.
    #[must_use]
    pub fn unit(width: usize) -> Self {
        Self {
            rows: 1,
            columns: vec![None; width],
            solutions: None,
            counts: None,
            booked: BookedTable::default(),
        }
    }

    /// `rows` rows without columns yet.
    #[must_use]
    pub fn with_rows(width: usize, rows: usize) -> Self {
        Self {
            rows,
            columns: vec![None; width],
            solutions: None,
            counts: None,
            booked: BookedTable::default(),
        }
    }

    /// Number of rows.
    #[inline]
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of variables it has room for.
    #[must_use]
    pub fn width(&self) -> usize {
        self.columns.len()
    }

    /// Numbers the rows from `first` on, for functions that tell solutions apart; rows that have
    /// numbers keep them. Filters keep numbers, joins begin new solutions.
    pub fn number_solutions(&mut self, first: u64) {
        if self.solutions.is_none() {
            self.solutions = Some((first..first + self.rows as u64).collect());
        }
    }

    /// Says how many equal rows each row stands for.
    pub(crate) fn set_counts(&mut self, counts: Vec<u64>) {
        assert_eq!(counts.len(), self.rows, "a count for each row");
        self.counts = Some(counts);
    }

    /// Takes away how many equal rows each row stands for; `None` if each is one.
    pub(crate) fn take_counts(&mut self) -> Option<Vec<u64>> {
        self.counts.take()
    }

    /// Rows that stand for several are handed to what counts them, and to nothing else.
    fn assert_single(&self) {
        assert!(self.counts.is_none(), "rows that stand for several");
    }

    /// The rows that its rows stand for.
    pub(crate) fn counted_rows(&self) -> u64 {
        match &self.counts {
            Some(counts) => counts.iter().sum(),
            None => self.rows as u64,
        }
    }

    /// The column of a variable; `None` where it is unbound in all rows.
    #[inline]
    #[must_use]
    pub fn get(&self, var: Var) -> Option<&[TermId]> {
        self.columns[var.index()].as_deref()
    }

    /// The value of a variable in a row; `NONE` where it is unbound.
    #[inline]
    #[must_use]
    pub fn value(&self, var: Var, row: usize) -> TermId {
        self.get(var).map_or(TermId::NONE, |column| column[row])
    }

    /// Gives a variable its column.
    ///
    /// # Panics
    /// If the column has another length than the table.
    pub fn set(&mut self, var: Var, column: Vec<TermId>) {
        assert_eq!(column.len(), self.rows, "a column has one id for each row");
        self.columns[var.index()] = Some(column);
    }

    /// Takes a variable's column away.
    pub fn take(&mut self, var: Var) -> Option<Vec<TermId>> {
        self.columns[var.index()].take()
    }

    /// The variables that have a column.
    pub fn bound(&self) -> impl Iterator<Item = Var> + '_ {
        (0..self.columns.len())
            .filter(|i| self.columns[*i].is_some())
            .map(|i| Var(i as u16))
    }

    /// A copy with the columns of `keep` only.
    #[must_use]
    pub(crate) fn project(&self, keep: &VarSet) -> Self {
        let pick = |(index, column): (usize, &Option<Vec<TermId>>)| match column {
            Some(column) if keep.contains(Var(index as u16)) => Some(column.clone()),
            _ => None,
        };
        Self {
            rows: self.rows,
            columns: self.columns.iter().enumerate().map(pick).collect(),
            solutions: self.solutions.clone(),
            counts: self.counts.clone(),
            booked: BookedTable::default(),
        }
    }

    /// Takes the columns of `keep` that another table of as many rows has, and its rows' numbers
    /// among all solutions.
    pub(crate) fn take_columns(&mut self, other: &mut Self, keep: &VarSet) {
        assert_eq!(self.rows, other.rows, "columns of as many rows");
        for (index, column) in other.columns.iter_mut().enumerate() {
            if column.is_some() && keep.contains(Var(index as u16)) {
                self.columns[index] = column.take();
            }
        }
        self.solutions = other.solutions.take();
    }

    /// A table of the given rows of this one, with the columns of `keep` only.
    #[must_use]
    pub fn gather(&self, rows: &[u32], keep: &VarSet) -> Self {
        self.assert_single();
        let pick = |(index, column): (usize, &Option<Vec<TermId>>)| match column {
            Some(column) if keep.contains(Var(index as u16)) => {
                Some(rows.iter().map(|row| column[*row as usize]).collect())
            }
            _ => None,
        };
        Self {
            rows: rows.len(),
            columns: self.columns.iter().enumerate().map(pick).collect(),
            solutions: None,
            counts: None,
            booked: BookedTable::default(),
        }
    }

    /// Keeps the given rows, which rise.
    pub fn retain_rows(&mut self, rows: &[u32]) {
        self.assert_single();
        if rows.len() == self.rows {
            return;
        }
        for column in self.columns.iter_mut().flatten() {
            for (place, row) in rows.iter().enumerate() {
                column[place] = column[*row as usize];
            }
            column.truncate(rows.len());
        }
        if let Some(solutions) = &mut self.solutions {
            *solutions = rows.iter().map(|row| solutions[*row as usize]).collect();
        }
        self.rows = rows.len();
    }

    /// Drops the columns that are not in `keep`.
    pub fn retain_columns(&mut self, keep: &VarSet) {
        for (index, column) in self.columns.iter_mut().enumerate() {
            if !keep.contains(Var(index as u16)) {
                *column = None;
            }
        }
    }

    /// Keeps the rows `from..to`.
    pub fn slice(&mut self, from: usize, to: usize) {
        self.assert_single();
        for column in self.columns.iter_mut().flatten() {
            column.truncate(to);
            column.drain(..from);
        }
        self.rows = to - from;
        self.solutions = None;
    }

    /// Appends the rows of another table; a variable that one of them lacks is unbound there.
    pub fn append(&mut self, other: &Self) {
        self.append_with(other, other.rows, |mine, theirs| {
            mine.extend_from_slice(theirs);
        });
    }

    /// Appends the given rows of another table; a variable that one of them lacks is unbound there.
    pub(crate) fn append_rows(&mut self, other: &Self, rows: &[u32]) {
        self.append_with(other, rows.len(), |mine, theirs| {
            mine.extend(rows.iter().map(|row| theirs[*row as usize]));
        });
    }

    /// Appends the rows `from..to` of another table, and makes room for `most` rows at most.
    pub(crate) fn append_range(&mut self, other: &Self, from: usize, to: usize, most: usize) {
        let needed = self.rows + to - from;
        let room = needed.max((2 * self.rows).min(most));
        self.append_with(other, to - from, |mine, theirs| {
            if mine.capacity() < needed {
                mine.reserve_exact(room - mine.len());
            }
            mine.extend_from_slice(&theirs[from..to]);
        });
    }

    fn append_with(
        &mut self,
        other: &Self,
        count: usize,
        extend: impl Fn(&mut Vec<TermId>, &[TermId]),
    ) {
        self.assert_single();
        other.assert_single();
        let rows = self.rows + count;
        self.solutions = None;
        for (mine, theirs) in self.columns.iter_mut().zip(&other.columns) {
            match (&mut *mine, theirs) {
                (None, None) => (),
                (Some(column), Some(more)) => extend(column, more),
                (Some(column), None) => column.resize(rows, TermId::NONE),
                (None, Some(more)) => {
                    let mut column = vec![TermId::NONE; self.rows];
                    extend(&mut column, more);
                    *mine = Some(column);
                }
            }
        }
        self.rows = rows;
    }

    /// Has room for so many variables from now on; columns of others are dropped.
    pub(crate) fn set_width(&mut self, width: usize) {
        self.columns.resize(width, None);
    }

    /// Bytes that it takes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let columns = self.columns.iter().flatten();
        let ids: usize = columns.map(Vec::capacity).sum();
        let numbers = [&self.solutions, &self.counts];
        let numbers = numbers.into_iter().flatten().map(Vec::capacity);
        self.columns.capacity() * size_of::<Option<Vec<TermId>>>()
            + ids * size_of::<TermId>()
            + numbers.sum::<usize>() * size_of::<u64>()
    }
}

impl Columns for Table {
    fn column(&self, var: Var) -> Option<&[TermId]> {
        self.get(var)
    }

    fn solution(&self, row: usize) -> u64 {
        self.solutions
            .as_ref()
            .map_or(0, |solutions| solutions[row])
    }
}

/// A set of variables.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VarSet {
    words: Vec<u64>,
}

impl VarSet {
    /// Adds a variable.
    pub fn insert(&mut self, var: Var) {
        let word = var.index() / 64;
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
        }
        self.words[word] |= 1 << (var.index() % 64);
    }

    /// Takes a variable out.
    pub(crate) fn remove(&mut self, var: Var) {
        if let Some(word) = self.words.get_mut(var.index() / 64) {
            *word &= !(1 << (var.index() % 64));
        }
    }

    /// Its variables.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Var> + '_ {
        (0..64 * self.words.len())
            .map(|number| Var(number as u16))
            .filter(|var| self.contains(*var))
    }

    /// True if the variable is in it.
    #[inline]
    #[must_use]
    pub fn contains(&self, var: Var) -> bool {
        self.words
            .get(var.index() / 64)
            .is_some_and(|word| word & (1 << (var.index() % 64)) != 0)
    }
}

impl Extend<Var> for VarSet {
    fn extend<I: IntoIterator<Item = Var>>(&mut self, vars: I) {
        vars.into_iter().for_each(|var| self.insert(var));
    }
}

impl FromIterator<Var> for VarSet {
    fn from_iter<I: IntoIterator<Item = Var>>(vars: I) -> Self {
        let mut set = Self::default();
        set.extend(vars);
        set
    }
}
