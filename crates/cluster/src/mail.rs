//! How do messages of sub-queries get from one node to another and back?
//!
//! By a [`Mail`], this node's end of a link with one peer. [`Mail::send`] queues a message and writes what
//! the ring has room for, and never waits for the peer. A thread of the mail writes the rest, and hands what
//! comes to a [`Postman`]. It does both by turns and waits for neither, so two nodes that send each other
//! more than their rings hold always go on.
//!
//! Messages that one thread sends arrive in that order, each once, until the mail ends: then the postman
//! hears that the peer is lost, and nothing is sent any more. Only those that are sent ahead overtake others,
//! so that what is small and is waited for does not stand behind what is large.

mod outgoing;
mod tending;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, Builder, JoinHandle};
use std::time::Duration;

use jindou_fabric::remote::{Doorbell, Fabric, NodeId};
use jindou_fabric::schedule::{runs_when_idle, take_short_turns};

use self::outgoing::{Left, Order, Outgoing};
use self::tending::Tending;
use crate::calls::{LinkEnd, LinkError};

/// Takes what a mail brings.
///
/// A message may come before [`Mail::start`] has returned. Dropping the mail is allowed in either method.
pub trait Postman: Send + Sync {
    /// Takes a message of a node. Called on the mail's thread, in the order in which messages were sent.
    /// While it runs nothing else is received, so it must not wait for what another message of this node
    /// would bring. It may send.
    ///
    /// # Errors
    /// Why the node does not speak as this one does: then the mail ends.
    fn received(&self, from: NodeId, message: Vec<u8>) -> Result<(), String>;

    /// The mail has ended, and not because it was dropped. Called once, on the mail's thread, as the last
    /// of all calls; from now on [`Mail::send`] is refused.
    fn lost(&self, node: NodeId, reason: &str);
}

/// What a mail may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MailLimits {
    /// Bytes of messages that wait for room in the ring, above which [`Mail::wait_for_room`] waits.
    pub waiting_bytes: usize,
}

impl Default for MailLimits {
    fn default() -> Self {
        Self {
            waiting_bytes: 64 << 20,
        }
    }
}

/// Messages that went one way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MailCounts {
    /// How many.
    pub messages: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// This node's end of a link over which messages go both ways.
///
/// Dropping it sends what still waits and closes the link, for as long as a probe of the peer may take, and
/// then waits for the thread, unless that is the one that drops it. After that the postman is not called.
pub struct Mail {
    shared: Arc<Shared>,
    /// Taken when this is dropped.
    thread: Option<JoinHandle<()>>,
}

/// What a mail's thread has in common with those who send.
struct Shared {
    fabric: Arc<dyn Fabric>,
    bell: Arc<Doorbell>,
    peer: NodeId,
    probe_every: Duration,
    outgoing: Outgoing,
    received: Counter,
    is_stopped: AtomicBool,
}

impl Mail {
    /// Sends and receives over a link from now on.
    ///
    /// # Errors
    /// [`LinkError::Thread`].
    pub fn start(
        end: LinkEnd,
        limits: MailLimits,
        postman: Arc<dyn Postman>,
    ) -> Result<Arc<Self>, LinkError> {
        let bell = Arc::clone(&end.bell);
        let shared = Arc::new(Shared {
            fabric: end.fabric,
            bell: end.bell,
            peer: end.peer,
            probe_every: end.options.probe_every,
            outgoing: Outgoing::new(end.sender, bell, limits.waiting_bytes),
            received: Counter::default(),
            is_stopped: AtomicBool::new(false),
        });
        // The thread does not hold the mail, only what is shared: dropping the last mail ends the thread.
        let tending = Tending::new(Arc::clone(&shared), end.receiver, postman);
        let name = format!("mail of node {}", end.peer);
        let thread = Builder::new().name(name).spawn(move || {
            // Where it is refused, answers come later, and are the same.
            let _ = take_short_turns();
            tending.run();
        });
        let refused = |source| LinkError::Thread {
            node: end.peer,
            source: Arc::new(source),
        };
        let thread = Some(thread.map_err(refused)?);
        Ok(Arc::new(Self { shared, thread }))
    }

    /// Has a message go to the peer; false once the mail has ended. Never waits for the peer: what the ring
    /// has no room for is kept, however much it is. A message that is longer than the peer takes ends the
    /// mail, as its reader would wait for ever.
    #[must_use]
    pub fn send(&self, message: Vec<u8>) -> bool {
        self.send_in(message, Order::Behind)
    }

