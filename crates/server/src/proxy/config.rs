//! What can be set about a proxy?

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use hyper::header::HeaderValue;
use tokio_rustls::rustls::ClientConfig;

use super::url::NodeUrl;
use crate::tls::Tls;

/// Settings of a [`Proxy`](super::Proxy).
#[derive(Clone)]
pub struct ProxyConfig {
    /// Where it listens: 127.0.0.1:7878.
    pub address: SocketAddr,
    /// Nodes that it asks for the others, and for the state of all.
    pub nodes: Vec<NodeUrl>,
    /// What it says of itself to nodes that ask for credentials, when it asks how they are: nothing.
    pub authorization: Option<HeaderValue>,
    /// How nodes prove who they are that are reached by `https`. Without it such nodes are not reached.
    pub trust: Option<Arc<ClientConfig>>,
    /// Connections of clients open at once: 4096.
    pub max_connections: usize,
    /// How long a node may take until it begins to answer, or may pause while it does: 11 min, which is more than a node
    /// gives any query unless it is told otherwise.
    pub timeout: Duration,
    /// The largest body of a request that is held, to be parsed and to be sent again, in bytes: 1 MiB. A larger one is
    /// passed on as it comes, and never again.
    pub body_bytes: usize,
    /// Bytes of bodies that are held together: 64 MiB. Where there is no room for one, it is passed on as a larger one is.
    pub all_body_bytes: usize,
    /// How long a client may take to send the head of its next request, or pause in its body: 60 s.
    pub idle_timeout: Duration,
    /// How long a client may take none of what is sent to it: 60 s.
    pub write_timeout: Duration,
    /// How long requests may go on once the proxy is told to stop: 10 s.
    pub shutdown_grace: Duration,
    /// How often each node is asked how it is: every second.
    pub interval: Duration,
    /// The certificate by which clients know the proxy, and its key: none, which is HTTP without TLS.
    pub tls: Option<Tls>,
}

impl Default for ProxyConfig {
    fn default() -> Self {
        Self {
            address: (Ipv4Addr::LOCALHOST, 7878).into(),
            nodes: Vec::new(),
            authorization: None,
            trust: None,
            max_connections: 4096,
            timeout: Duration::from_secs(11 * 60),
            body_bytes: 1 << 20,
            all_body_bytes: 64 << 20,
            idle_timeout: Duration::from_secs(60),
            write_timeout: Duration::from_secs(60),
            shutdown_grace: Duration::from_secs(10),
            interval: Duration::from_secs(1),
            tls: None,
        }
    }
}

impl fmt::Debug for ProxyConfig {
    /// Without what it says to nodes: a password belongs in no log.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProxyConfig")
            .field("address", &self.address)
            .field("nodes", &self.nodes)
            .finish_non_exhaustive()
    }
}
