//! What does each side send before it knows who is there?
//!
//! A magic of 8 bytes, the version of the protocol, a nonce of 32 bytes, the own node, and the length of [`Facts`] and
//! these; numbers have 4 bytes, the lowest first.
//!
//! [`Facts`]: super::Facts

use jindou_model::NodeId;
use ring::rand::{SecureRandom as _, SystemRandom};

use super::duplex::{Duplex, Limited};
use super::facts::{MOST_FACTS_BYTES, too_long};
use super::{HelloError, PROTOCOL_VERSION};

const MAGIC: [u8; 8] = *b"JNDNODE\0";
const NONCE_BYTES: usize = 32;
const NODE_AT: usize = MAGIC.len() + 4 + NONCE_BYTES;
/// Bytes before the facts.
pub(super) const HEADER_BYTES: usize = NODE_AT + 8;

/// The first message of a side, whole.
pub(super) struct FirstMessage {
    bytes: Vec<u8>,
    node: NodeId,
}

impl FirstMessage {
    /// That of a node, with a nonce of its own.
    pub(super) fn new(node: NodeId, facts: &[u8]) -> Result<Self, HelloError> {
        let mut nonce = [0; NONCE_BYTES];
        let filled = SystemRandom::new().fill(&mut nonce);
        filled.map_err(|_| HelloError::NoRandomness)?;
        let mut bytes = MAGIC.to_vec();
        bytes.extend(PROTOCOL_VERSION.to_le_bytes());
        bytes.extend(nonce);
        bytes.extend(node.0.to_le_bytes());
        bytes.extend((facts.len() as u32).to_le_bytes());
        debug_assert_eq!(bytes.len(), HEADER_BYTES);
        bytes.extend(facts);
        Ok(Self { bytes, node })
    }

    /// That of the other side, of which nothing is believed yet.
    pub(super) fn read<S: Duplex + ?Sized>(stream: &Limited<'_, S>) -> Result<Self, HelloError> {
        let magic: [u8; 8] = stream.read_array()?;
        if magic != MAGIC {
            return Err(HelloError::OtherProgram);
        }
        let version: [u8; 4] = stream.read_array()?;
        let found = u32::from_le_bytes(version);
        if found != PROTOCOL_VERSION {
            return Err(HelloError::Version { found });
        }
        let nonce: [u8; NONCE_BYTES] = stream.read_array()?;
        let node: [u8; 4] = stream.read_array()?;
        let length: [u8; 4] = stream.read_array()?;
        let facts_bytes = u32::from_le_bytes(length);
        if facts_bytes as usize > MOST_FACTS_BYTES {
            let what = "what a node says of itself";
            return Err(too_long(what, facts_bytes.into(), MOST_FACTS_BYTES));
        }
        let mut bytes = [&magic[..], &version, &nonce, &node, &length].concat();
        bytes.resize(HEADER_BYTES + facts_bytes as usize, 0);
        stream.read(&mut bytes[HEADER_BYTES..])?;
        let node = NodeId(u32::from_le_bytes(node));
        Ok(Self { bytes, node })
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The node that sent it, as it says.
    pub(super) fn node(&self) -> NodeId {
        self.node
    }

    pub(super) fn facts(&self) -> &[u8] {
        &self.bytes[HEADER_BYTES..]
    }
}
