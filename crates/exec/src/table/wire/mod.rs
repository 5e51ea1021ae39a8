//! How does a table leave its process, for another machine or a device?
//!
//! As one run of bytes. All numbers are little-endian, and each part begins at a multiple of eight
//! bytes from the beginning, so that columns can be read where they lie.
//!
//! | bytes | what |
//! |---|---|
//! | 8 | `JNDTABLE` |
//! | 4, 4 | version, variables that there is room for |
//! | 8 | epoch of the ids |
//! | 8 | rows |
//! | 4, 4 | columns, computed terms |
//! | 8 | bytes of the texts of these |
//! | 8 a column | the variable, or 2^32 - 1 for a column of the rows themselves; [`ColumnKind`] |
//! | 8 or 4 a row | each column, filled up with zeros |
//! | 16 a term | its kind, bytes of its datatype or language, bytes of its text |
//! | | the texts, each followed by its datatype or language |
//!
//! Ids of the dictionary and inline ones are what they are in the table. That of a computed term,
//! which only its query knows, has as payload the term's place among those in the message, where
//! each is once: who reads it looks for a term of that text, and takes the id that it has there.

mod decode;
mod encode;
mod error;
#[cfg(test)]
mod tests;
mod texts;

use super::ColumnKind;

pub use self::encode::EncodedTable;
pub use self::error::WireError;

/// What a table begins with.
const MAGIC: [u8; 8] = *b"JNDTABLE";
/// The version that is written, and the only one that is read.
const VERSION: u32 = 1;
/// Bytes of the header.
const HEADER_BYTES: usize = 48;
/// Bytes that say what a column is.
const ENTRY_BYTES: usize = 8;
/// Bytes that say what a computed term is.
const TERM_ENTRY_BYTES: usize = 16;
/// Stands for a variable where a column is one of the rows themselves.
const OF_THE_ROWS: u32 = u32::MAX;
/// Each part begins at a multiple of so many bytes.
const ALIGNMENT: usize = 8;

/// Bytes of a column of so many rows, filled up; `None` where no address reaches as far.
fn column_bytes(kind: ColumnKind, rows: usize) -> Option<usize> {
    let bytes = rows.checked_mul(kind.value_bytes())?;
    bytes.checked_next_multiple_of(ALIGNMENT)
}
