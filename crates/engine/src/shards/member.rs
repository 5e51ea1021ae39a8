//! How does a database become one node of a cluster of processes?

use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use jindou_cluster::{
    ForkMessages, LinkOptions, LinkUser, MailLimits, Member, MemberGraphs, MemberOptions,
    MemberStatus, OwnBase, PeerList, Secret, SeenGraph, Stage,
};
use jindou_exec::QueryClass;
use jindou_fabric::process::{ProcessFabric, ProcessOptions};
use jindou_model::NodeId;
use jindou_store::{NodePart, Snapshot};
use parking_lot::Mutex;

use super::copies::{ByMember, Copies, Teller, Telling};
use super::publish::Publishing;
use super::snapshots::Snapshots;
use crate::graph::StoredGraph;
use crate::replica::{Keeper, Replica, ReplicaOptions, ReplicaWay};
use crate::{Config, Database, EngineError};

/// How long two nodes may take to become known to each other.
const MEET_WITHIN: Duration = Duration::from_secs(10);

/// Changes since the last merge with which queries go over several nodes all the same,
const FEW_CHANGES: u64 = 1 << 12;
/// or this part of all quads.
const SPREAD_SHARE: u64 = 256;

/// How long a node whose copies elect who leads may say nothing to the others.
const SOON_LOST: Duration = Duration::from_millis(1800);

/// How long queries over several nodes may go on once the list of nodes has changed; others are answered from this copy
/// meanwhile.
const QUERIES_END_WITHIN: Duration = Duration::from_secs(10);

/// How long the end of a listener may take.
const LISTENS_WITHIN: Duration = Duration::from_secs(5);

/// How often what is to end soon is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// What a part of a store cannot be given.
const PART_STAYS: &str =
    "a node that has its part of the store only holds the shards of that, whatever nodes there are";
const NOT_THIS_NODE: &str = "the list of nodes has another one of this number";
const NO_NODE: &str = "it is no node of a cluster";

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

/// A database's part in a cluster, by one state of the list of its nodes.
pub(crate) struct Membership {
    /// Of a store that is written. Dropped first, so that no thread of these is the last to have the member.
    _telling: Option<Telling>,
    _publishing: Option<Publishing>,
    member: Arc<Member>,
    snapshots: Arc<Snapshots>,
    /// As [`Config::stands_in`](crate::Config::stands_in).
    stands_in: bool,
    /// Another one is to take its place: no query begins with it.
    is_ending: AtomicBool,
    place: Arc<Place>,
}

/// What is the same of it by whatever list.
struct Place {
    node: NodeId,
    secret: Option<Secret>,
    maps_memory: bool,
    /// The others have copies, and one of them may take its place.
    has_elections: bool,
    /// Of a store that is written.
    replica: Option<Replica>,
    way: Arc<ByMember>,
    /// Held while another list takes the place of the one before.
    relisting: Mutex<()>,
}

/// What a node lets others read by a list, and the snapshots of its own queries.
struct Shared {
    fabric: Arc<ProcessFabric>,
    snapshots: Arc<Snapshots>,
    base: OwnBase,
}

impl Shared {
    /// That of the shards which a list gives a node.
    fn new(
        database: &Database,
        peers: &PeerList,
        (node, maps_memory, has_elections): (NodeId, bool, bool),
    ) -> Result<Self, EngineError> {
        let mut of_process = ProcessOptions::new(node);
        of_process.maps_memory = maps_memory;
        if has_elections {
            // The others have copies, and one of them takes its place by then.
            of_process.lost_after = SOON_LOST;
        }
        let fabric = ProcessFabric::new(&of_process)?;
        let inner = database.inner();
        let graph = inner.graph.load_full();
        let deals_terms = inner.config.deal_terms;
        let (snapshots, base) = Snapshots::new(&graph, (peers.map(), node), &fabric, deals_terms)?;
        Ok(Self {
            fabric,
            snapshots: Arc::new(snapshots),
            base,
        })
    }
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

    /// Whether all nodes that hold shards have what readers are to see: one that still catches up would have queries wait
    /// for it.
    fn are_in_sync(&self) -> bool {
        let replica = self.place.replica.as_ref();
        let holding = self.member.map().holding_nodes();
        replica.is_none_or(|replica| replica.are_in_sync(holding))
    }

