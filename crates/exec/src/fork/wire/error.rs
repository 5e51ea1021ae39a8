//! Why can a message about a sub-query not be used?

use jindou_model::NodeId;
use jindou_plan::PlanWireError;

/// What is wrong with a message between nodes, or with what it says.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SubQueryWireError {
    /// It begins with something else.
    #[error("this is no message of a sub-query: it begins with the bytes {found:02x?}")]
    NoMessage {
        /// With what.
        found: [u8; 8],
    },
    /// It was written by another version.
    #[error("the message is of version {found}, and version {known} is known")]
    Version {
        /// Theirs.
        found: u32,
        /// The only one that is read.
        known: u32,
    },
    /// It ends too early.
    #[error("{part} ends at byte {end}, before its own end")]
    Truncated {
        /// What was to be read.
        part: &'static str,
        /// Bytes of it that there are.
        end: usize,
    },
    /// It goes on after the end.
    #[error("{bytes} bytes follow the message")]
    TooLong {
        /// How many.
        bytes: usize,
    },
    /// It is larger than messages may be.
    #[error("a message of {bytes} bytes, where {most} are the most")]
    TooLarge {
        /// Its bytes.
        bytes: usize,
        /// What it may have.
        most: usize,
    },
    /// A part is not in the format of its version.
    #[error("{part} is malformed: {reason}")]
    Malformed {
        /// Which part.
        part: &'static str,
        /// What the format says of it.
        reason: String,
    },
    /// Its parts do not fit together, or not to what is known of its query.
    #[error("a part of the message is {what}")]
    Mismatch {
        /// What it is.
        what: &'static str,
    },
    /// The steps of a sub-query are none.
    #[error(transparent)]
    Steps(#[from] PlanWireError),
    /// A node sends more tables than were asked for.
    #[error("node {node} sends more than the {most} tables that may be on the way")]
    Flooded {
        /// Which node.
        node: NodeId,
        /// How many may be on the way.
        most: usize,
    },
    /// There are more sub-queries than any query should have.
    #[error("more than {most} sub-queries of one chain are known of at a time")]
    TooManySubQueries {
        /// How many may be.
        most: usize,
    },
    /// Another node cannot use what it was sent.
    #[error("node {node} says: {reason}")]
    Elsewhere {
        /// Which node.
        node: NodeId,
        /// Why not.
        reason: String,
    },
}
