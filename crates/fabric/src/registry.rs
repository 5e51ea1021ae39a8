//! Which memories and bells does a node offer now, and who may still touch one that it withdraws?

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::RwLock;

use crate::remote::doorbell::{Bell, Ring as _};
use crate::remote::memory::{PIECE_BYTES, Served, WORD_BYTES};
use crate::remote::{
    Action, Batch, BellAddress, Doorbell, MemoryKey, NodeId, Operation, Registration, RemoteMemory,
};
use crate::{FabricError, Region};

/// The most memories that a node registers at a time.
pub(crate) const MAX_REGISTRATIONS: usize = 1 << 20;
/// The most bells of a node.
pub(crate) const MAX_BELLS: usize = 1 << 16;

/// All that a node offers.
pub(crate) struct Registry {
    node: NodeId,
    /// Names are given once, to whatever, so that a stale one names nothing.
    next: Arc<AtomicU64>,
    is_closed: AtomicBool,
    memories: RwLock<HashMap<u64, Arc<Entry>>>,
    bells: RwLock<HashMap<u64, Arc<Bell>>>,
}

/// A registered memory, until it is withdrawn.
pub(crate) struct Entry(RwLock<Option<Served>>);

impl Entry {
    /// What `access` gives of the memory, which stays for as long as that runs.
    pub(crate) fn with<T>(
        &self,
        registry: &Registry,
        access: impl FnOnce(&Served) -> Result<T, FabricError>,
    ) -> Result<T, FabricError> {
        match &*self.0.read() {
            Some(memory) => access(memory),
            None => Err(registry.missing()),
        }
    }

    /// Waits for accesses to end; there are none after that.
    fn withdraw(&self) {
        // Dropped without the lock: freeing much memory takes a while.
        let memory = self.0.write().take();
        drop(memory);
    }
}

/// A registered memory of a node in this process, as its peers hold it.
pub(crate) struct Target {
    owner: Arc<Registry>,
    entry: Arc<Entry>,
}

impl Target {
    /// What a key of [`Registry::registration`] names.
    pub(crate) fn open(owner: Arc<Registry>, key: &MemoryKey) -> Result<RemoteMemory, FabricError> {
        let number = key.name().try_into().map(u64::from_le_bytes);
        let number = number.map_err(|_| FabricError::Malformed("key of this network"))?;
        let target = Self::of_number(owner, number)?;
        Ok(RemoteMemory::new(key.clone(), target))
    }

    pub(crate) fn of_number(owner: Arc<Registry>, number: u64) -> Result<Self, FabricError> {
        let entry = owner.memory(number)?;
        Ok(Self { owner, entry })
    }

    /// Copies bytes of this memory.
    pub(crate) fn read(&self, offset: u64, into: &mut [u8]) -> Result<(), FabricError> {
        let node = self.owner.node();
        self.with(|served| served.read(node, offset, into))
    }

    /// The memory, unless it is shared words.
    pub(crate) fn region(&self) -> Result<Option<Region>, FabricError> {
        self.with(|served| {
            Ok(match served {
                Served::Region(region) => Some(region.clone()),
                Served::Shared(_) => None,
            })
        })
    }

    /// Does an operation on this memory, large ones in pieces.
    pub(crate) fn perform(
        &self,
        batch: &mut Batch,
        operation: &Operation,
    ) -> Result<(), FabricError> {
        let (node, mut offset) = (self.owner.node(), operation.offset);
        match operation.action.clone() {
            Action::Read { into, length } => {
                for piece in batch.output(into, length).chunks_mut(PIECE_BYTES) {
                    self.with(|served| served.read(node, offset, piece))?;
                    offset += piece.len() as u64;
                }
            }
            Action::Write { from } => {
                for piece in batch.input(from).chunks(PIECE_BYTES / WORD_BYTES) {
                    self.with(|served| served.write(node, offset, piece))?;
                    offset += size_of_val(piece) as u64;
                }
            }
            Action::Atomic { into, operation } => {
                *batch.output_word(into) =
                    self.with(|served| served.atomic(node, offset, operation))?;
            }
            Action::Probe { .. } => {}
        }
        // Also where there was nothing to copy.
        self.with(|_| Ok(()))
    }

    pub(crate) fn owner(&self) -> &Arc<Registry> {
        &self.owner
    }

