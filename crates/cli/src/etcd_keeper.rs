//! How does etcd keep which node of a cluster leads, and which are in sync?
//!
//! As the value of one key, `/jindou/NAME/copies`, in JSON with the names of the nodes, which is replaced by compare and swap
//! of its revision. Its version is in it: an etcd that is restored, or made anew, counts revisions from an earlier one on. Where etcd keeps the list of nodes, too, both are followed together: a node is in the list before it is in sync.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, PoisonError, RwLock};
use std::thread::JoinHandle;
use std::time::Duration;

use jindou_engine::{
    Configuration, Keeper, KeeperError, NodeId, PeerList, Stage, Told, Versioned, next_version,
};
use jindou_etcd::{Client, Error, Event, Expected, Options, Revision, Swap};
use serde::{Deserialize, Serialize};

use crate::node_list::NodeList;

/// How long it takes until etcd is asked again.
const AGAIN: Duration = Duration::from_millis(500);

/// A configuration as it is kept.
#[derive(Serialize, Deserialize)]
struct Kept {
    version: u64,
    term: u64,
    leader: String,
    in_sync: Vec<String>,
}

/// What etcd keeps for a cluster.
#[derive(Clone)]
pub(crate) struct EtcdKeeper {
    client: Client,
    key: String,
    names: Arc<RwLock<Vec<String>>>,
    /// Something was there since this began.
    has_heard: Arc<AtomicBool>,
    /// Where it keeps the list of nodes, who hears of its changes, and what this node is called there.
    list: Option<(NodeList, Sender<PeerList>, String)>,
}

impl EtcdKeeper {
    /// That of a cluster of this name and with these nodes. Connects to nothing.
    ///
    /// # Errors
    /// Files of certificates that cannot be read.
    pub(crate) fn new(options: Options, cluster: &str, peers: &PeerList) -> Result<Self, Error> {
        Ok(Self {
            client: Client::new(options)?,
            key: format!("/jindou/{cluster}/copies"),
            names: Arc::new(RwLock::new(names_of(peers))),
            has_heard: Arc::default(),
            list: None,
        })
    }

    /// That of a cluster whose list of nodes etcd keeps, which was this last; also returned is where changes of it are heard of.
    pub(crate) fn of_list(
        list: NodeList,
        peers: &PeerList,
        own: &str,
    ) -> (Self, Receiver<PeerList>) {
        let (send, changes) = channel();
        let keeper = Self {
            client: list.client().clone(),
            key: format!("{}copies", list.prefix()),
            names: Arc::new(RwLock::new(names_of(peers))),
            has_heard: Arc::default(),
            list: Some((list, send, own.to_owned())),
        };
        (keeper, changes)
    }

    fn names(&self) -> Vec<String> {
        let names = self.names.read().unwrap_or_else(PoisonError::into_inner);
        names.clone()
    }

    fn name(&self, node: NodeId) -> String {
        let names = self.names();
        let name = names.get(node.0 as usize);
        name.cloned().unwrap_or_else(|| node.to_string())
    }

    fn node(&self, name: &str) -> Result<NodeId, String> {
        let place = self.names().iter().position(|known| known == name);
        let place = place.ok_or_else(|| format!("{name}, which the list of nodes lacks"))?;
        Ok(NodeId(place as u32))
    }

    fn encode(&self, kept: &Versioned) -> Vec<u8> {
        let configuration = &kept.configuration;
        let kept = Kept {
            version: kept.version,
            term: configuration.term,
            leader: self.name(configuration.leader),
            in_sync: configuration
                .in_sync
                .iter()
                .map(|node| self.name(*node))
                .collect(),
        };
        serde_json::to_vec(&kept).expect("it has strings and a number")
    }

    fn decode(&self, bytes: &[u8]) -> Result<Versioned, String> {
        let kept: Kept = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        let in_sync: Result<BTreeSet<NodeId>, String> =
            kept.in_sync.iter().map(|name| self.node(name)).collect();
        Ok(Versioned {
            version: kept.version,
            configuration: Configuration {
                term: kept.term,
                leader: self.node(&kept.leader)?,
                in_sync: in_sync?,
            },
        })
    }

    /// What the keys begin with that are followed.
    fn followed(&self) -> String {
        match &self.list {
            Some((list, ..)) => list.prefix(),
            None => self.key.clone(),
        }
    }

