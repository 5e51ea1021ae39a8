//! Where is the text of each of many ids, mostly without decoding or escaping anything?
//!
//! The text of terms is gathered in one piece of memory, from where rows copy it. Ids that are
//! close to each other lie in the same block of the dictionary, and results tend to be in the
//! order of ids in one column at least: a block that is met for the second time is decoded and
//! written as a whole, with one look for bytes to escape. Terms of any other kind are remembered
//! one by one, which serves columns of few distinct values. When the memory is full, everything
//! is forgotten.

use std::ops::Range;

use jindou_dictionary::{Around, BLOCK};
use jindou_model::{TermId, TermKind};
use memchr::memchr_iter;

use super::ResultsError;
use super::style::{InlineFrames, Style};
use crate::TermDecoder;
use crate::solutions::key_text;

/// How much text is remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Size {
    /// Enough for answers of some thousands of rows.
    Small,
    /// For long answers: what is read again and again should stay in the second-level cache.
    Large,
}

impl Size {
    /// Bytes of text beyond which everything is forgotten.
    const fn full(self) -> usize {
        match self {
            Self::Small => 128 << 10,
            Self::Large => 1 << 20,
        }
    }

    /// Bytes of text with what the terms of a few rows may add beyond that.
    const fn most(self) -> usize {
        match self {
            Self::Small => 384 << 10,
            Self::Large => 2 << 20,
        }
    }

    /// Blocks kept for vertices, and as many for literals: few, where making the slots would cost
    /// more than what they save.
    const fn block_slots(self) -> usize {
        match self {
            Self::Small => 128,
            Self::Large => 1024,
        }
    }

    /// Other terms remembered, by the highest bits of a mix of their ids.
    const fn term_bits(self) -> u32 {
        match self {
            Self::Small => 8,
            Self::Large => 11,
        }
    }

    /// What a [`Memory`] of this size takes at the most, apart from a term that is longer.
    pub(super) const fn bytes(self) -> usize {
        // Texts, slots, and blocks being written.
        self.most() + (384 << 10)
    }
}

/// Bytes that a block's text has at the most: longer ones are not kept.
const BLOCK_BYTES: usize = u16::MAX as usize;
/// No block and no term: ids of this kind do not exist.
const NOTHING: u64 = u64::MAX;

/// Bytes behind the text that copies of a fixed size may read.
pub(super) const SLACK: usize = 64;

/// A column of ids, each so many steps behind the one before.
#[derive(Clone, Copy)]
pub(super) struct Column<'a> {
    pub(super) ids: &'a [TermId],
    pub(super) step: usize,
}

impl Column<'_> {
    #[inline]
    pub(super) fn id(self, row: usize) -> TermId {
        self.ids[row * self.step]
    }

    fn get(self, row: usize) -> Option<TermId> {
        self.ids.get(row * self.step).copied()
    }
}

/// Where a term's text lies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) start: u32,
    pub(super) len: u32,
}

/// A block whose terms are written: one line of the processor's caches.
#[derive(Clone)]
#[repr(align(64))]
struct BlockSlot {
    /// [`number`] of the block.
    number: u64,
    start: u32,
    /// Where each term's text begins behind the start, and where the last one's ends.
    bounds: [u16; BLOCK + 1],
}

const NO_BLOCK: BlockSlot = BlockSlot {
    number: NOTHING,
    start: 0,
    bounds: [0; BLOCK + 1],
};

#[derive(Clone, Copy)]
struct TermSlot {
    raw: u64,
    place: Place,
}

const NO_TERM: TermSlot = TermSlot {
    raw: NOTHING,
    place: Place { start: 0, len: 0 },
};

