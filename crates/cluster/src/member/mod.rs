//! How is this process one node of a cluster whose other nodes are processes?
//!
//! A [`Member`] has shards of the graph, and a list of its peers. It keeps itself connected with each of
//! them ([`meeting`]): memory that the other one registered is read, calls and sub-queries go as messages
//! over rings. A peer that is lost takes its shards along: what needs these is answered by
//! [`Unavailable::Never`](jindou_model::Unavailable::Never) or
//! [`NodeLost`](jindou_exec::ExecError::NodeLost), and all else goes on. It is met again when it is back.

mod bases;
mod graphs;
mod joining;
mod meeting;
#[cfg(test)]
mod tests;
mod user;
mod waiting;

use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Weak};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use jindou_exec::{
    ExecError, ForkNode, ForkPolicy, ForkSettings, Forks, GraphSource, MessageCost, Messages,
    QueryClass, SubQuery, TermSource,
};
use jindou_fabric::FabricError;
use jindou_fabric::process::ProcessFabric;
use jindou_fabric::remote::Fabric as _;
use jindou_model::{NodeId, ShardId, SnapshotNumber, TermId, Unavailable};
use jindou_partition::ShardMap;
use parking_lot::{Mutex, RwLock};

use self::bases::{OwnBases, PeerBase, alike};
use self::graphs::{Seen, SeenBy, Served, Views};
use self::joining::{JoinError, Joined, PeerLink};
use self::meeting::Meeting;
use self::user::{Letter, UserLinks};
use self::waiting::Waiting;
use crate::Advert;
use crate::calls::{LinkError, LinkOptions, ShardServer, incarnation};
use crate::hello::Facts;
use crate::logical::ForkMessages;
use crate::mail::{Mail, MailCounts, MailLimits};
use crate::one_sided::{ReadCounts, RemoteReads};
use crate::peers::{PeerList, Stage};
use crate::rows::is_of_graph;
use crate::secret::Secret;
use crate::workers::{ClassWorkers, ThreadStarts};

pub use self::graphs::{LastSeen, MemberGraphs, OwnBase, OwnGraph};
pub use self::user::LinkUser;

/// How a process is a member.
#[derive(Clone)]
pub struct MemberOptions {
    /// Who is in the cluster.
    pub peers: PeerList,
    /// Which of them this is.
    pub here: NodeId,
    /// What only members know.
    pub secret: Option<Secret>,
    /// The version of this program.
    pub version: String,
    /// It reads the lists of others where they lie; otherwise it asks for them.
    pub reads_one_sided: bool,
    /// How rows get to keys that another node has.
    pub settings: ForkSettings,
    /// Threads for sub-queries of others, of each class.
    pub threads: usize,
    /// What threads for queries of others call first.
    pub starts: ThreadStarts,
    /// What sub-queries of others may take.
    pub forks: ForkMessages,
    /// Bytes that this node remembers of the terms of others at one snapshot, where it has its part of the dictionary
    /// only.
    pub dealt_terms_bytes: usize,
    /// While another node is away, sub-queries go on in a whole copy of the store that this one has.
    pub stands_in: bool,
    /// What links have in common.
    pub link: LinkOptions,
    /// What may wait to be sent to a node.
    pub mail: MailLimits,
    /// How long two nodes may take to become known to each other.
    pub meet_within: Duration,
}

/// A graph as queries meet it at a node, by way of the others.
pub struct SeenGraph {
    /// What they ask.
    pub source: Arc<dyn GraphSource>,
    /// Its terms.
    pub terms: Arc<dyn TermSource>,
    /// How their rows go on at other nodes.
    pub forks: Arc<dyn Forks>,
}

