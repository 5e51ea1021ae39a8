//! Which terms come again and again, and how were they written?
//!
//! A column of names, types or numbers has few distinct values: their text is decoded and escaped
//! once and then copied. Values that come once cost one comparison.

use jindou_model::TermId;

/// Terms remembered, by the lowest bits of a mix of their ids.
const SLOTS: usize = 512;
/// Bytes of text remembered; beyond it everything is forgotten.
const TEXT_BYTES: usize = 64 << 10;
/// A term that was seen, and its text from the second time on.
#[derive(Clone, Copy)]
struct Slot {
    id: TermId,
    begin: u32,
    /// Zero for none.
    end: u32,
}

/// The memory of one writer.
#[derive(Default)]
pub(super) struct Repeats {
    slots: Vec<Slot>,
    text: Vec<u8>,
}

/// What is known of a term.
pub(super) enum Known<'a> {
    /// Its text.
    Text(&'a [u8]),
    /// It came before: its text should be kept in this slot.
    Again(usize),
    /// Nothing.
    New,
}

impl Repeats {
    /// What is known of a term.
    #[inline]
    pub(super) fn look_up(&mut self, id: TermId) -> Known<'_> {
        if self.slots.is_empty() {
            self.slots = vec![
                Slot {
                    id: TermId::NONE,
                    begin: 0,
                    end: 0
                };
                SLOTS
            ];
        }
        let place = (id.raw().wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 55) as usize;
        let slot = &mut self.slots[place];
        if slot.id != id {
            *slot = Slot {
                id,
                begin: 0,
                end: 0,
            };
            return Known::New;
        }
        match slot.end {
            0 => Known::Again(place),
            end => Known::Text(&self.text[slot.begin as usize..end as usize]),
        }
    }

    /// Keeps the text of the term in a slot.
    pub(super) fn keep(&mut self, place: usize, text: &[u8]) {
        if text.is_empty() || text.len() > TEXT_BYTES / 8 {
            return;
        }
        if self.text.len() + text.len() > TEXT_BYTES {
            self.text.clear();
            self.slots.iter_mut().for_each(|slot| slot.end = 0);
        }
        let begin = self.text.len() as u32;
        self.text.extend_from_slice(text);
        self.slots[place].begin = begin;
        self.slots[place].end = self.text.len() as u32;
    }
}
