//! Which nodes are in a cluster, and where? Those of a list that each of them is given, at the addresses that it
//! says.
//!
//! The list is a file in TOML, the same on every machine. The number of a node is its place in it.

mod address;
mod error;
mod file;
mod kept;

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use jindou_model::{NodeId, is_printable};
use jindou_partition::{ShardMap, Shards};
use ring::digest;
use serde::{Deserialize, Serialize};

use self::error::{KNOWN_NAMES, line_of};
pub use self::error::{PeersError, WrongPeers};
use crate::secret::{MOST_SECRET_BYTES, Secret};

/// The most nodes of a cluster.
pub const MOST_NODES: usize = 1024;
/// The most bytes of a list.
const MOST_FILE_BYTES: usize = 1 << 20;
/// The most bytes of a node's name.
const MOST_NAME_BYTES: usize = 128;

/// A node of a cluster, as all of them know it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Peer {
    /// Its name, of letters and digits of ASCII and of `.`, `_` and `-`; no other node has it.
    pub name: String,
    /// Where its fabric listens: `host:port`, with an IPv6 address in brackets. No other node has it.
    pub address: String,
    /// The base URL of its HTTP server, for people and proxies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http: Option<String>,
    /// What it does there.
    pub stage: Stage,
}

/// What a node does in its cluster. One of a file [holds](Stage::Holds) shards, and so do those of a [list that
/// changes](PeerList::kept) but while they come and go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stage {
    /// It has a copy of the store, or gets one, and holds no shards yet.
    Joins,
    /// It holds shards.
    #[default]
    Holds,
    /// It holds none any more, and follows the others until it ends.
    Leaves,
    /// It is no node any more. Its number and name stay its own.
    Gone,
}

/// The nodes of a cluster, by number, and how many shards they hold.
///
/// ```
/// use jindou_cluster::PeerList;
/// use jindou_model::NodeId;
///
/// let list = PeerList::parse(
///     r#"
///     shards = 16
///     [[node]]
///     name = "a"
///     address = "127.0.0.1:7900"
///     [[node]]
///     name = "b"
///     address = "127.0.0.1:7901"
///     http = "http://127.0.0.1:7878"
///     "#,
/// )?;
/// assert_eq!(list.node("b")?, NodeId(1));
/// assert_eq!(list.map().shards().count(), 16);
/// # Ok::<(), jindou_cluster::PeersError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerList {
    peers: Vec<Peer>,
    map: ShardMap,
    secret_file: Option<PathBuf>,
    /// 0 of a file, which stays as it is.
    version: u64,
    /// Of a list that changes: what the cluster is called.
    cluster: String,
}

impl PeerList {
    /// A list that changes, as it was when it had changed so often: those who keep it elsewhere say so of all nodes that
    /// there were ever, by number. A `cluster` of another name is another one.
    ///
    /// # Errors
    /// [`PeersError::Kept`] with what cannot be: no node that holds shards, more than `shards`, the name or the address
    /// of another one, or none.
    pub fn kept(
        cluster: &str,
        version: u64,
        shards: Shards,
        peers: Vec<Peer>,
    ) -> Result<Self, PeersError> {
        kept::check(&peers).map_err(PeersError::Kept)?;
        let numbered = (0..).map(NodeId).zip(&peers);
        let holders = numbered.filter(|(_, peer)| peer.stage == Stage::Holds);
        let holders: Vec<NodeId> = holders.map(|(node, _)| node).collect();
        let map = ShardMap::dealt_to(shards, peers.len() as u32, &holders);
        Ok(Self {
            map: map.map_err(|error| PeersError::Kept(WrongPeers::Map(error)))?,
            peers,
            secret_file: None,
            version,
            cluster: cluster.to_owned(),
        })
    }

    /// How often it had changed; 0 of one that does not change.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Whether a node is there to be met.
    pub(crate) fn is_met(&self, node: NodeId) -> bool {
        self.peer(node)
            .is_some_and(|peer| peer.stage != Stage::Gone)
    }

    /// The list of a text in TOML: `shards`, a power of two, 64 unless given; `secret-file`, without which nodes are
    /// reached over loopback only; and a `[[node]]` with `name`, `address` and perhaps `http` for each. Costs one pass
    /// over the text.
    ///
    /// # Errors
    /// [`PeersError::Syntax`] for what is no such file, and [`PeersError::Wrong`] for the first value that cannot be.
    pub fn parse(text: &str) -> Result<Self, PeersError> {
        file::parse(text)
    }

