//! The bytes of a log file: how are its header, its promises and its records laid out?
//!
//! All numbers are 64-bit little-endian unless said. A file begins with a block of 4096 bytes:
//! - bytes 0..96, the *header*, never altered: magic, version, kind, generation, number of the
//!   file, sequence number of its first record, end of the file before it, chain value at that
//!   end, a random number, identity of the base that the log continues (two words), checksum of
//!   the eleven words before. The checksum is the file's *salt*.
//! - bytes 512.. and 1024.., two *promises*, each alone in a sector: a counter, a length that the
//!   file does not fall below before a later one says less, checksum (salted). They are written by turns, so that a torn
//!   one leaves the other.
//!
//! Everything else in the block is zero. Records follow, each at a multiple of 8:
//!
//! | bytes | what |
//! |---|---|
//! | 0..4 | length of the payload (32 bits) |
//! | 4..8 | kind (32 bits): part, last part, mark, next |
//! | 8..16 | sequence number; a mark or next has that of the record before it |
//! | 16..24 | `durable`: the file was synced up to this byte before the record was written |
//! | 24..32 | checksum of the salt, the record's place and bytes 0..24 |
//! | 32.. | payload, and zeros to a multiple of 8 |
//! | last 8 | chain value: checksum of the chain value before, bytes 24..32, payload, padding |
//!
//! The first checksum makes a record's head known wherever it is found in its file, also behind a
//! damaged one; the second one makes a record valid only behind exactly those before it. The top
//! bit of a chain value is always set: a record never ends in a zero, so that one that was cut
//! short is not completed by the zeros behind it.

use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use crate::identity::Identity;

const MAGIC: u64 = u64::from_le_bytes(*b"JINDOU\r\n");
/// Raised whenever a log written before can no longer be read.
pub(super) const LOG_VERSION: u64 = 3;
/// Apart from the kinds of images.
const KIND_LOG: u64 = 16;

/// Where records begin.
pub(super) const BLOCK_BYTES: u64 = 4096;
const SECTOR_BYTES: usize = 512;
const HEADER_WORDS: usize = 12;
/// Of the header that version 1 had, which ended in its checksum as well.
const HEADER_WORDS_BEFORE: usize = 10;
/// Of a record, before its payload.
pub(super) const HEAD_BYTES: u64 = 32;
/// Of a record, besides its payload and padding.
pub(super) const RECORD_BYTES: u64 = HEAD_BYTES + 8;
const NOT_ZERO: u64 = 1 << 63;
pub(super) const ALIGNMENT: u64 = 8;

/// The payload of one record is at most this long, in bytes. A larger transaction is a group of
/// records.
pub const MAX_PAYLOAD_BYTES: u64 = 1 << 30;

/// Numbers of files, records and promises stay below, so that adding to them is safe.
pub(super) const COUNT_LIMIT: u64 = 1 << 62;

/// What a file's header says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FileHeader {
    pub(super) generation: u64,
    pub(super) number: u64,
    pub(super) first_sequence: u64,
    /// Where the records of the file before end; 0 for the first file.
    pub(super) previous_end: u64,
    pub(super) previous_chain: u64,
    pub(super) random: u64,
    /// The base that the log continues.
    pub(super) base: Identity,
}

/// Why a header is not one.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum BadHeader {
    Version(u64),
    Damaged(&'static str),
}

impl FileHeader {
    fn words(&self) -> [u64; HEADER_WORDS] {
        let mut words = [
            MAGIC,
            LOG_VERSION,
            KIND_LOG,
            self.generation,
            self.number,
            self.first_sequence,
            self.previous_end,
            self.previous_chain,
            self.random,
            self.base.0[0],
            self.base.0[1],
            0,
        ];
        words[HEADER_WORDS - 1] = checksum_of(&words[..HEADER_WORDS - 1]);
        words
    }

    /// The header's checksum, which goes into that of every record.
    pub(super) fn salt(&self) -> u64 {
        self.words()[HEADER_WORDS - 1]
    }

    /// The first block of a file that promises to stay at least `length` long.
    pub(super) fn block(&self, length: u64) -> Vec<u8> {
        let mut block = vec![0; BLOCK_BYTES as usize];
        put(&mut block, &self.words());
        for slot in 0..2 {
            let promise = Promise {
                counter: slot,
                length,
            };
            let place = promise.place() as usize;
            block[place..place + SECTOR_BYTES].copy_from_slice(&promise.sector(self.salt()));
        }
        block
    }

