//! Why can nodes not do something together?

use std::io;
use std::time::Duration;

use crate::hello::HelloError;

/// Why nodes that were to do something together do not.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MeshError {
    /// Its own address cannot be had.
    #[error("{address}, where other nodes are to come to, cannot be listened at: {source}")]
    Address {
        /// The address of the list.
        address: String,
        /// What the operating system says.
        #[source]
        source: io::Error,
    },
    /// Some did not come.
    #[error(
        "{} not there after {} s{}: start all nodes of the list",
        .names.join(", "), .within.as_secs(), of_reason(.reason)
    )]
    Missing {
        /// The nodes that did not come.
        names: Vec<String>,
        /// How long they were waited for.
        within: Duration,
        /// Why the last of those that were tried did not, if that is known.
        reason: Option<String>,
    },
    /// A node is there that cannot take part.
    #[error(transparent)]
    Hello(#[from] HelloError),
    /// A node is about to do something else.
    #[error(
        "node {name} is about to {theirs}, and this one to {here}: give all nodes the same files and options"
    )]
    OtherPurpose {
        /// Which.
        name: String,
        /// What it says.
        theirs: String,
        /// What this one does.
        here: String,
    },
    /// A node has gone.
    #[error("node {name} has gone, and what was begun together cannot go on: {source}")]
    Lost {
        /// Which.
        name: String,
        /// What the operating system says.
        #[source]
        source: io::Error,
    },
    /// A message is not what was sent.
    #[error(
        "what node {name} sent came as something else, by its checksum, and what was begun together cannot go on"
    )]
    Damaged {
        /// Which.
        name: String,
    },
    /// The operating system gives no thread, or no more connections.
    #[error("a thread cannot be started: {source}")]
    Thread {
        /// What it says.
        #[source]
        source: io::Error,
    },
}

fn of_reason(reason: &Option<String>) -> String {
    let said = reason.as_ref().map(|reason| format!(" ({reason})"));
    said.unwrap_or_default()
}
