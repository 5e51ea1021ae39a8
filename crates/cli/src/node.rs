//! How does a server become one node of a cluster, and what does it say of the others? It checks what it was
//! asked for before the store is opened, joins, and then says who is missing, and whenever all are there.

use std::net::{TcpListener, TcpStream, ToSocketAddrs as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use anyhow::{Context, bail};
use jindou_engine::{
    Anew, ClusterOptions, Database, FetchOptions, Keeper, NodeId, Peer, PeerList, Presence, Secret,
    Shards, Stage, read_secret,
};
use tokio::sync::oneshot;

use crate::cluster_args::ClusterArguments;
use crate::copying;
use crate::etcd_keeper::EtcdKeeper;
use crate::node_list::{KeptList, NodeList};
use jindou_engine::printable;

pub(crate) mod relisting;

/// Who is not there by then is named.
const PATIENCE: Duration = Duration::from_secs(2);
/// Set in the environment of a process that took the place of one before it.
const GOES_ON: &str = "_JINDOU_NODE_GOES_ON";
/// Where nothing ends a wait sooner, it begins again.
const LONG: Duration = Duration::from_secs(3600);

/// The node that a server is to be.
pub(crate) struct Node {
    name: String,
    options: ClusterOptions,
    /// Where etcd keeps the list of nodes, with what changes of it.
    listed: Option<Listed>,
}

/// A list of nodes that etcd keeps.
struct Listed {
    list: NodeList,
    changes: Receiver<PeerList>,
    /// It begins with the store that it has, or an empty one: there is no other node to copy one of.
    is_first: bool,
}

impl Node {
    /// What the options ask for; none where they ask for no node.
    ///
    /// # Errors
    /// A file that is no list of nodes, a name that is not in it, an etcd that keeps the list and does not answer, and a
    /// server that cannot be a node.
    pub(crate) fn of(
        arguments: &ClusterArguments,
        location: Option<&Path>,
        has_files: bool,
    ) -> anyhow::Result<Option<Self>> {
        let Some(name) = &arguments.node else {
            return Ok(None);
        };
        let Some(location) = location else {
            bail!(
                "--node: the nodes of a cluster serve copies of one store; give its folder with --location DIR"
            );
        };
        if has_files {
            bail!(
                "--node: all nodes have copies of one store; load files with `jindou load --location DIR \
                 FILE...` first, and copy the store, or send them to a node that runs"
            );
        }
        match (&arguments.peers, &arguments.cluster, &arguments.advertise) {
            (Some(file), ..) => Self::of_file(arguments, file, name).map(Some),
            (None, Some(endpoints), Some(address)) => {
                let etcd = arguments.etcd.options(endpoints);
                let list =
                    NodeList::new(etcd, &arguments.etcd.cluster_name).context("--cluster")?;
                let own = Peer {
                    name: name.clone(),
                    address: address.clone(),
                    http: arguments.advertise_http.clone(),
                    stage: Stage::Joins,
                };
                Self::of_list(arguments, list, own, location).map(Some)
            }
            (None, Some(_), None) => bail!(
                "--cluster: say where the other nodes reach this one with --advertise HOST:PORT, or give the list of all with \
                 --peers FILE"
            ),
            (None, None, _) => bail!(
                "--node: give the list of nodes with --peers FILE, or the etcd that keeps it with --cluster URL"
            ),
        }
    }

    fn of_file(arguments: &ClusterArguments, file: &Path, name: &str) -> anyhow::Result<Self> {
        let (peers, secret) = PeerList::read(file).context("--peers")?;
        let node = peers.node(name).context("--node")?;
        let keeper = match &arguments.cluster {
            Some(endpoints) => {
                let etcd = arguments.etcd.options(endpoints);
                let keeper = EtcdKeeper::new(etcd, &arguments.etcd.cluster_name, &peers);
                Some(Arc::new(keeper.context("--cluster")?) as Arc<dyn Keeper>)
            }
            None => None,
        };
        Ok(Self {
            name: name.to_owned(),
            options: options(arguments, (peers, node), secret, keeper),
            listed: None,
        })
    }

    /// The node of a list that etcd keeps, to which it is added.
    fn of_list(
        arguments: &ClusterArguments,
        list: NodeList,
        own: Peer,
        location: &Path,
    ) -> anyhow::Result<Self> {
        let secret = arguments.cluster_secret.as_deref().map(read_secret);
        let secret = secret.transpose().context("--cluster-secret")?;
        if secret.is_none() && is_remote(&own)? {
            bail!(
                "--cluster-secret: a secret is needed where nodes are reached over a network, as at {}",
                own.address
            );
        }
        let name = own.name.clone();
        // What cannot be a node changes no list.
        let listener = TcpListener::bind(&own.address).with_context(|| {
            format!(
                "--advertise: cannot listen at {}, which is to be an address of this machine that no other program has",
                own.address
            )
        })?;
        let (peers, was_led) = while_etcd_is_away(|| {
            check_it_does_not_run(&list, &own)?;
            let peers = enrol(&list, &own, arguments.shards).context("--cluster")?;
            Ok((peers, list.was_led().context("--cluster")?))
        })?;
        let node = peers.node(&name).context("--node")?;
        let others = || peers.peers().iter().filter(|peer| peer.name != name);
        let is_alone = others().all(|peer| peer.stage == Stage::Gone);
        if is_alone && was_led && copying::is_empty(location)? {
            bail!(
                "{}: there is no store, and node {name} is the only one that is to have it; give the folder of its store with \
                 --location DIR",
                location.display()
            );
        }
        // It began the list and ended before it had a store; the others wait to copy that store.
        let has_begun = peers
            .peer(node)
            .is_some_and(|own| own.stage == Stage::Holds)
            && others().all(|peer| matches!(peer.stage, Stage::Joins | Stage::Gone));
        let is_first = is_alone || (has_begun && !was_led);
        let (keeper, changes) = EtcdKeeper::of_list(list.clone(), &peers, &name);
        Ok(Self {
            name,
            options: ClusterOptions {
                listener: Some(listener),
                ..options(arguments, (peers, node), secret, Some(Arc::new(keeper)))
            },
            listed: Some(Listed {
                list,
                changes,
                is_first,
            }),
        })
    }

    /// What is to be done when it has left its cluster, and the server has ended.
    pub(crate) fn on_leaving(&self) -> Option<impl FnOnce() -> anyhow::Result<()> + use<>> {
        let listed = self.listed.as_ref()?;
        let (list, name) = (listed.list.clone(), self.name.clone());
        Some(move || relisting::leave(&list, &name))
    }

    /// Whether it may begin with a store that has nothing: it is the first node of its cluster.
    pub(crate) fn makes_store(&self) -> bool {
        self.listed.as_ref().is_some_and(|listed| listed.is_first)
    }

    /// Copies the store of the node that leads to where this node's is to be, if nothing is there or it is asked for.
    ///
    /// # Errors
    /// Where there is nobody to copy from, and what the place does not take.
    pub(crate) fn copy_if_needed(&self, location: &Path, is_asked: bool) -> anyhow::Result<()> {
        if !is_asked && (self.makes_store() || !copying::is_empty(location)?) {
            return Ok(());
        }
        let options = FetchOptions {
            peers: &self.options.peers,
            secret: self.options.secret.as_ref(),
            node: self.options.node,
        };
        if self.options.keeper.is_none() && self.options.node.0 == 0 {
            bail!(
                "{}: the first node of the list leads, and has nobody to copy the store of; make one there with \
                 `jindou load --location DIR FILE...`",
                location.display()
            );
        }
        copying::copy(&options, location)
    }

    /// Makes a database this node, and says so.
    ///
    /// # Errors
    /// An address that cannot be had, and what the operating system refuses.
    pub(crate) fn join(self, database: &Database) -> anyhow::Result<ToEnd> {
        let map = self.options.peers.map();
        let own = |shard: &_| map.holder(*shard) == self.options.node;
        let shards = map.shards().all().filter(own).count();
        let peer = self.options.peers.peer(self.options.node);
        let address = peer.map(|peer| peer.address.clone()).unwrap_or_default();
        let there = self.options.peers.peers().iter();
        let there = there.filter(|peer| peer.stage != Stage::Gone).count();
        let all = map.shards().count();
        let node = self.options.node;
        database.join(self.options)?;
        note!(
            "node {} of {there}, with {shards} of {all} shards; meets the others at {address}",
            self.name
        );
        let (send, to_end) = ToEnd::watch(database)?;
        let name = self.name.clone();
        if let Some(listed) = self.listed {
            let Listed { list, changes, .. } = listed;
            relisting::follow(list, changes, (node, name), (database, send))?;
        }
        let database = database.clone();
        let watch = move || tell_who_is_there(&database, &self.name);
        let thread = thread::Builder::new().name("tell of nodes".to_owned());
        thread.spawn(watch).context("cannot start a thread")?;
        Ok(to_end)
    }
}

/// Whether others reach a node over a network.
///
/// # Errors
/// What cannot be a node.
fn is_remote(own: &Peer) -> anyhow::Result<bool> {
    let alone = Peer {
        stage: Stage::Holds,
        ..own.clone()
    };
    let alone = PeerList::kept("", 1, Shards::ONE, vec![alone]).context("--node, --advertise")?;
    Ok(alone.remote_address().is_some())
}

/// Asks until etcd answers where this process goes on for one before it, which an etcd that is away did not end, either; once
/// where somebody starts it.
///
/// # Errors
/// Those of `ask`.
fn while_etcd_is_away<T>(mut ask: impl FnMut() -> anyhow::Result<T>) -> anyhow::Result<T> {
    let goes_on = std::env::var_os(GOES_ON).is_some();
    let is_away = |error: &anyhow::Error| {
        let error = error.downcast_ref::<jindou_etcd::Error>();
        error.is_some_and(|error| {
            matches!(
                error,
                jindou_etcd::Error::NoAnswer { .. } | jindou_etcd::Error::Unknown { .. }
            )
        })
    };
    let mut is_told = false;
    loop {
        match ask() {
            Err(error) if goes_on && is_away(&error) => {
                if !std::mem::replace(&mut is_told, true) {
                    note!("{error:#}; the node goes on when it does");
                }
                thread::sleep(PATIENCE);
            }
            answer => return answer,
        }
    }
}

/// That nobody answers where the list says that a node is, if that is elsewhere: a second process of its name would take its
/// place from it.
///
/// # Errors
/// That somebody does; an etcd that does not answer.
fn check_it_does_not_run(list: &NodeList, own: &Peer) -> anyhow::Result<()> {
    let Some(peers) = list.read().context("--cluster")? else {
        return Ok(());
    };
    let known = peers.node(&own.name).ok().and_then(|node| peers.peer(node));
    let Some(known) =
        known.filter(|known| known.stage != Stage::Gone && known.address != own.address)
    else {
        return Ok(());
    };
    let mut addresses = known.address.to_socket_addrs().into_iter().flatten();
    let answers = addresses.any(|address| TcpStream::connect_timeout(&address, PATIENCE).is_ok());
    match answers {
        true => bail!(
            "--node: node {} runs at {}; end it before it is started with another address",
            own.name,
            known.address
        ),
        false => Ok(()),
    }
}

/// Adds a node to the list that etcd keeps, which begins with it where there is none.
fn enrol(list: &NodeList, own: &Peer, shards: Option<Shards>) -> anyhow::Result<PeerList> {
    list.change(|kept| {
        let Some(mut kept) = kept else {
            let first = Peer {
                stage: Stage::Holds,
                ..own.clone()
            };
            return Ok(Some(KeptList::first(first, shards)));
        };
        kept.check_shards(shards)?;
        match kept.node_mut(&own.name) {
            None => kept.nodes.push(own.clone()),
            Some(known) if known.stage == Stage::Gone => bail!(
                "node {0} has left the cluster; `jindou cluster add {0}` lets it in again",
                own.name
            ),
            Some(known) if (&known.address, &known.http) == (&own.address, &own.http) => {
                return Ok(None);
            }
            Some(known) => {
                let stage = known.stage;
                *known = Peer {
                    stage,
                    ..own.clone()
                };
            }
        }
        Ok(Some(kept))
    })
}

fn options(
    arguments: &ClusterArguments,
    (peers, node): (PeerList, NodeId),
    secret: Option<Secret>,
    keeper: Option<Arc<dyn Keeper>>,
) -> ClusterOptions {
    ClusterOptions {
        peers,
        secret,
        node,
        maps_memory: !arguments.no_shared_memory,
        listener: None,
        // One whose place another node may take would answer from what was before that.
        max_staleness: (keeper.as_ref()).map(|_| arguments.max_staleness.unwrap_or_default()),
        keeper,
    }
}

/// Why a server is to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// Its store is to be opened anew.
    Anew(Anew),
    /// It is no node of its cluster any more.
    Left,
}

