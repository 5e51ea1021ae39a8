//! What can be set about a server?

use std::net::{Ipv4Addr, SocketAddr};
use std::num::{NonZeroU32, NonZeroUsize};
use std::thread;
use std::time::Duration;

use jindou_brokers::BrokerPolicy;
use jindou_engine::AddressPolicy;

use crate::credentials::{Credentials, Role};
use crate::log::Log;
use crate::slow_queries::SlowQueries;
use crate::threads::HeavyPriority;
use crate::tls::Tls;

/// Settings of a [`Server`](crate::Server), with defaults for a machine of one's own.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// Where [`Server::bind`](crate::Server::bind) listens: 127.0.0.1:7878.
    pub address: SocketAddr,
    /// How long a query may take that names no `timeout`: 60 s.
    pub default_timeout: Duration,
    /// The longest `timeout` a query may ask for; more is cut to it: 10 min.
    pub max_timeout: Duration,
    /// Rows or triples that a result may have; one that has more ends with an error: any number.
    pub max_rows: Option<u64>,
    /// Heavy queries that compute at once: as many as there are cores.
    pub heavy_queries: usize,
    /// How the threads of heavy queries are kept out of the way of light ones: they run only while
    /// a core is idle. The threads that heavy queries share are the database's, which is to have
    /// the same setting: see [`MemoryLimits::engine_config`](crate::MemoryLimits::engine_config).
    pub heavy_priority: HeavyPriority,
    /// Heavy queries that wait for their turn; one more is answered 503: 64.
    pub queued_queries: usize,
    /// How long one waits for its turn before it is answered 503: 30 s.
    pub queue_wait: Duration,
    /// Updates under way at once: 64. They are executed one after another, and share the waits
    /// for the device.
    pub updates: usize,
    /// Updates that wait for their turn; one more is answered 503: 1024.
    pub queued_updates: usize,
    /// Clients that read results of continuous queries at once; one more is answered 503: 1024.
    pub result_readers: usize,
    /// How often such a client hears something where no result comes: 15 s.
    pub keep_alive: Duration,
    /// Refuse all that changes the database: no.
    pub read_only: bool,
    /// What clients see before the path of a URL, as in `https://example.org`, where that is not
    /// `http://`, or with TLS `https://`, and the `Host` of the request: none.
    pub public_url: Option<String>,
    /// Heavy queries whose clients have ceased to read for a second. They have given their turn
    /// away, after 50 ms; one more ends the one that has waited for longest: 64.
    pub stalled_queries: usize,
    /// How long a query may keep the thread that read its request, before it is started over on
    /// a thread of its own: 5 ms. Other clients wait that long at most; zero sends every query
    /// to a thread of its own.
    pub inline_budget: Duration,
    /// The largest request body, in bytes, decompressed: 64 MiB. Documents of the graph store may be as
    /// large as temporary files of the database may, all that wait together.
    pub max_body_bytes: usize,
    /// The longest URL, query included, in bytes: 32 KiB.
    pub max_uri_bytes: usize,
    /// The largest head of a request, URL included: 64 KiB, and never less than 8 KiB.
    pub max_header_bytes: usize,
    /// Connections open at once: 4096. For one more the longest idle is closed; while all are
    /// busy it may only ask for `/health` and `/metrics`, and there are 16 such at most.
    pub max_connections: usize,
    /// How long a client may take to send the head of its next request, or its body: 60 s.
    pub idle_timeout: Duration,
    /// How long a client may take none of what is sent to it: 60 s.
    pub write_timeout: Duration,
    /// How long requests may go on once the server is told to stop, until they are refused: 10 s.
    pub shutdown_grace: Duration,
    /// Which pages may read answers: [`Cors::Local`]. What changes the database is taken from
    /// pages of this server and of [`Cors::Origins`] only, since a browser sends it for any page.
    /// A page is this server's if its host is an address, `localhost` or that of `public_url`:
    /// any other name may be made to point here. Where the server listens at a loopback address,
    /// browsers may not even read by such a name, but with [`Cors::Any`].
    pub cors: Cors,
    /// Whether to compress for clients that accept gzip: yes.
    pub gzip: bool,
    /// Which endpoints SERVICE may call: none, as whoever may query could otherwise make the server
    /// send requests to places that only it can reach. The database's own setting must allow
    /// them, too.
    pub services: AddressPolicy,
    /// Which brokers sources and sinks may connect to: none, for the same reason.
    pub brokers: BrokerPolicy,
    /// The certificate by which clients know the server, and its key: none, which is HTTP without TLS. The
    /// files are read again when they change.
    pub tls: Option<Tls>,
    /// Who may do what: [`AccessPolicy::Open`].
    pub access: AccessPolicy,
    /// Where each request is a line once it was answered: nowhere.
    pub access_log: Option<Log>,
    /// Where queries and updates are noted that took long: nowhere.
    pub slow_queries: Option<SlowQueries>,
    /// Requests that an address may send in a second, and at once; one more is answered 429: any number.
    /// Addresses of IPv6 count by their /64.
    pub requests_per_second: Option<NonZeroU32>,
}

/// Who may do what.
#[derive(Clone, Debug)]
pub enum AccessPolicy {
    /// Everybody may do everything.
    Open,
    /// A client may do what the role of its credentials says.
    Known {
        /// Whose names, passwords and tokens are known. The file is read again when it changes.
        credentials: Credentials,
        /// What a client without credentials may do, if anything.
        anonymous: Option<Role>,
    },
}

impl AccessPolicy {
    /// Clients with credentials only; those without may do nothing.
    #[must_use]
    pub fn known(credentials: Credentials) -> Self {
        Self::Known {
            credentials,
            anonymous: None,
        }
    }

    /// Whose credentials are known, if anybody's.
    #[must_use]
    pub fn credentials(&self) -> Option<&Credentials> {
        match self {
            Self::Open => None,
            Self::Known { credentials, .. } => Some(credentials),
        }
    }

    /// What a client without credentials may do, if anything.
    #[must_use]
    pub fn anonymous(&self) -> Option<Role> {
        match self {
            Self::Open => Some(Role::Admin),
            Self::Known { anonymous, .. } => *anonymous,
        }
    }
}

/// Which pages of other origins a browser lets read the answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cors {
    /// [`Cors::Any`] where the server listens at a loopback address, otherwise [`Cors::None`].
    Local,
    /// All pages, and none those to what changes the database.
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
            max_rows: None,
            heavy_queries: thread::available_parallelism().map_or(1, NonZeroUsize::get),
            heavy_priority: HeavyPriority::default(),
            queued_queries: 64,
            queue_wait: Duration::from_secs(30),
            stalled_queries: 64,
            updates: 64,
            queued_updates: 1024,
            result_readers: 1024,
            keep_alive: Duration::from_secs(15),
            read_only: false,
            public_url: None,
            max_body_bytes: 64 << 20,
            max_uri_bytes: 32 << 10,
            max_header_bytes: 64 << 10,
            max_connections: 4096,
            idle_timeout: Duration::from_secs(60),
            write_timeout: Duration::from_secs(60),
            shutdown_grace: Duration::from_secs(10),
            cors: Cors::Local,
            gzip: true,
            services: AddressPolicy::None,
            brokers: BrokerPolicy::None,
            tls: None,
            access: AccessPolicy::Open,
            access_log: None,
            slow_queries: None,
            requests_per_second: None,
        }
    }
}