/// The texts that one writer remembers: [`Size::bytes`] of them and of what finds them.
pub(super) struct Memory {
    style: Style,
    size: Size,
    text: Vec<u8>,
    blocks: Vec<BlockSlot>,
    /// By slot, the block that was met last: [`number`].
    met: Vec<u64>,
    terms: Vec<TermSlot>,
    /// How much of the text is in use; behind it there is [`SLACK`] at least, whatever it holds.
    used: usize,
    /// What stands around IRIs and around plain strings.
    around: [Around; 2],
    /// What stands before strings where they are in quotes, with the language tag behind them.
    quote: Option<Around>,
    /// Whether the last block of literals had language tags: the next one may well have, too.
    tagged: bool,
    /// What stands around the lexical forms of values held inline.
    inline: InlineFrames,
    /// A term, or a block, being written, and the keys of the block.
    scratch: Vec<u8>,
    keys: Vec<u8>,
}

/// Tells blocks of all kinds apart.
#[inline]
fn number(id: TermId) -> u64 {
    id.raw() / BLOCK as u64
}

impl Memory {
    /// Without anything remembered.
    pub(super) fn new(style: Style, size: Size) -> Self {
        Self {
            style,
            size,
            text: vec![0; SLACK],
            blocks: vec![NO_BLOCK; 2 * size.block_slots()],
            met: vec![NOTHING; 2 * size.block_slots()],
            terms: vec![NO_TERM; 1 << size.term_bits()],
            used: 0,
            around: [false, true].map(|literal| {
                let (open, close) = style.frame(literal);
                Around::new(open, close, literal.then_some(0))
            }),
            quote: matches!(style, Style::Tsv | Style::NTriples)
                .then(|| Around::new(b"\"", b"", None)),
            tagged: false,
            inline: InlineFrames::new(style),
            scratch: Vec::new(),
            keys: Vec::new(),
        }
    }

    pub(super) fn style(&self) -> Style {
        self.style
    }

    /// Remembers more from now on. Places found before are worth nothing then.
    pub(super) fn enlarge(&mut self) {
        *self = Self::new(self.style, Size::Large);
    }

    /// The slot of a block.
    #[inline]
    fn block_slot(&self, id: TermId) -> usize {
        let literal = usize::from(id.kind() == TermKind::Literal);
        // Both are powers of two.
        let slots = self.met.len() / 2;
        (number(id) as usize & (slots - 1)) + literal * slots
    }

