//! What does a column of a table hold? It says so by its kind, so that nothing that is no term can
//! be taken for one, here or on another machine.

use std::ops::Range;

use jindou_model::TermId;

/// A column of a table: a value for each row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Column {
    /// Terms; [`TermId::NONE`] where nothing is bound.
    Ids(Vec<TermId>),
    /// How many equal rows each row stands for.
    Counts(Vec<u64>),
    /// Numbers by which something is known for longer than a table is: a solution of the query, or
    /// a group.
    Numbers(Vec<u64>),
    /// Rows of another table, from which these were made.
    Rows(Vec<u32>),
}

/// What a [`Column`] holds, as a number that files and messages give it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum ColumnKind {
    /// [`Column::Ids`], eight bytes each.
    Ids = 1,
    /// [`Column::Counts`], eight bytes each.
    Counts = 2,
    /// [`Column::Numbers`], eight bytes each.
    Numbers = 3,
    /// [`Column::Rows`], four bytes each.
    Rows = 4,
}

impl ColumnKind {
    /// The kind of this number; `None` if there is none.
    #[must_use]
    pub fn from_number(number: u32) -> Option<Self> {
        [Self::Ids, Self::Counts, Self::Numbers, Self::Rows]
            .into_iter()
            .find(|kind| *kind as u32 == number)
    }

    /// Bytes of a value.
    #[must_use]
    pub fn value_bytes(self) -> usize {
        match self {
            Self::Ids | Self::Counts | Self::Numbers => size_of::<u64>(),
            Self::Rows => size_of::<u32>(),
        }
    }

    /// The column of `rows` rows of a table that lacks it.
    ///
    /// # Panics
    /// If there are rows and they must have such a value.
    pub(crate) fn of_none(self, rows: usize) -> Column {
        let mut column = match self {
            Self::Ids => Column::Ids(Vec::new()),
            Self::Counts => Column::Counts(Vec::new()),
            Self::Numbers => Column::Numbers(Vec::new()),
            Self::Rows => Column::Rows(Vec::new()),
        };
        column.pad(rows);
        column
    }
}

/// Which rows of a column are meant.
#[derive(Clone)]
pub(crate) enum Picked<'a> {
    Range(Range<usize>),
    Rows(&'a [u32]),
}

impl Picked<'_> {
    pub(crate) fn count(&self) -> usize {
        match self {
            Self::Range(range) => range.len(),
            Self::Rows(rows) => rows.len(),
        }
    }

    fn extend<T: Copy>(&self, mine: &mut Vec<T>, theirs: &[T]) {
        match self {
            Self::Range(range) => mine.extend_from_slice(&theirs[range.clone()]),
            Self::Rows(rows) => mine.extend(rows.iter().map(|row| theirs[*row as usize])),
        }
    }
}

fn gathered<T: Copy>(values: &[T], rows: &[u32]) -> Vec<T> {
    rows.iter().map(|row| values[*row as usize]).collect()
}

/// Keeps the values of the given rows, which rise.
fn retain<T: Copy>(values: &mut Vec<T>, rows: &[u32]) {
    for (place, row) in rows.iter().enumerate() {
        values[place] = values[*row as usize];
    }
    values.truncate(rows.len());
}

fn cut<T>(values: &mut Vec<T>, range: Range<usize>) {
    values.truncate(range.end);
    values.drain(..range.start);
}

fn reserve<T>(values: &mut Vec<T>, needed: usize, room: usize) {
    if values.capacity() < needed {
        values.reserve_exact(room - values.len());
    }
}

impl Column {
    /// What it holds.
    #[must_use]
    pub fn kind(&self) -> ColumnKind {
        match self {
            Self::Ids(_) => ColumnKind::Ids,
            Self::Counts(_) => ColumnKind::Counts,
            Self::Numbers(_) => ColumnKind::Numbers,
            Self::Rows(_) => ColumnKind::Rows,
        }
    }

