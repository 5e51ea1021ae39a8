//! What do the words of a ring mean?
//!
//! First come the marks, then the records. A record is three words and its bytes, padded to words:
//! the number of its first word since the ring began, mixed with the ring's name; kind and length;
//! a checksum over all. Records go on at the ring's start when they reach its end.

use std::sync::atomic::{AtomicU64, Ordering};

use bytemuck::{cast_slice, cast_slice_mut};
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use super::RING_BYTES;
use crate::remote::MemoryKey;
use crate::remote::memory::WORD_BYTES;

/// How many words the receiver has taken; only it writes them.
pub(super) const CONSUMED: usize = 0;
/// 1 once the receiver takes no more; only it writes it.
pub(super) const RECEIVER_CLOSED: usize = 1;
/// The sender's node + 1, once there is one.
pub(super) const SENDER: usize = 2;
/// The number of the sender's bell.
pub(super) const SENDER_BELL: usize = 3;
/// 1 once the sender went away without closing.
pub(super) const ABANDONED: usize = 4;
/// How many words the sender had written when it began to wait, + 1.
pub(super) const WAITING: usize = 5;
/// Where records begin.
pub(super) const RECORDS: usize = 8;

/// Words of a record before its bytes.
pub(super) const RECORD_HEADER: usize = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// The last or only piece of a message.
    Last = 1,
    /// A piece that others follow.
    Piece = 2,
    /// Nothing follows.
    Close = 3,
}

/// The numbers that sender and receiver must have in common.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    /// Words of all records.
    pub(super) capacity: u64,
    /// Differs between rings.
    name: u64,
}

/// Words of records in a ring of `bytes` bytes in all, if there is such a ring.
pub(super) fn capacity(bytes: u64) -> Option<u64> {
    let records = bytes.checked_sub((RECORDS * WORD_BYTES) as u64)?;
    let is_ring = records.is_multiple_of(WORD_BYTES as u64)
        && RING_BYTES.contains(&usize::try_from(records).ok()?);
    is_ring.then_some(records / WORD_BYTES as u64)
}

impl Shape {
    pub(super) fn new(memory: &MemoryKey) -> Option<Self> {
        let capacity = capacity(memory.length())?;
        let name = xxh3_64(&memory.to_bytes());
        Some(Self { capacity, name })
    }

    /// The most words of a record: a quarter of the ring, so that one fits when half is free.
    pub(super) fn longest_record(self) -> usize {
        (self.capacity / 4) as usize
    }

    /// The most bytes that one record carries.
    pub(super) fn longest_piece(self) -> usize {
        (self.longest_record() - RECORD_HEADER) * WORD_BYTES
    }

    /// The place of a word in the ring's memory.
    pub(super) fn place(self, position: u64) -> usize {
        RECORDS + (position % self.capacity) as usize
    }

    fn number(self, position: u64) -> u64 {
        (position + 1) ^ self.name
    }

    fn checksum(self, position: u64, kind_and_length: u64, padded: &[u64]) -> u64 {
        let seed = self.number(position) ^ kind_and_length.rotate_left(32);
        xxh3_64_with_seed(cast_slice(padded), seed)
    }

    /// Appends the record that is to begin at `position`; its words.
    pub(super) fn encode(
        self,
        position: u64,
        kind: Kind,
        bytes: &[u8],
        into: &mut Vec<u64>,
    ) -> usize {
        assert!(bytes.len() <= self.longest_piece(), "a piece fits a record");
        let start = into.len();
        let body = start + RECORD_HEADER;
        into.resize(body + bytes.len().div_ceil(WORD_BYTES), 0);
        cast_slice_mut(&mut into[body..])[..bytes.len()].copy_from_slice(bytes);
        let kind_and_length = (kind as u64) << 32 | bytes.len() as u64;
        let checksum = self.checksum(position, kind_and_length, &into[body..]);
        into[start..body].copy_from_slice(&[self.number(position), kind_and_length, checksum]);
        into.len() - start
    }

    /// Copies the record at `position` to `scratch`, if it is there whole: its kind, the length of
    /// its bytes, which begin at the start of `scratch`, and its words.
    pub(super) fn decode(
        self,
        memory: &[AtomicU64],
        position: u64,
        scratch: &mut Vec<u64>,
    ) -> Option<(Kind, usize, u64)> {
        let word = |at: u64| memory[self.place(at)].load(Ordering::Acquire);
        if word(position) != self.number(position) {
            return None;
        }
        let kind_and_length = word(position + 1);
        // Of what is written only in part, the length may be anything.
        let length = usize::try_from(kind_and_length & u64::from(u32::MAX)).ok()?;
        let kind = match kind_and_length >> 32 {
            1 => Kind::Last,
            2 => Kind::Piece,
            3 => Kind::Close,
            _ => return None,
        };
        if length > self.longest_piece() {
            return None;
        }
        let words = (RECORD_HEADER + length.div_ceil(WORD_BYTES)) as u64;
        scratch.clear();
        scratch.extend((RECORD_HEADER as u64..words).map(|i| word(position + i)));
        let checksum = self.checksum(position, kind_and_length, scratch);
        (checksum == word(position + 2)).then_some((kind, length, words))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::remote::NodeId;

    fn shape(name: &[u8]) -> Shape {
        Shape::new(&MemoryKey::new(NodeId(0), 512 + 64, name)).unwrap()
    }

    /// A memory with these words from `position` on.
    fn memory(shape: Shape, position: u64, words: &[u64]) -> Vec<AtomicU64> {
        let memory: Vec<_> = (0..RECORDS as u64 + shape.capacity)
            .map(|_| AtomicU64::new(0))
            .collect();
        for (i, word) in words.iter().enumerate() {
            memory[shape.place(position + i as u64)].store(*word, Ordering::Relaxed);
        }
        memory
    }

    #[test]
    fn a_record_is_there_only_when_each_of_its_words_is() {
        let shape = shape(b"ring");
        // The last positions go over the end of the ring.
        for position in [0, 1, 60, 63, 64 * 1_000_000 + 62] {
            for length in [0, 1, 8, 20, shape.longest_piece()] {
                let bytes: Vec<u8> = (0..length).map(|i| i as u8 ^ 0x5a).collect();
                let (mut words, mut scratch) = (Vec::new(), Vec::new());
                let count = shape.encode(position, Kind::Last, &bytes, &mut words);
                assert_eq!(count, words.len());
                let whole = memory(shape, position, &words);
                let found = shape.decode(&whole, position, &mut scratch);
                assert_eq!(found, Some((Kind::Last, length, words.len() as u64)));
                assert_eq!(&cast_slice::<u64, u8>(&scratch)[..length], bytes);
                for missing in 0..words.len() {
                    let mut torn = words.clone();
                    torn[missing] = !torn[missing];
                    let torn = memory(shape, position, &torn);
                    assert_eq!(
                        shape.decode(&torn, position, &mut scratch),
                        None,
                        "{missing}"
                    );
                }
            }
        }
    }

    #[test]
    fn a_record_of_another_round_or_ring_is_none() {
        let (one, other) = (shape(b"one"), shape(b"other"));
        let (mut words, mut scratch) = (Vec::new(), Vec::new());
        let _ = one.encode(5, Kind::Piece, b"message", &mut words);
        let memory = memory(one, 5, &words);
        assert!(one.decode(&memory, 5, &mut scratch).is_some());
        assert!(
            one.decode(&memory, 5 + one.capacity, &mut scratch)
                .is_none()
        );
        assert!(other.decode(&memory, 5, &mut scratch).is_none());
    }
}
