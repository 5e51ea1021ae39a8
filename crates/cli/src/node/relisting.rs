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
        resigned: None,
    };
    let thread = thread::Builder::new().name("follow nodes".to_owned());
    let follow = move || follower.run(&changes);
    thread.spawn(follow).context("cannot start a thread")?;
    Ok(())
}

/// How long another node may take to lead in the place of this one.
const RESIGNS_FOR: Duration = Duration::from_secs(5);

struct Follower {
    list: NodeList,
    node: NodeId,
    name: String,
    database: Database,
    ends: Ends,
    /// What could not be done last.
    told: String,
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
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            match stage {
                Stage::Joins if self.is_in_sync() => self.become_one(Stage::Holds),
                Stage::Leaves => self.leave(),
                _ => {}
            }
        }
    }

    /// Goes on by another list; false if this is no node any more, or cannot.
    fn go_on(&mut self, peers: &PeerList, stage: Stage) -> bool {
        if stage == Stage::Gone {
            note!("node {} has left the cluster, and ends", self.name);
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

    /// Whether another node leads, and is there.
    fn is_led(&self) -> bool {
        let status = self.database.replica_status();
        matches!(status, Some(ReplicaStatus::Follows { is_led: true, .. }))
    }

    /// Leaves once another node leads, so that this one has nothing that is not there. One that leads has another one in sync do
    /// so first.
    fn leave(&mut self) {
        let Some(agreed) = self.database.replica_agreement() else {
            return;
        };
        let has_other = agreed.in_sync.iter().any(|other| *other != self.name);
        if agreed.leader != self.name {
            // One that is not there may be waited for in vain: then this one is to lead.
            if self.is_led() {
                self.become_one(Stage::Gone);
            }
        } else if has_other && self.resigned.is_none_or(|at| at.elapsed() > RESIGNS_FOR) {
            note!("node {} leaves it to another one to lead", self.name);
            self.database.resign(RESIGNS_FOR);
            self.resigned = Some(Instant::now());
        }
    }

    /// Has the list say so, which comes back as a change. Where etcd does not answer that is tried again.
    fn become_one(&mut self, stage: Stage) {
        match self.list.set_stage(&self.name, stage) {
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
