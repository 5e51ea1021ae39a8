//! How does a receiver find whole messages in a ring that its sender writes to?

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytemuck::cast_slice;

use super::layout::{
    ABANDONED, CONSUMED, Kind, RECEIVER_CLOSED, RECORDS, SENDER, SENDER_BELL, Shape, WAITING,
};
use super::{Invitation, MAX_MESSAGE_BYTES, RING_BYTES, RingError, RingOptions};
use crate::FabricError;
use crate::remote::memory::WORD_BYTES;
use crate::remote::{
    Batch, BellAddress, Doorbell, Fabric, InFlight, Interrupt, NodeId, Registration, SharedMemory,
};

/// The receiving side of a ring; one thread has it at a time.
///
/// ```
/// use std::sync::Arc;
///
/// use jindou_fabric::local::LocalNetwork;
/// use jindou_fabric::remote::{Fabric, Interrupt};
/// use jindou_fabric::ring::{Receiver, RingError, RingOptions, Sender};
///
/// # fn main() -> Result<(), RingError> {
/// let network = LocalNetwork::new(2);
/// let (here, there) = (network.fabric(0), network.fabric(1));
/// let bell = Arc::new(here.doorbell()?);
/// let mut receiver = Receiver::new(here, bell, &RingOptions::default())?;
/// let never = Interrupt::never();
/// let bell = Arc::new(there.doorbell()?);
/// let mut sender = Sender::new(there, bell, receiver.invitation(), &never)?;
/// sender.send(b"a sub-query", &never)?;
/// sender.close(&never)?;
/// assert_eq!(receiver.receive(&never)?, b"a sub-query");
/// assert_eq!(receiver.receive(&never), Err(RingError::Closed));
/// # Ok(())
/// # }
/// ```
pub struct Receiver {
    fabric: Arc<dyn Fabric>,
    bell: Arc<Doorbell>,
    memory: SharedMemory,
    _registration: Registration,
    invitation: Invitation,
    shape: Shape,
    consumed: u64,
    /// The mark of a waiting sender that was answered.
    served: u64,
    /// The ring of the sender's bell, on its way.
    wake: Option<InFlight>,
    /// The pieces of a message that came so far.
    partial: Vec<u8>,
    scratch: Vec<u64>,
    /// What there is after the last message.
    end: Option<RingError>,
    /// The end was reached.
    is_over: bool,
    /// The node that is invited.
    invited: Option<NodeId>,
}

impl Receiver {
    /// A new ring. Its sender rings `bell` after it wrote; several receivers may have the same.
    ///
    /// # Errors
    /// [`RingError::Options`], those of the fabric.
    pub fn new(
        fabric: Arc<dyn Fabric>,
        bell: Arc<Doorbell>,
        options: &RingOptions,
    ) -> Result<Self, RingError> {
        if !RING_BYTES.contains(&options.bytes) {
            return Err(RingError::Options("so few or so many bytes"));
        }
        if options.message_bytes > MAX_MESSAGE_BYTES {
            return Err(RingError::Options("messages of so many bytes"));
        }
        let words = options.bytes.div_ceil(WORD_BYTES);
        let (memory, registration) = fabric.share(RECORDS + words)?;
        let key = registration.key().clone();
        let shape = Shape::new(&key).ok_or(RingError::Options("such a length"))?;
        let invitation = Invitation {
            memory: key,
            bell: bell.address(),
            message_bytes: options.message_bytes as u64,
            probe_every: options.probe_every,
        };
        Ok(Self {
            fabric,
            bell,
            memory,
            _registration: registration,
            invitation,
            shape,
            consumed: 0,
            served: 0,
            wake: None,
            partial: Vec::new(),
            scratch: Vec::new(),
            end: None,
            is_over: false,
            invited: options.sender,
        })
    }

    /// What the sender needs.
    #[must_use]
    pub fn invitation(&self) -> &Invitation {
        &self.invitation
    }

    /// The sender's node, once there is one; before that the node that is invited, if that is known.
    #[must_use]
    pub fn sender(&self) -> Option<NodeId> {
        match self.mark(SENDER).checked_sub(1) {
            Some(sender) => Some(NodeId(u32::try_from(sender).ok()?)),
            None => self.invited,
        }
    }

    /// The next message, if one is there whole.
    ///
    /// # Errors
    /// After the last message, and from then on: [`RingError::Closed`], [`RingError::Abandoned`],
    /// [`RingError::TooLarge`], [`FabricError::PeerLost`] if that is known.
    pub fn try_receive(&mut self) -> Result<Option<Vec<u8>>, RingError> {
        // Once there was an error there is no message, though pieces may still arrive.
        if self.is_over {
            return self.end.clone().map_or(Ok(None), Err);
        }
        // Before looking for records: those that were there before it was set are found.
        let is_abandoned = self.mark(ABANDONED) != 0;
        let mut found = self.next_message();
        if matches!(found, Ok(None)) {
            self.check_wake();
            if is_abandoned {
                self.end.get_or_insert(RingError::Abandoned);
            }
            found = self.end.clone().map_or(Ok(None), Err);
        }
        self.is_over = found.is_err();
        found
    }

