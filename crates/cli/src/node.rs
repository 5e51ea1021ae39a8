//! How does a server become one node of a cluster, and what does it say of the others? It checks what it was
//! asked for before the store is opened, joins, and then says who is missing, and whenever all are there.

use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use anyhow::{Context, bail};
use jindou_engine::{Anew, ClusterOptions, Database, FetchOptions, Keeper, PeerList, Presence};
use jindou_etcd::{Identity, TlsFiles};
use tokio::sync::oneshot;

use crate::cluster_args::ClusterArguments;
use crate::copying;
use crate::etcd_keeper::EtcdKeeper;
use jindou_engine::printable;

/// Who is not there by then is named.
const PATIENCE: Duration = Duration::from_secs(2);
/// Where nothing ends a wait sooner, it begins again.
const LONG: Duration = Duration::from_secs(3600);

/// The node that a server is to be.
pub(crate) struct Node {
    name: String,
    options: ClusterOptions,
}

impl Node {
    /// What the options ask for; none where they ask for no node.
    ///
    /// # Errors
    /// A file that is no list of nodes, a name that is not in it, and a server that cannot be one.
    pub(crate) fn of(
        arguments: &ClusterArguments,
        location: Option<&Path>,
        has_files: bool,
    ) -> anyhow::Result<Option<Self>> {
        let Some((file, name)) = arguments.peers.as_ref().zip(arguments.node.as_ref()) else {
            return Ok(None);
        };
        if location.is_none() {
            bail!(
                "--peers: the nodes of a cluster serve copies of one store; give its folder with --location DIR"
            );
        }
        if has_files {
            bail!(
                "--peers: all nodes have copies of one store; load files with `jindou load --location DIR \
                 FILE...` first, and copy the store, or send them to a node that runs"
            );
        }
        let (peers, secret) = PeerList::read(file).context("--peers")?;
        let node = peers.node(name).context("--node")?;
        let keeper = keeper(arguments, &peers)?;
        // One whose place another node may take would answer from what was before that.
        let max_staleness = keeper
            .as_ref()
            .map(|_| arguments.max_staleness.unwrap_or_default());
        Ok(Some(Self {
            name: name.clone(),
            options: ClusterOptions {
                peers,
                secret,
                node,
                maps_memory: !arguments.no_shared_memory,
                listener: None,
                keeper,
                max_staleness,
            },
        }))
    }

    /// Copies the store of the node that leads to where this node's is to be, if nothing is there or it is asked for.
    ///
    /// # Errors
    /// Where there is nobody to copy from, and what the place does not take.
    pub(crate) fn copy_if_needed(&self, location: &Path, is_asked: bool) -> anyhow::Result<()> {
        if !is_asked && !copying::is_empty(location)? {
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
    pub(crate) fn join(self, database: &Database) -> anyhow::Result<BeginAnew> {
        let map = self.options.peers.map();
        let own = |shard: &_| map.holder(*shard) == self.options.node;
        let shards = map.shards().all().filter(own).count();
        let peer = self.options.peers.peer(self.options.node);
        let address = peer.map(|peer| peer.address.clone()).unwrap_or_default();
        let (nodes, all) = (self.options.peers.peers().len(), map.shards().count());
        database.join(self.options)?;
        note!(
            "node {} of {nodes}, with {shards} of {all} shards; meets the others at {address}",
            self.name
        );
        let anew = BeginAnew::watch(database)?;
        let database = database.clone();
        let watch = move || tell_who_is_there(&database, &self.name, nodes);
        let thread = thread::Builder::new().name("tell of nodes".to_owned());
        thread.spawn(watch).context("cannot start a thread")?;
        Ok(anew)
    }
}

/// Who keeps which node leads, if it is said.
fn keeper(
    arguments: &ClusterArguments,
    peers: &PeerList,
) -> anyhow::Result<Option<Arc<dyn Keeper>>> {
    let Some(endpoints) = &arguments.cluster else {
        return Ok(None);
    };
    let certificate = arguments.etcd_certificate.clone();
    let identity = certificate.zip(arguments.etcd_key.clone());
    let identity = identity.map(|(certificate, key)| Identity { certificate, key });
    let options = jindou_etcd::Options {
        tls: (arguments.etcd_ca.clone()).map(|ca| TlsFiles { ca, identity }),
        ..jindou_etcd::Options::new(endpoints.clone())
    };
    let keeper = EtcdKeeper::new(options, &arguments.cluster_name, peers).context("--cluster")?;
    Ok(Some(Arc::new(keeper)))
}

/// Tells a server that its store is to be opened anew, and why.
pub(crate) struct BeginAnew(Option<oneshot::Receiver<Anew>>);

impl BeginAnew {
    /// It is never told so.
    pub(crate) fn never() -> Self {
        Self(None)
    }

    fn watch(database: &Database) -> anyhow::Result<Self> {
        let (send, receive) = oneshot::channel();
        let database = database.clone();
        let thread = thread::Builder::new().name("begin anew".to_owned());
        let watch = move || {
            let anew = loop {
                if let Some(anew) = database.wait_to_begin_anew(LONG) {
                    break anew;
                }
            };
            // Nobody waits for it where the server has ended.
            let _ended = send.send(anew);
        };
        thread.spawn(watch).context("cannot start a thread")?;
        Ok(Self(Some(receive)))
    }

    /// Done when it is told so.
    pub(crate) async fn wait(self) -> Anew {
        let told = match self.0 {
            Some(told) => told.await.ok(),
            None => None,
        };
        match told {
            Some(anew) => anew,
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
            note!("starting anew, as another node leads; the line before says what for")
        }
        Anew::Copied => note!("starting anew, with a copy of the store of the node that leads"),
    }
    let program = match std::env::current_exe() {
        Ok(program) => program,
        Err(error) => return anyhow::Error::new(error).context("cannot find this program"),
    };
    let given = std::env::args_os().skip(1);
    let error = Command::new(program)
        .args(given.filter(|argument| argument != COPY_ANEW))
        .args((anew == Anew::Copied).then_some(COPY_ANEW))
        // It was asked for once.
        .env_remove("JINDOU_COPY_ANEW")
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
fn tell_who_is_there(database: &Database, name: &str, nodes: usize) {
    loop {
        if !database.wait_for_cluster(PATIENCE) {
            note!("{}{}", waiting(name), missing(database));
            while !database.wait_for_cluster(LONG) {}
        }
        note!("{}", all_there(nodes));
        while !database.wait_for_lost_node(LONG) {}
    }
}

/// The nodes that are away, each with the reason.
fn missing(database: &Database) -> String {
    let nodes = database.cluster().unwrap_or_default();
    let away = nodes.iter().filter_map(|node| match &node.presence {
        Presence::Away(reason) => Some(format!("{} ({})", node.name, printable(reason))),
        Presence::Here | Presence::Mapped | Presence::ByTcp => None,
    });
    away.collect::<Vec<_>>().join(", ")
}
