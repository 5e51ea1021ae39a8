//! How are two nodes joined, so that requests go one way and answers the other?
//!
//! By a pair of rings. Each node owns the one in which it receives, and invites the other to it; the bell
//! of an end rings when a message came, and when there is room again for one that waits. Nodes of one
//! process have both ends of their links ([`Link`]).

use std::any::Any;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use jindou_exec::Catalogue;
use jindou_fabric::FabricError;
use jindou_fabric::remote::{Doorbell, Fabric, Interrupt, NodeId};
use jindou_fabric::ring::{Invitation, Receiver, RingError, RingOptions, Sender, Sending};
use jindou_model::ShardId;
use jindou_partition::Shards;

use super::asked::AskedShards;
use super::connection::Connection;
use super::listening::Listening;
use super::server::ShardServer;
use super::terms::AskedTerms;
use super::words::ServedId;
use crate::advert::AdvertError;
use crate::one_sided::ReadCounts;

/// Why are two nodes not joined?
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LinkError {
    /// Their rings cannot be made.
    #[error("nodes cannot send each other messages: {0}")]
    Ring(#[from] RingError),
    /// The advert of the other node cannot be read.
    #[error(transparent)]
    Advert(#[from] AdvertError),
    /// There is no thread that would listen.
    #[error("no thread listens to node {node}: {source}")]
    Thread {
        /// The node that sends.
        node: NodeId,
        /// What the operating system says.
        source: Arc<io::Error>,
    },
}

/// What both ends of a link have in common.
#[derive(Clone, Debug)]
pub struct LinkOptions {
    /// Bytes of each ring.
    pub ring_bytes: usize,
    /// Bytes of a message, at most.
    pub message_bytes: usize,
    /// How long an end waits without asking whether the other node is alive.
    pub probe_every: Duration,
    /// How long an answer is waited for before whoever asked looks at its own limits.
    pub patience: Duration,
    /// How long an end that was invited waits for the fabric of the other node, which may be starting.
    pub join_within: Duration,
}

impl Default for LinkOptions {
    fn default() -> Self {
        Self {
            ring_bytes: 256 << 10,
            message_bytes: 64 << 20,
            probe_every: Duration::from_millis(500),
            patience: Duration::from_millis(500),
            join_within: Duration::from_secs(30),
        }
    }
}

/// An end that waits for the other one's invitation.
pub struct OpenEnd {
    fabric: Arc<dyn Fabric>,
    bell: Arc<Doorbell>,
    receiver: Receiver,
    peer: NodeId,
    options: LinkOptions,
}

/// One end of a link.
pub struct LinkEnd {
    pub(crate) fabric: Arc<dyn Fabric>,
    pub(crate) bell: Arc<Doorbell>,
    pub(crate) receiver: Receiver,
    pub(crate) sender: Sender,
    pub(crate) peer: NodeId,
    pub(crate) options: LinkOptions,
}

impl OpenEnd {
    /// An end of a link with `peer`.
    ///
    /// # Errors
    /// Those of [`Receiver::new`].
    pub fn new(
        fabric: Arc<dyn Fabric>,
        peer: NodeId,
        options: &LinkOptions,
    ) -> Result<Self, RingError> {
        let bell = Arc::new(fabric.doorbell()?);
        let ring = RingOptions {
            bytes: options.ring_bytes,
            message_bytes: options.message_bytes,
            sender: Some(peer),
            probe_every: options.probe_every,
        };
        let receiver = Receiver::new(Arc::clone(&fabric), Arc::clone(&bell), &ring)?;
        Ok(Self {
            fabric,
            bell,
            receiver,
            peer,
            options: options.clone(),
        })
    }

    /// What the other end needs.
    #[must_use]
    pub fn invitation(&self) -> &Invitation {
        self.receiver.invitation()
    }

    /// The end, once the other one has invited it. Waits for the other node's fabric for as long as
    /// [`LinkOptions::join_within`]: an attempt that was given up may still take the ring, so there is no
    /// second one.
    ///
    /// # Errors
    /// Those of [`Sender::new`].
    pub fn join(self, invitation: &Invitation) -> Result<LinkEnd, RingError> {
        let (fabric, bell) = (Arc::clone(&self.fabric), Arc::clone(&self.bell));
        let until = Interrupt::at(fabric.now() + self.options.join_within);
        let sender = Sender::new(fabric, bell, invitation, &until)?;
        Ok(LinkEnd {
            fabric: self.fabric,
            bell: self.bell,
            receiver: self.receiver,
            sender,
            peer: self.peer,
            options: self.options,
        })
    }
}

impl LinkEnd {
    /// Both ends of a link between two nodes of this process.
    ///
    /// # Errors
    /// Those of [`OpenEnd::new`] and [`OpenEnd::join`].
    pub fn pair(
        one: Arc<dyn Fabric>,
        other: Arc<dyn Fabric>,
        options: &LinkOptions,
    ) -> Result<(Self, Self), RingError> {
        let peers = (other.node(), one.node());
        let one = OpenEnd::new(one, peers.0, options)?;
        let other = OpenEnd::new(other, peers.1, options)?;
        let invitations = (other.invitation().clone(), one.invitation().clone());
        Ok((one.join(&invitations.0)?, other.join(&invitations.1)?))
    }
}

/// A link over which one node asks, and a thread of the other one answers.
pub struct Link {
    // In this order: a thread whose peer is gone has nobody to answer.
    connection: Arc<Connection>,
    /// The other end, if that is in this process.
    _listening: Option<Listening>,
}

impl Link {
    /// Joins two nodes of this process, the node of `asking` with that of `answering`, for which `server` answers. What goes over the
    /// link is counted in `counts`.
    ///
    /// # Errors
    /// [`LinkError`].
    pub fn between(
        asking: &Arc<dyn Fabric>,
        answering: &Arc<dyn Fabric>,
        server: &Arc<ShardServer>,
        counts: &Arc<ReadCounts>,
        options: &LinkOptions,
    ) -> Result<Self, LinkError> {
        let (one, other) = LinkEnd::pair(Arc::clone(asking), Arc::clone(answering), options)?;
        Ok(Self {
            connection: Arc::new(Connection::new(one, counts)),
            _listening: Some(Listening::start(Arc::clone(server), other)?),
        })
    }

    /// The asking end of a link to a node of another process, where a [`Listening`] has the other end.
    #[must_use]
    pub fn over(end: LinkEnd, counts: &Arc<ReadCounts>) -> Self {
        Self {
            connection: Arc::new(Connection::new(end, counts)),
            _listening: None,
        }
    }

    /// Shards of those that the node at the other end serves by a name, over this link for as long as
    /// somebody has them; `kept` is what keeps them there.
    ///
    /// # Panics
    /// As [`AskedShards::new`].
    #[must_use]
    pub fn shards(
        self: &Arc<Self>,
        served: (Shards, Vec<ShardId>, ServedId),
        catalogue: Arc<dyn Catalogue>,
        kept: Arc<dyn Any + Send + Sync>,
    ) -> AskedShards {
        let kept = Arc::new((Arc::clone(self), kept));
        AskedShards::new(served, &self.connection, catalogue, kept)
    }
}

impl Link {
    /// The part of a dictionary that the node at the other end serves by a name, with the shards that it has; as
    /// [`Link::shards`].
    #[must_use]
    pub fn terms(
        self: &Arc<Self>,
        served: ServedId,
        kept: Arc<dyn Any + Send + Sync>,
    ) -> AskedTerms {
        let kept = Arc::new((Arc::clone(self), kept));
        AskedTerms::new(served, &self.connection, kept)
    }
}

/// Writes what a sender has taken, as far as there is room for it.
///
/// # Errors
/// Those of [`Sender::wait`], but that a wait ended.
pub(super) fn push(sender: &mut Sender, until: &Interrupt<'_>) -> Result<Sending, RingError> {
    let mut sending = sender.flush()?;
    while sending == Sending::Held {
        match sender.wait(until) {
            Err(error) if is_interrupt(&error) => break,
            outcome => sending = outcome?,
        }
    }
    Ok(sending)
}

/// True if only a wait ended.
pub(crate) fn is_interrupt(error: &RingError) -> bool {
    use FabricError::{Cancelled, Deadline, Stalled};
    matches!(error, RingError::Fabric(Deadline | Cancelled | Stalled))
}
