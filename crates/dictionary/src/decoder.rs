//! How are the strings of many ids read, one after the other?

use crate::block::{Around, BLOCK, BLOCK_SHIFT, Block};
use crate::error::DictionaryError;
use crate::table::{Parts, place};

/// Decoded blocks that a decoder keeps at the most: a power of two.
const SLOTS: usize = 64;
/// A block with more bytes than this is not kept. Decoded it may be sixteen times as large, so a
/// decoder keeps a megabyte at the most, and about 70 KB of IRIs.
const LARGEST_KEPT: usize = 1 << 10;

/// Reads strings of a [`crate::StringTable`], keeping the blocks that it reads repeatedly.
///
/// Making one allocates nothing, and a string costs a few copies when its block is read for the
/// first time; at the second time the whole block is decoded and kept, so that strings of
/// successive ids, or of few blocks, cost next to nothing. A decoder holds one megabyte at the
/// most, and the longest string that it has read.
pub struct Decoder<'a> {
    parts: Parts<'a>,
    /// By slot, the number of the block that was read last and one more, cut to 32 bits: a hint.
    seen: [u32; SLOTS],
    /// Decoded blocks by slot; empty until a block is read for the second time.
    kept: Vec<Kept>,
    text: Vec<u8>,
}

impl<'a> Decoder<'a> {
    #[inline]
    pub(crate) fn new(parts: Parts<'a>) -> Self {
        Self {
            parts,
            seen: [0; SLOTS],
            kept: Vec::new(),
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
        if !self.is_kept(id)? {
            return self.get_one(id);
        }
        self.kept_string(id)
    }

    /// Whether the block of an id is kept, from now on at the latest.
    #[inline]
    fn is_kept(&mut self, id: u64) -> Result<bool, DictionaryError> {
        let number = id >> BLOCK_SHIFT;
        let kept = self.kept.get(number as usize % SLOTS);
        if kept.is_some_and(|kept| kept.number == number) {
            return Ok(true);
        }
        self.keep_if_seen(id)
    }

    /// A string of a block that is kept.
    #[inline]
    fn kept_string(&self, id: u64) -> Result<&[u8], DictionaryError> {
        self.kept[(id >> BLOCK_SHIFT) as usize % SLOTS]
            .string(place(id))
            .ok_or_else(|| self.parts.unknown(id))
    }

    /// Appends the string of an id.
    ///
    /// # Errors
    /// As [`Self::get`]; nothing is appended then.
    #[inline]
    pub fn push(&mut self, id: u64, out: &mut Vec<u8>) -> Result<(), DictionaryError> {
        if self.is_kept(id)? {
            out.extend_from_slice(self.kept_string(id)?);
            return Ok(());
        }
        self.parts.block(id)?.pieces(place(id))?.append_to(out);
        Ok(())
    }

    /// Puts the strings of the whole block that an id lies in into `text` from `at` on, one after
    /// the other, each with what stands `around` it; `ends` gets where each ends with that, counted
    /// from `at`. The id's own place is its rest by [`BLOCK`]. `text` grows as needed, and what lies
    /// behind the strings is of no use. `None` for a block that is too large to be kept by many, or
    /// with a string that lacks the border, or has it elsewhere, too.
    ///
    /// Costs a small part of what the strings would cost one by one.
    ///
    /// # Errors
    /// As [`Self::get`].
    pub fn block(
        &self,
        id: u64,
        around: &Around,
        text: &mut Vec<u8>,
        at: usize,
        ends: &mut [u32; BLOCK],
    ) -> Result<Option<WholeBlock<'a>>, DictionaryError> {
        let block = self.parts.block(id)?;
        if block.bytes() > LARGEST_KEPT {
            return Ok(None);
        }
        let bytes = block.decode_all(around, text, at, ends)?;
        Ok(bytes.map(|bytes| WholeBlock {
            count: block.count(),
            bytes,
            raw: block.raw(),
        }))
    }

    /// Decodes and keeps the block of an id if it was read before, and tells whether it did.
    fn keep_if_seen(&mut self, id: u64) -> Result<bool, DictionaryError> {
        let number = id >> BLOCK_SHIFT;
        let slot = number as usize % SLOTS;
        let mark = (number as u32).wrapping_add(1);
        if self.seen[slot] != mark {
            self.seen[slot] = mark;
            return Ok(false);
        }
        let block = self.parts.block(id)?;
        if block.bytes() > LARGEST_KEPT {
            return Ok(false);
        }
        if self.kept.is_empty() {
            self.kept.resize_with(SLOTS, Kept::default);
        }
        // Of a block that is damaged in one place, the strings of the other ones can be read.
        Ok(self.kept[slot].fill(number, &block).is_ok())
    }

    fn get_one(&mut self, id: u64) -> Result<&[u8], DictionaryError> {
        let block = self.parts.block(id)?;
        if place(id) == 0 {
            return Ok(block.head());
        }
        let pieces = block.pieces(place(id))?;
        self.text.clear();
        pieces.append_to(&mut self.text);
        Ok(&self.text)
    }
}

/// What is known of a block all strings of which were decoded.
#[derive(Clone, Copy, Debug)]
pub struct WholeBlock<'a> {
    /// The number of strings.
    pub count: usize,
    /// Bytes of all of them with what stands around each.
    pub bytes: usize,
    /// The bytes that the strings are made of, borders included: a byte that occurs in a string
    /// occurs here, and there are far fewer of them.
    pub raw: (&'a [u8], &'a [u8]),
}

/// A decoded block.
struct Kept {
    /// Which block this is; `u64::MAX` for none.
    number: u64,
    /// Where each string ends in the text.
    ends: [u32; BLOCK],
    count: usize,
    text: Vec<u8>,
}

impl Default for Kept {
    fn default() -> Self {
        Self {
            number: u64::MAX,
            ends: [0; BLOCK],
            count: 0,
            text: Vec::new(),
        }
    }
}

impl Kept {
    fn fill(&mut self, number: u64, block: &Block<'_>) -> Result<(), DictionaryError> {
        self.number = u64::MAX;
        self.count = block.count();
        let bytes = block.decode_all(&Around::nothing(), &mut self.text, 0, &mut self.ends)?;
        assert!(bytes.is_some(), "no border is asked for");
        self.number = number;
        Ok(())
    }

    #[inline]
    fn string(&self, place: usize) -> Option<&[u8]> {
        if place >= self.count {
            return None;
        }
        let start = if place == 0 { 0 } else { self.ends[place - 1] };
        self.text.get(start as usize..self.ends[place] as usize)
    }
}