    /// Reads a first block.
    pub(super) fn read(block: &[u8]) -> Result<(Self, Promise), BadHeader> {
        let mut words = [0; HEADER_WORDS];
        get(block, &mut words);
        let [
            magic,
            version,
            kind,
            generation,
            number,
            first_sequence,
            previous_end,
            previous_chain,
            random,
            base_high,
            base_low,
            checksum,
        ] = words;
        if magic != MAGIC {
            return Err(BadHeader::Damaged(
                "it does not begin as a file of a Jindou store",
            ));
        }
        let before = &words[..HEADER_WORDS_BEFORE];
        let is_sound = match version {
            1 => before[HEADER_WORDS_BEFORE - 1] == checksum_of(&before[..HEADER_WORDS_BEFORE - 1]),
            _ => checksum == checksum_of(&words[..HEADER_WORDS - 1]),
        };
        if !is_sound {
            return Err(BadHeader::Damaged("the checksum of its header is wrong"));
        }
        if version != LOG_VERSION {
            return Err(BadHeader::Version(version));
        }
        if kind != KIND_LOG {
            return Err(BadHeader::Damaged("it holds no log, as its name says"));
        }
        let spare = [
            HEADER_WORDS * 8..SECTOR_BYTES,
            3 * SECTOR_BYTES..BLOCK_BYTES as usize,
        ];
        if spare
            .into_iter()
            .any(|range| block[range].iter().any(|&byte| byte != 0))
        {
            return Err(BadHeader::Damaged("its first block has foreign bytes"));
        }
        let header = Self {
            generation,
            number,
            first_sequence,
            previous_end,
            previous_chain,
            random,
            base: Identity([base_high, base_low]),
        };
        let salt = header.salt();
        let promise = [1, 2]
            .into_iter()
            .filter_map(|sector| {
                let place = sector * SECTOR_BYTES;
                Promise::read(&block[place..place + SECTOR_BYTES], salt)
            })
            .max_by_key(|promise| promise.counter)
            .ok_or(BadHeader::Damaged("the promises of its length are damaged"))?;
        Ok((header, promise))
    }
}

/// A length that a file does not fall below before a later promise says less.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Promise {
    pub(super) counter: u64,
    pub(super) length: u64,
}

impl Promise {
    pub(super) fn place(self) -> u64 {
        (1 + self.counter % 2) * SECTOR_BYTES as u64
    }

    pub(super) fn sector(self, salt: u64) -> [u8; SECTOR_BYTES] {
        let mut sector = [0; SECTOR_BYTES];
        let checksum = checksum_of(&[salt, self.counter, self.length]);
        put(&mut sector, &[self.counter, self.length, checksum]);
        sector
    }

    fn read(sector: &[u8], salt: u64) -> Option<Self> {
        let mut words = [0; 2];
        get(sector, &mut words);
        let promise = Self {
            counter: words[0],
            length: words[1],
        };
        (promise.counter < COUNT_LIMIT && promise.sector(salt) == sector).then_some(promise)
    }
}

/// What a record is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A record whose group goes on.
    Part = 1,
    /// A record that ends its group, and with it makes the group count.
    Last = 2,
    /// Says only up to where the file was synced.
    Mark = 3,
    /// Says that another file follows.
    Next = 4,
}

/// The 32 bytes before a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RecordHead {
    pub(super) kind: Kind,
    pub(super) length: u32,
    pub(super) sequence: u64,
    pub(super) durable: u64,
    own: u64,
}

impl RecordHead {
    /// The head of a record at `place`.
    ///
    /// # Panics
    /// If the payload is too long, which callers have refused.
    pub(super) fn new(
        kind: Kind,
        sequence: u64,
        durable: u64,
        payload: &[u8],
        (salt, place): (u64, u64),
    ) -> Self {
        assert!(payload.len() as u64 <= MAX_PAYLOAD_BYTES);
        let mut head = Self {
            kind,
            length: payload.len() as u32,
            sequence,
            durable,
            own: 0,
        };
        head.own = head.own_checksum(salt, place);
        head
    }

    fn first_word(&self) -> u64 {
        u64::from(self.length) | (self.kind as u64) << 32
    }

    fn own_checksum(&self, salt: u64, place: u64) -> u64 {
        let words = [salt, place, self.first_word(), self.sequence, self.durable];
        checksum_of(&words)
    }

    /// The chain value that this record has behind `before`.
    pub(super) fn chain_behind(&self, before: u64, payload: &[u8], padding: &[u8]) -> u64 {
        let mut hasher = Xxh3::new();
        hasher.update(&before.to_le_bytes());
        hasher.update(&self.own.to_le_bytes());
        hasher.update(payload);
        hasher.update(padding);
        hasher.digest() | NOT_ZERO
    }

