//! What is a fabric whose nodes are processes?

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher as _, Hasher as _};
use std::io;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::Mutex;
use xxhash_rust::xxh3::xxh3_64;

use super::events::Process;
use super::flight::Messages;
use super::node::{Carrier, Limits, Node, Peer};
use super::segment::{Mapped, Place, Segment};
use super::stream::Stream;
use super::table::{OwnTable, TABLE_WORDS, Table};
use super::target::{KeyName, NeighbourMemory, Reach, ask};
use super::ucx::Engine;
use super::wire::Item;
use super::{Loss, ProcessOptions};
use crate::region::LentMemory as _;
use crate::registry::{Registry, Target};
use crate::remote::memory::{Served, WORD_BYTES, check_words};
use crate::remote::{
    Action, Batch, Completed, Doorbell, Fabric, Fields, InFlight, Interrupt, MemoryKey, NodeId,
    Registration, RemoteMemory, SharedMemory,
};
use crate::schedule::take_short_turns;
use crate::{FabricError, Region, RegionBuilder};

/// Memory below this is copied faster than mapped, and not worth a segment of its own.
const SMALLEST_SEGMENT_BYTES: usize = 4096;

/// A process's access to others. Dropping it closes it.
pub struct ProcessFabric {
    node: Arc<Node>,
    thread: Mutex<Option<JoinHandle<()>>>,
    /// Memory is allocated so that neighbours can map it, and theirs is mapped.
    maps_memory: bool,
    machine: u64,
    address: Vec<u8>,
}

impl ProcessFabric {
    /// Makes a node that nobody is connected with.
    ///
    /// # Errors
    /// [`FabricError::OutOfMemory`]; where UCX is to be used, [`FabricError::Unavailable`] if it is not
    /// installed, and [`FabricError::Transport`] if it has none of the transports.
    pub fn new(options: &ProcessOptions) -> Result<Arc<Self>, FabricError> {
        let engine = match &options.ucx {
            Some(ucx) => Some(Engine::new(&ucx.library, &ucx.names())?),
            None => None,
        };
        // Names of things of a process that had the number of this node before name nothing.
        let incarnation = RandomState::new().build_hasher().finish() >> 12 | 1 << 51;
        let names = Arc::new(AtomicU64::new(incarnation));
        let registry = Registry::new(options.node, names);
        let (table, place) = new_table(options.maps_memory)?;
        let table = OwnTable::new(Table::own(table, incarnation), incarnation);
        let worker = match &engine {
            Some(engine) => engine.turn().address()?,
            None => Vec::new(),
        };
        let machine = machine();
        let address = Address {
            node: options.node,
            incarnation,
            machine,
            process: std::process::id(),
            worker,
            table: place,
        };
        let limits = Limits {
            lost_after: options.lost_after,
            connect_within: options.connect_within,
        };
        let node = Arc::new(Node::new(engine, registry, table, incarnation, limits)?);
        let thread = {
            let node = Arc::clone(&node);
            let builder = std::thread::Builder::new().name("fabric".to_owned());
            builder.spawn(move || {
                // Where it is refused, answers come later, and are the same.
                let _ = take_short_turns();
                node.run();
            })
        };
        let thread = thread.map_err(|error| FabricError::Transport {
            call: "starting a thread",
            reason: error.to_string(),
        })?;
        Ok(Arc::new(Self {
            node,
            thread: Mutex::new(Some(thread)),
            maps_memory: options.maps_memory,
            machine,
            address: address.to_bytes(),
        }))
    }

    /// Nodes 0 to `nodes` - 1, all of this process and each with a thread and memory of its own, which
    /// are connected over loopback as processes of one machine are.
    ///
    /// # Errors
    /// Those of [`ProcessFabric::new`] and [`ProcessFabric::connect`], and [`FabricError::Transport`] if
    /// there is no loopback.
    pub fn connected(nodes: u32, maps_memory: bool) -> Result<Vec<Arc<Self>>, FabricError> {
        let new = |node| {
            Self::new(&ProcessOptions {
                maps_memory,
                ..ProcessOptions::new(NodeId(node))
            })
        };
        let fabrics: Vec<Arc<Self>> = (0..nodes).map(new).collect::<Result<_, _>>()?;
        for (place, one) in fabrics.iter().enumerate() {
            for other in &fabrics[..place] {
                let pair = loopback().map_err(|error| FabricError::Transport {
                    call: "connecting",
                    reason: error.to_string(),
                })?;
                one.connect(other.node.id(), &other.address, pair.0)?;
                other.connect(one.node.id(), &one.address, pair.1)?;
            }
        }
        Ok(fabrics)
    }

