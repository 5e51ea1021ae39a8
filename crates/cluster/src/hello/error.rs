//! Why do two processes not join, and what has an operator to do about it?

use std::io;
use std::time::Duration;

use jindou_model::NodeId;

use super::PROTOCOL_VERSION;

/// Two processes did not join, or a joined one failed to send what was agreed. Texts of the other side have no
/// characters that a terminal obeys.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HelloError {
    /// The other side speaks something else.
    #[error("another program is there: check the address in the list of peers")]
    OtherProgram,
    /// The other side is of another version.
    #[error(
        "a node speaks version {found} of the protocol between nodes, and this one {PROTOCOL_VERSION}: \
         run one version of the program on all nodes"
    )]
    Version {
        /// The version of the other side.
        found: u32,
    },
    /// The other side does not know the secret.
    #[error("the secret of node number {node} is another one: give all nodes the same secret-file")]
    OtherSecret {
        /// Which node it says to be.
        node: NodeId,
    },
    /// The other side has another list of peers.
    #[error("node {name} has another list of peers: give all nodes the same list")]
    OtherPeers {
        /// What it is called there.
        name: String,
    },
    /// The other side says to be this node.
    #[error("another process is node {name}, as this one is: start each node once")]
    SameNode {
        /// What it is called.
        name: String,
    },
    /// The other side says to be a node that there is not.
    #[error(
        "a process says to be node number {node}, and there are {nodes} nodes: give all nodes the same list of peers"
    )]
    NoSuchNode {
        /// Which.
        node: NodeId,
        /// Nodes of the cluster.
        nodes: u32,
    },
    /// The other side has come with a newer list of nodes.
    #[error("node {name} is of a newer list of nodes than this one has heard of yet")]
    NewerList {
        /// What it is called there.
        name: String,
    },
    /// Another node is at the address of one.
    #[error(
        "node {name} is at the address of node number {to}: correct the address in the list of peers, or start each \
         node on its machine"
    )]
    OtherNode {
        /// The one that was expected.
        to: NodeId,
        /// What the other is called.
        name: String,
    },
    /// The other side serves something else.
    #[error(
        "node {name} serves snapshot {theirs} of the store, this one {here}: give all nodes the same copy"
    )]
    OtherSnapshot {
        /// What the node is called.
        name: String,
        /// What it serves.
        theirs: String,
        /// What this one does.
        here: String,
    },
    /// The other side asks for a copy of the store, and does not get it here.
    #[error(
        "node {name} asks for a copy of the store, which nodes give that write it: copy it with `jindou backup`"
    )]
    NoCopies {
        /// What the node is called.
        name: String,
    },
    /// The other side, which is a node, does not join.
    #[error("node number {node} refuses this one: {text}")]
    Refused {
        /// Which node.
        node: NodeId,
        /// Why, in its words.
        text: String,
    },
    /// The other side is too slow.
    #[error(
        "the other node took longer than {within:?}: check that it runs and that the network reaches it"
    )]
    TimedOut {
        /// The time that all was to take.
        within: Duration,
    },
    /// The other side closed the connection.
    #[error("the other node closed the connection: its log says why")]
    Ended,
    /// Something is longer than is allowed.
    #[error("{what} of {found_bytes} bytes, and at most {most_bytes} are allowed: {advice}")]
    TooLong {
        /// What.
        what: &'static str,
        /// Its length.
        found_bytes: u64,
        /// The most that it may be.
        most_bytes: u64,
        /// What to do.
        advice: &'static str,
    },
    /// The other side, which knows the secret, does not keep to the protocol.
    #[error("what a node sent is damaged, {0}: run one version of the program on all nodes")]
    Malformed(&'static str),
    /// Bytes are not those that the other side signed.
    #[error("what node number {node} sent was changed on its way: check the network")]
    Changed {
        /// Which node.
        node: NodeId,
    },
    /// The system has no random numbers.
    #[error("the system gives no random numbers: check that this process may ask for them")]
    NoRandomness,
    /// The connection failed.
    #[error("the connection with a node failed: check the network")]
    Io(#[source] io::Error),
}
