//! Who may connect when as many are connected as may be?
//!
//! The connection that has been idle for longest gives way. While all others are busy, a few more
//! are accepted that may ask only how the server is: whoever watches it must be able to, above all
//! when it is full.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use crate::service::Service;
use hyper::Version;
use jindou_fabric::pace::LongWork;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

/// Connections beyond those that may ask anything.
pub(crate) const SPARE: usize = 16;
/// How long a request of a spare connection waits for the place of another that gives way.
const WAIT: Duration = Duration::from_millis(250);
/// Of a connection that is busy.
const BUSY: u64 = u64::MAX;

/// All connections of a server.
pub(crate) struct Connections {
    /// Of connections that may ask anything.
    places: Arc<Semaphore>,
    /// Of all: those and the spare ones.
    sockets: Arc<Semaphore>,
    open: Mutex<HashMap<u64, Arc<Peer>>>,
    /// Numbers connections and when they became idle.
    clock: AtomicU64,
    /// Somebody waits for a place.
    is_full: AtomicBool,
    became_idle: Notify,
}

/// A connection's leave to be open. What it may ask is settled when it is there: who waits for
/// clients must not keep a place from a connection that asks.
pub(crate) struct Leave {
    _socket: OwnedSemaphorePermit,
}

impl Connections {
    pub(crate) fn new(most: usize) -> Self {
        let most = most.min(Semaphore::MAX_PERMITS - SPARE);
        Self {
            places: Arc::new(Semaphore::new(most)),
            sockets: Arc::new(Semaphore::new(most + SPARE)),
            open: Mutex::default(),
            clock: AtomicU64::new(0),
            is_full: AtomicBool::new(false),
            became_idle: Notify::new(),
        }
    }

    /// Waits until one more connection may be open.
    pub(crate) async fn leave(&self) -> Leave {
        loop {
            if let Ok(permit) = Arc::clone(&self.sockets).try_acquire_owned() {
                self.is_full.store(false, Relaxed);
                return Leave { _socket: permit };
            }
            self.is_full.store(true, Relaxed);
            self.let_one_go(true);
            tokio::select! {
                biased;
                permit = Arc::clone(&self.sockets).acquire_owned() => {
                    let permit = permit.expect("the semaphores are never closed");
                    return Leave { _socket: permit };
                }
                () = self.became_idle.notified() => {}
            }
        }
    }

    /// Takes a connection in.
    pub(crate) fn open(self: &Arc<Self>, leave: Leave) -> Open {
        let place = Arc::clone(&self.places).try_acquire_owned().ok();
        if place.is_none() {
            self.let_one_go(false);
        }
        let number = self.tick();
        let peer = Arc::new(Peer {
            connections: Arc::clone(self),
            number,
            is_spare: AtomicBool::new(place.is_none()),
            place: Mutex::new(place),
            _leave: leave,
            activity: AtomicU8::new(Activity::Idle as u8),
            idle_since: AtomicU64::new(number),
            is_leaving: AtomicBool::new(false),
            receives_long: AtomicBool::new(false),
            session: Mutex::new(None),
            leave: Notify::new(),
        });
        self.lock().insert(number, Arc::clone(&peer));
        Open(peer)
    }

    /// Tells the connection that has been idle for longest to end; spare ones too if `any`.
    fn let_one_go(&self, any: bool) {
        let open = self.lock();
        let may_go = |peer: &&Arc<Peer>| {
            let is_idle = peer.idle_since.load(Relaxed) != BUSY;
            is_idle && !peer.is_leaving.load(Relaxed) && (any || !peer.is_spare.load(Relaxed))
        };
        let longest = open.values().filter(may_go);
        if let Some(peer) = longest.min_by_key(|peer| peer.idle_since.load(Relaxed)) {
            peer.is_leaving.store(true, Relaxed);
            peer.leave.notify_one();
        }
    }

    fn tick(&self) -> u64 {
        self.clock.fetch_add(1, Relaxed)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Arc<Peer>>> {
        self.open
            .lock()
            .expect("nobody panics while it has the list")
    }
}

/// What a connection does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Activity {
    /// No request is under way.
    Idle,
    /// Its answer has not begun, and the client takes interim responses.
    Waiting,
    /// An answer is computed or sent, between which nothing else may be.
    Answering,
    /// And it has no end, but for that of the connection.
    AnsweringForEver,
}

/// What follows on a connection that left HTTP.
pub(crate) type Session =
    Box<dyn FnOnce(Arc<Service>, Arc<Peer>) -> Pin<Box<dyn Future<Output = ()> + Send>> + Send>;

/// One connection, as the others see it.
pub(crate) struct Peer {
    connections: Arc<Connections>,
    number: u64,
    is_spare: AtomicBool,
    place: Mutex<Option<OwnedSemaphorePermit>>,
    _leave: Leave,
    activity: AtomicU8,
    /// By the clock of the connections.
    idle_since: AtomicU64,
    is_leaving: AtomicBool,
    leave: Notify,
    receives_long: AtomicBool,
    session: Mutex<Option<Session>>,
}

