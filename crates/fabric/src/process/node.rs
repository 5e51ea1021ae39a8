//! What does a node know of its peers, and what does it do with their messages?

use std::collections::HashMap;
use std::io::ErrorKind;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use parking_lot::{Mutex, RwLock};

use super::Loss;
use super::due::Due;
use super::events::{EventFd, Process, event, wait_for};
use super::flight::{MessageFlight, Messages, Waiting};
use super::stream::Stream;
use super::table::{OwnTable, Table};
use super::ucx::{Endpoint, Engine, Turn};
use super::wire::{Asker, Item, Message, due, goodbye, refuses, request, serve, sort};
use crate::FabricError;
use crate::registry::Registry;
use crate::remote::{Batch, BellAddress, InFlight, NodeId};

/// Requests that are kept until their senders are connected.
const MAX_EARLY: usize = 1 << 10;
/// Batches that are under way at a time.
const MAX_FLIGHTS: usize = 1 << 16;
/// The flight of a first message.
const HELLO: u64 = 0;
/// How long a node that closes waits for peers that it has just been connected with.
const GREETING: Duration = Duration::from_secs(1);
/// The thread looks this often whether peers are alive, if nothing happens.
const LOOK_MS: i32 = 200;

/// What carries messages to a peer.
pub(super) enum Carrier {
    /// A way of UCX.
    Ucx(Arc<Engine>, Endpoint),
    /// A connection that the caller made.
    Stream(Stream),
}

/// A peer that was connected.
pub(super) struct Peer {
    node: NodeId,
    incarnation: u64,
    carrier: Carrier,
    is_lost: Arc<AtomicBool>,
    /// Why, if this node found that out.
    loss: OnceLock<Loss>,
    /// It answered our first message: both ways are open.
    is_greeted: AtomicBool,
    /// When it was last heard of, and when it was last asked, in milliseconds of the node's time.
    heard_ms: AtomicU64,
    asked_ms: AtomicU64,
    /// Readable once its process ended, where it is one of this machine.
    process: Option<Process>,
    /// On the same machine.
    table: Option<Table>,
}

impl Peer {
    pub(super) fn new(
        node: NodeId,
        incarnation: u64,
        carrier: Carrier,
        is_lost: Arc<AtomicBool>,
        process: Option<Process>,
        table: Option<Table>,
    ) -> Self {
        Self {
            node,
            incarnation,
            carrier,
            is_lost,
            loss: OnceLock::new(),
            is_greeted: AtomicBool::new(false),
            heard_ms: AtomicU64::new(0),
            asked_ms: AtomicU64::new(0),
            process,
            table,
        }
    }

    pub(super) fn node(&self) -> NodeId {
        self.node
    }

    fn stream(&self) -> Option<&Stream> {
        match &self.carrier {
            Carrier::Ucx(..) => None,
            Carrier::Stream(stream) => Some(stream),
        }
    }

    fn asker(&self) -> Asker {
        Asker {
            node: self.node,
            incarnation: self.incarnation,
        }
    }

    /// It is lost from now on, for the first reason that is given. The thread closes its connection.
    fn lose(&self, loss: Loss) {
        if !self.is_lost() {
            // Of two threads that lose it at once either reason is as good.
            let _ = self.loss.set(loss);
        }
        self.is_lost.store(true, Ordering::SeqCst);
    }

    /// Why it is lost, if it is.
    pub(super) fn loss(&self) -> Option<Loss> {
        let loss = || self.loss.get().copied().unwrap_or(Loss::Ended);
        self.is_lost().then(loss)
    }

    /// For how long it has answered nothing though it was asked, over a connection.
    fn waiting_ms(&self, now_ms: u64) -> u64 {
        let waiting = |stream: &Stream| stream.waiting_ms(now_ms);
        self.stream().map_or(0, waiting)
    }

    /// Ends the connection. Ways of UCX stay, and are not used any more.
    fn close(&self) {
        match &self.carrier {
            Carrier::Ucx(..) => {}
            Carrier::Stream(stream) => stream.close(),
        }
    }

    pub(super) fn table(&self) -> Option<&Table> {
        self.table.as_ref()
    }

