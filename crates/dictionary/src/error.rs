//! What can go wrong between terms and ids?

use thiserror::Error;

/// Why a term or an id could not be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum DictionaryError {
    /// The bytes do not begin as a string table does.
    #[error("not a string table")]
    NotATable,
    /// The string table was written by another version.
    #[error("string table of version {found}; this build reads version {supported}")]
    Version {
        /// The version of the bytes.
        found: u32,
        /// The version that this build reads.
        supported: u32,
    },
    /// The bytes contradict themselves.
    #[error("damaged string table: {what}")]
    Damaged {
        /// What is wrong.
        what: &'static str,
    },
    /// No string has this id.
    #[error("no string has id {id}: there are {len}")]
    UnknownId {
        /// The id asked for.
        id: u64,
        /// The number of strings.
        len: u64,
    },
    /// The bytes do not begin as the numbers of a term table do.
    #[error("not the numbers of a term table")]
    NotNumbers,
    /// No string of a term table has this number.
    #[error("no string has number {number}")]
    UnknownNumber {
        /// The number asked for.
        number: u64,
    },
    /// Two strings were given the same number.
    #[error("two strings have number {number}")]
    RepeatedNumber {
        /// The number.
        number: u64,
    },
    /// The same string was given two numbers.
    #[error("numbers {one} and {other} have the same string")]
    RepeatedString {
        /// One of its numbers.
        one: u64,
        /// The other one, which may be the same.
        other: u64,
    },
    /// A range of numbers would go beyond the largest number.
    #[error("there are no {len} numbers from {first} on")]
    NoSuchRange {
        /// The first number of the range.
        first: u64,
        /// How many numbers it has.
        len: u64,
    },
    /// More strings than a term table with mapped numbers holds.
    #[error("a term table with mapped numbers holds at most {limit} strings, not {strings}")]
    TooMany {
        /// The number of strings.
        strings: u64,
        /// The most that it holds.
        limit: u64,
    },
    /// A string is too long to be kept.
    #[error("string of {bytes} bytes is longer than the {limit} that a dictionary keeps")]
    TooLong {
        /// Bytes of the string.
        bytes: usize,
        /// The longest that is kept.
        limit: usize,
    },
    /// An interner has given out all of its ids.
    #[error("an interner holds at most {limit} strings")]
    Full {
        /// The most that it holds.
        limit: usize,
    },
}