    /// What peers need to connect, as bytes: it travels by whatever way there is already.
    #[must_use]
    pub fn address(&self) -> Vec<u8> {
        self.address.clone()
    }

    /// Connects with a peer of this address, to which messages travel over a connection that the
    /// caller made. Both sides do so before either uses the other's memory; a peer that was
    /// restarted is connected anew.
    ///
    /// The connection carries messages from its next byte on, and is as private as it is. When it
    /// ends, the peer is lost.
    ///
    /// # Errors
    /// [`FabricError::Malformed`], [`FabricError::Transport`] if the connection is gone,
    /// [`FabricError::PeerLost`] of this node.
    pub fn connect(
        &self,
        node: NodeId,
        address: &[u8],
        connection: TcpStream,
    ) -> Result<(), FabricError> {
        let stream = Stream::new(connection).map_err(|error| FabricError::Transport {
            call: "connecting",
            reason: error.to_string(),
        })?;
        self.add_peer(node, address, Some(stream))
    }

    /// Connects with a peer of this address, to which UCX carries messages. Both sides do so, in any
    /// order, before either uses the other's memory.
    ///
    /// UCX 1.13 may end a process whose peer is killed in the milliseconds in which the connection
    /// is being made; [`ProcessFabric::connect`] has no such moment.
    ///
    /// # Errors
    /// [`FabricError::Malformed`], [`FabricError::Transport`] if there is no way to it,
    /// [`FabricError::Unsupported`] if either side was made without UCX,
    /// [`FabricError::PeerLost`] of this node.
    pub fn connect_by_ucx(&self, node: NodeId, address: &[u8]) -> Result<(), FabricError> {
        self.add_peer(node, address, None)
    }

    fn add_peer(
        &self,
        node: NodeId,
        address: &[u8],
        stream: Option<Stream>,
    ) -> Result<(), FabricError> {
        self.node.check()?;
        let address = Address::from_bytes(address)?;
        if address.node != node || node == self.node.id() {
            return Err(FabricError::Malformed("address of this node"));
        }
        let is_lost = Arc::new(AtomicBool::new(false));
        let carrier = match stream {
            Some(stream) => Carrier::Stream(stream),
            None => self.new_endpoint(&address.worker, &is_lost)?,
        };
        let is_near = self.maps_memory && address.machine == self.machine;
        let process = is_near.then(|| Process::watch(address.process)).flatten();
        let bytes = (TABLE_WORDS * WORD_BYTES) as u64;
        let table = address.table.filter(|_| is_near);
        let table = table.and_then(|place| Mapped::open(place, bytes, true));
        let incarnation = address.incarnation;
        let table = table.map(|table| Table::neighbours(table, incarnation));
        // That it is the peer's memory is seen by the number that is there.
        let table = table.filter(Table::is_alive);
        let peer = Peer::new(node, incarnation, carrier, is_lost, process, table);
        self.node.add_peer(peer);
        self.node.wake_thread();
        Ok(())
    }

    fn new_endpoint(
        &self,
        worker: &[u8],
        is_lost: &Arc<AtomicBool>,
    ) -> Result<Carrier, FabricError> {
        let without =
            FabricError::Unsupported("send messages by UCX, which it or its peer was made without");
        let engine = self.node.engine.as_ref().filter(|_| !worker.is_empty());
        let engine = engine.ok_or(without)?;
        let endpoint = engine.turn().connect(worker, is_lost)?;
        Ok(Carrier::Ucx(Arc::clone(engine), endpoint))
    }

    /// True if the peer's memory is read by loads of this process.
    #[must_use]
    pub fn is_neighbour(&self, node: NodeId) -> bool {
        let peer = self.node.peer(node);
        peer.is_ok_and(|peer| peer.table().is_some())
    }

    /// Why a peer is lost: `None` if it is not, or was never connected.
    #[must_use]
    pub fn loss(&self, node: NodeId) -> Option<Loss> {
        self.node.loss(node)
    }

    /// Ends the node: peers lose it, and all that it still tries is an error.
    pub fn close(&self) {
        if self.thread.lock().is_some() {
            self.node.finish_greetings();
        }
        self.node.registry.close();
        self.node.table.table().close();
        self.node.say_goodbye();
        self.node.wake_thread();
        if let Some(thread) = self.thread.lock().take() {
            // Our thread has nothing to panic of; if it did, there is nothing more to end.
            let _ = thread.join();
        }
    }

