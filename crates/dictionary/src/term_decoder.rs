//! How are the strings of many given numbers read, one after the other?

use crate::decoder::Decoder;
use crate::error::DictionaryError;
use crate::numbers::NumbersView;

/// Reads strings of a [`crate::TermTable`] by number, as [`Decoder`] does by row.
pub struct TermDecoder<'a> {
    numbers: NumbersView<'a>,
    rows: Decoder<'a>,
}

impl<'a> TermDecoder<'a> {
    #[inline]
    pub(crate) fn new(numbers: NumbersView<'a>, rows: Decoder<'a>) -> Self {
        Self { numbers, rows }
    }

    /// The row of a number, if it is there: what [`Self::rows`] and
    /// [`crate::TermTable::strings`] call an id.
    #[inline]
    #[must_use]
    pub fn row(&self, number: u64) -> Option<u64> {
        self.numbers.row(number)
    }

    /// The string of a number, until the next one is asked for.
    ///
    /// # Errors
    /// [`DictionaryError::UnknownNumber`] if it is not there, and [`DictionaryError::Damaged`] if
    /// the string's block is.
    #[inline]
    pub fn get(&mut self, number: u64) -> Result<&[u8], DictionaryError> {
        match self.numbers.row(number) {
            Some(row) => self.rows.get(row),
            None => Err(unknown(number)),
        }
    }

    /// Appends the string of a number.
    ///
    /// # Errors
    /// As [`Self::get`]; nothing is appended then.
    #[inline]
    pub fn push(&mut self, number: u64, out: &mut Vec<u8>) -> Result<(), DictionaryError> {
        match self.numbers.row(number) {
            Some(row) => self.rows.push(row, out),
            None => Err(unknown(number)),
        }
    }

    /// The reader of the same strings by row: whole blocks are read there.
    #[inline]
    #[must_use]
    pub fn rows(&mut self) -> &mut Decoder<'a> {
        &mut self.rows
    }
}

/// The error of a number that is not there.
#[cold]
pub(crate) fn unknown(number: u64) -> DictionaryError {
    DictionaryError::UnknownNumber { number }
}
