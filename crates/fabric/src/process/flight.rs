//! How far is a batch that peers carry out, and who sends its next message?

use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use super::node::{Node, Peer};
use super::wire::{Item, MESSAGE_ITEMS, MESSAGE_WORDS, deliver, due, request};
use crate::FabricError;
use crate::remote::{Batch, BellAddress, Completed, Flight, Interrupt};
use crate::schedule::runs_when_idle;

/// Messages of one batch that are on their way at most, of 64 KiB each at most: what others send
/// waits for these.
const WINDOW: usize = 4;

/// A batch that is under way.
pub(super) struct MessageFlight {
    number: u64,
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    batch: Batch,
    messages: Vec<Message>,
    /// The first message that was not sent.
    next: usize,
    unanswered: usize,
    /// Bells that ring after all else.
    bells: Vec<BellAddress>,
    outcome: Option<Result<(), FabricError>>,
    /// Nobody waits for it any more.
    is_abandoned: bool,
}

struct Message {
    peer: Arc<Peer>,
    items: Vec<Item>,
    is_answered: bool,
}

/// A message has at most a quarter of what peers accept in one: 64 KiB of data and 256 operations.
const USUAL_PART: usize = 4;
/// Messages of a thread that runs when a core is idle have at most a sixteenth.
const SMALL_PART: usize = 16;

/// Operations by the message that they go with.
pub(super) struct Messages {
    messages: Vec<Message>,
    /// The last message to each peer.
    open: Vec<Open>,
    /// Divides the data and the operations that peers accept in one message.
    part: usize,
}

/// A message that may have room.
struct Open {
    /// Its place.
    message: usize,
    /// Words of data of it.
    words: usize,
}

impl Default for Messages {
    /// Messages that the calling thread sends: one that [`runs_when_idle`] sends short ones, as what the peer does
    /// for it keeps others waiting there.
    fn default() -> Self {
        Self {
            messages: Vec::new(),
            open: Vec::new(),
            part: if runs_when_idle() {
                SMALL_PART
            } else {
                USUAL_PART
            },
        }
    }
}

impl Messages {
    pub(super) fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// True if the last message has room for `items` more operations without data.
    pub(super) fn has_room_for(&self, items: usize) -> bool {
        let last = self.messages.last();
        last.is_some_and(|last| last.items.len() + items <= MESSAGE_ITEMS / self.part)
    }

    /// Words of data that a message has at most.
    pub(super) fn most_words(&self) -> usize {
        MESSAGE_WORDS / self.part
    }

    /// Adds an operation for a peer. Those for one peer share messages, whatever comes between them for others.
    pub(super) fn add(&mut self, peer: &Arc<Peer>, item: Item) {
        let is_to_peer = |open: &Open| Arc::ptr_eq(&self.messages[open.message].peer, peer);
        let known = self.open.iter().rposition(is_to_peer);
        if let Some(place) = known {
            let Open { message, words } = &mut self.open[place];
            let message = &mut self.messages[*message];
            let with_it = *words + item.words();
            if with_it <= MESSAGE_WORDS / self.part
                && message.items.len() < MESSAGE_ITEMS / self.part
            {
                message.items.push(item);
                *words = with_it;
                return;
            }
            self.open.swap_remove(place);
        }
        self.open.push(Open {
            message: self.messages.len(),
            words: item.words(),
        });
        self.messages.push(Message {
            peer: Arc::clone(peer),
            items: vec![item],
            is_answered: false,
        });
    }

    /// The only peer, if all goes to it in one message.
    pub(super) fn only_peer(&self) -> Option<&Arc<Peer>> {
        match &self.messages[..] {
            [one] => Some(&one.peer),
            _ => None,
        }
    }
}

impl MessageFlight {
    pub(super) fn new(
        number: u64,
        batch: Batch,
        messages: Messages,
        bells: Vec<BellAddress>,
    ) -> Self {
        let state = State {
            batch,
            messages: messages.messages,
            next: 0,
            unanswered: 0,
            bells,
            outcome: None,
            is_abandoned: false,
        };
        Self {
            number,
            state: Mutex::new(state),
            changed: Condvar::new(),
        }
    }

    /// Sends what the window allows, and goes on to the bells when all is answered.
    pub(super) fn advance(&self, node: &Node) {
        let mut state = self.state.lock();
        self.send(&mut state, node);
    }

    fn send(&self, state: &mut State, node: &Node) {
        while state.outcome.is_none() {
            if state.next == state.messages.len() {
                if state.unanswered > 0 {
                    return;
                }
                let bells = std::mem::take(&mut state.bells);
                if bells.is_empty() {
                    self.end(state, Ok(()));
                    return;
                }
                match node.ring(&bells) {
                    Ok(messages) => state.messages.extend(messages.messages),
                    Err(error) => self.end(state, Err(error)),
                }
                continue;
            }
            if state.unanswered >= WINDOW {
                return;
            }
            let place = state.next;
            let message = &state.messages[place];
            if message.peer.is_lost() {
                let error = FabricError::PeerLost(message.peer.node());
                self.end(state, Err(error));
                return;
            }
            let words = request(
                node.asker(),
                self.number,
                place,
                &message.items,
                &state.batch,
            );
            let due = due(self.number, place, &message.items);
            node.ask(&message.peer, words, due);
            state.next += 1;
            state.unanswered += 1;
        }
    }