    /// Registers a memory that others map at this place, if they can.
    fn registration(
        &self,
        memory: Served,
        place: Option<Place>,
    ) -> Result<Registration, FabricError> {
        let is_shared = matches!(memory, Served::Shared(_));
        let length = memory.length();
        let (number, guard) = self.node.registry.register(memory)?;
        let slot = self.node.table.offer(number)?;
        let name = KeyName {
            number,
            slot: slot.place(),
            is_shared,
            place,
        };
        let key = name.key(self.node.id(), length);
        Ok(Registration::new(key, (slot, guard)))
    }

    /// Does what can be done at once, and finds what is to be asked of whom.
    fn execute(&self, batch: &mut Batch) -> Result<Messages, FabricError> {
        self.node.check()?;
        let mut messages = Messages::default();
        for place in 0..batch.len() {
            let operation = batch.operations()[place].clone();
            if let Action::Probe { node } = operation.action {
                if node != self.node.id() {
                    messages.add(&self.node.peer(node)?, Item::Probe);
                }
                continue;
            }
            let memory = batch.target(&operation).clone();
            match memory.handle::<Reach>()? {
                Reach::Own(target) => target.perform(batch, &operation)?,
                Reach::Neighbours(memory) => memory.perform(batch, &operation)?,
                Reach::Served { peer, number } => ask(&mut messages, peer, *number, &operation),
            }
        }
        Ok(messages)
    }

    fn begin(&self, mut batch: Batch) -> Result<InFlight, FabricError> {
        let mut messages = self.execute(&mut batch)?;
        let mut bells = batch.bells().to_vec();
        if messages.is_empty() {
            messages = self.node.ring(&bells)?;
            bells.clear();
        } else if let Some(peer) = messages.only_peer().cloned()
            && peer.table().is_none()
            && bells.iter().all(|bell| bell.node == peer.node())
            && messages.has_room_for(bells.len())
        {
            // One message, whose items are done in order.
            for bell in bells.drain(..) {
                let number = bell.number;
                messages.add(&peer, Item::Ring { number });
            }
        }
        if messages.is_empty() && bells.is_empty() {
            self.node.check()?;
            return Ok(InFlight::over(Ok(Completed::new(batch))));
        }
        self.node.fly(batch, messages, bells)
    }
}

impl Drop for ProcessFabric {
    fn drop(&mut self) {
        self.close();
    }
}

/// Both ends of a connection within this machine.
fn loopback() -> io::Result<(TcpStream, TcpStream)> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let one = TcpStream::connect(listener.local_addr()?)?;
    loop {
        let (other, address) = listener.accept()?;
        // Somebody else may have found the port.
        if address == one.local_addr()? {
            return Ok((one, other));
        }
    }
}

/// The words of a table, and where neighbours find them.
fn new_table(maps_memory: bool) -> Result<(SharedMemory, Option<Place>), FabricError> {
    if !maps_memory {
        return Ok((SharedMemory::new(TABLE_WORDS), None));
    }
    new_words(TABLE_WORDS).map(|(words, place)| (words, Some(place)))
}

/// Words that others can map, and where.
fn new_words(words: usize) -> Result<(SharedMemory, Place), FabricError> {
    let segment = Segment::new(words * WORD_BYTES)?;
    let place = segment.place(segment.bytes().cast().as_ptr());
    Ok((SharedMemory::lent(Box::new(segment), words), place))
}

impl Fabric for ProcessFabric {
    fn node(&self) -> NodeId {
        self.node.id()
    }

    fn now(&self) -> Duration {
        self.node.now()
    }

    fn allocate(&self, length: usize) -> Result<RegionBuilder, FabricError> {
        if !self.maps_memory || length < SMALLEST_SEGMENT_BYTES {
            return Ok(RegionBuilder::new(length));
        }
        let segment = Segment::new(length)?;
        Ok(RegionBuilder::in_memory(Box::new(segment), length))
    }

    fn register(&self, region: &Region) -> Result<Registration, FabricError> {
        let segment = region.lender::<Segment>().filter(|_| self.maps_memory);
        let place = segment.map(|segment| segment.place(region.as_ptr()));
        self.registration(Served::Region(region.clone()), place)
    }

