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
    places: Arc<Semaphore>,
    spare: Arc<Semaphore>,
    open: Mutex<HashMap<u64, Arc<Peer>>>,
    /// Numbers connections and when they became idle.
    clock: AtomicU64,
    /// Somebody waits for a place.
    is_full: AtomicBool,
    became_idle: Notify,
}

/// A connection's leave to be open.
pub(crate) struct Place {
    permit: OwnedSemaphorePermit,
    is_spare: bool,
}

impl Connections {
    pub(crate) fn new(most: usize) -> Self {
        Self {
            places: Arc::new(Semaphore::new(most.min(Semaphore::MAX_PERMITS))),
            spare: Arc::new(Semaphore::new(SPARE)),
            open: Mutex::default(),
            clock: AtomicU64::new(0),
            is_full: AtomicBool::new(false),
            became_idle: Notify::new(),
        }
    }

    /// Waits until one more connection may be open.
    pub(crate) async fn place(&self) -> Place {
        loop {
            if let Some(place) = self.try_place() {
                return place;
            }
            self.is_full.store(true, Relaxed);
            self.let_one_go(true);
            let closed = "the semaphores are never closed";
            let (permit, is_spare) = tokio::select! {
                biased;
                permit = Arc::clone(&self.places).acquire_owned() => (permit.expect(closed), false),
                permit = Arc::clone(&self.spare).acquire_owned() => (permit.expect(closed), true),
                () = self.became_idle.notified() => continue,
            };
            return Place { permit, is_spare };
        }
    }

    fn try_place(&self) -> Option<Place> {
        if let Ok(permit) = Arc::clone(&self.places).try_acquire_owned() {
            self.is_full.store(false, Relaxed);
            return Some(Place {
                permit,
                is_spare: false,
            });
        }
        let permit = Arc::clone(&self.spare).try_acquire_owned().ok()?;
        Some(Place {
            permit,
            is_spare: true,
        })
    }

    /// Takes a connection in.
    pub(crate) fn open(self: &Arc<Self>, mut place: Place) -> Open {
        if place.is_spare {
            match Arc::clone(&self.places).try_acquire_owned() {
                Ok(permit) => {
                    place = Place {
                        permit,
                        is_spare: false,
                    };
                }
                Err(_) => self.let_one_go(false),
            }
        }
        let number = self.tick();
        let peer = Arc::new(Peer {
            connections: Arc::clone(self),
            number,
            is_spare: AtomicBool::new(place.is_spare),
            permit: Mutex::new(place.permit),
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
}

/// What follows on a connection that left HTTP.
pub(crate) type Session =
    Box<dyn FnOnce(Arc<Service>, Arc<Peer>) -> Pin<Box<dyn Future<Output = ()> + Send>> + Send>;

/// One connection, as the others see it.
pub(crate) struct Peer {
    connections: Arc<Connections>,
    number: u64,
    is_spare: AtomicBool,
    permit: Mutex<OwnedSemaphorePermit>,
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
            _ => Activity::Answering,
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
                *self.permit.lock().expect("nobody panics while it has it") = permit;
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
    /// Its answer begins: nothing else may be sent before its end.
    pub(crate) fn answers(&self) {
        self.0.activity.store(Activity::Answering as u8, Relaxed);
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
