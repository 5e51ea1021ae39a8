//! What do the nodes of a cluster that is written say to each other, and as which bytes?
//!
//! A message is a head, by postcard behind its length, and a body that stays as it is: a transaction, or
//! documents. It goes in pieces, each with a first byte that says whether it is the last, so that none is longer
//! than a link takes.

use jindou_ingest::{Compression, Format, RawSource};
use jindou_replication::Message as Said;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use super::outcome::Outcome;
use crate::AddressPolicy;

/// Bytes of a piece of a message.
const PIECE_BYTES: usize = 8 << 20;
/// Bytes of the hash at the end of a piece.
const HASH_BYTES: usize = 8;
/// The first byte of a piece.
const MORE: u8 = 0;
const LAST: u8 = 1;
/// That of a whole message, which may come between the pieces of another one.
const ALONE: u8 = 2;

/// What begins a message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) enum Head {
    /// What nodes say to each other of who leads: its bytes, and a hash of these, as a flipped bit would depose a leader.
    Said(Vec<u8>, u64),
    /// A node leads in this term, and asks for a [`Head::Begin`].
    Ask { term: u64 },
    /// A follower, which knows that the node leads in this term, has all up to this snapshot, of the store of this
    /// epoch.
    Begin {
        term: u64,
        epoch: u64,
        number: u64,
        /// Who made its transactions: ids, and first snapshots.
        runs: Vec<(u64, u64)>,
        /// What it holds, of one that is a copy for the first time.
        digest: Option<u64>,
    },
    /// A follower has nothing that the leader of this term has not: its runs are these, and it was this before: a
    /// snapshot and its digest.
    History {
        term: u64,
        runs: Vec<(u64, u64)>,
        begun: Option<(u64, u64)>,
    },
    /// A follower has transactions after this snapshot that the leader has not, and no client was told of.
    GiveUp { after: u64 },
    /// The leader sends no transactions to a follower.
    Refused(RefusedCopy),
    /// The body is the transaction that makes this snapshot.
    Transaction { number: u64 },
    /// At this snapshot, the last one that was sent, the leader closed the extents of new vertices: a follower may
    /// begin a merge there.
    Closed {
        number: u64,
        /// The leader merges there, too.
        merges: bool,
        /// Predicates whose changes its base lacks all the same; it has all others of this snapshot.
        unmerged: Vec<u32>,
    },
    /// All prefixes that the leader knows.
    Prefixes(Vec<(String, String)>),
    /// A follower has all up to this snapshot on its device, and shows it.
    Applied { number: u64 },
    /// A follower applies nothing any more, for this reason.
    Ended(String),
    /// The leader is to execute this; the body is its documents, one after another.
    Write {
        id: u64,
        request: Box<Request>,
        options: Box<WriteOptions>,
    },
    /// The client of a write wants it no more.
    Cancel { id: u64 },
    /// What became of these writes, which were sent by a link that has ended?
    Asked { ids: Vec<u64> },
    /// What became of a write.
    Written { id: u64, outcome: Box<Outcome> },
}

impl Head {
    pub(super) fn said(said: &Said) -> Self {
        let bytes = said.encode();
        let hash = xxh3_64(&bytes);
        Self::Said(bytes, hash)
    }

    /// What is said of who leads, if this is that.
    ///
    /// # Errors
    /// Where it is not as it was sent.
    pub(super) fn what_is_said(&self) -> Result<Option<Said>, String> {
        let Self::Said(bytes, hash) = self else {
            return Ok(None);
        };
        if xxh3_64(bytes) != *hash {
            return Err("what it says of who leads was changed on its way".to_owned());
        }
        let said = Said::decode(bytes).map_err(|error| error.to_string())?;
        Ok(Some(said))
    }
}

/// Why a follower gets no transactions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum RefusedCopy {
    /// It is no copy of this store, or of one before its terms were numbered anew.
    OtherStore,
    /// It has transactions that the leader does not have, and it is not known since when.
    Diverged,
    /// The leader's log has none of those that come next.
    TooOld,
    /// The leader's log cannot be read.
    Unreadable(String),
}

/// A write that the leader executes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) enum Request {
    Update {
        text: String,
    },
    WriteGraph {
        graph: Option<String>,
        replace: bool,
        documents: Vec<DocumentHead>,
    },
    DropGraph {
        graph: Option<String>,
    },
    WriteDataset {
        replace: bool,
        documents: Vec<DocumentHead>,
    },
    ChangePrefixes {
        set: Vec<(String, String)>,
        removed: Vec<String>,
    },
}

