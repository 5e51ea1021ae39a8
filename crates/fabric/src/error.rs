//! Why was remote memory not read or written, or a bell not rung?

use crate::remote::NodeId;

/// An error of a fabric. None ends the process, and each leaves the fabric usable.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FabricError {
    /// The node does not answer and will not: it ended, was restarted, or is cut off. Also what a
    /// node that was itself declared dead gets for all that it tries.
    #[error("node {0} is lost")]
    PeerLost(NodeId),
    /// The fabric was never connected with this node.
    #[error("node {0} is not known here")]
    UnknownNode(NodeId),
    /// An operation reaches outside of the memory that its key names.
    #[error(
        "bytes {offset} to {offset} + {length} lie outside of {of} registered ones of node {node}"
    )]
    OutOfBounds {
        /// The owner of the memory.
        node: NodeId,
        /// The first byte, counted from the start of the registered memory.
        offset: u64,
        /// How many bytes.
        length: u64,
        /// The length of the registered memory.
        of: u64,
    },
    /// A write or an atomic operation begins at no multiple of eight bytes.
    #[error("byte {offset} of node {node}'s memory is no start of a word")]
    Misaligned {
        /// The owner of the memory.
        node: NodeId,
        /// The first byte, counted from the start of the registered memory.
        offset: u64,
    },
    /// A write or an atomic operation is for a region, which nobody may alter.
    #[error("node {0} registered this memory for reading only")]
    ReadOnly(NodeId),
    /// The key names memory, or the address a bell, that its node no longer offers.
    #[error("node {0} no longer has what the key names")]
    Unregistered(NodeId),
    /// The memory is a file's, and bytes of it are gone.
    #[error("node {0} lost bytes of the mapped file that it registered")]
    Damaged(NodeId),
    /// The deadline passed.
    #[error("the deadline passed before remote memory answered")]
    Deadline,
    /// Whoever waited was asked to stop.
    #[error("waiting for remote memory was cancelled")]
    Cancelled,
    /// A wait without a deadline for what nothing under way can bring; only a simulation knows.
    #[error("nothing is under way that could end the wait")]
    Stalled,
    /// Bytes that should be a key or an address are none.
    #[error("these bytes are no {0}")]
    Malformed(&'static str),
    /// A batch holds as many operations or bytes as it may.
    #[error("a batch may hold no more than {limit} {what}")]
    BatchFull {
        /// What there are too many of.
        what: &'static str,
        /// How many there may be.
        limit: usize,
    },
    /// More is in flight, or registered, than the fabric allows.
    #[error("the fabric has {limit} {what}, as many as it may")]
    Exhausted {
        /// What there are too many of.
        what: &'static str,
        /// How many there may be.
        limit: usize,
    },
    /// The operating system has no such memory.
    #[error("no memory for {0} bytes that peers can reach")]
    OutOfMemory(u64),
    /// The implementation cannot do this.
    #[error("this fabric cannot {0}")]
    Unsupported(&'static str),
    /// The library that the fabric is made of is not installed, or is another version.
    #[error("{library} cannot be used: {reason}; {remedy}")]
    Unavailable {
        /// Its file.
        library: String,
        /// What the system says.
        reason: String,
        /// How to get it.
        remedy: &'static str,
    },
    /// The transport refused for a reason of its own.
    #[error("{call} failed: {reason}")]
    Transport {
        /// What was asked of it.
        call: &'static str,
        /// What it says.
        reason: String,
    },
}
