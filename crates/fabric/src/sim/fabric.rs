//! How does a node of a simulation reach its peers?

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use super::world::World;
use crate::registry::{Registry, Target};
use crate::remote::memory::{Served, check_words};
use crate::remote::{
    Batch, Completed, Doorbell, Fabric, Flight, InFlight, Interrupt, MemoryKey, NodeId,
    Registration, RemoteMemory, SharedMemory,
};
use crate::{FabricError, Region, RegionBuilder};

/// A node's access in a [`Simulation`](super::Simulation).
pub struct SimulatedFabric {
    world: Arc<Mutex<World>>,
    own: Arc<Registry>,
}

impl SimulatedFabric {
    pub(super) fn new(world: Arc<Mutex<World>>, own: Arc<Registry>) -> Self {
        Self { world, own }
    }
}

/// Plays one event, or lets time pass to the deadline if that comes first.
fn play(world: &Mutex<World>, interrupt: &Interrupt<'_>) -> Result<(), FabricError> {
    let mut world = world.lock();
    match (world.next_time(), interrupt.deadline()) {
        (next, Some(deadline)) if next.is_none_or(|next| next > deadline) => {
            world.pass_until(deadline);
        }
        _ if world.step() => {}
        _ => return Err(FabricError::Stalled),
    }
    Ok(())
}

struct SimulatedFlight {
    world: Arc<Mutex<World>>,
    flight: u64,
}

impl Flight for SimulatedFlight {
    fn poll(&mut self) -> Option<Result<Completed, FabricError>> {
        self.world.lock().outcome(self.flight)
    }

    fn pause(&mut self, interrupt: &Interrupt<'_>) -> Result<(), FabricError> {
        play(&self.world, interrupt)
    }

    fn now(&self) -> Duration {
        self.world.lock().now()
    }
}

impl Drop for SimulatedFlight {
    fn drop(&mut self) {
        self.world.lock().abandon(self.flight);
    }
}

impl Fabric for SimulatedFabric {
    fn node(&self) -> NodeId {
        self.own.node()
    }

    fn now(&self) -> Duration {
        self.world.lock().now()
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
        let owner = Arc::clone(self.world.lock().node(key.node())?);
        Target::open(owner, key)
    }

    fn start(&self, batch: Batch) -> InFlight {
        if let Err(error) = self.own.check() {
            return InFlight::over(Err(error));
        }
        let flight = self.world.lock().begin(&self.own, batch);
        let world = Arc::clone(&self.world);
        InFlight::flying(SimulatedFlight { world, flight })
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
        loop {
            let count = bell.count();
            if count != seen {
                return Ok(count);
            }
            self.own.check()?;
            interrupt.check(self.now())?;
            play(&self.world, interrupt)?;
        }
    }
}
