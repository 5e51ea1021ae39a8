//! A binding table: which terms are bound to which variables, in a batch of rows?

mod column;
mod var_set;
mod wire;

use jindou_model::TermId;
use jindou_plan::physical::Var;

use self::column::Picked;
pub use self::column::{Column, ColumnKind};
pub use self::var_set::VarSet;
pub use self::wire::{EncodedTable, WireError};
use crate::account::BookedTable;
use crate::expr::Columns;

/// Rows that an operator aims to hand over at once: columns of a few variables stay in the
/// second-level cache.
pub const BATCH_ROWS: usize = 2048;
/// The most that a batch with a column for each variable should take: each operator of a chain
/// may hold one, so a query with many variables would else hold the square of their number.
pub(crate) const BATCH_BYTES: usize = 32 * BATCH_ROWS * size_of::<TermId>();

/// Rows that an operator aims to hand over at once in a plan of `width` variables:
/// [`BATCH_ROWS`], unless there are many.
#[must_use]
pub(crate) fn batch_rows(width: usize) -> usize {
    (BATCH_BYTES / size_of::<TermId>() / width.max(1)).clamp(1, BATCH_ROWS)
}

/// A batch of rows in columns, by variable, each of which says what it holds.
///
/// It is booked with the query that it is of when an operator hands it over; a copy is not, until
/// it is handed over itself.
#[derive(Debug)]
pub struct Table {
    rows: usize,
    /// Columns of `rows` values: those of the rows themselves, [`COUNTS`] and [`NUMBERS`], and from
    /// [`OF_ROWS`] on one for each bound variable that is still needed.
    columns: Vec<Option<Column>>,
    /// What of it is booked.
    pub(crate) booked: BookedTable,
}

/// Where the column lies that says how many equal rows each row stands for, where it may be several.
const COUNTS: usize = 0;
/// Where the numbers of the rows among all solutions of the query lie, once an expression has asked.
const NUMBERS: usize = 1;
/// Columns of the rows themselves: those of variables lie behind them.
const OF_ROWS: usize = 2;

impl Default for Table {
    fn default() -> Self {
        Self::with_rows(0, 0)
    }
}

impl Clone for Table {
    fn clone(&self) -> Self {
        Self::of(self.rows, self.columns.clone())
    }
}

impl Table {
    /// One row without columns, for `width` variables.
    #[must_use]
    pub fn unit(width: usize) -> Self {
        Self::with_rows(width, 1)
    }

    /// `rows` rows without columns yet.
    #[must_use]
    pub fn with_rows(width: usize, rows: usize) -> Self {
        let none = std::iter::repeat_with(|| None);
        Self::of(rows, none.take(OF_ROWS + width).collect())
    }

