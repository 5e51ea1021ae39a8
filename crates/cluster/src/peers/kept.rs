//! What can be the nodes of a list that changes, which is kept elsewhere than in a file?

use std::collections::HashSet;

use super::address::Endpoint;
use super::{MOST_NODES, Peer, PeerList, Stage, WrongPeers, is_name, is_url};

/// Refuses the first node that cannot be one beside those before.
pub(super) fn check(peers: &[Peer]) -> Result<(), WrongPeers> {
    if peers.len() > MOST_NODES {
        return Err(WrongPeers::TooManyNodes(peers.len()));
    }
    let (mut names, mut addresses) = (HashSet::new(), HashSet::new());
    for peer in peers {
        if !is_name(&peer.name) {
            return Err(WrongPeers::Name(peer.name.clone()));
        }
        if !names.insert(&peer.name) {
            return Err(WrongPeers::SameName(peer.name.clone()));
        }
        let endpoint = Endpoint::parse(&peer.address);
        let endpoint = endpoint.ok_or_else(|| WrongPeers::Address(peer.address.clone()))?;
        if peer.stage != Stage::Gone && !addresses.insert(endpoint) {
            return Err(WrongPeers::SameAddress(peer.address.clone()));
        }
        if let Some(url) = peer.http.as_ref().filter(|url| !is_url(url)) {
            return Err(WrongPeers::Http(url.clone()));
        }
    }
    Ok(())
}

impl PeerList {
    /// The address of a node that others reach over a network, where anybody could be one without a secret.
    #[must_use]
    pub fn remote_address(&self) -> Option<&str> {
        let there = self.peers.iter().filter(|peer| peer.stage != Stage::Gone);
        let addresses = there.map(|peer| peer.address.as_str());
        let is_remote = |address: &&str| {
            let endpoint = Endpoint::parse(address);
            endpoint.is_none_or(|endpoint| !endpoint.is_loopback())
        };
        { addresses }.find(is_remote)
    }
}
