//! How do the nodes of a cluster look like one server, for clients that know one address?
//!
//! A [`Proxy`] has no data. It parses queries and updates, so that what is wrong with them keeps no node from work, and
//! sends what is right to a node: queries to one that is in sync and has the fewest requests under way, and what only the
//! node that leads does to that. It decides by the paths and methods that a [`Server`](crate::Server) knows. Plans are
//! the nodes' affair: they depend on statistics and on the ids of terms, and a node keeps them by the shape of a text.
//!
//! A request goes this way:
//!
//! ```text
//! front -> gateway -> sparql    what is it, and is it right?
//!                  -> forward   which node, and which next?  <- standing <- nodes (asked every second)
//!                     link      a connection to it
//!                  -> answer    its body, as it comes
//! ```

mod answer;
mod config;
mod forward;
mod front;
mod gateway;
mod headers;
mod link;
mod metrics;
mod node;
mod nodes;
mod outgoing;
mod room;
mod sparql;
mod standing;
mod tunnel;
mod url;
mod way;

pub use config::ProxyConfig;
pub use url::{NodeUrl, NodeUrlError};

use std::pin::pin;
use std::sync::Arc;

use tokio::net::TcpListener;

use crate::error::ServerError;
use crate::reread::RereadFiles;
use crate::server::{AbortOnDrop, listen_for, reread};
use gateway::Gateway;

/// Serves clients by the nodes of a cluster.
///
/// ```no_run
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use jindou_server::{Proxy, ProxyConfig};
///
/// let proxy = Proxy::new(ProxyConfig {
///     nodes: vec!["http://10.0.0.1:7878".parse()?],
///     ..ProxyConfig::default()
/// });
/// let listener = proxy.bind()?;
/// proxy.until_asked().await;
/// proxy.serve(listener, std::future::pending()).await;
/// # Ok(())
/// # }
/// ```
pub struct Proxy {
    gateway: Arc<Gateway>,
    /// Goes on for as long as it is there.
    _asking: AbortOnDrop,
}

/// How many nodes there are.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NodesFound {
    /// The names of those that are there.
    pub there: Vec<String>,
    /// The others by name or URL, and why each is away.
    pub away: Vec<String>,
    /// Those that are there and do not say how they are, and why: as they ask for credentials.
    pub silent: Vec<String>,
    /// The one that leads, if it is known and there.
    pub leader: Option<String>,
}

impl Proxy {
    /// A proxy that listens nowhere yet, and asks its nodes how they are from now on. Takes a tokio runtime with time
    /// and I/O enabled.
    #[must_use]
    pub fn new(config: ProxyConfig) -> Self {
        let gateway = Arc::new(Gateway::new(config));
        let nodes = Arc::clone(&gateway.forwarder.nodes);
        Self {
            _asking: AbortOnDrop::new(tokio::spawn(nodes.keep_asking())),
            gateway,
        }
    }

    /// Listens at the configured address.
    ///
    /// # Errors
    /// [`ServerError::Bind`].
    pub fn bind(&self) -> Result<TcpListener, ServerError> {
        let config = &self.gateway.config;
        listen_for(config.address, config.max_connections)
    }

    /// Waits until all nodes were asked how they are, or had their time to say so, and tells what they said.
    pub async fn until_asked(&self) -> NodesFound {
        let forwarder = &self.gateway.forwarder;
        forwarder.nodes.until_asked().await;
        let standing = forwarder.nodes.standing();
        NodesFound {
            there: standing.there().map(|node| node.name()).collect(),
            away: forwarder.away(),
            silent: forwarder.silent(),
            leader: standing.leader().map(|node| node.name()),
        }
    }

    /// Serves connections until `shutdown` is done. Then no more are accepted, requests under way get
    /// [`ProxyConfig::shutdown_grace`] to end, and what is left is cut.
    pub async fn serve(self, listener: TcpListener, shutdown: impl Future<Output = ()> + Send) {
        let files = RereadFiles::of_tls(self.gateway.config.tls.clone());
        let _rereading = (!files.is_empty()).then(|| AbortOnDrop::new(tokio::spawn(reread(files))));
        front::serve(Arc::clone(&self.gateway), listener, pin!(shutdown)).await;
    }
}
