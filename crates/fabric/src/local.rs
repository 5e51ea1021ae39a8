//! How do several logical nodes in one process reach each other's memory?
//!
//! By copying it, on the thread that asks: a batch is done when [`Fabric::start`] returns. A node that
//! is killed loses its memory and bells at once, as a process does that ends, and whoever asks for them
//! gets [`FabricError::PeerLost`].

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

use parking_lot::RwLock;

use crate::registry::{Registry, Target};
use crate::remote::memory::{Served, check_words};
use crate::remote::{
    Action, Batch, Completed, Doorbell, Fabric, InFlight, Interrupt, MemoryKey, NodeId, Operation,
    Registration, RemoteMemory, SharedMemory,
};
use crate::{FabricError, Region, RegionBuilder};

/// Nodes that share a process.
///
/// ```
/// use jindou_fabric::local::LocalNetwork;
/// use jindou_fabric::remote::{Fabric, Interrupt, NodeId};
/// use jindou_fabric::FabricError;
///
/// let network = LocalNetwork::new(2);
/// let here = network.fabric(0);
/// assert_eq!(here.probe(NodeId(1), &Interrupt::never()), Ok(()));
/// network.kill(NodeId(1));
/// let lost = here.probe(NodeId(1), &Interrupt::never());
/// assert_eq!(lost, Err(FabricError::PeerLost(NodeId(1))));
/// ```
pub struct LocalNetwork {
    shared: Arc<Shared>,
}

struct Shared {
    start: Instant,
    /// By their numbers; each is another one after a restart.
    nodes: RwLock<Vec<Arc<Registry>>>,
    /// The next name of a memory or bell, of whatever node.
    next: Arc<AtomicU64>,
}

impl LocalNetwork {
    /// Nodes 0 to `nodes` - 1.
    #[must_use]
    pub fn new(nodes: u32) -> Self {
        let next = Arc::new(AtomicU64::new(1));
        let registry = |node| Registry::new(NodeId(node), Arc::clone(&next));
        let nodes = RwLock::new((0..nodes).map(registry).collect());
        let start = Instant::now();
        let shared = Arc::new(Shared { start, nodes, next });
        Self { shared }
    }

    /// The access of a node.
    ///
    /// # Panics
    /// If there is no such node.
    #[must_use]
    pub fn fabric(&self, node: u32) -> Arc<LocalFabric> {
        let own = Arc::clone(&self.shared.nodes.read()[node as usize]);
        let shared = Arc::clone(&self.shared);
        Arc::new(LocalFabric { shared, own })
    }

    /// Ends a node as a crash does: its memory and bells are gone, and all that it still tries is an
    /// error. Nothing reads or writes its memory after this returns.
    ///
    /// # Panics
    /// If there is no such node.
    pub fn kill(&self, node: NodeId) {
        let lost = Arc::clone(&self.shared.nodes.read()[node.0 as usize]);
        lost.close();
    }

    /// Kills a node and begins it anew, without any memory; its access. What peers opened before
    /// stays lost.
    ///
    /// # Panics
    /// If there is no such node.
    #[must_use]
    pub fn restart(&self, node: NodeId) -> Arc<LocalFabric> {
        self.kill(node);
        let next = Arc::clone(&self.shared.next);
        self.shared.nodes.write()[node.0 as usize] = Registry::new(node, next);
        self.fabric(node.0)
    }
}

/// A node's access in a [`LocalNetwork`].
pub struct LocalFabric {
    shared: Arc<Shared>,
    own: Arc<Registry>,
}

impl LocalFabric {
    fn peer(&self, node: NodeId) -> Result<Arc<Registry>, FabricError> {
        let nodes = self.shared.nodes.read();
        let peer = nodes.get(node.0 as usize).cloned();
        peer.ok_or(FabricError::UnknownNode(node))
    }

    fn execute(&self, mut batch: Batch) -> Result<Completed, FabricError> {
        self.own.check()?;
        for place in 0..batch.len() {
            let operation = batch.operations()[place].clone();
            self.perform(&mut batch, &operation)?;
        }
        for bell in batch.bells() {
            self.peer(bell.node)?.ring(bell.number)?;
        }
        self.own.check()?;
        Ok(Completed::new(batch))
    }

    fn perform(&self, batch: &mut Batch, operation: &Operation) -> Result<(), FabricError> {
        if let Action::Probe { node } = operation.action {
            return self.peer(node)?.check();
        }
        let memory = batch.target(operation).clone();
        memory.handle::<Target>()?.perform(batch, operation)
    }
}

impl Fabric for LocalFabric {
    fn node(&self) -> NodeId {
        self.own.node()
    }

    fn now(&self) -> Duration {
        self.shared.start.elapsed()
    }

    fn allocate(&self, length: usize) -> Result<RegionBuilder, FabricError> {
        Ok(RegionBuilder::new(length))
    }

    fn register(&self, region: &Region) -> Result<Registration, FabricError> {
        self.own.registration(Served::Region(region.clone()))
    }

    fn share(&self, words: usize) -> Result<(SharedMemory, Registration), FabricError> {
        check_words(words)?;
        let memory = SharedMemory::new(words);
        let registration = self.own.registration(Served::Shared(memory.clone()))?;
        Ok((memory, registration))
    }

    fn open(&self, key: &MemoryKey) -> Result<RemoteMemory, FabricError> {
        self.own.check()?;
        Target::open(self.peer(key.node())?, key)
    }

    fn start(&self, batch: Batch) -> InFlight {
        InFlight::over(self.execute(batch))
    }

    fn try_read(
        &self,
        memory: &RemoteMemory,
        offset: u64,
        into: &mut [u8],
    ) -> Result<bool, FabricError> {
        self.own.check()?;
        memory.handle::<Target>()?.read(offset, into)?;
        Ok(true)
    }

    fn map(&self, memory: &RemoteMemory) -> Result<Option<Region>, FabricError> {
        self.own.check()?;
        memory.handle::<Target>()?.region()
    }

    fn doorbell(&self) -> Result<Doorbell, FabricError> {
        self.own.doorbell()
    }

    fn wait(
        &self,
        bell: &Doorbell,
        seen: u64,
        interrupt: &Interrupt<'_>,
    ) -> Result<u64, FabricError> {
        bell.bell()
            .wait(self.node(), seen, interrupt, &|| self.now())
    }
}
