//! How do operations travel to a peer whose memory cannot be mapped, and their answers back?
//!
//! As messages of words. The peer's own fabric carries them out, so a stale key or a wrong place is
//! an error of the one who asked, and never a fault of the one who was asked.

use std::ops::Range;
use std::sync::Arc;

use bytemuck::cast_slice_mut;

use super::due::Due;
use super::table::Table;
use crate::FabricError;
use crate::registry::{Registry, Target};
use crate::remote::memory::{Atomic, WORD_BYTES};
use crate::remote::{Batch, NodeId};

/// Words of data that a message carries at most, in either direction.
pub(super) const MESSAGE_WORDS: usize = 1 << 15;
/// Operations of a message at most.
pub(super) const MESSAGE_ITEMS: usize = 1 << 10;

const REQUEST: u64 = 0x4a49_4e44_4f55_0001;
const ANSWER: u64 = 0x4a49_4e44_4f55_0002;
const GOODBYE: u64 = 0x4a49_4e44_4f55_0003;
/// Tag, node and its incarnation, flight, place in the flight, and the number of items or the status.
const HEADER: usize = 6;
/// Three words of an error.
const ANSWER_HEADER: usize = HEADER + 3;

/// An operation, or a piece of one. Places are those of [`Batch`]'s buffers.
#[derive(Clone, Debug)]
pub(super) enum Item {
    Read {
        number: u64,
        offset: u64,
        /// The place of the operation's answer, in words, and in that of the item's, in bytes.
        into: (usize, usize),
        length: usize,
    },
    Write {
        number: u64,
        offset: u64,
        from: Range<usize>,
    },
    Atomic {
        number: u64,
        offset: u64,
        into: usize,
        operation: Atomic,
    },
    Ring {
        number: u64,
    },
    Probe,
}

const READ: u64 = 1;
const WRITE: u64 = 2;
const COMPARE_AND_SWAP: u64 = 3;
const FETCH_ADD: u64 = 4;
const RING: u64 = 5;
const PROBE: u64 = 6;

impl Item {
    /// Words of data that go there or come back.
    pub(super) fn words(&self) -> usize {
        match self {
            Self::Read { length, .. } => length.div_ceil(WORD_BYTES),
            Self::Write { from, .. } => from.len(),
            Self::Atomic { .. } => 1,
            Self::Ring { .. } | Self::Probe => 0,
        }
    }

    /// Words of data that come back.
    fn answer_words(&self) -> usize {
        match self {
            Self::Read { .. } | Self::Atomic { .. } => self.words(),
            Self::Write { .. } | Self::Ring { .. } | Self::Probe => 0,
        }
    }

    fn encode(&self, batch: &Batch, into: &mut Vec<u64>) {
        match self.clone() {
            Self::Read {
                number,
                offset,
                length,
                ..
            } => into.extend([READ, number, offset, length as u64]),
            Self::Write {
                number,
                offset,
                from,
            } => {
                into.extend([WRITE, number, offset, from.len() as u64]);
                into.extend_from_slice(batch.input(from));
            }
            Self::Atomic {
                number,
                offset,
                operation,
                ..
            } => match operation {
                Atomic::CompareAndSwap { expected, new } => {
                    into.extend([COMPARE_AND_SWAP, number, offset, expected, new]);
                }
                Atomic::FetchAdd { by } => into.extend([FETCH_ADD, number, offset, by]),
            },
            Self::Ring { number } => into.extend([RING, number]),
            Self::Probe => into.push(PROBE),
        }
    }
}

/// Who asks: a node, and since when it is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Asker {
    pub(super) node: NodeId,
    pub(super) incarnation: u64,
}

/// A message that asks.
pub(super) fn request(
    asker: Asker,
    flight: u64,
    place: usize,
    items: &[Item],
    batch: &Batch,
) -> Vec<u64> {
    let (place, count) = (place as u64, items.len() as u64);
    let node = u64::from(asker.node.0);
    let mut words = vec![REQUEST, node, asker.incarnation, flight, place, count];
    for item in items {
        item.encode(batch, &mut words);
    }
    words
}

/// The answer that will come to a message.
pub(super) fn due(flight: u64, place: usize, items: &[Item]) -> Due {
    Due {
        flight,
        place: place as u64,
        data_words: items.iter().map(Item::answer_words).sum(),
    }
}

/// A message that came.
pub(super) enum Message {
    /// It asks: who, and the message.
    Request(Asker, Vec<u64>),
    /// It answers: of which flight, the place in it, and the message.
    Answer(u64, usize, Vec<u64>),
    /// Its node closes.
    Goodbye(Asker),
}