/// This process as one node of a cluster.
pub struct Member {
    options: MemberOptions,
    map: ShardMap,
    fabric: Arc<ProcessFabric>,
    /// Which store this is, for comparison with that of others.
    identity: String,
    /// What others read.
    bases: OwnBases,
    graphs: Arc<dyn MemberGraphs>,
    served: Served,
    server: Arc<ShardServer>,
    counts: Arc<ReadCounts>,
    forks: Arc<ForkNode>,
    workers: ClassWorkers,
    /// Sub-queries of others that wait for one of these.
    waiting: Waiting,
    /// By node; none to itself, and to one that is away.
    links: Mutex<Vec<Option<Arc<PeerLink>>>>,
    /// By node: the number of the link whose connection the fabric uses.
    connected: Mutex<Vec<u64>>,
    /// What reads the shards of others by way of these.
    views: RwLock<Arc<Views>>,
    /// When a query missed a node last.
    missed: Mutex<Option<Instant>>,
    /// Graphs that keep how they were seen.
    seen: Mutex<Vec<Weak<OwnGraph>>>,
    /// Who else sends messages over them.
    users: UserLinks,
    meeting: Arc<Meeting>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

/// How long queries do without the other nodes once one was missed: as long as its end is noticed in, or all others have
/// met it.
const MISSED: Duration = Duration::from_secs(1);

/// A link that broke, as the memory of its peer cannot be opened.
struct Broken {
    node: NodeId,
    link: Arc<PeerLink>,
    error: FabricError,
}

/// How it is with a node.
#[derive(Clone, Debug)]
pub struct MemberStatus {
    /// The number of the node.
    pub node: NodeId,
    /// Its name.
    pub name: String,
    /// Where it is met.
    pub address: String,
    /// Where its HTTP server is, if that is known.
    pub http: Option<String>,
    /// What it does in the cluster.
    pub stage: Stage,
    /// Shards that it holds.
    pub shards: usize,
    /// Whether it is there.
    pub presence: Presence,
    /// Predicates whose lists are read one-sided where they did not change since the last merge, as the bases of both
    /// nodes have the same edges of them,
    pub alike: usize,
    /// of so many that one of the bases has. For others the node is asked.
    pub predicates: usize,
    /// Messages of sub-queries that went to it since it was met last,
    pub sent: MailCounts,
    /// and that came from it.
    pub received: MailCounts,
}

/// Whether a node is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Presence {
    /// It is this one.
    Here,
    /// It is, and its memory is mapped.
    Mapped,
    /// It is, and its memory is read by messages over TCP.
    ByTcp,
    /// It is not, for the reason of the last try.
    Away(String),
}

impl Member {
    /// Makes this process a node of a cluster whose stores have this `identity`, which lets others read its
    /// `base` and has these `graphs`, and lets a `user` send messages of its own over its links.
    ///
    /// # Panics
    /// If the shards are not those that the list gives the node.
    pub fn new(
        options: MemberOptions,
        fabric: Arc<ProcessFabric>,
        (identity, base, graphs): (String, OwnBase, Arc<dyn MemberGraphs>),
        user: Option<Arc<dyn LinkUser>>,
    ) -> Arc<Self> {
        let map = options.peers.map().clone();
        let own = base.shards.iter().map(|(shard, _)| *shard);
        let holds = |shard: &ShardId| map.holder(*shard) == options.here;
        assert!(
            own.eq(map.shards().all().filter(holds)),
            "a node has the shards that the list gives it"
        );
        let workers = ClassWorkers::new(options.threads, &options.starts);
        let waiting = Waiting::new(options.forks.memory_pool.clone());
        let nodes = map.nodes().len();
        let (first, limits) = (incarnation(), options.forks.limits);
        let counts: Arc<ReadCounts> = Arc::default();
        let alone = Views::new((&map, options.here), &vec![None; nodes]);
        Arc::new_cyclic(|weak: &Weak<Self>| {
            let way = Arc::new(Way(Weak::clone(weak)));
            let finder = Weak::clone(weak);
            let server = ShardServer::finding(map.shards(), move |id| {
                let member: Option<Arc<Self>> = finder.upgrade();
                member.ok_or(Unavailable::Gone)?.serve(id)
            });
            Self {
                forks: ForkNode::new(options.here, nodes as u32, first, way, limits),
                meeting: Arc::new(Meeting::new(nodes)),
                options,
                map,
                fabric,
                identity,
                bases: OwnBases::new(base),
                graphs,
                served: Served::default(),
                server,
                counts,
                workers,
                waiting,
                links: Mutex::new((0..nodes).map(|_| None).collect()),
                connected: Mutex::new(vec![0; nodes]),
                views: RwLock::new(Arc::new(alone)),
                missed: Mutex::default(),
                seen: Mutex::default(),
                users: UserLinks::new(user, nodes),
                threads: Mutex::default(),
            }
        })
    }

