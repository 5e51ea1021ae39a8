//! How does a sender get its messages into a ring that it can only write to?

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use super::layout::{
    ABANDONED, CONSUMED, Kind, RECEIVER_CLOSED, SENDER, SENDER_BELL, Shape, WAITING,
};
use super::{Invitation, RingError};
use crate::FabricError;
use crate::remote::memory::WORD_BYTES;
use crate::remote::{
    Batch, BellAddress, Completed, Doorbell, Fabric, InFlight, Interrupt, OperationId, RemoteMemory,
};

/// The sending side of a ring; one thread has it at a time.
///
/// Messages are taken ([`Sender::try_send`]), and written to the ring when there is room and few
/// writes are on their way ([`Sender::flush`], or the next `try_send`). Those that were taken
/// meanwhile are written together.
pub struct Sender {
    fabric: Arc<dyn Fabric>,
    bell: Arc<Doorbell>,
    memory: RemoteMemory,
    receiver_bell: BellAddress,
    message_bytes: usize,
    probe_every: std::time::Duration,
    shape: Shape,
    /// Records that are not written, the first `staged_start` words of which are.
    staged: Vec<u64>,
    staged_start: usize,
    /// Words of each record that is not written.
    records: VecDeque<usize>,
    /// Words written, also those that are on their way.
    produced: u64,
    /// Words that the receiver is known to have taken.
    consumed: u64,
    /// In the order in which they began.
    flights: VecDeque<Flying>,
    /// What of [`Sender::produced`] the receiver knows that we wait at.
    marked: Option<u64>,
    /// The receiver's mark was read since we last said that the ring is full.
    has_looked: bool,
    is_closed: bool,
    failure: Option<RingError>,
}

/// Bytes of the receiver's marks.
const MARKS_BYTES: usize = (RECEIVER_CLOSED + 1) * WORD_BYTES;
const _: () = assert!(CONSUMED < RECEIVER_CLOSED);

/// A batch on its way, and which of its operations reads the receiver's marks.
struct Flying {
    flight: InFlight,
    marks: Option<OperationId>,
}

/// How far the messages are that a sender has taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sending {
    /// All are in the ring.
    Done,
    /// All are on their way or in the ring.
    InFlight,
    /// Some wait until others have arrived: [`Sender::wait`] does so.
    Held,
    /// There is no room for the next one. The bell rings when there is.
    Full,
}

/// The most writes of one sender that are on their way.
const MAX_FLIGHTS: usize = 4;

impl Sender {
    /// Takes an invitation. The receiver rings `bell` when the sender may go on after the ring was
    /// full; several senders may have the same.
    ///
    /// # Errors
    /// [`RingError::Taken`], [`RingError::Closed`] if the receiver is gone, those of the fabric.
    pub fn new(
        fabric: Arc<dyn Fabric>,
        bell: Arc<Doorbell>,
        invitation: &Invitation,
        interrupt: &Interrupt<'_>,
    ) -> Result<Self, RingError> {
        let shape = Shape::new(&invitation.memory);
        let shape = shape.ok_or(FabricError::Malformed("invitation to a ring"))?;
        let memory = fabric.open(&invitation.memory).map_err(closed)?;
        claim(&*fabric, &bell, &memory, interrupt)?;
        Ok(Self {
            fabric,
            bell,
            memory,
            receiver_bell: invitation.bell,
            message_bytes: invitation.message_bytes as usize,
            probe_every: invitation.probe_every,
            shape,
            staged: Vec::new(),
            staged_start: 0,
            records: VecDeque::new(),
            produced: 0,
            consumed: 0,
            flights: VecDeque::new(),
            marked: None,
            has_looked: false,
            is_closed: false,
            failure: None,
        })
    }

