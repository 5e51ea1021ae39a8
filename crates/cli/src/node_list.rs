//! How does etcd keep which nodes a cluster has, where no file says so?
//!
//! As the value of one key, `/jindou/NAME/nodes`, in JSON: all nodes that there were ever, by number, and what each does. It is
//! replaced by compare and swap of its revision; each change makes its version one greater.

use std::time::Duration;

use anyhow::{Context, bail};
use jindou_engine::{Peer, PeerList, Shards, Stage};
use jindou_etcd::{Client, Error, Expected, Options, Revision, Swap, Value};
use serde::{Deserialize, Serialize};

/// Shards of a cluster that begins so where nobody says how many: no more nodes can hold any.
const SHARDS: u32 = 64;
/// How long it takes until a change that may have been made is looked for.
const AGAIN: Duration = Duration::from_millis(200);

/// The list as it is kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct KeptList {
    version: u64,
    shards: u32,
    pub(crate) nodes: Vec<Peer>,
}

impl KeptList {
    /// That of a cluster which begins with one node.
    pub(crate) fn first(node: Peer, shards: Option<Shards>) -> Self {
        Self {
            version: 0,
            shards: shards.map_or(SHARDS, |shards| shards.count() as u32),
            nodes: vec![node],
        }
    }

    /// That it has as many shards as are asked for.
    ///
    /// # Errors
    /// That it has others.
    pub(crate) fn check_shards(&self, asked: Option<Shards>) -> anyhow::Result<()> {
        match asked.map(|asked| asked.count() as u32) {
            Some(asked) if asked != self.shards => bail!(
                "--shards: the cluster has {}, as its first node said",
                self.shards
            ),
            _ => Ok(()),
        }
    }

    pub(crate) fn node_mut(&mut self, name: &str) -> Option<&mut Peer> {
        self.nodes.iter_mut().find(|node| node.name == name)
    }

    /// The list that nodes go by.
    fn peers(self, cluster: &str) -> anyhow::Result<PeerList> {
        let shards = Shards::new(self.shards)?;
        Ok(PeerList::kept(cluster, self.version, shards, self.nodes)?)
    }
}

/// What is kept of who leads, as far as it is asked here.
#[derive(Deserialize)]
struct InSync {
    in_sync: Vec<String>,
}

/// Where the list is kept.
#[derive(Clone)]
pub(crate) struct NodeList {
    client: Client,
    cluster: String,
}

impl NodeList {
    /// That of a cluster of this name. Connects to nothing.
    ///
    /// # Errors
    /// Files of certificates that cannot be read.
    pub(crate) fn new(options: Options, cluster: &str) -> Result<Self, Error> {
        Ok(Self {
            client: Client::new(options)?,
            cluster: cluster.to_owned(),
        })
    }

    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    /// What the keys of the cluster begin with.
    pub(crate) fn prefix(&self) -> String {
        format!("/jindou/{}/", self.cluster)
    }

    pub(crate) fn key(&self) -> String {
        format!("{}nodes", self.prefix())
    }

    /// The list that a value has.
    ///
    /// # Errors
    /// What is no such list.
    pub(crate) fn read_value(&self, bytes: &[u8]) -> anyhow::Result<PeerList> {
        parse(bytes)?.peers(&self.cluster)
    }

    /// Whether it has been kept which node leads: some node had a store.
    ///
    /// # Errors
    /// An etcd that does not answer.
    pub(crate) fn was_led(&self) -> anyhow::Result<bool> {
        let copies = format!("{}copies", self.prefix());
        Ok(self.client.get(copies.as_bytes())?.is_some())
    }

    /// The nodes in sync, as far as is kept.
    ///
    /// # Errors
    /// An etcd that does not answer.
    pub(crate) fn in_sync(&self) -> anyhow::Result<Vec<String>> {
        let copies = format!("{}copies", self.prefix());
        let Some(value) = self.client.get(copies.as_bytes())? else {
            return Ok(Vec::new());
        };
        let kept: InSync = serde_json::from_slice(&value.bytes)
            .context("etcd has something else where it is to be which nodes are in sync")?;
        Ok(kept.in_sync)
    }

    /// The list, if there is one.
    ///
    /// # Errors
    /// An etcd that does not answer, and what is no list.
    pub(crate) fn read(&self) -> anyhow::Result<Option<PeerList>> {
        match self.client.get(self.key().as_bytes())? {
            Some(value) => self.read_value(&value.bytes).map(Some),
            None => Ok(None),
        }
    }

