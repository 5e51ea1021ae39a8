//! How does a database become one node of a cluster of processes?

use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use jindou_cluster::{
    ForkMessages, LinkOptions, LinkUser, MailLimits, Member, MemberGraphs, MemberOptions,
    MemberStatus, PeerList, Secret, SeenGraph,
};
use jindou_exec::QueryClass;
use jindou_fabric::process::{ProcessFabric, ProcessOptions};
use jindou_model::NodeId;
use jindou_store::{NodePart, Snapshot};

use super::copies::{ByMember, Copies, Teller, Telling};
use super::publish::Publishing;
use super::snapshots::Snapshots;
use crate::graph::StoredGraph;
use crate::replica::{Keeper, ReplicaOptions, ReplicaWay};
use crate::{Database, EngineError};

/// How long two nodes may take to become known to each other.
const MEET_WITHIN: Duration = Duration::from_secs(10);

/// How long a node whose copies elect who leads may say nothing to the others.
const SOON_LOST: Duration = Duration::from_millis(1800);

/// Which node of which cluster a database is to be.
#[derive(Debug)]
pub struct ClusterOptions {
    /// All nodes.
    pub peers: PeerList,
    /// What only they know.
    pub secret: Option<Secret>,
    /// Which of them this is.
    pub node: NodeId,
    /// Memory of nodes of the same machine is mapped; without it all goes over TCP.
    pub maps_memory: bool,
    /// Listens at the node's address already; without it that is bound.
    pub listener: Option<TcpListener>,
    /// Of a store that is written: who keeps which node leads. Without one, the first node always does.
    pub keeper: Option<Arc<dyn Keeper>>,
    /// As [`ReplicaOptions::max_staleness`].
    pub max_staleness: Option<Duration>,
}

/// A database's part in a cluster.
pub(crate) struct Membership {
    /// Of a store that is written. Dropped first, so that no thread of these is the last to have the member.
    _telling: Option<Telling>,
    _publishing: Option<Publishing>,
    member: Arc<Member>,
    snapshots: Arc<Snapshots>,
    /// As [`Config::stands_in`](crate::Config::stands_in).
    stands_in: bool,
}

impl Membership {
    pub(super) fn member(&self) -> &Arc<Member> {
        &self.member
    }

    pub(super) fn snapshots(&self) -> &Snapshots {
        &self.snapshots
    }

    /// Whether this node can answer queries of a graph alone: it has a whole copy.
    fn can_answer_alone(&self, graph: &StoredGraph) -> bool {
        self.stands_in && graph.snapshot.base().node_part().is_none()
    }

    /// A graph for a query, as [`Membership::seen`]; none if this node answers it alone: it can, and `should`, another
    /// node is away, or the shards of a base that was merged are being cut.
    ///
    /// # Errors
    /// As [`Membership::seen`], and [`EngineError::NotFollowing`] of a copy that may not answer.
    pub(super) fn seen_unless_alone(
        &self,
        graph: &Arc<StoredGraph>,
        class: QueryClass,
        should: bool,
    ) -> Result<Option<SeenGraph>, EngineError> {
        if !self.can_answer_alone(graph) {
            return self.seen(graph, class).map(Some);
        }
        if should || !self.member.is_complete() {
            self.snapshots.check_that_it_may_answer()?;
            return Ok(None);
        }
        let own = self.snapshots.own_soon(graph)?;
        Ok(own.map(|own| self.member.seen(&own, class)))
    }

    /// A graph that readers see, with the shards of other nodes as queries of a class ask for them.
    ///
    /// # Errors
    /// [`EngineError::Fabric`] and [`EngineError::Store`] where there is no memory for its shards.
    pub(super) fn seen(
        &self,
        graph: &Arc<StoredGraph>,
        class: QueryClass,
    ) -> Result<SeenGraph, EngineError> {
        Ok(self.member.seen(&self.snapshots.own(graph)?, class))
    }

