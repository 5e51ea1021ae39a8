//! What does a node do when the list of nodes in etcd changes? It goes on by the new one. A node that joins holds shards once
//! it is in sync; one that leaves ends once another one is.

use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use jindou_engine::{Anew, Database, NodeId, PeerList, ReplicaStatus, Stage};

use super::{End, Ends};
use crate::node_list::NodeList;

/// How often a node that comes or goes looks whether it may.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Follows the list for as long as the process runs, or until this is no node any more.
///
/// # Errors
/// No thread.
pub(super) fn follow(
    list: NodeList,
    changes: Receiver<PeerList>,
    (node, name): (NodeId, String),
    (database, ends): (&Database, Ends),
) -> anyhow::Result<()> {
    let follower = Follower {
        list,
        node,
        name,
        database: database.clone(),
        ends,
        told: String::new(),
        peers: None,
        resigned: None,
    };
    let thread = thread::Builder::new().name("follow nodes".to_owned());
    let follow = move || follower.run(&changes);
    thread.spawn(follow).context("cannot start a thread")?;
    Ok(())
}

/// How long another node may take to lead in the place of this one.
const RESIGNS_FOR: Duration = Duration::from_secs(5);

/// It ends before.
const FOR_GOOD: Duration = Duration::from_secs(24 * 3600);

struct Follower {
    list: NodeList,
    node: NodeId,
    name: String,
    database: Database,
    ends: Ends,
    /// What could not be done last.
    told: String,
    /// The list that it goes by, once it has changed.
    peers: Option<PeerList>,
    /// When it left it to others to lead.
    resigned: Option<Instant>,
}

impl Follower {
    fn run(mut self, changes: &Receiver<PeerList>) {
        let mut stage = Stage::Holds;
        loop {
            let changed = match stage {
                Stage::Joins | Stage::Leaves => changes.recv_timeout(LOOK_EVERY),
                Stage::Holds | Stage::Gone => {
                    changes.recv().map_err(|_| RecvTimeoutError::Disconnected)
                }
            };
            match changed {
                Ok(peers) => {
                    // Of several the last one is what there is.
                    let peers = changes.try_iter().last().unwrap_or(peers);
                    stage = peers.peer(self.node).map_or(Stage::Gone, |peer| peer.stage);
                    if !self.go_on(&peers, stage) {
                        return;
                    }
                    self.peers = Some(peers);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            match stage {
                Stage::Joins if self.is_in_sync() => self.become_holder(),
                Stage::Leaves if self.may_leave() => {
                    // The list has it as gone when the last query has ended.
                    self.ends.tell(End::Left);
                    return self.stay_silent();
                }
                _ => {}
            }
        }
    }

    /// Goes on by another list; false if this is no node any more, or cannot.
    fn go_on(&mut self, peers: &PeerList, stage: Stage) -> bool {
        if stage == Stage::Gone {
            // It was taken out though it is there, and may lead: what it would do alone would be lost.
            self.database.resign(FOR_GOOD);
            note!("node {} was taken out of the cluster, and ends", self.name);
            self.ends.tell(End::Left);
            return false;
        }
        match self.database.relist(peers.clone()) {
            Ok(()) => true,
            Err(error) => {
                note!(
                    "warning: node {} cannot go on by the new list of nodes: {error}",
                    self.name
                );
                self.ends.tell(End::Anew(Anew::Opened));
                false
            }
        }
    }

    fn is_in_sync(&self) -> bool {
        let agreement = self.database.replica_agreement();
        agreement.is_some_and(|agreed| agreed.in_sync.contains(&self.name))
    }

    /// Whether another node that holds shards leads, and is there, so that this one has nothing that is not there. It never
    /// leads itself while another one could, and one that does has that one do so first.
    fn may_leave(&mut self) -> bool {
        let Some(agreed) = self.database.replica_agreement() else {
            return false;
        };
        let holds = |name: &String| {
            let peers = self.peers.as_ref();
            let mut peers = peers.into_iter().flat_map(|peers| peers.peers());
            peers.any(|peer| peer.name == *name && peer.stage == Stage::Holds)
        };
        if agreed.leader != self.name {
            let others = agreed.in_sync.iter();
            if others.filter(|name| **name != self.name).any(holds) {
                self.database.resign(RESIGNS_FOR);
            }
            let status = self.database.replica_status();
            let is_led = matches!(status, Some(ReplicaStatus::Follows { is_led: true, .. }));
            return is_led && holds(&agreed.leader);
        }
        let has_other = agreed.in_sync.iter().any(holds);
        let is_due = self.resigned.is_none_or(|at| at.elapsed() > RESIGNS_FOR);
        // Without etcd no other one could lead.
        if has_other && is_due && self.list.read().is_ok() {
            note!("node {} leaves it to another one to lead", self.name);
            self.database.resign(RESIGNS_FOR);
            self.resigned = Some(Instant::now());
        }
        false
    }

    /// Never leads any more, for as long as the process runs.
    fn stay_silent(&self) {
        self.database.resign(FOR_GOOD);
    }

    /// Has the list say that it holds shards, which comes back as a change. Where etcd does not answer that is tried again.
    fn become_holder(&mut self) {
        let joins = |did| did == Stage::Joins;
        match self.list.set_stage(&self.name, joins, Stage::Holds) {
            Ok(_) => self.told.clear(),
            Err(error) => {
                let reason = format!("{error:#}");
                if reason != self.told {
                    note!("warning: the list of nodes stays as it is: {reason}");
                    self.told = reason;
                }
            }
        }
    }
}

/// Has the list say that a node has left, when it has ended.
///
/// # Errors
/// An etcd that does not answer.
pub(crate) fn leave(list: &NodeList, name: &str) -> anyhow::Result<()> {
    list.set_stage(name, |did| did == Stage::Leaves, Stage::Gone)?;
    note!("node {name} has left the cluster");
    Ok(())
}
