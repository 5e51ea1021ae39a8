//! Who leads, which transactions does everybody have, and who may answer?
//!
//! Of the nodes that have copies of a store, one *leads*: it orders the transactions. A *configuration* says which, with
//! a number, the *term*, and which nodes are *in sync*: those that have each transaction that a client was told of. It is kept
//! outside, where one node at a time can replace it (compare and swap), and consensus is what keeps it. All else the nodes settle among
//! themselves, so that nothing waits for the keeper as long as no node comes or goes. This is the primary and backup protocol
//! of PacificA (Lin and others, 2008).
//!
//! - A transaction is *committed* when all nodes in sync have it on their devices, and its client hears of it when
//!   all of them show it. So each of them may lead next, and each may answer queries by itself.
//! - Nodes send each other *beats*. Each says when the sender sent it, and which of the other's it has heard last: that grants
//!   the other a *lease*, from when it sent that one. A node answers while it has leases: the leader those of all
//!   nodes in sync, another one that of the leader. Clocks need not agree, but must go equally fast but for a quarter.
//! - A node that is silent, or keeps others waiting, gets no grants any more, and once its lease has certainly ended the leader takes it out of the
//!   configuration. Where the leader is silent, another node in sync takes its place, in the next term.
//! - A node leads, or follows another leader, once the configuration that says so is on its device: it begins again under no leader
//!   that it had left, and so grants and acknowledges nothing to one that was replaced.
//! - What a leader had that the next one has not was told to no client: a node that has such transactions gives them up
//!   ([`common_snapshot`]).
//!
//! [`Replication`] is one node's part of this, as a state machine without clock, threads and network: it is told what
//! happens, and says what is to be done. How transactions get to the other nodes is not its affair; it is told what
//! each has.

#![forbid(unsafe_code)]

mod configuration;
mod lead;
mod lease;
mod message;
mod node;
mod runs;

pub use configuration::{Configuration, Versioned};
pub use lease::Timing;
pub use message::{Beat, Message, MessageError};
pub use node::{Action, Answering, Replication, Start};
pub use runs::{RunStart, common_snapshot};

/// Time since some moment of a node, on its own clock, which never goes back.
pub type Time = std::time::Duration;