    fn share(&self, words: usize) -> Result<(SharedMemory, Registration), FabricError> {
        check_words(words)?;
        let (memory, place) = if self.maps_memory {
            let (memory, place) = new_words(words)?;
            (memory, Some(place))
        } else {
            (SharedMemory::new(words), None)
        };
        let registration = self.registration(Served::Shared(memory.clone()), place)?;
        Ok((memory, registration))
    }

    fn open(&self, key: &MemoryKey) -> Result<RemoteMemory, FabricError> {
        self.node.check()?;
        if key.node() == self.node.id() {
            let name = KeyName::of(key)?;
            let target = Target::of_number(Arc::clone(&self.node.registry), name.number)?;
            return Ok(RemoteMemory::new(key.clone(), Reach::Own(target)));
        }
        let peer = self.node.peer(key.node())?;
        let name = KeyName::of(key)?;
        let number = name.number;
        let place = name.place.filter(|_| peer.table().is_some());
        let mapped = place.and_then(|place| Mapped::open(place, key.length(), name.is_shared));
        if let Some(mapped) = mapped {
            let memory = NeighbourMemory::new(peer, mapped, &name, key.length());
            // It is the one that is meant if its owner still offers it.
            memory.check()?;
            return Ok(RemoteMemory::new(key.clone(), Reach::Neighbours(memory)));
        }
        Ok(RemoteMemory::new(
            key.clone(),
            Reach::Served { peer, number },
        ))
    }

    fn start(&self, batch: Batch) -> InFlight {
        self.begin(batch)
            .unwrap_or_else(|error| InFlight::over(Err(error)))
    }

    fn try_read(
        &self,
        memory: &RemoteMemory,
        offset: u64,
        into: &mut [u8],
    ) -> Result<bool, FabricError> {
        self.node.check()?;
        match memory.handle::<Reach>()? {
            Reach::Own(target) => target.read(offset, into)?,
            Reach::Neighbours(memory) => memory.read_checked(offset, into)?,
            Reach::Served { .. } => return Ok(false),
        }
        Ok(true)
    }

    fn map(&self, memory: &RemoteMemory) -> Result<Option<Region>, FabricError> {
        self.node.check()?;
        match memory.handle::<Reach>()? {
            Reach::Own(target) => target.region(),
            Reach::Neighbours(memory) => memory.region(),
            Reach::Served { .. } => Ok(None),
        }
    }

    fn disconnect(&self, node: NodeId) {
        self.node.disconnect(node);
    }

    fn doorbell(&self) -> Result<Doorbell, FabricError> {
        self.node.table.doorbell(self.node.id())
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

/// A number of this start of the machine and of the processes that see each other there: segments are
/// found by the numbers of processes.
fn machine() -> u64 {
    let mut facts = std::fs::read("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let processes = std::fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    facts.extend(processes.as_os_str().as_encoded_bytes());
    xxh3_64(&facts)
}

/// What peers need to connect.
struct Address {
    node: NodeId,
    incarnation: u64,
    /// Equal where processes can map each other's memory.
    machine: u64,
    process: u32,
    worker: Vec<u8>,
    /// Where the table can be mapped.
    table: Option<Place>,
}

impl Address {
    fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.extend(self.node.0.to_le_bytes());
        bytes.extend(self.incarnation.to_le_bytes());
        bytes.extend(self.machine.to_le_bytes());
        bytes.extend(self.process.to_le_bytes());
        bytes.extend((self.worker.len() as u32).to_le_bytes());
        bytes.extend(&self.worker);
        if let Some(table) = self.table {
            table.encode(&mut bytes);
        }
        bytes.extend(xxh3_64(&bytes).to_le_bytes());
        bytes
    }

    /// Only what [`Address::to_bytes`] wrote: UCX believes what it is given.
    fn from_bytes(bytes: &[u8]) -> Result<Self, FabricError> {
        let malformed = FabricError::Malformed("address of a node");
        let (bytes, sum) = bytes.split_last_chunk().ok_or(malformed.clone())?;
        if xxh3_64(bytes) != u64::from_le_bytes(*sum) {
            return Err(malformed);
        }
        let mut fields = Fields::new(bytes, "address of a node");
        let node = NodeId(fields.u32()?);
        let (incarnation, machine) = (fields.u64()?, fields.u64()?);
        let (process, length) = (fields.u32()?, fields.u32()? as usize);
        let worker = fields.bytes(length)?.to_vec();
        let table = match fields.rest() {
            [] => None,
            _ => Some(Place::decode(&mut fields)?),
        };
        fields.end()?;
        Ok(Self {
            node,
            incarnation,
            machine,
            process,
            worker,
            table,
        })
    }
}