    pub(super) fn is_lost(&self) -> bool {
        let is_dead = || self.table.as_ref().is_some_and(|table| !table.is_alive());
        self.is_lost.load(Ordering::SeqCst) || is_dead()
    }

    pub(super) fn check(&self) -> Result<(), FabricError> {
        if self.is_lost() {
            return Err(FabricError::PeerLost(self.node));
        }
        Ok(())
    }
}

/// What all parts of a fabric share.
pub(super) struct Node {
    /// Where UCX may carry messages.
    pub(super) engine: Option<Arc<Engine>>,
    pub(super) registry: Arc<Registry>,
    pub(super) table: Arc<OwnTable>,
    asker: Asker,
    start: Instant,
    peers: RwLock<HashMap<NodeId, Arc<Peer>>>,
    flights: Mutex<HashMap<u64, Arc<MessageFlight>>>,
    next_flight: AtomicU64,
    early: Mutex<Vec<(Asker, Vec<u64>)>>,
    bell: EventFd,
    limits: Limits,
}

/// How long a peer may say nothing.
#[derive(Clone, Copy)]
pub(super) struct Limits {
    pub(super) lost_after: Duration,
    pub(super) connect_within: Duration,
}

impl Node {
    pub(super) fn new(
        engine: Option<Arc<Engine>>,
        registry: Arc<Registry>,
        table: Arc<OwnTable>,
        incarnation: u64,
        limits: Limits,
    ) -> Result<Self, FabricError> {
        let node = registry.node();
        let asker = Asker { node, incarnation };
        Ok(Self {
            engine,
            registry,
            table,
            asker,
            start: Instant::now(),
            peers: RwLock::default(),
            flights: Mutex::default(),
            // Answers to a node that had this number before are of no flight of ours.
            next_flight: AtomicU64::new(incarnation | 1),
            early: Mutex::default(),
            bell: EventFd::new()?,
            limits,
        })
    }

    pub(super) fn id(&self) -> NodeId {
        self.asker.node
    }

    pub(super) fn asker(&self) -> Asker {
        self.asker
    }

    pub(super) fn now(&self) -> Duration {
        self.start.elapsed()
    }

    fn now_ms(&self) -> u64 {
        self.now().as_millis() as u64
    }

    /// An error if this node was closed.
    pub(super) fn check(&self) -> Result<(), FabricError> {
        self.registry.check()
    }

    /// A peer that is not known to be lost.
    pub(super) fn peer(&self, node: NodeId) -> Result<Arc<Peer>, FabricError> {
        let peer = self.peers.read().get(&node).cloned();
        let peer = peer.ok_or(FabricError::UnknownNode(node))?;
        peer.check()?;
        Ok(peer)
    }

    /// A peer is connected, in place of the one that had its number: handles what it asked already.
    pub(super) fn add_peer(&self, peer: Peer) {
        let peer = Arc::new(peer);
        let asker = peer.asker();
        peer.heard_ms.store(self.now_ms(), Ordering::Relaxed);
        self.greet(&peer);
        let before = self.peers.write().insert(peer.node, peer);
        if let Some(before) = before {
            before.lose(Loss::Replaced);
            before.close();
        }
        let waiting = {
            let mut early = self.early.lock();
            let (mine, others) = early.drain(..).partition(|(from, _)| *from == asker);
            *early = others;
            let mine: Vec<(Asker, Vec<u64>)> = mine;
            mine
        };
        for (from, words) in waiting {
            self.serve(from, words);
        }
    }

    /// Begins to send the messages of a batch.
    pub(super) fn fly(
        self: &Arc<Self>,
        batch: Batch,
        messages: Messages,
        bells: Vec<BellAddress>,
    ) -> Result<InFlight, FabricError> {
        let number = self.next_flight.fetch_add(1, Ordering::Relaxed);
        let flight = Arc::new(MessageFlight::new(number, batch, messages, bells));
        {
            let mut flights = self.flights.lock();
            if flights.len() >= MAX_FLIGHTS {
                let (what, limit) = ("batches under way", MAX_FLIGHTS);
                return Err(FabricError::Exhausted { what, limit });
            }
            flights.insert(number, Arc::clone(&flight));
        }
        flight.advance(self);
        self.send_posts();
        let node = Arc::clone(self);
        Ok(InFlight::flying(Waiting { node, flight }))
    }

