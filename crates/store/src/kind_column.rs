//! Of which kind is the text of each of many terms, for whoever has not their strings?
//!
//! Terms are numbered in the order of their texts, so that neighbours are mostly of one kind: a block of
//! these takes one number, and another one two bits a term.

use jindou_model::TextKind;

use crate::StoreError;
use crate::column::Column;
use crate::image::{ImageReader, ImageWriter};

const BITS: usize = 2;
const CODE: u64 = (1 << BITS) - 1;
const WORD_TERMS: usize = 64 / BITS;
const BLOCK_WORDS: usize = 16;
const BLOCK_TERMS: usize = BLOCK_WORDS * WORD_TERMS;
/// The lowest bit of each term of a word: times a code, all terms have that.
const EACH: u64 = u64::MAX / CODE;
/// Codes of kinds. Blocks of several kinds have numbers from here on.
const CODES: usize = 3;

/// The kinds that the texts of some sort of terms are of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeyKinds {
    /// By code.
    kinds: [Option<TextKind>; CODES],
    /// That of a term with this key; `None` of one that is not ordered by it.
    of_key: fn(&[u8]) -> Option<TextKind>,
}

impl KeyKinds {
    /// Those of vertices.
    pub(crate) const VERTICES: Self = Self {
        kinds: [None, Some(TextKind::Blank), Some(TextKind::Iri)],
        of_key: |key| Some(vertex_kind(key)),
    };
    /// Those of literals.
    pub(crate) const LITERALS: Self = Self {
        kinds: [None, Some(TextKind::String), Some(TextKind::LangString)],
        of_key: literal_kind,
    };

    /// The kind of a term with this key; `None` of one that is not ordered by it.
    pub(crate) fn of_key(&self, key: &[u8]) -> Option<TextKind> {
        (self.of_key)(key)
    }

    fn code_of(&self, key: &[u8]) -> u64 {
        let kind = self.of_key(key);
        let code = self.kinds.iter().position(|known| *known == kind);
        code.expect("a key is of one of the kinds") as u64
    }
}

/// The kind of a vertex.
pub(crate) fn vertex_kind(key: &[u8]) -> TextKind {
    match key.starts_with(b"_:") {
        true => TextKind::Blank,
        false => TextKind::Iri,
    }
}

/// The kind of a literal that is ordered by its key.
pub(crate) fn literal_kind(key: &[u8]) -> Option<TextKind> {
    let border = key.iter().position(|byte| *byte == 0)?;
    match &key[border + 1..] {
        // With a second zero byte, the first one is the value's.
        rest if rest.contains(&0) => None,
        [] => Some(TextKind::String),
        [b'@', ..] => Some(TextKind::LangString),
        _ => None,
    }
}

/// True of a word in which each code is that of a kind.
fn has_codes(word: u64) -> bool {
    word & word >> 1 & EACH == 0
}

/// The kinds of the terms with the first numbers.
#[derive(Clone, Debug)]
pub(crate) struct KindColumn {
    kinds: KeyKinds,
    len: u64,
    /// For each block the code of all of its terms, or [`CODES`] and its number among those of several kinds.
    blocks: Column,
    /// The codes of the terms of these, in words.
    mixed: Column,
}

/// Codes of terms, by number. A term costs two bits.
pub(crate) struct KindBuilder {
    kinds: KeyKinds,
    len: usize,
    words: Vec<u64>,
}

impl KindBuilder {
    pub(crate) fn new(kinds: KeyKinds) -> Self {
        Self {
            kinds,
            len: 0,
            words: Vec::new(),
        }
    }

    /// Appends the term with this key.
    pub(crate) fn push_key(&mut self, key: &[u8]) {
        self.push(self.kinds.code_of(key));
    }

    #[inline]
    fn push(&mut self, code: u64) {
        let place = self.len % WORD_TERMS;
        if place == 0 {
            self.words.push(0);
        }
        let last = self.words.last_mut().expect("it was pushed");
        *last |= code << (place * BITS);
        self.len += 1;
    }

