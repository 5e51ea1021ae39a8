//! What can be set about a server?

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use jindou_engine::ServicePolicy;

/// Settings of a [`Server`](crate::Server), with defaults for a machine of one's own.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// Where [`Server::bind`](crate::Server::bind) listens: 127.0.0.1:7878.
    pub address: SocketAddr,
    /// How long a query may take that names no `timeout`: 60 s.
    pub default_timeout: Duration,
    /// The longest `timeout` a query may ask for; more is cut to it: 10 min.
    pub max_timeout: Duration,
    /// How long a query may keep the thread that read its request, before it is started over on
    /// a thread of its own: 5 ms. Other clients wait that long at most; zero sends every query
    /// to a thread of its own.
    pub inline_budget: Duration,
    /// The largest request body, in bytes: 16 MiB.
    pub max_body_bytes: usize,
    /// The largest head of a request, query in the URL included: 64 KiB, and never less than
    /// 8 KiB.
    pub max_header_bytes: usize,
    /// Queries under way at once; one more is answered 503: 64.
    pub max_queries: usize,
    /// Connections open at once; more wait to be accepted: 1024.
    pub max_connections: usize,
    /// How long a client may take to send the head of its next request, or its body: 60 s.
    pub idle_timeout: Duration,
    /// How long a client may take none of what is sent to it: 30 s.
    pub write_timeout: Duration,
    /// How long requests may go on once the server is told to stop: 10 s.
    pub shutdown_grace: Duration,
    /// Which pages may read answers: any.
    pub cors: Cors,
    /// Whether to compress for clients that accept gzip: yes.
    pub gzip: bool,
    /// Which endpoints SERVICE may call: none, as whoever may query could else make the server
    /// send requests to places that only it can reach. The database's own setting must allow
    /// them, too.
    pub services: ServicePolicy,
}

/// Which pages of other origins a browser lets read the answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cors {
    /// All pages.
    Any,
    /// None.
    None,
    /// Pages of these origins, as in `https://example.org`.
    Origins(Vec<String>),
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            address: (Ipv4Addr::LOCALHOST, 7878).into(),
            default_timeout: Duration::from_secs(60),
            max_timeout: Duration::from_secs(600),
            inline_budget: Duration::from_millis(5),
            max_body_bytes: 16 << 20,
            max_header_bytes: 64 << 10,
            max_queries: 64,
            max_connections: 1024,
            idle_timeout: Duration::from_secs(60),
            write_timeout: Duration::from_secs(30),
            shutdown_grace: Duration::from_secs(10),
            cors: Cors::Any,
            gzip: true,
            services: ServicePolicy::None,
        }
    }
}
