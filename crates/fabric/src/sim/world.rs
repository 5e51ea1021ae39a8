//! Which event comes next in a simulation, and what does it change?

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use super::SimulationOptions;
use super::flights::{FlightRecord, deliver, perform, pieces, rings};
use super::random::Random;
use crate::FabricError;
use crate::registry::Registry;
use crate::remote::{Batch, Completed, NodeId};

/// All nodes, and all that is under way between them.
pub(super) struct World {
    options: SimulationOptions,
    random: Random,
    now: Duration,
    /// By time, and then as they were made.
    queue: BTreeMap<(Duration, u64), Event>,
    made: u64,
    played: u64,
    trace: u64,
    nodes: Vec<Arc<Registry>>,
    /// The next name of a memory or bell.
    next: Arc<AtomicU64>,
    flights: BTreeMap<u64, FlightRecord>,
    next_flight: u64,
    /// By the number of the event before which they happen.
    crashes: BTreeMap<u64, Vec<NodeId>>,
    /// When the last packet from one node to another arrives.
    arrivals: BTreeMap<(NodeId, NodeId), Duration>,
}

#[derive(Clone, Copy, Debug)]
struct Event {
    kind: Kind,
    flight: u64,
    piece: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A piece arrives at its target.
    Request,
    /// The answer arrives at the source.
    Answer,
    /// The source notes that there was no answer.
    Retry,
}

impl World {
    pub(super) fn new(seed: u64, nodes: u32, options: SimulationOptions) -> Self {
        let next = Arc::new(AtomicU64::new(1));
        let registry = |node| Registry::new(NodeId(node), Arc::clone(&next));
        let nodes = (0..nodes).map(registry).collect();
        Self {
            options,
            random: Random::new(seed),
            now: Duration::ZERO,
            queue: BTreeMap::new(),
            made: 0,
            played: 0,
            trace: seed,
            nodes,
            next,
            flights: BTreeMap::new(),
            next_flight: 0,
            crashes: BTreeMap::new(),
            arrivals: BTreeMap::new(),
        }
    }

    pub(super) fn now(&self) -> Duration {
        self.now
    }

    pub(super) fn events(&self) -> u64 {
        self.played
    }

    pub(super) fn trace(&self) -> u64 {
        self.trace
    }

    pub(super) fn node(&self, node: NodeId) -> Result<&Arc<Registry>, FabricError> {
        let registry = self.nodes.get(node.0 as usize);
        registry.ok_or(FabricError::UnknownNode(node))
    }

    pub(super) fn crash(&mut self, node: NodeId) {
        let lost = Arc::clone(self.node(node).expect("a node of the simulation"));
        lost.close();
        for record in self.flights.values_mut() {
            if Arc::ptr_eq(&record.source, &lost) {
                let outcome = Err(FabricError::PeerLost(node));
                record.outcome.get_or_insert(outcome);
            }
        }
    }

    pub(super) fn crash_after(&mut self, node: NodeId, events: u64) {
        let event = self.played + events;
        self.crashes.entry(event).or_default().push(node);
    }

    pub(super) fn restart(&mut self, node: NodeId) {
        self.crash(node);
        self.nodes[node.0 as usize] = Registry::new(node, Arc::clone(&self.next));
    }

    /// Sends all pieces of a batch; the flight's number.
    pub(super) fn begin(&mut self, source: &Arc<Registry>, batch: Batch) -> u64 {
        let flight = self.next_flight;
        self.next_flight += 1;
        let pieces = pieces(&batch, self.options.piece_bytes);
        let count = pieces.len();
        let record = FlightRecord {
            source: Arc::clone(source),
            batch,
            pieces,
            unanswered: count,
            packets: 0,
            are_bells_sent: false,
            outcome: None,
            is_abandoned: false,
        };
        self.flights.insert(flight, record);
        for piece in 0..count {
            self.send(Kind::Request, flight, piece);
        }
        self.advance(flight);
        flight
    }

    /// The outcome of a flight, once.
    pub(super) fn outcome(&mut self, flight: u64) -> Option<Result<Completed, FabricError>> {
        let record = self.flights.get_mut(&flight)?;
        match record.outcome.clone()? {
            Err(error) => {
                self.abandon(flight);
                Some(Err(error))
            }
            Ok(()) => {
                let record = self.flights.remove(&flight)?;
                assert!(record.packets == 0, "a batch is over before its packets");
                Some(Ok(Completed::new(record.batch)))
            }
        }
    }

    /// Nobody will ask for the outcome of a flight.
    pub(super) fn abandon(&mut self, flight: u64) {
        if let Some(record) = self.flights.get_mut(&flight) {
            record.is_abandoned = true;
            self.forget(flight);
        }
    }

    /// Lets go of a flight of which nothing is left.
    fn forget(&mut self, flight: u64) {
        let is_gone = |record: &FlightRecord| record.is_abandoned && record.packets == 0;
        if self.flights.get(&flight).is_some_and(is_gone) {
            self.flights.remove(&flight);
        }
    }

    /// When the next event is.
    pub(super) fn next_time(&self) -> Option<Duration> {
        self.queue.first_key_value().map(|((time, _), _)| *time)
    }