    /// An answer came.
    pub(super) fn answer(&self, place: usize, answer: &[u64], node: &Node) {
        let mut state = self.state.lock();
        let state = &mut *state;
        let next = state.next;
        let Some(message) = state.messages.get_mut(place) else {
            return;
        };
        if place >= next || message.is_answered || state.outcome.is_some() {
            return;
        }
        message.is_answered = true;
        state.unanswered -= 1;
        match deliver(
            answer,
            message.peer.node(),
            &message.items,
            &mut state.batch,
        ) {
            Ok(()) => self.send(state, node),
            Err(error) => self.end(state, Err(error)),
        }
    }

    /// Ends the flight if a peer that has not answered is lost, or all of this node is.
    pub(super) fn check(&self, node: &Node) {
        let mut state = self.state.lock();
        self.check_state(&mut state, node);
    }

    fn check_state(&self, state: &mut State, node: &Node) {
        if state.outcome.is_some() {
            return;
        }
        let lost = |message: &&Message| !message.is_answered && message.peer.is_lost();
        if let Err(error) = node.check() {
            self.end(state, Err(error));
        } else if let Some(message) = state.messages.iter().find(lost) {
            let error = FabricError::PeerLost(message.peer.node());
            self.end(state, Err(error));
        }
    }

    fn end(&self, state: &mut State, outcome: Result<(), FabricError>) {
        state.outcome.get_or_insert(outcome);
        self.changed.notify_all();
    }

    /// True once nobody needs to know of it.
    pub(super) fn is_forgotten(&self) -> bool {
        let state = self.state.lock();
        state.is_abandoned && state.outcome.is_some()
    }
}

/// The hold of whoever waits for a flight.
pub(super) struct Waiting {
    pub(super) node: Arc<Node>,
    pub(super) flight: Arc<MessageFlight>,
}

impl Flight for Waiting {
    fn poll(&mut self) -> Option<Result<Completed, FabricError>> {
        let mut state = self.flight.state.lock();
        self.flight.check_state(&mut state, &self.node);
        let outcome = state.outcome.clone()?;
        Some(outcome.map(|()| Completed::new(std::mem::take(&mut state.batch))))
    }

    fn pause(&mut self, interrupt: &Interrupt<'_>) -> Result<(), FabricError> {
        /// Turns of the worker before the thread sleeps: an answer over a fast network is there by
        /// then.
        const TURNS: usize = 64;
        /// That a peer was lost is seen by looking.
        const LOOK: Duration = Duration::from_millis(10);
        for _ in 0..TURNS {
            if !self.node.try_progress() || self.flight.state.lock().outcome.is_some() {
                break;
            }
        }
        let mut state = self.flight.state.lock();
        if state.outcome.is_none() {
            let patience = interrupt.patience(self.node.now());
            let patience = patience.map_or(LOOK, |patience| patience.min(LOOK));
            self.flight.changed.wait_for(&mut state, patience);
        }
        Ok(())
    }

    fn now(&self) -> Duration {
        self.node.now()
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        // What is under way goes on without us.
        let is_over = {
            let mut state = self.flight.state.lock();
            state.is_abandoned = true;
            state.outcome.is_some()
        };
        if is_over {
            self.node.forget(self.flight.number);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};
    use std::sync::atomic::AtomicBool;

    use super::*;
    use crate::process::node::Carrier;
    use crate::process::stream::Stream;
    use crate::remote::NodeId;

    #[test]
    fn operations_for_peers_in_turn_share_a_message_each() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let peer = |number: u32| {
            let socket = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let carrier = Carrier::Stream(Stream::new(socket).unwrap());
            let is_lost = Arc::new(AtomicBool::new(false));
            let node = NodeId(number);
            Arc::new(Peer::new(node, 1, carrier, is_lost, None, None))
        };
        let peers = [1, 2, 3].map(peer);
        let read = |place: usize| Item::Read {
            number: 1,
            offset: 8 * place as u64,
            into: (place, 0),
            length: 8,
        };
        let mut messages = Messages::default();
        let most_items = MESSAGE_ITEMS / messages.part;
        let reads = 3 * (most_items + 10);
        for place in 0..reads {
            messages.add(&peers[place % 3], read(place));
        }
        let sizes: Vec<(u32, usize)> = messages
            .messages
            .iter()
            .map(|message| (message.peer.node().0, message.items.len()))
            .collect();
        let expected = [1, 2, 3].map(|node| (node, most_items));
        let rest = [1, 2, 3].map(|node| (node, 10));
        assert_eq!(sizes, [expected, rest].concat());
        assert!(messages.only_peer().is_none());
    }
}