    #[inline]
    fn term_slot(&self, id: TermId) -> usize {
        let bits = self.size.term_bits();
        (id.raw().wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - bits)) as usize
    }

    /// Makes room for the terms of a few rows. Places found before are worth nothing then.
    pub(super) fn make_room(&mut self) {
        if self.used > self.size.full() {
            self.used = 0;
            self.blocks.fill(NO_BLOCK);
            self.terms.fill(NO_TERM);
        }
    }

    /// The text that places lie in, with [`SLACK`] behind it.
    pub(super) fn text(&self) -> &[u8] {
        &self.text
    }

    /// Puts what was written to the scratch behind the text.
    fn keep_scratch(&mut self) -> Place {
        let (start, len) = (self.used, self.scratch.len());
        if self.text.len() < start + len + SLACK {
            self.text
                .resize((start + len + SLACK).next_multiple_of(1 << 14), 0);
        }
        self.text[start..start + len].copy_from_slice(&self.scratch);
        self.used += len;
        Place {
            start: start as u32,
            len: len as u32,
        }
    }

    /// Puts the place of the text of each of `rows` of a column into every `stride`-th of `places`;
    /// that of [`TermId::NONE`] is empty. False if the terms are too long to be remembered together.
    ///
    /// # Errors
    /// As [`Style::write`].
    pub(super) fn find(
        &mut self,
        column: Column<'_>,
        rows: Range<usize>,
        places: (&mut [Place], usize),
        decoder: &mut TermDecoder<'_>,
    ) -> Result<bool, ResultsError> {
        let mut last = (TermId::NONE, Place::default());
        for (row, place) in rows.zip(places.0.iter_mut().step_by(places.1)) {
            let id = column.id(row);
            if id != last.0 {
                let found = match self.in_block(id) {
                    Some(found) => found,
                    None => match self.find_one(id, column.get(row + 1), decoder)? {
                        Some(found) => found,
                        None => return Ok(false),
                    },
                };
                last = (id, found);
            }
            *place = last.1;
        }
        Ok(true)
    }

    /// The text of a term whose block is kept.
    #[inline]
    fn in_block(&self, id: TermId) -> Option<Place> {
        let slot = &self.blocks[self.block_slot(id)];
        (slot.number == number(id)).then(|| slot.place(id))
    }

    /// The text of a term whose block is not kept; `None` if there is no room for it.
    #[inline(never)]
    fn find_one(
        &mut self,
        id: TermId,
        next: Option<TermId>,
        decoder: &mut TermDecoder<'_>,
    ) -> Result<Option<Place>, ResultsError> {
        if id.is_none() {
            return Ok(Some(Place::default()));
        }
        let slot = self.terms[self.term_slot(id)];
        if slot.raw == id.raw() {
            return Ok(Some(slot.place));
        }
        let of_blocks = matches!(id.kind(), TermKind::Vertex | TermKind::Literal);
        if of_blocks && let Some(place) = self.fill(id, next, decoder) {
            return Ok(Some(place));
        }
        self.scratch.clear();
        if !self.inline.write(&mut self.scratch, id) {
            let text = decoder.text(id).expect("the cell is bound");
            self.style.write(&mut self.scratch, text)?;
        }
        if self.used + self.scratch.len() > self.size.most() {
            if self.scratch.len() > BLOCK_BYTES {
                self.scratch = Vec::new();
            }
            return Ok(None);
        }
        let place = self.keep_scratch();
        let raw = id.raw();
        let at = self.term_slot(id);
        self.terms[at] = TermSlot { raw, place };
        Ok(Some(place))
    }

    /// The text of a term whose block has been met before, or is about to be met again; all of it
    /// is kept from now on.
    fn fill(
        &mut self,
        id: TermId,
        next: Option<TermId>,
        decoder: &TermDecoder<'_>,
    ) -> Option<Place> {
        // Nothing else may take the place of a block that is met or kept.
        if !decoder.has_block(id) {
            return None;
        }
        let at = self.block_slot(id);
        let again = next.is_some_and(|next| number(next) == number(id) && next != id);
        if self.met[at] != number(id) && !again {
            self.met[at] = number(id);
            return None;
        }
        if self.used + BLOCK_BYTES > self.size.most() {
            return None;
        }
        let start = self.used;
        let bounds = self.write_block(id, decoder)?;
        self.met[at] = number(id);
        self.blocks[at] = BlockSlot {
            number: number(id),
            start: start as u32,
            bounds,
        };
        Some(self.blocks[at].place(id))
    }

    /// Appends the text of all terms of an id's block and tells where each begins and the last one
    /// ends. `None` if that cannot be done, or the block is not whole: terms that came after the
    /// dictionary was built may have ids of its last block.
    fn write_block(&mut self, id: TermId, decoder: &TermDecoder<'_>) -> Option<[u16; BLOCK + 1]> {
        let literal = id.kind() == TermKind::Literal;
        if literal
            && self.tagged
            && let Some(texts) = self.quote_block(id, decoder)
        {
            return Some(texts);
        }
        let mut ends = [0; BLOCK];
        // Almost all blocks have IRIs or plain strings that are written as they are.
        let around = &self.around[usize::from(literal)];
        if let Some(block) = decoder.block(id, around, &mut self.text, self.used, &mut ends) {
            if block.count < BLOCK {
                return None;
            }
            let texts = bounds(&ends)?;
            if self.style.is_clean(block.raw, literal) && self.fits(&texts, literal) {
                self.used += block.bytes;
                return Some(texts);
            }
        }
        if literal
            && !self.tagged
            && let Some(texts) = self.quote_block(id, decoder)
        {
            return Some(texts);
        }
        let block = decoder.block(id, &Around::nothing(), &mut self.keys, 0, &mut ends)?;
        if block.count < BLOCK {
            return None;
        }
        let is_clean = literal && self.style.is_clean(block.raw, literal);
        self.scratch.clear();
        let mut begin = 0;
        for end in &mut ends {
            let key = self.keys.get(begin..*end as usize)?;
            begin = *end as usize;
            if !(is_clean && write_clean_literal(self.style, &mut self.scratch, key)) {
                // What a format cannot hold is refused when it is that term's turn.
                let text = key_text(key, literal);
                self.style.write(&mut self.scratch, text).ok()?;
            }
            *end = u32::try_from(self.scratch.len()).ok()?;
        }
        let bounds = bounds(&ends)?;
        self.keep_scratch();
        Some(bounds)
    }

    /// As [`Self::write_block`] for strings with or without language tags, in quotes: a key with a
    /// quote before it and another in the place of its border.
    fn quote_block(&mut self, id: TermId, decoder: &TermDecoder<'_>) -> Option<[u16; BLOCK + 1]> {
        let mut ends = [0; BLOCK];
        let quote = self.quote.as_ref()?;
        let block = decoder.block(id, quote, &mut self.text, self.used, &mut ends)?;
        if block.count < BLOCK || !self.style.is_clean(block.raw, true) {
            return None;
        }
        let texts = bounds(&ends)?;
        let text = &mut self.text[self.used..][..block.bytes];
        // One border in each, which shows in their order.
        let (mut borders, mut tagged) = ([0; BLOCK], false);
        let mut found = memchr_iter(0, text);
        for (border, bounds) in borders.iter_mut().zip(texts.windows(2)) {
            *border = found.next()?;
            let behind = &text[*border + 1..];
            let is_last = *border + 1 == usize::from(bounds[1]);
            if *border >= usize::from(bounds[1]) || !(is_last || behind.starts_with(b"@")) {
                return None;
            }
            tagged |= !is_last;
        }
        if found.next().is_some() {
            return None;
        }
        for border in borders {
            text[border] = b'"';
        }
        self.tagged = tagged;
        self.used += block.bytes;
        Some(texts)
    }

    /// Whether each term of the block behind the text is what it was taken for: an IRI, not a
    /// blank node; in XML, without blanks at its ends.
    fn fits(&self, bounds: &[u16; BLOCK + 1], literal: bool) -> bool {
        let text = &self.text[self.used..];
        let (open, close) = self.style.frame(literal);
        bounds.windows(2).all(|bounds| {
            let (begin, end) = (usize::from(bounds[0]), usize::from(bounds[1]));
            let term = &text[begin + open.len()..end - close.len()];
            (literal || !term.starts_with(b"_:"))
                && (self.style != Style::Xml || term.trim_ascii() == term)
        })
    }
}

