//! How do messages that wait get into the ring, whichever thread writes them?
//!
//! They wait in a queue. Whoever has the ring's sender takes them from its front, so they are written in
//! the order in which they were pushed, each once; but those that were pushed ahead go before the others.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use jindou_fabric::remote::Doorbell;
use jindou_fabric::ring::{RingError, Sender, Sending};
use parking_lot::{Condvar, Mutex};

use super::{Counter, MailCounts};

/// How often the sender is filled and emptied before whoever does so looks at something else.
const MOST_ROUNDS: usize = 8;
/// Between two questions to whoever waits for room.
const ASK_EVERY: Duration = Duration::from_millis(10);

/// Messages on their way into a ring.
pub(super) struct Outgoing {
    /// `None` once the mail has ended. Locked before the queue, and by nobody who waits for the peer.
    writer: Mutex<Option<Writer>>,
    queue: Mutex<Queue>,
    /// The queue came down to its limit, or the mail has ended.
    has_room: Condvar,
    limit_bytes: usize,
    sent: Counter,
}

/// Who writes to the ring.
struct Writer {
    sender: Sender,
    bell: Arc<Doorbell>,
    /// How often the bell had rung before the first of the flights began that have not landed.
    rung_before: Option<u64>,
}

/// Messages that the sender has not taken.
#[derive(Default)]
struct Queue {
    messages: VecDeque<Vec<u8>>,
    /// Those that go before them.
    ahead: VecDeque<Vec<u8>>,
    /// Of all messages, and of one that is being given to the sender.
    bytes: usize,
    has_ended: bool,
}

/// How a message takes its place among those that wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// Behind all.
    Behind,
    /// Before all that are in order, behind others like it.
    Ahead,
}

impl Queue {
    fn list(&mut self, order: Order) -> &mut VecDeque<Vec<u8>> {
        match order {
            Order::Behind => &mut self.messages,
            Order::Ahead => &mut self.ahead,
        }
    }

    fn take_next(&mut self) -> Option<(Vec<u8>, Order)> {
        let lists = [Order::Ahead, Order::Behind].into_iter();
        let mut next = lists.filter_map(|order| Some((self.list(order).pop_front()?, order)));
        next.next()
    }
}

/// What is left to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Left {
    /// Nothing: all is in the ring or on the way there.
    Nothing,
    /// What waits until earlier writes have landed. No bell rings then: somebody must look again.
    Flights,
    /// What waits for room. The bell rings when there is some.
    NoRoom,
    /// What there may be room for.
    More,
}

impl Outgoing {
    /// The bell is the one that the receiver rings.
    pub(super) fn new(sender: Sender, bell: Arc<Doorbell>, limit_bytes: usize) -> Self {
        let writer = Writer {
            sender,
            bell,
            rung_before: None,
        };
        Self {
            writer: Mutex::new(Some(writer)),
            queue: Mutex::default(),
            has_room: Condvar::new(),
            limit_bytes,
            sent: Counter::default(),
        }
    }

    /// Queues a message; false if the mail has ended.
    pub(super) fn push(&self, message: Vec<u8>, order: Order) -> bool {
        let mut queue = self.queue.lock();
        if queue.has_ended {
            return false;
        }
        queue.bytes += message.len();
        queue.list(order).push_back(message);
        true
    }

    /// True once the mail has ended.
    pub(super) fn is_over(&self) -> bool {
        self.queue.lock().has_ended
    }

    /// Writes what can be written without waiting, once no other thread does so.
    ///
    /// # Errors
    /// Those of [`Sender::stage`] and [`Sender::flush`].
    pub(super) fn pump(&self) -> Result<Left, RingError> {
        self.write(self.writer.lock().as_mut())
    }

    /// The same, or `None` if another thread does so now.
    pub(super) fn try_pump(&self) -> Option<Result<Left, RingError>> {
        let mut writer = self.writer.try_lock()?;
        Some(self.write(writer.as_mut()))
    }

    fn write(&self, writer: Option<&mut Writer>) -> Result<Left, RingError> {
        let Some(writer) = writer else {
            return Ok(Left::Nothing);
        };
        let count = writer.bell.count();
        let rung_before = *writer.rung_before.get_or_insert(count);
        let left = self.write_some(&mut writer.sender)?;
        if left == Left::Flights {
            return Ok(left);
        }
        writer.rung_before = None;
        // The receiver rings once. It may have made room, and rung, after a flight looked for room and before
        // that landed: then what the flight found is old, and no other ring follows.
        let is_old = left == Left::NoRoom && writer.bell.count() != rung_before;
        Ok(if is_old { Left::More } else { left })
    }

    fn write_some(&self, sender: &mut Sender) -> Result<Left, RingError> {
        for _ in 0..MOST_ROUNDS {
            let is_all = self.stage(sender)?;
            match sender.flush()? {
                Sending::Held => return Ok(Left::Flights),
                Sending::Full => return Ok(Left::NoRoom),
                Sending::Done | Sending::InFlight if is_all => return Ok(Left::Nothing),
                Sending::Done | Sending::InFlight => {}
            }
        }
        Ok(Left::More)
    }

    /// Gives messages to the sender until it takes no more; true if it took all.
    fn stage(&self, sender: &mut Sender) -> Result<bool, RingError> {
        loop {
            // In a statement of its own: nobody waits for the queue while a long message is copied.
            let next = self.queue.lock().take_next();
            let Some((message, order)) = next else {
                return Ok(true);
            };
            let staged = sender.stage(&message);
            if staged != Ok(true) {
                // Only who has the sender takes from the front: the message is the first again. One that is
                // too long stays, too: not all errors are remembered by the sender.
                self.queue.lock().list(order).push_front(message);
                return staged;
            }
            self.sent.add(message.len());
            self.leave_queue(message.len());
        }
    }

    /// So many bytes wait no more.
    fn leave_queue(&self, bytes: usize) {
        let mut queue = self.queue.lock();
        let was_above = queue.bytes > self.limit_bytes;
        assert!(queue.bytes >= bytes, "a message leaves the queue once");
        queue.bytes -= bytes;
        if was_above && queue.bytes <= self.limit_bytes {
            self.has_room.notify_all();
        }
    }

    /// Waits until no more bytes wait than the limit: true, or false if it gave up or the mail has ended.
    pub(super) fn wait_for_room(&self, gives_up: impl Fn() -> bool) -> bool {
        loop {
            {
                let mut queue = self.queue.lock();
                if !queue.has_ended && queue.bytes > self.limit_bytes {
                    self.has_room.wait_for(&mut queue, ASK_EVERY);
                }
                if queue.has_ended {
                    return false;
                }
                if queue.bytes <= self.limit_bytes {
                    return true;
                }
            }
            // Without the lock: it may do anything.
            if gives_up() {
                return false;
            }
        }
    }

    #[cfg(test)]
    pub(super) fn waiting_bytes(&self) -> usize {
        self.queue.lock().bytes
    }

    pub(super) fn sent(&self) -> MailCounts {
        self.sent.get()
    }

    /// Sends nothing from now on, and nobody waits; gives the sender, the first time.
    pub(super) fn end(&self) -> Option<Sender> {
        let mut place = self.writer.lock();
        let sender = place.take().map(|writer| writer.sender);
        let mut queue = self.queue.lock();
        *queue = Queue {
            has_ended: true,
            ..Queue::default()
        };
        self.has_room.notify_all();
        sender
    }
}