    /// Has it meet its peers at `listener`: in the background, for as long as this is there.
    ///
    /// # Errors
    /// [`LinkError::Thread`] where the operating system refuses a thread.
    pub fn meet(self: &Arc<Self>, listener: TcpListener) -> Result<(), LinkError> {
        let threads = meeting::start(self, listener)?;
        self.threads.lock().extend(threads);
        Ok(())
    }

    /// Sends a message of the links' user to a node; false if there is no link, or it has ended. Never waits for
    /// the node.
    #[must_use]
    pub fn send(&self, to: NodeId, message: Vec<u8>) -> bool {
        self.users.send(to, message)
    }

    /// The same before the messages that wait for room on the way there.
    pub fn send_ahead(&self, to: NodeId, message: Vec<u8>) -> bool {
        self.users.send_ahead(to, message)
    }

    /// A graph of this node as queries of a class meet it here, with the shards of others, and its terms.
    #[must_use]
    pub fn seen(self: &Arc<Self>, graph: &Arc<OwnGraph>, class: QueryClass) -> SeenGraph {
        let seen = self.see(graph);
        let SeenBy { source, terms } = seen.by.of(class).clone();
        let (member, graph) = (Arc::clone(self), Arc::clone(graph));
        let forks = AtMember {
            member,
            seen,
            graph,
            stays: false,
        };
        SeenGraph {
            source,
            terms,
            forks: Arc::new(forks),
        }
    }

    /// A graph as sub-queries of others meet it here. While a node is away that they may need, and this one has a whole
    /// copy, all that they read is in that, and their rows go nowhere: nodes come and go at other times for each other.
    fn seen_by_others(self: &Arc<Self>, graph: &Arc<OwnGraph>, class: QueryClass) -> SeenGraph {
        let seen = self.see(graph);
        let whole = graph.whole.as_ref().zip(graph.terms.as_ref());
        let whole = whole.filter(|_| self.options.stands_in && !seen.views.are_complete);
        let Some((source, terms)) = whole else {
            return self.seen(graph, class);
        };
        let (member, own) = (Arc::clone(self), Arc::clone(graph));
        SeenGraph {
            source: Arc::clone(source),
            terms: Arc::clone(terms),
            forks: Arc::new(AtMember {
                member,
                seen,
                graph: own,
                stays: true,
            }),
        }
    }

