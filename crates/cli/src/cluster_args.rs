//! Which node of a cluster is a server, and what is a cluster for a first look made of: which options say so?

use std::num::NonZeroU16;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use jindou_engine::Shards;
use jindou_etcd::{Identity, TlsFiles};

use crate::args::ReadArguments;
use crate::stream_args::IdentityArguments;
use crate::values::{parse_bytes, parse_count, parse_duration, parse_public_url, parse_shards};

/// Nodes that one command starts on this machine at most.
pub(crate) const MOST_NODES: i64 = 16;

/// Which node of which cluster a server is.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Cluster")]
pub(crate) struct ClusterArguments {
    /// File of the nodes of a cluster, the same at each of them: the server is one of these, and queries are
    /// answered over the shards of all. Takes --location, a copy of the same store at each; on Linux
    #[arg(long, value_name = "FILE", requires = "node")]
    pub(crate) peers: Option<PathBuf>,
    /// Which node the server is: one of those of --peers, or, without that file, whatever the list in etcd has or is to
    /// have (--advertise)
    #[arg(long, value_name = "NAME")]
    pub(crate) node: Option<String>,
    /// Reach nodes of this machine by TCP, too, as those of others
    #[arg(long, requires = "node")]
    pub(crate) no_shared_memory: bool,
    /// The etcd that keeps which node leads: where that is lost, another one takes its place. Without --peers it keeps the
    /// list of nodes, too, to which this one is added. One address or several of one
    /// etcd; the same at all nodes [default: the first node of the list always leads]
    #[arg(long, value_name = "URL[,URL]", requires = "node")]
    pub(crate) cluster: Option<jindou_etcd::Endpoints>,
    /// Where the other nodes reach this one, as in 10.0.0.1:7900: the node listens there. The first one of a cluster needs
    /// no store, each later one copies that of the node that leads
    #[arg(
        long,
        value_name = "HOST:PORT",
        requires = "cluster",
        conflicts_with = "peers"
    )]
    pub(crate) advertise: Option<String>,
    /// Where this node's HTTP server is reached, for proxies and people, as in http://10.0.0.1:7878
    #[arg(long, value_name = "URL", requires = "advertise", value_parser = parse_public_url)]
    pub(crate) advertise_http: Option<String>,
    /// Shards of the cluster, as its first node says once: a power of two, as many as the nodes that there will ever be, at least.
    /// Each predicate takes memory by shards [default: 64]
    #[arg(long, value_name = "N", requires = "advertise", value_parser = parse_shards)]
    pub(crate) shards: Option<Shards>,
    /// File of what only the nodes of the cluster know; needed where they reach each other over a network
    #[arg(long, value_name = "FILE", requires = "advertise")]
    pub(crate) cluster_secret: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) etcd: EtcdArguments,
    /// How long a node that is cut off from the others answers queries from what it has, which may lack what clients were
    /// told of [default: not at all, with --cluster; otherwise however long]
    #[arg(long, value_name = "TIME", requires = "cluster", value_parser = parse_duration)]
    pub(crate) max_staleness: Option<Duration>,
    /// Copy the store of the node that leads before anything else, in the place of what --location has. A node does so by
    /// itself where --location has nothing, or is too old to follow
    #[arg(long, requires = "node", conflicts_with = "read_only")]
    pub(crate) copy_anew: bool,
    /// Bytes of its store that this node sends in a second, at most, to one that copies it
    #[arg(long, value_name = "BYTES", requires = "node", default_value = "128MiB", value_parser = parse_bytes)]
    pub(crate) copy_rate: u64,
    /// End when standard input does, as it does when the program ends that started this one
    #[arg(long, hide = true)]
    pub(crate) ends_with_input: bool,
}

