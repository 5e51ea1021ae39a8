//! How does a server become one node of a cluster, and what does it say of the others? It checks what it was
//! asked for before the store is opened, joins, and then says who is missing, and whenever all are there.

use std::path::Path;
use std::thread;
use std::time::Duration;

use anyhow::{Context, bail};
use jindou_engine::{ClusterOptions, Database, PeerList, Presence};

use crate::cluster_args::ClusterArguments;
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
        Ok(Some(Self {
            name: name.clone(),
            options: ClusterOptions {
                peers,
                secret,
                node,
                maps_memory: !arguments.no_shared_memory,
                listener: None,
            },
        }))
    }

    /// Makes a database this node, and says so.
    ///
    /// # Errors
    /// An address that cannot be had, and what the operating system refuses.
    pub(crate) fn join(self, database: &Database) -> anyhow::Result<()> {
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
        let database = database.clone();
        let watch = move || tell_who_is_there(&database, &self.name, nodes);
        let thread = thread::Builder::new().name("tell of nodes".to_owned());
        thread.spawn(watch).context("cannot start a thread")?;
        Ok(())
    }
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
