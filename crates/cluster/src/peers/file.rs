//! Which list of peers does a file say, and which line of it is wrong?

use std::collections::HashMap;
use std::hash::Hash;
use std::path::PathBuf;

use jindou_partition::{ShardMap, Shards};
use serde::Deserialize;
use toml::Spanned;

use super::address::Endpoint;
use super::error::line_of;
use super::{MOST_NODES, Peer, PeerList, PeersError, Stage, WrongPeers, is_name, is_url};
use jindou_model::printable;

/// Shards, unless the file says how many.
const DEFAULT_SHARDS: u32 = 64;

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct FileTable {
    shards: Option<Spanned<u32>>,
    secret_file: Option<Spanned<PathBuf>>,
    #[serde(default)]
    node: Vec<NodeTable>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NodeTable {
    name: Spanned<String>,
    address: Spanned<String>,
    http: Option<Spanned<String>>,
}

/// The list of a text.
pub(super) fn parse(text: &str) -> Result<PeerList, PeersError> {
    let table: FileTable = toml::from_str(text).map_err(|error| PeersError::Syntax {
        line: line_of(text.as_bytes(), error.span().map_or(0, |span| span.start)),
        reason: printable(error.message()).into_owned(),
    })?;
    let check = Check {
        text,
        table: &table,
    };
    check.count()?;
    check.names()?;
    let endpoints = check.addresses()?;
    check.urls()?;
    check.secret(&endpoints)?;
    let map = check.map()?;
    let peer = |node: NodeTable| Peer {
        name: node.name.into_inner(),
        address: node.address.into_inner(),
        http: node.http.map(Spanned::into_inner),
        stage: Stage::Holds,
    };
    Ok(PeerList {
        peers: table.node.into_iter().map(peer).collect(),
        map,
        secret_file: table.secret_file.map(Spanned::into_inner),
        version: 0,
        cluster: String::new(),
    })
}

/// A file that is checked, a rule at a time.
struct Check<'t> {
    text: &'t str,
    table: &'t FileTable,
}

impl Check<'_> {
    fn line(&self, at: usize) -> usize {
        line_of(self.text.as_bytes(), at)
    }

    fn wrong(&self, at: usize, key: &'static str, reason: WrongPeers) -> PeersError {
        let line = self.line(at);
        PeersError::Wrong { line, key, reason }
    }

    fn count(&self) -> Result<(), PeersError> {
        let nodes = &self.table.node;
        if nodes.is_empty() {
            return Err(self.wrong(0, "node", WrongPeers::NoNodes));
        }
        let Some(node) = nodes.get(MOST_NODES) else {
            return Ok(());
        };
        let reason = WrongPeers::TooManyNodes(nodes.len());
        Err(self.wrong(node.name.span().start, "node", reason))
    }

    fn names(&self) -> Result<(), PeersError> {
        for name in self.table.node.iter().map(|node| &node.name) {
            if !is_name(name.get_ref()) {
                let reason = WrongPeers::Name(name.get_ref().clone());
                return Err(self.wrong(name.span().start, "name", reason));
            }
        }
        let names = self.table.node.iter();
        let names = names.map(|node| (node.name.get_ref(), node.name.span().start));
        let Some((name, at, first_at)) = repeated(names) else {
            return Ok(());
        };
        let reason = WrongPeers::DuplicateName {
            name: name.clone(),
            first_line: self.line(first_at),
        };
        Err(self.wrong(at, "name", reason))
    }

    /// The addresses of all nodes, which differ.
    fn addresses(&self) -> Result<Vec<Endpoint>, PeersError> {
        let addresses = || self.table.node.iter().map(|node| &node.address);
        let parsed = addresses().map(|address| {
            let wrong = || {
                let reason = WrongPeers::Address(address.get_ref().clone());
                self.wrong(address.span().start, "address", reason)
            };
            Endpoint::parse(address.get_ref()).ok_or_else(wrong)
        });
        let endpoints = parsed.collect::<Result<Vec<_>, _>>()?;
        let starts = addresses().map(|address| address.span().start);
        let Some((_, at, first_at)) = repeated(endpoints.iter().zip(starts)) else {
            return Ok(endpoints);
        };
        let address = addresses().find(|address| address.span().start == at);
        let reason = WrongPeers::DuplicateAddress {
            address: address.map_or_else(String::new, |address| address.get_ref().clone()),
            first_line: self.line(first_at),
        };
        Err(self.wrong(at, "address", reason))
    }

    fn urls(&self) -> Result<(), PeersError> {
        let urls = self.table.node.iter().filter_map(|node| node.http.as_ref());
        let Some(url) = { urls }.find(|url| !is_url(url.get_ref())) else {
            return Ok(());
        };
        let reason = WrongPeers::Http(url.get_ref().clone());
        Err(self.wrong(url.span().start, "http", reason))
    }

    fn secret(&self, endpoints: &[Endpoint]) -> Result<(), PeersError> {
        if let Some(path) = &self.table.secret_file {
            return match path.get_ref().as_os_str().is_empty() {
                true => Err(self.wrong(path.span().start, "secret-file", WrongPeers::NoPath)),
                false => Ok(()),
            };
        }
        let nodes = self.table.node.iter().zip(endpoints);
        let remote = { nodes }.find(|(_, endpoint)| !endpoint.is_loopback());
        match remote {
            Some((node, _)) if endpoints.len() > 1 => {
                let reason = WrongPeers::NoSecret(node.address.get_ref().clone());
                Err(self.wrong(node.address.span().start, "address", reason))
            }
            _ => Ok(()),
        }
    }

    fn map(&self) -> Result<ShardMap, PeersError> {
        let shards = self.table.shards.as_ref();
        let at = shards.map_or(0, |shards| shards.span().start);
        let wrong = |reason| self.wrong(at, "shards", reason);
        let shards = shards.map_or(DEFAULT_SHARDS, |shards| *shards.get_ref());
        let shards = Shards::new(shards).map_err(|error| wrong(WrongPeers::Shards(error)))?;
        let nodes = self.table.node.len() as u32;
        ShardMap::dealt(shards, nodes).map_err(|error| wrong(WrongPeers::Map(error)))
    }
}

/// The first value that was there before, its place and that of the other.
fn repeated<T: Eq + Hash>(
    values: impl IntoIterator<Item = (T, usize)>,
) -> Option<(T, usize, usize)> {
    let mut first_places = HashMap::new();
    for (value, at) in values {
        if let Some(first_at) = first_places.get(&value) {
            return Some((value, at, *first_at));
        }
        first_places.insert(value, at);
    }
    None
}