    /// Lets time pass in which nothing happens.
    pub(super) fn pass_until(&mut self, time: Duration) {
        assert!(self.next_time().is_none_or(|next| next >= time));
        self.now = self.now.max(time);
    }

    pub(super) fn step(&mut self) -> bool {
        if let Some(nodes) = self.crashes.remove(&self.played) {
            for node in nodes {
                self.crash(node);
            }
        }
        let Some(((time, number), event)) = self.queue.pop_first() else {
            return false;
        };
        assert!(time >= self.now, "time goes forward");
        self.now = time;
        self.played += 1;
        let happened = format!("{time:?} {number} {event:?}");
        self.trace = xxhash_rust::xxh3::xxh3_64_with_seed(happened.as_bytes(), self.trace);
        if let Some(record) = self.flights.get_mut(&event.flight) {
            record.packets -= 1;
            match event.kind {
                Kind::Request => self.request(event),
                Kind::Answer => self.answer(event),
                Kind::Retry => self.retry(event),
            }
            self.forget(event.flight);
        }
        true
    }

    fn record(&mut self, flight: u64) -> &mut FlightRecord {
        let record = self.flights.get_mut(&flight);
        record.expect("a flight stays while it has packets")
    }

    /// Sends a packet, which may be lost.
    fn send(&mut self, kind: Kind, flight: u64, piece: usize) {
        let is_lost = self.random.chance(self.options.lost_per_mille);
        let delay = self.random.duration(&self.options.delay);
        let keeps_order = self.options.keeps_order;
        let record = self.record(flight);
        let (source, target) = (record.source.node(), record.pieces[piece].node);
        let way = match kind {
            Kind::Request => (source, target),
            Kind::Answer | Kind::Retry => (target, source),
        };
        if is_lost {
            self.send_again_later(flight, piece);
            return;
        }
        let mut time = self.now + delay;
        if keeps_order {
            let last = self.arrivals.entry(way).or_default();
            time = time.max(*last);
            *last = time;
        }
        self.schedule(time, kind, flight, piece);
    }

    fn send_again_later(&mut self, flight: u64, piece: usize) {
        let time = self.now + self.options.retry_after;
        self.schedule(time, Kind::Retry, flight, piece);
    }

    fn schedule(&mut self, time: Duration, kind: Kind, flight: u64, piece: usize) {
        self.record(flight).packets += 1;
        let event = Event {
            kind,
            flight,
            piece,
        };
        self.queue.insert((time, self.made), event);
        self.made += 1;
    }

    fn request(&mut self, event: Event) {
        let Event { flight, piece, .. } = event;
        let is_source_lost = self.record(flight).source.check().is_err();
        // What a node sent before it crashed may have left it or not.
        if is_source_lost && self.random.chance(500) {
            return;
        }
        let node = self.record(flight).pieces[piece].node;
        let Ok(present) = self.node(node).cloned() else {
            self.fail(flight, FabricError::UnknownNode(node));
            return;
        };
        let record = self.record(flight);
        let target = match record.pieces[piece].owner() {
            Some(Ok(owner)) => Arc::clone(owner),
            Some(Err(error)) => return self.fail(flight, error),
            None => present,
        };
        if target.check().is_err() {
            if !is_source_lost {
                self.send_again_later(flight, piece);
            }
            return;
        }
        if record.pieces[piece].answer.is_none() {
            let answer = perform(&record.pieces[piece].task, &record.batch, &target);
            record.pieces[piece].answer = Some(answer);
        }
        self.send(Kind::Answer, flight, piece);
    }

    fn answer(&mut self, event: Event) {
        let record = self.record(event.flight);
        let piece = &mut record.pieces[event.piece];
        if record.source.check().is_err() || piece.is_answered {
            return;
        }
        piece.is_answered = true;
        record.unanswered -= 1;
        match piece.answer.as_ref().expect("the target answered") {
            Ok(answer) => {
                deliver(&piece.task, answer, &mut record.batch);
                self.advance(event.flight);
            }
            Err(error) => {
                let error = error.clone();
                self.fail(event.flight, error);
            }
        }
    }

    fn retry(&mut self, event: Event) {
        let attempts = self.options.attempts;
        let record = self.record(event.flight);
        if record.source.check().is_err() {
            return;
        }
        let piece = &mut record.pieces[event.piece];
        piece.attempts += 1;
        if piece.attempts >= attempts {
            let error = FabricError::PeerLost(piece.node);
            self.fail(event.flight, error);
        } else {
            self.send(Kind::Request, event.flight, event.piece);
        }
    }

    fn fail(&mut self, flight: u64, error: FabricError) {
        let outcome = Err(error);
        self.record(flight).outcome.get_or_insert(outcome);
    }

    /// Goes on with a flight if all pieces that were sent are answered.
    fn advance(&mut self, flight: u64) {
        let record = self.record(flight);
        if record.unanswered > 0 || record.outcome.is_some() {
            return;
        }
        if record.are_bells_sent {
            record.outcome = Some(Ok(()));
            return;
        }
        record.are_bells_sent = true;
        let first = record.pieces.len();
        record.pieces.extend(rings(&record.batch));
        record.unanswered = record.pieces.len() - first;
        for piece in first..first + record.unanswered {
            self.send(Kind::Request, flight, piece);
        }
        self.advance(flight);
    }
}