    /// Whether queries that begin now find all nodes there, as far as is known: one that a query missed may not be there
    /// for others either, and is looked for again a little later.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        let is_missing = |missed: Instant| missed.elapsed() < MISSED;
        self.views.read().are_complete && !self.missed.lock().is_some_and(is_missing)
    }

    /// A query missed a node.
    pub fn miss(&self) {
        *self.missed.lock() = Some(Instant::now());
    }

    /// How it is with each node.
    #[must_use]
    pub fn status(&self) -> Vec<MemberStatus> {
        let links = self.links.lock().clone();
        let peers = self.options.peers.peers().iter().zip(links);
        let numbered = self.map.nodes().zip(peers);
        let tags = self.bases.tags();
        let mail = |link: &Option<Arc<PeerLink>>, counts: fn(&Mail) -> MailCounts| {
            let link = link.as_ref();
            link.map(|link| counts(&link.mail)).unwrap_or_default()
        };
        numbered
            .filter(|(node, _)| self.options.peers.is_met(*node))
            .map(|(node, (peer, link))| {
                let bases = link.as_ref().map(|link| link.bases.lock().clone());
                let (_, any) = alike(&tags, &bases.unwrap_or_default());
                MemberStatus {
                    node,
                    name: peer.name.clone(),
                    address: peer.address.clone(),
                    http: peer.http.clone(),
                    stage: peer.stage,
                    shards: self.shards_of(node).count(),
                    presence: self.presence(node, link.as_deref()),
                    alike: any.count(),
                    predicates: any.known(),
                    sent: mail(&link, Mail::sent),
                    received: mail(&link, Mail::received),
                }
            })
            .collect()
    }

    fn presence(&self, node: NodeId, link: Option<&PeerLink>) -> Presence {
        match link {
            _ if node == self.here() => Presence::Here,
            Some(link) if link.is_mapped => Presence::Mapped,
            Some(_) => Presence::ByTcp,
            None => Presence::Away(self.meeting.reason(node)),
        }
    }

    /// Waits until all peers are there, or for so long; true if they are.
    pub fn wait_for_all(&self, within: Duration) -> bool {
        self.meeting.wait_until(within, || self.are_all_there())
    }

    /// Waits until a peer is away, or for so long; true if one is.
    pub fn wait_for_loss(&self, within: Duration) -> bool {
        self.meeting.wait_until(within, || !self.are_all_there())
    }

    /// Whether those that hold shards are, by the same list.
    fn are_all_there(&self) -> bool {
        let links = self.links.lock();
        let mut holders = self.map.nodes().filter(|node| self.map.holds(*node));
        holders.all(|node| {
            let link = links[node.0 as usize].as_ref();
            node == self.here() || link.is_some_and(|link| link.list == self.list())
        })
    }

    /// What this node has read of others, and asked.
    #[must_use]
    pub fn remote_reads(&self) -> RemoteReads {
        self.counts.sum()
    }

    /// Queries of others of which something is here, and chains of theirs to whose readers tables are on
    /// the way.
    #[must_use]
    pub fn held_for_others(&self) -> (usize, usize) {
        self.forks.held()
    }

    /// The name of a node, as the list has it.
    #[must_use]
    pub fn name(&self, node: NodeId) -> &str {
        &self.options.peers.peers()[node.0 as usize].name
    }

    /// Who is in the cluster.
    #[must_use]
    pub fn peers(&self) -> &PeerList {
        &self.options.peers
    }

    /// Which node holds each shard.
    #[must_use]
    pub fn map(&self) -> &ShardMap {
        &self.map
    }

    fn here(&self) -> NodeId {
        self.options.here
    }

    fn shards_of(&self, node: NodeId) -> impl Iterator<Item = ShardId> {
        let shards = self.map.shards().all();
        shards.filter(move |shard| self.map.holder(*shard) == node)
    }

    fn link(&self, node: NodeId) -> Option<Arc<PeerLink>> {
        self.links.lock()[node.0 as usize].clone()
    }

    /// The link by which rows go to a node: one by another list may hold other shards than the rows are sent for.
    fn link_of_rows(&self, node: NodeId) -> Option<Arc<PeerLink>> {
        self.link(node).filter(|link| link.list == self.list())
    }

    /// Which state of the list it is a member by.
    fn list(&self) -> u64 {
        self.options.peers.version()
    }

    /// What it tells others when they meet.
    fn facts(&self) -> Facts {
        Facts {
            program: self.options.version.clone(),
            cluster: self.options.peers.digest(),
            list: self.list(),
            name: self.name(self.here()).to_owned(),
            shards: self.map.shards().count() as u32,
            snapshot: self.identity.clone(),
            wants_copy: false,
        }
    }

    /// What it tells others of its shards.
    fn advert(&self) -> Advert {
        self.bases.advert()
    }

    /// Has queries see the graph by way of these links: of those to nodes by the same list, as others may hold other
    /// shards.
    fn look(&self, links: &[Option<Arc<PeerLink>>]) {
        let shared = links.iter().map(|link| {
            let link = link.as_ref().filter(|link| link.list == self.list());
            link.map(Arc::clone)
        });
        let shared: Vec<_> = shared.collect();
        self.set_views(Views::new((&self.map, self.here()), &shared));
    }

    /// Tells of a link that broke as its peer's memory cannot be opened.
    fn tell(&self, broken: &Broken) {
        let Broken { node, link, error } = broken;
        link.mail.end();
        self.disconnect(*node, link.number);
        self.users.end(*node, link.number);
        self.forks.lost(*node);
        let reason = JoinError::Memory(error.clone()).to_string();
        if self.meeting.note(*node, reason.clone()) {
            tracing::warn!(node = self.name(*node), reason, "a node cannot be used");
        }
    }

    /// Has the fabric use a connection with a peer for the link of this number.
    ///
    /// # Errors
    /// [`JoinError::Superseded`] where it uses that of a newer link: this one may be of a process that has
    /// ended since.
    fn connect(
        &self,
        (node, number): (NodeId, u64),
        address: &[u8],
        stream: TcpStream,
    ) -> Result<(), JoinError> {
        let mut connected = self.connected.lock();
        note_connected(&mut connected[node.0 as usize], number)?;
        Ok(self.fabric.connect(node, address, stream)?)
    }

    /// Ends the connection of the link of this number, unless a newer one took its place: the peer, which may
    /// count the link as there, sees that, and one of both connects anew.
    fn disconnect(&self, node: NodeId, number: u64) {
        let connected = self.connected.lock();
        if connected[node.0 as usize] == number {
            self.fabric.disconnect(node);
        }
    }

    /// A peer is there, in place of what was there of it.
    fn joined(self: &Arc<Self>, node: NodeId, joined: Joined) -> Result<(), JoinError> {
        let number = joined.number;
        let open = || {
            let mut links = self.links.lock();
            note_connected(&mut self.connected.lock()[node.0 as usize], number)?;
            let (theirs, told) = (joined.theirs.clone(), joined.told);
            let link = Arc::new(joined.open(self)?);
            let mail = Arc::clone(&link.mail);
            let before = links[node.0 as usize].take();
            let base = theirs.map(|theirs| PeerBase::open(&theirs, &*self.fabric, None));
            let broken = match base.transpose() {
                Ok(base) => {
                    *link.bases.lock() = base.into_iter().collect();
                    links[node.0 as usize] = Some(Arc::clone(&link));
                    None
                }
                Err(error) => {
                    let link = Arc::clone(&link);
                    Some(Broken { node, link, error })
                }
            };
            self.look(&links);
            Ok::<_, JoinError>(((before, broken, (link, told)), mail))
        };
        let (before, broken, (link, told)) = self.users.join((node, number), open)?;
        if let Some(before) = before {
            // Somebody may be about to send over it: that is refused, and whoever did so before hears that it
            // is lost.
            before.mail.end();
            self.forks.lost(node);
        }
        if let Some(broken) = broken {
            self.tell(&broken);
            return Err(JoinError::Memory(broken.error));
        }
        self.tell_again(&link, told);
        let mail = Arc::clone(&link.mail);
        drop(link);
        tracing::info!(node = self.name(node), "a node is there");
        self.meeting.note(node, String::new());
        // Its end was told to nobody if it came before the link was here.
        if mail.is_over() {
            self.lost(node, number, "it is lost");
        }
        Ok(())
    }

    /// A link broke, unless there is another one to the same peer by now.
    fn lost(&self, node: NodeId, number: u64, reason: &str) {
        let mut links = self.links.lock();
        let place = &mut links[node.0 as usize];
        let broken = place.take_if(|link| link.number == number);
        if broken.is_some() {
            self.look(&links);
        }
        drop(links);
        let loss = self.fabric.loss(node);
        self.disconnect(node, number);
        self.users.end(node, number);
        // Where another link is there, too: what was sent over this one may not have come.
        self.forks.lost(node);
        if broken.is_some() {
            // Of numbers of nodes their users know nothing.
            let is_lost = reason == FabricError::PeerLost(node).to_string();
            let loss = loss.map(|loss| loss.to_string());
            let reason = if is_lost { "it is lost" } else { reason };
            tracing::warn!(node = self.name(node), reason, loss, "a node is lost");
            self.meeting.note(node, reason.to_owned());
        }
    }

    /// A message came by the link of this number.
    fn received(
        self: &Arc<Self>,
        (from, number): (NodeId, u64),
        message: Vec<u8>,
    ) -> Result<(), String> {
        match Letter::read(message)? {
            Letter::SubQuery(message) => self.received_of_queries(from, message),
            Letter::OfUser(message) => self.users.received((from, number), message),
            Letter::OfAdvert(piece, is_last) => {
                self.received_advert((from, number), &piece, is_last)
            }
        }
    }

    /// A message of sub-queries came.
    fn received_of_queries(self: &Arc<Self>, from: NodeId, message: Vec<u8>) -> Result<(), String> {
        let received = self.forks.receive(from, message);
        if let Some(arrived) = received.map_err(|error| error.to_string())? {
            let held = match self.waiting.take(arrived.bytes()) {
                Ok(held) => held,
                Err(error) => {
                    arrived.fail(error);
                    return Ok(());
                }
            };
            let (member, class) = (Arc::clone(self), arrived.class());
            self.workers.spawn(class, move || {
                let _held = held;
                match member.graph_of(arrived.snapshot()) {
                    Ok(graph) => {
                        let seen = member.seen_by_others(&graph, class);
                        let resources =
                            (member.options.forks).resources(seen.source, &seen.terms, seen.forks);
                        arrived.run(resources);
                    }
                    Err(_) => arrived.fail(ExecError::SnapshotGone),
                }
            });
        }
        Ok(())
    }
}