/// Which cluster of an etcd is meant, and how that is reached.
#[derive(Debug, Clone, Args)]
pub(crate) struct EtcdArguments {
    /// What the cluster is called in etcd, where there are several
    #[arg(long, value_name = "NAME", requires = "cluster", default_value = "default", value_parser = parse_cluster_name)]
    pub(crate) cluster_name: String,
    /// File of the authorities that etcd's certificate is checked against, for https addresses
    #[arg(long, value_name = "FILE", requires = "cluster")]
    pub(crate) etcd_ca: Option<PathBuf>,
    /// File of the certificate that is shown to etcd
    #[arg(long, value_name = "FILE", requires = "etcd_ca", requires = "etcd_key")]
    pub(crate) etcd_certificate: Option<PathBuf>,
    /// File of its key
    #[arg(long, value_name = "FILE", requires = "etcd_certificate")]
    pub(crate) etcd_key: Option<PathBuf>,
}

impl EtcdArguments {
    /// How a client reaches the etcd at these addresses.
    pub(crate) fn options(&self, endpoints: &jindou_etcd::Endpoints) -> jindou_etcd::Options {
        let certificate = self.etcd_certificate.clone();
        let identity = certificate.zip(self.etcd_key.clone());
        let identity = identity.map(|(certificate, key)| Identity { certificate, key });
        jindou_etcd::Options {
            tls: (self.etcd_ca.clone()).map(|ca| TlsFiles { ca, identity }),
            ..jindou_etcd::Options::new(endpoints.clone())
        }
    }
}

fn parse_cluster_name(text: &str) -> Result<String, String> {
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    match !text.is_empty() && text.len() <= 64 && text.bytes().all(is_name) {
        true => Ok(text.to_owned()),
        false => Err("it has letters and digits of ASCII, `.`, `_` and `-`, at most 64".to_owned()),
    }
}

/// Run a cluster of servers, whose nodes answer queries together
#[derive(Debug, Subcommand)]
#[command(after_help = "\
A node of a cluster is a `jindou serve --location DIR --cluster URL --node NAME --advertise HOST:PORT`, where etcd keeps
the list of nodes, or a `jindou serve --location DIR --peers FILE --node NAME`, where a file does.

Examples:
  jindou cluster dev
  jindou cluster dev --location store --nodes 2
  jindou cluster split --location store --peers nodes.toml --to parts
  jindou cluster status http://10.0.0.1:7878
  jindou cluster drain d --cluster http://10.0.0.9:2379")]
pub(crate) enum ClusterCommand {
    Dev(DevArguments),
    Split(SplitArguments),
    Status(StatusArguments),
    Add(AddArguments),
    Drain(DrainArguments),
}

/// Let a node join that was drained, or that the list in etcd is to have before it is started: one that is started with
/// --advertise adds itself otherwise
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  jindou cluster add d --cluster http://10.0.0.9:2379
  jindou cluster add e --cluster http://10.0.0.9:2379 --advertise 10.0.0.5:7900

The node holds shards once it runs, has a copy of the store, and follows. Shards are dealt evenly to all that hold any,
whenever one comes or goes.")]
pub(crate) struct AddArguments {
    /// Name of the node
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// The etcd that keeps the list of nodes
    #[arg(long, value_name = "URL[,URL]")]
    pub(crate) cluster: jindou_etcd::Endpoints,
    /// Where the other nodes reach it, as in 10.0.0.5:7900 [default: where it was]
    #[arg(long, value_name = "HOST:PORT")]
    pub(crate) advertise: Option<String>,
    #[command(flatten)]
    pub(crate) etcd: EtcdArguments,
}

/// Take a node out of a cluster whose list of nodes etcd keeps: its shards go to the others, and it ends by itself once another
/// node leads and its own queries have ended
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  jindou cluster drain d --cluster http://10.0.0.9:2379
  jindou cluster drain d --cluster http://10.0.0.9:2379 --dead

Queries and updates go on meanwhile; where the node led, updates wait about 1.5 s for the next one. It is let in again by
`jindou cluster add`.")]
pub(crate) struct DrainArguments {
    /// Name of the node
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// The etcd that keeps the list of nodes
    #[arg(long, value_name = "URL[,URL]")]
    pub(crate) cluster: jindou_etcd::Endpoints,
    /// It is not there any more, and will not be: take it out without waiting for it
    #[arg(long)]
    pub(crate) dead: bool,
    /// How long it may take
    #[arg(
        long,
        value_name = "TIME",
        default_value = "60s",
        value_parser = parse_duration,
        allow_negative_numbers = true
    )]
    pub(crate) timeout: Duration,
    #[command(flatten)]
    pub(crate) etcd: EtcdArguments,
}