/// Ends a server; only the first reason counts.
#[derive(Clone)]
pub(crate) struct Ends(Arc<Mutex<Option<oneshot::Sender<End>>>>);

impl Ends {
    /// Ends it for this reason, unless it is ending for another one.
    pub(crate) fn tell(&self, end: End) {
        let send = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(send) = send {
            // Nobody waits for it where the server has ended.
            let _ended = send.send(end);
        }
    }
}

/// Tells a server that it is to end, and why.
pub(crate) struct ToEnd(Option<oneshot::Receiver<End>>);

impl ToEnd {
    /// It is never told so.
    pub(crate) fn never() -> Self {
        Self(None)
    }

    fn watch(database: &Database) -> anyhow::Result<(Ends, Self)> {
        let (send, receive) = oneshot::channel();
        let ends = Ends(Arc::new(Mutex::new(Some(send))));
        let (database, told) = (database.clone(), ends.clone());
        let thread = thread::Builder::new().name("begin anew".to_owned());
        let watch = move || {
            let anew = loop {
                if let Some(anew) = database.wait_to_begin_anew(LONG) {
                    break anew;
                }
            };
            told.tell(End::Anew(anew));
        };
        thread.spawn(watch).context("cannot start a thread")?;
        Ok((ends, Self(Some(receive))))
    }

