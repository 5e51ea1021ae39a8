//! How do nodes that are started at about the same time come to a connection between each two?
//!
//! Of two nodes the one with the greater number connects, and tries again until the other one is there.

use std::io;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, Scope};
use std::time::{Duration, Instant};

use jindou_model::NodeId;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use socket2::{SockRef, TcpKeepalive};

use super::{MeshError, MeshOptions, Other};
use crate::connect::connect;
use crate::hello::{Facts, Handshake, HelloError, Role};

/// The pause before a node that is not there yet is tried again.
const PAUSE: Duration = Duration::from_millis(100);
/// How long who comes may take to say who it is.
const HELLO_WITHIN: Duration = Duration::from_secs(10);
/// Connections that are not known to be of nodes yet, at most; others have to come again.
const MOST_STRANGERS: usize = 64;
/// How often it is told for whom this node waits.
const TELL_EVERY: Duration = Duration::from_secs(2);
/// A machine that says nothing for so long is asked whether it is there,
const KEEPALIVE: Duration = Duration::from_secs(10);
/// and again after this.
const KEEPALIVE_AGAIN: Duration = Duration::from_secs(5);

/// What a try came to: a connection with a node, or why there is none. The last is final where the node is there and
/// cannot take part.
enum Met {
    Node(NodeId, TcpStream),
    Not(HelloError),
    Away(io::Error),
}

/// What the threads of a meeting share.
struct Meeting<'a> {
    options: &'a MeshOptions<'a>,
    facts: Facts,
    end: Instant,
    is_over: AtomicBool,
    strangers: AtomicUsize,
    /// Connections over which greetings are under way, by number.
    greeting: Mutex<FxHashMap<usize, TcpStream>>,
    next: AtomicUsize,
}

/// A connection with each other node, by number.
pub(super) fn meet(
    mut options: MeshOptions<'_>,
    waiting: &dyn Fn(&[&str]),
) -> Result<Vec<Option<Other>>, MeshError> {
    let own = &options.peers.peers()[options.here.0 as usize];
    let listener = match options.listener.take() {
        Some(listener) => listener,
        None => TcpListener::bind(&own.address).map_err(|source| MeshError::Address {
            address: own.address.clone(),
            source,
        })?,
    };
    let meeting = Meeting {
        facts: Facts {
            list: 0,
            program: env!("CARGO_PKG_VERSION").to_owned(),
            cluster: options.peers.digest(),
            name: own.name.clone(),
            shards: options.peers.map().shards().count() as u32,
            snapshot: "none, as it takes part in a load".to_owned(),
            wants_copy: false,
        },
        end: Instant::now() + options.within,
        options: &options,
        is_over: AtomicBool::new(false),
        strangers: AtomicUsize::new(0),
        greeting: Mutex::default(),
        next: AtomicUsize::new(0),
    };
    thread::scope(|scope| {
        let (sender, met) = channel();
        let begun = meeting.begin(scope, &listener, &sender);
        drop(sender);
        let streams = begun
            .map_err(|source| MeshError::Thread { source })
            .and_then(|()| meeting.gather(&met, waiting));
        meeting.end();
        streams
    })
}