    /// Takes records up to the next end of a message.
    fn next_message(&mut self) -> Result<Option<Vec<u8>>, RingError> {
        let words = self.memory.clone();
        while let Some((kind, length, taken)) =
            self.shape
                .decode(words.words(), self.consumed, &mut self.scratch)
        {
            if kind == Kind::Close {
                self.end = Some(RingError::Closed);
                return Err(RingError::Closed);
            }
            self.take(taken);
            self.add(length)?;
            if kind == Kind::Last {
                return Ok(Some(std::mem::take(&mut self.partial)));
            }
        }
        Ok(None)
    }

    /// The next message, waiting for it.
    ///
    /// # Errors
    /// Those of [`Receiver::try_receive`]; what ends the wait.
    pub fn receive(&mut self, interrupt: &Interrupt<'_>) -> Result<Vec<u8>, RingError> {
        loop {
            let seen = self.bell.count();
            if let Some(message) = self.try_receive()? {
                return Ok(message);
            }
            let now = self.fabric.now();
            interrupt.check(now)?;
            let slice = interrupt.or_at(now + self.invitation.probe_every);
            match self.fabric.wait(&self.bell, seen, &slice) {
                Ok(_) => {}
                Err(FabricError::Deadline) => {
                    interrupt.check(self.fabric.now())?;
                    self.probe(interrupt)?;
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Asks whether the sender is alive: if it is lost, that is the error after the last message.
    /// [`Receiver::receive`] does so itself; to be called now and then where many rings are polled.
    ///
    /// # Errors
    /// What ends the wait for the answer.
    pub fn probe(&mut self, interrupt: &Interrupt<'_>) -> Result<(), RingError> {
        let Some(sender) = self.sender() else {
            return Ok(());
        };
        match self
            .fabric
            .probe(sender, interrupt)
            .map_err(RingError::from)
        {
            Err(error) if error.is_interrupt() => Err(error),
            Err(error) => {
                self.end.get_or_insert(error);
                Ok(())
            }
            Ok(()) => Ok(()),
        }
    }

    fn mark(&self, word: usize) -> u64 {
        self.memory.words()[word].load(Ordering::SeqCst)
    }

    /// The record's words may be written anew.
    fn take(&mut self, words: u64) {
        self.consumed += words;
        self.memory.words()[CONSUMED].store(self.consumed, Ordering::SeqCst);
        let waiting = self.mark(WAITING);
        let Some(produced) = waiting.checked_sub(1) else {
            return;
        };
        let taken = produced.saturating_sub(self.consumed);
        if waiting != self.served && taken <= self.shape.capacity / 2 {
            self.served = waiting;
            self.wake_sender();
        }
    }

    fn wake_sender(&mut self) {
        let Some(node) = self.sender() else { return };
        let number = self.mark(SENDER_BELL);
        let mut batch = Batch::new();
        if batch.wake(BellAddress { node, number }).is_ok() {
            self.wake = Some(self.fabric.start(batch));
        }
    }

    /// Learns from a ring that failed.
    fn check_wake(&mut self) {
        match self.wake.as_mut().and_then(InFlight::poll) {
            None => return,
            // Whoever takes its bell down leaves: the marks say how.
            Some(Ok(_) | Err(FabricError::Unregistered(_))) => {}
            Some(Err(error)) => {
                self.end.get_or_insert(error.into());
            }
        }
        self.wake = None;
    }

    /// Adds a record's bytes to the message.
    fn add(&mut self, length: usize) -> Result<(), RingError> {
        let limit = self.invitation.message_bytes as usize;
        let bytes = self.partial.len() + length;
        if bytes > limit {
            let error = RingError::TooLarge { bytes, limit };
            self.end = Some(error.clone());
            return Err(error);
        }
        let record: &[u8] = cast_slice(&self.scratch);
        self.partial.extend_from_slice(&record[..length]);
        Ok(())
    }
}

impl Drop for Receiver {
    /// Tells the sender, which sees it with its next write, or when the memory is gone.
    fn drop(&mut self) {
        self.memory.words()[RECEIVER_CLOSED].store(1, Ordering::SeqCst);
        if self.mark(WAITING) != self.served {
            self.wake_sender();
        }
    }
}

impl fmt::Debug for Receiver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receiver")
            .field("invitation", &self.invitation)
            .field("consumed", &self.consumed)
            .field("end", &self.end)
            .finish_non_exhaustive()
    }
}