impl Member {
    /// Whether another member has taken its place, or is about to.
    #[must_use]
    pub fn has_left(&self) -> bool {
        self.meeting.is_stopped()
    }

    /// Meets nobody any more, and ends all links, of which their user is told: another member takes its place. What queries have
    /// of other nodes is lost to them. Waits for those who tell the user something.
    pub fn leave(&self) {
        self.meeting.stop();
        let links: Vec<(NodeId, Arc<PeerLink>)> = {
            let mut links = self.links.lock();
            let taken = (0..).map(NodeId).zip(links.iter_mut());
            let taken = taken.filter_map(|(node, link)| Some((node, link.take()?)));
            let taken = taken.collect();
            self.look(&links);
            taken
        };
        for (node, link) in links {
            self.disconnect(node, link.number);
            link.mail.end();
            self.users.end(node, link.number);
            self.forks.lost(node);
        }
        self.users.close();
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.meeting.stop();
        self.users.forget();
        self.links.lock().clear();
        for thread in self.threads.lock().drain(..) {
            // The last one to have this may be one of them; none of them panics.
            if thread.thread().id() != thread::current().id() {
                let _ended = thread.join();
            }
        }
        self.fabric.close();
    }
}

/// Notes that a link of this number is connected, unless a newer one is.
fn note_connected(newest: &mut u64, number: u64) -> Result<(), JoinError> {
    if *newest > number {
        return Err(JoinError::Superseded);
    }
    *newest = number;
    Ok(())
}