    /// Replaces the list by what `change` makes of it, none where it is right as it is, and returns what is kept then. It is
    /// called again where somebody else was faster, or it is not known what came of it.
    ///
    /// # Errors
    /// What `change` refuses, a list that cannot be, and an etcd that does not answer.
    pub(crate) fn change(
        &self,
        change: impl Fn(Option<KeptList>) -> anyhow::Result<Option<KeptList>>,
    ) -> anyhow::Result<PeerList> {
        let key = self.key();
        loop {
            let found: Option<Value> = self.client.get(key.as_bytes())?;
            let revision = found.as_ref().map(|value| value.revision);
            let kept = found.map(|value| parse(&value.bytes)).transpose()?;
            let Some(mut next) = change(kept.clone())? else {
                let kept = kept.context("etcd has no list of the cluster's nodes")?;
                return kept.peers(&self.cluster);
            };
            next.version = kept.map_or(0, |kept| kept.version) + 1;
            let bytes = serde_json::to_vec(&next).context("the list of nodes")?;
            let peers = next.peers(&self.cluster)?;
            let before = revision.map_or(Expected::Absent, |Revision(number)| {
                Expected::Revision(Revision(number))
            });
            match self.client.put_if(key.as_bytes(), before, &bytes) {
                Ok(Swap::Won(_)) => return Ok(peers),
                Ok(Swap::Lost(_)) => {}
                Err(Error::Unknown { .. }) => std::thread::sleep(AGAIN),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Has a node do something else from now on, if it does what it `did`: what somebody else has changed meanwhile stays.
    ///
    /// # Errors
    /// As [`NodeList::change`]; a node that the list lacks.
    pub(crate) fn set_stage(
        &self,
        name: &str,
        did: impl Fn(Stage) -> bool,
        stage: Stage,
    ) -> anyhow::Result<PeerList> {
        self.change(|kept| {
            let mut kept = kept.context("etcd has no list of the cluster's nodes")?;
            let known: Vec<String> = kept.nodes.iter().map(|node| node.name.clone()).collect();
            let Some(node) = kept.node_mut(name) else {
                bail!("no node is named {name}: there are {}", known.join(", "));
            };
            if node.stage == stage || !did(node.stage) {
                return Ok(None);
            }
            node.stage = stage;
            Ok(Some(kept))
        })
    }

    /// Forgets the list of a cluster that never had a store, if it still is this one.
    ///
    /// # Errors
    /// An etcd that does not answer.
    pub(crate) fn forget(&self) -> anyhow::Result<()> {
        let key = self.key();
        if let Some(value) = self.client.get(key.as_bytes())? {
            let expected = Expected::Revision(value.revision);
            if let Swap::Lost(_) = self.client.delete_if(key.as_bytes(), expected)? {
                bail!("the list of nodes has changed meanwhile; try again");
            }
        }
        Ok(())
    }
}

fn parse(bytes: &[u8]) -> anyhow::Result<KeptList> {
    let kept = serde_json::from_slice(bytes);
    kept.context("etcd has something else where the list of the cluster's nodes is to be")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_what_nodes_read_of_it() {
        let node = |name: &str, port: u16, stage| Peer {
            name: name.to_owned(),
            address: format!("127.0.0.1:{port}"),
            http: None,
            stage,
        };
        let mut list = KeptList::first(node("a", 1, Stage::Holds), None);
        let sixteen = Shards::new(16).ok();
        assert!(list.check_shards(None).is_ok() && list.check_shards(sixteen).is_err());
        assert!(
            KeptList::first(node("a", 1, Stage::Holds), sixteen)
                .check_shards(sixteen)
                .is_ok()
        );
        list.version = 1;
        list.nodes.push(node("b", 2, Stage::Joins));
        let bytes = serde_json::to_vec(&list).unwrap();
        let text = String::from_utf8(bytes.clone()).unwrap();
        assert_eq!(
            text,
            r#"{"version":1,"shards":64,"nodes":[{"name":"a","address":"127.0.0.1:1","stage":"holds"},{"name":"b","address":"127.0.0.1:2","stage":"joins"}]}"#
        );
        let options = Options::new("http://127.0.0.1:2379".parse().unwrap());
        let kept = NodeList::new(options, "x").unwrap();
        let peers = kept.read_value(&bytes).unwrap();
        assert_eq!((peers.version(), peers.peers()), (1, &list.nodes[..]));
        assert_eq!(peers.map().holding(), 1);
        assert!(kept.read_value(b"{}").is_err());
        let none_holds = text.replace("holds", "gone");
        assert!(kept.read_value(none_holds.as_bytes()).is_err());
    }
}