/// A message that says that its node closes.
pub(super) fn goodbye(asker: Asker) -> Vec<u64> {
    vec![GOODBYE, u64::from(asker.node.0), asker.incarnation]
}

/// What a message is, if it is one.
pub(super) fn sort(words: Vec<u64>) -> Option<Message> {
    match words[..] {
        [REQUEST, node, incarnation, _, _, _, ..] => {
            let node = NodeId(u32::try_from(node).ok()?);
            Some(Message::Request(Asker { node, incarnation }, words))
        }
        [GOODBYE, node, incarnation] => {
            let node = NodeId(u32::try_from(node).ok()?);
            Some(Message::Goodbye(Asker { node, incarnation }))
        }
        [ANSWER, _, _, flight, place, ..] if words.len() >= ANSWER_HEADER => {
            Some(Message::Answer(flight, usize::try_from(place).ok()?, words))
        }
        _ => None,
    }
}

/// Does what a message asks for; the answer.
pub(super) fn serve(message: &[u64], registry: &Arc<Registry>, table: &Table) -> Vec<u64> {
    let node = registry.node();
    let (flight, place, count) = (message[3], message[4], message[5]);
    let mut answer = vec![ANSWER, u64::from(node.0), 0, flight, place, 0, 0, 0, 0];
    let mut items = Items(&message[HEADER..]);
    let mut serve_items = || {
        for _ in 0..count {
            serve_item(&mut items, registry, table, &mut answer)?;
        }
        items.end()
    };
    if let Err(error) = serve_items() {
        answer.truncate(ANSWER_HEADER);
        answer[HEADER - 1..].copy_from_slice(&error_words(&error));
    }
    answer
}

/// True if this is the answer to a message that no peer sends.
pub(super) fn refuses(answer: &[u64]) -> bool {
    answer[HEADER - 1] > LAST_STATUS
}

/// Is this the answer of `node` that is due?
///
/// # Errors
/// Why it is none.
pub(super) fn check_answer(answer: &[u64], node: NodeId, due: Due) -> Result<(), &'static str> {
    let (header, data) = answer.split_at(ANSWER_HEADER);
    if header[..3] != [ANSWER, u64::from(node.0), 0] {
        return Err("it answers in the name of another node");
    }
    if header[3..5] != [due.flight, due.place] {
        return Err("it answers another message than the one that is next");
    }
    if refuses(answer) {
        return Err("it does not understand a message of this node");
    }
    let fields = &header[HEADER..];
    let has_length = match header[HEADER - 1] {
        0 => data.len() == due.data_words && fields == [0; 3],
        _ => data.is_empty(),
    };
    match has_length {
        true => Ok(()),
        false => Err("its answer has another length than what was asked for"),
    }
}

/// What is left of a request.
struct Items<'a>(&'a [u64]);

impl<'a> Items<'a> {
    fn take(&mut self, count: u64) -> Result<&'a [u64], FabricError> {
        let split = usize::try_from(count)
            .ok()
            .and_then(|count| self.0.split_at_checked(count));
        let (words, rest) = split.ok_or(FabricError::Malformed("request"))?;
        self.0 = rest;
        Ok(words)
    }

    fn word(&mut self) -> Result<u64, FabricError> {
        self.take(1).map(|words| words[0])
    }

    fn end(&self) -> Result<(), FabricError> {
        match self.0 {
            [] => Ok(()),
            _ => Err(FabricError::Malformed("request")),
        }
    }
}

fn serve_item(
    items: &mut Items<'_>,
    registry: &Arc<Registry>,
    table: &Table,
    answer: &mut Vec<u64>,
) -> Result<(), FabricError> {
    let node = registry.node();
    let code = items.word()?;
    match code {
        PROBE => return registry.check(),
        RING => return table.ring(node, items.word()?),
        _ => {}
    }
    let (number, offset, first) = (items.word()?, items.word()?, items.word()?);
    let target = Target::of_number(Arc::clone(registry), number)?;
    match code {
        READ => {
            let length = usize::try_from(first).unwrap_or(usize::MAX);
            let words = length.div_ceil(WORD_BYTES);
            let start = answer.len();
            if words > MESSAGE_WORDS - (start - ANSWER_HEADER).min(MESSAGE_WORDS) {
                return Err(FabricError::Malformed("request"));
            }
            answer.resize(start + words, 0);
            let into = &mut cast_slice_mut(&mut answer[start..])[..length];
            target.with(|served| served.read(node, offset, into))
        }
        WRITE => {
            let words = items.take(first)?;
            target.with(|served| served.write(node, offset, words))
        }
        COMPARE_AND_SWAP | FETCH_ADD => {
            let operation = if code == FETCH_ADD {
                Atomic::FetchAdd { by: first }
            } else {
                let (expected, new) = (first, items.word()?);
                Atomic::CompareAndSwap { expected, new }
            };
            if answer.len() - ANSWER_HEADER >= MESSAGE_WORDS {
                return Err(FabricError::Malformed("request"));
            }
            answer.push(target.with(|served| served.atomic(node, offset, operation))?);
            Ok(())
        }
        _ => Err(FabricError::Malformed("request")),
    }
}

