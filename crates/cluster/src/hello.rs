//! How do two processes learn that they are nodes of one cluster? Each proves to the other that it knows the cluster's
//! secret, and then compares what both said of themselves.
//!
//! Both sides of a connection send the same three messages, and read three:
//!
//! 1. [`FirstMessage`]: a magic, the version of the protocol, a random nonce, the own node and [`Facts`].
//! 2. HMAC-SHA256 by the secret over the own role and both first messages. It is valid in this exchange only, and not
//!    for the side that made it.
//! 3. A verdict, signed by a key of this connection ([`Session`]): joined, or refused and why.
//!
//! No byte is read beyond a message, so the connection then carries whatever both agree on. What is not yet
//! authenticated is compared with nothing but lengths, magic and version, and all steps together end in time. First
//! messages are not secret, and neither is what follows: a private network has to see to that.

mod duplex;
mod error;
mod exchange;
mod facts;
mod first;
mod session;

use std::time::Duration;

use jindou_model::NodeId;

pub use self::duplex::Duplex;
use self::duplex::Limited;
pub use self::error::HelloError;
pub use self::exchange::MOST_MESSAGE_BYTES;
pub use self::facts::{Facts, MOST_SNAPSHOT_BYTES};
use self::first::FirstMessage;
use self::session::Session;
use crate::secret::Secret;

/// The version of the protocol: nodes of two versions do not join.
pub const PROTOCOL_VERSION: u32 = 8;

/// Which side of a connection a process is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It connected to the address of this node.
    Dialer {
        /// The node that is expected to answer.
        to: NodeId,
    },
    /// It was connected to, by any node.
    Acceptor,
}

impl Role {
    /// What a side's proofs begin with.
    fn number(self) -> u8 {
        match self {
            Self::Dialer { .. } => 1,
            Self::Acceptor => 2,
        }
    }

    /// The same of the other side.
    fn others_number(self) -> u8 {
        3 - self.number()
    }
}

/// One side of a handshake.
#[derive(Clone, Copy, Debug)]
pub struct Handshake<'a> {
    /// The node that this process is.
    pub here: NodeId,
    /// Nodes of the cluster.
    pub nodes: u32,
    /// The secret of the cluster, if it has one: without, any process that reaches the connection can join.
    pub secret: Option<&'a Secret>,
    /// What the other side is to know.
    pub facts: &'a Facts,
    /// Which side this is.
    pub role: Role,
    /// The other side may ask for a copy of the store.
    pub gives_copies: bool,
    /// The whole handshake is over after this time.
    pub within: Duration,
}

/// Another node, which is of this cluster, and a connection with it.
#[derive(Debug)]
pub struct Greeted {
    /// Which node.
    pub node: NodeId,
    /// It asks for a copy of the store, and sends nothing more.
    pub wants_copy: bool,
    /// How often its list of peers had changed.
    pub list: u64,
    session: Session,
}

impl Handshake<'_> {
    /// Greets who is at the other end of a connection, which blocks and of which no byte has been read. Afterwards
    /// its next byte is the first that the other side sends after its handshake, and calls on it have no time limit.
    /// Costs three messages each way, which cross, and about 9 KiB of memory.
    ///
    /// # Errors
    /// [`HelloError`]; the connection is then to be dropped.
    pub fn run<S: Duplex + ?Sized>(&self, stream: &S) -> Result<Greeted, HelloError> {
        let limited = Limited::new(stream, self.within);
        let greeted = self.greet(&limited)?;
        limited.lift()?;
        Ok(greeted)
    }

    fn greet<S: Duplex + ?Sized>(&self, stream: &Limited<'_, S>) -> Result<Greeted, HelloError> {
        let own = FirstMessage::new(self.here, &self.facts.to_bytes()?)?;
        stream.write(own.bytes())?;
        let others = FirstMessage::read(stream)?;
        let node = others.node();
        let session = Session::authenticate(self.secret, self.role, stream, &own, &others)?;
        let facts = Facts::from_bytes(others.facts());
        let wants_copy = facts.as_ref().is_ok_and(|facts| facts.wants_copy);
        let list = facts.as_ref().map_or(0, |facts| facts.list);
        let checked = facts.and_then(|facts| self.check(node, &facts));
        let sent = session.send_verdict(stream, checked.as_ref().err());
        // It is read even if the own one was not sent, as it may say why, and if it does not matter any more: closing
        // a connection with unread bytes could take the own one from the other side.
        let verdict = session.read_verdict(stream, node);
        checked?;
        verdict.and(sent)?;
        Ok(Greeted {
            node,
            wants_copy,
            list,
            session,
        })
    }

    /// Whether a process that knows the secret is a node that can be joined.
    fn check(&self, node: NodeId, facts: &Facts) -> Result<(), HelloError> {
        let name = || facts.name.clone();
        if facts.cluster != self.facts.cluster || facts.shards != self.facts.shards {
            return Err(HelloError::OtherPeers { name: name() });
        }
        if node == self.here {
            return Err(HelloError::SameNode { name: name() });
        }
        if node.0 >= self.nodes && facts.list > self.facts.list {
            return Err(HelloError::NewerList { name: name() });
        }
        if node.0 >= self.nodes {
            let nodes = self.nodes;
            return Err(HelloError::NoSuchNode { node, nodes });
        }
        if let Role::Dialer { to } = self.role
            && to != node
        {
            return Err(HelloError::OtherNode { to, name: name() });
        }
        if facts.wants_copy && !self.gives_copies {
            return Err(HelloError::NoCopies { name: name() });
        }
        // Who has no copy serves nothing that could differ.
        let is_copied = facts.wants_copy || self.facts.wants_copy;
        if facts.snapshot != self.facts.snapshot && !is_copied {
            return Err(HelloError::OtherSnapshot {
                name: name(),
                theirs: facts.snapshot.clone(),
                here: self.facts.snapshot.clone(),
            });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
