//! How do several threads ask a node over one link, and wait no longer than they may?
//!
//! Each request has a number, and its answer the same. Whoever waits looks into the ring when the bell
//! of the link rings, hands the answers of others on, and rings for them. A request that is not answered in
//! time is remembered for a while: who makes the same call again waits for its answer, so that a call
//! that takes longer than anybody waits is answered in the end, and is not made over and over.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use jindou_fabric::FabricError;
use jindou_fabric::remote::{Doorbell, Fabric, Interrupt, NodeId};
use jindou_fabric::ring::{Receiver, RingError, Sender};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;

use super::link::{LinkEnd, is_interrupt, push};
use super::wire::{number_of_answer, set_number};
use super::words::RequestNumber;
use crate::one_sided::ReadCounts;

/// Requests that nobody waits for any more and that are remembered: more than there are threads that ask.
/// The late answers of others are dropped.
pub(super) const MOST_LEFT: usize = 1024;
/// Bytes of these together, at most.
const MOST_BYTES_LEFT: usize = 16 << 20;
/// Bytes of such a request, at most.
const MOST_LEFT_BYTES: usize = 1 << 20;
/// Where the part of a request begins that is the same whenever it is made.
const AFTER_NUMBER: usize = 16;

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoAnswer {
    /// It may come yet.
    NotYet,
    /// The node is lost, or takes no such request.
    Never,
}

/// A link to the server of another node; any number of threads ask over it at once.
pub struct Connection {
    fabric: Arc<dyn Fabric>,
    bell: Arc<Doorbell>,
    peer: NodeId,
    sender: Mutex<Sender>,
    receiver: Mutex<Receiver>,
    requests: Mutex<Requests>,
    patience: Duration,
    counts: Arc<ReadCounts>,
}

/// A request that was sent, whose answer is to be waited for.
#[must_use = "its answer is kept for whoever waits for it"]
pub(super) struct Begun {
    number: RequestNumber,
    request: Vec<u8>,
    deadline: Duration,
}

/// What was asked and not taken yet.
#[derive(Default)]
struct Requests {
    last: u64,
    /// Answers that somebody waits for, once they came.
    answers: FxHashMap<RequestNumber, Option<Vec<u8>>>,
    /// What nobody waits for, oldest first.
    left: VecDeque<(RequestNumber, Box<[u8]>)>,
    left_bytes: usize,
    /// What was sent and is not answered, oldest first, whoever waits for it: the server answers in this order. The
    /// rings bound how many these are.
    sent: VecDeque<RequestNumber>,
    is_lost: bool,
}

/// A message that the server does not send: what it would have sent instead will not come.
#[derive(Debug, PartialEq, Eq)]
struct NotDue;

impl Connection {
    /// A connection over a link to a node; what goes over it is counted.
    #[must_use]
    pub fn new(end: LinkEnd, counts: &Arc<ReadCounts>) -> Self {
        Self {
            fabric: end.fabric,
            bell: end.bell,
            peer: end.peer,
            sender: Mutex::new(end.sender),
            receiver: Mutex::new(end.receiver),
            requests: Mutex::default(),
            patience: end.options.patience,
            counts: Arc::clone(counts),
        }
    }

    /// Requests whose answers somebody may take.
    #[cfg(test)]
    pub(super) fn remembered(&self) -> usize {
        self.requests.lock().answers.len()
    }

    /// The time by which it measures its patience.
    pub(super) fn now(&self) -> Duration {
        self.fabric.now()
    }

    /// The answer to a request, which gets its number here.
    pub(super) fn ask(&self, request: Vec<u8>) -> Result<Vec<u8>, NoAnswer> {
        let begun = self.begin(request)?;
        self.finish(begun)
    }

    /// Sends a request, which gets its number here; whoever does so waits for the answer in the end
    /// ([`Connection::finish`]), and may ask other nodes meanwhile.
    pub(super) fn begin(&self, mut request: Vec<u8>) -> Result<Begun, NoAnswer> {
        self.counts.count_call();
        let deadline = self.now() + self.patience;
        let (number, is_new) = self.requests.lock().begin(&request)?;
        if is_new {
            set_number(&mut request, number);
            if let Err(why) = self.send(number, &request, deadline) {
                self.requests.lock().answers.remove(&number);
                return Err(why);
            }
        }
        Ok(Begun {
            number,
            request,
            deadline,
        })
    }

    /// The answer to a request that was sent.
    pub(super) fn finish(&self, begun: Begun) -> Result<Vec<u8>, NoAnswer> {
        let Begun {
            number,
            request,
            deadline,
        } = begun;
        loop {
            let seen = self.bell.count();
            self.receive(number);
            if let Some(answer) = self.requests.lock().take(number)? {
                return Ok(answer);
            }
            if self.now() >= deadline {
                break;
            }
            self.flush(deadline);
            self.wait(seen, deadline);
        }
        self.probe();
        let mut requests = self.requests.lock();
        // It may have come just now.
        match requests.take(number)? {
            Some(answer) => Ok(answer),
            None => {
                requests.leave(number, &request);
                Err(NoAnswer::NotYet)
            }
        }
    }