    /// Done when it is told so.
    pub(crate) async fn wait(self) -> End {
        let told = match self.0 {
            Some(told) => told.await.ok(),
            None => None,
        };
        match told {
            Some(end) => end,
            None => std::future::pending().await,
        }
    }
}

/// The option by which a server copies the store of another node first.
const COPY_ANEW: &str = "--copy-anew";

/// Takes the place of this process, as it was started, but for what it does first.
///
/// # Errors
/// What the operating system says; otherwise it does not return.
pub(crate) fn start_anew(anew: Anew) -> anyhow::Error {
    match anew {
        Anew::Opened => {
            note!("starting anew; the line before says what for")
        }
        Anew::Copied => note!("starting anew, with a copy of the store of the node that leads"),
    }
    let program = match std::env::current_exe() {
        // Another version was installed in its place meanwhile: this process has its file all the same.
        Ok(program) if !program.exists() => PathBuf::from("/proc/self/exe"),
        Ok(program) => program,
        Err(error) => return anyhow::Error::new(error).context("cannot find this program"),
    };
    let given = std::env::args_os().skip(1);
    let error = Command::new(program)
        .args(given.filter(|argument| argument != COPY_ANEW))
        .args((anew == Anew::Copied).then_some(COPY_ANEW))
        // It was asked for once.
        .env_remove("JINDOU_COPY_ANEW")
        .env(GOES_ON, "1")
        .exec();
    anyhow::Error::new(error).context("cannot start anew")
}

