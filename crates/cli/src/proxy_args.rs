//! Which options has a proxy before the nodes of a cluster?

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use jindou_server::NodeUrl;

use crate::stream_args::IdentityArguments;
use crate::values::{parse_address, parse_bytes, parse_count, parse_duration};

/// Answer clients at one address by the nodes of a cluster
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Examples:
  jindou proxy http://10.0.0.1:7878 http://10.0.0.2:7878
  jindou proxy --bind :80 --insecure http://10.0.0.1:7878
  JINDOU_TOKEN=... jindou proxy --bind :443 --tls-certificate fullchain.pem --tls-key privkey.pem https://a.example

It has no data: it parses queries and updates, answers what is wrong with them, and passes on what is right. A query goes
to a node in sync with the fewest requests under way, and to another where that one fails before it has answered;
updates, writes and streams go to the node that leads. An update is sent once: where its node is lost meanwhile, the
answer says that it may have been made. Nodes that are not named are learnt from the list that each node has, by their
`http`. Clients' credentials are passed on, and nodes decide what they may do; --user and --token are for the proxy to ask
nodes how they are, which takes the role `read`. /health and /metrics are the proxy's own, and ask for no credentials.

Ctrl-C lets requests under way end; a second Ctrl-C ends at once.")]
pub(crate) struct ProxyArguments {
    /// HTTP server of a node, as in http://10.0.0.1:7878; one is enough where the list of nodes has the others
    #[arg(value_name = "URL", required = true)]
    pub(crate) nodes: Vec<NodeUrl>,
    /// Address or name, and port, to listen at; without an address, as in :8080, at all of the machine,
    /// for which see --insecure; port 0 is a free one, which is printed
    #[arg(
        long,
        value_name = "ADDR:PORT",
        default_value = "127.0.0.1:7878",
        value_parser = parse_address
    )]
    pub(crate) bind: SocketAddr,
    /// File of the certificate by which clients know the proxy, with those that lead to one they trust, in
    /// PEM: it then speaks HTTPS only. It is read again with its key when they change
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub(crate) tls_certificate: Option<PathBuf>,
    /// File of the certificate's private key, in PEM and not encrypted
    #[arg(long, value_name = "FILE", requires = "tls_certificate")]
    pub(crate) tls_key: Option<PathBuf>,
    /// Listen beyond this machine before nodes that may ask nobody for credentials: anyone who reaches the address
    /// can then do everything
    #[arg(long)]
    pub(crate) insecure: bool,
    /// Connections of clients open at once; more wait
    #[arg(
        long,
        value_name = "N",
        default_value = "4096",
        value_parser = parse_count::<NonZeroUsize>,
        allow_negative_numbers = true
    )]
    pub(crate) connections: NonZeroUsize,
    /// How long a node may take until it begins to answer, or pause while it does; more than nodes give a query
    #[arg(
        long,
        value_name = "TIME",
        default_value = "11m",
        value_parser = parse_duration,
        allow_negative_numbers = true
    )]
    pub(crate) timeout: Duration,
    /// Largest body of a request that is held, to be parsed and to be sent again where a node fails; larger ones are
    /// passed on as they come, once. 64 of this size are held at once at most
    #[arg(
        long,
        value_name = "BYTES",
        default_value = "1MiB",
        value_parser = parse_bytes,
        allow_negative_numbers = true
    )]
    pub(crate) body_bytes: u64,
    #[command(flatten)]
    pub(crate) identity: IdentityArguments,
}