    /// A graph for a query, as [`Membership::seen`]; none if this node answers it alone: it can, and `should`, another
    /// node is away or catches up, the list of nodes changes, the shards of a base that was merged are being cut, or much
    /// is not merged.
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
        let has_others =
            self.member.is_complete() && self.are_in_sync() && !has_much_unmerged(&graph.snapshot);
        if should || self.is_ending.load(Ordering::SeqCst) || !has_others {
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
        check_part(&inner.graph.load_full().snapshot, &options)?;
        let listener = match options.listener.take() {
            Some(listener) => listener,
            None => bind(&options.peers, options.node)?,
        };
        let (node, has_elections) = (options.node, options.keeper.is_some());
        let as_node = (node, options.maps_memory, has_elections);
        let shared = Shared::new(database, &options.peers, as_node)?;
        let way = Arc::new(ByMember::default());
        let replica = match inner.is_read_only() {
            true => None,
            false => {
                let names = options.peers.peers().iter();
                let names = names.map(|peer| peer.name.clone()).collect();
                let by = Arc::clone(&way) as Arc<dyn ReplicaWay>;
                let replica = database.replicate(ReplicaOptions {
                    keeper: options.keeper.take(),
                    max_staleness: options.max_staleness,
                    copies_anew: true,
                    copy_rate: inner.config.copy_rate,
                    ..ReplicaOptions::new(names, node, by)
                })?;
                replica.set_nodes(named(&options.peers));
                Some(replica)
            }
        };
        let place = Place {
            node,
            secret: options.secret,
            maps_memory: options.maps_memory,
            has_elections,
            replica,
            way,
            relisting: Mutex::default(),
        };
        let membership = Self::assemble(database, Arc::new(place), options.peers, shared)?;
        membership.begin();
        Ok((membership, listener))
    }

    /// The part by a list, which meets nobody yet.
    fn assemble(
        database: &Database,
        place: Arc<Place>,
        peers: PeerList,
        shared: Shared,
    ) -> Result<Self, EngineError> {
        let inner = database.inner();
        let Shared {
            fabric,
            snapshots,
            base,
        } = shared;
        let teller = Arc::new(Teller::default());
        let user = place.replica.as_ref().map(|replica| {
            snapshots.follow(replica.clone());
            Copies::new(replica.clone(), &snapshots, &teller) as Arc<dyn LinkUser>
        });
        let snapshot = &inner.graph.load_full().snapshot;
        let identity = match user {
            Some(_) => identity_of_written(snapshot),
            None => identity(snapshot),
        };
        let graphs = Arc::clone(&snapshots) as Arc<dyn MemberGraphs>;
        let nodes = peers.map().nodes().len() as u32;
        let options = member_options(&inner.config, &place, peers);
        let member = Member::new(options, fabric, (identity, base, graphs), user);
        let refused = |source| EngineError::Thread { source };
        let is_written = place.replica.is_some();
        let telling = is_written.then(|| teller.start((nodes, place.node), &place.way, &snapshots));
        let publishing = is_written.then(|| Publishing::start(&member, &snapshots));
        Ok(Self {
            _telling: telling.transpose().map_err(refused)?,
            _publishing: publishing.transpose().map_err(refused)?,
            member,
            snapshots,
            stands_in: inner.config.stands_in,
            is_ending: AtomicBool::new(false),
            place,
        })
    }

    /// What copies say to each other goes by this one from now on.
    fn begin(&self) {
        self.place.way.begin(&self.member);
    }

    /// Has no query begin with it, and waits for those that have, here and at the other nodes, but not for long.
    fn end_softly(&self) {
        self.is_ending.store(true, Ordering::SeqCst);
        let until = Instant::now() + QUERIES_END_WITHIN;
        while self.snapshots.are_in_use() && Instant::now() < until {
            std::thread::sleep(LOOK_EVERY);
        }
    }
}

/// Whether so much came since the last merge that a query over several nodes takes longer than one of them alone: each
/// snapshot is cut into shards, and lists that changed are asked for by messages.
fn has_much_unmerged(snapshot: &Snapshot) -> bool {
    let quads = snapshot.triples() + snapshot.named_quads();
    snapshot.changes() > FEW_CHANGES.max(quads / SPREAD_SHARE)
}

/// How nodes are called, and which have left.
fn named(peers: &PeerList) -> Vec<(String, bool)> {
    let peers = peers.peers().iter();
    let named = peers.map(|peer| (peer.name.clone(), peer.stage == Stage::Gone));
    named.collect()
}

/// Listens at the address of a node.
fn bind(peers: &PeerList, node: NodeId) -> Result<TcpListener, EngineError> {
    let address = peers.peers()[node.0 as usize].address.clone();
    let listener = TcpListener::bind(&address);
    listener.map_err(|source| EngineError::NodeAddress { address, source })
}

/// Listens there, where another listener of this process is about to end.
fn bind_again(peers: &PeerList, node: NodeId) -> Result<TcpListener, EngineError> {
    let until = Instant::now() + LISTENS_WITHIN;
    loop {
        match bind(peers, node) {
            Err(_) if Instant::now() < until => std::thread::sleep(LOOK_EVERY),
            bound => return bound,
        }
    }
}

