//! How do copies of a store stay the same while it is written?
//!
//! Of the nodes of a cluster one, the *leader*, orders all transactions, and each other one, a
//! *follower*, applies them to its copy of the store, in their order and with the numbers that the leader gave. A
//! write that comes to a follower is executed by the leader. Which node leads, and which are in sync, a
//! [`Keeper`] keeps and [`jindou_replication`] decides (`group`): a node may have either part, one after the other.
//!
//! A transaction is on the leader's device before it goes anywhere. Then it goes to all followers that are there
//! (`leader`). Readers see it once all nodes in sync have it on their devices, and its client gets an answer once all of them
//! show it. A follower that was away gets what it lacks from the leader's memory or its log (`catch_up`), and nobody waits for
//! it meanwhile. One that has what the leader does not have gives that up, which nobody was told of, and begins anew; one
//! that lacks what the leader's log does not have any more must be copied anew.
//!
//! What is merged, and of which snapshot, the leader decides: it says so in order with the transactions, and a follower
//! makes the same merge of that snapshot, so that the bases of all have the same edges, and nodes can read each other's
//! lists. The leader closes the extents of new vertices there: these have greater numbers from then on, and those of the
//! base that is made then are all given. It names the predicates that it does not merge. So a follower that missed a
//! merge merges with the next one all that the leader has merged before.

mod apply;
mod catch_up;
mod copy_wire;
mod device;
mod execute;
mod follower;
mod forward;
mod giving;
mod group;
mod keeper;
mod leader;
mod lineage;
mod link;
mod names;
mod outcome;
mod wire;

use std::fmt;
use std::io;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use jindou_model::{NodeId, SnapshotNumber};
use jindou_replication::Timing;
use jindou_store::log::MAX_PAYLOAD_BYTES;
use jindou_store::{DurableStore, Transaction};

use crate::database::Inner;
use crate::{Database, EngineError};
pub(crate) use copy_wire::receive_copy;
pub use copy_wire::{CopyError, ReceivedCopy};
pub(crate) use follower::{Follower, Owed};
pub use forward::Forwarding;
pub(crate) use forward::Target;
use giving::remove_leftovers;
pub(crate) use group::Group;
pub use keeper::{Keeper, KeeperError, Told, next_version};
pub(crate) use leader::Leader;
pub use names::NodeNames;

use crate::streams::Copied;

/// What carries messages to the other nodes. Those to one node arrive in order and each once, until the link with it
/// ends.
pub trait ReplicaWay: Send + Sync {
    /// Has a message go to a node; false once the link with it has ended, until [`Replica::lost`] has returned for
    /// it and the next one has begun. Never waits for that node. It may be called with locks held that
    /// [`Replica::joined`], [`Replica::lost`] and [`Replica::received`] take.
    fn send(&self, to: NodeId, message: Vec<u8>) -> bool;

    /// The same for a message that may overtake others, but none that was sent so: one that is to come in time,
    /// however much waits before it.
    fn send_ahead(&self, to: NodeId, message: Vec<u8>) -> bool;
}