    /// Takes a message without waiting, and writes what can be written; false, and nothing is
    /// taken, if as many words as the ring has wait already.
    ///
    /// # Errors
    /// [`RingError::TooLarge`], of which the ring takes no harm; [`RingError::Closed`], those of
    /// the fabric, for good.
    pub fn try_send(&mut self, message: &[u8]) -> Result<bool, RingError> {
        let is_taken = self.stage(message)?;
        let _ = self.flush()?;
        if is_taken {
            return Ok(true);
        }
        // Flushing may have made room.
        let is_taken = self.stage(message)?;
        let _ = self.flush()?;
        Ok(is_taken)
    }

    /// Takes a message as [`Sender::try_send`] does, but writes nothing, so that those which follow
    /// can go with it.
    ///
    /// # Errors
    /// Those of [`Sender::try_send`].
    pub fn stage(&mut self, message: &[u8]) -> Result<bool, RingError> {
        self.check()?;
        if self.is_closed {
            return Err(RingError::Closed);
        }
        let (bytes, limit) = (message.len(), self.message_bytes);
        if bytes > limit {
            return Err(RingError::TooLarge { bytes, limit });
        }
        if self.staged_words() as u64 >= self.shape.capacity {
            return Ok(false);
        }
        let mut pieces = message.chunks(self.shape.longest_piece()).peekable();
        if message.is_empty() {
            self.add(Kind::Last, &[]);
        }
        while let Some(piece) = pieces.next() {
            let is_last = pieces.peek().is_none();
            self.add(if is_last { Kind::Last } else { Kind::Piece }, piece);
        }
        Ok(true)
    }

    /// Writes what can be written without waiting. Call it again after the bell rang or a flight
    /// had time to land.
    ///
    /// # Errors
    /// [`RingError::Closed`], those of the fabric, for good.
    pub fn flush(&mut self) -> Result<Sending, RingError> {
        self.check()?;
        let outcome = self.advance();
        self.note(outcome)
    }

    /// Takes a message and waits until all of it is on its way. Two nodes that send each other more
    /// than the rings hold use [`Sender::try_send`], as neither would receive meanwhile.
    ///
    /// # Errors
    /// Those of [`Sender::try_send`]; what ends the wait, if the message is not taken. One that was
    /// taken when the wait ended is no error: it goes on with the next [`Sender::flush`].
    pub fn send(&mut self, message: &[u8], interrupt: &Interrupt<'_>) -> Result<(), RingError> {
        while !self.stage(message)? {
            let _ = self.wait(interrupt)?;
        }
        while matches!(self.flush()?, Sending::Held | Sending::Full) {
            match self.wait(interrupt) {
                Err(error) if error.is_interrupt() => return Ok(()),
                outcome => outcome?,
            };
        }
        Ok(())
    }

    /// Waits once, for a flight to land or for room, and writes what can be written then.
    ///
    /// # Errors
    /// [`RingError::Closed`], those of the fabric; what ends the wait.
    pub fn wait(&mut self, interrupt: &Interrupt<'_>) -> Result<Sending, RingError> {
        self.check()?;
        let outcome = self.wait_once(interrupt);
        self.note(outcome)
    }

    /// Waits until all messages that were taken are in the ring.
    ///
    /// # Errors
    /// [`RingError::Closed`], those of the fabric; what ends the wait.
    pub fn drain(&mut self, interrupt: &Interrupt<'_>) -> Result<(), RingError> {
        while self.wait(interrupt)? != Sending::Done {}
        Ok(())
    }

    /// Says that no message follows, and waits until that and all messages are in the ring. What
    /// is sent after that is an error.
    ///
    /// # Errors
    /// Those of [`Sender::drain`]; after the end of a wait, call it again or give up.
    pub fn close(&mut self, interrupt: &Interrupt<'_>) -> Result<(), RingError> {
        if !self.is_closed {
            self.check()?;
            self.add(Kind::Close, &[]);
            self.is_closed = true;
        }
        self.drain(interrupt)
    }

    /// Words that are taken and not written.
    fn staged_words(&self) -> usize {
        self.staged.len() - self.staged_start
    }

