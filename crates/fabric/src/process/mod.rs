//! How do processes reach each other's memory, on one machine and on several?
//!
//! Memory of a node on the same machine is mapped: reads, writes and atomic operations are loads and
//! stores of the thread that asks, the target sleeps on, and bells are futexes. Otherwise operations
//! travel as messages, many in each, to the peer's fabric, whose thread does them and answers: over
//! TCP there is nothing that could do so without it, and so a key that is stale is an error and no
//! fault of the target.
//!
//! Messages are carried by a connection that the caller made ([`ProcessFabric::connect`]), or by
//! [UCX](https://openucx.org) ([`ProcessFabric::connect_by_ucx`]), which is loaded only if the options
//! ask for it, so a build needs nothing of it. Over verbs ([`UcxTransport::Verbs`]) it is the same
//! messages; reads by the network card alone are not made, and verbs at all are untested.
//!
//! A peer that ends closes its connection, and one of the same machine is watched as a process: both
//! are seen at once. One that vanishes with its machine is lost when it has not answered for some
//! seconds. One whose connection brings what no peer sends is lost at once, as what was meant will not
//! come: a request of another node, an answer that is not the next one due, words that are no message.
//! A peer that is lost at one end is lost at the other one, too: its connection is closed.

mod due;
mod events;
mod fabric;
mod flight;
mod node;
mod segment;
mod stream;
mod table;
mod target;
mod ucx;
mod wire;

use std::fmt;
use std::time::Duration;

pub use self::fabric::ProcessFabric;
use crate::remote::NodeId;

/// The file name of UCX's library.
pub const UCX_LIBRARY: &str = "libucp.so.0";

/// How a process is a node.
#[derive(Clone, Debug)]
pub struct ProcessOptions {
    /// The node that this process is.
    pub node: NodeId,
    /// Processes of one machine map each other's memory, if both do.
    pub maps_memory: bool,
    /// UCX can carry messages.
    pub ucx: Option<UcxOptions>,
    /// A peer that says nothing for so long, though it is asked, is lost, and so is one that answers
    /// nothing. Processes of one machine and closed connections are noticed at once.
    pub lost_after: Duration,
    /// The same for a peer that has not answered yet, as it may not be connected from its side.
    pub connect_within: Duration,
}

impl ProcessOptions {
    /// A node that maps memory, and does not use UCX.
    #[must_use]
    pub fn new(node: NodeId) -> Self {
        Self {
            node,
            maps_memory: true,
            ucx: None,
            lost_after: Duration::from_secs(10),
            connect_within: Duration::from_secs(60),
        }
    }
}

/// Why is a peer lost?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Loss {
    /// It said that it closes.
    Closed,
    /// Its process or its connection ended, or cannot be used.
    Ended,
    /// It said nothing for [`ProcessOptions::lost_after`], or [`ProcessOptions::connect_within`].
    Silent,
    /// It sent requests, but for as long answered none.
    Unanswering,
    /// It was connected anew.
    Replaced,
    /// This node gave it up ([`Fabric::disconnect`](crate::remote::Fabric::disconnect)).
    GivenUp,
    /// It sent what no peer sends: it is another version, or its messages were altered on the way.
    Nonsense(&'static str),
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Closed => "it closed",
            Self::Ended => "it or its connection ended",
            Self::Silent => "it said nothing for too long",
            Self::Unanswering => "it answered nothing for too long",
            Self::Replaced => "it was connected anew",
            Self::GivenUp => "it was given up",
            Self::Nonsense(what) => what,
        })
    }
}

/// A way of UCX to other processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UcxTransport {
    /// TCP.
    Tcp,
    /// An RDMA network card. Untested.
    Verbs,
}

/// How UCX carries messages.
#[derive(Clone, Debug)]
pub struct UcxOptions {
    /// The ways to use, of those that there are.
    pub transports: Vec<UcxTransport>,
    /// The library's file.
    pub library: String,
}

impl Default for UcxOptions {
    /// TCP, by the library that the system finds.
    fn default() -> Self {
        Self {
            transports: vec![UcxTransport::Tcp],
            library: UCX_LIBRARY.to_owned(),
        }
    }
}

impl UcxOptions {
    /// The transports as UCX names them.
    fn names(&self) -> String {
        let name = |transport: &UcxTransport| match transport {
            UcxTransport::Tcp => "tcp",
            UcxTransport::Verbs => "rc,ud",
        };
        self.transports
            .iter()
            .map(name)
            .collect::<Vec<_>>()
            .join(",")
    }
}
