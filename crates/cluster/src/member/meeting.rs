//! How do members find each other, and find each other again?
//!
//! Of two nodes the one with the greater number connects, and tries again for as long as the other one is
//! away. A thread for each such peer does that, and one takes what comes.

use std::collections::VecDeque;
use std::fmt::Display;
use std::io;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use jindou_model::NodeId;
use parking_lot::{Condvar, Mutex};
use socket2::SockRef;

use super::Member;
use super::joining::{JoinError, join};
use crate::calls::LinkError;
use crate::connect::connect;
use crate::hello::{Handshake, HelloError, Role};

/// The first pause before a peer that is away is tried again; doubled with each try,
const FIRST_PAUSE: Duration = Duration::from_millis(50);
/// up to this.
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
/// After an error of the listener, which may be one of having too many files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// Connections that are not known to be of nodes yet, at most. One more takes the place of the oldest: who is
/// slow to say anything keeps no node out, which is known within milliseconds.
const MOST_STRANGERS: usize = 64;
/// How often those that turn out to be of no node are told of, at most.
const TELL_EVERY: Duration = Duration::from_secs(10);

/// How it is with the meetings of a member.
pub(super) struct Meeting {
    stopped: AtomicBool,
    next_link: AtomicU64,
    strangers: Mutex<Strangers>,
    state: Mutex<State>,
    /// Something of the state, or who is there, is different.
    changed: Condvar,
    /// Ended with the meetings.
    listener: Mutex<Option<TcpListener>>,
}

/// Connections that are not known to be of nodes yet.
#[derive(Default)]
struct Strangers {
    /// Oldest first, by number.
    waiting: VecDeque<(u64, TcpStream)>,
    next: u64,
    /// When one was told of last, and how many were not since.
    told_at: Option<Instant>,
    untold: u64,
}

struct State {
    /// Why each peer was away when it was last tried.
    reasons: Vec<String>,
    /// How often something was different.
    changes: u64,
}

impl Meeting {
    pub(super) fn new(nodes: usize) -> Self {
        Self {
            stopped: AtomicBool::new(false),
            next_link: AtomicU64::new(1),
            strangers: Mutex::default(),
            state: Mutex::new(State {
                reasons: vec!["it has not been met yet".to_owned(); nodes],
                changes: 0,
            }),
            changed: Condvar::new(),
            listener: Mutex::default(),
        }
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::SeqCst)
    }

    /// Ends all threads soon.
    pub(super) fn stop(&self) {
        self.stopped.store(true, Ordering::SeqCst);
        if let Some(listener) = self.listener.lock().take() {
            // Who waits in it for a connection gets an error; there is none to report of that.
            let _ = SockRef::from(&listener).shutdown(Shutdown::Both);
        }
        self.state.lock().changes += 1;
        self.changed.notify_all();
    }

    /// Why a peer is away.
    pub(super) fn reason(&self, node: NodeId) -> String {
        self.state.lock().reasons[node.0 as usize].clone()
    }

    /// Notes why a peer is away; true if that is news.
    pub(super) fn note(&self, node: NodeId, reason: String) -> bool {
        let mut state = self.state.lock();
        state.changes += 1;
        let place = &mut state.reasons[node.0 as usize];
        let is_news = *place != reason;
        *place = reason;
        self.changed.notify_all();
        is_news
    }

    /// Waits until `is_so`, which is asked whenever something is different, or for so long.
    pub(super) fn wait_until(&self, within: Duration, is_so: impl Fn() -> bool) -> bool {
        let give_up = Instant::now() + within;
        loop {
            let seen = self.changes();
            if is_so() {
                return true;
            }
            if self.is_stopped() || !self.wait_for_change(seen, give_up) {
                return is_so();
            }
        }
    }

    fn changes(&self) -> u64 {
        self.state.lock().changes
    }

    /// Waits until something is different than it was after so many changes; false if that takes too long.
    fn wait_for_change(&self, seen: u64, give_up: Instant) -> bool {
        let mut state = self.state.lock();
        while state.changes == seen {
            if self.changed.wait_until(&mut state, give_up).timed_out() {
                return state.changes != seen;
            }
        }
        true
    }

    fn pause(&self, pause: Duration) {
        self.wait_until(pause, || self.is_stopped());
    }
}

