//! What do nodes say to each other, and as which bytes?
//!
//! Little-endian words one after the other, behind a byte that says of which kind it is.

use std::collections::BTreeSet;

use jindou_model::{NodeId, SnapshotNumber};

use crate::{Configuration, Time, Versioned};

/// Nodes of a configuration, at most.
const MOST_NODES: u64 = crate::node::MOST_NODES as u64;

/// What one node says to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// Now and then.
    Beat(Beat),
    /// All nodes in sync have this snapshot, says the leader of a term.
    Committed {
        /// The term.
        term: u64,
        /// The snapshot.
        number: SnapshotNumber,
    },
    /// Readers see this snapshot here, says a node to the leader of a term.
    Shown {
        /// The term.
        term: u64,
        /// The snapshot.
        number: SnapshotNumber,
    },
}

/// What nodes tell each other now and then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Beat {
    /// When it was sent, on the sender's clock.
    pub sent: Time,
    /// When what grants a lease now was sent, on the receiver's clock.
    pub grants: Option<Time>,
    /// The configuration that the sender knows.
    pub known: Versioned,
    /// What the sender has on its device.
    pub last: SnapshotNumber,
    /// Pieces of long messages of the receiver that have come to the sender since the link began.
    pub came: u64,
}

/// Why bytes are no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageError;

impl std::fmt::Display for MessageError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("it says of who leads what no node says")
    }
}

impl std::error::Error for MessageError {}

const BEAT: u8 = 0;
const COMMITTED: u8 = 1;
const SHOWN: u8 = 2;

impl Message {
    /// Its bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let (kind, words) = match self {
            Self::Beat(beat) => (BEAT, beat.words()),
            Self::Committed { term, number } => (COMMITTED, vec![*term, number.0]),
            Self::Shown { term, number } => (SHOWN, vec![*term, number.0]),
        };
        let words = words.into_iter().flat_map(u64::to_le_bytes);
        std::iter::once(kind).chain(words).collect()
    }

    /// The message of these bytes.
    ///
    /// # Errors
    /// Where they are none.
    pub fn decode(bytes: &[u8]) -> Result<Self, MessageError> {
        let (kind, rest) = bytes.split_first().ok_or(MessageError)?;
        let (words, []) = rest.as_chunks::<8>() else {
            return Err(MessageError);
        };
        let mut words = words.iter().map(|word| u64::from_le_bytes(*word));
        let mut next = || words.next().ok_or(MessageError);
        let message = match *kind {
            BEAT => Self::Beat(Beat::read(&mut next)?),
            COMMITTED => Self::Committed {
                term: next()?,
                number: SnapshotNumber(next()?),
            },
            SHOWN => Self::Shown {
                term: next()?,
                number: SnapshotNumber(next()?),
            },
            _ => return Err(MessageError),
        };
        match next() {
            Ok(_) => Err(MessageError),
            Err(_) => Ok(message),
        }
    }
}

/// What stands for no time: none is as late.
const NO_TIME: u64 = u64::MAX;

impl Beat {
    fn words(&self) -> Vec<u64> {
        let time = |time: Time| time.as_nanos() as u64;
        let configuration = &self.known.configuration;
        let mut words = vec![
            time(self.sent),
            self.grants.map_or(NO_TIME, time),
            self.last.0,
            self.came,
            self.known.version,
            configuration.term,
            u64::from(configuration.leader.0),
        ];
        words.extend(configuration.in_sync.iter().map(|node| u64::from(node.0)));
        words
    }

    fn read(next: &mut impl FnMut() -> Result<u64, MessageError>) -> Result<Self, MessageError> {
        let (sent, grants, last, came) = (next()?, next()?, next()?, next()?);
        let (version, term, leader) = (next()?, next()?, node(next()?)?);
        let mut in_sync = BTreeSet::new();
        while let Ok(word) = next() {
            if !in_sync.insert(node(word)?) {
                return Err(MessageError);
            }
        }
        Ok(Self {
            sent: Time::from_nanos(sent),
            grants: (grants != NO_TIME).then(|| Time::from_nanos(grants)),
            known: Versioned {
                version,
                configuration: Configuration {
                    term,
                    leader,
                    in_sync,
                },
            },
            last: SnapshotNumber(last),
            came,
        })
    }
}

fn node(word: u64) -> Result<NodeId, MessageError> {
    let number = u32::try_from(word).map_err(|_| MessageError)?;
    match word < MOST_NODES {
        true => Ok(NodeId(number)),
        false => Err(MessageError),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_come_back_and_no_other_bytes_are_one() {
        let number = SnapshotNumber(9);
        let beat = Beat {
            sent: Time::from_millis(5),
            grants: None,
            known: Versioned {
                version: 4,
                configuration: Configuration {
                    term: 3,
                    leader: NodeId(1),
                    in_sync: [NodeId(1), NodeId(2)].into(),
                },
            },
            last: number,
            came: 6,
        };
        let granting = Beat {
            grants: Some(Time::from_secs(2)),
            ..beat.clone()
        };
        for message in [
            Message::Beat(beat),
            Message::Beat(granting),
            Message::Committed { term: 3, number },
            Message::Shown { term: 3, number },
        ] {
            let bytes = message.encode();
            assert_eq!(Message::decode(&bytes), Ok(message.clone()));
            for length in 0..bytes.len() {
                // A beat may have fewer nodes in sync.
                let shorter = Message::decode(&bytes[..length]);
                assert!(shorter != Ok(message.clone()), "{length}");
            }
            let longer = [&bytes[..], &[0; 8]].concat();
            assert_ne!(Message::decode(&longer), Ok(message));
        }
        assert_eq!(Message::decode(&[7]), Err(MessageError));
        assert_eq!(Message::decode(&[]), Err(MessageError));
    }
}