    fn of(rows: usize, columns: Vec<Option<Column>>) -> Self {
        Self {
            rows,
            columns,
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
        self.columns.len() - OF_ROWS
    }

    /// Numbers the rows from `first` on, for functions that tell solutions apart; rows that have
    /// numbers keep them. Filters keep numbers, joins begin new solutions.
    pub fn number_solutions(&mut self, first: u64) {
        if self.columns[NUMBERS].is_none() {
            let numbers = (first..first + self.rows as u64).collect();
            self.columns[NUMBERS] = Some(Column::Numbers(numbers));
        }
    }

    /// True if its rows have numbers among all solutions of the query.
    pub(crate) fn has_solution_numbers(&self) -> bool {
        self.columns[NUMBERS].is_some()
    }

    /// Says how many equal rows each row stands for.
    pub(crate) fn set_counts(&mut self, counts: Vec<u64>) {
        assert_eq!(counts.len(), self.rows, "a count for each row");
        self.columns[COUNTS] = Some(Column::Counts(counts));
    }

    /// Takes away how many equal rows each row stands for; `None` if each is one.
    pub(crate) fn take_counts(&mut self) -> Option<Column> {
        self.columns[COUNTS].take()
    }

    /// Rows that stand for several are handed to what counts them, and to nothing else.
    fn assert_single(&self) {
        assert!(
            self.columns[COUNTS].is_none(),
            "rows that stand for several"
        );
    }

    /// The rows that its rows stand for.
    pub(crate) fn counted_rows(&self) -> u64 {
        match &self.columns[COUNTS] {
            Some(Column::Counts(counts)) => counts.iter().sum(),
            _ => self.rows as u64,
        }
    }

    /// The terms of a variable; `None` where it is unbound in all rows, and where its column holds
    /// something else.
    #[inline]
    #[must_use]
    pub fn get(&self, var: Var) -> Option<&[TermId]> {
        match &self.columns[OF_ROWS + var.index()] {
            Some(Column::Ids(ids)) => Some(ids),
            _ => None,
        }
    }

    /// The value of a variable in a row; `NONE` where it is unbound.
    #[inline]
    #[must_use]
    pub fn value(&self, var: Var, row: usize) -> TermId {
        self.get(var).map_or(TermId::NONE, |column| column[row])
    }

    /// The column of a variable, whatever it holds.
    #[must_use]
    pub fn of_any_kind(&self, var: Var) -> Option<&Column> {
        self.columns[OF_ROWS + var.index()].as_ref()
    }

    /// The rows of another table that a hidden variable holds, from which these were made.
    ///
    /// # Panics
    /// If it holds something else.
    pub(crate) fn origins(&self, var: Var) -> &[u32] {
        match self.of_any_kind(var) {
            Some(Column::Rows(rows)) => rows,
            other => no_origins(other),
        }
    }

    /// Takes away what [`Table::origins`] gives.
    ///
    /// # Panics
    /// If the variable holds something else.
    pub(crate) fn take_origins(&mut self, var: Var) -> Vec<u32> {
        match self.columns[OF_ROWS + var.index()].take() {
            Some(Column::Rows(rows)) => rows,
            other => no_origins(other.as_ref()),
        }
    }

    /// Lets a hidden variable hold which row of this table each row is.
    pub(crate) fn set_origins(&mut self, var: Var) {
        let rows = (0..self.rows as u32).collect();
        self.set_column(var, Column::Rows(rows));
    }

    /// Gives a variable its terms.
    ///
    /// # Panics
    /// If they are more or fewer than the rows.
    pub fn set(&mut self, var: Var, column: Vec<TermId>) {
        self.set_column(var, Column::Ids(column));
    }

    /// Gives a variable its column.
    ///
    /// # Panics
    /// If the column has another length than the table.
    pub fn set_column(&mut self, var: Var, column: Column) {
        assert_eq!(column.len(), self.rows, "a column has a value for each row");
        self.columns[OF_ROWS + var.index()] = Some(column);
    }

    /// Takes a variable's terms away.
    ///
    /// # Panics
    /// If its column holds something else.
    pub fn take(&mut self, var: Var) -> Option<Vec<TermId>> {
        match self.columns[OF_ROWS + var.index()].take()? {
            Column::Ids(ids) => Some(ids),
            other => panic!("{:?} are no terms", other.kind()),
        }
    }

    /// True if its variables have terms and nothing else, as those of tables that go to other nodes; but
    /// `origin`, if there is one, has rows.
    pub(crate) fn is_of_terms_and(&self, origin: Option<Var>) -> bool {
        let kind_of = |var: Var| self.of_any_kind(var).map(Column::kind);
        let mut bound = self.bound().filter(|var| Some(*var) != origin);
        origin.is_none_or(|origin| kind_of(origin) == Some(ColumnKind::Rows))
            && bound.all(|var| kind_of(var) == Some(ColumnKind::Ids))
    }

    /// Bytes of the values in its rows.
    pub(crate) fn value_bytes(&self) -> usize {
        let columns = self.columns.iter().flatten();
        columns
            .map(|column| column.len() * column.kind().value_bytes())
            .sum()
    }

    /// True if its rows may stand for several each.
    pub(crate) fn has_counts(&self) -> bool {
        self.columns[COUNTS].is_some()
    }

    /// The variables that have a column.
    pub fn bound(&self) -> impl Iterator<Item = Var> + '_ {
        let columns = self.columns[OF_ROWS..].iter().enumerate();
        columns.filter_map(|(index, column)| column.is_some().then_some(Var(index as u16)))
    }

    /// What `make` makes of the columns of `keep`, in a table of `rows` rows.
    fn with_columns(&self, rows: usize, keep: &VarSet, make: impl Fn(&Column) -> Column) -> Self {
        let mut table = Self::with_rows(self.width(), rows);
        let mine = self.columns[OF_ROWS..].iter().enumerate();
        for ((index, mine), made) in mine.zip(&mut table.columns[OF_ROWS..]) {
            if let Some(column) = mine
                && keep.contains(Var(index as u16))
            {
                *made = Some(make(column));
            }
        }
        table
    }

    /// A copy with the columns of `keep` only.
    #[must_use]
    pub(crate) fn project(&self, keep: &VarSet) -> Self {
        let mut copy = self.with_columns(self.rows, keep, Column::clone);
        copy.columns[..OF_ROWS].clone_from_slice(&self.columns[..OF_ROWS]);
        copy
    }

    /// Takes the columns of `keep` that another table of as many rows has, and its rows' numbers
    /// among all solutions.
    pub(crate) fn take_columns(&mut self, other: &mut Self, keep: &VarSet) {
        assert_eq!(self.rows, other.rows, "columns of as many rows");
        let theirs = other.columns[OF_ROWS..].iter_mut().enumerate();
        for ((index, theirs), mine) in theirs.zip(&mut self.columns[OF_ROWS..]) {
            if theirs.is_some() && keep.contains(Var(index as u16)) {
                *mine = theirs.take();
            }
        }
        self.columns[NUMBERS] = other.columns[NUMBERS].take();
    }