    /// The codes of its terms in so many words at a time, each time with how many terms these are.
    pub(crate) fn pieces(&self, words: usize) -> impl Iterator<Item = (usize, &[u64])> {
        let pieces = self.words.chunks(words).enumerate();
        pieces.map(move |(number, piece)| {
            let left = self.len - number * words * WORD_TERMS;
            (left.min(piece.len() * WORD_TERMS), piece)
        })
    }

    /// Appends a [piece](Self::pieces) of so many terms; false if there are not as many, or a code is that of no kind.
    pub(crate) fn extend(&mut self, len: usize, words: &[u64]) -> bool {
        if words.len() != len.div_ceil(WORD_TERMS) || !words.iter().all(|word| has_codes(*word)) {
            return false;
        }
        for place in 0..len {
            let word = words[place / WORD_TERMS];
            self.push(word >> (place % WORD_TERMS * BITS) & CODE);
        }
        true
    }

    pub(crate) fn finish(mut self) -> KindColumn {
        let len = self.len;
        if let Some(last) = len.checked_sub(1) {
            // The last block is of one kind if its terms are.
            let code = self.words[last / WORD_TERMS] >> (last % WORD_TERMS * BITS) & CODE;
            while !self.len.is_multiple_of(BLOCK_TERMS) {
                self.push(code);
            }
        }
        let (mut blocks, mut mixed) = (Vec::new(), Vec::new());
        for block in self.words.chunks(BLOCK_WORDS) {
            let code = block[0] & CODE;
            if block.iter().all(|word| *word == code * EACH) {
                blocks.push(code);
            } else {
                blocks.push((CODES + mixed.len() / BLOCK_WORDS) as u64);
                mixed.extend_from_slice(block);
            }
        }
        KindColumn {
            kinds: self.kinds,
            len: len as u64,
            blocks: Column::from_values(&blocks),
            mixed: Column::from_values(&mixed),
        }
    }
}

impl KindColumn {
    /// The number behind the last term.
    #[inline]
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    pub(crate) fn bytes(&self) -> usize {
        self.blocks.bytes() + self.mixed.bytes()
    }

    /// The kind of a term; `None` where there is none, or it is not ordered by its text.
    #[inline]
    pub(crate) fn get(&self, number: u64) -> Option<TextKind> {
        if number >= self.len {
            return None;
        }
        let number = number as usize;
        let block = self.blocks.get(number / BLOCK_TERMS) as usize;
        let code = match block.checked_sub(CODES) {
            None => block,
            Some(mixed) => {
                let place = mixed * BLOCK_TERMS + number % BLOCK_TERMS;
                let word = self.mixed.get(place / WORD_TERMS);
                (word >> (place % WORD_TERMS * BITS) & CODE) as usize
            }
        };
        self.kinds.kinds[code]
    }

    /// The kinds that its terms may be of.
    pub(crate) fn kinds(&self) -> KeyKinds {
        self.kinds
    }

    pub(crate) fn write(&self, image: &mut ImageWriter) {
        image.word(self.len);
        self.blocks.write(image);
        self.mixed.write(image);
    }

    /// That of no more than so many terms.
    pub(crate) fn read(
        image: &mut ImageReader,
        kinds: KeyKinds,
        most: u64,
    ) -> Result<Self, StoreError> {
        let read = Self {
            kinds,
            len: image.word()?,
            blocks: Column::read(image)?,
            mixed: Column::read(image)?,
        };
        match read.len <= most && read.is_sound() {
            true => Ok(read),
            false => Err(image.corrupt("the kinds of terms are of others than it has")),
        }
    }