    /// What `access` gives of the memory, if the owner is there when it ends, too.
    pub(crate) fn with<T>(
        &self,
        access: impl FnOnce(&Served) -> Result<T, FabricError>,
    ) -> Result<T, FabricError> {
        let outcome = self.entry.with(&self.owner, access)?;
        // A node that was lost meanwhile may have been read half before and half after that.
        self.owner.check()?;
        Ok(outcome)
    }
}

impl Registry {
    /// A node that offers nothing yet; names come from `next`.
    pub(crate) fn new(node: NodeId, next: Arc<AtomicU64>) -> Arc<Self> {
        Arc::new(Self {
            node,
            next,
            is_closed: AtomicBool::new(false),
            memories: RwLock::default(),
            bells: RwLock::default(),
        })
    }

    pub(crate) fn node(&self) -> NodeId {
        self.node
    }

    /// An error if the node is lost.
    pub(crate) fn check(&self) -> Result<(), FabricError> {
        if self.is_closed.load(Ordering::SeqCst) {
            return Err(FabricError::PeerLost(self.node));
        }
        Ok(())
    }

    /// Why there is no such memory or bell.
    fn missing(&self) -> FabricError {
        self.check()
            .err()
            .unwrap_or(FabricError::Unregistered(self.node))
    }

    /// Offers a memory until the guard is dropped; its name.
    pub(crate) fn register(
        self: &Arc<Self>,
        memory: Served,
    ) -> Result<(u64, MemoryGuard), FabricError> {
        let mut memories = self.memories.write();
        // Under the lock, as closing is: nothing is added after it.
        self.check()?;
        if memories.len() >= MAX_REGISTRATIONS {
            let (what, limit) = ("registrations", MAX_REGISTRATIONS);
            return Err(FabricError::Exhausted { what, limit });
        }
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let entry = Arc::new(Entry(RwLock::new(Some(memory))));
        memories.insert(number, Arc::clone(&entry));
        let registry = Arc::clone(self);
        let guard = MemoryGuard {
            registry,
            number,
            entry,
        };
        Ok((number, guard))
    }

    /// Offers a memory under a key that is its name.
    pub(crate) fn registration(
        self: &Arc<Self>,
        memory: Served,
    ) -> Result<Registration, FabricError> {
        let length = memory.length();
        let (number, guard) = self.register(memory)?;
        let key = MemoryKey::new(self.node, length, &number.to_le_bytes());
        Ok(Registration::new(key, guard))
    }

    /// A memory by its name.
    pub(crate) fn memory(&self, number: u64) -> Result<Arc<Entry>, FabricError> {
        let memories = self.memories.read();
        let entry = memories.get(&number).cloned();
        entry.ok_or_else(|| self.missing())
    }

    /// A new bell.
    pub(crate) fn doorbell(self: &Arc<Self>) -> Result<Doorbell, FabricError> {
        let mut bells = self.bells.write();
        self.check()?;
        if bells.len() >= MAX_BELLS {
            let (what, limit) = ("bells", MAX_BELLS);
            return Err(FabricError::Exhausted { what, limit });
        }
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let bell = Arc::new(Bell::default());
        bells.insert(number, Arc::clone(&bell));
        let node = self.node;
        let registry = Arc::clone(self);
        let guard = BellGuard { registry, number };
        Ok(Doorbell::new(BellAddress { node, number }, bell, guard))
    }

    /// Rings a bell by its name.
    pub(crate) fn ring(&self, number: u64) -> Result<(), FabricError> {
        match self.bells.read().get(&number) {
            Some(bell) => bell.ring(),
            None => return Err(self.missing()),
        }
        self.check()
    }

    /// The node is lost: nothing is offered any more, and whoever waits here gets an error.
    pub(crate) fn close(&self) {
        let entries: Vec<_> = {
            let mut memories = self.memories.write();
            self.is_closed.store(true, Ordering::SeqCst);
            memories.drain().map(|(_, entry)| entry).collect()
        };
        for entry in entries {
            entry.withdraw();
        }
        for (_, bell) in self.bells.write().drain() {
            bell.kill();
        }
    }
}

/// Ends the offer of a memory when dropped.
pub(crate) struct MemoryGuard {
    registry: Arc<Registry>,
    number: u64,
    entry: Arc<Entry>,
}

impl Drop for MemoryGuard {
    fn drop(&mut self) {
        self.registry.memories.write().remove(&self.number);
        self.entry.withdraw();
    }
}

/// Takes a bell down when dropped.
struct BellGuard {
    registry: Arc<Registry>,
    number: u64,
}

impl Drop for BellGuard {
    fn drop(&mut self) {
        self.registry.bells.write().remove(&self.number);
    }
}
