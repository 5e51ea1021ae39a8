//! `jindou cluster add` and `drain`: which nodes does the list in etcd have?

use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use jindou_engine::{Peer, PeerList, Stage};
use jindou_etcd::Endpoints;

use crate::cluster_args::{AddArguments, DrainArguments, EtcdArguments};
use crate::node_list::NodeList;

/// How often it is asked whether a node has left.
const LOOK_EVERY: Duration = Duration::from_millis(200);

const NO_LIST: &str = "etcd has no list of nodes of this cluster: the first `jindou serve --cluster URL --node NAME --advertise \
     HOST:PORT` begins it";

fn list(etcd: &EtcdArguments, endpoints: &Endpoints) -> anyhow::Result<NodeList> {
    NodeList::new(etcd.options(endpoints), &etcd.cluster_name).context("--cluster")
}

/// # Errors
/// An etcd that does not answer, a node that is there already, or is new and has no address.
pub(crate) fn add(arguments: &AddArguments) -> anyhow::Result<()> {
    let list = list(&arguments.etcd, &arguments.cluster)?;
    let name = &arguments.name;
    list.change(|kept| {
        let mut kept = kept.context(NO_LIST)?;
        let address = arguments.advertise.clone();
        match kept.node_mut(name) {
            Some(known) if known.stage == Stage::Gone => {
                known.stage = Stage::Joins;
                known.address = address.unwrap_or_else(|| known.address.clone());
            }
            Some(known) => bail!("node {name} is in the cluster: it {}", does(known.stage)),
            None => {
                let address = address.with_context(|| {
                    format!(
                        "node {name} is new: say where it is reached with --advertise HOST:PORT"
                    )
                })?;
                kept.nodes.push(Peer {
                    name: name.clone(),
                    address,
                    http: None,
                    stage: Stage::Joins,
                });
            }
        }
        Ok(Some(kept))
    })?;
    note!(
        "node {name} may join: start it with `jindou serve --node {name} --cluster URL --advertise HOST:PORT --location DIR`"
    );
    Ok(())
}

/// # Errors
/// An etcd that does not answer, the only node that holds shards, and one that does not leave in time.
pub(crate) fn drain(arguments: &DrainArguments) -> anyhow::Result<()> {
    let list = list(&arguments.etcd, &arguments.cluster)?;
    let name = &arguments.name;
    let peers = list.read()?.context(NO_LIST)?;
    let stage = stage(&peers, name)?;
    let holders = peers.peers().iter();
    let holders = holders.filter(|peer| peer.stage == Stage::Holds);
    let is_last = stage == Stage::Holds && holders.count() == 1;
    if arguments.dead && is_last && !list.was_led()? {
        list.forget()?;
        note!("the list of nodes is forgotten: node {name} never had a store of the cluster");
        return Ok(());
    }
    if is_last {
        bail!("node {name} is the only one that holds shards: add another one first");
    }
    if arguments.dead {
        return take_out(&list, &peers, name);
    }
    list.set_stage(name, |did| did != Stage::Gone, Stage::Leaves)?;
    wait_until_gone(&list, arguments)?;
    note!("node {name} has left the cluster");
    Ok(())
}

/// Takes a node out that is not there any more.
fn take_out(list: &NodeList, peers: &PeerList, name: &str) -> anyhow::Result<()> {
    let is_there = |other: &String| {
        let stage = stage(peers, other).unwrap_or(Stage::Gone);
        other != name && stage != Stage::Gone
    };
    let in_sync = list.in_sync()?;
    if in_sync.iter().any(|node| node == name) && !in_sync.iter().any(is_there) {
        bail!(
            "node {name} is the only one left that is known to have all that clients were told of: start it again, and drain it"
        );
    }
    list.set_stage(name, |_| true, Stage::Gone)?;
    note!("node {name} is no node of the cluster any more");
    Ok(())
}

fn wait_until_gone(list: &NodeList, arguments: &DrainArguments) -> anyhow::Result<()> {
    let name = &arguments.name;
    let begun = Instant::now();
    let mut is_told = false;
    while stage(&list.read()?.context(NO_LIST)?, name)? != Stage::Gone {
        if begun.elapsed() > arguments.timeout {
            bail!(
                "node {name} has not left after {} s: it does once it runs and another node is in sync; `jindou cluster drain {name} \
                 --dead` takes out one that is not there any more",
                arguments.timeout.as_secs()
            );
        }
        if begun.elapsed() > Duration::from_secs(2) && !is_told {
            note!(
                "node {name} holds no shards any more; waiting until another one has all that clients were told of"
            );
            is_told = true;
        }
        std::thread::sleep(LOOK_EVERY);
    }
    Ok(())
}

fn stage(peers: &PeerList, name: &str) -> anyhow::Result<Stage> {
    let node = peers.node(name)?;
    Ok(peers.peer(node).map_or(Stage::Gone, |peer| peer.stage))
}

fn does(stage: Stage) -> &'static str {
    match stage {
        Stage::Joins => "joins, and holds shards once it has a copy of the store and follows",
        Stage::Holds => "holds shards",
        Stage::Leaves => "leaves just now",
        Stage::Gone => "has left",
    }
}