impl BlockSlot {
    #[inline]
    fn place(&self, id: TermId) -> Place {
        let term = id.raw() as usize % BLOCK;
        let (begin, end) = (self.bounds[term], self.bounds[term + 1]);
        Place {
            start: self.start + u32::from(begin),
            len: u32::from(end - begin),
        }
    }
}

/// Appends the literal of a key if it is a string, with or without a language tag; false of
/// others. None of its bytes needs an escape.
fn write_clean_literal(style: Style, out: &mut Vec<u8>, key: &[u8]) -> bool {
    let Some(border) = key.iter().rposition(|byte| *byte == 0) else {
        return false;
    };
    let (value, suffix) = (&key[..border], &key[border + 1..]);
    if value.contains(&0) || (style == Style::Xml && value.trim_ascii() != value) {
        return false;
    }
    match suffix {
        [] => {
            let (open, close) = style.frame(true);
            for part in [open, value, close] {
                out.extend_from_slice(part);
            }
        }
        [b'@', tag @ ..] => style.write_clean_tagged(out, value, tag),
        _ => return false,
    }
    true
}

/// `None` for a block that is too long.
fn bounds(ends: &[u32; BLOCK]) -> Option<[u16; BLOCK + 1]> {
    let mut bounds = [0; BLOCK + 1];
    for (bound, end) in bounds[1..].iter_mut().zip(ends) {
        *bound = u16::try_from(*end).ok()?;
    }
    Some(bounds)
}