/// Starts the threads of a member.
pub(super) fn start(
    member: &Arc<Member>,
    listener: TcpListener,
) -> Result<Vec<JoinHandle<()>>, LinkError> {
    let meeting = &member.meeting;
    let here = member.here();
    let of_listener = listener.try_clone().map_err(|error| refused(here, error))?;
    *meeting.listener.lock() = Some(of_listener);
    let (weak, at) = (Arc::downgrade(member), Arc::clone(meeting));
    let mut threads = vec![thread(here, "accept nodes", move || {
        accept(&weak, &at, &listener);
    })?];
    let is_met = |peer: &NodeId| *peer < here && member.options.peers.is_met(*peer);
    for peer in member.map.nodes().filter(is_met) {
        let (weak, at) = (Arc::downgrade(member), Arc::clone(meeting));
        let name = format!("meet node {peer}");
        threads.push(thread(peer, &name, move || keep(&weak, &at, peer))?);
    }
    Ok(threads)
}

fn thread(
    node: NodeId,
    name: &str,
    run: impl FnOnce() + Send + 'static,
) -> Result<JoinHandle<()>, LinkError> {
    let thread = Builder::new().name(name.to_owned()).spawn(run);
    thread.map_err(|error| refused(node, error))
}

fn refused(node: NodeId, source: io::Error) -> LinkError {
    LinkError::Thread {
        node,
        source: Arc::new(source),
    }
}

impl Member {
    /// A peer that connected cannot be joined: notes why, where it proved that it is one and is away. Who does
    /// not know the secret may say to be any node, and is nothing but a line of the log.
    pub(super) fn was_not_met(&self, error: &JoinError) {
        let JoinError::Hello(error) = error else {
            return;
        };
        let peers = &self.options.peers;
        let (HelloError::OtherSnapshot { name, .. } | HelloError::OtherPeers { name }) = error
        else {
            return;
        };
        let Ok(node) = peers.node(name) else {
            return;
        };
        if node != self.here() && self.link(node).is_none() {
            self.meeting.note(node, error.to_string());
        }
    }
}

/// How long a peer that is away is left alone before it is tried again.
struct Pauses(Duration);

impl Pauses {
    /// The pause after a try that failed, or after a link that broke.
    fn next(&mut self) -> Duration {
        let next = self.0;
        self.0 = (next * 2).min(LONGEST_PAUSE);
        next
    }

    /// There was a link for so long. One that breaks at once, as the peer cannot use it, is as good as a try
    /// that failed.
    fn was_linked(&mut self, lasted: Duration) {
        if lasted >= LONGEST_PAUSE {
            self.0 = FIRST_PAUSE;
        }
    }
}

/// Keeps a member connected with a peer.
fn keep(member: &Weak<Member>, meeting: &Meeting, peer: NodeId) {
    let mut pauses = Pauses(FIRST_PAUSE);
    let mut met_at: Option<Instant> = None;
    while !meeting.is_stopped() {
        let seen = meeting.changes();
        let Some(member) = member.upgrade() else {
            return;
        };
        if member.link(peer).is_some() {
            drop(member);
            meeting.wait_for_change(seen, Instant::now() + LONGEST_PAUSE);
            continue;
        }
        if let Some(met_at) = met_at.take() {
            drop(member);
            pauses.was_linked(met_at.elapsed());
            meeting.pause(pauses.next());
            continue;
        }
        match dial(&member, peer) {
            Ok(()) => met_at = Some(Instant::now()),
            Err(error) => {
                let reason = error.to_string();
                if meeting.note(peer, reason.clone()) {
                    let node = member.name(peer);
                    tracing::warn!(node, reason, "a node cannot be met");
                }
                drop(member);
                meeting.pause(pauses.next());
            }
        }
    }
}

fn dial(member: &Arc<Member>, peer: NodeId) -> Result<(), JoinError> {
    let within = member.options.meet_within;
    let address = &member.options.peers.peers()[peer.0 as usize].address;
    let stream = connect(address, within).map_err(JoinError::Connect)?;
    meet(member, stream, Role::Dialer { to: peer }, None).map(drop)
}

/// A node that has no copy of the store, and asks for one over this connection.
struct Asks {
    node: NodeId,
    stream: TcpStream,
}

/// Learns who is at the other end, and joins with it, unless it asks for a copy.
fn meet(
    member: &Arc<Member>,
    stream: TcpStream,
    role: Role,
    place: Option<&StrangerPlace>,
) -> Result<Option<Asks>, JoinError> {
    stream.set_nodelay(true).map_err(JoinError::Connect)?;
    let facts = member.facts();
    let handshake = Handshake {
        here: member.here(),
        nodes: member.map.nodes().len() as u32,
        secret: member.options.secret.as_ref(),
        facts: &facts,
        role,
        gives_copies: role == Role::Acceptor && member.users.user().is_some(),
        within: member.options.meet_within,
    };
    let greeted = handshake.run(&stream)?;
    place.into_iter().for_each(StrangerPlace::leave);
    let peer = greeted.node;
    if !member.options.peers.is_met(peer) {
        return Err(JoinError::HasLeft);
    }
    if greeted.wants_copy {
        return Ok(Some(Asks { node: peer, stream }));
    }
    if role == Role::Acceptor && peer < member.here() {
        return Err(JoinError::Malformed(
            "it is to be connected to, and connects",
        ));
    }
    let number = member.meeting.next_link.fetch_add(1, Ordering::Relaxed);
    let joined =
        join(member, greeted, stream, number).and_then(|joined| member.joined(peer, joined));
    if joined.is_err() {
        member.disconnect(peer, number);
    }
    joined.map(|()| None)
}