    /// A database's part, and where it is to meet the other nodes.
    fn new(
        database: &Database,
        mut options: ClusterOptions,
    ) -> Result<(Self, TcpListener), EngineError> {
        let inner = database.inner();
        let graph = inner.graph.load_full();
        check_part(&graph.snapshot, &options)?;
        let address = options.peers.peers()[options.node.0 as usize]
            .address
            .clone();
        let listener = match options.listener.take() {
            Some(listener) => listener,
            None => TcpListener::bind(&address)
                .map_err(|source| EngineError::NodeAddress { address, source })?,
        };
        let mut of_process = ProcessOptions::new(options.node);
        of_process.maps_memory = options.maps_memory;
        if options.keeper.is_some() {
            // The others have copies, and one of them takes its place by then.
            of_process.lost_after = SOON_LOST;
        }
        let fabric = ProcessFabric::new(&of_process)?;
        let place = (options.peers.map(), options.node);
        let deals_terms = inner.config.deal_terms;
        let (snapshots, base) = Snapshots::new(&graph, place, &fabric, deals_terms)?;
        let snapshots = Arc::new(snapshots);
        let graphs = Arc::clone(&snapshots) as Arc<dyn MemberGraphs>;
        let (way, teller) = (Arc::new(ByMember::default()), Arc::new(Teller::default()));
        let is_written = !inner.is_read_only();
        let (nodes, here) = (options.peers.map().nodes().len() as u32, options.node);
        let user = match is_written {
            true => {
                let names = options.peers.peers().iter();
                let names = names.map(|peer| peer.name.clone()).collect();
                let way = Arc::clone(&way) as Arc<dyn ReplicaWay>;
                let replica = database.replicate(ReplicaOptions {
                    keeper: options.keeper.take(),
                    max_staleness: options.max_staleness,
                    copies_anew: true,
                    copy_rate: inner.config.copy_rate,
                    ..ReplicaOptions::new(names, here, way)
                })?;
                snapshots.follow(replica.clone());
                Some(Copies::new(replica, &snapshots, &teller) as Arc<dyn LinkUser>)
            }
            false => None,
        };
        let identity = match is_written {
            true => identity_of_written(&graph.snapshot),
            false => identity(&graph.snapshot),
        };
        let config = &inner.config;
        let member = Member::new(
            MemberOptions {
                peers: options.peers,
                here: options.node,
                secret: options.secret,
                version: env!("CARGO_PKG_VERSION").to_owned(),
                reads_one_sided: config.reads_one_sided,
                settings: config.fork_settings(),
                threads: config.threads,
                starts: config.thread_starts(),
                forks: ForkMessages {
                    limits: config.fork_messages.unwrap_or_default(),
                    memory_bytes: config.query_memory_bytes,
                    spill: config.spill.clone(),
                    memory_pool: config.memory_pool.clone(),
                },
                dealt_terms_bytes: config.dealt_terms_bytes,
                stands_in: config.stands_in,
                link: LinkOptions::default(),
                mail: MailLimits::default(),
                meet_within: MEET_WITHIN,
            },
            fabric,
            (identity, base, graphs),
            user,
        );
        way.begin(&member);
        let telling = is_written.then(|| teller.start((nodes, here), &way, &snapshots));
        let refused = |source| EngineError::Thread { source };
        let publishing = is_written.then(|| Publishing::start(&member, &snapshots));
        let membership = Self {
            _telling: telling.transpose().map_err(refused)?,
            _publishing: publishing.transpose().map_err(refused)?,
            member,
            snapshots,
            stands_in: inner.config.stands_in,
        };
        Ok((membership, listener))
    }
}

