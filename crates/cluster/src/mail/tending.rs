//! What does the thread of a mail do?
//!
//! It receives what is there, writes what waits, and sleeps until the bell rings, which it does when a
//! message came, when there is room again, and when a thread that sends could not write all. A peer that
//! says nothing for a while is asked whether it is alive.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use jindou_fabric::remote::Interrupt;
use jindou_fabric::ring::{Receiver, RingError};

use super::outgoing::Left;
use super::{Postman, Shared};
use crate::calls::is_interrupt;

/// Messages that are received before what waits is written.
const MOST_AT_ONCE: usize = 64;
/// How long flights are waited for before it is looked whether they landed. Each further wait is twice as
/// long, up to [`LONGEST_LOOK`]: other flights may have begun when the first ones landed.
const FIRST_LOOK: Duration = Duration::from_micros(50);
/// Even while flights follow each other without end, each is noticed that long after its landing.
const LONGEST_LOOK: Duration = Duration::from_millis(1);
/// What the postman hears if it panicked.
pub(super) const BROKEN: &str = "broken";

/// What the thread has for itself.
pub(super) struct Tending {
    shared: Arc<Shared>,
    receiver: Receiver,
    postman: Arc<dyn Postman>,
    /// How long flights are waited for next.
    look_after: Duration,
    /// When the peer is asked whether it is alive, unless something comes of it before.
    probe_at: Duration,
}

/// Why a mail ends that nobody dropped.
#[derive(Debug, thiserror::Error)]
enum Ending {
    #[error(transparent)]
    Ring(#[from] RingError),
    /// By the postman, for this reason.
    #[error("{0}")]
    Refused(String),
}

impl Tending {
    pub(super) fn new(shared: Arc<Shared>, receiver: Receiver, postman: Arc<dyn Postman>) -> Self {
        let probe_at = shared.fabric.now() + shared.probe_every;
        Self {
            shared,
            receiver,
            postman,
            look_after: FIRST_LOOK,
            probe_at,
        }
    }

    /// Tends the mail until it ends.
    pub(super) fn run(mut self) {
        let tended = catch_unwind(AssertUnwindSafe(|| self.tend()));
        if self.shared.is_stopped() {
            // However that goes: the peer sees it at its end, and here nobody is left who would.
            let _left: Result<(), RingError> = self.leave();
            return;
        }
        let reason = match tended {
            Ok(Ok(())) => unreachable!("only who stops a mail ends it without a reason"),
            Ok(Err(ending)) => ending.to_string(),
            Err(_panic) => BROKEN.to_owned(),
        };
        self.lose(&reason);
    }

    /// Returns when somebody stops it.
    fn tend(&mut self) -> Result<(), Ending> {
        loop {
            // Before all that is looked at: what changes after that rings.
            let seen = self.shared.bell.count();
            if self.shared.is_stopped() {
                return Ok(());
            }
            let is_more = self.receive()?;
            let left = match self.shared.outgoing.pump() {
                Ok(left) => left,
                Err(error) => {
                    // A peer that left may have said something before.
                    while self.receive()? {}
                    return Err(error.into());
                }
            };
            if is_more || left == Left::More {
                continue;
            }
            self.sleep(seen, left, self.probe_at)?;
            if self.now() >= self.probe_at {
                self.probe()?;
            }
        }
    }

    /// Hands on what came; true if there may be more.
    fn receive(&mut self) -> Result<bool, Ending> {
        for _ in 0..MOST_AT_ONCE {
            // The postman itself may have dropped the mail.
            if self.shared.is_stopped() {
                return Ok(false);
            }
            let Some(message) = self.receiver.try_receive()? else {
                return Ok(false);
            };
            self.probe_at = self.now() + self.shared.probe_every;
            self.shared.received.add(message.len());
            let taken = self.postman.received(self.shared.peer, message);
            taken.map_err(Ending::Refused)?;
        }
        Ok(true)
    }

    /// Sleeps until the bell rings, until flights may have landed, or until a time.
    fn sleep(&mut self, seen: u64, left: Left, until: Duration) -> Result<(), RingError> {
        let look_at = match left {
            Left::Flights => until.min(self.now() + self.look_after),
            Left::Nothing | Left::NoRoom | Left::More => until,
        };
        let Shared { fabric, bell, .. } = &*self.shared;
        let has_rung = match fabric.wait(bell, seen, &Interrupt::at(look_at)) {
            Ok(_) => true,
            Err(error) => {
                let error = error.into();
                if !is_interrupt(&error) {
                    return Err(error);
                }
                false
            }
        };
        self.look_after = if has_rung || left != Left::Flights {
            FIRST_LOOK
        } else {
            (self.look_after * 2).min(LONGEST_LOOK)
        };
        Ok(())
    }

    /// Learns whether the peer is lost: then that is what comes after its last message.
    fn probe(&mut self) -> Result<(), RingError> {
        let is_stopped = || self.shared.is_stopped();
        let until = Interrupt::at(self.now() + self.shared.probe_every).or_if(&is_stopped);
        match self.receiver.probe(&until) {
            Err(error) if !is_interrupt(&error) => return Err(error),
            Ok(()) | Err(_) => {}
        }
        self.probe_at = self.now() + self.shared.probe_every;
        Ok(())
    }

    /// Nobody has the mail any more: sends what waits and says that nothing follows, or leaves the ring
    /// without a word where the peer makes no room for that in time.
    fn leave(&mut self) -> Result<(), RingError> {
        let shared = Arc::clone(&self.shared);
        let until = self.now() + shared.probe_every;
        loop {
            let seen = shared.bell.count();
            match shared.outgoing.pump() {
                Ok(Left::Nothing) => break,
                Ok(Left::More) => {}
                Ok(left) if self.now() < until => self.sleep(seen, left, until)?,
                // What waits is lost, so the ring is not closed: the peer is to know.
                outcome => return outcome.map(|_| ()),
            }
        }
        match shared.outgoing.end() {
            Some(mut sender) => sender.close(&Interrupt::at(until)),
            None => Ok(()),
        }
    }

    /// Ends the mail for a reason.
    fn lose(self, reason: &str) {
        let Self {
            shared,
            receiver,
            postman,
            ..
        } = self;
        // First: whoever hears of it sends nothing any more, and the peer hears of it at its end.
        drop(shared.outgoing.end());
        drop(receiver);
        postman.lost(shared.peer, reason);
    }

    fn now(&self) -> Duration {
        self.shared.fabric.now()
    }
}