    /// The list in a file, and the secret in the file that it names: its bytes without one newline at the end. Neither
    /// is read beyond the bytes that it may have.
    ///
    /// # Errors
    /// [`PeersError::File`] for a file that cannot be read, [`PeersError::In`] with what [`PeerList::parse`] says, and
    /// [`PeersError::Secret`] for a secret that cannot be one.
    pub fn read(path: &Path) -> Result<(Self, Option<Secret>), PeersError> {
        let bytes = read_bounded(path, MOST_FILE_BYTES)?;
        let list = text_of(&bytes).and_then(Self::parse);
        let list = list.map_err(|error| PeersError::In {
            path: path.to_owned(),
            error: Box::new(error),
        })?;
        let secret = list.secret_file.as_deref();
        let secret = secret.map(|file| read_secret(&path.parent().unwrap_or(path).join(file)));
        let secret = secret.transpose()?;
        Ok((list, secret))
    }

    /// The nodes, by number.
    #[must_use]
    pub fn peers(&self) -> &[Peer] {
        &self.peers
    }

    /// One node, if the list has one of this number.
    #[must_use]
    pub fn peer(&self, node: NodeId) -> Option<&Peer> {
        self.peers.get(node.0 as usize)
    }

    /// The number of the node of a name.
    ///
    /// # Errors
    /// [`PeersError::UnknownNode`], which says which names there are.
    pub fn node(&self, name: &str) -> Result<NodeId, PeersError> {
        let place = self.peers.iter().position(|peer| peer.name == name);
        let unknown = || {
            let names = self.peers.iter().map(|peer| peer.name.clone());
            PeersError::UnknownNode {
                name: name.to_owned(),
                known: names.take(KNOWN_NAMES).collect(),
                more: self.peers.len().saturating_sub(KNOWN_NAMES),
            }
        };
        place.map(|place| NodeId(place as u32)).ok_or_else(unknown)
    }

    /// Which node holds which shard.
    #[must_use]
    pub fn map(&self) -> &ShardMap {
        &self.map
    }

    /// The shards that there are.
    #[must_use]
    pub fn shards(&self) -> Shards {
        self.map.shards()
    }

    /// SHA-256 of all that nodes have to agree on: the number of shards, and names and addresses in their order; of a list
    /// that changes the name of the cluster, as its nodes hear of changes one after the other. URLs
    /// of HTTP servers are for others, and secrets are compared without being told.
    #[must_use]
    pub fn digest(&self) -> [u8; 32] {
        let mut context = digest::Context::new(&digest::SHA256);
        let texts: Vec<&String> = match self.version {
            0 => {
                context.update(b"jindou peers 1\0");
                let peers = self.peers.iter();
                peers.flat_map(|peer| [&peer.name, &peer.address]).collect()
            }
            _ => {
                context.update(b"jindou peers, which change 1\0");
                vec![&self.cluster]
            }
        };
        context.update(&(self.shards().count() as u64).to_le_bytes());
        if self.version == 0 {
            context.update(&(self.peers.len() as u64).to_le_bytes());
        }
        for text in texts {
            context.update(&(text.len() as u64).to_le_bytes());
            context.update(text.as_bytes());
        }
        let digest = context.finish();
        digest.as_ref().try_into().expect("SHA-256 has 32 bytes")
    }
}

/// True for what can be the name of a node.
pub(crate) fn is_name(name: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    (1..=MOST_NAME_BYTES).contains(&name.len()) && name.bytes().all(is_allowed)
}

/// True for what can be the URL of an HTTP server.
fn is_url(url: &str) -> bool {
    let rest = url
        .strip_prefix("http://")
        .or_else(|| url.strip_prefix("https://"));
    rest.is_some_and(|rest| !rest.is_empty() && is_printable(rest) && !rest.contains(' '))
}

fn text_of(bytes: &[u8]) -> Result<&str, PeersError> {
    std::str::from_utf8(bytes).map_err(|error| PeersError::Syntax {
        line: line_of(bytes, error.valid_up_to()),
        reason: "this is not UTF-8".to_owned(),
    })
}

/// The secret in a file: its bytes without one newline at the end.
///
/// # Errors
/// [`PeersError::File`] for a file that cannot be read, and [`PeersError::Secret`] for what cannot be a secret.
pub fn read_secret(path: &Path) -> Result<Secret, PeersError> {
    // With the newline that is not part of it.
    let bytes = read_bounded(path, MOST_SECRET_BYTES + 1)?;
    let bytes = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
    Secret::new(bytes).map_err(|source| PeersError::Secret {
        path: path.to_owned(),
        source,
    })
}

fn read_bounded(path: &Path, most_bytes: usize) -> Result<Vec<u8>, PeersError> {
    let read = || {
        let mut bytes = Vec::new();
        let file = File::open(path)?;
        file.take(most_bytes as u64 + 1).read_to_end(&mut bytes)?;
        match bytes.len() <= most_bytes {
            true => Ok(bytes),
            false => Err(std::io::Error::other(format!(
                "more than {most_bytes} bytes, the most that it may have"
            ))),
        }
    };
    read().map_err(|source| PeersError::File {
        path: path.to_owned(),
        source,
    })
}

#[cfg(test)]
mod tests;