    /// Asks whether a peer is there.
    fn greet(&self, peer: &Peer) {
        let words = request(self.asker, HELLO, 0, &[], &Batch::new());
        self.ask(peer, words, due(HELLO, 0, &[]));
    }

    /// Sends a message that is answered. One for a peer that is carried by UCX waits for [`Node::send_posts`].
    pub(super) fn ask(&self, peer: &Peer, words: Vec<u64>, due: Due) {
        self.send_for(peer, words, Some(due));
    }

    /// Sends a message that is not answered, as [`Node::ask`].
    fn send(&self, peer: &Peer, words: Vec<u64>) {
        self.send_for(peer, words, None);
    }

    fn send_for(&self, peer: &Peer, words: Vec<u64>, due: Option<Due>) {
        match &peer.carrier {
            Carrier::Ucx(engine, endpoint) => engine.post(*endpoint, words),
            Carrier::Stream(stream) => {
                let sent = stream.send(&words, due, self.now_ms());
                if sent.is_err() {
                    peer.lose(Loss::Ended);
                }
                if !matches!(sent, Ok(true)) {
                    self.wake_thread();
                }
            }
        }
    }

    /// Has UCX send what it is to send.
    fn send_posts(&self) {
        let engine = self.engine.as_ref().filter(|engine| engine.has_posts());
        let Some(engine) = engine else { return };
        let mut turn = engine.turn();
        turn.flush();
        let is_waiting = turn.has_sends();
        drop(turn);
        if is_waiting {
            self.wake_thread();
        }
    }

    pub(super) fn forget(&self, flight: u64) {
        self.flights.lock().remove(&flight);
    }

    /// Rings bells of this node and of neighbours; what is to be sent to ring the others.
    pub(super) fn ring(&self, bells: &[BellAddress]) -> Result<Messages, FabricError> {
        let mut messages = Messages::default();
        for bell in bells {
            let number = bell.number;
            if bell.node == self.id() {
                self.table.table().ring(bell.node, number)?;
                continue;
            }
            let peer = self.peer(bell.node)?;
            match peer.table() {
                Some(table) => table.ring(bell.node, number)?,
                None => messages.add(&peer, Item::Ring { number }),
            }
        }
        Ok(messages)
    }

    /// Lets UCX work on this thread, unless another one does or it carries nothing; false then.
    pub(super) fn try_progress(&self) -> bool {
        let Some(mut turn) = self.engine.as_ref().and_then(|engine| engine.try_turn()) else {
            return false;
        };
        self.progress(&mut turn);
        // For the thread that waits for events: none is lost because it was seen here.
        while !turn.arm() {
            self.progress(&mut turn);
        }
        true
    }

    fn progress(&self, turn: &mut Turn<'_>) {
        turn.flush();
        for words in turn.progress() {
            self.handle(words);
        }
        turn.flush();
    }

    /// Reads and writes the connections that callers made.
    fn progress_streams(&self) {
        let peers: Vec<_> = self.peers.read().values().cloned().collect();
        for peer in peers.iter().filter(|peer| !peer.is_lost()) {
            let Some(stream) = peer.stream() else {
                continue;
            };
            let received = stream.flush().and_then(|_| stream.receive());
            match received {
                Ok(messages) => {
                    let mut messages = messages.into_iter();
                    let handled =
                        messages.try_for_each(|words| self.handle_of(peer, stream, words));
                    if let Err(loss) = handled {
                        peer.lose(loss);
                    }
                }
                Err(error) if error.kind() == ErrorKind::InvalidData => {
                    peer.lose(Loss::Nonsense("a message has a length that cannot be"));
                }
                Err(_) => peer.lose(Loss::Ended),
            }
        }
    }

