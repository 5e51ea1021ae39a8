//! Does a receiver get a prefix of what was sent, all of it if nobody was lost, and then an error or
//! the end?

use std::sync::Arc;
use std::time::Duration;

use jindou_fabric::FabricError;
use jindou_fabric::remote::{Fabric, Interrupt, NodeId};
use jindou_fabric::ring::{Receiver, RingError, RingOptions, Sender, Sending};
use jindou_fabric::sim::{SimulatedFabric, Simulation, SimulationOptions};

use crate::random::Random;

/// More turns than any case has.
const MOST_TURNS: u64 = 2_000_000;

/// What a case came to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) delivered: u64,
    /// Everything arrived, and the ring was closed.
    pub(crate) is_whole: bool,
    /// The sender was lost when words of a message were in the ring that was never delivered.
    pub(crate) was_torn: bool,
    pub(crate) trace: u64,
}

/// The message of a number: its length and bytes say which one it is.
fn message(number: u64, longest: u64) -> Vec<u8> {
    let mut random = Random(number);
    let length = match random.below(4) {
        0 => random.below(10),
        1 => random.below(longest),
        _ => random.below(100),
    };
    (0..length).map(|_| random.next() as u8).collect()
}

struct Speaker {
    sender: Option<Sender>,
    /// Messages that were taken, and all of them.
    sent: u64,
    count: u64,
    longest: u64,
    failure: Option<RingError>,
    is_closed: bool,
}

impl Speaker {
    fn is_over(&self) -> bool {
        self.failure.is_some() || self.is_closed
    }

    /// Does something, if there is something to do.
    fn turn(&mut self, random: &mut Random) {
        if self.is_over() {
            return;
        }
        if let Err(error) = self.try_turn(random) {
            assert_lost(&error);
            self.failure = Some(error);
            self.sender = None;
        }
    }

    fn try_turn(&mut self, random: &mut Random) -> Result<(), RingError> {
        let sender = self.sender.as_mut().expect("a sender that did not fail");
        if self.sent < self.count {
            let next = message(self.sent, self.longest);
            let is_taken = match random.below(3) {
                0 => sender.stage(&next)?,
                _ => sender.try_send(&next)?,
            };
            self.sent += u64::from(is_taken);
            return Ok(());
        }
        match sender.flush()? {
            Sending::Done => {
                // All is in the ring; the end of it, too, after a while.
                let already = Interrupt::at(Duration::ZERO);
                match sender.close(&already) {
                    Err(RingError::Fabric(FabricError::Deadline)) => {}
                    outcome => {
                        outcome?;
                        self.is_closed = true;
                    }
                }
            }
            Sending::InFlight | Sending::Held | Sending::Full => {}
        }
        Ok(())
    }
}

/// Nothing but a lost peer may end a ring here.
fn assert_lost(error: &RingError) {
    let is_lost = matches!(
        error,
        RingError::Fabric(FabricError::PeerLost(_)) | RingError::Closed
    );
    assert!(is_lost, "{error:?}");
}

struct Receiving {
    receiver: Receiver,
    delivered: u64,
    longest: u64,
    end: Option<RingError>,
}

impl Receiving {
    /// Takes what is there. A node that crashed does nothing.
    fn turn(&mut self, sent: u64) {
        while self.end.is_none() {
            match self.receiver.try_receive() {
                Ok(None) => return,
                Ok(Some(found)) => {
                    assert!(self.delivered < sent, "a message that nobody sent");
                    assert_eq!(found, message(self.delivered, self.longest));
                    self.delivered += 1;
                }
                Err(error) => self.end = Some(error),
            }
        }
    }
}

fn is_alive(fabric: &SimulatedFabric) -> bool {
    fabric.doorbell().is_ok()
}

pub(crate) fn play(seed: u64) -> Outcome {
    let mut random = Random(seed);
    let simulation = Simulation::new(seed, 2, SimulationOptions::hostile(seed));
    let (here, there) = (simulation.fabric(0), simulation.fabric(1));
    let options = RingOptions {
        bytes: 512 << random.below(4),
        probe_every: Duration::from_micros(200),
        ..RingOptions::default()
    };
    let bell = Arc::new(there.doorbell().unwrap());
    let receiver = Receiver::new(Arc::clone(&there) as _, bell, &options).unwrap();
    let bell = Arc::new(here.doorbell().unwrap());
    let invitation = receiver.invitation().clone();
    let never = Interrupt::never();
    let sender = match Sender::new(Arc::clone(&here) as _, bell, &invitation, &never) {
        Ok(sender) => sender,
        // Lost by so many lost packets.
        Err(error) => {
            assert_lost(&error);
            return Outcome {
                delivered: 0,
                is_whole: false,
                was_torn: false,
                trace: simulation.trace(),
            };
        }
    };
    if random.below(2) == 0 {
        let (node, event) = (random.below(2) as u32, random.below(1000));
        simulation.crash_after(NodeId(node), event);
    }
    let longest = [100, 2000, 20_000][random.below(3) as usize];
    let mut sending = Speaker {
        sender: Some(sender),
        sent: 0,
        count: 5 + random.below(40),
        longest,
        failure: None,
        is_closed: false,
    };
    let mut receiving = Receiving {
        receiver,
        delivered: 0,
        longest,
        end: None,
    };
    run(
        &simulation,
        [&here, &there],
        &mut sending,
        &mut receiving,
        &mut random,
    );
    judge(&simulation, [&here, &there], &sending, &receiving)
}

/// Both sides take turns with the network, until both are over.
fn run(
    simulation: &Simulation,
    [here, there]: [&SimulatedFabric; 2],
    sending: &mut Speaker,
    receiving: &mut Receiving,
    random: &mut Random,
) {
    for turn in 0.. {
        assert!(turn < MOST_TURNS, "it never ends");
        let is_receiver_done = receiving.end.is_some() || !is_alive(there);
        if sending.is_over() && is_receiver_done {
            return;
        }
        match random.below(8) {
            0 => sending.turn(random),
            1 if is_alive(there) => receiving.turn(sending.sent),
            // Both wait: that is when a receiver asks whether its sender is alive.
            2 if sending.is_over() && is_alive(there) => {
                receiving.turn(sending.sent);
                let outcome = receiving.receiver.probe(&Interrupt::never());
                if is_alive(there) {
                    outcome.unwrap();
                }
                if !is_alive(here) {
                    // What it sent before may still arrive.
                    while simulation.step() {}
                }
            }
            _ => {
                let _ = simulation.step();
            }
        }
    }
}

fn judge(
    simulation: &Simulation,
    [here, there]: [&SimulatedFabric; 2],
    sending: &Speaker,
    receiving: &Receiving,
) -> Outcome {
    let (delivered, trace) = (receiving.delivered, simulation.trace());
    let is_whole = receiving.end == Some(RingError::Closed);
    if is_whole {
        assert_eq!(delivered, sending.count, "closed before its end");
    }
    if is_alive(here) && is_alive(there) && sending.failure.is_none() {
        assert!(is_whole, "{:?}", receiving.end);
    }
    if !is_whole && is_alive(there) {
        let end = receiving
            .end
            .as_ref()
            .expect("an error, as it is not whole");
        assert!(
            matches!(
                end,
                RingError::Abandoned | RingError::Fabric(FabricError::PeerLost(_))
            ),
            "{end:?}"
        );
    }
    let was_torn = !is_alive(here) && is_alive(there) && delivered < sending.sent;
    Outcome {
        delivered,
        is_whole,
        was_torn,
        trace,
    }
}