/// The way of messages from this node to others.
struct Way(Weak<Member>);

impl Messages for Way {
    fn send(&self, to: NodeId, message: Vec<u8>) {
        let member = self.0.upgrade();
        // Of a node that is away nothing is heard, and whoever waits for it was told.
        if let Some(link) = member.and_then(|member| member.link_of_rows(to)) {
            // What a link that breaks just now does not take is heard of as lost.
            let _is_taken = link.mail.send(user::of_sub_query(message));
        }
    }

    fn reaches(&self, node: NodeId) -> bool {
        let member = self.0.upgrade();
        member.is_some_and(|member| member.link_of_rows(node).is_some())
    }
}

/// The nodes, as one query meets them here.
struct AtMember {
    member: Arc<Member>,
    seen: Arc<Seen>,
    /// In use for as long as the query is.
    graph: Arc<OwnGraph>,
    /// No rows go to other nodes.
    stays: bool,
}

impl Forks for AtMember {
    fn here(&self) -> NodeId {
        self.member.here()
    }

    fn nodes(&self) -> u32 {
        self.member.map.nodes().len() as u32
    }

    fn holding(&self) -> u32 {
        self.member.map.holding()
    }

    fn holds(&self, node: NodeId) -> bool {
        self.member.map.holds(node)
    }

    fn snapshot(&self) -> SnapshotNumber {
        self.graph.snapshot
    }

    fn node_of(&self, key: TermId) -> NodeId {
        match is_of_graph(key) {
            true => self.member.map.node_of(key),
            false => self.member.here(),
        }
    }

    fn settings(&self) -> ForkSettings {
        let mut settings = self.member.options.settings;
        if self.stays {
            settings.policy = ForkPolicy::InPlace;
        }
        settings
    }

    fn message_cost(&self) -> MessageCost {
        self.seen.views.message_cost
    }

    fn send(&self, to: NodeId, sub_query: SubQuery) {
        let member = &self.member;
        let lost = || ExecError::NodeLost { node: to };
        let Some(link) = member.link_of_rows(to) else {
            return sub_query.fail(lost());
        };
        if !link.mail.wait_for_room(|| sub_query.is_over()) && !sub_query.is_over() {
            return sub_query.fail(lost());
        }
        if let Some(message) = member.forks.encode(sub_query)
            && !link.mail.send(user::of_sub_query(message))
        {
            member.forks.lost(to);
        }
    }

    fn resume(&self, class: QueryClass, job: Box<dyn FnOnce() + Send>) {
        self.member.workers.spawn(class, job);
    }
}