    /// The same before all messages that wait for room in the ring, but those that were sent so.
    #[must_use]
    pub fn send_ahead(&self, message: Vec<u8>) -> bool {
        self.send_in(message, Order::Ahead)
    }

    fn send_in(&self, message: Vec<u8>, order: Order) -> bool {
        let shared = &*self.shared;
        if !shared.outgoing.push(message, order) {
            return false;
        }
        // No message is left in the queue with nobody to write it. Whoever has the sender either takes this
        // one, or looked at the queue before it was pushed. In the second case the sender is not free, and
        // the bell rings after the push. The thread waits only for a ring that came after it began its last
        // look, and it waits until the sender is free: so its next look finds this message.
        let pumped = match runs_when_idle() {
            // It may stand still with the sender, as long as others have its core.
            true => None,
            false => shared.outgoing.try_pump(),
        };
        match pumped {
            Some(Ok(Left::Nothing)) => {}
            // The peer rings once it has made room.
            Some(Ok(Left::NoRoom)) => {}
            // The thread meets the same error, and ends the mail.
            None | Some(Ok(Left::Flights | Left::More) | Err(_)) => shared.bell.ring(),
        }
        true
    }

    /// Waits while more bytes than the limit wait for room in the ring; `gives_up` is asked every few
    /// milliseconds whether to end that. True once there is room; false if it gave up, or if the mail has
    /// ended.
    ///
    /// Only those wait here who begin something new (a sub-query), and none who answer (rows, credits).
    /// Queues of answers are bounded by what was asked. So the peer's thread never waits here and always
    /// takes what comes, whatever it has to send itself: what waits here gets room, and there is no circle.
    ///
    /// # Panics
    /// On the mail's thread, which would wait for itself: [`Postman::received`] only answers.
    #[must_use]
    pub fn wait_for_room(&self, gives_up: impl Fn() -> bool) -> bool {
        assert!(
            !self.is_own_thread(),
            "the thread of a mail does not wait for itself"
        );
        self.shared.outgoing.wait_for_room(gives_up)
    }

    /// True once the mail has ended: nothing is sent any more.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.shared.outgoing.is_over()
    }

    /// Bytes of messages that wait for room in the ring. The sender of the ring holds as much as the ring
    /// and one message beside them.
    #[cfg(test)]
    fn waiting_bytes(&self) -> usize {
        self.shared.outgoing.waiting_bytes()
    }

    /// What was given to the ring's sender so far.
    #[must_use]
    pub fn sent(&self) -> MailCounts {
        self.shared.outgoing.sent()
    }

    /// What came so far.
    #[must_use]
    pub fn received(&self) -> MailCounts {
        self.shared.received.get()
    }

    /// Ends it: nothing is sent or received from now on, and what waits is lost. The postman does not hear of
    /// it. Once this has returned, [`Mail::send`] is refused, whoever has the mail.
    pub fn end(&self) {
        self.shared.is_stopped.store(true, Ordering::SeqCst);
        drop(self.shared.outgoing.end());
        self.shared.bell.ring();
    }

    fn is_own_thread(&self) -> bool {
        let own = self.thread.as_ref().map(|thread| thread.thread().id());
        own == Some(thread::current().id())
    }
}

impl Drop for Mail {
    fn drop(&mut self) {
        self.shared.is_stopped.store(true, Ordering::SeqCst);
        self.shared.bell.ring();
        // The postman may have the last mail, and drop it on the mail's thread: that ends by itself.
        let is_own_thread = self.is_own_thread();
        if let Some(thread) = self.thread.take()
            && !is_own_thread
        {
            // A panic of the postman's `lost` has been reported, and is not to become two.
            let _ended = thread.join();
        }
    }
}

impl Shared {
    fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::SeqCst)
    }
}

/// Counts messages.
#[derive(Default)]
struct Counter {
    messages: AtomicU64,
    bytes: AtomicU64,
}

impl Counter {
    fn add(&self, bytes: usize) {
        self.messages.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    fn get(&self) -> MailCounts {
        MailCounts {
            messages: self.messages.load(Ordering::Relaxed),
            bytes: self.bytes.load(Ordering::Relaxed),
        }
    }
}
