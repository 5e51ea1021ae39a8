//! How are the strings of many ids read, one after the other?

use crate::block::{BLOCK_SHIFT, Block};
use crate::error::DictionaryError;
use crate::table::{Parts, place};

/// Reads strings of a [`crate::StringTable`], remembering the block it read last.
///
/// Making one allocates nothing; it comes to hold one string, the longest that it has read. A
/// string is two copies away wherever it lies in its block, so no more blocks are kept.
pub struct Decoder<'a> {
    parts: Parts<'a>,
    /// The number of `block`; none before the first string.
    number: u64,
    block: Block<'a>,
    text: Vec<u8>,
}

impl<'a> Decoder<'a> {
    #[inline]
    pub(crate) fn new(parts: Parts<'a>) -> Self {
        Self {
            parts,
            number: u64::MAX,
            block: Block::EMPTY,
            text: Vec::new(),
        }
    }

    /// The string of an id, until the next one is asked for.
    ///
    /// # Errors
    /// [`DictionaryError::UnknownId`] if the id is not less than the number of strings, and
    /// [`DictionaryError::Damaged`] if its block is.
    #[inline]
    pub fn get(&mut self, id: u64) -> Result<&[u8], DictionaryError> {
        let number = id >> BLOCK_SHIFT;
        if number != self.number || !self.parts.has(id) {
            self.block = self.parts.block(id)?;
            self.number = number;
        }
        let place = place(id);
        if place == 0 {
            return Ok(self.block.head());
        }
        let pieces = self.block.pieces(place)?;
        self.text.clear();
        pieces.append_to(&mut self.text);
        Ok(&self.text)
    }
}