/// Which of several copies of a store a database is, and what that may take.
#[derive(Clone)]
#[non_exhaustive]
pub struct ReplicaOptions {
    /// The names of all nodes, by their numbers.
    pub nodes: NodeNames,
    /// Which of them this is.
    pub here: NodeId,
    /// What carries messages to the others.
    pub way: Arc<dyn ReplicaWay>,
    /// Who keeps which node leads. Default: the first one of the list does, and no other.
    pub keeper: Option<Arc<dyn Keeper>>,
    /// How long a copy that hears nothing of the leader answers after it was current for certain: it may be older than
    /// what clients were told of by then. Default: however long, which is for a leader whose place no other node takes.
    pub max_staleness: Option<Duration>,
    /// How long the nodes wait for each other, but for [`wait`](Self::wait).
    pub timing: Timing,
    /// How long a transaction waits for a follower that is there, which then counts as lost until it has caught up; and how long
    /// after its own time a write waits at a follower for the leader's answer. Default: 10 s.
    pub wait: Duration,
    /// Bytes of the last transactions that the leader keeps in memory for followers that were away. Default: 64 MiB.
    pub backlog_bytes: usize,
    /// Bytes of transactions on the way to a follower, and in its memory, above which the leader sends it no more
    /// until it has applied some. Default: 64 MiB.
    pub window_bytes: usize,
    /// Bytes that a transaction, or a write on its way to the leader, may have. Default: 1 GiB.
    pub message_bytes: usize,
    /// Bytes that the documents of one write at a follower may have. Default: 64 MiB.
    pub document_bytes: usize,
    /// Bytes of the writes of followers that wait at the leader, above which others are refused. Default: 256 MiB.
    pub waiting_bytes: usize,
    /// Writes of followers that the leader executes at the same time. Default: 16.
    pub write_threads: usize,
    /// A copy that is too old for the leader's log [begins anew](Anew::Copied) with a copy of its store, rather than to wait
    /// for somebody who makes one. Default: no, as that takes a way beside the [messages](Self::way).
    pub copies_anew: bool,
    /// Bytes of the leader's log above which no checkpoint waits for those who catch up by it, or copy its store. Default:
    /// 1 GiB.
    pub held_log_bytes: u64,
    /// Bytes of a copy of the leader's store that are sent in a second, at most. Default: 128 MiB.
    pub copy_rate: u64,
}

impl ReplicaOptions {
    /// Those of one of these nodes, with the default bounds.
    #[must_use]
    pub fn new(nodes: Vec<String>, here: NodeId, way: Arc<dyn ReplicaWay>) -> Self {
        Self {
            nodes: NodeNames::new(nodes),
            here,
            way,
            keeper: None,
            max_staleness: None,
            timing: Timing::default(),
            wait: Duration::from_secs(10),
            backlog_bytes: 64 << 20,
            window_bytes: 64 << 20,
            message_bytes: 1 << 30,
            document_bytes: 64 << 20,
            waiting_bytes: 256 << 20,
            write_threads: 16,
            copies_anew: false,
            held_log_bytes: 1 << 30,
            copy_rate: 128 << 20,
        }
    }

    fn name(&self, node: NodeId) -> String {
        self.nodes.name(node)
    }

    fn timing(&self) -> Timing {
        Timing {
            wait: self.wait,
            ..self.timing
        }
    }

    fn has(&self, node: NodeId) -> bool {
        node != self.here && self.nodes.has(node)
    }
}

impl fmt::Debug for ReplicaOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReplicaOptions")
            .field("nodes", &self.nodes)
            .field("here", &self.here)
            .finish_non_exhaustive()
    }
}

/// Why a copy of a store may not answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// The leader has not said yet that it is a copy of its store.
    Waits,
    /// It may be older than what clients were told of: it was cut off from the other nodes so long ago.
    Unsure {
        /// For how long it was.
        since: Duration,
    },
    /// It follows the leader no more, for this reason.
    Ended(String),
}

/// Why a copy of a store is to be closed and opened again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anew {
    /// It gives up the end of its log, which no other copy has and no client was told of, or another node goes on with its
    /// streams: both are done when it is opened.
    Opened,
    /// It is too old: a copy of the leader's store is to take its place before.
    Copied,
}

/// Which part a database has in a cluster that is written.
pub(crate) enum Role {
    Leader(Arc<Leader>),
    Follower(Arc<Follower>),
}

/// A database's end of the links with the other copies: it is told what comes by them. Clones are the same one; it
/// does not keep the database open.
#[derive(Clone)]
pub struct Replica(Arc<Group>);

impl Replica {
    /// A link with a node has begun. Called before anything that comes by it is [received](Self::received).
    pub fn joined(&self, node: NodeId) {
        self.0.joined(node);
    }

    /// The link with a node has ended. Called after all that came by it.
    pub fn lost(&self, node: NodeId) {
        self.0.lost(node);
    }

