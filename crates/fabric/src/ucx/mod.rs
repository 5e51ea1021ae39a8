//! How do processes reach each other's memory by UCX, on one machine and on several?
//!
//! [UCX](https://openucx.org) is loaded when a [`UcxFabric`] is made, so a build needs nothing of it.
//! Memory of a node on the same machine is mapped: reads, writes and atomic operations are loads and
//! stores of the thread that asks, the target sleeps on, and bells are futexes. Otherwise operations
//! travel as messages, many in each, to the peer's fabric, whose thread does them and answers: over
//! TCP there is nothing that could do so without it, and so a key that is stale is an error and no
//! fault of the target. Over verbs ([`Transport::Verbs`]) it is the same messages; reads by the
//! network card alone, and verbs at all, are untested.
//!
//! A peer that ends closes its connections, and one of the same machine is watched as a process: both
//! are seen at once. One that vanishes with its machine is lost when it has not answered for some
//! seconds.

mod engine;
mod fabric;
mod ffi;
mod flight;
mod library;
mod node;
mod segment;
mod stream;
mod table;
mod target;
mod wire;

#[cfg(test)]
mod abi_tests;

use std::time::Duration;

pub use self::fabric::UcxFabric;
use crate::remote::NodeId;

/// The file name of UCX's library.
pub const LIBRARY: &str = "libucp.so.0";

/// A way of UCX to other processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// Memory that processes of one machine map.
    SharedMemory,
    /// TCP, which messages need where there are no verbs.
    Tcp,
    /// An RDMA network card. Untested.
    Verbs,
}

/// How a node uses UCX.
#[derive(Clone, Debug)]
pub struct UcxOptions {
    /// The node that this process is.
    pub node: NodeId,
    /// The ways to use, of those that there are.
    pub transports: Vec<Transport>,
    /// The library's file.
    pub library: String,
    /// A peer that says nothing for so long, though it is asked, is lost. Processes of one machine
    /// and closed connections are noticed at once.
    pub lost_after: Duration,
    /// The same for a peer that has not answered yet, as it may not be connected from its side.
    pub connect_within: Duration,
}

impl UcxOptions {
    /// A node that uses shared memory and TCP.
    #[must_use]
    pub fn new(node: NodeId) -> Self {
        Self {
            node,
            transports: vec![Transport::SharedMemory, Transport::Tcp],
            library: LIBRARY.to_owned(),
            lost_after: Duration::from_secs(10),
            connect_within: Duration::from_secs(60),
        }
    }

    fn has_shared_memory(&self) -> bool {
        self.transports.contains(&Transport::SharedMemory)
    }

    /// The transports of UCX as it names them, if there are any.
    fn names(&self) -> Option<String> {
        let name = |transport: &Transport| match transport {
            Transport::SharedMemory => None,
            Transport::Tcp => Some("tcp"),
            Transport::Verbs => Some("rc,ud"),
        };
        let names: Vec<_> = self.transports.iter().filter_map(name).collect();
        (!names.is_empty()).then(|| format!("self,{}", names.join(",")))
    }
}