    /// Sends a request, or does not if there is no room for it until the deadline.
    fn send(
        &self,
        number: RequestNumber,
        request: &[u8],
        deadline: Duration,
    ) -> Result<(), NoAnswer> {
        loop {
            let seen = self.bell.count();
            let staged = {
                // As long as it is locked nobody else stages a request, or writes this one.
                let mut sender = self.sender.lock();
                let staged = sender.stage(request);
                if staged == Ok(true) {
                    self.requests.lock().sent.push_back(number);
                }
                staged
            };
            match staged {
                Ok(true) => break,
                Ok(false) => {}
                // The link takes no harm of it.
                Err(RingError::TooLarge { .. }) => return Err(NoAnswer::Never),
                Err(error) => self.note(&error),
            }
            if self.requests.lock().is_lost {
                return Err(NoAnswer::Never);
            }
            if self.now() >= deadline {
                return Err(NoAnswer::NotYet);
            }
            self.flush(deadline);
            // The server may be waiting for room itself, in the ring of answers.
            self.receive(RequestNumber::default());
            self.wait(seen, deadline);
        }
        self.counts.count_message(request.len());
        self.flush(deadline);
        Ok(())
    }

    /// Writes what waits for room, if there is some.
    fn flush(&self, deadline: Duration) {
        let flushed = push(&mut self.sender.lock(), &Interrupt::at(deadline));
        if let Err(error) = flushed {
            self.note(&error);
        }
    }

    /// Takes all messages that came, and wakes the threads that wait for any of them but `own`.
    fn receive(&self, own: RequestNumber) {
        let mut is_for_others = false;
        loop {
            // Locked until the answer is handed on, so that this happens in the order in which they came.
            let mut receiver = self.receiver.lock();
            match receiver.try_receive() {
                Ok(Some(answer)) => {
                    self.counts.count_message(answer.len());
                    let handed_on = self.requests.lock().hand_on(answer, own);
                    drop(receiver);
                    match handed_on {
                        Ok(is_for_other) => is_for_others |= is_for_other,
                        Err(NotDue) => return self.give_up(),
                    }
                }
                Ok(None) => break,
                Err(error) => {
                    self.note(&error);
                    return;
                }
            }
        }
        if is_for_others {
            self.bell.ring();
        }
    }

    fn wait(&self, seen: u64, deadline: Duration) {
        match self.fabric.wait(&self.bell, seen, &Interrupt::at(deadline)) {
            Ok(_) => {}
            Err(error) => self.note(&error.into()),
        }
    }

    /// Learns whether the node is lost.
    fn probe(&self) {
        let until = self.now() + self.patience;
        match self.fabric.probe(self.peer, &Interrupt::at(until)) {
            Ok(()) => {}
            Err(error) => self.note(&error.into()),
        }
    }

    /// The link is lost by this error, if that is one for good.
    fn note(&self, error: &RingError) {
        let exhausted = matches!(error, RingError::Fabric(FabricError::Exhausted { .. }));
        if !is_interrupt(error) && !exhausted {
            self.lose();
        }
    }

    /// The node does not keep to the protocol, or what it sends is altered: all that this node has of it is lost,
    /// so that both connect anew.
    fn give_up(&self) {
        self.lose();
        self.fabric.disconnect(self.peer);
    }

    /// The link is lost: whoever waits is to see that.
    fn lose(&self) {
        let was_lost = std::mem::replace(&mut self.requests.lock().is_lost, true);
        if !was_lost {
            self.bell.ring();
        }
    }
}

impl Requests {
    /// The number of a request, and whether it is to be sent.
    fn begin(&mut self, request: &[u8]) -> Result<(RequestNumber, bool), NoAnswer> {
        let same = |left: &(RequestNumber, Box<[u8]>)| *left.1 == request[AFTER_NUMBER..];
        if let Some(place) = self.left.iter().position(same) {
            let (number, request) = self.left.remove(place).expect("it is there");
            self.left_bytes -= request.len();
            return Ok((number, false));
        }
        if self.is_lost {
            return Err(NoAnswer::Never);
        }
        self.last += 1;
        let number = RequestNumber(self.last);
        self.answers.insert(number, None);
        Ok((number, true))
    }

    /// The answer to a request, if it came.
    fn take(&mut self, number: RequestNumber) -> Result<Option<Vec<u8>>, NoAnswer> {
        if let Some(Some(_)) = self.answers.get(&number) {
            return Ok(self.answers.remove(&number).flatten());
        }
        if self.is_lost {
            self.answers.remove(&number);
            return Err(NoAnswer::Never);
        }
        Ok(None)
    }

    /// Keeps an answer for who waits for it, if somebody does; true if that is not `own`.
    ///
    /// # Errors
    /// [`NotDue`] unless it answers the oldest request that has no answer.
    fn hand_on(&mut self, answer: Vec<u8>, own: RequestNumber) -> Result<bool, NotDue> {
        let due = self.sent.pop_front();
        let number = number_of_answer(&answer).map_err(|_| NotDue)?;
        if due != Some(number) {
            return Err(NotDue);
        }
        Ok(match self.answers.get_mut(&number) {
            Some(place) => {
                *place = Some(answer);
                number != own
            }
            None => false,
        })
    }

    /// Nobody waits for a request any more.
    fn leave(&mut self, number: RequestNumber, request: &[u8]) {
        if request.len() > MOST_LEFT_BYTES {
            self.answers.remove(&number);
            return;
        }
        let request: Box<[u8]> = request[AFTER_NUMBER..].into();
        self.left_bytes += request.len();
        self.left.push_back((number, request));
        while (self.left.len() > MOST_LEFT || self.left_bytes > MOST_BYTES_LEFT)
            && let Some((oldest, request)) = self.left.pop_front()
        {
            self.left_bytes -= request.len();
            self.answers.remove(&oldest);
        }
    }
}