    /// The nodes that there are from now on, each with whether it has left. Those that there were keep their numbers.
    pub fn set_nodes(&self, nodes: impl IntoIterator<Item = (String, bool)>) {
        self.0.options.nodes.set(nodes);
    }

    /// Has another node in sync lead, if this one does: it takes no more writes, waits up to 2 s until clients may hear of those
    /// that it has, and says nothing to the others until one of
    /// them has taken its place, which takes them as long as where it is lost. Writes that come meanwhile are refused here, and
    /// wait at other nodes. It leads itself not before `within` this time, and then again if none does.
    pub fn resign(&self, within: Duration) {
        self.0.resign(within);
    }

    /// Waits until it is known whether this copy may answer, for so long at most: a follower whose copy was not
    /// compared with the leader's yet, or does not follow any more, may hold what others do not, and one that was cut
    /// off may lack what clients were told of.
    ///
    /// # Errors
    /// Why it may not.
    pub fn may_answer(&self, within: Duration) -> Result<(), Standing> {
        self.0.may_answer(within)
    }

    /// Whether all of these nodes are in sync, as far as is known here: a transaction is acknowledged when those have it.
    #[must_use]
    pub fn are_in_sync(&self, nodes: &[NodeId]) -> bool {
        self.0.are_in_sync(nodes)
    }

    /// Whether the store is to be closed and opened again, and why. Until then it answers nothing.
    #[must_use]
    pub fn begins_anew(&self) -> Option<Anew> {
        self.0.begins_anew()
    }

    /// Writes a copy of the store for a node that has none: all that committed transactions made up to now. What follows is
    /// in the log until that node has joined, within [`ReplicaOptions::held_log_bytes`]. Takes as long as `out` and
    /// [`ReplicaOptions::copy_rate`] let it. Of a node that does not lead, or gives a copy to another one, only that is
    /// written.
    ///
    /// # Errors
    /// That `out` does not take it.
    pub fn give_copy(&self, to: NodeId, out: &mut dyn io::Write) -> io::Result<()> {
        self.0.give_copy(to, out)
    }

    /// Takes a message of a node, and leaves what takes long to threads of its own.
    ///
    /// # Errors
    /// Why the node does not speak as it should: the link is to be ended.
    pub fn received(&self, from: NodeId, message: Vec<u8>) -> Result<(), String> {
        self.0.received(from, &message)
    }
}

impl fmt::Debug for Replica {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match &*self.0.role() {
            Role::Leader(_) => "Replica(leader)",
            Role::Follower(_) => "Replica(follower)",
        })
    }
}

impl Role {
    /// Ends all threads, and waits until they have ended; writes under way are cancelled.
    fn stop(&self) {
        match self {
            Self::Leader(leader) => leader.stop(),
            Self::Follower(follower) => follower.stop(),
        }
    }
}

/// How a copy of a cluster that is written stands.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReplicaStatus {
    /// It orders the transactions.
    Leads {
        /// How each other node is.
        followers: Vec<FollowerStatus>,
    },
    /// It applies those of the leader.
    Follows {
        /// The leader's name, once it is known.
        leader: Option<String>,
        /// Whether the leader is there.
        is_led: bool,
        /// Why it takes no transactions any more, if it does not.
        ended: Option<String>,
    },
}

/// What the copies of a cluster that is written agree on, as far as one of them knows.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReplicaAgreement {
    /// The name of the node that leads.
    pub leader: String,
    /// Grows each time that another node begins to lead.
    pub term: u64,
    /// The names of the nodes that are waited for, the one that leads among them; any of these may lead next.
    pub in_sync: Vec<String>,
    /// The last transaction that all of these have, as far as it is known here.
    pub committed: SnapshotNumber,
}

/// How a follower stands, as the leader sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FollowerStatus {
    /// Its name.
    pub name: String,
    /// The last snapshot that it was known to have, if it is there.
    pub applied: Option<SnapshotNumber>,
    /// Transactions wait for it: it has caught up.
    pub is_awaited: bool,
}

/// Bytes of a transaction, or of a record of the log of streams, beside what is said of streams with it, at least.
const ROOM_BESIDE: usize = 4096;