    fn add(&mut self, kind: Kind, bytes: &[u8]) {
        let position = self.produced + self.staged_words() as u64;
        let words = self.shape.encode(position, kind, bytes, &mut self.staged);
        self.records.push_back(words);
    }

    fn check(&self) -> Result<(), RingError> {
        match &self.failure {
            Some(failure) => Err(failure.clone()),
            None => Ok(()),
        }
    }

    /// Remembers an error that is for good.
    fn note<T>(&mut self, outcome: Result<T, RingError>) -> Result<T, RingError> {
        if let Err(error) = &outcome
            && !error.is_interrupt()
        {
            self.failure = Some(error.clone());
        }
        outcome
    }

    fn wait_once(&mut self, interrupt: &Interrupt<'_>) -> Result<Sending, RingError> {
        // Before the receiver's mark is read: it may free room and ring right after.
        let seen = self.bell.count();
        match self.advance()? {
            Sending::Done => return Ok(Sending::Done),
            Sending::InFlight | Sending::Held => {
                if let Some(Flying { flight, .. }) = self.flights.front_mut() {
                    match flight.wait(interrupt) {
                        Err(error) if RingError::from(error.clone()).is_interrupt() => {
                            return Err(error.into());
                        }
                        outcome => self.land(outcome)?,
                    }
                }
            }
            Sending::Full => {
                let now = self.fabric.now();
                interrupt.check(now)?;
                let slice = interrupt.or_at(now + self.probe_every);
                match self.fabric.wait(&self.bell, seen, &slice) {
                    // The marks are read anew, which asks whether the receiver is alive.
                    Ok(_) | Err(FabricError::Deadline) => interrupt.check(self.fabric.now())?,
                    Err(error) => return Err(error.into()),
                }
            }
        }
        self.advance()
    }

    fn advance(&mut self) -> Result<Sending, RingError> {
        loop {
            while let Some(Flying { flight, .. }) = self.flights.front_mut()
                && let Some(outcome) = flight.poll()
            {
                self.land(outcome)?;
            }
            let is_flying = !self.flights.is_empty();
            if self.records.is_empty() {
                return Ok(if is_flying {
                    Sending::InFlight
                } else {
                    Sending::Done
                });
            }
            if self.flights.len() < MAX_FLIGHTS && self.begin_write()? {
                continue;
            }
            if is_flying {
                return Ok(Sending::Held);
            }
            if self.marked != Some(self.produced) {
                self.begin_mark()?;
            } else if !self.has_looked {
                self.begin_look()?;
            } else {
                self.has_looked = false;
                return Ok(Sending::Full);
            }
        }
    }

    /// The first flight is over: where is the receiver?
    fn land(&mut self, outcome: Result<Completed, FabricError>) -> Result<(), RingError> {
        let flying = self.flights.pop_front().expect("the flight that is over");
        let completed = outcome.map_err(closed)?;
        let Some(marks) = flying.marks else {
            return Ok(());
        };
        let marks = completed.words(marks);
        if marks[RECEIVER_CLOSED] != 0 {
            return Err(RingError::Closed);
        }
        let consumed = marks[CONSUMED];
        if consumed > self.produced {
            return Err(FabricError::Malformed("mark of a ring's receiver").into());
        }
        self.consumed = self.consumed.max(consumed);
        Ok(())
    }