/// Takes what comes, until the listener is ended.
fn accept(member: &Weak<Member>, meeting: &Arc<Meeting>, listener: &TcpListener) {
    while !meeting.is_stopped() {
        match listener.accept() {
            Ok(connection) => welcome(member, meeting, connection),
            Err(_) if meeting.is_stopped() => return,
            Err(error) => {
                tracing::warn!(%error, "no connection of a node could be taken");
                meeting.pause(ACCEPT_PAUSE);
            }
        }
    }
}

/// Has a thread learn who it is.
fn welcome(
    member: &Weak<Member>,
    meeting: &Arc<Meeting>,
    (stream, address): (TcpStream, SocketAddr),
) {
    let place = match StrangerPlace::new(meeting, &stream) {
        Ok(place) => place,
        Err(error) => return meeting.tell(address, &error),
    };
    let member = Weak::clone(member);
    let run = move || {
        let Some(member) = member.upgrade() else {
            return;
        };
        match meet(&member, stream, Role::Acceptor, Some(&place)) {
            Ok(None) => {}
            Ok(Some(asks)) => {
                let user = member.users.user();
                // It takes long, and keeps no member.
                drop(member);
                if let Some(user) = user {
                    user.give_copy(asks.node, asks.stream);
                }
            }
            // It tries again, and this one hears of the list soon.
            Err(error @ JoinError::Hello(HelloError::NewerList { .. })) => {
                tracing::info!(%error, "a node cannot be met yet");
            }
            Err(error) => {
                member.was_not_met(&error);
                place.meeting.tell(address, &error);
            }
        }
    };
    if let Err(error) = Builder::new().name("meet".to_owned()).spawn(run) {
        meeting.tell(address, &error);
    }
}

impl Meeting {
    /// Tells of a connection that is of no node, but not of each where there are many.
    fn tell(&self, address: SocketAddr, error: &dyn Display) {
        let untold = {
            let mut strangers = self.strangers.lock();
            let is_late = |told: Instant| told.elapsed() >= TELL_EVERY;
            if !strangers.told_at.is_none_or(is_late) {
                strangers.untold += 1;
                return;
            }
            strangers.told_at = Some(Instant::now());
            std::mem::take(&mut strangers.untold)
        };
        tracing::warn!(%address, %error, untold, "a connection is of no node of this cluster");
    }
}

/// A place among those who are not known yet.
struct StrangerPlace {
    meeting: Arc<Meeting>,
    number: u64,
}

impl StrangerPlace {
    /// A place, which may be that of the one who has been waiting for longest.
    fn new(meeting: &Arc<Meeting>, stream: &TcpStream) -> io::Result<Self> {
        let stream = stream.try_clone()?;
        let mut strangers = meeting.strangers.lock();
        if strangers.waiting.len() >= MOST_STRANGERS
            && let Some((_, oldest)) = strangers.waiting.pop_front()
        {
            // Its thread reads the end.
            let _ = oldest.shutdown(Shutdown::Both);
        }
        strangers.next += 1;
        let number = strangers.next;
        strangers.waiting.push_back((number, stream));
        let meeting = Arc::clone(meeting);
        Ok(Self { meeting, number })
    }

    /// It is known now.
    fn leave(&self) {
        let mut strangers = self.meeting.strangers.lock();
        strangers
            .waiting
            .retain(|(number, _)| *number != self.number);
    }
}

impl Drop for StrangerPlace {
    fn drop(&mut self) {
        self.leave();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_that_break_at_once_are_tried_more_and_more_seldom() {
        let mut pauses = Pauses(FIRST_PAUSE);
        let mut last = Duration::ZERO;
        while last < LONGEST_PAUSE {
            pauses.was_linked(Duration::from_millis(1));
            let next = pauses.next();
            assert!(next > last, "{next:?} after {last:?}");
            last = next;
        }
        assert_eq!(pauses.next(), LONGEST_PAUSE);
        pauses.was_linked(LONGEST_PAUSE);
        assert_eq!(pauses.next(), FIRST_PAUSE);
    }
}