/// What a store whose copies follow each other does not do.
const NO_RENUMBERING: &str = "a node of a cluster that is written does not number its terms anew: its copies would mean others";
const NO_MERGE_YET: &str = "a copy that is to follow merges nothing, and writes no checkpoint, before it has joined its cluster";
const FOLLOWER_MERGES: &str =
    "a node that follows merges when the leader of its cluster does: ask that for a merge";
pub(crate) const FOLLOWER_WRITES: &str =
    "a node that follows takes no such change itself: ask the leader of its cluster for it";
const NOT_STORED: &str = "only a stored database that may be written can be a copy of a cluster";
const NOT_OPENED_SO: &str = "a copy of a cluster is opened to be one (Config::is_replicated), so that it merges nothing before";
const ALREADY: &str = "it is a copy of a cluster already";
const NO_SUCH_NODE: &str = "the list of nodes has none of this number";

impl Database {
    /// Makes this database, which was opened with [`Config::is_replicated`](crate::Config), one of several copies
    /// of a store that is written: the first node of the list orders all transactions, and the others follow it.
    /// All copies were one store, or backups of it, before. Links are told of by what this returns.
    ///
    /// From then on a transaction is shown, and its client gets an answer, when all nodes that are there have it on
    /// their devices. At a node that follows, [`update`](Self::update_with), the writes of whole graphs and changes
    /// of prefixes are executed by the leader, and return when they are readable here.
    ///
    /// # Errors
    /// [`EngineError::Cluster`] for a database in memory, one that is only read, was not opened so or
    /// is a copy of a cluster already; those of a log of streams that cannot be read; [`EngineError::Thread`].
    pub fn replicate(&self, options: ReplicaOptions) -> Result<Replica, EngineError> {
        let inner = self.inner();
        if inner.is_read_only() || inner.directory.is_none() {
            return Err(EngineError::Cluster(NOT_STORED));
        }
        if !inner.config.is_replicated {
            return Err(EngineError::Cluster(NOT_OPENED_SO));
        }
        if !options.nodes.has(options.here) {
            return Err(EngineError::Cluster(NO_SUCH_NODE));
        }
        inner.directory.iter().for_each(|it| remove_leftovers(it));
        let copied = self.open_copied(&options)?;
        let mut writer = inner.writer.lock();
        if writer.group.is_some() {
            return Err(EngineError::Cluster(ALREADY));
        }
        if let Some((log, ticket)) = &writer.last {
            // What the others are to have is on this device first.
            let synced = log.sync(*ticket);
            synced.map_err(|error| writer.refused(error))?;
        }
        let last = writer.latest.number();
        writer.follows = true;
        writer.copied = Some(Arc::clone(&copied));
        // A store that is a copy already was refused.
        let _is_new = inner.streams.copied.set(copied).is_ok();
        let group = Group::start(inner, options, last)?;
        writer.group = Some(Arc::clone(&group));
        drop(writer);
        let is_new = inner.replica.set(Arc::clone(&group)).is_ok();
        assert!(is_new, "the writer has had no group before");
        group.begin()?;
        Ok(Replica(group))
    }

    /// What is here of the streams, with what the log of transactions says of them.
    fn open_copied(&self, options: &ReplicaOptions) -> Result<Arc<Copied>, EngineError> {
        let inner = self.inner();
        let directory = inner.directory.as_ref().expect("it is stored");
        let most_bytes = (options.message_bytes as u64).min(MAX_PAYLOAD_BYTES) as usize;
        let most_bytes = most_bytes.saturating_sub(ROOM_BESIDE);
        let copied = Copied::open(directory, &inner.config.durability, most_bytes)?;
        let log = {
            let writer = inner.writer.lock();
            writer.store.as_ref().map(|store| Arc::clone(store.log()))
        };
        if let Some(log) = log {
            DurableStore::logged(&log, |bytes| {
                // The store was opened with it.
                if let Ok(transaction) = Transaction::decode(bytes) {
                    copied.note(transaction.number, transaction.beside);
                }
                ControlFlow::Continue(())
            })?;
        }
        Ok(Arc::new(copied))
    }

