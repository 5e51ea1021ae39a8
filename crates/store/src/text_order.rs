//! Where do the terms of the dictionary lie in the order of their texts?
//!
//! Literals of the bulk load are numbered in the order of their keys, and vertices too within each
//! run; the order of later literals is found out when queries need it (`later_order`). What
//! the key alone tells, whether a vertex is an IRI and of which datatype and language a literal is,
//! is found out when it is first asked for, and kept in two bits a vertex and a byte a literal. A node's
//! part, which has not the strings of all, has that in its file (`whole_texts`).

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};

use jindou_dictionary::{Decoder, StringTable};
use jindou_model::{TermId, TextKind, TextPlace};

use crate::Base;
use crate::kind_column::vertex_kind;

/// Terms of a word.
const WORD_TERMS: u64 = 16;
const BITS: u64 = 2;
/// A word of zero is not known yet.
const FIRST_KIND: u32 = 1;
const SECOND_KIND: u32 = 2;
const KIND: u32 = 3;

/// Whether strings of a table are of the one kind or the other: two bits each.
#[derive(Default)]
pub(crate) struct TextKinds {
    words: OnceLock<Box<[AtomicU32]>>,
}

impl TextKinds {
    pub(crate) fn bytes(&self) -> usize {
        self.words.get().map_or(0, |words| size_of_val(&**words))
    }

    /// What `kind_of` gives for the key of a string that is in the table.
    #[inline]
    fn get(&self, local: u64, table: &StringTable, kind_of: fn(&[u8]) -> u32) -> u32 {
        let words = self.words.get_or_init(|| {
            let count = table.len().div_ceil(WORD_TERMS);
            (0..count).map(|_| AtomicU32::new(0)).collect()
        });
        let slot = &words[(local / WORD_TERMS) as usize];
        let mut word = slot.load(Ordering::Relaxed);
        if word == 0 {
            word = read_kinds(local - local % WORD_TERMS, table, kind_of);
            // Whoever else finds it out finds the same.
            slot.store(word, Ordering::Relaxed);
        }
        (word >> (BITS * (local % WORD_TERMS))) & KIND
    }
}

/// The kinds of the strings of a word.
#[cold]
fn read_kinds(first: u64, table: &StringTable, kind_of: fn(&[u8]) -> u32) -> u32 {
    let mut decoder = table.decoder();
    let mut word = 0;
    for local in first..table.len().min(first + WORD_TERMS) {
        let kind = kind_of(read_key(&mut decoder, local));
        word |= kind << (BITS * (local - first));
    }
    word
}

fn read_key<'d>(decoder: &'d mut Decoder<'_>, local: u64) -> &'d [u8] {
    decoder
        .get(local)
        .unwrap_or_else(|error| panic!("string {local} is not in the dictionary: {error}"))
}

fn code_of_vertex(key: &[u8]) -> u32 {
    match vertex_kind(key) {
        TextKind::Blank => SECOND_KIND,
        _ => FIRST_KIND,
    }
}

/// Not known yet.
const UNKNOWN: u8 = 0;
/// Not to be had from here.
const UNTOLD: u8 = 1;
/// That of plain strings, which is the border alone.
const PLAIN: u8 = 2;
/// Other ends that have a number, which counts from here.
const FIRST_END: u8 = 3;
const ENDS: usize = (u8::MAX - FIRST_END) as usize + 1;

/// The end of each literal's key from its border on, which tells its datatype and its language:
/// a byte each, found out for sixteen literals of a table when it is first asked for.
#[derive(Default)]
pub(crate) struct EndCodes {
    codes: OnceLock<Box<[AtomicU8]>>,
}

/// The different ends that were met, in all tables of a store.
#[derive(Default)]
pub(crate) struct LiteralEnds {
    /// In the order in which they were met.
    ends: OnceLock<Ends>,
}

/// Ends of keys, each in the place of its number.
type Ends = Box<[OnceLock<Box<[u8]>>]>;

impl EndCodes {
    pub(crate) fn bytes(&self) -> usize {
        self.codes.get().map_or(0, |codes| size_of_val(&**codes))
    }

    /// What is known of the key of a literal that has a row in the table.
    #[inline]
    fn code(&self, row: u64, table: &StringTable, ends: &LiteralEnds) -> u8 {
        let codes = self
            .codes
            .get_or_init(|| (0..table.len()).map(|_| AtomicU8::new(UNKNOWN)).collect());
        let code = codes[row as usize].load(Ordering::Relaxed);
        if code != UNKNOWN {
            return code;
        }
        read_codes(row - row % WORD_TERMS, table, (codes, ends));
        codes[row as usize].load(Ordering::Relaxed)
    }
}