impl Peer {
    /// What is to be done with the connection after its last answer, which leaves HTTP.
    pub(crate) fn set_session(&self, session: Session) {
        *self.session.lock().expect("nobody panics while it has it") = Some(session);
    }

    pub(crate) fn take_session(&self) -> Option<Session> {
        let mut session = self.session.lock().expect("nobody panics while it has it");
        session.take()
    }

    pub(crate) fn activity(&self) -> Activity {
        match self.activity.load(Relaxed) {
            0 => Activity::Idle,
            1 => Activity::Waiting,
            2 => Activity::Answering,
            _ => Activity::AnsweringForEver,
        }
    }

    /// Whether a long body comes in.
    pub(crate) fn receives_long(&self) -> bool {
        self.receives_long.load(Relaxed)
    }

    /// Notes that a long body comes in, until what this returns is dropped.
    pub(crate) fn begin_long(self: &Arc<Self>) -> LongBody {
        self.receives_long.store(true, Relaxed);
        LongBody {
            peer: Arc::clone(self),
            _work: LongWork::begin(),
        }
    }

    /// Waits until the connection is to give way to another.
    pub(crate) async fn until_told_to_leave(&self) {
        self.leave.notified().await;
    }

    /// Notes that a request is under way until what this returns is dropped.
    pub(crate) fn begin(self: &Arc<Self>, version: Version) -> Underway {
        let activity = match version >= Version::HTTP_11 {
            true => Activity::Waiting,
            false => Activity::Answering,
        };
        self.idle_since.store(BUSY, Relaxed);
        self.activity.store(activity as u8, Relaxed);
        Underway(Arc::clone(self))
    }

    /// Whether the connection may only ask how the server is. Waits a moment for another that
    /// gives way.
    pub(crate) async fn is_confined(&self) -> bool {
        if !self.is_spare() {
            return false;
        }
        let place = Arc::clone(&self.connections.places).acquire_owned();
        match tokio::time::timeout(WAIT, place).await {
            Ok(Ok(permit)) => {
                *self.place.lock().expect("nobody panics while it has it") = Some(permit);
                self.is_spare.store(false, Relaxed);
                false
            }
            _ => true,
        }
    }

    pub(crate) fn is_spare(&self) -> bool {
        self.is_spare.load(Relaxed)
    }
}

/// A connection that is open; dropped when it is not any more.
pub(crate) struct Open(pub(crate) Arc<Peer>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.connections.lock().remove(&self.0.number);
    }
}

/// A long body that comes in.
pub(crate) struct LongBody {
    peer: Arc<Peer>,
    _work: LongWork,
}

impl Drop for LongBody {
    fn drop(&mut self) {
        self.peer.receives_long.store(false, Relaxed);
    }
}

/// A request under way.
pub(crate) struct Underway(Arc<Peer>);

impl Underway {
    /// Its answer begins: nothing else may be sent before its end, if it has one.
    pub(crate) fn answers(&self, is_for_ever: bool) {
        let activity = match is_for_ever {
            true => Activity::AnsweringForEver,
            false => Activity::Answering,
        };
        self.0.activity.store(activity as u8, Relaxed);
    }
}

impl Drop for Underway {
    fn drop(&mut self) {
        let Peer { connections, .. } = &*self.0;
        self.0.activity.store(Activity::Idle as u8, Relaxed);
        self.0.idle_since.store(connections.tick(), Relaxed);
        if connections.is_full.load(Relaxed) {
            connections.became_idle.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[tokio::test]
    async fn who_waits_for_clients_keeps_no_place_from_one_that_asks() {
        let connections = Arc::new(Connections::new(1));
        let first = connections.open(connections.leave().await);
        let second = connections.open(connections.leave().await);
        assert!(!first.0.is_spare());
        assert!(second.0.is_spare());
        first.0.until_told_to_leave().await;
        drop(first);
        let _next = connections.leave().await;
        assert!(!second.0.is_confined().await);
    }

    #[tokio::test]
    async fn no_more_are_open_than_the_spare_ones_beyond_the_places() {
        let connections = Arc::new(Connections::new(2));
        let mut open = Vec::new();
        for _ in 0..2 + SPARE {
            open.push(connections.open(connections.leave().await));
        }
        let spare = open.iter().filter(|open| open.0.is_spare());
        assert_eq!(spare.count(), SPARE);
        let busy: Vec<_> = open.iter().map(|o| o.0.begin(Version::HTTP_11)).collect();
        let next = connections.leave();
        tokio::pin!(next);
        assert!(next.as_mut().now_or_never().is_none());
        drop(busy);
        assert!(next.as_mut().now_or_never().is_none());
        open.pop();
        let _next = next.await;
    }
}
