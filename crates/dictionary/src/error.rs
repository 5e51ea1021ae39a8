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
