//! Which id has this term, and which term has this id?
//!
//! Terms are byte strings here; `jindou_model::key` says which bytes stand for which term.
//!
//! - [`StringTable`] is immutable: n distinct strings with the ids 0 to n - 1, front-coded in
//!   blocks, with a compact hash index, in one [`jindou_fabric::Region`] that is written to a
//!   file as it is. [`Decoder`] reads many of its strings.
//! - [`TermTable`] is immutable, too, but its strings have numbers that are given from outside, such
//!   as those that terms keep for ever; such tables are merged. [`TermDecoder`] reads many strings.
//! - [`HashIndex`] is what finds the strings of a dictionary of which a node has a part, by their hashes; [`Residues`]
//!   are the numbers of which it has the strings.
//! - [`Interner`] grows: it numbers strings in order of first sight while data is loaded.
//!
//! All use [`hash`], so that a hash computed for one serves the others.
#![forbid(unsafe_code)]

mod block;
mod build;
mod decoder;
mod error;
mod hash_index;
mod index;
mod interner;
mod layout;
mod merge;
mod number_map;
mod number_set;
mod numbers;
mod residues;
mod table;
mod table_writer;
mod term_decoder;
mod term_table;

pub use block::{Around, BLOCK};
pub use decoder::{Decoder, WholeBlock};
pub use error::DictionaryError;
pub use hash_index::HashIndex;
pub use interner::Interner;
pub use residues::Residues;
pub use table::StringTable;
pub use table_writer::{TableFrame, TableWriter};
pub use term_decoder::TermDecoder;
pub use term_table::TermTable;

/// The hash of a term's bytes, XXH3 with 64 bits: a part of the format of [`StringTable`].
#[inline]
#[must_use]
pub fn hash(key: &[u8]) -> u64 {
    xxhash_rust::xxh3::xxh3_64(key)
}