    /// Has each block the codes that it is to have, and nothing else?
    fn is_sound(&self) -> bool {
        let all = self.mixed.len() / BLOCK_WORDS;
        let mut next = 0;
        let mut is_next = |block: u64| {
            let is_known = block < CODES as u64 || block == (CODES + next) as u64;
            next += usize::from(block >= CODES as u64);
            is_known
        };
        (self.blocks.len() as u64) == self.len.div_ceil(BLOCK_TERMS as u64)
            && (0..self.blocks.len()).all(|place| is_next(self.blocks.get(place)))
            && next == all
            && self.mixed.len() == all * BLOCK_WORDS
            && (0..self.mixed.len()).all(|place| has_codes(self.mixed.get(place)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEYS: [&[u8]; 5] = [b"a\0", b"a\0@en", b"a\0http://x/t", b"a\0b\0", b"no border"];

    /// Terms of which those of `mixed` are of several kinds, and those of each other block of one.
    fn keys(count: usize, mixed: std::ops::Range<usize>) -> Vec<&'static [u8]> {
        let key = |number: usize| match mixed.contains(&number) {
            true => KEYS[number * number % 7 % KEYS.len()],
            false => KEYS[number / BLOCK_TERMS % KEYS.len()],
        };
        (0..count).map(key).collect()
    }

    fn column(keys: &[&[u8]]) -> KindColumn {
        let mut builder = KindBuilder::new(KeyKinds::LITERALS);
        keys.iter().for_each(|key| builder.push_key(key));
        builder.finish()
    }

    fn read(image: ImageWriter, most: u64) -> Result<KindColumn, StoreError> {
        KindColumn::read(&mut image.in_memory(), KeyKinds::LITERALS, most)
    }

    #[test]
    fn kinds_are_those_of_the_keys_also_once_they_are_read() {
        for (count, mixed) in [
            (0, 0..0),
            (1, 0..0),
            (31, 0..31),
            (513, 0..0),
            (5_000, 600..700),
            (5_000, 4_900..5_000),
            (5_120, 0..5_120),
        ] {
            let keys = keys(count, mixed.clone());
            let made = column(&keys);
            let mut image = ImageWriter::default();
            made.write(&mut image);
            let again = read(image, count as u64).unwrap();
            for column in [&made, &again] {
                assert_eq!(column.len(), count as u64);
                for (number, key) in keys.iter().enumerate() {
                    assert_eq!(column.get(number as u64), literal_kind(key), "{number}");
                }
                assert_eq!(column.get(count as u64), None);
            }
            let blocks = mixed.len().div_ceil(BLOCK_TERMS) + usize::from(!mixed.is_empty());
            let most = count.div_ceil(BLOCK_TERMS) + blocks * BLOCK_WORDS * 8;
            assert!(made.bytes() <= most, "{count}: {} bytes", made.bytes());
        }
    }

    #[test]
    fn parts_that_are_joined_are_what_the_whole_is() {
        let keys = keys(3_000, 1_000..1_100);
        let mut joined = KindBuilder::new(KeyKinds::LITERALS);
        for part in keys.chunks(701) {
            let mut builder = KindBuilder::new(KeyKinds::LITERALS);
            part.iter().for_each(|key| builder.push_key(key));
            for (len, words) in builder.pieces(7) {
                assert!(joined.extend(len, words));
            }
        }
        assert!(!joined.extend(33, &[0]) && !joined.extend(1, &[CODE]));
        let (joined, whole) = (joined.finish(), column(&keys));
        assert_eq!(joined.bytes(), whole.bytes());
        let differs = |number: &u64| joined.get(*number) != whole.get(*number);
        assert_eq!((0..3_000).find(differs), None);
    }

    #[test]
    fn what_is_no_column_of_kinds_is_refused() {
        let words = vec![0; BLOCK_WORDS];
        let with_no_code = [vec![CODE << 4], vec![0; BLOCK_WORDS - 1]].concat();
        for (len, blocks, mixed) in [
            (BLOCK_TERMS + 1, vec![0], vec![]),
            (1, vec![0, 0], vec![]),
            (1, vec![3], vec![]),
            (1, vec![4], words.clone()),
            (1, vec![3], words[1..].to_vec()),
            (1, vec![0], words.clone()),
            (1, vec![3], with_no_code),
            (2 * BLOCK_TERMS + 1, vec![0, 1, 2], vec![]),
        ] {
            let mut image = ImageWriter::default();
            image.word(len as u64);
            Column::from_values(&blocks).write(&mut image);
            Column::from_values(&mixed).write(&mut image);
            let refused = read(image, 2 * BLOCK_TERMS as u64);
            let is_refused = matches!(refused, Err(StoreError::Corrupt { .. }));
            assert!(is_refused, "{len} {blocks:?}");
        }
    }
}
