//! How does a worker that has nothing to do block until there is something?
//!
//! A bell counts how often it was rung. Whoever is about to block notes the count, looks once more
//! whether there is work, and then waits for the count to be another one: a ring in between is not
//! missed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use crate::FabricError;
use crate::remote::{BellAddress, Interrupt, NodeId};

/// What a bell is made of.
pub(crate) trait Ring: Send + Sync {
    /// Counts one more, and wakes those who wait.
    fn ring(&self);

    /// How often it was rung.
    fn count(&self) -> u64;

    /// Blocks the thread until the count is not `seen`; what it is then. An error of its own if
    /// `node`, where it hangs, is lost.
    fn wait(
        &self,
        node: NodeId,
        seen: u64,
        interrupt: &Interrupt<'_>,
        now: &dyn Fn() -> Duration,
    ) -> Result<u64, FabricError>;
}

/// A bell in the memory of its process.
#[derive(Debug, Default)]
pub(crate) struct Bell {
    count: AtomicU64,
    /// Its node is lost: whoever waits is to end.
    is_dead: AtomicBool,
    sleepers: Mutex<usize>,
    changed: Condvar,
}

impl Bell {
    /// Ends all waits.
    pub(crate) fn kill(&self) {
        let _sleepers = self.sleepers.lock();
        self.is_dead.store(true, Ordering::SeqCst);
        self.changed.notify_all();
    }
}

impl Ring for Bell {
    fn ring(&self) {
        let sleepers = self.sleepers.lock();
        self.count.fetch_add(1, Ordering::SeqCst);
        if *sleepers > 0 {
            self.changed.notify_all();
        }
    }

    fn count(&self) -> u64 {
        self.count.load(Ordering::SeqCst)
    }

    fn wait(
        &self,
        node: NodeId,
        seen: u64,
        interrupt: &Interrupt<'_>,
        now: &dyn Fn() -> Duration,
    ) -> Result<u64, FabricError> {
        let mut sleepers = self.sleepers.lock();
        loop {
            let count = self.count();
            if count != seen {
                return Ok(count);
            }
            if self.is_dead.load(Ordering::SeqCst) {
                return Err(FabricError::PeerLost(node));
            }
            interrupt.check(now())?;
            *sleepers += 1;
            match interrupt.patience(now()) {
                Some(patience) => {
                    self.changed.wait_for(&mut sleepers, patience);
                }
                None => self.changed.wait(&mut sleepers),
            }
            *sleepers -= 1;
        }
    }
}

/// A bell that peers and threads of this node ring, and for which a worker waits by
/// [`Fabric::wait`](crate::remote::Fabric::wait). Dropping it takes it down.
pub struct Doorbell {
    address: BellAddress,
    bell: Arc<dyn Ring>,
    _guard: Box<dyn Send + Sync>,
}

impl Doorbell {
    pub(crate) fn new(
        address: BellAddress,
        bell: Arc<dyn Ring>,
        guard: impl Send + Sync + 'static,
    ) -> Self {
        let _guard = Box::new(guard);
        Self {
            address,
            bell,
            _guard,
        }
    }

    /// What peers need to ring it.
    #[must_use]
    pub fn address(&self) -> BellAddress {
        self.address
    }

    /// How often it was rung.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.bell.count()
    }

    /// Rings it from a thread of its own node.
    pub fn ring(&self) {
        self.bell.ring();
    }

    pub(crate) fn bell(&self) -> &dyn Ring {
        &*self.bell
    }
}

impl std::fmt::Debug for Doorbell {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Doorbell").field(&self.address).finish()
    }
}