fn member_options(config: &Config, place: &Place, peers: PeerList) -> MemberOptions {
    MemberOptions {
        peers,
        here: place.node,
        secret: place.secret.clone(),
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
        let snapshots = Arc::clone(&membership.snapshots);
        inner.shards.set_membership(membership)?;
        // What comes from now on is noted, and what came meanwhile.
        self.tell(&snapshots, None);
        Ok(member.meet(listener)?)
    }

    /// Goes on by another state of the list of nodes, which has changed: others have come or gone, and shards are dealt anew. Copies
    /// what it holds then into memory that the others may read; meanwhile all goes on by the list before. Queries over
    /// several nodes that have begun may end for up to 10 s, and others are answered from this copy until all nodes have
    /// the new list. A list that is no newer changes nothing.
    ///
    /// # Errors
    /// [`EngineError::Cluster`] for no node, another one of this number, and one that has its part of the store only;
    /// [`EngineError::Fabric`], [`EngineError::Store`] where there is no memory: all is as before. With
    /// [`EngineError::NodeAddress`] and [`EngineError::Link`] it is cut off from the others, and has to be opened anew.
    pub fn relist(&self, peers: PeerList) -> Result<(), EngineError> {
        let inner = self.inner();
        let before = inner
            .shards
            .membership()
            .ok_or(EngineError::Cluster(NO_NODE))?;
        let place = Arc::clone(&before.place);
        drop(before);
        let _one = place.relisting.lock();
        let before = Arc::clone(
            &*inner
                .shards
                .membership()
                .ok_or(EngineError::Cluster(NO_NODE))?,
        );
        if peers.version() <= before.member.peers().version() {
            return Ok(());
        }
        let name = |peers: &PeerList| peers.peer(place.node).map(|peer| peer.name.clone());
        if name(&peers) != name(before.member.peers()) {
            return Err(EngineError::Cluster(NOT_THIS_NODE));
        }
        if !before.can_answer_alone(&inner.graph.load_full()) {
            return Err(EngineError::Cluster(PART_STAYS));
        }
        if let Some(replica) = &place.replica {
            replica.set_nodes(named(&peers));
        }
        let as_node = (place.node, place.maps_memory, place.has_elections);
        let begun = Instant::now();
        let shared = Shared::new(self, &peers, as_node)?;
        let copied = begun.elapsed();
        self.tell(&shared.snapshots, Some(&before.snapshots));
        let after = Membership::assemble(self, Arc::clone(&place), peers.clone(), shared)?;
        before.end_softly();
        let ended = begun.elapsed();
        before.member.leave();
        after.begin();
        let (member, snapshots) = (Arc::clone(&after.member), Arc::clone(&after.snapshots));
        // Queries that have begun with the one before have it.
        let _before = inner.shards.replace_membership(after);
        self.tell(&snapshots, None);
        let listener = bind_again(&peers, place.node)?;
        let milliseconds = |time: Duration| time.as_secs_f64() * 1e3;
        tracing::info!(
            nodes = member.map().holding(),
            copied_ms = milliseconds(copied),
            queries_ended_ms = milliseconds(ended - copied),
            cut_off_ms = milliseconds(begun.elapsed() - ended),
            "goes on by another list of nodes"
        );
        Ok(member.meet(listener)?)
    }

    /// Has a node hear of each snapshot from now on, and what it has by the list before, too.
    fn tell(&self, snapshots: &Arc<Snapshots>, before: Option<&Arc<Snapshots>>) {
        let mut writer = self.inner().writer.lock();
        let (snapshots, before) = (Arc::clone(snapshots), before.map(Arc::clone));
        writer.told = Some(Box::new(move |snapshot| {
            snapshots.note(snapshot);
            if let Some(before) = &before {
                before.note(snapshot);
            }
        }));
        writer.tell();
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
        self.wait_at_member(within, |member, left| member.wait_for_all(left), true)
    }

    /// Has `wait` wait by the list of nodes that there is, and by the next one where that takes its place meanwhile; `alone`
    /// where this is no node.
    fn wait_at_member(
        &self,
        within: Duration,
        wait: impl Fn(&Member, Duration) -> bool,
        alone: bool,
    ) -> bool {
        let until = Instant::now() + within;
        loop {
            let member = match self.inner().shards.membership() {
                Some(membership) => Arc::clone(&membership.member),
                None => return alone,
            };
            let left = until.saturating_duration_since(Instant::now());
            let is_so = wait(&member, left);
            if !member.has_left() || left.is_zero() {
                return is_so;
            }
            drop(member);
            std::thread::sleep(LOOK_EVERY);
        }
    }

    /// Waits until a node of the cluster is away, or for so long; true if one is. Where this is no node of
    /// one, none is.
    #[must_use]
    pub fn wait_for_lost_node(&self, within: Duration) -> bool {
        self.wait_at_member(within, |member, left| member.wait_for_loss(left), false)
    }
}
