//! How does a node read, write and wake another one, whatever lies between them?
//!
//! A [`Fabric`] is one node's access to its peers. A node *registers* memory and gives the
//! [`MemoryKey`] away; a peer *opens* the key and flies a [`Batch`] of one-sided operations, for
//! which no thread of the owner does anything. A [`Doorbell`] lets a thread block until a peer
//! rings. Messages ([`crate::ring`]) are made of writes and bells.
//!
//! Every failure is a [`FabricError`]: an implementation neither panics nor blocks forever because
//! of what a peer does, or because it ended.

mod batch;
pub(crate) mod doorbell;
mod flight;
mod key;
pub(crate) mod memory;

use std::time::Duration;

pub(crate) use batch::{Action, Operation};
pub use batch::{Batch, Completed, MAX_BATCH_BYTES, MAX_BATCH_OPERATIONS, OperationId};
pub use doorbell::Doorbell;
pub(crate) use flight::Flight;
pub use flight::{InFlight, Interrupt};
pub(crate) use key::Fields;
pub use key::{BellAddress, MemoryKey, NodeId};
pub use memory::{MAX_SHARED_BYTES, Registration, RemoteMemory, SharedMemory};

use crate::{FabricError, Region, RegionBuilder};

/// One node's access to the memory of its peers, and its own.
///
/// Implementations are [`LocalNetwork`](crate::local::LocalNetwork), whose nodes share a process,
/// [`Simulation`](crate::sim::Simulation), whose network is as bad as one likes, and, on Linux,
/// `ProcessFabric`, whose nodes are processes of one machine or several. What this documentation
/// states, `tests/contract` checks of each.
pub trait Fabric: Send + Sync {
    /// The node whose access this is.
    fn node(&self) -> NodeId;

    /// Time since some moment before the fabric was made; deadlines are of this time.
    fn now(&self) -> Duration;

    /// Zeroed memory for a region of `length` bytes that peers will read, where they read it
    /// fastest. [`Fabric::register`] takes other regions, too.
    ///
    /// # Errors
    /// [`FabricError::OutOfMemory`].
    fn allocate(&self, length: usize) -> Result<RegionBuilder, FabricError>;

    /// Lets peers read the bytes of a region, until the registration is dropped. Dropping waits for
    /// reads of this process that are under way.
    ///
    /// # Errors
    /// [`FabricError::Exhausted`], [`FabricError::PeerLost`] of this node.
    fn register(&self, region: &Region) -> Result<Registration, FabricError>;

    /// New words, all zero, that peers may read and write until the registration is dropped, at most
    /// [`MAX_SHARED_BYTES`].
    ///
    /// # Errors
    /// [`FabricError::OutOfMemory`], [`FabricError::Exhausted`], [`FabricError::PeerLost`] of this
    /// node.
    fn share(&self, words: usize) -> Result<(SharedMemory, Registration), FabricError>;

    /// Makes ready to use a peer's memory, or this node's own.
    ///
    /// May not ask the peer: that the key is stale, or the peer lost, may be found only by the first
    /// batch.
    ///
    /// # Errors
    /// [`FabricError::UnknownNode`], [`FabricError::Unregistered`], [`FabricError::PeerLost`],
    /// [`FabricError::Malformed`].
    fn open(&self, key: &MemoryKey) -> Result<RemoteMemory, FabricError>;

    /// Begins all operations of a batch, of whatever memories and nodes. Large ones travel in
    /// pieces.
    ///
    /// The outcome is [`FabricError::PeerLost`] if a node that the batch needs is lost before it
    /// answered, also when it is lost on the way; [`FabricError::Unregistered`] if a memory or bell
    /// is no longer offered; [`FabricError::OutOfBounds`] and [`FabricError::ReadOnly`] if the
    /// memory's owner says so; [`FabricError::Damaged`] if a mapped file lost bytes.
    fn start(&self, batch: Batch) -> InFlight;

    /// Copies bytes from byte `offset` of a memory that this thread can reach by itself, without a
    /// batch; false, and nothing is copied, if a batch must be flown. What a small read costs then
    /// is little more than the loads.
    ///
    /// # Errors
    /// Those of [`Fabric::start`] for a read.
    fn try_read(
        &self,
        memory: &RemoteMemory,
        offset: u64,
        into: &mut [u8],
    ) -> Result<bool, FabricError> {
        let _ = (memory, offset, into);
        Ok(false)
    }

    /// A memory that holds a region, as a region of this process, if its loads reach it. It stays as it is for
    /// as long as that is held, also when the owner takes the memory back, or is gone. `None` of shared
    /// words, and where a batch is the only way.
    ///
    /// # Errors
    /// [`FabricError::Unregistered`], [`FabricError::PeerLost`].
    fn map(&self, memory: &RemoteMemory) -> Result<Option<Region>, FabricError> {
        let _ = memory;
        Ok(None)
    }

    /// Gives up a peer that does not keep to a protocol that is spoken over this fabric: it is lost here, and
    /// so is this node there, until they are connected anew. Nothing happens where nodes stay connected.
    fn disconnect(&self, node: NodeId) {
        let _ = node;
    }

    /// A bell of this node that nobody has rung.
    ///
    /// # Errors
    /// [`FabricError::Exhausted`], [`FabricError::PeerLost`] of this node.
    fn doorbell(&self) -> Result<Doorbell, FabricError>;

    /// Blocks until the bell's count is another than `seen`, and gives it; at once if it is already.
    ///
    /// # Errors
    /// [`FabricError::Deadline`], [`FabricError::Cancelled`], [`FabricError::PeerLost`] of this
    /// node.
    fn wait(
        &self,
        bell: &Doorbell,
        seen: u64,
        interrupt: &Interrupt<'_>,
    ) -> Result<u64, FabricError>;

    /// Flies a batch and waits for it.
    ///
    /// # Errors
    /// Those of [`InFlight::wait`]; after a deadline the batch is abandoned.
    fn complete(&self, batch: Batch, interrupt: &Interrupt<'_>) -> Result<Completed, FabricError> {
        self.start(batch).wait(interrupt)
    }

    /// Asks whether a node is alive: `Ok` if it answers.
    ///
    /// # Errors
    /// [`FabricError::PeerLost`], [`FabricError::UnknownNode`], those of [`InFlight::wait`].
    fn probe(&self, node: NodeId, interrupt: &Interrupt<'_>) -> Result<(), FabricError> {
        let mut batch = Batch::new();
        let _ = batch.probe(node)?;
        self.complete(batch, interrupt).map(|_| ())
    }

    /// Rings a bell.
    ///
    /// # Errors
    /// [`FabricError::PeerLost`], [`FabricError::UnknownNode`], [`FabricError::Unregistered`], those
    /// of [`InFlight::wait`].
    fn wake(&self, bell: BellAddress, interrupt: &Interrupt<'_>) -> Result<(), FabricError> {
        let mut batch = Batch::new();
        batch.wake(bell)?;
        self.complete(batch, interrupt).map(|_| ())
    }
}
