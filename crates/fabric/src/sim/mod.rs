//! What becomes of nodes whose network delays, loses and reorders, and that crash at any moment?
//!
//! A [`Simulation`] plays all nodes in one thread and in a time of its own, from a seed: the same
//! seed and the same calls give the same events, to the last bit. An operation is cut into pieces;
//! each travels to its target as a packet, is done there at most once, and is answered by a packet.
//! What is lost is sent again, and after some attempts its target is lost for that batch. So a crash
//! may come between any two pieces of a read or write, and between an atomic operation and its
//! answer.
//!
//! Waiting for a batch or a bell plays events until it is over; [`Simulation::step`] plays one. A
//! wait for what no event can bring ends with its deadline, or with
//! [`FabricError::Stalled`](crate::FabricError::Stalled).

mod fabric;
mod flights;
mod random;
mod world;

use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

pub use self::fabric::SimulatedFabric;
use self::random::Random;
use self::world::World;
use crate::remote::NodeId;

/// How bad the network is.
#[derive(Clone, Debug)]
pub struct SimulationOptions {
    /// How long a packet travels.
    pub delay: Range<Duration>,
    /// Of a thousand packets, how many are lost.
    pub lost_per_mille: u32,
    /// Packets from one node to another arrive as they were sent.
    pub keeps_order: bool,
    /// Bytes of a large operation that travel together, at least a word.
    pub piece_bytes: usize,
    /// How long after the loss of a packet it is sent again.
    pub retry_after: Duration,
    /// Attempts after which the target is lost, at least one.
    pub attempts: u32,
    /// What runs the test, to be printed with the seed of a failure.
    pub command: &'static str,
}

impl Default for SimulationOptions {
    /// A good network: short delays, nothing lost, but no order either.
    fn default() -> Self {
        Self {
            delay: Duration::from_micros(1)..Duration::from_micros(4),
            lost_per_mille: 0,
            keeps_order: false,
            piece_bytes: 4096,
            retry_after: Duration::from_micros(50),
            attempts: 8,
            command: "cargo test -p jindou-fabric --test simulation",
        }
    }
}

impl SimulationOptions {
    /// A network that is bad in some way, which depends on the seed.
    #[must_use]
    pub fn hostile(seed: u64) -> Self {
        let mut random = Random::new(!seed);
        let longest = Duration::from_nanos(100 << random.below(12));
        let lost_per_mille = match random.below(3) {
            0 => 0,
            1 => 10,
            _ => 150,
        };
        Self {
            delay: Duration::from_nanos(50)..longest,
            lost_per_mille,
            keeps_order: random.chance(250),
            piece_bytes: 8 << random.below(7),
            ..Self::default()
        }
    }
}

/// Nodes and the network between them, played from a seed.
///
/// ```
/// use jindou_fabric::remote::{Fabric, Interrupt, NodeId};
/// use jindou_fabric::sim::{Simulation, SimulationOptions};
/// use jindou_fabric::FabricError;
///
/// let simulation = Simulation::new(7, 2, SimulationOptions::default());
/// let here = simulation.fabric(0);
/// assert_eq!(here.probe(NodeId(1), &Interrupt::never()), Ok(()));
/// simulation.crash(NodeId(1));
/// let lost = here.probe(NodeId(1), &Interrupt::never());
/// assert_eq!(lost, Err(FabricError::PeerLost(NodeId(1))));
/// ```
pub struct Simulation {
    world: Arc<Mutex<World>>,
    seed: u64,
    command: &'static str,
}

impl Simulation {
    /// Nodes 0 to `nodes` - 1.
    ///
    /// # Panics
    /// If a piece is shorter than a word or nothing is attempted.
    #[must_use]
    pub fn new(seed: u64, nodes: u32, options: SimulationOptions) -> Self {
        assert!(options.piece_bytes >= 8 && options.attempts >= 1);
        let command = options.command;
        let world = Arc::new(Mutex::new(World::new(seed, nodes, options)));
        Self {
            world,
            seed,
            command,
        }
    }

    /// The access of a node.
    ///
    /// # Panics
    /// If there is no such node.
    #[must_use]
    pub fn fabric(&self, node: u32) -> Arc<SimulatedFabric> {
        let own = Arc::clone(self.world.lock().node(NodeId(node)).expect("a node of it"));
        Arc::new(SimulatedFabric::new(Arc::clone(&self.world), own))
    }

    /// Ends a node: its memory and bells are gone, all that it tries is an error, and each packet
    /// that it has on its way arrives or not.
    ///
    /// # Panics
    /// If there is no such node.
    pub fn crash(&self, node: NodeId) {
        self.world.lock().crash(node);
    }

    /// Crashes a node after so many more events.
    pub fn crash_after(&self, node: NodeId, events: u64) {
        self.world.lock().crash_after(node, events);
    }

    /// Begins a node anew, without any memory, crashing it first; its access.
    ///
    /// # Panics
    /// If there is no such node.
    #[must_use]
    pub fn restart(&self, node: NodeId) -> Arc<SimulatedFabric> {
        self.world.lock().restart(node);
        self.fabric(node.0)
    }

    /// Plays the next event; false if there is none.
    #[must_use]
    pub fn step(&self) -> bool {
        self.world.lock().step()
    }

    /// Events so far.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.world.lock().events()
    }

    /// The simulated time.
    #[must_use]
    pub fn now(&self) -> Duration {
        self.world.lock().now()
    }

    /// A number that differs, almost surely, where any event so far does.
    #[must_use]
    pub fn trace(&self) -> u64 {
        self.world.lock().trace()
    }
}

impl fmt::Debug for Simulation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (seed, events) = (self.seed, self.events());
        let command = self.command;
        write!(
            f,
            "simulation of seed {seed} after {events} events; JINDOU_SEED={seed} JINDOU_CASES=1 {command}"
        )
    }
}

impl Drop for Simulation {
    /// Says how to replay what a failing test simulated.
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{self:?}");
        }
    }
}