/// [`UpdateOptions`](crate::UpdateOptions) that mean the same elsewhere.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct WriteOptions {
    pub(super) timeout_us: Option<u64>,
    pub(super) using_graphs: Vec<String>,
    pub(super) using_named_graphs: Vec<String>,
    pub(super) union_default_graph: Option<bool>,
    pub(super) base: Option<String>,
    pub(super) services: Option<AddressPolicy>,
}

/// A document but for its bytes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct DocumentHead {
    name: String,
    bytes: u64,
    format: Option<u8>,
    likely: Option<u8>,
    compression: Option<u8>,
    base_iri: Option<String>,
}

const COMPRESSIONS: [Compression; 4] = [
    Compression::None,
    Compression::Gzip,
    Compression::Zstd,
    Compression::Bzip2,
];

/// The place of a value in a list that has it.
fn place_of<T: PartialEq>(list: &[T], value: &T) -> u8 {
    let place = list.iter().position(|known| known == value);
    place.expect("the list has all values") as u8
}

impl DocumentHead {
    pub(super) fn of(raw: &RawSource) -> Self {
        let format = |format: Option<Format>| format.map(|format| place_of(&Format::ALL, &format));
        Self {
            name: raw.name.clone(),
            bytes: raw.bytes.len() as u64,
            format: format(raw.format),
            likely: format(raw.likely),
            compression: raw.compression.map(|it| place_of(&COMPRESSIONS, &it)),
            base_iri: raw.base_iri.clone(),
        }
    }

    /// The document with its bytes.
    fn with_bytes(self, bytes: Vec<u8>) -> Result<RawSource, String> {
        Ok(RawSource {
            name: self.name,
            bytes,
            format: known(&Format::ALL, self.format)?,
            likely: known(&Format::ALL, self.likely)?,
            compression: known(&COMPRESSIONS, self.compression)?,
            base_iri: self.base_iri,
        })
    }
}

/// The value of a place in a list, where one was sent.
fn known<T: Copy>(list: &[T], place: Option<u8>) -> Result<Option<T>, String> {
    let find = |place: u8| {
        let value = list.get(usize::from(place)).copied();
        value.ok_or_else(|| format!("a document has the unknown format or compression {place}"))
    };
    place.map(find).transpose()
}

/// The documents whose bytes lie one after another.
///
/// # Errors
/// What does not fit.
pub(super) fn documents(
    heads: Vec<DocumentHead>,
    mut body: &[u8],
) -> Result<Vec<RawSource>, String> {
    let mut documents = Vec::new();
    for head in heads {
        let length = usize::try_from(head.bytes).ok();
        let split = length.and_then(|length| body.split_at_checked(length));
        let Some((bytes, rest)) = split else {
            return Err("a document is shorter than its head says".to_owned());
        };
        documents.push(head.with_bytes(bytes.to_vec())?);
        body = rest;
    }
    match body.is_empty() {
        true => Ok(documents),
        false => Err("bytes follow the last document".to_owned()),
    }
}

/// The pieces of a message with this body, which may lie in several parts.
pub(super) fn pieces(head: &Head, body: &[&[u8]]) -> Vec<Vec<u8>> {
    let head = postcard::to_allocvec(head).expect("a head has no value that postcard refuses");
    let length = (head.len() as u64).to_le_bytes();
    let mut parts: Vec<&[u8]> = vec![&length, &head];
    parts.extend(body);
    let mut pieces = vec![vec![MORE]];
    for mut part in parts {
        while !part.is_empty() {
            let last = pieces.last_mut().expect("there is one");
            let room = PIECE_BYTES - (last.len() - 1);
            if room == 0 {
                pieces.push(vec![MORE]);
                continue;
            }
            let (now, later) = part.split_at(room.min(part.len()));
            last.extend_from_slice(now);
            part = later;
        }
    }
    pieces.last_mut().expect("there is one")[0] = LAST;
    pieces.iter_mut().for_each(seal);
    pieces
}

/// Adds a hash of a piece, without which a flipped bit might have it wait for others that do not come.
fn seal(piece: &mut Vec<u8>) {
    let hash = xxh3_64(piece);
    piece.extend(hash.to_le_bytes());
}

/// A message without a body as a piece that may go between those of others.
pub(super) fn alone(head: &Head) -> Vec<u8> {
    let mut pieces = pieces(head, &[]);
    assert_eq!(pieces.len(), 1, "only what is short goes ahead");
    let mut piece = pieces.remove(0);
    piece.truncate(piece.len() - HASH_BYTES);
    piece[0] = ALONE;
    seal(&mut piece);
    piece
}

/// A message that came whole.
#[derive(Debug, PartialEq)]
pub(super) struct Message {
    pub(super) head: Head,
    pub(super) body: Vec<u8>,
}