    /// Its rows.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Ids(ids) => ids.len(),
            Self::Counts(numbers) | Self::Numbers(numbers) => numbers.len(),
            Self::Rows(rows) => rows.len(),
        }
    }

    /// True if it has no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes that it takes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let capacity = match self {
            Self::Ids(ids) => ids.capacity(),
            Self::Counts(numbers) | Self::Numbers(numbers) => numbers.capacity(),
            Self::Rows(rows) => rows.capacity(),
        };
        capacity * self.kind().value_bytes()
    }

    /// The terms, if it holds terms.
    #[inline]
    #[must_use]
    pub fn ids(&self) -> Option<&[TermId]> {
        match self {
            Self::Ids(ids) => Some(ids),
            Self::Counts(_) | Self::Numbers(_) | Self::Rows(_) => None,
        }
    }

    /// The values of the given rows.
    #[must_use]
    pub(crate) fn gather(&self, rows: &[u32]) -> Self {
        match self {
            Self::Ids(ids) => Self::Ids(gathered(ids, rows)),
            Self::Counts(counts) => Self::Counts(gathered(counts, rows)),
            Self::Numbers(numbers) => Self::Numbers(gathered(numbers, rows)),
            Self::Rows(others) => Self::Rows(gathered(others, rows)),
        }
    }

    /// The value of a row, `count` times.
    #[must_use]
    pub(crate) fn repeat(&self, row: usize, count: usize) -> Self {
        match self {
            Self::Ids(ids) => Self::Ids(vec![ids[row]; count]),
            Self::Counts(counts) => Self::Counts(vec![counts[row]; count]),
            Self::Numbers(numbers) => Self::Numbers(vec![numbers[row]; count]),
            Self::Rows(others) => Self::Rows(vec![others[row]; count]),
        }
    }

    /// Keeps the given rows, which rise.
    pub(crate) fn retain(&mut self, rows: &[u32]) {
        match self {
            Self::Ids(ids) => retain(ids, rows),
            Self::Counts(numbers) | Self::Numbers(numbers) => retain(numbers, rows),
            Self::Rows(others) => retain(others, rows),
        }
    }

    /// Keeps the rows of a range.
    pub(crate) fn slice(&mut self, range: Range<usize>) {
        match self {
            Self::Ids(ids) => cut(ids, range),
            Self::Counts(numbers) | Self::Numbers(numbers) => cut(numbers, range),
            Self::Rows(others) => cut(others, range),
        }
    }

    /// Makes room for exactly `room` rows if there is none for `needed`.
    pub(crate) fn reserve(&mut self, needed: usize, room: usize) {
        match self {
            Self::Ids(ids) => reserve(ids, needed, room),
            Self::Counts(numbers) | Self::Numbers(numbers) => reserve(numbers, needed, room),
            Self::Rows(others) => reserve(others, needed, room),
        }
    }

    /// Appends rows of another column.
    ///
    /// # Panics
    /// If that holds something else.
    pub(crate) fn append(&mut self, other: &Self, picked: &Picked<'_>) {
        match (self, other) {
            (Self::Ids(mine), Self::Ids(theirs)) => picked.extend(mine, theirs),
            (Self::Counts(mine), Self::Counts(theirs))
            | (Self::Numbers(mine), Self::Numbers(theirs)) => picked.extend(mine, theirs),
            (Self::Rows(mine), Self::Rows(theirs)) => picked.extend(mine, theirs),
            (mine, theirs) => panic!("{:?} appended to {:?}", theirs.kind(), mine.kind()),
        }
    }

    /// Appends rows of a table that lacks the column, up to `rows` in all: they bind nothing, and
    /// stand for one each.
    ///
    /// # Panics
    /// If there are such rows and they must have a value.
    pub(crate) fn pad(&mut self, rows: usize) {
        match self {
            Self::Ids(ids) => ids.resize(rows, TermId::NONE),
            Self::Counts(counts) => counts.resize(rows, 1),
            Self::Numbers(_) | Self::Rows(_) => {
                assert_eq!(self.len(), rows, "each row has its number");
            }
        }
    }
}