    /// Tells what is kept, and says from which revision on it may have changed.
    fn tell(&self, told: &Told) -> Result<Revision, Error> {
        let listing = self.client.get_all(self.followed().as_bytes())?;
        let mut entries = listing.entries;
        // Who is in sync is in the list.
        entries.sort_by_key(|(key, _)| key == self.key.as_bytes());
        for (key, value) in &entries {
            self.tell_value(key, &value.bytes, told);
        }
        if !entries.iter().any(|(key, _)| key == self.key.as_bytes()) {
            told(Versioned::default());
        }
        Ok(listing.revision)
    }

    fn tell_value(&self, key: &[u8], bytes: &[u8], told: &Told) {
        if let Some((list, changes, _)) = &self.list
            && key == list.key().as_bytes()
        {
            return self.tell_list(list, bytes, changes);
        }
        if key != self.key.as_bytes() {
            return;
        }
        match self.decode(bytes) {
            Ok(kept) => {
                self.has_heard.store(true, Relaxed);
                told(kept);
            }
            Err(reason) => note!(
                "warning: etcd has at {} what no node put there: {reason}",
                self.key
            ),
        }
    }

    fn tell_list(&self, list: &NodeList, bytes: &[u8], changes: &Sender<PeerList>) {
        match list.read_value(bytes) {
            Ok(peers) => {
                let mut names = self.names.write().unwrap_or_else(PoisonError::into_inner);
                *names = names_of(&peers);
                drop(names);
                // Where nobody hears of it any more the process ends.
                let _is_heard = changes.send(peers);
            }
            Err(reason) => note!(
                "warning: etcd has at {} what no node put there: {reason:#}",
                list.key()
            ),
        }
    }

    /// Tells of each change until it is to end.
    fn follow(
        &self,
        told: &Told,
        ends: &Receiver<()>,
        again: &SyncSender<()>,
        compacted: &Receiver<()>,
    ) {
        let mut is_away = false;
        loop {
            let pause = match self.tell(told) {
                Ok(revision) => {
                    if std::mem::take(&mut is_away) {
                        note!("etcd is there again");
                    }
                    let _watch = self.watch_from(revision, told, again);
                    // Until what it missed is to be read anew.
                    loop {
                        if compacted.recv_timeout(AGAIN).is_ok() {
                            break;
                        }
                        if ends.try_recv() != Err(std::sync::mpsc::TryRecvError::Empty) {
                            return;
                        }
                    }
                    Duration::ZERO
                }
                Err(error) => {
                    if !std::mem::replace(&mut is_away, true) {
                        note!("warning: {error}; which node leads stays as it is meanwhile");
                    }
                    AGAIN
                }
            };
            match ends.recv_timeout(pause) {
                Err(RecvTimeoutError::Timeout) => {}
                Ok(()) | Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    fn watch_from(
        &self,
        revision: Revision,
        told: &Told,
        again: &SyncSender<()>,
    ) -> Option<jindou_etcd::Watch> {
        let (keeper, told, again) = (self.clone(), Told::clone(told), again.clone());
        let on_event = move |event| match event {
            Event::Put { key, value } => {
                keeper.tell_value(&key, &value.bytes, &told);
            }
            Event::Deleted { key, .. } => note!(
                "warning: etcd has nothing at {} any more; no other node can lead until all are started anew",
                String::from_utf8_lossy(&key)
            ),
            // Nobody waits where it ends anyway.
            Event::Compacted(_) => drop(again.try_send(())),
            Event::Away(error) => {
                note!("warning: {error}; which node leads stays as it is meanwhile");
            }
            Event::Back => note!("etcd is there again"),
        };
        match self
            .client
            .watch(self.followed().as_bytes(), revision, on_event)
        {
            Ok(watch) => Some(watch),
            Err(error) => {
                note!("warning: {error}");
                None
            }
        }
    }
}

/// The names of nodes, by number.
fn names_of(peers: &PeerList) -> Vec<String> {
    let names = peers.peers().iter().map(|peer| peer.name.clone());
    names.collect()
}

impl fmt::Debug for EtcdKeeper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Its client has a password.
        f.debug_struct("EtcdKeeper")
            .field("key", &self.key)
            .finish_non_exhaustive()
    }
}

impl EtcdKeeper {
    /// That this node is one of the list: the others do without one that has left it, however late it hears of that, and what
    /// it would keep alone would be lost.
    ///
    /// # Errors
    /// [`KeeperError::Refused`].
    fn check_is_listed(&self) -> Result<(), KeeperError> {
        let Some((list, _, own)) = &self.list else {
            return Ok(());
        };
        let refused = |reason: String| Err(KeeperError::Refused(reason));
        let peers = match list.read() {
            Ok(Some(peers)) => peers,
            Ok(None) => return refused("etcd has no list of the cluster's nodes".to_owned()),
            Err(error) => return refused(format!("{error:#}")),
        };
        let node = peers.node(own).ok().and_then(|node| peers.peer(node));
        match node.is_some_and(|node| node.stage != Stage::Gone) {
            true => Ok(()),
            false => refused(format!("node {own} has left the cluster")),
        }
    }
}

impl EtcdKeeper {
    fn has_nothing(&self) -> KeeperError {
        KeeperError::Refused(format!("etcd has nothing at {} any more", self.key))
    }