/// Puts the data of an answer where the batch wants it.
pub(super) fn deliver(
    answer: &[u64],
    node: NodeId,
    items: &[Item],
    batch: &mut Batch,
) -> Result<(), FabricError> {
    if let Some(error) = error_of(answer, node) {
        return Err(error);
    }
    let mut data = Items(&answer[ANSWER_HEADER..]);
    for item in items {
        match item {
            Item::Read { into, length, .. } => {
                let words = data.take(length.div_ceil(WORD_BYTES) as u64)?;
                let (word, byte) = *into;
                let place = &mut batch.output(word, byte + length)[byte..];
                place.copy_from_slice(&bytemuck::cast_slice(words)[..*length]);
            }
            Item::Atomic { into, .. } => *batch.output_word(*into) = data.word()?,
            Item::Write { .. } | Item::Ring { .. } | Item::Probe => {}
        }
    }
    Ok(())
}

/// The last status of an answer to a message that is one.
const LAST_STATUS: u64 = 6;

/// Status and fields of an error.
fn error_words(error: &FabricError) -> [u64; 4] {
    match error {
        FabricError::Unregistered(_) => [1, 0, 0, 0],
        FabricError::OutOfBounds {
            offset, length, of, ..
        } => [2, *offset, *length, *of],
        FabricError::Misaligned { offset, .. } => [3, *offset, 0, 0],
        FabricError::ReadOnly(_) => [4, 0, 0, 0],
        FabricError::Damaged(_) => [5, 0, 0, 0],
        FabricError::PeerLost(_) => [6, 0, 0, 0],
        _ => [LAST_STATUS + 1, 0, 0, 0],
    }
}

/// The error that an answer of `node` is, if it is one.
fn error_of(answer: &[u64], node: NodeId) -> Option<FabricError> {
    let (status, fields) = (answer[HEADER - 1], &answer[HEADER..ANSWER_HEADER]);
    Some(match status {
        0 => return None,
        1 => FabricError::Unregistered(node),
        2 => FabricError::OutOfBounds {
            node,
            offset: fields[0],
            length: fields[1],
            of: fields[2],
        },
        3 => FabricError::Misaligned {
            node,
            offset: fields[0],
        },
        4 => FabricError::ReadOnly(node),
        5 => FabricError::Damaged(node),
        6 => FabricError::PeerLost(node),
        _ => FabricError::Malformed("request that the peer understands"),
    })
}

#[cfg(test)]
pub(super) mod tests {
    use std::sync::atomic::AtomicU64;

    use super::super::table::TABLE_WORDS;
    use super::*;
    use crate::remote::SharedMemory;
    use crate::remote::memory::Served;

    const NODE: NodeId = NodeId(4);

    /// An answer without an error.
    pub(in crate::process) fn answer(
        node: NodeId,
        flight: u64,
        place: u64,
        data: &[u64],
    ) -> Vec<u64> {
        let header = [ANSWER, u64::from(node.0), 0, flight, place, 0, 0, 0, 0];
        [&header, data].concat()
    }

    #[test]
    fn an_answer_with_any_word_of_its_header_altered_is_not_the_one_that_is_due() {
        let due = Due {
            flight: 77,
            place: 3,
            data_words: 2,
        };
        let sound = answer(NODE, 77, 3, &[1, 2]);
        assert_eq!(check_answer(&sound, NODE, due), Ok(()));
        for word in 0..ANSWER_HEADER {
            for bit in 0..64 {
                let mut altered = sound.clone();
                altered[word] ^= 1 << bit;
                assert!(check_answer(&altered, NODE, due).is_err(), "{word} {bit}");
            }
        }
        for data in [&[][..], &[1], &[1, 2, 3]] {
            let altered = answer(NODE, 77, 3, data);
            assert!(check_answer(&altered, NODE, due).is_err(), "{data:?}");
        }
        let outside = FabricError::OutOfBounds {
            node: NODE,
            offset: 30,
            length: 3,
            of: 32,
        };
        let mut failed = answer(NODE, 77, 3, &[]);
        failed[HEADER - 1..].copy_from_slice(&error_words(&outside));
        assert_eq!(check_answer(&failed, NODE, due), Ok(()));
        failed.push(0);
        assert!(check_answer(&failed, NODE, due).is_err());
    }

