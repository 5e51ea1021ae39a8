//! Why are these bytes no table for this query?

use jindou_model::IdEpoch;

use super::super::ColumnKind;

/// What is wrong with bytes that should be a table.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WireError {
    /// They begin with something else.
    #[error("this is no table: it begins with the bytes {found:02x?}")]
    NoTable {
        /// With what.
        found: [u8; 8],
    },
    /// They were written by another version.
    #[error("the table is of version {found}, and version {known} is known")]
    Version {
        /// Theirs.
        found: u32,
        /// The only one that is read.
        known: u32,
    },
    /// Their ids mean other terms.
    #[error("the table's ids are those of epoch {}, and here they are of epoch {}", theirs.0, ours.0)]
    Epoch {
        /// What the ids of the table mean.
        theirs: IdEpoch,
        /// What ids mean to who reads it.
        ours: IdEpoch,
    },
    /// They end too early.
    #[error("the table ends at byte {end}, before the end of {part}")]
    Truncated {
        /// What was to be read.
        part: &'static str,
        /// Bytes that there are.
        end: usize,
    },
    /// They go on after the end.
    #[error("{bytes} bytes follow the table")]
    TooLong {
        /// How many.
        bytes: usize,
    },
    /// They say that there is more of something than any table has.
    #[error("a table has {most} {part} at most, and this one says {found}")]
    TooMany {
        /// Of what.
        part: &'static str,
        /// How many.
        found: u64,
        /// How many there may be.
        most: u64,
    },
    /// A column holds what nobody knows.
    #[error("column {column}: there is no kind {kind} of columns")]
    ColumnKind {
        /// Which column, from 0.
        column: usize,
        /// What it says.
        kind: u32,
    },
    /// A column is of a variable that the table has not, or that has a column already.
    #[error("column {column}: variable {variable} is unknown or has a column already")]
    Variable {
        /// Which column, from 0.
        column: usize,
        /// Of which variable.
        variable: u32,
    },
    /// A column of the rows themselves holds what they have not.
    #[error("column {column}: rows themselves have no second column, and none of {kind:?}")]
    OfRows {
        /// Which column, from 0.
        column: usize,
        /// What it holds.
        kind: ColumnKind,
    },
    /// No term has this id.
    #[error("column {column}, row {row}: no term has the id {id:#018x}")]
    Id {
        /// Which column, from 0.
        column: usize,
        /// Which row, from 0.
        row: usize,
        /// All of its 64 bits.
        id: u64,
    },
    /// The rows stand for more rows than can be counted.
    #[error("column {column}: its counts are 2^64 and more together")]
    Counts {
        /// Which column, from 0.
        column: usize,
    },
    /// A computed term is of a kind that nobody knows.
    #[error("computed term {term}: there is no kind {kind} of terms")]
    TermKind {
        /// Which term, from 0.
        term: usize,
        /// What it says.
        kind: u32,
    },
    /// A computed term's text, datatype or language is none.
    #[error("computed term {term}: its {part} is none")]
    Text {
        /// Which term, from 0.
        term: usize,
        /// What of it.
        part: &'static str,
    },
}