    /// A message came over the connection of a peer, which carries only what that sends.
    ///
    /// # Errors
    /// Why the peer is lost by it.
    fn handle_of(&self, peer: &Peer, stream: &Stream, words: Vec<u64>) -> Result<(), Loss> {
        let now = self.now_ms();
        match sort(words) {
            Some(Message::Request(from, words)) if from == peer.asker() => {
                peer.heard_ms.store(now, Ordering::Relaxed);
                let answer = serve(&words, &self.registry, self.table.table());
                if refuses(&answer) {
                    return Err(Loss::Nonsense("it asks for what no peer asks"));
                }
                self.send(peer, answer);
                Ok(())
            }
            Some(Message::Answer(number, place, words)) => {
                let settled = stream.settle(&words, peer.node, now);
                settled.map_err(Loss::Nonsense)?;
                peer.heard_ms.store(now, Ordering::Relaxed);
                match number {
                    HELLO => peer.is_greeted.store(true, Ordering::SeqCst),
                    _ => self.deliver(number, place, &words),
                }
                Ok(())
            }
            Some(Message::Goodbye(from)) if from == peer.asker() => Err(Loss::Closed),
            Some(Message::Request(..) | Message::Goodbye(_)) => {
                Err(Loss::Nonsense("it speaks in the name of another node"))
            }
            None => Err(Loss::Nonsense("it sends what is no message")),
        }
    }

    /// A message came by UCX, which does not say from whom.
    fn handle(&self, words: Vec<u64>) {
        match sort(words) {
            Some(Message::Request(from, words)) => self.serve(from, words),
            Some(Message::Answer(HELLO, _, words)) => self.be_greeted(&words),
            Some(Message::Answer(number, place, words)) => {
                self.hear(&words);
                self.deliver(number, place, &words);
            }
            Some(Message::Goodbye(from)) => {
                if let Some(peer) = self.asker_peer(from) {
                    peer.lose(Loss::Closed);
                    // The thread closes its connection.
                    self.wake_thread();
                }
            }
            None => {}
        }
    }

    /// The peer that asks, as it was connected.
    fn asker_peer(&self, from: Asker) -> Option<Arc<Peer>> {
        let peer = self.peers.read().get(&from.node).cloned();
        peer.filter(|peer| peer.incarnation == from.incarnation)
    }

    /// Gives up a peer: its connection ends, as it will see.
    pub(super) fn disconnect(&self, node: NodeId) {
        let peer = self.peers.read().get(&node).cloned();
        if let Some(peer) = peer {
            peer.lose(Loss::GivenUp);
            peer.close();
            self.wake_thread();
        }
    }

    /// Why the peer that was connected last with this number is lost, if it is.
    pub(super) fn loss(&self, node: NodeId) -> Option<Loss> {
        let peers = self.peers.read();
        peers.get(&node).and_then(|peer| peer.loss())
    }

    /// Tells all peers that this node closes, and ends the connections.
    pub(super) fn say_goodbye(&self) {
        for peer in self.peers.read().values().filter(|peer| !peer.is_lost()) {
            self.send(peer, goodbye(self.asker));
        }
        if let Some(engine) = &self.engine {
            engine.turn().drain();
        }
        for peer in self.peers.read().values() {
            peer.close();
        }
    }

    /// The peer that answered is alive.
    fn hear(&self, answer: &[u64]) -> Option<Arc<Peer>> {
        let node = u32::try_from(answer[1]).ok()?;
        let peer = self.peers.read().get(&NodeId(node)).cloned()?;
        peer.heard_ms.store(self.now_ms(), Ordering::Relaxed);
        Some(peer)
    }

    /// A peer answered the first message, or one that asks whether it is alive.
    fn be_greeted(&self, answer: &[u64]) {
        if let Some(peer) = self.hear(answer) {
            peer.is_greeted.store(true, Ordering::SeqCst);
        }
    }