    #[test]
    fn a_request_with_more_or_fewer_operations_than_it_says_is_refused() {
        let (registry, table) = peer();
        for (count, is_refused) in [(0, true), (1, true), (2, false), (3, true)] {
            let words = vec![REQUEST, 2, 5, 77, 3, count, PROBE, PROBE];
            let answer = serve(&words, &registry, &table);
            assert_eq!(refuses(&answer), is_refused, "{count}");
        }
    }

    fn peer() -> (Arc<Registry>, Table) {
        let registry = Registry::new(NODE, Arc::new(AtomicU64::new(9)));
        (registry, Table::own(SharedMemory::new(TABLE_WORDS), 1))
    }

    #[test]
    fn errors_come_back_as_they_were() {
        let (registry, table) = peer();
        let memory = Served::Shared(SharedMemory::new(4));
        let (number, _guard) = registry.register(memory).unwrap();
        let read = |number, offset, length| Item::Read {
            number,
            offset,
            into: (0, 0),
            length,
        };
        let write = |offset| Item::Write {
            number,
            offset,
            from: 0..0,
        };
        let outside = FabricError::OutOfBounds {
            node: NODE,
            offset: 30,
            length: 3,
            of: 32,
        };
        let misaligned = FabricError::Misaligned {
            node: NODE,
            offset: 4,
        };
        for (item, error) in [
            (read(number + 1, 0, 0), FabricError::Unregistered(NODE)),
            (read(number, 30, 3), outside),
            (write(4), misaligned),
        ] {
            let mut batch = Batch::new();
            let asker = Asker {
                node: NodeId(2),
                incarnation: 5,
            };
            let message = request(asker, 77, 3, std::slice::from_ref(&item), &batch);
            let answer = serve(&message, &registry, &table);
            assert_eq!(&answer[..5], &[ANSWER, 4, 0, 77, 3]);
            assert_eq!(deliver(&answer, NODE, &[item], &mut batch), Err(error));
        }
    }

    #[test]
    fn an_answer_is_never_longer_than_a_message_may_be() {
        let (registry, table) = peer();
        let bytes = MESSAGE_WORDS * WORD_BYTES;
        let memory = Served::Shared(SharedMemory::new(MESSAGE_WORDS));
        let (number, _guard) = registry.register(memory).unwrap();
        let serve_with = |additions: u64| {
            let mut words = vec![REQUEST, 2, 5, 77, 3, additions + 1];
            words.extend([READ, number, 0, bytes as u64]);
            for _ in 0..additions {
                words.extend([FETCH_ADD, number, 0, 1]);
            }
            serve(&words, &registry, &table)
        };
        assert_eq!(serve_with(0).len(), ANSWER_HEADER + MESSAGE_WORDS);
        let refused = serve_with(1);
        assert_eq!(refused.len(), ANSWER_HEADER);
        assert!(error_of(&refused, NODE).is_some());
    }

    #[test]
    fn whatever_words_come_the_answer_is_an_error_and_no_panic() {
        let (registry, table) = peer();
        let memory = Served::Shared(SharedMemory::new(4));
        let (number, _guard) = registry.register(memory).unwrap();
        let mut state = 1_u64;
        let mut random = move || {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(99);
            match state >> 61 {
                0..4 => (state >> 32) % 8,
                4 => number,
                5 => u64::MAX - (state >> 40) % 9,
                _ => state,
            }
        };
        for _ in 0..20_000 {
            let length = (random() % 12) as usize;
            let mut words: Vec<u64> = (0..length).map(|_| random()).collect();
            assert!(words.len() >= HEADER || sort(words.clone()).is_none());
            if words.len() >= HEADER {
                words[0] = REQUEST;
                words[HEADER - 1] %= 4;
                let answer = serve(&words, &registry, &table);
                let items = [Item::Read {
                    number,
                    offset: 0,
                    into: (0, 0),
                    length: 1 << 20,
                }];
                assert!(deliver(&answer, NODE, &items, &mut Batch::new()).is_err());
            }
        }
    }
}