    /// Writes as many whole records as fit; false if none does.
    fn begin_write(&mut self) -> Result<bool, RingError> {
        let mut room = self.shape.capacity - (self.produced - self.consumed);
        let mut words = 0;
        while let Some(next) = self.records.front()
            && *next as u64 <= room
        {
            (room, words) = (room - *next as u64, words + next);
            self.records.pop_front();
        }
        if words == 0 {
            return Ok(false);
        }
        let mut batch = Batch::new();
        let (mut position, mut start) = (self.produced, self.staged_start);
        let end = start + words;
        while start < end {
            let until_end = self.shape.capacity - position % self.shape.capacity;
            let part = (end - start).min(until_end as usize);
            let offset = (self.shape.place(position) * WORD_BYTES) as u64;
            let _ = batch.write(&self.memory, offset, &self.staged[start..start + part])?;
            (position, start) = (position + part as u64, start + part);
        }
        let marks = self.read_marks(&mut batch)?;
        batch.wake(self.receiver_bell)?;
        (self.produced, self.staged_start) = (position, end);
        self.trim();
        self.begin(batch, Some(marks));
        Ok(true)
    }

    /// Frees what was written, once that is most.
    fn trim(&mut self) {
        if self.staged_start * 2 >= self.staged.len() {
            self.staged.drain(..self.staged_start);
            self.staged_start = 0;
        }
    }

    fn read_marks(&self, batch: &mut Batch) -> Result<OperationId, FabricError> {
        batch.read(&self.memory, 0, MARKS_BYTES)
    }

    /// Tells the receiver that we wait.
    fn begin_mark(&mut self) -> Result<(), RingError> {
        let mut batch = Batch::new();
        let mark = [self.produced + 1];
        let _ = batch.write(&self.memory, (WAITING * WORD_BYTES) as u64, &mark)?;
        (self.marked, self.has_looked) = (Some(self.produced), false);
        self.begin(batch, None);
        Ok(())
    }

    /// Asks where the receiver is, after it could know that we wait.
    fn begin_look(&mut self) -> Result<(), RingError> {
        let mut batch = Batch::new();
        let marks = self.read_marks(&mut batch)?;
        self.has_looked = true;
        self.begin(batch, Some(marks));
        Ok(())
    }

    fn begin(&mut self, batch: Batch, marks: Option<OperationId>) {
        let flight = self.fabric.start(batch);
        self.flights.push_back(Flying { flight, marks });
    }
}

/// Makes the ring this sender's.
fn claim(
    fabric: &dyn Fabric,
    bell: &Doorbell,
    memory: &RemoteMemory,
    interrupt: &Interrupt<'_>,
) -> Result<(), RingError> {
    let at = |word: usize| (word * WORD_BYTES) as u64;
    let mut batch = Batch::new();
    let own = u64::from(fabric.node().0) + 1;
    let before = batch.compare_and_swap(memory, at(SENDER), 0, own)?;
    let is_closed = batch.read(memory, at(RECEIVER_CLOSED), WORD_BYTES)?;
    let completed = fabric.complete(batch, interrupt).map_err(closed)?;
    if completed.word(is_closed) != 0 {
        return Err(RingError::Closed);
    }
    if completed.word(before) != 0 {
        return Err(RingError::Taken);
    }
    let mut batch = completed.reuse();
    let _ = batch.write(memory, at(SENDER_BELL), &[bell.address().number])?;
    fabric.complete(batch, interrupt).map_err(closed)?;
    Ok(())
}

/// A receiver whose memory or bell is gone has closed.
fn closed(error: FabricError) -> RingError {
    match error {
        FabricError::Unregistered(_) => RingError::Closed,
        error => error.into(),
    }
}

impl Drop for Sender {
    /// Tells the receiver, if the ring was not closed.
    fn drop(&mut self) {
        if self.failure.is_some() || self.is_closed && self.records.is_empty() {
            return;
        }
        let mut batch = Batch::new();
        let written = batch.write(&self.memory, (ABANDONED * WORD_BYTES) as u64, &[1]);
        if written.is_ok() && batch.wake(self.receiver_bell).is_ok() {
            drop(self.fabric.start(batch));
        }
    }
}

impl fmt::Debug for Sender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sender")
            .field("memory", &self.memory)
            .field("produced", &self.produced)
            .field("consumed", &self.consumed)
            .field("failure", &self.failure)
            .finish_non_exhaustive()
    }
}
