//! What becomes of a connection that leaves HTTP for a WebSocket? Bytes go both ways, as they come.

use std::pin::Pin;
use std::sync::Arc;

use hyper::Version;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;

use super::node::{Node, UnderwayAt};
use crate::connections::Peer;

/// A connection of a client and one to a node, which both leave HTTP.
pub(super) struct Tunnel {
    client: OnUpgrade,
    node: OnUpgrade,
    lost: Pin<Box<dyn Future<Output = ()> + Send>>,
    _underway: UnderwayAt,
}

impl Tunnel {
    pub(super) fn new(client: OnUpgrade, node: OnUpgrade, at: &Arc<Node>) -> Self {
        Self {
            client,
            node,
            lost: Box::pin(at.until_lost()),
            _underway: at.begin(),
        }
    }

    /// Until one of both ends it, or the node is lost.
    pub(super) async fn run(self, peer: &Arc<Peer>) {
        // Nothing of HTTP may be sent any more.
        let _underway = peer.begin(Version::HTTP_10);
        let (Ok(client), Ok(node)) = tokio::join!(self.client, self.node) else {
            return;
        };
        let (mut client, mut node) = (TokioIo::new(client), TokioIo::new(node));
        tokio::select! {
            copied = tokio::io::copy_bidirectional(&mut client, &mut node) => {
                if let Err(error) = copied {
                    tracing::debug!(%error, "a WebSocket ended early");
                }
            }
            () = self.lost => {}
        }
    }
}
