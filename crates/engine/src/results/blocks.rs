//! Which blocks of the dictionary were decoded, and how are their terms written?
//!
//! Ids that are close to each other lie in the same block of the dictionary, and results tend to
//! be in the order of ids in one column at least. A block that is met for the second time is
//! decoded and written as a whole: one look for bytes to escape serves all its terms, and a cell
//! is then one copy.

use jindou_dictionary::{BLOCK, FILLER};
use jindou_model::{TermId, TermKind};

use super::style::Style;
use crate::TermDecoder;
use crate::solutions::key_text;

/// Blocks kept for vertices, and as many for literals. Each has 16 KiB of text at the most, as
/// the decoder refuses larger ones, and mostly one: it all stays in the second-level cache.
const SLOTS: usize = 256;

/// The blocks that one writer remembers.
#[derive(Default)]
pub(super) struct Blocks {
    slots: Vec<Slot>,
    /// By slot, the block that was met last: [`number`].
    met: Vec<u64>,
}

/// A block whose terms are written.
#[derive(Default)]
struct Slot {
    /// [`number`] of the block; 0 for none.
    number: u64,
    /// Terms of the block.
    count: u32,
    /// Where each term's text ends.
    ends: [u32; BLOCK],
    text: Vec<u8>,
}

/// Tells blocks of all kinds apart; never 0 for vertices and literals.
#[inline]
fn number(id: TermId) -> u64 {
    id.raw() / BLOCK as u64
}

#[inline]
fn slot(id: TermId) -> usize {
    let literal = usize::from(id.kind() == TermKind::Literal);
    number(id) as usize % SLOTS + literal * SLOTS
}

impl Blocks {
    /// The text of a term whose block is kept.
    #[inline]
    pub(super) fn text(&self, id: TermId) -> Option<&[u8]> {
        let slot = self.slots.get(slot(id))?;
        if slot.number != number(id) {
            return None;
        }
        slot.term(id)
    }

    /// The text of a term whose block has been met before and is kept from now on.
    #[cold]
    #[inline(never)]
    pub(super) fn fill(
        &mut self,
        id: TermId,
        style: Style,
        decoder: &TermDecoder<'_>,
    ) -> Option<&[u8]> {
        // Nothing else may take the place of a block that is met or kept.
        if !decoder.has_block(id) {
            return None;
        }
        let literal = id.kind() == TermKind::Literal;
        if self.met.is_empty() {
            self.met.resize(2 * SLOTS, 0);
        }
        let place = slot(id);
        if self.met[place] != number(id) {
            self.met[place] = number(id);
            return None;
        }
        if self.slots.is_empty() {
            self.slots.resize_with(2 * SLOTS, Slot::default);
        }
        let slot = &mut self.slots[place];
        slot.number = 0;
        slot.fill(id, literal, style, decoder)?;
        slot.number = number(id);
        slot.term(id)
    }
}

impl Slot {
    #[inline]
    fn term(&self, id: TermId) -> Option<&[u8]> {
        let place = id.raw() as usize % BLOCK;
        // Terms that came after the dictionary was built may have ids of its last block.
        if place >= self.count as usize {
            return None;
        }
        let start = if place == 0 { 0 } else { self.ends[place - 1] };
        self.text.get(start as usize..self.ends[place] as usize)
    }

    /// Writes all terms of the id's block; `None` if that cannot be done.
    fn fill(
        &mut self,
        id: TermId,
        literal: bool,
        style: Style,
        decoder: &TermDecoder<'_>,
    ) -> Option<()> {
        let (open, close) = style.frame(literal);
        // A plain string ends with a border, which makes room for one byte.
        let border = usize::from(literal);
        if close.len() >= border {
            let room = (open.len(), close.len() - border);
            self.count = decoder.block(id, room, &mut self.text, &mut self.ends)? as u32;
            if self.frame_all(literal, style) {
                return Some(());
            }
        }
        let (mut keys, mut ends) = (Vec::new(), [0; BLOCK]);
        self.count = decoder.block(id, (0, 0), &mut keys, &mut ends)? as u32;
        self.text.clear();
        let mut start = 0;
        for (place, end) in ends[..self.count as usize].iter().enumerate() {
            let key = keys.get(start..*end as usize)?;
            // What a format cannot hold is refused when it is that term's turn.
            let text = key_text(key, literal);
            style.write(&mut self.text, text).ok()?;
            self.ends[place] = self.text.len() as u32;
            start = *end as usize;
        }
        Some(())
    }

    /// Puts what surrounds terms into the room around them, if all of them are IRIs or plain
    /// strings that are written as they are.
    fn frame_all(&mut self, literal: bool, style: Style) -> bool {
        let (open, close) = style.frame(literal);
        let ends = &self.ends[..self.count as usize];
        let mut start = 0;
        for end in ends {
            let end = *end as usize;
            if literal {
                let border = &mut self.text[end - close.len()];
                if *border != 0 {
                    return false;
                }
                *border = FILLER;
            } else if self.text[start + open.len()..].starts_with(b"_:") {
                return false;
            }
            start = end;
        }
        if !style.is_clean(&self.text, literal) {
            return false;
        }
        let mut start = 0;
        for end in ends {
            let end = *end as usize;
            self.text[start..start + open.len()].copy_from_slice(open);
            self.text[end - close.len()..end].copy_from_slice(close);
            start = end;
        }
        true
    }
}