#[cold]
fn read_codes(first: u64, table: &StringTable, (codes, ends): (&[AtomicU8], &LiteralEnds)) {
    let mut decoder = table.decoder();
    for row in first..table.len().min(first + WORD_TERMS) {
        let code = ends.code_of(read_key(&mut decoder, row));
        // Whoever else finds it out finds the same, or another number of the same end.
        codes[row as usize].store(code, Ordering::Relaxed);
    }
}

impl LiteralEnds {
    pub(crate) fn bytes(&self) -> usize {
        self.ends.get().map_or(0, |ends| size_of_val(&**ends))
    }

    /// The end that a code stands for; `None` where it has to be read: for a literal with a zero
    /// byte in its lexical form, and once there are too many different ends.
    #[inline]
    fn end(&self, code: u8) -> Option<&[u8]> {
        if code == PLAIN {
            return Some(&[0]);
        }
        let number = usize::from(code.checked_sub(FIRST_END)?);
        self.ends.get()?[number].get().map(|end| &**end)
    }

    /// The code of a key's end, a new one if it was not met before.
    fn code_of(&self, key: &[u8]) -> u8 {
        let border = key.iter().position(|byte| *byte == 0);
        let end = &key[border.unwrap_or(key.len())..];
        // With a second zero byte, the first one is the value's.
        if !matches!(end, [0, rest @ ..] if !rest.contains(&0)) {
            return UNTOLD;
        }
        if end.len() == 1 {
            return PLAIN;
        }
        let new = || (0..ENDS).map(|_| OnceLock::new()).collect();
        let ends = self.ends.get_or_init(new);
        let number = ends
            .iter()
            .position(|known| **known.get_or_init(|| end.into()) == *end);
        number.map_or(UNTOLD, |number| FIRST_END + number as u8)
    }
}

impl Base {
    /// Where a vertex lies in the order of texts; `None` for those that came after the bulk load.
    ///
    /// Costs a few loads, and the first time for sixteen terms the decoding of them.
    #[inline]
    #[must_use]
    pub fn vertex_place(&self, id: TermId) -> Option<TextPlace> {
        let number = id.number();
        let kind = match self.node_part() {
            Some(part) => part.whole.texts.vertices.get(number)?,
            None => self.kind_of_ordered(number)?,
        };
        Some(TextPlace {
            kind,
            run: u32::try_from(self.runs.run_of(id)?).ok()?,
            at: 0,
            order: number,
        })
    }

    /// How many vertices from the first one on are in the order of their texts within their runs.
    pub(crate) fn ordered_vertices(&self) -> u64 {
        // Numbers given later are in no order.
        self.runs
            .text_ordered()
            .min(self.vertices.ground_part().end)
    }

    /// The kind of a vertex, if it is one of these.
    #[inline]
    fn kind_of_ordered(&self, number: u64) -> Option<TextKind> {
        if number >= self.ordered_vertices() {
            return None;
        }
        let ground = self.vertices.ground_part();
        let code = (ground.kinds).get(number, ground.table.strings(), code_of_vertex);
        Some(match code {
            SECOND_KIND => TextKind::Blank,
            _ => TextKind::Iri,
        })
    }

    /// True of a blank node, by its number; false of an IRI, and of a number that the base leaves out.
    ///
    /// Costs a few loads, and the first time for sixteen terms the decoding of them.
    #[inline]
    pub(crate) fn is_blank(&self, number: u64) -> bool {
        let Some(part) = self.vertices.part_of(number) else {
            return false;
        };
        let Some(row) = part.table.row(number) else {
            return false;
        };
        let code = (part.kinds).get(row, part.table.strings(), code_of_vertex);
        code == SECOND_KIND
    }

    /// The kind of a literal of the bulk load; `None` of one that is not ordered by its key.
    #[inline]
    pub(crate) fn load_kind(&self, number: u64) -> Option<TextKind> {
        if let Some(part) = self.node_part() {
            return part.whole.texts.literals.get(number);
        }
        let ground = self.literals.ground_part();
        let ends = &self.literals.ends;
        match ground.codes.code(number, ground.table.strings(), ends) {
            PLAIN => Some(TextKind::String),
            code => matches!(ends.end(code)?, [_, b'@', ..]).then_some(TextKind::LangString),
        }
    }

    /// A number that a dictionary literal shares with those whose keys (see [`jindou_model::key`])
    /// are the same from the border on, which tells datatype and language; `None` where the key has
    /// to be read for that.
    ///
    /// Costs a few loads, and the first time for sixteen literals the decoding of them.
    ///
    /// # Panics
    /// If there is no such literal.
    #[inline]
    #[must_use]
    pub fn literal_end_number(&self, number: u64) -> Option<u8> {
        let part = self.literals.part_of(number);
        let part = part.unwrap_or_else(|| panic!("literal {number} is not in the dictionary"));
        let row = part.table.row(number)?;
        let code = (part.codes).code(row, part.table.strings(), &self.literals.ends);
        (code >= PLAIN).then_some(code)
    }
}