    fn has_old(&self) -> KeeperError {
        KeeperError::Refused(format!(
            "etcd has at {} what was there before: it was restored from a copy, and what it says of who leads and \
             which nodes are in sync is old; docs/cluster.md says how to go on (\"etcd is lost or restored\")",
            self.key
        ))
    }
}

impl Keeper for EtcdKeeper {
    fn replace(&self, expected: u64, by: &Configuration) -> Result<Versioned, KeeperError> {
        self.check_is_listed()?;
        let there = self.client.get(self.key.as_bytes());
        let there = there.map_err(|error| KeeperError::Refused(error.to_string()))?;
        let before = match there {
            // Also where it was removed while no node ran: one that was in sync last, as it has noted, leads.
            None if expected == 0 || !self.has_heard.load(Relaxed) => Expected::Absent,
            None => return Err(self.has_nothing()),
            Some(value) => {
                let kept = self.decode(&value.bytes).map_err(KeeperError::Refused)?;
                match kept.version.cmp(&expected) {
                    Ordering::Less => return Err(self.has_old()),
                    Ordering::Equal => Expected::Revision(value.revision),
                    Ordering::Greater => return Ok(kept),
                }
            }
        };
        let next = Versioned {
            version: next_version(expected),
            configuration: by.clone(),
        };
        let swap = self
            .client
            .put_if(self.key.as_bytes(), before, &self.encode(&next));
        match swap {
            Ok(Swap::Won(_)) => {
                self.has_heard.store(true, Relaxed);
                Ok(next)
            }
            Ok(Swap::Lost(Some(value))) => {
                let kept = self.decode(&value.bytes).map_err(KeeperError::Refused)?;
                match kept.version < expected {
                    true => Err(self.has_old()),
                    false => Ok(kept),
                }
            }
            Ok(Swap::Lost(None)) => Err(self.has_nothing()),
            Err(error @ Error::Unknown { .. }) => Err(KeeperError::Unknown(error.to_string())),
            Err(error) => Err(KeeperError::Refused(error.to_string())),
        }
    }

    fn watch(&self, told: Told) -> Box<dyn Send> {
        let (end, ends) = sync_channel(1);
        let (again, compacted) = sync_channel(1);
        let keeper = self.clone();
        let thread = std::thread::Builder::new().name("jindou-etcd".to_owned());
        let thread = thread.spawn(move || keeper.follow(&told, &ends, &again, &compacted));
        let thread = thread.inspect_err(|error| note!("warning: etcd is not asked: {error}"));
        Box::new(Following {
            end: Some(end),
            thread: thread.ok(),
        })
    }

    fn lets_form(&self) -> bool {
        true
    }

    fn lets_take_over(&self) -> bool {
        true
    }
}

/// The thread that reports changes. It ends when this is dropped.
struct Following {
    end: Option<SyncSender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Following {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            // What it panicked with was printed.
            let _ended = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_configuration_comes_back_and_no_other_names_do() {
        let list = "[[node]]\nname = \"a\"\naddress = \"127.0.0.1:1\"\n[[node]]\nname = \"b\"\naddress = \"127.0.0.1:2\"\n";
        let peers = PeerList::parse(list).expect("it is one");
        let options = Options::new("http://127.0.0.1:2379".parse().expect("it is one"));
        let keeper = EtcdKeeper::new(options, "x", &peers).expect("it has no files");
        let configuration = Configuration {
            term: 7,
            leader: NodeId(1),
            in_sync: [NodeId(0), NodeId(1)].into(),
        };
        let kept = Versioned {
            version: 9,
            configuration,
        };
        let bytes = keeper.encode(&kept);
        let text = String::from_utf8(bytes.clone()).expect("it is text");
        assert_eq!(
            text,
            r#"{"version":9,"term":7,"leader":"b","in_sync":["a","b"]}"#
        );
        assert_eq!(keeper.decode(&bytes), Ok(kept));
        let other = text.replace("\"a\"", "\"c\"");
        assert!(keeper.decode(other.as_bytes()).is_err());
        assert!(keeper.decode(b"{}").is_err());
    }
}