/// Refuses the part of another node, or by another list.
fn check_part(snapshot: &Snapshot, options: &ClusterOptions) -> Result<(), EngineError> {
    let (map, here) = (options.peers.map(), options.node);
    match snapshot.base().node_part() {
        Some(part) if (part.map(), part.node()) != (map, here) => {
            let name = options.peers.peer(here).map_or("", |peer| &peer.name);
            Err(EngineError::PartOfOther {
                part: part.to_string(),
                asked: NodePart::said_of(map, here, name),
            })
        }
        _ => Ok(()),
    }
}

/// Which snapshot of which store this is: equal where a copy of the store says the same.
fn identity(snapshot: &Snapshot) -> String {
    let (generation, number, merges) = snapshot.place();
    let epoch = snapshot.epoch().0;
    format!(
        "{epoch:016x}, snapshot {}, merge {merges} of generation {generation}",
        number.0
    )
}

/// Which store this is, whose copies follow one another: each says itself how far it has come.
fn identity_of_written(snapshot: &Snapshot) -> String {
    format!("{:016x}, which is written", snapshot.epoch().0)
}

impl Database {
    /// Makes this database one node of a cluster whose other nodes have copies of the same store, or their
    /// [parts](Database::split) of it: queries are
    /// explored over the shards of all. Copies its own shards into memory that the others may read, and meets
    /// them in the background ([`Database::cluster`] says how that is).
    ///
    /// Of a store that may be written, which was opened for that
    /// ([`Config::is_replicated`](crate::Config::is_replicated)), all nodes then have the same transactions
    /// ([`Database::replicate`]), whichever of them they come to. Of others, which were
    /// [opened to be read](Database::open_to_read), all have the same snapshot.
    ///
    /// # Errors
    /// [`EngineError::Cluster`] for a database that is a node already or in memory, or can be changed and was not
    /// opened for it, [`EngineError::PartOfOther`] for the part of a store that another node has,
    /// [`EngineError::NodeAddress`] where the node's address cannot be had,
    /// [`EngineError::Fabric`] and [`EngineError::Link`] where the operating system gives no memory or threads.
    pub fn join(&self, options: ClusterOptions) -> Result<(), EngineError> {
        let inner = self.inner();
        if inner.shards.membership().is_some() {
            return Err(EngineError::Cluster("it is a node already"));
        }
        let (membership, listener) = Membership::new(self, options)?;
        let member = Arc::clone(&membership.member);
        {
            // What comes from now on is noted, and here what came meanwhile.
            let mut writer = inner.writer.lock();
            let snapshots = Arc::clone(&membership.snapshots);
            inner.shards.set_membership(membership)?;
            writer.told = Some(Box::new(move |snapshot| snapshots.note(snapshot)));
            writer.tell();
        }
        Ok(member.meet(listener)?)
    }

    /// How it is with each node of the cluster; none where this is no node of one.
    #[must_use]
    pub fn cluster(&self) -> Option<Vec<MemberStatus>> {
        let membership = self.inner().shards.membership()?;
        Some(membership.member().status())
    }

    /// Whether a query that ended as a node was lost is answered if it is asked again
    /// [alone](crate::QueryOptions::alone): this is a node of a cluster with a whole copy of the store.
    #[must_use]
    pub fn can_answer_alone(&self) -> bool {
        let inner = self.inner();
        let graph = inner.graph.load_full();
        let membership = inner.shards.membership();
        membership.is_some_and(|membership| membership.can_answer_alone(&graph))
    }

    /// Waits until all nodes of the cluster are there, or for so long; true if they are, and where this is
    /// no node of one.
    #[must_use]
    pub fn wait_for_cluster(&self, within: Duration) -> bool {
        let membership = self.inner().shards.membership();
        membership.is_none_or(|membership| membership.member().wait_for_all(within))
    }

    /// Waits until a node of the cluster is away, or for so long; true if one is. Where this is no node of
    /// one, none is.
    #[must_use]
    pub fn wait_for_lost_node(&self, within: Duration) -> bool {
        let membership = self.inner().shards.membership();
        membership.is_some_and(|membership| membership.member().wait_for_loss(within))
    }
}
