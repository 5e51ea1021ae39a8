//! Which number has a row of a term table, and which row has a number?
//!
//! Either the numbers are one range in the order of the rows, which costs a subtraction and a
//! comparison, or those that leave some residues, or they are mapped.

use crate::error::DictionaryError;
use crate::number_map::{MapView, NumberMap};
use crate::residues::Residues;

/// The numbers of a table's rows.
#[derive(Clone)]
pub(crate) enum Numbers {
    /// `len` numbers from `first` on, by row.
    Range { first: u64, len: u64 },
    /// The first `len` numbers that leave these residues, by row.
    Dealt { residues: Residues, len: u64 },
    /// Any numbers; rows are in the order of their strings.
    Mapped(NumberMap),
}

impl Numbers {
    /// The numbers `first` to `first + len - 1`, by row.
    pub(crate) fn range(first: u64, len: u64) -> Result<Self, DictionaryError> {
        match first.checked_add(len) {
            Some(_) => Ok(Self::Range { first, len }),
            None => Err(DictionaryError::NoSuchRange { first, len }),
        }
    }

    /// The least number and the greatest one.
    pub(crate) fn ends(&self) -> Option<(u64, u64)> {
        match self {
            Self::Range { first, len } => len.checked_sub(1).map(|last| (*first, first + last)),
            Self::Dealt { residues, len } => {
                let last = len.checked_sub(1)?;
                Some((residues.number_at(0), residues.number_at(last)))
            }
            Self::Mapped(map) => map.ends(),
        }
    }

    #[inline]
    pub(crate) fn view(&self) -> NumbersView<'_> {
        match self {
            Self::Range { first, len } => NumbersView::Range {
                first: *first,
                len: *len,
            },
            Self::Dealt { residues, len } => NumbersView::Dealt {
                residues,
                len: *len,
            },
            Self::Mapped(map) => NumbersView::Mapped(map.view()),
        }
    }
}

/// Numbers to be read.
#[derive(Clone, Copy)]
pub(crate) enum NumbersView<'a> {
    Range { first: u64, len: u64 },
    Dealt { residues: &'a Residues, len: u64 },
    Mapped(MapView<'a>),
}

impl<'a> NumbersView<'a> {
    /// The row of a number.
    #[inline]
    pub(crate) fn row(&self, number: u64) -> Option<u64> {
        match self {
            Self::Range { first, len } => {
                let row = number.wrapping_sub(*first);
                (row < *len).then_some(row)
            }
            Self::Dealt { residues, len } => residues.row(number).filter(|row| row < len),
            Self::Mapped(map) => map.row(number),
        }
    }

    /// The number of a row.
    #[inline]
    pub(crate) fn number_at(&self, row: u64) -> Option<u64> {
        match self {
            Self::Range { first, len } => (row < *len).then(|| first + row),
            Self::Dealt { residues, len } => (row < *len).then(|| residues.number_at(row)),
            Self::Mapped(map) => map.number_at(row),
        }
    }

    /// Whether a row has this number.
    #[inline]
    pub(crate) fn contains(&self, number: u64) -> bool {
        match self {
            Self::Range { .. } | Self::Dealt { .. } => self.row(number).is_some(),
            Self::Mapped(map) => map.place(number).is_some(),
        }
    }

    /// All numbers, ascending.
    pub(crate) fn numbers(self) -> impl Iterator<Item = u64> + 'a {
        let (rows, map) = match self {
            Self::Range { len, .. } | Self::Dealt { len, .. } => (0..len, None),
            Self::Mapped(map) => (0..0, Some(map)),
        };
        let of_rows = rows.filter_map(move |row| self.number_at(row));
        of_rows.chain(map.into_iter().flat_map(MapView::numbers))
    }
}