/// What a node says when all are there.
pub(crate) fn all_there(nodes: usize) -> String {
    match nodes {
        1 => "the one node of the cluster is there".to_owned(),
        _ => format!("all {nodes} nodes of the cluster are there"),
    }
}

/// How what a node says begins while some are not.
pub(crate) fn waiting(name: &str) -> String {
    format!("node {name} waits for ")
}

/// Says who is missing, and whenever all are there, as long as the process runs. That a node is lost is a
/// warning of its own.
fn tell_who_is_there(database: &Database, name: &str) {
    let mut told = None;
    loop {
        let is_late = !database.wait_for_cluster(PATIENCE);
        if is_late {
            note!("{}{}", waiting(name), missing(database));
            while !database.wait_for_cluster(LONG) {}
        }
        let nodes = database.cluster().map_or(0, |nodes| nodes.len());
        if told.replace(nodes) != Some(nodes) || is_late {
            note!("{}", all_there(nodes));
        }
        while !database.wait_for_lost_node(LONG) {}
    }
}

/// The nodes that are away, each with the reason.
fn missing(database: &Database) -> String {
    let nodes = database.cluster().unwrap_or_default();
    let away = nodes.iter().filter_map(|node| match &node.presence {
        // Nothing is wrong with one that is there by another state of the list.
        Presence::Away(reason) if reason.is_empty() => Some(node.name.clone()),
        Presence::Away(reason) => Some(format!("{} ({})", node.name, printable(reason))),
        Presence::Here | Presence::Mapped | Presence::ByTcp => None,
    });
    away.collect::<Vec<_>>().join(", ")
}