    /// A table of the given rows of this one, with the columns of `keep` only.
    #[must_use]
    pub fn gather(&self, rows: &[u32], keep: &VarSet) -> Self {
        self.assert_single();
        self.with_columns(rows.len(), keep, |column| column.gather(rows))
    }

    /// A table of the given rows of this one, with all that it has of them: they are the same solutions.
    #[must_use]
    pub(crate) fn gather_whole(&self, rows: &[u32]) -> Self {
        let columns = self.columns.iter();
        let columns = columns.map(|column| column.as_ref().map(|column| column.gather(rows)));
        Self::of(rows.len(), columns.collect())
    }

    /// A table of one row of this one, `count` times, with the columns of `keep` only.
    #[must_use]
    pub(crate) fn repeat(&self, row: usize, count: usize, keep: &VarSet) -> Self {
        self.assert_single();
        self.with_columns(count, keep, |column| column.repeat(row, count))
    }

    /// Keeps the given rows, which rise.
    pub fn retain_rows(&mut self, rows: &[u32]) {
        self.assert_single();
        self.retain_counted_rows(rows);
    }

    /// Keeps the given rows, which rise; of a row that stands for several, all of these.
    pub(crate) fn retain_counted_rows(&mut self, rows: &[u32]) {
        if rows.len() == self.rows {
            return;
        }
        for column in self.columns.iter_mut().flatten() {
            column.retain(rows);
        }
        self.rows = rows.len();
    }

    /// Drops the columns that are not in `keep`.
    pub fn retain_columns(&mut self, keep: &VarSet) {
        for (index, column) in self.columns[OF_ROWS..].iter_mut().enumerate() {
            if !keep.contains(Var(index as u16)) {
                *column = None;
            }
        }
    }

    /// Keeps the rows `from..to`.
    pub fn slice(&mut self, from: usize, to: usize) {
        self.assert_single();
        self.columns[NUMBERS] = None;
        for column in self.columns.iter_mut().flatten() {
            column.slice(from..to);
        }
        self.rows = to - from;
    }

    /// Appends the rows of another table; a variable that one of them lacks is unbound there.
    pub fn append(&mut self, other: &Self) {
        self.append_picked(other, &Picked::Range(0..other.rows), None);
    }

    /// Appends the given rows of another table; a variable that one of them lacks is unbound there.
    pub(crate) fn append_rows(&mut self, other: &Self, rows: &[u32]) {
        self.append_picked(other, &Picked::Rows(rows), None);
    }

    /// Appends the rows `from..to` of another table, and makes room for `most` rows at most.
    pub(crate) fn append_range(&mut self, other: &Self, from: usize, to: usize, most: usize) {
        self.append_picked(other, &Picked::Range(from..to), Some(most));
    }

    fn append_picked(&mut self, other: &Self, picked: &Picked<'_>, most: Option<usize>) {
        self.assert_single();
        other.assert_single();
        let before = self.rows;
        let rows = before + picked.count();
        self.columns[NUMBERS] = None;
        let mine = &mut self.columns[OF_ROWS..];
        for (mine, theirs) in mine.iter_mut().zip(&other.columns[OF_ROWS..]) {
            match (&mut *mine, theirs) {
                (None, None) => (),
                (Some(column), None) => column.pad(rows),
                (_, Some(more)) => {
                    let column = mine.get_or_insert_with(|| more.kind().of_none(before));
                    if let Some(most) = most {
                        column.reserve(rows, rows.max((2 * before).min(most)));
                    }
                    column.append(more, picked);
                }
            }
        }
        self.rows = rows;
    }

    /// Has room for so many variables from now on; columns of others are dropped.
    pub(crate) fn set_width(&mut self, width: usize) {
        self.columns.resize_with(OF_ROWS + width, || None);
    }

    /// Bytes that it takes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let columns = self.columns.iter().flatten();
        let values: usize = columns.map(Column::bytes).sum();
        self.columns.capacity() * size_of::<Option<Column>>() + values
    }
}

#[cold]
fn no_origins(column: Option<&Column>) -> ! {
    panic!(
        "{:?} are no rows of another table",
        column.map(Column::kind)
    )
}

impl Columns for Table {
    fn column(&self, var: Var) -> Option<&[TermId]> {
        self.get(var)
    }

    fn solution(&self, row: usize) -> u64 {
        match &self.columns[NUMBERS] {
            Some(Column::Numbers(numbers)) => numbers[row],
            _ => 0,
        }
    }
}