    pub(super) fn bytes(&self) -> [u8; HEAD_BYTES as usize] {
        let mut bytes = [0; HEAD_BYTES as usize];
        let words = [self.first_word(), self.sequence, self.durable, self.own];
        put(&mut bytes, &words);
        bytes
    }

    /// Reads the head of a record at `place`; `None` if there is none.
    pub(super) fn read(bytes: &[u8], salt: u64, place: u64) -> Option<Self> {
        let mut words = [0; HEAD_BYTES as usize / 8];
        get(bytes, &mut words);
        let [first, sequence, durable, own] = words;
        let kind = match first >> 32 {
            1 => Kind::Part,
            2 => Kind::Last,
            3 => Kind::Mark,
            4 => Kind::Next,
            _ => return None,
        };
        let head = Self {
            kind,
            length: first as u32,
            sequence,
            durable,
            own,
        };
        (own == head.own_checksum(salt, place)).then_some(head)
    }

    /// Bytes of the whole record, with its padding.
    pub(super) fn total(&self) -> u64 {
        RECORD_BYTES + u64::from(self.length).next_multiple_of(ALIGNMENT)
    }
}

/// The zeros behind a payload of some length.
pub(super) fn padding(length: u64) -> &'static [u8] {
    &[0; ALIGNMENT as usize][..(length.next_multiple_of(ALIGNMENT) - length) as usize]
}

fn checksum_of(words: &[u64]) -> u64 {
    let mut bytes = [0; 8 * HEADER_WORDS];
    put(&mut bytes, words);
    xxh3_64(&bytes[..8 * words.len()])
}

fn put(bytes: &mut [u8], words: &[u64]) {
    for (place, word) in bytes.chunks_exact_mut(8).zip(words) {
        place.copy_from_slice(&word.to_le_bytes());
    }
}

fn get(bytes: &[u8], words: &mut [u64]) {
    assert!(bytes.len() >= 8 * words.len());
    for (word, place) in words.iter_mut().zip(bytes.chunks_exact(8)) {
        let mut word_bytes = [0; 8];
        word_bytes.copy_from_slice(place);
        *word = u64::from_le_bytes(word_bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> FileHeader {
        FileHeader {
            generation: 3,
            number: 2,
            first_sequence: 17,
            previous_end: 4800,
            previous_chain: 99,
            random: 7,
            base: Identity([8, 9]),
        }
    }

    #[test]
    fn a_block_is_read_as_written_and_one_torn_promise_leaves_the_other() {
        let block = header().block(8192);
        let (read, promise) = FileHeader::read(&block).unwrap();
        assert_eq!((read, promise.length), (header(), 8192));
        for torn in [512, 1024] {
            let mut block = block.clone();
            block[torn + 9] ^= 1;
            assert_eq!(FileHeader::read(&block).unwrap().1.length, 8192);
            block[1536 - torn + 9] ^= 1;
            assert!(FileHeader::read(&block).is_err());
        }
    }

    #[test]
    fn a_block_of_the_version_before_is_named_as_such() {
        let mut block = vec![0; BLOCK_BYTES as usize];
        let mut words = [MAGIC, 1, KIND_LOG, 3, 2, 17, 4800, 99, 7, 0];
        words[9] = checksum_of(&words[..9]);
        put(&mut block, &words);
        assert_eq!(FileHeader::read(&block), Err(BadHeader::Version(1)));
        block[8 * 4] ^= 1;
        assert!(matches!(
            FileHeader::read(&block),
            Err(BadHeader::Damaged(_))
        ));
    }

    #[test]
    fn a_flipped_bit_outside_the_promises_is_noticed_in_a_block() {
        let block = header().block(8192);
        for bit in (0..512 * 8).chain(1536 * 8..4096 * 8) {
            let mut block = block.clone();
            block[bit / 8] ^= 1 << (bit % 8);
            assert!(FileHeader::read(&block).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn a_record_belongs_to_its_file_its_place_and_those_before_it() {
        let head = RecordHead::new(Kind::Last, 5, 4096, b"payload", (1, 4136));
        assert_eq!(RecordHead::read(&head.bytes(), 1, 4136), Some(head));
        assert_eq!(RecordHead::read(&head.bytes(), 2, 4136), None);
        assert_eq!(RecordHead::read(&head.bytes(), 1, 4144), None);
        let chain = head.chain_behind(2, b"payload", &[0]);
        assert_ne!(head.chain_behind(3, b"payload", &[0]), chain);
        assert_ne!(head.chain_behind(2, b"payloaD", &[0]), chain);
        assert_ne!(head.chain_behind(2, b"payload", &[1]), chain);
        assert_ne!(chain >> 56, 0, "the last byte of a record");
        assert_eq!(head.total(), 48);
    }
}