impl<'a> Meeting<'a> {
    /// Starts to look for all others.
    fn begin<'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        listener: &'scope TcpListener,
        met: &Sender<Met>,
    ) -> io::Result<()> {
        let nodes = self.options.peers.peers().len() as u32;
        for peer in (0..self.options.here.0).map(NodeId) {
            let met = met.clone();
            thread::Builder::new().spawn_scoped(scope, move || self.dial(peer, &met))?;
        }
        if self.options.here.0 + 1 < nodes {
            let met = met.clone();
            thread::Builder::new()
                .spawn_scoped(scope, move || self.accept(scope, listener, &met))?;
        }
        Ok(())
    }

    /// Lets nobody wait for strangers any longer.
    fn end(&self) {
        let greeting = self.greeting.lock();
        self.is_over.store(true, Ordering::SeqCst);
        for stream in greeting.values() {
            // It fails where the connection is over, which is what is wanted.
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    fn left(&self) -> Option<Duration> {
        let left = self.end.saturating_duration_since(Instant::now());
        (!left.is_zero() && !self.is_over.load(Ordering::SeqCst)).then_some(left)
    }

    /// Waits until all are there.
    fn gather(
        &self,
        met: &Receiver<Met>,
        waiting: &dyn Fn(&[&str]),
    ) -> Result<Vec<Option<Other>>, MeshError> {
        let peers = self.options.peers.peers();
        let mut others: Vec<Option<Other>> = peers.iter().map(|_| None).collect();
        let mut reason = None;
        loop {
            let missing = |(number, _): &(usize, &Option<Other>)| {
                others[*number].is_none() && *number != self.options.here.0 as usize
            };
            let missing = others.iter().enumerate().filter(missing);
            let missing: Vec<&str> = missing.map(|(at, _)| peers[at].name.as_str()).collect();
            if missing.is_empty() {
                return Ok(others);
            }
            let Some(left) = self.left() else {
                return Err(MeshError::Missing {
                    names: missing.into_iter().map(str::to_owned).collect(),
                    within: self.options.within,
                    reason,
                });
            };
            match met.recv_timeout(left.min(TELL_EVERY)) {
                Ok(Met::Node(node, stream)) => {
                    let name = peers[node.0 as usize].name.clone();
                    others[node.0 as usize] = Some(Other { name, stream });
                }
                Ok(Met::Not(error)) => match error {
                    HelloError::OtherSnapshot { .. }
                    | HelloError::OtherPeers { .. }
                    | HelloError::OtherSecret { .. }
                    | HelloError::Version { .. }
                    | HelloError::SameNode { .. }
                    | HelloError::OtherNode { .. }
                    | HelloError::Refused { .. } => return Err(error.into()),
                    other => reason = Some(other.to_string()),
                },
                Ok(Met::Away(error)) => reason = Some(error.to_string()),
                Err(RecvTimeoutError::Timeout) => waiting(&missing),
                // Nobody is looked for any more.
                Err(RecvTimeoutError::Disconnected) => thread::sleep(left.min(PAUSE)),
            }
        }
    }

    /// Looks for a node with a smaller number until it is there.
    fn dial(&self, peer: NodeId, met: &Sender<Met>) {
        let address = &self.options.peers.peers()[peer.0 as usize].address;
        while let Some(left) = self.left() {
            let found = match connect(address, left.min(HELLO_WITHIN)) {
                Ok(stream) => self.greet(stream, Role::Dialer { to: peer }),
                Err(error) => Met::Away(error),
            };
            let is_met = matches!(found, Met::Node(..));
            if met.send(found).is_err() || is_met {
                return;
            }
            thread::sleep(PAUSE.min(left));
        }
    }

    /// Takes those with greater numbers as they come.
    fn accept<'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        listener: &'scope TcpListener,
        met: &Sender<Met>,
    ) {
        while self.left().is_some() {
            // It waits for no longer than it takes to see that all are there.
            let limited = SockRef::from(listener).set_read_timeout(Some(PAUSE));
            let Ok((stream, _)) = limited.and_then(|()| listener.accept()) else {
                continue;
            };
            if self.strangers.fetch_add(1, Ordering::SeqCst) >= MOST_STRANGERS {
                self.strangers.fetch_sub(1, Ordering::SeqCst);
                continue;
            }
            let met = met.clone();
            let welcomed = thread::Builder::new().spawn_scoped(scope, move || {
                // Whoever does not care any more has all nodes.
                let _ = met.send(self.greet(stream, Role::Acceptor));
                self.strangers.fetch_sub(1, Ordering::SeqCst);
            });
            if welcomed.is_err() {
                self.strangers.fetch_sub(1, Ordering::SeqCst);
            }
        }
    }

    /// Learns who is at the other end.
    fn greet(&self, stream: TcpStream, role: Role) -> Met {
        let handshake = Handshake {
            here: self.options.here,
            nodes: self.options.peers.peers().len() as u32,
            secret: self.options.secret,
            facts: &self.facts,
            role,
            gives_copies: false,
            within: HELLO_WITHIN.min(self.left().unwrap_or(PAUSE)),
        };
        let alive = TcpKeepalive::new()
            .with_time(KEEPALIVE)
            .with_interval(KEEPALIVE_AGAIN);
        let prepared = stream
            .set_nonblocking(false)
            .and_then(|()| stream.set_nodelay(true))
            .and_then(|()| SockRef::from(&stream).set_tcp_keepalive(&alive));
        if let Err(error) = prepared {
            return Met::Away(error);
        }
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        match stream.try_clone() {
            Err(error) => return Met::Away(error),
            Ok(stream) => {
                let mut greeting = self.greeting.lock();
                if self.left().is_none() {
                    return Met::Away(io::ErrorKind::TimedOut.into());
                }
                greeting.insert(number, stream);
            }
        }
        let greeted = handshake.run(&stream);
        self.greeting.lock().remove(&number);
        match greeted {
            Ok(greeted) => Met::Node(greeted.node, stream),
            // Whoever comes may be anybody, as long as he has proved nothing.
            Err(error @ (HelloError::Version { .. } | HelloError::OtherSecret { .. }))
                if role == Role::Acceptor =>
            {
                Met::Away(io::Error::other(error))
            }
            Err(error) => Met::Not(error),
        }
    }
}
