//! How does a node send messages to another one by writes alone?
//!
//! The receiver owns a ring of words and invites one sender to it. The sender writes records behind
//! each other and rings the receiver's bell once they are there: however many messages wait are one
//! or two writes and one ring. The receiver takes a record when its number is the one expected at
//! that place and its checksum is right, so what is written in part, or was written a round ago, is
//! no message. The sender learns how far the receiver is along with each write; while the ring is
//! full, it notes that it waits, and is woken once half of the ring is free.
//!
//! Messages larger than the ring travel as several records. A peer that is lost, or went away
//! without closing, is an error on the other side, after all messages that came whole.

mod layout;
mod receiver;
mod sender;

pub use receiver::Receiver;
pub use sender::{Sender, Sending};

use std::time::Duration;

use crate::FabricError;
use crate::remote::{BellAddress, Fields, MemoryKey, NodeId};

/// Fewest and most bytes of a ring.
pub const RING_BYTES: std::ops::RangeInclusive<usize> = 512..=1 << 30;
/// The most bytes that a message may be allowed to have.
pub const MAX_MESSAGE_BYTES: usize = 1 << 30;

/// What a receiver chooses.
#[derive(Clone, Debug)]
pub struct RingOptions {
    /// Bytes of records that the ring holds, within [`RING_BYTES`].
    pub bytes: usize,
    /// Bytes of the longest message, at most [`MAX_MESSAGE_BYTES`]: what the receiver puts together
    /// from pieces never takes more.
    pub message_bytes: usize,
    /// The node that is invited: its loss is an error before it has come, too.
    pub sender: Option<NodeId>,
    /// How long a wait goes on without asking whether the peer is alive.
    pub probe_every: Duration,
}

impl Default for RingOptions {
    fn default() -> Self {
        Self {
            bytes: 256 << 10,
            message_bytes: 256 << 20,
            sender: None,
            probe_every: Duration::from_millis(500),
        }
    }
}

/// What a receiver gives to the one who is to send; travels as bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invitation {
    memory: MemoryKey,
    bell: BellAddress,
    message_bytes: u64,
    probe_every: Duration,
}

impl Invitation {
    /// The invitation as bytes.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = self.bell.to_bytes().to_vec();
        bytes.extend(self.message_bytes.to_le_bytes());
        bytes.extend((self.probe_every.as_nanos() as u64).to_le_bytes());
        bytes.extend(self.memory.to_bytes());
        bytes
    }

    /// The invitation that [`Invitation::to_bytes`] wrote.
    ///
    /// # Errors
    /// [`FabricError::Malformed`] if the bytes are no invitation, and nothing else.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, FabricError> {
        let mut fields = Fields::new(bytes, "invitation to a ring");
        let bell = BellAddress::from_bytes(fields.bytes(BellAddress::BYTES)?)?;
        let message_bytes = fields.u64()?;
        let probe_every = Duration::from_nanos(fields.u64()?);
        let memory = MemoryKey::from_bytes(fields.rest())?;
        let is_ring = layout::capacity(memory.length()).is_some();
        if !is_ring || message_bytes > MAX_MESSAGE_BYTES as u64 {
            return Err(fields.malformed());
        }
        Ok(Self {
            memory,
            bell,
            message_bytes,
            probe_every,
        })
    }
}

/// Why a message was not sent or received.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RingError {
    /// Memory or peer could not be reached. The ring goes on only after
    /// [`FabricError::Deadline`], [`FabricError::Cancelled`] and [`FabricError::Stalled`].
    #[error(transparent)]
    Fabric(#[from] FabricError),
    /// The peer closed its side; of a receiver, after the last message.
    #[error("the other side closed the ring")]
    Closed,
    /// The sender went away without closing; messages may be missing.
    #[error("the sender left the ring without closing it")]
    Abandoned,
    /// Another sender has the invitation.
    #[error("another sender has this ring")]
    Taken,
    /// A message has more bytes than the receiver allows.
    #[error("a message of {bytes} bytes is longer than the {limit} that the receiver takes")]
    TooLarge {
        /// Its bytes, or those that came so far.
        bytes: usize,
        /// As many as there may be.
        limit: usize,
    },
    /// The options of a ring are outside of what is possible.
    #[error("a ring cannot have {0}")]
    Options(&'static str),
}

impl RingError {
    /// True if the ring is as it was, and only a wait ended.
    fn is_interrupt(&self) -> bool {
        use FabricError::{Cancelled, Deadline, Stalled};
        matches!(self, Self::Fabric(Deadline | Cancelled | Stalled))
    }
}
