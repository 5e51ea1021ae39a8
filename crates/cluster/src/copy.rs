//! How does a node that has no copy of the store ask another one for it? By a connection of its own, on which both greet each
//! other as nodes do; what follows is its user's.

use std::io;
use std::net::TcpStream;
use std::time::Duration;

use jindou_model::NodeId;

use crate::connect::connect;
use crate::hello::{Facts, Handshake, HelloError, Role};
use crate::peers::PeerList;
use crate::secret::Secret;

/// A node that has no copy of the store.
#[derive(Clone, Copy, Debug)]
pub struct CopyRequest<'a> {
    /// Who is in the cluster.
    pub peers: &'a PeerList,
    /// What only nodes know.
    pub secret: Option<&'a Secret>,
    /// Which of them asks.
    pub here: NodeId,
    /// How long a connection may take, and then the greeting.
    pub within: Duration,
}

/// Why a node gives no copy, or cannot be asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CopyRequestError {
    /// It cannot be reached.
    #[error("it cannot be reached: {0}")]
    Connect(#[source] io::Error),
    /// It is no node of this cluster, or gives none.
    #[error(transparent)]
    Hello(#[from] HelloError),
}

impl CopyRequest<'_> {
    /// A connection with a node, which knows that it is asked for a copy. Reads and writes on it have no time limit.
    ///
    /// # Errors
    /// [`CopyRequestError`].
    ///
    /// # Panics
    /// If the list has no node of these numbers.
    pub fn ask(&self, of: NodeId) -> Result<TcpStream, CopyRequestError> {
        let peer = |node: NodeId| &self.peers.peers()[node.0 as usize];
        let address = &peer(of).address;
        let stream = connect(address, self.within).map_err(CopyRequestError::Connect)?;
        stream
            .set_nodelay(true)
            .map_err(CopyRequestError::Connect)?;
        let facts = Facts {
            program: env!("CARGO_PKG_VERSION").to_owned(),
            cluster: self.peers.digest(),
            list: self.peers.version(),
            name: peer(self.here).name.clone(),
            shards: self.peers.map().shards().count() as u32,
            snapshot: "none, as it asks for a copy".to_owned(),
            wants_copy: true,
        };
        let handshake = Handshake {
            here: self.here,
            nodes: self.peers.map().nodes().len() as u32,
            secret: self.secret,
            facts: &facts,
            role: Role::Dialer { to: of },
            gives_copies: false,
            within: self.within,
        };
        handshake.run(&stream)?;
        Ok(stream)
    }
}
