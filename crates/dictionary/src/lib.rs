//! Which id has this term, and which term has this id?
//!
//! Terms are byte strings here; `jindou_model::key` says which bytes stand for which term.
//!
//! - [`StringTable`] is immutable: n distinct strings with the ids 0 to n - 1, front-coded in
//!   blocks, with a compact hash index, in one [`jindou_fabric::Region`] that is written to a
//!   file as it is. [`Decoder`] reads many of its strings.
//! - [`Interner`] grows: it numbers strings in order of first sight while data is loaded.
//!
//! Both use [`hash`], so that a hash computed for one serves the other.
#![forbid(unsafe_code)]

mod block;
mod build;
mod decoder;
mod error;
mod index;
mod interner;
mod layout;
mod table;

pub use block::{Around, BLOCK};
pub use decoder::{Decoder, WholeBlock};
pub use error::DictionaryError;
pub use interner::Interner;
pub use table::StringTable;

/// The hash of a term's bytes, XXH3 with 64 bits: a part of the format of [`StringTable`].
#[inline]
#[must_use]
pub fn hash(key: &[u8]) -> u64 {
    xxhash_rust::xxh3::xxh3_64(key)
}