/// Puts pieces of messages together.
#[derive(Default)]
pub(super) struct Pieces(Vec<u8>);

impl Pieces {
    /// The message that ends with this piece, if one does.
    ///
    /// # Errors
    /// What is no piece, or makes a message of more than so many bytes, or one that has no head.
    pub(super) fn add(
        &mut self,
        piece: &[u8],
        most_bytes: usize,
    ) -> Result<Option<Message>, String> {
        let Some((piece, hash)) = piece.split_last_chunk::<HASH_BYTES>() else {
            return Err("a piece of a message is too short".to_owned());
        };
        if xxh3_64(piece) != u64::from_le_bytes(*hash) {
            return Err("a piece of a message is not what was sent".to_owned());
        }
        let Some((kind, bytes)) = piece.split_first() else {
            return Err("a piece of a message is empty".to_owned());
        };
        if self.0.len() + bytes.len() > most_bytes {
            return Err(format!("a message has more than {most_bytes} bytes"));
        }
        if *kind == ALONE {
            return Message::read(bytes.to_vec()).map(Some);
        }
        self.0.extend_from_slice(bytes);
        match *kind {
            MORE => Ok(None),
            LAST => Message::read(std::mem::take(&mut self.0)).map(Some),
            other => Err(format!(
                "a piece of a message is of the unknown kind {other}"
            )),
        }
    }
}

impl Message {
    fn read(mut bytes: Vec<u8>) -> Result<Self, String> {
        let head = bytes.split_first_chunk::<8>().and_then(|(length, rest)| {
            let length = usize::try_from(u64::from_le_bytes(*length)).ok()?;
            rest.get(..length)
        });
        let Some(head) = head else {
            return Err("a message is shorter than its head".to_owned());
        };
        let begin = 8 + head.len();
        let head = match postcard::take_from_bytes::<Head>(head) {
            Ok((head, [])) => head,
            Ok(_) => return Err("bytes follow the head of a message".to_owned()),
            Err(error) => return Err(format!("a message has no head: {error}")),
        };
        bytes.drain(..begin);
        Ok(Self { head, body: bytes })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_message_of_many_pieces_comes_back() {
        let body = vec![7_u8; 2 * PIECE_BYTES + 5];
        let head = Head::Transaction { number: 9 };
        let pieces = pieces(&head, &[&body[..10], &body[10..]]);
        assert_eq!(pieces.len(), 3);
        let mut together = Pieces::default();
        let mut found = Vec::new();
        let short = Head::Applied { number: 3 };
        for piece in pieces {
            assert!(piece.len() <= PIECE_BYTES + 1 + HASH_BYTES);
            found.extend(together.add(&alone(&short), 1 << 30).expect("it is sound"));
            found.extend(together.add(&piece, 1 << 30).expect("it is sound"));
        }
        assert_eq!(found.pop(), Some(Message { head, body }));
        let short = |message: &Message| message.head == short && message.body.is_empty();
        assert!(found.len() == 3 && found.iter().all(short));
    }

    #[test]
    fn a_document_comes_back_with_its_bytes_and_no_other_length() {
        let raw = RawSource {
            name: "a.ttl".to_owned(),
            bytes: b"abc".to_vec(),
            format: None,
            likely: Some(Format::Turtle),
            compression: Some(Compression::Bzip2),
            base_iri: Some("http://e/".to_owned()),
        };
        let head = DocumentHead::of(&raw);
        assert_eq!(documents(vec![head.clone()], b"abc"), Ok(vec![raw]));
        for body in [&b"ab"[..], b"abcd"] {
            assert!(documents(vec![head.clone()], body).is_err());
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_no_message_or_one_and_never_a_panic(
            mut bytes: Vec<u8>,
            at: usize,
            with: u8,
        ) {
            let _ = Pieces::default().add(&bytes, 1 << 20);
            seal(&mut bytes);
            let _ = Pieces::default().add(&bytes, 1 << 20);
            let head = Head::Write {
                id: 3,
                request: Box::new(Request::Update { text: "x".to_owned() }),
                options: Box::default(),
            };
            bytes = pieces(&head, &[b"abc"]).remove(0);
            let place = at % bytes.len();
            bytes[place] ^= with;
            let found = Pieces::default().add(&bytes, 1 << 20);
            prop_assert_eq!(found.is_ok(), with == 0);
            // As one that sends so would.
            bytes.truncate(bytes.len() - HASH_BYTES);
            seal(&mut bytes);
            let _ = Pieces::default().add(&bytes, 1 << 20);
        }
    }
}