    /// Asks peers that say nothing whether they are alive, and gives up those that do not answer. Asks those, too,
    /// that leave messages unanswered: the answer to the question is the proof that theirs is missing.
    ///
    /// UCX notices most that end, but not one that ends while the connection is being made.
    fn look_after(&self) {
        let now = self.now_ms();
        for peer in self.peers.read().values().filter(|peer| !peer.is_lost()) {
            let is_greeted = peer.is_greeted.load(Ordering::SeqCst);
            let limit = match is_greeted {
                true => self.limits.lost_after,
                false => self.limits.connect_within,
            };
            let limit = limit.as_millis() as u64;
            let silent = now.saturating_sub(peer.heard_ms.load(Ordering::Relaxed));
            // Its other messages do not say that it reads ours.
            let waiting = peer.waiting_ms(now);
            if peer.process.as_ref().is_some_and(Process::has_ended) {
                peer.lose(Loss::Ended);
            } else if silent > limit {
                peer.lose(Loss::Silent);
            } else if waiting > limit {
                peer.lose(Loss::Unanswering);
            } else if is_greeted && silent.max(waiting) > limit / 4 {
                let asked = peer.asked_ms.load(Ordering::Relaxed);
                if now.saturating_sub(asked) > limit / 4 {
                    peer.asked_ms.store(now, Ordering::Relaxed);
                    self.greet(peer);
                }
            }
        }
    }

    /// Lets connections that are being made be made, before they are closed: UCX 1.13 ends a process
    /// whose peer closes between the first packets.
    pub(super) fn finish_greetings(&self) {
        let end = Instant::now() + GREETING;
        let is_open = |peer: &Arc<Peer>| !peer.is_greeted.load(Ordering::SeqCst) && !peer.is_lost();
        while self.peers.read().values().any(is_open) && Instant::now() < end {
            let _ = self.try_progress();
            std::thread::yield_now();
        }
    }

    fn serve(&self, from: Asker, words: Vec<u64>) {
        match self.asker_peer(from) {
            Some(peer) => {
                peer.heard_ms.store(self.now_ms(), Ordering::Relaxed);
                let answer = serve(&words, &self.registry, self.table.table());
                self.send(&peer, answer);
            }
            None => {
                let mut early = self.early.lock();
                if early.len() < MAX_EARLY {
                    early.push((from, words));
                }
            }
        }
    }

    fn deliver(&self, number: u64, place: usize, words: &[u64]) {
        let flight = self.flights.lock().get(&number).cloned();
        if let Some(flight) = flight {
            flight.answer(place, words, self);
            if flight.is_forgotten() {
                self.forget(number);
            }
        }
    }

    /// Ends batches that wait for peers that are lost.
    fn check_flights(&self) {
        let flights: Vec<_> = self.flights.lock().values().cloned().collect();
        for flight in &flights {
            flight.check(self);
        }
        self.flights
            .lock()
            .retain(|_, flight| !flight.is_forgotten());
    }

    fn close_lost(&self) -> bool {
        let peers = self.peers.read();
        let lost: Vec<_> = peers.values().filter(|peer| peer.is_lost()).collect();
        for peer in &lost {
            peer.close();
        }
        !lost.is_empty()
    }

    /// What the fabric's own thread does until the node is closed: answers peers.
    pub(super) fn run(&self) {
        while self.check().is_ok() {
            self.progress_streams();
            self.look_after();
            let has_lost = self.close_lost();
            let is_idle = self.engine.as_ref().is_none_or(|engine| {
                let mut turn = engine.turn();
                self.progress(&mut turn);
                turn.arm()
            });
            if has_lost {
                self.check_flights();
            }
            if is_idle {
                self.wait_for_events();
            }
        }
        self.check_flights();
    }

    /// Blocks until a message comes, a neighbour ends, or it is time to look.
    fn wait_for_events(&self) {
        let peers: Vec<_> = {
            let peers = self.peers.read();
            peers
                .values()
                .filter(|peer| !peer.is_lost())
                .cloned()
                .collect()
        };
        let mut events = vec![event(self.bell.descriptor(), false)];
        let engine = self.engine.iter();
        events.extend(engine.map(|engine| event(engine.event_fd(), false)));
        let processes = peers.iter().filter_map(|peer| peer.process.as_ref());
        events.extend(processes.map(|process| event(process.descriptor(), false)));
        let streams = peers.iter().filter_map(|peer| peer.stream());
        events.extend(streams.map(|stream| event(stream.descriptor(), stream.has_outgoing())));
        wait_for(&mut events, LOOK_MS);
        self.bell.clear();
    }

    /// Has the thread look again.
    pub(super) fn wake_thread(&self) {
        self.bell.ring();
    }
}
