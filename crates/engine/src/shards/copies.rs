//! What do the nodes of a cluster that is written say to each other beside their queries?
//!
//! Transactions and writes, which are a [`Replica`]'s, and which snapshots the queries of a node use, so that the
//! others keep these. Each message ends with a byte that says of which it is.

use std::net::TcpStream;
use std::sync::{Arc, Weak};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use jindou_cluster::{LinkUser, Member};
use jindou_model::{NodeId, SnapshotNumber};
use parking_lot::{Condvar, Mutex};

use super::snapshots::{MOST_PINNED, Snapshots};
use crate::replica::{Replica, ReplicaWay};

/// The last byte of a message.
const OF_REPLICA: u8 = 0;
const IN_USE: u8 = 1;

/// How long a node that gets a copy of the store may take nothing of it: another one may wait for its turn.
const SILENT_WITHIN: Duration = Duration::from_secs(10);

/// How often the others hear which snapshots are in use here: a fraction of the time in which those that nobody
/// uses go.
const TELL_EVERY: Duration = Duration::from_millis(100);

/// The links of a member, as a way between replicas.
#[derive(Default)]
pub(super) struct ByMember(Mutex<Weak<Member>>);

impl ByMember {
    /// Begins, before the member meets anybody, and after one before has left.
    pub(super) fn begin(&self, member: &Arc<Member>) {
        *self.0.lock() = Arc::downgrade(member);
    }

    fn send(&self, to: NodeId, mut message: Vec<u8>, kind: u8) -> bool {
        message.push(kind);
        self.member().is_some_and(|member| member.send(to, message))
    }

    fn member(&self) -> Option<Arc<Member>> {
        self.0.lock().upgrade()
    }
}

impl ReplicaWay for ByMember {
    fn send(&self, to: NodeId, message: Vec<u8>) -> bool {
        Self::send(self, to, message, OF_REPLICA)
    }

    fn send_ahead(&self, to: NodeId, mut message: Vec<u8>) -> bool {
        message.push(OF_REPLICA);
        (self.member()).is_some_and(|member| member.send_ahead(to, message))
    }
}

/// What comes by the links of a member.
pub(super) struct Copies {
    replica: Replica,
    snapshots: Arc<Snapshots>,
    teller: Arc<Teller>,
}

impl Copies {
    pub(super) fn new(
        replica: Replica,
        snapshots: &Arc<Snapshots>,
        teller: &Arc<Teller>,
    ) -> Arc<Self> {
        Arc::new(Self {
            replica,
            snapshots: Arc::clone(snapshots),
            teller: Arc::clone(teller),
        })
    }
}

impl LinkUser for Copies {
    fn joined(&self, node: NodeId) {
        self.replica.joined(node);
        self.teller.tell_anew();
    }

    fn lost(&self, node: NodeId) {
        self.replica.lost(node);
        self.snapshots.pin(node, Vec::new());
    }

    fn received(&self, from: NodeId, mut message: Vec<u8>) -> Result<(), String> {
        match message.pop() {
            Some(OF_REPLICA) => self.replica.received(from, message),
            Some(IN_USE) => {
                let numbers: Vec<u64> = postcard::from_bytes(&message)
                    .map_err(|_| "it names no snapshots where it should".to_owned())?;
                if numbers.len() > MOST_PINNED {
                    return Err("it uses more snapshots than a node may".to_owned());
                }
                let numbers = numbers.into_iter().map(SnapshotNumber).collect();
                self.snapshots.pin(from, numbers);
                Ok(())
            }
            _ => Err("it sends what this version does not know".to_owned()),
        }
    }

    fn give_copy(&self, to: NodeId, mut stream: TcpStream) {
        let limited = stream.set_write_timeout(Some(SILENT_WITHIN));
        let given = limited.and_then(|()| self.replica.give_copy(to, &mut stream));
        if let Err(error) = given {
            // It asks again.
            tracing::warn!(node = to.0, %error, "a copy of the store was not sent as a whole");
        }
    }
}

/// Tells the other nodes which snapshots the queries of this one use.
#[derive(Default)]
pub(super) struct Teller {
    state: Mutex<Told>,
    changed: Condvar,
}

#[derive(Default)]
struct Told {
    /// What they know.
    numbers: Vec<SnapshotNumber>,
    /// Somebody knows nothing yet.
    is_to_tell: bool,
    is_stopped: bool,
}

/// A teller's thread, until this is dropped.
pub(super) struct Telling {
    teller: Arc<Teller>,
    thread: Option<JoinHandle<()>>,
}

impl Teller {
    fn tell_anew(&self) {
        self.state.lock().is_to_tell = true;
        self.changed.notify_all();
    }

    /// Tells so many nodes but this one until what is returned is dropped.
    ///
    /// # Errors
    /// Why there is no thread.
    pub(super) fn start(
        self: &Arc<Self>,
        (nodes, here): (u32, NodeId),
        way: &Arc<ByMember>,
        snapshots: &Arc<Snapshots>,
    ) -> std::io::Result<Telling> {
        let (teller, way) = (Arc::clone(self), Arc::clone(way));
        let snapshots = Arc::clone(snapshots);
        let run = move || {
            while let Some(numbers) = teller.next(&snapshots) {
                let numbers: Vec<u64> = numbers.iter().map(|number| number.0).collect();
                let message = postcard::to_allocvec(&numbers).expect("memory takes all of it");
                for node in (0..nodes).map(NodeId).filter(|node| *node != here) {
                    // One that is away is told when it joins.
                    let _is_there = way.send(node, message.clone(), IN_USE);
                }
            }
        };
        let thread = Builder::new().name("jindou-in-use".to_owned()).spawn(run)?;
        Ok(Telling {
            teller: Arc::clone(self),
            thread: Some(thread),
        })
    }

    /// Waits until there is something to tell; none once it is stopped.
    fn next(&self, snapshots: &Snapshots) -> Option<Vec<SnapshotNumber>> {
        let mut state = self.state.lock();
        loop {
            if state.is_stopped {
                return None;
            }
            let numbers = snapshots.in_use();
            if state.is_to_tell || numbers != state.numbers {
                state.is_to_tell = false;
                state.numbers.clone_from(&numbers);
                return Some(numbers);
            }
            self.changed.wait_for(&mut state, TELL_EVERY);
        }
    }
}

impl Drop for Telling {
    fn drop(&mut self) {
        self.teller.state.lock().is_stopped = true;
        self.teller.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            // What it panicked with was printed.
            let _ended = thread.join();
        }
    }
}