/// Show the nodes of a running cluster: which are there, which one leads, and whether all copies are in sync
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  jindou cluster status http://10.0.0.1:7878
  JINDOU_USER=ann:secret jindou cluster status --format json https://a.example https://b.example

Nodes that are not named are asked by the `http` of the list that any of the others has. It succeeds if all nodes are
there and all copies in sync, and ends with status 1 and a line that says what is not, otherwise. Where nodes ask for
credentials, it takes the role `read`.")]
pub(crate) struct StatusArguments {
    /// HTTP server of a node, as in http://10.0.0.1:7878; one is enough where the list of nodes has the others
    #[arg(value_name = "URL", required = true, value_parser = parse_public_url)]
    pub(crate) urls: Vec<String>,
    /// How it is printed
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t)]
    pub(crate) format: StatusFormat,
    /// How long a node may take to answer, as in 500ms
    #[arg(
        long,
        value_name = "TIME",
        default_value = "5s",
        value_parser = parse_duration,
        allow_negative_numbers = true
    )]
    pub(crate) timeout: Duration,
    #[command(flatten)]
    pub(crate) identity: IdentityArguments,
}

/// How the nodes of a cluster are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum StatusFormat {
    /// As a table
    #[default]
    Text,
    /// As JSON
    Json,
}

/// Split a store into parts, one for each node of a cluster that is only read: each has the edges and terms of the
/// shards that its node holds
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  jindou cluster split --location store --peers nodes.toml --to parts
  rsync -a parts/b/ b.example:/var/lib/jindou/store/
  jindou serve --read-only --location parts/a --peers nodes.toml --node a

The store must have no changes since its last merge: `jindou compact` makes them part of it. It stays as it is, and
must not be open to be written meanwhile. The characteristic sets are in each part as a whole. A part answers as the node that
it is of, by the list that it was split by, and is refused by all other commands but `stats` and `verify`.")]
pub(crate) struct SplitArguments {
    /// Folder of the store
    #[arg(long, value_name = "DIR")]
    pub(crate) location: PathBuf,
    /// File of the nodes, the same that each of them gets
    #[arg(long, value_name = "FILE")]
    pub(crate) peers: PathBuf,
    /// Folder to make, with a folder of each node's name in it; it appears when all are whole
    #[arg(long, value_name = "DIR")]
    pub(crate) to: PathBuf,
}

/// Start the nodes of a cluster on this machine, for a first look: copies of the store of a folder, of files, or
/// of generated data at several servers, until Ctrl-C. Updates may be sent to each of them; they end with it
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  jindou cluster dev                            one university of LUBM at three nodes
  jindou cluster dev --location store --nodes 2
  jindou cluster dev --http-port 7878 data.ttl  at the ports 7878, 7879 and 7880

A node that ends is started again: `kill -9 PID` shows what the others answer meanwhile.")]
pub(crate) struct DevArguments {
    /// Files to load into a store in a temporary folder
    #[arg(value_name = "FILE", conflicts_with = "location")]
    pub(crate) files: Vec<PathBuf>,
    /// Folder of the store of which each node gets a copy; it is not changed itself
    #[arg(long, value_name = "DIR")]
    pub(crate) location: Option<PathBuf>,
    /// How many nodes
    #[arg(
        long,
        value_name = "N",
        default_value = "3",
        value_parser = clap::value_parser!(u32).range(1..=MOST_NODES),
        allow_negative_numbers = true
    )]
    pub(crate) nodes: u32,
    /// Port of the first node's HTTP server; that of the next is one more [default: free ones]
    #[arg(
        long,
        value_name = "N",
        value_parser = parse_count::<NonZeroU16>,
        allow_negative_numbers = true
    )]
    pub(crate) http_port: Option<NonZeroU16>,
    /// Nodes reach each other by TCP, as those of several machines
    #[arg(long)]
    pub(crate) no_shared_memory: bool,
    #[command(flatten)]
    pub(crate) read: ReadArguments,
}