    /// How this copy stands; `None` where it is none of a cluster that is written.
    #[must_use]
    pub fn replica_status(&self) -> Option<ReplicaStatus> {
        Some(self.inner().group()?.status())
    }

    /// As [`Replica::resign`], where this copy is one of a cluster that is written.
    pub fn resign(&self, within: Duration) {
        if let Some(group) = self.inner().group() {
            group.resign(within);
        }
    }

    /// What this copy knows of what all agree on; `None` where it is none of a cluster that is written, or knows
    /// nothing yet.
    #[must_use]
    pub fn replica_agreement(&self) -> Option<ReplicaAgreement> {
        self.inner().group()?.agreement()
    }
}

impl Database {
    /// Waits until the store is to be closed and opened again ([`Replica::begins_anew`]), or for so long; says why.
    #[must_use]
    pub fn wait_to_begin_anew(&self, within: Duration) -> Option<Anew> {
        match self.inner().group() {
            Some(group) => group.wait_to_begin_anew(within),
            None => {
                std::thread::sleep(within);
                None
            }
        }
    }

    /// Waits until queries see this snapshot or a later one, or for so long; true if they do. A database that follows no
    /// other one is not waited for.
    #[must_use]
    pub fn wait_for_snapshot(&self, number: SnapshotNumber, within: Duration) -> bool {
        match self.inner().group() {
            Some(group) => group.wait_for_snapshot(number, within),
            None => self.snapshot_number() >= number,
        }
    }
}

impl Inner {
    /// The database's part among copies of its store, if it has one.
    pub(crate) fn group(&self) -> Option<&Arc<Group>> {
        self.replica.get()
    }

    /// The leader's part, where this is one.
    pub(crate) fn leader(&self) -> Option<Arc<Leader>> {
        match &*self.group()?.role() {
            Role::Leader(leader) => Some(Arc::clone(leader)),
            Role::Follower(_) => None,
        }
    }

    /// The follower's part, where this is one.
    pub(crate) fn follower(&self) -> Option<Arc<Follower>> {
        match &*self.group()?.role() {
            Role::Follower(follower) => Some(Arc::clone(follower)),
            Role::Leader(_) => None,
        }
    }

    /// That terms may be numbered anew.
    ///
    /// # Errors
    /// [`EngineError::Cluster`].
    pub(crate) fn check_may_renumber(&self) -> Result<(), EngineError> {
        match self.config.is_replicated {
            true => Err(EngineError::Cluster(NO_RENUMBERING)),
            false => Ok(()),
        }
    }

    /// That streams go on here.
    ///
    /// # Errors
    /// [`EngineError::StreamsElsewhere`]; [`EngineError::StreamsBegin`]; [`EngineError::StreamsFailed`].
    pub(crate) fn check_may_stream(&self) -> Result<(), EngineError> {
        match self.group() {
            Some(group) => self.streams.check_led(|| group.leader_name()),
            None => Ok(()),
        }
    }

    /// That what the log has may be put in its place: what of it may be given up is not known before a copy has a part.
    ///
    /// # Errors
    /// [`EngineError::Cluster`].
    pub(crate) fn check_may_checkpoint(&self) -> Result<(), EngineError> {
        match self.config.is_replicated && self.group().is_none() {
            true => Err(EngineError::Cluster(NO_MERGE_YET)),
            false => Ok(()),
        }
    }

    /// That a merge may begin at any snapshot.
    ///
    /// # Errors
    /// [`EngineError::Cluster`].
    pub(crate) fn check_may_merge(&self) -> Result<(), EngineError> {
        if !self.config.is_replicated {
            return Ok(());
        }
        match self.group().map(|group| group.role()).as_deref() {
            Some(Role::Leader(_)) => Ok(()),
            Some(Role::Follower(_)) => Err(EngineError::Cluster(FOLLOWER_MERGES)),
            None => Err(EngineError::Cluster(NO_MERGE_YET)),
        }
    }
}
